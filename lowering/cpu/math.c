/* math.c - functions of real numbers */
#include "lowering/cpu/cpu.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static MlirType result_element(MlirOperation op) {
  return tw_element(mlirValueGetType(mlirOperationGetResult(op, 0)));
}

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

/* --- exp ------------------------------------------------------------------------------------------------------- */

/* 2^n for integer lanes n, times x; n from -252 to 254. AVX-512 has an instruction for it; elsewhere it would be a
 * call a lane. */
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
  MlirType type = mlirValueGetType(x);
  MlirValue least = cpu_float_const(cx, type, low), most = cpu_float_const(cx, type, high);
  x = cpu_select(cx, cpu_cmpf(cx, CPU_OLT, x, least), least, x);
  return cpu_select(cx, cpu_cmpf(cx, CPU_OGT, x, most), most, x);
}

/* e^r = 1 + r + r^2 p(r) for |r| <= ln 2 / 2; p fitted at Chebyshev points. */
MlirValue cpu_exp(cpu_t *cx, MlirValue x) {
  static const double p[] = {0.49999994435475606, 0.16666521839951355, 0.041668180888216694, 0.008368919669350674,
                             0.0013731436561170085};
  x = clamp(cx, x, -104, 89);
  MlirValue n = cpu_un(cx, "math.roundeven", cpu_bin_f(cx, "arith.mulf", x, 1.4426950408889634));
  MlirType type = mlirValueGetType(x);
  MlirValue r = cpu_fma(cx, n, cpu_float_const(cx, type, -0.693359375), x);
  r = cpu_fma(cx, n, cpu_float_const(cx, type, 2.12194440e-4), r);
  MlirValue y = cpu_float_const(cx, type, p[4]);
  for (int i = 3; i >= 0; i--)
    y = cpu_fma(cx, y, r, cpu_float_const(cx, type, p[i]));
  y = cpu_fma(cx, y, cpu_bin(cx, "arith.mulf", r, r), cpu_bin_f(cx, "arith.addf", r, 1));
  /* NaN lanes: any integer will do, the product stays NaN. */
  MlirValue finite = cpu_select(cx, cpu_cmpf(cx, CPU_UNO, n, n), cpu_float_const(cx, type, 0), n);
  return scale(cx, y, cpu_cast(cx, "arith.fptosi", finite, cpu_int(cx, 32)));
}

static MlirValue rule_exp(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  MlirValue y = mlirTypeIsAF64(cpu_element(x[0])) ? llvm_function(cx, "exp", num, x) : cpu_exp(cx, x[0]);
  return cpu_round(cx, y, result_element(op));
}

/* --- the others -------------------------------------------------------------------------------------------------- */

static MlirValue rule_llvm(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  static const char *const names[][2] = {{"math.absf", "fabs"},   {"math.powf", "pow"},
                                         {"math.ceil", "ceil"},   {"math.round", "round"},
                                         {"math.copysign", "copysign"}};
  MlirStringRef name = tw_op_name(op);
  char plain[32];
  snprintf(plain, sizeof plain, "%.*s", (int)name.length - 5, name.data + 5);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (tw_op_is(op, names[i][0]))
      snprintf(plain, sizeof plain, "%s", names[i][1]);
  return cpu_round(cx, llvm_function(cx, plain, num, x), result_element(op));
}

static MlirValue rule_rsqrt(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  MlirValue root = llvm_function(cx, "sqrt", num, x);
  MlirValue one = cpu_float_const(cx, mlirValueGetType(root), 1);
  return cpu_round(cx, cpu_bin(cx, "arith.divf", one, root), result_element(op));
}

static MlirValue rule_fma(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  (void)num;
  return cpu_round(cx, cpu_fma(cx, x[0], x[1], x[2]), result_element(op));
}

#define LLVM(name, cost) {name, CPU_ELEMENTWISE, cost, rule_llvm, NULL, NULL}
#define OWN(name, cost, f) {name, CPU_ELEMENTWISE, cost, f, NULL, NULL}

const cpu_rule_t cpu_math_rules[] = {
    OWN("math.exp", 14, rule_exp), LLVM("math.exp2", 14), LLVM("math.log", 16), LLVM("math.log2", 16),
    LLVM("math.log10", 16), LLVM("math.sin", 20), LLVM("math.cos", 20), LLVM("math.tan", 30),
    LLVM("math.sinh", 30), LLVM("math.cosh", 30), LLVM("math.tanh", 20), LLVM("math.asin", 30),
    LLVM("math.acos", 30), LLVM("math.atan", 30), LLVM("math.atan2", 40), LLVM("math.powf", 40),
    LLVM("math.sqrt", 6), OWN("math.rsqrt", 10, rule_rsqrt), LLVM("math.absf", 1), LLVM("math.floor", 1),
    LLVM("math.ceil", 1), LLVM("math.trunc", 1), LLVM("math.round", 4), LLVM("math.roundeven", 1),
    LLVM("math.copysign", 2), OWN("math.fma", 1, rule_fma),
    {NULL, CPU_LEAF, 0, NULL, NULL, NULL},
};
