/* choose_stages.c - chooses the stages of each multi-stage buffer, and whether warpgroups ping-pong
 *
 * What else needs shared memory beside multibuffers is counted first. Then each multibuffer gets the fewest stages that
 * it can do with, and the rest of shared memory in turn: of a block alone on its multiprocessor, or of half of it where
 * two blocks are to share one.
 *
 *   of 227 KB, stages of 48 KB beside 32 KB for the result       4 stages, one consumer group
 *   of 227 KB, stages of 32 KB beside 16 KB for each result      6 stages, two consumer groups */
#include "lowering/gpu/roles/choose_stages.h"
#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/buffer.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/facts/scratch.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/gpu/roles/pingpong_plan.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"

enum { MAX_STAGES = 8, PIECE = 1024 /* what tile-allocate-shared rounds to */ };

/* ---- what else there is -------------------------------------------------------------------------- */

typedef struct {
  const tw_stage_plan_t *plan;
  int64_t buffers, small, scratch;
} beside_t;

static int64_t rounded(int64_t bytes) { return (bytes + PIECE - 1) / PIECE * PIECE; }

/* Whether an op runs while copies may be under way: none of the fills' outermost loops, and ops, is behind it. */
static bool runs_beside(const tw_stage_plan_t *plan, MlirOperation op) {
  MlirBlock entry = tw_region_block(plan->func, 0);
  for (int f = 0; f < plan->num_fills; f++) {
    MlirOperation last = tw_ancestor_in(plan->fills[f].end, entry);
    if (tw_not_after(tw_ancestor_in(op, entry), last))
      return true;
  }
  return false;
}

static MlirWalkResult count_beside(MlirOperation op, void *user) {
  beside_t *beside = user;
  if (tw_makes_buffer(op)) {
    MlirValue buffer = mlirOperationGetResult(op, 0);
    beside->buffers += tw_is_filled(beside->plan, buffer) ? 0 : rounded(tw_buffer_bytes(mlirValueGetType(buffer)));
    return MlirWalkResultAdvance;
  }
  int64_t bytes = rounded(tw_scratch_bytes(op));
  if (bytes > PIECE && runs_beside(beside->plan, op))
    beside->scratch = bytes > beside->scratch ? bytes : beside->scratch;
  else if (bytes == PIECE)
    beside->small += bytes;
  return MlirWalkResultAdvance;
}

typedef struct {
  MlirBlock block;
  int64_t words, most;
} words_t;

/* Whether the product adds to the sum of another one that is under way, in its registers. */
static bool goes_on(MlirOperation product) {
  MlirOperation def = tw_def(tw_mma_sum_before(product));
  bool waits = !mlirOperationIsNull(def) && tw_op_waits_for_products(def);
  return !mlirOperationIsNull(def) && (waits ? tw_attr_int(def, "pending", 0) > 0 : tw_op_is_async_product(def));
}

/* What products that stand together keep in registers: accumulators, operands that do not come from a buffer, and sums
 * that are to be promoted. */
static MlirWalkResult count_words(MlirOperation op, void *user) {
  words_t *words = user;
  if (!tw_op_is_async_product(op))
    return MlirWalkResultAdvance;
  if (!mlirBlockEqual(mlirOperationGetBlock(op), words->block))
    words->words = 0;
  words->block = mlirOperationGetBlock(op);
  words->words += tw_mma_words(op) - (goes_on(op) ? tw_register_words(mlirValueGetType(tw_mma_sum_before(op))) : 0);
  words->most = words->words > words->most ? words->words : words->most;
  return MlirWalkResultAdvance;
}

static int64_t product_words(MlirOperation func) {
  words_t words = {.words = 0};
  mlirOperationWalk(func, count_words, &words, MlirWalkPreOrder);
  return words.most;
}

/* ---- stages --------------------------------------------------------------------------------------- */

static int64_t multibuffer_bytes(const tw_stage_plan_t *plan) {
  int64_t bytes = 0;
  for (int r = 0; r < plan->num_multibuffers; r++)
    bytes += plan->multibuffers[r].stages * plan->multibuffers[r].bytes;
  return bytes;
}

/* Whether other tiles are brought more often, in a loop within the one that fills this multibuffer. */
static bool is_around_others(const tw_stage_plan_t *plan, const tw_multibuffer_t *multibuffer) {
  for (int r = 0; r < plan->num_multibuffers; r++)
    if (plan->multibuffers[r].depth > multibuffer->depth)
      return true;
  return false;
}

/* Whether the multibuffer is filled in a loop that runs once: only a persistent loop around it fills it again. */
static bool is_filled_once(const tw_stage_plan_t *plan, const tw_multibuffer_t *multibuffer) {
  MlirOperation copy = plan->fills[multibuffer->first].copies[0], loop = tw_enclosing_loop(copy);
  return multibuffer->num_fills == 1 && !mlirOperationIsNull(loop) && tw_runs_once(loop) &&
         tw_repeating_loop(copy) == NULL;
}

/* The fewest stages. What an outer loop brings is read until its iteration ends: a second stage is for bringing it
 * ahead, which is of use, but no more than to wait for it in a kernel of one block. */
static int stages_needed(const tw_stage_plan_t *plan, const tw_multibuffer_t *multibuffer) {
  bool few = multibuffer->depth == 0 || is_around_others(plan, multibuffer) || is_filled_once(plan, multibuffer);
  return few ? 1 : TW_MIN_STAGES;
}

/* The most stages that a multibuffer can use: one for each time it is filled. */
static int stages_wanted(const tw_stage_plan_t *plan, const tw_multibuffer_t *multibuffer) {
  enum { PREFETCH = 2 };
  if (multibuffer->depth == 0)
    return multibuffer->num_fills;
  if (is_around_others(plan, multibuffer) || is_filled_once(plan, multibuffer))
    return PREFETCH;
  int64_t stages = tw_hint_num_stages(plan->func, 0);
  if (stages == 0)
    stages = tw_attr_int(plan->fills[multibuffer->first].copies[0], TW_LATENCY, -1) + 1;
  return stages > 0 ? (int)stages : MAX_STAGES;
}

/* A stage that is given back an iteration late is filled as far ahead as others if there is one more. */
static void deal_late_stages(tw_stage_plan_t *plan, int64_t room) {
  for (int r = 0; r < plan->num_multibuffers; r++) {
    tw_multibuffer_t *multibuffer = &plan->multibuffers[r];
    bool more = multibuffer->late && stages_wanted(plan, multibuffer) > multibuffer->stages &&
                multibuffer_bytes(plan) + multibuffer->bytes <= room;
    multibuffer->stages += more;
  }
}

/* Multibuffers get one more stage in turn, while it fits into `room`. */
static void deal_stages(tw_stage_plan_t *plan, int64_t room) {
  deal_late_stages(plan, room);
  for (bool more = true; more;) {
    more = false;
    for (int r = 0; r < plan->num_multibuffers; r++) {
      tw_multibuffer_t *multibuffer = &plan->multibuffers[r];
      if (multibuffer->stages < stages_wanted(plan, multibuffer) &&
          multibuffer_bytes(plan) + multibuffer->bytes <= room) {
        multibuffer->stages++;
        more = true;
      }
    }
  }
}

/* While few warps work, the Tensor Core idles: then two blocks should fit on a multiprocessor, if that leaves enough
 * stages and registers. */
bool tw_choose_stages(tw_stage_plan_t *plan) {
  enum { FEW_WARPS = 4, ENOUGH = 3, TEAMS = 2, ENOUGH_FOR_PINGPONG = 4 };
  tw_gpu_target_t target = tw_gpu_target_of(plan->func), own = tw_gpu_share_of(plan->func);
  beside_t beside = {.plan = plan};
  mlirOperationWalk(plan->func, count_beside, &beside, MlirWalkPreOrder);
  plan->product_words = product_words(plan->func);
  int64_t taken = beside.buffers + beside.small + beside.scratch + PIECE;
  for (int r = 0; r < plan->num_multibuffers; r++)
    plan->multibuffers[r].stages = stages_needed(plan, &plan->multibuffers[r]);
  int64_t least = multibuffer_bytes(plan), twice = TEAMS * taken + least / TW_MIN_STAGES * ENOUGH_FOR_PINGPONG;
  bool one = tw_str_is(tw_hint_roles(plan->func), "one");
  plan->consumer_groups = !one && tw_may_pingpong(plan) && twice <= own.shared_bytes ? TEAMS : 1;
  if (plan->consumer_groups == 1 && tw_str_is(tw_hint_roles(plan->func), "pingpong"))
    tw_op_remark(plan->func, "has no roles=pingpong: its products, warps or shared memory do not allow it");
  taken *= plan->consumer_groups;
  int64_t half = target.shared_bytes_sm / 2 - TW_SHARED_BYTES_OF_DRIVER - taken;
  if (taken + least > target.shared_bytes)
    return tw_refuse(&plan->refused, plan->fills[0].copies[0],
                     "two stages of each buffer do not fit into shared memory");
  bool share = !tw_has_hint_occupancy(plan->func) && tw_num_warps(plan->func, FEW_WARPS) <= FEW_WARPS &&
               tw_works_between_products(&plan->overlaps, plan->func) &&
               plan->product_words <= tw_register_budget(plan->func, TW_BUDGET_TWO_BLOCKS) &&
               tw_hint_num_stages(plan->func, 0) == 0 && least / TW_MIN_STAGES * ENOUGH <= half;
  deal_stages(plan, share ? half : own.shared_bytes - taken);
  return true;
}
