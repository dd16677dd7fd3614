/* index_facts.h - what is known of the neighbours in a tile of indices: whether they count up, or are equal */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_INDEX_FACTS_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_INDEX_FACTS_H

#include "lowering/ir.h"

/* Neighbours that one access of a tile.gather, tile.scatter or tile.async_gather may take, as log2, and the dimension
 * of the tile along which they lie (-1 and 0: one at a time). They are aligned, and inside or outside of the array
 * together. */
int tw_gather_vector_bits(MlirOperation op, int *dim);
/* Neighbours along `dim` that lie side by side in the array, however many an access takes, as log2; aligned. */
int tw_gather_run_bits(MlirOperation op, int dim);
/* Whether a tile.gather's indices count up, so that only a mask or an extent may part neighbours. */
bool tw_gather_may_end_within_vector(MlirOperation op);

/* On a sum that is an index: the second operand is the same natural number for all elements, the first is made outside
 * of the loop around, and a sum beyond 2^31 is beyond any array (hoist_indices.c). */
#define TW_HOISTED "tile.hoisted"

#endif
