/* role_mma.c - products of a role that run into the next iteration: initial sums and waits. See mma_overlap.h
 *
 *   scf.for %k = %lb to %ub iter_args(%acc = poison) {
 *     %more = %k != %lb ; %c = select %more, %acc, %zero
 *     %d = tile.async_mma %a[%stage], %b[%stage], %c ; %w = tile.mma_wait %d, 1
 *     yield %w
 *   }
 *   tile.mma_wait 0 ; zeros unless %lb < %ub */
#include "base/memory.h"
#include "lowering/gpu/facts/barrier.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/roles/role.h"
#include "lowering/loops.h"

/* ---- what they start from ------------------------------------------------------------------------ */

static MlirValue zeros(const tw_builder_t *at, MlirType type) {
  return tw_is_float(type) ? tw_const_float(at, type, 0) : tw_const_int(at, type, 0);
}

static MlirValue poison(const tw_role_t *r, MlirType type) { return tw_op1(&r->at, "ub.poison", type, 0, NULL); }

static bool starts_products(const tw_overlap_t *overlap) {
  bool starts = false;
  for (int p = 0; p < overlap->num_products; p++)
    starts |= !overlap->products[p].goes_on;
  return starts;
}

/* Whether several loops start products within another loop. The assembler takes an accumulator that nothing has written
 * for one that lives all through the loop around, and has registers for each of them. */
static bool starts_in_several(const tw_role_t *r) {
  int loops = 0;
  for (int o = 0; o < r->plan->overlaps.num; o++)
    loops += starts_products(&r->plan->overlaps.at[o]);
  return loops > 1;
}

/* A loop all of whose products run on finds itself in its first iteration: no instruction but a product may write an
 * accumulator while products are under way. A stepped one has its zeros before the loop, or ptxas 12.8 runs one step
 * after the other; so has one of several. */
void tw_start_unread(const tw_role_t *r, const tw_overlap_t *overlap, MlirValue *inits) {
  bool zeroed = starts_in_several(r);
  for (int p = 0; overlap->all && !overlap->stepped && p < overlap->num_products; p++) {
    if (overlap->products[p].goes_on)
      continue;
    MlirValue kept = r->kept[overlap->first + p];
    MlirValue *init = &inits[overlap->products[p].carried];
    if (kept.ptr || !zeroed)
      *init = kept.ptr ? kept : poison(r, mlirValueGetType(*init));
  }
}

intptr_t tw_kept_sums(tw_role_t *r, MlirOperation op, MlirValue **out) {
  intptr_t n = 0;
  for (int o = 0; o < r->plan->overlaps.num; o++) {
    const tw_overlap_t *overlap = &r->plan->overlaps.at[o];
    for (int p = 0; p < overlap->num_products; p++)
      if (r->kept[overlap->first + p].ptr && !overlap->products[p].goes_on &&
          tw_is_inside(mlirOperationGetParentOperation(overlap->loop), op))
        out[n++] = &r->kept[overlap->first + p];
  }
  return n;
}

/* Blocks that share a tile get its sum by other ways than products. The next products go into the same registers, which
 * the assembler knows only of values: else it would keep two sets of them, and spill. */
void tw_keep_sums(tw_role_t *r, MlirOperation op, MlirOperation made) {
  for (int o = 0; tw_op_is(op, TW_TILE_SUM_PARTS) && o < r->plan->overlaps.num; o++) {
    const tw_overlap_t *overlap = &r->plan->overlaps.at[o];
    for (int p = 0; p < overlap->num_products; p++)
      for (intptr_t i = 0; i + 1 < mlirOperationGetNumResults(op); i++)
        if (mlirValueEqual(mlirOperationGetOperand(op, i),
                           mlirOperationGetResult(overlap->loop, overlap->products[p].carried)))
          r->kept[overlap->first + p] = mlirOperationGetResult(made, i);
  }
}

static MlirWalkResult start_keeping(MlirOperation op, void *user) {
  tw_role_t *r = user;
  for (int o = 0; tw_op_is(op, TW_TILE_SUM_PARTS) && o < r->plan->overlaps.num; o++) {
    const tw_overlap_t *overlap = &r->plan->overlaps.at[o];
    for (int p = 0; p < overlap->num_products; p++)
      r->kept[overlap->first + p] = poison(r, mlirValueGetType(mlirOperationGetResult(overlap->products[p].op, 0)));
  }
  return MlirWalkResultAdvance;
}

void tw_start_keeping(tw_role_t *r) { mlirOperationWalk(r->plan->func, start_keeping, r, MlirWalkPreOrder); }

/* ---- waits --------------------------------------------------------------------------------------- */

/* Of the waits for products that run on, at most one stays, for those of the iteration before. True if `op` is one of
 * the others. */
bool tw_emit_dropped_wait(tw_role_t *r, MlirOperation op) {
  if (!tw_op_waits_for_products(op) || !tw_drops_wait(&r->plan->overlaps, op))
    return false;
  tw_map_one(&r->values, mlirOperationGetResult(op, 0), tw_role_value(r, mlirOperationGetOperand(op, 0)));
  return true;
}

void tw_let_run_on(tw_role_t *r, MlirOperation op, MlirOperation made) {
  const tw_overlap_t *overlap = tw_overlap_of(&r->plan->overlaps, mlirOperationGetParentOperation(op));
  if (!overlap)
    return;
  if (overlap->stepped && tw_op_is_async_product(op)) {
    tw_set_attr(made, TW_STEPPED, mlirUnitAttrGet(r->at.context));
    mlirOperationRemoveDiscardableAttributeByName(made, tw_str(TW_MMA_STEPS));
  }
  if (overlap->all && !overlap->stepped && tw_op_is_async_product(op) &&
      mlirValueIsABlockArgument(tw_mma_sum_before(op))) {
    tw_builder_t here = r->at;
    intptr_t at = mlirOperationGetNumOperands(made) - 1;
    MlirValue acc = mlirOperationGetOperand(made, at);
    r->at = tw_build_before(made);
    mlirOperationSetOperand(made, at, tw_select(&r->at, r->more, acc, zeros(&r->at, mlirValueGetType(acc))));
    r->at = here;
  } else if (tw_op_waits_for_products(op)) {
    int64_t pending = tw_pending(&r->plan->overlaps, op);
    tw_set_int(made, "pending", tw_i32(r->at.context), pending);
    if (!overlap->all && pending > 0)
      tw_set_attr(made, "complete", mlirUnitAttrGet(r->at.context));
  }
}

static MlirValue wait_for_product(tw_role_t *r, MlirValue value) {
  return mlirOperationGetResult(tw_build_product_wait(&r->at, 1, &value, 0), 0);
}

/* `ran` ? values : zeros */
static MlirOperation or_zeros(tw_role_t *r, MlirValue ran, int num, const MlirValue *values) {
  MlirBlock arms[2];
  for (int arm = 0; arm < 2; arm++) {
    MlirValue *yields = tw_allocate((size_t)num, sizeof *yields);
    arms[arm] = mlirBlockCreate(0, NULL, NULL);
    tw_builder_t at = tw_build_at_end(arms[arm], r->at.location);
    for (int i = 0; i < num; i++)
      yields[i] = arm == 0 ? values[i] : zeros(&at, mlirValueGetType(values[i]));
    tw_build(&at, "scf.yield", (tw_op_parts_t){.num_operands = num, .operands = yields});
    free(yields);
  }
  return tw_build_if(&r->at, ran, arms[0], arms[1]);
}

static bool known_to_run(MlirOperation loop) {
  int64_t lower, upper;
  return tw_known_int(mlirOperationGetOperand(loop, 0), &lower) &&
         tw_known_int(mlirOperationGetOperand(loop, 1), &upper) && lower < upper;
}

void tw_finish_overlap(tw_role_t *r, const tw_overlap_t *overlap) {
  MlirOperation loop = overlap->loop;
  int num = 0;
  MlirValue ran = {NULL}, *done = tw_allocate(2 * (size_t)overlap->num_products, sizeof *done),
            *sums = done + overlap->num_products;
  if (!known_to_run(loop))
    ran = tw_compare(&r->at, tw_has_attr(loop, "unsignedCmp") ? TW_ULT : TW_SLT,
                     tw_role_value(r, mlirOperationGetOperand(loop, 0)),
                     tw_role_value(r, mlirOperationGetOperand(loop, 1)));
  for (int p = 0; p < overlap->num_products; p++)
    if (!overlap->products[p].goes_on)
      sums[num++] = mlirOperationGetResult(loop, overlap->products[p].carried);
  for (int s = 0; s < num; s++)
    done[s] = wait_for_product(r, tw_role_value(r, sums[s]));
  tw_emit_late_releases(r, loop, ran);
  MlirOperation chosen = overlap->all && !overlap->stepped && ran.ptr ? or_zeros(r, ran, num, done) : tw_null_op();
  for (int s = 0; s < num; s++)
    tw_map_one(&r->values, sums[s], mlirOperationIsNull(chosen) ? done[s] : mlirOperationGetResult(chosen, s));
  free(done);
}
