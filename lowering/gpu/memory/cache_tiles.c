/* cache_tiles.c - tile-cache-tiles: tiles that several loops read are copied once and kept in shared memory
 *
 * Before, each walk loads the tiles anew, and waits for memory with few bytes under way:
 *
 *   %m = scf.for %j = 0 to %n step 1 iter_args(...) {
 *     %x = tile.load %X[%row, %j] padding neg_inf : ... -> tensor<1x4096xbf16, #l>
 *     ... tile.reduce max, %x ...
 *   }
 *   scf.for %j = 0 to %n step 1 {
 *     %x = tile.load %X[%row, %j] padding neg_inf : ... -> tensor<1x4096xbf16, #l>
 *     ... tile.store ..., %Y[%row, %j]
 *   }
 *
 * After, with room for 13 tiles, all of them are under way at once, no thread waits before it needs one, and the later
 * walks find them in shared memory. What is beyond these is loaded in each walk as before, by loops of their own:
 *
 *   %kept = min(%n, 13)
 *   %b = tile.alloc_shared : !tile.buffer<13x1x4096xbf16, #s>
 *   scf.if 0 < %kept { tile.async_copy %X[%row, 0] into %b[0] } ; tile.async_commit ; ... and so on to 12
 *   %k = scf.for %j = 0 to %kept step 1 iter_args(...) {
 *     tile.async_commit ; tile.async_wait 13 ; tile.barrier          // an empty group each, so that a constant counts
 *     %x = tile.local_load %b[%j] : ... -> tensor<1x4096xbf16, #l>
 *     ... tile.reduce max, %x ...
 *   }
 *   %m = scf.for %j = %kept to %n step 1 iter_args(... = %k) { (as before) }
 *   scf.for %j = 0 to %kept step 1 {
 *     %x = tile.local_load %b[%j] : ... -> tensor<1x4096xbf16, #l>
 *     ... tile.store ..., %Y[%row, %j]
 *   }
 *   scf.for %j = %kept to %n step 1 { (as before) }
 *
 * A walk may be a loop in a loop, too (cache_nests.c). A row whose least length is known by that gets more stages, and
 * leaves a multiprocessor fewer blocks, if these still have enough under way. Where each thread reads what it has
 * copied itself, threads do not meet. What bounds walks over kept tiles are instructions: where a mask in one holds
 * everywhere, as in all but the last tile of a row, it runs without (common/split_loops.c).
 *
 * What must hold: loops of one block from 0 to the same bound by 1; loads directly in the first of them and in a later
 * one, of the same array, at the same place but for the loop's number; threads can copy their tiles; nothing writes to
 * arrays before the last of the loops, and that one to the same array only where the tile of its iteration was, and to
 * others only if they may be assumed to be apart (aliasing.h). Kernels with products have other plans for shared
 * memory. Runs when layouts are known and all copies for products are made. */
#include "lowering/gpu/memory/cache_tiles.h"
#include "lowering/gpu/facts/buffer.h"
#include "lowering/gpu/facts/roles.h"

#include "dialect/layouts.h"
#include "lowering/aliasing.h"
#include "lowering/common/split_loops.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/barrier.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/facts/same_tile.h"
#include "lowering/gpu/facts/scratch.h"
#include "lowering/gpu/isa/async_copies.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/gpu/memory/cache_nests.h"
#include "lowering/launch_record.h"
#include "lowering/layout/memory.h"
#include "lowering/loops.h"
#include "lowering/passes.h"
#include "tilewright/dialect.h"

#include <stdlib.h>
#include <string.h>

enum {
  MIN_STAGES = 2,
  MAX_STAGES = 32,
  MAX_NEST_STAGES = 60, /* a wait names the groups that are under way by a number of 6 bits */
  WARPS = 24,
  FEW_BLOCKS = 4,
  CLUSTERED_BLOCKS = 3, /* whose rows are so long that several blocks share one (cluster_rows.c, cluster_walks.c) */
  BYTES_UNDER_WAY = 1 << 16, /* of a multiprocessor, so that memory is never idle */
  MIN_PIECE_BITS = 32
};

typedef struct {
  MlirOperation *loads; /* of each walk; null where one does not read it; owned */
  MlirValue buffer;
} kept_row_t;

typedef struct {
  tw_ops_t walks;  /* owned, as are the tiles */
  tw_ops_t around; /* of each walk the loop around it; none of plain walks */
  kept_row_t *tiles;
  int num_tiles;
  int64_t trips; /* -1: known when the kernel runs */
  int stages;
  bool own; /* each thread reads what it has copied itself */
} cache_plan_t;

/* ---- walks and what they read -------------------------------------------------------------------------- */

static bool is_int(MlirValue value, int64_t wanted) {
  int64_t known;
  return tw_known_int(value, &known) && known == wanted;
}

static tw_nest_t nest_of(const cache_plan_t *plan, int walk) {
  return (tw_nest_t){plan->around.at[walk], plan->walks.at[walk]};
}

/* The op of a walk that stands beside the other walks. */
static MlirOperation whole_walk(const cache_plan_t *plan, int walk) {
  return plan->around.count > 0 ? plan->around.at[walk] : plan->walks.at[walk];
}

/* Whether two accesses of walks have the same place in the same iteration. */
static bool same_place(const cache_plan_t *plan, MlirOperation x, int walk, MlirOperation y, int other) {
  return plan->around.count > 0 ? tw_same_place_in_nests(x, nest_of(plan, walk), y, nest_of(plan, other))
                                : tw_same_place(x, plan->walks.at[walk], y, plan->walks.at[other]);
}

static bool same_load(const cache_plan_t *plan, MlirOperation x, int walk, MlirOperation y, int other) {
  MlirType tile = mlirValueGetType(mlirOperationGetResult(x, 0));
  return mlirValueEqual(mlirOperationGetOperand(x, 0), mlirOperationGetOperand(y, 0)) &&
         mlirAttributeEqual(tw_attr(x, "padding"), tw_attr(y, "padding")) && same_place(plan, x, walk, y, other) &&
         mlirTypeEqual(tile, mlirValueGetType(mlirOperationGetResult(y, 0)));
}

/* Whether threads can copy the tile. At an edge copies give zeros; other paddings are stored by the thread whose whole
 * piece is outside. */
static bool can_copy(MlirOperation load) {
  MlirType tile = mlirValueGetType(mlirOperationGetResult(load, 0));
  if (!tw_is_tile(tile) || tw_memory_bits(tw_element(tile)) < 8 || tw_is_bool(tile))
    return false;
  int rank = (int)tw_rank(tile), uncut = tw_access_vector_bits(load, rank);
  bool whole = uncut == tw_access_inner_vector_bits(load, rank);
  return (int)tw_memory_bits(tw_element(tile)) << uncut >= MIN_PIECE_BITS && (whole || tw_promotes(load));
}

/* Whether a value is computed, within the loops, from the number of one. */
static bool comes_from(MlirValue value, MlirOperation loop, MlirBlock within) {
  MlirOperation op = tw_def(value);
  if (mlirOperationIsNull(op) || !tw_inside(op, within))
    return mlirValueEqual(value, tw_loop_iv(loop));
  bool found = false;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op) && !found; i++)
    found = comes_from(mlirOperationGetOperand(op, i), loop, within);
  return found;
}

static bool reads_number(MlirOperation load, MlirOperation loop, MlirOperation whole) {
  bool reads = false;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(load) && !reads; i++)
    reads = comes_from(mlirOperationGetOperand(load, i), loop, tw_loop_body(whole));
  return reads;
}

/* Whether each iteration of the first walk loads a tile of its own, which copies may bring. */
static bool can_keep(const cache_plan_t *plan, MlirOperation load) {
  MlirOperation whole = whole_walk(plan, 0);
  return can_copy(load) && reads_number(load, plan->walks.at[0], whole) && reads_number(load, whole, whole);
}

/* Notes a load of a walk with those of the same tile; in the first walk it makes one. A second load of it in the same
 * walk is left alone. */
static void note(cache_plan_t *plan, int walk, MlirOperation load) {
  for (int t = 0; t < plan->num_tiles; t++)
    if (same_load(plan, plan->tiles[t].loads[0], 0, load, walk)) {
      if (mlirOperationIsNull(plan->tiles[t].loads[walk]))
        plan->tiles[t].loads[walk] = load;
      return;
    }
  if (walk == 0 && can_keep(plan, load)) {
    plan->tiles = tw_room(plan->tiles, (size_t)plan->num_tiles, sizeof *plan->tiles);
    kept_row_t *tile = &plan->tiles[plan->num_tiles++];
    *tile = (kept_row_t){.loads = tw_allocate((size_t)plan->walks.count, sizeof *tile->loads)};
    tile->loads[0] = load;
  }
}

static void note_loads(cache_plan_t *plan) {
  for (int w = 0; w < plan->walks.count; w++)
    TW_EACH_OP(op, tw_loop_body(plan->walks.at[w]))
      if (tw_op_loads_tile(op))
        note(plan, w, op);
}

static bool is_read_again(const cache_plan_t *plan, const kept_row_t *tile) {
  for (int w = 1; w < plan->walks.count; w++)
    if (!mlirOperationIsNull(tile->loads[w]))
      return true;
  return false;
}

/* Those that only one walk reads have nothing to be kept for. */
static void drop_single(cache_plan_t *plan) {
  int kept = 0;
  for (int t = 0; t < plan->num_tiles; t++)
    if (is_read_again(plan, &plan->tiles[t]))
      plan->tiles[kept++] = plan->tiles[t];
    else
      free(plan->tiles[t].loads);
  plan->num_tiles = kept;
}

/* ---- what the last walk writes ------------------------------------------------------------------------- */

typedef struct {
  const cache_plan_t *plan;
  const kept_row_t *tile;
  bool assume; /* records that arrays have no memory in common */
  bool spared;
} cache_writes_t;

/* Whether a store goes where the kept tile of its own iteration was, behind the load of it. */
static bool stays_in_place(const cache_writes_t *w, MlirOperation store) {
  int walk = w->plan->walks.count - 1;
  MlirOperation last = w->plan->walks.at[walk], load = w->tile->loads[walk];
  MlirValue value = mlirOperationGetOperand(store, mlirOperationGetNumOperands(store) - 1);
  return tw_op_stores_tile(store) && w->plan->around.count == 0 &&
         mlirBlockEqual(mlirOperationGetBlock(store), tw_loop_body(last)) &&
         mlirTypeEqual(mlirValueGetType(value), mlirValueGetType(mlirOperationGetResult(w->tile->loads[0], 0))) &&
         tw_same_place(w->tile->loads[0], w->plan->walks.at[0], store, last) && tw_moves_each_time(last, store) &&
         (mlirOperationIsNull(load) || mlirOperationIsBeforeInBlock(load, store));
}

static MlirWalkResult look_at_write(MlirOperation op, void *user) {
  cache_writes_t *w = user;
  intptr_t first;
  if (mlirOperationGetNumRegions(op) > 0 || !tw_may_write_arrays(op))
    return MlirWalkResultAdvance;
  if (!tw_op_stores(op)) {
    w->spared = false;
    return MlirWalkResultInterrupt;
  }
  MlirValue kept = mlirOperationGetOperand(w->tile->loads[0], 0), array = tw_access_array(op, &first);
  bool in_place = stays_in_place(w, op);
  w->spared = w->assume ? tw_assume_unwritten(kept, array, in_place)
                        : tw_may_be_disjoint(kept, array) || (in_place && mlirValueEqual(kept, array));
  return w->spared ? MlirWalkResultAdvance : MlirWalkResultInterrupt;
}

/* Whether the last walk changes no tile that it has yet to read. */
static bool are_spared(const cache_plan_t *plan, bool assume) {
  for (int t = 0; t < plan->num_tiles; t++) {
    cache_writes_t writes = {plan, &plan->tiles[t], assume, true};
    mlirOperationWalk(whole_walk(plan, plan->walks.count - 1), look_at_write, &writes, MlirWalkPreOrder);
    if (!writes.spared)
      return false;
  }
  return true;
}

/* ---- the plan -------------------------------------------------------------------------------------------- */

static MlirWalkResult count_scratch(MlirOperation op, void *user) {
  int64_t *most = user, bytes = tw_scratch_bytes(op);
  *most = bytes > *most ? bytes : *most;
  return MlirWalkResultAdvance;
}

static int64_t stage_bytes(const cache_plan_t *plan) {
  int64_t bytes = 0;
  for (int t = 0; t < plan->num_tiles; t++)
    bytes += tw_stage_bytes(tw_promoted_type(plan->tiles[t].loads[0]));
  return bytes;
}

/* How many blocks shall fit on a multiprocessor where the number of iterations is not known: WARPS warps together, so
 * that one loads while others compute; fewer where rows are so long that these have enough under way. */
static int64_t choose_blocks(const cache_plan_t *plan, MlirOperation func) {
  int64_t blocks = WARPS / tw_num_warps(func, WARPS);
  if (tw_launch_cluster_blocks(func, 0) > 1)
    return blocks < CLUSTERED_BLOCKS ? blocks : CLUSTERED_BLOCKS;
  if (plan->around.count == 0)
    return blocks;
  int64_t enough = BYTES_UNDER_WAY / (tw_least_trips(nest_of(plan, 0)) * stage_bytes(plan));
  enough = enough > FEW_BLOCKS ? enough : FEW_BLOCKS;
  return enough < blocks ? enough : blocks;
}

/* As many stages as there are iterations, if they fit into a block's shared memory. */
static int choose_stages(const cache_plan_t *plan, MlirOperation func) {
  tw_gpu_target_t target = tw_gpu_share_of(func);
  int64_t scratch = 0, room = target.shared_bytes, blocks = choose_blocks(plan, func);
  int64_t share = target.shared_bytes_sm / (blocks < 1 ? 1 : blocks) - TW_SHARED_BYTES_OF_DRIVER;
  if (plan->trips < 0 && !tw_has_hint_occupancy(func) && share < room)
    room = share;
  mlirOperationWalk(func, count_scratch, &scratch, MlirWalkPreOrder);
  int64_t stages = (room - scratch) / stage_bytes(plan), most = plan->around.count > 0 ? MAX_NEST_STAGES : MAX_STAGES;
  if (plan->trips >= 0 && stages > plan->trips)
    stages = plan->trips;
  return (int)(stages < most ? stages : most);
}

/* The walks from `first` on. */
static void find_walks(cache_plan_t *plan, MlirOperation first) {
  MlirValue bound = mlirOperationGetOperand(first, 1);
  int64_t trips;
  plan->trips = tw_known_int(bound, &trips) ? trips : -1;
  tw_ops_add(&plan->walks, first);
  if (tw_may_write_arrays(first))
    return;
  for (MlirOperation op = mlirOperationGetNextInBlock(first); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    bool same = tw_is_walk(op) && (mlirValueEqual(mlirOperationGetOperand(op, 1), bound) ||
                                   (plan->trips >= 0 && is_int(mlirOperationGetOperand(op, 1), plan->trips)));
    if (same)
      tw_ops_add(&plan->walks, op);
    if (tw_may_write_arrays(op))
      return;
  }
}

static void add_nest(cache_plan_t *plan, tw_nest_t nest) {
  tw_ops_add(&plan->around, nest.outer);
  tw_ops_add(&plan->walks, nest.inner);
}

/* The nests from `first` on. That all of their tiles have a stage is never taken for known. */
static void find_nests(cache_plan_t *plan, tw_nest_t first) {
  plan->trips = -1;
  add_nest(plan, first);
  if (tw_may_write_arrays(first.outer))
    return;
  for (MlirOperation op = mlirOperationGetNextInBlock(first.outer); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    tw_nest_t nest;
    if (tw_find_nest(op, &nest) && tw_are_nests_alike(first, nest))
      add_nest(plan, nest);
    if (tw_may_write_arrays(op))
      return;
  }
}

static void free_plan(cache_plan_t *plan) {
  for (int i = 0; i < plan->num_tiles; i++)
    free(plan->tiles[i].loads);
  free(plan->tiles);
  tw_ops_free(&plan->walks);
  tw_ops_free(&plan->around);
  *plan = (cache_plan_t){.num_tiles = 0};
}

static bool keeps_some(cache_plan_t *plan, MlirOperation func) {
  if (plan->walks.count < 2)
    return false;
  note_loads(plan);
  drop_single(plan);
  plan->stages = plan->num_tiles > 0 && are_spared(plan, false) ? choose_stages(plan, func) : 0;
  return plan->stages >= MIN_STAGES;
}

/* Whether something is kept from a walk on. The caller frees the plan. */
static bool make_plan(cache_plan_t *plan, MlirOperation func, MlirOperation first) {
  tw_nest_t nest;
  *plan = (cache_plan_t){.num_tiles = 0};
  if (!tw_is_walk(first))
    return false;
  find_walks(plan, first);
  if (keeps_some(plan, func))
    return true;
  free_plan(plan);
  if (!tw_find_nest(first, &nest))
    return false;
  find_nests(plan, nest);
  return keeps_some(plan, func);
}

static bool has_room(MlirOperation func) {
  tw_gpu_target_t target = tw_gpu_target_of(func);
  return tw_gpu_has(&target, TW_GPU_CP_ASYNC) && !tw_has_op_like(func, tw_op_is_product) &&
         !tw_has_op_like(func, tw_op_is_async_product) && mlirOperationIsNull(tw_roles_of(func)) &&
         !tw_has_op_like(func, tw_makes_buffer);
}

static MlirOperation function_of(MlirOperation op) {
  while (!tw_op_is(op, TW_FUNC_FUNC))
    op = mlirOperationGetParentOperation(op);
  return op;
}

static bool keeps(const cache_plan_t *plan, MlirOperation load) {
  bool kept = false;
  for (int t = 0; t < plan->num_tiles; t++)
    for (int w = 0; w < plan->walks.count; w++)
      kept |= mlirOperationEqual(plan->tiles[t].loads[w], load);
  return kept;
}

bool tw_is_kept(MlirOperation load) {
  MlirOperation loop = mlirOperationGetParentOperation(load), func = function_of(load);
  bool kept = false;
  if (!has_room(func))
    return false;
  for (MlirOperation op = mlirBlockGetFirstOperation(mlirOperationGetBlock(loop)); !mlirOperationIsNull(op) && !kept;
       op = mlirOperationGetNextInBlock(op)) {
    cache_plan_t plan;
    if (make_plan(&plan, func, op)) {
      kept = keeps(&plan, load);
      op = whole_walk(&plan, plan.walks.count - 1);
    }
    free_plan(&plan);
  }
  return kept;
}

/* Bytes of the tiles that walks from a first one on read again, where it is known how many these are. */
static int64_t row_bytes(MlirOperation first) {
  cache_plan_t plan = {.num_tiles = 0};
  int64_t bytes = 0;
  if (tw_is_walk(first))
    find_walks(&plan, first);
  if (plan.walks.count >= 2 && plan.trips >= MIN_STAGES && plan.trips <= MAX_STAGES) {
    note_loads(&plan);
    drop_single(&plan);
    if (plan.num_tiles > 0 && are_spared(&plan, false))
      bytes = plan.trips * stage_bytes(&plan);
  }
  free_plan(&plan);
  return bytes;
}

int64_t tw_bytes_to_keep(MlirOperation func) {
  int64_t most = 0;
  tw_ops_t loops = has_room(func) ? tw_loops_in(func, MlirWalkPreOrder) : (tw_ops_t){NULL, 0};
  for (int i = 0; i < loops.count; i++) {
    int64_t bytes = row_bytes(loops.at[i]);
    most = bytes > most ? bytes : most;
  }
  tw_ops_free(&loops);
  return most;
}

/* ---- rewriting --------------------------------------------------------------------------------------------- */

/* How many tiles are kept; null: all, whose number is known. */
static MlirValue count_kept(const tw_builder_t *at, const cache_plan_t *plan) {
  MlirType i32 = tw_i32(at->context);
  if (plan->trips == plan->stages)
    return (MlirValue){NULL};
  return tw_binary(at, "arith.minsi", i32, mlirOperationGetOperand(plan->walks.at[0], 1),
                   tw_const_int(at, i32, plan->stages));
}

/* Of the copies so far. */
static void note_owner(cache_plan_t *plan, const kept_row_t *tile, MlirOperation copy) {
  tw_layout_t layout;
  MlirType type = mlirValueGetType(mlirOperationGetResult(tile->loads[0], 0));
  plan->own = plan->own && tw_layout_of_type(type, &layout) &&
              twg_reads_own_pieces(copy, &layout, tw_num_warps(function_of(copy), 0));
}

/* Copies the tile of an iteration, the numbers of whose loops `map` has, to a stage. */
static void build_copy(const tw_builder_t *at, cache_plan_t *plan, const kept_row_t *tile, MlirValue stage,
                       tw_map_t *map) {
  MlirValue operands[TW_MAX_RANK + 3];
  MlirOperation load = tile->loads[0];
  int n = 0;
  for (; n < mlirOperationGetNumOperands(load); n++)
    operands[n] = tw_copy_slice(at, mlirOperationGetOperand(load, n), tw_loop_body(whole_walk(plan, 0)), map);
  int32_t segments[] = {1, n - 1, 1, 1, 0};
  operands[n++] = tile->buffer;
  operands[n++] = stage;
  tw_attr_t attrs[] = {{"operandSegmentSizes", mlirDenseI32ArrayGet(at->context, 5, segments)},
                       {TW_COPY_PADDING, tw_attr(load, "padding")}};
  MlirOperation copy = tw_build(
      at, "tile.async_copy",
      (tw_op_parts_t){
          .num_operands = n, .operands = operands, .num_attrs = tw_has_attr(load, "padding") ? 2 : 1, .attrs = attrs});
  tw_access_keep(load, copy);
  note_owner(plan, tile, copy);
}

static void build_copies_of_nest(const tw_builder_t *at, void *user, MlirValue outer, MlirValue inner,
                                 MlirValue stage) {
  cache_plan_t *plan = user;
  tw_map_t map = {0};
  tw_map_one(&map, tw_loop_iv(plan->around.at[0]), outer);
  tw_map_one(&map, tw_loop_iv(plan->walks.at[0]), inner);
  for (int t = 0; t < plan->num_tiles; t++)
    build_copy(at, plan, &plan->tiles[t], stage, &map);
  tw_map_free(&map);
}

static void start_copies(const tw_builder_t *at, cache_plan_t *plan, MlirValue kept) {
  MlirType i32 = tw_i32(at->context);
  for (int s = 0; s < plan->stages; s++) {
    MlirValue stage = tw_const_int(at, i32, s);
    tw_builder_t in = *at;
    if (kept.ptr) {
      MlirValue exists = tw_compare(at, TW_SLT, stage, kept);
      MlirRegion regions[] = {mlirRegionCreate(), mlirRegionCreate()};
      MlirBlock body = mlirBlockCreate(0, NULL, NULL);
      mlirRegionAppendOwnedBlock(regions[0], body);
      tw_build(at, "scf.if",
               (tw_op_parts_t){.num_operands = 1, .operands = &exists, .num_regions = 2, .regions = regions});
      in = tw_build_at_end(body, at->location);
    }
    for (int t = 0; t < plan->num_tiles; t++) {
      tw_map_t map = {0};
      tw_map_one(&map, tw_loop_iv(plan->walks.at[0]), stage);
      build_copy(&in, plan, &plan->tiles[t], stage, &map);
      tw_map_free(&map);
    }
    if (kept.ptr)
      tw_build(&in, "scf.yield", (tw_op_parts_t){0});
    tw_build_commit(at);
  }
}

static void wait_for_stage(const tw_builder_t *at, const cache_plan_t *plan) {
  tw_build_commit(at);
  tw_build_copy_wait(at, plan->stages);
  if (!plan->own)
    tw_build_barrier(at, TW_ORDERS_COPIES);
}

/* The loop again behind itself, for the iterations from `kept` on. */
static MlirOperation split_walk(MlirOperation loop, MlirValue kept) {
  MlirOperation rest = mlirOperationClone(loop);
  mlirBlockInsertOwnedOperationAfter(mlirOperationGetBlock(loop), loop, rest);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(loop); i++) {
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(loop, i), mlirOperationGetResult(rest, i));
    mlirOperationSetOperand(rest, i + TW_FOR_INITS, mlirOperationGetResult(loop, i));
  }
  mlirOperationSetOperand(rest, 0, kept);
  mlirOperationSetOperand(loop, 1, kept);
  return rest;
}

/* The loads of a walk that are kept, as a copy of its loop has them. */
static tw_ops_t loads_in_copy(const cache_plan_t *plan, int walk, MlirOperation copy) {
  tw_ops_t found = {NULL, 0};
  MlirOperation like = mlirBlockGetFirstOperation(tw_loop_body(copy));
  TW_EACH_OP(op, tw_loop_body(plan->walks.at[walk])) {
    for (int t = 0; t < plan->num_tiles; t++)
      if (mlirOperationEqual(plan->tiles[t].loads[walk], op))
        tw_ops_add(&found, like);
    like = mlirOperationGetNextInBlock(like);
  }
  return found;
}

/* `first`: the stage of the first iteration; null: 0. */
static void read_kept(const cache_plan_t *plan, int walk, MlirValue first) {
  MlirOperation loop = plan->walks.at[walk];
  for (int t = 0; t < plan->num_tiles; t++) {
    MlirOperation load = plan->tiles[t].loads[walk];
    if (mlirOperationIsNull(load))
      continue;
    tw_builder_t at = tw_build_before(load);
    MlirValue stage = tw_loop_iv(loop), result = mlirOperationGetResult(load, 0);
    if (first.ptr)
      stage = tw_binary(&at, "arith.addi", mlirValueGetType(stage), first, stage);
    MlirValue operands[] = {plan->tiles[t].buffer, stage};
    mlirValueReplaceAllUsesOfWith(result, tw_op1(&at, "tile.local_load", mlirValueGetType(result), 2, operands));
    mlirOperationDestroy(load);
  }
}

static void tell(const cache_plan_t *plan, MlirOperation load) {
  char tile[160];
  tw_describe_tile(mlirValueGetType(mlirOperationGetResult(load, 0)), sizeof tile, tile);
  tw_op_remark(load, "is cached in shared memory for the loops that follow: %s%d tiles of %s", //
               plan->trips == plan->stages ? "" : "up to ", plan->stages, tile);
}

/* Starts what is kept, and has the walks read it. */
static void rewrite_walks(const tw_builder_t *before, cache_plan_t *plan) {
  MlirValue kept = count_kept(before, plan), none = {NULL};
  start_copies(before, plan, kept);
  for (int w = 0; w < plan->walks.count; w++) {
    if (kept.ptr)
      split_walk(plan->walks.at[w], kept);
    read_kept(plan, w, none);
  }
}

static void rewrite_nests(const tw_builder_t *before, cache_plan_t *plan) {
  tw_start_nest(before, nest_of(plan, 0), plan->stages, build_copies_of_nest, plan);
  for (int w = 0; w < plan->walks.count; w++) {
    tw_nest_t nest = nest_of(plan, w);
    tw_builder_t at = tw_build_before(nest.inner);
    tw_stretch_t stretch = tw_stretch(&at, nest, plan->stages, tw_loop_iv(nest.outer));
    MlirOperation rest = split_walk(nest.inner, stretch.kept);
    tw_ops_t loads = loads_in_copy(plan, w, rest);
    tw_load_in_fours(rest, &loads);
    tw_ops_free(&loads);
    read_kept(plan, w, stretch.first);
  }
}

static void rewrite(cache_plan_t *plan) {
  tw_builder_t before = tw_build_before(whole_walk(plan, 0));
  for (int t = 0; t < plan->num_tiles; t++) {
    MlirType one = tw_promoted_type(plan->tiles[t].loads[0]);
    int64_t shape[TW_LAYOUT_MAX_RANK + 1] = {plan->stages};
    intptr_t rank = tw_buffer_type_rank(one);
    for (intptr_t d = 1; d < rank; d++)
      shape[d] = tw_buffer_type_extent(one, d);
    MlirType type =
        tw_buffer_type_get(before.context, rank, shape, tw_buffer_type_element(one), tw_buffer_type_layout(one));
    plan->tiles[t].buffer = tw_alloc_buffer(&before, type);
    tell(plan, plan->tiles[t].loads[0]);
  }
  MlirOperation meeting = tw_null_op();
  if (!mlirOperationIsNull(tw_enclosing_loop(whole_walk(plan, 0)))) /* others may still read what was kept before */
    meeting = tw_build_barrier(&before, TW_ORDERS_COPIES);
  plan->own = true;
  if (plan->around.count > 0)
    rewrite_nests(&before, plan);
  else
    rewrite_walks(&before, plan);
  if (plan->own && !mlirOperationIsNull(meeting))
    mlirOperationDestroy(meeting);
  tw_builder_t top = tw_build_before(mlirBlockGetFirstOperation(tw_loop_body(plan->walks.at[0])));
  wait_for_stage(&top, plan);
  for (int w = 0; w < plan->walks.count; w++)
    tw_split_by_masks(plan->walks.at[w]);
}

static void visit_block(MlirOperation func, MlirBlock block) {
  TW_EACH_OP(op, block) {
    cache_plan_t plan;
    bool keeps = make_plan(&plan, func, op) && are_spared(&plan, true);
    if (keeps) {
      rewrite(&plan);
      op = whole_walk(&plan, plan.walks.count - 1);
    }
    free_plan(&plan);
    if (keeps)
      continue;
    for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
      if (!mlirBlockIsNull(tw_region_block(op, r)))
        visit_block(func, tw_region_block(op, r));
  }
}

bool tw_run_cache_tiles(MlirOperation func) {
  if (tw_has_attr(func, "tile.kernel") && !tw_has_attr(func, "tile.simt") && has_room(func))
    visit_block(func, tw_region_block(func, 0));
  return true;
}
