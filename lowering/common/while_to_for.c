/* while_to_for.c - in tile-canonicalize: a loop that counts is an scf.for
 *
 *   before   %r:2 = scf.while (%k = %low, %x = %a) {          after   %r = scf.for %k = %low to %n step %s
 *              scf.condition(%k < %n) %k, %x                                iter_args(%x = %a) {
 *            } do {                                                     ...
 *              ...                                                      scf.yield %y
 *              scf.yield %k + %s, %y                                  }
 *            }
 *
 * Of two bounds on one side the nearer one counts. A loop that counts down runs over the negatives. A second condition,
 * which further steps cannot break, such as %m <= %k here, is looked at once: where it does not hold at first, the
 * range is empty. The loop counts from %m then.
 *
 * What must hold: the condition compares what the loop carries with a number that does not change in it; each step adds
 * the same number, which is known to be positive (or a known negative one); what the condition passes on is what the
 * loop carries. */
#include "base/memory.h"
#include "lowering/common/canonicalize.h"
#include "lowering/loops.h"
#include "lowering/ranges.h"

typedef struct {
  MlirOperation loop;
  MlirBlock before, after;
  intptr_t counted;     /* which of the carried values */
  MlirValue bound, add; /* add: what a step adds, if it is no known number */
  MlirValue second;     /* another bound on the same side; null if there is none */
  MlirOperation guard;  /* compares the same value with a number on the other side; null if nothing does */
  int64_t step;         /* the known number; 0 */
  bool included;        /* the bound belongs to the range */
  bool takes_second;    /* so does the other one */
} counting_t;

static MlirOperation condition_of(const counting_t *c) { return mlirBlockGetTerminator(c->before); }

/* Which of the carried values a value of the first region is; -1. */
static intptr_t position_in(MlirBlock block, MlirValue value) {
  if (!mlirValueIsABlockArgument(value) || !mlirBlockEqual(mlirBlockArgumentGetOwner(value), block))
    return -1;
  return mlirBlockArgumentGetArgNumber(value);
}

/* Whether a value is the same in all steps, because only arithmetic on values from outside makes it. */
static bool is_fixed(const counting_t *c, MlirValue value) {
  if (!tw_defined_in(value, c->before) && !tw_defined_in(value, c->after))
    return true;
  MlirOperation op = tw_def(value);
  bool ok = !mlirOperationIsNull(op) && tw_is_arithmetic(op) && mlirOperationGetNumRegions(op) == 0;
  for (intptr_t i = 0; ok && i < mlirOperationGetNumOperands(op); i++)
    ok = is_fixed(c, mlirOperationGetOperand(op, i));
  return ok;
}

/* Nothing but arithmetic in front of the condition, which passes on what the loop carries. */
static bool has_plain_condition(const counting_t *c) {
  MlirOperation end = condition_of(c);
  for (MlirOperation op = mlirBlockGetFirstOperation(c->before); !mlirOperationEqual(op, end);
       op = mlirOperationGetNextInBlock(op))
    if (!tw_is_arithmetic(op) || mlirOperationGetNumRegions(op) != 0)
      return false;
  for (intptr_t i = 1; i < mlirOperationGetNumOperands(end); i++)
    if (position_in(c->before, mlirOperationGetOperand(end, i)) < 0)
      return false;
  return true;
}

static int64_t mirrored(int64_t predicate) {
  switch (predicate) {
  case TW_SLT: return TW_SGT;
  case TW_SLE: return TW_SGE;
  case TW_SGT: return TW_SLT;
  case TW_SGE: return TW_SLE;
  default: return predicate;
  }
}

/* %k < %n, in any of its forms; `up` is whether it holds for smaller numbers. */
static bool read_compare(counting_t *c, MlirOperation compare, bool *up) {
  if (mlirOperationIsNull(compare) || !tw_op_is(compare, TW_ARITH_CMPI))
    return false;
  int64_t predicate = tw_attr_int(compare, "predicate", 0);
  MlirValue x = mlirOperationGetOperand(compare, 0), y = mlirOperationGetOperand(compare, 1);
  if (position_in(c->before, x) < 0) {
    MlirValue swap = x;
    x = y, y = swap;
    predicate = mirrored(predicate);
  }
  c->counted = position_in(c->before, x);
  c->bound = y;
  *up = predicate == TW_SLT || predicate == TW_SLE;
  c->included = predicate == TW_SLE || predicate == TW_SGE;
  return c->counted >= 0 && tw_bits(mlirValueGetType(x)) >= 32 && predicate >= TW_SLT && predicate <= TW_SGE &&
         is_fixed(c, y);
}

/* What the second region's value was in the first. */
static intptr_t carried_position(const counting_t *c, MlirValue value) {
  intptr_t at = position_in(c->after, value);
  return at < 0 ? -1 : position_in(c->before, mlirOperationGetOperand(condition_of(c), 1 + at));
}

/* %k + %s, or %k - %s, of which the number is known or known to be positive. */
static bool read_step(counting_t *c, bool up) {
  MlirOperation op = tw_def(mlirOperationGetOperand(mlirBlockGetTerminator(c->after), c->counted));
  bool subtracts = !mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_SUBI);
  if (mlirOperationIsNull(op) || (!subtracts && !tw_op_is(op, TW_ARITH_ADDI)))
    return false;
  MlirValue x = mlirOperationGetOperand(op, 0), y = mlirOperationGetOperand(op, 1);
  if (!subtracts && carried_position(c, x) != c->counted)
    x = y, y = mlirOperationGetOperand(op, 0);
  if (carried_position(c, x) != c->counted)
    return false;
  int64_t number;
  if (tw_known_int(y, &number)) {
    c->step = subtracts == up ? -number : number;
    return c->step > 0;
  }
  c->add = y;
  return subtracts != up && is_fixed(c, y) && tw_range_of(y).low > 0;
}

/* One comparison, or two of one value: it stays on the one side, and a step may take it to the other. Which of them
 * ends the loop, the step tells; both do where it may take it to either's. */
static bool read_condition(counting_t *c, bool *up) {
  MlirOperation all = tw_def(mlirOperationGetOperand(condition_of(c), 0));
  c->guard = tw_null_op();
  if (mlirOperationIsNull(all) || !tw_op_is(all, TW_ARITH_ANDI))
    return read_compare(c, all, up);
  MlirOperation both[2] = {tw_def(mlirOperationGetOperand(all, 0)), tw_def(mlirOperationGetOperand(all, 1))};
  for (int end = 0; end < 2; end++) {
    bool up_to, from;
    if (!read_compare(c, both[1 - end], &from))
      return false;
    intptr_t guarded = c->counted;
    c->second = c->bound, c->takes_second = c->included;
    if (!read_compare(c, both[end], &up_to))
      return false;
    if (guarded == c->counted && from == up_to) {
      *up = up_to;
      return read_step(c, up_to);
    }
    c->second = (MlirValue){NULL};
    c->guard = both[1 - end];
    *up = up_to;
    if (guarded == c->counted && from != up_to && read_step(c, up_to))
      return true;
  }
  return false;
}

static bool read_counting(counting_t *c, bool *up) {
  return has_plain_condition(c) && read_condition(c, up) && read_step(c, *up);
}

/* --- Building ------------------------------------------------------------------------------------------- */

/* What the guard compares the number with; the loop counts from there where it counts upwards, so that the differences
 * which such programs divide are no less than zero. */
static MlirValue base_of(const counting_t *c, bool up) {
  if (mlirOperationIsNull(c->guard) || !up)
    return (MlirValue){NULL};
  MlirValue x = mlirOperationGetOperand(c->guard, 0);
  return position_in(c->before, x) < 0 ? x : mlirOperationGetOperand(c->guard, 1);
}

static MlirValue negative(const tw_builder_t *at, MlirValue x) {
  MlirType type = mlirValueGetType(x);
  int64_t number;
  if (tw_known_int(x, &number))
    return tw_const_int(at, type, -number);
  return tw_binary(at, "arith.subi", type, tw_const_int(at, type, 0), x);
}

/* A value that is the same in all steps, before the loop. */
static MlirValue in_front(const tw_builder_t *at, const counting_t *c, MlirValue value) {
  tw_map_t map = {0};
  MlirBlock inside = tw_defined_in(value, c->before) ? c->before : c->after;
  MlirValue copy = tw_copy_slice(at, value, inside, &map);
  tw_map_free(&map);
  return copy;
}

/* Where a loop begins to count: from a base, if there is one, and if the guard holds for the first number, if there is
 * one. */
typedef struct {
  bool up;
  MlirValue base, holds;
} first_t;

/* Whether the guard holds for the first number. */
static MlirValue at_first(const tw_builder_t *at, const counting_t *c) {
  tw_map_t map = {0};
  tw_map_one(&map, mlirBlockGetArgument(c->before, c->counted), mlirOperationGetOperand(c->loop, c->counted));
  MlirValue holds = tw_copy_slice(at, mlirOperationGetResult(c->guard, 0), c->before, &map);
  tw_map_free(&map);
  return holds;
}

/* The number behind the range, or the negative of it. */
static MlirValue end_of(const tw_builder_t *at, const counting_t *c, MlirValue bound, bool included, bool up) {
  MlirValue last = in_front(at, c, bound);
  return tw_plus(at, up ? last : negative(at, last), included);
}

/* The loop without a body: an operand for each carried value but the one that counts. */
static MlirOperation build_for(const tw_builder_t *at, const counting_t *c, const first_t *first, MlirRegion body) {
  bool up = first->up;
  MlirValue base = first->base, holds = first->holds;
  intptr_t num = mlirOperationGetNumOperands(c->loop);
  MlirValue *operands = tw_allocate((size_t)(num + TW_FOR_INITS), sizeof *operands);
  MlirValue low = mlirOperationGetOperand(c->loop, c->counted);
  MlirType type = mlirValueGetType(low);
  operands[0] = up ? low : negative(at, low);
  operands[1] = end_of(at, c, c->bound, c->included, up);
  if (!mlirValueIsNull(c->second))
    operands[1] = tw_binary(at, "arith.minsi", type, operands[1], end_of(at, c, c->second, c->takes_second, up));
  if (!mlirValueIsNull(base)) {
    MlirValue first = tw_binary(at, "arith.subi", type, low, base);
    operands[0] = tw_binary(at, "arith.maxsi", type, first, tw_const_int(at, type, 0));
    operands[1] = tw_binary(at, "arith.subi", type, operands[1], base);
  }
  if (!mlirValueIsNull(holds))
    operands[1] = tw_op1(at, "arith.select", type, 3, (MlirValue[]){holds, operands[1], operands[0]});
  operands[2] = c->step ? tw_const_int(at, type, c->step) : in_front(at, c, c->add);
  intptr_t taken = TW_FOR_INITS;
  for (intptr_t i = 0; i < num; i++)
    if (i != c->counted)
      operands[taken++] = mlirOperationGetOperand(c->loop, i);
  MlirOperation loop = tw_build_for(at, taken, operands, body);
  free(operands);
  return loop;
}

static intptr_t without(intptr_t position, intptr_t left_out) { return position - (position > left_out); }

/* The arguments of the second region become those of a body: the induction variable, then what is carried. */
static void replace_arguments(const counting_t *c, MlirBlock body, intptr_t num_old, const first_t *first) {
  tw_builder_t at = tw_build_before(mlirBlockGetFirstOperation(body));
  MlirValue count = mlirBlockGetArgument(body, num_old);
  if (!first->up)
    count = negative(&at, count);
  MlirValue counted = count;
  if (!mlirValueIsNull(first->base))
    count = tw_binary(&at, "arith.addi", mlirValueGetType(count), count, first->base);
  for (intptr_t i = 0; i < num_old; i++) {
    MlirValue old = mlirBlockGetArgument(body, i);
    intptr_t from = position_in(c->before, mlirOperationGetOperand(condition_of(c), 1 + i));
    MlirValue now = from == c->counted ? count : mlirBlockGetArgument(body, num_old + 1 + without(from, c->counted));
    mlirValueReplaceAllUsesOfWith(old, now);
  }
  while (num_old-- > 0)
    mlirBlockEraseArgument(body, 0);
  if (!mlirValueIsNull(first->base))
    TW_EACH_USE(use, count) {
      MlirOperation user = mlirOpOperandGetOwner(use);
      if (tw_op_is(user, TW_ARITH_SUBI) && mlirValueEqual(mlirOperationGetOperand(user, 0), count) &&
          mlirValueEqual(mlirOperationGetOperand(user, 1), first->base))
        mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(user, 0), counted);
    }
}

static void drop_operand(MlirOperation yield, intptr_t which) {
  tw_builder_t at = tw_build_before(yield);
  intptr_t num = mlirOperationGetNumOperands(yield), kept = 0;
  MlirValue *operands = tw_allocate((size_t)num, sizeof *operands);
  for (intptr_t i = 0; i < num; i++)
    if (i != which)
      operands[kept++] = mlirOperationGetOperand(yield, i);
  tw_build(&at, "scf.yield", (tw_op_parts_t){.num_operands = kept, .operands = operands});
  mlirOperationDestroy(yield);
  free(operands);
}

/* The number behind the last step. */
static MlirValue build_exit(const tw_builder_t *at, const counting_t *c, MlirOperation loop, const first_t *first) {
  MlirValue exit = first->up ? tw_loop_exit(at, loop) : negative(at, tw_loop_exit(at, loop));
  MlirType type = mlirValueGetType(exit);
  if (mlirValueIsNull(first->base))
    return exit;
  MlirValue low = mlirOperationGetOperand(c->loop, c->counted);
  exit = tw_binary(at, "arith.addi", type, exit, first->base);
  return tw_op1(at, "arith.select", type, 3, (MlirValue[]){first->holds, exit, low});
}

static void replace_results(const counting_t *c, MlirOperation loop, const first_t *first) {
  tw_builder_t at = tw_build_before(c->loop);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(c->loop); i++) {
    MlirValue result = mlirOperationGetResult(c->loop, i), now;
    intptr_t from = position_in(c->before, mlirOperationGetOperand(condition_of(c), 1 + i));
    if (tw_is_unused(result))
      continue;
    if (from != c->counted)
      now = mlirOperationGetResult(loop, without(from, c->counted));
    else
      now = build_exit(&at, c, loop, first);
    mlirValueReplaceAllUsesOfWith(result, now);
  }
}

static void build(const counting_t *c, bool up) {
  tw_builder_t at = tw_build_before(c->loop);
  MlirBlock body = c->after;
  intptr_t num_old = mlirBlockGetNumArguments(body);
  mlirBlockAddArgument(body, mlirValueGetType(mlirOperationGetOperand(c->loop, c->counted)), at.location);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(c->loop); i++)
    if (i != c->counted)
      mlirBlockAddArgument(body, mlirValueGetType(mlirOperationGetOperand(c->loop, i)), at.location);
  first_t first = {.up = up};
  if (!mlirOperationIsNull(c->guard)) {
    MlirValue base = base_of(c, up);
    first.holds = at_first(&at, c);
    first.base = mlirValueIsNull(base) ? base : in_front(&at, c, base);
  }
  MlirRegion region = mlirRegionCreate();
  MlirOperation loop = build_for(&at, c, &first, region); /* reads the body: before that moves */
  mlirRegionTakeBody(mlirOperationGetRegion(loop, 0), mlirOperationGetRegion(c->loop, 1));
  replace_arguments(c, body, num_old, &first);
  drop_operand(mlirBlockGetTerminator(body), c->counted);
  replace_results(c, loop, &first);
  mlirOperationDestroy(c->loop);
}

bool tw_while_to_for(MlirOperation loop) {
  counting_t c = {.loop = loop, .before = tw_region_block(loop, 0), .after = tw_region_block(loop, 1)};
  bool up;
  if (!read_counting(&c, &up))
    return false;
  build(&c, up);
  return true;
}
