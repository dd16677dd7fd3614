/* mma_overlap.c - see mma_overlap.h */
#include "lowering/gpu/roles/mma_overlap.h"
#include "dialect/layouts.h"
#include "lowering/gpu/facts/barrier.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/layout/memory.h"
#include "lowering/loops.h"

/* ---- which products ------------------------------------------------------------------------------ */

/* Of products that go on with one sum the first one, and the last. */
static MlirOperation first_of_sum(MlirOperation product) {
  for (MlirOperation before = product; !mlirOperationIsNull(before); before = tw_mma_before(product))
    product = before;
  return product;
}

static MlirOperation last_of_sum(MlirOperation product) {
  for (MlirOperation next = product; !mlirOperationIsNull(next) && tw_op_is_async_product(next);
       next = tw_only_user(mlirOperationGetResult(product, 0)))
    product = next;
  return product;
}

/* Whether the product, and others of its sum, only add to a value that the loop carries. */
static bool only_adds(MlirOperation loop, MlirOperation product, tw_overlap_t *out) {
  MlirBlock body = tw_loop_body(loop);
  MlirOperation last = last_of_sum(product), first = first_of_sum(product);
  MlirOperation wait = tw_only_user(mlirOperationGetResult(last, 0)), yield = mlirBlockGetTerminator(body);
  if (!tw_mma_may_run_on(product) || mlirOperationIsNull(wait) || !tw_op_waits_for_products(wait) ||
      !mlirBlockEqual(mlirOperationGetBlock(wait), body))
    return false;
  MlirValue done = mlirOperationGetResult(wait, 0);
  MlirOperation user = tw_only_user(done);
  if (mlirOperationIsNull(user) || !mlirOperationEqual(user, yield))
    return false;
  intptr_t at = mlirOpOperandGetOperandNumber(mlirValueGetFirstUse(done));
  MlirValue acc = tw_mma_sum_before(first);
  if (!mlirValueEqual(acc, tw_carried(loop, at)) || !tw_has_one_use(acc))
    return false;
  out->products = tw_room(out->products, (size_t)out->num_products, sizeof *out->products);
  out->products[out->num_products++] = (tw_late_product_t){product, wait, at, !mlirOperationEqual(product, last)};
  return true;
}

enum { HALF_BITS = 16 };

typedef struct {
  tw_overlap_t overlap;
  bool bad; /* has products deeper in the loop */
} overlap_check_t;

static MlirWalkResult check_product(MlirOperation op, void *user) {
  overlap_check_t *check = user;
  tw_overlap_t *overlap = &check->overlap;
  if (!tw_op_is_async_product(op))
    return MlirWalkResultAdvance;
  check->bad |= !mlirBlockEqual(mlirOperationGetBlock(op), tw_loop_body(overlap->loop));
  if (check->bad)
    return MlirWalkResultInterrupt;
  bool adds = only_adds(overlap->loop, op, overlap);
  bool from_zero =
      adds && tw_is_zero(tw_carried_init(overlap->loop, overlap->products[overlap->num_products - 1].carried));
  bool steps = tw_mma_reads_registers(op) && tw_has_attr(op, TW_MMA_STEPS);
  overlap->stepped |= steps;
  overlap->all &= from_zero && (steps || !tw_mma_reads_registers(op));
  if (adds && !from_zero)
    tw_op_remark(op, "is waited for in each iteration, for its sum starts from a tile: from zero, with that tile added "
                     "behind the loop, products run on into the next one");
  return MlirWalkResultAdvance;
}

static bool runs_on(const tw_overlap_t *overlap, MlirOperation product) {
  for (int p = 0; p < overlap->num_products; p++)
    if (mlirOperationEqual(overlap->products[p].op, product))
      return true;
  return false;
}

static bool is_wait_of(const tw_overlap_t *overlap, MlirOperation wait) {
  for (int p = 0; p < overlap->num_products; p++)
    if (mlirOperationEqual(overlap->products[p].wait, wait))
      return true;
  return false;
}

/* ---- beside products that each iteration waits for ------------------------------------------------- */

/* The first wait at or behind `op` that is for a product which does not run on; null if there is none. */
static MlirOperation next_wait(const tw_overlap_t *overlap, MlirOperation op) {
  while (!mlirOperationIsNull(op) && (!tw_op_waits_for_products(op) || is_wait_of(overlap, op)))
    op = mlirOperationGetNextInBlock(op);
  return op;
}

/* Whether what the product reads from registers is written when the one of the iteration before is done. */
static bool reads_behind(const tw_overlap_t *overlap, MlirOperation product) {
  if (!tw_mma_reads_registers(product))
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

/* With the others of its sum. */
static void remove_product(tw_overlap_t *overlap, int p) {
  MlirOperation wait = overlap->products[p].wait;
  int kept = 0;
  for (int i = 0; i < overlap->num_products; i++)
    if (!mlirOperationEqual(overlap->products[i].wait, wait))
      overlap->products[kept++] = overlap->products[i];
  overlap->num_products = kept;
}

/* Beside products that each iteration waits for: the first of their waits is behind all of the iteration before. */
static bool find_end(tw_overlap_t *overlap) {
  for (int p = 0; p < overlap->num_products;) {
    overlap->end = next_wait(overlap, mlirBlockGetFirstOperation(tw_loop_body(overlap->loop)));
    if (mlirOperationIsNull(overlap->end))
      return false;
    if (reads_behind(overlap, overlap->products[p].op)) {
      p++;
    } else {
      remove_product(overlap, p);
      p = 0; /* its wait may come first */
    }
  }
  return overlap->num_products > 0;
}

static int64_t words_of(MlirValue value) { return tw_register_words(mlirValueGetType(value)); }

/* Has the products that were started in front of the first wait, but are not what it waits for, start behind it. */
static void start_behind(const tw_overlap_t *overlap) {
  MlirOperation first = tw_def(mlirOperationGetOperand(overlap->end, 0));
  MlirOperation at = mlirOperationGetNextInBlock(overlap->end);
  for (MlirOperation op = mlirOperationGetNextInBlock(first), next; !mlirOperationEqual(op, overlap->end); op = next) {
    next = mlirOperationGetNextInBlock(op);
    if (tw_op_is_async_product(op))
      mlirOperationMoveBefore(op, at);
  }
}

/* Lets products run on beside others as far as registers suffice: for all accumulators and the operands that the ones
 * read which run on, and for computing with the widest tile. What need not be there before the first wait is made room
 * by starting behind it. */
static bool fits_registers(const tw_overlap_t *overlap) {
  enum { AT_A_TIME = 4 };
  int64_t words = 0, widest = 0;
  for (int p = 0; p < overlap->num_products; p++)
    words += words_of(mlirOperationGetOperand(overlap->products[p].op, 0));
  TW_EACH_OP(op, tw_loop_body(overlap->loop)) {
    if (!tw_op_is_async_product(op))
      continue;
    int64_t sums = words_of(mlirOperationGetResult(op, 0));
    words += mlirOperationIsNull(tw_mma_before(op)) ? sums : 0;
    if (!runs_on(overlap, op))
      widest = sums > widest ? sums : widest;
  }
  if (words + widest / AT_A_TIME > tw_register_budget(overlap->loop, TW_BUDGET_OVERLAP))
    return false;
  if (words > tw_register_budget(overlap->loop, TW_BUDGET_OVERLAP_AT_ONCE))
    start_behind(overlap);
  return true;
}

/* ---- why not ---------------------------------------------------------------------------------------- */

/* Whether the loop carries its left operand (tile-pipeline-mma), so that the next one is made meanwhile. */
static bool runs_beside_next(MlirOperation product) {
  MlirValue lhs = mlirOperationGetOperand(product, 0);
  return mlirValueIsABlockArgument(lhs) &&
         mlirBlockEqual(mlirBlockArgumentGetOwner(lhs), mlirOperationGetBlock(product));
}

/* Of a product for which each iteration waits; null where a remark of its own tells it. */
static const char *why_waited_for(const overlap_check_t *check, MlirOperation product) {
  if (tw_bits(mlirValueGetType(mlirOperationGetResult(product, 0))) == HALF_BITS)
    return "is waited for in each iteration, for sums of 16 bits are taken apart in registers: sums of float32 run on "
           "into the next one";
  if (!tw_mma_may_run_on(product))
    return NULL;
  if (check->overlap.num_products == 0)
    return "is waited for in each iteration, which goes on with its sums: only what is added to sums that the loop "
           "carries runs on into the next one";
  bool waits = tw_mma_reads_registers(product) && !runs_beside_next(product);
  return waits ? "is waited for in each iteration, for its left operand is computed in registers, which the next one "
                 "needs: a tile that is loaded runs on"
               : NULL;
}

static bool is_product_of(MlirOperation op, const void *loop) {
  return tw_op_is_async_product(op) &&
         mlirOperationEqual(mlirOperationGetParentOperation(op), *(const MlirOperation *)loop);
}

/* Tells of a loop of which no product runs on. */
static void tell_of_waits(const overlap_check_t *check) {
  MlirOperation product = tw_find_op(check->overlap.loop, is_product_of, &check->overlap.loop);
  bool waits =
      !mlirOperationIsNull(product) && !mlirOpOperandIsNull(mlirValueGetFirstUse(mlirOperationGetResult(product, 0)));
  const char *reason = waits ? why_waited_for(check, product) : NULL;
  if (reason != NULL)
    tw_op_remark(product, "%s", reason);
}

/* ---- all of a kernel ------------------------------------------------------------------------------- */

/* Whether all products of the loop go on with one sum. */
static bool is_one_sum(const tw_overlap_t *overlap) {
  bool one = overlap->all && overlap->num_products > 1;
  for (int p = 0; p < overlap->num_products; p++)
    one = one && mlirOperationEqual(overlap->products[p].wait, overlap->products[0].wait);
  return one;
}

/* Of products of one sum each is waited for when the next one has started, so that its stages go back one by one. */
static void wait_for_each(tw_overlap_t *overlap) {
  int last = overlap->num_products - 1;
  for (int p = last - 1; p >= 0; p--) {
    MlirOperation product = overlap->products[p].op, next = overlap->products[p + 1].op;
    tw_builder_t at = tw_build_before(mlirOperationGetNextInBlock(product));
    MlirValue sum = mlirOperationGetResult(product, 0);
    MlirOperation wait = tw_build_product_wait(&at, 1, &sum, 1);
    mlirOperationSetOperand(next, mlirOperationGetNumOperands(next) - 1, mlirOperationGetResult(wait, 0));
    overlap->end = wait;
  }
  overlap->products[0] = overlap->products[last];
  overlap->num_products = 1;
  overlap->each = true;
}

static MlirWalkResult collect_overlap(MlirOperation op, void *user) {
  tw_overlaps_t *overlaps = user;
  overlap_check_t check = {.overlap = {.loop = op, .all = true}};
  tw_overlap_t *overlap = &check.overlap;
  if (!tw_op_is(op, TW_SCF_FOR))
    return MlirWalkResultAdvance;
  mlirOperationWalk(op, check_product, &check, MlirWalkPreOrder);
  overlap->all &= !overlap->stepped || overlap->num_products == 1;
  overlap->stepped &= overlap->all;
  bool some = !check.bad && overlap->num_products > 0;
  if (some && overlap->all)
    overlap->end = overlap->products[overlap->num_products - 1].wait;
  if (!some || (!overlap->all && !(find_end(overlap) && fits_registers(overlap)))) {
    if (!check.bad)
      tell_of_waits(&check);
    free(overlap->products);
    return MlirWalkResultAdvance;
  }
  if (is_one_sum(overlap))
    wait_for_each(overlap);
  overlap->first = overlaps->num_products;
  overlaps->num_products += overlap->num_products;
  overlaps->at = tw_room(overlaps->at, (size_t)overlaps->num, sizeof *overlaps->at);
  overlaps->at[overlaps->num++] = *overlap;
  return MlirWalkResultAdvance;
}

void tw_find_overlaps(tw_overlaps_t *overlaps, MlirOperation func) {
  mlirOperationWalk(func, collect_overlap, overlaps, MlirWalkPreOrder);
}

void tw_free_overlaps(tw_overlaps_t *overlaps) {
  for (int i = 0; i < overlaps->num; i++)
    free(overlaps->at[i].products);
  free(overlaps->at);
}

/* ---- questions ------------------------------------------------------------------------------------- */

const tw_overlap_t *tw_overlap_of(const tw_overlaps_t *overlaps, MlirOperation loop) {
  for (int i = 0; i < overlaps->num; i++)
    if (mlirOperationEqual(overlaps->at[i].loop, loop))
      return &overlaps->at[i];
  return NULL;
}

bool tw_drops_wait(const tw_overlaps_t *overlaps, MlirOperation wait) {
  const tw_overlap_t *overlap = tw_overlap_of(overlaps, mlirOperationGetParentOperation(wait));
  return overlap && !overlap->each && is_wait_of(overlap, wait) && !mlirOperationEqual(wait, overlap->end);
}

int64_t tw_pending(const tw_overlaps_t *overlaps, MlirOperation wait) {
  const tw_overlap_t *overlap = tw_overlap_of(overlaps, mlirOperationGetParentOperation(wait));
  if (!overlap)
    return tw_attr_int(wait, "pending", 0);
  if (overlap->all)
    return overlap->num_products;
  int64_t pending = 0;
  for (MlirOperation op = mlirOperationGetNextInBlock(tw_def(mlirOperationGetOperand(wait, 0)));
       !mlirOperationEqual(op, wait); op = mlirOperationGetNextInBlock(op))
    pending += tw_op_is_async_product(op);
  return pending;
}

/* Counts products from `op` on until a wait covers those before; null if the block has no such wait. */
static MlirOperation covering_wait(const tw_overlaps_t *overlaps, MlirOperation op, int64_t *issued) {
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (tw_op_is_async_product(op))
      ++*issued;
    else if (tw_op_waits_for_products(op) && !tw_drops_wait(overlaps, op) && tw_pending(overlaps, op) <= *issued)
      return op;
  }
  return tw_null_op();
}

MlirOperation tw_product_end(const tw_overlaps_t *overlaps, MlirOperation product, MlirBlock block, bool *late) {
  MlirOperation loop = mlirOperationGetParentOperation(product);
  const tw_overlap_t *overlap = tw_overlap_of(overlaps, loop);
  if (overlap && runs_on(overlap, product)) {
    *late = mlirBlockEqual(mlirOperationGetBlock(product), block);
    return *late ? overlap->end : tw_ancestor_in(loop, block);
  }
  int64_t issued = 0;
  for (MlirOperation op = product;; op = mlirOperationGetParentOperation(op)) {
    MlirOperation wait = covering_wait(overlaps, mlirOperationGetNextInBlock(op), &issued);
    if (!mlirOperationIsNull(wait) || mlirBlockEqual(mlirOperationGetBlock(op), block))
      return mlirOperationIsNull(wait) ? wait : tw_ancestor_in(wait, block);
  }
}

static bool is_work(MlirOperation op, const void *overlaps) {
  const tw_overlap_t *overlap = tw_overlap_of(overlaps, mlirOperationGetParentOperation(op));
  return (tw_op_is_async_product(op) || tw_op_is_product(op)) && !(overlap && overlap->all && !overlap->stepped);
}

bool tw_works_between_products(const tw_overlaps_t *overlaps, MlirOperation func) {
  return !mlirOperationIsNull(tw_find_op(func, is_work, overlaps));
}
