//===- SimtOps.td - thread-level ops: the tile-of-one case ----------------===//
#ifndef TILEWRIGHT_SIMT_OPS_TD
#define TILEWRIGHT_SIMT_OPS_TD

include "TileBase.td"

#endif // TILEWRIGHT_SIMT_OPS_TD
