/* numbers.c - what is in bits: narrow formats, sums of the tensor core, and what instructions approximate or round */
#include "threads.h"

#include <fenv.h>
#include <math.h>

double small_float(unsigned bits, int exponent_bits, int mantissa_bits) {
  int bias = (1 << (exponent_bits - 1)) - 1, e = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  int m = bits & ((1 << mantissa_bits) - 1), s = bits >> (exponent_bits + mantissa_bits) & 1;
  double v = e ? ldexp(m + (1 << mantissa_bits), e - bias - mantissa_bits) : ldexp(m, 1 - bias - mantissa_bits);
  if (exponent_bits == 5 && e == 31)
    v = m ? NAN : INFINITY;
  if (exponent_bits == 4 && e == 15 && m == 7)
    v = NAN;
  return s ? -v : v;
}

double element(const char *type, const unsigned char *at, int i) {
  if (!strcmp(type, "f64"))
    return ((const double *)at)[i];
  if (!strcmp(type, "f32"))
    return ((const float *)at)[i];
  if (!strcmp(type, "s32"))
    return ((const int32_t *)at)[i];
  if (!strcmp(type, "s8"))
    return ((const int8_t *)at)[i];
  if (!strcmp(type, "u8"))
    return at[i];
  if (!strcmp(type, "e4m3"))
    return small_float(at[i], 4, 3);
  if (!strcmp(type, "e5m2"))
    return small_float(at[i], 5, 2);
  if (!strcmp(type, "f16"))
    return small_float(((const uint16_t *)at)[i], 5, 10);
  uint32_t bits = !strcmp(type, "bf16") ? (uint32_t)((const uint16_t *)at)[i] << 16
                                        : ((const uint32_t *)at)[i] & 0xFFFFE000u; /* tf32 */
  float f;
  memcpy(&f, &bits, 4);
  return f;
}

int bits_of(const char *type) {
  return strstr(type, "64") ? 64 : strstr(type, "32") ? 32 : strstr(type, "16") ? 16 : 8;
}

/* What the tensor core adds up of 8-bit floats: it aligns products to the largest and keeps 13 bits after its first. */
double sum_of_narrow(double sum, const double *product, int count) {
  enum { KEPT = 13 };
  double largest = fabs(sum);
  int exponent;
  for (int i = 0; i < count; i++)
    largest = fabs(product[i]) > largest ? fabs(product[i]) : largest;
  if (largest == 0 || !isfinite(largest))
    exponent = 0;
  else
    frexp(largest, &exponent);
  double unit = ldexp(1, exponent - 1 - KEPT), total = 0;
  if (!isfinite(largest))
    unit = 0;
  for (int i = -1; i < count; i++) {
    double x = i < 0 ? sum : product[i];
    total += unit > 0 ? trunc(x / unit) * unit : x;
  }
  return total;
}

/* prmt: four of the eight bytes of two words, by the digits of the selector. */
uint32_t emu_prmt(uint32_t low, uint32_t high, uint32_t selector) {
  uint64_t both = (uint64_t)high << 32 | low;
  uint32_t out = 0;
  for (int i = 0; i < 4; i++)
    out |= (uint32_t)(both >> 8 * (selector >> 4 * i & 7) & 0xFF) << 8 * i;
  return out;
}

/* ---- what instructions approximate -------------------------------------------------------------------- */

/* The hardware's results lie about the right ones, as far off as the PTX ISA allows. Here they are that far off, on a
 * side that the operand's bits choose, so that a formula which makes such an error larger shows. What is one or exact
 * there is here. */
static double side_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  bits = (bits ^ bits >> 15) * 0x2c1b3c6du;
  return (bits ^ bits >> 12) & 1 ? 1 : -1;
}

static float off_by(double relative, double right, float x) {
  int exponent;
  bool kept = right == 0 || !isfinite(right) || fabs(frexp(right, &exponent)) == 0.5;
  return (float)(kept ? right : right * (1 + side_of(x) * relative));
}

float emu_flush(float x) { return fabsf(x) < 0x1p-126F ? x * 0 : x; }
/* Two units in the last place, as CUDA's guide says of exp2f, which is this instruction where tiny floats are zeros. */
float emu_ex2(float x) {
  int exponent;
  double part = frexp(exp2(x), &exponent);
  return off_by(0x1p-23 / part, exp2(x), x);
}
float emu_ex2_ftz(float x) { return emu_flush(emu_ex2(x)); }
float emu_lg2(float x) {
  double right = log2(x), error = x > 0.5 && x < 2 ? 0x1p-22 : fabs(right) * 0x1p-22;
  return (float)(x == 1 || !isfinite(right) ? right : right + side_of(x) * error);
}
/* At most an ulp off, and of a significand of ones the nearest float: so it is of all significands on an H200. From no
 * other one do Newton's steps come to the nearest there. */
float emu_rcp(float x) {
  int exponent;
  bool ones = fabsf(frexpf(x, &exponent)) == 0x1.fffffep-1F;
  return ones ? (float)(1 / (double)x) : off_by(0x1p-23, 1 / (double)x, x);
}
float emu_rsqrt(float x) { return off_by(0x1p-23, 1 / sqrt((double)x), x); }
float emu_tanh(float x) { return off_by(0x1p-11, tanh(x), x); }
float emu_sqrt(float x) { return off_by(0x1p-23, sqrt((double)x), x); }
/* In absolute terms, as the hardware's from -pi to pi. */
float emu_sin(float x) { return (float)(sin(x) + side_of(x) * 0x1p-21); }
float emu_cos(float x) { return (float)(cos(x) + side_of(x) * 0x1p-21); }
/* div.full */
float emu_div(float x, float y) {
  double right = (double)x / y;
  int exponent;
  bool exact = isinf(right) || isnan(right) || right == 0 || fabsf(frexpf(y, &exponent)) == 0.5F;
  return exact ? (float)right : off_by(0x1p-22, right, x * 0.7F + y);
}
/* fma.rn.sat: NaN is 0. */
float emu_sat(float x, float y, float z) { return fminf(fmaxf(fmaf(x, y, z), 0), 1); }
/* fma.rm: rounds down. */
float emu_rm(float x, float y, float z) {
  double exact = (double)x * y + z;
  float near = (float)exact;
  return near > exact ? nextafterf(near, -INFINITY) : near;
}
/* The host's own rounding modes: what the compiler's code does is done another way. */
#define EMU_ROUNDED(name, type, letter, mode, host, given, expression)                                                 \
  type emu_##name##_##mode##_##letter given {                                                                          \
    int before = fegetround();                                                                                         \
    fesetround(host);                                                                                                  \
    volatile type result = expression;                                                                                 \
    fesetround(before);                                                                                                \
    return result;                                                                                                     \
  }
#define EMU_ROUNDED_ALL(type, letter, root, mode, host)                                                                \
  EMU_ROUNDED(add, type, letter, mode, host, (volatile type x, volatile type y), x + y)                                \
  EMU_ROUNDED(mul, type, letter, mode, host, (volatile type x, volatile type y), x *y)                                 \
  EMU_ROUNDED(div, type, letter, mode, host, (volatile type x, volatile type y), x / y)                                \
  EMU_ROUNDED(sqrt, type, letter, mode, host, (volatile type x), root(x))
#define EMU_ROUNDED_BOTH(mode, host)                                                                                   \
  EMU_ROUNDED_ALL(float, f, sqrtf, mode, host)                                                                         \
  EMU_ROUNDED_ALL(double, d, sqrt, mode, host)
EMU_ROUNDED_BOTH(rn, FE_TONEAREST)
EMU_ROUNDED_BOTH(rz, FE_TOWARDZERO)
EMU_ROUNDED_BOTH(rm, FE_DOWNWARD)
EMU_ROUNDED_BOTH(rp, FE_UPWARD)
/* cvt.rn.tf32: ties to even, by the double that ends where a tf32 does. */
int32_t emu_tf32(float x) {
  int exponent;
  if (isnan(x))
    return 0x7FFFFFFF;
  (void)frexpf(x, &exponent);
  exponent = exponent < -125 ? -125 : exponent; /* subnormal */
  double unit = ldexp(1, exponent - 11);
  float rounded = isinf(x) ? x : copysignf((float)(nearbyint((double)x / unit) * unit), x);
  uint32_t bits;
  memcpy(&bits, &rounded, 4);
  return (int32_t)bits;
}

/* cvt.rn.satfinite: the nearest finite number, the even one of two. */
int32_t emu_narrow(const char *type, float x) {
  int e5m2 = !strcmp(type, "e5m2"), top = e5m2 ? 0x7B : 0x7E, best = 0;
  if (isnan(x))
    return 0x7F;
  for (int bits = 1; bits <= top; bits++) {
    double now = fabs(fabs(x) - small_float((unsigned)bits, e5m2 ? 5 : 4, e5m2 ? 2 : 3)),
           least = fabs(fabs(x) - small_float((unsigned)best, e5m2 ? 5 : 4, e5m2 ? 2 : 3));
    if (now < least || (now == least && bits % 2 == 0) || isinf(x))
      best = bits;
  }
  return best | (signbit(x) ? 0x80 : 0);
}

int32_t emu_widen(const char *type, int32_t pair) {
  unsigned out = 0;
  for (int i = 0; i < 2; i++) {
    unsigned char byte = (unsigned char)(pair >> 8 * i);
    _Float16 half = (_Float16)element(type, &byte, 0);
    uint16_t bits;
    memcpy(&bits, &half, 2);
    out |= (unsigned)bits << 16 * i;
  }
  return (int32_t)out;
}
