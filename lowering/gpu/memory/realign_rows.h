/* realign_rows.h - rows that begin anywhere go through shared memory */
#ifndef TILEWRIGHT_LOWERING_GPU_MEMORY_REALIGN_ROWS_H
#define TILEWRIGHT_LOWERING_GPU_MEMORY_REALIGN_ROWS_H

#include <stdbool.h>

#include "mlir-c/IR.h"

bool tw_realign_rows(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_MEMORY_REALIGN_ROWS_H */
