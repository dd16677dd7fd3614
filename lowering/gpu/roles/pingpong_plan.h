/* pingpong_plan.h - ping-pong: two teams of warps take the blocks of a persistent kernel in turn
 *
 * Where one warpgroup computes a whole tile, the Tensor Core would idle while it writes its result. A second one
 * computes the next tile meanwhile. The producer brings the tiles of all blocks one after the other through the same
 * ring; a team skips the slots of blocks that are not its own. A parity distinguishes only two phases of a slot, so a
 * team begins when the other has found all of its slots full:
 *
 *   %t = tile.team ; tile.pass_turn if %t is the last
 *   scf.for %v = %first + %t * %step to %total step 2 * %step iter_args(%slot, %parity = %t * %n slots on) {
 *     tile.await_turn
 *     ... the loop, with %n iterations ...
 *     tile.pass_turn ; ... wait for the products, store ...
 *     yield (%n slots on)
 *   } {tile.persistent}
 *
 * What must hold: all copies are made in one loop of the persistent loop, which runs as often for each block; its
 * products merely add up, and their sums leave registers for all else; nothing but results goes through other buffers
 * of shared memory. */
#ifndef TILEWRIGHT_LOWERING_GPU_ROLES_PINGPONG_PLAN_H
#define TILEWRIGHT_LOWERING_GPU_ROLES_PINGPONG_PLAN_H

#include "lowering/gpu/roles/role.h"
#include "lowering/loops.h"

/* Whether a second team is of use, if there is shared memory for it. */
bool tw_may_have_teams(const tw_ring_plan_t *plan);

/* Whether the loop goes through the blocks that teams share out. */
bool tw_is_shared_out(const tw_role_t *r, MlirOperation loop);
/* Lets a team begin with its own first block: `bounds` of the loop, and the rings. Returns the iterations to skip after
 * each block. */
MlirValue tw_begin_turns(tw_role_t *r, MlirOperation loop, MlirValue bounds[TW_FOR_INITS]);

/* Whether it is the loop that teams run in turn: between these two. */
bool tw_takes_turns(const tw_role_t *r, MlirOperation loop);
void tw_await_turn(const tw_role_t *r);
void tw_pass_turn(const tw_role_t *r);

/* Gives each team boxes of its own in the buffers that its results go through. */
void tw_grow_boxes(const tw_ring_plan_t *plan);

#endif /* TILEWRIGHT_LOWERING_GPU_ROLES_PINGPONG_PLAN_H */
