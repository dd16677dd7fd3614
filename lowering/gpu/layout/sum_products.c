/* sum_products.c - tile-plan-block: products of one row or column that no instruction takes become sums
 *
 * Before, weights of parts that are joined; each thread would hold all of k of its columns:
 *
 *   %d = tile.mma %w, %x, %acc : tensor<1x128xf32>, tensor<128x64xf32>, tensor<1x64xf32>
 *
 * After, threads share k, too:
 *
 *   %c = tile.reshape %w : tensor<1x128xf32> -> tensor<128x1xf32>
 *   %p = arith.mulf (tile.broadcast %c), %x : tensor<128x64xf32>
 *   %s = tile.reduce add, %p axis 0 ; tile.reshape to 1x64
 *   %d = arith.addf %acc, %s
 *
 * What must hold: operands and sum are of one float type, and the product is in no loop of the program: there a
 * thread keeps the sums of its columns, which nothing has to reduce in each iteration. Sums are as before but for the
 * order in which they are added up, and products round before they are added. */
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/layout/select_mma.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/launch_record.h"

static MlirType tile_of(MlirType element, int64_t rows, int64_t columns) {
  return tw_tile_type(element, 2, (int64_t[]){rows, columns});
}

static bool is_sum(MlirOperation mma) {
  MlirType lhs = mlirValueGetType(mlirOperationGetOperand(mma, 0)),
           rhs = mlirValueGetType(mlirOperationGetOperand(mma, 1)),
           sum = mlirValueGetType(mlirOperationGetResult(mma, 0));
  return tw_op_is_product(mma) && tw_rank(sum) == 2 && (tw_extent(sum, 0) == 1 || tw_extent(sum, 1) == 1) &&
         tw_is_float(tw_element(sum)) && mlirTypeEqual(tw_element(lhs), tw_element(sum)) &&
         mlirTypeEqual(tw_element(rhs), tw_element(sum)) && tw_loop_around(mma) == NULL && !tw_mma_has_instruction(mma);
}

static void rewrite(MlirOperation mma) {
  tw_builder_t at = tw_build_before(mma);
  MlirValue old = mlirOperationGetResult(mma, 0), one, all;
  MlirType sum = mlirValueGetType(old), element = tw_element(sum);
  int axis = tw_extent(sum, 0) == 1 ? 0 : 1; /* of `all`, along which it is added up */
  one = mlirOperationGetOperand(mma, axis);
  all = mlirOperationGetOperand(mma, 1 - axis);
  int64_t k = tw_extent(mlirValueGetType(all), axis);
  MlirValue turned = tw_reshape(&at, axis == 0 ? tile_of(element, k, 1) : tile_of(element, 1, k), one);
  MlirValue repeated = tw_broadcast(&at, mlirValueGetType(all), turned);
  MlirValue added = tw_sum_along(&at, tw_binary(&at, "arith.mulf", mlirValueGetType(all), repeated, all), axis, false);
  MlirValue made = tw_binary(&at, "arith.addf", sum, mlirOperationGetOperand(mma, 2), tw_reshape(&at, sum, added));
  tw_op_remark(mma, "is computed as a sum: no matrix instruction takes its one %s", axis == 0 ? "row" : "column");
  mlirValueReplaceAllUsesOfWith(old, made);
  mlirOperationDestroy(mma);
}

void tw_sum_products(MlirOperation func) {
  tw_ops_t products = tw_ops_in(func, tw_op_is_product, MlirWalkPreOrder);
  for (int i = 0; tw_hint_family(func).length == 0 && i < products.count; i++)
    if (is_sum(products.at[i]))
      rewrite(products.at[i]);
  tw_ops_free(&products);
}
