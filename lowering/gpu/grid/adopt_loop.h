/* adopt_loop.h - a loop over tiles that a program has itself */
#ifndef TILEWRIGHT_LOWERING_GPU_GRID_ADOPT_LOOP_H
#define TILEWRIGHT_LOWERING_GPU_GRID_ADOPT_LOOP_H

#include "lowering/ir.h"

/* Marks the loop in which each block of a kernel does all of its work, tile after tile, as one over blocks; false if
 * the kernel has none. */
bool tw_adopt_loop(MlirOperation func);

/* The loop of such a kernel, or null; and whether its steps may be done in any order, and by any block. */
MlirOperation tw_loop_over_tiles(MlirOperation func);
bool tw_may_reorder_steps(MlirOperation loop);

#endif /* TILEWRIGHT_LOWERING_GPU_GRID_ADOPT_LOOP_H */
