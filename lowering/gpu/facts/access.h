/* access.h - where a tile lies in an array: facts for choosing layouts, and the addresses and
 * predicates of one thread's accesses (used by loads, stores and asynchronous copies) */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_ACCESS_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_ACCESS_H

#include "lowering/gpu/emit/emitter.h"

enum { TW_MAX_ACCESS_BITS = 128 };

/* ---- facts (argument attributes of the kernel) ----------------------------------------------------- */

/* The array operand of a load, store or async_copy and the number of its first index operand. */
MlirValue tw_access_array(MlirOperation op, intptr_t *first_index);
/* Words that an argument of a kernel takes: pointer, extents and strides of an array, or one. */
int tw_words_of(MlirType argument);
/* The first word of an argument, which of an array is its pointer. */
int tw_first_word(MlirValue argument);
/* How attributes of the module name an array for the launcher: that word, its rank, the bits of an element. */
enum { TW_ARRAY_PLACE = 3 };
void tw_array_place(MlirValue array, int32_t out[TW_ARRAY_PLACE]);
/* Axis of the array along which each dimension of the tile runs (`order`, or the identity). */
void tw_access_order(MlirOperation op, int rank, int64_t order[TW_LAYOUT_MAX_RANK]);
/* Attributes that the front end gives to accesses. Of a load or store: its tile lies inside of the array, which is not
 * checked. Of a load that is copied: how many iterations of a loop the copy shall run ahead. */
#define TW_IN_BOUNDS "tile.in_bounds"
#define TW_LATENCY "tile.latency"
/* On a load: what its lines in the L2 cache shall be, if a copy by TMA brings its tile (memory/cache_hints.c). */
#define TW_CACHE "tile.cache"
/* On an async_copy of a tile: the padding of the load that it stands for, if it is not zero. */
#define TW_COPY_PADDING "tile.padding"

/* Gives an op that takes the place of an access what that says of itself: its order, the attributes above, and whether
 * TMA may do it. */
void tw_access_keep(MlirOperation from, MlirOperation to);
/* Has a load check bounds: one for an iteration that may not exist, of which nobody promised anything. */
void tw_access_check(MlirOperation load);
/* The dimension of the tile whose neighbours are neighbours in memory, or -1. */
int tw_access_contiguous_dim(MlirOperation op, int rank);
/* log2 of the most elements along that dimension that one access may take: at most 16 bytes, always
 * aligned, and wholly inside or outside of the array. */
int tw_access_vector_bits(MlirOperation op, int rank);
/* The same for a tile that is known to lie wholly inside of the array: extents do not matter. */
int tw_access_inner_vector_bits(MlirOperation op, int rank);

/* Whether its rows may begin within lines of 128 bytes of the L2 cache, so that each line of a tile touches two. */
bool tw_access_splits_lines(MlirOperation op);

/* Whether threads copy an array's elements into a buffer by cp.async: tile.async_copy or tile.async_gather. */
bool tw_is_async_copy(MlirOperation op);
/* The buffer that such an op or a tile.tma_load fills, and the number of that operand. */
intptr_t tw_copy_buffer_operand(MlirOperation copy);
MlirValue tw_copy_buffer(MlirOperation copy);

/* ---- addresses ------------------------------------------------------------------------------------- */

/* Fields are for the functions below. */
typedef struct tw_placed {
  tw_layout_t layout;
  MlirValue pointer;                     /* this thread's first element */
  MlirValue stride[TW_LAYOUT_MAX_RANK];  /* i64, elements */
  int64_t fixed[TW_LAYOUT_MAX_RANK];     /* the stride where it is static, else -1 */
  MlirValue left[TW_LAYOUT_MAX_RANK];    /* i32: register coordinate c is inside if c < left */
  MlirValue guard[TW_LAYOUT_MAX_RANK];   /* the last comparison made along a dimension ... */
  uint32_t guard_at[TW_LAYOUT_MAX_RANK]; /* ... and its coordinate; UINT32_MAX: none */
  MlirValue whole;                       /* i1: the tile lies inside of the array (null: it has no extent) */
  bool inside;                           /* it does, says the op: nothing is compared */
  MlirValue owner;                       /* predicate of threads that take part (null: all) */
  bool disjoint;                         /* coordinates of thread and register add up */
  int bits;                              /* of an element in memory */
} tw_placed_t;

/* Places the tile of `op` in its array for a thread that owns its elements as `layout` says. */
void twg_place(tw_emitter_t *e, MlirOperation op, MlirType element, const tw_layout_t *layout, tw_placed_t *out);
/* Predicate (i1) of the access that starts at register r. */
MlirValue twg_access_guard(tw_emitter_t *e, tw_placed_t *p, int r);
/* Its address: a pointer, and bytes to add. */
MlirValue twg_access_pointer(tw_emitter_t *e, tw_placed_t *p, int r, int64_t *offset);
/* Predicate of threads that hold no copy of another thread's elements; null if all are such. */
MlirValue twg_owner_guard(tw_emitter_t *e, const tw_layout_t *layout);
/* Registers of the access at r: r with every combination of the register bits regs[0..bits). */
void twg_vector_registers(int r, int bits, const int *regs, int *out);
/* Whether r is the first register of an access. */
bool twg_starts_vector(int r, int bits, const int *regs);

#endif
