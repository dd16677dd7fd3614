/* race_check.c - a debug build in which nothing overlaps: the first step of tile-insert-barriers
 *
 * Before, on a kernel with the hint `race_check`:
 *
 *   tile.async_wait 2
 *   %d = tile.async_mma %a[%s], %b[%s], %c
 *   %w = tile.mma_wait %d, 1
 *   tile.local_store %w, %buf[%s]
 *
 * After, where STOP stands for `tile.async_wait 0 ; tile.barrier`:
 *
 *   tile.async_wait 0 ; STOP
 *   %d = tile.async_mma %a[%s], %b[%s], %c ; %e = tile.mma_wait %d, 0 ; STOP
 *   %w = tile.mma_wait %e, 0 ; STOP
 *   STOP ; tile.local_store %w, %buf[%s] ; STOP
 *
 * Every wait waits for everything, every access to shared memory stands between barriers, and with every wait goes the
 * fence between what threads and what the asynchronous engines wrote. The order of computations is the same: a kernel
 * whose results differ from those of this build, in any bit, has a race. Runs behind all passes that decide what
 * overlaps; kernels without the hint are left alone. In `tile.roles` only consumers get barriers, since the
 * producer, a single warp, has no one to meet. */
#include "lowering/gpu/memory/race_check.h"
#include "lowering/gpu/facts/barrier.h"
#include "lowering/gpu/facts/roles.h"
#include "lowering/ir.h"
#include "lowering/launch_record.h"

static bool is_access(MlirOperation op) {
  return tw_op_has(op, TW_READS_SHARED | TW_WRITES_SHARED | TW_STARTS_ASYNC | TW_WAITS_ASYNC) &&
         !tw_op_loads_by_engine(op);
}

static void stop(const tw_builder_t *at) {
  tw_build_copy_wait(at, 0);
  tw_build_barrier(at, TW_ORDERS_ANYTHING);
}

/* The blocks of tile.roles have no terminator. */
static tw_builder_t behind(MlirOperation op) {
  MlirOperation next = mlirOperationGetNextInBlock(op);
  return mlirOperationIsNull(next) ? tw_build_at_end(mlirOperationGetBlock(op), mlirOperationGetLocation(op))
                                   : tw_build_before(next);
}

static void wait_for_all(MlirOperation op) {
  if (tw_has_attr(op, "pending"))
    tw_set_int(op, "pending", tw_i32(mlirOperationGetContext(op)), 0);
}

static MlirOperation wait_for_product(MlirOperation product) {
  tw_builder_t at = behind(product);
  MlirValue result = mlirOperationGetResult(product, 0);
  MlirOperation wait = tw_build_product_wait(&at, 1, &result, 0);
  mlirValueReplaceAllUsesExcept(result, mlirOperationGetResult(wait, 0), 1, &wait);
  return wait;
}

/* A tile that leaves by TMA has left when its place in shared memory was read. */
static MlirOperation wait_for_store(MlirOperation store) {
  tw_builder_t at = behind(store);
  MlirValue buffer = mlirOperationGetOperand(store, 1);
  return tw_build(&at, "tile.tma_store_wait", (tw_op_parts_t){.num_operands = 1, .operands = &buffer});
}

static void visit(MlirOperation op) {
  wait_for_all(op);
  bool producer;
  (void)tw_roles_around(op, &producer);
  if (!is_access(op) || producer)
    return;
  tw_builder_t before = tw_build_before(op);
  stop(&before);
  if (tw_op_is_async_product(op))
    op = wait_for_product(op);
  else if (tw_op_stores_by_engine(op))
    op = wait_for_store(op);
  tw_builder_t after = behind(op);
  stop(&after);
}

static void visit_block(MlirBlock block) {
  for (MlirOperation op = mlirBlockGetFirstOperation(block), next; !mlirOperationIsNull(op); op = next) {
    next = mlirOperationGetNextInBlock(op);
    for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++) {
      MlirBlock body = tw_region_block(op, r);
      if (!mlirBlockIsNull(body))
        visit_block(body);
    }
    visit(op);
  }
}

void tw_race_check(MlirOperation func) {
  MlirBlock body = tw_region_block(func, 0);
  if (tw_has_hint_race_check(func) && !tw_has_attr(func, "tile.simt") && !mlirBlockIsNull(body))
    visit_block(body);
}
