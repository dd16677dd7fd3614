/* role.c - emits the kernel's ops again for one role. See role.h */
#include "lowering/gpu/roles/role.h"
#include "base/memory.h"
#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/barrier.h"
#include "lowering/gpu/facts/buffer.h"
#include "lowering/gpu/machine/budget.h"

#include <stdlib.h>

/* ---- which ops ----------------------------------------------------------------------------------- */

/* Whether all threads have met, and done nothing but arithmetic since. */
static bool have_met(const tw_role_t *r) {
  MlirOperation last = tw_null_op();
  TW_EACH_OP(op, r->at.block)
    if (!tw_is_arithmetic(op))
      last = op;
  return !mlirOperationIsNull(last) && tw_is_barrier(last);
}

/* What only kept copies and reads of one stage apart. A barrier that orders stores to shared memory stays; so do those
 * of copies where threads store, too, which keep the consumers in step. */
static bool is_obsolete(const tw_role_t *r, MlirOperation op) {
  unsigned here = TW_ORDERS_PRODUCTS | (r->plan->has_stores ? 0 : TW_ORDERS_COPIES);
  if (tw_is_barrier(op))
    return tw_orders_only(op, here) || have_met(r);
  return tw_groups_copies(op) || tw_makes_buffer(op) || tw_op_is(op, TW_TILE_ALLOC_BARRIERS);
}

static bool is_wanted(const tw_role_t *r, MlirOperation op) {
  if (!r->producer)
    return true;
  return tw_is_control(op) ? tw_producer_has(&r->plan->needs, op.ptr)
                           : mlirOperationGetNumResults(op) == 1 &&
                                 tw_producer_has(&r->plan->needs, mlirOperationGetResult(op, 0).ptr);
}

/* ---- copies of ops ------------------------------------------------------------------------------- */

static MlirWalkResult remap(MlirOperation op, void *user) {
  tw_role_t *r = user;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    mlirOperationSetOperand(op, i, tw_role_value(r, mlirOperationGetOperand(op, i)));
  return MlirWalkResultAdvance;
}

/* Reads find their tile in the stages of a multibuffer. */
static void read_from_stage(tw_role_t *r, MlirOperation op, MlirOperation made) {
  for (int i = 0; i < r->plan->num_reads; i++) {
    const tw_stage_read_t *read = &r->plan->reads[i];
    if (!mlirOperationEqual(read->op, op))
      continue;
    const tw_stage_fill_t *fill = &r->plan->fills[read->fill];
    for (int c = 0; c < fill->num_copies; c++)
      if (mlirValueEqual(tw_copy_buffer(fill->copies[c]), mlirOperationGetOperand(op, read->operand)))
        mlirOperationSetOperand(made, read->operand, r->plan->multibuffers[fill->multibuffer].buffers[c]);
    mlirOperationSetOperand(made, read->operand + 1, r->fills[read->fill].stage);
  }
}

/* The type of a tile in the producer, whose warps are fewer than those that the layout was made for: a thread has what
 * several would have. */
static MlirType narrowed(MlirType type) {
  tw_layout_t layout;
  if (!tw_is_tile(type) || !tw_layout_of_type(type, &layout))
    return type;
  int warps = tw_log2(TW_GATHERING_WARPS), all = layout.bits[TW_WARP];
  layout.bits[TW_WARP] = all < warps ? all : warps;
  for (int i = warps; i < all; i++)
    tw_layout_push(&layout, TW_REGISTER, layout.basis[TW_WARP][i]);
  return tw_type_with_layout(type, &layout);
}

static void narrow(MlirOperation op) {
  MlirAttribute value = tw_attr(op, "value");
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++) {
    MlirValue result = mlirOperationGetResult(op, i);
    mlirValueSetType(result, narrowed(mlirValueGetType(result)));
  }
  if (!mlirAttributeIsNull(value) && mlirAttributeIsADenseElements(value)) {
    MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
    tw_set_attr(op, "value",
                mlirDenseElementsAttrIsSplat(value)
                    ? mlirDenseElementsAttrSplatGet(type, mlirDenseElementsAttrGetSplatValue(value))
                    : mlirDenseElementsAttrReshapeGet(value, type));
  }
}

static void emit_clone(tw_role_t *r, MlirOperation op) {
  MlirOperation made = mlirOperationClone(op);
  mlirBlockAppendOwnedOperation(r->at.block, made);
  mlirOperationWalk(made, remap, r, MlirWalkPreOrder);
  if (r->producer)
    narrow(made);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    tw_map_one(&r->values, mlirOperationGetResult(op, i), mlirOperationGetResult(made, i));
  read_from_stage(r, op, made);
  tw_let_run_on(r, op, made);
  tw_keep_sums(r, op, made);
}

/* ---- all of it ----------------------------------------------------------------------------------- */

static void emit_op(tw_role_t *r, MlirOperation op) {
  r->at.location = mlirOperationGetLocation(op);
  if (!r->producer) {
    tw_emit_waits(r, op);
    tw_emit_branch(r, op);
  }
  if (tw_is_async_copy(op))
    tw_emit_copy(r, op);
  else if (is_obsolete(r, op) || !is_wanted(r, op) || tw_emit_dropped_wait(r, op))
    return;
  else if (tw_op_is(op, TW_SCF_FOR))
    tw_emit_for(r, op);
  else if (tw_op_is(op, TW_SCF_IF))
    tw_emit_if(r, op);
  else if (tw_op_is(op, TW_SCF_WHILE))
    tw_emit_while(r, op);
  else
    emit_clone(r, op);
  if (!r->producer)
    tw_emit_releases(r, op);
}

static void emit_block(tw_role_t *r, MlirBlock old) {
  MlirOperation end = mlirBlockGetTerminator(old);
  for (MlirOperation op = mlirBlockGetFirstOperation(old); !mlirOperationEqual(op, end);
       op = mlirOperationGetNextInBlock(op))
    emit_op(r, op);
}

MlirBlock tw_emit_role(const tw_stage_plan_t *plan, bool producer, MlirLocation location) {
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  tw_role_t r = {.plan = plan, .producer = producer, .at = tw_build_at_end(block, location), .emit_block = emit_block};
  r.kept = tw_allocate((size_t)plan->overlaps.num_products, sizeof *r.kept);
  MlirValue zero = tw_role_int(&r, 0);
  for (int multibuffer = 0; multibuffer < plan->num_multibuffers; multibuffer++)
    r.multibuffers[multibuffer] = (tw_stage_state_t){zero, zero, zero};
  if (!producer)
    tw_start_keeping(&r);
  emit_block(&r, tw_region_block(plan->func, 0));
  tw_drain(&r);
  tw_map_free(&r.values);
  free(r.kept);
  return block;
}
