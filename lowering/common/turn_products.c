/* turn_products.c - in tile-canonicalize: a sum of products that is only read transposed is summed transposed
 *
 *   before   %r = scf.for ... iter_args(%x = %zero : 256x128) {   after   %r = scf.for ... iter_args(%x = %zero :
 * 128x256) { %a = tile.load %A[%i, %k] : 128x64                           %a = tile.load %A[%i, %k] %b = tile.load
 * %B[%k, %j] : 64x256                           %b = tile.load %B[%k, %j] %l = tile.permute %b [1, 0] %t = tile.permute
 * %a [1, 0] yield tile.mma %l, %t, %x                                    yield tile.mma %a, %b, %x } } %n =
 * arith.truncf %r : 256x128                               %n = arith.truncf %r : 128x256 tile.store (tile.permute %n
 * [1, 0]), %C[%i, %j]              tile.store %n, %C[%i, %j]
 *
 * The transpose of a product is the product of the transposes in the other order, and adds up the same numbers. A sum
 * that is turned behind the loop is stored eight columns at a time.
 *
 * What must hold: the loop carries the sum from zero, and only products read it; behind the loop transposes and stores
 * of it do, maybe of what is computed of it and of numbers that are alike in all elements, in rows or in columns. The
 * left operand comes from memory as it is: one that is computed stays in registers there. Both operands lie transposed,
 * or have 16 bits an element, which instructions take in either order. The sum has 64 rows then, too, as instructions
 * have: a product of few rows is turned by its program to have them as columns. */
#include "lowering/common/turn_products.h"
#include "lowering/common/canonicalize.h"
#include "lowering/loops.h"

enum { LEAST_ROWS = 64, EITHER_ORDER = 16, DEPTH = 8 };

static MlirType turned_type(MlirType type) {
  int64_t shape[] = {tw_extent(type, 1), tw_extent(type, 0)};
  return tw_tile_type(tw_element(type), 2, shape);
}

static bool has_turned_order(MlirOperation op) {
  static const int32_t order[] = {1, 0};
  return mlirAttributeEqual(tw_attr(op, "order"), mlirDenseI32ArrayGet(mlirOperationGetContext(op), 2, order));
}

static bool is_transpose(MlirOperation op) { return tw_op_form(op) == TW_FORM_VIEW && has_turned_order(op); }

/* A load or store of a matrix that lies transposed in an array of two axes. */
static bool is_turned_load(MlirOperation op) {
  return tw_op_loads_tile(op) && has_turned_order(op) && mlirOperationGetNumOperands(op) == 3;
}
static bool is_turned_store(MlirOperation op) {
  return tw_op_stores_tile(op) && has_turned_order(op) && mlirOperationGetNumOperands(op) == 4;
}

/* The access of the transpose. */
static void turn_access(MlirOperation op) {
  MlirValue row = mlirOperationGetOperand(op, 1), column = mlirOperationGetOperand(op, 2);
  mlirOperationSetOperand(op, 1, column);
  mlirOperationSetOperand(op, 2, row);
  mlirOperationRemoveAttributeByName(op, tw_str("order"));
}

/* ---- a sum and its products -------------------------------------------------------------------------- */

tw_ops_t tw_products_of_sum(MlirOperation loop, intptr_t i) {
  tw_ops_t products = {0};
  MlirOperation yield = tw_loop_yield(loop);
  for (MlirOperation op = tw_only_user(tw_carried(loop, i)); !mlirOperationEqual(op, yield);
       op = tw_only_user(mlirOperationGetResult(op, 0)))
    tw_ops_add(&products, op);
  return products;
}

static MlirValue turned_operand(const tw_builder_t *at, MlirValue value) {
  MlirOperation load = tw_def(value);
  if (mlirOperationIsNull(load) || !is_turned_load(load))
    return tw_transposed(at, value);
  MlirOperation copy = mlirOperationClone(load);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(load), load, copy);
  turn_access(copy);
  mlirValueSetType(mlirOperationGetResult(copy, 0), turned_type(mlirValueGetType(value)));
  return mlirOperationGetResult(copy, 0);
}

static void turn_product(MlirOperation mma) {
  tw_builder_t at = tw_build_before(mma);
  MlirValue lhs = mlirOperationGetOperand(mma, 0), rhs = mlirOperationGetOperand(mma, 1);
  mlirOperationSetOperand(mma, 0, turned_operand(&at, rhs));
  mlirOperationSetOperand(mma, 1, turned_operand(&at, lhs));
  mlirValueSetType(mlirOperationGetResult(mma, 0), turned_type(mlirValueGetType(mlirOperationGetResult(mma, 0))));
  tw_erase_dead(tw_def(lhs));
  if (!mlirValueEqual(lhs, rhs))
    tw_erase_dead(tw_def(rhs));
}

MlirValue tw_turn_sum(MlirOperation loop, intptr_t i, const tw_ops_t *products) {
  tw_builder_t before = tw_build_before(loop), after = tw_build_before(mlirOperationGetNextInBlock(loop));
  MlirValue sum = mlirOperationGetResult(loop, i), old = tw_carried_init(loop, i);
  MlirType type = turned_type(mlirValueGetType(sum));
  after.location = mlirOperationGetLocation(loop);
  mlirOperationSetOperand(loop, i + TW_FOR_INITS,
                          tw_is_float(type) ? tw_const_float(&before, type, 0) : tw_const_int(&before, type, 0));
  tw_erase_dead(tw_def(old));
  mlirValueSetType(tw_carried(loop, i), type);
  mlirValueSetType(sum, type);
  for (int p = 0; p < products->count; p++)
    turn_product(products->at[p]);
  MlirValue result = tw_transposed(&after, sum);
  MlirOperation permute = tw_def(result);
  mlirValueReplaceAllUsesExcept(sum, result, 1, &permute);
  return result;
}

/* ---- whether it is read transposed ----------------------------------------------------------------- */

/* A row or column, repeated. */
static bool is_along_an_axis(MlirValue value) {
  MlirOperation op = tw_def(value);
  if (mlirOperationIsNull(op) || tw_op_form(op) != TW_FORM_VIEW)
    return false;
  MlirType from = mlirValueGetType(mlirOperationGetOperand(op, 0)), to = mlirValueGetType(value);
  bool is = tw_rank(from) == 2 && tw_count(from) < tw_count(to);
  for (intptr_t d = 0; is && d < 2; d++)
    is = tw_extent(from, d) == 1 || tw_extent(from, d) == tw_extent(to, d);
  return is;
}

/* Whether it costs nothing to have the transpose of what is computed with a sum. */
static bool turns_for_free(MlirValue value) {
  int64_t integer;
  double number;
  return tw_known_int(value, &integer) || tw_known_float(value, &number) || is_along_an_axis(value);
}

static bool is_read_turned(MlirValue value, int depth);

static bool is_computed_and_read_turned(MlirOperation op, MlirValue value, int depth) {
  if (depth == 0 || tw_op_form(op) != TW_FORM_ELEMENTWISE || mlirOperationGetNumResults(op) != 1 ||
      mlirOperationGetNumRegions(op) != 0)
    return false;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirValue operand = mlirOperationGetOperand(op, i);
    if (!mlirValueEqual(operand, value) && !turns_for_free(operand))
      return false;
  }
  return is_read_turned(mlirOperationGetResult(op, 0), depth - 1);
}

/* Whether nothing reads a value but what wants its transpose, or computes something of it that only that reads. */
static bool is_read_turned(MlirValue value, int depth) {
  TW_EACH_USE(use, value) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    if (!is_transpose(user) && !is_turned_store(user) && !is_computed_and_read_turned(user, value, depth))
      return false;
  }
  return !tw_is_unused(value);
}

/* ---- reading it as it is --------------------------------------------------------------------------- */

static MlirValue turned_beside(const tw_builder_t *at, MlirValue value) {
  if (!is_along_an_axis(value))
    return tw_transposed(at, value);
  MlirValue line = mlirOperationGetOperand(tw_def(value), 0);
  return tw_broadcast(at, turned_type(mlirValueGetType(value)),
                      tw_reshape(at, turned_type(mlirValueGetType(line)), line));
}

static void read_turned(MlirValue value, MlirValue turned);

static void read_by(MlirOperation user, MlirValue value, MlirValue turned) {
  if (is_transpose(user)) {
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(user, 0), turned);
    mlirOperationDestroy(user);
    return;
  }
  if (tw_op_stores_tile(user)) {
    turn_access(user);
    mlirOperationSetOperand(user, mlirOperationGetNumOperands(user) - 1, turned);
    return;
  }
  tw_builder_t at = tw_build_before(user);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(user); i++) {
    MlirValue operand = mlirOperationGetOperand(user, i);
    mlirOperationSetOperand(user, i, mlirValueEqual(operand, value) ? turned : turned_beside(&at, operand));
  }
  MlirValue result = mlirOperationGetResult(user, 0);
  mlirValueSetType(result, turned_type(mlirValueGetType(result)));
  read_turned(result, result);
}

/* All that read `value` have its transpose from now on. */
static void read_turned(MlirValue value, MlirValue turned) {
  tw_ops_t users = {0};
  TW_EACH_USE(use, value) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    bool known = false;
    for (int i = 0; i < users.count; i++)
      known = known || mlirOperationEqual(users.at[i], user);
    if (!known)
      tw_ops_add(&users, user);
  }
  for (int i = 0; i < users.count; i++)
    read_by(users.at[i], value, turned);
  tw_ops_free(&users);
}

/* ---- which are turned ------------------------------------------------------------------------------ */

/* Whether an operand comes from memory as it is. */
static bool is_loaded(MlirValue operand) {
  MlirOperation op = tw_def(operand);
  while (!mlirOperationIsNull(op) && tw_op_form(op) == TW_FORM_VIEW)
    op = tw_def(mlirOperationGetOperand(op, 0));
  return !mlirOperationIsNull(op) && tw_op_loads(op);
}

/* Whether the transpose of an operand is no worse: it is what lies in memory, or has 16 bits. */
static bool turns_well(MlirValue operand) {
  MlirOperation op = tw_def(operand);
  return tw_bits(mlirValueGetType(operand)) == EITHER_ORDER ||
         (!mlirOperationIsNull(op) && (is_transpose(op) || is_turned_load(op)));
}

static bool may_turn(MlirOperation mma) {
  return mlirOperationGetNumOperands(mma) == 3 && is_loaded(mlirOperationGetOperand(mma, 0)) &&
         turns_well(mlirOperationGetOperand(mma, 0)) && turns_well(mlirOperationGetOperand(mma, 1));
}

static void turn(MlirOperation loop, intptr_t i) {
  MlirValue sum = mlirOperationGetResult(loop, i);
  MlirType type = mlirValueGetType(sum);
  if (!tw_is_tile(type) || tw_rank(type) != 2 || tw_extent(type, 1) < LEAST_ROWS || !tw_sums_products(loop, i) ||
      !is_read_turned(sum, DEPTH))
    return;
  tw_ops_t products = tw_products_of_sum(loop, i);
  bool all = products.count > 0;
  for (int p = 0; p < products.count; p++)
    all = all && may_turn(products.at[p]);
  if (all) {
    MlirValue read = tw_turn_sum(loop, i, &products);
    read_turned(read, sum);
    mlirOperationDestroy(tw_def(read));
  }
  tw_ops_free(&products);
}

void tw_turn_products(MlirOperation func) {
  tw_ops_t loops = tw_loops_in(func, MlirWalkPostOrder);
  for (int l = 0; l < loops.count; l++)
    for (intptr_t i = 0; i < mlirOperationGetNumResults(loops.at[l]); i++)
      turn(loops.at[l], i);
  tw_ops_free(&loops);
}
