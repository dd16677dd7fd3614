/* block_axes.c - what depends on the position in the grid. See block_axes.h. */
#include "lowering/gpu/facts/block_axes.h"

enum { ALL_AXES = 7 };

static void set_axes(tw_block_axes_t *axes, MlirValue value, uint32_t bits) {
  if (bits)
    tw_map_set_number(&axes->of, value, (int)bits);
}

uint32_t tw_block_axes_get(const tw_block_axes_t *axes, MlirValue value) {
  return (uint32_t)tw_map_number(&axes->of, value, 0);
}

/* Arguments of regions depend on what the op depends on: bounds, and what a loop carries at its start. */
static MlirWalkResult follow(MlirOperation op, void *user) {
  tw_block_axes_t *axes = user;
  uint32_t bits = tw_op_is(op, TW_TILE_BLOCK_ID) ? UINT32_C(1) << tw_attr_int(op, "axis", 0) : 0;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    bits |= tw_block_axes_get(axes, mlirOperationGetOperand(op, i));
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    set_axes(axes, mlirOperationGetResult(op, i), bits);
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++) {
    MlirBlock block = tw_region_block(op, r);
    for (intptr_t i = 0; !mlirBlockIsNull(block) && i < mlirBlockGetNumArguments(block); i++)
      set_axes(axes, mlirBlockGetArgument(block, i), bits);
  }
  return MlirWalkResultAdvance;
}

tw_block_axes_t tw_block_axes_of(MlirOperation func) {
  tw_block_axes_t axes = {0};
  mlirOperationWalk(func, follow, &axes, MlirWalkPreOrder);
  return axes;
}

void tw_block_axes_free(tw_block_axes_t *axes) { tw_map_free(&axes->of); }

uint32_t tw_block_axes_of_load(const tw_block_axes_t *axes, MlirOperation load) {
  uint32_t bits = 0;
  for (intptr_t i = 1; i < mlirOperationGetNumOperands(load); i++)
    bits |= tw_block_axes_get(axes, mlirOperationGetOperand(load, i));
  return bits & ALL_AXES;
}
