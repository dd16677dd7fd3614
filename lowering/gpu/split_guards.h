/* split_guards.h - in tile-to-nvvm: pieces of a tile that lie inside of the array are accessed without a guard */
#ifndef TILEWRIGHT_LOWERING_GPU_SPLIT_GUARDS_H
#define TILEWRIGHT_LOWERING_GPU_SPLIT_GUARDS_H

#include "mlir-c/IR.h"

void tw_split_guards(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_SPLIT_GUARDS_H */
