/* raster.h - the order in which the blocks of a grid run
 *
 * Blocks that run at the same time share what they load through the L2 cache, so they should be a
 * compact part of the grid. In a raster with groups of G rows, blocks go down G rows, then to the
 * next column, and after the last column to the next group:
 *
 *   0  3  6        G = 3; rows are positions along one axis of the grid, columns along another,
 *   1  4  7        and the third axis, if there is one, advances when the plane is done.
 *   2  5  8
 *   9 11 13
 *  10 12 14 */
#ifndef TILEWRIGHT_LOWERING_GPU_GRID_RASTER_H
#define TILEWRIGHT_LOWERING_GPU_GRID_RASTER_H

#include "lowering/divide.h"
#include "lowering/gpu/facts/block_axes.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/launch_record.h"

typedef struct tw_raster {
  int rows, columns, slices; /* axes of the grid; 0, 1, 2 in its own order. slices: -1 if planes are not told apart */
  int64_t group;             /* rows of a group; 0: the grid's own order, axis 0 fastest */
  MlirValue height;          /* these, where `group` is not known before the launch; else null */
} tw_raster_t;

/* The raster in which `in_flight` blocks at a time load the fewest bytes in the function's loops. */
tw_raster_t tw_raster_choose(MlirOperation func, const tw_block_axes_t *axes, int64_t in_flight);

/* What decoding needs and depends on the grid only. All values are i32. */
typedef struct tw_raster_code {
  tw_raster_t raster;
  MlirValue rows;
  tw_divisor_t plane, band;  /* blocks of a slice, of a group */
  tw_divisor_t height, last; /* rows of a group, of the last group if it is lower */
} tw_raster_code_t;
tw_raster_code_t tw_raster_prepare(const tw_builder_t *at, const tw_raster_t *raster,
                                   const MlirValue extents[TW_GRID_AXES]);
/* Position in the grid of the block with number `v` below 2^31. */
void tw_raster_decode(const tw_builder_t *at, const tw_raster_code_t *code, MlirValue v, MlirValue out[TW_GRID_AXES]);

/* ---- a grid that is not the program's ---------------------------------------------------------- */

/* tile.block_id or tile.num_blocks of an axis. */
MlirValue tw_grid_op(const tw_builder_t *at, const char *name, int axis);
/* Puts other values in the place of tile.block_id (position) and tile.num_blocks (extents; null: they stay). The
 * list is made before the ops that `position` and `extents` come from. */
tw_ops_t tw_grid_ids_in(MlirOperation func);
/* Has the blocks that the hardware starts run in the order of the raster; a grid of 2^31 blocks and more stays. */
void tw_grid_reorder(MlirOperation func, const tw_ops_t *ids, const tw_raster_t *raster);
/* Has them run along axis 1 first: the launcher exchanges axes 0 and 1 where it can (exchanged_axes). */
void tw_grid_exchange(MlirOperation func, const tw_ops_t *ids);
void tw_grid_replace_ids(const tw_ops_t *ids, const MlirValue position[TW_GRID_AXES], const MlirValue *extents);

#endif /* TILEWRIGHT_LOWERING_GPU_GRID_RASTER_H */
