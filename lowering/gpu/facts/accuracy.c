/* accuracy.c - how exactly a result must be computed. See accuracy.h.
 *
 * Products and quotients hand a relative error on as it is. A sum does where its terms have one sign: 1 + e^x does,
 * x + y in general does not, because it may cancel. */
#include "lowering/gpu/facts/accuracy.h"
#include "lowering/launch_record.h"

#include "tilewright/dialect.h"

enum { MAX_LOOK_AHEAD = 6, MAX_LOOK_BACK = 6 };

static bool is_reduction(MlirOperation op, tw_reduce_kind_t kind) {
  return tw_op_is_reduction(op) && tw_attr_int(op, "kind", 0) == kind;
}

/* ---- what it is made of ---------------------------------------------------------------------------- */

static bool is_known_at_least(MlirOperation op, int bound) {
  double known;
  return (tw_known_float(mlirOperationGetOperand(op, 0), &known) && known >= bound) ||
         (tw_known_float(mlirOperationGetOperand(op, 1), &known) && known >= bound);
}

/* Whether each element of the result is one of the operand's, as it is or rounded. */
static bool passes_on(MlirOperation op) {
  return tw_op_form(op) == TW_FORM_VIEW || tw_op_is(op, TW_TENSOR_SPLAT) || tw_op_is(op, TW_ARITH_EXTF) ||
         tw_op_is(op, TW_ARITH_TRUNCF);
}

static bool is_at_least(MlirValue value, int bound, int depth);

static bool operand_is_at_least(MlirOperation op, intptr_t operand, int bound, int depth) {
  return is_at_least(mlirOperationGetOperand(op, operand), bound, depth - 1);
}

static bool both_are_at_least(MlirOperation op, intptr_t first, int bound, int depth) {
  return operand_is_at_least(op, first, bound, depth) && operand_is_at_least(op, first + 1, bound, depth);
}

/* x + y >= 1 where one of them is and the other is not negative. */
static bool sum_is_at_least(MlirOperation op, int bound, int depth) {
  if (bound == 0)
    return both_are_at_least(op, 0, 0, depth);
  return (operand_is_at_least(op, 0, 1, depth) && operand_is_at_least(op, 1, 0, depth)) ||
         (operand_is_at_least(op, 0, 0, depth) && operand_is_at_least(op, 1, 1, depth));
}

/* The bound is 0 or 1. */
static bool is_at_least(MlirValue value, int bound, int depth) {
  double known;
  MlirOperation op = tw_def(value);
  if (tw_known_float(value, &known))
    return known >= bound;
  if (mlirOperationIsNull(op) || depth == 0)
    return false;
  if (bound == 0 && tw_op_has(op, TW_NOT_NEGATIVE))
    return true;
  if (passes_on(op) || is_reduction(op, TW_REDUCE_MAX) || is_reduction(op, TW_REDUCE_MIN) ||
      is_reduction(op, TW_REDUCE_ADD))
    return operand_is_at_least(op, 0, bound, depth);
  switch (tw_op_kind(op)) {
  case TW_ARITH_MAXIMUMF: return operand_is_at_least(op, 0, bound, depth) || operand_is_at_least(op, 1, bound, depth);
  case TW_ARITH_MAXNUMF: /* a NaN on one side leaves the other one */
    return is_known_at_least(op, bound) || both_are_at_least(op, 0, bound, depth);
  case TW_ARITH_ADDF: return sum_is_at_least(op, bound, depth);
  case TW_ARITH_DIVF: return bound == 0 && both_are_at_least(op, 0, 0, depth);
  case TW_ARITH_SELECT: return both_are_at_least(op, 1, bound, depth);
  case TW_ARITH_MULF:
  case TW_ARITH_MINIMUMF:
  case TW_ARITH_MINNUMF: return both_are_at_least(op, 0, bound, depth);
  default: return false;
  }
}

bool tw_is_at_least(MlirValue value, int bound) { return is_at_least(value, bound, MAX_LOOK_BACK); }

/* ---- what is made of it ------------------------------------------------------------------------------ */

/* A sum of numbers of one sign does not cancel. */
static bool sums_one_sign(MlirOperation op) {
  if (is_reduction(op, TW_REDUCE_ADD))
    return tw_is_at_least(mlirOperationGetOperand(op, 0), 0);
  return tw_op_is(op, TW_ARITH_ADDF) && tw_is_at_least(mlirOperationGetOperand(op, 0), 0) &&
         tw_is_at_least(mlirOperationGetOperand(op, 1), 0);
}

/* Ops that hand a small relative error on without making it larger. */
static bool keeps_accuracy(MlirOperation op) {
  tw_op_class_t class = tw_op_class(op);
  return tw_op_form(op) == TW_FORM_VIEW || tw_op_is(op, TW_ARITH_SELECT) || class == TW_CLASS_FLOAT_PRODUCT ||
         class == TW_CLASS_FLOAT_QUOTIENT || class == TW_CLASS_FLOAT_EXTREME || is_reduction(op, TW_REDUCE_MAX) ||
         is_reduction(op, TW_REDUCE_MIN) || sums_one_sign(op);
}

/* `least`: the fewest bits of a cast that hides the error. */
static bool ends_narrow(MlirOperation op, unsigned least, int depth) {
  MlirOpOperand use = mlirValueGetFirstUse(mlirOperationGetResult(op, 0));
  for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    if (tw_op_is(user, TW_ARITH_TRUNCF) && tw_bits(mlirValueGetType(mlirOperationGetResult(user, 0))) >= least)
      continue; /* of f32, so to 16 bits at most */
    if (depth == 0 || !keeps_accuracy(user) || !ends_narrow(user, least, depth - 1))
      return false;
  }
  return true;
}

/* Quotients of numbers of few bits often lie halfway between two numbers of 8 bits: there, any error shows. */
bool tw_only_read_narrower(MlirOperation op) {
  if (tw_hint_approximate(op, 1) == 0)
    return false;
  if (tw_hint_fast_math(op, 0))
    return true;
  return ends_narrow(op, tw_op_class(op) == TW_CLASS_FLOAT_QUOTIENT ? 16 : 1, MAX_LOOK_AHEAD);
}

bool tw_is_widened(MlirValue value) {
  MlirOperation op = tw_def(value);
  while (!mlirOperationIsNull(op) && tw_op_form(op) == TW_FORM_VIEW)
    op = tw_def(mlirOperationGetOperand(op, 0));
  return !mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_EXTF) &&
         tw_bits(mlirValueGetType(mlirOperationGetOperand(op, 0))) <= 16;
}

/* ---- weights of a softmax ------------------------------------------------------------------------------ */

static bool is_narrowed_operand(MlirOperation op) {
  if (!tw_op_is(op, TW_ARITH_TRUNCF) || tw_bits(mlirValueGetType(mlirOperationGetResult(op, 0))) != 16)
    return false;
  MlirValue narrow = mlirOperationGetResult(op, 0);
  for (MlirOpOperand use = mlirValueGetFirstUse(narrow); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use))
    if (!tw_op_is_product(mlirOpOperandGetOwner(use)))
      return false;
  return true;
}

/* Whether the value is read by sums and products only; `product` gets true at the first of these. */
static bool is_weight(MlirValue value, bool *product) {
  for (MlirOpOperand use = mlirValueGetFirstUse(value); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation op = mlirOpOperandGetOwner(use);
    bool sum = tw_op_is_reduction(op) && tw_attr_int(op, "kind", 0) == TW_REDUCE_ADD;
    bool narrowed = is_narrowed_operand(op);
    bool masked = tw_op_is(op, TW_ARITH_SELECT) && is_weight(mlirOperationGetResult(op, 0), product);
    if (!sum && !narrowed && !masked)
      return false;
    *product = *product || narrowed;
  }
  return true;
}

bool tw_is_weight(MlirValue value) {
  bool product = false;
  return is_weight(value, &product) && product;
}
