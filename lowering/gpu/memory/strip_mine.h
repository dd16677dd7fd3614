/* strip_mine.h - the warps of a kernel whose tiles tile-strip-mine will walk */
#ifndef TILEWRIGHT_LOWERING_GPU_MEMORY_STRIP_MINE_H
#define TILEWRIGHT_LOWERING_GPU_MEMORY_STRIP_MINE_H

#include "mlir-c/IR.h"

/* 0 where it leaves the tiles of the function as they are. */
int tw_strip_mine_warps(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_MEMORY_STRIP_MINE_H */
