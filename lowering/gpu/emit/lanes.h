/* lanes.h - registers that move: renamed in a thread, or to another lane */
#ifndef TILEWRIGHT_LOWERING_GPU_EMIT_LANES_H
#define TILEWRIGHT_LOWERING_GPU_EMIT_LANES_H

#include "lowering/gpu/emit/emitter.h"

/* The registers of `from`, renamed for `to`; false if `to` has elements of other threads. */
bool twg_rename_registers(tw_emitter_t *e, const tw_layout_t *from, const tw_layout_t *to, tw_values_t in,
                          tw_values_t *out);
/* Registers in the layout of a slice become a result of the op that reduced; false after an error. */
bool twg_set_slice(tw_emitter_t *e, MlirOperation op, intptr_t i, const tw_layout_t *slice, tw_values_t values);
/* x of another lane: the one numbered `lane`, or (butterfly) this one's number XOR `lane`. */
MlirValue twg_shuffle(tw_emitter_t *e, bool butterfly, MlirValue x, MlirValue lane);

#endif /* TILEWRIGHT_LOWERING_GPU_EMIT_LANES_H */
