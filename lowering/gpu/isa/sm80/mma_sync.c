/* mma_sync.c - the family mma.sync: its instructions, the split of a product over warps, layouts. See mma_sync.h. */
#include "lowering/gpu/isa/sm80/mma_sync.h"

#include "dialect/layouts.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/ir.h"
#include "lowering/launch_record.h"

#include <stdio.h>

static const tw_mma_sync_row_t rows[] = {
    {TW_SYNC_F16, 16, 16, TW_GPU_MMA_F16},  {TW_SYNC_BF16, 16, 16, TW_GPU_MMA_F16},
    {TW_SYNC_TF32, 8, 32, TW_GPU_MMA_TF32}, {TW_SYNC_INT8, 32, 8, TW_GPU_MMA_INT8},
    {TW_SYNC_FP8, 32, 8, TW_GPU_MMA_FP8},   {TW_SYNC_F64, 8, 64, TW_GPU_MMA_F64},
};

static bool is_fp8(MlirType t) { return mlirTypeIsAFloat8E4M3FN(t) || mlirTypeIsAFloat8E5M2(t); }

static tw_mma_sync_kind_t kind_of(MlirOperation mma) {
  MlirType in = tw_element(mlirValueGetType(mlirOperationGetOperand(mma, 0)));
  MlirType acc = tw_element(mlirValueGetType(mlirOperationGetOperand(mma, 2)));
  if (mlirTypeIsAF16(in))
    return TW_SYNC_F16;
  if (mlirTypeIsABF16(in) && mlirTypeIsAF32(acc))
    return TW_SYNC_BF16;
  if (mlirTypeIsATF32(in) && mlirTypeIsAF32(acc))
    return TW_SYNC_TF32;
  if (mlirTypeIsAF64(in))
    return TW_SYNC_F64;
  if (is_fp8(in) && mlirTypeIsAF32(acc))
    return TW_SYNC_FP8;
  if (mlirTypeIsAInteger(in) && tw_bits(in) == 8)
    return TW_SYNC_INT8;
  return TW_SYNC_NONE;
}

const tw_mma_sync_row_t *tw_mma_sync_row(MlirOperation mma) {
  tw_gpu_target_t target = tw_gpu_target_of(mma);
  MlirType lhs = mlirValueGetType(mlirOperationGetOperand(mma, 0));
  tw_mma_sync_kind_t kind = kind_of(mma);
  int64_t k = tw_extent(lhs, tw_rank(lhs) - 1);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].kind == kind && tw_gpu_has(&target, rows[i].needs) && k >= rows[i].k)
      return &rows[i];
  return NULL;
}

static const char *why_not(MlirOperation mma, int num_warps) {
  (void)num_warps;
  return tw_mma_sync_row(mma) ? NULL : "the target has no matrix instruction for its dtypes and k";
}

/* ---- the split over warps ---------------------------------------------------------------------- */

typedef struct {
  int m, n;
} warps_t;

/* Each warp has at least 16 x 8. */
static int splits(MlirOperation mma, int num_warps, tw_mma_split_t out[TW_MAX_SPLITS]) {
  enum { ROWS = 16, COLUMNS = 8 };
  MlirType acc = mlirValueGetType(mlirOperationGetResult(mma, 0));
  int64_t rank = tw_rank(acc), m = tw_extent(acc, rank - 2), n = tw_extent(acc, rank - 1);
  int count = 0;
  for (int along_m = 1; along_m <= num_warps && count < TW_MAX_SPLITS; along_m *= 2)
    if (num_warps % along_m == 0 && along_m * ROWS <= m && num_warps / along_m * COLUMNS <= n)
      out[count++] = (tw_mma_split_t){along_m, num_warps / along_m, 1};
  return count;
}

/* As the program asks, or gives each warp a part as square as possible, at least 16 x 8: what a warp reads of both
 * operands is as the sum of the sides of its part. */
static warps_t split_warps(MlirOperation mma, int64_t m, int64_t n, int num_warps) {
  bool together = tw_rows_stay_together(mma);
  warps_t warps = {1, 1};
  tw_mma_split_t all[TW_MAX_SPLITS];
  MlirStringRef wanted = tw_tile_hint_warps(mlirOperationGetResult(mma, 0));
  int asked = wanted.length > 0 ? tw_split_named(all, splits(mma, num_warps, all), wanted) : -1;
  if (asked >= 0)
    return (warps_t){all[asked].m, all[asked].n};
  while (warps.m * warps.n < num_warps) {
    int64_t part_m = m / warps.m, part_n = n / warps.n;
    bool can_m = part_m > 16, can_n = part_n > 8;
    if (can_m && (together || part_m >= part_n || !can_n))
      warps.m *= 2;
    else if (can_n)
      warps.n *= 2;
    else
      warps.m *= 2; /* the tile is too small: warps repeat each other's work */
  }
  return warps;
}

/* ---- the family ---------------------------------------------------------------------------------- */

static void plan(MlirOperation mma, int num_warps, tw_mma_plan_t *out) {
  int64_t shapes[3][TW_LAYOUT_MAX_RANK];
  int rank = 0, elem_bits = tw_mma_sync_row(mma)->elem_bits;
  for (int i = 0; i < 3; i++)
    rank = tw_tile_shape(mlirValueGetType(mlirOperationGetOperand(mma, i)), shapes[i]);
  warps_t warps = split_warps(mma, shapes[2][rank - 2], shapes[2][rank - 1], num_warps);
  int bits = elem_bits == 64 ? 32 : elem_bits; /* the same fragment at 32 and 64 bits */
  out->acc = tw_layout_mma_acc(rank, shapes[2], warps.m, warps.n);
  out->lhs = tw_layout_dot_operand(rank, shapes[0], 0, bits, warps.m, warps.n);
  out->rhs = tw_layout_dot_operand(rank, shapes[1], 1, bits, warps.m, warps.n);
}

static void describe(MlirOperation mma, int num_warps, size_t size, char *out) {
  snprintf(out, size, "mma.sync m16n8k%d on %d warp%s", tw_mma_sync_row(mma)->k, num_warps, num_warps == 1 ? "" : "s");
}

const tw_mma_family_t tw_mma_sync_family = {.name = "mma.sync",
                                            .why_not = why_not,
                                            .plan = plan,
                                            .splits = splits,
                                            .describe = describe,
                                            .emit = twg_emit_mma_sync};
