/* early_products.c - tile-specialize-warps: a product starts before what is loaded for later
 *
 * Before, a consumer loads the tiles that its next operand is made of (tile-pipeline-mma), and only then starts the
 * product on the one that it has: the Tensor Core idles until the loads are there and the fence of their buffer passed.
 *
 *   scf.for ... iter_args(%acc, %p) {
 *     tile.barrier_wait %x[..] ; %t = tile.local_load %a[..] ; tile.barrier_arrive ...
 *     tile.barrier_wait %y[..] ; %d = tile.async_mma %p, %b[..], %acc
 *     %q = ... %t ... ; tile.mma_wait %d, 0 with %q ...
 *   }
 *
 * After, the product runs meanwhile:
 *
 *   scf.for ... iter_args(%acc, %p) {
 *     tile.barrier_wait %y[..] ; %d = tile.async_mma %p, %b[..], %acc
 *     tile.barrier_wait %x[..] ; %t = tile.local_load %a[..] ; tile.barrier_arrive ...
 *     %q = ... %t ... ; tile.mma_wait %d, 0 with %q ...
 *   }
 *
 * So does a product of two tiles in shared memory that its iteration waits for, if numbers which are loaded an
 * iteration early (tile-prefetch-loads) are read behind the wait, too: they, their places and what is made of them come
 * beside it. (Where they are only read in front of the wait, the assembler puts that in front of the product, and what
 * is loaded behind it has come too late for the next one: docs/design/measurements.md.)
 *
 * What must hold: a product on an operand that the loop carries has 128 columns or fewer, and is as short as the loads
 * then, or little is computed for the next operand: four words an element. (Where that is more, a warpgroup is not done
 * with it when the other one's product is, and is slower if it begins later: docs/design/measurements.md.) All that the
 * product and its waits read is computed without memory, and nothing but loads and barriers of stages of other buffers
 * stands between: where a load reads the product's stage first, the wait for that stands in front of the load, and
 * holds the product, too. The order of products stays. */
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/facts/roles.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/roles/specialize_warps.h"
#include "lowering/ir.h"
#include "lowering/loops.h"

static bool waits_for_stage(MlirOperation op) { return tw_op_is(op, TW_TILE_BARRIER_WAIT); }

static bool may_be_passed(MlirOperation op) {
  return tw_is_arithmetic(op) || tw_is_constant(op) || tw_op_loads(op) || waits_for_stage(op) ||
         tw_op_is(op, TW_TILE_LOCAL_LOAD) || tw_op_is(op, TW_TILE_BARRIER_ARRIVE);
}

/* Whether a value, or a view of it, is read behind `wait`. */
static bool is_read_behind(MlirValue value, MlirOperation wait) {
  TW_EACH_USE(use, value) {
    MlirOperation user = mlirOpOperandGetOwner(use), around = tw_ancestor_in(user, mlirOperationGetBlock(wait));
    bool views = tw_op_form(user) == TW_FORM_VIEW || tw_op_is(user, TW_TENSOR_SPLAT);
    if (mlirOperationIsBeforeInBlock(wait, around) || (views && is_read_behind(mlirOperationGetResult(user, 0), wait)))
      return true;
  }
  return false;
}

/* Whether the iteration waits for the product, which finds both of its operands in shared memory, and reads what comes
 * early behind that. */
static bool is_waited_for(MlirOperation product) {
  MlirOperation wait = tw_only_user(mlirOperationGetResult(product, 0));
  if (tw_mma_reads_registers(product) || mlirOperationIsNull(wait) || !tw_op_waits_for_products(wait) ||
      !mlirBlockEqual(mlirOperationGetBlock(wait), mlirOperationGetBlock(product)) ||
      tw_attr_int(wait, "pending", 0) != 0)
    return false;
  for (MlirOperation op = mlirBlockGetFirstOperation(mlirOperationGetBlock(product)); !mlirOperationEqual(op, product);
       op = mlirOperationGetNextInBlock(op))
    if (tw_op_is(op, TW_TILE_SETTLE) && is_read_behind(mlirOperationGetResult(op, 0), wait))
      return true;
  return false;
}

/* Where a product stands, and where it may. */
typedef struct {
  MlirOperation first; /* what the product may stand in front of, as far as effects say */
  MlirOperation waits; /* the first of the waits right in front of it, or the product */
  bool loads;          /* tiles come between the two */
} early_place_t;

/* The first of the waits right in front of the product; the product if there are none. */
static MlirOperation first_wait(MlirOperation product) {
  MlirOperation first = mlirBlockGetFirstOperation(mlirOperationGetBlock(product));
  for (MlirOperation op = first; !mlirOperationEqual(op, product); op = mlirOperationGetNextInBlock(op))
    first = waits_for_stage(op) ? first : mlirOperationGetNextInBlock(op);
  return first;
}

/* Whether one of the waits in front of the product is for the same multi-stage buffer, whose stages come in order. */
static bool shares_buffer(MlirOperation wait, MlirOperation waits, MlirOperation product) {
  for (MlirOperation op = waits; !mlirOperationEqual(op, product); op = mlirOperationGetNextInBlock(op))
    if (mlirValueEqual(mlirOperationGetOperand(op, 0), mlirOperationGetOperand(wait, 0)))
      return true;
  return false;
}

/* Whether the product reads the stage that the wait is for: another reader stood in front of it, so that the wait does,
 * too. */
static bool is_for_its_stage(MlirOperation wait, MlirOperation product) {
  MlirValue stage = mlirOperationGetOperand(wait, 1);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(product); i++)
    if (tw_is_same_number(mlirOperationGetOperand(product, i), stage))
      return true;
  return false;
}

static bool holds(MlirOperation wait, MlirOperation waits, MlirOperation product) {
  return waits_for_stage(wait) && (shares_buffer(wait, waits, product) || is_for_its_stage(wait, product));
}

static early_place_t place_of(MlirOperation product) {
  MlirOperation op = mlirBlockGetFirstOperation(mlirOperationGetBlock(product));
  early_place_t place = {op, first_wait(product), false};
  for (; !mlirOperationEqual(op, place.waits); op = mlirOperationGetNextInBlock(op)) {
    bool passed = may_be_passed(op) && !holds(op, place.waits, product);
    bool loads = tw_op_is(op, TW_TILE_LOCAL_LOAD) || (tw_op_loads(op) && is_waited_for(product));
    place.loads = passed && (place.loads || loads);
    place.first = passed ? place.first : mlirOperationGetNextInBlock(op);
  }
  return place;
}

/* The product, its waits, and what they read; false if some of that is loaded. */
static bool find_needed(const early_place_t *place, MlirOperation product, tw_slice_t *out) {
  for (MlirOperation op = place->waits; !mlirOperationEqual(op, product); op = mlirOperationGetNextInBlock(op))
    tw_slice_add_op(out, op);
  tw_slice_add_op(out, product);
  for (MlirOperation op = place->first; !mlirOperationEqual(op, place->waits); op = mlirOperationGetNextInBlock(op))
    if (tw_slice_has(out, op) && !tw_is_arithmetic(op) && !tw_is_constant(op))
      return false;
  return true;
}

static void start_early(MlirOperation product) {
  early_place_t place = place_of(product);
  tw_slice_t needed = {.block = mlirOperationGetBlock(product)};
  bool may = place.loads && find_needed(&place, product, &needed);
  for (MlirOperation op = place.first, next; may && !mlirOperationEqual(op, product); op = next) {
    next = mlirOperationGetNextInBlock(op);
    if (tw_slice_has(&needed, op))
      mlirOperationMoveBefore(op, place.first);
  }
  if (may)
    mlirOperationMoveBefore(product, place.first);
  tw_slice_free(&needed);
}

/* Bits that a thread writes for each element of what the loop will carry as the product's operand. */
static int64_t bits_written(MlirOperation product) {
  MlirOperation loop = mlirOperationGetParentOperation(product);
  intptr_t position = tw_carried_position(loop, mlirOperationGetOperand(product, 0));
  return position < 0 ? 0 : tw_bits_computed(tw_loop_body(loop), tw_carried_next(loop, position));
}

static bool gains(MlirOperation op) {
  enum { SHORT_COLUMNS = 128, WORD_BITS = 32, FEW_BITS = 4 * WORD_BITS };
  if (!tw_op_is_async_product(op) || !tw_op_is(mlirOperationGetParentOperation(op), TW_SCF_FOR))
    return false;
  if (!tw_mma_reads_registers(op))
    return is_waited_for(op);
  bool short_ = tw_extent(mlirValueGetType(mlirOperationGetResult(op, 0)), 1) <= SHORT_COLUMNS;
  return short_ || bits_written(op) <= FEW_BITS;
}

bool tw_early_products(MlirOperation func) {
  MlirOperation roles = tw_roles_of(func);
  if (mlirOperationIsNull(roles))
    return true;
  tw_ops_t products = tw_ops_in(roles, gains, MlirWalkPreOrder);
  for (int i = 0; i < products.count; i++)
    start_early(products.at[i]);
  tw_ops_free(&products);
  return true;
}
