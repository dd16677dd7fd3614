/* check_sizes.h - tiles that are too large to be shared out among the threads of a block are errors */
#ifndef TILEWRIGHT_LOWERING_GPU_MEMORY_CHECK_SIZES_H
#define TILEWRIGHT_LOWERING_GPU_MEMORY_CHECK_SIZES_H

#include <stdbool.h>

#include "mlir-c/IR.h"

bool tw_check_sizes(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_MEMORY_CHECK_SIZES_H */
