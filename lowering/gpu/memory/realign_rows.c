/* realign_rows.c - tile-promote-memory: rows that begin anywhere move in aligned pieces, through shared memory
 *
 * Before, rows of an odd length begin anywhere, so that threads load and store them element by element:
 *
 *   %x = tile.load %X[%row, %c0] : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 -> tensor<1x4096xbf16, #l>
 *   tile.store %y, %Y[%row, %c0] : tensor<1x4096xbf16, #l>, memref<?x?xbf16, strided<[?, 1]>>
 *
 * After, threads meet in both: pieces of 16 bytes come to shared memory, and go from there.
 *
 *   %x = tile.load %X[%row, %c0] {tile.realigned} : memref<...>, i32, i32 -> tensor<1x4096xbf16, #l>
 *   tile.store %y, %Y[%row, %c0] {tile.realigned} : tensor<1x4096xbf16, #l>, memref<...>
 *
 * Why: what a warp stores at a time begins within a sector of the L2 cache. One sector more gets it, two of them in
 * part, and each of those comes twice; and there are many accesses for few bytes (docs/design/measurements.md). In
 * shared memory a row begins as far behind a multiple of 16 bytes as it does in memory. Pieces are what lies between
 * two multiples; what the first and the last one lack goes element by element, so that nothing beside the row is
 * touched.
 *
 * What must hold: the tile is one row, whose neighbours are neighbours in memory, with a piece for each thread at
 * least; no vectors of a piece are known to be aligned (tw_access_inner_vector_bits: launches with other strides have
 * other code); nothing of it moves beside other stores (tile.late); elements are not rounded on the way; the kernel has
 * no products, whose shared memory and roles are planned without it; and more warps than one, which start packed
 * (grid/pack_blocks.c). In a loop, whose iterations would wait for one another, it costs more than it gains. Then
 * threads meet where one of them moves what another one has, and what they did before is done (insert_barriers.c). */
#include "lowering/gpu/memory/realign_rows.h"

#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/ir.h"
#include "tilewright/dialect.h"

static MlirWalkResult look(MlirOperation op, void *user) {
  const int *num_warps = user;
  tw_layout_t l;
  if (tw_begins_anywhere(op, *num_warps) && !tw_has_attr(op, TW_LATE) &&
      tw_layout_of_type(mlirValueGetType(tw_moved_tile(op)), &l) && tw_is_row(&l, tw_access_contiguous_dim(op, l.rank)))
    tw_set_attr(op, TW_REALIGNED, mlirUnitAttrGet(mlirOperationGetContext(op)));
  return MlirWalkResultAdvance;
}

bool tw_realign_rows(MlirOperation func) {
  int num_warps = (int)tw_num_warps(func, 1);
  mlirOperationWalk(func, look, &num_warps, MlirWalkPreOrder);
  return true;
}
