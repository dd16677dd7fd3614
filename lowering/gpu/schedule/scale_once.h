/* scale_once.h - a part of tile-defer-reductions: factors of a product's elements */
#ifndef TILEWRIGHT_LOWERING_GPU_SCHEDULE_SCALE_ONCE_H
#define TILEWRIGHT_LOWERING_GPU_SCHEDULE_SCALE_ONCE_H

#include "mlir-c/IR.h"

/* Multiplies two factors of the elements of products in loops first, where that gives normal numbers. */
void tw_scale_once(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_SCHEDULE_SCALE_ONCE_H */
