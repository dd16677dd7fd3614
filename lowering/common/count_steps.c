/* count_steps.c - in tile-canonicalize: a loop over every n-th number whose body divides by n counts its steps
 *
 *   before   %lo = arith.muli %first, 64                   after   scf.for %j = %first to %end step 1 {
 *            %hi = arith.muli %end, 64                               %at = arith.muli %j, 64
 *            scf.for %at = %lo to %hi step 64 {                      ... %j, %at
 *              %j = arith.floordivsi %at, 64                       }
 *              ... %j, %at
 *            }
 *
 * So the number of a tile is one that the loop counts, and masks by it are seen to hold everywhere. What must hold: the
 * step is known, and the lower bound a multiple of it. Products that overflow are taken for what they are. */
#include "lowering/common/canonicalize.h"
#include "lowering/loops.h"

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

/* What the step is multiplied by to give the bound; null if that is not seen. */
static MlirValue factor_of(const tw_builder_t *at, MlirValue bound, int64_t step) {
  MlirOperation op = tw_def(bound);
  int64_t known;
  if (tw_known_int(bound, &known))
    return known % step ? (MlirValue){NULL} : tw_const_int(at, mlirValueGetType(bound), known / step);
  for (int i = 0; !mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_MULI) && i < 2; i++)
    if (tw_known_int(mlirOperationGetOperand(op, i), &known) && known == step)
      return mlirOperationGetOperand(op, 1 - i);
  return (MlirValue){NULL};
}

void tw_count_steps(MlirOperation loop) {
  int64_t step = tw_loop_step(loop);
  if (step <= 1 || mlirOperationIsNull(quotient(tw_loop_iv(loop), step)))
    return;
  tw_builder_t before = tw_build_before(loop), at = tw_build_before(mlirBlockGetFirstOperation(tw_loop_body(loop)));
  MlirValue high = mlirOperationGetOperand(loop, 1), iv = tw_loop_iv(loop);
  MlirType type = mlirValueGetType(iv);
  MlirValue bounds[2] = {factor_of(&before, mlirOperationGetOperand(loop, 0), step), factor_of(&before, high, step)};
  if (mlirValueIsNull(bounds[0]))
    return;
  if (mlirValueIsNull(bounds[1]))
    bounds[1] = tw_binary(&before, "arith.ceildivsi", type, high, tw_const_int(&before, type, step));
  MlirValue number = tw_binary(&at, "arith.muli", type, iv, tw_const_int(&at, type, step));
  mlirValueReplaceAllUsesExcept(iv, number, 1, (MlirOperation[]){tw_def(number)});
  for (int i = 0; i < 2; i++)
    mlirOperationSetOperand(loop, i, bounds[i]);
  mlirOperationSetOperand(loop, 2, tw_const_int(&before, type, 1));
  for (MlirOperation op; !mlirOperationIsNull(op = quotient(number, step)); mlirOperationDestroy(op))
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), iv);
}
