/* wgmma.c - the family wgmma: its instructions, where operands lie, layouts. See wgmma.h. */
#include "lowering/gpu/isa/sm90/wgmma.h"

#include "dialect/layouts.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/ir.h"
#include "lowering/launch_record.h"
#include "tilewright/dialect.h"

#include <stdio.h>

/* Of a row of a sum: two neighbours in each of four lanes, again and again. */
enum { ROW_LANE_BITS = 2, LANE_COLUMN_BITS = 1, WORD_BITS = 32 };
/* Of a warp's rows: one, and eight further on another, in each of eight groups of lanes. */
enum { HALF_ROW_BITS = 3 };

/* ---- kinds --------------------------------------------------------------------------------------- */

static const char *input_name(MlirType in, bool is_unsigned) {
  if (mlirTypeIsAF16(in))
    return "f16";
  if (mlirTypeIsABF16(in))
    return "bf16";
  if (mlirTypeIsATF32(in))
    return "tf32";
  if (mlirTypeIsAFloat8E4M3FN(in))
    return "e4m3";
  if (mlirTypeIsAFloat8E5M2(in))
    return "e5m2";
  return mlirTypeIsAInteger(in) && tw_bits(in) == 8 ? is_unsigned ? "u8" : "s8" : NULL;
}

bool tw_wgmma_kind_of(const MlirType in[2], const bool is_unsigned[2], MlirType acc, tw_wgmma_kind_t *out) {
  *out = (tw_wgmma_kind_t){.elem_bits = tw_memory_bits(in[0])};
  for (int i = 0; i < 2; i++)
    if ((out->in[i] = input_name(in[i], is_unsigned[i])) == NULL || tw_memory_bits(in[i]) != out->elem_bits)
      return false;
  out->k = TW_WGMMA_K_BYTES * 8 / out->elem_bits;
  if (mlirTypeIsAInteger(in[0]) || mlirTypeIsAInteger(in[1])) {
    out->acc = "s32";
    return mlirTypeIsAInteger(in[0]) && mlirTypeIsAInteger(in[1]) && mlirTypeIsAInteger(acc) && tw_bits(acc) == 32;
  }
  bool half = mlirTypeIsAF16(acc) && (mlirTypeIsAF16(in[0]) || out->elem_bits == 8);
  out->acc = half ? "f16" : "f32";
  return (half || mlirTypeIsAF32(acc)) && (out->elem_bits != 16 || mlirTypeEqual(in[0], in[1]));
}

/* That of a tile.mma. */
static bool kind_of_mma(MlirOperation mma, tw_wgmma_kind_t *out) {
  MlirType type[3];
  for (int i = 0; i < 3; i++)
    type[i] = tw_element(mlirValueGetType(mlirOperationGetOperand(mma, i)));
  bool is_unsigned[] = {tw_has_attr(mma, "unsigned_lhs"), tw_has_attr(mma, "unsigned_rhs")};
  return tw_wgmma_kind_of(type, is_unsigned, type[2], out);
}

/* Not of a sum from zero over no more than the Tensor Core may add up by itself. */
static int promotion(MlirOperation mma) {
  MlirType lhs = mlirValueGetType(mlirOperationGetOperand(mma, 0));
  if (tw_extent(lhs, tw_rank(lhs) - 1) <= TW_WGMMA_PROMOTION && tw_is_zero(mlirOperationGetOperand(mma, 2)))
    return 0;
  MlirType in = tw_element(mlirValueGetType(mlirOperationGetOperand(mma, 0))),
           acc = tw_element(mlirValueGetType(mlirOperationGetOperand(mma, 2)));
  bool fast = tw_hint_fp8_fast_accum(mma, 0) != 0 || tw_has_attr(mma, "fast_accum");
  bool promotes = mlirTypeIsAFloat(in) && tw_bits(in) == 8 && mlirTypeIsAF32(acc) && !fast;
  return promotes ? TW_WGMMA_PROMOTION : 0;
}

static bool may_run_on(MlirOperation product) {
  MlirType acc = mlirValueGetType(mlirOperationGetResult(product, 0));
  return !tw_has_attr(product, "promoted") && !tw_reads_written(product) && tw_bits(acc) == 32;
}

static bool has_steps(MlirOperation product) {
  MlirType lhs = mlirValueGetType(mlirOperationGetOperand(product, 0));
  return !tw_type_is_buffer(lhs) && tw_extent(lhs, 1) * tw_memory_bits(tw_element(lhs)) > TW_WGMMA_K_BYTES * 8;
}

/* Sums that are to be promoted. */
static int64_t extra_words(MlirOperation product) {
  int64_t sums = tw_register_count(mlirValueGetType(mlirOperationGetResult(product, 0)));
  if (!tw_has_attr(product, "promoted"))
    return 0;
  return sums < TW_WGMMA_PROMOTED_COLUMNS / 2 ? sums : TW_WGMMA_PROMOTED_COLUMNS / 2;
}

/* ---- layouts ------------------------------------------------------------------------------------- */

bool tw_wgmma_split(int64_t m, int64_t n, bool narrow, int num_warps, tw_mma_split_t *out) {
  int64_t least = narrow ? TW_WGMMA_NARROW_COLUMNS : TW_WGMMA_SHARED_COLUMNS;
  *out = (tw_mma_split_t){1, 1, 1};
  if (num_warps % TW_WGMMA_WARPS != 0 || m % TW_WGMMA_ROWS != 0)
    return false;
  for (int groups = num_warps / TW_WGMMA_WARPS; groups > 1; groups /= 2)
    if (m / out->m > TW_WGMMA_ROWS)
      out->m *= 2;
    else if (n / out->n > least)
      out->n *= 2;
    else
      out->same *= 2;
  return n >= TW_WGMMA_MIN_COLUMNS && n / out->n <= TW_WGMMA_MAX_COLUMNS;
}

static void push(tw_layout_t *l, tw_input_t input, int dim, int bit) {
  tw_layout_push(l, input, bit < l->log_shape[dim] ? UINT32_C(1) << (tw_layout_dim_shift(l, dim) + bit) : 0);
}

/* Bits from `from` up to (not including) `to` of a dimension, as registers. */
static void push_registers(tw_layout_t *l, int dim, int from, int to) {
  for (int bit = from; bit < to; bit++)
    push(l, TW_REGISTER, dim, bit);
}

/* Columns from bit `column` on and rows within a warp, the warps of a group, and the groups: the same for accumulator
 * and lhs, but that groups which share out columns repeat lhs. Those beyond repeat both. */
static void push_threads(tw_layout_t *l, int column, int row, tw_mma_split_t split, bool is_acc) {
  push(l, TW_LANE, 1, column);
  push(l, TW_LANE, 1, column + 1);
  for (int bit = 0; bit < HALF_ROW_BITS; bit++)
    push(l, TW_LANE, 0, row + bit);
  push(l, TW_WARP, 0, 4);
  push(l, TW_WARP, 0, 5);
  int groups_m = tw_log2(split.m), groups_n = tw_log2(split.n), same = tw_log2(split.same);
  for (int bit = 0; bit < groups_m; bit++)
    push(l, TW_WARP, 0, l->log_shape[0] - groups_m + bit);
  for (int bit = 0; bit < groups_n; bit++)
    if (is_acc)
      push(l, TW_WARP, 1, l->log_shape[1] - groups_n + bit);
    else
      tw_layout_push(l, TW_WARP, 0);
  for (int bit = 0; bit < same; bit++)
    tw_layout_push(l, TW_WARP, 0);
}

/* The fragment of 64 rows; then, in further registers, columns and rows. A word has `pack` neighbours (log2). Which row
 * of a warp's 16 is which of the instruction is free: `paired`, a thread has two neighbours. */
static tw_layout_t fragment(const int64_t *shape, tw_mma_split_t split, int pack, bool paired, bool is_acc) {
  enum { GROUP_ROW_BITS = 6 };
  tw_layout_t l = tw_layout_empty(2, shape);
  int columns = l.log_shape[1] - (is_acc ? tw_log2(split.n) : 0);
  push_registers(&l, 1, 0, pack);
  push(&l, TW_REGISTER, 0, paired ? 0 : HALF_ROW_BITS);
  push_registers(&l, 1, pack + ROW_LANE_BITS, columns);
  push_registers(&l, 0, GROUP_ROW_BITS, l.log_shape[0] - tw_log2(split.m));
  push_threads(&l, pack, paired, split, is_acc);
  return l;
}

/* Registers between a source with vectors along axis `source` and lines along axis `line`: where these differ, a thread
 * has square blocks, and lanes run along both axes at once, so that each of the two accesses finds them in different
 * banks. */
static tw_layout_t transposing(const int64_t *shape, int line, int source, int elem_bits, int num_warps) {
  enum { ACCESS_BITS = 64, LANE_BITS = TW_WARP_LANE_BITS };
  tw_layout_t l = tw_layout_empty(2, shape);
  int first = tw_log2(ACCESS_BITS / elem_bits), lane = 0, warps = tw_log2(num_warps), at[] = {first, first};
  push_registers(&l, source, 0, first);
  push_registers(&l, line, 0, first);
  for (; lane < LANE_BITS - 1 && at[source] < l.log_shape[source] && at[source] < l.log_shape[line];
       lane++, at[source]++)
    tw_layout_push(&l, TW_LANE,
                   UINT32_C(1) << (tw_layout_dim_shift(&l, 0) + at[source]) |
                       UINT32_C(1) << (tw_layout_dim_shift(&l, 1) + at[source]));
  for (; lane < LANE_BITS + warps; lane++) {
    int axis = at[line] < l.log_shape[line] ? line : source;
    push(&l, lane < LANE_BITS ? TW_LANE : TW_WARP, axis, at[axis]++);
  }
  push_registers(&l, line, at[line], l.log_shape[line]);
  push_registers(&l, source, at[source], l.log_shape[source]);
  return l;
}

/* The axis of an operand along which neighbours lie side by side where it is loaded; else `otherwise`. */
static int source_axis(MlirValue value, int otherwise) {
  int64_t order[TW_MAX_RANK];
  int swapped = 0;
  MlirOperation load = tw_load_behind(value);
  if (mlirOperationIsNull(load) || tw_rank(mlirValueGetType(mlirOperationGetResult(load, 0))) != 2)
    return otherwise;
  for (MlirOperation op = tw_def(value); !mlirOperationEqual(op, load); op = tw_def(mlirOperationGetOperand(op, 0)))
    if (tw_op_is(op, TW_TILE_PERMUTE) && tw_attr_ints(op, "order", order, TW_MAX_RANK) == 2)
      swapped ^= order[0] == 1;
    else if (tw_op_is(op, TW_TILE_RESHAPE))
      return otherwise;
  return tw_contiguous_axis(load) ^ swapped;
}

static tw_mma_written_t written(MlirOperation mma, int operand, int num_warps) {
  enum { VECTOR_BITS = 128 };
  MlirValue value = mlirOperationGetOperand(mma, operand);
  MlirType type = mlirValueGetType(value);
  MlirContext context = mlirTypeGetContext(type);
  int bits = tw_memory_bits(tw_element(type)), k = 1 - operand;
  int source = source_axis(value, k), line = bits == 16 ? source : k;
  tw_mma_written_t w = {.transposes = source != line};
  int64_t shape[] = {1, tw_extent(type, 0), tw_extent(type, 1)};
  int order[] = {line, 1 - line};
  tw_layout_t layout = tw_shared_swizzled(2, shape + 1, order, bits, TW_WGMMA_LINE_BYTES);
  w.buffer = tw_buffer_type_get(context, 3, shape, tw_element(type), tw_layout_attribute(context, &layout));
  w.registers = source == line ? tw_layout_coalesced(2, shape + 1, VECTOR_BITS / bits, num_warps, order)
                               : transposing(shape + 1, line, source, bits, num_warps);
  return w;
}

/* The load behind an operand, through a reshape and then a transposition; null if there is anything
 * else. */
static MlirOperation plain_load(MlirValue value, bool *transposed) {
  MlirOperation op = tw_def(value);
  *transposed = false;
  if (!mlirOperationIsNull(op) && tw_op_is(op, TW_TILE_PERMUTE) && tw_rank(mlirValueGetType(value)) == 2) {
    *transposed = true; /* a permute that changes nothing is folded away */
    op = tw_def(mlirOperationGetOperand(op, 0));
  }
  while (!mlirOperationIsNull(op) && tw_op_is(op, TW_TILE_RESHAPE))
    op = tw_def(mlirOperationGetOperand(op, 0));
  return !mlirOperationIsNull(op) && mlirOperationEqual(op, tw_load_behind(value)) ? op : tw_null_op();
}

/* The axis of a tile along which a load that it is made of has neighbours, through transpositions; -1: none. */
static int axis_of_load(MlirValue value, MlirOperation load, int depth) {
  MlirOperation op = tw_def(value);
  MlirType type = mlirValueGetType(value);
  if (mlirOperationIsNull(op) || depth == 0 || !tw_is_tile(type) || tw_rank(type) != 2)
    return -1;
  if (mlirOperationEqual(op, load))
    return tw_contiguous_axis(load);
  bool turns = tw_op_is(op, TW_TILE_PERMUTE);
  if (!turns && tw_op_form(op) != TW_FORM_ELEMENTWISE)
    return -1;
  int axis = -1;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op) && axis < 0; i++)
    axis = axis_of_load(mlirOperationGetOperand(op, i), load, depth - 1);
  return axis < 0 ? -1 : axis ^ turns;
}

/* Whether the operand of 16 bits is made of a load of bytes that lie along its rows. */
static bool has_bytes_along_rows(MlirValue operand, MlirOperation load) {
  enum { PAIR_BITS = 16, MAX_DEPTH = 16 };
  MlirType tile = mlirValueGetType(mlirOperationGetResult(load, 0));
  return tw_bits(mlirValueGetType(operand)) == PAIR_BITS && 2 * tw_memory_bits(tw_element(tile)) == PAIR_BITS &&
         axis_of_load(operand, load, MAX_DEPTH) == 0;
}

/* Such bytes are read two at a time, by instructions that turn words of 16 bits. */
static bool pairs_rows(MlirOperation mma) {
  MlirValue lhs = mlirOperationGetOperand(mma, 0);
  MlirOperation alone = tw_load_behind(lhs);
  tw_ops_t loads = tw_loads_behind(mma, 0);
  bool pairs = !mlirOperationIsNull(alone) && has_bytes_along_rows(lhs, alone);
  for (int i = 0; i < loads.count; i++)
    pairs |= has_bytes_along_rows(lhs, loads.at[i]);
  tw_ops_free(&loads);
  return pairs;
}

static bool reads_written_lhs(MlirOperation mma) {
  MlirType type = mlirValueGetType(mlirOperationGetOperand(mma, 0));
  tw_mma_written_t own = written(mma, 0, 1);
  tw_wgmma_operand_t shape;
  return !own.transposes &&
         tw_wgmma_operand_of(own.buffer, false, false, tw_extent(type, 1), tw_extent(type, 0), &shape);
}

/* Where the operand would be, and how it lies there. */
static tw_mma_place_t find_place(MlirOperation mma, int operand, bool *transposed, tw_wgmma_operand_t *shape) {
  MlirValue value = mlirOperationGetOperand(mma, operand);
  MlirOperation load = plain_load(value, transposed);
  MlirType type = mlirValueGetType(value);
  int64_t k = tw_extent(type, operand == 0), other = tw_extent(type, operand != 0);
  if (!mlirOperationIsNull(load) && tw_promotes(load) &&
      tw_wgmma_operand_of(tw_promoted_type(load), operand == 1, *transposed, k, other, shape))
    return TW_PLACE_SHARED;
  *transposed = false;
  tw_mma_written_t own = written(mma, operand, 1);
  MlirOperation behind = tw_load_behind(value);
  bool words = tw_memory_bits(tw_element(type)) == WORD_BITS && !mlirOperationIsNull(behind) && tw_promotes(behind);
  if (operand == 0 && (words || !own.transposes))
    return TW_PLACE_REGISTERS;
  bool fits = tw_wgmma_operand_of(own.buffer, operand == 1, false, k, other, shape);
  return fits ? TW_PLACE_WRITTEN : operand == 0 ? TW_PLACE_REGISTERS : TW_PLACE_NONE;
}

static tw_mma_place_t place(MlirOperation mma, int operand, bool *transposed) {
  tw_wgmma_operand_t shape;
  return find_place(mma, operand, transposed, &shape);
}

/* Each column has lines of its own where these are along k. */
static bool has_columns_apart(MlirOperation mma) {
  bool transposed;
  tw_wgmma_operand_t shape;
  return find_place(mma, 1, &transposed, &shape) != TW_PLACE_NONE && shape.k_major;
}

bool tw_wgmma_operand_of(MlirType buffer, bool rhs, bool transposed, int64_t k, int64_t other,
                         tw_wgmma_operand_t *out) {
  enum { LEAST_LINE = 32, LINES = 8 };
  tw_layout_t have;
  bool k_first = rhs != transposed;
  int bits = tw_memory_bits(tw_buffer_type_element(buffer));
  int64_t shape[] = {k_first ? k : other, k_first ? other : k};
  if (!tw_layout_of_type(buffer, &have) || tw_layout_size_bits(&have) != tw_log2(k) + tw_log2(other))
    return false;
  tw_layout_t flat = tw_layout_reshape(&have, 2, shape);
  for (int inner = 0; inner < 2; inner++) {
    int order[] = {inner, 1 - inner};
    tw_layout_t want = tw_shared_swizzled(2, shape, order, bits, TW_WGMMA_LINE_BYTES);
    bool k_major = (inner == 0) == k_first;
    int64_t bytes = shape[inner] * bits / 8, line = bytes < TW_WGMMA_LINE_BYTES ? bytes : TW_WGMMA_LINE_BYTES;
    if ((k_major || bits == 16) && line >= LEAST_LINE && shape[1 - inner] >= LINES && tw_layout_equal(&flat, &want)) {
      *out = (tw_wgmma_operand_t){.k_major = k_major, .k = k, .other = other, .line = line};
      return true;
    }
  }
  return false;
}

/* ---- the family ---------------------------------------------------------------------------------- */

static const char *why_not(MlirOperation mma, int num_warps) {
  MlirType lhs = mlirValueGetType(mlirOperationGetOperand(mma, 0)),
           acc = mlirValueGetType(mlirOperationGetOperand(mma, 2));
  tw_wgmma_kind_t kind;
  tw_mma_split_t split;
  bool transposed;
  if (!kind_of_mma(mma, &kind))
    return "it has no instruction for its dtypes";
  if (tw_rank(acc) != 2 || tw_extent(lhs, 1) < kind.k)
    return "it is batched, or k is below 32 bytes";
  if (!tw_wgmma_split(tw_extent(acc, 0), tw_extent(acc, 1), false, num_warps, &split))
    return "its rows are no multiple of 64, or its warps cannot share it";
  return place(mma, 1, &transposed) ? NULL : "its right operand has no lines of 32 bytes";
}

static void plan(MlirOperation mma, int num_warps, tw_mma_plan_t *out) {
  int64_t shape[3][TW_LAYOUT_MAX_RANK];
  tw_mma_split_t split;
  tw_wgmma_kind_t kind;
  (void)kind_of_mma(mma, &kind);
  for (int i = 0; i < 3; i++)
    tw_tile_shape(mlirValueGetType(mlirOperationGetOperand(mma, i)), shape[i]);
  bool narrow = tw_has_attr(mma, TW_MMA_NARROW_GROUPS);
  (void)tw_wgmma_split(shape[2][0], shape[2][1], narrow, num_warps, &split);
  MlirStringRef places = tw_attr_string(mma, TW_MMA_PLACES);
  bool writes_lhs = places.length > 0 && places.data[0] == TW_PLACE_WRITTEN;
  bool paired = tw_has_attr(mma, TW_MMA_PAIRED_ROWS);
  out->acc = fragment(shape[2], split, LANE_COLUMN_BITS, paired, true);
  out->lhs = writes_lhs ? written(mma, 0, num_warps).registers
                        : fragment(shape[0], split, tw_log2(32 / kind.elem_bits), paired, false);
  out->rhs = written(mma, 1, num_warps).registers;
}

static void describe(MlirOperation product, int num_warps, size_t size, char *out) {
  MlirType acc = mlirValueGetType(mlirOperationGetResult(product, 0)),
           lhs = mlirValueGetType(mlirOperationGetOperand(product, 0));
  bool shared = tw_type_is_buffer(lhs);
  int bits = tw_memory_bits(shared ? tw_buffer_type_element(lhs) : tw_element(lhs));
  tw_mma_split_t split;
  out[0] = 0;
  bool narrow = tw_has_attr(product, TW_MMA_NARROW_GROUPS);
  if (!tw_wgmma_split(tw_extent(acc, 0), tw_extent(acc, 1), narrow, num_warps, &split))
    return;
  int64_t columns = tw_extent(acc, 1) / split.n;
  if (tw_has_attr(product, "promoted") && columns > TW_WGMMA_PROMOTED_COLUMNS)
    columns = TW_WGMMA_PROMOTED_COLUMNS;
  int groups = split.m * split.n;
  snprintf(out, size, "wgmma m%dn%lldk%d on %d warpgroup%s, its left operand in %s", TW_WGMMA_ROWS, (long long)columns,
           TW_WGMMA_K_BYTES * 8 / bits, groups, groups == 1 ? "" : "s", shared ? "shared memory" : "registers");
}

static const tw_async_mma_t async = {
    .warps = TW_WGMMA_WARPS,
    .rows = TW_WGMMA_ROWS,
    .columns = TW_WGMMA_MAX_COLUMNS,
    .least_columns = TW_WGMMA_MIN_COLUMNS,
    .narrow = TW_WGMMA_NARROW,
    .lanes_per_row = 1 << ROW_LANE_BITS,
    .columns_per_lane = 1 << LANE_COLUMN_BITS,
    .by_proxy = true,
    .split = tw_wgmma_split,
    .has_columns_apart = has_columns_apart,
    .place = place,
    .written = written,
    .reads_written_lhs = reads_written_lhs,
    .pairs_rows = pairs_rows,
    .promotion = promotion,
    .extra_words = extra_words,
    .may_run_on = may_run_on,
    .has_steps = has_steps,
};

const tw_mma_family_t tw_wgmma_family = {
    .name = "wgmma",
    .needs = TW_GPU_WGMMA,
    .async = &async,
    .why_not = why_not,
    .plan = plan,
    .describe = describe,
    .emit = twg_emit_wgmma,
    .emit_wait = twg_emit_wgmma_wait,
};
