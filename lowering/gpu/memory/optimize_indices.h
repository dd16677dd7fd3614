/* optimize_indices.h - the parts of tile-optimize-indices, in their order */
#ifndef TILEWRIGHT_LOWERING_GPU_MEMORY_OPTIMIZE_INDICES_H
#define TILEWRIGHT_LOWERING_GPU_MEMORY_OPTIMIZE_INDICES_H

#include <stdbool.h>

#include "mlir-c/IR.h"

/* rematerialize_indices.c: rematerializes the indices of gathered operands. */
bool tw_rematerialize_indices(MlirOperation func);
/* hoist_indices.c: what a loop does not change of indices is computed before it. */
bool tw_hoist_indices(MlirOperation func);
/* divide_by_invariant.c: divisions by what a loop does not change are multiplications. */
bool tw_divide_by_invariant(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_MEMORY_OPTIMIZE_INDICES_H */
