/* optimize_indices.c - tile-optimize-indices: rematerializes, hoists and simplifies the indices of copies
 *
 * Each part has the IR before and after at the head of its file. Hoisting takes the indices that rematerialization has
 * made a copy's own; what is left of divisions in loops is multiplied by an inverse. */
#include "lowering/gpu/memory/optimize_indices.h"

#include "lowering/passes.h"

bool tw_run_optimize_indices(MlirOperation func) {
  return tw_rematerialize_indices(func) && tw_hoist_indices(func) && tw_divide_by_invariant(func);
}
