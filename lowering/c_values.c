/* c_values.c - pieces of C values to words and back, through a copy in memory that LLVM takes away again */
#include "lowering/c_values.h"

#include "mlir-c/Dialect/LLVM.h"

#include <stdio.h>

/* --- the attribute -------------------------------------------------------------------------------------------- */

static MlirAttribute entry_of(MlirAttribute dictionary, const char *name) {
  return mlirDictionaryAttrGetElementByName(dictionary, tw_str(name));
}

static int64_t int_of(MlirAttribute dictionary, const char *name) {
  MlirAttribute value = entry_of(dictionary, name);
  return mlirAttributeIsNull(value) || !mlirAttributeIsAInteger(value) ? -1 : mlirIntegerAttrGetValueInt(value);
}

static bool is_piece(MlirType type) {
  MlirType element = mlirTypeIsAVector(type) ? mlirShapedTypeGetElementType(type) : type;
  return mlirTypeIsAF32(element) || mlirTypeIsAF64(element) ||
         (mlirTypeIsAInteger(element) && mlirIntegerTypeIsSignless(element));
}

static bool read_pieces(MlirAttribute all, tw_c_value_t *out) {
  MlirAttribute types = entry_of(all, "pieces");
  int64_t counts[TW_MAX_PIECES];
  if (mlirAttributeIsNull(types) || !mlirAttributeIsAArray(types))
    return false;
  intptr_t num = mlirArrayAttrGetNumElements(types);
  if (num > TW_MAX_PIECES || tw_array_ints(entry_of(all, "counts"), counts, TW_MAX_PIECES) != num ||
      tw_array_ints(entry_of(all, "starts"), out->starts, TW_MAX_PIECES) != num)
    return false;
  out->num_pieces = (int)num;
  for (intptr_t i = 0; i < num; i++) {
    MlirAttribute type = mlirArrayAttrGetElement(types, i);
    if (!mlirAttributeIsAType(type) || !is_piece(mlirTypeAttrGetValue(type)) || counts[i] < 0 || counts[i] > UINT16_MAX)
      return false;
    out->pieces[i] = mlirTypeAttrGetValue(type);
    if (counts[i])
      out->pieces[i] = mlirLLVMArrayTypeGet(out->pieces[i], (unsigned)counts[i]);
  }
  return true;
}

/* Whether each word lies in the value, with a width that integers have. */
static bool are_places(const tw_c_value_t *value) {
  for (int i = 0; i < value->num_places; i++) {
    int64_t bytes = value->bytes[i];
    bool is_width = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    if (!is_width || value->places[i] < 0 || value->places[i] > value->size - bytes)
      return false;
  }
  return true;
}

static bool read_value(MlirAttribute all, tw_c_value_t *out) {
  if (mlirAttributeIsNull(all) || !mlirAttributeIsADictionary(all))
    return false;
  out->size = int_of(all, "size");
  out->align = int_of(all, "align");
  out->by_address = !mlirAttributeIsNull(entry_of(all, "by_address"));
  out->on_stack = !mlirAttributeIsNull(entry_of(all, "on_stack"));
  out->is_signed = !mlirAttributeIsNull(entry_of(all, "signed"));
  intptr_t num = tw_array_ints(entry_of(all, "places"), out->places, TW_MAX_PLACES);
  out->num_places = (int)num;
  return num <= TW_MAX_PLACES && tw_array_ints(entry_of(all, "bytes"), out->bytes, TW_MAX_PLACES) == num &&
         out->size >= 0 && out->size <= UINT16_MAX && out->align >= 1 && are_places(out) && read_pieces(all, out);
}

static bool read_signature(MlirAttribute all, tw_c_signature_t *out) {
  MlirAttribute parameters = mlirAttributeIsADictionary(all) ? entry_of(all, "parameters") : mlirAttributeGetNull();
  if (mlirAttributeIsNull(parameters) || !mlirAttributeIsAArray(parameters) ||
      mlirArrayAttrGetNumElements(parameters) > TW_MAX_C_PARAMETERS)
    return false;
  out->num_parameters = (int)mlirArrayAttrGetNumElements(parameters);
  for (int i = 0; i < out->num_parameters; i++)
    if (!read_value(mlirArrayAttrGetElement(parameters, i), &out->parameters[i]))
      return false;
  return read_value(entry_of(all, "result"), &out->result);
}

bool tw_read_c_signature(MlirOperation op, tw_c_signature_t *out) {
  MlirAttribute all = tw_attr(op, TW_C_SIGNATURE);
  if (!mlirAttributeIsNull(all) && read_signature(all, out))
    return true;
  tw_op_error(op, "has a " TW_C_SIGNATURE " that is none; expected parameters and a result, each with its pieces and "
                  "the places of its words");
  return false;
}

/* --- what travels ------------------------------------------------------------------------------------------------ */

/* C extends an integer of fewer than 32 bits. */
static MlirAttribute extension(MlirContext c, const tw_c_value_t *value) {
  bool is_short = !value->by_address && value->num_pieces == 1 && value->num_places == 1 && value->size < 4 &&
                  mlirTypeIsAInteger(value->pieces[0]);
  const char *text = !is_short ? "{}" : value->is_signed ? "{llvm.signext}" : "{llvm.zeroext}";
  return mlirAttributeParseGet(c, tw_str(text));
}

static MlirAttribute argument_attr(MlirContext c, const tw_c_value_t *value) {
  char text[160];
  snprintf(text, sizeof text, "{llvm.byval = !llvm.array<%d x i8>, llvm.align = %d : i64}", (int)value->size,
           (int)value->align);
  return value->on_stack ? mlirAttributeParseGet(c, tw_str(text)) : extension(c, value);
}

/* On a GPU it is a parameter like others. */
static MlirAttribute result_address_attr(MlirContext c, const tw_c_value_t *value) {
  char text[160];
  snprintf(text, sizeof text, "{llvm.sret = !llvm.array<%d x i8>, llvm.align = %d : i64}", (int)value->size,
           (int)value->align);
  return mlirAttributeParseGet(c, tw_str(value->on_stack ? text : "{}"));
}

static bool is_pointer(const tw_c_value_t *value) { return value->by_address || value->on_stack; }

void tw_c_form(MlirContext c, const tw_c_signature_t *signature, tw_c_form_t *out) {
  const tw_c_value_t *result = &signature->result;
  MlirAttribute attrs[TW_MAX_PIECES * TW_MAX_C_PARAMETERS + 1], of_result = extension(c, result);
  *out = (tw_c_form_t){0};
  if (is_pointer(result)) {
    attrs[0] = result_address_attr(c, result);
    out->arguments[out->num_arguments++] = mlirLLVMPointerTypeGet(c, 0);
  }
  for (int i = 0; i < signature->num_parameters; i++) {
    const tw_c_value_t *value = &signature->parameters[i];
    for (int k = 0; k < (is_pointer(value) ? 1 : value->num_pieces); k++) {
      attrs[out->num_arguments] = argument_attr(c, value);
      out->arguments[out->num_arguments++] = is_pointer(value) ? mlirLLVMPointerTypeGet(c, 0) : value->pieces[k];
    }
  }
  for (int k = 0; k < result->num_pieces && !is_pointer(result); k++)
    out->results[out->num_results++] = result->pieces[k];
  out->argument_attrs = mlirArrayAttrGet(c, out->num_arguments, attrs);
  out->result_attrs = mlirArrayAttrGet(c, out->num_results == 1, &of_result);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static MlirValue number(const tw_builder_t *at, int64_t value) {
  MlirType i64 = tw_i64(at->context);
  return tw_op1_attr(at, "llvm.mlir.constant", i64, 0, NULL, "value", mlirIntegerAttrGet(i64, value));
}

static MlirType integer(const tw_builder_t *at, int64_t bytes) {
  return mlirIntegerTypeGet(at->context, (unsigned)(8 * bytes));
}

/* Room for a value, or for its pieces where these are larger. */
static MlirValue room(const tw_builder_t *entry, const tw_c_value_t *value) {
  enum { LARGEST_PIECE = 16 };
  MlirValue bytes = number(entry, value->size + LARGEST_PIECE);
  MlirType pointer = mlirLLVMPointerTypeGet(entry->context, 0);
  int64_t align = value->align < LARGEST_PIECE ? LARGEST_PIECE : value->align;
  tw_attr_t attrs[] = {{"elem_type", mlirTypeAttrGet(integer(entry, 1))},
                       {"alignment", mlirIntegerAttrGet(tw_i64(entry->context), align)}};
  return tw_op1_attrs(entry, "llvm.alloca", pointer, 1, &bytes, 2, attrs);
}

static MlirValue place_at(const tw_builder_t *at, MlirValue pointer, int64_t offset) {
  int32_t index = (int32_t)offset;
  tw_attr_t attrs[] = {{"elem_type", mlirTypeAttrGet(integer(at, 1))},
                       {"rawConstantIndices", mlirDenseI32ArrayGet(at->context, 1, &index)}};
  MlirType type = mlirValueGetType(pointer);
  return tw_op1_attrs(at, "llvm.getelementptr", type, 1, &pointer, 2, attrs);
}

static tw_attr_t alignment(const tw_builder_t *at, int64_t bytes) {
  return (tw_attr_t){"alignment", mlirIntegerAttrGet(tw_i64(at->context), bytes)};
}

static void store(const tw_builder_t *at, MlirValue value, MlirValue pointer, int64_t align) {
  MlirValue operands[] = {value, pointer};
  tw_attr_t attr = alignment(at, align);
  tw_build(at, "llvm.store", (tw_op_parts_t){.num_operands = 2, .operands = operands, .num_attrs = 1, .attrs = &attr});
}

static MlirValue load(const tw_builder_t *at, MlirType type, MlirValue pointer, int64_t align) {
  tw_attr_t attr = alignment(at, align);
  return tw_op1_attr(at, "llvm.load", type, 1, &pointer, attr.name, attr.value);
}

/* What divides both: the alignment of a place in a value. */
static int64_t align_at(const tw_c_value_t *value, int64_t offset) {
  int64_t align = value->align;
  while (offset % align)
    align /= 2;
  return align;
}

/* --- both ways ----------------------------------------------------------------------------------------------- */

void tw_words_of_pieces(const tw_builder_t *entry, const tw_builder_t *at, const tw_c_value_t *value,
                        const MlirValue *pieces, MlirValue *words) {
  MlirType i64 = tw_i64(at->context);
  MlirValue memory = is_pointer(value) ? pieces[0] : room(entry, value);
  for (int i = 0; i < value->num_pieces && !is_pointer(value); i++)
    store(at, pieces[i], place_at(at, memory, value->starts[i]), align_at(value, value->starts[i]));
  for (int i = 0; i < value->num_places; i++) {
    MlirValue from = place_at(at, memory, value->places[i]);
    words[i] = load(at, integer(at, value->bytes[i]), from, align_at(value, value->places[i]));
    if (value->bytes[i] < 8)
      words[i] = tw_unary(at, "llvm.zext", i64, words[i]);
  }
}

void tw_store_words(const tw_builder_t *at, const tw_c_value_t *value, const MlirValue *words, MlirValue address) {
  for (int i = 0; i < value->num_places; i++)
    store(at, words[i], place_at(at, address, value->places[i]), align_at(value, value->places[i]));
}

void tw_pieces_of_words(const tw_builder_t *entry, const tw_builder_t *at, const tw_c_value_t *value,
                        const MlirValue *words, MlirValue *pieces) {
  MlirValue memory = room(entry, value);
  tw_store_words(at, value, words, memory);
  if (is_pointer(value))
    pieces[0] = memory;
  for (int i = 0; i < value->num_pieces && !is_pointer(value); i++)
    if (value->num_places == 0) /* None: a null pointer */
      pieces[i] = tw_op1(at, "llvm.mlir.zero", value->pieces[i], 0, NULL);
    else
      pieces[i] = load(at, value->pieces[i], place_at(at, memory, value->starts[i]), align_at(value, value->starts[i]));
}

/* --- calls --------------------------------------------------------------------------------------------------- */

int tw_words_of_parameters(const tw_c_signature_t *signature) {
  int total = 0;
  for (int i = 0; i < signature->num_parameters; i++)
    total += signature->parameters[i].num_places;
  return total;
}

static MlirType result_type(MlirContext c, const tw_c_form_t *form) {
  if (form->num_results == 0)
    return mlirLLVMVoidTypeGet(c);
  return form->num_results == 1 ? form->results[0]
                                : mlirLLVMStructTypeLiteralGet(c, form->num_results, form->results, false);
}

MlirType tw_c_function_type(MlirContext c, const tw_c_form_t *form) {
  return mlirLLVMFunctionTypeGet(result_type(c, form), form->num_arguments, form->arguments, false);
}

/* Once in a module. */
static void declare(const tw_builder_t *at, MlirOperation module, MlirAttribute symbol, const tw_c_form_t *form) {
  MlirBlock body = tw_region_block(module, 0);
  MlirOperation first = mlirBlockGetFirstOperation(body), op = first;
  while (!mlirOperationIsNull(op) && !mlirAttributeEqual(tw_attr(op, "sym_name"), symbol))
    op = mlirOperationGetNextInBlock(op);
  if (!mlirOperationIsNull(op))
    return;
  tw_attr_t attrs[] = {{"sym_name", symbol},
                       {"function_type", mlirTypeAttrGet(tw_c_function_type(at->context, form))},
                       {"linkage", mlirLLVMLinkageAttrGet(at->context, MlirLLVMLinkageExternal)},
                       {"CConv", mlirLLVMCConvAttrGet(at->context, MlirLLVMCConvC)},
                       {"arg_attrs", form->argument_attrs},
                       {"res_attrs", form->result_attrs}};
  MlirRegion region = mlirRegionCreate();
  tw_builder_t start = {at->context, body, first, at->location};
  tw_build(&start, "llvm.func",
           (tw_op_parts_t){
               .num_attrs = form->num_results == 1 ? 6 : 5, .attrs = attrs, .num_regions = 1, .regions = &region});
}

static MlirOperation call(const tw_builder_t *at, MlirStringRef callee, const tw_c_form_t *form,
                          const MlirValue *arguments) {
  int32_t segments[] = {form->num_arguments, 0};
  tw_attr_t attrs[] = {{"callee", mlirFlatSymbolRefAttrGet(at->context, callee)},
                       {"operandSegmentSizes", mlirDenseI32ArrayGet(at->context, 2, segments)},
                       {"op_bundle_sizes", mlirDenseI32ArrayGet(at->context, 0, NULL)},
                       {"arg_attrs", form->argument_attrs},
                       {"res_attrs", form->result_attrs}};
  MlirType type = result_type(at->context, form);
  return tw_build(at, "llvm.call",
                  (tw_op_parts_t){.num_operands = form->num_arguments,
                                  .operands = arguments,
                                  .num_results = form->num_results > 0,
                                  .results = &type,
                                  .num_attrs = form->num_results == 1 ? 5 : 4,
                                  .attrs = attrs});
}

/* The pieces of what a call gives. */
static void pieces_of_call(const tw_builder_t *at, MlirOperation done, const tw_c_form_t *form, MlirValue *pieces) {
  for (int i = 0; i < form->num_results; i++) {
    int64_t position = i;
    pieces[i] = mlirOperationGetResult(done, 0);
    if (form->num_results > 1)
      pieces[i] = tw_op1_attr(at, "llvm.extractvalue", form->results[i], 1, &pieces[i], "position",
                              mlirDenseI64ArrayGet(at->context, 1, &position));
  }
}

void tw_call_c(const tw_builder_t *entry, const tw_builder_t *at, MlirOperation module, MlirStringRef callee,
               const tw_c_signature_t *signature, const MlirValue *words, MlirValue *found) {
  tw_c_form_t form;
  MlirValue pieces[TW_MAX_PIECES * TW_MAX_C_PARAMETERS + 1], given[TW_MAX_PIECES];
  const tw_c_value_t *result = &signature->result;
  int num = 0;
  if (is_pointer(result))
    pieces[num++] = given[0] = room(entry, result);
  for (int i = 0; i < signature->num_parameters; i++) {
    const tw_c_value_t *value = &signature->parameters[i];
    tw_pieces_of_words(entry, at, value, words, pieces + num);
    num += is_pointer(value) ? 1 : value->num_pieces;
    words += value->num_places;
  }
  tw_c_form(at->context, signature, &form);
  declare(at, module, mlirStringAttrGet(at->context, callee), &form);
  MlirOperation done = call(at, callee, &form, pieces);
  pieces_of_call(at, done, &form, given);
  if (result->num_places)
    tw_words_of_pieces(entry, at, result, given, found);
}
