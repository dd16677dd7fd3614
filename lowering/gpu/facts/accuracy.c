/* accuracy.c - how exactly a result must be computed. See accuracy.h.
 *
 * Products and quotients hand a relative error on as it is. A sum does where its terms have one sign: 1 + e^x does,
 * x + y in general does not, because it may cancel. */
#include "lowering/gpu/facts/accuracy.h"

#include "tilewright/dialect.h"

enum { MAX_LOOK_AHEAD = 6, MAX_LOOK_BACK = 6 };

static bool is_reduction(MlirOperation op, tw_reduce_kind_t kind) {
  return tw_op_is(op, TW_TILE_REDUCE) && tw_attr_int(op, "kind", 0) == kind;
}

/* ---- what it is made of ---------------------------------------------------------------------------- */

static bool is_known_at_least(MlirOperation op, int bound) {
  double known;
  return (tw_known_float(mlirOperationGetOperand(op, 0), &known) && known >= bound) ||
         (tw_known_float(mlirOperationGetOperand(op, 1), &known) && known >= bound);
}

static bool is_at_least(MlirValue value, int bound, int depth) {
  static const tw_op_kind_t forms[] = {TW_TENSOR_SPLAT, TW_ARITH_EXTF, TW_ARITH_TRUNCF};
  static const tw_op_kind_t positive[] = {TW_MATH_EXP, TW_MATH_EXP2, TW_MATH_ABSF, TW_MATH_COSH};
  static const tw_op_kind_t joined[] = {TW_ARITH_MULF, TW_ARITH_DIVF, TW_ARITH_ADDF, TW_ARITH_MINIMUMF,
                                        TW_ARITH_MINNUMF};
  double known;
  MlirOperation op = tw_def(value);
  if (tw_known_float(value, &known))
    return known >= bound;
  if (mlirOperationIsNull(op) || depth == 0)
    return false;
  if (bound == 0 && TW_OP_IS_ONE_OF(op, positive))
    return true;
  if (tw_op_form(op) == TW_FORM_VIEW || TW_OP_IS_ONE_OF(op, forms) || is_reduction(op, TW_REDUCE_MAX) ||
      is_reduction(op, TW_REDUCE_MIN) || is_reduction(op, TW_REDUCE_ADD))
    return is_at_least(mlirOperationGetOperand(op, 0), bound, depth - 1);
  if (tw_op_is(op, TW_ARITH_MAXNUMF)) /* a NaN on one side leaves the other one */
    return is_known_at_least(op, bound) || (is_at_least(mlirOperationGetOperand(op, 0), bound, depth - 1) &&
                                            is_at_least(mlirOperationGetOperand(op, 1), bound, depth - 1));
  bool either = tw_op_is(op, TW_ARITH_MAXIMUMF), adds = tw_op_is(op, TW_ARITH_ADDF);
  bool selects = tw_op_is(op, TW_ARITH_SELECT);
  if (!either && !selects && (!TW_OP_IS_ONE_OF(op, joined) || (bound && tw_op_is(op, TW_ARITH_DIVF))))
    return false;
  MlirValue x = mlirOperationGetOperand(op, selects), y = mlirOperationGetOperand(op, 1 + selects);
  if (either)
    return is_at_least(x, bound, depth - 1) || is_at_least(y, bound, depth - 1);
  if (adds && bound)
    return (is_at_least(x, 1, depth - 1) && is_at_least(y, 0, depth - 1)) ||
           (is_at_least(x, 0, depth - 1) && is_at_least(y, 1, depth - 1));
  return is_at_least(x, bound, depth - 1) && is_at_least(y, bound, depth - 1);
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
  static const tw_op_kind_t names[] = {TW_ARITH_SELECT,   TW_ARITH_MULF,    TW_ARITH_DIVF,   TW_ARITH_MAXIMUMF,
                                       TW_ARITH_MINIMUMF, TW_ARITH_MAXNUMF, TW_ARITH_MINNUMF};
  return tw_op_form(op) == TW_FORM_VIEW || TW_OP_IS_ONE_OF(op, names) || is_reduction(op, TW_REDUCE_MAX) ||
         is_reduction(op, TW_REDUCE_MIN) || sums_one_sign(op);
}

static bool ends_narrow(MlirOperation op, int depth) {
  MlirOpOperand use = mlirValueGetFirstUse(mlirOperationGetResult(op, 0));
  for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    if (tw_op_is(user, TW_ARITH_TRUNCF))
      continue; /* of f32, so to 16 bits at most */
    if (depth == 0 || !keeps_accuracy(user) || !ends_narrow(user, depth - 1))
      return false;
  }
  return true;
}

bool tw_only_read_narrower(MlirOperation op) { return ends_narrow(op, MAX_LOOK_AHEAD); }

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
    if (!tw_op_is(mlirOpOperandGetOwner(use), TW_TILE_MMA))
      return false;
  return true;
}

/* Whether the value is read by sums and products only; `product` gets true at the first of these. */
static bool is_weight(MlirValue value, bool *product) {
  for (MlirOpOperand use = mlirValueGetFirstUse(value); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation op = mlirOpOperandGetOwner(use);
    bool sum = tw_op_is(op, TW_TILE_REDUCE) && tw_attr_int(op, "kind", 0) == TW_REDUCE_ADD;
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
