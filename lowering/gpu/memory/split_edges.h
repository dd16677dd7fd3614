/* split_edges.h - part of tile-cache-tiles: rows that almost fill their tiles */
#ifndef TILEWRIGHT_LOWERING_GPU_MEMORY_SPLIT_EDGES_H
#define TILEWRIGHT_LOWERING_GPU_MEMORY_SPLIT_EDGES_H

#include "lowering/ir.h"

bool tw_split_edges(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_MEMORY_SPLIT_EDGES_H */
