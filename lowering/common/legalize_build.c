/* legalize_build.c - upstream ops that legalization makes. See legalize.h. */
#include "lowering/common/legalize.h"

#include <string.h>

bool tw_legal_is_half(MlirType type) {
  MlirType element = tw_element(type);
  return mlirTypeIsAF16(element) || mlirTypeIsABF16(element);
}

MlirValue tw_legal_compute(const legalize_t *l, const char *name, MlirType type, intptr_t num,
                           const MlirValue *operands) {
  bool widen = tw_legal_is_half(type) && (!strncmp(name, "math.", 5) || !strcmp(name, "arith.remf"));
  if (!widen)
    return tw_op1(&l->at, name, type, num, operands);
  MlirType wide = tw_with_element(type, mlirF32TypeGet(l->at.context));
  MlirValue inputs[3];
  for (intptr_t i = 0; i < num; i++)
    inputs[i] = tw_unary(&l->at, "arith.extf", wide, operands[i]);
  return tw_unary(&l->at, "arith.truncf", type, tw_op1(&l->at, name, wide, num, inputs));
}

MlirValue tw_legal_compare(const legalize_t *l, tw_cmp_kind_t kind, MlirValue x, MlirValue y) {
  /* Values of the upstream enums, in the order of tw_cmp_kind_t. */
  static const int as_float[] = {1, 13, 4, 5, 2, 3}, as_signed[] = {0, 1, 2, 3, 4, 5},
                   as_unsigned[] = {0, 1, 6, 7, 8, 9};
  MlirType type = mlirValueGetType(x);
  bool is_unsigned = tw_is_unsigned(type) || tw_is_bool(type);
  int predicate = (tw_is_float(type) ? as_float : is_unsigned ? as_unsigned : as_signed)[kind];
  MlirValue operands[] = {x, y};
  return tw_op1_attr(&l->at, tw_is_float(type) ? "arith.cmpf" : "arith.cmpi",
                     tw_with_element(type, mlirIntegerTypeGet(l->at.context, 1)), 2, operands, "predicate",
                     mlirIntegerAttrGet(tw_i64(l->at.context), predicate));
}

MlirValue tw_legal_select(const legalize_t *l, MlirValue condition, MlirValue x, MlirValue y) {
  return tw_select(&l->at, condition, x, y);
}
