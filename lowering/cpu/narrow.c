/* narrow.c - number formats below f32, as integer arithmetic on f32 bits
 *
 * A format is sign (or none), exponent, mantissa. Encoding: the exponent range is shifted and the mantissa rounded to
 * nearest even by integers; below the smallest normal number the float addition of a large constant rounds instead.
 * Formats without infinity saturate. f16 and bf16 have shorter ways; f64 is first rounded to odd in f32, so that the
 * second rounding is right. */
#include "lowering/cpu/cpu.h"

#include <math.h>

typedef struct {
  int exponent, mantissa, bias;
  double largest; /* finite */
  bool infinity;
  int64_t nan; /* bits; -1: none */
} format_t;

static const format_t e4m3 = {4, 3, 7, 448, false, 0x7f};
static const format_t e5m2 = {5, 2, 15, 57344, true, 0x7e};
static const format_t f16 = {5, 10, 15, 65504, true, 0x7e00}; /* where no instruction converts it */
static const format_t e2m1 = {2, 1, 1, 6, false, -1};

static const format_t *format_of(MlirType element) {
  if (mlirTypeIsAF16(element))
    return &f16;
  if (mlirTypeIsAFloat8E4M3FN(element))
    return &e4m3;
  if (mlirTypeIsAFloat8E5M2(element))
    return &e5m2;
  return mlirTypeIsAFloat4E2M1FN(element) ? &e2m1 : NULL;
}

bool cpu_is_narrow(MlirType element) {
  return mlirTypeIsAFloat(element) && !mlirTypeIsAF32(element) && !mlirTypeIsAF64(element);
}

static MlirValue i32_const(cpu_t *cx, MlirValue like, int64_t value) {
  return cpu_int_const(cx, cpu_like(like, cpu_int(cx, 32)), value);
}

static MlirValue as_int(cpu_t *cx, MlirValue x) { return cpu_bits(cx, x, cpu_int(cx, 32)); }
static MlirValue as_float(cpu_t *cx, MlirValue x) { return cpu_bits(cx, x, cpu_f32(cx)); }
static MlirValue is_nan(cpu_t *cx, MlirValue x) { return cpu_cmpf(cx, CPU_UNO, x, x); }

/* The bits of a float, rounded to nearest even at the lowest `drop` bits of the mantissa. These bits are not
 * cleared. */
static MlirValue round_bits(cpu_t *cx, MlirValue bits, int drop) {
  MlirValue odd = cpu_bin_i(cx, "arith.andi", cpu_bin_i(cx, "arith.shrui", bits, drop), 1);
  MlirValue half = cpu_bin_i(cx, "arith.addi", odd, ((int64_t)1 << (drop - 1)) - 1);
  return cpu_bin(cx, "arith.addi", bits, half);
}

/* f32 to the f32 with `drop` zero bits; NaN stays NaN. */
static MlirValue round_mantissa(cpu_t *cx, MlirValue x, int drop) {
  MlirValue bits = as_int(cx, x), quiet = cpu_bin_i(cx, "arith.ori", bits, 0x00400000);
  bits = cpu_select(cx, is_nan(cx, x), quiet, round_bits(cx, bits, drop));
  return as_float(cx, cpu_bin_i(cx, "arith.andi", bits, -((int64_t)1 << drop)));
}

/* --- by format ------------------------------------------------------------------------------------------- */

static MlirValue encode(cpu_t *cx, MlirValue x, const format_t *f) {
  MlirValue bits = as_int(cx, x);
  MlirValue magnitude = as_float(cx, cpu_bin_i(cx, "arith.andi", bits, 0x7fffffff));
  /* Anything above rounds to infinity, or saturates. */
  double top = f->infinity ? ldexp(1, 1 << (f->exponent - 1)) : f->largest;
  MlirValue limit = cpu_float_const(cx, mlirValueGetType(x), top);
  MlirValue clamped = cpu_select(cx, cpu_cmpf(cx, CPU_OLT, magnitude, limit), magnitude, limit);
  int drop = 23 - f->mantissa;
  MlirValue normal = cpu_bin_i(cx, "arith.shrui", round_bits(cx, as_int(cx, clamped), drop), drop);
  normal = cpu_bin_i(cx, "arith.subi", normal, (int64_t)(127 - f->bias) << f->mantissa);
  /* One unit in the last place of this constant is the smallest subnormal number. */
  double magic = ldexp(1, 23 + (1 - f->bias) - f->mantissa);
  MlirValue shifted = cpu_bin_f(cx, "arith.addf", clamped, magic);
  MlirValue magic_bits = as_int(cx, cpu_float_const(cx, mlirValueGetType(x), magic));
  MlirValue subnormal = cpu_bin(cx, "arith.subi", as_int(cx, shifted), magic_bits);
  MlirValue smallest = cpu_float_const(cx, mlirValueGetType(x), ldexp(1, 1 - f->bias));
  MlirValue code = cpu_select(cx, cpu_cmpf(cx, CPU_OLT, clamped, smallest), subnormal, normal);
  int width = 1 + f->exponent + f->mantissa;
  if (f->nan >= 0)
    code = cpu_select(cx, is_nan(cx, x), i32_const(cx, x, f->nan), code);
  MlirValue sign = cpu_bin_i(cx, "arith.shrui", bits, 32 - width);
  return cpu_bin(cx, "arith.ori", code, cpu_bin_i(cx, "arith.andi", sign, (int64_t)1 << (width - 1)));
}

static MlirValue decode(cpu_t *cx, MlirValue code, const format_t *f) {
  int width = f->exponent + f->mantissa; /* without the sign */
  MlirValue magnitude = cpu_bin_i(cx, "arith.andi", code, ((int64_t)1 << width) - 1);
  MlirValue sign = cpu_bin_i(cx, "arith.andi", code, (int64_t)1 << width);
  /* As the bits of an f32 whose exponent is too low by the difference of the biases. */
  MlirValue low = as_float(cx, cpu_bin_i(cx, "arith.shli", magnitude, 23 - f->mantissa));
  MlirValue x = as_int(cx, cpu_bin_f(cx, "arith.mulf", low, ldexp(1, 127 - f->bias)));
  if (f->infinity) {
    MlirValue special = cpu_cmpi(cx, CPU_UGE, magnitude, i32_const(cx, code, ((1 << f->exponent) - 1) << f->mantissa));
    MlirValue high = cpu_bin_i(cx, "arith.ori", as_int(cx, low), 0x7f800000);
    x = cpu_select(cx, special, high, x);
  } else if (f->nan >= 0) {
    x = cpu_select(cx, cpu_cmpi(cx, CPU_EQ, magnitude, i32_const(cx, code, f->nan)), i32_const(cx, code, 0x7fc00000),
                   x);
  }
  return as_float(cx, cpu_bin(cx, "arith.ori", x, cpu_bin_i(cx, "arith.shli", sign, 31 - width)));
}

/* e8m0: powers of two from 2^-127, halfway rounds up. 0xff is NaN, as is anything too large, negative or zero. */
static MlirValue encode_scale(cpu_t *cx, MlirValue x) {
  MlirValue bits = as_int(cx, x);
  MlirValue code = cpu_bin_i(cx, "arith.shrui", cpu_bin_i(cx, "arith.addi", bits, 0x400000), 23);
  /* 2^-127, code 0, is subnormal in f32: half of 2^-126, code 1. */
  MlirValue above = cpu_cmpi(cx, CPU_UGE, bits, i32_const(cx, x, 0x600000));
  MlirValue subnormal = cpu_cmpi(cx, CPU_ULT, bits, i32_const(cx, x, 0x800000));
  code = cpu_select(cx, subnormal, cpu_cast(cx, "arith.extui", above, cpu_int(cx, 32)), code);
  MlirValue positive = cpu_cmpf(cx, CPU_OGT, x, cpu_float_const(cx, mlirValueGetType(x), 0));
  return cpu_select(cx, positive, code, i32_const(cx, x, 0xff));
}

static MlirValue decode_scale(cpu_t *cx, MlirValue code) {
  MlirValue bits = cpu_bin_i(cx, "arith.shli", code, 23);
  MlirValue zero = cpu_cmpi(cx, CPU_EQ, code, i32_const(cx, code, 0));
  MlirValue nan = cpu_cmpi(cx, CPU_EQ, code, i32_const(cx, code, 0xff));
  bits = cpu_select(cx, zero, i32_const(cx, code, 0x00400000), bits);
  return as_float(cx, cpu_select(cx, nan, i32_const(cx, code, 0x7fc00000), bits));
}

/* --- the four doors ---------------------------------------------------------------------------------------- */

MlirValue cpu_narrow_bits(cpu_t *cx, MlirValue x, MlirType element) {
  if (mlirTypeIsATF32(element))
    return as_int(cx, x);
  if (mlirTypeIsABF16(element)) /* x is representable: its upper half */
    return cpu_cast(cx, "arith.trunci", cpu_bin_i(cx, "arith.shrui", as_int(cx, x), 16), cpu_int(cx, 16));
  if (mlirTypeIsAF16(element) && cx->f16c)
    return cpu_bits(cx, cpu_cast(cx, "arith.truncf", x, mlirF16TypeGet(cx->context)), cpu_int(cx, 16));
  const format_t *format = format_of(element);
  MlirValue code = format ? encode(cx, x, format) : encode_scale(cx, x);
  return cpu_cast(cx, "arith.trunci", code, cpu_int(cx, mlirTypeIsAF16(element) ? 16 : 8));
}

MlirValue cpu_widen_bits(cpu_t *cx, MlirValue bits, MlirType element) {
  if (mlirTypeIsATF32(element))
    return cpu_round(cx, as_float(cx, bits), element);
  if (mlirTypeIsAF16(element) && cx->f16c)
    return cpu_cast(cx, "arith.extf", cpu_bits(cx, bits, mlirF16TypeGet(cx->context)), cpu_f32(cx));
  MlirValue wide = cpu_cast(cx, "arith.extui", bits, cpu_int(cx, 32));
  if (mlirTypeIsABF16(element))
    return as_float(cx, cpu_bin_i(cx, "arith.shli", wide, 16));
  const format_t *format = format_of(element);
  return format ? decode(cx, wide, format) : decode_scale(cx, wide);
}

MlirValue cpu_round(cpu_t *cx, MlirValue x, MlirType element) {
  if (!cpu_is_narrow(element))
    return x;
  if (mlirTypeIsABF16(element))
    return round_mantissa(cx, x, 16);
  if (mlirTypeIsATF32(element))
    return round_mantissa(cx, x, 13);
  return cpu_widen_bits(cx, cpu_narrow_bits(cx, x, element), element);
}

/* To odd: toward zero, with the last bit set where that was inexact. */
MlirValue cpu_round_f64(cpu_t *cx, MlirValue x, MlirType element) {
  MlirValue nearest = cpu_cast(cx, "arith.truncf", x, cpu_f32(cx));
  MlirValue back = cpu_cast(cx, "arith.extf", nearest, cpu_f64(cx));
  MlirValue bits = as_int(cx, nearest), mask = cpu_int_const(cx, cpu_like(x, cpu_int(cx, 64)), INT64_MAX);
  MlirType i64 = cpu_int(cx, 64);
  MlirValue size = cpu_bin(cx, "arith.andi", cpu_bits(cx, x, i64), mask);
  MlirValue size_back = cpu_bin(cx, "arith.andi", cpu_bits(cx, back, i64), mask);
  MlirValue too_far = cpu_cmpi(cx, CPU_UGT, size_back, size);
  bits = cpu_select(cx, too_far, cpu_bin_i(cx, "arith.subi", bits, 1), bits);
  MlirValue inexact = cpu_cmpi(cx, CPU_NE, size_back, size);
  bits = cpu_select(cx, inexact, cpu_bin_i(cx, "arith.ori", bits, 1), bits);
  MlirValue odd = cpu_select(cx, cpu_cmpf(cx, CPU_UNO, x, x), nearest, as_float(cx, bits));
  return cpu_round(cx, odd, element);
}
