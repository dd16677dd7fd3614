"""What machine code does with asynchronous products, held against its PTX: docs/design/machine-code.md."""
