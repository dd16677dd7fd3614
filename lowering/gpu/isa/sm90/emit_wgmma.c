/* emit_wgmma.c - rules: products of warpgroups on shared memory
 *
 * One block of inline PTX for each 64 rows: a wgmma for every 32 bytes of k, with the accumulators as
 * tied operands, so that they stay where they are. Descriptors of shared memory: address, distance of
 * columns that are a line wide (leading), distance of groups of eight lines (stride), swizzle of a line's width.
 *
 * Where sums are promoted, each block of rows and TW_WGMMA_PROMOTED_COLUMNS of a part of k is such a block of
 * PTX that starts from zero; it is waited for and added up. While one warpgroup adds, others keep the
 * Tensor Core busy. */
#include "lowering/gpu/emit/one_lane.h"
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/emit/shared_access.h"
#include "lowering/gpu/emit/words.h"
#include "lowering/gpu/isa/sm90/wgmma.h"

#include "mlir-c/Dialect/LLVM.h"
#include "tilewright/dialect.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
  LINES = 8, /* of a group */
  MAX_TEXT = 64 * 1024,
  MAX_REGISTERS = 512,
  MAX_CONSTRAINTS = 16 * MAX_REGISTERS
};

typedef struct {
  char *start, *at, *end;
} text_t;

static text_t new_text(size_t size) {
  char *memory = malloc(size);
  if (memory == NULL)
    abort();
  return (text_t){memory, memory, memory + size};
}

__attribute__((format(printf, 2, 3))) static void put(text_t *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int n = vsnprintf(text->at, (size_t)(text->end - text->at), format, arguments);
  va_end(arguments);
  text->at = n < text->end - text->at ? text->at + n : text->end - 1;
}

typedef struct {
  MlirOperation op;
  tw_wgmma_split_t split;
  tw_wgmma_operand_t lhs, rhs;
  bool lhs_shared, from_zero; /* lhs is a buffer; the accumulator is the constant 0 */
  tw_wgmma_kind_t kind;
  MlirValue lhs_descriptor, rhs_descriptor; /* of this warpgroup's part */
  MlirValue acc_value, adds;                /* the accumulator; i1: it is 0 unless this holds (null: it never is) */
  MlirType in, acc, word;                   /* elements; a register of the accumulator */
  int64_t m, columns;                       /* of one warpgroup */
  int k_steps, part;                        /* along k: all, and those that are summed before they are promoted */
} product_t;

/* One block of PTX. */
typedef struct {
  int64_t row, column; /* where it starts */
  int64_t columns;
  int k_from, k_to; /* steps */
  bool from_zero, commit;
} piece_t;

/* ---- descriptors --------------------------------------------------------------------------------- */

/* Bytes from the start of the slot to a step of k, and to `at` of the other axis. */
static int64_t step_bytes(const product_t *p, const tw_wgmma_operand_t *o, int step) {
  const int steps_in_line = (int)o->line / TW_WGMMA_K_BYTES;
  if (!o->k_major)
    return (int64_t)step * p->kind.k * o->line;
  return (int64_t)(step % steps_in_line) * TW_WGMMA_K_BYTES + step / steps_in_line * o->other * o->line;
}

static int64_t other_bytes(const product_t *p, const tw_wgmma_operand_t *o, int64_t at) {
  return o->k_major ? at * o->line : at * p->kind.elem_bits / 8 * o->k;
}

static int64_t descriptor_constant(const tw_wgmma_operand_t *o) {
  int64_t leading = o->k_major ? 1 : o->k * o->line / 16, stride = LINES * o->line / 16;
  int64_t swizzle = o->line == 128 ? 1 : o->line == 64 ? 2 : 3;
  return swizzle << 62 | stride << 32 | leading << 16;
}

/* The descriptor of the slot at operand `at`, moved by `offset` bytes (null: none). */
static MlirValue descriptor(tw_emitter_t *e, const product_t *p, intptr_t at, const tw_wgmma_operand_t *o,
                            MlirValue offset) {
  enum { ADDRESS_MASK = 0x3FFF };
  MlirValue address = twg_cast(e, "llvm.ptrtoint", e->i32, twg_slot_pointer(e, p->op, at));
  if (offset.ptr)
    address = twg_binary(e, "llvm.add", address, offset);
  address = twg_binary(e, "llvm.lshr", address, twg_const_i32(e, 4));
  address = twg_binary(e, "llvm.and", address, twg_const_i32(e, ADDRESS_MASK));
  return twg_binary(e, "llvm.or", twg_cast(e, "llvm.zext", e->i64, address),
                    twg_const_int(e, e->i64, descriptor_constant(o)));
}

/* Index of the warpgroup, the same in all lanes as far as the assembler can tell; found once. */
static MlirValue warpgroup(tw_emitter_t *e) {
  enum { LOG_WARPS = 2 };
  if (e->warpgroup.ptr == NULL) {
    MlirBlock here = e->block;
    e->block = e->entry;
    e->warpgroup = twg_binary(e, "llvm.lshr", twg_uniform_warp(e), twg_const_i32(e, LOG_WARPS));
    e->block = here;
  }
  return e->warpgroup;
}

/* Bytes to the part of an operand that this warpgroup works on; null where all share one. */
static MlirValue group_offset(tw_emitter_t *e, const product_t *p, bool rhs) {
  const tw_wgmma_operand_t *o = rhs ? &p->rhs : &p->lhs;
  int parts = rhs ? p->split.n : p->split.m, shift = 0;
  if (parts == 1)
    return (MlirValue){NULL};
  MlirValue index = warpgroup(e);
  while (rhs && 1 << shift < p->split.m)
    shift++;
  if (rhs)
    index = twg_binary(e, "llvm.lshr", index, twg_const_i32(e, shift));
  if (!rhs || p->split.same > 1)
    index = twg_binary(e, "llvm.and", index, twg_const_i32(e, parts - 1));
  return twg_binary(e, "llvm.mul", index, twg_const_i32(e, other_bytes(p, o, o->other / parts)));
}

/* ---- one block of rows --------------------------------------------------------------------------- */

static void put_list(text_t *text, int first, int count) {
  for (int i = 0; i < count; i++)
    put(text, "%s$%d", i ? "," : "{", first + i);
  put(text, "}");
}

/* Whether operands may be contiguous along either axis, which the instruction then tells for each. */
static bool names_major(const product_t *p) { return p->kind.elem_bits == 16; }

/* Columns of 64 rows are half as many elements in each thread. */
static int elements_of(int64_t columns) { return (int)columns / 2; }

static int words_of(MlirType acc, int elements) { return mlirTypeIsAF16(acc) ? elements / 2 : elements; }

static void put_instructions(text_t *text, const product_t *p, const piece_t *piece) {
  int words = words_of(p->acc, elements_of(piece->columns));
  int lhs = 2 * words, rhs = lhs + (p->lhs_shared ? 1 : 4 * (piece->k_to - piece->k_from));
  put(text, "{ .reg .pred p, q; .reg .b64 a, b; setp.eq.u32 p, 1, 1; setp.ne.u32 q, 1, 1;\n");
  if ((piece->row == 0 && piece->k_from == 0) || piece->from_zero)
    put(text, "wgmma.fence.sync.aligned;\n");
  for (int k = piece->k_from; k < piece->k_to; k++) {
    int64_t b = step_bytes(p, &p->rhs, k) + other_bytes(p, &p->rhs, piece->column);
    put(text, "add.s64 b, $%d, %lld;\n", rhs, (long long)b / 16);
    if (p->lhs_shared) {
      int64_t a = step_bytes(p, &p->lhs, k) + other_bytes(p, &p->lhs, piece->row);
      put(text, "add.s64 a, $%d, %lld;\n", lhs, (long long)a / 16);
    }
    put(text, "wgmma.mma_async.sync.aligned.m64n%lldk%d.%s.%s.%s ", (long long)piece->columns, p->kind.k, p->kind.acc,
        p->kind.in[0], p->kind.in[1]);
    put_list(text, 0, words);
    put(text, ", ");
    if (p->lhs_shared)
      put(text, "a");
    else
      put_list(text, lhs + 4 * (k - piece->k_from), 4);
    if (k == 0 && p->adds.ptr)
      put(text, ", b, $%d", rhs + 1);
    else
      put(text, ", b, %c", piece->from_zero && k == piece->k_from ? 'q' : 'p');
    if (!mlirTypeIsAInteger(p->in))
      put(text, ", 1, 1"); /* neither input is negated */
    if (p->lhs_shared && names_major(p))
      put(text, ", %d", !p->lhs.k_major);
    if (names_major(p))
      put(text, ", %d", !p->rhs.k_major);
    put(text, ";\n");
  }
  put(text, piece->commit ? "wgmma.commit_group.sync.aligned; }" : "}");
}

/* Accumulators as results and tied operands. A block of PTX writes them before it has read all of its operands (&): a
 * word of lhs that is the same number as a sum begins with, zero, is in another register. */
static void put_tied(text_t *text, MlirType word, int count) {
  for (int i = 0; i < count; i++)
    put(text, "%s=&%c", i ? "," : "", mlirTypeIsAF32(word) ? 'f' : 'r');
  for (int i = 0; i < count; i++)
    put(text, ",%d", i);
}

static MlirType struct_of(tw_emitter_t *e, MlirType element, int count) {
  MlirType types[MAX_REGISTERS];
  for (int i = 0; i < count; i++)
    types[i] = element;
  return mlirLLVMStructTypeLiteralGet(e->context, count, types, false);
}

/* A register of the instruction's accumulator: two neighbours where they are 16 bits wide. */
static MlirType word_type(tw_emitter_t *e, MlirType acc) { return mlirTypeIsAF32(acc) ? e->f32 : e->i32; }

static void to_words(tw_emitter_t *e, MlirType acc, int words, const MlirValue *in, MlirValue *out) {
  for (int i = 0; i < words; i++)
    if (mlirTypeIsAF16(acc))
      twg_to_words(e, acc, 16, 2, in + (ptrdiff_t)2 * i, out + i);
    else
      out[i] = in[i];
}

static void from_words(tw_emitter_t *e, MlirType acc, int words, MlirValue all, MlirValue *out) {
  for (int i = 0; i < words; i++) {
    MlirValue word = twg_extract(e, all, i, word_type(e, acc));
    if (mlirTypeIsAF16(acc))
      twg_from_words(e, acc, 16, 2, &word, out + (ptrdiff_t)2 * i);
    else
      out[i] = word;
  }
}

/* lhs in registers: four words for each step of k. */
static int lhs_words(tw_emitter_t *e, const product_t *p, const piece_t *piece, MlirValue *words) {
  enum { WORDS = 4 };
  tw_values_t lhs = twg_operand(e, p->op, 0);
  int elements = WORDS * 32 / p->kind.elem_bits, n = 0;
  int64_t block = piece->row / TW_WGMMA_ROWS;
  for (int k = piece->k_from; k < piece->k_to; k++, n += WORDS)
    twg_to_words(e, p->in, p->kind.elem_bits, elements, lhs.at + (block * p->k_steps + k) * elements, words + n);
  return n;
}

/* Adds a piece of the product to the elements at `acc`. */
static void emit_piece(tw_emitter_t *e, const product_t *p, const piece_t *piece, const MlirValue *acc,
                       MlirValue *out) {
  text_t text = new_text(MAX_TEXT), constraints = new_text(MAX_CONSTRAINTS);
  MlirValue operands[2 * MAX_REGISTERS];
  int words = words_of(p->acc, elements_of(piece->columns)), n = words;
  to_words(e, p->acc, words, acc, operands);
  put_tied(&constraints, p->word, words);
  if (p->lhs_shared)
    operands[n++] = p->lhs_descriptor;
  else
    n += lhs_words(e, p, piece, operands + n);
  for (int i = words; i < n; i++)
    put(&constraints, p->lhs_shared ? ",l" : ",r");
  operands[n++] = p->rhs_descriptor;
  put(&constraints, ",l");
  if (p->adds.ptr) {
    operands[n++] = p->adds;
    put(&constraints, ",b");
  }
  put_instructions(&text, p, piece);
  MlirValue all = twg_asm(e, text.start, constraints.start, struct_of(e, p->word, words), n, operands, true);
  free(text.start);
  free(constraints.start);
  from_words(e, p->acc, words, all, out);
}

/* ---- rules --------------------------------------------------------------------------------------- */

/* An accumulator that is `condition ? acc : 0`: the first instruction makes the choice. */
static void find_choice(tw_emitter_t *e, product_t *p) {
  MlirOperation choice = tw_def(p->acc_value);
  if (p->part > 0 || mlirOperationIsNull(choice) || !tw_op_is(choice, TW_ARITH_SELECT) ||
      !tw_is_zero(mlirOperationGetOperand(choice, 2)) ||
      tw_is_tile(mlirValueGetType(mlirOperationGetOperand(choice, 0))))
    return;
  p->adds = twg_operand(e, choice, 0).at[0];
  p->acc_value = mlirOperationGetOperand(choice, 1);
}

static bool describe(tw_emitter_t *e, MlirOperation op, product_t *p) {
  intptr_t last = mlirOperationGetNumOperands(op) - 1;
  MlirValue acc = mlirOperationGetOperand(op, last);
  MlirType lhs = mlirValueGetType(mlirOperationGetOperand(op, 0)),
           rhs = mlirValueGetType(mlirOperationGetOperand(op, last - 2));
  int64_t m = tw_extent(mlirValueGetType(acc), 0), n = tw_extent(mlirValueGetType(acc), 1);
  *p = (product_t){.op = op, .lhs_shared = tw_type_is_buffer(lhs), .from_zero = tw_is_zero(acc), .acc_value = acc};
  p->in = p->lhs_shared ? tw_buffer_type_element(lhs) : tw_element(lhs);
  p->acc = tw_element(mlirValueGetType(acc));
  const MlirType in[] = {p->in, tw_buffer_type_element(rhs)};
  const bool is_unsigned[] = {tw_has_attr(op, "unsigned_lhs"), tw_has_attr(op, "unsigned_rhs")};
  int64_t k = tw_slot_elements(rhs) / n;
  if (!tw_wgmma_kind_of(in, is_unsigned, p->acc, &p->kind) || !tw_wgmma_split(m, n, e->num_warps, &p->split) ||
      !tw_wgmma_operand_of(rhs, true, tw_has_attr(op, "transposed_rhs"), k, n, &p->rhs) ||
      (p->lhs_shared && !tw_wgmma_operand_of(lhs, false, tw_has_attr(op, "transposed_lhs"), k, m, &p->lhs))) {
    tw_op_error(op, "has operands whose layouts no wgmma takes");
    return false;
  }
  p->m = m / p->split.m;
  p->columns = n / p->split.n;
  p->k_steps = (int)(k / p->kind.k);
  p->part = (int)(tw_attr_int(op, "promoted", 0) / p->kind.k);
  p->word = word_type(e, p->acc);
  find_choice(e, p);
  p->rhs_descriptor = descriptor(e, p, last - 2, &p->rhs, group_offset(e, p, true));
  if (p->lhs_shared)
    p->lhs_descriptor = descriptor(e, p, 0, &p->lhs, group_offset(e, p, false));
  return true;
}

#define WAIT "wgmma.wait_group.sync.aligned %d;"

/* Waits for all products but the last `pending`; the values go in and come out, so that what reads them stays behind,
 * and what makes them in front. */
static void emit_wait(tw_emitter_t *e, int pending, MlirType acc, int count, const MlirValue *in, MlirValue *out) {
  char text[64];
  MlirValue operands[MAX_REGISTERS];
  int words = words_of(acc, count);
  text_t constraints = new_text(MAX_CONSTRAINTS);
  put_tied(&constraints, word_type(e, acc), words);
  to_words(e, acc, words, in, operands);
  snprintf(text, sizeof text, WAIT, pending);
  MlirValue all = twg_asm(e, text, constraints.start, struct_of(e, word_type(e, acc), words), words, operands, true);
  free(constraints.start);
  from_words(e, acc, words, all, out);
}

/* Several blocks of rows take each step of k in turn: the Tensor Core need not wait for the sum that it adds to. */
static void emit_whole(tw_emitter_t *e, const product_t *p, const MlirValue *acc, MlirValue *out) {
  int step = p->m > TW_WGMMA_ROWS ? 1 : p->k_steps;
  for (int k = 0; k < p->k_steps; k += step)
    for (int64_t row = 0; row < p->m; row += TW_WGMMA_ROWS) {
      ptrdiff_t at = row / TW_WGMMA_ROWS * elements_of(p->columns);
      piece_t piece = {.row = row, .columns = p->columns, .k_from = k, .k_to = k + step};
      piece.from_zero = p->from_zero && k == 0;
      piece.commit = k + step == p->k_steps && row + TW_WGMMA_ROWS == p->m;
      emit_piece(e, p, &piece, (k ? out : acc) + at, out + at);
    }
}

/* One piece from zero, waited for and added to out. What is in its registers before does not matter. The first sums
 * take the place of zeros. */
static void emit_promoted_piece(tw_emitter_t *e, const product_t *p, const piece_t *piece, MlirValue *out) {
  bool adds = !(p->from_zero && piece->k_from == 0);
  MlirValue sum[MAX_REGISTERS], anything = twg_op(e, "llvm.mlir.poison", e->f32, 0, NULL, 0, NULL);
  int count = elements_of(piece->columns);
  for (int i = 0; i < count; i++)
    sum[i] = anything;
  emit_piece(e, p, piece, sum, sum);
  emit_wait(e, 0, p->acc, count, sum, sum);
  for (int i = 0; i < count; i++)
    out[i] = adds ? twg_binary(e, "llvm.fadd", out[i], sum[i]) : sum[i];
}

static void emit_promoted(tw_emitter_t *e, const product_t *p, const MlirValue *acc, tw_values_t out) {
  piece_t piece = {.columns = p->columns < TW_WGMMA_PROMOTED_COLUMNS ? p->columns : TW_WGMMA_PROMOTED_COLUMNS,
                   .from_zero = true,
                   .commit = true};
  for (int i = 0; i < out.count; i++)
    out.at[i] = acc[i];
  for (; piece.k_from < p->k_steps; piece.k_from = piece.k_to) {
    piece.k_to = piece.k_from + p->part < p->k_steps ? piece.k_from + p->part : p->k_steps;
    for (piece.row = 0; piece.row < p->m; piece.row += TW_WGMMA_ROWS)
      for (piece.column = 0; piece.column < p->columns; piece.column += piece.columns)
        emit_promoted_piece(e, p, &piece,
                            out.at + piece.row / TW_WGMMA_ROWS * elements_of(p->columns) + elements_of(piece.column));
  }
}

bool twg_rule_wgmma(tw_emitter_t *e, MlirOperation op) {
  product_t p;
  if (!describe(e, op, &p))
    return false;
  tw_values_t acc = twg_lookup(e, p.acc_value), out = twg_new_values(e, acc.count);
  if (p.part > 0)
    emit_promoted(e, &p, acc.at, out);
  else
    emit_whole(e, &p, acc.at, out.at);
  twg_set_result(e, op, 0, out);
  return true;
}

bool twg_rule_wgmma_wait(tw_emitter_t *e, MlirOperation op) {
  int64_t pending = tw_attr_int(op, "pending", 0);
  int total = 0, at = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    total += twg_operand(e, op, i).count;
  tw_values_t in = twg_new_values(e, total), out = twg_new_values(e, total);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    for (int r = 0; r < twg_operand(e, op, i).count; r++)
      in.at[at++] = twg_operand(e, op, i).at[r];
  if (pending > 0 && !tw_has_attr(op, "complete")) { /* the values may be under way: no one touches them yet */
    char text[64];
    snprintf(text, sizeof text, WAIT, (int)pending);
    twg_asm(e, text, "", (MlirType){NULL}, 0, NULL, true);
    out = in;
  } else {
    emit_wait(e, (int)pending, tw_element(mlirValueGetType(mlirOperationGetOperand(op, 0))), total, in.at, out.at);
  }
  for (intptr_t i = 0, first = 0; i < mlirOperationGetNumResults(op); i++) {
    int count = twg_operand(e, op, i).count;
    twg_set_result(e, op, i, (tw_values_t){out.at + first, count});
    first += count;
  }
  return true;
}
