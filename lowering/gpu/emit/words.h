/* words.h - elements as they lie in memory, and words of 32 bits */
#ifndef TILEWRIGHT_LOWERING_GPU_EMIT_WORDS_H
#define TILEWRIGHT_LOWERING_GPU_EMIT_WORDS_H

#include "lowering/gpu/emit/emitter.h"

/* Packs 2^n elements of `bits` each (tw_memory_bits) into one i8 or i16, or into words of i32; and back. `element`
 * is the tile's element type. Returns how many parts there are. */
int twg_to_words(tw_emitter_t *e, MlirType element, int bits, int count, const MlirValue *elements, MlirValue words[4]);
/* The bits of a padding value (TW_PADDING_...) in even and odd words, repeated for narrow elements. */
void twg_padding_words(MlirType element, int64_t padding, uint32_t out[2]);
void twg_from_words(tw_emitter_t *e, MlirType element, int bits, int count, const MlirValue *words,
                    MlirValue *elements);

/* The element that has these bits in memory. */
MlirValue twg_bits_to_element(tw_emitter_t *e, MlirValue bits, MlirType element);

/* A scalar from the low bits of an i64. */
MlirValue twg_scalar_of_word(tw_emitter_t *e, MlirValue word, MlirType type);

/* How a narrow float is made up. `top` is the largest finite magnitude, as its bits. */
typedef struct tw_narrow {
  int exponent_bits, mantissa_bits, bias;
  uint32_t top;
  int inf, nan; /* bits; -1: there is none */
} tw_narrow_t;

/* Whether an element is a float of 8 bits or fewer. */
static inline bool tw_is_narrow(MlirType element) {
  return mlirTypeIsAFloat(element) && mlirFloatTypeGetWidth(element) <= 8;
}
tw_narrow_t tw_narrow_format(MlirType element);
/* The largest finite number of a narrow float. */
double tw_narrow_top(MlirType element);
/* Bits of the narrow float nearest to `x` (constants of such types are exact in practice). */
int64_t tw_narrow_bits(MlirType element, double x);

#endif /* TILEWRIGHT_LOWERING_GPU_EMIT_WORDS_H */
