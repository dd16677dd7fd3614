/* legalize_math.c - arithmetic that no single upstream op computes */
#include "lowering/common/legalize.h"

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

/* --- Division -------------------------------------------------------------------------------------- */

/* The quotient is rounded to the dtype before it is rounded down. */
MlirValue tw_legal_floordiv_float(const legalize_t *l) {
  tw_elem_t elem = tw_elem_of(l->result);
  MlirValue quotient =
      binary(l, "arith.divf", tw_legal_operand(l, 0, elem, l->result), tw_legal_operand(l, 1, elem, l->result));
  return tw_legal_compute(l, "math.floor", l->result, 1, &quotient);
}

/* The remainder of truncation, and y more where its sign is not that of y. A zero gets the sign of y. */
static MlirValue mod_float(const legalize_t *l, MlirValue x, MlirValue y) {
  MlirType type = mlirValueGetType(x);
  MlirValue zero = tw_const_float(&l->at, type, 0.0), minus_zero = tw_const_float(&l->at, type, -0.0);
  MlirValue rest = binary(l, "arith.remf", x, y);
  MlirValue y_negative = tw_legal_compare(l, TW_CMP_LT, y, zero);
  MlirValue differ = tw_legal_compare(l, TW_CMP_NE, tw_legal_compare(l, TW_CMP_LT, rest, zero), y_negative);
  MlirValue moved = tw_legal_select(l, differ, binary(l, "arith.addf", rest, y), rest);
  MlirValue is_zero = tw_legal_compare(l, TW_CMP_EQ, rest, zero);
  return tw_legal_select(l, is_zero, tw_legal_select(l, y_negative, minus_zero, zero), moved);
}

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
  bool is_float = tw_elem_kind(elem) == 'f';
  /* 16-bit floats compute in f32: the remainder is exact there, and the addition rounds once. */
  tw_elem_t wide = elem == TW_f16 || elem == TW_bf ? TW_f32 : elem;
  MlirValue x = tw_legal_operand(l, 0, wide, l->result), y = tw_legal_operand(l, 1, wide, l->result);
  return tw_legal_cast(l, is_float ? mod_float(l, x, y) : mod_int(l, x, y), elem);
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
  MlirValue x = tw_legal_operand(l, 0, wide, l->result);
  double exponent;
  bool unroll = known_number(mlirOperationGetOperand(l->op, 1), &exponent) && fabs(exponent) <= MAX_UNROLLED &&
                floor(exponent) == exponent;
  MlirValue result =
      unroll ? pow_known(l, x, exponent) : binary(l, l->info->float_op, x, tw_legal_operand(l, 1, wide, l->result));
  return tw_legal_cast(l, result, elem);
}
