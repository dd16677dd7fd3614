"""_core.Builder: what it makes, and that no misuse of it does more than raise an exception."""

from __future__ import annotations

import gc
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tilewright import _core
from tilewright.errors import TileError


def simple(builder: Any, types: list[str]) -> Any:
    """Enters the body of a function with arguments of these types."""
    body = builder.block(types)
    builder.enter(body)
    return body


def finish(builder: Any, body: Any, types: list[str]) -> Any:
    builder.op("func.return", [], None, [])
    builder.leave()
    attributes = {
        "sym_name": "f",
        "function_type": builder.attribute(f"({', '.join(types)}) -> ()"),
    }
    builder.op("func.func", [], attributes, [], [body])
    return builder.finish()


def test_a_function() -> None:
    b = _core.Builder("file.py")
    types = ["tensor<4x8xf32>", "i32"]
    body = simple(b, types)
    x, i = body.args
    assert (x.type, x.shape, x.element) == ("tensor<4x8xf32>", (4, 8), "f32")
    assert (i.type, i.shape, i.element) == ("i32", None, "i32")
    b.at(3, 5, 3, 20)
    y = b.op("tile.mul", [x, i])
    assert y.type == "tensor<4x8xf32>" and repr(y) == "<Value tensor<4x8xf32>>"
    c = b.constant("tensor<4x8xf32>", 2.5)
    b.op("tile.print", [b.op("tile.add", [y, c])], {"format": "{}"}, [])
    b.set("tile.target", "cpu")
    module = finish(b, body, types)
    module.verify()
    text = module.text(True)
    assert 'tile.target = "cpu"' in text and '"file.py":3:5 to :20' in text


def test_attributes() -> None:
    b = _core.Builder("f")
    values = {
        "a.int": -3,
        "a.bool": True,
        "a.unit": None,
        "a.text": "x",
        "a.float": 0.5,
        "a.list": (1, 2),
        "a.any": b.attribute("[f32, 2 : i8]"),
    }
    for name, value in values.items():
        b.set(name, value)
    text = b.finish().text()
    for wanted in (
        "a.int = -3 : i32",
        "a.bool = true",
        "a.unit}",
        'a.text = "x"',
        "a.float = 5.000000e-01 : f64",
        "a.list = array<i32: 1, 2>",
        "a.any = [f32, 2 : i8]",
    ):
        assert wanted in text, text


@pytest.mark.parametrize(
    ("type_", "number", "text"),
    [
        ("i32", -1, "arith.constant -1 : i32"),
        ("i1", True, "arith.constant true"),
        ("ui64", 2**64 - 1, "tile.constant 18446744073709551615 : ui64"),
        ("i64", -(2**63), "arith.constant -9223372036854775808 : i64"),
        ("bf16", 1, "arith.constant 1.000000e+00 : bf16"),
        ("f8E4M3FN", 448.0, "arith.constant 4.480000e+02 : f8E4M3FN"),
        ("tensor<2x2xf16>", 1e9, "arith.constant dense<0x7C00> : tensor<2x2xf16>"),
        ("tensor<4xui8>", 255, "tile.constant dense<255> : tensor<4xui8>"),
    ],
)
def test_constants(type_: str, number: Any, text: str) -> None:
    b = _core.Builder("f")
    body = simple(b, [])
    assert b.constant(type_, number).type == type_
    assert text in finish(b, body, []).text()


def test_regions_and_blocks_entered_again() -> None:
    b = _core.Builder("f")
    body = simple(b, ["i1"])
    (condition,) = body.args
    then, orelse = b.block(), b.block()
    b.enter(then)
    one = b.constant("i32", 1)
    b.leave()
    b.enter(orelse)
    b.op("scf.yield", [b.constant("i32", 2)], None, [])
    b.leave()
    b.enter(then)
    b.op("scf.yield", [one], None, [])
    b.leave()
    result = b.op("scf.if", [condition], None, ["i32"], [then, orelse])
    assert result.type == "i32"
    finish(b, body, ["i1"]).verify()


def test_blocks_that_no_op_took() -> None:
    b = _core.Builder("f")
    body = simple(b, ["i32"])
    (i,) = body.args
    outer = b.block(["i32"])
    b.enter(outer)
    x = b.op("tile.add", [i, outer.args[0]])
    inner = b.block()
    b.enter(inner)
    b.op("tile.add", [x, i])
    b.leave()
    b.leave()
    finish(b, body, ["i32"]).verify()
    b = _core.Builder("f")
    simple(b, ["i32"])
    b.constant("i32", 1)
    del b  # with a block open
    gc.collect()


def test_locations_of_calls() -> None:
    b = _core.Builder("a.py")
    body = simple(b, [])
    b.at(1, 2, 1, 9)
    place = b.call()
    b.file("b.py")
    b.at(7, 3, 7, 4)
    b.constant("i32", 1)
    b.end_call(place)
    b.file("a.py")
    b.at(2, 2, 2, 3)
    b.constant("i32", 2)
    text = finish(b, body, []).text(True)
    assert "callsite(#loc" in text and '"b.py":7:3 to :4' in text and '"a.py":2:2 to :3' in text


def seen_from_outside(b: Any) -> None:
    block = b.block(["i32"])
    b.enter(block)
    (x,) = block.args
    b.leave()
    b.op("tile.neg", [x])


def of_another_builder(b: Any) -> None:
    other = _core.Builder("g")
    b.op("tile.neg", [other.constant("i32", 1)])


def one_block_twice(b: Any) -> None:
    block = b.block()
    b.enter(block)
    b.op("scf.yield", [], None, [])
    b.leave()
    b.op("scf.if", [b.constant("i1", 1)], None, [], [block, block])


def block_that_is_open(b: Any) -> None:
    block = b.block()
    b.enter(block)
    b.op("scf.if", [b.constant("i1", 1)], None, [], [block, None])


def entered_elsewhere(b: Any) -> None:
    block, other = b.block(), b.block()
    b.enter(block)
    b.leave()
    b.enter(other)
    b.enter(block)


def after_the_end(b: Any) -> None:
    b.finish()
    b.constant("i32", 1)


@pytest.mark.parametrize(
    ("misuse", "error"),
    [
        (lambda b: b.op("tile.nothing", []), ValueError),
        (lambda b: b.op("nothing", []), ValueError),
        (lambda b: b.op("tile.add"), TypeError),
        (lambda b: b.op("tile.add", [1, 2]), TypeError),
        (lambda b: b.op("tile.add", None), _core.BuildError),
        (lambda b: b.op("tile.add", [b.constant("i32", 1), b.constant("ui32", 1)]), _core.BuildError),
        (lambda b: b.op("tile.add", "xy"), TypeError),
        (lambda b: b.op("tile.add", [], {"x": object()}), TypeError),
        (lambda b: b.op("tile.add", [], {1: 2}), TypeError),
        (lambda b: b.op("tile.add", [], 3), TypeError),
        (lambda b: b.op("tile.add", [], None, ["f99"]), _core.BuildError),
        (lambda b: b.op("tile.add", [], None, [3]), TypeError),
        (lambda b: b.op("scf.if", [], None, None, [b.block()]), ValueError),
        (lambda b: b.op("scf.if", [], None, [], [3]), TypeError),
        (lambda b: b.constant("i32", 1.5), TypeError),
        (lambda b: b.constant("f32", "x"), TypeError),
        (lambda b: b.constant("memref<4xf32>", 1), TypeError),
        (lambda b: b.constant("tensor<?xf32>", 1), TypeError),
        (lambda b: b.constant("index<", 1), _core.BuildError),
        (lambda b: b.attribute("#nothing"), _core.BuildError),
        (lambda b: b.block(["x"]), _core.BuildError),
        (lambda b: b.block("i32"), TypeError),
        (lambda b: b.leave(), ValueError),
        (lambda b: b.enter(3), TypeError),
        (lambda b: b.end_call(3), TypeError),
        (lambda b: b.at(1, 2, 3), TypeError),
        (lambda b: b.at(1, 2, 3, -4), (OverflowError, ValueError)),
        (lambda b: b.set("x", [2**80]), OverflowError),
        (lambda b: b.set("x", [2**31]), OverflowError),
        (lambda b: b.set("x", -(2**31) - 1), OverflowError),
        (lambda b: b.set("x", list(range(65))), ValueError),
        (lambda b: b.file(3), TypeError),
        (lambda b: _core.Builder(), TypeError),
        (lambda b: type(b.constant("i32", 1))(), TypeError),
        (seen_from_outside, ValueError),
        (of_another_builder, ValueError),
        (one_block_twice, ValueError),
        (block_that_is_open, ValueError),
        (entered_elsewhere, ValueError),
        (after_the_end, RuntimeError),
    ],
)
def test_misuse(misuse: Callable[[Any], Any], error: Any) -> None:
    b = _core.Builder("f")
    with pytest.raises(error):
        misuse(b)


def test_values_outlive_the_builder() -> None:
    b = _core.Builder("f")
    body = simple(b, ["i32"])
    (x,) = body.args
    finish(b, body, ["i32"])
    del b
    gc.collect()
    assert "finished" in repr(x)
    for use in (lambda: x.type, lambda: body.args):
        with pytest.raises(RuntimeError, match="finished"):
            use()


POSITIONS = ("tile.block_id", "tile.num_blocks", "tile.thread_id", "tile.block_dim")


def position(op: str, operands: int, attributes: Any) -> Any:
    b = _core.Builder("f")
    body = simple(b, ["i32"])
    b.op(op, body.args[:operands], attributes)
    return finish(b, body, ["i32"])


@pytest.mark.parametrize("op", POSITIONS)
def test_positions(op: str) -> None:
    """A block, a thread: along one of three axes, and of nothing else."""
    for axis in range(3):
        position(op, 0, {"axis": axis}).verify()
    for attributes, message in (({"axis": 3}, "axis 3 is outside"), ({"axis": -1}, "axis -1 is"), (None, "'axis'")):
        with pytest.raises(TileError, match=message):
            position(op, 0, attributes).verify()
    for axis in ("x", None, (0,)):
        with pytest.raises(_core.BuildError, match="axis"):
            position(op, 0, {"axis": axis})
    with pytest.raises(TileError, match="operand"):
        position(op, 1, {"axis": 0}).verify()


@pytest.mark.parametrize(
    ("operand", "message"),
    [
        (lambda b: 3, "an operand must be a Value, not 3"),
        (lambda b: None, "an operand must be a Value, not None"),
        (lambda b: b.block(), "an operand must be a Value, not <tilewright._core.Block"),
        (lambda b: _core.Builder("g").constant("i32", 1), "the value belongs to another builder"),
        (lambda b: closed(b), "the value's block is not open"),
    ],
)
def test_operands_that_are_refused(operand: Callable[[Any], Any], message: str) -> None:
    """What was wrong is said, and the builder goes on as if the op had not been asked for."""
    b = _core.Builder("f")
    body = simple(b, ["i32"])
    with pytest.raises((TypeError, ValueError), match=message):
        b.op("tile.add", [body.args[0], operand(b)])
    b.op("tile.add", [body.args[0], body.args[0]])
    module = finish(b, body, ["i32"])
    module.verify()
    assert module.text().count("tile.add") == 1


def closed(b: Any) -> Any:
    block = b.block(["i32"])
    b.enter(block)
    b.leave()
    b.enter(block)
    (value,) = block.args
    b.leave()
    return value


ROOT = Path(__file__).resolve().parents[2]
OPS = sorted(set(re.findall(r"^### `(tile\.\w+)`", (ROOT / "docs/ops/tile.md").read_text(), re.MULTILINE)))
OPS += ["arith.addi", "arith.select", "scf.if", "scf.for", "scf.while", "scf.yield", "func.return"]
TYPES = ["i32", "ui8", "f32", "index", "tensor<4x8xf32>", "tensor<8x4xf16>", "memref<?x?xf32, strided<[?, 1]>>", "i1"]
ATTRIBUTES: list[Any] = [None, 0, -1, 7, "x", (0, 1), (1, 0), (5, 5), (), True, 2**31 - 1, 0.5]
NAMES = (
    "kind",
    "axis",
    "axes",
    "order",
    "padding",
    "format",
    "value",
    "identity",
    "memory_order",
    "operandSegmentSizes",
)


def test_a_span_again() -> None:
    """Of other operands; what is around it stays, and ops in regions follow."""
    b = _core.Builder("f")
    body = simple(b, ["i32", "i32", "i1"])
    x, y, c = body.args
    span = b.span()
    z = b.op("tile.add", [x, y])
    inner = b.block()
    b.enter(inner)
    w = b.op("tile.mul", [z, x])
    b.op("scf.yield", [w], None, [])
    b.leave()
    other = b.block()
    b.enter(other)
    b.op("scf.yield", [y], None, [])
    b.leave()
    v = b.op("scf.if", [c], None, ["i32"], [inner, other])
    b.end_span(span)
    new_v, same_y, new_x = b.repeat(span, [x], [z], [v, y, x])
    b.op("tile.print", [new_v, same_y, new_x], {"format": "{} {} {}"}, [])
    text = finish(b, body, ["i32", "i32", "i1"]).text()
    assert text.count("scf.if") == 2
    names = re.findall(r"(%\S+) = tile\.add (%\S+), (%\S+)", text)
    assert names[1][1:] == (names[0][0], names[0][2])
    assert re.search(rf"tile\.mul {names[1][0]}, {names[0][0]}", text)


def test_an_empty_span_again() -> None:
    b = _core.Builder("f")
    body = simple(b, ["i32", "i32"])
    x, y = body.args
    span = b.span()
    b.end_span(span)
    (found,) = b.repeat(span, [x], [y], [x])
    b.op("tile.print", [found], {"format": "{}"}, [])
    assert re.search(r"print .*%arg1", finish(b, body, ["i32", "i32"]).text())


def test_a_span_that_uses_what_cannot_be_seen_is_not_repeated() -> None:
    b = _core.Builder("f")
    body = simple(b, ["i32", "i1"])
    x, c = body.args
    blocks, spans, found = [], [], []
    for _ in range(2):
        block = b.block()
        b.enter(block)
        y = b.op("tile.add", [x, x])
        span = b.span()
        z = b.op("tile.mul", [y, x])
        b.end_span(span)
        spans.append((span, y, z))
        found.append(b.repeat(spans[0][0], [x], [y], [spans[0][2]]) if len(spans) == 1 else None)
        if len(spans) == 2:
            assert b.repeat(spans[0][0], [x], [y], [spans[0][2]]) is None  # y of the other block
            assert b.repeat(spans[0][0], [spans[0][1]], [y], [spans[0][2]]) is not None
        b.op("scf.yield", [], None, [])
        b.leave()
        blocks.append(block)
    assert found[0] is not None
    b.op("scf.if", [c], None, [], blocks)
    finish(b, body, ["i32", "i1"]).verify()


def test_misuse_of_spans() -> None:
    b, other = _core.Builder("f"), _core.Builder("g")
    body = simple(b, ["i32", "f32"])
    x, y = body.args
    span = b.span()
    z = b.op("tile.add", [x, x])
    with pytest.raises(ValueError, match="has not ended"):
        b.repeat(span, [x], [x], [])
    inner = b.block()
    b.enter(inner)
    with pytest.raises(ValueError, match="in the block in which it began"):
        b.end_span(span)
    b.leave()
    b.end_span(span)
    with pytest.raises(ValueError, match="ends once"):
        b.end_span(span)
    with pytest.raises(TypeError, match="of another type"):
        b.repeat(span, [x], [y], [])
    with pytest.raises(ValueError, match="as many operands"):
        b.repeat(span, [x], [], [])
    with pytest.raises(TypeError, match="Value of this builder"):
        b.repeat(span, [1], [x], [])
    with pytest.raises(TypeError, match="Value of this builder"):
        b.repeat(span, [x], [x], [None])
    with pytest.raises(TypeError, match="a span of this builder"):
        other.repeat(span, [], [], [])
    with pytest.raises(TypeError, match="a span of this builder"):
        b.end_span(z)
    finish(b, body, ["i32", "f32"])
    with pytest.raises(RuntimeError):
        b.repeat(span, [x], [x], [z])


def random_regions(b: Any, pick: random.Random) -> list[Any]:
    regions = []
    for _ in range(pick.randrange(3)):
        block = b.block([pick.choice(TYPES) for _ in range(pick.randrange(3))])
        b.enter(block)
        if pick.random() < 0.7:
            b.constant("i32", 1)
        b.leave()
        regions.append(block)
    return regions


@pytest.mark.parametrize("seed", range(20))
def test_random_ops_never_crash(seed: int) -> None:
    """All ops, with any operands, attributes, types and regions: each is made, or refused with an exception."""
    pick = random.Random(seed)
    b = _core.Builder("f")
    body = simple(b, TYPES)
    values = list(body.args)
    for _ in range(200):
        operands = [pick.choice(values) for _ in range(pick.randrange(6))]
        attributes = {name: pick.choice(ATTRIBUTES) for name in pick.sample(NAMES, pick.randrange(4))}
        types = pick.choice([None, [], [pick.choice(TYPES)], pick.sample(TYPES, 2)])
        regions = random_regions(b, pick) if types is not None and pick.random() < 0.3 else []
        try:
            made = b.op(pick.choice(OPS), operands, attributes, types, regions)
        except (_core.BuildError, ValueError, TypeError):
            continue
        values += made if isinstance(made, tuple) else [made] if made is not None else []
    try:
        finish(b, body, TYPES).verify()
    except Exception as error:  # what the verifier says
        assert "Error" in type(error).__name__
