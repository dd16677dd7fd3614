/* c_entry.c - a function that C++ of the host calls, and calls of such functions (lowering/c_values.h)
 *
 *     func.func @area(%xy: vector<2xf32>) -> f32 {
 *       %m = llvm.alloca …                       // a copy of the struct
 *       llvm.store %xy, %m
 *       %words = llvm.alloca …                   // what the launcher passes to a kernel
 *       …                                        // the body, as the one thread of the one block
 *       return %area : f32 */
#include "base/memory.h"
#include "lowering/c_values.h"
#include "lowering/cpu/cpu.h"

#include <stdlib.h>

enum { GRID_WORDS = 8 }; /* blocks and threads along each axis, and two of shared memory */

static void begin(cpu_t *cx, const tw_c_form_t *form) {
  MlirLocation *locations = tw_allocate((size_t)form->num_arguments + 1, sizeof *locations);
  for (int i = 0; i < form->num_arguments; i++)
    locations[i] = cx->location;
  cx->entry = mlirBlockCreate(form->num_arguments, form->arguments, locations);
  cx->scope[0] = cx->block = cx->entry;
  free(locations);
}

static MlirOperation end(cpu_t *cx, MlirOperation old, const tw_c_form_t *form, const MlirValue *pieces) {
  cpu_op0(cx, "func.return", form->num_results, pieces);
  MlirType type =
      mlirFunctionTypeGet(cx->context, form->num_arguments, form->arguments, form->num_results, form->results);
  tw_attr_t attrs[] = {{"sym_name", tw_attr(old, "sym_name")},
                       {"function_type", mlirTypeAttrGet(type)},
                       {"arg_attrs", form->argument_attrs},
                       {"res_attrs", form->result_attrs}};
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, cx->entry);
  tw_builder_t at = tw_build_before(old);
  return tw_build(
      &at, "func.func",
      (tw_op_parts_t){
          .num_attrs = form->num_results == 1 ? 4 : 3, .attrs = attrs, .num_regions = 1, .regions = &region});
}

/* Memory of so many integers of a type, with these values; null: ones. */
static MlirValue memory_of(cpu_t *cx, MlirType type, int count, const MlirValue *values) {
  MlirValue size = cpu_i64_const(cx, count + 1);
  tw_builder_t at = cpu_here(cx);
  MlirValue memory =
      tw_op1_attr(&at, "llvm.alloca", cpu_pointer_type(cx), 1, &size, "elem_type", mlirTypeAttrGet(type));
  for (int i = 0; i < count; i++)
    cpu_store(cx, values ? values[i] : cpu_int_const(cx, type, 1), cpu_address(cx, memory, type, cpu_index(i)), 4);
  return memory;
}

/* The words that the parameters hold, in memory. */
static MlirValue words_of(cpu_t *cx, const tw_c_signature_t *c) {
  MlirValue *words = cpu_alloc(cx, (size_t)tw_words_of_parameters(c) * sizeof *words);
  int num = 0, next = c->result.on_stack;
  tw_builder_t at = cpu_here(cx);
  for (int i = 0; i < c->num_parameters; i++) {
    const tw_c_value_t *value = &c->parameters[i];
    MlirValue pieces[TW_MAX_PIECES];
    int count = value->by_address || value->on_stack ? 1 : value->num_pieces;
    for (int k = 0; k < count; k++)
      pieces[k] = mlirBlockGetArgument(cx->entry, next++);
    tw_words_of_pieces(&at, &at, value, pieces, words + num);
    num += value->num_places;
  }
  return memory_of(cx, cpu_int(cx, 64), num, words);
}

static int number_of_words(MlirBlock body) {
  int num = 0;
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(body); i++) {
    MlirType type = mlirValueGetType(mlirBlockGetArgument(body, i));
    num += mlirTypeIsAMemRef(type) ? 1 + 2 * (int)tw_rank(type) : 1;
  }
  return num;
}

/* What the function returns in pieces, or writes where the caller says. */
static bool give_result(cpu_t *cx, const tw_c_value_t *result, MlirOperation done, MlirValue *pieces) {
  MlirValue words[TW_MAX_PLACES];
  if (mlirOperationGetNumOperands(done) != result->num_places)
    return false;
  for (int i = 0; i < result->num_places; i++) {
    MlirValue old = mlirOperationGetOperand(done, i);
    MlirType element = mlirValueGetType(old);
    if (tw_bytes(element) != result->bytes[i])
      return false;
    words[i] = cpu_to_memory(cx, cpu_scalar(cx, old), element);
  }
  tw_builder_t at = cpu_here(cx);
  if (result->on_stack)
    tw_store_words(&at, result, words, mlirBlockGetArgument(cx->entry, 0));
  else if (result->num_places)
    tw_pieces_of_words(&at, &at, result, words, pieces);
  return true;
}

MlirOperation cpu_build_c_entry(cpu_t *cx, MlirOperation old) {
  tw_c_signature_t c;
  tw_c_form_t form;
  MlirValue pieces[TW_MAX_PIECES];
  MlirBlock body = tw_region_block(old, 0);
  bool is_read = tw_read_c_signature(old, &c);
  if (!is_read || tw_words_of_parameters(&c) != number_of_words(body) || c.result.by_address) {
    if (is_read)
      cpu_error(cx, old, "has other arguments than its " TW_C_SIGNATURE " says");
    cx->failed = true;
    c = (tw_c_signature_t){0};
  }
  tw_c_form(cx->context, &c, &form);
  begin(cx, &form);
  if (!cx->failed) {
    MlirType i32 = cpu_int(cx, 32);
    cx->grid = memory_of(cx, i32, GRID_WORDS, NULL);
    cpu_unpack_arguments(cx, body, words_of(cx, &c), cx->grid);
    for (int d = 0; d < 3; d++) {
      cx->block_id[d] = cpu_int_const(cx, i32, 0);
      cx->block_dim[d] = cpu_int_const(cx, i32, 1);
    }
    MlirOperation done = cpu_emit_block(cx, body);
    if (!cx->failed && (!give_result(cx, &c.result, done, pieces) || cx->scratch_peak > 0))
      cpu_error(cx, old, "has a result or tiles that its " TW_C_SIGNATURE " does not speak of");
  }
  return end(cx, old, &form, pieces);
}

/* --- calls ----------------------------------------------------------------------------------------------------- */

enum { MOST_OF_ONE = 1 + 2 * TW_MAX_RANK };

/* The words of an operand: a number's bits, or the pointer, extents and strides of an array. Returns how many. */
static int words_of_operand(cpu_t *cx, MlirOperation op, MlirValue old, MlirValue *words) {
  MlirType type = mlirValueGetType(old);
  if (!mlirTypeIsAMemRef(type)) {
    words[0] = cpu_to_memory(cx, cpu_scalar(cx, old), type);
    return 1;
  }
  const cpu_array_t *array = cpu_array_of(cx, op, old);
  int rank = (int)tw_rank(type);
  if (array == NULL)
    return 0;
  words[0] = cpu_op1(cx, "llvm.ptrtoint", cpu_int(cx, 64), 1, &array->pointer);
  for (int d = 0; d < rank; d++) {
    words[1 + d] = array->extent[d];
    words[1 + rank + d] = array->stride[d];
  }
  return 1 + 2 * rank;
}

/* The words of all operands, of which there must be as many as the parameters have. */
static bool words_of_operands(cpu_t *cx, MlirOperation op, const tw_c_signature_t *c, MlirValue *words) {
  int num = 0, all = tw_words_of_parameters(c);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op) && num <= all; i++)
    num += words_of_operand(cx, op, mlirOperationGetOperand(op, i), words + num);
  return num == all && mlirOperationGetNumResults(op) == c->result.num_places;
}

static void place_c_call(cpu_t *cx, MlirOperation op) {
  tw_c_signature_t c;
  MlirValue found[TW_MAX_PLACES];
  if (!tw_read_c_signature(op, &c)) {
    cx->failed = true;
    return;
  }
  MlirValue *words = cpu_alloc(cx, (size_t)(tw_words_of_parameters(&c) + MOST_OF_ONE) * sizeof *words);
  if (!words_of_operands(cx, op, &c, words)) {
    cpu_error(cx, op, "takes or gives other words than its " TW_C_SIGNATURE);
    return;
  }
  tw_builder_t entry = tw_build_before(mlirBlockGetFirstOperation(cx->entry)), at = cpu_here(cx);
  tw_call_c(&entry, &at, cx->module, tw_attr_string(op, "callee"), &c, words, found);
  for (int i = 0; i < c.result.num_places; i++) {
    MlirValue result = mlirOperationGetResult(op, i);
    cpu_set_scalar(cx, result, cpu_of_word(cx, found[i], mlirValueGetType(result)));
  }
}

CPU_RULE(TW_TILE_C_CALL, CPU_EFFECT, 0, NULL, NULL, place_c_call)
