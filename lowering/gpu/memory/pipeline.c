/* pipeline.c - tile-pipeline: asynchronous copies run several iterations ahead of their use
 *
 * Before (made by tile-promote-memory), every iteration waits for its own copies:
 *
 *   scf.for %k = %lb to %ub step %s {
 *     tile.async_copy %A[%i, %k] into %buf[%zero] ; commit ; wait 0 ; barrier
 *     %a = tile.local_load %buf[%zero] ; barrier
 *     ... tile.mma %a ...
 *   }
 *
 * After, with N stages a buffer, and one barrier an iteration:
 *
 *   copies of iterations 0 .. N-2 into stages 0 .. N-2, each `if` it exists, a commit after each
 *   scf.for %k = %lb to %ub step %s iter_args(..., %read = 0, %write = N-1) {
 *     tile.async_wait N-2            // this iteration's group is complete, for this thread
 *     tile.barrier                   // ... for every thread; and all have left stage %write
 *     tile.async_copy %A[%i, %k + (N-1)*%s] into %buf[%write] if %k + (N-1)*%s < %ub ; commit
 *     %a = tile.local_load %buf[%read]
 *     ... tile.mma %a ...
 *     yield ..., (%read + 1) mod N, (%write + 1) mod N
 *   }
 *   tile.async_wait 0 ; tile.barrier // the stages may be reused
 *
 * Groups are committed in every iteration, empty ones too, so that a constant counts them. N is
 * The hint `num_stages`, else what shared memory allows, between 2 and 4.
 *
 * Products on buffers (tile.async_mma) run by themselves: the copies are issued behind the first one, so
 * that it starts early. Where such a product only adds to a value that the loop carries, it may also
 * run into the next iteration (`tile.mma_wait %d, 1`): then the stage that copies go to is that of
 * two iterations ago, and copies run N-2 ahead.
 *
 * The positions of copies, tiles of indices too, are computed for the later iteration. What they take
 * from memory (a table of pages) would stand before the copies with all its latency; so the loop
 * carries it, loaded one iteration before its copies are issued:
 *
 *   scf.for %k = ... iter_args(..., %p = (gather at iteration N-1), ...) {
 *     ...
 *     tile.async_gather %A[... %p ...] into %buf[%write] if ...
 *     %q = tile.gather %table[%k + N*%s]
 *     yield ..., %q, ...
 *   }
 *
 * What must hold for a loop: its copies lie directly in its body, their positions depend on the
 * induction variable only (not on values that the loop carries), by arithmetic without conversions of
 * layout and by loads that check bounds, nothing in the body writes to these arrays (aliasing.h), and no loop inside of
 * it copies. Other loops keep the form that they have. */
#include "base/memory.h"
#include "dialect/layouts.h"
#include "lowering/aliasing.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/barrier.h"
#include "lowering/gpu/facts/buffer.h"
#include "lowering/gpu/facts/roles.h"
#include "lowering/gpu/facts/same_tile.h"
#include "lowering/gpu/facts/scratch.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/gpu/memory/sink_operands.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"
#include "lowering/passes.h"
#include "tilewright/dialect.h"

#include <string.h>

enum { MIN_STAGES = 2, MAX_STAGES = 4, FEW_WARPS = 4 };

typedef struct {
  MlirOperation loop;
  tw_ops_t copies, ahead; /* ahead: what positions take from memory, at a place that needs no other such load */
  int stages;
  int distance;             /* how many iterations ahead copies are issued */
  MlirOperation overlapped; /* the wait for a product that may run into the next iteration, or null */
} pipeline_plan_t;

/* ---- which loops ------------------------------------------------------------------------------- */

/* Arithmetic on scalars and tiles of indices, which may be repeated for another iteration. */
static bool is_index_arithmetic(MlirOperation op) {
  return mlirOperationGetNumRegions(op) == 0 && mlirOperationGetNumResults(op) == 1 && tw_is_arithmetic(op) &&
         !tw_op_has(op, TW_HAS_SCRATCH) && !tw_op_is(op, TW_TILE_WARP_ANY);
}

/* Loads that may be done for an iteration that does not exist: they read nothing outside of their array. */
static bool is_index_load(MlirOperation op) {
  if (!tw_op_loads(op))
    return false;
  return tw_op_has(op, TW_BY_TILE)
             ? tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))) && !tw_has_attr(op, TW_IN_BOUNDS)
             : tw_has_attr(op, "check_bounds");
}

static bool is_noted(const pipeline_plan_t *plan, MlirOperation load) {
  for (int i = 0; i < plan->ahead.count; i++)
    if (mlirOperationEqual(plan->ahead.at[i], load))
      return true;
  return false;
}

/* Whether a value can be computed for another iteration. Notes the first loads on the way; `loads` tells whether there
 * are any. */
static bool depends_on_induction_only(pipeline_plan_t *plan, MlirValue value, bool *loads) {
  if (!tw_defined_in(value, tw_loop_body(plan->loop)) || mlirValueEqual(value, tw_loop_iv(plan->loop)))
    return true;
  MlirOperation op = tw_def(value);
  if (mlirOperationIsNull(op) || (!is_index_arithmetic(op) && !is_index_load(op)))
    return false;
  bool before = false;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (!depends_on_induction_only(plan, mlirOperationGetOperand(op, i), &before))
      return false;
  if (is_index_load(op) && !before && !is_noted(plan, op))
    tw_ops_add(&plan->ahead, op);
  *loads = *loads || before || is_index_load(op);
  return true;
}

/* Meetings of the program's own threads, and copies that are not directly in the body. */
static bool is_obstacle(MlirOperation op, const void *body) {
  bool nested = !mlirBlockEqual(mlirOperationGetBlock(op), *(const MlirBlock *)body);
  return tw_op_is(op, TW_TILE_SYNC_THREADS) || (nested && (tw_is_async_copy(op) || tw_is_barrier(op)));
}

typedef struct {
  MlirOperation loop;
  tw_slice_t early; /* the copies, and what their positions come from */
} early_reads_t;

/* Whether an op writes to what copies, or the loads behind their positions, find an iteration or more before. */
static bool may_write(MlirOperation op, const void *user) {
  const early_reads_t *reads = user;
  intptr_t first;
  if (!tw_stores_to_array(op))
    return false;
  MlirValue array = tw_access_array(op, &first);
  TW_EACH_OP(read, tw_loop_body(reads->loop))
    if (tw_slice_has(&reads->early, read) && (tw_is_async_copy(read) || is_index_load(read)) &&
        (tw_acquires(op) ||
         !tw_assume_unwritten(mlirOperationGetOperand(read, 0), array, tw_reads_before(read, op, reads->loop))))
      return true;
  return false;
}

static bool keeps_order(const pipeline_plan_t *plan) {
  early_reads_t reads = {.loop = plan->loop, .early = {.block = tw_loop_body(plan->loop)}};
  for (int i = 0; i < plan->copies.count; i++)
    tw_slice_add_op(&reads.early, plan->copies.at[i]);
  MlirOperation write = tw_find_op(plan->loop, may_write, &reads);
  tw_slice_free(&reads.early);
  return mlirOperationIsNull(write);
}

/* Null, with the copies; or why they stay where they are. */
static const char *why_not(pipeline_plan_t *plan) {
  MlirBlock body = tw_loop_body(plan->loop);
  bool loads = false;
  TW_EACH_OP(op, body) {
    if (!tw_is_async_copy(op))
      continue;
    tw_ops_add(&plan->copies, op);
    for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
      if (!tw_type_is_buffer(mlirValueGetType(mlirOperationGetOperand(op, i))) &&
          !depends_on_induction_only(plan, mlirOperationGetOperand(op, i), &loads))
        return "the loop computes where its tiles lie from more than its counter";
  }
  if (plan->copies.count > 0 && !mlirOperationIsNull(tw_find_op(plan->loop, is_obstacle, &body)))
    return "its threads meet, or a loop or branch in it copies, too";
  return plan->copies.count == 0 || keeps_order(plan) ? NULL : "it writes to an array that it copies from";
}

/* ---- how many stages --------------------------------------------------------------------------- */

typedef struct {
  const pipeline_plan_t *plan;
  int64_t buffers, scratch;
} others_t;

static bool is_own(const pipeline_plan_t *plan, MlirValue buffer) {
  for (int i = 0; i < plan->copies.count; i++)
    if (mlirValueEqual(tw_copy_buffer(plan->copies.at[i]), buffer))
      return true;
  return false;
}

/* Whether a buffer holds something while the loop runs: it is used in the loop, or before and after. */
static bool lives_through(MlirValue buffer, MlirOperation loop) {
  bool before = false, after = false;
  MlirBlock block = mlirOperationGetBlock(loop);
  TW_EACH_USE(use, buffer) {
    MlirOperation op = mlirOpOperandGetOwner(use);
    while (!mlirOperationIsNull(op) && !mlirBlockEqual(mlirOperationGetBlock(op), block))
      op = mlirOperationGetParentOperation(op);
    if (mlirOperationIsNull(op) || mlirOperationEqual(op, loop))
      return true;
    if (mlirOperationIsBeforeInBlock(op, loop))
      before = true;
    else
      after = true;
  }
  return before && after;
}

static MlirWalkResult count_others(MlirOperation op, void *user) {
  others_t *others = user;
  if (!tw_makes_buffer(op))
    return MlirWalkResultAdvance;
  MlirValue buffer = mlirOperationGetResult(op, 0);
  if (!is_own(others->plan, buffer) && lives_through(buffer, others->plan->loop))
    others->buffers += tw_buffer_bytes(mlirValueGetType(buffer));
  return MlirWalkResultAdvance;
}

static MlirWalkResult count_scratch(MlirOperation op, void *user) {
  others_t *others = user;
  int64_t bytes = tw_scratch_bytes(op);
  others->scratch = bytes > others->scratch ? bytes : others->scratch;
  return MlirWalkResultAdvance;
}

/* Bytes that are taken while the loop runs, besides its own buffers. */
static int64_t taken_beside(const pipeline_plan_t *plan, MlirOperation func) {
  others_t others = {.plan = plan};
  mlirOperationWalk(func, count_others, &others, MlirWalkPreOrder);
  mlirOperationWalk(plan->loop, count_scratch, &others, MlirWalkPreOrder);
  return others.buffers + others.scratch;
}

/* Few warps hide latency badly: then two blocks should fit on a multiprocessor, if that leaves
 * enough stages. */
static int choose_stages(const pipeline_plan_t *plan, MlirOperation func) {
  tw_gpu_target_t target = tw_gpu_share_of(func);
  int64_t stage = 0, others = taken_beside(plan, func);
  for (int i = 0; i < plan->copies.count; i++)
    stage += tw_buffer_bytes(mlirValueGetType(tw_copy_buffer(plan->copies.at[i])));
  int64_t fit = (target.shared_bytes - others) / stage;
  int64_t wanted = tw_hint_num_stages(func, 0);
  for (int i = 0; i < plan->copies.count && wanted == 0; i++)
    wanted = tw_attr_int(plan->copies.at[i], TW_LATENCY, -1) + 1;
  if (wanted == 0) {
    int64_t shared = (target.shared_bytes_sm / 2 - TW_SHARED_BYTES_OF_DRIVER - others) / stage;
    bool share = !tw_has_hint_occupancy(func) && tw_num_warps(func, FEW_WARPS) <= FEW_WARPS && shared > MIN_STAGES;
    wanted = share && shared < MAX_STAGES ? shared : MAX_STAGES;
  }
  if (wanted > fit)
    wanted = fit;
  return wanted < MIN_STAGES ? 1 : (int)wanted;
}

/* ---- rewriting --------------------------------------------------------------------------------- */

/* The value for another iteration: arithmetic in the body is repeated, with `map` holding the
 * induction variable's stand-in. */
static MlirValue repeat(const tw_builder_t *at, MlirValue value, MlirOperation loop, tw_map_t *map) {
  MlirValue known = tw_map_value(map, value);
  if (!mlirValueEqual(known, value) || !tw_defined_in(value, tw_loop_body(loop)))
    return known;
  MlirOperation op = tw_def(value), clone = mlirOperationClone(op);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    mlirOperationSetOperand(clone, i, repeat(at, mlirOperationGetOperand(op, i), loop, map));
  mlirBlockInsertOwnedOperationBefore(at->block, at->before, clone);
  MlirValue made = mlirOperationGetResult(clone, 0);
  tw_map_one(map, value, made);
  return made;
}

/* Issues the copies of the iteration whose induction variable `map` has into `stage`, if it exists. */
static void issue(const tw_builder_t *at, const pipeline_plan_t *plan, tw_map_t *map, MlirValue stage,
                  MlirValue exists) {
  for (int c = 0; c < plan->copies.count; c++) {
    MlirOperation copy = mlirOperationClone(plan->copies.at[c]);
    for (intptr_t n = 0; n < tw_copy_buffer_operand(copy); n++)
      mlirOperationSetOperand(copy, n, repeat(at, mlirOperationGetOperand(copy, n), plan->loop, map));
    tw_set_operand(copy, TW_OPERAND_STAGE, stage);
    tw_set_operand(copy, TW_OPERAND_ENABLED, exists);
    mlirBlockInsertOwnedOperationBefore(at->block, at->before, copy);
  }
  tw_build_commit(at);
}

/* Loads what the positions of the iteration at `iv` need from memory. */
static void load_ahead(const tw_builder_t *at, const pipeline_plan_t *plan, MlirValue iv, MlirValue *out) {
  tw_map_t map = {0};
  tw_map_one(&map, tw_loop_iv(plan->loop), iv);
  for (int i = 0; i < plan->ahead.count; i++)
    out[i] = repeat(at, mlirOperationGetResult(plan->ahead.at[i], 0), plan->loop, &map);
  tw_map_free(&map);
}

static void build_wait(const tw_builder_t *at, int pending) {
  tw_build_copy_wait(at, pending);
  tw_build_barrier(at, TW_ORDERS_COPIES | TW_ORDERS_PRODUCTS);
}

/* Gives the buffers of the loop one stage a stage. */
static void widen_buffers(pipeline_plan_t *plan) {
  for (int i = 0; i < plan->copies.count; i++) {
    MlirValue buffer = tw_copy_buffer(plan->copies.at[i]);
    MlirType type = mlirValueGetType(buffer);
    int64_t shape[TW_LAYOUT_MAX_RANK + 1];
    intptr_t rank = tw_buffer_type_rank(type);
    for (intptr_t d = 0; d < rank; d++)
      shape[d] = d ? tw_buffer_type_extent(type, d) : plan->stages;
    MlirContext context = mlirTypeGetContext(type);
    mlirValueSetType(
        buffer, tw_buffer_type_get(context, rank, shape, tw_buffer_type_element(type), tw_buffer_type_layout(type)));
  }
}

/* induction + iterations * step */
static MlirValue ahead(const tw_builder_t *at, MlirValue iv, MlirValue step, int iterations) {
  MlirType type = mlirValueGetType(iv);
  MlirValue distance = tw_binary(at, "arith.muli", type, step, tw_const_int(at, type, iterations));
  return tw_binary(at, "arith.addi", type, iv, distance);
}

/* The first copies; `carried` gets what the loop carries more at its start. */
static void prologue(const pipeline_plan_t *plan, MlirValue *carried) {
  tw_builder_t at = tw_build_before(plan->loop);
  MlirValue lb = mlirOperationGetOperand(plan->loop, 0), ub = mlirOperationGetOperand(plan->loop, 1);
  MlirValue step = mlirOperationGetOperand(plan->loop, 2);
  for (int s = 0; s < plan->distance; s++) {
    tw_map_t map = {0};
    MlirValue iv = s ? ahead(&at, lb, step, s) : lb;
    tw_map_one(&map, tw_loop_iv(plan->loop), iv);
    issue(&at, plan, &map, tw_const_int(&at, tw_i32(at.context), s), tw_compare(&at, TW_SLT, iv, ub));
    tw_map_free(&map);
  }
  carried[0] = tw_const_int(&at, tw_i32(at.context), 0);
  carried[1] = tw_const_int(&at, tw_i32(at.context), plan->distance);
  if (plan->ahead.count > 0)
    load_ahead(&at, plan, ahead(&at, lb, step, plan->distance), carried + 2);
}

/* Takes what promotion put around each copy and product out of the body: the one barrier of an iteration orders it.
 * What threads write to a buffer themselves, tile-insert-barriers orders again where it must. */
static void drop_waits(MlirBlock body) {
  enum { PROMOTED = TW_ORDERS_COPIES | TW_ORDERS_PRODUCTS | TW_ORDERS_STORES };
  for (MlirOperation op = mlirBlockGetFirstOperation(body), next; !mlirOperationIsNull(op); op = next) {
    next = mlirOperationGetNextInBlock(op);
    if (tw_groups_copies(op) || tw_orders_only(op, PROMOTED))
      mlirOperationDestroy(op);
  }
}

/* (stage + 1) mod stages */
static MlirValue next_stage(const tw_builder_t *at, MlirValue stage, int stages) {
  MlirType i32 = tw_i32(at->context);
  MlirValue next = tw_binary(at, "arith.addi", i32, stage, tw_const_int(at, i32, 1));
  MlirValue inside = tw_compare(at, TW_SLT, next, tw_const_int(at, i32, stages));
  return tw_select(at, inside, next, tw_const_int(at, i32, 0));
}

static void read_from_stage(const pipeline_plan_t *plan, MlirBlock body, MlirValue stage) {
  for (int i = 0; i < plan->copies.count; i++)
    TW_EACH_USE(use, tw_copy_buffer(plan->copies.at[i])) {
      MlirOperation op = mlirOpOperandGetOwner(use);
      if (tw_op_reads_shared(op) && tw_inside(op, body))
        mlirOperationSetOperand(op, mlirOpOperandGetOperandNumber(use) + 1, stage);
    }
}

/* ---- products that run into the next iteration --------------------------------------------------- */

/* Position at which the loop's end yields a value that nothing else reads; -1 if it is read. */
static intptr_t only_yielded(MlirValue value, MlirBlock body) {
  MlirOpOperand use = tw_only_use(value);
  if (mlirOpOperandIsNull(use) || !mlirOperationEqual(mlirOpOperandGetOwner(use), mlirBlockGetTerminator(body)))
    return -1;
  return mlirOpOperandGetOperandNumber(use);
}

/* The wait of the loop's one product, if the product may run on and adds to a carried value that only it reads. */
static MlirOperation overlapped_wait(MlirOperation loop) {
  MlirOperation none = {NULL}, product = tw_first_op(tw_loop_body(loop), tw_op_is_async_product);
  MlirOperation wait = tw_first_op(tw_loop_body(loop), tw_op_waits_for_products);
  if (mlirOperationIsNull(product) || mlirOperationIsNull(wait) || !tw_mma_may_run_on(product) ||
      tw_mma_reads_registers(product) ||
      !mlirValueEqual(mlirOperationGetOperand(wait, 0), mlirOperationGetResult(product, 0)))
    return none;
  intptr_t position = only_yielded(mlirOperationGetResult(wait, 0), tw_loop_body(loop));
  MlirValue acc = mlirOperationGetOperand(product, mlirOperationGetNumOperands(product) - 1);
  if (position < 0 || !mlirValueEqual(acc, tw_carried(loop, position)) ||
      !mlirOpOperandIsNull(mlirOpOperandGetNextUse(mlirValueGetFirstUse(acc))))
    return none;
  return wait;
}

static void wait_after_loop(const tw_builder_t *at, const pipeline_plan_t *plan) {
  tw_set_int(plan->overlapped, "pending", tw_i32(at->context), 1);
  intptr_t position = only_yielded(mlirOperationGetResult(plan->overlapped, 0), tw_loop_body(plan->loop));
  MlirValue open = mlirOperationGetResult(plan->loop, position);
  MlirOperation wait = tw_build_product_wait(at, 1, &open, 0);
  mlirValueReplaceAllUsesExcept(open, mlirOperationGetResult(wait, 0), 1, &wait);
}

/* Two blocks on a multiprocessor hide each other's waits; one alone overlaps its own iterations. */
static void choose_distance(pipeline_plan_t *plan, MlirOperation func) {
  enum { STAGES_TO_OVERLAP = 4 };
  bool alone = tw_num_warps(func, FEW_WARPS) > FEW_WARPS;
  plan->overlapped = overlapped_wait(plan->loop);
  if (!alone || plan->stages < STAGES_TO_OVERLAP)
    plan->overlapped = tw_null_op();
  plan->distance = plan->stages - (mlirOperationIsNull(plan->overlapped) ? 1 : 2);
}

/* Behind the first product: the copies of a later iteration, and the loads for those of the one after it. Returns
 * what the next iteration has of what is carried: the stages to read and to write, and these loads. */
static void copy_ahead(pipeline_plan_t *plan, const tw_builder_t *at, const MlirValue *carried, MlirValue *next) {
  MlirValue iv = tw_loop_iv(plan->loop), step = mlirOperationGetOperand(plan->loop, 2);
  MlirValue later = ahead(at, iv, step, plan->distance);
  tw_map_t map = {0};
  tw_map_one(&map, iv, later);
  for (int i = 0; i < plan->ahead.count; i++)
    tw_map_one(&map, mlirOperationGetResult(plan->ahead.at[i], 0), carried[2 + i]);
  issue(at, plan, &map, carried[1], tw_compare(at, TW_SLT, later, mlirOperationGetOperand(plan->loop, 1)));
  tw_map_free(&map);
  if (plan->ahead.count > 0)
    load_ahead(at, plan, ahead(at, iv, step, plan->distance + 1), next + 2);
  tw_builder_t end = tw_build_before(tw_loop_yield(plan->loop));
  for (int i = 0; i < 2; i++)
    next[i] = next_stage(&end, carried[i], plan->stages);
}

static void pipeline_loop(pipeline_plan_t *plan) {
  intptr_t num_carried = 2 + plan->ahead.count, before = mlirOperationGetNumResults(plan->loop);
  MlirValue *carried = tw_allocate(2 * (size_t)num_carried, sizeof *carried), *next = carried + num_carried;
  widen_buffers(plan);
  prologue(plan, carried);
  plan->loop = tw_carry_more(plan->loop, num_carried, carried);
  for (intptr_t i = 0; i < num_carried; i++)
    carried[i] = tw_carried(plan->loop, before + i);
  MlirBlock body = tw_loop_body(plan->loop);
  drop_waits(body);
  read_from_stage(plan, body, carried[0]);
  tw_builder_t top = tw_build_before(mlirBlockGetFirstOperation(body));
  build_wait(&top, plan->distance - 1);
  MlirOperation product = tw_first_op(body, tw_op_is_async_product);
  tw_builder_t behind = mlirOperationIsNull(product) ? top : tw_build_before(mlirOperationGetNextInBlock(product));
  copy_ahead(plan, &behind, carried, next);
  for (int i = 0; i < plan->copies.count; i++)
    mlirOperationDestroy(plan->copies.at[i]);
  tw_extend_yield(body, num_carried, next);
  free(carried);
  tw_builder_t after = tw_build_before(mlirOperationGetNextInBlock(plan->loop));
  if (!mlirOperationIsNull(plan->overlapped))
    wait_after_loop(&after, plan);
  build_wait(&after, 0);
}

/* ---- the pass ---------------------------------------------------------------------------------- */

bool tw_run_pipeline(MlirOperation func) {
  tw_ops_t loops = tw_loops_in(func, MlirWalkPreOrder);
  for (int i = loops.count - 1; i >= 0; i--) { /* inner loops first */
    if (!mlirOperationIsNull(tw_roles_around(loops.at[i], NULL)))
      continue; /* copies of a producer run ahead as they are */
    pipeline_plan_t plan = {.loop = loops.at[i]};
    const char *reason = why_not(&plan);
    if (reason == NULL && plan.copies.count > 0 && (plan.stages = choose_stages(&plan, func)) == 1)
      reason = "shared memory has room for one of each only, or num_stages is 1";
    if (reason) {
      tw_op_remark(plan.loop, "copies no tiles ahead: %s", reason);
    } else if (plan.copies.count > 0) {
      choose_distance(&plan, func);
      tw_op_remark(plan.loop, "copies its tiles %d iteration%s ahead, into %d buffers of each", plan.distance,
                   plan.distance == 1 ? "" : "s", plan.stages);
      pipeline_loop(&plan);
    }
    tw_ops_free(&plan.copies);
    tw_ops_free(&plan.ahead);
  }
  tw_ops_free(&loops);
  tw_sink_operands(func);
  return true;
}
