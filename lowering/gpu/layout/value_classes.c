/* value_classes.c - which values share a layout, and how layouts cross the ops between them. See value_classes.h. */
#include "lowering/gpu/layout/value_classes.h"

#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/layout/memory.h"
#include "lowering/loops.h"

/* ---- classes ----------------------------------------------------------------------------------- */

/* Made anew for each use. */
bool twl_is_flexible(MlirValue value) {
  MlirOperation op = tw_def(value);
  if (mlirOperationIsNull(op))
    return false;
  if (tw_op_is(op, TW_TILE_BROADCAST) || tw_op_is(op, TW_TILE_RESHAPE))
    return !tw_is_tile(mlirValueGetType(mlirOperationGetOperand(op, 0)));
  return tw_op_form(op) == TW_FORM_SOURCE;
}

bool twl_has_class(MlirValue value) { return tw_is_tile(mlirValueGetType(value)) && !twl_is_flexible(value); }

/* The node of a value with a class. */
static int node_of(twl_classes_t *c, MlirValue value) {
  int n = tw_map_number(&c->index, value, -1);
  if (n >= 0)
    return n;
  c->nodes = tw_room(c->nodes, (size_t)c->sets.count, sizeof *c->nodes);
  n = tw_sets_add(&c->sets);
  c->nodes[n] = (twl_node_t){.value = value};
  tw_map_set_number(&c->index, value, n);
  return n;
}

/* The class of a value. By its number: node_of may move the nodes. */
twl_node_t *twl_class_of(twl_classes_t *c, MlirValue value) {
  int number = tw_sets_find(&c->sets, node_of(c, value));
  return &c->nodes[number];
}

twl_node_t *twl_class_of_node(twl_classes_t *c, int node) { return &c->nodes[tw_sets_find(&c->sets, node)]; }

void twl_add_to_class(twl_classes_t *c, MlirValue stand_in, MlirValue value) {
  tw_map_set(&c->index, stand_in.ptr, 1, tw_map_get(&c->index, value.ptr, NULL));
}

static void unite(void *classes, MlirValue x, MlirValue y) {
  twl_classes_t *c = classes;
  if (!twl_has_class(x) || !twl_has_class(y))
    return;
  int p = node_of(c, x), q = node_of(c, y);
  tw_sets_unite(&c->sets, p, q);
}

static void add_edge(twl_classes_t *c, MlirOperation op, MlirValue from, MlirValue to) {
  if (!twl_has_class(from) || !twl_has_class(to))
    return;
  c->edges = tw_room(c->edges, c->num_edges, sizeof *c->edges);
  c->edges[c->num_edges++] = (twl_edge_t){op, node_of(c, from), node_of(c, to)};
}

bool twl_is_elementwise(MlirOperation op) {
  return tw_op_form(op) == TW_FORM_ELEMENTWISE || tw_op_has(op, TW_BY_ELEMENT) || tw_op_is(op, TW_TILE_MAP);
}

MlirValue twl_representative(MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    if (twl_has_class(mlirOperationGetResult(op, i)))
      return mlirOperationGetResult(op, i);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (twl_has_class(mlirOperationGetOperand(op, i)))
      return mlirOperationGetOperand(op, i);
  return (MlirValue){NULL};
}

MlirValue twl_reduced(MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (twl_has_class(mlirOperationGetOperand(op, i)))
      return mlirOperationGetOperand(op, i);
  return mlirOperationGetOperand(op, 0);
}

/* All tiles that go in share a layout, which those that come out of a scan have, too. */
static void classify_combining(twl_classes_t *c, MlirOperation op) {
  MlirValue one = twl_reduced(op);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    unite(c, one, mlirOperationGetOperand(op, i));
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    if (tw_op_form(op) == TW_FORM_SCAN)
      unite(c, mlirOperationGetResult(op, 0), mlirOperationGetResult(op, i));
    else
      add_edge(c, op, one, mlirOperationGetResult(op, i));
  if (tw_op_form(op) == TW_FORM_SCAN)
    unite(c, one, mlirOperationGetResult(op, 0));
}

static void classify(twl_classes_t *c, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    if (twl_has_class(mlirOperationGetResult(op, i)))
      (void)node_of(c, mlirOperationGetResult(op, i));
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    for (intptr_t i = 0;
         !mlirBlockIsNull(tw_region_block(op, r)) && i < mlirBlockGetNumArguments(tw_region_block(op, r)); i++)
      if (tw_is_tile(mlirValueGetType(mlirBlockGetArgument(tw_region_block(op, r), i))))
        (void)node_of(c, mlirBlockGetArgument(tw_region_block(op, r), i));
  if (twl_is_elementwise(op)) {
    MlirValue one = twl_representative(op);
    for (intptr_t i = 0; one.ptr && i < mlirOperationGetNumOperands(op); i++)
      unite(c, one, mlirOperationGetOperand(op, i));
    for (intptr_t i = 1; one.ptr && i < mlirOperationGetNumResults(op); i++)
      unite(c, one, mlirOperationGetResult(op, i));
  } else if (tw_op_combines(op)) {
    classify_combining(c, op);
  } else if (tw_op_is_product(op)) {
    unite(c, mlirOperationGetOperand(op, 2), mlirOperationGetResult(op, 0));
  } else if (tw_op_is(op, TW_TILE_SUM_PARTS)) {
    for (intptr_t i = 0; i + 1 < mlirOperationGetNumResults(op); i++)
      unite(c, mlirOperationGetOperand(op, i), mlirOperationGetResult(op, i));
  } else if (tw_op_form(op) == TW_FORM_CONTROL) {
    tw_each_source(op, unite, c);
  } else if (tw_is_shape_op(op) || tw_op_is(op, TW_TILE_EXTRACT)) {
    add_edge(c, op, mlirOperationGetOperand(op, 0), mlirOperationGetResult(op, 0));
  }
}

static void note_reductions(twl_classes_t *c) {
  for (size_t i = 0; i < c->num_ops; i++) {
    MlirOperation op = c->ops[i];
    if (tw_op_combines(op) && twl_has_class(twl_reduced(op)))
      twl_class_of(c, twl_reduced(op))->reduced |= UINT32_C(1) << tw_attr_int(op, "axis", 0);
  }
}

static bool is_access(MlirOperation op) {
  return tw_op_has(op, TW_BY_ELEMENT) || tw_op_loads_tile(op) || tw_op_stores_tile(op);
}

MlirValue twl_accessed(MlirOperation op) {
  MlirValue value = {NULL};
  if (!is_access(op))
    return value;
  if (mlirOperationGetNumResults(op))
    value = mlirOperationGetResult(op, 0);
  else if (tw_op_stores_tile(op))
    value = mlirOperationGetOperand(op, mlirOperationGetNumOperands(op) - 1);
  else
    value = twl_representative(op);
  return value.ptr && tw_is_tile(mlirValueGetType(value)) ? value : (MlirValue){NULL};
}

/* ---- how layouts cross shape ops ------------------------------------------------------------------ */

static void read_order(MlirOperation op, int rank, int *perm) {
  int64_t order[TW_LAYOUT_MAX_RANK];
  tw_attr_ints(op, "order", order, TW_LAYOUT_MAX_RANK);
  for (int d = 0; d < rank; d++)
    perm[d] = (int)order[d];
}

/* Shape of a broadcast's operand with leading ones up to the result's rank. */
static void aligned_shape(MlirOperation op, int rank, int64_t *shape) {
  int64_t own[TW_LAYOUT_MAX_RANK];
  int n = tw_tile_shape(mlirValueGetType(mlirOperationGetOperand(op, 0)), own);
  for (int d = 0; d < rank; d++)
    shape[d] = d < rank - n ? 1 : own[d - (rank - n)];
}

tw_layout_t twl_forward(MlirOperation op, const tw_layout_t *from) {
  int64_t shape[TW_LAYOUT_MAX_RANK], aligned[TW_LAYOUT_MAX_RANK];
  int perm[TW_LAYOUT_MAX_RANK];
  if (tw_op_form(op) == TW_FORM_REDUCTION)
    return tw_layout_slice(from, (int)tw_attr_int(op, "axis", 0), false);
  if (tw_op_is(op, TW_TILE_PERMUTE)) {
    read_order(op, from->rank, perm);
    return tw_layout_permute(from, perm);
  }
  int rank = tw_tile_shape(mlirValueGetType(mlirOperationGetResult(op, 0)), shape);
  if (tw_op_is(op, TW_TILE_RESHAPE))
    return tw_layout_reshape(from, rank, shape);
  if (tw_op_is(op, TW_TILE_EXTRACT))
    return tw_layout_extract(from, shape);
  aligned_shape(op, rank, aligned);
  tw_layout_t wide = tw_layout_reshape(from, rank, aligned);
  return tw_layout_broadcast(&wide, shape);
}

tw_layout_t twl_backward(MlirOperation op, const tw_layout_t *to) {
  int64_t shape[TW_LAYOUT_MAX_RANK], aligned[TW_LAYOUT_MAX_RANK];
  int perm[TW_LAYOUT_MAX_RANK];
  if (tw_op_is(op, TW_TILE_PERMUTE)) {
    read_order(op, to->rank, perm);
    return tw_layout_unpermute(to, perm);
  }
  int rank = tw_tile_shape(mlirValueGetType(mlirOperationGetOperand(op, 0)), shape);
  if (tw_op_is(op, TW_TILE_RESHAPE))
    return tw_layout_reshape(to, rank, shape);
  if (tw_op_is(op, TW_TILE_EXTRACT))
    return tw_layout_unextract(to, shape);
  aligned_shape(op, to->rank, aligned);
  tw_layout_t wide = tw_layout_unbroadcast(to, aligned);
  return tw_layout_reshape(&wide, rank, shape);
}

/* ---- all of it --------------------------------------------------------------------------------- */

static MlirWalkResult collect(MlirOperation op, void *user) {
  twl_classes_t *c = user;
  if (!tw_op_is(op, TW_FUNC_FUNC)) {
    c->ops = tw_room(c->ops, c->num_ops, sizeof *c->ops);
    c->ops[c->num_ops++] = op;
  }
  return MlirWalkResultAdvance;
}

void twl_classify(twl_classes_t *c, MlirOperation function) {
  mlirOperationWalk(function, collect, c, MlirWalkPreOrder);
  for (size_t i = 0; i < c->num_ops; i++)
    classify(c, c->ops[i]);
  note_reductions(c);
  for (int i = 0; i < c->sets.count; i++)
    if (tw_sets_find(&c->sets, i) == i)
      c->nodes[i].number = c->num_classes++;
}

void twl_free(twl_classes_t *c) {
  free(c->nodes);
  free(c->edges);
  free(c->ops);
  tw_sets_free(&c->sets);
  tw_map_free(&c->index);
  tw_map_free(&c->promoted);
}
