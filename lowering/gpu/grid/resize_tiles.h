/* resize_tiles.h - the parts of tile-resize-tiles, in their order */
#ifndef TILEWRIGHT_LOWERING_GPU_GRID_RESIZE_TILES_H
#define TILEWRIGHT_LOWERING_GPU_GRID_RESIZE_TILES_H

#include <stdbool.h>

#include "mlir-c/IR.h"

/* bound_accesses.c: masks are bounds of arrays, and flat offsets rows and columns. */
bool tw_bound_accesses(MlirOperation func);
/* unwrap_indices.c: of a gather, indices that are wrapped around are cut off where nothing shows it. */
void tw_unwrap_indices(MlirOperation gather);
/* round_loads.c: loads that products take as tf32 round as the copy engine brings them. */
bool tw_round_loads(MlirOperation func);
/* unfold_grid.c: tiles that a program counts in one number are those of a grid of rows and columns. */
bool tw_unfold_grid(MlirOperation func);
/* cluster_rows.c: the blocks of a cluster share a row. */
bool tw_cluster_rows(MlirOperation func);
/* cluster_walks.c: the blocks of a cluster share loops along a row. */
bool tw_cluster_walks(MlirOperation func);
/* coarsen_tiles.c: a block computes the tiles of several neighbours. */
bool tw_coarsen_tiles(MlirOperation func);
/* slice_tiles.c: several blocks compute a tile, a slice each. */
bool tw_slice_tiles(MlirOperation func);
/* coarsen_threads.c: a thread computes several neighbouring elements. */
bool tw_coarsen_threads(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_GRID_RESIZE_TILES_H */
