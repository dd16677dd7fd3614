/* tile_plans.h - into how many slices a tile is divided, or how many tiles a block takes: 1, 2, 4 ..., and what that
 * takes
 *
 * A plan doubles the one before in one of a few ways: that in which its blocks compute the least, first beside products
 * and then in them, and of such that in which they load the least. */
#ifndef TILEWRIGHT_LOWERING_GPU_GRID_TILE_PLANS_H
#define TILEWRIGHT_LOWERING_GPU_GRID_TILE_PLANS_H

#include <stdbool.h>
#include <stdint.h>

enum { TW_PLAN_WAYS = 3, TW_MAX_LOG_PLAN = 4 };

typedef struct tw_plan {
  int log[TW_PLAN_WAYS];           /* how often it is doubled in each way */
  int64_t cycles, bytes, sum_bits; /* of an iteration of a block, and what holds its sums */
  int64_t alone;                   /* the cycles, where few others load */
  int64_t computing;               /* of these cycles, those of elements that threads compute */
  int64_t products;                /* cycles of its products, where ways differ by them */
} tw_plan_t;

typedef struct tw_plans {
  tw_plan_t at[TW_MAX_LOG_PLAN + 1];
  int count;
} tw_plans_t;

/* Finds what a plan takes that is `from` doubled in a way (-1: the first, of which all come), and if it will do. */
typedef bool (*tw_weigh_t)(void *user, const tw_plan_t *from, int way, tw_plan_t *plan);

/* Of ways that load equally much the first is taken, or the last. */
void tw_make_plans(tw_plans_t *plans, int ways, bool last, tw_weigh_t weigh, void *user);
/* The number of the largest plan with at most this many blocks. */
int tw_plan_for(const tw_plans_t *plans, int64_t most);
#endif /* TILEWRIGHT_LOWERING_GPU_GRID_TILE_PLANS_H */
