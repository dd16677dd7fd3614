/* wgmma.c - layouts of wgmma's operands. See wgmma.h. */
#include "lowering/gpu/sm90/wgmma.h"

#include "dialect/layouts.h"
#include "lowering/ir.h"

enum { WARPS_PER_GROUP = 4, ELEMENT_BITS = 16 };

bool tw_wgmma_split(int64_t m, int64_t n, int num_warps, tw_wgmma_split_t *out) {
  *out = (tw_wgmma_split_t){1, 1};
  if (num_warps % WARPS_PER_GROUP != 0 || m % TW_WGMMA_ROWS != 0)
    return false;
  for (int groups = num_warps / WARPS_PER_GROUP; groups > 1; groups /= 2)
    if (m / out->m > TW_WGMMA_ROWS)
      out->m *= 2;
    else
      out->n *= 2;
  int64_t columns = n / out->n, least = out->n > 1 ? TW_WGMMA_LINE_BYTES * 8 / ELEMENT_BITS : 8;
  return columns >= least && columns <= TW_WGMMA_MAX_COLUMNS;
}

static void push(tw_layout_t *l, tw_input_t input, int dim, int bit) {
  tw_layout_push(l, input, bit < l->log_shape[dim] ? UINT32_C(1) << (tw_layout_dim_shift(l, dim) + bit) : 0);
}

/* Bits from `from` up to (not including) `to` of a dimension, as registers. */
static void push_registers(tw_layout_t *l, int dim, int from, int to) {
  for (int bit = from; bit < to; bit++)
    push(l, TW_REGISTER, dim, bit);
}

/* Rows within a warp, the warps of a group, and the groups: the same for accumulator and lhs, but that groups which
 * share out columns repeat lhs. */
static void push_threads(tw_layout_t *l, tw_wgmma_split_t split, bool is_acc) {
  push(l, TW_LANE, 1, 1);
  push(l, TW_LANE, 1, 2);
  for (int bit = 0; bit < 3; bit++)
    push(l, TW_LANE, 0, bit);
  push(l, TW_WARP, 0, 4);
  push(l, TW_WARP, 0, 5);
  int groups_m = tw_log2(split.m), groups_n = tw_log2(split.n);
  for (int bit = 0; bit < groups_m; bit++)
    push(l, TW_WARP, 0, l->log_shape[0] - groups_m + bit);
  for (int bit = 0; bit < groups_n; bit++)
    if (is_acc)
      push(l, TW_WARP, 1, l->log_shape[1] - groups_n + bit);
    else
      tw_layout_push(l, TW_WARP, 0);
}

/* The fragment of 64 rows; then, in further registers, columns and rows. */
static tw_layout_t fragment(const int64_t *shape, tw_wgmma_split_t split, bool is_acc) {
  enum { INNER_COLUMN_BITS = 3, GROUP_ROW_BITS = 6 };
  tw_layout_t l = tw_layout_empty(2, shape);
  int columns = l.log_shape[1] - (is_acc ? tw_log2(split.n) : 0);
  push(&l, TW_REGISTER, 1, 0);
  push(&l, TW_REGISTER, 0, 3);
  push_registers(&l, 1, INNER_COLUMN_BITS, columns);
  push_registers(&l, 0, GROUP_ROW_BITS, l.log_shape[0] - tw_log2(split.m));
  push_threads(&l, split, is_acc);
  return l;
}

void tw_wgmma_plan(MlirOperation mma, int num_warps, tw_mma_plan_t *plan) {
  int64_t shape[3][TW_LAYOUT_MAX_RANK];
  static const int order[] = {1, 0};
  tw_wgmma_split_t split;
  for (int i = 0; i < 3; i++)
    tw_tile_shape(mlirValueGetType(mlirOperationGetOperand(mma, i)), shape[i]);
  (void)tw_wgmma_split(shape[2][0], shape[2][1], num_warps, &split);
  plan->warps_m = WARPS_PER_GROUP * split.m;
  plan->warps_n = split.n;
  plan->acc = fragment(shape[2], split, true);
  plan->lhs = fragment(shape[0], split, false);
  plan->rhs = tw_layout_coalesced(2, shape[1], 8, num_warps, order);
}

bool tw_wgmma_operand_of(MlirType buffer, bool rhs, bool transposed, int64_t k, int64_t other,
                         tw_wgmma_operand_t *out) {
  tw_layout_t have;
  bool k_first = rhs != transposed;
  int64_t shape[] = {k_first ? k : other, k_first ? other : k};
  if (!tw_layout_of_type(buffer, &have) || tw_layout_size_bits(&have) != tw_log2(k) + tw_log2(other))
    return false;
  tw_layout_t flat = tw_layout_reshape(&have, 2, shape);
  for (int inner = 0; inner < 2; inner++) {
    int order[] = {inner, 1 - inner};
    tw_layout_t want = tw_shared_swizzled(2, shape, order, ELEMENT_BITS, TW_WGMMA_LINE_BYTES);
    if (shape[inner] * ELEMENT_BITS / 8 >= TW_WGMMA_LINE_BYTES && shape[1 - inner] >= 8 &&
        tw_layout_equal(&flat, &want)) {
      *out = (tw_wgmma_operand_t){.k_major = (inner == 0) == k_first, .k = k, .other = other};
      return true;
    }
  }
  return false;
}
