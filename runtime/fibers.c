/* fibers.c - the threads of a SIMT block as fibers of one OS thread (see fibers.h) */
#define _GNU_SOURCE
#include "fibers.h"
#include "switch.h"
#include "tilewright/machine.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STACK_BYTES = 256 * 1024, WARP = TW_WARP_LANES };

typedef enum { READY, AT_BARRIER, AT_WARP, AT_GRID, DONE } fiber_state_t;

/* What a fiber waits with: at a barrier a predicate, in its warp what the lanes do together. */
typedef enum { SYNC_THREADS, SYNC_VOTE, SYNC_GRID, SYNC_WARP, VOTE, MATCH, SHUFFLE } meeting_kind_t;

typedef struct {
  meeting_kind_t what;
  int32_t kind;     /* of the vote, match or shuffle */
  uint32_t mask;    /* lanes */
  int64_t value;    /* what this thread brings */
  int32_t lane;     /* of a shuffle */
  const char *site; /* "file.py:12" */
} meeting_t;

typedef struct {
  tw_context_t context;
  int32_t thread_id[3];
  fiber_state_t state;
  meeting_t at;
  int64_t told;
} fiber_t;

/* The block that an OS thread is running. */
typedef struct {
  tw_simt_thread_t thread;
  const int64_t *words;
  const int32_t *grid, *block_id;
  void *shared;
  tw_context_t scheduler;
  fiber_t *fibers, *current;
  size_t count;
} fiber_block_t;

/* Stacks are kept for the next block of the same OS thread. */
typedef struct {
  fiber_t *fibers; /* owned */
  char *stacks;    /* owned mapping: a guard page below each stack */
  size_t count, stride;
  fiber_block_t *blocks;   /* owned; of a grid */
  int32_t (*block_ids)[3]; /* owned */
  size_t num_blocks;
} stack_pool_t;

static _Thread_local fiber_block_t *running;
static _Thread_local stack_pool_t pool;

static void pool_release(stack_pool_t *p) {
  if (p->stacks)
    munmap(p->stacks, p->count * p->stride);
  free(p->fibers);
  p->fibers = NULL;
  p->stacks = NULL;
  p->count = 0;
}

static bool pool_reserve(stack_pool_t *p, size_t count) {
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
  p->fibers = fibers;
  p->stacks = stacks;
  p->count = count;
  p->stride = stride;
  return true;
}

static bool pool_reserve_blocks(stack_pool_t *p, size_t count) {
  if (p->num_blocks >= count)
    return true;
  free(p->blocks);
  free(p->block_ids);
  p->blocks = malloc(count * sizeof *p->blocks);
  p->block_ids = malloc(count * sizeof *p->block_ids);
  p->num_blocks = p->blocks && p->block_ids ? count : 0;
  return p->num_blocks > 0;
}

/* ---- fibers -------------------------------------------------------------------------------------------- */

/* What a fiber runs: one thread of the block that this OS thread has; then back for good. */
static void fiber_main(void) {
  fiber_block_t *block = running;
  fiber_t *self = block->current;
  block->thread(block->words, block->grid, block->block_id, self->thread_id, block->shared);
  self->state = DONE;
  tw_switch(&self->context, &block->scheduler);
}

/* The three coordinates of a linear number, x fastest. */
static void split(int64_t linear, const int32_t *extents, int32_t *out) {
  out[0] = (int32_t)(linear % extents[0]);
  out[1] = (int32_t)(linear / extents[0] % extents[1]);
  out[2] = (int32_t)(linear / extents[0] / extents[1]);
}

/* The fiber of a number in the pool becomes the thread of another in its block. */
static void fiber_start(stack_pool_t *p, size_t index, size_t number, const int32_t *block_dim) {
  fiber_t *fiber = &p->fibers[index];
  split((int64_t)number, block_dim, fiber->thread_id);
  fiber->state = READY;
  tw_context_make(&fiber->context, p->stacks + index * p->stride + (p->stride - STACK_BYTES), STACK_BYTES, fiber_main);
}

static void resume(fiber_block_t *block, fiber_t *fiber) {
  block->current = fiber;
  tw_switch(&block->scheduler, &fiber->context);
}

/* The running fiber waits; what it is told is there when it goes on. */
static int64_t wait_as(fiber_state_t state, meeting_t at) {
  fiber_block_t *block = running;
  fiber_t *self = block->current;
  self->state = state;
  self->at = at;
  tw_switch(&self->context, &block->scheduler);
  return self->told;
}

/* ---- barriers ------------------------------------------------------------------------------------------ */

static int64_t count_true(const fiber_block_t *block, int64_t *threads) {
  int64_t found = 0;
  *threads = 0;
  for (size_t i = 0; i < block->count; i++)
    if (block->fibers[i].state != DONE) {
      found += block->fibers[i].at.value != 0;
      ++*threads;
    }
  return found;
}

/* Lets all go on if each that still runs has come to the same barrier. */
static bool open_barrier(fiber_block_t *block) {
  const fiber_t *first = NULL;
  for (size_t i = 0; i < block->count; i++) {
    const fiber_t *f = &block->fibers[i];
    if (f->state == DONE)
      continue;
    if (f->state != AT_BARRIER || (first && f->at.site != first->at.site))
      return false;
    first = f;
  }
  if (!first)
    return false;
  int64_t threads, found = count_true(block, &threads);
  int64_t told[] = {found, found == threads, found != 0};
  int32_t kind = first->at.kind;
  for (size_t i = 0; i < block->count; i++)
    if (block->fibers[i].state == AT_BARRIER) {
      block->fibers[i].told = told[kind];
      block->fibers[i].state = READY;
    }
  return true;
}

/* ---- warps --------------------------------------------------------------------------------------------- */

static int64_t vote_of(int32_t kind, uint32_t lanes, uint32_t yes) {
  switch (kind) {
  case TW_SIMT_ALL: return yes == lanes;
  case TW_SIMT_ANY: return yes != 0;
  case TW_SIMT_UNI: return yes == lanes || yes == 0;
  default: return (int32_t)yes;
  }
}

static int source_lane(int32_t kind, int lane, int32_t by) {
  switch (kind) {
  case TW_SIMT_IDX: return by & (WARP - 1);
  case TW_SIMT_UP: return lane - by < 0 ? lane : lane - by;
  case TW_SIMT_DOWN: return lane + by >= WARP || by < 0 ? lane : lane + by;
  default: return (lane ^ by) & (WARP - 1);
  }
}

/* What a lane is told, of the lanes that met. */
static int64_t told_of(const fiber_t *warp, uint32_t lanes, int lane) {
  const meeting_t *at = &warp[lane].at;
  uint32_t yes = 0, same = 0;
  for (int i = 0; i < WARP; i++)
    if (lanes >> i & 1) {
      yes |= (uint32_t)(warp[i].at.value != 0) << i;
      same |= (uint32_t)(warp[i].at.value == at->value) << i;
    }
  switch (at->what) {
  case VOTE: return vote_of(at->kind, lanes, yes);
  case MATCH: return (int32_t)(at->kind == TW_SIMT_MATCH_ANY ? same : same == lanes ? lanes : 0);
  case SHUFFLE: {
    int from = source_lane(at->kind, lane, at->lane);
    return lanes >> from & 1 ? warp[from].at.value : at->value; /* of a lane that is not here: undefined */
  }
  default: return 0;
  }
}

/* The lanes of the mask of a lane that waits, if all of them that still run wait for the same; else 0. */
static uint32_t lanes_met(const fiber_t *warp, int count, int lane) {
  const meeting_t *at = &warp[lane].at;
  uint32_t lanes = 0;
  for (int i = 0; i < count; i++) {
    const fiber_t *f = &warp[i];
    if (!(at->mask >> i & 1) || f->state == DONE)
      continue;
    if (f->state != AT_WARP || f->at.mask != at->mask || f->at.what != at->what || f->at.kind != at->kind)
      return 0;
    lanes |= UINT32_C(1) << i;
  }
  return lanes;
}

static bool open_warp(fiber_t *warp, int count) {
  bool any = false;
  for (int lane = 0; lane < count; lane++) {
    uint32_t lanes = warp[lane].state == AT_WARP ? lanes_met(warp, count, lane) : 0;
    if (!(lanes >> lane & 1)) /* not all are here, or a lane that is not in its own mask */
      continue;
    for (int i = 0; i < count; i++)
      if (lanes >> i & 1)
        warp[i].told = told_of(warp, lanes, i);
    for (int i = 0; i < count; i++)
      if (lanes >> i & 1)
        warp[i].state = READY;
    any = true;
  }
  return any;
}

/* Whether a thread of the warp ran. Its lanes meet at once, so that one warp is done before the next begins. */
static bool run_warp(fiber_block_t *block, fiber_t *warp, int count) {
  bool ran = false;
  do {
    for (int i = 0; i < count; i++)
      if (warp[i].state == READY) {
        resume(block, &warp[i]);
        ran = true;
      }
  } while (open_warp(warp, count));
  return ran;
}

/* ---- blocks -------------------------------------------------------------------------------------------- */

static const fiber_t *first_alive(const fiber_block_t *block) {
  for (size_t i = 0; i < block->count; i++)
    if (block->fibers[i].state != DONE)
      return &block->fibers[i];
  return NULL;
}

/* A thread that is elsewhere than the one that waits: at another place, or one of its lanes that is not there. */
static const fiber_t *elsewhere(const fiber_block_t *block, const fiber_t *waiting) {
  for (size_t i = 0; i < block->count; i++) {
    const fiber_t *f = &block->fibers[i];
    if (f->state != DONE && (f->at.site != waiting->at.site || f->at.mask != waiting->at.mask))
      return f;
  }
  return waiting;
}

static int put_thread(char *out, size_t size, const fiber_t *f) {
  int n = snprintf(out, size, "thread (%" PRId32 ", %" PRId32 ", %" PRId32 ") waits at %s", f->thread_id[0],
                   f->thread_id[1], f->thread_id[2], f->at.site);
  if (f->state == AT_WARP && n > 0 && (size_t)n < size)
    n += snprintf(out + n, size - (size_t)n, " for lanes 0x%08" PRIx32, f->at.mask);
  return n;
}

/* Nobody can go on: says where a thread waits, and where another one does. */
static void report_stuck(const fiber_block_t *block) {
  char text[768];
  const fiber_t *one = first_alive(block), *other = elsewhere(block, one);
  size_t n = (size_t)snprintf(text, sizeof text, "divergent barrier in block (%" PRId32 ", %" PRId32 ", %" PRId32 "): ",
                              block->block_id[0], block->block_id[1], block->block_id[2]);
  n += (size_t)put_thread(text + n, sizeof text - n, one);
  if (other != one && n < sizeof text) {
    n += (size_t)snprintf(text + n, sizeof text - n, ", ");
    n += n < sizeof text ? (size_t)put_thread(text + n, sizeof text - n, other) : 0;
  }
  if (n < sizeof text)
    n += (size_t)snprintf(text + n, sizeof text - n, "; all threads that still run must come to the same one");
  tw_kernel_assert_failed(text, (int64_t)(n < sizeof text ? n : sizeof text - 1));
}

/* Each thread goes on to where it waits. Whether one could, or a barrier opened. */
static bool run_turn(fiber_block_t *block) {
  bool ran = false;
  running = block;
  for (size_t i = 0; i < block->count; i += WARP)
    ran |= run_warp(block, block->fibers + i, (int)(block->count - i < WARP ? block->count - i : WARP));
  return open_barrier(block) || ran;
}

static bool run_fibers(fiber_block_t *block) {
  while (run_turn(block))
    ;
  bool over = first_alive(block) == NULL;
  if (!over)
    report_stuck(block);
  return over;
}

/* ---- blocks that wait for each other ------------------------------------------------------------------- */

/* Where all threads of a block that still run wait for the grid; NULL if some do not, or none runs. */
static const char *grid_site(const fiber_block_t *block) {
  const fiber_t *first = first_alive(block);
  for (size_t i = 0; i < block->count; i++) {
    const fiber_t *f = &block->fibers[i];
    if (f->state != DONE && (f->state != AT_GRID || f->at.site != first->at.site))
      return NULL;
  }
  return first ? first->at.site : NULL;
}

/* Lets all go on if each block has come to the same place; one that has ended never comes. */
static bool open_grid(fiber_block_t *blocks, size_t count) {
  const char *site = grid_site(&blocks[0]);
  for (size_t b = 0; b < count; b++)
    if (!site || grid_site(&blocks[b]) != site)
      return false;
  for (size_t b = 0; b < count; b++)
    for (size_t i = 0; i < blocks[b].count; i++)
      if (blocks[b].fibers[i].state == AT_GRID)
        blocks[b].fibers[i].state = READY;
  return true;
}

/* Nobody can go on: two blocks that are at different places, or threads of one. */
static void report_grid(const fiber_block_t *blocks, size_t count) {
  const fiber_block_t *waiting = blocks, *other = blocks; /* the first of each kind */
  for (size_t b = 0; b < count; b++)
    if (first_alive(&blocks[b]) && !grid_site(&blocks[b])) {
      report_stuck(&blocks[b]);
      return;
    }
  for (size_t b = count; b-- > 0;)
    waiting = grid_site(&blocks[b]) ? &blocks[b] : waiting;
  for (size_t b = count; b-- > 0;)
    other = grid_site(&blocks[b]) != grid_site(waiting) ? &blocks[b] : other;
  const char *site = grid_site(other);
  const int32_t *w = waiting->block_id, *o = other->block_id;
  char text[768];
  int n = snprintf(text, sizeof text,
                   "divergent barrier of the grid: block (%" PRId32 ", %" PRId32 ", %" PRId32 ") waits at %s, block "
                   "(%" PRId32 ", %" PRId32 ", %" PRId32 ") %s%s; all blocks must come to the same one",
                   w[0], w[1], w[2], grid_site(waiting), o[0], o[1], o[2], site ? "waits at " : "has ended",
                   site ? site : "");
  tw_kernel_assert_failed(text, n < (int)sizeof text ? n : (int)sizeof text - 1);
}

/* The threads of all blocks; whether they came to an end. */
static bool run_grid(fiber_block_t *blocks, size_t count) {
  bool ran;
  do {
    ran = false;
    for (size_t b = 0; b < count; b++)
      ran |= run_turn(&blocks[b]);
    if (atomic_load_explicit(&tw_kernel_attention, memory_order_relaxed))
      tw_kernel_look();
  } while (ran || open_grid(blocks, count));
  for (size_t b = 0; b < count; b++)
    if (first_alive(&blocks[b])) {
      report_grid(blocks, count);
      return false;
    }
  return true;
}

static int report_no_memory(void) {
  static const char out_of_memory[] = "out of host memory for the stacks of a block's threads";
  tw_kernel_assert_failed(out_of_memory, sizeof out_of_memory - 1);
  return -1;
}

static size_t threads_of(const int32_t *grid) { return (size_t)grid[3] * (size_t)grid[4] * (size_t)grid[5]; }

int tw_simt_run_grid(tw_simt_thread_t thread, const int64_t *words, const int32_t *grid, void *shared) {
  size_t threads = threads_of(grid), count = (size_t)grid[0] * (size_t)grid[1] * (size_t)grid[2];
  if (!pool_reserve(&pool, count * threads) || !pool_reserve_blocks(&pool, count))
    return report_no_memory();
  for (size_t b = 0; b < count; b++) {
    split((int64_t)b, grid, pool.block_ids[b]);
    pool.blocks[b] = (fiber_block_t){.thread = thread,
                                     .words = words,
                                     .grid = grid,
                                     .block_id = pool.block_ids[b],
                                     .shared = (char *)shared + b * tw_simt_shared_bytes(grid),
                                     .fibers = pool.fibers + b * threads,
                                     .count = threads};
    for (size_t i = 0; i < threads; i++)
      fiber_start(&pool, b * threads + i, i, grid + 3);
  }
  bool over = run_grid(pool.blocks, count);
  running = NULL;
  return over ? 0 : -1;
}

int tw_simt_run_block(tw_simt_thread_t thread, const int64_t *words, const int32_t *grid, const int32_t *block_id,
                      void *shared) {
  size_t count = threads_of(grid);
  if (!pool_reserve(&pool, count))
    return report_no_memory();
  fiber_block_t block = {.thread = thread,
                         .words = words,
                         .grid = grid,
                         .block_id = block_id,
                         .shared = shared,
                         .fibers = pool.fibers,
                         .count = count};
  for (size_t i = 0; i < count; i++)
    fiber_start(&pool, i, i, grid + 3);
  bool over = run_fibers(&block);
  running = NULL;
  return over ? 0 : -1;
}

/* ---- what threads call --------------------------------------------------------------------------------- */

void tw_simt_sync_threads(const char *site) { wait_as(AT_BARRIER, (meeting_t){.what = SYNC_THREADS, .site = site}); }

void tw_simt_sync_grid(const char *site) { wait_as(AT_GRID, (meeting_t){.what = SYNC_GRID, .site = site}); }

int32_t tw_simt_sync_vote(int32_t kind, int32_t predicate, const char *site) {
  return (int32_t)wait_as(AT_BARRIER,
                          (meeting_t){.what = SYNC_VOTE, .kind = kind, .value = predicate != 0, .site = site});
}

void tw_simt_sync_warp(int32_t mask, const char *site) {
  wait_as(AT_WARP, (meeting_t){.what = SYNC_WARP, .mask = (uint32_t)mask, .site = site});
}

int32_t tw_simt_vote(int32_t kind, int32_t mask, int32_t predicate, const char *site) {
  return (int32_t)wait_as(
      AT_WARP, (meeting_t){.what = VOTE, .kind = kind, .mask = (uint32_t)mask, .value = predicate != 0, .site = site});
}

int32_t tw_simt_match(int32_t kind, int32_t mask, int64_t value, const char *site) {
  return (int32_t)wait_as(
      AT_WARP, (meeting_t){.what = MATCH, .kind = kind, .mask = (uint32_t)mask, .value = value, .site = site});
}

int64_t tw_simt_shuffle(int32_t kind, int32_t mask, int64_t value, int32_t lane, const char *site) {
  return wait_as(
      AT_WARP,
      (meeting_t){.what = SHUFFLE, .kind = kind, .mask = (uint32_t)mask, .value = value, .lane = lane, .site = site});
}

void tw_simt_wait_in_vain(int32_t block_x, int32_t block_y, int32_t block_z, int32_t x, int32_t y, int32_t z,
                          int32_t lanes, int32_t mask, const char *site) {
  const int32_t block_id[] = {block_x, block_y, block_z};
  fiber_t one = {.state = AT_WARP, .at = {.mask = (uint32_t)mask, .site = site}};
  one.thread_id[0] = x + __builtin_ctz((uint32_t)lanes);
  one.thread_id[1] = y;
  one.thread_id[2] = z;
  fiber_block_t block = {.block_id = block_id, .fibers = &one, .count = 1};
  report_stuck(&block);
}

void tw_simt_yield(void) {
  fiber_block_t *block = running;
  if (atomic_load_explicit(&tw_kernel_attention, memory_order_relaxed))
    tw_kernel_look();
  tw_switch(&block->current->context, &block->scheduler); /* and is ready */
}

static void run_in_order(tw_simt_thread_t thread, const int64_t *words, const int32_t *grid, const int32_t *block_id,
                         void *shared) {
  int32_t id[3];
  for (id[2] = 0; id[2] < grid[5]; id[2]++)
    for (id[1] = 0; id[1] < grid[4]; id[1]++)
      for (id[0] = 0; id[0] < grid[3]; id[0]++)
        thread(words, grid, block_id, id, shared);
}

void tw_simt_run(tw_simt_thread_t thread, tw_simt_wait_t waits, const int64_t *words, const int32_t *grid,
                 int64_t first, int64_t last, void *shared) {
  int32_t block_id[3];
  if (waits == TW_SIMT_WAITS_IN_GRID) {
    (void)tw_simt_run_grid(thread, words, grid, shared); /* or a message */
    return;
  }
  for (int64_t block = first; block < last; block++) {
    split(block, grid, block_id);
    if (atomic_load_explicit(&tw_kernel_attention, memory_order_relaxed))
      tw_kernel_look();
    if (waits == TW_SIMT_WAITS_NEVER)
      run_in_order(thread, words, grid, block_id, shared);
    else if (tw_simt_run_block(thread, words, grid, block_id, shared))
      return; /* with a message */
  }
}
