/* fma.h - products without a matrix instruction: each thread multiplies and adds what it holds */
#ifndef TILEWRIGHT_LOWERING_GPU_ISA_FMA_H
#define TILEWRIGHT_LOWERING_GPU_ISA_FMA_H

#include "lowering/gpu/emit/emitter.h"
#include "lowering/gpu/machine/mma_family.h"

/* Takes every product on every chip: last of the table. */
extern const tw_mma_family_t tw_fma_family;

/* For a family that brings operands to a thread in another way: layouts of the sum and of both operands; ... */
void tw_fma_plan(MlirOperation mma, int num_warps, tw_mma_plan_t *out);
/* ... what a thread needs of an operand, all of k in registers, and of the other dimensions what its sums have; ... */
tw_layout_t tw_fma_operand(const tw_layout_t *acc, int64_t k_extent, int operand);
/* ... and the arithmetic, on registers in these layouts. Steps along k are outermost, so that operands can be read when
 * they are needed. False after an error. */
bool twg_multiply_add(tw_emitter_t *e, MlirOperation op, const tw_layout_t *acc, int k_extent, tw_values_t a,
                      tw_values_t b, tw_values_t sum);

#endif /* TILEWRIGHT_LOWERING_GPU_ISA_FMA_H */
