/* lane_exchange.c - lanes exchange registers. See lane_exchange.h.
 *
 * One bit at a time: a lane keeps the half of its registers that has the same bit as the lane, and gets the other half
 * for the half that it gives. */
#include "lowering/gpu/emit/lane_exchange.h"

#include "lowering/gpu/emit/lanes.h"

/* The bit of an input that moves by 2^bit along the dimension, and nowhere else; -1 if none does. */
static int bit_along(const tw_layout_t *l, tw_input_t input, int dim, int bit) {
  for (int i = 0; i < l->bits[input]; i++)
    if (bit < l->log_shape[dim] && l->basis[input][i] == UINT32_C(1) << (tw_layout_dim_shift(l, dim) + bit))
      return i;
  return -1;
}

bool twg_find_exchange(const tw_layout_t *layout, int dim, int have, int wanted, tw_exchange_t *out) {
  *out = (tw_exchange_t){.count = wanted - have};
  if (out->count < 1 || out->count > TW_EXCHANGE_BITS)
    return false;
  for (int i = 0; i < out->count; i++) {
    out->lane[i] = bit_along(layout, TW_LANE, dim, have + i);
    out->reg[i] = bit_along(layout, TW_REGISTER, dim, wanted + i);
    if (out->lane[i] < 0 || out->reg[i] < 0)
      return false;
  }
  return true;
}

int twg_exchange_register(const tw_exchange_t *x, int r, int i) {
  for (int b = 0; b < x->count; b++)
    r |= (i >> b & 1) << x->reg[b];
  return r;
}

static MlirValue lane_bit(tw_emitter_t *e, const tw_exchange_t *x, int b) {
  return twg_binary(e, "llvm.and", e->lane, twg_const_i32(e, INT64_C(1) << x->lane[b]));
}

void twg_exchange(tw_emitter_t *e, const tw_exchange_t *x, int size, MlirValue words[TW_EXCHANGE_WORDS]) {
  for (int b = 0; b < x->count; b++) {
    MlirValue set = twg_icmp(e, TW_NE, lane_bit(e, x, b), twg_const_i32(e, 0));
    MlirValue other = twg_const_i32(e, INT64_C(1) << x->lane[b]);
    for (int w = 0; w < size << x->count; w++) {
      if (w / size >> b & 1)
        continue;
      MlirValue *low = &words[w], *high = &words[w + (size << b)];
      MlirValue got = twg_shuffle(e, true, twg_select(e, set, *low, *high), other);
      *low = twg_select(e, set, got, *low);
      *high = twg_select(e, set, *high, got);
    }
  }
}

MlirValue twg_exchange_number(tw_emitter_t *e, const tw_exchange_t *x) {
  MlirValue number = twg_const_i32(e, 0);
  for (int b = 0; b < x->count; b++) {
    MlirValue bit = twg_binary(e, "llvm.lshr", lane_bit(e, x, b), twg_const_i32(e, x->lane[b]));
    number = twg_binary(e, "llvm.or", number, twg_binary(e, "llvm.shl", bit, twg_const_i32(e, b)));
  }
  return number;
}
