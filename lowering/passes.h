/* passes.h - constructors of the passes of passes.def, and the helper that makes a pass from a C function */
#ifndef TILEWRIGHT_LOWERING_PASSES_H
#define TILEWRIGHT_LOWERING_PASSES_H

#include "mlir-c/Pass.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TW_PASS(create) MlirPass create(void);
#include "passes.def"
#undef TW_PASS

#ifdef __cplusplus
}
#endif
#endif /* TILEWRIGHT_LOWERING_PASSES_H */
