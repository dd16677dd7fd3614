"""What stage 3 asks of the driver: launches on the stream and nothing else, so that a graph can hold it; threads."""

import dataclasses
import random
import threading

import numpy as np
import pytest
import standin
from every import EVERY, calls

from tilewright import arrays, compute

ON_THE_STAND_IN = """
for name, call in calls().items():
    made = call.make(**moved(call.made_of))
    values = moved({n: v for n, v in call.made_of.items() if n != "order"}) | call.more
    storage = [OnGpu(np.zeros(made(None, **values), np.uint8))] if made.has_storage else []
    made(*storage, **values, stream=0x5001)
    before, launches = asked(), fake.fake_calls(b"cuLaunchKernelEx")
    for _ in range(3):
        made(*storage, **values, stream=0x5001)
    assert asked() == before, (name, dict(zip(FORBIDDEN, zip(before, asked()))))
    assert fake.fake_calls(b"cuLaunchKernelEx") > launches, name
"""


@pytest.mark.spec("C-056")
def test_nothing_but_launches(tmp_path):
    standin.run(ON_THE_STAND_IN, tmp_path)


@pytest.mark.parametrize("name", EVERY)
def test_threads_share_an_object(name):
    """And what is compiled: eight threads want it at once, one of them makes it."""
    compute.clear_all_caches()
    call, made, wrong = calls()[name], [], []
    start = threading.Barrier(8)

    def work():
        try:
            start.wait()
            made.append(call.make(**call.made_of))
            for _ in range(5):
                call.check(made[-1])
        except BaseException as error:
            wrong.append(error)

    run_in_threads(lambda _: work())
    assert not wrong and len(made) == 8 and len(set(map(id, made))) == 1


def test_threads_call_different_objects():
    """Each in an order of its own, so that calls of one object and of others overlap, first ones and later ones."""
    compute.clear_all_caches()
    every, wrong = calls(), []
    made = {name: call.make(**call.made_of) for name, call in every.items()}

    def work(number):
        order = random.Random(number)
        try:
            for name in order.choices(EVERY, k=200):
                every[name].check(made[name])
        except BaseException as error:
            wrong.append(error)

    run_in_threads(work)
    assert not wrong


def run_in_threads(work):
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def larger(call, times):
    """The same call of so many times the items: segments and bounds of the search grow with them."""

    def grown(name, value):
        if name in ("start_offsets_in", "end_offsets_in"):
            return value * times
        if isinstance(value, np.ndarray):
            return np.sort(np.tile(value, times)) if name == "d_data" else np.tile(value, times)
        return value * times if name in ("num_items", "num_values", "num_samples") else value

    def all_of(values):
        return {name: grown(name, value) for name, value in values.items()}

    return dataclasses.replace(call, made_of=all_of(call.made_of), more=all_of(call.more))


@pytest.mark.parametrize("times", [1, 20000])
@pytest.mark.parametrize("name", EVERY)
def test_a_graph_holds_each(name, times, request):
    """What is captured once runs again and again, on what is in the arrays then, whatever the storage holds."""
    if request.config.getoption("--backend") not in ("cuda", "all") or not arrays._has_gpu():
        pytest.skip("--backend=cuda runs it on a GPU")
    torch = pytest.importorskip("torch")
    call = larger(calls()[name], times)
    inputs = [n for n in ("d_in", "d_in1", "d_in2", "d_in_keys", "d_samples", "d_values") if n in call.made_of]
    there = {n: torch.from_numpy(v.copy()).cuda() if isinstance(v, np.ndarray) else v for n, v in call.made_of.items()}
    values = {n: v for n, v in there.items() if n != "order"} | call.more
    made = call.make(**there)
    storage = []
    if made.has_storage:
        storage = [torch.full((made(None, **values),), 0xA5, dtype=torch.uint8, device="cuda")]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made(*storage, **values, stream=torch.cuda.current_stream().cuda_stream)
    on_cpu = call.make(**call.made_of)
    for turn in range(3):
        here = call.values()
        for n in inputs:
            here[n] = np.roll(here[n], turn)
            there[n].copy_(torch.from_numpy(here[n]))
        for n in call.expected:
            there[n].copy_(torch.from_numpy(here[n]))
        for room in storage:
            room.fill_(turn)
        graph.replay()
        torch.cuda.synchronize()
        on_cpu(*([np.zeros(on_cpu(None, **here), np.uint8)] if storage else []), **here)
        for n in call.expected:
            np.testing.assert_array_equal(there[n].cpu().numpy(), here[n], err_msg=f"{n}, turn {turn}")
