/* cluster_multicast.c - neighbouring blocks form a cluster and share loads. See cluster_multicast.h.
 *
 * Each block of a pair loads half of what both need, and multicasts it to both. That pays where the L2 cache cannot
 * keep up with the products. The cache counts lines of 128 bytes, and a line of a tile that begins within one, as in
 * rows of 4104 elements, touches two. Some 0.56 of a line are to be had in a cycle (docs/design/measurements.md). Where
 * lines are whole, other things limit the products of small tiles.
 *
 * A launch may choose another axis, or no cluster: it knows how many blocks find a neighbour (runtime/launch.c).
 */
#include "lowering/gpu/grid/cluster_multicast.h"

#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/block_axes.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"

typedef struct {
  const tw_block_axes_t *axes;
  MlirBlock top;
  bool unfit;                         /* it gathers, loads under conditions, or stores elsewhere than behind loops */
  bool splits;                        /* lines that are loaded begin within those of the cache */
  int64_t cycles;                     /* of the products in loops, once around */
  int64_t lines, alike[TW_GRID_AXES]; /* of the cache, that loads touch meanwhile; that two along an axis both touch */
  const tw_machine_t *machine;
} pairing_t;

static bool is_looped_load(MlirOperation op) {
  return tw_op_loads_tile(op) && !mlirOperationIsNull(tw_enclosing_loop(op));
}

static int64_t bytes_of(MlirOperation load) {
  MlirType tile = mlirValueGetType(mlirOperationGetResult(load, 0));
  return tw_count(tile) * tw_memory_bits(tw_element(tile)) / 8;
}

/* Whether neighbours along the axis want the same tile, of which each can bring half: 1024 bytes, after which swizzles
 * repeat, or more. */
static bool is_alike(const pairing_t *p, MlirOperation load, int axis) {
  enum { LEAST_BYTES = TW_MULTICAST_BLOCKS * 1024 };
  return !(tw_block_axes_of_load(p->axes, load) >> axis & 1) && bytes_of(load) >= LEAST_BYTES;
}

/* Whether all blocks do it equally often: there is nothing around it but loops over numbers, of which
 * tile-plan-grid has found that they run equally often. */
static bool is_even(MlirOperation op) {
  MlirOperation around = mlirOperationGetParentOperation(op);
  while (tw_op_is(around, TW_SCF_FOR))
    around = mlirOperationGetParentOperation(around);
  return tw_op_is(around, TW_FUNC_FUNC);
}

/* Of loads beside products, in the same loop. */
static void count_lines(pairing_t *p, MlirOperation load) {
  bool splits = tw_access_splits_lines(load);
  int64_t lines = bytes_of(load) / TW_LINE_BYTES * (splits ? 2 : 1);
  if (!is_looped_load(load) || !tw_has_op_like(tw_enclosing_loop(load), tw_op_is_product))
    return;
  p->splits |= splits;
  p->lines += lines;
  for (int axis = 0; axis < TW_GRID_AXES; axis++)
    p->alike[axis] += is_alike(p, load, axis) ? lines : 0;
}

static MlirWalkResult look(MlirOperation op, void *user) {
  pairing_t *p = user;
  intptr_t first;
  p->unfit |= tw_op_has(op, TW_BY_ELEMENT | TW_ORDERS_ALL);
  if (tw_op_stores_tile(op))
    p->unfit |= mlirShapedTypeGetRank(mlirValueGetType(tw_access_array(op, &first))) == 0 ||
                !mlirBlockEqual(mlirOperationGetBlock(op), p->top);
  if (tw_op_loads_tile(op)) {
    p->unfit |= !is_even(op);
    count_lines(p, op);
  }
  if (tw_op_is_product(op) && !mlirOperationIsNull(tw_enclosing_loop(op)))
    p->cycles += tw_mma_cycles(op);
  return MlirWalkResultAdvance;
}

/* What a step takes in which a block asks the cache for so many lines. */
static int64_t step_cycles(const pairing_t *p, int64_t lines) {
  int64_t cycles = lines * TW_LINE_BYTES / p->machine->l2_line_bytes;
  return cycles > p->cycles ? cycles : p->cycles;
}

/* The same where neighbours along the axis share what they can; 0 where they cannot be neighbours. */
static int64_t paired_cycles(const pairing_t *p, const tw_raster_t *raster, int axis) {
  bool possible = p->alike[axis] > 0 && (axis == raster->rows || axis == raster->columns);
  return possible ? step_cycles(p, p->lines - p->alike[axis] / TW_MULTICAST_BLOCKS) : 0;
}

/* Along which most lines are shared, or what the hint says. */
static int best_axis(const pairing_t *p, MlirOperation func, const tw_raster_t *raster) {
  int best = p->alike[raster->rows] >= p->alike[raster->columns] ? raster->rows : raster->columns;
  int hint = (int)tw_hint_cluster_axis(func, best);
  return p->alike[hint] > 0 && (hint == raster->rows || hint == raster->columns) ? hint : best;
}

/* Where a hint says the axis, there is no other choice. */
static void record_launch(const pairing_t *p, MlirOperation func, const tw_raster_t *raster, int axis) {
  bool told = tw_has_hint_cluster_axis(func);
  tw_multicast_t facts = {.axis = axis, .alone = told ? INT32_MAX : step_cycles(p, p->lines)};
  for (int other = 0; other < TW_GRID_AXES; other++)
    facts.cycles[other] = told && other != axis ? 0 : paired_cycles(p, raster, other);
  tw_launch_set_multicast(func, &facts);
}

typedef struct {
  const pairing_t *pairing;
  int axis;
} marking_t;

static MlirWalkResult mark(MlirOperation op, void *user) {
  const marking_t *m = user;
  if (is_looped_load(op) && is_alike(m->pairing, op, m->axis))
    tw_set_attr(op, TW_MULTICAST, mlirUnitAttrGet(mlirOperationGetContext(op)));
  return MlirWalkResultAdvance;
}

int tw_multicast_choose(MlirOperation func, const tw_block_axes_t *axes, const tw_raster_t *raster) {
  int64_t hint = tw_hint_num_ctas(func, 0);
  pairing_t p = {.axes = axes,
                 .top = tw_region_block(func, 0),
                 .unfit = tw_has_hint_split_k(func),
                 .machine = tw_gpu_target_of(func).machine};
  mlirOperationWalk(func, look, &p, MlirWalkPreOrder);
  if (hint == 1 || (hint == 0 && (!p.splits || step_cycles(&p, p.lines) <= p.cycles)))
    return -1;
  if (p.unfit || raster->group == 0 || p.alike[raster->rows] + p.alike[raster->columns] == 0) {
    tw_op_remark(func, "is not clustered: that needs shared tiles, whole sums over k, unconditional loads, no gathers, "
                       "and stores only after the loops");
    return -1;
  }
  marking_t marking = {&p, best_axis(&p, func, raster)};
  mlirOperationWalk(func, mark, &marking, MlirWalkPreOrder);
  record_launch(&p, func, raster, marking.axis);
  tw_op_remark(func, "runs in clusters of %d blocks along axis %d, which load shared tiles by multicast%s",
               TW_MULTICAST_BLOCKS, marking.axis,
               hint == 0 ? ": rows that are no multiple of 128 bytes have the L2 cache give two lines for each" : "");
  return marking.axis;
}

void tw_multicast_guard_stores(MlirBlock block, MlirValue position, MlirValue extent) {
  TW_EACH_OP(op, block) {
    intptr_t first;
    if (!tw_op_stores_tile(op))
      continue;
    tw_builder_t at = tw_build_before(op);
    MlirValue array = tw_access_array(op, &first), index = mlirOperationGetOperand(op, first);
    MlirType tile =
        mlirValueGetType(mlirOperationGetOperand(op, first + mlirShapedTypeGetRank(mlirValueGetType(array))));
    MlirValue inside = tw_compare(&at, TW_SLT, position, extent);
    MlirValue beyond = tw_const_int(&at, mlirValueGetType(index), INT32_MAX / tw_extent(tile, 0));
    mlirOperationSetOperand(op, first, tw_select(&at, inside, index, beyond));
  }
}
