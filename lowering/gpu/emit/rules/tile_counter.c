/* tile_counter.c - rules: the counter of the dynamic tile scheduler, and numbers that pass between warps
 *
 * The counter goes from zero to total - 1 and back to zero: the last tile leaves it as it was. A number passes
 * through the 8 bytes that belong to its barrier, behind all barriers; these order it. */
#include "lowering/gpu/emit/one_lane.h"
#include "lowering/gpu/emit/rules.h"

#include "tilewright/dialect.h"

enum { COUNTER_BYTES = 4, NUMBER_BYTES = 8, ALL_LANES = -1 };

/* Counts up, and from `most` to zero again; returns the old count. It orders nothing else. */
static MlirValue count_up(tw_emitter_t *e, MlirValue counter, MlirValue most) {
  enum { UINC_WRAP = 15, MONOTONIC = 2 };
  MlirValue operands[] = {counter, most};
  MlirNamedAttribute attributes[] = {
      twg_named(e, "bin_op", twg_i64_attr(e, UINC_WRAP)),
      twg_named(e, "ordering", twg_i64_attr(e, MONOTONIC)),
      twg_named(e, "syncscope", mlirStringAttrGet(e->context, tw_str("device"))),
  };
  return twg_op(e, "llvm.atomicrmw", e->i32, 2, operands, 3, attributes);
}

/* One lane of the producer's first warp counts: it alone knows the number. */
static bool rule_next_tile(tw_emitter_t *e, MlirOperation op) {
  MlirValue word = twg_operand(e, op, 0).at[0], total = twg_operand(e, op, 1).at[0];
  MlirValue otherwise = twg_operand(e, op, 2).at[0];
  MlirBlock counts = twg_new_block(e, 0, NULL), rest = twg_new_block(e, 1, &e->i32);
  MlirValue taken = twg_icmp(e, TW_NE, word, twg_const_int(e, e->i64, 0));
  if (!e->is_alone)
    taken = twg_binary(e, "llvm.and", taken, twg_is_first_lane(e));
  twg_branch_if(e, taken, counts, 0, NULL, rest, 1, &otherwise);
  e->block = counts;
  MlirValue counter =
      twg_offset_pointer(e, twg_cast(e, "llvm.inttoptr", e->global, word), twg_const_int(e, e->i64, -COUNTER_BYTES));
  MlirValue old = count_up(e, counter, twg_binary(e, "llvm.sub", total, twg_const_i32(e, 1)));
  twg_branch(e, rest, 1, &old);
  e->block = rest;
  twg_set_scalar(e, op, 0, mlirBlockGetArgument(rest, 0));
  return true;
}

/* Where the number of a stage lies. */
static MlirValue number_pointer(tw_emitter_t *e, MlirOperation op, intptr_t at) {
  int64_t barriers = tw_barriers_type_count(mlirValueGetType(mlirOperationGetOperand(op, at)));
  return twg_offset_pointer(e, twg_barrier_pointer(e, op, at), twg_const_i32(e, NUMBER_BYTES * barriers));
}

static bool rule_post_number(tw_emitter_t *e, MlirOperation op) {
  MlirBlock rest = twg_begin_alone(e);
  twg_store_to(e, twg_operand(e, op, 0).at[0], number_pointer(e, op, 1), NUMBER_BYTES);
  twg_end_alone(e, rest);
  return true;
}

/* The first lane's number, in a form that the assembler takes for uniform. Lanes that have read it meet before one of
 * them gives its place back. */
static bool rule_read_number(tw_emitter_t *e, MlirOperation op) {
  MlirValue number = twg_load_from(e, e->i32, number_pointer(e, op, 0), NUMBER_BYTES);
  if (!e->is_alone)
    twg_intrinsic(e, "llvm.nvvm.bar.warp.sync", (MlirType){NULL}, 1, (MlirValue[]){twg_const_i32(e, ALL_LANES)},
                  TW_PTX_EFFECT);
  twg_set_scalar(e, op, 0, e->is_alone ? number : twg_uniform(e, number));
  return true;
}

TWG_RULE(TW_TILE_POST_NUMBER, rule_post_number)
TWG_RULE(TW_TILE_READ_NUMBER, rule_read_number)
TWG_RULE(TW_TILE_NEXT_TILE, rule_next_tile)
