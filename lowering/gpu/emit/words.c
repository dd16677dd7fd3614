/* words.c - elements as they lie in memory. See words.h. */
#include "lowering/gpu/emit/words.h"

#include "dialect/layouts.h"

#include <math.h>

static MlirType int_type(tw_emitter_t *e, int bits) { return mlirIntegerTypeGet(e->context, (unsigned)bits); }

/* An element as an integer of the width that it has in memory. */
static MlirValue element_to_bits(tw_emitter_t *e, MlirValue x, int bits) {
  MlirType type = mlirValueGetType(x);
  if (mlirTypeIsAInteger(type) && mlirIntegerTypeGetWidth(type) == 1)
    return twg_cast(e, "llvm.zext", e->i8, x);
  return bits == 4 ? x : twg_bitcast(e, x, int_type(e, bits));
}

MlirValue twg_bits_to_element(tw_emitter_t *e, MlirValue bits, MlirType element) {
  if (mlirTypeIsAInteger(element) && mlirIntegerTypeGetWidth(element) == 1)
    return twg_icmp(e, TW_NE, bits, twg_const_int(e, e->i8, 0));
  return twg_bitcast(e, bits, twg_register_type(e, element));
}

/* Two 4-bit elements to a byte, the first in the low half. */
static MlirValue join_halves(tw_emitter_t *e, MlirValue low, MlirValue high) {
  low = twg_binary(e, "llvm.and", low, twg_const_int(e, e->i8, 15));
  return twg_binary(e, "llvm.or", low, twg_binary(e, "llvm.shl", high, twg_const_int(e, e->i8, 4)));
}

/* `count` integers of `bits` (8, 16 or 32) to one of count * bits (at most 32). */
static MlirValue join(tw_emitter_t *e, int bits, int count, const MlirValue *parts) {
  if (count == 1)
    return parts[0];
  return twg_bitcast(e, twg_pack(e, int_type(e, bits), count, parts), int_type(e, bits * count));
}

int twg_to_words(tw_emitter_t *e, MlirType element, int bits, int count, const MlirValue *elements,
                 MlirValue words[4]) {
  MlirValue part[16];
  int total = bits * count;
  bool half = !mlirTypeIsAInteger(element) && bits == 16;
  if (half && count > 1) { /* keep pairs of f16 and bf16 as they are held */
    for (int i = 0; i < count; i += 2)
      words[i / 2] = twg_bitcast(e, twg_pack(e, element, 2, &elements[i]), e->i32);
    return count / 2;
  }
  for (int i = 0; i < count && i < 16; i++)
    part[i] = element_to_bits(e, elements[i], bits);
  if (bits == 4) {
    for (int i = 0; i + 1 < count; i += 2)
      part[i / 2] = join_halves(e, elements[i], elements[i + 1]);
    bits = 8;
    count = count > 1 ? count / 2 : 1;
    total = 8 * count;
  }
  if (bits == 64) {
    for (int i = 0; i < count; i++) {
      MlirValue both = twg_bitcast(e, part[i], twg_vector_type(e->i32, 2));
      words[2 * i] = twg_unpack(e, both, 0, e->i32);
      words[2 * i + 1] = twg_unpack(e, both, 1, e->i32);
    }
    return 2 * count;
  }
  int per_word = total <= 32 ? count : 32 / bits, n = count / per_word;
  for (int w = 0; w < n; w++)
    words[w] = join(e, bits, per_word, &part[w * per_word]);
  return n;
}

void twg_from_words(tw_emitter_t *e, MlirType element, int bits, int count, const MlirValue *words,
                    MlirValue *elements) {
  if (bits == 64) {
    for (int i = 0; i < count; i++)
      elements[i] = twg_bits_to_element(e, twg_bitcast(e, twg_pack(e, e->i32, 2, &words[2 * i]), e->i64), element);
    return;
  }
  if (bits == 4) {
    MlirValue bytes[16];
    int n = count > 1 ? count / 2 : 1;
    twg_from_words(e, e->i8, 8, n, words, bytes);
    for (int i = 0; i < count; i++)
      elements[i] = i & 1 ? twg_binary(e, "llvm.lshr", bytes[i / 2], twg_const_int(e, e->i8, 4))
                          : twg_binary(e, "llvm.and", bytes[i / 2], twg_const_int(e, e->i8, 15));
    return;
  }
  int per_word = bits * count <= 32 ? count : 32 / bits;
  bool boolean = mlirTypeIsAInteger(element) && mlirIntegerTypeGetWidth(element) == 1;
  MlirType part = boolean ? e->i8 : twg_register_type(e, element);
  for (int w = 0; w * per_word < count; w++) {
    MlirValue vector =
        per_word == 1 ? twg_bitcast(e, words[w], part) : twg_bitcast(e, words[w], twg_vector_type(part, per_word));
    for (int i = 0; i < per_word; i++) {
      MlirValue x = per_word == 1 ? vector : twg_unpack(e, vector, i, part);
      elements[w * per_word + i] = boolean ? twg_bits_to_element(e, x, element) : x;
    }
  }
}

/* ---- narrow floats ------------------------------------------------------------------------------- */

tw_narrow_t tw_narrow_format(MlirType element) {
  if (mlirTypeIsAFloat8E5M2(element))
    return (tw_narrow_t){5, 2, 15, 0x7B, 0x7C, 0x7F};
  if (mlirTypeIsAFloat8E8M0FNU(element))
    return (tw_narrow_t){8, 0, 127, 0xFE, -1, 0xFF};
  if (mlirTypeIsAFloat4E2M1FN(element))
    return (tw_narrow_t){2, 1, 1, 0x7, -1, -1};
  return (tw_narrow_t){4, 3, 7, 0x7E, -1, 0x7F};
}

static double narrow_value(tw_narrow_t f, uint32_t magnitude) {
  uint32_t exponent = magnitude >> f.mantissa_bits, fraction = magnitude & ((1u << f.mantissa_bits) - 1);
  double scaled = fraction + (exponent ? 1 << f.mantissa_bits : 0);
  return ldexp(scaled, (int)(exponent ? exponent : 1) - f.bias - f.mantissa_bits);
}

double tw_narrow_top(MlirType element) {
  tw_narrow_t f = tw_narrow_format(element);
  return narrow_value(f, f.top);
}

int64_t tw_narrow_bits(MlirType element, double x) {
  tw_narrow_t f = tw_narrow_format(element);
  int width = 1 + f.exponent_bits + f.mantissa_bits;
  int64_t sign = signbit(x) ? (int64_t)1 << (width - 1) : 0, best = f.top;
  if (mlirTypeIsAFloat8E8M0FNU(element) && !(x > 0 && x <= ldexp(1, 127)))
    return f.nan;
  if (isnan(x))
    return f.nan >= 0 ? f.nan : (int64_t)f.top;
  if (isinf(x))
    return sign | (f.inf >= 0 ? f.inf : (int64_t)f.top);
  for (int64_t bits = f.top; bits >= 0; bits--)
    if (fabs(narrow_value(f, (uint32_t)bits) - fabs(x)) < fabs(narrow_value(f, (uint32_t)best) - fabs(x)))
      best = bits;
  return sign | best;
}

/* Bits of an element of a narrow float, or of zeros, infinities and NaN in another. */
static uint64_t float_bits(MlirType element, double x) {
  if (tw_is_narrow(element))
    return (uint64_t)tw_narrow_bits(element, x);
  union {
    double d;
    uint64_t u;
  } d = {.d = x};
  union {
    float f;
    uint32_t u;
  } f = {.f = (float)x};
  if (mlirTypeIsAF64(element))
    return d.u;
  if (mlirTypeIsABF16(element))
    return f.u >> 16;
  if (!mlirTypeIsAF16(element))
    return f.u;
  uint64_t sign = signbit(x) ? 0x8000 : 0;
  return sign | (isnan(x) ? 0x7E00 : isinf(x) ? 0x7C00 : 0);
}

void twg_padding_words(MlirType element, int64_t padding, uint32_t out[2]) {
  static const double values[] = {0.0, 0.0, -0.0, NAN, INFINITY, -INFINITY};
  out[0] = out[1] = 0;
  if (!mlirTypeIsAFloat(element) || padding < 0 || padding > 5)
    return;
  int bits = tw_memory_bits(element);
  uint64_t value = float_bits(element, values[padding]);
  for (int width = bits; width < 32; width *= 2)
    value |= value << width;
  out[0] = (uint32_t)value;
  out[1] = bits == 64 ? (uint32_t)(value >> 32) : out[0];
}

MlirValue twg_scalar_of_word(tw_emitter_t *e, MlirValue word, MlirType type) {
  MlirType want = twg_register_type(e, type);
  int bits = (int)tw_bits(want);
  if (bits < 64)
    word = twg_cast(e, "llvm.trunc", mlirIntegerTypeGet(e->context, (unsigned)bits), word);
  return twg_bitcast(e, word, want);
}
