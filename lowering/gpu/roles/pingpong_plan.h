/* pingpong_plan.h - ping-pong: two consumer groups take the blocks of a persistent kernel in turn
 *
 * Where one warpgroup computes a whole tile, the Tensor Core would idle while it writes its result. A second one
 * computes the next tile meanwhile. The producer brings the tiles of all blocks one after the other through the same
 * multibuffer; a consumer group skips the stages of blocks that are not its own. A parity distinguishes only two phases
 * of a stage, so a consumer group begins when the other has found all of its stages full:
 *
 *   %t = tile.consumer_group ; tile.ordered_arrive if %t is the last
 *   scf.for %v = %first + %t * %step to %total step 2 * %step iter_args(%stage, %parity = %t * %n stages on) {
 *     tile.ordered_wait
 *     ... the loop, with %n iterations ...
 *     tile.ordered_arrive ; ... wait for the products, store ...
 *     yield (%n stages on)
 *   } {tile.persistent}
 *
 * What must hold: all copies are made in one loop of the persistent loop, which runs as often for each block; its
 * products merely add up, and their sums leave registers for all else; nothing but results goes through other buffers
 * of shared memory. */
#ifndef TILEWRIGHT_LOWERING_GPU_ROLES_PINGPONG_PLAN_H
#define TILEWRIGHT_LOWERING_GPU_ROLES_PINGPONG_PLAN_H

#include "lowering/gpu/roles/role.h"
#include "lowering/loops.h"

/* Whether a second consumer group is of use, if there is shared memory for it. */
bool tw_may_pingpong(const tw_stage_plan_t *plan);

/* Whether the loop goes through the blocks that consumer groups share out. */
bool tw_is_shared_out(const tw_role_t *r, MlirOperation loop);
/* Lets a consumer group begin with its own first block: `bounds` of the loop, and the multibuffers. Returns the
 * iterations to skip after each block. */
MlirValue tw_begin_pingpong(tw_role_t *r, MlirOperation loop, MlirValue bounds[TW_FOR_INITS]);

/* Whether it is the loop that consumer groups run in turn: between these two. */
bool tw_is_ordered(const tw_role_t *r, MlirOperation loop);
void tw_ordered_wait(const tw_role_t *r);
void tw_ordered_arrive(const tw_role_t *r);

/* Gives each consumer group boxes of its own in the buffers that its results go through. */
void tw_grow_boxes(const tw_stage_plan_t *plan);

#endif /* TILEWRIGHT_LOWERING_GPU_ROLES_PINGPONG_PLAN_H */
