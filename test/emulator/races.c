/* races.c - whether accesses to the same bytes are in an order, which what threads do to meet gives them
 *
 * Each thread has a time, and knows how far it has seen the times of the others. Where threads meet they hand that on,
 * and what they did until then. Of each byte of shared memory, and of arrays, the last write is kept, and the reads
 * since: an access by a thread that has not seen them is an error, even where the order in which threads run here is
 * right by luck. What runs by itself ends when it is waited for: until then reads of products and of stores by the
 * accelerator, and writes of `cp.async`, are at a time that no thread has seen. Copies by the accelerator have the time
 * of their barrier, which counts as a thread. Atomic accesses are in no race; those that acquire or release hand on to
 * all that do so later, as do fences. What a thread stores and products or the accelerator read is behind a fence
 * between the two, by the writer or a thread that has seen it. Blocks of a grid are in no order, and not compared. */
#include "threads.h"

enum { UNKNOWN = -1, PAGE_BYTES = 1024, BUCKETS = 1 << 14, MOST_BARRIERS = 256, PHASES = 4 };
static const uint32_t NEVER = UINT32_MAX;

/* ---- what threads have seen -------------------------------------------------------------------------- */

/* Of each thread and place where threads meet: how far it has seen each thread, barrier and warp's products, how far of
 * that fences between threads and the accelerator have, and how many phases of each barrier have ended. */
static uint32_t *rows;
static size_t room;
static int width, length, num_barriers, newest_phase; /* length: of a row, twice the width and the barriers' phases */
static uint32_t product_waits[MAX_THREADS];
static uint32_t begun[MOST_BARRIERS], ended[MOST_BARRIERS]; /* copies by the accelerator */

static uint32_t *row(int number) { return rows + (size_t)number * (size_t)length; }
static uint32_t *of_thread(int thread) { return row(thread); }
static uint32_t *of_block(int m) { return row(num_threads() + m); }
static uint32_t *of_name(int m, int id) { return row(num_threads() + members + m * NAMED_BARRIERS + id); }
static uint32_t *of_warp(int thread) { return row(num_threads() + members * (1 + NAMED_BARRIERS) + thread / 32); }
static uint32_t *of_phase(int phase) {
  return row(num_threads() * 2 + members * (1 + NAMED_BARRIERS) + phase % PHASES);
}
static uint32_t *of_atomics(void) { return of_phase(0) + (size_t)PHASES * (size_t)length; }
static uint32_t *gathered(int barrier) { return of_atomics() + (size_t)(1 + 2 * barrier) * (size_t)length; }
static uint32_t *handed(int barrier) { return gathered(barrier) + length; }

static uint32_t *phases_seen(uint32_t *place, int barrier) { return &place[2 * width + barrier]; }

static void see(uint32_t *to, const uint32_t *from) {
  for (int i = 0; i < length; i++)
    to[i] = to[i] < from[i] ? from[i] : to[i];
}

static void clear(uint32_t *place) { memset(place, 0, (size_t)length * sizeof *place); }

/* The thread that runs comes to a place. */
static void come(uint32_t *place) {
  see(place, of_thread(current));
  of_thread(current)[current]++;
}

void race_come_block(void) { come(of_block(member)); }
void race_go_block(int thread) { see(of_thread(thread), of_block(thread / per_block)); }

void race_come_name(int id) { come(of_name(member, id)); }
void race_go_name(int thread, int id) { see(of_thread(thread), of_name(thread / per_block, id)); }
void race_end_name(int m, int id) { clear(of_name(m, id)); }

void race_come_warp(void) { come(of_warp(current)); }
void race_go_warp(void) { see(of_thread(current), of_warp(current)); }

void race_come_cluster(int phase) {
  if (phase > newest_phase)
    clear(of_phase(newest_phase = phase));
  come(of_phase(phase));
}
void race_go_cluster(int thread, int phase) { see(of_thread(thread), of_phase(phase)); }

/* What the thread has seen, and what it did, the accelerator and products see from now on. */
void race_fence(void) {
  uint32_t *own = of_thread(current);
  race_show_barriers();
  for (int i = 0; i < width; i++)
    own[width + i] = own[i];
  own[current]++;
}

/* A fence, or an atomic access that is in an order with others. */
void emu_order(void) {
  see(of_thread(current), of_atomics());
  come(of_atomics());
}

/* Of a barrier that counts: who has set it up, when, and whether a fence shows that to the accelerator; how many phases
 * have ended. */
static struct {
  int maker, phases;
  uint32_t made;
  bool shown;
} set_up[MOST_BARRIERS];

/* The phase for which a thread has waited last, and when it was found to have ended. */
typedef struct {
  int phase;
  uint32_t time;
} waited_t;
static waited_t *waited;

static waited_t *last_wait(int thread, int barrier) { return &waited[thread * MOST_BARRIERS + barrier]; }

int race_new_barrier(void) {
  if (num_barriers == MOST_BARRIERS)
    give_up("more than %d barriers are set up", MOST_BARRIERS);
  set_up[num_barriers].maker = current;
  set_up[num_barriers].made = of_thread(current)[current];
  set_up[num_barriers].shown = false;
  set_up[num_barriers].phases = 0;
  for (int i = 0; i < num_threads(); i++)
    *last_wait(i, num_barriers) = (waited_t){-2, 0};
  return num_barriers++;
}

void race_show_barriers(void) {
  for (int i = 0; i < num_barriers; i++)
    set_up[i].shown |= set_up[i].maker == current;
}

void race_use_barrier(int barrier, bool by_accelerator) {
  if (of_thread(current)[set_up[barrier].maker] < set_up[barrier].made)
    give_up("a barrier is used that thread %d sets up: nothing orders the two", set_up[barrier].maker);
  if (by_accelerator && !set_up[barrier].shown)
    give_up("a copy uses a barrier that thread %d has set up without a fence since", set_up[barrier].maker);
}

/* Of the last phase that the thread knows has ended and the next one, the parity tells which is meant. It is the last
 * that has ended, or the next one, or the thread would wait for another. */
void race_wait_for(int barrier, int parity) {
  int known_last = (int)*phases_seen(of_thread(current), barrier) - 1;
  int phase = known_last + ((known_last & 1) != parity);
  if (phase < set_up[barrier].phases - 1)
    give_up("thread %d waits for phase %d of a barrier when phase %d has ended: nothing orders that behind its wait",
            current, phase, set_up[barrier].phases - 1);
  *last_wait(current, barrier) = (waited_t){phase, NEVER};
}

/* The phase that ends is the one behind that for which a warp has waited: who arrives has seen that it went on. */
static void check_waiters(int barrier) {
  for (int warp = 0; warp < num_threads(); warp += 32) {
    int late = -1, seen = -1;
    for (int i = warp; i < warp + 32 && i < num_threads(); i++)
      if (last_wait(i, barrier)->phase == set_up[barrier].phases - 1 && last_wait(i, barrier)->phase >= 0) {
        bool known = gathered(barrier)[i] >= last_wait(i, barrier)->time;
        *(known ? &seen : &late) = i;
      }
    if (late >= 0 && seen < 0)
      give_up("phase %d of a barrier ends, and nothing orders that behind thread %d, which waits for the one before",
              set_up[barrier].phases, late);
  }
}

void race_come_barrier(int barrier) { come(gathered(barrier)); }
void race_end_phase(int barrier) {
  check_waiters(barrier);
  *phases_seen(gathered(barrier), barrier) = (uint32_t)++set_up[barrier].phases;
  see(handed(barrier), gathered(barrier));
  clear(gathered(barrier));
}
void race_go_barrier(int thread, int barrier) {
  see(of_thread(thread), handed(barrier));
  last_wait(thread, barrier)->time = of_thread(thread)[thread];
}

/* ---- what was done to each byte ---------------------------------------------------------------------- */

/* The last write, and the first in the list of the reads since. Threads may store the same value side by side. */
typedef struct {
  uint32_t time;
  int32_t thread, reads, value; /* UNKNOWN: of what runs by itself */
} cell_t;

/* By some lanes of a warp, or by its products, at one time. */
typedef struct {
  uint32_t time, lanes;
  int32_t first, next; /* the thread of lane 0 */
} read_t;

typedef struct page {
  struct page *next;
  uint64_t number;
  cell_t cells[PAGE_BYTES];
} page_t;

static page_t *buckets[BUCKETS], *unused_pages, *last_page;
static read_t *reads_of_bytes; /* number 0 ends a list */
static int32_t num_reads, most_reads, unused_read;

void forget_races(void) {
  int places = members * (1 + NAMED_BARRIERS) + PHASES + 1 + 2 * MOST_BARRIERS;
  width = num_threads() + MOST_BARRIERS + (num_threads() + 31) / 32;
  length = 2 * width + MOST_BARRIERS;
  size_t wanted = (size_t)(2 * num_threads() + places) * (size_t)length;
  if (wanted > room)
    rows = realloc(rows, (room = wanted) * sizeof *rows);
  memset(rows, 0, wanted * sizeof *rows);
  for (int t = 0; t < num_threads(); t++)
    of_thread(t)[t] = 1;
  waited = realloc(waited, sizeof *waited * (size_t)num_threads() * MOST_BARRIERS);
  num_barriers = newest_phase = 0;
  memset(product_waits, 0, sizeof product_waits);
  memset(begun, 0, sizeof begun);
  memset(ended, 0, sizeof ended);
  for (int b = 0; b < BUCKETS; b++)
    for (page_t *page = buckets[b]; page; page = buckets[b]) {
      buckets[b] = page->next;
      page->next = unused_pages;
      unused_pages = page;
    }
  last_page = NULL;
  num_reads = 1;
  unused_read = 0;
}

static page_t *new_page(uint64_t number) {
  page_t *page = unused_pages ? unused_pages : malloc(sizeof *page), **first = &buckets[number % BUCKETS];
  if (page == unused_pages)
    unused_pages = page->next;
  memset(page->cells, 0, sizeof page->cells);
  page->number = number;
  page->next = *first;
  return *first = page;
}

static cell_t *cell_of(uint64_t address) {
  uint64_t number = address / PAGE_BYTES;
  page_t *page = last_page && last_page->number == number ? last_page : buckets[number % BUCKETS];
  while (page && page->number != number)
    page = page->next;
  last_page = page ? page : new_page(number);
  return &last_page->cells[address % PAGE_BYTES];
}

enum { TAG_SHIFT = 56, FIRST_ROW_TAG = 1 << 7 }; /* above: of arrays, as a block of the program sees them */
_Static_assert(MOST_MEMBERS < FIRST_ROW_TAG, "a tag says whether memory is shared");

/* Blocks of a cluster have their shared memory at one address; it is told apart here. So is an array for blocks of the
 * program that start as one: blocks of a grid are not compared. */
static uint64_t place_of(uint64_t address, int m) {
  bool shared = address - (uint64_t)(uintptr_t)emu_shared < SHARED_BYTES;
  int row = row_of_program(), tag = shared ? m + 1 : row > 0 ? FIRST_ROW_TAG + row : 0;
  return address | (uint64_t)tag << TAG_SHIFT;
}

static void complain(const char *what, uint64_t place, const char *other, int thread, bool under_way) {
  uint64_t address = place << 8 >> 8;
  bool shared = place != address && place >> TAG_SHIFT < FIRST_ROW_TAG;
  const char *kind = "thread";
  if (thread >= num_threads() + MOST_BARRIERS) {
    thread -= num_threads() + MOST_BARRIERS;
    kind = "a product of warp";
  } else if (thread >= num_threads()) {
    thread -= num_threads();
    kind = "a copy for barrier";
  }
  give_up("%s %s %lld, which %s %d %s%s", what, shared ? "shared memory at" : "an array at",
          (long long)(shared ? address - (uint64_t)(uintptr_t)emu_shared : address), kind, thread, other,
          under_way ? ", and has not waited for" : ": nothing orders the two");
}

/* The thread knows of the byte's last write. */
static void check_written(const cell_t *cell, uint64_t place, const char *what) {
  if (of_thread(current)[cell->thread] < cell->time)
    complain(what, place, "writes", cell->thread, cell->time == NEVER);
}

static void check_read(const cell_t *cell, uint64_t place, const char *what) {
  for (int32_t i = cell->reads; i; i = reads_of_bytes[i].next)
    for (int lane = 0; lane < 32; lane++)
      if (reads_of_bytes[i].lanes >> lane & 1 &&
          of_thread(current)[reads_of_bytes[i].first + lane] < reads_of_bytes[i].time)
        complain(what, place, "reads", reads_of_bytes[i].first + lane, reads_of_bytes[i].time == NEVER);
}

/* What threads have stored is behind a fence. */
static void check_fenced_write(uint64_t place) {
  const cell_t *cell = cell_of(place);
  if (cell->thread < num_threads() && of_thread(current)[cell->thread] >= cell->time &&
      of_thread(current)[width + cell->thread] < cell->time)
    give_up("what runs by itself reads shared memory at %lld, which thread %d writes without a fence since",
            (long long)(place << 8 >> 8) - (long long)(uintptr_t)emu_shared, cell->thread);
}

static void drop_reads(cell_t *cell) {
  int32_t first = cell->reads, last = first;
  if (!first)
    return;
  while (reads_of_bytes[last].next)
    last = reads_of_bytes[last].next;
  reads_of_bytes[last].next = unused_read;
  unused_read = first;
  cell->reads = 0;
}

static int32_t new_read(void) {
  int32_t number = unused_read;
  if (number) {
    unused_read = reads_of_bytes[number].next;
    return number;
  }
  if (num_reads >= most_reads)
    reads_of_bytes = realloc(reads_of_bytes, (size_t)(most_reads = most_reads * 2 + 4096) * sizeof *reads_of_bytes);
  return num_reads++;
}

/* By a thread, or by the products of its warp. An earlier one that has ended is not looked at again: who has seen the
 * later one has seen both. */
static void add_read(cell_t *cell, int thread, uint32_t time) {
  bool own = thread < num_threads();
  int32_t same = 0, empty = 0, first = own ? thread / 32 * 32 : thread;
  uint32_t lane = own ? 1u << thread % 32 : 1;
  for (int32_t i = cell->reads; i; i = reads_of_bytes[i].next)
    if (reads_of_bytes[i].first == first && reads_of_bytes[i].time == time) {
      same = i;
    } else if (reads_of_bytes[i].first == first && reads_of_bytes[i].time != NEVER) {
      reads_of_bytes[i].lanes &= ~lane;
      empty = reads_of_bytes[i].lanes ? empty : i;
    }
  if (!same && empty) {
    reads_of_bytes[same = empty].time = time;
  } else if (!same) {
    same = new_read();
    reads_of_bytes[same] = (read_t){time, 0, first, cell->reads};
    cell->reads = same;
  }
  reads_of_bytes[same].lanes |= lane;
}

static void read_bytes(uint64_t place, int64_t bytes, uint32_t time, const char *what) {
  for (int64_t i = 0; i < bytes; i++) {
    cell_t *cell = cell_of(place + (uint64_t)i);
    check_written(cell, place + (uint64_t)i, what);
    add_read(cell, current, time);
  }
}

static void write_byte(uint64_t place, int thread, uint32_t time, int value, const char *what) {
  cell_t *cell = cell_of(place);
  if (value == UNKNOWN || value != cell->value)
    check_written(cell, place, what);
  check_read(cell, place, what);
  drop_reads(cell);
  *cell = (cell_t){time, thread, 0, value};
}

void emu_reads(uint64_t address, int64_t bytes) {
  check_bounds((const void *)(uintptr_t)address, bytes);
  check_goes_on((const void *)(uintptr_t)address);
  read_bytes(place_of(address, member), bytes, of_thread(current)[current], "a load from");
}

void race_write(const void *to, const void *values, int64_t bytes, int m) {
  uint64_t place = place_of((uint64_t)(uintptr_t)to, m);
  check_bounds(to, bytes);
  check_goes_on(to);
  check_no_barrier(m, to, bytes);
  for (int64_t i = 0; i < bytes; i++)
    write_byte(place + (uint64_t)i, current, of_thread(current)[current], ((const uint8_t *)values)[i], "a store to");
}

/* These bytes have been stored. */
void emu_writes(uint64_t address, int64_t bytes) {
  const void *to = (const void *)(uintptr_t)address;
  race_write(to, to, bytes, member);
}

/* Of this thread's `cp.async`: begins, and ends. Of its bytes some are read, the others zero. */
void race_begin_cp_async(const void *to, const void *from, int64_t bytes, int64_t read) {
  uint64_t place = place_of((uint64_t)(uintptr_t)to, member);
  check_bounds(to, bytes);
  check_no_barrier(member, to, bytes);
  emu_reads((uint64_t)(uintptr_t)from, read);
  for (int64_t i = 0; i < bytes; i++)
    write_byte(place + (uint64_t)i, current, NEVER, i < read ? ((const uint8_t *)from)[i] : 0, "a copy to");
}

void race_end_cp_async(const void *to, int64_t bytes) {
  uint64_t place = place_of((uint64_t)(uintptr_t)to, member);
  for (int64_t i = 0; i < bytes; i++) {
    cell_t *cell = cell_of(place + (uint64_t)i);
    if (cell->thread == current) /* else another thread copies the same */
      cell->time = of_thread(current)[current];
  }
}

/* A copy by the accelerator into block m begins, and ends; the oldest ends first. Who waits for the barrier sees it. */
void race_begin_copy(const void *to, int64_t bytes, int m, int barrier) {
  uint64_t place = place_of((uint64_t)(uintptr_t)to, m);
  race_use_barrier(barrier, true);
  check_bounds(to, bytes);
  check_no_barrier(m, to, bytes);
  begun[barrier]++;
  for (int64_t i = 0; i < bytes; i++)
    write_byte(place + (uint64_t)i, num_threads() + barrier, begun[barrier], UNKNOWN, "a copy by the accelerator to");
}

void race_end_copy(int barrier) { gathered(barrier)[num_threads() + barrier] = ++ended[barrier]; }

/* A product, or a store by the accelerator, reads until it was waited for. */
void race_begin_read(const void *from, int64_t bytes) {
  check_bounds(from, bytes);
  for (int64_t i = 0; i < bytes; i++)
    check_fenced_write(place_of((uint64_t)(uintptr_t)from, member) + (uint64_t)i);
  read_bytes(place_of((uint64_t)(uintptr_t)from, member), bytes, NEVER, "what runs by itself reads");
}

static void end_read(const void *from, int64_t bytes, int thread, uint32_t time) {
  uint64_t place = place_of((uint64_t)(uintptr_t)from, member);
  for (int64_t byte = 0; byte < bytes; byte++) {
    cell_t *cell = cell_of(place + (uint64_t)byte);
    for (int32_t i = cell->reads; i; i = reads_of_bytes[i].next)
      if (reads_of_bytes[i].first == current / 32 * 32 && reads_of_bytes[i].time == NEVER)
        reads_of_bytes[i].lanes &= ~(1u << current % 32);
    add_read(cell, thread, time);
  }
}

void race_end_read(const void *from, int64_t bytes) { end_read(from, bytes, current, of_thread(current)[current]); }

/* Products are a warp's: each of its lanes has seen the end of all of them when it has waited. */
static int products_of_warp(void) { return num_threads() + MOST_BARRIERS + current / 32; }

void race_wait_products(void) { of_thread(current)[products_of_warp()] = ++product_waits[current]; }

void race_end_product(const void *from, int64_t bytes) {
  end_read(from, bytes, products_of_warp(), product_waits[current]);
}
