/* fibers.c - the threads of a SIMT block as fibers of one OS thread (see fibers.h) */
#define _GNU_SOURCE
#include "fibers.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { STACK_BYTES = 64 * 1024 };

typedef struct {
  ucontext_t context;
  int32_t thread_id[3];
  bool done;
} fiber_t;

/* The block that an OS thread is running. */
typedef struct {
  tw_simt_thread_t thread;
  const int64_t *words;
  const int32_t *grid, *block_id;
  void *shared;
  ucontext_t scheduler;
  fiber_t *current;
} block_t;

/* Stacks are kept for the next block of the same OS thread. */
typedef struct {
  fiber_t *fibers; /* owned */
  char *stacks;    /* owned mapping: a guard page below each stack */
  size_t count, stride;
} pool_t;

static _Thread_local block_t *running;
static _Thread_local pool_t pool;

static void pool_release(pool_t *p) {
  if (p->stacks)
    munmap(p->stacks, p->count * p->stride);
  free(p->fibers);
  *p = (pool_t){0};
}

static bool pool_reserve(pool_t *p, size_t count) {
  if (p->count >= count)
    return true;
  pool_release(p);
  size_t page = (size_t)sysconf(_SC_PAGESIZE), stride = STACK_BYTES + page;
  char *stacks = mmap(NULL, count * stride, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  fiber_t *fibers = malloc(count * sizeof *fibers);
  if (stacks == MAP_FAILED || !fibers) {
    if (stacks != MAP_FAILED)
      munmap(stacks, count * stride);
    free(fibers);
    return false;
  }
  for (size_t i = 0; i < count; i++)
    mprotect(stacks + i * stride, page, PROT_NONE); /* overflow faults instead of corrupting a neighbour */
  *p = (pool_t){fibers, stacks, count, stride};
  return true;
}

/* What a fiber runs: one thread of the block that this OS thread has; then back for good. */
static void fiber_main(void) {
  block_t *block = running;
  fiber_t *self = block->current;
  block->thread(block->words, block->grid, block->block_id, self->thread_id, block->shared);
  self->done = true;
  swapcontext(&self->context, &block->scheduler);
}

/* The three coordinates of a linear number, x fastest. */
static void split(int64_t linear, const int32_t *extents, int32_t *out) {
  out[0] = (int32_t)(linear % extents[0]);
  out[1] = (int32_t)(linear / extents[0] % extents[1]);
  out[2] = (int32_t)(linear / extents[0] / extents[1]);
}

static void fiber_start(pool_t *p, size_t index, const int32_t *block_dim) {
  fiber_t *fiber = &p->fibers[index];
  split((int64_t)index, block_dim, fiber->thread_id);
  fiber->done = false;
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = p->stacks + index * p->stride + (p->stride - STACK_BYTES);
  fiber->context.uc_stack.ss_size = STACK_BYTES;
  fiber->context.uc_link = NULL;
  makecontext(&fiber->context, fiber_main, 0);
}

int tw_simt_run_block(tw_simt_thread_t thread, const int64_t *words, const int32_t *grid, const int32_t *block_id,
                      void *shared) {
  size_t count = (size_t)grid[3] * (size_t)grid[4] * (size_t)grid[5];
  if (!pool_reserve(&pool, count))
    return -1;
  block_t block = {.thread = thread, .words = words, .grid = grid, .block_id = block_id, .shared = shared};
  running = &block;
  for (size_t i = 0; i < count; i++)
    fiber_start(&pool, i, grid + 3);
  for (bool alive = true; alive;) { /* each goes on to its next barrier, until none has one ahead */
    alive = false;
    for (size_t i = 0; i < count; i++) {
      fiber_t *fiber = &pool.fibers[i];
      if (fiber->done)
        continue;
      block.current = fiber;
      swapcontext(&block.scheduler, &fiber->context);
      alive |= !fiber->done;
    }
  }
  running = NULL;
  return 0;
}

void tw_simt_sync_threads(void) {
  block_t *block = running;
  swapcontext(&block->current->context, &block->scheduler);
}

static void run_in_order(tw_simt_thread_t thread, const int64_t *words, const int32_t *grid, const int32_t *block_id,
                         void *shared) {
  int32_t id[3];
  for (id[2] = 0; id[2] < grid[5]; id[2]++)
    for (id[1] = 0; id[1] < grid[4]; id[1]++)
      for (id[0] = 0; id[0] < grid[3]; id[0]++)
        thread(words, grid, block_id, id, shared);
}

void tw_simt_run(tw_simt_thread_t thread, int32_t barriers, const int64_t *words, const int32_t *grid, int64_t first,
                 int64_t last, void *shared) {
  static const char out_of_memory[] = "out of host memory for the stacks of a block's threads";
  int32_t block_id[3];
  for (int64_t block = first; block < last; block++) {
    split(block, grid, block_id);
    if (atomic_load_explicit(&tw_kernel_attention, memory_order_relaxed))
      tw_kernel_look();
    if (!barriers)
      run_in_order(thread, words, grid, block_id, shared);
    else if (tw_simt_run_block(thread, words, grid, block_id, shared))
      tw_kernel_assert_failed(out_of_memory, sizeof out_of_memory - 1);
  }
}
