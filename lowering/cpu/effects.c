/* effects.c - position in the grid, tile.print and tile.assert
 *
 * Printing and failing are calls of the process (runtime/kernel_calls.c): a tile is printed from its buffer. */
#include "dialect/format.h"
#include "lowering/cpu/cpu.h"
#include "tilewright/base.h"

#include "mlir-c/Dialect/LLVM.h"

#include <stdio.h>
#include <string.h>

static void place_block_id(cpu_t *cx, MlirOperation op) {
  cpu_set_scalar(cx, mlirOperationGetResult(op, 0), cx->block_id[tw_attr_int(op, "axis", 0)]);
}

int cpu_block_axis(MlirValue index) {
  MlirOperation op = tw_def(index);
  while (!mlirOperationIsNull(op) && (tw_op_is(op, TW_ARITH_EXTSI) || tw_op_is(op, TW_ARITH_INDEX_CAST)))
    op = tw_def(mlirOperationGetOperand(op, 0));
  return !mlirOperationIsNull(op) && tw_op_is(op, TW_TILE_BLOCK_ID) ? (int)tw_attr_int(op, "axis", 0) : -1;
}

static void place_num_blocks(cpu_t *cx, MlirOperation op) {
  cpu_set_scalar(cx, mlirOperationGetResult(op, 0), cx->num_blocks[tw_attr_int(op, "axis", 0)]);
}

/* The address of a constant of bytes. */
static MlirValue bytes(cpu_t *cx, const char *data, size_t size) {
  char name[32];
  snprintf(name, sizeof name, "tw_bytes_%d", cx->num_strings++);
  MlirType type = mlirLLVMArrayTypeGet(cpu_int(cx, 8), (unsigned)size);
  return cpu_global(cx, name, type, mlirStringAttrGet(cx->context, mlirStringRefCreate(data, size)));
}

/* --- print ----------------------------------------------------------------------------------------------------- */

/* Letter of a buffer's element: b(ool), i(nteger), u(nsigned) or f(loat). */
static char letter_of(MlirType element) { return tw_is_bool(element) ? 'b' : mlirTypeIsAFloat(element) ? 'f' : 'i'; }

static void print_text(cpu_t *cx, const char *text, size_t size) {
  MlirValue operands[2] = {bytes(cx, text, size), cpu_i64_const(cx, (int64_t)size)};
  if (size)
    cpu_call(cx, "tw_kernel_print_text", 2, operands);
}

/* A tile's buffer, or a new one for a scalar. */
static MlirValue printed_memory(cpu_t *cx, MlirValue value, MlirType element) {
  MlirType stored = cpu_buffer_type(cx, element);
  if (tw_is_tile(mlirValueGetType(value)))
    return cpu_buffer(cx, value);
  int64_t one = 1;
  MlirValue pointer = cpu_new_buffer(cx, mlirRankedTensorTypeGet(1, &one, element, (MlirAttribute){NULL}));
  MlirValue scalar = cpu_scalar(cx, value);
  if (tw_is_bool(element))
    scalar = cpu_cast(cx, "arith.extui", scalar, stored);
  cpu_store(cx, scalar, pointer, (int)tw_bytes(stored));
  return pointer;
}

static void print_value(cpu_t *cx, MlirValue value, bool is_unsigned, MlirStringRef spec) {
  MlirType type = mlirValueGetType(value), element = tw_element(type);
  int64_t shape[TW_MAX_RANK] = {0};
  int rank = (int)tw_rank(type);
  for (int d = 0; d < rank; d++)
    shape[d] = tw_extent(type, d);
  char text[TW_SPEC_BYTES] = {0}; /* which a spec leaves room in for its end */
  memcpy(text, spec.data, spec.length);
  MlirValue operands[6] = {printed_memory(cx, value, element),
                           cpu_i32_const(cx, is_unsigned ? 'u' : letter_of(element)),
                           cpu_i32_const(cx, tw_bytes(cpu_buffer_type(cx, element))),
                           cpu_i32_const(cx, rank),
                           bytes(cx, (const char *)shape, sizeof shape),
                           bytes(cx, text, sizeof text)};
  cpu_call(cx, "tw_kernel_print_tile", 6, operands);
}

static void place_print(cpu_t *cx, MlirOperation op) {
  MlirStringRef rest = tw_attr_string(op, "format"), part;
  MlirAttribute flags = tw_attr(op, "is_unsigned");
  intptr_t num = 0;
  for (tw_format_kind_t kind; (kind = tw_format_next(&rest, &part)) != TW_FORMAT_END && kind != TW_FORMAT_BAD;) {
    if (kind == TW_FORMAT_TEXT) {
      print_text(cx, part.data, part.length);
    } else if (num < mlirOperationGetNumOperands(op)) {
      bool is_unsigned = !mlirAttributeIsNull(flags) && mlirDenseBoolArrayGetElement(flags, num);
      print_value(cx, mlirOperationGetOperand(op, num++), is_unsigned, part);
    }
  }
  cpu_call(cx, "tw_kernel_print_end", 0, NULL);
}

/* --- assert ---------------------------------------------------------------------------------------------------- */

static void fail_unless(cpu_t *cx, MlirOperation op, MlirValue condition) {
  MlirStringRef message = tw_attr_string(op, "message");
  tw_strbuf_t text = {0};
  tw_strbuf_printf(&text, "assertion failed%s%.*s", message.length ? ": " : "", (int)message.length, message.data);
  cpu_branch_t branch = cpu_branch(cx, cpu_bin_i(cx, "arith.xori", condition, 1));
  MlirValue operands[2] = {bytes(cx, tw_strbuf_cstr(&text), text.size), cpu_i64_const(cx, (int64_t)text.size)};
  cpu_call(cx, "tw_kernel_assert_failed", 2, operands);
  cpu_branch_end(cx, &branch, (MlirValue){NULL});
  tw_strbuf_free(&text);
}

static void place_assert(cpu_t *cx, MlirOperation op) {
  MlirValue condition = mlirOperationGetOperand(op, 0);
  MlirType type = mlirValueGetType(condition);
  if (!tw_is_tile(type)) {
    fail_unless(cx, op, cpu_scalar(cx, condition));
    return;
  }
  cpu_plan(cx, type, 1, &condition, tw_null_op());
  cpu_nest_t nest;
  cpu_nest_set(cx, &nest, type, cpu_lane_axis(type));
  cpu_nest_begin(cx, &nest);
  MlirValue strip = cpu_eval(cx, condition, &nest.point);
  if (!cx->failed)
    fail_unless(cx, op, cpu_all_lanes(cx, strip));
  cpu_nest_end(cx, &nest);
  cpu_planned(cx);
}

CPU_RULE(TW_TILE_BLOCK_ID, CPU_EFFECT, 0, NULL, NULL, place_block_id)
CPU_RULE(TW_TILE_NUM_BLOCKS, CPU_EFFECT, 0, NULL, NULL, place_num_blocks)
CPU_RULE(TW_TILE_PRINT, CPU_EFFECT, 0, NULL, NULL, place_print)
CPU_RULE(TW_TILE_ASSERT, CPU_EFFECT, 0, NULL, NULL, place_assert)
