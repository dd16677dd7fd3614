/* alive.h - how much of what a block computes is needed at a time */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_ALIVE_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_ALIVE_H

#include "lowering/ir.h"

/* Whether the op only gives its operand another name. */
static inline bool tw_renames(MlirOperation op) { return tw_op_form(op) == TW_FORM_VIEW && !tw_op_is_conversion(op); }
/* The last op of a block, other than `but`, that reads the value by any name, or holds one that does; null if none
 * does.
 */
MlirOperation tw_last_reader(MlirValue value, MlirBlock block, MlirOperation but);
/* Whether nothing reads the value before `user` does, in its block. */
bool tw_is_first_reader(MlirValue value, MlirOperation user);
/* The most of the block's arguments and values, by what each takes, that are needed at a time. */
int64_t tw_most_alive(MlirBlock block, int64_t (*takes)(MlirValue value));

#endif /* TILEWRIGHT_LOWERING_GPU_FACTS_ALIVE_H */
