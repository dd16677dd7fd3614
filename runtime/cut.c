/* cut.c - blocks that compute a slice of a tile each, or the tiles of several: how many
 *
 * A kernel whose tiles can be cut (lowering/gpu/cut_blocks.c) tells what an iteration takes with 1, 2, 4 ... slices of
 * a tile. A launch of fewer blocks than multiprocessors is as long as one block, or as what all of them load together;
 * it takes the slices with which that is least. Slices may in turn be shared along k (split.c), so that this is
 * compared, too. A launch of more blocks costs one comparison. One of many blocks
 * whose tiles are small may be fused (lowering/gpu/fuse_blocks.c), by the same estimate. */
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

/* ---- blocks in one ----------------------------------------------------------------------------- */

bool tw_fuse_allowed(const tw_fuse_t *fuse, const int32_t blocks[3], const uint32_t grid[3], const uint64_t *words) {
  for (int i = 0; i < fuse->num_stores; i++) {
    int axis = fuse->stores[i].axis;
    int64_t covered = (int64_t)grid[axis] * fuse->stores[i].tile;
    if (grid[axis] % (uint32_t)blocks[axis] != 0 && covered < (int64_t)words[fuse->stores[i].word])
      return false;
  }
  return true;
}

/* Of that many blocks of the launch in one along each axis. */
static int64_t fused_cycles(const tw_fuse_t *fuse, int plan, const uint32_t grid[3], int64_t steps, int64_t units) {
  int64_t blocks = 1, step = fuse->plans[plan].cycles, bytes = fuse->plans[plan].bytes;
  for (int axis = 0; axis < 3; axis++)
    blocks *= divide_up(grid[axis], fuse->plans[plan].blocks[axis]);
  int64_t own = divide_up(blocks, units) * steps * step, all = blocks * steps * bytes / (units * BYTES_A_CYCLE);
  return own > all ? own : all;
}

int tw_fuse_choose(const tw_fuse_t *fuse, const uint32_t grid[3], const uint64_t *words, int64_t units) {
  enum { FUSED = 3, ALONE = 4 }; /* the estimate is a rough one: a third must be gained */
  int64_t steps = fuse->word < 0 ? fuse->steps : divide_up((int64_t)words[fuse->word], fuse->per_step);
  int64_t alone = fused_cycles(fuse, 0, grid, steps, units), least = alone;
  int best = 0;
  for (int plan = 1; plan < fuse->num_plans; plan++) {
    int64_t cycles = fused_cycles(fuse, plan, grid, steps, units);
    if (cycles < least && tw_fuse_allowed(fuse, fuse->plans[plan].blocks, grid, words)) {
      best = plan;
      least = cycles;
    }
  }
  return least * ALONE < alone * FUSED && alone - least > LEAST_CYCLES ? 1 << best : 1;
}
