/* strip_mine_products.c - tile-strip-mine: splits a product into steps along k where whole operands do not fit
 *
 * Before, with tile.product_step = 128 bytes on the kernel:
 *
 *   %d = scf.for %k = 0 to %n step 1 iter_args(%acc = %zero) {
 *     %a = tile.load %A[%i, %k] : ... -> tensor<128x128xf32>
 *     %b = tile.load %B[%k, %j] : ... -> tensor<128x64xf32>
 *     %c = tile.mma %a, %b, %acc ; yield %c
 *
 * After, an iteration of the loop is a step:
 *
 *   %d = scf.for %s = 0 to %n * 4 step 1 iter_args(%acc = %zero) {
 *     %a = tile.load %A[%i, %s] : ... -> tensor<128x32xf32>
 *     %b = tile.load %B[%s, %j] : ... -> tensor<32x64xf32>
 *     %c = tile.mma %a, %b, %acc ; yield %c
 *
 * and in a block that does more than that, the product becomes a loop over its steps. Sums are as before but for the
 * order in which they are added up.
 *
 * What must hold: operands are computed element by element from loads and gathers that no store comes between.
 * Products whose operands are not, such as those computed from another product, stay whole; a remark says so. Runs
 * before layouts, where tile-plan-block has set tile.product_step. */
#include "lowering/gpu/memory/strip_mine_products.h"

#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/memory/tile_parts.h"
#include "lowering/layout/layout.h"
#include "lowering/loops.h"

enum { MOST_LATENCY = 10 }; /* that a load may have */

typedef struct {
  MlirOperation mma;
  int64_t extent, part; /* of k */
  tw_map_t axes;        /* value of an operand -> its axis of k */
} product_t;

static int64_t parts_of(const product_t *p) { return p->extent / p->part; }

/* ---- what has parts ---------------------------------------------------------------------------------------- */

/* Whether no op between the load and the product may store to an array. */
static bool is_unwritten_until(MlirOperation load, MlirOperation mma) {
  MlirOperation end = tw_ancestor_in(mma, mlirOperationGetBlock(load));
  if (mlirOperationIsNull(end))
    return false;
  for (MlirOperation op = mlirOperationGetNextInBlock(load);; op = mlirOperationGetNextInBlock(op)) {
    bool last = mlirOperationEqual(op, end);
    if (tw_may_write_arrays(op))
      return false;
    if (last)
      return true;
  }
}

static bool has_parts(product_t *p, MlirValue value, int axis);

static bool operands_have_parts(product_t *p, MlirOperation op, int axis) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirValue operand = mlirOperationGetOperand(op, i);
    if (!tw_is_tile(mlirValueGetType(operand)))
      continue;
    int own = tw_operand_axis(op, i, axis);
    if (own < 0 ? !tw_op_is(op, TW_TILE_BROADCAST) : !has_parts(p, operand, own))
      return false;
  }
  return true;
}

static bool has_parts(product_t *p, MlirValue value, int axis) {
  MlirOperation op = tw_def(value);
  int known = tw_map_number(&p->axes, value, -1);
  if (mlirOperationIsNull(op) || tw_extent(mlirValueGetType(value), axis) != p->extent)
    return false;
  if (known >= 0 || tw_is_made_anew(value))
    return known < 0 || known == axis;
  bool reads = tw_op_loads(op);
  bool computes = tw_op_form(op) == TW_FORM_ELEMENTWISE || tw_op_form(op) == TW_FORM_VIEW;
  if (mlirOperationGetNumResults(op) != 1 || !(computes || (reads && is_unwritten_until(op, p->mma))))
    return false;
  tw_map_set_number(&p->axes, value, axis);
  return operands_have_parts(p, op, axis);
}

/* ---- parts --------------------------------------------------------------------------------------------------- */

/* Which step is made: its number in the tile, and in the loop where that counts them (else null), whose iterations then
 * have a tile of a number. */
typedef struct {
  MlirValue number, of_loop, tile;
} step_t;

static MlirValue index_of(const product_t *p, const tw_builder_t *at, MlirValue index, const step_t *step) {
  if (!mlirValueIsNull(step->of_loop) && mlirValueEqual(index, step->tile))
    return step->of_loop;
  return tw_part_index(at, index, parts_of(p), step->number);
}

static MlirValue build_part(const product_t *p, MlirValue value, int axis, const step_t *step, tw_map_t *made_of) {
  const MlirValue *known = tw_map_get(made_of, value.ptr, NULL);
  if (known)
    return *known;
  tw_builder_t at = tw_build_before(p->mma);
  if (tw_is_made_anew(value))
    return tw_make_part_anew(&at, value, axis, p->part, step->number);
  MlirOperation op = tw_def(value);
  MlirValue operands[TW_MAX_RANK + 4];
  intptr_t num = mlirOperationGetNumOperands(op);
  for (intptr_t i = 0; i < num; i++) {
    operands[i] = mlirOperationGetOperand(op, i);
    int own = tw_operand_axis(op, i, axis);
    if (own >= 0)
      operands[i] = build_part(p, operands[i], own, step, made_of);
  }
  if (tw_op_loads_tile(op)) {
    intptr_t first;
    (void)tw_access_array(op, &first);
    operands[first + axis] = index_of(p, &at, operands[first + axis], step);
  }
  MlirOperation made = mlirOperationClone(op);
  int64_t latency = tw_attr_int(op, TW_LATENCY, 0) * parts_of(p); /* a tile is so many parts */
  if (latency > 0)
    tw_set_int(made, TW_LATENCY, tw_i32(at.context), latency < MOST_LATENCY ? latency : MOST_LATENCY);
  mlirBlockInsertOwnedOperationBefore(at.block, at.before, made);
  for (intptr_t i = 0; i < num; i++)
    mlirOperationSetOperand(made, i, operands[i]);
  MlirValue part = mlirOperationGetResult(made, 0);
  mlirValueSetType(part, tw_with_extent(mlirValueGetType(value), axis, p->part));
  tw_map_one(made_of, value, part);
  return part;
}

/* Gives the product the parts of its operands. */
static void take_step(product_t *p, const int axes[2], const step_t *step) {
  MlirOperation whole[2];
  for (int i = 0; i < 2; i++) {
    MlirValue value = mlirOperationGetOperand(p->mma, i);
    tw_map_t made_of = {0};
    whole[i] = tw_def(value);
    mlirOperationSetOperand(p->mma, i, build_part(p, value, axes[i], step, &made_of));
    tw_map_free(&made_of);
  }
  tw_erase_dead(whole[0]);
  if (!mlirOperationEqual(whole[0], whole[1]))
    tw_erase_dead(whole[1]);
}

/* ---- the loop over steps ------------------------------------------------------------------------------------ */

/* Whether the op only serves others of its block. */
static bool stays_inside(MlirOperation op, MlirBlock block) {
  MlirOperation yield = mlirBlockGetTerminator(block);
  if (tw_may_write_arrays(op) || mlirOperationGetNumRegions(op) > 0)
    return false;
  for (intptr_t r = 0; r < mlirOperationGetNumResults(op); r++)
    TW_EACH_USE(use, mlirOperationGetResult(op, r))
      if (mlirOperationEqual(mlirOpOperandGetOwner(use), yield))
        return false;
  return true;
}

static bool counts_few(MlirValue trips, int64_t extent) {
  int64_t known, divisor;
  MlirOperation op = tw_def(trips);
  if (tw_known_int(trips, &known))
    return known <= INT32_MAX / extent;
  return !mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_CEILDIVSI) &&
         tw_known_int(mlirOperationGetOperand(op, 1), &divisor) && divisor >= extent;
}

/* The loop that does nothing but this product in each iteration, counted from zero; null if there is none. */
static MlirOperation own_loop(const product_t *p) {
  int64_t first, step;
  MlirBlock block = mlirOperationGetBlock(p->mma);
  MlirOperation loop = mlirBlockGetParentOperation(block), yield = mlirBlockGetTerminator(block);
  if (!tw_op_is(loop, TW_SCF_FOR) || mlirOperationGetNumResults(loop) != 1 ||
      !mlirTypeEqual(mlirValueGetType(tw_loop_iv(loop)), tw_i32(mlirOperationGetContext(loop))))
    return tw_null_op();
  bool counts = tw_known_int(mlirOperationGetOperand(loop, 0), &first) && first == 0 &&
                tw_known_int(mlirOperationGetOperand(loop, 2), &step) && step == 1 &&
                counts_few(mlirOperationGetOperand(loop, 1), p->extent);
  bool adds = mlirValueEqual(mlirOperationGetOperand(p->mma, 2), tw_carried(loop, 0)) &&
              mlirOperationEqual(tw_only_user(tw_carried(loop, 0)), p->mma) &&
              mlirOperationEqual(tw_only_user(mlirOperationGetResult(p->mma, 0)), yield);
  for (MlirOperation op = mlirBlockGetFirstOperation(block); adds && !mlirOperationEqual(op, yield);
       op = mlirOperationGetNextInBlock(op))
    adds = mlirOperationEqual(op, p->mma) || stays_inside(op, block);
  return counts && adds ? loop : tw_null_op();
}

/* The loop's iterations become steps. */
static step_t count_steps(const product_t *p, MlirOperation loop) {
  tw_builder_t before = tw_build_before(loop), at = tw_build_before(mlirBlockGetFirstOperation(tw_loop_body(loop)));
  MlirType i32 = tw_i32(at.context);
  MlirValue end = mlirOperationGetOperand(loop, 1), iv = tw_loop_iv(loop);
  mlirOperationSetOperand(loop, 1, tw_binary(&before, "arith.muli", i32, end, tw_const_int(&before, i32, parts_of(p))));
  MlirValue tile = tw_binary(&at, "arith.shrui", i32, iv, tw_const_int(&at, i32, tw_log2(parts_of(p))));
  MlirValue number = tw_binary(&at, "arith.andi", i32, iv, tw_const_int(&at, i32, parts_of(p) - 1));
  for (MlirOpOperand use = mlirValueGetFirstUse(iv), next; !mlirOpOperandIsNull(use); use = next) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    next = mlirOpOperandGetNextUse(use);
    if (!mlirOperationEqual(user, tw_def(tile)) && !mlirOperationEqual(user, tw_def(number)))
      mlirOperationSetOperand(user, mlirOpOperandGetOperandNumber(use), tile);
  }
  return (step_t){.number = number, .of_loop = iv, .tile = tile};
}

/* A loop of the product alone, around it. */
static step_t wrap(const product_t *p) {
  tw_builder_t before = tw_build_before(p->mma);
  MlirType i32 = tw_i32(before.context), type = mlirValueGetType(mlirOperationGetResult(p->mma, 0));
  MlirType arguments[] = {i32, type};
  MlirLocation locations[] = {before.location, before.location};
  MlirBlock body = mlirBlockCreate(2, arguments, locations);
  MlirValue operands[] = {tw_const_int(&before, i32, 0), tw_const_int(&before, i32, parts_of(p)),
                          tw_const_int(&before, i32, 1), mlirOperationGetOperand(p->mma, 2)};
  MlirOperation loop = tw_build_for(&before, TW_FOR_INITS + 1, operands, tw_region_with(body));
  MlirValue sum = mlirOperationGetResult(p->mma, 0);
  mlirValueReplaceAllUsesOfWith(sum, mlirOperationGetResult(loop, 0));
  tw_builder_t at = tw_build_at_end(body, before.location);
  MlirOperation yield = tw_build(&at, "scf.yield", (tw_op_parts_t){.num_operands = 1, .operands = &sum});
  mlirOperationMoveBefore(p->mma, yield);
  mlirOperationSetOperand(p->mma, 2, tw_carried(loop, 0));
  return (step_t){.number = tw_loop_iv(loop)};
}

/* ---- the pass ----------------------------------------------------------------------------------------------- */

/* The product in steps of so many bytes; false where it is done in one. */
static bool in_steps(MlirOperation mma, int64_t bytes, product_t *p) {
  MlirType lhs = mlirValueGetType(mlirOperationGetOperand(mma, 0));
  *p = (product_t){.mma = mma, .extent = tw_extent(lhs, tw_rank(lhs) - 1)};
  p->part = tw_bytes(lhs) > 0 ? bytes / tw_bytes(lhs) : p->extent;
  return p->extent > p->part;
}

/* The axes of k of the operands. */
static void put_axes(const product_t *p, int axes[2]) {
  axes[0] = (int)tw_rank(mlirValueGetType(mlirOperationGetOperand(p->mma, 0))) - 1;
  axes[1] = axes[0] - 1;
}

static bool can_step(product_t *p) {
  bool ok = true;
  int axes[2];
  put_axes(p, axes);
  for (int i = 0; ok && i < 2; i++) {
    tw_map_free(&p->axes);
    p->axes = (tw_map_t){0};
    ok = has_parts(p, mlirOperationGetOperand(p->mma, i), axes[i]);
  }
  tw_map_free(&p->axes);
  return ok;
}

static void walk(MlirOperation mma, int64_t bytes) {
  product_t p;
  int axes[2];
  if (!in_steps(mma, bytes, &p))
    return;
  if (!can_step(&p)) {
    tw_op_remark(mma, "stays whole: its operands are no tiles of arrays, of which a part would do at a time");
    return;
  }
  tw_op_remark(mma, "is done in %d steps of %d along k", (int)parts_of(&p), (int)p.part);
  put_axes(&p, axes);
  MlirOperation loop = own_loop(&p);
  step_t step = mlirOperationIsNull(loop) ? wrap(&p) : count_steps(&p, loop);
  take_step(&p, axes, &step);
}

/* Whether the loop that does nothing but the product loads both operands for it. */
static bool loads_both(const product_t *p, MlirOperation loop) {
  for (int i = 0; i < 2; i++) {
    MlirOperation load = tw_load_behind(mlirOperationGetOperand(p->mma, i));
    if (mlirOperationIsNull(load) || !mlirBlockEqual(mlirOperationGetBlock(load), tw_loop_body(loop)))
      return false;
  }
  return true;
}

static bool have_steps(MlirOperation func, int64_t bytes, bool iterations) {
  tw_ops_t products = tw_ops_in(func, tw_op_is_product, MlirWalkPreOrder);
  product_t p;
  bool ok = true;
  for (int i = 0; ok && i < products.count; i++) {
    if (!in_steps(products.at[i], bytes, &p))
      continue;
    MlirOperation loop = iterations ? own_loop(&p) : tw_null_op();
    ok = can_step(&p) && (!iterations || (!mlirOperationIsNull(loop) && loads_both(&p, loop)));
  }
  tw_ops_free(&products);
  return ok;
}

bool tw_product_has_steps(MlirOperation product, int64_t bytes) {
  product_t p;
  return in_steps(product, bytes, &p) && can_step(&p);
}

bool tw_products_have_steps(MlirOperation func, int64_t bytes) { return have_steps(func, bytes, false); }

bool tw_steps_are_iterations(MlirOperation func, int64_t bytes) { return have_steps(func, bytes, true); }

bool tw_strip_mine_products(MlirOperation func) {
  int64_t bytes = tw_attr_int(func, TW_PRODUCT_STEP_ATTR, 0);
  if (bytes <= 0)
    return true;
  if (bytes < (int64_t)sizeof(double) || (bytes & (bytes - 1))) {
    tw_op_error(func, "has tile.product_step of %lld bytes; it is a power of two that has room for any element",
                (long long)bytes);
    return false;
  }
  tw_ops_t products = tw_ops_in(func, tw_op_is_product, MlirWalkPreOrder);
  for (int i = 0; i < products.count; i++)
    walk(products.at[i], bytes);
  tw_ops_free(&products);
  return true;
}
