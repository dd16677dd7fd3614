/* to_nvvm.c - tile-to-nvvm: the code of one thread
 *
 * Before: kernels (func.func with tile.kernel) over tiles that all carry layouts, shared memory
 * allocated and barriers placed.
 *
 *   func.func @k(%x: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
 *     %i = tile.block_id 0
 *     %t = tile.load %x[%i] : ... -> tensor<256xf32, #linear>
 *
 * After: llvm.func over 64-bit words (pointer, extents, strides of each array; scalars in the low
 * bits), every tile as the registers of one thread, loops as branches, nothing of the tile dialect.
 *
 *   llvm.func @k(%ptr: i64, %extent: i64, %stride: i64) attributes {nvvm.kernel, nvvm.reqntid = ...}
 *
 * Copies by the tensor memory accelerator need tensor maps, which come before the words, 128 bytes each:
 *
 *   llvm.func @k(%map: !llvm.ptr {llvm.byval = ..., nvvm.grid_constant}, %ptr: i64, ...)
 *
 * The launch record gets num_threads, shared_bytes and tensor_maps (what the maps are made from); the new function has
 * it, and the hints. How each op is re-emitted is in emit/rules/; what the rules emit with, in
 * emitter.h. */
#include "base/memory.h"
#include "lowering/gpu/emit/c_entry.h"
#include "lowering/gpu/emit/row_ends.h"
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/emit/words.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/facts/local_arrays.h"
#include "lowering/gpu/facts/roles.h"
#include "lowering/gpu/line_info.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/launch_record.h"
#include "lowering/passes.h"
#include "tilewright/dialect.h"

#include "mlir-c/Dialect/LLVM.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = TW_BLOCK_WARPS * TW_WARP_LANES };

static const tw_rule_t *const rules[TW_NUM_OP_KINDS] = {
#define TWG_ROW(kind) [TW_##kind] = &twg_rule_of_TW_##kind,
#include "GpuRules.inc"
#undef TWG_ROW
};

/* A constant with equal elements is what it is for any number of warps: those of producers stand where others do. */
static bool is_splat(MlirOperation op) {
  MlirAttribute value = tw_is_constant(op) ? tw_attr(op, "value") : mlirAttributeGetNull();
  return !mlirAttributeIsNull(value) && mlirAttributeIsADenseElements(value) && mlirDenseElementsAttrIsSplat(value);
}

/* Integers must be without a sign; tiles must have layouts, for no more threads than the block has. */
static bool check_result(tw_emitter_t *e, MlirOperation op, MlirType type) {
  tw_layout_t layout;
  int warps = e->num_warps;
  if (tw_is_unsigned(type)) {
    tw_op_error(op, "has an unsigned result; run tile-legalize first");
    return false;
  }
  if (!tw_is_tile(type))
    return true;
  if (!tw_layout_of_type(type, &layout)) {
    tw_op_error(op, "has a result without layout; run tile-assign-layouts first");
    return false;
  }
  if (e->producer_warps > 1 && is_splat(op))
    warps = 1 << layout.bits[TW_WARP];
  if (layout.bits[TW_LANE] != 5 || 1 << layout.bits[TW_WARP] != warps || !tw_layout_is_onto(&layout)) {
    tw_op_error(op, "has a layout that does not give each element to one of 32 lanes in %d warps", e->num_warps);
    return false;
  }
  return true;
}

static bool check_results(tw_emitter_t *e, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    if (!check_result(e, op, mlirValueGetType(mlirOperationGetResult(op, i))))
      return false;
  return true;
}

/* The ops of a block from one on, up to another one, or null. */
static bool emit_ops(tw_emitter_t *e, MlirOperation first, MlirOperation end) {
  for (MlirOperation op = first; !mlirOperationEqual(op, end) && !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    const tw_rule_t *rule = rules[tw_op_kind(op)];
    e->location = mlirOperationGetLocation(op);
    if (tw_op_is(op, TW_SCF_YIELD) || tw_op_is(op, TW_SCF_CONDITION) || tw_op_is(op, TW_TILE_YIELD))
      continue; /* read by the rule of the op around it */
    if (rule == NULL) {
      tw_op_error(op, "has no GPU lowering");
      return false;
    }
    if (!check_results(e, op) || !(*rule)(e, op))
      return false;
  }
  return true;
}

static bool emit_block(tw_emitter_t *e, MlirBlock old) {
  return emit_ops(e, mlirBlockGetFirstOperation(old), tw_null_op());
}

/* The body of a kernel; of rows that end in the last elements of a tile twice (emit/row_ends.h). */
static bool emit_body(tw_emitter_t *e, MlirBlock old) {
  twg_row_ends_t ends;
  bool twice = twg_find_row_ends(e, old, &ends);
  bool ok = emit_ops(e, mlirBlockGetFirstOperation(old), twice ? ends.rest : tw_null_op());
  if (ok && twice) {
    MlirBlock reach = twg_new_block(e, 0, NULL), others = twg_new_block(e, 0, NULL);
    twg_branch_if(e, twg_rows_reach(e, &ends), reach, 0, NULL, others, 0, NULL);
    e->block = reach;
    e->row_ends = &ends;
    ok = emit_ops(e, ends.rest, tw_null_op());
    e->row_ends = NULL;
    e->num_loaded = 0;
    e->block = others;
    e->ends_early = true;
    ok = ok && emit_ops(e, ends.rest, tw_null_op());
    e->ends_early = false;
  }
  tw_ops_free(&ends.accesses);
  return ok;
}

/* ---- a kernel ---------------------------------------------------------------------------------- */

static MlirValue sreg(tw_emitter_t *e, const char *name) { return twg_op(e, name, e->i32, 0, NULL, 0, NULL); }

/* Whoever launches a kernel of a C signature knows nothing of its shared memory: it is declared. */
static MlirStringRef shared_name(tw_emitter_t *e) {
  int64_t bytes = tw_launch_shared_bytes(e->kernel, 0);
  if (e->c == NULL || bytes == 0)
    return tw_str(TWG_SHARED_NAME);
  MlirAttribute name = tw_name_behind(e->kernel, "_shared");
  MlirNamedAttribute attributes[] = {
      twg_named(e, "sym_name", name),
      twg_named(e, "global_type", mlirTypeAttrGet(mlirLLVMArrayTypeGet(e->i8, (unsigned)bytes))),
      twg_named(e, "linkage", mlirLLVMLinkageAttrGet(e->context, MlirLLVMLinkageInternal)),
      twg_named(e, "addr_space", twg_i32_attr(e, TW_SPACE_SHARED)),
      twg_named(e, "alignment", twg_i64_attr(e, 1024)),
  };
  twg_add_to_module(e, "llvm.mlir.global", sizeof attributes / sizeof *attributes, attributes);
  return mlirStringAttrGetValue(name);
}

static void emit_prologue(tw_emitter_t *e) {
  e->thread = sreg(e, "nvvm.read.ptx.sreg.tid.x");
  e->lane = twg_binary(e, "llvm.and", e->thread, twg_const_i32(e, 31));
  e->warp = twg_binary(e, "llvm.lshr", e->thread, twg_const_i32(e, 5));
  e->warpgroup = e->zero = (MlirValue){NULL};
  e->loop = NULL;
  e->shared_base = twg_address_of(e, shared_name(e), TW_SPACE_SHARED);
}

/* The type of a parameter: a 64-bit word, but of a kernel that others launch what the program says it is. `word` is
 * which one of the argument's. */
static MlirType parameter_type(tw_emitter_t *e, MlirType argument, int word) {
  int bits = (int)tw_hint_exported(e->kernel, 0);
  if (bits == 0 || (mlirTypeIsAMemRef(argument) && word == 0))
    return e->i64;
  if (!mlirTypeIsAMemRef(argument)) {
    enum { LEAST_BITS = 8 };
    bits = (int)tw_memory_bits(argument);
    bits = bits < LEAST_BITS ? LEAST_BITS : bits;
  }
  return mlirIntegerTypeGet(e->context, (unsigned)bits);
}

/* The word that such a parameter has. */
static MlirValue word_of(tw_emitter_t *e, MlirValue parameter) {
  bool whole = mlirTypeEqual(mlirValueGetType(parameter), e->i64);
  return whole ? parameter : twg_cast(e, "llvm.sext", e->i64, parameter);
}

/* Addresses of arguments are global, unless the type says that they may be any. */
static MlirType pointer_type(tw_emitter_t *e, MlirType array) {
  MlirAttribute space = mlirMemRefTypeGetMemorySpace(array);
  bool any = !mlirAttributeIsNull(space) && mlirIntegerAttrGetValueInt(space) == TW_SPACE_ANY;
  return any ? mlirLLVMPointerTypeGet(e->context, 0) : e->global;
}

/* What the launch knows of an array's address and strides, as far as it makes vectors of a thread's accesses. */
static void tell_alignment(tw_emitter_t *e, MlirValue array, const MlirValue *words) {
  enum { VECTOR_BYTES = 16 };
  intptr_t number = mlirBlockArgumentGetArgNumber(array);
  MlirType type = mlirValueGetType(array);
  MlirAttribute align = tw_arg_attr(e->kernel, number, "tile.align"),
                divisors = tw_arg_attr(e->kernel, number, "tile.stride_div");
  int64_t by[TW_MAX_RANK], bytes = mlirAttributeIsNull(align) ? 1 : mlirIntegerAttrGetValueInt(align);
  intptr_t rank = mlirAttributeIsNull(divisors) ? 0 : tw_array_ints(divisors, by, TW_MAX_RANK);
  if (bytes <= (int64_t)tw_bytes(tw_element(type)))
    return;
  twg_assume_aligned(e, words[0], bytes < VECTOR_BYTES ? bytes : VECTOR_BYTES);
  for (intptr_t axis = 0; axis < rank; axis++)
    if (by[axis] > 1 && (by[axis] & (by[axis] - 1)) == 0)
      twg_assume_multiple(e, words[1 + rank + axis], by[axis]);
}

static void bind_array(tw_emitter_t *e, MlirValue old, MlirValue *words) {
  MlirType type = mlirValueGetType(old);
  int rank = (int)mlirShapedTypeGetRank(type), n = 1 + 2 * rank;
  int64_t strides[TW_MAX_RANK], offset;
  tw_values_t values = twg_new_values(e, n);
  memcpy(values.at, words, (size_t)n * sizeof *words);
  values.at[0] = twg_cast(e, "llvm.inttoptr", pointer_type(e, type), words[0]);
  if (rank > 0 && mlirLogicalResultIsSuccess(mlirMemRefTypeGetStridesAndOffset(type, strides, &offset)))
    for (int d = 0; d < rank; d++)
      if (strides[d] != mlirShapedTypeGetDynamicStrideOrOffset())
        values.at[1 + rank + d] = twg_const_int(e, e->i64, strides[d]);
  if (e->simt &&
      (tw_launch_has_packed_blocks(e->kernel) ||
       tw_has_attr(e->kernel, TW_LOADS_VECTORS))) /* else vectors save little, and take neighbouring registers */
    tell_alignment(e, old, values.at);
  twg_bind(e, old, values);
}

/* The words of all arguments, each a parameter. */
static void add_words(tw_emitter_t *e, MlirBlock old, MlirValue *words) {
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(old); i++) {
    MlirType type = mlirValueGetType(mlirBlockGetArgument(old, i));
    for (int k = 0; k < tw_words_of(type); k++)
      *words++ = word_of(e, mlirBlockAddArgument(e->entry, parameter_type(e, type, k), e->location));
  }
}

static void bind_arguments(tw_emitter_t *e, MlirBlock old, MlirValue *words) {
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(old); i++) {
    MlirValue argument = mlirBlockGetArgument(old, i);
    MlirType type = mlirValueGetType(argument);
    if (mlirTypeIsAMemRef(type)) {
      bind_array(e, argument, words);
    } else {
      tw_values_t value = twg_new_values(e, 1);
      value.at[0] = twg_scalar_of_word(e, words[0], type);
      twg_bind(e, argument, value);
    }
    words += tw_words_of(type);
  }
}

static bool add_arguments(tw_emitter_t *e, MlirOperation old, int num_words) {
  MlirBlock body = tw_region_block(old, 0);
  MlirValue *words = tw_allocate((size_t)num_words + 1, sizeof *words);
  bool ok = e->c == NULL || twg_words_of_c(e, old, num_words, words);
  if (e->c == NULL)
    add_words(e, body, words);
  if (ok)
    bind_arguments(e, body, words);
  free(words);
  return ok;
}

static MlirWalkResult look_at_work(MlirOperation op, void *user) {
  twg_work_t *work = user;
  int all = 0;
  work->computes |= tw_op_form(op) == TW_FORM_PRODUCT || tw_is_roles(op);
  work->folds |= tw_op_is(op, TW_SCF_FOR) || tw_op_is(op, TW_SCF_WHILE) || tw_op_combines(op);
  work->realigns |= tw_has_attr(op, TW_REALIGNED);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++) {
    int count = tw_register_count(mlirValueGetType(mlirOperationGetResult(op, i)));
    all = tw_op_is(op, TW_SCF_FOR) ? all + count : count;
    work->registers = all > work->registers ? all : work->registers;
  }
  return MlirWalkResultAdvance;
}

static twg_work_t work_of(MlirOperation function) {
  twg_work_t work = {.registers = 0};
  mlirOperationWalk(function, look_at_work, &work, MlirWalkPreOrder);
  return work;
}

static tw_emitter_t new_emitter(MlirOperation kernel, int num_strings) {
  MlirContext c = mlirOperationGetContext(kernel);
  tw_emitter_t made = {.context = c,
                       .module = tw_module_of(kernel),
                       .kernel = kernel,
                       .num_strings = num_strings,
                       .emit_block = emit_block};
  tw_emitter_t *e = &made;
  e->location = mlirOperationGetLocation(kernel);
  e->i1 = mlirIntegerTypeGet(c, 1);
  e->i8 = mlirIntegerTypeGet(c, 8);
  e->i16 = mlirIntegerTypeGet(c, 16);
  e->i32 = mlirIntegerTypeGet(c, 32);
  e->i64 = mlirIntegerTypeGet(c, 64);
  e->f16 = mlirF16TypeGet(c);
  e->bf16 = mlirBF16TypeGet(c);
  e->f32 = mlirF32TypeGet(c);
  e->f64 = mlirF64TypeGet(c);
  e->global = mlirLLVMPointerTypeGet(c, 1);
  e->shared = mlirLLVMPointerTypeGet(c, 3);
  bool fast = tw_hint_fast_math(kernel, 0) != 0;
  e->contract =
      mlirAttributeParseGet(c, tw_str(fast ? "#llvm.fastmath<nsz, arcp, contract, afn>" : "#llvm.fastmath<contract>"));
  enum { FEW_WARPS = 4 };
  e->num_warps = (int)tw_num_warps(kernel, FEW_WARPS);
  if (e->num_warps < 1) /* of text that no pass wrote: the layouts will not fit */
    e->num_warps = FEW_WARPS;
  e->work = work_of(kernel);
  return made;
}

static int32_t threads_of(const tw_emitter_t *e) {
  return TW_WARP_LANES * (e->num_warps * e->consumer_groups + e->producer_warps);
}

/* Tensor maps lie in the constant bank of the parameters. */
static MlirAttribute argument_attributes(tw_emitter_t *e, int num_words) {
  MlirAttribute map = mlirAttributeParseGet(
      e->context, tw_str("{llvm.align = 64 : i64, llvm.byval = !llvm.array<16 x i64>, nvvm.grid_constant}"));
  int n = e->num_maps + num_words;
  MlirAttribute *all = tw_must(malloc((size_t)(n + 1) * sizeof *all));
  for (int i = 0; i < n; i++)
    all[i] = i < e->num_maps ? map : mlirDictionaryAttrGet(e->context, 0, NULL);
  MlirAttribute array = mlirArrayAttrGet(e->context, n, all);
  free(all);
  return array;
}

/* Blocks that a multiprocessor shall hold at least; 0: ptxas is told nothing. A kernel with products is content with
 * one, and without being told ptxas may not know the registers to start from. What only moves memory has the fewest
 * registers if ptxas is told nothing: asked for one block, it takes twice as many. But where the rows in flight fill
 * the registers, one too many would halve them: STREAMING_WARPS shall fit. So shall MANY_WARPS where a thread goes once
 * through a few elements by functions: what the driver links has 72 registers for a sine, and 40 if it is told. Of rows
 * that go through shared memory ROW_WARPS shall, which is as many as a layer norm needs hardly a spill for: linked it
 * has 121 registers else, and 72 if it is told. And where shared memory has room for few, the registers are theirs. */
static int natural_blocks(tw_emitter_t *e, MlirOperation function) {
  enum { STREAMING_WARPS = 16, ROW_WARPS = 28, MANY_WARPS = 40, A_FEW = 8, FEW_REGISTERS = 32, MANY_REGISTERS = 64 };
  enum { FEW_BLOCKS = 4, MOST_BLOCKS = 16 /* that each GPU holds */ };
  twg_work_t work = e->work;
  if (work.computes)
    return 1;
  bool fills = work.registers > FEW_REGISTERS && work.registers <= MANY_REGISTERS;
  bool few = !work.folds && work.registers <= A_FEW;
  bool rows = work.realigns && work.folds && work.registers <= FEW_REGISTERS;
  int warps = fills ? STREAMING_WARPS : few ? MANY_WARPS : rows ? ROW_WARPS : 0;
  int blocks = e->num_warps >= warps ? 0 : warps / e->num_warps < MOST_BLOCKS ? warps / e->num_warps : MOST_BLOCKS;
  int64_t shared = tw_launch_shared_bytes(function, 0) + TW_SHARED_BYTES_OF_DRIVER;
  int room = (int)(tw_gpu_target_of(function).shared_bytes_sm / shared);
  return room <= FEW_BLOCKS && (blocks == 0 || room < blocks) ? room : blocks;
}

/* The same, or as many as the hint `occupancy` asks for and shared memory and threads allow. */
static int resident_blocks(tw_emitter_t *e, MlirOperation function) {
  tw_gpu_target_t target = tw_gpu_target_of(function);
  int wanted = (int)tw_hint_occupancy(function, 0), most = target.machine->threads_sm / threads_of(e);
  int64_t shared = tw_launch_shared_bytes(function, 0) + TW_SHARED_BYTES_OF_DRIVER;
  if (wanted == 0)
    return natural_blocks(e, function);
  bool by_threads = target.shared_bytes_sm / shared >= most;
  most = by_threads ? most : (int)(target.shared_bytes_sm / shared);
  if (wanted <= most)
    return wanted;
  tw_op_remark(function, "has occupancy=%d, but its %s leave room for %d block%s on a multiprocessor", wanted,
               by_threads ? "threads" : "tiles in shared memory", most, most == 1 ? "" : "s");
  return most;
}

static void parameter_types(tw_emitter_t *e, MlirBlock body, MlirType *out) {
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(body); i++) {
    MlirType type = mlirValueGetType(mlirBlockGetArgument(body, i));
    for (int k = 0; k < tw_words_of(type); k++)
      *out++ = parameter_type(e, type, k);
  }
}

/* Registers of a thread whose arrays take this many of them, where the program says nothing: without a bound the
 * assembler takes some more than 64, with which half the threads fit on a multiprocessor. On an H200 a pass of a radix
 * sort takes 0.68 ms with 72 registers, 0.53 with 64 and 44 bytes of them in memory, 0.56 with 56. */
enum { LEAST_WORDS = 16, MOST_WORDS = 40, REGISTERS_BESIDE_ARRAYS = 64 };

static int64_t registers_beside_arrays(MlirOperation kernel) {
  int64_t words = tw_words_in_registers(kernel);
  return words >= LEAST_WORDS && words <= MOST_WORDS ? REGISTERS_BESIDE_ARRAYS : 0;
}

/* What the program says of a kernel of threads: .maxntid, .minnctapersm, .maxnreg; tiny floats as zeros. */
static void add_bounds(tw_emitter_t *e, MlirOperation old, MlirOperationState *state) {
  int32_t most = (int32_t)tw_hint_most_threads(old, 0);
  int64_t blocks = tw_hint_occupancy(old, 0), registers = tw_hint_max_registers(old, 0);
  if (most == 0 && registers == 0)
    registers = registers_beside_arrays(old);
  MlirNamedAttribute added[4];
  int count = 0;
  if (most > 0)
    added[count++] = twg_named(e, "nvvm.maxntid", mlirDenseI32ArrayGet(e->context, 1, &most));
  if (most > 0 && blocks > 0)
    added[count++] = twg_named(e, "nvvm.minctasm", twg_i32_attr(e, (int32_t)blocks));
  if (registers > 0)
    added[count++] = twg_named(e, "nvvm.maxnreg", twg_i32_attr(e, (int32_t)registers));
  if (tw_hint_fast_math(old, 0))
    added[count++] =
        twg_named(e, "denormal_fp_math_f32", mlirStringAttrGet(e->context, tw_str("preserve-sign,preserve-sign")));
  mlirOperationStateAddAttributes(state, count, added);
}

static MlirOperation new_function(tw_emitter_t *e, MlirOperation old, int num_words) {
  int num_arguments = e->num_maps + num_words;
  MlirType *arguments = tw_must(malloc((size_t)(num_arguments + 1) * sizeof *arguments));
  for (int i = 0; i < e->num_maps; i++)
    arguments[i] = mlirLLVMPointerTypeGet(e->context, 0);
  parameter_types(e, tw_region_block(old, 0), arguments + e->num_maps);
  MlirType type = mlirLLVMFunctionTypeGet(mlirLLVMVoidTypeGet(e->context), num_arguments, arguments, false);
  free(arguments);
  int32_t threads = threads_of(e);
  int resident = e->simt ? 0 : resident_blocks(e, old);
  MlirNamedAttribute attributes[] = {
      twg_named(e, "sym_name", tw_attr(old, "sym_name")),
      twg_named(e, "function_type", mlirTypeAttrGet(type)),
      twg_named(e, "linkage", mlirLLVMLinkageAttrGet(e->context, MlirLLVMLinkageExternal)),
      twg_named(e, "CConv", mlirLLVMCConvAttrGet(e->context, MlirLLVMCConvC)),
      twg_named(e, "nvvm.kernel", mlirUnitAttrGet(e->context)),
      twg_named(e, "nvvm.reqntid", mlirDenseI32ArrayGet(e->context, 1, &threads)),
      twg_named(e, "nvvm.minctasm", twg_i32_attr(e, resident)),
  };
  MlirOperationState state = mlirOperationStateGet(tw_str("llvm.func"), e->location);
  int32_t most[] = {threads, (int32_t)tw_launch_packed_blocks(old, 1)};
  if (tw_launch_has_packed_blocks(old)) /* the launch decides on how many rows of threads */
    attributes[5] = twg_named(e, "nvvm.maxntid", mlirDenseI32ArrayGet(e->context, 2, most));
  int num_attributes = e->simt ? 5 : resident ? 7 : 6; /* simt: the launch decides on the block */
  mlirOperationStateAddAttributes(&state, num_attributes, attributes);
  const int32_t blocks[] = {(int32_t)tw_launch_cluster_blocks(old, 1), 1, 1};
  if (blocks[0] > 1) {
    MlirNamedAttribute cluster = twg_named(e, "nvvm.cluster_dim", mlirDenseI32ArrayGet(e->context, 3, blocks));
    mlirOperationStateAddAttributes(&state, 1, &cluster);
  }
  if (e->simt)
    add_bounds(e, old, &state);
  if (e->num_maps) {
    MlirNamedAttribute maps = twg_named(e, "arg_attrs", argument_attributes(e, num_words));
    mlirOperationStateAddAttributes(&state, 1, &maps);
  }
  MlirRegion region = mlirRegionCreate();
  mlirOperationStateAddOwnedRegions(&state, 1, &region);
  return mlirOperationCreate(&state);
}

/* Words of the arguments; -1 if one is neither an array nor a number. */
static int count_words(MlirBlock body) {
  int words = 0;
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(body); i++) {
    MlirType type = mlirValueGetType(mlirBlockGetArgument(body, i));
    if (!mlirTypeIsAMemRef(type) && !mlirTypeIsAInteger(type) && !mlirTypeIsAFloat(type))
      return -1;
    words += tw_words_of(type);
  }
  return words;
}

/* The launch record of the old function, completed, its hints and its kind: the new one has them, too. */
static void record_launch(tw_emitter_t *e, MlirOperation old, MlirOperation function) {
  static const char *const kept[] = {TW_LAUNCH, TW_HINTS, "tile.simt"};
  tw_launch_set_num_threads(old, e->simt ? 0 : (uint32_t)threads_of(e)); /* 0: given at each launch */
  uint64_t shared = tw_launch_shared_bytes(old, 0);
  if (e->simt) /* what the launch adds begins where an array may */
    shared = (shared + 15) / 16 * 16;
  tw_launch_set_shared_bytes(old, (uint32_t)shared);
  if (e->num_maps)
    tw_launch_set_tensor_maps(old, e->maps, (size_t)e->num_maps);
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
    if (tw_has_attr(old, kept[i]))
      tw_set_attr(function, kept[i], tw_attr(old, kept[i]));
}

/* The new function stands before the old one, or nowhere if a rule failed. */
static bool emit_kernel(tw_emitter_t *e, MlirOperation old) {
  MlirBlock body = tw_region_block(old, 0);
  int num_words = count_words(body);
  if (num_words < 0) {
    tw_op_error(old, "is a kernel with an argument that is neither an array nor a scalar");
    return false;
  }
  e->simt = tw_has_attr(old, "tile.simt");
  MlirOperation roles = tw_roles_of(old);
  e->producer_warps = mlirOperationIsNull(roles) ? 0 : (int)tw_attr_int(roles, "producer_warps", 0);
  e->consumer_groups = tw_consumer_groups_of(old);
  e->group_scratch_bytes = tw_attr_int(old, "tile.group_scratch_bytes", 0);
  if (!e->simt && threads_of(e) > MAX_THREADS) {
    tw_op_error(old, "takes %d threads of a block; there are at most %d", (int)threads_of(e), MAX_THREADS);
    return false;
  }
  if (!twg_collect_maps(e, old))
    return false;
  bool is_function = tw_has_attr(old, TW_C_FUNCTION);
  MlirOperation function = e->c ? twg_c_function(e, old, is_function) : new_function(e, old, num_words);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(old), old, function);
  e->region = mlirOperationGetRegion(function, 0);
  e->entry = e->block = twg_new_block(e, 0, NULL);
  emit_prologue(e);
  for (int i = 0; i < e->num_maps; i++)
    mlirBlockAddArgument(e->entry, mlirLLVMPointerTypeGet(e->context, 0), e->location);
  bool ok = add_arguments(e, old, num_words);
  MlirBlock first = e->block = twg_new_block(e, 0, NULL);
  twg_set_up_barriers(e, old);
  twg_tell_blocks(e, old);
  ok = ok && emit_body(e, body);
  e->block = e->entry;
  twg_branch(e, first, 0, NULL);
  record_launch(e, old, function);
  mlirOperationDestroy(ok ? old : function);
  return ok;
}

static void free_emitter(tw_emitter_t *e) {
  tw_map_free(&e->values);
  tw_map_free(&e->constants);
  tw_map_free(&e->settled);
  tw_uniform_free(&e->uniform);
  twg_free_values(e);
}

/* Dynamic shared memory of every kernel: the launcher decides on its size. */
static void add_shared_global(MlirOperation module) {
  MlirContext c = mlirOperationGetContext(module);
  MlirType bytes = mlirLLVMArrayTypeGet(mlirIntegerTypeGet(c, 8), 0);
  tw_attr_t attributes[] = {
      {"sym_name", mlirStringAttrGet(c, tw_str(TWG_SHARED_NAME))},
      {"global_type", mlirTypeAttrGet(bytes)},
      {"linkage", mlirLLVMLinkageAttrGet(c, MlirLLVMLinkageExternal)},
      {"addr_space", mlirIntegerAttrGet(tw_i32(c), 3)},
      {"alignment", mlirIntegerAttrGet(tw_i64(c), 1024)},
  };
  MlirRegion region = mlirRegionCreate();
  tw_op_parts_t parts = {
      .num_attrs = sizeof attributes / sizeof *attributes, .attrs = attributes, .num_regions = 1, .regions = &region};
  MlirBlock body = tw_region_block(module, 0);
  tw_builder_t at = {.context = c,
                     .block = body,
                     .before = mlirBlockGetFirstOperation(body),
                     .location = mlirOperationGetLocation(module)};
  tw_build(&at, "llvm.mlir.global", parts);
}

static bool emit_one(MlirOperation kernel, int *num_strings) {
  tw_emitter_t e = new_emitter(kernel, *num_strings);
  tw_c_signature_t c;
  e.c = tw_has_attr(kernel, TW_C_SIGNATURE) ? &c : NULL;
  bool ok = (!e.c || tw_read_c_signature(kernel, &c)) && emit_kernel(&e, kernel);
  *num_strings = e.num_strings;
  free_emitter(&e);
  return ok;
}

bool tw_run_to_nvvm(MlirOperation module) {
  bool ok = true;
  int num_strings = 0;
  MlirBlock body = tw_region_block(module, 0);
  for (MlirOperation op = mlirBlockGetFirstOperation(body), next; ok && !mlirOperationIsNull(op); op = next) {
    next = mlirOperationGetNextInBlock(op);
    if (!tw_op_is(op, TW_FUNC_FUNC))
      continue;
    if (tw_has_attr(op, "tile.kernel"))
      ok = emit_one(op, &num_strings);
    else
      mlirOperationDestroy(op); /* what kernels call was inlined */
  }
  if (ok) {
    add_shared_global(module);
    tw_add_line_info(module);
  }
  return ok;
}
