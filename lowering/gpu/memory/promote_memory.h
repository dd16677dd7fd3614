/* promote_memory.h - what tile-promote-memory will do with a load, for passes that plan on it */
#ifndef TILEWRIGHT_LOWERING_GPU_MEMORY_PROMOTE_MEMORY_H
#define TILEWRIGHT_LOWERING_GPU_MEMORY_PROMOTE_MEMORY_H

#include <stdbool.h>

#include "lowering/ir.h"

/* Puts a copy into a buffer, made here, in front of the load. Returns the op that ends the sequence (the last barrier);
 * new readers go before it. */
MlirOperation tw_stage_load(MlirOperation func, MlirOperation load, MlirValue *buffer);
/* What the buffer holds, in a tile's layout. */
MlirValue tw_build_local_load(const tw_builder_t *at, MlirValue buffer, MlirType tile);

#endif /* TILEWRIGHT_LOWERING_GPU_MEMORY_PROMOTE_MEMORY_H */
