/* resize_tiles.c - tile-resize-tiles: chooses how many blocks compute a tile, or how many tiles a block computes
 *
 * First masks of accesses become bounds of arrays, so that tiles are seen that a program spells by elements, and
 * branches that differed by a mask are one; loads for products in tf32 round what they bring; and a grid that the
 * program has folded into one number is unfolded, so that there are rows and columns to choose by. Then three ways,
 * each with the IR before and after at the head of its file. A kernel goes at most one of them: rows are shared where
 * there is no tile.mma; tiles are coarsened or sliced where no cluster shares rows, and a hint for the one leaves out
 * the other. Of a kernel of threads it is elements that a thread takes several of. */
#include "lowering/gpu/grid/resize_tiles.h"

#include "lowering/common/canonicalize.h"
#include "lowering/passes.h"

bool tw_run_resize_tiles(MlirOperation func) {
  if (!tw_bound_accesses(func))
    return false;
  tw_merge_branches(func);
  return tw_round_loads(func) && tw_unfold_grid(func) && tw_cluster_rows(func) && tw_cluster_walks(func) &&
         tw_coarsen_tiles(func) && tw_slice_tiles(func) && tw_coarsen_threads(func);
}
