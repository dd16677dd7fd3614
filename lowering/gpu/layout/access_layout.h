/* access_layout.h - layouts of accesses to global memory */
#ifndef TILEWRIGHT_LOWERING_GPU_LAYOUT_ACCESS_LAYOUT_H
#define TILEWRIGHT_LOWERING_GPU_LAYOUT_ACCESS_LAYOUT_H

#include "dialect/layouts.h"
#include "lowering/ir.h"

/* What a layout is chosen for. */
typedef struct tw_wish {
  int contiguous;   /* dimension whose neighbours are neighbours in memory; -1: none */
  int vector_bits;  /* log2 of the elements of one access along it */
  uint32_t reduced; /* dimensions along which reductions run */
  int num_warps;
  int across;      /* another dimension, along which the same elements are contiguous in another access ... */
  int across_bits; /* ... that takes 2^n at a time; 0: none */
  int deep_bits;   /* of the contiguous dimension are left to registers, not to lanes, as log2 */
} tw_wish_t;

/* Lanes run along the contiguous dimension first, each with a vector; warps go to dimensions that
 * are not reduced, so that a reduction stays within a warp where it can; the rest are registers. A thread gets a patch
 * of both dimensions where they differ between accesses (a transpose): what then goes through shared memory goes by
 * vectors on both sides. */
tw_layout_t tw_choose_blocked(int rank, const int64_t *shape, const tw_wish_t *wish);

/* The wish of one tile.load, tile.store, tile.gather or tile.scatter of a tile of this rank. */
tw_wish_t tw_wish_of_access(MlirOperation op, int rank, int num_warps);

/* True when every basis vector lies along `axis` or across it, as a reduction needs. */
bool tw_layout_splits_axis(const tw_layout_t *layout, int axis);

#endif
