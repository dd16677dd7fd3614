/* loops.c - see loops.h */
#include "lowering/loops.h"

#include "base/memory.h"
#include "lowering/index_terms.h"

intptr_t tw_carried_position(MlirOperation loop, MlirValue value) {
  if (!mlirValueIsABlockArgument(value) || !mlirBlockEqual(mlirBlockArgumentGetOwner(value), tw_loop_body(loop)))
    return -1;
  return mlirBlockArgumentGetArgNumber(value) - TW_FOR_CARRIED;
}

static bool is_for(MlirOperation op) { return tw_op_is(op, TW_SCF_FOR); }

tw_ops_t tw_loops_in(MlirOperation func, MlirWalkOrder order) { return tw_ops_in(func, is_for, order); }

MlirOperation tw_enclosing_loop(MlirOperation op) {
  do
    op = mlirOperationGetParentOperation(op);
  while (!mlirOperationIsNull(op) && !tw_op_is(op, TW_SCF_FOR) && !tw_op_is(op, TW_SCF_WHILE));
  return op;
}

/* By how much the value is a quotient of another one, rounded up; else 1. */
static int64_t divisor_of(MlirValue value) {
  MlirOperation op = tw_def(value);
  int64_t by = 1;
  bool is_quotient =
      !mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_CEILDIVSI) && tw_known_int(mlirOperationGetOperand(op, 1), &by);
  return is_quotient && by > 0 ? by : 1;
}

/* The values of which an op makes the least; false where it makes another one. */
static bool is_least_of(MlirOperation op, MlirValue of[2]) {
  MlirOperation compare = tw_op_is(op, TW_ARITH_SELECT) ? tw_def(mlirOperationGetOperand(op, 0)) : tw_null_op();
  bool selects = !mlirOperationIsNull(compare) && tw_op_is(compare, TW_ARITH_CMPI);
  if (!selects && !tw_op_is(op, TW_ARITH_MINSI))
    return false;
  for (int i = 0; i < 2; i++)
    of[i] = mlirOperationGetOperand(selects ? compare : op, i);
  if (!selects)
    return true;
  int64_t predicate = tw_attr_int(compare, "predicate", -1);
  bool below = predicate == TW_SLT || predicate == TW_SLE, above = predicate == TW_SGT || predicate == TW_SGE;
  return (below || above) && mlirValueEqual(mlirOperationGetOperand(op, below ? 1 : 2), of[0]) &&
         mlirValueEqual(mlirOperationGetOperand(op, below ? 2 : 1), of[1]);
}

/* Whether `end` lies at most `step` behind so many times `first`: it is a number more, or the least of what may be so.
 * Quotients that are rounded up lie no further apart than what is divided. */
static bool lies_within(MlirValue end, MlirValue first, int64_t times, int64_t step) {
  MlirOperation op = tw_def(end);
  MlirValue of[2];
  tw_index_sum_t sum, other;
  if (!mlirOperationIsNull(op) && is_least_of(op, of))
    return lies_within(of[0], first, times, step) || lies_within(of[1], first, times, step);
  int64_t by = times == 1 ? divisor_of(end) : 1;
  if (by > 1 && step <= INT32_MAX / by) {
    bool both = divisor_of(first) == by;
    return lies_within(mlirOperationGetOperand(op, 0), both ? mlirOperationGetOperand(tw_def(first), 0) : first,
                       both ? 1 : by, step * by);
  }
  if (!tw_read_index_sum(end, &sum) || !tw_read_index_sum(first, &other) || !tw_index_add(&sum, &other, -times))
    return false;
  return sum.count == 0 ||
         (sum.count == 1 && sum.terms[0].num_scalars == 0 && sum.terms[0].axis < 0 && sum.terms[0].factor <= step);
}

bool tw_runs_once(MlirOperation loop) {
  int64_t step;
  return tw_op_is(loop, TW_SCF_FOR) && tw_known_int(mlirOperationGetOperand(loop, 2), &step) && step > 0 &&
         lies_within(mlirOperationGetOperand(loop, 1), mlirOperationGetOperand(loop, 0), 1, step);
}

MlirOperation tw_ancestor_in(MlirOperation op, MlirBlock block) {
  while (!mlirOperationIsNull(op) && !mlirBlockEqual(mlirOperationGetBlock(op), block))
    op = mlirOperationGetParentOperation(op);
  return op;
}

bool tw_is_inside(MlirOperation op, MlirOperation outer) {
  while (!mlirOperationIsNull(op) && !mlirOperationEqual(op, outer))
    op = mlirOperationGetParentOperation(op);
  return !mlirOperationIsNull(op);
}

bool tw_defined_in(MlirValue value, MlirBlock block) {
  if (!mlirValueIsABlockArgument(value))
    return tw_inside(mlirOpResultGetOwner(value), block);
  MlirBlock owner = mlirBlockArgumentGetOwner(value);
  return mlirBlockEqual(owner, block) || tw_inside(mlirBlockGetParentOperation(owner), block);
}

MlirOpOperand tw_only_use(MlirValue value) {
  MlirOpOperand use = mlirValueGetFirstUse(value), none = {NULL};
  return mlirOpOperandIsNull(use) || !mlirOpOperandIsNull(mlirOpOperandGetNextUse(use)) ? none : use;
}

MlirOperation tw_only_user(MlirValue value) {
  MlirOpOperand use = tw_only_use(value);
  return mlirOpOperandIsNull(use) ? tw_null_op() : mlirOpOperandGetOwner(use);
}

bool tw_sums_products(MlirOperation loop, intptr_t i) {
  MlirValue value = tw_carried(loop, i);
  if (!tw_is_tile(mlirValueGetType(value)) || !tw_is_zero(tw_carried_init(loop, i)))
    return false;
  for (;;) {
    MlirOpOperand use = tw_only_use(value);
    MlirOperation user = tw_only_user(value);
    if (mlirOperationIsNull(user) || !mlirBlockEqual(mlirOperationGetBlock(user), tw_loop_body(loop)))
      return false;
    if (mlirOperationEqual(user, tw_loop_yield(loop)))
      return mlirOpOperandGetOperandNumber(use) == i;
    if (!tw_op_is_product(user) || mlirOpOperandGetOperandNumber(use) != 2)
      return false;
    value = mlirOperationGetResult(user, 0);
  }
}

/* ---- slices ------------------------------------------------------------------------------------ */

static MlirWalkResult add_operands(MlirOperation op, void *user) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    tw_slice_add(user, mlirOperationGetOperand(op, i));
  return MlirWalkResultAdvance;
}

void tw_slice_add_op(tw_slice_t *slice, MlirOperation op) {
  op = tw_ancestor_in(op, slice->block);
  if (mlirOperationIsNull(op) || tw_slice_has(slice, op))
    return;
  tw_map_set(&slice->ops, op.ptr, 0, NULL);
  mlirOperationWalk(op, add_operands, slice, MlirWalkPreOrder);
}

void tw_slice_add(tw_slice_t *slice, MlirValue value) {
  MlirOperation op = tw_def(value);
  if (!mlirOperationIsNull(op))
    tw_slice_add_op(slice, op);
  else
    tw_map_set(&slice->ops, value.ptr, 0, NULL); /* an argument: tw_slice_reads asks for it */
}

bool tw_slice_reads(const tw_slice_t *slice, MlirValue argument) {
  return tw_map_get(&slice->ops, argument.ptr, NULL) != NULL;
}

/* ---- what loops and branches pass on ------------------------------------------------------------ */

static int sources_of_argument(MlirOperation op, MlirBlock block, intptr_t at, MlirValue *out) {
  if (tw_op_is(op, TW_SCF_FOR) && at >= TW_FOR_CARRIED) {
    out[0] = tw_carried_init(op, at - TW_FOR_CARRIED);
    out[1] = tw_carried_next(op, at - TW_FOR_CARRIED);
    return 2;
  }
  if (!tw_op_is(op, TW_SCF_WHILE))
    return 0;
  MlirBlock before = tw_region_block(op, 0), after = tw_region_block(op, 1);
  if (mlirBlockEqual(block, after)) { /* behind the condition */
    out[0] = mlirOperationGetOperand(mlirBlockGetTerminator(before), 1 + at);
    return 1;
  }
  out[0] = mlirOperationGetOperand(op, at);
  out[1] = mlirOperationGetOperand(mlirBlockGetTerminator(after), at);
  return 2;
}

static int sources_of_result(MlirOperation op, intptr_t at, MlirValue *out) {
  if (tw_op_is(op, TW_SCF_FOR)) {
    out[0] = tw_carried(op, at);
    return 1;
  }
  if (tw_op_is(op, TW_SCF_WHILE)) {
    out[0] = mlirOperationGetOperand(mlirBlockGetTerminator(tw_region_block(op, 0)), 1 + at);
    return 1;
  }
  if (!tw_op_is(op, TW_SCF_IF))
    return 0;
  for (int arm = 0; arm < 2; arm++)
    out[arm] = mlirOperationGetOperand(mlirBlockGetTerminator(tw_region_block(op, arm)), at);
  return 2;
}

int tw_sources(MlirValue value, MlirValue out[TW_MAX_SOURCES]) {
  if (!mlirValueIsABlockArgument(value))
    return sources_of_result(mlirOpResultGetOwner(value), mlirOpResultGetResultNumber(value), out);
  MlirBlock block = mlirBlockArgumentGetOwner(value);
  return sources_of_argument(mlirBlockGetParentOperation(block), block, mlirBlockArgumentGetArgNumber(value), out);
}

static void remark_sources(MlirValue passed, void (*tell)(void *user, MlirValue passed, MlirValue source), void *user) {
  MlirValue sources[TW_MAX_SOURCES];
  int num = tw_sources(passed, sources);
  for (int i = 0; i < num; i++)
    tell(user, passed, sources[i]);
}

void tw_each_source(MlirOperation op, void (*tell)(void *user, MlirValue passed, MlirValue source), void *user) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    remark_sources(mlirOperationGetResult(op, i), tell, user);
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++) {
    MlirBlock block = tw_region_block(op, r);
    for (intptr_t i = 0; !mlirBlockIsNull(block) && i < mlirBlockGetNumArguments(block); i++)
      remark_sources(mlirBlockGetArgument(block, i), tell, user);
  }
}

/* ---- branches ---------------------------------------------------------------------------------- */

MlirOperation tw_build_for(const tw_builder_t *at, intptr_t num, const MlirValue *operands, MlirRegion region) {
  intptr_t carried = num - TW_FOR_INITS;
  MlirType *types = tw_allocate((size_t)carried, sizeof *types);
  for (intptr_t i = 0; i < carried; i++)
    types[i] = mlirValueGetType(operands[TW_FOR_INITS + i]);
  MlirOperation loop = tw_build(at, "scf.for", (tw_op_parts_t){num, carried, 0, 1, operands, types, NULL, &region});
  free(types);
  return loop;
}

MlirOperation tw_build_while(const tw_builder_t *at, intptr_t num, const MlirValue *inits, intptr_t num_results,
                             const MlirType *results, const MlirRegion regions[2]) {
  return tw_build(at, "scf.while", (tw_op_parts_t){num, num_results, 0, 2, inits, results, NULL, regions});
}

MlirOperation tw_build_branch(const tw_builder_t *at, MlirValue condition, intptr_t num, const MlirType *results,
                              const MlirRegion regions[2]) {
  return tw_build(at, "scf.if", (tw_op_parts_t){1, num, 0, 2, &condition, results, NULL, regions});
}

MlirOperation tw_build_if(const tw_builder_t *at, MlirValue condition, MlirBlock then, MlirBlock otherwise) {
  MlirRegion regions[] = {tw_region_with(then), tw_region_with(otherwise)};
  MlirOperation yield = mlirBlockGetTerminator(then);
  intptr_t num = mlirOperationGetNumOperands(yield);
  MlirType *results = tw_allocate((size_t)num, sizeof *results);
  for (intptr_t i = 0; i < num; i++)
    results[i] = mlirValueGetType(mlirOperationGetOperand(yield, i));
  MlirOperation branch = tw_build_branch(at, condition, num, results, regions);
  free(results);
  return branch;
}

tw_builder_t tw_build_guard(const tw_builder_t *at, MlirValue condition) {
  MlirBlock then = mlirBlockCreate(0, NULL, NULL);
  tw_builder_t in = tw_build_at_end(then, at->location);
  tw_builder_t inside = tw_build_before(tw_build(&in, "scf.yield", (tw_op_parts_t){0}));
  tw_build_if(at, condition, then, (MlirBlock){NULL});
  return inside;
}

/* ---- rebuilding -------------------------------------------------------------------------------- */

MlirOperation tw_carry_more(MlirOperation old, intptr_t num, const MlirValue *inits) {
  tw_builder_t at = tw_build_before(old);
  intptr_t num_operands = mlirOperationGetNumOperands(old);
  MlirValue *operands = tw_allocate((size_t)(num_operands + num), sizeof *operands);
  for (intptr_t i = 0; i < num_operands; i++)
    operands[i] = mlirOperationGetOperand(old, i);
  for (intptr_t i = 0; i < num; i++) {
    operands[num_operands + i] = inits[i];
    mlirBlockAddArgument(tw_loop_body(old), mlirValueGetType(inits[i]), at.location);
  }
  MlirRegion region = mlirRegionCreate();
  mlirRegionTakeBody(region, mlirOperationGetRegion(old, 0));
  MlirOperation loop = tw_build_for(&at, num_operands + num, operands, region);
  tw_copy_attrs(old, loop);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(old); i++)
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(old, i), mlirOperationGetResult(loop, i));
  mlirOperationDestroy(old);
  free(operands);
  return loop;
}

void tw_extend_yield(MlirBlock body, intptr_t num, const MlirValue *values) {
  MlirOperation old = mlirBlockGetTerminator(body);
  tw_builder_t at = tw_build_before(old);
  intptr_t have = mlirOperationGetNumOperands(old);
  MlirValue *operands = tw_allocate((size_t)(have + num), sizeof *operands);
  for (intptr_t i = 0; i < have + num; i++)
    operands[i] = i < have ? mlirOperationGetOperand(old, i) : values[i - have];
  tw_build(&at, "scf.yield", (tw_op_parts_t){.num_operands = have + num, .operands = operands});
  mlirOperationDestroy(old);
  free(operands);
}

static MlirWalkResult rename_operands(MlirOperation op, void *map) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    mlirOperationSetOperand(op, i, tw_map_value(map, mlirOperationGetOperand(op, i)));
  return MlirWalkResultAdvance;
}

void tw_copy_op(const tw_builder_t *at, MlirOperation op, tw_map_t *map) {
  MlirOperation copy = mlirOperationClone(op);
  if (mlirOperationIsNull(at->before))
    mlirBlockAppendOwnedOperation(at->block, copy);
  else
    mlirBlockInsertOwnedOperationBefore(at->block, at->before, copy);
  mlirOperationWalk(copy, rename_operands, map, MlirWalkPreOrder);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    tw_map_one(map, mlirOperationGetResult(op, i), mlirOperationGetResult(copy, i));
}

MlirValue tw_copy_slice(const tw_builder_t *at, MlirValue value, MlirBlock within, tw_map_t *map) {
  MlirValue known = tw_map_value(map, value);
  MlirOperation op = tw_def(value);
  if (!mlirValueEqual(known, value) || mlirOperationIsNull(op) || !tw_inside(op, within))
    return known;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    tw_copy_slice(at, mlirOperationGetOperand(op, i), within, map);
  tw_copy_op(at, op, map);
  return tw_map_value(map, value);
}

/* Ops that do nothing but make their results. */
static bool is_removable(MlirOperation op) {
  return mlirOperationGetNumRegions(op) == 0 && (tw_is_arithmetic(op) || tw_op_loads(op));
}

/* Adds the op and what it is made from, as far as it can be removed, each once. */
static void add_removable(tw_ops_t *list, MlirOperation op) {
  if (mlirOperationIsNull(op) || !is_removable(op))
    return;
  for (int i = 0; i < list->count; i++)
    if (mlirOperationEqual(list->at[i], op))
      return;
  tw_ops_add(list, op);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    add_removable(list, tw_def(mlirOperationGetOperand(op, i)));
}

/* An op may be reached on several ways, and is unused when the last of its users is gone. */
void tw_erase_dead(MlirOperation op) {
  tw_ops_t list = {NULL, 0};
  if (mlirOperationIsNull(op) || !is_removable(op) || !tw_is_unused(mlirOperationGetResult(op, 0)))
    return;
  add_removable(&list, op);
  for (bool erased = true; erased;) {
    erased = false;
    for (int i = 0; i < list.count; i++) {
      if (mlirOperationIsNull(list.at[i]) || !tw_is_unused(mlirOperationGetResult(list.at[i], 0)))
        continue;
      mlirOperationDestroy(list.at[i]);
      list.at[i].ptr = NULL;
      erased = true;
    }
  }
  tw_ops_free(&list);
}
