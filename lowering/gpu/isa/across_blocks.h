/* across_blocks.h - blocks that start together meet, and write into each other's shared memory
 *
 * Who is sent words waits for a barrier of its own that counts their bytes: all blocks would have to meet otherwise,
 * and their barrier keeps a warp until memory has taken everything that it has stored. */
#ifndef TILEWRIGHT_LOWERING_GPU_ISA_ACROSS_BLOCKS_H
#define TILEWRIGHT_LOWERING_GPU_ISA_ACROSS_BLOCKS_H

#include "lowering/gpu/emit/emitter.h"

/* A step of their barrier, by all threads: "arrive.relaxed", "wait". */
void twg_meet_blocks(tw_emitter_t *e, const char *step);
/* Sets up a barrier for words that are sent to this block, once; what shows it to the others. */
void twg_set_up_words(tw_emitter_t *e, MlirValue barrier);
void twg_show_barriers(tw_emitter_t *e);
/* So many bytes are sent to this block, from all of them. */
void twg_expect_words(tw_emitter_t *e, MlirValue barrier, int64_t bytes);
/* Sends a word of 32 or 64 bits to where `pointer` is in this block's shared memory, in that of block number `block`,
 * whose barrier counts it; where `guard` holds, or, if it is null, in each thread. */
void twg_send_word(tw_emitter_t *e, MlirValue word, MlirValue pointer, MlirValue block, MlirValue barrier,
                   MlirValue guard);
/* All threads wait for what is expected. */
void twg_wait_for_words(tw_emitter_t *e, MlirValue barrier);

#endif /* TILEWRIGHT_LOWERING_GPU_ISA_ACROSS_BLOCKS_H */
