/* block_work.h - how the work of a block changes with its position in the grid
 *
 * The loops of a block say it: `for k in range(i)` runs longer the further the block stands along the axis of %i. */
#ifndef TILEWRIGHT_LOWERING_GPU_GRID_BLOCK_WORK_H
#define TILEWRIGHT_LOWERING_GPU_GRID_BLOCK_WORK_H

#include "lowering/gpu/facts/block_axes.h"

typedef struct tw_block_work {
  uint32_t axes;     /* that tell how often a loop runs; 0: all blocks have the same work */
  bool grows, falls; /* ... with the position: that of some loop */
} tw_block_work_t;

tw_block_work_t tw_block_work_of(MlirOperation func, const tw_block_axes_t *axes);
/* The axis along which work changes all in one direction; -1 if it is not so. */
int tw_block_work_axis(const tw_block_work_t *work);

#endif /* TILEWRIGHT_LOWERING_GPU_GRID_BLOCK_WORK_H */
