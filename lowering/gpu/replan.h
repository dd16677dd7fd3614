/* replan.h - another plan for a kernel whose first one does not fit */
#ifndef TILEWRIGHT_LOWERING_GPU_REPLAN_H
#define TILEWRIGHT_LOWERING_GPU_REPLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "mlir-c/IR.h"

/* Writes down what the plan that the module asks for does differently; false, with an error, if that is nothing.
 * `of_products` are the warps that products want, 0 without; `num_warps` those of the first plan, if products or a hint
 * say it, and gets other ones. */
bool tw_replan(MlirOperation func, int64_t of_products, int64_t *num_warps);

#endif /* TILEWRIGHT_LOWERING_GPU_REPLAN_H */
