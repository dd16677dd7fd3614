/* count_steps.c - in tile-canonicalize: a loop over every n-th number, of which its body makes tiles, counts its steps
 *
 *   before   %lo = arith.muli %first, 64                   after   scf.for %j = %first to %end step 1 {
 *            %hi = arith.muli %end, 64                               %at = arith.muli %j, 64
 *            scf.for %at = %lo to %hi step 64 {                      ... %j, %at
 *              %j = arith.floordivsi %at, 64                       }
 *              ... %j, %at
 *            }
 *
 * So the number of a tile is one that the loop counts, and masks by it are seen to hold everywhere. Likewise where the
 * number is the first of a tile of elements, %at + tile.iota of n elements, or of a part of n: gathers at those are
 * loads of tiles (gather_to_load.c). What must hold: the step is known, and the lower bound a multiple of it. A product
 * that may overflow is a bound as it is: what is counted ends at its quotient by the step. */
#include "lowering/common/canonicalize.h"
#include "lowering/loops.h"
#include "lowering/ranges.h"

enum { DEPTH = 3 };

static bool divides_by(MlirOperation op, MlirValue iv, int64_t step) {
  int64_t by;
  return tw_op_is(op, TW_ARITH_FLOORDIVSI) && mlirValueEqual(mlirOperationGetOperand(op, 0), iv) &&
         tw_known_int(mlirOperationGetOperand(op, 1), &by) && by == step;
}

/* A quotient of the number by the step; null if there is none. */
static MlirOperation quotient(MlirValue iv, int64_t step) {
  TW_EACH_USE(use, iv)
    if (divides_by(mlirOpOperandGetOwner(use), iv, step))
      return mlirOpOperandGetOwner(use);
  return tw_null_op();
}

/* Whether a product with the step is a number of its type. One past the last, too, where only tiles of an array of that
 * many elements end. */
static bool stays(MlirValue factor, int64_t step) {
  unsigned bits = tw_bits(mlirValueGetType(factor));
  tw_range_t range = tw_range_of(factor);
  int64_t half = bits <= 32 ? INT64_C(1) << (bits - 1) : 0;
  return range.low >= -(half / step) && range.high <= half / step;
}

/* Whether a value is a tile that counts up by one, maybe behind views that insert axes. */
static bool counts_up(MlirValue value, int64_t step) {
  MlirOperation op = tw_def(value);
  while (!mlirOperationIsNull(op) && tw_op_form(op) == TW_FORM_VIEW)
    op = tw_def(mlirOperationGetOperand(op, 0));
  int64_t extent = mlirOperationIsNull(op) ? 0 : tw_count(mlirValueGetType(mlirOperationGetResult(op, 0)));
  bool made = extent > 1 && step % extent == 0 && tw_op_form(op) == TW_FORM_SOURCE;
  return made && mlirOperationGetNumOperands(op) == 0 && !tw_is_constant(op); /* of no number: 0, 1, 2 and so on */
}

/* Whether the number is where a tile of elements begins: something that counts up is added to it. */
static bool begins_tile(MlirValue number, int64_t step, int depth) {
  TW_EACH_USE(use, number) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    bool adds = tw_op_is(user, TW_ARITH_ADDI);
    if (adds && counts_up(mlirOperationGetOperand(user, 1 - mlirOpOperandGetOperandNumber(use)), step))
      return true;
    if (depth > 0 && (adds || tw_op_is(user, TW_TENSOR_SPLAT)) &&
        begins_tile(mlirOperationGetResult(user, 0), step, depth - 1))
      return true;
  }
  return false;
}

/* What the step is multiplied by to give the bound; null if that is not seen. */
static MlirValue factor_of(const tw_builder_t *at, MlirValue bound, int64_t step) {
  MlirOperation op = tw_def(bound);
  int64_t known;
  if (tw_known_int(bound, &known))
    return known % step ? (MlirValue){NULL} : tw_const_int(at, mlirValueGetType(bound), known / step);
  for (int i = 0; !mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_MULI) && i < 2; i++)
    if (tw_known_int(mlirOperationGetOperand(op, i), &known) && known == step &&
        stays(mlirOperationGetOperand(op, 1 - i), step))
      return mlirOperationGetOperand(op, 1 - i);
  return (MlirValue){NULL};
}

/* Whether a bound is a product with a multiple of a power of two, whose low bits are zeros even if it overflows. */
static bool is_multiple(MlirValue bound, int64_t step) {
  MlirOperation op = tw_def(bound);
  int64_t known;
  bool found = false;
  for (int i = 0; !mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_MULI) && i < 2; i++)
    found |= tw_known_int(mlirOperationGetOperand(op, i), &known) && known % step == 0;
  return found && (step & (step - 1)) == 0;
}

/* The quotient of a bound by the step, rounded up; `factor`, if that is not null. */
static MlirValue quotient_of(const tw_builder_t *at, MlirValue bound, int64_t step, MlirValue factor) {
  MlirType type = mlirValueGetType(bound);
  return factor.ptr ? factor : tw_binary(at, "arith.ceildivsi", type, bound, tw_const_int(at, type, step));
}

void tw_count_steps(MlirOperation loop) {
  int64_t step = tw_loop_step(loop);
  if (step <= 1 ||
      (mlirOperationIsNull(quotient(tw_loop_iv(loop), step)) && !begins_tile(tw_loop_iv(loop), step, DEPTH)))
    return;
  tw_builder_t before = tw_build_before(loop), at = tw_build_before(mlirBlockGetFirstOperation(tw_loop_body(loop)));
  MlirValue low = mlirOperationGetOperand(loop, 0), high = mlirOperationGetOperand(loop, 1), iv = tw_loop_iv(loop);
  MlirType type = mlirValueGetType(iv);
  MlirValue bounds[2] = {factor_of(&before, low, step), factor_of(&before, high, step)};
  if (mlirValueIsNull(bounds[0]) && !is_multiple(low, step))
    return;
  bounds[0] = quotient_of(&before, low, step, bounds[0]);
  bounds[1] = quotient_of(&before, high, step, bounds[1]);
  MlirValue number = tw_binary(&at, "arith.muli", type, iv, tw_const_int(&at, type, step));
  mlirValueReplaceAllUsesExcept(iv, number, 1, (MlirOperation[]){tw_def(number)});
  for (int i = 0; i < 2; i++)
    mlirOperationSetOperand(loop, i, bounds[i]);
  mlirOperationSetOperand(loop, 2, tw_const_int(&before, type, 1));
  for (MlirOperation op; !mlirOperationIsNull(op = quotient(number, step)); mlirOperationDestroy(op))
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), iv);
}
