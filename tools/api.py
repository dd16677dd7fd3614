"""docs/api.md: each public name of `tilewright.tile`, its signature, its docstring and an example that was executed.

python tools/api.py            # writes the page
python tools/api.py check      # says whether it is as it should be

Names, signatures and texts are those of the module. Examples stand behind `>>>` in docstrings, or in
tools/api_examples.tsv; what the page shows behind them is what the reference execution printed. A function without an
example is an error. test/numerics/test_examples.py holds what the back ends compute against that.
"""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import inspect
import io
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TABLE, PAGE = ROOT / "tools/api_examples.tsv", ROOT / "docs/api.md"
HOST = ("kernel", "function", "launch", "ByTarget", "compiler_timeout")
STORES = {"store", "scatter", "store_advanced_indexing"}
OVERLAP = {"grid_dependency_control_launch_dependents", "grid_dependency_control_wait"}
STATEMENTS = (
    {"assert_", "print", "printf", "static_assert", "static_exception"} | OVERLAP | STORES
)  # what gives nothing back

FUNCTION = """@device.func
def turn(a):
    t = device.int32(device.thread_idx.x)
    value = a[t % 4]
    device.syncthreads()
    if t < 4:
        a[3 - t] = value
"""

HEAD = f"""# API reference

Every public name of `tilewright.tile`, made by `tools/api.py`. The examples were executed: they stand in a kernel of
one block, in which

```python sketch
x = ct.load(X, index=(0,), shape=(4,))  # float32: 1, 2, 3, 4
y = ct.load(Y, index=(0,), shape=(4,))  # float32: 4, 3, 2, 1
i = ct.arange(4, dtype=ct.int32)
m = ct.reshape(x, (2, 2))
```

N is an array of int32: 1, 2, 3, 4. `turn` is code of threads:

```python sketch
{FUNCTION.rstrip()}
```

Shapes, axes and dtypes are constants. Operators mean what they mean in NumPy. [options.md](options.md) has the hints of
`ct.kernel`, [cutile.md](cutile.md) what differs from cuTile.
"""

KERNEL = """
@ct.kernel
def {name}_example(X, Y, N{more}):
    x = ct.load(X, index=(0,), shape=(4,))
    y = ct.load(Y, index=(0,), shape=(4,))
    i = ct.arange(4, dtype=ct.int32)
    m = ct.reshape(x, (2, 2))
    {statement}
"""


EXAMPLE = re.compile(r"\n*^>>> (.*)\Z", re.MULTILINE)


def examples(values: dict[str, Any]) -> dict[str, str]:
    """By the name of a function: of the table, and of docstrings."""
    with TABLE.open(newline="") as file:
        table = {row["name"]: row["example"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}
    told = {name: EXAMPLE.search(inspect.getdoc(value) or "") for name, value in values.items()}
    return dict(sorted({**table, **{name: match.group(1) for name, match in told.items() if match}}.items()))


def kernels(statements: dict[str, str], folder: str, more: str = "") -> Any:
    """A module with a kernel NAME_example for each statement; `more` parameters follow X, Y and N."""
    texts = [KERNEL.format(name=name, statement=statement, more=more) for name, statement in statements.items()]
    source = Path(folder) / "examples.py"
    source.write_text("\n".join(["from cuda import device\nfrom tilewright import tile as ct\n", FUNCTION, *texts]))
    spec = importlib.util.spec_from_file_location("examples", source)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arguments() -> tuple[Any, ...]:
    """X, Y and N."""
    import numpy as np

    x = np.arange(1, 5, dtype=np.float32)
    return x, x[::-1].copy(), np.arange(1, 5, dtype=np.int32)


def executed(table: dict[str, str]) -> dict[str, str]:
    """What each example prints; one that stores shows the array."""
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        module = kernels({n: e if n in STATEMENTS else f"ct.print({e})" for n, e in table.items()}, folder)
        for name in table:
            given = arguments()
            with contextlib.redirect_stdout(io.StringIO()) as out:
                getattr(module, f"{name}_example").interpret(1, given)
            stored = f"Y is {given[1]}" if name in STORES else ""
            results[name] = out.getvalue().strip() or stored
    return results


def signature(name: str, value: Any) -> str:
    try:
        return name + str(inspect.signature(value)).replace("'", "")
    except (TypeError, ValueError):
        return name


def entry(name: str, value: Any, example: str, result: str) -> str:
    shown = "\n".join(f"# {line}".rstrip() for line in result.splitlines())
    text = EXAMPLE.sub("", inspect.getdoc(value) or "")
    block = f"```python sketch\nct.{signature(name, value)}\n```\n\n{text}"
    used = f"\n\n```python sketch\n{example}\n{shown}".rstrip() + "\n```" if example else ""
    return f"### `ct.{name}`\n\n{block.rstrip()}{used}\n"


def functions_of(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if inspect.isroutine(value) and name not in HOST}


def page() -> str:
    from tilewright import tile as ct

    values = {name: getattr(ct, name) for name in dir(ct)}
    dtypes = {name: value for name, value in values.items() if isinstance(value, ct.DType)}
    functions = functions_of(values)
    table = examples(functions)
    errors = [n for n, v in values.items() if isinstance(v, type) and issubclass(v, Exception)]
    if set(table) != set(functions):
        sys.exit(
            "a function needs an example, in its docstring or tools/api_examples.tsv, and an example a function: "
            + ", ".join(sorted(set(table) ^ set(functions)))
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
