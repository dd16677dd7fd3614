/* own_arrays.c - arrays of a thread's own, where the threads of a block are loops
 *
 *   before   %a = tile.local_array : memref<16xi32, 5>      after   %a = tile.shared_array : memref<16x1024xi32, 3>
 *            tile.scatter %x, %a[%k]                                tile.scatter %x, %a[%k, %thread]
 *
 * Elements of threads side by side are neighbours, so that a strip of threads reads and writes them as vectors. A
 * thread touches no other one's.
 *
 * What must hold: accesses are by element. An array that is looked at in another way stays, and with it the kernel: its
 * threads are run one by one (simt.c). */
#include "lowering/cpu/cpu.h"

#include "tilewright/dialect.h"

enum {
  MOST_THREADS = TW_BLOCK_WARPS * CPU_WARP,
  MOST_BYTES = 1024, /* a thread: of a full block a megabyte */
  MOST_OPERANDS = TW_MAX_RANK + 6,
  MOST_SEGMENTS = 8,
};

bool cpu_is_own_array(MlirOperation op) { return tw_op_is(op, TW_TILE_LOCAL_ARRAY); }

static bool has_room(MlirOperation op, MlirValue array) {
  MlirType type = mlirValueGetType(array);
  intptr_t first;
  return mlirValueEqual(mlirOperationGetOperand(op, 0), array) && tw_rank(type) < TW_MAX_RANK &&
         tw_operands(op, TW_OPERAND_INDICES, &first) == tw_rank(type) && first == 1 &&
         mlirOperationGetNumOperands(op) < MOST_OPERANDS;
}

bool cpu_can_spread(MlirOperation op) {
  MlirValue array = mlirOperationGetResult(op, 0);
  MlirType type = mlirValueGetType(array);
  if (tw_count(type) * tw_bytes(tw_element(type)) > MOST_BYTES || tw_bytes(tw_element(type)) == 0)
    return false;
  TW_EACH_USE(use, array) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    if (!tw_op_has(user, TW_BY_ELEMENT) || mlirOpOperandGetOperandNumber(use) != 0 || !has_room(user, array))
      return false;
  }
  return true;
}

/* The access with one more index. */
static void add_index(MlirOperation op, MlirValue array, MlirValue thread) {
  MlirValue operands[MOST_OPERANDS];
  int64_t given[MOST_SEGMENTS];
  int32_t segments[MOST_SEGMENTS];
  intptr_t num = mlirOperationGetNumOperands(op), first, rank = tw_operands(op, TW_OPERAND_INDICES, &first);
  intptr_t parts = tw_attr_ints(op, "operandSegmentSizes", given, MOST_SEGMENTS);
  for (intptr_t i = 0; i < parts; i++)
    segments[i] = (int32_t)given[i] + (i == 1);
  for (intptr_t i = 0; i < num; i++)
    operands[i + (i > rank)] = mlirOperationGetOperand(op, i);
  operands[0] = array;
  operands[rank + 1] = thread;
  tw_builder_t at = tw_build_before(op);
  tw_attr_t attr = {"operandSegmentSizes", mlirDenseI32ArrayGet(at.context, parts, segments)};
  MlirType type =
      mlirOperationGetNumResults(op) > 0 ? mlirValueGetType(mlirOperationGetResult(op, 0)) : (MlirType){NULL};
  MlirOperation new = tw_build(&at, tw_op_row(op)->name,
                               (tw_op_parts_t){.num_operands = num + 1,
                                               .operands = operands,
                                               .num_results = mlirOperationGetNumResults(op),
                                               .results = &type,
                                               .num_attrs = 1,
                                               .attrs = &attr});
  tw_copy_attrs(op, new);
  tw_set_attr(new, attr.name, attr.value);
  if (mlirOperationGetNumResults(op) > 0)
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), mlirOperationGetResult(new, 0));
  mlirOperationDestroy(op);
}

static void spread(MlirOperation op) {
  MlirValue old = mlirOperationGetResult(op, 0);
  MlirType type = mlirValueGetType(old);
  int64_t shape[TW_MAX_RANK];
  intptr_t rank = tw_rank(type);
  for (intptr_t d = 0; d < rank; d++)
    shape[d] = tw_extent(type, d);
  shape[rank] = MOST_THREADS;
  tw_builder_t at = tw_build_before(op);
  MlirAttribute space = mlirIntegerAttrGet(mlirIntegerTypeGet(at.context, 64), TW_SPACE_SHARED);
  type = mlirMemRefTypeGet(tw_element(type), rank + 1, shape, mlirAttributeGetNull(), space);
  MlirValue array = tw_op1(&at, "tile.shared_array", type, 0, NULL),
            thread = tw_linear_number(&at, "tile.thread_id", "tile.block_dim");
  for (MlirOpOperand use; use = mlirValueGetFirstUse(old), !mlirOpOperandIsNull(use);)
    add_index(mlirOpOperandGetOwner(use), array, thread);
  mlirOperationDestroy(op);
}

void cpu_spread_arrays(MlirOperation root) {
  tw_ops_t arrays = tw_ops_in(root, cpu_is_own_array, MlirWalkPreOrder);
  for (int i = 0; i < arrays.count; i++)
    spread(arrays.at[i]);
  tw_ops_free(&arrays);
}
