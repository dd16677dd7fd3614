/* Linear layouts: which thread and register holds which element of a tile.
 *
 * A layout is a linear map over GF(2). Its input is a position in the machine, split into named
 * groups of bits (register, lane, warp, block; or the offset of an element in shared memory); its
 * output is an element of a tile. Every tile has power-of-two extents, so the map is exact: it is
 * one basis vector per input bit, and the image of a position is the XOR of the vectors of its set
 * bits. Blocked, mma, dot-operand, slice and swizzled shared layouts are constructors of this one
 * kind.
 *
 * An element is named by its flat row-major index (the last dimension in the low bits). Because
 * extents are powers of two the coordinates of an element are bit fields of that index: a reshape
 * leaves every basis vector as it is, a permute moves bit fields.
 *
 * Example, 8x8 with 4 lanes that own two neighbouring columns each:
 *   register = [[0,1], [1,0], [2,0], [4,0]], lane = [[0,2], [0,4]]
 *
 * A layout need not be injective: a zero vector replicates (both positions hold the same element).
 * It must be onto: every element has an owner.
 *
 * The library is pure: no MLIR, no globals, no allocation (tw_layout_t is a plain value).
 */
#ifndef TW_LOWERING_LAYOUT_H
#define TW_LOWERING_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TW_LAYOUT_MAX_RANK = 8, TW_LAYOUT_MAX_BITS = 20 };

/* Input groups. A layout of registers uses the first four, a layout of shared memory TW_OFFSET. */
typedef enum tw_input { TW_REGISTER, TW_LANE, TW_WARP, TW_BLOCK, TW_OFFSET, TW_NUM_INPUTS } tw_input_t;

typedef struct tw_layout {
  int rank;
  int log_shape[TW_LAYOUT_MAX_RANK];                 /* log2 of each extent */
  int bits[TW_NUM_INPUTS];                           /* number of input bits of each group */
  uint32_t basis[TW_NUM_INPUTS][TW_LAYOUT_MAX_BITS]; /* flat row-major images */
} tw_layout_t;

/* ---- basics ---------------------------------------------------------------------------------- */

/* The least number of bits with 2^bits >= value: log2 of a power of two. */
static inline int tw_log2(int64_t value) {
  int bits = 0;
  while (((int64_t)1 << bits) < value)
    bits++;
  return bits;
}

/* A layout without input bits for a tile of this shape; extents must be powers of two. */
tw_layout_t tw_layout_empty(int rank, const int64_t *shape);

int64_t tw_layout_extent(const tw_layout_t *l, int dim);
/* log2 of the number of elements. */
int tw_layout_size_bits(const tw_layout_t *l);
/* The lowest bit of dimension `dim` in a flat index. */
int tw_layout_dim_shift(const tw_layout_t *l, int dim);
/* The bits that dimension `dim` takes in a flat index. */
uint32_t tw_layout_dim_mask(const tw_layout_t *l, int dim);
/* The coordinate along `dim` of the element with this flat index. */
uint32_t tw_layout_coord(const tw_layout_t *l, uint32_t flat, int dim);
/* Flat index from coordinates. */
uint32_t tw_layout_flat(const tw_layout_t *l, const uint32_t *coord);

/* Number of registers each thread holds; of lanes, warps. */
int tw_layout_count(const tw_layout_t *l, tw_input_t input);
/* Image of one group alone. */
uint32_t tw_layout_image(const tw_layout_t *l, tw_input_t input, uint32_t value);
/* The element at (register, lane, warp), block 0. */
uint32_t tw_layout_apply(const tw_layout_t *l, uint32_t reg, uint32_t lane, uint32_t warp);
/* Appends an input bit, if there is room: a layout that lacks one is not onto. No pass gets tiles that need more
 * (tile-strip-mine). */
void tw_layout_push(tw_layout_t *l, tw_input_t input, uint32_t image);

bool tw_layout_equal(const tw_layout_t *a, const tw_layout_t *b);
/* Every element has an owner. */
bool tw_layout_is_onto(const tw_layout_t *l);
/* No element has two owners. */
bool tw_layout_is_injective(const tw_layout_t *l);

/* ---- text ------------------------------------------------------------------------------------ */

/* Writes "register = [[0, 1]], lane = [], ..." (what stands inside #tile.linear<...>), at most
 * `size` bytes with the terminator; returns the length it needs. Groups without bits are left out. */
size_t tw_layout_print(const tw_layout_t *l, char *out, size_t size);
/* Reads that text for a tile of the given shape. On failure returns false and points *error at a
 * static sentence. */
bool tw_layout_parse(const char *text, int rank, const int64_t *shape, tw_layout_t *out, const char **error);

/* ---- constructors ---------------------------------------------------------------------------- */

/* Blocked: each thread owns a size_per_thread block, lanes tile threads_per_warp, warps tile
 * warps_per_cta, each filled along order[0] (the fastest dimension) first; what remains of the tile
 * repeats in further registers. Where the tile is smaller, the surplus bits replicate. */
tw_layout_t tw_layout_blocked(int rank, const int64_t *shape, const int *size_per_thread, const int *threads_per_warp,
                              const int *warps_per_cta, const int *order);

/* The blocked layout for access to memory that is contiguous along order[0]: each thread has
 * `vector` neighbouring elements, lanes run along order[0] first, then warps. */
tw_layout_t tw_layout_coalesced(int rank, const int64_t *shape, int vector, int num_warps, const int *order);

/* Accumulator of mma.sync m16n8 (32-bit) for an MxN (or BxMxN) tile, warps_m x warps_n warps. */
tw_layout_t tw_layout_mma_acc(int rank, const int64_t *shape, int warps_m, int warps_n);
/* Operand A (MxK) or B (KxN, operand = 1) of mma.sync for elements of `elem_bits` bits whose
 * k-step is 256 bits wide (m16n8k16 at 16 bits, k8 at 32, k32 at 8), for an accumulator with the
 * same warp split. Warps that differ along the other dimension replicate. */
tw_layout_t tw_layout_dot_operand(int rank, const int64_t *shape, int operand, int elem_bits, int warps_m, int warps_n);

/* ---- transfer functions (how a shape op moves a layout) ---------------------------------------- */

/* The layout of a reduction's result: dimension `dim` has extent 1 (keep) or is gone. Registers
 * that become copies of others are dropped. */
tw_layout_t tw_layout_slice(const tw_layout_t *l, int dim, bool keep);
/* The layout an operand of shape `shape` (extents equal or 1) has when its broadcast has `l`. */
tw_layout_t tw_layout_unbroadcast(const tw_layout_t *l, const int64_t *shape);
/* A layout of the broadcast result for an operand with layout `l`: extents of 1 grow to those of
 * `shape` along new registers, after replicated lanes and warps have been put to use. */
tw_layout_t tw_layout_broadcast(const tw_layout_t *l, const int64_t *shape);
/* Of a part of a tile, from that of the tile: each element stays with its owner, or with those of the same place in
 * other parts. And of the tile, such that every thread has the same place of all parts as it has of one: the numbers of
 * parts are the last bits of registers, those of the last dimension first. */
tw_layout_t tw_layout_extract(const tw_layout_t *l, const int64_t *shape);
tw_layout_t tw_layout_unextract(const tw_layout_t *l, const int64_t *shape);
/* Result of a permute: result dimension i is operand dimension perm[i]; and its inverse. */
tw_layout_t tw_layout_permute(const tw_layout_t *l, const int *perm);
tw_layout_t tw_layout_unpermute(const tw_layout_t *l, const int *perm);
/* Same elements in row-major order under another shape. */
tw_layout_t tw_layout_reshape(const tw_layout_t *l, int rank, const int64_t *shape);

/* ---- algebra --------------------------------------------------------------------------------- */

/* A machine position, group by group. */
typedef struct tw_position {
  uint32_t at[TW_NUM_INPUTS];
} tw_position_t;

/* A right inverse: a position that owns the element, reached by registers where possible, then
 * lanes, then warps; replicated bits are 0. Linear: inverse(a ^ b) = inverse(a) ^ inverse(b). */
typedef struct tw_inverse {
  tw_position_t of_bit[32]; /* position of the element with this one bit set */
  int bits;
} tw_inverse_t;
bool tw_layout_invert(const tw_layout_t *l, tw_inverse_t *out);
tw_position_t tw_inverse_apply(const tw_inverse_t *inv, uint32_t flat);

/* b after a^-1: for every position of `to`, where `from` holds that element. Basis vectors are
 * positions of `from`; chosen so that lane and warp stay where they are whenever possible. */
typedef struct tw_conversion {
  tw_position_t basis[TW_NUM_INPUTS][TW_LAYOUT_MAX_BITS];
  int bits[TW_NUM_INPUTS];
} tw_conversion_t;
bool tw_layout_conversion(const tw_layout_t *from, const tw_layout_t *to, tw_conversion_t *out);
tw_position_t tw_conversion_apply(const tw_conversion_t *c, uint32_t reg, uint32_t lane, uint32_t warp);

typedef enum tw_conversion_class {
  TW_CONVERT_NONE,     /* the same layout */
  TW_CONVERT_REGISTER, /* each thread has what it needs: renaming of registers */
  TW_CONVERT_SELECT,   /* each thread has it, but in a register that depends on the lane or warp */
  TW_CONVERT_SHUFFLE,  /* another lane of the same warp has it */
  TW_CONVERT_SHARED    /* another warp has it: a round trip through shared memory */
} tw_conversion_class_t;
tw_conversion_class_t tw_layout_classify(const tw_layout_t *from, const tw_layout_t *to);
/* The same of a conversion that exists, between layouts that differ. */
tw_conversion_class_t tw_conversion_classify(const tw_conversion_t *c);

/* Shuffles of one 32-bit word that a TW_CONVERT_SHUFFLE takes in each thread. */
int tw_conversion_shuffles(const tw_conversion_t *c);

/* ---- memory access --------------------------------------------------------------------------- */

/* log2 of the number of consecutive elements along `dim` that a thread holds, aligned, at most
 * `max_bits`; regs[i] gets the register bit that moves by 2^i elements. */
int tw_layout_vector_bits(const tw_layout_t *l, int dim, int max_bits, int regs[TW_LAYOUT_MAX_BITS]);

/* Shared memory in row-major order, order[0] fastest, without swizzle. */
tw_layout_t tw_shared_rowmajor(int rank, const int64_t *shape, const int *order);
/* The XOR swizzle that ldmatrix, copy engines and asynchronous products agree on: rows of `row_bytes` (32, 64 or 128)
 * along order[0], 16-byte chunks XORed with the row; wider tiles are split into panels of row_bytes. */
tw_layout_t tw_shared_swizzled(int rank, const int64_t *shape, const int *order, int elem_bits, int row_bytes);
/* A shared layout for a value that is written with layout `writer` and read with `reader`: vectors
 * as wide as both allow (at most 128 bits), bank conflicts as few as found. *vector_bits gets log2
 * of the elements in one access. */
tw_layout_t tw_shared_for(const tw_layout_t *writer, const tw_layout_t *reader, int elem_bits, int *vector_bits);
/* Passes over the banks that one warp-wide access of 2^vector_bits elements a lane takes, relative
 * to the least possible (1 = free of conflicts). */
int tw_shared_conflicts(const tw_layout_t *shared, const tw_layout_t *distributed, int elem_bits, int vector_bits);
/* log2 of the elements that lie in consecutive registers and consecutive offsets alike;
 * regs[i] gets the register bit that moves the offset by 2^i. */
int tw_shared_vector_bits(const tw_layout_t *shared, const tw_layout_t *distributed, int max_bits,
                          int regs[TW_LAYOUT_MAX_BITS]);

/* ---- axes ---------------------------------------------------------------------------------------- */

/* Who holds each bit of the coordinate along an axis, from low to high. */
typedef struct tw_axis_bits {
  int count;
  struct {
    tw_input_t input;
    int bit;
  } at[TW_LAYOUT_MAX_BITS];
} tw_axis_bits_t;

/* False where a bit has no single holder, or the warps' bits do not lie side by side: no order for a scan. */
bool tw_layout_axis_bits(const tw_layout_t *layout, int axis, tw_axis_bits_t *out);
/* Whether, along a dimension, the coordinates of thread and register add up: no bit belongs to both. */
bool tw_layout_disjoint(const tw_layout_t *l, int dim);

/* Warp bits along an axis, as a mask; their number in *count. */
uint32_t tw_layout_warps_along(const tw_layout_t *l, int axis, int *count);
/* Bits of an input that lead to no other element, as a mask. */
uint32_t tw_layout_copies(const tw_layout_t *l, tw_input_t input);
/* Bits of an input among the first n bits of the axis. */
uint32_t tw_axis_bits_done(const tw_axis_bits_t *bits, tw_input_t input, int n);
/* Where the run of bits of one input ends that begins at `from`. */
int tw_axis_run_end(const tw_axis_bits_t *bits, int from);

#endif
