/* rules.h - how the rules of tile-to-nvvm are declared, and what they share */
#ifndef TILEWRIGHT_LOWERING_GPU_EMIT_RULES_H
#define TILEWRIGHT_LOWERING_GPU_EMIT_RULES_H

#include "lowering/gpu/emit/emitter.h"

/* A rule stands behind its function, as TWG_RULE(TW_TILE_LOAD, rule_load); tools/twgen.py finds these rows, so that the
 * name of the macro comes first in its line. */
#define TWG_RULE(kind, rule) const tw_rule_t twg_rule_of_##kind = (rule);
#define TWG_ROW(kind) extern const tw_rule_t twg_rule_of_TW_##kind;
#include "GpuRules.inc"
#undef TWG_ROW

/* ---- what rules share (arith.c) ------------------------------------------------------------------- */

/* The rule of an op on two floats that LLVM has, too. */
bool twg_rule_float_binary(tw_emitter_t *e, MlirOperation op);
/* f32 quotient to 2 ulp. */
MlirValue twg_divide_fast(tw_emitter_t *e, MlirValue x, MlirValue y);
/* f32 inverse to 1 ulp of what is above 2^-126; 0 above 2^126. */
MlirValue twg_inverse_of_large(tw_emitter_t *e, MlirValue x);

#endif
