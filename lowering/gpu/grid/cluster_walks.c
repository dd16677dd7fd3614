/* cluster_walks.c - tile-resize-tiles: the blocks of a cluster share the iterations of loops that walk along a row
 *
 * Before, a row in chunks, which is read again behind a reduction:
 *
 *   %row = tile.block_id 0
 *   %t = scf.for %j = 0 to %n step 1 iter_args(%sum = 0) {
 *     %x = tile.load %X[%row, %j]
 *     yield %sum + %x
 *   }
 *   %s = tile.reduce add, %t axis 0
 *   scf.for %j = 0 to %n step 1 {
 *     %x = tile.load %X[%row, %j]
 *     tile.store ..., %Y[%row, %j]
 *   }
 *
 * After, by two blocks, as cluster_rows.c has it of rows that are one tile:
 *
 *   %b = tile.block_id 0 ; %row = %b / 2 ; %part = %b % 2      // of twice as many blocks
 *   %some = ceil((%n - %part) / 2)
 *   %t = scf.for %i = 0 to %some step 1 iter_args(%sum = 0) {
 *     %x = tile.load %X[%row, %i * 2 + %part]
 *     yield %sum + %x
 *   }
 *   %s = tile.reduce add, %t axis 0 {tile.across = 2 : i32}
 *   scf.for %i = 0 to %some step 1 { (likewise) }
 *
 * Why: the tiles of a row that is longer than the share of a block are loaded anew by each walk (cache_tiles.c), and
 * few blocks fit on a multiprocessor. How long rows are is often known by a launch alone: then the record has the bytes
 * of a step and the product that says how many there are (row_share), and a launch with long rows takes a variant that
 * has the hint `num_ctas`.
 *
 * What must hold: what stands in no loop is done by each of the blocks, and the loops of the function have one bound.
 * What they carry is a sum, or greatest or least, of what iterations give, starts with what does not count, and is read
 * by such a reduction only. Each iteration stores other tiles than the others do, of arrays that are not read. */
#include "dialect/layouts.h"
#include "lowering/aliasing.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/facts/launch_factors.h"
#include "lowering/gpu/facts/same_tile.h"
#include "lowering/gpu/grid/resize_tiles.h"
#include "lowering/gpu/grid/slices.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"
#include "tilewright/dialect.h"

enum { BLOCKS = 3 /* on a multiprocessor */, MAX_PARTS = 8 /* blocks of a cluster, which any GPU has room for */ };
enum { MAX_RESULTS = 32 /* of a reduction */ };

typedef struct {
  MlirOperation func;
  tw_dims_t dims;
  tw_ops_t walks, reduces; /* owned */
} walker_t;

/* ---- what may be shared --------------------------------------------------------------------------- */

static MlirValue bound_of(MlirOperation walk) { return mlirOperationGetOperand(walk, 1); }

static bool is_int(MlirValue value, int64_t wanted) {
  int64_t known;
  return tw_known_int(value, &known) && known == wanted;
}

static bool counts_up(MlirOperation loop) {
  return tw_op_is(loop, TW_SCF_FOR) && is_int(mlirOperationGetOperand(loop, 0), 0) &&
         is_int(mlirOperationGetOperand(loop, 2), 1);
}

static bool same_bound(MlirOperation x, MlirOperation y) {
  int64_t known;
  return mlirValueEqual(bound_of(x), bound_of(y)) || (tw_known_int(bound_of(x), &known) && is_int(bound_of(y), known));
}

/* The loops of the function; false if one of them is no walk of the same length. */
static bool find_walks(walker_t *w) {
  TW_EACH_OP(op, tw_region_block(w->func, 0)) {
    if (mlirOperationGetNumRegions(op) == 0)
      continue;
    if (!counts_up(op) || (w->walks.count > 0 && !same_bound(op, w->walks.at[0])))
      return false;
    tw_ops_add(&w->walks, op);
  }
  return w->walks.count > 1;
}

/* Whether an op makes one of two numbers what a reduction of that kind makes of many. */
static bool combines(MlirOperation op, int64_t kind) {
  switch (tw_op_kind(op)) {
  case TW_ARITH_ADDF:
  case TW_ARITH_ADDI: return kind == TW_REDUCE_ADD;
  case TW_ARITH_MAXIMUMF:
  case TW_ARITH_MAXNUMF: return kind == TW_REDUCE_MAX;
  case TW_ARITH_MINIMUMF:
  case TW_ARITH_MINNUMF: return kind == TW_REDUCE_MIN;
  default: return false;
  }
}

/* Whether carried value `i` is made of what iterations give, which do not see it otherwise; through loops in the loop.
 */
static bool accumulates(MlirOperation loop, intptr_t i, int64_t kind) {
  MlirValue carried = tw_carried(loop, i), next = tw_carried_next(loop, i);
  MlirOperation user = tw_only_user(carried);
  if (mlirOperationIsNull(user) || !mlirBlockEqual(mlirOperationGetBlock(user), tw_loop_body(loop)) ||
      !mlirValueEqual(mlirOperationGetOperand(tw_loop_yield(loop), i), next) || !tw_has_one_use(next) ||
      !mlirOperationEqual(tw_def(next), user))
    return false;
  if (!tw_op_is(user, TW_SCF_FOR))
    return combines(user, kind);
  intptr_t position = mlirOpResultGetResultNumber(next);
  return mlirValueEqual(tw_carried_init(user, position), carried) && accumulates(user, position, kind);
}

/* Of several blocks, each starts with it. */
static bool counts_once(MlirValue init, int64_t kind) {
  double known;
  int64_t number;
  return kind != TW_REDUCE_ADD || (tw_known_float(init, &known) && known == 0) ||
         (tw_known_int(init, &number) && number == 0);
}

static bool can_cross(MlirOperation reduce) {
  MlirType tile = mlirValueGetType(mlirOperationGetOperand(reduce, 0)), element = tw_element(tile);
  int64_t kind = tw_attr_int(reduce, "kind", 0),
          results = tw_count(tile) / tw_extent(tile, tw_attr_int(reduce, "axis", 0));
  return (kind == TW_REDUCE_ADD || kind == TW_REDUCE_MAX || kind == TW_REDUCE_MIN) && results <= MAX_RESULTS &&
         (mlirTypeIsAFloat(element) || tw_bits(element) >= 32) &&
         tw_op_is(mlirOperationGetParentOperation(reduce), TW_FUNC_FUNC);
}

/* Whether what a walk carries is reduced across the blocks. Notes the reductions. */
static bool can_share_carried(walker_t *w, MlirOperation walk) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(walk); i++)
    TW_EACH_USE(use, mlirOperationGetResult(walk, i)) {
      MlirOperation reduce = mlirOpOperandGetOwner(use);
      int64_t kind = tw_op_is_reduction(reduce) ? tw_attr_int(reduce, "kind", 0) : -1;
      if (kind < 0 || !can_cross(reduce) || !accumulates(walk, i, kind) || !counts_once(tw_carried_init(walk, i), kind))
        return false;
      tw_ops_add(&w->reduces, reduce);
    }
  return true;
}

static MlirOperation walk_of(walker_t *w, MlirOperation op) { return tw_ancestor_in(op, tw_region_block(w->func, 0)); }

static bool is_in_walk(walker_t *w, MlirOperation op) { return !mlirOperationEqual(walk_of(w, op), op); }

static MlirValue array_of(MlirOperation access) {
  intptr_t first;
  return tw_access_array(access, &first);
}

/* Whether no block sees what another one stores. `rely`: for good, and the launcher is told. */
static bool are_apart(walker_t *w, bool rely) {
  bool (*apart)(MlirValue, MlirValue) = rely ? tw_assume_disjoint : tw_may_be_disjoint;
  for (int i = 0; i < w->dims.writes.count; i++) {
    MlirOperation store = w->dims.writes.at[i];
    if (is_in_walk(w, store) && !tw_moves_each_time(walk_of(w, store), store))
      return false;
    for (int r = 0; r < w->dims.reads.count; r++)
      if (!apart(array_of(w->dims.reads.at[r]), array_of(store)))
        return false;
    for (int other = 0; other < i; other++)
      if (!apart(array_of(w->dims.writes.at[other]), array_of(store)))
        return false;
  }
  return true;
}

static const char *why_not(walker_t *w) {
  if (w->dims.refused)
    return w->dims.refused;
  for (int i = 0; i < w->walks.count; i++)
    if (!can_share_carried(w, w->walks.at[i]))
      return "a loop carries what is no sum, greatest or least of tiles, or not reduced behind it";
  if (w->reduces.count == 0)
    return "no loop is reduced";
  return are_apart(w, false) ? NULL : "a block may read or write what another one writes";
}

/* ---- what it is good for --------------------------------------------------------------------------- */

/* Bytes that a step loads and a later walk loads again, and how many steps there are; `bytes` 0: none, or unknown. */
typedef struct {
  int64_t bytes;
  tw_factors_t steps;
} walked_t;

static bool read_steps(walker_t *w, MlirOperation load, tw_factors_t *out) {
  *out = tw_no_factors;
  for (MlirOperation loop = tw_enclosing_loop(load); !mlirOperationIsNull(loop); loop = tw_enclosing_loop(loop))
    if (!counts_up(loop) || !tw_read_factors(w->func, bound_of(loop), out))
      return false;
  return true;
}

static bool same_tiles(MlirOperation x, MlirOperation y) {
  return mlirValueEqual(array_of(x), array_of(y)) &&
         mlirTypeEqual(mlirValueGetType(tw_moved_tile(x)), mlirValueGetType(tw_moved_tile(y)));
}

static bool is_loaded_again(walker_t *w, MlirOperation load) {
  for (int i = 0; i < w->dims.reads.count; i++) {
    MlirOperation other = w->dims.reads.at[i];
    if (is_in_walk(w, other) && !mlirOperationEqual(walk_of(w, other), walk_of(w, load)) && same_tiles(load, other))
      return true;
  }
  return false;
}

/* Of the first walk. */
static walked_t find_walked(walker_t *w) {
  walked_t walked = {.steps = tw_no_factors};
  for (int i = 0; i < w->dims.reads.count; i++) {
    MlirOperation load = w->dims.reads.at[i];
    if (!mlirOperationEqual(walk_of(w, load), w->walks.at[0]) || !is_loaded_again(w, load))
      continue;
    MlirType type = mlirValueGetType(tw_moved_tile(load));
    if (walked.bytes == 0 && !read_steps(w, load, &walked.steps))
      break;
    walked.bytes += tw_count(type) * tw_memory_bits(tw_element(type)) / 8;
  }
  return walked;
}

/* How many blocks of a cluster have iterations. Of a loop around others, of which a row may have few, that is asked of
 * its constant bound. */
static int64_t most_parts(walker_t *w) {
  int64_t known, most = tw_hint_num_ctas(w->func, MAX_PARTS);
  bool nested = false;
  most = most < MAX_PARTS ? most : MAX_PARTS;
  if (tw_known_int(bound_of(w->walks.at[0]), &known))
    return known < most ? known : most;
  TW_EACH_OP(op, tw_loop_body(w->walks.at[0]))
    nested |= tw_op_is(op, TW_SCF_FOR);
  return nested ? 1 : most;
}

/* The fewest of which a multiprocessor has room for BLOCKS; 1: a whole row. `out_told` gets what a launch computes that
 * from, where the length of rows is not known and the program says nothing; else its `most` is 0. */
static int64_t choose_parts(walker_t *w, tw_row_share_t *out_told) {
  tw_gpu_target_t target = tw_gpu_target_of(w->func);
  walked_t walked = find_walked(w);
  int64_t parts = 1, most = most_parts(w), blocks = tw_hint_occupancy(w->func, BLOCKS);
  int64_t room = target.shared_bytes_sm / blocks - TW_SHARED_BYTES_OF_DRIVER;
  bool known = walked.steps.count == 0, told = !known && !tw_has_hint_num_ctas(w->func);
  *out_told = (tw_row_share_t){.bytes = walked.bytes, .room = room};
  if (walked.bytes == 0)
    return 1;
  if (told && most > 1 && tw_write_factors(&walked.steps, out_told->steps, &out_told->num_steps))
    out_told->most = most;
  while (!told && 2 * parts <= most && (!known || walked.bytes * walked.steps.constant > parts * room))
    parts *= 2;
  return parts;
}

/* ---- rewriting ------------------------------------------------------------------------------------- */

/* How many iterations a part has: of a number that is known and a multiple, a number. */
static MlirValue count_some(walker_t *w, MlirValue part, int64_t parts) {
  MlirValue bound = bound_of(w->walks.at[0]);
  MlirType type = mlirValueGetType(bound);
  tw_builder_t at = tw_build_before(w->walks.at[0]);
  int64_t known;
  if (tw_known_int(bound, &known) && known % parts == 0)
    return tw_const_int(&at, type, known / parts);
  return tw_binary(&at, "arith.ceildivsi", type, tw_binary(&at, "arith.subi", type, bound, part),
                   tw_const_int(&at, type, parts));
}

/* Iteration i is number i * parts + part of all. */
static void take_turns(MlirOperation walk, MlirValue some, MlirValue part, int64_t parts) {
  MlirValue iv = tw_loop_iv(walk);
  MlirType type = mlirValueGetType(iv);
  tw_builder_t at = tw_build_before(mlirBlockGetFirstOperation(tw_loop_body(walk)));
  MlirValue first = tw_binary(&at, "arith.muli", type, iv, tw_const_int(&at, type, parts));
  MlirOperation scaled = tw_def(first);
  mlirValueReplaceAllUsesExcept(iv, tw_binary(&at, "arith.addi", type, first, part), 1, &scaled);
  mlirOperationSetOperand(walk, 1, some);
}

static void rewrite(walker_t *w, int64_t parts) {
  MlirType i32 = tw_i32(mlirOperationGetContext(w->func));
  tw_tile_slice_t slice = {.class = -1 /* of no tile */, .axis = 0, .parts = parts};
  tw_apply_slices(&w->dims, &slice, 1);
  MlirValue some = count_some(w, slice.part, parts);
  for (int i = 0; i < w->walks.count; i++)
    take_turns(w->walks.at[i], some, slice.part, parts);
  for (int i = 0; i < w->reduces.count; i++)
    tw_set_int(w->reduces.at[i], TW_ACROSS, i32, parts);
  tw_launch_set_cluster_blocks(w->func, (uint32_t)parts);
}

/* ---- the pass -------------------------------------------------------------------------------------- */

static bool counts_in_i32(walker_t *w) {
  bool all = true;
  for (int i = 0; i < w->walks.count; i++)
    all &= mlirTypeEqual(mlirValueGetType(tw_loop_iv(w->walks.at[i])), tw_i32(mlirOperationGetContext(w->func)));
  return all;
}

static void share(walker_t *w) {
  tw_row_share_t told;
  int64_t parts = choose_parts(w, &told);
  if (parts == 1 && told.most == 0)
    return;
  const char *why = why_not(w);
  MlirOperation walk = w->walks.at[0];
  if (why == NULL && parts > 1 && !are_apart(w, true))
    why = "too many arrays";
  if (why != NULL) {
    tw_op_remark(walk, "walks along a row that one block has, however long it is: %s", why);
  } else if (parts > 1) {
    tw_op_remark(walk, "walks along a row that %lld blocks of a cluster share", (long long)parts);
    rewrite(w, parts);
  } else {
    tw_op_remark(walk, "walks along a row that blocks of a cluster share where it has more than %lld KB",
                 (long long)told.room / 1024);
    tw_launch_set_row_share(w->func, &told);
  }
}

bool tw_cluster_walks(MlirOperation func) {
  tw_gpu_target_t target = tw_gpu_target_of(func);
  if (!tw_is_of_tiles(func) || tw_has_op_like(func, tw_op_is_product) || !tw_gpu_has(&target, TW_GPU_CLUSTERS) ||
      tw_hint_slice_tiles(func, 0) > 1 || tw_hint_coarsen_tiles(func, 0) > 1 || tw_hint_num_ctas(func, 0) == 1 ||
      tw_launch_cluster_blocks(func, 0) > 1)
    return true;
  walker_t w = {.func = func};
  if (find_walks(&w) && counts_in_i32(&w)) {
    w.dims = tw_dims_of(func);
    share(&w);
    tw_dims_free(&w.dims);
  }
  tw_ops_free(&w.walks);
  tw_ops_free(&w.reduces);
  return true;
}
