"""Ctrl-C stops what runs: a launch on the CPU, the reference execution, a search. The next launch is right."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = '''
import os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever started the tests ignores
import numpy as np
from tilewright import tile as ct, tune

@ct.kernel
def endless(X, N):
    x = ct.load(X, 0, 64)
    n = N
    while n > 0:
        x = x + 1
        n = ct.where(ct.max(x) < 0, n - 1, n)
    ct.store(X, 0, x)

@ct.kernel
def long(X, N):
    x = ct.load(X, ct.bid(0), 64)
    for i in range(N):
        for j in range(N):
            x = x * 0.5 + 1
    ct.store(X, ct.bid(0), x)

@ct.kernel
def many(X, Y):
    i = ct.bid(0)
    ct.store(Y, (i % 16, 0), ct.load(X, (0, 0), (64, 64)) @ ct.load(X, (0, 0), (64, 64)))

@ct.kernel
def add(X, Y):
    i = ct.bid(0)
    ct.store(Y, i, ct.load(X, i, 64) + 1)

def right():
    for _ in range(20):
        x, y = np.arange(64 * 500, dtype=np.float32), np.zeros(64 * 500, np.float32)
        ct.launch(None, 500, add, (x, y))
        assert np.array_equal(y, x + 1)

def begin(run):
    """Interrupted half a second after it began."""
    right()
    print("begins", flush=True)
    try:
        run()
    except KeyboardInterrupt:
        right()
        print("interrupted", flush=True)
'''

RUNS = {
    "a loop without end": "ct.launch(None, 1, endless, (np.zeros(64, np.float32), 1))",
    "on every thread": "ct.launch(None, 8, long, (np.zeros(512, np.float32), 2**30))",
    "many blocks": "ct.launch(None, 2**31 - 1, many, tuple(np.ones((2, 1024, 64), np.float32)))",
    "interpret": "endless.interpret(1, (np.zeros(64, np.float32), 1))",
    "search": "tune.search(endless, (np.zeros(64, np.float32), 1), space={}, grid=1)",
}
THREADS = {"one": "1", "four": "4"}


def interrupted(body: str, threads: str, tmp_path: Path) -> None:
    """The program ends as it should behind its signal."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM + body)
    environment = os.environ | {"TILEWRIGHT_NUM_THREADS": threads}
    with subprocess.Popen(
        [sys.executable, file], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n", process.stdout.read()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        try:
            said, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert said == "interrupted\n" and process.returncode == 0, said


@pytest.mark.parametrize("threads", THREADS.values(), ids=THREADS)
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_it_stops(run: str, threads: str, tmp_path: Path) -> None:
    interrupted(f"begin(lambda: {run})\n", threads, tmp_path)


def test_a_handler_launches_and_the_launch_goes_on(tmp_path: Path) -> None:
    """A handler that does not raise stops nothing, and its own launches are right; the second signal is Ctrl-C."""
    body = """
def handler(*unused):
    right()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
signal.signal(signal.SIGINT, handler)
begin(lambda: ct.launch(None, 8, long, (np.zeros(512, np.float32), 2**30)))
"""
    interrupted(body, "4", tmp_path)
