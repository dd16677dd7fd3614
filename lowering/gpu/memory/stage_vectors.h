/* stage_vectors.h - vectors that many threads hold are brought by copies */
#ifndef TILEWRIGHT_LOWERING_GPU_MEMORY_STAGE_VECTORS_H
#define TILEWRIGHT_LOWERING_GPU_MEMORY_STAGE_VECTORS_H

#include <stdbool.h>

#include "mlir-c/IR.h"

bool tw_stage_vectors(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_MEMORY_STAGE_VECTORS_H */
