/* loop_exits.c - in tile-canonicalize: what ends a loop is tested before each step, by an order of numbers
 *
 *   before   scf.while (%k = 0, %x = %a, %done = false) {    after   %end = max(%n, 1)
 *              scf.condition(!%done) %k, %x                          scf.while (%k = 0, %x = %a) {
 *            } do {                                                    scf.condition(%k < %end) %k, %x
 *              ... a step                                            } do {
 *              %next = %k + 1                                          ... a step
 *              yield %next, %y, (%next >= %n)                          yield %k + 1, %y
 *            }                                                       }
 *
 * A `break` at the end of a body, or of what is left of it behind a step of the count, leaves the first step to be
 * done. One at the head of a body, around which a branch skips the rest, becomes a condition besides. Numbers that
 * differ until the end, %k != %n, are smaller until then. while_to_for.c counts such loops.
 *
 * What must hold: the count changes by a known number, the bound in no step, and no sum of the two wraps; a count that
 * ends a loop when it meets the bound cannot start behind it. Or each step loads by the count as an index: a number
 * that wraps is none. What a step computes besides for its `break`, behind the test, is arithmetic that is not read
 * behind the loop. */
#include "lowering/common/canonicalize.h"
#include "lowering/loops.h"
#include "lowering/ranges.h"

typedef struct {
  MlirOperation loop;
  MlirBlock before, after;
  intptr_t flag;    /* of the carried values: what ends the loop when it is true */
  MlirValue ends;   /* what a step leaves there */
  MlirValue others; /* the condition without it; null if there is nothing else */
  intptr_t counted; /* which of the carried values counts */
  int64_t step;     /* by how much */
} tested_t;

static MlirOperation condition_of(const tested_t *t) { return mlirBlockGetTerminator(t->before); }
static MlirOperation yield_of(const tested_t *t) { return mlirBlockGetTerminator(t->after); }

static intptr_t position_in(MlirBlock block, MlirValue value) {
  bool is = mlirValueIsABlockArgument(value) && mlirBlockEqual(mlirBlockArgumentGetOwner(value), block);
  return is ? mlirBlockArgumentGetArgNumber(value) : -1;
}

/* The carried value that a step knows as an argument; -1. */
static intptr_t carried_position(const tested_t *t, MlirValue value) {
  intptr_t at = position_in(t->after, value);
  return at < 0 ? -1 : position_in(t->before, mlirOperationGetOperand(condition_of(t), 1 + at));
}

/* ---- what ends it ------------------------------------------------------------------------------------ */

/* Whether the flag is read but where it is negated: what a step has of it is false. */
static bool is_read_inside(const tested_t *t, MlirOperation negation) {
  TW_EACH_USE(use, mlirBlockGetArgument(t->before, t->flag)) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    intptr_t handed_on = mlirOpOperandGetOperandNumber(use) - 1;
    if (!mlirOperationEqual(user, negation) &&
        (!mlirOperationEqual(user, condition_of(t)) || !tw_is_unused(mlirBlockGetArgument(t->after, handed_on))))
      return true;
  }
  return false;
}

/* !%flag, of a value that the loop carries and that is false at first: then it is noted. */
static bool read_flag(tested_t *t, MlirValue condition) {
  MlirOperation op = tw_def(condition);
  int64_t one, first;
  if (mlirOperationIsNull(op) || !tw_op_is(op, TW_ARITH_XORI) || !tw_known_int(mlirOperationGetOperand(op, 1), &one) ||
      one == 0)
    return false;
  t->flag = position_in(t->before, mlirOperationGetOperand(op, 0));
  if (t->flag < 0 || !tw_known_int(mlirOperationGetOperand(t->loop, t->flag), &first) || first != 0)
    return false;
  t->ends = mlirOperationGetOperand(yield_of(t), t->flag);
  return !is_read_inside(t, op);
}

static bool read_condition(tested_t *t) {
  MlirValue condition = mlirOperationGetOperand(condition_of(t), 0);
  MlirOperation op = tw_def(condition);
  t->others = (MlirValue){NULL};
  if (read_flag(t, condition))
    return true;
  for (int side = 0; side < 2 && !mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_ANDI); side++) {
    t->others = mlirOperationGetOperand(op, 1 - side);
    if (read_flag(t, mlirOperationGetOperand(op, side)))
      return true;
  }
  return false;
}

/* Whether nothing reads behind the loop what it leaves in the place of a carried value. */
static bool is_read_behind(const tested_t *t, intptr_t carried) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(t->loop); i++)
    if (position_in(t->before, mlirOperationGetOperand(condition_of(t), 1 + i)) == carried &&
        !tw_is_unused(mlirOperationGetResult(t->loop, i)))
      return true;
  return false;
}

/* ---- a branch around the rest of a step -------------------------------------------------------------- */

/* Arithmetic that may be done where the program does not: no quotient by what may be zero then. */
static bool is_harmless(MlirOperation op) {
  tw_op_class_t class = tw_op_class(op);
  bool divides = class == TW_CLASS_QUOTIENT || class == TW_CLASS_CEILING || class == TW_CLASS_REST;
  int64_t divisor;
  return tw_is_arithmetic(op) && mlirOperationGetNumRegions(op) == 0 &&
         (!divides || (tw_known_int(mlirOperationGetOperand(op, 1), &divisor) && divisor != 0));
}

/* Whether a block has nothing else. */
static bool only_computes(MlirBlock block) {
  TW_EACH_OP(op, block)
    if (!mlirOperationEqual(op, mlirBlockGetTerminator(block)) && !is_harmless(op))
      return false;
  return true;
}

/* The branches of a step upon what ends the loop. */
static bool branches_at_end(const tested_t *t, MlirOperation op) {
  return tw_op_is(op, TW_SCF_IF) && mlirValueEqual(mlirOperationGetOperand(op, 0), t->ends);
}

static MlirBlock taken(MlirOperation branch) { return tw_region_block(branch, 0); }
static MlirBlock rest_of(MlirOperation branch) { return tw_region_block(branch, 1); }

/* Whether results of a branch are only handed to the next step, in places that nothing reads when this was the last
 * one; with `unchanged`, or those that the carried value keeps then. */
static bool is_dead_at_end(const tested_t *t, MlirOperation branch, bool unchanged) {
  MlirOperation end = mlirBlockGetTerminator(taken(branch));
  for (intptr_t i = 0; i < mlirOperationGetNumResults(branch); i++)
    TW_EACH_USE(use, mlirOperationGetResult(branch, i)) {
      intptr_t place = mlirOpOperandGetOperandNumber(use);
      bool kept = unchanged && carried_position(t, mlirOperationGetOperand(end, i)) == place;
      if (!mlirOperationEqual(mlirOpOperandGetOwner(use), yield_of(t)) || (!kept && is_read_behind(t, place)))
        return false;
    }
  return true;
}

/* What stands behind the test is done in any case. */
static void inline_rest(MlirOperation branch) {
  MlirBlock rest = rest_of(branch);
  MlirOperation end = mlirBlockGetTerminator(rest);
  for (MlirOperation op = mlirBlockGetFirstOperation(rest), next; !mlirOperationEqual(op, end); op = next) {
    next = mlirOperationGetNextInBlock(op);
    mlirOperationMoveBefore(op, branch);
  }
  for (intptr_t i = 0; i < mlirOperationGetNumResults(branch); i++)
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(branch, i), mlirOperationGetOperand(end, i));
  mlirOperationDestroy(branch);
}

/* ---- a test at the head of a step -------------------------------------------------------------------- */

/* Whether a value is computed from what the loop carries and from what is outside of it. */
static bool is_of_head(const tested_t *t, MlirValue value) {
  if (!tw_defined_in(value, t->after))
    return true;
  MlirOperation op = tw_def(value);
  if (mlirOperationIsNull(op))
    return carried_position(t, value) >= 0;
  bool is = is_harmless(op);
  for (intptr_t i = 0; is && i < mlirOperationGetNumOperands(op); i++)
    is = is_of_head(t, mlirOperationGetOperand(op, i));
  return is;
}

/* Whether a step is arithmetic and one branch, which does nothing in the last one. Its results that are read behind the
 * loop are what the step began with then. */
static bool skips_rest(const tested_t *t, MlirOperation *branch) {
  *branch = tw_null_op();
  TW_EACH_OP(op, t->after) {
    if (branches_at_end(t, op) && mlirOperationIsNull(*branch))
      *branch = op;
    else if (!mlirOperationEqual(op, yield_of(t)) && !is_harmless(op))
      return false;
  }
  if (mlirOperationIsNull(*branch) || mlirBlockIsNull(rest_of(*branch)) || !only_computes(taken(*branch)) ||
      !is_dead_at_end(t, *branch, true))
    return false;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(yield_of(t)); i++) {
    MlirValue next = mlirOperationGetOperand(yield_of(t), i);
    bool by_branch = mlirOperationEqual(tw_def(next), *branch);
    if (i != t->flag && !by_branch && carried_position(t, next) != i && is_read_behind(t, i))
      return false;
  }
  return true;
}

static MlirValue inverted(const tw_builder_t *at, MlirValue condition) {
  static const int other[] = {[TW_EQ] = TW_NE,   [TW_NE] = TW_EQ,   [TW_SLT] = TW_SGE, [TW_SLE] = TW_SGT,
                              [TW_SGT] = TW_SLE, [TW_SGE] = TW_SLT, [TW_ULT] = TW_UGE, [TW_ULE] = TW_UGT,
                              [TW_UGT] = TW_ULE, [TW_UGE] = TW_ULT};
  MlirOperation op = tw_def(condition);
  MlirType type = mlirValueGetType(condition);
  if (mlirOperationIsNull(op) || !tw_op_is(op, TW_ARITH_CMPI))
    return tw_binary(at, "arith.xori", type, condition, tw_const_int(at, type, 1));
  return tw_compare(at, other[tw_attr_int(op, "predicate", 0)], mlirOperationGetOperand(op, 0),
                    mlirOperationGetOperand(op, 1));
}

/* The condition becomes `more`, and what is left of the old one; nothing ends the loop by the flag any more. */
static void go_on_while(const tested_t *t, const tw_builder_t *at, MlirValue more) {
  if (!mlirValueIsNull(t->others))
    more = tw_binary(at, "arith.andi", mlirValueGetType(more), t->others, more);
  mlirOperationSetOperand(condition_of(t), 0, more);
  mlirOperationSetOperand(yield_of(t), t->flag, mlirOperationGetOperand(t->loop, t->flag));
}

static void test_at_head(const tested_t *t, MlirOperation branch) {
  tw_builder_t at = tw_build_before(condition_of(t));
  tw_map_t map = {0};
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(t->after); i++)
    tw_map_one(&map, mlirBlockGetArgument(t->after, i), mlirOperationGetOperand(condition_of(t), 1 + i));
  MlirValue ends = tw_copy_slice(&at, t->ends, t->after, &map);
  tw_map_free(&map);
  MlirValue more = inverted(&at, ends);
  tw_erase_dead(tw_def(ends));
  inline_rest(branch);
  go_on_while(t, &at, more);
}

/* ---- a test at the end of a step --------------------------------------------------------------------- */

/* %k + number: which carried value k is, and the number. */
static bool reads_count(tested_t *t, MlirValue next, intptr_t carried) {
  MlirOperation op = tw_def(next);
  bool subtracts = !mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_SUBI);
  if (mlirOperationIsNull(op) || (!subtracts && !tw_op_is(op, TW_ARITH_ADDI)) ||
      !tw_known_int(mlirOperationGetOperand(op, 1), &t->step) ||
      carried_position(t, mlirOperationGetOperand(op, 0)) != carried)
    return false;
  t->counted = carried;
  t->step = subtracts ? -t->step : t->step;
  return t->step != 0 && t->step > INT32_MIN && t->step < INT32_MAX && tw_bits(mlirValueGetType(next)) >= 32;
}

/* Whether a value is the count, before its step or behind it. */
static bool finds_count(tested_t *t, MlirValue value, bool *is_next) {
  intptr_t carried = carried_position(t, value);
  *is_next = carried < 0;
  if (carried >= 0)
    return reads_count(t, mlirOperationGetOperand(yield_of(t), carried), carried);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(yield_of(t)); i++)
    if (mlirValueEqual(mlirOperationGetOperand(yield_of(t), i), value) && reads_count(t, value, i))
      return true;
  return false;
}

static bool is_index_of_load(MlirOperation op, MlirBlock block, MlirValue count) {
  bool is = false;
  tw_slice_t slice = {.block = block};
  for (intptr_t i = 1; tw_op_loads(op) && i < mlirOperationGetNumOperands(op); i++)
    tw_slice_add(&slice, mlirOperationGetOperand(op, i));
  is = tw_slice_reads(&slice, count);
  tw_slice_free(&slice);
  return is;
}

/* Whether each step loads by an index that is made of the count. */
static bool counts_index(const tested_t *t) {
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(t->after); i++)
    if (carried_position(t, mlirBlockGetArgument(t->after, i)) == t->counted)
      TW_EACH_OP(op, t->after)
        if (is_index_of_load(op, t->after, mlirBlockGetArgument(t->after, i)))
          return true;
  return false;
}

static MlirValue first_of(const tested_t *t) { return mlirOperationGetOperand(t->loop, t->counted); }

/* Whether numbers of a type have room above the range, or below. */
static bool has_room(MlirValue value, int64_t by) {
  tw_range_t range = tw_range_of(value);
  int64_t most = tw_bits(mlirValueGetType(value)) > 32 ? INT64_MAX / 2 : INT32_MAX;
  return range.high <= most - (by > 0 ? by : 0) && range.low >= -most - 1 - (by < 0 ? by : 0);
}

/* Whether a count in steps of one that begins at `first` comes to `bound`. */
static bool meets(const tested_t *t, MlirValue first, int64_t behind, MlirValue bound) {
  tw_range_t from = tw_range_of(first), to = tw_range_of(bound);
  if (t->step != 1 && t->step != -1)
    return false;
  return (t->step > 0 ? to.low >= from.high + behind : to.high <= from.low + behind) || counts_index(t);
}

/* The comparison that holds while a loop goes on, of the count with a bound; the predicate of an order. */
static bool reads_order(tested_t *t, MlirOperation compare, bool ends, int *predicate, bool *is_next,
                        MlirValue *bound) {
  static const int other[] = {[TW_EQ] = TW_NE,   [TW_NE] = TW_EQ,   [TW_SLT] = TW_SGE,
                              [TW_SLE] = TW_SGT, [TW_SGT] = TW_SLE, [TW_SGE] = TW_SLT};
  static const int turned[] = {[TW_EQ] = TW_EQ,   [TW_NE] = TW_NE,   [TW_SLT] = TW_SGT,
                               [TW_SLE] = TW_SGE, [TW_SGT] = TW_SLT, [TW_SGE] = TW_SLE};
  *predicate = (int)tw_attr_int(compare, "predicate", TW_ULT);
  if (*predicate >= TW_ULT)
    return false;
  *predicate = ends ? other[*predicate] : *predicate;
  MlirValue x = mlirOperationGetOperand(compare, 0);
  *bound = mlirOperationGetOperand(compare, 1);
  if (!finds_count(t, x, is_next)) {
    if (!finds_count(t, *bound, is_next))
      return false;
    *predicate = turned[*predicate];
    *bound = x;
  }
  if (tw_defined_in(*bound, t->before) || tw_defined_in(*bound, t->after))
    return false;
  if (*predicate == TW_NE && meets(t, first_of(t), *is_next ? t->step : 0, *bound))
    *predicate = t->step > 0 ? TW_SLT : TW_SGT;
  return t->step > 0 ? *predicate == TW_SLT || *predicate == TW_SLE : *predicate == TW_SGT || *predicate == TW_SGE;
}

/* Branches upon the end that only compute what the next step has go, so that the count is a sum. */
static void compute_in_any_case(const tested_t *t) {
  for (MlirOperation op = mlirBlockGetFirstOperation(t->after), next; !mlirOperationIsNull(op); op = next) {
    next = mlirOperationGetNextInBlock(op);
    if (branches_at_end(t, op) && !mlirBlockIsNull(rest_of(op)) && only_computes(rest_of(op)) &&
        only_computes(taken(op)) && is_dead_at_end(t, op, false))
      inline_rest(op);
  }
}

static bool test_before_steps(tested_t *t) {
  MlirOperation compare = tw_def(t->ends);
  int predicate;
  bool is_next;
  MlirValue bound;
  compute_in_any_case(t);
  if (mlirOperationIsNull(compare) || !tw_op_is(compare, TW_ARITH_CMPI) ||
      !reads_order(t, compare, true, &predicate, &is_next, &bound))
    return false;
  bool up = t->step > 0;
  int64_t one = up ? 1 : -1;
  int64_t behind = (is_next ? 0 : t->step) + (predicate == TW_SLE || predicate == TW_SGE ? one : 0);
  if ((!has_room(first_of(t), one) || !has_room(bound, behind)) && !counts_index(t))
    return false;
  tw_builder_t front = tw_build_before(t->loop), at = tw_build_before(condition_of(t));
  MlirType type = mlirValueGetType(bound);
  MlirValue end = tw_binary(&front, up ? "arith.maxsi" : "arith.minsi", type, tw_plus(&front, bound, behind),
                            tw_plus(&front, first_of(t), one));
  go_on_while(t, &at, tw_compare(&at, up ? TW_SLT : TW_SGT, mlirBlockGetArgument(t->before, t->counted), end));
  return true;
}

/* ---- numbers that differ --------------------------------------------------------------------------- */

/* %k != %n at the head of a loop that counts up to %n, or down. */
static void order_condition(tested_t *t) {
  MlirValue condition = mlirOperationGetOperand(condition_of(t), 0);
  MlirOperation compare = tw_def(condition);
  if (mlirOperationIsNull(compare) || !tw_op_is(compare, TW_ARITH_CMPI) ||
      tw_attr_int(compare, "predicate", 0) != TW_NE)
    return;
  for (int side = 0; side < 2; side++) {
    MlirValue bound = mlirOperationGetOperand(compare, 1 - side);
    intptr_t carried = position_in(t->before, mlirOperationGetOperand(compare, side));
    if (carried < 0 || tw_defined_in(bound, t->before) || tw_defined_in(bound, t->after) ||
        !reads_count(t, mlirOperationGetOperand(yield_of(t), carried), carried) || !meets(t, first_of(t), 0, bound))
      continue;
    tw_builder_t at = tw_build_before(condition_of(t));
    MlirValue more = tw_compare(&at, t->step > 0 ? TW_SLT : TW_SGT, mlirOperationGetOperand(compare, side), bound);
    mlirOperationSetOperand(condition_of(t), 0, more);
    tw_erase_dead(compare);
    return;
  }
}

void tw_test_exits(MlirOperation loop) {
  tested_t t = {.loop = loop, .before = tw_region_block(loop, 0), .after = tw_region_block(loop, 1)};
  MlirOperation branch;
  if (!read_condition(&t))
    order_condition(&t);
  else if (is_read_behind(&t, t.flag))
    return;
  else if (is_of_head(&t, t.ends) && skips_rest(&t, &branch))
    test_at_head(&t, branch);
  else
    test_before_steps(&t);
}
