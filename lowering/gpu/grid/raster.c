/* raster.c - the order in which the blocks of a grid run. See raster.h. */
#include "lowering/gpu/grid/raster.h"

#include "dialect/layouts.h"
#include "lowering/divide.h"
#include "lowering/gpu/facts/block_axes.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/launch_record.h"

enum { ALL_AXES = 7, MAX_GROUP = 128 };

/* ---- choosing ---------------------------------------------------------------------------------- */

typedef struct {
  const tw_block_axes_t *axes;
  uint32_t used;               /* axes whose position the program asks for */
  int64_t bytes[ALL_AXES + 1]; /* loaded in loops, by the axes that the place of the tile depends on */
} traffic_t;

static bool is_in_loop(MlirOperation op) {
  for (op = mlirOperationGetParentOperation(op); !mlirOperationIsNull(op); op = mlirOperationGetParentOperation(op))
    if (tw_op_is(op, TW_SCF_FOR) || tw_op_is(op, TW_SCF_WHILE))
      return true;
  return false;
}

static MlirWalkResult count_traffic(MlirOperation op, void *user) {
  traffic_t *traffic = user;
  if (tw_op_is(op, TW_TILE_BLOCK_ID))
    traffic->used |= UINT32_C(1) << tw_attr_int(op, "axis", 0);
  if (!tw_op_loads_tile(op) || !is_in_loop(op))
    return MlirWalkResultAdvance;
  MlirType tile = mlirValueGetType(mlirOperationGetResult(op, 0));
  traffic->bytes[tw_block_axes_of_load(traffic->axes, op)] += tw_count(tile) * tw_memory_bits(tw_element(tile)) / 8;
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

/* The order that the program asks for: its axis first, then the lowest other one that positions depend on. */
static tw_raster_t asked_for(MlirOperation func, const tw_raster_t *best, uint32_t used) {
  tw_raster_t raster = *best;
  if (tw_has_hint_raster(func)) {
    raster.rows = (int)tw_hint_raster(func, 0);
    raster.columns = raster.rows == 0 ? (used & 2 ? 1 : 2) : raster.rows == 1 && !(used & 1) ? 2 : used & 1 ? 0 : 1;
    raster.slices = 3 - raster.rows - raster.columns;
    raster.group = best->rows == raster.rows && best->columns == raster.columns ? best->group : 0;
  }
  raster.group = tw_hint_group(func, raster.group);
  return raster;
}

tw_raster_t tw_raster_choose(MlirOperation func, const tw_block_axes_t *axes, int64_t in_flight) {
  static const tw_raster_t planes[] = {{.rows = 0, .columns = 1, .slices = 2},
                                       {.rows = 0, .columns = 2, .slices = 1},
                                       {.rows = 1, .columns = 2, .slices = 0}};
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
  return asked_for(func, &best, traffic.used);
}

/* ---- decoding ---------------------------------------------------------------------------------- */

static MlirValue binary(const tw_builder_t *at, const char *name, MlirValue x, MlirValue y) {
  return tw_binary(at, name, tw_i32(at->context), x, y);
}

static MlirValue constant(const tw_builder_t *at, int64_t value) {
  return tw_const_int(at, tw_i32(at->context), value);
}

tw_raster_code_t tw_raster_prepare(const tw_builder_t *at, const tw_raster_t *raster,
                                   const MlirValue extents[TW_GRID_AXES]) {
  tw_raster_code_t code = {.raster = *raster, .rows = extents[raster->rows]};
  MlirValue columns = extents[raster->columns];
  if (raster->slices >= 0)
    code.plane = tw_divisor_of(at, binary(at, "arith.muli", code.rows, columns));
  if (raster->group == 0) {
    code.height = tw_divisor_of(at, code.rows);
    return code;
  }
  MlirValue group = raster->height.ptr ? raster->height : constant(at, raster->group);
  MlirValue last = binary(at, "arith.remui", code.rows, group); /* lower than the others, if there is a rest */
  code.band = tw_divisor_of(at, binary(at, "arith.muli", group, columns));
  code.height = tw_divisor_of(at, group);
  code.last = tw_divisor_of(at, binary(at, "arith.maxui", last, constant(at, 1)));
  return code;
}

static void decode_group(const tw_builder_t *at, const tw_raster_code_t *code, MlirValue v, MlirValue *row,
                         MlirValue *column) {
  MlirValue number, within, rest;
  tw_divide(at, v, code->band, &number, &within);
  MlirValue first = binary(at, "arith.muli", number, code->height.value);
  MlirValue low = tw_compare(at, TW_SLT, binary(at, "arith.subi", code->rows, first), code->height.value);
  tw_divisor_t height = {tw_select(at, low, code->last.value, code->height.value),
                         tw_select(at, low, code->last.reciprocal, code->height.reciprocal)};
  tw_divide(at, within, height, column, &rest);
  *row = binary(at, "arith.addi", first, rest);
}

void tw_raster_decode(const tw_builder_t *at, const tw_raster_code_t *code, MlirValue v, MlirValue out[TW_GRID_AXES]) {
  const tw_raster_t *raster = &code->raster;
  MlirValue within = v;
  if (raster->slices >= 0)
    tw_divide(at, v, code->plane, &out[raster->slices], &within);
  if (raster->group)
    decode_group(at, code, within, &out[raster->rows], &out[raster->columns]);
  else
    tw_divide(at, within, code->height, &out[raster->columns], &out[raster->rows]);
}

/* ---- a grid that is not the program's ---------------------------------------------------------- */

MlirValue tw_grid_op(const tw_builder_t *at, const char *name, int axis) {
  MlirType i32 = tw_i32(at->context);
  return tw_op1_attr(at, name, i32, 0, NULL, "axis", mlirIntegerAttrGet(i32, axis));
}

static bool is_id(MlirOperation op) { return tw_op_is(op, TW_TILE_BLOCK_ID) || tw_op_is(op, TW_TILE_NUM_BLOCKS); }

tw_ops_t tw_grid_ids_in(MlirOperation func) { return tw_ops_in(func, is_id, MlirWalkPreOrder); }

/* Blocks run along axis 0 first and along axis 2 last: where slices lie along that, each is counted for itself. */
void tw_grid_reorder(MlirOperation func, const tw_ops_t *ids, const tw_raster_t *raster) {
  tw_builder_t at = tw_build_before(mlirBlockGetFirstOperation(tw_region_block(func, 0)));
  MlirValue id[TW_GRID_AXES], extents[TW_GRID_AXES], position[TW_GRID_AXES];
  MlirType i64 = tw_i64(at.context);
  MlirValue all = tw_const_int(&at, i64, 1);
  tw_raster_t counted = *raster;
  int axes = raster->slices == 2 ? 2 : TW_GRID_AXES;
  for (int axis = 0; axis < TW_GRID_AXES; axis++) {
    id[axis] = position[axis] = tw_grid_op(&at, "tile.block_id", axis);
    extents[axis] = tw_grid_op(&at, "tile.num_blocks", axis);
    if (axis < axes)
      all = tw_binary(&at, "arith.muli", i64, all, tw_unary(&at, "arith.extui", i64, extents[axis]));
  }
  MlirValue number = axes > 2 ? binary(&at, "arith.muli", extents[1], id[2]) : (MlirValue){NULL};
  number = axes > 2 ? binary(&at, "arith.addi", id[1], number) : id[1];
  number = binary(&at, "arith.addi", id[0], binary(&at, "arith.muli", extents[0], number));
  MlirValue small = tw_compare(&at, TW_ULT, all, tw_const_int(&at, i64, INT64_C(1) << 31));
  counted.slices = axes > 2 ? raster->slices : -1;
  tw_raster_code_t code = tw_raster_prepare(&at, &counted, extents);
  code.band.reciprocal.ptr = NULL; /* of numbers that are divided by once */
  if (raster->group == 0)
    code.height.reciprocal.ptr = NULL;
  tw_raster_decode(&at, &code, number, position);
  for (int axis = 0; axis < axes; axis++)
    position[axis] = tw_select(&at, small, position[axis], id[axis]);
  tw_grid_replace_ids(ids, position, NULL);
}

/* A block sees it: axis 1 of a launch never has more than TW_MOST_BLOCKS_ACROSS, and an axis 0 that has is not
 * exchanged for it. */
void tw_grid_exchange(MlirOperation func, const tw_ops_t *ids) {
  tw_builder_t at = tw_build_before(mlirBlockGetFirstOperation(tw_region_block(func, 0)));
  MlirValue id[TW_GRID_AXES], extents[TW_GRID_AXES];
  for (int axis = 0; axis < TW_GRID_AXES; axis++) {
    id[axis] = tw_grid_op(&at, "tile.block_id", axis);
    extents[axis] = tw_grid_op(&at, "tile.num_blocks", axis);
  }
  MlirValue are = tw_compare(&at, TW_ULE, extents[0], constant(&at, TW_MOST_BLOCKS_ACROSS));
  MlirValue position[TW_GRID_AXES] = {tw_select(&at, are, id[1], id[0]), tw_select(&at, are, id[0], id[1]), id[2]};
  MlirValue all[TW_GRID_AXES] = {tw_select(&at, are, extents[1], extents[0]),
                                 tw_select(&at, are, extents[0], extents[1]), extents[2]};
  tw_grid_replace_ids(ids, position, all);
  tw_launch_set_exchanged_axes(func, true);
}

void tw_grid_replace_ids(const tw_ops_t *ids, const MlirValue position[TW_GRID_AXES], const MlirValue *extents) {
  for (int i = 0; i < ids->count; i++) {
    const MlirValue *values = tw_op_is(ids->at[i], TW_TILE_BLOCK_ID) ? position : extents;
    if (values == NULL)
      continue;
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(ids->at[i], 0), values[tw_attr_int(ids->at[i], "axis", 0)]);
    mlirOperationDestroy(ids->at[i]);
  }
}

/* ---- a grid other than the launched one ------------------------------------------------------------ */
