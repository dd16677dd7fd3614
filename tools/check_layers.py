"""The include direction: a file may include its own layer and the layers listed for it, nothing above.

    base  <-  runtime
          <-  lowering/layout  <-  dialect  <-  lowering/{common,gpu,cpu}  <-  lowering  <-  python/ext

The rooms of lowering/gpu are layers, too; those in braces do not see each other, nor do the generations of isa, which
only isa itself includes:

    machine  <-  facts  <-  emit  <-  isa  <-  {grid,softmax,layout,memory,schedule,roles,emit/rules}  <-  lowering/gpu

No file includes itself by way of others. No file of lowering names an instruction of one generation, a generation, the
copy engine or clusters, in code or comments, but in the rooms whose subject these are: others ask isa and machine.

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
GENERATIONS = [f"lowering/gpu/isa/{path.name}" for path in sorted((ROOT / "lowering/gpu/isa").glob("sm*"))]
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
    **{room: ([*COMPILER, *ROOMS], [C_LIBRARY, MLIR_C]) for room in PASSES},
    "lowering/gpu": ([*COMPILER, *ROOMS, *PASSES], [C_LIBRARY, MLIR_C]),
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


# --- Hardware by name ---------------------------------------------------------------------------------

# what is named -> (how, the rooms of lowering/gpu that may)
HARDWARE = {
    "an instruction of one generation": (r"wgmma|tcgen05", ["isa", "machine"]),
    "a generation": (r"sm_?\d{2,3}|hopper|blackwell|ampere", ["isa", "machine"]),
    "the copy engine": (r"(?<![a-z])tma(?![a-z])", ["isa", "machine", "memory", "roles"]),
    "clusters": (r"cluster", ["isa", "machine", "grid", "memory", "roles"]),
}
# file -> (what it may name nevertheless, why)
NAMED = {
    "lowering/passes.def": ("the copy engine", "a row names the feature that its pass needs"),
    "lowering/gpu/to_nvvm.c": ("clusters", "it writes the attribute nvvm.cluster_dim of a function"),
}
# Names that others have given: files that passes mention, and fields of the launch record.
GIVEN = re.compile(r"cluster_(rows|multicast)\b|tw_launch_\w*cluster\w*")


def hardware_named(path: str) -> list[str]:
    """Where a file of lowering names what is not its subject."""
    found = []
    for what, (words, rooms) in HARDWARE.items():
        at_home = path.startswith(tuple(f"lowering/gpu/{room}/" for room in rooms))
        if at_home or not path.startswith("lowering/") or NAMED.get(path, ("",))[0] == what:
            continue
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
            if match := re.search(words, GIVEN.sub("", line), re.IGNORECASE):
                found.append(f"{path}:{number}: {match[0]}: names {what}, which isa and machine are asked for")
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
    command = ["git", "ls-files", "-co", "--exclude-standard", "*.c", "*.h", "*.cpp", "*.def"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    present = [path for path in listed if (ROOT / path).exists()]
    files = [path for path in present if not path.endswith(".def")]
    found = [problem for path in files for problem in problems(path)]
    found += [problem for path in present for problem in hardware_named(path)]
    found += circles(files)
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"check_layers: {len(files)} files, {len(found)} problems")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
