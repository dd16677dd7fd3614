/* mma_sync.c - the table of mma.sync instructions, the split of a product over warps, the plan. See mma_sync.h. */
#include "lowering/gpu/isa/sm80/mma_sync.h"

#include "dialect/layouts.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/ir.h"

static const tw_mma_row_t rows[] = {
    {TW_MMA_F16, 16, 16, TW_GPU_MMA_F16},  {TW_MMA_BF16, 16, 16, TW_GPU_MMA_F16}, {TW_MMA_TF32, 8, 32, TW_GPU_MMA_TF32},
    {TW_MMA_INT8, 32, 8, TW_GPU_MMA_INT8}, {TW_MMA_FP8, 32, 8, TW_GPU_MMA_FP8},   {TW_MMA_F64, 8, 64, TW_GPU_MMA_F64},
};

static bool is_fp8(MlirType t) { return mlirTypeIsAFloat8E4M3FN(t) || mlirTypeIsAFloat8E5M2(t); }

static tw_mma_kind_t kind_of(MlirOperation mma) {
  MlirType in = tw_element(mlirValueGetType(mlirOperationGetOperand(mma, 0)));
  MlirType acc = tw_element(mlirValueGetType(mlirOperationGetOperand(mma, 2)));
  if (mlirTypeIsAF16(in))
    return TW_MMA_F16;
  if (mlirTypeIsABF16(in) && mlirTypeIsAF32(acc))
    return TW_MMA_BF16;
  if (mlirTypeIsATF32(in) && mlirTypeIsAF32(acc))
    return TW_MMA_TF32;
  if (mlirTypeIsAF64(in))
    return TW_MMA_F64;
  if (is_fp8(in) && mlirTypeIsAF32(acc))
    return TW_MMA_FP8;
  if (mlirTypeIsAInteger(in) && tw_bits(in) == 8)
    return TW_MMA_INT8;
  return TW_MMA_FMA;
}

tw_mma_row_t tw_mma_row_for(const tw_gpu_target_t *target, MlirOperation mma) {
  MlirType lhs = mlirValueGetType(mlirOperationGetOperand(mma, 0));
  tw_mma_kind_t kind = kind_of(mma);
  int64_t k = tw_extent(lhs, tw_rank(lhs) - 1);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].kind == kind && tw_gpu_has(target, rows[i].needs) && k >= rows[i].k)
      return rows[i];
  return (tw_mma_row_t){TW_MMA_FMA, 1, (int)tw_bits(tw_element(lhs)), 0};
}

/* ---- the split over warps ---------------------------------------------------------------------- */

/* Gives each warp a part as square as possible, at least 16 x 8: what a warp reads of both operands
 * is as the sum of the sides of its part. */
static void split_warps(MlirOperation mma, int64_t m, int64_t n, int num_warps, tw_mma_plan_t *plan) {
  bool together = tw_rows_stay_together(mma);
  plan->warps_m = plan->warps_n = 1;
  while (plan->warps_m * plan->warps_n < num_warps) {
    int64_t part_m = m / plan->warps_m, part_n = n / plan->warps_n;
    bool can_m = part_m > 16, can_n = part_n > 8;
    if (can_m && (together || part_m >= part_n || !can_n))
      plan->warps_m *= 2;
    else if (can_n)
      plan->warps_n *= 2;
    else
      plan->warps_m *= 2; /* the tile is too small: warps repeat each other's work */
  }
}

/* ---- operands of the multiply-add -------------------------------------------------------------- */

enum { FMA_BLOCK = 4, FMA_LANES_M = 4, FMA_LANES_N = 8 };

/* Splits warps so that what a thread holds is as square as possible: what it reads of both operands
 * is as the sum of the sides. */
static void fma_warps(int64_t m, int64_t n, int num_warps, int warps[2]) {
  int64_t reps_m = m / (FMA_BLOCK * FMA_LANES_M), reps_n = n / (FMA_BLOCK * FMA_LANES_N);
  warps[0] = warps[1] = 1;
  while (warps[0] * warps[1] < num_warps)
    warps[reps_m / warps[0] >= reps_n / warps[1] ? 0 : 1] *= 2;
}

static tw_layout_t fma_acc(int rank, const int64_t *shape, int num_warps) {
  int size[TW_LAYOUT_MAX_RANK], lanes[TW_LAYOUT_MAX_RANK], warps[TW_LAYOUT_MAX_RANK], order[TW_LAYOUT_MAX_RANK];
  for (int d = 0; d < rank; d++) {
    size[d] = lanes[d] = warps[d] = 1;
    order[d] = rank - 1 - d;
  }
  size[rank - 2] = size[rank - 1] = FMA_BLOCK;
  lanes[rank - 2] = FMA_LANES_M;
  lanes[rank - 1] = FMA_LANES_N;
  fma_warps(shape[rank - 2], shape[rank - 1], num_warps, &warps[rank - 2]);
  return tw_layout_blocked(rank, shape, size, lanes, warps, order);
}

/* What a thread needs of an operand: all of k in registers, and of the other dimensions what its
 * accumulators have. `kept` is the dimension that operand and accumulator share, `k` the other. */
static tw_layout_t fma_operand(const tw_layout_t *acc, int64_t k_extent, int kept, int k) {
  int64_t shape[TW_LAYOUT_MAX_RANK];
  for (int d = 0; d < acc->rank; d++)
    shape[d] = d == k ? k_extent : tw_layout_extent(acc, d);
  tw_layout_t l = tw_layout_empty(acc->rank, shape);
  for (int bit = 0; bit < l.log_shape[k]; bit++)
    tw_layout_push(&l, TW_REGISTER, UINT32_C(1) << (tw_layout_dim_shift(&l, k) + bit));
  for (int g = TW_REGISTER; g <= TW_BLOCK; g++)
    for (int i = 0; i < acc->bits[g]; i++) {
      uint32_t image = 0;
      for (int d = 0; d < acc->rank; d++)
        if (d == kept || d < acc->rank - 2)
          image |= tw_layout_coord(acc, acc->basis[g][i], d) << tw_layout_dim_shift(&l, d);
      if (g != TW_REGISTER || image != 0)
        tw_layout_push(&l, (tw_input_t)g, image);
    }
  return l;
}

/* ---- how many warps ------------------------------------------------------------------------------ */

int64_t tw_mma_cycles(MlirOperation mma) {
  enum { NARROW = 19, HALF = 16 };
  const tw_machine_t *machine = tw_gpu_target_of(mma).machine;
  MlirType lhs = mlirValueGetType(mlirOperationGetOperand(mma, 0)),
           sum = mlirValueGetType(mlirOperationGetResult(mma, 0));
  int64_t flop = 2 * tw_count(sum) * tw_extent(lhs, tw_rank(lhs) - 1), bits = tw_memory_bits(tw_element(lhs));
  return flop / (tw_bits(lhs) > NARROW ? machine->fma_flop : machine->tensor_flop * HALF / bits);
}

/* ---- the plan ------------------------------------------------------------------------------------ */

void tw_mma_sync_plan(MlirOperation mma, int num_warps, tw_mma_plan_t *plan) {
  MlirType types[3];
  int64_t shapes[3][TW_LAYOUT_MAX_RANK] = {{0}};
  int rank = 0;
  for (int i = 0; i < 3; i++) {
    types[i] = mlirValueGetType(mlirOperationGetOperand(mma, i));
    rank = (int)tw_rank(types[i]);
    for (int d = 0; d < rank; d++)
      shapes[i][d] = tw_extent(types[i], d);
  }
  int64_t m = shapes[2][rank - 2], n = shapes[2][rank - 1], k = shapes[0][rank - 1];
  split_warps(mma, m, n, num_warps, plan);
  if (plan->row.kind == TW_MMA_FMA) {
    plan->acc = fma_acc(rank, shapes[2], num_warps);
    plan->lhs = fma_operand(&plan->acc, k, rank - 2, rank - 1);
    plan->rhs = fma_operand(&plan->acc, k, rank - 1, rank - 2);
    return;
  }
  int bits = plan->row.elem_bits == 64 ? 32 : plan->row.elem_bits; /* the same fragment at 32 and 64 bits */
  plan->acc = tw_layout_mma_acc(rank, shapes[2], plan->warps_m, plan->warps_n);
  plan->lhs = tw_layout_dot_operand(rank, shapes[0], 0, bits, plan->warps_m, plan->warps_n);
  plan->rhs = tw_layout_dot_operand(rank, shapes[1], 1, bits, plan->warps_m, plan->warps_n);
}
