/* wgmma.h - products that warpgroups compute from shared memory
 *
 * wgmma multiplies 64 rows of lhs, from shared memory or registers, with up to 256 columns of rhs,
 * from shared memory, 32 bytes of k at a time. What lies there has the 128-byte swizzle: groups of
 * eight lines of 128 bytes, the 16-byte chunks of line l at chunk c ^ l (tw_shared_swizzled with
 * 128-byte rows); or that of 64 or 32 bytes, where the tile is no wider. Of 16-bit elements either axis may be the
 * contiguous one; of others only k.
 *
 * Source: PTX ISA 8.0, "Asynchronous Warpgroup Level Matrix Instructions". */
#ifndef TILEWRIGHT_LOWERING_GPU_ISA_SM90_WGMMA_H
#define TILEWRIGHT_LOWERING_GPU_ISA_SM90_WGMMA_H

#include "lowering/gpu/machine/mma_family.h"

extern const tw_mma_family_t tw_wgmma_family;

enum {
  TW_WGMMA_ROWS = 64,
  TW_WGMMA_WARPS = 4,
  TW_WGMMA_K_BYTES = 32,
  TW_WGMMA_MIN_COLUMNS = 8,
  TW_WGMMA_NARROW = 64,         /* columns: shared memory is as busy as the Tensor Core, with both operands there */
  TW_WGMMA_SHARED_COLUMNS = 64, /* of a group, at least, where groups share them */
  TW_WGMMA_NARROW_COLUMNS = 32, /* the same in narrow groups */
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

/* How warpgroups share an accumulator: along m as far as it has 64 rows for each, then along n as far as it has 64
 * columns for each (a line of 16-bit columns is not shared out; `narrow`: 32, no such lines); so many compute the same
 * beyond that. */
bool tw_wgmma_split(int64_t m, int64_t n, bool narrow, int num_warps, tw_mma_split_t *out);

/* An operand in a buffer: whether its contiguous axis is k, the extents, and the bytes of a line. */
typedef struct tw_wgmma_operand {
  bool k_major;
  int64_t k, other;
  int64_t line;
} tw_wgmma_operand_t;

/* The operand that a buffer's stage holds; `rhs`: k is its first axis (before the transposition).
 * False if its layout is not the instruction's. */
bool tw_wgmma_operand_of(MlirType buffer, bool rhs, bool transposed, int64_t k, int64_t other, tw_wgmma_operand_t *out);

/* emit_wgmma.c */
bool twg_emit_wgmma(struct tw_emitter *e, MlirOperation product);
bool twg_emit_wgmma_wait(struct tw_emitter *e, MlirOperation wait);

#endif /* TILEWRIGHT_LOWERING_GPU_ISA_SM90_WGMMA_H */
