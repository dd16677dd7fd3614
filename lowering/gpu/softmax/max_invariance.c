/* max_invariance.c - see max_invariance.h */
#include "lowering/gpu/softmax/max_invariance.h"

#include "lowering/layout/memory.h"
#include "lowering/loops.h"
#include "tilewright/dialect.h"

#include <math.h>

static const double LOG2_E = 1.44269504088896340736;
static const tw_change_t fixed = {.kind = TW_FIXED}, free_ = {.kind = TW_FREE};

/* ---- the table of changes -------------------------------------------------------------------------- */

tw_change_t tw_change_of(const tw_running_max_t *r, MlirValue value) {
  int found = tw_map_number(&r->index, value, -1);
  if (found >= 0)
    return r->changes[found];
  double number;
  bool zero = tw_known_float(value, &number) && number == 0;
  return zero ? free_ : fixed;
}

static void set(tw_running_max_t *r, MlirValue value, tw_change_t change) {
  int found = tw_map_number(&r->index, value, -1);
  if (found < 0) {
    r->changes = tw_room(r->changes, r->num_changes, sizeof *r->changes);
    found = (int)r->num_changes++;
    tw_map_set_number(&r->index, value, found);
  }
  r->changes[found] = change;
}

void tw_running_max_free(tw_running_max_t *r) {
  tw_map_free(&r->index);
  free(r->changes);
  free(r->running);
}

/* ---- changes of results ------------------------------------------------------------------------------ */

static bool moves(tw_change_t c) { return c.kind == TW_SHIFT || c.kind == TW_FACTOR; }

static bool near(double x, double y) { return fabs(x - y) <= 1e-6 * (1 + fabs(x)); }

static bool same(tw_change_t x, tw_change_t y) {
  return x.kind == y.kind &&
         (!moves(x) || (x.loop == y.loop && x.rows == y.rows && near(x.before, y.before) && near(x.now, y.now)));
}

/* A change whose amount came to nothing. */
static tw_change_t settle(tw_change_t c) { return moves(c) && near(c.before, 0) && near(c.now, 0) ? fixed : c; }

static tw_change_t times(tw_change_t c, double factor, tw_change_kind_t kind) {
  return settle((tw_change_t){kind, c.before * factor, c.now * factor, c.rows, c.loop});
}

/* x + sign * y, where a fixed or free side counts as 0. False for references of two loops, or of other rows. */
static bool sum(tw_change_t x, double sign, tw_change_t y, tw_change_kind_t kind, tw_change_t *out) {
  if (moves(x) && moves(y) && (x.loop != y.loop || x.rows != y.rows))
    return false;
  *out = settle((tw_change_t){kind, x.before + sign * y.before, x.now + sign * y.now, x.rows | y.rows,
                              moves(x) ? x.loop : y.loop});
  return true;
}

/* x + y and x - y: shifts add up; factors must agree. */
static bool change_of_sum(tw_change_t x, double sign, tw_change_t y, tw_change_t *out) {
  if (x.kind == TW_FREE || y.kind == TW_FREE) {
    *out = x.kind == TW_FREE ? y : x;
    if (out->kind == TW_SHIFT && x.kind == TW_FREE)
      *out = times(*out, sign, TW_SHIFT);
    return true;
  }
  if (x.kind == TW_FACTOR || y.kind == TW_FACTOR) {
    *out = x;
    out->rows |= y.rows;
    return same(x, y);
  }
  return sum(x, sign, y, TW_SHIFT, out);
}

/* x * y and x / y: factors multiply; a shift is scaled by a known number. */
static bool change_of_product(MlirOperation op, tw_change_t x, double sign, tw_change_t y, tw_change_t *out) {
  double number;
  if (x.kind == TW_FREE || (y.kind == TW_FREE && sign > 0)) {
    *out = free_;
    return true;
  }
  if (x.kind == TW_SHIFT && y.kind == TW_FIXED && tw_known_float(mlirOperationGetOperand(op, 1), &number)) {
    *out = times(x, sign > 0 ? number : 1 / number, TW_SHIFT);
    return true;
  }
  if (y.kind == TW_SHIFT && x.kind == TW_FIXED && sign > 0 && tw_known_float(mlirOperationGetOperand(op, 0), &number)) {
    *out = times(y, number, TW_SHIFT);
    return true;
  }
  return x.kind != TW_SHIFT && y.kind != TW_SHIFT && sum(x, sign, y, TW_FACTOR, out);
}

/* Comparisons whose outcome no change alters: a factor with 0, a shift with an infinity. */
static bool is_invariant_compare(MlirOperation op, tw_change_t x, tw_change_t y) {
  int moving = moves(x) ? 0 : 1;
  tw_change_t c = moving == 0 ? x : y;
  double number;
  if (!moves(c) || moves(moving == 0 ? y : x) || !tw_known_float(mlirOperationGetOperand(op, 1 - moving), &number))
    return false;
  return c.kind == TW_FACTOR ? number == 0 : isinf(number);
}

/* select(x == 0, 1, x) and select(m == -inf, 0, m), or with the other comparison the other way round: the value, but
 * where no change matters. `moving`: which of the two it is. */
static bool is_guard(MlirOperation op, int moving) {
  enum { OEQ = 1, OGT = 2, ONE = 6, UEQ = 8, UNE = 13 };
  MlirOperation compare = tw_def(mlirOperationGetOperand(op, 0));
  MlirValue value = mlirOperationGetOperand(op, 1 + moving);
  if (mlirOperationIsNull(compare) || !tw_op_is(compare, TW_ARITH_CMPF))
    return false;
  int64_t predicate = tw_attr_int(compare, "predicate", 0);
  bool first = mlirValueEqual(mlirOperationGetOperand(compare, 0), value);
  bool second = mlirValueEqual(mlirOperationGetOperand(compare, 1), value);
  if (moving == 1)
    return (first || second) && (predicate == OEQ || predicate == UEQ);
  return (first && predicate == OGT) || ((first || second) && (predicate == ONE || predicate == UNE));
}

/* Whether a shift leaves the other side of a select as it is. */
static bool is_infinite(MlirValue value) {
  double number;
  return tw_known_float(value, &number) && isinf(number);
}

static bool change_of_select(tw_running_max_t *r, MlirOperation op, tw_change_t *out) {
  tw_change_t sides[] = {tw_change_of(r, mlirOperationGetOperand(op, 1)),
                         tw_change_of(r, mlirOperationGetOperand(op, 2))};
  int moving = moves(sides[0]) ? 0 : 1;
  tw_change_t other = sides[1 - moving];
  *out = sides[moving];
  if (moves(tw_change_of(r, mlirOperationGetOperand(op, 0))))
    return false;
  if (!moves(*out)) {
    out->kind = same(sides[0], sides[1]) ? sides[0].kind : TW_FIXED;
    return true;
  }
  if (same(sides[0], sides[1]) || (out->kind == TW_FACTOR && other.kind == TW_FREE) ||
      (out->kind == TW_SHIFT && is_infinite(mlirOperationGetOperand(op, 2 - moving))))
    return true;
  if (moves(other) || !is_guard(op, moving))
    return false;
  if (out->kind == TW_SHIFT)
    r->running[out->loop].guarded = true;
  return true;
}

/* The dimensions of the result of a reshape that the dimensions `rows` become; false if they do not stay apart. */
static bool reshaped_rows(MlirOperation op, uint32_t rows, uint32_t *out) {
  MlirType from = mlirValueGetType(mlirOperationGetOperand(op, 0)),
           to = mlirValueGetType(mlirOperationGetResult(op, 0));
  intptr_t d = 0;
  *out = 0;
  for (intptr_t i = 0; i < tw_rank(from); i++) {
    if (tw_extent(from, i) == 1)
      continue;
    while (d < tw_rank(to) && tw_extent(to, d) == 1)
      d++;
    if (d == tw_rank(to) || tw_extent(to, d) != tw_extent(from, i))
      return (rows >> i) == 0;
    *out |= (rows >> i & 1) << d++;
  }
  return true;
}

static bool change_of_reduce(MlirOperation op, tw_change_t x, tw_change_t *out) {
  int64_t axis = tw_attr_int(op, "axis", 0);
  *out = x;
  out->rows = (x.rows & ((UINT32_C(1) << axis) - 1)) | (x.rows >> (axis + 1)) << axis;
  return x.kind == TW_FACTOR && tw_attr_int(op, "kind", 0) == TW_REDUCE_ADD && (x.rows >> axis & 1) == 0;
}

/* Rows of lhs are rows of the result; along k all must be one. */
static bool change_of_mma(tw_change_t lhs, tw_change_t rhs, tw_change_t acc, intptr_t rank, tw_change_t *out) {
  *out = lhs.kind == TW_FREE ? acc : lhs;
  return rank >= 2 && !moves(rhs) && lhs.kind != TW_SHIFT && (lhs.rows >> (rank - 1)) == 0 &&
         (acc.kind == TW_FREE || lhs.kind == TW_FREE || same(lhs, acc));
}

/* Of functions that turn one kind of change into another. */
static bool change_of_function(MlirOperation op, tw_change_t x, tw_change_t *out) {
  if (tw_op_is(op, TW_ARITH_NEGF))
    *out = x.kind == TW_SHIFT ? times(x, -1, TW_SHIFT) : x;
  else if (tw_op_is(op, TW_MATH_EXP2) && x.kind == TW_SHIFT)
    *out = times(x, 1, TW_FACTOR);
  else if (tw_op_is(op, TW_MATH_EXP) && x.kind == TW_SHIFT)
    *out = times(x, LOG2_E, TW_FACTOR);
  else if (tw_op_is(op, TW_MATH_LOG2) && x.kind == TW_FACTOR)
    *out = times(x, 1, TW_SHIFT);
  else if (tw_op_is(op, TW_MATH_LOG) && x.kind == TW_FACTOR)
    *out = times(x, 1 / LOG2_E, TW_SHIFT);
  else
    return false;
  return true;
}

/* The change of an op's one result, where an operand changes. */
static bool transfer(tw_running_max_t *r, MlirOperation op, tw_change_t *out) {
  intptr_t n = mlirOperationGetNumOperands(op);
  tw_change_t x = tw_change_of(r, mlirOperationGetOperand(op, 0)), y = fixed;
  if (n > 1)
    y = tw_change_of(r, mlirOperationGetOperand(op, 1));
  *out = x;
  if (tw_op_is(op, TW_TILE_BROADCAST) || tw_op_is(op, TW_ARITH_EXTF) ||
      ((tw_op_is(op, TW_ARITH_TRUNCF) || tw_op_has(op, TW_FLUSHES)) && x.kind == TW_FACTOR))
    return true;
  if (tw_op_is(op, TW_TILE_RESHAPE))
    return reshaped_rows(op, x.rows, &out->rows);
  if (tw_op_is(op, TW_ARITH_ADDF))
    return change_of_sum(x, 1, y, out);
  if (tw_op_is(op, TW_ARITH_SUBF))
    return change_of_sum(x, -1, y, out);
  if (tw_op_is(op, TW_ARITH_MULF))
    return change_of_product(op, x, 1, y, out);
  if (tw_op_is(op, TW_ARITH_DIVF))
    return change_of_product(op, x, -1, y, out);
  if (tw_op_is(op, TW_ARITH_CMPF)) {
    *out = fixed;
    return is_invariant_compare(op, x, y);
  }
  if (tw_op_is(op, TW_ARITH_SELECT))
    return change_of_select(r, op, out);
  if (tw_op_is_reduction(op))
    return change_of_reduce(op, x, out);
  if (tw_op_is_product(op))
    return change_of_mma(x, y, tw_change_of(r, mlirOperationGetOperand(op, 2)),
                         tw_rank(mlirValueGetType(mlirOperationGetResult(op, 0))), out);
  return change_of_function(op, x, out);
}

/* ---- loops with a running maximum ------------------------------------------------------------------- */

/* select(x > y, x, y), with any comparison that picks the larger one: a NaN may stay or go, by where it stands. */
static bool is_choice_of_larger(MlirOperation op) {
  enum { OGT = 2, OGE, OLT, OLE, UGT = 9, UGE, ULT, ULE };
  MlirOperation compare = tw_op_is(op, TW_ARITH_SELECT) ? tw_def(mlirOperationGetOperand(op, 0)) : tw_null_op();
  if (mlirOperationIsNull(compare) || !tw_op_is(compare, TW_ARITH_CMPF))
    return false;
  int64_t predicate = tw_attr_int(compare, "predicate", 0);
  bool is_greater = predicate == OGT || predicate == OGE || predicate == UGT || predicate == UGE;
  bool is_less = predicate == OLT || predicate == OLE || predicate == ULT || predicate == ULE;
  return (is_greater || is_less) &&
         mlirValueEqual(mlirOperationGetOperand(op, 1), mlirOperationGetOperand(compare, is_less)) &&
         mlirValueEqual(mlirOperationGetOperand(op, 2), mlirOperationGetOperand(compare, is_greater));
}

/* The two numbers of which an op gives the larger one; false for another op. */
static bool read_maximum(MlirOperation op, MlirValue out[2]) {
  if (mlirOperationIsNull(op))
    return false;
  bool chooses = is_choice_of_larger(op);
  if (!chooses && !tw_op_is(op, TW_ARITH_MAXIMUMF) && !tw_op_is(op, TW_ARITH_MAXNUMF))
    return false;
  for (int i = 0; i < 2; i++)
    out[i] = mlirOperationGetOperand(op, chooses + i);
  return true;
}

/* Whether carried value `i` becomes the maximum of itself and something that does not depend on it. */
static bool runs(MlirOperation loop, intptr_t i, MlirOperation *maximum) {
  MlirValue m = tw_carried(loop, i), of[2];
  *maximum = tw_def(tw_carried_next(loop, i));
  if (!tw_is_tile(mlirValueGetType(m)) || !mlirTypeIsAF32(tw_element(mlirValueGetType(m))) ||
      !read_maximum(*maximum, of) || !mlirBlockEqual(mlirOperationGetBlock(*maximum), tw_loop_body(loop)))
    return false;
  bool first = mlirValueEqual(of[0], m);
  if (!first && !mlirValueEqual(of[1], m))
    return false;
  tw_slice_t slice = {.block = tw_loop_body(loop)};
  tw_slice_add(&slice, of[first]);
  bool own = !tw_slice_reads(&slice, m);
  tw_slice_free(&slice);
  return own;
}

static MlirWalkResult collect(MlirOperation op, void *user) {
  tw_running_max_t *r = user;
  if (!tw_op_is(op, TW_SCF_FOR))
    return MlirWalkResultAdvance;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++) {
    MlirOperation maximum;
    if (!runs(op, i, &maximum))
      continue;
    r->running = tw_room(r->running, (size_t)r->num, sizeof *r->running);
    r->running[r->num++] = (tw_running_t){.loop = op, .maximum = maximum, .position = i};
    break;
  }
  return MlirWalkResultAdvance;
}

static int running_at(const tw_running_max_t *r, MlirOperation op) {
  for (int i = 0; i < r->num; i++)
    if (mlirOperationEqual(r->running[i].loop, op) || mlirOperationEqual(r->running[i].maximum, op))
      return i;
  return -1;
}

/* ---- following the changes through the function ----------------------------------------------------- */

static bool follow_block(tw_running_max_t *r, MlirBlock block);

static uint32_t rows_of(MlirType type) {
  uint32_t rows = 0;
  for (intptr_t d = 0; d < tw_rank(type); d++)
    rows |= tw_extent(type, d) > 1 ? UINT32_C(1) << d : 0;
  return rows;
}

static bool is_f32_tile(MlirType type) { return tw_is_tile(type) && mlirTypeIsAF32(tw_element(type)); }

/* What an iteration leaves is what the next finds, and what the loop leaves. */
static tw_change_t handed_on(tw_change_t c) {
  c.before = c.now;
  c.now = 0;
  return c;
}

/* Before the loop no reference is off, or all are off as those of the loop before. */
static bool starts_right(tw_running_max_t *r, MlirOperation loop) {
  int offs = 0, moving = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(loop); i++) {
    tw_change_t init = tw_change_of(r, tw_carried_init(loop, i)), inside = tw_change_of(r, tw_carried(loop, i));
    if (moves(init)) {
      init.loop = inside.loop;
      if (!same(init, inside))
        return false;
      offs++;
    }
    moving += moves(inside);
  }
  return offs == 0 || offs == moving;
}

static bool stopped_at(tw_running_max_t *r, MlirOperation op) {
  r->obstacle = op;
  return false;
}

/* Assumes that the other carried values change as the first pass finds, and checks it in the second. */
static bool follow_running(tw_running_max_t *r, int number) {
  MlirOperation loop = r->running[number].loop;
  MlirBlock body = tw_loop_body(loop);
  MlirValue m = tw_carried(loop, r->running[number].position);
  intptr_t n = mlirOperationGetNumResults(loop);
  for (intptr_t i = 0; i < n; i++)
    set(r, tw_carried(loop, i), is_f32_tile(mlirValueGetType(tw_carried(loop, i))) ? free_ : fixed);
  set(r, m, (tw_change_t){TW_SHIFT, 1, 0, rows_of(mlirValueGetType(m)), number});
  for (int pass = 0; pass < 2; pass++) {
    if (!follow_block(r, body))
      return false;
    for (intptr_t i = 0; i < n; i++) {
      MlirValue carried = tw_carried(loop, i);
      tw_change_t next = tw_change_of(r, tw_carried_next(loop, i));
      tw_change_t assumed = handed_on(next);
      if (next.kind == TW_FREE && tw_change_of(r, tw_carried_init(loop, i)).kind != TW_FREE)
        assumed = fixed;
      if ((moves(next) && !near(next.before, 0)) || (pass == 1 && !same(assumed, tw_change_of(r, carried))))
        return stopped_at(r, tw_loop_yield(loop));
      set(r, carried, assumed);
    }
  }
  if (!starts_right(r, loop))
    return stopped_at(r, loop);
  for (intptr_t i = 0; i < n; i++)
    set(r, mlirOperationGetResult(loop, i), tw_change_of(r, tw_carried(loop, i)));
  return true;
}

/* Whether an op is the comparison of a running maximum, and of nothing else. */
static bool is_comparison_of_maximum(const tw_running_max_t *r, MlirOperation op) {
  MlirOperation user = tw_op_is(op, TW_ARITH_CMPF) ? tw_only_user(mlirOperationGetResult(op, 0)) : tw_null_op();
  int running = mlirOperationIsNull(user) ? -1 : running_at(r, user);
  return running >= 0 && mlirOperationEqual(user, r->running[running].maximum);
}

static bool follow(tw_running_max_t *r, MlirOperation op) {
  int running = running_at(r, op);
  if (running >= 0 && mlirOperationEqual(op, r->running[running].maximum)) {
    MlirValue m = mlirOperationGetResult(op, 0), of[2];
    read_maximum(op, of);
    bool scores = mlirValueEqual(of[0], tw_carried(r->running[running].loop, r->running[running].position));
    if (moves(tw_change_of(r, of[scores])))
      return stopped_at(r, op);
    set(r, m, (tw_change_t){TW_SHIFT, 0, 1, rows_of(mlirValueGetType(m)), running});
    return true;
  }
  if (running >= 0)
    return follow_running(r, running);
  if (is_comparison_of_maximum(r, op)) {
    set(r, mlirOperationGetResult(op, 0), fixed);
    return true;
  }
  bool changes = false, zeros = false;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    tw_change_t operand = tw_change_of(r, mlirOperationGetOperand(op, i));
    changes = changes || moves(operand);
    zeros = zeros || operand.kind == TW_FREE;
  }
  if (changes && tw_op_is(op, TW_SCF_YIELD))
    return running_at(r, mlirOperationGetParentOperation(op)) >= 0 || stopped_at(r, op);
  bool simple = mlirOperationGetNumResults(op) == 1 && mlirOperationGetNumRegions(op) == 0;
  tw_change_t change = fixed;
  if ((changes || zeros) && simple && !transfer(r, op, &change)) {
    change = fixed;
    simple = !changes;
  }
  if (changes && !simple)
    return stopped_at(r, op);
  if (changes || zeros)
    for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
      set(r, mlirOperationGetResult(op, i), simple ? change : fixed);
  for (intptr_t region = 0; region < mlirOperationGetNumRegions(op); region++) {
    MlirBlock block = tw_region_block(op, region);
    if (!mlirBlockIsNull(block) && !follow_block(r, block))
      return false;
  }
  return true;
}

static bool follow_block(tw_running_max_t *r, MlirBlock block) {
  TW_EACH_OP(op, block)
    if (!follow(r, op))
      return false;
  return true;
}

bool tw_running_max_of(MlirOperation func, tw_running_max_t *out) {
  *out = (tw_running_max_t){.num = 0};
  mlirOperationWalk(func, collect, out, MlirWalkPreOrder);
  return out->num > 0 && follow_block(out, tw_region_block(func, 0));
}
