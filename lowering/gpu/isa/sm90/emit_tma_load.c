/* emit_tma_load.c - rules: TMA loads
 *
 * One lane starts them, a box at a time. Coordinates are i32 and may lie outside of the array, where the
 * accelerator reads zeros; tiles too far away to count so are brought to the end of what an i32 holds. */
#include "lowering/gpu/emit/one_lane.h"
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/emit/shared_access.h"
#include "lowering/gpu/facts/kernel_words.h"

#include "tilewright/dialect.h"

#include <stdio.h>

/* ---- tensor maps --------------------------------------------------------------------------------- */

/* Number of the map among those of the kernel; num_maps if it is new. */
static int find_map(const tw_emitter_t *e, const tw_tensor_map_t *map) {
  int i = 0;
  while (i < e->num_maps && !tw_engine_same_map(&e->maps[i], map))
    i++;
  return i;
}

typedef struct {
  tw_emitter_t *emitter;
  bool failed;
} collect_t;

static MlirWalkResult collect(MlirOperation op, void *user) {
  collect_t *c = user;
  tw_emitter_t *e = c->emitter;
  tw_engine_copy_t copy;
  if (!tw_op_loads_by_engine(op) && !tw_op_stores_by_engine(op))
    return MlirWalkResultAdvance;
  const char *problem = tw_engine_plan(op, &copy);
  if (problem == NULL && find_map(e, &copy.map) == TW_MAX_MAPS)
    problem = "the kernel has too many tensor maps";
  if (problem != NULL) {
    tw_op_error(op, "is beyond the tensor memory accelerator: %s", problem);
    c->failed = true;
    return MlirWalkResultInterrupt;
  }
  if (find_map(e, &copy.map) == e->num_maps)
    e->maps[e->num_maps++] = copy.map;
  return MlirWalkResultAdvance;
}

bool twg_collect_maps(tw_emitter_t *e, MlirOperation kernel) {
  collect_t c = {e, false};
  e->num_maps = 0;
  mlirOperationWalk(kernel, collect, &c, MlirWalkPreOrder);
  return !c.failed;
}

MlirValue twg_tensor_map(tw_emitter_t *e, const tw_engine_copy_t *copy) {
  return mlirBlockGetArgument(e->entry, find_map(e, &copy->map));
}

/* ---- coordinates --------------------------------------------------------------------------------- */

/* An i64 brought into the range of an i32. */
static MlirValue within_i32(tw_emitter_t *e, MlirValue x) {
  x = twg_binary(e, "llvm.intr.smin", x, twg_const_int(e, e->i64, INT32_MAX));
  return twg_binary(e, "llvm.intr.smax", x, twg_const_int(e, e->i64, INT32_MIN));
}

MlirValue twg_box_start(tw_emitter_t *e, MlirValue index, int64_t extent) {
  bool is_wide = mlirIntegerTypeGetWidth(mlirValueGetType(index)) == 64;
  index = is_wide ? within_i32(e, index) : twg_cast(e, "llvm.sext", e->i64, index);
  MlirValue at = twg_binary(e, "llvm.mul", index, twg_const_int(e, e->i64, extent));
  return twg_cast(e, "llvm.trunc", e->i32, within_i32(e, at));
}

/* Flat index of the first element of box `number` within the tile. */
static uint32_t box_start(const tw_engine_copy_t *copy, int number) {
  uint32_t at = 0;
  for (int b = 0; b < copy->step_bits; b++)
    if (number >> b & 1)
      at ^= copy->step[b];
  return at;
}

/* ---- loads --------------------------------------------------------------------------------------- */

/* What stands for `cache`: the policies that createpolicy.fractional makes of all bytes; null: the usual one. */
static const char *cache_policy(MlirOperation op) {
  static const char *const policies[] = {
      [TW_EVICT_NORMAL] = NULL, [TW_EVICT_FIRST] = "0x12F0000000000000", [TW_EVICT_LAST] = "0x14F0000000000000"};
  return policies[tw_attr_int(op, "cache", TW_EVICT_NORMAL)];
}

/* `all`: to the same place in all blocks of the cluster, whose barriers there count it. */
static void load_box(tw_emitter_t *e, MlirValue to, MlirValue map, MlirValue barrier, const MlirValue *at, int rank,
                     bool all, const char *policy) {
  enum { EVERY_BLOCK = (1 << TW_MULTICAST_BLOCKS) - 1 };
  char text[320], constraints[32];
  int n = snprintf(text, sizeof text,
                   "cp.async.bulk.tensor.%dd.shared::cluster.global.tile.mbarrier::complete_tx::bytes%s%s "
                   "[$0], [$1, {$3",
                   rank, all ? ".multicast::cluster" : "", policy ? ".L2::cache_hint" : "");
  int c = snprintf(constraints, sizeof constraints, "r,l,r,r"), num = 3 + rank;
  MlirValue operands[4 + TW_ENGINE_MAX_RANK] = {to, map, barrier};
  for (int d = 0; d < rank; d++) {
    operands[3 + d] = at[d];
    if (d == 0)
      continue;
    n += snprintf(text + n, sizeof text - (size_t)n, ", $%d", 3 + d);
    c += snprintf(constraints + c, sizeof constraints - (size_t)c, ",r");
  }
  n += snprintf(text + n, sizeof text - (size_t)n, "}], [$2]");
  if (all) {
    snprintf(constraints + c, sizeof constraints - (size_t)c, ",h");
    n += snprintf(text + n, sizeof text - (size_t)n, ", $%d", num);
    operands[num++] = twg_const_int(e, e->i16, EVERY_BLOCK);
  }
  snprintf(text + n, sizeof text - (size_t)n, "%s%s;", policy ? ", " : "", policy ? policy : "");
  twg_asm(e, text, constraints, (MlirType){NULL}, num, operands, TW_PTX_FENCE);
}

/* Lets `at` and `*stage` begin with the part of the tile that this block of the cluster brings: the boxes whose last
 * step is taken or not. */
static void go_to_own_part(tw_emitter_t *e, const tw_engine_copy_t *copy, const tw_layout_t *tile, MlirValue *at,
                           MlirValue *stage) {
  int last = copy->step_bits - 1;
  MlirValue rank = twg_binary(e, "llvm.and", twg_op(e, "nvvm.read.ptx.sreg.ctaid.x", e->i32, 0, NULL, 0, NULL),
                              twg_const_i32(e, TW_MULTICAST_BLOCKS - 1));
  for (int d = 0; d < copy->map.rank; d++) {
    uint32_t step = tw_layout_coord(tile, copy->step[last], copy->dim[d]);
    if (step)
      at[d] = twg_binary(e, "llvm.add", at[d], twg_binary(e, "llvm.mul", rank, twg_const_i32(e, step)));
  }
  *stage = twg_offset_pointer(e, *stage, twg_binary(e, "llvm.mul", rank, twg_const_i32(e, copy->box_bytes << last)));
}

static bool rule_tma_load(tw_emitter_t *e, MlirOperation op) {
  enum { AFTER_INDEX = 4 };
  intptr_t buffer = mlirOperationGetNumOperands(op) - AFTER_INDEX;
  tw_engine_copy_t copy;
  tw_layout_t tile;
  if (tw_engine_plan(op, &copy) != NULL ||
      !tw_layout_of_type(mlirValueGetType(mlirOperationGetOperand(op, buffer)), &tile))
    return false;
  MlirBlock rest = twg_begin_alone(e);
  MlirValue map = twg_tensor_map(e, &copy);
  MlirValue stage = twg_stage_pointer(e, op, buffer), barrier = twg_barrier_pointer(e, op, buffer + 2);
  MlirValue start[TW_ENGINE_MAX_RANK], at[TW_ENGINE_MAX_RANK];
  for (int d = 0; d < copy.map.rank; d++)
    start[d] = twg_box_start(e, twg_operand(e, op, 1 + copy.dim[d]).at[0], tw_layout_extent(&tile, copy.dim[d]));
  bool multicast = tw_has_attr(op, TW_MULTICAST);
  if (multicast)
    go_to_own_part(e, &copy, &tile, start, &stage);
  for (int i = 0; i < 1 << (copy.step_bits - multicast); i++) {
    for (int d = 0; d < copy.map.rank; d++) {
      uint32_t step = tw_layout_coord(&tile, box_start(&copy, i), copy.dim[d]);
      at[d] = step ? twg_binary(e, "llvm.add", start[d], twg_const_i32(e, step)) : start[d];
    }
    MlirValue to = i ? twg_offset_pointer(e, stage, twg_const_i32(e, i * copy.box_bytes)) : stage;
    load_box(e, to, map, barrier, at, copy.map.rank, multicast, cache_policy(op));
  }
  twg_end_alone(e, rest);
  return true;
}

TWG_RULE(TW_TILE_TMA_LOAD, rule_tma_load)
