/* strip_mine_products.h - products in steps along k, where tile-plan-block asks for it */
#ifndef TILEWRIGHT_LOWERING_GPU_MEMORY_STRIP_MINE_PRODUCTS_H
#define TILEWRIGHT_LOWERING_GPU_MEMORY_STRIP_MINE_PRODUCTS_H

#include <stdbool.h>
#include <stdint.h>

#include "mlir-c/IR.h"

/* On a kernel: bytes of k that its products take at a time. */
#define TW_PRODUCT_STEP_ATTR "tile.product_step"

/* Whether a product can be done in steps of so many bytes. */
bool tw_product_has_steps(MlirOperation product, int64_t bytes);
/* Whether each product with more of k can be done in steps of so many bytes. */
bool tw_products_have_steps(MlirOperation func, int64_t bytes);
/* Whether, moreover, each such product is all that its loop does, on tiles that it loads: steps are iterations then. */
bool tw_steps_are_iterations(MlirOperation func, int64_t bytes);
bool tw_strip_mine_products(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_MEMORY_STRIP_MINE_PRODUCTS_H */
