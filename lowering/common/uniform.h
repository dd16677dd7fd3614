/* uniform.h - which values of a SIMT kernel are the same in all threads of a block */
#ifndef TILEWRIGHT_LOWERING_COMMON_UNIFORM_H
#define TILEWRIGHT_LOWERING_COMMON_UNIFORM_H

#include "lowering/ir.h"

typedef struct {
  MlirOperation func;
  tw_map_t varying; /* a set: what may differ */
  bool lockstep;    /* threads of a strip read together: what is read from one place is the same */
  bool changed;
} tw_uniform_t;

/* Looks at a whole kernel. */
void tw_uniform_find(tw_uniform_t *u, MlirOperation func);
/* Looks at a loop over threads whose iterations run side by side: what differs begins with its variable. */
void tw_uniform_find_in(tw_uniform_t *u, MlirOperation loop);
void tw_uniform_free(tw_uniform_t *u);
bool tw_uniform_has(const tw_uniform_t *u, MlirValue value);
bool tw_uniform_has_operands(const tw_uniform_t *u, MlirOperation op); /* all of them */
/* Whether all threads of the block come to an op together, each time: no branch or loop around it parts them. */
bool tw_uniform_reaches(const tw_uniform_t *u, MlirOperation op);
/* Whether an op has no effects, nor have those in its regions, so that it may be computed once for all threads. */
bool tw_is_pure_tree(MlirOperation op);

#endif /* TILEWRIGHT_LOWERING_COMMON_UNIFORM_H */
