/* math.c - functions of real numbers
 *
 * LLVM makes one libm call a lane of llvm.exp and its like, so that the common ones are written out here. The others,
 * angles of f64 among them, are those calls. Polynomials for f32 are fitted; those for f64 are Taylor or atanh series,
 * cut where a term no longer shows in 53 bits. */
#include "lowering/cpu/cpu.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A function of LLVM by name, on the type of x: an instruction, or calls of libm. */
static MlirValue llvm_function(cpu_t *cx, const char *name, int num, const MlirValue *x) {
  char full[64];
  int lanes = cpu_lanes_of(x[0]);
  const char *element = mlirTypeIsAF64(cpu_element(x[0])) ? "f64" : "f32";
  if (lanes > 1)
    snprintf(full, sizeof full, "llvm.%s.v%d%s", name, lanes, element);
  else
    snprintf(full, sizeof full, "llvm.%s.%s", name, element);
  return cpu_intrinsic(cx, full, mlirValueGetType(x[0]), num, x);
}

/* p[0] + p[1] x + …, by fused multiply-adds. */
static MlirValue polynomial(cpu_t *cx, MlirValue x, int num, const double *p) {
  MlirType type = mlirValueGetType(x);
  MlirValue y = cpu_float_const(cx, type, p[num - 1]);
  for (int i = num - 2; i >= 0; i--)
    y = cpu_fma(cx, y, x, cpu_float_const(cx, type, p[i]));
  return y;
}

static MlirValue float_const(cpu_t *cx, MlirValue like, double value) {
  return cpu_float_const(cx, mlirValueGetType(like), value);
}

static MlirValue is_nan(cpu_t *cx, MlirValue x) { return cpu_cmpf(cx, CPU_UNO, x, x); }

/* An integral float as an integer; any will do for NaN, which the result of the function stays by its other factor. */
static MlirValue to_int(cpu_t *cx, MlirValue n) {
  MlirValue finite = cpu_select(cx, is_nan(cx, n), float_const(cx, n, 0), n);
  return cpu_cast(cx, "arith.fptosi", finite, cpu_int(cx, 32));
}

/* --- exp, exp2: 2^n times a polynomial of the rest; for f32 fitted at Chebyshev points, about 0.8 ulp ---------- */

static bool is_f64(MlirValue x) { return mlirTypeIsAF64(cpu_element(x)); }

/* 2^n as a float, for integers n that are exponents of normal floats. */
static MlirValue power_of_two(cpu_t *cx, MlirValue n, bool wide) {
  if (wide)
    n = cpu_cast(cx, "arith.extsi", n, cpu_int(cx, 64));
  MlirValue bits = cpu_bin_i(cx, "arith.shli", cpu_bin_i(cx, "arith.addi", n, wide ? 1023 : 127), wide ? 52 : 23);
  return cpu_bits(cx, bits, wide ? cpu_f64(cx) : cpu_f32(cx));
}

/* x 2^n for integers n whose halves are such exponents. AVX-512 has an instruction for it; elsewhere it would be a call
 * a lane. */
static MlirValue scale(cpu_t *cx, MlirValue x, MlirValue n) {
  int lanes = cpu_lanes_of(x);
  if (cx->avx512 && lanes > 1) {
    char name[64];
    snprintf(name, sizeof name, "llvm.ldexp.v%d%s.v%di32", lanes, is_f64(x) ? "f64" : "f32", lanes);
    return cpu_intrinsic(cx, name, mlirValueGetType(x), 2, (MlirValue[]){x, n});
  }
  MlirValue half = cpu_bin_i(cx, "arith.shrsi", n, 1);
  x = cpu_bin(cx, "arith.mulf", x, power_of_two(cx, half, is_f64(x)));
  return cpu_bin(cx, "arith.mulf", x, power_of_two(cx, cpu_bin(cx, "arith.subi", n, half), is_f64(x)));
}

static MlirValue clamp(cpu_t *cx, MlirValue x, double low, double high) {
  MlirValue least = float_const(cx, x, low), most = float_const(cx, x, high);
  x = cpu_select(cx, cpu_cmpf(cx, CPU_OLT, x, least), least, x);
  return cpu_select(cx, cpu_cmpf(cx, CPU_OGT, x, most), most, x);
}

/* An exponent between two numbers. Below the lower one the power is zero, and set so in the end: to compute it, e^-inf
 * of masked scores most often, would take twenty times as long, since a CPU rounds to numbers below the normal ones in
 * microcode. */
typedef struct {
  MlirValue x, is_low;
} power_t;

static power_t power_between(cpu_t *cx, MlirValue x, double low, double high) {
  MlirValue is_low = cpu_cmpf(cx, CPU_OLT, x, float_const(cx, x, low)), most = float_const(cx, x, high);
  x = cpu_select(cx, is_low, float_const(cx, x, 0), x);
  return (power_t){cpu_select(cx, cpu_cmpf(cx, CPU_OGT, x, most), most, x), is_low};
}

static MlirValue zero_if_low(cpu_t *cx, const power_t *power, MlirValue result) {
  return cpu_select(cx, power->is_low, float_const(cx, result, 0), result);
}

/* e^r for |r| up to ln(2) / 2. */
static MlirValue exp_near_zero(cpu_t *cx, MlirValue r) {
  static const double narrow[] = {
      1, 1, 0.5000000095407969, 0.16666518600509178, 0.04166620509064614, 0.008368918062157036, 0.0013950538545095706};
  enum { TERMS = 14 };
  double wide[TERMS] = {1};
  for (int i = 1; i < TERMS; i++)
    wide[i] = wide[i - 1] / i;
  return is_f64(r) ? polynomial(cx, r, TERMS, wide) : polynomial(cx, r, 7, narrow);
}

/* e^x 2^shift, which may be a number where e^x is none. */
static MlirValue exp_shifted(cpu_t *cx, MlirValue x, int shift) {
  bool wide = is_f64(x);
  power_t power = wide ? power_between(cx, x, -746, 711) : power_between(cx, x, -104, 90);
  x = power.x;
  MlirValue n = cpu_un(cx, "math.roundeven", cpu_bin_f(cx, "arith.mulf", x, 1.4426950408889634));
  /* ln 2 in two parts */
  MlirValue r = cpu_fma(cx, n, float_const(cx, x, wide ? -0x1.62e42fefa3800p-1 : -0.693359375), x);
  r = cpu_fma(cx, n, float_const(cx, x, wide ? -0x1.ef35793c76730p-45 : 2.12194440e-4), r);
  MlirValue result = scale(cx, exp_near_zero(cx, r), cpu_bin_i(cx, "arith.addi", to_int(cx, n), shift));
  return zero_if_low(cx, &power, result);
}

static MlirValue emit_exp(cpu_t *cx, MlirValue x) { return exp_shifted(cx, x, 0); }

static MlirValue emit_exp2(cpu_t *cx, MlirValue x) {
  static const double narrow[] = {1,
                                  0.6931471880289446,
                                  0.24022651084123364,
                                  0.055503571055101016,
                                  0.009618030785306394,
                                  0.0013390866849945302,
                                  0.00015469730477273252};
  bool wide = is_f64(x);
  power_t power = wide ? power_between(cx, x, -1076, 1025) : power_between(cx, x, -151, 129);
  x = power.x;
  MlirValue n = cpu_un(cx, "math.roundeven", x), rest = cpu_bin(cx, "arith.subf", x, n);
  MlirValue p =
      wide ? exp_near_zero(cx, cpu_bin_f(cx, "arith.mulf", rest, 0.6931471805599453)) : polynomial(cx, rest, 7, narrow);
  return zero_if_low(cx, &power, scale(cx, p, to_int(cx, n)));
}

/* --- log, log2 ------------------------------------------------------------------------------------------------- */

/* x = 2^exponent (1 + t) with 1 + t between sqrt(1/2) and sqrt(2); log(1 + t) = t + rest. For finite x > 0. */
typedef struct {
  MlirValue exponent, t, rest;
} logarithm_t;

static logarithm_t split_log(cpu_t *cx, MlirValue x) {
  static const double p[] = {0.33333316727463824, -0.2500081042804897,  0.2000228608408275,  -0.16624553144395615,
                             0.14181196113361066, -0.13128767632265814, 0.12881622396680112, -0.07859545869580015};
  enum { ROOT_OF_HALF = 0x3f3504f3 }; /* as bits */
  MlirValue small = cpu_cmpf(cx, CPU_OLT, x, float_const(cx, x, 0x1p-126));
  x = cpu_select(cx, small, cpu_bin_f(cx, "arith.mulf", x, 0x1p23), x);
  MlirValue bits = cpu_bin_i(cx, "arith.subi", cpu_bits(cx, x, cpu_int(cx, 32)), ROOT_OF_HALF);
  MlirValue exponent = cpu_bin_i(cx, "arith.shrsi", bits, 23);
  MlirType ints = mlirValueGetType(exponent);
  exponent = cpu_bin(cx, "arith.subi", exponent,
                     cpu_select(cx, small, cpu_int_const(cx, ints, 23), cpu_int_const(cx, ints, 0)));
  MlirValue mantissa = cpu_bin_i(cx, "arith.addi", cpu_bin_i(cx, "arith.andi", bits, 0x7fffff), ROOT_OF_HALF);
  logarithm_t log = {.exponent = cpu_cast(cx, "arith.sitofp", exponent, cpu_f32(cx))};
  log.t = cpu_bin_f(cx, "arith.subf", cpu_bits(cx, mantissa, cpu_f32(cx)), 1);
  MlirValue square = cpu_bin(cx, "arith.mulf", log.t, log.t);
  MlirValue cubic = cpu_bin(cx, "arith.mulf", cpu_bin(cx, "arith.mulf", polynomial(cx, log.t, 8, p), log.t), square);
  log.rest = cpu_fma(cx, square, float_const(cx, x, -0.5), cubic);
  return log;
}

/* The same in f64, with 1 + t between 2/3 and 4/3: log(1 + t) = 2 atanh(u), u = t / (2 + t). */
static logarithm_t split_log_f64(cpu_t *cx, MlirValue x) {
  enum { TERMS = 12 };
  const int64_t two_thirds = INT64_C(0x3fe5555555555555); /* as bits */
  double p[TERMS];
  for (int i = 0; i < TERMS; i++)
    p[i] = 2.0 / (2 * i + 3);
  MlirValue small = cpu_cmpf(cx, CPU_OLT, x, float_const(cx, x, 0x1p-1022));
  x = cpu_select(cx, small, cpu_bin_f(cx, "arith.mulf", x, 0x1p52), x);
  MlirValue bits = cpu_bits(cx, x, cpu_int(cx, 64));
  MlirValue above =
      cpu_bin_i(cx, "arith.shrui", cpu_bin_i(cx, "arith.subi", bits, two_thirds - (INT64_C(1) << 62)), 52);
  MlirValue exponent = cpu_bin_i(cx, "arith.subi", cpu_cast(cx, "arith.trunci", above, cpu_int(cx, 32)), 1024);
  MlirValue moved = cpu_bin_i(cx, "arith.shli", cpu_cast(cx, "arith.extsi", exponent, cpu_int(cx, 64)), 52);
  logarithm_t log = {.exponent = cpu_cast(cx, "arith.sitofp", exponent, cpu_f64(cx))};
  log.exponent =
      cpu_bin(cx, "arith.subf", log.exponent, cpu_select(cx, small, float_const(cx, x, 52), float_const(cx, x, 0)));
  log.t = cpu_bin_f(cx, "arith.subf", cpu_bits(cx, cpu_bin(cx, "arith.subi", bits, moved), cpu_f64(cx)), 1);
  MlirValue u = cpu_bin(cx, "arith.divf", log.t, cpu_bin_f(cx, "arith.addf", log.t, 2));
  MlirValue square = cpu_bin(cx, "arith.mulf", u, u);
  MlirValue cubic = cpu_bin(cx, "arith.mulf", cpu_bin(cx, "arith.mulf", u, square), polynomial(cx, square, TERMS, p));
  log.rest = cpu_bin(cx, "arith.subf", cubic, cpu_bin(cx, "arith.mulf", u, log.t)); /* 2u = t - u t */
  return log;
}

/* Zero, infinity, and what has no logarithm. */
static MlirValue finish_log(cpu_t *cx, MlirValue x, MlirValue y) {
  MlirValue zero = float_const(cx, x, 0);
  y = cpu_select(cx, cpu_cmpf(cx, CPU_OEQ, x, float_const(cx, x, INFINITY)), x, y);
  y = cpu_select(cx, cpu_cmpf(cx, CPU_OEQ, x, zero), float_const(cx, x, -INFINITY), y);
  MlirValue defined = cpu_cmpf(cx, CPU_OGE, x, zero);
  return cpu_select(cx, defined, y, float_const(cx, x, NAN));
}

static MlirValue emit_log(cpu_t *cx, MlirValue x) {
  bool wide = is_f64(x);
  logarithm_t log = wide ? split_log_f64(cx, x) : split_log(cx, x);
  MlirValue low = float_const(cx, x, wide ? 0x1.ef35793c76730p-45 : -2.12194440e-4);
  MlirValue sum = cpu_bin(cx, "arith.addf", log.t, cpu_fma(cx, log.exponent, low, log.rest));
  MlirValue high = float_const(cx, x, wide ? 0x1.62e42fefa3800p-1 : 0.693359375);
  return finish_log(cx, x, cpu_fma(cx, log.exponent, high, sum));
}

static MlirValue emit_log2(cpu_t *cx, MlirValue x) {
  logarithm_t log = is_f64(x) ? split_log_f64(cx, x) : split_log(cx, x);
  MlirValue rest = cpu_bin_f(cx, "arith.mulf", log.t, 0.4426950408889634); /* log2(e) - 1 */
  rest = cpu_fma(cx, log.rest, float_const(cx, x, 1.4426950408889634), rest);
  return finish_log(cx, x, cpu_bin(cx, "arith.addf", log.exponent, cpu_bin(cx, "arith.addf", log.t, rest)));
}

/* --- sin, cos, tan ---------------------------------------------------------------------------------------------- */

/* x minus the nearest multiple of pi / 2, by way of f64, and the multiple's last two bits in an i32. */
static MlirValue reduce_angle(cpu_t *cx, MlirValue x, MlirValue *quadrant) {
  MlirValue wide = cpu_cast(cx, "arith.extf", x, cpu_f64(cx));
  MlirValue n = cpu_un(cx, "math.roundeven", cpu_bin_f(cx, "arith.mulf", wide, M_2_PI));
  MlirValue r = cpu_fma(cx, n, float_const(cx, wide, -M_PI_2), wide);
  r = cpu_fma(cx, n, float_const(cx, wide, -6.123233995736766e-17), r);
  MlirValue turns = cpu_un(cx, "math.floor", cpu_bin_f(cx, "arith.mulf", n, 0.25));
  MlirValue q = cpu_fma(cx, turns, float_const(cx, wide, -4), n);
  q = cpu_select(cx, is_nan(cx, q), float_const(cx, wide, 0), q);
  *quadrant = cpu_cast(cx, "arith.fptosi", clamp(cx, q, 0, 3), cpu_int(cx, 32));
  return cpu_cast(cx, "arith.truncf", r, cpu_f32(cx));
}

/* Sine and cosine of the rest of an angle below the limit of reduce_angle. */
typedef struct {
  MlirValue sin, cos, quadrant;
} angle_t;

static angle_t split_angle(cpu_t *cx, MlirValue x) {
  static const double s[] = {-0.16666654873265152, 0.008332173533202885, -0.0001951665472317758};
  static const double c[] = {0.041666646747316224, -0.0013887361431060398, 2.4437728178899147e-05};
  angle_t angle;
  MlirValue r = reduce_angle(cx, x, &angle.quadrant), z = cpu_bin(cx, "arith.mulf", r, r);
  angle.sin = cpu_fma(cx, cpu_bin(cx, "arith.mulf", polynomial(cx, z, 3, s), z), r, r);
  MlirValue cos = cpu_fma(cx, z, float_const(cx, x, -0.5), float_const(cx, x, 1));
  angle.cos = cpu_fma(cx, polynomial(cx, z, 3, c), cpu_bin(cx, "arith.mulf", z, z), cos);
  return angle;
}

/* With the sign turned if the bit of this number is set in an i32. */
static MlirValue turn_sign(cpu_t *cx, MlirValue x, MlirValue word, int bit) {
  MlirValue sign = cpu_bin_i(cx, "arith.shli", cpu_bin_i(cx, "arith.andi", word, 1 << bit), 31 - bit);
  return cpu_bits(cx, cpu_bin(cx, "arith.xori", cpu_bits(cx, x, cpu_int(cx, 32)), sign), cpu_f32(cx));
}

/* sin(x + shift pi / 2) */
static MlirValue sine_shifted(cpu_t *cx, MlirValue x, int shift) {
  angle_t angle = split_angle(cx, x);
  MlirValue quadrant = cpu_bin_i(cx, "arith.addi", angle.quadrant, shift);
  MlirValue odd = cpu_cast(cx, "arith.trunci", quadrant, cpu_int(cx, 1));
  return turn_sign(cx, cpu_select(cx, odd, angle.cos, angle.sin), quadrant, 1);
}

/* Of a zero its sign, too, which sums lose. */
static MlirValue where_not_zero(cpu_t *cx, MlirValue x, MlirValue odd_function) {
  return cpu_select(cx, cpu_cmpf(cx, CPU_OEQ, x, float_const(cx, x, 0)), x, odd_function);
}

static MlirValue sin_reduced(cpu_t *cx, MlirValue x) { return where_not_zero(cx, x, sine_shifted(cx, x, 0)); }
static MlirValue cos_reduced(cpu_t *cx, MlirValue x) { return sine_shifted(cx, x, 1); }

static MlirValue tan_reduced(cpu_t *cx, MlirValue x) {
  angle_t angle = split_angle(cx, x);
  MlirValue odd = cpu_cast(cx, "arith.trunci", angle.quadrant, cpu_int(cx, 1));
  MlirValue above = cpu_select(cx, odd, angle.cos, angle.sin), below = cpu_select(cx, odd, angle.sin, angle.cos);
  return where_not_zero(cx, x, turn_sign(cx, cpu_bin(cx, "arith.divf", above, below), angle.quadrant, 0));
}

/* Angles of 2^30 and more (and infinities) are rare enough for libm; and without fma the reduction isn't exact. */
static MlirValue of_angle(cpu_t *cx, const char *name, MlirValue x, MlirValue (*reduced)(cpu_t *, MlirValue)) {
  if (!cx->f16c)
    return llvm_function(cx, name, 1, &x);
  MlirValue size = llvm_function(cx, "fabs", 1, &x);
  MlirValue large = cpu_any_lane(cx, cpu_cmpf(cx, CPU_OGE, size, float_const(cx, x, 0x1p30)));
  cpu_branch_t branch = cpu_branch(cx, large);
  cpu_branch_else(cx, &branch, llvm_function(cx, name, 1, &x));
  return cpu_branch_end(cx, &branch, reduced(cx, x));
}

static MlirValue sin_f32(cpu_t *cx, MlirValue x) { return of_angle(cx, "sin", x, sin_reduced); }
static MlirValue cos_f32(cpu_t *cx, MlirValue x) { return of_angle(cx, "cos", x, cos_reduced); }
static MlirValue tan_f32(cpu_t *cx, MlirValue x) { return of_angle(cx, "tan", x, tan_reduced); }

/* --- sinh, cosh, tanh: polynomials near zero, else by exp ---------------------------------------------------- */

static MlirValue with_sign_of(cpu_t *cx, MlirValue x, MlirValue like) {
  return llvm_function(cx, "copysign", 2, (MlirValue[]){x, like});
}

static MlirValue absolute(cpu_t *cx, MlirValue x) { return llvm_function(cx, "fabs", 1, &x); }

/* y where |x| is below a limit, else z. */
static MlirValue where_small(cpu_t *cx, MlirValue x, double limit, MlirValue y, MlirValue z) {
  return cpu_select(cx, cpu_cmpf(cx, CPU_OLT, absolute(cx, x), float_const(cx, x, limit)), y, z);
}

/* x (1 + z p(z)), z = x^2 */
static MlirValue odd_polynomial(cpu_t *cx, MlirValue x, int num, const double *p) {
  MlirValue z = cpu_bin(cx, "arith.mulf", x, x);
  return cpu_fma(cx, cpu_bin(cx, "arith.mulf", polynomial(cx, z, num, p), z), x, x);
}

static MlirValue sinh_near_zero(cpu_t *cx, MlirValue x) {
  static const double narrow[] = {0.166667178273201, 0.008330211043357849, 0.0002037740487139672};
  enum { TERMS = 9 };
  double wide[TERMS], factorial = 1;
  for (int i = 0; i < TERMS; i++) {
    factorial *= (2 * i + 2) * (2 * i + 3);
    wide[i] = 1 / factorial;
  }
  return is_f64(x) ? odd_polynomial(cx, x, TERMS, wide) : odd_polynomial(cx, x, 3, narrow);
}

/* e^|x| / 2, and in `inverse` e^-|x| / 2. */
static MlirValue half_exp(cpu_t *cx, MlirValue x, MlirValue *inverse) {
  MlirValue half = exp_shifted(cx, absolute(cx, x), -1);
  *inverse = cpu_bin(cx, "arith.divf", float_const(cx, x, 0.25), half);
  return half;
}

static MlirValue emit_sinh(cpu_t *cx, MlirValue x) {
  MlirValue inverse, half = half_exp(cx, x, &inverse);
  MlirValue far = with_sign_of(cx, cpu_bin(cx, "arith.subf", half, inverse), x);
  return where_small(cx, x, 1, sinh_near_zero(cx, x), far);
}

static MlirValue emit_cosh(cpu_t *cx, MlirValue x) {
  MlirValue inverse, half = half_exp(cx, x, &inverse);
  return cpu_bin(cx, "arith.addf", half, inverse);
}

static MlirValue tanh_near_zero(cpu_t *cx, MlirValue x) {
  static const double p[] = {-0.33333283923590584, 0.13331491248512056, -0.053743495261189524, 0.020650579003117172,
                             -0.005717036560663702};
  return is_f64(x) ? cpu_bin(cx, "arith.divf", sinh_near_zero(cx, x), emit_cosh(cx, x))
                   : where_not_zero(cx, x, odd_polynomial(cx, x, 5, p));
}

static MlirValue emit_tanh(cpu_t *cx, MlirValue x) {
  MlirValue e = emit_exp(cx, cpu_bin_f(cx, "arith.mulf", absolute(cx, x), 2)), one = float_const(cx, x, 1);
  MlirValue far = cpu_bin(cx, "arith.divf", float_const(cx, x, 2), cpu_bin(cx, "arith.addf", e, one));
  far = with_sign_of(cx, cpu_bin(cx, "arith.subf", one, far), x);
  return where_small(cx, x, 0.625, tanh_near_zero(cx, x), far);
}

static MlirValue rule_vector(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  static const struct {
    MlirValue (*f32)(cpu_t *, MlirValue), (*f64)(cpu_t *, MlirValue);
    const char *name; /* of the call, for f64 */
  } functions[TW_NUM_OP_KINDS] = {
      [TW_MATH_EXP] = {emit_exp, emit_exp, NULL},    [TW_MATH_EXP2] = {emit_exp2, emit_exp2, NULL},
      [TW_MATH_LOG] = {emit_log, emit_log, NULL},    [TW_MATH_LOG2] = {emit_log2, emit_log2, NULL},
      [TW_MATH_SINH] = {emit_sinh, emit_sinh, NULL}, [TW_MATH_COSH] = {emit_cosh, emit_cosh, NULL},
      [TW_MATH_TANH] = {emit_tanh, emit_tanh, NULL}, [TW_MATH_SIN] = {sin_f32, NULL, "sin"},
      [TW_MATH_COS] = {cos_f32, NULL, "cos"},        [TW_MATH_TAN] = {tan_f32, NULL, "tan"}};
  tw_op_kind_t kind = tw_op_kind(op); /* every row below that names this rule has one */
  if (!is_f64(x[0]))
    return cpu_round(cx, functions[kind].f32(cx, x[0]), tw_result_element(op));
  return functions[kind].f64 ? functions[kind].f64(cx, x[0]) : llvm_function(cx, functions[kind].name, num, x);
}

/* --- the others -------------------------------------------------------------------------------------------------- */

/* By the name that LLVM has for math.NAME: the same, but for two. */
static MlirValue rule_llvm(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  static const char *const names[TW_NUM_OP_KINDS] = {[TW_MATH_ABSF] = "fabs", [TW_MATH_POWF] = "pow"};
  tw_op_kind_t kind = tw_op_kind(op);
  const char *name = names[kind] ? names[kind] : tw_op_rows[kind].name + strlen("math.");
  return cpu_round(cx, llvm_function(cx, name, num, x), tw_result_element(op));
}

static MlirValue rule_rsqrt(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  MlirValue root = llvm_function(cx, "sqrt", num, x);
  MlirValue one = cpu_float_const(cx, mlirValueGetType(root), 1);
  return cpu_round(cx, cpu_bin(cx, "arith.divf", one, root), tw_result_element(op));
}

static MlirValue rule_fma(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  MlirValue y = cpu_op1(cx, "math.fma", mlirValueGetType(x[0]), num, x); /* one rounding, whatever it costs */
  return cpu_round(cx, y, tw_result_element(op));
}

/* A zero of its sign in the place of a subnormal f32. */
static MlirValue rule_flush(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  (void)op;
  (void)num;
  MlirValue small = cpu_cmpf(cx, CPU_OLT, cpu_un(cx, "math.absf", x[0]), float_const(cx, x[0], 0x1p-126));
  return cpu_select(cx, small, cpu_bin_f(cx, "arith.mulf", x[0], 0), x[0]);
}

#define CPU_RULE_LLVM(kind, cost) CPU_RULE(kind, CPU_ELEMENTWISE, cost, rule_llvm, NULL, NULL)
#define CPU_RULE_OWN(kind, cost, f) CPU_RULE(kind, CPU_ELEMENTWISE, cost, f, NULL, NULL)

CPU_RULE_OWN(TW_MATH_EXP, 14, rule_vector)
CPU_RULE_OWN(TW_MATH_EXP2, 14, rule_vector)
CPU_RULE_OWN(TW_MATH_LOG, 25, rule_vector)
CPU_RULE_OWN(TW_MATH_LOG2, 25, rule_vector)
CPU_RULE_LLVM(TW_MATH_LOG10, 40)
CPU_RULE_OWN(TW_MATH_SIN, 30, rule_vector)
CPU_RULE_OWN(TW_MATH_COS, 30, rule_vector)
CPU_RULE_OWN(TW_MATH_TAN, 40, rule_vector)
CPU_RULE_OWN(TW_MATH_SINH, 30, rule_vector)
CPU_RULE_OWN(TW_MATH_COSH, 30, rule_vector)
CPU_RULE_OWN(TW_MATH_TANH, 25, rule_vector)
CPU_RULE_LLVM(TW_MATH_ASIN, 30)
CPU_RULE_LLVM(TW_MATH_ACOS, 30)
CPU_RULE_LLVM(TW_MATH_ATAN, 30)
CPU_RULE_LLVM(TW_MATH_ATAN2, 40)
CPU_RULE_LLVM(TW_MATH_POWF, 40)
CPU_RULE_LLVM(TW_MATH_SQRT, 6)
CPU_RULE_OWN(TW_MATH_RSQRT, 10, rule_rsqrt)
CPU_RULE_LLVM(TW_MATH_ABSF, 1)
CPU_RULE_LLVM(TW_MATH_FLOOR, 1)
CPU_RULE_LLVM(TW_MATH_CEIL, 1)
CPU_RULE_LLVM(TW_MATH_TRUNC, 1)
CPU_RULE_LLVM(TW_MATH_ROUND, 4)
CPU_RULE_LLVM(TW_MATH_ROUNDEVEN, 1)
CPU_RULE_LLVM(TW_MATH_COPYSIGN, 2)
CPU_RULE_OWN(TW_MATH_FMA, 1, rule_fma)
CPU_RULE_OWN(TW_TILE_FLUSH, 3, rule_flush)
