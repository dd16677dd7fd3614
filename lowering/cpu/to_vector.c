/* to_vector.c - tile-to-cpu: from legal IR to scf, 1-D vectors and llvm pointers
 *
 * Before: a kernel on arrays and tiles.
 *
 *     func.func @k(%a: memref<?xf32, strided<[1]>>, …) attributes {tile.kernel} {
 *       %i = tile.block_id 0
 *       %x = tile.load %a[%i] : … -> tensor<1024xf32>
 *       …
 *
 * After: the entry that the launcher calls, running blocks first to last - 1 of the grid, x fastest, or y where the
 * right operands of products then stay (keep.c).
 *
 *     func.func @k(%words: !llvm.ptr, %grid: !llvm.ptr, %first: i64, %last: i64, %scratch: !llvm.ptr) {
 *       %p = llvm.load %words …                          // arrays and scalars, unpacked
 *       scf.for %block = %first to %last {
 *         scf.for %j = 0 to 1024 step 16 { llvm.intr.masked.load …
 *
 * and `scratch_bytes` in the launch record, beside `no_alias`. What must hold: stage "legal"; every array is an
 * argument of the kernel. */
#include "lowering/c_values.h"
#include "lowering/cpu/cpu.h"
#include "lowering/launch_record.h"

#include "lowering/passes.h"

#include "llvm-c/Core.h"
#include "llvm-c/TargetMachine.h"

#include <stdlib.h>
#include <string.h>

/* --- blocks of ops --------------------------------------------------------------------------------------------- */

static void place_scalar(cpu_t *cx, MlirOperation op, const cpu_rule_t *rule) {
  MlirValue operands[CPU_MAX_OPERANDS];
  int num = (int)mlirOperationGetNumOperands(op);
  MlirValue result;
  if (rule->eval) {
    result = rule->eval(cx, op, NULL);
  } else {
    for (int i = 0; i < num; i++)
      operands[i] = cpu_operand(cx, op, i);
    if (cx->failed)
      return;
    MlirValue first = cx->strip ? cpu_same_for_all(cx, op) : (MlirValue){NULL};
    if (first.ptr)
      operands[0] = first;
    cpu_unify(cx, num, operands);
    result = rule->compute(cx, op, num, operands);
  }
  cpu_set_scalar(cx, mlirOperationGetResult(op, 0), result);
  if (tw_has_attr(cx->func, TW_SPLIT))
    cpu_note_lanes(cx, op);
}

static const cpu_rule_t *const rules[TW_NUM_OP_KINDS] = {
#define CPU_ROW(kind) [TW_##kind] = &cpu_rule_of_TW_##kind,
#include "CpuRules.inc"
#undef CPU_ROW
};

static bool (*const strip_rules[TW_NUM_OP_KINDS])(cpu_t *, MlirOperation) = {
#define CPU_STRIP_ROW(kind) [TW_##kind] = cpu_strip_rule_of_TW_##kind,
#include "CpuStripRules.inc"
#undef CPU_STRIP_ROW
};

static bool placed_in_strip(cpu_t *cx, MlirOperation op) {
  if (!cx->strip)
    return false;
  bool (*place)(cpu_t *, MlirOperation) = strip_rules[tw_op_kind(op)];
  return place ? place(cx, op) : tw_op_has(op, TW_BY_ELEMENT) && cpu_strip_access(cx, op);
}

static void place(cpu_t *cx, MlirOperation op) {
  const cpu_rule_t *rule = cpu_rule(cx, op);
  cx->location = mlirOperationGetLocation(op);
  cx->base_depth = cx->depth;
  cx->memo_size = 0;
  if (!rule || (mlirOperationGetNumResults(op) != 1 && rule->space != CPU_EFFECT)) {
    cpu_error(cx, op, "has no CPU lowering");
    return;
  }
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    if (tw_is_unsigned(mlirValueGetType(mlirOperationGetResult(op, i)))) {
      cpu_error(cx, op, "is of a dtype that tile-legalize makes signless");
      return;
    }
  if (placed_in_strip(cx, op))
    return;
  if (rule->place)
    rule->place(cx, op);
  if (rule->space == CPU_EFFECT)
    return;
  MlirValue result = mlirOperationGetResult(op, 0);
  if (tw_is_tile(mlirValueGetType(result)))
    cpu_add_slot(&cx->live, cpu_slot(cx, result));
  else if (!rule->place)
    place_scalar(cx, op, rule);
}

static MlirOperation emit_block(cpu_t *cx, MlirBlock block) {
  size_t base = cx->live_base;
  cx->live_base = cx->live.count;
  cpu_analyze(cx, block);
  MlirOperation end = mlirBlockGetTerminator(block), op = mlirBlockGetFirstOperation(block);
  for (; !mlirOperationEqual(op, end) && !cx->failed; op = mlirOperationGetNextInBlock(op))
    place(cx, op);
  cx->live.count = cx->live_base;
  cx->live_base = base;
  cx->base_depth = cx->depth;
  cx->memo_size = 0;
  return end;
}

/* --- the entry --------------------------------------------------------------------------------------------------- */

/* Block indices from the linear one, x fastest, or y. */
static void split_block_id(cpu_t *cx, MlirValue linear, bool y_first) {
  MlirType i32 = cpu_int(cx, 32), i64 = cpu_int(cx, 64);
  for (int i = 0; i < 3; i++) {
    int d = y_first && i < 2 ? 1 - i : i;
    MlirValue extent = cpu_cast(cx, "arith.extui", cx->num_blocks[d], i64);
    MlirValue rest = cpu_bin(cx, "arith.divui", linear, extent);
    MlirValue id = cpu_bin(cx, "arith.subi", linear, cpu_bin(cx, "arith.muli", rest, extent));
    cx->block_id[d] = cpu_cast(cx, "arith.trunci", d == 2 ? linear : id, i32);
    linear = rest;
  }
}

static void emit_blocks(cpu_t *cx, MlirBlock old) {
  cpu_unpack_arguments(cx, old, mlirBlockGetArgument(cx->entry, 0), mlirBlockGetArgument(cx->entry, 1));
  cx->grid = mlirBlockGetArgument(cx->entry, 1);
  cx->scratch = mlirBlockGetArgument(cx->entry, 4);
  for (int d = 0; d < 3; d++)
    cx->block_dim[d] = cpu_load_i32(cx, cx->grid, 3 + d);
  cpu_index_t first = {.base = mlirBlockGetArgument(cx->entry, 2)}, last = {.base = mlirBlockGetArgument(cx->entry, 3)};
  cpu_loop_t loop;
  cpu_index_t block = cpu_loop_begin(cx, &loop, first, last, 1, 0, NULL);
  cpu_look(cx);
  split_block_id(cx, cpu_index_value(cx, block), cpu_takes_y_first(cx));
  cpu_emit_block(cx, old);
  cpu_loop_end(cx, &loop, NULL, NULL);
}

/* The kernel that a split one was, if lanes of its warps meet; else null. */
static MlirOperation unsplit_of(cpu_t *cx, MlirOperation kernel) {
  MlirStringRef name = tw_attr_string(kernel, TW_UNSPLIT);
  TW_EACH_OP(op, tw_region_block(cx->module, 0))
    if (name.length && mlirStringRefEqual(tw_attr_string(op, "sym_name"), name))
      return op;
  return tw_null_op();
}

static MlirBlock rows_block(cpu_t *cx, MlirOperation kernel) {
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  cpu_inner_t inner = cpu_open_block(cx, block);
  emit_blocks(cx, tw_region_block(kernel, 0));
  cpu_op0(cx, "scf.yield", 0, NULL);
  cpu_close_block(cx, inner);
  return block;
}

static MlirBlock fibers_block(cpu_t *cx, MlirOperation unsplit, MlirOperation thread) {
  MlirBlock block = mlirBlockCreate(0, NULL, NULL), outer = cx->block;
  cx->block = block;
  cpu_call_threads(cx, unsplit, thread);
  cpu_op0(cx, "scf.yield", 0, NULL);
  cx->block = outer;
  return block;
}

/* Warps that are parts of rows are strips, others are fibers. */
static void emit_warps(cpu_t *cx, MlirOperation kernel, MlirOperation unsplit, MlirOperation thread) {
  MlirValue rest = cpu_bin_i(cx, "arith.andi", cpu_load_i32(cx, mlirBlockGetArgument(cx->entry, 1), 3), CPU_WARP - 1);
  MlirValue rows = cpu_cmpi(cx, CPU_EQ, rest, cpu_i32_const(cx, 0));
  cx->rows = true;
  MlirBlock then = rows_block(cx, kernel);
  cpu_if(cx, rows, then, fibers_block(cx, unsplit, thread), 0, NULL);
}

static MlirOperation build_entry(cpu_t *cx, MlirOperation kernel);

/* Only fibers do: the kernel as it was before it was split. */
static MlirOperation build_again(cpu_t *cx, MlirOperation kernel, MlirOperation unsplit, MlirOperation thread,
                                 MlirOperation entry) {
  mlirOperationDestroy(entry);
  mlirOperationDestroy(thread);
  cx->apart = cx->rows = false;
  tw_set_attr(unsplit, "sym_name", tw_attr(kernel, "sym_name"));
  cx->scratch_peak = cx->scratch_used = cx->num_kept = 0;
  return build_entry(cx, unsplit);
}

static MlirOperation build_warps(cpu_t *cx, MlirOperation kernel, MlirOperation unsplit) {
  MlirType pointer = cpu_pointer_type(cx), i64 = cpu_int(cx, 64), types[5] = {pointer, pointer, i64, i64, pointer};
  cx->func = unsplit;
  cx->location = mlirOperationGetLocation(kernel);
  MlirOperation thread = cpu_build_thread_function(cx, unsplit);
  cx->func = kernel;
  cx->scratch_used = 0;
  cpu_begin_function(cx, 5, types);
  emit_warps(cx, kernel, unsplit, thread);
  MlirOperation entry = cpu_end_function(cx, tw_attr(kernel, "sym_name"), 4);
  return cx->apart ? build_again(cx, kernel, unsplit, thread, entry) : entry;
}

static MlirOperation build_entry(cpu_t *cx, MlirOperation kernel) {
  MlirType pointer = cpu_pointer_type(cx), i64 = cpu_int(cx, 64), types[5] = {pointer, pointer, i64, i64, pointer};
  MlirOperation thread = {NULL}, unsplit = unsplit_of(cx, kernel);
  if (!mlirOperationIsNull(unsplit))
    return build_warps(cx, kernel, unsplit);
  cx->func = kernel;
  cx->location = mlirOperationGetLocation(kernel);
  if (tw_has_attr(kernel, TW_C_SIGNATURE))
    return cpu_build_c_entry(cx, kernel);
  if (tw_has_attr(kernel, "tile.simt") && !tw_has_attr(kernel, TW_SPLIT))
    thread = cpu_build_thread_function(cx, kernel);
  cpu_begin_function(cx, 5, types);
  cx->rows = tw_has_attr(kernel, TW_SPLIT) && !tw_has_attr(kernel, "tile.simt"); /* threads of tiles are whole warps */
  if (mlirOperationIsNull(thread))
    emit_blocks(cx, tw_region_block(kernel, 0));
  else
    cpu_call_threads(cx, kernel, thread);
  if (cx->rows && cx->apart)
    cpu_error(cx, kernel,
              "has lanes of a warp that may meet at different times; threads of a kernel of tiles do not on "
              "the CPU");
  return cpu_end_function(cx, tw_attr(kernel, "sym_name"), 4);
}

/* --- the target ---------------------------------------------------------------------------------------------- */

static bool has_prefix(const char *text, const char *prefix) { return !strncmp(text, prefix, strlen(prefix)); }

/* Lanes of f32 by name of a CPU; unknown ones get what all of x86-64 has. */
static int lanes_of_cpu(const char *name) {
  static const char *const wide[] = {"x86-64-v4",    "znver4",     "znver5",  "skylake-avx512", "skx",
                                     "cascadelake",  "cooperlake", "icelake", "sapphirerapids", "emeraldrapids",
                                     "graniterapids"};
  static const char *const middle[] = {"x86-64-v3", "znver",      "haswell",    "broadwell", "skylake",
                                       "alderlake", "raptorlake", "meteorlake", "arrowlake", "lunarlake"};
  for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
    if (has_prefix(name, wide[i]))
      return 16;
  for (size_t i = 0; i < sizeof middle / sizeof *middle; i++)
    if (has_prefix(name, middle[i]))
      return 8;
  return 4;
}

static void read_target(cpu_t *cx) {
  MlirStringRef target = tw_attr_string(cx->module, "tile.target");
  char name[64] = "";
  if (target.length > 4 && target.length - 4 < sizeof name)
    memcpy(name, target.data + 4, target.length - 4);
  if (name[0]) {
    cx->lanes = lanes_of_cpu(name);
  } else {
    char *features = LLVMGetHostCPUFeatures();
    cx->lanes = strstr(features, "+avx512bw") && strstr(features, "+avx512vl") ? 16 : strstr(features, "+avx2") ? 8 : 4;
    LLVMDisposeMessage(features);
  }
  cx->avx512 = cx->lanes == 16;
  cx->f16c = cx->lanes >= 8;
}

/* --- the pass ------------------------------------------------------------------------------------------------ */

static bool lower_kernel(MlirOperation module, MlirOperation kernel, int *num_strings) {
  cpu_t cx = {.context = mlirOperationGetContext(module),
              .module = module,
              .num_strings = *num_strings,
              .rules = rules,
              .emit_block = emit_block};
  read_target(&cx);
  MlirOperation unsplit = unsplit_of(&cx, kernel), entry = build_entry(&cx, kernel);
  cpu_place_kept(&cx);
  *num_strings = cx.num_strings;
  static const char *const kept[] = {TW_HINTS, TW_LAUNCH, "tile.simt"};
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
    if (tw_has_attr(kernel, kept[i]))
      tw_set_attr(entry, kept[i], tw_attr(kernel, kept[i]));
  tw_launch_set_scratch_bytes(entry, (uint64_t)cx.scratch_peak);
  mlirOperationDestroy(cx.failed ? entry : kernel);
  if (!mlirOperationIsNull(unsplit))
    mlirOperationDestroy(unsplit);
  cpu_release(&cx);
  return !cx.failed;
}

bool tw_run_to_cpu(MlirOperation module) {
  MlirBlock body = tw_region_block(module, 0);
  int num_strings = 0;
  for (MlirOperation op = mlirBlockGetFirstOperation(body), next; !mlirOperationIsNull(op); op = next) {
    next = mlirOperationGetNextInBlock(op);
    if (tw_op_is(op, TW_FUNC_FUNC) && tw_has_attr(op, "tile.kernel") && !lower_kernel(module, op, &num_strings))
      return false;
  }
  return true;
}
