/* legalize_math.c - arithmetic that no single upstream op computes */
#include "lowering/common/legalize.h"

#include "lowering/common/check.h"

#include <math.h>

static MlirValue binary(const legalize_t *l, const char *name, MlirValue x, MlirValue y) {
  MlirValue operands[] = {x, y};
  return tw_legal_compute(l, name, mlirValueGetType(x), 2, operands);
}

/* x - 0 has the wrong sign of zero and ints have no negation: 0 - x. */
MlirValue tw_legal_neg_int(const legalize_t *l) {
  return tw_binary(&l->at, "arith.subi", l->result, tw_const_int(&l->at, l->result, 0),
                   mlirOperationGetOperand(l->op, 0));
}

MlirValue tw_legal_not(const legalize_t *l) {
  return tw_binary(&l->at, "arith.xori", l->result, mlirOperationGetOperand(l->op, 0),
                   tw_const_int(&l->at, l->result, -1));
}

MlirValue tw_legal_assume(const legalize_t *l) {
  const char *divide = tw_is_unsigned(l->result) ? "arith.divui" : "arith.floordivsi";
  MlirValue by = tw_const_int(&l->at, l->result, tw_attr_int(l->op, "divisor", 1));
  MlirValue quotient = tw_binary(&l->at, divide, l->result, mlirOperationGetOperand(l->op, 0), by);
  MlirValue multiple = tw_binary(&l->at, "arith.muli", l->result, quotient, by);
  tw_set_attr(tw_def(multiple), TW_ASSUMED, mlirUnitAttrGet(l->at.context));
  return multiple;
}

/* --- Division -------------------------------------------------------------------------------------- */

/* x mod y of floats: the remainder of truncation, and y more where its sign is not that of y. */
typedef struct {
  MlirValue rest, y_negative, moves; /* the remainder; y < 0; whether y is added to it */
} remainder_t;

static remainder_t remainder_of(const legalize_t *l, MlirValue x, MlirValue y) {
  MlirValue zero = tw_const_float(&l->at, mlirValueGetType(x), 0.0);
  remainder_t r = {.rest = binary(l, "arith.remf", x, y), .y_negative = tw_legal_compare(l, TW_CMP_LT, y, zero)};
  MlirValue differ = tw_legal_compare(l, TW_CMP_NE, tw_legal_compare(l, TW_CMP_LT, r.rest, zero), r.y_negative);
  r.moves = binary(l, "arith.andi", differ, tw_legal_compare(l, TW_CMP_NE, r.rest, zero));
  return r;
}

/* A zero gets the sign of y. */
static MlirValue mod_float(const legalize_t *l, MlirValue x, MlirValue y) {
  MlirType type = mlirValueGetType(x);
  MlirValue zero = tw_const_float(&l->at, type, 0.0), minus_zero = tw_const_float(&l->at, type, -0.0);
  remainder_t r = remainder_of(l, x, y);
  MlirValue moved = tw_legal_select(l, r.moves, binary(l, "arith.addf", r.rest, y), r.rest);
  MlirValue is_zero = tw_legal_compare(l, TW_CMP_EQ, r.rest, zero);
  return tw_legal_select(l, is_zero, tw_legal_select(l, r.y_negative, minus_zero, zero), moved);
}

/* (x - x mod y) / y, which is an integer but for its rounding: the nearest one. The quotient itself, rounded to a
 * float, may be the integer above it: 3.0 // 0.1 is 29. By zero, or where it is zero, it is the quotient. */
static MlirValue floordiv_float(const legalize_t *l, MlirValue x, MlirValue y) {
  MlirType type = mlirValueGetType(x);
  MlirValue zero = tw_const_float(&l->at, type, 0.0), one = tw_const_float(&l->at, type, 1.0);
  remainder_t r = remainder_of(l, x, y);
  MlirValue whole = binary(l, "arith.divf", binary(l, "arith.subf", x, r.rest), y);
  whole = tw_legal_select(l, r.moves, binary(l, "arith.subf", whole, one), whole);
  MlirValue below = tw_legal_compute(l, "math.floor", type, 1, &whole);
  MlirValue far =
      tw_legal_compare(l, TW_CMP_GT, binary(l, "arith.subf", whole, below), tw_const_float(&l->at, type, 0.5));
  MlirValue nearest = tw_legal_select(l, far, binary(l, "arith.addf", below, one), below);
  MlirValue quotient = binary(l, "arith.divf", x, y);
  MlirValue signed_zero = binary(l, "math.copysign", zero, quotient);
  nearest = tw_legal_select(l, tw_legal_compare(l, TW_CMP_EQ, whole, zero), signed_zero, nearest);
  return tw_legal_select(l, tw_legal_compare(l, TW_CMP_EQ, y, zero), quotient, nearest);
}

/* An operand in the dtype of the result, which may round it, and that in the dtype that it is computed in. */
static MlirValue operand_in(const legalize_t *l, intptr_t index, tw_elem_t wide) {
  return tw_legal_cast(l, tw_legal_operand(l, index, tw_elem_of(l->result), l->result), wide);
}

/* On both operands in the dtype of the result. 16-bit floats compute in f32, where a remainder is exact; what follows
 * rounds once. */
static MlirValue on_floats(const legalize_t *l, MlirValue (*run)(const legalize_t *, MlirValue, MlirValue)) {
  tw_elem_t elem = tw_elem_of(l->result), wide = elem == TW_f16 || elem == TW_bf ? TW_f32 : elem;
  return tw_legal_cast(l, run(l, operand_in(l, 0, wide), operand_in(l, 1, wide)), elem);
}

MlirValue tw_legal_floordiv_float(const legalize_t *l) { return on_floats(l, floordiv_float); }

/* What is left over has the sign of y. By a power of two it is the last bits. */
static MlirValue mod_int(const legalize_t *l, MlirValue x, MlirValue y) {
  MlirType type = mlirValueGetType(x);
  int64_t by;
  if (tw_known_int(y, &by) && by > 0 && (by & (by - 1)) == 0)
    return binary(l, "arith.andi", x, tw_const_int(&l->at, type, by - 1));
  MlirValue zero = tw_const_int(&l->at, type, 0);
  MlirValue rest = binary(l, "arith.remsi", x, y);
  MlirValue differ = tw_legal_compare(l, TW_CMP_LT, binary(l, "arith.xori", rest, y), zero);
  MlirValue is_rest = tw_legal_compare(l, TW_CMP_NE, rest, zero);
  MlirValue move = binary(l, "arith.andi", is_rest, differ);
  return tw_legal_select(l, move, binary(l, "arith.addi", rest, y), rest);
}

MlirValue tw_legal_mod(const legalize_t *l) {
  tw_elem_t elem = tw_elem_of(l->result);
  if (tw_elem_kind(elem) == 'f')
    return on_floats(l, mod_float);
  return mod_int(l, tw_legal_operand(l, 0, elem, l->result), tw_legal_operand(l, 1, elem, l->result));
}

/* --- Powers ---------------------------------------------------------------------------------------- */

static bool known_number(MlirValue value, double *out) {
  int64_t integer;
  if (!tw_known_int(value, &integer))
    return tw_known_float(value, out);
  *out = (double)integer;
  return true;
}

/* x to the power n >= 1 by repeated squaring. */
static MlirValue power(const legalize_t *l, const char *mul, MlirValue x, uint64_t n) {
  MlirValue result = {NULL};
  for (;; x = binary(l, mul, x, x)) {
    if (n & 1)
      result = mlirValueIsNull(result) ? x : binary(l, mul, result, x);
    if (!(n >>= 1))
      return result;
  }
}

/* The result has a dtype of integers: the front end promised a constant exponent. */
static MlirValue pow_int(const legalize_t *l) {
  int64_t n;
  if (!tw_known_int(mlirOperationGetOperand(l->op, 1), &n) || n < 0) {
    tw_op_error(l->op, "marked `integral` needs a constant exponent of at least 0");
    return (MlirValue){NULL};
  }
  MlirValue x = tw_legal_operand(l, 0, tw_elem_of(l->result), l->result);
  return n ? power(l, "arith.muli", x, (uint64_t)n) : tw_const_int(&l->at, l->result, 1);
}

/* Up to this exponent, multiplications are both faster than a power and as accurate. */
enum { MAX_UNROLLED = 8 };

static MlirValue pow_known(const legalize_t *l, MlirValue x, double exponent) {
  MlirType type = mlirValueGetType(x);
  MlirValue one = tw_const_float(&l->at, type, 1.0);
  if (exponent == 0)
    return one;
  MlirValue result = power(l, "arith.mulf", x, (uint64_t)fabs(exponent));
  return exponent < 0 ? binary(l, "arith.divf", one, result) : result;
}

MlirValue tw_legal_pow(const legalize_t *l) {
  tw_elem_t elem = tw_elem_of(l->result);
  if (tw_elem_kind(elem) == 'i')
    return pow_int(l);
  tw_elem_t wide = elem == TW_f64 ? TW_f64 : TW_f32;
  MlirValue x = operand_in(l, 0, wide);
  double exponent;
  bool unroll = known_number(mlirOperationGetOperand(l->op, 1), &exponent) && fabs(exponent) <= MAX_UNROLLED &&
                floor(exponent) == exponent;
  MlirValue result = unroll ? pow_known(l, x, exponent) : binary(l, l->info->float_op, x, operand_in(l, 1, wide));
  return tw_legal_cast(l, result, elem);
}
