/* emit_mma_sync.c - a product of tiles as mma.sync instructions
 *
 * The order of registers is that of tw_layout_mma_acc and tw_layout_dot_operand: the bits within one
 * instruction, then (operands) the steps along k, then the instructions along m or n, then batches.
 * The rule recognises these layouts in the types; it does not choose. */
#include "dialect/layouts.h"
#include "lowering/gpu/emit/emitter.h"
#include "lowering/gpu/emit/words.h"
#include "lowering/gpu/isa/sm80/mma_sync.h"
#include "lowering/gpu/machine/target.h"

#include "mlir-c/Dialect/LLVM.h"

#include <stdio.h>

typedef struct {
  MlirOperation op;
  tw_mma_sync_row_t row;
  MlirType in, acc; /* element types */
  const char *in_name[2], *acc_name;
  tw_values_t value[3];
  int k_steps, m_tiles, n_tiles, batches; /* counts */
  int inner[2];                           /* elements of an operand in one instruction */
} mma_sync_t;

/* ---- instructions -------------------------------------------------------------------------------- */

static const char *input_name(MlirType in, bool is_unsigned) {
  if (mlirTypeIsAInteger(in))
    return is_unsigned ? "u8" : "s8";
  if (mlirTypeIsAFloat8E4M3FN(in))
    return "e4m3";
  if (mlirTypeIsAFloat8E5M2(in))
    return "e5m2";
  return mlirTypeIsAF16(in) ? "f16" : mlirTypeIsABF16(in) ? "bf16" : mlirTypeIsATF32(in) ? "tf32" : "f64";
}

static const char *acc_name(MlirType acc) {
  return mlirTypeIsAInteger(acc) ? "s32" : mlirTypeIsAF16(acc) ? "f16" : mlirTypeIsAF64(acc) ? "f64" : "f32";
}

/* Registers of an instruction: how many, of which class, of which type. */
typedef struct {
  int count;
  char letter;
  MlirType type;
} group_t;

static size_t put_group(char *out, size_t size, int first, int count) {
  size_t n = 0;
  for (int i = 0; i < count; i++)
    n += (size_t)snprintf(out + n, size - n, "%s$%d", i ? ", " : "{", first + i);
  return n + (size_t)snprintf(out + n, size - n, "}");
}

static size_t put_letters(char *out, size_t size, const char *prefix, group_t g, bool first) {
  size_t n = 0;
  for (int i = 0; i < g.count; i++)
    n += (size_t)snprintf(out + n, size - n, "%s%s%c", first && i == 0 ? "" : ",", prefix, g.letter);
  return n;
}

/* d = a * b + c, all as words; c and d have the form `acc`. */
static void emit_instruction(tw_emitter_t *e, const mma_sync_t *p, const char *shape, group_t a, group_t b, group_t acc,
                             const MlirValue *operands, MlirValue *d) {
  char text[320], letters[160];
  size_t n = (size_t)snprintf(text, sizeof text, "mma.sync.aligned.%s.row.col.%s.%s.%s.%s ", shape, p->acc_name,
                              p->in_name[0], p->in_name[1], p->acc_name);
  int at = acc.count;
  n += put_group(text + n, sizeof text - n, 0, acc.count);
  const int counts[] = {a.count, b.count, acc.count};
  for (int i = 0; i < 3; i++, at += counts[i - 1]) {
    n += (size_t)snprintf(text + n, sizeof text - n, ", ");
    n += put_group(text + n, sizeof text - n, at, counts[i]);
  }
  snprintf(text + n, sizeof text - n, ";");
  n = put_letters(letters, sizeof letters, "=", acc, true);
  n += put_letters(letters + n, sizeof letters - n, "", a, false);
  n += put_letters(letters + n, sizeof letters - n, "", b, false);
  put_letters(letters + n, sizeof letters - n, "", acc, false);
  MlirType types[] = {acc.type, acc.type, acc.type, acc.type};
  MlirType result = mlirLLVMStructTypeLiteralGet(e->context, acc.count, types, false);
  MlirValue all = twg_asm(e, text, letters, result, a.count + b.count + acc.count, operands, TW_PTX_NOTHING);
  for (int i = 0; i < acc.count; i++)
    d[i] = twg_extract(e, all, i, acc.type);
}

/* m16n8k8 of f64 on chips that have m8n8k4 only: two halves along m, two along k. */
static void emit_f64_halves(tw_emitter_t *e, const mma_sync_t *p, const MlirValue *a, const MlirValue *b,
                            MlirValue *c) {
  for (int k = 0; k < 2; k++)
    for (int m = 0; m < 2; m++) {
      MlirValue operands[] = {a[m + 2 * k], b[k], c[2 * m], c[2 * m + 1]}, d[2];
      group_t one = {1, 'd', e->f64}, two = {2, 'd', e->f64};
      emit_instruction(e, p, "m8n8k4", one, one, two, operands, d);
      c[2 * m] = d[0];
      c[2 * m + 1] = d[1];
    }
}

static void emit_f64(tw_emitter_t *e, const mma_sync_t *p, const MlirValue *a, const MlirValue *b, MlirValue *c) {
  tw_gpu_target_t target = tw_gpu_target_of(p->op);
  if (!tw_gpu_has(&target, TW_GPU_MMA_F64_WIDE)) {
    emit_f64_halves(e, p, a, b, c);
    return;
  }
  MlirValue operands[] = {a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], c[2], c[3]}, d[4];
  group_t four = {4, 'd', e->f64}, two = {2, 'd', e->f64};
  emit_instruction(e, p, "m16n8k8", four, two, four, operands, d);
  for (int i = 0; i < 4; i++)
    c[i] = d[i];
}

/* One instruction on four words of a, two of b, and four accumulators c, which it replaces. */
static void emit_words(tw_emitter_t *e, const mma_sync_t *p, const MlirValue *a, const MlirValue *b, MlirValue *c) {
  char shape[16];
  MlirValue operands[10] = {a[0], a[1], a[2], a[3], b[0], b[1]}, d[4];
  group_t four = {4, 'r', e->i32}, two = {2, 'r', e->i32};
  snprintf(shape, sizeof shape, "m16n8k%d", p->row.k);
  if (mlirTypeIsAF16(p->acc)) { /* two accumulators a word */
    twg_to_words(e, e->f16, 16, 4, c, operands + 6);
    emit_instruction(e, p, shape, four, two, two, operands, d);
    twg_from_words(e, e->f16, 16, 4, d, c);
    return;
  }
  for (int i = 0; i < 4; i++)
    operands[6 + i] = c[i];
  group_t acc = mlirTypeIsAInteger(p->acc) ? four : (group_t){4, 'f', e->f32};
  emit_instruction(e, p, shape, four, two, acc, operands, d);
  for (int i = 0; i < 4; i++)
    c[i] = d[i];
}

/* Words of one instruction's part of an operand. */
static void part_words(tw_emitter_t *e, const mma_sync_t *p, int operand, int part, MlirValue *words) {
  int inner = p->inner[operand];
  const MlirValue *elements = p->value[operand].at + (ptrdiff_t)part * inner;
  if (p->row.kind == TW_SYNC_F64)
    for (int i = 0; i < inner; i++)
      words[i] = elements[i];
  else
    twg_to_words(e, p->in, p->row.elem_bits, inner, elements, words);
}

/* The words of all parts of an operand, `per` for each. */
static tw_values_t all_words(tw_emitter_t *e, const mma_sync_t *p, int operand, int per) {
  int parts = p->value[operand].count / p->inner[operand];
  tw_values_t words = twg_new_values(e, parts * per);
  for (int i = 0; i < parts; i++)
    part_words(e, p, operand, i, words.at + (ptrdiff_t)i * per);
  return words;
}

static tw_values_t emit_tiles(tw_emitter_t *e, const mma_sync_t *p) {
  enum { A_WORDS = 4, B_WORDS = 2, ACC = 4 };
  tw_values_t a = all_words(e, p, 0, A_WORDS), b = all_words(e, p, 1, B_WORDS);
  tw_values_t out = twg_new_values(e, p->value[2].count);
  for (int i = 0; i < out.count; i++)
    out.at[i] = p->value[2].at[i];
  for (int batch = 0; batch < p->batches; batch++)
    for (int k = 0; k < p->k_steps; k++)
      for (int m = 0; m < p->m_tiles; m++)
        for (int n = 0; n < p->n_tiles; n++) {
          int at_a = (batch * p->m_tiles + m) * p->k_steps + k, at_b = (batch * p->n_tiles + n) * p->k_steps + k;
          int at_c = (batch * p->m_tiles + m) * p->n_tiles + n;
          MlirValue *c = out.at + (ptrdiff_t)at_c * ACC;
          if (p->row.kind == TW_SYNC_F64)
            emit_f64(e, p, a.at + (ptrdiff_t)at_a * A_WORDS, b.at + (ptrdiff_t)at_b * B_WORDS, c);
          else
            emit_words(e, p, a.at + (ptrdiff_t)at_a * A_WORDS, b.at + (ptrdiff_t)at_b * B_WORDS, c);
        }
  return out;
}

/* Whether the three layouts are those of the instruction, for some split of the warps. */
static bool matches(const tw_layout_t l[3], const tw_mma_sync_row_t *row, int num_warps) {
  int64_t shape[3][TW_LAYOUT_MAX_RANK];
  int bits = row->elem_bits == 64 ? 32 : row->elem_bits, rank = l[2].rank;
  for (int i = 0; i < 3; i++)
    for (int d = 0; d < rank; d++)
      shape[i][d] = tw_layout_extent(&l[i], d);
  for (int warps_m = 1; warps_m <= num_warps; warps_m *= 2) {
    tw_layout_t acc = tw_layout_mma_acc(rank, shape[2], warps_m, num_warps / warps_m);
    tw_layout_t lhs = tw_layout_dot_operand(rank, shape[0], 0, bits, warps_m, num_warps / warps_m);
    tw_layout_t rhs = tw_layout_dot_operand(rank, shape[1], 1, bits, warps_m, num_warps / warps_m);
    if (tw_layout_equal(&acc, &l[2]) && tw_layout_equal(&lhs, &l[0]) && tw_layout_equal(&rhs, &l[1]))
      return true;
  }
  return false;
}

/* Counts from the numbers of registers: see the head of this file. */
static mma_sync_t describe(tw_emitter_t *e, MlirOperation op, const tw_layout_t l[3], tw_mma_sync_row_t row) {
  mma_sync_t p = {.op = op, .row = row};
  p.in = tw_element(mlirValueGetType(mlirOperationGetOperand(op, 0)));
  p.acc = tw_element(mlirValueGetType(mlirOperationGetOperand(op, 2)));
  MlirType rhs = tw_element(mlirValueGetType(mlirOperationGetOperand(op, 1)));
  p.in_name[0] = input_name(p.in, tw_has_attr(op, "unsigned_lhs"));
  p.in_name[1] = input_name(rhs, tw_has_attr(op, "unsigned_rhs"));
  p.acc_name = acc_name(p.acc);
  for (int i = 0; i < 3; i++)
    p.value[i] = twg_operand(e, op, i);
  int rank = l[2].rank;
  for (int d = 0, bits = 0; d <= rank - 2; d++) {
    bits += d < rank - 2 ? l[2].log_shape[d] : 0;
    p.batches = 1 << bits;
  }
  p.inner[0] = 16 * row.k / 32;
  p.inner[1] = 8 * row.k / 32;
  p.k_steps = (int)tw_layout_extent(&l[0], rank - 1) / row.k;
  p.m_tiles = p.value[0].count / (p.inner[0] * p.k_steps * p.batches);
  p.n_tiles = p.value[1].count / (p.inner[1] * p.k_steps * p.batches);
  return p;
}

bool twg_emit_mma_sync(tw_emitter_t *e, MlirOperation op) {
  const tw_mma_sync_row_t *row = tw_mma_sync_row(op);
  tw_layout_t l[3];
  if (!tw_layouts_of_operands(op, 3, l) || !matches(l, row, e->num_warps)) {
    tw_op_error(op, "has layouts that no matrix instruction takes");
    return false;
  }
  mma_sync_t p = describe(e, op, l, *row);
  twg_set_result(e, op, 0, emit_tiles(e, &p));
  return true;
}
