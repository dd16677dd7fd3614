"""What ct.print writes on the CPU (on a GPU the driver writes it, in its own time)."""

from __future__ import annotations

import dataclasses
import enum
import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

from tilewright import tile as ct


@ct.kernel
def show(X, n):
    ct.print("x =", ct.load(X, (0,), (4,)), "n =", n)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int64])
def test_integers_keep_their_sign(dtype: type, capfd: pytest.CaptureFixture[str]) -> None:
    info = np.iinfo(dtype)
    x = np.array([info.min, 1, info.max, info.max // 2 + 1], dtype)
    ct.launch(None, (1,), show, (x, dtype(info.max)))
    assert capfd.readouterr().out == f"x = [{', '.join(str(v) for v in x)}] n = {info.max}\n"


OF_FLOATS = (
    "%f|%5.2f|%+.1e|%G|%#g|%-9.3f|%09.3f",
    "%a|%A|%12a|%-12a|%012a|%+a",
    "100%% é\t{}{%g}",
)
OF_INTEGERS = (
    "%d|%i|%5d|%-5d|%05d|%+d|% d|%+.3d",
    "%u|%x|%X|%08x|%#x|%o|%#o",  # the bits
    "100%% é\t{}{%d}",
)
_INTEGERS, _FLOATS = (np.int8, np.int32, np.int64, np.uint8, np.uint64), (np.float16, np.float32, np.float64)


@ct.kernel
def formatted(X, FORMAT: ct.Constant, COUNT: ct.Constant):
    x = ct.load(X, (0,), (4,))
    ct.printf(FORMAT, *((x,) * COUNT))
    ct.printf(FORMAT, *((ct.sum(x),) * COUNT))


@ct.kernel
def f_strings(X):
    x = ct.load(X, (0,), (4,)).astype(ct.float32)
    s = ct.max(x)
    print(f"{s} {s:.2f} {s:8.3f}|{s:<8.3f}|{x:+.1e} {x * 1e20} {x / 3} {-s / 0}")
    print(f"{ct.bid(0):5} {ct.bid(0):<5d}| {ct.bid(0):05d} {s * 4e15} {s * 1e16} {s * 1e-5}", (1, s, "a"), (x > 1,))


def both(kernel, x, *args, capfd) -> list[str]:
    """What the reference execution and compiled code print."""
    kernel.interpret(1, (x, *args))
    expected = capfd.readouterr().out
    ct.launch(None, 1, kernel, (x, *args))
    return [capfd.readouterr().out, expected]


@pytest.mark.parametrize(
    ("dtype", "format"), [*itertools.product(_INTEGERS, OF_INTEGERS), *itertools.product(_FLOATS, OF_FLOATS)]
)
def test_conversions_of_c(dtype: type, format: str, capfd: pytest.CaptureFixture[str]) -> None:
    values = [0, 255, 3, 7] if np.dtype(dtype).kind == "u" else [0.0, -1.5, 100.25, 7]
    found, expected = both(
        formatted, np.array(values).astype(dtype), format, format.replace("%%", "").count("%"), capfd=capfd
    )
    assert found == expected and found


@ct.kernel
def not_numbers(X):
    x = ct.load(X, (0,), (4,))
    print(x, ct.max(x.astype(ct.float32), propagate_nan=True), f"{-x}")
    ct.printf("%f %g %e %a\n", x, x, x, x)


@pytest.mark.parametrize("dtype", _FLOATS)
def test_what_is_no_number_says_so(dtype: type, capfd: pytest.CaptureFixture[str]) -> None:
    found, expected = both(not_numbers, np.array([np.nan, -np.nan, np.inf, -np.inf], dtype), capfd=capfd)
    assert found == expected
    assert found.startswith("[nan, nan, inf, -inf] nan [nan, nan, -inf, inf]\n")


@ct.kernel
def shown_by(X, FORMAT: ct.Constant):
    ct.printf(FORMAT, ct.load(X, (0,), (4,)))


@pytest.mark.parametrize(
    ("format", "dtype", "message"),
    [
        ("%d", np.float32, "%d shows integers, found float32; write %f or %g"),
        ("%x", np.float64, "%x shows integers, found float64; write %f or %g"),
        ("%f", np.int32, "%f shows floats, found int32; write %d or %x"),
        ("%g", np.bool_, "%g shows floats, found bool_; write %d or %x"),
        ("%s", np.int32, "%s shows text, found int32; write %d or %x"),
    ],
)
def test_nothing_is_converted_by_a_letter_of_c(format: str, dtype: type, message: str) -> None:
    x = np.ones(4, dtype)
    for run in (lambda: shown_by.interpret(1, (x, format)), lambda: ct.launch(None, 1, shown_by, (x, format))):
        with pytest.raises(ct.TileTypeError, match=message):
            run()


@ct.kernel
def bools(X):
    x = ct.load(X, (0,), (4,))
    print(x > 2, ct.max(x) > 2, (x > 2, True), f"{x > 2} {ct.max(x) > 9}", str(ct.max(x) > 2))
    ct.printf("%d %2d %s\n", x > 2, ct.max(x) > 2, "text")


def test_bools_of_tiles_are_digits_and_others_pythons(capfd: pytest.CaptureFixture[str]) -> None:
    found, expected = both(bools, np.array([1, 2, 3, 4], np.int32), capfd=capfd)
    assert found == expected == "[0, 0, 1, 1] True ([0, 0, 1, 1], True) [0, 0, 1, 1] False True\n[0, 0, 1, 1]  1 text\n"


@ct.kernel
def percent(X):
    # ruff: noqa: UP031
    print("%s %.2f %5d|%%" % ("a", 1.5, 3), "%.1f" % 2.25, "{:>{}}".format(3, 5), "a".ljust(4) + "|")


def test_constants_are_formatted_by_python(capfd: pytest.CaptureFixture[str]) -> None:
    found, expected = both(percent, np.zeros(1, np.int32), capfd=capfd)
    assert found == expected == "a 1.50     3|% 2.2     3 a   |\n"


def test_conversions_are_those_of_c(capfd: pytest.CaptureFixture[str]) -> None:
    ct.launch(None, 1, formatted, (np.array([255, 0, -1, 8], np.int32), "%x %5d|%#o", 3))
    assert (
        capfd.readouterr().out
        == "[ff, 0, ffffffff, 8] [  255,     0,    -1,     8]|[0377, 0, 037777777777, 010]106   262|0406"
    )


def test_formats_of_python(capfd: pytest.CaptureFixture[str]) -> None:
    found, expected = both(f_strings, np.array([1, 2.5, -3, 4], np.float32), capfd=capfd)
    assert found == expected
    assert found.startswith("4.0 4.00    4.000|4.000   |[+1.0e+00, +2.5e+00, -3.0e+00, +4.0e+00] [1e+20, 2.5e+20, ")


@ct.kernel
def bases(X):
    x = ct.load(X, (0,), (4,))
    print(f"{x:x} {x:08X}|{ct.max(x):<12o}|{ct.max(x):12x}|{ct.bitcast(ct.int32(-2), ct.uint32):x}")


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_other_bases_of_python(dtype: type, capfd: pytest.CaptureFixture[str]) -> None:
    x = np.array([0, 9, 171, 255], dtype)
    x[3] = np.iinfo(dtype).max
    found, expected = both(bases, x, capfd=capfd)
    top = int(x[3])
    wanted = f"[0, 9, ab, {top:x}] [00000000, 00000009, 000000AB, {top:08X}]|{top:<12o}|{top:12x}|fffffffe\n"
    assert found == expected == wanted


@ct.kernel
def in_format(X, SPEC: ct.Constant):
    print(f"{ct.load(X, (0,), (1,)).item():{SPEC}}", end="")


def _shown(value: float, spec: str, capfd: pytest.CaptureFixture[str]) -> str:
    """What a kernel prints of a number under a format of Python, in both executions, or how it is refused."""
    dtype = np.float32 if isinstance(value, float) else np.int32 if value < 0 else np.uint32
    x, refused = np.array([value], dtype), []
    for run in (lambda: in_format.interpret(1, (x, spec)), lambda: ct.launch(None, 1, in_format, (x, spec))):
        try:
            run()
        except ct.TileValueError as error:
            refused.append(str(error).splitlines()[0])
    printed = capfd.readouterr().out
    text, again = refused or (printed[: len(printed) // 2], printed[len(printed) // 2 :])
    assert text == again
    return text


_PYTHON_FORMATS = [".1%", "%", "8.1%", "08.2%", "+.0%", " >8", " <6", "0=8", "=08", "#x", "#010x", "#o", "n", "#.0f"]


@pytest.mark.parametrize("spec", _PYTHON_FORMATS)
@pytest.mark.parametrize("value", [0.125, -2.5, 171, -9, 0])
def test_formats_are_those_of_python(value: float, spec: str, capfd: pytest.CaptureFixture[str]) -> None:
    found = _shown(value, spec, capfd)
    assert found == _by_python(value, spec) or found.startswith("the format")


def _by_python(value: float, spec: str) -> str:
    try:
        return format(value, spec)
    except ValueError:
        return "Python refuses it"


@pytest.mark.parametrize(
    ("value", "spec", "shown"),
    [
        (0.125, ".1%", "12.5%"),
        (171, "#x", "0xab"),
        (171, "#010x", "0x000000ab"),
        (-9, "0=8", "-0000009"),
        (3, "n", "3"),
    ],
)
def test_these_formats_are_taken(value: float, spec: str, shown: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert _shown(value, spec, capfd) == shown


@pytest.mark.parametrize(
    ("spec", "remedy"),
    [
        (",", 'C groups no digits; write f"{n // 1000},{n % 1000:03d}"'),
        ("_d", "C groups no digits"),
        ("b", "C prints no binary digits; write x"),
        ("c", "a character is a constant"),
        ("^8d", "C fills on one side"),
        ("*>8d", "C fills with spaces"),
        ("#8x", "C fills before 0x with no spaces: write 0"),
        ("+d", "of an integer without a sign expected"),
    ],
)
def test_formats_that_c_lacks_are_refused_by_name(spec: str, remedy: str, capfd: pytest.CaptureFixture[str]) -> None:
    found = _shown(171, spec, capfd)
    assert found.startswith(f"the format {spec!r} of a run-time value is not supported; {remedy}")


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_conversions_on_a_gpu(target: str) -> None:
    """The driver's vprintf gets them with the length of what is passed, and a line at once: other blocks print, too."""
    _, key = formatted.specialization((np.zeros(4, np.int32), "100%% of %+5d %#x", 2))
    module = formatted.capture(target, key)
    for stage in ("legal", "layout", "pipelined", "nvvm"):
        module.lower(stage)
    text = module.text()
    assert "100%% of [%+5lld, %+5lld, %+5lld, %+5lld] [%#llx, " in text and text.count("@vprintf") == 3


@dataclasses.dataclass(frozen=True)
class Plain:
    x: Any
    hidden: Any = dataclasses.field(repr=False)
    name: str


@dataclasses.dataclass(frozen=True)
class WithStr:
    x: Any

    def __str__(self) -> str:
        return f"<{self.x}>"


@dataclasses.dataclass(frozen=True)
class WithRepr:
    x: Any

    def __repr__(self) -> str:
        return f"R({self.x!r})"


class Color(enum.Enum):
    RED = 1


class Pair(NamedTuple):
    a: Any
    b: Any


@ct.kernel
def structures(X):
    b, x = ct.bid(0), ct.load(X, (0,), (4,))
    print(Plain(x, x, "n"), WithStr(x), (WithStr(x),), WithRepr(b), (WithRepr(b),))
    print((x,), {"a": b, "c": (b, 1)}, Pair(b, "q"), x.shape, X.shape, (X.dtype, None))
    print(f"{(b, x)} {x!s} {WithStr(b)!r} {Pair(b, 2)} {Color.RED!r} {Color.RED}", Color.RED)


@ct.kernel
def texts(X):
    b = ct.bid(0)
    text = f"b={b}"
    print(text + "; " + f"{text}|{b + 3:4d}", str(b) + "x", repr(b), format(b, "3d"))
    print((text, f"'{b}'", f"\"'{b}", f'"{b}', "\n{}%d"), f"{text} {(text,)}")


@ct.kernel
def long(X, SHAPE: ct.Constant):
    print("x =", ct.reshape(ct.load(X, (0,), (128,)), SHAPE))


@pytest.mark.parametrize("kernel", [structures, texts])
def test_text_is_that_of_python(kernel: Any, capfd: pytest.CaptureFixture[str]) -> None:
    found, expected = both(kernel, np.arange(4, dtype=np.int32), capfd=capfd)
    assert found == expected
    if kernel is structures:
        assert found.startswith("Plain(x=[0, 1, 2, 3], name='n') <[0, 1, 2, 3]> (WithStr(x=[0, 1, 2, 3]),) R(0) (R(0")


@pytest.mark.parametrize("shape", [(128,), (4, 32), (2, 8, 8), (64, 2), (1, 1, 128)])
def test_a_long_tile_takes_lines(shape: tuple[int, ...], capfd: pytest.CaptureFixture[str]) -> None:
    found, expected = both(long, np.arange(128, dtype=np.int32), shape, capfd=capfd)
    assert found == expected and len(found.splitlines()) == 128 // min(16, shape[-1])


def test_long_tiles_on_a_gpu() -> None:
    _, key = long.specialization((np.zeros(128, np.int32), (8, 16)))
    module = long.capture("sm_90a", key)
    for stage in ("legal", "layout", "pipelined", "nvvm"):
        module.lower(stage)
    assert '",\\0A\\00"' in module.text() and '", \\00"' in module.text()


def test_what_has_no_text_is_refused() -> None:
    @dataclasses.dataclass(frozen=True)
    class Formats:
        x: Any

        def __format__(self, spec: str) -> str:
            return "?"

    @ct.kernel
    def formats(X):
        print(f"{Formats(ct.bid(0))}")

    @ct.kernel
    def array(X):
        print(f"{X}")

    @ct.kernel
    def padded(X):
        print(f"{X.shape:10}")

    for kernel, problem in ((formats, "its own __format__"), (array, "has no text"), (padded, "for a number")):
        with pytest.raises(ct.TileTypeError, match=problem):
            ct.launch(None, 1, kernel, (np.zeros(4, np.int32),))
