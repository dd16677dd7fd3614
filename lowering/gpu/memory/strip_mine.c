/* strip_mine.c - tile-strip-mine: a loop walks a tile that registers cannot hold, part by part
 *
 * Before, each thread of the largest block has more elements than registers:
 *
 *   %x = tile.load %X[%row, 0] : ... -> tensor<1x65536xbf16>
 *   %f = arith.extf %x
 *   %m = tile.reduce max, %f axis 1
 *   %b = tile.broadcast (%m as 1x1) -> tensor<1x65536xf32>
 *   %y = arith.subf %f, %b
 *   tile.store %y, %Y[%row, 0]
 *
 * After, what stands between two reductions is a loop over parts. A reduction along the axis of the walk is one over
 * the parts, element by element, and then of what is left:
 *
 *   %parts = scf.for %j = 0 to 4 step 1 iter_args(%most = -inf) -> tensor<1x16384xf32> {
 *     %x = tile.load %X[%row, %j] : ... -> tensor<1x16384xbf16>
 *     %f = arith.extf %x
 *     yield arith.maximumf %most, %f
 *   }
 *   %m = tile.reduce max, %parts axis 1
 *   scf.for %j = 0 to 4 step 1 {
 *     %x = tile.load %X[%row, %j] ; %f = arith.extf %x ; %b = tile.broadcast (%m as 1x1) ; ... ; tile.store
 *   }
 *
 * What several loops need is computed in each of them, from the loads on; tile-cache-tiles then keeps the loaded parts
 * in shared memory. Tiles go along an axis that no reduction takes away, if there is one: then one loop does all.
 *
 * What must hold: the tile, all that is computed from it and all that it is computed from, as far as it has the axis,
 * are made in one block, element by element or by loads, broadcasts, reshapes, permutes and reductions (sums and
 * extremes). A larger tile that is stored and nowhere reduced is walked along alike, a constant too. A remark names the
 * op that does not. Stores come last: what they write no other op of the block touches, as far as arrays may be assumed
 * to be apart (aliasing.h), but loads of the same place before them. Runs behind tile-plan-block, which asks here how
 * many warps the parts should have, and before layouts. */
#include "lowering/gpu/memory/strip_mine.h"

#include "dialect/layouts.h"
#include "lowering/aliasing.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/gpu/memory/check_sizes.h"
#include "lowering/gpu/memory/strip_mine_products.h"
#include "lowering/gpu/memory/tile_parts.h"
#include "lowering/launch_record.h"
#include "lowering/layout/memory.h"
#include "lowering/loops.h"
#include "lowering/passes.h"
#include "tilewright/dialect.h"

#include <math.h>
#include <stdlib.h>

enum {
  MOST_ELEMENTS = 16384, /* of a tile that is reduced: 64 for each thread of 8 warps */
  MOST_STORED = 65536,   /* of one that is only stored: 64 for each thread of the largest block */
  FEW_WARPS = 8,
  MANY_WARPS = 16
};

typedef struct {
  MlirOperation op;
  bool wide;
  int phase; /* wide: the loop that needs it first; narrow: after so many loops */
} part_entry_t;

typedef struct {
  MlirBlock block;
  MlirOperation root; /* the op that the walk is for: a reduction or a store */
  int root_axis;      /* of its tile */
  int64_t extent;     /* of the axis */
  int64_t part;
  tw_map_t axes;     /* wide value -> its axis */
  part_entry_t *ops; /* owned */
  int num_ops, num_phases;
  MlirOperation obstacle; /* why not */
} walk_t;

/* ---- what goes along the axis ---------------------------------------------------------------------------- */

/* The axis of a wide value, else -1. */
static int axis_of(const walk_t *w, MlirValue value) { return tw_map_number(&w->axes, value, -1); }

/* The tile that a reduction takes or a store moves. */
static MlirValue tile_of(MlirOperation op) {
  return mlirOperationGetOperand(op, tw_op_stores_tile(op) ? mlirOperationGetNumOperands(op) - 1 : 0);
}

/* The same of what a store moves; a constant that the root stores is of no op, and has the root's. */
static int axis_of_stored(const walk_t *w, MlirOperation store) {
  return mlirOperationEqual(store, w->root) ? w->root_axis : axis_of(w, tile_of(store));
}

static bool has_extent(const walk_t *w, MlirType type, int axis) {
  return tw_is_tile(type) && axis >= 0 && axis < tw_rank(type) && tw_extent(type, axis) == w->extent;
}

static bool can_part(MlirOperation op) {
  bool access = tw_op_loads_tile(op) || tw_op_stores_tile(op);
  bool elementwise =
      (tw_op_form(op) == TW_FORM_ELEMENTWISE && mlirOperationGetNumResults(op) == 1) || tw_is_constant(op);
  return access || elementwise || tw_is_shape_op(op) || tw_op_is_reduction(op);
}

/* A reduction along the axis, which takes it away. */
static bool ends_axis(const walk_t *w, MlirOperation op) {
  return tw_op_is_reduction(op) && tw_attr_int(op, "axis", 0) == axis_of(w, mlirOperationGetOperand(op, 0));
}

/* The op by which partial results of a reduction are combined; null where there is none. */
static const char *combining(MlirOperation reduce) {
  MlirType element = tw_element(mlirValueGetType(mlirOperationGetOperand(reduce, 0)));
  bool is_float = mlirTypeIsAFloat(element), is_unsigned = tw_has_attr(reduce, "is_unsigned");
  if (tw_memory_bits(element) < 16 || mlirTypeIsATF32(element))
    return NULL;
  bool numbers = tw_has_attr(reduce, "ignore_nan");
  switch (tw_attr_int(reduce, "kind", -1)) {
  case TW_REDUCE_ADD: return is_float && !mlirTypeIsAF32(element) ? NULL : is_float ? "arith.addf" : "arith.addi";
  case TW_REDUCE_MAX:
    return numbers ? "arith.maxnumf" : is_float ? "arith.maximumf" : is_unsigned ? "arith.maxui" : "arith.maxsi";
  case TW_REDUCE_MIN:
    return numbers ? "arith.minnumf" : is_float ? "arith.minimumf" : is_unsigned ? "arith.minui" : "arith.minsi";
  default: return NULL;
  }
}

/* Notes the first op in the way. */
static bool blocked_by(walk_t *w, MlirOperation op) {
  if (mlirOperationIsNull(w->obstacle))
    w->obstacle = op;
  return false;
}

static bool add_value(walk_t *w, MlirValue value, int axis);

/* Adds what shares the axis with an op of which `axis` is that of its result, or of what it stores or reduces. */
static bool add_op(walk_t *w, MlirOperation op, int axis) {
  if (!mlirBlockEqual(mlirOperationGetBlock(op), w->block) || !can_part(op))
    return blocked_by(w, op);
  if (ends_axis(w, op))
    return combining(op) != NULL || blocked_by(w, op);
  if (tw_has_attr(op, TW_ACROSS)) /* the blocks of a cluster meet there, once */
    return blocked_by(w, op);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirValue operand = mlirOperationGetOperand(op, i);
    int own = tw_operand_axis(op, i, axis);
    bool whole = own < 0 && tw_is_tile(mlirValueGetType(operand)) && !tw_op_is(op, TW_TILE_BROADCAST);
    if (whole || (own >= 0 && !add_value(w, operand, own)))
      return blocked_by(w, op);
  }
  return mlirOperationGetNumResults(op) == 0 || add_value(w, mlirOperationGetResult(op, 0), axis) || blocked_by(w, op);
}

static bool add_user(walk_t *w, MlirOpOperand use, int axis) {
  MlirOperation user = mlirOpOperandGetOwner(use);
  if (can_part(user) && mlirOperationGetNumResults(user) > 0 && !ends_axis(w, user))
    axis = tw_result_axis(user, mlirOpOperandGetOperandNumber(use), axis);
  return axis < 0 ? blocked_by(w, user) : add_op(w, user, axis);
}

static bool add_value(walk_t *w, MlirValue value, int axis) {
  int known = axis_of(w, value);
  if (known >= 0 || tw_is_made_anew(value))
    return has_extent(w, mlirValueGetType(value), axis) && (known < 0 || known == axis);
  MlirOperation op = tw_def(value);
  if (mlirOperationIsNull(op) || !has_extent(w, mlirValueGetType(value), axis))
    return false;
  tw_map_set_number(&w->axes, value, axis);
  bool ok = add_op(w, op, axis);
  for (MlirOpOperand use = mlirValueGetFirstUse(value); ok && !mlirOpOperandIsNull(use);
       use = mlirOpOperandGetNextUse(use))
    ok = add_user(w, use, axis);
  return ok;
}

/* ---- the order of the ops -------------------------------------------------------------------------------- */

static bool is_wide(const walk_t *w, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    if (axis_of(w, mlirOperationGetResult(op, i)) >= 0)
      return true;
  return tw_op_stores_tile(op) ? axis_of_stored(w, op) >= 0 : tw_op_is_reduction(op) && axis_of(w, tile_of(op)) >= 0;
}

typedef struct {
  const walk_t *walk;
  int phase;
  bool accesses, writes; /* of memory */
} needs_t;

static MlirWalkResult look_at_needs(MlirOperation op, void *user) {
  needs_t *n = user;
  n->writes = n->writes || tw_op_stores(op) || (mlirOperationGetNumRegions(op) == 0 && tw_may_write_arrays(op));
  n->accesses = n->accesses || n->writes || tw_op_loads(op);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirOperation def = tw_ancestor_in(tw_def(mlirOperationGetOperand(op, i)), n->walk->block);
    for (int k = 0; !mlirOperationIsNull(def) && k < n->walk->num_ops; k++) {
      const part_entry_t *entry = &n->walk->ops[k];
      int ready = entry->phase + (mlirOperationEqual(entry->op, def) && ends_axis(n->walk, def));
      if (mlirOperationEqual(entry->op, def) && ready > n->phase)
        n->phase = ready;
    }
  }
  return MlirWalkResultAdvance;
}

/* Gives each op its phase. Narrow ops that access memory keep their order, as far as one of them writes. */
static void order_ops(walk_t *w) {
  int accessed = 0, written = 0;
  MlirOperation end = mlirBlockGetTerminator(w->block);
  for (MlirOperation op = mlirBlockGetFirstOperation(w->block); !mlirOperationEqual(op, end);
       op = mlirOperationGetNextInBlock(op)) {
    needs_t needs = {.walk = w};
    bool wide = is_wide(w, op);
    mlirOperationWalk(op, look_at_needs, &needs, MlirWalkPreOrder);
    if (!wide && needs.accesses && needs.phase < (needs.writes ? accessed : written))
      needs.phase = needs.writes ? accessed : written;
    if (!wide && needs.accesses && needs.phase > accessed)
      accessed = needs.phase;
    if (!wide && needs.writes && needs.phase > written)
      written = needs.phase;
    w->ops = tw_room(w->ops, (size_t)w->num_ops, sizeof *w->ops);
    w->ops[w->num_ops++] = (part_entry_t){op, wide, needs.phase};
    if (wide && needs.phase >= w->num_phases)
      w->num_phases = needs.phase + 1;
  }
  for (int i = 0; i < w->num_ops; i++)
    if (tw_op_stores_tile(w->ops[i].op) && w->ops[i].wide)
      w->ops[i].phase = w->num_phases - 1;
}

/* ---- what stores may change ------------------------------------------------------------------------------ */

typedef struct {
  MlirOperation store;
  bool wide;   /* so is the op that is looked at */
  bool before; /* it stands before the store */
  bool apart;
} touch_t;

static bool same_tile(MlirOperation load, MlirOperation store) {
  intptr_t first, second;
  MlirType loaded = mlirValueGetType(mlirOperationGetResult(load, 0));
  intptr_t value = mlirOperationGetNumOperands(store) - 1;
  (void)tw_access_array(load, &first);
  (void)tw_access_array(store, &second);
  bool same = mlirTypeEqual(loaded, mlirValueGetType(mlirOperationGetOperand(store, value))) &&
              mlirAttributeEqual(tw_attr(load, "order"), tw_attr(store, "order"));
  for (intptr_t d = 0; same && d < tw_rank(loaded); d++)
    same = mlirValueEqual(mlirOperationGetOperand(load, first + d), mlirOperationGetOperand(store, second + d));
  return same;
}

static MlirWalkResult look_at_touch(MlirOperation op, void *user) {
  touch_t *t = user;
  intptr_t first;
  if (mlirOperationEqual(op, t->store) || mlirOperationGetNumRegions(op) > 0)
    return MlirWalkResultAdvance;
  if (!tw_op_loads(op) && !tw_op_stores(op)) {
    t->apart = t->apart && !tw_may_write_arrays(op); /* such as a print, which has its place */
    return MlirWalkResultAdvance;
  }
  MlirValue mine = tw_access_array(op, &first), stored = tw_access_array(t->store, &first);
  bool in_place = t->wide && t->before && tw_op_loads_tile(op) && same_tile(op, t->store);
  t->apart = t->apart && tw_assume_unwritten(mine, stored, in_place);
  return MlirWalkResultAdvance;
}

/* Whether all stores may come last. */
static bool stores_are_apart(walk_t *w) {
  for (int s = 0; s < w->num_ops; s++) {
    touch_t t = {.store = w->ops[s].op, .apart = true};
    for (int i = 0; i < w->num_ops && w->ops[s].wide && tw_op_stores_tile(t.store); i++) {
      t.wide = w->ops[i].wide;
      t.before = i < s;
      mlirOperationWalk(w->ops[i].op, look_at_touch, &t, MlirWalkPreOrder);
    }
    if (!t.apart)
      return blocked_by(w, t.store);
  }
  return true;
}

/* ---- one loop -------------------------------------------------------------------------------------------- */

static void build_part(const walk_t *w, const tw_builder_t *at, MlirOperation op, MlirValue j, tw_map_t *map) {
  bool stores = tw_op_stores_tile(op);
  intptr_t num = mlirOperationGetNumOperands(op);
  int axis = stores ? axis_of_stored(w, op) : axis_of(w, mlirOperationGetResult(op, 0));
  MlirOperation made = mlirOperationClone(op);
  mlirBlockInsertOwnedOperationBefore(at->block, at->before, made);
  tw_builder_t here = tw_build_before(made);
  for (intptr_t i = 0; i < num; i++) {
    MlirValue operand = mlirOperationGetOperand(op, i);
    int own = tw_operand_axis(op, i, axis);
    if (own >= 0)
      mlirOperationSetOperand(made, i,
                              axis_of(w, operand) < 0 ? tw_make_part_anew(&here, operand, own, w->part, j)
                                                      : tw_map_value(map, operand));
  }
  if (stores || tw_op_loads_tile(op)) {
    intptr_t first;
    (void)tw_access_array(op, &first);
    MlirValue index = mlirOperationGetOperand(op, first + axis);
    mlirOperationSetOperand(made, first + axis, tw_part_index(&here, index, w->extent / w->part, j));
  }
  if (stores)
    return;
  MlirValue result = mlirOperationGetResult(op, 0), part = mlirOperationGetResult(made, 0);
  mlirValueSetType(part, tw_with_extent(mlirValueGetType(result), axis, w->part));
  tw_map_one(map, result, part);
}

/* What a reduction starts from: it changes nothing. */
static MlirValue neutral(const tw_builder_t *at, MlirOperation reduce, MlirType type) {
  int64_t kind = tw_attr_int(reduce, "kind", 0);
  if (tw_has_attr(reduce, "ignore_nan"))
    return tw_const_float(at, type, NAN);
  if (tw_is_float(type))
    return tw_const_float(at, type, kind == TW_REDUCE_ADD ? -0.0 : kind == TW_REDUCE_MAX ? -INFINITY : INFINITY);
  unsigned bits = tw_bits(type);
  bool is_unsigned = tw_has_attr(reduce, "is_unsigned");
  int64_t most = is_unsigned ? -1 : (int64_t)(UINT64_MAX >> (65 - bits)), least = is_unsigned ? 0 : -most - 1;
  return tw_const_int(at, type, kind == TW_REDUCE_ADD ? 0 : kind == TW_REDUCE_MAX ? least : most);
}

/* Whether the loop of a phase is there for the op: it stores, or reduces along the axis. */
static bool is_root(const walk_t *w, int i, int phase) {
  MlirOperation op = w->ops[i].op;
  return w->ops[i].wide && w->ops[i].phase == phase && (tw_op_stores_tile(op) || ends_axis(w, op));
}

/* Marks what op `i` needs among the wide ops. */
static void mark(const walk_t *w, int i, bool *needed) {
  if (needed[i])
    return;
  needed[i] = true;
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(w->ops[i].op); k++) {
    MlirOperation def = tw_def(mlirOperationGetOperand(w->ops[i].op, k));
    for (int d = 0; d < i && !mlirOperationIsNull(def); d++)
      if (w->ops[d].wide && mlirOperationEqual(w->ops[d].op, def))
        mark(w, d, needed);
  }
}

/* What a phase needs of the wide ops, and its reductions, in order. Returns how many these are. */
static int find_roots(const walk_t *w, int phase, bool *needed, MlirOperation *reduces) {
  int num = 0;
  for (int i = 0; i < w->num_ops; i++) {
    if (!is_root(w, i, phase))
      continue;
    mark(w, i, needed);
    if (!tw_op_stores_tile(w->ops[i].op))
      reduces[num++] = w->ops[i].op;
  }
  return num;
}

/* A loop over the parts, still empty, that carries what each reduction has of a part. */
static MlirOperation build_walk(const walk_t *w, const tw_builder_t *at, int num, const MlirOperation *reduces) {
  MlirType i32 = tw_i32(at->context);
  MlirValue *operands = tw_allocate((size_t)num + TW_FOR_INITS, sizeof *operands);
  MlirBlock body = mlirBlockCreate(1, &i32, &at->location);
  operands[0] = tw_const_int(at, i32, 0);
  operands[1] = tw_const_int(at, i32, w->extent / w->part);
  operands[2] = tw_const_int(at, i32, 1);
  for (int r = 0; r < num; r++) {
    MlirValue input = mlirOperationGetOperand(reduces[r], 0);
    MlirType type = tw_with_extent(mlirValueGetType(input), axis_of(w, input), w->part);
    operands[TW_FOR_INITS + r] = neutral(at, reduces[r], type);
    mlirBlockAddArgument(body, type, at->location);
  }
  tw_builder_t in = tw_build_at_end(body, at->location);
  tw_build(&in, "scf.yield", (tw_op_parts_t){0});
  MlirOperation loop = tw_build_for(at, TW_FOR_INITS + num, operands, tw_region_with(body));
  free(operands);
  return loop;
}

/* An iteration: the part of all that is needed, and of each reduction what it then has. */
static void fill_walk(const walk_t *w, MlirOperation loop, const bool *needed, int num, const MlirOperation *reduces) {
  tw_builder_t at = tw_build_before(tw_loop_yield(loop));
  MlirValue *next = tw_allocate((size_t)num, sizeof *next);
  tw_map_t map = {0};
  for (int i = 0; i < w->num_ops; i++)
    if (needed[i] && !ends_axis(w, w->ops[i].op))
      build_part(w, &at, w->ops[i].op, tw_loop_iv(loop), &map);
  for (int r = 0; r < num; r++) {
    at.location = mlirOperationGetLocation(reduces[r]);
    next[r] = tw_binary(&at, combining(reduces[r]), mlirValueGetType(tw_carried(loop, r)), tw_carried(loop, r),
                        tw_map_value(&map, mlirOperationGetOperand(reduces[r], 0)));
  }
  tw_map_free(&map);
  tw_extend_yield(tw_loop_body(loop), num, next);
  free(next);
}

/* The loop of a phase, before the block's end; its reductions then reduce what the loop leaves. */
static void build_loop(const walk_t *w, int phase, MlirLocation location) {
  MlirOperation end = mlirBlockGetTerminator(w->block);
  tw_builder_t before = tw_build_before(end);
  before.location = location;
  bool *needed = tw_allocate((size_t)w->num_ops, sizeof *needed);
  MlirOperation *reduces = tw_allocate((size_t)w->num_ops, sizeof *reduces);
  int num = find_roots(w, phase, needed, reduces);
  MlirOperation loop = build_walk(w, &before, num, reduces);
  fill_walk(w, loop, needed, num, reduces);
  for (int r = 0; r < num; r++) {
    mlirOperationMoveBefore(reduces[r], end);
    mlirOperationSetOperand(reduces[r], 0, mlirOperationGetResult(loop, r));
  }
  free(needed);
  free(reduces);
}

/* ---- the pass -------------------------------------------------------------------------------------------- */

static void rewrite(walk_t *w, MlirLocation location) {
  MlirOperation end = mlirBlockGetTerminator(w->block);
  bool *ends = tw_allocate((size_t)w->num_ops, sizeof *ends);
  for (int i = 0; i < w->num_ops; i++)
    ends[i] = ends_axis(w, w->ops[i].op);
  for (int phase = 0; phase <= w->num_phases; phase++) {
    for (int i = 0; i < w->num_ops; i++)
      if (!w->ops[i].wide && w->ops[i].phase == phase)
        mlirOperationMoveBefore(w->ops[i].op, end);
    if (phase < w->num_phases)
      build_loop(w, phase, location);
  }
  for (int i = w->num_ops; i-- > 0;)
    if (w->ops[i].wide && !ends[i])
      mlirOperationDestroy(w->ops[i].op);
  free(ends);
}

/* Bytes of the tiles that the first loop loads. */
static int64_t bytes_loaded(const walk_t *w) {
  bool *needed = tw_allocate((size_t)w->num_ops, sizeof *needed);
  int64_t bytes = 0;
  for (int i = 0; i < w->num_ops; i++)
    if (is_root(w, i, 0))
      mark(w, i, needed);
  for (int i = 0; i < w->num_ops; i++)
    if (needed[i] && tw_op_loads_tile(w->ops[i].op)) {
      MlirType type = mlirValueGetType(mlirOperationGetResult(w->ops[i].op, 0));
      bytes += tw_count(type) * tw_memory_bits(tw_element(type)) / 8;
    }
  free(needed);
  return bytes;
}

/* A multiprocessor that has room for one block's tiles only gets more warps in it. */
static int choose_warps(const walk_t *w, MlirOperation func) {
  tw_gpu_target_t target = tw_gpu_share_of(func);
  return w->num_phases > 1 && 2 * bytes_loaded(w) > target.shared_bytes ? MANY_WARPS : FEW_WARPS;
}

/* How much of the axis makes a part of which a thread has registers for its elements. */
static void choose_part(walk_t *w, MlirOperation func, MlirType tile) {
  int64_t most = tw_num_warps(func, FEW_WARPS) * TW_WARP_LANES * tw_register_budget(func, TW_BUDGET_PART);
  w->part = w->extent;
  while (w->part > 1 && tw_count(tile) / w->extent * w->part > most)
    w->part /= 2;
}

/* Whether the tile of the root can be walked along the axis. */
static bool can_walk(walk_t *w) {
  bool wide =
      tw_op_stores_tile(w->root) ? add_op(w, w->root, w->root_axis) : add_value(w, tile_of(w->root), w->root_axis);
  if (wide)
    order_ops(w);
  return wide && stores_are_apart(w);
}

static void free_walk(walk_t *w) {
  tw_map_free(&w->axes);
  free(w->ops);
}

static bool can_walk_along(walk_t *w, MlirOperation root, int axis, MlirOperation *obstacle) {
  *w = (walk_t){.block = mlirOperationGetBlock(root),
                .root = root,
                .root_axis = axis,
                .extent = tw_extent(mlirValueGetType(tile_of(root)), axis)};
  bool ok = can_walk(w);
  *obstacle = w->obstacle;
  if (!ok)
    free_walk(w);
  return ok;
}

/* Along another axis than that of a reduction, if that does. */
static bool find_walk(walk_t *w, MlirOperation root, MlirOperation *obstacle) {
  MlirType tile = mlirValueGetType(tile_of(root));
  int last = (int)tw_attr_int(root, "axis", -1);
  for (int axis = 0; axis < tw_rank(tile); axis++)
    if (axis != last && tw_extent(tile, axis) > 1 && can_walk_along(w, root, axis, obstacle))
      return true;
  return last >= 0 && can_walk_along(w, root, last, obstacle);
}

static bool walk(MlirOperation func, MlirOperation root) {
  walk_t w;
  MlirType tile = mlirValueGetType(tile_of(root));
  MlirOperation obstacle = tw_null_op();
  char whole[160], part[160];
  tw_describe_tile(tile, sizeof whole, whole);
  bool ok = find_walk(&w, root, &obstacle);
  if (ok) {
    choose_part(&w, func, tile);
    tw_describe_tile(tw_with_extent(tile, w.root_axis, w.part), sizeof part, part);
    tw_op_remark(root, "is strip-mined: registers cannot hold its tile of %s, so a loop takes tiles of %s", whole,
                 part);
    rewrite(&w, mlirOperationGetLocation(root));
    free_walk(&w);
  } else {
    tw_op_remark(mlirOperationIsNull(obstacle) ? root : obstacle,
                 "keeps a tile of %s whole, which is more than registers hold: use smaller tiles", whole);
  }
  return ok;
}

/* A tile that has its layout already is left as it is: that of a part would be another. */
static bool is_too_wide(MlirOperation op) {
  if (!tw_op_is_reduction(op) && !tw_op_stores_tile(op))
    return false;
  MlirType tile = mlirValueGetType(tile_of(op));
  return tw_is_tile(tile) && !tw_has_layout(tile) &&
         tw_count(tile) > (tw_op_stores_tile(op) ? MOST_STORED : MOST_ELEMENTS);
}

static bool is_walked(MlirOperation func) { return tw_is_of_tiles(func) && !tw_has_op_like(func, tw_op_is_product); }

int tw_strip_mine_warps(MlirOperation func) {
  walk_t w;
  tw_ops_t wide = is_walked(func) ? tw_ops_in(func, is_too_wide, MlirWalkPreOrder) : (tw_ops_t){NULL, 0};
  MlirOperation obstacle;
  int warps = 0;
  for (int i = 0; i < wide.count && warps == 0; i++)
    if (find_walk(&w, wide.at[i], &obstacle)) {
      warps = choose_warps(&w, func);
      free_walk(&w);
    }
  tw_ops_free(&wide);
  return warps;
}

/* A walk moves the reductions along its axis, and takes others and stores into its loops. */
static bool strip_mine(MlirOperation func) {
  if (!is_walked(func))
    return true;
  for (int refused = 0;;) {
    tw_ops_t wide = tw_ops_in(func, is_too_wide, MlirWalkPreOrder);
    bool more = refused < wide.count;
    refused += more && !walk(func, wide.at[refused]);
    tw_ops_free(&wide);
    if (!more)
      return true;
  }
}

static bool is_unused_constant(MlirOperation op) {
  return mlirOperationGetNumResults(op) == 1 && tw_is_unused(mlirOperationGetResult(op, 0)) &&
         tw_is_made_anew(mlirOperationGetResult(op, 0));
}

/* Parts have constants of their own; those of whole tiles would be too large. */
static void erase_unused_constants(MlirOperation func) {
  tw_ops_t unused = tw_ops_in(func, is_unused_constant, MlirWalkPreOrder);
  for (int i = 0; i < unused.count; i++)
    mlirOperationDestroy(unused.at[i]);
  tw_ops_free(&unused);
}

bool tw_run_strip_mine(MlirOperation func) {
  bool ok = strip_mine(func) && tw_strip_mine_products(func);
  erase_unused_constants(func);
  return ok && tw_check_sizes(func);
}
