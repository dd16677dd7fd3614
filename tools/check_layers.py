"""The include direction: a file may include its own layer and the layers listed for it, nothing above.

    base  <-  runtime
          <-  lowering/layout  <-  dialect  <-  lowering/{common,gpu,cpu}  <-  lowering  <-  python/ext

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
LAYERS: dict[str, tuple[list[str], list[str]]] = {
    "base": (["include/tilewright"], [C_LIBRARY]),
    "include/tilewright": (["base"], [C_LIBRARY, MLIR_C]),
    "lowering/layout": (PUBLIC, [C_LIBRARY]),
    "runtime": (PUBLIC, [C_LIBRARY]),
    "dialect": ([*PUBLIC, "lowering/layout", "lowering-shared"], [C_LIBRARY, MLIR_C, MLIR_CPP]),
    "lowering/common": (COMPILER, [C_LIBRARY, MLIR_C]),
    "lowering/gpu": (COMPILER, [C_LIBRARY, MLIR_C]),
    "lowering/cpu": (COMPILER, [C_LIBRARY, MLIR_C]),
    "lowering-shared": ([*COMPILER, "lowering/gpu", "lowering/cpu"], [C_LIBRARY, MLIR_C]),
    "python/ext": ([*COMPILER, "runtime", "lowering/cpu", "lowering/gpu"], [C_LIBRARY, MLIR_C, r"Python\.h"]),
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


def main() -> int:
    command = ["git", "ls-files", "-co", "--exclude-standard", "*.c", "*.h", "*.cpp"]
    files = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    found = [problem for path in files if (ROOT / path).exists() for problem in problems(path)]
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"check_layers: {len(files)} files, {len(found)} problems")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
