/* online_softmax.c - tile-online-softmax: cheap exponents and lazy rescaling
 *
 * First what is flushed twice is flushed once: `tile.flush` of a `math.exp2`, which has an instruction that does it,
 * and of what a rough quotient reads and gives. Each part has the IR before and after at the head of its file. Their
 * order matters: folding collects the factors that the soft cap leaves, and lazy rescaling reads the exp2 that folding
 * makes. With the hint approximate = 0 they are left out: each changes how results are rounded. */
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

static bool is_rough(MlirOperation op) {
  return tw_op_class(op) == TW_CLASS_FLOAT_QUOTIENT && tw_has_attr(op, TW_ROUGH);
}

/* Whether what the op gives is flushed by its instruction, if it is marked. */
static bool flushes_itself(MlirOperation op) {
  if (mlirOperationIsNull(op))
    return false;
  return is_rough(op) || (tw_op_is(op, TW_MATH_EXP2) && (tw_has_attr(op, TW_APPROXIMATE) || is_flushed(op)));
}

/* Whether all that reads a value flushes it. */
static bool is_flushed_by_readers(MlirValue value) {
  TW_EACH_USE(use, value)
    if (!is_rough(mlirOpOperandGetOwner(use)))
      return false;
  return true;
}

static void drop_flush(MlirOperation flush) {
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(flush, 0), mlirOperationGetOperand(flush, 0));
  mlirOperationDestroy(flush);
}

/* ex2.approx.ftz gives what is flushed already; the mark asks for it. A rough quotient flushes what it reads, too. */
static void drop_flushes(MlirOperation func) {
  tw_ops_t flushes = tw_ops_in(func, is_flush, MlirWalkPreOrder);
  for (int i = 0; i < flushes.count; i++) {
    MlirOperation op = tw_def(mlirOperationGetOperand(flushes.at[i], 0));
    bool by_itself = flushes_itself(op);
    if (by_itself)
      mlirOperationSetAttributeByName(op, tw_str(TW_APPROXIMATE), mlirUnitAttrGet(mlirOperationGetContext(op)));
    if (by_itself || is_flushed_by_readers(mlirOperationGetResult(flushes.at[i], 0)))
      drop_flush(flushes.at[i]);
  }
  tw_ops_free(&flushes);
}

bool tw_run_online_softmax(MlirOperation func) {
  if (tw_hint_approximate(func, 1) == 0)
    return true;
  drop_flushes(func);
  return tw_soft_cap(func) && tw_fold_scale(func) && tw_lazy_rescale(func);
}
