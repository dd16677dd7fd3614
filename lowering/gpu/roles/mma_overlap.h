/* mma_overlap.h - products that run into the next iteration of their loop
 *
 * Before:
 *
 *   scf.for ... iter_args(%acc) {
 *     %d = tile.async_mma %a, %b, %acc ; %w = tile.mma_wait %d, 0 ; yield %w
 *   }
 *
 * After, each iteration waits for the product of the one before, which is done while the next is issued:
 *
 *   scf.for ... iter_args(%acc) {
 *     %d = tile.async_mma %a, %b, %acc ; %w = tile.mma_wait %d, 1 ; yield %w
 *   }
 *   tile.mma_wait 0
 *
 * So do several that go on with one sum (tile-sink-waits):
 *
 *     %c = tile.async_mma %a, %b, %acc ; %v = tile.mma_wait %c, 1
 *     %d = tile.async_mma %e, %f, %v ; %w = tile.mma_wait %d, 1 ; yield %w
 *
 * One whose left operand the iteration makes in registers is `stepped`: the step of k that reads some of them waits for
 * that of the iteration before, so the Tensor Core has the others to do while the next part is made.
 *
 * What must hold: the product only adds to a value that the loop carries, from which nothing else is made. Beside
 * products whose results the iteration needs, the first wait for one of these is behind all of the iteration before,
 * and the ones that run on need no wait of their own; registers that they read are written behind that wait, and there
 * are enough registers for all of it. */
#ifndef TILEWRIGHT_LOWERING_GPU_ROLES_MMA_OVERLAP_H
#define TILEWRIGHT_LOWERING_GPU_ROLES_MMA_OVERLAP_H

#include "lowering/ir.h"

/* A product that runs into the next iteration. */
typedef struct tw_late_product {
  MlirOperation op, wait;
  intptr_t carried; /* position of the accumulator among what the loop carries */
  bool goes_on;     /* another one goes on with its sum, and has the same wait */
} tw_late_product_t;

/* A loop with such products. */
typedef struct tw_overlap {
  MlirOperation loop;
  tw_late_product_t *products; /* owned */
  int num_products;
  int first;         /* how many products the overlaps before have */
  bool all;          /* they are all products of the loop, and start from zero */
  bool stepped;      /* it is one, on registers that the iteration makes: each step of k waits for its own */
  bool each;         /* they are of one sum, and each has a wait */
  MlirOperation end; /* the wait that also ends those of the iteration before: the last one's, or another product's */
} tw_overlap_t;

typedef struct tw_overlaps {
  tw_overlap_t *at; /* owned */
  int num, num_products;
} tw_overlaps_t;

void tw_find_overlaps(tw_overlaps_t *overlaps, MlirOperation func);
void tw_free_overlaps(tw_overlaps_t *overlaps);

/* The overlap of a loop, or null. */
const tw_overlap_t *tw_overlap_of(const tw_overlaps_t *overlaps, MlirOperation loop);
/* Whether the wait is no more: its product runs on. */
bool tw_drops_wait(const tw_overlaps_t *overlaps, MlirOperation wait);
/* The products that go on behind a wait: those between its own and the wait. Products that run on do not end it. */
int64_t tw_pending(const tw_overlaps_t *overlaps, MlirOperation wait);
/* The op of `block` that ends what the product reads; null if there is none. `late`: in the next iteration. */
MlirOperation tw_product_end(const tw_overlaps_t *overlaps, MlirOperation product, MlirBlock block, bool *late);
/* Whether threads do something between products, that do not merely add up. */
bool tw_works_between_products(const tw_overlaps_t *overlaps, MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_ROLES_MMA_OVERLAP_H */
