"""The wheel and its shared object: one export, no unknown needs, glibc at most 2.34, less than 30 MB.

usage: check_so.py WHEEL
"""

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

MAX_WHEEL_BYTES = 30_000_000
MAX_GLIBC = (2, 34)
KNOWN_NEEDS = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}


def sh(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def problems(wheel: Path) -> list[str]:
    found = []
    if wheel.stat().st_size >= MAX_WHEEL_BYTES:
        found.append(f"the wheel has {wheel.stat().st_size} bytes, {MAX_WHEEL_BYTES} are allowed")
    if "-abi3-" not in wheel.name:
        found.append(f"{wheel.name} is not an abi3 wheel")
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.endswith(".so")]
            if names != ["tilewright/_core.abi3.so"]:
                return [*found, f"expected one shared object, found {names}"]
            shared_object = archive.extract(names[0], folder)
        exports = [line.split()[-1] for line in sh("nm", "-D", "--defined-only", shared_object).splitlines()]
        if exports != ["PyInit__core"]:
            found.append(f"exports {exports[:5]}, expected PyInit__core alone")
        needs = set(re.findall(r"NEEDED.*\[(.*?)\]", sh("readelf", "-d", shared_object)))
        if needs - KNOWN_NEEDS:
            found.append(f"needs {sorted(needs - KNOWN_NEEDS)}")
        # Stands for `-z defs`, which the undefined Py* symbols forbid.
        undefined = sh("nm", "-D", "--undefined-only", shared_object).splitlines()
        odd = [line for line in undefined if "@" not in line and " w " not in line and not re.search(r" U _?Py", line)]
        if odd:
            found.append(f"undefined symbols: {odd[:5]}")
        versions = re.findall(r"GLIBC_([0-9.]+)", sh("objdump", "-T", shared_object))
        newest = max(tuple(int(part) for part in text.split(".")) for text in versions)
        if newest > MAX_GLIBC:
            found.append(f"needs glibc {newest}, {MAX_GLIBC} is allowed")
    return found


def main() -> int:
    wheel = Path(sys.argv[1])
    found = problems(wheel)
    for problem in found:
        print(f"check_so: {problem}", file=sys.stderr)
    if not found:
        print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB, exports PyInit__core only, glibc <= 2.34")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
