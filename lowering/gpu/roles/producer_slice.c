/* producer_slice.c - see producer_slice.h */
#include "lowering/gpu/roles/producer_slice.h"
#include "lowering/aliasing.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/facts/same_tile.h"
#include "lowering/loops.h"

static bool is_loop(MlirOperation op) { return tw_op_is(op, TW_SCF_FOR) || tw_op_is(op, TW_SCF_WHILE); }

bool tw_is_control(MlirOperation op) { return is_loop(op) || tw_op_is(op, TW_SCF_IF); }

/* ---- what copies depend on ------------------------------------------------------------------------- */

bool tw_producer_has(const tw_producer_slice_t *needs, const void *key) {
  return tw_map_get(&needs->known, key, NULL) != NULL;
}

/* Notes it; false if it was known. */
static bool note(tw_producer_slice_t *needs, const void *key) {
  MlirValue mark = {NULL};
  if (tw_producer_has(needs, key))
    return false;
  tw_map_set(&needs->known, key, 1, &mark);
  return true;
}

/* Whether a load finds the same in both roles: no one writes to the array (to one that overlaps: check_order), and it
 * does not wait for memory to change. */
static bool reads_constant(MlirOperation load) {
  MlirValue array = mlirOperationGetOperand(load, 0);
  TW_EACH_USE(use, array)
    if (tw_stores_to_array(mlirOpOperandGetOwner(use)))
      return false;
  return !tw_op_is(mlirOperationGetParentOperation(load), TW_SCF_WHILE);
}

static bool has_tile(MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (tw_is_tile(mlirValueGetType(mlirOperationGetOperand(op, i))))
      return true;
  return false;
}

/* A constant whose elements differ: which of them a thread has depends on its warp. */
static bool is_table(MlirOperation op) {
  MlirAttribute value = tw_attr(op, "value");
  return !mlirAttributeIsNull(value) && mlirAttributeIsADenseElements(value) && !mlirDenseElementsAttrIsSplat(value);
}

/* Ops that the producer can do again: arithmetic, and loads from arrays. Of tiles, which are the indices of a gather,
 * only what each thread does by itself. */
static bool can_repeat(MlirOperation op) {
  bool loads = tw_op_loads(op);
  if (mlirOperationGetNumRegions(op) > 0 || mlirOperationGetNumResults(op) != 1 || (loads && !reads_constant(op)))
    return false;
  if (!tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))))
    return !has_tile(op) &&
           (tw_op_form(op) == TW_FORM_ELEMENTWISE || tw_op_form(op) == TW_FORM_SOURCE || tw_is_index_fact(op) || loads);
  return loads || (tw_is_arithmetic(op) && !tw_op_has(op, TW_HAS_SCRATCH) && !is_table(op));
}

static bool need_value(tw_producer_slice_t *needs, MlirValue value);

static bool need_operands(tw_producer_slice_t *needs, MlirOperation op, intptr_t num) {
  for (intptr_t i = 0; i < num; i++)
    if (!need_value(needs, mlirOperationGetOperand(op, i)))
      return false;
  return true;
}

/* A loop or branch, whose control flow the producer follows; and those around it. */
static bool need_control(tw_producer_slice_t *needs, MlirOperation op) {
  if (mlirOperationIsNull(op) || mlirOperationEqual(op, needs->func) || !note(needs, op.ptr))
    return true;
  if (!tw_is_control(op))
    return tw_refuse(needs->refused, op, "it copies within an op that is no loop or branch");
  bool waits = tw_op_is(op, TW_SCF_WHILE);
  return need_operands(needs, op, tw_op_is(op, TW_SCF_FOR) ? TW_FOR_INITS : !waits) &&
         (!waits || need_operands(needs, mlirBlockGetTerminator(tw_region_block(op, 0)), 1)) &&
         need_control(needs, mlirOperationGetParentOperation(op));
}

/* What a loop or branch passes on. */
static bool need_sources(tw_producer_slice_t *needs, MlirValue value) {
  MlirValue sources[TW_MAX_SOURCES];
  int num = tw_sources(value, sources);
  for (int i = 0; i < num; i++)
    if (!need_value(needs, sources[i]))
      return false;
  return true;
}

static bool need_value(tw_producer_slice_t *needs, MlirValue value) {
  MlirOperation from = mlirValueIsABlockArgument(value) ? mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value))
                                                        : mlirOpResultGetOwner(value);
  if (tw_is_tile(mlirValueGetType(value)) && (tw_op_is(from, TW_SCF_IF) || tw_op_is(from, TW_SCF_WHILE)))
    return tw_refuse(needs->refused, from, "it passes on a tile that the position of a copy depends on");
  if (!note(needs, value.ptr) || mlirOperationEqual(from, needs->func))
    return true;
  if (tw_is_control(from))
    return need_control(needs, from) && need_sources(needs, value);
  if (!can_repeat(from))
    return tw_refuse(needs->refused, from, "the position of a copy depends on a tile or on an effect");
  return need_operands(needs, from, mlirOperationGetNumOperands(from)) &&
         need_control(needs, mlirOperationGetParentOperation(from));
}

bool tw_producer_add_copy(tw_producer_slice_t *needs, MlirOperation copy) {
  return need_operands(needs, copy, tw_copy_buffer_operand(copy)) &&
         need_control(needs, mlirOperationGetParentOperation(copy));
}

/* ---- order with writes ----------------------------------------------------------------------------- */

/* Whether a copy may run after `op` does: it stands behind, or a loop holds both. Blocks that a persistent loop goes
 * through promise no order among each other. */
static bool may_follow(MlirOperation copy, MlirOperation op) {
  MlirOperation up = op, beside = tw_null_op();
  for (; mlirOperationIsNull(beside); up = mlirOperationGetParentOperation(up)) {
    beside = tw_ancestor_in(copy, mlirOperationGetBlock(up));
    if (!mlirOperationIsNull(beside) && !mlirOperationEqual(up, beside) && mlirOperationIsBeforeInBlock(up, beside))
      return true;
  }
  for (; !mlirOperationIsNull(up); up = mlirOperationGetParentOperation(up))
    if (is_loop(up) && !tw_has_attr(up, TW_PERSISTENT))
      return true;
  return false;
}

typedef struct {
  const tw_producer_slice_t *needs;
  MlirOperation write;
} run_order_t;

/* What the producer copies, or loads to know where from. */
static bool is_done_ahead(const tw_producer_slice_t *needs, MlirOperation op) {
  bool loads = tw_op_loads(op);
  return tw_is_async_copy(op) || (loads && tw_producer_has(needs, mlirOperationGetResult(op, 0).ptr));
}

static MlirWalkResult check_after(MlirOperation op, void *user) {
  run_order_t *order = user;
  intptr_t first;
  if (!is_done_ahead(order->needs, op) || !may_follow(op, order->write))
    return MlirWalkResultAdvance;
  if (tw_acquires(order->write))
    tw_refuse(order->needs->refused, order->write, "what others did before it is seen behind it");
  else if (!tw_assume_unwritten(mlirOperationGetOperand(op, 0), tw_access_array(order->write, &first),
                                tw_reads_before(op, order->write, tw_null_op())))
    tw_refuse(order->needs->refused, order->write, "it writes to an array that may be the one of a later copy");
  return order->needs->refused->reason ? MlirWalkResultInterrupt : MlirWalkResultAdvance;
}

/* Nothing tells a producer that a store was done. */
static MlirWalkResult check_order(MlirOperation op, void *user) {
  run_order_t order = {user, op};
  if (tw_stores_to_array(op))
    mlirOperationWalk(order.needs->func, check_after, &order, MlirWalkPreOrder);
  return order.needs->refused->reason ? MlirWalkResultInterrupt : MlirWalkResultAdvance;
}

bool tw_producer_may_run_ahead(const tw_producer_slice_t *needs) {
  mlirOperationWalk(needs->func, check_order, (void *)needs, MlirWalkPreOrder);
  return needs->refused->reason == NULL;
}
