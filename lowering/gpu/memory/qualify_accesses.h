/* qualify_accesses.h - the parts of tile-qualify-accesses */
#ifndef TILEWRIGHT_LOWERING_GPU_MEMORY_QUALIFY_ACCESSES_H
#define TILEWRIGHT_LOWERING_GPU_MEMORY_QUALIFY_ACCESSES_H

#include <stdbool.h>

#include "mlir-c/IR.h"

/* cache_hints.c: tiles that a launch reads once leave the L2 cache first. */
bool tw_cache_hints(MlirOperation func);
/* relax_atomics.c: atomics order no more than a thread could see. */
bool tw_relax_atomics(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_MEMORY_QUALIFY_ACCESSES_H */
