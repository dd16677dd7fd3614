/* int_to_float.c - rules: integers become floats; bytes of a word by arithmetic on the word
 *
 * The instructions that convert an integer are few a cycle. Bytes that lie in one word or half of one, as weights of 8
 * or 4 bits do, need none: behind the right exponent a byte u makes the float 2^n + u, exactly, and 2^n is taken off
 * again.
 *
 *   %q = arith.shrsi %w, 4 : tensor<...xi8>            u = (word >> 4 & 0x0F0F0F0F) ^ 0x08080808   q + 8, four times
 *   %x = arith.sitofp %q to tensor<...xf16>            prmt(u, 0x64646464, 0x4140)                 two of 1024 + u
 *                                                      - (1024 + 8)
 *
 * So it is with a field of each byte, as shifts and masks by constants cut it out, and with a constant added to it. To
 * f32, 0x4B000000 stands for 2^23. To bf16, 0x4300 stands for 2^7, behind which fields of up to 7 bits fit; of a signed
 * byte the upper bit doubles what is taken off:
 *
 *   prmt(word, 0x43434343, 0x4140) & 0xFF7FFF7F       less the same & 0xFF80FF80: 128, or 256
 *
 * Other bytes are two f32 in between. Other integers of 16 bits at the most, or whose range is known to be small, go
 * through f32, too, where the result has 16 bits: f32 holds them exactly, so it rounds once.
 *
 * Natural numbers of 16 bits or more that are below 2^10, or 2^7 to bf16, fit behind the exponent of the result itself,
 * two in a word, as weights of 4 bits that are cut out of words do; a mask of them is one of both:
 *
 *   %q = arith.andi %w, 15 : tensor<...xi32>          prmt(w, w', 0x5410) & 0x000F000F | 0x43004300
 *   %x = arith.uitofp %q to tensor<...xbf16>          - 128, of two */
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/isa/convert_float.h"
#include "lowering/ranges.h"

enum { BYTE = 8, BYTES = 4, F32_EXACT_BITS = 24 };

/* The i8 tile whose value is bits offset .. offset + width of each byte of operand `operand` of `reader`, extended,
 * and `up` places higher. */
typedef struct {
  MlirOperation reader;
  intptr_t operand;
  int offset, width, up;
  bool is_signed;
} field_t;

static bool fills_byte(const field_t *f) { return f->up + f->width == BYTE; }

static bool shift_down(field_t *f, int by, bool sign) {
  if (!sign && f->is_signed && !fills_byte(f))
    return false;
  int lost = by > f->up ? by - f->up : 0;
  f->is_signed = fills_byte(f) ? sign : f->is_signed;
  f->up -= by - lost;
  f->offset += lost;
  f->width -= lost;
  return f->width > 0;
}

static bool shift_up(field_t *f, int by) {
  f->up += by;
  if (f->up + f->width > BYTE)
    f->width = BYTE - f->up;
  return f->width > 0;
}

static bool mask(field_t *f, int64_t bits) {
  int width = 0;
  while (bits >> width & 1)
    width++;
  if (bits >> width != 0 || width == 0 || f->up != 0 || (f->is_signed && width > f->width))
    return false;
  f->width = width < f->width ? width : f->width;
  f->is_signed = false;
  return true;
}

/* Of operand i of `op`, as far as shifts and masks of constants lead. */
static field_t field_of(MlirOperation op, intptr_t i, bool is_signed) {
  field_t whole = {.reader = op, .operand = i, .width = BYTE, .is_signed = is_signed};
  MlirOperation from = tw_def(mlirOperationGetOperand(op, i));
  int64_t by;
  if (mlirOperationIsNull(from) || mlirOperationGetNumOperands(from) != 2 ||
      !tw_known_int(mlirOperationGetOperand(from, 1), &by))
    return whole;
  field_t f = field_of(from, 0, is_signed);
  bool shifts = by >= 0 && by < BYTE;
  bool found = tw_op_is(from, TW_ARITH_SHRSI)   ? shifts && shift_down(&f, (int)by, true)
               : tw_op_is(from, TW_ARITH_SHRUI) ? shifts && shift_down(&f, (int)by, false)
               : tw_op_is(from, TW_ARITH_SHLI)  ? shifts && shift_up(&f, (int)by)
               : tw_op_is(from, TW_ARITH_ANDI)  ? mask(&f, by & 0xFF)
                                                : false;
  return found ? f : whole;
}

/* What a conversion reads of bytes: a field, and a number added to it, which leaves no i8. */
typedef struct {
  field_t field;
  int64_t added;
} source_t;

static bool find_source(MlirOperation op, source_t *out) {
  bool is_signed = tw_op_is(op, TW_ARITH_SITOFP);
  MlirOperation from = tw_def(mlirOperationGetOperand(op, 0));
  *out = (source_t){field_of(op, 0, is_signed), 0};
  bool adds = !mlirOperationIsNull(from) && tw_op_is(from, TW_ARITH_ADDI);
  if ((adds || (!mlirOperationIsNull(from) && tw_op_is(from, TW_ARITH_SUBI))) &&
      tw_known_int(mlirOperationGetOperand(from, 1), &out->added)) {
    source_t inner = {field_of(from, 0, is_signed), adds ? out->added : -out->added};
    int64_t span = INT64_C(1) << inner.field.width;
    int64_t low = (inner.field.is_signed ? -span / 2 : 0) + inner.added, high = low + span - 1;
    bool fits = is_signed ? low >= -(1 << (BYTE - 1)) && high < 1 << (BYTE - 1) : low >= 0 && high < 1 << BYTE;
    *out = fits ? inner : (source_t){out->field, 0};
  }
  const field_t *f = &out->field;
  return f->up == 0 && (f->width == BYTE || is_signed || !f->is_signed);
}

static int64_t in_each_byte(int64_t bits) { return (int32_t)(uint32_t)(bits * 0x01010101); }

/* A field of each byte of a word, as a natural number. */
static MlirValue cut_out(tw_emitter_t *e, const field_t *f, MlirValue word) {
  if (f->offset > 0)
    word = twg_binary(e, "llvm.lshr", word, twg_const_i32(e, f->offset));
  if (f->width < BYTE)
    word = twg_binary(e, "llvm.and", word, twg_const_i32(e, in_each_byte((1 << f->width) - 1)));
  if (f->is_signed)
    word = twg_binary(e, "llvm.xor", word, twg_const_i32(e, in_each_byte(1 << (f->width - 1))));
  return word;
}

static MlirValue permute_bytes(tw_emitter_t *e, MlirValue low, int64_t high, int64_t selector) {
  MlirValue operands[] = {low, twg_const_i32(e, high), twg_const_i32(e, selector)};
  return twg_intrinsic(e, "llvm.nvvm.prmt", e->i32, 3, operands, TW_PTX_NOTHING);
}

/* Two bytes of a word, less `excess`. */
static void pair_to_f16(tw_emitter_t *e, MlirValue word, const int at[2], int64_t excess, MlirValue out[2]) {
  MlirValue pair = permute_bytes(e, word, 0x64646464, 0x4040 | at[1] << 8 | at[0]);
  MlirValue both[2] = {twg_const_float(e, e->f16, (double)(1024 + excess))};
  both[1] = both[0];
  pair = twg_binary(e, "llvm.fsub", twg_bitcast(e, pair, twg_vector_type(e->f16, 2)), twg_pack(e, e->f16, 2, both));
  out[0] = twg_unpack(e, pair, 0, e->f16);
  out[1] = twg_unpack(e, pair, 1, e->f16);
}

/* Whether bf16 has 128 and each of the bytes, and what is taken off: a signed byte is 128 and its lower bits, less 128
 * or, where the upper one is set, 256. */
static bool are_pairs_of_bf16(const field_t *f, int64_t excess) {
  enum { ONE = 128, LAST = 256 }; /* all integers up to there are numbers of bf16 */
  bool whole = f->width == BYTE;
  return whole ? f->is_signed && excess == ONE : ONE + excess >= 0 && ONE + excess <= LAST;
}

/* Two bytes of a word, less `excess`. */
static void pair_to_bf16(tw_emitter_t *e, const field_t *f, MlirValue word, const int at[2], int64_t excess,
                         MlirValue out[2]) {
  enum { EXPONENTS = 0x43434343, LOWER = 0xFF7F, UPPER = 0xFF80, BOTH = 0x00010001, ONE = 128 };
  MlirType bf16 = mlirBF16TypeGet(e->context), pair = twg_vector_type(bf16, 2);
  MlirValue x = permute_bytes(e, word, EXPONENTS, 0x4040 | at[1] << 8 | at[0]), less;
  if (f->width == BYTE) {
    less = twg_binary(e, "llvm.and", x, twg_const_i32(e, (int32_t)((uint32_t)UPPER * BOTH)));
    x = twg_binary(e, "llvm.and", x, twg_const_i32(e, (int32_t)((uint32_t)LOWER * BOTH)));
    less = twg_bitcast(e, less, pair);
  } else {
    MlirValue one = twg_const_float(e, bf16, (double)(ONE + excess)), both[2] = {one, one};
    less = twg_pack(e, bf16, 2, both);
  }
  x = twg_binary(e, "llvm.fsub", twg_bitcast(e, x, pair), less);
  out[0] = twg_unpack(e, x, 0, bf16);
  out[1] = twg_unpack(e, x, 1, bf16);
}

static MlirValue byte_to_f32(tw_emitter_t *e, MlirValue word, int i, int64_t excess) {
  MlirValue x = twg_bitcast(e, permute_bytes(e, word, 0x4B000000, 0x7540 | i), e->f32);
  return twg_binary(e, "llvm.fsub", x, twg_const_float(e, e->f32, (double)((1 << 23) + excess)));
}

static void pair_from_f32(tw_emitter_t *e, MlirType to, const MlirValue x[2], MlirValue out[2]) {
  if (mlirTypeIsAF16(to) || mlirTypeIsABF16(to))
    twg_truncate_pair(e, to, x, out);
  else
    for (int i = 0; i < 2; i++)
      out[i] = twg_convert_float(e, x[i], e->f32, to);
}

/* How bytes lie in words: so many of them, and which one each is. */
typedef struct {
  int count, at[BYTES];
} packing_t;

/* Last, half words. Second, words that were turned on the way (isa/matrix_access.h). */
static const packing_t packings[] = {{BYTES, {0, 1, 2, 3}}, {BYTES, {0, 2, 1, 3}}, {BYTES / 2, {0, 1}}};

static MlirValue word_of(tw_emitter_t *e, const packing_t *packing, const MlirValue *bytes) {
  MlirValue in_order[BYTES];
  for (int i = 0; i < packing->count; i++)
    in_order[packing->at[i]] = bytes[i];
  return twg_word_behind(e, packing->count, in_order);
}

/* How all of the bytes lie; null if they are not in words. */
static const packing_t *find_packing(tw_emitter_t *e, tw_values_t bytes) {
  for (size_t p = 0; p < sizeof packings / sizeof *packings; p++) {
    const packing_t *packing = &packings[p];
    bool found = bytes.count % packing->count == 0;
    for (int r = 0; found && r < bytes.count; r += packing->count)
      found = word_of(e, packing, &bytes.at[r]).ptr != NULL;
    if (found)
      return packing;
  }
  return NULL;
}

static bool convert_words(tw_emitter_t *e, const source_t *source, MlirType to, tw_values_t bytes, tw_values_t out) {
  const field_t *f = &source->field;
  int64_t excess = (f->is_signed ? INT64_C(1) << (f->width - 1) : 0) - source->added;
  const packing_t *packing = bytes.count == out.count ? find_packing(e, bytes) : NULL;
  if (packing == NULL)
    return false;
  bool by_halves = mlirTypeIsABF16(to) && are_pairs_of_bf16(f, excess);
  for (int r = 0; r < bytes.count; r += packing->count) {
    MlirValue word = word_of(e, packing, &bytes.at[r]);
    word = packing->count == BYTES ? word : twg_cast(e, "llvm.zext", e->i32, word);
    word = by_halves && f->width == BYTE ? word : cut_out(e, f, word);
    for (int i = 0; i < packing->count; i += 2) {
      const int *at = &packing->at[i];
      if (mlirTypeIsAF16(to)) {
        pair_to_f16(e, word, at, excess, &out.at[r + i]);
        continue;
      }
      if (by_halves) {
        pair_to_bf16(e, f, word, at, excess, &out.at[r + i]);
        continue;
      }
      MlirValue x[2] = {byte_to_f32(e, word, at[0], excess), byte_to_f32(e, word, at[1], excess)};
      pair_from_f32(e, to, x, &out.at[r + i]);
    }
  }
  return true;
}

/* ---- two small numbers in a word ----------------------------------------------------------------------- */

/* Numbers of operand `operand` of `reader`, from 0 to `mask` once that has cut them, and a number added to them. */
typedef struct {
  MlirOperation reader;
  intptr_t operand;
  int64_t mask, added;
} small_t;

/* Bits of a float of 16 bits behind its exponent; 0 for another type. */
static int mantissa_bits(MlirType to) {
  enum { F16_MANTISSA = 10, BF16_MANTISSA = 7 };
  return mlirTypeIsAF16(to) ? F16_MANTISSA : mlirTypeIsABF16(to) ? BF16_MANTISSA : 0;
}

/* The op that gives operand 0 of `op`, if it reads a constant. */
static MlirOperation with_constant(MlirOperation op, intptr_t operand, int64_t *constant) {
  MlirOperation from = tw_def(mlirOperationGetOperand(op, operand));
  bool found = !mlirOperationIsNull(from) && mlirOperationGetNumOperands(from) == 2 &&
               tw_known_int(mlirOperationGetOperand(from, 1), constant);
  return found ? from : tw_null_op();
}

static bool find_small(MlirOperation op, MlirType to, small_t *out) {
  enum { HALF_WORD = 16 };
  int64_t limit = INT64_C(1) << mantissa_bits(to), by;
  *out = (small_t){op, 0, limit - 1, 0};
  MlirOperation from = with_constant(op, 0, &by);
  bool adds = !mlirOperationIsNull(from) && (tw_op_is(from, TW_ARITH_ADDI) || tw_op_is(from, TW_ARITH_SUBI));
  if (adds && by >= -limit && by <= limit && tw_op_is(op, TW_ARITH_SITOFP)) {
    *out = (small_t){from, 0, limit - 1, tw_op_is(from, TW_ARITH_ADDI) ? by : -by};
    from = with_constant(from, 0, &by);
  }
  tw_range_t range = tw_range_of(mlirOperationGetOperand(out->reader, out->operand));
  if (!mlirOperationIsNull(from) && tw_op_is(from, TW_ARITH_ANDI) && by >= 0 && by < limit)
    *out = (small_t){from, 0, by, out->added};
  return limit > 1 && range.low >= 0 && range.high < limit &&
         tw_bits(mlirValueGetType(mlirOperationGetOperand(op, 0))) >= HALF_WORD;
}

static MlirValue as_word(tw_emitter_t *e, MlirValue x) {
  enum { WORD_BITS = 32 };
  int bits = tw_bits(mlirValueGetType(x));
  return bits == WORD_BITS ? x : twg_cast(e, bits < WORD_BITS ? "llvm.zext" : "llvm.trunc", e->i32, x);
}

/* The exponent is that of 2^n, of which the mantissa counts ones. Of two constants the assembler would make two
 * instructions. */
static void convert_small(tw_emitter_t *e, const small_t *small, MlirType to, const MlirValue x[2], MlirValue out[2]) {
  enum { BOTH = 0x00010001, LOW_HALVES = 0x5410, F16_EXPONENT = 0x6400, BF16_EXPONENT = 0x4300 };
  int64_t one = INT64_C(1) << mantissa_bits(to), exponent = mlirTypeIsAF16(to) ? F16_EXPONENT : BF16_EXPONENT;
  MlirValue operands[] = {as_word(e, x[0]), as_word(e, x[1]), twg_const_i32(e, LOW_HALVES)};
  MlirValue word = twg_intrinsic(e, "llvm.nvvm.prmt", e->i32, 3, operands, TW_PTX_NOTHING);
  MlirValue bits[] = {word, twg_const_i32(e, small->mask * BOTH), twg_const_i32(e, exponent * BOTH)};
  word = twg_asm(e, "lop3.b32 $0, $1, $2, $3, 0xEA;", "=r,r,n,r", e->i32, 3, bits, TW_PTX_NOTHING); /* $1 & $2 | $3 */
  MlirValue both[2] = {twg_const_float(e, to, (double)(one - small->added))};
  both[1] = both[0];
  MlirValue pair = twg_binary(e, "llvm.fsub", twg_bitcast(e, word, twg_vector_type(to, 2)), twg_pack(e, to, 2, both));
  out[0] = twg_unpack(e, pair, 0, to);
  out[1] = twg_unpack(e, pair, 1, to);
}

/* ---- the rule ------------------------------------------------------------------------------------------ */

/* Whether f32 has all the integers that the operand may be. */
static bool is_exact_in_f32(MlirOperation op) {
  MlirValue value = mlirOperationGetOperand(op, 0);
  if (tw_bits(mlirValueGetType(value)) < F32_EXACT_BITS)
    return true;
  tw_range_t range = tw_range_of(value);
  int64_t least = tw_op_is(op, TW_ARITH_SITOFP) ? -(1 << F32_EXACT_BITS) : 0;
  return range.low >= least && range.high <= 1 << F32_EXACT_BITS;
}

static MlirValue convert(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  MlirType to = tw_result_element(op);
  const char *name = tw_op_is(op, TW_ARITH_SITOFP) ? "llvm.sitofp" : "llvm.uitofp";
  bool direct = mlirTypeIsAF64(to) || mlirTypeIsAF32(to) || mlirTypeIsAF16(to) || mlirTypeIsABF16(to);
  return direct ? twg_cast(e, name, to, x[0]) : twg_convert_float(e, twg_cast(e, name, e->f32, x[0]), e->f32, to);
}

static void convert_pair(tw_emitter_t *e, MlirOperation op, MlirType to, const MlirValue x[2], MlirValue out[2]) {
  const char *name = tw_op_is(op, TW_ARITH_SITOFP) ? "llvm.sitofp" : "llvm.uitofp";
  MlirValue wide[2] = {twg_cast(e, name, e->f32, x[0]), twg_cast(e, name, e->f32, x[1])};
  twg_truncate_pair(e, to, wide, out);
}

/* All numbers by pairs; false where pairs gain nothing. */
static bool convert_pairs(tw_emitter_t *e, MlirOperation op, MlirType to, tw_values_t in, tw_values_t out) {
  bool halves = mantissa_bits(to) > 0 && in.count % 2 == 0 && !mlirValueEqual(in.at[0], in.at[1]);
  small_t small;
  if (halves && find_small(op, to, &small)) {
    tw_values_t cut = twg_operand(e, small.reader, small.operand);
    for (int r = 0; r < in.count; r += 2)
      convert_small(e, &small, to, &cut.at[r], &out.at[r]);
    return true;
  }
  for (int r = 0; halves && is_exact_in_f32(op) && r < in.count; r += 2)
    convert_pair(e, op, to, &in.at[r], &out.at[r]);
  return halves && is_exact_in_f32(op);
}

static bool rule_int_to_float(tw_emitter_t *e, MlirOperation op) {
  MlirType from = tw_operand_element(op, 0);
  MlirType to = tw_result_element(op);
  tw_values_t in = twg_operand(e, op, 0), out = twg_new_values(e, in.count);
  source_t source;
  bool by_words = tw_bits(from) == BYTE && !mlirTypeIsAF64(to) && find_source(op, &source) &&
                  convert_words(e, &source, to, twg_operand(e, source.field.reader, source.field.operand), out);
  if (!by_words && !convert_pairs(e, op, to, in, out))
    return twg_each_register(e, op, convert);
  twg_set_result(e, op, 0, out);
  return true;
}

TWG_RULE(TW_ARITH_SITOFP, rule_int_to_float)
TWG_RULE(TW_ARITH_UITOFP, rule_int_to_float)
