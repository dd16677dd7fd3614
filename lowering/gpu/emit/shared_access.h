/* shared_access.h - registers to and from shared memory by plain vector accesses */
#ifndef TILEWRIGHT_LOWERING_GPU_EMIT_SHARED_ACCESS_H
#define TILEWRIGHT_LOWERING_GPU_EMIT_SHARED_ACCESS_H

#include "lowering/gpu/emit/emitter.h"

/* Pointer to the stage that operands `at` (buffer) and `at` + 1 (stage) of an op name (emit/rules/shared.c). */
MlirValue twg_stage_pointer(tw_emitter_t *e, MlirOperation op, intptr_t at);
/* Registers <-> a tile in shared memory at `base` (pointer in address space 3). `element` is the
 * type in registers; i1 is held as a byte. */
void twg_write_shared(tw_emitter_t *e, const tw_layout_t *l, const tw_layout_t *shared, MlirType element,
                      tw_values_t in, MlirValue base);
tw_values_t twg_read_shared(tw_emitter_t *e, const tw_layout_t *l, const tw_layout_t *shared, MlirType element,
                            MlirValue base);
/* A whole tile in shared memory, row-major, bools as bytes, and back to the registers of a layout. */
void twg_share_tile(tw_emitter_t *e, MlirValue tile, MlirValue base);
/* The order in which it lies there. */
tw_layout_t twg_row_major(MlirType tile);
tw_values_t twg_shared_tile(tw_emitter_t *e, MlirType type, const tw_layout_t *layout, MlirValue base);
/* Where a tile in shared memory at `base` has the element of register r. */
MlirValue twg_shared_pointer(tw_emitter_t *e, const tw_layout_t *l, const tw_layout_t *shared, MlirType element, int r,
                             MlirValue base);
/* A part of an item that warps exchange. One narrower than a byte is held as a byte. */
MlirValue twg_load_part(tw_emitter_t *e, MlirType type, MlirValue pointer);
void twg_store_part(tw_emitter_t *e, MlirValue x, MlirValue pointer);
/* Pointer to a byte of an op's scratch memory, that of this consumer group. */
MlirValue twg_scratch_at(tw_emitter_t *e, MlirOperation op, int64_t bytes);

#endif /* TILEWRIGHT_LOWERING_GPU_EMIT_SHARED_ACCESS_H */
