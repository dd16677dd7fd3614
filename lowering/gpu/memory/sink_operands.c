/* sink_operands.c - tile-pipeline: operands of multiply-adds are read right before them
 *
 * Before, an iteration reads all tiles that it was brought, and with them fills its registers:
 *
 *   %a = tile.local_load %A[%read] ; %b = tile.local_load %B[%read] ; %c = tile.local_load %C[%read]
 *   %s = tile.mma %a, %b, %zero
 *   %t = tile.convert_layout %s            // through shared memory: no load passes its barrier later
 *   %u = tile.mma %t, %c, %zero
 *
 * After, each stands in front of its product, with what is computed from it for that product only:
 *
 *   %a = tile.local_load %A[%read] ; %b = tile.local_load %B[%read]
 *   %s = tile.mma %a, %b, %zero
 *   %t = tile.convert_layout %s
 *   %c = tile.local_load %C[%read]
 *   %u = tile.mma %t, %c, %zero
 *
 * A thread has rows and columns of such operands whole: hundreds of registers each, which the assembler would spill, in
 * minutes. Products that have an instruction keep their order: their fragments are small, and wait for no arithmetic.
 *
 * What must hold for a read to move: between it and the product is nothing but arithmetic and loads from arrays. */
#include "lowering/gpu/memory/sink_operands.h"

#include "lowering/gpu/facts/alive.h"
#include "lowering/gpu/isa/families.h"

static bool can_pass(MlirOperation op) {
  return mlirOperationGetNumRegions(op) == 0 &&
         (tw_is_arithmetic(op) || tw_op_loads(op) || tw_op_loads_buffer(op) || tw_op_is_product(op));
}

static bool can_reach(MlirOperation op, MlirOperation before) {
  MlirOperation next = mlirOperationGetNextInBlock(op);
  while (!mlirOperationIsNull(next) && !mlirOperationEqual(next, before) && can_pass(next))
    next = mlirOperationGetNextInBlock(next);
  return !mlirOperationIsNull(next) && mlirOperationEqual(next, before);
}

/* A read, a conversion, or what is computed from either. */
static bool can_move(MlirOperation op) {
  return mlirOperationGetNumRegions(op) == 0 && mlirOperationGetNumResults(op) == 1 &&
         (tw_op_loads_buffer(op) || tw_op_is_conversion(op) || (tw_is_arithmetic(op) && !tw_op_combines(op)));
}

/* Moves what makes the value to its first user. */
static void sink(MlirValue value, MlirOperation user) {
  MlirOperation op = tw_def(value);
  if (mlirOperationIsNull(op) || !tw_is_tile(mlirValueGetType(value)) || !can_move(op) ||
      !mlirBlockEqual(mlirOperationGetBlock(op), mlirOperationGetBlock(user)) || !tw_is_first_reader(value, user) ||
      (tw_op_loads_buffer(op) && !can_reach(op, user)))
    return;
  mlirOperationMoveBefore(op, user);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op) && !tw_op_is_conversion(op); i++)
    sink(mlirOperationGetOperand(op, i), op);
}

static bool is_multiply_add(MlirOperation op) { return tw_op_is_product(op) && !tw_mma_has_instruction(op); }

void tw_sink_operands(MlirOperation func) {
  tw_ops_t products = tw_ops_in(func, is_multiply_add, MlirWalkPreOrder);
  for (int i = 0; i < products.count; i++)
    for (int o = 0; o < 2; o++)
      sink(mlirOperationGetOperand(products.at[i], o), products.at[i]);
  tw_ops_free(&products);
}
