/* fold_scale.c - tile-online-softmax: folds scale and log2(e) into one factor of the exponent
 *
 * Before: scores are scaled, the reference is subtracted, and the exponential is to base e.
 *
 *   %t = arith.mulf %s, 0.125
 *   %d = arith.subf %t, (tile.broadcast %m)
 *   %p = math.exp %d
 *   tile.reduce add, %p ; tile.mma (arith.truncf %p), ...
 *
 * After: all factors are one, and it is applied to both sides of the difference.
 *
 *   %t = arith.mulf %s, 0.180...                       // 0.125 * log2(e)
 *   %d = arith.subf %t, (tile.broadcast %m * 1.442...) // fuses with the line before
 *   %p = math.exp2 %d
 *
 * Factors may stand around the difference, too, and a mask (select with a constant) between the scores and it. Where
 * that constant is infinite the mask goes in front of the factors, which is exact: then the masked scores are all that
 * the exponential, and a maximum beside it, are made from.
 *
 *   arith.select %seen, (arith.mulf %s, 0.125), -inf  ->  arith.mulf (arith.select %seen, %s, -inf), 0.125
 *
 * What it does to accuracy: the exponent is off by a rounding of its two terms, as it is by that of the scores already.
 * What must hold: the results go through 16 bits into products, and into sums, and nowhere else, so that it does not
 * show; a math.exp that is read otherwise keeps its 2 ulp. */
#include "lowering/gpu/facts/accuracy.h"
#include "lowering/gpu/softmax/online_softmax.h"
#include "lowering/loops.h"

#include <math.h>

static const double LOG2_E = 1.44269504088896340736;

/* ---- scaling --------------------------------------------------------------------------------------- */

static bool is(MlirOperation op, tw_op_kind_t kind) { return !mlirOperationIsNull(op) && tw_op_is(op, kind); }

/* Whether the value is multiplied by a constant twice, a mask in between or not. */
static bool is_scaled_twice(MlirValue value) {
  double factor;
  MlirValue rest;
  MlirOperation op = tw_def(value);
  if (is(op, TW_ARITH_SELECT))
    return is_scaled_twice(mlirOperationGetOperand(op, 1));
  return tw_has_factor(value, &factor, &rest) && tw_has_factor(rest, &factor, &rest);
}

static MlirValue scaled(const tw_builder_t *at, MlirValue value, double factor) {
  double own;
  MlirValue rest;
  MlirOperation op = tw_def(value);
  MlirType type = mlirValueGetType(value);
  if (tw_known_float(value, &own))
    return tw_const_float(at, type, own * factor);
  if (tw_has_factor(value, &own, &rest))
    return scaled(at, rest, own * factor);
  if (is(op, TW_TILE_BROADCAST))
    return tw_broadcast(at, type, scaled(at, mlirOperationGetOperand(op, 0), factor));
  if (is(op, TW_ARITH_SELECT) && tw_has_factor(mlirOperationGetOperand(op, 1), &own, &rest)) {
    MlirValue operands[] = {mlirOperationGetOperand(op, 0), scaled(at, mlirOperationGetOperand(op, 1), factor),
                            scaled(at, mlirOperationGetOperand(op, 2), factor)};
    return tw_op1(at, "arith.select", type, 3, operands);
  }
  return factor == 1 ? value : tw_binary(at, "arith.mulf", type, value, tw_const_float(at, type, factor));
}

static bool is_infinite(MlirValue value) {
  double number;
  return tw_known_float(value, &number) && isinf(number);
}

/* Has masks stand in front of positive factors, which leave an infinite number in their place as it is. */
static void mask_first(MlirOperation select) {
  if (!is(select, TW_ARITH_SELECT))
    return;
  intptr_t side = is_infinite(mlirOperationGetOperand(select, 1)) ? 2 : 1;
  mask_first(tw_def(mlirOperationGetOperand(select, side)));
  double factor;
  MlirValue operands[] = {mlirOperationGetOperand(select, 0), mlirOperationGetOperand(select, 1),
                          mlirOperationGetOperand(select, 2)};
  if (!is_infinite(operands[3 - side]) || !tw_has_factor(operands[side], &factor, &operands[side]) || !(factor > 0))
    return;
  tw_builder_t at = tw_build_before(select);
  MlirType type = mlirValueGetType(operands[side]);
  MlirValue inner = tw_op1(&at, "arith.select", type, 3, operands);
  MlirValue product = tw_binary(&at, "arith.mulf", type, inner, tw_const_float(&at, type, factor));
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(select, 0), product);
  tw_erase_dead(select);
  mask_first(tw_def(inner));
}

static void fold(MlirOperation op) {
  bool natural = tw_op_is(op, TW_MATH_EXP);
  MlirValue result = mlirOperationGetResult(op, 0), argument = mlirOperationGetOperand(op, 0), rest;
  double factor = natural ? LOG2_E : 1, own;
  if (!tw_is_tile(mlirValueGetType(result)) || !mlirTypeIsAF32(tw_element(mlirValueGetType(result))) ||
      !tw_is_weight(result))
    return;
  while (tw_has_factor(argument, &own, &rest)) {
    factor *= own;
    argument = rest;
  }
  MlirOperation difference = tw_def(argument);
  if (!is(difference, TW_ARITH_SUBF) || !(factor > 0))
    return;
  mask_first(tw_def(mlirOperationGetOperand(difference, 0)));
  if (!natural && factor == 1 && !is_scaled_twice(mlirOperationGetOperand(difference, 0)))
    return;
  tw_builder_t at = tw_build_before(op);
  MlirType type = mlirValueGetType(result);
  MlirValue x = scaled(&at, mlirOperationGetOperand(difference, 0), factor);
  MlirValue y = scaled(&at, mlirOperationGetOperand(difference, 1), factor);
  mlirValueReplaceAllUsesOfWith(result, tw_unary(&at, "math.exp2", type, tw_binary(&at, "arith.subf", type, x, y)));
  tw_erase_dead(op);
}

/* ---- the pass ------------------------------------------------------------------------------------ */

static bool is_exponential(MlirOperation op) { return tw_op_is(op, TW_MATH_EXP) || tw_op_is(op, TW_MATH_EXP2); }

bool tw_fold_scale(MlirOperation func) {
  tw_ops_t all = tw_ops_in(func, is_exponential, MlirWalkPreOrder);
  for (int i = 0; i < all.count; i++)
    fold(all.at[i]);
  tw_ops_free(&all);
  return true;
}
