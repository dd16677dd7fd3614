/* simt.c - SIMT kernels on the CPU: the body becomes the function of one thread
 *
 *     func.func @k.thread(%words, %grid, %block_id, %thread_id, %shared: !llvm.ptr) { … }
 *     func.func @k(%words, %grid, %first, %last, %scratch) {
 *       call @tw_simt_run(@k.thread, %barriers, %words, %grid, %first, %last, %scratch)
 *
 * runtime/fibers.c runs the threads of a block: one after the other, or in turns where there are barriers. Shared
 * arrays lie in the scratch memory, which is one block's at a time. */
#include "lowering/cpu/cpu.h"

#include <stdio.h>

MlirOperation cpu_build_thread_function(cpu_t *cx, MlirOperation kernel) {
  MlirType pointer = cpu_pointer_type(cx), types[5] = {pointer, pointer, pointer, pointer, pointer};
  MlirBlock old = tw_region_block(kernel, 0);
  cpu_begin_function(cx, 5, types);
  MlirValue arguments[5];
  for (int i = 0; i < 5; i++)
    arguments[i] = mlirBlockGetArgument(cx->entry, i);
  cpu_unpack_arguments(cx, old, arguments[0], arguments[1]);
  for (int d = 0; d < 3; d++) {
    cx->block_dim[d] = cpu_load_i32(cx, arguments[1], 3 + d);
    cx->block_id[d] = cpu_load_i32(cx, arguments[2], d);
    cx->thread_id[d] = cpu_load_i32(cx, arguments[3], d);
  }
  cx->scratch = arguments[4];
  cpu_emit_block(cx, old);
  MlirStringRef name = tw_attr_string(kernel, "sym_name");
  char text[256];
  snprintf(text, sizeof text, "%.*s.thread", (int)name.length, name.data);
  return cpu_end_function(cx, mlirStringAttrGet(cx->context, tw_str(text)), -1);
}

void cpu_call_threads(cpu_t *cx, MlirOperation thread) {
  bool barriers = tw_has_op(cx->func, TW_TILE_SYNC_THREADS);
  tw_builder_t at = cpu_here(cx);
  MlirType type = mlirTypeAttrGetValue(tw_attr(thread, "function_type"));
  MlirValue callee = tw_op1_attr(&at, "func.constant", type, 0, NULL, "value",
                                 mlirFlatSymbolRefAttrGet(cx->context, tw_attr_string(thread, "sym_name")));
  MlirValue operands[7] = {callee, cpu_int_const(cx, cpu_int(cx, 32), barriers)};
  for (int i = 0; i < 5; i++)
    operands[2 + i] = mlirBlockGetArgument(cx->entry, i);
  cpu_call(cx, "tw_simt_run", 7, operands);
}

static void place_thread_id(cpu_t *cx, MlirOperation op) {
  cpu_set_scalar(cx, mlirOperationGetResult(op, 0), cx->thread_id[tw_attr_int(op, "axis", 0) % 3]);
}

static void place_block_dim(cpu_t *cx, MlirOperation op) {
  cpu_set_scalar(cx, mlirOperationGetResult(op, 0), cx->block_dim[tw_attr_int(op, "axis", 0) % 3]);
}

static void place_sync_threads(cpu_t *cx, MlirOperation op) {
  (void)op;
  cpu_call(cx, "tw_simt_sync_threads", 0, NULL);
}

static void place_shared_array(cpu_t *cx, MlirOperation op) {
  MlirValue result = mlirOperationGetResult(op, 0);
  MlirType type = mlirValueGetType(result);
  int64_t shape[TW_MAX_RANK], stride = 1;
  cpu_array_t *array = cpu_alloc(cx, sizeof *array);
  for (intptr_t d = tw_rank(type) - 1; d >= 0; d--) {
    shape[d] = tw_extent(type, d);
    array->extent[d] = cpu_i64_const(cx, shape[d]);
    array->stride[d] = cpu_i64_const(cx, stride);
    array->unit[d] = stride == 1;
    stride *= shape[d];
  }
  array->pointer =
      cpu_new_buffer(cx, mlirRankedTensorTypeGet(tw_rank(type), shape, tw_element(type), (MlirAttribute){NULL}));
  tw_map_one(&cx->arrays, result, (MlirValue){array});
}

CPU_RULE(TW_TILE_THREAD_ID, CPU_EFFECT, 0, NULL, NULL, place_thread_id)
CPU_RULE(TW_TILE_BLOCK_DIM, CPU_EFFECT, 0, NULL, NULL, place_block_dim)
CPU_RULE(TW_TILE_SYNC_THREADS, CPU_EFFECT, 0, NULL, NULL, place_sync_threads)
CPU_RULE(TW_TILE_SHARED_ARRAY, CPU_EFFECT, 0, NULL, NULL, place_shared_array)
