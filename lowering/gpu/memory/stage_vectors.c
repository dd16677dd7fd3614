/* stage_vectors.c - tile-prefetch-loads: vectors that many threads hold are copied through shared memory
 *
 * Before, where a vector is spread over a tile each thread loads its part of it, eight rows or more of threads the
 * same, and waits for memory between products:
 *
 *   scf.for %i = ... {
 *     tile.async_copy %Q[%i, %c0] into %q[%c0] ; commit ; wait 0 ; barrier ; barrier
 *     %s = tile.async_mma %k[%c0], %q[%c0], %zero
 *     %l = tile.load %L[%i] : ... -> tensor<64xf32, #slice>
 *     %b = tile.broadcast (tile.reshape %l) : ... -> tensor<128x64xf32, #acc>
 *     %w = tile.mma_wait %s, 0
 *     %d = arith.subf %w, %b
 *
 * After, it is copied in front of the first product, beside the tiles that products read, and each thread reads it
 * where it is used:
 *
 *   scf.for %i = ... {
 *     tile.async_copy %Q[%i, %c0] into %q[%c0] ; commit ; wait 0 ; barrier ; barrier
 *     tile.async_copy %L[%i] into %v[%c0] ; commit ; wait 0 ; barrier ; barrier
 *     %s = tile.async_mma %k[%c0], %q[%c0], %zero
 *     %w = tile.mma_wait %s, 0
 *     %l = tile.local_load %v[%c0] : ... -> tensor<64xf32, #slice> ; tile.barrier
 *     %b = tile.broadcast (tile.reshape %l) : ... -> tensor<128x64xf32, #acc>
 *     %d = arith.subf %w, %b
 *
 * tile-specialize-warps has a producer copy it, far ahead, together with the tile before it (plan_stages.c).
 *
 * What must hold: the loop has products, and the accelerator brings their tiles; it can bring the vector, too; its
 * position follows from scalars of the loop that no copy or product makes; as many threads as a warp has hold each
 * element; nothing writes to its array (of two arrays it is assumed that they share no memory: aliasing.h), nor do
 * threads to shared memory; there is room. Runs after tile-sink-waits, which does not move products past reads of
 * shared memory, and tile-prefetch-loads, which has taken what needs few registers. */
#include "lowering/gpu/memory/stage_vectors.h"
#include "dialect/layouts.h"
#include "lowering/aliasing.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/barrier.h"
#include "lowering/gpu/facts/buffer.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/machine/copy_engine.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/gpu/memory/cache_tiles.h"
#include "lowering/gpu/memory/promote_memory.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"

enum { LANES = TW_WARP_LANES };

/* ---- which loops ------------------------------------------------------------------------------------- */

/* The first op of the block of that kind; null if there is none. */
typedef struct {
  MlirBlock block; /* of a loop */
  int64_t bytes;   /* of buffers: of those that loops with products fill, its own only, twice */
  int copies;
  bool bad; /* something is copied by other means, or threads write to shared memory */
} room_t;

static MlirWalkResult look_at(MlirOperation op, void *user) {
  room_t *room = user;
  tw_engine_copy_t copy;
  if (tw_makes_buffer(op))
    room->bytes += tw_buffer_bytes(mlirValueGetType(mlirOperationGetResult(op, 0)));
  if (tw_is_async_copy(op)) {
    int64_t bytes = tw_stage_bytes(mlirValueGetType(tw_copy_buffer(op)));
    MlirBlock block = mlirOperationGetBlock(op);
    room->copies++;
    room->bad |= tw_op_has(op, TW_BY_ELEMENT) || tw_engine_plan(op, &copy) != NULL;
    room->bytes += mlirBlockEqual(block, room->block)                                ? bytes
                   : mlirOperationIsNull(tw_first_op(block, tw_op_is_async_product)) ? 0
                                                                                     : -bytes;
  }
  room->bad |= tw_op_stores_buffer(op);
  return room->bad ? MlirWalkResultInterrupt : MlirWalkResultAdvance;
}

/* Whether one more vector can be brought in this loop. */
static bool has_room(MlirOperation func, MlirBlock block) {
  enum { MULTIBUFFER = 4096 /* of a vector, and what else is rounded up */ };
  tw_gpu_target_t target = tw_gpu_target_of(func);
  room_t room = {.block = block};
  mlirOperationWalk(func, look_at, &room, MlirWalkPreOrder);
  return !room.bad && room.copies < TW_ENGINE_MAX_LOADED && room.bytes + MULTIBUFFER <= target.shared_bytes;
}

/* ---- which loads ------------------------------------------------------------------------------------- */

/* Whether the accelerator can bring it as it brings the tiles of products. */
static bool can_be_brought(MlirOperation load) {
  return tw_op_loads_tile(load) && !tw_is_unused(mlirOperationGetResult(load, 0)) && !tw_is_kept(load) &&
         tw_engine_brings(load);
}

static bool is_held_by_many(MlirOperation load) {
  MlirType tile = mlirValueGetType(mlirOperationGetResult(load, 0));
  int64_t threads = LANES * tw_num_warps(load, 0);
  return tw_register_count(tile) * threads >= LANES * tw_count(tile);
}

/* Whether its position moves with the loop, and only scalars make it. */
static bool follows_scalars(MlirOperation loop, const tw_slice_t *slice) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(loop); i++)
    if (tw_slice_reads(slice, tw_carried(loop, i)))
      return false;
  return tw_slice_reads(slice, tw_loop_iv(loop));
}

static bool is_scalar(MlirOperation op) {
  return tw_is_arithmetic(op) && mlirOperationGetNumRegions(op) == 0 && mlirOperationGetNumResults(op) == 1 &&
         !tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0)));
}

/* Fills in all that the load needs of its loop's body. */
static bool has_known_place(MlirOperation loop, MlirOperation load, tw_slice_t *slice) {
  tw_slice_add_op(slice, load);
  bool ok = follows_scalars(loop, slice);
  for (MlirOperation op = mlirBlockGetFirstOperation(slice->block); ok && !mlirOperationEqual(op, load);
       op = mlirOperationGetNextInBlock(op))
    ok = !tw_slice_has(slice, op) || is_scalar(op);
  return ok;
}

static bool may_write(MlirOperation op, const void *user) {
  const MlirValue *array = user;
  intptr_t first;
  return tw_acquires(op) || (tw_stores_to_array(op) && !tw_assume_disjoint(tw_access_array(op, &first), *array));
}

static bool is_written(MlirOperation func, MlirOperation load) {
  MlirValue array = mlirOperationGetOperand(load, 0);
  return !mlirOperationIsNull(tw_find_op(func, may_write, &array));
}

/* ---- rewriting --------------------------------------------------------------------------------------- */

/* The first op of the block that reads the value, or holds one that does; null if the value is read elsewhere. */
static MlirOperation first_user(MlirBlock block, MlirValue value) {
  MlirOperation first = tw_null_op();
  TW_EACH_USE(use, value) {
    MlirOperation user = tw_ancestor_in(mlirOpOperandGetOwner(use), block);
    if (mlirOperationIsNull(first) || mlirOperationIsBeforeInBlock(user, first))
      first = user;
  }
  return first;
}

/* Has the other forms of a value made where these are used first; returns the first op that then reads the value. */
static MlirOperation sink_forms(MlirBlock block, MlirValue value) {
  MlirOperation user = first_user(block, value);
  while (!mlirOperationIsNull(user) && tw_is_form(user)) {
    MlirOperation at = sink_forms(block, mlirOperationGetResult(user, 0));
    if (mlirOperationIsNull(at) || mlirOperationEqual(mlirOperationGetNextInBlock(user), at))
      break;
    mlirOperationMoveBefore(user, at);
    user = first_user(block, value);
  }
  return user;
}

/* The copy stands in front of the first op that reads what copies bring. */
static void bring(MlirOperation func, MlirOperation loop, MlirOperation load, const tw_slice_t *slice) {
  MlirBlock body = tw_loop_body(loop);
  MlirOperation at = mlirBlockGetFirstOperation(body);
  while (!tw_op_is_async_product(at) && !tw_op_loads_buffer(at))
    at = mlirOperationGetNextInBlock(at);
  for (MlirOperation op = at, next; mlirOperationIsBeforeInBlock(at, load); op = next) {
    next = mlirOperationGetNextInBlock(op);
    if (tw_slice_has(slice, op))
      mlirOperationMoveBefore(op, at);
  }
  MlirValue buffer, value = mlirOperationGetResult(load, 0);
  tw_stage_load(func, load, &buffer);
  tw_builder_t use = tw_build_before(sink_forms(body, value));
  use.location = mlirOperationGetLocation(load);
  mlirValueReplaceAllUsesOfWith(value, tw_build_local_load(&use, buffer, mlirValueGetType(value)));
  tw_build_barrier(&use, TW_ORDERS_COPIES);
  mlirOperationDestroy(load);
}

static void stage_vectors(MlirOperation func, MlirOperation loop) {
  MlirBlock body = tw_loop_body(loop);
  tw_ops_t loads = {NULL, 0};
  if (mlirOperationIsNull(tw_first_op(body, tw_op_copies_tile)) ||
      mlirOperationIsNull(tw_first_op(body, tw_op_is_async_product)))
    return;
  TW_EACH_OP(op, body)
    if (can_be_brought(op) && is_held_by_many(op))
      tw_ops_add(&loads, op);
  for (int i = 0; i < loads.count; i++) {
    tw_slice_t slice = {.block = body};
    if (has_known_place(loop, loads.at[i], &slice) && has_room(func, body) && !is_written(func, loads.at[i]))
      bring(func, loop, loads.at[i], &slice);
    tw_slice_free(&slice);
  }
  tw_ops_free(&loads);
}

bool tw_stage_vectors(MlirOperation func) {
  if (!tw_has_engine(func))
    return true;
  tw_ops_t loops = tw_loops_in(func, MlirWalkPostOrder);
  for (int i = 0; i < loops.count; i++)
    stage_vectors(func, loops.at[i]);
  tw_ops_free(&loops);
  return true;
}
