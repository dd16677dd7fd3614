/* split.c - blocks that share a tile: how many
 *
 * A kernel with loops over k that several blocks may share (lowering/gpu/split_k.c) takes three more words: the blocks
 * of a shared tile, the number of tiles before the first shared one, and the address of its workspace. Which tiles are
 * shared follows from the grid and from the extent of k: those of a launch with fewer tiles than multiprocessors, or
 * those that its last turn is left with. */
#include "module.h"

enum {
  MAX_PARTS = 32,
  MIN_STEPS = 2,          /* of a part */
  BYTES_A_CYCLE = 24,     /* of what all multiprocessors load at a time, for each */
  SUM_BYTES_A_CYCLE = 56, /* that a multiprocessor reads of sums */
  MEETING_CYCLES = 6000,  /* until what was written last is seen by the block that was waited for */
  LEAST_GAIN = 8          /* of a launch, as 1 / LEAST_GAIN: code that can share is some percent slower */
};

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
  int64_t steps = steps_of(split, words), room = units * TW_SPLIT_BYTES_PER_SM / split->part_bytes, parts, whole;
  if (split->forced) {
    int64_t most = room / split->forced < TW_SPLIT_COUNTERS ? room / split->forced : TW_SPLIT_COUNTERS;
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

size_t tw_split_bytes(const tw_split_t *split, tw_shares_t shares, int64_t blocks) {
  return (size_t)(blocks - shares.whole) * shares.parts * (size_t)split->part_bytes;
}
