/* load_element.c - in tile-canonicalize: an element that a program reads as a number is a gather of one
 *
 *   before   %t = tile.load %x[%i] padding zero : ... -> tensor<1xi32>
 *            %n = tile.reshape %t : tensor<1xi32> -> i32
 *   after    %n = tile.gather %x[%i] else 0 {check_bounds} : ... -> i32
 *
 * As a number it may say where other tiles lie, which a copy engine and a producer then know in time. The tile stays
 * where it is read as one, too. */
#include "lowering/common/canonicalize.h"
#include "tilewright/dialect.h"

#include <math.h>

static MlirValue padding_of(const tw_builder_t *at, MlirType element, int64_t padding) {
  static const double numbers[] = {[TW_PADDING_NEG_ZERO] = -0.0,
                                   [TW_PADDING_NAN] = NAN,
                                   [TW_PADDING_POS_INF] = INFINITY,
                                   [TW_PADDING_NEG_INF] = -INFINITY};
  if (!tw_is_float(element))
    return tw_const_int(at, element, 0);
  return tw_const_float(at, element, padding <= TW_PADDING_ZERO ? 0.0 : numbers[padding]);
}

static MlirValue build_gather(MlirOperation load) {
  tw_builder_t at = tw_build_before(load);
  MlirType element = tw_element(mlirValueGetType(mlirOperationGetResult(load, 0)));
  intptr_t first, rank = tw_operands(load, TW_OPERAND_INDEX, &first);
  MlirValue operands[TW_MAX_RANK + 2] = {mlirOperationGetOperand(load, 0)};
  for (intptr_t i = 0; i < rank; i++)
    operands[1 + i] = mlirOperationGetOperand(load, first + i);
  bool inside = tw_has_attr(load, "tile.in_bounds");
  if (!inside)
    operands[1 + rank] = padding_of(&at, element, tw_attr_int(load, "padding", TW_PADDING_UNDETERMINED));
  int32_t segments[] = {1, (int32_t)rank, 0, !inside};
  tw_attr_t attrs[] = {{"operandSegmentSizes", mlirDenseI32ArrayGet(at.context, 4, segments)},
                       {"check_bounds", mlirUnitAttrGet(at.context)}};
  return tw_op1_attrs(&at, "tile.gather", element, 1 + rank + !inside, operands, inside ? 1 : 2, attrs);
}

static bool is_number(MlirOperation op) {
  if (tw_op_form(op) != TW_FORM_VIEW || tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))))
    return false;
  MlirOperation load = tw_def(mlirOperationGetOperand(op, 0));
  return !mlirOperationIsNull(load) && tw_op_loads_tile(load) && !tw_has_attr(load, "order");
}

void tw_load_elements(MlirOperation func) {
  tw_ops_t numbers = tw_ops_in(func, is_number, MlirWalkPreOrder);
  for (int i = 0; i < numbers.count; i++) {
    MlirOperation load = tw_def(mlirOperationGetOperand(numbers.at[i], 0));
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(numbers.at[i], 0), build_gather(load));
    mlirOperationDestroy(numbers.at[i]);
  }
  tw_ops_free(&numbers);
}
