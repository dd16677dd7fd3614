/* wgmma.h - products that warpgroups compute from shared memory
 *
 * wgmma multiplies 64 rows of lhs, from shared memory or registers, with up to 256 columns of rhs,
 * from shared memory. What lies there has the 128-byte swizzle: groups of eight lines of 128 bytes,
 * the 16-byte chunks of line l at chunk c ^ l (tw_shared_swizzled with 128-byte rows). Either axis of
 * an operand may be the contiguous one.
 *
 * tile-select-wgmma marks the tile.mma that qualify with the attributes below; layouts, promotion
 * and lowering follow the mark. Source: PTX ISA 8.0, "Asynchronous Warpgroup Level Matrix
 * Instructions". */
#ifndef TILEWRIGHT_LOWERING_GPU_SM90_WGMMA_H
#define TILEWRIGHT_LOWERING_GPU_SM90_WGMMA_H

#include "lowering/gpu/sm80/mma.h"

/* Unit attributes of a tile.mma: it becomes a wgmma; and its operand is the transpose of the tile
 * that is loaded for it. The module has TW_WGMMA too, if any op has. */
#define TW_WGMMA "tile.wgmma"
#define TW_WGMMA_TRANSPOSED_LHS "tile.wgmma_transposed_lhs"
#define TW_WGMMA_TRANSPOSED_RHS "tile.wgmma_transposed_rhs"

enum { TW_WGMMA_ROWS = 64, TW_WGMMA_K = 16, TW_WGMMA_MAX_COLUMNS = 256, TW_WGMMA_LINE_BYTES = 128 };

/* How warpgroups share an accumulator: along m as far as it has 64 rows for each, then along n. */
typedef struct tw_wgmma_split {
  int m, n;
} tw_wgmma_split_t;

/* Whether `num_warps` warps can split an m x n accumulator. */
bool tw_wgmma_split(int64_t m, int64_t n, int num_warps, tw_wgmma_split_t *out);

/* Layouts of the accumulator, of lhs in registers, and some layout for rhs, which never is. */
void tw_wgmma_plan(MlirOperation mma, int num_warps, tw_mma_plan_t *plan);

/* An operand in a buffer: whether its contiguous axis is k, and the other axis' extent. */
typedef struct tw_wgmma_operand {
  bool k_major;
  int64_t k, other; /* extents */
} tw_wgmma_operand_t;

/* The operand that a buffer's slot holds; `rhs`: k is its first axis (before the transposition).
 * False if its layout is not the instruction's. */
bool tw_wgmma_operand_of(MlirType buffer, bool rhs, bool transposed, int64_t k, int64_t other, tw_wgmma_operand_t *out);

#endif /* TILEWRIGHT_LOWERING_GPU_SM90_WGMMA_H */
