/* select_mma.h - the parts of tile-select-mma beside the choice itself */
#ifndef TILEWRIGHT_LOWERING_GPU_LAYOUT_SELECT_MMA_H
#define TILEWRIGHT_LOWERING_GPU_LAYOUT_SELECT_MMA_H

#include <stdbool.h>

#include "mlir-c/IR.h"

/* swap_operands.c, in tile-plan-block: what is computed becomes the left operand, which may stay in registers. */
void tw_swap_operands(MlirOperation func);
/* widen_mma.c, behind it: inputs that no instruction of the target takes are widened. */
bool tw_widen_mma(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_LAYOUT_SELECT_MMA_H */
