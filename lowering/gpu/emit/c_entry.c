/* c_entry.c - functions and kernels that C++ calls
 *
 *   llvm.func @area(%p: !llvm.array<2 x i32>) -> f32 {
 *     %m = llvm.alloca …                       // a copy of the struct, which LLVM takes away again
 *     llvm.store %p, %m
 *     %x = llvm.load %m[0] : i32               // the words that the body works on */
#include "lowering/gpu/emit/c_entry.h"

#include "lowering/c_values.h"
#include "lowering/layout/memory.h"

#include "mlir-c/Dialect/LLVM.h"

static tw_builder_t at_end(tw_emitter_t *e, MlirBlock block) { return tw_build_at_end(block, e->location); }

/* The LLVM type of what is returned. */
static MlirType result_type(tw_emitter_t *e, const tw_c_form_t *form) {
  if (form->num_results == 0)
    return mlirLLVMVoidTypeGet(e->context);
  return form->results[0];
}

static MlirType function_type(tw_emitter_t *e, const tw_c_form_t *form) {
  return mlirLLVMFunctionTypeGet(result_type(e, form), form->num_arguments, form->arguments, false);
}

MlirOperation twg_c_function(tw_emitter_t *e, MlirOperation old, bool is_function) {
  tw_c_form_t form;
  tw_c_form(e->context, e->c, &form);
  MlirNamedAttribute attributes[] = {
      twg_named(e, "sym_name", tw_attr(old, "sym_name")),
      twg_named(e, "function_type", mlirTypeAttrGet(function_type(e, &form))),
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

static int places_of_parameters(const tw_c_signature_t *c) {
  int total = 0;
  for (int i = 0; i < c->num_parameters; i++)
    total += c->parameters[i].num_places;
  return total;
}

bool twg_words_of_c(tw_emitter_t *e, MlirOperation old, int num_words, MlirValue *words) {
  tw_c_form_t form;
  tw_c_form(e->context, e->c, &form);
  if (places_of_parameters(e->c) != num_words) {
    tw_op_error(old, "has arguments of %d words, its " TW_C_SIGNATURE " %d", num_words, places_of_parameters(e->c));
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

/* The words that operands from `first` on consist of; false if there are not so many, or of other widths. */
static bool words_of_operands(tw_emitter_t *e, MlirOperation op, intptr_t first, int count, const int64_t *bytes,
                              MlirValue *words) {
  if (mlirOperationGetNumOperands(op) < first + count)
    return false;
  for (int i = 0; i < count; i++) {
    MlirValue old = mlirOperationGetOperand(op, first + i);
    MlirType type = mlirValueGetType(old);
    int64_t bits = mlirTypeIsAMemRef(type) ? 0 : (int64_t)tw_memory_bits(type);
    if ((bits < 8 ? 8 : bits) != 8 * bytes[i])
      return false;
    words[i] = word_of_number(e, twg_operand(e, op, first + i).at[0], bytes[i]);
  }
  return true;
}

bool twg_return_to_c(tw_emitter_t *e, MlirOperation op) {
  const tw_c_value_t *result = &e->c->result;
  MlirValue words[TW_MAX_PLACES], pieces[TW_MAX_PIECES];
  if (mlirOperationGetNumOperands(op) != result->num_places ||
      !words_of_operands(e, op, 0, result->num_places, result->bytes, words)) {
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
