/* promote_memory.c - tile-promote-memory: loads that feed matrix products go through shared memory
 *
 * Before, an operand of a tile.mma is loaded into registers as suits global memory, and converted:
 *
 *   %a = tile.load %A[%i, %k] padding zero : ... -> tensor<128x64xbf16, #coalesced>
 *   %l = tile.convert_layout %a : ... -> tensor<128x64xbf16, #operand>
 *   %d = tile.mma %l, ...
 *
 * After, it is copied into swizzled shared memory without touching registers, and each warp reads
 * from there what its instructions want (ldmatrix, as far as the layouts allow):
 *
 *   %buf = tile.alloc_shared : !tile.buffer<1x128x64xbf16, #swizzled>
 *   tile.async_copy %A[%i, %k] into %buf[%zero]
 *   tile.async_commit
 *   tile.async_wait 0
 *   tile.barrier {tile.copies}
 *   %l = tile.local_load %buf[%zero] : ... -> tensor<128x64xbf16, #operand>
 *   tile.barrier {tile.copies}
 *
 * A tile.gather whose neighbours lie side by side in memory, at least four bytes of them (rows at indices), goes the
 * same way, by `tile.async_gather %A[%rows, %columns] mask %m into %buf[%zero]`.
 *
 * This is right by itself; tile-pipeline turns it into the overlapped form. Between the load and the
 * product there may be conversions of layout or element, permutes and reshapes, which are redone on
 * the operand's layout. What must hold: types carry layouts. A load or gather is left alone when its
 * padding is neither zero nor undetermined, or when shared memory has no room for it.
 *
 * An operand that is computed from loads (tw_loads_behind) is computed from what copies bring: each of these loads
 * becomes a copy and a local_load in the layout of the operand, which tile-assign-layouts gave to the arithmetic. Loads
 * elsewhere of the same tiles of the same array, in loops, become copies too: they can share the stages.
 *
 * An operand that was loaded outside of the loop of its product, and would take too many registers
 * to wait there, is read from shared memory in each iteration.
 *
 * A product that tile-select-mma marked reads its operands where they lie: it becomes
 *
 *   %d = tile.async_mma %a[%zero], %b[%zero], %c
 *   %w = tile.mma_wait %d, 0
 *   tile.barrier {tile.products}
 *
 * Before it, tile.local_store writes operands that no load put there in their form; the barrier then orders stores,
 * too. What loops do not change is written before them, once. */
#include "lowering/gpu/memory/promote_memory.h"

#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/barrier.h"
#include "lowering/gpu/facts/buffer.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/gpu/memory/realign_rows.h"
#include "lowering/gpu/memory/stage_stores.h"
#include "lowering/ir.h"
#include "lowering/layout/memory.h"
#include "lowering/loops.h"
#include "lowering/passes.h"
#include "tilewright/dialect.h"

enum { MIN_STAGES = 2 };

typedef struct {
  const void *loop; /* innermost loop around the loads; null: none */
  int64_t bytes;    /* of their buffers */
} taken_t;

typedef struct {
  MlirValue array;
  MlirAttribute order;
  MlirType buffer;
} brought_t;

typedef struct {
  MlirOperation func;
  tw_ops_t products;
  taken_t *taken; /* owned */
  int num_taken;
  brought_t *brought; /* owned; what copies bring for products */
  int num_brought;
  tw_ops_t written; /* owned; tile.local_store of operands that loops do not change */
} promoter_t;

/* ---- what can be promoted ---------------------------------------------------------------------- */

static int64_t tile_bytes(MlirType tile) { return tw_count(tile) * tw_memory_bits(tw_element(tile)) / 8; }

/* ---- the buffer -------------------------------------------------------------------------------- */

static void build_copy(const tw_builder_t *at, MlirOperation load, MlirValue buffer, MlirValue stage) {
  MlirValue operands[TW_MAX_RANK + 3];
  int n = 0;
  for (; n < mlirOperationGetNumOperands(load); n++)
    operands[n] = mlirOperationGetOperand(load, n);
  int32_t segments[] = {1, n - 1, 1, 1, 0};
  operands[n++] = buffer;
  operands[n++] = stage;
  tw_attr_t attrs[] = {{"operandSegmentSizes", mlirDenseI32ArrayGet(at->context, 5, segments)},
                       {TW_MULTICAST, tw_attr(load, TW_MULTICAST)}};
  MlirOperation copy = tw_build(
      at, "tile.async_copy",
      (tw_op_parts_t){
          .num_operands = n, .operands = operands, .num_attrs = 1 + tw_has_attr(load, TW_MULTICAST), .attrs = attrs});
  tw_access_keep(load, copy);
}

/* The same for a gather: its padding is what the copy gives anyway. */
static void build_gather_copy(const tw_builder_t *at, MlirOperation gather, MlirValue buffer, MlirValue stage) {
  enum { MAX_ATTRS = 2 };
  int64_t given[4] = {0};
  MlirValue operands[TW_MAX_RANK + 4];
  tw_attr_ints(gather, "operandSegmentSizes", given, 4);
  int n = 0;
  for (; n < given[0] + given[1] + given[2]; n++)
    operands[n] = mlirOperationGetOperand(gather, n);
  operands[n++] = buffer;
  operands[n++] = stage;
  int32_t segments[] = {1, (int32_t)given[1], (int32_t)given[2], 1, 1, 0};
  tw_attr_t attrs[MAX_ATTRS] = {{"operandSegmentSizes", mlirDenseI32ArrayGet(at->context, 6, segments)},
                                {"check_bounds", tw_attr(gather, "check_bounds")}};
  tw_build(at, "tile.async_gather",
           (tw_op_parts_t){.num_operands = n,
                           .operands = operands,
                           .num_attrs = mlirAttributeIsNull(attrs[1].value) ? 1 : MAX_ATTRS,
                           .attrs = attrs});
}

MlirValue tw_build_local_load(const tw_builder_t *at, MlirValue buffer, MlirType tile) {
  MlirValue operands[] = {buffer, tw_const_int(at, tw_i32(at->context), 0)};
  return tw_op1(at, "tile.local_load", tile, 2, operands);
}

/* ---- rewriting --------------------------------------------------------------------------------- */

static void permutation_of(MlirOperation permute, int *perm) {
  int64_t order[TW_LAYOUT_MAX_RANK];
  intptr_t rank = tw_attr_ints(permute, "order", order, TW_LAYOUT_MAX_RANK);
  for (intptr_t d = 0; d < rank && d < TW_LAYOUT_MAX_RANK; d++)
    perm[d] = (int)order[d];
}

/* The layout that the operand of a view has when its result has `layout`. */
static tw_layout_t layout_before(MlirOperation view, const tw_layout_t *layout) {
  if (tw_op_is(view, TW_TILE_PERMUTE)) {
    int perm[TW_LAYOUT_MAX_RANK];
    permutation_of(view, perm);
    return tw_layout_unpermute(layout, perm);
  }
  if (tw_op_is(view, TW_TILE_RESHAPE)) {
    int64_t shape[TW_LAYOUT_MAX_RANK];
    int rank = tw_tile_shape(mlirValueGetType(mlirOperationGetOperand(view, 0)), shape);
    return tw_layout_reshape(layout, rank, shape);
  }
  return *layout;
}

/* Redoes the views between the load and `value` on the operand's layout. */
static MlirValue rebuild(const tw_builder_t *at, MlirValue value, const tw_layout_t *layout, MlirValue buffer) {
  MlirOperation op = tw_def(value);
  MlirType type = tw_type_with_layout(mlirValueGetType(value), layout);
  if (tw_op_loads_tile(op) || tw_op_gathers(op))
    return tw_build_local_load(at, buffer, type);
  tw_layout_t before = layout_before(op, layout);
  MlirValue input = rebuild(at, mlirOperationGetOperand(op, 0), &before, buffer);
  if (tw_op_is_conversion(op))
    return input;
  MlirStringRef name = tw_op_name(op);
  MlirOperation made = tw_build(
      at, name.data, (tw_op_parts_t){.num_operands = 1, .operands = &input, .num_results = 1, .results = &type});
  tw_copy_attrs(op, made);
  return mlirOperationGetResult(made, 0);
}

MlirOperation tw_stage_load(MlirOperation func, MlirOperation load, MlirValue *buffer) {
  tw_builder_t top = tw_build_before(mlirBlockGetFirstOperation(tw_region_block(func, 0)));
  top.location = mlirOperationGetLocation(load);
  *buffer = tw_alloc_buffer(&top, tw_promoted_type(load));
  tw_builder_t at = tw_build_before(load);
  (tw_op_gathers(load) ? build_gather_copy : build_copy)(&at, load, *buffer, tw_const_int(&at, tw_i32(at.context), 0));
  tw_build_commit(&at);
  tw_build_copy_wait(&at, 0);
  tw_build_barrier(&at, TW_ORDERS_COPIES);
  return tw_build_barrier(&at, TW_ORDERS_COPIES);
}

/* 32-bit words that a thread keeps of a tile with this layout. */
static int64_t words_of(MlirType tile, const tw_layout_t *layout) {
  return (int64_t)tw_layout_count(layout, TW_REGISTER) * tw_memory_bits(tw_element(tile)) / 32;
}

/* Gives one operand of a product its tile from the buffer of its load. */
static void read_operand(MlirOperation mma, int operand, MlirOperation load, MlirValue buffer, MlirOperation end) {
  MlirValue value = mlirOperationGetOperand(mma, operand);
  MlirBlock home = mlirOperationGetBlock(load);
  MlirOperation around = tw_ancestor_in(mma, home);
  tw_layout_t layout;
  if (!tw_layout_of_type(mlirValueGetType(value), &layout))
    return;
  bool outside = !mlirOperationIsNull(around) && !mlirOperationEqual(around, mma);
  bool late = outside && words_of(mlirValueGetType(value), &layout) > tw_register_budget(mma, TW_BUDGET_IDLE_OPERAND);
  tw_builder_t at = tw_build_before(late ? mma : end);
  mlirOperationSetOperand(mma, operand, rebuild(&at, value, &layout, buffer));
  if (late) {
    tw_builder_t after = tw_build_before(mlirOperationGetNextInBlock(around));
    tw_build_barrier(&after, TW_ORDERS_COPIES);
  }
}

/* Conversions of the load's layout become reads in that layout. */
static void read_converted(MlirValue value, MlirValue buffer, MlirOperation end) {
  tw_builder_t at = tw_build_before(end);
  for (MlirOpOperand use = mlirValueGetFirstUse(value), next; !mlirOpOperandIsNull(use); use = next) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    next = mlirOpOperandGetNextUse(use);
    if (!tw_op_is_conversion(user))
      continue;
    MlirValue result = mlirOperationGetResult(user, 0);
    mlirValueReplaceAllUsesOfWith(result, tw_build_local_load(&at, buffer, mlirValueGetType(result)));
    mlirOperationDestroy(user);
  }
}

/* What else reads the load gets its tile from shared memory too, in the layout that it had. */
static void replace_load(MlirOperation load, MlirValue buffer, MlirOperation end) {
  MlirValue value = mlirOperationGetResult(load, 0);
  read_converted(value, buffer, end);
  if (!mlirOpOperandIsNull(mlirValueGetFirstUse(value))) {
    tw_builder_t at = tw_build_before(end);
    mlirValueReplaceAllUsesOfWith(value, tw_build_local_load(&at, buffer, mlirValueGetType(value)));
  }
  mlirOperationDestroy(load);
}

/* Views that no one reads any more: they keep the load's value alive otherwise. */
static void drop_dead_views(MlirValue value) {
  MlirOperation op = tw_def(value);
  while (!mlirOperationIsNull(op) && tw_is_view_of_load(op) &&
         mlirOpOperandIsNull(mlirValueGetFirstUse(mlirOperationGetResult(op, 0)))) {
    MlirOperation next = tw_def(mlirOperationGetOperand(op, 0));
    mlirOperationDestroy(op);
    op = next;
  }
}

static void promote(promoter_t *p, MlirOperation load) {
  MlirValue buffer;
  MlirOperation end = tw_stage_load(p->func, load, &buffer);
  for (int i = 0; i < 2 * p->products.count; i++) {
    MlirOperation mma = p->products.at[i / 2];
    MlirValue value = mlirOperationGetOperand(mma, i % 2);
    MlirOperation behind = tw_load_behind(value);
    if (mlirOperationIsNull(behind) || !mlirOperationEqual(behind, load))
      continue;
    if (tw_mma_place(mma, i % 2) == TW_PLACE_SHARED)
      mlirOperationSetOperand(mma, i % 2, buffer);
    else
      read_operand(mma, i % 2, load, buffer, end);
    drop_dead_views(value);
  }
  replace_load(load, buffer, end);
}

/* ---- products on buffers --------------------------------------------------------------------------- */

static MlirValue build_async_mma(const tw_builder_t *at, MlirOperation mma) {
  static const char *const flags[][2] = {{TW_MMA_TRANSPOSED_LHS, "transposed_lhs"},
                                         {TW_MMA_TRANSPOSED_RHS, "transposed_rhs"},
                                         {"unsigned_lhs", "unsigned_lhs"},
                                         {"unsigned_rhs", "unsigned_rhs"},
                                         {TW_MMA_NARROW_GROUPS, TW_MMA_NARROW_GROUPS},
                                         {TW_MMA_STEPS, TW_MMA_STEPS},
                                         {TW_MMA_PROMOTED, "promoted"}};
  enum { NUM_FLAGS = sizeof flags / sizeof *flags };
  MlirValue lhs = mlirOperationGetOperand(mma, 0), zero = tw_const_int(at, tw_i32(at->context), 0), operands[5];
  int n = 0;
  bool shared = tw_type_is_buffer(mlirValueGetType(lhs));
  operands[n++] = lhs;
  if (shared)
    operands[n++] = zero;
  operands[n++] = mlirOperationGetOperand(mma, 1);
  operands[n++] = zero;
  operands[n++] = mlirOperationGetOperand(mma, 2);
  tw_attr_t attrs[NUM_FLAGS];
  int num_attrs = 0;
  for (int i = 0; i < NUM_FLAGS; i++)
    if (tw_has_attr(mma, flags[i][0]))
      attrs[num_attrs++] = (tw_attr_t){flags[i][1], tw_attr(mma, flags[i][0])};
  MlirType result = mlirValueGetType(mlirOperationGetResult(mma, 0));
  return tw_op1_attrs(at, "tile.async_mma", result, n, operands, num_attrs, attrs);
}

/* The product, or the outermost loop around it that does not change the operand: there it is written once. */
static MlirOperation unchanged_in(MlirOperation mma, MlirValue value) {
  MlirOperation op = mma, loop = mlirOperationGetParentOperation(op);
  while (tw_op_is(loop, TW_SCF_FOR) && !tw_has_attr(loop, TW_PERSISTENT) && !tw_defined_in(value, tw_loop_body(loop))) {
    op = loop;
    loop = mlirOperationGetParentOperation(op);
  }
  return op;
}

/* The buffer that has the operand already, for a loop before this one; null if none has. */
static MlirValue written_before(const promoter_t *p, MlirValue value, MlirType buffer, MlirBlock block) {
  for (int i = 0; i < p->written.count; i++) {
    MlirOperation store = p->written.at[i];
    if (mlirValueEqual(mlirOperationGetOperand(store, 0), value) &&
        mlirBlockEqual(mlirOperationGetBlock(store), block) &&
        mlirTypeEqual(mlirValueGetType(mlirOperationGetOperand(store, 1)), buffer))
      return mlirOperationGetOperand(store, 1);
  }
  return (MlirValue){NULL};
}

/* Writes an operand that no load put where the instruction reads. */
static void write_operand(promoter_t *p, MlirOperation mma, int operand) {
  MlirValue value = mlirOperationGetOperand(mma, operand);
  MlirOperation anchor = unchanged_in(mma, value);
  MlirType type = tw_async_mma_of(mma)->written(mma, operand, 1).buffer;
  MlirValue had = written_before(p, value, type, mlirOperationGetBlock(anchor));
  if (had.ptr) {
    mlirOperationSetOperand(mma, operand, had);
    return;
  }
  tw_builder_t before = tw_build_before(anchor), *at = &before;
  at->location = mlirOperationGetLocation(mma);
  MlirValue zero = tw_const_int(at, tw_i32(at->context), 0);
  tw_builder_t top = tw_build_before(mlirBlockGetFirstOperation(tw_region_block(p->func, 0)));
  top.location = at->location;
  MlirValue buffer = tw_alloc_buffer(&top, type);
  MlirValue operands[] = {value, buffer, zero};
  MlirOperation store = tw_build(at, "tile.local_store", (tw_op_parts_t){.num_operands = 3, .operands = operands});
  mlirOperationSetOperand(mma, operand, buffer);
  if (mlirOperationEqual(anchor, mma))
    return;
  tw_build_barrier(at, TW_ORDERS_STORES);
  tw_ops_add(&p->written, store);
}

/* An operand that was to lie where its load puts it, but whose load stayed in registers (shared memory has no room, or
 * a pass in between has changed a gather's indices): as it is, no longer transposed. */
static bool was_left_behind(MlirOperation mma, int operand) {
  if (tw_mma_place(mma, operand) != TW_PLACE_SHARED ||
      tw_type_is_buffer(mlirValueGetType(mlirOperationGetOperand(mma, operand))))
    return false;
  mlirOperationRemoveDiscardableAttributeByName(mma,
                                                tw_str(operand == 0 ? TW_MMA_TRANSPOSED_LHS : TW_MMA_TRANSPOSED_RHS));
  return true;
}

static void finish_async_mma(promoter_t *p, MlirOperation mma) {
  tw_builder_t at = tw_build_before(mma);
  unsigned orders = TW_ORDERS_PRODUCTS;
  for (int i = 0; i < 2; i++) {
    bool behind = was_left_behind(mma, i);
    if (tw_mma_place(mma, i) == TW_PLACE_WRITTEN || (behind && i == 1)) { /* lhs is in its registers already */
      bool again = mlirOperationEqual(unchanged_in(mma, mlirOperationGetOperand(mma, i)), mma);
      write_operand(p, mma, i);
      orders |= again ? TW_ORDERS_STORES : 0;
    }
  }
  if (!tw_type_is_buffer(mlirValueGetType(mlirOperationGetOperand(mma, 1))))
    return;
  MlirValue result = build_async_mma(&at, mma);
  MlirOperation wait = tw_build_product_wait(&at, 1, &result, 0);
  tw_build_barrier(&at, orders);
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(mma, 0), mlirOperationGetResult(wait, 0));
  mlirOperationDestroy(mma);
}

/* ---- room -------------------------------------------------------------------------------------- */

/* Takes room for the load's buffer, or tells that there is none. Buffers of different loops can
 * share their bytes; those filled once, outside of loops, may live through any of them. */
static bool take_room(promoter_t *p, MlirOperation load, int64_t room) {
  const void *loop = tw_repeating_loop(load);
  int64_t bytes = tile_bytes(mlirValueGetType(mlirOperationGetResult(load, 0))) * (loop ? MIN_STAGES : 1);
  int64_t beside = 0, most = 0;
  int at = p->num_taken;
  for (int i = 0; i < p->num_taken; i++) {
    if (p->taken[i].loop == loop)
      at = i;
    if (p->taken[i].loop == NULL)
      beside = p->taken[i].bytes;
    else
      most = p->taken[i].bytes > most ? p->taken[i].bytes : most;
  }
  if (at == p->num_taken) {
    p->taken = tw_room(p->taken, (size_t)at, sizeof *p->taken);
    p->taken[p->num_taken++] = (taken_t){loop, 0};
  }
  if (p->taken[at].bytes + (loop ? beside : most) + bytes > room) {
    tw_op_remark(load, "stays in registers: shared memory has no room for %lld more bytes", (long long)bytes);
    return false;
  }
  p->taken[at].bytes += bytes;
  return true;
}

/* ---- more loads ---------------------------------------------------------------------------------- */

static void note_brought(promoter_t *p, MlirOperation load) {
  p->brought = tw_room(p->brought, (size_t)p->num_brought, sizeof *p->brought);
  p->brought[p->num_brought++] =
      (brought_t){mlirOperationGetOperand(load, 0), tw_attr(load, "order"), tw_promoted_type(load)};
}

typedef struct {
  const promoter_t *promoter;
  tw_ops_t loads;
} alike_t;

/* Loads in loops of tiles as products have them, from the same array. */
static MlirWalkResult find_alike(MlirOperation op, void *user) {
  alike_t *alike = user;
  const promoter_t *p = alike->promoter;
  if (!tw_op_loads_tile(op) || !tw_promotes(op) || tw_loop_around(op) == NULL)
    return MlirWalkResultAdvance;
  for (int i = 0; i < p->num_brought; i++)
    if (mlirValueEqual(p->brought[i].array, mlirOperationGetOperand(op, 0)) &&
        mlirAttributeEqual(p->brought[i].order, tw_attr(op, "order")) &&
        mlirTypeEqual(p->brought[i].buffer, tw_promoted_type(op))) {
      tw_ops_add(&alike->loads, op);
      break;
    }
  return MlirWalkResultAdvance;
}

static void bring(promoter_t *p, MlirOperation load) {
  tw_gpu_target_t target = tw_gpu_target_of(p->func);
  if (!take_room(p, load, target.shared_bytes))
    return;
  note_brought(p, load);
  promote(p, load);
}

static void bring_operand(promoter_t *p, MlirOperation mma, int operand) {
  MlirOperation load = tw_load_behind(mlirOperationGetOperand(mma, operand));
  if (!mlirOperationIsNull(load) && tw_promotes(load))
    bring(p, load);
  tw_ops_t loads = tw_loads_behind(mma, operand);
  for (int i = loads.count; i > 0; i--)
    bring(p, loads.at[i - 1]);
  tw_ops_free(&loads);
}

static bool promote_operands(MlirOperation func) {
  promoter_t p = {.func = func};
  p.products = tw_ops_in(func, tw_op_is_product, MlirWalkPreOrder);
  for (int i = 0; i < 2 * p.products.count; i++)
    bring_operand(&p, p.products.at[i / 2], i % 2);
  alike_t alike = {.promoter = &p};
  mlirOperationWalk(func, find_alike, &alike, MlirWalkPreOrder);
  for (int i = 0; i < alike.loads.count; i++)
    bring(&p, alike.loads.at[i]);
  for (int i = 0; i < p.products.count; i++)
    finish_async_mma(&p, p.products.at[i]);
  tw_ops_free(&alike.loads);
  tw_ops_free(&p.products);
  tw_ops_free(&p.written);
  free(p.taken);
  free(p.brought);
  return true;
}

bool tw_run_promote_memory(MlirOperation func) {
  return promote_operands(func) && tw_stage_stores(func) && tw_realign_rows(func);
}
