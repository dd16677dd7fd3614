/* cache_tiles.h - what tile-cache-tiles will do with a load, for passes that plan on it */
#ifndef TILEWRIGHT_LOWERING_GPU_MEMORY_CACHE_TILES_H
#define TILEWRIGHT_LOWERING_GPU_MEMORY_CACHE_TILES_H

#include "mlir-c/IR.h"

/* Whether the load is one of several walks', which a copy into shared memory will take the place of. */
bool tw_is_kept(MlirOperation load);
/* Bytes of shared memory with which walks of known lengths keep all that they read again; 0: there are none. */
int64_t tw_bytes_to_keep(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_MEMORY_CACHE_TILES_H */
