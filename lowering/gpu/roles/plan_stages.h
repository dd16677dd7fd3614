/* plan_stages.h - finds which copies share a multi-stage buffer, and the slice of the kernel that the producer runs */
#ifndef TILEWRIGHT_LOWERING_GPU_ROLES_PLAN_STAGES_H
#define TILEWRIGHT_LOWERING_GPU_ROLES_PLAN_STAGES_H

#include "lowering/gpu/roles/stage_plan.h"

/* Fills in the plan of plan->func. If there is none, `refused` says why, or nothing where nothing is to be gained. */
bool tw_plan_stages(tw_stage_plan_t *plan);
void tw_free_plan(tw_stage_plan_t *plan);

#endif /* TILEWRIGHT_LOWERING_GPU_ROLES_PLAN_STAGES_H */
