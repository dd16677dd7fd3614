/* resize_tiles.c - blocks that compute a slice of a tile each, or the tiles of several: how many
 *
 * A kernel whose tiles can be sliced (lowering/gpu/grid/slice_tiles.c) tells what an iteration takes with 1, 2, 4 ...
 * slices of a tile. A launch of few blocks takes the slices with which it is done first (cost.h): those that give each
 * multiprocessor one, or that fill its last wave. Slices may in turn be shared along k (split.c), so that this is
 * compared, too. A launch of many blocks costs one comparison. If its tiles are small, tiles may be coarsened
 * (lowering/gpu/grid/coarsen_tiles.c), by the same estimate. */
#include "cost.h"

enum {
  LEAST_GAIN = 16,    /* as 1 / LEAST_GAIN of the launch with the program's tiles */
  LEAST_CYCLES = 1000 /* that are gained: another kernel has to be compiled */
};

/* Blocks that have something to load where there are so many tiles: slices beyond the end of an array have not. */
static int64_t busy_blocks(const tw_slicing_t *slice, int plan, const uint64_t *words, int64_t tiles) {
  for (uint32_t i = 0; i < slice->num_classes; i++) {
    int64_t parts = slice->plans[plan].parts[i], tile = slice->classes[i].tile;
    int64_t extent = slice->classes[i].word < 0 ? 0 : (int64_t)words[slice->classes[i].word];
    if (extent > 0)
      tiles = tw_divide_up(tiles * tw_divide_up(extent, tile / parts), tw_divide_up(extent, tile));
    else
      tiles *= parts;
  }
  return tiles;
}

/* A launch of so many blocks, which load from so many bytes of arrays. */
typedef struct {
  const tw_slicing_t *slice;
  const uint64_t *words;
  int64_t arrays, blocks;
  const tw_device_t *device;
} resized_launch_t;

static int64_t cycles_of(const resized_launch_t *l, int plan) {
  const tw_slicing_t *slice = l->slice;
  int64_t steps = tw_steps_of_launch(&slice->loop, l->words);
  int64_t own = tw_divide_up(l->blocks << plan, l->device->sm_count) * steps * slice->plans[plan].cycles;
  int64_t loads = busy_blocks(slice, plan, l->words, l->blocks) * steps * slice->plans[plan].bytes;
  return tw_launch_cycles(own, loads, l->arrays, l->device);
}

/* The same if several blocks share a slice where that is faster. */
static int64_t shared_cycles(const resized_launch_t *l, const tw_split_t *split, int plan) {
  int64_t cycles = cycles_of(l, plan), blocks = l->blocks << plan;
  if (!split || (plan > 0 && blocks >= l->device->sm_count))
    return cycles;
  tw_split_t one = *split;
  one.step_cycles = l->slice->plans[plan].cycles;
  one.step_bytes = l->slice->plans[plan].bytes;
  one.part_bytes = (split->part_bytes >> plan) + 1;
  int64_t shared = tw_split_cycles(&one, l->words, l->arrays, blocks, l->device);
  return shared < cycles ? shared : cycles;
}

int tw_slice_choose(const tw_slicing_t *slice, const tw_split_t *split, const uint64_t *words, int64_t arrays,
                    int64_t blocks, const tw_device_t *device) {
  resized_launch_t launch = {slice, words, arrays, blocks, device};
  int64_t whole = cycles_of(&launch, 0), least = shared_cycles(&launch, split, 0);
  int best = 0;
  for (int plan = 1; plan < (int)slice->num_plans; plan++) {
    int64_t cycles = shared_cycles(&launch, split, plan);
    if (cycles < least) {
      best = plan;
      least = cycles;
    }
  }
  return (whole - least) * LEAST_GAIN > whole && whole - least > LEAST_CYCLES ? 1 << best : 1;
}

/* ---- blocks in one ----------------------------------------------------------------------------- */

bool tw_coarsen_allowed(const tw_coarsening_t *coarsen, const int64_t blocks[3], const uint32_t grid[3],
                        const uint64_t *words) {
  for (uint32_t i = 0; i < coarsen->num_stores; i++) {
    int64_t axis = coarsen->stores[i].axis;
    int64_t covered = (int64_t)grid[axis] * coarsen->stores[i].tile;
    if (grid[axis] % (uint32_t)blocks[axis] != 0 && covered < (int64_t)words[coarsen->stores[i].word])
      return false;
  }
  return true;
}

/* A step of each turn of a multiprocessor, added up: in the last turn, where not all load, what they load comes sooner.
 */
static int64_t step_of_turns(const tw_coarsen_plan_t *plan, int64_t blocks, int64_t units) {
  int64_t rest = blocks % units, last = plan->cycles * rest / units;
  return blocks / units * plan->cycles + (rest == 0 ? 0 : last > plan->alone ? last : plan->alone);
}

/* Of that many blocks of the launch in one along each axis. What tiles compute beside the loop is hidden by the
 * products of others, but for the last ones. */
static int64_t coarsened_cycles(const tw_coarsening_t *coarsen, int plan, const uint32_t grid[3], int64_t steps,
                                int64_t arrays, const tw_device_t *device) {
  int64_t blocks = 1;
  for (int axis = 0; axis < 3; axis++)
    blocks *= tw_divide_up(grid[axis], coarsen->plans[plan].blocks[axis]);
  int64_t own = steps * step_of_turns(&coarsen->plans[plan], blocks, device->sm_count) + (coarsen->beside << plan);
  return tw_launch_cycles(own, blocks * steps * coarsen->plans[plan].bytes, arrays, device);
}

/* Of plans that are about as fast, the one with the largest blocks: it loads the least. */
int tw_coarsen_choose(const tw_coarsening_t *coarsen, const uint32_t grid[3], const uint64_t *words, int64_t arrays,
                      const tw_device_t *device) {
  int64_t steps = tw_steps_of_launch(&coarsen->loop, words);
  int64_t cycles[TW_PLANS] = {0}, least = INT64_MAX;
  int best = (int)coarsen->num_plans - 1;
  if (best >= TW_PLANS)
    return 1;
  for (int plan = 0; plan <= best; plan++) {
    bool allowed = tw_coarsen_allowed(coarsen, coarsen->plans[plan].blocks, grid, words);
    cycles[plan] = allowed ? coarsened_cycles(coarsen, plan, grid, steps, arrays, device) : INT64_MAX;
    least = cycles[plan] < least ? cycles[plan] : least;
  }
  while (best > 0 && (cycles[best] == INT64_MAX || cycles[best] - least > least / LEAST_GAIN))
    best--;
  if (best <= 0)
    return 1;
  int64_t gain = cycles[0] - cycles[best];
  return gain > cycles[0] / LEAST_GAIN && gain > LEAST_CYCLES ? 1 << best : 1;
}
