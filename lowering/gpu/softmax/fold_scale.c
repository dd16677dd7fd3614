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
 * Factors may stand around the difference, too, a minus among them, and a mask (select with a constant) between the
 * scores and it. A factor may be a number of the launch, and a sum with one the exponent, as a sigmoid has it:
 *
 *   math.exp -(%s * splat %a + splat %b)  ->  math.exp2 (%s * splat (%a * -1.442...) + splat (%b * -1.442...))
 *
 * Where a mask's constant is infinite the mask goes in front of the factors, which is exact: then the masked scores are
 * all that the exponential, and a maximum beside it, are made from.
 *
 *   arith.select %seen, (arith.mulf %s, 0.125), -inf  ->  arith.mulf (arith.select %seen, %s, -inf), 0.125
 *
 * What it does to accuracy: the exponent is off by a rounding of its two terms, as it is by that of the scores already.
 * What must hold: the results go through 16 bits into products, and into sums, and nowhere else, so that it does not
 * show; or all that is made of them ends in 16 bits (accuracy.h), and both terms of the exponent are rounded already. A
 * math.exp that is read otherwise keeps its 2 ulp. */
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

/* The operand that is one number for all elements of a product of tiles; -1 for any other op. */
static intptr_t uniform_factor(MlirOperation op) {
  for (intptr_t i = 0; is(op, TW_ARITH_MULF) && i < 2; i++)
    if (is(tw_def(mlirOperationGetOperand(op, i)), TW_TENSOR_SPLAT))
      return i;
  return -1;
}

/* Whether a factor of the value costs nothing: another one takes it, or it is applied to less than each element. */
static bool absorbs(MlirValue value) {
  double number;
  MlirValue rest;
  MlirOperation op = tw_def(value);
  return tw_known_float(value, &number) || tw_has_factor(value, &number, &rest) || is(op, TW_TENSOR_SPLAT) ||
         is(op, TW_TILE_BROADCAST) || uniform_factor(op) >= 0 ||
         (is(op, TW_ARITH_SELECT) && absorbs(mlirOperationGetOperand(op, 1)));
}

static MlirValue scaled(const tw_builder_t *at, MlirValue value, double factor);

static MlirValue scaled_operand(const tw_builder_t *at, MlirOperation op, intptr_t operand, double factor) {
  MlirValue operands[] = {mlirOperationGetOperand(op, 0), mlirOperationGetOperand(op, 1)};
  operands[operand] = scaled(at, operands[operand], factor);
  return tw_binary(at, "arith.mulf", mlirValueGetType(operands[0]), operands[0], operands[1]);
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
  if (is(op, TW_TENSOR_SPLAT))
    return tw_unary(at, "tensor.splat", type, scaled(at, mlirOperationGetOperand(op, 0), factor));
  if (uniform_factor(op) >= 0)
    return scaled_operand(at, op, uniform_factor(op), factor);
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

/* The exponent without the factors around it, and their product. */
static MlirValue without_factors(MlirValue exponent, double *factor) {
  double own;
  MlirValue rest;
  if (is(tw_def(exponent), TW_ARITH_NEGF)) {
    *factor = -*factor;
    return without_factors(mlirOperationGetOperand(tw_def(exponent), 0), factor);
  }
  if (!tw_has_factor(exponent, &own, &rest))
    return exponent;
  *factor *= own;
  return without_factors(rest, factor);
}

/* Whether the terms of an exponent may take its factor. Other results than weights allow it where the scores have one
 * already, so that they are rounded as often as before. */
static bool is_folded(MlirOperation exponential, MlirOperation sum, double factor) {
  bool difference = is(sum, TW_ARITH_SUBF);
  if ((!difference && !is(sum, TW_ARITH_ADDF)) || factor == 0)
    return false;
  bool first = absorbs(mlirOperationGetOperand(sum, 0)), second = absorbs(mlirOperationGetOperand(sum, 1));
  if (tw_is_weight(mlirOperationGetResult(exponential, 0)))
    return difference || first || second;
  return first && second && tw_only_read_narrower(exponential);
}

static void fold(MlirOperation op) {
  bool natural = tw_op_is(op, TW_MATH_EXP);
  MlirValue result = mlirOperationGetResult(op, 0);
  MlirType type = mlirValueGetType(result);
  double factor = natural ? LOG2_E : 1;
  MlirOperation sum = tw_def(without_factors(mlirOperationGetOperand(op, 0), &factor));
  if (!tw_is_tile(type) || !mlirTypeIsAF32(tw_element(type)) || !is_folded(op, sum, factor))
    return;
  if (factor > 0)
    mask_first(tw_def(mlirOperationGetOperand(sum, 0)));
  if (!natural && factor == 1 && !is_scaled_twice(mlirOperationGetOperand(sum, 0)))
    return;
  tw_builder_t at = tw_build_before(op);
  MlirValue x = scaled(&at, mlirOperationGetOperand(sum, 0), factor);
  MlirValue y = scaled(&at, mlirOperationGetOperand(sum, 1), factor);
  const char *name = is(sum, TW_ARITH_SUBF) ? "arith.subf" : "arith.addf";
  mlirValueReplaceAllUsesOfWith(result, tw_unary(&at, "math.exp2", type, tw_binary(&at, name, type, x, y)));
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
