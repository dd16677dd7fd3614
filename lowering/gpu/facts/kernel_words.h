/* kernel_words.h - the words that a kernel takes, and what passes write on it for the launcher */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_KERNEL_WORDS_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_KERNEL_WORDS_H

#include "lowering/launch_record.h"

/* The word of the launch that an extent of an array, or a scalar argument, comes from; -1 for anything else. */
int64_t tw_word_behind(MlirOperation func, MlirValue value);

enum { TW_GRID_AXES = 3 };

/* On a loop: the one over blocks of the program, in a kernel of which the launcher starts fewer (`persistent`). */
#define TW_PERSISTENT "tile.persistent"
/* On such a loop: a block takes the number of the next one when it is done with one, where a producer can do so for all
 * (roles/dynamic_scheduler.c). */
#define TW_DYNAMIC_SCHEDULE "tile.dynamic_schedule"
/* On a kernel of threads: what the launch knows of its arrays' addresses makes vectors of a thread's loads. */
#define TW_LOADS_VECTORS "tile.loads_vectors"
/* On a tile.reduce: the number of blocks whose slices it takes, which start together (grid/resize_tiles.c). */
#define TW_ACROSS "tile.across"

/* Three more arguments: the extents of the grid as the program sees it. */
void tw_add_grid_extents(MlirOperation func, MlirValue extents[TW_GRID_AXES]);
/* On a load or copy: blocks that start together want the same tile, and each brings a part of it to all. */
#define TW_MULTICAST "tile.multicast"

enum { TW_MULTICAST_BLOCKS = 2 };

/* Gives the function one more argument, of which a dictionary says what the launch knows, or null. */
MlirValue tw_add_argument(MlirOperation func, MlirType type, MlirAttribute facts);
/* Gives the function one more scalar argument of each type, which the launcher knows of. */
void tw_add_words(MlirOperation func, intptr_t num, const MlirType *types, MlirValue *out);

#endif /* TILEWRIGHT_LOWERING_GPU_FACTS_KERNEL_WORDS_H */
