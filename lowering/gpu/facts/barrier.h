/* barrier.h - what a tile.barrier orders: said by the pass that puts it there, read by those that move or drop it
 *
 *   tile.barrier {tile.copies}                   what asynchronous copies bring, and reads of it; stages of a producer
 * do, too tile.barrier {tile.products}                 what products read, and later writes to their buffers
 *   tile.barrier {tile.products, tile.stores}    ... which threads write
 *   tile.barrier                   anything */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_BARRIER_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_BARRIER_H

#include "lowering/ir.h"

enum {
  TW_ORDERS_COPIES = 1,
  TW_ORDERS_PRODUCTS = 2,
  TW_ORDERS_STORES = 4,
  TW_ORDERS_ANYTHING = 15 /* and more than these */
};

MlirOperation tw_build_barrier(const tw_builder_t *at, unsigned orders);
/* 0 of another op. */
unsigned tw_ordered_by(MlirOperation op);
/* Whether it is a barrier that orders nothing else. */
bool tw_orders_only(MlirOperation op, unsigned orders);

#endif /* TILEWRIGHT_LOWERING_GPU_FACTS_BARRIER_H */
