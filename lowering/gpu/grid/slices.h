/* slices.h - blocks that compute a slice of a tile each: which slice, and whose memory they see
 *
 * The parts of a tile are neighbours along an axis of the grid: in the place of each block of the program, as many are
 * started as there are parts (grid_scale). tile-resize-tiles slices where parts do not see each other,
 * tile-resize-tiles where they do. */
#ifndef TILEWRIGHT_LOWERING_GPU_GRID_SLICES_H
#define TILEWRIGHT_LOWERING_GPU_GRID_SLICES_H

#include "lowering/gpu/grid/dim_classes.h"

/* A class of dimensions, sliced into parts along an axis of the grid. */
typedef struct tw_tile_slice {
  int class, axis;
  int64_t parts;
  MlirValue part; /* its number, i32: set by tw_apply_slices */
} tw_tile_slice_t;

/* Whether no part reads what another one writes, nor writes by one op what another one does by another op. `rely`: for
 * good, and the launcher is told which arrays must be apart (aliasing.h). */
bool tw_slices_are_apart(tw_dims_t *dims, const tw_tile_slice_t *slices, int num, bool rely);
/* Makes each block compute its part, and records their number for the launcher. */
void tw_apply_slices(tw_dims_t *dims, tw_tile_slice_t *slices, int num);

#endif /* TILEWRIGHT_LOWERING_GPU_GRID_SLICES_H */
