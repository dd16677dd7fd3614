/* fibers.h - the threads of a SIMT block on one CPU core
 *
 * A SIMT kernel without barriers is a loop over its threads. With barriers each thread of the block becomes a fiber:
 * it runs until it reaches tw_simt_sync_threads() or returns, then the next one runs, round after round. Threads that
 * returned no longer count at a barrier, as on a GPU. Blocks on different cores are independent. */
#ifndef TILEWRIGHT_RUNTIME_FIBERS_H
#define TILEWRIGHT_RUNTIME_FIBERS_H

#include "tilewright/kernel_calls.h"

/* Runs every thread of one block, x fastest; may be called from several OS threads at once. Returns 0, or -1 when
 * memory for the stacks is not to be had (then nothing ran). */
int tw_simt_run_block(tw_simt_thread_t thread, const int64_t *words, const int32_t *grid, const int32_t *block_id,
                      void *shared);

#endif /* TILEWRIGHT_RUNTIME_FIBERS_H */
