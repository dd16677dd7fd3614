/* uniform.c - which values of a SIMT kernel are the same in all threads of a block (see uniform.h)
 *
 * What differs begins with the place of a thread, and with what is read from memory or told by other lanes; it goes on
 * to all that is computed from it, and to what branches and loops pass on that it decides about. Loops make that a
 * fixpoint: values only ever join the set. Whatever a control op with effects passes on counts as different, but in
 * threads that go in lockstep. */
#include "lowering/common/uniform.h"

#include "lowering/loops.h"

bool tw_uniform_has(const tw_uniform_t *u, MlirValue value) { return tw_map_get(&u->varying, value.ptr, NULL) == NULL; }

void tw_uniform_free(tw_uniform_t *u) { tw_map_free(&u->varying); }

static void vary(tw_uniform_t *u, MlirValue value) {
  if (!tw_uniform_has(u, value))
    return;
  tw_map_one(&u->varying, value, value);
  u->changed = true;
}

static void vary_results(tw_uniform_t *u, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    vary(u, mlirOperationGetResult(op, i));
}

static bool has_effect(MlirOperation op) {
  return mlirOperationGetNumRegions(op) == 0 && tw_op_form(op) != TW_FORM_CONTROL && !tw_op_has(op, TW_PURE);
}

bool tw_is_pure_tree(MlirOperation op) { return !tw_has_op_like(op, has_effect); }

/* Ops whose results differ whatever they are given. Of those with effects, a barrier tells all the same, and what makes
 * an array makes one of the block, or one that is read like memory. */
static bool differs(const tw_uniform_t *u, MlirOperation op) {
  bool makes_array =
      mlirOperationGetNumResults(op) == 1 && mlirTypeIsAMemRef(mlirValueGetType(mlirOperationGetResult(op, 0)));
  bool reads = u->lockstep && tw_op_loads(op);
  return tw_op_has(op, TW_VARIES) || (has_effect(op) && !makes_array && !reads && !tw_op_has(op, TW_MEETS_BLOCK));
}

bool tw_uniform_has_operands(const tw_uniform_t *u, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (!tw_uniform_has(u, mlirOperationGetOperand(op, i)))
      return false;
  return true;
}

static void tell(void *user, MlirValue passed, MlirValue source) {
  tw_uniform_t *u = user;
  if (!tw_uniform_has(u, source))
    vary(u, passed);
}

static void vary_arguments(tw_uniform_t *u, MlirOperation op) {
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    for (intptr_t i = 0; i < mlirBlockGetNumArguments(tw_region_block(op, r)); i++)
      vary(u, mlirBlockGetArgument(tw_region_block(op, r), i));
}

/* What decides how often, or whether, a region runs. */
static bool is_decided_apart(const tw_uniform_t *u, MlirOperation op) {
  if (tw_op_is(op, TW_SCF_IF))
    return !tw_uniform_has(u, mlirOperationGetOperand(op, 0));
  if (tw_op_is(op, TW_SCF_WHILE))
    return !tw_uniform_has(u, mlirOperationGetOperand(mlirBlockGetTerminator(tw_region_block(op, 0)), 0));
  for (intptr_t i = 0; tw_op_is(op, TW_SCF_FOR) && i < TW_FOR_INITS; i++)
    if (!tw_uniform_has(u, mlirOperationGetOperand(op, i)))
      return true;
  return false;
}

bool tw_uniform_reaches(const tw_uniform_t *u, MlirOperation op) {
  for (MlirOperation up = mlirOperationGetParentOperation(op); !mlirOperationEqual(up, u->func);
       up = mlirOperationGetParentOperation(up))
    if (is_decided_apart(u, up))
      return false;
  return true;
}

/* From one region of a loop of two to the other, and out of it. */
static void pass_while(tw_uniform_t *u, MlirOperation op) {
  MlirBlock before = tw_region_block(op, 0), after = tw_region_block(op, 1);
  MlirOperation condition = mlirBlockGetTerminator(before), yield = mlirBlockGetTerminator(after);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    tell(u, mlirBlockGetArgument(before, i), mlirOperationGetOperand(op, i));
    tell(u, mlirBlockGetArgument(before, i), mlirOperationGetOperand(yield, i));
  }
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++) {
    tell(u, mlirBlockGetArgument(after, i), mlirOperationGetOperand(condition, i + 1));
    tell(u, mlirOperationGetResult(op, i), mlirOperationGetOperand(condition, i + 1));
  }
}

static bool meets_block(MlirOperation op) { return tw_op_has(op, TW_MEETS_BLOCK); }

static bool has_uniform_result(const tw_uniform_t *u, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    if (tw_uniform_has(u, mlirOperationGetResult(op, i)))
      return true;
  return false;
}

static bool stays_together(const tw_uniform_t *u, MlirOperation op) {
  return u->lockstep || tw_is_pure_tree(op) || tw_has_op_like(op, meets_block);
}

/* Whether threads stay together is asked last, for that looks at all that an op holds. */
static void pass_control(tw_uniform_t *u, MlirOperation op) {
  bool apart = is_decided_apart(u, op);
  if (has_uniform_result(u, op) && (apart || !stays_together(u, op)))
    vary_results(u, op);
  if (apart && !tw_op_is(op, TW_SCF_IF))
    vary_arguments(u, op);
  if (tw_op_is(op, TW_SCF_WHILE))
    pass_while(u, op);
  else
    tw_each_source(op, tell, u);
}

static MlirWalkResult look(MlirOperation op, void *user) {
  tw_uniform_t *u = user;
  if (mlirOperationEqual(op, u->func))
    return MlirWalkResultAdvance;
  if (mlirOperationGetNumRegions(op) > 0)
    pass_control(u, op);
  else if (differs(u, op) || (!tw_uniform_has_operands(u, op) && !meets_block(op)))
    vary_results(u, op);
  return MlirWalkResultAdvance;
}

static void find(tw_uniform_t *u) {
  do {
    u->changed = false;
    mlirOperationWalk(u->func, look, u, MlirWalkPreOrder);
  } while (u->changed);
}

void tw_uniform_find(tw_uniform_t *u, MlirOperation func) {
  *u = (tw_uniform_t){.func = func};
  find(u);
}

void tw_uniform_find_in(tw_uniform_t *u, MlirOperation loop) {
  *u = (tw_uniform_t){.func = loop, .lockstep = true};
  vary(u, tw_loop_iv(loop));
  find(u);
}
