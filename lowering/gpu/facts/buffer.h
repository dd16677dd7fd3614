/* buffer.h - buffers in shared memory: what makes one */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_BUFFER_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_BUFFER_H

#include "lowering/ir.h"

/* A new one, of that type. */
MlirValue tw_alloc_buffer(const tw_builder_t *at, MlirType type);
/* Whether the op makes one. */
bool tw_makes_buffer(MlirOperation op);

#endif /* TILEWRIGHT_LOWERING_GPU_FACTS_BUFFER_H */
