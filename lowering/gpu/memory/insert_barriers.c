/* insert_barriers.c - tile-insert-barriers: puts barriers between accesses of different threads to the same bytes
 *
 * Before: shared memory is allocated; what an op needs for itself (tile.scratch) may lie where
 * another op's bytes lay.
 *
 *   %m = tile.reduce max, %x axis 1 {tile.scratch = 0 : i32} : ...
 *   %y = tile.convert_layout %x {tile.scratch = 0 : i32} : ...
 *
 * After: a tile.barrier stands before each op that writes bytes which another thread may still read
 * or write, or reads bytes which another thread may still write.
 *
 *   %m = tile.reduce max, %x axis 1 {tile.scratch = 0 : i32} : ...
 *   tile.barrier
 *   %y = tile.convert_layout %x {tile.scratch = 0 : i32} : ...
 *
 * The same holds of an array that the kernel writes: what another thread wrote, or may still read. Each thread keeps
 * to its own elements where two accesses are of tiles of one type, in which no element has two owners: such tiles are
 * the same or do not overlap; nor do threads meet for two arrays then, which a launch may pass one for. Other accesses
 * to two arrays are assumed not to touch (aliasing.h), and threads meet where they may. Copies have arrived, and
 * threads have met, before anything is made of them. Blocks that a persistent kernel runs one after the other are in no
 * order.
 *
 * The body of a tile.map that touches memory stands between two barriers, and has none inside. That of tile.threads
 * stands between two, and has its own.
 *
 * An atomic access that releases has a barrier before it, one that acquires has one behind it: its order is one of the
 * block, not of the thread that has it.
 *
 * The pass follows the program with the list of accesses since the last barrier; a loop is walked
 * twice, the second time with what its end leaves open. An op with scratch has a barrier inside,
 * between its writes and its reads. A product reads its buffers until a wait says that it is done, whatever barriers
 * come before: from then on a barrier ends the read, as that of any other op. That nothing else writes to these bytes
 * earlier is what tile-allocate-shared is for, and checked. Copies that are under way when their bytes are reused are
 * waited for. Order between asynchronous copies and reads of the same buffer is the business of the passes that make
 * them (tile-promote-memory, tile-pipeline). */
#include "dialect/layouts.h"
#include "lowering/aliasing.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/barrier.h"
#include "lowering/gpu/facts/index_facts.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/facts/roles.h"
#include "lowering/gpu/facts/same_tile.h"
#include "lowering/gpu/facts/scratch.h"
#include "lowering/gpu/memory/race_check.h"
#include "lowering/passes.h"
#include "tilewright/dialect.h"

#include <string.h>

enum {
  MAX_OPEN = 128,
  MAX_UNDER_WAY =
      128 /* buffers that products read: shared memory has no room for more of 2 KB, the least of an operand */
};

/* Where arrays begin, one byte each: behind all shared memory. */
static const int64_t ARRAYS = INT64_C(1) << 32;

typedef enum access_kind { READ, WRITE, COPY } access_kind_t;

typedef struct open_access {
  access_kind_t kind;
  int64_t from, to;  /* bytes */
  const void *owner; /* whose bytes they are: an alloc_shared, an op with scratch, tiles of a type; null: anyone's */
  MlirOperation op;  /* a load or store, by threads; else null */
} open_access_t;

typedef struct under_way {
  open_access_t read;
  int later; /* products that were started behind it, at least: with so many left under way it is done */
} under_way_t;

/* Accesses since the last barrier. When the list is full everything is taken to be open. And what products under way
 * read. */
typedef struct state {
  open_access_t open[MAX_OPEN];
  int count;
  under_way_t products[MAX_UNDER_WAY];
  int num_products;
  bool *ok;      /* false after an error */
  bool *crowded; /* the list was full */
} state_t;

static void note(state_t *s, open_access_t access) {
  for (int i = 0; i < s->count; i++)
    if (s->open[i].kind == access.kind && s->open[i].owner == access.owner && s->open[i].from == access.from)
      return;
  if (s->count == MAX_OPEN) {
    *s->crowded = true;
    s->open[0] = (open_access_t){access.kind > s->open[0].kind ? access.kind : s->open[0].kind, 0, INT64_MAX, NULL,
                                 tw_null_op()};
    s->count = 1;
  }
  s->open[s->count++] = access;
}

/* After a barrier only copies that nobody waited for are open. */
static void meet(state_t *s) {
  int kept = 0;
  for (int i = 0; i < s->count; i++)
    if (s->open[i].kind == COPY)
      s->open[kept++] = s->open[i];
  s->count = kept;
}

static void wait_for_copies(state_t *s) {
  for (int i = 0; i < s->count; i++)
    if (s->open[i].kind == COPY)
      s->open[i].kind = WRITE;
}

/* Of a buffer that is in the list the youngest product stays. When the list is full it is one of all bytes. */
static void note_product(state_t *s, under_way_t product) {
  for (int i = 0; i < s->num_products; i++)
    if (s->products[i].read.owner == product.read.owner) {
      s->products[i].later = product.later < s->products[i].later ? product.later : s->products[i].later;
      return;
    }
  if (s->num_products == MAX_UNDER_WAY) {
    s->num_products = 0;
    product = (under_way_t){{READ, 0, INT64_MAX, NULL, tw_null_op()}, 0};
  }
  s->products[s->num_products++] = product;
}

static void unite(state_t *s, const state_t *other) {
  for (int i = 0; i < other->count; i++)
    note(s, other->open[i]);
  for (int i = 0; i < other->num_products; i++)
    note_product(s, other->products[i]);
}

/* Behind a wait that leaves `pending` products under way the others are done for this thread: others may wait yet. */
static void wait_for_products(state_t *s, int64_t pending) {
  int kept = 0;
  for (int i = 0; i < s->num_products; i++)
    if (s->products[i].later < pending)
      s->products[kept++] = s->products[i];
    else
      note(s, s->products[i].read);
  s->num_products = kept;
}

static bool conflicts(const state_t *s, bool writes, bool copies, int64_t from, int64_t to) {
  for (int i = 0; i < s->count; i++) {
    const open_access_t *a = &s->open[i];
    bool matters = copies ? a->kind == COPY : a->kind != COPY && (writes || a->kind == WRITE);
    if (matters && a->from < to && from < a->to)
      return true;
  }
  return false;
}

static void leave_arrays(state_t *s) {
  int kept = 0;
  for (int i = 0; i < s->count; i++)
    if (s->open[i].from < ARRAYS)
      s->open[kept++] = s->open[i];
  s->count = kept;
}

static void put_barrier_before(MlirOperation op) {
  tw_builder_t at = tw_build_before(op);
  (void)tw_build_barrier(&at, TW_ORDERS_ANYTHING);
}

static void put_wait_before(MlirOperation op) {
  tw_builder_t at = tw_build_before(op);
  tw_build_copy_wait(&at, 0);
}

/* No thread may write what a product of it, or of another warpgroup, still reads. */
static void check_products(state_t *s, MlirOperation op, const void *owner, int64_t from, int64_t to) {
  for (int i = 0; i < s->num_products && *s->ok; i++) {
    const open_access_t *read = &s->products[i].read;
    if (read->owner != owner && read->from < to && from < read->to) {
      tw_op_error(op, "writes where a product under way reads its operand");
      *s->ok = false;
    }
  }
}

/* Puts what is needed before an op that reads or writes the bytes. */
static void settle(state_t *s, MlirOperation op, bool writes, int64_t from, int64_t to) {
  if (conflicts(s, writes, true, from, to)) {
    put_wait_before(op);
    wait_for_copies(s);
  }
  if (conflicts(s, writes, false, from, to)) {
    put_barrier_before(op);
    meet(s);
  }
}

/* The bytes of a buffer; false when it is no result of an alloc_shared with an offset. */
static bool buffer_range(MlirValue buffer, open_access_t *out) {
  MlirOperation alloc = tw_def(buffer);
  if (mlirOperationIsNull(alloc) || !tw_has_attr(alloc, "offset"))
    return false;
  out->op = tw_null_op();
  out->owner = alloc.ptr;
  out->from = tw_attr_int(alloc, "offset", 0);
  out->to = out->from + tw_buffer_bytes(mlirValueGetType(buffer));
  return true;
}

static bool find_buffer(MlirOperation op, open_access_t *out) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (tw_type_is_buffer(mlirValueGetType(mlirOperationGetOperand(op, i))))
      return buffer_range(mlirOperationGetOperand(op, i), out);
  return false;
}

/* Whether something else than the owner of these bytes still uses some of them. */
static bool bytes_changed_hands(const state_t *s, const open_access_t *access) {
  for (int i = 0; i < s->count; i++) {
    const open_access_t *a = &s->open[i];
    if (a->kind != COPY && a->from < access->to && access->from < a->to && a->owner != access->owner)
      return true;
  }
  return false;
}

/* ---- arrays ---------------------------------------------------------------------------------------- */

/* What a load gives, or a store takes. */
static MlirType type_moved(MlirOperation op) {
  bool loads = mlirOperationGetNumResults(op) > 0;
  if (tw_op_stores_by_engine(op)) /* each group of warps gives what its own threads have, when all of them are there */
    return mlirValueGetType(mlirOperationGetOperand(op, 0));
  return mlirValueGetType(loads ? mlirOperationGetResult(op, 0)
                                : mlirOperationGetOperand(op, mlirOperationGetNumOperands(op) - 1));
}

static bool is_written(MlirValue array) {
  bool written = false;
  TW_EACH_USE(use, array)
    written = written || tw_stores_to_array(mlirOpOperandGetOwner(use));
  return written;
}

/* Whether the op reads or writes an array that the kernel writes. */
static bool find_array(MlirOperation op, open_access_t *out) {
  intptr_t first;
  if (!tw_stores_to_array(op) && !tw_op_loads(op) && !tw_is_async_copy(op))
    return false;
  MlirValue array = tw_access_array(op, &first);
  tw_layout_t layout;
  *out = (open_access_t){tw_stores_to_array(op) ? WRITE : READ, ARRAYS, INT64_MAX, NULL, tw_null_op()};
  if (mlirValueIsABlockArgument(array)) {
    out->from += mlirBlockArgumentGetArgNumber(array);
    out->to = out->from + 1;
    out->op = op;
  }
  bool tile = tw_op_loads_tile(op) || tw_op_stores_tile(op) || tw_op_stores_by_engine(op);
  if (tile && !tw_has_attr(op, "order") && !tw_has_attr(op, TW_REALIGNED) && tw_is_tile(type_moved(op)) &&
      tw_layout_of_type(type_moved(op), &layout) && tw_layout_is_injective(&layout))
    out->owner = type_moved(op).ptr;
  return is_written(array) || out->op.ptr;
}

static bool of_one_owner(const open_access_t *x, const open_access_t *y) { return x->owner && x->owner == y->owner; }

/* Two stores to elements that lie between each other's (index_facts.h). */
static bool are_pair(MlirOperation earlier, MlirOperation op) {
  bool is_odd;
  return !mlirOperationIsNull(earlier) && !mlirOperationIsNull(op) && tw_op_scatters(op) &&
         mlirOperationEqual(tw_scatter_pair(op, &is_odd), earlier);
}

/* Whether a thread may find by an access what another thread does by an earlier one. Of an array that is read to add a
 * product to it, and may be the one that is written, it is taken to be so: a meeting costs such kernels little. */
static bool may_touch(const open_access_t *earlier, const open_access_t *access) {
  intptr_t first;
  if (earlier->from < access->to && access->from < earlier->to)
    return !of_one_owner(earlier, access) && !are_pair(earlier->op, access->op);
  if (mlirOperationIsNull(earlier->op) || mlirOperationIsNull(access->op))
    return false;
  MlirValue a = tw_access_array(earlier->op, &first), b = tw_access_array(access->op, &first);
  if (of_one_owner(earlier, access) && tw_assume_disjoint_or_same(a, b))
    return false;
  bool in_place = tw_op_stores_by_engine(access->op) && tw_reads_before(earlier->op, access->op, tw_null_op());
  return in_place || !tw_assume_disjoint(a, b);
}

static void visit_array(state_t *s, MlirOperation op, open_access_t access) {
  bool meets = false;
  for (int i = 0; i < s->count; i++) {
    const open_access_t *a = &s->open[i];
    meets = meets || (a->kind != COPY && (a->kind == WRITE || access.kind == WRITE) && may_touch(a, &access));
  }
  if (meets) {
    put_barrier_before(op);
    meet(s);
  }
  if (tw_is_async_copy(op)) /* what is written to other arrays behind it has been looked at where copies are moved */
    access.op = tw_null_op();
  if (!tw_op_stores_by_engine(op)) /* nothing reads behind it what it writes */
    note(s, access);
}

/* ---- the walk -------------------------------------------------------------------------------------- */

static void visit_block(state_t *s, MlirBlock block);

static void visit_region(state_t *s, MlirOperation op, int region) {
  MlirBlock block = tw_region_block(op, region);
  if (!mlirBlockIsNull(block))
    visit_block(s, block);
}

static void visit_loop(state_t *s, MlirOperation op) {
  state_t before = *s;
  for (int pass = 0; pass < 2; pass++) {
    for (int r = 0; r < (int)mlirOperationGetNumRegions(op); r++)
      visit_region(s, op, r);
    if (tw_has_attr(op, TW_PERSISTENT))
      leave_arrays(s);
    unite(s, &before);
  }
}

static void visit_branch(state_t *s, MlirOperation op) {
  state_t before = *s, after = {.ok = s->ok, .crowded = s->crowded};
  if (tw_is_roles(op)) { /* the producer has no one to meet; its barriers count */
    visit_region(s, op, 1);
    return;
  }
  for (int r = 0; r < (int)mlirOperationGetNumRegions(op); r++) {
    *s = before;
    visit_region(s, op, r);
    unite(&after, s);
  }
  *s = after;
}

static void visit_scratch(state_t *s, MlirOperation op, int64_t bytes) {
  int64_t from = tw_scratch_offset(op);
  check_products(s, op, op.ptr, from, from + bytes);
  settle(s, op, true, from, from + bytes);
  meet(s); /* the barrier inside of the op */
  note(s, (open_access_t){READ, from, from + bytes, op.ptr, tw_null_op()});
}

/* The stages that a product reads until it was waited for; what writes them is ordered by the pass
 * that made it. */
static void visit_async_mma(state_t *s, MlirOperation op) {
  for (int i = 0; i < s->num_products; i++)
    s->products[i].later++;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    open_access_t access = {READ, 0, 0, NULL, tw_null_op()};
    MlirValue operand = mlirOperationGetOperand(op, i);
    if (!tw_type_is_buffer(mlirValueGetType(operand)) || !buffer_range(operand, &access))
      continue;
    if (conflicts(s, false, false, access.from, access.to))
      settle(s, op, false, access.from, access.to);
    note(s, access);
    note_product(s, (under_way_t){access, 0});
  }
}

static bool meets_at(MlirOperation op) { return !mlirOperationIsNull(op) && tw_is_barrier(op); }

static MlirOperation op_before(MlirOperation op) {
  MlirOperation before = mlirBlockGetFirstOperation(mlirOperationGetBlock(op));
  if (mlirOperationEqual(before, op))
    return tw_null_op();
  while (!mlirOperationEqual(mlirOperationGetNextInBlock(before), op))
    before = mlirOperationGetNextInBlock(before);
  return before;
}

/* The block of a role has no end to stand before. */
static void put_behind(MlirOperation op) {
  tw_builder_t at = tw_build_at_end(mlirOperationGetBlock(op), mlirOperationGetLocation(op));
  at.before = mlirOperationGetNextInBlock(op);
  tw_build_barrier(&at, TW_ORDERS_ANYTHING);
}

/* What all threads of the block did is there before one of them releases, and none goes on before one has acquired:
 * with scratch, there is a barrier inside of the op. */
static void visit_ordered(state_t *s, MlirOperation op, int64_t bytes) {
  MlirOperation next = mlirOperationGetNextInBlock(op);
  if (tw_releases(op)) {
    if (!meets_at(op_before(op)))
      put_barrier_before(op);
    meet(s);
  }
  if (tw_acquires(op) && bytes == 0 && !meets_at(next))
    put_behind(op);
}

static bool touches_memory(MlirOperation op) {
  return !tw_op_is(op, TW_TILE_MAP) && tw_op_has(op, TW_READS_ARRAY | TW_WRITES_ARRAY | TW_ORDERS_ALL);
}

/* All threads meet right before the op and right behind it. */
static void meet_around(state_t *s, MlirOperation op) {
  if (!meets_at(op_before(op)))
    put_barrier_before(op);
  meet(s);
  if (!meets_at(mlirOperationGetNextInBlock(op)))
    put_behind(op);
}

/* The body is a thread's code, in which nobody can meet: threads meet before it and behind it, if it touches memory. */
static void visit_map(state_t *s, MlirOperation op) {
  if (tw_has_op_like(op, touches_memory))
    meet_around(s, op);
}

/* Threads do as they like in it, and meet where the body says; its shared arrays may lie where others lay. */
static void visit_threads(state_t *s, MlirOperation op) {
  int64_t from = tw_scratch_offset(op), bytes = tw_scratch_bytes(op);
  check_products(s, op, op.ptr, from, from + bytes);
  settle(s, op, true, 0, ARRAYS); /* copies arrive */
  meet_around(s, op);
}

static bool touches_buffer(MlirOperation op) {
  return tw_is_async_copy(op) || tw_op_loads_buffer(op) || tw_op_stores_buffer(op) || tw_op_stores_by_engine(op);
}

static void visit_copy(state_t *s, MlirOperation op, open_access_t access) {
  access.kind = COPY;
  check_products(s, op, access.owner, access.from, access.to);
  if (bytes_changed_hands(s, &access)) {
    put_barrier_before(op);
    meet(s);
  }
  note(s, access);
}

static void visit_read(state_t *s, MlirOperation op, open_access_t access) {
  if (conflicts(s, false, false, access.from, access.to))
    settle(s, op, false, access.from, access.to);
  note(s, access);
}

/* A store by an engine orders with its own reads what threads write to the buffer. */
static void visit_write(state_t *s, MlirOperation op, open_access_t access) {
  access.kind = WRITE;
  check_products(s, op, access.owner, access.from, access.to);
  if (!tw_op_stores_by_engine(op) || bytes_changed_hands(s, &access))
    settle(s, op, true, access.from, access.to);
  note(s, access);
}

static void visit(state_t *s, MlirOperation op) {
  open_access_t access = {READ, 0, 0, NULL, tw_null_op()};
  if (tw_op_is(op, TW_TILE_MAP) || tw_op_is(op, TW_TILE_THREADS)) {
    (tw_op_is(op, TW_TILE_MAP) ? visit_map : visit_threads)(s, op);
    return;
  }
  int64_t bytes = tw_has_attr(op, "tile.scratch") ? tw_scratch_bytes(op) : 0;
  if (tw_op_is(op, TW_TILE_ATOMIC))
    visit_ordered(s, op, bytes);
  bool stores_row = bytes > 0 && tw_op_stores_tile(op); /* behind the barrier inside of it */
  if (stores_row)
    visit_scratch(s, op, bytes);
  if (find_array(op, &access))
    visit_array(s, op, access);
  if (tw_op_is(op, TW_SCF_FOR) || tw_op_is(op, TW_SCF_WHILE)) {
    visit_loop(s, op);
  } else if (mlirOperationGetNumRegions(op) > 0) {
    visit_branch(s, op);
  } else if (tw_is_barrier(op)) {
    meet(s);
  } else if (tw_op_is(op, TW_TILE_ASYNC_WAIT)) {
    if (tw_attr_int(op, "pending", 0) == 0)
      wait_for_copies(s);
  } else if (bytes > 0 && !stores_row) {
    visit_scratch(s, op, bytes);
  } else if (tw_op_is_async_product(op)) {
    visit_async_mma(s, op);
  } else if (tw_op_waits_for_products(op)) {
    wait_for_products(s, tw_attr_int(op, "pending", 0));
  } else if (touches_buffer(op) && find_buffer(op, &access)) {
    (tw_is_async_copy(op) ? visit_copy : tw_op_loads_buffer(op) ? visit_read : visit_write)(s, op, access);
  }
}

static void visit_block(state_t *s, MlirBlock block) {
  TW_EACH_OP(op, block)
    visit(s, op);
}

/* Where a group of warps has its turn, another waits for it: if they were to meet there, none would go on. */
static MlirWalkResult check_turn(MlirOperation op, void *user) {
  if (!tw_op_is(op, TW_TILE_ORDERED_WAIT) || !tw_has_attr(op, TW_GROUPS))
    return MlirWalkResultAdvance;
  for (op = mlirOperationGetNextInBlock(op); !mlirOperationIsNull(op) && !tw_op_is(op, TW_TILE_ORDERED_ARRIVE);
       op = mlirOperationGetNextInBlock(op))
    if (tw_is_barrier(op) || tw_scratch_bytes(op) > 0) {
      *(bool *)user = false;
      tw_op_error(op, "has threads meet while one of two warpgroups waits for its turn");
      return MlirWalkResultInterrupt;
    }
  return MlirWalkResultAdvance;
}

bool tw_run_insert_barriers(MlirOperation function) {
  bool ok = true, crowded = false;
  state_t state = {.ok = &ok, .crowded = &crowded};
  tw_race_check(function);
  if (tw_has_attr(function, "tile.kernel") && !tw_has_attr(function, "tile.simt"))
    visit_region(&state, function, 0);
  if (crowded)
    tw_op_remark(function, "may have a barrier too many: it has more than %d accesses between two", MAX_OPEN);
  mlirOperationWalk(function, check_turn, &ok, MlirWalkPreOrder);
  return ok;
}
