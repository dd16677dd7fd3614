/* rules.h - what the generated verifiers and type inference call (bodies in rules.c) */
#ifndef TILEWRIGHT_DIALECT_RULES_H
#define TILEWRIGHT_DIALECT_RULES_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Verifies one operation of the dialect; emits the error itself. */
MlirLogicalResult tw_verify_op(MlirOperation op);
/* Whether a fact or hint that stands on an op, or on an argument of one, is a number that passes can take. */
MlirLogicalResult tw_verify_attribute(MlirOperation op, MlirStringRef name, MlirAttribute value);

/* The result type of the op `name` from its operand types and attributes (a dictionary, or null).
 * A null type means that an error was emitted at `location`. */
MlirType tw_infer_op(MlirStringRef name, MlirLocation location, intptr_t num_operands, const MlirType *operands,
                     MlirAttribute attributes);

#ifdef __cplusplus
}
#endif
#endif /* TILEWRIGHT_DIALECT_RULES_H */
