/* schedule.h - which numbers a block of a persistent grid takes, and the positions that these are
 *
 * Numbers count the tiles in the order of the raster (raster.h). A block takes every so many-th, or the next one when
 * it is done. Where the work of a block changes along an axis (grid_plan.h), those with the longest loops come first,
 * of a few rows at a time, so that what these load again and again stays in the L2 cache:
 *
 *   axis 0 decides the work,           0 1 2 3          0 2 4 6     and from right to left where
 *   axis 1 has the rows                4 5 6 7   ->     1 3 5 7     the work grows with the position
 *
 * serpentine: of four rows at a time; every second round of the few blocks backwards, so that the one which had the
 * longest gets the shortest, but not the round with too few numbers left:
 *
 *   %r = (%v - %first) / %step ; number = %r is odd, and the round is whole ? (2 * %r + 1) * %step - 1 - %v : %v
 *
 * dynamic: all rows along the other two axes are one, in groups with two rounds of blocks, and the group that is not
 * whole comes before all others. */
#ifndef TILEWRIGHT_LOWERING_GPU_GRID_SCHEDULE_H
#define TILEWRIGHT_LOWERING_GPU_GRID_SCHEDULE_H

#include "lowering/divide.h"
#include "lowering/gpu/grid/grid_plan.h"

typedef struct tw_schedule_code {
  const tw_grid_plan_t *plan;
  MlirValue total; /* how many numbers there are */
  MlirValue extents[TW_GRID_AXES];
  tw_raster_code_t raster;
  tw_divisor_t step; /* serpentine: how many are taken in a round */
  int inner, outer;  /* dynamic: axes along which the rows lie that are one */
  tw_divisor_t rows; /* ... along `inner` */
} tw_schedule_code_t;

/* What the loop needs and depends on the grid only. `extents` are those of the program; `walked` has fewer where
 * a number stands for several neighbours along an axis. */
tw_schedule_code_t tw_schedule_prepare(const tw_builder_t *at, const tw_grid_plan_t *plan,
                                       const MlirValue extents[TW_GRID_AXES], MlirValue walked[TW_GRID_AXES]);
/* ... and on how many numbers the blocks take in a round. */
void tw_schedule_set_step(const tw_builder_t *at, tw_schedule_code_t *code, MlirValue step);
/* The position, among what is walked, of a number that a block takes. */
void tw_schedule_position(const tw_builder_t *at, const tw_schedule_code_t *code, MlirValue number,
                          MlirValue position[TW_GRID_AXES]);

#endif /* TILEWRIGHT_LOWERING_GPU_GRID_SCHEDULE_H */
