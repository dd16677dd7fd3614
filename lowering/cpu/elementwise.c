/* elementwise.c - arith ops on strips
 *
 * Floats below f32 compute in f32 and are rounded after each op. Nothing here traps or is undefined: divisors are
 * guarded, shift counts masked, floats clamped before they become integers. */
#include "lowering/cpu/cpu.h"

#include <math.h>
#include <string.h>

static MlirType compute_like(cpu_t *cx, MlirOperation op, MlirValue like) {
  return cpu_like(like, cpu_compute_type(cx, tw_result_element(op)));
}

/* The same op on strips. */
static MlirValue same(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  MlirValue value = cpu_again(cx, op, compute_like(cx, op, x[0]), num, x);
  return cpu_round(cx, value, tw_result_element(op));
}

static MlirValue compare(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  return cpu_again(cx, op, cpu_like(x[0], cpu_int(cx, 1)), num, x);
}

static MlirValue select_lanes(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  (void)op, (void)num;
  return cpu_select(cx, x[0], x[1], x[2]);
}

/* --- floats ------------------------------------------------------------------------------------------------ */

/* NaN if either is: x86's max(x, y) gives y where one is NaN. */
MlirValue cpu_float_min_max(cpu_t *cx, MlirValue x, MlirValue y, bool max) {
  MlirValue better = cpu_select(cx, cpu_cmpf(cx, max ? CPU_OGT : CPU_OLT, x, y), x, y);
  return cpu_select(cx, cpu_cmpf(cx, CPU_UNO, x, x), x, better);
}

static MlirValue minimum(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  (void)op, (void)num;
  return cpu_float_min_max(cx, x[0], x[1], false);
}

static MlirValue maximum(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  (void)op, (void)num;
  return cpu_float_min_max(cx, x[0], x[1], true);
}

/* --- integer division -------------------------------------------------------------------------------------- */

/* y, or 1 where x / y would trap: y = 0, or INT_MIN / -1. */
static MlirValue safe_divisor(cpu_t *cx, MlirValue x, MlirValue y, bool is_signed) {
  MlirType type = mlirValueGetType(y);
  MlirValue bad = cpu_cmpi(cx, CPU_EQ, y, cpu_int_const(cx, type, 0));
  if (is_signed) {
    unsigned bits = mlirIntegerTypeGetWidth(tw_element(type));
    int64_t lowest = bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1));
    MlirValue overflow = cpu_bin(cx, "arith.andi", cpu_cmpi(cx, CPU_EQ, x, cpu_int_const(cx, type, lowest)),
                                 cpu_cmpi(cx, CPU_EQ, y, cpu_int_const(cx, type, -1)));
    bad = cpu_bin(cx, "arith.ori", bad, overflow);
  }
  return cpu_select(cx, bad, cpu_int_const(cx, type, 1), y);
}

static bool known_positive(MlirOperation op) {
  int64_t known;
  return tw_known_int(mlirOperationGetOperand(op, 1), &known) && known > 0;
}

/* Up to 32 bits, vectors divide as floats: the quotient of two integers of half a mantissa or less is never so close
 * below an integer that rounding would reach it. A vector has no integer division: it would be one idiv a lane. */
static MlirValue quotient(cpu_t *cx, MlirValue x, MlirValue y, bool is_signed) {
  MlirType element = cpu_element(x);
  unsigned bits = mlirIntegerTypeGetWidth(element);
  if (cpu_lanes_of(x) == 1 || bits > 32)
    return cpu_bin(cx, is_signed ? "arith.divsi" : "arith.divui", x, y);
  MlirType real = bits <= 8 ? cpu_f32(cx) : cpu_f64(cx);
  MlirType wide = is_signed || bits < 32 ? cpu_int(cx, 32) : cpu_int(cx, 64);
  const char *extend = is_signed ? "arith.extsi" : "arith.extui";
  MlirValue fx = cpu_cast(cx, "arith.sitofp", cpu_cast(cx, extend, x, wide), real);
  MlirValue fy = cpu_cast(cx, "arith.sitofp", cpu_cast(cx, extend, y, wide), real);
  MlirValue q = cpu_cast(cx, "arith.fptosi", cpu_bin(cx, "arith.divf", fx, fy), wide);
  return cpu_cast(cx, "arith.trunci", q, element);
}

typedef struct {
  MlirValue x, y, quotient, remainder;
} cpu_division_t;

static cpu_division_t divide(cpu_t *cx, MlirOperation op, MlirValue *x, bool is_signed) {
  cpu_division_t d = {.x = x[0], .y = x[1]};
  if (known_positive(op)) {
    d.quotient = cpu_bin(cx, is_signed ? "arith.divsi" : "arith.divui", d.x, d.y); /* by a constant: a multiplication */
  } else {
    d.y = safe_divisor(cx, d.x, d.y, is_signed);
    d.quotient = quotient(cx, d.x, d.y, is_signed);
  }
  d.remainder = cpu_bin(cx, "arith.subi", d.x, cpu_bin(cx, "arith.muli", d.quotient, d.y));
  return d;
}

MlirValue cpu_divide_unsigned(cpu_t *cx, MlirValue x, MlirValue y) {
  MlirValue operands[2] = {x, y};
  int64_t known;
  cpu_unify(cx, 2, operands);
  if (tw_known_int(y, &known) && known > 0) /* a multiplication, or a shift */
    return cpu_bin(cx, "arith.divui", operands[0], operands[1]);
  return quotient(cx, operands[0], safe_divisor(cx, operands[0], operands[1], false), false);
}

static MlirValue div_signed(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  (void)num;
  return divide(cx, op, x, true).quotient;
}

static MlirValue div_unsigned(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  (void)num;
  return divide(cx, op, x, false).quotient;
}

static MlirValue rem_signed(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  (void)num;
  return divide(cx, op, x, true).remainder;
}

static MlirValue rem_unsigned(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  (void)num;
  return divide(cx, op, x, false).remainder;
}

/* The truncated quotient is off by one where there is a remainder and the exact quotient has the sign of `step`. */
static MlirValue step_if(cpu_t *cx, const cpu_division_t *d, MlirValue applies, int64_t step) {
  MlirType type = mlirValueGetType(d->quotient);
  MlirValue inexact = cpu_cmpi(cx, CPU_NE, d->remainder, cpu_int_const(cx, type, 0));
  return cpu_select(cx, cpu_bin(cx, "arith.andi", inexact, applies), cpu_bin_i(cx, "arith.addi", d->quotient, step),
                    d->quotient);
}

static MlirValue signs_differ(cpu_t *cx, const cpu_division_t *d) {
  return cpu_cmpi(cx, CPU_SLT, cpu_bin(cx, "arith.xori", d->x, d->y), cpu_int_const(cx, mlirValueGetType(d->x), 0));
}

static MlirValue floor_div(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  (void)num;
  cpu_division_t d = divide(cx, op, x, true);
  return step_if(cx, &d, signs_differ(cx, &d), -1);
}

static MlirValue ceil_div(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  (void)num;
  cpu_division_t d = divide(cx, op, x, true);
  MlirValue same_sign =
      cpu_cmpi(cx, CPU_SGE, cpu_bin(cx, "arith.xori", d.x, d.y), cpu_int_const(cx, mlirValueGetType(d.x), 0));
  return step_if(cx, &d, same_sign, 1);
}

static MlirValue ceil_div_unsigned(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  (void)num;
  cpu_division_t d = divide(cx, op, x, false);
  return step_if(cx, &d, cpu_splat(cx, cpu_int_const(cx, cpu_int(cx, 1), 1), cpu_lanes_of(d.x)), 1);
}

/* --- shifts ------------------------------------------------------------------------------------------------ */

static MlirValue shift(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  int64_t known, bits = mlirIntegerTypeGetWidth(cpu_element(x[0]));
  if (!tw_known_int(mlirOperationGetOperand(op, 1), &known) || known < 0 || known >= bits)
    x[1] = cpu_bin_i(cx, "arith.andi", x[1], bits - 1);
  return same(cx, op, num, x);
}

/* --- conversions ------------------------------------------------------------------------------------------- */

static MlirValue extend_float(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  (void)num;
  return cpu_cast(cx, "arith.extf", x[0], cpu_compute_type(cx, tw_result_element(op)));
}

static MlirValue truncate_float(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  (void)num;
  MlirType to = tw_result_element(op);
  if (!mlirTypeIsAF64(cpu_element(x[0])))
    return cpu_round(cx, x[0], to);
  return cpu_is_narrow(to) ? cpu_round_f64(cx, x[0], to) : cpu_cast(cx, "arith.truncf", x[0], cpu_f32(cx));
}

static MlirValue int_to_float(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  (void)num;
  const char *convert = tw_op_is(op, TW_ARITH_SITOFP) ? "arith.sitofp" : "arith.uitofp";
  MlirType to = tw_result_element(op);
  if (!cpu_is_narrow(to))
    return cpu_cast(cx, convert, x[0], to);
  if (mlirIntegerTypeGetWidth(cpu_element(x[0])) <= 16) /* exact in f32 */
    return cpu_round(cx, cpu_cast(cx, convert, x[0], cpu_f32(cx)), to);
  return cpu_round_f64(cx, cpu_cast(cx, convert, x[0], cpu_f64(cx)), to);
}

/* Clamped to the range; NaN becomes its lower end. */
static MlirValue float_to_int(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  (void)num;
  bool is_signed = tw_op_is(op, TW_ARITH_FPTOSI), wide = mlirTypeIsAF64(cpu_element(x[0]));
  MlirType to = tw_result_element(op);
  unsigned bits = mlirIntegerTypeGetWidth(to), via = bits < 32 ? 32 : bits;
  double low = is_signed ? -ldexp(1, (int)bits - 1) : 0, high = ldexp(1, (int)(is_signed ? bits - 1 : bits));
  unsigned mantissa = wide ? 53 : 24, top = is_signed ? bits - 1 : bits;
  high -= top <= mantissa ? 1 : ldexp(1, (int)(top - mantissa)); /* the largest float below */
  MlirType type = mlirValueGetType(x[0]);
  MlirValue lowest = cpu_float_const(cx, type, low), highest = cpu_float_const(cx, type, high);
  MlirValue value = cpu_select(cx, cpu_cmpf(cx, CPU_OGT, x[0], lowest), x[0], lowest);
  value = cpu_select(cx, cpu_cmpf(cx, CPU_OLT, value, highest), value, highest);
  bool as_signed = is_signed || bits < 32;
  value = cpu_cast(cx, as_signed ? "arith.fptosi" : "arith.fptoui", value, cpu_int(cx, via));
  return cpu_cast(cx, "arith.trunci", value, to);
}

static MlirValue bitcast(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  (void)num;
  MlirType from = tw_operand_element(op, 0), to = tw_result_element(op);
  MlirValue bits = cpu_is_narrow(from) ? cpu_narrow_bits(cx, x[0], from) : x[0];
  return cpu_is_narrow(to) ? cpu_widen_bits(cx, bits, to) : cpu_bits(cx, bits, to);
}

static MlirValue constant(cpu_t *cx, MlirOperation op, const cpu_point_t *point) {
  MlirAttribute value = tw_attr(op, "value");
  if (mlirAttributeIsADenseElements(value)) {
    if (!mlirDenseElementsAttrIsSplat(value))
      return cpu_error(cx, op, "a tile constant must have equal elements"), cpu_i64_const(cx, 0);
    value = mlirDenseElementsAttrGetSplatValue(value);
  }
  (void)point;
  MlirType element = tw_result_element(op);
  if (mlirTypeIsAFloat(element))
    return cpu_float_const(cx, cpu_compute_type(cx, element), mlirFloatAttrGetValueDouble(value));
  return cpu_constant(cx, value);
}

static MlirValue int_abs(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  (void)op, (void)num;
  MlirValue zero = cpu_int_const(cx, mlirValueGetType(x[0]), 0);
  return cpu_select(cx, cpu_cmpi(cx, CPU_SLT, x[0], zero), cpu_bin(cx, "arith.subi", zero, x[0]), x[0]);
}

/* By squaring, over all bits of the exponent; negative exponents give what the bits give. */
static MlirValue int_power(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  (void)op, (void)num;
  MlirType type = mlirValueGetType(x[0]);
  unsigned bits = mlirIntegerTypeGetWidth(tw_element(type));
  MlirValue result = cpu_int_const(cx, type, 1), base = x[0], zero = cpu_int_const(cx, type, 0);
  for (unsigned i = 0; i < bits - 1; i++) {
    MlirValue bit = cpu_bin(cx, "arith.andi", x[1], cpu_int_const(cx, type, (int64_t)1 << i));
    result = cpu_select(cx, cpu_cmpi(cx, CPU_NE, bit, zero), cpu_bin(cx, "arith.muli", result, base), result);
    base = cpu_bin(cx, "arith.muli", base, base);
  }
  return result;
}

#define CPU_RULE_SAME(kind, cost) CPU_RULE(kind, CPU_ELEMENTWISE, cost, same, NULL, NULL)
#define CPU_RULE_OWN(kind, cost, f) CPU_RULE(kind, CPU_ELEMENTWISE, cost, f, NULL, NULL)

CPU_RULE(TW_ARITH_CONSTANT, CPU_LEAF, 0, NULL, constant, NULL)
CPU_RULE(TW_TILE_CONSTANT, CPU_LEAF, 0, NULL, constant, NULL) /* made by folding after legalization */
CPU_RULE_SAME(TW_ARITH_ADDF, 1)
CPU_RULE_SAME(TW_ARITH_SUBF, 1)
CPU_RULE_SAME(TW_ARITH_MULF, 1)
CPU_RULE_SAME(TW_ARITH_DIVF, 4)
CPU_RULE_SAME(TW_ARITH_NEGF, 1)
CPU_RULE_SAME(TW_ARITH_REMF, 40)
CPU_RULE_OWN(TW_ARITH_MINIMUMF, 3, minimum)
CPU_RULE_OWN(TW_ARITH_MAXIMUMF, 3, maximum)
CPU_RULE_SAME(TW_ARITH_MINNUMF, 2)
CPU_RULE_SAME(TW_ARITH_MAXNUMF, 2)
CPU_RULE_SAME(TW_ARITH_ADDI, 1)
CPU_RULE_SAME(TW_ARITH_SUBI, 1)
CPU_RULE_SAME(TW_ARITH_MULI, 1)
CPU_RULE_OWN(TW_ARITH_DIVSI, 20, div_signed)
CPU_RULE_OWN(TW_ARITH_DIVUI, 20, div_unsigned)
CPU_RULE_OWN(TW_ARITH_REMSI, 20, rem_signed)
CPU_RULE_OWN(TW_ARITH_REMUI, 20, rem_unsigned)
CPU_RULE_OWN(TW_ARITH_FLOORDIVSI, 20, floor_div)
CPU_RULE_OWN(TW_ARITH_CEILDIVSI, 20, ceil_div)
CPU_RULE_OWN(TW_ARITH_CEILDIVUI, 20, ceil_div_unsigned)
CPU_RULE_SAME(TW_ARITH_ANDI, 1)
CPU_RULE_SAME(TW_ARITH_ORI, 1)
CPU_RULE_SAME(TW_ARITH_XORI, 1)
CPU_RULE_OWN(TW_ARITH_SHLI, 1, shift)
CPU_RULE_OWN(TW_ARITH_SHRSI, 1, shift)
CPU_RULE_OWN(TW_ARITH_SHRUI, 1, shift)
CPU_RULE_SAME(TW_ARITH_MINSI, 1)
CPU_RULE_SAME(TW_ARITH_MAXSI, 1)
CPU_RULE_SAME(TW_ARITH_MINUI, 1)
CPU_RULE_SAME(TW_ARITH_MAXUI, 1)
CPU_RULE_OWN(TW_ARITH_CMPI, 1, compare)
CPU_RULE_OWN(TW_ARITH_CMPF, 1, compare)
CPU_RULE_OWN(TW_ARITH_SELECT, 1, select_lanes)
CPU_RULE_OWN(TW_ARITH_EXTF, 1, extend_float)
CPU_RULE_OWN(TW_ARITH_TRUNCF, 2, truncate_float)
CPU_RULE_SAME(TW_ARITH_EXTSI, 1)
CPU_RULE_SAME(TW_ARITH_EXTUI, 1)
CPU_RULE_SAME(TW_ARITH_TRUNCI, 1)
CPU_RULE_OWN(TW_ARITH_SITOFP, 1, int_to_float)
CPU_RULE_OWN(TW_ARITH_UITOFP, 1, int_to_float)
CPU_RULE_OWN(TW_ARITH_FPTOSI, 3, float_to_int)
CPU_RULE_OWN(TW_ARITH_FPTOUI, 3, float_to_int)
CPU_RULE_OWN(TW_ARITH_BITCAST, 1, bitcast)
CPU_RULE_SAME(TW_ARITH_INDEX_CAST, 1)
CPU_RULE_SAME(TW_ARITH_INDEX_CASTUI, 1)
CPU_RULE_OWN(TW_MATH_ABSI, 2, int_abs)
CPU_RULE_OWN(TW_MATH_IPOWI, 90, int_power)
