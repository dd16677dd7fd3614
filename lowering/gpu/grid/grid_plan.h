/* grid_plan.h - which block computes which tiles, and in which order: decided by tile-plan-grid, built by
 * tile-persistent-loop
 *
 *   func.func @k(...) attributes {tile.kernel, tile.grid = {
 *     raster = array<i32: 0, 1, 2>, group = 16 : i32,    // rows, columns and slices of raster.h
 *     schedule = "static",                               // which of the numbers in that raster a block takes
 *     cluster_axis = 0 : i32}}                           // two neighbours along it are a cluster
 *
 * Schedules (schedule.h has what becomes of them):
 *
 *   launch       a block has its own number: the grid that the launcher starts is the program's
 *   static       persistent: few blocks, each of which takes every so many-th number
 *   serpentine   the same, every second round backwards; the longest first, by `work_axis`
 *   dynamic      persistent: the next number when it is done with one; the longest first, if there is a `work_axis`
 *
 * `hoist_axis`: neighbours along it have work in common, which is done once for several (hoist_common.h).
 * `work_axis`: the work of a block grows along it, if `work_grows`, or else falls. */
#ifndef TILEWRIGHT_LOWERING_GPU_GRID_GRID_PLAN_H
#define TILEWRIGHT_LOWERING_GPU_GRID_GRID_PLAN_H

#include "lowering/gpu/grid/raster.h"

#define TW_GRID "tile.grid"

typedef enum tw_schedule {
  TW_SCHEDULE_LAUNCH,
  TW_SCHEDULE_STATIC,
  TW_SCHEDULE_SERPENTINE,
  TW_SCHEDULE_DYNAMIC
} tw_schedule_t;

typedef struct tw_grid_plan {
  tw_raster_t raster;
  tw_schedule_t schedule;
  int cluster_axis, hoist_axis, work_axis; /* of the grid; -1: none */
  bool work_grows;
} tw_grid_plan_t;

void tw_grid_plan_write(MlirOperation func, const tw_grid_plan_t *plan);
/* False where the function has none. What it says is checked by the dialect. */
bool tw_grid_plan_read(MlirOperation func, tw_grid_plan_t *plan);

#endif /* TILEWRIGHT_LOWERING_GPU_GRID_GRID_PLAN_H */
