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
#ifndef TILEWRIGHT_LOWERING_GPU_RASTER_H
#define TILEWRIGHT_LOWERING_GPU_RASTER_H

#include "lowering/ir.h"

enum { TW_GRID_AXES = 3 };

/* On the module: the launcher starts fewer blocks than the program asks for, and tells the kernel how many these are.
 * On a loop: the one over blocks of the program. */
#define TW_PERSISTENT "tile.persistent"

typedef struct tw_raster {
  int rows, columns, slices; /* axes of the grid; 0, 1, 2 in the grid's own order */
  int64_t group;             /* rows of a group; 0: the grid's own order, axis 0 fastest */
} tw_raster_t;

/* Bit a: the value depends on the block's position along axis a. Kept for every value of a function. */
typedef struct tw_block_axes {
  tw_map_t of;
} tw_block_axes_t;
tw_block_axes_t tw_block_axes_of(MlirOperation func);
uint32_t tw_block_axes_get(const tw_block_axes_t *axes, MlirValue value);
void tw_block_axes_free(tw_block_axes_t *axes);

/* The raster in which `in_flight` blocks at a time load the fewest bytes in the function's loops. */
tw_raster_t tw_raster_choose(MlirOperation func, const tw_block_axes_t *axes, int64_t in_flight);

/* Position in the grid of the block with number `v`. All values are i32. */
void tw_raster_decode(const tw_builder_t *at, const tw_raster_t *raster, MlirValue v,
                      const MlirValue extents[TW_GRID_AXES], MlirValue out[TW_GRID_AXES]);

#endif /* TILEWRIGHT_LOWERING_GPU_RASTER_H */
