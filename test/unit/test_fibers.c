/* test_fibers.c - a block-wide sum with barriers, threads that leave before a barrier, lanes that meet, and
 * threads that wait for what never comes */
#include "runtime/fibers.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 96 };

static void tree_sum(const int64_t *words, const int32_t *grid, const int32_t *block_id, const int32_t *thread_id,
                     void *shared) {
  (void)grid, (void)block_id;
  int64_t *values = shared;
  int32_t t = thread_id[0];
  values[t] = words[t];
  for (int32_t step = 64; step > 0; step /= 2) {
    tw_simt_sync_threads("test.py:1");
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
  tw_simt_sync_threads("test.py:1");
  assert(*count == 8); /* everybody who stayed was counted before anybody went on */
}

/* The first lane of each warp, which is not whole, has the sum of the others' numbers. */
static void warp_sums(const int64_t *words, const int32_t *grid, const int32_t *block_id, const int32_t *thread_id,
                      void *shared) {
  (void)words, (void)grid, (void)block_id;
  int64_t *sums = shared, value = thread_id[0];
  for (int32_t step = 16; step > 0; step /= 2) {
    int64_t other = tw_simt_shuffle(TW_SIMT_DOWN, -1, value, step, "test.py:2");
    if (thread_id[0] % 32 + step < 32 && thread_id[0] + step < 40)
      value += other;
  }
  if (thread_id[0] % 32 == 0)
    sums[thread_id[0] / 32] = value;
  int32_t odd = tw_simt_vote(TW_SIMT_BALLOT, -1, thread_id[0] & 1, "test.py:3");
  assert((uint32_t)odd == (thread_id[0] < 32 ? 0xAAAAAAAAu : 0xAAu));
  assert(tw_simt_sync_vote(0, thread_id[0] < 7, "test.py:4") == 7);
}

static void diverge(const int64_t *words, const int32_t *grid, const int32_t *block_id, const int32_t *thread_id,
                    void *shared) {
  (void)words, (void)grid, (void)block_id, (void)shared;
  tw_simt_sync_threads(thread_id[0] < 3 ? words[0] ? "a.py:5" : "" : "a.py:6");
}

/* Places of constant text are told apart by their addresses, as compiled kernels have them. */
static void lanes_missing(const int64_t *words, const int32_t *grid, const int32_t *block_id, const int32_t *thread_id,
                          void *shared) {
  (void)words, (void)grid, (void)block_id, (void)shared;
  if (thread_id[0] < 2)
    tw_simt_sync_warp(-1, "b.py:7");
  else
    tw_simt_sync_threads("b.py:8");
}

static void test_stuck(void) {
  int64_t words[1] = {1};
  int32_t grid[6] = {1, 1, 1, 4, 1, 1}, block_id[3] = {2, 0, 0};
  assert(tw_simt_run_block(diverge, words, grid, block_id, NULL) == -1);
  char *text = tw_kernel_take_assertion();
  assert(text);
  assert(strstr(text, "divergent barrier in block (2, 0, 0)") && strstr(text, "thread (0, 0, 0) waits at a.py:5") &&
         strstr(text, "thread (3, 0, 0) waits at a.py:6"));
  assert(tw_simt_run_block(lanes_missing, words, grid, block_id, NULL) == -1);
  free(text);
  text = tw_kernel_take_assertion();
  assert(text);
  assert(strstr(text, "b.py:7 for lanes 0xffffffff") && strstr(text, "thread (2, 0, 0) waits at b.py:8"));
  free(text);
}

/* Each block tells all others its number, and adds up theirs. */
static void sum_of_blocks(const int64_t *words, const int32_t *grid, const int32_t *block_id, const int32_t *thread_id,
                          void *shared) {
  int64_t *told = (int64_t *)(uintptr_t)words[0], *own = shared;
  if (thread_id[0] == 1)
    return;
  told[block_id[0]] = own[0] = block_id[0] + 1;
  tw_simt_sync_grid("test.py:5");
  for (int32_t i = 0; i < grid[0]; i++)
    own[0] += told[i];
  tw_simt_sync_grid("test.py:6");
  told[block_id[0]] = own[0];
}

static void test_grid(void) {
  int64_t told[3] = {0}, words[1] = {(intptr_t)told};
  int32_t grid[8] = {3, 1, 1, 2, 1, 1, 8, 0}; /* 8 bytes of shared memory, for which each block has 64 */
  char shared[3 * 64] = {0};
  assert(tw_simt_run_grid(sum_of_blocks, words, grid, shared) == 0);
  assert(told[0] == 7 && told[1] == 8 && told[2] == 9);
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
  int64_t sums[2];
  int32_t warps[6] = {1, 1, 1, 40, 1, 1};
  assert(tw_simt_run_block(warp_sums, words, warps, block_id, sums) == 0);
  assert(sums[0] == 31 * 32 / 2 && sums[1] == 32 + 33 + 34 + 35 + 36 + 37 + 38 + 39);
  test_stuck();
  test_grid();
  puts("test_fibers: ok");
  return 0;
}
