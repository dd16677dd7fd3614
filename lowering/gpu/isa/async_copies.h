/* async_copies.h - copies to shared memory that threads start */
#ifndef TILEWRIGHT_LOWERING_GPU_ISA_ASYNC_COPIES_H
#define TILEWRIGHT_LOWERING_GPU_ISA_ASYNC_COPIES_H

#include "lowering/gpu/emit/emitter.h"
#include "lowering/layout/layout.h"

/* Starts to copy 4, 8 or 16 bytes from global memory at from + offset, or zeros where `guard` does not hold
 *. */
void twg_copy_piece(tw_emitter_t *e, MlirValue to, MlirValue from, int64_t offset, int bytes, MlirValue guard);

/* Whether each thread of so many warps that loads a tile of this layout from the buffer of an async_copy reads what it
 * has copied itself. */
bool twg_reads_own_pieces(MlirOperation copy, const tw_layout_t *tile, int num_warps);

#endif /* TILEWRIGHT_LOWERING_GPU_ISA_ASYNC_COPIES_H */
