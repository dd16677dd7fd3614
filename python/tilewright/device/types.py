"""The numbers of device code: one value in a fixed format. On the host they are NumPy scalars."""

from __future__ import annotations

from ..dtype import (
    bfloat16,
    bool_,
    float8e4m3,
    float8e5m2,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

__all__ = [
    "bfloat16",
    "bool_",
    "float8e4m3",
    "float8e5m2",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
