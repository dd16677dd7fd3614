/* inline_map.h - a part of tile-legalize: maps of plain arithmetic */
#ifndef TILEWRIGHT_LOWERING_COMMON_INLINE_MAP_H
#define TILEWRIGHT_LOWERING_COMMON_INLINE_MAP_H

#include "mlir-c/IR.h"

#include <stdbool.h>

bool tw_inline_maps(MlirOperation module);

#endif /* TILEWRIGHT_LOWERING_COMMON_INLINE_MAP_H */
