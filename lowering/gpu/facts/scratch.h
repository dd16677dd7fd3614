/* scratch.h - shared memory that ops need for themselves */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_SCRATCH_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_SCRATCH_H

#include "lowering/ir.h"
#include "lowering/layout/layout.h"
#include "tilewright/dialect.h"

/* Bytes of shared memory that an op needs for itself: by the function that its definition names as `scratch`. */
int64_t tw_scratch_bytes(MlirOperation op);
/* Value of the attribute tile.scratch, where that lies; 0 where there is none. */
int64_t tw_scratch_offset(MlirOperation op);
/* Whether a reduction gives an index. */
bool tw_reduces_to_index(tw_reduce_kind_t kind);
/* Bytes of a partial result in shared memory. */
int64_t tw_part_bytes(MlirType held);
/* Where the indices begin, behind so many partial results of these bytes. */
int64_t tw_reduce_index_offset(int64_t count, int64_t part_bytes);
/* log2 of the blocks that reduce together. */
int tw_across_bits(MlirOperation op);
/* Where the barrier lies that counts what other blocks send, of a reduction across blocks. */
int64_t tw_across_barrier_offset(MlirOperation op);

/* Where the total of an item lies in shared memory: linear in those bits of register, lane and warp that tell items
 * apart, the totals of the warps of one run side by side. */
typedef struct tw_scan_exchange {
  uint32_t step[TW_NUM_INPUTS][TW_LAYOUT_MAX_BITS];
  int64_t count;
} tw_scan_exchange_t;

/* That of the run of warps from bit `from` to `to`. */
tw_scan_exchange_t tw_scan_exchange_of(const tw_layout_t *l, const tw_axis_bits_t *bits, int from, int to);
/* The layout of a scanned tile, and what holds the bits along its axis; false if a scan cannot take it. */
bool tw_read_scan(MlirOperation op, tw_layout_t *layout, tw_axis_bits_t *bits);
/* Where the items of one of its values begin in what it needs, of `count` items in all. */
int64_t tw_scan_part_offset(MlirOperation op, int64_t count, int part);
/* Bytes of a tile that lies there whole; 0 of a scalar. */
int64_t tw_shared_tile_bytes(MlirValue value);

#endif /* TILEWRIGHT_LOWERING_GPU_FACTS_SCRATCH_H */
