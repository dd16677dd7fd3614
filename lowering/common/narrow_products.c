/* narrow_products.c - in tile-canonicalize: a product of numbers of 16 bits that is only rounded to 16 bits has 16 bits
 *
 *   before   %a = arith.extf %x : bf16 to f32                after   %b = arith.sitofp %y : i8 to bf16
 *            %b = arith.sitofp %y : i8 to f32                        %r = arith.mulf %x, %b : bf16
 *            %p = arith.mulf %a, %b : f32
 *            %r = arith.truncf %p : f32 to bf16
 *
 * Weights are scaled so, in one spelling or the other. f32 holds the product of two numbers of 8 bits (f16: 11)
 * exactly, subnormal ones, too, as far as the rounding looks at them: so both round once, to the same number. What must
 * hold: nothing else reads the product, and each factor is, by any view, a number of the narrow type or a byte. */
#include "lowering/common/canonicalize.h"
#include "lowering/loops.h"

static bool is_half(MlirType element) { return mlirTypeIsAF16(element) || mlirTypeIsABF16(element); }

/* Whether the op makes a number wide that the narrow type holds. */
static bool widens(MlirOperation op, MlirType narrow) {
  enum { BYTE = 8 };
  MlirType from = tw_element(mlirValueGetType(mlirOperationGetOperand(op, 0)));
  if (tw_op_is(op, TW_ARITH_EXTF))
    return mlirTypeEqual(from, narrow);
  return (tw_op_is(op, TW_ARITH_SITOFP) || tw_op_is(op, TW_ARITH_UITOFP)) && tw_bits(from) <= BYTE;
}

static bool is_view(MlirOperation op) {
  return tw_op_form(op) == TW_FORM_VIEW && mlirOperationGetNumOperands(op) == 1 && mlirOperationGetNumResults(op) == 1;
}

static bool can_be_narrow(MlirValue factor, MlirType narrow) {
  MlirOperation op = tw_def(factor);
  while (!mlirOperationIsNull(op) && is_view(op))
    op = tw_def(mlirOperationGetOperand(op, 0));
  return !mlirOperationIsNull(op) && mlirOperationGetNumOperands(op) == 1 && widens(op, narrow);
}

static MlirValue build_narrow(MlirValue factor, MlirType narrow) {
  MlirOperation op = tw_def(factor);
  MlirType type = tw_with_element(mlirValueGetType(factor), narrow);
  tw_builder_t at = tw_build_before(op);
  if (tw_op_is(op, TW_ARITH_EXTF))
    return mlirOperationGetOperand(op, 0);
  if (!is_view(op)) {
    const char *name = tw_op_is(op, TW_ARITH_SITOFP) ? "arith.sitofp" : "arith.uitofp";
    return tw_unary(&at, name, type, mlirOperationGetOperand(op, 0));
  }
  MlirValue from = build_narrow(mlirOperationGetOperand(op, 0), narrow);
  MlirOperation made = mlirOperationClone(op);
  mlirBlockInsertOwnedOperationBefore(at.block, at.before, made);
  mlirOperationSetOperand(made, 0, from);
  mlirValueSetType(mlirOperationGetResult(made, 0), type);
  return mlirOperationGetResult(made, 0);
}

/* The product that is only rounded; null if it is none. */
static MlirOperation rounded_product(MlirOperation rounds) {
  MlirOperation product = tw_def(mlirOperationGetOperand(rounds, 0));
  bool only = !mlirOperationIsNull(product) && tw_op_is(product, TW_ARITH_MULF) &&
              tw_has_one_use(mlirOperationGetResult(product, 0)) &&
              mlirOperationGetNumDiscardableAttributes(product) == 0;
  return only && mlirTypeIsAF32(tw_element(mlirValueGetType(mlirOperationGetResult(product, 0)))) ? product
                                                                                                  : tw_null_op();
}

static bool is_rounded(MlirOperation op) {
  return tw_op_is(op, TW_ARITH_TRUNCF) && mlirOperationGetNumDiscardableAttributes(op) == 0 &&
         is_half(tw_element(mlirValueGetType(mlirOperationGetResult(op, 0)))) &&
         !mlirOperationIsNull(rounded_product(op));
}

void tw_narrow_products(MlirOperation func) {
  tw_ops_t rounded = tw_ops_in(func, is_rounded, MlirWalkPreOrder);
  for (int i = 0; i < rounded.count; i++) {
    MlirOperation product = rounded_product(rounded.at[i]);
    MlirValue result = mlirOperationGetResult(rounded.at[i], 0);
    MlirType narrow = tw_element(mlirValueGetType(result));
    MlirValue x = mlirOperationGetOperand(product, 0), y = mlirOperationGetOperand(product, 1);
    if (!can_be_narrow(x, narrow) || !can_be_narrow(y, narrow))
      continue;
    tw_builder_t at = tw_build_before(rounded.at[i]);
    MlirValue made =
        tw_binary(&at, "arith.mulf", mlirValueGetType(result), build_narrow(x, narrow), build_narrow(y, narrow));
    mlirValueReplaceAllUsesOfWith(result, made);
    tw_erase_dead(rounded.at[i]);
  }
  tw_ops_free(&rounded);
}
