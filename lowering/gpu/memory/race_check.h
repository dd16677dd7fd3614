/* race_check.h - barriers around every access, where the hint `race_check` asks for them */
#ifndef TILEWRIGHT_LOWERING_GPU_MEMORY_RACE_CHECK_H
#define TILEWRIGHT_LOWERING_GPU_MEMORY_RACE_CHECK_H

#include "mlir-c/IR.h"

void tw_race_check(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_MEMORY_RACE_CHECK_H */
