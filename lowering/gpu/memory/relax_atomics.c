/* relax_atomics.c - part of tile-qualify-accesses: atomics order no more than a thread could see
 *
 * Before: what `atomic_ref(bins, i).add(1)` is, in a histogram.
 *
 *   %old = tile.atomic add seq_cst sys, %one, %bins[%i]         // fence.sc.sys; atom.acquire.sys.global.add
 *   %mine = tile.atomic add seq_cst sys, %one, %own[%j]         // %own : memref<256xi32, 3>
 *
 * After:
 *
 *   %old = tile.atomic add relaxed sys, %one, %bins[%i]         // red.relaxed.sys.global.add
 *   %mine = tile.atomic add relaxed block, %one, %own[%j]       // red.relaxed.cta.shared.add
 *
 * An order needs two: one who releases, and one who looks, by an atomic access whose result is used, or behind a fence.
 *
 * - Only the block sees its shared arrays: the scope of an access there is the block.
 * - Where no thread looks at an atomic shared array, and there is no fence, accesses to shared arrays are relaxed: what
 *   they wrote is read behind a barrier, which orders it.
 * - Sums, extremes and bits that nobody looks at in global memory are relaxed in a kernel that does nothing else there
 *   but read, so that it has nothing to publish. This takes for granted that nobody outside tells the order of two such
 *   sums while the kernel runs. With the hint `relax_atomics=0` it is left out.
 *
 * What must hold: a SIMT kernel. Loads and stores that are atomic, fences, and calls of C++ keep what they say. */
#include "lowering/gpu/memory/qualify_accesses.h"
#include "lowering/launch_record.h"
#include "tilewright/dialect.h"

typedef struct {
  bool looks_at_shared, looks_at_global, publishes; /* publishes: writes to global memory in another way */
} use_t;

static bool is_atomic(MlirOperation op) { return tw_op_is(op, TW_TILE_ATOMIC); }

static int space_of(MlirValue array) {
  MlirAttribute space = mlirMemRefTypeGetMemorySpace(mlirValueGetType(array));
  return mlirAttributeIsNull(space) || !mlirAttributeIsAInteger(space) ? 0 : (int)mlirIntegerAttrGetValueInt(space);
}

static bool is_shared(MlirOperation atomic) { return space_of(mlirOperationGetOperand(atomic, 0)) == TW_SPACE_SHARED; }

/* Whether a thread learns what others did. */
static bool looks(MlirOperation atomic) {
  int64_t kind = tw_attr_int(atomic, "kind", TW_ATOMIC_LOAD);
  bool is_used = !mlirOpOperandIsNull(mlirValueGetFirstUse(mlirOperationGetResult(atomic, 0)));
  return kind == TW_ATOMIC_LOAD || kind == TW_ATOMIC_CAS || (kind != TW_ATOMIC_STORE && is_used);
}

static bool combines(MlirOperation atomic) {
  int64_t kind = tw_attr_int(atomic, "kind", TW_ATOMIC_LOAD);
  return kind != TW_ATOMIC_LOAD && kind != TW_ATOMIC_STORE && kind != TW_ATOMIC_CAS && kind != TW_ATOMIC_XCHG;
}

static MlirWalkResult look_at(MlirOperation op, void *user) {
  use_t *use = user;
  if (is_atomic(op)) {
    use->looks_at_shared |= is_shared(op) && looks(op);
    use->looks_at_global |= !is_shared(op) && looks(op);
    use->publishes |= !is_shared(op) && !combines(op);
  } else if (tw_stores_to_array(op)) {
    use->publishes |= space_of(tw_operand(op, TW_OPERAND_ARRAY)) == 0;
  } else if (tw_op_has(op, TW_ORDERS_ALL) && !tw_op_has(op, TW_MEETS_BLOCK | TW_MEETS_WARP)) {
    *use = (use_t){true, true, true}; /* a fence, a call of C++ */
  }
  return MlirWalkResultAdvance;
}

static void relax(MlirOperation atomic, const use_t *use) {
  MlirType i32 = tw_i32(mlirOperationGetContext(atomic));
  bool shared = is_shared(atomic);
  if (shared && tw_attr_int(atomic, "memory_scope", TW_SCOPE_SYS) != TW_SCOPE_THREAD)
    tw_set_int(atomic, "memory_scope", i32, TW_SCOPE_BLOCK);
  bool unseen = shared ? !use->looks_at_shared : !use->looks_at_global && !use->publishes && !looks(atomic);
  if (unseen)
    tw_set_int(atomic, "memory_order", i32, TW_ORDER_RELAXED);
  else if (tw_attr_int(atomic, "memory_order", TW_ORDER_RELAXED) == TW_ORDER_SEQ_CST)
    tw_op_remark(atomic,
                 "fences all of a thread's accesses each time (memory 'seq_cst'), since others of the kernel may "
                 "look at their order; 'relaxed' or 'acq_rel' cost less, where they do");
}

bool tw_relax_atomics(MlirOperation func) {
  if (!tw_has_attr(func, "tile.simt") || !tw_hint_relax_atomics(func, 1))
    return true;
  use_t use = {false, false, false};
  mlirOperationWalk(func, look_at, &use, MlirWalkPreOrder);
  tw_ops_t atomics = tw_ops_in(func, is_atomic, MlirWalkPreOrder);
  for (int i = 0; i < atomics.count; i++)
    relax(atomics.at[i], &use);
  tw_ops_free(&atomics);
  return true;
}
