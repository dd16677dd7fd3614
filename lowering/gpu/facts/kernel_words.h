/* kernel_words.h - the words that a kernel takes, and what passes write on it for the launcher */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_KERNEL_WORDS_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_KERNEL_WORDS_H

#include "lowering/ir.h"

/* Words that an argument of a kernel takes: pointer, extents and strides of an array, or one. */
int tw_words_of(MlirType argument);
/* The first word of an argument, which of an array is its pointer. */
int tw_first_word(MlirValue argument);

/* How attributes of the module name an array for the launcher: that word, its rank, the bits of an element. */
enum { TW_ARRAY_PLACE = 3 };

void tw_array_place(MlirValue array, int32_t out[TW_ARRAY_PLACE]);

enum { TW_GRID_AXES = 3 };

/* On the module: the launcher starts fewer blocks than the program asks for, and tells the kernel how many these are;
 * the number is that of the blocks of a cluster. On a loop: the one over blocks of the program. */
#define TW_PERSISTENT "tile.persistent"
/* On a loop over blocks of the program: a block takes the number of the next one when it is done with one, where a
 * producer can do so for all; on the module, the hint that asks for it. Then, on the module: blocks do, from a
 * workspace that the launcher passes (roles/dynamic_scheduler.c). */
#define TW_TICKETS "tile.tickets"
#define TW_TAKES_TICKETS "tile.takes_tickets"
/* On the module: [the axis along which the two blocks of a cluster are neighbours; cycles of a step along each axis, 0
 * where it is not possible; those of blocks alone]. */
#define TW_PAIRS "tile.pairs"
/* On the module: blocks may share a tile, and what the launcher decides by how many (split_k.c). */
#define TW_SPLIT "tile.split"
/* On the module: blocks may compute a slice of a tile each, and what the launcher decides by how many; on that of a
 * kernel whose blocks do, how many it starts for one of the program's along each axis (slice_tiles.c). Or one may
 * compute the tiles of several; minus that number then (coarsen_tiles.c). */
#define TW_FUSE "tile.fuse"
#define TW_CUT "tile.cut"
#define TW_CUT_GRID "tile.cut_grid"
/* On the module: blocks side by side along axis 0 that are a cluster and share a row. On a tile.reduce: it takes the
 * slices of so many blocks (cluster_rows.c). */
#define TW_CLUSTER_BLOCKS "tile.cluster"
#define TW_ACROSS "tile.across"
/* On the module and the kernel: the launcher starts several blocks of the program as the rows of threads of one
 * (pack_blocks.c). */
#define TW_JOINED "tile.joined"

/* Three more arguments for a kernel of at most TW_MAX_GRID_ARGUMENTS: the extents of the grid as the program sees it.
 */
enum { TW_MAX_GRID_ARGUMENTS = 64 };

void tw_add_grid_extents(MlirOperation func, MlirValue extents[TW_GRID_AXES]);
/* On a load or copy: the blocks of a cluster want the same tile, and each brings a part of it to all. */
#define TW_MULTICAST "tile.multicast"

enum { TW_CLUSTER = 2 /* blocks */ };

/* Gives the function, of at most TW_MAX_GRID_ARGUMENTS, one more scalar argument of each type, which the launcher knows
 * of. */
void tw_add_words(MlirOperation func, intptr_t num, const MlirType *types, MlirValue *out);

#endif /* TILEWRIGHT_LOWERING_GPU_FACTS_KERNEL_WORDS_H */
