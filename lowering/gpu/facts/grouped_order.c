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

static tw_factor_t known(int64_t number) { return (tw_factor_t){{NULL}, number}; }

static tw_factor_t factor_of(MlirValue value) {
  int64_t number;
  return tw_known_int(value, &number) ? known(number) : (tw_factor_t){value, 0};
}

bool tw_is_same_factor(tw_factor_t x, tw_factor_t y) {
  if (mlirValueIsNull(x.value) || mlirValueIsNull(y.value))
    return mlirValueIsNull(x.value) && mlirValueIsNull(y.value) && x.number == y.number;
  return mlirValueEqual(x.value, y.value);
}

static bool is_natural(tw_factor_t x) { return mlirValueIsNull(x.value) ? x.number >= 0 : tw_is_natural(x.value); }

bool tw_read_quotient(MlirValue value, tw_by_factor_t *out) {
  MlirOperation op = tw_def(value);
  if (mlirOperationIsNull(op) || !(tw_op_is(op, TW_ARITH_FLOORDIVSI) || tw_op_is(op, TW_ARITH_DIVUI)))
    return false;
  *out = (tw_by_factor_t){mlirOperationGetOperand(op, 0), factor_of(mlirOperationGetOperand(op, 1))};
  return true;
}

static bool is_of(MlirOperation op, tw_op_kind_t kind, MlirValue x, MlirValue y) {
  return !mlirOperationIsNull(op) && tw_op_is(op, kind) && mlirValueEqual(mlirOperationGetOperand(op, 0), x) &&
         mlirValueEqual(mlirOperationGetOperand(op, 1), y);
}

/* Whether the condition asks, among others, if the rest has another sign than what was divided by. */
static bool asks_for_sign(MlirOperation condition, MlirOperation rest) {
  bool asks = false;
  for (int i = 0; !mlirOperationIsNull(condition) && tw_op_is(condition, TW_ARITH_ANDI) && i < 2; i++) {
    MlirOperation compares = tw_def(mlirOperationGetOperand(condition, i));
    asks |= !mlirOperationIsNull(compares) && tw_op_is(compares, TW_ARITH_CMPI) &&
            tw_attr_int(compares, "predicate", -1) == TW_SLT && tw_is_zero(mlirOperationGetOperand(compares, 1)) &&
            is_of(tw_def(mlirOperationGetOperand(compares, 0)), TW_ARITH_XORI, mlirOperationGetResult(rest, 0),
                  mlirOperationGetOperand(rest, 1));
  }
  return asks;
}

/* The rest that this is where the numbers are not negative; null for any other op. */
static MlirOperation corrected_rest(MlirOperation select) {
  MlirValue value = mlirOperationGetOperand(select, 2);
  MlirOperation rest = tw_def(value);
  bool is = !mlirOperationIsNull(rest) && tw_op_is(rest, TW_ARITH_REMSI) &&
            is_of(tw_def(mlirOperationGetOperand(select, 1)), TW_ARITH_ADDI, value, mlirOperationGetOperand(rest, 1)) &&
            asks_for_sign(tw_def(mlirOperationGetOperand(select, 0)), rest);
  return is ? rest : tw_null_op();
}

bool tw_read_rest(MlirValue value, tw_by_factor_t *out) {
  MlirOperation op = tw_def(value);
  if (!mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_SELECT))
    op = corrected_rest(op);
  bool is_mask = !mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_ANDI);
  if (!is_mask && (mlirOperationIsNull(op) || !(tw_op_is(op, TW_ARITH_REMSI) || tw_op_is(op, TW_ARITH_REMUI))))
    return false;
  *out = (tw_by_factor_t){mlirOperationGetOperand(op, 0), factor_of(mlirOperationGetOperand(op, 1))};
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
static bool is_product(MlirValue value, tw_factor_t x, tw_factor_t y) {
  tw_factor_t all = factor_of(value);
  MlirValue pair[2];
  if (mlirValueIsNull(all.value))
    return mlirValueIsNull(x.value) && mlirValueIsNull(y.value) && all.number == x.number * y.number;
  if (!read_pair(value, TW_ARITH_MULI, pair))
    return false;
  tw_factor_t a = factor_of(pair[0]), b = factor_of(pair[1]);
  return (tw_is_same_factor(a, x) && tw_is_same_factor(b, y)) || (tw_is_same_factor(a, y) && tw_is_same_factor(b, x));
}

typedef struct {
  MlirValue number;             /* %t */
  MlirValue first;              /* %first */
  tw_factor_t height, in_group; /* %g, G * N */
} grouped_t;

/* %y, which tells %g and G * N. */
static bool read_column(grouped_t *o, MlirValue y, MlirValue *within) {
  tw_by_factor_t column, rest;
  if (!tw_read_quotient(y, &column) || !tw_read_rest(column.x, &rest) || !mlirValueEqual(rest.x, o->number))
    return false;
  *within = column.x;
  o->height = column.by;
  o->in_group = rest.by;
  return true;
}

/* %x, which tells %first. */
static bool read_row(grouped_t *o, MlirValue x, MlirValue within) {
  MlirValue pair[2];
  tw_by_factor_t rest;
  if (!read_pair(x, TW_ARITH_ADDI, pair))
    return false;
  for (int i = 0; i < 2; i++) {
    bool ok = tw_read_rest(pair[i], &rest) && tw_is_same_factor(rest.by, o->height);
    o->first = pair[1 - i];
    if (ok && (mlirValueEqual(rest.x, within) || mlirValueEqual(rest.x, o->number)))
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
static bool read_columns(const grouped_t *o, int64_t rows, tw_factor_t *columns) {
  int64_t factor = 0;
  if (mlirValueIsNull(o->in_group.value)) {
    *columns = known(o->in_group.number / rows);
    return o->in_group.number % rows == 0;
  }
  *columns = (tw_factor_t){beside_number(o->in_group.value, TW_ARITH_MULI, &factor), 0};
  return !mlirValueIsNull(columns->value) && factor == rows;
}

/* Whether the group and its height are of one M x N, and of which. */
static bool fits_together(const grouped_t *o, tw_tile_extents_t *out) {
  int64_t rows, height;
  tw_by_factor_t group;
  MlirValue number = beside_number(o->first, TW_ARITH_MULI, &rows), pair[2];
  if (mlirValueIsNull(number) || rows <= 0 || !tw_read_quotient(number, &group) ||
      !mlirValueEqual(group.x, o->number) || !tw_is_same_factor(group.by, o->in_group))
    return false;
  if (mlirValueIsNull(o->height.value) || !read_columns(o, rows, &out->columns))
    return false;
  MlirValue left = beside_number(o->height.value, TW_ARITH_MINSI, &height);
  if (mlirValueIsNull(left) || height != rows || !read_pair(left, TW_ARITH_SUBI, pair) ||
      !mlirValueEqual(pair[1], o->first))
    return false;
  out->rows = factor_of(pair[0]);
  return is_natural(out->rows) && is_natural(out->columns);
}

bool tw_read_grouped_order(MlirValue number, MlirValue x, MlirValue y, tw_tile_extents_t *out) {
  grouped_t o = {.number = number};
  MlirValue within;
  return read_column(&o, y, &within) && read_row(&o, x, within) && fits_together(&o, out);
}

bool tw_is_grouped_order(MlirOperation loop, MlirValue x, MlirValue y) {
  tw_tile_extents_t extents;
  return tw_op_is(loop, TW_SCF_FOR) && tw_is_natural(mlirOperationGetOperand(loop, 0)) &&
         tw_read_grouped_order(tw_loop_iv(loop), x, y, &extents) &&
         is_product(mlirOperationGetOperand(loop, 1), extents.rows, extents.columns);
}
