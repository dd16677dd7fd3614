/* threads.c - a block of GPU threads on one CPU thread: a fiber each, which yields at barriers and at what
 * a warp does together. Built into a library that all emulated kernels of a process share, with the files beside this
 * one, by emulate.py; a test tool, never shipped.
 *
 * Shared memory is filled with garbage before each block, and an asynchronous copy moves its bytes only when
 * it is waited for, so that code which reads too early reads rubbish. What the tensor memory accelerator brings
 * comes as late as possible in even blocks, when no thread can go on, and at once in odd ones, so that code which
 * gives its bytes up too early finds others there. Products of warpgroups are computed when they are waited for in even
 * blocks, and at once in odd ones; either way their sums are there only behind the wait, and garbage before. A copy
 * into what one may still read, since no thread has waited for it, is an error. So is a copy by the accelerator into
 * what a thread has loaded without a fence or a barrier since: on a GPU it could overtake the load.
 *
 * The blocks of a cluster run together, and so do all blocks of a grid that wait for each other. Each has its shared
 * memory at emu_shared while one of its threads runs. */
#include "threads.h"

#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <ucontext.h>

enum { MAX_WORDS = 1024, RESIDENT = 3, MAX_TILES = 4096 };
enum { READY, AT_BARRIER, AT_WARP, AT_LANES, AT_NAMED, AT_COUNTING, AT_CLUSTER, AT_GRID, DONE };

unsigned char emu_shared[SHARED_BYTES] __attribute__((aligned(1024)));
const kernel_t *kernel;
thread_t threads[MAX_THREADS];
int current, per_block, at_once, members = 1, member;
static int block_dims[3], dynamic_bytes; /* of a SIMT kernel's launch; else those of a block in a row */
static int grid[3], block[3];            /* block: the first of its cluster */
static unsigned char kept[MOST_MEMBERS][SHARED_BYTES];
static place_t scheduler;
static const int64_t *arguments;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

void enter(int m) {
  if (m == member)
    return;
  memcpy(kept[member], emu_shared, sizeof emu_shared);
  memcpy(emu_shared, kept[m], sizeof emu_shared);
  member = m;
}

int first_thread(int m) { return m * per_block; }

/* All threads of the cluster. */
int num_threads(void) { return first_thread(members); }

__attribute__((noinline)) static void yield_as(int state) {
  thread_t *t = &threads[current];
  t->state = state;
  if (!__builtin_setjmp(t->place))
    __builtin_longjmp(scheduler, 1);
}

void emu_barrier(void) {
  emu_fence();
  race_come_block();
  yield_as(AT_BARRIER);
}

/* A barrier that tells whether a value is true for any thread: three turns, since a thread may be at the next barrier
 * while others still read what this one tells. */
static int any_in_turn[MOST_MEMBERS][3];
static int turns[MAX_THREADS];

int32_t emu_tell(_Bool value) {
  int turn = turns[current]++ % 3;
  any_in_turn[member][turn] |= value;
  return turn;
}

_Bool emu_told(int32_t turn) {
  any_in_turn[member][(turn + 2) % 3] = 0;
  return any_in_turn[member][turn];
}

void emu_warp(void) { yield_as(AT_WARP); }

/* Registers of a thread go from a warp that needs few to one that needs many: never more than the launch gave. */
void emu_setmaxnreg(int32_t count, int32_t more) {
  enum { LEAST = 24, MOST = 256, STEP = 8 };
  thread_t *t = &threads[current];
  int had = t->registers ? t->registers : kernel->registers;
  if (count < LEAST || count > MOST || count % STEP != 0 || (more ? count < had : count > had))
    give_up("a warp with %d registers a thread asks for %d", had, count);
  t->registers = count;
}

static void check_registers(void) {
  int64_t asked = 0;
  for (int i = 0; i < num_threads(); i++)
    asked += threads[i].registers ? threads[i].registers : kernel->registers;
  if (asked > (int64_t)kernel->registers * num_threads())
    give_up("the warps of a block ask for %lld registers, of which a launch gives %d to each of %d threads",
            (long long)asked, kernel->registers, num_threads());
}

/* Whether the launch says how many threads a block has: a SIMT kernel. */
static int is_simt(void) { return kernel->num_threads == 0; }
/* Whether rows of threads are blocks of the program. */
static int has_rows(void) { return kernel->joined && !is_simt(); }
int row_of_program(void) { return has_rows() ? current % per_block / 32 : 0; }
static int64_t shared_bytes(void);

int32_t emu_sreg(int32_t which) {
  int t = current % per_block;
  switch (which) {
  case 0: return has_rows() ? t % 32 : t % block_dims[0];
  case 1: return has_rows() ? t / 32 : t / block_dims[0] % block_dims[1];
  case 2: return t / block_dims[0] / block_dims[1];
  case 3: return kernel->together ? member % grid[0] : block[0] + member;
  case 4: return kernel->together ? member / grid[0] % grid[1] : block[1];
  case 5: return kernel->together ? member / grid[0] / grid[1] : block[2];
  case 6:
  case 7:
  case 8: return grid[which - 6];
  case 9: return has_rows() ? 32 : block_dims[0];
  case 10: return has_rows() ? per_block / 32 : block_dims[1];
  case 11: return block_dims[2];
  case 12: return t % 32;
  case 13: return (int32_t)shared_bytes();
  default: return 0;
  }
}

/* Other threads have a turn before what one may wait for. */
void emu_turn(void) {
  if (is_simt())
    yield_as(READY);
}

static int grid_turn; /* which barrier of the grid comes next */

/* One thread of each block waits for those of the others, between barriers of the block. */
void emu_grid(void) {
  if (current % per_block)
    return;
  race_come_cluster(grid_turn);
  yield_as(AT_GRID);
}

/* The lanes of the mask meet. */
void emu_meet(int32_t mask) {
  threads[current].mask = (uint32_t)mask;
  yield_as(AT_LANES);
}

/* And what they did is in an order. */
void emu_sync_warp(int32_t mask) {
  race_come_warp();
  emu_meet(mask);
  race_go_warp();
  emu_meet(mask);
}

static int first_lane(void) { return current / 32 * 32; }

static int is_here(uint32_t mask, int lane) {
  return (mask >> lane & 1) && first_lane() + lane < first_thread(members) &&
         threads[first_lane() + lane].state != DONE;
}

enum { SHFL_IDX, SHFL_UP, SHFL_DOWN, SHFL_BFLY };

int32_t emu_shfl(int32_t kind, int32_t mask, int32_t value, int32_t by) {
  int lane = current % 32, from = kind == SHFL_IDX ? by & 31 : kind == SHFL_BFLY ? (lane ^ by) & 31 : 0;
  if (kind == SHFL_UP)
    from = lane - (by & 31) < 0 ? lane : lane - (by & 31);
  if (kind == SHFL_DOWN)
    from = lane + (by & 31) > 31 ? lane : lane + (by & 31);
  threads[current].slot[0] = (uint32_t)value;
  emu_meet(mask);
  int32_t result = is_here((uint32_t)mask, from) ? (int32_t)threads[first_lane() + from].slot[0] : GARBAGE;
  emu_meet(mask);
  return result;
}

/* Bits: lanes that are here, lanes whose value is not 0, lanes with this one's value. */
static void compare_lanes(int32_t mask, uint64_t value, uint32_t out[3]) {
  out[0] = out[1] = out[2] = 0;
  threads[current].slot[0] = value;
  emu_meet(mask);
  for (int lane = 0; lane < 32; lane++)
    if (is_here((uint32_t)mask, lane)) {
      uint64_t other = threads[first_lane() + lane].slot[0];
      out[0] |= 1u << lane;
      out[1] |= (uint32_t)(other != 0) << lane;
      out[2] |= (uint32_t)(other == value) << lane;
    }
  emu_meet(mask);
}

int32_t emu_vote(int32_t kind, int32_t mask, int32_t value) {
  uint32_t lanes[3];
  compare_lanes(mask, value != 0, lanes);
  switch (kind) {
  case 0: return lanes[1] == lanes[0];
  case 1: return lanes[1] != 0;
  case 2: return lanes[2] == lanes[0];
  default: return (int32_t)lanes[1];
  }
}

int32_t emu_match(int32_t all, int32_t mask, int64_t value) {
  uint32_t lanes[3];
  compare_lanes(mask, (uint64_t)value, lanes);
  return (int32_t)(!all ? lanes[2] : lanes[2] == lanes[0] ? lanes[0] : 0);
}

/* A barrier that counts predicates, in three turns as above. */
static int counts[MOST_MEMBERS][3], comers[MOST_MEMBERS][3], votes[MAX_THREADS];

int32_t emu_block_vote(int32_t kind, int32_t value) {
  int turn = votes[current]++ % 3;
  int *count = counts[member], *come = comers[member];
  count[turn] += value != 0;
  come[turn]++;
  emu_barrier();
  count[(turn + 2) % 3] = come[(turn + 2) % 3] = 0;
  return kind == 0 ? count[turn] : kind == 1 ? count[turn] == come[turn] : count[turn] != 0;
}

/* ---- barriers that count ----------------------------------------------------------------------------- */

static barrier_t barriers[MOST_MEMBERS][SHARED_BYTES / 8];

void check_no_barrier(int m, const void *to, int64_t bytes) {
  int64_t from = (const unsigned char *)to - emu_shared, end = from + bytes;
  if (from < 0 || from >= SHARED_BYTES)
    return;
  for (int64_t i = from / 8; i * 8 < end; i++)
    if (barriers[m][i].ready)
      give_up("a store to shared memory at %lld, where a barrier lies", (long long)i * 8);
}

void give_up(const char *format, ...) {
  va_list list;
  va_start(list, format);
  fprintf(stderr, "emulator: thread %d: ", current);
  vfprintf(stderr, format, list);
  fputc('\n', stderr);
  va_end(list);
  abort();
}

static int64_t shared_bytes(void) { return (kernel->shared_bytes + 15) / 16 * 16 + dynamic_bytes; }

void check_bounds(const void *at, int64_t bytes) {
  int64_t offset = (const unsigned char *)at - emu_shared;
  if (offset >= 0 && offset < SHARED_BYTES && offset + bytes > shared_bytes())
    give_up("%lld bytes at %lld of shared memory, of which the block has %lld", (long long)bytes, (long long)offset,
            (long long)shared_bytes());
}

/* The kernel before may run yet, until a thread has waited for its end. */
void emu_go_on(void) { threads[current].goes_on = true; }

void check_goes_on(const void *at) {
  bool shared = (uintptr_t)at - (uintptr_t)emu_shared < SHARED_BYTES;
  if (!shared && !threads[current].goes_on)
    give_up("memory is accessed before the kernel before this one has ended");
}

static int barrier_at(const void *pointer) {
  int64_t offset = (const unsigned char *)pointer - emu_shared;
  if (offset < 0 || offset >= SHARED_BYTES || offset % 8 != 0)
    give_up("a barrier at %lld", (long long)offset);
  return (int)(offset / 8);
}

/* Of block m, at the place that the pointer names. */
barrier_t *barrier_of(int m, const void *pointer) {
  barrier_t *b = &barriers[m][barrier_at(pointer)];
  if (!b->ready)
    give_up("the barrier at %d was not set up", 8 * barrier_at(pointer));
  return b;
}

static barrier_t *ready_barrier(const void *pointer) { return barrier_of(member, pointer); }

/* Ends the phase when all arrivals and bytes are here. */
void settle(barrier_t *b) {
  if (b->pending != 0 || b->bytes != 0)
    return;
  b->phase ^= 1;
  race_end_phase(b->number);
  b->pending = b->arrivals;
}

void emu_mbarrier_init(void *pointer, int32_t arrivals) {
  enum { MOST_ARRIVALS = (1 << 20) - 1 };
  check_bounds(pointer, 8);
  if (arrivals < 1 || arrivals > MOST_ARRIVALS)
    give_up("a barrier that counts %d arrivals", arrivals);
  barrier_t *b = &barriers[member][barrier_at(pointer)];
  *b = (barrier_t){.ready = 1, .arrivals = arrivals, .pending = arrivals, .number = race_new_barrier()};
}

static void arrive(barrier_t *b, int32_t bytes, const void *pointer) {
  enum { MOST_BYTES = (1 << 20) - 1 };
  race_use_barrier(b->number, false);
  b->bytes += bytes;
  if (b->bytes > MOST_BYTES)
    give_up("the barrier at %d expects %lld bytes", 8 * barrier_at(pointer), (long long)b->bytes);
  race_come_barrier(b->number);
  if (b->pending-- == 0)
    give_up("more arrivals than the %d that the barrier at %d expects", b->arrivals, 8 * barrier_at(pointer));
  settle(b);
  yield_as(READY);
}

/* One arrival, and bytes that are to come. Then others go on, who may take what was given up. */
void emu_mbarrier_arrive(void *pointer, int32_t bytes) { arrive(ready_barrier(pointer), bytes, pointer); }

void check_runs(int m) {
  for (int t = first_thread(m); t < first_thread(m + 1); t++)
    if (threads[t].state != DONE)
      return;
  give_up("block %d of the cluster has ended, and its shared memory is used", m);
}

/* In block m of the cluster. */
void emu_mbarrier_arrive_at(void *pointer, int32_t m) {
  check_runs(m);
  arrive(barrier_of(m, pointer), 0, pointer);
}

/* The barrier of the cluster, in its two steps. */
void emu_cluster_arrive(void) { race_come_cluster(++threads[current].arrivals); }

void emu_cluster_wait(void) {
  if (++threads[current].waits != threads[current].arrivals)
    give_up("thread %d waits for its cluster without having arrived", current);
  yield_as(AT_CLUSTER);
}

/* Into the shared memory of block m of the cluster, whose barrier counts the bytes. */
void emu_send(void *pointer, int64_t value, int32_t bytes, int32_t m, void *barrier) {
  int64_t offset = (unsigned char *)pointer - emu_shared;
  check_runs(m);
  emu_aligned((uint64_t)(uintptr_t)pointer, bytes);
  barrier_t *b = barrier_of(m, barrier);
  race_begin_copy(pointer, bytes, m, b->number);
  memcpy(m == member ? emu_shared + offset : kept[m] + offset, &value, (size_t)bytes);
  b->bytes -= bytes;
  race_end_copy(b->number);
  settle(b);
}

void emu_mbarrier_wait(void *pointer, int32_t parity) {
  barrier_t *b = ready_barrier(pointer);
  race_use_barrier(b->number, false);
  race_wait_for(b->number, parity);
  threads[current].barrier = barrier_at(pointer);
  threads[current].parity = parity;
  if (b->phase == parity)
    yield_as(AT_COUNTING); /* from which it goes on as below */
  else
    race_go_barrier(current, b->number);
}

_Bool emu_elect(void) { return current % 32 == 0; }

static int come_by[MOST_MEMBERS][NAMED_BARRIERS];  /* threads that did not wait there */
static int expected[MOST_MEMBERS][NAMED_BARRIERS]; /* threads, by the first of them; 0: none has come */

/* Number 0 is the barrier of all; hardware counts whole warps. */
static void check_named(int32_t id, int32_t count) {
  if (id < 1 || id >= NAMED_BARRIERS || count < 32 || count % 32 != 0 || count > per_block)
    give_up("the barrier of number %d for %d of %d threads", id, count, per_block);
  if (expected[member][id] != 0 && expected[member][id] != count)
    give_up("barrier %d for %d threads, at which others come as %d", id, count, expected[member][id]);
  expected[member][id] = count;
}

void emu_named_arrive(int32_t id, int32_t count) {
  check_named(id, count);
  race_come_name(id);
  come_by[member][id]++;
}

void emu_named_barrier(int32_t id, int32_t count) {
  check_named(id, count);
  emu_fence();
  race_come_name(id);
  threads[current].id = id;
  threads[current].count = count;
  yield_as(AT_NAMED);
}

static char said[1024]; /* the format that was printed last */

int32_t emu_vprintf(const char *format, const uint64_t *argument) {
  snprintf(said, sizeof said, "%s", format);
  while (*format) {
    size_t text = strcspn(format, "%");
    printf("%.*s", (int)text, format);
    format += text;
    if (format[0] == '%' && format[1] == '%') {
      putchar('%');
      format += 2;
    } else if (format[0]) {
      char spec[32];
      double d;
      size_t size = strcspn(format + 1, "diouxXeEfFgGaAs") + 2;
      snprintf(spec, sizeof spec, "%.*s", (int)size, format);
      memcpy(&d, argument, sizeof d);
      if (strchr("eEfFgGaA", format[size - 1]))
        printf(spec, d);
      else
        printf(spec, *argument);
      argument++;
      format += size;
    }
  }
  return 0;
}

/* ---- traps: the kernel ends, and what its thread has said before is what the launch reports --------------------- */

void (*emu_on_trap)(const char *said);
static bool trapped;

void emu_trap(void) {
  trapped = true;
  __builtin_longjmp(scheduler, 1);
}

/* Threads that are in the middle of the kernel begin anew with the next one. */
static void leave_threads(void) {
  for (int i = 0; i < num_threads(); i++)
    if (threads[i].state != DONE)
      threads[i].begun = false;
}

static void report_trap(void) {
  if (trapped && !emu_on_trap)
    give_up("it traps: %s", said);
  if (trapped)
    emu_on_trap(said);
  trapped = false;
}

/* ---- blocks ------------------------------------------------------------------------------------------ */

static void play_thread(void) {
  for (;;) {
    kernel->call(arguments);
    if (!threads[current].goes_on)
      give_up("it ends before the kernel before this one");
    yield_as(DONE);
  }
}

static void begin_fiber(void) {
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = malloc(STACK_BYTES);
  context.uc_stack.ss_size = STACK_BYTES;
  context.uc_link = NULL; /* it has no end */
  makecontext(&context, play_thread, 0);
  threads[current].begun = true;
  setcontext(&context);
}

/* The current thread runs until it waits. */
__attribute__((noinline)) static void run_thread(void) {
  if (__builtin_setjmp(scheduler))
    return;
  if (!threads[current].begun)
    begin_fiber();
  __builtin_longjmp(threads[current].place, 1);
}

/* Where lanes of a warp wait, all that are alive are to have come by one instruction, if it is one that the warp has
 * together. */
static void check_together(int from, int to, int state) {
  for (int i = from, first = -1; i < to; i++) {
    first = i % 32 == 0 ? -1 : first;
    if (threads[i].state != state)
      continue;
    if (first >= 0 && threads[first].site != threads[i].site)
      give_up("lanes of the warp of thread %d come to an instruction of the whole warp by different ways", i);
    first = i;
  }
}

/* The instruction that comes next is one of the whole warp; or of single threads. */
void emu_site(int32_t site) { threads[current].site = site; }

/* Lets threads go on when all that are alive among [from, to) wait in the same state. */
static int release(int from, int to, int state) {
  int waiting = 0;
  for (int i = from; i < to; i++)
    if (threads[i].state == state)
      waiting++;
    else if (threads[i].state != DONE)
      return 0;
  check_together(from, to, state);
  for (int i = from; i < to; i++)
    if (threads[i].state == state) {
      threads[i].state = READY;
      if (state == AT_BARRIER)
        race_go_block(i);
    }
  return waiting;
}

/* Lets threads go on for which all of the cluster have arrived. */
static int release_cluster(void) {
  int least = INT_MAX, moved = 0;
  for (int i = 0; i < num_threads(); i++)
    if (threads[i].arrivals < least)
      least = threads[i].arrivals;
  for (int i = 0; i < num_threads(); i++)
    if (threads[i].state == AT_CLUSTER && threads[i].waits <= least) {
      threads[i].state = READY;
      race_go_cluster(i, threads[i].waits);
      moved = 1;
    }
  return moved;
}

/* Lets all blocks of the grid go on when their first threads have come. */
static int release_grid(void) {
  for (int m = 0; m < members; m++)
    if (threads[first_thread(m)].state != AT_GRID)
      return 0;
  for (int m = 0; m < members; m++) {
    threads[first_thread(m)].state = READY;
    race_go_cluster(first_thread(m), grid_turn);
  }
  grid_turn++;
  return members;
}

/* Whether the first lane of the thread's warp is at the same named barrier. */
static bool comes_together(int i) {
  const thread_t *first = &threads[i / 32 * 32];
  return first->state == AT_NAMED && first->id == threads[i].id && first->site == threads[i].site;
}

/* Lets threads of block m go on that wait at a named barrier where enough have come. */
static int release_named(int m) {
  int here[NAMED_BARRIERS], moved = 0;
  memcpy(here, come_by[m], sizeof here);
  for (int i = first_thread(m); i < first_thread(m + 1); i++)
    if (threads[i].state == AT_NAMED)
      here[threads[i].id]++;
  for (int i = first_thread(m); i < first_thread(m + 1); i++)
    if (threads[i].state == AT_NAMED && here[threads[i].id] == threads[i].count && !comes_together(i))
      give_up("lanes of the warp of thread %d come to barrier %d by different ways", i, threads[i].id);
  for (int i = first_thread(m); i < first_thread(m + 1); i++)
    if (threads[i].state == AT_NAMED && here[threads[i].id] == threads[i].count) {
      come_by[m][threads[i].id] = expected[m][threads[i].id] = 0;
      threads[i].state = READY;
      race_go_name(i, threads[i].id);
      moved |= 1 << threads[i].id;
    }
  for (int id = 0; id < NAMED_BARRIERS; id++)
    if (moved >> id & 1)
      race_end_name(m, id);
  return moved != 0;
}

/* Lets threads of block m go on whose phase has ended. */
static int release_counting(int m) {
  int moved = 0;
  for (int i = first_thread(m); i < first_thread(m + 1); i++)
    if (threads[i].state == AT_COUNTING && barriers[m][threads[i].barrier].phase != threads[i].parity) {
      threads[i].state = READY;
      race_go_barrier(i, barriers[m][threads[i].barrier].number);
      moved = 1;
    }
  return moved;
}

/* Lets lanes go on whose masks have all come. */
static int release_lanes(int first, int end) {
  int moved = 0;
  for (int i = first; i < end; i++) {
    int warp = i / 32 * 32, met = threads[i].state == AT_LANES && threads[i].mask >> i % 32 & 1;
    for (int j = warp; met && j < warp + 32 && j < end; j++)
      if (threads[i].mask >> j % 32 & 1 && threads[j].state != DONE)
        met = threads[j].state == AT_LANES && threads[j].mask == threads[i].mask;
    for (int j = warp, mask = (int)threads[i].mask; met && j < warp + 32 && j < end; j++)
      if ((uint32_t)mask >> j % 32 & 1 && threads[j].state == AT_LANES)
        threads[j].state = READY;
    moved += met;
  }
  return moved;
}

static int release_block(int m) {
  int moved = 0, first = first_thread(m), end = first_thread(m + 1);
  for (int w = first; w < end; w += 32)
    moved += release(w, w + 32 < end ? w + 32 : end, AT_WARP);
  moved += release(first, end, AT_BARRIER);
  return moved + release_lanes(first, end) + release_named(m) + release_counting(m);
}

static void report_stuck(void) {
  static const char *const names[] = {"ready",
                                      "at the barrier of all",
                                      "at a step of its warp",
                                      "at a step of some lanes",
                                      "at a named barrier",
                                      "at a barrier that counts",
                                      "at the barrier of the cluster",
                                      "at the barrier of the grid",
                                      "done"};
  for (int i = 0, last = -1; i < num_threads(); i++) {
    const thread_t *t = &threads[i];
    if (i % 32 != 0 && t->state == last)
      continue;
    last = t->state;
    fprintf(stderr, "emulator: thread %d is %s", i, names[t->state]);
    if (t->state == AT_COUNTING) {
      const barrier_t *b = &barriers[i / per_block][t->barrier];
      fprintf(stderr, " at byte %d: phase %d, %d of %d arrivals and %lld bytes are missing, it waits for parity %d",
              8 * t->barrier, b->phase, b->pending, b->arrivals, (long long)b->bytes, t->parity);
    }
    fputc('\n', stderr);
  }
}

static void run_block(void) {
  if (trapped)
    return;
  member = 0;
  memset(emu_shared, GARBAGE, sizeof emu_shared);
  memset(kept, GARBAGE, (size_t)members * sizeof *kept);
  memset(barriers, 0, (size_t)members * sizeof *barriers);
  memset(come_by, 0, sizeof come_by);
  memset(expected, 0, sizeof expected);
  forget_copies();
  forget_products();
  forget_races();
  at_once = (block[0] / members + block[1] + block[2]) % 2;
  grid_turn = 1;
  memset(votes, 0, sizeof votes);
  memset(turns, 0, sizeof turns);
  memset(any_in_turn, 0, sizeof any_in_turn);
  memset(counts, 0, sizeof counts);
  memset(comers, 0, sizeof comers);
  for (int i = 0; i < num_threads(); i++) {
    thread_t *t = &threads[i];
    t->state = i % per_block < block_dims[0] * block_dims[1] * block_dims[2] || !kernel->together ? READY : DONE;
    t->num_copies = t->group = t->arrivals = t->waits = t->registers = 0;
    t->site = ANY_SITE;
    t->goes_on = !kernel->dependent;
  }
  for (int alive = 1, moved = 1; alive;) {
    alive = 0;
    if (!moved) {
      report_stuck();
      fprintf(stderr, "emulator: threads wait for each other\n");
      abort();
    }
    moved = 0;
    for (current = 0; current < num_threads(); current++)
      if (threads[current].state == READY) {
        enter(current / per_block);
        run_thread();
        moved = 1;
        if (trapped) {
          leave_threads();
          return;
        }
      }
    for (int m = 0; m < members; m++)
      moved += release_block(m);
    moved += release_cluster() + release_grid();
    if (!moved)
      moved = deliver_oldest();
    for (int i = 0; i < num_threads(); i++)
      alive |= threads[i].state != DONE;
  }
  check_copies_done();
  check_registers();
  check_products_alike();
  for (int i = 0; i < num_threads(); i++)
    if (threads[i].arrivals != threads[i].waits)
      give_up("thread %d ends without having waited for its cluster", i);
}

static void run_plain(const int64_t *words, const int32_t *dims, int64_t from, int64_t to) {
  arguments = words;
  for (int i = 0; i < 3; i++)
    grid[i] = dims[i];
  for (int64_t b = from; b < to; b += members) {
    block[0] = (int)(b % grid[0]);
    block[1] = (int)(b / grid[0] % grid[1]);
    block[2] = (int)(b / grid[0] / grid[1]);
    run_block();
  }
}

/* Where blocks that share a tile leave their sums, behind the counters. */
static int64_t workspace(void) {
  static int32_t *memory;
  if (memory == NULL)
    memory = calloc(MAX_TILES + (1 << 24), sizeof *memory);
  for (int i = 0; i < MAX_TILES; i++)
    if (memory[i])
      give_up("a kernel leaves counter %d of the workspace at %d", MAX_TILES - 1 - i, memory[i]);
  return (int64_t)(uintptr_t)(memory + MAX_TILES);
}

/* Three more words: how many blocks share each tile but the first, and where. Returns how many blocks that makes. */
static int64_t share_tiles(int64_t blocks, int64_t *words) {
  int64_t whole = blocks > 1;
  words[0] = kernel->parts;
  words[1] = whole;
  words[2] = workspace();
  return whole + (blocks - whole) * kernel->parts;
}

/* As the launcher does it: few blocks run all, or each several, or more share them, and learn of the grid from more
 * words. */
static void run_other_grid(const int64_t *words, const int32_t *dims) {
  int64_t longer[MAX_WORDS], blocks = 1;
  int given = kernel->num_words - 3 - (kernel->parts ? 3 : 0) - kernel->dynamic;
  memcpy(longer, words, (size_t)given * sizeof *longer);
  for (int i = 0; i < 3; i++)
    blocks *= longer[given + i] = dims[i];
  if (kernel->parts)
    blocks = share_tiles(blocks, longer + given + 3);
  if (kernel->dynamic)
    longer[given + 3] = workspace();
  int rows = is_simt() ? kernel->joined : per_block / 32;
  int in_line = (int)(kernel->persistent && blocks > RESIDENT ? RESIDENT : blocks);
  if (members > 1)
    in_line = in_line > members ? 2 * members : members;
  int32_t started[3] = {kernel->joined ? (dims[0] + rows - 1) / rows : in_line, kernel->joined ? dims[1] : 1,
                        kernel->joined ? dims[2] : 1};
  run_plain(longer, started, 0, (int64_t)started[0] * started[1] * started[2]);
  if (kernel->parts || kernel->dynamic)
    workspace();
}

static int64_t product_of(const factors_t *product, const int64_t *words) {
  int64_t all = 1;
  for (int i = 0; i < product->num; i++)
    all *= ((product->at[i].word < 0 ? 0 : words[product->at[i].word]) + product->at[i].plus) / product->at[i].by;
  return all;
}

/* Puts the words of views behind those of the arguments, as runtime/array_views.c does; false where one does not fit.
 */
static int show_views(int64_t *words) {
  int fits = 1;
  for (int i = 0; i < kernel->num_views; i++) {
    const view_t *view = &kernel->views[i];
    const int64_t *from = words + view->from;
    int64_t *to = words + view->word, own[5], pitch = view->pitch.num ? product_of(&view->pitch, words) : 0;
    to[0] = from[0];
    for (int d = 0; d < view->rank; d++) {
      own[d] = pitch ? (d ? pitch : from[1] / pitch) : from[1 + d];
      int64_t bound = view->bounds[d].num ? product_of(&view->bounds[d], words) : own[d];
      to[1 + d] = bound < own[d] || (pitch && from[1] % pitch != 0) ? bound : own[d];
      to[1 + view->rank + d] = pitch ? (d ? 1 : pitch) : from[1 + view->rank + d];
      fits &= bound > 0 && (!pitch || d == 0 || bound <= pitch);
    }
    fits &= !pitch || (to[1] - 1) * pitch + to[2] <= from[1];
    fits &= !pitch || view->bounds[0].num || from[1] % pitch == 0;
  }
  return fits;
}

/* The grid of the tiles that a program counts in one number, as runtime/tile_grid.c has it. */
static void unfold_grid(const int64_t *words, int32_t dims[3]) {
  int64_t extents[2] = {1, 1};
  for (int axis = 0; axis < 2; axis++)
    extents[axis] = product_of(&kernel->tiles[axis], words);
  if (!kernel->tiles[1].num)
    extents[1] = dims[0] / extents[0];
  if (!kernel->any_grid && (extents[0] * extents[1] != dims[0] || dims[2] != 1)) {
    fprintf(stderr, "emulator: a grid of %d blocks for %d x %d tiles\n", dims[0], (int)extents[0], (int)extents[1]);
    abort();
  }
  dims[2] = kernel->any_grid ? 1 : dims[1];
  dims[1] = (int32_t)extents[1];
  dims[0] = (int32_t)extents[0];
}

/* Rows do not lie in an array as the kernel takes them to: the launcher has another one then. */
static void run_otherwise(const kernel_t *of, const int64_t *words, const int32_t *dims, int64_t from, int64_t to) {
  pthread_mutex_unlock(&one_at_a_time);
  (*of->otherwise)(words, dims, from, to);
}

void emu_run(const kernel_t *of, const int64_t *words, const int32_t *dims, int64_t from, int64_t to) {
  int32_t grid_scale[3], tiles[3] = {dims[0], dims[1], dims[2]};
  int64_t slices = 1, blocks = 1;
  pthread_mutex_lock(&one_at_a_time);
  kernel = of;
  int64_t shown[MAX_WORDS];
  if (kernel->num_views) {
    memcpy(shown, words, (size_t)kernel->views[0].word * sizeof *words);
    if (!show_views(shown)) {
      run_otherwise(of, words, dims, from, to);
      return;
    }
    words = shown;
  }
  make_maps(words);
  members = kernel->members;
  per_block = kernel->num_threads ? kernel->num_threads : dims[3] * dims[4] * dims[5];
  for (int i = 0; i < 3; i++)
    block_dims[i] = is_simt() ? dims[3 + i] : i ? 1 : kernel->num_threads;
  dynamic_bytes = is_simt() ? dims[6] : 0;
  if (kernel->together) { /* whole warps: threads that there are not have ended */
    members = dims[0] * dims[1] * dims[2];
    per_block = (per_block + 31) / 32 * 32;
    if (members > MOST_MEMBERS || num_threads() > MAX_THREADS)
      give_up("%d blocks of %d threads wait for each other; %d and %d threads run at a time", members, per_block,
              MOST_MEMBERS, MAX_THREADS);
  }
  if (kernel->tile_grid)
    unfold_grid(words, tiles);
  for (int i = 0; i < 3; i++) {
    int scale = kernel->grid_scale[i];
    slices *= scale;
    blocks *= grid_scale[i] = scale < 0 ? (tiles[i] - scale - 1) / -scale : tiles[i] * scale;
  }
  if (kernel->exchanged && grid_scale[0] <= 65535) {
    int32_t first = grid_scale[0];
    grid_scale[0] = grid_scale[1];
    grid_scale[1] = first;
  }
  int other = kernel->persistent || kernel->joined || kernel->parts;
  if (kernel->together && from > 0)
    ; /* the call that has the first block has run all */
  else if (kernel->together)
    run_plain(words, dims, 0, members);
  else if (!other && slices == 1 && !kernel->tile_grid)
    run_plain(words, kernel->exchanged ? grid_scale : dims, from, to);
  else if (from == 0 && other) /* the call that has the first block runs all */
    run_other_grid(words, grid_scale);
  else if (from == 0)
    run_plain(words, grid_scale, 0, blocks);
  fflush(stdout);
  report_trap();
  pthread_mutex_unlock(&one_at_a_time);
}
