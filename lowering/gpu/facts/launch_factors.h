/* launch_factors.h - numbers that a launch can compute from its words: products of extents and scalars */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_LAUNCH_FACTORS_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_LAUNCH_FACTORS_H

#include "lowering/launch_record.h"

typedef struct tw_factors {
  tw_extent_factor_t at[TW_EXTENT_FACTORS];
  uint32_t count;
  int64_t constant; /* one more factor */
} tw_factors_t;

static const tw_factors_t tw_no_factors = {.constant = 1};

/* Multiplies *out by a scalar; false where it is no product of (word + number) / number. */
bool tw_read_factors(MlirOperation func, MlirValue value, tw_factors_t *out);
/* As the launch record has it, a list with the constant in it; false where it is too long. */
bool tw_write_factors(const tw_factors_t *product, tw_extent_factor_t *out, uint32_t *count);

#endif /* TILEWRIGHT_LOWERING_GPU_FACTS_LAUNCH_FACTORS_H */
