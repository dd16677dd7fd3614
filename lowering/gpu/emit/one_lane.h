/* one_lane.h - what one lane does for its warp, and barriers that count */
#ifndef TILEWRIGHT_LOWERING_GPU_EMIT_ONE_LANE_H
#define TILEWRIGHT_LOWERING_GPU_EMIT_ONE_LANE_H

#include "lowering/gpu/emit/emitter.h"

/* The value of the first lane, in a form that the assembler takes for uniform; and the number of the warp likewise. */
MlirValue twg_uniform(tw_emitter_t *e, MlirValue x);
MlirValue twg_uniform_warp(tw_emitter_t *e);
/* Between `begin` and `end` one lane of the first warp runs, or, where one lane is alone already, that one. `begin`
 * returns the block where the others go on, for `end`. */
MlirBlock twg_begin_alone(tw_emitter_t *e);
void twg_end_alone(tw_emitter_t *e, MlirBlock rest);
/* The same for the whole first warp, whose lanes meet before one of them is alone again. */
MlirBlock twg_begin_first_warp(tw_emitter_t *e);
void twg_end_first_warp(tw_emitter_t *e, MlirBlock rest);
/* Whether this lane is that one. */
MlirValue twg_is_first_lane(tw_emitter_t *e);
/* Pointer to the barrier that operands `at` (barriers) and `at` + 1 (stage) name. */
MlirValue twg_barrier_pointer(tw_emitter_t *e, MlirOperation op, intptr_t at);

/* Goes on as one lane of the warp with this number; all others go to `otherwise`. */
void twg_enter_alone(tw_emitter_t *e, int64_t number, MlirBlock otherwise);

enum { TWG_BARRIER_BYTES = 8 };

#endif /* TILEWRIGHT_LOWERING_GPU_EMIT_ONE_LANE_H */
