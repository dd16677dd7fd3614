/* round_loads.c - tile-resize-tiles: loads that only products take, as tf32, round where the copy engine brings them
 *
 * Before, threads would round the elements, and write the right operand of a product to shared memory again:
 *
 *   %a = tile.load %A[%i, %k] padding zero : memref<?x?xf32, ...> -> tensor<128x32xf32>
 *   %l = arith.truncf %a : tensor<128x32xf32> to tensor<128x32xtf32>
 *   %d = tile.mma %l, ...
 *
 * After, what lies in shared memory is rounded: the tensor map of the array says so (tensor_map.rounds).
 *
 *   %l = tile.load %A[%i, %k] padding zero : memref<?x?xf32, ...> -> tensor<128x32xtf32>
 *   %d = tile.mma %l, ...
 *
 * What must hold: products alone read the rounded tile, as it is or transposed, and its lines are along k, so that
 * they may find it where it lies (what goes through registers is rounded there); nothing reads the tile that is not
 * rounded; a tensor map describes the array, and boxes make up the tile, and so of the other operands of these
 * products that are loaded. The accelerator rounds as the cast does, ties to even. Should threads load the tile in
 * the end, they round it. Runs when masks are bounds, and before anything asks where operands will lie. */
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/grid/resize_tiles.h"

/* Whether the engine brings each operand that is loaded: else threads copy them all, and would round one by one. */
static bool is_served(MlirOperation product) {
  for (intptr_t i = 0; i < 2; i++) {
    MlirOperation load = tw_load_behind(mlirOperationGetOperand(product, i));
    if (!mlirOperationIsNull(load) && !(tw_op_loads_tile(load) && tw_engine_brings(load)))
      return false;
  }
  return true;
}

/* Whether neighbours in memory are neighbours along k, so that a product may find its operand where it lies. */
static bool lies_along_k(MlirOperation product, MlirOpOperand use, int axis) {
  bool is_right = mlirOpOperandGetOperandNumber(use) == 1;
  int rank = (int)tw_rank(mlirValueGetType(mlirOperationGetOperand(product, 0)));
  return axis == rank - 1 - is_right;
}

/* `axis`: that along which the tile has neighbours in memory. */
static bool is_of_products(MlirValue tile, int axis, bool may_turn) {
  TW_EACH_USE(use, tile) {
    MlirOperation op = mlirOpOperandGetOwner(use);
    bool turns =
        may_turn && tw_op_form(op) == TW_FORM_VIEW && tw_has_attr(op, "order") && tw_rank(mlirValueGetType(tile)) == 2;
    bool turned = turns && is_of_products(mlirOperationGetResult(op, 0), 1 - axis, false);
    if (!turned && !(tw_op_is_product(op) && lies_along_k(op, use, axis) && is_served(op)))
      return false;
  }
  return true;
}

static bool rounds_for_products(MlirOperation op, int axis) {
  return tw_op_class(op) == TW_CLASS_CAST &&
         mlirTypeIsATF32(tw_element(mlirValueGetType(mlirOperationGetResult(op, 0)))) &&
         is_of_products(mlirOperationGetResult(op, 0), axis, true);
}

/* Whether all that reads the tile are such casts, and there is one. */
static bool is_rounded(MlirOperation load) {
  bool any = false;
  TW_EACH_USE(use, mlirOperationGetResult(load, 0)) {
    if (!rounds_for_products(mlirOpOperandGetOwner(use), tw_contiguous_axis(load)))
      return false;
    any = true;
  }
  return any;
}

/* The same load, of rounded elements, in place of it and the casts. */
static void load_rounded(MlirOperation load) {
  tw_builder_t at = tw_build_before(load);
  MlirValue operands[TW_MAX_RANK + 1], tile = mlirOperationGetResult(load, 0);
  intptr_t num = mlirOperationGetNumOperands(load);
  for (intptr_t i = 0; i < num; i++)
    operands[i] = mlirOperationGetOperand(load, i);
  MlirType rounded = tw_with_element(mlirValueGetType(tile), mlirTF32TypeGet(at.context));
  MlirValue loaded = tw_op1(&at, "tile.load", rounded, num, operands);
  tw_copy_attrs(load, tw_def(loaded));
  for (MlirOpOperand use = mlirValueGetFirstUse(tile); !mlirOpOperandIsNull(use); use = mlirValueGetFirstUse(tile)) {
    MlirOperation cast = mlirOpOperandGetOwner(use);
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(cast, 0), loaded);
    mlirOperationDestroy(cast);
  }
  mlirOperationDestroy(load);
}

bool tw_round_loads(MlirOperation func) {
  tw_ops_t loads = tw_ops_in(func, tw_op_loads_tile, MlirWalkPreOrder);
  for (int i = 0; i < loads.count; i++)
    if (is_rounded(loads.at[i]) && tw_engine_brings(loads.at[i]))
      load_rounded(loads.at[i]);
  tw_ops_free(&loads);
  return true;
}
