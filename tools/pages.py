"""Pages that a tool makes: written, or with `check` on the command line compared with the file."""

from __future__ import annotations

import sys
from pathlib import Path


def write_or_check(page: Path, text: str, source: str) -> int:
    """The exit status; `source` says what the page is made of, and by which command."""
    if "check" not in sys.argv:
        page.write_text(text)
    elif not page.exists() or page.read_text() != text:
        print(f"docs/{page.name} is not {source}", file=sys.stderr)
        return 1
    return 0
