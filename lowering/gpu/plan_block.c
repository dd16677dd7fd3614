/* plan_block.c - tile-plan-block: decides how many warps a block has, once for all passes
 *
 * Before:
 *
 *   func.func @k(...) attributes {tile.kernel} { ... tile.mma ... : ..., tensor<128x256xf32> ... }
 *
 * After, the number stands in the launch record, from which every other pass takes it:
 *
 *   func.func @k(...) attributes {tile.kernel, tile.launch = {num_warps = 8 : i32}} { ... }
 *
 * It is the program's, if that has the hint; else the products decide it (isa/families.h); else the parts in which
 * tile-strip-mine will walk a long row (memory/strip_mine.h); else the tiles that are moved (layout/memory_warps.h). So
 * products of one row become sums where no instruction takes them (layout/sum_products.c), and
 * products of which the right operand is computed are turned first (layout/swap_operands.c): rows decide the warps of
 * chained products.
 *
 * Where whole operands of products do not fit into shared memory twice, but those of a step of k do, the step stands in
 * tile.product_step, and tile-strip-mine makes the steps. So it does where rows begin at odd places and registers do
 * not hold the sums and all elements of an iteration, each of which goes through a register of its own; and where a
 * product has more than a line of k, of which shared memory would hold fewer than four stages: the hint num_stages
 * leaves it as it is.
 *
 * A hint is a wish: `occupancy` is dropped, with a remark, where a block's share of the registers does not hold the
 * sums of its products, which would go through local memory and one after the other, or its share of shared memory
 * the operands.
 *
 * Where a first plan did not fit, what another one does differently is written down here, too (replan.h). Runs before
 * all passes that plan but tile-resize-tiles, which asks what the products of a whole tile would get. */
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/layout/memory_warps.h"
#include "lowering/gpu/layout/select_mma.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/gpu/memory/cache_tiles.h"
#include "lowering/gpu/memory/strip_mine.h"
#include "lowering/gpu/memory/strip_mine_products.h"
#include "lowering/gpu/replan.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"
#include "lowering/passes.h"

/* `wanted`: by the program or its products; 0 if neither says it. */
static int64_t choose_warps(MlirOperation func, int64_t wanted) {
  int64_t warps = wanted;
  if (warps == 0)
    warps = tw_strip_mine_warps(func);
  return warps == 0 ? tw_memory_num_warps(func, tw_is_kept) : warps;
}

/* ---- hints that would not help ------------------------------------------------------------------------- */

typedef struct {
  MlirOperation loop; /* whose products are counted */
  int64_t elements;
} sums_t;

static MlirWalkResult add_sum(MlirOperation op, void *user) {
  sums_t *sums = user;
  if (tw_op_form(op) == TW_FORM_PRODUCT && mlirOperationEqual(tw_enclosing_loop(op), sums->loop) &&
      !tw_is_mma_continued(op))
    sums->elements += tw_count(mlirValueGetType(mlirOperationGetResult(op, 0)));
  return MlirWalkResultAdvance;
}

/* Elements of the sums that the products of one loop make at a time, in the loop that has the most. */
static int64_t most_sums(MlirOperation func) {
  int64_t most = 0;
  tw_ops_t loops = tw_loops_in(func, MlirWalkPreOrder);
  for (int i = 0; i < loops.count; i++) {
    sums_t sums = {.loop = loops.at[i]};
    mlirOperationWalk(loops.at[i], add_sum, &sums, MlirWalkPreOrder);
    most = sums.elements > most ? sums.elements : most;
  }
  tw_ops_free(&loops);
  return most;
}

static void check_occupancy(MlirOperation func, int64_t num_warps) {
  int64_t blocks = tw_hint_occupancy(func, 0), threads = num_warps * TW_WARP_LANES, sums = most_sums(func);
  if (blocks <= 1 || sums == 0 || threads == 0)
    return;
  int64_t bytes =
      tw_product_bytes(func, (int)num_warps, tw_attr_int(func, TW_PRODUCT_STEP_ATTR, 0), tw_product_has_steps);
  if (bytes > tw_gpu_share_of(func).shared_bytes) {
    tw_op_remark(func,
                 "drops occupancy=%lld: operands of its products need %lld bytes of shared memory, and a share of "
                 "%lld has %d",
                 (long long)blocks, (long long)bytes, (long long)blocks, tw_gpu_share_of(func).shared_bytes);
    tw_drop_hint(func, "occupancy");
    return;
  }
  int64_t share = tw_gpu_target_of(func).registers_sm / (blocks * threads);
  int64_t needed = sums / threads + tw_register_budget(func, TW_BUDGET_BESIDE_SUMS);
  if (needed <= share)
    return;
  tw_op_remark(
      func,
      "drops occupancy=%lld: the sums of its products need %lld registers of each thread and all else some %d, "
      "and a share of %lld has %lld",
      (long long)blocks, (long long)(sums / threads), tw_register_budget(func, TW_BUDGET_BESIDE_SUMS),
      (long long)blocks, (long long)share);
  tw_drop_hint(func, "occupancy");
}

/* Half as many blocks side by side as the program wishes, or a quarter, if all that a block's loops read again has room
 * in their shares of shared memory: more blocks would each load it again, and their rows push each other out of the
 * cache. */
static void leave_room_for_rows(MlirOperation func) {
  enum { SCRATCH = 4096, LEAST_BLOCKS = 2 };
  int64_t wished = tw_hint_occupancy(func, 0), blocks = wished, all = tw_gpu_target_of(func).shared_bytes_sm;
  int64_t bytes = wished > LEAST_BLOCKS ? tw_bytes_to_keep(func) + SCRATCH + TW_SHARED_BYTES_OF_DRIVER : SCRATCH;
  while (blocks / 2 >= LEAST_BLOCKS && bytes > all / blocks)
    blocks /= 2;
  if (blocks == wished || bytes > all / blocks)
    return;
  tw_op_remark(func,
               "has occupancy=%lld in place of %lld: with so many blocks, all that its loops read again stays in "
               "shared memory",
               (long long)blocks, (long long)wished);
  tw_plan_hint(func, "occupancy", blocks);
}

/* ---- products in steps of k ---------------------------------------------------------------------------- */

/* What the products of a function take of k. */
typedef struct {
  int64_t most, least_bytes; /* elements, and bytes of the shortest one */
} depth_t;

static MlirWalkResult add_depth(MlirOperation op, void *user) {
  depth_t *depth = user;
  if (tw_op_form(op) == TW_FORM_PRODUCT) {
    MlirType lhs = mlirValueGetType(mlirOperationGetOperand(op, 0));
    int64_t k = tw_extent(lhs, tw_rank(lhs) - 1), bytes = tw_bytes(lhs);
    depth->most = k > depth->most ? k : depth->most;
    depth->least_bytes = depth->least_bytes == 0 || bytes < depth->least_bytes ? bytes : depth->least_bytes;
  }
  return MlirWalkResultAdvance;
}

/* Bytes of a step whose pieces of operands, too small for a copy, have registers beside the sums; 0: those of all of k
 * do, or shorter steps are not worth their barriers. Without registers pieces would wait for memory one after the
 * other, and what the loop keeps would be spilled. */
static int64_t step_for_pieces(MlirOperation func, int64_t num_warps) {
  int64_t most = num_warps * TW_WARP_LANES * tw_mma_budget_with_pieces(func);
  depth_t depth = {0, 0};
  mlirOperationWalk(func, add_depth, &depth, MlirWalkPreOrder);
  int64_t step = depth.most;
  while (step / 2 >= TW_LEAST_PRODUCT_STEP && tw_mma_words_with_pieces(func, step) > most)
    step /= 2;
  int64_t bytes = step * depth.least_bytes;
  return step < depth.most && tw_steps_are_iterations(func, bytes) ? bytes : 0;
}

/* Products of which whole operands are too large for the asynchronous family, or for registers on their way into shared
 * memory, take k in steps; so do those that would have few stages. */
static void choose_step(MlirOperation func, int64_t num_warps) {
  int64_t step = tw_product_step(func, (int)num_warps, tw_product_has_steps),
          of_pieces = step_for_pieces(func, num_warps);
  bool fits = step > 0; /* where those that have no steps are whole */
  if (step == 0 && tw_steps_are_iterations(func, TW_PRODUCT_STEP) && tw_has_few_stages(func, (int)num_warps))
    step = TW_PRODUCT_STEP;
  if (of_pieces > 0 && (step == 0 || of_pieces < step))
    step = of_pieces;
  if (step > 0 && (fits || tw_products_have_steps(func, step)))
    tw_set_int(func, TW_PRODUCT_STEP_ATTR, tw_i32(mlirOperationGetContext(func)), step);
}

bool tw_run_plan_block(MlirOperation func) {
  bool of_tiles = tw_has_attr(func, "tile.kernel") && !tw_has_attr(func, "tile.simt");
  if (of_tiles) {
    tw_sum_products(func);
    tw_swap_operands(func);
  }
  int64_t of_products = of_tiles ? tw_mma_num_warps(func) : 0;
  int64_t wanted = tw_hint_num_warps(func, of_products);
  if (of_products > 0)
    choose_step(func, wanted);
  if (!tw_replan(func, of_products, &wanted))
    return false;
  if (of_tiles) {
    leave_room_for_rows(func);
    tw_launch_set_num_warps(func, (uint32_t)choose_warps(func, wanted));
    check_occupancy(func, of_products > 0 ? tw_num_warps(func, 0) : 0);
  }
  return true;
}
