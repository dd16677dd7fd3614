/* plan_grid.c - tile-plan-grid: decides which block computes which tiles, and in which order
 *
 * Before:
 *
 *   func.func @k(%A: ..., %C: ...) attributes {tile.kernel} {
 *     %i = tile.block_id 0
 *     %j = tile.block_id 1
 *     ... a loop with a product ...
 *     tile.store %t, %C[%i, %j]
 *   }
 *
 * After, the decision stands on the function (grid_plan.h), and on the loads that a cluster shares:
 *
 *   func.func @k(%A: ..., %C: ...) attributes {tile.kernel,
 *       tile.grid = {raster = array<i32: 0, 1, 2>, group = 16 : i32, schedule = "static", cluster_axis = 0 : i32}} {
 *     ... tile.load %B[%k, %j] {tile.multicast} ...
 *
 * A kernel without the attribute keeps the grid as the hardware runs it. tile-persistent-loop builds what is decided
 * here. The parts of the decision: the raster in which the loop's loads find most in the L2 cache (raster.h); a
 * schedule; two neighbours along an axis as a cluster, each of which brings half of a tile to both, where this pays
 * (cluster_multicast.h); what neighbours have in common done once for several (hoist_common.h).
 *
 * Runs after tile-select-mma and before layouts. Kernels whose products warpgroups compute in a loop become
 * persistent, and only if a producer warp can bring what products wait for, ahead of everything else: a
 * loop that writes to an array which it may read has to wait with it. There a block's
 * next tiles arrive while it finishes the last ones, and positions are computed by one thread, not in
 * the addresses of all. Blocks may run in any order, which a tile program has to expect; still, those
 * that print or stop with a message keep the order that a reader expects, and those that wait for
 * memory to change keep the hardware's.
 *
 * Where all blocks have the same work the schedule is static. Where the work changes with the position it is dynamic,
 * the longest first where one axis tells the work. The hint `dynamic_schedule` decides otherwise: 1, and blocks of any
 * kernel take numbers; 0, and the schedule is serpentine, or, where the longest are not known, the hardware's. So it is
 * by default for blocks for which a producer gathers. docs/design/measurements.md compares the three schedules.
 *
 * A program that loops over tiles itself keeps its grid, and its loop becomes the persistent one (adopt_loop.h).
 *
 * A kernel that others launch (hint `exported`) keeps the grid: nobody would give it the words for another one.
 *
 * Kernels without products, which only move memory, run first along the axis of the grid along which they store side by
 * side, if that is axis 1. Of a transpose either loads or stores lie side by side, and it is the stores that count. */
#include "lowering/aliasing.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/block_axes.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/facts/same_tile.h"
#include "lowering/gpu/grid/adopt_loop.h"
#include "lowering/gpu/grid/block_work.h"
#include "lowering/gpu/grid/cluster_multicast.h"
#include "lowering/gpu/grid/grid_plan.h"
#include "lowering/gpu/grid/hoist_common.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/loops.h"
#include "lowering/passes.h"

typedef struct {
  MlirOperation func;
  int64_t num_warps;
  tw_block_axes_t axes;
  tw_block_work_t work;
  bool async;              /* a loop has a product that runs by itself */
  const char *not_brought; /* why the accelerator cannot bring a load of a loop; null if it can bring all */
  bool writes;             /* a loop with such a product writes to an array that the kernel may read, too */
  bool in_order;           /* the order of the blocks can be seen */
  bool gathers;            /* for a product, which takes a producer of four warps */
} kernel_t;

/* ---- what the kernel is ------------------------------------------------------------------------ */

/* A load that decides whether an scf.while goes on. */
static bool waits_for_memory(MlirOperation op) {
  MlirOperation loop = tw_enclosing_loop(op);
  if (mlirOperationIsNull(loop) || !tw_op_is(loop, TW_SCF_WHILE))
    return false;
  MlirBlock before = tw_region_block(loop, 0);
  return mlirBlockEqual(mlirOperationGetBlock(op), before);
}

static bool shows_order(MlirOperation op) {
  return tw_op_has(op, TW_ORDERS_ALL) || (tw_op_loads(op) && waits_for_memory(op));
}

static const char *why_not_brought(MlirOperation load, int64_t num_warps) {
  if (tw_op_gathers(load))
    return tw_gathers_beside(num_warps) ? NULL : "few warps compute on what a load in a loop gathers";
  return tw_engine_refusal(load);
}

/* The loads that a product waits for. Others go through registers, wherever blocks are. */
static void look_behind(kernel_t *k, MlirOperation mma) {
  for (int i = 0; i < 2; i++) {
    tw_ops_t loads = tw_loads_behind(mma, i);
    MlirOperation plain = tw_load_behind(mlirOperationGetOperand(mma, i));
    if (!mlirOperationIsNull(plain) && !mlirOperationIsNull(tw_enclosing_loop(plain)))
      tw_ops_add(&loads, plain);
    for (int l = 0; l < loads.count; l++)
      k->gathers |= tw_op_gathers(loads.at[l]);
    for (int l = 0; l < loads.count && k->not_brought == NULL; l++)
      k->not_brought = why_not_brought(loads.at[l], k->num_warps);
    tw_ops_free(&loads);
  }
}

static bool is_async(MlirOperation op) { return tw_op_is_product(op) && tw_is_async_mma(op); }

/* Whether a loop around the op has a product that runs by itself. */
static bool is_beside_product(MlirOperation op) {
  bool found = false;
  for (MlirOperation loop = tw_enclosing_loop(op); !found && !mlirOperationIsNull(loop); loop = tw_enclosing_loop(loop))
    found = tw_has_op_like(loop, is_async);
  return found;
}

static bool may_read(MlirOperation op, const void *user) {
  MlirOperation write = *(const MlirOperation *)user;
  intptr_t first;
  if (!tw_op_loads(op))
    return false;
  MlirValue read = mlirOperationGetOperand(op, 0), written = tw_access_array(write, &first);
  bool in_place = mlirValueEqual(read, written) && tw_reads_before(op, write, tw_null_op());
  return !in_place && !tw_may_be_disjoint(read, written);
}

/* Whether the kernel may load from the array that the op writes to, but for each tile before it is written. */
static bool may_be_read(MlirOperation func, MlirOperation write) {
  return !mlirOperationIsNull(tw_find_op(func, may_read, &write));
}

static MlirWalkResult look(MlirOperation op, void *user) {
  kernel_t *k = user;
  bool looped = !mlirOperationIsNull(tw_enclosing_loop(op));
  k->async |= looped && is_async(op);
  if (looped && tw_op_is_product(op))
    look_behind(k, op);
  if (tw_stores_to_array(op))
    k->writes |= is_beside_product(op) && may_be_read(k->func, op);
  k->in_order |= shows_order(op);
  return MlirWalkResultAdvance;
}

/* ---- the decision ------------------------------------------------------------------------------ */

static const tw_grid_plan_t as_launched = {.raster = {.rows = 0, .columns = 1, .slices = 2},
                                           .schedule = TW_SCHEDULE_LAUNCH,
                                           .cluster_axis = -1,
                                           .hoist_axis = -1,
                                           .work_axis = -1};

/* One axis tells the work: the longest first. */
static tw_grid_plan_t plan_longest_first(const kernel_t *k, int axis, bool dynamic) {
  tw_grid_plan_t plan = as_launched;
  plan.schedule = dynamic ? TW_SCHEDULE_DYNAMIC : TW_SCHEDULE_SERPENTINE;
  plan.work_axis = axis;
  plan.work_grows = k->work.grows;
  tw_op_remark(k->func, "is persistent: one wave of blocks%s, the longest loops first",
               dynamic ? ", each fetches its next tile when it finishes one" : " in a serpentine schedule");
  return plan;
}

static void plan_static(const kernel_t *k, tw_grid_plan_t *plan) {
  plan->schedule = TW_SCHEDULE_STATIC;
  plan->cluster_axis = tw_multicast_choose(k->func, &k->axes, &plan->raster);
  if (plan->cluster_axis < 0)
    plan->hoist_axis = tw_strips_axis(k->func, &k->axes, &plan->raster);
  if (plan->hoist_axis >= 0)
    tw_op_remark(k->func, "hoists work that up to 8 neighbouring blocks share (grid axis %d)", plan->hoist_axis);
  tw_op_remark(k->func, "is persistent: one wave of blocks loops over the tiles of the grid");
}

static tw_grid_plan_t plan_by_loads(const kernel_t *k, bool dynamic) {
  tw_gpu_target_t target = tw_gpu_target_of(k->func);
  tw_grid_plan_t plan = as_launched;
  plan.raster = tw_raster_choose(k->func, &k->axes, target.machine->multiprocessors);
  if (plan.raster.group)
    tw_op_remark(k->func, "runs its blocks in groups of %lld along axis %d, then along axis %d of the grid",
                 (long long)plan.raster.group, plan.raster.rows, plan.raster.columns);
  if (dynamic) {
    plan.schedule = TW_SCHEDULE_DYNAMIC;
    tw_op_remark(k->func, "is persistent: one wave of blocks, each fetches its next tile when it finishes one");
  } else if (k->work.axes == 0) {
    plan_static(k, &plan);
  } else {
    tw_op_remark(k->func, "is not persistent: how much a block computes depends on its position");
  }
  return plan;
}

/* The grid's own order, which the hardware has, needs no plan. */
static void write(const kernel_t *k, const tw_grid_plan_t *plan) {
  bool own = plan->raster.rows == 0 && plan->raster.columns == 1 && plan->raster.group == 0;
  if (plan->schedule != TW_SCHEDULE_LAUNCH || !own)
    tw_grid_plan_write(k->func, plan);
}

static void decide(kernel_t *k) {
  if (k->in_order) {
    tw_op_remark(k->func, "keeps the order of the grid, which is observable: it prints, asserts or waits");
  } else if (k->writes) {
    tw_op_remark(k->func,
                 "keeps the order of the grid: a loop writes to an array that the kernel may load from, so nothing is "
                 "brought ahead of it");
  } else if (k->not_brought) {
    tw_op_remark(k->func, "keeps the order of the grid: %s", k->not_brought);
  } else if (!tw_adopt_loop(k->func)) {
    int axis = tw_block_work_axis(&k->work);
    bool dynamic = tw_hint_dynamic_schedule(k->func, k->work.axes != 0 && !k->gathers);
    tw_grid_plan_t plan = axis >= 0 ? plan_longest_first(k, axis, dynamic) : plan_by_loads(k, dynamic);
    write(k, &plan);
  }
}

/* ---- kernels that move memory ------------------------------------------------------------------ */

typedef struct {
  const tw_block_axes_t *axes;
  bool stores, other; /* tiles that lie side by side along axis 1 alone, or anything else */
} moves_t;

static MlirWalkResult look_at_move(MlirOperation op, void *user) {
  enum { AXIS_1 = 2 };
  moves_t *m = user;
  m->other |= tw_op_is_product(op) || tw_op_scatters(op);
  if (!tw_op_stores_tile(op))
    return MlirWalkResultAdvance;
  intptr_t first;
  int64_t order[TW_LAYOUT_MAX_RANK];
  MlirValue array = tw_access_array(op, &first);
  int rank = (int)mlirShapedTypeGetRank(mlirValueGetType(array)), inner = tw_access_contiguous_dim(op, rank);
  tw_access_order(op, rank, order);
  m->stores = true;
  m->other |= inner < 0 || tw_block_axes_get(m->axes, mlirOperationGetOperand(op, first + order[inner])) != AXIS_1;
  return MlirWalkResultAdvance;
}

static void follow_stores(kernel_t *k) {
  tw_grid_plan_t plan = as_launched;
  moves_t m = {.axes = &k->axes};
  mlirOperationWalk(k->func, look_at_move, &m, MlirWalkPreOrder);
  if (!m.stores || m.other || k->in_order)
    return;
  tw_op_remark(k->func, "runs its blocks along axis 1 of the grid first: there they store side by side");
  plan.raster.rows = 1;
  plan.raster.columns = 0;
  write(k, &plan);
}

bool tw_run_plan_grid(MlirOperation func) {
  kernel_t k = {.func = func};
  if (!tw_is_of_tiles(func) || tw_has_hint_exported(func))
    return true;
  k.num_warps = tw_num_warps(func, 0);
  k.axes = tw_block_axes_of(func);
  k.work = tw_block_work_of(func, &k.axes);
  mlirOperationWalk(func, look, &k, MlirWalkPreOrder);
  if (k.async)
    decide(&k);
  else
    follow_stores(&k);
  tw_block_axes_free(&k.axes);
  return true;
}
