/* stepped_products.c - tile-specialize-warps: what a stepped product reads is computed behind the waits for its stages
 *
 * Before, a consumer computes the operand and then waits for what the product reads besides:
 *
 *   %t = tile.local_load %a[..] ; tile.barrier_arrive ...
 *   %q = ... %t ...
 *   tile.barrier_wait %y[..] ; %d = tile.async_mma %q, %b[..], %acc {stepped}
 *
 * After, nothing stands between the arithmetic and the product, whose steps of k then start as their parts of the
 * operand are made (tile-order-stores, which moves nothing past a wait):
 *
 *   %t = tile.local_load %a[..] ; tile.barrier_arrive ...
 *   tile.barrier_wait %y[..]
 *   %q = ... %t ... ; %d = tile.async_mma %q, %b[..], %acc {stepped}
 *
 * What must hold: arithmetic on tiles moves, in its order, and only what nothing else between reads. */
#include "lowering/gpu/facts/roles.h"
#include "lowering/gpu/machine/mma_family.h"
#include "lowering/gpu/roles/specialize_warps.h"
#include "lowering/ir.h"
#include "lowering/loops.h"

static bool is_stepped(MlirOperation op) { return tw_op_is_async_product(op) && tw_has_attr(op, TW_STEPPED); }

/* Whether each reader stands at `product` or behind it, or has moved there. */
static bool is_read_late(MlirOperation op, MlirOperation product, const tw_ops_t *moved) {
  TW_EACH_USE(use, mlirOperationGetResult(op, 0)) {
    MlirOperation user = tw_ancestor_in(mlirOpOperandGetOwner(use), mlirOperationGetBlock(product));
    bool late = mlirOperationEqual(user, product) || mlirOperationIsBeforeInBlock(product, user);
    for (int i = 0; i < moved->count && !late; i++)
      late = mlirOperationEqual(moved->at[i], user);
    if (!late)
      return false;
  }
  return true;
}

static bool may_move(MlirOperation op) {
  return tw_is_arithmetic(op) && mlirOperationGetNumRegions(op) == 0 && mlirOperationGetNumResults(op) == 1 &&
         tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0)));
}

/* From the product upwards, so that what an op makes has moved before it. */
static void compute_late(MlirOperation product) {
  tw_slice_t needed = {.block = mlirOperationGetBlock(product)};
  tw_slice_add(&needed, mlirOperationGetOperand(product, 0));
  tw_ops_t before = {0}, moved = {0};
  for (MlirOperation op = mlirBlockGetFirstOperation(needed.block); !mlirOperationEqual(op, product);
       op = mlirOperationGetNextInBlock(op))
    tw_ops_add(&before, op);
  for (int i = before.count - 1; i >= 0; i--) {
    MlirOperation op = before.at[i];
    if (!tw_slice_has(&needed, op) || !may_move(op) || !is_read_late(op, product, &moved))
      continue;
    mlirOperationMoveBefore(op, moved.count > 0 ? moved.at[moved.count - 1] : product);
    tw_ops_add(&moved, op);
  }
  tw_ops_free(&before);
  tw_ops_free(&moved);
  tw_slice_free(&needed);
}

bool tw_stepped_products(MlirOperation func) {
  MlirOperation roles = tw_roles_of(func);
  if (mlirOperationIsNull(roles))
    return true;
  tw_ops_t products = tw_ops_in(roles, is_stepped, MlirWalkPreOrder);
  for (int i = 0; i < products.count; i++)
    compute_late(products.at[i]);
  tw_ops_free(&products);
  return true;
}
