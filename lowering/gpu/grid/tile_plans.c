/* tile_plans.c - see tile_plans.h */
#include "lowering/gpu/grid/tile_plans.h"

/* Whether a plan is better than another; `last`: if it takes as much, too. */
static bool is_better(const tw_plan_t *plan, const tw_plan_t *than, bool last) {
  if (plan->computing != than->computing)
    return plan->computing < than->computing;
  if (plan->products != than->products)
    return plan->products < than->products;
  return plan->bytes < than->bytes || (last && plan->bytes == than->bytes);
}

static bool twice(const tw_plan_t *from, int ways, bool last, tw_weigh_t weigh, void *user, tw_plan_t *out) {
  bool found = false;
  for (int way = 0; way < ways; way++) {
    tw_plan_t plan = *from;
    plan.log[way]++;
    if (weigh(user, from, way, &plan) && (!found || is_better(&plan, out, last))) {
      *out = plan;
      found = true;
    }
  }
  return found;
}

void tw_make_plans(tw_plans_t *plans, int ways, bool last, tw_weigh_t weigh, void *user) {
  plans->at[0] = (tw_plan_t){.cycles = 0};
  (void)weigh(user, &plans->at[0], -1, &plans->at[0]);
  for (plans->count = 1; plans->count <= TW_MAX_LOG_PLAN; plans->count++)
    if (!twice(&plans->at[plans->count - 1], ways, last, weigh, user, &plans->at[plans->count]))
      break;
}

int tw_plan_for(const tw_plans_t *plans, int64_t most) {
  int log = 0;
  while (log + 1 < plans->count && INT64_C(2) << log <= most)
    log++;
  return log;
}
