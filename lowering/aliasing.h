/* aliasing.h - arrays of a kernel that have no memory in common
 *
 * Whether two arrays overlap is known at the launch only. A pass that has loads from one run before stores to another
 * assumes that they do not, and says so in the launch record (`no_alias`). So does the CPU, where a tile is read strip
 * by strip while another is written. Where each tile is read by the iteration that writes it, and before
 * (gpu/facts/same_tile.h), they may as well be one array that the launch passes twice.
 *
 * The launcher looks at the addresses each time. Where such arrays do overlap it has the kernel compiled once more,
 * with the hint `may_alias`: then nothing is assumed. */
#ifndef TILEWRIGHT_LOWERING_ALIASING_H
#define TILEWRIGHT_LOWERING_ALIASING_H

#include "lowering/ir.h"

/* Whether it may be assumed that two arrays have no memory in common. */
bool tw_may_be_disjoint(MlirValue a, MlirValue b);
/* The same, and notes it if so: the caller relies on it. */
bool tw_assume_disjoint(MlirValue a, MlirValue b);
/* The same, but that the launch may pass one array for both, or that `a` and `b` are one: the caller has seen that each
 * tile is read before it is written. */
bool tw_assume_disjoint_or_same(MlirValue a, MlirValue b);
/* What a caller relies on that has a read of an array come before a write to another one, which may be `in_place`. */
static inline bool tw_assume_unwritten(MlirValue read, MlirValue written, bool in_place) {
  return in_place ? tw_assume_disjoint_or_same(read, written) : tw_assume_disjoint(read, written);
}

#endif /* TILEWRIGHT_LOWERING_ALIASING_H */
