/* online_softmax.c - tile-online-softmax: cheap exponents and lazy rescaling
 *
 * First what is flushed twice is flushed once: `tile.flush` of a `math.exp2`, which has an instruction that does it.
 * Each part has the IR before and after at the head of its file. Their order matters: folding collects the factors that
 * the soft cap leaves, and lazy rescaling reads the exp2 that folding makes. With the hint approximate = 0 they are
 * left out: each changes how results are rounded. */
#include "lowering/gpu/softmax/online_softmax.h"

#include "lowering/launch_record.h"
#include "lowering/passes.h"

static bool is_flush(MlirOperation op) { return tw_op_has(op, TW_FLUSHES); }

static bool is_flushed(MlirOperation exp2) {
  MlirValue result = mlirOperationGetResult(exp2, 0);
  TW_EACH_USE(use, result)
    if (!is_flush(mlirOpOperandGetOwner(use)))
      return false;
  return true;
}

/* ex2.approx.ftz gives what is flushed already; the mark asks for it. */
static void drop_flushes(MlirOperation func) {
  tw_ops_t flushes = tw_ops_in(func, is_flush, MlirWalkPreOrder);
  for (int i = 0; i < flushes.count; i++) {
    MlirValue flushed = mlirOperationGetOperand(flushes.at[i], 0);
    MlirOperation op = tw_def(flushed);
    if (mlirOperationIsNull(op) || !tw_op_is(op, TW_MATH_EXP2) || !(tw_has_attr(op, TW_APPROXIMATE) || is_flushed(op)))
      continue;
    mlirOperationSetAttributeByName(op, tw_str(TW_APPROXIMATE), mlirUnitAttrGet(mlirOperationGetContext(op)));
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(flushes.at[i], 0), flushed);
    mlirOperationDestroy(flushes.at[i]);
  }
  tw_ops_free(&flushes);
}

bool tw_run_online_softmax(MlirOperation func) {
  if (tw_hint_approximate(func, 1) == 0)
    return true;
  drop_flushes(func);
  return tw_soft_cap(func) && tw_fold_scale(func) && tw_lazy_rescale(func);
}
