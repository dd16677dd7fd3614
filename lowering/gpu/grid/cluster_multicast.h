/* cluster_multicast.h - which neighbouring blocks form a cluster, and what they load for each other */
#ifndef TILEWRIGHT_LOWERING_GPU_GRID_CLUSTER_MULTICAST_H
#define TILEWRIGHT_LOWERING_GPU_GRID_CLUSTER_MULTICAST_H

#include "lowering/gpu/facts/block_axes.h"
#include "lowering/gpu/grid/raster.h"

/* The axis along which two neighbours in the grid of a persistent kernel make a cluster, whose shared loads are marked
 * then (TW_MULTICAST); -1 where blocks stay alone. */
int tw_multicast_choose(MlirOperation func, const tw_block_axes_t *axes, const tw_raster_t *raster);

/* The stores in the block go where no array is, unless `position` is below `extent`: of an odd number of blocks the
 * last one has a neighbour beyond the grid. */
void tw_multicast_guard_stores(MlirBlock block, MlirValue position, MlirValue extent);

#endif /* TILEWRIGHT_LOWERING_GPU_GRID_CLUSTER_MULTICAST_H */
