/* batch_loads.h - part of tile-prefetch-loads: a loop of a thread has the loads of several iterations under way */
#ifndef TILEWRIGHT_LOWERING_GPU_MEMORY_BATCH_LOADS_H
#define TILEWRIGHT_LOWERING_GPU_MEMORY_BATCH_LOADS_H

#include "lowering/ir.h"

bool tw_batch_loads(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_MEMORY_BATCH_LOADS_H */
