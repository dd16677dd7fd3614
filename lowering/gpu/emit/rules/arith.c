/* arith.c - rules: elementwise arithmetic, comparisons and casts, register by register
 *
 * What LLVM calls undefined and the dialect calls unspecified (division by zero, INT_MIN / -1,
 * oversized shifts) is steered to some value first: an optimizer must not draw conclusions. */
#include "lowering/gpu/emit/row_ends.h"
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/emit/words.h"
#include "lowering/gpu/facts/equal_groups.h"
#include "lowering/gpu/facts/index_facts.h"
#include "lowering/gpu/isa/convert_float.h"

#include <string.h>

/* ---- names ------------------------------------------------------------------------------------- */

static const char *const names[TW_NUM_OP_KINDS] = {
    [TW_ARITH_ADDF] = "llvm.fadd",
    [TW_ARITH_SUBF] = "llvm.fsub",
    [TW_ARITH_MULF] = "llvm.fmul",
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

/* ---- floats ------------------------------------------------------------------------------------ */

/* Formats of 8 bits and fewer have no arithmetic: they are widened to f32, and the result is rounded once. */
static MlirValue float_binary(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  MlirType element = tw_result_element(op);
  if (!tw_is_narrow(element))
    return twg_binary(e, llvm_name(op), x[0], x[1]);
  MlirValue a = twg_convert_float(e, x[0], element, e->f32);
  MlirValue b = twg_convert_float(e, x[1], element, e->f32);
  return twg_convert_float(e, twg_binary(e, llvm_name(op), a, b), e->f32, element);
}

/* Sums, differences and products of f16 are computed two at a time, in the word that two neighbours share. ptxas has
 * such instructions, too, but must take the words apart and put them together to find them, and has got words that a
 * loop carries wrong: docs/design/tensor-cores.md. */
static bool is_of_pairs(MlirOperation op) {
  tw_op_class_t class = tw_op_class(op);
  return (class == TW_CLASS_FLOAT_SUM || class == TW_CLASS_FLOAT_PRODUCT) && mlirTypeIsAF16(tw_result_element(op));
}

/* So are those of bf16 that a wait for products has ordered as words: machine code that takes them apart and makes
 * words again is not seen to (tools/sasscheck). */
static bool is_of_ordered_words(MlirOperation op) {
  MlirOperation from = tw_def(mlirOperationGetOperand(op, 0));
  tw_op_class_t class = tw_op_class(op);
  return (class == TW_CLASS_FLOAT_SUM || class == TW_CLASS_FLOAT_PRODUCT) && mlirTypeIsABF16(tw_result_element(op)) &&
         !mlirOperationIsNull(from) && tw_op_waits_for_products(from);
}

static bool float_pairs(tw_emitter_t *e, MlirOperation op) {
  MlirType element = tw_result_element(op);
  tw_values_t x = twg_operand(e, op, 0), y = twg_operand(e, op, 1), out = twg_new_values(e, x.count);
  for (int r = 0; r < out.count; r += 2) {
    MlirValue a = twg_pack(e, element, 2, x.at + r), b = twg_pack(e, element, 2, y.at + r);
    MlirValue both = twg_binary(e, llvm_name(op), a, b);
    for (int i = 0; i < 2; i++)
      out.at[r + i] = twg_unpack(e, both, i, element);
  }
  twg_set_result(e, op, 0, out);
  return true;
}

/* In pairs where every register has a neighbour. Two that are known to be equal are computed once, not as a pair. */
bool twg_rule_float_binary(tw_emitter_t *e, MlirOperation op) {
  tw_values_t x = twg_operand(e, op, 0), y = twg_operand(e, op, 1);
  bool even = x.count == y.count && x.count % 2 == 0 && !(twg_are_same(x) && twg_are_same(y));
  return even && (is_of_pairs(op) || is_of_ordered_words(op)) ? float_pairs(e, op)
                                                              : twg_each_register(e, op, float_binary);
}

static MlirValue float_unary(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  MlirType element = tw_result_element(op);
  if (!tw_is_narrow(element))
    return twg_unary(e, llvm_name(op), x[0]);
  MlirValue a = twg_convert_float(e, x[0], element, e->f32);
  return twg_convert_float(e, twg_unary(e, llvm_name(op), a), e->f32, element);
}

static bool rule_float_unary(tw_emitter_t *e, MlirOperation op) { return twg_each_register(e, op, float_unary); }

/* A zero of its sign in the place of a subnormal f32. A sum with -0, not a product by one: into that ptxas takes a
 * product before it, whose subnormal operand, a power of two that a quotient is brought back by, it then flushes. */
static MlirValue flush(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  (void)op;
  return twg_asm(e, "add.rn.ftz.f32 $0, $1, 0f80000000;", "=f,f", e->f32, 1, x, TW_PTX_NOTHING);
}

static bool rule_flush(tw_emitter_t *e, MlirOperation op) { return twg_each_register(e, op, flush); }

/* ---- integers ---------------------------------------------------------------------------------- */

static MlirValue int_binary(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  return twg_binary(e, llvm_name(op), x[0], x[1]);
}

static bool rule_int_binary(tw_emitter_t *e, MlirOperation op) { return twg_each_register(e, op, int_binary); }

/* The 32 bits that an operand of 64 is widened from; null if it is not. */
static MlirValue widened_from(tw_emitter_t *e, const tw_values_t *narrow, MlirValue value, int r) {
  int64_t number;
  if (narrow->count)
    return narrow->at[narrow->count == 1 ? 0 : r];
  return tw_known_int(value, &number) ? twg_const_i32(e, (int32_t)(uint32_t)number) : (MlirValue){NULL};
}

/* A product of two widened words is one instruction. LLVM forgets that they are: it computes on with all 64 bits, for
 * which a product takes three more. */
static bool multiply_words(tw_emitter_t *e, MlirOperation op) {
  tw_values_t narrow[2] = {{NULL, 0}}, x = twg_operand(e, op, 0), y = twg_operand(e, op, 1);
  int words = 0, count = x.count > y.count ? x.count : y.count;
  for (int i = 0; i < 2; i++) {
    MlirValue operand = mlirOperationGetOperand(op, i);
    MlirOperation def = tw_def(operand);
    int64_t number;
    bool is_word = !mlirOperationIsNull(def) && tw_op_is(def, TW_ARITH_EXTUI) &&
                   mlirTypeEqual(tw_element(mlirValueGetType(mlirOperationGetOperand(def, 0))), e->i32);
    if (is_word)
      narrow[i] = twg_operand(e, def, 0);
    else if (!tw_known_int(operand, &number) || number < 0 || number > UINT32_MAX)
      return false;
    words += is_word;
  }
  if (words == 0)
    return false;
  tw_values_t out = twg_new_values(e, count);
  for (int r = 0; r < count; r++) {
    MlirValue operands[2];
    for (int i = 0; i < 2; i++)
      operands[i] = widened_from(e, &narrow[i], mlirOperationGetOperand(op, i), r);
    out.at[r] = twg_asm(e, "mul.wide.u32 $0, $1, $2;", "=l,r,r", e->i64, 2, operands, TW_PTX_NOTHING);
  }
  twg_set_result(e, op, 0, out);
  return true;
}

static bool rule_muli(tw_emitter_t *e, MlirOperation op) {
  bool wide =
      tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))) && mlirTypeEqual(tw_result_element(op), e->i64);
  return (wide && multiply_words(e, op)) || rule_int_binary(e, op);
}

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

static bool rule_shift(tw_emitter_t *e, MlirOperation op) { return twg_each_register(e, op, shift); }

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

static bool rule_int_divide(tw_emitter_t *e, MlirOperation op) { return twg_each_register(e, op, int_divide); }

/* A value that nobody reads. */
static bool rule_poison(tw_emitter_t *e, MlirOperation op) {
  MlirType element = twg_register_type(e, tw_result_element(op));
  return twg_set_splat(e, op, twg_op(e, "llvm.mlir.poison", element, 0, NULL, 0, NULL));
}

/* ---- comparison and choice ----------------------------------------------------------------------- */

static MlirValue compare(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  int predicate = (int)tw_attr_int(op, "predicate", 0); /* arith numbers them as LLVM does */
  MlirType element = tw_operand_element(op, 0);
  if (!mlirTypeIsAFloat(element))
    return twg_icmp(e, predicate, x[0], x[1]);
  if (!tw_is_narrow(element))
    return twg_fcmp(e, predicate, x[0], x[1]);
  return twg_fcmp(e, predicate, twg_convert_float(e, x[0], element, e->f32),
                  twg_convert_float(e, x[1], element, e->f32));
}

enum { FEW_POSITIONS = 4 /* of a thread */ };

/* Positions below a number, or not, of 32 bits: a thread's own place is taken from the number once, so that each
 * register is a comparison with a constant. None is negative: a negative number is below them as 0 is. */
static bool compare_positions(tw_emitter_t *e, MlirOperation op) {
  int predicate = (int)tw_attr_int(op, "predicate", 0);
  MlirValue places = mlirOperationGetOperand(op, 0);
  tw_values_t bound = twg_operand(e, op, 1);
  tw_layout_t l;
  bool asks = predicate == TW_SLT || predicate == TW_SGE;
  if (!asks || !tw_counts_from_zero(places) || !twg_are_same(bound) ||
      !mlirTypeEqual(mlirValueGetType(bound.at[0]), e->i32) || !tw_layout_of_type(mlirValueGetType(places), &l) ||
      !tw_layout_disjoint(&l, 0))
    return false;
  MlirValue left = twg_binary(e, "llvm.intr.smax", bound.at[0], twg_const_i32(e, 0));
  left = twg_binary(e, "llvm.sub", left, twg_thread_coord(e, &l, 0));
  tw_values_t out = twg_new_values(e, bound.count);
  int64_t sure = twg_surely_inside(e, op, &l, 0);
  for (int r = 0; r < out.count; r++) {
    uint32_t place = tw_layout_coord(&l, tw_layout_image(&l, TW_REGISTER, (uint32_t)r), 0);
    if (place < sure) {
      out.at[r] = twg_const_int(e, e->i1, predicate == TW_SLT);
      continue;
    }
    out.at[r] = twg_icmp(e, predicate == TW_SLT ? TW_SGT : TW_SLE, left, twg_const_i32(e, place));
  }
  twg_set_result(e, op, 0, out);
  return true;
}

/* Places along two axes, as in a mask of what is below a diagonal: the difference of a thread's own ones is found once,
 * so that each register is a comparison with a constant, and those of one diagonal are the same. */
static bool compare_two_places(tw_emitter_t *e, MlirOperation op) {
  static const int as_signed[] = {TW_EQ, TW_NE, TW_SLT, TW_SLE, TW_SGT, TW_SGE, TW_SLT, TW_SLE, TW_SGT, TW_SGE};
  int axes[2];
  tw_layout_t l;
  MlirType type = mlirValueGetType(mlirOperationGetOperand(op, 0));
  if (!tw_is_tile(type) || !mlirTypeEqual(tw_element(type), e->i32) || !tw_layout_of_type(type, &l))
    return false;
  for (int i = 0; i < 2; i++) {
    axes[i] = tw_counted_axis(mlirOperationGetOperand(op, i));
    if (axes[i] < 0 || !tw_layout_disjoint(&l, axes[i]))
      return false;
  }
  MlirValue between = twg_binary(e, "llvm.sub", twg_thread_coord(e, &l, axes[0]), twg_thread_coord(e, &l, axes[1]));
  int predicate = as_signed[tw_attr_int(op, "predicate", 0)];
  tw_values_t out = twg_new_values(e, tw_layout_count(&l, TW_REGISTER));
  for (int r = 0; r < out.count; r++) {
    uint32_t image = tw_layout_image(&l, TW_REGISTER, (uint32_t)r);
    int64_t own = (int64_t)tw_layout_coord(&l, image, axes[1]) - tw_layout_coord(&l, image, axes[0]);
    out.at[r] = twg_icmp(e, predicate, between, twg_const_i32(e, own));
  }
  twg_set_result(e, op, 0, out);
  return true;
}

/* Bits of registers that differ in neighbours only for which the mask is equal. */
static int equal_registers(MlirOperation op) {
  MlirValue mask = mlirOperationGetResult(op, 0);
  int bits = 0;
  for (int dim = 0; dim < tw_rank(mlirValueGetType(mask)); dim++)
    bits |= tw_registers_within(mlirValueGetType(mask), dim, tw_equal_neighbours(mask, dim));
  return bits;
}

/* A mask of indices that are multiples of a vector is one for all of a vector. */
static bool rule_compare_ints(tw_emitter_t *e, MlirOperation op) {
  tw_values_t x = twg_operand(e, op, 0), y = twg_operand(e, op, 1);
  int equal = equal_registers(op);
  if (equal == 0)
    return (x.count >= FEW_POSITIONS && (compare_positions(e, op) || compare_two_places(e, op))) ||
           twg_each_register(e, op, compare);
  tw_values_t out = twg_new_values(e, x.count);
  for (int r = 0; r < out.count; r++) {
    MlirValue operands[] = {x.at[r], y.at[y.count == 1 ? 0 : r]};
    out.at[r] = r & equal ? out.at[r & ~equal] : compare(e, op, operands);
  }
  twg_set_result(e, op, 0, out);
  return true;
}

static bool rule_compare(tw_emitter_t *e, MlirOperation op) { return twg_each_register(e, op, compare); }

static MlirValue choose(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  (void)op;
  return twg_select(e, x[0], x[1], x[2]);
}

static bool rule_select(tw_emitter_t *e, MlirOperation op) { return twg_each_register(e, op, choose); }

/* ---- casts ------------------------------------------------------------------------------------- */

static MlirValue float_cast(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  return twg_convert_float(e, x[0], tw_operand_element(op, 0), tw_result_element(op));
}

/* Neighbours are converted together where an instruction does so; the first pair tells whether there is one. */
static bool rule_float_cast(tw_emitter_t *e, MlirOperation op) {
  MlirType from = tw_operand_element(op, 0), to = tw_result_element(op);
  tw_values_t in = twg_operand(e, op, 0), out = twg_new_values(e, in.count);
  if (in.count == 1 || mlirValueEqual(in.at[0], in.at[1]) || !twg_convert_pair(e, from, to, in.at, out.at))
    return twg_each_register(e, op, float_cast);
  for (int r = 2; r < in.count; r += 2)
    if (!twg_convert_pair(e, from, to, &in.at[r], &out.at[r]))
      for (int i = 0; i < 2; i++)
        out.at[r + i] = twg_convert_float(e, in.at[r + i], from, to);
  twg_set_result(e, op, 0, out);
  return true;
}

static MlirValue int_cast(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  return twg_cast(e, llvm_name(op), twg_register_type(e, tw_result_element(op)), x[0]);
}

static bool rule_int_cast(tw_emitter_t *e, MlirOperation op) { return twg_each_register(e, op, int_cast); }

static MlirValue float_to_int(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  MlirType from = tw_operand_element(op, 0);
  MlirValue y = tw_is_narrow(from) ? twg_convert_float(e, x[0], from, e->f32) : x[0];
  MlirType to = twg_register_type(e, tw_result_element(op));
  if (tw_bits(to) > 8)
    return twg_float_to_int(e, llvm_name(op), to, y);
  return twg_cast(e, "llvm.trunc", to, twg_float_to_int(e, llvm_name(op), e->i32, y)); /* bytes of words pack as is */
}

/* The addition that rounds as an op does that gives whole numbers; null: there is none. */
static const char *addition_rounded_as(MlirOperation op) {
  switch (mlirOperationIsNull(op) ? TW_NUM_OP_KINDS : tw_op_kind(op)) {
  case TW_MATH_FLOOR: return "llvm.nvvm.add.rm.f";
  case TW_MATH_CEIL: return "llvm.nvvm.add.rp.f";
  case TW_MATH_ROUNDEVEN: return "llvm.nvvm.add.rn.f";
  default: return NULL;
  }
}

/* A float of 32 bits that is rounded to a whole number, and then to an integer of 8 or 16 bits: instructions that
 * convert are few a cycle. Added to 1.5 * 2^23, whose neighbours are whole numbers, it is rounded so, and the lowest
 * bits of the sum are the integer's, two's complement too. Of an integer that is too large for them no bit is told
 * anyway. */
static bool round_to_short(tw_emitter_t *e, MlirOperation op) {
  MlirOperation rounding = tw_def(mlirOperationGetOperand(op, 0));
  const char *addition = addition_rounded_as(rounding);
  MlirType to = twg_register_type(e, tw_result_element(op));
  if (addition == NULL || e->simt || e->c != NULL || !mlirTypeIsAF32(tw_operand_element(op, 0)) ||
      (tw_bits(to) != 8 && tw_bits(to) != 16))
    return false;
  tw_values_t x = twg_operand(e, rounding, 0), out = twg_new_values(e, x.count);
  for (int r = 0; r < x.count; r++) {
    MlirValue terms[] = {x.at[r], twg_const_float(e, e->f32, 12582912.0)}, sum = {NULL};
    bool same = r > 0 && mlirValueEqual(x.at[r], x.at[r - 1]);
    if (!same)
      sum = twg_intrinsic(e, addition, e->f32, 2, terms, TW_PTX_NOTHING);
    out.at[r] = same ? out.at[r - 1] : twg_cast(e, "llvm.trunc", to, twg_bitcast(e, sum, e->i32));
  }
  twg_set_result(e, op, 0, out);
  return true;
}

static bool rule_float_to_int(tw_emitter_t *e, MlirOperation op) {
  return round_to_short(e, op) || twg_each_register(e, op, float_to_int);
}

static MlirValue bitcast(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  return twg_bitcast(e, x[0], twg_register_type(e, tw_result_element(op)));
}

static bool rule_bitcast(tw_emitter_t *e, MlirOperation op) { return twg_each_register(e, op, bitcast); }

/* ---- constants --------------------------------------------------------------------------------- */

/* As a thread holds it: narrow formats as bits, tf32 as f32. */
static MlirValue constant(tw_emitter_t *e, MlirType element, MlirAttribute value) {
  if (mlirTypeIsAFloat(element) && (tw_is_narrow(element) || mlirTypeIsATF32(element))) {
    double x = mlirFloatAttrGetValueDouble(value);
    return tw_is_narrow(element) ? twg_const_int(e, e->i8, tw_narrow_bits(element, x)) : twg_const_float(e, e->f32, x);
  }
  return twg_constant(e, element, value);
}

static bool rule_constant(tw_emitter_t *e, MlirOperation op) {
  MlirAttribute value = tw_attr(op, "value");
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  if (tw_is_tile(type)) {
    if (!mlirDenseElementsAttrIsSplat(value)) {
      tw_op_error(op, "is a tile constant with different elements, which has no GPU lowering");
      return false;
    }
    value = mlirDenseElementsAttrGetSplatValue(value);
  }
  return twg_set_splat(e, op, constant(e, tw_element(type), value));
}

/* An instruction that the assembler cannot leave out, and that stays in front of the load which takes the registers. */
static bool rule_settle(tw_emitter_t *e, MlirOperation op) {
  tw_values_t in = twg_operand(e, op, 0), out = twg_new_values(e, in.count);
  for (int i = 0; i < in.count; i++) {
    MlirType type = mlirValueGetType(in.at[i]);
    MlirValue operands[] = {twg_bitcast(e, in.at[i], e->i32), twg_opaque_zero(e)};
    MlirValue word = twg_asm(e, "xor.b32 $0, $1, $2;", "=r,r,r", e->i32, 2, operands, TW_PTX_EFFECT);
    out.at[i] = twg_bitcast(e, word, type);
  }
  twg_set_result(e, op, 0, out);
  return true;
}

TWG_RULE(TW_TILE_SETTLE, rule_settle)
TWG_RULE(TW_ARITH_CONSTANT, rule_constant)
TWG_RULE(TW_TILE_CONSTANT, rule_constant)
TWG_RULE(TW_ARITH_SUBF, twg_rule_float_binary)
TWG_RULE(TW_ARITH_MULF, twg_rule_float_binary)
TWG_RULE(TW_ARITH_MAXIMUMF, twg_rule_float_binary)
TWG_RULE(TW_ARITH_MINIMUMF, twg_rule_float_binary)
TWG_RULE(TW_ARITH_MAXNUMF, twg_rule_float_binary)
TWG_RULE(TW_ARITH_MINNUMF, twg_rule_float_binary)
TWG_RULE(TW_ARITH_NEGF, rule_float_unary)
TWG_RULE(TW_ARITH_ADDI, rule_int_binary)
TWG_RULE(TW_ARITH_SUBI, rule_int_binary)
TWG_RULE(TW_ARITH_MULI, rule_muli)
TWG_RULE(TW_ARITH_ANDI, rule_int_binary)
TWG_RULE(TW_ARITH_ORI, rule_int_binary)
TWG_RULE(TW_ARITH_XORI, rule_int_binary)
TWG_RULE(TW_ARITH_MINSI, rule_int_binary)
TWG_RULE(TW_ARITH_MAXSI, rule_int_binary)
TWG_RULE(TW_ARITH_MINUI, rule_int_binary)
TWG_RULE(TW_ARITH_MAXUI, rule_int_binary)
TWG_RULE(TW_ARITH_SHLI, rule_shift)
TWG_RULE(TW_ARITH_SHRSI, rule_shift)
TWG_RULE(TW_ARITH_SHRUI, rule_shift)
TWG_RULE(TW_ARITH_DIVSI, rule_int_divide)
TWG_RULE(TW_ARITH_DIVUI, rule_int_divide)
TWG_RULE(TW_ARITH_REMSI, rule_int_divide)
TWG_RULE(TW_ARITH_REMUI, rule_int_divide)
TWG_RULE(TW_ARITH_FLOORDIVSI, rule_int_divide)
TWG_RULE(TW_ARITH_CEILDIVSI, rule_int_divide)
TWG_RULE(TW_ARITH_CEILDIVUI, rule_int_divide)
TWG_RULE(TW_ARITH_CMPI, rule_compare_ints)
TWG_RULE(TW_ARITH_CMPF, rule_compare)
TWG_RULE(TW_ARITH_SELECT, rule_select)
TWG_RULE(TW_UB_POISON, rule_poison)
TWG_RULE(TW_ARITH_EXTF, rule_float_cast)
TWG_RULE(TW_ARITH_TRUNCF, rule_float_cast)
TWG_RULE(TW_ARITH_EXTSI, rule_int_cast)
TWG_RULE(TW_ARITH_EXTUI, rule_int_cast)
TWG_RULE(TW_ARITH_TRUNCI, rule_int_cast)
TWG_RULE(TW_ARITH_FPTOSI, rule_float_to_int)
TWG_RULE(TW_ARITH_FPTOUI, rule_float_to_int)
TWG_RULE(TW_ARITH_BITCAST, rule_bitcast)
TWG_RULE(TW_TILE_FLUSH, rule_flush)
TWG_RULE(TW_MATH_ABSF, rule_float_unary)
TWG_RULE(TW_MATH_COPYSIGN, twg_rule_float_binary)
TWG_RULE(TW_MATH_FLOOR, rule_float_unary)
TWG_RULE(TW_MATH_CEIL, rule_float_unary)
TWG_RULE(TW_MATH_TRUNC, rule_float_unary)
TWG_RULE(TW_MATH_ROUNDEVEN, rule_float_unary)
