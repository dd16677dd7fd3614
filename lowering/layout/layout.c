/* layout.c - linear layouts: representation, constructors, transfer functions, algebra. See layout.h.
 * Shared-memory layouts and bank conflicts are in shared.c, text in text.c. */
#include "lowering/layout/layout.h"

#include <string.h>

static int min_int(int a, int b) { return a < b ? a : b; }

/* ---- basics ---------------------------------------------------------------------------------- */

tw_layout_t tw_layout_empty(int rank, const int64_t *shape) {
  tw_layout_t l;
  memset(&l, 0, sizeof l);
  l.rank = rank;
  for (int d = 0; d < rank; d++)
    l.log_shape[d] = tw_log2(shape[d]);
  return l;
}

int64_t tw_layout_extent(const tw_layout_t *l, int dim) { return (int64_t)1 << l->log_shape[dim]; }

int tw_layout_size_bits(const tw_layout_t *l) {
  int bits = 0;
  for (int d = 0; d < l->rank; d++)
    bits += l->log_shape[d];
  return bits;
}

int tw_layout_dim_shift(const tw_layout_t *l, int dim) {
  int shift = 0;
  for (int d = dim + 1; d < l->rank; d++)
    shift += l->log_shape[d];
  return shift;
}

uint32_t tw_layout_dim_mask(const tw_layout_t *l, int dim) {
  return ((UINT32_C(1) << l->log_shape[dim]) - 1) << tw_layout_dim_shift(l, dim);
}

uint32_t tw_layout_coord(const tw_layout_t *l, uint32_t flat, int dim) {
  return (flat & tw_layout_dim_mask(l, dim)) >> tw_layout_dim_shift(l, dim);
}

uint32_t tw_layout_flat(const tw_layout_t *l, const uint32_t *coord) {
  uint32_t flat = 0;
  for (int d = 0; d < l->rank; d++)
    flat = (flat << l->log_shape[d]) | coord[d];
  return flat;
}

int tw_layout_count(const tw_layout_t *l, tw_input_t input) { return 1 << l->bits[input]; }

uint32_t tw_layout_image(const tw_layout_t *l, tw_input_t input, uint32_t value) {
  uint32_t flat = 0;
  for (int i = 0; i < l->bits[input]; i++)
    if (value >> i & 1)
      flat ^= l->basis[input][i];
  return flat;
}

uint32_t tw_layout_apply(const tw_layout_t *l, uint32_t reg, uint32_t lane, uint32_t warp) {
  return tw_layout_image(l, TW_REGISTER, reg) ^ tw_layout_image(l, TW_LANE, lane) ^ tw_layout_image(l, TW_WARP, warp);
}

void tw_layout_push(tw_layout_t *l, tw_input_t input, uint32_t image) {
  if (l->bits[input] < TW_LAYOUT_MAX_BITS)
    l->basis[input][l->bits[input]++] = image;
}

bool tw_layout_equal(const tw_layout_t *a, const tw_layout_t *b) {
  if (a->rank != b->rank || memcmp(a->log_shape, b->log_shape, sizeof a->log_shape) != 0)
    return false;
  for (int g = 0; g < TW_NUM_INPUTS; g++) {
    if (a->bits[g] != b->bits[g])
      return false;
    if (memcmp(a->basis[g], b->basis[g], sizeof(uint32_t) * (size_t)a->bits[g]) != 0)
      return false;
  }
  return true;
}

/* A basis in echelon form, indexed by leading bit, that remembers which position gave each row. */
typedef struct echelon {
  uint32_t row[32];
  tw_position_t at[32];
  int rank;
} echelon_t;

static tw_position_t position_xor(tw_position_t a, tw_position_t b) {
  for (int g = 0; g < TW_NUM_INPUTS; g++)
    a.at[g] ^= b.at[g];
  return a;
}

/* Reduces *vector as far as the rows allow and returns the position that was added up. */
static tw_position_t echelon_reduce(const echelon_t *e, uint32_t *vector) {
  tw_position_t sum = {{0}};
  for (uint32_t left = *vector; left != 0;) {
    int bit = 31 - __builtin_clz(left);
    if (e->row[bit] != 0) {
      *vector ^= e->row[bit];
      sum = position_xor(sum, e->at[bit]);
    }
    left = *vector & ((UINT32_C(1) << bit) - 1);
  }
  return sum;
}

/* Adds a vector; false if it depends on those already there. */
static bool echelon_add(echelon_t *e, uint32_t vector, tw_position_t at) {
  tw_position_t sum = echelon_reduce(e, &vector);
  if (vector == 0)
    return false;
  int lead = 31 - __builtin_clz(vector);
  e->row[lead] = vector;
  e->at[lead] = position_xor(at, sum);
  e->rank++;
  return true;
}

/* All basis vectors, registers first: a vector in the span of the registers is then expressed by
 * registers alone, because the rows are independent and the expression is unique. */
static echelon_t echelon_of(const tw_layout_t *l, bool *injective) {
  echelon_t e;
  memset(&e, 0, sizeof e);
  *injective = true;
  for (int g = 0; g < TW_NUM_INPUTS; g++) {
    for (int i = 0; i < l->bits[g]; i++) {
      tw_position_t at = {{0}};
      at.at[g] = UINT32_C(1) << i;
      if (!echelon_add(&e, l->basis[g][i], at))
        *injective = false;
    }
  }
  return e;
}

bool tw_layout_is_onto(const tw_layout_t *l) {
  bool injective;
  return echelon_of(l, &injective).rank == tw_layout_size_bits(l);
}

bool tw_layout_is_injective(const tw_layout_t *l) {
  bool injective;
  (void)echelon_of(l, &injective);
  return injective;
}

/* ---- constructors ---------------------------------------------------------------------------- */

/* Hands out the bits of each dimension from the lowest up. */
typedef struct builder {
  tw_layout_t l;
  int next[TW_LAYOUT_MAX_RANK];
} layout_builder_t;

static layout_builder_t builder_start(int rank, const int64_t *shape) {
  layout_builder_t b;
  memset(&b, 0, sizeof b);
  b.l = tw_layout_empty(rank, shape);
  return b;
}

/* Gives `input` the next `count` bits along `dim`; past the end of the dimension lanes and warps
 * replicate and registers get nothing. */
static void builder_take(layout_builder_t *b, tw_input_t input, int dim, int count) {
  for (int i = 0; i < count; i++) {
    if (b->next[dim] < b->l.log_shape[dim]) {
      int bit = tw_layout_dim_shift(&b->l, dim) + b->next[dim]++;
      tw_layout_push(&b->l, input, UINT32_C(1) << bit);
    } else if (input != TW_REGISTER) {
      tw_layout_push(&b->l, input, 0);
    }
  }
}

static int builder_left(const layout_builder_t *b, int dim) { return b->l.log_shape[dim] - b->next[dim]; }

tw_layout_t tw_layout_blocked(int rank, const int64_t *shape, const int *size_per_thread, const int *threads_per_warp,
                              const int *warps_per_cta, const int *order) {
  layout_builder_t b = builder_start(rank, shape);
  for (int i = 0; i < rank; i++)
    builder_take(&b, TW_REGISTER, order[i], tw_log2(size_per_thread[order[i]]));
  for (int i = 0; i < rank; i++)
    builder_take(&b, TW_LANE, order[i], tw_log2(threads_per_warp[order[i]]));
  for (int i = 0; i < rank; i++)
    builder_take(&b, TW_WARP, order[i], tw_log2(warps_per_cta[order[i]]));
  for (int i = 0; i < rank; i++)
    builder_take(&b, TW_REGISTER, order[i], builder_left(&b, order[i]));
  return b.l;
}

tw_layout_t tw_layout_coalesced(int rank, const int64_t *shape, int vector, int num_warps, const int *order) {
  layout_builder_t b = builder_start(rank, shape);
  int lanes = 5, warps = tw_log2(num_warps);
  if (rank > 0)
    builder_take(&b, TW_REGISTER, order[0], tw_log2(vector));
  for (int i = 0; i < rank && lanes > 0; i++) {
    int n = min_int(lanes, builder_left(&b, order[i]));
    builder_take(&b, TW_LANE, order[i], n);
    lanes -= n;
  }
  for (; lanes > 0; lanes--)
    tw_layout_push(&b.l, TW_LANE, 0);
  for (int i = 0; i < rank && warps > 0; i++) {
    int n = min_int(warps, builder_left(&b, order[i]));
    builder_take(&b, TW_WARP, order[i], n);
    warps -= n;
  }
  for (; warps > 0; warps--)
    tw_layout_push(&b.l, TW_WARP, 0);
  for (int i = 0; i < rank; i++)
    builder_take(&b, TW_REGISTER, order[i], builder_left(&b, order[i]));
  return b.l;
}

/* Gives `input` the bit `bit` of `dim`, or replicates when the tile has no such bit. Registers
 * keep the zero vector too, because an instruction needs all its registers. */
static void push_bit(tw_layout_t *l, tw_input_t input, int dim, int bit) {
  uint32_t image = 0;
  if (bit < l->log_shape[dim])
    image = UINT32_C(1) << (tw_layout_dim_shift(l, dim) + bit);
  tw_layout_push(l, input, image);
}

/* Bits of a dimension that one warp covers, when `warps` warps share it and an instruction covers
 * 2^instruction of it: what is left above them goes to the warps. */
static int warp_tile_bits(const tw_layout_t *l, int dim, int warps, int instruction) {
  int bits = l->log_shape[dim] - tw_log2(warps);
  return bits < instruction ? instruction : bits;
}

static void push_range(tw_layout_t *l, tw_input_t input, int dim, int from, int to) {
  for (int bit = from; bit < to; bit++)
    push_bit(l, input, dim, bit);
}

/* Dimensions before the last two (batches) repeat in registers. */
static void push_batch(tw_layout_t *l) {
  for (int d = l->rank - 3; d >= 0; d--)
    push_range(l, TW_REGISTER, d, 0, l->log_shape[d]);
}

tw_layout_t tw_layout_mma_acc(int rank, const int64_t *shape, int warps_m, int warps_n) {
  tw_layout_t l = tw_layout_empty(rank, shape);
  int m = rank - 2, n = rank - 1;
  int m_bits = warp_tile_bits(&l, m, warps_m, 4), n_bits = warp_tile_bits(&l, n, warps_n, 3);
  push_bit(&l, TW_REGISTER, n, 0);
  push_bit(&l, TW_REGISTER, m, 3);
  push_range(&l, TW_REGISTER, n, 3, n_bits);
  push_range(&l, TW_REGISTER, m, 4, m_bits);
  push_batch(&l);
  push_range(&l, TW_LANE, n, 1, 3);
  push_range(&l, TW_LANE, m, 0, 3);
  push_range(&l, TW_WARP, m, m_bits, m_bits + tw_log2(warps_m));
  push_range(&l, TW_WARP, n, n_bits, n_bits + tw_log2(warps_n));
  return l;
}

tw_layout_t tw_layout_dot_operand(int rank, const int64_t *shape, int operand, int elem_bits, int warps_m,
                                  int warps_n) {
  tw_layout_t l = tw_layout_empty(rank, shape);
  int k = operand == 0 ? rank - 1 : rank - 2;
  int o = operand == 0 ? rank - 2 : rank - 1; /* the other dimension: m or n */
  int pack = elem_bits < 32 ? tw_log2(32 / elem_bits) : 0;
  int o_bits = warp_tile_bits(&l, o, operand == 0 ? warps_m : warps_n, operand == 0 ? 4 : 3);
  int k_bits = l.log_shape[k];
  int k_step = elem_bits == 64 ? 2 : pack + 3; /* log2 of the k extent of one instruction */
  push_range(&l, TW_REGISTER, k, 0, pack);
  if (operand == 0)
    push_bit(&l, TW_REGISTER, o, 3);
  push_range(&l, TW_REGISTER, k, pack + 2, k_bits > k_step ? k_bits : k_step);
  push_range(&l, TW_REGISTER, o, operand == 0 ? 4 : 3, o_bits);
  push_batch(&l);
  push_range(&l, TW_LANE, k, pack, pack + 2);
  push_range(&l, TW_LANE, o, 0, 3);
  for (int i = 0; i < tw_log2(warps_m); i++)
    push_bit(&l, TW_WARP, o, operand == 0 ? o_bits + i : TW_LAYOUT_MAX_BITS);
  for (int i = 0; i < tw_log2(warps_n); i++)
    push_bit(&l, TW_WARP, o, operand == 1 ? o_bits + i : TW_LAYOUT_MAX_BITS);
  return l;
}

/* ---- transfer functions ------------------------------------------------------------------------ */

/* A field of a flat index that goes to another place. */
typedef struct {
  int from, to; /* its lowest bit */
  uint32_t mask;
} moved_field_t;

/* The layout whose dimension map[d] is dimension d of `from` (-1: dropped). Bits past an extent vanish. */
static tw_layout_t move_layout(const tw_layout_t *from, int rank, const int64_t *shape, const int *map) {
  tw_layout_t to = tw_layout_empty(rank, shape);
  moved_field_t fields[TW_LAYOUT_MAX_RANK];
  int count = 0;
  for (int d = 0; d < from->rank; d++)
    if (map[d] >= 0)
      fields[count++] =
          (moved_field_t){tw_layout_dim_shift(from, d), tw_layout_dim_shift(&to, map[d]),
                          (uint32_t)((tw_layout_extent(from, d) - 1) & (tw_layout_extent(&to, map[d]) - 1))};
  for (int g = 0; g < TW_NUM_INPUTS; g++)
    for (int i = 0; i < from->bits[g]; i++) {
      uint32_t image = 0;
      for (int f = 0; f < count; f++)
        image |= (from->basis[g][i] >> fields[f].from & fields[f].mask) << fields[f].to;
      tw_layout_push(&to, (tw_input_t)g, image);
    }
  return to;
}

/* Drops register bits that replicate. */
static tw_layout_t compact(const tw_layout_t *l) {
  tw_layout_t out = *l;
  out.bits[TW_REGISTER] = 0;
  for (int i = 0; i < l->bits[TW_REGISTER]; i++)
    if (l->basis[TW_REGISTER][i] != 0)
      tw_layout_push(&out, TW_REGISTER, l->basis[TW_REGISTER][i]);
  return out;
}

tw_layout_t tw_layout_slice(const tw_layout_t *l, int dim, bool keep) {
  int64_t shape[TW_LAYOUT_MAX_RANK];
  int map[TW_LAYOUT_MAX_RANK] = {0}, rank = 0;
  for (int d = 0; d < l->rank; d++) {
    map[d] = d == dim && !keep ? -1 : rank;
    if (map[d] >= 0)
      shape[rank++] = d == dim ? 1 : tw_layout_extent(l, d);
  }
  tw_layout_t out = move_layout(l, rank, shape, map);
  return compact(&out);
}

tw_layout_t tw_layout_unbroadcast(const tw_layout_t *l, const int64_t *shape) {
  int map[TW_LAYOUT_MAX_RANK] = {0};
  for (int d = 0; d < l->rank; d++)
    map[d] = d;
  tw_layout_t out = move_layout(l, l->rank, shape, map);
  return compact(&out);
}

tw_layout_t tw_layout_broadcast(const tw_layout_t *l, const int64_t *shape) {
  int map[TW_LAYOUT_MAX_RANK] = {0};
  for (int d = 0; d < l->rank; d++)
    map[d] = d;
  tw_layout_t out = move_layout(l, l->rank, shape, map);
  for (int d = l->rank - 1; d >= 0; d--) {
    int shift = tw_layout_dim_shift(&out, d);
    for (int bit = l->log_shape[d]; bit < out.log_shape[d]; bit++) {
      uint32_t image = UINT32_C(1) << (shift + bit);
      bool placed = false;
      for (int g = TW_LANE; g <= TW_WARP && !placed; g++)
        for (int i = 0; i < out.bits[g] && !placed; i++)
          if (out.basis[g][i] == 0) {
            out.basis[g][i] = image;
            placed = true;
          }
      if (!placed)
        tw_layout_push(&out, TW_REGISTER, image);
    }
  }
  return out;
}

tw_layout_t tw_layout_extract(const tw_layout_t *l, const int64_t *shape) { return tw_layout_unbroadcast(l, shape); }

tw_layout_t tw_layout_unextract(const tw_layout_t *l, const int64_t *shape) {
  int map[TW_LAYOUT_MAX_RANK] = {0};
  for (int d = 0; d < l->rank; d++)
    map[d] = d;
  tw_layout_t out = move_layout(l, l->rank, shape, map);
  for (int d = l->rank - 1; d >= 0; d--)
    for (int bit = l->log_shape[d]; bit < out.log_shape[d]; bit++)
      tw_layout_push(&out, TW_REGISTER, UINT32_C(1) << (tw_layout_dim_shift(&out, d) + bit));
  return out;
}

tw_layout_t tw_layout_permute(const tw_layout_t *l, const int *perm) {
  int64_t shape[TW_LAYOUT_MAX_RANK];
  int map[TW_LAYOUT_MAX_RANK] = {0};
  for (int d = 0; d < l->rank; d++) {
    shape[d] = tw_layout_extent(l, perm[d]);
    map[perm[d]] = d;
  }
  return move_layout(l, l->rank, shape, map);
}

tw_layout_t tw_layout_unpermute(const tw_layout_t *l, const int *perm) {
  int inverse[TW_LAYOUT_MAX_RANK];
  for (int d = 0; d < l->rank; d++)
    inverse[perm[d]] = d;
  return tw_layout_permute(l, inverse);
}

tw_layout_t tw_layout_reshape(const tw_layout_t *l, int rank, const int64_t *shape) {
  tw_layout_t out = tw_layout_empty(rank, shape);
  memcpy(out.bits, l->bits, sizeof out.bits);
  memcpy(out.basis, l->basis, sizeof out.basis);
  return out;
}

/* ---- algebra --------------------------------------------------------------------------------- */

bool tw_layout_invert(const tw_layout_t *l, tw_inverse_t *out) {
  bool injective;
  echelon_t e = echelon_of(l, &injective);
  memset(out, 0, sizeof *out);
  out->bits = tw_layout_size_bits(l);
  for (int bit = 0; bit < out->bits; bit++) {
    uint32_t vector = UINT32_C(1) << bit;
    out->of_bit[bit] = echelon_reduce(&e, &vector);
    if (vector != 0)
      return false;
  }
  return true;
}

tw_position_t tw_inverse_apply(const tw_inverse_t *inv, uint32_t flat) {
  tw_position_t sum = {{0}};
  for (int bit = 0; bit < inv->bits; bit++)
    if (flat >> bit & 1)
      sum = position_xor(sum, inv->of_bit[bit]);
  return sum;
}

static bool only_below(tw_position_t p, tw_input_t limit) {
  for (int g = (int)limit; g < TW_NUM_INPUTS; g++)
    if (p.at[g] != 0)
      return false;
  return true;
}

/* Where `from` holds the image of bit i of group g of `to`. Staying on the same lane and warp is
 * tried first: it holds when the rest can be had from registers (then lanes). */
static bool locate(const echelon_t *e, const tw_layout_t *from, tw_input_t g, int i, uint32_t image,
                   tw_position_t *out) {
  if (g != TW_REGISTER && i < from->bits[g]) {
    uint32_t rest = image ^ from->basis[g][i];
    tw_position_t p = echelon_reduce(e, &rest);
    if (rest == 0 && only_below(p, g)) {
      p.at[g] ^= UINT32_C(1) << i;
      *out = p;
      return true;
    }
  }
  *out = echelon_reduce(e, &image);
  return image == 0;
}

bool tw_layout_conversion(const tw_layout_t *from, const tw_layout_t *to, tw_conversion_t *out) {
  bool injective;
  echelon_t e = echelon_of(from, &injective);
  memset(out, 0, sizeof *out);
  for (int g = 0; g < TW_NUM_INPUTS; g++) {
    out->bits[g] = to->bits[g];
    for (int i = 0; i < to->bits[g]; i++)
      if (!locate(&e, from, (tw_input_t)g, i, to->basis[g][i], &out->basis[g][i]))
        return false;
  }
  return true;
}

tw_position_t tw_conversion_apply(const tw_conversion_t *c, uint32_t reg, uint32_t lane, uint32_t warp) {
  uint32_t in[TW_NUM_INPUTS] = {reg, lane, warp, 0, 0};
  tw_position_t sum = {{0}};
  for (int g = 0; g < TW_NUM_INPUTS; g++)
    for (int i = 0; i < c->bits[g]; i++)
      if (in[g] >> i & 1)
        sum = position_xor(sum, c->basis[g][i]);
  return sum;
}

/* True when every position keeps its coordinate in group g. */
static bool keeps_group(const tw_conversion_t *c, tw_input_t group) {
  for (int g = 0; g < TW_NUM_INPUTS; g++)
    for (int i = 0; i < c->bits[g]; i++) {
      uint32_t expected = g == (int)group ? UINT32_C(1) << i : 0;
      if (c->basis[g][i].at[group] != expected)
        return false;
    }
  return true;
}

tw_conversion_class_t tw_conversion_classify(const tw_conversion_t *c) {
  if (!keeps_group(c, TW_BLOCK) || !keeps_group(c, TW_WARP))
    return TW_CONVERT_SHARED;
  if (!keeps_group(c, TW_LANE))
    return TW_CONVERT_SHUFFLE;
  for (int g = TW_LANE; g <= TW_WARP; g++)
    for (int i = 0; i < c->bits[g]; i++)
      if (c->basis[g][i].at[TW_REGISTER] != 0)
        return TW_CONVERT_SELECT;
  return TW_CONVERT_REGISTER;
}

tw_conversion_class_t tw_layout_classify(const tw_layout_t *from, const tw_layout_t *to) {
  tw_conversion_t c;
  if (tw_layout_equal(from, to))
    return TW_CONVERT_NONE;
  return tw_layout_conversion(from, to, &c) ? tw_conversion_classify(&c) : TW_CONVERT_SHARED;
}

int tw_conversion_shuffles(const tw_conversion_t *c) {
  echelon_t e;
  memset(&e, 0, sizeof e);
  for (int g = TW_LANE; g <= TW_WARP; g++)
    for (int i = 0; i < c->bits[g]; i++)
      (void)echelon_add(&e, c->basis[g][i].at[TW_REGISTER], (tw_position_t){{0}});
  return 1 << (c->bits[TW_REGISTER] + e.rank);
}

/* ---- access ---------------------------------------------------------------------------------- */

/* Shortens a run of `bits` low bits in field `mask_shift` until no vector but the run's own
 * registers touches it: then every access starts at a multiple of its length. */
static int aligned_run(const uint32_t *image, const bool *own, int count, int shift, int bits) {
  for (int i = 0; i < count; i++)
    while (!own[i] && bits > 0 && (image[i] >> shift & ((UINT32_C(1) << bits) - 1)) != 0)
      bits--;
  return bits;
}

int tw_layout_vector_bits(const tw_layout_t *l, int dim, int max_bits, int regs[TW_LAYOUT_MAX_BITS]) {
  int shift = tw_layout_dim_shift(l, dim), bits = 0;
  uint32_t image[TW_NUM_INPUTS * TW_LAYOUT_MAX_BITS];
  bool own[TW_NUM_INPUTS * TW_LAYOUT_MAX_BITS];
  int count = 0;
  for (; bits < max_bits && bits < l->log_shape[dim]; bits++) {
    int found = -1;
    for (int i = 0; i < l->bits[TW_REGISTER] && found < 0; i++)
      if (l->basis[TW_REGISTER][i] == UINT32_C(1) << (shift + bits))
        found = i;
    if (found < 0)
      break;
    regs[bits] = found;
  }
  for (int g = 0; g < TW_NUM_INPUTS; g++)
    for (int i = 0; i < l->bits[g]; i++) {
      image[count] = l->basis[g][i];
      own[count] = false;
      for (int b = 0; g == TW_REGISTER && b < bits; b++)
        own[count] |= regs[b] == i;
      count++;
    }
  return aligned_run(image, own, count, shift, bits);
}

int tw_shared_vector_bits(const tw_layout_t *shared, const tw_layout_t *distributed, int max_bits,
                          int regs[TW_LAYOUT_MAX_BITS]) {
  tw_inverse_t inv;
  uint32_t image[TW_NUM_INPUTS * TW_LAYOUT_MAX_BITS];
  bool own[TW_NUM_INPUTS * TW_LAYOUT_MAX_BITS];
  int count = 0, bits = 0;
  if (!tw_layout_invert(shared, &inv))
    return 0;
  for (int g = 0; g < TW_NUM_INPUTS; g++)
    for (int i = 0; i < distributed->bits[g]; i++, count++) {
      image[count] = tw_inverse_apply(&inv, distributed->basis[g][i]).at[TW_OFFSET];
      own[count] = false;
    }
  for (; bits < max_bits; bits++) {
    int found = -1;
    for (int i = 0; i < distributed->bits[TW_REGISTER] && found < 0; i++)
      if (image[i] == UINT32_C(1) << bits)
        found = i;
    if (found < 0)
      break;
    regs[bits] = found;
    own[found] = true;
  }
  return aligned_run(image, own, count, 0, bits);
}

/* ---- axes ---------------------------------------------------------------------------------------- */

/* The one position bit that moves along coordinate bit `bit` of the axis and nothing else. */
static bool find_holder(const tw_layout_t *l, uint32_t bit, tw_axis_bits_t *out) {
  int found = 0;
  for (int g = 0; g < TW_NUM_INPUTS; g++)
    for (int i = 0; i < l->bits[g]; i++)
      if ((l->basis[g][i] & bit) != 0) {
        if (l->basis[g][i] != bit || g > TW_WARP)
          return false;
        out->at[out->count].input = (tw_input_t)g;
        out->at[out->count].bit = i;
        found++;
      }
  out->count++;
  return found == 1;
}

bool tw_layout_axis_bits(const tw_layout_t *l, int axis, tw_axis_bits_t *out) {
  int runs = 0;
  out->count = 0;
  if (l->log_shape[axis] > TW_LAYOUT_MAX_BITS)
    return false;
  for (int k = 0; k < l->log_shape[axis]; k++) {
    if (!find_holder(l, UINT32_C(1) << (tw_layout_dim_shift(l, axis) + k), out))
      return false;
    runs += out->at[k].input == TW_WARP && (k == 0 || out->at[k - 1].input != TW_WARP);
  }
  return runs <= 1;
}

bool tw_layout_disjoint(const tw_layout_t *l, int dim) {
  uint32_t thread = 0, reg = 0;
  for (int i = 0; i < l->bits[TW_REGISTER]; i++)
    reg |= tw_layout_coord(l, l->basis[TW_REGISTER][i], dim);
  for (int g = TW_LANE; g <= TW_WARP; g++)
    for (int i = 0; i < l->bits[g]; i++)
      thread |= tw_layout_coord(l, l->basis[g][i], dim);
  return (thread & reg) == 0;
}

static bool along(const tw_layout_t *l, tw_input_t input, int bit, int axis) {
  return (l->basis[input][bit] & tw_layout_dim_mask(l, axis)) != 0;
}

uint32_t tw_layout_warps_along(const tw_layout_t *l, int axis, int *count) {
  uint32_t mask = 0;
  *count = 0;
  for (int i = 0; i < l->bits[TW_WARP]; i++)
    if (along(l, TW_WARP, i, axis)) {
      mask |= UINT32_C(1) << i;
      (*count)++;
    }
  return mask;
}

uint32_t tw_layout_copies(const tw_layout_t *l, tw_input_t input) {
  uint32_t mask = 0;
  for (int i = 0; i < l->bits[input]; i++)
    mask |= l->basis[input][i] == 0 ? UINT32_C(1) << i : 0;
  return mask;
}

uint32_t tw_axis_bits_done(const tw_axis_bits_t *bits, tw_input_t input, int n) {
  uint32_t mask = 0;
  for (int i = 0; i < n; i++)
    mask |= bits->at[i].input == input ? UINT32_C(1) << bits->at[i].bit : 0;
  return mask;
}

int tw_axis_run_end(const tw_axis_bits_t *bits, int from) {
  int to = from;
  while (to < bits->count && bits->at[to].input == bits->at[from].input)
    to++;
  return to;
}
