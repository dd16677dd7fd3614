/* dim_classes.c - see dim_classes.h */
#include "lowering/gpu/grid/dim_classes.h"

#include "lowering/gpu/facts/access.h"
#include "lowering/layout/memory.h"
#include "lowering/loops.h"

const char tw_dims_reduced[] = "the axis is reduced";

enum { LEAST_ROWS = 64, LEAST_COLUMNS = 64, FEW_ROWS = 16, FEW_COLUMNS = 8 };

/* ---- classes ----------------------------------------------------------------------------------- */

/* The number of a tile's first dimension. */
static int first_of(tw_dims_t *d, MlirValue tile) {
  int first = tw_map_number(&d->first, tile, d->classes.count);
  MlirType type = mlirValueGetType(tile);
  if (first < d->classes.count)
    return first;
  for (int i = 0; i < tw_rank(type); i++) {
    d->at = tw_room(d->at, (size_t)d->classes.count, sizeof *d->at);
    d->at[tw_sets_add(&d->classes)] = (tw_dim_t){.value = tile, .dim = i, .extent = tw_extent(type, i), .least = 1};
  }
  tw_map_set_number(&d->first, tile, first);
  return first;
}

int tw_dims_class(tw_dims_t *d, MlirValue tile, int dim) { return tw_sets_find(&d->classes, first_of(d, tile) + dim); }

int tw_dims_find(tw_dims_t *d, MlirValue tile, int class) {
  MlirType type = mlirValueGetType(tile);
  for (int i = 0; tw_is_tile(type) && i < tw_rank(type); i++)
    if (tw_dims_class(d, tile, i) == class)
      return i;
  return -1;
}

/* The first reason, but any other one before that it is reduced. */
static const char *reason(const char *known, const char *why) {
  return known == NULL || (known == tw_dims_reduced && why != NULL) ? why : known;
}

static void keep_whole(tw_dims_t *d, MlirValue tile, int dim, const char *why) {
  int class = tw_dims_class(d, tile, dim); /* which may move what `at` points to */
  d->at[class].whole = reason(d->at[class].whole, why);
}

static void keep_all_whole(tw_dims_t *d, MlirValue value, const char *why) {
  for (int i = 0; tw_is_tile(mlirValueGetType(value)) && i < tw_rank(mlirValueGetType(value)); i++)
    keep_whole(d, value, i, why);
}

static void tie(tw_dims_t *d, MlirValue x, int x_dim, MlirValue y, int y_dim) {
  int a = tw_dims_class(d, x, x_dim), b = tw_dims_class(d, y, y_dim);
  int into = a < b ? a : b, from = a < b ? b : a;
  if (a == b)
    return;
  tw_dim_t *to = &d->at[into], *old = &d->at[from];
  tw_sets_unite(&d->classes, a, b);
  to->extent = old->extent < to->extent ? old->extent : to->extent;
  to->least = old->least > to->least ? old->least : to->least;
  to->whole = reason(to->whole, old->whole);
}

/* Two values of the same shape, element by element. */
static void tie_all(void *dims, MlirValue x, MlirValue y) {
  tw_dims_t *d = dims;
  if (tw_is_tile(mlirValueGetType(x)) && tw_is_tile(mlirValueGetType(y)))
    for (int i = 0; i < tw_rank(mlirValueGetType(x)); i++)
      tie(d, x, i, y, i);
}

/* ---- what ops tie ------------------------------------------------------------------------------ */

static void tie_elementwise(tw_dims_t *d, MlirOperation op) {
  MlirValue one = {NULL};
  intptr_t operands = mlirOperationGetNumOperands(op), results = mlirOperationGetNumResults(op);
  for (intptr_t i = 0; i < operands + results; i++) {
    MlirValue value = i < operands ? mlirOperationGetOperand(op, i) : mlirOperationGetResult(op, i - operands);
    if (!tw_is_tile(mlirValueGetType(value)))
      continue;
    if (one.ptr != NULL)
      tie_all(d, one, value);
    one = value;
  }
}

/* Axes of the input are the last ones of the result; of extent one they are repeated. */
static void tie_broadcast(tw_dims_t *d, MlirOperation op) {
  MlirValue in = mlirOperationGetOperand(op, 0), out = mlirOperationGetResult(op, 0);
  int more = (int)(tw_rank(mlirValueGetType(out)) - tw_rank(mlirValueGetType(in)));
  for (int i = 0; tw_is_tile(mlirValueGetType(in)) && i < tw_rank(mlirValueGetType(in)); i++)
    if (tw_extent(mlirValueGetType(in), i) == tw_extent(mlirValueGetType(out), i + more))
      tie(d, in, i, out, i + more);
}

/* Elements keep their order, so dimensions go over into others in groups of the same number of elements. Of a group,
 * the parts along its outermost dimension are the same on both sides; the others are cut up in another way. */
static void tie_reshape(tw_dims_t *d, MlirOperation op) {
  static const char why[] = "a reshape mixes the axis with others";
  MlirValue side[2] = {mlirOperationGetOperand(op, 0), mlirOperationGetResult(op, 0)};
  int at[2] = {0, 0}, rank[2];
  for (int s = 0; s < 2; s++)
    rank[s] = (int)tw_rank(mlirValueGetType(side[s]));
  while (at[0] < rank[0] || at[1] < rank[1]) {
    int64_t count[2] = {1, 1};
    int outermost[2] = {-1, -1};
    do {
      int s = at[0] == rank[0] || (at[1] < rank[1] && count[1] < count[0]);
      int dim = at[s]++;
      count[s] *= tw_extent(mlirValueGetType(side[s]), dim);
      if (outermost[s] < 0 && tw_extent(mlirValueGetType(side[s]), dim) > 1)
        outermost[s] = dim;
      else
        keep_whole(d, side[s], dim, why);
    } while (count[0] != count[1] || (outermost[0] < 0 && (at[0] < rank[0] || at[1] < rank[1])));
    if (outermost[0] >= 0)
      tie(d, side[0], outermost[0], side[1], outermost[1]);
  }
}

static void tie_permute(tw_dims_t *d, MlirOperation op) {
  int64_t order[TW_MAX_RANK];
  intptr_t rank = tw_attr_ints(op, "order", order, TW_MAX_RANK);
  for (intptr_t i = 0; i < rank; i++)
    tie(d, mlirOperationGetOperand(op, 0), (int)order[i], mlirOperationGetResult(op, 0), (int)i);
}

static void tie_reduce(tw_dims_t *d, MlirOperation op) {
  MlirValue in = mlirOperationGetOperand(op, 0), out = mlirOperationGetResult(op, 0);
  int axis = (int)tw_attr_int(op, "axis", 0);
  keep_whole(d, in, axis, tw_dims_reduced);
  for (int i = 0, to = 0; tw_is_tile(mlirValueGetType(out)) && i < tw_rank(mlirValueGetType(in)); i++)
    if (i != axis)
      tie(d, in, i, out, to++);
}

static void need(tw_dims_t *d, MlirValue tile, int dim, int64_t many, int64_t few) {
  int number = tw_dims_class(d, tile, dim);
  tw_dim_t *class = &d->at[number];
  int64_t least = class->extent >= many ? many : few;
  class->least = class->least > least ? class->least : least;
}

static void tie_mma(tw_dims_t *d, MlirOperation op) {
  MlirValue lhs = mlirOperationGetOperand(op, 0), rhs = mlirOperationGetOperand(op, 1);
  MlirValue acc = mlirOperationGetOperand(op, 2), out = mlirOperationGetResult(op, 0);
  int m = (int)tw_rank(mlirValueGetType(out)) - 2, n = m + 1;
  tie_all(d, acc, out);
  for (int i = 0; i <= m; i++)
    tie(d, lhs, i, out, i);
  for (int i = 0; i < m; i++)
    tie(d, rhs, i, out, i);
  tie(d, rhs, n, out, n);
  keep_whole(d, lhs, n, "products add along the axis");
  keep_whole(d, rhs, m, "products add along the axis");
  need(d, out, m, LEAST_ROWS, FEW_ROWS);
  need(d, out, n, LEAST_COLUMNS, FEW_COLUMNS);
}

static void keep_operands_whole(tw_dims_t *d, MlirOperation op, const char *why) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    keep_all_whole(d, mlirOperationGetOperand(op, i), why);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    keep_all_whole(d, mlirOperationGetResult(op, i), why);
}

static bool is_splat(MlirOperation constant) {
  MlirAttribute value = tw_attr(constant, "value");
  return !mlirAttributeIsADenseElements(value) || mlirDenseElementsAttrIsSplat(value);
}

/* Of an op that must happen once for the whole tile, or in order. */
static const char *why_refused(MlirOperation op) {
  if (tw_op_is(op, TW_SCF_WHILE))
    return "it has a loop that may wait";
  if (tw_op_kind(op) == TW_UNKNOWN_OP || !tw_op_has(op, TW_ORDERS_ALL))
    return "it has an op that may do anything";
  return tw_op_has(op, TW_WRITES_ARRAY) ? "it has atomic accesses" : "it prints or asserts";
}

static bool is_by_element(MlirOperation op) {
  return tw_op_form(op) == TW_FORM_ELEMENTWISE || (tw_op_has(op, TW_BY_ELEMENT) && !tw_op_has(op, TW_ORDERS_ALL));
}

/* What only stands around others, or ends them. */
static bool is_silent(MlirOperation op) {
  return tw_op_form(op) == TW_FORM_CONTROL && !tw_op_has(op, TW_ORDERS_ALL) && !tw_op_is(op, TW_SCF_WHILE);
}

static MlirWalkResult relate(MlirOperation op, void *user) {
  tw_dims_t *d = user;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    if (tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, i))))
      first_of(d, mlirOperationGetResult(op, i));
  if (tw_op_loads(op))
    tw_ops_add(&d->reads, op);
  if (tw_op_stores(op))
    tw_ops_add(&d->writes, op);
  if (tw_is_constant(op)) {
    if (!is_splat(op))
      keep_operands_whole(d, op, "a constant differs along the axis");
  } else if (is_by_element(op)) {
    tie_elementwise(d, op);
  } else if (tw_op_is(op, TW_TILE_BROADCAST)) {
    tie_broadcast(d, op);
  } else if (tw_op_is(op, TW_TILE_RESHAPE)) {
    tie_reshape(d, op);
  } else if (tw_op_is(op, TW_TILE_PERMUTE)) {
    tie_permute(d, op);
  } else if (tw_op_is_reduction(op)) {
    tie_reduce(d, op);
  } else if (tw_op_form(op) == TW_FORM_SCAN) {
    tie_all(d, mlirOperationGetOperand(op, 0), mlirOperationGetResult(op, 0));
    keep_whole(d, mlirOperationGetOperand(op, 0), (int)tw_attr_int(op, "axis", 0), "a scan runs along the axis");
  } else if (tw_op_is_product(op)) {
    tie_mma(d, op);
  } else if (tw_op_is(op, TW_SCF_FOR) || tw_op_is(op, TW_SCF_IF)) {
    tw_each_source(op, tie_all, d);
  } else if (!tw_is_index_fact(op) && tw_op_form(op) != TW_FORM_SOURCE && !tw_op_has(op, TW_BY_TILE) &&
             !is_silent(op)) {
    d->refused = why_refused(op);
    return MlirWalkResultInterrupt;
  }
  return MlirWalkResultAdvance;
}

/* A tile that has a class twice would have a diagonal of parts. */
static void look_for_diagonals(tw_dims_t *d) {
  for (int n = 1; n < d->classes.count; n++)
    for (int i = 1; i <= d->at[n].dim; i++)
      if (tw_sets_find(&d->classes, n) == tw_sets_find(&d->classes, n - i))
        keep_whole(d, d->at[n].value, d->at[n].dim, "a tile has the axis twice");
}

/* ---- constants of one use ---------------------------------------------------------------------- */

static bool is_flexible(MlirOperation op) {
  return tw_op_form(op) == TW_FORM_SOURCE && tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0)));
}

static MlirWalkResult separate(MlirOperation op, void *user) {
  (void)user;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirOperation def = tw_def(mlirOperationGetOperand(op, i));
    if (mlirOperationIsNull(def) || !is_flexible(def) || tw_has_one_use(mlirOperationGetOperand(op, i)))
      continue;
    MlirOperation copy = mlirOperationClone(def);
    mlirBlockInsertOwnedOperationAfter(mlirOperationGetBlock(def), def, copy);
    mlirOperationSetOperand(op, i, mlirOperationGetResult(copy, 0));
  }
  return MlirWalkResultAdvance;
}

tw_dims_t tw_dims_of(MlirOperation func) {
  tw_dims_t dims = {.func = func};
  mlirOperationWalk(func, separate, NULL, MlirWalkPostOrder);
  mlirOperationWalk(func, relate, &dims, MlirWalkPostOrder);
  look_for_diagonals(&dims);
  return dims;
}

void tw_dims_free(tw_dims_t *dims) {
  free(dims->at);
  tw_ops_free(&dims->reads);
  tw_ops_free(&dims->writes);
  tw_sets_free(&dims->classes);
  tw_map_free(&dims->first);
}

/* ---- accesses ---------------------------------------------------------------------------------- */

intptr_t tw_dims_index(tw_dims_t *d, MlirOperation op, int class) {
  enum { FIRST_INDEX = 1 };
  bool indexed = tw_op_loads_tile(op) || tw_op_stores_tile(op);
  int dim = indexed ? tw_dims_find(d, tw_moved_tile(op), class) : -1;
  return dim < 0 ? -1 : FIRST_INDEX + dim;
}

int tw_dims_axis(tw_dims_t *d, MlirOperation op, int class, int64_t *extent) {
  int64_t order[TW_MAX_RANK];
  *extent = 0;
  if (tw_dims_index(d, op, class) < 0)
    return -1;
  MlirType type = mlirValueGetType(tw_moved_tile(op));
  int dim = tw_dims_find(d, tw_moved_tile(op), class);
  *extent = tw_extent(type, dim);
  tw_access_order(op, (int)tw_rank(type), order);
  return (int)order[dim];
}

bool tw_dims_are_written(tw_dims_t *d, int class) {
  for (int i = 0; i < d->writes.count; i++)
    if (tw_dims_find(d, tw_moved_tile(d->writes.at[i]), class) < 0)
      return false;
  return d->writes.count > 0;
}

static MlirWalkResult find_loop(MlirOperation op, void *user) {
  MlirOperation *loop = user;
  if (tw_op_is(op, TW_SCF_FOR) && mlirOperationIsNull(tw_enclosing_loop(op)) &&
      (!tw_op_is(*loop, TW_SCF_FOR) ||
       (tw_has_op_like(op, tw_op_is_product) && !tw_has_op_like(*loop, tw_op_is_product))))
    *loop = op;
  return MlirWalkResultAdvance;
}

MlirOperation tw_dims_loop(const tw_dims_t *d) {
  MlirOperation loop = d->func;
  mlirOperationWalk(d->func, find_loop, &loop, MlirWalkPreOrder);
  return loop;
}

/* ---- other extents ----------------------------------------------------------------------------- */

static void count_from(MlirOperation iota, MlirValue part) {
  MlirValue old = mlirOperationGetResult(iota, 0);
  MlirType type = mlirValueGetType(old), element = tw_element(type);
  tw_builder_t at = tw_build_before(mlirOperationGetNextInBlock(iota));
  at.location = mlirOperationGetLocation(iota);
  MlirType i32 = tw_i32(at.context);
  MlirValue first = tw_binary(&at, "arith.muli", i32, part, tw_const_int(&at, i32, tw_extent(type, 0)));
  if (tw_bits(element) != 32)
    first = tw_unary(&at, tw_bits(element) > 32 ? "arith.extsi" : "arith.trunci", element, first);
  MlirValue sum = tw_binary(&at, "arith.addi", type, old, tw_unary(&at, "tensor.splat", type, first));
  MlirOperation added = tw_def(sum);
  mlirValueReplaceAllUsesExcept(old, sum, 1, &added);
}

static void scale(tw_dims_t *d, int class, int64_t times, int64_t by, MlirValue part) {
  for (int n = 0; n < d->classes.count; n++) {
    MlirValue value = d->at[n].value;
    MlirOperation def = tw_def(value);
    if (tw_sets_find(&d->classes, n) != class)
      continue;
    MlirType old = mlirValueGetType(value);
    MlirType type = tw_with_extent(old, d->at[n].dim, tw_extent(old, d->at[n].dim) * times / by);
    mlirValueSetType(value, type);
    if (mlirOperationIsNull(def))
      continue;
    if (tw_is_constant(def))
      tw_set_attr(def, "value",
                  mlirDenseElementsAttrSplatGet(type, mlirDenseElementsAttrGetSplatValue(tw_attr(def, "value"))));
    if (tw_op_is(def, TW_TILE_IOTA))
      count_from(def, part);
  }
}

void tw_dims_divide(tw_dims_t *d, int class, int64_t by, MlirValue part) { scale(d, class, 1, by, part); }

void tw_dims_multiply(tw_dims_t *d, int class, int64_t by) { scale(d, class, by, 1, (MlirValue){NULL}); }

bool tw_dims_count(tw_dims_t *d, int class) {
  bool counts = false;
  for (int n = 0; n < d->classes.count; n++) {
    MlirOperation def = tw_def(d->at[n].value);
    counts |= tw_sets_find(&d->classes, n) == class && !mlirOperationIsNull(def) && tw_op_is(def, TW_TILE_IOTA);
  }
  return counts;
}
