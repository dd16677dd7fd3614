/* divide.c - division by multiplying. See divide.h. */
#include "lowering/divide.h"

static MlirValue binary(const tw_builder_t *at, const char *name, MlirValue x, MlirValue y) {
  return tw_binary(at, name, tw_i32(at->context), x, y);
}

static MlirValue constant(const tw_builder_t *at, int64_t value) {
  return tw_const_int(at, tw_i32(at->context), value);
}

/* (2^32 - 1) / d: what `tw_divide` multiplies by. */
tw_divisor_t tw_divisor_of(const tw_builder_t *at, MlirValue d) {
  return (tw_divisor_t){d, binary(at, "arith.divui", constant(at, -1), d)};
}

/* The product's upper half. */
static MlirValue multiply_high(const tw_builder_t *at, MlirValue x, MlirValue y) {
  enum { WORD = 32 };
  MlirType i64 = tw_i64(at->context);
  MlirValue whole =
      tw_binary(at, "arith.muli", i64, tw_unary(at, "arith.extui", i64, x), tw_unary(at, "arith.extui", i64, y));
  return tw_unary(at, "arith.trunci", tw_i32(at->context),
                  tw_binary(at, "arith.shrui", i64, whole, tw_const_int(at, i64, WORD)));
}

/* The product is x / d rounded down, or one less. */
void tw_divide(const tw_builder_t *at, MlirValue x, tw_divisor_t d, MlirValue *quotient, MlirValue *rest) {
  if (d.reciprocal.ptr == NULL) {
    *quotient = binary(at, "arith.divui", x, d.value);
    *rest = binary(at, "arith.subi", x, binary(at, "arith.muli", *quotient, d.value));
    return;
  }
  MlirValue guess = multiply_high(at, x, d.reciprocal);
  MlirValue left = binary(at, "arith.subi", x, binary(at, "arith.muli", guess, d.value));
  MlirValue less = tw_compare(at, TW_UGE, left, d.value);
  *quotient = tw_select(at, less, binary(at, "arith.addi", guess, constant(at, 1)), guess);
  *rest = tw_select(at, less, binary(at, "arith.subi", left, d.value), left);
}
