/* late_loads.c - in tile-sink-loads: what is added to a large product before it is stored is loaded piece by piece
 *
 *   before   %s = scf.for ... { ... tile.mma ... }
 *            %r = tile.load %residual[%i, %j] : … -> tensor<128x128xbf16, #l>
 *            %f = arith.extf %r : tensor<128x128xbf16, #l> to tensor<128x128xf32, #l>
 *            %y = arith.addf %s, %f : tensor<128x128xf32, #l>
 *            tile.store %y, %a[%i, %j] : tensor<128x128xf32, #l>, …
 *   after    %s = scf.for ... { ... tile.mma ... }
 *            %r = tile.load %residual[%i, %j] {tile.late = 32 : i32} : … -> tensor<128x128xbf16, #l>
 *            …
 *            tile.store %y, %a[%i, %j] {tile.late = 32 : i32} : tensor<128x128xf32, #l>, …
 *
 * The sum of a product may take half the registers of a thread. What is loaded for its epilogue comes as a whole in
 * front of the first store, in words of which each may hold one element of 16 bits only, and is spilled. Where the sum
 * and all of that are more than a thread has room for, each such load gets the number of words that may be filled
 * at a time. The emitter makes its pieces without a branch between tiles inside of the array
 * and those at its edge, the stores' too, and tile-order-stores puts each in its place.
 *
 * What is loaded in front of the products for the epilogue, and would be held while they run, is loaded behind them if
 * registers do not hold both.
 *
 * What must hold: nothing that the block does behind the load may write to its array, or a launch sees that the arrays
 * are apart (lowering/aliasing.h). Runs when layouts are known, before stores go through shared memory. */
#include "lowering/gpu/memory/late_loads.h"

#include "dialect/layouts.h"
#include "lowering/aliasing.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/same_tile.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/loops.h"

/* ---- registers --------------------------------------------------------------------------------------- */

static int64_t words_of_results(MlirOperation op) {
  int64_t words = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++) {
    MlirType type = mlirValueGetType(mlirOperationGetResult(op, i));
    words += tw_is_tile(type) ? tw_register_words(type) : 0;
  }
  return words;
}

static bool has_product(MlirOperation op) { return tw_has_op_like(op, tw_op_is_product); }

/* Words of what products of the block, or of loops in it, leave. */
static int64_t words_of_sums(MlirBlock block) {
  int64_t words = 0;
  TW_EACH_OP(op, block)
    words += has_product(op) ? words_of_results(op) : 0;
  return words;
}

/* Words that wait for what memory brings: elements that come one by one have a word each. */
static int64_t words_under_way(MlirOperation load) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(load, 0));
  bool one_by_one = tw_op_gathers(load) || tw_access_vector_bits(load, (int)tw_rank(type)) == 0;
  int64_t words = tw_register_words(type), elements = tw_register_count(type);
  return one_by_one && elements > words ? elements : words;
}

/* ---- what may wait ----------------------------------------------------------------------------------- */

/* Whether all that is made of a value, element by element, is stored by its block. */
static bool is_for_stores(MlirValue value, MlirBlock block, tw_map_t *seen) {
  if (tw_is_unused(value))
    return false;
  TW_EACH_USE(use, value) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    if (!mlirBlockEqual(mlirOperationGetBlock(user), block))
      return false;
    if (tw_op_stores(user) || tw_map_get(seen, user.ptr, NULL) != NULL)
      continue;
    tw_map_set(seen, user.ptr, 0, NULL);
    if (!tw_is_arithmetic(user) || tw_op_combines(user) || mlirOperationGetNumResults(user) != 1 ||
        !is_for_stores(mlirOperationGetResult(user, 0), block, seen))
      return false;
  }
  return true;
}

/* Whether nothing behind the load in its block changes its array; `assume`: records the assumptions for the launch. */
static bool is_unwritten(MlirOperation load, bool assume) {
  intptr_t first;
  MlirValue array = tw_access_array(load, &first);
  for (MlirOperation op = load; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (tw_op_has(op, TW_ORDERS_ALL))
      return false;
    if (!tw_may_write_arrays(op))
      continue;
    if (!tw_op_stores(op))
      return false;
    MlirValue written = tw_access_array(op, &first);
    bool in_place = tw_op_loads_tile(load) && tw_op_stores_tile(op) && tw_reads_before(load, op, tw_null_op());
    bool apart = (in_place && mlirValueEqual(array, written)) || tw_may_be_disjoint(array, written);
    if (!apart || (assume && !tw_assume_unwritten(array, written, in_place)))
      return false;
  }
  return true;
}

static bool may_wait(MlirOperation op) {
  if (!tw_op_loads(op) || mlirOperationGetNumResults(op) != 1 || tw_has_attr(op, TW_LATE) ||
      !tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))) || (!tw_op_loads_tile(op) && !tw_op_gathers(op)))
    return false;
  tw_map_t seen = {0};
  bool stored = is_for_stores(mlirOperationGetResult(op, 0), mlirOperationGetBlock(op), &seen);
  tw_map_free(&seen);
  return stored && is_unwritten(op, false);
}

/* ---- what stands in front of the products ------------------------------------------------------------ */

/* Whether an op makes a tile from memory or from other tiles, which could be made later, too. */
static bool is_movable(MlirOperation op) {
  if (mlirOperationGetNumResults(op) != 1 || !tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))) ||
      tw_op_form(op) == TW_FORM_SOURCE)
    return false;
  return tw_op_loads(op) ? tw_op_loads_tile(op) || tw_op_gathers(op) : tw_is_arithmetic(op) && !tw_op_combines(op);
}

/* Whether the value is read behind the product of its block; `only`: and nowhere else. */
static bool is_read_behind(MlirValue value, MlirOperation product, bool only) {
  bool behind = false;
  TW_EACH_USE(use, value) {
    MlirOperation user = tw_ancestor_in(mlirOpOperandGetOwner(use), mlirOperationGetBlock(product));
    bool is_behind = !mlirOperationIsNull(user) && mlirOperationIsBeforeInBlock(product, user);
    if (only && !is_behind)
      return false;
    behind = behind || is_behind;
  }
  return behind;
}

static bool writes_between(MlirOperation load, MlirOperation product) {
  for (MlirOperation op = load; !mlirOperationEqual(op, mlirOperationGetNextInBlock(product));
       op = mlirOperationGetNextInBlock(op))
    if (tw_may_write_arrays(op) || tw_op_has(op, TW_ORDERS_ALL))
      return true;
  return false;
}

/* Has tiles that are held while the last product of the block runs made behind it, if registers do not hold both. */
static void sink_held(MlirBlock block, int64_t sums, int64_t budget) {
  tw_ops_t ops = {0};
  MlirOperation product = tw_null_op();
  int64_t held = 0;
  TW_EACH_OP(op, block) {
    product = has_product(op) ? op : product;
    if (is_movable(op))
      tw_ops_add(&ops, op);
  }
  for (int i = 0; i < ops.count; i++)
    if (mlirOperationIsBeforeInBlock(ops.at[i], product) &&
        is_read_behind(mlirOperationGetResult(ops.at[i], 0), product, false))
      held += words_of_results(ops.at[i]);
  for (int i = ops.count; i-- > 0 && sums + held > budget;)
    if (mlirOperationIsBeforeInBlock(ops.at[i], product) &&
        is_read_behind(mlirOperationGetResult(ops.at[i], 0), product, true) &&
        !(tw_op_loads(ops.at[i]) && writes_between(ops.at[i], product)))
      mlirOperationMoveAfter(ops.at[i], product);
  tw_ops_free(&ops);
}

/* ---- the pass ---------------------------------------------------------------------------------------- */

static void mark(MlirOperation op) {
  tw_set_int(op, TW_LATE, tw_i32(mlirOperationGetContext(op)), tw_register_budget(op, TW_BUDGET_LOADED_AHEAD));
}

static void visit_block(MlirBlock block) {
  tw_ops_t loads = {0};
  MlirOperation parent = mlirBlockGetParentOperation(block);
  int64_t words = words_of_sums(block), budget = tw_register_budget(parent, TW_BUDGET_EPILOGUE);
  bool any = false;
  if (words == 0)
    return;
  sink_held(block, words, budget);
  TW_EACH_OP(op, block)
    if (may_wait(op)) {
      words += words_under_way(op);
      tw_ops_add(&loads, op);
    }
  for (int i = 0; i < loads.count && words > budget; i++)
    if (is_unwritten(loads.at[i], true)) {
      mark(loads.at[i]);
      any = true;
    }
  tw_ops_free(&loads);
  for (MlirOperation op = mlirBlockGetFirstOperation(block); any && !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    if (tw_op_stores_tile(op))
      mark(op);
}

bool tw_late_loads(MlirOperation function) {
  tw_ops_t stores = tw_ops_in(function, tw_op_stores, MlirWalkPreOrder);
  MlirBlock last = {NULL};
  for (int i = 0; i < stores.count; i++) {
    MlirBlock block = mlirOperationGetBlock(stores.at[i]);
    if (!mlirBlockEqual(block, last))
      visit_block(block);
    last = block;
  }
  tw_ops_free(&stores);
  return true;
}
