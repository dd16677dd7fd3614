/* legalize_cast.c - conversions of elements and shapes, as upstream ops
 *
 * Each conversion rounds once. What upstream has no op for goes through f32, which holds every 16-bit and narrower
 * float and every 16-bit integer exactly; where the way to f32 could round a second time, it rounds to odd. */
#include "lowering/common/legalize.h"
#include "lowering/ranges.h"

static MlirValue convert(const legalize_t *l, const char *name, MlirValue x, tw_elem_t elem) {
  MlirType type = tw_with_element(mlirValueGetType(x), tw_elem_type(l->at.context, elem));
  return tw_unary(&l->at, name, type, x);
}

static bool is_wide_float(tw_elem_t elem) { return elem == TW_f32 || elem == TW_f64; }

static unsigned bits_of(tw_elem_t elem) {
  static const unsigned char widths[] = {1, 8, 16, 32, 64, 8, 16, 32, 64};
  return widths[elem];
}

/* --- Floats ---------------------------------------------------------------------------------------- */

/* f64 to f32, such that rounding the result to fewer bits rounds only once: truncates towards zero and marks what was
 * lost in the last bit. */
static MlirValue round_to_odd(const legalize_t *l, MlirValue x) {
  MlirValue near = convert(l, "arith.truncf", x, TW_f32), back = convert(l, "arith.extf", near, TW_f64);
  MlirValue bits = convert(l, "arith.bitcast", near, TW_i32);
  MlirType ints = mlirValueGetType(bits), doubles = mlirValueGetType(x);
  MlirValue one = tw_const_int(&l->at, ints, 1);
  MlirValue too_far = tw_legal_compare(l, TW_CMP_GT, tw_unary(&l->at, "math.absf", doubles, back),
                                       tw_unary(&l->at, "math.absf", doubles, x));
  MlirValue below = tw_binary(&l->at, "arith.subi", ints, bits, one);
  MlirValue odd = tw_binary(&l->at, "arith.ori", ints, tw_legal_select(l, too_far, below, bits), one);
  /* Of NaN, `back != x` holds too; its payload may change. */
  MlirValue inexact = tw_legal_compare(l, TW_CMP_NE, back, x);
  return tw_legal_select(l, inexact, convert(l, "arith.bitcast", odd, TW_f32), near);
}

static MlirValue float_to_float(const legalize_t *l, MlirValue x, tw_elem_t from, tw_elem_t to) {
  if (to == TW_f64)
    return convert(l, "arith.extf", x, TW_f64);
  if (from == TW_f64)
    x = to == TW_f32 ? convert(l, "arith.truncf", x, TW_f32) : round_to_odd(l, x);
  else if (from != TW_f32)
    x = convert(l, "arith.extf", x, TW_f32);
  return to == TW_f32 ? x : convert(l, "arith.truncf", x, to);
}

/* --- Integers -------------------------------------------------------------------------------------- */

static MlirValue int_to_int(const legalize_t *l, MlirValue x, tw_elem_t from, tw_elem_t to) {
  if (bits_of(from) == bits_of(to)) /* differ in sign; goes when types lose it, at the end of the pass */
    return convert(l, "builtin.unrealized_conversion_cast", x, to);
  if (bits_of(from) > bits_of(to))
    return convert(l, "arith.trunci", x, to);
  return convert(l, from < TW_i8 ? "arith.extui" : "arith.extsi", x, to);
}

/* Whether f32 has all the integers that `x` may be. */
static bool is_exact_in_f32(MlirValue x, tw_elem_t elem) {
  enum { EXACT_BITS = 24, NARROW_BITS = 16 };
  tw_range_t range = tw_range_of(x);
  int64_t most = INT64_C(1) << EXACT_BITS;
  return bits_of(elem) <= NARROW_BITS || (range.low >= (elem < TW_i8 ? 0 : -most) && range.high <= most);
}

static MlirValue int_to_float(const legalize_t *l, MlirValue x, tw_elem_t from, tw_elem_t to) {
  const char *name = from < TW_i8 ? "arith.uitofp" : "arith.sitofp";
  if (is_wide_float(to))
    return convert(l, name, x, to);
  tw_elem_t through = is_exact_in_f32(x, from) ? TW_f32 : TW_f64;
  return float_to_float(l, convert(l, name, x, through), through, to);
}

static MlirValue float_to_int(const legalize_t *l, MlirValue x, tw_elem_t from, tw_elem_t to) {
  if (!is_wide_float(from))
    x = convert(l, "arith.extf", x, TW_f32);
  return convert(l, to < TW_i8 ? "arith.fptoui" : "arith.fptosi", x, to);
}

static MlirValue to_bool(const legalize_t *l, MlirValue x, tw_elem_t from) {
  if (tw_elem_kind(from) == 'n')
    x = convert(l, "arith.extf", x, TW_f32);
  MlirType type = mlirValueGetType(x);
  MlirValue zero = tw_is_float(type) ? tw_const_float(&l->at, type, 0) : tw_const_int(&l->at, type, 0);
  return tw_legal_compare(l, TW_CMP_NE, x, zero);
}

MlirValue tw_legal_cast(const legalize_t *l, MlirValue x, tw_elem_t to) {
  tw_elem_t from = tw_elem_of(mlirValueGetType(x));
  if (from == to)
    return x;
  if (to == TW_b1)
    return to_bool(l, x, from);
  bool from_int = from <= TW_i64, to_int = to <= TW_i64;
  if (from_int)
    return to_int ? int_to_int(l, x, from, to) : int_to_float(l, x, from, to);
  return to_int ? float_to_int(l, x, from, to) : float_to_float(l, x, from, to);
}

/* --- Shapes ---------------------------------------------------------------------------------------- */

MlirValue tw_legal_broadcast(const legalize_t *l, MlirValue x, MlirType like) {
  MlirType from = mlirValueGetType(x), to = tw_with_element(like, tw_element(from));
  if (mlirTypeEqual(from, to))
    return x;
  if (!tw_is_tile(from))
    return tw_unary(&l->at, "tensor.splat", to, x);
  intptr_t rank = tw_rank(to), missing = rank - tw_rank(from);
  if (missing > 0) {
    int64_t shape[TW_MAX_RANK];
    for (intptr_t i = 0; i < rank; i++)
      shape[i] = i < missing ? 1 : tw_extent(from, i - missing);
    from = tw_tile_type(tw_element(from), rank, shape);
    x = tw_reshape(&l->at, from, x);
  }
  return tw_broadcast(&l->at, to, x);
}

MlirValue tw_legal_operand(const legalize_t *l, intptr_t index, tw_elem_t elem, MlirType like) {
  return tw_legal_broadcast(l, tw_legal_cast(l, mlirOperationGetOperand(l->op, index), elem), like);
}
