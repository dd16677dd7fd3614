/* cut.c - blocks that compute a slice of a tile each: how many
 *
 * A kernel whose tiles can be cut (lowering/gpu/cut_blocks.c) tells what an iteration takes with 1, 2, 4 ... slices of
 * a tile. A launch of fewer blocks than multiprocessors is as long as one block, or as what all of them load together;
 * it takes the slices with which that is least. Slices may in turn be shared along k (split.c), so that this is
 * compared, too. A launch of more blocks costs one comparison. */
#include "module.h"

enum {
  BYTES_A_CYCLE = 48, /* of what all multiprocessors load at a time, for each: from the L2 cache */
  LEAST_GAIN = 8,     /* of a launch, as 1 / LEAST_GAIN */
  LEAST_CYCLES = 1000 /* that are gained: another kernel has to be compiled */
};

static int64_t divide_up(int64_t x, int64_t y) { return (x + y - 1) / y; }

/* Blocks that have something to load where there are so many tiles: slices beyond the end of an array have not. */
static int64_t busy_blocks(const tw_cut_t *cut, int plan, const uint64_t *words, int64_t tiles) {
  for (int i = 0; i < cut->num_classes; i++) {
    int64_t parts = cut->plans[plan].parts[i], tile = cut->classes[i].tile;
    int64_t extent = cut->classes[i].word < 0 ? 0 : (int64_t)words[cut->classes[i].word];
    if (extent > 0)
      tiles = divide_up(tiles * divide_up(extent, tile / parts), divide_up(extent, tile));
    else
      tiles *= parts;
  }
  return tiles;
}

static int64_t cycles_of(const tw_cut_t *cut, const tw_split_t *split, int plan, const uint64_t *words, int64_t blocks,
                         int64_t units) {
  int64_t steps = cut->word < 0 ? cut->steps : divide_up((int64_t)words[cut->word], cut->per_step);
  int64_t busy = busy_blocks(cut, plan, words, blocks), step = cut->plans[plan].cycles, bytes = cut->plans[plan].bytes;
  int64_t own = divide_up(blocks << plan, units) * steps * step, all = busy * steps * bytes / (units * BYTES_A_CYCLE);
  int64_t cycles = own > all ? own : all;
  if (split->step_cycles && blocks << plan < units) {
    tw_split_t slice = *split;
    slice.step_cycles = (int32_t)step;
    slice.step_bytes = (int32_t)bytes;
    slice.part_bytes = (split->part_bytes >> plan) + 1;
    int64_t shared = tw_split_cycles(&slice, words, blocks << plan, units);
    cycles = shared < cycles ? shared : cycles;
  }
  return cycles;
}

int tw_cut_choose(const tw_cut_t *cut, const tw_split_t *split, const uint64_t *words, int64_t blocks, int64_t units) {
  int64_t whole = cycles_of(cut, split, 0, words, blocks, units), least = whole;
  int best = 0;
  for (int plan = 1; plan < cut->num_plans; plan++) {
    int64_t cycles = cycles_of(cut, split, plan, words, blocks, units);
    if (cycles < least) {
      best = plan;
      least = cycles;
    }
  }
  return (whole - least) * LEAST_GAIN > whole && whole - least > LEAST_CYCLES ? 1 << best : 1;
}
