/* inline_map.c - in tile-legalize: a tile.map of plain arithmetic is that arithmetic, on tiles
 *
 *   before   %y = tile.map(%x) : (tensor<64xf32>) -> tensor<64xf32> {
 *            ^bb0(%a: f32):
 *              %b = tile.mul %a, %c : f32, f32
 *              tile.yield %b : f32
 *            }
 *   after    %y = tile.mul %x, %c : tensor<64xf32>, f32
 *
 * Runs first, while an op still takes a tile and a scalar together. Passes see through the ops, and back ends compute
 * them by vectors. A body with branches, loops or accesses to memory stays. */
#include "lowering/common/inline_map.h"
#include "lowering/ir.h"

static bool is_plain(MlirOperation op) {
  bool scalar = tw_op_form(op) == TW_FORM_ELEMENTWISE || tw_op_form(op) == TW_FORM_SOURCE ||
                tw_op_is(op, TW_TILE_BITCAST) || tw_op_is(op, TW_TILE_YIELD);
  return scalar && mlirOperationGetNumRegions(op) == 0 && mlirOperationGetNumResults(op) <= 1;
}

static bool is_plain_map(MlirOperation op) {
  if (!tw_op_is(op, TW_TILE_MAP))
    return false;
  MlirOperation part = mlirBlockGetFirstOperation(tw_region_block(op, 0));
  while (!mlirOperationIsNull(part) && is_plain(part))
    part = mlirOperationGetNextInBlock(part);
  return mlirOperationIsNull(part);
}

/* Puts an op of the body in front of the map. What it computes of tiles is a tile of the map's shape. */
static void move_out(MlirOperation op, MlirOperation map, MlirType shape) {
  int64_t extents[TW_MAX_RANK];
  bool of_tiles = false;
  for (intptr_t d = 0; d < tw_rank(shape); d++)
    extents[d] = tw_extent(shape, d);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    of_tiles |= tw_is_tile(mlirValueGetType(mlirOperationGetOperand(op, i)));
  mlirOperationMoveBefore(op, map);
  MlirValue result = mlirOperationGetResult(op, 0);
  if (of_tiles)
    mlirValueSetType(result, tw_tile_type(mlirValueGetType(result), tw_rank(shape), extents));
}

/* A value that the body yields, as a tile. */
static MlirValue whole(const tw_builder_t *at, MlirValue value, MlirType type) {
  return tw_is_tile(mlirValueGetType(value)) ? value : tw_broadcast(at, type, value);
}

static void inline_map(MlirOperation map) {
  MlirBlock body = tw_region_block(map, 0);
  MlirOperation end = mlirBlockGetTerminator(body);
  MlirType shape = mlirValueGetType(mlirOperationGetOperand(map, 0));
  tw_builder_t at = tw_build_before(map);
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(body); i++)
    mlirValueReplaceAllUsesOfWith(mlirBlockGetArgument(body, i), mlirOperationGetOperand(map, i));
  for (MlirOperation op; op = mlirBlockGetFirstOperation(body), !mlirOperationEqual(op, end);)
    move_out(op, map, shape);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(map); i++) {
    MlirValue result = mlirOperationGetResult(map, i);
    mlirValueReplaceAllUsesOfWith(result, whole(&at, mlirOperationGetOperand(end, i), mlirValueGetType(result)));
  }
  mlirOperationDestroy(map);
}

bool tw_inline_maps(MlirOperation module) {
  tw_ops_t maps = tw_ops_in(module, is_plain_map, MlirWalkPreOrder);
  for (int i = 0; i < maps.count; i++)
    inline_map(maps.at[i]);
  tw_ops_free(&maps);
  return true;
}
