/* scheduler_barrier.c - tile-specialize-warps: scheduler barrier: two warpgroups start their products in turn
 *
 * Before, two warpgroups of a block wait for the same tiles, start their products at the same time, and then compute
 * exponentials at the same time, while the Tensor Core idles:
 *
 *   tile.roles ... consumer {
 *     scf.for ... {
 *       %s = tile.async_mma ... ; %t = tile.async_mma ... ; %x = tile.mma_wait %s, 1
 *       %p = math.exp2 ... %x ... ; %d = tile.async_mma %p, ...
 *     }
 *   }
 *
 * After, each starts its products when the other has started its own:
 *
 *   tile.roles ... consumer {
 *     %g = tile.consumer_group {tile.groups} ; tile.ordered_arrive {tile.groups} if %g is the last
 *     scf.for ... {
 *       tile.ordered_wait {tile.groups}
 *       %s = tile.async_mma ... ; %t = tile.async_mma ...
 *       tile.ordered_arrive {tile.groups}
 *       %x = tile.mma_wait %s, 1
 *       %p = math.exp2 ... %x ... ; %d = tile.async_mma %p, ...
 *     }
 *     tile.ordered_wait {tile.groups} if %g is the first
 *   }
 *
 * Nowhere between the two may both groups meet: at a barrier, or before what goes through shared memory. The one that
 * waits for its turn would not come, and the turn not be passed on.
 *
 * What must hold: two warpgroups compute one tile, in loops that run as often for both: they stand in loops only, and
 * functions of tiles follow the products. Where a product of the iteration before runs meanwhile (tile-pipeline-mma)
 * nothing is gained: there must be one behind the first wait. Nor is it where an iteration scales the sums of its only
 * product, or looks for the least: what passes the turn on costs more (docs/design/measurements.md). The last turn that
 * is passed on is taken, or the barrier would be left half full. Runs after tile-specialize-warps. In a race-check
 * build the groups meet around each product, so that none could wait for the other's turn: they take none. */
#include "lowering/gpu/facts/barrier.h"
#include "lowering/gpu/facts/roles.h"
#include "lowering/gpu/facts/scratch.h"
#include "lowering/gpu/roles/specialize_warps.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"
#include "tilewright/machine.h"

enum { GROUPS = 2 };

static bool is_function_of_tile(MlirOperation op) {
  return tw_op_class(op) == TW_CLASS_FUNCTION && tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0)));
}

static bool stands_in_loops(MlirOperation op) {
  do
    op = mlirOperationGetParentOperation(op);
  while (tw_op_is(op, TW_SCF_FOR));
  return tw_is_roles(op);
}

static void turn(const tw_builder_t *at, const char *name) {
  tw_attr_t attr = {TW_GROUPS, mlirUnitAttrGet(at->context)};
  tw_build(at, name, (tw_op_parts_t){.num_attrs = 1, .attrs = &attr});
}

/* The op for one of the groups only. */
static void turn_of(const tw_builder_t *at, const char *name, MlirValue group, int number) {
  MlirValue condition = tw_compare(at, TW_EQ, group, tw_const_int(at, tw_i32(at->context), number));
  tw_builder_t in = tw_build_guard(at, condition);
  turn(&in, name);
}

static bool is_meeting(MlirOperation op) {
  unsigned memory = TW_READS_ARRAY | TW_WRITES_ARRAY | TW_READS_SHARED | TW_WRITES_SHARED;
  bool moves = tw_op_has(op, memory) && !tw_op_has(op, TW_COPIES_BY_ENGINE) && !tw_op_is_async_product(op);
  return moves || tw_is_barrier(op) || tw_scratch_bytes(op) != 0;
}

/* Whether the threads of both groups may meet at an op, or at a barrier that tile-insert-barriers puts before it. */
static bool may_meet(MlirOperation op) { return tw_has_op_like(op, is_meeting); }

/* Whether threads have written a product's operand, so that they must meet before it. */
static bool reads_what_threads_wrote(MlirOperation product) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(product); i++) {
    MlirValue buffer = mlirOperationGetOperand(product, i);
    if (!tw_type_is_buffer(mlirValueGetType(buffer)))
      continue;
    TW_EACH_USE(use, buffer) {
      MlirOperation user = mlirOpOperandGetOwner(use);
      if (tw_op_has(user, TW_WRITES_SHARED) && !tw_op_has(user, TW_COPIES_BY_ENGINE))
        return true;
    }
  }
  return false;
}

/* Where a turn that begins before the first product of a loop ends: behind the last product before the wait, and before
 * all at which the groups may meet; null if they may meet before, where the one that waits for its turn never comes. */
static MlirOperation end_of_order(MlirOperation first) {
  MlirOperation end = tw_null_op();
  bool meets = false;
  for (MlirOperation op = first; !tw_op_waits_for_products(op); op = mlirOperationGetNextInBlock(op)) {
    bool is_product = tw_op_is_async_product(op);
    if (is_product && (meets || reads_what_threads_wrote(op)))
      return tw_null_op();
    if (!is_product && !meets && may_meet(op)) {
      meets = true;
      end = op;
    }
  }
  return meets ? end : tw_next_op(first, tw_op_waits_for_products);
}

static MlirOperation first_product(MlirOperation loop) {
  return tw_first_op(tw_loop_body(loop), tw_op_is_async_product);
}

static MlirWalkResult collect(MlirOperation op, void *user) {
  if (!tw_op_is(op, TW_SCF_FOR))
    return MlirWalkResultAdvance;
  MlirOperation product = first_product(op);
  MlirOperation wait = tw_next_op(product, tw_op_waits_for_products);
  if (mlirOperationIsNull(wait) || mlirOperationIsNull(tw_next_op(wait, tw_op_is_async_product)))
    return MlirWalkResultAdvance;
  if (tw_has_op_like(op, is_function_of_tile) && stands_in_loops(op) && !mlirOperationIsNull(end_of_order(product)))
    tw_ops_add(user, op);
  return MlirWalkResultAdvance;
}

static void alternate(MlirOperation loop) {
  MlirOperation first = first_product(loop);
  tw_builder_t before = tw_build_before(first), behind = tw_build_before(end_of_order(first));
  turn(&before, "tile.ordered_wait");
  turn(&behind, "tile.ordered_arrive");
}

bool tw_scheduler_barrier(MlirOperation func) {
  MlirOperation roles = tw_roles_of(func);
  tw_ops_t found = {NULL, 0};
  if (mlirOperationIsNull(roles) || tw_has_hint_race_check(func) || tw_attr_int(roles, "consumer_groups", 1) > 1 ||
      tw_num_warps(func, 0) != TW_WARPGROUP_WARPS * GROUPS)
    return true;
  MlirBlock consumer = tw_region_block(roles, 1);
  TW_EACH_OP(op, consumer)
    mlirOperationWalk(op, collect, &found, MlirWalkPreOrder);
  if (found.count == 0)
    return true;
  tw_builder_t start = tw_build_before(mlirBlockGetFirstOperation(consumer)),
               end = tw_build_at_end(consumer, mlirOperationGetLocation(roles));
  MlirValue group = tw_op1_attr(&start, "tile.consumer_group", tw_i32(start.context), 0, NULL, TW_GROUPS,
                                mlirUnitAttrGet(start.context));
  turn_of(&start, "tile.ordered_arrive", group, GROUPS - 1);
  for (int i = 0; i < found.count; i++)
    alternate(found.at[i]);
  tw_ops_free(&found);
  turn_of(&end, "tile.ordered_wait", group, 0);
  tw_op_remark(func, "has a scheduler barrier: one warpgroup computes while the other's products run");
  return true;
}
