/* access_layout.c - layouts of accesses to global memory. See access_layout.h. */
#include "lowering/gpu/layout/access_layout.h"

#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/index_facts.h"
#include "lowering/launch_record.h"
#include "tilewright/machine.h"

enum { LANE_BITS = TW_WARP_LANE_BITS };

static int min_int(int a, int b) { return a < b ? a : b; }

typedef struct filler {
  tw_layout_t l;
  int next[TW_LAYOUT_MAX_RANK]; /* lowest bit of each dimension that is not given away */
} filler_t;

static int give(filler_t *f, tw_input_t input, int dim, int want) {
  int n = min_int(want, f->l.log_shape[dim] - f->next[dim]);
  for (int i = 0; i < n; i++)
    tw_layout_push(&f->l, input, UINT32_C(1) << (tw_layout_dim_shift(&f->l, dim) + f->next[dim]++));
  return n;
}

/* Dimensions in the order in which lanes and registers take them: contiguous first, then the last. */
static void dimension_order(int rank, int contiguous, int *order) {
  int n = 0;
  if (contiguous >= 0)
    order[n++] = contiguous;
  for (int d = rank - 1; d >= 0; d--)
    if (d != contiguous)
      order[n++] = d;
}

static int give_warps(filler_t *f, const int *order, const tw_wish_t *wish, bool reduced, int left) {
  for (int i = f->l.rank - 1; i >= 0 && left > 0; i--)
    if ((wish->reduced >> order[i] & 1) == (reduced ? 1u : 0u))
      left -= give(f, TW_WARP, order[i], left);
  return left;
}

tw_layout_t tw_choose_blocked(int rank, const int64_t *shape, const tw_wish_t *wish) {
  filler_t f = {.l = tw_layout_empty(rank, shape)};
  int order[TW_LAYOUT_MAX_RANK], warps = tw_log2(wish->num_warps), lanes = LANE_BITS;
  int spare = tw_layout_size_bits(&f.l) - lanes - warps; /* bits that are left to registers */
  dimension_order(rank, wish->contiguous, order);
  if (rank > 0 && spare > 0)
    spare -= give(&f, TW_REGISTER, order[0], min_int(wish->vector_bits, spare));
  if (wish->across_bits > 0 && spare > 0)
    give(&f, TW_REGISTER, wish->across, min_int(wish->across_bits, spare));
  for (int i = 0; i < rank && lanes > 0; i++) {
    int bits = f.l.log_shape[order[i]] - f.next[order[i]] - (i == 0 ? wish->deep_bits : 0);
    lanes -= bits > 0 ? give(&f, TW_LANE, order[i], min_int(lanes, bits)) : 0;
  }
  while (lanes-- > 0)
    tw_layout_push(&f.l, TW_LANE, 0);
  warps = give_warps(&f, order, wish, false, warps);
  warps = give_warps(&f, order, wish, true, warps);
  while (warps-- > 0)
    tw_layout_push(&f.l, TW_WARP, 0);
  for (int i = 0; i < rank; i++)
    give(&f, TW_REGISTER, order[i], f.l.log_shape[order[i]]);
  return f.l;
}

/* No more bytes at a time than the program says. */
static int limited(MlirOperation op, int vector_bits) {
  enum { MOST_BYTES = 16 };
  MlirValue tile = tw_op_loads_tile(op) || tw_op_gathers(op)
                       ? mlirOperationGetResult(op, 0)
                       : mlirOperationGetOperand(op, mlirOperationGetNumOperands(op) - 1);
  int64_t bytes = tw_hint_vector(op, MOST_BYTES), bits = tw_memory_bits(tw_element(mlirValueGetType(tile)));
  int most = bytes * 8 > bits ? tw_log2(bytes * 8 / bits) : 0;
  return bytes < MOST_BYTES ? min_int(vector_bits, most) : vector_bits;
}

/* Neighbours in a thread whose elements, at a distance, make vectors, as log2: of one gather, of two scatters. */
static int vector_of_spread(MlirOperation op, tw_spread_t *out) {
  bool is_odd, whole = tw_op_gathers(op) || (tw_op_scatters(op) && !mlirOperationIsNull(tw_scatter_pair(op, &is_odd)));
  return whole && tw_gather_spread(op, out) ? min_int(out->run, out->vector - out->step) : 0;
}

tw_wish_t tw_wish_of_access(MlirOperation op, int rank, int num_warps) {
  tw_wish_t wish = {.contiguous = rank - 1, .num_warps = num_warps};
  if (tw_op_loads_tile(op) || tw_op_stores_tile(op)) {
    wish.contiguous = tw_access_contiguous_dim(op, rank);
    wish.vector_bits = tw_access_inner_vector_bits(op, rank);
  } else {
    int dim, bits = tw_gather_vector_bits(op, &dim);
    tw_spread_t spread;
    int close = vector_of_spread(op, &spread);
    if (bits > 0 || close > 0)
      wish = (tw_wish_t){.contiguous = close > bits ? spread.dim : dim,
                         .vector_bits = close > bits ? close : bits,
                         .num_warps = num_warps};
  }
  wish.vector_bits = wish.vector_bits > 0 ? limited(op, wish.vector_bits) : 0;
  return wish;
}

bool tw_layout_splits_axis(const tw_layout_t *l, int axis) {
  uint32_t mask = tw_layout_dim_mask(l, axis);
  for (int g = 0; g < TW_NUM_INPUTS; g++)
    for (int i = 0; i < l->bits[g]; i++)
      if ((l->basis[g][i] & mask) != 0 && (l->basis[g][i] & ~mask) != 0)
        return false;
  return true;
}
