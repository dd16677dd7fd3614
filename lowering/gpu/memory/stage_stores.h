/* stage_stores.h - results of warpgroups leave by the copy engine */
#ifndef TILEWRIGHT_LOWERING_GPU_MEMORY_STAGE_STORES_H
#define TILEWRIGHT_LOWERING_GPU_MEMORY_STAGE_STORES_H

#include <stdbool.h>

#include "mlir-c/IR.h"

bool tw_stage_stores(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_MEMORY_STAGE_STORES_H */
