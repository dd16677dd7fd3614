/* convert_float.c - conversions between floats. See convert_float.h. */
#include "lowering/gpu/isa/convert_float.h"

#include "lowering/gpu/emit/words.h"
#include "lowering/gpu/isa/sm89/fp8.h"
#include "lowering/gpu/machine/target.h"

#include <math.h>

/* Narrow bits (an i8) to f32: moved to f32's fields and scaled, which is exact and gets subnormals
 * right. */
static MlirValue widen(tw_emitter_t *e, MlirValue bits, MlirType element) {
  if (twg_has_narrow_conversion(e, element)) {
    MlirValue out[2];
    twg_widen_pair(e, element, (MlirValue[]){bits, bits}, out);
    return out[0];
  }
  MlirValue x = twg_cast(e, "llvm.zext", e->i32, bits);
  if (mlirTypeIsAFloat8E8M0FNU(element)) { /* a bare exponent: 0 is 2^-127, 255 is NaN */
    MlirValue normal = twg_binary(e, "llvm.shl", x, twg_const_i32(e, 23));
    MlirValue lowest = twg_icmp(e, TW_EQ, x, twg_const_i32(e, 0));
    MlirValue nan = twg_icmp(e, TW_EQ, x, twg_const_i32(e, 255));
    normal = twg_select(e, lowest, twg_const_i32(e, 0x00400000), normal);
    return twg_bitcast(e, twg_select(e, nan, twg_const_i32(e, 0x7FC00000), normal), e->f32);
  }
  tw_narrow_t f = tw_narrow_format(element);
  int width = 1 + f.exponent_bits + f.mantissa_bits;
  MlirValue magnitude = twg_binary(e, "llvm.and", x, twg_const_i32(e, (1 << (width - 1)) - 1));
  MlirValue moved = twg_binary(e, "llvm.shl", magnitude, twg_const_i32(e, 23 - f.mantissa_bits));
  MlirValue value =
      twg_binary(e, "llvm.fmul", twg_bitcast(e, moved, e->f32), twg_const_float(e, e->f32, ldexp(1, 127 - f.bias)));
  if (f.inf >= 0)
    value = twg_select(e, twg_icmp(e, TW_EQ, magnitude, twg_const_i32(e, f.inf)), twg_const_float(e, e->f32, INFINITY),
                       value);
  if (f.nan >= 0) {
    uint32_t last = f.inf >= 0 ? (uint32_t)f.inf : f.top;
    value =
        twg_select(e, twg_icmp(e, TW_UGT, magnitude, twg_const_i32(e, last)), twg_const_float(e, e->f32, NAN), value);
  }
  MlirValue sign = twg_binary(e, "llvm.shl", twg_binary(e, "llvm.and", x, twg_const_i32(e, 1 << (width - 1))),
                              twg_const_i32(e, 32 - width));
  return twg_bitcast(e, twg_binary(e, "llvm.or", twg_bitcast(e, value, e->i32), sign), e->f32);
}

/* f32 to a bare exponent: the nearest power of two, halfway up; what is not positive or too large is
 * NaN. 2^-127, code 0, is subnormal in f32: half of 2^-126, code 1. */
static MlirValue to_exponent(tw_emitter_t *e, MlirValue x) {
  MlirValue bits = twg_bitcast(e, x, e->i32);
  MlirValue code =
      twg_binary(e, "llvm.lshr", twg_binary(e, "llvm.add", bits, twg_const_i32(e, 0x400000)), twg_const_i32(e, 23));
  MlirValue above = twg_cast(e, "llvm.zext", e->i32, twg_icmp(e, TW_UGE, bits, twg_const_i32(e, 0x600000)));
  code = twg_select(e, twg_icmp(e, TW_ULT, bits, twg_const_i32(e, 0x800000)), above, code);
  MlirValue positive = twg_fcmp(e, TW_OGT, x, twg_const_float(e, e->f32, 0));
  return twg_cast(e, "llvm.trunc", e->i8, twg_select(e, positive, code, twg_const_i32(e, 255)));
}

/* f32 to narrow bits: nearest even; past the top infinity where there is one, the top else. */
static MlirValue narrow_down(tw_emitter_t *e, MlirValue x, MlirType element) {
  if (twg_has_narrow_conversion(e, element)) {
    MlirValue out[2];
    twg_narrow_pair(e, element, (MlirValue[]){x, x}, out);
    return out[0];
  }
  if (mlirTypeIsAFloat8E8M0FNU(element))
    return to_exponent(e, x);
  tw_narrow_t f = tw_narrow_format(element);
  int width = 1 + f.exponent_bits + f.mantissa_bits, drop = 23 - f.mantissa_bits;
  MlirValue bits = twg_bitcast(e, x, e->i32);
  MlirValue magnitude = twg_binary(e, "llvm.and", bits, twg_const_i32(e, 0x7FFFFFFF));
  MlirValue absolute = twg_bitcast(e, magnitude, e->f32);
  /* normal: round by integer addition, then move the exponent's bias */
  MlirValue odd =
      twg_binary(e, "llvm.and", twg_binary(e, "llvm.lshr", magnitude, twg_const_i32(e, drop)), twg_const_i32(e, 1));
  MlirValue half = twg_binary(e, "llvm.add", twg_const_i32(e, (1 << (drop - 1)) - 1), odd);
  MlirValue normal = twg_binary(e, "llvm.lshr", twg_binary(e, "llvm.add", magnitude, half), twg_const_i32(e, drop));
  normal = twg_binary(e, "llvm.sub", normal, twg_const_i32(e, (127 - f.bias) << f.mantissa_bits));
  /* subnormal: adding a number whose last place is ours lets the adder round */
  MlirValue magic = twg_const_float(e, e->f32, ldexp(1, 1 - f.bias - f.mantissa_bits + 23));
  MlirValue tiny = twg_binary(e, "llvm.sub", twg_bitcast(e, twg_binary(e, "llvm.fadd", absolute, magic), e->i32),
                              twg_bitcast(e, magic, e->i32));
  MlirValue is_tiny = twg_fcmp(e, TW_OLT, absolute, twg_const_float(e, e->f32, ldexp(1, 1 - f.bias)));
  MlirValue out = twg_select(e, is_tiny, tiny, normal);
  MlirValue past = twg_icmp(e, TW_SGT, normal, twg_const_i32(e, f.top));
  out = twg_select(e, twg_binary(e, "llvm.and", past, twg_icmp(e, TW_UGE, magnitude, twg_const_i32(e, 0x3F000000))),
                   twg_const_i32(e, f.inf >= 0 ? f.inf : (int64_t)f.top), out);
  if (f.nan >= 0)
    out = twg_select(e, twg_fcmp(e, TW_UNO, x, x), twg_const_i32(e, f.nan), out);
  MlirValue sign = twg_binary(e, "llvm.and", twg_binary(e, "llvm.lshr", bits, twg_const_i32(e, 32 - width)),
                              twg_const_i32(e, 1 << (width - 1)));
  return twg_cast(e, "llvm.trunc", e->i8, twg_binary(e, "llvm.or", out, sign));
}

/* To a multiple of the last place by integer addition: half of it, less what keeps an even tie. Infinity stays. */
static MlirValue round_bits(tw_emitter_t *e, MlirValue x, int drop) {
  MlirValue bits = twg_bitcast(e, x, e->i32);
  MlirValue odd =
      twg_binary(e, "llvm.and", twg_binary(e, "llvm.lshr", bits, twg_const_i32(e, drop)), twg_const_i32(e, 1));
  MlirValue half = twg_binary(e, "llvm.add", odd, twg_const_i32(e, (1 << (drop - 1)) - 1));
  MlirValue sum = twg_binary(e, "llvm.add", bits, half);
  MlirValue rounded = twg_bitcast(e, twg_binary(e, "llvm.and", sum, twg_const_i32(e, -(1 << drop))), e->f32);
  return twg_select(e, twg_fcmp(e, TW_UNO, x, x), twg_const_float(e, e->f32, NAN), rounded);
}

/* tf32 keeps 10 bits of mantissa, to the nearest, ties to even. Before sm_90 the hardware rounds ties away from zero
 * only (cvt.rna): there six instructions of integers take the place of one. */
static MlirValue round_tf32(tw_emitter_t *e, MlirValue x) {
  enum { DROPPED = 13 };
  tw_gpu_target_t target = tw_gpu_target_of(e->module);
  if (!tw_gpu_has(&target, TW_GPU_CVT_TF32_EVEN))
    return round_bits(e, x, DROPPED);
  MlirValue bits = twg_asm(e, "cvt.rn.tf32.f32 $0, $1;", "=r,f", e->i32, 1, &x, TW_PTX_NOTHING);
  return twg_bitcast(e, bits, e->f32);
}

MlirValue twg_convert_float(tw_emitter_t *e, MlirValue x, MlirType from, MlirType to) {
  if (mlirTypeEqual(from, to))
    return x;
  if (tw_is_narrow(from)) {
    x = widen(e, x, from);
    from = e->f32;
  } else if (mlirTypeIsATF32(from)) {
    from = e->f32;
  }
  MlirType target = tw_is_narrow(to) || mlirTypeIsATF32(to) ? e->f32 : to;
  int have = (int)mlirFloatTypeGetWidth(from), want = (int)mlirFloatTypeGetWidth(target);
  if (have == want && !mlirTypeEqual(from, target)) { /* f16 <-> bf16 */
    x = twg_cast(e, "llvm.fpext", e->f32, x);
    have = 32;
  }
  if (have != want)
    x = twg_cast(e, have < want ? "llvm.fpext" : "llvm.fptrunc", target, x);
  if (tw_is_narrow(to))
    return narrow_down(e, x, to);
  return mlirTypeIsATF32(to) ? round_tf32(e, x) : x;
}

void twg_truncate_pair(tw_emitter_t *e, MlirType to, const MlirValue x[2], MlirValue out[2]) {
  MlirValue pair = twg_cast(e, "llvm.fptrunc", twg_vector_type(to, 2), twg_pack(e, e->f32, 2, x));
  out[0] = twg_unpack(e, pair, 0, to);
  out[1] = twg_unpack(e, pair, 1, to);
}

static MlirValue widen_half(tw_emitter_t *e, MlirValue word, int place) {
  return twg_bitcast(e,
                     place == 0 ? twg_binary(e, "llvm.shl", word, twg_const_i32(e, 16))
                                : twg_binary(e, "llvm.and", word, twg_const_i32(e, (int32_t)0xFFFF0000)),
                     e->f32);
}

/* bf16 is the upper half of f32: one instruction for each element that is half of a word, of one word or of two, and
 * the same one wherever else the element is widened. */
static bool widen_bf16_pair(tw_emitter_t *e, const MlirValue x[2], MlirValue out[2]) {
  MlirValue both = twg_word_behind(e, 2, x), words[2] = {both, both};
  int place[2] = {0, 1};
  for (int i = 0; i < 2 && !both.ptr; i++)
    words[i] = twg_word_around(e, x[i], &place[i]);
  if (!words[0].ptr && !words[1].ptr)
    return false;
  for (int i = 0; i < 2; i++)
    out[i] = words[i].ptr ? widen_half(e, words[i], place[i]) : twg_cast(e, "llvm.fpext", e->f32, x[i]);
  return true;
}

bool twg_convert_pair(tw_emitter_t *e, MlirType from, MlirType to, const MlirValue x[2], MlirValue out[2]) {
  if (mlirTypeIsAF32(from) && (mlirTypeIsAF16(to) || mlirTypeIsABF16(to)))
    twg_truncate_pair(e, to, x, out);
  else if (mlirTypeIsAF32(from) && twg_has_narrow_conversion(e, to))
    twg_narrow_pair(e, to, x, out);
  else if (mlirTypeIsAF32(to) && twg_has_narrow_conversion(e, from))
    twg_widen_pair(e, from, x, out);
  else
    return mlirTypeIsABF16(from) && mlirTypeIsAF32(to) && widen_bf16_pair(e, x, out);
  return true;
}
