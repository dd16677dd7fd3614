/* dynamic_scheduler.c - tile-specialize-warps: dynamic tile scheduler: a block takes its next tile when it finishes one
 *
 * Before, in both roles of a kernel with a dynamic schedule (tile-plan-grid), each block goes through numbers that are
 * known from the start:
 *
 *   tile.roles producer {
 *     scf.for %v = %first to %total step %step iter_args(%x = %a) { ... ; yield %y } {tile.persistent,
 * tile.dynamic_schedule} } consumer { the same loop with other work }
 *
 * After, it takes the next number that no other has taken. The producer does in the last iteration that it brings tiles
 * for, and passes it on to the consumers, which are some stages behind, through a multibuffer of two stages of its own:
 *
 *   func.func @k(..., %workspace: i64) {
 *   %full = tile.alloc_barriers arrivals 1 numbers, %empty = tile.alloc_barriers arrivals (number of warps)
 *   tile.roles producer {
 *     scf.while (%v = %first, %x = %a, %stage = 0, %parity = 0) { condition %v < %total }
 *     do {
 *       %next = scf.for %k = %lo to %hi step 1 iter_args(%t = %v) {
 *         %u = scf.if %k == %hi - 1 { tile.next_tile %workspace of %total else %v } else { %t }
 *         ... tile.tma_load ... ; yield %u
 *       }                                                              (taken behind a loop that does not run)
 *       %taken = %next + %step
 *       tile.barrier_wait %empty[%stage], %parity ^ 1
 *       tile.post_number %taken, %full[%stage] ; tile.barrier_arrive %full[%stage]
 *       %next = tile.read_number %full[%stage]
 *       yield %next, %y, (%stage + 1) mod 2, %parity flipped where the stage wrapped
 *     } attributes {tile.persistent}
 *   } consumer {
 *     the same loop, where behind the work stands
 *       tile.barrier_wait %full[%stage], %parity
 *       %next = tile.read_number %full[%stage] ; tile.barrier_arrive %empty[%stage]
 *   }
 *
 * The launch record gets dynamic: the launcher passes the workspace as one more word (runtime/launch.c). Where it
 * has none, the word is zero, and numbers are those of before.
 *
 * A producer that gathers is four warps: one lane takes the number, and all read it as the consumers do.
 *
 * What must hold: a producer, and one consumer group. Else the loop stays as it is, and a remark says so.
 * Runs when roles are made; the bounds of the loop do not change while it runs. */
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/facts/roles.h"
#include "lowering/gpu/roles/specialize_warps.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"
#include "tilewright/dialect.h"

#include <stdlib.h>

enum { STAGES = 2, MAX_VALUES = 96 };

typedef struct {
  MlirOperation func, roles, loops[2]; /* of the producer, of the consumers */
  bool gathers;
  MlirValue workspace, full, empty;
} scheduler_t;

/* One loop while it is made again. */
typedef struct {
  const scheduler_t *scheduler;
  bool producer;
  tw_builder_t at;
  MlirValue number, step, total, stage, parity;
} role_t;

static MlirValue constant(const tw_builder_t *at, int64_t value) {
  return tw_const_int(at, tw_i32(at->context), value);
}

/* ---- numbers that pass --------------------------------------------------------------------------- */

static void wait_for(const role_t *r, MlirValue barriers, MlirValue parity) {
  MlirValue operands[] = {barriers, r->stage, parity};
  tw_build(&r->at, "tile.barrier_wait", (tw_op_parts_t){.num_operands = 3, .operands = operands});
}

static void arrive(const role_t *r, MlirValue barriers) {
  MlirValue operands[] = {barriers, r->stage};
  tw_build(&r->at, "tile.barrier_arrive", (tw_op_parts_t){.num_operands = 2, .operands = operands});
}

static void post(const role_t *r, MlirValue number) {
  const scheduler_t *t = r->scheduler;
  wait_for(r, t->empty, tw_binary(&r->at, "arith.xori", tw_i32(r->at.context), r->parity, constant(&r->at, 1)));
  MlirValue operands[] = {number, t->full, r->stage};
  tw_build(&r->at, "tile.post_number", (tw_op_parts_t){.num_operands = 3, .operands = operands});
  arrive(r, t->full);
}

static MlirValue read_number(const role_t *r) {
  MlirValue operands[] = {r->scheduler->full, r->stage};
  return tw_op1(&r->at, "tile.read_number", tw_i32(r->at.context), 2, operands);
}

static MlirValue receive(const role_t *r) {
  wait_for(r, r->scheduler->full, r->parity);
  MlirValue number = read_number(r);
  arrive(r, r->scheduler->empty);
  return number;
}

static MlirValue next_tile(const role_t *r, const tw_builder_t *at) {
  MlirValue operands[] = {r->scheduler->workspace, r->total, r->number};
  return tw_op1(at, "tile.next_tile", tw_i32(at->context), 3, operands);
}

/* The next tile's number if the condition holds, else the one that was taken before. */
static MlirValue next_tile_if(const role_t *r, const tw_builder_t *at, MlirValue condition, MlirValue taken) {
  MlirBlock then = mlirBlockCreate(0, NULL, NULL), otherwise = mlirBlockCreate(0, NULL, NULL);
  tw_builder_t in = tw_build_at_end(then, at->location), out = tw_build_at_end(otherwise, at->location);
  MlirValue next = next_tile(r, &in);
  tw_build(&in, "scf.yield", (tw_op_parts_t){.num_operands = 1, .operands = &next});
  tw_build(&out, "scf.yield", (tw_op_parts_t){.num_operands = 1, .operands = &taken});
  return mlirOperationGetResult(tw_build_if(at, condition, then, otherwise), 0);
}

/* In the last iteration of a loop with step 1; behind the loop if it has none. */
static MlirValue take_in_last_iteration(const role_t *r, MlirOperation loop) {
  tw_builder_t before = tw_build_before(loop);
  before.location = r->at.location;
  MlirValue first = mlirOperationGetOperand(loop, 0), end = mlirOperationGetOperand(loop, 1);
  MlirValue last = tw_binary(&before, "arith.subi", tw_i32(before.context), end, constant(&before, 1));
  loop = tw_carry_more(loop, 1, &r->number);
  MlirBlock body = tw_loop_body(loop);
  intptr_t carried = mlirOperationGetNumResults(loop) - 1;
  tw_builder_t in = tw_build_before(mlirBlockGetFirstOperation(body));
  tw_builder_t behind = tw_build_before(mlirOperationGetNextInBlock(loop));
  in.location = behind.location = r->at.location;
  MlirValue now = tw_compare(&in, TW_EQ, tw_loop_iv(loop), last);
  MlirValue next = next_tile_if(r, &in, now, tw_carried(loop, carried));
  tw_extend_yield(body, 1, &next);
  return next_tile_if(r, &behind, tw_compare(&behind, TW_SGE, first, end), mlirOperationGetResult(loop, carried));
}

static bool brings(MlirOperation op) {
  return tw_has_op_like(op, tw_op_loads_by_engine) || tw_has_op_like(op, tw_op_copies_elements);
}

static bool has_last_iteration(MlirOperation op) {
  int64_t step;
  return tw_op_is(op, TW_SCF_FOR) && !tw_has_attr(op, "unsignedCmp") &&
         tw_known_int(mlirOperationGetOperand(op, 2), &step) && step == 1 &&
         mlirTypeEqual(mlirValueGetType(tw_loop_iv(op)), tw_i32(mlirOperationGetContext(op)));
}

/* Where the producer takes a number. Not before its last loop: a block that still has much to do is not the one that
 * finishes first. But early enough for the counter to answer before the producer is done. */
static MlirValue take_in_time(const role_t *r, MlirBlock body) {
  MlirOperation yield = mlirBlockGetTerminator(body), loop = tw_null_op();
  for (MlirOperation op = mlirBlockGetFirstOperation(body); !mlirOperationEqual(op, yield);
       op = mlirOperationGetNextInBlock(op))
    if (mlirOperationGetNumRegions(op) > 0 && brings(op))
      loop = op;
  if (!mlirOperationIsNull(loop) && has_last_iteration(loop))
    return take_in_last_iteration(r, loop);
  tw_builder_t at = tw_build_before(mlirOperationIsNull(loop) ? yield : mlirOperationGetNextInBlock(loop));
  at.location = r->at.location;
  return next_tile(r, &at);
}

/* The number that comes next, at the end of the loop's body. A lane that is alone reads what it posted, too: what
 * positions follow from the assembler wants in a uniform register, and would wait for where the number is taken. */
static MlirValue next_number(role_t *r, MlirBlock body) {
  if (!r->producer)
    return receive(r);
  post(r, tw_binary(&r->at, "arith.addi", tw_i32(r->at.context), take_in_time(r, body), r->step));
  return r->scheduler->gathers ? receive(r) : read_number(r);
}

/* ---- the loop -------------------------------------------------------------------------------------- */

/* A block that passes its arguments on while the first of them is below `total`. */
static MlirBlock condition_block(const role_t *r, intptr_t num, const MlirType *types) {
  MlirLocation locations[MAX_VALUES];
  MlirValue operands[MAX_VALUES + 1];
  for (intptr_t i = 0; i < num; i++)
    locations[i] = r->at.location;
  MlirBlock block = mlirBlockCreate(num, types, locations);
  tw_builder_t at = tw_build_at_end(block, r->at.location);
  for (intptr_t i = 0; i < num; i++)
    operands[1 + i] = mlirBlockGetArgument(block, i);
  operands[0] = tw_compare(&at, TW_SLT, operands[1], r->total);
  tw_build(&at, "scf.condition", (tw_op_parts_t){.num_operands = 1 + num, .operands = operands});
  return block;
}

/* Ends the body with the next number, what the loop carries, and the next stage. */
static void end_body(role_t *r, MlirBlock body) {
  MlirType i32 = tw_i32(r->at.context);
  MlirOperation yield = mlirBlockGetTerminator(body);
  MlirValue operands[MAX_VALUES];
  intptr_t num = 0, carried = mlirOperationGetNumOperands(yield);
  r->at = tw_build_before(yield);
  r->at.location = mlirOperationGetLocation(r->scheduler->func);
  operands[num++] = next_number(r, body);
  for (intptr_t i = 0; i < carried; i++)
    operands[num++] = mlirOperationGetOperand(yield, i);
  MlirValue next = tw_binary(&r->at, "arith.addi", i32, r->stage, constant(&r->at, 1));
  MlirValue wraps = tw_compare(&r->at, TW_EQ, next, constant(&r->at, STAGES));
  operands[num++] = tw_select(&r->at, wraps, constant(&r->at, 0), next);
  operands[num++] = tw_binary(&r->at, "arith.xori", i32, r->parity, tw_unary(&r->at, "arith.extui", i32, wraps));
  tw_build(&r->at, "scf.yield", (tw_op_parts_t){.num_operands = num, .operands = operands});
  mlirOperationDestroy(yield);
}

static void rewrite_loop(const scheduler_t *scheduler, MlirOperation loop, bool producer) {
  tw_builder_t at = tw_build_before(loop);
  at.location = mlirOperationGetLocation(scheduler->func);
  role_t r = {.scheduler = scheduler,
              .producer = producer,
              .at = at,
              .step = mlirOperationGetOperand(loop, 2),
              .total = mlirOperationGetOperand(loop, 1)};
  MlirValue inits[MAX_VALUES];
  MlirType types[MAX_VALUES], i32 = tw_i32(at.context);
  intptr_t num = 0, carried = mlirOperationGetNumResults(loop);
  inits[num++] = mlirOperationGetOperand(loop, 0);
  for (intptr_t i = 0; i < carried; i++)
    inits[num++] = tw_carried_init(loop, i);
  inits[num++] = constant(&at, 0);
  inits[num++] = constant(&at, 0);
  for (intptr_t i = 0; i < num; i++)
    types[i] = mlirValueGetType(inits[i]);
  MlirBlock body = tw_loop_body(loop);
  mlirBlockDetach(body);
  r.number = mlirBlockGetArgument(body, 0);
  r.stage = mlirBlockAddArgument(body, i32, at.location);
  r.parity = mlirBlockAddArgument(body, i32, at.location);
  end_body(&r, body);
  r.at = at;
  MlirRegion regions[] = {tw_region_with(condition_block(&r, num, types)), tw_region_with(body)};
  MlirOperation made = tw_build_while(&at, num, inits, num, types, regions);
  tw_set_attr(made, TW_PERSISTENT, mlirUnitAttrGet(at.context));
  for (intptr_t i = 0; i < carried; i++)
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(loop, i), mlirOperationGetResult(made, 1 + i));
  mlirOperationDestroy(loop);
}

/* ---- the kernel -------------------------------------------------------------------------------------- */

static bool is_marked(MlirOperation op) { return tw_op_is(op, TW_SCF_FOR) && tw_has_attr(op, TW_DYNAMIC_SCHEDULE); }

static MlirValue alloc_barriers(const tw_builder_t *at, int64_t arrivals, bool numbers) {
  tw_attr_t attrs[] = {{"arrivals", mlirIntegerAttrGet(tw_i32(at->context), arrivals)},
                       {"numbers", mlirUnitAttrGet(at->context)}};
  MlirType type = tw_barriers_type_get(at->context, STAGES);
  MlirOperation made =
      tw_build(at, "tile.alloc_barriers",
               (tw_op_parts_t){.num_results = 1, .results = &type, .num_attrs = 1 + numbers, .attrs = attrs});
  return mlirOperationGetResult(made, 0);
}

/* The marked loop right in a role's region. */
static MlirOperation loop_of(MlirOperation roles, int region) {
  MlirOperation op = mlirBlockGetFirstOperation(tw_region_block(roles, region));
  while (!mlirOperationIsNull(op) && !is_marked(op))
    op = mlirOperationGetNextInBlock(op);
  return op;
}

static bool fits(MlirOperation loop) { return mlirOperationGetNumResults(loop) + 1 + STAGES <= MAX_VALUES; }

static const char *why_not(scheduler_t *t) {
  if (mlirOperationIsNull(t->roles))
    return "there is no producer warp to fetch the next tile";
  if (tw_attr_int(t->roles, "consumer_groups", 1) > 1)
    return "its consumer groups ping-pong";
  for (int region = 0; region < 2; region++)
    t->loops[region] = loop_of(t->roles, region);
  if (mlirOperationIsNull(t->loops[0]) || mlirOperationIsNull(t->loops[1]))
    return "a role has no loop over the tiles";
  return fits(t->loops[0]) && fits(t->loops[1]) ? NULL : "a role's loop over the tiles carries too many values";
}

static void rewrite(scheduler_t *t) {
  enum { FEW_WARPS = 4 };
  MlirType i64 = tw_i64(mlirOperationGetContext(t->func));
  tw_add_words(t->func, 1, &i64, &t->workspace);
  t->gathers = tw_has_op_like(t->roles, tw_op_copies_elements);
  int64_t consumers = tw_num_warps(t->func, FEW_WARPS);
  int64_t producers = t->gathers ? tw_attr_int(t->roles, "producer_warps", 1) : 0;
  tw_builder_t at = tw_build_before(t->roles);
  at.location = mlirOperationGetLocation(t->func);
  t->full = alloc_barriers(&at, producers ? producers : 1, true);
  t->empty = alloc_barriers(&at, consumers + producers, false);
  for (int region = 0; region < 2; region++)
    rewrite_loop(t, t->loops[region], region == 0);
  tw_launch_set_dynamic(t->func, true);
}

bool tw_dynamic_scheduler(MlirOperation func) {
  tw_ops_t marked = tw_ops_in(func, is_marked, MlirWalkPreOrder),
           roles = tw_ops_in(func, tw_is_roles, MlirWalkPreOrder);
  scheduler_t t = {.func = func, .roles = roles.count == 1 ? roles.at[0] : tw_null_op()};
  const char *reason = marked.count ? why_not(&t) : NULL;
  if (reason)
    tw_op_remark(func, "uses static tile scheduling: %s", reason);
  for (int i = 0; reason && i < marked.count; i++)
    mlirOperationRemoveAttributeByName(marked.at[i], tw_str(TW_DYNAMIC_SCHEDULE));
  if (marked.count && !reason)
    rewrite(&t);
  tw_ops_free(&marked);
  tw_ops_free(&roles);
  return true;
}
