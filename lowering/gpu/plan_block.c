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
 * products of which the right operand is computed are turned first (layout/swap_operands.c): rows decide the warps of
 * chained products.
 *
 * Where a first plan did not fit, what another one does differently is written down here, too (replan.h). Runs before
 * all passes that plan but tile-resize-tiles, which asks what the products of a whole tile would get. */
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/layout/memory_warps.h"
#include "lowering/gpu/layout/select_mma.h"
#include "lowering/gpu/memory/strip_mine.h"
#include "lowering/gpu/replan.h"
#include "lowering/launch_record.h"
#include "lowering/passes.h"

/* `wanted`: by the program or its products; 0 if neither says it. */
static int64_t choose_warps(MlirOperation func, int64_t wanted) {
  int64_t warps = wanted;
  if (warps == 0)
    warps = tw_strip_mine_warps(func);
  return warps == 0 ? tw_memory_num_warps(func) : warps;
}

bool tw_run_plan_block(MlirOperation func) {
  bool of_tiles = tw_has_attr(func, "tile.kernel") && !tw_has_attr(func, "tile.simt");
  if (of_tiles)
    tw_swap_operands(func);
  int64_t of_products = of_tiles ? tw_mma_num_warps(func) : 0;
  int64_t wanted = tw_hint_num_warps(func, of_products);
  if (!tw_replan(func, of_products, &wanted))
    return false;
  if (of_tiles)
    tw_launch_set_num_warps(func, (uint32_t)choose_warps(func, wanted));
  return true;
}
