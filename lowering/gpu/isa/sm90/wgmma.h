/* wgmma.h - products that warpgroups compute from shared memory
 *
 * wgmma multiplies 64 rows of lhs, from shared memory or registers, with up to 256 columns of rhs,
 * from shared memory, 32 bytes of k at a time. What lies there has the 128-byte swizzle: groups of
 * eight lines of 128 bytes, the 16-byte chunks of line l at chunk c ^ l (tw_shared_swizzled with
 * 128-byte rows); or that of 64 or 32 bytes, where the tile is no wider. Of 16-bit elements either axis may be the
 * contiguous one; of others only k.
 *
 * tile-select-mma marks the tile.mma that qualify with the attributes below; layouts, promotion
 * and lowering follow the mark. Source: PTX ISA 8.0, "Asynchronous Warpgroup Level Matrix
 * Instructions". */
#ifndef TILEWRIGHT_LOWERING_GPU_ISA_SM90_WGMMA_H
#define TILEWRIGHT_LOWERING_GPU_ISA_SM90_WGMMA_H

#include "lowering/gpu/machine/mma_family.h"

/* Attributes of a tile.mma that becomes a wgmma. FAMILY: "wgmma"; PLACES: one letter for lhs and one for rhs says where
 * each is. TRANSPOSED: the operand in place is the transpose of the tile that is loaded for it. PROMOTED (an integer):
 * so much of k is summed by the instruction, and these sums in float32 outside of it. The kernel has TW_WGMMA, if any op
 * has one. */
#define TW_WGMMA "tile.async_mma" /* of a kernel */
#define TW_MMA_FAMILY "tile.family"
#define TW_MMA_PLACES "tile.places"
#define TW_MMA_TRANSPOSED_LHS "tile.transposed_lhs"
#define TW_MMA_TRANSPOSED_RHS "tile.transposed_rhs"
#define TW_MMA_PROMOTED "tile.promoted"

typedef enum tw_wgmma_place {
  TW_WGMMA_NONE = 0,
  TW_WGMMA_SHARED = 's',    /* in the buffer that it is loaded into */
  TW_WGMMA_REGISTERS = 'r', /* lhs only */
  TW_WGMMA_WRITTEN = 'w',   /* in a buffer of its own, written from registers */
} tw_wgmma_place_t;

/* Whether sums of a product are to be promoted where a wgmma computes it. */
bool tw_wgmma_promotes(MlirOperation mma);

/* Where a product has operand 0 or 1; TW_WGMMA_NONE of a product without mark. */
tw_wgmma_place_t tw_wgmma_place(MlirOperation mma, int operand);

enum {
  TW_WGMMA_ROWS = 64,
  TW_WGMMA_WARPS = 4,
  TW_WGMMA_K_BYTES = 32,
  TW_WGMMA_MIN_COLUMNS = 8,
  TW_WGMMA_NARROW = 64,         /* columns: shared memory is as busy as the Tensor Core, with both operands there */
  TW_WGMMA_SHARED_COLUMNS = 64, /* of a group, at least, where groups share them */
  TW_WGMMA_MAX_COLUMNS = 256,
  TW_WGMMA_LINE_BYTES = 128,       /* at most; 64 or 32 where the tile has no more */
  TW_WGMMA_PROMOTED_COLUMNS = 128, /* at a time: what registers are left for beside the accumulator */
  TW_WGMMA_PROMOTION = 128         /* of k: the tensor core keeps some 14 bits of a sum of 8-bit floats */
};

/* An instruction, by the names that PTX gives to its types. */
typedef struct tw_wgmma_kind {
  const char *in[2], *acc;
  int elem_bits, k; /* of an input; of one instruction */
} tw_wgmma_kind_t;

/* The instruction for these element types; false if there is none. */
bool tw_wgmma_kind_of(const MlirType in[2], const bool is_unsigned[2], MlirType acc, tw_wgmma_kind_t *out);
/* That of a tile.mma. */
bool tw_wgmma_kind_of_mma(MlirOperation mma, tw_wgmma_kind_t *out);

/* How warpgroups share an accumulator: along m as far as it has 64 rows for each, then along n as far as it has 64
 * columns for each (a line of 16-bit columns is not shared out); so many compute the same beyond that. */
typedef struct tw_wgmma_split {
  int m, n, same;
} tw_wgmma_split_t;

/* Whether `num_warps` warps can split an m x n accumulator. */
bool tw_wgmma_split(int64_t m, int64_t n, int num_warps, tw_wgmma_split_t *out);

/* Layouts of the accumulator and of what is in registers before it is written; operands in place get some layout. */
void tw_wgmma_plan(MlirOperation mma, int num_warps, tw_mma_plan_t *plan);

/* An operand that is written by registers: the axis of the tile along which neighbours lie side by side where registers
 * get it from, and that of the lines of the buffer. */
typedef struct tw_wgmma_written {
  int source, line;
  tw_layout_t registers; /* suits both, without bank conflicts */
  MlirType buffer;
} tw_wgmma_written_t;

tw_wgmma_written_t tw_wgmma_written(MlirOperation mma, int operand, int num_warps);

/* Where a product that is not marked yet would have operand 0 or 1, and whether as the transpose of what is loaded;
 * TW_WGMMA_NONE if it can be nowhere. */
tw_wgmma_place_t tw_wgmma_find_place(MlirOperation mma, int operand, bool *transposed);

/* An operand in a buffer: whether its contiguous axis is k, the extents, and the bytes of a line. */
typedef struct tw_wgmma_operand {
  bool k_major;
  int64_t k, other;
  int64_t line;
} tw_wgmma_operand_t;

/* The operand that a buffer's slot holds; `rhs`: k is its first axis (before the transposition).
 * False if its layout is not the instruction's. */
bool tw_wgmma_operand_of(MlirType buffer, bool rhs, bool transposed, int64_t k, int64_t other, tw_wgmma_operand_t *out);

/* Whether a tile.async_mma has its left operand in registers. */
bool tw_wgmma_reads_registers(MlirOperation product);
/* Whether it reads a buffer that threads write to. */
bool tw_wgmma_reads_written(MlirOperation product);
/* Whether a tile.async_mma may be under way while its loop's next iteration begins: not one that is complete at once
 * because it promotes sums; not one on buffers of one slot that threads store to, nor with accumulators that are taken
 * apart between iterations. Registers that it reads must not be written before it is done: that is left to the caller.
 */
bool tw_wgmma_may_run_on(MlirOperation product);

#endif /* TILEWRIGHT_LOWERING_GPU_ISA_SM90_WGMMA_H */
