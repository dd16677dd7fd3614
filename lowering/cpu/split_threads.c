/* split_threads.c - tile-split-threads: a SIMT kernel with barriers becomes loops over the threads of a block
 *
 *   before   func @k(%x) attributes {tile.simt} {        after    func @k(%x) attributes {tile.simt, tile.split} {
 *              %t = tile.thread_id 0                                %saved = tile.shared_array : memref<1024xf32, 3>
 *              %v = tile.gather %x[%t]                              for %z, %y, %t in the block {
 *              tile.scatter %v, %s[%t]                                %v = tile.gather %x[%t]
 *              tile.sync_threads                                      tile.scatter %v, %s[%t]
 *              %w = tile.gather %s[%n]                                tile.scatter %v, %saved[%linear]
 *              %y = arith.addf %v, %w                               }
 *              …                                                    for %z, %y, %t in the block {
 *                                                                     %v = tile.gather %saved[%linear]
 *                                                                     %w = tile.gather %s[%n]
 *                                                                     %y = arith.addf %v, %w
 *
 * The block is cut at its barriers, and each piece is a loop. Branches and loops around a barrier, which all threads
 * take alike (lowering/common/uniform.h), stand around the pieces. What is the same in all threads is computed once,
 * between them. What a thread computes and reads in another piece lies in an array with a place for each thread, unless
 * it is cheap to compute again; so does what a loop around pieces carries.
 *
 * In a kernel of tiles the same happens to the body of tile.threads, in its place; tiles go in and out by shared
 * arrays:
 *
 *   before   %y = tile.threads(%x) {                     after    %s = tile.shared_array : memref<64xi32, 3>
 *            ^bb0(%s: memref<64xi32, 3>): … }                     tile.store %x, %s[0]
 *                                                                 for %t in 128 threads { … }
 *                                                                 %y = tile.load %s[0]
 *
 * What must hold: nothing but barriers makes threads wait, and no barrier stands where threads may diverge. Else the
 * kernel is left as it is, and its threads become fibers (lowering/cpu/simt.c), which a kernel of tiles has not.
 * Without barriers there is one piece. */
#include "lowering/common/uniform.h"
#include "lowering/cpu/cpu.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"
#include "lowering/passes.h"

#include "tilewright/dialect.h"

#include <stdio.h>

enum { MOST_THREADS = TW_BLOCK_WARPS * CPU_WARP, TILE_THREADS = 128 /* of a block of a kernel of tiles */ };

enum { MOST_VALUES = 64 }; /* that a loop or branch with a barrier carries */

typedef struct {
  MlirValue value, array;
} kept_t;

typedef struct {
  MlirContext context;
  MlirLocation location;
  MlirOperation func; /* or tile.threads */
  tw_uniform_t uniform;
  MlirBlock first, block;                 /* where arrays are made; where ops go */
  tw_map_t pieces;                        /* by op of the cut blocks: the number of its piece */
  tw_map_t saved;                         /* by value: the array with a place for each thread */
  tw_map_t shared, own;                   /* by old value: the new one, of all threads; within the loop over them */
  tw_ops_t piece;                         /* ops of the piece at hand */
  MlirValue dim[3], id[3], linear, total; /* of the block, and of the thread whose piece is emitted; null between */
  int number;
  bool failed;
} split_t;

/* ---- questions ------------------------------------------------------------------------------------------- */

static bool is_barrier(MlirOperation op) { return tw_op_has(op, TW_MEETS_BLOCK); }

static bool has_barrier(MlirOperation op) {
  return mlirOperationGetNumRegions(op) > 0 && tw_has_op_like(op, is_barrier);
}

/* Whether rounds of a loop are done by all threads one after the other, though none of them waits: see walks.c. It
 * stands in the kernel itself, or in loops and branches around barriers. */
static bool is_walk(const split_t *s, MlirOperation op) {
  if (!cpu_is_walk(&s->uniform, op))
    return false;
  for (op = mlirOperationGetParentOperation(op); !mlirOperationEqual(op, s->func);
       op = mlirOperationGetParentOperation(op))
    if (tw_op_is(op, TW_SCF_WHILE) || cpu_is_walk(&s->uniform, op))
      return false;
  return true;
}

static bool is_cut(const split_t *s, MlirOperation op) { return has_barrier(op) || is_walk(s, op); }

/* A walk of as many rounds as each thread has. */
static bool is_uneven(const split_t *s, MlirOperation op) {
  return tw_op_is(op, TW_SCF_FOR) && !tw_uniform_has(&s->uniform, tw_loop_iv(op));
}

static bool makes_array(MlirOperation op) {
  return mlirOperationGetNumResults(op) == 1 && mlirTypeIsAMemRef(mlirValueGetType(mlirOperationGetResult(op, 0)));
}

static bool is_terminator(MlirOperation op) { return mlirOperationIsNull(mlirOperationGetNextInBlock(op)); }

/* Whether it is computed between the pieces. */
static bool is_shared(const split_t *s, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    if (!tw_uniform_has(&s->uniform, mlirOperationGetResult(op, i)))
      return false;
  return mlirOperationGetNumResults(op) > 0 && (makes_array(op) || tw_is_pure_tree(op));
}

/* A quotient or rest of an unsigned number by a power of two, as the number of a warp: no division. */
static bool is_by_shift(MlirOperation op) {
  int64_t by;
  return (tw_op_is(op, TW_ARITH_DIVUI) || tw_op_is(op, TW_ARITH_REMUI)) &&
         tw_known_int(mlirOperationGetOperand(op, 1), &by) && by > 0 && (by & (by - 1)) == 0;
}

/* Whether a thread computes it again rather than read it back. */
static bool is_cheap(MlirOperation op) {
  if (mlirOperationGetNumRegions(op) > 0 || !tw_op_has(op, TW_PURE))
    return false;
  return is_by_shift(op) || (tw_op_class(op) != TW_CLASS_FUNCTION && tw_op_class(op) != TW_CLASS_QUOTIENT &&
                             tw_op_class(op) != TW_CLASS_REST);
}

/* What no loop over threads does: effects other than those on elements of arrays, waiting for another thread or for
 * other blocks, and returning values, which are one thread's. */
static bool is_foreign(MlirOperation op) {
  if (tw_op_is(op, TW_TILE_SYNC_GRID) || (tw_op_is(op, TW_FUNC_RETURN) && mlirOperationGetNumOperands(op) > 0))
    return true;
  if (mlirOperationGetNumRegions(op) > 0 || tw_op_form(op) == TW_FORM_CONTROL || tw_op_has(op, TW_PURE))
    return false;
  if (tw_op_has(op, TW_BY_ELEMENT))
    return !tw_op_loads(op) && !tw_op_stores(op) && cpu_is_polled(op);
  if (cpu_is_of_warps(op))
    return false;
  if (cpu_is_own_array(op))
    return !cpu_can_spread(op);
  return !makes_array(op) && !is_barrier(op) && !tw_op_is(op, TW_TILE_FENCE);
}

/* Whether a branch or loop around a barrier is taken by all threads alike. */
static bool is_together(const split_t *s, MlirOperation op) {
  if (!has_barrier(op)) /* a walk */
    return true;
  if (tw_op_is(op, TW_SCF_IF))
    return tw_uniform_has(&s->uniform, mlirOperationGetOperand(op, 0));
  if (tw_op_is(op, TW_SCF_FOR))
    return tw_uniform_has(&s->uniform, tw_loop_iv(op));
  if (!tw_op_is(op, TW_SCF_WHILE) || !has_barrier(op))
    return false;
  MlirOperation condition = mlirBlockGetTerminator(tw_region_block(op, 0));
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(condition); i++)
    if (!tw_uniform_has(&s->uniform, mlirOperationGetOperand(condition, i)))
      return false;
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(tw_region_block(op, 0)); i++)
    if (!tw_uniform_has(&s->uniform, mlirBlockGetArgument(tw_region_block(op, 0), i)))
      return false;
  TW_EACH_OP(o, tw_region_block(op, 0))
    if (!is_terminator(o) && !is_shared(s, o))
      return false;
  return true;
}

static bool carries_much(MlirOperation op) {
  return mlirOperationGetNumResults(op) + TW_FOR_INITS > MOST_VALUES || mlirOperationGetNumOperands(op) > MOST_VALUES;
}

static bool can_cut(const split_t *s, MlirBlock block) {
  TW_EACH_OP(op, block) {
    if (!is_cut(s, op))
      continue;
    if (carries_much(op)) {
      tw_op_remark(op, "has threads that take turns: it has a barrier, and carries more than %d values",
                   MOST_VALUES - TW_FOR_INITS);
      return false;
    }
    if (!is_together(s, op))
      return false;
    for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++) {
      MlirBlock body = tw_region_block(op, r);
      if (!mlirBlockIsNull(body) && !can_cut(s, body))
        return false;
    }
  }
  return true;
}

/* ---- arrays with a place for each thread -------------------------------------------------------------------- */

static tw_builder_t here(split_t *s) { return tw_build_at_end(s->block, s->location); }

static MlirType i32_of(const split_t *s) { return mlirIntegerTypeGet(s->context, 32); }

static MlirValue array_of(split_t *s, MlirType element) {
  int64_t extent = MOST_THREADS;
  MlirAttribute space = mlirIntegerAttrGet(mlirIntegerTypeGet(s->context, 64), TW_SPACE_SHARED);
  MlirType type = mlirMemRefTypeGet(element, 1, &extent, mlirAttributeGetNull(), space);
  tw_builder_t at = tw_build_at_end(s->first, s->location);
  return tw_op1(&at, "tile.shared_array", type, 0, NULL);
}

static void save(split_t *s, MlirValue value) {
  if (!tw_map_get(&s->saved, value.ptr, NULL))
    tw_map_one(&s->saved, value, array_of(s, mlirValueGetType(value)));
}

static MlirAttribute segments(split_t *s, const int32_t sizes[4]) { return mlirDenseI32ArrayGet(s->context, 4, sizes); }

static MlirValue read_place(split_t *s, MlirValue array, MlirValue place) {
  MlirValue operands[2] = {array, place};
  tw_builder_t at = here(s);
  return tw_op1_attr(&at, "tile.gather", tw_element(mlirValueGetType(array)), 2, operands, "operandSegmentSizes",
                     segments(s, (int32_t[4]){1, 1, 0, 0}));
}

static void write_place(split_t *s, MlirValue value, MlirValue array, MlirValue place) {
  MlirValue operands[3] = {array, place, value};
  tw_attr_t attr = {"operandSegmentSizes", segments(s, (int32_t[4]){1, 1, 1, 0})};
  tw_builder_t at = here(s);
  tw_build(&at, "tile.scatter",
           (tw_op_parts_t){.num_operands = 3, .operands = operands, .num_attrs = 1, .attrs = &attr});
}

/* ---- what is read in another piece ---------------------------------------------------------------------------- */

static int piece_of(const split_t *s, MlirOperation op) { return tw_map_number(&s->pieces, (MlirValue){op.ptr}, -1); }

/* A value is read in a piece. */
static void need(split_t *s, MlirValue value, int piece) {
  MlirOperation def = tw_def(value);
  if (tw_uniform_has(&s->uniform, value) || mlirOperationIsNull(def) || piece_of(s, def) == piece ||
      tw_map_get(&s->saved, value.ptr, NULL))
    return;
  if (!is_cheap(def)) {
    s->failed |= mlirTypeIsAMemRef(mlirValueGetType(value)); /* a choice of arrays */
    if (!s->failed)
      save(s, value);
    return;
  }
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(def); i++)
    need(s, mlirOperationGetOperand(def, i), piece);
}

typedef struct {
  split_t *split;
  MlirOperation root;
  int piece;
} reader_t;

static MlirWalkResult need_operands(MlirOperation op, void *user) {
  const reader_t *r = user;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirValue value = mlirOperationGetOperand(op, i);
    MlirOperation def = tw_def(value);
    MlirOperation owner =
        mlirOperationIsNull(def) ? mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value)) : def;
    if (!tw_is_inside(owner, r->root))
      need(r->split, value, r->piece);
  }
  return MlirWalkResultAdvance;
}

static void number_block(split_t *s, MlirBlock block);

static void number_control(split_t *s, MlirOperation op) {
  s->number++;
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    if (!mlirBlockIsNull(tw_region_block(op, r))) {
      number_block(s, tw_region_block(op, r));
      s->number++;
    }
}

static void number_block(split_t *s, MlirBlock block) {
  TW_EACH_OP(op, block) {
    tw_map_set_number(&s->pieces, (MlirValue){op.ptr}, s->number);
    if (is_cut(s, op))
      number_control(s, op);
    else if (is_barrier(op))
      s->number++;
  }
}

/* The arrays of what a loop around pieces carries, or a branch gives, where it differs. */
static void save_carried(split_t *s, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++) {
    MlirValue result = mlirOperationGetResult(op, i);
    bool loop = tw_op_is(op, TW_SCF_FOR);
    MlirValue inside = loop ? tw_carried(op, i) : result;
    if (tw_uniform_has(&s->uniform, result) && tw_uniform_has(&s->uniform, inside))
      continue;
    save(s, result);
    if (loop)
      tw_map_one(&s->saved, inside, tw_map_value(&s->saved, result));
  }
}

static void need_block(split_t *s, MlirBlock block) {
  TW_EACH_OP(op, block) {
    reader_t reader = {s, op, piece_of(s, op)};
    if (is_cut(s, op)) {
      save_carried(s, op);
      if (is_uneven(s, op))
        save(s, mlirOperationGetOperand(op, 1));
      for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
        need(s, mlirOperationGetOperand(op, i), reader.piece);
      for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
        if (!mlirBlockIsNull(tw_region_block(op, r)))
          need_block(s, tw_region_block(op, r));
    } else if (is_barrier(op) && mlirOperationGetNumOperands(op) > 0) {
      if (!tw_uniform_has(&s->uniform, mlirOperationGetOperand(op, 0)))
        save(s, mlirOperationGetOperand(op, 0));
    } else if (!is_shared(s, op)) {
      mlirOperationWalk(op, need_operands, &reader, MlirWalkPreOrder);
    }
  }
}

/* ---- emitting ------------------------------------------------------------------------------------------------- */

static MlirValue value_of(split_t *s, MlirValue old);
static void emit(split_t *s, MlirOperation old);

static bool in_piece(const split_t *s) { return s->linear.ptr != NULL; }

static void set_value(split_t *s, MlirValue old, MlirValue new) {
  tw_map_one(in_piece(s) ? &s->own : &s->shared, old, new);
}

/* Computed again where it is read, or read back. */
static MlirValue value_of(split_t *s, MlirValue old) {
  const MlirValue *found = in_piece(s) ? tw_map_get(&s->own, old.ptr, NULL) : NULL;
  if (!found)
    found = tw_map_get(&s->shared, old.ptr, NULL);
  if (found)
    return *found;
  MlirOperation def = tw_def(old);
  MlirOperation owner = mlirOperationIsNull(def) ? mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(old)) : def;
  if (mlirOperationEqual(owner, s->func) || !tw_is_inside(owner, s->func)) /* a parameter, or of the tiles around it */
    return old;
  const MlirValue *array = tw_map_get(&s->saved, old.ptr, NULL);
  if (array && in_piece(s)) {
    MlirValue value = read_place(s, *array, s->linear);
    set_value(s, old, value);
    return value;
  }
  if (!mlirOperationIsNull(def) && mlirOperationGetNumRegions(def) == 0 && tw_op_has(def, TW_PURE)) {
    emit(s, def);
    return value_of(s, old);
  }
  s->failed = true; /* what another piece computes, and is not kept: the kernel stays as it is */
  return old;
}

typedef struct {
  split_t *split;
  MlirOperation old;
  tw_map_t map; /* what stands outside, new */
} outer_t;

static MlirWalkResult find_outer(MlirOperation op, void *user) {
  outer_t *o = user;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op) && !o->split->failed; i++) {
    MlirValue value = mlirOperationGetOperand(op, i);
    MlirOperation def = tw_def(value);
    MlirOperation owner =
        mlirOperationIsNull(def) ? mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value)) : def;
    if (!tw_is_inside(owner, o->old))
      tw_map_one(&o->map, value, value_of(o->split, value));
  }
  return MlirWalkResultAdvance;
}

static MlirWalkResult set_outer(MlirOperation op, void *user) {
  const outer_t *o = user;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    mlirOperationSetOperand(op, i, tw_map_value(&o->map, mlirOperationGetOperand(op, i)));
  return MlirWalkResultAdvance;
}

static bool is_place(MlirOperation op) {
  return tw_op_is(op, TW_TILE_THREAD_ID) || tw_op_is(op, TW_TILE_BLOCK_DIM) || tw_op_is(op, TW_TILE_LANE_ID);
}

/* The place of the thread that the loops have come to, or the extent of its block. */
static MlirValue place_of(split_t *s, MlirOperation op) {
  int64_t axis = tw_attr_int(op, "axis", 0) % 3;
  if (tw_op_is(op, TW_TILE_BLOCK_DIM))
    return s->dim[axis];
  if (!in_piece(s)) {
    s->failed = true;
    return mlirOperationGetResult(op, 0);
  }
  if (tw_op_is(op, TW_TILE_THREAD_ID))
    return s->id[axis];
  tw_builder_t at = here(s);
  return tw_binary(&at, "arith.andi", i32_of(s), s->linear, tw_const_int(&at, i32_of(s), CPU_WARP - 1));
}

/* Of the places that stand in the op's branches and loops. */
static void set_places(split_t *s, MlirOperation op) {
  tw_ops_t places = tw_ops_in(op, is_place, MlirWalkPreOrder);
  for (int i = 0; i < places.count; i++) {
    MlirValue place = place_of(s, places.at[i]);
    if (s->failed)
      break;
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(places.at[i], 0), place);
    mlirOperationDestroy(places.at[i]);
  }
  tw_ops_free(&places);
}

/* An op, with all that is in it, on new values. */
static void emit(split_t *s, MlirOperation old) {
  s->location = mlirOperationGetLocation(old);
  if (is_place(old)) {
    set_value(s, mlirOperationGetResult(old, 0), place_of(s, old));
    return;
  }
  outer_t outer = {.split = s, .old = old};
  mlirOperationWalk(old, find_outer, &outer, MlirWalkPreOrder);
  MlirOperation new = mlirOperationClone(old);
  mlirOperationWalk(new, set_outer, &outer, MlirWalkPreOrder);
  set_places(s, new);
  mlirBlockAppendOwnedOperation(s->block, new);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(old); i++)
    set_value(s, mlirOperationGetResult(old, i), mlirOperationGetResult(new, i));
  tw_map_free(&outer.map);
}

/* A loop from 0 that carries at most one value; between begin and end, ops go into the body. */
typedef struct {
  MlirBlock outer, body;
  MlirValue extent, init;
} thread_loop_t;

static MlirValue begin_loop(split_t *s, thread_loop_t *loop, MlirValue extent, MlirValue init) {
  MlirType types[2] = {i32_of(s), init.ptr ? mlirValueGetType(init) : i32_of(s)};
  MlirLocation locations[2] = {s->location, s->location};
  *loop = (thread_loop_t){s->block, mlirBlockCreate(init.ptr ? 2 : 1, types, locations), extent, init};
  s->block = loop->body;
  return mlirBlockGetArgument(loop->body, 0);
}

static MlirValue end_loop(split_t *s, thread_loop_t *loop, MlirValue next) {
  tw_builder_t at = here(s);
  tw_build(&at, "scf.yield", (tw_op_parts_t){.num_operands = next.ptr != NULL, .operands = &next});
  s->block = loop->outer;
  at = here(s);
  MlirType i32 = i32_of(s);
  MlirValue operands[4] = {tw_const_int(&at, i32, 0), loop->extent, tw_const_int(&at, i32, 1), loop->init};
  MlirOperation op = tw_build_for(&at, TW_FOR_INITS + (next.ptr != NULL), operands, tw_region_with(loop->body));
  tw_set_attr(op, TW_THREADS, mlirUnitAttrGet(s->context));
  return next.ptr ? mlirOperationGetResult(op, 0) : next;
}

static MlirValue number_of_thread(split_t *s) {
  tw_builder_t at = here(s);
  MlirType i32 = i32_of(s);
  MlirValue row = tw_binary(&at, "arith.addi", i32, tw_binary(&at, "arith.muli", i32, s->id[2], s->dim[1]), s->id[1]);
  return tw_binary(&at, "arith.addi", i32, tw_binary(&at, "arith.muli", i32, row, s->dim[0]), s->id[0]);
}

static void emit_piece(split_t *s, const kept_t *kept, int num) {
  for (int i = 0; i < s->piece.count; i++) {
    MlirOperation op = s->piece.at[i];
    emit(s, op);
    for (intptr_t r = 0; r < mlirOperationGetNumResults(op); r++) {
      MlirValue result = mlirOperationGetResult(op, r);
      const MlirValue *array = tw_map_get(&s->saved, result.ptr, NULL);
      if (array)
        write_place(s, value_of(s, result), *array, s->linear);
    }
  }
  MlirValue values[MOST_VALUES];
  for (int i = 0; i < num; i++) /* all of them, before one changes */
    values[i] = value_of(s, kept[i].value);
  for (int i = 0; i < num; i++)
    write_place(s, values[i], kept[i].array, s->linear);
}

static void begin_threads(split_t *s, thread_loop_t loops[3]) {
  for (int d = 2; d >= 0; d--)
    s->id[d] = begin_loop(s, &loops[d], s->dim[d], (MlirValue){NULL});
  s->linear = number_of_thread(s);
}

static void end_threads(split_t *s, thread_loop_t loops[3]) {
  for (int d = 0; d < 3; d++)
    end_loop(s, &loops[d], (MlirValue){NULL});
  s->linear = (MlirValue){NULL};
  s->piece.count = 0;
  tw_map_free(&s->own);
  s->own = (tw_map_t){0};
}

/* The piece as loops over threads, each of which keeps values behind it. */
static void end_piece(split_t *s, const kept_t *kept, int num) {
  thread_loop_t loops[3];
  if (s->piece.count == 0 && num == 0)
    return;
  begin_threads(s, loops);
  emit_piece(s, kept, num);
  end_threads(s, loops);
}

/* How many threads have a true predicate. */
static MlirValue count_true(split_t *s, MlirValue predicate) {
  const MlirValue *array = tw_map_get(&s->saved, predicate.ptr, NULL);
  tw_builder_t at = here(s);
  MlirValue zero = tw_const_int(&at, i32_of(s), 0);
  if (!array)
    return tw_select(&at, value_of(s, predicate), s->total, zero);
  thread_loop_t loop;
  MlirValue thread = begin_loop(s, &loop, s->total, zero);
  MlirValue one = read_place(s, *array, thread);
  at = here(s);
  one = tw_unary(&at, "arith.extui", i32_of(s), one);
  return end_loop(s, &loop, tw_binary(&at, "arith.addi", i32_of(s), mlirBlockGetArgument(loop.body, 1), one));
}

static void emit_vote(split_t *s, MlirOperation op) {
  int64_t kind = tw_attr_int(op, "kind", 0);
  MlirValue count = count_true(s, mlirOperationGetOperand(op, 0));
  tw_builder_t at = here(s);
  if (kind == TW_BLOCK_EVERY)
    count = tw_compare(&at, TW_EQ, count, s->total);
  else if (kind == TW_BLOCK_SOME)
    count = tw_compare(&at, TW_NE, count, tw_const_int(&at, i32_of(s), 0));
  tw_map_one(&s->shared, mlirOperationGetResult(op, 0), count);
}

static void emit_control(split_t *s, MlirOperation op);

/* Up to the terminator; the last piece is still open. */
static void emit_block(split_t *s, MlirBlock block) {
  for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(op) && !s->failed;
       op = mlirOperationGetNextInBlock(op)) {
    if (is_terminator(op))
      break;
    if (is_cut(s, op)) {
      emit_control(s, op);
    } else if (is_barrier(op)) {
      end_piece(s, NULL, 0);
      if (mlirOperationGetNumOperands(op) > 0)
        emit_vote(s, op);
    } else if (is_shared(s, op)) {
      emit(s, op);
    } else {
      tw_ops_add(&s->piece, op);
    }
  }
}

/* A region of control: its pieces, what differs kept for the op's results, the rest yielded. */
static MlirBlock emit_region(split_t *s, MlirOperation op, MlirBlock old, MlirBlock new) {
  MlirBlock outer = s->block;
  MlirOperation end = mlirBlockGetTerminator(old);
  kept_t kept[MOST_VALUES];
  MlirValue yields[MOST_VALUES];
  int num = 0, same = 0;
  s->block = new;
  emit_block(s, old);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(end); i++) {
    const MlirValue *array = tw_map_get(&s->saved, mlirOperationGetResult(op, i).ptr, NULL);
    if (array)
      kept[num++] = (kept_t){mlirOperationGetOperand(end, i), *array};
  }
  end_piece(s, kept, num);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(end) && !s->failed; i++)
    if (!tw_map_get(&s->saved, mlirOperationGetResult(op, i).ptr, NULL))
      yields[same++] = value_of(s, mlirOperationGetOperand(end, i));
  tw_builder_t at = here(s);
  tw_build(&at, "scf.yield", (tw_op_parts_t){.num_operands = same, .operands = yields});
  s->block = outer;
  return new;
}

static void build_control(split_t *s, MlirOperation op, int num_operands, const MlirValue *operands, int num_regions,
                          const MlirRegion *regions) {
  MlirType types[MOST_VALUES];
  intptr_t same[MOST_VALUES];
  int count = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    if (!tw_map_get(&s->saved, mlirOperationGetResult(op, i).ptr, NULL)) {
      types[count] = mlirValueGetType(mlirOperationGetResult(op, i));
      same[count++] = i;
    }
  tw_builder_t at = here(s);
  MlirOperation new = tw_build(&at, tw_op_row(op)->name,
                               (tw_op_parts_t){.num_operands = num_operands,
                                               .operands = operands,
                                               .num_results = count,
                                               .results = types,
                                               .num_regions = num_regions,
                                               .regions = regions});
  tw_copy_attrs(op, new);
  for (int i = 0; i < count; i++)
    tw_map_one(&s->shared, mlirOperationGetResult(op, same[i]), mlirOperationGetResult(new, i));
}

static void emit_if(split_t *s, MlirOperation op) {
  MlirValue condition = value_of(s, mlirOperationGetOperand(op, 0));
  MlirRegion regions[2];
  for (int r = 0; r < 2; r++) {
    MlirBlock old = tw_region_block(op, r);
    regions[r] = mlirBlockIsNull(old) ? mlirRegionCreate()
                                      : tw_region_with(emit_region(s, op, old, mlirBlockCreate(0, NULL, NULL)));
  }
  build_control(s, op, 1, &condition, 2, regions);
}

static void emit_for(split_t *s, MlirOperation op) {
  MlirType types[MOST_VALUES];
  MlirLocation locations[MOST_VALUES];
  MlirValue operands[MOST_VALUES], old[MOST_VALUES];
  int num = 0;
  old[num] = tw_loop_iv(op);
  types[num++] = mlirValueGetType(tw_loop_iv(op));
  for (int i = 0; i < TW_FOR_INITS; i++)
    operands[i] = value_of(s, mlirOperationGetOperand(op, i));
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    if (!tw_map_get(&s->saved, mlirOperationGetResult(op, i).ptr, NULL)) {
      operands[TW_FOR_INITS + num - 1] = value_of(s, tw_carried_init(op, i));
      old[num] = tw_carried(op, i);
      types[num++] = mlirValueGetType(tw_carried(op, i));
    }
  for (int i = 0; i < num; i++)
    locations[i] = s->location;
  MlirBlock body = mlirBlockCreate(num, types, locations);
  for (int i = 0; i < num; i++)
    tw_map_one(&s->shared, old[i], mlirBlockGetArgument(body, i));
  MlirRegion region = tw_region_with(emit_region(s, op, tw_loop_body(op), body));
  build_control(s, op, TW_FOR_INITS + num - 1, operands, 1, &region);
}

/* All that it carries is the same in all threads, and its first region is pure. */
static void emit_while(split_t *s, MlirOperation op) {
  MlirValue operands[MOST_VALUES];
  MlirBlock outer = s->block, blocks[2];
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    operands[i] = value_of(s, mlirOperationGetOperand(op, i));
  for (int r = 0; r < 2; r++) {
    MlirBlock old = tw_region_block(op, r);
    MlirType types[MOST_VALUES];
    MlirLocation locations[MOST_VALUES];
    intptr_t num = mlirBlockGetNumArguments(old);
    for (intptr_t i = 0; i < num; i++) {
      types[i] = mlirValueGetType(mlirBlockGetArgument(old, i));
      locations[i] = s->location;
    }
    blocks[r] = mlirBlockCreate(num, types, locations);
    for (intptr_t i = 0; i < num; i++)
      tw_map_one(&s->shared, mlirBlockGetArgument(old, i), mlirBlockGetArgument(blocks[r], i));
  }
  s->block = blocks[0];
  emit_block(s, tw_region_block(op, 0));
  emit(s, mlirBlockGetTerminator(tw_region_block(op, 0)));
  s->block = blocks[1];
  emit_block(s, tw_region_block(op, 1));
  end_piece(s, NULL, 0);
  emit(s, mlirBlockGetTerminator(tw_region_block(op, 1)));
  s->block = outer;
  MlirRegion regions[2] = {tw_region_with(blocks[0]), tw_region_with(blocks[1])};
  build_control(s, op, (int)mlirOperationGetNumOperands(op), operands, 2, regions);
}

/* ---- walks ---------------------------------------------------------------------------------------------------- */

/* The most rounds that a thread has. */
static MlirValue most_rounds(split_t *s, MlirOperation op) {
  MlirValue rounds = mlirOperationGetOperand(op, 1);
  MlirType type = mlirValueGetType(rounds), i32 = i32_of(s);
  int64_t one = 1;
  MlirAttribute space = mlirIntegerAttrGet(mlirIntegerTypeGet(s->context, 64), TW_SPACE_SHARED);
  tw_builder_t at = tw_build_at_end(s->first, s->location);
  MlirValue most =
      tw_op1(&at, "tile.shared_array", mlirMemRefTypeGet(type, 1, &one, mlirAttributeGetNull(), space), 0, NULL);
  at = here(s);
  MlirValue zero = tw_const_int(&at, i32, 0);
  write_place(s, tw_const_int(&at, type, 0), most, zero);
  thread_loop_t loops[3];
  begin_threads(s, loops);
  tw_attr_t attrs[5] = {{"kind", mlirIntegerAttrGet(i32, TW_ATOMIC_MAX)},
                        {"memory_order", mlirIntegerAttrGet(i32, TW_ORDER_RELAXED)},
                        {"memory_scope", mlirIntegerAttrGet(i32, TW_SCOPE_THREAD)},
                        {"operandSegmentSizes", mlirDenseI32ArrayGet(s->context, 5, (int32_t[5]){1, 1, 1, 0, 0})},
                        {"is_unsigned", mlirUnitAttrGet(s->context)}};
  MlirValue operands[3] = {most, zero, value_of(s, rounds)};
  at = here(s);
  tw_op1_attrs(&at, "tile.atomic", type, 3, operands, tw_has_attr(op, "unsignedCmp") ? 5 : 4, attrs);
  end_threads(s, loops);
  return read_place(s, most, zero);
}

/* Each thread of a round, if it has so many. */
static void emit_round(split_t *s, MlirOperation op, const kept_t *kept, int num) {
  thread_loop_t loops[3];
  begin_threads(s, loops);
  MlirValue round = value_of(s, tw_loop_iv(op)), rounds = value_of(s, mlirOperationGetOperand(op, 1));
  MlirBlock outer = s->block;
  tw_builder_t at = here(s);
  MlirValue has = tw_compare(&at, tw_has_attr(op, "unsignedCmp") ? TW_ULT : TW_SLT, round, rounds);
  s->block = mlirBlockCreate(0, NULL, NULL);
  emit_piece(s, kept, num);
  at = here(s);
  tw_build(&at, "scf.yield", (tw_op_parts_t){0});
  at = tw_build_at_end(outer, s->location);
  tw_build_if(&at, has, s->block, (MlirBlock){NULL});
  s->block = outer;
  end_threads(s, loops);
}

/* A loop whose rounds differ: as many as any thread has. What it carries lies in arrays. */
static void emit_walk(split_t *s, MlirOperation op) {
  MlirBlock old = tw_loop_body(op), outer = s->block;
  MlirOperation end = mlirBlockGetTerminator(old);
  MlirType type = mlirValueGetType(tw_loop_iv(op));
  kept_t kept[MOST_VALUES];
  int num = 0;
  MlirValue operands[TW_FOR_INITS] = {value_of(s, mlirOperationGetOperand(op, 0)), most_rounds(s, op),
                                      value_of(s, mlirOperationGetOperand(op, 2))};
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(end); i++)
    kept[num++] = (kept_t){mlirOperationGetOperand(end, i), tw_map_value(&s->saved, mlirOperationGetResult(op, i))};
  s->block = mlirBlockCreate(1, &type, &s->location);
  MlirBlock body = s->block;
  tw_map_one(&s->shared, tw_loop_iv(op), mlirBlockGetArgument(body, 0));
  emit_block(s, old);
  emit_round(s, op, kept, num);
  tw_builder_t at = here(s);
  tw_build(&at, "scf.yield", (tw_op_parts_t){0});
  s->block = outer;
  MlirRegion region = tw_region_with(body);
  build_control(s, op, TW_FOR_INITS, operands, 1, &region);
}

static void emit_control(split_t *s, MlirOperation op) {
  kept_t kept[MOST_VALUES];
  int num = 0;
  for (intptr_t i = 0; tw_op_is(op, TW_SCF_FOR) && i < mlirOperationGetNumResults(op); i++) {
    const MlirValue *array = tw_map_get(&s->saved, mlirOperationGetResult(op, i).ptr, NULL);
    if (array)
      kept[num++] = (kept_t){tw_carried_init(op, i), *array};
  }
  end_piece(s, kept, num);
  s->location = mlirOperationGetLocation(op);
  if (tw_op_is(op, TW_SCF_IF))
    emit_if(s, op);
  else if (is_uneven(s, op))
    emit_walk(s, op);
  else if (tw_op_is(op, TW_SCF_FOR))
    emit_for(s, op);
  else
    emit_while(s, op);
}

/* ---- the pass --------------------------------------------------------------------------------------------------- */

/* Whether the program says so, as by launch_bounds=1. */
static bool has_one_thread(MlirOperation func) { return tw_hint_most_threads(func, 0) == 1; }

static void make_dims(split_t *s) {
  MlirType i32 = i32_of(s);
  tw_builder_t at = here(s);
  bool of_tiles = tw_op_is(s->func, TW_TILE_THREADS), is_known = of_tiles || has_one_thread(s->func);
  for (int d = 0; d < 3; d++)
    s->dim[d] = is_known ? tw_const_int(&at, i32, of_tiles && d == 0 ? TILE_THREADS : 1)
                         : tw_op1_attr(&at, "tile.block_dim", i32, 0, NULL, "axis", mlirIntegerAttrGet(i32, d));
  s->total = tw_binary(&at, "arith.muli", i32, tw_binary(&at, "arith.muli", i32, s->dim[0], s->dim[1]), s->dim[2]);
}

static void append_all(MlirBlock to, MlirBlock from) {
  for (MlirOperation op = mlirBlockGetFirstOperation(from), next; !mlirOperationIsNull(op); op = next) {
    next = mlirOperationGetNextInBlock(op);
    mlirOperationRemoveFromParent(op);
    mlirBlockAppendOwnedOperation(to, op);
  }
  mlirBlockDestroy(from);
}

static void erase_all(MlirBlock block) {
  for (MlirOperation op = mlirBlockGetTerminator(block); !mlirOperationIsNull(op);) {
    mlirOperationDestroy(op);
    op = mlirBlockGetFirstOperation(block);
    for (MlirOperation next = op; !mlirOperationIsNull(next); next = mlirOperationGetNextInBlock(next))
      op = next;
  }
}

/* All pieces, in a block of their own behind s->first; a null block where they cannot be made. */
static MlirBlock make_pieces(split_t *s, MlirBlock body) {
  MlirBlock made = s->block;
  number_block(s, body);
  need_block(s, body);
  if (!s->failed)
    emit_block(s, body);
  if (!s->failed)
    end_piece(s, NULL, 0);
  if (!s->failed)
    return made;
  mlirBlockDestroy(made);
  mlirBlockDestroy(s->first);
  return (MlirBlock){NULL};
}

static void begin(split_t *s) {
  s->first = mlirBlockCreate(0, NULL, NULL);
  s->block = mlirBlockCreate(0, NULL, NULL);
  make_dims(s);
}

static void rebuild(split_t *s, MlirBlock body) {
  begin(s);
  MlirBlock made = make_pieces(s, body);
  if (mlirBlockIsNull(made))
    return;
  emit(s, mlirBlockGetTerminator(body));
  erase_all(body);
  append_all(body, s->first);
  append_all(body, made);
  tw_set_attr(s->func, TW_SPLIT, mlirUnitAttrGet(s->context));
}

/* Of a kernel whose lanes meet, what it was is kept in front of it, under another name. */
static void keep_unsplit(MlirOperation func, MlirOperation was) {
  MlirAttribute symbol = tw_name_behind(func, ".unsplit");
  tw_set_attr(was, "sym_name", symbol);
  mlirOperationRemoveAttributeByName(was, tw_str("tile.kernel"));
  tw_set_attr(func, TW_UNSPLIT, symbol);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(func), func, was);
}

static void release(split_t *s) {
  tw_map_free(&s->pieces);
  tw_map_free(&s->saved);
  tw_map_free(&s->shared);
  tw_map_free(&s->own);
  tw_ops_free(&s->piece);
  tw_uniform_free(&s->uniform);
}

/* ---- threads in a kernel of tiles ---------------------------------------------------------------------------- */

static int zeros_of(split_t *s, MlirType array, MlirValue *out) {
  tw_builder_t at = here(s);
  for (intptr_t d = 0; d < tw_rank(array); d++)
    out[d] = tw_const_int(&at, i32_of(s), 0);
  return (int)tw_rank(array);
}

/* Tile number i becomes the shared array that stands for it in the body. */
static void give_tile(split_t *s, MlirOperation op, intptr_t i) {
  MlirValue argument = mlirBlockGetArgument(tw_region_block(op, 0), i), operands[2 + TW_MAX_RANK];
  MlirType type = mlirValueGetType(argument);
  tw_builder_t at = here(s);
  operands[0] = tw_op1(&at, "tile.shared_array", type, 0, NULL);
  int rank = zeros_of(s, type, operands + 1);
  operands[1 + rank] = mlirOperationGetOperand(op, i);
  tw_build(&at, "tile.store", (tw_op_parts_t){.num_operands = rank + 2, .operands = operands});
  tw_map_one(&s->shared, argument, operands[0]);
}

static void take_tile(split_t *s, MlirOperation op, intptr_t i) {
  MlirValue result = mlirOperationGetResult(op, i), operands[1 + TW_MAX_RANK];
  operands[0] = tw_map_value(&s->shared, mlirBlockGetArgument(tw_region_block(op, 0), i));
  int rank = zeros_of(s, mlirValueGetType(operands[0]), operands + 1);
  tw_builder_t at = here(s);
  mlirValueReplaceAllUsesOfWith(result, tw_op1(&at, "tile.load", mlirValueGetType(result), rank + 1, operands));
}

static void put_before(MlirOperation op, MlirBlock from) {
  for (MlirOperation each; each = mlirBlockGetFirstOperation(from), !mlirOperationIsNull(each);) {
    mlirOperationRemoveFromParent(each);
    mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(op), op, each);
  }
  mlirBlockDestroy(from);
}

static void replace_body(split_t *s, MlirOperation op) {
  begin(s);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    give_tile(s, op, i);
  MlirBlock made = make_pieces(s, tw_region_block(op, 0));
  if (mlirBlockIsNull(made))
    return;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    take_tile(s, op, i);
  tw_set_attr(tw_function_of(op), TW_SPLIT, mlirUnitAttrGet(s->context));
  put_before(op, s->first);
  put_before(op, made);
  mlirOperationDestroy(op);
}

static void spread_arrays(split_t *s) {
  if (!tw_has_op_like(s->func, cpu_is_own_array))
    return;
  cpu_spread_arrays(s->func);
  tw_uniform_free(&s->uniform);
  tw_uniform_find(&s->uniform, s->func);
}

static bool has_body(MlirOperation op) { return tw_op_is(op, TW_TILE_THREADS); }

static void split_bodies(MlirOperation func) {
  tw_ops_t bodies = tw_ops_in(func, has_body, MlirWalkPreOrder);
  for (int i = 0; i < bodies.count; i++) {
    MlirOperation op = bodies.at[i];
    split_t s = {.context = mlirOperationGetContext(op), .location = mlirOperationGetLocation(op), .func = op};
    tw_uniform_find(&s.uniform, op);
    if (!tw_has_op_like(op, is_foreign) && can_cut(&s, tw_region_block(op, 0))) {
      spread_arrays(&s);
      replace_body(&s, op);
    }
    release(&s);
  }
  tw_ops_free(&bodies);
}

/* ---- all ------------------------------------------------------------------------------------------------------ */

static bool is_of_block(MlirOperation op) { return tw_op_is(op, TW_TILE_THREAD_ID) || tw_op_is(op, TW_TILE_BLOCK_DIM); }

/* Blocks of one thread: it is number 0. */
static void name_only_thread(MlirOperation func) {
  tw_ops_t ops = tw_ops_in(func, is_of_block, MlirWalkPreOrder);
  for (int i = 0; i < ops.count; i++) {
    MlirOperation op = ops.at[i];
    MlirValue result = mlirOperationGetResult(op, 0);
    tw_builder_t at = tw_build_before(op);
    mlirValueReplaceAllUsesOfWith(result, tw_const_int(&at, mlirValueGetType(result), tw_op_is(op, TW_TILE_BLOCK_DIM)));
    mlirOperationDestroy(op);
  }
  tw_ops_free(&ops);
}

static void split_threads(MlirOperation func) {
  if (!tw_has_attr(func, "tile.simt"))
    split_bodies(func);
  if (!tw_has_attr(func, "tile.kernel") || !tw_has_attr(func, "tile.simt") || tw_has_op_like(func, is_foreign))
    return;
  if (has_one_thread(func))
    name_only_thread(func);
  MlirBlock body = tw_region_block(func, 0);
  MlirOperation was = tw_has_op_like(func, cpu_is_of_warps) ? mlirOperationClone(func) : tw_null_op();
  split_t s = {.context = mlirOperationGetContext(func), .location = mlirOperationGetLocation(func), .func = func};
  tw_uniform_find(&s.uniform, func);
  if (can_cut(&s, body)) {
    spread_arrays(&s);
    rebuild(&s, body);
  }
  if (!mlirOperationIsNull(was) && tw_has_attr(func, TW_SPLIT))
    keep_unsplit(func, was);
  else if (!mlirOperationIsNull(was))
    mlirOperationDestroy(was);
  release(&s);
}

bool tw_run_split_threads(MlirOperation module) {
  MlirBlock body = tw_region_block(module, 0);
  TW_EACH_OP(op, body)
    if (tw_op_is(op, TW_FUNC_FUNC))
      split_threads(op);
  return true;
}
