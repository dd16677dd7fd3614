/* kernel_words.c - the words that a kernel takes. See kernel_words.h. */
#include "lowering/gpu/facts/kernel_words.h"
#include "base/memory.h"
#include "lowering/launch_record.h"

int64_t tw_word_behind(MlirOperation func, MlirValue value) {
  MlirBlock entry = tw_region_block(func, 0);
  MlirOperation dim = tw_def(value);
  bool is_dim = !mlirOperationIsNull(dim) && tw_op_is(dim, TW_TILE_DIM);
  MlirValue argument = is_dim ? mlirOperationGetOperand(dim, 0) : value;
  if (!mlirValueIsABlockArgument(argument) || !mlirBlockEqual(mlirBlockArgumentGetOwner(argument), entry))
    return -1;
  return tw_first_word(argument) + (is_dim ? 1 + tw_attr_int(dim, "axis", 0) : 0);
}

MlirValue tw_add_argument(MlirOperation func, MlirType type, MlirAttribute facts) {
  MlirContext context = mlirOperationGetContext(func);
  MlirBlock body = tw_region_block(func, 0);
  intptr_t had = mlirBlockGetNumArguments(body);
  MlirType *inputs = tw_allocate((size_t)had + 1, sizeof *inputs);
  MlirAttribute *dictionaries = tw_allocate((size_t)had + 1, sizeof *dictionaries), all = tw_attr(func, "arg_attrs");
  MlirValue made = mlirBlockAddArgument(body, type, mlirOperationGetLocation(func));
  for (intptr_t i = 0; i <= had; i++) {
    inputs[i] = mlirValueGetType(mlirBlockGetArgument(body, i));
    dictionaries[i] = i < had && !mlirAttributeIsNull(all) ? mlirArrayAttrGetElement(all, i)
                                                           : mlirDictionaryAttrGet(context, 0, NULL);
  }
  if (!mlirAttributeIsNull(facts))
    dictionaries[had] = facts;
  tw_set_attr(func, "function_type", mlirTypeAttrGet(mlirFunctionTypeGet(context, had + 1, inputs, 0, NULL)));
  tw_set_attr(func, "arg_attrs", mlirArrayAttrGet(context, had + 1, dictionaries));
  free(dictionaries);
  free(inputs);
  return made;
}

void tw_add_words(MlirOperation func, intptr_t num, const MlirType *types, MlirValue *out) {
  for (intptr_t i = 0; i < num; i++)
    out[i] = tw_add_argument(func, types[i], mlirAttributeGetNull());
}

void tw_add_grid_extents(MlirOperation func, MlirValue extents[TW_GRID_AXES]) {
  MlirType i32 = tw_i32(mlirOperationGetContext(func)), types[TW_GRID_AXES] = {i32, i32, i32};
  tw_add_words(func, TW_GRID_AXES, types, extents);
}
