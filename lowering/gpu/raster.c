/* raster.c - the order in which the blocks of a grid run. See raster.h. */
#include "lowering/gpu/raster.h"

#include "dialect/layouts.h"

enum { ALL_AXES = 7, MAX_GROUP = 128 };

/* ---- what depends on the position -------------------------------------------------------------- */

static void *dressed(uint32_t axes) { return (void *)(uintptr_t)axes; }

static void set_axes(tw_block_axes_t *axes, MlirValue value, uint32_t bits) {
  MlirValue as_value = {dressed(bits)};
  if (bits)
    tw_map_one(&axes->of, value, as_value);
}

uint32_t tw_block_axes_get(const tw_block_axes_t *axes, MlirValue value) {
  const MlirValue *found = tw_map_get(&axes->of, value.ptr, NULL);
  return found ? (uint32_t)(uintptr_t)found->ptr : 0;
}

/* Arguments of regions depend on what the op depends on: bounds, and what a loop carries at its start. */
static MlirWalkResult follow(MlirOperation op, void *user) {
  tw_block_axes_t *axes = user;
  uint32_t bits = tw_op_is(op, "tile.block_id") ? UINT32_C(1) << tw_attr_int(op, "axis", 0) : 0;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    bits |= tw_block_axes_get(axes, mlirOperationGetOperand(op, i));
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    set_axes(axes, mlirOperationGetResult(op, i), bits);
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++) {
    MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r));
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

/* ---- choosing ---------------------------------------------------------------------------------- */

typedef struct {
  const tw_block_axes_t *axes;
  uint32_t used;               /* axes whose position the program asks for */
  int64_t bytes[ALL_AXES + 1]; /* loaded in loops, by the axes that the place of the tile depends on */
} traffic_t;

static bool is_in_loop(MlirOperation op) {
  for (op = mlirOperationGetParentOperation(op); !mlirOperationIsNull(op); op = mlirOperationGetParentOperation(op))
    if (tw_op_is(op, "scf.for") || tw_op_is(op, "scf.while"))
      return true;
  return false;
}

static MlirWalkResult count_traffic(MlirOperation op, void *user) {
  traffic_t *traffic = user;
  if (tw_op_is(op, "tile.block_id"))
    traffic->used |= UINT32_C(1) << tw_attr_int(op, "axis", 0);
  if (!tw_op_is(op, "tile.load") || !is_in_loop(op))
    return MlirWalkResultAdvance;
  MlirType tile = mlirValueGetType(mlirOperationGetResult(op, 0));
  uint32_t bits = 0;
  for (intptr_t i = 1; i < mlirOperationGetNumOperands(op); i++)
    bits |= tw_block_axes_get(traffic->axes, mlirOperationGetOperand(op, i));
  traffic->bytes[bits & ALL_AXES] += tw_count(tile) * tw_memory_bits(tw_element(tile)) / 8;
  return MlirWalkResultAdvance;
}

/* Bytes that blocks in `height` rows and `width` columns load in an iteration; equal tiles count once. */
static int64_t cost(const traffic_t *traffic, const tw_raster_t *raster, int64_t height, int64_t width) {
  int64_t total = 0;
  for (uint32_t bits = 0; bits <= ALL_AXES; bits++)
    total += traffic->bytes[bits] * (bits >> raster->rows & 1 ? height : 1) * (bits >> raster->columns & 1 ? width : 1);
  return total;
}

static int64_t divide_up(int64_t x, int64_t y) { return (x + y - 1) / y; }

tw_raster_t tw_raster_choose(MlirOperation func, const tw_block_axes_t *axes, int64_t in_flight) {
  static const tw_raster_t planes[] = {{0, 1, 2, 0}, {0, 2, 1, 0}, {1, 2, 0, 0}};
  traffic_t traffic = {.axes = axes};
  mlirOperationWalk(func, count_traffic, &traffic, MlirWalkPreOrder);
  tw_raster_t best = planes[0];
  int64_t least = cost(&traffic, &best, in_flight, 1);
  for (size_t p = 0; p < sizeof planes / sizeof *planes; p++) {
    if (!(traffic.used >> planes[p].rows & traffic.used >> planes[p].columns & 1))
      continue;
    for (int64_t group = 1; group <= MAX_GROUP; group *= 2) {
      int64_t found = cost(&traffic, &planes[p], group, divide_up(in_flight, group));
      if (found < least) {
        best = planes[p];
        best.group = group;
        least = found;
      }
    }
  }
  return best;
}

/* ---- decoding ---------------------------------------------------------------------------------- */

/* *quotient = x / y, *rest = x % y, of numbers that are not negative. */
static void divide(const tw_builder_t *at, MlirValue x, MlirValue y, MlirValue *quotient, MlirValue *rest) {
  MlirType i32 = tw_i32(at->context);
  *quotient = tw_binary(at, "arith.divui", i32, x, y);
  *rest = tw_binary(at, "arith.subi", i32, x, tw_binary(at, "arith.muli", i32, *quotient, y));
}

static void decode_group(const tw_builder_t *at, int64_t group, MlirValue v, MlirValue rows, MlirValue columns,
                         MlirValue *row, MlirValue *column) {
  MlirType i32 = tw_i32(at->context);
  MlirValue height = tw_const_int(at, i32, group), number, within, rest;
  divide(at, v, tw_binary(at, "arith.muli", i32, height, columns), &number, &within);
  MlirValue first = tw_binary(at, "arith.muli", i32, number, height);
  MlirValue left = tw_binary(at, "arith.subi", i32, rows, first); /* the last group may be lower */
  divide(at, within, tw_binary(at, "arith.minsi", i32, left, height), column, &rest);
  *row = tw_binary(at, "arith.addi", i32, first, rest);
}

void tw_raster_decode(const tw_builder_t *at, const tw_raster_t *raster, MlirValue v,
                      const MlirValue extents[TW_GRID_AXES], MlirValue out[TW_GRID_AXES]) {
  MlirValue rows = extents[raster->rows], columns = extents[raster->columns], within;
  MlirValue plane = tw_binary(at, "arith.muli", tw_i32(at->context), rows, columns);
  divide(at, v, plane, &out[raster->slices], &within);
  if (raster->group)
    decode_group(at, raster->group, within, rows, columns, &out[raster->rows], &out[raster->columns]);
  else
    divide(at, within, rows, &out[raster->columns], &out[raster->rows]);
}
