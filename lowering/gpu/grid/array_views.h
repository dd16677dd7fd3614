/* array_views.h - arrays as a kernel accesses them, which a launch describes: within bounds, or in rows */
#ifndef TILEWRIGHT_LOWERING_GPU_GRID_ARRAY_VIEWS_H
#define TILEWRIGHT_LOWERING_GPU_GRID_ARRAY_VIEWS_H

#include "lowering/gpu/facts/launch_factors.h"
#include "lowering/index_terms.h"

/* A number that a launch computes, and what divides it. */
typedef struct {
  tw_factors_t factors;
  bool known;
  int divisor_bits; /* log2 of a power of two */
} tw_launch_number_t;

/* A sum that is the same for all elements, as the launch sees it; not known where it does not. */
tw_launch_number_t tw_launch_number_of(MlirOperation func, const tw_index_sum_t *sum);

/* An argument that shows `array`, a new one if there is none yet, with bounds for each of its `rank` dimensions where
 * these are known. With a pitch the array has one dimension, and two are shown. Null: there is no room for it. */
MlirValue tw_view_of(MlirOperation func, MlirValue array, int rank, const tw_launch_number_t *bounds,
                     const tw_launch_number_t *pitch);

#endif /* TILEWRIGHT_LOWERING_GPU_GRID_ARRAY_VIEWS_H */
