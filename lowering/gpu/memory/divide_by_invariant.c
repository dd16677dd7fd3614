/* divide_by_invariant.c - tile-optimize-indices: divisions by loop invariants become multiplications
 *
 * Before, for example where one loop goes through rows, places and channels of a filter:
 *
 *   scf.for %k = %c0 to %n step %c1 {
 *     %r = arith.floordivsi %k, %d
 *     %m = arith.remsi %k, %d                       // and what a remainder with the sign of %d takes:
 *     %x = arith.xori %m, %d ; %s = arith.cmpi slt, %x, %c0 ; ... ; %c = arith.select %t, %y, %m
 *   }
 *
 * After, with the reciprocal that raster.h divides by:
 *
 *   %q = arith.divui %c-1, %d
 *   scf.for %k = %c0 to %n step %c1 {
 *     %r = upper half of %k * %q, or one more ; %m = %k - %r * %d
 *     %c = arith.select %false, %y, %m
 *   }
 *
 * A thread divides some 30 instructions long, and starts with a conversion to a float and back. What must hold: both
 * are scalars of 32 bits, which are not negative by ranges.h, and the divisor is made outside of the
 * loop and no constant. Comparisons that ranges decide become constants, which MLIR's canonicalization makes use of. */
#include "lowering/divide.h"
#include "lowering/gpu/memory/optimize_indices.h"
#include "lowering/ir.h"
#include "lowering/loops.h"
#include "lowering/ranges.h"

static bool is_remainder(MlirOperation op) { return tw_op_class(op) == TW_CLASS_REST; }

static bool is_division(MlirOperation op) { return is_remainder(op) || tw_op_class(op) == TW_CLASS_QUOTIENT; }

static bool reduces(MlirOperation op) {
  MlirOperation loop = tw_enclosing_loop(op);
  if (!is_division(op) || mlirOperationIsNull(loop) || !tw_op_is(loop, TW_SCF_FOR))
    return false;
  MlirValue x = mlirOperationGetOperand(op, 0), y = mlirOperationGetOperand(op, 1);
  int64_t known;
  return mlirTypeEqual(mlirValueGetType(x), tw_i32(mlirOperationGetContext(op))) && !tw_known_int(y, &known) &&
         !tw_defined_in(y, tw_loop_body(loop)) && tw_is_natural(x) && tw_is_natural(y);
}

static bool is_known(MlirOperation op) {
  bool unused;
  return tw_op_is(op, TW_ARITH_CMPI) && !tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))) &&
         tw_is_decided(mlirOperationGetResult(op, 0), &unused);
}

static bool is_wanted(MlirOperation op) { return reduces(op) || is_known(op); }

static void reduce(MlirOperation op) {
  tw_builder_t at = tw_build_before(op);
  MlirValue quotient, rest, result = mlirOperationGetResult(op, 0);
  if (tw_op_is(op, TW_ARITH_CMPI)) {
    bool known = false;
    (void)tw_is_decided(result, &known);
    quotient = rest = tw_const_int(&at, mlirValueGetType(result), known);
  } else {
    tw_builder_t before = tw_build_before(tw_enclosing_loop(op));
    before.location = at.location;
    tw_divide(&at, mlirOperationGetOperand(op, 0), tw_divisor_of(&before, mlirOperationGetOperand(op, 1)), &quotient,
              &rest);
  }
  mlirValueReplaceAllUsesOfWith(result, is_remainder(op) ? rest : quotient);
  mlirOperationDestroy(op);
}

bool tw_divide_by_invariant(MlirOperation func) {
  tw_ops_t ops = tw_ops_in(func, is_wanted, MlirWalkPreOrder);
  for (int i = ops.count - 1; i >= 0; i--) /* what an op was found by is made by those before it */
    reduce(ops.at[i]);
  tw_ops_free(&ops);
  return true;
}
