/* role_flow.c - loops and branches of a role, which carry the state of multi-stage buffers
 *
 * Before:
 *
 *   scf.for %k = %lb to %ub step %s iter_args(%x = %x0, %acc = %acc0) { ... yield %y, %w }
 *
 * After, in a producer that needs %x and fills a multibuffer in the loop:
 *
 *   scf.for %k = %lb to %ub step %s iter_args(%x = %x0, %stage = ..., %parity = ...) {
 *     ... yield %y, (%stage + 1) mod N, %parity flipped where the stage wrapped
 *   }
 *
 * What goes through a loop or branch are values of the kernel that the role has, and then the states of multibuffers.
 */
#include "lowering/gpu/roles/pingpong_plan.h"
#include "lowering/gpu/roles/role.h"
#include "lowering/layout/memory.h"
#include "lowering/loops.h"

#include <stdlib.h>

/* ---- lists --------------------------------------------------------------------------------------- */

typedef struct {
  MlirValue *values; /* owned, as the types */
  MlirType *types;
  intptr_t num;
} list_t;

static void append(list_t *list, MlirValue value) {
  list->values = tw_room(list->values, (size_t)list->num, sizeof *list->values);
  list->types = tw_room(list->types, (size_t)list->num, sizeof *list->types);
  list->types[list->num] = mlirValueGetType(value);
  list->values[list->num++] = value;
}

static void free_list(list_t *list) {
  free(list->values);
  free(list->types);
}

static void add_arguments(MlirBlock block, intptr_t num, const MlirType *types, MlirLocation location) {
  for (intptr_t i = 0; i < num; i++)
    mlirBlockAddArgument(block, types[i], location);
}

/* Ends the block at hand with the values of a list, which is freed. */
static void terminate(tw_role_t *r, const char *name, list_t *operands) {
  tw_build(&r->at, name, (tw_op_parts_t){.num_operands = operands->num, .operands = operands->values});
  free_list(operands);
}

/* ---- what passes --------------------------------------------------------------------------------- */

/* Values of the kernel that pass together, as arguments of a block from `first` on, as results of an op, or as both;
 * and the states. */
typedef struct {
  MlirBlock block; /* or null */
  intptr_t first;
  MlirOperation op; /* or null */
  intptr_t num;
  MlirValue **states; /* owned */
  intptr_t num_states;
} passage_t;

static void find_states(tw_role_t *r, MlirOperation around, passage_t *p) {
  p->states = tw_allocate(tw_most_states(r), sizeof *p->states);
  p->num_states = tw_kept_sums(r, around, p->states);
  p->num_states += tw_stage_states(r, around, p->states + p->num_states);
}

/* Whether the role has value `i`. */
static bool passes(const tw_role_t *r, const passage_t *p, intptr_t i) {
  const tw_producer_slice_t *needs = &r->plan->needs;
  return !r->producer ||
         (!mlirBlockIsNull(p->block) && tw_producer_has(needs, mlirBlockGetArgument(p->block, p->first + i).ptr)) ||
         (!mlirOperationIsNull(p->op) && tw_producer_has(needs, mlirOperationGetResult(p->op, i).ptr));
}

/* Appends what enters or leaves by the operands of an op of the kernel, from `first` on. */
static void leave(tw_role_t *r, const passage_t *p, MlirOperation old, intptr_t first, list_t *out) {
  for (intptr_t i = 0; i < p->num; i++)
    if (passes(r, p, i))
      append(out, tw_role_value(r, mlirOperationGetOperand(old, first + i)));
  for (intptr_t i = 0; i < p->num_states; i++)
    append(out, *p->states[i]);
}

/* It arrives as arguments of a block of the role, from `at` on ... */
static void arrive_in(tw_role_t *r, const passage_t *p, MlirBlock made, intptr_t at) {
  for (intptr_t i = 0; i < p->num; i++)
    if (passes(r, p, i))
      tw_map_one(&r->values, mlirBlockGetArgument(p->block, p->first + i), mlirBlockGetArgument(made, at++));
  for (intptr_t i = 0; i < p->num_states; i++)
    *p->states[i] = mlirBlockGetArgument(made, at++);
}

/* ... or as results of an op. */
static void arrive_behind(tw_role_t *r, const passage_t *p, MlirOperation made) {
  intptr_t at = 0;
  for (intptr_t i = 0; i < p->num; i++)
    if (passes(r, p, i))
      tw_map_one(&r->values, mlirOperationGetResult(p->op, i), mlirOperationGetResult(made, at++));
  for (intptr_t i = 0; i < p->num_states; i++)
    *p->states[i] = mlirOperationGetResult(made, at++);
}

/* ---- loops and branches -------------------------------------------------------------------------- */

void tw_emit_for(tw_role_t *r, MlirOperation old) {
  const tw_overlap_t *overlap = r->producer ? NULL : tw_overlap_of(&r->plan->overlaps, old);
  passage_t carried = {
      .block = tw_loop_body(old), .first = TW_FOR_CARRIED, .op = old, .num = mlirOperationGetNumResults(old)};
  MlirValue bounds[TW_FOR_INITS], skipped = {NULL}, more = r->more;
  list_t inits = {0}, yields = {0};
  find_states(r, old, &carried);
  for (int i = 0; i < TW_FOR_INITS; i++)
    bounds[i] = tw_role_value(r, mlirOperationGetOperand(old, i));
  if (tw_is_shared_out(r, old))
    skipped = tw_begin_pingpong(r, old, bounds);
  if (tw_is_ordered(r, old))
    tw_ordered_wait(r);
  for (int i = 0; i < TW_FOR_INITS; i++)
    append(&inits, bounds[i]);
  leave(r, &carried, old, TW_FOR_INITS, &inits);
  if (overlap)
    tw_start_unread(r, overlap, inits.values + TW_FOR_INITS);
  tw_builder_t here = r->at;
  MlirBlock body = mlirBlockCreate(1, &inits.types[0], &here.location);
  add_arguments(body, inits.num - TW_FOR_INITS, inits.types + TW_FOR_INITS, here.location);
  tw_map_one(&r->values, tw_loop_iv(old), mlirBlockGetArgument(body, 0));
  arrive_in(r, &carried, body, TW_FOR_CARRIED);
  r->at = tw_build_at_end(body, here.location);
  if (overlap)
    r->more = tw_compare(&r->at, TW_NE, mlirBlockGetArgument(body, 0), bounds[0]);
  r->emit_block(r, tw_loop_body(old));
  if (skipped.ptr)
    tw_skip_stages(r, skipped);
  leave(r, &carried, tw_loop_yield(old), 0, &yields);
  terminate(r, "scf.yield", &yields);
  r->at = here;
  r->more = more;
  MlirOperation loop = tw_build_for(&r->at, inits.num, inits.values, tw_region_with(body));
  tw_copy_attrs(old, loop);
  free_list(&inits);
  arrive_behind(r, &carried, loop);
  free(carried.states);
  if (tw_is_ordered(r, old))
    tw_ordered_arrive(r);
  if (overlap)
    tw_finish_overlap(r, overlap);
}

void tw_emit_if(tw_role_t *r, MlirOperation old) {
  passage_t results = {.op = old, .num = mlirOperationGetNumResults(old)};
  MlirValue condition = tw_role_value(r, mlirOperationGetOperand(old, 0));
  MlirBlock arms[2] = {{NULL}, {NULL}};
  tw_builder_t here = r->at;
  find_states(r, old, &results);
  MlirValue *before = tw_allocate((size_t)results.num_states, sizeof *before);
  for (intptr_t i = 0; i < results.num_states; i++)
    before[i] = *results.states[i];
  for (int arm = 0; arm < 2; arm++) {
    MlirBlock old_arm = tw_region_block(old, arm);
    bool empty = mlirBlockIsNull(old_arm); /* so that there are no results */
    if (empty && results.num_states == 0)
      continue;
    list_t yields = {0};
    for (intptr_t i = 0; i < results.num_states; i++)
      *results.states[i] = before[i];
    arms[arm] = mlirBlockCreate(0, NULL, NULL);
    r->at = tw_build_at_end(arms[arm], here.location);
    if (!empty)
      r->emit_block(r, old_arm);
    leave(r, &results, empty ? tw_null_op() : mlirBlockGetTerminator(old_arm), 0, &yields);
    terminate(r, "scf.yield", &yields);
  }
  r->at = here;
  arrive_behind(r, &results, tw_build_if(&r->at, condition, arms[0], arms[1]));
  free(results.states);
  free(before);
}

void tw_emit_while(tw_role_t *r, MlirOperation old) {
  MlirBlock old_before = tw_region_block(old, 0), old_after = tw_region_block(old, 1);
  MlirOperation old_condition = mlirBlockGetTerminator(old_before);
  passage_t carried = {.block = old_before, .num = mlirOperationGetNumOperands(old)};
  passage_t passed_on = {.block = old_after, .op = old, .num = mlirOperationGetNumResults(old)};
  MlirBlock before = mlirBlockCreate(0, NULL, NULL), after = mlirBlockCreate(0, NULL, NULL);
  list_t inits = {0}, condition = {0}, yields = {0};
  tw_builder_t here = r->at;
  find_states(r, old, &carried);
  find_states(r, old, &passed_on);
  leave(r, &carried, old, 0, &inits);
  add_arguments(before, inits.num, inits.types, here.location);
  arrive_in(r, &carried, before, 0);
  r->at = tw_build_at_end(before, here.location);
  r->emit_block(r, old_before);
  append(&condition, tw_role_value(r, mlirOperationGetOperand(old_condition, 0)));
  leave(r, &passed_on, old_condition, 1, &condition);
  intptr_t num_results = condition.num - 1;
  add_arguments(after, num_results, condition.types + 1, here.location);
  tw_build(&r->at, "scf.condition", (tw_op_parts_t){.num_operands = condition.num, .operands = condition.values});
  arrive_in(r, &passed_on, after, 0);
  r->at = tw_build_at_end(after, here.location);
  r->emit_block(r, old_after);
  leave(r, &carried, mlirBlockGetTerminator(old_after), 0, &yields);
  terminate(r, "scf.yield", &yields);
  MlirRegion regions[] = {tw_region_with(before), tw_region_with(after)};
  r->at = here;
  MlirOperation loop = tw_build_while(&r->at, inits.num, inits.values, num_results, condition.types + 1, regions);
  free_list(&inits);
  free_list(&condition);
  arrive_behind(r, &passed_on, loop);
  free(carried.states);
  free(passed_on.states);
}
