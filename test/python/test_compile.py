"""Compilation from Python: variants, what makes a new one, the disk cache, dumps, threads, hints."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import _core, cli, compile, plans
from tilewright import tile as ct
from tilewright.errors import Place, TileTypeError
from tilewright.times import Times

FACTOR = 2.0


@ct.kernel
def scale(X, Z, T: ct.Constant[int]):
    ct.store(Z, ct.bid(0), ct.load(X, ct.bid(0), T) * FACTOR)


def launch(kernel: Any, x: np.ndarray, *more: Any) -> np.ndarray:
    z = np.zeros_like(x)
    ct.launch(None, -(-x.size // 16), kernel, (x, z, 16, *more))
    return z


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


# ---------------------------------------------------------------------------------------------
# Variants


def test_one_variant_for_equal_facts() -> None:
    @ct.kernel
    def kernel(X, Z, T: ct.Constant):
        ct.store(Z, ct.bid(0), ct.load(X, ct.bid(0), T) + 1)

    for count in (16, 32, 160):
        x = np.arange(count, dtype=np.float32)
        assert np.array_equal(launch(kernel, x), x + 1)
    assert len(kernel.variants()) == 1
    launch(kernel, np.arange(17, dtype=np.float32))
    assert len(kernel.variants()) == 2  # the extent is no multiple of 16
    launch(kernel, np.arange(16, dtype=np.int32))
    assert len(kernel.variants()) == 3
    target, key, variant = kernel.variants()[0]
    assert target == "cpu" and variant.written == 0b010
    assert key[2] == ("const", 16)


def test_constants_are_told_apart_by_type() -> None:
    @ct.kernel
    def kernel(X, Z, T: ct.Constant, value: ct.Constant):
        ct.static_assert(value.dtype == (ct.float32 if isinstance(value, float) else ct.int32))
        ct.store(Z, ct.bid(0), ct.load(X, ct.bid(0), T) * value)

    x = np.arange(16, dtype=np.float32)
    for value in (1, 1.0, 2):
        assert np.array_equal(launch(kernel, x, value), x * value)
    assert len(kernel.variants()) == 3


def test_old_variants_are_dropped_and_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_VARIANTS", "2")

    @ct.kernel
    def kernel(X, Z, T: ct.Constant, value: ct.Constant):
        ct.store(Z, ct.bid(0), ct.load(X, ct.bid(0), T) * value)

    x = np.arange(16, dtype=np.float32)
    for value in (1, 2, 3, 1, 3, 2):
        assert np.array_equal(launch(kernel, x, value), x * value)
        assert len(kernel.variants()) <= 2
    monkeypatch.setenv("TILEWRIGHT_VARIANTS", "many")
    with pytest.raises(ct.TileValueError, match="TILEWRIGHT_VARIANTS"):
        ct.kernel(kernel.function)


def test_a_global_that_changes() -> None:
    global FACTOR
    x = np.arange(16, dtype=np.float32)
    try:
        assert np.array_equal(launch(scale, x), x * 2)
        FACTOR = 3.0
        assert np.array_equal(launch(scale, x), x * 3)
        assert np.array_equal(launch(scale, x), x * 3)
    finally:
        FACTOR = 2.0
    assert np.array_equal(launch(scale, x), x * 2)
    assert [name for _, name, _ in scale.watched] == ["FACTOR"]


def test_a_closure_that_changes() -> None:
    add = 1.0

    def helper(x):
        return x + add

    @ct.kernel
    def kernel(X, Z, T: ct.Constant):
        ct.store(Z, ct.bid(0), helper(ct.load(X, ct.bid(0), T)))

    x = np.arange(16, dtype=np.float32)
    assert np.array_equal(launch(kernel, x), x + 1)
    add = 5.0
    assert np.array_equal(launch(kernel, x), x + 5)

    def helper(x):  # noqa: F811
        return x * add

    assert np.array_equal(launch(kernel, x), x * 5)


class Settings:
    factor = 2.0


def defaulted(x, factor=2.0):
    return x * factor


def replacement(x, factor=2.0):
    return x * factor * factor


SETTINGS, ROW, NESTED, TABLE = Settings(), [2.0], (1, [2.0]), {"factor": 2.0}
SETTINGS.inner = Settings()

READERS = {
    "attribute": (lambda x: x * SETTINGS.inner.factor, lambda: setattr(SETTINGS.inner, "factor", 5.0)),
    "class": (lambda x: x * Settings.factor, lambda: setattr(Settings, "factor", 5.0)),
    "element": (lambda x: x * ROW[0], lambda: ROW.__setitem__(0, 5.0)),
    "type of an element": (
        lambda x: x * (3 if isinstance(ROW[0], int) else 2),
        lambda: ROW.__setitem__(0, int(ROW[0])),
    ),
    "length": (lambda x: x * len(ROW), lambda: ROW.append(0)),
    "list in a tuple": (lambda x: x * NESTED[1][0], lambda: NESTED[1].__setitem__(0, 5.0)),
    "entry": (lambda x: x * TABLE["factor"], lambda: TABLE.__setitem__("factor", 5.0)),
    "keys": (lambda x: x * ("more" in TABLE), lambda: TABLE.__setitem__("more", 1)),
    "defaults": (lambda x: defaulted(x), lambda: setattr(defaulted, "__defaults__", (5.0,))),
    "code": (lambda x: defaulted(x), lambda: setattr(defaulted, "__code__", replacement.__code__)),
}


@pytest.mark.parametrize("name", READERS)
def test_a_launch_sees_what_interpret_sees(name: str) -> None:
    """A constant from outside that is changed in its place."""
    read, change = READERS[name]

    @ct.kernel
    def kernel(X, Z, T: ct.Constant):
        ct.store(Z, ct.bid(0), read(ct.load(X, ct.bid(0), T)))

    x, z = np.arange(1, 17, dtype=np.float32), np.zeros(16, np.float32)
    before = launch(kernel, x)
    assert np.array_equal(before, launch(kernel, x)) and len(kernel.variants()) == 1
    change()
    kernel.interpret(1, (x, z, 16))
    after = launch(kernel, x)
    assert np.array_equal(after, z) and not np.array_equal(after, before)


def test_what_did_not_change_is_not_compiled_again() -> None:
    class Fresh:
        """Gives its attributes anew each time."""

        @property
        def factor(self) -> float:
            return float("2.5")

    fresh, row = Fresh(), [1.0, 2.0]

    @ct.kernel
    def kernel(X, Z, T: ct.Constant):
        ct.store(Z, ct.bid(0), ct.load(X, ct.bid(0), T) * fresh.factor * row[1])

    x = np.arange(16, dtype=np.float32)
    launch(kernel, x)
    first = kernel.variants()[0][2]
    row[1] = float("2.0")
    launch(kernel, x)
    assert kernel.variants()[0][2] is first


def test_a_failed_compilation_is_repeated() -> None:
    @ct.kernel
    def kernel(X, Z, T: ct.Constant):
        ct.static_assert(T == 8)

    x = np.zeros(16, np.float32)
    for _ in range(2):
        with pytest.raises(ct.TileValueError, match="static assertion failed"):
            launch(kernel, x)
    assert kernel.variants() == []


def test_threads_that_launch_at_once() -> None:
    @ct.kernel
    def kernel(X, Z, T: ct.Constant, add: ct.Constant):
        x = ct.load(X, ct.bid(0), T)
        for i in range(5):
            x = x + add * i
        ct.store(Z, ct.bid(0), x)

    x = np.arange(64, dtype=np.float32)
    results: dict[int, np.ndarray] = {}
    barrier = threading.Barrier(6)

    def work(i: int) -> None:
        barrier.wait()
        results[i] = launch(kernel, x, i % 3)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, z in results.items():
        assert np.array_equal(z, x + 10 * (i % 3))
    assert len(results) == 6 and len(kernel.variants()) == 3


def test_modules_that_follow_each_other_are_independent() -> None:
    target, key = scale.specialization((np.zeros(16, np.float32), np.zeros(16, np.float32), 16))
    kept, texts = [], set()
    for i in range(60):
        module = scale.capture(target, key)
        for stage in compile.CPU_STAGES[: i % 4]:
            module.lower(stage)
        if i % 4 == 3:
            texts.add(module.text())
        if i % 7 == 0:
            kept.append((module, module.text()))  # its context is of no use to another
    assert len(texts) == 1
    assert all(module.text() == text for module, text in kept)


# ---------------------------------------------------------------------------------------------
# The disk cache


def test_disk_cache(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, key = scale.specialization((np.zeros(16, np.float32), np.zeros(16, np.float32), 16))
    compile.compile_kernel(scale, target, key)
    entries = [p for p in cache_folder.rglob("*") if p.is_file()]
    assert entries, "nothing was stored"

    def fail(*_: Any) -> None:
        raise AssertionError("a hit needs no lowering")

    monkeypatch.setattr(compile, "build", fail)
    variant, _ = compile.compile_kernel(scale, target, key)
    assert variant.written == 0b010
    monkeypatch.setenv("TILEWRIGHT_NO_CACHE", "1")
    with pytest.raises(AssertionError):
        compile.compile_kernel(scale, target, key)


def test_disk_cache_that_is_damaged(cache_folder: Path) -> None:
    x = np.arange(16, dtype=np.float32)
    target, key = scale.specialization((x, x.copy(), 16))
    compile.compile_kernel(scale, target, key)
    for path in cache_folder.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:-7] + b"garbage")
    scale.clear_variants()
    assert np.array_equal(launch(scale, x), x * 2)


def test_images_from_a_file() -> None:
    for record in (_core.launch_record(num_threads=64), _core.launch_record(scratch_bytes=64)):
        image = compile.Image(b"code", record)
        assert compile.Image.unpack(image.pack()) == image
        for other in (b"", record[:-1], record + b"x", record[:4] + bytes(8) + record[12:]):
            assert compile.Image.unpack(compile.Image(b"code", other).pack()) is None
    for blob in (b"", b"abc", b"\xff\xff\xff\xffcode", b"\x02\0\0\0{", b"\x04\0\0\0\xff\xfe\0\0"):
        assert compile.Image.unpack(blob) is None


def test_disk_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "file"
    place.write_text("no folder")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(place / "below"))
    scale.clear_variants()
    x = np.arange(16, dtype=np.float32)
    assert np.array_equal(launch(scale, x), x * 2)


def test_the_cache_is_addressed_by_content(cache_folder: Path) -> None:
    """The same code under another name of a variable, or in another line, is the same entry."""

    def make(body: str) -> Any:
        path = cache_folder.parent / f"k{abs(hash(body))}.py"
        path.write_text(f"from tilewright import tile as ct\n\n@ct.kernel\n{body}")
        names: dict[str, Any] = {}
        exec(compile_source(path.read_text(), str(path)), names)
        return names["kernel"]

    first = make("def kernel(X):\n    x = ct.load(X, 0, 16)\n    ct.store(X, 0, x + 1)\n")
    second = make("def kernel(Y):\n    # a comment\n    y = ct.load(Y, 0, 16)\n    ct.store(Y, 0, y + 1)\n")
    third = make("def kernel(X):\n    x = ct.load(X, 0, 16)\n    ct.store(X, 0, x + 2)\n")
    x = np.zeros(16, np.float32)
    texts = [k.capture(*k.specialization((x,))).text() for k in (first, second, third)]
    assert texts[0] == texts[1] != texts[2]


def compile_source(text: str, path: str) -> Any:
    import builtins

    return builtins.compile(text, path, "exec")


# ---------------------------------------------------------------------------------------------
# Seeing inside


def test_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DUMP", str(tmp_path / "dump"))
    monkeypatch.setenv("TILEWRIGHT_NO_CACHE", "1")
    scale.clear_variants()
    launch(scale, np.zeros(16, np.float32))
    files = sorted((tmp_path / "dump").iterdir())
    stages = [f.name.split(".", 3)[3] for f in files]
    assert stages == ["0-tile.mlir", "1-legal.mlir", "2-vector.mlir", "3-llvm.mlir", "4-asm.s"]
    for file in files[:-1]:  # compilation goes on from any of them
        module = _core.parse(file.read_text())
        module.lower("llvm")
        assert module.emit(compile.EMIT_OBJECT)
    assert "test_compile.py" in files[0].read_text()


def test_dump_after_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pass has a file, in the order of the passes; compilation goes on from any of them to the same code."""
    monkeypatch.setenv("TILEWRIGHT_DUMP", str(tmp_path))
    monkeypatch.setenv("TILEWRIGHT_DUMP_AFTER", "all")
    key = cli.specialization(scale, ["X=f32[?]", "Z=f32[?]", "T=16"])
    times = Times("scale", "sm_90a")
    code = compile.build(scale.capture("sm_90a", key), "sm_90a", "scale", times, lambda ptx, _: ptx).code
    files = sorted(tmp_path.glob("*.mlir"), key=lambda file: int(file.name.split(".")[3].split("-")[0]))
    after = [file.name.split("-", 1)[1].removesuffix(".mlir") for file in files if "-tile-" in file.name]
    assert after == [name for _, name, _ in _core.passes("sm_90a")]
    for file in files[:: len(files) // 6]:
        module = _core.parse(file.read_text())
        module.lower("llvm")
        assert module.emit(compile.EMIT_ASSEMBLY) == code, file.name


def test_stages_that_nobody_looks_at_are_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each return to Python may wait for a thread that captures."""
    key = cli.specialization(scale, ["X=f32[?]", "Z=f32[?]", "T=16"])
    steps: list[str] = []
    step = plans.step
    monkeypatch.setattr(plans, "step", lambda module, stage: (steps.append(stage), step(module, stage))[1])

    def code() -> bytes:
        steps.clear()
        times = Times("scale", "sm_90a")
        return compile.build(scale.capture("sm_90a", key), "sm_90a", "scale", times, lambda ptx, _: ptx).code

    at_once = code()
    assert steps == ["llvm"]
    monkeypatch.setenv("TILEWRIGHT_TIMES", "1")
    assert code() == at_once and tuple(steps) == compile.GPU_STAGES


def test_text_of_a_module_that_is_verified() -> None:
    module = scale.capture("sm_90a", cli.specialization(scale, ["X=f32[?]", "Z=f32[?]", "T=16"]))
    assert module.text(False, True) == module.text() and module.text(True, True) == module.text(True)


def test_few_passes() -> None:
    """Of our own for a GPU; each general, or of a named group."""
    passes = _core.passes("sm_90a")
    assert len({name for _, name, _ in passes}) == len(passes) <= 30
    assert {group for _, _, group in passes} <= {"general", "online softmax", "long rows", "tiny rows"}


def test_dump_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TILEWRIGHT_DUMP", str(tmp_path / "file" / "below"))
    monkeypatch.setenv("TILEWRIGHT_NO_CACHE", "1")
    scale.clear_variants()
    x = np.arange(16, dtype=np.float32)
    with pytest.warns(UserWarning, match="TILEWRIGHT_DUMP"):
        assert np.array_equal(launch(scale, x), x * 2)


def test_dump_is_no_switch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match="1 is no folder; write TILEWRIGHT_DUMP=dump, or"):
        compile._Dump("1", "k").write("tile", "mlir", "text")
    compile._Dump("./1", "k").write("tile", "mlir", "text")
    assert [file.read_text() for file in tmp_path.glob("*/*")] == ["text"]


def test_a_dump_is_a_file_of_its_own(tmp_path: Path) -> None:
    """The user's alone; a link in its place is not followed."""
    dump, other = compile._Dump(str(tmp_path), "k"), tmp_path / "other"
    dump.write("tile", "mlir", "text")
    [file] = tmp_path.iterdir()
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("text", 0o600)
    (tmp_path / f"{dump.stem}.1-legal.mlir").symlink_to(other)
    with pytest.warns(UserWarning, match="TILEWRIGHT_DUMP"):
        dump.write("legal", "mlir", "text")
    assert not other.exists()


def test_a_failure_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the capture accepts and the lowering does not is a report with the module in a file."""

    def fail(*_: Any) -> None:
        raise ct.TileTypeError("ct.add: has no lowering", [Place("k.py", 3, 5)])

    monkeypatch.setattr(compile, "build", fail)
    monkeypatch.setenv("TILEWRIGHT_NO_CACHE", "1")
    scale.clear_variants()
    x = np.zeros(16, np.float32)
    with pytest.raises(ct.TileCompilationError, match=r"kernel scale does not compile for cpu: ct.add") as caught:
        launch(scale, x)
    path = str(caught.value.message).rsplit(" ", 1)[1]
    assert "tile.mul" in Path(path).read_text()
    Path(path).unlink()
    assert caught.value.where == Place("k.py", 3, 5)


def test_interpret_by_environment() -> None:
    script = (
        "import numpy as np\n"
        "from tilewright import tile as ct\n"
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_compile import scale\n"
        "x = np.arange(16.0, dtype='f4'); z = np.zeros_like(x)\n"
        "ct.launch(None, 1, scale, (x, z, 16))\n"
        "assert (z == 2 * x).all() and not scale.variants()\n"
    )
    environment = {**os.environ, "TILEWRIGHT_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


def test_hints_are_attributes_of_the_kernel() -> None:
    @ct.kernel(num_warps=8, num_stages=ct.ByTarget(sm_90=4, default=2), occupancy=None, fp8_fast_accum=True)
    def kernel(X):
        pass

    assert ct.kernel(lambda X: None, lazy_rescale=0).hints_for("cpu") == {"lazy_rescale": 0}
    key = (("array", "float32", 1, 16, (16,), ((1, 1),), True, True),)
    assert kernel.hints_for("sm_90a") == {"num_warps": 8, "num_stages": 4, "fp8_fast_accum": 1}
    assert kernel.hints_for("sm_80") == {"num_warps": 8, "num_stages": 2, "fp8_fast_accum": 1}
    text = kernel.capture("sm_90a", key).text()
    assert "tile.hints = {fp8_fast_accum = 1 : i32, num_stages = 4 : i32, num_warps = 8 : i32}" in text
    assert repr(kernel) == "<kernel kernel(X)>" and kernel.__name__ == "kernel"
    with pytest.raises(TileTypeError):
        kernel()


def test_kernels_that_move_registers_stay_ptx(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver's linker would ignore setmaxnreg."""
    monkeypatch.setattr(compile, "_device_of", lambda target: 0)
    monkeypatch.setattr(compile._core, "ptx_to_cubin", lambda ptx, device: (b"cubin", ""))
    assert compile.assemble(b"ret;", "sm_90a") == b"cubin"
    assert compile.assemble(b"setmaxnreg.inc.sync.aligned.u32 240; ret;", "sm_90a").endswith(b"ret;")


def test_the_cache_keeps_ptx_and_what_drivers_make_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile, "_device_of", lambda target: None)
    found = {compile._address("text", "sm_90a")}
    monkeypatch.setattr(compile, "_device_of", lambda target: 0)
    for version in (12040, 13000):
        monkeypatch.setattr(compile._core, "driver_version", lambda version=version: version)
        found.add(compile._address("text", "sm_90a"))
    assert len(found) == 3


# ---------------------------------------------------------------------------------------------
# Time


def test_import_needs_few_modules() -> None:
    """The package imports neither NumPy nor anything that is slow to load."""
    script = (
        "import sys; from tilewright import tile as ct; ct.kernel, ct.launch\n"
        "slow = {'numpy', 'ml_dtypes', 'torch', 'rich', 'matplotlib', 'asyncio', 'ctypes'}\n"
        "print(','.join(slow & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""


def test_a_hit_in_the_disk_cache_is_quick(cache_folder: Path) -> None:
    x = np.zeros(16, np.float32)
    target, key = scale.specialization((x, x.copy(), 16))
    compile.compile_kernel(scale, target, key)
    times = []
    for _ in range(10):
        start = time.thread_time()
        compile.compile_kernel(scale, target, key)
        times.append(time.thread_time() - start)
    assert min(times) < 0.015, "5 ms on an idle machine; this allows for a busy one"


@pytest.mark.parametrize("hints", [{}, {"occupancy": 2}])
def test_check_mode_for_a_gpu(hints: dict[str, int]) -> None:
    """Its twin of the kernel has the kernel's hints, and is checked without those that share registers out, too."""
    twin: Any = scale.replace_hints(**hints).checked()
    report, owners = np.zeros(16, np.int64), np.zeros(16, np.int32)
    _, key = twin.specialization((np.zeros(16, np.float32), np.zeros(16, np.float32), 16, report, owners))
    assert compile.compile_kernel(twin, "sm_90a", key)[0].written & 0b10
    plain = twin.without_hints(compile.SHARING_HINTS)
    assert plain.hints_for("sm_90a") == {"check": 1} if hints else plain is None
