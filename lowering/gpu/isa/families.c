/* families.c - the table of families, best first, and what is asked of whichever a product has. See families.h. */
#include "lowering/gpu/isa/families.h"

#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/isa/fma.h"
#include "lowering/gpu/isa/sm80/mma_sync.h"
#include "lowering/gpu/isa/sm90/wgmma.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/ir.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"
#include "tilewright/dialect.h"

#include <stdio.h>
#include <string.h>

static const tw_mma_family_t *const families[] = {&tw_wgmma_family, &tw_mma_sync_family, &tw_fma_family};
enum { NUM_FAMILIES = sizeof families / sizeof *families };

/* ---- which family -------------------------------------------------------------------------------- */

static bool is_of(const tw_gpu_target_t *target, const tw_mma_family_t *family) {
  return family->needs == TW_GPU_ANY || tw_gpu_has(target, family->needs);
}

const tw_mma_family_t *tw_async_family(const tw_gpu_target_t *target) {
  for (int i = 0; i < NUM_FAMILIES; i++)
    if (families[i]->async != NULL && is_of(target, families[i]))
      return families[i];
  return NULL;
}

const tw_async_mma_t *tw_async_mma_of(MlirOperation op) {
  tw_gpu_target_t target = tw_gpu_target_of(op);
  const tw_mma_family_t *family = tw_async_family(&target);
  return family ? family->async : NULL;
}

static const tw_mma_family_t *synchronous_family(MlirOperation mma) {
  tw_gpu_target_t target = tw_gpu_target_of(mma);
  if (tw_str_is(tw_hint_family(mma), tw_fma_family.name))
    return &tw_fma_family;
  for (int i = 0; i < NUM_FAMILIES; i++)
    if (families[i]->async == NULL && is_of(&target, families[i]) && families[i]->why_not(mma, 0) == NULL)
      return families[i];
  return &tw_fma_family;
}

/* The asynchronous family that a tile.mma was given to; null if it was to none, or to one of another target. */
static const tw_mma_family_t *given_family(MlirOperation mma) {
  MlirStringRef name = tw_attr_string(mma, TW_MMA_FAMILY);
  if (name.length == 0)
    return NULL;
  tw_gpu_target_t target = tw_gpu_target_of(mma);
  const tw_mma_family_t *family = tw_async_family(&target);
  return family && tw_str_is(name, family->name) ? family : NULL;
}

const tw_mma_family_t *tw_mma_family_of(MlirOperation mma) {
  const tw_mma_family_t *given = given_family(mma);
  return given ? given : synchronous_family(mma);
}

bool tw_is_async_mma(MlirOperation mma) { return given_family(mma) != NULL; }

bool tw_has_async_mma(MlirOperation op) {
  MlirOperation func = tw_function_of(op);
  return tw_has_attr(func, TW_HAS_ASYNC_MMA) && tw_async_mma_of(func) != NULL;
}

bool tw_mma_has_instruction(MlirOperation mma) { return tw_mma_family_of(mma) != &tw_fma_family; }

/* ---- of a product ---------------------------------------------------------------------------------- */

tw_mma_plan_t tw_mma_plan(MlirOperation mma, int num_warps) {
  tw_mma_plan_t plan;
  tw_mma_family_of(mma)->plan(mma, num_warps, &plan);
  return plan;
}

/* ---- the hint warps(tile) ------------------------------------------------------------------------------- */

typedef struct {
  MlirOperation func;
  MlirStringRef tile;
} named_product_t;

static bool is_named_product(MlirOperation op, const void *user) {
  const named_product_t *named = user;
  MlirStringRef name = tw_op_is_product(op) ? tw_tile_name(mlirOperationGetResult(op, 0)) : tw_str("");
  return name.length == named->tile.length && name.length > 0 && !memcmp(name.data, named->tile.data, name.length);
}

static bool check_warps_hint(void *user, MlirStringRef tile, MlirStringRef text) {
  named_product_t named = {*(MlirOperation *)user, tile};
  MlirOperation mma = tw_find_op(named.func, is_named_product, &named);
  if (mlirOperationIsNull(mma)) {
    tw_op_does_not_fit(named.func, TW_REFUSED_HINT,
                       "kernel asks for warps(%.*s), an axis that it does not have: no product has this name",
                       (int)tile.length, tile.data);
    return false;
  }
  tw_mma_split_t splits[TW_MAX_SPLITS];
  const tw_mma_family_t *family = tw_mma_family_of(mma);
  int num_warps = (int)tw_num_warps(named.func, 0);
  int count = family->splits ? family->splits(mma, num_warps, splits) : 0;
  if (tw_split_named(splits, count, text) >= 0)
    return true;
  char legal[160] = "no other than the compiler's";
  for (int i = 0, used = 0; i < count; i++)
    used += snprintf(legal + used, sizeof legal - (size_t)used, "%s%dx%d", i ? ", " : "", splits[i].m, splits[i].n);
  tw_op_does_not_fit(
      mma, TW_REFUSED_HINT,
      "is asked for warps(%.*s)=%.*s, which is no value of this axis; as a product of %s on %d warps it has %s",
      (int)tile.length, tile.data, (int)text.length, text.data, family->name, num_warps, legal);
  return false;
}

bool tw_check_warps_hints(MlirOperation func) { return tw_each_tile_hint(func, "warps", check_warps_hint, &func); }

tw_mma_place_t tw_mma_place(MlirOperation mma, int operand) {
  MlirStringRef letters = tw_attr_string(mma, TW_MMA_PLACES);
  return letters.length == 2 && tw_is_async_mma(mma) ? (tw_mma_place_t)letters.data[operand] : TW_PLACE_NONE;
}

bool tw_mma_reads_registers(MlirOperation product) {
  return !tw_type_is_buffer(mlirValueGetType(mlirOperationGetOperand(product, 0)));
}

MlirValue tw_mma_sum_before(MlirOperation product) {
  return mlirOperationGetOperand(product, mlirOperationGetNumOperands(product) - 1);
}

MlirOperation tw_mma_before(MlirOperation product) {
  MlirOperation def = tw_def(tw_mma_sum_before(product));
  return !mlirOperationIsNull(def) && tw_op_is_async_product(def) ? def : tw_null_op();
}

bool tw_mma_may_run_on(MlirOperation product) {
  const tw_async_mma_t *async = tw_async_mma_of(product);
  return async != NULL && async->may_run_on(product);
}

bool tw_mma_gains_by_steps(MlirOperation product) {
  enum { SHORT_COLUMNS = 128, FEW_BITS = 32 };
  const tw_async_mma_t *async = tw_async_mma_of(product);
  if (async == NULL || !async->has_steps(product) ||
      tw_extent(mlirValueGetType(mlirOperationGetResult(product, 0)), 1) <= SHORT_COLUMNS)
    return false;
  int64_t bits = tw_bits_computed(mlirOperationGetBlock(product), mlirOperationGetOperand(product, 0));
  return bits > 0 && bits <= FEW_BITS;
}

int64_t tw_mma_words(MlirOperation product) {
  const tw_async_mma_t *async = tw_async_mma_of(product);
  int64_t words = async ? async->extra_words(product) : 0;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(product); i++)
    words += tw_register_words(mlirValueGetType(mlirOperationGetOperand(product, i)));
  return words;
}

int64_t tw_mma_cycles(MlirOperation mma) {
  enum { NARROW = 19, HALF = 16 };
  const tw_machine_t *machine = tw_gpu_target_of(mma).machine;
  MlirType lhs = mlirValueGetType(mlirOperationGetOperand(mma, 0)),
           sum = mlirValueGetType(mlirOperationGetResult(mma, 0));
  int64_t flop = 2 * tw_count(sum) * tw_extent(lhs, tw_rank(lhs) - 1), bits = tw_memory_bits(tw_element(lhs));
  return flop / (tw_bits(lhs) > NARROW ? machine->fma_flop : machine->tensor_flop * HALF / bits);
}

/* ---- registers beside small pieces --------------------------------------------------------------- */

int64_t tw_mma_sum_words(MlirOperation mma) {
  MlirType sum = mlirValueGetType(mlirOperationGetResult(mma, 0));
  const tw_async_mma_t *async = tw_async_mma_of(mma);
  int64_t words = tw_count(sum) * tw_memory_bits(tw_element(sum)) / TW_REGISTER_BITS;
  return async != NULL && async->promotion(mma) > 0 ? 2 * words : words;
}

typedef struct {
  MlirOperation loop;
  int64_t step, sums, pieces, of_step; /* of a step of k */
  int products;
  tw_map_t seen; /* loads */
} held_words_t;

/* Adds the pieces of the tile that is loaded for an operand, once for all products that read it. */
static void add_pieces(held_words_t *b, MlirOperation mma, int operand) {
  MlirType type = mlirValueGetType(mlirOperationGetOperand(mma, operand));
  MlirOperation load = tw_load_behind(mlirOperationGetOperand(mma, operand));
  int64_t k = tw_extent(type, tw_rank(type) - (operand == 0 ? 1 : 2));
  if (mlirOperationIsNull(load) || !tw_op_loads_tile(load) || tw_map_get(&b->seen, load.ptr, NULL) != NULL ||
      !mlirOperationEqual(tw_enclosing_loop(load), b->loop))
    return;
  tw_map_set(&b->seen, load.ptr, 0, NULL);
  int64_t pieces = tw_access_small_pieces(load);
  b->pieces += pieces;
  b->of_step += b->step < k ? pieces * b->step / k : pieces;
}

bool tw_is_mma_continued(MlirOperation mma) {
  MlirOpOperand use = tw_only_use(mlirOperationGetResult(mma, 0));
  return !mlirOpOperandIsNull(use) && tw_op_form(mlirOpOperandGetOwner(use)) == TW_FORM_PRODUCT &&
         mlirOpOperandGetOperandNumber(use) == 2;
}

static MlirWalkResult add_product(MlirOperation op, void *user) {
  held_words_t *b = user;
  if (!tw_op_is_product(op) || !mlirOperationEqual(tw_enclosing_loop(op), b->loop))
    return MlirWalkResultAdvance;
  b->sums += tw_is_mma_continued(op) ? 0 : tw_mma_sum_words(op);
  for (int i = 0; i < 2; i++)
    add_pieces(b, op, i);
  b->products++;
  return MlirWalkResultAdvance;
}

int64_t tw_mma_words_with_pieces(MlirOperation func, int64_t step) {
  int64_t most = 0;
  tw_ops_t loops = tw_loops_in(func, MlirWalkPreOrder);
  for (int i = 0; i < loops.count; i++) {
    held_words_t b = {.loop = loops.at[i], .step = step};
    mlirOperationWalk(loops.at[i], add_product, &b, MlirWalkPreOrder);
    tw_map_free(&b.seen);
    int64_t pieces = b.products == 1 ? b.of_step : b.pieces;
    if (pieces > 0 && b.sums + pieces > most)
      most = b.sums + pieces;
  }
  tw_ops_free(&loops);
  return most;
}

int64_t tw_mma_budget_with_pieces(MlirOperation func) {
  tw_gpu_target_t target = tw_gpu_target_of(func);
  return tw_register_budget(func, tw_async_family(&target) ? TW_BUDGET_SMALL_PIECES : TW_BUDGET_PIECES_AND_OPERANDS);
}

/* ---- how many warps ------------------------------------------------------------------------------ */

enum {
  MAX_WARPS = 8,
  ACC_PER_WARP = 64 * 64,
  FEW_ACC_PER_WARP = 64 * 32,
  MOST_ACC_PER_WARP = 16 * 256, /* of rows that stay together: half of the registers */
  CARRIED_PER_WARP = 64 * TW_WARP_LANES
};

typedef struct {
  const tw_async_mma_t *async; /* of the target; null if it has none */
  int64_t largest;             /* elements of the largest accumulator */
  int64_t rows;                /* and its rows */
  int64_t carried;             /* elements that threads carry in small pieces, or compute, in each step */
  bool chained, fma, promoted, computed, gathered, apart;
} need_t;

/* The elements of an operand that threads carry in pieces of less than 16 bytes: rows of its array begin anywhere. */
static int64_t carried_narrowly(MlirOperation mma, int operand) {
  enum { ACCESS_BITS = 128 };
  MlirOperation load = tw_load_behind(mlirOperationGetOperand(mma, operand));
  if (mlirOperationIsNull(load) || !tw_op_loads_tile(load))
    return 0;
  MlirType tile = mlirValueGetType(mlirOperationGetResult(load, 0));
  int vector = tw_access_inner_vector_bits(load, (int)tw_rank(tile));
  return (int64_t)tw_memory_bits(tw_element(tile)) << vector < ACCESS_BITS ? tw_count(tile) : 0;
}

static bool is_gathered(MlirOperation mma, int operand) {
  MlirOperation load = tw_load_behind(mlirOperationGetOperand(mma, operand));
  return !mlirOperationIsNull(load) && tw_op_gathers(load);
}

/* Inputs that no instruction of the target takes are widened to float16 (layout/widen_mma.c), of which there is one for
 * 16 of k. */
static bool is_widened(MlirOperation mma) {
  enum { NARROW_BITS = 8, LEAST_K = 16 };
  MlirType lhs = mlirValueGetType(mlirOperationGetOperand(mma, 0));
  return tw_is_float(lhs) && tw_bits(lhs) == NARROW_BITS && tw_extent(lhs, tw_rank(lhs) - 1) >= LEAST_K;
}

static MlirWalkResult measure(MlirOperation op, void *user) {
  need_t *need = user;
  if (!tw_op_is_product(op))
    return MlirWalkResultAdvance;
  MlirType acc = mlirValueGetType(mlirOperationGetResult(op, 0));
  if (tw_count(acc) > need->largest) {
    need->largest = tw_count(acc);
    need->rows = tw_extent(acc, tw_rank(acc) - 2);
  }
  need->chained |= tw_rows_stay_together(op);
  need->fma |= synchronous_family(op) == &tw_fma_family && !is_widened(op);
  need->apart |= need->async != NULL && tw_loop_around(op) != NULL && tw_is_zero(mlirOperationGetOperand(op, 2));
  need->promoted |= need->async != NULL && need->async->promotion(op) > 0;
  int64_t carried = 0;
  for (int i = 0; i < 2; i++) {
    MlirType operand = mlirValueGetType(mlirOperationGetOperand(op, i));
    carried += tw_computes_operand(op, i) ? tw_count(operand) : carried_narrowly(op, i);
    need->computed |= tw_has_loads_behind(op, i);
    need->gathered |= is_gathered(op, i);
  }
  need->carried = carried > need->carried ? carried : need->carried;
  return MlirWalkResultAdvance;
}

typedef struct {
  const tw_async_mma_t *async;
  int warps;
} shared_by_t;

/* Whether so many warps cannot share the product, but compute the same, for nobody's need. */
static bool is_repeated(MlirOperation op, const void *user) {
  const shared_by_t *by = user;
  tw_mma_split_t split = {.same = 1};
  if (!tw_op_is_product(op) || tw_feeds_product(op))
    return false;
  MlirType acc = mlirValueGetType(mlirOperationGetResult(op, 0));
  return tw_rank(acc) == 2 && by->async->split(tw_extent(acc, 0), tw_extent(acc, 1), false, by->warps, &split) &&
         split.same > 1;
}

static bool repeats(MlirOperation func, const tw_async_mma_t *async, int warps) {
  return !mlirOperationIsNull(tw_find_op(func, is_repeated, &(shared_by_t){async, warps}));
}

int tw_mma_num_warps(MlirOperation func) {
  need_t need = {.async = tw_async_mma_of(func)};
  mlirOperationWalk(func, measure, &need, MlirWalkPreOrder);
  if (need.largest == 0)
    return 0;
  int warps = 4;
  /* Chained products keep two accumulators and the rows' state: 16 rows a warp. Without Tensor Cores
   * more operands are at hand at a time, and promoted sums, as those that each step of a loop starts from zero, lie
   * beside others, so fewer of these fit.
   * Where operands are computed, a second group of warps does so while the first one's product runs; where they are
   * gathered by asynchronous copies, two groups compute beside a producer that finds the addresses. What threads carry
   * in small pieces, or compute, is in their registers beside the sums, and what a block waits for. */
  bool gathers = need.gathered && need.async != NULL;
  bool few = need.fma || need.promoted || need.apart || need.computed || gathers || need.carried > 0;
  int64_t per_warp = few ? FEW_ACC_PER_WARP : ACC_PER_WARP;
  while (warps < MAX_WARPS &&
         (need.chained ? warps * 16 < need.rows || warps * (int64_t)MOST_ACC_PER_WARP < need.largest
                       : warps * per_warp < need.largest || warps * (int64_t)CARRIED_PER_WARP < need.carried))
    warps *= 2;
  /* Among products of several sizes the smallest decides, if registers hold the largest. */
  if (need.async != NULL && warps > need.async->warps && repeats(func, need.async, warps) &&
      !repeats(func, need.async, warps / 2) && warps / 2 * (int64_t)MOST_ACC_PER_WARP >= need.largest)
    warps /= 2;
  return warps;
}
