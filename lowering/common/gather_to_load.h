/* gather_to_load.h - gathers and scatters whose indices count up in every dimension are loads and stores of tiles */
#ifndef TILEWRIGHT_LOWERING_COMMON_GATHER_TO_LOAD_H
#define TILEWRIGHT_LOWERING_COMMON_GATHER_TO_LOAD_H

#include <stdbool.h>

#include "mlir-c/IR.h"

bool tw_gather_to_load(MlirOperation func);

/* The padding of a load (TW_PADDING_ZERO, ...) that is this value; undetermined for none, -1 if a load has no such. */
int tw_padding_kind(MlirValue padding);

#endif /* TILEWRIGHT_LOWERING_COMMON_GATHER_TO_LOAD_H */
