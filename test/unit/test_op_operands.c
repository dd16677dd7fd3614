/* Operands are found by the names of the definitions, in ops that have an open number of them, and can be changed. */
#include "dialect/op_kinds.h"
#include "tilewright/dialect.h"

#include "check.h"

#include "mlir-c/IR.h"

#include <stdio.h>

static const char *const text =
    "func.func @f(%a: memref<?x?xf32>, %i: tensor<8xi32>, %m: tensor<8xi1>, %p: tensor<8xf32>, %n: i32) {\n"
    "  %0 = tile.gather %a[%i, %i] : memref<?x?xf32>, tensor<8xi32>, tensor<8xi32> -> tensor<8xf32>\n"
    "  %1 = tile.gather %a[%i, %i] mask %m : tensor<8xi1> else %p : tensor<8xf32> : memref<?x?xf32>, tensor<8xi32>, "
    "tensor<8xi32> -> tensor<8xf32>\n"
    "  %2 = tile.load %a[%n, %n] : memref<?x?xf32>, i32, i32 -> tensor<4x2xf32>\n"
    "  tile.store %2, %a[%n, %n] : tensor<4x2xf32>, memref<?x?xf32>, i32, i32\n"
    "  return\n"
    "}\n";

static MlirValue argument(MlirBlock block, intptr_t i) { return mlirBlockGetArgument(block, i); }

static void look_at_gathers(MlirBlock block, MlirOperation plain, MlirOperation masked) {
  intptr_t first;
  CHECK(tw_operands(plain, TW_OPERAND_INDICES, &first) == 2 && first == 1, "the indices stand behind the array");
  CHECK(tw_operands(plain, TW_OPERAND_MASK, &first) == 0 && first == 3, "no mask, and where it would be");
  CHECK(tw_operands(plain, TW_OPERAND_VALUE, &first) == -1, "a gather has no value");
  CHECK(mlirValueEqual(tw_operand(masked, TW_OPERAND_MASK), argument(block, 2)), "the mask");
  CHECK(mlirValueEqual(tw_operand(masked, TW_OPERAND_PADDING), argument(block, 3)), "the padding behind it");
  CHECK(tw_op_gathers(plain) && !tw_op_scatters(plain), "a gather");
}

static void change_gathers(MlirBlock block, MlirOperation plain, MlirOperation masked) {
  tw_set_operand(plain, TW_OPERAND_PADDING, argument(block, 3));
  CHECK(mlirValueIsNull(tw_operand(plain, TW_OPERAND_MASK)), "still no mask");
  tw_set_operand(plain, TW_OPERAND_MASK, argument(block, 2));
  CHECK(mlirValueEqual(tw_operand(plain, TW_OPERAND_PADDING), argument(block, 3)), "the padding moves on");
  tw_set_operand(masked, TW_OPERAND_MASK, (MlirValue){NULL});
  CHECK(mlirOperationGetNumOperands(masked) == 4, "the mask is gone");
  CHECK(mlirValueEqual(tw_operand(masked, TW_OPERAND_PADDING), argument(block, 3)), "the padding is not");
  tw_set_operand(masked, TW_OPERAND_ARRAY, argument(block, 0));
  CHECK(mlirOperationVerify(plain) && mlirOperationVerify(masked), "they are valid");
}

static void look_at_tiles(MlirBlock block, MlirOperation load, MlirOperation store) {
  intptr_t first;
  CHECK(tw_operands(load, TW_OPERAND_INDEX, &first) == 2 && first == 1, "the index of a load");
  CHECK(tw_operands(store, TW_OPERAND_VALUE, &first) == 1 && first == 3, "the value behind an open number of indices");
  CHECK(mlirValueEqual(tw_operand(store, TW_OPERAND_ARRAY), argument(block, 0)), "the array of a store");
  CHECK(!tw_op_gathers(load) && tw_op_has(load, TW_BY_TILE) && tw_op_has(store, TW_BY_TILE), "accesses of tiles");
}

int main(void) {
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  tw_register_dialects(registry);
  MlirContext context = mlirContextCreateWithRegistry(registry, false);
  mlirDialectRegistryDestroy(registry);
  mlirContextLoadAllAvailableDialects(context);
  MlirModule module = mlirModuleCreateParse(context, mlirStringRefCreateFromCString(text));
  MlirOperation function = mlirBlockGetFirstOperation(mlirModuleGetBody(module)), ops[4];
  MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(function, 0));
  ops[0] = mlirBlockGetFirstOperation(block);
  for (int i = 1; i < 4; i++)
    ops[i] = mlirOperationGetNextInBlock(ops[i - 1]);
  look_at_gathers(block, ops[0], ops[1]);
  change_gathers(block, ops[0], ops[1]);
  look_at_tiles(block, ops[2], ops[3]);
  mlirModuleDestroy(module);
  mlirContextDestroy(context);
  if (failures == 0)
    puts("operands by name: ok");
  return failures != 0;
}
