/* one_lane.c - what one lane does for its warp. See one_lane.h. */
#include "lowering/gpu/emit/one_lane.h"

enum { ALL_LANES = -1 };

MlirValue twg_uniform(tw_emitter_t *e, MlirValue x) {
  MlirValue operands[] = {twg_const_i32(e, ALL_LANES), x, twg_const_i32(e, 0), twg_const_i32(e, 31)};
  return twg_intrinsic(e, "llvm.nvvm.shfl.sync.idx.i32", e->i32, 4, operands, TW_PTX_EFFECT);
}

MlirValue twg_uniform_warp(tw_emitter_t *e) { return twg_uniform(e, e->warp); }

static MlirValue elect(tw_emitter_t *e) { return twg_op(e, "nvvm.elect.sync", e->i1, 0, NULL, 0, NULL); }

/* Opens a new block, which is entered where the condition holds. */
static void enter_if(tw_emitter_t *e, MlirValue condition, MlirBlock otherwise) {
  MlirBlock block = twg_new_block(e, 0, NULL);
  twg_branch_if(e, condition, block, 0, NULL, otherwise, 0, NULL);
  e->block = block;
}

static MlirValue is_warp(tw_emitter_t *e, int64_t number) {
  return twg_icmp(e, TW_EQ, twg_uniform_warp(e), twg_const_i32(e, number));
}

void twg_enter_alone(tw_emitter_t *e, int64_t number, MlirBlock otherwise) {
  enter_if(e, is_warp(e, number), otherwise);
  enter_if(e, elect(e), otherwise);
}

MlirValue twg_is_first_lane(tw_emitter_t *e) { return twg_binary(e, "llvm.and", is_warp(e, 0), elect(e)); }

MlirBlock twg_begin_first_warp(tw_emitter_t *e) {
  if (e->is_alone)
    return (MlirBlock){NULL};
  MlirBlock rest = twg_new_block(e, 0, NULL);
  enter_if(e, is_warp(e, 0), rest);
  return rest;
}

void twg_end_first_warp(tw_emitter_t *e, MlirBlock rest) {
  if (mlirBlockIsNull(rest))
    return;
  twg_branch(e, rest, 0, NULL);
  e->block = rest;
}

MlirBlock twg_begin_alone(tw_emitter_t *e) {
  MlirBlock rest = twg_begin_first_warp(e);
  if (!mlirBlockIsNull(rest))
    enter_if(e, elect(e), rest);
  e->is_alone = true;
  return rest;
}

void twg_end_alone(tw_emitter_t *e, MlirBlock rest) {
  e->is_alone = mlirBlockIsNull(rest);
  twg_end_first_warp(e, rest);
}

MlirValue twg_barrier_pointer(tw_emitter_t *e, MlirOperation op, intptr_t at) {
  MlirValue base = twg_operand(e, op, at).at[0], stage = twg_operand(e, op, at + 1).at[0];
  return twg_offset_pointer(e, base, twg_binary(e, "llvm.mul", stage, twg_const_i32(e, TWG_BARRIER_BYTES)));
}
