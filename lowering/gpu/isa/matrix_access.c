/* matrix_access.c - see matrix_access.h */
#include "lowering/gpu/isa/matrix_access.h"

#include "lowering/gpu/emit/shared_access.h"
#include "lowering/gpu/emit/words.h"
#include "lowering/gpu/machine/target.h"

#include "mlir-c/Dialect/LLVM.h"

#include <stdio.h>

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
  enum { TURNED_BYTES = 2 };
  tw_ldmatrix_t *m = at->out;
  m->trans = true;
  m->pack_bits = tw_log2(WORD_BYTES / elem_bytes);
  m->swapped = elem_bytes == 1 && m->reg[1] == 1;
  int row = elem_bytes == 1 && !m->swapped; /* the register bit that selects it */
  bool pairs = elem_bytes == TURNED_BYTES || (elem_bytes == 1 && m->reg[!row] == 1);
  if (!pairs || at->tile->bits[TW_REGISTER] < m->pack_bits)
    return false;
  for (int i = 0; i < ROW_LANES; i++)
    if (at->lane[2 + i] != (uint32_t)TURNED_BYTES << i)
      return false;
  m->address[0] = m->reg[row];
  m->address[1] = at->lane[0];
  m->address[2] = at->lane[1];
  return m->reg[row] % TW_LDMATRIX_ROW_BYTES == 0 && whole_rows(at, m->pack_bits, 0x3);
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

/* ---- registers to and from buffers --------------------------------------------------------------- */

/* This thread's row, XORed with the part of a constant that shares bits with it; does not depend on
 * the loop, so it goes to the entry. */
static MlirValue row_of_thread(tw_emitter_t *e, const tw_layout_t *tile, const tw_ldmatrix_t *m, uint32_t overlap) {
  MlirValue row = twg_linear_of_thread(e, m->address, TW_LDMATRIX_LANE_BITS, m->warp, tile->bits[TW_WARP]);
  MlirBlock here = e->block;
  e->block = e->entry;
  if (overlap)
    row = twg_binary(e, "llvm.xor", row, twg_const_i32(e, overlap));
  e->block = here;
  return row;
}

static void load_matrices(tw_emitter_t *e, const tw_ldmatrix_t *m, MlirValue pointer, MlirValue *words) {
  int count = 1 << m->matrix_bits;
  MlirType types[] = {e->i32, e->i32, e->i32, e->i32};
  char name[80];
  snprintf(name, sizeof name, "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x%d%s.b16.p3", count, m->trans ? ".trans" : "");
  MlirType type = count == 1 ? e->i32 : mlirLLVMStructTypeLiteralGet(e->context, count, types, false);
  MlirValue loaded = twg_intrinsic(e, name, type, 1, &pointer, TW_PTX_EFFECT);
  for (int i = 0; i < count; i++)
    words[i] = count == 1 ? loaded : twg_extract(e, loaded, i, e->i32);
}

/* Registers as they lie in words, of which four in a row are one, and back. */
static void swap_within(const tw_ldmatrix_t *m, MlirValue *word) {
  MlirValue second = word[1];
  if (m->swapped) {
    word[1] = word[2];
    word[2] = second;
  }
}

static tw_values_t read_matrices(tw_emitter_t *e, const tw_layout_t *tile, const tw_ldmatrix_t *m, MlirType element,
                                 MlirValue base) {
  int bits = tw_memory_bits(element), per_word = 1 << m->pack_bits, within = per_word - 1;
  for (int i = 0; i < m->matrix_bits; i++)
    within |= 1 << m->matrix[i];
  int copies = tw_ldmatrix_copy_bits(tile, m);
  tw_values_t out = twg_new_values(e, tw_layout_count(tile, TW_REGISTER));
  for (int r = 0; r < out.count; r++) {
    if (r & (within | copies))
      continue;
    uint32_t constant = tw_ldmatrix_register_part(tile, m, r);
    MlirValue words[1 << TW_LDMATRIX_MAX_BITS];
    MlirValue pointer = twg_offset_pointer(e, base, row_of_thread(e, tile, m, constant & m->thread_mask));
    load_matrices(e, m, twg_add_bytes(e, pointer, constant & ~m->thread_mask), words);
    for (int w = 0; w < 1 << m->matrix_bits; w++) {
      int at = r;
      for (int i = 0; i < m->matrix_bits; i++)
        at |= (w >> i & 1) << m->matrix[i];
      twg_from_words(e, element, bits, per_word, &words[w], &out.at[at]);
      swap_within(m, &out.at[at]);
    }
  }
  for (int r = 0; r < out.count; r++)
    if (r & copies)
      out.at[r] = out.at[r & ~copies];
  return out;
}

static void store_matrices(tw_emitter_t *e, const tw_ldmatrix_t *m, MlirValue pointer, const MlirValue *words) {
  int count = 1 << m->matrix_bits;
  char name[80];
  snprintf(name, sizeof name, "llvm.nvvm.stmatrix.sync.aligned.m8n8.x%d%s.b16.p3", count, m->trans ? ".trans" : "");
  MlirValue operands[1 + (1 << TW_LDMATRIX_MAX_BITS)] = {pointer};
  for (int i = 0; i < count; i++)
    operands[1 + i] = words[i];
  twg_intrinsic(e, name, (MlirType){NULL}, 1 + count, operands, TW_PTX_STORES);
}

static void write_matrices(tw_emitter_t *e, const tw_layout_t *tile, const tw_ldmatrix_t *m, MlirType element,
                           tw_values_t in, MlirValue base) {
  int bits = tw_memory_bits(element), per_word = 1 << m->pack_bits, within = per_word - 1;
  for (int i = 0; i < m->matrix_bits; i++)
    within |= 1 << m->matrix[i];
  int copies = tw_ldmatrix_copy_bits(tile, m);
  for (int r = 0; r < in.count; r++) {
    if (r & (within | copies))
      continue;
    uint32_t constant = tw_ldmatrix_register_part(tile, m, r);
    MlirValue words[1 << TW_LDMATRIX_MAX_BITS];
    for (int w = 0; w < 1 << m->matrix_bits; w++) {
      int at = r;
      for (int i = 0; i < m->matrix_bits; i++)
        at |= (w >> i & 1) << m->matrix[i];
      MlirValue parts[WORD_BYTES];
      for (int i = 0; i < per_word; i++)
        parts[i] = in.at[at + i];
      swap_within(m, parts);
      twg_to_words(e, element, bits, per_word, parts, &words[w]);
    }
    MlirValue pointer = twg_offset_pointer(e, base, row_of_thread(e, tile, m, constant & m->thread_mask));
    store_matrices(e, m, twg_add_bytes(e, pointer, constant & ~m->thread_mask), words);
  }
}

void twg_write_buffer(tw_emitter_t *e, const tw_layout_t *l, const tw_layout_t *shared, MlirType element,
                      tw_values_t in, MlirValue base) {
  tw_gpu_target_t target = tw_gpu_target_of(e->module);
  tw_ldmatrix_t matrices;
  if (tw_gpu_has(&target, TW_GPU_STMATRIX) && tw_ldmatrix_match(l, shared, tw_memory_bits(element) / 8, &matrices))
    write_matrices(e, l, &matrices, element, in, base);
  else
    twg_write_shared(e, l, shared, element, in, base);
}

tw_values_t twg_read_buffer(tw_emitter_t *e, const tw_layout_t *l, const tw_layout_t *shared, MlirType element,
                            MlirValue base) {
  tw_ldmatrix_t matrices;
  return tw_ldmatrix_match(l, shared, tw_memory_bits(element) / 8, &matrices)
             ? read_matrices(e, l, &matrices, element, base)
             : twg_read_shared(e, l, shared, element, base);
}
