/* prefetch_loads.c - tile-prefetch-loads: small tiles are loaded one iteration early
 *
 * Before, what each iteration needs few registers of (scales, row sums) comes when it is needed, and the product, or
 * what is made of it, waits for memory; so does a walk along rows that reduces each tile, whose threads meet twice an
 * iteration and have nothing under way meanwhile:
 *
 *   %r = scf.for %k = %lb to %ub step %c iter_args(%acc = %zero) {
 *     %s = tile.load %S[%i, %k]                                   // 128x1xf32
 *     %d = tile.async_mma ... ; %w = tile.mma_wait %d, 0
 *     ... %w * %s ...
 *   }
 *
 * After, the loop carries the tile:
 *
 *   %first = tile.load %S[%i, %lb]
 *   %r = scf.for %k = %lb to %ub step %c iter_args(%acc = %zero, %s = %first) {
 *     %d = tile.async_mma ... ; %w = tile.mma_wait %d, 0
 *     ... %w * %s ...
 *     %next = tile.load %S[%i, %k + %c]
 *     yield ..., %next
 *   }
 *
 * The last iteration loads one tile too many. Nothing reads it, and outside of the array a load touches no memory, for
 * it checks bounds even where the program said that it need not. It stands behind the last use of the tile before,
 * whose registers it takes: else the assembler moves it there, and waits for it to do so, between the instructions of
 * the product. Where a view is read beside a product, such as a broadcast of it, which may be behind the wait, numbers
 * move to other registers first, and the load has all of the iteration:
 *
 *     %t = tile.settle %s ; %next = tile.load %S[%i, %k + %c]
 *     %d = tile.async_mma ... ; %w = tile.mma_wait %d, 0
 *     ... %w * %t ...
 *
 * Where one of them is read behind that wait, those that are not stay where they are until their last reader, for the
 * product will come first.
 *
 * What must hold: the loop has a product, a reduction or a scan, and its next number is known, as it is not where
 * blocks are scheduled dynamically; it writes to no array that the load may read (of two arrays it is assumed that they
 * share no memory: aliasing.h); the load's position follows from the induction variable by arithmetic; a thread has few
 * words of it; and a gather checks its indices. Runs when layouts are known, after tile-promote-memory, which has taken
 * the operands of products. What only the positions of copies need is left to tile-pipeline, unless a producer warp
 * does these. */
#include "dialect/layouts.h"
#include "lowering/aliasing.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/alive.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/facts/same_tile.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/gpu/memory/batch_loads.h"
#include "lowering/gpu/memory/cache_tiles.h"
#include "lowering/gpu/memory/share_iterations.h"
#include "lowering/gpu/memory/stage_vectors.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"
#include "lowering/passes.h"

enum {
  MOST_TILES = 8 /* of the largest size */
};

/* ---- which loops and loads --------------------------------------------------------------------------- */

static bool is_safe_load(MlirOperation op) {
  return tw_op_loads(op) && (tw_op_has(op, TW_BY_TILE) || tw_has_attr(op, "check_bounds"));
}

/* Whether it adds up or scans tiles, and computes no products. */
static bool only_combines(MlirBlock body) {
  bool combines = false;
  TW_EACH_OP(op, body)
    combines |= tw_op_combines(op);
  return combines && mlirOperationIsNull(tw_first_op(body, tw_op_is_product));
}

/* The words that a thread may have of a tile that comes early. */
static int64_t most_words(MlirBlock body) {
  MlirOperation loop = mlirBlockGetParentOperation(body);
  if (!mlirOperationIsNull(tw_first_op(body, tw_op_is_async_product)))
    return tw_register_budget(loop, TW_BUDGET_PREFETCH_BESIDE_MMA);
  return only_combines(body) ? tw_register_budget(loop, TW_BUDGET_PREFETCH) : 0;
}

static int64_t words_of(MlirType type) {
  int registers = tw_register_count(type);
  return registers < 0 ? INT64_MAX : (registers * (int64_t)tw_memory_bits(tw_element(type)) + 31) / 32;
}

/* Whether the position is arithmetic on the induction variable, and moves with it. */
static bool follows_induction(MlirOperation loop, MlirOperation load) {
  MlirBlock body = tw_loop_body(loop);
  tw_slice_t slice = {.block = body};
  tw_slice_add_op(&slice, load);
  bool ok = tw_slice_reads(&slice, tw_loop_iv(loop));
  for (intptr_t i = 0; i < mlirOperationGetNumResults(loop); i++)
    ok = ok && !tw_slice_reads(&slice, tw_carried(loop, i));
  for (MlirOperation op = mlirBlockGetFirstOperation(body); ok && !mlirOperationEqual(op, load);
       op = mlirOperationGetNextInBlock(op))
    ok = !tw_slice_has(&slice, op) || (tw_is_arithmetic(op) && mlirOperationGetNumRegions(op) == 0);
  tw_slice_free(&slice);
  return ok;
}

/* The last op of the loop's body that reads a value, or holds one that does. */
static MlirOperation last_user(MlirBlock body, MlirValue value) {
  MlirOperation last = tw_null_op();
  TW_EACH_USE(use, value) {
    MlirOperation user = tw_ancestor_in(mlirOpOperandGetOwner(use), body);
    if (mlirOperationIsNull(last) || mlirOperationIsBeforeInBlock(last, user))
      last = user;
  }
  return last;
}

/* The last op of the body for which the value, or a view of it, is computed with. */
static MlirOperation last_reader(MlirBlock body, MlirValue value) {
  MlirOperation last = tw_null_op();
  TW_EACH_USE(use, value) {
    MlirOperation user = mlirOpOperandGetOwner(use), reader = tw_ancestor_in(user, body);
    bool views = tw_op_form(user) == TW_FORM_VIEW || tw_op_is(user, TW_TENSOR_SPLAT);
    if (views && !tw_is_unused(mlirOperationGetResult(user, 0)))
      reader = last_reader(body, mlirOperationGetResult(user, 0));
    if (mlirOperationIsNull(last) || mlirOperationIsBeforeInBlock(last, reader))
      last = reader;
  }
  return last;
}

/* Whether a number that is multiplied, of f32, is read through views beside a product. To load the next one behind that
 * reader would be late; in front of it, it takes other registers, which would be moved at the end of the iteration, and
 * waited for. */
static bool is_read_late(MlirBlock body, MlirValue value, MlirOperation last) {
  return mlirTypeIsAF32(tw_element(mlirValueGetType(value))) && !mlirOperationEqual(last_reader(body, value), last) &&
         !mlirOperationIsNull(tw_first_op(body, tw_op_waits_for_products));
}

/* Whether such a number is read behind the wait for a product. */
static bool is_read_behind(MlirBlock body, MlirValue value) {
  MlirOperation wait = tw_first_op(body, tw_op_waits_for_products);
  return is_read_late(body, value, last_user(body, value)) &&
         mlirOperationIsBeforeInBlock(wait, last_reader(body, value));
}

/* ---- room in registers ------------------------------------------------------------------------------- */

static int64_t words_taken(MlirValue value) {
  MlirType type = mlirValueGetType(value);
  return tw_is_tile(type) ? words_of(type) : 1;
}

/* Words of the tiles that the loop reads, and that stand in front of it. */
static int64_t words_kept(MlirBlock body) {
  tw_map_t seen = {0};
  int64_t words = 0;
  TW_EACH_OP(op, body)
    for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
      MlirValue value = mlirOperationGetOperand(op, i);
      if (tw_defined_in(value, body) || !tw_is_tile(mlirValueGetType(value)) || tw_map_get(&seen, value.ptr, NULL))
        continue;
      tw_map_one(&seen, value, value);
      MlirOperation def = tw_def(value);
      words += !mlirOperationIsNull(def) && tw_is_constant(def) ? 0 : words_of(mlirValueGetType(value));
    }
  tw_map_free(&seen);
  return words;
}

/* Whether a thread has registers for some more words all the iteration: blocks that the program wants side by side
 * share them. */
static bool has_room(MlirBlock body, int64_t words) {
  enum { ADDRESSES = 48 /* and all else that is no tile */ };
  MlirOperation loop = mlirBlockGetParentOperation(body);
  int64_t threads = tw_num_warps(loop, 1) * TW_WARP_LANES * tw_hint_occupancy(loop, 1);
  int64_t most = tw_gpu_target_of(loop).registers_sm / threads,
          limit = tw_gpu_target_of(loop).machine->thread_registers;
  return tw_most_alive(body, words_taken) + words_kept(body) + words + ADDRESSES <= (most < limit ? most : limit);
}

/* Whether a tile of a loop that reduces is read behind a store, or behind all reductions: to load the next one behind
 * that reader leaves nothing of the iteration to run beside the load. Of f32, which no reader widens; pairs of 16 bits
 * are not moved. */
static bool is_read_at_end(MlirBlock body, MlirValue tile, MlirOperation last) {
  if (!only_combines(body) || !mlirTypeIsAF32(tw_element(mlirValueGetType(tile))))
    return false;
  MlirOperation sum = tw_null_op();
  bool stores = false;
  TW_EACH_OP(op, body) {
    if (mlirOperationEqual(op, last))
      break;
    stores |= tw_stores_to_array(op);
  }
  TW_EACH_OP(op, body)
    sum = tw_op_combines(op) ? op : sum;
  return stores || mlirOperationIsBeforeInBlock(sum, last);
}

/* Whether copies that tile-pipeline issues ahead need it for their positions: it loads such tiles early itself. */
static bool is_of_copies(MlirOperation loop, MlirOperation load) {
  tw_slice_t slice = {.block = tw_loop_body(loop)};
  TW_EACH_OP(op, slice.block)
    if (tw_is_async_copy(op))
      tw_slice_add_op(&slice, op);
  bool found = tw_slice_has(&slice, load);
  tw_slice_free(&slice);
  return found && !tw_gathers_beside(tw_num_warps(load, 0));
}

typedef struct {
  MlirOperation loop, load;
} early_load_t;

static bool may_write(MlirOperation op, const void *user) {
  const early_load_t *early = user;
  intptr_t first;
  if (mlirOperationGetNumRegions(op) > 0)
    return false;
  if (!tw_stores_to_array(op))
    return tw_may_write_arrays(op);
  return !tw_assume_unwritten(mlirOperationGetOperand(early->load, 0), tw_access_array(op, &first),
                              tw_reads_before(early->load, op, early->loop));
}

/* Whether the load finds the same an iteration early. */
static bool reads_constant(MlirOperation loop, MlirOperation load) {
  return mlirOperationIsNull(tw_find_op(loop, may_write, &(early_load_t){loop, load}));
}

static bool is_early(MlirOperation loop, MlirOperation op, int64_t most) {
  if (!is_safe_load(op) || is_of_copies(loop, op) || (tw_op_loads_tile(op) && tw_is_kept(op)) ||
      words_of(mlirValueGetType(mlirOperationGetResult(op, 0))) > most)
    return false;
  MlirOperation last = last_user(tw_loop_body(loop), mlirOperationGetResult(op, 0));
  return !mlirOperationIsNull(last) && !tw_op_is(last, TW_SCF_YIELD) && follows_induction(loop, op) &&
         reads_constant(loop, op);
}

/* ---- rewriting --------------------------------------------------------------------------------------- */

/* The load as the iteration at `iv` has it. */
static MlirValue load_for(const tw_builder_t *at, MlirOperation loop, MlirOperation load, MlirValue iv) {
  tw_map_t map = {0};
  tw_map_one(&map, tw_loop_iv(loop), iv);
  MlirValue made = tw_copy_slice(at, mlirOperationGetResult(load, 0), tw_loop_body(loop), &map);
  tw_map_free(&map);
  tw_access_check(tw_def(made));
  return made;
}

/* Returns the loop that stands in place of the old one. `behind`: some number that comes early is read behind the wait,
 * so that the product starts before all of them are loaded (roles/early_products.c). */
static MlirOperation prefetch(MlirOperation loop, MlirOperation load, bool behind) {
  MlirBlock body = tw_loop_body(loop);
  MlirValue tile = mlirOperationGetResult(load, 0);
  MlirOperation last = last_user(body, tile);
  bool settles = behind ? is_read_behind(body, tile) : is_read_late(body, tile, last);
  settles |= is_read_at_end(body, tile, last) && has_room(body, words_of(mlirValueGetType(tile)));
  if (behind && is_read_late(body, tile, last))
    last = last_reader(body, tile);
  MlirOperation at = settles ? mlirBlockGetFirstOperation(body) : mlirOperationGetNextInBlock(last);
  tw_builder_t before = tw_build_before(loop), here = tw_build_before(at);
  before.location = here.location = mlirOperationGetLocation(load);
  MlirValue first = load_for(&before, loop, load, mlirOperationGetOperand(loop, 0));
  loop = tw_carry_more(loop, 1, &first);
  MlirValue iv = tw_loop_iv(loop), step = mlirOperationGetOperand(loop, 2);
  MlirValue now = tw_carried(loop, mlirOperationGetNumResults(loop) - 1);
  if (settles)
    now = tw_unary(&here, "tile.settle", mlirValueGetType(now), now);
  MlirValue next = load_for(&here, loop, load, tw_binary(&here, "arith.addi", mlirValueGetType(iv), iv, step));
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(load, 0), now);
  tw_extend_yield(tw_loop_body(loop), 1, &next);
  mlirOperationDestroy(load);
  return loop;
}

static void prefetch_all(MlirOperation loop, int64_t most) {
  tw_ops_t loads = {NULL, 0};
  int64_t room = MOST_TILES * most;
  TW_EACH_OP(op, tw_loop_body(loop))
    if (is_early(loop, op, room < most ? room : most)) {
      tw_ops_add(&loads, op);
      room -= words_of(mlirValueGetType(mlirOperationGetResult(op, 0)));
    } else if (room < most && is_early(loop, op, most)) {
      tw_op_remark(op, "is waited for: registers have no room for more tiles that come an iteration early");
    }
  bool behind = false;
  for (int i = 0; i < loads.count; i++)
    behind |= is_read_behind(tw_loop_body(loop), mlirOperationGetResult(loads.at[i], 0));
  for (int i = 0; i < loads.count; i++)
    loop = prefetch(loop, loads.at[i], behind);
  tw_ops_free(&loads);
}

static bool prefetch_tiles(MlirOperation func) {
  tw_ops_t loops = tw_loops_in(func, MlirWalkPostOrder);
  for (int i = 0; i < loops.count; i++) {
    int64_t most = most_words(tw_loop_body(loops.at[i]));
    if (most > 0 && !tw_has_attr(loops.at[i], TW_DYNAMIC_SCHEDULE))
      prefetch_all(loops.at[i], most);
  }
  tw_ops_free(&loops);
  return true;
}

bool tw_run_prefetch_loads(MlirOperation func) {
  return prefetch_tiles(func) && tw_stage_vectors(func) && tw_share_iterations(func) && tw_batch_loads(func);
}
