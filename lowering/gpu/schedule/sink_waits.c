/* sink_waits.c - tile-sink-waits: sinks waits for products below independent work
 *
 * Before (made by tile-promote-memory), each product is waited for at once:
 *
 *   scf.for ... iter_args(%c, %p) {
 *     %s = tile.async_mma %q[%0], %k[%0], %zero      ; %s' = tile.mma_wait %s, 0 ; tile.barrier {tile.products}
 *     %d = tile.async_mma %p, %v[%0], %c             ; %d' = tile.mma_wait %d, 0 ; tile.barrier {tile.products}
 *     %e = math.exp2 ... %s' ...
 *     %h = arith.truncf %e
 *     %a = arith.mulf %d', ...
 *     yield %a, %h
 *   }
 *
 * After, a wait stands behind all that does not depend on it, and counts the products that may go on:
 *
 *   scf.for ... iter_args(%c, %p) {
 *     %s = tile.async_mma %q[%0], %k[%0], %zero
 *     %d = tile.async_mma %p, %v[%0], %c
 *     %s' = tile.mma_wait %s, 1 {complete} ; tile.barrier {tile.products}
 *     %e = math.exp2 ... %s' ...                 // while %d is computed
 *     %d', %e' = tile.mma_wait %d, 0 with %e   ; tile.barrier {tile.products}
 *     %h = arith.truncf %e'
 *     %a = arith.mulf %d', ...
 *     yield %a, %h
 *   }
 *
 * A product reads its operand in registers (%p) until it is done. What will be in these registers in the next iteration
 * (%h) is therefore made behind the wait, from a value (%e) that the wait orders: it is complete before, or the
 * assembler would have to serialize the products.
 *
 * Where nothing can be ordered so, the wait holds the operand itself: no register of it is written before,
 *
 *   %d', %p' = tile.mma_wait %d, 0 with %p     // nothing reads %p'
 *
 * So is a function that is read behind a wait only, as the weights of attention's gradients: %p stands in front of the
 * wait for the product that it is multiplied with,
 *
 *   %p = math.exp2 ... %s' ... ; %d', %p' = tile.mma_wait %d, 0 with %p ; %m = arith.mulf %p', %d'
 *
 * or the assembler, which knows no cost of a wait, would compute it there.
 *
 * What threads write for a product from values that come from before this iteration goes in front of all products:
 *
 *   scf.for ... iter_args(%c) {                              scf.for ... iter_args(%c) {
 *     %s = tile.async_mma %q[%0], %k[%0], %zero                    %t = arith.truncf %c ; tile.local_store %t, %b[%0]
 *     %t = arith.truncf %c ; tile.local_store %t, %b[%0]  ->   %s = tile.async_mma %q[%0], %k[%0], %zero
 *     %y = tile.async_mma %q[%0], %b[%0], %zero                    %y = tile.async_mma %q[%0], %b[%0], %zero
 *
 * so that products are started in a row, and the assembler sees no accumulator read (%c) while one is under way.
 *
 * A product that only goes on with the sums of another one starts right behind it, and one wait is for both:
 *
 *   %s = tile.async_mma %q[%0], %k[%0], %zero      ; %s' = tile.mma_wait %s, 0
 *   %t = tile.async_mma %r[%0], %l[%0], %s'        ; %t' = tile.mma_wait %t, 0
 *   ->
 *   %s = tile.async_mma %q[%0], %k[%0], %zero
 *   %t = tile.async_mma %r[%0], %l[%0], %s         ; %t' = tile.mma_wait %t, 0
 *
 * In the end, where registers are short, what products read from registers moves down to them (late_operands.h).
 *
 * What must hold for an op to move before a wait: nothing that it reads depends on the wait, it writes to no buffer
 * that the product reads, and no effect that stays behind comes before its own. Loads move where the block writes to no
 * array and registers suffice. */
#include "dialect/layouts.h"
#include "lowering/gpu/facts/barrier.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/gpu/schedule/late_operands.h"
#include "lowering/ir.h"
#include "lowering/loops.h"
#include "lowering/passes.h"
#include "tilewright/dialect.h"

typedef struct {
  MlirOperation op;
  tw_map_t stay; /* ops that stay behind the wait, by address */
  bool effects;  /* one of them, no wait for a product, has effects: products after it stay, too */
  bool loads;    /* loads may move: nothing in the block writes to arrays, and there are registers */
} wait_t;

static bool orders_products(MlirOperation op) {
  return tw_orders_only(op, TW_ORDERS_PRODUCTS | TW_ORDERS_STORES) && (tw_ordered_by(op) & TW_ORDERS_PRODUCTS);
}

/* The barrier that keeps a product's buffers from being written early goes where its wait goes. */
static MlirOperation barrier_of(MlirOperation wait) {
  MlirOperation next = mlirOperationGetNextInBlock(wait);
  return orders_products(next) ? next : tw_null_op();
}

static bool is_pure(MlirOperation op) { return tw_is_arithmetic(op) || tw_op_is_async_product(op); }

static bool is_effect(MlirOperation op) {
  return !is_pure(op) && !tw_op_loads(op) && tw_op_form(op) != TW_FORM_CONTROL;
}

static bool has_effects(MlirOperation op) { return tw_has_op_like(op, is_effect); }

/* Whether loads may come before waits: the block writes to no array, and a thread has registers for what they bring
 * beside all accumulators. */
static bool may_load_early(MlirBlock block) {
  bool writes = false;
  int64_t words = 0;
  for (MlirOperation op = mlirBlockGetFirstOperation(block), end = mlirBlockGetTerminator(block);
       !mlirOperationEqual(op, end) && !writes; op = mlirOperationGetNextInBlock(op)) {
    writes = tw_may_write_arrays(op);
    if (tw_op_is_async_product(op) || tw_op_loads(op))
      words += tw_register_words(mlirValueGetType(mlirOperationGetResult(op, 0)));
  }
  return !writes && words <= tw_register_budget(mlirBlockGetParentOperation(block), TW_BUDGET_EARLY_LOADS);
}

static MlirOperation product_of(MlirOperation wait) {
  MlirOperation product = tw_def(mlirOperationGetOperand(wait, 0));
  bool here = !mlirOperationIsNull(product) && tw_op_is_async_product(product) &&
              mlirBlockEqual(mlirOperationGetBlock(product), mlirOperationGetBlock(wait));
  return here ? product : tw_null_op();
}

/* ---- what stays behind ----------------------------------------------------------------------------- */

static bool stays(const wait_t *w, MlirOperation op) { return tw_map_get(&w->stay, op.ptr, NULL) != NULL; }

static void keep(wait_t *w, MlirOperation op) { tw_map_set(&w->stay, op.ptr, 0, NULL); }

static bool reads_what_stays(MlirOperation op, const void *user) {
  const wait_t *w = user;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirOperation def = tw_ancestor_in(tw_def(mlirOperationGetOperand(op, i)), mlirOperationGetBlock(w->op));
    if (!mlirOperationIsNull(def) && stays(w, def))
      return true;
  }
  return false;
}

static bool depends(const wait_t *w, MlirOperation op) {
  return !mlirOperationIsNull(tw_find_op(op, reads_what_stays, w));
}

static bool is_of_products(MlirOperation op) { return tw_op_waits_for_products(op) || tw_op_is_async_product(op); }

/* Whether the op must stay behind the wait. */
static bool must_stay(const wait_t *w, MlirOperation op) {
  if (tw_op_waits_for_products(op) || mlirOperationIsNull(mlirOperationGetNextInBlock(op)) || depends(w, op))
    return true;
  bool products = mlirOperationGetNumRegions(op) > 0 && tw_has_op_like(op, is_of_products);
  return products || has_effects(op) || (!w->loads && tw_op_loads(op)) || (w->effects && tw_op_is_async_product(op));
}

/* Waits for products and their barriers order nothing that a product needs; loads that stay do: there are no registers
 * for what they bring beside one more product. */
static bool orders_more(MlirOperation op) {
  return !tw_op_waits_for_products(op) && !orders_products(op) && (has_effects(op) || tw_op_loads(op));
}

static void find_stay(wait_t *w) {
  MlirOperation barrier = barrier_of(w->op);
  keep(w, w->op);
  if (!mlirOperationIsNull(barrier))
    keep(w, barrier);
  w->effects = false;
  w->loads = may_load_early(mlirOperationGetBlock(w->op));
  for (MlirOperation op = mlirOperationGetNextInBlock(w->op); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    if (!stays(w, op) && must_stay(w, op)) {
      keep(w, op);
      w->effects = w->effects || orders_more(op);
    }
}

/* ---- registers of operands --------------------------------------------------------------------------- */

/* The value behind views, which give registers another name. */
static MlirValue viewed(MlirValue value) {
  MlirOperation def = tw_def(value);
  while (!mlirOperationIsNull(def) && tw_op_form(def) == TW_FORM_VIEW) {
    value = mlirOperationGetOperand(def, 0);
    def = tw_def(value);
  }
  return value;
}

/* Whether the product reads from registers what the iteration before left there. */
static bool reads_carried(MlirOperation product) {
  MlirValue lhs = viewed(mlirOperationGetOperand(product, 0));
  MlirOperation loop = mlirOperationGetParentOperation(product);
  return tw_is_tile(mlirValueGetType(lhs)) && mlirValueIsABlockArgument(lhs) &&
         mlirBlockEqual(mlirBlockArgumentGetOwner(lhs), mlirOperationGetBlock(product)) &&
         (tw_op_is(loop, TW_SCF_FOR) || tw_op_is(loop, TW_SCF_WHILE));
}

/* What the next iteration has in these registers; null if it is not seen. */
static MlirValue successor(MlirOperation product) {
  MlirValue lhs = viewed(mlirOperationGetOperand(product, 0)), none = {NULL};
  MlirOperation loop = mlirOperationGetParentOperation(product);
  if (!tw_op_is(loop, TW_SCF_FOR))
    return none;
  intptr_t position = tw_carried_position(loop, lhs);
  return position < 0 ? none : tw_carried_next(loop, position);
}

/* Whether a wait can order the value: a thread has it as words of 32 bits. */
static bool has_words(MlirValue value) {
  MlirType type = mlirValueGetType(value);
  if (!tw_is_tile(type))
    return false;
  return tw_bits(type) == 32 || mlirTypeIsAF16(tw_element(type)) || mlirTypeIsABF16(tw_element(type));
}

/* Whether the op writes registers: a cast between types of one width only gives them another name, too. */
static bool writes_registers(MlirOperation op) {
  if (tw_op_form(op) != TW_FORM_ELEMENTWISE)
    return false;
  MlirType from = mlirValueGetType(mlirOperationGetOperand(op, 0)),
           to = mlirValueGetType(mlirOperationGetResult(op, 0));
  return tw_op_class(op) != TW_CLASS_CAST || tw_bits(from) != tw_bits(to);
}

/* The wait in place of one: behind it the value is what it orders. Uses that are to see that are the caller's. */
static MlirOperation ordering(MlirOperation old, MlirValue value) {
  MlirValue values[] = {mlirOperationGetOperand(old, 0), value};
  tw_builder_t at = tw_build_before(old);
  MlirOperation wait = tw_build_product_wait(&at, 2, values, 0);
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(old, 0), mlirOperationGetResult(wait, 0));
  mlirOperationDestroy(old);
  return wait;
}

static bool is_f32(MlirValue value) {
  MlirType type = mlirValueGetType(value);
  return tw_is_tile(type) && mlirTypeIsAF32(tw_element(type));
}

/* Whether the op is read behind the wait only, as what goes on to the next iteration is. */
static bool read_behind(MlirOperation op, MlirOperation wait) {
  MlirOpOperand use = mlirValueGetFirstUse(mlirOperationGetResult(op, 0));
  for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation user = tw_ancestor_in(mlirOpOperandGetOwner(use), mlirOperationGetBlock(op));
    if (mlirOperationIsNull(user) || !mlirOperationIsBeforeInBlock(wait, user))
      return false;
  }
  return true;
}

/* Which operand of `last` a wait can order: one that comes from the block, in front of the wait or free to go there. */
static intptr_t orderable(const wait_t *w, MlirOperation last) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(last); i++) {
    MlirValue value = mlirOperationGetOperand(last, i);
    MlirOperation def = tw_ancestor_in(tw_def(value), mlirOperationGetBlock(w->op));
    if (has_words(value) && !mlirOperationIsNull(def) && !tw_is_constant(def) && !stays(w, def))
      return i;
  }
  return -1;
}

/* Has the wait order what the product's registers will be made from, by the last step to that. Where the program makes
 * it in front of the product (it loads ahead by hand), this step moves behind the wait. */
static bool order_successor(wait_t *w, MlirValue next) {
  MlirOperation last = next.ptr ? tw_def(viewed(next)) : tw_null_op();
  if (mlirOperationIsNull(last) || !mlirBlockEqual(mlirOperationGetBlock(last), mlirOperationGetBlock(w->op)) ||
      !writes_registers(last) || stays(w, last))
    return false;
  intptr_t operand = orderable(w, last);
  bool early = mlirOperationIsBeforeInBlock(last, w->op);
  if (operand < 0 || (early && !read_behind(last, w->op)))
    return false;
  w->op = ordering(w->op, mlirOperationGetOperand(last, operand));
  if (early)
    mlirOperationMoveAfter(last, w->op);
  mlirOperationSetOperand(last, operand, mlirOperationGetResult(w->op, 1));
  return true;
}

/* Whether the value comes from what the wait gives. */
static bool comes_from(const wait_t *w, MlirValue value) {
  tw_slice_t slice = {.block = mlirOperationGetBlock(w->op)};
  tw_slice_add(&slice, value);
  bool found = tw_slice_has(&slice, w->op);
  tw_slice_free(&slice);
  return found;
}

/* Keeps the next iteration's operand out of the registers that the product reads until the wait: it is made behind the
 * wait, or the wait holds the operand of this iteration, so that the next one has registers of its own. */
static void guard_operand(wait_t *w, MlirOperation product) {
  if (!reads_carried(product))
    return;
  MlirValue next = successor(product);
  if (next.ptr && comes_from(w, next))
    return;
  if (!order_successor(w, next))
    w->op = ordering(w->op, mlirOperationGetOperand(product, 0));
  tw_map_free(&w->stay);
  find_stay(w);
}

/* ---- functions in front of waits ------------------------------------------------------------------------ */

static bool is_function(MlirOperation op) { return !mlirOperationIsNull(op) && tw_op_class(op) == TW_CLASS_FUNCTION; }

/* Whether the op is a function of a tile, or a mask over one, and is read behind the wait only. */
static bool crosses(MlirOperation op, MlirOperation wait) {
  bool masked = tw_op_is(op, TW_ARITH_SELECT) && is_function(tw_def(mlirOperationGetOperand(op, 1)));
  if ((!is_function(op) && !masked) || !is_f32(mlirOperationGetResult(op, 0)))
    return false;
  return read_behind(op, wait);
}

/* Has the wait order a function that stands in front of it, behind the wait before, and that is read behind it only:
 * the assembler would compute it there, while the Tensor Core idles. A wait whose result only goes on to the next
 * iteration may be dropped (tile-specialize-warps) and orders nothing. */
static void order_function(MlirOperation wait) {
  MlirOperation found = tw_null_op(), user = tw_only_user(mlirOperationGetResult(wait, 0));
  for (MlirOperation op = mlirBlockGetFirstOperation(mlirOperationGetBlock(wait)); !mlirOperationEqual(op, wait);
       op = mlirOperationGetNextInBlock(op))
    found = tw_op_waits_for_products(op) ? tw_null_op() : crosses(op, wait) ? op : found;
  if (mlirOperationIsNull(found) || mlirOperationGetNumOperands(wait) > 1 ||
      !is_f32(mlirOperationGetOperand(wait, 0)) || (!mlirOperationIsNull(user) && tw_op_is(user, TW_SCF_YIELD)))
    return;
  MlirValue value = mlirOperationGetResult(found, 0);
  wait = ordering(wait, value);
  mlirValueReplaceAllUsesOfWith(value, mlirOperationGetResult(wait, 1));
  mlirOperationSetOperand(wait, 1, value);
}

/* ---- what products read, in front of them -------------------------------------------------------------- */

/* Whether the values behind a store come from arithmetic on what no product of the block makes. */
static bool is_known_before(const tw_slice_t *slice, MlirOperation first, MlirOperation store) {
  for (MlirOperation op = first; !mlirOperationEqual(op, store); op = mlirOperationGetNextInBlock(op))
    if (tw_slice_has(slice, op) && !tw_is_arithmetic(op))
      return false;
  return true;
}

/* Moves a store to shared memory, and what it stores, in front of the first product of its block. */
static void write_early(MlirOperation store) {
  MlirBlock block = mlirOperationGetBlock(store);
  MlirOperation first = mlirBlockGetFirstOperation(block);
  while (!mlirOperationEqual(first, store) && !tw_op_is_async_product(first))
    first = mlirOperationGetNextInBlock(first);
  tw_slice_t slice = {.block = block};
  tw_slice_add_op(&slice, store);
  bool may = is_known_before(&slice, first, store);
  for (MlirOperation op = first; may && !mlirOperationEqual(op, store); op = mlirOperationGetNextInBlock(op))
    may = !tw_takes(op, mlirOperationGetOperand(store, 1));
  for (MlirOperation op = first, next; may && !mlirOperationEqual(first, store); op = next) {
    bool last = mlirOperationEqual(op, store);
    next = mlirOperationGetNextInBlock(op);
    if (tw_slice_has(&slice, op))
      mlirOperationMoveBefore(op, first);
    if (last)
      break;
  }
  tw_slice_free(&slice);
}

/* ---- sums of several products -------------------------------------------------------------------------- */

static bool writes_buffer_of(MlirOperation op, MlirOperation product) {
  if (is_of_products(op) || tw_op_reads_shared(op))
    return false;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(product); i++)
    if (tw_type_is_buffer(mlirValueGetType(mlirOperationGetOperand(product, i))) &&
        tw_takes(op, mlirOperationGetOperand(product, i)))
      return true;
  return false;
}

/* Whether nothing from the wait up to the next product writes what the products of the sum so far read, nor is a
 * branch: the assembler wants none between products that are under way together. */
static bool may_follow(MlirOperation wait, MlirOperation product, MlirOperation next) {
  for (MlirOperation op = wait; !mlirOperationEqual(op, next); op = mlirOperationGetNextInBlock(op)) {
    if (mlirOperationGetNumRegions(op) > 0)
      return false;
    for (MlirOperation of = product; !mlirOperationIsNull(of); of = tw_mma_before(of))
      if (writes_buffer_of(op, of))
        return false;
  }
  return true;
}

/* Whether sums stay in the instruction's registers, as 32 bits each, while the next product adds to them. */
static bool keeps_sums(MlirOperation product) {
  enum { SUM_BITS = 32 };
  return !tw_has_attr(product, "promoted") && tw_bits(mlirValueGetType(mlirOperationGetResult(product, 0))) == SUM_BITS;
}

/* Drops the wait for a product whose sums the next one goes on with: the Tensor Core runs them in their order. What the
 * first one reads lies in shared memory, which nothing writes until the second one is waited for. */
static void join_sums(MlirOperation wait) {
  MlirOperation product = product_of(wait), next = tw_only_user(mlirOperationGetResult(wait, 0));
  if (mlirOperationIsNull(product) || mlirOperationIsNull(next) || mlirOperationGetNumOperands(wait) > 1 ||
      !tw_has_one_use(mlirOperationGetResult(product, 0)) || !tw_op_is_async_product(next) ||
      !mlirBlockEqual(mlirOperationGetBlock(next), mlirOperationGetBlock(wait)) || !keeps_sums(product) ||
      !keeps_sums(next) || tw_mma_reads_registers(product) || !may_follow(wait, product, next))
    return;
  MlirOperation barrier = barrier_of(wait);
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(wait, 0), mlirOperationGetResult(product, 0));
  mlirOperationDestroy(wait);
  if (!mlirOperationIsNull(barrier))
    mlirOperationDestroy(barrier);
}

/* ---- moving ---------------------------------------------------------------------------------------- */

static void delay(MlirOperation op) {
  wait_t w = {.op = op};
  MlirOperation product = product_of(op);
  if (mlirOperationIsNull(product) || tw_attr_int(op, "pending", 0) != 0)
    return;
  find_stay(&w);
  guard_operand(&w, product);
  for (MlirOperation next = mlirOperationGetNextInBlock(w.op); !mlirOperationIsNull(next);) {
    MlirOperation candidate = next;
    next = mlirOperationGetNextInBlock(next);
    if (!stays(&w, candidate))
      mlirOperationMoveBefore(candidate, w.op);
  }
  tw_map_free(&w.stay);
}

/* Products are done in the order in which they were started: those that were after this one may go on. Counted when all
 * stand where they will. */
static void count_pending(MlirOperation wait) {
  MlirOperation product = product_of(wait);
  MlirContext context = mlirOperationGetContext(wait);
  int pending = 0;
  if (mlirOperationIsNull(product) || tw_attr_int(wait, "pending", 0) != 0)
    return;
  for (MlirOperation later = mlirOperationGetNextInBlock(product); !mlirOperationEqual(later, wait);
       later = mlirOperationGetNextInBlock(later)) {
    int64_t open = tw_op_waits_for_products(later) ? tw_attr_int(later, "pending", 0) : pending;
    pending = tw_op_is_async_product(later) ? pending + 1 : open < pending ? (int)open : pending;
  }
  if (pending > 0) {
    tw_set_int(wait, "pending", tw_i32(context), pending);
    tw_set_attr(wait, "complete", mlirUnitAttrGet(context));
  }
}

/* ---- the pass ------------------------------------------------------------------------------------ */

bool tw_run_sink_waits(MlirOperation func) {
  tw_ops_t stores = tw_ops_in(func, tw_op_stores_buffer, MlirWalkPreOrder);
  for (int i = 0; i < stores.count; i++)
    write_early(stores.at[i]);
  tw_ops_t first = tw_ops_in(func, tw_op_waits_for_products, MlirWalkPreOrder);
  for (int i = 0; i < first.count; i++)
    join_sums(first.at[i]);
  tw_ops_t waits = tw_ops_in(func, tw_op_waits_for_products, MlirWalkPreOrder);
  for (int i = waits.count - 1; i >= 0; i--)
    delay(waits.at[i]);
  tw_make_operands_late(func);
  tw_ops_t moved = tw_ops_in(func, tw_op_waits_for_products, MlirWalkPreOrder);
  for (int i = 0; i < moved.count; i++)
    order_function(moved.at[i]);
  tw_ops_t placed = tw_ops_in(func, tw_op_waits_for_products, MlirWalkPreOrder);
  for (int i = 0; i < placed.count; i++)
    count_pending(placed.at[i]);
  tw_ops_free(&stores);
  tw_ops_free(&first);
  tw_ops_free(&waits);
  tw_ops_free(&moved);
  tw_ops_free(&placed);
  return true;
}
