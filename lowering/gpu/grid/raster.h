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

#include "lowering/ir.h"

enum { TW_GRID_AXES = 3 };

/* On the module: the launcher starts fewer blocks than the program asks for, and tells the kernel how many these are;
 * the number is that of the blocks of a cluster. On a loop: the one over blocks of the program. */
#define TW_PERSISTENT "tile.persistent"
/* On a loop over blocks of the program: a block takes the number of the next one when it is done with one, where a
 * producer can do so for all; on the module, the hint that asks for it. Then, on the module: blocks do, from a
 * workspace that the launcher passes (roles/dynamic_scheduler.c). */
#define TW_TICKETS "tile.tickets"
#define TW_TAKES_TICKETS "tile.takes_tickets"
/* On the module: [the axis along which the two blocks of a cluster are neighbours; cycles of a step along each axis, 0
 * where it is not possible; those of blocks alone]. */
#define TW_PAIRS "tile.pairs"
/* On the module: blocks may share a tile, and what the launcher decides by how many (split_k.c). */
#define TW_SPLIT "tile.split"
/* On the module: blocks may compute a slice of a tile each, and what the launcher decides by how many; on that of a
 * kernel whose blocks do, how many it starts for one of the program's along each axis (slice_tiles.c). Or one may
 * compute the tiles of several; minus that number then (coarsen_tiles.c). */
#define TW_FUSE "tile.fuse"
#define TW_CUT "tile.cut"
#define TW_CUT_GRID "tile.cut_grid"
/* On the module: blocks side by side along axis 0 that are a cluster and share a row. On a tile.reduce: it takes the
 * slices of so many blocks (cluster_rows.c). */
#define TW_CLUSTER_BLOCKS "tile.cluster"
#define TW_ACROSS "tile.across"
/* On the module and the kernel: the launcher starts several blocks of the program as the rows of threads of one
 * (pack_blocks.c). */
#define TW_JOINED "tile.joined"

/* Three more arguments for a kernel of at most TW_MAX_GRID_ARGUMENTS: the extents of the grid as the program sees it.
 */
enum { TW_MAX_GRID_ARGUMENTS = 64 };
void tw_add_grid_extents(MlirOperation func, MlirValue extents[TW_GRID_AXES]);
/* On a load or copy: the blocks of a cluster want the same tile, and each brings a part of it to all. */
#define TW_MULTICAST "tile.multicast"
enum { TW_CLUSTER = 2 /* blocks */ };

typedef struct tw_raster {
  int rows, columns, slices; /* axes of the grid; 0, 1, 2 in its own order. slices: -1 if planes are not told apart */
  int64_t group;             /* rows of a group; 0: the grid's own order, axis 0 fastest */
  MlirValue height;          /* these, where `group` is not known before the launch; else null */
} tw_raster_t;

/* Bit a: the value depends on the block's position along axis a. Kept for every value of a function. */
typedef struct tw_block_axes {
  tw_map_t of;
} tw_block_axes_t;
tw_block_axes_t tw_block_axes_of(MlirOperation func);
uint32_t tw_block_axes_get(const tw_block_axes_t *axes, MlirValue value);
void tw_block_axes_free(tw_block_axes_t *axes);

/* The axes that the place of a load's tile depends on. */
uint32_t tw_block_axes_of_load(const tw_block_axes_t *axes, MlirOperation load);

/* The raster in which `in_flight` blocks at a time load the fewest bytes in the function's loops. */
tw_raster_t tw_raster_choose(MlirOperation func, const tw_block_axes_t *axes, int64_t in_flight);

/* A number to divide by, and what the quotient's estimate is made with: the hardware has no division. */
typedef struct tw_divisor {
  MlirValue value, reciprocal;
} tw_divisor_t;
tw_divisor_t tw_divisor_of(const tw_builder_t *at, MlirValue d);
/* *quotient = x / d, *rest = x % d, for 0 <= x < 2^31. */
void tw_divide(const tw_builder_t *at, MlirValue x, tw_divisor_t d, MlirValue *quotient, MlirValue *rest);

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
/* Gives the function, of at most TW_MAX_GRID_ARGUMENTS, one more scalar argument of each type, which the launcher knows
 * of. */
void tw_add_words(MlirOperation func, intptr_t num, const MlirType *types, MlirValue *out);
/* Puts other values in the place of tile.block_id (position) and tile.num_blocks (extents; null: they stay). The
 * list is made before the ops that `position` and `extents` come from. */
enum { TW_MAX_IDS = 256 };
typedef struct tw_grid_ids {
  MlirOperation at[TW_MAX_IDS];
  int count; /* TW_MAX_IDS: there may be more */
} tw_grid_ids_t;
tw_grid_ids_t tw_grid_ids_in(MlirOperation func);
/* Has the blocks that the hardware starts run in the order of the raster; a grid of 2^31 blocks and more stays. */
void tw_grid_reorder(MlirOperation func, const tw_grid_ids_t *ids, const tw_raster_t *raster);
void tw_grid_replace_ids(const tw_grid_ids_t *ids, const MlirValue position[TW_GRID_AXES], const MlirValue *extents);

#endif /* TILEWRIGHT_LOWERING_GPU_GRID_RASTER_H */
