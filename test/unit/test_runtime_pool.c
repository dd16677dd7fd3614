/* test_runtime_pool.c - the thread pool of the CPU back end: every block once, many callers, fork */
#define _GNU_SOURCE
#include "tilewright/runtime.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 1000 };

/* words: counts of each block, grid extents as the kernel must see them, work per block */
static void count_blocks(const int64_t *words, const int32_t *grid, int64_t first, int64_t last, void *scratch) {
  _Atomic int *counts = (_Atomic int *)(uintptr_t)words[0];
  for (int axis = 0; axis < 3; axis++)
    assert(grid[axis] == words[1 + axis]);
  assert(((uintptr_t)scratch & 63) == 0);
  if (scratch)
    memset(scratch, (int)first, 1000);
  for (int64_t block = first; block < last; block++) {
    for (volatile int64_t work = 0; work < words[4]; work++)
      ;
    atomic_fetch_add(&counts[block], 1);
  }
}

static void run(tw_cpu_kernel_t *kernel, uint32_t x, uint32_t y, uint32_t z, int64_t work) {
  size_t blocks = (size_t)x * y * z;
  _Atomic int *counts = calloc(blocks, sizeof *counts);
  uint64_t words[5] = {(uintptr_t)counts, x, y, z, (uint64_t)work};
  uint32_t grid[3] = {x, y, z};
  assert(!tw_cpu_launch(kernel, words, grid, NULL, NULL));
  for (size_t i = 0; i < blocks; i++)
    assert(counts[i] == 1);
  free(counts);
}

static void *caller(void *unused) {
  (void)unused;
  tw_cpu_kernel_t kernel = {.entry = count_blocks, .scratch_bytes = 1000};
  for (int i = 0; i < 50; i++)
    run(&kernel, BLOCKS, 1, 1, i % 2 ? 0 : 500);
  return NULL;
}

static void test_many_callers(void) {
  pthread_t threads[6];
  for (int i = 0; i < 6; i++)
    assert(!pthread_create(&threads[i], NULL, caller, NULL));
  for (int i = 0; i < 6; i++)
    pthread_join(threads[i], NULL);
}

static void test_fork(void) {
  pid_t child = fork();
  if (!child) {
    caller(NULL);
    _exit(0);
  }
  int status;
  assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
  caller(NULL);
}

/* Read by AddressSanitizer: asking for too much is an error to handle, not to die of. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

static void test_scratch_failure(void) {
  tw_cpu_kernel_t kernel = {.entry = count_blocks, .scratch_bytes = 1ull << 60};
  uint64_t words[5] = {0};
  tw_status_t status = tw_cpu_launch(&kernel, words, (uint32_t[3]){8, 1, 1}, NULL, NULL);
  assert(tw_status_code(status) == TW_OUT_OF_MEMORY);
  tw_status_free(status);
}

int main(void) {
  static const char *const threads[] = {"1", "2", "5"};
  for (int i = 0; i < 3; i++) {
    setenv("TILEWRIGHT_NUM_THREADS", threads[i], 1);
    assert(tw_cpu_threads() == atoi(threads[i]));
    tw_cpu_kernel_t kernel = {.entry = count_blocks, .scratch_bytes = 1000};
    run(&kernel, 1, 1, 1, 0);
    run(&kernel, 3, 5, 7, 1000);
    run(&kernel, BLOCKS, 1, 1, 1000);
    run(&kernel, BLOCKS, 1, 1, 0);
    run(&kernel, BLOCKS, 1, 1, 20000); /* much longer than the last time */
    tw_cpu_kernel_t bare = {.entry = count_blocks};
    run(&bare, 17, 1, 1, 0);
    test_many_callers();
    test_fork();
  }
  test_scratch_failure();
  unsetenv("TILEWRIGHT_NUM_THREADS");
  assert(tw_cpu_threads() >= 1);
  puts("pool: ok");
  return 0;
}
