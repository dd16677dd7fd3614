/* rounded.c - arithmetic that is rounded as told
 *
 * The machine rounds to the nearest. Whether that is below or above the exact number tells what another rounding gives:
 * the same, or its neighbour. For f32 the exact product, quotient or root is compared as an f64: of operands of 24 bits
 * a quotient or root that is no float of 24 bits differs from every such one by more than an f64 does not show. A sum's
 * error is a float (two-sum), and so are a product's, and what a quotient or root leaves, by a fused multiply-add; of
 * f64 they are scaled so that they are no subnormal numbers. */
#include "lowering/cpu/cpu.h"
#include "tilewright/dialect.h"

#include <math.h>

typedef struct {
  MlirValue below, above; /* whether the exact number is below or above the nearest float */
} side_t;

static bool is_f64(MlirValue x) { return mlirTypeIsAF64(cpu_element(x)); }

static MlirValue constant(cpu_t *cx, MlirValue like, double value) {
  return cpu_float_const(cx, mlirValueGetType(like), value);
}

static MlirValue add(cpu_t *cx, MlirValue x, MlirValue y) { return cpu_bin(cx, "arith.addf", x, y); }
static MlirValue sub(cpu_t *cx, MlirValue x, MlirValue y) { return cpu_bin(cx, "arith.subf", x, y); }
static MlirValue mul(cpu_t *cx, MlirValue x, MlirValue y) { return cpu_bin(cx, "arith.mulf", x, y); }
static MlirValue negated(cpu_t *cx, MlirValue x) { return cpu_un(cx, "arith.negf", x); }
static MlirValue magnitude(cpu_t *cx, MlirValue x) { return cpu_un(cx, "math.absf", x); }
static MlirValue wide(cpu_t *cx, MlirValue x) { return cpu_cast(cx, "arith.extf", x, cpu_f64(cx)); }
static MlirValue both(cpu_t *cx, MlirValue x, MlirValue y) { return cpu_bin(cx, "arith.andi", x, y); }
static MlirValue either(cpu_t *cx, MlirValue x, MlirValue y) { return cpu_bin(cx, "arith.ori", x, y); }

/* One rounding, whatever it costs where there is no such instruction. */
static MlirValue fused(cpu_t *cx, MlirValue x, MlirValue y, MlirValue z) {
  MlirValue operands[] = {x, y, z};
  return cpu_op1(cx, "math.fma", mlirValueGetType(x), 3, operands);
}

static MlirValue is_finite(cpu_t *cx, MlirValue x) {
  return cpu_cmpf(cx, CPU_OLT, magnitude(cx, x), constant(cx, x, HUGE_VAL));
}

static side_t compared(cpu_t *cx, MlirValue exact, MlirValue near) {
  return (side_t){cpu_cmpf(cx, CPU_OLT, exact, near), cpu_cmpf(cx, CPU_OGT, exact, near)};
}

static side_t sign_of(cpu_t *cx, MlirValue error) { return compared(cx, error, constant(cx, error, 0)); }

/* A number that is infinite only by its rounding is above or below what is exact. */
static side_t or_overflow(cpu_t *cx, side_t side, MlirValue near, MlirValue exact_is_finite) {
  MlirValue most = constant(cx, near, HUGE_VAL), least = constant(cx, near, -HUGE_VAL);
  MlirValue over = both(cx, exact_is_finite, cpu_cmpf(cx, CPU_OEQ, near, most));
  MlirValue under = both(cx, exact_is_finite, cpu_cmpf(cx, CPU_OEQ, near, least));
  return (side_t){either(cx, side.below, over), either(cx, side.above, under)};
}

/* ---- on which side of the nearest float the exact number is ---------------------------------------------------- */

static side_t side_of_sum(cpu_t *cx, MlirValue x, MlirValue y, MlirValue near) {
  MlirValue part = sub(cx, near, x);
  MlirValue error = add(cx, sub(cx, x, sub(cx, near, part)), sub(cx, y, part));
  return or_overflow(cx, sign_of(cx, error), near, both(cx, is_finite(cx, x), is_finite(cx, y)));
}

/* x times 2^by where the condition holds. */
static MlirValue scaled(cpu_t *cx, MlirValue x, MlirValue condition, double by) {
  return mul(cx, x, cpu_select(cx, condition, constant(cx, x, by), constant(cx, x, 1)));
}

static MlirValue is_less(cpu_t *cx, MlirValue x, double limit) {
  return cpu_cmpf(cx, CPU_OLT, magnitude(cx, x), constant(cx, x, limit));
}

/* A product below 2^-900 has a factor below 1; both below 1 are scaled, and the product by as much. */
static side_t side_of_product(cpu_t *cx, MlirValue x, MlirValue y, MlirValue near) {
  if (!is_f64(x))
    return compared(cx, mul(cx, wide(cx, x), wide(cx, y)), wide(cx, near));
  MlirValue tiny = is_less(cx, near, 0x1p-900);
  MlirValue x_less = both(cx, tiny, is_less(cx, x, 1)), y_less = both(cx, tiny, is_less(cx, y, 1));
  MlirValue by_both = scaled(cx, scaled(cx, near, x_less, 0x1p537), y_less, 0x1p537);
  MlirValue error = fused(cx, scaled(cx, x, x_less, 0x1p537), scaled(cx, y, y_less, 0x1p537), negated(cx, by_both));
  return or_overflow(cx, sign_of(cx, error), near, both(cx, is_finite(cx, x), is_finite(cx, y)));
}

/* What the quotient leaves of x has the sign of the error, or the other one where y is negative. What is left of an x
 * below 2^-700 is scaled, with the smaller of the quotient and y. */
static side_t side_of_quotient(cpu_t *cx, MlirValue x, MlirValue y, MlirValue near) {
  if (!is_f64(x))
    return compared(cx, cpu_bin(cx, "arith.divf", wide(cx, x), wide(cx, y)), wide(cx, near));
  MlirValue tiny = is_less(cx, x, 0x1p-700);
  MlirValue by_near = both(cx, tiny, cpu_cmpf(cx, CPU_OLT, magnitude(cx, near), magnitude(cx, y)));
  MlirValue by_y = both(cx, tiny, cpu_cmpf(cx, CPU_OGE, magnitude(cx, near), magnitude(cx, y)));
  MlirValue product = scaled(cx, near, by_near, 0x1p200);
  MlirValue left = fused(cx, negated(cx, product), scaled(cx, y, by_y, 0x1p200), scaled(cx, x, tiny, 0x1p200));
  MlirValue negative = cpu_cmpf(cx, CPU_OLT, y, constant(cx, y, 0));
  side_t side = sign_of(cx, cpu_select(cx, negative, negated(cx, left), left));
  MlirValue y_counts = cpu_cmpf(cx, CPU_ONE, y, constant(cx, y, 0));
  return or_overflow(cx, side, near, both(cx, is_finite(cx, x), y_counts));
}

static side_t side_of_root(cpu_t *cx, MlirValue x, MlirValue near) {
  if (!is_f64(x))
    return compared(cx, cpu_un(cx, "math.sqrt", wide(cx, x)), wide(cx, near));
  MlirValue tiny = is_less(cx, x, 0x1p-700);
  MlirValue root = scaled(cx, near, tiny, 0x1p100);
  return sign_of(cx, fused(cx, negated(cx, root), root, scaled(cx, x, tiny, 0x1p200)));
}

/* ---- the neighbour on that side ---------------------------------------------------------------------------------- */

static MlirValue stepped(cpu_t *cx, MlirValue near, side_t side, tw_rounding_t rounding) {
  MlirType element = cpu_element(near);
  MlirValue bits = cpu_bits(cx, near, cpu_int(cx, is_f64(near) ? 64 : 32));
  MlirValue negative = cpu_cmpi(cx, CPU_SLT, bits, cpu_int_const(cx, mlirValueGetType(bits), 0));
  MlirValue inward = cpu_bin_i(cx, "arith.addi", bits, -1), outward = cpu_bin_i(cx, "arith.addi", bits, 1);
  MlirValue moves, beside;
  if (rounding == TW_ROUND_RZ) {
    moves = cpu_select(cx, negative, side.above, side.below);
    beside = inward;
  } else if (rounding == TW_ROUND_RM) {
    moves = side.below;
    beside = cpu_select(cx, negative, outward, inward);
  } else {
    moves = side.above;
    beside = cpu_select(cx, negative, inward, outward);
  }
  return cpu_bits(cx, cpu_select(cx, moves, beside, bits), element);
}

/* Rounded down, a sum that is exactly zero is -0, if not both operands are 0. */
static MlirValue with_zero(cpu_t *cx, MlirValue sum, MlirValue x, MlirValue y) {
  MlirType ints = cpu_int(cx, is_f64(sum) ? 64 : 32);
  MlirValue signs = either(cx, cpu_bits(cx, x, ints), cpu_bits(cx, y, ints));
  MlirValue negative = cpu_cmpi(cx, CPU_SLT, signs, cpu_int_const(cx, mlirValueGetType(signs), 0));
  MlirValue zero = both(cx, negative, cpu_cmpf(cx, CPU_OEQ, sum, constant(cx, sum, 0)));
  return cpu_select(cx, zero, constant(cx, sum, -0.0), sum);
}

static MlirValue rounded_sum(cpu_t *cx, MlirValue x, MlirValue y, tw_rounding_t rounding) {
  MlirValue near = add(cx, x, y);
  if (rounding == TW_ROUND_RN)
    return near;
  MlirValue sum = stepped(cx, near, side_of_sum(cx, x, y, near), rounding);
  return rounding == TW_ROUND_RM ? with_zero(cx, sum, x, y) : sum;
}

static MlirValue rule_rounded(cpu_t *cx, MlirOperation op, int num, MlirValue *x) {
  (void)num;
  tw_rounding_t rounding = (tw_rounding_t)tw_attr_int(op, "rounding", TW_ROUND_RN);
  MlirValue near;
  side_t side;
  switch ((tw_rounded_kind_t)tw_attr_int(op, "kind", TW_ROUNDED_ADD)) {
  case TW_ROUNDED_ADD: return rounded_sum(cx, x[0], x[1], rounding);
  case TW_ROUNDED_SUB: return rounded_sum(cx, x[0], negated(cx, x[1]), rounding);
  case TW_ROUNDED_MUL:
    near = mul(cx, x[0], x[1]);
    side = side_of_product(cx, x[0], x[1], near);
    break;
  case TW_ROUNDED_DIV:
    near = cpu_bin(cx, "arith.divf", x[0], x[1]);
    side = side_of_quotient(cx, x[0], x[1], near);
    break;
  default: near = cpu_un(cx, "math.sqrt", x[0]); side = side_of_root(cx, x[0], near);
  }
  return rounding == TW_ROUND_RN ? near : stepped(cx, near, side, rounding);
}

CPU_RULE(TW_TILE_ROUNDED, CPU_ELEMENTWISE, 15, rule_rounded, NULL, NULL)
