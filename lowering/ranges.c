/* ranges.c - between which numbers an integer lies. See ranges.h.
 *
 * Sums that may wrap can be anything. A quotient by zero is what one likes, and so counts for nothing. */
#include "lowering/ranges.h"

enum { MOST_STEPS = 16, WIDE = 64 };

/* Values that one question may still look at. Chains of choices have as many ways to their start as powers of two. */
static _Thread_local int looks;
enum { MOST_LOOKS = 800 };

static tw_range_t range(MlirValue value, int steps);

static int64_t min(int64_t x, int64_t y) { return x < y ? x : y; }
static int64_t max(int64_t x, int64_t y) { return x > y ? x : y; }

/* All numbers of the type; of 64 bits a fourth, which sums and products of 32 bits cannot leave. */
static tw_range_t all_of(MlirType type) {
  unsigned bits = tw_bits(type);
  int64_t half = INT64_C(1) << ((bits < WIDE ? bits : WIDE - 1) - 1);
  return (tw_range_t){-half, half - 1};
}

/* A number of 64 bits of which no bound is known may lie beyond the fourth. */
static bool is_open_below(tw_range_t x) { return x.low <= -(INT64_C(1) << (WIDE - 2)); }
static bool is_open_above(tw_range_t x) { return x.high >= (INT64_C(1) << (WIDE - 2)) - 1; }
static bool is_open(tw_range_t x) { return is_open_below(x) || is_open_above(x); }

static tw_range_t within(tw_range_t x, tw_range_t all) { return x.low < all.low || x.high > all.high ? all : x; }

static tw_range_t sum_of(tw_range_t x, tw_range_t y, bool subtracts) {
  return subtracts ? (tw_range_t){x.low - y.high, x.high - y.low} : (tw_range_t){x.low + y.low, x.high + y.high};
}

static tw_range_t product_of(tw_range_t x, tw_range_t y) {
  int64_t a = x.low * y.low, b = x.low * y.high, c = x.high * y.low, d = x.high * y.high;
  return (tw_range_t){min(min(a, b), min(c, d)), max(max(a, b), max(c, d))};
}

/* By natural numbers. Below zero it is rounded down, to be sure. */
static tw_range_t quotient_of(tw_range_t x, tw_range_t y, bool up) {
  int64_t least = max(y.low, 1), low = min(x.low, 0), high = max(x.high, 0);
  return (tw_range_t){low / least - (low % least != 0), high / least + (up && high % least != 0)};
}

/* The same by half of the looks that are left, so that some are for what is asked next. */
static tw_range_t range_by_half(MlirValue value, int steps) {
  int others = looks / 2;
  looks -= others;
  tw_range_t found = range(value, steps);
  looks = others + (looks > 0 ? looks : 0);
  return found;
}

static tw_range_t of_extreme(MlirOperation op, tw_range_t all, int steps) {
  tw_range_t x = range(mlirOperationGetOperand(op, 0), steps), y = range(mlirOperationGetOperand(op, 1), steps);
  if (tw_op_is(op, TW_ARITH_MINSI))
    return (tw_range_t){min(x.low, y.low), min(x.high, y.high)};
  return tw_op_is(op, TW_ARITH_MAXSI) ? (tw_range_t){max(x.low, y.low), max(x.high, y.high)} : all;
}

static tw_range_t of_sum(MlirOperation op, tw_range_t all, int steps) {
  tw_range_t x = range(mlirOperationGetOperand(op, 0), steps), y = range(mlirOperationGetOperand(op, 1), steps);
  if (all.high > INT32_MAX)
    return all;
  return within(tw_op_is(op, TW_ARITH_MULI) ? product_of(x, y) : sum_of(x, y, tw_op_is(op, TW_ARITH_SUBI)), all);
}

static tw_range_t of_division(MlirOperation op, tw_range_t all, int steps) {
  tw_range_t x = range(mlirOperationGetOperand(op, 0), steps), y = range(mlirOperationGetOperand(op, 1), steps);
  bool divides = tw_op_is(op, TW_ARITH_FLOORDIVSI) || tw_op_is(op, TW_ARITH_CEILDIVSI) || tw_op_is(op, TW_ARITH_DIVSI);
  bool is_rest = tw_op_is(op, TW_ARITH_REMSI) || tw_op_is(op, TW_ARITH_REMUI);
  if (y.low < 0 || (x.low < 0 && !divides) || is_open(y) || (is_open(x) && !is_rest))
    return all;
  if (is_rest)
    return (tw_range_t){0, min(x.high, max(y.high - 1, 0))};
  return quotient_of(x, y, tw_op_is(op, TW_ARITH_CEILDIVSI) || tw_op_is(op, TW_ARITH_CEILDIVUI));
}

static bool decided(MlirValue condition, int steps, bool *out) {
  MlirOperation op = tw_def(condition);
  int64_t known;
  if (tw_known_int(condition, &known)) {
    *out = known != 0;
    return true;
  }
  if (mlirOperationIsNull(op) || steps == 0)
    return false;
  if (tw_op_is(op, TW_ARITH_ANDI)) {
    bool x, y, x_known = decided(mlirOperationGetOperand(op, 0), steps - 1, &x),
               y_known = decided(mlirOperationGetOperand(op, 1), steps - 1, &y);
    *out = x_known && y_known && x && y;
    return (x_known && y_known) || (x_known && !x) || (y_known && !y);
  }
  if (!tw_op_is(op, TW_ARITH_CMPI))
    return false;
  tw_range_t x = range(mlirOperationGetOperand(op, 0), steps - 1), y = range(mlirOperationGetOperand(op, 1), steps - 1);
  bool is_below = x.high < y.low && !is_open_above(x) && !is_open_below(y);
  bool is_not_below = x.low >= y.high && !is_open_below(x) && !is_open_above(y);
  switch (tw_attr_int(op, "predicate", -1)) {
  case TW_SLT: *out = is_below; return is_below || is_not_below;
  case TW_SGE: *out = is_not_below; return is_below || is_not_below;
  default: return false;
  }
}

static tw_range_t of_select(MlirOperation op, int steps) {
  bool first;
  if (decided(mlirOperationGetOperand(op, 0), steps, &first))
    return range(mlirOperationGetOperand(op, first ? 1 : 2), steps);
  tw_range_t x = range(mlirOperationGetOperand(op, 1), steps), y = range(mlirOperationGetOperand(op, 2), steps);
  return (tw_range_t){min(x.low, y.low), max(x.high, y.high)};
}

/* Bits that a natural number lacks are not in the result. */
static tw_range_t of_and(MlirOperation op, tw_range_t all, int steps) {
  tw_range_t x = range(mlirOperationGetOperand(op, 0), steps), y = range(mlirOperationGetOperand(op, 1), steps);
  if (x.low < 0 && y.low < 0)
    return all;
  return (tw_range_t){0, x.low < 0 ? y.high : y.low < 0 ? x.high : min(x.high, y.high)};
}

static tw_range_t of_op(MlirOperation op, tw_range_t all, int steps) {
  tw_op_class_t class = tw_op_class(op);
  if (tw_op_is(op, TW_TILE_BLOCK_ID)) /* below their number */
    return (tw_range_t){0, all.high - 1};
  if (tw_op_is(op, TW_TILE_DIM) || tw_op_is(op, TW_TILE_NUM_BLOCKS))
    return (tw_range_t){tw_op_is(op, TW_TILE_NUM_BLOCKS), all.high};
  if (tw_op_is(op, TW_TILE_IOTA))
    return (tw_range_t){0, tw_count(mlirValueGetType(mlirOperationGetResult(op, 0))) - 1};
  if (tw_op_form(op) == TW_FORM_VIEW || tw_op_is(op, TW_TENSOR_SPLAT) || tw_op_is(op, TW_ARITH_EXTSI))
    return range(mlirOperationGetOperand(op, 0), steps);
  if (class == TW_CLASS_SUM || class == TW_CLASS_MULTIPLE)
    return of_sum(op, all, steps);
  if (class == TW_CLASS_QUOTIENT || class == TW_CLASS_CEILING || class == TW_CLASS_REST)
    return of_division(op, all, steps);
  if (class == TW_CLASS_EXTREME)
    return of_extreme(op, all, steps);
  if (tw_op_is(op, TW_ARITH_SELECT))
    return of_select(op, steps);
  if (tw_op_is(op, TW_ARITH_ANDI))
    return of_and(op, all, steps);
  if (tw_op_is(op, TW_ARITH_XORI) && range(mlirOperationGetOperand(op, 0), steps).low >= 0 &&
      range(mlirOperationGetOperand(op, 1), steps).low >= 0)
    return (tw_range_t){0, all.high};
  return all;
}

/* An induction variable lies between the bounds of its loop. A scalar that a kernel is compiled for multiples of is not
 * negative. */
static tw_range_t of_argument(MlirValue value, tw_range_t all, int steps) {
  MlirOperation loop = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value));
  if (tw_op_is(loop, TW_FUNC_FUNC) &&
      !mlirAttributeIsNull(tw_arg_attr(loop, mlirBlockArgumentGetArgNumber(value), "tile.div")))
    return (tw_range_t){0, all.high};
  if (!tw_op_is(loop, TW_SCF_FOR) || mlirBlockArgumentGetArgNumber(value) != 0 || tw_has_attr(loop, "unsignedCmp"))
    return all;
  tw_range_t low = range_by_half(mlirOperationGetOperand(loop, 0), steps),
             high = range_by_half(mlirOperationGetOperand(loop, 1), steps);
  return (tw_range_t){low.low, is_open_above(high) ? all.high : max(high.high - 1, low.low)};
}

static tw_range_t range(MlirValue value, int steps) {
  MlirType type = mlirValueGetType(value);
  int64_t known;
  if (!tw_is_int(type))
    return (tw_range_t){INT32_MIN, INT32_MAX};
  if (tw_known_int(value, &known))
    return within((tw_range_t){known, known}, all_of(type));
  if (steps == 0 || looks-- <= 0)
    return all_of(type);
  MlirOperation op = tw_def(value);
  return mlirOperationIsNull(op) ? of_argument(value, all_of(type), steps - 1) : of_op(op, all_of(type), steps - 1);
}

tw_range_t tw_range_of(MlirValue value) {
  looks = MOST_LOOKS;
  return range(value, MOST_STEPS);
}

bool tw_is_decided(MlirValue condition, bool *out) {
  looks = MOST_LOOKS;
  return decided(condition, MOST_STEPS, out);
}

/* ---- conditions around an op --------------------------------------------------------------------- */

/* Whether a natural number below a power of two that divides x carries nothing when it is added: x is a multiple of
 * that by how it was made. */
static bool carries_nothing(MlirValue x, int64_t by) {
  MlirOperation op = tw_def(x);
  int64_t factor;
  return by >= 0 && !mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_MULI) &&
         tw_known_int(mlirOperationGetOperand(op, 1), &factor) && by < (factor & -factor);
}

/* Whether a value is x plus a natural number without a carry. */
static bool is_beyond(MlirValue value, MlirValue x, int64_t *by) {
  MlirOperation op = tw_def(value);
  return !mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_ADDI) && mlirValueEqual(mlirOperationGetOperand(op, 0), x) &&
         tw_known_int(mlirOperationGetOperand(op, 1), by) && carries_nothing(x, *by);
}

/* The range of `x` where `small < large`, or `small <= large`, holds. */
static void narrow(MlirValue x, MlirValue small, MlirValue large, bool strictly, tw_range_t *out) {
  int64_t by = 0;
  if (mlirValueEqual(x, small) || is_beyond(small, x, &by))
    out->high = min(out->high, tw_range_of(large).high - strictly - by);
  if (mlirValueEqual(x, large))
    out->low = max(out->low, tw_range_of(small).low + strictly);
}

/* The range of `x` where a condition holds. */
static void narrow_by(MlirValue x, MlirValue condition, int steps, tw_range_t *out) {
  MlirOperation op = tw_def(condition);
  if (mlirOperationIsNull(op) || steps == 0)
    return;
  if (tw_op_is(op, TW_ARITH_ANDI)) {
    narrow_by(x, mlirOperationGetOperand(op, 0), steps - 1, out);
    narrow_by(x, mlirOperationGetOperand(op, 1), steps - 1, out);
  }
  if (!tw_op_is(op, TW_ARITH_CMPI))
    return;
  MlirValue a = mlirOperationGetOperand(op, 0), b = mlirOperationGetOperand(op, 1);
  switch (tw_attr_int(op, "predicate", -1)) {
  case TW_SLT: narrow(x, a, b, true, out); break;
  case TW_SLE: narrow(x, a, b, false, out); break;
  case TW_SGT: narrow(x, b, a, true, out); break;
  case TW_SGE: narrow(x, b, a, false, out); break;
  default: break;
  }
}

/* The least that `x` may be where a condition holds, or does not; `low` where that says nothing of it. */
static int64_t least_by(MlirValue x, MlirValue condition, bool holds, int steps, int64_t low) {
  static const int negated[] = {[TW_SLT] = TW_SGE, [TW_SLE] = TW_SGT, [TW_SGT] = TW_SLE, [TW_SGE] = TW_SLT};
  MlirOperation op = tw_def(condition);
  int64_t known;
  if (mlirOperationIsNull(op) || steps == 0)
    return low;
  if (tw_op_is(op, holds ? TW_ARITH_ANDI : TW_ARITH_ORI)) {
    low = least_by(x, mlirOperationGetOperand(op, 0), holds, steps - 1, low);
    return least_by(x, mlirOperationGetOperand(op, 1), holds, steps - 1, low);
  }
  if (tw_op_is(op, TW_ARITH_XORI) && tw_known_int(mlirOperationGetOperand(op, 1), &known) && known)
    return least_by(x, mlirOperationGetOperand(op, 0), !holds, steps - 1, low);
  if (!tw_op_is(op, TW_ARITH_CMPI))
    return low;
  int64_t predicate = tw_attr_int(op, "predicate", -1);
  if (predicate != TW_SLT && predicate != TW_SLE && predicate != TW_SGT && predicate != TW_SGE)
    return low;
  predicate = holds ? predicate : negated[predicate];
  MlirValue a = mlirOperationGetOperand(op, 0), b = mlirOperationGetOperand(op, 1);
  bool is_less = predicate == TW_SLT || predicate == TW_SLE, strictly = predicate == TW_SLT || predicate == TW_SGT;
  MlirValue small = is_less ? a : b, large = is_less ? b : a;
  int64_t least = tw_range_of(small).low;
  return mlirValueEqual(large, x) && least < INT64_MAX ? max(low, least + strictly) : low;
}

/* The conditions of the branches around an op, in which it stands. */
static int64_t least_where(MlirOperation op, MlirValue x, int64_t low) {
  for (MlirBlock inner = mlirOperationGetBlock(op); !mlirBlockIsNull(inner);) {
    MlirOperation branch = mlirBlockGetParentOperation(inner);
    if (mlirOperationIsNull(branch) || tw_op_is(branch, TW_FUNC_FUNC))
      break;
    if (tw_op_is(branch, TW_SCF_IF))
      low = least_by(x, mlirOperationGetOperand(branch, 0), mlirBlockEqual(inner, tw_region_block(branch, 0)),
                     MOST_STEPS, low);
    inner = mlirOperationGetBlock(branch);
  }
  return low;
}

int64_t tw_least_at(MlirOperation op, MlirValue x) {
  int64_t low = least_where(op, x, tw_range_of(x).low), by;
  MlirOperation sum = tw_def(x);
  if (low >= 0 || mlirOperationIsNull(sum))
    return low;
  if (tw_op_is(sum, TW_ARITH_EXTSI))
    return max(low, tw_least_at(op, mlirOperationGetOperand(sum, 0)));
  /* a number that is large enough for its sum to wrap is no index */
  bool adds = tw_op_is(sum, TW_ARITH_ADDI), subtracts = tw_op_is(sum, TW_ARITH_SUBI);
  if ((!adds && !subtracts) || !tw_known_int(mlirOperationGetOperand(sum, 1), &by))
    return low;
  by = subtracts ? -by : by;
  int64_t least = tw_least_at(op, mlirOperationGetOperand(sum, 0));
  tw_range_t all = tw_range_of(mlirOperationGetOperand(sum, 0));
  bool wraps = tw_bits(mlirValueGetType(x)) < 64 ? all.high + by > INT32_MAX : by > 0 && all.high > INT64_MAX - by;
  return least >= 0 && by > INT32_MIN && by < INT32_MAX && !wraps ? max(low, least + by) : low;
}

static bool is_taken(MlirOperation branch, MlirBlock inner) {
  return tw_op_is(branch, TW_SCF_IF) && mlirBlockEqual(inner, tw_region_block(branch, 0));
}

bool tw_sum_stays(MlirOperation op, MlirValue x, int64_t by) {
  if (carries_nothing(x, by))
    return true;
  tw_range_t found = tw_range_of(x);
  for (MlirBlock inner = mlirOperationGetBlock(op); !mlirBlockIsNull(inner);) {
    MlirOperation branch = mlirBlockGetParentOperation(inner);
    if (mlirOperationIsNull(branch) || tw_op_is(branch, TW_FUNC_FUNC))
      break;
    if (is_taken(branch, inner))
      narrow_by(x, mlirOperationGetOperand(branch, 0), MOST_STEPS, &found);
    inner = mlirOperationGetBlock(branch);
  }
  return found.low + by >= INT32_MIN && found.high + by <= INT32_MAX;
}
