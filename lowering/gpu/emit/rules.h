/* rules.h - the rules of tile-to-nvvm, expanded from rules.def */
#ifndef TILEWRIGHT_LOWERING_GPU_EMIT_RULES_H
#define TILEWRIGHT_LOWERING_GPU_EMIT_RULES_H

#include "lowering/gpu/emit/emitter.h"

#define TWG_RULE(kind, rule) bool rule(tw_emitter_t *e, MlirOperation op);
#include "lowering/gpu/emit/rules.def"
#undef TWG_RULE

/* ---- what rules share (arith.c) ------------------------------------------------------------------- */

/* f32 quotient to 2 ulp. */
MlirValue twg_divide_fast(tw_emitter_t *e, MlirValue x, MlirValue y);
/* f32 inverse to 1 ulp of what is above 2^-126; 0 above 2^126. */
MlirValue twg_inverse_of_large(tw_emitter_t *e, MlirValue x);

#endif
