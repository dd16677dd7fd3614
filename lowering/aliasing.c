/* aliasing.c - arrays of a kernel that have no memory in common. See aliasing.h. */
#include "lowering/aliasing.h"
#include "lowering/launch_record.h"

/* Of an array that a launch passes. One in shared memory is made in the kernel, and nothing is assumed of it. */
static MlirOperation function_of(MlirValue array) {
  if (!mlirValueIsABlockArgument(array))
    return tw_null_op();
  MlirOperation owner = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(array));
  return tw_op_is(owner, TW_FUNC_FUNC) ? owner : tw_null_op();
}

bool tw_may_be_disjoint(MlirValue a, MlirValue b) {
  MlirOperation func = function_of(a);
  return !mlirValueEqual(a, b) && !mlirOperationIsNull(func) && mlirOperationEqual(func, function_of(b)) &&
         !tw_has_hint_may_alias(func);
}

/* Arrays of a pair in the order of the arguments, so that there is one row of them, which says the most. */
static bool note(MlirValue a, MlirValue b, bool or_same) {
  tw_no_alias_t all[TW_MAX_NO_ALIAS + 1];
  MlirOperation func = function_of(a);
  size_t count = tw_launch_get_no_alias(func, all), at = 0;
  bool swap = mlirBlockArgumentGetArgNumber(a) > mlirBlockArgumentGetArgNumber(b);
  tw_no_alias_t pair = {.array = tw_array_place(swap ? b : a), .other = tw_array_place(swap ? a : b)};
  pair.or_same = or_same && pair.array.rank == pair.other.rank && pair.array.bits == pair.other.bits;
  while (at < count && (all[at].array.word != pair.array.word || all[at].other.word != pair.other.word))
    at++;
  if (at == TW_MAX_NO_ALIAS) {
    tw_op_remark(func, "cannot rely on all of its arrays being apart: a launch looks at %d pairs, and no more",
                 TW_MAX_NO_ALIAS);
    return false;
  }
  if (at < count && !all[at].or_same)
    return true;
  all[at] = pair;
  tw_launch_set_no_alias(func, all, at == count ? count + 1 : count);
  return true;
}

bool tw_assume_disjoint(MlirValue a, MlirValue b) { return tw_may_be_disjoint(a, b) && note(a, b, false); }

bool tw_assume_disjoint_or_same(MlirValue a, MlirValue b) {
  return mlirValueEqual(a, b) || (tw_may_be_disjoint(a, b) && note(a, b, true));
}
