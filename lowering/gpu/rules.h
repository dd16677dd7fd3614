/* rules.h - the rules of tile-to-nvvm, expanded from rules.def */
#ifndef TILEWRIGHT_LOWERING_GPU_RULES_H
#define TILEWRIGHT_LOWERING_GPU_RULES_H

#include "lowering/gpu/emitter.h"

#define TWG_RULE(name, rule) bool rule(tw_emitter_t *e, MlirOperation op);
#include "lowering/gpu/rules.def"
#undef TWG_RULE

#endif
