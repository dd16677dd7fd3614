/* rings.c - the plan of tile-specialize-warps. See rings.h. */
#include "lowering/gpu/sm90/rings.h"
#include "lowering/gpu/access.h"
#include "lowering/gpu/disjoint.h"
#include "lowering/gpu/emitter.h"
#include "lowering/gpu/raster.h"
#include "lowering/gpu/sm80/mma.h"
#include "lowering/gpu/sm90/tma.h"
#include "lowering/gpu/sm90/wgmma.h"
#include "lowering/gpu/target.h"
#include "lowering/loops.h"
#include "tilewright/dialect.h"

enum { MAX_SLOTS = 8, PIECE = 1024 /* what tile-allocate-shared rounds to */ };

static bool refuse(tw_ring_plan_t *plan, MlirOperation op, const char *reason) {
  if (plan->reason == NULL) {
    plan->culprit = op;
    plan->reason = reason;
  }
  return false;
}

/* ---- structure --------------------------------------------------------------------------------- */

bool tw_is_inside(MlirOperation op, MlirOperation outer) {
  while (!mlirOperationIsNull(op) && !mlirOperationEqual(op, outer))
    op = mlirOperationGetParentOperation(op);
  return !mlirOperationIsNull(op);
}

/* In one block: x stands before y, or is y. */
static bool not_after(MlirOperation x, MlirOperation y) {
  return mlirOperationEqual(x, y) || mlirOperationIsBeforeInBlock(x, y);
}

static bool is_loop(MlirOperation op) { return tw_op_is(op, "scf.for") || tw_op_is(op, "scf.while"); }

bool tw_is_control(MlirOperation op) { return is_loop(op) || tw_op_is(op, "scf.if"); }

bool tw_is_of_store(MlirOperation op) { return tw_op_is(op, "tile.tma_store") || tw_op_is(op, "tile.tma_store_wait"); }

static int loops_around(MlirOperation op) {
  int depth = 0;
  for (op = mlirOperationGetParentOperation(op); !mlirOperationIsNull(op); op = mlirOperationGetParentOperation(op))
    depth += is_loop(op);
  return depth;
}

/* ---- copies and who reads them ------------------------------------------------------------------- */

static bool is_read(MlirOperation op) { return tw_op_is(op, "tile.local_load") || tw_op_is(op, "tile.wgmma"); }

/* Whether what `copy` brings may be what `op` finds: the copy stands before it in a block around. */
static bool may_reach(MlirOperation copy, MlirOperation op) {
  MlirOperation around = tw_ancestor_in(op, mlirOperationGetBlock(copy));
  return !mlirOperationIsNull(around) && !mlirOperationEqual(around, copy) &&
         mlirOperationIsBeforeInBlock(copy, around);
}

/* The last copy into the buffer before `op`; null if there is none. */
static MlirOperation reaching(MlirValue buffer, MlirOperation op) {
  MlirOperation last = tw_null_op();
  for (MlirOpOperand use = mlirValueGetFirstUse(buffer); !mlirOpOperandIsNull(use);
       use = mlirOpOperandGetNextUse(use)) {
    MlirOperation copy = mlirOpOperandGetOwner(use);
    if (tw_is_async_copy(copy) && may_reach(copy, op) && (mlirOperationIsNull(last) || may_reach(last, copy)))
      last = copy;
  }
  return last;
}

/* The first op of the copy's block that reads what it brings, or holds one that does. */
static MlirOperation first_reader(MlirOperation copy) {
  MlirOperation first = tw_null_op();
  MlirValue buffer = tw_copy_buffer(copy);
  for (MlirOpOperand use = mlirValueGetFirstUse(buffer); !mlirOpOperandIsNull(use);
       use = mlirOpOperandGetNextUse(use)) {
    MlirOperation op = mlirOpOperandGetOwner(use);
    if (!is_read(op) || !mlirOperationEqual(reaching(buffer, op), copy))
      continue;
    MlirOperation around = tw_ancestor_in(op, mlirOperationGetBlock(copy));
    if (mlirOperationIsNull(first) || mlirOperationIsBeforeInBlock(around, first))
      first = around;
  }
  return first;
}

int tw_fill_of(const tw_ring_plan_t *plan, MlirOperation copy) {
  for (int f = 0; f < plan->num_fills; f++)
    for (int c = 0; c < plan->fills[f].num_copies; c++)
      if (mlirOperationEqual(plan->fills[f].copies[c], copy))
        return f;
  return -1;
}

static bool fills_buffer(const tw_fill_t *fill, MlirValue buffer) {
  for (int c = 0; c < fill->num_copies; c++)
    if (mlirValueEqual(tw_copy_buffer(fill->copies[c]), buffer))
      return true;
  return false;
}

/* Whether a copy belongs to the fill before: nothing is read in between, and the same op reads both first. */
static bool joins(const tw_fill_t *fill, MlirOperation copy, MlirOperation reader) {
  return mlirBlockEqual(mlirOperationGetBlock(fill->copies[0]), mlirOperationGetBlock(copy)) &&
         fill->num_copies < TW_MAX_TOGETHER && !mlirOperationIsNull(reader) &&
         mlirOperationEqual(fill->reader, reader) && !fills_buffer(fill, tw_copy_buffer(copy)) &&
         mlirOperationIsBeforeInBlock(copy, fill->reader);
}

/* Whether there is a tensor map for a copy, perhaps one more. */
static bool has_map(tw_ring_plan_t *plan, const tw_tma_map_t *map) {
  for (int i = 0; i < plan->num_maps; i++)
    if (tw_tma_same_map(&plan->maps[i], map))
      return true;
  if (plan->num_maps == TW_TMA_MAX_LOADED)
    return false;
  plan->maps[plan->num_maps++] = *map;
  return true;
}

static const char *why_not_brought(tw_ring_plan_t *plan, MlirOperation op) {
  tw_tma_copy_t copy;
  const char *reason = tw_tma_plan(op, &copy);
  return reason || has_map(plan, &copy.map) ? reason : "it copies from too many arrays";
}

/* Few warps that compute would wait for as many that gather; these do better beside another block's. */
static const char *why_not_gathered(const tw_ring_plan_t *plan) {
  int64_t warps = tw_attr_int(tw_module_of(plan->func), "tile.num_warps", 0);
  return tw_gathers_beside(warps) ? NULL : "it gathers, for which fewer than eight warps that compute are too few";
}

static MlirWalkResult collect_copy(MlirOperation op, void *user) {
  tw_ring_plan_t *plan = user;
  if (!tw_is_async_copy(op))
    return MlirWalkResultAdvance;
  bool gathers = tw_op_is(op, "tile.async_gather");
  const char *reason = gathers ? why_not_gathered(plan) : why_not_brought(plan, op);
  if (reason) {
    refuse(plan, op, reason);
    return MlirWalkResultInterrupt;
  }
  MlirOperation reader = first_reader(op);
  if (mlirOperationIsNull(reader)) {
    refuse(plan, op, "no one reads what a copy brings");
    return MlirWalkResultInterrupt;
  }
  tw_fill_t *before = plan->num_fills ? &plan->fills[plan->num_fills - 1] : NULL;
  plan->gathers |= gathers;
  if (before && joins(before, op, reader)) {
    before->copies[before->num_copies++] = op;
    before->gathers |= gathers;
  } else if (plan->num_fills == TW_MAX_FILLS) {
    refuse(plan, op, "it copies at too many places");
    return MlirWalkResultInterrupt;
  } else {
    plan->fills[plan->num_fills++] = (tw_fill_t){.copies = {op}, .num_copies = 1, .reader = reader, .gathers = gathers};
  }
  return MlirWalkResultAdvance;
}

static MlirWalkResult collect_read(MlirOperation op, void *user) {
  tw_ring_plan_t *plan = user;
  for (intptr_t i = 0; is_read(op) && i < mlirOperationGetNumOperands(op); i++) {
    MlirValue buffer = mlirOperationGetOperand(op, i);
    if (!tw_type_is_buffer(mlirValueGetType(buffer)))
      continue;
    bool filled = false;
    for (int f = 0; f < plan->num_fills; f++)
      filled |= fills_buffer(&plan->fills[f], buffer);
    if (!filled)
      continue; /* written by other means */
    MlirOperation copy = reaching(buffer, op);
    if (mlirOperationIsNull(copy) || plan->num_reads == TW_MAX_READS) {
      refuse(plan, op, "it reads what a copy elsewhere brought");
      return MlirWalkResultInterrupt;
    }
    plan->reads[plan->num_reads++] = (tw_ring_read_t){op, i, tw_fill_of(plan, copy)};
  }
  return MlirWalkResultAdvance;
}

/* ---- products that run into the next iteration ------------------------------------------------------ */

/* Whether the product only adds to a value that the loop carries. */
static bool only_adds(MlirOperation loop, MlirOperation product, tw_overlap_t *out) {
  MlirBlock body = tw_loop_body(loop);
  MlirOperation wait = tw_only_user(mlirOperationGetResult(product, 0)), yield = mlirBlockGetTerminator(body);
  if (!tw_wgmma_may_run_on(product) || mlirOperationIsNull(wait) || !tw_op_is(wait, "tile.wgmma_wait") ||
      !mlirBlockEqual(mlirOperationGetBlock(wait), body))
    return false;
  MlirValue done = mlirOperationGetResult(wait, 0);
  MlirOperation user = tw_only_user(done);
  if (mlirOperationIsNull(user) || !mlirOperationEqual(user, yield))
    return false;
  intptr_t at = mlirOpOperandGetOperandNumber(mlirValueGetFirstUse(done));
  MlirValue acc = mlirOperationGetOperand(product, mlirOperationGetNumOperands(product) - 1);
  if (!mlirValueEqual(acc, tw_carried(loop, at)) || !tw_has_one_use(acc) || out->num_products == TW_MAX_PRODUCTS)
    return false;
  out->products[out->num_products] = product;
  out->waits[out->num_products] = wait;
  out->carried[out->num_products++] = at;
  return true;
}

typedef struct {
  tw_overlap_t overlap;
  bool bad; /* has products deeper in the loop */
} overlap_check_t;

static MlirWalkResult check_product(MlirOperation op, void *user) {
  overlap_check_t *check = user;
  tw_overlap_t *overlap = &check->overlap;
  if (!tw_op_is(op, "tile.wgmma"))
    return MlirWalkResultAdvance;
  check->bad |= !mlirBlockEqual(mlirOperationGetBlock(op), tw_loop_body(overlap->loop));
  if (check->bad)
    return MlirWalkResultInterrupt;
  if (only_adds(overlap->loop, op, overlap))
    overlap->all &= !tw_wgmma_reads_registers(op) &&
                    tw_is_zero(tw_carried_init(overlap->loop, overlap->carried[overlap->num_products - 1]));
  else
    overlap->all = false;
  return MlirWalkResultAdvance;
}

static bool runs_on(const tw_overlap_t *overlap, MlirOperation product) {
  for (int p = 0; p < overlap->num_products; p++)
    if (mlirOperationEqual(overlap->products[p], product))
      return true;
  return false;
}

static bool is_wait_of(const tw_overlap_t *overlap, MlirOperation wait) {
  for (int p = 0; p < overlap->num_products; p++)
    if (mlirOperationEqual(overlap->waits[p], wait))
      return true;
  return false;
}

/* The first wait at or behind `op` that is for a product which does not run on; null if there is none. */
static MlirOperation next_wait(const tw_overlap_t *overlap, MlirOperation op) {
  while (!mlirOperationIsNull(op) && (!tw_op_is(op, "tile.wgmma_wait") || is_wait_of(overlap, op)))
    op = mlirOperationGetNextInBlock(op);
  return op;
}

/* Whether what the product reads from registers is written when the one of the iteration before is done. */
static bool reads_behind(const tw_overlap_t *overlap, MlirOperation product) {
  if (!tw_wgmma_reads_registers(product))
    return true;
  tw_slice_t slice = {.block = tw_loop_body(overlap->loop)};
  tw_slice_add(&slice, mlirOperationGetOperand(product, 0));
  bool behind = false;
  for (MlirOperation wait = overlap->end; !behind && !mlirOperationIsNull(wait);
       wait = next_wait(overlap, mlirOperationGetNextInBlock(wait)))
    behind = tw_slice_has(&slice, wait);
  tw_slice_free(&slice);
  return behind;
}

static void remove_product(tw_overlap_t *overlap, int p) {
  overlap->num_products--;
  for (; p < overlap->num_products; p++) {
    overlap->products[p] = overlap->products[p + 1];
    overlap->waits[p] = overlap->waits[p + 1];
    overlap->carried[p] = overlap->carried[p + 1];
  }
}

/* Beside products that each iteration waits for: the first of their waits is behind all of the iteration before. */
static bool find_end(tw_overlap_t *overlap) {
  for (int p = 0; p < overlap->num_products;) {
    overlap->end = next_wait(overlap, mlirBlockGetFirstOperation(tw_loop_body(overlap->loop)));
    if (mlirOperationIsNull(overlap->end))
      return false;
    if (reads_behind(overlap, overlap->products[p])) {
      p++;
    } else {
      remove_product(overlap, p);
      p = 0; /* its wait may come first */
    }
  }
  return overlap->num_products > 0;
}

static int64_t words_of(MlirValue value) { return twg_register_words(mlirValueGetType(value)); }

/* Has the products that were started in front of the first wait, but are not what it waits for, start behind it. */
static void start_behind(const tw_overlap_t *overlap) {
  MlirOperation first = tw_def(mlirOperationGetOperand(overlap->end, 0));
  MlirOperation at = mlirOperationGetNextInBlock(overlap->end);
  for (MlirOperation op = mlirOperationGetNextInBlock(first), next; !mlirOperationEqual(op, overlap->end); op = next) {
    next = mlirOperationGetNextInBlock(op);
    if (tw_op_is(op, "tile.wgmma"))
      mlirOperationMoveBefore(op, at);
  }
}

/* Lets products run on beside others as far as registers suffice: for all accumulators and the operands that the ones
 * read which run on, and for computing with the widest tile. What need not be there before the first wait is made room
 * by starting behind it. */
static bool fits_registers(const tw_overlap_t *overlap) {
  enum { MOST = 232, MOST_AT_ONCE = 216, AT_A_TIME = 4 };
  int64_t words = 0, widest = 0;
  for (int p = 0; p < overlap->num_products; p++)
    words += words_of(mlirOperationGetOperand(overlap->products[p], 0));
  for (MlirOperation op = mlirBlockGetFirstOperation(tw_loop_body(overlap->loop)); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    if (!tw_op_is(op, "tile.wgmma"))
      continue;
    int64_t sums = words_of(mlirOperationGetResult(op, 0));
    words += sums;
    if (!runs_on(overlap, op))
      widest = sums > widest ? sums : widest;
  }
  if (words + widest / AT_A_TIME > MOST)
    return false;
  if (words > MOST_AT_ONCE)
    start_behind(overlap);
  return true;
}

static MlirWalkResult collect_overlap(MlirOperation op, void *user) {
  tw_ring_plan_t *plan = user;
  overlap_check_t check = {.overlap = {.loop = op, .all = true}};
  tw_overlap_t *overlap = &check.overlap;
  if (!tw_op_is(op, "scf.for") || plan->num_overlaps == TW_MAX_OVERLAPS)
    return MlirWalkResultAdvance;
  mlirOperationWalk(op, check_product, &check, MlirWalkPreOrder);
  if (check.bad || overlap->num_products == 0)
    return MlirWalkResultAdvance;
  if (overlap->all)
    overlap->end = overlap->waits[overlap->num_products - 1];
  if (overlap->all || (find_end(overlap) && fits_registers(overlap)))
    plan->overlaps[plan->num_overlaps++] = *overlap;
  return MlirWalkResultAdvance;
}

const tw_overlap_t *tw_overlap_of(const tw_ring_plan_t *plan, MlirOperation loop) {
  for (int i = 0; i < plan->num_overlaps; i++)
    if (mlirOperationEqual(plan->overlaps[i].loop, loop))
      return &plan->overlaps[i];
  return NULL;
}

bool tw_drops_wait(const tw_ring_plan_t *plan, MlirOperation wait) {
  const tw_overlap_t *overlap = tw_overlap_of(plan, mlirOperationGetParentOperation(wait));
  return overlap && is_wait_of(overlap, wait) && !mlirOperationEqual(wait, overlap->end);
}

int64_t tw_pending(const tw_ring_plan_t *plan, MlirOperation wait) {
  const tw_overlap_t *overlap = tw_overlap_of(plan, mlirOperationGetParentOperation(wait));
  if (!overlap)
    return tw_attr_int(wait, "pending", 0);
  if (overlap->all)
    return overlap->num_products;
  int64_t pending = 0;
  for (MlirOperation op = mlirOperationGetNextInBlock(tw_def(mlirOperationGetOperand(wait, 0)));
       !mlirOperationEqual(op, wait); op = mlirOperationGetNextInBlock(op))
    pending += tw_op_is(op, "tile.wgmma");
  return pending;
}

/* ---- where reads end ----------------------------------------------------------------------------- */

/* Counts products from `op` on until a wait covers those before; null if the block has no such wait. */
static MlirOperation covering_wait(const tw_ring_plan_t *plan, MlirOperation op, int64_t *issued) {
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (tw_op_is(op, "tile.wgmma"))
      ++*issued;
    else if (tw_op_is(op, "tile.wgmma_wait") && !tw_drops_wait(plan, op) && tw_pending(plan, op) <= *issued)
      return op;
  }
  return tw_null_op();
}

/* The op of `block` that ends what the product reads; `late`: in the next iteration. */
static MlirOperation product_end(const tw_ring_plan_t *plan, MlirOperation product, MlirBlock block, bool *late) {
  MlirOperation loop = mlirOperationGetParentOperation(product);
  const tw_overlap_t *overlap = tw_overlap_of(plan, loop);
  if (overlap && runs_on(overlap, product)) {
    *late = mlirBlockEqual(mlirOperationGetBlock(product), block);
    return *late ? overlap->end : tw_ancestor_in(loop, block);
  }
  int64_t issued = 0;
  for (MlirOperation op = product;; op = mlirOperationGetParentOperation(op)) {
    MlirOperation wait = covering_wait(plan, mlirOperationGetNextInBlock(op), &issued);
    if (!mlirOperationIsNull(wait) || mlirBlockEqual(mlirOperationGetBlock(op), block))
      return mlirOperationIsNull(wait) ? wait : tw_ancestor_in(wait, block);
  }
}

/* Ops among which lanes read one slot after the other. */
static bool is_among_reads(MlirOperation op) {
  static const char *const names[] = {"tile.local_load",   "tile.load",       "tile.gather",  "tile.async_copy",
                                      "tile.async_commit", "tile.async_wait", "tile.barrier", "tile.convert_layout"};
  return TW_OP_IS_ONE_OF(op, names) || (tw_is_arithmetic(op) && mlirOperationGetNumRegions(op) == 0);
}

/* The last of the reads by lanes that stand together: then one fence serves all slots that they read. */
static MlirOperation last_read(MlirOperation read) {
  MlirOperation last = read;
  for (MlirOperation op = read; !mlirOperationIsNull(op) && is_among_reads(op); op = mlirOperationGetNextInBlock(op))
    if (tw_op_is(op, "tile.local_load"))
      last = op;
  return last;
}

static bool find_ends(tw_ring_plan_t *plan) {
  for (int f = 0; f < plan->num_fills; f++)
    plan->fills[f].end = plan->fills[f].reader;
  for (int r = 0; r < plan->num_reads; r++) {
    tw_ring_read_t *read = &plan->reads[r];
    tw_fill_t *fill = &plan->fills[read->fill];
    MlirBlock block = mlirOperationGetBlock(fill->copies[0]);
    bool late = false;
    MlirOperation end =
        tw_op_is(read->op, "tile.wgmma") ? product_end(plan, read->op, block, &late) : tw_ancestor_in(read->op, block);
    if (mlirOperationIsNull(end))
      return refuse(plan, read->op, "no wait ends one of its products");
    fill->by_lanes |= !tw_op_is(read->op, "tile.wgmma");
    if (late == fill->late ? not_after(fill->end, end) : late) {
      fill->end = end;
      fill->late = late;
    }
  }
  for (int f = 0; f < plan->num_fills; f++)
    if (tw_op_is(plan->fills[f].end, "tile.local_load"))
      plan->fills[f].end = last_read(plan->fills[f].end);
  return true;
}

/* ---- rings --------------------------------------------------------------------------------------- */

/* The first and the last op of a block between which the content of a fill lives. */
typedef struct {
  MlirOperation first, last;
} span_t;

static span_t span_of(const tw_fill_t *fill) {
  MlirOperation loop = mlirOperationGetParentOperation(fill->copies[0]);
  return fill->late ? (span_t){loop, loop} : (span_t){fill->copies[0], fill->end};
}

static bool covers(span_t span, MlirOperation op) {
  MlirOperation around = tw_ancestor_in(op, mlirOperationGetBlock(span.first));
  return !mlirOperationIsNull(around) && not_after(span.first, around) && not_after(around, span.last);
}

static bool live_at_once(const tw_fill_t *x, const tw_fill_t *y) {
  span_t a = span_of(x), b = span_of(y);
  return covers(a, b.first) || covers(a, b.last) || covers(b, a.first) || covers(b, a.last);
}

static bool same_form(const tw_fill_t *x, const tw_fill_t *y) {
  if (x->num_copies != y->num_copies)
    return false;
  for (int c = 0; c < x->num_copies; c++)
    if (!mlirTypeEqual(mlirValueGetType(tw_copy_buffer(x->copies[c])),
                       mlirValueGetType(tw_copy_buffer(y->copies[c]))) ||
        !mlirStringRefEqual(tw_op_name(x->copies[c]), tw_op_name(y->copies[c])) ||
        tw_has_attr(x->copies[c], TW_MULTICAST) != tw_has_attr(y->copies[c], TW_MULTICAST))
      return false;
  return true;
}

/* Whether both bring tiles of the same arrays. */
static bool same_arrays(const tw_fill_t *x, const tw_fill_t *y) {
  bool same = x->num_copies == y->num_copies;
  for (int c = 0; same && c < x->num_copies; c++)
    same = mlirValueEqual(mlirOperationGetOperand(x->copies[c], 0), mlirOperationGetOperand(y->copies[c], 0));
  return same;
}

/* Whether the fill can go through a ring: of the same form, as deep in loops, and never full of something else; or, at
 * another depth, of the same arrays, as what a rotated loop leaves over. */
static bool can_share(const tw_ring_plan_t *plan, int ring, const tw_fill_t *fill, bool as_deep) {
  const tw_fill_t *first = &plan->fills[plan->rings[ring].first];
  if (!same_form(first, fill) || (as_deep ? plan->rings[ring].depth != loops_around(fill->copies[0])
                                          : plan->rings[ring].depth == 0 || !same_arrays(first, fill)))
    return false;
  for (int f = 0; f < plan->num_fills; f++)
    if (&plan->fills[f] != fill && plan->fills[f].ring == ring && live_at_once(&plan->fills[f], fill))
      return false;
  return true;
}

/* The ring that the fill can share; the number of rings if there is none. */
static int ring_for(const tw_ring_plan_t *plan, const tw_fill_t *fill) {
  int ring = 0;
  while (ring < plan->num_rings && !can_share(plan, ring, fill, true))
    ring++;
  if (ring == plan->num_rings)
    for (ring = 0; ring < plan->num_rings && !can_share(plan, ring, fill, false);)
      ring++;
  return ring;
}

static bool make_rings(tw_ring_plan_t *plan) {
  for (int f = 0; f < plan->num_fills; f++)
    plan->fills[f].ring = -1;
  for (int f = 0; f < plan->num_fills; f++) {
    tw_fill_t *fill = &plan->fills[f];
    int ring = ring_for(plan, fill);
    if (ring == plan->num_rings) {
      tw_ring_t *made = &plan->rings[plan->num_rings++];
      *made = (tw_ring_t){.first = f};
      for (int c = 0; c < fill->num_copies; c++)
        made->multicast |= tw_has_attr(fill->copies[c], TW_MULTICAST);
      for (int c = 0; c < fill->num_copies; c++)
        made->bytes += tw_slot_bytes(mlirValueGetType(tw_copy_buffer(fill->copies[c])));
    }
    fill->ring = ring;
    int depth = loops_around(fill->copies[0]);
    plan->rings[ring].depth = depth > plan->rings[ring].depth ? depth : plan->rings[ring].depth;
    plan->rings[ring].num_fills++;
    plan->rings[ring].late |= fill->late;
  }
  for (int f = 0; f < plan->num_fills; f++) /* a buffer belongs to one ring */
    for (int g = 0; g < f; g++)
      for (int c = 0; c < plan->fills[f].num_copies; c++)
        if (plan->fills[f].ring != plan->fills[g].ring &&
            fills_buffer(&plan->fills[g], tw_copy_buffer(plan->fills[f].copies[c])))
          return refuse(plan, plan->fills[f].copies[c], "it fills a buffer whose content is still read");
  return true;
}

bool tw_gathers_beside(int64_t warps) { return warps >= 2 * TW_GATHERING_WARPS; }

bool tw_comes_round(const tw_ring_t *ring) { return ring->depth > 0 || ring->num_fills > ring->slots; }

/* ---- how many slots ------------------------------------------------------------------------------ */

typedef struct {
  const tw_ring_plan_t *plan;
  int64_t buffers, small, scratch;
} beside_t;

static int64_t rounded(int64_t bytes) { return (bytes + PIECE - 1) / PIECE * PIECE; }

/* Whether an op runs while copies may be under way: none of the fills' outermost loops, and ops, is behind it. */
static bool runs_beside(const tw_ring_plan_t *plan, MlirOperation op) {
  MlirBlock entry = tw_region_block(plan->func, 0);
  for (int f = 0; f < plan->num_fills; f++) {
    MlirOperation last = tw_ancestor_in(plan->fills[f].end, entry);
    if (not_after(tw_ancestor_in(op, entry), last))
      return true;
  }
  return false;
}

static MlirWalkResult count_beside(MlirOperation op, void *user) {
  beside_t *beside = user;
  if (tw_op_is(op, "tile.alloc_shared")) {
    MlirValue buffer = mlirOperationGetResult(op, 0);
    for (int f = 0; f < beside->plan->num_fills; f++)
      if (fills_buffer(&beside->plan->fills[f], buffer))
        return MlirWalkResultAdvance;
    MlirType type = mlirValueGetType(buffer);
    beside->buffers += rounded(tw_buffer_bytes(type));
    return MlirWalkResultAdvance;
  }
  int64_t bytes = rounded(twg_scratch_bytes(op));
  if (bytes > PIECE && runs_beside(beside->plan, op))
    beside->scratch = bytes > beside->scratch ? bytes : beside->scratch;
  else if (bytes == PIECE)
    beside->small += bytes;
  return MlirWalkResultAdvance;
}

static int64_t ring_bytes(const tw_ring_plan_t *plan) {
  int64_t bytes = 0;
  for (int r = 0; r < plan->num_rings; r++)
    bytes += plan->rings[r].slots * plan->rings[r].bytes;
  return bytes;
}

/* Whether other tiles are brought more often, in a loop within the one that fills this ring. */
static bool is_around_others(const tw_ring_plan_t *plan, const tw_ring_t *ring) {
  for (int r = 0; r < plan->num_rings; r++)
    if (plan->rings[r].depth > ring->depth)
      return true;
  return false;
}

/* The fewest slots. What an outer loop brings is read until its iteration ends: a second slot is for bringing it ahead,
 * which is of use, but no more than to wait for it in a kernel of one block. */
static int slots_needed(const tw_ring_plan_t *plan, const tw_ring_t *ring) {
  return ring->depth == 0 || is_around_others(plan, ring) ? 1 : TW_MIN_SLOTS;
}

/* The most slots that a ring can use: one for each time it is filled. */
static int slots_wanted(const tw_ring_plan_t *plan, const tw_ring_t *ring) {
  enum { PREFETCH = 2 };
  if (ring->depth == 0)
    return ring->num_fills;
  if (is_around_others(plan, ring))
    return PREFETCH;
  int64_t stages = tw_attr_int(tw_module_of(plan->func), "tile.num_stages", 0);
  if (stages == 0)
    stages = tw_attr_int(plan->fills[ring->first].copies[0], TW_LATENCY, -1) + 1;
  return stages > 0 ? (int)stages : MAX_SLOTS;
}

/* A slot that is given back an iteration late is filled as far ahead as others if there is one more. */
static void deal_late_slots(tw_ring_plan_t *plan, int64_t room) {
  for (int r = 0; r < plan->num_rings; r++) {
    tw_ring_t *ring = &plan->rings[r];
    bool more = ring->late && slots_wanted(plan, ring) > ring->slots && ring_bytes(plan) + ring->bytes <= room;
    ring->slots += more;
  }
}

/* Rings get one more slot in turn, while it fits into `room`. */
static void deal_slots(tw_ring_plan_t *plan, int64_t room) {
  deal_late_slots(plan, room);
  for (bool more = true; more;) {
    more = false;
    for (int r = 0; r < plan->num_rings; r++) {
      tw_ring_t *ring = &plan->rings[r];
      if (ring->slots < slots_wanted(plan, ring) && ring_bytes(plan) + ring->bytes <= room) {
        ring->slots++;
        more = true;
      }
    }
  }
}

static MlirWalkResult find_work(MlirOperation op, void *user) {
  const tw_ring_plan_t *plan = *(const tw_ring_plan_t **)user;
  bool product = tw_op_is(op, "tile.wgmma") || tw_op_is(op, "tile.mma");
  const tw_overlap_t *overlap = tw_overlap_of(plan, mlirOperationGetParentOperation(op));
  if (!product || (overlap && overlap->all))
    return MlirWalkResultAdvance;
  *(const tw_ring_plan_t **)user = NULL;
  return MlirWalkResultInterrupt;
}

/* Whether threads do something between products, that do not merely add up. */
static bool works_between_products(const tw_ring_plan_t *plan) {
  const tw_ring_plan_t *found = plan;
  mlirOperationWalk(plan->func, find_work, &found, MlirWalkPreOrder);
  return found == NULL;
}

typedef struct {
  MlirBlock block;
  int64_t words, most;
} words_t;

/* What products that stand together keep in registers: accumulators, operands that do not come from a buffer, and sums
 * that are to be promoted. */
static MlirWalkResult count_words(MlirOperation op, void *user) {
  words_t *words = user;
  if (!tw_op_is(op, "tile.wgmma"))
    return MlirWalkResultAdvance;
  if (!mlirBlockEqual(mlirOperationGetBlock(op), words->block))
    words->words = 0;
  words->block = mlirOperationGetBlock(op);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    words->words += words_of(mlirOperationGetOperand(op, i));
  int64_t sums = twg_register_count(mlirValueGetType(mlirOperationGetResult(op, 0)));
  if (tw_has_attr(op, "promoted"))
    words->words += sums < TW_WGMMA_PROMOTED_COLUMNS / 2 ? sums : TW_WGMMA_PROMOTED_COLUMNS / 2;
  words->most = words->words > words->most ? words->words : words->most;
  return MlirWalkResultAdvance;
}

static int64_t product_words(MlirOperation func) {
  words_t words = {.words = 0};
  mlirOperationWalk(func, count_words, &words, MlirWalkPreOrder);
  return words.most;
}

/* ---- teams --------------------------------------------------------------------------------------- */

/* The loop that all copies are made in, right in the body of a persistent loop of the function; null if there is none.
 */
static MlirOperation only_loop(const tw_ring_plan_t *plan) {
  MlirOperation loop = mlirOperationGetParentOperation(plan->fills[0].copies[0]);
  MlirOperation blocks = mlirOperationGetParentOperation(loop);
  for (int f = 0; f < plan->num_fills; f++)
    if (!mlirOperationEqual(mlirOperationGetParentOperation(plan->fills[f].copies[0]), loop))
      return tw_null_op();
  const tw_overlap_t *overlap = tw_overlap_of(plan, loop);
  return overlap && overlap->all && tw_has_attr(blocks, TW_PERSISTENT) &&
                 mlirBlockEqual(mlirOperationGetBlock(blocks), tw_region_block(plan->func, 0))
             ? loop
             : tw_null_op();
}

/* Whether the loop runs as often for each block of the persistent loop around it. */
static bool runs_evenly(MlirOperation loop) {
  MlirOperation blocks = mlirOperationGetParentOperation(loop);
  tw_slice_t slice = {.block = tw_loop_body(blocks)};
  for (intptr_t i = 0; i < TW_FOR_INITS; i++)
    tw_slice_add(&slice, mlirOperationGetOperand(loop, i));
  bool even = !tw_has_attr(loop, "unsignedCmp") && !tw_slice_reads(&slice, tw_loop_iv(blocks));
  tw_slice_free(&slice);
  return even;
}

/* Buffers that no ring replaces and no store by TMA uses. */
static MlirWalkResult find_other_buffer(MlirOperation op, void *user) {
  const tw_ring_plan_t *plan = *(const tw_ring_plan_t **)user;
  if (!tw_op_is(op, "tile.alloc_shared"))
    return MlirWalkResultAdvance;
  MlirValue buffer = mlirOperationGetResult(op, 0);
  for (int f = 0; f < plan->num_fills; f++)
    if (fills_buffer(&plan->fills[f], buffer))
      return MlirWalkResultAdvance;
  for (MlirOpOperand use = mlirValueGetFirstUse(buffer); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use))
    if (!tw_is_of_store(mlirOpOperandGetOwner(use)))
      *(const tw_ring_plan_t **)user = NULL;
  return MlirWalkResultAdvance;
}

static bool has_other_buffers(const tw_ring_plan_t *plan) {
  const tw_ring_plan_t *found = plan;
  mlirOperationWalk(plan->func, find_other_buffer, &found, MlirWalkPreOrder);
  return found == NULL;
}

/* One warpgroup has a tile whose products merely add up. While it writes its result the Tensor Core would idle: a
 * second one can compute the next tile meanwhile. The ring brings the tiles of both one after the other, and so orders
 * them. */
static bool may_take_turns(const tw_ring_plan_t *plan) {
  enum { GROUP = 4, MOST_WORDS = 160 /* beside which there are registers for all else */ };
  MlirOperation loop = only_loop(plan);
  return !mlirOperationIsNull(loop) && tw_attr_int(tw_module_of(plan->func), "tile.num_warps", 0) == GROUP &&
         plan->product_words <= MOST_WORDS && !works_between_products(plan) && !plan->has_stores &&
         !has_other_buffers(plan) && runs_evenly(loop);
}

/* ---- the number of slots ------------------------------------------------------------------------- */

/* While few warps work, the Tensor Core idles: then two blocks should fit on a multiprocessor, if that leaves enough
 * slots and registers. */
static bool choose_slots(tw_ring_plan_t *plan) {
  enum { FEW_WARPS = 4, ENOUGH = 3, TEAMS = 2, ENOUGH_FOR_TEAMS = 4 };
  MlirOperation module = tw_module_of(plan->func);
  tw_gpu_target_t target = tw_gpu_target_of(plan->func), own = tw_gpu_share_of(plan->func);
  beside_t beside = {.plan = plan};
  mlirOperationWalk(plan->func, count_beside, &beside, MlirWalkPreOrder);
  plan->product_words = product_words(plan->func);
  int64_t taken = beside.buffers + beside.small + beside.scratch + PIECE;
  for (int r = 0; r < plan->num_rings; r++)
    plan->rings[r].slots = slots_needed(plan, &plan->rings[r]);
  int64_t least = ring_bytes(plan), twice = TEAMS * taken + least / TW_MIN_SLOTS * ENOUGH_FOR_TEAMS;
  plan->teams = may_take_turns(plan) && twice <= own.shared_bytes ? TEAMS : 1;
  taken *= plan->teams;
  int64_t half = target.shared_bytes_sm / 2 - TW_SHARED_BYTES_OF_DRIVER - taken;
  if (taken + least > target.shared_bytes)
    return refuse(plan, plan->fills[0].copies[0], "two slots of each buffer do not fit into shared memory");
  bool share = !tw_has_attr(module, "tile.occupancy") &&
               tw_attr_int(module, "tile.num_warps", FEW_WARPS) <= FEW_WARPS && works_between_products(plan) &&
               plan->product_words <= TW_MANY_WORDS && tw_attr_int(module, "tile.num_stages", 0) == 0 &&
               least / TW_MIN_SLOTS * ENOUGH <= half;
  deal_slots(plan, share ? half : own.shared_bytes - taken);
  return true;
}

/* ---- what the producer needs ----------------------------------------------------------------------- */

bool tw_is_needed(const tw_ring_plan_t *plan, const void *key) { return tw_map_get(&plan->needed, key, NULL) != NULL; }

/* Notes it; false if it was known. */
static bool note_needed(tw_ring_plan_t *plan, const void *key) {
  MlirValue mark = {NULL};
  if (tw_is_needed(plan, key))
    return false;
  tw_map_set(&plan->needed, key, 1, &mark);
  return true;
}

/* Whether a load finds the same in both roles: no one writes to the array (to one that overlaps: check_order), and it
 * does not wait for memory to change. */
static bool reads_constant(MlirOperation load) {
  MlirValue array = mlirOperationGetOperand(load, 0);
  for (MlirOpOperand use = mlirValueGetFirstUse(array); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use))
    if (tw_stores_to_array(mlirOpOperandGetOwner(use)))
      return false;
  return !tw_op_is(mlirOperationGetParentOperation(load), "scf.while");
}

static bool has_tile(MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (tw_is_tile(mlirValueGetType(mlirOperationGetOperand(op, i))))
      return true;
  return false;
}

/* A constant whose elements differ: which of them a thread has depends on its warp. */
static bool is_table(MlirOperation op) {
  MlirAttribute value = tw_attr(op, "value");
  return !mlirAttributeIsNull(value) && mlirAttributeIsADenseElements(value) && !mlirDenseElementsAttrIsSplat(value);
}

/* Ops that the producer can do again: arithmetic, and loads from arrays. Of tiles, which are the indices of a gather,
 * only what each thread does by itself. */
static bool can_repeat(MlirOperation op) {
  bool loads = tw_op_is(op, "tile.load") || tw_op_is(op, "tile.gather");
  if (mlirOperationGetNumRegions(op) > 0 || mlirOperationGetNumResults(op) != 1 || (loads && !reads_constant(op)))
    return false;
  if (!tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))))
    return !has_tile(op) && (tw_op_in(op, "arith") || tw_op_in(op, "math") || tw_is_index_fact(op) || loads);
  return loads || (tw_is_arithmetic(op) && !tw_op_is(op, "tile.reduce") && !is_table(op));
}

static bool need_value(tw_ring_plan_t *plan, MlirValue value);

/* A loop or branch, whose control flow the producer follows; and those around it. */
static bool need_control(tw_ring_plan_t *plan, MlirOperation op) {
  if (mlirOperationIsNull(op) || mlirOperationEqual(op, plan->func) || !note_needed(plan, op.ptr))
    return true;
  if (!tw_is_control(op))
    return refuse(plan, op, "it copies within an op that is no loop or branch");
  intptr_t num = tw_op_is(op, "scf.for") ? 3 : tw_op_is(op, "scf.if") ? 1 : 0;
  for (intptr_t i = 0; i < num; i++)
    if (!need_value(plan, mlirOperationGetOperand(op, i)))
      return false;
  if (tw_op_is(op, "scf.while") &&
      !need_value(plan, mlirOperationGetOperand(mlirBlockGetTerminator(tw_region_block(op, 0)), 0)))
    return false;
  return need_control(plan, mlirOperationGetParentOperation(op));
}

static bool need_argument(tw_ring_plan_t *plan, MlirValue value) {
  MlirBlock block = mlirBlockArgumentGetOwner(value);
  MlirOperation op = mlirBlockGetParentOperation(block);
  intptr_t at = mlirBlockArgumentGetArgNumber(value);
  if (mlirOperationEqual(op, plan->func))
    return true;
  if (!need_control(plan, op))
    return false;
  if (tw_op_is(op, "scf.for"))
    return at == 0 || (need_value(plan, mlirOperationGetOperand(op, 3 + at - 1)) &&
                       need_value(plan, mlirOperationGetOperand(mlirBlockGetTerminator(block), at - 1)));
  if (mlirBlockEqual(block, tw_region_block(op, 0)))
    return need_value(plan, mlirOperationGetOperand(op, at)) &&
           need_value(plan, mlirOperationGetOperand(mlirBlockGetTerminator(tw_region_block(op, 1)), at));
  return need_value(plan, mlirOperationGetOperand(mlirBlockGetTerminator(tw_region_block(op, 0)), 1 + at));
}

static bool need_result(tw_ring_plan_t *plan, MlirOperation op, intptr_t at) {
  if (!need_control(plan, op))
    return false;
  if (tw_op_is(op, "scf.for"))
    return need_value(plan, mlirBlockGetArgument(tw_region_block(op, 0), at + 1));
  if (tw_op_is(op, "scf.while"))
    return need_value(plan, mlirOperationGetOperand(mlirBlockGetTerminator(tw_region_block(op, 0)), 1 + at));
  for (int r = 0; r < 2; r++)
    if (!need_value(plan, mlirOperationGetOperand(mlirBlockGetTerminator(tw_region_block(op, r)), at)))
      return false;
  return true;
}

static bool need_value(tw_ring_plan_t *plan, MlirValue value) {
  MlirOperation from = mlirValueIsABlockArgument(value) ? mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value))
                                                        : mlirOpResultGetOwner(value);
  if (tw_is_tile(mlirValueGetType(value)) && (tw_op_is(from, "scf.if") || tw_op_is(from, "scf.while")))
    return refuse(plan, from, "it passes on a tile that the position of a copy depends on");
  if (!note_needed(plan, value.ptr))
    return true;
  if (mlirValueIsABlockArgument(value))
    return need_argument(plan, value);
  MlirOperation op = mlirOpResultGetOwner(value);
  if (tw_is_control(op))
    return need_result(plan, op, mlirOpResultGetResultNumber(value));
  if (!can_repeat(op))
    return refuse(plan, op, "the position of a copy depends on a tile or on an effect");
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (!need_value(plan, mlirOperationGetOperand(op, i)))
      return false;
  return need_control(plan, mlirOperationGetParentOperation(op));
}

static bool need_copies(tw_ring_plan_t *plan) {
  for (int f = 0; f < plan->num_fills; f++)
    for (int c = 0; c < plan->fills[f].num_copies; c++) {
      MlirOperation copy = plan->fills[f].copies[c];
      for (intptr_t i = 0; i < tw_copy_buffer_operand(copy); i++)
        if (!need_value(plan, mlirOperationGetOperand(copy, i)))
          return false;
      if (!need_control(plan, mlirOperationGetParentOperation(copy)))
        return false;
    }
  return true;
}

/* ---- order with writes ----------------------------------------------------------------------------- */

/* Whether a copy may run after `op` does: it stands behind, or a loop holds both. Blocks that a persistent loop goes
 * through promise no order among each other. */
static bool may_follow(MlirOperation copy, MlirOperation op) {
  MlirOperation up = op, beside = tw_null_op();
  for (; mlirOperationIsNull(beside); up = mlirOperationGetParentOperation(up)) {
    beside = tw_ancestor_in(copy, mlirOperationGetBlock(up));
    if (!mlirOperationIsNull(beside) && !mlirOperationEqual(up, beside) && mlirOperationIsBeforeInBlock(up, beside))
      return true;
  }
  for (; !mlirOperationIsNull(up); up = mlirOperationGetParentOperation(up))
    if (is_loop(up) && !tw_has_attr(up, TW_PERSISTENT))
      return true;
  return false;
}

typedef struct {
  tw_ring_plan_t *plan;
  MlirOperation write;
} order_t;

/* What the producer copies, or loads to know where from. */
static bool is_done_ahead(const tw_ring_plan_t *plan, MlirOperation op) {
  bool loads = tw_op_is(op, "tile.load") || tw_op_is(op, "tile.gather");
  return tw_is_async_copy(op) || (loads && tw_is_needed(plan, mlirOperationGetResult(op, 0).ptr));
}

static MlirWalkResult check_after(MlirOperation op, void *user) {
  order_t *order = user;
  intptr_t first;
  if (is_done_ahead(order->plan, op) && may_follow(op, order->write) &&
      !tw_assume_disjoint(tw_access_array(order->write, &first), tw_access_array(op, &first)))
    refuse(order->plan, order->write, "it writes to an array that may be the one of a later copy");
  return order->plan->reason ? MlirWalkResultInterrupt : MlirWalkResultAdvance;
}

/* Nothing tells a producer that a store was done. */
static MlirWalkResult check_order(MlirOperation op, void *user) {
  order_t order = {user, op};
  if (tw_stores_to_array(op))
    mlirOperationWalk(order.plan->func, check_after, &order, MlirWalkPreOrder);
  return order.plan->reason ? MlirWalkResultInterrupt : MlirWalkResultAdvance;
}

/* ---- the decision ---------------------------------------------------------------------------------- */

/* Multiply-adds are as fast as their operands stay in registers, of which a warp beside them would take a share. */
static MlirWalkResult find_multiply_adds(MlirOperation op, void *user) {
  tw_ring_plan_t *plan = user;
  tw_gpu_target_t target = tw_gpu_target_of(op);
  if (tw_op_is(op, "tile.mma") && tw_mma_row_for(&target, op).kind == TW_MMA_FMA)
    refuse(plan, op, "its multiply-adds need the registers that these would take");
  return plan->reason ? MlirWalkResultInterrupt : MlirWalkResultAdvance;
}

static bool any_in_loop(const tw_ring_plan_t *plan) {
  for (int f = 0; f < plan->num_fills; f++)
    if (loops_around(plan->fills[f].copies[0]) > 0)
      return true;
  return false;
}

bool tw_plan_rings(tw_ring_plan_t *plan) {
  mlirOperationWalk(plan->func, collect_copy, plan, MlirWalkPreOrder);
  if (plan->reason || !any_in_loop(plan))
    return false;
  mlirOperationWalk(plan->func, find_multiply_adds, plan, MlirWalkPreOrder);
  mlirOperationWalk(plan->func, collect_read, plan, MlirWalkPreOrder);
  if (plan->reason || !need_copies(plan))
    return false;
  mlirOperationWalk(plan->func, collect_overlap, plan, MlirWalkPreOrder);
  if (!find_ends(plan) || !make_rings(plan) || !choose_slots(plan))
    return false;
  mlirOperationWalk(plan->func, check_order, plan, MlirWalkPreOrder); /* last: it may make assumptions */
  return plan->reason == NULL;
}
