/* gather_to_load.h - gathers and scatters whose indices count up in every dimension are loads and stores of tiles */
#ifndef TILEWRIGHT_LOWERING_COMMON_GATHER_TO_LOAD_H
#define TILEWRIGHT_LOWERING_COMMON_GATHER_TO_LOAD_H

#include <stdbool.h>

#include "mlir-c/IR.h"

bool tw_gather_to_load(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_COMMON_GATHER_TO_LOAD_H */
