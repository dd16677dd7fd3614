/* barrier.h - what a tile.barrier orders, groups of asynchronous copies, waits for products
 *
 * The pass that puts a barrier there says it; passes that move or drop barriers read it. An attribute a kind:
 *
 *   {tile.copies}     what asynchronous copies bring, and reads of it; so do the stages of a producer
 *   {tile.products}   what products read, and later writes to their buffers
 *   {tile.stores}     what threads write that products read
 *   none              anything */
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
bool tw_is_barrier(MlirOperation op);
/* 0 of another op. */
unsigned tw_ordered_by(MlirOperation op);
/* Whether it is a barrier that orders nothing else. */
bool tw_orders_only(MlirOperation op, unsigned orders);

/* The copies so far are a group. */
void tw_build_commit(const tw_builder_t *at);
/* At most so many groups are under way behind it. */
void tw_build_copy_wait(const tw_builder_t *at, int64_t pending);
/* Whether it is one of these two. */
bool tw_groups_copies(MlirOperation op);

/* A tile.mma_wait for the first of the values, beside which the others stand: at most so many products are under way
 * behind it. */
MlirOperation tw_build_product_wait(const tw_builder_t *at, intptr_t num, const MlirValue *values, int64_t pending);

#endif /* TILEWRIGHT_LOWERING_GPU_FACTS_BARRIER_H */
