/* split.c - blocks that share a tile: how many, and where their sums meet
 *
 * A kernel with loops over k that several blocks may share (lowering/gpu/split_k.c) takes three more words: the blocks
 * of a shared tile, the number of tiles before the first shared one, and the address of its workspace. Which tiles are
 * shared follows from the grid and from the extent of k: those of a launch with fewer tiles than multiprocessors, or
 * those that its last turn is left with.
 *
 * The workspace belongs to the stream, on which kernels follow each other. Its counters are zeroed once; each kernel
 * leaves them zero. A stream that captures a graph gets none, since the graph may run beside anything else later; nor
 * does one of more than MAX_STREAMS of a device. Tiles are not shared there. */
#include "module.h"

#include <pthread.h>

enum {
  MAX_STREAMS = 8,
  COUNTERS = 4096,        /* shared tiles of a launch */
  BYTES_PER_SM = 1 << 18, /* as many as registers: more sums than that are never made at a time */
  MAX_PARTS = 32,
  MIN_STEPS = 2,          /* of a part */
  BYTES_A_CYCLE = 24,     /* of what all multiprocessors load at a time, for each */
  SUM_BYTES_A_CYCLE = 56, /* that a multiprocessor reads of sums */
  MEETING_CYCLES = 6000,  /* until what was written last is seen by the block that was waited for */
  LEAST_GAIN = 8          /* of a launch, as 1 / LEAST_GAIN: code that can share is some percent slower */
};

/* ---- how many ------------------------------------------------------------------------------------ */

static int64_t divide_up(int64_t x, int64_t y) { return (x + y - 1) / y; }

static int64_t steps_of(const tw_split_t *split, const uint64_t *words) {
  return split->word < 0 ? split->steps : divide_up((int64_t)words[split->word], split->per_step);
}

/* Cycles that `tiles` take on the multiprocessors together if each is computed by `parts` blocks at once. */
static int64_t cycles_of(const tw_split_t *split, int64_t steps, int64_t parts, int64_t tiles, int64_t units) {
  int64_t own = divide_up(steps, parts) * split->step_cycles;
  int64_t all = tiles * steps * split->step_bytes / (units * BYTES_A_CYCLE);
  int64_t sum = parts == 1 ? 0 : MEETING_CYCLES + parts * (split->part_bytes / SUM_BYTES_A_CYCLE);
  return (own > all ? own : all) + sum;
}

/* The number of parts with which the tiles of the last turn are done first, if that is worth it. */
static int64_t fastest(const tw_split_t *split, int64_t steps, int64_t tiles, int64_t units, int64_t turns) {
  int64_t whole = cycles_of(split, steps, 1, tiles, units), least = whole, best = 1;
  for (int64_t parts = 2; parts <= MAX_PARTS && parts * tiles <= units && parts * MIN_STEPS <= steps; parts++) {
    int64_t cycles = cycles_of(split, steps, parts, tiles, units);
    if (cycles < least) {
      best = parts;
      least = cycles;
    }
  }
  return (whole - least) * LEAST_GAIN > whole + turns * steps * split->step_cycles ? best : 1;
}

int64_t tw_split_cycles(const tw_split_t *split, const uint64_t *words, int64_t tiles, int64_t units) {
  int64_t steps = steps_of(split, words), parts = fastest(split, steps, tiles, units, 0);
  return cycles_of(split, steps, parts, tiles, units);
}

tw_shares_t tw_split_choose(const tw_split_t *split, const uint64_t *words, int64_t blocks, int64_t units,
                            int64_t resident) {
  int64_t steps = steps_of(split, words), room = units * BYTES_PER_SM / split->part_bytes, parts, whole;
  if (split->forced) {
    int64_t most = room / split->forced < COUNTERS ? room / split->forced : COUNTERS;
    parts = split->forced;
    whole = blocks > most ? blocks - most : 0;
  } else {
    /* Where a multiprocessor has several blocks, they share what it can do: a turn is no longer a step in time. */
    whole = resident > units ? (blocks < units ? 0 : blocks) : blocks / units * units;
    parts = blocks > whole ? fastest(split, steps, blocks - whole, units, whole / units) : 1;
    if ((blocks - whole) * parts > room)
      parts = 1;
  }
  if (parts == 1 || whole == blocks)
    return (tw_shares_t){1, (uint32_t)blocks};
  return (tw_shares_t){(uint32_t)parts, (uint32_t)whole};
}

/* ---- where they meet ----------------------------------------------------------------------------- */

typedef struct workspace {
  unsigned long long stream;
  uint64_t address;
} workspace_t;

/* Of a device: entries are added, never changed. */
typedef struct workspaces {
  workspace_t of[MAX_STREAMS];
  _Atomic int count;
} workspaces_t;

static workspaces_t devices[TW_MAX_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for adding one */

static uint64_t find(const workspaces_t *known, unsigned long long stream) {
  int count = atomic_load_explicit(&known->count, memory_order_acquire);
  for (int i = 0; i < count; i++)
    if (known->of[i].stream == stream)
      return known->of[i].address;
  return 0;
}

/* The lock is held. 0 where there is no memory. */
static uint64_t add(workspaces_t *known, const tw_driver_t *driver, const tw_device_t *device, CUstream stream,
                    unsigned long long id) {
  size_t counters = COUNTERS * sizeof(uint32_t), size = counters + (size_t)device->sm_count * BYTES_PER_SM;
  int count = atomic_load_explicit(&known->count, memory_order_relaxed), mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  uint64_t memory = 0;
  if (count == MAX_STREAMS)
    return 0;
  if (driver->exchange_capture_mode) /* another stream may be capturing: this is no part of it */
    driver->exchange_capture_mode(&mode);
  CUresult result = driver->mem_alloc(&memory, size);
  if (!result)
    result = driver->mem_set(memory, 0, counters, stream);
  if (driver->exchange_capture_mode)
    driver->exchange_capture_mode(&mode);
  if (result)
    return 0;
  known->of[count] = (workspace_t){id, memory + counters};
  atomic_store_explicit(&known->count, count + 1, memory_order_release);
  return memory + counters;
}

uint64_t tw_split_workspace(const tw_driver_t *driver, const tw_device_t *device, CUstream stream) {
  workspaces_t *known = &devices[device->ordinal];
  unsigned long long id = 0;
  int capturing = 0;
  if (!driver->stream_get_id || !driver->stream_is_capturing || driver->stream_is_capturing(stream, &capturing) ||
      capturing || driver->stream_get_id(stream, &id))
    return 0;
  uint64_t address = find(known, id);
  if (TW_LIKELY(address != 0))
    return address;
  pthread_mutex_lock(&lock);
  address = find(known, id);
  if (!address)
    address = add(known, driver, device, stream, id);
  pthread_mutex_unlock(&lock);
  return address;
}
