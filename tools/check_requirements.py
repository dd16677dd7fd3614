"""Exit 0 when every line of tools/requirements.txt is satisfied by this interpreter, 1 otherwise (no network)."""

import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def satisfied(line: str) -> bool:
    name, _, least = line.partition(">=")
    try:
        return numbers(version(name)) >= numbers(least)
    except PackageNotFoundError:
        return False


lines = (Path(__file__).parent / "requirements.txt").read_text().splitlines()
sys.exit(not all(satisfied(line) for line in lines if line and not line.startswith("#")))
