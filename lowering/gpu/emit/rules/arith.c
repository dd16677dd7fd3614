/* arith.c - rules: elementwise arithmetic, comparisons and casts, register by register
 *
 * What LLVM calls undefined and the dialect calls unspecified (division by zero, INT_MIN / -1,
 * oversized shifts) is steered to some value first: an optimizer must not draw conclusions. */
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/isa/sm89/fp8.h"

#include <math.h>
#include <string.h>

/* ---- names ------------------------------------------------------------------------------------- */

static const char *const names[TW_NUM_OP_KINDS] = {
    [TW_ARITH_ADDF] = "llvm.fadd",
    [TW_ARITH_SUBF] = "llvm.fsub",
    [TW_ARITH_MULF] = "llvm.fmul",
    [TW_ARITH_REMF] = "llvm.frem",
    [TW_ARITH_MAXIMUMF] = "llvm.intr.maximum",
    [TW_ARITH_MINIMUMF] = "llvm.intr.minimum",
    [TW_ARITH_MAXNUMF] = "llvm.intr.maxnum",
    [TW_ARITH_MINNUMF] = "llvm.intr.minnum",
    [TW_ARITH_NEGF] = "llvm.fneg",
    [TW_MATH_ABSF] = "llvm.intr.fabs",
    [TW_MATH_COPYSIGN] = "llvm.intr.copysign",
    [TW_MATH_FLOOR] = "llvm.intr.floor",
    [TW_MATH_CEIL] = "llvm.intr.ceil",
    [TW_MATH_TRUNC] = "llvm.intr.trunc",
    [TW_MATH_ROUNDEVEN] = "llvm.intr.roundeven",
    [TW_ARITH_ADDI] = "llvm.add",
    [TW_ARITH_SUBI] = "llvm.sub",
    [TW_ARITH_MULI] = "llvm.mul",
    [TW_ARITH_ANDI] = "llvm.and",
    [TW_ARITH_ORI] = "llvm.or",
    [TW_ARITH_XORI] = "llvm.xor",
    [TW_ARITH_MINSI] = "llvm.intr.smin",
    [TW_ARITH_MAXSI] = "llvm.intr.smax",
    [TW_ARITH_MINUI] = "llvm.intr.umin",
    [TW_ARITH_MAXUI] = "llvm.intr.umax",
    [TW_ARITH_SHLI] = "llvm.shl",
    [TW_ARITH_SHRSI] = "llvm.ashr",
    [TW_ARITH_SHRUI] = "llvm.lshr",
    [TW_ARITH_EXTSI] = "llvm.sext",
    [TW_ARITH_EXTUI] = "llvm.zext",
    [TW_ARITH_TRUNCI] = "llvm.trunc",
    [TW_ARITH_FPTOSI] = "llvm.fptosi",
    [TW_ARITH_FPTOUI] = "llvm.fptoui",
};

static const char *llvm_name(MlirOperation op) { return names[tw_op_kind(op)]; }

static MlirType result_element(MlirOperation op) { return tw_element(mlirValueGetType(mlirOperationGetResult(op, 0))); }

static MlirType operand_element(MlirOperation op, intptr_t i) {
  return tw_element(mlirValueGetType(mlirOperationGetOperand(op, i)));
}

static bool is_narrow(MlirType element) { return mlirTypeIsAFloat(element) && mlirFloatTypeGetWidth(element) <= 8; }

/* ---- one operand at a time ---------------------------------------------------------------------- */

bool twg_each_register(tw_emitter_t *e, MlirOperation op, twg_element_fn_t fn) {
  int n = (int)mlirOperationGetNumOperands(op);
  tw_values_t in[3] = {{NULL, 0}};
  for (int k = 0; k < n && k < 3; k++)
    in[k] = twg_operand(e, op, k);
  tw_values_t out = twg_new_values(e, in[n - 1].count);
  for (int r = 0; r < out.count; r++) {
    MlirValue x[3];
    bool same = r > 0;
    for (int k = 0; k < n && k < 3; k++) {
      x[k] = in[k].count == 1 ? in[k].at[0] : in[k].at[r];
      same = same && (in[k].count == 1 || mlirValueEqual(x[k], in[k].at[r - 1]));
    }
    out.at[r] = same ? out.at[r - 1] : fn(e, op, x);
  }
  twg_set_result(e, op, 0, out);
  return true;
}

/* ---- floats ------------------------------------------------------------------------------------ */

static MlirValue float_binary(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  MlirType element = result_element(op);
  if (!is_narrow(element))
    return twg_binary(e, llvm_name(op), x[0], x[1]);
  MlirValue a = twg_convert_float(e, x[0], element, e->f32);
  MlirValue b = twg_convert_float(e, x[1], element, e->f32);
  return twg_convert_float(e, twg_binary(e, llvm_name(op), a, b), e->f32, element);
}

bool twg_rule_float_binary(tw_emitter_t *e, MlirOperation op) { return twg_each_register(e, op, float_binary); }

static MlirValue float_unary(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  MlirType element = result_element(op);
  if (!is_narrow(element))
    return twg_unary(e, llvm_name(op), x[0]);
  MlirValue a = twg_convert_float(e, x[0], element, e->f32);
  return twg_convert_float(e, twg_unary(e, llvm_name(op), a), e->f32, element);
}

bool twg_rule_float_unary(tw_emitter_t *e, MlirOperation op) { return twg_each_register(e, op, float_unary); }

/* ---- integers ---------------------------------------------------------------------------------- */

static MlirValue int_binary(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  return twg_binary(e, llvm_name(op), x[0], x[1]);
}

bool twg_rule_int_binary(tw_emitter_t *e, MlirOperation op) { return twg_each_register(e, op, int_binary); }

static bool known(MlirOperation op, intptr_t operand, int64_t *value) {
  return tw_known_int(mlirOperationGetOperand(op, operand), value);
}

static MlirValue shift(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  MlirType type = mlirValueGetType(x[0]);
  int64_t width = (int64_t)mlirIntegerTypeGetWidth(type), by;
  MlirValue amount = x[1];
  if (!known(op, 1, &by) || by < 0 || by >= width)
    amount = twg_binary(e, "llvm.and", amount, twg_const_int(e, type, width - 1));
  return twg_binary(e, llvm_name(op), x[0], amount);
}

bool twg_rule_shift(tw_emitter_t *e, MlirOperation op) { return twg_each_register(e, op, shift); }

/* A divisor for which division is defined: 1 in place of 0, and of -1 under the least integer. */
static MlirValue safe_divisor(tw_emitter_t *e, MlirOperation op, const MlirValue *x, bool is_signed) {
  MlirType type = mlirValueGetType(x[0]);
  int64_t value;
  if (known(op, 1, &value) && value != 0 && value != -1)
    return x[1];
  MlirValue bad = twg_icmp(e, TW_EQ, x[1], twg_const_int(e, type, 0));
  if (is_signed) {
    int width = (int)mlirIntegerTypeGetWidth(type);
    MlirValue least = twg_const_int(e, type, (int64_t)(UINT64_MAX << (width - 1)));
    MlirValue overflow = twg_binary(e, "llvm.and", twg_icmp(e, TW_EQ, x[0], least),
                                    twg_icmp(e, TW_EQ, x[1], twg_const_int(e, type, -1)));
    bad = twg_binary(e, "llvm.or", bad, overflow);
  }
  return twg_select(e, bad, twg_const_int(e, type, 1), x[1]);
}

/* x / y rounded down (up = false) or up, from the quotient that rounds to zero. */
static MlirValue round_quotient(tw_emitter_t *e, MlirValue x, MlirValue y, bool up) {
  MlirType type = mlirValueGetType(x);
  MlirValue zero = twg_const_int(e, type, 0), q = twg_binary(e, "llvm.sdiv", x, y);
  MlirValue rest = twg_binary(e, "llvm.sub", x, twg_binary(e, "llvm.mul", q, y));
  MlirValue sign = twg_binary(e, "llvm.xor", x, y);
  MlirValue wrong_way = twg_icmp(e, up ? TW_SGE : TW_SLT, sign, zero);
  MlirValue off = twg_binary(e, "llvm.and", twg_icmp(e, TW_NE, rest, zero), wrong_way);
  MlirValue step = twg_cast(e, "llvm.zext", type, off);
  return twg_binary(e, up ? "llvm.add" : "llvm.sub", q, step);
}

static MlirValue int_divide(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  bool is_signed = !tw_op_is(op, TW_ARITH_DIVUI) && !tw_op_is(op, TW_ARITH_REMUI) && !tw_op_is(op, TW_ARITH_CEILDIVUI);
  MlirValue y = safe_divisor(e, op, x, is_signed);
  if (tw_op_is(op, TW_ARITH_FLOORDIVSI) || tw_op_is(op, TW_ARITH_CEILDIVSI))
    return round_quotient(e, x[0], y, tw_op_is(op, TW_ARITH_CEILDIVSI));
  if (tw_op_is(op, TW_ARITH_CEILDIVUI)) {
    MlirType type = mlirValueGetType(x[0]);
    MlirValue q = twg_binary(e, "llvm.udiv", x[0], y);
    MlirValue rest = twg_binary(e, "llvm.sub", x[0], twg_binary(e, "llvm.mul", q, y));
    MlirValue more = twg_icmp(e, TW_NE, rest, twg_const_int(e, type, 0));
    return twg_binary(e, "llvm.add", q, twg_cast(e, "llvm.zext", type, more));
  }
  const char *name = tw_op_is(op, TW_ARITH_DIVSI)   ? "llvm.sdiv"
                     : tw_op_is(op, TW_ARITH_DIVUI) ? "llvm.udiv"
                     : tw_op_is(op, TW_ARITH_REMSI) ? "llvm.srem"
                                                    : "llvm.urem";
  return twg_binary(e, name, x[0], y);
}

bool twg_rule_int_divide(tw_emitter_t *e, MlirOperation op) { return twg_each_register(e, op, int_divide); }

/* A value that no one looks at. */
bool twg_rule_poison(tw_emitter_t *e, MlirOperation op) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  tw_values_t out = twg_new_values(e, tw_register_count(type));
  MlirType element = twg_register_type(e, tw_element(type));
  MlirValue value = twg_op(e, "llvm.mlir.poison", element, 0, NULL, 0, NULL);
  for (int i = 0; i < out.count; i++)
    out.at[i] = value;
  twg_set_result(e, op, 0, out);
  return true;
}

/* ---- comparison and choice ----------------------------------------------------------------------- */

static MlirValue compare(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  int predicate = (int)tw_attr_int(op, "predicate", 0); /* arith numbers them as LLVM does */
  MlirType element = operand_element(op, 0);
  if (!mlirTypeIsAFloat(element))
    return twg_icmp(e, predicate, x[0], x[1]);
  if (!is_narrow(element))
    return twg_fcmp(e, predicate, x[0], x[1]);
  return twg_fcmp(e, predicate, twg_convert_float(e, x[0], element, e->f32),
                  twg_convert_float(e, x[1], element, e->f32));
}

bool twg_rule_compare(tw_emitter_t *e, MlirOperation op) { return twg_each_register(e, op, compare); }

static MlirValue choose(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  (void)op;
  return twg_select(e, x[0], x[1], x[2]);
}

bool twg_rule_select(tw_emitter_t *e, MlirOperation op) { return twg_each_register(e, op, choose); }

/* ---- casts ------------------------------------------------------------------------------------- */

/* How a narrow float is made up. `top` is the largest finite magnitude, as its bits. */
typedef struct narrow {
  int exponent_bits, mantissa_bits, bias;
  uint32_t top;
  int inf, nan; /* bits; -1: there is none */
} narrow_t;

static narrow_t narrow_format(MlirType element) {
  if (mlirTypeIsAFloat8E5M2(element))
    return (narrow_t){5, 2, 15, 0x7B, 0x7C, 0x7F};
  if (mlirTypeIsAFloat8E8M0FNU(element))
    return (narrow_t){8, 0, 127, 0xFE, -1, 0xFF};
  if (mlirTypeIsAFloat4E2M1FN(element))
    return (narrow_t){2, 1, 1, 0x7, -1, -1};
  return (narrow_t){4, 3, 7, 0x7E, -1, 0x7F};
}

static double narrow_value(narrow_t f, uint32_t magnitude) {
  uint32_t exponent = magnitude >> f.mantissa_bits, fraction = magnitude & ((1u << f.mantissa_bits) - 1);
  double scaled = fraction + (exponent ? 1 << f.mantissa_bits : 0);
  return ldexp(scaled, (int)(exponent ? exponent : 1) - f.bias - f.mantissa_bits);
}

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
  narrow_t f = narrow_format(element);
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
  narrow_t f = narrow_format(element);
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

/* tf32 keeps 10 bits of mantissa, to the nearest (ties away, as the hardware rounds). */
static MlirValue round_tf32(tw_emitter_t *e, MlirValue x) {
  MlirValue bits = twg_asm(e, "cvt.rna.tf32.f32 $0, $1;", "=r,f", e->i32, 1, &x, false);
  return twg_bitcast(e, bits, e->f32);
}

MlirValue twg_convert_float(tw_emitter_t *e, MlirValue x, MlirType from, MlirType to) {
  if (mlirTypeEqual(from, to))
    return x;
  if (is_narrow(from)) {
    x = widen(e, x, from);
    from = e->f32;
  } else if (mlirTypeIsATF32(from)) {
    from = e->f32;
  }
  MlirType target = is_narrow(to) || mlirTypeIsATF32(to) ? e->f32 : to;
  int have = (int)mlirFloatTypeGetWidth(from), want = (int)mlirFloatTypeGetWidth(target);
  if (have == want && !mlirTypeEqual(from, target)) { /* f16 <-> bf16 */
    x = twg_cast(e, "llvm.fpext", e->f32, x);
    have = 32;
  }
  if (have != want)
    x = twg_cast(e, have < want ? "llvm.fpext" : "llvm.fptrunc", target, x);
  if (is_narrow(to))
    return narrow_down(e, x, to);
  return mlirTypeIsATF32(to) ? round_tf32(e, x) : x;
}

static MlirValue float_cast(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  return twg_convert_float(e, x[0], operand_element(op, 0), result_element(op));
}

void twg_truncate_pair(tw_emitter_t *e, MlirType to, const MlirValue x[2], MlirValue out[2]) {
  MlirValue pair = twg_cast(e, "llvm.fptrunc", twg_vector_type(to, 2), twg_pack(e, e->f32, 2, x));
  out[0] = twg_unpack(e, pair, 0, to);
  out[1] = twg_unpack(e, pair, 1, to);
}

/* bf16 is the upper half of f32: one instruction for each element where a word has both. */
static bool widen_bf16_pair(tw_emitter_t *e, const MlirValue x[2], MlirValue out[2]) {
  MlirValue word = twg_word_behind(e, 2, x);
  if (word.ptr == NULL)
    return false;
  out[0] = twg_bitcast(e, twg_binary(e, "llvm.shl", word, twg_const_i32(e, 16)), e->f32);
  out[1] = twg_bitcast(e, twg_binary(e, "llvm.and", word, twg_const_i32(e, (int32_t)0xFFFF0000)), e->f32);
  return true;
}

/* Between f32 and floats that the hardware converts two at a time. False: between others. */
static bool cast_pair(tw_emitter_t *e, MlirType from, MlirType to, const MlirValue x[2], MlirValue out[2]) {
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

bool twg_rule_float_cast(tw_emitter_t *e, MlirOperation op) {
  MlirType from = operand_element(op, 0), to = result_element(op);
  tw_values_t in = twg_operand(e, op, 0), out = twg_new_values(e, in.count);
  if (in.count == 1 || mlirValueEqual(in.at[0], in.at[1]) || !cast_pair(e, from, to, in.at, out.at))
    return twg_each_register(e, op, float_cast);
  for (int r = 2; r < in.count; r += 2)
    if (!cast_pair(e, from, to, &in.at[r], &out.at[r]))
      for (int i = 0; i < 2; i++)
        out.at[r + i] = twg_convert_float(e, in.at[r + i], from, to);
  twg_set_result(e, op, 0, out);
  return true;
}

static MlirValue int_cast(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  return twg_cast(e, llvm_name(op), twg_register_type(e, result_element(op)), x[0]);
}

bool twg_rule_int_cast(tw_emitter_t *e, MlirOperation op) { return twg_each_register(e, op, int_cast); }

static MlirValue float_to_int(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  MlirType from = operand_element(op, 0);
  MlirValue y = is_narrow(from) ? twg_convert_float(e, x[0], from, e->f32) : x[0];
  return int_cast(e, op, &y);
}

bool twg_rule_float_to_int(tw_emitter_t *e, MlirOperation op) { return twg_each_register(e, op, float_to_int); }

static MlirValue bitcast(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  return twg_bitcast(e, x[0], twg_register_type(e, result_element(op)));
}

bool twg_rule_bitcast(tw_emitter_t *e, MlirOperation op) { return twg_each_register(e, op, bitcast); }

/* ---- constants --------------------------------------------------------------------------------- */

/* Bits of the narrow float nearest to `x` (constants of such types are exact in practice). */
static int64_t narrow_bits(MlirType element, double x) {
  narrow_t f = narrow_format(element);
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

static MlirValue constant(tw_emitter_t *e, MlirType element, MlirAttribute value) {
  if (mlirTypeIsAFloat(element) && (is_narrow(element) || mlirTypeIsATF32(element))) {
    double x = mlirFloatAttrGetValueDouble(value);
    return is_narrow(element) ? twg_const_int(e, e->i8, narrow_bits(element, x)) : twg_const_float(e, e->f32, x);
  }
  return twg_constant(e, element, value);
}

bool twg_rule_constant(tw_emitter_t *e, MlirOperation op) {
  MlirAttribute value = tw_attr(op, "value");
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  if (tw_is_tile(type)) {
    if (!mlirDenseElementsAttrIsSplat(value)) {
      tw_op_error(op, "is a tile constant with different elements, which has no GPU lowering");
      return false;
    }
    value = mlirDenseElementsAttrGetSplatValue(value);
  }
  tw_values_t out = twg_new_values(e, tw_register_count(type));
  MlirValue one = constant(e, tw_element(type), value);
  for (int r = 0; r < out.count; r++)
    out.at[r] = one;
  twg_set_result(e, op, 0, out);
  return true;
}

uint64_t twg_float_bits(MlirType element, double x) {
  if (is_narrow(element))
    return (uint64_t)narrow_bits(element, x);
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
