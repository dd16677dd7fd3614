/* math.c - rules: functions of real numbers
 *
 * There is no device library: each function is a range reduction, a polynomial and care for the
 * ends, in f32 (about 2 ulp) and f64 (a few ulp). Inputs are f32 or f64, because legalization widens
 * narrower types. Where nothing but 16-bit results is made of a value, the hardware's approximation
 * alone is enough.
 *
 * Polynomials for f32 are minimax fits; those for f64 are Taylor or atanh series cut where a term no
 * longer shows in 53 bits. */
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/facts/accuracy.h"
#include "lowering/launch_record.h"
#include "tilewright/dialect.h"

#include "mlir-c/Dialect/LLVM.h"

#include <math.h>

enum {
  MOST_TOGETHER = 4, /* quotients of one division */
  MOST_AT_ONCE = 32, /* numbers of which a warp looks whether all are small */
  ENOUGH = 8         /* ... and the fewest that are worth a branch */
};

typedef MlirValue (*math_fn_t)(tw_emitter_t *e, MlirValue x, bool rough);

/* ---- shorthand --------------------------------------------------------------------------------- */

static MlirValue k(tw_emitter_t *e, MlirValue like, double value) {
  return twg_const_float(e, mlirValueGetType(like), value);
}
static MlirValue add(tw_emitter_t *e, MlirValue x, MlirValue y) { return twg_binary(e, "llvm.fadd", x, y); }
static MlirValue sub(tw_emitter_t *e, MlirValue x, MlirValue y) { return twg_binary(e, "llvm.fsub", x, y); }
static MlirValue mul(tw_emitter_t *e, MlirValue x, MlirValue y) { return twg_binary(e, "llvm.fmul", x, y); }
static MlirValue negate(tw_emitter_t *e, MlirValue x) { return twg_unary(e, "llvm.fneg", x); }
static MlirValue absolute(tw_emitter_t *e, MlirValue x) { return twg_unary(e, "llvm.intr.fabs", x); }
static bool is_f64(MlirValue x) { return mlirTypeIsAF64(mlirValueGetType(x)); }
/* A product that is rounded, whatever it is added to: LLVM and ptxas make one operation of others and a sum. */
static MlirValue mul_rounded(tw_emitter_t *e, MlirValue x, MlirValue y) {
  MlirValue operands[2] = {x, y};
  const char *name = is_f64(x) ? "llvm.nvvm.mul.rn.d" : "llvm.nvvm.mul.rn.f";
  return twg_intrinsic(e, name, mlirValueGetType(x), 2, operands, TW_PTX_NOTHING);
}

static MlirValue divide(tw_emitter_t *e, MlirValue x, MlirValue y) {
  return is_f64(x) ? twg_binary(e, "llvm.fdiv", x, y) : twg_divide_fast(e, x, y);
}

/* Horner's scheme; the first coefficient is that of the highest power. */
static MlirValue polynomial(tw_emitter_t *e, MlirValue x, int count, const double *coefficients) {
  MlirValue sum = k(e, x, coefficients[0]);
  for (int i = 1; i < count; i++)
    sum = twg_fma(e, sum, x, k(e, x, coefficients[i]));
  return sum;
}

/* A hardware approximation of one f32 operand. */
static MlirValue hardware(tw_emitter_t *e, const char *text, MlirValue x) {
  return twg_asm(e, text, "=f,f", e->f32, 1, &x, TW_PTX_NOTHING);
}

static MlirType int_like(tw_emitter_t *e, MlirValue x) { return is_f64(x) ? e->i64 : e->i32; }

static MlirValue int_const(tw_emitter_t *e, MlirValue like, int64_t value) {
  return twg_const_int(e, mlirValueGetType(like), value);
}

static const double ROUNDS = 0x1.8p23; /* a float of f32 that is added to it has its integer in the last bits */

/* ---- exponentials -------------------------------------------------------------------------------- */

static const double LOG2_E = 1.44269504088896340736, LN_2 = 0.69314718055994530942;

/* 2^n as a float, from an integral float n within the normal exponents. */
static MlirValue power_of_two(tw_emitter_t *e, MlirValue n) {
  MlirType type = mlirValueGetType(n), ints = int_like(e, n);
  MlirValue i = twg_float_to_int(e, "llvm.fptosi", ints, n);
  i = twg_binary(e, "llvm.add", i, int_const(e, i, is_f64(n) ? 1023 : 127));
  return twg_bitcast(e, twg_binary(e, "llvm.shl", i, int_const(e, i, is_f64(n) ? 52 : 23)), type);
}

/* e^r for |r| <= ln(2) / 2, f64. */
static MlirValue exp_near_zero(tw_emitter_t *e, MlirValue r) {
  double c[14], factorial = 1;
  for (int i = 0; i < 14; i++) {
    factorial *= i > 0 ? i : 1;
    c[13 - i] = 1 / factorial;
  }
  return polynomial(e, r, 14, c);
}

static MlirValue clamp(tw_emitter_t *e, MlirValue x, double low, double high) {
  x = twg_binary(e, "llvm.intr.maximum", x, k(e, x, low));
  return twg_binary(e, "llvm.intr.minimum", x, k(e, x, high));
}

/* p * 2^n in two steps, so that neither factor overflows where the product does not. */
static MlirValue scale(tw_emitter_t *e, MlirValue p, MlirValue n) {
  MlirValue half = twg_unary(e, "llvm.intr.floor", mul(e, n, k(e, n, 0.5)));
  p = mul(e, p, power_of_two(e, half));
  return mul(e, p, power_of_two(e, sub(e, n, half)));
}

static MlirValue exp_f64(tw_emitter_t *e, MlirValue x) {
  x = clamp(e, x, -760, 720);
  MlirValue n = twg_unary(e, "llvm.intr.rint", mul(e, x, k(e, x, LOG2_E)));
  MlirValue r = twg_fma(e, n, k(e, x, -0x1.62e42fefa3800p-1), x);
  r = twg_fma(e, n, k(e, x, -0x1.ef35793c76730p-45), r);
  return scale(e, exp_near_zero(e, r), n);
}

/* 2^(x + low), where the low part may be null. */
static MlirValue exp2_of_sum(tw_emitter_t *e, MlirValue x, MlirValue low) {
  x = clamp(e, x, -1100, 1030);
  MlirValue n = twg_unary(e, "llvm.intr.rint", x), r = sub(e, x, n);
  r = low.ptr ? add(e, r, low) : r;
  return scale(e, exp_near_zero(e, mul(e, r, k(e, x, LN_2))), n);
}

static MlirValue exp2_f64(tw_emitter_t *e, MlirValue x) { return exp2_of_sum(e, x, (MlirValue){NULL}); }

/* Where it is rough, results below the normal floats become 0: keeping them costs three instructions more. */
static MlirValue emit_exp2(tw_emitter_t *e, MlirValue x, bool rough) {
  if (is_f64(x))
    return exp2_f64(e, x);
  return hardware(e, rough ? "ex2.approx.ftz.f32 $0, $1;" : "ex2.approx.f32 $0, $1;", x);
}

/* x * y + z of f32 by one of the hardware's other roundings: `sat` to [0, 1], `rm` down. */
static MlirValue fma_f32(tw_emitter_t *e, const char *name, MlirValue x, MlirValue y, MlirValue z) {
  MlirValue operands[3] = {x, y, z};
  return twg_intrinsic(e, name, e->f32, 3, operands, TW_PTX_EFFECT); /* stays where the function has it */
}

/* e^(factor x) = 2^n 2^r for a factor that is a power of two, with n rounded down and kept among the normal exponents:
 * r takes what is beyond. n + 127 appears in the last bits of a float whose unit is 1. */
static MlirValue exp_f32(tw_emitter_t *e, MlirValue x, double factor) {
  static const double least = 126, range = 2 * 126, unit = 0x1.8p23 + 1;
  double step = factor * LOG2_E, high = (float)step;
  MlirValue share = fma_f32(e, "llvm.nvvm.fma.rn.sat.f", x, k(e, x, step / range), k(e, x, 0.5));
  MlirValue marked = fma_f32(e, "llvm.nvvm.fma.rm.f", share, k(e, x, range), k(e, x, unit));
  MlirValue n = sub(e, marked, k(e, x, unit + least));
  MlirValue r = twg_fma(e, x, k(e, x, high), negate(e, n));
  r = twg_fma(e, x, k(e, x, step - high), r);
  MlirValue power = twg_binary(e, "llvm.shl", twg_bitcast(e, marked, e->i32), twg_const_i32(e, 23));
  return mul(e, hardware(e, "ex2.approx.ftz.f32 $0, $1;", r), twg_bitcast(e, power, e->f32));
}

static MlirValue emit_exp(tw_emitter_t *e, MlirValue x, bool rough) {
  if (is_f64(x))
    return exp_f64(e, x);
  return rough ? emit_exp2(e, mul(e, x, k(e, x, LOG2_E)), true) : exp_f32(e, x, 1);
}

/* ---- logarithms ---------------------------------------------------------------------------------- */

/* x = m * 2^exponent with m in [least, 2 least). */
typedef struct split {
  MlirValue m, exponent; /* floats */
  MlirValue bits;        /* of x, or of a subnormal one times a power of two */
} split_float_t;

/* `least` as bits. */
static const int64_t TWO_THIRDS = 0x3F2AAAAB, TWO_THIRDS_64 = INT64_C(0x3FE5555555555555), ROOT_OF_HALF = 0x3F3504F3;

/* For x whose bits are those of a normal positive number; of f32 the exponent comes times 2^23. */
static split_float_t split_normal(tw_emitter_t *e, MlirValue x, int64_t least) {
  MlirType type = mlirValueGetType(x), ints = int_like(e, x);
  bool wide = is_f64(x);
  int mantissa = wide ? 52 : 23;
  split_float_t out = {.bits = twg_bitcast(e, x, ints)};
  MlirValue above = twg_binary(e, "llvm.sub", out.bits, int_const(e, out.bits, least));
  MlirValue moved = twg_binary(e, "llvm.and", above, int_const(e, above, -(INT64_C(1) << mantissa)));
  out.m = twg_bitcast(e, twg_binary(e, "llvm.sub", out.bits, moved), type);
  MlirValue count = wide ? twg_binary(e, "llvm.ashr", above, int_const(e, above, mantissa)) : moved;
  out.exponent = twg_cast(e, "llvm.sitofp", type, count);
  return out;
}

static split_float_t split(tw_emitter_t *e, MlirValue x, int64_t least) {
  bool wide = is_f64(x);
  int mantissa = wide ? 52 : 23;
  MlirValue tiny = twg_fcmp(e, TW_OLT, x, k(e, x, wide ? 0x1p-1022 : 0x1p-126)); /* subnormals */
  x = twg_select(e, tiny, mul(e, x, k(e, x, ldexp(1, mantissa))), x);
  split_float_t out = split_normal(e, x, least);
  MlirValue less = twg_select(e, tiny, k(e, x, -mantissa), k(e, x, 0));
  out.exponent = wide ? add(e, out.exponent, less) : twg_fma(e, out.exponent, k(e, x, 0x1p-23), less);
  return out;
}

/* Of f32, with the coefficients and the order of operations of CUDA's library (13.0, from the PTX of nvcc), so that
 * programs that compare with it find the same bits: ln(1 + f) for f in [-1/3, 1/3), and log2(1 + f) for f + 1 between
 * the roots of 1/2 and 2. */
static MlirValue log_near_one_f32(tw_emitter_t *e, MlirValue f) {
  static const double c[] = {-0x1.0aa04ep-3, 0x1.2073ecp-3,  -0x1.f19b98p-4, 0x1.1e52aap-3, -0x1.55b172p-3,
                             0x1.99da16p-3,  -0x1.fffe44p-3, 0x1.5554fp-2,   -0.5};
  return twg_fma(e, mul(e, f, polynomial(e, f, 9, c)), f, f);
}

static MlirValue log2_near_one_f32(tw_emitter_t *e, MlirValue f) {
  static const double c[] = {0x1.8d64fep-4,  -0x1.58fe6p-3, 0x1.5f9e54p-3,  -0x1.6e9c86p-3, 0x1.a417e8p-3,
                             -0x1.ec7916p-3, 0x1.277f32p-2, -0x1.715492p-2, 0x1.ec7094p-2,  -0x1.715476p-1};
  return twg_fma(e, f, k(e, f, (float)LOG2_E), mul(e, f, mul(e, f, polynomial(e, f, 10, c))));
}

/* 2 atanh(s) = 2 s + s z p, f64: p for z = s^2 <= 1/25. */
static MlirValue atanh_rest(tw_emitter_t *e, MlirValue z) {
  double c[12];
  for (int i = 0; i < 12; i++)
    c[11 - i] = 2.0 / (2 * i + 3);
  return polynomial(e, z, 12, c);
}

/* ln(m) = 2 atanh(s), s = (m - 1) / (m + 1), f64. */
static MlirValue log_f64_near_one(tw_emitter_t *e, MlirValue m) {
  MlirValue f = sub(e, m, k(e, m, 1)), s = divide(e, f, add(e, m, k(e, m, 1))), z = mul(e, s, s);
  /* 2s = f - s f, which keeps the leading part exact */
  MlirValue rest = mul(e, mul(e, s, z), atanh_rest(e, z));
  return add(e, f, sub(e, rest, mul(e, s, f)));
}

/* -inf at 0, NaN below, inf at inf. The bits of what is below zero are above those of an infinity. */
static MlirValue log_ends(tw_emitter_t *e, MlirValue x, split_float_t s, MlirValue y) {
  MlirValue inf = k(e, x, INFINITY), above = twg_fma(e, x, inf, inf);
  y = twg_select(e, twg_icmp(e, TW_UGE, s.bits, twg_bitcast(e, inf, int_like(e, x))), above, y);
  return twg_select(e, twg_fcmp(e, TW_OEQ, x, k(e, x, 0)), k(e, x, -INFINITY), y);
}

static MlirValue emit_log(tw_emitter_t *e, MlirValue x, bool rough) {
  if (rough && !is_f64(x))
    return mul(e, hardware(e, "lg2.approx.f32 $0, $1;", x), k(e, x, LN_2));
  split_float_t s = split(e, x, is_f64(x) ? TWO_THIRDS_64 : TWO_THIRDS);
  MlirValue y;
  if (is_f64(x)) {
    y = twg_fma(e, s.exponent, k(e, x, 0x1.ef35793c76730p-45), log_f64_near_one(e, s.m));
    y = twg_fma(e, s.exponent, k(e, x, 0x1.62e42fefa3800p-1), y);
  } else {
    y = twg_fma(e, s.exponent, k(e, x, LN_2), log_near_one_f32(e, sub(e, s.m, k(e, x, 1))));
  }
  return log_ends(e, x, s, y);
}

static MlirValue emit_log2(tw_emitter_t *e, MlirValue x, bool rough) {
  if (rough && !is_f64(x))
    return hardware(e, "lg2.approx.f32 $0, $1;", x);
  split_float_t s = split(e, x, is_f64(x) ? TWO_THIRDS_64 : ROOT_OF_HALF);
  MlirValue y;
  if (is_f64(x)) {
    MlirValue ln = log_f64_near_one(e, s.m), factor = k(e, x, LOG2_E);
    MlirValue high = mul(e, ln, factor), low = twg_fma(e, ln, factor, negate(e, high));
    low = twg_fma(e, ln, k(e, x, 0x1.777d0ffda0d24p-56), low);
    y = add(e, s.exponent, add(e, high, low));
  } else {
    y = add(e, s.exponent, log2_near_one_f32(e, sub(e, s.m, k(e, x, 1))));
  }
  return log_ends(e, x, s, y);
}

/* ---- roots ------------------------------------------------------------------------------------- */

static MlirValue emit_sqrt(tw_emitter_t *e, MlirValue x, bool rough) {
  (void)rough;
  return twg_unary(e, "llvm.intr.sqrt", x);
}

static MlirValue emit_rsqrt(tw_emitter_t *e, MlirValue x, bool rough) {
  if (is_f64(x))
    return divide(e, k(e, x, 1), emit_sqrt(e, x, rough));
  return hardware(e, "rsqrt.approx.f32 $0, $1;", x);
}

/* ---- circular functions -------------------------------------------------------------------------- */

/* x = n * pi/2 + r, |r| <= pi/4. */
typedef struct turned {
  MlirValue r, quadrant; /* of the type of x; an integer as wide */
} turned_t;

/* Below this the near reduction is good: in f64 with pi/2 in two parts to 2^-60, in f32 in three parts to a last place
 * of r. */
static double near_turns(MlirValue x) { return is_f64(x) ? 0x1p40 : 0x1p17; }

/* n appears in the last bits of a float whose unit is 1. The first part of pi/2 times n leaves a difference that is a
 * float; all parts are above zero, so that -0 stays. */
static turned_t turn_near_f32(tw_emitter_t *e, MlirValue x) {
  MlirValue marked = twg_fma(e, x, k(e, x, 0.63661977236758134308), k(e, x, ROUNDS)),
            n = sub(e, marked, k(e, x, ROUNDS));
  MlirValue r = twg_fma(e, n, k(e, x, -0x1.921fb4p+0), x);
  r = twg_fma(e, n, k(e, x, -0x1.4442dp-24), r);
  r = twg_fma(e, n, k(e, x, -0x1.846988p-48), r);
  return (turned_t){r, twg_bitcast(e, marked, e->i32)};
}

static turned_t turn_near(tw_emitter_t *e, MlirValue x) {
  if (!is_f64(x))
    return turn_near_f32(e, x);
  MlirValue n = twg_unary(e, "llvm.intr.rint", mul(e, x, k(e, x, 0.63661977236758134308)));
  n = add(e, n, k(e, x, 0)); /* of -0 it is 0 */
  MlirValue r = twg_fma(e, n, k(e, x, -0x1.921fb54442d18p+0), x);
  r = twg_fma(e, n, k(e, x, -0x1.1a62633145c07p-54), r);
  return (turned_t){r, twg_float_to_int(e, "llvm.fptosi", e->i64, n)};
}

/* 2/pi after the point, behind a word of zeros: as many bits as an f64 has places. */
static const uint64_t two_over_pi[] = {
    0, /* */
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
};
enum { WORD = 64 };

/* The table's place in memory, made when it is first asked for. */
static MlirValue table_of_turns(tw_emitter_t *e) {
  static const char name[] = "tile_two_over_pi";
  MlirBlock body = mlirModuleGetBody(mlirModuleFromOperation(e->module));
  MlirOperation op = mlirBlockGetFirstOperation(body);
  while (!mlirOperationIsNull(op) && !mlirStringRefEqual(tw_attr_string(op, "sym_name"), tw_str(name)))
    op = mlirOperationGetNextInBlock(op);
  if (!mlirOperationIsNull(op))
    return twg_address_of(e, tw_str(name), TW_SPACE_GLOBAL);
  MlirStringRef bytes = mlirStringRefCreate((const char *)two_over_pi, sizeof two_over_pi);
  MlirType type = mlirLLVMArrayTypeGet(e->i8, sizeof two_over_pi);
  return twg_constant_global(e, name, type, mlirStringAttrGet(e->context, bytes), TW_SPACE_GLOBAL, sizeof *two_over_pi);
}

static MlirValue i64_binary(tw_emitter_t *e, const char *name, MlirValue x, int64_t y) {
  return twg_binary(e, name, x, twg_const_int(e, mlirValueGetType(x), y));
}

/* So many words of 2/pi from bit `first` of the table on, the high ones first. */
static void window_of_turns(tw_emitter_t *e, MlirValue first, int count, MlirValue *out) {
  enum { BYTES = 8 };
  MlirValue words[4], table = table_of_turns(e);
  MlirValue from = i64_binary(e, "llvm.shl", i64_binary(e, "llvm.lshr", first, 6), 3);
  for (int i = 0; i <= count; i++)
    words[i] =
        twg_load_from(e, e->i64, twg_offset_pointer(e, table, i64_binary(e, "llvm.add", from, i * BYTES)), BYTES);
  for (int i = 0; i < count; i++) {
    MlirValue operands[] = {words[i], words[i + 1], i64_binary(e, "llvm.and", first, WORD - 1)};
    out[i] = twg_intrinsic(e, "llvm.fshl.i64", e->i64, 3, operands, TW_PTX_NOTHING);
  }
}

/* Payne and Hanek's reduction, for |x| from near_turns on: x = m * 2^p with a whole m, and of m * 2/pi * 2^p whole
 * circles are left out before they are computed. What is left are quadrants in 2 bits and, of f64, 126 bits behind the
 * point, of which cancellation takes no more than 61. Not a number where x is infinite. */
static turned_t turn_far_f64(tw_emitter_t *e, MlirValue wide) {
  enum { MANTISSA = 52, BIAS = 1075, LEFT_OUT = 2, FRACTION = 126 };
  MlirType i128 = mlirIntegerTypeGet(e->context, 2 * WORD);
  MlirValue bits = twg_bitcast(e, wide, e->i64), window[3];
  MlirValue exponent = i64_binary(e, "llvm.and", i64_binary(e, "llvm.lshr", bits, MANTISSA), 0x7ff);
  MlirValue m =
      i64_binary(e, "llvm.or", i64_binary(e, "llvm.and", bits, (INT64_C(1) << MANTISSA) - 1), INT64_C(1) << MANTISSA);
  window_of_turns(e, i64_binary(e, "llvm.add", exponent, WORD - BIAS - LEFT_OUT), 3, window);
  MlirValue high = twg_cast(e, "llvm.zext", i128, twg_binary(e, "llvm.mul", m, window[0])), turns;
  MlirValue whole = twg_cast(e, "llvm.zext", i128, m);
  MlirValue middle = twg_binary(e, "llvm.mul", whole, twg_cast(e, "llvm.zext", i128, window[1]));
  MlirValue low = twg_binary(e, "llvm.mul", whole, twg_cast(e, "llvm.zext", i128, window[2]));
  turns = twg_binary(e, "llvm.add", middle, i64_binary(e, "llvm.lshr", low, WORD));
  turns = twg_binary(e, "llvm.add", turns, i64_binary(e, "llvm.shl", high, WORD));
  MlirValue half = i64_binary(e, "llvm.shl", twg_const_int(e, i128, 1), FRACTION - 1);
  MlirValue q = i64_binary(e, "llvm.lshr", twg_binary(e, "llvm.add", turns, half), FRACTION);
  MlirValue rest = twg_binary(e, "llvm.sub", turns, i64_binary(e, "llvm.shl", q, FRACTION));
  MlirValue above =
      twg_cast(e, "llvm.sitofp", e->f64, twg_cast(e, "llvm.trunc", e->i64, i64_binary(e, "llvm.ashr", rest, WORD)));
  MlirValue below = twg_cast(e, "llvm.uitofp", e->f64, twg_cast(e, "llvm.trunc", e->i64, rest));
  MlirValue r = twg_fma(e, above, k(e, wide, 0x1p64), below);
  r = mul(e, r, k(e, wide, 0x1.921fb54442d18p+0 * 0x1p-126));
  MlirValue quadrant = twg_cast(e, "llvm.trunc", e->i64, q), minus = i64_binary(e, "llvm.mul", quadrant, -1);
  MlirValue negative = twg_icmp(e, TW_SLT, bits, twg_const_int(e, e->i64, 0));
  r = add(e, twg_select(e, negative, negate(e, r), r), sub(e, wide, wide));
  return (turned_t){r, twg_select(e, negative, minus, quadrant)};
}

/* The same of f32: 62 bits behind the point, of which cancellation takes no more than 32. */
static turned_t turn_far_f32(tw_emitter_t *e, MlirValue x) {
  enum { MANTISSA = 23, BIAS = 150, LEFT_OUT = 2, FRACTION = 62, HALF_WORD = 32 };
  MlirValue word = twg_bitcast(e, x, e->i32), bits = twg_cast(e, "llvm.zext", e->i64, word), window[2];
  MlirValue exponent = i64_binary(e, "llvm.and", i64_binary(e, "llvm.lshr", bits, MANTISSA), 0xff);
  MlirValue m = i64_binary(e, "llvm.or", i64_binary(e, "llvm.and", bits, (1 << MANTISSA) - 1), 1 << MANTISSA);
  window_of_turns(e, i64_binary(e, "llvm.add", exponent, WORD - BIAS - LEFT_OUT), 2, window);
  MlirValue low = twg_binary(e, "llvm.mul", m, i64_binary(e, "llvm.lshr", window[1], HALF_WORD));
  MlirValue turns =
      twg_binary(e, "llvm.add", twg_binary(e, "llvm.mul", m, window[0]), i64_binary(e, "llvm.lshr", low, HALF_WORD));
  MlirValue q = i64_binary(e, "llvm.lshr", i64_binary(e, "llvm.add", turns, INT64_C(1) << (FRACTION - 1)), FRACTION);
  MlirValue rest = twg_binary(e, "llvm.sub", turns, i64_binary(e, "llvm.shl", q, FRACTION));
  MlirValue wide = twg_cast(e, "llvm.sitofp", e->f64, rest);
  MlirValue r = twg_cast(e, "llvm.fptrunc", e->f32, mul(e, wide, k(e, wide, 0x1.921fb54442d18p+0 * 0x1p-62)));
  MlirValue quadrant = twg_cast(e, "llvm.trunc", e->i32, q);
  MlirValue minus = twg_binary(e, "llvm.sub", twg_const_i32(e, 0), quadrant);
  MlirValue negative = twg_icmp(e, TW_SLT, word, twg_const_i32(e, 0));
  r = add(e, twg_select(e, negative, negate(e, r), r), sub(e, x, x));
  return (turned_t){r, twg_select(e, negative, minus, quadrant)};
}

/* Of several numbers. The far ones are a branch that is seldom taken. */
static void turn_all(tw_emitter_t *e, int num, const MlirValue *x, turned_t *out) {
  MlirType types[2 * MOST_AT_ONCE];
  MlirValue near[2 * MOST_AT_ONCE], far[2 * MOST_AT_ONCE], is_far[MOST_AT_ONCE], any = {NULL};
  for (int i = 0; i < num; i++) {
    turned_t t = turn_near(e, x[i]);
    near[i] = t.r;
    near[num + i] = t.quadrant;
    types[i] = mlirValueGetType(t.r);
    types[num + i] = mlirValueGetType(t.quadrant);
    is_far[i] = twg_fcmp(e, TW_OGE, absolute(e, x[i]), k(e, x[i], near_turns(x[i])));
    any = i ? twg_binary(e, "llvm.or", any, is_far[i]) : is_far[i];
  }
  MlirBlock away = twg_new_block(e, 0, NULL), join = twg_new_block(e, 2 * num, types);
  twg_branch_if(e, any, away, 0, NULL, join, 2 * num, near);
  e->block = away;
  for (int i = 0; i < num; i++) { /* of near ones the table has no bits */
    MlirValue from = twg_select(e, is_far[i], x[i], k(e, x[i], near_turns(x[i])));
    turned_t t = is_f64(from) ? turn_far_f64(e, from) : turn_far_f32(e, from);
    far[i] = twg_select(e, is_far[i], t.r, near[i]);
    far[num + i] = twg_select(e, is_far[i], t.quadrant, near[num + i]);
  }
  twg_branch(e, join, 2 * num, far);
  e->block = join;
  for (int i = 0; i < num; i++)
    out[i] = (turned_t){mlirBlockGetArgument(join, i), mlirBlockGetArgument(join, num + i)};
}

/* r (1 + z p), z = r^2: a product at the end, which keeps the sign of 0. */
static MlirValue sin_near_zero(tw_emitter_t *e, MlirValue r) {
  static const double narrow[] = {-0.0001951809972524643, 0.008332188241183758, -0.16666655242443085};
  double wide[8], factorial = 1;
  for (int i = 0; i < 8; i++) {
    factorial *= -(2 * i + 2) * (2 * i + 3);
    wide[7 - i] = 1 / factorial;
  }
  MlirValue z = mul(e, r, r), p = is_f64(r) ? polynomial(e, z, 8, wide) : polynomial(e, z, 3, narrow);
  return mul(e, twg_fma(e, p, z, k(e, r, 1)), r);
}

static MlirValue cos_near_zero(tw_emitter_t *e, MlirValue r) {
  static const double narrow[] = {2.4432552891084924e-05, -0.0013887310633435845, 0.04166664555668831, -0.5, 1};
  double wide[8], factorial = -2;
  for (int i = 0; i < 8; i++) {
    factorial *= -(2 * i + 3) * (2 * i + 4);
    wide[7 - i] = 1 / factorial;
  }
  MlirValue z = mul(e, r, r);
  if (!is_f64(r))
    return polynomial(e, z, 5, narrow);
  MlirValue p = twg_fma(e, mul(e, z, z), polynomial(e, z, 8, wide), k(e, r, 1));
  return twg_fma(e, z, k(e, r, -0.5), p);
}

/* sin of (quadrant + shift) right angles and r. */
static MlirValue circular(tw_emitter_t *e, turned_t t, int shift) {
  enum { SIGN = 1 }; /* the bit that turns it */
  MlirType ints = mlirValueGetType(t.quadrant), type = mlirValueGetType(t.r);
  MlirValue q = shift ? twg_binary(e, "llvm.add", t.quadrant, twg_const_int(e, ints, shift)) : t.quadrant;
  MlirValue odd =
      twg_icmp(e, TW_NE, twg_binary(e, "llvm.and", q, twg_const_int(e, ints, 1)), twg_const_int(e, ints, 0));
  MlirValue y = twg_select(e, odd, cos_near_zero(e, t.r), sin_near_zero(e, t.r));
  int top = is_f64(y) ? 63 : 31;
  MlirValue sign = twg_binary(e, "llvm.shl", q, twg_const_int(e, ints, top - SIGN));
  sign = twg_binary(e, "llvm.and", sign, twg_const_int(e, ints, is_f64(y) ? INT64_MIN : INT32_MIN));
  return twg_bitcast(e, twg_binary(e, "llvm.xor", twg_bitcast(e, y, ints), sign), type);
}

static bool is_circular(MlirOperation op) {
  return tw_op_is(op, TW_MATH_SIN) || tw_op_is(op, TW_MATH_COS) || tw_op_is(op, TW_MATH_TAN);
}

static bool emit_circular(tw_emitter_t *e, MlirOperation op) {
  tw_values_t x = twg_operand(e, op, 0), out = twg_new_values(e, x.count);
  for (int first = 0, num; first < x.count; first += num) {
    turned_t t[MOST_AT_ONCE];
    num = x.count - first < MOST_AT_ONCE ? x.count - first : MOST_AT_ONCE;
    turn_all(e, num, x.at + first, t);
    for (int i = 0; i < num; i++) {
      MlirValue y = circular(e, t[i], tw_op_is(op, TW_MATH_COS));
      out.at[first + i] = tw_op_is(op, TW_MATH_TAN) ? divide(e, y, circular(e, t[i], 1)) : y;
    }
  }
  twg_set_result(e, op, 0, out);
  return true;
}

/* ---- hyperbolic functions ------------------------------------------------------------------------ */

static MlirValue with_sign_of(tw_emitter_t *e, MlirValue magnitude, MlirValue x) {
  return twg_binary(e, "llvm.intr.copysign", magnitude, x);
}

/* e^a / 2, which overflows no earlier than the result does. */
static MlirValue half_exp(tw_emitter_t *e, MlirValue a) {
  MlirValue root = emit_exp(e, mul(e, a, k(e, a, 0.5)), false);
  MlirValue far = mul(e, mul(e, root, k(e, a, 0.5)), root);
  MlirValue near = mul(e, emit_exp(e, a, false), k(e, a, 0.5));
  return twg_select(e, twg_fcmp(e, TW_OGT, a, k(e, a, is_f64(a) ? 700 : 85)), far, near);
}

/* x + x^3 p(x^2) where cancellation would show. */
static MlirValue sinh_near_zero(tw_emitter_t *e, MlirValue x) {
  static const double narrow[] = {0.0002037740487139672, 0.008330211043357849, 0.166667178273201};
  double wide[9], factorial = 1;
  for (int i = 0; i < 9; i++) {
    factorial *= (2 * i + 2) * (2 * i + 3);
    wide[8 - i] = 1 / factorial;
  }
  MlirValue z = mul(e, x, x), p = is_f64(x) ? polynomial(e, z, 9, wide) : polynomial(e, z, 3, narrow);
  return twg_fma(e, mul(e, x, z), p, x);
}

static MlirValue emit_sinh(tw_emitter_t *e, MlirValue x, bool rough) {
  (void)rough;
  MlirValue a = absolute(e, x), half = half_exp(e, a);
  MlirValue far = with_sign_of(e, sub(e, half, divide(e, k(e, x, 0.25), half)), x);
  return twg_select(e, twg_fcmp(e, TW_OLT, a, k(e, x, 1)), sinh_near_zero(e, x), far);
}

static MlirValue emit_cosh(tw_emitter_t *e, MlirValue x, bool rough) {
  (void)rough;
  MlirValue half = half_exp(e, absolute(e, x));
  return add(e, half, divide(e, k(e, x, 0.25), half));
}

/* Near 0 a polynomial (f32) or sinh / cosh (f64), else 1 - 2 / (e^2x + 1). */
static MlirValue tanh_near_zero(tw_emitter_t *e, MlirValue x) {
  static const double narrow[] = {-0.005717044696211815, 0.020650586113333702, -0.05374349653720856,
                                  0.13331490755081177, -0.3333328366279602};
  if (is_f64(x))
    return divide(e, sinh_near_zero(e, x), emit_cosh(e, x, false));
  MlirValue z = mul(e, x, x); /* a product at the end keeps the sign of 0 */
  return mul(e, twg_fma(e, polynomial(e, z, 5, narrow), z, k(e, x, 1)), x);
}

static MlirValue inverse_of_large(tw_emitter_t *e, MlirValue x) {
  return is_f64(x) ? divide(e, k(e, x, 1), x) : twg_inverse_of_large(e, x);
}

static MlirValue emit_tanh(tw_emitter_t *e, MlirValue x, bool rough) {
  MlirValue a = absolute(e, x), one = k(e, x, 1);
  MlirValue grown = emit_exp(e, add(e, a, a), rough);
  MlirValue inverse = inverse_of_large(e, add(e, grown, one));
  MlirValue far = with_sign_of(e, twg_fma(e, k(e, x, -2), inverse, one), x);
  return twg_select(e, twg_fcmp(e, TW_OLT, a, k(e, x, 0.625)), tanh_near_zero(e, x), far);
}

/* 1 divided by each number. One division of the slow unit serves all; the product of the numbers must be a normal
 * float. */
static void invert_together(tw_emitter_t *e, int count, MlirValue *x) {
  MlirValue product[MOST_TOGETHER] = {x[0]};
  for (int i = 1; i < count; i++)
    product[i] = mul(e, product[i - 1], x[i]);
  MlirValue inverse = inverse_of_large(e, product[count - 1]);
  for (int i = count - 1; i > 0; i--) {
    MlirValue rest = mul(e, inverse, x[i]);
    x[i] = mul(e, inverse, product[i - 1]);
    inverse = rest;
  }
  x[0] = inverse;
}

/* tanh(factor * x) as 1 - 2 / (e^2x + 1). Four share a division, for which what is divided by must be a number, and not
 * too large; where it is none, the difference is not either. */
static void bend_far(tw_emitter_t *e, int num, const MlirValue *x, double factor, MlirValue *out) {
  static const double large = 0x1p30;
  MlirValue one = twg_const_float(e, e->f32, 1);
  for (int first = 0; first < num; first += MOST_TOGETHER) {
    int count = num - first < MOST_TOGETHER ? num - first : MOST_TOGETHER;
    MlirValue grown[MOST_TOGETHER], inverse[MOST_TOGETHER];
    for (int i = 0; i < count; i++) {
      MlirValue power = emit_exp2(e, mul(e, x[first + i], k(e, one, 2 * LOG2_E * factor)), true);
      grown[i] = add(e, power, one);
      inverse[i] = twg_binary(e, "llvm.intr.minnum", grown[i], k(e, one, large));
    }
    invert_together(e, count, inverse);
    for (int i = 0; i < count; i++)
      out[first + i] = twg_binary(e, "llvm.intr.minimum", twg_fma(e, k(e, one, -2), inverse[i], one), grown[i]);
  }
}

static const double NEAR = 0.38; /* where three terms of tanh are exact to 2^-20 */

/* How far the squares of factor * x are above that of the limit: below zero where |factor * x| is below it. */
static void above_limit(tw_emitter_t *e, int num, const MlirValue *x, double factor, MlirValue *out) {
  double limit = NEAR / factor;
  for (int i = 0; i < num; i++)
    out[i] = twg_fma(e, x[i], x[i], k(e, x[i], -limit * limit));
}

/* Whether some lane of the warp has one that is not below zero: signs are collected by logic of three inputs. */
static MlirValue any_above(tw_emitter_t *e, int num, const MlirValue *distance) {
  MlirValue signs[MOST_AT_ONCE];
  for (int i = 0; i < num; i++)
    signs[i] = twg_bitcast(e, distance[i], e->i32);
  for (; num > 1; num = (num + 2) / 3)
    for (int i = 0; i < num; i += 3) {
      MlirValue both = i + 1 < num ? twg_binary(e, "llvm.and", signs[i], signs[i + 1]) : signs[i];
      signs[i / 3] = i + 2 < num ? twg_binary(e, "llvm.and", both, signs[i + 2]) : both;
    }
  MlirValue operands[] = {twg_const_i32(e, -1), twg_icmp(e, TW_SGE, signs[0], twg_const_i32(e, 0))};
  return twg_intrinsic(e, "llvm.nvvm.vote.any.sync", e->i1, 2, operands, TW_PTX_EFFECT);
}

/* tanh(factor * x) where that is small: x times a polynomial in that distance, which costs no more than one in the
 * square. Where some are not small, another x at distance zero gives what they are bent to. So that part is a branch
 * which is seldom taken, and all else one block with what is made of the result, for the assembler to interleave. */
static void bend_any(tw_emitter_t *e, int num, const MlirValue *x, double factor, MlirValue *out) {
  static const double terms[] = {0.12068123942751187, -0.2975921340300244, 0.954495568649966};
  double scaled[3], power = factor;
  for (int i = 2; i >= 0; i--, power *= factor * factor)
    scaled[i] = terms[i] * power;
  MlirType types[2 * MOST_AT_ONCE];
  MlirValue near[2 * MOST_AT_ONCE], bent[2 * MOST_AT_ONCE];
  for (int i = 0; i < 2 * num; i++)
    types[i] = e->f32;
  for (int i = 0; i < num; i++)
    near[i] = x[i];
  above_limit(e, num, x, factor, near + num);
  MlirBlock far = twg_new_block(e, 0, NULL), join = twg_new_block(e, 2 * num, types);
  twg_branch_if(e, any_above(e, num, near + num), far, 0, NULL, join, 2 * num, near);
  e->block = far;
  bend_far(e, num, x, factor, bent);
  for (int i = 0; i < num; i++) {
    bent[i] = mul(e, bent[i], k(e, x[i], 1 / scaled[2]));
    bent[num + i] = k(e, x[i], 0);
  }
  twg_branch(e, join, 2 * num, bent);
  e->block = join;
  for (int i = 0; i < num; i++)
    out[i] = mul(e, mlirBlockGetArgument(join, i), polynomial(e, mlirBlockGetArgument(join, num + i), 3, scaled));
}

/* tanh exact to 2^-20, however small the result is. A factor of x joins those of the terms. Scores are mostly far below
 * their cap: a warp whose numbers all are does without the slow unit. */
static bool emit_tanh_absolute(tw_emitter_t *e, MlirOperation op) {
  static const double least = 0x1p-15, most = 0x1p15; /* factors whose powers are normal floats */
  double factor = 1, own;
  MlirValue input = mlirOperationGetOperand(op, 0), rest;
  if (tw_has_factor(input, &own, &rest) && fabs(own) > least && fabs(own) < most) {
    factor = own;
    input = rest;
  }
  tw_values_t x = twg_lookup(e, input), out = twg_new_values(e, x.count);
  for (int first = 0, num; first < x.count; first += num) {
    num = x.count - first < MOST_AT_ONCE ? x.count - first : MOST_AT_ONCE;
    (num < ENOUGH ? bend_far : bend_any)(e, num, x.at + first, factor, out.at + first);
  }
  twg_set_result(e, op, 0, out);
  return true;
}

/* 1 + tanh(x) = 2 / (1 + e^-2x), which is cheaper, and exact where the sum would cancel. */
static MlirValue one_plus_tanh(tw_emitter_t *e, MlirValue x, bool rough) {
  MlirValue half = k(e, x, 0.5);
  MlirValue grown = rough ? emit_exp2(e, mul(e, x, k(e, x, -2 * LOG2_E)), true) : exp_f32(e, x, -2);
  return twg_inverse_of_large(e, twg_fma(e, grown, half, half));
}

/* ---- pow --------------------------------------------------------------------------------------- */

/* x^y = 2^whole 2^below, below the last place of `whole` */
typedef struct {
  MlirValue whole, below; /* f32 */
} long_power_t;

/* For an f32 x whose bits are those of a normal number. log2(x) is a float and a rest that corrects it: e + K (s + s^3
 * / 3
 * + ...), with s = f / (2 + f) and K = 2 log2(e). `less`, which may be null, is taken from the exponent. */
static long_power_t power_of_normal(tw_emitter_t *e, MlirValue x, MlirValue less, MlirValue y) {
  static const double c[] = {0.12140004336833954, 0.1424938291311264, 0.20000486075878143, 0.3333333134651184};
  double step = 2 * LOG2_E, high = (float)step;
  split_float_t p = split_normal(e, x, ROOT_OF_HALF);
  MlirValue factor = k(e, x, high), unit = k(e, x, 0x1p-23), minus_unit = k(e, x, -0x1p-23);
  MlirValue exponent = mlirValueIsNull(less) ? p.exponent : sub(e, p.exponent, less);
  MlirValue f = sub(e, p.m, k(e, x, 1)), inverse = twg_inverse_of_large(e, add(e, p.m, k(e, x, 1)));
  MlirValue s = mul(e, f, inverse), z = mul(e, s, s);
  MlirValue missing = twg_fma(e, negate(e, s), f, twg_fma(e, k(e, x, -2), s, f)); /* f - s (2 + f) */
  missing = mul(e, missing, inverse);
  MlirValue leading = mul_rounded(e, s, factor), rest = twg_fma(e, s, factor, negate(e, leading));
  rest = twg_fma(e, s, k(e, x, step - high), rest);
  rest = twg_fma(e, missing, twg_fma(e, z, factor, factor), rest);
  rest = twg_fma(e, mul(e, leading, z), polynomial(e, z, 4, c), rest);
  MlirValue sum = twg_fma(e, exponent, unit, leading);
  rest = add(e, rest, sub(e, leading, twg_fma(e, exponent, minus_unit, sum)));
  MlirValue log = add(e, sum, rest), whole = mul_rounded(e, y, log);
  rest = sub(e, rest, sub(e, log, sum));
  return (long_power_t){whole, twg_fma(e, y, rest, twg_fma(e, y, log, negate(e, whole)))};
}

/* 2^r for |r| up to 1/2; a little more is not much worse. */
static MlirValue exp2_near_zero_f32(tw_emitter_t *e, MlirValue r) {
  static const double c[] = {0.00015328860899899155,
                             0.0013391891261562705,
                             0.009618503972887993,
                             0.05550358071923256,
                             0.24022647738456726,
                             0.6931471824645996,
                             1};
  return polynomial(e, r, 7, c);
}

static MlirValue power_between_normals(tw_emitter_t *e, long_power_t p) {
  MlirValue marked = add(e, p.whole, k(e, p.whole, ROUNDS)), n = sub(e, marked, k(e, p.whole, ROUNDS));
  MlirValue y = exp2_near_zero_f32(e, add(e, sub(e, p.whole, n), p.below));
  MlirValue moved = twg_binary(e, "llvm.shl", twg_bitcast(e, marked, e->i32), twg_const_i32(e, 23));
  return twg_bitcast(e, twg_binary(e, "llvm.add", twg_bitcast(e, y, e->i32), moved), e->f32);
}

/* |x|^y in f32, of any numbers. */
static MlirValue power_of_magnitude_f32(tw_emitter_t *e, MlirValue a, MlirValue y) {
  static const double far = 0x1p40; /* a power of it, of the float beside 1 even, is infinite or 0 */
  MlirValue zero = k(e, a, 0), inf = k(e, a, INFINITY);
  MlirValue tiny = twg_fcmp(e, TW_OLT, a, k(e, a, 0x1p-126));
  MlirValue normal = twg_select(e, tiny, mul(e, a, k(e, a, 0x1p23)), a);
  MlirValue less = twg_select(e, tiny, k(e, a, 23 * 0x1p23), zero);
  long_power_t power = power_of_normal(e, normal, less, clamp(e, y, -far, far));
  MlirValue n = twg_unary(e, "llvm.intr.rint", clamp(e, power.whole, -160, 130));
  MlirValue r = clamp(e, add(e, sub(e, power.whole, n), power.below), -1, 1);
  MlirValue p = scale(e, exp2_near_zero_f32(e, r), n);
  MlirValue none = twg_fcmp(e, TW_OEQ, a, zero), all = twg_fcmp(e, TW_OEQ, a, inf);
  MlirValue grows = twg_binary(e, "llvm.xor", none, twg_fcmp(e, TW_OGT, y, zero));
  p = twg_select(e, twg_binary(e, "llvm.or", none, all), twg_select(e, grows, inf, zero), p);
  return twg_select(e, twg_fcmp(e, TW_UNO, a, y), k(e, a, NAN), p);
}

/* x^y of |x|^y: signs, and what is no real power, and 1. */
static MlirValue power_of_sign(tw_emitter_t *e, MlirValue x, MlirValue y, MlirValue p) {
  MlirValue a = absolute(e, x), one = k(e, x, 1), zero = k(e, x, 0);
  MlirValue integral = twg_fcmp(e, TW_OEQ, twg_unary(e, "llvm.intr.trunc", y), y);
  MlirValue half = mul(e, y, k(e, y, 0.5));
  MlirValue even = twg_fcmp(e, TW_OEQ, twg_unary(e, "llvm.intr.trunc", half), half);
  MlirValue negative = twg_icmp(e, TW_SLT, twg_bitcast(e, x, int_like(e, x)), twg_const_int(e, int_like(e, x), 0));
  MlirValue odd = twg_binary(e, "llvm.and", integral, twg_binary(e, "llvm.xor", even, twg_const_int(e, e->i1, 1)));
  p = twg_select(e, twg_binary(e, "llvm.and", negative, odd), negate(e, p), p);
  MlirValue below = twg_fcmp(e, TW_OLT, x, zero); /* no real power, except of an infinity */
  MlirValue finite = twg_fcmp(e, TW_OLT, a, k(e, x, INFINITY));
  MlirValue fraction = twg_binary(e, "llvm.xor", integral, twg_const_int(e, e->i1, 1));
  MlirValue bad = twg_binary(e, "llvm.and", twg_binary(e, "llvm.and", below, finite), fraction);
  p = twg_select(e, bad, k(e, x, NAN), p);
  MlirValue infinite = twg_fcmp(e, TW_OEQ, absolute(e, y), k(e, y, INFINITY));
  MlirValue unit = twg_binary(e, "llvm.and", twg_fcmp(e, TW_OEQ, a, one), infinite);
  MlirValue is_one = twg_binary(e, "llvm.or", unit, twg_fcmp(e, TW_OEQ, x, one));
  return twg_select(e, twg_binary(e, "llvm.or", is_one, twg_fcmp(e, TW_OEQ, y, zero)), one, p);
}

/* A number as a sum of two, of which the second has the bits that the first has no room for. */
typedef struct two {
  MlirValue high, low;
} two_t;

/* x * (y + y_low). */
static two_t product_of_two(tw_emitter_t *e, MlirValue x, MlirValue y, MlirValue y_low) {
  MlirValue high = mul_rounded(e, x, y);
  return (two_t){high, twg_fma(e, x, y_low, twg_fma(e, x, y, negate(e, high)))};
}

/* log2(x) of an f64 above zero to 2^-62: y * log2(x) has 11 bits before the point, and 53 behind it count.
 * ln(m) = 2 u + 2/3 u^3 + ..., u = (m - 1) / (m + 1), of which the first two are sums of two. */
static two_t log2_in_two(tw_emitter_t *e, MlirValue x) {
  enum { TERMS = 11 };
  double c[TERMS];
  for (int i = 0; i < TERMS; i++)
    c[TERMS - 1 - i] = 2.0 / (2 * i + 5);
  split_float_t s = split(e, x, TWO_THIRDS_64);
  MlirValue f = sub(e, s.m, k(e, x, 1)), d = add(e, f, k(e, x, 2)), d_low = sub(e, f, sub(e, d, k(e, x, 2)));
  MlirValue inverse = divide(e, k(e, x, 1), d), u = mul_rounded(e, f, inverse), minus_u = negate(e, u);
  MlirValue u_low = mul(e, twg_fma(e, minus_u, d_low, twg_fma(e, minus_u, d, f)), inverse);
  two_t square = product_of_two(e, u, u, add(e, u_low, u_low));
  two_t cube = product_of_two(e, u, square.high, square.low);
  cube.low = twg_fma(e, square.high, u_low, cube.low);
  two_t third = product_of_two(e, cube.high, k(e, x, 0x1.5555555555555p-1), k(e, x, 0x1.5555555555555p-55));
  third.low = twg_fma(e, cube.low, k(e, x, 0x1.5555555555555p-1), third.low);
  MlirValue rest = mul(e, mul(e, cube.high, square.high), polynomial(e, square.high, TERMS, c));
  MlirValue first = add(e, u, u), sum = add(e, first, third.high), left = sub(e, third.high, sub(e, sum, first));
  left = add(e, left, add(e, rest, add(e, third.low, add(e, u_low, u_low))));
  MlirValue ln = add(e, sum, left), ln_low = sub(e, left, sub(e, ln, sum));
  two_t log = product_of_two(e, ln, k(e, x, LOG2_E), k(e, x, 0x1.777d0ffda0d24p-56));
  log.low = twg_fma(e, ln_low, k(e, x, LOG2_E), log.low);
  MlirValue whole = add(e, s.exponent, log.high);
  log.low = add(e, sub(e, log.high, sub(e, whole, s.exponent)), log.low);
  return (two_t){log_ends(e, x, s, whole), log.low};
}

/* a^y of f64s, a not below zero. */
static MlirValue power_f64(tw_emitter_t *e, MlirValue a, MlirValue y) {
  two_t log = log2_in_two(e, a), p = product_of_two(e, y, log.high, log.low);
  MlirValue bounded = twg_fcmp(e, TW_OLT, absolute(e, p.high), k(e, y, 1100)); /* else it is 0 or infinite */
  return exp2_of_sum(e, p.high, twg_select(e, bounded, p.low, k(e, y, 0)));
}

static MlirValue pow_f64(tw_emitter_t *e, MlirValue x, MlirValue y) {
  return power_of_sign(e, x, y, power_f64(e, absolute(e, x), y));
}

/* Where each x is a normal number above zero, and so is its power, the general way is enough. All others are a branch
 * that is seldom taken. */
static void pow_f32(tw_emitter_t *e, int num, const MlirValue *x, const MlirValue *y, MlirValue *out) {
  static const int64_t least = 0x00800000, count = 0x7f000000; /* bits of normal numbers */
  static const double most = 125.5;
  MlirType types[MOST_AT_ONCE];
  MlirValue all[MOST_AT_ONCE], any = {NULL};
  for (int i = 0; i < num; i++) {
    MlirValue place = twg_binary(e, "llvm.sub", twg_bitcast(e, x[i], e->i32), twg_const_i32(e, least));
    MlirValue special = twg_icmp(e, TW_UGE, place, twg_const_i32(e, count));
    long_power_t power = power_of_normal(e, x[i], (MlirValue){NULL}, y[i]);
    MlirValue beyond = twg_fcmp(e, TW_FUGE, absolute(e, power.whole), k(e, x[i], most)); /* or NaN */
    special = twg_binary(e, "llvm.or", special, beyond);
    any = i ? twg_binary(e, "llvm.or", any, special) : special;
    types[i] = e->f32;
    out[i] = power_between_normals(e, power);
  }
  MlirBlock away = twg_new_block(e, 0, NULL), join = twg_new_block(e, num, types);
  twg_branch_if(e, any, away, 0, NULL, join, num, out);
  e->block = away;
  for (int i = 0; i < num; i++)
    all[i] = power_of_sign(e, x[i], y[i], power_of_magnitude_f32(e, absolute(e, x[i]), y[i]));
  twg_branch(e, join, num, all);
  e->block = join;
  for (int i = 0; i < num; i++)
    out[i] = mlirBlockGetArgument(join, i);
}

static bool emit_pow_f32(tw_emitter_t *e, MlirOperation op) {
  tw_values_t x = twg_operand(e, op, 0), y = twg_operand(e, op, 1), out = twg_new_values(e, y.count);
  for (int first = 0, last; first < out.count; first = last) {
    MlirValue of[MOST_AT_ONCE], to[MOST_AT_ONCE], found[MOST_AT_ONCE];
    int num = 0, place[MOST_AT_ONCE]; /* registers that have the same are one number */
    for (last = first; last < out.count && last - first < MOST_AT_ONCE; last++) {
      MlirValue a = x.at[x.count == 1 ? 0 : last], b = y.at[last];
      if (num == 0 || !mlirValueEqual(a, of[num - 1]) || !mlirValueEqual(b, to[num - 1])) {
        of[num] = a;
        to[num++] = b;
      }
      place[last - first] = num - 1;
    }
    pow_f32(e, num, of, to, found);
    for (int i = first; i < last; i++)
      out.at[i] = found[place[i - first]];
  }
  twg_set_result(e, op, 0, out);
  return true;
}

/* ---- rule -------------------------------------------------------------------------------------- */

static const math_fn_t functions[TW_NUM_OP_KINDS] = {
    [TW_MATH_EXP] = emit_exp,   [TW_MATH_EXP2] = emit_exp2, [TW_MATH_LOG] = emit_log,
    [TW_MATH_LOG2] = emit_log2, [TW_MATH_SQRT] = emit_sqrt, [TW_MATH_RSQRT] = emit_rsqrt,
    [TW_MATH_SINH] = emit_sinh, [TW_MATH_COSH] = emit_cosh, [TW_MATH_TANH] = emit_tanh,
};

static MlirValue absolute_int(tw_emitter_t *e, MlirValue x) {
  MlirValue minus = twg_binary(e, "llvm.sub", twg_const_int(e, mlirValueGetType(x), 0), x);
  return twg_binary(e, "llvm.intr.smax", x, minus);
}

static MlirValue one_element(tw_emitter_t *e, MlirOperation op, const MlirValue *x, bool rough) {
  if (tw_op_is(op, TW_MATH_ABSI))
    return absolute_int(e, x[0]);
  if (tw_op_is(op, TW_MATH_FMA))
    return twg_fma(e, x[0], x[1], x[2]);
  if (tw_op_is(op, TW_MATH_POWF))
    return pow_f64(e, x[0], x[1]);
  if (tw_op_is(op, TW_MATH_RSQRT) && !is_f64(x[0]) && tw_is_above_subnormals(mlirOperationGetOperand(op, 0)))
    return hardware(e, "rsqrt.approx.ftz.f32 $0, $1;", x[0]);  /* the other one scales what is subnormal */
  math_fn_t function = functions[tw_op_kind(op)];              /* every row below that names this rule has one */
  if (tw_op_is(op, TW_MATH_LOG) || tw_op_is(op, TW_MATH_LOG2)) /* lg2.approx is off by 2^-22 at 1, where it is 0 */
    rough = rough && (tw_hint_fast_math(op, 0) || tw_is_widened(mlirOperationGetOperand(op, 0)));
  return function(e, x[0], rough);
}

static MlirValue one_exact(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  return one_element(e, op, x, false);
}

static MlirValue one_rough(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  return one_element(e, op, x, true);
}

/* What one instruction makes of an f32, inexactly, and no rule above uses. */
static const char *const instructions[TW_NUM_OP_KINDS] = {
    [TW_MATH_SIN] = "sin.approx.ftz.f32 $0, $1;",
    [TW_MATH_COS] = "cos.approx.ftz.f32 $0, $1;",
    [TW_MATH_SQRT] = "sqrt.approx.ftz.f32 $0, $1;",
    [TW_MATH_POWF] = "lg2.approx.f32 $0, $1;", /* of which the power is made */
};

static bool has_instruction(MlirOperation op) { return instructions[tw_op_kind(op)] != NULL; }

static MlirValue by_instruction(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  if (tw_op_is(op, TW_MATH_POWF))
    return emit_exp2(e, mul(e, x[1], hardware(e, instructions[TW_MATH_POWF], x[0])), true);
  return hardware(e, instructions[tw_op_kind(op)], x[0]);
}

static bool rule_math(tw_emitter_t *e, MlirOperation op) {
  MlirType element = tw_result_element(op);
  bool is_f32 = mlirTypeIsAF32(element);
  if (mlirTypeIsAFloat(element) && !is_f32 && !mlirTypeIsAF64(element)) {
    tw_op_error(op, "is neither of f32 nor of f64, to which tile-legalize widens");
    return false;
  }
  if (is_f32 && has_instruction(op) && tw_hint_fast_math(op, 0))
    return twg_each_register(e, op, by_instruction);
  if (is_circular(op))
    return emit_circular(e, op);
  if (tw_op_is(op, TW_MATH_POWF) && is_f32)
    return emit_pow_f32(e, op);
  if (tw_has_attr(op, TW_ABSOLUTE) && is_f32)
    return emit_tanh_absolute(e, op);
  bool rough = tw_op_is(op, TW_MATH_EXP2) ? tw_hides_subnormals(op) : tw_only_read_narrower(op);
  return twg_each_register(e, op, rough ? one_rough : one_exact);
}

/* The x of 1 + tanh(x) in f32; else null. */
static MlirValue shifted_tanh(MlirOperation op) {
  for (int i = 0; i < 2; i++) {
    double one;
    MlirOperation tanh = tw_def(mlirOperationGetOperand(op, i));
    if (!mlirOperationIsNull(tanh) && tw_op_is(tanh, TW_MATH_TANH) &&
        tw_known_float(mlirOperationGetOperand(op, 1 - i), &one) && one == 1 && mlirTypeIsAF32(tw_result_element(op)))
      return mlirOperationGetOperand(tanh, 0);
  }
  return (MlirValue){NULL};
}

static bool rule_addf(tw_emitter_t *e, MlirOperation op) {
  MlirValue inner = shifted_tanh(op);
  if (inner.ptr == NULL)
    return twg_rule_float_binary(e, op);
  bool rough = tw_only_read_narrower(op);
  tw_values_t x = twg_lookup(e, inner), out = twg_new_values(e, x.count);
  for (int r = 0; r < out.count; r++)
    out.at[r] = one_plus_tanh(e, x.at[r], rough);
  twg_set_result(e, op, 0, out);
  return true;
}

TWG_RULE(TW_ARITH_ADDF, rule_addf)
TWG_RULE(TW_MATH_ABSI, rule_math)
TWG_RULE(TW_MATH_EXP, rule_math)
TWG_RULE(TW_MATH_EXP2, rule_math)
TWG_RULE(TW_MATH_LOG, rule_math)
TWG_RULE(TW_MATH_LOG2, rule_math)
TWG_RULE(TW_MATH_SQRT, rule_math)
TWG_RULE(TW_MATH_RSQRT, rule_math)
TWG_RULE(TW_MATH_SIN, rule_math)
TWG_RULE(TW_MATH_COS, rule_math)
TWG_RULE(TW_MATH_TAN, rule_math)
TWG_RULE(TW_MATH_SINH, rule_math)
TWG_RULE(TW_MATH_COSH, rule_math)
TWG_RULE(TW_MATH_TANH, rule_math)
TWG_RULE(TW_MATH_POWF, rule_math)
TWG_RULE(TW_MATH_FMA, rule_math)
