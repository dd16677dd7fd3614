/* sink_loads.c - tile-sink-loads: what a reduction does not need waits behind it
 *
 *   before   %x = tile.load %a[%row, %c0] : … -> tensor<1x4096xbf16, #l>
 *            %w = tile.load %g[%c0] : … -> tensor<4096xbf16, #s>
 *            %f = arith.extf %w : tensor<4096xbf16, #s> to tensor<4096xf32, #s>
 *            %s = tile.reduce add, %y axis 1 : tensor<1x4096xf32, #l>
 *            %z = arith.mulf %n, %f : …
 *   after    %x = tile.load %a[%row, %c0] : … -> tensor<1x4096xbf16, #l>
 *            %s = tile.reduce add, %y axis 1 : tensor<1x4096xf32, #l>
 *            %w = tile.load %g[%c0] : … -> tensor<4096xbf16, #s>
 *            %f = arith.extf %w : tensor<4096xbf16, #s> to tensor<4096xf32, #s>
 *            %z = arith.mulf %n, %f : …
 *
 * A thread holds its part of the row through a reduction, and how many rows a multiprocessor works on is a question of
 * registers. Two kinds of ops go down to their first user where a reduction or scan stands between:
 *   - a load of a tile that is the same for all blocks: it comes from a cache, so that its latency is short;
 *   - a widening of elements, so that the narrow ones are held.
 * Loads that differ from block to block stay early: they come from memory, and their bytes must be in flight.
 *
 * Nothing moves into or out of a region, nor a load past an op that may write memory. Runs when layouts are known. */
#include "lowering/ir.h"
#include "lowering/passes.h"

static bool is_boundary(MlirOperation op) { return tw_op_is(op, "tile.reduce") || tw_op_is(op, "tile.scan"); }

/* Ops that only give a tile another form. */
static bool is_form(MlirOperation op) {
  return tw_op_is(op, "arith.extf") || tw_op_is(op, "arith.extsi") || tw_op_is(op, "arith.extui") ||
         tw_op_is(op, "tile.reshape") || tw_op_is(op, "tile.broadcast") || tw_op_is(op, "tile.permute");
}

/* Whether each block computes the same value. */
static bool is_uniform(MlirValue value) {
  MlirOperation op = tw_def(value);
  if (mlirOperationIsNull(op))
    return tw_op_is(mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value)), "func.func");
  if (!tw_op_in(op, "arith") && !tw_op_is(op, "tile.dim") && !tw_op_is(op, "tile.num_blocks"))
    return false;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (!is_uniform(mlirOperationGetOperand(op, i)))
      return false;
  return true;
}

static bool is_shared_load(MlirOperation op) {
  if (!tw_op_is(op, "tile.load") || !tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))))
    return false;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (!is_uniform(mlirOperationGetOperand(op, i)))
      return false;
  return true;
}

static bool may_write(MlirOperation op) {
  return mlirOperationGetNumRegions(op) > 0 || tw_op_is(op, "tile.store") || tw_op_is(op, "tile.scatter");
}

static bool uses(MlirOperation user, MlirValue value) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(user); i++)
    if (mlirValueEqual(mlirOperationGetOperand(user, i), value))
      return true;
  return false;
}

static bool used_outside(MlirOperation op) {
  for (MlirOpOperand use = mlirValueGetFirstUse(mlirOperationGetResult(op, 0)); !mlirOpOperandIsNull(use);
       use = mlirOpOperandGetNextUse(use))
    if (!mlirBlockEqual(mlirOperationGetBlock(mlirOpOperandGetOwner(use)), mlirOperationGetBlock(op)))
      return true;
  return false;
}

static void sink(MlirOperation op) {
  bool crosses = false, loads = tw_op_is(op, "tile.load");
  MlirValue result = mlirOperationGetResult(op, 0);
  if (used_outside(op) || mlirOpOperandIsNull(mlirValueGetFirstUse(result)))
    return;
  MlirOperation at = mlirOperationGetNextInBlock(op);
  for (; !uses(at, result); at = mlirOperationGetNextInBlock(at)) {
    if (loads && may_write(at))
      return;
    crosses = crosses || is_boundary(at);
  }
  if (crosses)
    mlirOperationMoveBefore(op, at);
}

/* A load, or another form of what was loaded. */
static bool is_loaded(MlirOperation op) {
  while (!mlirOperationIsNull(op) && is_form(op))
    op = tw_def(mlirOperationGetOperand(op, 0));
  return !mlirOperationIsNull(op) && tw_op_is(op, "tile.load");
}

static bool may_wait(MlirOperation op) { return (is_form(op) && is_loaded(op)) || is_shared_load(op); }

static bool run(MlirOperation function) {
  tw_ops_t list = tw_ops_in(function, may_wait, MlirWalkPreOrder);
  while (list.count > 0) /* from the end, so that what uses an op has found its place before */
    sink(list.at[--list.count]);
  tw_ops_free(&list);
  return true;
}

MlirPass tw_create_sink_loads(void) {
  static _Alignas(8) char id;
  static const tw_pass_t pass = {&id, "tile-sink-loads", "what a reduction does not need waits behind it", "func.func",
                                 run};
  return tw_pass_create(&pass);
}
