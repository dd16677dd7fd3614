/* tma.c - rules: copies by the tensor memory accelerator */
#include "lowering/gpu/rules.h"

bool twg_rule_tma_load(tw_emitter_t *e, MlirOperation op) {
  (void)e;
  tw_op_error(op, "has no GPU lowering");
  return false;
}
