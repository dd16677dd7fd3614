/* across_blocks.h - blocks that start together meet, and write into each other's shared memory */
#ifndef TILEWRIGHT_LOWERING_GPU_ISA_ACROSS_BLOCKS_H
#define TILEWRIGHT_LOWERING_GPU_ISA_ACROSS_BLOCKS_H

#include "lowering/gpu/emit/emitter.h"

/* A step of their barrier, by all threads: "arrive.release", "wait.acquire", "arrive.relaxed", "wait". */
void twg_meet_blocks(tw_emitter_t *e, const char *step);
/* Stores a word of 32 or 64 bits where `pointer` is in this block's shared memory, in that of block number `block`. */
void twg_store_in_block(tw_emitter_t *e, MlirValue word, MlirValue pointer, MlirValue block);

#endif /* TILEWRIGHT_LOWERING_GPU_ISA_ACROSS_BLOCKS_H */
