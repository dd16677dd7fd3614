/* launch_factors.c - numbers that a launch can compute from its words. See launch_factors.h. */
#include "lowering/gpu/facts/launch_factors.h"
#include "lowering/gpu/facts/kernel_words.h"

/* (word + plus) / by */
static bool read_extent(MlirOperation func, MlirValue value, tw_extent_factor_t *out) {
  MlirOperation op = tw_def(value);
  int64_t plus;
  *out = (tw_extent_factor_t){.by = 1};
  tw_op_class_t class = mlirOperationIsNull(op) ? TW_CLASS_NONE : tw_op_class(op);
  if (class == TW_CLASS_QUOTIENT || class == TW_CLASS_CEILING) {
    if (!tw_known_int(mlirOperationGetOperand(op, 1), &out->by) || out->by <= 0 || out->by >= INT32_MAX)
      return false;
    out->plus = class == TW_CLASS_CEILING ? out->by - 1 : 0;
    value = mlirOperationGetOperand(op, 0);
    op = tw_def(value);
  }
  if (!mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_ADDI) && tw_known_int(mlirOperationGetOperand(op, 1), &plus)) {
    out->plus += plus;
    value = mlirOperationGetOperand(op, 0);
  }
  out->word = tw_word_behind(func, value);
  return out->word >= 0 && out->plus > INT32_MIN && out->plus < INT32_MAX;
}

bool tw_read_factors(MlirOperation func, MlirValue value, tw_factors_t *out) {
  MlirOperation op = tw_def(value);
  int64_t known;
  if (tw_known_int(value, &known)) {
    out->constant *= known;
    return known > 0 && out->constant < INT32_MAX;
  }
  if (!mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_MULI))
    return tw_read_factors(func, mlirOperationGetOperand(op, 0), out) &&
           tw_read_factors(func, mlirOperationGetOperand(op, 1), out);
  if (out->count == TW_EXTENT_FACTORS)
    return false;
  return read_extent(func, value, &out->at[out->count++]);
}

bool tw_write_factors(const tw_factors_t *product, tw_extent_factor_t *out, uint32_t *count) {
  for (uint32_t i = 0; i < product->count; i++)
    out[(*count)++] = product->at[i];
  if (product->constant == 1 && product->count > 0)
    return true;
  if (*count == TW_EXTENT_FACTORS)
    return false;
  out[(*count)++] = (tw_extent_factor_t){.word = -1, .plus = product->constant, .by = 1};
  return true;
}
