/* late_operands.c - tile-sink-waits: what products read from registers is made right before them, if registers are
 * short
 *
 * Before, the operand and the initial sum of a later product are in registers while others run:
 *
 *   %l = tile.local_load %B[%0] ; %b = arith.mulf %l, %w
 *   %i = arith.mulf %carried, %decay
 *   %s' = tile.mma_wait %s ; ...
 *   %t = tile.async_mma %b, %x[%0], %i
 *
 * After:
 *
 *   %s' = tile.mma_wait %s ; ...
 *   %l = tile.local_load %B[%0] ; %b = arith.mulf %l, %w
 *   %i = arith.mulf %carried, %decay
 *   %t = tile.async_mma %b, %x[%0], %i
 *
 * The assembler keeps the order of waits for products and of what is made between them: it would spill what is made
 * early. And what is made in front of a wait from a sum that a product left, it takes for a use of the registers of the
 * product that is under way, for which it waits at once (C7517).
 *
 * Where all fits into registers, what is computed early runs beside a product, and stays. An op moves for a product
 * that has another one of its block in front, and a wait between them, if it does not keep more registers of operands
 * than its result has. Reads of shared memory move as far as nothing writes to their buffer. */
#include "lowering/gpu/schedule/late_operands.h"

#include "dialect/layouts.h"
#include "lowering/gpu/facts/alive.h"
#include "lowering/gpu/machine/budget.h"

/* ---- registers --------------------------------------------------------------------------------------- */

/* Words of a thread's registers: none of what each thread makes where it reads it. */
static int64_t words_of(MlirValue value) {
  MlirOperation op = tw_def(value);
  bool made = !mlirOperationIsNull(op) && tw_op_form(op) == TW_FORM_SOURCE;
  return made ? 0 : tw_register_words(mlirValueGetType(value));
}

static MlirValue renamed(MlirValue value) {
  for (MlirOperation op = tw_def(value); !mlirOperationIsNull(op) && tw_renames(op); op = tw_def(value))
    value = mlirOperationGetOperand(op, 0);
  return value;
}

static bool is_of_block(MlirValue value, MlirBlock block) {
  return mlirBlockEqual(block, mlirValueIsABlockArgument(value) ? mlirBlockArgumentGetOwner(value)
                                                                : mlirOperationGetBlock(tw_def(value)));
}

static bool is_short_of_registers(MlirBlock block) {
  int64_t most = tw_most_alive(block, words_of);
  return most > tw_register_budget(mlirBlockGetParentOperation(block), TW_BUDGET_ALIVE_BESIDE_MMA);
}

/* ---- what may move ----------------------------------------------------------------------------------- */

static bool waits_between(MlirOperation op, MlirOperation user) {
  while (!mlirOperationEqual(op, user) && !tw_op_waits_for_products(op))
    op = mlirOperationGetNextInBlock(op);
  return !mlirOperationEqual(op, user);
}

static bool changes_buffer(MlirOperation op, const void *user) {
  const MlirValue *buffer = user;
  return tw_takes(op, *buffer) && !tw_op_reads_shared(op);
}

/* Whether the buffer that the op reads holds the same at `user`. */
static bool is_kept(MlirOperation load, MlirOperation user) {
  MlirValue buffer = mlirOperationGetOperand(load, 0);
  MlirOperation op = mlirOperationGetNextInBlock(load);
  while (!mlirOperationEqual(op, user) && mlirOperationIsNull(tw_find_op(op, changes_buffer, &buffer)))
    op = mlirOperationGetNextInBlock(op);
  return mlirOperationEqual(op, user);
}

static bool may_move(MlirOperation op, MlirOperation user) {
  if (mlirOperationIsNull(op) || !mlirBlockEqual(mlirOperationGetBlock(op), mlirOperationGetBlock(user)) ||
      mlirOperationGetNumRegions(op) > 0 || mlirOperationGetNumResults(op) != 1 ||
      !tw_is_first_reader(mlirOperationGetResult(op, 0), user))
    return false;
  if (tw_op_loads_buffer(op))
    return is_kept(op, user);
  return tw_is_arithmetic(op) && !tw_op_combines(op) && !tw_op_is_conversion(op);
}

/* Whether the value, by any name, is read from shared memory for `op` alone: then it moves with it. */
static bool is_read_for(MlirValue value, MlirOperation op, MlirOperation user) {
  MlirOperation load = tw_def(value);
  return !mlirOperationIsNull(load) && tw_op_loads_buffer(load) && is_kept(load, user) &&
         mlirOperationIsNull(tw_last_reader(value, mlirOperationGetBlock(op), op));
}

/* Words of operands that only the op would keep until `user`. */
static int64_t kept_words(MlirOperation op, MlirOperation user) {
  MlirBlock block = mlirOperationGetBlock(op);
  int64_t words = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirValue value = renamed(mlirOperationGetOperand(op, i));
    MlirOperation last = tw_last_reader(value, block, op);
    bool until = !mlirOperationIsNull(last) && !mlirOperationIsBeforeInBlock(last, user);
    if (!until && is_of_block(value, block) && !is_read_for(value, op, user))
      words += words_of(value);
  }
  return words;
}

/* Moves what makes the value to its first reader, a product or what makes one of its operands. */
static void sink(MlirValue value, MlirOperation user) {
  MlirOperation op = tw_def(value);
  if (!tw_is_tile(mlirValueGetType(value)) || !may_move(op, user) ||
      (!tw_renames(op) && kept_words(op, user) > words_of(value)))
    return;
  mlirOperationMoveBefore(op, user);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    sink(mlirOperationGetOperand(op, i), op);
}

/* ---- the pass ---------------------------------------------------------------------------------------- */

void tw_make_operands_late(MlirOperation func) {
  tw_ops_t products = tw_ops_in(func, tw_op_is_async_product, MlirWalkPreOrder);
  for (int i = 0; i < products.count; i++) {
    MlirOperation product = products.at[i];
    bool later = i > 0 && mlirBlockEqual(mlirOperationGetBlock(products.at[i - 1]), mlirOperationGetBlock(product));
    if (!later || !waits_between(products.at[i - 1], product) || !is_short_of_registers(mlirOperationGetBlock(product)))
      continue;
    for (intptr_t o = 0; o < mlirOperationGetNumOperands(product); o++)
      sink(mlirOperationGetOperand(product, o), product);
  }
  tw_ops_free(&products);
}
