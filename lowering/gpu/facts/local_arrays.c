/* local_arrays.c - loops of a thread that are written out. See local_arrays.h. */
#include "lowering/gpu/facts/local_arrays.h"

#include "lowering/loops.h"
#include "tilewright/dialect.h"

enum {
  MOST_TRIPS = 64,
  MOST_OPS = 4096,  /* of all iterations of a loop and of those around it that are written out, too */
  MOST_BYTES = 512, /* of an array: a thread has 255 registers */
  LOOK_BACK = 12,
};

/* How often a loop runs; 0 where that is not known, or is too often. */
static int64_t trips(MlirOperation loop) {
  int64_t first, end, step;
  if (!tw_op_is(loop, TW_SCF_FOR) || !tw_known_int(mlirOperationGetOperand(loop, 0), &first) ||
      !tw_known_int(mlirOperationGetOperand(loop, 1), &end) || !tw_known_int(mlirOperationGetOperand(loop, 2), &step))
    return 0;
  if (step <= 0 || end <= first || (end - first - 1) / step >= MOST_TRIPS)
    return 0;
  return (end - first - 1) / step + 1;
}

/* Ops of a block, those of inner loops as often as they run, up to MOST_OPS. */
static int64_t weight(MlirBlock block) {
  int64_t sum = 0;
  if (mlirBlockIsNull(block))
    return 0;
  TW_EACH_OP(op, block) {
    int64_t inside = 1, times = trips(op);
    for (intptr_t i = 0; i < mlirOperationGetNumRegions(op); i++)
      inside += weight(tw_region_block(op, (int)i));
    sum += inside * (times ? times : 1);
    if (sum > MOST_OPS)
      break;
  }
  return sum;
}

static bool is_small_enough(MlirOperation loop) {
  int64_t times = trips(loop);
  return times > 0 && times * weight(tw_loop_body(loop)) <= MOST_OPS;
}

static bool is_known_once_written_out(MlirValue value, int depth);

static bool all_are_known(MlirOperation op, intptr_t first, intptr_t num, int depth) {
  bool ok = true;
  for (intptr_t i = first; ok && i < first + num; i++)
    ok = is_known_once_written_out(mlirOperationGetOperand(op, i), depth);
  return ok;
}

static bool is_known_once_written_out(MlirValue value, int depth) {
  if (mlirValueIsABlockArgument(value)) {
    MlirOperation around = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value));
    return tw_op_is(around, TW_SCF_FOR) && mlirValueEqual(value, tw_loop_iv(around)) && is_small_enough(around);
  }
  MlirOperation op = tw_def(value);
  return tw_is_constant(op) ||
         (depth > 0 && tw_op_has(op, TW_PURE) && mlirOperationGetNumRegions(op) == 0 &&
          mlirOperationGetNumOperands(op) > 0 && all_are_known(op, 0, mlirOperationGetNumOperands(op), depth - 1));
}

/* Whether registers can hold the array. */
static bool has_known_indices(MlirValue array) {
  bool ok = true;
  TW_EACH_USE(use, array) {
    MlirOperation op = mlirOpOperandGetOwner(use);
    intptr_t first, num;
    if (tw_op_is(op, TW_TILE_VIEW))
      ok = all_are_known(op, 1, mlirOperationGetNumOperands(op) - 1, LOOK_BACK) &&
           has_known_indices(mlirOperationGetResult(op, 0));
    else
      ok = (tw_op_gathers(op) || tw_op_scatters(op)) && (num = tw_operands(op, TW_OPERAND_INDICES, &first)) >= 0 &&
           all_are_known(op, first, num, LOOK_BACK);
    if (!ok)
      break;
  }
  return ok;
}

static bool goes_to_registers(MlirOperation op) {
  if (!tw_op_is(op, TW_TILE_LOCAL_ARRAY))
    return false;
  MlirValue array = mlirOperationGetResult(op, 0);
  MlirType type = mlirValueGetType(array);
  return tw_count(type) * tw_bytes(tw_element(type)) <= MOST_BYTES && has_known_indices(array);
}

static MlirOperation made_by(MlirValue array) {
  MlirOperation op = tw_def(array);
  while (!mlirOperationIsNull(op) && tw_op_is(op, TW_TILE_VIEW))
    op = tw_def(tw_operand(op, TW_OPERAND_ARRAY));
  return op;
}

static bool follows_from(MlirValue value, MlirValue number, int depth) {
  if (mlirValueEqual(value, number))
    return true;
  MlirOperation op = tw_def(value);
  bool found = false;
  for (intptr_t i = 0; !mlirOperationIsNull(op) && depth > 0 && !found && i < mlirOperationGetNumOperands(op); i++)
    found = follows_from(mlirOperationGetOperand(op, i), number, depth - 1);
  return found;
}

/* Whether the op accesses such an array, or is a view of one, at a place that follows from the loop's number. */
static bool walks(MlirOperation op, MlirValue number) {
  bool is_view = tw_op_is(op, TW_TILE_VIEW), found = false;
  if (!is_view && !tw_op_gathers(op) && !tw_op_scatters(op))
    return false;
  intptr_t first = 1, num = mlirOperationGetNumOperands(op) - 1;
  if (!is_view)
    num = tw_operands(op, TW_OPERAND_INDICES, &first);
  for (intptr_t i = first; !found && i < first + num; i++)
    found = follows_from(mlirOperationGetOperand(op, i), number, LOOK_BACK);
  if (!found)
    return false;
  MlirOperation array = made_by(tw_operand(op, TW_OPERAND_ARRAY));
  return !mlirOperationIsNull(array) && goes_to_registers(array);
}

static bool has_walk(MlirBlock block, MlirValue number) {
  bool found = false;
  TW_EACH_OP(op, block) {
    found = walks(op, number);
    for (intptr_t i = 0; !found && i < mlirOperationGetNumRegions(op); i++)
      if (!mlirBlockIsNull(tw_region_block(op, (int)i)))
        found = has_walk(tw_region_block(op, (int)i), number);
    if (found)
      break;
  }
  return found;
}

bool tw_is_written_out(MlirOperation loop) {
  return is_small_enough(loop) && has_walk(tw_loop_body(loop), tw_loop_iv(loop));
}

int64_t tw_words_in_registers(MlirOperation func) {
  tw_ops_t arrays = tw_ops_in(func, goes_to_registers, MlirWalkPreOrder);
  int64_t words = 0;
  for (int i = 0; i < arrays.count; i++) {
    MlirType type = mlirValueGetType(mlirOperationGetResult(arrays.at[i], 0));
    words += (tw_count(type) * tw_bytes(tw_element(type)) + 3) / 4;
  }
  tw_ops_free(&arrays);
  return words;
}
