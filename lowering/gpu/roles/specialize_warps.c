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
 * After, with N slots a buffer:
 *
 *   %full = tile.alloc_barriers arrivals 1, %empty = tile.alloc_barriers arrivals (number of warps)
 *   tile.roles producer_warps 1 producer {
 *     scf.for %k ... iter_args(%slot = 0, %parity = 0) {
 *       tile.barrier_wait %empty[%slot], %parity ^ 1
 *       tile.barrier_expect %full[%slot], bytes of both
 *       tile.tma_load %A[%i, %k] into %a[%slot] signal %full[%slot] ; the same of %B
 *       yield (%slot + 1) mod N, %parity flipped where the slot wrapped
 *     }
 *   } consumer {
 *     scf.for %k ... iter_args(%acc = poison, %slot = 0, %parity = 0, %last = 0) {
 *       tile.barrier_wait %full[%slot], %parity
 *       %more = %k != %lb ; %c = select %more, %acc, %zero
 *       %d = tile.async_mma %a[%slot], %b[%slot], %c ; %w = tile.mma_wait %d, 1
 *       tile.barrier_arrive %empty[%last] if %more
 *       yield %w, as above, %slot
 *     }
 *     tile.mma_wait 0 ; tile.barrier_arrive %empty[%last] if %lb < %ub ; zeros unless %lb < %ub
 *   }
 *
 * Which copies arrive together, through which rings of slots, is planned in stage_plan.h; which products run into the
 * next iteration, as above, in mma_overlap.h. Both roles are the kernel emitted again (role.h): the producer's is
 * sliced to what the copies' positions depend on (producer_slice.h); in both every loop or branch around a copy carries
 * the state of its ring (slot and parity), so that any nesting goes on with it. Two teams may compute in turn
 * (pingpong_plan.h).
 *
 * A tile.async_gather is done by all threads of a producer of four warps, which compute its indices, in the layout of
 * the eight warps or more that these were made for: a thread has what two have there. They arrive when their copies
 * do (`tile.barrier_arrive %full[%slot] gathered`), which the barrier counts beside the announced bytes.
 *
 * What must hold: the tensor memory accelerator can do every async_copy of the kernel (`tile.tma` on the array), eight
 * warps compute where something is gathered, a copy is in a loop, positions depend on scalars and tiles that no branch
 * passes on, what a copy brings is read after it in its own block or deeper, no array that is copied from is written
 * before (of two arrays it is assumed that they share no memory: aliasing.h), and two slots of each ring fit. Else the
 * kernel is left to tile-pipeline, and a remark says why. The hint `num_stages` sets the number of slots. */
#include "lowering/gpu/roles/specialize_warps.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/gpu/roles/pingpong_plan.h"
#include "lowering/gpu/roles/plan_stages.h"
#include "lowering/gpu/roles/role.h"
#include "lowering/launch_record.h"
#include "lowering/layout/memory.h"
#include "lowering/passes.h"
#include "tilewright/dialect.h"

enum { GROUP = TW_GATHERING_WARPS, LANES = TW_WARP_LANES };

/* ---- rings ----------------------------------------------------------------------------------------- */

static MlirValue alloc_barriers(const tw_builder_t *at, int slots, int64_t arrivals) {
  return tw_op1_attr(at, "tile.alloc_barriers", tw_barriers_type_get(at->context, slots), 0, NULL, "arrivals",
                     mlirIntegerAttrGet(tw_i32(at->context), arrivals));
}

static void alloc_ring(const tw_builder_t *at, const tw_ring_plan_t *plan, tw_ring_t *ring) {
  const tw_fill_t *first = &plan->fills[ring->first];
  for (int c = 0; c < first->num_copies; c++) {
    MlirType type = tw_with_slots(mlirValueGetType(tw_copy_buffer(first->copies[c])), ring->slots);
    ring->buffers[c] = tw_op1(at, "tile.alloc_shared", type, 0, NULL);
  }
  int64_t arrivals = first->gathers ? TW_GATHERING_WARPS * LANES + (tw_announced_bytes(first) > 0) : 1;
  ring->full = alloc_barriers(at, ring->slots, arrivals);
  if (tw_comes_round(ring))
    ring->empty =
        alloc_barriers(at, ring->slots, tw_num_warps(plan->func, 4) * (ring->multicast ? TW_MULTICAST_BLOCKS : 1));
}

/* ---- registers ------------------------------------------------------------------------------------- */

enum { MAX_ROLE_ATTRS = 4 };

/* One warp is enough to start copies. A multiprocessor has four equal shares of registers, one for each fourth warp, so
 * that a whole warpgroup costs no more than one warp: where products need many registers it gives most of its own to
 * the consumers. If it gathers it keeps what indices and addresses take. */
static intptr_t role_attributes(const tw_ring_plan_t *plan, MlirContext context, tw_attr_t out[MAX_ROLE_ATTRS]) {
  enum { STEP = 8 };
  int most = tw_register_budget(plan->func, TW_BUDGET_CONSUMER);
  int64_t groups = tw_num_warps(plan->func, 0) * plan->teams / GROUP;
  int64_t all = tw_gpu_share_of(plan->func).registers_sm / GROUP / LANES; /* of a lane of each warp of a share */
  int64_t given = all / (groups + 1) / STEP * STEP,
          kept = tw_register_budget(plan->func, plan->gathers ? TW_BUDGET_GATHERING_PRODUCER : TW_BUDGET_PRODUCER);
  int64_t got = groups > 0 ? (given * (groups + 1) - kept) / groups / STEP * STEP : 0;
  bool moves = plan->product_words > tw_register_budget(plan->func, TW_BUDGET_TWO_BLOCKS) && groups > 1 && kept < given;
  MlirType i32 = tw_i32(context);
  intptr_t n = 0;
  out[n++] = (tw_attr_t){"producer_warps", mlirIntegerAttrGet(i32, moves || plan->gathers ? GROUP : 1)};
  if (plan->teams > 1)
    out[n++] = (tw_attr_t){"teams", mlirIntegerAttrGet(i32, plan->teams)};
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
    if (!tw_op_is(ops[num], TW_TILE_ALLOC_SHARED) ||
        mlirOpOperandIsNull(mlirValueGetFirstUse(mlirOperationGetResult(ops[num], 0))))
      mlirOperationDestroy(ops[num]);
  free(ops);
}

static void rewrite(tw_ring_plan_t *plan) {
  if (plan->teams > 1)
    tw_grow_boxes(plan);
  MlirBlock entry = tw_region_block(plan->func, 0);
  MlirOperation first = mlirBlockGetFirstOperation(entry), end = mlirBlockGetTerminator(entry);
  tw_builder_t top = tw_build_before(first), at = tw_build_before(end);
  top.location = at.location = mlirOperationGetLocation(plan->func);
  for (int r = 0; r < plan->num_rings; r++)
    alloc_ring(&top, plan, &plan->rings[r]);
  tw_attr_t attrs[MAX_ROLE_ATTRS];
  intptr_t num_attrs = role_attributes(plan, at.context, attrs);
  MlirRegion regions[] = {tw_region_with(tw_emit_role(plan, true, at.location)),
                          tw_region_with(tw_emit_role(plan, false, at.location))};
  MlirOperation roles = tw_build(
      &at, "tile.roles", (tw_op_parts_t){.num_attrs = num_attrs, .attrs = attrs, .num_regions = 2, .regions = regions});
  erase_old(first, roles);
}

static MlirWalkResult find_store(MlirOperation op, void *user) {
  tw_ring_plan_t *plan = user;
  plan->has_stores |= tw_op_is(op, TW_TILE_LOCAL_STORE);
  return MlirWalkResultAdvance;
}

static bool make_roles(MlirOperation func) {
  if (!tw_has_engine(func) || !tw_has_attr(func, "tile.kernel") ||
      tw_hint_num_stages(func, TW_MIN_SLOTS) < TW_MIN_SLOTS)
    return true;
  tw_ring_plan_t *plan = tw_allocate(1, sizeof *plan);
  plan->func = func;
  mlirOperationWalk(func, find_store, plan, MlirWalkPreOrder);
  if (tw_plan_rings(plan)) {
    for (int r = 0; r < plan->num_rings; r++)
      tw_op_remark(plan->fills[plan->rings[r].first].copies[0],
                   "is done by a producer warp, into a ring of %d slots of %lld bytes", plan->rings[r].slots,
                   (long long)plan->rings[r].bytes);
    if (plan->teams > 1)
      tw_op_remark(func,
                   "has %d teams of warps, which take its blocks in turn: one's products run while the other "
                   "writes its result",
                   plan->teams);
    rewrite(plan);
  } else if (plan->refused.reason) {
    tw_op_remark(plan->refused.culprit, "keeps the kernel without producer warps: %s", plan->refused.reason);
  }
  tw_free_plan(plan);
  free(plan);
  return true;
}

bool tw_run_specialize_warps(MlirOperation func) {
  return make_roles(func) && tw_scheduler_barrier(func) && tw_dynamic_scheduler(func);
}
