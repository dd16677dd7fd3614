/* matrix_access.c - see matrix_access.h */
#include "lowering/gpu/isa/matrix_access.h"

enum { WORD_BYTES = 4, ROW_LANES = 3 };

/* Addresses of the basis vectors, in bytes. */
typedef struct {
  uint32_t lane[TW_LDMATRIX_LANE_BITS];
  const tw_layout_t *tile;
  tw_ldmatrix_t *out;
} images_t;

static bool find_images(const tw_layout_t *tile, const tw_layout_t *shared, int elem_bytes, images_t *at) {
  tw_inverse_t inverse;
  if (!tw_layout_invert(shared, &inverse) || tile->bits[TW_LANE] != TW_LDMATRIX_LANE_BITS || tile->bits[TW_BLOCK])
    return false;
  uint32_t *to[] = {at->out->reg, at->lane, at->out->warp};
  for (int g = TW_REGISTER; g <= TW_WARP; g++)
    for (int i = 0; i < tile->bits[g]; i++)
      to[g][i] = tw_inverse_apply(&inverse, tile->basis[g][i]).at[TW_OFFSET] * (uint32_t)elem_bytes;
  return true;
}

/* Whether the addresses of registers from `first` on, of warps, and of the lanes named in a mask are
 * those of whole rows. */
static bool whole_rows(const images_t *at, int first, uint32_t lanes) {
  uint32_t all = 0;
  for (int i = first; i < at->tile->bits[TW_REGISTER]; i++)
    all |= at->out->reg[i];
  for (int i = 0; i < at->tile->bits[TW_WARP]; i++)
    all |= at->out->warp[i];
  for (int i = 0; i < TW_LDMATRIX_LANE_BITS; i++)
    all |= lanes >> i & 1 ? at->lane[i] : 0;
  return all % TW_LDMATRIX_ROW_BYTES == 0;
}

static bool is_plain(const images_t *at, int elem_bytes) {
  tw_ldmatrix_t *m = at->out;
  m->trans = false;
  m->pack_bits = tw_log2(WORD_BYTES / elem_bytes);
  if (at->tile->bits[TW_REGISTER] < m->pack_bits || at->lane[0] != WORD_BYTES || at->lane[1] != 2 * WORD_BYTES)
    return false;
  for (int b = 0; b < m->pack_bits; b++)
    if (m->reg[b] != (uint32_t)elem_bytes << b)
      return false;
  for (int i = 0; i < ROW_LANES; i++)
    m->address[i] = at->lane[2 + i];
  return whole_rows(at, m->pack_bits, 0x1C);
}

static bool is_trans(const images_t *at, int elem_bytes) {
  tw_ldmatrix_t *m = at->out;
  m->trans = true;
  m->pack_bits = 1;
  if (elem_bytes != 2 || at->tile->bits[TW_REGISTER] < 1)
    return false;
  for (int i = 0; i < ROW_LANES; i++)
    if (at->lane[2 + i] != 2U << i)
      return false;
  m->address[0] = m->reg[0];
  m->address[1] = at->lane[0];
  m->address[2] = at->lane[1];
  return whole_rows(at, 0, 0x3);
}

bool tw_ldmatrix_match(const tw_layout_t *tile, const tw_layout_t *shared, int elem_bytes, tw_ldmatrix_t *out) {
  *out = (tw_ldmatrix_t){0};
  images_t at = {.tile = tile, .out = out};
  if (elem_bytes < 1 || elem_bytes > WORD_BYTES || !find_images(tile, shared, elem_bytes, &at))
    return false;
  if (!is_plain(&at, elem_bytes) && !is_trans(&at, elem_bytes))
    return false;
  for (int b = out->pack_bits; b < tile->bits[TW_REGISTER] && out->matrix_bits < TW_LDMATRIX_MAX_BITS; b++)
    if (out->reg[b] != 0) {
      out->address[ROW_LANES + out->matrix_bits] = out->reg[b];
      out->matrix[out->matrix_bits++] = b;
    }
  for (int i = 0; i < TW_LDMATRIX_LANE_BITS; i++)
    out->thread_mask |= out->address[i];
  for (int i = 0; i < tile->bits[TW_WARP]; i++)
    out->thread_mask |= out->warp[i];
  return true;
}

int tw_ldmatrix_copy_bits(const tw_layout_t *tile, const tw_ldmatrix_t *m) {
  int mask = 0;
  for (int b = m->pack_bits; b < tile->bits[TW_REGISTER]; b++)
    mask |= m->reg[b] == 0 ? 1 << b : 0;
  return mask;
}

uint32_t tw_ldmatrix_register_part(const tw_layout_t *tile, const tw_ldmatrix_t *m, int r) {
  uint32_t sum = 0;
  for (int b = 0; b < tile->bits[TW_REGISTER]; b++)
    if (r >> b & 1)
      sum ^= m->reg[b];
  return sum;
}
