/* specialize_warps.c - tile-specialize-warps: a producer warp brings tiles, the other warps compute
 *
 * Before (made by tile-promote-memory), every iteration waits for its own copies:
 *
 *   scf.for %k = %lb to %ub step %s iter_args(%acc = %zero) {
 *     tile.async_copy %A[%i, %k] into %a[%c0] ; commit ; wait 0 ; barrier
 *     tile.async_copy %B[%k, %j] into %b[%c0] ; commit ; wait 0 ; barrier
 *     %d = tile.wgmma %a[%c0], %b[%c0], %acc ; %w = tile.wgmma_wait %d, 0 ; barrier
 *     yield %w
 *   }
 *
 * After, with N slots a buffer:
 *
 *   %full = tile.alloc_barriers arrivals 1, %empty = tile.alloc_barriers arrivals (number of warps)
 *   tile.roles producer_warps 1 producer {
 *     scf.for %k ... iter_args(%slot = 0, %parity = 0) {
 *       tile.barrier_wait %empty[%slot], %parity ^ 1
 *       tile.barrier_expect %full[%slot], bytes of both
 *       tile.tma_load %A[%i, %k] into %a[%slot] signal %full[%slot] ; the same of %B
 *       yield (%slot + 1) mod N, %parity flipped where the slot wrapped
 *     }
 *   } consumer {
 *     scf.for %k ... iter_args(%acc = poison, %slot = 0, %parity = 0, %last = 0) {
 *       tile.barrier_wait %full[%slot], %parity
 *       %more = %k != %lb ; %c = select %more, %acc, %zero
 *       %d = tile.wgmma %a[%slot], %b[%slot], %c ; %w = tile.wgmma_wait %d, 1
 *       tile.barrier_arrive %empty[%last] if %more
 *       yield %w, as above, %slot
 *     }
 *     tile.wgmma_wait 0 ; tile.barrier_arrive %empty[%last] if %lb < %ub ; zeros unless %lb < %ub
 *   }
 *
 * Words: a *fill* is a run of copies that one op reads first; they share a barrier. A *ring* is the
 * buffers of a fill, each with as many slots, and the barriers of the slots. Fills of the same form
 * whose contents never live at once share a ring. Both roles are the kernel emitted again: the
 * producer's is sliced to what the copies' positions depend on; in both every loop or branch around
 * a fill carries the state of its ring (slot and parity), so that any nesting goes on with it.
 *
 * A loop's products that only add to values which the loop carries run into the next iteration, as
 * above; all others are waited for where they were. Where there are such others, the first wait for
 * one of them is behind what ran on, which needs none of its own:
 *
 *   %s = tile.wgmma %k, %q, %zero ; %x = tile.wgmma_wait %s, 0       // and for %d of before
 *   %p = ... %x ... ; %d = tile.wgmma %p, %q, %acc ; yield %d
 *
 * Registers that such a product reads (%p) are then written behind that wait only, and there must be
 * enough of them (rings.c). The slots of a fill are given back after the op that ends the last read:
 * a local_load, or the wgmma_wait that covers the product, which may stand in the next iteration.
 *
 * Where one warpgroup computes a whole tile of a persistent kernel, two teams take the blocks in turn, so that one's
 * products run while the other writes its result. The producer brings the tiles of all blocks one after the other
 * through the same ring; a team skips the slots of blocks that are not its own. A parity tells only two phases of a
 * slot apart, so a team begins when the other has found all of its slots full:
 *
 *   %t = tile.team ; tile.pass_turn if %t is the last
 *   scf.for %v = %first + %t * %step to %total step 2 * %step iter_args(%slot, %parity = %t * %n slots on) {
 *     tile.await_turn
 *     ... the loop, with %n iterations ...
 *     tile.pass_turn ; ... wait for the products, store ...
 *     yield (%n slots on)
 *   } {tile.persistent}
 *
 * A tile.async_gather is done by all threads of a producer of four warps, which compute its indices, in the layout of
 * the eight warps or more that these were made for: a thread has what two have there. They arrive when their copies
 * do (`tile.barrier_arrive %full[%slot] gathered`), which the barrier counts beside the announced bytes.
 *
 * What must hold: the tensor memory accelerator can do every async_copy of the kernel (`tile.tma` on
 * the array), eight warps compute where something is gathered, a copy is in a loop, positions depend on scalars and
 * tiles that no loop or branch passes on, what a copy brings
 * is read after it in its own block or deeper, no array that is copied from is written before (of two arrays it is
 * assumed that they share no memory: disjoint.h), and two slots of each ring fit. Else the kernel is left to
 * tile-pipeline, and a remark says why. `tile.num_stages` sets the number of slots. */
#include "lowering/gpu/access.h"
#include "lowering/gpu/emitter.h"
#include "lowering/gpu/raster.h"
#include "lowering/gpu/sm90/rings.h"
#include "lowering/gpu/sm90/wgmma.h"
#include "lowering/gpu/target.h"
#include "lowering/loops.h"
#include "lowering/passes.h"
#include "tilewright/dialect.h"

#include <stdlib.h>

enum { GROUP = TW_GATHERING_WARPS, LANES = 32 };

/* ---- state ------------------------------------------------------------------------------- */

/* Where a ring stands: the slot to fill or read next, the parity of its phase, the slot filled last. */
typedef struct {
  MlirValue slot, parity, last;
} state_t;

/* One role's code while it is made. */
typedef struct {
  tw_ring_plan_t *plan;
  bool producer;
  tw_builder_t at;
  tw_map_t values;
  state_t rings[TW_MAX_FILLS];
  state_t fills[TW_MAX_FILLS]; /* of its ring when the fill was made */
  MlirValue more;              /* in an overlapped loop: this is not the first iteration */
  /* What overlapped products start from where blocks share tiles: it is not read, but names the registers. */
  MlirValue kept[TW_MAX_OVERLAPS][TW_MAX_PRODUCTS];
  MlirOperation in_row; /* a product whose operands were waited for with those of the one before it */
  MlirOperation before; /* the op of the kernel that stands before the one at hand */
} role_t;

static MlirValue constant(const role_t *r, int64_t value) { return tw_const_int(&r->at, tw_i32(r->at.context), value); }

/* The next slot; where it wraps, the parity flips. */
static void advance(role_t *r, int ring) {
  state_t *state = &r->rings[ring];
  MlirType i32 = tw_i32(r->at.context);
  state->last = state->slot;
  if (!tw_comes_round(&r->plan->rings[ring]) && r->plan->rings[ring].slots == 1)
    return;
  MlirValue next = tw_binary(&r->at, "arith.addi", i32, state->slot, constant(r, 1));
  MlirValue wraps = tw_compare(&r->at, TW_EQ, next, constant(r, r->plan->rings[ring].slots));
  MlirValue flip = tw_unary(&r->at, "arith.extui", i32, wraps);
  state->slot = tw_select(&r->at, wraps, constant(r, 0), next);
  state->parity = tw_binary(&r->at, "arith.xori", i32, state->parity, flip);
}

/* Whether the fill needs the state of its ring to be carried by `op`, which is around it. */
static bool carries(const role_t *r, MlirOperation op, int ring) {
  if (!tw_comes_round(&r->plan->rings[ring]) && r->plan->rings[ring].slots == 1)
    return false;
  for (int f = 0; f < r->plan->num_fills; f++)
    if (r->plan->fills[f].ring == ring && tw_is_inside(r->plan->fills[f].copies[0], op))
      return true;
  return false;
}

enum { MAX_STATES = 3 * TW_MAX_FILLS + TW_MAX_OVERLAPS * TW_MAX_PRODUCTS };

/* Pointers to the accumulators that loops within `op` start from. */
static intptr_t carried_sums(role_t *r, MlirOperation op, MlirValue **out) {
  intptr_t n = 0;
  for (int o = 0; o < r->plan->num_overlaps; o++) {
    const tw_overlap_t *overlap = &r->plan->overlaps[o];
    for (int p = 0; p < overlap->num_products; p++)
      if (r->kept[o][p].ptr && !mlirOperationEqual(overlap->loop, op) && tw_is_inside(overlap->loop, op))
        out[n++] = &r->kept[o][p];
  }
  return n;
}

/* Pointers to the values of all rings that `op` carries. */
static intptr_t carried_state(role_t *r, MlirOperation op, MlirValue **out) {
  intptr_t n = carried_sums(r, op, out);
  for (int ring = 0; ring < r->plan->num_rings; ring++) {
    if (!carries(r, op, ring))
      continue;
    out[n++] = &r->rings[ring].slot;
    out[n++] = &r->rings[ring].parity;
    if (r->plan->rings[ring].late && !r->producer)
      out[n++] = &r->rings[ring].last;
  }
  return n;
}

/* ---- barriers ------------------------------------------------------------------------------ */

static void wait_for(role_t *r, MlirValue barriers, MlirValue slot, MlirValue parity, bool gathered) {
  MlirValue operands[] = {barriers, slot, parity};
  tw_attr_t attr = {"gathered", mlirUnitAttrGet(r->at.context)};
  tw_build(&r->at, "tile.barrier_wait",
           (tw_op_parts_t){.num_operands = 3, .operands = operands, .num_attrs = gathered, .attrs = &attr});
}

/* `meet`: lanes that read the slot have not met since. */
static void give_back(role_t *r, const tw_fill_t *fill, MlirValue slot, MlirValue condition, bool meet) {
  const tw_ring_t *ring = &r->plan->rings[fill->ring];
  if (!tw_comes_round(ring))
    return;
  MlirValue operands[] = {ring->empty, slot, condition};
  tw_attr_t attrs[2];
  intptr_t n = 0;
  if (meet)
    attrs[n++] = (tw_attr_t){"together", mlirUnitAttrGet(r->at.context)};
  if (ring->multicast)
    attrs[n++] = (tw_attr_t){TW_MULTICAST, mlirUnitAttrGet(r->at.context)};
  tw_build(
      &r->at, "tile.barrier_arrive",
      (tw_op_parts_t){.num_operands = condition.ptr ? 3 : 2, .operands = operands, .num_attrs = n, .attrs = attrs});
}

/* Bytes of a fill that the tensor memory accelerator brings. */
static int64_t announced_bytes(const tw_fill_t *fill) {
  int64_t bytes = 0;
  for (int c = 0; c < fill->num_copies; c++)
    if (!tw_op_is(fill->copies[c], "tile.async_gather"))
      bytes += tw_slot_bytes(mlirValueGetType(tw_copy_buffer(fill->copies[c])));
  return bytes;
}

static void expect(role_t *r, const tw_ring_t *ring, int64_t bytes, MlirValue slot) {
  MlirValue operands[] = {ring->full, slot};
  tw_attr_t attr = {"bytes", mlirIntegerAttrGet(tw_i32(r->at.context), bytes)};
  tw_build(&r->at, "tile.barrier_expect",
           (tw_op_parts_t){.num_operands = 2, .operands = operands, .num_attrs = 1, .attrs = &attr});
}

/* The arrival of all threads that gather. */
static void arrive_gathered(role_t *r, const tw_ring_t *ring, MlirValue slot) {
  MlirValue operands[] = {ring->full, slot};
  tw_attr_t attr = {"gathered", mlirUnitAttrGet(r->at.context)};
  tw_build(&r->at, "tile.barrier_arrive",
           (tw_op_parts_t){.num_operands = 2, .operands = operands, .num_attrs = 1, .attrs = &attr});
}

enum { MAX_ATTRS = 16 };

static intptr_t attributes_of(MlirOperation op, tw_attr_t out[MAX_ATTRS]) {
  intptr_t n = 0;
  for (; n < mlirOperationGetNumAttributes(op) && n < MAX_ATTRS; n++) {
    MlirNamedAttribute named = mlirOperationGetAttribute(op, n);
    out[n] = (tw_attr_t){mlirIdentifierStr(named.name).data, named.attribute};
  }
  return n;
}

/* The same copy of rows, into the slot. */
static void gather(role_t *r, MlirOperation copy, MlirValue buffer, MlirValue slot) {
  MlirValue operands[TW_MAX_RANK + 4];
  tw_attr_t attrs[MAX_ATTRS];
  intptr_t n = 0, num_attrs = attributes_of(copy, attrs);
  for (; n < tw_copy_buffer_operand(copy); n++)
    operands[n] = tw_map_value(&r->values, mlirOperationGetOperand(copy, n));
  operands[n++] = buffer;
  operands[n++] = slot;
  tw_build(&r->at, "tile.async_gather",
           (tw_op_parts_t){.num_operands = n, .operands = operands, .num_attrs = num_attrs, .attrs = attrs});
}

static void load(role_t *r, MlirOperation copy, MlirValue buffer, MlirValue full, MlirValue slot) {
  MlirValue operands[TW_MAX_RANK + 5];
  intptr_t n = 0;
  for (; n < tw_copy_buffer_operand(copy); n++)
    operands[n] = tw_map_value(&r->values, mlirOperationGetOperand(copy, n));
  operands[n++] = buffer;
  operands[n++] = slot;
  operands[n++] = full;
  operands[n++] = slot;
  tw_attr_t attrs[2];
  intptr_t num_attrs = 0;
  if (tw_has_attr(copy, "order"))
    attrs[num_attrs++] = (tw_attr_t){"order", tw_attr(copy, "order")};
  if (tw_has_attr(copy, TW_MULTICAST))
    attrs[num_attrs++] = (tw_attr_t){TW_MULTICAST, tw_attr(copy, TW_MULTICAST)};
  tw_build(&r->at, "tile.tma_load",
           (tw_op_parts_t){.num_operands = n, .operands = operands, .num_attrs = num_attrs, .attrs = attrs});
}

/* Waits for the slot that the ring comes to next. */
static void wait_until_empty(role_t *r, int ring) {
  const state_t *state = &r->rings[ring];
  wait_for(r, r->plan->rings[ring].empty, state->slot,
           tw_binary(&r->at, "arith.xori", tw_i32(r->at.context), state->parity, constant(r, 1)), false);
}

/* In place of a copy. Before the first of a fill the producer waits for the slot; after the last the ring moves on.
 * What threads gather comes after what the accelerator is asked for, which is done sooner. */
static void emit_copy(role_t *r, MlirOperation copy) {
  int f = tw_fill_of(r->plan, copy);
  const tw_fill_t *fill = &r->plan->fills[f];
  tw_ring_t *ring = &r->plan->rings[fill->ring];
  state_t *state = &r->rings[fill->ring];
  if (mlirOperationEqual(copy, fill->copies[0])) {
    r->fills[f] = *state;
    if (r->producer && tw_comes_round(ring))
      wait_until_empty(r, fill->ring);
    if (r->producer && announced_bytes(fill) > 0)
      expect(r, ring, announced_bytes(fill), state->slot);
  }
  for (int c = 0; r->producer && c < fill->num_copies; c++)
    if (mlirOperationEqual(copy, fill->copies[c]) && !tw_op_is(copy, "tile.async_gather"))
      load(r, copy, ring->buffers[c], ring->full, state->slot);
  if (!mlirOperationEqual(copy, fill->copies[fill->num_copies - 1]))
    return;
  for (int c = 0; r->producer && c < fill->num_copies; c++)
    if (tw_op_is(fill->copies[c], "tile.async_gather"))
      gather(r, fill->copies[c], ring->buffers[c], state->slot);
  if (r->producer && fill->gathers)
    arrive_gathered(r, ring, state->slot);
  advance(r, fill->ring);
}

static void wait_to_read(role_t *r, MlirOperation op) {
  for (int f = 0; f < r->plan->num_fills; f++)
    if (mlirOperationEqual(r->plan->fills[f].reader, op))
      wait_for(r, r->plan->rings[r->plan->fills[f].ring].full, r->fills[f].slot, r->fills[f].parity,
               r->plan->fills[f].gathers);
}

/* The product that directly follows one; null if something else does. */
static MlirOperation next_in_row(MlirOperation product) {
  MlirOperation op = mlirOperationGetNextInBlock(product);
  while (tw_op_is(op, "arith.constant"))
    op = mlirOperationGetNextInBlock(op);
  return tw_op_is(op, "tile.wgmma") ? op : tw_null_op();
}

/* Waits for what the op of the kernel is the first to read. Products in a row have all waits in front: the assembler
 * wants no branch between products that are under way together. */
static void emit_waits(role_t *r, MlirOperation op) {
  bool waited = !mlirOperationIsNull(r->in_row) && mlirOperationEqual(r->in_row, op);
  if (tw_op_is(op, "tile.wgmma"))
    r->in_row = next_in_row(op);
  if (waited)
    return;
  wait_to_read(r, op);
  for (MlirOperation next = op; tw_op_is(next, "tile.wgmma") && !mlirOperationIsNull(next = next_in_row(next));)
    wait_to_read(r, next);
}

/* Whether a branch stands between what makes the value and the op behind it in its block. */
static bool is_behind_branch(MlirOperation op, MlirValue value) {
  MlirOperation from = tw_ancestor_in(tw_def(value), mlirOperationGetBlock(op));
  for (; !mlirOperationIsNull(from) && !mlirOperationEqual(from, op); from = mlirOperationGetNextInBlock(from))
    if (tw_is_control(from))
      return true;
  return false;
}

/* A wait for a product orders other values, too, to be made while the product runs (tile-delay-waits). The assembler
 * knows no cost of such a wait and would move it up in front of them, but not past a branch: so the barrier of what the
 * product reads is waited for once more, which has been passed. The values go through a wait that waits for nothing, or
 * they would follow the branch. */
static void emit_branch(role_t *r, MlirOperation wait) {
  if (!tw_op_is(wait, "tile.wgmma_wait") || mlirOperationGetNumOperands(wait) < 2 ||
      is_behind_branch(wait, mlirOperationGetOperand(wait, 1)))
    return;
  MlirOperation product = tw_def(mlirOperationGetOperand(wait, 0));
  for (int i = 0; i < r->plan->num_reads; i++) {
    const tw_ring_read_t *read = &r->plan->reads[i];
    if (!mlirOperationEqual(read->op, product))
      continue;
    MlirValue value = mlirOperationGetOperand(wait, 1), made = tw_map_value(&r->values, value);
    tw_attr_t attrs[] = {{"pending", mlirIntegerAttrGet(tw_i32(r->at.context), tw_pending(r->plan, wait) + 1)},
                         {"complete", mlirUnitAttrGet(r->at.context)}};
    MlirType type = mlirValueGetType(made);
    MlirOperation pin = tw_build(
        &r->at, "tile.wgmma_wait",
        (tw_op_parts_t){
            .num_operands = 1, .operands = &made, .num_results = 1, .results = &type, .num_attrs = 2, .attrs = attrs});
    tw_map_one(&r->values, value, mlirOperationGetResult(pin, 0));
    const state_t *state = &r->fills[read->fill];
    wait_for(r, r->plan->rings[r->plan->fills[read->fill].ring].full, state->slot, state->parity, false);
    return;
  }
}

/* Gives back what the op of the kernel was the last to read. */
static void emit_releases(role_t *r, MlirOperation op) {
  bool met = false;
  for (int f = 0; f < r->plan->num_fills; f++) {
    const tw_fill_t *fill = &r->plan->fills[f];
    if (!mlirOperationEqual(fill->end, op))
      continue;
    if (fill->late)
      give_back(r, fill, r->fills[f].last, r->more, fill->by_lanes && !met);
    else
      give_back(r, fill, r->fills[f].slot, (MlirValue){NULL}, fill->by_lanes && !met);
    met = met || (fill->by_lanes && tw_comes_round(&r->plan->rings[fill->ring]));
  }
}

/* ---- values that pass ----------------------------------------------------------------------- */

typedef struct {
  MlirValue *values; /* owned */
  MlirType *types;   /* owned */
  intptr_t num, capacity;
} list_t;

static void *grown(void *memory, size_t size) {
  memory = realloc(memory, size);
  if (memory == NULL)
    abort();
  return memory;
}

static void append(list_t *list, MlirValue value) {
  if (list->num == list->capacity) {
    list->capacity = list->capacity ? 2 * list->capacity : 16;
    list->values = grown(list->values, (size_t)list->capacity * sizeof *list->values);
    list->types = grown(list->types, (size_t)list->capacity * sizeof *list->types);
  }
  list->types[list->num] = mlirValueGetType(value);
  list->values[list->num++] = value;
}

static void free_list(list_t *list) {
  free(list->values);
  free(list->types);
}

static void append_states(list_t *list, MlirValue **states, intptr_t num) {
  for (intptr_t i = 0; i < num; i++)
    append(list, *states[i]);
}

/* Whether this role has the value too. */
static bool keeps(const role_t *r, MlirValue value) { return !r->producer || tw_is_needed(r->plan, value.ptr); }

/* Binds the next values of `from`, starting at `*at`, to an old value. */
static void bind(role_t *r, MlirValue old, MlirBlock block, MlirOperation op, intptr_t *at) {
  MlirValue value = mlirOperationIsNull(op) ? mlirBlockGetArgument(block, *at) : mlirOperationGetResult(op, *at);
  tw_map_one(&r->values, old, value);
  ++*at;
}

static MlirBlock new_block(const list_t *arguments, MlirLocation location) {
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  for (intptr_t i = 0; i < arguments->num; i++)
    mlirBlockAddArgument(block, arguments->types[i], location);
  return block;
}

static MlirRegion region_with(MlirBlock block) {
  MlirRegion region = mlirRegionCreate();
  if (!mlirBlockIsNull(block))
    mlirRegionAppendOwnedBlock(region, block);
  return region;
}

/* Ends the block at hand with the values of a list, which is freed. */
static void terminate(role_t *r, const char *name, list_t *operands) {
  tw_build(&r->at, name, (tw_op_parts_t){.num_operands = operands->num, .operands = operands->values});
  free_list(operands);
}

/* ---- teams ---------------------------------------------------------------------------------- */

/* How often a loop runs. What its bounds depend on within `around` is made here too. */
static MlirValue trips_of(role_t *r, MlirOperation loop, MlirBlock around) {
  MlirType i32 = tw_i32(r->at.context);
  MlirValue bounds[TW_FOR_INITS];
  for (int i = 0; i < TW_FOR_INITS; i++)
    bounds[i] = tw_copy_slice(&r->at, mlirOperationGetOperand(loop, i), around, &r->values);
  MlirValue length = tw_binary(&r->at, "arith.subi", i32, bounds[1], bounds[0]);
  return tw_binary(&r->at, "arith.maxsi", i32, tw_binary(&r->at, "arith.ceildivsi", i32, length, bounds[2]),
                   constant(r, 0));
}

/* The state of each ring after `trips` more iterations of the loop around its fills. */
static void skip(role_t *r, MlirValue trips) {
  MlirType i32 = tw_i32(r->at.context);
  for (int i = 0; i < r->plan->num_rings; i++) {
    const tw_ring_t *ring = &r->plan->rings[i];
    state_t *state = &r->rings[i];
    MlirValue slots = constant(r, ring->slots);
    MlirValue more = tw_binary(&r->at, "arith.muli", i32, trips, constant(r, ring->num_fills));
    MlirValue at = tw_binary(&r->at, "arith.addi", i32, state->slot, more);
    MlirValue rounds = tw_binary(&r->at, "arith.divui", i32, at, slots);
    state->slot = tw_binary(&r->at, "arith.remui", i32, at, slots);
    state->parity = tw_binary(&r->at, "arith.xori", i32, state->parity,
                              tw_binary(&r->at, "arith.andi", i32, rounds, constant(r, 1)));
  }
}

/* Whether the loop goes through the blocks that teams share out. */
static bool is_shared_out(const role_t *r, MlirOperation loop) {
  return !r->producer && r->plan->teams > 1 && tw_has_attr(loop, TW_PERSISTENT);
}

/* Whether it is the loop that teams run in turn. */
static bool takes_turns(const role_t *r, MlirOperation loop) {
  return !r->producer && r->plan->teams > 1 && tw_overlap_of(r->plan, loop) != NULL;
}

static void turn(role_t *r, const char *name) { tw_build(&r->at, name, (tw_op_parts_t){0}); }

/* The last team passes the first turn on. */
static void pass_first_turn(role_t *r, MlirValue team) {
  list_t none = {0};
  tw_builder_t here = r->at;
  MlirValue last = tw_compare(&r->at, TW_EQ, team, constant(r, r->plan->teams - 1));
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  r->at = tw_build_at_end(block, here.location);
  turn(r, "tile.pass_turn");
  terminate(r, "scf.yield", &none);
  r->at = here;
  MlirRegion regions[] = {region_with(block), mlirRegionCreate()};
  tw_build(&r->at, "scf.if",
           (tw_op_parts_t){.num_operands = 1, .operands = &last, .num_regions = 2, .regions = regions});
}

/* Lets a team begin with its own first block: `bounds` of the loop, and the rings. Returns the iterations to skip. */
static MlirValue begin_turns(role_t *r, MlirOperation loop, MlirValue bounds[TW_FOR_INITS]) {
  MlirType i32 = tw_i32(r->at.context);
  MlirValue team = tw_op1(&r->at, "tile.team", i32, 0, NULL), teams = constant(r, r->plan->teams);
  MlirValue trips = trips_of(r, mlirOperationGetParentOperation(r->plan->fills[0].copies[0]), tw_loop_body(loop));
  bounds[0] = tw_binary(&r->at, "arith.addi", i32, bounds[0], tw_binary(&r->at, "arith.muli", i32, team, bounds[2]));
  bounds[2] = tw_binary(&r->at, "arith.muli", i32, bounds[2], teams);
  skip(r, tw_binary(&r->at, "arith.muli", i32, trips, team));
  pass_first_turn(r, team);
  return tw_binary(&r->at, "arith.muli", i32, trips, constant(r, r->plan->teams - 1));
}

/* ---- products ------------------------------------------------------------------------------ */

static MlirValue zeros(const role_t *r, MlirType type) {
  return tw_is_float(type) ? tw_const_float(&r->at, type, 0) : tw_const_int(&r->at, type, 0);
}

static MlirValue poison(const role_t *r, MlirType type) { return tw_op1(&r->at, "ub.poison", type, 0, NULL); }

/* The product whose sum the loop carries there and finds itself in its first iteration; -1 for other values. */
static int overlapped(const tw_overlap_t *overlap, intptr_t carried) {
  for (int p = 0; overlap->all && p < overlap->num_products; p++)
    if (overlap->carried[p] == carried)
      return p;
  return -1;
}

/* What the product starts from without reading it. */
static MlirValue unread(const role_t *r, const tw_overlap_t *overlap, int product) {
  MlirValue kept = r->kept[overlap - r->plan->overlaps][product];
  return kept.ptr ? kept : poison(r, mlirValueGetType(mlirOperationGetResult(overlap->products[product], 0)));
}

/* Blocks that share a tile get its sum by other ways than products. The next products go into the same registers, which
 * the assembler knows only of values: else it would keep two sets of them, and spill. */
static void keep_sums(role_t *r, MlirOperation sum, MlirOperation made) {
  for (int o = 0; o < r->plan->num_overlaps; o++) {
    const tw_overlap_t *overlap = &r->plan->overlaps[o];
    for (int p = 0; p < overlap->num_products; p++)
      for (intptr_t i = 0; i + 1 < mlirOperationGetNumResults(sum); i++)
        if (mlirValueEqual(mlirOperationGetOperand(sum, i), mlirOperationGetResult(overlap->loop, overlap->carried[p])))
          r->kept[o][p] = mlirOperationGetResult(made, i);
  }
}

static MlirWalkResult start_keeping(MlirOperation op, void *user) {
  role_t *r = user;
  for (int o = 0; tw_op_is(op, "tile.sum_parts") && o < r->plan->num_overlaps; o++)
    for (int p = 0; p < r->plan->overlaps[o].num_products; p++)
      r->kept[o][p] = poison(r, mlirValueGetType(mlirOperationGetResult(r->plan->overlaps[o].products[p], 0)));
  return MlirWalkResultAdvance;
}

/* Of the waits for products that run on, at most one stays, for those of the iteration before. True if `op` is one of
 * the others. */
static bool drops_wait(role_t *r, MlirOperation op) {
  if (!tw_op_is(op, "tile.wgmma_wait") || !tw_drops_wait(r->plan, op))
    return false;
  tw_map_one(&r->values, mlirOperationGetResult(op, 0), tw_map_value(&r->values, mlirOperationGetOperand(op, 0)));
  return true;
}

/* A loop all of whose products run on starts from zero by itself: no instruction but a product may write an accumulator
 * while products are under way. */
static void overlap_op(role_t *r, MlirOperation op, MlirOperation made) {
  const tw_overlap_t *overlap = tw_overlap_of(r->plan, mlirOperationGetParentOperation(op));
  if (!overlap)
    return;
  if (overlap->all && tw_op_is(op, "tile.wgmma")) {
    tw_builder_t here = r->at;
    intptr_t at = mlirOperationGetNumOperands(made) - 1;
    MlirValue acc = mlirOperationGetOperand(made, at);
    r->at = tw_build_before(made);
    mlirOperationSetOperand(made, at, tw_select(&r->at, r->more, acc, zeros(r, mlirValueGetType(acc))));
    r->at = here;
  } else if (tw_op_is(op, "tile.wgmma_wait")) {
    int64_t pending = tw_pending(r->plan, op);
    tw_set_int(made, "pending", tw_i32(r->at.context), pending);
    if (!overlap->all && pending > 0)
      tw_set_attr(made, "complete", mlirUnitAttrGet(r->at.context));
  }
}

static MlirValue wait_for_product(role_t *r, MlirValue value) {
  return tw_op1_attr(&r->at, "tile.wgmma_wait", mlirValueGetType(value), 1, &value, "pending",
                     mlirIntegerAttrGet(tw_i32(r->at.context), 0));
}

/* `ran` ? values : zeros */
static MlirOperation or_zeros(role_t *r, MlirValue ran, const list_t *values) {
  MlirRegion regions[2];
  tw_builder_t here = r->at;
  for (int i = 0; i < 2; i++) {
    list_t none = {0}, out = {0};
    MlirBlock block = new_block(&none, here.location);
    r->at = tw_build_at_end(block, here.location);
    for (intptr_t k = 0; k < values->num; k++)
      append(&out, i == 0 ? values->values[k] : zeros(r, values->types[k]));
    terminate(r, "scf.yield", &out);
    regions[i] = region_with(block);
  }
  r->at = here;
  return tw_build(&r->at, "scf.if",
                  (tw_op_parts_t){.num_operands = 1,
                                  .operands = &ran,
                                  .num_results = values->num,
                                  .results = values->types,
                                  .num_regions = 2,
                                  .regions = regions});
}

static bool known_to_run(MlirOperation loop) {
  int64_t lower, upper;
  return tw_known_int(mlirOperationGetOperand(loop, 0), &lower) &&
         tw_known_int(mlirOperationGetOperand(loop, 1), &upper) && lower < upper;
}

/* After a loop with products that run on: waits for the last of them and gives their slots back. */
static void finish_overlap(role_t *r, const tw_overlap_t *overlap) {
  MlirOperation loop = overlap->loop;
  MlirValue ran = {NULL};
  if (!known_to_run(loop))
    ran = tw_compare(&r->at, tw_has_attr(loop, "unsignedCmp") ? TW_ULT : TW_SLT,
                     tw_map_value(&r->values, mlirOperationGetOperand(loop, 0)),
                     tw_map_value(&r->values, mlirOperationGetOperand(loop, 1)));
  list_t done = {0};
  for (int p = 0; p < overlap->num_products; p++) {
    MlirValue result = mlirOperationGetResult(loop, overlap->carried[p]);
    append(&done, wait_for_product(r, tw_map_value(&r->values, result)));
  }
  for (int f = 0; f < r->plan->num_fills; f++) {
    const tw_fill_t *fill = &r->plan->fills[f];
    if (fill->late && mlirOperationEqual(mlirOperationGetParentOperation(fill->end), loop))
      give_back(r, fill, r->rings[fill->ring].last, ran, fill->by_lanes);
  }
  MlirOperation chosen = overlap->all && ran.ptr ? or_zeros(r, ran, &done) : tw_null_op();
  for (int p = 0; p < overlap->num_products; p++)
    tw_map_one(&r->values, mlirOperationGetResult(loop, overlap->carried[p]),
               mlirOperationIsNull(chosen) ? done.values[p] : mlirOperationGetResult(chosen, p));
  free_list(&done);
}

/* ---- loops and branches --------------------------------------------------------------------- */

static void emit_block(role_t *r, MlirBlock old);

static void emit_for(role_t *r, MlirOperation old) {
  const tw_overlap_t *overlap = r->producer ? NULL : tw_overlap_of(r->plan, old);
  MlirBlock old_body = tw_region_block(old, 0);
  MlirOperation old_yield = mlirBlockGetTerminator(old_body);
  MlirValue *states[MAX_STATES], more = r->more;
  intptr_t num_states = carried_state(r, old, states), num = mlirOperationGetNumResults(old), at = 0;
  list_t inits = {0}, carried = {0}, arguments = {0}, yields = {0};
  MlirValue bounds[TW_FOR_INITS], skipped = {NULL};
  for (intptr_t i = 0; i < TW_FOR_INITS; i++)
    bounds[i] = tw_map_value(&r->values, mlirOperationGetOperand(old, i));
  if (is_shared_out(r, old))
    skipped = begin_turns(r, old, bounds);
  if (takes_turns(r, old))
    turn(r, "tile.await_turn");
  for (intptr_t i = 0; i < num; i++)
    if (overlap && overlapped(overlap, i) >= 0)
      append(&carried, unread(r, overlap, overlapped(overlap, i)));
    else if (keeps(r, mlirBlockGetArgument(old_body, i + 1)))
      append(&carried, tw_map_value(&r->values, tw_carried_init(old, i)));
  append_states(&carried, states, num_states);
  for (intptr_t i = 0; i < TW_FOR_INITS; i++)
    append(&inits, bounds[i]);
  append(&arguments, mlirBlockGetArgument(old_body, 0));
  for (intptr_t i = 0; i < carried.num; i++) {
    append(&inits, carried.values[i]);
    append(&arguments, carried.values[i]);
  }
  tw_builder_t here = r->at;
  MlirBlock body = new_block(&arguments, here.location);
  bind(r, mlirBlockGetArgument(old_body, 0), body, tw_null_op(), &at);
  for (intptr_t i = 0; i < num; i++)
    if (keeps(r, mlirBlockGetArgument(old_body, i + 1)))
      bind(r, mlirBlockGetArgument(old_body, i + 1), body, tw_null_op(), &at);
  for (intptr_t i = 0; i < num_states; i++)
    *states[i] = mlirBlockGetArgument(body, at++);
  r->at = tw_build_at_end(body, here.location);
  if (overlap)
    r->more = tw_compare(&r->at, TW_NE, mlirBlockGetArgument(body, 0), bounds[0]);
  emit_block(r, old_body);
  for (intptr_t i = 0; i < num; i++)
    if (keeps(r, mlirBlockGetArgument(old_body, i + 1)))
      append(&yields, tw_map_value(&r->values, mlirOperationGetOperand(old_yield, i)));
  if (skipped.ptr)
    skip(r, skipped);
  append_states(&yields, states, num_states);
  terminate(r, "scf.yield", &yields);
  MlirRegion region = region_with(body);
  tw_attr_t attrs[MAX_ATTRS];
  r->at = here;
  MlirOperation loop = tw_build(&r->at, "scf.for",
                                (tw_op_parts_t){.num_operands = inits.num,
                                                .operands = inits.values,
                                                .num_results = carried.num,
                                                .results = carried.types,
                                                .num_attrs = attributes_of(old, attrs),
                                                .attrs = attrs,
                                                .num_regions = 1,
                                                .regions = &region});
  at = 0;
  for (intptr_t i = 0; i < num; i++)
    if (keeps(r, mlirBlockGetArgument(old_body, i + 1)))
      bind(r, mlirOperationGetResult(old, i), (MlirBlock){NULL}, loop, &at);
  for (intptr_t i = 0; i < num_states; i++)
    *states[i] = mlirOperationGetResult(loop, at++);
  r->more = more;
  if (takes_turns(r, old))
    turn(r, "tile.pass_turn");
  free_list(&inits);
  free_list(&carried);
  free_list(&arguments);
  if (overlap)
    finish_overlap(r, overlap);
}

static void emit_if(role_t *r, MlirOperation old) {
  MlirValue *states[MAX_STATES], before[MAX_STATES], condition;
  intptr_t num_states = carried_state(r, old, states), num = mlirOperationGetNumResults(old), at = 0;
  list_t results = {0}, none = {0};
  MlirRegion regions[2];
  tw_builder_t here = r->at;
  condition = tw_map_value(&r->values, mlirOperationGetOperand(old, 0));
  for (intptr_t i = 0; i < num; i++)
    if (keeps(r, mlirOperationGetResult(old, i)))
      append(&results, mlirOperationGetResult(old, i));
  append_states(&results, states, num_states);
  for (intptr_t i = 0; i < num_states; i++)
    before[i] = *states[i];
  for (int arm = 0; arm < 2; arm++) {
    MlirBlock old_block = tw_region_block(old, arm);
    list_t yields = {0};
    for (intptr_t i = 0; i < num_states; i++)
      *states[i] = before[i];
    if (mlirBlockIsNull(old_block) && results.num == 0) {
      regions[arm] = mlirRegionCreate();
      continue;
    }
    MlirBlock block = new_block(&none, here.location);
    r->at = tw_build_at_end(block, here.location);
    if (!mlirBlockIsNull(old_block))
      emit_block(r, old_block);
    for (intptr_t i = 0; i < num; i++)
      if (keeps(r, mlirOperationGetResult(old, i)))
        append(&yields, tw_map_value(&r->values, mlirOperationGetOperand(mlirBlockGetTerminator(old_block), i)));
    append_states(&yields, states, num_states);
    terminate(r, "scf.yield", &yields);
    regions[arm] = region_with(block);
  }
  r->at = here;
  MlirOperation branch = tw_build(&r->at, "scf.if",
                                  (tw_op_parts_t){.num_operands = 1,
                                                  .operands = &condition,
                                                  .num_results = results.num,
                                                  .results = results.types,
                                                  .num_regions = 2,
                                                  .regions = regions});
  for (intptr_t i = 0; i < num; i++)
    if (keeps(r, mlirOperationGetResult(old, i)))
      bind(r, mlirOperationGetResult(old, i), (MlirBlock){NULL}, branch, &at);
  for (intptr_t i = 0; i < num_states; i++)
    *states[i] = mlirOperationGetResult(branch, at++);
  free_list(&results);
}

/* Whether the condition of a while loop passes its value i on. */
static bool passes(const role_t *r, MlirOperation loop, intptr_t i) {
  return keeps(r, mlirOperationGetResult(loop, i)) || keeps(r, mlirBlockGetArgument(tw_region_block(loop, 1), i));
}

static void emit_while(role_t *r, MlirOperation old) {
  MlirBlock old_before = tw_region_block(old, 0), old_after = tw_region_block(old, 1);
  MlirOperation old_condition = mlirBlockGetTerminator(old_before), old_yield = mlirBlockGetTerminator(old_after);
  MlirValue *states[MAX_STATES];
  intptr_t num_states = carried_state(r, old, states), num = mlirOperationGetNumOperands(old), at = 0;
  intptr_t num_passed = mlirOperationGetNumResults(old);
  list_t inits = {0}, passed = {0}, results = {0}, yields = {0};
  tw_builder_t here = r->at;
  for (intptr_t i = 0; i < num; i++)
    if (keeps(r, mlirBlockGetArgument(old_before, i)))
      append(&inits, tw_map_value(&r->values, mlirOperationGetOperand(old, i)));
  append_states(&inits, states, num_states);
  MlirBlock before = new_block(&inits, here.location);
  for (intptr_t i = 0; i < num; i++)
    if (keeps(r, mlirBlockGetArgument(old_before, i)))
      bind(r, mlirBlockGetArgument(old_before, i), before, tw_null_op(), &at);
  for (intptr_t i = 0; i < num_states; i++)
    *states[i] = mlirBlockGetArgument(before, at++);
  r->at = tw_build_at_end(before, here.location);
  emit_block(r, old_before);
  append(&passed, tw_map_value(&r->values, mlirOperationGetOperand(old_condition, 0)));
  for (intptr_t i = 0; i < num_passed; i++)
    if (passes(r, old, i))
      append(&passed, tw_map_value(&r->values, mlirOperationGetOperand(old_condition, 1 + i)));
  append_states(&passed, states, num_states);
  for (intptr_t i = 1; i < passed.num; i++)
    append(&results, passed.values[i]);
  terminate(r, "scf.condition", &passed);
  MlirBlock after = new_block(&results, here.location);
  at = 0;
  for (intptr_t i = 0; i < num_passed; i++)
    if (passes(r, old, i))
      bind(r, mlirBlockGetArgument(old_after, i), after, tw_null_op(), &at);
  for (intptr_t i = 0; i < num_states; i++)
    *states[i] = mlirBlockGetArgument(after, at++);
  r->at = tw_build_at_end(after, here.location);
  emit_block(r, old_after);
  for (intptr_t i = 0; i < num; i++)
    if (keeps(r, mlirBlockGetArgument(old_before, i)))
      append(&yields, tw_map_value(&r->values, mlirOperationGetOperand(old_yield, i)));
  append_states(&yields, states, num_states);
  terminate(r, "scf.yield", &yields);
  MlirRegion regions[] = {region_with(before), region_with(after)};
  r->at = here;
  MlirOperation loop = tw_build(&r->at, "scf.while",
                                (tw_op_parts_t){.num_operands = inits.num,
                                                .operands = inits.values,
                                                .num_results = results.num,
                                                .results = results.types,
                                                .num_regions = 2,
                                                .regions = regions});
  at = 0;
  for (intptr_t i = 0; i < num_passed; i++)
    if (passes(r, old, i))
      bind(r, mlirOperationGetResult(old, i), (MlirBlock){NULL}, loop, &at);
  for (intptr_t i = 0; i < num_states; i++)
    *states[i] = mlirOperationGetResult(loop, at++);
  free_list(&inits);
  free_list(&results);
}

/* ---- all ops --------------------------------------------------------------------------------- */

static MlirWalkResult remap(MlirOperation op, void *user) {
  role_t *r = user;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    mlirOperationSetOperand(op, i, tw_map_value(&r->values, mlirOperationGetOperand(op, i)));
  return MlirWalkResultAdvance;
}

/* Reads find their tile in the slots of a ring. */
static void read_from_ring(role_t *r, MlirOperation op, MlirOperation made) {
  for (int i = 0; i < r->plan->num_reads; i++) {
    const tw_ring_read_t *read = &r->plan->reads[i];
    if (!mlirOperationEqual(read->op, op))
      continue;
    const tw_fill_t *fill = &r->plan->fills[read->fill];
    for (int c = 0; c < fill->num_copies; c++)
      if (mlirValueEqual(tw_copy_buffer(fill->copies[c]), mlirOperationGetOperand(op, read->operand)))
        mlirOperationSetOperand(made, read->operand, r->plan->rings[fill->ring].buffers[c]);
    mlirOperationSetOperand(made, read->operand + 1, r->fills[read->fill].slot);
  }
}

/* The type of a tile in the producer, whose warps are fewer than those that the layout was made for: a thread has what
 * several would have. */
static MlirType narrowed(MlirType type) {
  tw_layout_t layout;
  if (!tw_is_tile(type) || !tw_layout_of_type(type, &layout))
    return type;
  int warps = tw_log2(TW_GATHERING_WARPS), all = layout.bits[TW_WARP];
  layout.bits[TW_WARP] = all < warps ? all : warps;
  for (int i = warps; i < all; i++)
    tw_layout_push(&layout, TW_REGISTER, layout.basis[TW_WARP][i]);
  return tw_type_with_layout(type, &layout);
}

static void narrow(MlirOperation op) {
  MlirAttribute value = tw_attr(op, "value");
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++) {
    MlirValue result = mlirOperationGetResult(op, i);
    mlirValueSetType(result, narrowed(mlirValueGetType(result)));
  }
  if (!mlirAttributeIsNull(value) && mlirAttributeIsADenseElements(value)) {
    MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
    tw_set_attr(op, "value",
                mlirDenseElementsAttrIsSplat(value)
                    ? mlirDenseElementsAttrSplatGet(type, mlirDenseElementsAttrGetSplatValue(value))
                    : mlirDenseElementsAttrReshapeGet(value, type));
  }
}

static void emit_clone(role_t *r, MlirOperation op) {
  MlirOperation made = mlirOperationClone(op);
  mlirBlockAppendOwnedOperation(r->at.block, made);
  mlirOperationWalk(made, remap, r, MlirWalkPreOrder);
  if (r->producer)
    narrow(made);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    tw_map_one(&r->values, mlirOperationGetResult(op, i), mlirOperationGetResult(made, i));
  read_from_ring(r, op, made);
  overlap_op(r, op, made);
  if (tw_op_is(op, "tile.sum_parts"))
    keep_sums(r, op, made);
}

/* Whether all threads have met, and done nothing but arithmetic since. */
static bool have_met(const role_t *r) {
  MlirOperation last = tw_null_op();
  for (MlirOperation op = mlirBlockGetFirstOperation(r->at.block); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    if (!tw_is_arithmetic(op))
      last = op;
  return !mlirOperationIsNull(last) && tw_op_is(last, "tile.barrier");
}

/* Whether a barrier keeps only what copies bring from being written early: it stands behind the wait for a product that
 * reads no buffer which threads write. */
static bool is_of_ring(MlirOperation before) {
  return tw_op_is(before, "tile.wgmma_wait") && !tw_wgmma_reads_written(tw_def(mlirOperationGetOperand(before, 0)));
}

/* What only kept copies and reads of one slot apart. A barrier that orders stores to shared memory stays. */
static bool is_obsolete(const role_t *r, MlirOperation op) {
  if (tw_op_is(op, "tile.barrier"))
    return !r->plan->has_stores || have_met(r) || is_of_ring(r->before);
  return tw_op_is(op, "tile.async_commit") || tw_op_is(op, "tile.async_wait") || tw_op_is(op, "tile.alloc_shared") ||
         tw_op_is(op, "tile.alloc_barriers");
}

static bool is_wanted(const role_t *r, MlirOperation op) {
  if (!r->producer)
    return true;
  return tw_is_control(op)
             ? tw_is_needed(r->plan, op.ptr)
             : mlirOperationGetNumResults(op) == 1 && tw_is_needed(r->plan, mlirOperationGetResult(op, 0).ptr);
}

static void emit_op(role_t *r, MlirOperation op) {
  r->at.location = mlirOperationGetLocation(op);
  if (!r->producer) {
    emit_waits(r, op);
    emit_branch(r, op);
  }
  if (tw_is_async_copy(op))
    emit_copy(r, op);
  else if (is_obsolete(r, op) || !is_wanted(r, op) || drops_wait(r, op))
    return;
  else if (tw_op_is(op, "scf.for"))
    emit_for(r, op);
  else if (tw_op_is(op, "scf.if"))
    emit_if(r, op);
  else if (tw_op_is(op, "scf.while"))
    emit_while(r, op);
  else
    emit_clone(r, op);
  if (!r->producer)
    emit_releases(r, op);
}

static void emit_block(role_t *r, MlirBlock old) {
  MlirOperation end = mlirBlockGetTerminator(old), before = tw_null_op();
  for (MlirOperation op = mlirBlockGetFirstOperation(old); !mlirOperationEqual(op, end);
       before = op, op = mlirOperationGetNextInBlock(op)) {
    r->before = before;
    emit_op(r, op);
  }
}

/* ---- the kernel ---------------------------------------------------------------------------------------- */

static MlirValue alloc_barriers(const tw_builder_t *at, int slots, int64_t arrivals) {
  return tw_op1_attr(at, "tile.alloc_barriers", tw_barriers_type_get(at->context, slots), 0, NULL, "arrivals",
                     mlirIntegerAttrGet(tw_i32(at->context), arrivals));
}

static MlirType with_slots(MlirType buffer, int slots) {
  int64_t shape[TW_LAYOUT_MAX_RANK + 1] = {slots};
  intptr_t rank = tw_buffer_type_rank(buffer);
  for (intptr_t d = 1; d < rank; d++)
    shape[d] = tw_buffer_type_extent(buffer, d);
  return tw_buffer_type_get(mlirTypeGetContext(buffer), rank, shape, tw_buffer_type_element(buffer),
                            tw_buffer_type_layout(buffer));
}

static void alloc_ring(const tw_builder_t *at, const tw_ring_plan_t *plan, tw_ring_t *ring) {
  const tw_fill_t *first = &plan->fills[ring->first];
  for (int c = 0; c < first->num_copies; c++) {
    MlirType type = with_slots(mlirValueGetType(tw_copy_buffer(first->copies[c])), ring->slots);
    ring->buffers[c] = tw_op1(at, "tile.alloc_shared", type, 0, NULL);
  }
  int64_t arrivals = first->gathers ? TW_GATHERING_WARPS * LANES + (announced_bytes(first) > 0) : 1;
  ring->full = alloc_barriers(at, ring->slots, arrivals);
  if (tw_comes_round(ring))
    ring->empty =
        alloc_barriers(at, ring->slots,
                       tw_attr_int(tw_module_of(plan->func), "tile.num_warps", 4) * (ring->multicast ? TW_CLUSTER : 1));
}

/* A block does not end while another of its cluster may still give a slot back here, or fill one: the producer waits
 * until all slots are free. */
static void drain(role_t *r) {
  for (int i = 0; r->producer && i < r->plan->num_rings; i++) {
    const tw_ring_t *ring = &r->plan->rings[i];
    for (int slot = 0; ring->multicast && tw_comes_round(ring) && slot < ring->slots; slot++) {
      wait_until_empty(r, i);
      advance(r, i);
    }
  }
}

static MlirRegion emit_role(tw_ring_plan_t *plan, bool producer, MlirLocation location) {
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  role_t r = {.plan = plan, .producer = producer, .at = tw_build_at_end(block, location)};
  MlirValue zero = constant(&r, 0);
  for (int ring = 0; ring < plan->num_rings; ring++)
    r.rings[ring] = (state_t){zero, zero, zero};
  if (!producer)
    mlirOperationWalk(plan->func, start_keeping, &r, MlirWalkPreOrder);
  emit_block(&r, tw_region_block(plan->func, 0));
  drain(&r);
  tw_map_free(&r.values);
  return region_with(block);
}

/* ---- registers ----------------------------------------------------------------------------------------- */

enum { MAX_ROLE_ATTRS = 4 };

/* One warp is enough to start copies. A multiprocessor has four equal shares of registers, one for each fourth warp, so
 * that a whole warpgroup costs no more than one warp: where products need many registers it gives most of its own to
 * the consumers. If it gathers it keeps what indices and addresses take. */
static intptr_t role_attributes(const tw_ring_plan_t *plan, MlirContext context, tw_attr_t out[MAX_ROLE_ATTRS]) {
  enum { STEP = 8, MOST = 240, KEPT = 24, KEPT_TO_GATHER = 104 };
  int64_t groups = tw_attr_int(tw_module_of(plan->func), "tile.num_warps", 0) * plan->teams / GROUP;
  int64_t all = tw_gpu_share_of(plan->func).registers_sm / GROUP / LANES; /* of a lane of each warp of a share */
  int64_t given = all / (groups + 1) / STEP * STEP, kept = plan->gathers ? KEPT_TO_GATHER : KEPT;
  int64_t got = groups > 0 ? (given * (groups + 1) - kept) / groups / STEP * STEP : 0;
  bool moves = plan->product_words > TW_MANY_WORDS && groups > 1 && kept < given;
  MlirType i32 = tw_i32(context);
  intptr_t n = 0;
  out[n++] = (tw_attr_t){"producer_warps", mlirIntegerAttrGet(i32, moves || plan->gathers ? GROUP : 1)};
  if (plan->teams > 1)
    out[n++] = (tw_attr_t){"teams", mlirIntegerAttrGet(i32, plan->teams)};
  if (moves) {
    out[n++] = (tw_attr_t){"producer_registers", mlirIntegerAttrGet(i32, kept)};
    out[n++] = (tw_attr_t){"consumer_registers", mlirIntegerAttrGet(i32, got < MOST ? got : MOST)};
  }
  return n;
}

/* ---- in place of the kernel ---------------------------------------------------------------------------- */

/* Takes the kernel's own ops out, users first; what is left are allocations that the consumers use. */
static void erase_old(MlirOperation first, MlirOperation end) {
  intptr_t num = 0;
  for (MlirOperation op = first; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op))
    num++;
  MlirOperation *ops = malloc((size_t)(num + 1) * sizeof *ops);
  if (ops == NULL)
    abort();
  num = 0;
  for (MlirOperation op = first; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op))
    ops[num++] = op;
  while (num-- > 0)
    if (!tw_op_is(ops[num], "tile.alloc_shared") ||
        mlirOpOperandIsNull(mlirValueGetFirstUse(mlirOperationGetResult(ops[num], 0))))
      mlirOperationDestroy(ops[num]);
  free(ops);
}

/* Each team has boxes of its own in the buffers that its results go through. */
static MlirWalkResult grow_buffer(MlirOperation op, void *user) {
  const tw_ring_plan_t *plan = user;
  if (!tw_op_is(op, "tile.tma_store"))
    return MlirWalkResultAdvance;
  MlirValue buffer = mlirOperationGetOperand(op, 1);
  MlirType type = mlirValueGetType(buffer);
  mlirValueSetType(buffer, with_slots(type, (int)tw_buffer_type_extent(type, 0) * plan->teams));
  return MlirWalkResultAdvance;
}

static void rewrite(tw_ring_plan_t *plan) {
  if (plan->teams > 1)
    mlirOperationWalk(plan->func, grow_buffer, plan, MlirWalkPreOrder);
  MlirBlock entry = tw_region_block(plan->func, 0);
  MlirOperation first = mlirBlockGetFirstOperation(entry), end = mlirBlockGetTerminator(entry);
  tw_builder_t top = tw_build_before(first), at = tw_build_before(end);
  top.location = at.location = mlirOperationGetLocation(plan->func);
  for (int r = 0; r < plan->num_rings; r++)
    alloc_ring(&top, plan, &plan->rings[r]);
  tw_attr_t attrs[MAX_ROLE_ATTRS];
  intptr_t num_attrs = role_attributes(plan, at.context, attrs);
  MlirRegion regions[] = {emit_role(plan, true, at.location), emit_role(plan, false, at.location)};
  MlirOperation roles = tw_build(
      &at, "tile.roles", (tw_op_parts_t){.num_attrs = num_attrs, .attrs = attrs, .num_regions = 2, .regions = regions});
  erase_old(first, roles);
}

static MlirWalkResult find_store(MlirOperation op, void *user) {
  tw_ring_plan_t *plan = user;
  plan->has_stores |= tw_op_is(op, "tile.local_store");
  return MlirWalkResultAdvance;
}

static bool run(MlirOperation func) {
  tw_gpu_target_t target = tw_gpu_target_of(func);
  if (!tw_gpu_has(&target, TW_GPU_TMA) || !tw_has_attr(func, "tile.kernel") ||
      tw_attr_int(tw_module_of(func), "tile.num_stages", TW_MIN_SLOTS) < TW_MIN_SLOTS)
    return true;
  tw_ring_plan_t *plan = calloc(1, sizeof *plan);
  if (plan == NULL)
    abort();
  plan->func = func;
  mlirOperationWalk(func, find_store, plan, MlirWalkPreOrder);
  if (tw_plan_rings(plan)) {
    for (int r = 0; r < plan->num_rings; r++)
      tw_op_remark(plan->fills[plan->rings[r].first].copies[0],
                   "is done by a producer warp, whose ring has slots of %lld bytes: %d",
                   (long long)plan->rings[r].bytes, plan->rings[r].slots);
    if (plan->teams > 1)
      tw_op_remark(func,
                   "has %d teams of warps, which take its blocks in turn: one's products run while the other "
                   "writes its result",
                   plan->teams);
    rewrite(plan);
  } else if (plan->reason) {
    tw_op_remark(plan->culprit, "keeps the kernel without producer warps: %s", plan->reason);
  }
  tw_map_free(&plan->needed);
  free(plan);
  return true;
}

MlirPass tw_create_specialize_warps(void) {
  static struct {
    _Alignas(8) char unused;
  } id;
  static const tw_pass_t pass = {&id, "tile-specialize-warps", "Let a warp of its own bring what the others compute on",
                                 "func.func", run};
  return tw_pass_create(&pass);
}
