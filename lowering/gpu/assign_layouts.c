/* assign_layouts.c - tile-assign-layouts: who owns which element
 *
 * Before: legal IR, tiles without layout.
 *
 *   %x = tile.load %a[%i, %z] : ... -> tensor<4x1024xf32>
 *   %m = tile.reduce max, %x axis 1 : tensor<4x1024xf32>
 *
 * After: every tile carries one, and tile.convert_layout stands where an op wants another.
 *
 *   %x = tile.load %a[%i, %z] : ... -> tensor<4x1024xf32, #linear>
 *   %m = tile.reduce max, %x axis 1 : tensor<4x1024xf32, #linear>   // -> tensor<4xf32, #linear1>
 *
 * Values that an elementwise op, a loop or a branch ties together form a class with one layout. A
 * class gets it from the first of: a matrix product whose accumulator it is; a gather that
 * tile-promote-memory will copy to shared memory; a product whose operand is computed in it from loads;
 * the largest access to global memory in it; a neighbour across a shape op or a reduction; a default. As
 * soon as a class has a layout, its neighbours without one follow. Constants, splats and iotas belong to
 * no class: each use gets its own, in the layout that it needs.
 *
 * The module gets tile.num_warps where it has none. What must hold: one func.func with tile.kernel a
 * module, no unsigned types. */
#include "lowering/gpu/access.h"
#include "lowering/gpu/choose_layout.h"
#include "lowering/gpu/index_facts.h"
#include "lowering/gpu/promote_memory.h"
#include "lowering/gpu/sm80/mma.h"
#include "lowering/gpu/sm90/wgmma.h"
#include "lowering/passes.h"

#include <stdlib.h>
#include <string.h>

enum {
  MAX_OVERHEAD =
      150, /* percent of sectors (lines, in a transpose) from which a load or store gets its own layout ... */
  MIN_CONVERTED = 1024,  /* ... in tiles of at least so many elements */
  BYTES_PER_THREAD = 64, /* of the largest tile in memory, for choosing warps */
  DEFAULT_VECTOR_BITS = 2,
  MAX_WARPS = 8, /* unless a thread would hold more than ELEMENTS_PER_THREAD */
  MOST_WARPS = 32,
  ELEMENTS_PER_THREAD = 64
};

typedef struct node {
  MlirValue value;
  int parent; /* union-find */
  bool assigned;
  tw_layout_t layout; /* of the root */
  uint32_t reduced;   /* of the root: axes of reductions and scans over it */
} node_t;

typedef struct edge {
  MlirOperation op; /* shape op or reduction from one class to another */
  int from, to;
} edge_t;

typedef struct assigner {
  MlirContext context;
  tw_gpu_target_t target;
  int num_warps;
  node_t *nodes;
  edge_t *edges;
  MlirOperation *ops; /* in program order */
  size_t num_nodes, num_edges, num_ops;
  tw_map_t index;  /* value -> number of its node + 1, dressed up as a value */
  tw_map_t moved;  /* value -> what converted() made of it */
  tw_map_t copied; /* gathers that tile-promote-memory will make copies, by address */
} assigner_t;

static void *grow(void *array, size_t used, size_t size) {
  if ((used & (used - 1)) == 0) { /* full whenever a power of two is reached */
    array = realloc(array, (used ? 2 * used : 1) * size);
    if (array == NULL)
      abort();
  }
  return array;
}

/* ---- classes ----------------------------------------------------------------------------------- */

/* Made anew for each use. */
static bool is_flexible(MlirValue value) {
  MlirOperation op = tw_def(value);
  if (mlirOperationIsNull(op))
    return false;
  if (tw_op_is(op, "tile.broadcast") || tw_op_is(op, "tile.reshape"))
    return !tw_is_tile(mlirValueGetType(mlirOperationGetOperand(op, 0)));
  return tw_op_is(op, "arith.constant") || tw_op_is(op, "tile.constant") || tw_op_is(op, "tensor.splat") ||
         tw_op_is(op, "tile.iota");
}

static bool has_class(MlirValue value) { return tw_is_tile(mlirValueGetType(value)) && !is_flexible(value); }

static int find(assigner_t *a, int n) {
  while (a->nodes[n].parent != n)
    n = a->nodes[n].parent = a->nodes[a->nodes[n].parent].parent;
  return n;
}

/* The node of a value with a class. */
static int node_of(assigner_t *a, MlirValue value) {
  const MlirValue *found = tw_map_get(&a->index, value.ptr, NULL);
  if (found != NULL)
    return (int)(uintptr_t)found->ptr - 1;
  int n = (int)a->num_nodes;
  a->nodes = grow(a->nodes, a->num_nodes, sizeof *a->nodes);
  a->nodes[a->num_nodes++] = (node_t){.value = value, .parent = n};
  MlirValue number = {(void *)(uintptr_t)(n + 1)};
  tw_map_set(&a->index, value.ptr, 1, &number);
  return n;
}

/* The class of a value. By its number: node_of may move the nodes. */
static node_t *class_of(assigner_t *a, MlirValue value) {
  int number = find(a, node_of(a, value));
  return &a->nodes[number];
}

static void unite(assigner_t *a, MlirValue x, MlirValue y) {
  if (!has_class(x) || !has_class(y))
    return;
  int p = find(a, node_of(a, x)), q = find(a, node_of(a, y));
  if (p != q)
    a->nodes[p > q ? p : q].parent = p < q ? p : q;
}

static void add_edge(assigner_t *a, MlirOperation op) {
  MlirValue from = mlirOperationGetOperand(op, 0), to = mlirOperationGetResult(op, 0);
  if (!has_class(from) || !has_class(to))
    return;
  a->edges = grow(a->edges, a->num_edges, sizeof *a->edges);
  a->edges[a->num_edges++] = (edge_t){op, node_of(a, from), node_of(a, to)};
}

/* yield operand i + skip, value of another op: the same class. */
static void unite_with_terminator(assigner_t *a, MlirBlock block, intptr_t skip, MlirOperation op) {
  if (mlirBlockIsNull(block))
    return;
  MlirOperation end = mlirBlockGetTerminator(block);
  for (intptr_t i = 0; i + skip < mlirOperationGetNumOperands(end) && i < mlirOperationGetNumResults(op); i++)
    unite(a, mlirOperationGetOperand(end, i + skip), mlirOperationGetResult(op, i));
}

static void unite_for(assigner_t *a, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++) {
    unite(a, mlirOperationGetOperand(op, i + 3), mlirOperationGetResult(op, i));
    unite(a, mlirBlockGetArgument(tw_region_block(op, 0), i + 1), mlirOperationGetResult(op, i));
  }
  unite_with_terminator(a, tw_region_block(op, 0), 0, op);
}

static void unite_while(assigner_t *a, MlirOperation op) {
  MlirBlock before = tw_region_block(op, 0), after = tw_region_block(op, 1);
  MlirOperation yield = mlirBlockGetTerminator(after);
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(before); i++) {
    unite(a, mlirOperationGetOperand(op, i), mlirBlockGetArgument(before, i));
    unite(a, mlirOperationGetOperand(yield, i), mlirBlockGetArgument(before, i));
  }
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(after); i++)
    unite(a, mlirBlockGetArgument(after, i), mlirOperationGetResult(op, i));
  unite_with_terminator(a, before, 1, op);
}

static bool is_elementwise(MlirOperation op) {
  return tw_op_in(op, "arith") || tw_op_in(op, "math") || tw_op_is(op, "tile.gather") || tw_op_is(op, "tile.scatter");
}

static bool is_shape_op(MlirOperation op) {
  return tw_op_is(op, "tile.broadcast") || tw_op_is(op, "tile.reshape") || tw_op_is(op, "tile.permute");
}

/* The first tile among results and operands that has a class; all others have its shape. */
static MlirValue representative(MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    if (has_class(mlirOperationGetResult(op, i)))
      return mlirOperationGetResult(op, i);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (has_class(mlirOperationGetOperand(op, i)))
      return mlirOperationGetOperand(op, i);
  return (MlirValue){NULL};
}

static void classify(assigner_t *a, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    if (has_class(mlirOperationGetResult(op, i)))
      (void)node_of(a, mlirOperationGetResult(op, i));
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    for (intptr_t i = 0;
         !mlirBlockIsNull(tw_region_block(op, r)) && i < mlirBlockGetNumArguments(tw_region_block(op, r)); i++)
      if (tw_is_tile(mlirValueGetType(mlirBlockGetArgument(tw_region_block(op, r), i))))
        (void)node_of(a, mlirBlockGetArgument(tw_region_block(op, r), i));
  if (is_elementwise(op)) {
    MlirValue one = representative(op);
    for (intptr_t i = 0; one.ptr && i < mlirOperationGetNumOperands(op); i++)
      unite(a, one, mlirOperationGetOperand(op, i));
  } else if (tw_op_is(op, "tile.scan")) {
    unite(a, mlirOperationGetOperand(op, 0), mlirOperationGetResult(op, 0));
  } else if (tw_op_is(op, "tile.mma")) {
    unite(a, mlirOperationGetOperand(op, 2), mlirOperationGetResult(op, 0));
  } else if (tw_op_is(op, "scf.for")) {
    unite_for(a, op);
  } else if (tw_op_is(op, "scf.while")) {
    unite_while(a, op);
  } else if (tw_op_is(op, "scf.if")) {
    unite_with_terminator(a, tw_region_block(op, 0), 0, op);
    unite_with_terminator(a, tw_region_block(op, 1), 0, op);
  } else if (is_shape_op(op) || tw_op_is(op, "tile.reduce")) {
    add_edge(a, op);
  }
}

static void note_reductions(assigner_t *a) {
  for (size_t i = 0; i < a->num_ops; i++) {
    MlirOperation op = a->ops[i];
    if ((tw_op_is(op, "tile.reduce") || tw_op_is(op, "tile.scan")) && has_class(mlirOperationGetOperand(op, 0)))
      class_of(a, mlirOperationGetOperand(op, 0))->reduced |= UINT32_C(1) << tw_attr_int(op, "axis", 0);
  }
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

/* The layout of the result from that of the operand. */
static tw_layout_t forward(MlirOperation op, const tw_layout_t *from) {
  int64_t shape[TW_LAYOUT_MAX_RANK], aligned[TW_LAYOUT_MAX_RANK];
  int perm[TW_LAYOUT_MAX_RANK];
  if (tw_op_is(op, "tile.reduce"))
    return tw_layout_slice(from, (int)tw_attr_int(op, "axis", 0), false);
  if (tw_op_is(op, "tile.permute")) {
    read_order(op, from->rank, perm);
    return tw_layout_permute(from, perm);
  }
  int rank = tw_tile_shape(mlirValueGetType(mlirOperationGetResult(op, 0)), shape);
  if (tw_op_is(op, "tile.reshape"))
    return tw_layout_reshape(from, rank, shape);
  aligned_shape(op, rank, aligned);
  tw_layout_t wide = tw_layout_reshape(from, rank, aligned);
  return tw_layout_broadcast(&wide, shape);
}

/* The layout of the operand from that of the result; not for reductions. */
static tw_layout_t backward(MlirOperation op, const tw_layout_t *to) {
  int64_t shape[TW_LAYOUT_MAX_RANK], aligned[TW_LAYOUT_MAX_RANK];
  int perm[TW_LAYOUT_MAX_RANK];
  if (tw_op_is(op, "tile.permute")) {
    read_order(op, to->rank, perm);
    return tw_layout_unpermute(to, perm);
  }
  int rank = tw_tile_shape(mlirValueGetType(mlirOperationGetOperand(op, 0)), shape);
  if (tw_op_is(op, "tile.reshape"))
    return tw_layout_reshape(to, rank, shape);
  aligned_shape(op, to->rank, aligned);
  tw_layout_t wide = tw_layout_unbroadcast(to, aligned);
  return tw_layout_reshape(&wide, rank, shape);
}

/* ---- choice ------------------------------------------------------------------------------------ */

static bool settle(assigner_t *a, int node, const tw_layout_t *layout) {
  node_t *root = &a->nodes[find(a, node)];
  if (root->assigned)
    return false;
  root->assigned = true;
  root->layout = *layout;
  return true;
}

/* Layouts flow along edges to classes that have none. */
static void propagate(assigner_t *a) {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < a->num_edges; i++) {
      edge_t *edge = &a->edges[i];
      node_t *from = &a->nodes[find(a, edge->from)], *to = &a->nodes[find(a, edge->to)];
      if (from->assigned && !to->assigned) {
        tw_layout_t l = forward(edge->op, &from->layout);
        changed |= settle(a, edge->to, &l);
      } else if (to->assigned && !from->assigned && !tw_op_is(edge->op, "tile.reduce")) {
        tw_layout_t l = backward(edge->op, &to->layout);
        changed |= settle(a, edge->from, &l);
      }
    }
  }
}

/* An operand that is computed from loads is computed where the product wants it. */
static void settle_computed(assigner_t *a, MlirOperation mma) {
  tw_mma_plan_t plan = tw_mma_plan(&a->target, mma, a->num_warps);
  MlirOperation loads[TW_MAX_LOADS_BEHIND];
  for (int i = 0; i < 2; i++) {
    MlirValue value = mlirOperationGetOperand(mma, i);
    if (has_class(value) && tw_loads_behind(mma, i, loads) > 0)
      (void)settle(a, node_of(a, value), i == 0 ? &plan.lhs : &plan.rhs);
  }
}

/* The gather behind an operand of a product, which copies rows to shared memory; null if there is none. */
static MlirOperation copied_gather(MlirOperation mma, int operand) {
  MlirOperation load = tw_load_behind(mlirOperationGetOperand(mma, operand));
  return !mlirOperationIsNull(load) && tw_op_is(load, "tile.gather") ? load : tw_null_op();
}

/* Every thread has whole pieces, as long as the indices allow. */
static tw_layout_t layout_for_copy(const assigner_t *a, MlirOperation gather) {
  int64_t shape[TW_LAYOUT_MAX_RANK];
  int rank = tw_tile_shape(mlirValueGetType(mlirOperationGetResult(gather, 0)), shape), order[TW_LAYOUT_MAX_RANK];
  int contiguous, bits = tw_gather_vector_bits(gather, &contiguous), n = 1;
  order[0] = contiguous;
  for (int d = rank - 1; d >= 0; d--)
    if (d != contiguous)
      order[n++] = d;
  return tw_layout_coalesced(rank, shape, 1 << bits, a->num_warps, order);
}

/* All products, and the copies for them, before anything flows on: what one accumulator would suggest must not decide
 * on another. */
static void settle_products(assigner_t *a) {
  for (size_t i = 0; i < a->num_ops; i++) {
    if (!tw_op_is(a->ops[i], "tile.mma"))
      continue;
    tw_mma_plan_t plan = tw_mma_plan(&a->target, a->ops[i], a->num_warps);
    (void)settle(a, node_of(a, mlirOperationGetResult(a->ops[i], 0)), &plan.acc);
    for (int k = 0; k < 2; k++) {
      MlirOperation gather = copied_gather(a->ops[i], k);
      if (mlirOperationIsNull(gather))
        continue;
      tw_layout_t copied = layout_for_copy(a, gather);
      tw_map_set(&a->copied, gather.ptr, 0, NULL);
      (void)settle(a, node_of(a, mlirOperationGetResult(gather, 0)), &copied);
    }
  }
  for (size_t i = 0; i < a->num_ops; i++)
    if (tw_op_is(a->ops[i], "tile.mma"))
      settle_computed(a, a->ops[i]);
  propagate(a);
}

static bool is_access(MlirOperation op) {
  return tw_op_is(op, "tile.load") || tw_op_is(op, "tile.store") || tw_op_is(op, "tile.gather") ||
         tw_op_is(op, "tile.scatter");
}

/* The tile that an access moves; null for scalars. */
static MlirValue accessed(MlirOperation op) {
  MlirValue value = {NULL};
  if (mlirOperationGetNumResults(op))
    value = mlirOperationGetResult(op, 0);
  else if (tw_op_is(op, "tile.store"))
    value = mlirOperationGetOperand(op, mlirOperationGetNumOperands(op) - 1);
  else
    value = representative(op);
  return value.ptr && tw_is_tile(mlirValueGetType(value)) ? value : (MlirValue){NULL};
}

static int64_t bits_of(MlirValue tile) {
  MlirType type = mlirValueGetType(tile);
  return tw_count(type) * tw_memory_bits(tw_element(type));
}

static tw_layout_t layout_for(assigner_t *a, MlirValue value, tw_wish_t wish) {
  int64_t shape[TW_LAYOUT_MAX_RANK];
  int rank = tw_tile_shape(mlirValueGetType(value), shape);
  wish.num_warps = a->num_warps;
  wish.reduced = has_class(value) ? class_of(a, value)->reduced : 0;
  return tw_choose_blocked(rank, shape, &wish);
}

static bool same_class(assigner_t *a, MlirValue x, MlirValue y) {
  return find(a, node_of(a, x)) == find(a, node_of(a, y));
}

/* The dimension of `value` that is dimension `dim` of `other`: they are of one class, or one permute apart; else -1. */
static int common_dimension(assigner_t *a, MlirValue value, MlirValue other, int dim) {
  int perm[TW_LAYOUT_MAX_RANK], rank = (int)tw_rank(mlirValueGetType(value));
  if (same_class(a, value, other))
    return dim;
  for (size_t i = 0; i < a->num_edges; i++) {
    MlirOperation op = a->edges[i].op;
    if (!tw_op_is(op, "tile.permute"))
      continue;
    MlirValue from = mlirOperationGetOperand(op, 0), to = mlirOperationGetResult(op, 0);
    read_order(op, rank, perm);
    if (same_class(a, from, value) && same_class(a, to, other))
      return perm[dim];
    if (same_class(a, to, value) && same_class(a, from, other))
      for (int d = 0; d < rank; d++)
        if (perm[d] == dim)
          return d;
  }
  return -1;
}

/* Tells the wish of one access of another that is contiguous along another dimension. */
static void look_across(assigner_t *a, MlirValue value, tw_wish_t *wish) {
  int rank = (int)tw_rank(mlirValueGetType(value));
  for (size_t i = 0; i < a->num_ops && wish->contiguous >= 0; i++) {
    MlirValue other = is_access(a->ops[i]) ? accessed(a->ops[i]) : (MlirValue){NULL};
    if (other.ptr == NULL || !has_class(other) || tw_rank(mlirValueGetType(other)) != rank)
      continue;
    tw_wish_t its = tw_wish_of_access(a->ops[i], rank, a->num_warps);
    int dim = its.contiguous < 0 ? -1 : common_dimension(a, value, other, its.contiguous);
    if (dim >= 0 && dim != wish->contiguous && its.vector_bits > wish->across_bits) {
      wish->across = dim;
      wish->across_bits = its.vector_bits;
    }
  }
}

static tw_wish_t wish_of(assigner_t *a, MlirOperation op) {
  MlirValue value = accessed(op);
  tw_wish_t wish = tw_wish_of_access(op, (int)tw_rank(mlirValueGetType(value)), a->num_warps);
  if (has_class(value) && tw_count(mlirValueGetType(value)) >= MIN_CONVERTED)
    look_across(a, value, &wish);
  return wish;
}

static tw_layout_t layout_for_access(assigner_t *a, MlirOperation op) {
  return layout_for(a, accessed(op), wish_of(a, op));
}

static tw_layout_t default_layout(assigner_t *a, MlirValue value) {
  int rank = (int)tw_rank(mlirValueGetType(value));
  return layout_for(a, value, (tw_wish_t){.contiguous = rank - 1, .vector_bits = DEFAULT_VECTOR_BITS});
}

/* The largest access to a class without layout, among equals the one with the longest vectors, then the first. */
static MlirOperation next_access(assigner_t *a) {
  MlirOperation best = {NULL};
  int64_t most = -1;
  int longest = 0;
  for (size_t i = 0; i < a->num_ops; i++) {
    MlirValue value = is_access(a->ops[i]) ? accessed(a->ops[i]) : (MlirValue){NULL};
    if (value.ptr == NULL || !has_class(value) || class_of(a, value)->assigned || bits_of(value) < most)
      continue;
    int vector = tw_wish_of_access(a->ops[i], (int)tw_rank(mlirValueGetType(value)), a->num_warps).vector_bits;
    if (bits_of(value) == most && vector <= longest)
      continue;
    best = a->ops[i];
    most = bits_of(value);
    longest = vector;
  }
  return best;
}

static void choose(assigner_t *a) {
  settle_products(a);
  for (MlirOperation op; !mlirOperationIsNull(op = next_access(a)); propagate(a)) {
    tw_layout_t l = layout_for_access(a, op);
    (void)settle(a, node_of(a, accessed(op)), &l);
  }
  for (size_t i = 0; i < a->num_nodes; i++)
    if (!a->nodes[find(a, (int)i)].assigned) {
      tw_layout_t l = default_layout(a, a->nodes[i].value);
      (void)settle(a, (int)i, &l);
      propagate(a);
    }
}

/* ---- rewriting --------------------------------------------------------------------------------- */

static tw_layout_t class_layout(assigner_t *a, MlirValue value) { return class_of(a, value)->layout; }

static void insert_after(MlirValue value, MlirOperation op) {
  MlirOperation def = tw_def(value);
  if (!mlirOperationIsNull(def)) {
    mlirBlockInsertOwnedOperationAfter(mlirOperationGetBlock(def), def, op);
    return;
  }
  MlirBlock block = mlirBlockArgumentGetOwner(value);
  mlirBlockInsertOwnedOperationBefore(block, mlirBlockGetFirstOperation(block), op);
}

static MlirOperation new_convert(MlirValue value, MlirType type, MlirLocation location) {
  MlirOperationState state = mlirOperationStateGet(tw_str("tile.convert_layout"), location);
  mlirOperationStateAddOperands(&state, 1, &value);
  mlirOperationStateAddResults(&state, 1, &type);
  return mlirOperationCreate(&state);
}

/* A copy of a constant, splat or iota with another type. */
static MlirOperation clone_flexible(MlirOperation op, MlirType type) {
  MlirOperationState state = mlirOperationStateGet(tw_op_name(op), mlirOperationGetLocation(op));
  MlirAttribute value = tw_attr(op, "value");
  if (mlirOperationGetNumOperands(op)) {
    MlirValue operand = mlirOperationGetOperand(op, 0);
    mlirOperationStateAddOperands(&state, 1, &operand);
  }
  if (!mlirAttributeIsNull(value)) {
    if (mlirDenseElementsAttrIsSplat(value))
      value = mlirDenseElementsAttrSplatGet(type, mlirDenseElementsAttrGetSplatValue(value));
    else
      value = mlirDenseElementsAttrReshapeGet(value, type);
    MlirNamedAttribute named = {mlirIdentifierGet(mlirTypeGetContext(type), tw_str("value")), value};
    mlirOperationStateAddAttributes(&state, 1, &named);
  }
  mlirOperationStateAddResults(&state, 1, &type);
  return mlirOperationCreate(&state);
}

/* The value in another layout, made next to its definition, once for each layout: a->moved maps the
 * value to all that were made of it. */
static MlirValue converted(assigner_t *a, MlirValue value, const tw_layout_t *layout) {
  MlirType type = tw_type_with_layout(mlirValueGetType(value), layout);
  intptr_t n = 0;
  const MlirValue *made = tw_map_get(&a->moved, value.ptr, &n);
  for (intptr_t i = 0; i < n; i++)
    if (mlirTypeEqual(mlirValueGetType(made[i]), type))
      return made[i];
  MlirLocation location =
      mlirValueIsAOpResult(value) ? mlirOperationGetLocation(tw_def(value)) : mlirLocationUnknownGet(a->context);
  MlirOperation op = is_flexible(value) ? clone_flexible(tw_def(value), type) : new_convert(value, type, location);
  insert_after(value, op);
  MlirValue *all = malloc((size_t)(n + 1) * sizeof *all);
  if (all == NULL)
    abort();
  if (n > 0)
    memcpy(all, made, (size_t)n * sizeof *all);
  all[n] = mlirOperationGetResult(op, 0);
  tw_map_set(&a->moved, value.ptr, n + 1, all);
  free(all);
  return mlirOperationGetResult(op, 0);
}

/* Makes operand i of an op have the layout. */
static void require(assigner_t *a, MlirOperation op, intptr_t i, const tw_layout_t *layout) {
  MlirValue value = mlirOperationGetOperand(op, i);
  tw_layout_t now;
  if (!tw_is_tile(mlirValueGetType(value)))
    return;
  if (!is_flexible(value) && tw_layout_of_type(mlirValueGetType(value), &now) && tw_layout_equal(&now, layout))
    return;
  mlirOperationSetOperand(op, i, converted(a, value, layout));
}

/* Gives a result a layout other than its class, and its users a conversion. */
static void result_in(assigner_t *a, MlirOperation op, const tw_layout_t *layout) {
  MlirValue result = mlirOperationGetResult(op, 0);
  tw_layout_t wanted = class_layout(a, result);
  mlirValueSetType(result, tw_type_with_layout(mlirValueGetType(result), layout));
  if (tw_layout_equal(&wanted, layout))
    return;
  MlirOperation convert =
      new_convert(result, tw_type_with_layout(mlirValueGetType(result), &wanted), mlirOperationGetLocation(op));
  insert_after(result, convert);
  MlirValue stand_in = mlirOperationGetResult(convert, 0); /* of the same class */
  tw_map_set(&a->index, stand_in.ptr, 1, tw_map_get(&a->index, result.ptr, NULL));
  mlirValueReplaceAllUsesExcept(result, stand_in, 1, &convert);
}

/* Pieces of one sector are enough of a line where their neighbours come with the next instruction. In a transpose they
 * would come from other rows of the tile, so that whole lines count. */
static bool worth_own_layout(assigner_t *a, MlirOperation op, const tw_layout_t *layout) {
  MlirType type = mlirValueGetType(accessed(op));
  tw_wish_t wish = wish_of(a, op);
  int piece = wish.across_bits > 0 ? TW_LINE_BITS : TW_SECTOR_BITS;
  return tw_count(type) >= MIN_CONVERTED &&
         tw_access_overhead(layout, &wish, piece, tw_memory_bits(tw_element(type))) > MAX_OVERHEAD;
}

static void rewrite_load(assigner_t *a, MlirOperation op) {
  MlirValue result = mlirOperationGetResult(op, 0);
  if (!tw_is_tile(mlirValueGetType(result)))
    return;
  tw_layout_t layout = class_layout(a, result);
  if (worth_own_layout(a, op, &layout))
    layout = layout_for_access(a, op);
  result_in(a, op, &layout);
}

static void rewrite_store(assigner_t *a, MlirOperation op) {
  MlirValue value = accessed(op);
  if (value.ptr == NULL)
    return;
  tw_layout_t layout;
  bool own = is_flexible(value);
  if (!own) {
    layout = class_layout(a, value);
    own = worth_own_layout(a, op, &layout);
  }
  if (own)
    layout = layout_for_access(a, op);
  require(a, op, mlirOperationGetNumOperands(op) - 1, &layout);
}

static void rewrite_reduce(assigner_t *a, MlirOperation op) {
  MlirValue input = mlirOperationGetOperand(op, 0);
  int axis = (int)tw_attr_int(op, "axis", 0);
  tw_layout_t layout = has_class(input) ? class_layout(a, input) : default_layout(a, input);
  if (!tw_layout_splits_axis(&layout, axis))
    layout = default_layout(a, input);
  require(a, op, 0, &layout);
  if (!tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))))
    return;
  tw_layout_t out = tw_layout_slice(&layout, axis, false);
  result_in(a, op, &out);
}

static void rewrite_scan(assigner_t *a, MlirOperation op) {
  MlirValue result = mlirOperationGetResult(op, 0);
  tw_layout_t layout = class_layout(a, result);
  tw_axis_bits_t bits;
  if (!tw_layout_axis_bits(&layout, (int)tw_attr_int(op, "axis", 0), &bits))
    layout = default_layout(a, result);
  require(a, op, 0, &layout);
  result_in(a, op, &layout);
}

/* The operand may keep its layout where the op can rename registers, else it is converted. */
static void rewrite_shape(assigner_t *a, MlirOperation op) {
  MlirValue input = mlirOperationGetOperand(op, 0), result = mlirOperationGetResult(op, 0);
  if (!tw_is_tile(mlirValueGetType(input)) || !tw_is_tile(mlirValueGetType(result)))
    return;
  tw_layout_t to = class_layout(a, result), want = backward(op, &to);
  if (!is_flexible(input)) {
    tw_layout_t have = class_layout(a, input);
    if (tw_layout_classify(&have, &want) <= TW_CONVERT_REGISTER) {
      tw_layout_t out = tw_op_is(op, "tile.permute") ? forward(op, &have) : to; /* what its text implies */
      result_in(a, op, &out);
      return;
    }
  }
  require(a, op, 0, &want);
}

static void rewrite_mma(assigner_t *a, MlirOperation op) {
  tw_mma_plan_t plan = tw_mma_plan(&a->target, op, a->num_warps);
  for (int i = 0; i < 3; i++) {
    MlirValue value = mlirOperationGetOperand(op, i);
    bool computed = i < 2 && !is_flexible(value) && mlirOperationIsNull(tw_load_behind(value));
    if (!(computed && tw_wgmma_place(op, i) == TW_WGMMA_WRITTEN)) /* which any layout can be */
      require(a, op, i, i == 0 ? &plan.lhs : i == 1 ? &plan.rhs : &plan.acc);
  }
  result_in(a, op, &plan.acc);
}

/* Operands that are tied to values of the op around: loops and branches. */
static void require_class(assigner_t *a, MlirOperation op, intptr_t i, MlirValue like) {
  if (!tw_is_tile(mlirValueGetType(like)))
    return;
  tw_layout_t layout = class_layout(a, like);
  require(a, op, i, &layout);
}

static void rewrite_yield(assigner_t *a, MlirOperation op) {
  MlirOperation parent = mlirOperationGetParentOperation(op);
  bool condition = tw_op_is(op, "scf.condition");
  bool to_before = tw_op_is(parent, "scf.while") && !condition;
  for (intptr_t i = condition; i < mlirOperationGetNumOperands(op); i++)
    require_class(a, op, i,
                  to_before ? mlirBlockGetArgument(tw_region_block(parent, 0), i)
                            : mlirOperationGetResult(parent, i - condition));
}

static void rewrite_loop_inits(assigner_t *a, MlirOperation op) {
  bool is_for = tw_op_is(op, "scf.for");
  for (intptr_t i = is_for ? 3 : 0; i < mlirOperationGetNumOperands(op); i++)
    require_class(a, op, i,
                  is_for ? mlirOperationGetResult(op, i - 3) : mlirBlockGetArgument(tw_region_block(op, 0), i));
}

static void rewrite_elementwise(assigner_t *a, MlirOperation op) {
  MlirValue one = representative(op);
  tw_layout_t layout;
  if (one.ptr == NULL) { /* nothing but constants and no result: a scatter of them */
    for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
      if (tw_is_tile(mlirValueGetType(mlirOperationGetOperand(op, i)))) {
        layout = default_layout(a, mlirOperationGetOperand(op, i));
        require(a, op, i, &layout);
      }
    return;
  }
  bool copied = tw_map_get(&a->copied, op.ptr, NULL) != NULL;
  layout = copied ? layout_for_copy(a, op) : class_layout(a, one);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    require(a, op, i, &layout);
  if (copied)
    result_in(a, op, &layout);
}

/* Whatever else reads tiles (print, assert) takes them as they are. */
static void rewrite_other(assigner_t *a, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirValue value = mlirOperationGetOperand(op, i);
    if (tw_is_tile(mlirValueGetType(value)) && is_flexible(value)) {
      tw_layout_t layout = default_layout(a, value);
      require(a, op, i, &layout);
    }
  }
}

static void rewrite(assigner_t *a, MlirOperation op) {
  if (tw_op_is(op, "tile.load"))
    rewrite_load(a, op);
  else if (tw_op_is(op, "tile.store"))
    rewrite_store(a, op);
  else if (tw_op_is(op, "tile.reduce"))
    rewrite_reduce(a, op);
  else if (tw_op_is(op, "tile.scan"))
    rewrite_scan(a, op);
  else if (tw_op_is(op, "tile.mma"))
    rewrite_mma(a, op);
  else if (is_shape_op(op))
    rewrite_shape(a, op);
  else if (tw_op_is(op, "scf.for") || tw_op_is(op, "scf.while"))
    rewrite_loop_inits(a, op);
  else if (tw_op_is(op, "scf.yield") || tw_op_is(op, "scf.condition"))
    rewrite_yield(a, op);
  else if (is_elementwise(op))
    rewrite_elementwise(a, op);
  else
    rewrite_other(a, op);
}

static void set_types(assigner_t *a) {
  for (size_t i = 0; i < a->num_nodes; i++) {
    tw_layout_t layout = a->nodes[find(a, (int)i)].layout;
    MlirValue value = a->nodes[i].value;
    mlirValueSetType(value, tw_type_with_layout(mlirValueGetType(value), &layout));
  }
}

/* The originals of what was cloned for each use. */
static void erase_unused(assigner_t *a) {
  for (size_t i = a->num_ops; i-- > 0;) {
    MlirOperation op = a->ops[i];
    if (mlirOperationGetNumResults(op) == 1 && tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))) &&
        is_flexible(mlirOperationGetResult(op, 0)))
      if (mlirOpOperandIsNull(mlirValueGetFirstUse(mlirOperationGetResult(op, 0))))
        mlirOperationDestroy(op);
  }
}

/* ---- warps ------------------------------------------------------------------------------------- */

/* As many warps as give each thread BYTES_PER_THREAD of the largest tile in memory, and more where a
 * thread would hold too many elements. */
static int warps_for_memory(assigner_t *a) {
  int64_t most = 0, elements = 0;
  int warps = 1;
  for (size_t i = 0; i < a->num_ops; i++) {
    MlirValue value = is_access(a->ops[i]) ? accessed(a->ops[i]) : (MlirValue){NULL};
    if (value.ptr && bits_of(value) / 8 > most)
      most = bits_of(value) / 8;
  }
  for (size_t i = 0; i < a->num_nodes; i++)
    if (tw_count(mlirValueGetType(a->nodes[i].value)) > elements)
      elements = tw_count(mlirValueGetType(a->nodes[i].value));
  while (warps < MAX_WARPS && most >= (int64_t)2 * warps * 32 * BYTES_PER_THREAD)
    warps *= 2;
  while (warps < MOST_WARPS && elements > (int64_t)warps * 32 * ELEMENTS_PER_THREAD)
    warps *= 2;
  return warps;
}

static int choose_warps(assigner_t *a, MlirOperation function) {
  int warps = tw_mma_num_warps(function);
  return warps > 0 ? warps : warps_for_memory(a);
}

/* ---- pass -------------------------------------------------------------------------------------- */

static MlirWalkResult collect(MlirOperation op, void *user) {
  assigner_t *a = user;
  if (!tw_op_is(op, "func.func")) {
    a->ops = grow(a->ops, a->num_ops, sizeof *a->ops);
    a->ops[a->num_ops++] = op;
  }
  return MlirWalkResultAdvance;
}

static bool takes_tiles(MlirOperation function) {
  MlirBlock block = tw_region_block(function, 0);
  for (intptr_t i = 0; !mlirBlockIsNull(block) && i < mlirBlockGetNumArguments(block); i++)
    if (tw_is_tile(mlirValueGetType(mlirBlockGetArgument(block, i))))
      return true;
  return false;
}

static bool run(MlirOperation function) {
  MlirOperation module = tw_module_of(function);
  assigner_t a = {.context = mlirOperationGetContext(function), .target = tw_gpu_target_of(function)};
  if (!tw_has_attr(function, "tile.kernel") || tw_has_attr(function, "tile.simt"))
    return true;
  if (takes_tiles(function)) {
    tw_op_error(function, "is a kernel that takes a tile; kernels take arrays and scalars");
    return false;
  }
  mlirOperationWalk(function, collect, &a, MlirWalkPreOrder);
  for (size_t i = 0; i < a.num_ops; i++)
    classify(&a, a.ops[i]);
  a.num_warps = (int)tw_attr_int(module, "tile.num_warps", 0);
  if (a.num_warps == 0) {
    a.num_warps = choose_warps(&a, function);
    tw_set_int(module, "tile.num_warps", tw_i32(a.context), a.num_warps);
  }
  note_reductions(&a);
  choose(&a);
  set_types(&a);
  for (size_t i = 0; i < a.num_ops; i++)
    rewrite(&a, a.ops[i]);
  erase_unused(&a);
  free(a.nodes);
  free(a.edges);
  free(a.ops);
  tw_map_free(&a.index);
  tw_map_free(&a.moved);
  tw_map_free(&a.copied);
  return true;
}

static _Alignas(8) char id;

MlirPass tw_create_assign_layouts(void) {
  static const tw_pass_t pass = {&id, "tile-assign-layouts", "choose the layout of every tile", "func.func", run};
  return tw_pass_create(&pass);
}
