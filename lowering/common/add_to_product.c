/* add_to_product.c - in tile-canonicalize: a running sum to which a product is added goes through the product
 *
 *   before   %p = tile.mma %a, %b, %zero                      after   %q = tile.mma %a, %b, %x
 *            %q = tile.mma %c, %d, %p                                 %y = tile.mma %c, %d, %q
 *            %y = arith.addf %x, %q
 *
 * Then a product's sum never leaves the Tensor Core. What must hold: the products are used for this sum only, and %x is
 * a running sum (a product's result, or what a loop carries, perhaps rescaled), so that it is there before they are;
 * all sums are of the accumulator's type. A product that is rounded to fewer bits only to be added, as in acc += a @ b,
 * is added as it is: like a multiply-add it rounds once in all (docs/numbers.md). Products of 8-bit floats stay: their
 * sums are less exact than the addition. */
#include "lowering/common/canonicalize.h"
#include "lowering/loops.h"

enum { MOST_FACTORS = 2 }; /* by which a running sum is rescaled */

static bool is_sum(MlirOperation op) { return tw_op_is(op, TW_ARITH_ADDF) || tw_op_is(op, TW_ARITH_ADDI); }

static bool is_narrow_float(MlirValue tile) {
  return tw_is_float(mlirValueGetType(tile)) && tw_bits(mlirValueGetType(tile)) <= 8;
}

/* The first of a chain of products that starts from zero and ends in `value`; null if it is none. */
static MlirOperation chain_from_zero(MlirValue value) {
  for (MlirOperation op = tw_def(value);; op = tw_def(value)) {
    if (mlirOperationIsNull(op) || !tw_op_is_product(op) || !tw_has_one_use(value) ||
        is_narrow_float(mlirOperationGetOperand(op, 0)) || is_narrow_float(mlirOperationGetOperand(op, 1)))
      return tw_null_op();
    value = mlirOperationGetOperand(op, 2);
    if (tw_is_zero(value))
      return op;
  }
}

/* A product's result, or what a loop carries or leaves; or a multiple of one. */
static bool is_running_sum(MlirValue value, int steps) {
  MlirOperation op = tw_def(value);
  if (mlirOperationIsNull(op)) {
    MlirOperation loop = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value));
    return tw_op_is(loop, TW_SCF_FOR) || tw_op_is(loop, TW_SCF_WHILE);
  }
  if (tw_op_is_product(op) || tw_op_is(op, TW_SCF_FOR))
    return true;
  bool scaled = steps > 0 && (tw_op_class(op) == TW_CLASS_FLOAT_PRODUCT || tw_op_class(op) == TW_CLASS_MULTIPLE);
  return scaled && (is_running_sum(mlirOperationGetOperand(op, 0), steps - 1) ||
                    is_running_sum(mlirOperationGetOperand(op, 1), steps - 1));
}

/* The chain again, in front of the sum (where %x is there), from %x on. */
static MlirValue rebuild(const tw_builder_t *at, MlirOperation last, MlirOperation first, MlirValue x) {
  MlirOperation copy = mlirOperationClone(last);
  if (!mlirOperationEqual(last, first))
    x = rebuild(at, tw_def(mlirOperationGetOperand(last, 2)), first, x);
  mlirOperationSetOperand(copy, 2, x);
  mlirBlockInsertOwnedOperationBefore(at->block, at->before, copy);
  return mlirOperationGetResult(copy, 0);
}

/* What was rounded, and is only made wide again. */
static MlirValue before_rounding(MlirValue value) {
  MlirOperation widens = tw_def(value);
  if (mlirOperationIsNull(widens) || !tw_op_is(widens, TW_ARITH_EXTF) || !tw_has_one_use(value))
    return value;
  MlirValue narrow = mlirOperationGetOperand(widens, 0);
  MlirOperation rounds = tw_def(narrow);
  bool only = !mlirOperationIsNull(rounds) && tw_op_is(rounds, TW_ARITH_TRUNCF) && tw_has_one_use(narrow);
  MlirValue wide = only ? mlirOperationGetOperand(rounds, 0) : value;
  return mlirTypeEqual(mlirValueGetType(wide), mlirValueGetType(value)) ? wide : value;
}

static bool add_to_product(MlirOperation sum, intptr_t product) {
  MlirValue p = mlirOperationGetOperand(sum, product), x = mlirOperationGetOperand(sum, 1 - product);
  MlirOperation widens = tw_def(p);
  p = before_rounding(p);
  MlirOperation first = chain_from_zero(p), last = tw_def(p);
  MlirBlock block = mlirOperationGetBlock(sum);
  if (mlirOperationIsNull(first) || !mlirBlockEqual(mlirOperationGetBlock(first), block) ||
      !mlirBlockEqual(mlirOperationGetBlock(last), block) || !is_running_sum(x, MOST_FACTORS))
    return false;
  tw_builder_t at = tw_build_before(sum);
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(sum, 0), rebuild(&at, last, first, x));
  mlirOperationDestroy(sum);
  for (MlirOperation op = widens, next; !mlirOperationEqual(op, last); op = next) { /* what rounded it */
    next = tw_def(mlirOperationGetOperand(op, 0));
    mlirOperationDestroy(op);
  }
  for (MlirOperation op = last, next; !mlirOperationIsNull(op); op = next) {
    next = mlirOperationEqual(op, first) ? tw_null_op() : tw_def(mlirOperationGetOperand(op, 2));
    mlirOperationDestroy(op);
  }
  return true;
}

void tw_add_to_products(MlirOperation func) {
  tw_ops_t sums = tw_ops_in(func, is_sum, MlirWalkPreOrder); /* an earlier sum may start a later one's chain */
  for (int i = 0; i < sums.count; i++)
    if (!add_to_product(sums.at[i], 1))
      add_to_product(sums.at[i], 0);
  tw_ops_free(&sums);
}
