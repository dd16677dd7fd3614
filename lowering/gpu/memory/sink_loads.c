/* sink_loads.c - tile-sink-loads: sinks loads below reductions that do not need them
 *
 *   before   %x = tile.load %a[%row, %c0] : … -> tensor<1x4096xbf16, #l>
 *            %w = tile.load %g[%c0] : … -> tensor<4096xbf16, #s>
 *            %f = arith.extf %w : tensor<4096xbf16, #s> to tensor<4096xf32, #s>
 *            %s = tile.reduce add, %y axis 1 : tensor<1x4096xf32, #l>
 *            %z = arith.mulf %n, %f : …
 *   after    %x = tile.load %a[%row, %c0] : … -> tensor<1x4096xbf16, #l>
 *            %s = tile.reduce add, %y axis 1 : tensor<1x4096xf32, #l>
 *            %w = tile.load %g[%c0] : … -> tensor<4096xbf16, #s>
 *            %f = arith.extf %w : tensor<4096xbf16, #s> to tensor<4096xf32, #s>
 *            %z = arith.mulf %n, %f : …
 *
 * A thread holds its part of the row through a reduction, and how many rows a multiprocessor works on is a question of
 * registers. Two kinds of ops go down to their first user where a reduction or scan stands between:
 *   - a load of a tile that is the same for all blocks: it comes from a cache, so that its latency is short;
 *   - a widening of elements, so that the narrow ones are held.
 * Loads that differ from block to block stay early: they come from memory, and their bytes must be in flight.
 *
 * The weights are wanted piece by piece when the result is stored. Where no store can change them they are marked
 * (tile.late), and tile-order-stores has each piece loaded right before the store that it is for.
 *
 * Last, what is added to a large product is loaded piece by piece (late_loads.c).
 *
 * Nothing moves into or out of a region, nor a load past an op that may write memory. Runs when layouts are known. */
#include "lowering/aliasing.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/memory/late_loads.h"
#include "lowering/passes.h"

static bool is_boundary(MlirOperation op) { return tw_op_combines(op); }

/* The number of a part: what lies there a cache has for many blocks, as if it were one for all (cluster_rows.c). */
static bool is_part(MlirOperation op) {
  int64_t parts;
  return tw_op_is(op, TW_ARITH_REMUI) && tw_known_int(mlirOperationGetOperand(op, 1), &parts);
}

/* Whether each block computes the same value, or one of a few. */
static bool is_uniform(MlirValue value);

static bool has_uniform_operands(MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (!is_uniform(mlirOperationGetOperand(op, i)))
      return false;
  return true;
}

static bool is_uniform(MlirValue value) {
  MlirOperation op = tw_def(value);
  if (mlirOperationIsNull(op))
    return tw_op_is(mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value)), TW_FUNC_FUNC);
  if (is_part(op))
    return true;
  bool follows = tw_op_form(op) == TW_FORM_ELEMENTWISE || tw_op_form(op) == TW_FORM_SOURCE ||
                 tw_op_is(op, TW_TILE_DIM) || tw_op_is(op, TW_TILE_NUM_BLOCKS);
  return follows && has_uniform_operands(op);
}

static bool is_shared_load(MlirOperation op) {
  return tw_op_loads_tile(op) && tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))) &&
         has_uniform_operands(op);
}

static bool may_write(MlirOperation op) {
  return mlirOperationGetNumRegions(op) > 0 || tw_op_has(op, TW_WRITES_ARRAY | TW_ORDERS_ALL);
}

static bool used_outside(MlirOperation op) {
  TW_EACH_USE(use, mlirOperationGetResult(op, 0))
    if (!mlirBlockEqual(mlirOperationGetBlock(mlirOpOperandGetOwner(use)), mlirOperationGetBlock(op)))
      return true;
  return false;
}

static void sink(MlirOperation op) {
  bool crosses = false, loads = tw_op_loads_tile(op);
  MlirValue result = mlirOperationGetResult(op, 0);
  if (used_outside(op) || mlirOpOperandIsNull(mlirValueGetFirstUse(result)))
    return;
  MlirOperation at = mlirOperationGetNextInBlock(op);
  for (; !tw_takes(at, result); at = mlirOperationGetNextInBlock(at)) {
    if (loads && may_write(at))
      return;
    crosses = crosses || is_boundary(at);
  }
  if (crosses)
    mlirOperationMoveBefore(op, at);
}

/* A load, or another form of what was loaded. */
static bool is_loaded(MlirOperation op) {
  while (!mlirOperationIsNull(op) && tw_is_form(op))
    op = tw_def(mlirOperationGetOperand(op, 0));
  return !mlirOperationIsNull(op) && tw_op_loads_tile(op);
}

static bool may_wait(MlirOperation op) { return (tw_is_form(op) && is_loaded(op)) || is_shared_load(op); }

/* ---- what may wait for stores -------------------------------------------------------------------- */

static bool stands_behind_boundary(MlirOperation op) {
  bool found = false;
  for (MlirOperation before = mlirBlockGetFirstOperation(mlirOperationGetBlock(op)); !mlirOperationEqual(before, op);
       before = mlirOperationGetNextInBlock(before))
    found = found || is_boundary(before);
  return found;
}

/* Whether no store changes the array; `assume`: records the assumptions for the launch. */
static bool is_apart(const tw_ops_t *stores, MlirOperation load, bool assume) {
  intptr_t first;
  for (int i = 0; i < stores->count; i++)
    if (!(assume ? tw_assume_disjoint : tw_may_be_disjoint)(tw_access_array(stores->at[i], &first),
                                                            tw_access_array(load, &first)))
      return false;
  return true;
}

bool tw_run_sink_loads(MlirOperation function) {
  tw_ops_t list = tw_ops_in(function, may_wait, MlirWalkPreOrder);
  for (int i = list.count; i-- > 0;) /* from the end, so that what uses an op has found its place before */
    sink(list.at[i]);
  tw_ops_t stores = tw_ops_in(function, tw_op_stores, MlirWalkPreOrder);
  for (int i = 0; i < list.count; i++)
    if (is_shared_load(list.at[i]) && stands_behind_boundary(list.at[i]) && is_apart(&stores, list.at[i], false) &&
        is_apart(&stores, list.at[i], true))
      tw_set_attr(list.at[i], TW_LATE, mlirUnitAttrGet(mlirOperationGetContext(function)));
  tw_ops_free(&stores);
  tw_ops_free(&list);
  return tw_late_loads(function);
}
