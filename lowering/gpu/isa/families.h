/* families.h - the families of instructions for products, of all generations, and how passes get at them */
#ifndef TILEWRIGHT_LOWERING_GPU_ISA_FAMILIES_H
#define TILEWRIGHT_LOWERING_GPU_ISA_FAMILIES_H

#include "lowering/gpu/machine/mma_family.h"

/* Of a tile.mma: the one that it was given (TW_MMA_FAMILY), else the best synchronous one that takes it. Never null:
 * multiply-adds take everything. */
const tw_mma_family_t *tw_mma_family_of(MlirOperation mma);
/* The asynchronous family of a target; null if it has none. */
const tw_mma_family_t *tw_async_family(const tw_gpu_target_t *target);
/* What it is asked, of the target around an op; null if that has none. */
const tw_async_mma_t *tw_async_mma_of(MlirOperation op);

/* Whether a tile.mma was given to the asynchronous family. */
bool tw_is_async_mma(MlirOperation mma);
/* Whether the kernel around an op has such products, or had before they became tile.async_mma. */
bool tw_has_async_mma(MlirOperation op);
/* Whether a Tensor Core computes the product; else threads multiply and add. */
bool tw_mma_has_instruction(MlirOperation mma);

/* The three layouts of a tile.mma for a block of `num_warps` warps. */
tw_mma_plan_t tw_mma_plan(MlirOperation mma, int num_warps);
/* Whether the splits over warps are there that hints `warps(tile)` ask for; an error where not. */
bool tw_check_warps_hints(MlirOperation func);
/* Where a tile.mma has operand 0 or 1; TW_PLACE_NONE of one that is not asynchronous. */
tw_mma_place_t tw_mma_place(MlirOperation mma, int operand);

/* Whether a tile.async_mma has its left operand in registers. */
bool tw_mma_reads_registers(MlirOperation product);
/* What a tile.async_mma adds to; and the one whose sum it goes on with, without a wait, or null. */
MlirValue tw_mma_sum_before(MlirOperation product);
MlirOperation tw_mma_before(MlirOperation product);
/* Whether it may be under way while its loop's next iteration begins (tw_async_mma_t). */
bool tw_mma_may_run_on(MlirOperation product);
/* Whether its steps of k start one by one while the operand for later ones is made in its block: where that is little,
 * a word an element, and steps are long, of more than 128 columns (docs/design/measurements.md). */
bool tw_mma_gains_by_steps(MlirOperation product);
/* Registers that a thread needs for it, with sums and operands. */
int64_t tw_mma_words(MlirOperation product);

/* Warps that a function should have for the matrix products in it; 0 if it has none. Asked by tile-plan-block, which
 * writes the number of each kernel down, and before it of whole tiles (grid/slice_tiles.c). */
int tw_mma_num_warps(MlirOperation func);
/* Whether the sum of a tile.mma goes on in another one. */
bool tw_is_mma_continued(MlirOperation mma);
/* Registers of all threads that hold the sum of a tile.mma; a part from zero beside it, where that is promoted. */
int64_t tw_mma_sum_words(MlirOperation mma);
/* Elements of k for which a step of a product is worth its barriers. */
enum { TW_LEAST_PRODUCT_STEP = 32 };
/* Registers of all threads for the products in a loop, the one of the function that needs the most, whose operands come
 * in pieces too small for a copy (tw_access_small_pieces): sums and pieces, those of so many elements of k where the
 * loop has one product, whose steps may be iterations. 0 where no loop has any. */
int64_t tw_mma_words_with_pieces(MlirOperation func, int64_t step);
/* Registers of a thread for them. */
int64_t tw_mma_budget_with_pieces(MlirOperation func);
/* Cycles that a multiprocessor takes for a product, roughly: by the rates of the target (machine.h). */
int64_t tw_mma_cycles(MlirOperation mma);

#endif /* TILEWRIGHT_LOWERING_GPU_ISA_FAMILIES_H */
