/* roles.c - rules: warp roles, and warps that take turns
 *
 * What a single lane does for its warp is one predicated instruction where there is one, and a branch to code
 * that `elect` guards where there are more: the assembler takes such code to be uniform. */
#include "lowering/gpu/facts/roles.h"
#include "lowering/gpu/emit/one_lane.h"
#include "lowering/gpu/emit/rules.h"

#include "tilewright/machine.h"

#include <stdio.h>

static const MlirType nothing = {NULL};

/* ---- roles --------------------------------------------------------------------------------------- */

/* Registers go from one role to the other: whole warpgroups ask for it together. */
static void set_registers(tw_emitter_t *e, MlirOperation op, const char *count, const char *direction) {
  char text[64];
  if (!tw_has_attr(op, count))
    return;
  snprintf(text, sizeof text, "setmaxnreg.%s.sync.aligned.u32 %d;", direction, (int)tw_attr_int(op, count, 0));
  twg_asm(e, text, "", nothing, 0, NULL, TW_PTX_FENCE);
}

/* From here on threads and warps are numbered within their consumer group. The entry block computes the numbers. */
static void enter_consumer_group(tw_emitter_t *e) {
  if (e->consumer_groups == 1)
    return;
  MlirBlock here = e->block;
  e->consumer_group = twg_binary(e, "llvm.udiv", twg_uniform_warp(e), twg_const_i32(e, e->num_warps));
  e->block = e->entry;
  e->thread = twg_binary(e, "llvm.urem", e->thread, twg_const_i32(e, 32 * (int64_t)e->num_warps));
  e->warp = twg_binary(e, "llvm.urem", e->warp, twg_const_i32(e, e->num_warps));
  e->block = here;
}

/* Number of the warpgroup, the same in all lanes as far as the assembler can tell. */
static MlirValue warpgroup(tw_emitter_t *e) {
  return twg_binary(e, "llvm.udiv", twg_uniform_warp(e), twg_const_i32(e, TW_WARPGROUP_WARPS));
}

static bool rule_consumer_group(tw_emitter_t *e, MlirOperation op) {
  MlirValue consumer_group = tw_has_attr(op, TW_GROUPS) ? warpgroup(e) : e->consumer_group;
  twg_set_scalar(e, op, 0, consumer_group.ptr ? consumer_group : twg_const_i32(e, 0));
  return true;
}

/* One barrier for each consumer group or warpgroup: its threads wait there for those of the one before. These are
 * numbers 4 to 7 of 16. Lower ones belong to consumer groups, higher ones to warpgroups that store. */
static bool meet_where_ordered(tw_emitter_t *e, MlirOperation op, const char *intrinsic, bool next) {
  enum { FIRST_ORDER_BARRIER = 4, MEETING = 2 };
  bool groups = tw_has_attr(op, TW_GROUPS);
  MlirValue consumer_group = groups ? warpgroup(e) : e->consumer_group;
  int count = groups ? MEETING : e->consumer_groups;
  if (consumer_group.ptr == NULL) {
    tw_op_error(op, "stands where there is no consumer group");
    return false;
  }
  if (next)
    consumer_group = twg_binary(e, "llvm.urem", twg_binary(e, "llvm.add", consumer_group, twg_const_i32(e, 1)),
                                twg_const_i32(e, count));
  MlirValue operands[] = {twg_binary(e, "llvm.add", consumer_group, twg_const_i32(e, FIRST_ORDER_BARRIER)),
                          twg_const_i32(e, 32 * (int64_t)(groups ? TW_WARPGROUP_WARPS : e->num_warps) * MEETING)};
  twg_intrinsic(e, intrinsic, nothing, 2, operands, TW_PTX_EFFECT);
  return true;
}

static bool rule_ordered_wait(tw_emitter_t *e, MlirOperation op) {
  return meet_where_ordered(e, op, "llvm.nvvm.barrier.cta.sync.aligned.count", false);
}

static bool rule_ordered_arrive(tw_emitter_t *e, MlirOperation op) {
  return meet_where_ordered(e, op, "llvm.nvvm.barrier.cta.arrive.aligned.count", true);
}

/* Whether all threads of the producer start copies; else one lane does. */
static bool gathers(MlirOperation roles) { return tw_has_op_like(roles, tw_op_copies_elements); }

/* Number of the warp among `count` producers. The number of warps before them is a multiple of `count`. */
static MlirValue producers_warp(tw_emitter_t *e, int count) {
  MlirBlock here = e->block;
  e->block = e->entry;
  MlirValue warp = twg_binary(e, "llvm.and", e->warp, twg_const_i32(e, count - 1));
  e->block = here;
  return warp;
}

static bool emit_region(tw_emitter_t *e, MlirOperation op, int region) {
  return e->emit_block(e, tw_region_block(op, region));
}

/* The producer's warps end with their region; what follows the op is for the consumers. */
static bool rule_roles(tw_emitter_t *e, MlirOperation op) {
  if (!tw_op_is(mlirOperationGetParentOperation(op), TW_FUNC_FUNC)) {
    tw_op_error(op, "stands inside of another op; roles are those of the whole kernel");
    return false;
  }
  MlirBlock producer = twg_new_block(e, 0, NULL), consumer = twg_new_block(e, 0, NULL), end = twg_new_block(e, 0, NULL);
  int consumer_warps = e->num_warps * e->consumer_groups;
  MlirValue first = twg_const_i32(e, consumer_warps);
  twg_branch_if(e, twg_icmp(e, TW_UGE, twg_uniform_warp(e), first), producer, 0, NULL, consumer, 0, NULL);
  e->block = producer;
  set_registers(e, op, "producer_registers", "dec");
  MlirValue warp = e->warp;
  int num_warps = e->num_warps;
  e->is_alone = !gathers(op);
  if (e->is_alone) {
    twg_enter_alone(e, consumer_warps, end);
  } else {
    e->num_warps = e->producer_warps;
    e->warp = producers_warp(e, e->producer_warps);
  }
  if (!emit_region(e, op, 0))
    return false;
  e->is_alone = false;
  e->warp = warp;
  e->num_warps = num_warps;
  twg_branch(e, end, 0, NULL);
  e->block = end;
  twg_op(e, "llvm.return", nothing, 0, NULL, 0, NULL);
  e->block = consumer;
  e->is_consumer = true;
  set_registers(e, op, "consumer_registers", "inc");
  enter_consumer_group(e);
  return emit_region(e, op, 1);
}

TWG_RULE(TW_TILE_ROLES, rule_roles)
TWG_RULE(TW_TILE_CONSUMER_GROUP, rule_consumer_group)
TWG_RULE(TW_TILE_ORDERED_WAIT, rule_ordered_wait)
TWG_RULE(TW_TILE_ORDERED_ARRIVE, rule_ordered_arrive)
