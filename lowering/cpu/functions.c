/* functions.c - private functions beside the kernel: shared code, and what the process provides */
#include "lowering/cpu/cpu.h"

#include "mlir-c/Dialect/LLVM.h"

#include <stdlib.h>

static MlirBlock module_body(cpu_t *cx) { return tw_region_block(cx->module, 0); }

tw_builder_t cpu_at_module(cpu_t *cx) {
  MlirBlock body = module_body(cx);
  return (tw_builder_t){cx->context, body, mlirBlockGetFirstOperation(body), cx->location};
}

bool cpu_has_function(cpu_t *cx, const char *name) {
  MlirAttribute symbol = mlirStringAttrGet(cx->context, tw_str(name));
  for (MlirOperation op = mlirBlockGetFirstOperation(module_body(cx)); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    if (mlirAttributeEqual(tw_attr(op, "sym_name"), symbol))
      return true;
  return false;
}

/* A function with a body is seen by no other object file. */
static void add_function(cpu_t *cx, const char *name, int num, const MlirType *types, MlirBlock body) {
  bool defined = !mlirBlockIsNull(body);
  tw_attr_t attrs[] = {{"sym_name", mlirStringAttrGet(cx->context, tw_str(name))},
                       {"function_type", mlirTypeAttrGet(mlirFunctionTypeGet(cx->context, num, types, 0, NULL))},
                       {"sym_visibility", mlirStringAttrGet(cx->context, tw_str("private"))},
                       {"llvm.linkage", mlirLLVMLinkageAttrGet(cx->context, MlirLLVMLinkageInternal)}};
  MlirRegion region = mlirRegionCreate();
  if (defined)
    mlirRegionAppendOwnedBlock(region, body);
  tw_builder_t at = cpu_at_module(cx);
  tw_build(&at, "func.func",
           (tw_op_parts_t){.num_attrs = defined ? 4 : 3, .attrs = attrs, .num_regions = 1, .regions = &region});
}

void cpu_call(cpu_t *cx, const char *name, int num, const MlirValue *operands) {
  MlirType types[8];
  for (int i = 0; i < num; i++)
    types[i] = mlirValueGetType(operands[i]);
  if (!cpu_has_function(cx, name))
    add_function(cx, name, num, types, (MlirBlock){NULL});
  tw_attr_t attr = {"callee", mlirFlatSymbolRefAttrGet(cx->context, tw_str(name))};
  tw_builder_t at = cpu_here(cx);
  tw_build(&at, "func.call",
           (tw_op_parts_t){.num_operands = num, .operands = operands, .num_attrs = 1, .attrs = &attr});
}

void cpu_function_begin(cpu_t *cx, cpu_t *inner, int num_pointers) {
  *inner = (cpu_t){.context = cx->context,
                   .module = cx->module,
                   .func = cx->func,
                   .location = cx->location,
                   .lanes = cx->lanes,
                   .avx512 = cx->avx512,
                   .f16c = cx->f16c};
  MlirType types[8];
  MlirLocation locations[8];
  for (int i = 0; i < num_pointers; i++) {
    types[i] = cpu_pointer_type(cx);
    locations[i] = cx->location;
  }
  inner->entry = mlirBlockCreate(num_pointers, types, locations);
  inner->scope[0] = inner->block = inner->entry;
}

void cpu_function_end(cpu_t *cx, cpu_t *inner, const char *name) {
  cpu_op0(inner, "func.return", 0, NULL);
  MlirType types[8];
  int num = (int)mlirBlockGetNumArguments(inner->entry);
  for (int i = 0; i < num; i++)
    types[i] = mlirValueGetType(mlirBlockGetArgument(inner->entry, i));
  add_function(cx, name, num, types, inner->entry);
  cx->failed |= inner->failed;
  cpu_release(inner);
}

void cpu_release(cpu_t *cx) {
  tw_map_free(&cx->constants);
  tw_map_free(&cx->slots);
  tw_map_free(&cx->arrays);
  tw_map_free(&cx->order);
  free(cx->memo);
  free(cx->live);
  free(cx->filled);
  while (cx->allocations) {
    void *next = *(void **)cx->allocations;
    free(cx->allocations);
    cx->allocations = next;
  }
}
