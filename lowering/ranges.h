/* ranges.h - bounds of integers, from the ops that made them */
#ifndef TILEWRIGHT_LOWERING_RANGES_H
#define TILEWRIGHT_LOWERING_RANGES_H

#include "lowering/ir.h"

typedef struct tw_range {
  int64_t low, high; /* signed, both included */
} tw_range_t;

/* Of a scalar, or of all elements of a tile. */
tw_range_t tw_range_of(MlirValue value);
static inline bool tw_is_natural(MlirValue value) { return tw_range_of(value).low >= 0; }
/* Whether the sum of an i32 and a constant stays within 32 bits where the op stands: by the range of the number, or by
 * a condition of a branch around the op, as `x + 1` does where `x < n`. */
bool tw_sum_stays(MlirOperation op, MlirValue x, int64_t by);
/* The least that an integer may be where the op stands: by its range, or that of what a constant is added to, or by
 * conditions of branches around the op. */
int64_t tw_least_at(MlirOperation op, MlirValue x);
/* Whether ranges decide an i1: then *out is its value. */
bool tw_is_decided(MlirValue condition, bool *out);

#endif /* TILEWRIGHT_LOWERING_RANGES_H */
