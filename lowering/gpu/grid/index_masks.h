/* index_masks.h - masks of accesses, as comparisons of indices */
#ifndef TILEWRIGHT_LOWERING_GPU_GRID_INDEX_MASKS_H
#define TILEWRIGHT_LOWERING_GPU_GRID_INDEX_MASKS_H

#include "lowering/index_terms.h"

enum { TW_MASK_COMPARISONS = 8 };

/* A mask is a conjunction of parts, and these, as far as they are read, are conjunctions of comparisons. */
typedef struct tw_index_mask {
  struct {
    tw_index_sum_t below; /* 0 where it holds, along the axes of the tile */
    int part;
  } comparisons[TW_MASK_COMPARISONS];
  int count;
  struct {
    MlirValue mask; /* of the tile's shape */
    bool is_needed; /* not read, or a comparison of it has not been met */
  } parts[TW_MASK_COMPARISONS];
  int num_parts;
} tw_index_mask_t;

void tw_read_mask(MlirValue mask, tw_index_mask_t *out);
/* The conjunction of the parts that are needed; null if none is. */
MlirValue tw_build_mask(const tw_builder_t *at, const tw_index_mask_t *mask);

#endif /* TILEWRIGHT_LOWERING_GPU_GRID_INDEX_MASKS_H */
