/* allocate_shared.c - tile-allocate-shared: where everything in shared memory lies
 *
 * Before:  %a = tile.alloc_shared : !tile.buffer<3x128x64xbf16, #s>
 *          %c = tile.convert_layout %x (through shared memory)
 * After:   %a = tile.alloc_shared at 0 : ...
 *          %c = tile.convert_layout %x {tile.scratch = 49152 : i32}
 *          and in the launch record, shared_bytes: what the launcher has to ask for.
 *
 * Two things may share bytes when one is dead before the other begins. A buffer lives from its first
 * use to its last, where a use inside of a loop (or branch) that does not hold all uses counts as the
 * whole loop; what an op needs for itself lives while that op runs. A product reads on while the ops behind it run:
 * its buffers live until it was waited for.
 *
 *   %d = tile.async_mma %a, %b[%0], %acc
 *   %c = tile.convert_layout %x            // not in the bytes of %b
 *   %w = tile.mma_wait %d, 0             // the last use of %b
 *
 * All readers of shared memory end with a barrier before they give their bytes up, so nothing needs to be added where
 * bytes change hands.
 *
 * Consumers in consumer_groups (tile.roles) run at different places, so what their ops need for themselves shares bytes
 * with no buffer. It lies behind the buffers, once for each consumer group: the kernel gets tile.group_scratch_bytes,
 * from one consumer group's to the next.
 *
 * A shared array of a SIMT kernel (tile.shared_array) lives until the first barrier of the function's own block behind
 * its last use there: before it, a thread may be behind in what another one has done with.
 *
 * Barriers (tile.alloc_barriers) live as long as the kernel, 8 bytes each, after everything else; so do numbers that
 * they pass on. */
#include "base/memory.h"
#include "dialect/layouts.h"
#include "lowering/gpu/facts/buffer.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/facts/roles.h"
#include "lowering/gpu/facts/scratch.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/launch_record.h"
#include "lowering/passes.h"
#include "tilewright/dialect.h"

#include <limits.h>
#include <stdio.h>

enum { ALIGNMENT = 1024, SMALL_SCRATCH = 1024, ARRAY_ALIGNMENT = 16 }; /* the widest swizzle repeats every 1024 bytes */

typedef struct {
  MlirOperation op;
  int64_t bytes, offset, align;
  int first, last; /* positions in the order of the program */
  bool scratch;
  bool apart; /* lies behind all that does not, once for each consumer group */
} free_piece_t;

/* ---- positions --------------------------------------------------------------------------------- */

/* Numbers the ops: an op's number is that of its first, its end that of the last op inside of it.
 * They are kept in a table sorted by address of the op. */
typedef struct {
  const void *op;
  int begin, end;
} byte_span_t;

typedef struct {
  byte_span_t *spans;
  size_t num, capacity;
} spans_t;

static size_t add_span(spans_t *s, MlirOperation op) {
  if (s->num == s->capacity) {
    s->capacity = s->capacity ? 2 * s->capacity : 256;
    s->spans = tw_must(realloc(s->spans, s->capacity * sizeof *s->spans));
  }
  s->spans[s->num] = (byte_span_t){op.ptr, (int)s->num, (int)s->num};
  return s->num++;
}

static void number_ops(spans_t *s, MlirOperation op) {
  size_t at = add_span(s, op);
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    for (MlirBlock b = tw_region_block(op, r); !mlirBlockIsNull(b); b = mlirBlockGetNextInRegion(b))
      TW_EACH_OP(o, b)
        number_ops(s, o);
  s->spans[at].end = (int)s->num - 1;
}

static int by_address(const void *x, const void *y) {
  const byte_span_t *a = x, *b = y;
  return a->op < b->op ? -1 : a->op > b->op;
}

static byte_span_t span_of(const spans_t *s, MlirOperation op) {
  byte_span_t key = {op.ptr, 0, 0};
  const byte_span_t *found = bsearch(&key, s->spans, s->num, sizeof *s->spans, by_address);
  return found ? *found : key;
}

/* ---- lifetimes --------------------------------------------------------------------------------- */

static bool holds(const spans_t *s, MlirOperation outer, int first, int last) {
  byte_span_t span = span_of(s, outer);
  return span.begin <= first && last <= span.end;
}

/* A use that finds what an earlier iteration left is as if the loop around held it all along. */
static MlirOperation with_loop(MlirOperation use, bool first) {
  MlirOperation parent = mlirOperationGetParentOperation(use);
  bool loop = tw_op_is(parent, TW_SCF_FOR) || tw_op_is(parent, TW_SCF_WHILE);
  return first && loop && tw_op_loads_buffer(use) ? parent : use;
}

/* The op after which a use is over: itself, or the wait for a product. Products are done in the order in which they
 * were started, so a wait that leaves `pending` of them under way waits for one with as many behind it. What is inside
 * of other ops may not run, and is not counted; where a block ends without a wait, what comes behind it has one. */
static MlirOperation end_of_use(MlirOperation use) {
  MlirOperation at = use;
  int64_t later = 0;
  while (tw_op_is_async_product(use)) {
    MlirOperation next = mlirOperationGetNextInBlock(at);
    MlirOperation parent = mlirOperationGetParentOperation(at);
    if (mlirOperationIsNull(next) && tw_op_is(parent, TW_FUNC_FUNC))
      break;
    at = mlirOperationIsNull(next) ? parent : next;
    later += !mlirOperationIsNull(next) && tw_op_is_async_product(at);
    if (tw_op_waits_for_products(at) && tw_attr_int(at, "pending", 0) <= later)
      break;
  }
  return at;
}

/* Widens the piece's range by an op, or by the child of the innermost op that holds all of it from first to last. */
static void widen(const spans_t *s, free_piece_t *piece, MlirOperation op, int first, int last) {
  for (MlirOperation up = mlirOperationGetParentOperation(op); !mlirOperationIsNull(up) && !holds(s, up, first, last);
       up = mlirOperationGetParentOperation(up))
    op = up;
  byte_span_t span = span_of(s, op);
  piece->first = span.begin < piece->first ? span.begin : piece->first;
  piece->last = span.end > piece->last ? span.end : piece->last;
}

/* From the first use to the end of the last. */
static void live_range(const spans_t *s, MlirOperation alloc, free_piece_t *piece) {
  int first = -1, last = -1;
  MlirValue buffer = mlirOperationGetResult(alloc, 0);
  TW_EACH_USE(use, buffer) {
    int begin = span_of(s, mlirOpOperandGetOwner(use)).begin;
    int end = span_of(s, end_of_use(mlirOpOperandGetOwner(use))).begin;
    first = first < 0 || begin < first ? begin : first;
    last = end > last ? end : last;
  }
  piece->first = first;
  piece->last = last;
  TW_EACH_USE(use, buffer) {
    MlirOperation op = mlirOpOperandGetOwner(use);
    widen(s, piece, with_loop(op, span_of(s, op).begin == first), first, last);
    widen(s, piece, end_of_use(op), first, last);
  }
}

/* ---- arrays of threads --------------------------------------------------------------------------- */

/* The op of the function's block that holds a use. */
static MlirOperation outermost(MlirOperation op) {
  MlirOperation up = mlirOperationGetParentOperation(op);
  while (!tw_op_is(up, TW_FUNC_FUNC)) {
    op = up;
    up = mlirOperationGetParentOperation(op);
  }
  return op;
}

/* From the first to the last op of the function's block that holds a use of the array, or of an array made of it. */
static void widen_by_uses(const spans_t *s, free_piece_t *piece, MlirValue array) {
  TW_EACH_USE(use, array) {
    MlirOperation op = mlirOpOperandGetOwner(use);
    byte_span_t span = span_of(s, outermost(op));
    piece->first = span.begin < piece->first ? span.begin : piece->first;
    piece->last = span.end > piece->last ? span.end : piece->last;
    for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
      if (mlirTypeIsAMemRef(mlirValueGetType(mlirOperationGetResult(op, i))))
        widen_by_uses(s, piece, mlirOperationGetResult(op, i));
  }
}

static void live_between_barriers(const spans_t *s, MlirOperation array, free_piece_t *piece) {
  piece->first = INT_MAX;
  piece->last = -1;
  widen_by_uses(s, piece, mlirOperationGetResult(array, 0));
  MlirOperation op = outermost(array);
  while (!mlirOperationIsNull(op) && !(tw_op_has(op, TW_MEETS_BLOCK) && span_of(s, op).begin > piece->last))
    op = mlirOperationGetNextInBlock(op);
  piece->last = mlirOperationIsNull(op) ? INT_MAX : span_of(s, op).begin - 1;
}

static int64_t array_bytes(MlirType type) { return tw_count(type) * tw_memory_bytes(tw_element(type)); }

static int64_t bytes_of(MlirOperation op) {
  if (tw_op_is(op, TW_TILE_SHARED_ARRAY))
    return array_bytes(mlirValueGetType(mlirOperationGetResult(op, 0)));
  return tw_makes_buffer(op) ? tw_buffer_bytes(mlirValueGetType(mlirOperationGetResult(op, 0))) : tw_scratch_bytes(op);
}

/* ---- placement --------------------------------------------------------------------------------- */

typedef struct {
  const spans_t *spans;
  free_piece_t *pieces;
  size_t num, capacity;
  int consumer_groups;
} span_list_t;

static MlirWalkResult collect(MlirOperation op, void *user) {
  span_list_t *list = user;
  bool array = tw_op_is(op, TW_TILE_SHARED_ARRAY), alloc = array || tw_makes_buffer(op);
  int64_t bytes = bytes_of(op), align = array ? tw_attr_int(op, "align", ARRAY_ALIGNMENT) : ALIGNMENT;
  if (bytes <= 0)
    return MlirWalkResultAdvance;
  if (list->num == list->capacity) {
    list->capacity = list->capacity ? 2 * list->capacity : 16;
    list->pieces = tw_must(realloc(list->pieces, list->capacity * sizeof *list->pieces));
  }
  free_piece_t *piece = &list->pieces[list->num++];
  *piece = (free_piece_t){.op = op,
                          .bytes = array ? bytes : (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT,
                          .align = align < ARRAY_ALIGNMENT ? ARRAY_ALIGNMENT : align,
                          .scratch = !alloc,
                          .apart = !alloc && list->consumer_groups > 1};
  byte_span_t span = span_of(list->spans, op);
  piece->first = span.begin;
  piece->last = span.end; /* of what is in its body, too */
  if (array) {
    live_between_barriers(list->spans, op, piece);
  } else if (alloc) {
    live_range(list->spans, op, piece);
  } else if (bytes <= SMALL_SCRATCH || tw_has_attr(op, TW_ACROSS)) {
    /* Bytes of its own save a barrier before the op; and other blocks write when they like. */
    piece->first = 0;
    piece->last = INT_MAX;
  }
  return MlirWalkResultAdvance;
}

static bool meet(const free_piece_t *a, const free_piece_t *b) { return a->first <= b->last && b->first <= a->last; }

/* The lowest offset from `first` on at which no piece placed before, alive at the same time, lies. */
static void place(free_piece_t *pieces, size_t i, int64_t first) {
  pieces[i].offset = first;
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t j = 0; j < i; j++)
      if (meet(&pieces[i], &pieces[j]) && pieces[i].offset < pieces[j].offset + pieces[j].bytes &&
          pieces[j].offset < pieces[i].offset + pieces[i].bytes) {
        int64_t end = pieces[j].offset + pieces[j].bytes;
        pieces[i].offset = (end + pieces[i].align - 1) / pieces[i].align * pieces[i].align;
        moved = true;
      }
  }
}

/* Those apart last; large pieces first; then by position, so that the result does not depend on addresses. */
static int by_size(const void *x, const void *y) {
  const free_piece_t *a = x, *b = y;
  if (a->apart != b->apart)
    return a->apart ? 1 : -1;
  if (a->bytes != b->bytes)
    return a->bytes < b->bytes ? 1 : -1;
  return a->first < b->first ? -1 : a->first > b->first;
}

/* ---- barriers ---------------------------------------------------------------------------------- */

static MlirWalkResult place_barriers(MlirOperation op, void *user) {
  enum { BARRIER_BYTES = 8 };
  int64_t *end = user;
  if (!tw_op_is(op, TW_TILE_ALLOC_BARRIERS))
    return MlirWalkResultAdvance;
  tw_set_int(op, "offset", tw_i32(mlirOperationGetContext(op)), *end);
  *end += (1 + tw_has_attr(op, "numbers")) * BARRIER_BYTES *
          tw_barriers_type_count(mlirValueGetType(mlirOperationGetResult(op, 0)));
  return MlirWalkResultAdvance;
}

/* ---- too much ---------------------------------------------------------------------------------- */

/* Names the largest piece, at its place in the program: it is what a user can make smaller. */
static void report(const free_piece_t *largest, int64_t bytes, const tw_gpu_target_t *target) {
  char tile[160];
  MlirOperation op = largest->op;
  if (tw_op_is(op, TW_TILE_SHARED_ARRAY)) {
    tw_op_error(op,
                "takes %lld bytes of shared memory, the kernel's arrays %lld at once; a block of %s has %d: make them "
                "smaller, or put a barrier between the uses of two",
                (long long)largest->bytes, (long long)bytes, target->name, target->shared_bytes);
    return;
  }
  tw_describe_tile(mlirValueGetType(largest->scratch ? mlirOperationGetOperand(op, 0) : mlirOperationGetResult(op, 0)),
                   sizeof tile, tile);
  tw_op_does_not_fit(op, TW_SHARED_MEMORY,
                     "needs %lld bytes of shared memory for a tile of %s, the kernel %lld; a block of %s has %d: "
                     "use smaller tiles or fewer stages",
                     (long long)largest->bytes, tile, (long long)bytes, target->name, target->shared_bytes);
}

/* Gives all pieces their places; the bytes up to the end of the last. */
static int64_t place_all(MlirOperation func, span_list_t *list) {
  MlirType i32 = tw_i32(mlirOperationGetContext(func));
  int64_t total = 0, shared = 0; /* shared: by all consumer groups */
  for (size_t i = 0; i < list->num; i++) {
    free_piece_t *piece = &list->pieces[i];
    place(list->pieces, i, piece->apart ? shared : 0);
    total = piece->offset + piece->bytes > total ? piece->offset + piece->bytes : total;
    shared = piece->apart ? shared : total;
    tw_set_int(piece->op, piece->scratch ? "tile.scratch" : "offset", i32, piece->offset);
  }
  if (list->consumer_groups > 1)
    tw_set_int(func, "tile.group_scratch_bytes", i32, total - shared);
  return shared + (total - shared) * list->consumer_groups;
}

/* The bytes that the function needs, or -1 after an error where a block has not so many. */
static int64_t allocate(MlirOperation func, const tw_gpu_target_t *target) {
  spans_t spans = {0};
  number_ops(&spans, func);
  qsort(spans.spans, spans.num, sizeof *spans.spans, by_address);
  span_list_t list = {.spans = &spans, .consumer_groups = tw_consumer_groups_of(func)};
  mlirOperationWalk(func, collect, &list, MlirWalkPreOrder);
  if (list.num)
    qsort(list.pieces, list.num, sizeof *list.pieces, by_size);
  int64_t total = place_all(func, &list);
  mlirOperationWalk(func, place_barriers, &total, MlirWalkPreOrder);
  if (total > target->shared_bytes && list.num)
    report(&list.pieces[0], total, target);
  free(list.pieces);
  free(spans.spans);
  return total > target->shared_bytes ? -1 : total;
}

bool tw_run_allocate_shared(MlirOperation module) {
  tw_gpu_target_t target = tw_gpu_target_of(module);
  MlirBlock body = tw_region_block(module, 0);
  TW_EACH_OP(op, body) {
    int64_t bytes = tw_op_is(op, TW_FUNC_FUNC) ? allocate(op, &target) : 0;
    if (bytes < 0)
      return false;
    if (bytes > 0 || tw_has_attr(op, "tile.kernel"))
      tw_launch_set_shared_bytes(op, (uint32_t)bytes);
  }
  return true;
}
