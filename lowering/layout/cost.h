/* cost.h - what layouts cost: time of a warp, counted from the instructions that the lowering emits
 *
 * The unit is a slot: what one instruction of arithmetic takes of a scheduler. What others take is known of each chip
 * (tilewright/machine.h). Every warp of a block does the same, so that one warp's slots compare layouts of a block of
 * so many warps. Pure C, no MLIR. */
#ifndef TW_LOWERING_LAYOUT_COST_H
#define TW_LOWERING_LAYOUT_COST_H

#include "lowering/layout/layout.h"
#include "tilewright/machine.h"

enum {
  TW_SLOTS_ACCESS = 4, /* address, predicate and issue of an access to global memory */
  TW_MAX_SHUFFLES = 32 /* of one conversion; from there on it goes through shared memory */
};

enum { TW_SECTOR_BITS = TW_SECTOR_BYTES * 8, TW_LINE_BITS = TW_LINE_BYTES * 8 };

/* Registers that hold no copy of another one of the thread. */
int tw_layout_own_registers(const tw_layout_t *l);

/* Whether elements change their thread by way of shared memory, with a barrier before and one in between. */
bool tw_converts_through_shared(const tw_layout_t *from, const tw_layout_t *to);
int64_t tw_conversion_slots(const tw_machine_t *m, const tw_layout_t *from, const tw_layout_t *to, int elem_bits);

/* Writing a tile into shared memory or reading it from there, by vectors as wide as the two layouts allow. */
int64_t tw_shared_access_slots(const tw_machine_t *m, const tw_layout_t *shared, const tw_layout_t *side,
                               int elem_bits);

/* An access to global memory by vectors of up to 2^vector_bits elements along dimension `contiguous`, whose neighbours
 * are neighbours in memory (-1: none are). `tw_access_pieces` counts the sectors or lines (pieces of `piece_bits`) that
 * one instruction of a warp touches. */
int tw_access_pieces(const tw_layout_t *l, int contiguous, int elem_bits, int piece_bits);
int64_t tw_access_slots(const tw_machine_t *m, const tw_layout_t *l, int contiguous, int vector_bits, int elem_bits);

/* The same of a row whose elements come from shared memory, or go there, by vectors of so many. */
int64_t tw_row_slots(const tw_machine_t *m, const tw_layout_t *l, int contiguous, int vector_bits, int elem_bits);

/* A reduction along an axis: registers, then lanes, then warps by way of shared memory. */
int64_t tw_reduction_slots(const tw_machine_t *m, const tw_layout_t *l, int axis);
/* Sums so far along an axis: the same steps, for every element. */
int64_t tw_scan_slots(const tw_machine_t *m, const tw_layout_t *l, int axis);

#endif
