/* split.c - blocks that share a tile: how many
 *
 * A kernel with loops over k that several blocks may share (lowering/gpu/grid/split_k.c) takes three more words: the
 * blocks of a shared tile, the number of tiles before the first shared one, and the address of its workspace. Which
 * tiles are shared follows from the grid and from the extent of k: those of a launch with fewer tiles than
 * multiprocessors, or those that its last wave is left with. */
#include "cost.h"

enum {
  MAX_PARTS = 32,
  MIN_STEPS = 2, /* of a part */
  LEAST_GAIN = 8 /* of a launch, as 1 / LEAST_GAIN: code that can share is some percent slower */
};

/* What a launch is left with after whole waves of all multiprocessors, and what all of it takes to be delivered. */
typedef struct {
  const tw_split_t *split;
  const tw_device_t *device;
  int64_t steps, waves, tiles, delivery;
} rest_t;

static rest_t rest_of(const tw_split_t *split, const uint64_t *words, int64_t arrays, int64_t blocks, int64_t whole,
                      const tw_device_t *device) {
  int64_t steps = tw_steps_of_launch(&split->loop, words);
  int64_t delivery = tw_delivery_cycles(blocks * steps * split->step_bytes, arrays, device);
  return (rest_t){split, device, steps, whole / device->sm_count, blocks - whole, delivery};
}

/* Cycles of the launch if each of the tiles that are left is computed by `parts` blocks at once. */
static int64_t cycles_of(const rest_t *rest, int64_t parts) {
  const tw_split_t *split = rest->split;
  int64_t own = (rest->waves * rest->steps + tw_divide_up(rest->steps, parts)) * split->step_cycles;
  const tw_machine_t *machine = rest->device->machine;
  int64_t moved = (parts + 1) * split->part_bytes / machine->sum_bytes;
  int64_t sum = parts == 1 ? 0 : machine->meeting_clocks + parts * machine->part_clocks + moved;
  return (own > rest->delivery ? own : rest->delivery) + sum;
}

/* The number of parts with which the launch is done first, if that is worth it. */
static int64_t fastest(const rest_t *rest) {
  int64_t whole = cycles_of(rest, 1), least = whole, best = 1;
  int64_t units = rest->device->sm_count;
  for (int64_t parts = 2; parts <= MAX_PARTS && parts * rest->tiles <= units && parts * MIN_STEPS <= rest->steps;
       parts++) {
    int64_t cycles = cycles_of(rest, parts);
    if (cycles < least) {
      best = parts;
      least = cycles;
    }
  }
  return (whole - least) * LEAST_GAIN > whole ? best : 1;
}

int64_t tw_split_cycles(const tw_split_t *split, const uint64_t *words, int64_t arrays, int64_t blocks,
                        const tw_device_t *device) {
  int64_t units = device->sm_count, whole = blocks / units * units;
  rest_t rest = rest_of(split, words, arrays, blocks, whole, device);
  return blocks == whole ? INT64_MAX : cycles_of(&rest, fastest(&rest));
}

tw_shares_t tw_split_choose(const tw_split_t *split, const uint64_t *words, int64_t arrays, int64_t blocks,
                            const tw_device_t *device, int64_t resident) {
  int64_t units = device->sm_count, room = units * TW_SPLIT_BYTES_PER_SM / split->part_bytes, parts = 1, whole;
  if (split->forced) {
    int64_t most = room / split->forced < TW_SPLIT_COUNTERS ? room / split->forced : TW_SPLIT_COUNTERS;
    parts = split->forced;
    whole = blocks > most ? blocks - most : 0;
  } else {
    /* Where a multiprocessor has several blocks, they share what it can do: a wave is no longer a step in time. */
    whole = resident > units ? (blocks < units ? 0 : blocks) : blocks / units * units;
    rest_t rest = rest_of(split, words, arrays, blocks, whole, device);
    if (blocks > whole)
      parts = fastest(&rest);
    if ((blocks - whole) * parts > room)
      parts = 1;
  }
  if (parts == 1 || whole == blocks)
    return (tw_shares_t){1, (uint32_t)blocks};
  return (tw_shares_t){(uint32_t)parts, (uint32_t)whole};
}

size_t tw_split_bytes(const tw_split_t *split, tw_shares_t shares, int64_t blocks) {
  return (size_t)(blocks - shares.whole) * shares.parts * (size_t)split->part_bytes;
}
