/* grouped_order.c - see grouped_order.h
 *
 * Of M x N tiles, the loop counts %t from 0 or more to below M * N. With G rows in a group,
 *
 *   %first = %t / (G * N) * G             the first row of the group
 *   %g     = min(M - %first, G)           how many rows it has
 *   %x     = %first + %u % %g             %u: %t, or %t % (G * N)
 *   %y     = %t % (G * N) / %g
 *
 * No pair comes twice: %t < M * N has %first < M, so %g is at least 1. Groups have rows of their own. Within one,
 * r = %t % (G * N) is less than %g * N, so that r / %g and r % %g together tell r; %t differs from r by the same
 * number in all of the group, which only turns the rest. What must hold besides: this arithmetic does not overflow. */
#include "lowering/gpu/facts/grouped_order.h"

#include "lowering/loops.h"
#include "lowering/ranges.h"

/* A value, or a known number in place of it. */
typedef struct {
  MlirValue value; /* null: */
  int64_t number;
} factor_t;

typedef struct {
  MlirValue x;
  factor_t by;
} by_factor_t;

static factor_t known(int64_t number) { return (factor_t){{NULL}, number}; }

static factor_t factor_of(MlirValue value) {
  int64_t number;
  return tw_known_int(value, &number) ? known(number) : (factor_t){value, 0};
}

static bool is_same(factor_t x, factor_t y) {
  if (mlirValueIsNull(x.value) || mlirValueIsNull(y.value))
    return mlirValueIsNull(x.value) && mlirValueIsNull(y.value) && x.number == y.number;
  return mlirValueEqual(x.value, y.value);
}

static bool is_natural(factor_t x) { return mlirValueIsNull(x.value) ? x.number >= 0 : tw_is_natural(x.value); }

static bool read_quotient(MlirValue value, by_factor_t *out) {
  MlirOperation op = tw_def(value);
  if (mlirOperationIsNull(op) || !(tw_op_is(op, TW_ARITH_FLOORDIVSI) || tw_op_is(op, TW_ARITH_DIVUI)))
    return false;
  *out = (by_factor_t){mlirOperationGetOperand(op, 0), factor_of(mlirOperationGetOperand(op, 1))};
  return true;
}

/* x % by, as it is of numbers that are not negative: with or without what makes it right for others. */
static bool read_rest(MlirValue value, by_factor_t *out) {
  MlirOperation op = tw_def(value);
  if (!mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_SELECT)) { /* rest + by, or the rest */
    value = mlirOperationGetOperand(op, 2);
    MlirOperation turned = tw_def(mlirOperationGetOperand(op, 1));
    op = tw_def(value);
    if (mlirOperationIsNull(turned) || mlirOperationIsNull(op) || !tw_op_is(turned, TW_ARITH_ADDI) ||
        !tw_op_is(op, TW_ARITH_REMSI) || !mlirValueEqual(mlirOperationGetOperand(turned, 0), value) ||
        !mlirValueEqual(mlirOperationGetOperand(turned, 1), mlirOperationGetOperand(op, 1)))
      return false;
  }
  bool is_mask = !mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_ANDI);
  if (!is_mask && (mlirOperationIsNull(op) || !(tw_op_is(op, TW_ARITH_REMSI) || tw_op_is(op, TW_ARITH_REMUI))))
    return false;
  *out = (by_factor_t){mlirOperationGetOperand(op, 0), factor_of(mlirOperationGetOperand(op, 1))};
  if (is_mask) {
    int64_t ones = mlirValueIsNull(out->by.value) ? out->by.number : -1;
    out->by = known(ones + 1);
    return ones >= 0 && (ones & (ones + 1)) == 0;
  }
  return true;
}

/* The operands of a sum, product or minimum; false for another op. */
static bool read_pair(MlirValue value, tw_op_kind_t kind, MlirValue out[2]) {
  MlirOperation op = tw_def(value);
  if (mlirOperationIsNull(op) || !tw_op_is(op, kind))
    return false;
  for (int i = 0; i < 2; i++)
    out[i] = mlirOperationGetOperand(op, i);
  return true;
}

/* Whether the value is x * y. */
static bool is_product(MlirValue value, factor_t x, factor_t y) {
  factor_t all = factor_of(value);
  MlirValue pair[2];
  if (mlirValueIsNull(all.value))
    return mlirValueIsNull(x.value) && mlirValueIsNull(y.value) && all.number == x.number * y.number;
  if (!read_pair(value, TW_ARITH_MULI, pair))
    return false;
  factor_t a = factor_of(pair[0]), b = factor_of(pair[1]);
  return (is_same(a, x) && is_same(b, y)) || (is_same(a, y) && is_same(b, x));
}

typedef struct {
  MlirOperation loop;
  MlirValue first;           /* %first */
  factor_t height, in_group; /* %g, G * N */
} grouped_t;

/* %y, which tells %g and G * N. */
static bool read_column(grouped_t *o, MlirValue y, MlirValue *within) {
  by_factor_t column, rest;
  if (!read_quotient(y, &column) || !read_rest(column.x, &rest) || !mlirValueEqual(rest.x, tw_loop_iv(o->loop)))
    return false;
  *within = column.x;
  o->height = column.by;
  o->in_group = rest.by;
  return true;
}

/* %x, which tells %first. */
static bool read_row(grouped_t *o, MlirValue x, MlirValue within) {
  MlirValue pair[2];
  by_factor_t rest;
  if (!read_pair(x, TW_ARITH_ADDI, pair))
    return false;
  for (int i = 0; i < 2; i++) {
    bool ok = read_rest(pair[i], &rest) && is_same(rest.by, o->height);
    o->first = pair[1 - i];
    if (ok && (mlirValueEqual(rest.x, within) || mlirValueEqual(rest.x, tw_loop_iv(o->loop))))
      return true;
  }
  return false;
}

/* The other operand of a product or minimum with a known number; null if it has none. */
static MlirValue beside_number(MlirValue value, tw_op_kind_t kind, int64_t *number) {
  MlirValue pair[2];
  for (int i = 0; read_pair(value, kind, pair) && i < 2; i++)
    if (tw_known_int(pair[i], number))
      return pair[1 - i];
  return (MlirValue){NULL};
}

/* N, of which G * N is a group. */
static bool read_columns(const grouped_t *o, int64_t rows, factor_t *columns) {
  int64_t factor = 0;
  if (mlirValueIsNull(o->in_group.value)) {
    *columns = known(o->in_group.number / rows);
    return o->in_group.number % rows == 0;
  }
  *columns = (factor_t){beside_number(o->in_group.value, TW_ARITH_MULI, &factor), 0};
  return !mlirValueIsNull(columns->value) && factor == rows;
}

/* Whether the group, its height and the loop's end are of one M x N. */
static bool fits_together(const grouped_t *o) {
  int64_t rows, height;
  by_factor_t group;
  MlirValue number = beside_number(o->first, TW_ARITH_MULI, &rows), pair[2];
  if (mlirValueIsNull(number) || rows <= 0 || !read_quotient(number, &group) ||
      !mlirValueEqual(group.x, tw_loop_iv(o->loop)) || !is_same(group.by, o->in_group))
    return false;
  factor_t columns;
  if (mlirValueIsNull(o->height.value) || !read_columns(o, rows, &columns))
    return false;
  MlirValue left = beside_number(o->height.value, TW_ARITH_MINSI, &height);
  if (mlirValueIsNull(left) || height != rows || !read_pair(left, TW_ARITH_SUBI, pair) ||
      !mlirValueEqual(pair[1], o->first))
    return false;
  factor_t all = factor_of(pair[0]);
  return is_natural(all) && is_natural(columns) && is_product(mlirOperationGetOperand(o->loop, 1), all, columns);
}

bool tw_is_grouped_order(MlirOperation loop, MlirValue x, MlirValue y) {
  grouped_t o = {.loop = loop};
  MlirValue within;
  return tw_op_is(loop, TW_SCF_FOR) && tw_is_natural(mlirOperationGetOperand(loop, 0)) && read_column(&o, y, &within) &&
         read_row(&o, x, within) && fits_together(&o);
}
