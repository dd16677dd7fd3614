/* effects.c - rules: tile.print and tile.assert
 *
 * Thread 0 prints, through the driver's vprintf. A tile is put in shared memory first, and printed
 * from there as nested brackets: with the text around it, so that what other blocks print does not come between; a tile
 * of several lines in a loop. A failed assertion prints its message and traps, which the launch reports. */
#include "base/memory.h"
#include "dialect/format.h"
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/emit/shared_access.h"
#include "lowering/gpu/facts/scratch.h"
#include "lowering/gpu/isa/convert_float.h"
#include "tilewright/kernel_calls.h"

#include "mlir-c/Dialect/LLVM.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARGUMENT_BYTES = 8, MOST_ARGUMENTS = 32 /* of a call, which the driver takes */ };

/* ---- calls of vprintf ---------------------------------------------------------------------------- */

static MlirBlock module_body(tw_emitter_t *e) { return mlirModuleGetBody(mlirModuleFromOperation(e->module)); }

static MlirType generic_pointer(tw_emitter_t *e) { return mlirLLVMPointerTypeGet(e->context, 0); }

/* A generic pointer to a terminated string. */
static MlirValue text_pointer(tw_emitter_t *e, const char *text, size_t size) {
  char name[32], *bytes = tw_must(malloc(size + 1));
  memcpy(bytes, text, size);
  bytes[size] = 0;
  snprintf(name, sizeof name, "tile_text_%d", e->num_strings++);
  MlirAttribute value = mlirStringAttrGet(e->context, mlirStringRefCreate(bytes, size + 1));
  free(bytes);
  MlirType type = mlirLLVMArrayTypeGet(e->i8, (unsigned)size + 1);
  return twg_cast(e, "llvm.addrspacecast", generic_pointer(e),
                  twg_constant_global(e, name, type, value, TW_SPACE_GLOBAL, 0));
}

static void declare_vprintf(tw_emitter_t *e) {
  TW_EACH_OP(op, module_body(e))
    if (tw_op_is(op, TW_LLVM_FUNC) && mlirStringRefEqual(tw_attr_string(op, "sym_name"), tw_str("vprintf")))
      return;
  MlirType pointers[2] = {generic_pointer(e), generic_pointer(e)};
  MlirNamedAttribute attributes[] = {
      twg_named(e, "sym_name", mlirStringAttrGet(e->context, tw_str("vprintf"))),
      twg_named(e, "function_type", mlirTypeAttrGet(mlirLLVMFunctionTypeGet(e->i32, 2, pointers, false))),
      twg_named(e, "linkage", mlirLLVMLinkageAttrGet(e->context, MlirLLVMLinkageExternal)),
      twg_named(e, "CConv", mlirLLVMCConvAttrGet(e->context, MlirLLVMCConvC)),
  };
  twg_add_to_module(e, "llvm.func", 4, attributes);
}

/* What is printed by one call: its format, and arguments of eight bytes. */
typedef struct {
  tw_emitter_t *e;
  tw_strbuf_t format;
  MlirValue arguments[MOST_ARGUMENTS];
  int count;
} printer_t;

/* Prints what has come together. */
static void flush(printer_t *p) {
  tw_emitter_t *e = p->e;
  if (p->format.size == 0)
    return;
  declare_vprintf(e);
  MlirValue memory = p->count ? twg_local_memory(e, e->i64, p->count, ARGUMENT_BYTES)
                              : twg_op(e, "llvm.mlir.zero", generic_pointer(e), 0, NULL, 0, NULL);
  for (int i = 0; i < p->count; i++)
    twg_store_to(e, p->arguments[i], twg_offset_pointer(e, memory, twg_const_i32(e, i * ARGUMENT_BYTES)),
                 ARGUMENT_BYTES);
  int32_t segments[2] = {2, 0};
  MlirValue operands[2] = {text_pointer(e, tw_strbuf_cstr(&p->format), p->format.size), memory};
  MlirNamedAttribute attributes[] = {
      twg_named(e, "callee", mlirFlatSymbolRefAttrGet(e->context, tw_str("vprintf"))),
      twg_named(e, "op_bundle_sizes", mlirDenseI32ArrayGet(e->context, 0, NULL)),
      twg_named(e, "operandSegmentSizes", mlirDenseI32ArrayGet(e->context, 2, segments)),
  };
  twg_op(e, "llvm.call", e->i32, 2, operands, 3, attributes);
  tw_strbuf_free(&p->format);
  p->count = 0;
}

static void put_text(printer_t *p, const char *text, size_t size) {
  for (size_t i = 0; i < size; i++)
    tw_strbuf_append(&p->format, text[i] == '%' ? "%%" : text + i, text[i] == '%' ? 2 : 1);
}

static void put_value(printer_t *p, const char *conversion, MlirValue argument) {
  if (p->count == MOST_ARGUMENTS)
    flush(p);
  tw_strbuf_puts(&p->format, conversion);
  p->arguments[p->count++] = argument;
}

/* ---- values -------------------------------------------------------------------------------------- */

/* How an operand is shown: the spec of its place, and whether its 64 bits have no sign. */
typedef struct {
  MlirStringRef spec;
  bool is_unsigned;
} shown_t;

/* A number of 64 bits, by the conversion `plain`, or by what the spec says. The driver knows no F. */
static void put_number(printer_t *p, MlirValue x, const shown_t *shown, const char *plain) {
  char text[TW_SPEC_BYTES + 8];
  MlirStringRef spec = shown->spec;
  if (spec.length == 0) {
    put_value(p, plain, x);
    return;
  }
  char letter = spec.data[spec.length - 1];
  snprintf(text, sizeof text, "%%%.*s%s%c", (int)spec.length - 1, spec.data, tw_spec_is_of_float(spec) ? "" : "ll",
           letter == 'F' ? 'f' : letter);
  put_value(p, text, x);
}

static void put_element(printer_t *p, MlirValue x, MlirType element, const shown_t *shown) {
  tw_emitter_t *e = p->e;
  if (tw_is_bool(element)) {
    MlirValue name = twg_select(e, x, text_pointer(e, "True", 4), text_pointer(e, "False", 5));
    put_value(p, "%s", twg_cast(e, "llvm.ptrtoint", e->i64, name));
  } else if (mlirTypeIsAFloat(element)) {
    put_number(p, twg_convert_float(e, x, element, e->f64), shown, "%.9g");
  } else {
    if (tw_bits(element) < 64)
      x = twg_cast(e, "llvm.sext", e->i64, x);
    put_number(p, x, shown, shown->is_unsigned ? "%llu" : "%lld");
  }
}

/* Emits `text` under a condition. */
static void print_if(printer_t *p, MlirValue condition, const char *text) {
  MlirBlock after = twg_begin_if(p->e, condition);
  put_text(p, text, strlen(text));
  flush(p);
  twg_end_if(p->e, after);
}

/* Whether `index` is a multiple of `period`, or one less than one. */
static MlirValue at_edge(tw_emitter_t *e, MlirValue index, int64_t period, bool last) {
  MlirValue rest = twg_binary(e, "llvm.and", index, twg_const_i32(e, period - 1));
  return twg_icmp(e, TW_EQ, rest, twg_const_i32(e, last ? period - 1 : 0));
}

static MlirValue and_not(tw_emitter_t *e, MlirValue x, MlirValue y) {
  return twg_select(e, y, twg_const_int(e, e->i1, 0), x);
}

/* Before an element: a comma, brackets of all axes that begin there, and blanks for the others where a line begins. */
static void print_separators(printer_t *p, MlirType type, MlirValue index) {
  tw_emitter_t *e = p->e;
  int rank = (int)tw_rank(type);
  int64_t period = tw_count(type), line = tw_print_line(period, tw_extent(type, rank - 1));
  MlirValue starts = at_edge(e, index, line, false), first = at_edge(e, index, period, false);
  print_if(p, and_not(e, twg_const_int(e, e->i1, 1), starts), ", ");
  print_if(p, and_not(e, starts, first), ",\n");
  for (int d = 0; d < rank; period /= tw_extent(type, d++)) {
    MlirValue begins = at_edge(e, index, period, false);
    print_if(p, begins, "[");
    print_if(p, and_not(e, starts, begins), " ");
  }
}

/* Prints an element of a tile that lies in row-major order at `base`, or puts it beside what has come together. */
static void put_element_at(printer_t *p, MlirType type, MlirValue base, MlirValue index, const shown_t *shown) {
  tw_emitter_t *e = p->e;
  MlirType element = tw_element(type), stored = tw_is_bool(element) ? e->i8 : twg_register_type(e, element);
  int bytes = tw_memory_bytes(element);
  MlirValue offset = twg_binary(e, "llvm.mul", index, twg_const_i32(e, bytes));
  MlirValue x = twg_load_from(e, stored, twg_offset_pointer(e, base, offset), bytes);
  put_element(p, tw_is_bool(element) ? twg_cast(e, "llvm.trunc", e->i1, x) : x, element, shown);
}

/* A tile of one line: all is known but the elements. */
static void put_line(printer_t *p, MlirType type, MlirValue base, const shown_t *shown) {
  int rank = (int)tw_rank(type);
  for (int64_t i = 0; i < tw_count(type); i++) {
    if (i > 0)
      put_text(p, ", ", 2);
    int64_t period = 1;
    for (int d = rank - 1; d >= 0; d--)
      if (i % (period *= tw_extent(type, d)) == 0)
        put_text(p, "[", 1);
    put_element_at(p, type, base, twg_const_i32(p->e, (int32_t)i), shown);
    period = 1;
    for (int d = rank - 1; d >= 0; d--)
      if ((i + 1) % (period *= tw_extent(type, d)) == 0)
        put_text(p, "]", 1);
  }
}

/* A tile of several lines, in a loop over its elements. */
static void print_lines(printer_t *p, MlirType type, MlirValue base, const shown_t *shown) {
  tw_emitter_t *e = p->e;
  flush(p);
  MlirBlock loop = twg_new_block(e, 1, &e->i32), after = twg_new_block(e, 0, NULL);
  MlirValue zero = twg_const_i32(e, 0), index = mlirBlockGetArgument(loop, 0);
  twg_branch(e, loop, 1, &zero);
  e->block = loop;
  print_separators(p, type, index);
  put_element_at(p, type, base, index, shown);
  flush(p);
  for (int d = (int)tw_rank(type) - 1, period = 1; d >= 0; d--) {
    period *= (int)tw_extent(type, d);
    print_if(p, at_edge(e, index, period, true), "]");
  }
  MlirValue next = twg_binary(e, "llvm.add", index, twg_const_i32(e, 1));
  twg_branch_if(e, twg_icmp(e, TW_SLT, next, twg_const_i32(e, tw_count(type))), loop, 1, &next, after, 0, NULL);
  e->block = after;
}

/* ---- print --------------------------------------------------------------------------------------- */

/* All threads put the tiles of the op into shared memory, in row-major order. */
static void share_tiles(tw_emitter_t *e, MlirOperation op) {
  int64_t offset = 0;
  if (tw_scratch_bytes(op) == 0)
    return;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirValue value = mlirOperationGetOperand(op, i);
    if (tw_is_tile(mlirValueGetType(value)))
      twg_share_tile(e, value, twg_scratch_at(e, op, offset));
    offset += tw_shared_tile_bytes(value);
  }
  twg_barrier(e);
}

static void put_operand(printer_t *p, MlirOperation op, MlirValue value, int64_t *offset, const shown_t *shown) {
  MlirType type = mlirValueGetType(value);
  if (!tw_is_tile(type)) {
    put_element(p, twg_lookup(p->e, value).at[0], type, shown);
    return;
  }
  int64_t count = tw_count(type), rank = tw_rank(type);
  bool has_lines = rank > 0 && tw_print_line(count, tw_extent(type, rank - 1)) < count;
  (has_lines ? print_lines : put_line)(p, type, twg_scratch_at(p->e, op, *offset), shown);
  *offset += tw_shared_tile_bytes(value);
}

static void print_all(tw_emitter_t *e, MlirOperation op) {
  MlirStringRef rest = tw_attr_string(op, "format"), part;
  MlirAttribute flags = tw_attr(op, "is_unsigned");
  intptr_t next = 0;
  int64_t offset = 0;
  printer_t printer = {.e = e};
  for (tw_format_kind_t kind; (kind = tw_format_next(&rest, &part)) != TW_FORMAT_END && kind != TW_FORMAT_BAD;) {
    if (kind == TW_FORMAT_TEXT) {
      put_text(&printer, part.data, part.length);
    } else if (next < mlirOperationGetNumOperands(op)) {
      shown_t shown = {part, !mlirAttributeIsNull(flags) && mlirDenseBoolArrayGetElement(flags, next)};
      put_operand(&printer, op, mlirOperationGetOperand(op, next++), &offset, &shown);
    }
  }
  flush(&printer);
}

static bool rule_print(tw_emitter_t *e, MlirOperation op) {
  share_tiles(e, op);
  MlirValue is_first = twg_icmp(e, TW_EQ, e->thread, twg_const_i32(e, 0));
  MlirBlock after = twg_begin_if(e, e->simt ? twg_const_int(e, e->i1, 1) : is_first);
  print_all(e, op);
  twg_end_if(e, after);
  return true;
}

/* ---- assert -------------------------------------------------------------------------------------- */

static bool rule_assert(tw_emitter_t *e, MlirOperation op) {
  tw_values_t x = twg_operand(e, op, 0);
  MlirValue holds = x.at[0];
  for (int r = 1; r < x.count; r++)
    holds = twg_binary(e, "llvm.and", holds, x.at[r]);
  MlirBlock fail = twg_new_block(e, 0, NULL), after = twg_new_block(e, 0, NULL);
  twg_branch_if(e, holds, after, 0, NULL, fail, 0, NULL);
  e->block = fail;
  MlirStringRef message = tw_attr_string(op, "message");
  printer_t printer = {.e = e};
  put_text(&printer, message.data, message.length);
  put_text(&printer, "\n", 1);
  flush(&printer);
  twg_op(e, "llvm.intr.trap", (MlirType){NULL}, 0, NULL, 0, NULL);
  twg_branch(e, after, 0, NULL);
  e->block = after;
  return true;
}

TWG_RULE(TW_TILE_PRINT, rule_print)
TWG_RULE(TW_TILE_ASSERT, rule_assert)
