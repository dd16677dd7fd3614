"""Python's garbage collector while programs are captured.

A capture makes some ten thousand objects, few of which are garbage. The collector would look at them again and again,
and now and then at all objects of the process: where large packages are loaded, that takes longer than the capture.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

_lock = threading.Lock()
_pauses = 0  # of threads that capture now
_is_wanted = False  # whether it ran before the first of them


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """No collection starts by itself meanwhile, in any thread; it goes on when the last thread is done."""
    global _pauses, _is_wanted
    with _lock:
        if _pauses == 0 and (_is_wanted := gc.isenabled()):
            gc.disable()
        _pauses += 1
    try:
        yield
    finally:
        with _lock:
            _pauses -= 1
            if _pauses == 0 and _is_wanted:
                gc.enable()
