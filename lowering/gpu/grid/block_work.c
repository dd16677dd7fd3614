/* block_work.c - how the work of a block changes with its position in the grid. See block_work.h. */
#include "lowering/gpu/grid/block_work.h"

#include "lowering/gpu/facts/kernel_words.h"

/* How a number changes along the axis that it depends on. */
enum { FALLS = -1, SAME = 0, GROWS = 1, UNKNOWN = 2 };

static int both(int x, int y) { return y == SAME || x == y ? x : x == SAME ? y : UNKNOWN; }

static int opposite(int slope) { return slope == UNKNOWN ? UNKNOWN : -slope; }

/* Of its first operand, by a constant: it grows as that does, or falls. */
static bool is_multiple(tw_op_class_t class) {
  return class == TW_CLASS_MULTIPLE || class == TW_CLASS_QUOTIENT || class == TW_CLASS_CEILING ||
         class == TW_CLASS_SHIFT;
}

static int slope_of(const tw_block_axes_t *axes, MlirValue value) {
  MlirOperation op = tw_def(value);
  int64_t factor;
  if (tw_block_axes_get(axes, value) == 0)
    return SAME;
  if (mlirOperationIsNull(op))
    return UNKNOWN;
  if (tw_op_is(op, TW_TILE_BLOCK_ID))
    return GROWS;
  tw_op_class_t class = tw_op_class(op);
  if (class == TW_CLASS_CAST)
    return slope_of(axes, mlirOperationGetOperand(op, 0));
  if (is_multiple(class) && tw_known_int(mlirOperationGetOperand(op, 1), &factor)) {
    int slope = slope_of(axes, mlirOperationGetOperand(op, 0));
    return factor < 0 ? opposite(slope) : slope;
  }
  if (tw_op_is(op, TW_ARITH_MINSI) && tw_known_int(mlirOperationGetOperand(op, 1), &factor) && factor <= 0 &&
      slope_of(axes, mlirOperationGetOperand(op, 0)) == GROWS)
    return SAME; /* positions count from 0, so that few have less: a step behind a loop, rolled into it, is done once */
  if (class != TW_CLASS_SUM && class != TW_CLASS_EXTREME)
    return UNKNOWN;
  int rhs = slope_of(axes, mlirOperationGetOperand(op, 1));
  return both(slope_of(axes, mlirOperationGetOperand(op, 0)), tw_op_is(op, TW_ARITH_SUBI) ? opposite(rhs) : rhs);
}

typedef struct {
  const tw_block_axes_t *axes;
  tw_block_work_t work;
} look_t;

static MlirWalkResult look_at_length(MlirOperation loop, void *user) {
  look_t *l = user;
  if (!tw_op_is(loop, TW_SCF_FOR))
    return MlirWalkResultAdvance;
  MlirValue lower = mlirOperationGetOperand(loop, 0), upper = mlirOperationGetOperand(loop, 1);
  for (int i = 0; i < 3; i++)
    l->work.axes |= tw_block_axes_get(l->axes, mlirOperationGetOperand(loop, i));
  int slope = both(slope_of(l->axes, upper), opposite(slope_of(l->axes, lower)));
  l->work.grows |= slope == GROWS;
  l->work.falls |= slope == FALLS;
  return MlirWalkResultAdvance;
}

tw_block_work_t tw_block_work_of(MlirOperation func, const tw_block_axes_t *axes) {
  look_t l = {.axes = axes};
  mlirOperationWalk(func, look_at_length, &l, MlirWalkPreOrder);
  return l.work;
}

int tw_block_work_axis(const tw_block_work_t *work) {
  for (int axis = 0; axis < TW_GRID_AXES; axis++)
    if (work->axes == UINT32_C(1) << axis && work->grows != work->falls)
      return axis;
  return -1;
}
