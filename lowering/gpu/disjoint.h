/* disjoint.h - arrays of a kernel that have no memory in common
 *
 * Whether two arrays overlap is known at the launch only. A pass that has loads from one run before stores to another
 * assumes that they do not, and says so on the module; each array by the word of its pointer, its rank, and the bits of
 * an element:
 *
 *   tile.disjoint = [array<i32: 0, 4, 16>, array<i32: 27, 4, 16>, ...]      // pairs
 *
 * The launcher looks at the addresses each time. Where such arrays do overlap it has the kernel compiled once more,
 * with `tile.may_alias` on the module: then nothing is assumed. */
#ifndef TILEWRIGHT_LOWERING_GPU_DISJOINT_H
#define TILEWRIGHT_LOWERING_GPU_DISJOINT_H

#include "lowering/ir.h"

#define TW_DISJOINT "tile.disjoint"
#define TW_MAY_ALIAS "tile.may_alias"

/* Whether it may be assumed that two arrays have no memory in common. */
bool tw_may_be_disjoint(MlirValue a, MlirValue b);
/* The same, and notes it if so: the caller relies on it. */
bool tw_assume_disjoint(MlirValue a, MlirValue b);

#endif /* TILEWRIGHT_LOWERING_GPU_DISJOINT_H */
