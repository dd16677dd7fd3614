"""The include direction: a file may include its own layer and the layers listed for it, nothing above.

    base  <-  runtime
          <-  lowering/layout  <-  dialect  <-  lowering/{common,gpu,cpu}  <-  lowering  <-  python/ext

The rooms of lowering/gpu are layers, too; those in braces do not see each other, nor do the generations of isa:

    machine  <-  facts  <-  emit  <-  isa  <-  {grid,softmax,layout,memory,schedule,roles,emit/rules}  <-  lowering/gpu

No file includes itself by way of others.

MLIR and LLVM stay out of base, lowering/layout and runtime; Python.h stays in python/ext; C++ headers of MLIR
stay in the .cpp files of dialect/ and tools/. A table (.def) may be expanded anywhere: it has no code.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# layer -> (layers it may include besides itself, outside headers it may include)
C_LIBRARY = r"[a-z0-9_]+\.h|(sys|arpa|netinet|linux)/[a-z0-9_]+\.h"
MLIR_C = r"(mlir-c|llvm-c)/.*"
MLIR_CPP = r"(mlir|llvm)/.*"
PUBLIC = ["base", "include/tilewright"]
COMPILER = [*PUBLIC, "dialect", "lowering/common", "lowering/layout", "lowering-shared"]
ROOMS = [f"lowering/gpu/{room}" for room in ("machine", "facts", "emit", "isa")]  # each sees those before it
PASSES = [f"lowering/gpu/{room}" for room in ("grid", "softmax", "layout", "memory", "schedule", "roles", "emit/rules")]
GENERATIONS = [f"lowering/gpu/isa/{name}" for name in ("sm80", "sm89", "sm90")]
LAYERS: dict[str, tuple[list[str], list[str]]] = {
    "base": (["include/tilewright"], [C_LIBRARY]),
    "include/tilewright": (["base"], [C_LIBRARY, MLIR_C]),
    "lowering/layout": (PUBLIC, [C_LIBRARY]),
    "runtime": (PUBLIC, [C_LIBRARY]),
    "dialect": ([*PUBLIC, "lowering/layout", "lowering-shared"], [C_LIBRARY, MLIR_C, MLIR_CPP]),
    "lowering/common": (COMPILER, [C_LIBRARY, MLIR_C]),
    **{room: ([*COMPILER, *ROOMS[:number]], [C_LIBRARY, MLIR_C]) for number, room in enumerate(ROOMS[:3])},
    "lowering/gpu/isa": ([*COMPILER, *ROOMS, *GENERATIONS], [C_LIBRARY, MLIR_C]),
    **{name: ([*COMPILER, *ROOMS], [C_LIBRARY, MLIR_C]) for name in GENERATIONS},
    **{room: ([*COMPILER, *ROOMS, *GENERATIONS], [C_LIBRARY, MLIR_C]) for room in PASSES},
    "lowering/gpu": ([*COMPILER, *ROOMS, *GENERATIONS, *PASSES], [C_LIBRARY, MLIR_C]),
    "lowering/cpu": (COMPILER, [C_LIBRARY, MLIR_C]),
    "lowering-shared": ([*COMPILER, "lowering/gpu", ROOMS[0], "lowering/cpu"], [C_LIBRARY, MLIR_C]),
    "python/ext": ([*COMPILER, "runtime", "lowering/cpu", "lowering/gpu", ROOMS[0]], [C_LIBRARY, MLIR_C, r"Python\.h"]),
    "tools": (["dialect", "include/tilewright"], [C_LIBRARY, MLIR_C, MLIR_CPP]),
}
SEARCH = ["", "include", "dialect"]
GENERATED = re.compile(r".*\.(h|cpp)\.inc$")  # by tablegen, into the build tree
TABLE = re.compile(r"\w+\.inc$")  # rows that tools/twgen.py writes there
INCLUDE = re.compile(r'^\s*#\s*include\s+(<([^>]+)>|"([^"]+)")', re.MULTILINE)


def layer_of(path: str) -> str | None:
    """The layer of a file; `lowering-shared` are the files that stand directly in lowering/."""
    matches = [name for name in LAYERS if path.startswith(name + "/")]
    if matches:
        return max(matches, key=len)
    return "lowering-shared" if path.startswith("lowering/") else None


def resolve(header: str, includer: Path) -> str | None:
    for folder in [includer.parent, *(ROOT / part for part in SEARCH)]:
        candidate = (folder / header).resolve()
        if candidate.is_file() and candidate.is_relative_to(ROOT):
            return str(candidate.relative_to(ROOT))
    return None


def problems(path: str) -> list[str]:
    layer = layer_of(path)
    if layer is None:
        return []
    allowed_layers, allowed_headers = LAYERS[layer]
    found = []
    text = (ROOT / path).read_text()
    for match in INCLUDE.finditer(text):
        header = match.group(2) or match.group(3)
        where = f"{path}:{text.count(chr(10), 0, match.start(1)) + 1}"
        own = resolve(header, ROOT / path)
        if own is not None:
            target = None if own.endswith(".def") else layer_of(own)
            if target is not None and target != layer and target not in allowed_layers:
                found.append(f"{where}: {layer} must not include {target} ({own})")
        elif GENERATED.match(header):
            if layer not in ("dialect", "tools"):
                found.append(f"{where}: {layer} must not include generated C++ ({header})")
        elif TABLE.match(header):
            continue
        elif not any(re.fullmatch(pattern, header) for pattern in allowed_headers):
            found.append(f"{where}: {layer} must not include <{header}>")
        elif re.fullmatch(MLIR_CPP, header) and not path.endswith((".cpp", "dialect/Tile.h")):
            found.append(f"{where}: C++ headers of MLIR stay in .cpp files (<{header}>)")
    return found


# --- Circles -----------------------------------------------------------------------------------------


def unit_of(path: str) -> str:
    """What counts as one file: a .c and its header, wherever in the same folder they stand."""
    return str(Path(path).with_suffix(""))


def dependencies(files: list[str]) -> dict[str, set[str]]:
    """Of each unit, those whose headers it includes."""
    graph: dict[str, set[str]] = {}
    for path in files:
        mine = graph.setdefault(unit_of(path), set())
        for match in INCLUDE.finditer((ROOT / path).read_text()):
            own = resolve(match.group(2) or match.group(3), ROOT / path)
            if own is not None and not own.endswith(".def") and unit_of(own) != unit_of(path):
                mine.add(unit_of(own))
    return graph


def circle_through(start: str, graph: dict[str, set[str]]) -> list[str]:
    """The shortest way from a unit back to it; empty if there is none."""
    came: dict[str, str] = {}
    reached = [start]
    for unit in reached:
        for other in sorted(graph.get(unit, ())):
            if other == start:
                way = [unit]
                while way[-1] != start:
                    way.append(came[way[-1]])
                return way[::-1]
            if other not in came:
                came[other] = unit
                reached.append(other)
    return []


def circles(files: list[str]) -> list[str]:
    """Each told once, at the first of its units."""
    graph = dependencies(files)
    found = {frozenset(way): way for unit in sorted(graph) if (way := circle_through(unit, graph))}
    return [" -> ".join([*way, way[0]]) + ": a circle of files" for way in found.values()]


def main() -> int:
    command = ["git", "ls-files", "-co", "--exclude-standard", "*.c", "*.h", "*.cpp"]
    files = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    found = [problem for path in files if (ROOT / path).exists() for problem in problems(path)]
    found += circles([path for path in files if (ROOT / path).exists()])
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"check_layers: {len(files)} files, {len(found)} problems")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
