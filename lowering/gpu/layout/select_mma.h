/* select_mma.h - the parts of tile-select-mma beside the choice itself */
#ifndef TILEWRIGHT_LOWERING_GPU_LAYOUT_SELECT_MMA_H
#define TILEWRIGHT_LOWERING_GPU_LAYOUT_SELECT_MMA_H

#include <stdbool.h>
#include <stdint.h>

#include "mlir-c/IR.h"

/* sum_products.c, in tile-plan-block: products of a row that no instruction takes become sums. */
void tw_sum_products(MlirOperation func);
/* swap_operands.c, in tile-plan-block: what is computed becomes the left operand, which may stay in registers. */
void tw_swap_operands(MlirOperation func);
/* Whether a product can be done in steps of so many bytes of k (memory/strip_mine_products.h). */
typedef bool (*tw_has_steps_t)(MlirOperation product, int64_t bytes);
/* Bytes of k that products take at a time where whole operands are too large for the asynchronous family, and those of
 * a step are not; else 0. */
enum { TW_PRODUCT_STEP = 128 };
int64_t tw_product_step(MlirOperation func, int num_warps, tw_has_steps_t has_steps);
/* Shared memory that products want for their operands, of steps where they are done in steps (0: they are not), and for
 * those that a persistent kernel would bring ahead. */
int64_t tw_product_bytes(MlirOperation func, int num_warps, int64_t step, tw_has_steps_t has_steps);
/* Whether products have so much of k in an iteration that multi-stage buffers of it have too few stages. */
bool tw_has_few_stages(MlirOperation func, int num_warps);
/* widen_mma.c, behind it: inputs that no instruction of the target takes are widened. */
bool tw_widen_mma(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_LAYOUT_SELECT_MMA_H */
