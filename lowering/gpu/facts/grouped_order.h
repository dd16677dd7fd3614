/* grouped_order.h - tiles in groups of rows, the order that programs choose for the sake of the L2 cache */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_GROUPED_ORDER_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_GROUPED_ORDER_H

#include "lowering/ir.h"

/* A value, or a known number in place of it. */
typedef struct {
  MlirValue value; /* null: */
  int64_t number;
} tw_factor_t;

/* x divided by `by`, or what is left over. */
typedef struct {
  MlirValue x;
  tw_factor_t by;
} tw_by_factor_t;

bool tw_is_same_factor(tw_factor_t x, tw_factor_t y);
/* x / by, rounded down. */
bool tw_read_quotient(MlirValue value, tw_by_factor_t *out);
/* x % by, as it is of numbers that are not negative: with or without what makes it right for others. */
bool tw_read_rest(MlirValue value, tw_by_factor_t *out);

/* Of the tiles whose numbers a program counts. */
typedef struct {
  tw_factor_t rows, columns;
} tw_tile_extents_t;

/* Whether x and y are the row and column of the tile with this number, in groups of rows: for the numbers from 0 to
 * rows * columns another pair each. */
bool tw_read_grouped_order(MlirValue number, MlirValue x, MlirValue y, tw_tile_extents_t *out);
/* The same of the number that a loop counts: another pair in each step. */
bool tw_is_grouped_order(MlirOperation loop, MlirValue x, MlirValue y);

#endif /* TILEWRIGHT_LOWERING_GPU_FACTS_GROUPED_ORDER_H */
