"""What mkdocs asks while it builds the site (`make docs`): marks of code blocks are for tests, not for readers."""

import re
from typing import Any

from mkdocs.exceptions import PluginError

MARK = re.compile(r"^(```\w+) (?:sketch|gpu)$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """```python sketch becomes ```python: the second word tells test_docs.py not to run the block."""
    return MARK.sub(r"\1", markdown)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    if "```" in html:
        raise PluginError(f"{page.file.src_path}: a block of code came out as text; what stands behind its ``` ?")
    return html
