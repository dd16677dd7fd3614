/* defer_reductions.c - tile-defer-reductions: reduces a loop's running sum across threads once, after the loop
 *
 * Before, each iteration ends with an exchange between lanes, and between warps:
 *
 *   %r = scf.for ... iter_args(%sum = %init) -> (tensor<128xf32>) {
 *     %x = ... tile.load ...                                    // 16 bytes are 8 neighbours
 *     %p = tile.reduce add, %x axis 1 : tensor<128x64xf32>
 *     %s = arith.addf %sum, %p
 *     yield %s
 *   }
 *
 * After, a thread adds up what it has of a row:
 *
 *   %c = scf.for ... iter_args(%parts = 0) -> (tensor<128x8xf32>) {
 *     %x = ... tile.load ...
 *     %y = tile.reshape %x : tensor<128x64xf32> -> tensor<128x8x8xf32>
 *     %p = tile.reduce add, %y axis 2 : tensor<128x8x8xf32>
 *     %s = arith.addf %parts, %p
 *     yield %s
 *   }
 *   %t = tile.reduce add, %c axis 1 : tensor<128x8xf32>
 *   %r = arith.addf %init, %t
 *
 * Of sums of columns, along another axis, a thread has rows far apart, where the kernel moves memory and has no
 * products:
 *
 *   %y = tile.reshape %x : tensor<128x32xf32> -> tensor<4x32x32xf32>
 *   %p = tile.reduce add, %y axis 0
 *
 * Of rows that a product beside it reads from registers, four lanes share every 16 bytes of its operand:
 *
 *   %y = tile.reshape %x : tensor<128x64xf32> -> tensor<128x8x8xf32>
 *   %p = tile.reduce add, %y axis 1
 *
 * What must hold: the sum is of f32, read by its addition only, and what is added comes from a reduction of a tile that
 * lies in memory along one of its axes, so that it is known which elements are in one thread. Runs before layouts. The
 * order of the additions changes, which a program does not fix. */
#include "dialect/layouts.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/schedule/scale_once.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"
#include "lowering/passes.h"
#include "tilewright/dialect.h"

enum { VECTOR_BITS = 128, WARP_BYTES = 2048, MAX_WARPS = 8, MAX_DEPTH = 8 };

/* A running sum of a loop. */
typedef struct {
  MlirOperation loop, reduce;
  MlirValue added; /* what the reduction gives, perhaps reshaped */
  intptr_t position, axis;
  int64_t mine; /* elements along the axis that a thread has */
  bool apart;   /* as far as they can be, not side by side */
} running_sum_t;

/* ---- what is deferred -------------------------------------------------------------------------------- */

/* A load of a tile of this shape, of which the value is made element by element. */
static MlirOperation find_load(MlirValue value, int depth) {
  MlirOperation op = tw_def(value);
  if (mlirOperationIsNull(op) || depth == 0 || tw_op_loads_tile(op))
    return depth == 0 ? tw_null_op() : op;
  if (tw_op_form(op) != TW_FORM_ELEMENTWISE)
    return tw_null_op();
  MlirOperation found = tw_null_op();
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op) && mlirOperationIsNull(found); i++)
    found = find_load(mlirOperationGetOperand(op, i), depth - 1);
  return found;
}

/* Rows of a tile that lies in memory along its rows, which a thread has: what is left when all threads of as many warps
 * as such a tile gets (tile-assign-layouts) have one access each. */
static int64_t rows_of_thread(MlirOperation load) {
  MlirType tile = mlirValueGetType(mlirOperationGetResult(load, 0));
  int64_t bytes = tw_count(tile) * tw_memory_bits(tw_element(tile)) / 8;
  int64_t most = bytes / WARP_BYTES < MAX_WARPS ? bytes / WARP_BYTES : MAX_WARPS;
  int64_t warps = tw_num_warps(load, most > 1 ? most : 1);
  return bytes * 8 / (VECTOR_BITS * 32 * warps);
}

/* The neighbours along k of which four lanes have one word each, where a product of the loop reads from registers what
 * is made of the load; 0 where none does. */
static int64_t operand_period(MlirOperation loop, MlirOperation load) {
  int64_t period = 0;
  tw_ops_t products = tw_ops_in(loop, tw_op_is_product, MlirWalkPreOrder);
  for (int i = 0; i < products.count && tw_contiguous_axis(load) == 1; i++) {
    MlirOperation product = products.at[i];
    if (tw_mma_place(product, 0) != TW_PLACE_REGISTERS)
      continue;
    tw_ops_t loads = tw_loads_behind(product, 0);
    for (int l = 0; l < loads.count; l++)
      if (mlirOperationEqual(loads.at[l], load))
        period = VECTOR_BITS / tw_bits(mlirValueGetType(mlirOperationGetOperand(product, 0)));
    tw_ops_free(&loads);
  }
  tw_ops_free(&products);
  return period;
}

static bool is_deferrable_reduction(running_sum_t *sum) {
  MlirValue x = mlirOperationGetOperand(sum->reduce, 0);
  sum->axis = tw_attr_int(sum->reduce, "axis", 0);
  MlirOperation load = find_load(x, MAX_DEPTH);
  intptr_t along = mlirOperationIsNull(load) ? -1 : tw_contiguous_axis(load);
  if (along < 0)
    return false;
  sum->apart = along != sum->axis;
  if (sum->apart && tw_has_op_like(tw_function_of(load), tw_op_is_product))
    return false;
  int bits = tw_memory_bits(tw_element(mlirValueGetType(mlirOperationGetResult(load, 0))));
  int64_t extent = tw_extent(mlirValueGetType(x), sum->axis), period = sum->apart ? 0 : operand_period(sum->loop, load);
  sum->mine = sum->apart ? rows_of_thread(load) : VECTOR_BITS / bits;
  if (period > 0 && extent % period == 0) {
    sum->apart = true;
    sum->mine = extent / period;
  }
  return sum->mine > 1 && extent > sum->mine && tw_rank(mlirValueGetType(x)) < TW_MAX_RANK;
}

static bool find_sum(MlirOperation loop, intptr_t position, running_sum_t *out) {
  MlirBlock body = tw_loop_body(loop);
  MlirOperation add = tw_only_user(tw_carried(loop, position));
  if (tw_has_layout(mlirValueGetType(tw_carried(loop, position))))
    return false;
  *out = (running_sum_t){.loop = loop, .position = position};
  if (mlirOperationIsNull(add) || !tw_op_is(add, TW_ARITH_ADDF) || !mlirBlockEqual(mlirOperationGetBlock(add), body) ||
      !mlirTypeIsAF32(tw_element(mlirValueGetType(mlirOperationGetResult(add, 0)))))
    return false;
  MlirOpOperand use = tw_only_use(mlirOperationGetResult(add, 0));
  if (mlirOpOperandIsNull(use) || !mlirOperationEqual(mlirOpOperandGetOwner(use), tw_loop_yield(loop)) ||
      mlirOpOperandGetOperandNumber(use) != position)
    return false;
  bool first = mlirValueEqual(mlirOperationGetOperand(add, 0), tw_carried(loop, position));
  out->added = mlirOperationGetOperand(add, first);
  out->reduce = tw_def(out->added);
  while (!mlirOperationIsNull(out->reduce) && tw_op_is(out->reduce, TW_TILE_RESHAPE))
    out->reduce = tw_def(mlirOperationGetOperand(out->reduce, 0));
  return !mlirOperationIsNull(out->reduce) && tw_op_is_reduction(out->reduce) &&
         mlirBlockEqual(mlirOperationGetBlock(out->reduce), body) &&
         tw_attr_int(out->reduce, "kind", 0) == TW_REDUCE_ADD && is_deferrable_reduction(out);
}

/* ---- rewriting --------------------------------------------------------------------------------------- */

/* The types of the tile with its axis split into threads and what each has, and of the sums over what each has. */
static MlirType split_type(const running_sum_t *sum, MlirType *parts) {
  MlirType x = mlirValueGetType(mlirOperationGetOperand(sum->reduce, 0));
  int64_t shape[TW_MAX_RANK] = {0};
  intptr_t n = 0;
  for (intptr_t d = 0; d < tw_rank(x); d++)
    shape[n++] = tw_extent(x, d) / (d == sum->axis ? sum->mine : 1);
  *parts = tw_tile_type(tw_element(x), n, shape);
  for (intptr_t d = n++; d > sum->axis + 1; d--)
    shape[d] = shape[d - 1];
  shape[sum->axis + 1] = sum->apart ? shape[sum->axis] : sum->mine;
  shape[sum->axis] = sum->apart ? sum->mine : shape[sum->axis];
  return tw_tile_type(tw_element(x), n, shape);
}

/* Returns the loop that stands in place of the old one. */
static MlirOperation defer(const running_sum_t *sum) {
  MlirType parts, split = split_type(sum, &parts);
  MlirOperation add = tw_def(tw_carried_next(sum->loop, sum->position));
  tw_builder_t before = tw_build_before(sum->loop), here = tw_build_before(sum->reduce);
  MlirValue zero = tw_const_float(&before, parts, 0), init = tw_carried_init(sum->loop, sum->position);
  MlirOperation loop = tw_carry_more(sum->loop, 1, &zero);
  MlirValue carried = tw_carried(loop, mlirOperationGetNumResults(loop) - 1);
  MlirValue part = tw_reshape(&here, split, mlirOperationGetOperand(sum->reduce, 0));
  part = tw_sum_along(&here, part, sum->axis + !sum->apart, false);
  MlirValue next = tw_binary(&here, "arith.addf", parts, carried, part);
  mlirOperationSetOperand(tw_loop_yield(loop), sum->position, tw_carried(loop, sum->position)); /* canonicalized away */
  tw_extend_yield(tw_loop_body(loop), 1, &next);
  tw_erase_dead(add);
  tw_builder_t after = tw_build_before(mlirOperationGetNextInBlock(loop));
  after.location = here.location;
  MlirValue total =
      tw_sum_along(&after, mlirOperationGetResult(loop, mlirOperationGetNumResults(loop) - 1), sum->axis, false);
  MlirType type = mlirValueGetType(init);
  total = tw_reshape(&after, type, total);
  total = tw_binary(&after, "arith.addf", type, init, total);
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(loop, sum->position), total);
  return loop;
}

bool tw_run_defer_reductions(MlirOperation func) {
  tw_ops_t loops = tw_loops_in(func, MlirWalkPostOrder);
  for (int i = 0; i < loops.count; i++) {
    intptr_t num = mlirOperationGetNumResults(loops.at[i]);
    for (intptr_t position = 0; position < num; position++) {
      running_sum_t sum;
      if (find_sum(loops.at[i], position, &sum))
        loops.at[i] = defer(&sum);
    }
  }
  tw_ops_free(&loops);
  tw_scale_once(func);
  return true;
}
