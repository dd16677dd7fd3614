/* emit_wgmma.c - products of warpgroups on shared memory, and waits for them
 *
 * One block of inline PTX: a fence, then for each 64 rows a wgmma for every 32 bytes of k, with the
 * accumulators as tied operands, so that they stay where they are. Descriptors of shared memory: address,
 * distance of columns that are a line wide (leading), distance of groups of eight lines (stride), swizzle of a
 * line's width.
 *
 * Where sums are promoted, each block of rows and TW_WGMMA_PROMOTED_COLUMNS of a part of k is such a block of
 * PTX that starts from zero; it is waited for and added up. While one warpgroup adds, others keep the
 * Tensor Core busy.
 *
 * What ptxas makes of products that is wrong, and what is emitted because of it (docs/design/tensor-cores.md):
 *
 *   - Registers that only products read, the same in each iteration of a loop, it gives to others there. So a
 *     store that never runs reads them behind the loop:  @%never st.shared.v4.b32 [0], {%q0, %q1, %q2, %q3};
 *   - mov.b32 {%lo, %hi}, %sum of a sum of two f16 it moves in front of the wait, and a fence between the first
 *     products of two sums then has it read them too early. So what is taken apart is the sum after an
 *     instruction, xor.b32 %word, %sum, %zero; and a product has one fence.
 *   - mov.b32 of words of an operand to the registers of a product, behind a wait that leaves others under way, it
 * leaves out, and computes the words in front of the wait, where these still read them. So that is such an xor, too. */
#include "base/memory.h"
#include "lowering/gpu/emit/one_lane.h"
#include "lowering/gpu/emit/shared_access.h"
#include "lowering/gpu/emit/words.h"
#include "lowering/gpu/isa/sm90/wgmma.h"

#include "mlir-c/Dialect/LLVM.h"
#include "tilewright/dialect.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  LINES = 8,    /* of a group */
  LHS_WORDS = 4 /* registers of lhs of one instruction */
};

typedef struct {
  char *start;
  size_t length, room;
} asm_text_t;

enum { MAX_PUT = 256 }; /* bytes at a time */

static void make_room(asm_text_t *text) {
  if (text->room - text->length >= MAX_PUT)
    return;
  text->room = 2 * text->room + MAX_PUT;
  text->start = tw_must(realloc(text->start, text->room));
}

__attribute__((format(printf, 2, 3))) static void put(asm_text_t *text, const char *format, ...) {
  va_list arguments;
  make_room(text);
  va_start(arguments, format);
  text->length += (size_t)vsnprintf(text->start + text->length, MAX_PUT, format, arguments);
  va_end(arguments);
}

/* Text and a number: what lists of operands are made of, hundreds at a time, for which printf is slow. */
static void put_number(asm_text_t *text, const char *before, int number) {
  char digits[16];
  size_t from = sizeof digits, length = strlen(before);
  do
    digits[--from] = (char)('0' + number % 10);
  while (number /= 10);
  make_room(text);
  memcpy(text->start + text->length, before, length);
  memcpy(text->start + text->length + length, digits + from, sizeof digits - from);
  text->length += length + sizeof digits - from;
  text->start[text->length] = 0;
}

typedef struct {
  MlirOperation op;
  tw_mma_split_t split;
  tw_wgmma_operand_t lhs, rhs;
  bool lhs_shared, from_zero; /* lhs is a buffer; the accumulator is the constant 0 */
  tw_wgmma_kind_t kind;
  MlirValue lhs_descriptor, rhs_descriptor; /* of this warpgroup's part */
  MlirValue acc_value, adds;                /* the accumulator; i1: it is 0 unless this holds (null: it never is) */
  MlirType in, acc;                         /* elements */
  int64_t m, columns;                       /* of one warpgroup */
  int k_steps, part;                        /* along k: all, and those that are summed before they are promoted */
  tw_values_t lhs_words;                    /* of lhs in registers: by block of rows, then step of k */
} wgmma_product_t;

/* One block of PTX. */
typedef struct {
  int64_t row, column; /* where it starts */
  int64_t rows, columns;
  int k_from, k_to; /* steps */
  bool from_zero;
} k_piece_t;

/* ---- descriptors --------------------------------------------------------------------------------- */

enum { LOG_UNIT = 4 }; /* addresses and distances are in pieces of 16 bytes */

/* Bytes from the start of the stage to a step of k, and to `at` of the other axis. */
static int64_t step_bytes(const wgmma_product_t *p, const tw_wgmma_operand_t *o, int step) {
  const int steps_in_line = (int)o->line / TW_WGMMA_K_BYTES;
  if (!o->k_major)
    return (int64_t)step * p->kind.k * o->line;
  return (int64_t)(step % steps_in_line) * TW_WGMMA_K_BYTES + step / steps_in_line * o->other * o->line;
}

static int64_t other_bytes(const wgmma_product_t *p, const tw_wgmma_operand_t *o, int64_t at) {
  return o->k_major ? at * o->line : at * p->kind.elem_bits / 8 * o->k;
}

static int64_t descriptor_constant(const tw_wgmma_operand_t *o) {
  int64_t leading = o->k_major ? 1 : o->k * o->line / 16, stride = LINES * o->line / 16;
  uint64_t swizzle = o->line == 128 ? 1 : o->line == 64 ? 2 : 3;
  return (int64_t)(swizzle << 62 | (uint64_t)stride << 32 | (uint64_t)leading << 16);
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
static MlirValue group_offset(tw_emitter_t *e, const wgmma_product_t *p, bool rhs) {
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

/* The lower word of the descriptor of what lies at a pointer. */
static MlirValue lower_word(tw_emitter_t *e, const wgmma_product_t *p, MlirValue pointer, bool rhs, uint32_t constant) {
  enum { ADDRESS_MASK = 0x3FFF };
  MlirValue offset = group_offset(e, p, rhs);
  MlirValue word = twg_cast(e, "llvm.ptrtoint", e->i32, pointer);
  if (offset.ptr)
    word = twg_binary(e, "llvm.add", word, offset);
  word = twg_binary(e, "llvm.lshr", word, twg_const_i32(e, LOG_UNIT));
  word = twg_binary(e, "llvm.and", word, twg_const_i32(e, ADDRESS_MASK));
  return twg_binary(e, "llvm.or", word, twg_const_i32(e, constant));
}

/* The same of the stage at operand `at`, where all but the stage is known before the loop. A sum of addresses in shared
 * memory has no more bits than these. */
static MlirValue word_of_stage(tw_emitter_t *e, const wgmma_product_t *p, intptr_t at, bool rhs, uint32_t constant) {
  MlirValue buffer = mlirOperationGetOperand(p->op, at);
  MlirBlock here = e->block;
  twg_loop_t *loop = twg_loop_without(e, buffer);
  if (loop)
    e->block = loop->before;
  MlirValue word = lower_word(e, p, twg_lookup(e, buffer).at[0], rhs, constant);
  e->block = here;
  int64_t units = tw_stage_bytes(mlirValueGetType(buffer)) >> LOG_UNIT;
  MlirValue distance = twg_binary(e, "llvm.mul", twg_operand(e, p->op, at + 1).at[0], twg_const_i32(e, units));
  return twg_binary(e, "llvm.add", word, distance);
}

static bool is_alone(MlirOperation product) {
  for (MlirOperation op = mlirBlockGetFirstOperation(mlirOperationGetBlock(product)); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    if (tw_op_is_async_product(op) && !mlirOperationEqual(op, product))
      return false;
  return true;
}

/* The descriptor of the stage at operand `at`. One multiply-add stands between the number of the stage and a product
 * that a warpgroup waits for. Not so where there are several products, one behind the other, as in attention: what is
 * known before the loop takes registers, of which they leave none. */
static MlirValue descriptor(tw_emitter_t *e, const wgmma_product_t *p, intptr_t at, bool rhs) {
  enum { WORD_BITS = 32 };
  uint64_t constant = (uint64_t)descriptor_constant(rhs ? &p->rhs : &p->lhs);
  MlirValue word = is_alone(p->op) ? word_of_stage(e, p, at, rhs, (uint32_t)constant)
                                   : lower_word(e, p, twg_stage_pointer(e, p->op, at), rhs, (uint32_t)constant);
  word = twg_cast(e, "llvm.zext", e->i64, word);
  return twg_binary(e, "llvm.or", word, twg_const_int(e, e->i64, (int64_t)(constant >> WORD_BITS << WORD_BITS)));
}

/* ---- one block of rows --------------------------------------------------------------------------- */

static void put_list(asm_text_t *text, int first, int count) {
  for (int i = 0; i < count; i++)
    put_number(text, i ? ",$" : "{$", first + i);
  put(text, "}");
}

/* Whether operands may be contiguous along either axis, which the instruction then tells for each. */
static bool names_major(const wgmma_product_t *p) { return p->kind.elem_bits == 16; }

/* Columns of 64 rows are half as many elements in each thread. */
static int elements_of(int64_t columns) { return (int)columns / 2; }

/* Whether a register holds two neighbours. */
static bool is_paired(MlirType element) { return mlirTypeIsAF16(element) || mlirTypeIsABF16(element); }

static int words_of(MlirType element, int count) { return is_paired(element) ? count / 2 : count; }

static int words_of_block(const wgmma_product_t *p, const k_piece_t *piece) {
  return words_of(p->acc, elements_of(piece->columns));
}

static int blocks_of(const k_piece_t *piece) { return (int)(piece->rows / TW_WGMMA_ROWS); }

/* Operands of a piece in the order of its block of PTX: sums, again as they are tied, lhs, rhs, the condition. */
static int lhs_at(const wgmma_product_t *p, const k_piece_t *piece) {
  return 2 * blocks_of(piece) * words_of_block(p, piece);
}

static int rhs_at(const wgmma_product_t *p, const k_piece_t *piece) {
  int lhs = p->lhs_shared ? 1 : LHS_WORDS * blocks_of(piece) * (piece->k_to - piece->k_from);
  return lhs_at(p, piece) + lhs;
}

/* Step k of one block of rows. */
static void put_instruction(asm_text_t *text, const wgmma_product_t *p, const k_piece_t *piece, int block, int k) {
  int words = words_of_block(p, piece), steps = piece->k_to - piece->k_from;
  int lhs = lhs_at(p, piece), rhs = rhs_at(p, piece);
  int64_t b = step_bytes(p, &p->rhs, k) + other_bytes(p, &p->rhs, piece->column);
  put(text, "{ .reg .b64 a, b;\n"); /* of their own, or ptxas 13.5 computes more of them in each step */
  put(text, "add.s64 b, $%d, %lld;\n", rhs, (long long)b / 16);
  if (p->lhs_shared) {
    int64_t a = step_bytes(p, &p->lhs, k) + other_bytes(p, &p->lhs, piece->row + (int64_t)block * TW_WGMMA_ROWS);
    put(text, "add.s64 a, $%d, %lld;\n", lhs, (long long)a / 16);
  }
  put(text, "wgmma.mma_async.sync.aligned.m64n%lldk%d.%s.%s.%s ", (long long)piece->columns, p->kind.k, p->kind.acc,
      p->kind.in[0], p->kind.in[1]);
  put_list(text, block * words, words);
  put(text, ", ");
  if (p->lhs_shared)
    put(text, "a");
  else
    put_list(text, lhs + LHS_WORDS * (block * steps + k - piece->k_from), LHS_WORDS);
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
  put(text, "; }\n");
}

/* Several blocks of rows take each step of k in turn: the Tensor Core need not wait for the sum that it adds to. */
static void put_instructions(asm_text_t *text, const wgmma_product_t *p, const k_piece_t *piece) {
  put(text, "{ .reg .pred p, q; setp.eq.u32 p, 1, 1; setp.ne.u32 q, 1, 1;\n");
  put(text, "wgmma.fence.sync.aligned;\n");
  for (int k = piece->k_from; k < piece->k_to; k++)
    for (int block = 0; block < blocks_of(piece); block++)
      put_instruction(text, p, piece, block, k);
  put(text, "wgmma.commit_group.sync.aligned; }");
}

/* Accumulators as results and tied operands. A block of PTX writes them before it has read all of its operands (&): a
 * word of lhs that is the same number as a sum begins with, zero, is in another register. */
static void put_tied(asm_text_t *text, const MlirType *words, int count) {
  for (int i = 0; i < count; i++)
    put(text, "%s=&%c", i ? "," : "", mlirTypeIsAF32(words[i]) ? 'f' : 'r');
  for (int i = 0; i < count; i++)
    put_number(text, ",", i);
}

/* A register of values: two neighbours where they are 16 bits wide. */
static MlirType word_type(tw_emitter_t *e, MlirType element) { return mlirTypeIsAF32(element) ? e->f32 : e->i32; }

/* `words` registers of `in`, and their types. */
static void to_words(tw_emitter_t *e, MlirType element, int words, const MlirValue *in, MlirValue *out,
                     MlirType *types) {
  for (int i = 0; i < words; i++) {
    types[i] = word_type(e, element);
    if (is_paired(element))
      twg_to_words(e, element, 16, 2, in + (ptrdiff_t)2 * i, out + i);
    else
      out[i] = in[i];
  }
}

/* From member `first` of a struct on. `settled`: a wait covers the words. What takes one of two numbers apart reads it
 * through an instruction, which stays behind the wait. */
static void from_words(tw_emitter_t *e, MlirType element, int words, MlirValue all, int first, bool settled,
                       MlirValue *out) {
  for (int i = 0; i < words; i++) {
    MlirValue word = twg_extract(e, all, first + i, word_type(e, element));
    if (!is_paired(element)) {
      out[i] = word;
      continue;
    }
    if (settled)
      word = twg_settle(e, word);
    twg_from_words(e, element, 16, 2, &word, out + (ptrdiff_t)2 * i);
  }
}

/* lhs in registers: four words for each step of k, for each block of rows. */
static tw_values_t lhs_words(tw_emitter_t *e, const wgmma_product_t *p) {
  int elements = LHS_WORDS * 32 / p->kind.elem_bits;
  int instructions = (int)(p->m / TW_WGMMA_ROWS) * p->k_steps;
  tw_values_t lhs = twg_operand(e, p->op, 0), words = twg_new_values(e, LHS_WORDS * instructions);
  for (int i = 0; i < instructions; i++)
    twg_to_words(e, p->in, p->kind.elem_bits, elements, lhs.at + (ptrdiff_t)i * elements,
                 words.at + (ptrdiff_t)LHS_WORDS * i);
  return words;
}

/* Those of one instruction. */
static MlirValue *lhs_of(const wgmma_product_t *p, const k_piece_t *piece, int block, int k) {
  return &p->lhs_words.at[((piece->row / TW_WGMMA_ROWS + block) * p->k_steps + k) * LHS_WORDS];
}

/* Those of a piece; returns how many. */
static int take_lhs(const wgmma_product_t *p, const k_piece_t *piece, MlirValue *out) {
  int n = 0;
  for (int block = 0; block < blocks_of(piece); block++)
    for (int k = piece->k_from; k < piece->k_to; k++)
      for (int i = 0; i < LHS_WORDS; i++)
        out[n++] = lhs_of(p, piece, block, k)[i];
  return n;
}

/* Adds a piece of the product to the elements at `acc`. */
static void emit_piece(tw_emitter_t *e, const wgmma_product_t *p, const k_piece_t *piece, const MlirValue *acc,
                       MlirValue *out) {
  tw_ptx_does_t does = tw_has_attr(p->op, TW_STEPPED) ? TW_PTX_STEP : TW_PTX_FENCE;
  enum { DESCRIPTORS_AND_CONDITION = 3 };
  asm_text_t text = {NULL, 0, 0}, constraints = {NULL, 0, 0};
  int words = blocks_of(piece) * words_of_block(p, piece), n = words;
  MlirValue *operands = twg_new_values(e, words + p->lhs_words.count + DESCRIPTORS_AND_CONDITION).at;
  MlirType *types = tw_allocate((size_t)words, sizeof *types);
  to_words(e, p->acc, words, acc, operands, types);
  put_tied(&constraints, types, words);
  if (p->lhs_shared)
    operands[n++] = p->lhs_descriptor;
  else
    n += take_lhs(p, piece, operands + n);
  for (int i = words; i < n; i++)
    put(&constraints, p->lhs_shared ? ",l" : ",r");
  operands[n++] = p->rhs_descriptor;
  put(&constraints, ",l");
  if (p->adds.ptr) {
    operands[n++] = p->adds;
    put(&constraints, ",b");
  }
  put_instructions(&text, p, piece);
  MlirType results = mlirLLVMStructTypeLiteralGet(e->context, words, types, false);
  MlirValue all = twg_asm(e, text.start, constraints.start, results, n, operands, does);
  free(text.start);
  free(constraints.start);
  free(types);
  from_words(e, p->acc, words, all, 0, false, out);
}

/* ---- operands that a loop does not change ----------------------------------------------------------- */

/* Has lhs in registers live until the end of the outermost loop that does not make it: ptxas does not see that
 * products of later iterations read it. Behind the loop it is read by stores that never run. */
static void keep_lhs(tw_emitter_t *e, wgmma_product_t *p) {
  MlirBlock here = e->block;
  MlirValue lhs = mlirOperationGetOperand(p->op, 0);
  twg_loop_t *loop = twg_loop_without(e, lhs);
  if (loop)
    e->block = loop->before;
  p->lhs_words = lhs_words(e, p);
  e->block = here;
  if (loop)
    twg_keep_behind(e, loop, lhs, p->lhs_words);
}

/* ---- rules --------------------------------------------------------------------------------------- */

/* An accumulator that is `condition ? acc : 0`: the first instruction makes the choice. */
static void find_choice(tw_emitter_t *e, wgmma_product_t *p) {
  MlirOperation choice = tw_def(p->acc_value);
  if (p->part > 0 || mlirOperationIsNull(choice) || !tw_op_is(choice, TW_ARITH_SELECT) ||
      !tw_is_zero(mlirOperationGetOperand(choice, 2)) ||
      tw_is_tile(mlirValueGetType(mlirOperationGetOperand(choice, 0))))
    return;
  p->adds = twg_operand(e, choice, 0).at[0];
  p->acc_value = mlirOperationGetOperand(choice, 1);
}

static bool describe(tw_emitter_t *e, MlirOperation op, wgmma_product_t *p) {
  intptr_t last = mlirOperationGetNumOperands(op) - 1;
  MlirValue acc = mlirOperationGetOperand(op, last);
  MlirType lhs = mlirValueGetType(mlirOperationGetOperand(op, 0)),
           rhs = mlirValueGetType(mlirOperationGetOperand(op, last - 2));
  int64_t m = tw_extent(mlirValueGetType(acc), 0), n = tw_extent(mlirValueGetType(acc), 1);
  *p =
      (wgmma_product_t){.op = op, .lhs_shared = tw_type_is_buffer(lhs), .from_zero = tw_is_zero(acc), .acc_value = acc};
  p->in = p->lhs_shared ? tw_buffer_type_element(lhs) : tw_element(lhs);
  p->acc = tw_element(mlirValueGetType(acc));
  const MlirType in[] = {p->in, tw_buffer_type_element(rhs)};
  const bool is_unsigned[] = {tw_has_attr(op, "unsigned_lhs"), tw_has_attr(op, "unsigned_rhs")};
  int64_t k = tw_stage_elements(rhs) / n;
  bool narrow = tw_has_attr(op, TW_MMA_NARROW_GROUPS);
  if (!tw_wgmma_kind_of(in, is_unsigned, p->acc, &p->kind) || !tw_wgmma_split(m, n, narrow, e->num_warps, &p->split) ||
      !tw_wgmma_operand_of(rhs, true, tw_has_attr(op, "transposed_rhs"), k, n, &p->rhs) ||
      (narrow && !p->rhs.k_major) ||
      (p->lhs_shared && !tw_wgmma_operand_of(lhs, false, tw_has_attr(op, "transposed_lhs"), k, m, &p->lhs))) {
    tw_op_error(op, "has operands whose layouts no wgmma takes");
    return false;
  }
  p->m = m / p->split.m;
  p->columns = n / p->split.n;
  p->k_steps = (int)(k / p->kind.k);
  p->part = (int)(tw_attr_int(op, "promoted", 0) / p->kind.k);
  find_choice(e, p);
  p->rhs_descriptor = descriptor(e, p, last - 2, true);
  if (p->lhs_shared)
    p->lhs_descriptor = descriptor(e, p, 0, false);
  else
    keep_lhs(e, p);
  return true;
}

#define WAIT "wgmma.wait_group.sync.aligned %d;"

/* The elements of one value that a wait orders, and where they go. */
typedef struct {
  MlirType element;
  int count;
  MlirValue *in, *out;
  bool is_sum; /* of a product: else each thread has computed it */
} ordered_t;

/* Words that a wait only reads. */
typedef struct {
  const MlirValue *at;
  int count;
} held_t;

/* Waits for all products but the last `pending`; the values go in and come out, so that what reads them stays behind,
 * and what makes them in front. What is held is in its registers until then. */
static void emit_wait(tw_emitter_t *e, int pending, int count, const ordered_t *values, held_t held) {
  char text[64];
  int tied = 0, at = 0;
  for (int i = 0; i < count; i++)
    tied += words_of(values[i].element, values[i].count);
  MlirValue *operands = twg_new_values(e, tied + held.count).at;
  MlirType *types = tw_allocate((size_t)tied, sizeof *types);
  asm_text_t constraints = {NULL, 0, 0};
  for (int i = 0; i < count; i++) {
    int words = words_of(values[i].element, values[i].count);
    to_words(e, values[i].element, words, values[i].in, operands + at, types + at);
    at += words;
  }
  put_tied(&constraints, types, tied);
  for (int i = 0; i < held.count; i++) {
    operands[tied + i] = held.at[i];
    put(&constraints, "%sr", tied + i ? "," : "");
  }
  snprintf(text, sizeof text, WAIT, pending);
  MlirType results = tied ? mlirLLVMStructTypeLiteralGet(e->context, tied, types, false) : (MlirType){NULL};
  MlirValue all =
      twg_asm(e, text, constraints.start ? constraints.start : "", results, tied + held.count, operands, TW_PTX_FENCE);
  for (int i = 0, first = 0; i < count; i++) {
    int words = words_of(values[i].element, values[i].count);
    from_words(e, values[i].element, words, all, first, values[i].is_sum, values[i].out);
    first += words;
  }
  free(constraints.start);
  free(types);
}

static void emit_whole(tw_emitter_t *e, const wgmma_product_t *p, const MlirValue *acc, MlirValue *out) {
  k_piece_t piece = {.rows = p->m, .columns = p->columns, .k_to = p->k_steps, .from_zero = p->from_zero};
  emit_piece(e, p, &piece, acc, out);
}

/* Steps of a stepped product that are under way at once: enough for the Tensor Core while the next part is made, and
 * the first ones of the next iteration need not wait long (docs/design/measurements.md). */
static int steps_under_way(int steps) {
  enum { MOST = 3 };
  return steps < MOST ? steps : MOST;
}

/* The words of a step's lhs go to registers that the same step of the product before has read: at most steps since that
 * one are under way then. What makes the words writes other registers, and need not wait. An instruction that the
 * assembler cannot leave out takes them over behind the wait: if it could, it would compute them in front of it, in
 * registers that a product under way reads. */
static void emit_step_wait(tw_emitter_t *e, const wgmma_product_t *p, const k_piece_t *step) {
  int count = LHS_WORDS * blocks_of(step);
  asm_text_t text = {NULL, 0, 0}, constraints = {NULL, 0, 0};
  MlirValue *words = twg_new_values(e, count + 1).at;
  MlirType *types = tw_allocate((size_t)count, sizeof *types);
  put(&text, WAIT, steps_under_way(p->k_steps) - 1);
  for (int i = 0; i < count; i++) {
    types[i] = e->i32;
    put(&text, "\nxor.b32 $%d, $%d, $%d;", i, count + i, 2 * count);
    put(&constraints, "%s=&r", i ? "," : "");
  }
  for (int i = 0; i <= count; i++)
    put(&constraints, ",r");
  take_lhs(p, step, words);
  words[count] = twg_opaque_zero(e);
  MlirType results = mlirLLVMStructTypeLiteralGet(e->context, count, types, false);
  MlirValue all = twg_asm(e, text.start, constraints.start, results, count + 1, words, TW_PTX_STEP);
  for (int i = 0; i < count; i++)
    lhs_of(p, step, i / LHS_WORDS, step->k_from)[i % LHS_WORDS] = twg_extract(e, all, i, e->i32);
  free(text.start);
  free(constraints.start);
  free(types);
}

static void emit_steps(tw_emitter_t *e, const wgmma_product_t *p, const MlirValue *acc, MlirValue *out) {
  k_piece_t step = {.rows = p->m, .columns = p->columns, .from_zero = p->from_zero};
  for (; step.k_from < p->k_steps; step.k_from++) {
    step.k_to = step.k_from + 1;
    emit_step_wait(e, p, &step);
    emit_piece(e, p, &step, acc, out);
    step.from_zero = false;
    acc = out;
  }
}

/* One piece from zero, waited for and added to out. What is in its registers before does not matter. The first sums
 * take the place of zeros. */
static void emit_promoted_piece(tw_emitter_t *e, const wgmma_product_t *p, const k_piece_t *piece, MlirValue *out) {
  bool adds = !(p->from_zero && piece->k_from == 0);
  MlirValue anything = twg_op(e, "llvm.mlir.poison", e->f32, 0, NULL, 0, NULL);
  int count = elements_of(piece->columns);
  MlirValue *sum = twg_new_values(e, count).at;
  for (int i = 0; i < count; i++)
    sum[i] = anything;
  emit_piece(e, p, piece, sum, sum);
  emit_wait(e, 0, 1, &(ordered_t){p->acc, count, sum, sum, true}, (held_t){NULL, 0});
  for (int i = 0; i < count; i++)
    out[i] = adds ? twg_binary(e, "llvm.fadd", out[i], sum[i]) : sum[i];
}

static void emit_promoted(tw_emitter_t *e, const wgmma_product_t *p, const MlirValue *acc, tw_values_t out) {
  k_piece_t piece = {.columns = p->columns < TW_WGMMA_PROMOTED_COLUMNS ? p->columns : TW_WGMMA_PROMOTED_COLUMNS,
                     .rows = TW_WGMMA_ROWS,
                     .from_zero = true};
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

bool twg_emit_wgmma(tw_emitter_t *e, MlirOperation op) {
  wgmma_product_t p;
  if (!describe(e, op, &p))
    return false;
  tw_values_t acc = twg_lookup(e, p.acc_value), out = twg_new_values(e, acc.count);
  if (p.part > 0)
    emit_promoted(e, &p, acc.at, out);
  else if (tw_has_attr(op, TW_STEPPED))
    emit_steps(e, &p, acc.at, out.at);
  else
    emit_whole(e, &p, acc.at, out.at);
  twg_set_result(e, op, 0, out);
  return true;
}

/* Whether the wait only holds the value, which a product under way reads from registers. */
static bool is_held(MlirOperation wait, intptr_t i) {
  return i > 0 && mlirOpOperandIsNull(mlirValueGetFirstUse(mlirOperationGetResult(wait, i)));
}

/* The words of all values that the wait only holds. */
static held_t held_by(tw_emitter_t *e, MlirOperation wait) {
  int count = 0;
  for (intptr_t i = 1; i < mlirOperationGetNumOperands(wait); i++)
    count += is_held(wait, i) ? twg_operand(e, wait, i).count : 0;
  MlirValue *words = twg_new_values(e, count).at;
  held_t held = {words, 0};
  for (intptr_t i = 1; i < mlirOperationGetNumOperands(wait); i++) {
    tw_values_t value = twg_operand(e, wait, i);
    MlirType element = tw_element(mlirValueGetType(mlirOperationGetOperand(wait, i)));
    int bits = tw_memory_bits(element), at_once = LHS_WORDS * 32 / bits;
    for (int r = 0; is_held(wait, i) && r < value.count; r += at_once)
      held.count += twg_to_words(e, element, bits, at_once, value.at + r, words + held.count);
  }
  return held;
}

/* The groups of instructions of a product that may be under way. */
static int groups_of(MlirOperation product) {
  if (mlirOperationIsNull(product) || !tw_has_attr(product, TW_STEPPED))
    return 1;
  MlirType lhs = mlirValueGetType(mlirOperationGetOperand(product, 0));
  return steps_under_way((int)(tw_extent(lhs, 1) * tw_memory_bits(tw_element(lhs)) / 8 / TW_WGMMA_K_BYTES));
}

/* Whether the value is the sum of a product, by the name of any wait; true where that is not seen. */
static bool is_sum(MlirValue value) {
  MlirOperation op = tw_def(value);
  while (!mlirOperationIsNull(op) && tw_op_waits_for_products(op)) {
    value = mlirOperationGetOperand(op, mlirOpResultGetResultNumber(value));
    op = tw_def(value);
  }
  return mlirOperationIsNull(op) || tw_op_is_async_product(op);
}

bool twg_emit_wgmma_wait(tw_emitter_t *e, MlirOperation op) {
  int pending = (int)tw_attr_int(op, "pending", 0) * groups_of(tw_def(mlirOperationGetOperand(op, 0))), count = 0;
  bool done = pending == 0 || tw_has_attr(op, "complete"); /* else the values may be under way: no one touches them */
  intptr_t num_values = mlirOperationGetNumOperands(op);
  ordered_t *values = tw_allocate((size_t)num_values, sizeof *values);
  for (intptr_t i = 0; i < num_values; i++) {
    tw_values_t in = twg_operand(e, op, i);
    MlirType element = tw_element(mlirValueGetType(mlirOperationGetOperand(op, i)));
    if (!is_held(op, i))
      values[count++] = (ordered_t){element, in.count, in.at, done ? twg_new_values(e, in.count).at : in.at,
                                    is_sum(mlirOperationGetOperand(op, i))};
  }
  emit_wait(e, pending, done ? count : 0, values, held_by(e, op));
  for (intptr_t i = 0, next = 0; i < num_values; i++)
    if (!is_held(op, i)) {
      twg_set_result(e, op, i, (tw_values_t){values[next].out, values[next].count});
      next++;
    }
  free(values);
  return true;
}
