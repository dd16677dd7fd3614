/* specialize_warps.c - tile-specialize-warps: a producer warp copies tiles, the other warps compute
 *
 * Before (made by tile-promote-memory), every iteration waits for its own copies:
 *
 *   scf.for %k = %lb to %ub step %s iter_args(%acc = %zero) {
 *     tile.async_copy %A[%i, %k] into %a[%c0] ; commit ; wait 0 ; barrier
 *     tile.async_copy %B[%k, %j] into %b[%c0] ; commit ; wait 0 ; barrier
 *     %d = tile.async_mma %a[%c0], %b[%c0], %acc ; %w = tile.mma_wait %d, 0 ; barrier
 *     yield %w
 *   }
 *
 * After, with N stages a buffer:
 *
 *   %full = tile.alloc_barriers arrivals 1, %empty = tile.alloc_barriers arrivals (number of warps)
 *   tile.roles producer_warps 1 producer {
 *     scf.for %k ... iter_args(%stage = 0, %parity = 0) {
 *       tile.barrier_wait %empty[%stage], %parity ^ 1
 *       tile.barrier_expect %full[%stage], bytes of both
 *       tile.tma_load %A[%i, %k] into %a[%stage] signal %full[%stage] ; the same of %B
 *       yield (%stage + 1) mod N, %parity flipped where the stage wrapped
 *     }
 *   } consumer {
 *     scf.for %k ... iter_args(%acc = poison, %stage = 0, %parity = 0, %last = 0) {
 *       tile.barrier_wait %full[%stage], %parity
 *       %more = %k != %lb ; %c = select %more, %acc, %zero
 *       %d = tile.async_mma %a[%stage], %b[%stage], %c ; %w = tile.mma_wait %d, 1
 *       tile.barrier_arrive %empty[%last] if %more
 *       yield %w, as above, %stage
 *     }
 *     tile.mma_wait 0 ; tile.barrier_arrive %empty[%last] if %lb < %ub ; zeros unless %lb < %ub
 *   }
 *
 * Which copies arrive together, through which multibuffers of stages, is planned in stage_plan.h; which products run
 * into the next iteration, as above, in mma_overlap.h. Both roles are the kernel emitted again (role.h): the producer's
 * is sliced to what the copies' positions depend on (producer_slice.h); in both every loop or branch around a copy
 * carries the state of its multibuffer (stage and parity), so that any nesting goes on with it. Two consumer groups may
 * compute in turn (pingpong_plan.h).
 *
 * A tile.async_gather is done by all threads of a producer of four warps, which compute its indices, in the layout of
 * the eight warps or more that these were made for: a thread has what two have there. They arrive when their copies
 * do (`tile.barrier_arrive %full[%stage] gathered`), which the barrier counts beside the announced bytes.
 *
 * What must hold: the tensor memory accelerator can do every async_copy of the kernel (`tile.tma` on the array), eight
 * warps compute where something is gathered, a copy is in a loop, positions depend on scalars and tiles that no branch
 * passes on, what a copy brings is read after it in its own block or deeper, no array that is copied from is written
 * before (of two arrays it is assumed that they share no memory: aliasing.h), and two stages of each multibuffer fit.
 * Else the kernel is left to tile-pipeline, and a remark says why. The hint `num_stages` sets the number of stages. */
#include "lowering/gpu/roles/specialize_warps.h"
#include "base/memory.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/buffer.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/gpu/roles/pingpong_plan.h"
#include "lowering/gpu/roles/plan_stages.h"
#include "lowering/gpu/roles/role.h"
#include "lowering/launch_record.h"
#include "lowering/passes.h"
#include "tilewright/dialect.h"

enum { GROUP = TW_GATHERING_WARPS, LANES = TW_WARP_LANES };

/* ---- multibuffers ----------------------------------------------------------------------------------------- */

static MlirValue alloc_barriers(const tw_builder_t *at, int stages, int64_t arrivals) {
  return tw_op1_attr(at, "tile.alloc_barriers", tw_barriers_type_get(at->context, stages), 0, NULL, "arrivals",
                     mlirIntegerAttrGet(tw_i32(at->context), arrivals));
}

static void alloc_multibuffer(const tw_builder_t *at, const tw_stage_plan_t *plan, tw_multibuffer_t *multibuffer) {
  const tw_stage_fill_t *first = &plan->fills[multibuffer->first];
  for (int c = 0; c < first->num_copies; c++) {
    MlirType type = tw_with_stages(mlirValueGetType(tw_copy_buffer(first->copies[c])), multibuffer->stages);
    multibuffer->buffers[c] = tw_alloc_buffer(at, type);
  }
  int64_t arrivals = first->gathers ? TW_GATHERING_WARPS * LANES + (tw_announced_bytes(first) > 0) : 1;
  multibuffer->full = alloc_barriers(at, multibuffer->stages, arrivals);
  if (tw_comes_round(multibuffer))
    multibuffer->empty = alloc_barriers(
        at, multibuffer->stages, tw_num_warps(plan->func, 4) * (multibuffer->multicast ? TW_MULTICAST_BLOCKS : 1));
}

/* ---- registers ------------------------------------------------------------------------------------- */

enum { MAX_ROLE_ATTRS = 4 };

/* One warp is enough to start copies. A multiprocessor has four equal shares of registers, one for each fourth warp, so
 * that a whole warpgroup costs no more than one warp: where products need many registers it gives most of its own to
 * the consumers. If it gathers it keeps what indices and addresses take. */
static intptr_t role_attributes(const tw_stage_plan_t *plan, MlirContext context, tw_attr_t out[MAX_ROLE_ATTRS]) {
  enum { STEP = 8 };
  int most = tw_register_budget(plan->func, TW_BUDGET_CONSUMER);
  int64_t groups = tw_num_warps(plan->func, 0) * plan->consumer_groups / GROUP;
  int64_t all = tw_gpu_share_of(plan->func).registers_sm / GROUP / LANES; /* of a lane of each warp of a share */
  int64_t given = all / (groups + 1) / STEP * STEP,
          kept = tw_register_budget(plan->func, plan->gathers ? TW_BUDGET_GATHERING_PRODUCER : TW_BUDGET_PRODUCER);
  int64_t got = groups > 0 ? (given * (groups + 1) - kept) / groups / STEP * STEP : 0;
  bool moves = plan->product_words > tw_register_budget(plan->func, TW_BUDGET_TWO_BLOCKS) && groups > 1 && kept < given;
  MlirType i32 = tw_i32(context);
  intptr_t n = 0;
  out[n++] = (tw_attr_t){"producer_warps", mlirIntegerAttrGet(i32, moves || plan->gathers ? GROUP : 1)};
  if (plan->consumer_groups > 1)
    out[n++] = (tw_attr_t){"consumer_groups", mlirIntegerAttrGet(i32, plan->consumer_groups)};
  if (moves) {
    out[n++] = (tw_attr_t){"producer_registers", mlirIntegerAttrGet(i32, kept)};
    out[n++] = (tw_attr_t){"consumer_registers", mlirIntegerAttrGet(i32, got < most ? got : most)};
  }
  return n;
}

/* ---- in place of the kernel ------------------------------------------------------------------------ */

/* Takes the kernel's own ops out, users first; what is left are allocations that the consumers use. */
static void erase_old(MlirOperation first, MlirOperation end) {
  intptr_t num = 0;
  for (MlirOperation op = first; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op))
    num++;
  MlirOperation *ops = tw_allocate((size_t)num, sizeof *ops);
  num = 0;
  for (MlirOperation op = first; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op))
    ops[num++] = op;
  while (num-- > 0)
    if (!tw_makes_buffer(ops[num]) || mlirOpOperandIsNull(mlirValueGetFirstUse(mlirOperationGetResult(ops[num], 0))))
      mlirOperationDestroy(ops[num]);
  free(ops);
}

static void rewrite(tw_stage_plan_t *plan) {
  if (plan->consumer_groups > 1)
    tw_grow_boxes(plan);
  MlirBlock entry = tw_region_block(plan->func, 0);
  MlirOperation first = mlirBlockGetFirstOperation(entry), end = mlirBlockGetTerminator(entry);
  tw_builder_t top = tw_build_before(first), at = tw_build_before(end);
  top.location = at.location = mlirOperationGetLocation(plan->func);
  for (int r = 0; r < plan->num_multibuffers; r++)
    alloc_multibuffer(&top, plan, &plan->multibuffers[r]);
  tw_attr_t attrs[MAX_ROLE_ATTRS];
  intptr_t num_attrs = role_attributes(plan, at.context, attrs);
  MlirRegion regions[] = {tw_region_with(tw_emit_role(plan, true, at.location)),
                          tw_region_with(tw_emit_role(plan, false, at.location))};
  MlirOperation roles = tw_build(
      &at, "tile.roles", (tw_op_parts_t){.num_attrs = num_attrs, .attrs = attrs, .num_regions = 2, .regions = regions});
  erase_old(first, roles);
}

static MlirWalkResult find_store(MlirOperation op, void *user) {
  tw_stage_plan_t *plan = user;
  plan->has_stores |= tw_op_stores_buffer(op) && tw_loop_around(op) != NULL;
  return MlirWalkResultAdvance;
}

static bool make_roles(MlirOperation func) {
  if (!tw_has_engine(func) || !tw_has_attr(func, "tile.kernel") ||
      tw_hint_num_stages(func, TW_MIN_STAGES) < TW_MIN_STAGES || tw_str_is(tw_hint_roles(func), "none"))
    return true;
  tw_stage_plan_t *plan = tw_allocate(1, sizeof *plan);
  plan->func = func;
  mlirOperationWalk(func, find_store, plan, MlirWalkPreOrder);
  if (tw_plan_stages(plan)) {
    for (int r = 0; r < plan->num_multibuffers; r++)
      tw_op_remark(plan->fills[plan->multibuffers[r].first].copies[0],
                   "is done by a producer warp, into a buffer of %d stages of %lld bytes", plan->multibuffers[r].stages,
                   (long long)plan->multibuffers[r].bytes);
    if (plan->consumer_groups > 1)
      tw_op_remark(func, "has %d consumer groups that ping-pong: one's products run while the other writes its result",
                   plan->consumer_groups);
    rewrite(plan);
  } else if (plan->refused.reason) {
    tw_op_remark(plan->refused.culprit, "prevents producer warps: %s", plan->refused.reason);
  }
  tw_free_plan(plan);
  free(plan);
  return true;
}

bool tw_run_specialize_warps(MlirOperation func) {
  return make_roles(func) && tw_early_products(func) && tw_stepped_products(func) && tw_scheduler_barrier(func) &&
         tw_dynamic_scheduler(func);
}
