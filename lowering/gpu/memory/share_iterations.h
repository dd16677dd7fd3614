/* share_iterations.h - part of tile-prefetch-loads: threads of a block share iterations so that each loads a vector */
#ifndef TILEWRIGHT_LOWERING_GPU_MEMORY_SHARE_ITERATIONS_H
#define TILEWRIGHT_LOWERING_GPU_MEMORY_SHARE_ITERATIONS_H

#include "lowering/ir.h"

bool tw_share_iterations(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_MEMORY_SHARE_ITERATIONS_H */
