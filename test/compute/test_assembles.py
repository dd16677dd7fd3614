"""What the algorithms launch on a GPU assembles for each generation of chips."""

import re
import shutil
import subprocess

import numpy as np
import pytest

from tilewright import compile as compiler
from tilewright import compute
from tilewright.compute import OpKind, SortOrder, launching, merge_tiles, objects, plans, scan_tiles


@pytest.fixture
def kernels(monkeypatch):
    """The kernels of each algorithm, as (name, kernel, key)."""
    found = []

    def note(self, values, targets):
        _, key = self.specialization(values)
        found.append((self, tuple(map(launching._plain, key))))

    monkeypatch.setattr(launching.ComputeKernel, "prepare", note)
    make_some(monkeypatch)
    return found


def make_some(monkeypatch):
    """Objects of the algorithms, as they are for a GPU."""
    monkeypatch.setattr(objects, "shape_for", lambda place: plans.GPU)
    compute.clear_all_caches()
    x, f, i, one = np.zeros(8), np.zeros(8, np.float32), np.zeros(8, np.int64), np.zeros(2, np.int64)
    pair = np.zeros(8, np.dtype([("f0", "i8"), ("f1", "f4")]))
    compute.make_reduce_into(pair, pair, lambda a, b: (a.f0 + b.f0, max(a.f1, b.f1)), pair[:1])
    compute.make_reduce_into(x, x, OpKind.PLUS, np.float64(0))
    compute.make_inclusive_scan(i, i, lambda a, b: a + b, None)
    compute.make_exclusive_scan(f, f, OpKind.PLUS, np.float32(0))
    compute.make_three_way_partition(i, i, i, i, one, lambda v: v < 3, lambda v: v > 7)
    compute.make_unique_by_key(i, f, i, f, one, OpKind.EQUAL_TO)
    compute.make_radix_sort(f, f, x, x, SortOrder.DESCENDING)
    compute.make_merge_sort(pair, None, pair, None, lambda a, b: a.f1 < b.f1)
    compute.make_segmented_sort(i, i, None, None, one, one)
    compute.make_segmented_reduce(f, f, one, one, OpKind.MAXIMUM, np.float32(0))
    compute.make_histogram_even(x, i, 9, 0.0, 1.0, 8)
    compute.make_histogram_even(f, i, 9, np.float32(0), np.float32(1), 8)
    compute.make_histogram_even(f.astype(np.int8), i, 9, np.int8(0), np.int8(8), 8)
    compute.make_histogram_even(i, i, 9, np.int64(0), np.int64(5000), 8)
    compute.make_lower_bound(x, x, i)
    compute.make_binary_transform(x, f, x, OpKind.MULTIPLIES)
    compute.clear_all_caches()


def assembly(kernel, key, chip, number=0):
    captured = compiler.capture_kernel(kernel, chip, key, name=f"{kernel.name}_{number}")
    captured.module.lower("llvm")
    return captured.module.emit(compiler.EMIT_ASSEMBLY)


def test_no_kernel_divides_integers_of_the_launch(kernels):
    """Of 64 bits that is as much code as the rest of a small kernel: loops count up to a bound."""
    for kernel, key in kernels:
        assert not re.search(rb"(div|rem)\.[su]64", assembly(kernel, key, "sm_90a")), kernel.name


def test_histograms_count_whole_tiles_without_a_branch(kernels):
    """Of floats: a thread's samples are under way at once, and all are counted before one that is in doubt is asked."""
    for kernel, key in kernels:
        code = assembly(kernel, key, "sm_90a").decode()
        if kernel.name == "count_shared" and "fma.rn.f32" in code:
            tile = code[code.index("ld.global.v4") :]
            lines = re.findall(r"ld\.global\.v4|red\S*\.shared|bra", tile)
            assert lines[:21] == ["ld.global.v4"] * 4 + ["red.relaxed.cta.shared"] * 16 + ["bra"]
            break
    else:
        raise AssertionError("no histogram of floats")


def test_merges_compare_places_in_32_bits(kernels):
    """In a tile there are no others; for each item it would be a quarter of the instructions."""
    found = {}
    for kernel, key in kernels:
        if kernel.name in ("sort_tiles", "merge_tiles"):
            found[kernel.name] = len(re.findall(rb"setp[.]\w+[.][su]64", assembly(kernel, key, "sm_90a")))
    assert len(found) == 2 and all(count <= 4 for count in found.values()), found


def test_radix_sorts_tell_counts_before_they_rank(kernels):
    """So that no tile waits for the ranks of another; and digits of all passes are counted without a branch."""
    code = {kernel.name: assembly(kernel, key, "sm_90a").decode() for kernel, key in kernels if kernel.name != "copy"}
    told, ranked = (code["sweep"].index(what) for what in ("st.relaxed.gpu", "vote.sync.ballot"))
    assert told < ranked
    tile = code["count"][code["count"].index("ld.global.v4") :]
    lines = re.findall(r"ld\.global\.v4|red\S*\.shared|bra", tile)
    assert lines[:35] == ["ld.global.v4"] * 2 + ["red.relaxed.cta.shared"] * 32 + ["bra"]


def test_radix_sorts_ask_no_key_whether_it_is_there(kernels):
    """A tile that ends early is filled with keys behind which no other comes, so that digits of all are counted and
    ranked alike; it is read in a loop."""
    kernel, key = next(row for row in kernels if row[0].name == "sweep")
    code = assembly(kernel, key, "sm_90a").decode()
    asked = len(re.findall(r"setp\.\w+\.s32", code)) - len(re.findall(r"vote\.sync", code))
    assert len(re.findall(r"ld\.global\.b", code)) <= 2 * 12 + 4 and asked < 40, asked


@pytest.mark.spec("C-028")
def test_operators_are_inlined(kernels):
    """No kernel calls anything: what an operator does stands in it."""
    for kernel, key in kernels:
        code = assembly(kernel, key, "sm_90a")
        assert b".entry" in code and b"call" not in code, kernel.name


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on PATH")
@pytest.mark.parametrize("chip", ["sm_80", "sm_90a", "sm_100a"])
def test_assembles(kernels, chip, tmp_path):
    assert len({k.name for k, _ in kernels}) >= 15
    parts = [assembly(kernel, key, chip, number) for number, (kernel, key) in enumerate(kernels)]
    for number, ptx in enumerate(parts):
        source = tmp_path / f"{number}.ptx"
        source.write_bytes(ptx)
        command = ["ptxas", f"-arch={chip}", "-O1", str(source), "-o", str(tmp_path / "kernel.cubin")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, (kernels[number][0].name, done.stderr)


def test_large_blocks_have_the_registers_of_their_threads(monkeypatch):
    """The assembler is told of a block for which a kernel might take too many, whatever an operator does."""
    launches = []
    monkeypatch.setattr(objects, "compile_all", lambda some, targets: launches.extend(some))
    make_some(monkeypatch)
    large = [launch for launch in launches if launch.block * 255 > 1 << 16]
    assert {"count_shared", "count_many", "count_packed", "count_bytes", "sweep"} <= {x.kernel.name for x in large}
    for launch in large:
        assert launch.kernel.hints_for("sm_90a").get("most_threads") == launch.block, launch.kernel.name


def test_rows_are_accesses_of_16_bytes(kernels):
    """Of scans, all that a thread reads and stores of a whole tile, this in a loop; of selections, what it reads."""
    counted = {"scan_tiles": (4, 1), "part_tiles": (5, 0)}
    for kernel, key in (row for row in kernels if row[0].name in counted):
        code = assembly(kernel, key, "sm_90a").decode()
        found = tuple(len(re.findall(rf"{what}\.global\.v[24]\.b", code)) for what in ("ld", "st"))
        assert found[0] >= counted[kernel.name][0] and found[1] >= counted[kernel.name][1], (kernel.name, found)


def test_places_in_a_tile_are_compared_in_32_bits(kernels):
    """Of 64 bits a comparison is two instructions; a look back and what a warp joins have many."""
    for kernel, key in (row for row in kernels if row[0].name == "scan_tiles"):
        code = assembly(kernel, key, "sm_90a").decode()
        assert len(re.findall(r"setp\.\w+\.s64", code)) < 6, kernel.name


def test_scans_look_at_a_group_before_they_wait(kernels):
    """At its total, which is long there, and at that of a tile: words of 32 bits, of int64 and float32."""
    found = []
    for kernel, key in (row for row in kernels if row[0].name == "scan_tiles"):
        code = assembly(kernel, key, "sm_90a").decode()
        found.append(code[: code.index("nanosleep")].count("ld.relaxed.gpu"))
    assert sorted(found) == [2, 4]


def test_parted_items_are_put_before_a_block_waits(kernels):
    """Registers hold no items of a tile while its block looks back: all of them are in shared memory. Of keys alone, a
    block reads its next tile before; what goes with keys it reads behind the counts that it tells."""
    found = []
    for kernel, key in kernels:
        if kernel.name == "part_tiles":
            code = assembly(kernel, key, "sm_90a").decode()
            waits, read = code.index("nanosleep"), [at.start() for at in re.finditer(r"ld\.global\.v", code)]
            stored = [at.start() for at in re.finditer(r"st\.shared", code)]
            stays = "bar.red" in code
            found.append(stays)
            if stays:
                assert len(read) >= 4 and max(read) < waits
            else:
                told = code.index("st.relaxed.gpu")
                assert any(told < at < waits for at in read)
                behind = sum(at > waits for at in stored) - 12
                assert len(stored) - behind >= 10 and behind <= 4  # sums of warps, and counts of groups
    assert sorted(found) == [False, True]


def test_bins_of_singles_are_found_in_float32(kernels):
    """Of float64 there is a quotient for what comes near to another bin, of four fused products and no division, and
    nothing else; one kernel counts in shared memory, be bins few or many, and one few samples."""
    names = sorted(kernel.name for kernel, _ in kernels if "count_" in kernel.name)
    assert names == sorted(["count_shared", "count_packed", "count_many"] * 3 + ["count_bytes"] + ["count_at_once"] * 4)
    doubles, singles, _ = (
        assembly(kernel, key, "sm_90a").decode() for kernel, key in kernels if kernel.name == "count_shared"
    )
    assert "mul.f32" not in doubles and len(re.findall(r"(mul|fma)\S*\.f32", singles)) >= 16
    conversions, products = (len(re.findall(found, singles)) for found in (r"cvt\S*\.f64", r"fma\.rn\.f64"))
    assert products % 4 == 0 and conversions <= 3 * (products // 4) and "div." not in singles


def test_bits_of_floats_in_their_order_take_no_choice(kernels):
    """But that of the zeros: a negative key is turned by its sign, spread over all bits."""
    keys, values = np.zeros(8, np.uint32), np.zeros(8)
    compute.make_radix_sort(keys, keys, values, values, SortOrder.DESCENDING)
    sorts = [row for row in kernels if row[0].name == "sweep"]
    floats, integers = (assembly(*sort, "sm_90a").decode() for sort in (sorts[0], sorts[-1]))
    ranked = integers.count("popc.b32") // 2  # a key by each; then there are two loops, which store keys and values
    assert ranked >= 10 and floats.count("selp.b32") <= integers.count("selp.b32") + ranked + 2


def test_a_block_sorts_keys_in_their_place(kernels):
    """Threads sort and merge in registers: shared memory has each key of a tile once."""
    kernel, key = next(row for row in kernels if row[0].name == "sort_tiles")
    text = compiler.capture_kernel(kernel, "sm_90a", key).module.text(False)
    shared = [line for line in text.splitlines() if "tile.shared_array" in line]
    tile = 512 * merge_tiles.items_for(12)
    assert len(shared) == 1 and int(re.search(r"memref<(\d+)", shared[0])[1]) in (tile, 12 * tile), shared


def test_kernels_are_captured_in_turn_the_longest_first(monkeypatch):
    """Python runs one thread at a time: what takes longest to compile waits for no other capture."""
    events, capture = [], compiler.capture_kernel

    def noted(kernel, *facts, **named):
        events.append(("begins", kernel.name))
        found = capture(kernel, *facts, **named)
        events.append(("ends", kernel.name))
        return found

    monkeypatch.setattr(compiler, "capture_kernel", noted)
    compute.clear_all_caches()
    x = np.zeros(8, np.uint16)
    compute.make_radix_sort(x, x, None, None, SortOrder.DESCENDING, compute_capability=90)
    compute.clear_all_caches()
    names = [name for what, name in events if what == "begins"]
    assert names == ["sweep", "count", "bases", "copy", "clear"]
    assert events == [(what, name) for name in names for what in ("begins", "ends")]


def test_the_length_of_a_kernel_is_that_of_its_functions():
    def inner(x):
        return later(x)

    def outer(x):
        return inner(x) + inner(x)

    alone = launching._length(inner, set())  # `later` is nothing yet
    assert launching._length(outer, set()) == len(outer.__code__.co_code) + alone
    later = (inner, abs)
    assert launching._length(inner, set()) == alone and later


def test_tiles_that_end_early_have_few_copies_of_an_item(kernels):
    """An operator of a scan's items stands in its kernel once for each item of a whole tile, and a few times more; what
    joins a tile with those before it once for a row."""
    counting = compute.TransformIterator(np.zeros(8, np.float32), lambda v: v * np.float32(3))
    del kernels[:]
    compute.make_inclusive_scan(counting, np.zeros(8, np.float32), OpKind.PLUS, None)
    ((kernel, key),) = [row for row in kernels if row[0].name == "scan_tiles"]
    code = assembly(kernel, key, "sm_90a").decode()
    assert 32 <= code.count("0f40400000") <= 32 + scan_tiles._AT_A_TIME, code.count("0f40400000")
    assert len(re.findall(r"st\.global\.[bv]", code)) == 2


def test_rows_of_segments_that_are_full_ask_for_no_lane(kernels):
    """One comparison for all steps of a fold: with one of each lane and step there, fewer blocks have registers."""
    (found,) = {assembly(kernel, key, "sm_90a") for kernel, key in kernels if kernel.name == "fold_segments"}
    assert re.search(rb"setp\.(eq|ne)\.[bsu]64\s+%p\d+, %rd\d+, 32;", found)


def test_transforms_read_16_bytes_a_thread(kernels):
    """Of a whole tile, once: many blocks have more under way than one with several pieces a thread."""
    (code,) = {assembly(kernel, key, "sm_90a") for kernel, key in kernels if kernel.name == "transform"}
    assert len(re.findall(rb"ld\.global\.v2\.b64", code)) == 1 and len(re.findall(rb"st\.global\.v2\.b64", code)) == 1
