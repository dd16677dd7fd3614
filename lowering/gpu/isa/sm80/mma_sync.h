/* mma_sync.h - products that a warp computes from registers, or each thread by multiply-adds where no instruction
 * fits */
#ifndef TILEWRIGHT_LOWERING_GPU_ISA_SM80_MMA_SYNC_H
#define TILEWRIGHT_LOWERING_GPU_ISA_SM80_MMA_SYNC_H

#include "lowering/gpu/machine/mma_family.h"

/* The instruction for an op on a target: TW_MMA_FMA where the inputs have no row, or the tile is
 * smaller than one step along k. */
tw_mma_row_t tw_mma_row_for(const tw_gpu_target_t *target, MlirOperation mma);

/* Cycles that a multiprocessor takes for a product, roughly: 4096 operations in one on 16-bit numbers and in proportion
 * on others, 256 on those that no matrix instruction takes. */
int64_t tw_mma_cycles(MlirOperation mma);

/* The layouts of such a product for a block of `num_warps` warps; `out->row` is set. */
void tw_mma_sync_plan(MlirOperation mma, int num_warps, tw_mma_plan_t *out);

#endif /* TILEWRIGHT_LOWERING_GPU_ISA_SM80_MMA_SYNC_H */
