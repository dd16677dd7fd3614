/* simt.c - SIMT kernels on the CPU: the body becomes the function of one thread
 *
 *     func.func @k.thread(%words, %grid, %block_id, %thread_id, %shared: !llvm.ptr) { … }
 *     func.func @k(%words, %grid, %first, %last, %scratch) {
 *       call @tw_simt_run(@k.thread, %waits, %words, %grid, %first, %last, %scratch)
 *
 * runtime/fibers.c runs the threads of a block: one after the other, or in turns where they wait for each other. What
 * they wait for is a call with the place in the source:
 *
 *     tile.sync_threads                     call @tw_simt_sync_threads(@"k.py:12")
 *     %y = tile.shuffle down, %m, %x, %d    %y = call @tw_simt_shuffle(2, %m, %x, %d, @"k.py:12")
 *
 * Shared arrays lie in the scratch memory, which is one block's at a time, and behind them what the launch adds; a
 * thread's own arrays lie on its stack. */
#include "lowering/cpu/cpu.h"
#include "lowering/launch_record.h"

#include "tilewright/base.h"
#include "tilewright/kernel_calls.h"

#include "mlir-c/Dialect/LLVM.h"

#include <stdio.h>

/* Where the launcher says how many bytes of shared memory it adds, and how far into the scratch memory they begin. */
enum { GRID_SHARED_BYTES = 6, GRID_SHARED_FIRST };
enum { MOST_LOCAL_BYTES = 128 * 1024 };

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
  cx->grid = arguments[1];
  cpu_emit_block(cx, old);
  return cpu_end_function(cx, tw_name_behind(kernel, ".thread"), -1);
}

/* --- waiting for others --------------------------------------------------------------------------------- */

bool cpu_is_polled(MlirOperation op) {
  if (!tw_has_attr(tw_function_of(op), "tile.simt"))
    return false;
  for (MlirOperation up = mlirOperationGetParentOperation(op); !mlirOperationIsNull(up);
       up = mlirOperationGetParentOperation(up))
    if (tw_op_is(up, TW_SCF_WHILE))
      return true;
  return false;
}

static bool is_atomic(MlirOperation op) {
  return tw_op_is(op, TW_TILE_ATOMIC_PAIR) || (tw_op_has(op, TW_BY_ELEMENT) && !tw_op_loads(op) && !tw_op_stores(op));
}

static bool waits(MlirOperation op) {
  return tw_op_has(op, TW_MEETS_BLOCK | TW_MEETS_WARP) || tw_op_is(op, TW_TILE_SLEEP) ||
         (is_atomic(op) && cpu_is_polled(op));
}

static bool waits_for_grid(MlirOperation op) { return tw_op_is(op, TW_TILE_SYNC_GRID); }

void cpu_call_threads(cpu_t *cx, MlirOperation kernel, MlirOperation thread) {
  tw_simt_wait_t how = tw_has_op_like(kernel, waits) ? TW_SIMT_WAITS_IN_BLOCK : TW_SIMT_WAITS_NEVER;
  if (tw_has_op_like(kernel, waits_for_grid)) {
    how = TW_SIMT_WAITS_IN_GRID;
    tw_launch_set_cooperative(kernel, true);
  }
  tw_builder_t at = cpu_here(cx);
  MlirType type = mlirTypeAttrGetValue(tw_attr(thread, "function_type"));
  MlirValue callee = tw_op1_attr(&at, "func.constant", type, 0, NULL, "value",
                                 mlirFlatSymbolRefAttrGet(cx->context, tw_attr_string(thread, "sym_name")));
  MlirValue operands[7] = {callee, cpu_i32_const(cx, how)};
  for (int i = 0; i < 5; i++)
    operands[2 + i] = mlirBlockGetArgument(cx->entry, i);
  cpu_call(cx, "tw_simt_run", 7, operands);
}

/* The file and line where an op was written: of a function that was inlined, in that. */
static void put_site(MlirLocation at, tw_strbuf_t *out) {
  while (mlirLocationIsACallSite(at) || mlirLocationIsAName(at))
    at = mlirLocationIsAName(at) ? mlirLocationNameGetChildLoc(at) : mlirLocationCallSiteGetCallee(at);
  if (!mlirLocationIsAFileLineColRange(at)) {
    tw_strbuf_puts(out, "an unknown place");
    return;
  }
  MlirStringRef path = mlirIdentifierStr(mlirLocationFileLineColRangeGetFilename(at));
  tw_strbuf_printf(out, "%.*s:%d", (int)path.length, path.data, mlirLocationFileLineColRangeGetStartLine(at));
}

/* The place as a constant: one for each op, and so for each place where threads may meet. */
MlirValue cpu_site(cpu_t *cx, MlirOperation op) {
  char name[32];
  tw_strbuf_t text = {0};
  put_site(mlirOperationGetLocation(op), &text);
  snprintf(name, sizeof name, "tw_site_%d", cx->num_strings++);
  MlirStringRef bytes = mlirStringRefCreate(tw_strbuf_cstr(&text), text.size + 1);
  MlirType type = mlirLLVMArrayTypeGet(cpu_int(cx, 8), (unsigned)bytes.length);
  MlirValue site = cpu_global(cx, name, type, mlirStringAttrGet(cx->context, bytes));
  tw_strbuf_free(&text);
  return site;
}

/* A scalar's bits as an i64, and back. */
static MlirValue to_bits(cpu_t *cx, MlirValue x) {
  MlirType type = mlirValueGetType(x), i64 = cpu_int(cx, 64);
  if (mlirTypeIsAFloat(type))
    x = cpu_bits(cx, x, cpu_int(cx, tw_bits(type)));
  return tw_bits(type) == 64 ? x : cpu_cast(cx, "arith.extui", x, i64);
}

static MlirValue from_bits(cpu_t *cx, MlirValue bits, MlirType type) {
  if (tw_bits(type) < 64)
    bits = cpu_cast(cx, "arith.trunci", bits, cpu_int(cx, tw_bits(type)));
  return mlirTypeIsAFloat(type) ? cpu_bits(cx, bits, type) : bits;
}

static void place_sync_threads(cpu_t *cx, MlirOperation op) {
  MlirValue site = cpu_site(cx, op);
  cpu_call(cx, "tw_simt_sync_threads", 1, &site);
}

static void place_sync_grid(cpu_t *cx, MlirOperation op) {
  MlirValue site = cpu_site(cx, op);
  cpu_call(cx, "tw_simt_sync_grid", 1, &site);
}

/* The result of an op is an i32, or an i1. */
static void set_told(cpu_t *cx, MlirOperation op, MlirValue told) {
  MlirValue result = mlirOperationGetResult(op, 0);
  bool as_bool = tw_is_bool(mlirValueGetType(result));
  cpu_set_scalar(cx, result, as_bool ? cpu_cast(cx, "arith.trunci", told, cpu_int(cx, 1)) : told);
}

static void place_sync_vote(cpu_t *cx, MlirOperation op) {
  MlirType i32 = cpu_int(cx, 32);
  MlirValue operands[3] = {cpu_i32_const(cx, tw_attr_int(op, "kind", 0)),
                           cpu_cast(cx, "arith.extui", cpu_operand(cx, op, 0), i32), cpu_site(cx, op)};
  set_told(cx, op, cpu_call1(cx, "tw_simt_sync_vote", i32, 3, operands));
}

static void place_sync_warp(cpu_t *cx, MlirOperation op) {
  MlirValue operands[2] = {cpu_operand(cx, op, 0), cpu_site(cx, op)};
  cpu_call(cx, "tw_simt_sync_warp", 2, operands);
}

static void place_vote(cpu_t *cx, MlirOperation op) {
  MlirType i32 = cpu_int(cx, 32);
  MlirValue operands[4] = {cpu_i32_const(cx, tw_attr_int(op, "kind", 0)), cpu_operand(cx, op, 0),
                           cpu_cast(cx, "arith.extui", cpu_operand(cx, op, 1), i32), cpu_site(cx, op)};
  set_told(cx, op, cpu_call1(cx, "tw_simt_vote", i32, 4, operands));
}

static void place_match(cpu_t *cx, MlirOperation op) {
  MlirValue operands[4] = {cpu_i32_const(cx, tw_attr_int(op, "kind", 0)), cpu_operand(cx, op, 0),
                           to_bits(cx, cpu_operand(cx, op, 1)), cpu_site(cx, op)};
  set_told(cx, op, cpu_call1(cx, "tw_simt_match", cpu_int(cx, 32), 4, operands));
}

static void place_shuffle(cpu_t *cx, MlirOperation op) {
  MlirValue value = cpu_operand(cx, op, 1);
  MlirValue operands[5] = {cpu_i32_const(cx, tw_attr_int(op, "kind", 0)), cpu_operand(cx, op, 0), to_bits(cx, value),
                           cpu_operand(cx, op, 2), cpu_site(cx, op)};
  MlirValue found = cpu_call1(cx, "tw_simt_shuffle", cpu_int(cx, 64), 5, operands);
  cpu_set_scalar(cx, mlirOperationGetResult(op, 0), from_bits(cx, found, mlirValueGetType(value)));
}

static void place_sleep(cpu_t *cx, MlirOperation op) {
  (void)op;
  cpu_call(cx, "tw_simt_yield", 0, NULL);
}

/* --- positions --------------------------------------------------------------------------------------------- */

static void place_thread_id(cpu_t *cx, MlirOperation op) {
  cpu_set_scalar(cx, mlirOperationGetResult(op, 0), cx->thread_id[tw_attr_int(op, "axis", 0) % 3]);
}

static void place_block_dim(cpu_t *cx, MlirOperation op) {
  int64_t axis = tw_attr_int(op, "axis", 0) % 3;
  cpu_set_scalar(cx, mlirOperationGetResult(op, 0), cx->block_dim[axis]);
  if (cx->rows && axis == 0)
    cpu_slot(cx, mlirOperationGetResult(op, 0))->lanes.divides = CPU_WARP;
}

static MlirValue lane_of(cpu_t *cx) {
  MlirValue plane = cpu_bin(cx, "arith.muli", cx->thread_id[2], cx->block_dim[1]);
  MlirValue row = cpu_bin(cx, "arith.muli", cpu_bin(cx, "arith.addi", plane, cx->thread_id[1]), cx->block_dim[0]);
  return cpu_bin_i(cx, "arith.andi", cpu_bin(cx, "arith.addi", row, cx->thread_id[0]), 31);
}

static void place_lane_id(cpu_t *cx, MlirOperation op) {
  cpu_set_scalar(cx, mlirOperationGetResult(op, 0), lane_of(cx));
}

/* Only one fiber runs at a time, so this one is alone. */
static void place_active_mask(cpu_t *cx, MlirOperation op) {
  cpu_set_scalar(cx, mlirOperationGetResult(op, 0), cpu_bin(cx, "arith.shli", cpu_i32_const(cx, 1), lane_of(cx)));
}

/* --- arrays ------------------------------------------------------------------------------------------------ */

/* An array of static shape at a pointer. */
static void set_array(cpu_t *cx, MlirOperation op, MlirValue pointer) {
  MlirValue result = mlirOperationGetResult(op, 0);
  MlirType type = mlirValueGetType(result);
  int64_t strides[TW_MAX_RANK];
  cpu_array_t *array = cpu_alloc(cx, sizeof *array);
  tw_static_strides(type, strides);
  for (intptr_t d = 0; d < tw_rank(type); d++) {
    array->extent[d] = cpu_i64_const(cx, tw_extent(type, d));
    array->stride[d] = cpu_i64_const(cx, strides[d]);
    array->unit[d] = strides[d] == 1;
  }
  array->pointer = pointer;
  tw_map_one(&cx->arrays, result, (MlirValue){array});
}

static int64_t bytes_of(cpu_t *cx, MlirType type) {
  return tw_count(type) * tw_bytes(cpu_memory_type(cx, tw_element(type)));
}

/* The next multiple of `align` from a pointer on. */
static MlirValue aligned(cpu_t *cx, MlirValue pointer, int64_t align) {
  MlirType i64 = cpu_int(cx, 64);
  tw_builder_t at = cpu_here(cx);
  MlirValue address = tw_unary(&at, "llvm.ptrtoint", i64, pointer);
  MlirValue rest = cpu_bin_i(cx, "arith.andi", cpu_bin(cx, "arith.subi", cpu_i64_const(cx, 0), address), align - 1);
  return cpu_address(cx, pointer, cpu_int(cx, 8), (cpu_index_t){rest, 0, 0});
}

static void place_shared_array(cpu_t *cx, MlirOperation op) {
  enum { SCRATCH_ALIGN = 64 };
  int64_t align = tw_attr_int(op, "align", 1), more = align > SCRATCH_ALIGN ? align : 0;
  int64_t bytes = bytes_of(cx, mlirValueGetType(mlirOperationGetResult(op, 0))) + more;
  MlirBlock here = cpu_enter_depth(cx, 0);
  MlirValue pointer = cpu_new_buffer(cx, mlirRankedTensorTypeGet(1, &bytes, cpu_int(cx, 8), (MlirAttribute){NULL}));
  set_array(cx, op, more ? aligned(cx, pointer, align) : pointer);
  cpu_leave_depth(cx, here);
}

static void place_dynamic_shared(cpu_t *cx, MlirOperation op) {
  MlirType i64 = cpu_int(cx, 64);
  cpu_array_t *array = cpu_alloc(cx, sizeof *array);
  MlirBlock here = cpu_enter_depth(cx, 0);
  MlirValue first = cpu_cast(cx, "arith.extui", cpu_load_i32(cx, cx->grid, GRID_SHARED_FIRST), i64);
  MlirValue bytes = cpu_cast(cx, "arith.extui", cpu_load_i32(cx, cx->grid, GRID_SHARED_BYTES), i64);
  MlirType element = tw_result_element(op);
  array->extent[0] = cpu_bin_i(cx, "arith.divui", bytes, tw_bytes(cpu_memory_type(cx, element)));
  array->stride[0] = cpu_i64_const(cx, 1);
  array->unit[0] = true;
  array->pointer = cpu_address(cx, cx->scratch, cpu_int(cx, 8), (cpu_index_t){first, 0, 0});
  cpu_leave_depth(cx, here);
  tw_map_one(&cx->arrays, mlirOperationGetResult(op, 0), (MlirValue){array});
}

static void place_local_array(cpu_t *cx, MlirOperation op) {
  int64_t bytes = bytes_of(cx, mlirValueGetType(mlirOperationGetResult(op, 0))), align = tw_attr_int(op, "align", 16);
  if (bytes > MOST_LOCAL_BYTES) {
    cpu_error(cx, op, "is larger than the 128 KB that a thread has on the CPU; use a shared array");
    return;
  }
  MlirBlock here = cpu_enter_depth(cx, 0);
  MlirType pointer = cpu_pointer_type(cx);
  MlirValue count = cpu_i64_const(cx, bytes);
  tw_attr_t attrs[2] = {{"elem_type", mlirTypeAttrGet(cpu_int(cx, 8))},
                        {"alignment", mlirIntegerAttrGet(cpu_int(cx, 64), align > 16 ? align : 16)}};
  tw_builder_t at = cpu_here(cx);
  MlirValue alloca = tw_op1_attrs(&at, "llvm.alloca", pointer, 1, &count, 2, attrs);
  set_array(cx, op, alloca);
  cpu_leave_depth(cx, here);
}

static void place_const_array(cpu_t *cx, MlirOperation op) {
  MlirAttribute value = tw_attr(op, "value");
  char name[32];
  snprintf(name, sizeof name, "tw_const_%d", cx->num_strings++);
  int64_t count = tw_count(mlirAttributeGetType(value));
  MlirType element = mlirShapedTypeGetElementType(mlirAttributeGetType(value));
  MlirType flat = mlirRankedTensorTypeGet(1, &count, element, (MlirAttribute){NULL});
  set_array(cx, op,
            cpu_global(cx, name, mlirLLVMArrayTypeGet(element, (unsigned)count),
                       mlirDenseElementsAttrReshapeGet(value, flat)));
}

/* Operands: the array, the offset in bytes, the extents, the strides in elements. */
static void place_view(cpu_t *cx, MlirOperation op) {
  MlirValue result = mlirOperationGetResult(op, 0);
  const cpu_array_t *array = cpu_array_of(cx, op, mlirOperationGetOperand(op, 0));
  if (array == NULL)
    return;
  int rank = (int)tw_rank(mlirValueGetType(result));
  cpu_array_t *view = cpu_alloc(cx, sizeof *view);
  view->pointer = cpu_address(cx, array->pointer, cpu_int(cx, 8), (cpu_index_t){cpu_operand(cx, op, 1), 0, 0});
  for (int d = 0; d < rank; d++) {
    view->extent[d] = cpu_operand(cx, op, 2 + d);
    view->stride[d] = cpu_operand(cx, op, 2 + rank + d);
  }
  tw_map_one(&cx->arrays, result, (MlirValue){view});
}

/* What tile-split-threads could not cut: a kernel of tiles has no fibers. */
static void place_threads(cpu_t *cx, MlirOperation op) {
  cpu_error(cx, op,
            "has threads that may not all come to a barrier together, or that wait for each other; on the CPU "
            "those of a kernel of tiles meet at barriers outside of branches that they take apart");
}

static void place_address(cpu_t *cx, MlirOperation op) {
  const cpu_array_t *array = cpu_array_of(cx, op, mlirOperationGetOperand(op, 0));
  tw_builder_t at = cpu_here(cx);
  if (array != NULL)
    cpu_set_scalar(cx, mlirOperationGetResult(op, 0), tw_unary(&at, "llvm.ptrtoint", cpu_int(cx, 64), array->pointer));
}

CPU_RULE(TW_TILE_THREADS, CPU_EFFECT, 0, NULL, NULL, place_threads)
CPU_RULE(TW_TILE_ADDRESS, CPU_EFFECT, 0, NULL, NULL, place_address)
CPU_RULE(TW_TILE_VIEW, CPU_EFFECT, 0, NULL, NULL, place_view)
CPU_RULE(TW_TILE_THREAD_ID, CPU_EFFECT, 0, NULL, NULL, place_thread_id)
CPU_RULE(TW_TILE_BLOCK_DIM, CPU_EFFECT, 0, NULL, NULL, place_block_dim)
CPU_RULE(TW_TILE_LANE_ID, CPU_EFFECT, 0, NULL, NULL, place_lane_id)
CPU_RULE(TW_TILE_ACTIVE_MASK, CPU_EFFECT, 0, NULL, NULL, place_active_mask)
CPU_RULE(TW_TILE_SYNC_THREADS, CPU_EFFECT, 0, NULL, NULL, place_sync_threads)
CPU_RULE(TW_TILE_SYNC_GRID, CPU_EFFECT, 0, NULL, NULL, place_sync_grid)
CPU_RULE(TW_TILE_SYNC_VOTE, CPU_EFFECT, 0, NULL, NULL, place_sync_vote)
CPU_RULE(TW_TILE_SYNC_WARP, CPU_EFFECT, 0, NULL, NULL, place_sync_warp)
CPU_RULE(TW_TILE_VOTE, CPU_EFFECT, 0, NULL, NULL, place_vote)
CPU_RULE(TW_TILE_MATCH, CPU_EFFECT, 0, NULL, NULL, place_match)
CPU_RULE(TW_TILE_SHUFFLE, CPU_EFFECT, 0, NULL, NULL, place_shuffle)
CPU_RULE(TW_TILE_SLEEP, CPU_EFFECT, 0, NULL, NULL, place_sleep)
CPU_RULE(TW_TILE_SHARED_ARRAY, CPU_EFFECT, 0, NULL, NULL, place_shared_array)
CPU_RULE(TW_TILE_DYNAMIC_SHARED, CPU_EFFECT, 0, NULL, NULL, place_dynamic_shared)
CPU_RULE(TW_TILE_LOCAL_ARRAY, CPU_EFFECT, 0, NULL, NULL, place_local_array)
CPU_RULE(TW_TILE_CONST_ARRAY, CPU_EFFECT, 0, NULL, NULL, place_const_array)
