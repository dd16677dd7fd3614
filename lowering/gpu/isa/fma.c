/* fma.c - products that threads multiply and add, where no instruction takes them. See fma.h. */
#include "lowering/gpu/isa/fma.h"

#include "dialect/layouts.h"
#include "lowering/gpu/isa/convert_float.h"

/* ---- layouts -------------------------------------------------------------------------------------- */

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

tw_layout_t tw_fma_operand(const tw_layout_t *acc, int64_t k_extent, int operand) {
  int kept = acc->rank - 2 + operand, k = acc->rank - 1 - operand; /* the dimension that both share, and the other */
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

static const char *why_not(MlirOperation mma, int num_warps) {
  (void)mma;
  (void)num_warps;
  return NULL;
}

void tw_fma_plan(MlirOperation mma, int num_warps, tw_mma_plan_t *out) {
  MlirType lhs = mlirValueGetType(mlirOperationGetOperand(mma, 0)),
           acc = mlirValueGetType(mlirOperationGetOperand(mma, 2));
  int64_t shape[TW_LAYOUT_MAX_RANK], k = tw_extent(lhs, tw_rank(lhs) - 1);
  int rank = tw_tile_shape(acc, shape);
  out->acc = fma_acc(rank, shape, num_warps);
  out->lhs = tw_fma_operand(&out->acc, k, 0);
  out->rhs = tw_fma_operand(&out->acc, k, 1);
}

/* tile-select-mma has said so, and why. */
static void describe(MlirOperation mma, int num_warps, size_t size, char *out) {
  (void)mma;
  (void)num_warps;
  (void)size;
  out[0] = 0;
}

/* ---- the rule ------------------------------------------------------------------------------------- */

/* Moves those bits of r down whose vector reaches one of the dimensions in `mask`. */
static int keep_bits(const tw_layout_t *acc, int r, uint32_t mask) {
  int out = 0, n = 0;
  for (int b = 0; b < acc->bits[TW_REGISTER]; b++)
    if (acc->basis[TW_REGISTER][b] & mask)
      out |= (r >> b & 1) << n++;
  return out;
}

static MlirValue widen(tw_emitter_t *e, MlirValue x, MlirType from, bool is_unsigned) {
  if (mlirTypeIsAInteger(from))
    return tw_bits(from) == 32 ? x : twg_cast(e, is_unsigned ? "llvm.zext" : "llvm.sext", e->i32, x);
  return mlirTypeIsAF64(from) ? x : twg_convert_float(e, x, from, e->f32);
}

static MlirValue multiply_add(tw_emitter_t *e, MlirValue x, MlirValue y, MlirValue z) {
  if (mlirTypeIsAInteger(mlirValueGetType(z)))
    return twg_binary(e, "llvm.add", twg_binary(e, "llvm.mul", x, y), z);
  return twg_fma(e, x, y, z);
}

static tw_values_t widen_all(tw_emitter_t *e, MlirOperation op, int operand, const char *is_unsigned) {
  tw_values_t in = twg_operand(e, op, operand), out = twg_new_values(e, in.count);
  MlirType element = tw_element(mlirValueGetType(mlirOperationGetOperand(op, operand)));
  for (int i = 0; i < in.count; i++)
    out.at[i] = widen(e, in.at[i], element, tw_has_attr(op, is_unsigned));
  return out;
}

bool twg_multiply_add(tw_emitter_t *e, MlirOperation op, const tw_layout_t *acc, int k_extent, tw_values_t a,
                      tw_values_t b, tw_values_t sum) {
  int rank = acc->rank, log_k = tw_log2(k_extent);
  uint32_t n_mask = tw_layout_dim_mask(acc, rank - 1), m_mask = tw_layout_dim_mask(acc, rank - 2);
  uint32_t all = (UINT32_C(1) << tw_layout_size_bits(acc)) - 1;
  for (int k = 0; k < k_extent; k++)
    for (int r = 0; r < sum.count; r++) {
      int row = keep_bits(acc, r, all & ~n_mask) << log_k | k, column = keep_bits(acc, r, all & ~m_mask) << log_k | k;
      if (row >= a.count || column >= b.count) {
        tw_op_error(op, "has operands whose layouts do not fit the accumulator's");
        return false;
      }
      sum.at[r] = multiply_add(e, a.at[row], b.at[column], sum.at[r]);
    }
  return true;
}

static bool emit_fma(tw_emitter_t *e, MlirOperation op) {
  tw_layout_t l[3];
  if (!tw_layouts_of_operands(op, 3, l))
    return false;
  tw_values_t a = widen_all(e, op, 0, "unsigned_lhs"), b = widen_all(e, op, 1, "unsigned_rhs");
  tw_values_t sum = widen_all(e, op, 2, "");
  MlirType acc = tw_element(mlirValueGetType(mlirOperationGetOperand(op, 2)));
  if (!twg_multiply_add(e, op, &l[2], 1 << l[0].log_shape[l[2].rank - 1], a, b, sum))
    return false;
  if (tw_is_float(acc) && !mlirTypeIsAF64(acc))
    for (int r = 0; r < sum.count; r++)
      sum.at[r] = twg_convert_float(e, sum.at[r], e->f32, acc);
  twg_set_result(e, op, 0, sum);
  return true;
}

const tw_mma_family_t tw_fma_family = {
    .name = "fma", .why_not = why_not, .plan = tw_fma_plan, .describe = describe, .emit = emit_fma};
