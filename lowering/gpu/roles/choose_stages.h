/* choose_stages.h - chooses the stages of each multi-stage buffer, and whether warpgroups ping-pong */
#ifndef TILEWRIGHT_LOWERING_GPU_ROLES_CHOOSE_STAGES_H
#define TILEWRIGHT_LOWERING_GPU_ROLES_CHOOSE_STAGES_H

#include "lowering/gpu/roles/stage_plan.h"

/* Part of that: how many stages each multibuffer has, and how many consumer groups there are (choose_stages.c). */
bool tw_choose_stages(tw_stage_plan_t *plan);

#endif /* TILEWRIGHT_LOWERING_GPU_ROLES_CHOOSE_STAGES_H */
