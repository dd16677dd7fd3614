/* families.c - the instructions that compute products. See families.h. */
#include "lowering/gpu/isa/families.h"

#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/isa/sm80/mma_sync.h"
#include "lowering/gpu/isa/sm90/wgmma.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/ir.h"

enum { MAX_WARPS = 8, ACC_PER_WARP = 64 * 64, FEW_ACC_PER_WARP = 64 * 32 };

tw_mma_plan_t tw_mma_plan(const tw_gpu_target_t *target, MlirOperation mma, int num_warps) {
  tw_mma_plan_t plan = {.row = tw_mma_row_for(target, mma)};
  if (tw_has_attr(mma, TW_MMA_FAMILY))
    tw_wgmma_plan(mma, num_warps, &plan);
  else
    tw_mma_sync_plan(mma, num_warps, &plan);
  return plan;
}

/* ---- how many warps ------------------------------------------------------------------------------ */

typedef struct {
  tw_gpu_target_t target;
  int64_t largest; /* elements of the largest accumulator */
  int64_t rows;    /* and its rows */
  bool chained, fma, promoted, computed;
} need_t;

static MlirWalkResult measure(MlirOperation op, void *user) {
  need_t *need = user;
  MlirOperation loads[TW_MAX_LOADS_BEHIND];
  if (!tw_op_is(op, TW_TILE_MMA))
    return MlirWalkResultAdvance;
  MlirType acc = mlirValueGetType(mlirOperationGetResult(op, 0));
  if (tw_count(acc) > need->largest) {
    need->largest = tw_count(acc);
    need->rows = tw_extent(acc, tw_rank(acc) - 2);
  }
  need->chained |= tw_rows_stay_together(op);
  need->fma |= tw_mma_row_for(&need->target, op).kind == TW_MMA_FMA;
  need->promoted |= tw_wgmma_promotes(op);
  for (int i = 0; i < 2; i++)
    need->computed |= tw_loads_behind(op, i, loads) > 0;
  return MlirWalkResultAdvance;
}

int tw_mma_num_warps(MlirOperation func) {
  need_t need = {.target = tw_gpu_target_of(func)};
  mlirOperationWalk(func, measure, &need, MlirWalkPreOrder);
  if (need.largest == 0)
    return 0;
  int warps = 4;
  /* Chained products keep two accumulators and the rows' state: 16 rows a warp. Without Tensor Cores
   * more operands are at hand at a time, and promoted sums lie beside the accumulators, so fewer of these fit.
   * Where operands are computed, a second group of warps does so while the first one's product runs. */
  int64_t per_warp = need.fma || need.promoted || need.computed ? FEW_ACC_PER_WARP : ACC_PER_WARP;
  while (warps < MAX_WARPS && (need.chained ? warps * 16 < need.rows : warps * per_warp < need.largest))
    warps *= 2;
  return warps;
}
