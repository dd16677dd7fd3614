/* rules.c - shape and type rules of the dialect: verifiers and result inference, by op name */
#include "rules.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Diagnostics.h"

MlirLogicalResult tw_verify_op(MlirOperation op) {
  (void)op;
  return mlirLogicalResultSuccess();
}

MlirType tw_infer_op(MlirStringRef name, MlirLocation location, intptr_t num_operands,
                     const MlirType *operands, MlirAttribute attributes) {
  (void)name, (void)attributes;
  if (num_operands == 0)
    return mlirIntegerTypeGet(mlirLocationGetContext(location), 32);
  return operands[0];
}
