/* math.c - functions of real numbers
 *
 * LLVM makes one libm call a lane of llvm.exp and its like, so that the common ones are written out here for f32;
 * f64 and the others are those calls. */
#include "lowering/cpu/cpu.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static MlirType result_element(MlirOperation op) { return tw_element(mlirValueGetType(mlirOperationGetResult(op, 0))); }

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

/* --- exp, exp2: 2^n times a polynomial of the rest; coefficients fitted at Chebyshev points, about 0.8 ulp
 * ------------ */

/* x 2^n for integers n from -252 to 254. AVX-512 has an instruction for it; elsewhere it would be a call a lane. */
static MlirValue scale(cpu_t *cx, MlirValue x, MlirValue n) {
  if (cx->avx512 && cpu_lanes_of(x) > 1) {
    char name[64];
    snprintf(name, sizeof name, "llvm.ldexp.v%df32.v%di32", cpu_lanes_of(x), cpu_lanes_of(x));
    return cpu_intrinsic(cx, name, mlirValueGetType(x), 2, (MlirValue[]){x, n});
  }
  MlirValue half = cpu_bin_i(cx, "arith.shrsi", n, 1);
  MlirValue parts[2] = {half, cpu_bin(cx, "arith.subi", n, half)};
  for (int i = 0; i < 2; i++) {
    MlirValue bits = cpu_bin_i(cx, "arith.shli", cpu_bin_i(cx, "arith.addi", parts[i], 127), 23);
    x = cpu_bin(cx, "arith.mulf", x, cpu_bits(cx, bits, cpu_f32(cx)));
  }
  return x;
}

static MlirValue clamp(cpu_t *cx, MlirValue x, double low, double high) {
  MlirValue least = float_const(cx, x, low), most = float_const(cx, x, high);
  x = cpu_select(cx, cpu_cmpf(cx, CPU_OLT, x, least), least, x);
  return cpu_select(cx, cpu_cmpf(cx, CPU_OGT, x, most), most, x);
}

static MlirValue exp_f32(cpu_t *cx, MlirValue x) {
  static const double p[] = {
      1, 1, 0.5000000095407969, 0.16666518600509178, 0.04166620509064614, 0.008368918062157036, 0.0013950538545095706};
  x = clamp(cx, x, -104, 89);
  MlirValue n = cpu_un(cx, "math.roundeven", cpu_bin_f(cx, "arith.mulf", x, 1.4426950408889634));
  MlirValue r = cpu_fma(cx, n, float_const(cx, x, -0.693359375), x); /* ln 2 in two parts */
  r = cpu_fma(cx, n, float_const(cx, x, 2.12194440e-4), r);
  return scale(cx, polynomial(cx, r, 7, p), to_int(cx, n));
}

static MlirValue exp2_f32(cpu_t *cx, MlirValue x) {
  static const double p[] = {1,
                             0.6931471880289446,
                             0.24022651084123364,
                             0.055503571055101016,
                             0.009618030785306394,
                             0.0013390866849945302,
                             0.00015469730477273252};
  x = clamp(cx, x, -151, 129);
  MlirValue n = cpu_un(cx, "math.roundeven", x);
  return scale(cx, polynomial(cx, cpu_bin(cx, "arith.subf", x, n), 7, p), to_int(cx, n));
}

/* --- log, log2 -------------------------------------------------------------------------------------------------------
 */

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

/* Zero, infinity, and what has no logarithm. */
static MlirValue finish_log(cpu_t *cx, MlirValue x, MlirValue y) {
  MlirValue zero = float_const(cx, x, 0);
  y = cpu_select(cx, cpu_cmpf(cx, CPU_OEQ, x, float_const(cx, x, INFINITY)), x, y);
  y = cpu_select(cx, cpu_cmpf(cx, CPU_OEQ, x, zero), float_const(cx, x, -INFINITY), y);
  MlirValue defined = cpu_cmpf(cx, CPU_OGE, x, zero);
  return cpu_select(cx, defined, y, float_const(cx, x, NAN));
}

static MlirValue log_f32(cpu_t *cx, MlirValue x) {
  logarithm_t log = split_log(cx, x);
  MlirValue rest = cpu_fma(cx, log.exponent, float_const(cx, x, -2.12194440e-4), log.rest);
  MlirValue sum = cpu_bin(cx, "arith.addf", log.t, rest);
  return finish_log(cx, x, cpu_fma(cx, log.exponent, float_const(cx, x, 0.693359375), sum));
}

static MlirValue log2_f32(cpu_t *cx, MlirValue x) {
  logarithm_t log = split_log(cx, x);
  MlirValue rest = cpu_bin_f(cx, "arith.mulf", log.t, 0.4426950408889634); /* log2(e) - 1 */
  rest = cpu_fma(cx, log.rest, float_const(cx, x, 1.4426950408889634), rest);
  return finish_log(cx, x, cpu_bin(cx, "arith.addf", log.exponent, cpu_bin(cx, "arith.addf", log.t, rest)));
}

/* --- sin, cos
 * ---------------------------------------------------------------------------------------------------------- */

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

/* sin(x + shift pi / 2) for |x| below the limit of reduce_angle. */
static MlirValue sine_reduced(cpu_t *cx, MlirValue x, int shift) {
  static const double s[] = {-0.16666654873265152, 0.008332173533202885, -0.0001951665472317758};
  static const double c[] = {0.041666646747316224, -0.0013887361431060398, 2.4437728178899147e-05};
  MlirValue quadrant;
  MlirValue r = reduce_angle(cx, x, &quadrant), z = cpu_bin(cx, "arith.mulf", r, r);
  MlirValue sin = cpu_fma(cx, cpu_bin(cx, "arith.mulf", polynomial(cx, z, 3, s), z), r, r);
  MlirValue cos = cpu_fma(cx, z, float_const(cx, x, -0.5), float_const(cx, x, 1));
  cos = cpu_fma(cx, polynomial(cx, z, 3, c), cpu_bin(cx, "arith.mulf", z, z), cos);
  quadrant = cpu_bin_i(cx, "arith.addi", quadrant, shift);
  MlirValue odd = cpu_cast(cx, "arith.trunci", quadrant, cpu_int(cx, 1));
  MlirValue sign = cpu_bin_i(cx, "arith.shli", cpu_bin_i(cx, "arith.andi", quadrant, 2), 30);
  MlirValue y = cpu_bits(cx, cpu_select(cx, odd, cos, sin), cpu_int(cx, 32));
  return cpu_bits(cx, cpu_bin(cx, "arith.xori", y, sign), cpu_f32(cx));
}

static MlirValue any_lane(cpu_t *cx, MlirValue mask) {
  if (cpu_lanes_of(mask) == 1)
    return mask;
  MlirAttribute kind = mlirAttributeParseGet(cx->context, tw_str("#vector.kind<or>"));
  tw_builder_t at = cpu_here(cx);
  return tw_op1_attr(&at, "vector.reduction", cpu_int(cx, 1), 1, &mask, "kind", kind);
}

/* Angles of 2^30 and more (and infinities) are rare enough for libm; and without fma the reduction isn't exact. */
static MlirValue sine(cpu_t *cx, const char *name, MlirValue x, int shift) {
  if (!cx->f16c)
    return llvm_function(cx, name, 1, &x);
  MlirValue size = llvm_function(cx, "fabs", 1, &x);
  MlirValue large = any_lane(cx, cpu_cmpf(cx, CPU_OGE, size, float_const(cx, x, 0x1p30)));
  MlirBlock outer = cx->block, then = mlirBlockCreate(0, NULL, NULL), other = mlirBlockCreate(0, NULL, NULL);
  cx->block = then;
  MlirValue slow = llvm_function(cx, name, 1, &x);
  cpu_op0(cx, "scf.yield", 1, &slow);
  cx->block = other;
  MlirValue fast = sine_reduced(cx, x, shift);
  cpu_op0(cx, "scf.yield", 1, &fast);
  cx->block = outer;
  MlirType type = mlirValueGetType(x);
  return mlirOperationGetResult(cpu_if(cx, large, then, other, 1, &type), 0);
}

static MlirValue sin_f32(cpu_t *cx, MlirValue x) { return sine(cx, "sin", x, 0); }
static MlirValue cos_f32(cpu_t *cx, MlirValue x) { return sine(cx, "cos", x, 1); }

/* --- tanh: a polynomial near zero, else by exp
 * ---------------------------------------------------------------------------- */

static MlirValue tanh_f32(cpu_t *cx, MlirValue x) {
  static const double p[] = {-0.33333283923590584, 0.13331491248512056, -0.053743495261189524, 0.020650579003117172,
                             -0.005717036560663702};
  MlirValue size = llvm_function(cx, "fabs", 1, &x), z = cpu_bin(cx, "arith.mulf", x, x);
  MlirValue near = cpu_fma(cx, cpu_bin(cx, "arith.mulf", polynomial(cx, z, 5, p), z), x, x);
  MlirValue e = exp_f32(cx, cpu_bin_f(cx, "arith.mulf", size, 2)), one = float_const(cx, x, 1);
  MlirValue far = cpu_bin(cx, "arith.divf", float_const(cx, x, 2), cpu_bin(cx, "arith.addf", e, one));
  far = llvm_function(cx, "copysign", 2, (MlirValue[]){cpu_bin(cx, "arith.subf", one, far), x});
  return cpu_select(cx, cpu_cmpf(cx, CPU_OLT, size, float_const(cx, x, 0.625)), near, far);
}

static MlirValue rule_vector(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  static const struct {
    tw_op_kind_t kind;
    const char *name;
    MlirValue (*f32)(cpu_t *, MlirValue);
  } functions[] = {{TW_MATH_EXP, "exp", exp_f32},    {TW_MATH_EXP2, "exp2", exp2_f32}, {TW_MATH_LOG, "log", log_f32},
                   {TW_MATH_LOG2, "log2", log2_f32}, {TW_MATH_SIN, "sin", sin_f32},    {TW_MATH_COS, "cos", cos_f32},
                   {TW_MATH_TANH, "tanh", tanh_f32}};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (tw_op_is(op, functions[i].kind))
      return mlirTypeIsAF64(cpu_element(x[0])) ? llvm_function(cx, functions[i].name, num, x)
                                               : cpu_round(cx, functions[i].f32(cx, x[0]), result_element(op));
  cpu_error(cx, op, "is no known function");
  return x[0];
}

/* --- the others -------------------------------------------------------------------------------------------------- */

static MlirValue rule_llvm(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  static const struct {
    tw_op_kind_t kind;
    const char *name;
  } names[] = {{TW_MATH_ABSF, "fabs"},
               {TW_MATH_POWF, "pow"},
               {TW_MATH_CEIL, "ceil"},
               {TW_MATH_ROUND, "round"},
               {TW_MATH_COPYSIGN, "copysign"}};
  MlirStringRef name = tw_op_name(op);
  char plain[32];
  snprintf(plain, sizeof plain, "%.*s", (int)name.length - 5, name.data + 5);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (tw_op_is(op, names[i].kind))
      snprintf(plain, sizeof plain, "%s", names[i].name);
  return cpu_round(cx, llvm_function(cx, plain, num, x), result_element(op));
}

static MlirValue rule_rsqrt(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  MlirValue root = llvm_function(cx, "sqrt", num, x);
  MlirValue one = cpu_float_const(cx, mlirValueGetType(root), 1);
  return cpu_round(cx, cpu_bin(cx, "arith.divf", one, root), result_element(op));
}

static MlirValue rule_fma(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  MlirValue y = cpu_op1(cx, "math.fma", mlirValueGetType(x[0]), num, x); /* one rounding, whatever it costs */
  return cpu_round(cx, y, result_element(op));
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
CPU_RULE_LLVM(TW_MATH_TAN, 40)
CPU_RULE_LLVM(TW_MATH_SINH, 30)
CPU_RULE_LLVM(TW_MATH_COSH, 30)
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
