"""Threads that begin together, for the tests of what they share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

THREADS = 8


def at_once(work: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    """work(i) in thread i, all begun together; what they return, or the first error."""
    barrier, found, errors = threading.Barrier(threads), [None] * threads, []

    def run(i: int) -> None:
        try:
            barrier.wait(60)
            found[i] = work(i)
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=run, args=(i,)) for i in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]
    return found
