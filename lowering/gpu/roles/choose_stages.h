/* choose_stages.h - how many slots the rings of a kernel have, and how many teams take its blocks */
#ifndef TILEWRIGHT_LOWERING_GPU_ROLES_CHOOSE_STAGES_H
#define TILEWRIGHT_LOWERING_GPU_ROLES_CHOOSE_STAGES_H

#include "lowering/gpu/roles/stage_plan.h"

/* Part of that: how many slots each ring has, and how many teams there are (choose_stages.c). */
bool tw_choose_slots(tw_ring_plan_t *plan);

#endif /* TILEWRIGHT_LOWERING_GPU_ROLES_CHOOSE_STAGES_H */
