/* order_stores.c - tile-order-stores: schedules each store's computation next to it to shorten live ranges
 *
 * Before: the code of one thread, one operation for all its elements of a tile after the other.
 *
 *   %a0 = llvm.fmul %x0, %x0 ; %a1 = llvm.fmul %x1, %x1 ; ...
 *   %b0 = llvm.fadd %a0, %y0 ; %b1 = llvm.fadd %a1, %y1 ; ...
 *   nvvm.barrier
 *   llvm.store %b0, %p0 ; llvm.store %b1, %p1 ; ...
 *
 * After: element by element, as each is stored.
 *
 *   nvvm.barrier
 *   %a0 = llvm.fmul %x0, %x0 ; %b0 = llvm.fadd %a0, %y0 ; llvm.store %b0, %p0
 *   %a1 = llvm.fmul %x1, %x1 ; %b1 = llvm.fadd %a1, %y1 ; llvm.store %b1, %p1
 *
 * Between two operations on all elements, a whole tile of temporaries is alive, and the assembler, which may move
 * arithmetic as it likes, makes that worse: it starts all elements at a time, to hide latency. It moves nothing across
 * a store, though. So the epilogue of a GEMM with gelu and a residual no longer spills.
 *
 * Ops with effects keep their order, but for loads that may wait. A piece of a row of weights (tile.late, from
 * tile-sink-loads) comes one store before the piece of the result that needs it, and registers hold two at a time;
 * narrow pieces, of rows that lie at odd places, come earlier, or a thread would wait for each pair of elements. What
 * an epilogue adds to a sum (tile.late = 32, from tile-sink-loads) comes from memory: so many words are filled at a
 * time. These, and ops without effects, move within the stretch of their block that lies between two fences: whatever
 * starts or awaits asynchronous work, on both sides of which arithmetic was placed with care. A stretch that stores
 * nothing stays as it is.
 *
 * Steps of k of a product that start one by one (tile.async_mma, `stepped`) are treated as stores: the part of the
 * operand that a step reads is computed right in front of it, while the steps before run. */
#include "base/memory.h"
#include "lowering/gpu/facts/inline_ptx.h"
#include "lowering/ir.h"
#include "lowering/passes.h"

#include "mlir-c/Dialect/LLVM.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  MlirOperation op;
  bool pure, done;
  bool looked; /* for late loads, when nothing that it needs was left */
  int words;   /* that the late loads of a store fill */
} order_item_t;

typedef struct {
  const void *op;
  size_t at;
} order_index_t;

/* A stretch of a block, in its old order; and where to find each op in it. */
typedef struct {
  order_item_t *items;
  order_index_t *index;
  size_t num, capacity;
  bool late;         /* it has loads that may wait */
  int widest;        /* words of one of these */
  int room;          /* words that they may fill at a time for more than a store and the next one */
  size_t next;       /* the item from which on late loads have not been placed */
  int stores_ahead;  /* later stores for which they have */
  int ahead;         /* words that these take */
  MlirOperation end; /* the first op behind the stretch */
} stretch_t;

/* ---- kinds of ops ------------------------------------------------------------------------------ */

/* Of an op of llvm, by how its name begins. */
static bool has_effects(MlirStringRef name) {
  static const char *const effects[] = {"load", "store", "call", "atomic", "fence", "cmpxchg", "intr.mem", "alloca"};
  const size_t dialect = strlen("llvm.");
  for (size_t i = 0; i < sizeof effects / sizeof *effects; i++)
    if (name.length >= dialect + strlen(effects[i]) && !memcmp(name.data + dialect, effects[i], strlen(effects[i])))
      return true;
  return false;
}

static bool is_pure(MlirOperation op) {
  if (tw_op_is(op, TW_LLVM_INLINE_ASM))
    return !tw_has_attr(op, "has_side_effects") || tw_has_attr(op, TW_LATE);
  if (tw_op_is(op, TW_LLVM_CALL_INTRINSIC))
    return tw_ptx_does(op, TW_PTX_NOTHING);
  return tw_op_in(op, "llvm") && mlirOperationGetNumSuccessors(op) == 0 && mlirOperationGetNumResults(op) > 0 &&
         !has_effects(tw_op_name(op));
}

static bool is_fence(MlirOperation op) {
  return mlirOperationIsNull(mlirOperationGetNextInBlock(op)) || tw_ptx_does(op, TW_PTX_FENCE);
}

static bool is_store(MlirOperation op) { return tw_op_is(op, TW_LLVM_STORE) || tw_ptx_does(op, TW_PTX_STORES); }

/* Whether what the op needs is computed next to it. */
static bool takes_computed(MlirOperation op) { return is_store(op) || tw_ptx_does(op, TW_PTX_STEP); }

/* ---- the new order ----------------------------------------------------------------------------- */

static int by_address(const void *x, const void *y) {
  const order_index_t *a = x, *b = y;
  return a->op < b->op ? -1 : a->op > b->op;
}

static order_item_t *find(const stretch_t *s, MlirOperation op) {
  order_index_t key = {op.ptr, 0};
  const order_index_t *found = bsearch(&key, s->index, s->num, sizeof *s->index, by_address);
  return found ? &s->items[found->at] : NULL;
}

/* Appends an op behind all that it needs. */
static void append(stretch_t *s, order_item_t *item) {
  item->done = true;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(item->op); i++) {
    MlirOperation def = tw_def(mlirOperationGetOperand(item->op, i));
    order_item_t *needed = mlirOperationIsNull(def) ? NULL : find(s, def);
    if (needed != NULL && !needed->done)
      append(s, needed);
  }
  mlirOperationMoveBefore(item->op, s->end);
}

/* Registers that a load of one thread fills. */
static int words_of(MlirOperation load) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(load, 0));
  return mlirTypeIsALLVMStructType(type) ? (int)mlirLLVMStructTypeGetNumElementTypes(type) : 1;
}

/* Appends the late loads that an op needs; returns the words that they fill. */
static int append_late(stretch_t *s, MlirOperation op) {
  int words = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirOperation def = tw_def(mlirOperationGetOperand(op, i));
    order_item_t *needed = mlirOperationIsNull(def) ? NULL : find(s, def);
    if (needed == NULL || needed->done || needed->looked)
      continue;
    needed->looked = true;
    if (!tw_has_attr(def, TW_LATE)) {
      words += append_late(s, def);
      continue;
    }
    words += words_of(def);
    append(s, needed);
  }
  return words;
}

/* Words that late loads may fill for more than a store and the next one. Of single elements as many as of vectors. */
static int room_of(const stretch_t *s) {
  enum { WORDS = 16 };
  return s->room > 0 ? s->room : s->widest == 1 ? WORDS : 0;
}

/* Those of a store, and of the next one, which then need not be waited for; of later ones, which take as many words as
 * this one most often, while there is room. */
static void append_late_of(stretch_t *s, size_t store) {
  order_item_t *now = &s->items[store];
  if (s->stores_ahead > 0) {
    s->stores_ahead--;
    s->ahead -= now->words;
  } else {
    now->words = append_late(s, now->op);
    s->next = store + 1;
  }
  int room = room_of(s);
  for (; s->next < s->num && (s->stores_ahead == 0 || (room > 0 && s->ahead + 2 * now->words <= room)); s->next++) {
    order_item_t *item = &s->items[s->next];
    if (!is_store(item->op))
      continue;
    item->words = append_late(s, item->op);
    s->ahead += item->words;
    s->stores_ahead++;
  }
}

static void reorder(stretch_t *s) {
  for (size_t i = 0; i < s->num; i++)
    s->index[i] = (order_index_t){s->items[i].op.ptr, i};
  qsort(s->index, s->num, sizeof *s->index, by_address);
  for (int pure = 0; pure < 2; pure++) /* then, what no op with effects needs */
    for (size_t i = 0; i < s->num; i++)
      if (s->items[i].pure == pure && !s->items[i].done) {
        if (s->late && is_store(s->items[i].op))
          append_late_of(s, i);
        append(s, &s->items[i]);
      }
}

static void add(stretch_t *s, MlirOperation op) {
  if (s->num == s->capacity) {
    s->capacity = s->capacity ? 2 * s->capacity : 1024;
    s->items = tw_must(realloc(s->items, s->capacity * sizeof *s->items));
    s->index = tw_must(realloc(s->index, s->capacity * sizeof *s->index));
  }
  s->items[s->num++] = (order_item_t){.op = op, .pure = is_pure(op)};
  if (tw_has_attr(op, TW_LATE)) {
    int words = words_of(op);
    s->late = true;
    s->widest = words > s->widest ? words : s->widest;
  }
  int room = (int)tw_attr_int(op, TW_LATE, 0);
  s->room = room > s->room ? room : s->room;
}

static void visit_block(stretch_t *s, MlirBlock block) {
  bool takes = false;
  for (MlirOperation op = mlirBlockGetFirstOperation(block), next; !mlirOperationIsNull(op); op = next) {
    next = mlirOperationGetNextInBlock(op);
    if (!is_fence(op)) {
      takes = takes || takes_computed(op);
      add(s, op);
      continue;
    }
    s->end = op;
    if (takes)
      reorder(s);
    *s = (stretch_t){.items = s->items, .index = s->index, .capacity = s->capacity};
    takes = false;
  }
}

bool tw_run_order_stores(MlirOperation module) {
  stretch_t stretch = {.num = 0};
  MlirBlock body = tw_region_block(module, 0);
  TW_EACH_OP(op, body) {
    if (!tw_op_is(op, TW_LLVM_FUNC) || !tw_has_attr(op, "nvvm.kernel"))
      continue;
    for (MlirBlock block = tw_region_block(op, 0); !mlirBlockIsNull(block); block = mlirBlockGetNextInRegion(block))
      visit_block(&stretch, block);
  }
  free(stretch.items);
  free(stretch.index);
  return true;
}
