"""docs/api.md: each public name of `tilewright.tile`, its signature, its docstring and an example that was executed.

python tools/api.py            # writes the page
python tools/api.py check      # says whether it is as it should be

Names, signatures and texts are those of the module. Examples stand in tools/api_examples.tsv; what the page shows
behind them is what the reference execution printed. A function without an example is an error.
"""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import inspect
import io
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TABLE, PAGE = ROOT / "tools/api_examples.tsv", ROOT / "docs/api.md"
HOST = ("kernel", "function", "launch", "ByTarget", "compiler_timeout")
STORES = {"store", "scatter", "store_advanced_indexing"}
STATEMENTS = {"assert_", "print", "printf", "static_assert"} | STORES  # what gives nothing back

HEAD = """# API reference

Every public name of `tilewright.tile`, made by `tools/api.py`. The examples were executed: they stand in a kernel of
one block, in which

```python sketch
x = ct.load(X, index=(0,), shape=(4,))  # float32: 1, 2, 3, 4
y = ct.load(Y, index=(0,), shape=(4,))  # float32: 4, 3, 2, 1
i = ct.arange(4, dtype=ct.int32)
m = ct.reshape(x, (2, 2))
```

N is an array of int32: 1, 2, 3, 4.

Shapes, axes and dtypes are constants. Operators mean what they mean in NumPy. [options.md](options.md) has the hints of
`ct.kernel`, [cutile.md](cutile.md) what differs from cuTile.
"""

KERNEL = """
@ct.kernel
def {name}_example(X, Y, N):
    x = ct.load(X, index=(0,), shape=(4,))
    y = ct.load(Y, index=(0,), shape=(4,))
    i = ct.arange(4, dtype=ct.int32)
    m = ct.reshape(x, (2, 2))
    {statement}
"""


def examples() -> dict[str, str]:
    with TABLE.open(newline="") as file:
        return {row["name"]: row["example"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}


def executed(table: dict[str, str]) -> dict[str, str]:
    """What each example prints; one that stores shows the array."""
    import numpy as np

    texts = [KERNEL.format(name=n, statement=e if n in STATEMENTS else f"ct.print({e})") for n, e in table.items()]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "examples.py"
        source.write_text("from tilewright import tile as ct\n" + "\n".join(texts))
        spec = importlib.util.spec_from_file_location("examples", source)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        results = {}
        for name in table:
            x = np.arange(1, 5, dtype=np.float32)
            y = x[::-1].copy()
            with contextlib.redirect_stdout(io.StringIO()) as out:
                getattr(module, f"{name}_example").interpret(1, (x, y, np.arange(1, 5, dtype=np.int32)))
            stored = f"Y is {y}" if name in STORES else ""
            results[name] = out.getvalue().strip() or stored
    return results


def signature(name: str, value: Any) -> str:
    try:
        return name + str(inspect.signature(value)).replace("'", "")
    except (TypeError, ValueError):
        return name


def entry(name: str, value: Any, example: str, result: str) -> str:
    shown = "\n".join(f"# {line}".rstrip() for line in result.splitlines())
    block = f"```python sketch\nct.{signature(name, value)}\n```\n\n{inspect.getdoc(value) or ''}"
    used = f"\n\n```python sketch\n{example}\n{shown}".rstrip() + "\n```" if example else ""
    return f"### `ct.{name}`\n\n{block.rstrip()}{used}\n"


def page() -> str:
    from tilewright import tile as ct

    values = {name: getattr(ct, name) for name in dir(ct)}
    table = examples()
    dtypes = {name: value for name, value in values.items() if isinstance(value, ct.DType)}
    functions = {name: value for name, value in values.items() if inspect.isfunction(value) and name not in HOST}
    errors = [n for n, v in values.items() if isinstance(v, type) and issubclass(v, Exception)]
    if set(table) != set(functions):
        sys.exit(
            f"tools/api_examples.tsv and tilewright.tile differ in {', '.join(sorted(set(table) ^ set(functions)))}"
        )
    results = executed(table)
    others = [n for n in values if n not in dtypes and n not in functions and n not in errors]
    host = [entry(n, values[n], "", "") for n in HOST]
    return "\n".join(
        [
            HEAD,
            "## Kernels and launches\n",
            *host,
            "## Functions of tile code\n",
            *(entry(name, value, table[name], results[name]) for name, value in functions.items()),
            "## Dtypes\n\n" + ", ".join(f"`ct.{name}`" for name in dtypes) + ".\n",
            "## Types and annotations\n",
            *(kind(n, values[n]) for n in others if n not in HOST),
            "\n## Errors\n",
            *(kind(n, values[n]) for n in errors),
            "",
        ]
    )


def kind(name: str, value: Any) -> str:
    text = inspect.getdoc(value) if isinstance(value, type) and value.__doc__ else ""
    first = (text or "").split("\n\n")[0].replace("\n", " ")
    return f"- `ct.{name}`" + (f": {first}" if first and "An enumeration" not in first else "")


def main(arguments: list[str]) -> int:
    sys.path.insert(0, str(ROOT / "python"))
    text = page()
    if arguments[:1] != ["check"]:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        print("docs/api.md is not as it should be; run python tools/api.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
