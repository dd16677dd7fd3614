/* late_loads.h - part of tile-sink-loads: what is added to a large product is loaded piece by piece */
#ifndef TILEWRIGHT_LOWERING_GPU_MEMORY_LATE_LOADS_H
#define TILEWRIGHT_LOWERING_GPU_MEMORY_LATE_LOADS_H

#include "lowering/ir.h"

bool tw_late_loads(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_MEMORY_LATE_LOADS_H */
