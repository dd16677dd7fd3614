/* index_facts.h - what is known of the neighbours in a tile of indices: whether they count up, or are equal */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_INDEX_FACTS_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_INDEX_FACTS_H

#include "lowering/ir.h"

/* Whether a tile has the numbers from 0 on, one after the other. */
bool tw_counts_from_zero(MlirValue tile);
/* The axis along which a tile counts up from 0, the same along others; -1: there is none. */
int tw_counted_axis(MlirValue tile);
/* Aligned groups of how many neighbours along `dim` are equal in a tile of indices, or a mask, as log2. */
int tw_equal_neighbours(MlirValue tile, int dim);
/* Neighbours that one access of a tile.gather, tile.scatter or tile.async_gather may take, as log2, and the dimension
 * of the tile along which they lie (-1 and 0: one at a time). They are aligned, and inside or outside of the array
 * together. */
int tw_gather_vector_bits(MlirOperation op, int *dim);
/* Aligned groups of 2^n neighbours along `dim`, n <= run, lie 2^step elements apart from each other, the first of them
 * `first` elements behind a multiple of 2^min(n + step, vector) of them. An access that begins at a multiple of
 * 2^vector elements and takes as many is inside of the array, or outside. All but `dim` and `first` are log2. */
typedef struct {
  int dim, run, step, vector;
  int64_t first;
} tw_spread_t;
/* False where neighbours of a gather or scatter are not known to lie so, or further apart than an access reaches. */
bool tw_gather_spread(MlirOperation op, tw_spread_t *out);
/* What an index is made of by adding constants, whose sum *by becomes. */
MlirValue tw_index_root(MlirValue index, int64_t *by);
/* Whether two gathers read the same array at indices that differ in constants along its contiguous axis only. */
bool tw_gathers_adjoin(MlirOperation x, MlirOperation y);
/* The scatter that stores to the elements between those of this one, right before or behind it; null if there is none.
 * The first of the two has the even ones. */
MlirOperation tw_scatter_pair(MlirOperation op, bool *is_odd);
/* Neighbours along `dim` that lie side by side in the array, however many an access takes, as log2; aligned. */
int tw_gather_run_bits(MlirOperation op, int dim);
/* Whether a tile.gather's indices count up, so that only a mask or an extent may part neighbours. */
bool tw_gather_may_end_within_vector(MlirOperation op);

/* On a sum that is an index: the second operand is the same natural number for all elements, the first is made outside
 * of the loop around, and a sum beyond 2^31 is beyond any array (hoist_indices.c). */
#define TW_HOISTED "tile.hoisted"

#endif
