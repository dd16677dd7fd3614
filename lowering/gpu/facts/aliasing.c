/* aliasing.c - arrays of a kernel that have no memory in common. See aliasing.h. */
#include "lowering/gpu/facts/aliasing.h"
#include "lowering/gpu/facts/kernel_words.h"

enum { MAX_PAIRS = 16 };

static MlirOperation function_of(MlirValue array) {
  MlirOperation owner =
      mlirValueIsABlockArgument(array) ? mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(array)) : tw_null_op();
  return tw_op_is(owner, TW_FUNC_FUNC) ? owner : tw_null_op();
}

bool tw_may_be_disjoint(MlirValue a, MlirValue b) {
  MlirOperation func = function_of(a);
  return !mlirValueEqual(a, b) && !mlirOperationIsNull(func) && mlirOperationEqual(func, function_of(b)) &&
         !tw_has_attr(tw_module_of(func), TW_MAY_ALIAS);
}

enum { OF_PAIR = 2 * TW_ARRAY_PLACE + 1 };

/* Arrays of a pair in the order of the arguments, so that there is one row of them, which says the most. */
static bool note(MlirValue a, MlirValue b, bool or_same) {
  MlirOperation module = tw_module_of(function_of(a));
  MlirContext context = mlirOperationGetContext(module);
  MlirAttribute known = tw_attr(module, TW_DISJOINT), all[MAX_PAIRS + 1];
  intptr_t count = mlirAttributeIsNull(known) ? 0 : mlirArrayAttrGetNumElements(known), at = 0;
  bool swap = mlirBlockArgumentGetArgNumber(a) > mlirBlockArgumentGetArgNumber(b);
  int32_t row[OF_PAIR];
  tw_array_place(swap ? b : a, row);
  tw_array_place(swap ? a : b, row + TW_ARRAY_PLACE);
  row[OF_PAIR - 1] = or_same && row[1] == row[1 + TW_ARRAY_PLACE] && row[2] == row[2 + TW_ARRAY_PLACE];
  for (intptr_t i = 0; i < count; i++)
    all[i] = mlirArrayAttrGetElement(known, i);
  while (at < count && (mlirDenseI32ArrayGetElement(all[at], 0) != row[0] ||
                        mlirDenseI32ArrayGetElement(all[at], TW_ARRAY_PLACE) != row[TW_ARRAY_PLACE]))
    at++;
  if (at == MAX_PAIRS)
    return false;
  if (at < count && mlirDenseI32ArrayGetElement(all[at], OF_PAIR - 1) == 0)
    return true;
  all[at] = mlirDenseI32ArrayGet(context, OF_PAIR, row);
  tw_set_attr(module, TW_DISJOINT, mlirArrayAttrGet(context, at == count ? count + 1 : count, all));
  return true;
}

bool tw_assume_disjoint(MlirValue a, MlirValue b) { return tw_may_be_disjoint(a, b) && note(a, b, false); }

bool tw_assume_disjoint_or_same(MlirValue a, MlirValue b) {
  return mlirValueEqual(a, b) || (tw_may_be_disjoint(a, b) && note(a, b, true));
}
