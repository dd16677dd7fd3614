/* accuracy.c - how exactly a result must be computed. See accuracy.h.
 *
 * Products and quotients hand a relative error on as it is. A sum does where its terms have one sign: 1 + e^x does,
 * x + y in general does not, because it may cancel. */
#include "lowering/gpu/facts/accuracy.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"

#include "tilewright/dialect.h"

#include <float.h>
#include <math.h>

enum { MAX_LOOK_AHEAD = 6, MAX_LOOK_BACK = 6, MAX_LOOK_WHOLE = 10 };

static bool is_reduction(MlirOperation op, tw_reduce_kind_t kind) {
  return tw_op_is_reduction(op) && tw_attr_int(op, "kind", 0) == kind;
}

/* ---- what it is made of ---------------------------------------------------------------------------- */

static bool is_known_at_least(MlirOperation op, int bound) {
  double known;
  return (tw_known_float(mlirOperationGetOperand(op, 0), &known) && known >= bound) ||
         (tw_known_float(mlirOperationGetOperand(op, 1), &known) && known >= bound);
}

/* Whether each element of the result is one of the operand's, as it is or rounded. */
static bool passes_on(MlirOperation op) {
  return tw_op_form(op) == TW_FORM_VIEW || tw_op_is(op, TW_TENSOR_SPLAT) || tw_op_is(op, TW_ARITH_EXTF) ||
         tw_op_is(op, TW_ARITH_TRUNCF) || tw_op_has(op, TW_FLUSHES);
}

/* What is asked of values: the bound, 0 or 1, how many ops are looked through, and the value of a loop of which it
 * holds before an iteration, by induction. */
typedef struct bounded {
  int bound, depth;
  MlirValue carried;
  const struct bounded *outer;
} bounded_t;

static bool is_at_least(MlirValue value, const bounded_t *asked);

static bool operand_is_at_least(MlirOperation op, intptr_t operand, int bound, const bounded_t *asked) {
  bounded_t next = *asked;
  next.depth--;
  if (bound != asked->bound) /* what is supposed of carried values is another bound */
    next = (bounded_t){.bound = bound, .depth = next.depth};
  return is_at_least(mlirOperationGetOperand(op, operand), &next);
}

static bool both_are_at_least(MlirOperation op, intptr_t first, int bound, const bounded_t *asked) {
  return operand_is_at_least(op, first, bound, asked) && operand_is_at_least(op, first + 1, bound, asked);
}

/* x + y >= 1 where one of them is and the other is not negative. */
static bool sum_is_at_least(MlirOperation op, const bounded_t *asked) {
  if (asked->bound == 0)
    return both_are_at_least(op, 0, 0, asked);
  return (operand_is_at_least(op, 0, 1, asked) && operand_is_at_least(op, 1, 0, asked)) ||
         (operand_is_at_least(op, 0, 0, asked) && operand_is_at_least(op, 1, 1, asked));
}

static bool is_supposed(MlirValue value, const bounded_t *asked) {
  for (; asked != NULL; asked = asked->outer)
    if (mlirValueEqual(asked->carried, value))
      return true;
  return false;
}

/* Of what a loop carries, or a loop or branch gives: all that it may be. */
static bool sources_are_at_least(MlirValue value, const bounded_t *asked) {
  MlirValue sources[TW_MAX_SOURCES];
  int num = tw_sources(value, sources);
  bounded_t next = {.bound = asked->bound, .depth = asked->depth - 1, .carried = value, .outer = asked};
  for (int i = 0; i < num; i++)
    if (!is_at_least(sources[i], &next))
      return false;
  return num > 0;
}

static bool is_square(MlirOperation op) {
  return mlirValueEqual(mlirOperationGetOperand(op, 0), mlirOperationGetOperand(op, 1));
}

static bool result_is_at_least(MlirOperation op, const bounded_t *asked) {
  int bound = asked->bound;
  if (bound == 0 && tw_op_has(op, TW_NOT_NEGATIVE))
    return true;
  if (passes_on(op) || is_reduction(op, TW_REDUCE_MAX) || is_reduction(op, TW_REDUCE_MIN) ||
      is_reduction(op, TW_REDUCE_ADD))
    return operand_is_at_least(op, 0, bound, asked);
  switch (tw_op_kind(op)) {
  case TW_ARITH_MAXIMUMF: return operand_is_at_least(op, 0, bound, asked) || operand_is_at_least(op, 1, bound, asked);
  case TW_ARITH_MAXNUMF: /* a NaN on one side leaves the other one */
    return is_known_at_least(op, bound) || both_are_at_least(op, 0, bound, asked);
  case TW_ARITH_ADDF: return sum_is_at_least(op, asked);
  case TW_ARITH_DIVF: return bound == 0 && both_are_at_least(op, 0, 0, asked);
  case TW_ARITH_SELECT: return both_are_at_least(op, 1, bound, asked);
  case TW_ARITH_MULF: return (bound == 0 && is_square(op)) || both_are_at_least(op, 0, bound, asked);
  case TW_ARITH_MINIMUMF:
  case TW_ARITH_MINNUMF: return both_are_at_least(op, 0, bound, asked);
  default: return false;
  }
}

static bool is_at_least(MlirValue value, const bounded_t *asked) {
  double known;
  MlirOperation op = tw_def(value);
  if (tw_known_float(value, &known))
    return known >= asked->bound;
  if (is_supposed(value, asked))
    return true;
  if (asked->depth == 0)
    return false;
  if (mlirOperationIsNull(op) || tw_op_form(op) == TW_FORM_CONTROL)
    return sources_are_at_least(value, asked);
  if (tw_op_waits_for_products(op))
    return operand_is_at_least(op, mlirOpResultGetResultNumber(value), asked->bound, asked);
  return result_is_at_least(op, asked);
}

bool tw_is_at_least(MlirValue value, int bound) {
  return is_at_least(value, &(bounded_t){.bound = bound, .depth = MAX_LOOK_BACK});
}

static bool is_sum_above_subnormals(MlirOperation op, intptr_t constant) {
  double known;
  return tw_known_float(mlirOperationGetOperand(op, constant), &known) && known >= FLT_MIN &&
         tw_is_at_least(mlirOperationGetOperand(op, 1 - constant), 0);
}

bool tw_is_above_subnormals(MlirValue value) {
  MlirOperation op = tw_def(value);
  if (!mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_ADDF) &&
      (is_sum_above_subnormals(op, 0) || is_sum_above_subnormals(op, 1)))
    return true;
  return tw_is_at_least(value, 1);
}

/* `supposed`: carried values that are looked at already; each is what the others are. */
typedef struct whole {
  int depth;
  MlirValue supposed;
  const struct whole *outer;
} whole_t;

static bool seems_whole(MlirValue value, const whole_t *asked);

static bool operands_seem_whole(MlirOperation op, intptr_t first, const whole_t *asked) {
  whole_t next = {asked->depth - 1, asked->supposed, asked->outer};
  for (intptr_t i = first; i < mlirOperationGetNumOperands(op); i++)
    if (!seems_whole(mlirOperationGetOperand(op, i), &next))
      return false;
  return true;
}

static bool sources_seem_whole(MlirValue value, const whole_t *asked) {
  MlirValue sources[TW_MAX_SOURCES];
  int num = tw_sources(value, sources);
  whole_t next = {asked->depth - 1, value, asked};
  for (int i = 0; i < num; i++)
    if (!seems_whole(sources[i], &next))
      return false;
  return num > 0;
}

static bool result_seems_whole(MlirOperation op, const whole_t *asked) {
  switch (tw_op_kind(op)) {
  case TW_ARITH_SITOFP:
  case TW_ARITH_UITOFP:
  case TW_MATH_FLOOR:
  case TW_MATH_CEIL:
  case TW_MATH_TRUNC:
  case TW_MATH_ROUNDEVEN: return true;
  case TW_ARITH_SELECT: return operands_seem_whole(op, 1, asked);
  default: break;
  }
  tw_op_class_t class = tw_op_class(op);
  bool stays = class == TW_CLASS_FLOAT_SUM || class == TW_CLASS_FLOAT_PRODUCT || class == TW_CLASS_FLOAT_EXTREME ||
               passes_on(op) || is_reduction(op, TW_REDUCE_ADD) || is_reduction(op, TW_REDUCE_MAX);
  return stays && operands_seem_whole(op, 0, asked);
}

static bool seems_whole(MlirValue value, const whole_t *asked) {
  double known;
  MlirOperation op = tw_def(value);
  if (tw_known_float(value, &known))
    return known == floor(known);
  for (const whole_t *outer = asked; outer != NULL; outer = outer->outer)
    if (mlirValueEqual(outer->supposed, value))
      return true;
  if (asked->depth == 0)
    return false;
  if (mlirOperationIsNull(op) || tw_op_form(op) == TW_FORM_CONTROL)
    return sources_seem_whole(value, asked);
  return result_seems_whole(op, asked);
}

bool tw_seems_whole(MlirValue value) { return seems_whole(value, &(whole_t){.depth = MAX_LOOK_WHOLE}); }

/* ---- what is made of it ------------------------------------------------------------------------------ */

/* A sum of numbers of one sign does not cancel. */
static bool sums_one_sign(MlirOperation op) {
  if (is_reduction(op, TW_REDUCE_ADD))
    return tw_is_at_least(mlirOperationGetOperand(op, 0), 0);
  return tw_op_is(op, TW_ARITH_ADDF) && tw_is_at_least(mlirOperationGetOperand(op, 0), 0) &&
         tw_is_at_least(mlirOperationGetOperand(op, 1), 0);
}

/* Ops that hand a small relative error on without making it larger. */
static bool keeps_accuracy(MlirOperation op) {
  tw_op_class_t class = tw_op_class(op);
  return tw_op_form(op) == TW_FORM_VIEW || tw_op_is(op, TW_TENSOR_SPLAT) || tw_op_is(op, TW_ARITH_SELECT) ||
         tw_op_has(op, TW_FLUSHES) || class == TW_CLASS_FLOAT_PRODUCT || class == TW_CLASS_FLOAT_QUOTIENT ||
         class == TW_CLASS_FLOAT_EXTREME || is_reduction(op, TW_REDUCE_MAX) || is_reduction(op, TW_REDUCE_MIN) ||
         sums_one_sign(op);
}

/* What is asked of all that is made of a value. */
typedef struct {
  unsigned least; /* the fewest bits of a cast that hides the error */
  bool sums;      /* whether a sum hides it, too */
  tw_map_t seen;  /* carried values */
} narrow_t;

static bool ends_narrow(narrow_t *n, MlirValue value, int depth);

/* Whether the loop multiplies a carried value by what it made of it in the same iteration: an error would double in
 * each. Sums and other factors add theirs to it. */
static bool is_multiplied_by_itself(MlirOperation loop, MlirValue carried) {
  MlirBlock body = tw_loop_body(loop);
  TW_EACH_OP(op, body) {
    bool both = tw_op_class(op) == TW_CLASS_FLOAT_PRODUCT || tw_op_class(op) == TW_CLASS_FLOAT_QUOTIENT;
    for (intptr_t i = 0; i < 2 && both; i++) {
      tw_slice_t slice = {.block = body};
      tw_slice_add(&slice, mlirOperationGetOperand(op, i));
      both = mlirValueEqual(mlirOperationGetOperand(op, i), carried) || tw_slice_reads(&slice, carried);
      tw_slice_free(&slice);
    }
    if (both)
      return true;
  }
  return false;
}

static bool carried_ends_narrow(narrow_t *n, MlirOperation loop, intptr_t i, int depth) {
  MlirValue carried = tw_carried(loop, i);
  if (tw_map_number(&n->seen, carried, 0) > 0)
    return true;
  tw_map_set_number(&n->seen, carried, 1);
  return !is_multiplied_by_itself(loop, carried) && ends_narrow(n, carried, depth) &&
         ends_narrow(n, mlirOperationGetResult(loop, i), depth);
}

/* Through a loop or branch, which hands values on as they are. */
static bool handed_ends_narrow(narrow_t *n, MlirOperation op, intptr_t operand, int depth) {
  if (tw_op_is(op, TW_SCF_FOR))
    return operand >= TW_FOR_INITS && carried_ends_narrow(n, op, operand - TW_FOR_INITS, depth);
  MlirOperation around = mlirOperationGetParentOperation(op);
  if (!tw_op_is(op, TW_SCF_YIELD))
    return false;
  if (tw_op_is(around, TW_SCF_FOR))
    return carried_ends_narrow(n, around, operand, depth);
  return tw_op_is(around, TW_SCF_IF) && ends_narrow(n, mlirOperationGetResult(around, operand), depth);
}

static bool use_ends_narrow(narrow_t *n, MlirOpOperand use, int depth) {
  MlirOperation user = mlirOpOperandGetOwner(use);
  intptr_t operand = mlirOpOperandGetOperandNumber(use);
  if (tw_op_is(user, TW_ARITH_TRUNCF) && tw_bits(mlirValueGetType(mlirOperationGetResult(user, 0))) >= n->least)
    return true; /* of f32, so to 16 bits at most */
  if (n->sums && (sums_one_sign(user) || tw_op_is_product(user) || tw_op_is_async_product(user)))
    return true;
  if (tw_op_waits_for_products(user))
    return ends_narrow(n, mlirOperationGetResult(user, operand), depth);
  if (tw_op_form(user) == TW_FORM_CONTROL)
    return handed_ends_narrow(n, user, operand, depth);
  return depth > 0 && keeps_accuracy(user) && ends_narrow(n, mlirOperationGetResult(user, 0), depth - 1);
}

static bool ends_narrow(narrow_t *n, MlirValue value, int depth) {
  TW_EACH_USE(use, value)
    if (!use_ends_narrow(n, use, depth))
      return false;
  return true;
}

/* Whether all that is made of the op's result ends so; what the program says of accuracy comes first. */
static bool all_ends_narrow(MlirOperation op, narrow_t n) {
  if (tw_hint_approximate(op, 1) == 0)
    return false;
  if (tw_hint_fast_math(op, 0) || tw_has_attr(op, TW_APPROXIMATE))
    return true;
  bool ends = ends_narrow(&n, mlirOperationGetResult(op, 0), MAX_LOOK_AHEAD);
  tw_map_free(&n.seen);
  return ends;
}

/* Quotients of numbers of few bits often lie halfway between two numbers of 8 bits: there, any error shows. */
bool tw_only_read_narrower(MlirOperation op) {
  return all_ends_narrow(op, (narrow_t){.least = tw_op_class(op) == TW_CLASS_FLOAT_QUOTIENT ? 16 : 1});
}

bool tw_hides_subnormals(MlirOperation op) { return all_ends_narrow(op, (narrow_t){.least = 1, .sums = true}); }

bool tw_is_widened(MlirValue value) {
  MlirOperation op = tw_def(value);
  while (!mlirOperationIsNull(op) && tw_op_form(op) == TW_FORM_VIEW)
    op = tw_def(mlirOperationGetOperand(op, 0));
  return !mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_EXTF) &&
         tw_bits(mlirValueGetType(mlirOperationGetOperand(op, 0))) <= 16;
}

/* ---- weights of a softmax ------------------------------------------------------------------------------ */

static bool is_narrowed_operand(MlirOperation op) {
  if (!tw_op_is(op, TW_ARITH_TRUNCF) || tw_bits(mlirValueGetType(mlirOperationGetResult(op, 0))) != 16)
    return false;
  MlirValue narrow = mlirOperationGetResult(op, 0);
  TW_EACH_USE(use, narrow)
    if (!tw_op_is_product(mlirOpOperandGetOwner(use)))
      return false;
  return true;
}

/* Whether the value is read by sums and products only; `product` gets true at the first of these. */
static bool is_weight(MlirValue value, bool *product) {
  TW_EACH_USE(use, value) {
    MlirOperation op = mlirOpOperandGetOwner(use);
    bool sum = tw_op_is_reduction(op) && tw_attr_int(op, "kind", 0) == TW_REDUCE_ADD;
    bool narrowed = is_narrowed_operand(op);
    bool masked = tw_op_is(op, TW_ARITH_SELECT) && is_weight(mlirOperationGetResult(op, 0), product);
    if (!sum && !narrowed && !masked)
      return false;
    *product = *product || narrowed;
  }
  return true;
}

bool tw_is_weight(MlirValue value) {
  bool product = false;
  return is_weight(value, &product) && product;
}
