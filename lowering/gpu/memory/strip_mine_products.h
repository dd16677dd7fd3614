/* strip_mine_products.h - products in steps along k, where tile-plan-block asks for it */
#ifndef TILEWRIGHT_LOWERING_GPU_MEMORY_STRIP_MINE_PRODUCTS_H
#define TILEWRIGHT_LOWERING_GPU_MEMORY_STRIP_MINE_PRODUCTS_H

#include <stdbool.h>

#include "mlir-c/IR.h"

bool tw_strip_mine_products(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_MEMORY_STRIP_MINE_PRODUCTS_H */
