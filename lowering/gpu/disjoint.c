/* disjoint.c - arrays of a kernel that have no memory in common. See disjoint.h. */
#include "lowering/gpu/disjoint.h"
#include "lowering/gpu/access.h"

enum { MAX_PAIRS = 16 };

static MlirOperation function_of(MlirValue array) {
  MlirOperation owner =
      mlirValueIsABlockArgument(array) ? mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(array)) : tw_null_op();
  return tw_op_is(owner, "func.func") ? owner : tw_null_op();
}

bool tw_may_be_disjoint(MlirValue a, MlirValue b) {
  MlirOperation func = function_of(a);
  return !mlirValueEqual(a, b) && !mlirOperationIsNull(func) && mlirOperationEqual(func, function_of(b)) &&
         !tw_has_attr(tw_module_of(func), TW_MAY_ALIAS);
}

static MlirAttribute place_of(MlirValue array) {
  MlirType type = mlirValueGetType(array);
  int32_t place[] = {tw_first_word(array), (int32_t)mlirShapedTypeGetRank(type),
                     tw_memory_bits(mlirShapedTypeGetElementType(type))};
  return mlirDenseI32ArrayGet(mlirTypeGetContext(type), 3, place);
}

bool tw_assume_disjoint(MlirValue a, MlirValue b) {
  if (!tw_may_be_disjoint(a, b))
    return false;
  MlirOperation module = tw_module_of(function_of(a));
  MlirAttribute known = tw_attr(module, TW_DISJOINT), all[2 * (MAX_PAIRS + 1)], pair[] = {place_of(a), place_of(b)};
  intptr_t count = mlirAttributeIsNull(known) ? 0 : mlirArrayAttrGetNumElements(known);
  for (intptr_t i = 0; i < count; i++)
    all[i] = mlirArrayAttrGetElement(known, i);
  for (intptr_t i = 0; i < count; i += 2)
    if (mlirAttributeEqual(all[i], pair[0]) && mlirAttributeEqual(all[i + 1], pair[1]))
      return true;
  if (count == 2 * MAX_PAIRS)
    return false;
  all[count] = pair[0];
  all[count + 1] = pair[1];
  tw_set_attr(module, TW_DISJOINT, mlirArrayAttrGet(mlirOperationGetContext(module), count + 2, all));
  return true;
}
