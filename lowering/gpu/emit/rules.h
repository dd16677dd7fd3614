/* rules.h - the rules of tile-to-nvvm, expanded from rules.def */
#ifndef TILEWRIGHT_LOWERING_GPU_EMIT_RULES_H
#define TILEWRIGHT_LOWERING_GPU_EMIT_RULES_H

#include "lowering/gpu/emit/emitter.h"

#define TWG_RULE(kind, rule) bool rule(tw_emitter_t *e, MlirOperation op);
#include "lowering/gpu/emit/rules.def"
#undef TWG_RULE

/* ---- what rules share (arith.c) ------------------------------------------------------------------- */

/* Emits an op of one element: operands in, result out. */
typedef MlirValue (*twg_element_fn_t)(tw_emitter_t *e, MlirOperation op, const MlirValue *operands);
/* Applies `fn` to each register. Registers that hold the same value (splats) share one result. */
bool twg_each_register(tw_emitter_t *e, MlirOperation op, twg_element_fn_t fn);
/* Two f32 to f16 or bf16. */
void twg_truncate_pair(tw_emitter_t *e, MlirType to, const MlirValue x[2], MlirValue out[2]);
/* f32 quotient to 2 ulp. */
MlirValue twg_divide_fast(tw_emitter_t *e, MlirValue x, MlirValue y);
/* f32 inverse to 1 ulp of what is above 2^-126; 0 above 2^126. */
MlirValue twg_inverse_of_large(tw_emitter_t *e, MlirValue x);

#endif
