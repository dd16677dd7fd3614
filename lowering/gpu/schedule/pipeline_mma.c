/* pipeline_mma.c - tile-pipeline-mma: a product on computed operands runs one iteration late
 *
 * Before, the second product waits for what is made of the first one's result, and neither can run meanwhile:
 *
 *   %r = scf.for %j = %lb to %ub step %c iter_args(%acc = %init) {
 *     %s = tile.mma %q, %k, %zero {tile.family = ..., tile.places = "ss"}           // %k: loaded at %j
 *     %p = ... %s ...                                       // for example a softmax
 *     %v = tile.load %V[%j]
 *     %a = ... %acc ...                                     // for example a rescaling
 *     %d = tile.mma %p, %v, %a {tile.family = ..., tile.places = "rs"}
 *     yield %d
 *   }
 *
 * After, the loop carries the operands %a and %p in place of the result %d. The product of the iteration before starts
 * right after the first one of this iteration, so that it runs while %p is made:
 *
 *   %c:2 = scf.for %j = %lb to %ub step %c iter_args(%a' = %init, %p' = 0) {
 *     %v = tile.load %V[%j > %lb ? %j - %c : -1]
 *     %s = tile.mma %q, %k, %zero
 *     %acc = tile.mma %p', %v, %a'
 *     %p = ... %s ...
 *     %a = ... %acc ...
 *     yield %a, %p
 *   }
 *   %v = tile.load %V[last %j, or -1]
 *   %r = tile.mma %c#1, %v, %c#0
 *
 * The same is done where %p is computed from loads alone (a normalized or scaled tile): these stand in front of the
 * late product, which then runs while %p is computed; not for a product of few columns, which is shorter than that, and
 * not where little is computed and the product is the loop's only one and adds up from zero: it runs on without, step
 * by step of k. An operand of tf32 that is loaded and rounded is such a one. (Loaded alone, it would be written to
 * registers that a product under way reads, as the assembler sees it, which then waits for each instruction.)
 *
 * There is neither a prologue nor a guard: the tile at index -1 lies outside of the array, so it is zero, and the first
 * product adds 0 * 0 to %init. A gathered %v is masked instead. If another loop takes %r and goes on in the same way (a
 * loop that was split where a mask begins), it takes %c#0 and %c#1 instead, and its first iteration has the last
 * product of the loop before.
 *
 * What must hold: both products are marked by tile-select-mma, so they run by themselves; %p depends on the first, or
 * on loads that go through shared memory, and is of 16 or 32 bits; %d is only yielded; %v is loaded for this product
 * only, at a position that depends on nothing that the loop carries; the loop writes to no array; and the registers
 * suffice for all accumulators and %p at once. Else the loop stays, with a remark where only registers were missing, or
 * where %v is read by others, too (latent keys that are the values). */
#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/gpu/machine/copy_engine.h"
#include "lowering/ir.h"
#include "lowering/launch_record.h"
#include "lowering/layout/memory.h"
#include "lowering/loops.h"
#include "lowering/passes.h"
#include "tilewright/dialect.h"

/* A loop and the product in it that will run late. */
typedef struct {
  MlirOperation loop, product, load;
  intptr_t position; /* of the accumulator among the carried values */
  tw_slice_t first;  /* what comes before it: the products that run beside it, or the loads behind the operand */
  bool by_loads;
} rotation_t;

/* What a rotated loop leaves to do. */
typedef struct {
  MlirOperation product;         /* after the loop; null when another loop took it over */
  MlirValue acc, lhs, iv, valid; /* operands of the product; last induction value, and whether there is one */
  MlirValue rhs_in_loop;         /* the operand that the loop's body computed from `body_iv`; dead */
  MlirValue body_iv;
} loop_rest_t;

typedef struct {
  loop_rest_t *rests; /* owned */
  int num_rests;
  int num_warps;
} rotator_t;

/* ---- what can be rotated ------------------------------------------------------------------------- */

static bool is_marked(MlirOperation op) { return tw_op_is_product(op) && tw_is_async_mma(op); }

static bool takes_registers(MlirOperation mma) {
  return tw_mma_place(mma, 0) == TW_PLACE_REGISTERS && tw_mma_place(mma, 1) == TW_PLACE_SHARED;
}

static bool is_effect(MlirOperation op) {
  return !tw_is_arithmetic(op) && tw_op_form(op) != TW_FORM_CONTROL && !tw_op_is_product(op) && !tw_op_loads(op);
}

static bool has_effects(MlirOperation loop) { return tw_has_op_like(loop, is_effect); }

/* The load of an operand that is nothing but a view of it. */
static MlirOperation viewed_load(MlirValue value) {
  MlirOperation op = tw_def(value);
  while (!mlirOperationIsNull(op) && (tw_op_is(op, TW_TILE_PERMUTE) || tw_op_is(op, TW_TILE_RESHAPE)) &&
         tw_has_one_use(mlirOperationGetResult(op, 0)))
    op = tw_def(mlirOperationGetOperand(op, 0));
  bool alone = !mlirOperationIsNull(op) && mlirOperationEqual(op, tw_load_behind(value)) &&
               tw_has_one_use(mlirOperationGetResult(op, 0));
  return alone ? op : tw_null_op();
}

static bool reads_carried(const tw_slice_t *slice, MlirOperation loop) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(loop); i++)
    if (tw_slice_reads(slice, tw_carried(loop, i)))
      return true;
  return false;
}

/* Whether the operand is loaded at a position that follows from the induction variable. */
static bool loads_by_induction(MlirOperation loop, MlirValue value) {
  tw_slice_t slice = {.block = tw_loop_body(loop)};
  tw_slice_add(&slice, value);
  bool ok = !reads_carried(&slice, loop) && tw_slice_reads(&slice, tw_loop_iv(loop));
  tw_slice_free(&slice);
  return ok;
}

/* The marked products that `value` depends on and that depend on no other: with all that they need. */
static bool first_products(MlirOperation loop, MlirValue value, tw_slice_t *out) {
  MlirBlock body = tw_loop_body(loop);
  tw_slice_t all = {.block = body};
  *out = (tw_slice_t){.block = body};
  tw_slice_add(&all, value);
  bool found = false;
  TW_EACH_OP(op, body) {
    if (!is_marked(op) || !tw_slice_has(&all, op))
      continue;
    tw_slice_t own = {.block = body};
    tw_slice_add_op(&own, op);
    bool second = false;
    for (MlirOperation other = mlirBlockGetFirstOperation(body); !mlirOperationEqual(other, op);
         other = mlirOperationGetNextInBlock(other))
      second = second || (is_marked(other) && tw_slice_has(&own, other));
    tw_slice_free(&own);
    if (!second)
      tw_slice_add_op(out, op);
    found = found || !second;
  }
  tw_slice_free(&all);
  return found;
}

/* Whether the left operand has words of 32 bits, which are rounded between the load and the product. */
static bool takes_words(MlirOperation product) {
  return tw_memory_bits(tw_element(mlirValueGetType(mlirOperationGetOperand(product, 0)))) == 32;
}

/* The loads that the left operand is computed from, with all that they need. */
static bool first_loads(MlirOperation loop, MlirOperation product, tw_slice_t *out) {
  tw_ops_t loads = tw_loads_behind(product, 0);
  MlirOperation alone = tw_load_behind(mlirOperationGetOperand(product, 0));
  if (!mlirOperationIsNull(alone) && mlirBlockEqual(mlirOperationGetBlock(alone), tw_loop_body(loop)) &&
      takes_words(product))
    tw_ops_add(&loads, alone);
  *out = (tw_slice_t){.block = tw_loop_body(loop)};
  for (int i = 0; i < loads.count; i++)
    tw_slice_add_op(out, loads.at[i]);
  bool any = loads.count > 0;
  tw_ops_free(&loads);
  return any;
}

/* Words of 32 bits that each thread has of a tile. */
static int64_t words(MlirType tile, int num_warps) {
  return tw_count(tile) * tw_memory_bits(tw_element(tile)) / 32 / TW_WARP_LANES / num_warps;
}

/* Words that a thread holds once the product is rotated: every accumulator, the operand, and beside it the next one,
 * in float32, where that is computed meanwhile. */
static int64_t words_held(const rotation_t *r, int num_warps) {
  int operands = !r->by_loads ? 1 : takes_words(r->product) ? 2 : 3;
  int64_t sum = operands * words(mlirValueGetType(mlirOperationGetOperand(r->product, 0)), num_warps);
  MlirBlock body = tw_loop_body(r->loop);
  TW_EACH_OP(op, body)
    if (tw_op_is_product(op))
      sum += words(mlirValueGetType(mlirOperationGetResult(op, 0)), num_warps);
  return sum;
}

/* Whether the product takes less time than an operand that is computed from loads: beside it nothing would be hidden,
 * and a product behind the loop keeps blocks from sharing its sum (grid/split_k.c), which few columns ask for. */
static bool is_short(MlirOperation product) {
  enum { SHORT_COLUMNS = 64 };
  return tw_extent(mlirValueGetType(mlirOperationGetResult(product, 0)), 1) < SHORT_COLUMNS;
}

static bool is_product(MlirOperation op, const void *other) {
  return tw_op_is_product(op) && !mlirOperationEqual(op, *(const MlirOperation *)other);
}

/* Whether a load is of a tile that a producer may bring. */
static bool may_be_brought(MlirOperation load) {
  intptr_t first;
  return tw_op_loads_tile(load) && tw_engine_is_allowed(load) && tw_engine_knows(tw_access_array(load, &first));
}

/* Whether a producer may bring all tiles of a loop. */
static bool has_producer(MlirOperation loop) {
  enum { LEAST_STAGES = 2 };
  MlirBlock body = tw_loop_body(loop);
  bool may = tw_hint_num_stages(loop, LEAST_STAGES) >= LEAST_STAGES && !tw_str_is(tw_hint_roles(loop), "none");
  TW_EACH_OP(op, body)
    may =
        may && (!tw_op_loads(op) || !tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))) || may_be_brought(op));
  return may;
}

/* Whether the product had better start each step of k when its part of the operand is made (roles/mma_overlap.h): it
 * runs on into the next iteration as it is, for it is the loop's only one and adds up from zero, and there will be a
 * producer. Words that are only rounded are loaded as fast as they are multiplied; they are ready when it starts late.
 */
static bool gains_by_steps(MlirOperation loop, MlirOperation product) {
  MlirOpOperand use = tw_only_use(mlirOperationGetResult(product, 0));
  if (mlirOpOperandIsNull(use) || !mlirOperationEqual(mlirOpOperandGetOwner(use), tw_loop_yield(loop)))
    return false;
  return is_marked(product) && takes_registers(product) && !takes_words(product) && tw_mma_gains_by_steps(product) &&
         tw_is_zero(tw_carried_init(loop, mlirOpOperandGetOperandNumber(use))) && tw_has_loads_behind(product, 0) &&
         mlirOperationIsNull(tw_find_op(loop, is_product, &product)) && has_producer(loop);
}

static void mark_steps(MlirOperation loop) {
  MlirBlock body = tw_loop_body(loop);
  TW_EACH_OP(op, body)
    if (tw_op_is_product(op) && gains_by_steps(loop, op))
      tw_set_attr(op, TW_MMA_STEPS, mlirUnitAttrGet(mlirOperationGetContext(op)));
}

/* Tells why a product that waits for another one cannot run late: its right operand is not its own. */
static void explain_shared(MlirOperation loop, MlirOperation product) {
  MlirOperation load = tw_load_behind(mlirOperationGetOperand(product, 1));
  tw_slice_t first;
  bool waits = first_products(loop, mlirOperationGetOperand(product, 0), &first);
  tw_slice_free(&first);
  if (waits && !mlirOperationIsNull(load) && tw_loop_around(load) == loop.ptr)
    tw_op_remark(product, "waits for the product before it: pipelined, it would read its right operand an iteration "
                          "after what else reads that");
}

/* On success `out->first` must be freed. */
static bool can_rotate(MlirOperation loop, MlirOperation product, int num_warps, rotation_t *out) {
  *out = (rotation_t){.loop = loop, .product = product};
  if (!is_marked(product) || !takes_registers(product))
    return false;
  MlirValue lhs = mlirOperationGetOperand(product, 0), rhs = mlirOperationGetOperand(product, 1);
  MlirOpOperand use = tw_only_use(mlirOperationGetResult(product, 0));
  if (mlirOpOperandIsNull(use) || !mlirOperationEqual(mlirOpOperandGetOwner(use), tw_loop_yield(loop)))
    return false;
  out->position = mlirOpOperandGetOperandNumber(use);
  out->load = viewed_load(rhs);
  if (mlirOperationIsNull(out->load))
    explain_shared(loop, product);
  if (mlirOperationIsNull(out->load) || !loads_by_induction(loop, rhs))
    return false;
  if (!first_products(loop, lhs, &out->first)) {
    out->by_loads = !mlirValueIsABlockArgument(lhs) && !is_short(product) && !tw_has_attr(product, TW_MMA_STEPS) &&
                    first_loads(loop, product, &out->first);
    if (!out->by_loads)
      return false;
  }
  bool ok = !tw_slice_reads(&out->first, tw_carried(loop, out->position));
  int64_t held = words_held(out, num_warps);
  if (ok && held > tw_register_budget(loop, TW_BUDGET_LATE_MMA)) {
    tw_op_remark(product, "waits for the product before it: pipelined, it would take %lld registers a thread",
                 (long long)held);
    ok = false;
  }
  if (!ok)
    tw_slice_free(&out->first);
  return ok;
}

/* ---- the load, one iteration late ------------------------------------------------------------------ */

/* The index that moves with the loop. */
static intptr_t moving_index(const rotation_t *r) {
  intptr_t i = 1;
  for (; i + 1 < mlirOperationGetNumOperands(r->load); i++) {
    tw_slice_t slice = {.block = tw_loop_body(r->loop)};
    tw_slice_add(&slice, mlirOperationGetOperand(r->load, i));
    bool moves = tw_slice_reads(&slice, tw_loop_iv(r->loop));
    tw_slice_free(&slice);
    if (moves)
      break;
  }
  return i;
}

/* The right operand as the iteration at `iv` has it, or zeros where `valid` is false. */
static MlirValue late_operand(const tw_builder_t *at, const rotation_t *r, MlirValue iv, MlirValue valid) {
  tw_map_t map = {0};
  tw_map_one(&map, tw_loop_iv(r->loop), iv);
  MlirValue made = tw_copy_slice(at, mlirOperationGetOperand(r->product, 1), tw_loop_body(r->loop), &map);
  MlirOperation load = tw_def(tw_map_value(&map, mlirOperationGetResult(r->load, 0)));
  tw_map_free(&map);
  if (tw_op_gathers(load)) {
    MlirValue all = mlirOperationGetResult(load, 0), masked = tw_gather_if(load, valid);
    made = mlirValueEqual(made, all) ? masked : made;
    mlirValueReplaceAllUsesOfWith(all, masked);
    mlirOperationDestroy(load);
    return made;
  }
  tw_access_check(load);
  intptr_t moving = moving_index(r);
  MlirValue index = mlirOperationGetOperand(load, moving);
  tw_builder_t before = tw_build_before(load);
  MlirValue outside = tw_const_int(&before, mlirValueGetType(index), -1);
  mlirOperationSetOperand(load, moving, tw_select(&before, valid, index, outside));
  tw_set_int(load, "padding", tw_i32(at->context), TW_PADDING_ZERO);
  return made;
}

static MlirOperation build_product(const tw_builder_t *at, MlirOperation like, MlirValue lhs, MlirValue rhs,
                                   MlirValue acc) {
  MlirOperation clone = mlirOperationClone(like);
  MlirValue operands[] = {lhs, rhs, acc};
  for (int i = 0; i < 3; i++)
    mlirOperationSetOperand(clone, i, operands[i]);
  mlirBlockInsertOwnedOperationBefore(at->block, at->before, clone);
  return clone;
}

/* ---- loops that go on with what another left ------------------------------------------------------- */

/* Whether two values are computed in the same way, one from `iv`, the other from `other_iv`. */
static bool same_of(MlirValue x, MlirValue iv, MlirValue y, MlirValue other_iv) {
  if (mlirValueEqual(x, y))
    return true;
  if (mlirValueEqual(x, iv) && mlirValueEqual(y, other_iv))
    return true;
  MlirOperation a = tw_def(x), b = tw_def(y);
  if (mlirOperationIsNull(a) || mlirOperationIsNull(b) || !mlirStringRefEqual(tw_op_name(a), tw_op_name(b)) ||
      mlirOperationGetNumOperands(a) != mlirOperationGetNumOperands(b) ||
      mlirOperationGetNumAttributes(a) != mlirOperationGetNumAttributes(b) || mlirOperationGetNumRegions(a) > 0 ||
      !mlirTypeEqual(mlirValueGetType(x), mlirValueGetType(y)))
    return false;
  for (intptr_t i = 0; i < mlirOperationGetNumAttributes(a); i++)
    if (!mlirAttributeEqual(mlirOperationGetAttribute(a, i).attribute, mlirOperationGetAttribute(b, i).attribute))
      return false;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(a); i++)
    if (!same_of(mlirOperationGetOperand(a, i), iv, mlirOperationGetOperand(b, i), other_iv))
      return false;
  return true;
}

/* The rest that this loop can take over: the accumulator starts as its product's result. */
static loop_rest_t *rest_before(rotator_t *all, const rotation_t *r) {
  MlirValue init = tw_carried_init(r->loop, r->position);
  for (int i = 0; i < all->num_rests; i++) {
    loop_rest_t *rest = &all->rests[i];
    if (!mlirOperationIsNull(rest->product) && mlirValueEqual(init, mlirOperationGetResult(rest->product, 0)) &&
        tw_has_one_use(init) && mlirBlockEqual(mlirOperationGetBlock(rest->product), mlirOperationGetBlock(r->loop)) &&
        mlirTypeEqual(mlirValueGetType(rest->lhs), mlirValueGetType(mlirOperationGetOperand(r->product, 0))) &&
        mlirTypeEqual(mlirValueGetType(rest->iv), mlirValueGetType(tw_loop_iv(r->loop))) &&
        same_of(rest->rhs_in_loop, rest->body_iv, mlirOperationGetOperand(r->product, 1), tw_loop_iv(r->loop)))
      return rest;
  }
  return NULL;
}

/* ---- rotation ------------------------------------------------------------------------------------ */

/* Moves the ops of the slice to the start of the block; returns the first that is not of it. */
static MlirOperation move_to_start(const tw_slice_t *slice) {
  MlirOperation rest = mlirBlockGetFirstOperation(slice->block);
  while (tw_slice_has(slice, rest))
    rest = mlirOperationGetNextInBlock(rest);
  for (MlirOperation op = rest, next; !mlirOperationIsNull(op); op = next) {
    next = mlirOperationGetNextInBlock(op);
    if (tw_slice_has(slice, op))
      mlirOperationMoveBefore(op, rest);
  }
  return rest;
}

/* lb + (ub - lb - 1) / step * step, for lb < ub */
static MlirValue last_induction(const tw_builder_t *at, MlirOperation loop) {
  MlirValue lb = mlirOperationGetOperand(loop, 0), ub = mlirOperationGetOperand(loop, 1);
  MlirValue step = mlirOperationGetOperand(loop, 2);
  MlirType type = mlirValueGetType(lb);
  MlirValue last = tw_binary(at, "arith.subi", type, ub, tw_const_int(at, type, 1));
  int64_t known;
  if (tw_known_int(step, &known) && known == 1)
    return last;
  MlirValue distance = tw_binary(at, "arith.subi", type, last, lb);
  distance = tw_binary(at, "arith.divui", type, distance, step);
  return tw_binary(at, "arith.addi", type, lb, tw_binary(at, "arith.muli", type, distance, step));
}

static int64_t greater(MlirOperation loop) { return tw_has_attr(loop, "unsignedCmp") ? TW_UGT : TW_SGT; }

static MlirValue either(const tw_builder_t *at, MlirValue x, MlirValue y) {
  return y.ptr ? tw_binary(at, "arith.ori", mlirValueGetType(x), x, y) : x;
}

/* Puts the late product into the body, which carries its operands from now on. */
static void rotate_body(rotation_t *r, MlirValue before_iv, MlirValue before_valid) {
  MlirBlock body = tw_loop_body(r->loop);
  MlirValue acc = tw_carried(r->loop, r->position);
  MlirValue lhs = mlirBlockGetArgument(body, mlirBlockGetNumArguments(body) - 1), iv = tw_loop_iv(r->loop);
  MlirOperation rest = move_to_start(&r->first);
  tw_builder_t top = tw_build_before(mlirBlockGetFirstOperation(body));
  top.location = mlirOperationGetLocation(r->product);
  MlirValue lb = mlirOperationGetOperand(r->loop, 0), step = mlirOperationGetOperand(r->loop, 2);
  MlirValue late = tw_compare(&top, greater(r->loop), iv, lb);
  MlirValue previous = tw_binary(&top, "arith.subi", mlirValueGetType(iv), iv, step);
  if (before_iv.ptr)
    previous = tw_select(&top, late, previous, before_iv);
  MlirValue rhs = late_operand(&top, r, previous, either(&top, late, before_valid));
  tw_builder_t at = tw_build_before(rest);
  MlirOperation product = build_product(&at, r->product, lhs, rhs, acc);
  mlirValueReplaceAllUsesExcept(acc, mlirOperationGetResult(product, 0), 1, &product);
  MlirOperation yield = tw_loop_yield(r->loop);
  MlirValue next_acc = mlirOperationGetOperand(r->product, 2), next_lhs = mlirOperationGetOperand(r->product, 0);
  mlirOperationSetOperand(yield, r->position, next_acc);
  tw_extend_yield(body, 1, &next_lhs);
}

static void rotate(rotator_t *all, rotation_t *r) {
  loop_rest_t *before = rest_before(all, r), rest = {.rhs_in_loop = mlirOperationGetOperand(r->product, 1)};
  tw_builder_t at = tw_build_before(r->loop);
  MlirValue lhs = mlirOperationGetOperand(r->product, 0);
  MlirValue start = before ? before->lhs : tw_const_float(&at, mlirValueGetType(lhs), 0);
  MlirValue before_iv = before ? before->iv : (MlirValue){NULL};
  MlirValue before_valid = before ? before->valid : (MlirValue){NULL};
  if (before)
    mlirOperationSetOperand(r->loop, TW_FOR_INITS + r->position, before->acc);
  r->loop = tw_carry_more(r->loop, 1, &start);
  rotate_body(r, before_iv, before_valid);

  MlirOperation next = mlirOperationGetNextInBlock(r->loop);
  tw_builder_t after = tw_build_before(next);
  after.location = mlirOperationGetLocation(r->product);
  MlirValue ran =
      tw_compare(&after, greater(r->loop), mlirOperationGetOperand(r->loop, 1), mlirOperationGetOperand(r->loop, 0));
  rest.iv = last_induction(&after, r->loop);
  if (before_iv.ptr)
    rest.iv = tw_select(&after, ran, rest.iv, before_iv);
  rest.valid = either(&after, ran, before_valid);
  rest.acc = mlirOperationGetResult(r->loop, r->position);
  rest.lhs = mlirOperationGetResult(r->loop, mlirOperationGetNumResults(r->loop) - 1);
  rest.body_iv = tw_loop_iv(r->loop);
  MlirValue rhs = late_operand(&after, r, rest.iv, rest.valid);
  rest.product = build_product(&after, r->product, rest.lhs, rhs, rest.acc);
  mlirValueReplaceAllUsesExcept(rest.acc, mlirOperationGetResult(rest.product, 0), 1, &rest.product);
  if (before) { /* its product runs in this loop's first iteration */
    MlirValue operand = mlirOperationGetOperand(before->product, 1);
    mlirOperationDestroy(before->product);
    before->product.ptr = NULL;
    tw_erase_dead(tw_def(operand));
  }
  mlirOperationDestroy(r->product);
  tw_slice_free(&r->first);
  all->rests = tw_room(all->rests, (size_t)all->num_rests, sizeof *all->rests);
  all->rests[all->num_rests++] = rest;
}

/* ---- the pass ------------------------------------------------------------------------------------ */

static bool rotate_next(rotator_t *all, MlirOperation *loop) {
  MlirBlock body = tw_loop_body(*loop);
  TW_EACH_OP(op, body) {
    rotation_t r;
    if (can_rotate(*loop, op, all->num_warps, &r)) {
      rotate(all, &r);
      *loop = r.loop;
      return true;
    }
  }
  return false;
}

bool tw_run_pipeline_mma(MlirOperation func) {
  rotator_t all = {.num_warps = (int)tw_num_warps(func, 0)};
  if (!tw_has_async_mma(func) || all.num_warps == 0)
    return true;
  tw_ops_t loops = tw_loops_in(func, MlirWalkPreOrder);
  for (int i = 0; i < loops.count; i++) {
    if (has_effects(loops.at[i]))
      continue;
    mark_steps(loops.at[i]);
    while (rotate_next(&all, &loops.at[i]))
      ;
  }
  for (int i = 0; i < all.num_rests; i++)
    tw_erase_dead(tw_def(all.rests[i].rhs_in_loop));
  free(all.rests);
  tw_ops_free(&loops);
  return true;
}
