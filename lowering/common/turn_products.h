/* turn_products.h - sums of products as their transposes */
#ifndef TILEWRIGHT_LOWERING_COMMON_TURN_PRODUCTS_H
#define TILEWRIGHT_LOWERING_COMMON_TURN_PRODUCTS_H

#include "lowering/ir.h"

/* The products that add to carried value `i`, one after the other, where the loop carries a sum of products
 * (tw_sums_products). To be freed. */
tw_ops_t tw_products_of_sum(MlirOperation loop, intptr_t i);
/* The loop sums the transpose of that, by products of the transposed operands in the other order; what reads the sum
 * behind the loop reads the transpose of what it leaves, which is returned. */
MlirValue tw_turn_sum(MlirOperation loop, intptr_t i, const tw_ops_t *products);

#endif /* TILEWRIGHT_LOWERING_COMMON_TURN_PRODUCTS_H */
