/* c_entry.c - functions and kernels that C++ calls, and calls of functions of C++
 *
 *   llvm.func @area(%p: !llvm.array<2 x i32>) -> f32 {
 *     %m = llvm.alloca …                       // a copy of the struct, which LLVM takes away again
 *     llvm.store %p, %m
 *     %x = llvm.load %m[0] : i32               // the words that the body works on */
#include "lowering/gpu/emit/c_entry.h"

#include "base/memory.h"
#include "lowering/c_values.h"
#include "lowering/gpu/emit/words.h"

#include "mlir-c/Dialect/LLVM.h"

#include <stdlib.h>

static tw_builder_t at_end(tw_emitter_t *e, MlirBlock block) { return tw_build_at_end(block, e->location); }

MlirOperation twg_c_function(tw_emitter_t *e, MlirOperation old, bool is_function) {
  tw_c_form_t form;
  tw_c_form(e->context, e->c, &form);
  MlirNamedAttribute attributes[] = {
      twg_named(e, "sym_name", tw_attr(old, "sym_name")),
      twg_named(e, "function_type", mlirTypeAttrGet(tw_c_function_type(e->context, &form))),
      twg_named(e, "linkage", mlirLLVMLinkageAttrGet(e->context, MlirLLVMLinkageExternal)),
      twg_named(e, "CConv", mlirLLVMCConvAttrGet(e->context, MlirLLVMCConvC)),
      twg_named(e, "arg_attrs", form.argument_attrs),
      is_function ? twg_named(e, "res_attrs", form.result_attrs)
                  : twg_named(e, "nvvm.kernel", mlirUnitAttrGet(e->context)),
  };
  MlirOperationState state = mlirOperationStateGet(tw_str("llvm.func"), e->location);
  bool has_last = !is_function || form.num_results > 0;
  mlirOperationStateAddAttributes(&state, has_last ? 6 : 5, attributes);
  MlirRegion region = mlirRegionCreate();
  mlirOperationStateAddOwnedRegions(&state, 1, &region);
  return mlirOperationCreate(&state);
}

bool twg_words_of_c(tw_emitter_t *e, MlirOperation old, int num_words, MlirValue *words) {
  tw_c_form_t form;
  tw_c_form(e->context, e->c, &form);
  if (tw_words_of_parameters(e->c) != num_words) {
    tw_op_error(old, "has arguments of %d words, its " TW_C_SIGNATURE " %d", num_words, tw_words_of_parameters(e->c));
    return false;
  }
  tw_builder_t at = at_end(e, e->entry);
  for (int i = 0; i < form.num_arguments; i++)
    mlirBlockAddArgument(e->entry, form.arguments[i], e->location);
  int next = 0;
  if (e->c->result.by_address)
    e->c_result = mlirBlockGetArgument(e->entry, next++);
  for (int i = 0; i < e->c->num_parameters; i++) {
    const tw_c_value_t *value = &e->c->parameters[i];
    MlirValue pieces[TW_MAX_PIECES];
    int num = value->by_address ? 1 : value->num_pieces;
    for (int k = 0; k < num; k++)
      pieces[k] = mlirBlockGetArgument(e->entry, next++);
    tw_words_of_pieces(&at, &at, value, pieces, words);
    words += value->num_places;
  }
  return true;
}

/* A number in a register as an integer of its bytes in memory. */
static MlirValue word_of_number(tw_emitter_t *e, MlirValue number, int64_t bytes) {
  MlirType have = mlirValueGetType(number), want = mlirIntegerTypeGet(e->context, (unsigned)(8 * bytes));
  MlirValue bits = twg_bitcast(e, number, mlirIntegerTypeGet(e->context, tw_bits(have)));
  return mlirTypeEqual(mlirValueGetType(bits), want) ? bits : twg_cast(e, "llvm.zext", want, bits);
}

/* A pointer as C++ has it: to any memory. */
static MlirValue word_of_pointer(tw_emitter_t *e, MlirValue pointer) {
  MlirType generic = mlirLLVMPointerTypeGet(e->context, 0);
  if (!mlirTypeEqual(mlirValueGetType(pointer), generic))
    pointer = twg_cast(e, "llvm.addrspacecast", generic, pointer);
  return twg_cast(e, "llvm.ptrtoint", e->i64, pointer);
}

/* The next words of a value, from the register at `*next` of all operands; false if their widths are others. */
static bool words_of(tw_emitter_t *e, const tw_c_value_t *value, tw_values_t all, int *next, MlirValue *words) {
  for (int i = 0; i < value->num_places; i++, ++*next) {
    if (*next >= all.count)
      return false;
    MlirValue number = all.at[*next];
    bool is_pointer = mlirTypeIsALLVMPointerType(mlirValueGetType(number));
    int64_t bits = is_pointer ? 64 : (int64_t)tw_bits(mlirValueGetType(number));
    if ((bits < 8 ? 8 : bits) != 8 * value->bytes[i])
      return false;
    words[i] = is_pointer ? word_of_pointer(e, number) : word_of_number(e, number, value->bytes[i]);
  }
  return true;
}

/* The registers of all operands, one after the other. */
static tw_values_t registers_of(tw_emitter_t *e, MlirOperation op) {
  int total = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    total += twg_operand(e, op, i).count;
  tw_values_t all = twg_new_values(e, total);
  total = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    tw_values_t some = twg_operand(e, op, i);
    for (int k = 0; k < some.count; k++)
      all.at[total++] = some.at[k];
  }
  return all;
}

bool twg_return_to_c(tw_emitter_t *e, MlirOperation op) {
  const tw_c_value_t *result = &e->c->result;
  MlirValue words[TW_MAX_PLACES], pieces[TW_MAX_PIECES];
  tw_values_t given = registers_of(e, op);
  int used = 0;
  if (!words_of(e, result, given, &used, words) || used != given.count) {
    tw_op_error(op, "returns other numbers than the " TW_C_SIGNATURE " of its function");
    return false;
  }
  tw_builder_t entry = at_end(e, e->entry), at = at_end(e, e->block);
  if (result->by_address)
    tw_store_words(&at, result, words, e->c_result);
  else
    tw_pieces_of_words(&entry, &at, result, words, pieces);
  twg_op(e, "llvm.return", (MlirType){NULL}, result->by_address ? 0 : 1, pieces, 0, NULL);
  return true;
}

/* ---- calls ------------------------------------------------------------------------------------------ */

/* The words of all arguments; false where the operands are others. */
static bool words_of_arguments(tw_emitter_t *e, MlirOperation op, const tw_c_signature_t *c, MlirValue *words) {
  tw_values_t all = registers_of(e, op);
  int used = 0;
  for (int i = 0; i < c->num_parameters; i++) {
    if (!words_of(e, &c->parameters[i], all, &used, words))
      return false;
    words += c->parameters[i].num_places;
  }
  return used == all.count && mlirOperationGetNumResults(op) == c->result.num_places;
}

bool twg_call_c(tw_emitter_t *e, MlirOperation op) {
  tw_c_signature_t c;
  MlirValue found[TW_MAX_PLACES];
  if (!tw_read_c_signature(op, &c))
    return false;
  MlirValue *words = tw_allocate((size_t)tw_words_of_parameters(&c) + 1, sizeof *words);
  bool ok = words_of_arguments(e, op, &c, words);
  tw_builder_t entry = at_end(e, e->entry), at = at_end(e, e->block);
  if (ok)
    tw_call_c(&entry, &at, e->module, tw_attr_string(op, "callee"), &c, words, found);
  else
    tw_op_error(op, "takes or gives other words than its " TW_C_SIGNATURE);
  for (int i = 0; ok && i < c.result.num_places; i++)
    twg_set_scalar(e, op, i, twg_scalar_of_word(e, found[i], mlirValueGetType(mlirOperationGetResult(op, i))));
  free(words);
  return ok;
}
