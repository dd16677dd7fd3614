/* test_fibers.c - a block-wide sum with barriers, and threads that leave before a barrier */
#include "runtime/fibers.h"

#include <assert.h>
#include <stdio.h>

enum { THREADS = 96 };

static void tree_sum(const int64_t *words, const int32_t *grid, const int32_t *block_id, const int32_t *thread_id,
                     void *shared) {
  (void)grid, (void)block_id;
  int64_t *values = shared;
  int32_t t = thread_id[0];
  values[t] = words[t];
  for (int32_t step = 64; step > 0; step /= 2) {
    tw_simt_sync_threads();
    if (t < step && t + step < THREADS)
      values[t] += values[t + step];
  }
}

static void leave_early(const int64_t *words, const int32_t *grid, const int32_t *block_id, const int32_t *thread_id,
                        void *shared) {
  (void)words, (void)grid, (void)block_id;
  int *count = shared;
  if (thread_id[1] == 1)
    return;
  __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
  tw_simt_sync_threads();
  assert(*count == 8); /* everybody who stayed was counted before anybody went on */
}

int main(void) {
  int64_t words[THREADS], shared[THREADS], expected = 0;
  for (int i = 0; i < THREADS; i++)
    expected += words[i] = i * 3 + 1;
  int32_t grid[6] = {1, 1, 1, THREADS, 1, 1}, block_id[3] = {0};
  assert(tw_simt_run_block(tree_sum, words, grid, block_id, shared) == 0);
  assert(shared[0] == expected);
  int count = 0;
  int32_t small[6] = {1, 1, 1, 4, 2, 2};
  assert(tw_simt_run_block(leave_early, words, small, block_id, &count) == 0);
  puts("test_fibers: ok");
  return 0;
}
