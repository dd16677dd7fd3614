/* split_k.c - tile-split-k: blocks share a tile's sum over k where there are fewer tiles than multiprocessors
 *
 * Before, a block has all of k; here within the loop over blocks of a persistent kernel:
 *
 *   func.func @k(%A: ..., %x: i32, %y: i32, %z: i32) {
 *     scf.for %v = %first to %total step %step {
 *       %i, %j = position number %v in the raster
 *       %sum = scf.for %k = %lo to %hi step 1 iter_args(%acc = %zero) { ... tile.mma ..., %acc ... }
 *       %t = arith.truncf %sum
 *       tile.store %t, %C[%i, %j]
 *     } {tile.persistent}
 *
 * After, the first %whole tiles are computed as before, and %parts blocks share each of the others. Each leaves its
 * sums in %workspace, and the last one to come adds up those of all, in the order of the parts, and goes on:
 *
 *   func.func @k(%A: ..., %x: i32, %y: i32, %z: i32, %parts: i32, %whole: i32, %workspace: i64) {
 *     scf.for %w = %first to %whole + (%total - %whole) * %parts step %step {
 *       %v, %slot, %part, %of = (%w, ?, 0, 1) if %w < %whole, else
 *                               (%whole + %slot, (%w - %whole) / %parts, (%w - %whole) % %parts, %parts)
 *       %i, %j = position number %v in the raster
 *       %some = scf.for %k = %lo + (a part's first step) to (its last) step 1 iter_args(%acc = %zero) ...
 *       %sum, %last = tile.sum_parts %some part %part of %of in %workspace[%slot]
 *       scf.if %last {
 *         %t = arith.truncf %sum
 *         tile.store %t, %C[%i, %j]
 *       }
 *     } {tile.persistent}
 *
 * A kernel that is not persistent gets the extents of the grid as arguments, too, and finds its position from the
 * number of the block: the launcher starts all parts along one axis.
 *
 * How many parts is decided at each launch (runtime/split.c), since only there the extents are known; the record says
 * what it takes: `split` (the word of the extent of k, or -1; how much of it a step takes; the number of steps
 * where it is a constant; cycles that a step takes, and bytes; the number of parts where the hint `split_k` gives one,
 * else 0; the bytes of a part), and `loaded` (step_cost.h). Most launches have tiles enough, and the code costs time to
 * assemble: so a module without the hint gets these facts only, and the first launch that would have tiles shared has
 * the kernel compiled again, with split_k = 0. The record of shared tiles has split_applied.
 *
 * What must hold: one loop with products in the block, all that it carries are sums of products from zero, its step
 * is 1 and its bounds are known at the launch (unless the hint asks for parts). Before and in it nothing is written,
 * printed or asserted, for the parts repeat that. What comes behind it is done by one block, when all parts have read
 * what they read. Runs after tile-persistent-loop and before layouts. */
#include "dialect/layouts.h"
#include "lowering/divide.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/grid/raster.h"
#include "lowering/gpu/grid/step_cost.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"
#include "lowering/passes.h"

enum { MAX_SUMS = 8 };

typedef struct {
  MlirOperation func, loop;             /* the one over k */
  MlirOperation blocks;                 /* the one over blocks; null in a kernel that is not persistent */
  MlirBlock block;                      /* what is done for one tile */
  int64_t flop_cycles, computed, bytes; /* of an iteration; elements that threads compute */
  bool waits;                           /* products are done by the warps that make their operands */
  tw_steps_t steps;
} splitter_t;

/* ---- what can be split ------------------------------------------------------------------------- */

static bool is_harmful(MlirOperation op) {
  bool harmless = tw_is_arithmetic(op) || tw_op_form(op) == TW_FORM_CONTROL || tw_op_loads(op) ||
                  tw_op_is_product(op) || tw_op_is(op, TW_TILE_BLOCK_ID) || tw_op_is(op, TW_TILE_NUM_BLOCKS);
  return !harmless || tw_op_is(op, TW_SCF_WHILE);
}

static const char *why_not(splitter_t *s) {
  enum { SMALLEST_BITS = 16 };
  int64_t step;
  s->loop = tw_null_op();
  bool harmless = true;
  for (MlirOperation op = mlirBlockGetFirstOperation(s->block); mlirOperationIsNull(s->loop);
       op = mlirOperationGetNextInBlock(op)) {
    if (mlirOperationIsNull(op))
      return "it has no loop with products";
    harmless = harmless && !tw_has_op_like(op, is_harmful);
    if (tw_has_op_like(op, tw_op_is_product))
      s->loop = op;
  }
  if (!tw_op_is(s->loop, TW_SCF_FOR))
    return "its first product is in no loop over numbers";
  if (!harmless)
    return "it writes, prints, asserts or waits before its sums are complete";
  for (MlirOperation op = mlirOperationGetNextInBlock(s->loop); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    if (tw_has_op_like(op, tw_op_is_product))
      return "it has products behind the loop";
  if (tw_has_attr(s->loop, "unsignedCmp") || !tw_known_int(mlirOperationGetOperand(s->loop, 2), &step) || step != 1)
    return "the loop's step is not 1";
  intptr_t num = mlirOperationGetNumResults(s->loop);
  if (num == 0 || num > MAX_SUMS)
    return "the loop carries nothing, or too much";
  for (intptr_t i = 0; i < num; i++)
    if (!tw_sums_products(s->loop, i) || tw_bits(mlirValueGetType(tw_carried(s->loop, i))) < SMALLEST_BITS)
      return "the loop carries something else than sums of products from zero";
  return NULL;
}

/* ---- what the launcher decides by ---------------------------------------------------------------- */

static MlirWalkResult count_cycles(MlirOperation op, void *user) {
  splitter_t *s = user;
  s->computed += tw_computed_elements(op);
  if (tw_op_is_product(op)) {
    s->flop_cycles += tw_mma_cycles(op);
    s->waits |= !tw_is_async_mma(op);
  } else if (tw_op_loads(op)) {
    MlirType tile = mlirValueGetType(mlirOperationGetResult(op, 0));
    s->bytes += tw_count(tile) * tw_memory_bits(tw_element(tile)) / 8;
  }
  return MlirWalkResultAdvance;
}

/* ---- rewriting --------------------------------------------------------------------------------- */

static MlirValue binary(const tw_builder_t *at, const char *name, MlirValue x, MlirValue y) {
  return tw_binary(at, name, mlirValueGetType(x), x, y);
}

/* What the launcher passes, and where a block stands. All are i32 but the workspace. */
typedef struct {
  MlirValue parts, whole, workspace;
  tw_divisor_t by_parts;
  MlirValue is_whole, slot, part, of;
} share_t;

/* How many numbers there are for `total` tiles. */
static MlirValue count_numbers(const tw_builder_t *at, const share_t *share, MlirValue total) {
  MlirValue shared = binary(at, "arith.subi", total, share->whole);
  return binary(at, "arith.addi", share->whole, binary(at, "arith.muli", shared, share->parts));
}

/* The tile that a number stands for. */
static MlirValue find_tile(const tw_builder_t *at, share_t *share, MlirValue number) {
  MlirType i32 = tw_i32(at->context);
  MlirValue part;
  share->is_whole = tw_compare(at, TW_SLT, number, share->whole);
  tw_divide(at, binary(at, "arith.subi", number, share->whole), share->by_parts, &share->slot, &part);
  share->part = tw_select(at, share->is_whole, tw_const_int(at, i32, 0), part);
  share->of = tw_select(at, share->is_whole, tw_const_int(at, i32, 1), share->parts);
  return tw_select(at, share->is_whole, number, binary(at, "arith.addi", share->whole, share->slot));
}

static share_t add_share_words(splitter_t *s) {
  MlirContext context = mlirOperationGetContext(s->func);
  MlirType types[] = {tw_i32(context), tw_i32(context), tw_i64(context)};
  MlirValue words[3];
  tw_add_words(s->func, 3, types, words);
  return (share_t){.parts = words[0], .whole = words[1], .workspace = words[2]};
}

/* The loop over blocks runs over numbers of parts. */
static share_t share_persistent(splitter_t *s) {
  share_t share = add_share_words(s);
  tw_builder_t at = tw_build_before(s->blocks), in = tw_build_before(mlirBlockGetFirstOperation(s->block));
  at.location = in.location = mlirOperationGetLocation(s->func);
  share.by_parts = tw_divisor_of(&at, share.parts);
  mlirOperationSetOperand(s->blocks, 1, count_numbers(&at, &share, mlirOperationGetOperand(s->blocks, 1)));
  MlirValue number = tw_loop_iv(s->blocks), stand_in = tw_const_int(&in, tw_i32(in.context), 0);
  mlirValueReplaceAllUsesOfWith(number, stand_in);
  MlirValue tile = find_tile(&in, &share, number);
  mlirValueReplaceAllUsesOfWith(stand_in, tile);
  mlirOperationDestroy(tw_def(stand_in));
  return share;
}

/* Blocks find their positions from their numbers. */
static share_t share_plain(splitter_t *s) {
  static const tw_raster_t in_order = {.rows = 0, .columns = 1, .slices = 2};
  MlirValue extents[TW_GRID_AXES], position[TW_GRID_AXES];
  tw_ops_t ids = tw_grid_ids_in(s->func);
  tw_add_grid_extents(s->func, extents);
  share_t share = add_share_words(s);
  tw_builder_t at = tw_build_before(mlirBlockGetFirstOperation(s->block));
  at.location = mlirOperationGetLocation(s->func);
  share.by_parts = tw_divisor_of(&at, share.parts);
  MlirValue tile = find_tile(&at, &share, tw_grid_op(&at, "tile.block_id", 0));
  tw_raster_code_t code = tw_raster_prepare(&at, &in_order, extents);
  tw_raster_decode(&at, &code, tile, position);
  tw_grid_replace_ids(&ids, position, extents);
  tw_ops_free(&ids);
  return share;
}

/* A part's steps: as many as the others have, or one more. */
static void bound_loop(splitter_t *s, const share_t *share) {
  tw_builder_t at = tw_build_before(s->loop);
  MlirValue lower = mlirOperationGetOperand(s->loop, 0), upper = mlirOperationGetOperand(s->loop, 1), each, rest;
  MlirType type = mlirValueGetType(lower);
  MlirValue steps = binary(&at, "arith.maxsi", binary(&at, "arith.subi", upper, lower), tw_const_int(&at, type, 0));
  tw_divide(&at, steps, share->by_parts, &each, &rest);
  MlirValue before = binary(&at, "arith.addi", binary(&at, "arith.muli", share->part, each),
                            binary(&at, "arith.minsi", share->part, rest));
  MlirValue longer = tw_unary(&at, "arith.extui", type, tw_compare(&at, TW_SLT, share->part, rest));
  MlirValue first = binary(&at, "arith.addi", lower, before);
  MlirValue end = binary(&at, "arith.addi", first, binary(&at, "arith.addi", each, longer));
  mlirOperationSetOperand(s->loop, 0, tw_select(&at, share->is_whole, lower, first));
  mlirOperationSetOperand(s->loop, 1, tw_select(&at, share->is_whole, upper, end));
}

/* Behind the loop: the sums of all parts, and what is done with them. */
static void finish(splitter_t *s, const share_t *share) {
  MlirOperation next = mlirOperationGetNextInBlock(s->loop), end = mlirBlockGetTerminator(s->block);
  intptr_t num = mlirOperationGetNumResults(s->loop);
  MlirValue operands[MAX_SUMS + 4];
  MlirType types[MAX_SUMS + 1];
  tw_builder_t at = tw_build_before(next);
  at.location = mlirOperationGetLocation(s->loop);
  for (intptr_t i = 0; i < num; i++) {
    operands[i] = mlirOperationGetResult(s->loop, i);
    types[i] = mlirValueGetType(operands[i]);
  }
  operands[num] = share->part;
  operands[num + 1] = share->of;
  operands[num + 2] = share->workspace;
  operands[num + 3] = share->slot;
  types[num] = mlirIntegerTypeGet(at.context, 1);
  MlirOperation sum = tw_build(
      &at, "tile.sum_parts",
      (tw_op_parts_t){.num_operands = num + 4, .operands = operands, .num_results = num + 1, .results = types});
  for (intptr_t i = 0; i < num; i++)
    mlirValueReplaceAllUsesExcept(operands[i], mlirOperationGetResult(sum, i), 1, &sum);
  tw_builder_t last = tw_build_guard(&at, mlirOperationGetResult(sum, num));
  for (MlirOperation op = next; !mlirOperationEqual(op, end); op = next) {
    next = mlirOperationGetNextInBlock(op);
    mlirOperationMoveBefore(op, last.before);
  }
}

/* Of all sums of a block. */
static int64_t part_bytes(const splitter_t *s) {
  int64_t bytes = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(s->loop); i++) {
    MlirType sum = mlirValueGetType(mlirOperationGetResult(s->loop, i));
    bytes += tw_count(sum) * tw_memory_bits(tw_element(sum)) / 8;
  }
  return bytes;
}

static void record_launch(splitter_t *s, int64_t forced) {
  mlirOperationWalk(s->loop, count_cycles, s, MlirWalkPreOrder);
  int64_t computing = tw_computing_cycles(s->func, s->computed, tw_num_warps(s->func, 1));
  int64_t cycles = s->flop_cycles + (s->waits || tw_computes_operands(s->loop) ? computing : 0);
  tw_split_t split = {.loop = s->steps,
                      .step_cycles = tw_step_cycles(s->func, cycles, s->bytes),
                      .step_bytes = s->bytes,
                      .forced = forced,
                      .part_bytes = part_bytes(s)};
  tw_record_loaded(s->func, s->loop);
  tw_launch_set_split(s->func, &split);
}

static void rewrite(splitter_t *s) {
  share_t share = mlirOperationIsNull(s->blocks) ? share_plain(s) : share_persistent(s);
  bound_loop(s, &share);
  finish(s, &share);
  tw_launch_set_split_applied(s->func, true);
}

/* ---- the decision ------------------------------------------------------------------------------ */

static MlirWalkResult find_blocks(MlirOperation op, void *user) {
  splitter_t *s = user;
  if (tw_op_is(op, TW_SCF_FOR) && tw_has_attr(op, TW_PERSISTENT))
    s->blocks = op;
  return MlirWalkResultAdvance;
}

bool tw_run_split_k(MlirOperation func) {
  splitter_t s = {.func = func};
  int64_t forced = tw_hint_split_k(func, 0);
  if (!tw_is_of_tiles(func) || forced == 1 || !tw_has_op_like(func, tw_op_is_product))
    return true;
  mlirOperationWalk(func, find_blocks, &s, MlirWalkPreOrder);
  s.block = tw_region_block(mlirOperationIsNull(s.blocks) ? func : s.blocks, 0);
  const char *reason = why_not(&s);
  bool known = reason == NULL && tw_steps_of(func, s.loop, &s.steps);
  if (reason == NULL && !known && forced == 0)
    reason = "how often the loop runs is not known at the launch";
  if (reason == NULL && !mlirOperationIsNull(s.blocks) && tw_has_attr(s.blocks, TW_DYNAMIC_SCHEDULE))
    reason = "its blocks are scheduled dynamically";
  if (reason) {
    tw_op_remark(func, "computes each sum over k in one block: %s", reason);
    return true;
  }
  tw_op_remark(s.loop, "is split along k over several blocks where a launch has fewer tiles than multiprocessors");
  record_launch(&s, forced);
  if (tw_has_hint_split_k(func))
    rewrite(&s);
  return true;
}
