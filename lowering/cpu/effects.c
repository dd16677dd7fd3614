/* effects.c - position in the grid, tile.print and tile.assert
 *
 * Printing and failing are calls of the process (runtime/kernel_calls.c): a tile is printed from its buffer. */
#include "dialect/format.h"
#include "lowering/cpu/cpu.h"

#include "mlir-c/Dialect/LLVM.h"

#include <stdio.h>
#include <string.h>

static void place_block_id(cpu_t *cx, MlirOperation op) {
  cpu_set_scalar(cx, mlirOperationGetResult(op, 0), cx->block_id[tw_attr_int(op, "axis", 0)]);
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

static MlirValue i32_const(cpu_t *cx, int64_t value) { return cpu_int_const(cx, cpu_int(cx, 32), value); }

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
                           i32_const(cx, is_unsigned ? 'u' : letter_of(element)),
                           i32_const(cx, tw_bytes(cpu_buffer_type(cx, element))),
                           i32_const(cx, rank),
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
  char text[256];
  int length = snprintf(text, sizeof text, "assertion failed%s%.*s", message.length ? ": " : "", (int)message.length,
                        message.data);
  size_t size = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
  MlirValue failed = cpu_bin_i(cx, "arith.xori", condition, 1);
  MlirBlock outer = cx->block, then = mlirBlockCreate(0, NULL, NULL);
  cx->block = then;
  MlirValue operands[2] = {bytes(cx, text, size), cpu_i64_const(cx, (int64_t)size)};
  cpu_call(cx, "tw_kernel_assert_failed", 2, operands);
  cpu_op0(cx, "scf.yield", 0, NULL);
  cx->block = outer;
  cpu_if(cx, failed, then, (MlirBlock){NULL}, 0, NULL);
}

static MlirValue all_of(cpu_t *cx, MlirValue strip) {
  for (int half = cpu_lanes_of(strip) / 2; half >= 1; half /= 2) {
    int64_t low[64], high[64];
    for (int i = 0; i < half; i++) {
      low[i] = i;
      high[i] = half + i;
    }
    MlirValue x = half == 1 ? cpu_extract(cx, strip, 0) : cpu_shuffle(cx, strip, strip, half, low);
    MlirValue y = half == 1 ? cpu_extract(cx, strip, 1) : cpu_shuffle(cx, strip, strip, half, high);
    strip = cpu_bin(cx, "arith.andi", x, y);
  }
  return strip;
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
    fail_unless(cx, op, all_of(cx, strip));
  cpu_nest_end(cx, &nest);
  cpu_planned(cx);
}

CPU_RULE(TW_TILE_BLOCK_ID, CPU_EFFECT, 0, NULL, NULL, place_block_id)
CPU_RULE(TW_TILE_NUM_BLOCKS, CPU_EFFECT, 0, NULL, NULL, place_num_blocks)
CPU_RULE(TW_TILE_PRINT, CPU_EFFECT, 0, NULL, NULL, place_print)
CPU_RULE(TW_TILE_ASSERT, CPU_EFFECT, 0, NULL, NULL, place_assert)
