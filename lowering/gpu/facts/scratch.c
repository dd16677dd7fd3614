/* scratch.c - shared memory that ops need for themselves. See scratch.h. */
#include "lowering/gpu/facts/scratch.h"

#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/layout/cost.h"
#include "tilewright/dialect.h"

/* What one value of an op needs ends where another of any width may begin. */
static int64_t whole_words(int64_t bytes) {
  enum { ALIGN = 8 };
  return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* ---- reductions ---------------------------------------------------------------------------------- */

bool tw_reduces_to_index(tw_reduce_kind_t kind) { return kind == TW_REDUCE_ARGMIN || kind == TW_REDUCE_ARGMAX; }

int64_t tw_part_bytes(MlirType held) { return tw_bits(held) < 8 ? 1 : (int64_t)tw_bits(held) / 8; }

int tw_across_bits(MlirOperation op) {
  int bits = 0;
  while (INT64_C(2) << bits <= tw_attr_int(op, TW_ACROSS, 1))
    bits++;
  return bits;
}

int64_t tw_reduce_index_offset(int64_t count, int64_t part_bytes) { return whole_words(count * part_bytes); }

/* Bytes of the partial results. */
static int64_t reduce_parts(MlirOperation op) {
  tw_layout_t l;
  int axis = (int)tw_attr_int(op, "axis", 0), warps;
  tw_reduce_kind_t kind = (tw_reduce_kind_t)tw_attr_int(op, "kind", 0);
  MlirType type = mlirValueGetType(mlirOperationGetOperand(op, 0)), element = tw_element(type);
  if (!tw_layout_of_type(type, &l) || (tw_layout_warps_along(&l, axis, &warps) == 0 && tw_across_bits(op) == 0))
    return 0;
  int64_t results = tw_count(type) / tw_layout_extent(&l, axis);
  int64_t wide = mlirTypeIsAFloat(element) && !mlirTypeIsAF64(element) ? 4 : tw_part_bytes(element);
  int64_t count = results << (warps + tw_across_bits(op));
  return tw_reduces_to_index(kind) ? tw_reduce_index_offset(count, wide) + count * 4 : count * wide;
}

int64_t tw_across_barrier_offset(MlirOperation op) { return whole_words(reduce_parts(op)); }

static int64_t reduce_scratch(MlirOperation op) {
  enum { BARRIER_BYTES = 8 };
  return tw_across_bits(op) > 0 ? tw_across_barrier_offset(op) + BARRIER_BYTES : reduce_parts(op);
}

/* ---- scans --------------------------------------------------------------------------------------- */

tw_scan_exchange_t tw_scan_exchange_of(const tw_layout_t *l, const tw_axis_bits_t *bits, int from, int to) {
  tw_scan_exchange_t x = {.count = INT64_C(1) << (to - from)};
  for (int k = from; k < to; k++)
    x.step[TW_WARP][bits->at[k].bit] = UINT32_C(1) << (k - from);
  for (int input = TW_REGISTER; input <= TW_WARP; input++) {
    uint32_t taken = tw_layout_copies(l, (tw_input_t)input) | tw_axis_bits_done(bits, (tw_input_t)input, to);
    for (int i = 0; i < l->bits[input]; i++)
      if ((taken >> i & 1) == 0) {
        x.step[input][i] = (uint32_t)x.count;
        x.count *= 2;
      }
  }
  return x;
}

bool tw_read_scan(MlirOperation op, tw_layout_t *layout, tw_axis_bits_t *bits) {
  MlirType type = mlirValueGetType(mlirOperationGetOperand(op, 0));
  return tw_layout_of_type(type, layout) && tw_layout_axis_bits(layout, (int)tw_attr_int(op, "axis", 0), bits);
}

int64_t tw_scan_part_offset(MlirOperation op, int64_t count, int part) {
  int64_t offset = 0;
  for (int p = 0; p < part; p++)
    offset += whole_words(count * tw_memory_bytes(tw_operand_element(op, p)));
  return offset;
}

static int64_t scan_scratch(MlirOperation op) {
  tw_layout_t layout;
  tw_axis_bits_t bits;
  if (!tw_read_scan(op, &layout, &bits))
    return 0;
  for (int from = 0, to; from < bits.count; from = to) {
    to = tw_axis_run_end(&bits, from);
    if (bits.at[from].input == TW_WARP)
      return tw_scan_part_offset(op, tw_scan_exchange_of(&layout, &bits, from, to).count,
                                 (int)mlirOperationGetNumResults(op));
  }
  return 0;
}

/* ---- all ----------------------------------------------------------------------------------------- */

int64_t tw_shared_tile_bytes(MlirValue value) {
  MlirType type = mlirValueGetType(value);
  return tw_is_tile(type) ? (tw_count(type) * tw_memory_bytes(tw_element(type)) + 15) / 16 * 16 : 0;
}

/* All tiles that it takes. */
static int64_t tiles_scratch(MlirOperation op) {
  int64_t bytes = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    bytes += tw_shared_tile_bytes(mlirOperationGetOperand(op, i));
  return bytes;
}

/* What threads hold copies of is told by its owner; in a SIMT kernel each thread has its own. */
static int64_t atomic_scratch(MlirOperation op) {
  MlirValue result = mlirOperationGetResult(op, 0);
  MlirType type = mlirValueGetType(result);
  tw_layout_t layout;
  if (mlirOpOperandIsNull(mlirValueGetFirstUse(result)) || tw_is_of_thread(op))
    return 0;
  if (tw_is_tile(type) && (!tw_layout_of_type(type, &layout) ||
                           (tw_layout_copies(&layout, TW_LANE) | tw_layout_copies(&layout, TW_WARP)) == 0))
    return 0;
  return tw_count(type) * tw_memory_bytes(tw_element(type));
}

static int64_t conversion_scratch(MlirOperation op) {
  tw_layout_t from, to;
  MlirType type = mlirValueGetType(mlirOperationGetOperand(op, 0));
  if (!tw_layout_of_type(type, &from) || !tw_layout_of_type(mlirValueGetType(mlirOperationGetResult(op, 0)), &to) ||
      !tw_converts_through_shared(&from, &to))
    return 0;
  return tw_count(type) * tw_memory_bytes(tw_element(type));
}

/* Of a row that begins anywhere. */
static int64_t row_scratch(MlirOperation op) {
  MlirType type = mlirValueGetType(tw_moved_tile(op));
  return tw_has_attr(op, TW_REALIGNED) ? tw_count(type) * tw_memory_bytes(tw_element(type)) + TW_REALIGNED_PIECE : 0;
}

int64_t tw_scratch_bytes(MlirOperation op) {
  static int64_t (*const needs[TW_NUM_OP_KINDS])(MlirOperation) = {
#define TW_OWN(kind, operands, function) [TW_##kind] = (function),
#include "TileScratch.inc"
#undef TW_OWN
  };
  int64_t (*need)(MlirOperation) = needs[tw_op_kind(op)];
  return need != NULL ? need(op) : 0;
}

int64_t tw_scratch_offset(MlirOperation op) { return tw_attr_int(op, "tile.scratch", 0); }
