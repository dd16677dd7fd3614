/* roll_rest.c - in tile-canonicalize: a step behind a loop that is done upon a condition is one of the loop
 *
 *   before   %n = arith.floordivsi %K, 64                  after   %n = arith.ceildivsi %K, 64
 *            %x = scf.for %k = 0 to %n iter_args(...) {            %x = scf.for %k = 0 to %n iter_args(...) {
 *              %a = tile.load %A[%i, %k]                             %a = tile.load %A[%i, %k] padding zero
 *              ...                                                   ...
 *            }                                                     }
 *            %y = scf.if %K % 64 != 0 {
 *              %a = tile.load %A[%i, %n] padding zero
 *              ...
 *              yield ...
 *            } else {
 *              yield %x
 *            }
 *
 * Sums that go on in a branch behind a loop lie in two places at a time. A load of the loop gets the padding that the
 * step has, where its own is left open. A number of steps that is no quotient rounded up is a sum with the condition.
 *
 * What must hold: the loop and the step write no array, nor does what stands between them; the condition does not
 * depend on what the loop leaves, which only the branch reads. The step has the number that the loop would go on with.
 * Steps are compared op by op (match_step.h). */
#include "lowering/common/canonicalize.h"
#include "lowering/common/match_step.h"
#include "lowering/loops.h"
#include "lowering/ranges.h"

enum { MOST_BEHIND = 64 };

typedef struct {
  MlirOperation loop, branch;
  int side;         /* the region of the branch that has the step */
  MlirValue number; /* of the step */
  tw_step_match_t match;
} leftover_t;

static MlirOperation end_of(const leftover_t *r, int side) {
  return mlirBlockGetTerminator(tw_region_block(r->branch, side));
}

/* The first branch behind a loop, with nothing that writes before it. */
static MlirOperation branch_behind(MlirOperation loop) {
  MlirOperation op = mlirOperationGetNextInBlock(loop);
  for (int i = 0; i < MOST_BEHIND && !mlirOperationIsNull(op) && !tw_may_write_arrays(op); i++) {
    if (tw_op_is(op, TW_SCF_IF))
      return op;
    op = mlirOperationGetNextInBlock(op);
  }
  return tw_null_op();
}

/* Which result of the loop a value is; -1. */
static intptr_t result_of(MlirOperation loop, MlirValue value) {
  MlirOperation op = tw_def(value);
  return !mlirOperationIsNull(op) && mlirOperationEqual(op, loop) ? mlirOpResultGetResultNumber(value) : -1;
}

/* Whether a region of the branch only passes on what the loop leaves. */
static bool passes_on(const leftover_t *r, int side) {
  MlirBlock block = tw_region_block(r->branch, side);
  if (mlirBlockIsNull(block) || !mlirOperationEqual(mlirBlockGetFirstOperation(block), end_of(r, side)))
    return false;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(r->branch); i++)
    if (result_of(r->loop, mlirOperationGetOperand(end_of(r, side), i)) < 0)
      return false;
  return mlirOperationGetNumResults(r->branch) > 0;
}

static bool only_branch_reads(const leftover_t *r) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(r->loop); i++)
    TW_EACH_USE(use, mlirOperationGetResult(r->loop, i))
      if (!tw_is_inside(mlirOpOperandGetOwner(use), r->branch))
        return false;
  return true;
}

/* Whether the condition can be computed in front of the loop. */
static bool has_early_condition(const leftover_t *r) {
  MlirBlock block = mlirOperationGetBlock(r->loop);
  tw_slice_t slice = {.block = block};
  tw_slice_add(&slice, mlirOperationGetOperand(r->branch, 0));
  bool is = !tw_slice_has(&slice, r->loop);
  for (MlirOperation op = r->loop; is && !mlirOperationEqual(op, r->branch); op = mlirOperationGetNextInBlock(op))
    is = !tw_slice_has(&slice, op) || (tw_is_arithmetic(op) && mlirOperationGetNumRegions(op) == 0);
  tw_slice_free(&slice);
  return is;
}

/* Whether the branch leaves what a step with that number would. */
static bool is_step(leftover_t *r, MlirValue number) {
  r->number = number;
  r->match = (tw_step_match_t){.loop = r->loop, .takes_open = true};
  tw_sum_add(&r->match.iv, number, 1);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(r->loop); i++)
    r->match.carried[i] = mlirOperationGetResult(r->loop, i);
  bool is = true;
  for (intptr_t i = 0; is && i < mlirOperationGetNumResults(r->branch); i++) {
    intptr_t carried = result_of(r->loop, mlirOperationGetOperand(end_of(r, 1 - r->side), i));
    is = tw_match_step(&r->match, tw_carried_next(r->loop, carried), mlirOperationGetOperand(end_of(r, r->side), i));
  }
  if (is && r->match.loads > 0)
    return true;
  tw_map_free(&r->match.same);
  return false;
}

/* ---- how many steps there are -------------------------------------------------------------------------- */

/* Whether a condition says that a number has a rest when it is divided: by `by`, into `quotient`. */
static bool tells_rest(MlirValue condition, MlirValue quotient, MlirValue *number, int64_t *by) {
  MlirOperation divide = tw_def(quotient), compare = tw_def(condition);
  if (mlirOperationIsNull(divide) || !tw_op_is(divide, TW_ARITH_FLOORDIVSI) ||
      !tw_known_int(mlirOperationGetOperand(divide, 1), by) || *by <= 0 || mlirOperationIsNull(compare) ||
      !tw_op_is(compare, TW_ARITH_CMPI))
    return false;
  *number = mlirOperationGetOperand(divide, 0);
  int64_t predicate = tw_attr_int(compare, "predicate", -1), mask, zero, factor;
  MlirValue x = mlirOperationGetOperand(compare, 0), y = mlirOperationGetOperand(compare, 1);
  MlirOperation rest = tw_def(x), product = tw_def(predicate == TW_SGT ? y : x);
  if (!mlirOperationIsNull(rest) && predicate == TW_NE && tw_known_int(y, &zero) && zero == 0 &&
      mlirValueEqual(mlirOperationGetOperand(rest, 0), *number))
    return tw_op_is(rest, TW_ARITH_ANDI)
               ? tw_known_int(mlirOperationGetOperand(rest, 1), &mask) && mask == *by - 1 && (*by & mask) == 0
               : tw_op_class(rest) == TW_CLASS_REST && tw_known_int(mlirOperationGetOperand(rest, 1), &mask) &&
                     mask == *by;
  return (predicate == TW_SLT || predicate == TW_SGT) && mlirValueEqual(predicate == TW_SGT ? x : y, *number) &&
         !mlirOperationIsNull(product) && tw_op_is(product, TW_ARITH_MULI) &&
         mlirValueEqual(mlirOperationGetOperand(product, 0), quotient) &&
         tw_known_int(mlirOperationGetOperand(product, 1), &factor) && factor == *by && tw_is_natural(*number);
}

/* One step more where the condition holds. */
static MlirValue build_end(const leftover_t *r) {
  tw_builder_t at = tw_build_before(r->loop);
  MlirValue condition = mlirOperationGetOperand(r->branch, 0), number;
  MlirType type = mlirValueGetType(r->number);
  int64_t step = tw_loop_step(r->loop), by;
  if (r->side == 0 && step == 1 && tells_rest(condition, r->number, &number, &by))
    return tw_binary(&at, "arith.ceildivsi", type, number, tw_const_int(&at, type, by));
  tw_map_t map = {0};
  for (MlirOperation op = r->loop; !mlirOperationEqual(op, r->branch); op = mlirOperationGetNextInBlock(op))
    if (mlirOperationEqual(op, tw_def(condition)))
      condition = tw_copy_slice(&at, condition, mlirOperationGetBlock(r->loop), &map);
  tw_map_free(&map);
  MlirValue more = tw_const_int(&at, type, step), none = tw_const_int(&at, type, 0);
  more = tw_select(&at, condition, r->side == 0 ? more : none, r->side == 0 ? none : more);
  return tw_binary(&at, "arith.addi", type, r->number, more);
}

static void roll(leftover_t *r) {
  mlirOperationSetOperand(r->loop, 1, build_end(r));
  tw_load_for_step(&r->match);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(r->branch); i++)
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(r->branch, i),
                                  mlirOperationGetOperand(end_of(r, 1 - r->side), i));
  mlirOperationDestroy(r->branch);
}

bool tw_roll_rest(MlirOperation loop) {
  leftover_t r = {.loop = loop, .branch = branch_behind(loop)};
  if (tw_loop_step(loop) == 0 || mlirOperationGetNumResults(loop) == 0 ||
      mlirOperationGetNumResults(loop) > TW_MOST_CARRIED || !tw_never_crosses(loop) || mlirOperationIsNull(r.branch) ||
      !only_branch_reads(&r) || !has_early_condition(&r))
    return false;
  tw_builder_t at = tw_build_before(loop);
  MlirValue exit = tw_loop_exit(&at, loop);
  for (r.side = 0; r.side < 2; r.side++)
    if (passes_on(&r, 1 - r.side) && is_step(&r, exit)) {
      roll(&r);
      tw_map_free(&r.match.same);
      return true;
    }
  return false;
}
