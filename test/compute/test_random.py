"""Random calls of each algorithm (random_calls.py)."""

import random

import pytest
from random_calls import ALGORITHMS, Draw

EACH = 8  # of an algorithm


@pytest.mark.parametrize("name", ALGORITHMS)
def test_random_calls(device, name):
    if device.name == "emulator":
        Draw(random.Random(name), device, most=150).run(name)
        return
    for seed in range(EACH):
        Draw(random.Random(f"{name} {seed}"), device).run(name)
