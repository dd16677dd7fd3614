/* same_tile.h - whether accesses in loops find the same tile
 *
 * A loop that writes where it reads may bring tiles early, if each is read by the iteration that writes it only, and
 * before:
 *
 *   scf.for %j ... {
 *     %x = tile.load %X[%row, %j]
 *     ...
 *     tile.store %y, %X[%row, %j]
 *   }
 *
 * Nothing writes to the tile of a later iteration. The same holds of two arrays that a launch passes as one. */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_SAME_TILE_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_SAME_TILE_H

#include "lowering/ir.h"

/* Whether two accesses, of an iteration of one loop and of the same iteration of another one (or of the same loop),
 * name the same part of arrays of the same rank: by arithmetic on the loops' numbers. */
bool tw_same_place(MlirOperation x, MlirOperation loop, MlirOperation y, MlirOperation other);

/* Two loops, one directly in the other. */
typedef struct {
  MlirOperation outer, inner;
} tw_nest_t;
/* The same of the same iterations of two nests. */
bool tw_same_place_in_nests(MlirOperation x, tw_nest_t nest, MlirOperation y, tw_nest_t other);

/* Whether an access names another tile in any two iterations of the loop: an index is the induction variable, times a
 * constant and plus what the loop does not change. */
bool tw_moves_each_time(MlirOperation loop, MlirOperation access);

/* Whether a load or copy finds a tile before a store writes it, in each iteration of the loops around both of them, out
 * to `loop` (null: of all that the program has), and each iteration finds another tile. So, of one array, it may as
 * well be done iterations early. Of a copy, something has read before the store what it
 * brought. */
bool tw_reads_before(MlirOperation read, MlirOperation store, MlirOperation loop);

#endif /* TILEWRIGHT_LOWERING_GPU_FACTS_SAME_TILE_H */
