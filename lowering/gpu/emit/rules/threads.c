/* threads.c - rule: code of threads in a kernel of tiles
 *
 *   before   %y = tile.threads(%x) {tile.scratch = 0 : i32} : (tensor<64xi32, #l>) -> tensor<64xi32, #m> {
 *            ^bb0(%s: memref<64xi32, 3>): … }
 *   after    registers of %x to shared memory; a barrier; the body, in each thread; a barrier; registers of %y
 *
 * What must hold: all warps of the block compute (no roles), and threads meet before the op and behind it
 * (tile-insert-barriers). Results that nobody reads are not loaded. */
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/emit/shared_access.h"
#include "lowering/gpu/facts/scratch.h"

static bool is_read(MlirValue value) { return !mlirOpOperandIsNull(mlirValueGetFirstUse(value)); }

static void give_tiles(tw_emitter_t *e, MlirOperation op) {
  MlirBlock body = tw_region_block(op, 0);
  int64_t offset = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirValue tile = mlirOperationGetOperand(op, i), array = mlirBlockGetArgument(body, i);
    MlirValue base = twg_scratch_at(e, op, offset);
    twg_share_tile(e, tile, base);
    twg_bind(e, array, twg_static_array(e, mlirValueGetType(array), base));
    offset += tw_shared_tile_bytes(tile);
  }
  if (offset > 0)
    twg_barrier(e);
}

static bool take_tiles(tw_emitter_t *e, MlirOperation op) {
  int64_t offset = 0;
  bool met = false;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++) {
    MlirValue result = mlirOperationGetResult(op, i);
    tw_layout_t layout;
    if (is_read(result)) {
      if (!tw_layout_of_type(mlirValueGetType(result), &layout)) {
        tw_op_error(op, "needs tiles with layouts");
        return false;
      }
      if (!met)
        twg_barrier(e);
      met = true;
      twg_set_result(e, op, i, twg_shared_tile(e, mlirValueGetType(result), &layout, twg_scratch_at(e, op, offset)));
    }
    offset += tw_shared_tile_bytes(mlirOperationGetOperand(op, i));
  }
  return true;
}

static bool rule_threads(tw_emitter_t *e, MlirOperation op) {
  bool outside = e->simt;
  give_tiles(e, op);
  e->simt = true;
  bool done = e->emit_block(e, tw_region_block(op, 0));
  e->simt = outside;
  return done && take_tiles(e, op);
}

TWG_RULE(TW_TILE_THREADS, rule_threads)
