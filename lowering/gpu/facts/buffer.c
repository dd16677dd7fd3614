/* buffer.c - buffers in shared memory: what makes one. See buffer.h. */
#include "lowering/gpu/facts/buffer.h"

MlirValue tw_alloc_buffer(const tw_builder_t *at, MlirType type) {
  return tw_op1(at, "tile.alloc_shared", type, 0, NULL);
}

bool tw_makes_buffer(MlirOperation op) { return tw_op_is(op, TW_TILE_ALLOC_SHARED); }
