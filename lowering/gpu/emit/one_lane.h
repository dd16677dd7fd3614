/* one_lane.h - what one lane does for its warp, and barriers that count */
#ifndef TILEWRIGHT_LOWERING_GPU_EMIT_ONE_LANE_H
#define TILEWRIGHT_LOWERING_GPU_EMIT_ONE_LANE_H

#include "lowering/gpu/emit/emitter.h"

/* What the first lane has, the same in all lanes as far as the assembler can tell; and so the number of the warp. */
MlirValue twg_uniform(tw_emitter_t *e, MlirValue x);
MlirValue twg_uniform_warp(tw_emitter_t *e);
/* What is emitted between the two is done by one lane of the first warp; where one lane is alone already, by that.
 * `begin` returns where the others go on, for `end`. */
MlirBlock twg_begin_alone(tw_emitter_t *e);
void twg_end_alone(tw_emitter_t *e, MlirBlock rest);
/* Whether it is this lane that would be alone. */
MlirValue twg_is_first_lane(tw_emitter_t *e);
/* Pointer to the barrier that operands `at` (barriers) and `at` + 1 (stage) name. */
MlirValue twg_barrier_pointer(tw_emitter_t *e, MlirOperation op, intptr_t at);

/* Goes on as one lane of the warp with this number; all others go to `otherwise`. */
void twg_enter_alone(tw_emitter_t *e, int64_t number, MlirBlock otherwise);

enum { TWG_BARRIER_BYTES = 8 };

#endif /* TILEWRIGHT_LOWERING_GPU_EMIT_ONE_LANE_H */
