/* threads.c - a block of GPU threads on one CPU thread: a fiber each, which yields at barriers and at what
 * a warp does together. Built into each emulated kernel by emulate.py; a test tool, never shipped.
 *
 * Shared memory is filled with garbage before each block, and an asynchronous copy moves its bytes only when
 * it is waited for, so that code which reads too early reads rubbish. What the tensor memory accelerator brings
 * comes as late as possible in even blocks, when no thread can go on, and at once in odd ones, so that code which
 * gives its bytes up too early finds others there. Products of warpgroups are computed when they are waited for in even
 * blocks, and at once in odd ones; either way their sums are there only behind the wait, and garbage before. A copy
 * into what one may still read, since no thread has waited for it, is an error. So is a copy by the accelerator into
 * what a thread has loaded without a fence or a barrier since: on a GPU it could overtake the load.
 *
 * The blocks of a cluster run together. Each has its shared memory at emu_shared while one of its threads runs. */
#include <fenv.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { MAX_THREADS = 4096, STACK_BYTES = 1 << 19, SHARED_BYTES = 1 << 18, MAX_COPIES = 1024, GARBAGE = 0xCB };
enum { MAX_WORDS = 1024, RESIDENT = 3, MAX_TILES = 4096 };
enum { READY, AT_BARRIER, AT_WARP, AT_LANES, AT_NAMED, AT_COUNTING, AT_CLUSTER, DONE };
enum { MOST_MEMBERS = 8 };

extern unsigned char emu_shared[SHARED_BYTES];
extern const int emu_num_threads, emu_num_words, emu_persistent, emu_members, emu_joined, emu_parts, emu_dynamic,
    emu_grid_scale[3], emu_shared_bytes;
void emu_call(const int64_t *words);

static int per_block, block_dims[3], dynamic_bytes; /* of a SIMT kernel's launch; else emu_num_threads in a row */

typedef struct {
  void *to;
  const void *from;
  int bytes, read, group;
} copy_t;

typedef struct {
  ucontext_t context;
  char *stack;
  int state;
  uint64_t slot[4];
  uint32_t mask; /* lanes that it meets */
  copy_t copies[MAX_COPIES];
  int num_copies, group;
  int id, count;       /* of the named barrier at which it waits, and how many threads meet there */
  int barrier, parity; /* of the barrier that counts at which it waits */
  int arrivals, waits; /* at the barrier of the cluster */
} thread_t;

static thread_t threads[MAX_THREADS];
static int current, grid[3], block[3]; /* block: the first of its cluster */
static int members = 1, member;        /* blocks of the cluster, and the one whose shared memory is at emu_shared */
static unsigned char kept[MOST_MEMBERS][SHARED_BYTES];
static ucontext_t scheduler;
static const int64_t *arguments;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void enter(int m) {
  if (m == member)
    return;
  memcpy(kept[member], emu_shared, sizeof emu_shared);
  memcpy(emu_shared, kept[m], sizeof emu_shared);
  member = m;
}

static int first_thread(int m) { return m * per_block; }

/* All threads of the cluster. */
static int num_threads(void) { return first_thread(members); }

static void yield_as(int state) {
  threads[current].state = state;
  swapcontext(&threads[current].context, &scheduler);
}

void emu_fence(void);

void emu_barrier(void) {
  emu_fence();
  yield_as(AT_BARRIER);
}

/* A barrier that tells whether a value is true for any thread: three turns, since a thread may be at the next barrier
 * while others still read what this one tells. */
static int any_in_turn[3];
static int turns[MAX_THREADS];

int32_t emu_tell(_Bool value) {
  int turn = turns[current]++ % 3;
  any_in_turn[turn] |= value;
  return turn;
}

_Bool emu_told(int32_t turn) {
  any_in_turn[(turn + 2) % 3] = 0;
  return any_in_turn[turn];
}

void emu_warp(void) { yield_as(AT_WARP); }

/* Whether the launch says how many threads a block has: a SIMT kernel. */
static int is_simt(void) { return emu_num_threads == 0; }

int32_t emu_sreg(int32_t which) {
  int t = current % per_block;
  switch (which) {
  case 0: return emu_joined ? t % 32 : t % block_dims[0];
  case 1: return emu_joined ? t / 32 : t / block_dims[0] % block_dims[1];
  case 2: return t / block_dims[0] / block_dims[1];
  case 3:
  case 4:
  case 5: return block[which - 3] + (which == 3 ? member : 0);
  case 6:
  case 7:
  case 8: return grid[which - 6];
  case 9: return emu_joined ? 32 : block_dims[0];
  case 10: return emu_joined ? per_block / 32 : block_dims[1];
  case 11: return block_dims[2];
  case 12: return t % 32;
  case 13: return (emu_shared_bytes + 15) / 16 * 16 + dynamic_bytes;
  default: return 0;
  }
}

/* Other threads have a turn before what one may wait for. */
void emu_turn(void) {
  if (is_simt())
    yield_as(READY);
}

/* The lanes of the mask meet. */
void emu_meet(int32_t mask) {
  threads[current].mask = (uint32_t)mask;
  yield_as(AT_LANES);
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
static int counts[3], comers[3], votes[MAX_THREADS];

int32_t emu_block_vote(int32_t kind, int32_t value) {
  int turn = votes[current]++ % 3;
  counts[turn] += value != 0;
  comers[turn]++;
  emu_barrier();
  counts[(turn + 2) % 3] = comers[(turn + 2) % 3] = 0;
  return kind == 0 ? counts[turn] : kind == 1 ? counts[turn] == comers[turn] : counts[turn] != 0;
}

/* ---- barriers that count ----------------------------------------------------------------------------- */

typedef struct {
  int ready, arrivals, pending, phase;
  int64_t bytes; /* announced and not here yet */
} barrier_t;

static barrier_t barriers[MOST_MEMBERS][SHARED_BYTES / 8];

__attribute__((noreturn, format(printf, 1, 2))) static void give_up(const char *format, ...) {
  va_list list;
  va_start(list, format);
  fprintf(stderr, "emulator: thread %d: ", current);
  vfprintf(stderr, format, list);
  fputc('\n', stderr);
  va_end(list);
  abort();
}

static int barrier_at(const void *pointer) {
  int64_t offset = (const unsigned char *)pointer - emu_shared;
  if (offset < 0 || offset >= SHARED_BYTES || offset % 8 != 0)
    give_up("a barrier at %lld", (long long)offset);
  return (int)(offset / 8);
}

/* Of block m, at the place that the pointer names. */
static barrier_t *barrier_of(int m, const void *pointer) {
  barrier_t *b = &barriers[m][barrier_at(pointer)];
  if (!b->ready)
    give_up("the barrier at %d was not set up", 8 * barrier_at(pointer));
  return b;
}

static barrier_t *ready_barrier(const void *pointer) { return barrier_of(member, pointer); }

/* Ends the phase when all arrivals and bytes are here. */
static void settle(barrier_t *b) {
  if (b->pending != 0 || b->bytes != 0)
    return;
  b->phase ^= 1;
  b->pending = b->arrivals;
}

void emu_mbarrier_init(void *pointer, int32_t arrivals) {
  barriers[member][barrier_at(pointer)] = (barrier_t){.ready = 1, .arrivals = arrivals, .pending = arrivals};
}

static void arrive(barrier_t *b, int32_t bytes, const void *pointer) {
  b->bytes += bytes;
  if (b->pending-- == 0)
    give_up("more arrivals than the %d that the barrier at %d expects", b->arrivals, 8 * barrier_at(pointer));
  settle(b);
  yield_as(READY);
}

/* One arrival, and bytes that are to come. Then others go on, who may take what was given up. */
void emu_mbarrier_arrive(void *pointer, int32_t bytes) { arrive(ready_barrier(pointer), bytes, pointer); }

static void check_runs(int m) {
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
void emu_cluster_arrive(void) { threads[current].arrivals++; }

void emu_cluster_wait(void) {
  if (++threads[current].waits != threads[current].arrivals)
    give_up("thread %d waits for its cluster without having arrived", current);
  yield_as(AT_CLUSTER);
}

/* Into the shared memory of block m of the cluster. */
void emu_store_at(void *pointer, int64_t value, int32_t bytes, int32_t m) {
  int64_t offset = (unsigned char *)pointer - emu_shared;
  check_runs(m);
  memcpy(m == member ? emu_shared + offset : kept[m] + offset, &value, (size_t)bytes);
}

void emu_mbarrier_wait(void *pointer, int32_t parity) {
  barrier_t *b = ready_barrier(pointer);
  threads[current].barrier = barrier_at(pointer);
  threads[current].parity = parity;
  if (b->phase == parity)
    yield_as(AT_COUNTING);
}

_Bool emu_elect(void) { return current % 32 == 0; }

enum { NAMED_BARRIERS = 16 };
static int come_by[MOST_MEMBERS][NAMED_BARRIERS]; /* threads that did not wait there */

void emu_named_arrive(int32_t id) { come_by[member][id % NAMED_BARRIERS]++; }

void emu_named_barrier(int32_t id, int32_t count) {
  emu_fence();
  threads[current].id = id;
  threads[current].count = count;
  yield_as(AT_NAMED);
}

/* ---- what products under way read -------------------------------------------------------------------- */

enum { CHUNK_BYTES = 16, CHUNKS = SHARED_BYTES / CHUNK_BYTES, WORD_BITS = 64, MAX_GROUPS = 8 };

/* Groups of products that a thread has not waited for, oldest first, and the one that is still open. */
static struct {
  uint64_t groups[MAX_GROUPS][CHUNKS / WORD_BITS];
  int closed;
  uint64_t loads[CHUNKS / WORD_BITS]; /* the thread's own, since its last fence */
} reads[MAX_THREADS];

static void forget_reads(void) {
  for (int t = 0; t < num_threads(); t++) {
    reads[t].closed = 0;
    memset(reads[t].groups[0], 0, sizeof reads[t].groups[0]);
    memset(reads[t].loads, 0, sizeof reads[t].loads);
  }
}

static void note(uint64_t *set, int64_t offset) {
  int64_t chunk = offset / CHUNK_BYTES;
  set[chunk / WORD_BITS] |= (uint64_t)1 << chunk % WORD_BITS;
}

static void note_read(int64_t offset) { note(reads[current].groups[reads[current].closed], offset); }

static int64_t groups_done[MAX_THREADS]; /* of products, that a thread has waited for */

void emu_load(const void *from) { note(reads[current].loads, (const unsigned char *)from - emu_shared); }

void emu_fence(void) { memset(reads[current].loads, 0, sizeof reads[current].loads); }

/* Where these bytes are in the set, or -1. */
static int64_t first_of(const uint64_t *set, const void *to, int64_t bytes) {
  int64_t from = (const unsigned char *)to - emu_shared, last = (from + bytes - 1) / CHUNK_BYTES;
  for (int64_t chunk = from / CHUNK_BYTES; chunk <= last; chunk++)
    if (set[chunk / WORD_BITS] >> chunk % WORD_BITS & 1)
      return chunk * CHUNK_BYTES;
  return -1;
}

/* A copy into these bytes of block m begins. */
static void check_unread(int m, const void *to, int64_t bytes) {
  for (int t = first_thread(m); t < first_thread(m + 1); t++)
    for (int g = 0; g <= reads[t].closed; g++) {
      int64_t at = first_of(reads[t].groups[g], to, bytes);
      if (at >= 0)
        give_up("a copy to %lld, where a product that thread %d has not waited for still reads", (long long)at, t);
    }
}

/* The accelerator begins to write these bytes of block m. */
static void check_fenced(int m, const void *to, int64_t bytes) {
  for (int t = first_thread(m); t < first_thread(m + 1); t++) {
    int64_t at = first_of(reads[t].loads, to, bytes);
    if (at >= 0)
      give_up("a copy to %lld, which thread %d has loaded without a fence since", (long long)at, t);
  }
}

void emu_wgmma_commit(void) {
  int next = ++reads[current].closed;
  if (next == MAX_GROUPS)
    give_up("%d groups of products are under way", next);
  memset(reads[current].groups[next], 0, sizeof reads[current].groups[next]);
}

/* ---- copies by the tensor memory accelerator --------------------------------------------------------- */

enum { MAX_RANK = 5, MAX_MAPS = 16, MAX_BOXES = 4096 };

typedef struct {
  int word, rank, bytes, swizzle, axes[MAX_RANK], box[MAX_RANK];
} map_form_t;

extern const int emu_num_maps;
extern const map_form_t emu_map_forms[];

typedef struct {
  map_form_t form;
  const unsigned char *base;
  int64_t extents[MAX_RANK], strides[MAX_RANK]; /* strides in bytes */
} map_t;

typedef struct {
  unsigned char *to;
  const map_t *map;
  const void *barrier;
  int at[MAX_RANK];
  unsigned members; /* a bit for each block that it goes to */
} box_t;

static map_t maps[MAX_MAPS];
static box_t boxes[MAX_BOXES]; /* under way, oldest first */
static int num_boxes, at_once;

void *emu_map(int32_t number) { return &maps[number]; }

static void make_maps(const int64_t *words) {
  for (int i = 0; i < emu_num_maps; i++) {
    map_t *m = &maps[i];
    m->form = emu_map_forms[i];
    const int64_t *array = words + m->form.word;
    m->base = (const unsigned char *)(uintptr_t)array[0];
    for (int d = 0; d < m->form.rank; d++) {
      m->extents[d] = array[1 + m->form.axes[d]];
      m->strides[d] = array[1 + m->form.rank + m->form.axes[d]] * m->form.bytes;
      if (m->extents[d] < 1 ||
          (d ? m->extents[d] > 1 && (m->strides[d] % 16 || m->strides[d] <= 0) : m->strides[d] != m->form.bytes))
        give_up("no tensor map describes the array of word %d", m->form.word);
    }
    if ((uintptr_t)m->base % 16)
      give_up("the array of word %d is not aligned", m->form.word);
  }
}

static int64_t elements_of(const map_form_t *form) {
  int64_t count = 1;
  for (int d = 0; d < form->rank; d++)
    count *= form->box[d];
  return count;
}

/* Where element i of a box lies in shared memory, as an offset, and in the array, in bytes; whether it is inside. */
static int element_of(const box_t *b, int64_t i, int64_t *offset, int64_t *at) {
  const map_form_t *form = &b->map->form;
  int64_t mask = form->swizzle / 16 - (form->swizzle != 0);
  int inside = 1;
  *offset = b->to - emu_shared + i * form->bytes;
  *offset ^= (*offset >> 7 & mask) << 4;
  *at = 0;
  for (int d = 0; d < form->rank; d++) {
    int64_t index = b->at[d] + i % form->box[d];
    i /= form->box[d];
    inside = inside && index >= 0 && index < b->map->extents[d];
    *at += index * b->map->strides[d];
  }
  return inside;
}

static void deliver_to(int m, const box_t *b) {
  int before = member;
  enter(m);
  int64_t count = elements_of(&b->map->form), bytes = b->map->form.bytes, offset, from;
  for (int64_t i = 0; i < count; i++)
    if (element_of(b, i, &offset, &from))
      memcpy(emu_shared + offset, b->map->base + from, (size_t)bytes);
    else
      memset(emu_shared + offset, 0, (size_t)bytes);
  barrier_t *barrier = barrier_of(m, b->barrier);
  barrier->bytes -= count * bytes;
  settle(barrier);
  enter(before);
}

static void deliver(const box_t *b) {
  for (int m = 0; m < members; m++)
    if (b->members >> m & 1) {
      if (members > 1)
        check_runs(m);
      deliver_to(m, b);
    }
}

static int deliver_oldest(void) {
  if (num_boxes == 0)
    return 0;
  deliver(&boxes[0]);
  memmove(boxes, boxes + 1, (size_t)--num_boxes * sizeof *boxes);
  return 1;
}

/* `everywhere`: a bit for each block of the cluster; 0: to this one. */
void emu_tma(void *to, void *map, void *barrier, const int32_t *at, int32_t rank, int32_t everywhere) {
  box_t b = {to, map, barrier, {0}, everywhere ? (unsigned)everywhere : 1u << member};
  if (((unsigned char *)to - emu_shared) % 128 != 0 || rank != b.map->form.rank)
    give_up("a copy to %d of rank %d", (int)((unsigned char *)to - emu_shared), (int)rank);
  memcpy(b.at, at, (size_t)rank * sizeof *at);
  for (int m = 0; m < members; m++)
    if (b.members >> m & 1) {
      check_unread(m, to, elements_of(&b.map->form) * b.map->form.bytes);
      check_fenced(m, to, elements_of(&b.map->form) * b.map->form.bytes);
    }
  if (num_boxes == MAX_BOXES)
    give_up("too many copies are under way");
  boxes[num_boxes++] = b;
  if (at_once)
    deliver_oldest();
}

/* Boxes that a thread has asked to be stored, in groups of one: the accelerator reads them as late as the thread lets
 * it, or, in odd blocks, at once. */
enum { MAX_STORES = 64 };
static struct {
  box_t boxes[MAX_STORES];
  int num;
} stores[MAX_THREADS];

static void store_box(const box_t *b) {
  int64_t count = elements_of(&b->map->form), offset, to;
  for (int64_t i = 0; i < count; i++)
    if (element_of(b, i, &offset, &to))
      memcpy((unsigned char *)b->map->base + to, emu_shared + offset, (size_t)b->map->form.bytes);
}

void emu_store_wait(int32_t pending) {
  int done = stores[current].num - pending;
  for (int i = 0; i < done; i++)
    store_box(&stores[current].boxes[i]);
  if (done > 0) {
    memmove(stores[current].boxes, stores[current].boxes + done, (size_t)pending * sizeof(box_t));
    stores[current].num = pending;
  }
}

void emu_store(void *from, void *map, const int32_t *at, int32_t rank, _Bool first) {
  box_t b = {from, map, NULL, {0}, 0};
  if (!first || !emu_elect())
    return;
  if (((unsigned char *)from - emu_shared) % 128 != 0 || rank != b.map->form.rank)
    give_up("a copy from %d of rank %d", (int)((unsigned char *)from - emu_shared), (int)rank);
  memcpy(b.at, at, (size_t)rank * sizeof *at);
  if (stores[current].num == MAX_STORES)
    give_up("too many stores are under way");
  stores[current].boxes[stores[current].num++] = b;
  if (at_once)
    emu_store_wait(0);
}

/* ---- asynchronous copies ----------------------------------------------------------------------------- */

void emu_copy(void *to, const void *from, int32_t bytes, int32_t read) {
  thread_t *t = &threads[current];
  if (t->num_copies == MAX_COPIES)
    abort();
  check_unread(member, to, bytes);
  t->copies[t->num_copies++] = (copy_t){to, from, bytes, read, t->group};
}

void emu_commit(void) { threads[current].group++; }

void emu_wait(int32_t pending) {
  thread_t *t = &threads[current];
  int kept = 0;
  for (int i = 0; i < t->num_copies; i++) {
    copy_t *c = &t->copies[i];
    if (c->group >= t->group - pending) {
      t->copies[kept++] = *c;
      continue;
    }
    memset(c->to, 0, (size_t)c->bytes);
    memcpy(c->to, c->from, (size_t)c->read);
  }
  t->num_copies = kept;
}

/* The arrival that stands for this thread's copies, when they are there. */
void emu_copies_arrive(void *pointer) {
  emu_commit();
  emu_wait(0);
  emu_mbarrier_arrive(pointer, 0);
}

/* ---- matrices ---------------------------------------------------------------------------------------- */

/* Each lane tells the others a row, which counts as loaded: of one that it writes, too, a fence is wanted. */
static void tell_row(const void *row) {
  emu_load(row);
  threads[current].slot[1] = (uint64_t)(uintptr_t)row;
  emu_warp();
}

/* Element `i`, of two, that the lane has of matrix m. */
static uint16_t *element_of_row(int m, int i, int transposed) {
  int first = current / 32 * 32, lane = current % 32;
  int r = transposed ? lane % 4 * 2 + i : lane / 4, c = transposed ? lane / 4 : lane % 4 * 2 + i;
  return (uint16_t *)(uintptr_t)threads[first + m * 8 + r].slot[1] + c;
}

void emu_ldmatrix(const void *row, int32_t *out, int32_t count, int32_t transposed) {
  tell_row(row);
  for (int m = 0; m < count; m++) {
    uint16_t pair[2];
    for (int i = 0; i < 2; i++)
      pair[i] = *element_of_row(m, i, transposed);
    memcpy(&out[m], pair, 4);
  }
  emu_warp();
}

void emu_stmatrix(void *row, const int32_t *in, int32_t count, int32_t transposed) {
  tell_row(row);
  for (int m = 0; m < count; m++) {
    uint16_t pair[2];
    memcpy(pair, &in[m], 4);
    for (int i = 0; i < 2; i++)
      *element_of_row(m, i, transposed) = pair[i];
  }
  emu_warp();
}

typedef struct {
  unsigned char bytes[64];
} registers_t;
static registers_t operands[MAX_THREADS][3];

static double small_float(unsigned bits, int exponent_bits, int mantissa_bits) {
  int bias = (1 << (exponent_bits - 1)) - 1, e = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  int m = bits & ((1 << mantissa_bits) - 1), s = bits >> (exponent_bits + mantissa_bits) & 1;
  double v = e ? ldexp(m + (1 << mantissa_bits), e - bias - mantissa_bits) : ldexp(m, 1 - bias - mantissa_bits);
  if (exponent_bits == 5 && e == 31)
    v = m ? NAN : INFINITY;
  if (exponent_bits == 4 && e == 15 && m == 7)
    v = NAN;
  return s ? -v : v;
}

static double element(const char *type, const unsigned char *at, int i) {
  if (!strcmp(type, "f64"))
    return ((const double *)at)[i];
  if (!strcmp(type, "f32"))
    return ((const float *)at)[i];
  if (!strcmp(type, "s32"))
    return ((const int32_t *)at)[i];
  if (!strcmp(type, "s8"))
    return ((const int8_t *)at)[i];
  if (!strcmp(type, "u8"))
    return at[i];
  if (!strcmp(type, "e4m3"))
    return small_float(at[i], 4, 3);
  if (!strcmp(type, "e5m2"))
    return small_float(at[i], 5, 2);
  if (!strcmp(type, "f16"))
    return small_float(((const uint16_t *)at)[i], 5, 10);
  uint32_t bits = !strcmp(type, "bf16") ? (uint32_t)((const uint16_t *)at)[i] << 16
                                        : ((const uint32_t *)at)[i] & 0xFFFFE000u; /* tf32 */
  float f;
  memcpy(&f, &bits, 4);
  return f;
}

static int bits_of(const char *type) {
  return strstr(type, "64") ? 64 : strstr(type, "32") ? 32 : strstr(type, "16") ? 16 : 8;
}

/* Element (row, k) of A, rows of 16 (8 for f64), or (k, column) of B: the register layouts of the PTX manual. */
static double a_at(int first, const char *type, int m, int row, int k) {
  int bits = bits_of(type), pack = bits >= 32 ? 1 : 32 / bits, group = 4 * pack;
  int lane = row % 8 * 4 + k % group / pack, half = k / group;
  int reg = m == 8 ? half : row / 8 + 2 * half;
  return element(type, operands[first + lane][0].bytes, reg * pack + k % pack);
}

static double b_at(int first, const char *type, int k, int column) {
  int bits = bits_of(type), pack = bits >= 32 ? 1 : 32 / bits, group = 4 * pack;
  return element(type, operands[first + column * 4 + k % group / pack][1].bytes, k / group * pack + k % pack);
}

/* ---- products of warpgroups -------------------------------------------------------------------------- */

/* Where element (row or column, k) of an operand in shared memory is, by its descriptor: in lines of 128, 64 or 32
 * bytes, whose pieces of 16 are exchanged. Of 16-bit elements m or n may be contiguous. */
static int64_t offset_of(int64_t descriptor, const char *type, int at, int k, int mn_major) {
  enum { FIELD = 0x3FFF, ADDRESS_MASK = 0x3FFFF };
  int64_t start = (descriptor & FIELD) << 4, leading = (descriptor >> 16 & FIELD) << 4,
          stride = (descriptor >> 32 & FIELD) << 4, line = 256 >> ((uint64_t)descriptor >> 62), wide = line / 2;
  int64_t address = mn_major ? start + at % wide * 2 + at / wide * leading + k % 8 * line + k / 8 * stride
                             : start + at % 8 * line + at / 8 * stride + k * (bits_of(type) / 8);
  address ^= (address >> 7 & (line / 16 - 1)) << 4;
  return (address - (int64_t)(uintptr_t)emu_shared) & ADDRESS_MASK;
}

static double described(int64_t descriptor, const char *type, int at, int k, int mn_major) {
  return element(type, emu_shared + offset_of(descriptor, type, at, k, mn_major), 0);
}

/* What the tensor core adds up of 8-bit floats: it aligns products to the largest and keeps 13 bits after its first. */
static double sum_of_narrow(double sum, const double *product, int count) {
  enum { KEPT = 13 };
  double largest = fabs(sum);
  int exponent;
  for (int i = 0; i < count; i++)
    largest = fabs(product[i]) > largest ? fabs(product[i]) : largest;
  if (largest == 0 || !isfinite(largest))
    exponent = 0;
  else
    frexp(largest, &exponent);
  double unit = ldexp(1, exponent - 1 - KEPT), total = 0;
  if (!isfinite(largest))
    unit = 0;
  for (int i = -1; i < count; i++) {
    double x = i < 0 ? sum : product[i];
    total += unit > 0 ? trunc(x / unit) * unit : x;
  }
  return total;
}

/* One instruction, d += a * b, that a thread has started. */
typedef struct {
  int32_t n, depth, in_registers, zero, a_major, b_major, lhs[4], sum, word, computed; /* word: its first of the sum */
  const char *acc, *a_type, *b_type;
  int64_t a, b, group;
} product_t;

enum { SUMS = 16, MAX_PRODUCTS = 512, SUM_WORDS = 512, SERIALS = 1024 };

/* The registers of an accumulator while products add to it. The program has tokens for them meanwhile, which no sum of
 * numbers is: floats that are no numbers, and integers near the least one. A wait gives it the sums for its tokens,
 * if they are done. Other uses of the tokens show in the result. */
typedef struct {
  const char *acc;
  int serial, words, under_way; /* serial 0: unused */
  int32_t value[SUM_WORDS];
} sum_t;

static struct {
  sum_t sums[SUMS];
  product_t products[MAX_PRODUCTS];
  int num_products, next_sum, next_serial;
} flights[MAX_THREADS];

static void forget_products(void) {
  for (int t = 0; t < num_threads(); t++) {
    flights[t].num_products = 0;
    groups_done[t] = 0;
    for (int i = 0; i < SUMS; i++)
      flights[t].sums[i].serial = 0;
  }
}

static int is_half(const sum_t *s) { return s->acc[1] == '1'; }

static int32_t token_of(const sum_t *s, int i) {
  uint32_t half = (uint32_t)(s->serial << 8 | i), bits = (uint32_t)(s->serial << 9 | i);
  if (is_half(s))
    return (int32_t)(0xFE00FE00u | half >> 9 << 16 | (half & 0x1FF));
  return (int32_t)((s->acc[0] == 's' ? 0x80000000u : 0x7FC00000u) | bits);
}

/* Which word of the sum has this token, or -1. */
static int word_of(const sum_t *s, int32_t token) {
  int i = s->serial == 0 ? 0 : is_half(s) ? token & 255 : token & 511;
  return s->serial != 0 && i < s->words && token_of(s, i) == token ? i : -1;
}

static sum_t *sum_of(int32_t token) {
  uint32_t t = (uint32_t)token, top = t & 0xFFC00000u;
  if (top != 0x7FC00000u && top != 0x80000000u && (t & 0xFE00FE00u) != 0xFE00FE00u)
    return NULL;
  for (int i = 0; i < SUMS; i++)
    if (word_of(&flights[current].sums[i], token) >= 0)
      return &flights[current].sums[i];
  return NULL;
}

/* The accumulator of products that begin: one under way, whose tokens these are, or other registers. Products that do
 * not add to what is there take any. Returns its number. */
int32_t emu_wgmma_begin(const int32_t *d, int32_t words, const char *acc, int32_t zero) {
  sum_t *s = sum_of(d[0]);
  int whole = s != NULL && !strcmp(s->acc, acc) && s->words == words;
  for (int i = 0; i < words; i++) {
    whole = whole && word_of(s, d[i]) == i;
    if (!whole && !zero && sum_of(d[i]))
      give_up("a product adds to word %d of a sum that is not the one that it had", i);
  }
  if (whole)
    return (int32_t)(s - flights[current].sums);
  int at = flights[current].next_sum;
  while (flights[current].sums[at].under_way && flights[current].sums[at].serial)
    at = (at + 1) % SUMS;
  flights[current].next_sum = (at + 1) % SUMS;
  s = &flights[current].sums[at];
  *s = (sum_t){.acc = acc, .words = words};
  memcpy(s->value, d, (size_t)words * 4);
  return at;
}

/* From now on these tokens stand for the sum, and no others. */
void emu_wgmma_end(int32_t *d, int32_t sum) {
  sum_t *s = &flights[current].sums[sum];
  s->serial = flights[current].next_serial = flights[current].next_serial % (SERIALS - 1) + 1;
  for (int i = 0; i < s->words; i++)
    d[i] = token_of(s, i);
}

/* For the rows of this warp. */
static void compute(const product_t *p) {
  int first = current / 32 * 32, lane = current % 32, row_of_warp = current % per_block / 32 % 4 * 16;
  void *d = flights[current].sums[p->sum].value + p->word;
  if (p->in_registers) {
    memcpy(operands[current][0].bytes, p->lhs, sizeof p->lhs);
    emu_warp();
  }
  for (int half = 0; half < 2; half++)
    for (int column = lane % 4 * 2; column < p->n; column += column % 2 ? 7 : 1) {
      int row = lane / 4 + 8 * half, at = column / 8 * 4 + half * 2 + column % 2;
      double sum = p->zero ? 0 : element(p->acc, d, at), product[32];
      for (int k = 0; k < p->depth; k++)
        product[k] = (p->in_registers ? a_at(first, p->a_type, 16, row, k)
                                      : described(p->a, p->a_type, row_of_warp + row, k, p->a_major)) *
                     described(p->b, p->b_type, column, k, p->b_major);
      if (bits_of(p->a_type) == 8 && !strcmp(p->acc, "f32"))
        sum = sum_of_narrow(sum, product, p->depth);
      else
        for (int k = 0; k < p->depth; k++)
          sum += product[k];
      if (!strcmp(p->acc, "s32"))
        ((int32_t *)d)[at] = (int32_t)(int64_t)sum;
      else if (!strcmp(p->acc, "f16"))
        ((_Float16 *)d)[at] = (_Float16)sum;
      else
        ((float *)d)[at] = (float)sum;
    }
  if (p->in_registers)
    emu_warp();
}

/* The lines [first, first + count) of an operand in shared memory are read until the product is waited for: each
 * thread of the warp notes some. */
static void note_reads(int64_t descriptor, const char *type, int first, int count, int depth, int mn_major) {
  int piece = 8 * CHUNK_BYTES / bits_of(type), per_line = mn_major ? depth : depth / piece;
  int total = mn_major ? count / piece * depth : count * per_line;
  for (int i = current % 32; i < total; i += 32) {
    int line = first + i / per_line * (mn_major ? piece : 1), k = i % per_line * (mn_major ? 1 : piece);
    note_read(offset_of(descriptor, type, line, k, mn_major));
  }
}

/* Starts d = a * b + d. It is computed at once in odd blocks, else when it is waited for. lhs is four words of
 * registers, or has a descriptor. */
void emu_wgmma(int32_t sum, int32_t word, int32_t n, int32_t depth, const char *acc, const char *a_type,
               const char *b_type, int64_t a, const int32_t *lhs, int64_t b, int32_t zero, int32_t a_major,
               int32_t b_major) {
  if (flights[current].num_products == MAX_PRODUCTS)
    give_up("%d products are under way", MAX_PRODUCTS);
  product_t *p = &flights[current].products[flights[current].num_products++];
  *p = (product_t){.n = n,
                   .depth = depth,
                   .in_registers = lhs != NULL,
                   .zero = zero,
                   .a_major = a_major,
                   .b_major = b_major,
                   .sum = sum,
                   .word = word,
                   .computed = at_once,
                   .acc = acc,
                   .a_type = a_type,
                   .b_type = b_type,
                   .a = a,
                   .b = b,
                   .group = groups_done[current] + reads[current].closed};
  if (lhs)
    memcpy(p->lhs, lhs, sizeof p->lhs);
  else
    note_reads(a, a_type, current % per_block / 32 % 4 * 16, 16, depth, a_major);
  note_reads(b, b_type, 0, n, depth, b_major);
  flights[current].sums[sum].under_way++;
  if (at_once)
    compute(p);
}

/* Products of these groups end, in order. */
static void finish_products(void) {
  int kept = 0;
  for (int i = 0; i < flights[current].num_products; i++) {
    product_t *p = &flights[current].products[i];
    if (p->group >= groups_done[current]) {
      flights[current].products[kept++] = *p;
      continue;
    }
    if (!p->computed)
      compute(p);
    flights[current].sums[p->sum].under_way--;
  }
  flights[current].num_products = kept;
}

/* All threads of the warp have waited when one goes on. */
void emu_wgmma_wait(int32_t pending) {
  int done = reads[current].closed - pending;
  if (done > 0) {
    groups_done[current] += done;
    finish_products();
    reads[current].closed -= done;
    memmove(reads[current].groups, reads[current].groups[done],
            (size_t)(reads[current].closed + 1) * sizeof reads[current].groups[0]);
  }
  emu_warp();
}

/* Sums for the tokens of those that are done. */
void emu_wgmma_take(int32_t *values, int32_t words) {
  for (int i = 0; i < words; i++) {
    const sum_t *s = sum_of(values[i]);
    if (s != NULL && s->under_way == 0)
      values[i] = s->value[word_of(s, values[i])];
  }
}

void emu_mma(int32_t m, int32_t k, const char *types[4], const void *a, const void *b, const void *c, void *d,
             const int32_t sizes[3]) {
  int first = current / 32 * 32, lane = current % 32;
  memcpy(operands[current][0].bytes, a, (size_t)sizes[0]);
  memcpy(operands[current][1].bytes, b, (size_t)sizes[1]);
  emu_warp();
  for (int i = 0; i < m / 4; i++) {
    int row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
    double sum = element(types[0], c, i);
    for (int j = 0; j < k; j++)
      sum += a_at(first, types[1], m, row, j) * b_at(first, types[2], j, column);
    if (!strcmp(types[0], "f64"))
      ((double *)d)[i] = sum;
    else if (!strcmp(types[0], "s32"))
      ((int32_t *)d)[i] = (int32_t)(int64_t)sum;
    else if (!strcmp(types[0], "f16"))
      ((_Float16 *)d)[i] = (_Float16)sum;
    else
      ((float *)d)[i] = (float)sum;
  }
  emu_warp();
}

/* prmt: four of the eight bytes of two words, by the digits of the selector. */
uint32_t emu_prmt(uint32_t low, uint32_t high, uint32_t selector) {
  uint64_t both = (uint64_t)high << 32 | low;
  uint32_t out = 0;
  for (int i = 0; i < 4; i++)
    out |= (uint32_t)(both >> 8 * (selector >> 4 * i & 7) & 0xFF) << 8 * i;
  return out;
}

/* ---- what instructions approximate -------------------------------------------------------------------- */

/* The hardware's results lie about the right ones, as far off as the PTX ISA allows. Here they are that far off, on a
 * side that the operand's bits choose, so that a formula which makes such an error larger shows. What is one or exact
 * there is here. */
static double side_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  bits = (bits ^ bits >> 15) * 0x2c1b3c6du;
  return (bits ^ bits >> 12) & 1 ? 1 : -1;
}

static float off_by(double relative, double right, float x) {
  int exponent;
  bool kept = right == 0 || !isfinite(right) || fabs(frexp(right, &exponent)) == 0.5;
  return (float)(kept ? right : right * (1 + side_of(x) * relative));
}

float emu_ex2(float x) { return off_by(0x1p-22, exp2(x), x); }
float emu_lg2(float x) {
  double right = log2(x), error = x > 0.5 && x < 2 ? 0x1p-22 : fabs(right) * 0x1p-22;
  return (float)(x == 1 || !isfinite(right) ? right : right + side_of(x) * error);
}
float emu_rcp(float x) { return off_by(0x1p-23, 1 / (double)x, x); }
float emu_rsqrt(float x) { return off_by(0x1p-23, 1 / sqrt((double)x), x); }
float emu_tanh(float x) { return off_by(0x1p-11, tanh(x), x); }
/* div.full */
float emu_div(float x, float y) {
  double right = (double)x / y;
  int exponent;
  bool exact = isinf(right) || isnan(right) || right == 0 || fabsf(frexpf(y, &exponent)) == 0.5F;
  return exact ? (float)right : off_by(0x1p-22, right, x * 0.7F + y);
}
/* fma.rn.sat: NaN is 0. */
float emu_sat(float x, float y, float z) { return fminf(fmaxf(fmaf(x, y, z), 0), 1); }
/* fma.rm: rounds down. */
float emu_rm(float x, float y, float z) {
  double exact = (double)x * y + z;
  float near = (float)exact;
  return near > exact ? nextafterf(near, -INFINITY) : near;
}
/* The host's own rounding modes: what the compiler's code does is done another way. */
#define EMU_ROUNDED(name, type, letter, mode, host, given, expression)                                                 \
  type emu_##name##_##mode##_##letter given {                                                                          \
    int before = fegetround();                                                                                         \
    fesetround(host);                                                                                                  \
    volatile type result = expression;                                                                                 \
    fesetround(before);                                                                                                \
    return result;                                                                                                     \
  }
#define EMU_ROUNDED_ALL(type, letter, root, mode, host)                                                                \
  EMU_ROUNDED(add, type, letter, mode, host, (volatile type x, volatile type y), x + y)                                \
  EMU_ROUNDED(mul, type, letter, mode, host, (volatile type x, volatile type y), x *y)                                 \
  EMU_ROUNDED(div, type, letter, mode, host, (volatile type x, volatile type y), x / y)                                \
  EMU_ROUNDED(sqrt, type, letter, mode, host, (volatile type x), root(x))
#define EMU_ROUNDED_BOTH(mode, host)                                                                                   \
  EMU_ROUNDED_ALL(float, f, sqrtf, mode, host)                                                                         \
  EMU_ROUNDED_ALL(double, d, sqrt, mode, host)
EMU_ROUNDED_BOTH(rn, FE_TONEAREST)
EMU_ROUNDED_BOTH(rz, FE_TOWARDZERO)
EMU_ROUNDED_BOTH(rm, FE_DOWNWARD)
EMU_ROUNDED_BOTH(rp, FE_UPWARD)
/* cvt.rn.tf32: ties to even, by the double that ends where a tf32 does. */
int32_t emu_tf32(float x) {
  int exponent;
  if (isnan(x))
    return 0x7FFFFFFF;
  (void)frexpf(x, &exponent);
  exponent = exponent < -125 ? -125 : exponent; /* subnormal */
  double unit = ldexp(1, exponent - 11);
  float rounded = isinf(x) ? x : copysignf((float)(nearbyint((double)x / unit) * unit), x);
  uint32_t bits;
  memcpy(&bits, &rounded, 4);
  return (int32_t)bits;
}

/* cvt.rn.satfinite: the nearest finite number, the even one of two. */
int32_t emu_narrow(const char *type, float x) {
  int e5m2 = !strcmp(type, "e5m2"), top = e5m2 ? 0x7B : 0x7E, best = 0;
  if (isnan(x))
    return 0x7F;
  for (int bits = 1; bits <= top; bits++) {
    double now = fabs(fabs(x) - small_float((unsigned)bits, e5m2 ? 5 : 4, e5m2 ? 2 : 3)),
           least = fabs(fabs(x) - small_float((unsigned)best, e5m2 ? 5 : 4, e5m2 ? 2 : 3));
    if (now < least || (now == least && bits % 2 == 0) || isinf(x))
      best = bits;
  }
  return best | (signbit(x) ? 0x80 : 0);
}

int32_t emu_widen(const char *type, int32_t pair) {
  unsigned out = 0;
  for (int i = 0; i < 2; i++) {
    unsigned char byte = (unsigned char)(pair >> 8 * i);
    _Float16 half = (_Float16)element(type, &byte, 0);
    uint16_t bits;
    memcpy(&bits, &half, 2);
    out |= (unsigned)bits << 16 * i;
  }
  return (int32_t)out;
}

int32_t emu_vprintf(const char *format, const uint64_t *argument) {
  double d;
  if (argument == NULL)
    return printf("%s", format);
  memcpy(&d, argument, 8);
  return strpbrk(format, "eEfFgG") ? printf(format, d) : printf(format, *argument);
}

/* ---- blocks ------------------------------------------------------------------------------------------ */

static void body(void) {
  emu_call(arguments);
  threads[current].state = DONE;
  swapcontext(&threads[current].context, &scheduler);
}

/* Lets threads go on when all that are alive among [from, to) wait in the same state. */
static int release(int from, int to, int state) {
  int waiting = 0;
  for (int i = from; i < to; i++)
    if (threads[i].state == state)
      waiting++;
    else if (threads[i].state != DONE)
      return 0;
  for (int i = from; i < to; i++)
    if (threads[i].state == state)
      threads[i].state = READY;
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
      moved = 1;
    }
  return moved;
}

/* Lets threads of block m go on that wait at a named barrier where enough have come. */
static int release_named(int m) {
  int here[NAMED_BARRIERS], moved = 0;
  memcpy(here, come_by[m], sizeof here);
  for (int i = first_thread(m); i < first_thread(m + 1); i++)
    if (threads[i].state == AT_NAMED)
      here[threads[i].id % NAMED_BARRIERS]++;
  for (int i = first_thread(m); i < first_thread(m + 1); i++)
    if (threads[i].state == AT_NAMED && here[threads[i].id % NAMED_BARRIERS] == threads[i].count) {
      come_by[m][threads[i].id % NAMED_BARRIERS] = 0;
      threads[i].state = READY;
      moved = 1;
    }
  return moved;
}

/* Lets threads of block m go on whose phase has ended. */
static int release_counting(int m) {
  int moved = 0;
  for (int i = first_thread(m); i < first_thread(m + 1); i++)
    if (threads[i].state == AT_COUNTING && barriers[m][threads[i].barrier].phase != threads[i].parity) {
      threads[i].state = READY;
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
  memset(emu_shared, GARBAGE, sizeof emu_shared);
  memset(kept, GARBAGE, sizeof kept);
  memset(barriers, 0, sizeof barriers);
  memset(come_by, 0, sizeof come_by);
  num_boxes = 0;
  forget_reads();
  forget_products();
  at_once = (block[0] / members + block[1] + block[2]) % 2;
  memset(votes, 0, sizeof votes);
  memset(turns, 0, sizeof turns);
  memset(any_in_turn, 0, sizeof any_in_turn);
  memset(counts, 0, sizeof counts);
  memset(comers, 0, sizeof comers);
  for (int i = 0; i < num_threads(); i++) {
    thread_t *t = &threads[i];
    if (t->stack == NULL)
      t->stack = malloc(STACK_BYTES);
    t->state = READY;
    t->num_copies = t->group = t->arrivals = t->waits = 0;
    getcontext(&t->context);
    t->context.uc_stack.ss_sp = t->stack;
    t->context.uc_stack.ss_size = STACK_BYTES;
    t->context.uc_link = &scheduler;
    makecontext(&t->context, body, 0);
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
        swapcontext(&scheduler, &threads[current].context);
        moved = 1;
      }
    for (int m = 0; m < members; m++)
      moved += release_block(m);
    moved += release_cluster();
    if (!moved)
      moved = deliver_oldest();
    for (int i = 0; i < num_threads(); i++)
      alive |= threads[i].state != DONE;
  }
  if (num_boxes)
    give_up("the block ends while %d copies to it are under way", num_boxes);
  for (int i = 0; i < num_threads(); i++)
    if (threads[i].arrivals != threads[i].waits)
      give_up("thread %d ends without having waited for its cluster", i);
  for (int i = 0; i < num_threads(); i++)
    if (stores[i].num)
      give_up("the block ends before %d boxes of thread %d were read", stores[i].num, i);
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
  words[0] = emu_parts;
  words[1] = whole;
  words[2] = workspace();
  return whole + (blocks - whole) * emu_parts;
}

/* As the launcher does it: few blocks run all, or each several, or more share them, and learn of the grid from more
 * words. */
static void run_other_grid(const int64_t *words, const int32_t *dims) {
  int64_t longer[MAX_WORDS], blocks = 1;
  int given = emu_num_words - 3 - (emu_parts ? 3 : 0) - emu_dynamic;
  memcpy(longer, words, (size_t)given * sizeof *longer);
  for (int i = 0; i < 3; i++)
    blocks *= longer[given + i] = dims[i];
  if (emu_parts)
    blocks = share_tiles(blocks, longer + given + 3);
  if (emu_dynamic)
    longer[given + 3] = workspace();
  int rows = per_block / 32, in_line = (int)(emu_persistent && blocks > RESIDENT ? RESIDENT : blocks);
  if (members > 1)
    in_line = in_line > members ? 2 * members : members;
  int32_t started[3] = {emu_joined ? (dims[0] + rows - 1) / rows : in_line, emu_joined ? dims[1] : 1,
                        emu_joined ? dims[2] : 1};
  run_plain(longer, started, 0, (int64_t)started[0] * started[1] * started[2]);
  if (emu_parts || emu_dynamic)
    workspace();
}

/* The signature of a CPU kernel. */
void emu_entry(const int64_t *words, const int32_t *dims, int64_t from, int64_t to, void *scratch) {
  int32_t grid_scale[3];
  int64_t slices = 1, blocks = 1;
  (void)scratch;
  pthread_mutex_lock(&one_at_a_time);
  make_maps(words);
  members = emu_members;
  per_block = emu_num_threads ? emu_num_threads : dims[3] * dims[4] * dims[5];
  for (int i = 0; i < 3; i++)
    block_dims[i] = is_simt() ? dims[3 + i] : i ? 1 : emu_num_threads;
  dynamic_bytes = is_simt() ? dims[6] : 0;
  for (int i = 0; i < 3; i++) {
    slices *= emu_grid_scale[i];
    blocks *= grid_scale[i] =
        emu_grid_scale[i] < 0 ? (dims[i] - emu_grid_scale[i] - 1) / -emu_grid_scale[i] : dims[i] * emu_grid_scale[i];
  }
  int other = emu_persistent || emu_joined || emu_parts;
  if (!other && slices == 1)
    run_plain(words, dims, from, to);
  else if (from == 0 && other) /* the call that has the first block runs all */
    run_other_grid(words, grid_scale);
  else if (from == 0)
    run_plain(words, grid_scale, 0, blocks);
  fflush(stdout);
  pthread_mutex_unlock(&one_at_a_time);
}
