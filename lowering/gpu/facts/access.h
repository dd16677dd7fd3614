/* access.h - where a tile lies in an array: facts for choosing layouts */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_ACCESS_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_ACCESS_H

#include "lowering/ir.h"
#include "lowering/layout/layout.h"

enum { TW_MAX_ACCESS_BITS = 128 };

/* The array operand of a load, store or async_copy and the number of its first index operand. */
MlirValue tw_access_array(MlirOperation op, intptr_t *first_index);
/* Axis of the array along which each dimension of the tile runs (`order`, or the identity). */
void tw_access_order(MlirOperation op, int rank, int64_t order[TW_LAYOUT_MAX_RANK]);
/* Attributes that the front end gives to accesses. Of a load or store: its tile lies inside of the array, which is not
 * checked. Of a load that is copied: how many iterations of a loop the copy shall run ahead. */
#define TW_IN_BOUNDS "tile.in_bounds"
#define TW_LATENCY "tile.latency"
/* On a store: each iteration of the loops of the program around it finds another place. */
#define TW_MOVES "tile.moves"
/* On a load: what its lines in the L2 cache shall be, if the copy engine brings its tile (memory/cache_hints.c). */
#define TW_CACHE "tile.cache"
/* On a load or store: its tile is a row that begins anywhere, and goes through shared memory (memory/realign_rows.c).
 */
#define TW_REALIGNED "tile.realigned"
/* Whether a load or store of so many warps shall be, whatever the layout of its tile. */
bool tw_begins_anywhere(MlirOperation op, int num_warps);
/* Whether it can be: the tile has elements along this dimension alone, and threads have all of them. */
bool tw_is_row(const tw_layout_t *l, int dim);
/* What it needs there beside the tile: it is as many bytes behind a multiple of that as in memory. */
enum { TW_REALIGNED_PIECE = TW_MAX_ACCESS_BITS / 8 };
/* On an async_copy of a tile: the padding of the load that it stands for, if it is not zero. */
#define TW_COPY_PADDING "tile.padding"

/* Gives an op that takes the place of an access what that says of itself: its order, the attributes above, and whether
 * the copy engine may do it. */
void tw_access_keep(MlirOperation from, MlirOperation to);
/* Has a load check bounds: one for an iteration that may not exist, of which nobody promised anything. */
void tw_access_check(MlirOperation load);
/* Whether elements of an array are rounded from f32 to tf32 as they are read (grid/round_loads.c). */
bool tw_rounds_to_tf32(MlirType array, MlirType element);
/* The dimension of the tile whose neighbours are neighbours in memory, or -1. */
int tw_access_contiguous_dim(MlirOperation op, int rank);
/* log2 of a power of two that divides a scalar argument of the kernel, or an extent or stride of an array that it has:
 * launches with others have other code. 0 for any other value. */
int tw_argument_divisor_bits(MlirValue value);

/* log2 of the most elements along that dimension that one access may take: at most 16 bytes, always
 * aligned, and wholly inside or outside of the array. */
int tw_access_vector_bits(MlirOperation op, int rank);
/* The same for a tile that is known to lie wholly inside of the array: extents do not matter. */
int tw_access_inner_vector_bits(MlirOperation op, int rank);

/* Pieces of less than 4 bytes in which threads load a tile: no copy brings these, so that each waits in a register of
 * its own. 0 where pieces are larger. */
int64_t tw_access_small_pieces(MlirOperation load);

/* Whether its rows may begin within lines of 128 bytes of the L2 cache, so that each line of a tile touches two. */
bool tw_access_splits_lines(MlirOperation op);

/* Whether threads copy an array's elements into a buffer by cp.async: tile.async_copy or tile.async_gather. */
bool tw_is_async_copy(MlirOperation op);
/* The buffer that such an op, or a copy of the engine, fills, and the number of that operand. */
intptr_t tw_copy_buffer_operand(MlirOperation copy);
MlirValue tw_copy_buffer(MlirOperation copy);

/* The tile that a load, store, gather or scatter moves. */
MlirValue tw_moved_tile(MlirOperation access);

/* Whether an op gives the elements of its tile other places: broadcast, reshape, permute. */
bool tw_is_shape_op(MlirOperation op);
/* Whether an op only gives a tile another form: other places, another layout, wider elements. */
bool tw_is_form(MlirOperation op);

#endif
