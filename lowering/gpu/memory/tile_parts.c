/* tile_parts.c - see tile_parts.h */
#include "lowering/gpu/memory/tile_parts.h"

/* The axis of `to` where `axis` of `from` is, of tiles with the same elements in the same order; or -1. */
static int reshaped_axis(MlirType from, int axis, MlirType to) {
  int64_t before = 1, here = 1;
  for (int d = 0; d < axis; d++)
    before *= tw_extent(from, d);
  for (int d = 0; d < tw_rank(to); here *= tw_extent(to, d++))
    if (here == before && tw_extent(to, d) == tw_extent(from, axis))
      return d;
  return -1;
}

int tw_operand_axis(MlirOperation op, intptr_t i, int axis) {
  MlirType from = mlirValueGetType(mlirOperationGetOperand(op, i));
  if (!tw_is_tile(from))
    return -1;
  if (mlirOperationGetNumResults(op) == 0)
    return axis;
  MlirType result = mlirValueGetType(mlirOperationGetResult(op, 0));
  if (tw_op_is(op, TW_TILE_RESHAPE))
    return reshaped_axis(result, axis, from);
  if (tw_op_is(op, TW_TILE_PERMUTE)) {
    int64_t order[TW_MAX_RANK] = {0};
    tw_attr_ints(op, "order", order, TW_MAX_RANK);
    return (int)order[axis];
  }
  if (tw_op_is_reduction(op)) /* of another axis */
    return axis + (tw_attr_int(op, "axis", 0) <= axis);
  if (!tw_op_is(op, TW_TILE_BROADCAST))
    return axis;
  int own = axis - (int)(tw_rank(result) - tw_rank(from));
  return own >= 0 && tw_extent(from, own) == tw_extent(result, axis) ? own : -1;
}

int tw_result_axis(MlirOperation op, intptr_t i, int axis) {
  MlirType from = mlirValueGetType(mlirOperationGetOperand(op, i));
  MlirType result = mlirValueGetType(mlirOperationGetResult(op, 0));
  if (tw_op_is(op, TW_TILE_RESHAPE))
    return reshaped_axis(from, axis, result);
  if (tw_op_is(op, TW_TILE_PERMUTE)) {
    int64_t order[TW_MAX_RANK] = {0};
    intptr_t rank = tw_attr_ints(op, "order", order, TW_MAX_RANK);
    for (int d = 0; d < rank; d++)
      if (order[d] == axis)
        return d;
    return -1;
  }
  if (tw_op_is_reduction(op))
    return axis - (tw_attr_int(op, "axis", 0) < axis);
  return tw_op_is(op, TW_TILE_BROADCAST) ? axis + (int)(tw_rank(result) - tw_rank(from)) : axis;
}

bool tw_is_made_anew(MlirValue value) {
  MlirOperation op = tw_def(value);
  if (mlirOperationIsNull(op))
    return false;
  if (tw_is_constant(op))
    return mlirDenseElementsAttrIsSplat(tw_attr(op, "value"));
  return tw_op_is(op, TW_TENSOR_SPLAT) ||
         (tw_op_is(op, TW_TILE_IOTA) &&
          mlirTypeEqual(tw_element(mlirValueGetType(value)), tw_i32(mlirTypeGetContext(mlirValueGetType(value)))));
}

MlirValue tw_make_part_anew(const tw_builder_t *at, MlirValue value, int axis, int64_t part, MlirValue j) {
  MlirOperation op = tw_def(value);
  MlirType type = tw_with_extent(mlirValueGetType(value), axis, part), i32 = tw_i32(at->context);
  if (tw_op_is(op, TW_TENSOR_SPLAT))
    return tw_unary(at, "tensor.splat", type, mlirOperationGetOperand(op, 0));
  if (tw_is_constant(op)) {
    MlirAttribute splat = mlirDenseElementsAttrGetSplatValue(tw_attr(op, "value"));
    return tw_op1_attr(at, "arith.constant", type, 0, NULL, "value", mlirDenseElementsAttrSplatGet(type, splat));
  }
  MlirValue first = tw_binary(at, "arith.muli", i32, j, tw_const_int(at, i32, part));
  return tw_binary(at, "arith.addi", type, tw_op1(at, "tile.iota", type, 0, NULL),
                   tw_unary(at, "tensor.splat", type, first));
}

MlirValue tw_part_index(const tw_builder_t *at, MlirValue index, int64_t parts, MlirValue j) {
  MlirType type = mlirValueGetType(index);
  int64_t known;
  if (mlirIntegerTypeGetWidth(type) > 32)
    j = tw_unary(at, "arith.extsi", type, j);
  if (tw_known_int(index, &known) && known == 0)
    return j;
  MlirValue first = tw_binary(at, "arith.muli", type, index, tw_const_int(at, type, parts));
  return tw_binary(at, "arith.addi", type, first, j);
}
