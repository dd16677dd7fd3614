/* mma_family.h - how a tile.mma is computed: the instruction, and the layouts of its tiles
 *
 * A plan is a function of the op and the number of warps only, so that each pass makes it anew and
 * none hands it on: layout assignment takes the three layouts, promotion and lowering recognise
 * them in the types. */
#ifndef TILEWRIGHT_LOWERING_GPU_MACHINE_MMA_FAMILY_H
#define TILEWRIGHT_LOWERING_GPU_MACHINE_MMA_FAMILY_H

#include "lowering/gpu/machine/target.h"
#include "lowering/layout/layout.h"

typedef enum tw_mma_kind {
  TW_MMA_FMA, /* no Tensor Core: each thread multiplies what it holds */
  TW_MMA_F16,
  TW_MMA_BF16,
  TW_MMA_TF32,
  TW_MMA_INT8,
  TW_MMA_FP8,
  TW_MMA_F64,
} tw_mma_kind_t;

/* One row of the table of instructions. All have m = 16 and n = 8 seen from here: the two halves of
 * the m8n8k4 of f64 are put together by the lowering. */
typedef struct tw_mma_row {
  tw_mma_kind_t kind;
  int k;         /* k extent of one step */
  int elem_bits; /* of an input */
  tw_gpu_feature_t needs;
} tw_mma_row_t;

typedef struct tw_mma_plan {
  tw_mma_row_t row;
  int warps_m, warps_n;
  tw_layout_t acc, lhs, rhs;
} tw_mma_plan_t;

#endif /* TILEWRIGHT_LOWERING_GPU_MACHINE_MMA_FAMILY_H */
