/* mma_sync.h - products that a warp computes from registers: mma.sync of all generations */
#ifndef TILEWRIGHT_LOWERING_GPU_ISA_SM80_MMA_SYNC_H
#define TILEWRIGHT_LOWERING_GPU_ISA_SM80_MMA_SYNC_H

#include "lowering/gpu/machine/mma_family.h"

extern const tw_mma_family_t tw_mma_sync_family;

typedef enum tw_mma_sync_kind {
  TW_SYNC_NONE,
  TW_SYNC_F16,
  TW_SYNC_BF16,
  TW_SYNC_TF32,
  TW_SYNC_INT8,
  TW_SYNC_FP8,
  TW_SYNC_F64,
} tw_mma_sync_kind_t;

/* One row of the table of instructions. All have m = 16 and n = 8 seen from here: the two halves of
 * the m8n8k4 of f64 are put together by the lowering. */
typedef struct tw_mma_sync_row {
  tw_mma_sync_kind_t kind;
  int k;         /* k extent of one step */
  int elem_bits; /* of an input */
  tw_gpu_feature_t needs;
} tw_mma_sync_row_t;

/* The instruction for a tile.mma on its target; null where the inputs have no row, or the tile is smaller than one step
 * along k. */
const tw_mma_sync_row_t *tw_mma_sync_row(MlirOperation mma);

/* emit_mma_sync.c */
bool twg_emit_mma_sync(struct tw_emitter *e, MlirOperation mma);

#endif /* TILEWRIGHT_LOWERING_GPU_ISA_SM80_MMA_SYNC_H */
