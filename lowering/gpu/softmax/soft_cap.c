/* soft_cap.c - tile-online-softmax: approximate division and tanh for soft-capped attention scores
 *
 * Before, division and tanh are exact, which takes some 60 instructions and a branch for each score:
 *
 *   %u = arith.divf %s, 30.0
 *   %t = math.tanh %u
 *   %c = arith.mulf %t, 30.0
 *   ... %m = maxima of the rows ...
 *   %p = math.exp2 (%c - %m)
 *
 * After, a quotient is a product, and tanh says that only its absolute error counts:
 *
 *   %u = arith.mulf %s, 0.033...
 *   %t = math.tanh %u {tile.absolute}
 *   ...
 *
 * What it does to accuracy: the exponent is off by some roundings of the scores, as where fold_scale.c makes one
 * factor of several. What must hold: all that is made of the result enters exponents, by sums, differences, maxima,
 * masks and constant factors, of which tanh's are not large; and of these exponentials those of scores are weights
 * (tw_is_weight). A maximum that is stored is read otherwise. Runs before fold_scale.c, which collects the
 * factors. */
#include "lowering/gpu/facts/accuracy.h"
#include "lowering/gpu/softmax/online_softmax.h"
#include "lowering/loops.h"
#include "tilewright/dialect.h"

#include <math.h>

static const double MOST = 256; /* by so much errors of tanh may be multiplied */

/* ---- what is made of a value -------------------------------------------------------------------------- */

typedef struct {
  tw_map_t seen; /* values, with the bits of the factor */
  int64_t count; /* elements of the scores */
  bool weights;  /* some of the exponentials are weights */
} readers_t;

static bool enters_exponents(readers_t *readers, MlirValue value, double factor);

static bool enters_as(readers_t *readers, MlirOperation loop, intptr_t i, double factor) {
  return enters_exponents(readers, tw_carried(loop, i), factor) &&
         enters_exponents(readers, mlirOperationGetResult(loop, i), factor);
}

/* What the op around a yield makes of it. */
static bool enters_by_yield(readers_t *readers, MlirOperation yield, intptr_t i, double factor) {
  MlirOperation around = mlirOperationGetParentOperation(yield);
  if (tw_op_is(around, TW_SCF_FOR))
    return enters_as(readers, around, i, factor);
  return tw_op_is(around, TW_SCF_IF) && enters_exponents(readers, mlirOperationGetResult(around, i), factor);
}

static bool enters_by_exponential(readers_t *readers, MlirOperation op) {
  MlirValue result = mlirOperationGetResult(op, 0);
  bool weight = tw_is_weight(result);
  readers->weights = readers->weights || weight;
  return weight || tw_count(mlirValueGetType(result)) < readers->count;
}

/* Ops that hand an error on; by how much they multiply it. */
static bool hands_on(MlirOperation op, intptr_t operand, double *factor) {
  tw_op_class_t class = tw_op_class(op);
  double constant;
  if (tw_op_form(op) == TW_FORM_VIEW || class == TW_CLASS_FLOAT_SUM || class == TW_CLASS_FLOAT_EXTREME)
    return true;
  if (tw_op_is(op, TW_ARITH_SELECT))
    return operand > 0;
  if (tw_op_is_reduction(op))
    return tw_attr_int(op, "kind", 0) == TW_REDUCE_MAX;
  if (tw_op_is(op, TW_MATH_TANH)) {
    *factor = 1;
    return true;
  }
  bool divided = tw_op_is(op, TW_ARITH_DIVF);
  if ((!divided && !tw_op_is(op, TW_ARITH_MULF)) || (divided && operand > 0) ||
      !tw_known_float(mlirOperationGetOperand(op, 1 - operand), &constant))
    return false;
  *factor *= divided ? 1 / fabs(constant) : fabs(constant);
  return true;
}

static bool enters_by(readers_t *readers, MlirOpOperand use, double factor) {
  MlirOperation op = mlirOpOperandGetOwner(use);
  intptr_t operand = mlirOpOperandGetOperandNumber(use);
  if (tw_op_is(op, TW_MATH_EXP) || tw_op_is(op, TW_MATH_EXP2))
    return enters_by_exponential(readers, op);
  if (tw_op_is(op, TW_SCF_YIELD))
    return enters_by_yield(readers, op, operand, factor);
  if (tw_op_is(op, TW_SCF_FOR))
    return operand >= TW_FOR_INITS && enters_as(readers, op, operand - TW_FOR_INITS, factor);
  return hands_on(op, operand, &factor) && factor <= MOST &&
         enters_exponents(readers, mlirOperationGetResult(op, 0), factor);
}

/* Reached on another way, a value has been looked at with the factor of the first: this one must not be larger. So
 * errors do not grow from one iteration to the next. */
static bool enters_exponents(readers_t *readers, MlirValue value, double factor) {
  const MlirValue *seen = tw_map_get(&readers->seen, value.ptr, NULL);
  MlirValue as_value = {NULL};
  double before;
  if (seen != NULL) {
    memcpy(&before, &seen->ptr, sizeof before);
    return factor <= before;
  }
  memcpy(&as_value.ptr, &factor, sizeof factor);
  tw_map_one(&readers->seen, value, as_value);
  TW_EACH_USE(use, value)
    if (!enters_by(readers, use, factor))
      return false;
  return true;
}

static bool is_relaxed(MlirOperation op) {
  MlirValue result = mlirOperationGetResult(op, 0);
  readers_t readers = {.count = tw_count(mlirValueGetType(result))};
  bool ok = enters_exponents(&readers, result, 1) && readers.weights;
  tw_map_free(&readers.seen);
  return ok;
}

/* ---- the pass ------------------------------------------------------------------------------------------ */

/* tanh, and division by a constant whose inverse is a normal float, of tiles of f32. */
static bool may_relax(MlirOperation op) {
  double divisor;
  bool divides = tw_op_is(op, TW_ARITH_DIVF) && tw_known_float(mlirOperationGetOperand(op, 1), &divisor) &&
                 fabs(divisor) > 0x1p-120 && fabs(divisor) < 0x1p120;
  if (!divides && !tw_op_is(op, TW_MATH_TANH))
    return false;
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  return tw_is_tile(type) && mlirTypeIsAF32(tw_element(type));
}

/* The quotient as a product of what its dividend has without constant factors, and one factor. */
static void multiply(MlirOperation quotient) {
  double factor = 1, own;
  MlirValue result = mlirOperationGetResult(quotient, 0), x = mlirOperationGetOperand(quotient, 0), rest;
  MlirType type = mlirValueGetType(result);
  tw_builder_t at = tw_build_before(quotient);
  (void)tw_known_float(mlirOperationGetOperand(quotient, 1), &factor);
  for (factor = 1 / factor; tw_has_factor(x, &own, &rest); x = rest)
    factor *= own;
  MlirValue product = tw_binary(&at, "arith.mulf", type, x, tw_const_float(&at, type, factor));
  mlirValueReplaceAllUsesOfWith(result, product);
  tw_erase_dead(quotient);
}

bool tw_soft_cap(MlirOperation func) {
  tw_ops_t found = tw_ops_in(func, may_relax, MlirWalkPreOrder);
  for (int i = 0; i < found.count; i++) {
    if (!is_relaxed(found.at[i]))
      continue;
    if (tw_op_is(found.at[i], TW_MATH_TANH))
      tw_set_attr(found.at[i], TW_ABSOLUTE, mlirUnitAttrGet(mlirOperationGetContext(func)));
    else
      multiply(found.at[i]);
  }
  tw_ops_free(&found);
  return true;
}
