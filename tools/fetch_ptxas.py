"""Unpack ptxas of each line of tools/ptxas.txt into FOLDER/VERSION, from the wheels on PyPI. What is there stays.

usage: fetch_ptxas.py FOLDER
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

LIST = Path(__file__).parent / "ptxas.txt"


def fetch(package: str, version: str, to: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--dest", folder]
        subprocess.run([sys.executable, "-m", "pip", "download", *options, f"{package}=={version}"], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (n for n in archive.namelist() if n.endswith("/bin/ptxas"))
            to.mkdir(parents=True, exist_ok=True)
            part = to / "ptxas.part"
            part.write_bytes(archive.read(name))
            part.chmod(0o755)
            part.rename(to / "ptxas")


def main() -> None:
    folder = Path(sys.argv[1])
    rows = (line.split() for line in LIST.read_text().splitlines() if line and not line.startswith("#"))
    for version, package in rows:
        if not (folder / version / "ptxas").exists():
            print(f"== ptxas {version}", file=sys.stderr)
            fetch(package, version, folder / version)


if __name__ == "__main__":
    main()
