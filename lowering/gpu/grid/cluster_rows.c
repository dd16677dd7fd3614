/* cluster_rows.c - tile-resize-tiles: the blocks of a cluster share a row, a slice each
 *
 * Before, a row of 128 KB, which leaves a multiprocessor no room for another one:
 *
 *   %row = tile.block_id 0
 *   %x = tile.load %X[%row, 0] : ... -> tensor<1x65536xbf16>
 *   ...
 *   %m = tile.reduce max, %f axis 1 : tensor<1x65536xf32>
 *   ...
 *   tile.store %y, %Y[%row, 0]
 *
 * After, by two blocks, as if the program had been written for half a row:
 *
 *   %b = tile.block_id 0                                       // of twice as many blocks
 *   %row = %b / 2 ; %part = %b % 2
 *   %x = tile.load %X[%row, %part] : ... -> tensor<1x32768xbf16>
 *   ...
 *   %m = tile.reduce max, %f axis 1 {tile.across = 2 : i32} : tensor<1x32768xf32>
 *   ...
 *   tile.store %y, %Y[%row, %part]
 *
 * A reduction across a cluster takes the slices of all of its blocks: each sends what its warps have to the shared
 * memory of all, where barriers count it; before the first of them all have started (emit/rules/reduce.c). The launch
 * record says how many blocks a cluster has (cluster_blocks), and the launcher starts that many for one of the
 * program's (grid_scale).
 *
 * Why: while a block waits for its row, reduces or stores it, others have to keep memory busy. Rows that are read again
 * after a reduction are kept on the multiprocessor (cache_tiles.c), and it takes three such blocks at least
 * (docs/design/measurements.md).
 *
 * What must hold: of all that has the class of dimensions (dim_classes.h) that is sliced, nothing but reductions wants
 * all at once. These stand in no loop or branch, since all blocks have to come there, and are no argmin or argmax,
 * whose indices count from the row's begin. What is stored without the class is stored by each of the blocks. No block
 * may read what another one writes (slices.h). */
#include "base/memory.h"
#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/grid/resize_tiles.h"
#include "lowering/gpu/grid/slices.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"
#include "tilewright/dialect.h"

enum { BLOCKS = 3 /* on a multiprocessor */, MAX_PARTS = 8 /* blocks of a cluster, which any GPU has room for */ };
enum { MAX_RESULTS = 32 /* of a reduction */ };

typedef struct {
  MlirOperation func;
  tw_dims_t dims;
  int class;
  tw_ops_t reduces; /* along the class */
} sharer_t;

static int class_of(sharer_t *s, MlirOperation reduce) {
  return tw_dims_class(&s->dims, mlirOperationGetOperand(reduce, 0), (int)tw_attr_int(reduce, "axis", 0));
}

/* ---- what may be shared --------------------------------------------------------------------------- */

/* Whether the blocks of a cluster may reduce together. */
static bool can_cross(MlirOperation reduce) {
  MlirType tile = mlirValueGetType(mlirOperationGetOperand(reduce, 0)), element = tw_element(tile);
  int64_t kind = tw_attr_int(reduce, "kind", 0),
          results = tw_count(tile) / tw_extent(tile, tw_attr_int(reduce, "axis", 0));
  return kind != TW_REDUCE_ARGMIN && kind != TW_REDUCE_ARGMAX && results <= MAX_RESULTS &&
         (mlirTypeIsAFloat(element) || tw_bits(element) >= 32) &&
         tw_op_is(mlirOperationGetParentOperation(reduce), TW_FUNC_FUNC);
}

static void find_reduces(sharer_t *s) {
  tw_ops_t all = tw_ops_in(s->func, tw_op_is_reduction, MlirWalkPreOrder);
  s->reduces = (tw_ops_t){NULL, 0};
  for (int i = 0; i < all.count; i++)
    if (class_of(s, all.at[i]) == s->class)
      tw_ops_add(&s->reduces, all.at[i]);
  tw_ops_free(&all);
}

static const char *why_not(sharer_t *s, int64_t parts, bool rely) {
  tw_tile_slice_t slice = {.class = s->class, .parts = parts};
  const tw_dim_t *class = &s->dims.at[s->class];
  if (s->dims.refused)
    return s->dims.refused;
  if (class->whole != tw_dims_reduced)
    return class->whole;
  for (int i = 0; i < s->reduces.count; i++)
    if (!can_cross(s->reduces.at[i]))
      return "a reduction is in a loop or branch, gives indices or small integers, or many results";
  return tw_slices_are_apart(&s->dims, &slice, 1, rely) ? NULL : "a block may read or write what another one writes";
}

/* ---- what it is good for --------------------------------------------------------------------------- */

static bool has_class(sharer_t *s, MlirOperation access) {
  return tw_dims_find(&s->dims, tw_moved_tile(access), s->class) >= 0;
}

/* What an op depends on, in the function's own block. */
static tw_slice_t slice_of(sharer_t *s, MlirOperation op) {
  tw_slice_t slice = {.block = tw_region_block(s->func, 0)};
  MlirOperation top = tw_ancestor_in(op, slice.block);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    tw_slice_add(&slice, mlirOperationGetOperand(op, i));
  if (!mlirOperationEqual(top, op))
    tw_slice_add_op(&slice, top);
  return slice;
}

static bool is_behind_reduce(sharer_t *s, const tw_slice_t *slice) {
  for (int i = 0; i < s->reduces.count; i++)
    if (tw_slice_has(slice, s->reduces.at[i]))
      return true;
  return false;
}

/* Marks the loads of the class that an op depends on, if it depends on a reduction (`behind`) or not. */
static void mark_loads(sharer_t *s, MlirOperation op, bool behind, bool *marked) {
  tw_slice_t slice = slice_of(s, op);
  if (is_behind_reduce(s, &slice) == behind)
    for (int r = 0; r < s->dims.reads.count; r++)
      marked[r] |= tw_slice_has(&slice, s->dims.reads.at[r]) && has_class(s, s->dims.reads.at[r]);
  tw_slice_free(&slice);
}

/* Bytes of what is loaded for the first reductions, and wanted again behind them. */
static int64_t bytes_kept(sharer_t *s) {
  bool *first = tw_allocate((size_t)s->dims.reads.count + 1, sizeof *first);
  bool *again = tw_allocate((size_t)s->dims.reads.count + 1, sizeof *again);
  int64_t bytes = 0;
  for (int i = 0; i < s->reduces.count; i++) {
    mark_loads(s, s->reduces.at[i], false, first);
    mark_loads(s, s->reduces.at[i], true, again);
  }
  for (int w = 0; w < s->dims.writes.count; w++)
    if (has_class(s, s->dims.writes.at[w]))
      mark_loads(s, s->dims.writes.at[w], true, again);
  for (int r = 0; r < s->dims.reads.count; r++)
    if (first[r] && again[r]) {
      MlirType type = mlirValueGetType(tw_moved_tile(s->dims.reads.at[r]));
      bytes += tw_count(type) * tw_memory_bits(tw_element(type)) / 8;
    }
  free(first);
  free(again);
  return bytes;
}

/* The fewest of which a multiprocessor has room for BLOCKS; 1: a whole row. */
static int64_t choose_parts(sharer_t *s) {
  tw_gpu_target_t target = tw_gpu_target_of(s->func);
  int64_t hint = tw_hint_num_ctas(s->func, 0), parts = 1;
  int64_t blocks = tw_hint_occupancy(s->func, BLOCKS), bytes = bytes_kept(s);
  int64_t room = target.shared_bytes_sm / blocks - TW_SHARED_BYTES_OF_DRIVER, most = hint ? hint : MAX_PARTS;
  while (parts < MAX_PARTS && 2 * parts <= most && bytes > parts * room)
    parts *= 2;
  return parts;
}

/* ---- the pass -------------------------------------------------------------------------------------- */

static void rewrite(sharer_t *s, int64_t parts) {
  MlirType i32 = tw_i32(mlirOperationGetContext(s->func));
  tw_tile_slice_t slice = {.class = s->class, .axis = 0, .parts = parts};
  tw_apply_slices(&s->dims, &slice, 1);
  tw_launch_set_cluster_blocks(s->func, (uint32_t)parts);
  for (int i = 0; i < s->reduces.count; i++)
    tw_set_int(s->reduces.at[i], TW_ACROSS, i32, parts);
}

/* Along the axis of a reduction. */
static bool share(sharer_t *s, MlirOperation reduce) {
  char tile[160];
  bool shared = false;
  s->class = class_of(s, reduce);
  find_reduces(s);
  int64_t parts = choose_parts(s);
  if (parts > 1) {
    const char *why = why_not(s, parts, false);
    shared = why == NULL && why_not(s, parts, true) == NULL;
    tw_describe_tile(mlirValueGetType(mlirOperationGetOperand(reduce, 0)), sizeof tile, tile);
    if (shared)
      tw_op_remark(reduce, "is of a tile of %s, which %lld blocks share: a multiprocessor has room for several slices",
                   tile, (long long)parts);
    else
      tw_op_remark(reduce, "is of a tile of %s, which one block has: %s", tile, why ? why : "too many arrays");
  }
  if (shared)
    rewrite(s, parts);
  tw_ops_free(&s->reduces);
  return shared;
}

bool tw_cluster_rows(MlirOperation func) {
  tw_gpu_target_t target = tw_gpu_target_of(func);
  if (!tw_is_of_tiles(func) || tw_has_op_like(func, tw_op_is_product) || !tw_gpu_has(&target, TW_GPU_CLUSTERS) ||
      tw_hint_slice_tiles(func, 0) > 1 || tw_hint_coarsen_tiles(func, 0) > 1)
    return true;
  tw_ops_t reduces = tw_ops_in(func, tw_op_is_reduction, MlirWalkPreOrder);
  bool shared = false;
  if (reduces.count > 0) {
    sharer_t s = {.func = func, .dims = tw_dims_of(func)};
    for (int i = 0; i < reduces.count && !shared; i++)
      shared = share(&s, reduces.at[i]);
    tw_dims_free(&s.dims);
  }
  tw_ops_free(&reduces);
  return true;
}
