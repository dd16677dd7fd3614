/* coarsen_tiles.c - tile-resize-tiles: a block computes the tiles of several neighbours
 *
 * Before:
 *
 *     %i = tile.block_id 0
 *     %j = tile.block_id 1
 *     %d = scf.for ... iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
 *       %a = tile.load %A[%i, %k] -> tensor<64x64xbf16>
 *       %b = tile.load %B[%k, %j] -> tensor<64x64xbf16>
 *       %s = tile.mma %a, %b, %acc
 *     }
 *     tile.store %d, %C[%i, %j]
 *
 * After, with two blocks in one along axis 0 and four along axis 1, as if the program had been written with tiles of
 * 128x256:
 *
 *       %a = tile.load %A[%i, %k] -> tensor<128x64xbf16>
 *       %b = tile.load %B[%k, %j] -> tensor<64x256xbf16>
 *     tile.store %d, %C[%i, %j]
 *
 * The launcher divides the grid, rounding up (grid_scale, where minus four is four blocks in one). Neighbours load
 * the same tiles of what does not depend on their position, so that a product of small tiles waits for the L2 cache.
 *
 * What must hold: a loop with products; the position along the axis is nothing but the index of one class of dimensions
 * (dim_classes.h), whose elements are independent, in everything that is loaded, and in all that is stored; and
 * no iota counts along it. The largest tile is that of which eight warps can hold the sums, and beside them what no
 * copy brings: elements of rows that begin at odd places, which go through registers one by one.
 *
 * An operand that is computed from loads, or written for the product, is so by each of the neighbours: tiles grow along
 * the axis that leaves it as it is, if they can.
 *
 * Rows that begin within lines of the cache count twice there, so that larger tiles pay sooner; but not in the last
 * turn of a launch, where few multiprocessors load. What a tile computes and moves beside the loop, as an activation,
 * is hidden by other tiles' products but for the last one's, which is longer in larger tiles.
 *
 * Whether tiles are coarsened is decided at each launch (runtime/resize_tiles.c), as it is whether they are sliced; the
 * record says what it takes (`coarsen`): the number of iterations; for 1, 2, 4 ... blocks how many along each axis, and
 * the cycles and bytes of an iteration; and those beside it. Coarsened blocks must not store what no block of the
 * program would have: where the grid is no multiple, it must be all of each array that is stored. So the rest are axis,
 * word of the extent, and tile of each. The kernel is compiled again with the hint `coarsen_tiles`, the number of
 * blocks; 1: none. */
#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/block_axes.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/grid/dim_classes.h"
#include "lowering/gpu/grid/raster.h"
#include "lowering/gpu/grid/resize_tiles.h"
#include "lowering/gpu/grid/step_cost.h"
#include "lowering/gpu/grid/tile_plans.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/gpu/machine/copy_engine.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/launch_record.h"

enum { MAX_STORES = 8, THREADS = 256 }; /* of the largest block */

typedef struct {
  MlirOperation func, loop;
  tw_block_axes_t axes;
  tw_dims_t dims;
  int64_t warps;
  bool computes;           /* threads compute operands of the loop's products */
  int64_t steps;           /* in which an iteration's k will be done */
  int class[TW_GRID_AXES]; /* that the position along the axis is the index of; -1: none, or it is used otherwise */
  tw_plans_t plans;        /* an axis is a way to coarsen */
} coarsener_t;

/* ---- what can be coarsened --------------------------------------------------------------------- */

static bool is_position(MlirValue value, int axis) {
  MlirOperation op = tw_def(value);
  return !mlirOperationIsNull(op) && tw_op_is(op, TW_TILE_BLOCK_ID) && tw_attr_int(op, "axis", 0) == axis;
}

/* The class that a use of a position as an index is along; -1 for another use. */
static int class_of_use(coarsener_t *f, MlirOpOperand use) {
  MlirOperation user = mlirOpOperandGetOwner(use);
  if (!tw_op_loads_tile(user) && !tw_op_stores_tile(user))
    return -1;
  MlirValue tile = tw_moved_tile(user);
  int dim = (int)mlirOpOperandGetOperandNumber(use) - 1;
  return dim < 0 || dim >= tw_rank(mlirValueGetType(tile)) ? -1 : tw_dims_class(&f->dims, tile, dim);
}

/* Whether every access that has the class has it at the position. */
static bool all_at_position(coarsener_t *f, const tw_ops_t *accesses, int axis) {
  for (int i = 0; i < accesses->count; i++) {
    MlirOperation access = accesses->at[i];
    intptr_t index = tw_dims_index(&f->dims, access, f->class[axis]);
    if (index >= 0 ? !is_position(mlirOperationGetOperand(access, index), axis)
                   : tw_dims_find(&f->dims, tw_moved_tile(access), f->class[axis]) >= 0)
      return false;
  }
  return true;
}

static bool can_coarsen(coarsener_t *f, int axis, const tw_ops_t *ids) {
  enum { UNKNOWN = -1 };
  f->class[axis] = UNKNOWN;
  for (int i = 0; i < ids->count; i++) {
    if (tw_attr_int(ids->at[i], "axis", 0) != axis)
      continue;
    if (tw_op_is(ids->at[i], TW_TILE_NUM_BLOCKS))
      return false;
    TW_EACH_USE(use, mlirOperationGetResult(ids->at[i], 0)) {
      int class = class_of_use(f, use);
      if (class < 0 || (f->class[axis] != UNKNOWN && class != f->class[axis]))
        return false;
      f->class[axis] = class;
    }
  }
  int class = f->class[axis];
  return class >= 0 && f->dims.at[class].whole == NULL && !tw_dims_count(&f->dims, class) &&
         tw_dims_are_written(&f->dims, class) && all_at_position(f, &f->dims.reads, axis) &&
         all_at_position(f, &f->dims.writes, axis);
}

static const char *find_classes(coarsener_t *f) {
  bool any = false;
  if (tw_has_hint_num_warps(f->func) || tw_has_hint_num_stages(f->func) || tw_has_hint_occupancy(f->func))
    return "num_warps, num_stages or occupancy is for the tile that it has";
  if (f->dims.refused)
    return f->dims.refused;
  if (!tw_op_is(f->loop, TW_SCF_FOR) || !tw_has_op_like(f->loop, tw_op_is_product))
    return "it has no loop with products";
  if (f->dims.writes.count > MAX_STORES)
    return "it has too many stores";
  tw_ops_t ids = tw_grid_ids_in(f->func);
  for (int axis = 0; axis < TW_GRID_AXES; axis++) {
    if (!can_coarsen(f, axis, &ids))
      f->class[axis] = -1;
    any |= f->class[axis] >= 0;
  }
  tw_ops_free(&ids);
  return any ? NULL : "a block's index is more than the position of its tiles, or their elements depend on each other";
}

/* ---- what it costs ----------------------------------------------------------------------------- */

typedef struct {
  coarsener_t *coarsener;
  tw_plan_t *plan;
  int64_t flop_cycles, computed;      /* elements that threads compute */
  int64_t sums, pieces;               /* registers of sums; pieces too small for a copy, a register each */
  bool splits;                        /* lines that are loaded begin within those of the cache */
  int64_t lines, alike[TW_GRID_AXES]; /* of the cache, that a step touches; that neighbours along an axis touch, too */
} coarsen_cost_t;

/* How many times as many elements the tile has. */
static int64_t growth(coarsen_cost_t *cost, MlirValue tile) {
  int64_t times = 1;
  for (int axis = 0; axis < TW_GRID_AXES; axis++)
    if (cost->coarsener->class[axis] >= 0 &&
        tw_dims_find(&cost->coarsener->dims, tile, cost->coarsener->class[axis]) >= 0)
      times <<= cost->plan->log[axis];
  return times;
}

static void add_lines(coarsen_cost_t *cost, MlirOperation load, int64_t bytes) {
  bool splits = tw_access_splits_lines(load);
  int64_t lines = bytes / TW_LINE_BYTES * (splits ? 2 : 1);
  cost->splits |= splits;
  cost->lines += lines;
  for (int axis = 0; axis < TW_GRID_AXES; axis++)
    cost->alike[axis] += tw_block_axes_of_load(&cost->coarsener->axes, load) >> axis & 1 ? 0 : lines;
}

/* What the cache takes for lines that lie across two of its own, if neighbours share what they can
 * (cluster_multicast.h): it is this that limits products of small tiles then. */
static int64_t line_cycles(const coarsen_cost_t *cost) {
  int64_t most = 0;
  for (int axis = 0; axis < TW_GRID_AXES; axis++)
    if (cost->coarsener->class[axis] >= 0 && cost->alike[axis] > most)
      most = cost->alike[axis];
  int64_t lines = cost->lines - (tw_hint_num_ctas(cost->coarsener->func, 0) == 1 ? 0 : most / TW_MULTICAST_BLOCKS);
  return cost->splits ? lines * TW_LINE_BYTES / tw_gpu_target_of(cost->coarsener->func).machine->l2_line_bytes : 0;
}

/* Elements of a right operand that threads write for the product, which waits for that. */
static int64_t written_elements(coarsen_cost_t *cost, MlirOperation mma) {
  const tw_async_mma_t *async = tw_async_mma_of(mma);
  MlirValue rhs = mlirOperationGetOperand(mma, 1);
  bool transposed, written = async != NULL && tw_rank(mlirValueGetType(rhs)) == 2 &&
                             async->place(mma, 1, &transposed) == TW_PLACE_WRITTEN;
  return written ? tw_count(mlirValueGetType(rhs)) * growth(cost, rhs) : 0;
}

static MlirWalkResult add_cost(MlirOperation op, void *user) {
  coarsen_cost_t *cost = user;
  if (mlirOperationGetNumResults(op) == 0)
    return MlirWalkResultAdvance;
  MlirValue tile = mlirOperationGetResult(op, 0);
  cost->computed += tw_computed_elements(op) * growth(cost, tile);
  int64_t bits = tw_count(mlirValueGetType(tile)) * tw_memory_bits(tw_element(mlirValueGetType(tile)));
  if (tw_op_is_product(op)) {
    cost->flop_cycles += tw_mma_cycles(op) * growth(cost, tile);
    cost->computed += written_elements(cost, op);
    cost->plan->sum_bits += bits * growth(cost, tile);
    cost->sums += tw_is_mma_continued(op) ? 0 : tw_mma_sum_words(op) * growth(cost, tile);
  } else if (tw_op_loads(op)) {
    cost->plan->bytes += bits / 8 * growth(cost, tile);
    add_lines(cost, op, bits / 8 * growth(cost, tile));
    cost->pieces += tw_op_loads_tile(op) ? tw_access_small_pieces(op) * growth(cost, tile) : 0;
  }
  return MlirWalkResultAdvance;
}

/* Whether registers hold the sums of the products, and all small pieces of an iteration, which else wait for memory a
 * few at a time. */
static bool holds_pieces(const coarsen_cost_t *cost) {
  int64_t most = (int64_t)THREADS * tw_mma_budget_with_pieces(cost->coarsener->func);
  return cost->pieces == 0 || cost->sums + cost->pieces <= most;
}

typedef struct {
  MlirOperation loop;
  int64_t lanes, bytes; /* elements, a function's as often as it takes longer; what is loaded and stored */
} beside_loop_t;

static MlirWalkResult add_beside(MlirOperation op, void *user) {
  enum { FUNCTION = 8 }; /* there is one unit for functions to so many of others */
  beside_loop_t *beside = user;
  if (mlirOperationEqual(op, beside->loop))
    return MlirWalkResultSkip;
  if (tw_op_class(op) != TW_CLASS_CAST) /* which goes with a move */
    beside->lanes += tw_computed_elements(op) * (tw_op_class(op) == TW_CLASS_FUNCTION ? FUNCTION : 1);
  if (tw_op_loads_tile(op) || tw_op_stores_tile(op)) {
    MlirType tile = mlirValueGetType(tw_moved_tile(op));
    beside->bytes += tw_count(tile) * tw_memory_bits(tw_element(tile)) / 8;
  }
  return MlirWalkResultAdvance;
}

/* Cycles of a multiprocessor for what a tile computes, loads and stores in front of the loop and behind it, as an
 * activation: nothing hides those of its last one, and those of a coarsened tile are as many times more. Of 192 tiles
 * of 1000x3000x1096 with gelu and a residual, two in one took 28.9 us for 28.1, and of 576 without them 96.9 for 101.8
 * (NVIDIA H200, 2026-11-28). */
static int64_t cycles_beside(const coarsener_t *f) {
  beside_loop_t beside = {.loop = f->loop};
  mlirOperationWalk(f->func, add_beside, &beside, MlirWalkPreOrder);
  return beside.lanes / (TW_SCHEDULERS * TW_WARP_LANES) +
         beside.bytes / tw_gpu_target_of(f->func).machine->l2_bytes_alone;
}

/* A loop that does nothing but a product of tiles that the copy engine brings has an iteration for each line of k in
 * the end, where tiles are large (tile-plan-block). */
static int64_t steps_of(MlirOperation loop) {
  tw_ops_t products = tw_ops_in(loop, tw_op_is_product, MlirWalkPreOrder);
  int64_t steps = 1;
  if (products.count == 1 && mlirOperationGetNumResults(loop) == 1) {
    MlirType lhs = mlirValueGetType(mlirOperationGetOperand(products.at[0], 0));
    steps = tw_extent(lhs, tw_rank(lhs) - 1) * tw_memory_bits(tw_element(lhs)) / 8 / TW_LINE_BYTES;
    for (int i = 0; i < 2; i++) {
      MlirOperation load = tw_load_behind(mlirOperationGetOperand(products.at[0], i));
      steps = mlirOperationIsNull(load) || !tw_engine_brings(load) ? 1 : steps;
    }
  }
  tw_ops_free(&products);
  return steps > 1 ? steps : 1;
}

/* A block has to have room for what it computes. */
static bool weigh(void *user, const tw_plan_t *from, int axis, tw_plan_t *plan) {
  enum { MOST_BYTES = 1 << 16 }; /* of what a step may load: a third of shared memory */
  coarsener_t *f = user;
  (void)from;
  if (axis >= 0 && f->class[axis] < 0)
    return false;
  coarsen_cost_t cost = {.coarsener = f, .plan = plan};
  plan->bytes = plan->sum_bits = 0;
  mlirOperationWalk(f->loop, add_cost, &cost, MlirWalkPreOrder);
  int64_t lines = line_cycles(&cost);
  plan->computing = f->computes ? tw_computing_cycles(f->func, cost.computed, f->warps) : 0;
  plan->alone = tw_step_cycles(f->func, cost.flop_cycles, plan->bytes) + plan->computing;
  plan->cycles =
      tw_step_cycles(f->func, lines > cost.flop_cycles ? lines : cost.flop_cycles, plan->bytes) + plan->computing;
  int64_t most = (int64_t)THREADS * TW_REGISTER_BITS * tw_register_budget(f->func, TW_BUDGET_COARSE_SUMS);
  return plan->sum_bits <= most && plan->bytes / f->steps <= MOST_BYTES && holds_pieces(&cost);
}

/* ---- the decision ------------------------------------------------------------------------------ */

/* False where the launcher could not tell whether a grid is all of an array. */
static bool record_launch(coarsener_t *f) {
  tw_coarsening_t facts = {.loop = tw_steps_or_guess(f->func, f->loop), .num_plans = (uint32_t)f->plans.count};
  facts.beside = cycles_beside(f);
  for (int p = 0; p < f->plans.count; p++) {
    const tw_plan_t *plan = &f->plans.at[p];
    facts.plans[p] = (tw_coarsen_plan_t){.cycles = plan->cycles, .alone = plan->alone, .bytes = plan->bytes};
    for (int axis = 0; axis < TW_GRID_AXES; axis++)
      facts.plans[p].blocks[axis] = INT64_C(1) << plan->log[axis];
  }
  for (int axis = 0; axis < TW_GRID_AXES; axis++)
    for (int i = 0; f->class[axis] >= 0 && i < f->dims.writes.count; i++) {
      intptr_t first;
      int64_t extent;
      MlirValue array = tw_access_array(f->dims.writes.at[i], &first);
      if (!mlirValueIsABlockArgument(array))
        return false;
      int dim = tw_dims_axis(&f->dims, f->dims.writes.at[i], f->class[axis], &extent);
      facts.stores[facts.num_stores++] = (tw_coarsen_store_t){axis, tw_first_word(array) + 1 + dim, extent};
    }
  tw_record_loaded(f->func, f->loop);
  tw_launch_set_coarsen(f->func, &facts);
  return true;
}

static void rewrite(coarsener_t *f, const tw_plan_t *plan) {
  int32_t grid[TW_GRID_AXES];
  for (int axis = 0; axis < TW_GRID_AXES; axis++) {
    int32_t blocks = 1 << plan->log[axis];
    grid[axis] = blocks == 1 ? 1 : -blocks;
    if (blocks > 1)
      tw_dims_multiply(&f->dims, f->class[axis], blocks);
  }
  tw_launch_set_grid_scale(f->func, grid);
}

static const char *decide(coarsener_t *f, int64_t wanted) {
  const char *why = find_classes(f);
  if (why != NULL)
    return why;
  f->warps = tw_mma_num_warps(f->func);
  f->computes = tw_computes_operands(f->loop);
  f->steps = steps_of(f->loop);
  tw_make_plans(&f->plans, TW_GRID_AXES, true, weigh, f);
  int log = tw_plan_for(&f->plans, wanted > 1 ? wanted : INT64_MAX);
  if (log == 0)
    return "its tiles are large";
  if (!record_launch(f))
    return "it stores to what is no array of the launch";
  if (wanted > 1) {
    rewrite(f, &f->plans.at[log]);
    tw_op_remark(f->func, "coarsens its tiles: a block computes those of %d", 1 << log);
  } else {
    tw_op_remark(f->func, "coarsens its tiles where a launch has many blocks: a block computes those of up to %d",
                 1 << log);
  }
  return NULL;
}

bool tw_coarsen_tiles(MlirOperation func) {
  coarsener_t f = {.func = func};
  int64_t wanted = tw_hint_coarsen_tiles(func, 0);
  if (!tw_is_of_tiles(func) || wanted == 1 || tw_launch_has_cluster_blocks(func) || tw_hint_slice_tiles(func, 0) > 1 ||
      (wanted == 0 && !tw_has_op_like(func, tw_op_is_product)))
    return true;
  f.axes = tw_block_axes_of(func);
  f.dims = tw_dims_of(func);
  f.loop = tw_dims_loop(&f.dims);
  const char *why = decide(&f, wanted);
  if (why != NULL)
    tw_op_remark(func, "coarsens no tiles: %s", why);
  tw_dims_free(&f.dims);
  tw_block_axes_free(&f.axes);
  return true;
}
