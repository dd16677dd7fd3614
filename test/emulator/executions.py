"""On what a test runs that holds on each execution: --backend says it."""

import pytest

from tilewright import arrays

_ASKED = {"cuda": ["cuda"], "all": ["cpu", "emulator", "cuda"]}


def on_each(metafunc, fixture, also=None):
    """Have the tests that take a fixture run on "cpu", "emulator" and "cuda", as far as --backend asks for them; `also`
    has executions that go with one of these."""
    if fixture in metafunc.fixturenames:
        names = _ASKED.get(metafunc.config.getoption("--backend"), ["cpu", "emulator"])
        more = [name for asked in names for name in (asked, *(also or {}).get(asked, ()))]
        metafunc.parametrize(fixture, more, indirect=True)


def needs_gpu(name):
    if name == "cuda" and not arrays._has_gpu():
        pytest.skip("--backend=cuda runs on a GPU, and there is none")
