/* index_terms.c - indices of elements as sums of products. See index_terms.h. */
#include "lowering/index_terms.h"
#include "lowering/ranges.h"

#include <string.h>

static bool is_same_place(const tw_index_term_t *a, const tw_index_term_t *b) {
  bool same = a->axis == b->axis && a->num_scalars == b->num_scalars && a->tile.ptr == b->tile.ptr;
  for (int i = 0; same && i < a->num_scalars; i++)
    same = mlirValueEqual(a->scalars[i], b->scalars[i]);
  return same;
}

bool tw_index_add_term(tw_index_sum_t *sum, const tw_index_term_t *term, int64_t factor) {
  int at = 0;
  while (at < sum->count && !is_same_place(&sum->terms[at], term))
    at++;
  if (at == TW_INDEX_TERMS)
    return factor * term->factor == 0;
  if (at == sum->count) {
    sum->terms[sum->count++] = *term;
    sum->terms[at].factor = 0;
  }
  sum->terms[at].factor += factor * term->factor;
  if (sum->terms[at].factor == 0)
    sum->terms[at] = sum->terms[--sum->count];
  return true;
}

bool tw_index_add(tw_index_sum_t *sum, const tw_index_sum_t *other, int64_t factor) {
  bool ok = true;
  for (int i = 0; ok && i < other->count; i++)
    ok = tw_index_add_term(sum, &other->terms[i], factor);
  return ok;
}

bool tw_index_is_uniform(const tw_index_sum_t *sum) {
  for (int i = 0; i < sum->count; i++)
    if (sum->terms[i].axis >= 0)
      return false;
  return true;
}

static void add_scalar(tw_index_term_t *term, MlirValue scalar) {
  int at = term->num_scalars++;
  for (; at > 0 && (uintptr_t)term->scalars[at - 1].ptr > (uintptr_t)scalar.ptr; at--)
    term->scalars[at] = term->scalars[at - 1];
  term->scalars[at] = scalar;
}

bool tw_index_divide(const tw_index_term_t *term, const tw_index_term_t *by, tw_index_term_t *out) {
  int next = 0;
  *out = *term;
  out->num_scalars = 0;
  for (int i = 0; i < term->num_scalars; i++)
    if (next < by->num_scalars && mlirValueEqual(term->scalars[i], by->scalars[next]))
      next++;
    else
      add_scalar(out, term->scalars[i]);
  out->factor = term->factor / by->factor;
  return next == by->num_scalars && term->factor % by->factor == 0;
}

/* ---- reading -------------------------------------------------------------------------------------------- */

static const tw_index_sum_t nothing = {.count = 0};

static bool of_constant(tw_index_sum_t *out, int64_t number) {
  *out = nothing;
  return tw_index_add_term(out, &(tw_index_term_t){.factor = number, .axis = -1}, 1);
}

static bool of_one(tw_index_sum_t *out, tw_index_term_t term) {
  *out = nothing;
  return tw_index_add_term(out, &term, 1);
}

/* At most one of them differs by element. */
static bool multiply_terms(const tw_index_term_t *x, const tw_index_term_t *y, tw_index_term_t *out) {
  enum { MOST = INT32_MAX };
  bool small = x->factor > -MOST && x->factor < MOST && y->factor > -MOST && y->factor < MOST;
  if (!small || (x->axis >= 0 && y->axis >= 0) || x->num_scalars + y->num_scalars > TW_INDEX_SCALARS)
    return false;
  *out = x->axis >= 0 ? *x : *y;
  const tw_index_term_t *other = x->axis >= 0 ? y : x;
  out->factor *= other->factor;
  for (int i = 0; i < other->num_scalars; i++)
    add_scalar(out, other->scalars[i]);
  return true;
}

bool tw_index_multiply(const tw_index_sum_t *x, const tw_index_sum_t *y, tw_index_sum_t *out) {
  tw_index_term_t term;
  *out = nothing;
  for (int i = 0; i < x->count; i++)
    for (int j = 0; j < y->count; j++)
      if (!multiply_terms(&x->terms[i], &y->terms[j], &term) || !tw_index_add_term(out, &term, 1))
        return false;
  return true;
}

static bool read_arithmetic(MlirOperation op, tw_index_sum_t *out) {
  tw_index_sum_t x, y;
  bool adds = tw_op_is(op, TW_ARITH_ADDI), subtracts = tw_op_is(op, TW_ARITH_SUBI),
       product = tw_op_is(op, TW_ARITH_MULI);
  if ((!adds && !subtracts && !product) || !tw_read_index_sum(mlirOperationGetOperand(op, 0), &x) ||
      !tw_read_index_sum(mlirOperationGetOperand(op, 1), &y))
    return false;
  if (product)
    return tw_index_multiply(&x, &y, out);
  *out = x;
  return tw_index_add(out, &y, subtracts ? -1 : 1);
}

/* The axis of the result along which axis `axis` of a reshape's operand lies; -1 where it does more than to insert or
 * drop ones. */
static int axis_of_reshape(MlirType from, MlirType to, int axis) {
  intptr_t f = 0, found = -1;
  for (intptr_t t = 0; t < tw_rank(to); t++) {
    if (tw_extent(to, t) == 1)
      continue;
    while (f < tw_rank(from) && tw_extent(from, f) == 1)
      f++;
    if (f == tw_rank(from) || tw_extent(from, f) != tw_extent(to, t))
      return -1;
    found = f++ == axis ? t : found;
  }
  return (int)found;
}

bool tw_index_move_axes(tw_index_sum_t *sum, MlirOperation op) {
  MlirType from = mlirValueGetType(mlirOperationGetOperand(op, 0)),
           to = mlirValueGetType(mlirOperationGetResult(op, 0));
  bool reshapes = tw_op_is(op, TW_TILE_RESHAPE);
  if (!reshapes && !tw_op_is(op, TW_TILE_BROADCAST))
    return false;
  for (int i = 0; i < sum->count; i++) {
    int axis = sum->terms[i].axis;
    if (axis < 0)
      continue;
    axis = reshapes ? axis_of_reshape(from, to, axis) : axis + (int)(tw_rank(to) - tw_rank(from));
    if (axis < 0)
      return false;
    sum->terms[i].axis = axis;
  }
  return true;
}

static bool read_tile(MlirValue value, MlirOperation op, tw_index_sum_t *out) {
  MlirType type = mlirValueGetType(value);
  if (!mlirOperationIsNull(op)) {
    if (tw_op_is(op, TW_TENSOR_SPLAT) || tw_op_is(op, TW_ARITH_EXTSI))
      return tw_read_index_sum(mlirOperationGetOperand(op, 0), out);
    if (tw_op_is(op, TW_TILE_BROADCAST) || tw_op_is(op, TW_TILE_RESHAPE))
      return tw_read_index_sum(mlirOperationGetOperand(op, 0), out) && tw_index_move_axes(out, op);
    if (tw_op_is(op, TW_TILE_IOTA))
      return tw_count(type) == 1 ? of_constant(out, 0) : of_one(out, (tw_index_term_t){.factor = 1, .axis = 0});
  }
  return tw_rank(type) == 1 && of_one(out, (tw_index_term_t){.factor = 1, .axis = 0, .tile = value});
}

bool tw_read_index_sum(MlirValue value, tw_index_sum_t *out) {
  MlirOperation op = tw_def(value);
  MlirType type = mlirValueGetType(value);
  int64_t constant;
  if (!tw_is_int(type) || tw_bits(type) < 32)
    return false;
  if (tw_known_int(value, &constant))
    return of_constant(out, constant);
  if (!mlirOperationIsNull(op) && read_arithmetic(op, out))
    return true;
  if (tw_is_tile(type))
    return read_tile(value, op, out);
  tw_index_term_t term = {.factor = 1, .axis = -1};
  if (!mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_EXTSI) &&
      tw_read_index_sum(mlirOperationGetOperand(op, 0), out))
    return true;
  add_scalar(&term, value);
  return of_one(out, term);
}

bool tw_index_is_natural(const tw_index_sum_t *sum) {
  for (int i = 0; i < sum->count; i++) {
    const tw_index_term_t *term = &sum->terms[i];
    bool natural = term->factor > 0 && (mlirValueIsNull(term->tile) || tw_is_natural(term->tile));
    for (int s = 0; natural && s < term->num_scalars; s++)
      natural = tw_is_natural(term->scalars[s]);
    if (!natural)
      return false;
  }
  return true;
}

/* ---- building ------------------------------------------------------------------------------------------- */

static MlirValue as_i32(const tw_builder_t *at, MlirValue x) {
  MlirType type = mlirValueGetType(x), i32 = tw_i32(at->context);
  if (tw_bits(type) == 32)
    return x;
  return tw_unary(at, "arith.trunci", tw_is_tile(type) ? tw_with_element(type, i32) : i32, x);
}

/* Factor and scalars. */
static MlirValue build_scalar(const tw_builder_t *at, const tw_index_term_t *term) {
  MlirType i32 = tw_i32(at->context);
  MlirValue product = {NULL};
  for (int i = 0; i < term->num_scalars; i++) {
    MlirValue x = as_i32(at, term->scalars[i]);
    product = mlirValueIsNull(product) ? x : tw_binary(at, "arith.muli", i32, product, x);
  }
  if (mlirValueIsNull(product) || term->factor != 1) {
    MlirValue number = tw_const_int(at, i32, term->factor);
    product = mlirValueIsNull(product) ? number : tw_binary(at, "arith.muli", i32, product, number);
  }
  return product;
}

/* What lies along one axis, as a tile of `shape`. */
static MlirValue build_along(const tw_builder_t *at, const tw_index_term_t *term, MlirType shape) {
  int64_t extents[TW_MAX_RANK], extent = tw_extent(shape, term->axis);
  MlirType i32 = tw_i32(at->context), line = tw_tile_type(i32, 1, &extent);
  for (intptr_t d = 0; d < tw_rank(shape); d++)
    extents[d] = d == term->axis ? extent : 1;
  MlirValue x = mlirValueIsNull(term->tile) ? tw_op1(at, "tile.iota", line, 0, NULL) : as_i32(at, term->tile);
  if (term->num_scalars > 0 || term->factor != 1)
    x = tw_binary(at, "arith.muli", line, x, tw_unary(at, "tensor.splat", line, build_scalar(at, term)));
  if (tw_rank(shape) > 1)
    x = tw_reshape(at, tw_tile_type(i32, tw_rank(shape), extents), x);
  return tw_rank(shape) > 1 ? tw_broadcast(at, tw_with_element(shape, i32), x) : x;
}

MlirValue tw_build_index_sum(const tw_builder_t *at, const tw_index_sum_t *sum, MlirType shape) {
  MlirType i32 = tw_i32(at->context);
  MlirValue scalar = {NULL}, tile = {NULL};
  for (int i = 0; i < sum->count; i++)
    if (sum->terms[i].axis < 0) {
      MlirValue x = build_scalar(at, &sum->terms[i]);
      scalar = mlirValueIsNull(scalar) ? x : tw_binary(at, "arith.addi", i32, scalar, x);
    }
  if (mlirValueIsNull(scalar))
    scalar = tw_const_int(at, i32, 0);
  if (!tw_is_tile(shape))
    return scalar;
  tile = tw_unary(at, "tensor.splat", tw_with_element(shape, i32), scalar);
  for (int i = 0; i < sum->count; i++)
    if (sum->terms[i].axis >= 0)
      tile = tw_binary(at, "arith.addi", tw_with_element(shape, i32), tile, build_along(at, &sum->terms[i], shape));
  return tile;
}
