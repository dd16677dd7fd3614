/* split_loops.h - loops of which the iterations in which a mask holds everywhere run without it */
#ifndef TILEWRIGHT_LOWERING_COMMON_SPLIT_LOOPS_H
#define TILEWRIGHT_LOWERING_COMMON_SPLIT_LOOPS_H

#include "mlir-c/IR.h"

/* Splits a loop where a mask of it begins or ends to hold everywhere, if one does (split_loops.c has what must hold).
 * The last of its parts is the loop itself, with the results of the others. */
void tw_split_by_masks(MlirOperation loop);

#endif /* TILEWRIGHT_LOWERING_COMMON_SPLIT_LOOPS_H */
