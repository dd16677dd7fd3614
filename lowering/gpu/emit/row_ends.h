/* row_ends.h - a kernel on rows that end in the last elements of a tile: most of its accesses without guards
 *
 * Before, where nothing is known of a row's length each element has a comparison, and a register that is cleared for
 * where it fails. Rows of 4,095 elements in tiles of 4,096 need that of the last elements only.
 *
 *   %x = tile.load %X[%row, 0] : ... -> tensor<1x4096xbf16, #l>        // 32 accesses of a thread, 32 comparisons
 *   ...
 *   tile.store %y, %Y[%row, 0]
 *
 * After, the code is there twice, for rows that have seven eighths of the tile and for others:
 *
 *   if (%row < %X.rows && 3584 <= %X.columns && %row < %Y.rows && 3584 <= %Y.columns)
 *     (28 accesses without, 4 with a comparison) ...
 *   else
 *     (32 with one) ...
 *
 * Vectors, which elsewhere ask whether their tile lies inside as a whole, are vectors up to there in the first, and
 * elements in the second.
 *
 * What must hold: the kernel is a straight line of arithmetic, reductions, loads and stores; what its accesses begin at
 * is known before the first of them; registers number the eighths of a dimension, and there are three accesses of
 * single elements or more, so that there is something to gain. */
#ifndef TILEWRIGHT_LOWERING_GPU_EMIT_ROW_ENDS_H
#define TILEWRIGHT_LOWERING_GPU_EMIT_ROW_ENDS_H

#include "lowering/gpu/emit/emitter.h"

struct twg_row_ends {
  MlirOperation rest; /* the first op that is emitted twice */
  tw_ops_t accesses;  /* loads, stores, and comparisons of positions with a number; owned */
};

/* Whether code of the block is worth being there twice. The caller frees what is found in any case. */
bool twg_find_row_ends(const tw_emitter_t *e, MlirBlock body, twg_row_ends_t *out);
/* The condition of the first of the two; the ops before the rest have been emitted. */
MlirValue twg_rows_reach(tw_emitter_t *e, const twg_row_ends_t *ends);
/* So many elements along a dimension of an op's tile are inside, as far as is known where code is emitted now. */
int64_t twg_surely_inside(const tw_emitter_t *e, MlirOperation op, const tw_layout_t *layout, int dim);

#endif /* TILEWRIGHT_LOWERING_GPU_EMIT_ROW_ENDS_H */
