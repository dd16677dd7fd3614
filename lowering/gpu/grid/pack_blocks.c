/* pack_blocks.c - tile-pack-blocks: several blocks of one warp are started as one
 *
 * Before: a block of one warp, whose position is the hardware's.
 *
 *   func.func @k(%A: ..., %B: ...) {                             // num_warps = 1
 *     %i = tile.block_id 0
 *     %n = tile.num_blocks 0
 *     %x = tile.load %A[%i, %c0] ...
 *     ...
 *   }
 *
 * After: rows of threads are blocks side by side along axis 0 of the grid. The launch record says so (packed_blocks),
 * for the launcher, which starts up to that many rows, and passes the kernel the extents of the program's grid, as it
 * does for a persistent one (persistent_loop.c): the last block may have rows to spare.
 *
 *   func.func @k(%A: ..., %B: ..., %x: i32, %y: i32, %z: i32) {
 *     %i = tile.block_id 0 * tile.block_dim 1 + tile.thread_id 1
 *     scf.if %i < %x {
 *       ... %x in place of %n ...
 *       %x = tile.load %A[%i, %c0] ...
 *     }
 *   }
 *
 * Why: the hardware starts only so many blocks in a microsecond (docs/design/measurements.md). To keep memory busy each
 * would have to move 6 KiB, and a warp has 2 in its registers. A multiprocessor has room for 32 blocks, but 64 warps.
 *
 * What must hold, or the kernel stays as it is: no clusters; a launch of ours, which knows of it; one warp, so that no
 * barrier joins threads; nothing in shared memory, which rows would share; no loop, else a block takes longer than its
 * start, and the longest of a few longer still; no output whose order a reader sees. Runs when shared memory is
 * allocated and barriers are placed. */
#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/block_axes.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/ir.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"
#include "lowering/passes.h"

enum { ENOUGH_BYTES = 16384, MAX_ROWS = 16 };

typedef struct {
  tw_ops_t ids; /* tile.block_id and tile.num_blocks of axis 0 */
  tw_block_axes_t axes;
  int64_t bytes; /* of the tiles that a block loads and stores */
  bool refused;
} packed_kernel_t;

static bool stands_in_the_way(MlirOperation op) {
  return tw_op_has(op, TW_ORDERS_THREADS | TW_ORDERS_ALL) || tw_op_form(op) == TW_FORM_PRODUCT ||
         tw_op_is(op, TW_SCF_FOR) || tw_op_is(op, TW_SCF_WHILE);
}

/* Of the tile that an access moves, if where it lies depends on the block. */
static int64_t bytes_moved(const packed_kernel_t *k, MlirOperation op) {
  bool moves = tw_op_loads(op) || tw_op_stores(op);
  uint32_t axes = 0;
  int64_t elements = 1;
  intptr_t first;
  for (intptr_t i = 0; moves && i < mlirOperationGetNumOperands(op) + mlirOperationGetNumResults(op); i++) {
    intptr_t result = i - mlirOperationGetNumOperands(op);
    MlirValue value = result < 0 ? mlirOperationGetOperand(op, i) : mlirOperationGetResult(op, result);
    axes |= result < 0 ? tw_block_axes_get(&k->axes, value) : 0;
    if (tw_is_tile(mlirValueGetType(value)) && tw_count(mlirValueGetType(value)) > elements)
      elements = tw_count(mlirValueGetType(value));
  }
  return axes ? elements * tw_memory_bits(tw_element(mlirValueGetType(tw_access_array(op, &first)))) / 8 : 0;
}

static MlirWalkResult look(MlirOperation op, void *user) {
  packed_kernel_t *k = user;
  bool id = tw_op_is(op, TW_TILE_BLOCK_ID) || tw_op_is(op, TW_TILE_NUM_BLOCKS);
  k->refused |= stands_in_the_way(op);
  k->bytes += bytes_moved(k, op);
  if (id && tw_attr_int(op, "axis", 0) == 0)
    tw_ops_add(&k->ids, op);
  return MlirWalkResultAdvance;
}

static MlirValue axis_op(const tw_builder_t *at, const char *name, int axis) {
  MlirType i32 = tw_i32(at->context);
  return tw_op1_attr(at, name, i32, 0, NULL, "axis", mlirIntegerAttrGet(i32, axis));
}

static void join(MlirOperation func, const packed_kernel_t *k, int most) {
  MlirValue extents[TW_GRID_AXES];
  tw_add_grid_extents(func, extents);
  MlirBlock body = tw_region_block(func, 0);
  MlirOperation old = mlirBlockGetFirstOperation(body), end = mlirBlockGetTerminator(body);
  tw_builder_t at = tw_build_before(old);
  at.location = mlirOperationGetLocation(func);
  MlirType i32 = tw_i32(at.context);
  MlirValue rows =
      tw_binary(&at, "arith.muli", i32, axis_op(&at, "tile.block_id", 0), axis_op(&at, "tile.block_dim", 1));
  MlirValue place = tw_binary(&at, "arith.addi", i32, rows, axis_op(&at, "tile.thread_id", 1));
  MlirValue within = tw_compare(&at, TW_ULT, place, extents[0]);
  tw_builder_t in = tw_build_guard(&at, within);
  for (MlirOperation next; !mlirOperationEqual(old, end); old = next) {
    next = mlirOperationGetNextInBlock(old);
    mlirOperationMoveBefore(old, in.before);
  }
  for (int i = 0; i < k->ids.count; i++) {
    MlirOperation id = k->ids.at[i];
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(id, 0), tw_op_is(id, TW_TILE_BLOCK_ID) ? place : extents[0]);
    mlirOperationDestroy(id);
  }
  tw_launch_set_packed_blocks(func, (uint32_t)most);
  tw_op_remark(func, "starts %d of its blocks as one: each is a warp that moves %lld bytes", most, (long long)k->bytes);
}

/* As many blocks as move ENOUGH_BYTES. */
static int rows_for(int64_t bytes) {
  int rows = 1;
  while (rows < MAX_ROWS && 2 * rows * bytes <= ENOUGH_BYTES)
    rows *= 2;
  return rows;
}

bool tw_run_pack_blocks(MlirOperation func) {
  if (!tw_is_of_tiles(func) || tw_launch_has_persistent(func) || tw_has_hint_exported(func) ||
      tw_launch_has_cluster_blocks(func) || tw_num_warps(func, 0) != 1 || tw_launch_shared_bytes(func, 0) != 0)
    return true;
  packed_kernel_t k = {.axes = tw_block_axes_of(func)};
  mlirOperationWalk(func, look, &k, MlirWalkPreOrder);
  int rows = k.bytes > 0 && !k.refused && k.ids.count > 0 ? rows_for(k.bytes) : 1;
  if (rows > 1)
    join(func, &k, rows);
  tw_block_axes_free(&k.axes);
  tw_ops_free(&k.ids);
  return true;
}
