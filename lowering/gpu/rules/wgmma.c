/* wgmma.c - rules: products of warpgroups on shared memory
 *
 * One block of inline PTX for each 64 rows: a wgmma for every 16 of k, with the accumulators as tied
 * operands, so that they stay where they are. Descriptors of shared memory: address, distance of
 * 64-element columns (leading), distance of groups of eight lines (stride), 128-byte swizzle. */
#include "lowering/gpu/sm90/wgmma.h"
#include "lowering/gpu/rules.h"

#include "mlir-c/Dialect/LLVM.h"
#include "tilewright/dialect.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
  LINE_BYTES = 128,
  GROUP_BYTES = 1024,
  LINE_ELEMENTS = 64,
  STEP_BYTES = 32,
  MAX_TEXT = 64 * 1024,
  MAX_REGISTERS = 512,
  MAX_CONSTRAINTS = 8 * MAX_REGISTERS
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
  MlirValue acc, adds;        /* the accumulator; i1: it is 0 unless this holds (null: it never is) */
  MlirType in;
  int64_t columns;                /* of one warpgroup */
  int k_steps, blocks, registers; /* blocks of 64 rows of one warpgroup; accumulators in a block */
} product_t;

/* ---- descriptors --------------------------------------------------------------------------------- */

/* Bytes from the start of the slot to 16 * step of k, and to `at` of the other axis. */
static int64_t step_bytes(const tw_wgmma_operand_t *o, int step) {
  const int steps_in_line = LINE_ELEMENTS / TW_WGMMA_K;
  if (!o->k_major)
    return (int64_t)step * TW_WGMMA_K * LINE_BYTES;
  return (int64_t)(step % steps_in_line) * STEP_BYTES + step / steps_in_line * o->other * LINE_BYTES;
}

static int64_t other_bytes(const tw_wgmma_operand_t *o, int64_t at) {
  return o->k_major ? at * LINE_BYTES : at / LINE_ELEMENTS * o->k * LINE_BYTES;
}

static int64_t descriptor_constant(const tw_wgmma_operand_t *o) {
  int64_t leading = o->k_major ? 1 : o->k * LINE_BYTES / 16, stride = GROUP_BYTES / 16;
  return INT64_C(1) << 62 | stride << 32 | leading << 16;
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

/* Index of the warpgroup, the same in all lanes as far as the assembler can tell. */
static MlirValue warpgroup(tw_emitter_t *e) {
  MlirValue operands[] = {twg_const_i32(e, -1), twg_binary(e, "llvm.lshr", e->thread, twg_const_i32(e, 7)),
                          twg_const_i32(e, 0), twg_const_i32(e, 31)};
  return twg_intrinsic(e, "llvm.nvvm.shfl.sync.idx.i32", e->i32, 4, operands);
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
  index = rhs ? twg_binary(e, "llvm.lshr", index, twg_const_i32(e, shift))
              : twg_binary(e, "llvm.and", index, twg_const_i32(e, parts - 1));
  return twg_binary(e, "llvm.mul", index, twg_const_i32(e, other_bytes(o, o->other / parts)));
}

/* ---- one block of rows --------------------------------------------------------------------------- */

static void put_list(text_t *text, int first, int count) {
  for (int i = 0; i < count; i++)
    put(text, "%s$%d", i ? "," : "{", first + i);
  put(text, "}");
}

static void put_instructions(text_t *text, const product_t *p, int block) {
  const char *in = mlirTypeIsAF16(p->in) ? "f16" : "bf16";
  int lhs = 2 * p->registers, rhs = lhs + (p->lhs_shared ? 1 : 4 * p->k_steps);
  put(text, "{ .reg .pred p, q; .reg .b64 a, b; setp.eq.u32 p, 1, 1; setp.ne.u32 q, 1, 1;\n");
  if (block == 0)
    put(text, "wgmma.fence.sync.aligned;\n");
  for (int k = 0; k < p->k_steps; k++) {
    put(text, "add.s64 b, $%d, %lld;\n", rhs, (long long)step_bytes(&p->rhs, k) / 16);
    if (p->lhs_shared) {
      int64_t bytes = step_bytes(&p->lhs, k) + other_bytes(&p->lhs, (int64_t)block * TW_WGMMA_ROWS);
      put(text, "add.s64 a, $%d, %lld;\n", lhs, (long long)bytes / 16);
    }
    put(text, "wgmma.mma_async.sync.aligned.m64n%lldk16.f32.%s.%s ", (long long)p->columns, in, in);
    put_list(text, 0, p->registers);
    put(text, ", ");
    if (p->lhs_shared)
      put(text, "a");
    else
      put_list(text, lhs + 4 * k, 4);
    if (k == 0 && p->adds.ptr)
      put(text, ", b, $%d, 1, 1", rhs + 1);
    else
      put(text, ", b, %c, 1, 1", p->from_zero && k == 0 ? 'q' : 'p');
    if (p->lhs_shared)
      put(text, ", %d", !p->lhs.k_major);
    put(text, ", %d;\n", !p->rhs.k_major);
  }
  put(text, block == p->blocks - 1 ? "wgmma.commit_group.sync.aligned; }" : "}");
}

static void put_constraints(text_t *text, const product_t *p) {
  for (int i = 0; i < p->registers; i++)
    put(text, "%s=f", i ? "," : "");
  for (int i = 0; i < p->registers; i++)
    put(text, ",%d", i);
  for (int i = 0; !p->lhs_shared && i < 4 * p->k_steps; i++)
    put(text, ",r");
  put(text, "%s%s", p->lhs_shared ? ",l,l" : ",l", p->adds.ptr ? ",b" : "");
}

static MlirType struct_of_f32(tw_emitter_t *e, int count) {
  MlirType types[MAX_REGISTERS];
  for (int i = 0; i < count; i++)
    types[i] = e->f32;
  return mlirLLVMStructTypeLiteralGet(e->context, count, types, false);
}

/* lhs in registers: four words for each step of k. */
static int lhs_words(tw_emitter_t *e, const product_t *p, int block, MlirValue *words) {
  enum { ELEMENTS = 8, WORDS = 4 };
  tw_values_t lhs = twg_operand(e, p->op, 0);
  for (int k = 0; k < p->k_steps; k++)
    twg_to_words(e, p->in, 16, ELEMENTS, lhs.at + ((ptrdiff_t)block * p->k_steps + k) * ELEMENTS, words + k * WORDS);
  return WORDS * p->k_steps;
}

static void emit_block(tw_emitter_t *e, const product_t *p, int block, MlirValue lhs, MlirValue rhs,
                       const MlirValue *acc, MlirValue *out) {
  text_t text = new_text(MAX_TEXT), constraints = new_text(MAX_CONSTRAINTS);
  MlirValue operands[2 * MAX_REGISTERS];
  int n = 0;
  for (; n < p->registers; n++)
    operands[n] = acc[n];
  if (p->lhs_shared)
    operands[n++] = lhs;
  else
    n += lhs_words(e, p, block, operands + n);
  operands[n++] = rhs;
  if (p->adds.ptr)
    operands[n++] = p->adds;
  put_instructions(&text, p, block);
  put_constraints(&constraints, p);
  MlirValue all = twg_asm(e, text.start, constraints.start, struct_of_f32(e, p->registers), n, operands, true);
  free(text.start);
  free(constraints.start);
  for (int i = 0; i < p->registers; i++)
    out[i] = twg_extract(e, all, i, e->f32);
}

/* ---- rules --------------------------------------------------------------------------------------- */

static bool is_zero(MlirValue value) {
  MlirOperation op = tw_def(value);
  if (mlirOperationIsNull(op) || !tw_op_is(op, "arith.constant"))
    return false;
  MlirAttribute constant = tw_attr(op, "value");
  return mlirAttributeIsADenseElements(constant) && mlirDenseElementsAttrIsSplat(constant) &&
         mlirDenseElementsAttrGetFloatSplatValue(constant) == 0;
}

/* An accumulator that is `condition ? acc : 0`: the first instruction makes the choice. */
static void find_choice(tw_emitter_t *e, product_t *p) {
  MlirOperation choice = tw_def(p->acc);
  if (mlirOperationIsNull(choice) || !tw_op_is(choice, "arith.select") ||
      !is_zero(mlirOperationGetOperand(choice, 2)) || tw_is_tile(mlirValueGetType(mlirOperationGetOperand(choice, 0))))
    return;
  p->adds = twg_operand(e, choice, 0).at[0];
  p->acc = mlirOperationGetOperand(choice, 1);
}

static bool describe(tw_emitter_t *e, MlirOperation op, product_t *p) {
  intptr_t last = mlirOperationGetNumOperands(op) - 1;
  MlirValue acc = mlirOperationGetOperand(op, last);
  MlirType lhs = mlirValueGetType(mlirOperationGetOperand(op, 0)),
           rhs = mlirValueGetType(mlirOperationGetOperand(op, last - 2));
  int64_t m = tw_extent(mlirValueGetType(acc), 0), n = tw_extent(mlirValueGetType(acc), 1);
  *p = (product_t){.op = op, .lhs_shared = tw_type_is_buffer(lhs), .from_zero = is_zero(acc), .acc = acc};
  p->in = tw_buffer_type_element(rhs);
  find_choice(e, p);
  int64_t count = 1;
  for (intptr_t d = 1; d < tw_buffer_type_rank(rhs); d++)
    count *= tw_buffer_type_extent(rhs, d);
  int64_t k = count / n;
  if (!tw_wgmma_split(m, n, e->num_warps, &p->split) ||
      !tw_wgmma_operand_of(rhs, true, tw_has_attr(op, "transposed_rhs"), k, n, &p->rhs) ||
      (p->lhs_shared && !tw_wgmma_operand_of(lhs, false, tw_has_attr(op, "transposed_lhs"), k, m, &p->lhs))) {
    tw_op_error(op, "has operands whose layouts no wgmma takes");
    return false;
  }
  p->columns = n / p->split.n;
  p->k_steps = (int)(k / TW_WGMMA_K);
  p->blocks = (int)(m / p->split.m / TW_WGMMA_ROWS);
  p->registers = (int)(p->columns / 2);
  return true;
}

bool twg_rule_wgmma(tw_emitter_t *e, MlirOperation op) {
  product_t p;
  if (!describe(e, op, &p))
    return false;
  intptr_t last = mlirOperationGetNumOperands(op) - 1;
  tw_values_t acc = twg_lookup(e, p.acc), out = twg_new_values(e, acc.count);
  MlirValue lhs = {NULL}, rhs = descriptor(e, &p, last - 2, &p.rhs, group_offset(e, &p, true));
  if (p.lhs_shared)
    lhs = descriptor(e, &p, 0, &p.lhs, group_offset(e, &p, false));
  for (int block = 0; block < p.blocks; block++)
    emit_block(e, &p, block, lhs, rhs, acc.at + (ptrdiff_t)block * p.registers,
               out.at + (ptrdiff_t)block * p.registers);
  twg_set_result(e, op, 0, out);
  return true;
}

bool twg_rule_wgmma_wait(tw_emitter_t *e, MlirOperation op) {
  tw_values_t in = twg_operand(e, op, 0), out = twg_new_values(e, in.count);
  int64_t pending = tw_attr_int(op, "pending", 0);
  char text[64];
  snprintf(text, sizeof text, "wgmma.wait_group.sync.aligned %lld;", (long long)pending);
  if (pending > 0) { /* the value itself may be under way: no one touches it yet */
    twg_asm(e, text, "", (MlirType){NULL}, 0, NULL, true);
    twg_set_result(e, op, 0, in);
    return true;
  }
  text_t constraints = new_text(MAX_CONSTRAINTS);
  for (int i = 0; i < in.count; i++)
    put(&constraints, "%s=f", i ? "," : "");
  for (int i = 0; i < in.count; i++)
    put(&constraints, ",%d", i);
  MlirValue all = twg_asm(e, text, constraints.start, struct_of_f32(e, in.count), in.count, in.at, true);
  free(constraints.start);
  for (int i = 0; i < in.count; i++)
    out.at[i] = twg_extract(e, all, i, e->f32);
  twg_set_result(e, op, 0, out);
  return true;
}
