/* merge_branches.c - in tile-canonicalize and tile-resize-tiles: branches that do the same are one
 *
 *   before   %r = scf.if %even {                              after   %r = scf.for ... {
 *              %x = scf.for ... {                                       %a = tile.load %A[%i, %k] padding zero
 *                %a = tile.load %A[%i, %k]                              ...
 *                ...                                                  }
 *              }
 *              yield %x
 *            } else {
 *              %y = scf.for ... {
 *                %a = tile.load %A[%i, %k] padding zero
 *                ...
 *              }
 *              yield %y
 *            }
 *
 * A load whose padding is undetermined may have any: so a program that spares the padding where it knows that there is
 * none has one loop, with one sum, as if it had said so once. A branch that promises that a tile lies within its array
 * promises that where it is taken only.
 *
 * What must hold: the branches have the same ops in the same order, with the same attributes but for those two. None of
 * them tells which threads are there: two places where threads wait for others are not one. */
#include "lowering/common/canonicalize.h"
#include "lowering/common/match_step.h"

/* The first branch, and what values of the other one are there. */
typedef struct {
  tw_map_t values;
  tw_ops_t loads; /* of the first branch that get what is said of them in `as` */
  tw_ops_t as;
} branches_t;

static bool are_twins(branches_t *t, MlirBlock x, MlirBlock y);

static bool have_twin_regions(branches_t *t, MlirOperation x, MlirOperation y) {
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(x); r++) {
    MlirBlock a = tw_region_block(x, r), b = tw_region_block(y, r);
    if (mlirBlockIsNull(a) != mlirBlockIsNull(b) || (!mlirBlockIsNull(a) && !are_twins(t, a, b)))
      return false;
    if (!mlirBlockIsNull(a) &&
        (!mlirBlockIsNull(mlirBlockGetNextInRegion(a)) || !mlirBlockIsNull(mlirBlockGetNextInRegion(b))))
      return false;
  }
  return true;
}

/* Whether what it does depends on the threads that come there. */
static bool tells_threads(MlirOperation op) {
  return tw_op_has(op, TW_ORDERS_THREADS) || tw_op_has(op, TW_MEETS_BLOCK) || tw_op_has(op, TW_MEETS_WARP);
}

static bool are_twin_ops(branches_t *t, MlirOperation x, MlirOperation y) {
  if (tells_threads(x))
    return false;
  if (!mlirIdentifierEqual(mlirOperationGetName(x), mlirOperationGetName(y)) ||
      mlirOperationGetNumOperands(x) != mlirOperationGetNumOperands(y) ||
      mlirOperationGetNumResults(x) != mlirOperationGetNumResults(y) ||
      mlirOperationGetNumRegions(x) != mlirOperationGetNumRegions(y) || mlirOperationGetNumSuccessors(x) > 0 ||
      !tw_has_attributes_for_both(x, y))
    return false;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(x); i++)
    if (!tw_is_same_number(mlirOperationGetOperand(x, i), tw_map_value(&t->values, mlirOperationGetOperand(y, i))))
      return false;
  if (!have_twin_regions(t, x, y))
    return false;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(x); i++) {
    if (!mlirTypeEqual(mlirValueGetType(mlirOperationGetResult(x, i)), mlirValueGetType(mlirOperationGetResult(y, i))))
      return false;
    tw_map_one(&t->values, mlirOperationGetResult(y, i), mlirOperationGetResult(x, i));
  }
  if (tw_op_loads(x)) {
    tw_ops_add(&t->loads, x);
    tw_ops_add(&t->as, y);
  }
  return true;
}

static bool are_twins(branches_t *t, MlirBlock x, MlirBlock y) {
  if (mlirBlockGetNumArguments(x) != mlirBlockGetNumArguments(y))
    return false;
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(x); i++) {
    if (!mlirTypeEqual(mlirValueGetType(mlirBlockGetArgument(x, i)), mlirValueGetType(mlirBlockGetArgument(y, i))))
      return false;
    tw_map_one(&t->values, mlirBlockGetArgument(y, i), mlirBlockGetArgument(x, i));
  }
  MlirOperation a = mlirBlockGetFirstOperation(x), b = mlirBlockGetFirstOperation(y);
  while (!mlirOperationIsNull(a) && !mlirOperationIsNull(b) && are_twin_ops(t, a, b)) {
    a = mlirOperationGetNextInBlock(a);
    b = mlirOperationGetNextInBlock(b);
  }
  return mlirOperationIsNull(a) && mlirOperationIsNull(b);
}

/* The first branch in any case. */
static void take_first(MlirOperation branch) {
  MlirBlock block = tw_region_block(branch, 0);
  MlirOperation end = mlirBlockGetTerminator(block);
  for (MlirOperation op = mlirBlockGetFirstOperation(block), next; !mlirOperationEqual(op, end); op = next) {
    next = mlirOperationGetNextInBlock(op);
    mlirOperationMoveBefore(op, branch);
  }
  for (intptr_t i = 0; i < mlirOperationGetNumResults(branch); i++)
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(branch, i), mlirOperationGetOperand(end, i));
  mlirOperationDestroy(branch);
}

static bool is_branch(MlirOperation op) { return tw_op_is(op, TW_SCF_IF) && !mlirBlockIsNull(tw_region_block(op, 1)); }

static void merge(MlirOperation branch) {
  branches_t t = {0};
  if (are_twins(&t, tw_region_block(branch, 0), tw_region_block(branch, 1))) {
    for (int i = 0; i < t.loads.count; i++)
      tw_load_for_both(t.loads.at[i], t.as.at[i]);
    take_first(branch);
  }
  tw_map_free(&t.values);
  tw_ops_free(&t.loads);
  tw_ops_free(&t.as);
}

void tw_merge_branches(MlirOperation func) {
  tw_ops_t branches = tw_ops_in(func, is_branch, MlirWalkPostOrder);
  for (int i = 0; i < branches.count; i++)
    merge(branches.at[i]);
  tw_ops_free(&branches);
}
