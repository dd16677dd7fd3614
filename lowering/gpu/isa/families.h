/* families.h - the instructions that compute products, of all generations */
#ifndef TILEWRIGHT_LOWERING_GPU_ISA_FAMILIES_H
#define TILEWRIGHT_LOWERING_GPU_ISA_FAMILIES_H

#include "lowering/gpu/machine/mma_family.h"

/* The three layouts for a block of `num_warps` warps. */
tw_mma_plan_t tw_mma_plan(const tw_gpu_target_t *target, MlirOperation mma, int num_warps);
/* Warps that a function should have for the matrix products in it; 0 if it has none. */
int tw_mma_num_warps(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_ISA_FAMILIES_H */
