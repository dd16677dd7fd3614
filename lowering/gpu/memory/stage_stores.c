/* stage_stores.c - tile-promote-memory: results of warpgroups are stored by TMA through shared memory
 *
 * Before, each thread writes what it owns, after an exchange that gives it neighbours:
 *
 *   %t = arith.truncf %d : tensor<128x256xf32, #acc> to tensor<128x256xbf16, #acc>
 *   %c = tile.convert_layout %t : tensor<128x256xbf16, #acc> -> tensor<128x256xbf16, #coalesced>
 *   tile.store %c, %C[%i, %j]
 *
 * After, warpgroups write boxes into shared memory, which the accelerator takes from there; a warpgroup goes on
 * meanwhile, with its next box, or with the next block of a persistent kernel:
 *
 *   %b = tile.alloc_shared : !tile.buffer<4x64x64xbf16, #box>    // two stages a warpgroup
 *   ...
 *   tile.tma_store %t through %b into %C[%i, %j]
 *   ...
 *   tile.tma_store_wait %b                                       // before the kernel ends
 *
 * Runs before the depth of multibuffers is chosen, which counts these buffers. What must hold: a product of the kernel
 * is asynchronous; a tensor map describes the array (`tile.tma`), and the store is its only access but for stores to
 * other tiles behind all loops, so that nobody can see when it happens; within a loop of the program it stores to
 * another place each time (as it does still, or did before its indices were optimized); no other array that the kernel
 * writes, or reads behind it, shares memory with this one (aliasing.h); and the tile is made of boxes (store_boxes.h).
 * The buffers leave room for everything else, twice for what is copied in the loops of a block. Elements outside of the
 * array are dropped by the accelerator. Where there is no room for the exchange above either, threads store what they
 * computed.
 */
#include "lowering/gpu/memory/stage_stores.h"
#include "dialect/layouts.h"
#include "lowering/aliasing.h"
#include "lowering/common/match_step.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/buffer.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/facts/same_tile.h"
#include "lowering/gpu/facts/scratch.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/machine/copy_engine.h"
#include "lowering/gpu/machine/store_boxes.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/ir.h"
#include "lowering/loops.h"
#include "tilewright/dialect.h"

enum {
  MAX_STAGED = TW_MAX_MAPS - TW_ENGINE_MAX_LOADED,
  STAGES = 2,
  SWIZZLE_BYTES = 128,
  MIN_STAGES = 2,
  BARRIERS = 2048
};

typedef struct {
  MlirOperation func;
  tw_ops_t stores;
  int num_staged;
  MlirOperation staged[MAX_STAGED];
  int64_t taken; /* bytes of shared memory */
  bool releases; /* an op that releases what was stored before it */
} stager_t;

/* ---- what can be staged ------------------------------------------------------------------------ */

static bool only_writes(MlirOperation op) { return mlirOperationGetNumResults(op) == 0; }

static MlirOperation filled_by(MlirValue buffer, bool (*fills)(MlirOperation op)) {
  TW_EACH_USE(use, buffer)
    if (fills(mlirOpOperandGetOwner(use)))
      return mlirOpOperandGetOwner(use);
  return tw_null_op();
}

/* The copy that fills the buffer; null where threads write it. */
static MlirOperation copy_into(MlirValue buffer) { return filled_by(buffer, tw_op_copies_tile); }

/* Whether the ops are in loops that follow one another, or in loops within such. */
static bool in_turn(MlirOperation x, MlirOperation y) {
  for (MlirOperation a = tw_enclosing_loop(x); !mlirOperationIsNull(a); a = tw_enclosing_loop(a)) {
    MlirOperation b = tw_ancestor_in(y, mlirOperationGetBlock(a));
    if (!mlirOperationIsNull(b))
      return !mlirOperationEqual(a, b) && (tw_op_is(b, TW_SCF_FOR) || tw_op_is(b, TW_SCF_WHILE));
  }
  return false;
}

/* Whether two copies bring the same form of tile in loops that follow one another: they go through the same stages. */
static bool take_turns(MlirOperation x, MlirOperation y) {
  return mlirTypeEqual(mlirValueGetType(tw_copy_buffer(x)), mlirValueGetType(tw_copy_buffer(y))) && in_turn(x, y);
}

/* How many stages a buffer has at least that the op fills; more than one where a loop of the program does it. */
static int times_filled(MlirOperation op) {
  return !mlirOperationIsNull(op) && tw_repeating_loop(op) == NULL ? 1 : MIN_STAGES;
}

/* What a buffer takes at least, beside those before it. */
static int64_t bytes_taken(MlirOperation alloc) {
  MlirOperation copy = copy_into(mlirOperationGetResult(alloc, 0)), op = alloc;
  int64_t bytes = tw_buffer_bytes(mlirValueGetType(mlirOperationGetResult(alloc, 0)));
  if (mlirOperationIsNull(copy))
    return times_filled(filled_by(mlirOperationGetResult(alloc, 0), only_writes)) * bytes;
  for (op = mlirOperationGetNextInBlock(op); !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    MlirOperation other = tw_makes_buffer(op) ? copy_into(mlirOperationGetResult(op, 0)) : tw_null_op();
    if (!mlirOperationIsNull(other) && take_turns(copy, other))
      return 0; /* counted there */
  }
  return times_filled(copy) * bytes;
}

static MlirWalkResult collect(MlirOperation op, void *user) {
  stager_t *s = user;
  if (tw_op_stores_tile(op))
    tw_ops_add(&s->stores, op);
  s->releases = s->releases || tw_releases(op);
  if (tw_makes_buffer(op))
    s->taken += bytes_taken(op);
  return MlirWalkResultAdvance;
}

/* Whether an op loads each tile before the store writes it, and nothing loads it after. */
static bool loads_in_place(MlirOperation op, MlirOperation store) {
  return (tw_op_loads_tile(op) || tw_op_copies_tile(op)) && tw_reads_before(op, store, tw_null_op());
}

static bool is_in_loop_of_program(MlirOperation op) {
  for (MlirOperation loop = tw_enclosing_loop(op); !mlirOperationIsNull(loop); loop = tw_enclosing_loop(loop))
    if (!tw_has_attr(loop, TW_PERSISTENT))
      return true;
  return false;
}

static MlirType stored_type(MlirOperation store) {
  bool by_engine = !tw_op_stores_tile(store);
  return mlirValueGetType(mlirOperationGetOperand(store, by_engine ? 0 : mlirOperationGetNumOperands(store) - 1));
}

/* Whether another store of the block writes another tile of the array: of the same shape, with an index that differs by
 * a known number. */
static bool writes_elsewhere(MlirOperation op, MlirOperation store) {
  bool by_engine = tw_op_has(op, TW_COPIES_BY_ENGINE) && tw_op_has(op, TW_WRITES_ARRAY);
  if ((!by_engine && !tw_op_stores_tile(op)) || is_in_loop_of_program(op) || is_in_loop_of_program(store) ||
      !mlirAttributeEqual(tw_attr(op, "order"), tw_attr(store, "order")))
    return false;
  MlirType x = stored_type(op), y = stored_type(store);
  bool alike = tw_is_tile(x) && tw_is_tile(y) && tw_rank(x) == tw_rank(y);
  for (intptr_t d = 0; alike && d < tw_rank(x); d++)
    alike = tw_extent(x, d) == tw_extent(y, d);
  intptr_t first, second, rank = tw_rank(mlirValueGetType(tw_access_array(op, &first)));
  tw_access_array(store, &second);
  for (intptr_t d = 0; alike && d < rank; d++) {
    int64_t apart;
    if (tw_differ_by(mlirOperationGetOperand(op, first + d), mlirOperationGetOperand(store, second + d), &apart) &&
        apart != 0)
      return true;
  }
  return false;
}

/* Whether the store is the only op that writes its tile of the array, and what others read of it cannot see that. */
static bool is_only_access(MlirOperation store, MlirValue array) {
  TW_EACH_USE(use, array) {
    MlirOperation op = mlirOpOperandGetOwner(use);
    if (!mlirOperationEqual(op, store) && !tw_is_index_fact(op) && !loads_in_place(op, store) &&
        !writes_elsewhere(op, store))
      return false;
  }
  return true;
}

/* Whether the store finds another place in each iteration of all loops of the program around it: copies that the
 * accelerator has been given may be done in any order. */
static bool is_elsewhere_each_time(MlirOperation store) {
  if (tw_has_attr(store, TW_MOVES))
    return true;
  for (MlirOperation loop = tw_enclosing_loop(store); !mlirOperationIsNull(loop); loop = tw_enclosing_loop(loop))
    if (!tw_has_attr(loop, TW_PERSISTENT) && !tw_moves_each_time(loop, store))
      return false;
  return true;
}

typedef struct {
  MlirValue array;
  MlirOperation store;
} staged_store_t;

/* Whether the op may run behind the store: if a loop of the program is around the store, everything may. */
static bool may_follow(MlirOperation store, MlirOperation op) {
  MlirOperation at = store;
  while (!tw_inside(op, mlirOperationGetBlock(at)))
    at = mlirOperationGetParentOperation(at);
  return tw_loop_around(store) != NULL ||
         mlirOperationIsBeforeInBlock(at, tw_ancestor_in(op, mlirOperationGetBlock(at)));
}

static bool may_share(MlirOperation op, const void *user) {
  const staged_store_t *staged = user;
  bool matters = !tw_is_index_fact(op) && (tw_stores_to_array(op) || may_follow(staged->store, op));
  for (intptr_t i = 0; matters && i < mlirOperationGetNumOperands(op); i++) {
    MlirValue other = mlirOperationGetOperand(op, i);
    if (mlirTypeIsAMemRef(mlirValueGetType(other)) && !mlirValueEqual(other, staged->array) &&
        !tw_assume_unwritten(other, staged->array, loads_in_place(op, staged->store)))
      return true;
  }
  return false;
}

/* Whether the array shares memory with none that is written, or is read behind the store. Fences order what threads
 * write to shared memory with the accelerator, not what they write to arrays. */
static bool is_alone(const stager_t *s, MlirValue array, MlirOperation store) {
  return mlirOperationIsNull(tw_find_op(s->func, may_share, &(staged_store_t){array, store}));
}

/* The value in the layout in which it was computed. */
static MlirValue computed(MlirValue value) {
  MlirOperation def = tw_def(value);
  bool converted = !mlirOperationIsNull(def) && tw_op_is_conversion(def);
  return converted ? mlirOperationGetOperand(def, 0) : value;
}

/* The buffer that `stages` boxes a warpgroup take. */
static MlirType buffer_for(MlirValue value, int inner, const tw_store_boxes_t *boxes, int stages) {
  MlirType element = tw_element(mlirValueGetType(value));
  MlirContext context = mlirTypeGetContext(element);
  int order[TW_LAYOUT_MAX_RANK], n = 0, rank = boxes->box.rank;
  int64_t shape[TW_LAYOUT_MAX_RANK + 1] = {(int64_t)stages << boxes->group_bits};
  order[n++] = inner;
  for (int d = rank - 1; d >= 0; d--)
    if (d != inner)
      order[n++] = d;
  for (int d = 0; d < rank; d++)
    shape[1 + d] = boxes->shape[d];
  tw_layout_t layout = tw_shared_swizzled(rank, boxes->shape, order, tw_memory_bits(element), SWIZZLE_BYTES);
  return tw_buffer_type_get(context, rank + 1, shape, element, tw_layout_attribute(context, &layout));
}

/* The buffer of such a form that a store in a loop before this one's has, or one to another tile of the array: boxes go
 * through its stages one after the other, whichever store they are of. Null if there is none. */
static MlirValue shared_buffer(const stager_t *s, MlirOperation store, MlirType type) {
  for (int i = 0; i < s->num_staged; i++) {
    intptr_t first, second;
    MlirValue buffer = mlirOperationGetOperand(s->staged[i], 1);
    bool other_tile = mlirValueEqual(tw_access_array(s->staged[i], &first), tw_access_array(store, &second));
    if (mlirTypeEqual(mlirValueGetType(buffer), type) && (other_tile || in_turn(s->staged[i], store)))
      return buffer;
  }
  return (MlirValue){NULL};
}

/* Null, with the buffer that it takes; or why the store is left as it is. */
static const char *plan(stager_t *s, MlirOperation store, MlirValue value, MlirType *buffer) {
  intptr_t first;
  int64_t order[TW_LAYOUT_MAX_RANK];
  tw_gpu_target_t target = tw_gpu_target_of(store);
  MlirValue array = tw_access_array(store, &first);
  tw_layout_t layout;
  tw_store_boxes_t boxes;
  tw_engine_copy_t copy;
  if (!tw_engine_is_allowed(store))
    return "it says " TW_REFUSES_ENGINE;
  if (s->releases)
    return "an atomic access of the kernel releases what it stored";
  if (!is_elsewhere_each_time(store))
    return "a loop may store to the same place again";
  if (!is_only_access(store, array))
    return "the kernel reads or writes the array elsewhere too";
  if (!tw_is_tile(mlirValueGetType(value)) || !tw_layout_of_type(mlirValueGetType(value), &layout))
    return "it is no tile with a layout";
  int inner = tw_access_contiguous_dim(store, layout.rank);
  if (!tw_store_boxes_of(&layout, inner, tw_memory_bits(tw_element(mlirValueGetType(value))), &boxes))
    return "warpgroups do not own boxes of its tile";
  *buffer = buffer_for(value, inner, &boxes, boxes.num_outside ? STAGES : 1);
  tw_access_order(store, layout.rank, order);
  const char *reason = tw_engine_plan_for(array, order, *buffer, &copy);
  if (reason == NULL && copy.step_bits > 0)
    return "its boxes are longer than the accelerator's";
  bool shares = !mlirValueIsNull(shared_buffer(s, store, *buffer));
  if (reason == NULL && !shares && s->taken + tw_buffer_bytes(*buffer) + BARRIERS > target.shared_bytes)
    return "shared memory has no room for its boxes";
  if (reason == NULL && s->num_staged == MAX_STAGED)
    return "a kernel has no more tensor maps";
  if (reason == NULL && !is_alone(s, array, store)) /* last: it may make assumptions */
    return "the array may be another that the kernel writes, or reads behind it";
  return reason;
}

/* ---- rewriting --------------------------------------------------------------------------------- */

static void rewrite(stager_t *s, MlirOperation store, MlirValue value, MlirType type) {
  intptr_t first, n = 0;
  MlirValue array = tw_access_array(store, &first), operands[TW_MAX_RANK + 3];
  tw_builder_t top = tw_build_before(mlirBlockGetFirstOperation(tw_region_block(s->func, 0))),
               at = tw_build_before(store);
  tw_builder_t end = tw_build_before(mlirBlockGetTerminator(tw_region_block(s->func, 0)));
  top.location = end.location = at.location;
  MlirValue buffer = shared_buffer(s, store, type);
  bool shares = !mlirValueIsNull(buffer);
  if (!shares)
    buffer = tw_alloc_buffer(&top, type);
  operands[n++] = value;
  operands[n++] = buffer;
  operands[n++] = array;
  for (intptr_t i = 0; i < mlirShapedTypeGetRank(mlirValueGetType(array)); i++)
    operands[n++] = mlirOperationGetOperand(store, first + i);
  MlirOperation made = tw_build(&at, "tile.tma_store", (tw_op_parts_t){.num_operands = n, .operands = operands});
  tw_access_keep(store, made);
  if (!shares)
    tw_build(&end, "tile.tma_store_wait", (tw_op_parts_t){.num_operands = 1, .operands = &buffer});
  MlirOperation def = tw_def(mlirOperationGetOperand(store, first + n - 3));
  mlirOperationDestroy(store);
  if (tw_op_is_conversion(def) && mlirOpOperandIsNull(mlirValueGetFirstUse(mlirOperationGetResult(def, 0))))
    mlirOperationDestroy(def);
  s->taken += shares ? 0 : tw_buffer_bytes(type);
  s->staged[s->num_staged++] = made;
}

/* Has threads store what they computed where buffers leave no room to exchange it: their pieces are shorter. A tile
 * that alone is too large stays as it is, for which other plans follow. */
static void store_as_computed(const stager_t *s, MlirOperation store, intptr_t at) {
  MlirOperation conversion = tw_def(mlirOperationGetOperand(store, at));
  int64_t room = tw_gpu_target_of(store).shared_bytes - BARRIERS;
  if (mlirOperationIsNull(conversion) || !tw_op_is(conversion, TW_TILE_CONVERT_LAYOUT))
    return;
  int64_t exchanged = tw_scratch_bytes(conversion);
  if (exchanged > room || s->taken + exchanged <= room)
    return;
  mlirOperationSetOperand(store, at, mlirOperationGetOperand(conversion, 0));
  tw_erase_dead(conversion);
  tw_op_remark(store, "stores what each thread computed: shared memory has no room to exchange it");
}

bool tw_stage_stores(MlirOperation func) {
  stager_t s = {.func = func};
  if (!tw_has_engine(func) || !tw_has_async_mma(func))
    return true;
  mlirOperationWalk(func, collect, &s, MlirWalkPreOrder);
  for (int i = 0; i < s.stores.count; i++) {
    intptr_t first;
    MlirType buffer;
    MlirOperation store = s.stores.at[i];
    MlirValue array = tw_access_array(store, &first);
    MlirValue value = computed(mlirOperationGetOperand(store, first + mlirShapedTypeGetRank(mlirValueGetType(array))));
    const char *reason = plan(&s, store, value, &buffer);
    if (reason) {
      tw_op_remark(store, "is done by the threads: %s", reason);
      store_as_computed(&s, store, first + mlirShapedTypeGetRank(mlirValueGetType(array)));
    } else {
      rewrite(&s, store, value, buffer);
    }
  }
  tw_ops_free(&s.stores);
  return true;
}
