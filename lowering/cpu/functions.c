/* functions.c - private functions beside the kernel: shared code, and what the process provides */
#include "lowering/c_values.h"
#include "lowering/cpu/cpu.h"

#include "mlir-c/Dialect/LLVM.h"

#include <stdlib.h>

static MlirBlock module_body(cpu_t *cx) { return tw_region_block(cx->module, 0); }

static tw_builder_t at_module(cpu_t *cx) {
  MlirBlock body = module_body(cx);
  return (tw_builder_t){cx->context, body, mlirBlockGetFirstOperation(body), cx->location};
}

bool cpu_has_function(cpu_t *cx, const char *name) {
  MlirAttribute symbol = mlirStringAttrGet(cx->context, tw_str(name));
  TW_EACH_OP(op, module_body(cx))
    if (mlirAttributeEqual(tw_attr(op, "sym_name"), symbol))
      return true;
  return false;
}

/* A function with a body is seen by no other object file. */
static void add_function(cpu_t *cx, const char *name, int num, const MlirType *types, MlirType result, MlirBlock body) {
  bool defined = !mlirBlockIsNull(body);
  tw_attr_t attrs[] = {
      {"sym_name", mlirStringAttrGet(cx->context, tw_str(name))},
      {"function_type", mlirTypeAttrGet(mlirFunctionTypeGet(cx->context, num, types, result.ptr != NULL, &result))},
      {"sym_visibility", mlirStringAttrGet(cx->context, tw_str("private"))},
      {"llvm.linkage", mlirLLVMLinkageAttrGet(cx->context, MlirLLVMLinkageInternal)}};
  MlirRegion region = mlirRegionCreate();
  if (defined)
    mlirRegionAppendOwnedBlock(region, body);
  tw_builder_t at = at_module(cx);
  tw_build(&at, "func.func",
           (tw_op_parts_t){.num_attrs = defined ? 4 : 3, .attrs = attrs, .num_regions = 1, .regions = &region});
}

/* Without a type the call has no result. */
static MlirOperation call(cpu_t *cx, const char *name, MlirType type, int num, const MlirValue *operands) {
  MlirType types[12];
  for (int i = 0; i < num; i++)
    types[i] = mlirValueGetType(operands[i]);
  if (!cpu_has_function(cx, name))
    add_function(cx, name, num, types, type, (MlirBlock){NULL});
  tw_attr_t attr = {"callee", mlirFlatSymbolRefAttrGet(cx->context, tw_str(name))};
  tw_builder_t at = cpu_here(cx);
  return tw_build(&at, "func.call",
                  (tw_op_parts_t){.num_operands = num,
                                  .operands = operands,
                                  .num_results = type.ptr != NULL,
                                  .results = &type,
                                  .num_attrs = 1,
                                  .attrs = &attr});
}

void cpu_call(cpu_t *cx, const char *name, int num, const MlirValue *operands) {
  call(cx, name, (MlirType){NULL}, num, operands);
}

MlirValue cpu_call1(cpu_t *cx, const char *name, MlirType type, int num, const MlirValue *operands) {
  return mlirOperationGetResult(call(cx, name, type, num, operands), 0);
}

MlirValue cpu_global(cpu_t *cx, const char *name, MlirType type, MlirAttribute constant) {
  if (!cpu_has_function(cx, name)) {
    bool own = !mlirAttributeIsNull(constant);
    MlirLLVMLinkage linkage = own ? MlirLLVMLinkageInternal : MlirLLVMLinkageExternal;
    tw_attr_t attrs[] = {{"sym_name", mlirStringAttrGet(cx->context, tw_str(name))},
                         {"global_type", mlirTypeAttrGet(type)},
                         {"linkage", mlirLLVMLinkageAttrGet(cx->context, linkage)},
                         {"alignment", mlirIntegerAttrGet(cpu_int(cx, 64), 8)},
                         {"constant", mlirUnitAttrGet(cx->context)},
                         {"value", constant}};
    MlirRegion region = mlirRegionCreate();
    tw_builder_t at = at_module(cx);
    tw_build(&at, "llvm.mlir.global",
             (tw_op_parts_t){.num_attrs = own ? 6 : 3, .attrs = attrs, .num_regions = 1, .regions = &region});
  }
  tw_builder_t here = cpu_here(cx);
  return tw_op1_attr(&here, "llvm.mlir.addressof", cpu_pointer_type(cx), 0, NULL, "global_name",
                     mlirFlatSymbolRefAttrGet(cx->context, tw_str(name)));
}

void cpu_look(cpu_t *cx) {
  if (tw_has_attr(cx->func, TW_C_SIGNATURE)) /* nobody stops it */
    return;
  MlirType i32 = cpu_int(cx, 32);
  MlirValue flag = cpu_global(cx, "tw_kernel_attention", i32, mlirAttributeGetNull());
  tw_attr_t attrs[] = {{"alignment", mlirIntegerAttrGet(cpu_int(cx, 64), 4)},
                       {"volatile_", mlirUnitAttrGet(cx->context)}};
  tw_builder_t at = cpu_here(cx);
  MlirValue load = tw_op1_attrs(&at, "llvm.load", i32, 1, &flag, 2, attrs);
  MlirValue wanted = cpu_cmpi(cx, CPU_NE, load, cpu_int_const(cx, i32, 0));
  cpu_branch_t branch = cpu_branch(cx, wanted);
  cpu_call(cx, "tw_kernel_look", 0, NULL);
  cpu_branch_end(cx, &branch, (MlirValue){NULL});
}

void cpu_function_begin(cpu_t *cx, cpu_t *inner, int num_pointers, int num_words) {
  *inner = (cpu_t){.context = cx->context,
                   .rules = cx->rules,
                   .emit_block = cx->emit_block,
                   .module = cx->module,
                   .func = cx->func,
                   .location = cx->location,
                   .lanes = cx->lanes,
                   .avx512 = cx->avx512,
                   .f16c = cx->f16c};
  MlirType types[CPU_MAX_OPERANDS];
  MlirLocation locations[CPU_MAX_OPERANDS];
  for (int i = 0; i < num_pointers + num_words; i++) {
    types[i] = i < num_pointers ? cpu_pointer_type(cx) : cpu_int(cx, 64);
    locations[i] = cx->location;
  }
  inner->entry = mlirBlockCreate(num_pointers + num_words, types, locations);
  inner->scope[0] = inner->block = inner->entry;
}

void cpu_function_end(cpu_t *cx, cpu_t *inner, const char *name) {
  cpu_op0(inner, "func.return", 0, NULL);
  MlirType types[CPU_MAX_OPERANDS];
  int num = (int)mlirBlockGetNumArguments(inner->entry);
  for (int i = 0; i < num; i++)
    types[i] = mlirValueGetType(mlirBlockGetArgument(inner->entry, i));
  add_function(cx, name, num, types, (MlirType){NULL}, inner->entry);
  cx->failed |= inner->failed;
  cpu_release(inner);
}

void cpu_release(cpu_t *cx) {
  tw_map_free(&cx->constants);
  tw_map_free(&cx->slots);
  tw_map_free(&cx->arrays);
  tw_map_free(&cx->order);
  free(cx->memo);
  free(cx->live.at);
  free(cx->filled.at);
  free(cx->tees.at);
  while (cx->allocations) {
    void *next = *(void **)cx->allocations;
    free(cx->allocations);
    cx->allocations = next;
  }
}

MlirValue cpu_load_i32(cpu_t *cx, MlirValue pointer, int index) {
  MlirType i32 = cpu_int(cx, 32);
  return cpu_load(cx, cpu_address(cx, pointer, i32, cpu_index(index)), i32, 4);
}

static MlirValue load_word(cpu_t *cx, MlirValue words, int *position) {
  MlirType i64 = cpu_int(cx, 64);
  return cpu_load(cx, cpu_address(cx, words, i64, cpu_index((*position)++)), i64, 8);
}

static void unpack_array(cpu_t *cx, MlirValue argument, MlirValue words, int *position) {
  MlirType type = mlirValueGetType(argument);
  cpu_array_t *array = cpu_alloc(cx, sizeof *array);
  int64_t strides[TW_MAX_RANK], offset, dynamic = mlirShapedTypeGetDynamicStrideOrOffset();
  intptr_t rank = tw_rank(type);
  if (tw_is_unsigned(type)) {
    cpu_error(cx, cx->func, "has an array of a dtype that tile-legalize makes signless");
    return;
  }
  if (rank > TW_MAX_RANK || mlirLogicalResultIsFailure(mlirMemRefTypeGetStridesAndOffset(type, strides, &offset))) {
    cpu_error(cx, cx->func, "has an array argument without strides");
    return;
  }
  MlirType pointer = cpu_pointer_type(cx);
  array->pointer = cpu_load(cx, cpu_address(cx, words, cpu_int(cx, 64), cpu_index(*position)), pointer, 8);
  ++*position;
  for (intptr_t d = 0; d < rank; d++) {
    MlirValue extent = load_word(cx, words, position);
    array->extent[d] = mlirShapedTypeIsDynamicDim(type, d) ? extent : cpu_i64_const(cx, tw_extent(type, d));
  }
  for (intptr_t d = 0; d < rank; d++) {
    MlirValue stride = load_word(cx, words, position);
    array->stride[d] = strides[d] == dynamic ? stride : cpu_i64_const(cx, strides[d]);
    array->unit[d] = strides[d] == 1;
  }
  tw_map_one(&cx->arrays, argument, (MlirValue){array});
}

MlirValue cpu_of_word(cpu_t *cx, MlirValue word, MlirType type) {
  if (!mlirTypeIsAFloat(type))
    return cpu_cast(cx, "arith.trunci", word, type);
  unsigned bits = 8 * (tw_bytes(type) ? tw_bytes(type) : 1);
  MlirValue raw = cpu_cast(cx, "arith.trunci", word, cpu_int(cx, bits));
  return cpu_is_narrow(type) ? cpu_widen_bits(cx, raw, type) : cpu_bits(cx, raw, type);
}

static void unpack_scalar(cpu_t *cx, MlirValue argument, MlirValue words, int *position) {
  MlirType type = mlirValueGetType(argument);
  MlirValue word = load_word(cx, words, position);
  bool is_signless = mlirTypeIsAInteger(type) && mlirIntegerTypeIsSignless(type);
  if (!is_signless && !mlirTypeIsAFloat(type)) {
    cpu_error(cx, mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(argument)),
              "is a kernel with an argument that is neither an array nor a scalar of a dtype without sign");
    return;
  }
  cpu_set_scalar(cx, argument, cpu_of_word(cx, word, type));
}

void cpu_unpack_arguments(cpu_t *cx, MlirBlock old, MlirValue words, MlirValue grid) {
  int position = 0;
  for (int d = 0; d < 3; d++)
    cx->num_blocks[d] = cpu_load_i32(cx, grid, d);
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(old) && !cx->failed; i++) {
    MlirValue argument = mlirBlockGetArgument(old, i);
    if (mlirTypeIsAMemRef(mlirValueGetType(argument)))
      unpack_array(cx, argument, words, &position);
    else
      unpack_scalar(cx, argument, words, &position);
  }
}

void cpu_begin_function(cpu_t *cx, int num, const MlirType *types) {
  MlirLocation locations[CPU_MAX_OPERANDS];
  for (int i = 0; i < num; i++)
    locations[i] = cx->location;
  cx->entry = mlirBlockCreate(num, types, locations);
  cx->scope[0] = cx->block = cx->entry;
  tw_map_free(&cx->constants); /* they are in the entry block */
}

MlirOperation cpu_end_function(cpu_t *cx, MlirAttribute name, int unaliased) {
  cpu_op0(cx, "func.return", 0, NULL);
  intptr_t num = mlirBlockGetNumArguments(cx->entry);
  MlirType types[CPU_MAX_OPERANDS];
  MlirNamedAttribute noalias = {mlirIdentifierGet(cx->context, tw_str("llvm.noalias")), mlirUnitAttrGet(cx->context)};
  MlirAttribute arguments[8];
  for (intptr_t i = 0; i < num; i++) {
    types[i] = mlirValueGetType(mlirBlockGetArgument(cx->entry, i));
    arguments[i] = mlirDictionaryAttrGet(cx->context, i == unaliased, &noalias);
  }
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, cx->entry);
  tw_attr_t attrs[] = {{"sym_name", name},
                       {"function_type", mlirTypeAttrGet(mlirFunctionTypeGet(cx->context, num, types, 0, NULL))},
                       {"arg_attrs", mlirArrayAttrGet(cx->context, num, arguments)}};
  tw_builder_t at = tw_build_before(cx->func);
  return tw_build(&at, "func.func",
                  (tw_op_parts_t){.num_attrs = 3, .attrs = attrs, .num_regions = 1, .regions = &region});
}
