/* swap_operands.c - tile-plan-block: transposes products so that a computed operand is the left one
 *
 * Before, the right operand is computed. An asynchronous product reads its right operand from shared memory only, so
 * each iteration would write it there, and the product would wait for that:
 *
 *   %s = scf.for %k = ... iter_args(%acc = %zero) -> (tensor<256x128xf32>) {
 *     %a = tile.load %x[...] -> tensor<256x64xbf16>
 *     %q = tile.load %w[...] -> tensor<128x64xi8>
 *     %f = arith.sitofp %q : tensor<128x64xi8> to tensor<128x64xbf16>
 *     %b = tile.permute %f [1, 0]
 *     %d = tile.mma %a, %b, %acc
 *     scf.yield %d
 *   }
 *
 * After, the loop sums the transpose, and goes on from registers to the product:
 *
 *   %t = scf.for %k = ... iter_args(%acc = %zero) -> (tensor<128x256xf32>) {
 *     %a, %q, %f as before
 *     %l = tile.permute %a [1, 0]
 *     %d = tile.mma %f, %l, %acc
 *     scf.yield %d
 *   }
 *   %s = tile.permute %t [1, 0]
 *
 * What must hold: the target has an asynchronous family; the loop carries the sum from zero, and only products read it;
 * all of these have a right operand that threads would write, and load their left one: of 16 bits an element, which may
 * be in either order in memory, or of 32, side by side along k. A right operand of tf32 by rows counts as one that is
 * computed: no instruction takes it from shared memory as it lies there, while a left one goes through registers, a
 * word each. The sum has as many rows as an instruction has columns at least, and 128 columns (of 64, two groups of
 * warps would compute each element twice; of few rows there is one group). So a few rows against computed weights
 * become a product of the family, which they are not as they stand. Runs before select_mma.c. */
#include "dialect/layouts.h"
#include "lowering/common/turn_products.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/layout/select_mma.h"
#include "lowering/loops.h"

static bool gains(const tw_async_mma_t *async, MlirOperation mma) {
  enum { LEAST_BITS = 16, SHARED_BY = 2 };
  MlirType acc = mlirValueGetType(mlirOperationGetOperand(mma, 2));
  bool transposed;
  return tw_rank(acc) == 2 &&
         tw_memory_bits(tw_element(mlirValueGetType(mlirOperationGetOperand(mma, 0)))) >= LEAST_BITS &&
         tw_extent(acc, 0) >= async->least_columns && tw_extent(acc, 0) <= async->columns &&
         tw_extent(acc, 1) >= async->rows * (tw_extent(acc, 0) < async->rows ? 1 : SHARED_BY) &&
         async->place(mma, 0, &transposed) == TW_PLACE_SHARED && async->place(mma, 1, &transposed) == TW_PLACE_WRITTEN;
}

static void swap(MlirOperation loop, intptr_t i, const tw_ops_t *products) {
  tw_turn_sum(loop, i, products);
  for (int p = 0; p < products->count; p++)
    tw_op_remark(products->at[p],
                 "is computed transposed, so that the computed operand is the left one and stays in registers");
}

void tw_swap_operands(MlirOperation func) {
  const tw_async_mma_t *async = tw_async_mma_of(func);
  if (!tw_has_attr(func, "tile.kernel") || tw_has_attr(func, "tile.simt") || async == NULL)
    return;
  tw_ops_t loops = tw_loops_in(func, MlirWalkPreOrder);
  for (int l = 0; l < loops.count; l++)
    for (intptr_t i = 0; i < mlirOperationGetNumResults(loops.at[l]); i++) {
      if (!tw_sums_products(loops.at[l], i))
        continue;
      tw_ops_t products = tw_products_of_sum(loops.at[l], i);
      bool all = products.count > 0;
      for (int p = 0; p < products.count; p++)
        all = all && gains(async, products.at[p]);
      if (all)
        swap(loops.at[l], i, &products);
      tw_ops_free(&products);
    }
  tw_ops_free(&loops);
}
