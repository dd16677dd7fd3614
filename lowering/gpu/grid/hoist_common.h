/* hoist_common.h - what neighbours in the grid have in common is done once for several of them
 *
 * Blocks along an axis may begin with the same work: each block of a layer norm in front of a product reads its rows
 * for their means, whatever columns it computes. A persistent kernel (persistent_loop.c) then takes strips of blocks:
 *
 *   scf.for %v = ... {                       scf.for %s = ... {
 *     %i, %j = position of block %v            %i, %t = position of strip %s
 *     %m = scf.for ... load %A[%i, %k]         %m = scf.for ... load %A[%i, %k]
 *     ... product, store at [%i, %j] ...  ->   scf.for %j = %t * %length to min(%t * %length + %length, blocks) {
 *   } {tile.persistent}                          ... product, store at [%i, %j] ...
 *                                              } {tile.persistent}
 *                                            } {tile.persistent}
 *
 * The length follows from the launch: the longest of 8, 4 and 2 with which the last to end does no more than without
 * strips, else 1. */
#ifndef TILEWRIGHT_LOWERING_GPU_GRID_HOIST_COMMON_H
#define TILEWRIGHT_LOWERING_GPU_GRID_HOIST_COMMON_H

#include "lowering/gpu/facts/block_axes.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/grid/raster.h"

typedef struct tw_strips {
  int axis;              /* along which the blocks of a strip lie */
  MlirValue length, log; /* blocks of a strip, and the same as a power of two */
} tw_strips_t;

/* The axis along which blocks share a loop with loads and without products; -1 if there is none. */
int tw_strips_axis(MlirOperation func, const tw_block_axes_t *axes, const tw_raster_t *raster);
/* The strips of a launch. */
tw_strips_t tw_strips_of(const tw_builder_t *at, int axis, const MlirValue extents[TW_GRID_AXES]);
/* How many there are along their axis. */
MlirValue tw_strips_count(const tw_builder_t *at, const tw_strips_t *strips, MlirValue extent);
/* Moves the ops before `end` to the end of `block`: what a strip has in common, then a loop over its blocks with all
 * else. Returns the block's position, where `position` is the strip's. */
MlirValue tw_strips_move(const tw_strips_t *strips, const tw_block_axes_t *axes, MlirBlock block, MlirOperation first,
                         MlirOperation end, MlirValue position, MlirValue extent);

#endif /* TILEWRIGHT_LOWERING_GPU_GRID_HOIST_COMMON_H */
