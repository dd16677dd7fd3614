/* specialize_warps.h - the parts of tile-specialize-warps that follow when there are roles */
#ifndef TILEWRIGHT_LOWERING_GPU_ROLES_SPECIALIZE_WARPS_H
#define TILEWRIGHT_LOWERING_GPU_ROLES_SPECIALIZE_WARPS_H

#include <stdbool.h>

#include "mlir-c/IR.h"

/* early_products.c: products on operands that a loop carries start before what it loads. */
bool tw_early_products(MlirOperation func);
/* stepped_products.c: what products with steps of their own read is computed right before them. */
bool tw_stepped_products(MlirOperation func);
/* scheduler_barrier.c: two warpgroups start their products in turn. */
bool tw_scheduler_barrier(MlirOperation func);
/* dynamic_scheduler.c: which block runs next is decided when one is done. Makes loops that the former does not know. */
bool tw_dynamic_scheduler(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_ROLES_SPECIALIZE_WARPS_H */
