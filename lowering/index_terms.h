/* index_terms.h - indices of elements as sums of products
 *
 *   %rows * %K + %k * 64 + iota        read as     i * 128 * K + iota(axis 0) * K + k * 64 + iota(axis 1)
 *
 * A term is a number times scalars, times what counts up along one axis of the tile, or differs along it in another
 * way. Arithmetic is taken not to overflow, as the front end promises for indices. */
#ifndef TILEWRIGHT_LOWERING_INDEX_TERMS_H
#define TILEWRIGHT_LOWERING_INDEX_TERMS_H

#include "lowering/ir.h"

enum { TW_INDEX_TERMS = 16, TW_INDEX_SCALARS = 4 };

typedef struct tw_index_term {
  int64_t factor;
  MlirValue scalars[TW_INDEX_SCALARS]; /* in one order for all terms */
  int num_scalars;
  int axis;       /* of the tile; -1: the same for all elements */
  MlirValue tile; /* of one axis, what differs along it; null: it counts up from 0 */
} tw_index_term_t;

typedef struct tw_index_sum {
  tw_index_term_t terms[TW_INDEX_TERMS]; /* no two of them differ in the factor alone, and none is 0 */
  int count;
} tw_index_sum_t;

/* A scalar or a tile of integers of 32 bits at least; false where it is no such sum. */
bool tw_read_index_sum(MlirValue value, tw_index_sum_t *out);

/* sum += factor * term, or other; false where it gets too long. */
bool tw_index_add_term(tw_index_sum_t *sum, const tw_index_term_t *term, int64_t factor);
bool tw_index_add(tw_index_sum_t *sum, const tw_index_sum_t *other, int64_t factor);

/* The product; at most one of them may differ by element. */
bool tw_index_multiply(const tw_index_sum_t *x, const tw_index_sum_t *y, tw_index_sum_t *out);

/* The term without `by`'s number and scalars, which it must have; false where it has not. */
bool tw_index_divide(const tw_index_term_t *term, const tw_index_term_t *by, tw_index_term_t *out);

/* Whether all elements are the same. */
bool tw_index_is_uniform(const tw_index_sum_t *sum);

/* Whether no element is negative, since no term is. */
bool tw_index_is_natural(const tw_index_sum_t *sum);

/* Gives what lies along axis d of `op`'s operand the axis of its result: of a broadcast, or of a reshape that inserts
 * or drops ones; false for any other. */
bool tw_index_move_axes(tw_index_sum_t *sum, MlirOperation op);

/* The sum as a scalar, or as a tile of `shape`: an i32. */
MlirValue tw_build_index_sum(const tw_builder_t *at, const tw_index_sum_t *sum, MlirType shape);

#endif /* TILEWRIGHT_LOWERING_INDEX_TERMS_H */
