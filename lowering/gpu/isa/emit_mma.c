/* emit_mma.c - rules: products, which their families emit */
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/isa/families.h"

static bool rule_mma(tw_emitter_t *e, MlirOperation op) {
  if (tw_is_async_mma(op)) {
    tw_op_error(op, "has not become tile.async_mma; run tile-promote-memory first");
    return false;
  }
  return tw_mma_family_of(op)->emit(e, op);
}

/* The asynchronous family of the target; null, with an error, if it has none. */
static const tw_mma_family_t *async_family(MlirOperation op) {
  tw_gpu_target_t target = tw_gpu_target_of(op);
  const tw_mma_family_t *family = tw_async_family(&target);
  if (family == NULL)
    tw_op_error(op, "is asynchronous, and %s has no such products", target.name);
  return family;
}

static bool rule_async_mma(tw_emitter_t *e, MlirOperation op) {
  const tw_mma_family_t *family = async_family(op);
  return family != NULL && family->emit(e, op);
}

static bool rule_mma_wait(tw_emitter_t *e, MlirOperation op) {
  const tw_mma_family_t *family = async_family(op);
  return family != NULL && family->emit_wait(e, op);
}

TWG_RULE(TW_TILE_MMA, rule_mma)
TWG_RULE(TW_TILE_ASYNC_MMA, rule_async_mma)
TWG_RULE(TW_TILE_MMA_WAIT, rule_mma_wait)
