/* adopt_loop.h - a loop over tiles that a program has itself */
#ifndef TILEWRIGHT_LOWERING_GPU_GRID_ADOPT_LOOP_H
#define TILEWRIGHT_LOWERING_GPU_GRID_ADOPT_LOOP_H

#include "lowering/ir.h"

/* Marks the loop in which each block of a kernel does all of its work, tile after tile, as one over blocks; false if
 * the kernel has none. */
bool tw_adopt_loop(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_GRID_ADOPT_LOOP_H */
