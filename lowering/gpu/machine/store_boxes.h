/* store_boxes.h - a tile in registers as boxes that the tensor memory accelerator stores
 *
 * A box is the part of the tile that the four warps of a warpgroup own together, at most 128 bytes long along the
 * contiguous dimension; it lies in shared memory with 16-byte chunks exchanged, as the accelerator expects it. A
 * warpgroup has one box or several, selected by registers; groups have the same boxes at other places of the tile. */
#ifndef TILEWRIGHT_LOWERING_GPU_MACHINE_STORE_BOXES_H
#define TILEWRIGHT_LOWERING_GPU_MACHINE_STORE_BOXES_H

#include "lowering/layout/layout.h"

enum { TW_STORE_GROUP_WARP_BITS = 2 };

typedef struct tw_store_boxes {
  int64_t shape[TW_LAYOUT_MAX_RANK];  /* of a box */
  tw_layout_t box;                    /* which thread holds what of one; groups repeat it */
  int inside[TW_LAYOUT_MAX_BITS];     /* the tile's register bits that are those of `box`, */
  int outside[TW_LAYOUT_MAX_BITS];    /* and those that select the box ... */
  int num_outside;                    /* */
  uint32_t step[TW_LAYOUT_MAX_BITS];  /* ... by moving so far in the tile (flat index) */
  uint32_t group[TW_LAYOUT_MAX_BITS]; /* as the bits of a group's number do */
  int group_bits;
} tw_store_boxes_t;

/* False when the tile has no such form. `inner`: its contiguous dimension. */
bool tw_store_boxes_of(const tw_layout_t *tile, int inner, int elem_bits, tw_store_boxes_t *out);

/* The tile's register that is register `r` of box `number`. */
int tw_store_boxes_register(const tw_store_boxes_t *boxes, int number, int r);
/* Flat index of the first element of box `number` of group 0. */
uint32_t tw_store_boxes_start(const tw_store_boxes_t *boxes, int number);

#endif /* TILEWRIGHT_LOWERING_GPU_MACHINE_STORE_BOXES_H */
