/* memory_warps.h - the warps of a kernel without products */
#ifndef TILEWRIGHT_LOWERING_GPU_LAYOUT_MEMORY_WARPS_H
#define TILEWRIGHT_LOWERING_GPU_LAYOUT_MEMORY_WARPS_H

#include "mlir-c/IR.h"

/* By the tiles that it moves and holds: of IR without layouts (plan_block.c). `is_kept` tells loads of loops that will
 * all be under way before the first of them is waited for. */
int tw_memory_num_warps(MlirOperation func, bool (*is_kept)(MlirOperation load));

#endif /* TILEWRIGHT_LOWERING_GPU_LAYOUT_MEMORY_WARPS_H */
