/* split_edges.c - in tile-cache-tiles: rows that almost fill their tiles are compared with the array's end in the last
 * part only
 *
 * Before, 32 elements of a thread, each compared: rows of odd length have no vectors:
 *
 *   %m = arith.cmpi slt, %iota, splat %n : tensor<4096xi32, #l>
 *   %x = tile.load %X[%row, %c0] padding zero : ... -> tensor<1x4096xbf16, #l>
 *   ... arith.select %m ...
 *   tile.store %y, %Y[%row, %c0] : ...
 *
 * After, where a launch that has 3584 elements or more in a row takes the first branch:
 *
 *   %most = %row < dim %X, 0 && 3584 <= dim %X, 1 && ... && 3584 <= %n
 *   scf.if %most {
 *     %k = arith.maxsi %n, 3584
 *     %m = arith.cmpi slt, %iota, splat %k : tensor<4096xi32, #l>                // true but for the last eighth
 *     %x = tile.load %X[%row, %c0] padding zero {tile.sure = array<i64: 1, 3584>} : ...
 *     ... arith.select %m ...
 *     tile.store %y, %Y[%row, %c0] {tile.sure = array<i64: 1, 3584>} : ...
 *   } else {
 *     (as before)
 *   }
 *
 * An element costs a comparison, and zeros in case that it is not loaded: a third of all instructions of a layer norm.
 *
 * What must hold: tiles are accessed in the kernel's own block, no loop or branch stands between or behind them, the
 * blocks of a cluster do not meet there, and their places are known in front of them; each thread makes many short
 * accesses of one of the tiles. Runs when layouts are known and all copies are made. */
#include "lowering/gpu/memory/split_edges.h"

#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/buffer.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/layout/memory.h"
#include "lowering/loops.h"
#include "lowering/ranges.h"

#include "dialect/layouts.h"

enum { LOG_PARTS = 3, LOG_MANY = 4, SHORT_BITS = 32, MAX_ENDS = 4 };

/* What the branch is taken for, and the numbers that are no less in it. */
typedef struct {
  MlirOperation from; /* the first op that both branches have */
  tw_builder_t at;
  MlirValue holds;
  struct {
    MlirValue value;
    int64_t least;
  } ends[MAX_ENDS];
  int num_ends;
} edges_t;

/* ---- what is accessed ------------------------------------------------------------------------------ */

static bool is_tile_access(MlirOperation op) {
  return (tw_op_loads_tile(op) || tw_op_stores_tile(op)) && tw_has_layout(mlirValueGetType(tw_moved_tile(op)));
}

/* How many registers have elements of their own along a dimension, as log2. */
static int registers_along(const tw_layout_t *l, int dim) {
  int count = 0;
  for (int i = 0; i < l->bits[TW_REGISTER]; i++)
    count += tw_layout_coord(l, l->basis[TW_REGISTER][i], dim) != 0;
  return count;
}

static int log_accesses(const tw_layout_t *l, int vector) {
  int count = -vector;
  for (int i = 0; i < l->bits[TW_REGISTER]; i++)
    count += l->basis[TW_REGISTER][i] != 0;
  return count;
}

/* How much of a tile's extent most accesses are in front of. */
static int64_t most_of(const tw_layout_t *l, int dim) {
  int64_t extent = tw_layout_extent(l, dim);
  return registers_along(l, dim) >= LOG_PARTS ? extent - (extent >> LOG_PARTS) : extent;
}

/* Whether a thread makes many short accesses, of which most need no comparison. Those that take longer vectors inside
 * of the array have two ways already. */
static bool find_sure(MlirOperation op, int64_t sure[TW_LAYOUT_MAX_RANK], tw_layout_t *l) {
  int regs[TW_LAYOUT_MAX_BITS];
  if (!is_tile_access(op) || tw_has_attr(op, TW_IN_BOUNDS) ||
      !tw_layout_of_type(mlirValueGetType(tw_moved_tile(op)), l))
    return false;
  int dim = tw_access_contiguous_dim(op, l->rank), vector = tw_access_vector_bits(op, l->rank);
  if (dim < 0)
    return false;
  int inner = tw_layout_vector_bits(l, dim, tw_access_inner_vector_bits(op, l->rank), regs);
  int64_t bits = tw_memory_bits(tw_element(mlirValueGetType(tw_moved_tile(op))));
  if (inner > vector || bits << inner > SHORT_BITS || log_accesses(l, inner) < LOG_MANY)
    return false;
  if (registers_along(l, dim) < LOG_PARTS)
    return false;
  for (int d = 0; d < l->rank; d++) {
    if (!tw_layout_disjoint(l, d))
      return false;
    sure[d] = d == dim ? most_of(l, d) : tw_layout_extent(l, d);
  }
  return true;
}

/* ---- the condition --------------------------------------------------------------------------------- */

/* Whether a scalar is there in front of the branches. */
static bool is_there(const edges_t *s, MlirValue value) {
  MlirOperation op = tw_def(value);
  return mlirOperationIsNull(op) ||
         (mlirBlockEqual(mlirOperationGetBlock(op), s->at.block) && mlirOperationIsBeforeInBlock(op, s->from));
}

static bool is_i32(MlirValue value) {
  return mlirTypeEqual(mlirValueGetType(value), tw_i32(mlirTypeGetContext(mlirValueGetType(value))));
}

static void require(edges_t *s, MlirValue condition) {
  s->holds =
      s->holds.ptr ? tw_binary(&s->at, "arith.andi", mlirValueGetType(condition), s->holds, condition) : condition;
}

/* Whether the number of a tile's first element is known not to leave 32 bits. */
static bool starts_within(MlirValue index, int64_t tile) {
  tw_range_t range = tw_range_of(index);
  return tile == 1 || (range.low >= 0 && range.high <= (INT32_MAX - tile) / tile);
}

static bool can_require(const edges_t *s, MlirOperation op, const tw_layout_t *l) {
  intptr_t first;
  (void)tw_access_array(op, &first);
  for (int d = 0; d < l->rank; d++) {
    MlirValue index = mlirOperationGetOperand(op, first + d);
    if (!is_i32(index) || !is_there(s, index) || !starts_within(index, tw_layout_extent(l, d)))
      return false;
  }
  return true;
}

/* `sure` elements along each dimension of the tile lie inside of the array. */
static void require_inside(edges_t *s, MlirOperation op, const tw_layout_t *l, const int64_t *sure) {
  intptr_t first;
  int64_t order[TW_LAYOUT_MAX_RANK], known;
  MlirType i32 = tw_i32(s->at.context);
  MlirValue array = tw_access_array(op, &first);
  tw_access_order(op, l->rank, order);
  for (int d = 0; d < l->rank; d++) {
    MlirValue index = mlirOperationGetOperand(op, first + d), start = index;
    MlirValue extent = tw_op1_attr(&s->at, "tile.dim", i32, 1, &array, "axis", mlirIntegerAttrGet(i32, order[d]));
    if (!tw_is_natural(index))
      require(s, tw_compare(&s->at, TW_SGE, index, tw_const_int(&s->at, i32, 0)));
    if (tw_known_int(index, &known) && known == 0) {
      require(s, tw_compare(&s->at, TW_SGE, extent, tw_const_int(&s->at, i32, sure[d])));
      continue;
    }
    if (tw_layout_extent(l, d) > 1)
      start = tw_binary(&s->at, "arith.muli", i32, index, tw_const_int(&s->at, i32, tw_layout_extent(l, d)));
    MlirValue left = tw_binary(&s->at, "arith.subi", i32, extent, start);
    require(s, tw_compare(&s->at, TW_SGE, left, tw_const_int(&s->at, i32, sure[d])));
  }
}

/* ---- masks ----------------------------------------------------------------------------------------- */

/* The number that a mask compares columns with, `iota < n`; null if it is something else. */
static MlirValue end_of_mask(const edges_t *s, MlirOperation op, int64_t *least) {
  tw_layout_t l;
  int64_t known;
  MlirValue none = {NULL};
  if (!tw_op_is(op, TW_ARITH_CMPI) || tw_attr_int(op, "predicate", -1) != TW_SLT ||
      !tw_layout_of_type(mlirValueGetType(mlirOperationGetOperand(op, 0)), &l))
    return none;
  MlirOperation splat = tw_def(mlirOperationGetOperand(op, 1));
  if (mlirOperationIsNull(splat) || !tw_op_is(splat, TW_TENSOR_SPLAT) ||
      !tw_is_counted_up(mlirOperationGetOperand(op, 0)) || registers_along(&l, 0) < LOG_PARTS ||
      !tw_layout_disjoint(&l, 0))
    return none;
  MlirValue end = mlirOperationGetOperand(splat, 0);
  *least = most_of(&l, 0);
  return is_i32(end) && !tw_known_int(end, &known) && is_there(s, end) ? end : none;
}

static void require_end(edges_t *s, MlirValue end, int64_t least) {
  int i = 0;
  while (i < s->num_ends && !mlirValueEqual(s->ends[i].value, end))
    i++;
  if (i == MAX_ENDS)
    return;
  s->ends[i].value = end;
  s->ends[i].least = i < s->num_ends && s->ends[i].least > least ? s->ends[i].least : least;
  s->num_ends += i == s->num_ends;
}

/* ---- two branches ---------------------------------------------------------------------------------- */

static MlirBlock new_branch(tw_builder_t *in) {
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  *in = tw_build_at_end(block, in->location);
  *in = tw_build_before(tw_build(in, "scf.yield", (tw_op_parts_t){0}));
  return block;
}

static void copy_sure(const edges_t *s, const tw_builder_t *in, MlirOperation op, tw_map_t *map) {
  int64_t sure[TW_LAYOUT_MAX_RANK];
  tw_layout_t l;
  bool is_sure = find_sure(op, sure, &l) && can_require(s, op, &l);
  MlirOperation copy = tw_copy_op(in, op, map);
  if (is_sure)
    tw_set_attr(copy, TW_SURE, mlirDenseI64ArrayGet(in->context, l.rank, sure));
}

static void build_branches(edges_t *s, MlirOperation end) {
  tw_builder_t sure = s->at, edge = s->at;
  MlirBlock blocks[] = {new_branch(&sure), new_branch(&edge)};
  MlirOperation last = mlirBlockGetTerminator(blocks[1]);
  tw_map_t map = {0};
  for (int i = 0; i < s->num_ends; i++) {
    MlirType type = mlirValueGetType(s->ends[i].value);
    MlirValue least = tw_const_int(&sure, type, s->ends[i].least);
    tw_map_one(&map, s->ends[i].value, tw_binary(&sure, "arith.maxsi", type, s->ends[i].value, least));
  }
  for (MlirOperation op = s->from; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op))
    copy_sure(s, &sure, op, &map);
  for (MlirOperation op = s->from, next; !mlirOperationEqual(op, end); op = next) {
    next = mlirOperationGetNextInBlock(op);
    mlirOperationMoveBefore(op, last);
  }
  s->at = tw_build_before(end);
  tw_build_if(&s->at, s->holds, blocks[0], blocks[1]);
  tw_map_free(&map);
}

/* All blocks of a cluster have to come to a reduction across it, and they need not take the same branch. */
static bool meets_cluster(MlirOperation op) { return tw_op_is_reduction(op) && tw_has_attr(op, TW_ACROSS); }

/* The first op of a block that has a tile to give or to take. */
static bool has_tile(MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    if (tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, i))))
      return !tw_is_constant(op);
  return is_tile_access(op);
}

static bool is_branchless(MlirOperation from, MlirOperation end) {
  for (MlirOperation op = from; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op))
    if (mlirOperationGetNumRegions(op) > 0 || tw_makes_buffer(op) || tw_op_is_product(op) || meets_cluster(op))
      return false;
  return true;
}

static void collect(edges_t *s, MlirOperation end) {
  for (MlirOperation op = s->from; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op)) {
    int64_t sure[TW_LAYOUT_MAX_RANK], least;
    tw_layout_t l;
    if (find_sure(op, sure, &l) && can_require(s, op, &l))
      require_inside(s, op, &l, sure);
    MlirValue number = end_of_mask(s, op, &least);
    if (number.ptr)
      require_end(s, number, least);
  }
}

bool tw_split_edges(MlirOperation func) {
  if (!tw_has_attr(func, "tile.kernel") || tw_has_attr(func, "tile.simt"))
    return true;
  MlirBlock body = tw_region_block(func, 0);
  MlirOperation from = tw_first_op(body, has_tile), end = mlirBlockGetTerminator(body);
  if (mlirOperationIsNull(from) || mlirOperationIsNull(end) || !is_branchless(from, end))
    return true;
  edges_t s = {.from = from, .at = tw_build_before(from)};
  collect(&s, end);
  if (s.holds.ptr == NULL)
    return true;
  for (int i = 0; i < s.num_ends; i++) {
    MlirValue least = tw_const_int(&s.at, mlirValueGetType(s.ends[i].value), s.ends[i].least);
    require(&s, tw_compare(&s.at, TW_SGE, s.ends[i].value, least));
  }
  build_branches(&s, end);
  return true;
}
