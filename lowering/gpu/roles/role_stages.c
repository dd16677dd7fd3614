/* role_stages.c - fills, waits for and releases the stages of a role's buffers. See role.h */
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/barrier.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/roles/role.h"
#include "lowering/loops.h"

/* ---- where multibuffers stand --------------------------------------------------------------------------- */

/* A multibuffer of one stage that is filled once. */
static bool stands_still(const tw_multibuffer_t *multibuffer) {
  return !tw_comes_round(multibuffer) && multibuffer->stages == 1;
}

/* The next stage; where it wraps, the parity flips. */
static void advance(tw_role_t *r, int multibuffer) {
  tw_stage_state_t *state = &r->multibuffers[multibuffer];
  MlirType i32 = tw_i32(r->at.context);
  state->last = state->stage;
  if (stands_still(&r->plan->multibuffers[multibuffer]))
    return;
  MlirValue next = tw_binary(&r->at, "arith.addi", i32, state->stage, tw_role_int(r, 1));
  MlirValue wraps = tw_compare(&r->at, TW_EQ, next, tw_role_int(r, r->plan->multibuffers[multibuffer].stages));
  MlirValue flip = tw_unary(&r->at, "arith.extui", i32, wraps);
  state->stage = tw_select(&r->at, wraps, tw_role_int(r, 0), next);
  state->parity = tw_binary(&r->at, "arith.xori", i32, state->parity, flip);
}

void tw_skip_stages(tw_role_t *r, MlirValue trips) {
  MlirType i32 = tw_i32(r->at.context);
  for (int i = 0; i < r->plan->num_multibuffers; i++) {
    const tw_multibuffer_t *multibuffer = &r->plan->multibuffers[i];
    tw_stage_state_t *state = &r->multibuffers[i];
    MlirValue stages = tw_role_int(r, multibuffer->stages);
    MlirValue more = tw_binary(&r->at, "arith.muli", i32, trips, tw_role_int(r, multibuffer->num_fills));
    MlirValue at = tw_binary(&r->at, "arith.addi", i32, state->stage, more);
    MlirValue rounds = tw_binary(&r->at, "arith.divui", i32, at, stages);
    state->stage = tw_binary(&r->at, "arith.remui", i32, at, stages);
    state->parity = tw_binary(&r->at, "arith.xori", i32, state->parity,
                              tw_binary(&r->at, "arith.andi", i32, rounds, tw_role_int(r, 1)));
  }
}

/* Whether `op` is around a fill of the multibuffer, so that it carries where that stands. */
static bool carries(const tw_role_t *r, MlirOperation op, int multibuffer) {
  for (int f = 0; !stands_still(&r->plan->multibuffers[multibuffer]) && f < r->plan->num_fills; f++)
    if (r->plan->fills[f].multibuffer == multibuffer && tw_is_inside(r->plan->fills[f].copies[0], op))
      return true;
  return false;
}

intptr_t tw_stage_states(tw_role_t *r, MlirOperation op, MlirValue **out) {
  intptr_t n = 0;
  for (int multibuffer = 0; multibuffer < r->plan->num_multibuffers; multibuffer++) {
    if (!carries(r, op, multibuffer))
      continue;
    out[n++] = &r->multibuffers[multibuffer].stage;
    out[n++] = &r->multibuffers[multibuffer].parity;
    if (r->plan->multibuffers[multibuffer].late && !r->producer)
      out[n++] = &r->multibuffers[multibuffer].last;
  }
  return n;
}

/* ---- barriers ------------------------------------------------------------------------------------ */

/* `how`: "gathered", "once" or null. */
static void wait_for(tw_role_t *r, MlirValue barriers, MlirValue stage, MlirValue parity, const char *how) {
  MlirValue operands[] = {barriers, stage, parity};
  tw_attr_t attr = {how, mlirUnitAttrGet(r->at.context)};
  tw_build(&r->at, "tile.barrier_wait",
           (tw_op_parts_t){.num_operands = 3, .operands = operands, .num_attrs = how != NULL, .attrs = &attr});
}

/* `meet`: lanes that read the stage have not met since. */
static void give_back(tw_role_t *r, const tw_stage_fill_t *fill, MlirValue stage, MlirValue condition, bool meet) {
  const tw_multibuffer_t *multibuffer = &r->plan->multibuffers[fill->multibuffer];
  if (!tw_comes_round(multibuffer))
    return;
  MlirValue operands[] = {multibuffer->empty, stage, condition};
  tw_attr_t attrs[2];
  intptr_t n = 0;
  if (meet)
    attrs[n++] = (tw_attr_t){"together", mlirUnitAttrGet(r->at.context)};
  if (multibuffer->multicast)
    attrs[n++] = (tw_attr_t){TW_MULTICAST, mlirUnitAttrGet(r->at.context)};
  tw_build(
      &r->at, "tile.barrier_arrive",
      (tw_op_parts_t){.num_operands = condition.ptr ? 3 : 2, .operands = operands, .num_attrs = n, .attrs = attrs});
}

static void expect(tw_role_t *r, const tw_multibuffer_t *multibuffer, int64_t bytes, MlirValue stage) {
  MlirValue operands[] = {multibuffer->full, stage};
  tw_attr_t attr = {"bytes", mlirIntegerAttrGet(tw_i32(r->at.context), bytes)};
  tw_build(&r->at, "tile.barrier_expect",
           (tw_op_parts_t){.num_operands = 2, .operands = operands, .num_attrs = 1, .attrs = &attr});
}

/* The arrival of all threads that gather. */
static void arrive_gathered(tw_role_t *r, const tw_multibuffer_t *multibuffer, MlirValue stage) {
  MlirValue operands[] = {multibuffer->full, stage};
  tw_attr_t attr = {"gathered", mlirUnitAttrGet(r->at.context)};
  tw_build(&r->at, "tile.barrier_arrive",
           (tw_op_parts_t){.num_operands = 2, .operands = operands, .num_attrs = 1, .attrs = &attr});
}

/* ---- copies -------------------------------------------------------------------------------------- */

/* The same copy of rows, into the stage. */
static void gather(tw_role_t *r, MlirOperation copy, MlirValue buffer, MlirValue stage) {
  MlirValue operands[TW_MAX_RANK + 4];
  intptr_t n = 0;
  for (; n < tw_copy_buffer_operand(copy); n++)
    operands[n] = tw_role_value(r, mlirOperationGetOperand(copy, n));
  operands[n++] = buffer;
  operands[n++] = stage;
  MlirOperation made = tw_build(&r->at, "tile.async_gather", (tw_op_parts_t){.num_operands = n, .operands = operands});
  tw_copy_attrs(copy, made);
}

static void load(tw_role_t *r, MlirOperation copy, MlirValue buffer, MlirValue full, MlirValue stage) {
  MlirValue operands[TW_MAX_RANK + 5];
  intptr_t n = 0;
  for (; n < tw_copy_buffer_operand(copy); n++)
    operands[n] = tw_role_value(r, mlirOperationGetOperand(copy, n));
  operands[n++] = buffer;
  operands[n++] = stage;
  operands[n++] = full;
  operands[n++] = stage;
  tw_attr_t attrs[3];
  intptr_t num_attrs = 0;
  if (tw_has_attr(copy, TW_CACHE))
    attrs[num_attrs++] = (tw_attr_t){"cache", tw_attr(copy, TW_CACHE)};
  if (tw_has_attr(copy, "order"))
    attrs[num_attrs++] = (tw_attr_t){"order", tw_attr(copy, "order")};
  if (tw_has_attr(copy, TW_MULTICAST))
    attrs[num_attrs++] = (tw_attr_t){TW_MULTICAST, tw_attr(copy, TW_MULTICAST)};
  tw_build(&r->at, "tile.tma_load",
           (tw_op_parts_t){.num_operands = n, .operands = operands, .num_attrs = num_attrs, .attrs = attrs});
}

/* Waits for the stage that the multibuffer comes to next. A phase does not end before all have arrived who gather into
 * it: all of them may wait. One that the accelerator alone fills goes on without the producer's other warps. */
static void wait_until_empty(tw_role_t *r, int number) {
  const tw_stage_state_t *state = &r->multibuffers[number];
  const tw_multibuffer_t *multibuffer = &r->plan->multibuffers[number];
  wait_for(r, multibuffer->empty, state->stage,
           tw_binary(&r->at, "arith.xori", tw_i32(r->at.context), state->parity, tw_role_int(r, 1)),
           r->plan->fills[multibuffer->first].gathers ? NULL : "once");
}

/* Before the first of a fill the producer waits for the stage; after the last the multibuffer moves on. What threads
 * gather comes after what the accelerator is asked for, which is done sooner. */
void tw_emit_copy(tw_role_t *r, MlirOperation copy) {
  int f = tw_fill_of(r->plan, copy);
  const tw_stage_fill_t *fill = &r->plan->fills[f];
  const tw_multibuffer_t *multibuffer = &r->plan->multibuffers[fill->multibuffer];
  tw_stage_state_t *state = &r->multibuffers[fill->multibuffer];
  if (mlirOperationEqual(copy, fill->copies[0])) {
    r->fills[f] = *state;
    if (r->producer && tw_comes_round(multibuffer))
      wait_until_empty(r, fill->multibuffer);
    if (r->producer && tw_announced_bytes(fill) > 0)
      expect(r, multibuffer, tw_announced_bytes(fill), state->stage);
  }
  for (int c = 0; r->producer && c < fill->num_copies; c++)
    if (mlirOperationEqual(copy, fill->copies[c]) && !tw_op_has(copy, TW_BY_ELEMENT))
      load(r, copy, multibuffer->buffers[c], multibuffer->full, state->stage);
  if (!mlirOperationEqual(copy, fill->copies[fill->num_copies - 1]))
    return;
  for (int c = 0; r->producer && c < fill->num_copies; c++)
    if (tw_op_has(fill->copies[c], TW_BY_ELEMENT))
      gather(r, fill->copies[c], multibuffer->buffers[c], state->stage);
  if (r->producer && fill->gathers)
    arrive_gathered(r, multibuffer, state->stage);
  advance(r, fill->multibuffer);
}

/* A block does not end while another of its cluster may still give a stage back here, or fill one: the producer waits
 * until all stages are free. */
void tw_drain(tw_role_t *r) {
  for (int i = 0; r->producer && i < r->plan->num_multibuffers; i++) {
    const tw_multibuffer_t *multibuffer = &r->plan->multibuffers[i];
    for (int stage = 0; multibuffer->multicast && tw_comes_round(multibuffer) && stage < multibuffer->stages; stage++) {
      wait_until_empty(r, i);
      advance(r, i);
    }
  }
}

/* ---- waits and releases -------------------------------------------------------------------------- */

static void wait_to_read(tw_role_t *r, MlirOperation op) {
  for (int f = 0; f < r->plan->num_fills; f++)
    if (mlirOperationEqual(r->plan->fills[f].reader, op))
      wait_for(r, r->plan->multibuffers[r->plan->fills[f].multibuffer].full, r->fills[f].stage, r->fills[f].parity,
               r->plan->fills[f].gathers ? "gathered" : NULL);
}

/* The product that directly follows one; null if something else does. */
static MlirOperation next_in_row(MlirOperation product) {
  MlirOperation op = mlirOperationGetNextInBlock(product);
  while (tw_is_constant(op))
    op = mlirOperationGetNextInBlock(op);
  return tw_op_is_async_product(op) ? op : tw_null_op();
}

/* Products in a row have all waits in front: the assembler wants no branch between products that are under way
 * together. */
void tw_emit_waits(tw_role_t *r, MlirOperation op) {
  bool waited = !mlirOperationIsNull(r->in_row) && mlirOperationEqual(r->in_row, op);
  if (tw_op_is_async_product(op))
    r->in_row = next_in_row(op);
  if (waited)
    return;
  wait_to_read(r, op);
  for (MlirOperation next = op; tw_op_is_async_product(next) && !mlirOperationIsNull(next = next_in_row(next));)
    wait_to_read(r, next);
}

/* Whether a branch stands between what makes the value and the op behind it in its block. */
static bool is_behind_branch(MlirOperation op, MlirValue value) {
  MlirOperation from = tw_ancestor_in(tw_def(value), mlirOperationGetBlock(op));
  for (; !mlirOperationIsNull(from) && !mlirOperationEqual(from, op); from = mlirOperationGetNextInBlock(from))
    if (tw_is_control(from))
      return true;
  return false;
}

/* Whether the product reads registers that the next iteration reads again. The assembler (ptxas 13.0) takes them for
 * free behind a branch that the product runs across, and gives them to others. */
static bool reads_kept_registers(MlirOperation product) {
  return tw_mma_reads_registers(product) &&
         !tw_defined_in(mlirOperationGetOperand(product, 0), mlirOperationGetBlock(product));
}

/* A wait for a product orders other values, too, to be made while the product runs (tile-sink-waits). The assembler
 * knows no cost of such a wait and would move it up in front of them, but not past a branch: so the barrier of what the
 * product reads is waited for once more, which has been passed. The values go through a wait that waits for nothing, or
 * they would follow the branch. */
void tw_emit_branch(tw_role_t *r, MlirOperation wait) {
  if (!tw_op_waits_for_products(wait) || mlirOperationGetNumOperands(wait) < 2 ||
      tw_is_unused(mlirOperationGetResult(wait, 1)) || is_behind_branch(wait, mlirOperationGetOperand(wait, 1)))
    return;
  MlirOperation product = tw_def(mlirOperationGetOperand(wait, 0));
  for (int i = 0; i < r->plan->num_reads && !reads_kept_registers(product); i++) {
    const tw_stage_read_t *read = &r->plan->reads[i];
    if (!mlirOperationEqual(read->op, product))
      continue;
    MlirValue value = mlirOperationGetOperand(wait, 1), made = tw_role_value(r, value);
    MlirOperation pin = tw_build_product_wait(&r->at, 1, &made, tw_pending(&r->plan->overlaps, wait) + 1);
    tw_set_attr(pin, "complete", mlirUnitAttrGet(r->at.context));
    tw_map_one(&r->values, value, mlirOperationGetResult(pin, 0));
    const tw_stage_state_t *state = &r->fills[read->fill];
    wait_for(r, r->plan->multibuffers[r->plan->fills[read->fill].multibuffer].full, state->stage, state->parity, NULL);
    return;
  }
}

void tw_emit_releases(tw_role_t *r, MlirOperation op) {
  bool met = false;
  for (int f = 0; f < r->plan->num_fills; f++) {
    const tw_stage_fill_t *fill = &r->plan->fills[f];
    if (!mlirOperationEqual(fill->end, op))
      continue;
    /* A late one is of the iteration before: the multibuffer's last as the fill found it, or will find it behind this
     * op. */
    bool filled = mlirOperationIsBeforeInBlock(fill->copies[0], op);
    const tw_stage_state_t *state = filled ? &r->fills[f] : &r->multibuffers[fill->multibuffer];
    MlirValue never = {NULL};
    give_back(r, fill, fill->late ? state->last : state->stage, fill->late ? r->more : never, fill->by_lanes && !met);
    met = met || (fill->by_lanes && tw_comes_round(&r->plan->multibuffers[fill->multibuffer]));
  }
}

void tw_emit_late_releases(tw_role_t *r, MlirOperation loop, MlirValue ran) {
  for (int f = 0; f < r->plan->num_fills; f++) {
    const tw_stage_fill_t *fill = &r->plan->fills[f];
    if (fill->late && mlirOperationEqual(mlirOperationGetParentOperation(fill->end), loop))
      give_back(r, fill, r->multibuffers[fill->multibuffer].last, ran, fill->by_lanes);
  }
}
