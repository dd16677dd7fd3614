/* adopt_loop.c - in tile-plan-grid: a persistent loop that a program has written itself is one of ours
 *
 *   before   %b = tile.block_id 0                             after   the same, the loop marked tile.persistent
 *            %s = tile.num_blocks 0
 *            scf.for %t = %b to %n step %s {
 *              ...
 *              tile.store %c, %C[%t / %m, %t % %m]
 *            }
 *
 * So stores go by the accelerator, warpgroups take turns, and a producer runs ahead, as in the loop that
 * tile-persistent-loop builds. What must hold: all that is done to memory is done in the loop, which carries nothing;
 * each step stores to other places (same_tile.h), and no step reads what another one has written, so that steps may be
 * done in any order. */
#include "lowering/gpu/grid/adopt_loop.h"
#include "lowering/aliasing.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/facts/same_tile.h"
#include "lowering/loops.h"

static bool is_axis_0(MlirValue value, bool (*is_position)(MlirOperation op)) {
  MlirOperation op = tw_def(value);
  return !mlirOperationIsNull(op) && is_position(op) && tw_attr_int(op, "axis", -1) == 0;
}

static bool is_block_id(MlirOperation op) { return tw_op_is(op, TW_TILE_BLOCK_ID); }
static bool is_num_blocks(MlirOperation op) { return tw_op_is(op, TW_TILE_NUM_BLOCKS); }

/* The only op of the function that does more than to compute; null if it is not such a loop. */
MlirOperation tw_loop_over_tiles(MlirOperation func) {
  MlirOperation loop = tw_null_op(), end = mlirBlockGetTerminator(tw_region_block(func, 0));
  for (MlirOperation op = mlirBlockGetFirstOperation(tw_region_block(func, 0)); !mlirOperationEqual(op, end);
       op = mlirOperationGetNextInBlock(op)) {
    if (tw_is_arithmetic(op) && mlirOperationGetNumRegions(op) == 0)
      continue;
    if (!mlirOperationIsNull(loop) || !tw_op_is(op, TW_SCF_FOR))
      return tw_null_op();
    loop = op;
  }
  bool ok = !mlirOperationIsNull(loop) && mlirOperationGetNumResults(loop) == 0 && !tw_has_attr(loop, "unsignedCmp") &&
            is_axis_0(mlirOperationGetOperand(loop, 0), is_block_id) &&
            is_axis_0(mlirOperationGetOperand(loop, 2), is_num_blocks);
  return ok ? loop : tw_null_op();
}

static bool is_access(MlirOperation op) { return tw_op_has(op, TW_READS_ARRAY | TW_WRITES_ARRAY | TW_ORDERS_ALL); }

/* A store right in the loop, each time to another place. */
static bool is_apart(MlirOperation loop, MlirOperation op) {
  return tw_op_stores_tile(op) && mlirBlockEqual(mlirOperationGetBlock(op), tw_loop_body(loop)) &&
         tw_moves_each_time(loop, op);
}

/* Whether no other op accesses the array that the store writes; noted for the launch, which sees addresses. */
static bool is_only_one(const tw_ops_t *accesses, MlirOperation store) {
  intptr_t first;
  MlirValue written = tw_access_array(store, &first);
  for (int i = 0; i < accesses->count; i++)
    if (!mlirOperationEqual(accesses->at[i], store) &&
        !tw_assume_disjoint(tw_access_array(accesses->at[i], &first), written))
      return false;
  return true;
}

static bool may_be_reordered(MlirOperation loop, const tw_ops_t *accesses) {
  for (int i = 0; i < accesses->count; i++)
    if (!tw_op_loads(accesses->at[i]) && !is_apart(loop, accesses->at[i]))
      return false;
  for (int i = 0; i < accesses->count; i++)
    if (!tw_op_loads(accesses->at[i]) && !is_only_one(accesses, accesses->at[i]))
      return false;
  return true;
}

bool tw_may_reorder_steps(MlirOperation loop) {
  tw_ops_t accesses = tw_ops_in(loop, is_access, MlirWalkPreOrder);
  bool ok = may_be_reordered(loop, &accesses);
  tw_ops_free(&accesses);
  return ok;
}

bool tw_adopt_loop(MlirOperation func) {
  MlirOperation loop = tw_loop_over_tiles(func);
  if (mlirOperationIsNull(loop))
    return false;
  bool ok = tw_may_reorder_steps(loop);
  if (ok) {
    tw_set_attr(loop, TW_PERSISTENT, mlirUnitAttrGet(mlirOperationGetContext(loop)));
    tw_op_remark(loop, "is taken for one over the blocks of a grid: each step stores to other tiles");
  } else {
    tw_op_remark(loop, "goes over tiles in the order that it has: steps may store to the same place, or read what "
                       "others have stored; indices t // n and t %% n of one array are seen to differ");
  }
  return ok;
}
