/* cache_nests.c - in tile-cache-tiles: walks that are a loop in a loop
 *
 * Before: what a group norm reads, some channels with all of their pixels.
 *
 *   scf.for %c = 0 to 16 step 1 {
 *     scf.for %j = 0 to %n step 1 {
 *       %x = tile.load %X[%image, %c, %j]
 *       ...
 *
 * After: iteration j of c is number c * n + j of all, and the first of these have stages of a buffer. In no product is
 * a factor above the number of stages, so that none overflows.
 *
 *   scf.for %c = 0 to 16 step 1 {                       // starts the copies
 *     %first = min(%c, stages) * min(%n, stages) ; %kept = clamp(stages - %first, 0, %n)
 *     scf.for %j = 0 to %kept step 1 { tile.async_copy %X[%image, %c, %j] into %b[%first + %j] ; tile.async_commit }
 *   }
 *   scf.for %i = min(16 * min(%n, stages), stages) to stages step 1 { tile.async_commit }
 *
 *   scf.for %c = 0 to 16 step 1 {                       // each walk
 *     %first, %kept = (as above)
 *     scf.for %j = 0 to %kept step 1 { %x = tile.local_load %b[%first + %j] ... }
 *     scf.for %j = %kept to %fours step 4 {             // %fours = %kept + ((%n - %kept) & -4)
 *       %x0 = tile.load %X[%image, %c, %j] ; ... ; %x3 = tile.load %X[%image, %c, %j + 3]
 *       (as before, four times)
 *     }
 *     scf.for %j = %fours to %n step 1 { (as before) }
 *
 * Few blocks share a multiprocessor, so that what has no stage must have several tiles of a block under way.
 * cache_tiles.c decides what is kept, and builds the walks. */
#include "lowering/gpu/memory/cache_nests.h"

#include "base/memory.h"
#include "lowering/gpu/facts/barrier.h"
#include "lowering/loops.h"

#include <stdlib.h>

static bool is_int(MlirValue value, int64_t wanted) {
  int64_t known;
  return tw_known_int(value, &known) && known == wanted;
}

static MlirValue bound_of(MlirOperation loop) { return mlirOperationGetOperand(loop, 1); }

bool tw_is_walk(MlirOperation op) {
  return tw_op_is(op, TW_SCF_FOR) && is_int(mlirOperationGetOperand(op, 0), 0) &&
         is_int(mlirOperationGetOperand(op, 2), 1);
}

static bool is_32_bits(MlirOperation loop) {
  return mlirTypeEqual(mlirValueGetType(tw_loop_iv(loop)), tw_i32(mlirOperationGetContext(loop)));
}

bool tw_find_nest(MlirOperation op, tw_nest_t *out) {
  MlirOperation inner = tw_null_op();
  if (!tw_is_walk(op) || !is_32_bits(op))
    return false;
  TW_EACH_OP(in, tw_loop_body(op)) {
    if (mlirOperationGetNumRegions(in) == 0)
      continue;
    if (!mlirOperationIsNull(inner))
      return false;
    inner = in;
  }
  *out = (tw_nest_t){op, inner};
  return !mlirOperationIsNull(inner) && tw_is_walk(inner) && is_32_bits(inner) &&
         !tw_defined_in(bound_of(inner), tw_loop_body(op));
}

static bool same_bound(MlirOperation x, MlirOperation y) {
  int64_t known;
  return mlirValueEqual(bound_of(x), bound_of(y)) || (tw_known_int(bound_of(x), &known) && is_int(bound_of(y), known));
}

bool tw_are_nests_alike(tw_nest_t x, tw_nest_t y) {
  return same_bound(x.outer, y.outer) && same_bound(x.inner, y.inner);
}

/* Of a loop that has any. */
static int64_t least_trips(MlirOperation loop) {
  int64_t known;
  return tw_known_int(bound_of(loop), &known) && known > 1 ? known : 1;
}

int64_t tw_least_trips(tw_nest_t nest) { return least_trips(nest.outer) * least_trips(nest.inner); }

static MlirValue of_two(const tw_builder_t *at, const char *name, MlirValue x, MlirValue y) {
  return tw_binary(at, name, tw_i32(at->context), x, y);
}

static MlirValue constant(const tw_builder_t *at, int64_t number) {
  return tw_const_int(at, tw_i32(at->context), number);
}

static MlirValue at_most(const tw_builder_t *at, MlirValue x, int most) {
  return of_two(at, "arith.minsi", x, constant(at, most));
}

tw_stretch_t tw_stretch(const tw_builder_t *at, tw_nest_t nest, int stages, MlirValue number) {
  MlirValue trips = bound_of(nest.inner);
  MlirValue first = of_two(at, "arith.muli", at_most(at, number, stages), at_most(at, trips, stages));
  MlirValue left = of_two(at, "arith.subi", constant(at, stages), first);
  left = of_two(at, "arith.minsi", left, trips);
  return (tw_stretch_t){first, of_two(at, "arith.maxsi", left, constant(at, 0))};
}

/* A loop to a bound that carries nothing; where its ops go. */
static tw_builder_t loop_to(const tw_builder_t *at, MlirValue from, MlirValue bound, MlirValue *number) {
  MlirType i32 = tw_i32(at->context);
  MlirRegion region = mlirRegionCreate();
  MlirBlock body = mlirBlockCreate(1, &i32, &at->location);
  mlirRegionAppendOwnedBlock(region, body);
  MlirValue operands[] = {from, bound, constant(at, 1)};
  tw_build_for(at, 3, operands, region);
  *number = mlirBlockGetArgument(body, 0);
  return tw_build_at_end(body, at->location);
}

static void end_loop(const tw_builder_t *at) { tw_build(at, "scf.yield", (tw_op_parts_t){0}); }

void tw_start_nest(const tw_builder_t *at, tw_nest_t nest, int stages, tw_build_copies_t copy, void *user) {
  MlirValue outer, inner, rest;
  MlirValue zero = constant(at, 0), most = at_most(at, bound_of(nest.outer), stages);
  tw_builder_t out = loop_to(at, zero, most, &outer);
  tw_stretch_t stretch = tw_stretch(&out, nest, stages, outer);
  tw_builder_t in = loop_to(&out, constant(&out, 0), stretch.kept, &inner);
  copy(&in, user, outer, inner, of_two(&in, "arith.addi", stretch.first, inner));
  tw_build_commit(&in);
  end_loop(&in);
  end_loop(&out);
  MlirValue whole = of_two(at, "arith.muli", most, at_most(at, bound_of(nest.inner), stages));
  MlirValue started = of_two(at, "arith.maxsi", at_most(at, whole, stages), zero);
  tw_builder_t left = loop_to(at, started, constant(at, stages), &rest);
  tw_build_commit(&left);
  end_loop(&left);
}

/* ---- what has no stage --------------------------------------------------------------------------------- */

enum { FOUR = 4 };

static bool is_among(const tw_ops_t *ops, MlirOperation op) {
  for (int i = 0; i < ops->count; i++)
    if (mlirOperationEqual(ops->at[i], op))
      return true;
  return false;
}

/* The ops of an iteration but those loads. Its carried values go on to the next map. */
static void copy_iteration(const tw_builder_t *at, MlirOperation loop, const tw_ops_t *loads, tw_map_t *map) {
  TW_EACH_OP(op, tw_loop_body(loop))
    if (!is_among(loads, op) && !mlirOperationEqual(op, tw_loop_yield(loop)))
      tw_copy_op(at, op, map);
}

/* A body of four iterations. */
static MlirRegion build_four(MlirOperation loop, const tw_ops_t *loads) {
  intptr_t num = mlirOperationGetNumResults(loop);
  MlirBlock old = tw_loop_body(loop), body = mlirBlockCreate(0, NULL, NULL);
  MlirLocation location = mlirOperationGetLocation(loop);
  tw_builder_t at = tw_build_at_end(body, location);
  MlirValue iv = mlirBlockAddArgument(body, tw_i32(at.context), location);
  MlirValue *carried = tw_allocate((size_t)num, sizeof *carried);
  tw_map_t maps[FOUR] = {{0}};
  for (intptr_t i = 0; i < num; i++)
    carried[i] = mlirBlockAddArgument(body, mlirValueGetType(tw_carried(loop, i)), location);
  for (int k = 0; k < FOUR; k++) {
    tw_map_one(&maps[k], tw_loop_iv(loop), of_two(&at, "arith.addi", iv, constant(&at, k)));
    for (int i = 0; i < loads->count; i++)
      (void)tw_copy_slice(&at, mlirOperationGetResult(loads->at[i], 0), old, &maps[k]);
  }
  for (int k = 0; k < FOUR; k++) {
    for (intptr_t i = 0; i < num; i++)
      tw_map_one(&maps[k], tw_carried(loop, i), carried[i]);
    copy_iteration(&at, loop, loads, &maps[k]);
    for (intptr_t i = 0; i < num; i++)
      carried[i] = tw_map_value(&maps[k], tw_carried_next(loop, i));
    tw_map_free(&maps[k]);
  }
  tw_build(&at, "scf.yield", (tw_op_parts_t){.num_operands = num, .operands = carried});
  free(carried);
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, body);
  return region;
}

void tw_load_in_fours(MlirOperation loop, const tw_ops_t *loads) {
  tw_builder_t at = tw_build_before(loop);
  intptr_t num = mlirOperationGetNumResults(loop);
  MlirValue from = mlirOperationGetOperand(loop, 0);
  MlirValue many = of_two(&at, "arith.subi", bound_of(loop), from);
  many = of_two(&at, "arith.maxsi", of_two(&at, "arith.andi", many, constant(&at, -FOUR)), constant(&at, 0));
  MlirValue *operands = tw_allocate((size_t)(TW_FOR_INITS + num), sizeof *operands);
  operands[0] = from;
  operands[1] = of_two(&at, "arith.addi", from, many);
  operands[2] = constant(&at, FOUR);
  for (intptr_t i = 0; i < num; i++)
    operands[TW_FOR_INITS + i] = tw_carried_init(loop, i);
  MlirOperation four = tw_build_for(&at, TW_FOR_INITS + num, operands, build_four(loop, loads));
  mlirOperationSetOperand(loop, 0, operands[1]);
  for (intptr_t i = 0; i < num; i++)
    mlirOperationSetOperand(loop, TW_FOR_INITS + i, mlirOperationGetResult(four, i));
  free(operands);
}
