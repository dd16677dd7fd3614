/* grouped_order.h - tiles in groups of rows, the order that programs choose for the sake of the L2 cache */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_GROUPED_ORDER_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_GROUPED_ORDER_H

#include "lowering/ir.h"

/* Whether x and y are the row and column of the tile whose number the loop counts, in groups of rows: another pair in
 * each step. */
bool tw_is_grouped_order(MlirOperation loop, MlirValue x, MlirValue y);

#endif /* TILEWRIGHT_LOWERING_GPU_FACTS_GROUPED_ORDER_H */
