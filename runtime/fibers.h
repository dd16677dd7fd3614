/* fibers.h - the threads of a SIMT block on one CPU core
 *
 * A SIMT kernel in which no thread waits for another one is a loop over its threads. Else each thread of the block
 * becomes a fiber: it runs until it waits (a barrier, what lanes of its warp do together, a turn for others) or
 * returns, then the next one runs, round after round. Threads that returned count nowhere, as on a GPU. Where nobody
 * can go on, the block is given up with the lines at which its threads wait. Blocks on different cores are independent.
 */
#ifndef TILEWRIGHT_RUNTIME_FIBERS_H
#define TILEWRIGHT_RUNTIME_FIBERS_H

#include "tilewright/kernel_calls.h"

/* Runs every thread of one block, x fastest; may be called from several OS threads at once. Returns 0, or -1 after a
 * message for tw_kernel_take_assertion: memory for the stacks is not to be had, or threads wait for what never comes.
 */
int tw_simt_run_block(tw_simt_thread_t thread, const int64_t *words, const int32_t *grid, const int32_t *block_id,
                      void *shared);

/* The same of all blocks at a time, which may wait for each other; each has tw_simt_shared_bytes of `shared`. */
int tw_simt_run_grid(tw_simt_thread_t thread, const int64_t *words, const int32_t *grid, void *shared);

#endif /* TILEWRIGHT_RUNTIME_FIBERS_H */
