/* pingpong_plan.c - see pingpong_plan.h */
#include "lowering/gpu/roles/pingpong_plan.h"
#include "lowering/gpu/facts/buffer.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/launch_record.h"
#include "tilewright/dialect.h"

/* ---- whether there are consumer groups ----------------------------------------------------------------------- */

/* The loop that all copies are made in, right in the body of a persistent loop of the function; else null. */
static MlirOperation only_loop(const tw_stage_plan_t *plan) {
  MlirOperation loop = mlirOperationGetParentOperation(plan->fills[0].copies[0]);
  MlirOperation blocks = mlirOperationGetParentOperation(loop);
  for (int f = 0; f < plan->num_fills; f++)
    if (!mlirOperationEqual(mlirOperationGetParentOperation(plan->fills[f].copies[0]), loop))
      return tw_null_op();
  const tw_overlap_t *overlap = tw_overlap_of(&plan->overlaps, loop);
  return overlap && overlap->all && tw_has_attr(blocks, TW_PERSISTENT) &&
                 mlirBlockEqual(mlirOperationGetBlock(blocks), tw_region_block(plan->func, 0))
             ? loop
             : tw_null_op();
}

/* Whether the loop runs as often for each block of the persistent loop around it. */
static bool runs_evenly(MlirOperation loop) {
  MlirOperation blocks = mlirOperationGetParentOperation(loop);
  tw_slice_t slice = {.block = tw_loop_body(blocks)};
  for (intptr_t i = 0; i < TW_FOR_INITS; i++)
    tw_slice_add(&slice, mlirOperationGetOperand(loop, i));
  bool even = !tw_has_attr(loop, "unsignedCmp") && !tw_slice_reads(&slice, tw_loop_iv(blocks));
  tw_slice_free(&slice);
  return even;
}

static bool is_of_store(MlirOperation op) { return tw_op_stores_by_engine(op) || tw_op_is(op, TW_TILE_TMA_STORE_WAIT); }

/* A buffer that no multibuffer replaces and no store by TMA uses. */
static bool is_other_buffer(MlirOperation op, const void *plan) {
  if (!tw_makes_buffer(op) || tw_is_filled(plan, mlirOperationGetResult(op, 0)))
    return false;
  TW_EACH_USE(use, mlirOperationGetResult(op, 0))
    if (!is_of_store(mlirOpOperandGetOwner(use)))
      return true;
  return false;
}

static bool has_other_buffers(const tw_stage_plan_t *plan) {
  return !mlirOperationIsNull(tw_find_op(plan->func, is_other_buffer, plan));
}

bool tw_may_pingpong(const tw_stage_plan_t *plan) {
  enum { GROUP = 4 };
  MlirOperation loop = only_loop(plan);
  return !mlirOperationIsNull(loop) && tw_num_warps(plan->func, 0) == GROUP &&
         plan->product_words <= tw_register_budget(plan->func, TW_BUDGET_PINGPONG) &&
         !tw_works_between_products(&plan->overlaps, plan->func) && !plan->has_stores && !has_other_buffers(plan) &&
         runs_evenly(loop);
}

/* ---- turns ----------------------------------------------------------------------------------------- */

/* How often a loop runs, as an i32. What its bounds depend on within `around` is made here too. */
static MlirValue trips_of(tw_role_t *r, MlirOperation loop, MlirBlock around) {
  MlirType i32 = tw_i32(r->at.context), type = mlirValueGetType(mlirOperationGetOperand(loop, 0));
  MlirValue bounds[TW_FOR_INITS];
  for (int i = 0; i < TW_FOR_INITS; i++)
    bounds[i] = tw_copy_slice(&r->at, mlirOperationGetOperand(loop, i), around, &r->values);
  MlirValue length = tw_binary(&r->at, "arith.subi", type, bounds[1], bounds[0]);
  MlirValue trips =
      tw_binary(&r->at, "arith.maxsi", type, tw_binary(&r->at, "arith.ceildivsi", type, length, bounds[2]),
                tw_const_int(&r->at, type, 0));
  return mlirTypeEqual(type, i32) ? trips : tw_unary(&r->at, "arith.trunci", i32, trips);
}

bool tw_is_shared_out(const tw_role_t *r, MlirOperation loop) {
  return !r->producer && r->plan->consumer_groups > 1 && tw_has_attr(loop, TW_PERSISTENT);
}

bool tw_is_ordered(const tw_role_t *r, MlirOperation loop) {
  return !r->producer && r->plan->consumer_groups > 1 && tw_overlap_of(&r->plan->overlaps, loop) != NULL;
}

void tw_ordered_wait(const tw_role_t *r) { tw_build(&r->at, "tile.ordered_wait", (tw_op_parts_t){0}); }

void tw_ordered_arrive(const tw_role_t *r) { tw_build(&r->at, "tile.ordered_arrive", (tw_op_parts_t){0}); }

/* The last consumer group passes the first turn on. */
static void arrive_first(const tw_role_t *r, MlirValue consumer_group) {
  MlirValue last = tw_compare(&r->at, TW_EQ, consumer_group, tw_role_int(r, r->plan->consumer_groups - 1));
  tw_builder_t at = tw_build_guard(&r->at, last);
  tw_build(&at, "tile.ordered_arrive", (tw_op_parts_t){0});
}

MlirValue tw_begin_pingpong(tw_role_t *r, MlirOperation loop, MlirValue bounds[TW_FOR_INITS]) {
  MlirType i32 = tw_i32(r->at.context);
  MlirValue consumer_group = tw_op1(&r->at, "tile.consumer_group", i32, 0, NULL),
            consumer_groups = tw_role_int(r, r->plan->consumer_groups);
  MlirValue trips = trips_of(r, mlirOperationGetParentOperation(r->plan->fills[0].copies[0]), tw_loop_body(loop));
  bounds[0] =
      tw_binary(&r->at, "arith.addi", i32, bounds[0], tw_binary(&r->at, "arith.muli", i32, consumer_group, bounds[2]));
  bounds[2] = tw_binary(&r->at, "arith.muli", i32, bounds[2], consumer_groups);
  tw_skip_stages(r, tw_binary(&r->at, "arith.muli", i32, trips, consumer_group));
  arrive_first(r, consumer_group);
  return tw_binary(&r->at, "arith.muli", i32, trips, tw_role_int(r, r->plan->consumer_groups - 1));
}

/* ---- results --------------------------------------------------------------------------------------- */

static bool is_stored_from(MlirValue buffer) {
  TW_EACH_USE(use, buffer)
    if (tw_op_stores_by_engine(mlirOpOperandGetOwner(use)))
      return true;
  return false;
}

/* Once, however many stores a buffer is for. */
static MlirWalkResult grow_buffer(MlirOperation op, void *user) {
  const tw_stage_plan_t *plan = user;
  if (!tw_makes_buffer(op) || !is_stored_from(mlirOperationGetResult(op, 0)))
    return MlirWalkResultAdvance;
  MlirValue buffer = mlirOperationGetResult(op, 0);
  MlirType type = mlirValueGetType(buffer);
  mlirValueSetType(buffer, tw_with_stages(type, (int)tw_buffer_type_extent(type, 0) * plan->consumer_groups));
  return MlirWalkResultAdvance;
}

void tw_grow_boxes(const tw_stage_plan_t *plan) {
  mlirOperationWalk(plan->func, grow_buffer, (void *)plan, MlirWalkPreOrder);
}
