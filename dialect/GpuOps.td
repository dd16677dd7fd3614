//===- GpuOps.td - ops and attributes that only the GPU passes make -------===//
#ifndef TILEWRIGHT_GPU_OPS_TD
#define TILEWRIGHT_GPU_OPS_TD

include "TileBase.td"

#endif // TILEWRIGHT_GPU_OPS_TD
