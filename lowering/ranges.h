/* ranges.h - between which numbers an integer lies, as far as the ops that made it tell */
#ifndef TILEWRIGHT_LOWERING_RANGES_H
#define TILEWRIGHT_LOWERING_RANGES_H

#include "lowering/ir.h"

typedef struct tw_range {
  int64_t low, high; /* signed, both included */
} tw_range_t;

/* Of a scalar, or of all elements of a tile. */
tw_range_t tw_range_of(MlirValue value);
static inline bool tw_is_natural(MlirValue value) { return tw_range_of(value).low >= 0; }
/* Whether ranges tell what an i1 is: then *out is that. */
bool tw_is_decided(MlirValue condition, bool *out);

#endif /* TILEWRIGHT_LOWERING_RANGES_H */
