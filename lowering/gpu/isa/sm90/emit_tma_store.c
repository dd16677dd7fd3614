/* emit_tma_store.c - rules: TMA stores
 *
 * Each warpgroup works by itself. For each of its boxes: all wait until the stage's last box was read, write the box
 * (by stmatrix, where elements have 16 bits), and show it to the accelerator; then one lane starts the copy, always the
 * same one. All threads close a group of copies for each box, and wait for groups; only that lane's hold any. */
#include "lowering/gpu/emit/one_lane.h"
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/isa/matrix_access.h"
#include "lowering/gpu/machine/store_boxes.h"

#include "tilewright/dialect.h"

#include <stdio.h>

enum { FIRST_BARRIER = 8, GROUP_WARPS = 1 << TW_STORE_GROUP_WARP_BITS, FIRST_INDEX = 3 };

typedef struct {
  MlirOperation op;
  tw_layout_t tile, shared; /* of the value, of a stage */
  tw_store_boxes_t boxes;
  tw_engine_copy_t copy;
  MlirType element;
  tw_values_t values;
  int stages; /* of a warpgroup */
  int64_t stage_bytes;
  MlirValue map, stage; /* stage: the first of this group's */
  MlirValue warp;       /* uniform */
  MlirValue is_first;   /* of its group */
  MlirValue first[TW_ENGINE_MAX_RANK];
} store_t;

static bool read_op(tw_emitter_t *e, MlirOperation op, store_t *s) {
  int64_t order[TW_LAYOUT_MAX_RANK];
  MlirType buffer = mlirValueGetType(mlirOperationGetOperand(op, 1));
  *s = (store_t){.op = op, .element = tw_buffer_type_element(buffer), .values = twg_operand(e, op, 0)};
  if (!tw_layout_of_type(mlirValueGetType(mlirOperationGetOperand(op, 0)), &s->tile) ||
      !tw_layout_of_type(buffer, &s->shared))
    return false;
  int inner = tw_access_contiguous_dim(op, s->tile.rank), bits = tw_memory_bits(s->element);
  tw_access_order(op, s->tile.rank, order);
  if (!tw_store_boxes_of(&s->tile, inner, bits, &s->boxes) ||
      tw_engine_plan_for(mlirOperationGetOperand(op, 2), order, buffer, &s->copy) != NULL || s->copy.step_bits != 0) {
    tw_op_error(op, "has no tile that warpgroups own in boxes");
    return false;
  }
  s->stages = (int)(tw_buffer_type_extent(buffer, 0) >> s->boxes.group_bits) / e->consumer_groups;
  s->stage_bytes = s->copy.box_bytes;
  return true;
}

static MlirValue group_of(tw_emitter_t *e, MlirValue warp) {
  return twg_binary(e, "llvm.lshr", warp, twg_const_i32(e, TW_STORE_GROUP_WARP_BITS));
}

/* Where the box of group 0 begins, and what the group's number adds. */
static void find_place(tw_emitter_t *e, store_t *s) {
  MlirValue group = group_of(e, s->warp);
  for (int d = 0; d < s->copy.map.rank; d++) {
    int dim = s->copy.dim[d];
    MlirValue at = twg_box_start(e, twg_operand(e, s->op, FIRST_INDEX + dim).at[0], tw_layout_extent(&s->tile, dim));
    for (int i = 0; i < s->boxes.group_bits; i++) {
      uint32_t step = tw_layout_coord(&s->tile, s->boxes.group[i], dim);
      if (step == 0)
        continue;
      MlirValue bit = twg_binary(e, "llvm.and", group, twg_const_i32(e, INT64_C(1) << i));
      MlirValue part = twg_binary(e, "llvm.mul", bit, twg_const_i32(e, step >> i));
      at = twg_binary(e, "llvm.add", at, part);
    }
    s->first[d] = at;
  }
}

/* Number of the group in the block: those of one consumer group after those of another. */
static MlirValue group_of_block(tw_emitter_t *e, MlirValue warp) {
  MlirValue group = group_of(e, warp);
  if (e->consumer_group.ptr == NULL)
    return group;
  MlirValue before = twg_binary(e, "llvm.mul", e->consumer_group, twg_const_i32(e, e->num_warps / GROUP_WARPS));
  return twg_binary(e, "llvm.add", before, group);
}

static void meet_group(tw_emitter_t *e) {
  MlirValue id = twg_binary(e, "llvm.add", group_of_block(e, e->warp), twg_const_i32(e, FIRST_BARRIER));
  MlirValue operands[] = {id, twg_const_i32(e, 32 * GROUP_WARPS)};
  twg_intrinsic(e, "llvm.nvvm.barrier.cta.sync.aligned.count", (MlirType){NULL}, 2, operands, TW_PTX_EFFECT);
}

static void wait_until_read(tw_emitter_t *e, int pending) {
  char text[64];
  snprintf(text, sizeof text, "cp.async.bulk.wait_group.read %d;", pending);
  twg_asm(e, text, "", (MlirType){NULL}, 0, NULL, TW_PTX_EFFECT);
}

/* One lane of the group's first warp starts the copy. Predicated, so that the boxes of a tile are one block of code, in
 * which tile-order-stores brings the arithmetic of each to its stores. */
static void copy_box(tw_emitter_t *e, const store_t *s, MlirValue from, int number) {
  char text[320], constraints[32];
  MlirValue operands[3 + TW_ENGINE_MAX_RANK] = {s->map, from, s->is_first};
  int n = snprintf(text, sizeof text,
                   "{ .reg .pred p;\nelect.sync _|p, 0xffffffff;\nand.pred p, p, $2;\n"
                   "@p cp.async.bulk.tensor.%dd.global.shared::cta.tile.bulk_group [$0, {",
                   s->copy.map.rank);
  int c = snprintf(constraints, sizeof constraints, "l,r,b");
  uint32_t start = tw_store_boxes_start(&s->boxes, number);
  for (int d = 0; d < s->copy.map.rank; d++) {
    uint32_t step = tw_layout_coord(&s->tile, start, s->copy.dim[d]);
    operands[3 + d] = step ? twg_binary(e, "llvm.add", s->first[d], twg_const_i32(e, step)) : s->first[d];
    n += snprintf(text + n, sizeof text - (size_t)n, "%s$%d", d ? ", " : "", 3 + d);
    c += snprintf(constraints + c, sizeof constraints - (size_t)c, ",r");
  }
  snprintf(text + n, sizeof text - (size_t)n, "}], [$1];\ncp.async.bulk.commit_group; }");
  twg_asm(e, text, constraints, (MlirType){NULL}, 3 + s->copy.map.rank, operands, TW_PTX_EFFECT);
}

static void store_box(tw_emitter_t *e, const store_t *s, int number) {
  tw_values_t values = twg_new_values(e, tw_layout_count(&s->boxes.box, TW_REGISTER));
  for (int r = 0; r < values.count; r++)
    values.at[r] = s->values.at[tw_store_boxes_register(&s->boxes, number, r)];
  int64_t offset = number % s->stages * s->stage_bytes;
  MlirValue to = offset ? twg_offset_pointer(e, s->stage, twg_const_i32(e, offset)) : s->stage;
  wait_until_read(e, s->stages - 1);
  meet_group(e);
  twg_write_buffer(e, &s->boxes.box, &s->shared, s->element, values, to);
  twg_asm(e, "fence.proxy.async.shared::cta;", "", (MlirType){NULL}, 0, NULL, TW_PTX_EFFECT);
  meet_group(e);
  copy_box(e, s, to, number);
}

static bool rule_tma_store(tw_emitter_t *e, MlirOperation op) {
  store_t s;
  if (!read_op(e, op, &s))
    return false;
  s.map = twg_tensor_map(e, &s.copy);
  s.warp = twg_uniform_warp(e);
  MlirValue within = twg_binary(e, "llvm.and", s.warp, twg_const_i32(e, GROUP_WARPS - 1));
  s.is_first = twg_icmp(e, TW_EQ, within, twg_const_i32(e, 0));
  MlirValue distance = twg_binary(e, "llvm.mul", group_of_block(e, s.warp), twg_const_i32(e, s.stages * s.stage_bytes));
  s.stage = twg_offset_pointer(e, twg_operand(e, op, 1).at[0], distance);
  find_place(e, &s);
  for (int number = 0; number < 1 << s.boxes.num_outside; number++)
    store_box(e, &s, number);
  return true;
}

static bool rule_tma_store_wait(tw_emitter_t *e, MlirOperation op) {
  (void)op;
  wait_until_read(e, 0);
  return true;
}

TWG_RULE(TW_TILE_TMA_STORE, rule_tma_store)
TWG_RULE(TW_TILE_TMA_STORE_WAIT, rule_tma_store_wait)
