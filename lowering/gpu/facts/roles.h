/* roles.h - which warps run an op: those that copy tiles, or those that compute */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_ROLES_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_ROLES_H

#include "lowering/ir.h"

bool tw_is_roles(MlirOperation op);
/* The tile.roles of a kernel; null where there is none. */
MlirOperation tw_roles_of(MlirOperation kernel);
/* The tile.roles that an op stands in, null where it stands in none; `out_producer`, if not null, tells whether in the
 * code of the producer. */
MlirOperation tw_roles_around(MlirOperation op, bool *out_producer);
/* On tile.consumer_group, tile.ordered_wait and tile.ordered_arrive: the two warpgroups of a block go in order, not
 * consumer groups. */
#define TW_GROUPS "tile.groups"
/* How many consumer groups a kernel has; 1 where there is no tile.roles. */
int tw_consumer_groups_of(MlirOperation kernel);

#endif /* TILEWRIGHT_LOWERING_GPU_FACTS_ROLES_H */
