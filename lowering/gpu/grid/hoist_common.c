/* hoist_common.c - hoists work that neighbouring blocks share. See hoist_common.h.
 *
 * An op is common if neither it nor what is in it reads the position along the axis, or what is not common, and it only
 * computes and loads, before the block writes anything: blocks promise no order, but each sees what it wrote itself. */
#include "lowering/gpu/grid/hoist_common.h"

#include "lowering/divide.h"
#include "lowering/gpu/facts/block_axes.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/loops.h"

enum { MAX_LOG_LENGTH = 3 };

/* ---- what is common ---------------------------------------------------------------------------- */

typedef struct {
  const tw_block_axes_t *axes;
  int axis;
  MlirBlock inner; /* ops in it are not common; null while none is there */
  bool own, loads, multiplies;
} common_reads_t;

static bool only_computes(MlirOperation op) {
  return tw_is_arithmetic(op) || tw_op_form(op) == TW_FORM_CONTROL || tw_op_loads(op);
}

static MlirWalkResult look(MlirOperation op, void *user) {
  common_reads_t *r = user;
  bool position = tw_op_is(op, TW_TILE_BLOCK_ID) && tw_attr_int(op, "axis", 0) == r->axis;
  r->loads |= tw_op_loads(op);
  r->multiplies |= tw_op_is_product(op);
  r->own |= position || !only_computes(op);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirValue value = mlirOperationGetOperand(op, i);
    r->own |= (tw_block_axes_get(r->axes, value) >> r->axis & 1) ||
              (!mlirBlockIsNull(r->inner) && tw_defined_in(value, r->inner));
  }
  return MlirWalkResultAdvance;
}

static common_reads_t reads_of(MlirOperation op, const tw_block_axes_t *axes, int axis, MlirBlock inner) {
  common_reads_t r = {.axes = axes, .axis = axis, .inner = inner};
  mlirOperationWalk(op, look, &r, MlirWalkPreOrder);
  return r;
}

/* ---- choosing ---------------------------------------------------------------------------------- */

static MlirWalkResult find_position(MlirOperation op, void *user) {
  if (tw_op_is(op, TW_TILE_BLOCK_ID))
    *(uint32_t *)user |= UINT32_C(1) << tw_attr_int(op, "axis", 0);
  return MlirWalkResultAdvance;
}

static bool has_common_loop(MlirOperation func, const tw_block_axes_t *axes, int axis) {
  MlirBlock none = {NULL};
  TW_EACH_OP(op, tw_region_block(func, 0)) {
    common_reads_t r = reads_of(op, axes, axis, none);
    if (tw_may_write_arrays(op))
      return false;
    if (tw_op_is(op, TW_SCF_FOR) && r.loads && !r.own)
      return !r.multiplies;
  }
  return false;
}

int tw_strips_axis(MlirOperation func, const tw_block_axes_t *axes, const tw_raster_t *raster) {
  const int candidates[] = {raster->columns, raster->rows};
  uint32_t used = 0;
  mlirOperationWalk(func, find_position, &used, MlirWalkPreOrder);
  for (int i = 0; i < 2; i++)
    if (used >> candidates[i] & 1 && has_common_loop(func, axes, candidates[i]))
      return candidates[i];
  return -1;
}

/* ---- strips of a launch ------------------------------------------------------------------------ */

static MlirValue binary(const tw_builder_t *at, const char *name, MlirValue x, MlirValue y) {
  return tw_binary(at, name, tw_i32(at->context), x, y);
}

static MlirValue constant(const tw_builder_t *at, int64_t value) {
  return tw_const_int(at, tw_i32(at->context), value);
}

/* x / 2^log, rounded up */
static MlirValue shifted(const tw_builder_t *at, MlirValue x, MlirValue length, MlirValue log) {
  MlirValue more = binary(at, "arith.subi", length, constant(at, 1));
  return binary(at, "arith.shrui", binary(at, "arith.addi", x, more), log);
}

/* How many the busiest of the blocks that run has. */
static MlirValue waves(const tw_builder_t *at, MlirValue all, tw_divisor_t blocks) {
  MlirValue quotient, rest;
  MlirValue more = binary(at, "arith.subi", blocks.value, constant(at, 1));
  tw_divide(at, binary(at, "arith.addi", all, more), blocks, &quotient, &rest);
  return quotient;
}

tw_strips_t tw_strips_of(const tw_builder_t *at, int axis, const MlirValue extents[TW_GRID_AXES]) {
  tw_strips_t strips = {axis, constant(at, 1), constant(at, 0)};
  tw_divisor_t blocks = tw_divisor_of(at, tw_grid_op(at, "tile.num_blocks", 0));
  MlirValue beside = binary(at, "arith.muli", extents[(axis + 1) % TW_GRID_AXES], extents[(axis + 2) % TW_GRID_AXES]);
  MlirValue alone = waves(at, binary(at, "arith.muli", beside, extents[axis]), blocks);
  for (int log = 1; log <= MAX_LOG_LENGTH; log++) {
    MlirValue length = constant(at, INT64_C(1) << log), by = constant(at, log);
    MlirValue count = binary(at, "arith.muli", beside, shifted(at, extents[axis], length, by));
    MlirValue work = binary(at, "arith.shli", waves(at, count, blocks), by);
    MlirValue fits = tw_compare(at, TW_SLE, work, alone);
    strips.length = tw_select(at, fits, length, strips.length);
    strips.log = tw_select(at, fits, by, strips.log);
  }
  return strips;
}

MlirValue tw_strips_count(const tw_builder_t *at, const tw_strips_t *strips, MlirValue extent) {
  return shifted(at, extent, strips->length, strips->log);
}

/* ---- moving ------------------------------------------------------------------------------------ */

MlirValue tw_strips_move(const tw_strips_t *strips, const tw_block_axes_t *axes, MlirBlock block, MlirOperation first,
                         MlirOperation end, MlirValue position, MlirValue extent) {
  tw_builder_t at = tw_build_at_end(block, mlirOperationGetLocation(first));
  MlirType i32 = tw_i32(at.context);
  MlirValue start = binary(&at, "arith.shli", position, strips->log);
  MlirValue stop = binary(&at, "arith.minsi", binary(&at, "arith.addi", start, strips->length), extent);
  MlirValue bounds[] = {start, stop, constant(&at, 1)};
  MlirBlock inner = mlirBlockCreate(1, &i32, &at.location);
  MlirOperation loop = tw_build_for(&at, TW_FOR_INITS, bounds, tw_region_with(inner));
  tw_set_attr(loop, TW_PERSISTENT, mlirUnitAttrGet(at.context));
  bool wrote = false;
  for (MlirOperation op = first, next; !mlirOperationEqual(op, end); op = next) {
    next = mlirOperationGetNextInBlock(op);
    bool common = !wrote && !reads_of(op, axes, strips->axis, inner).own;
    wrote = wrote || tw_may_write_arrays(op);
    mlirOperationRemoveFromParent(op);
    if (common)
      mlirBlockInsertOwnedOperationBefore(block, loop, op);
    else
      mlirBlockAppendOwnedOperation(inner, op);
  }
  tw_builder_t in = tw_build_at_end(inner, at.location);
  tw_build(&in, "scf.yield", (tw_op_parts_t){0});
  return mlirBlockGetArgument(inner, 0);
}
