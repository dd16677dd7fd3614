/* slices.c - blocks that compute a slice of a tile each. See slices.h. */
#include "lowering/gpu/grid/slices.h"

#include "lowering/aliasing.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/grid/raster.h"
#include "lowering/launch_record.h"

/* ---- arrays that must lie apart ---------------------------------------------------------------- */

/* Whether parts touch, by two accesses of one array, only what is theirs. */
static bool keep_to_their_parts(tw_dims_t *dims, const tw_tile_slice_t *slices, int num, MlirOperation x,
                                MlirOperation y) {
  for (int i = 0; i < num; i++) {
    int64_t one, other;
    int x_axis = tw_dims_axis(dims, x, slices[i].class, &one), y_axis = tw_dims_axis(dims, y, slices[i].class, &other);
    if (x_axis < 0 || x_axis != y_axis || one != other)
      return false;
  }
  return true;
}

/* Whether parts may do the first before others do the second, which writes. */
static bool are_apart(tw_dims_t *dims, const tw_tile_slice_t *slices, int num, MlirOperation x, MlirOperation y,
                      bool rely) {
  intptr_t first;
  MlirValue one = tw_access_array(x, &first), other = tw_access_array(y, &first);
  bool keep = keep_to_their_parts(dims, slices, num, x, y);
  return rely ? tw_assume_unwritten(one, other, keep)
              : tw_may_be_disjoint(one, other) || (keep && mlirValueEqual(one, other));
}

bool tw_slices_are_apart(tw_dims_t *dims, const tw_tile_slice_t *slices, int num, bool rely) {
  for (int w = 0; w < dims->writes.count; w++) {
    for (int r = 0; r < dims->reads.count; r++)
      if (!are_apart(dims, slices, num, dims->reads.at[r], dims->writes.at[w], rely))
        return false;
    for (int other = 0; other < w; other++)
      if (!are_apart(dims, slices, num, dims->writes.at[other], dims->writes.at[w], rely))
        return false;
  }
  return true;
}

/* ---- rewriting --------------------------------------------------------------------------------- */

static MlirValue by(const tw_builder_t *at, const char *name, MlirValue x, int64_t y) {
  MlirType type = mlirValueGetType(x);
  return y == 1 ? x : tw_binary(at, name, type, x, tw_const_int(at, type, y));
}

/* A position in the grid of the program, the block that is started there, and how many there are for one. */
typedef struct {
  MlirValue position, started;
  int64_t parts;
} axis_t;

static void number_blocks(MlirOperation func, axis_t axes[TW_GRID_AXES], tw_tile_slice_t *slices, int num) {
  MlirValue position[TW_GRID_AXES], extents[TW_GRID_AXES];
  tw_ops_t ids = tw_grid_ids_in(func);
  tw_builder_t at = tw_build_before(mlirBlockGetFirstOperation(tw_region_block(func, 0)));
  at.location = mlirOperationGetLocation(func);
  for (int a = 0; a < TW_GRID_AXES; a++) {
    axes[a] = (axis_t){.started = tw_grid_op(&at, "tile.block_id", a), .parts = 1};
    for (int i = 0; i < num; i++) {
      if (slices[i].axis != a)
        continue;
      slices[i].part = by(&at, "arith.remui", by(&at, "arith.divui", axes[a].started, axes[a].parts), slices[i].parts);
      axes[a].parts *= slices[i].parts;
    }
    position[a] = axes[a].position = by(&at, "arith.divui", axes[a].started, axes[a].parts);
    extents[a] = by(&at, "arith.divui", tw_grid_op(&at, "tile.num_blocks", a), axes[a].parts);
  }
  tw_grid_replace_ids(&ids, position, extents);
  tw_ops_free(&ids);
}

/* The tile's index times the number of parts, and the part: where the index is the position, that is the block's. */
static void place(tw_dims_t *dims, MlirOperation op, const tw_tile_slice_t *slice, const axis_t *axis) {
  intptr_t operand = tw_dims_index(dims, op, slice->class);
  if (operand < 0)
    return;
  MlirValue index = mlirOperationGetOperand(op, operand), part = slice->part, placed = axis->started;
  if (!mlirValueEqual(index, axis->position) || axis->parts != slice->parts) {
    tw_builder_t at = tw_build_before(op);
    MlirType type = mlirValueGetType(index);
    if (tw_bits(type) != tw_bits(mlirValueGetType(part)))
      part =
          tw_unary(&at, tw_bits(type) > tw_bits(mlirValueGetType(part)) ? "arith.extsi" : "arith.trunci", type, part);
    placed = tw_binary(&at, "arith.addi", type, by(&at, "arith.muli", index, slice->parts), part);
  }
  mlirOperationSetOperand(op, operand, placed);
}

void tw_apply_slices(tw_dims_t *dims, tw_tile_slice_t *slices, int num) {
  axis_t axes[TW_GRID_AXES];
  int32_t grid[TW_GRID_AXES];
  number_blocks(dims->func, axes, slices, num);
  for (int i = 0; i < num; i++) {
    for (int r = 0; r < dims->reads.count; r++)
      place(dims, dims->reads.at[r], &slices[i], &axes[slices[i].axis]);
    for (int w = 0; w < dims->writes.count; w++)
      place(dims, dims->writes.at[w], &slices[i], &axes[slices[i].axis]);
    tw_dims_divide(dims, slices[i].class, slices[i].parts, slices[i].part);
  }
  for (int a = 0; a < TW_GRID_AXES; a++)
    grid[a] = (int32_t)axes[a].parts;
  tw_launch_set_grid_scale(dims->func, grid);
}
