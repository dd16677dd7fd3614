/* canonicalize.c - tile-canonicalize: programs that compute the same get the same IR, however they were spelled
 *
 * Before: a product's loop counts by itself, loads a step ahead, and adds products of their own.
 *
 *   %a0 = tile.load %A[%i, 0]
 *   %r:3 = scf.while (%acc = %zero, %k = 1, %a = %a0) {
 *     scf.condition(%k < %n) %acc, %k, %a
 *   } do {
 *     %next = tile.load %A[%i, %k]
 *     %b = tile.load %B[%k - 1, %j]
 *     %p = tile.mma %a, %b, %zero
 *     scf.yield %acc + %p, %k + 1, %next
 *   }
 *   %b = tile.load %B[%n - 1, %j]
 *   %s = %r#0 + tile.mma %r#2, %b, %zero
 *
 * After:
 *
 *   %s = scf.for %k = 0 to %n iter_args(%acc = %zero) {
 *     %a = tile.load %A[%i, %k]
 *     %b = tile.load %B[%k, %j]
 *     scf.yield tile.mma %a, %b, %acc
 *   }
 *
 * The forms, each in a file, in the order in which they are found: elements read as numbers (load_element.c), loops
 * that a `break` ends (loop_exits.c), counted `while` (while_to_for.c), loops over the steps of all tiles
 * (split_count.c), over every n-th number (count_steps.c) or tile (count_strides.c), values that count up beside the
 * induction variable (induction.c), sums of products (add_to_product.c), products that are rounded (narrow_products.c),
 * products of a batch of one (batch_of_one.c), sums that are read transposed (turn_products.c), tiles carried to be
 * early, and steps beside the loop or several in one (reroll.c, roll_rest.c), and last, when gathers are loads,
 * branches that do the same (merge_branches.c).
 *
 * What must hold: the ops are legal. A step is moved or rolled up only if the loop writes no array. The result is the
 * same, bit for bit, but for the order in which a product's sum is added up. */
#include "lowering/common/canonicalize.h"
#include "lowering/common/gather_to_load.h"
#include "lowering/common/match_step.h"
#include "lowering/loops.h"
#include "lowering/passes.h"
#include "lowering/ranges.h"

/* Steps beside a loop that become its own: more would be a long text unrolled by hand. */
enum { MOST_ROUNDS = 8 };

static bool is_while(MlirOperation op) { return tw_op_is(op, TW_SCF_WHILE); }

static void count_by_for(MlirOperation func) {
  tw_ops_t loops = tw_ops_in(func, is_while, MlirWalkPostOrder);
  for (int i = 0; i < loops.count; i++) {
    tw_test_exits(loops.at[i]);
    if (!tw_while_to_for(loops.at[i]) && tw_has_op_like(loops.at[i], tw_op_is_product))
      tw_op_remark(loops.at[i], "runs one step after the other, for it may end at any of them: `for` over a range, or "
                                "`while` with a count that each step changes by the same, lets steps overlap");
  }
  tw_ops_free(&loops);
}

static bool is_comparison(MlirOperation op) {
  return tw_op_is(op, TW_ARITH_CMPI) && !tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0)));
}

/* Whether it asks whether a number is negative that the branches around it have positive, as of an index. */
static bool is_never(MlirOperation comparison) {
  int64_t bound;
  return tw_attr_int(comparison, "predicate", -1) == TW_SLT &&
         tw_known_int(mlirOperationGetOperand(comparison, 1), &bound) && bound == 0 &&
         tw_least_at(comparison, mlirOperationGetOperand(comparison, 0)) >= 0;
}

/* What a loop's count tells of its numbers, as that they are not negative. */
static void fold_comparisons(MlirOperation func) {
  tw_ops_t comparisons = tw_ops_in(func, is_comparison, MlirWalkPreOrder);
  for (int i = 0; i < comparisons.count; i++) {
    MlirValue result = mlirOperationGetResult(comparisons.at[i], 0);
    tw_builder_t at = tw_build_before(comparisons.at[i]);
    bool holds = false;
    if (tw_is_decided(result, &holds) || is_never(comparisons.at[i]))
      mlirValueReplaceAllUsesOfWith(result, tw_const_int(&at, mlirValueGetType(result), holds));
  }
  tw_ops_free(&comparisons);
}

/* Whether it may be one number alone, such as t % n // n, or its operand, such as t % n % n. */
static bool may_be_known(MlirOperation op) {
  tw_op_class_t class = tw_op_class(op);
  bool divides = class == TW_CLASS_QUOTIENT || class == TW_CLASS_CEILING || class == TW_CLASS_REST;
  return (divides || class == TW_CLASS_EXTREME || tw_op_is(op, TW_ARITH_ANDI)) &&
         mlirTypeIsAInteger(mlirValueGetType(mlirOperationGetResult(op, 0)));
}

/* Whether it divides a number that is less than what it is divided by, or keeps all bits that it has. */
static bool leaves_all(MlirOperation op) {
  bool keeps = tw_op_is(op, TW_ARITH_ANDI);
  int64_t ones;
  if (keeps && (!tw_known_int(mlirOperationGetOperand(op, 1), &ones) || ones < 0 || (ones & (ones + 1)) != 0))
    return false;
  tw_range_t x = tw_range_of(mlirOperationGetOperand(op, 0)), y = tw_range_of(mlirOperationGetOperand(op, 1));
  return (keeps || tw_op_class(op) == TW_CLASS_REST) && x.low >= 0 && x.high < y.low + keeps;
}

/* Which group of tiles a tile is in, where there is one group alone, and which tile of the group it is. */
static void fold_numbers(MlirOperation func) {
  tw_ops_t ops = tw_ops_in(func, may_be_known, MlirWalkPreOrder);
  for (int i = 0; i < ops.count; i++) {
    MlirValue result = mlirOperationGetResult(ops.at[i], 0);
    tw_builder_t at = tw_build_before(ops.at[i]);
    tw_range_t range = tw_range_of(result);
    if (range.low == range.high)
      mlirValueReplaceAllUsesOfWith(result, tw_const_int(&at, mlirValueGetType(result), range.low));
    else if (leaves_all(ops.at[i]))
      mlirValueReplaceAllUsesOfWith(result, mlirOperationGetOperand(ops.at[i], 0));
  }
  tw_ops_free(&ops);
}

static void each_for(MlirOperation func, void (*change)(MlirOperation loop)) {
  tw_ops_t loops = tw_loops_in(func, MlirWalkPostOrder);
  for (int i = 0; i < loops.count; i++)
    change(loops.at[i]);
  tw_ops_free(&loops);
}

static bool roll_once(MlirOperation loop) {
  return tw_load_in_place(loop) || tw_roll_behind(loop) || tw_roll_in_front(loop) || tw_roll_rest(loop) ||
         tw_reroll(loop);
}

/* It is compared step by step with what stands beside it, value by value. */
static void tell_many(MlirOperation loop) {
  if (mlirOperationGetNumResults(loop) > TW_MOST_CARRIED && tw_has_op_like(loop, tw_op_loads))
    tw_op_remark(loop, "carries more than %d values: steps of it beside the loop, or several in one, stay as they are",
                 TW_MOST_CARRIED);
}

static void roll(MlirOperation loop) {
  bool may_write = tw_may_write_arrays(loop), rolled = !may_write;
  if (rolled)
    tell_many(loop);
  for (int i = 0; rolled && i < MOST_ROUNDS; i++)
    rolled = roll_once(loop);
  if (tw_has_op_like(loop, tw_op_is_product))
    tw_tell_carried_tiles(loop);
}

bool tw_run_canonicalize(MlirOperation func) {
  tw_load_elements(func);
  count_by_for(func);
  fold_comparisons(func);
  each_for(func, tw_split_count);
  each_for(func, tw_count_steps);
  each_for(func, tw_simplify_inductions);
  each_for(func, tw_count_strides);
  tw_add_to_products(func);
  tw_narrow_products(func);
  tw_make_matrices(func);
  tw_turn_products(func);
  each_for(func, roll);
  fold_numbers(func); /* behind what compares steps, of which the first one has a number that is known */
  tw_gather_to_load(func);
  tw_merge_branches(func);
  return true;
}
