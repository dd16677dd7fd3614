/* lazy_rescale.c - tile-online-softmax: lazy rescaling: the running maximum stays while no score is far above it
 *
 * Before, each iteration finds the rows' largest score so far, and rescales all that was summed:
 *
 *   scf.for ... iter_args(%m, %l, %acc) {
 *     %x  = tile.reduce max, %s axis 1                       ; %m' = arith.maximumf %m, %x
 *     %p  = math.exp2 (%s - %m')                             ; %f  = math.exp2 (%m - %m')
 *     %l' = %l * %f + (tile.reduce add, %p axis 1)           ; %a  = %acc * %f
 *     %d  = tile.mma (arith.truncf %p), %v, %a
 *     yield %m', %l', %d
 *   }
 *
 * After, it takes the reference that is there, and only a warp in which the sums grow too large (or are no numbers)
 * finds a new one. Row sums stay split among the threads of a row until the loop is over:
 *
 *   scf.for ... iter_args(%m, %l4, %acc) {
 *     %p0 = math.exp2 (%s - %m)                              ; %r0 = sums of %p0, four a row
 *     %far = tile.warp_any !(%r0 <= limit)
 *     %m', %p, %r, %f = scf.if %far { as before } else { yield %m, %p0, %r0, 1.0 }
 *     %l4' = %l4 * %f + %r
 *     %a  = scf.if %far { yield %acc * %f } else { yield %acc }
 *     %d  = tile.mma (arith.truncf %p), %v, %a
 *     yield %m', %l4', %d
 *   }
 *   %l = tile.reduce add, %l4
 *
 * Where groups of warps share the columns of %p, all take the branch together: they meet to decide it
 * (emit/rules/control.c), as they do in it to find the maximum.
 *
 * Why it is right: any reference gives the same quotients, and quotients are all that the kernel stores. The analysis
 * of max_invariance.h proves this for the function at hand.
 *
 * What it does to accuracy: %p is rounded to 16 or 8 bits, whose relative error does not depend on the reference. That
 * is never above the largest score so far, so no more underflows than before. And no more overflows: no %p is above a
 * sum that it is part of, and those are at most 1024 a thread and iteration, or the largest number of the narrowest
 * type that the loop converts such values to (448 for f8E4M3FN, which would saturate above). The first block of a row
 * (%m is -inf), inf and NaN take the branch, in which the ops of the program stand as they were.
 *
 * Where a term of the scores follows the position in the loop (a bias by the distance to a key), their maximum moves in
 * most iterations, and each finds it as before: so attention with slopes of 2^-0.5 to 2^-8 a key is faster
 * (docs/design/measurements.md).
 *
 * What must hold, besides: no %p is below zero, and it goes through a narrower type into a product marked by
 * tile-select-mma, and the module does not say tile.lazy_rescale = 0. */
#include "lowering/gpu/emit/words.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/softmax/max_invariance.h"
#include "lowering/gpu/softmax/online_softmax.h"
#include "lowering/ir.h"
#include "lowering/launch_record.h"
#include "lowering/layout/memory.h"
#include "lowering/loops.h"
#include "tilewright/dialect.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_SUM = 1024 };

typedef struct {
  tw_running_max_t *references;
  const tw_running_t *running;
  MlirOperation loop, maximum;
  MlirBlock body;
  const tw_async_mma_t *async; /* of the target: its sums decide what a thread has of a row */
  tw_map_t dependents;         /* ops of the body that depend on the maximum, by address */
  MlirValue p;                 /* f32, goes through a narrower type into a product */
  double limit;                /* of a thread's sums of p */
  MlirValue *factors;          /* what sums so far are multiplied by; owned */
  int num_factors;
  MlirOperation row_sum; /* of p; or null */
  intptr_t sum_position; /* of the carried sum of row sums; -1: none */
  MlirValue far;
  int groups; /* of warps that share the columns of p */
} rewrite_t;

/* ---- what the loop has ----------------------------------------------------------------------------- */

static MlirWalkResult note_if_dependent(MlirOperation op, void *user) {
  rewrite_t *w = user;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirOperation def = tw_def(mlirOperationGetOperand(op, i));
    if (mlirOperationIsNull(def) || tw_map_get(&w->dependents, def.ptr, NULL) == NULL)
      continue;
    tw_map_set(&w->dependents, tw_ancestor_in(op, w->body).ptr, 0, NULL);
    return MlirWalkResultInterrupt;
  }
  return MlirWalkResultAdvance;
}

static void find_dependents(rewrite_t *w) {
  tw_map_set(&w->dependents, w->maximum.ptr, 0, NULL);
  for (MlirOperation op = mlirOperationGetNextInBlock(w->maximum); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    mlirOperationWalk(op, note_if_dependent, w, MlirWalkPreOrder);
}

static bool depends(const rewrite_t *w, MlirValue value) {
  MlirOperation def = tw_def(value);
  return !mlirOperationIsNull(def) && tw_map_get(&w->dependents, def.ptr, NULL) != NULL;
}

static bool is_exponential(MlirOperation op) { return tw_op_is(op, TW_MATH_EXP2) || tw_op_is(op, TW_MATH_EXP); }

/* Whether no element is below zero, so that none is above a sum that it is part of. */
static bool is_weight(MlirValue value) {
  double number;
  MlirOperation op = tw_def(value);
  if (tw_known_float(value, &number))
    return number >= 0;
  if (mlirOperationIsNull(op) || is_exponential(op))
    return !mlirOperationIsNull(op);
  if (tw_op_is(op, TW_TILE_RESHAPE) || tw_op_is(op, TW_TILE_BROADCAST))
    return is_weight(mlirOperationGetOperand(op, 0));
  intptr_t first = tw_op_is(op, TW_ARITH_SELECT) ? 1 : 0;
  return (first == 1 || tw_op_is(op, TW_ARITH_MULF)) && is_weight(mlirOperationGetOperand(op, first)) &&
         is_weight(mlirOperationGetOperand(op, first + 1));
}

/* Whether groups of warps share few columns of a product of the loop: so they do of what is made of it. */
static bool has_narrow_groups(const rewrite_t *w) {
  TW_EACH_OP(op, w->body)
    if (tw_op_is_product(op) && tw_has_attr(op, TW_MMA_NARROW_GROUPS))
      return true;
  return false;
}

/* Whether a marked product's left operand, converted to fewer bits from what is `p` then, is a multiple by the
 * reference now. */
static bool takes_weights(rewrite_t *w, MlirOperation mma, int num_warps) {
  MlirOperation narrow = tw_def(mlirOperationGetOperand(mma, 0));
  if (!tw_is_async_mma(mma) || mlirOperationIsNull(narrow) || !tw_op_is(narrow, TW_ARITH_TRUNCF))
    return false;
  MlirType acc = mlirValueGetType(mlirOperationGetResult(mma, 0));
  tw_mma_split_t split;
  w->p = mlirOperationGetOperand(narrow, 0);
  tw_change_t change = tw_change_of(w->references, w->p);
  return depends(w, w->p) && is_weight(w->p) && change.kind == TW_FACTOR && tw_rank(mlirValueGetType(w->p)) == 2 &&
         tw_extent(mlirValueGetType(w->p), 1) >= (int64_t)w->async->lanes_per_row * w->async->columns_per_lane &&
         mlirTypeIsAF32(tw_element(mlirValueGetType(w->p))) && mlirOperationGetNumResults(tw_def(w->p)) == 1 &&
         w->async->split(tw_extent(acc, 0), tw_extent(mlirValueGetType(w->p), 1), has_narrow_groups(w), num_warps,
                         &split) &&
         (w->groups = split.n) > 0;
}

static bool find_weights(rewrite_t *w, int num_warps) {
  TW_EACH_OP(op, w->body)
    if (tw_op_is_product(op) && takes_weights(w, op, num_warps))
      return true;
  return false;
}

/* No weight may be too large for what it becomes. */
static MlirWalkResult lower_limit(MlirOperation op, void *user) {
  rewrite_t *w = user;
  if (!tw_op_is(op, TW_ARITH_TRUNCF) || tw_change_of(w->references, mlirOperationGetOperand(op, 0)).kind != TW_FACTOR)
    return MlirWalkResultAdvance;
  MlirType narrow = tw_element(mlirValueGetType(mlirOperationGetResult(op, 0)));
  if (tw_is_narrow(narrow))
    w->limit = fmin(w->limit, tw_narrow_top(narrow));
  return MlirWalkResultAdvance;
}

/* exp2 of what changes by as much as the reference did before this iteration: 1 if that is the one now. */
static void find_factors(rewrite_t *w) {
  TW_EACH_OP(op, w->body) {
    if (!is_exponential(op))
      continue;
    tw_change_t change = tw_change_of(w->references, mlirOperationGetResult(op, 0));
    double off = change.before + change.now;
    if (change.kind == TW_FACTOR && change.before != 0 && off < 1e-6 && off > -1e-6 &&
        depends(w, mlirOperationGetResult(op, 0))) {
      w->factors = tw_room(w->factors, (size_t)w->num_factors, sizeof *w->factors);
      w->factors[w->num_factors++] = mlirOperationGetResult(op, 0);
    }
  }
}

static MlirValue behind_views(MlirValue value) {
  for (MlirOperation op = tw_def(value);
       !mlirOperationIsNull(op) && (tw_op_is(op, TW_TILE_RESHAPE) || tw_op_is(op, TW_TILE_BROADCAST));
       op = tw_def(value))
    value = mlirOperationGetOperand(op, 0);
  return value;
}

static bool is_factor(const rewrite_t *w, MlirValue value) {
  value = behind_views(value);
  for (int i = 0; i < w->num_factors; i++)
    if (mlirValueEqual(value, w->factors[i]))
      return true;
  return false;
}

/* Which operand of a multiplication a factor is (through views); -1 if none. */
static int factor_operand(const rewrite_t *w, MlirOperation op) {
  if (mlirOperationIsNull(op) || !tw_op_is(op, TW_ARITH_MULF))
    return -1;
  return is_factor(w, mlirOperationGetOperand(op, 1)) ? 1 : is_factor(w, mlirOperationGetOperand(op, 0)) ? 0 : -1;
}

/* The carried %l whose next value is %l * factor + sums of %p. */
static void find_row_sum(rewrite_t *w) {
  w->sum_position = -1;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(w->loop); i++) {
    MlirOperation add = tw_def(tw_carried_next(w->loop, i));
    if (mlirOperationIsNull(add) || !tw_op_is(add, TW_ARITH_ADDF) || !tw_has_one_use(mlirOperationGetResult(add, 0)) ||
        !tw_has_one_use(tw_carried(w->loop, i)))
      continue;
    for (int side = 0; side < 2; side++) {
      MlirOperation faded = tw_def(mlirOperationGetOperand(add, side));
      MlirOperation sum = tw_def(behind_views(mlirOperationGetOperand(add, 1 - side)));
      int factor = factor_operand(w, faded);
      if (factor < 0 || mlirOperationIsNull(sum) || !tw_op_is_reduction(sum) ||
          !mlirValueEqual(mlirOperationGetOperand(faded, 1 - factor), tw_carried(w->loop, i)) ||
          !mlirValueEqual(mlirOperationGetOperand(sum, 0), w->p) || tw_attr_int(sum, "axis", 0) != 1 ||
          tw_attr_int(sum, "kind", 0) != TW_REDUCE_ADD ||
          tw_count(mlirValueGetType(tw_carried(w->loop, i))) != tw_extent(mlirValueGetType(w->p), 0))
        continue;
      w->row_sum = sum;
      w->sum_position = i;
      return;
    }
  }
}

/* ---- building -------------------------------------------------------------------------------------- */

static MlirValue build_reshape(const tw_builder_t *at, MlirValue x, intptr_t rank, const int64_t *shape) {
  return tw_reshape(at, tw_tile_type(tw_element(mlirValueGetType(x)), rank, shape), x);
}

/* Parts of a row that threads have: lanes, in each of the groups of warps that share it. */
static int64_t threads_per_row(const rewrite_t *w) { return w->groups * w->async->lanes_per_row; }

/* Sums over a row as far as a thread has them, of the columns that the layout of a sum gives it. */
static MlirValue build_partial_sums(const tw_builder_t *at, const rewrite_t *w, MlirValue p) {
  MlirType type = mlirValueGetType(p);
  int64_t lanes = w->async->lanes_per_row, neighbours = w->async->columns_per_lane, rows = tw_extent(type, 0);
  int64_t shape[TW_MAX_RANK] = {rows, w->groups}, together[] = {rows, threads_per_row(w)};
  int rank = w->groups > 1 ? 2 : 1;
  shape[rank++] = tw_extent(type, 1) / (threads_per_row(w) * neighbours);
  shape[rank++] = lanes;
  shape[rank++] = neighbours;
  MlirValue sums = build_reshape(at, p, rank, shape);
  sums = tw_sum_along(at, tw_sum_along(at, sums, rank - 1, true), rank - 3, true);
  return w->groups > 1 ? build_reshape(at, sums, 2, together) : sums;
}

/* A value per row as [rows, threads]. */
static MlirValue build_per_lane(const tw_builder_t *at, const rewrite_t *w, MlirValue x) {
  int64_t shape[] = {tw_count(mlirValueGetType(x)), 1};
  x = behind_views(x);
  x = build_reshape(at, x, 2, shape);
  shape[1] = threads_per_row(w);
  return tw_broadcast(at, tw_tile_type(tw_element(mlirValueGetType(x)), 2, shape), x);
}

/* A copy of what depends on the maximum; the map has what stands for it. */
static MlirValue copy_dependent(const tw_builder_t *at, const rewrite_t *w, MlirValue value, tw_map_t *map) {
  MlirValue known = tw_map_value(map, value);
  if (!mlirValueEqual(known, value) || !depends(w, value))
    return known;
  MlirOperation op = tw_def(value), clone = mlirOperationClone(op);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    mlirOperationSetOperand(clone, i, copy_dependent(at, w, mlirOperationGetOperand(op, i), map));
  if (mlirOperationIsNull(at->before))
    mlirBlockAppendOwnedOperation(at->block, clone);
  else
    mlirBlockInsertOwnedOperationBefore(at->block, at->before, clone);
  tw_map_one(map, value, mlirOperationGetResult(clone, 0));
  return mlirOperationGetResult(clone, 0);
}

/* !(sums <= limit), for any element that the warp has */
static MlirValue build_test(const tw_builder_t *at, const rewrite_t *w, MlirValue sums) {
  enum { OEQ = 1, UGT = 9 }; /* the second is true for NaN */
  MlirContext context = at->context;
  MlirType type = mlirValueGetType(sums), bools = tw_with_element(type, mlirIntegerTypeGet(context, 1));
  MlirValue operands[] = {sums, tw_const_float(at, type, w->limit)};
  MlirValue far =
      tw_op1_attr(at, "arith.cmpf", bools, 2, operands, "predicate", mlirIntegerAttrGet(tw_i64(context), UGT));
  if (w->running->guarded) { /* another number stands for a reference of -inf: it must not stay */
    MlirValue m = build_per_lane(at, w, tw_carried(w->loop, w->running->position));
    MlirValue limits[] = {m, tw_const_float(at, type, -INFINITY)};
    MlirValue none =
        tw_op1_attr(at, "arith.cmpf", bools, 2, limits, "predicate", mlirIntegerAttrGet(tw_i64(context), OEQ));
    far = tw_binary(at, "arith.ori", bools, far, none);
  }
  return tw_unary(at, "tile.warp_any", mlirIntegerTypeGet(context, 1), far);
}

static void build_yield(MlirBlock block, MlirLocation location, intptr_t n, const MlirValue *values) {
  tw_builder_t at = tw_build_at_end(block, location);
  tw_build(&at, "scf.yield", (tw_op_parts_t){.num_operands = n, .operands = values});
}

/* ---- rewriting ------------------------------------------------------------------------------------- */

/* Whether all users of an op's result are in the set. */
static bool only_used_in(MlirOperation op, const tw_map_t *set) {
  TW_EACH_USE(use, mlirOperationGetResult(op, 0))
    if (tw_map_get(set, mlirOpOperandGetOwner(use).ptr, NULL) == NULL)
      return false;
  return true;
}

static bool is_movable(MlirOperation op) {
  return mlirOperationGetNumRegions(op) == 0 && mlirOperationGetNumResults(op) == 1 && tw_is_arithmetic(op);
}

/* The ops that only serve to find the maximum, by address. */
static void find_own(const rewrite_t *w, tw_map_t *own) {
  size_t n = 0;
  for (MlirOperation op = mlirBlockGetFirstOperation(w->body); !mlirOperationEqual(op, w->maximum);
       op = mlirOperationGetNextInBlock(op))
    n++;
  MlirOperation *before = tw_must(malloc((n + 1) * sizeof *before)), op = mlirBlockGetFirstOperation(w->body);
  for (size_t i = 0; i < n; i++, op = mlirOperationGetNextInBlock(op))
    before[i] = op;
  tw_map_set(own, w->maximum.ptr, 0, NULL);
  for (size_t i = n; i-- > 0;)
    if (is_movable(before[i]) && only_used_in(before[i], own))
      tw_map_set(own, before[i].ptr, 0, NULL);
  free(before);
}

static MlirValue copy_own(const tw_builder_t *at, const tw_map_t *own, MlirValue value, tw_map_t *map) {
  MlirOperation op = tw_def(value);
  MlirValue known = tw_map_value(map, value);
  if (!mlirValueEqual(known, value) || mlirOperationIsNull(op) || tw_map_get(own, op.ptr, NULL) == NULL)
    return known;
  MlirOperation clone = mlirOperationClone(op);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    mlirOperationSetOperand(clone, i, copy_own(at, own, mlirOperationGetOperand(op, i), map));
  mlirBlockAppendOwnedOperation(at->block, clone);
  tw_map_one(map, value, mlirOperationGetResult(clone, 0));
  return mlirOperationGetResult(clone, 0);
}

enum { REFERENCE, WEIGHTS, SUMS, FACTORS }; /* what the branch yields */

static MlirValue *new_yields(const rewrite_t *w) {
  return tw_allocate((size_t)FACTORS + (size_t)w->num_factors, sizeof(MlirValue));
}

/* The iteration's softmax as the program has it. */
static MlirBlock build_branch(const rewrite_t *w, MlirLocation location) {
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  tw_builder_t at = tw_build_at_end(block, location);
  MlirValue *yields = new_yields(w), maximum = mlirOperationGetResult(w->maximum, 0);
  tw_map_t own = {0}, map = {0};
  find_own(w, &own);
  yields[REFERENCE] = copy_own(&at, &own, maximum, &map);
  yields[WEIGHTS] = copy_dependent(&at, w, w->p, &map);
  yields[SUMS] = build_partial_sums(&at, w, yields[WEIGHTS]);
  for (int i = 0; i < w->num_factors; i++)
    yields[FACTORS + i] = copy_dependent(&at, w, w->factors[i], &map);
  build_yield(block, location, FACTORS + w->num_factors, yields);
  free(yields);
  tw_map_free(&own);
  tw_map_free(&map);
  return block;
}

/* Puts the test and the branch before `anchor`; returns the branch. */
static MlirOperation build_softmax(rewrite_t *w, MlirOperation anchor) {
  tw_builder_t at = tw_build_before(anchor);
  at.location = mlirOperationGetLocation(w->maximum);
  MlirValue *yields = new_yields(w), m = tw_carried(w->loop, w->running->position);
  tw_map_t map = {0};
  tw_map_one(&map, mlirOperationGetResult(w->maximum, 0), m);
  yields[REFERENCE] = m;
  yields[WEIGHTS] = copy_dependent(&at, w, w->p, &map);
  yields[SUMS] = build_partial_sums(&at, w, yields[WEIGHTS]);
  tw_map_free(&map);
  w->far = build_test(&at, w, yields[SUMS]);
  MlirBlock near = mlirBlockCreate(0, NULL, NULL);
  tw_builder_t in = tw_build_at_end(near, at.location);
  for (int i = 0; i < w->num_factors; i++)
    yields[FACTORS + i] = tw_const_float(&in, mlirValueGetType(w->factors[i]), 1);
  build_yield(near, at.location, FACTORS + w->num_factors, yields);
  free(yields);
  return tw_build_if(&at, w->far, build_branch(w, at.location), near);
}

/* The first op behind the maximum, the weights and the factors. */
static MlirOperation find_anchor(const rewrite_t *w) {
  MlirOperation anchor = w->maximum;
  for (MlirOperation op = w->maximum; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    bool last = mlirOperationEqual(op, tw_def(w->p));
    for (int i = 0; i < w->num_factors; i++)
      last = last || mlirOperationEqual(op, tw_def(w->factors[i]));
    if (last)
      anchor = op;
  }
  return mlirOperationGetNextInBlock(anchor);
}

/* What depends on the maximum now follows the branch; what the branch made superfluous goes. */
static void follow_branch(rewrite_t *w, MlirOperation branch, MlirOperation anchor) {
  for (MlirOperation op = w->maximum, next; !mlirOperationEqual(op, branch); op = next) {
    next = mlirOperationGetNextInBlock(op);
    if (tw_map_get(&w->dependents, op.ptr, NULL) != NULL && !mlirOperationEqual(op, w->maximum))
      mlirOperationMoveBefore(op, anchor);
  }
  MlirOperation old = tw_def(w->p);
  mlirValueReplaceAllUsesOfWith(w->p, mlirOperationGetResult(branch, WEIGHTS));
  w->p = mlirOperationGetResult(branch, WEIGHTS);
  tw_erase_dead(old);
  for (int i = 0; i < w->num_factors; i++) {
    old = tw_def(w->factors[i]);
    mlirValueReplaceAllUsesOfWith(w->factors[i], mlirOperationGetResult(branch, FACTORS + i));
    w->factors[i] = mlirOperationGetResult(branch, FACTORS + i);
    tw_erase_dead(old);
  }
}

/* Multiplications of large tiles by a factor happen only where it is not 1. */
static void rescale_rarely(const rewrite_t *w) {
  tw_ops_t products = {NULL, 0};
  int64_t rows = tw_extent(mlirValueGetType(w->p), 0);
  TW_EACH_OP(op, w->body)
    if (factor_operand(w, op) >= 0 &&
        tw_count(mlirValueGetType(mlirOperationGetResult(op, 0))) > rows * w->async->lanes_per_row)
      tw_ops_add(&products, op);
  for (int i = 0; i < products.count; i++) {
    MlirValue rest = mlirOperationGetOperand(products.at[i], 1 - factor_operand(w, products.at[i]));
    MlirValue product = mlirOperationGetResult(products.at[i], 0);
    tw_builder_t at = tw_build_before(products.at[i]);
    MlirBlock then = mlirBlockCreate(0, NULL, NULL), otherwise = mlirBlockCreate(0, NULL, NULL);
    MlirOperation clone = mlirOperationClone(products.at[i]);
    mlirBlockAppendOwnedOperation(then, clone);
    MlirValue scaled = mlirOperationGetResult(clone, 0);
    build_yield(then, at.location, 1, &scaled);
    build_yield(otherwise, at.location, 1, &rest);
    MlirOperation branch = tw_build_if(&at, w->far, then, otherwise);
    mlirValueReplaceAllUsesOfWith(product, mlirOperationGetResult(branch, 0));
    mlirOperationDestroy(products.at[i]);
  }
  tw_ops_free(&products);
}

/* The carried row sums as they start, split: a loop before may have left them so. */
static MlirValue split_init(const tw_builder_t *at, const rewrite_t *w, MlirValue init, MlirType type) {
  double number;
  if (tw_known_float(init, &number) && number == 0)
    return tw_const_float(at, type, 0);
  MlirOperation sum = tw_def(behind_views(init));
  if (!mlirOperationIsNull(sum) && tw_op_is_reduction(sum) && tw_attr_int(sum, "kind", 0) == TW_REDUCE_ADD &&
      mlirTypeEqual(mlirValueGetType(mlirOperationGetOperand(sum, 0)), type))
    return mlirOperationGetOperand(sum, 0);
  MlirValue share = tw_const_float(at, type, 1.0 / (double)threads_per_row(w));
  return tw_binary(at, "arith.mulf", type, build_per_lane(at, w, init), share);
}

/* %l * factor + sums becomes the same on the split sums, which are added up behind the loop. */
static void split_row_sum(rewrite_t *w, MlirOperation branch) {
  intptr_t position = w->sum_position;
  MlirValue sums = mlirOperationGetResult(branch, SUMS);
  tw_builder_t before = tw_build_before(w->loop);
  MlirValue init = split_init(&before, w, tw_carried_init(w->loop, position), mlirValueGetType(sums));
  MlirOperation add = tw_def(tw_carried_next(w->loop, position));
  int side = factor_operand(w, tw_def(mlirOperationGetOperand(add, 0))) >= 0 ? 0 : 1;
  MlirOperation faded = tw_def(mlirOperationGetOperand(add, side));
  MlirValue factor = mlirOperationGetOperand(faded, factor_operand(w, faded));
  w->loop = tw_carry_more(w->loop, 1, &init);
  MlirValue carried = tw_carried(w->loop, mlirOperationGetNumResults(w->loop) - 1);
  tw_builder_t at = tw_build_before(tw_loop_yield(w->loop));
  MlirType type = mlirValueGetType(sums);
  MlirValue next = tw_binary(&at, "arith.mulf", type, carried, build_per_lane(&at, w, factor));
  next = tw_binary(&at, "arith.addf", type, next, sums);
  mlirOperationSetOperand(tw_loop_yield(w->loop), position, tw_carried(w->loop, position));
  tw_extend_yield(w->body, 1, &next);
  tw_erase_dead(add);
  tw_builder_t after = tw_build_before(mlirOperationGetNextInBlock(w->loop));
  MlirValue old = mlirOperationGetResult(w->loop, position), sum;
  sum = tw_sum_along(&after, mlirOperationGetResult(w->loop, mlirOperationGetNumResults(w->loop) - 1), 1, true);
  int64_t shape[TW_MAX_RANK];
  intptr_t rank = tw_rank(mlirValueGetType(old));
  for (intptr_t d = 0; d < rank; d++)
    shape[d] = tw_extent(mlirValueGetType(old), d);
  mlirValueReplaceAllUsesOfWith(old, rank == 1 ? sum : build_reshape(&after, sum, rank, shape));
}

static void rewrite(tw_running_max_t *references, const tw_running_t *running, int num_warps) {
  rewrite_t w = {.references = references,
                 .running = running,
                 .loop = running->loop,
                 .maximum = running->maximum,
                 .async = tw_async_mma_of(running->loop),
                 .limit = MAX_SUM};
  w.body = tw_loop_body(w.loop);
  find_dependents(&w);
  if (!find_weights(&w, num_warps)) {
    tw_map_free(&w.dependents);
    return;
  }
  mlirOperationWalk(w.loop, lower_limit, &w, MlirWalkPreOrder);
  find_factors(&w);
  find_row_sum(&w);
  MlirOperation anchor = find_anchor(&w), branch = build_softmax(&w, anchor);
  follow_branch(&w, branch, anchor);
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(w.maximum, 0), mlirOperationGetResult(branch, REFERENCE));
  tw_erase_dead(w.maximum);
  rescale_rarely(&w);
  if (w.sum_position >= 0)
    split_row_sum(&w, branch);
  free(w.factors);
  tw_map_free(&w.dependents);
}

/* ---- scores that move with the loop --------------------------------------------------------------- */

/* Whether a number is made of the position in the loop, and of nothing from memory. */
static bool is_of_position(MlirOperation loop, MlirValue value) {
  MlirBlock body = tw_loop_body(loop);
  tw_slice_t slice = {.block = body};
  tw_slice_add(&slice, value);
  bool is = tw_slice_reads(&slice, tw_loop_iv(loop));
  TW_EACH_OP(op, body)
    is = is && !(tw_slice_has(&slice, op) && (tw_op_loads(op) || tw_op_is_product(op)));
  tw_slice_free(&slice);
  return is;
}

/* A walk over what the scores are made of in a body: each op once. */
typedef struct {
  MlirOperation loop;
  tw_map_t scores, terms; /* ops that were met as those, by address */
} moving_t;

/* Whether the op that makes the value is one of the body that was not met before. */
static bool is_new(const moving_t *m, tw_map_t *met, MlirOperation op) {
  if (mlirOperationIsNull(op) || !mlirBlockEqual(mlirOperationGetBlock(op), tw_loop_body(m->loop)) ||
      tw_map_get(met, op.ptr, NULL) != NULL)
    return false;
  tw_map_set(met, op.ptr, 0, NULL);
  return true;
}

/* Whether a value is a position as a float, or follows one: a choice between two, as of a mask, does not. */
static bool follows_position(moving_t *m, MlirValue value) {
  MlirOperation op = tw_def(value);
  if (!is_new(m, &m->terms, op))
    return false;
  if (tw_op_is(op, TW_ARITH_SITOFP) || tw_op_is(op, TW_ARITH_UITOFP))
    return is_of_position(m->loop, mlirOperationGetOperand(op, 0));
  bool passes = tw_op_form(op) == TW_FORM_VIEW || tw_op_form(op) == TW_FORM_ELEMENTWISE;
  for (intptr_t i = 0; passes && !tw_op_is(op, TW_ARITH_SELECT) && i < mlirOperationGetNumOperands(op); i++)
    if (follows_position(m, mlirOperationGetOperand(op, i)))
      return true;
  return false;
}

/* Whether a term of the scores follows the position in the loop, as a bias by distance: then their maximum moves in
 * most iterations, and what is done rarely for others is done by each warp there, on top of the test for it. */
static bool has_moving_term(moving_t *m, MlirValue scores) {
  MlirOperation op = tw_def(scores);
  if (!is_new(m, &m->scores, op) || tw_op_is_product(op) || tw_op_loads(op))
    return false;
  bool sum = tw_op_class(op) == TW_CLASS_FLOAT_SUM;
  for (intptr_t i = tw_op_is(op, TW_ARITH_SELECT) ? 1 : 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirValue operand = mlirOperationGetOperand(op, i);
    if ((sum && follows_position(m, operand)) || has_moving_term(m, operand))
      return true;
  }
  return false;
}

/* Whether a reference that is kept would be left behind by the scores. */
static bool stays_behind(const tw_running_t *running) {
  moving_t m = {.loop = running->loop};
  bool moves = has_moving_term(&m, mlirOperationGetResult(running->maximum, 0));
  tw_map_free(&m.scores);
  tw_map_free(&m.terms);
  if (moves)
    tw_op_remark(running->maximum, "is found in each iteration, for a term of its scores moves with the loop");
  return moves;
}

/* ---- the pass ------------------------------------------------------------------------------------ */

bool tw_lazy_rescale(MlirOperation func) {
  int num_warps = (int)tw_num_warps(func, 0);
  if (!tw_has_async_mma(func) || tw_hint_lazy_rescale(func, 1) == 0)
    return true;
  tw_running_max_t references;
  if (tw_running_max_of(func, &references)) {
    for (int i = 0; i < references.num; i++)
      if (!stays_behind(&references.running[i]))
        rewrite(&references, &references.running[i], num_warps);
  } else if (references.num > 0) {
    tw_op_remark(references.obstacle, "depends on the running maximum itself: the loop finds it in each iteration");
  }
  tw_running_max_free(&references);
  return true;
}
