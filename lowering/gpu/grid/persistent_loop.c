/* persistent_loop.c - tile-persistent-loop: builds the grid that tile-plan-grid has decided
 *
 * Before, a block of the grid is a block of threads, and the hardware starts them with axis 0 first; the function has a
 * plan (grid_plan.h), or stays as it is:
 *
 *   func.func @k(%A: ..., %C: ...) attributes {tile.grid = {raster = ..., schedule = "static"}} {
 *     %i = tile.block_id 0
 *     %j = tile.block_id 1
 *     ... tile.num_blocks 0 ... a loop with a product ...
 *     tile.store %t, %C[%i, %j]
 *   }
 *
 * After, with the schedule "launch", the position comes from the block's number (raster.h):
 *
 *     %v = block_id 0 + num_blocks 0 * (block_id 1 + num_blocks 1 * block_id 2)
 *     %i, %j = position number %v in the raster
 *
 * Where that is axis 1 first, the launcher exchanges the axes for the division, if axis 0 is not too long for it:
 *
 *     %exchanged = num_blocks 0 <= 65535
 *     %i = %exchanged ? block_id 1 : block_id 0
 *     %j = %exchanged ? block_id 0 : block_id 1
 *
 * With any other the kernel is persistent. The grid that the launcher starts is smaller than the program's (the launch
 * record says so: persistent), whose extents are three more arguments:
 *
 *   func.func @k(%A: ..., %C: ..., %x: i32, %y: i32, %z: i32) {
 *     %first = tile.block_id 0
 *     %step = tile.num_blocks 0
 *     scf.for %v = %first to %x * %y * %z step %step {
 *       %i, %j = position number %v of the schedule (schedule.h)
 *       ... %x ... a loop with a product ...
 *       tile.store %t, %C[%i, %j]
 *     } {tile.persistent}
 *
 * A dynamic schedule is the mark tile.dynamic_schedule on this loop: a block takes the next number when it is done with
 * one (roles/dynamic_scheduler.c). In clusters of two neighbours along an axis:
 *
 *     scf.for %v = %first / 2 to (blocks of the grid, halved along axis 0) step %step / 2 {
 *       %i, %j = position of the cluster %v, the second block one further along axis 0
 *       ...
 *       tile.store %t, %C[%i < %x ? %i : (beyond every array), %j]
 *     } {tile.persistent}
 *
 * What must hold: a plan names the axes of a grid. */
#include "lowering/gpu/facts/block_axes.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/grid/cluster_multicast.h"
#include "lowering/gpu/grid/grid_plan.h"
#include "lowering/gpu/grid/hoist_common.h"
#include "lowering/gpu/grid/raster.h"
#include "lowering/gpu/grid/schedule.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"
#include "lowering/passes.h"

typedef struct {
  MlirOperation func;
  tw_grid_plan_t plan;
  tw_ops_t ids;                    /* owned */
  tw_block_axes_t axes;            /* of the ops that the program has */
  MlirOperation first, end;        /* those that go into the loop */
  int64_t cluster;                 /* blocks that take a number together */
  MlirValue extents[TW_GRID_AXES]; /* of the program's grid */
  MlirValue walked[TW_GRID_AXES];  /* ... counted in clusters, or in what is done at once */
  MlirValue id;                    /* of the block that the hardware starts */
  tw_strips_t strips;
  tw_schedule_code_t schedule;
} grid_t;

static MlirValue binary(const tw_builder_t *at, const char *name, MlirValue x, MlirValue y) {
  return tw_binary(at, name, tw_i32(at->context), x, y);
}

static MlirValue constant(const tw_builder_t *at, int64_t value) {
  return tw_const_int(at, tw_i32(at->context), value);
}

static MlirValue divided(const tw_builder_t *at, MlirValue x, int64_t y) {
  return y == 1 ? x : binary(at, "arith.divui", x, constant(at, y));
}

/* What is counted in clusters is half as long, rounded up; a group of rows is as high as before. */
static void count_clusters(const tw_builder_t *at, grid_t *g) {
  tw_raster_t *raster = &g->plan.raster;
  int paired = g->plan.cluster_axis;
  for (int axis = 0; axis < TW_GRID_AXES; axis++)
    g->walked[axis] =
        axis == paired ? divided(at, binary(at, "arith.addi", g->extents[axis], constant(at, 1)), TW_MULTICAST_BLOCKS)
                       : g->extents[axis];
  if (paired == raster->rows && raster->group > 1)
    raster->group /= TW_MULTICAST_BLOCKS;
}

static void count_strips(const tw_builder_t *at, grid_t *g) {
  int axis = g->plan.hoist_axis;
  if (axis < 0)
    return;
  g->strips = tw_strips_of(at, axis, g->extents);
  g->walked[axis] = tw_strips_count(at, &g->strips, g->extents[axis]);
}

/* The loop over the numbers that a block takes; returns its body, which is empty. */
static MlirBlock build_loop(const tw_builder_t *at, grid_t *g) {
  MlirType i32 = tw_i32(at->context);
  g->id = tw_grid_op(at, "tile.block_id", 0);
  MlirValue bounds[] = {divided(at, g->id, g->cluster), g->schedule.total,
                        divided(at, tw_grid_op(at, "tile.num_blocks", 0), g->cluster)};
  tw_schedule_set_step(at, &g->schedule, bounds[2]);
  MlirBlock body = mlirBlockCreate(1, &i32, &at->location);
  MlirOperation loop = tw_build_for(at, TW_FOR_INITS, bounds, tw_region_with(body));
  tw_set_attr(loop, TW_PERSISTENT, mlirUnitAttrGet(at->context));
  if (g->plan.schedule == TW_SCHEDULE_DYNAMIC)
    tw_set_attr(loop, TW_DYNAMIC_SCHEDULE, mlirUnitAttrGet(at->context));
  return body;
}

/* The second block of a cluster is one further than the first. */
static MlirValue place_in_cluster(const tw_builder_t *at, const grid_t *g, MlirValue cluster) {
  MlirValue second = binary(at, "arith.andi", g->id, constant(at, TW_MULTICAST_BLOCKS - 1));
  return binary(at, "arith.addi", binary(at, "arith.muli", cluster, constant(at, TW_MULTICAST_BLOCKS)), second);
}

static void move_ops(const grid_t *g, MlirBlock body) {
  for (MlirOperation op = g->first, next; !mlirOperationEqual(op, g->end); op = next) {
    next = mlirOperationGetNextInBlock(op);
    mlirOperationRemoveFromParent(op);
    mlirBlockAppendOwnedOperation(body, op);
  }
}

static void fill_loop(grid_t *g, MlirBlock body, MlirLocation location) {
  int paired = g->plan.cluster_axis, hoisted = g->plan.hoist_axis;
  MlirValue position[TW_GRID_AXES];
  tw_builder_t in = tw_build_at_end(body, location);
  tw_schedule_position(&in, &g->schedule, mlirBlockGetArgument(body, 0), position);
  if (paired >= 0)
    position[paired] = place_in_cluster(&in, g, position[paired]);
  if (hoisted >= 0)
    position[hoisted] =
        tw_strips_move(&g->strips, &g->axes, body, g->first, g->end, position[hoisted], g->extents[hoisted]);
  else
    move_ops(g, body);
  if (paired >= 0)
    tw_multicast_guard_stores(body, position[paired], g->extents[paired]);
  tw_build(&in, "scf.yield", (tw_op_parts_t){0});
  tw_grid_replace_ids(&g->ids, position, g->extents);
}

/* Everything in the function but its return goes into the loop. */
static void make_persistent(grid_t *g) {
  MlirBlock block = tw_region_block(g->func, 0);
  g->axes = tw_block_axes_of(g->func);
  tw_add_grid_extents(g->func, g->extents);
  g->first = mlirBlockGetFirstOperation(block);
  g->end = mlirBlockGetTerminator(block);
  g->cluster = g->plan.cluster_axis < 0 ? 1 : TW_MULTICAST_BLOCKS;
  tw_builder_t at = tw_build_before(g->first);
  at.location = mlirOperationGetLocation(g->func);
  count_clusters(&at, g);
  count_strips(&at, g);
  g->schedule = tw_schedule_prepare(&at, &g->plan, g->extents, g->walked);
  fill_loop(g, build_loop(&at, g), at.location);
  tw_block_axes_free(&g->axes);
  tw_launch_set_persistent(g->func, true);
  if (g->cluster > 1)
    tw_launch_set_cluster_blocks(g->func, (uint32_t)g->cluster);
}

/* Whether the order is that of axis 1 before axis 0. A cluster lies along the axis that is started first. */
static bool exchanges_axes(const grid_t *g) {
  const tw_raster_t *raster = &g->plan.raster;
  return raster->group == 0 && raster->rows == 1 && raster->columns == 0 && tw_launch_cluster_blocks(g->func, 1) <= 1;
}

bool tw_run_persistent_loop(MlirOperation func) {
  grid_t g = {.func = func};
  if (!tw_grid_plan_read(func, &g.plan))
    return true;
  g.ids = tw_grid_ids_in(func);
  if (g.plan.schedule == TW_SCHEDULE_LAUNCH && exchanges_axes(&g))
    tw_grid_exchange(func, &g.ids);
  else if (g.plan.schedule == TW_SCHEDULE_LAUNCH)
    tw_grid_reorder(func, &g.ids, &g.plan.raster);
  else
    make_persistent(&g);
  tw_ops_free(&g.ids);
  return true;
}
