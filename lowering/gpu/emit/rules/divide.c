/* divide.c - rule: quotients of floats
 *
 * f32 is divided as exactly as shows (accuracy.h). The assembler's exact division checks each pair of operands with a
 * branch of its own, so that none of a tile is computed beside another: hundreds of cycles for each. Here operands are
 * brought into the range where the hardware's inverse and remainders by fma give the nearest float (Markstein,
 * "Computation of elementary functions on the IBM RISC System/6000 processor", 1990), and the quotient back; some 20
 * instructions without a branch. A quotient below the normal floats is rounded twice: it may be 2^-149 off.
 * Several x of a thread with one divisor are looked at together: where none of them is large, and the divisor neither,
 * each takes six instructions and half a look (below), else those 20; by whole numbers three and half a look. A thread
 * that has one pair leaves it to the assembler, whose common case is shorter. Where 2 ulp do not show, or are allowed,
 * x is multiplied by an inverse, which several x share. */
#include "base/memory.h"
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/facts/accuracy.h"
#include "lowering/gpu/isa/convert_float.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { MAX_EXPONENT = 120 /* of a power of two whose inverse is a normal float, too */ };

MlirValue twg_divide_fast(tw_emitter_t *e, MlirValue x, MlirValue y) {
  MlirValue operands[2] = {x, y};
  return twg_intrinsic(e, "llvm.nvvm.div.full", e->f32, 2, operands, TW_PTX_NOTHING);
}

MlirValue twg_inverse_of_large(tw_emitter_t *e, MlirValue x) {
  return twg_asm(e, "rcp.approx.ftz.f32 $0, $1;", "=f,f", e->f32, 1, &x, TW_PTX_NOTHING);
}

/* ---- one at a time ------------------------------------------------------------------------------- */

/* f32 quotient to 2 ulp by a divisor of at least 1. A quarter of it has an inverse among the normal floats. Of 1 the
 * quotient is the inverse: where that is below the normal floats, 0. */
static MlirValue divide_by_large(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  double dividend;
  if (tw_known_float(mlirOperationGetOperand(op, 0), &dividend) && dividend == 1)
    return twg_inverse_of_large(e, x[1]);
  MlirValue quarter = twg_const_float(e, e->f32, 0.25);
  MlirValue inverse = twg_inverse_of_large(e, twg_binary(e, "llvm.fmul", x[1], quarter));
  return twg_binary(e, "llvm.fmul", twg_binary(e, "llvm.fmul", x[0], quarter), inverse);
}

static MlirValue divide_by_assembler(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  (void)op;
  return twg_binary(e, "llvm.fdiv", x[0], x[1]);
}

static MlirValue divide_approximate(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  MlirType element = tw_result_element(op);
  MlirValue a = twg_convert_float(e, x[0], element, e->f32);
  MlirValue b = twg_convert_float(e, x[1], element, e->f32);
  return twg_convert_float(e, twg_divide_fast(e, a, b), e->f32, element);
}

/* What several registers are divided by: 2^64 / y for a y so small that its inverse may be no float, else 1 / y; and
 * the factor for what is divided. With `nearest`, too, 2^-64 / y for a y so large that its inverse has few bits. */
typedef struct {
  MlirValue divisor, inverse, factor;
} inverse_t;

/* The nearest float to 1 / y, but that it may be one beside, from the hardware's inverse. Of zero and infinity that is
 * right, and has no remainder. */
static MlirValue nearest_inverse(tw_emitter_t *e, MlirValue y, MlirValue inverse) {
  MlirValue rest = twg_fma(e, twg_unary(e, "llvm.fneg", y), inverse, twg_const_float(e, e->f32, 1));
  MlirValue nearest = twg_fma(e, inverse, rest, inverse);
  return twg_select(e, twg_fcmp(e, TW_UNO, nearest, nearest), inverse, nearest);
}

/* With `nearest`, quotients are those of another compiler that multiplies by the nearest inverse: halfway between two
 * floats of 8 bits the last place of an inverse shows. */
static inverse_t invert(tw_emitter_t *e, MlirValue y, bool large, bool nearest) {
  MlirValue one = twg_const_float(e, e->f32, 1), factor = (MlirValue){NULL}, scaled = y;
  if (!large) {
    MlirValue size = twg_unary(e, "llvm.intr.fabs", y);
    if (nearest)
      factor = twg_select(e, twg_fcmp(e, TW_OGT, size, twg_const_float(e, e->f32, 0x1p100)),
                          twg_const_float(e, e->f32, 0x1p-64), one);
    else
      factor = one;
    factor = twg_select(e, twg_fcmp(e, TW_OLT, size, twg_const_float(e, e->f32, 0x1p-100)),
                        twg_const_float(e, e->f32, 0x1p64), factor);
    scaled = twg_binary(e, "llvm.fmul", y, factor);
  }
  MlirValue inverse = twg_divide_fast(e, one, scaled);
  return (inverse_t){y, nearest ? nearest_inverse(e, scaled, inverse) : inverse, factor};
}

static int find_inverse(const inverse_t *known, int count, MlirValue divisor) {
  int i = 0;
  while (i < count && !mlirValueEqual(known[i].divisor, divisor))
    i++;
  return i;
}

static int collect_divisors(inverse_t *known, tw_values_t y) {
  int count = 0;
  for (int r = 0; r < y.count; r++) {
    int i = find_inverse(known, count, y.at[r]);
    known[i].divisor = y.at[r];
    count += i == count;
  }
  return count;
}

static void divide_by_known(tw_emitter_t *e, MlirOperation op, inverse_t *known, int count) {
  tw_values_t x = twg_operand(e, op, 0), y = twg_operand(e, op, 1);
  bool nearest = tw_has_attr(op, TW_APPROXIMATE);
  bool large = !nearest && tw_is_at_least(mlirOperationGetOperand(op, 1), 1);
  for (int i = 0; i < count; i++)
    known[i] = invert(e, known[i].divisor, large, nearest);
  tw_values_t out = twg_new_values(e, x.count);
  for (int r = 0; r < x.count; r++) {
    const inverse_t *by = &known[find_inverse(known, count, y.at[r])];
    MlirValue scaled = large ? x.at[r] : twg_binary(e, "llvm.fmul", x.at[r], by->factor);
    out.at[r] = twg_binary(e, "llvm.fmul", scaled, by->inverse);
  }
  twg_set_result(e, op, 0, out);
}

/* A divisor that several registers share is inverted once. */
static bool divide_by_shared(tw_emitter_t *e, MlirOperation op) {
  tw_values_t y = twg_operand(e, op, 1);
  inverse_t *known = tw_allocate((size_t)y.count, sizeof *known);
  int count = collect_divisors(known, y);
  bool pays = 2 * count <= y.count;
  if (pays)
    divide_by_known(e, op, known, count);
  free(known);
  return pays;
}

/* ---- exactly, without a branch ------------------------------------------------------------------- */

static MlirValue times(tw_emitter_t *e, MlirValue x, MlirValue y) { return twg_binary(e, "llvm.fmul", x, y); }

static MlirValue negative(tw_emitter_t *e, MlirValue x) { return twg_unary(e, "llvm.fneg", x); }

static MlirValue bits_and(tw_emitter_t *e, MlirValue x, int32_t mask) {
  return twg_binary(e, "llvm.and", twg_bitcast(e, x, e->i32), twg_const_i32(e, mask));
}

/* 2^-n, where 2^n is the power of two in a positive float: that times the float is within 1 and 2, or, where the float
 * is below the normal ones, within 2^-22 and 1. */
static MlirValue power_against(tw_emitter_t *e, MlirValue x) {
  enum { EXPONENT = 0x7F800000, TWICE_ONE = 0x7F000000, LEAST = 0x00400000 /* 2^-127 */ };
  MlirValue bits = twg_binary(e, "llvm.sub", twg_const_i32(e, TWICE_ONE), bits_and(e, x, EXPONENT));
  return twg_bitcast(e, twg_binary(e, "llvm.intr.smax", bits, twg_const_i32(e, LEAST)), e->f32);
}

/* A quotient less what its product with y is above x. Seen from this side the remainder of -0 is +0, and the sum -0. */
static MlirValue corrected(tw_emitter_t *e, MlirValue quotient, MlirValue x, MlirValue y, MlirValue inverse) {
  MlirValue excess = twg_fma(e, y, quotient, negative(e, x));
  return twg_fma(e, negative(e, excess), inverse, quotient);
}

/* |y| times a power of two, and what brings a quotient by that back: the same power, with y's sign. */
typedef struct {
  MlirValue size, back;
} in_range_t;

static in_range_t bring_in_range(tw_emitter_t *e, MlirOperation op, MlirValue y) {
  bool is_positive = tw_is_at_least(mlirOperationGetOperand(op, 1), 0);
  MlirValue size = is_positive ? y : twg_unary(e, "llvm.intr.fabs", y);
  MlirValue back = power_against(e, size);
  size = times(e, size, back);
  if (!is_positive) {
    MlirValue sign = bits_and(e, y, INT32_MIN);
    back = twg_bitcast(e, twg_binary(e, "llvm.or", twg_bitcast(e, back, e->i32), sign), e->f32);
  }
  return (in_range_t){size, back};
}

/* 1 / size to within a hair of half an ulp. */
static MlirValue refined_inverse(tw_emitter_t *e, MlirValue size, MlirValue estimate) {
  MlirValue one = twg_const_float(e, e->f32, 1);
  return twg_fma(e, estimate, twg_fma(e, negative(e, size), estimate, one), estimate);
}

static MlirValue divide_exact(tw_emitter_t *e, MlirOperation op, const MlirValue *operands) {
  MlirValue x = operands[0];
  in_range_t by = bring_in_range(e, op, operands[1]);
  MlirValue size = by.size, back = by.back;
  /* A dividend so small that its remainders would not be normal floats. Where the way back has no power of two for it,
   * the quotient is nothing. */
  MlirValue tiny = twg_fcmp(e, TW_OLT, twg_unary(e, "llvm.intr.fabs", x), twg_const_float(e, e->f32, 0x1p-78));
  x = twg_select(e, tiny, times(e, x, twg_const_float(e, e->f32, 0x1p48)), x);
  back = twg_select(e, tiny, times(e, back, twg_const_float(e, e->f32, 0x1p-48)), back);

  MlirValue estimate = twg_inverse_of_large(e, size), rough = times(e, x, estimate);
  MlirValue inverse = refined_inverse(e, size, estimate);
  MlirValue quotient = times(e, x, inverse);
  quotient = corrected(e, quotient, x, size, inverse);
  quotient = corrected(e, quotient, x, size, inverse);
  /* Of zero and infinity there are no remainders: the rough quotient is 0, infinity or NaN as it should be. */
  quotient = twg_select(e, twg_fcmp(e, TW_UNO, quotient, quotient), rough, quotient);
  return times(e, quotient, back);
}

/* ---- exactly, by a divisor that several registers share --------------------------------------------- */

/* Of a divisor in 1 to 2: `near` is its inverse to half an ulp, `down` the next float not above that, and `low` what
 * `down` lacks, which is never negative, so that -0 stays -0. Then
 *
 *   q = fma(x, down, x * low) ;  q = fma(x - size * q, near, q)
 *
 * is the nearest float to x / size. The first q is within 1/2 + 2^-21 ulp of it: `low` is below 2^-24, and it and its
 * product with x are off by less than 2^-22 of what they are. So what the second line rounds is off by less than
 * (1/2 + 2^-21) * size * (2^-25 + 2^-46) ulp, and no quotient of two floats lies within 2^-24 / size ulp of the middle
 * between two others. That is enough for a size below 2 - 2^-20; larger ones, of which LAST has all bits, go the long
 * way.
 *
 * Nor does a quotient lie within 1 / (2 * n) ulp of such a middle, where n is the odd factor of the divisor's bits as a
 * whole number: x less n times the middle is a multiple of half of an ulp of the quotient, and not 0, since n times the
 * middle, which has 25 bits and is odd, is no float. Where n is below 2^19, as that of whole numbers up to there, that
 * is 2^-20 ulp, and the first q, off by 2^-21 before it is rounded, is the nearest float. It is found with 2^24 in
 * `down` and `low`, so that x has no product of its own with it. Of a divisor of 1 or more, q is at least 2^24 times
 * what it comes back to, and an ulp of that, if it is a normal float, at least 2^-149: what `low` gives, off by 2^-150
 * where it is no normal float, is off by 2^-25 ulp of q. And q is finite where x is below 2^104, as the product of two
 * is where those x are below 2^39. */
typedef struct {
  MlirValue divisor, size, near, down, low, back;
} exact_inverse_t;

enum {
  FEW_PAIRS = 4,   /* by one divisor */
  MOST_PAIRS = 64, /* of which two copies are worth their length */
  AT_ONCE = 32     /* of which quotients and dividends have registers at a time */
};

static MlirValue times_power(tw_emitter_t *e, MlirValue x, double power) {
  return times(e, x, twg_const_float(e, e->f32, power));
}

enum { WHOLE_SCALE = 24 }; /* log2 */

static exact_inverse_t invert_exactly(tw_emitter_t *e, MlirOperation op, MlirValue y, bool whole) {
  in_range_t by = bring_in_range(e, op, y);
  MlirValue near = refined_inverse(e, by.size, twg_inverse_of_large(e, by.size));
  MlirValue one = twg_const_float(e, e->f32, 1), less = negative(e, by.size);
  MlirValue rest = twg_bitcast(e, twg_fma(e, less, near, one), e->i32);
  MlirValue below = twg_binary(e, "llvm.ashr", rest, twg_const_i32(e, 31));
  MlirValue down = twg_bitcast(e, twg_binary(e, "llvm.add", twg_bitcast(e, near, e->i32), below), e->f32);
  MlirValue low = times(e, twg_fma(e, less, down, one), near);
  if (!whole)
    return (exact_inverse_t){y, by.size, near, down, low, times_power(e, by.back, 0x1p-72)};
  double scale = ldexp(1, WHOLE_SCALE);
  return (exact_inverse_t){
      y, by.size, near, times_power(e, down, scale), times_power(e, low, scale), times_power(e, by.back, 1 / scale)};
}

/* Whether 2^-126 <= |y| < 2^50, or 1 <= |y| for a whole number, where 2^-72 of the way back is a normal float, and
 * which bits y has: a size that is small enough, or an odd factor. */
static MlirValue is_plain_divisor(tw_emitter_t *e, MlirValue y, bool whole) {
  enum { NORMAL = 0x00800000, ONE = 0x3F800000, MOST = 0x58800000, LAST = 0x007FFFC0, BEHIND_FACTOR = 0x1F };
  int32_t least = whole ? ONE : NORMAL;
  MlirValue above = twg_binary(e, "llvm.sub", bits_and(e, y, INT32_MAX), twg_const_i32(e, least));
  MlirValue in_range = twg_icmp(e, TW_ULT, above, twg_const_i32(e, MOST - least));
  MlirValue bits = whole ? twg_icmp(e, TW_EQ, bits_and(e, y, BEHIND_FACTOR), twg_const_i32(e, 0))
                         : twg_icmp(e, TW_NE, bits_and(e, y, LAST), twg_const_i32(e, LAST));
  return twg_binary(e, "llvm.and", in_range, bits);
}

/* x / size * 2^72, or 2^24 by whole numbers. What is not 0 is a normal float when it is multiplied by 2^72, and so are
 * its remainders; what becomes infinity has NaN for a remainder. */
static MlirValue divide_plain(tw_emitter_t *e, MlirValue x, const exact_inverse_t *by, bool whole) {
  if (whole)
    return twg_fma(e, x, by->down, times(e, x, by->low));
  x = times_power(e, x, 0x1p72);
  MlirValue quotient = twg_fma(e, x, by->down, times(e, x, by->low));
  return corrected(e, quotient, x, by->size, by->near);
}

static MlirValue are_plain_divisors(tw_emitter_t *e, const exact_inverse_t *known, int count, bool whole) {
  MlirValue plain = is_plain_divisor(e, known[0].divisor, whole);
  for (int i = 1; i < count; i++)
    plain = twg_binary(e, "llvm.and", plain, is_plain_divisor(e, known[i].divisor, whole));
  return plain;
}

/* Whether all are finite, and not too large: the sum of their products is not where one of them is not. */
static MlirValue are_finite(tw_emitter_t *e, const MlirValue *x, int count) {
  MlirValue sum = count > 1 ? times(e, x[0], x[1]) : x[0];
  for (int i = 2; i < count; i += 2)
    sum = twg_fma(e, x[i], x[i + 1 < count ? i + 1 : i], sum);
  return twg_fcmp(e, TW_OLT, twg_unary(e, "llvm.intr.fabs", sum), twg_const_float(e, e->f32, INFINITY));
}

/* Whether they are, and no quotient is NaN; infinite ones by whole numbers were not looked at before. */
static MlirValue are_plain(tw_emitter_t *e, MlirValue divisors, const MlirValue *quotients, int count, bool whole) {
  MlirValue plain = divisors;
  if (whole)
    return twg_binary(e, "llvm.and", plain, are_finite(e, quotients, count));
  for (int r = 0; r < count; r += 2) {
    MlirValue other = quotients[r + 1 < count ? r + 1 : r];
    plain = twg_binary(e, "llvm.and", plain, twg_fcmp(e, TW_ORD, quotients[r], other));
  }
  return plain;
}

static int find_divisor(const exact_inverse_t *known, int count, MlirValue divisor) {
  int i = 0;
  while (i < count && !mlirValueEqual(known[i].divisor, divisor))
    i++;
  return i;
}

/* Some registers. The way back is behind the branch, where it may become part of what follows. */
static void divide_both_ways(tw_emitter_t *e, MlirOperation op, const exact_inverse_t *known, int count,
                             MlirValue divisors, int first, int num, bool whole, tw_values_t out) {
  tw_values_t x = twg_operand(e, op, 0), y = twg_operand(e, op, 1), merged = twg_new_values(e, num + count);
  MlirBlock other = twg_new_block(e, 0, NULL), join = twg_new_block(e, 0, NULL);
  for (int i = 0; i < count; i++)
    merged.at[num + i] = known[i].back;
  for (int r = 0; r < num; r++)
    merged.at[r] = divide_plain(e, x.at[first + r], &known[find_divisor(known, count, y.at[first + r])], whole);
  twg_branch_if(e, are_plain(e, divisors, merged.at, num, whole), join, merged.count, merged.at, other, 0, NULL);
  e->block = other;
  for (int r = 0; r < num; r++) {
    MlirValue operands[] = {x.at[first + r], y.at[first + r]};
    merged.at[r] = divide_exact(e, op, operands);
  }
  for (int i = 0; i < count; i++)
    merged.at[num + i] = twg_const_float(e, e->f32, 1);
  twg_branch(e, join, merged.count, merged.at);
  e->block = join;
  for (int i = 0; i < merged.count; i++)
    merged.at[i] = mlirBlockAddArgument(join, e->f32, e->location);
  for (int r = 0; r < num; r++)
    out.at[first + r] = times(e, merged.at[r], merged.at[num + find_divisor(known, count, y.at[first + r])]);
}

static bool divide_shared_exactly(tw_emitter_t *e, MlirOperation op) {
  tw_values_t x = twg_operand(e, op, 0), y = twg_operand(e, op, 1);
  if (y.count > MOST_PAIRS || twg_are_same(x))
    return false;
  exact_inverse_t known[MOST_PAIRS];
  bool whole = tw_seems_whole(mlirOperationGetOperand(op, 1));
  int count = 0;
  for (int r = 0; r < y.count; r++) {
    int i = find_divisor(known, count, y.at[r]);
    known[i].divisor = y.at[r];
    count += i == count;
  }
  if (FEW_PAIRS * count > y.count)
    return false;
  for (int i = 0; i < count; i++)
    known[i] = invert_exactly(e, op, known[i].divisor, whole);
  MlirValue divisors = are_plain_divisors(e, known, count, whole);
  tw_values_t out = twg_new_values(e, x.count);
  for (int r = 0; r < x.count; r += AT_ONCE)
    divide_both_ways(e, op, known, count, divisors, r, x.count - r < AT_ONCE ? x.count - r : AT_ONCE, whole, out);
  twg_set_result(e, op, 0, out);
  return true;
}

/* ---- the rule ------------------------------------------------------------------------------------ */

/* By a constant. Of a power of two the inverse is exact, and a product with it the quotient; of others it is where an
 * error of 2 ulp does not show. */
static bool multiply_by_inverse(tw_emitter_t *e, MlirOperation op) {
  double divisor;
  int exponent;
  if (!tw_known_float(mlirOperationGetOperand(op, 1), &divisor) || !isnormal(divisor))
    return false;
  bool is_power = fabs(frexp(divisor, &exponent)) == 0.5;
  if (abs(exponent) > MAX_EXPONENT || (!is_power && !tw_only_read_narrower(op)))
    return false;
  tw_values_t x = twg_operand(e, op, 0), out = twg_new_values(e, x.count);
  for (int r = 0; r < x.count; r++)
    out.at[r] = times(e, x.at[r], twg_const_float(e, e->f32, 1 / divisor));
  twg_set_result(e, op, 0, out);
  return true;
}

static MlirValue times_flushed(tw_emitter_t *e, MlirValue x, MlirValue y) {
  MlirValue operands[2] = {x, y};
  return twg_intrinsic(e, "llvm.nvvm.mul.rn.ftz.f", e->f32, 2, operands, TW_PTX_NOTHING);
}

/* What div.approx.ftz does, with an inverse for several x. */
static bool divide_roughly(tw_emitter_t *e, MlirOperation op) {
  tw_values_t x = twg_operand(e, op, 0), y = twg_operand(e, op, 1), out = twg_new_values(e, x.count);
  inverse_t *known = tw_allocate((size_t)y.count, sizeof *known);
  int count = collect_divisors(known, y);
  for (int i = 0; i < count; i++)
    known[i].inverse = twg_inverse_of_large(e, known[i].divisor);
  double dividend;
  bool inverts = tw_known_float(mlirOperationGetOperand(op, 0), &dividend) && dividend == 1;
  for (int r = 0; r < x.count; r++) {
    MlirValue inverse = known[find_inverse(known, count, y.at[r])].inverse;
    out.at[r] = inverts ? inverse : times_flushed(e, x.at[r], inverse);
  }
  free(known);
  twg_set_result(e, op, 0, out);
  return true;
}

static bool rule_divf(tw_emitter_t *e, MlirOperation op) {
  MlirType element = tw_result_element(op);
  if (mlirTypeIsAF64(element))
    return twg_each_register(e, op, divide_by_assembler);
  if (!mlirTypeIsAF32(element))
    return twg_each_register(e, op, divide_approximate);
  if (tw_has_attr(op, TW_ROUGH) && tw_hint_approximate(op, 1) != 0)
    return divide_roughly(e, op);
  if (multiply_by_inverse(e, op))
    return true;
  if (!tw_only_read_narrower(op))
    return (!e->simt && divide_shared_exactly(e, op)) ||
           twg_each_register(e, op, e->simt ? divide_by_assembler : divide_exact);
  if (divide_by_shared(e, op))
    return true;
  bool large = tw_is_at_least(mlirOperationGetOperand(op, 1), 1);
  return twg_each_register(e, op, large ? divide_by_large : divide_approximate);
}

TWG_RULE(TW_ARITH_DIVF, rule_divf)
