/* block_axes.h - which values and tiles depend on the position in the grid */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_BLOCK_AXES_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_BLOCK_AXES_H

#include "lowering/ir.h"

/* Bit a: the value depends on the block's position along axis a. Kept for every value of a function. */
typedef struct tw_block_axes {
  tw_map_t of;
} tw_block_axes_t;

tw_block_axes_t tw_block_axes_of(MlirOperation func);
uint32_t tw_block_axes_get(const tw_block_axes_t *axes, MlirValue value);
void tw_block_axes_free(tw_block_axes_t *axes);
/* The axes that the place of a load's tile depends on. */
uint32_t tw_block_axes_of_load(const tw_block_axes_t *axes, MlirOperation load);

#endif /* TILEWRIGHT_LOWERING_GPU_FACTS_BLOCK_AXES_H */
