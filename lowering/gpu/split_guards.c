/* split_guards.c - in tile-to-nvvm: pieces of a tile that lie inside of the array are accessed without a guard
 *
 * Before, of rows that begin at odd places, of which each thread loads and stores element by element:
 *
 *   %w = tile.load %W[%c0] padding zero : ... -> tensor<4096xbf16, #l>
 *   ... %z ...
 *   tile.store %z, %Y[%row, %c0] : tensor<1x4096xbf16, #l>, ...
 *
 * After, where three quarters of the tile lie inside of all arrays, or half, only the other pieces ask where they are:
 *
 *   %most = %W has 3072 elements, and %Y has row %row, and 3072 columns
 *   scf.if %most {
 *     %w = tile.load %W[%c0] padding zero {tile.inside_to = array<i64: 3072>} : ...
 *     ... %z ...
 *     tile.store %z, %Y[%row, %c0] {tile.inside_to = array<i64: 1, 3072>} : ...
 *   } else {
 *     %half = ...
 *     scf.if %half { (likewise, 2048) } else { (as before) }
 *   }
 *
 * A tile is a power of two, and a row that has one for itself at least half as long. Of rows that have several, all
 * pieces of all tiles but the last lie inside: there the whole tile is asked for. What a branch gives to the ops behind
 * it are its results.
 *
 * What must hold: layouts are known; ops that do nothing but compute, load and store stand together; one of them loads
 * or stores in MANY pieces; what their places are made from is known before the first of them. Kernels with products
 * plan their loops by registers, and stay as they are. Runs behind all passes that look for loads. */
#include "lowering/gpu/split_guards.h"

#include "base/memory.h"
#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/roles.h"
#include "lowering/loops.h"

#include <stdlib.h>

enum { MANY = 16, MAX_LEVELS = 2 };

/* Ops of a block from one to another that may stand in a branch. */
typedef struct {
  MlirOperation first, last;
  tw_ops_t ops;     /* all of them; owned */
  tw_ops_t guarded; /* accesses of many pieces, of which it is known early where they are; owned */
  bool alone;       /* all of these have the first tile of a row */
} stretch_t;

/* How many parts of four are asked for. */
typedef struct {
  int count, quarters[MAX_LEVELS];
} levels_t;

/* Accesses in which each thread makes the op, all guarded; 0 where it has another way. */
static int pieces_of(MlirOperation op) {
  tw_layout_t layout;
  int regs[TW_LAYOUT_MAX_BITS];
  bool moves = tw_op_is(op, TW_TILE_LOAD) || tw_op_is(op, TW_TILE_STORE);
  if (!moves || tw_has_attr(op, TW_IN_BOUNDS) || tw_attr_int(op, TW_LATE, 0) > 0)
    return 0;
  MlirType tile = mlirValueGetType(tw_moved_tile(op));
  if (!tw_is_tile(tile) || tw_memory_bits(tw_element(tile)) < 8 || !tw_layout_of_type(tile, &layout))
    return 0;
  int dim = tw_access_contiguous_dim(op, layout.rank);
  if (dim < 0)
    return 0;
  int inner = tw_layout_vector_bits(&layout, dim, tw_access_inner_vector_bits(op, layout.rank), regs);
  return inner > tw_access_vector_bits(op, layout.rank) ? 0 : tw_layout_count(&layout, TW_REGISTER) >> inner;
}

static bool may_stand(MlirOperation op) {
  bool accesses = tw_op_loads(op) || tw_op_stores(op);
  return mlirOperationGetNumRegions(op) == 0 && (accesses || (tw_is_arithmetic(op) && !tw_op_combines(op)));
}

/* Whether the op stands in its block before another one. */
static bool stands_before(MlirValue value, MlirOperation op) {
  MlirOperation def = tw_def(value);
  return mlirOperationIsNull(def) || !mlirBlockEqual(mlirOperationGetBlock(def), mlirOperationGetBlock(op)) ||
         mlirOperationIsBeforeInBlock(def, op);
}

static intptr_t rank_of(MlirOperation op) { return tw_rank(mlirValueGetType(tw_moved_tile(op))); }

static bool has_early_place(MlirOperation op, MlirOperation first) {
  intptr_t index;
  (void)tw_access_array(op, &index);
  for (intptr_t d = 0; d < rank_of(op); d++)
    if (!stands_before(mlirOperationGetOperand(op, index + d), first))
      return false;
  return true;
}

/* Whether it has the first tile along the axis whose neighbours are neighbours in memory. */
static bool is_first_tile(MlirOperation op) {
  intptr_t index;
  int64_t at;
  (void)tw_access_array(op, &index);
  int dim = tw_access_contiguous_dim(op, (int)rank_of(op));
  return tw_known_int(mlirOperationGetOperand(op, index + dim), &at) && at == 0;
}

/* The stretch from the first access of many pieces at or behind `at` to the last one of the same ops in a row. */
static bool find_stretch(MlirOperation at, stretch_t *out) {
  *out = (stretch_t){.alone = true};
  while (!mlirOperationIsNull(at) && pieces_of(at) < MANY)
    at = mlirOperationGetNextInBlock(at);
  out->first = at;
  for (; !mlirOperationIsNull(at) && may_stand(at); at = mlirOperationGetNextInBlock(at)) {
    if (pieces_of(at) < MANY)
      continue;
    out->last = at;
    if (has_early_place(at, out->first)) {
      tw_ops_add(&out->guarded, at);
      out->alone = out->alone && is_first_tile(at);
    }
  }
  if (out->guarded.count == 0)
    return false;
  for (at = out->first;; at = mlirOperationGetNextInBlock(at)) {
    tw_ops_add(&out->ops, at);
    if (mlirOperationEqual(at, out->last))
      return true;
  }
}

/* ---- the condition ------------------------------------------------------------------------------------- */

/* How many of the tile's places along a dimension, of an access, are asked for. */
static int64_t inside_to(MlirOperation op, int dim, int quarters) {
  MlirType tile = mlirValueGetType(tw_moved_tile(op));
  int64_t extent = tw_extent(tile, dim);
  return dim == tw_access_contiguous_dim(op, (int)tw_rank(tile)) ? extent * quarters / 4 : extent;
}

static MlirValue wide(const tw_builder_t *at, MlirValue x) {
  MlirType i64 = tw_i64(at->context);
  return mlirTypeEqual(mlirValueGetType(x), i64) ? x : tw_op1(at, "arith.extsi", i64, 1, &x);
}

/* Whether an access lies inside along one dimension, as far as is asked for. An extent that i32 does not hold is taken
 * for a smaller one. */
static MlirValue lies_inside(const tw_builder_t *at, MlirOperation op, int dim, int quarters) {
  intptr_t first;
  int64_t order[TW_LAYOUT_MAX_RANK];
  MlirType i32 = tw_i32(at->context), i64 = tw_i64(at->context);
  MlirValue array = tw_access_array(op, &first), index = wide(at, mlirOperationGetOperand(op, first + dim));
  tw_access_order(op, (int)rank_of(op), order);
  MlirValue extent = wide(at, tw_op1_attr(at, "tile.dim", i32, 1, &array, "axis", mlirIntegerAttrGet(i32, order[dim])));
  int64_t tile = tw_extent(mlirValueGetType(tw_moved_tile(op)), dim);
  MlirValue start = tw_binary(at, "arith.muli", i64, index, tw_const_int(at, i64, tile));
  MlirValue end = tw_binary(at, "arith.addi", i64, start, tw_const_int(at, i64, inside_to(op, dim, quarters)));
  MlirValue ends = tw_compare(at, TW_SLE, end, extent),
            begins = tw_compare(at, TW_SGE, index, tw_const_int(at, i64, 0));
  return tw_binary(at, "arith.andi", mlirValueGetType(ends), ends, begins);
}

static MlirValue lie_inside(const tw_builder_t *at, const stretch_t *s, int quarters) {
  MlirValue all = {NULL};
  for (int i = 0; i < s->guarded.count; i++)
    for (int d = 0; d < rank_of(s->guarded.at[i]); d++) {
      MlirValue one = lies_inside(at, s->guarded.at[i], d, quarters);
      all = all.ptr ? tw_binary(at, "arith.andi", mlirValueGetType(all), all, one) : one;
    }
  return all;
}

/* ---- the branches -------------------------------------------------------------------------------------- */

static bool is_guarded(const stretch_t *s, MlirOperation op) {
  for (int i = 0; i < s->guarded.count; i++)
    if (mlirOperationEqual(s->guarded.at[i], op))
      return true;
  return false;
}

static void mark(MlirOperation copy, int quarters) {
  int64_t inside[TW_LAYOUT_MAX_RANK] = {0};
  intptr_t rank = rank_of(copy);
  for (int d = 0; d < rank; d++)
    inside[d] = inside_to(copy, d, quarters);
  tw_set_attr(copy, TW_INSIDE_TO, mlirDenseI64ArrayGet(mlirOperationGetContext(copy), rank, inside));
}

static bool is_read_behind(const stretch_t *s, MlirValue value) {
  TW_EACH_USE(use, value) {
    MlirOperation user = tw_ancestor_in(mlirOpOperandGetOwner(use), mlirOperationGetBlock(s->first));
    if (mlirOperationIsNull(user) || mlirOperationEqual(user, s->last))
      continue;
    if (!mlirOperationIsBeforeInBlock(user, s->last))
      return true;
  }
  return false;
}

/* The ops again, without guards of what lies inside; null: with them (quarters 0). */
static MlirBlock copy_ops(const stretch_t *s, MlirLocation location, int quarters, const tw_ops_t *results) {
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  tw_builder_t at = tw_build_at_end(block, location);
  tw_map_t map = {0};
  for (int i = 0; i < s->ops.count; i++) {
    tw_copy_op(&at, s->ops.at[i], &map);
    MlirOperation copy = mlirBlockGetFirstOperation(block);
    while (!mlirOperationIsNull(mlirOperationGetNextInBlock(copy)))
      copy = mlirOperationGetNextInBlock(copy);
    if (quarters > 0 && is_guarded(s, s->ops.at[i]))
      mark(copy, quarters);
  }
  MlirValue *yielded = tw_allocate((size_t)results->count, sizeof *yielded);
  for (int i = 0; i < results->count; i++)
    yielded[i] = tw_map_value(&map, mlirOperationGetResult(results->at[i], 0));
  tw_build(&at, "scf.yield", (tw_op_parts_t){.num_operands = results->count, .operands = yielded});
  free(yielded);
  tw_map_free(&map);
  return block;
}

static MlirOperation build_levels(const tw_builder_t *at, const stretch_t *s, const levels_t *levels, int level,
                                  const tw_ops_t *results) {
  MlirValue condition = lie_inside(at, s, levels->quarters[level]);
  MlirBlock then = copy_ops(s, at->location, levels->quarters[level], results), otherwise;
  if (level + 1 == levels->count) {
    otherwise = copy_ops(s, at->location, 0, results);
  } else {
    otherwise = mlirBlockCreate(0, NULL, NULL);
    tw_builder_t in = tw_build_at_end(otherwise, at->location);
    MlirOperation next = build_levels(&in, s, levels, level + 1, results);
    MlirValue *passed = tw_allocate((size_t)results->count, sizeof *passed);
    for (int i = 0; i < results->count; i++)
      passed[i] = mlirOperationGetResult(next, i);
    tw_build(&in, "scf.yield", (tw_op_parts_t){.num_operands = results->count, .operands = passed});
    free(passed);
  }
  return tw_build_if(at, condition, then, otherwise);
}

/* Returns the branch that takes the place of the stretch. */
static MlirOperation split(const stretch_t *s) {
  static const levels_t of_row = {2, {3, 2}}, of_tiles = {1, {4}};
  tw_builder_t at = tw_build_before(s->first);
  tw_ops_t results = {NULL, 0};
  for (int i = 0; i < s->ops.count; i++)
    if (mlirOperationGetNumResults(s->ops.at[i]) == 1 && is_read_behind(s, mlirOperationGetResult(s->ops.at[i], 0)))
      tw_ops_add(&results, s->ops.at[i]);
  MlirOperation branch = build_levels(&at, s, s->alone ? &of_row : &of_tiles, 0, &results);
  for (int i = 0; i < results.count; i++)
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(results.at[i], 0), mlirOperationGetResult(branch, i));
  for (int i = s->ops.count; i-- > 0;)
    mlirOperationDestroy(s->ops.at[i]);
  tw_ops_free(&results);
  return branch;
}

static void visit(MlirBlock block) {
  for (MlirOperation at = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(at);) {
    stretch_t s;
    MlirOperation branch = tw_null_op();
    if (find_stretch(at, &s))
      branch = split(&s);
    tw_ops_free(&s.ops);
    tw_ops_free(&s.guarded);
    at = mlirOperationIsNull(branch) ? branch : mlirOperationGetNextInBlock(branch);
  }
}

static bool is_product(MlirOperation op) { return tw_op_is_product(op) || tw_op_is_async_product(op); }

void tw_split_guards(MlirOperation func) {
  if (tw_has_attr(func, "tile.simt") || tw_has_op_like(func, is_product) || !mlirOperationIsNull(tw_roles_of(func)))
    return;
  tw_ops_t loops = tw_loops_in(func, MlirWalkPreOrder);
  for (int i = 0; i < loops.count; i++)
    if (tw_op_is(loops.at[i], TW_SCF_FOR))
      visit(tw_loop_body(loops.at[i]));
  tw_ops_free(&loops);
  visit(tw_region_block(func, 0));
}
