/* cost.c - what layouts cost. See cost.h. */
#include "lowering/layout/cost.h"

enum { MAX_ACCESS_BITS = 128, WORD_BITS = 32 };

static int max_int(int a, int b) { return a > b ? a : b; }

static int own_bits(const tw_layout_t *l, tw_input_t input) {
  int bits = 0;
  for (int i = 0; i < l->bits[input]; i++)
    bits += l->basis[input][i] != 0;
  return bits;
}

int tw_layout_own_registers(const tw_layout_t *l) { return 1 << own_bits(l, TW_REGISTER); }

/* ---- conversions ------------------------------------------------------------------------------- */

static bool is_through_shared(const tw_conversion_t *c, tw_conversion_class_t kind) {
  return kind == TW_CONVERT_SHARED || (kind == TW_CONVERT_SHUFFLE && tw_conversion_shuffles(c) > TW_MAX_SHUFFLES);
}

bool tw_converts_through_shared(const tw_layout_t *from, const tw_layout_t *to) {
  tw_conversion_t c;
  if (tw_layout_equal(from, to))
    return false;
  return !tw_layout_conversion(from, to, &c) || is_through_shared(&c, tw_conversion_classify(&c));
}

int64_t tw_shared_access_slots(const tw_machine_t *m, const tw_layout_t *shared, const tw_layout_t *side,
                               int elem_bits) {
  int regs[TW_LAYOUT_MAX_BITS], widest = tw_log2(MAX_ACCESS_BITS / elem_bits);
  int vector = tw_shared_vector_bits(shared, side, widest, regs);
  int64_t accesses = tw_layout_own_registers(side) >> vector;
  int passes = max_int(1, TW_WARP_LANES * (elem_bits << vector) / 8 / TW_LINE_BYTES);
  return accesses * passes * tw_shared_conflicts(shared, side, elem_bits, vector) * m->bank_slots;
}

int64_t tw_conversion_slots(const tw_machine_t *m, const tw_layout_t *from, const tw_layout_t *to, int elem_bits) {
  tw_conversion_t c;
  if (tw_layout_equal(from, to))
    return 0;
  tw_conversion_class_t kind = tw_layout_conversion(from, to, &c) ? tw_conversion_classify(&c) : TW_CONVERT_SHARED;
  elem_bits = max_int(elem_bits, 8);
  if (kind == TW_CONVERT_REGISTER)
    return 0;
  if (is_through_shared(&c, kind)) {
    int vector;
    tw_layout_t shared = tw_shared_for(from, to, elem_bits, &vector);
    return 2 * m->barrier_slots + tw_shared_access_slots(m, &shared, from, elem_bits) +
           tw_shared_access_slots(m, &shared, to, elem_bits);
  }
  int64_t moved = tw_conversion_shuffles(&c), selects = moved - (INT64_C(1) << c.bits[TW_REGISTER]);
  int words = max_int(1, elem_bits / WORD_BITS);
  return words * (selects + (kind == TW_CONVERT_SHUFFLE ? moved * m->shuffle_slots : 0));
}

/* ---- global memory ----------------------------------------------------------------------------- */

/* log2 of the different images of a warp's lanes where the bits of `blind` are not seen. */
static int lane_rank(const tw_layout_t *l, uint32_t blind) {
  uint32_t row[32] = {0};
  int rank = 0;
  for (int i = 0; i < l->bits[TW_LANE]; i++) {
    uint32_t v = l->basis[TW_LANE][i] & ~blind;
    for (int bit = 31; bit >= 0 && v != 0; bit--)
      if (v >> bit & 1) {
        if (row[bit] == 0) {
          row[bit] = v;
          rank++;
          break;
        }
        v ^= row[bit];
      }
  }
  return rank;
}

/* The accesses of other registers are at the same places moved by a constant: as many pieces. */
int tw_access_pieces(const tw_layout_t *l, int contiguous, int elem_bits, int piece_bits) {
  uint32_t within = 0;
  if (contiguous >= 0) {
    uint32_t piece = (UINT32_C(1) << tw_log2(max_int(1, piece_bits / elem_bits))) - 1;
    within = tw_layout_dim_mask(l, contiguous) & piece << tw_layout_dim_shift(l, contiguous);
  }
  return 1 << lane_rank(l, within);
}

int64_t tw_access_slots(const tw_machine_t *m, const tw_layout_t *l, int contiguous, int vector_bits, int elem_bits) {
  int regs[TW_LAYOUT_MAX_BITS], vector = 0;
  if (contiguous >= 0)
    vector = tw_layout_vector_bits(l, contiguous, vector_bits, regs);
  int64_t accesses = tw_layout_own_registers(l) >> vector;
  int sectors = tw_access_pieces(l, contiguous, elem_bits, TW_SECTOR_BITS);
  int lines = tw_access_pieces(l, contiguous, elem_bits, TW_LINE_BITS);
  int moved = (1 << lane_rank(l, 0)) * (elem_bits << vector) / TW_LINE_BITS;
  return accesses * (TW_SLOTS_ACCESS + max_int(lines, moved) * m->line_slots + sectors * m->sector_slots);
}

int64_t tw_row_slots(const tw_machine_t *m, const tw_layout_t *l, int contiguous, int vector_bits, int elem_bits) {
  int regs[TW_LAYOUT_MAX_BITS], vector = tw_layout_vector_bits(l, contiguous, vector_bits, regs);
  int64_t accesses = tw_layout_own_registers(l) >> vector;
  int lines = tw_access_pieces(l, contiguous, elem_bits, TW_LINE_BITS); /* of all banks */
  return accesses * (1 + lines * m->bank_slots);
}

/* ---- reductions and scans ------------------------------------------------------------------------ */

static int bits_along(const tw_layout_t *l, tw_input_t input, uint32_t mask) {
  int bits = 0;
  for (int i = 0; i < l->bits[input]; i++)
    bits += (l->basis[input][i] & mask) != 0;
  return bits;
}

static int64_t reduction_of(const tw_machine_t *m, const tw_layout_t *l, int axis, int64_t items) {
  uint32_t mask = tw_layout_dim_mask(l, axis);
  int lanes = bits_along(l, TW_LANE, mask), warps = bits_along(l, TW_WARP, mask);
  int64_t slots = items * lanes * (m->shuffle_slots + 1);
  if (warps > 0) /* each leaves its part and takes those of all */
    slots += 2 * m->barrier_slots + items * (m->bank_slots + (m->bank_slots + 1) * (INT64_C(1) << warps));
  return slots;
}

int64_t tw_reduction_slots(const tw_machine_t *m, const tw_layout_t *l, int axis) {
  int64_t registers = tw_layout_own_registers(l);
  return registers + reduction_of(m, l, axis, registers >> bits_along(l, TW_REGISTER, tw_layout_dim_mask(l, axis)));
}

int64_t tw_scan_slots(const tw_machine_t *m, const tw_layout_t *l, int axis) {
  /* a run of registers is summed before its total goes to the lanes; runs above the lanes do so again */
  uint32_t lowest = UINT32_C(1) << tw_layout_dim_shift(l, axis);
  int run = 0;
  for (bool found = true; found; run += found) {
    found = false;
    for (int i = 0; i < l->bits[TW_REGISTER]; i++)
      found |= l->basis[TW_REGISTER][i] == lowest << run;
  }
  int64_t registers = tw_layout_own_registers(l);
  return 2 * registers + reduction_of(m, l, axis, registers >> run);
}
