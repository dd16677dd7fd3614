/* cache_nests.h - in tile-cache-tiles: walks that are a loop in a loop */
#ifndef TILEWRIGHT_LOWERING_GPU_MEMORY_CACHE_NESTS_H
#define TILEWRIGHT_LOWERING_GPU_MEMORY_CACHE_NESTS_H

#include "lowering/gpu/facts/same_tile.h"

/* Whether an op is a loop from 0 by 1. */
bool tw_is_walk(MlirOperation op);
/* Whether such a loop has one other op with regions, which is such a loop again, to a bound from outside of both. */
bool tw_find_nest(MlirOperation op, tw_nest_t *out);
/* Whether two of them have the same numbers of iterations. */
bool tw_are_nests_alike(tw_nest_t x, tw_nest_t y);
/* The least number of iterations of the inner loop that is known of one that has any: 1 or more. */
int64_t tw_least_trips(tw_nest_t nest);

/* In an iteration of the outer loop (`number`): how many iterations of the inner loop find their tile in one of
 * `stages`, and which has the first of them. */
typedef struct {
  MlirValue first, kept;
} tw_stretch_t;
tw_stretch_t tw_stretch(const tw_builder_t *at, tw_nest_t nest, int stages, MlirValue number);

/* Builds the loops that start the copies of all stages, one group each, and as many empty groups as stages are left. At
 * the place that it is given, `copy` builds those of an iteration. */
typedef void (*tw_build_copies_t)(const tw_builder_t *at, void *user, MlirValue outer, MlirValue inner,
                                  MlirValue stage);
void tw_start_nest(const tw_builder_t *at, tw_nest_t nest, int stages, tw_build_copies_t copy, void *user);

/* Has the first iterations of a loop by 1 run four at a time, with some of its loads in front of all else, so that four
 * tiles are under way. Nothing in it may write what they read. */
void tw_load_in_fours(MlirOperation loop, const tw_ops_t *loads);

#endif /* TILEWRIGHT_LOWERING_GPU_MEMORY_CACHE_NESTS_H */
