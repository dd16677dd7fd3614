/* persistent_loop.c - tile-persistent-loop: persistent grid: rasterizes blocks for L2 reuse and launches one wave
 *
 * Before, a block of the grid is a block of threads, and the hardware starts them with axis 0 first:
 *
 *   func.func @k(%A: ..., %C: ...) {
 *     %i = tile.block_id 0
 *     %j = tile.block_id 1
 *     ... tile.num_blocks 0 ... a loop with a product ...
 *     tile.store %t, %C[%i, %j]
 *   }
 *
 * After, where the loads of the loop say so, the position comes from the block's number (raster.h):
 *
 *     %v = block_id 0 + num_blocks 0 * (block_id 1 + num_blocks 1 * block_id 2)
 *     %i, %j = position number %v in the raster
 *
 * and where it pays, the grid that the launcher starts is smaller than the program's (the launch
 * record says so: persistent), whose extents are three more arguments:
 *
 *   func.func @k(%A: ..., %C: ..., %x: i32, %y: i32, %z: i32) {
 *     %first = tile.block_id 0
 *     %step = tile.num_blocks 0
 *     scf.for %v = %first to %x * %y * %z step %step {
 *       %i, %j = position number %v in the raster
 *       ... %x ... a loop with a product ...
 *       tile.store %t, %C[%i, %j]
 *     } {tile.persistent}
 *
 * Two neighbours along an axis load the same tiles of what does not depend on their position along it. As a cluster
 * each can bring half of such a tile to both, where this pays (grid/cluster_multicast.c):
 *
 *     scf.for %v = %first / 2 to (blocks of the grid, halved along axis 0) step %step / 2 {
 *       %i, %j = position of the pair %v, the second block one further along axis 0
 *       ... tile.load %B[%k, %j] {tile.multicast} ...
 *       tile.store %t, %C[%i < %x ? %i : (beyond every array), %j]
 *     } {tile.persistent}
 *
 * Runs after tile-select-mma and before layouts. Kernels whose products warpgroups compute in a loop
 * are taken, and only if a producer warp can bring what products wait for, ahead of everything else: a
 * loop that writes to an array which it may read has to wait with it. There a block's
 * next tiles arrive while it finishes the last ones, and positions are computed by one thread, not in
 * the addresses of all. Blocks may run in any order, which a tile program has to expect; still, those
 * that print or stop with a message keep the order that a reader expects, and those that wait for
 * memory to change keep the hardware's.
 *
 * If the work of a block changes with its position along an axis, those with the most go first, of a few heads at a
 * time:
 *
 *   axis 0 decides the work,           0 1 2 3          0 2 4 6     and from right to left where
 *   axis 1 has the heads               4 5 6 7   ->     1 3 5 7     the work grows with the position
 *
 * There a block takes the next number when it is done with one (roles/dynamic_scheduler.c): the loop gets the mark
 * tile.dynamic_schedule. All rows along the other two axes are one, in groups with two rounds of blocks, the longest
 * first in each, and the group that is not whole comes before all others. Where the work depends on the position
 * otherwise, or on what is in memory, the raster is that of the loads. The hint `dynamic_schedule` decides otherwise:
 * 1, and those of any kernel take them; 0, and the rows of four heads are walked as above, every second round of the
 * few blocks backwards, so that the one which had the longest gets the shortest:
 *
 *   %r = (%v - %first) / %step ; number = %r is odd, and the round is whole ? (2 * %r + 1) * %step - 1 - %v : %v
 *
 * or, where the longest are not known, blocks are left to the hardware. So are by default those for which a producer
 * gathers. docs/design/measurements.md compares the three schedules.
 *
 * Kernels without products, which only move memory, run first along the axis of the grid along which they store side by
 * side, if that is axis 1. Of a transpose either loads or stores lie side by side, and it is the stores that count. */
#include "dialect/layouts.h"
#include "lowering/divide.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/aliasing.h"
#include "lowering/gpu/facts/block_axes.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/facts/same_tile.h"
#include "lowering/gpu/grid/cluster_multicast.h"
#include "lowering/gpu/grid/hoist_common.h"
#include "lowering/gpu/grid/raster.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/isa/sm90/wgmma.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/gpu/machine/copy_engine.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"
#include "lowering/passes.h"

typedef struct {
  MlirOperation func;
  int64_t num_warps;
  tw_block_axes_t axes;
  tw_grid_ids_t ids;
  bool wgmma;              /* a loop has a product that warpgroups compute */
  const char *not_brought; /* why the accelerator cannot bring a load of a loop; null if it can bring all */
  bool writes;             /* a loop with such a product writes to an array that the kernel may read, too */
  bool in_order;           /* the order of the blocks can be seen */
  uint32_t uneven;         /* axes that tell how often a loop runs */
  bool grows, falls;       /* ... with the position: that of some loop */
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
  tw_tma_copy_t copy;
  int64_t order[TW_LAYOUT_MAX_RANK];
  if (tw_op_gathers(load))
    return tw_gathers_beside(num_warps) ? NULL : "few warps compute on what a load in a loop gathers";
  if (!tw_tma_is_allowed(load))
    return "a load in a loop says allow_tma=False";
  if (!tw_promotes(load))
    return "a load in a loop does not go through shared memory";
  tw_access_order(load, (int)tw_rank(mlirValueGetType(mlirOperationGetResult(load, 0))), order);
  return tw_tma_plan_for(mlirOperationGetOperand(load, 0), order, tw_promoted_type(load), &copy);
}

/* The loads that a product waits for. Others go through registers, wherever blocks are. */
static void look_behind(kernel_t *k, MlirOperation mma) {
  MlirOperation loads[TW_MAX_LOADS_BEHIND + 1];
  for (int i = 0; i < 2; i++) {
    int num = tw_loads_behind(mma, i, loads);
    MlirOperation plain = tw_load_behind(mlirOperationGetOperand(mma, i));
    if (!mlirOperationIsNull(plain) && !mlirOperationIsNull(tw_enclosing_loop(plain)))
      loads[num++] = plain;
    for (int l = 0; l < num; l++)
      k->gathers |= tw_op_gathers(loads[l]);
    for (int l = 0; l < num && k->not_brought == NULL; l++)
      k->not_brought = why_not_brought(loads[l], k->num_warps);
  }
}

/* How a number changes along the axis that it depends on. */
enum { FALLS = -1, SAME = 0, GROWS = 1, UNKNOWN = 2 };

static int both(int x, int y) { return y == SAME || x == y ? x : x == SAME ? y : UNKNOWN; }

static int opposite(int slope) { return slope == UNKNOWN ? UNKNOWN : -slope; }

/* Of its first operand, by a constant: it grows as that does, or falls. */
static bool is_multiple(tw_op_class_t class) {
  return class == TW_CLASS_MULTIPLE || class == TW_CLASS_QUOTIENT || class == TW_CLASS_CEILING ||
         class == TW_CLASS_SHIFT;
}

static int slope_of(const tw_block_axes_t *axes, MlirValue value) {
  MlirOperation op = tw_def(value);
  int64_t factor;
  if (tw_block_axes_get(axes, value) == 0)
    return SAME;
  if (mlirOperationIsNull(op))
    return UNKNOWN;
  if (tw_op_is(op, TW_TILE_BLOCK_ID))
    return GROWS;
  tw_op_class_t class = tw_op_class(op);
  if (class == TW_CLASS_CAST)
    return slope_of(axes, mlirOperationGetOperand(op, 0));
  if (is_multiple(class) && tw_known_int(mlirOperationGetOperand(op, 1), &factor)) {
    int slope = slope_of(axes, mlirOperationGetOperand(op, 0));
    return factor < 0 ? opposite(slope) : slope;
  }
  if (class != TW_CLASS_SUM && class != TW_CLASS_EXTREME)
    return UNKNOWN;
  int rhs = slope_of(axes, mlirOperationGetOperand(op, 1));
  return both(slope_of(axes, mlirOperationGetOperand(op, 0)), tw_op_is(op, TW_ARITH_SUBI) ? opposite(rhs) : rhs);
}

static void look_at_length(kernel_t *k, MlirOperation loop) {
  MlirValue lower = mlirOperationGetOperand(loop, 0), upper = mlirOperationGetOperand(loop, 1);
  for (int i = 0; i < 3; i++)
    k->uneven |= tw_block_axes_get(&k->axes, mlirOperationGetOperand(loop, i));
  int slope = both(slope_of(&k->axes, upper), opposite(slope_of(&k->axes, lower)));
  k->grows |= slope == GROWS;
  k->falls |= slope == FALLS;
}

static MlirWalkResult find_wgmma(MlirOperation op, void *found) {
  if (!tw_op_is(op, TW_TILE_MMA) || !tw_has_attr(op, TW_MMA_FAMILY))
    return MlirWalkResultAdvance;
  *(bool *)found = true;
  return MlirWalkResultInterrupt;
}

/* Whether a loop around the op has a product of a warpgroup. */
static bool is_beside_product(MlirOperation op) {
  bool found = false;
  for (MlirOperation loop = tw_enclosing_loop(op); !found && !mlirOperationIsNull(loop); loop = tw_enclosing_loop(loop))
    mlirOperationWalk(loop, find_wgmma, &found, MlirWalkPreOrder);
  return found;
}

typedef struct {
  MlirOperation write;
  bool found;
} reader_t;

static MlirWalkResult find_reader(MlirOperation op, void *user) {
  reader_t *reader = user;
  intptr_t first;
  if (tw_op_loads(op)) {
    MlirValue read = mlirOperationGetOperand(op, 0), written = tw_access_array(reader->write, &first);
    bool in_place = mlirValueEqual(read, written) && tw_reads_before(op, reader->write, tw_null_op());
    reader->found |= !in_place && !tw_may_be_disjoint(read, written);
  }
  return reader->found ? MlirWalkResultInterrupt : MlirWalkResultAdvance;
}

/* Whether the kernel may load from the array that the op writes to, but for each tile before it is written. */
static bool may_be_read(MlirOperation func, MlirOperation write) {
  reader_t reader = {write, false};
  mlirOperationWalk(func, find_reader, &reader, MlirWalkPreOrder);
  return reader.found;
}

static MlirWalkResult look(MlirOperation op, void *user) {
  kernel_t *k = user;
  bool looped = !mlirOperationIsNull(tw_enclosing_loop(op));
  k->wgmma |= looped && tw_op_is(op, TW_TILE_MMA) && tw_has_attr(op, TW_MMA_FAMILY);
  if (looped && tw_op_is(op, TW_TILE_MMA))
    look_behind(k, op);
  if (tw_stores_to_array(op))
    k->writes |= is_beside_product(op) && may_be_read(k->func, op);
  k->in_order |= shows_order(op);
  if (tw_op_is(op, TW_SCF_FOR))
    look_at_length(k, op);
  return MlirWalkResultAdvance;
}

/* ---- rewriting --------------------------------------------------------------------------------- */

static MlirValue times(const tw_builder_t *at, MlirValue x, MlirValue y) {
  return tw_binary(at, "arith.muli", tw_i32(at->context), x, y);
}

static MlirValue plus(const tw_builder_t *at, MlirValue x, MlirValue y) {
  return tw_binary(at, "arith.addi", tw_i32(at->context), x, y);
}

/* The axis along which the work of a block changes all in one direction; -1 if it is not so. */
static int axis_of_work(const kernel_t *k) {
  for (int axis = 0; axis < TW_GRID_AXES; axis++)
    if (k->uneven == UINT32_C(1) << axis && k->grows != k->falls)
      return axis;
  return -1;
}

/* Positions number axis 0 first. Where that tells the work, groups of rows along axis 1 are walked column by column
 * instead; few rows, so that what they load again and again stays in the L2 cache. Rows that make up no whole group
 * stay as they are. Shifts alone, which warps do once for all their threads. */
static void longest_first(const kernel_t *k, const tw_builder_t *at, const MlirValue extents[TW_GRID_AXES], int axis,
                          MlirValue position[TW_GRID_AXES]) {
  enum { LOG_ROWS = 2, ROWS = 1 << LOG_ROWS };
  MlirType i32 = tw_i32(at->context);
  if (axis == 0) {
    MlirValue x = position[0], y = position[1], shift = tw_const_int(at, i32, LOG_ROWS);
    MlirValue low = tw_const_int(at, i32, ROWS - 1);
    MlirValue row = tw_binary(at, "arith.andi", i32, y, low), first = tw_binary(at, "arith.subi", i32, y, row);
    MlirValue number = plus(at, x, times(at, extents[0], row));
    MlirValue end = plus(at, first, tw_const_int(at, i32, ROWS)), whole = tw_compare(at, TW_SLE, end, extents[1]);
    MlirValue column = tw_binary(at, "arith.shrui", i32, number, shift);
    row = plus(at, first, tw_binary(at, "arith.andi", i32, number, low));
    position[0] = tw_select(at, whole, column, x);
    position[1] = tw_select(at, whole, row, y);
  }
  if (k->grows) {
    MlirValue last = tw_binary(at, "arith.subi", i32, extents[axis], tw_const_int(at, i32, 1));
    position[axis] = tw_binary(at, "arith.subi", i32, last, position[axis]);
  }
}

/* The number that a block takes in place of `v`: every second round of `step` numbers goes backwards, but not one with
 * too few left. */
static MlirValue to_and_fro(const tw_builder_t *at, MlirValue v, tw_divisor_t step, MlirValue total) {
  MlirType i32 = tw_i32(at->context);
  MlirValue round, id, one = tw_const_int(at, i32, 1);
  tw_divide(at, v, step, &round, &id);
  MlirValue first = tw_binary(at, "arith.subi", i32, v, id), end = plus(at, first, step.value);
  MlirValue mirrored = tw_binary(at, "arith.subi", i32, tw_binary(at, "arith.subi", i32, end, one), id);
  MlirValue odd = tw_compare(at, TW_EQ, tw_binary(at, "arith.andi", i32, round, one), one);
  MlirValue whole = tw_compare(at, TW_SLE, end, total);
  return tw_select(at, odd, tw_select(at, whole, mirrored, v), v);
}

/* Blocks of the dynamic scheduler start in the same order, but whatever the axis, and of more rows at a time: */
typedef struct {
  int columns, inner, outer; /* axes: that of the work, and those along which rows lie */
  tw_divisor_t rows;         /* along `inner` */
} dynamic_order_t;

/* Rows of both other axes are one. A group of them has two rounds of blocks: the longest ones start while there is work
 * enough for all others until they end, and what the group loads again and again stays in the L2 cache. */
static dynamic_order_t order_dynamic(const tw_builder_t *at, int axis, MlirValue walked[TW_GRID_AXES],
                                     tw_raster_t *raster) {
  enum { ROUNDS = 2 };
  MlirType i32 = tw_i32(at->context);
  dynamic_order_t order = {.columns = axis, .inner = axis == 0, .outer = axis == 2 ? 1 : 2};
  order.rows = tw_divisor_of(at, walked[order.inner]);
  MlirValue rows = times(at, walked[order.inner], walked[order.outer]);
  MlirValue blocks = times(at, tw_grid_op(at, "tile.num_blocks", 0), tw_const_int(at, i32, ROUNDS));
  walked[order.inner] = rows;
  walked[order.outer] = tw_const_int(at, i32, 1);
  *raster = (tw_raster_t){.rows = order.inner, .columns = axis, .slices = -1, .group = 1};
  raster->height = tw_binary(at, "arith.minui", i32, tw_binary(at, "arith.ceildivui", i32, blocks, walked[axis]), rows);
  return order;
}

/* Numbers go backwards, so that the group which is not whole comes first, and not when there is little left. */
static void find_dynamic(const kernel_t *k, const tw_builder_t *at, const dynamic_order_t *order,
                         const tw_raster_code_t *code, MlirValue number, MlirValue total,
                         const MlirValue extents[TW_GRID_AXES], MlirValue position[TW_GRID_AXES]) {
  MlirType i32 = tw_i32(at->context);
  MlirValue one = tw_const_int(at, i32, 1), last = tw_binary(at, "arith.subi", i32, total, one);
  tw_raster_decode(at, code, tw_binary(at, "arith.subi", i32, last, number), position);
  tw_divide(at, position[order->inner], order->rows, &position[order->outer], &position[order->inner]);
  if (k->falls) {
    last = tw_binary(at, "arith.subi", i32, extents[order->columns], one);
    position[order->columns] = tw_binary(at, "arith.subi", i32, last, position[order->columns]);
  }
}

static MlirValue divided(const tw_builder_t *at, MlirValue x, int64_t y) {
  return y == 1 ? x : tw_binary(at, "arith.divui", tw_i32(at->context), x, tw_const_int(at, tw_i32(at->context), y));
}

/* Everything in the function but its return goes into a loop over the blocks' numbers; of pairs, which are neighbours
 * along an axis, where that is not negative. Where one is given by which the work changes, the longest come first. */
static void stay(kernel_t *k, tw_raster_t raster, int pairs, int axis_of_work, bool dynamic) {
  MlirValue extents[TW_GRID_AXES], walked[TW_GRID_AXES], position[TW_GRID_AXES];
  tw_add_grid_extents(k->func, extents);
  MlirBlock body = tw_region_block(k->func, 0);
  MlirOperation old = mlirBlockGetFirstOperation(body), end = mlirBlockGetTerminator(body);
  tw_builder_t at = tw_build_before(old);
  at.location = mlirOperationGetLocation(k->func);
  MlirType i32 = tw_i32(at.context);
  int64_t cluster = pairs < 0 ? 1 : TW_CLUSTER;
  for (int axis = 0; axis < TW_GRID_AXES; axis++)
    walked[axis] =
        axis == pairs ? divided(&at, plus(&at, extents[axis], tw_const_int(&at, i32, 1)), TW_CLUSTER) : extents[axis];
  if (pairs == raster.rows && raster.group > 1)
    raster.group /= TW_CLUSTER;
  tw_strips_t strips = {.axis = pairs < 0 && !dynamic && axis_of_work < 0 ? tw_strips_axis(k->func, &k->axes, &raster)
                                                                          : -1};
  if (strips.axis >= 0) {
    strips = tw_strips_of(&at, strips.axis, extents);
    walked[strips.axis] = tw_strips_count(&at, &strips, extents[strips.axis]);
    tw_op_remark(k->func, "does once for up to 8 blocks along axis %d of the grid what they have in common",
                 strips.axis);
  }
  dynamic_order_t order = {0};
  if (axis_of_work >= 0 && dynamic)
    order = order_dynamic(&at, axis_of_work, walked, &raster);
  MlirValue total = times(&at, times(&at, walked[0], walked[1]), walked[2]);
  tw_raster_code_t code = tw_raster_prepare(&at, &raster, walked);
  MlirValue id = tw_grid_op(&at, "tile.block_id", 0);
  MlirValue bounds[] = {divided(&at, id, cluster), total, divided(&at, tw_grid_op(&at, "tile.num_blocks", 0), cluster)};
  tw_divisor_t rounds = {.value = bounds[2]};
  if (axis_of_work >= 0 && !dynamic)
    rounds = tw_divisor_of(&at, rounds.value);
  MlirBlock inner = mlirBlockCreate(1, &i32, &at.location);
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, inner);
  tw_attr_t marks[] = {{TW_PERSISTENT, mlirUnitAttrGet(at.context)},
                       {TW_DYNAMIC_SCHEDULE, mlirUnitAttrGet(at.context)}};
  tw_build(&at, "scf.for",
           (tw_op_parts_t){.num_operands = 3,
                           .operands = bounds,
                           .num_attrs = 1 + dynamic,
                           .attrs = marks,
                           .num_regions = 1,
                           .regions = &region});
  tw_builder_t in = tw_build_at_end(inner, at.location);
  MlirValue number = mlirBlockGetArgument(inner, 0);
  if (axis_of_work >= 0 && dynamic) {
    find_dynamic(k, &in, &order, &code, number, total, extents, position);
  } else if (axis_of_work >= 0) {
    tw_raster_decode(&in, &code, to_and_fro(&in, number, rounds, total), position);
    longest_first(k, &in, extents, axis_of_work, position);
  } else {
    tw_raster_decode(&in, &code, number, position);
  }
  if (pairs >= 0) {
    MlirValue second = tw_binary(&in, "arith.andi", i32, id, tw_const_int(&in, i32, TW_CLUSTER - 1));
    position[pairs] = plus(&in, times(&in, position[pairs], tw_const_int(&in, i32, TW_CLUSTER)), second);
  }
  if (strips.axis >= 0)
    position[strips.axis] =
        tw_strips_move(&strips, &k->axes, inner, old, end, position[strips.axis], extents[strips.axis]);
  for (MlirOperation next; strips.axis < 0 && !mlirOperationEqual(old, end); old = next) {
    next = mlirOperationGetNextInBlock(old);
    mlirOperationRemoveFromParent(old);
    mlirBlockAppendOwnedOperation(inner, old);
  }
  if (pairs >= 0)
    tw_pairs_guard_stores(inner, position[pairs], extents[pairs]);
  tw_build(&in, "scf.yield", (tw_op_parts_t){0});
  tw_grid_replace_ids(&k->ids, position, extents);
  tw_launch_set_persistent(k->func, true);
  if (cluster > 1)
    tw_launch_set_cluster_blocks(k->func, (uint32_t)cluster);
}

/* ---- the decision ------------------------------------------------------------------------------ */

static void rewrite(kernel_t *k) {
  static const tw_raster_t in_order = {.rows = 0, .columns = 1, .slices = 2};
  tw_gpu_target_t target = tw_gpu_target_of(k->func);
  int axis = axis_of_work(k);
  bool dynamic = tw_hint_dynamic_schedule(k->func, k->uneven && !k->gathers);
  if (axis >= 0) {
    tw_op_remark(k->func,
                 "is persistent: the blocks that fit on the GPU take those of the grid %s, those with the "
                 "longest loops first",
                 dynamic ? "as they get done" : "to and fro");
    stay(k, in_order, -1, axis, dynamic);
    return;
  }
  tw_raster_t raster = tw_raster_choose(k->func, &k->axes, target.machine->multiprocessors);
  if (raster.group)
    tw_op_remark(k->func, "runs its blocks in groups of %lld along axis %d, then along axis %d of the grid",
                 (long long)raster.group, raster.rows, raster.columns);
  if (dynamic) {
    stay(k, raster, -1, -1, true);
    tw_op_remark(k->func, "is persistent: the blocks that fit on the GPU take those of the grid as they get done");
  } else if (!k->uneven) {
    stay(k, raster, tw_pairs_choose(k->func, &k->axes, &raster), -1, false);
    tw_op_remark(k->func, "is persistent: the blocks that fit on the GPU take all blocks of the grid in turn");
  } else {
    tw_op_remark(k->func, "is not persistent: how much a block computes depends on its position");
    if (raster.group)
      tw_grid_reorder(k->func, &k->ids, &raster);
  }
}

static void decide(kernel_t *k) {
  if (k->in_order)
    tw_op_remark(k->func, "keeps the order of the grid, which can be seen: it prints, asserts, or waits");
  else if (k->writes)
    tw_op_remark(k->func,
                 "keeps the order of the grid: a loop writes to an array that the kernel may load from, so nothing is "
                 "brought ahead of it");
  else if (k->not_brought)
    tw_op_remark(k->func, "keeps the order of the grid: %s", k->not_brought);
  else
    rewrite(k);
}

/* ---- kernels that move memory ------------------------------------------------------------------ */

typedef struct {
  const tw_block_axes_t *axes;
  bool stores, other; /* tiles that lie side by side along axis 1 alone, or anything else */
} moves_t;

static MlirWalkResult look_at_move(MlirOperation op, void *user) {
  enum { AXIS_1 = 2 };
  moves_t *m = user;
  m->other |= tw_op_is(op, TW_TILE_MMA) || tw_op_scatters(op);
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
  static const tw_raster_t along_1 = {.rows = 1, .columns = 0, .slices = 2};
  moves_t m = {.axes = &k->axes};
  mlirOperationWalk(k->func, look_at_move, &m, MlirWalkPreOrder);
  if (!m.stores || m.other || k->in_order)
    return;
  tw_op_remark(k->func, "runs its blocks along axis 1 of the grid first: there they store side by side");
  tw_grid_reorder(k->func, &k->ids, &along_1);
}

bool tw_run_persistent_loop(MlirOperation func) {
  kernel_t k = {.func = func, .ids = tw_grid_ids_in(func)};
  if (!tw_has_attr(func, "tile.kernel") || tw_has_attr(func, "tile.simt"))
    return true;
  k.num_warps = tw_num_warps(func, 0);
  if (k.num_warps == 0)
    k.num_warps = tw_mma_num_warps(func);
  k.axes = tw_block_axes_of(func);
  k.in_order = k.ids.count == TW_MAX_IDS;
  mlirOperationWalk(func, look, &k, MlirWalkPreOrder);
  if (k.wgmma && mlirBlockGetNumArguments(tw_region_block(func, 0)) <= TW_MAX_GRID_ARGUMENTS)
    decide(&k);
  else
    follow_stores(&k);
  tw_block_axes_free(&k.axes);
  return true;
}
