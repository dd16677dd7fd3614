/* roles.c - rules: barriers that count, and roles of warps */
#include "lowering/gpu/rules.h"

static bool not_yet(tw_emitter_t *e, MlirOperation op) {
  (void)e;
  tw_op_error(op, "has no GPU lowering");
  return false;
}

bool twg_rule_roles(tw_emitter_t *e, MlirOperation op) { return not_yet(e, op); }
bool twg_rule_alloc_barriers(tw_emitter_t *e, MlirOperation op) { return not_yet(e, op); }
bool twg_rule_barrier_wait(tw_emitter_t *e, MlirOperation op) { return not_yet(e, op); }
bool twg_rule_barrier_arrive(tw_emitter_t *e, MlirOperation op) { return not_yet(e, op); }
bool twg_rule_barrier_expect(tw_emitter_t *e, MlirOperation op) { return not_yet(e, op); }
