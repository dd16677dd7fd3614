/* batch_of_one.c - in tile-canonicalize: products of a batch of one are products of matrices
 *
 *   before   scf.for ... iter_args(%x = %zero : 1x128x256) {  after   scf.for ... iter_args(%x = %zero : 128x256) {
 *              %a = tile.load %A[%z, %i, %k] : 1x128x64                 %a = tile.reshape (tile.load ...) : 128x64
 *              %b = tile.load %B[%z, %k, %j] : 1x64x256                 %b = tile.reshape (tile.load ...) : 64x256
 *              yield tile.mma %a, %b, %x                                yield tile.mma %a, %b, %x
 *            }                                                        }
 *                                                                     ... tile.reshape of what it leaves
 *
 * Products of a batch run one by one on warps, whose Tensor Core instructions have small tiles and wait for each other;
 * those of matrices have all plans. A transposed operand is transposed as a matrix, also where the program makes a
 * matrix of what it has transposed (a product reads a loaded tile where it lies, transposed or not). What a loop
 * carries to add products to is a matrix, too, in loops around loops. Other ops stay as they are: a view costs nothing.
 */
#include "lowering/common/canonicalize.h"
#include "lowering/loops.h"

/* Without the first axis, which has one element; null for another type. */
static MlirType matrix_type(MlirType type) {
  int64_t shape[] = {0, 0};
  if (!tw_is_tile(type) || tw_rank(type) != 3 || tw_extent(type, 0) != 1)
    return (MlirType){NULL};
  for (intptr_t d = 0; d < 2; d++)
    shape[d] = tw_extent(type, d + 1);
  return tw_tile_type(tw_element(type), 2, shape);
}

static bool has_matrix(MlirValue value) { return !mlirTypeIsNull(matrix_type(mlirValueGetType(value))); }

static bool is_product_of_one(MlirOperation op) {
  bool is = tw_op_is_product(op) && mlirOperationGetNumOperands(op) == 3;
  for (intptr_t i = 0; is && i < mlirOperationGetNumOperands(op); i++)
    is = has_matrix(mlirOperationGetOperand(op, i));
  return is;
}

static bool turns_matrix(MlirOperation op) {
  static const int32_t order[] = {0, 2, 1};
  MlirAttribute turned = mlirDenseI32ArrayGet(mlirOperationGetContext(op), 3, order);
  return tw_op_form(op) == TW_FORM_VIEW && mlirAttributeEqual(tw_attr(op, "order"), turned);
}

/* Whether a value is another one seen with more axes, or with fewer. */
static bool is_view_of(MlirValue value, MlirType from) {
  MlirOperation op = tw_def(value);
  return !mlirOperationIsNull(op) && tw_op_form(op) == TW_FORM_VIEW &&
         mlirTypeEqual(mlirValueGetType(mlirOperationGetOperand(op, 0)), from);
}

/* The same as a matrix. */
static MlirValue matrix_of(const tw_builder_t *at, MlirValue value) {
  MlirType type = matrix_type(mlirValueGetType(value));
  MlirOperation op = tw_def(value);
  if (!mlirOperationIsNull(op) && turns_matrix(op) && has_matrix(mlirOperationGetOperand(op, 0)))
    return tw_transposed(at, matrix_of(at, mlirOperationGetOperand(op, 0)));
  return is_view_of(value, type) ? mlirOperationGetOperand(op, 0) : tw_reshape(at, type, value);
}

static void multiply_matrices(MlirOperation product) {
  tw_builder_t at = tw_build_before(product);
  MlirValue result = mlirOperationGetResult(product, 0);
  MlirOperation copy = mlirOperationClone(product);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(product); i++)
    mlirOperationSetOperand(copy, i, matrix_of(&at, mlirOperationGetOperand(product, i)));
  mlirValueSetType(mlirOperationGetResult(copy, 0), matrix_type(mlirValueGetType(result)));
  mlirBlockInsertOwnedOperationBefore(at.block, product, copy);
  mlirValueReplaceAllUsesOfWith(result, tw_reshape(&at, mlirValueGetType(result), mlirOperationGetResult(copy, 0)));
  mlirOperationDestroy(product);
}

/* ---- matrices that the program makes itself ---------------------------------------------------------- */

/* Whether it makes a matrix of a batch of one that was transposed as one. */
static bool takes_turned(MlirOperation op) {
  if (tw_op_form(op) != TW_FORM_VIEW || mlirOperationGetNumOperands(op) != 1)
    return false;
  MlirValue batch = mlirOperationGetOperand(op, 0);
  MlirType type = matrix_type(mlirValueGetType(batch));
  MlirOperation turn = tw_def(batch);
  return !mlirTypeIsNull(type) && mlirTypeEqual(type, mlirValueGetType(mlirOperationGetResult(op, 0))) &&
         !mlirOperationIsNull(turn) && turns_matrix(turn) && has_matrix(mlirOperationGetOperand(turn, 0));
}

static void turn_matrices(MlirOperation func) {
  tw_ops_t views = tw_ops_in(func, takes_turned, MlirWalkPreOrder);
  for (int i = 0; i < views.count; i++) {
    tw_builder_t at = tw_build_before(views.at[i]);
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(views.at[i], 0),
                                  matrix_of(&at, mlirOperationGetOperand(views.at[i], 0)));
    mlirOperationDestroy(views.at[i]);
  }
  tw_ops_free(&views);
}

/* ---- what loops carry -------------------------------------------------------------------------------- */

/* A use of a value that makes a matrix of it; null if there is none. */
static MlirOperation use_as_matrix(MlirValue value, MlirType type) {
  for (MlirOpOperand use = mlirValueGetFirstUse(value); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    if (tw_op_form(user) == TW_FORM_VIEW && mlirTypeEqual(mlirValueGetType(mlirOperationGetResult(user, 0)), type))
      return user;
  }
  return tw_null_op();
}

/* The value is a matrix from now on: uses as one have it, others a view, built in front of `next`. */
static void becomes_matrix(MlirValue value, MlirType type, MlirOperation next) {
  tw_builder_t at = tw_build_before(next);
  MlirType wide = mlirValueGetType(value);
  mlirValueSetType(value, type);
  MlirValue view = tw_reshape(&at, wide, value);
  MlirOperation made = tw_def(view);
  mlirValueReplaceAllUsesExcept(value, view, 1, &made);
  for (MlirOperation use = use_as_matrix(view, type); !mlirOperationIsNull(use); use = use_as_matrix(view, type)) {
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(use, 0), value);
    mlirOperationDestroy(use);
  }
  if (tw_is_unused(view))
    mlirOperationDestroy(made);
}

static void carry_matrix(MlirOperation loop, intptr_t i) {
  MlirValue inside = tw_carried(loop, i), next = tw_carried_next(loop, i), left = mlirOperationGetResult(loop, i);
  MlirType type = matrix_type(mlirValueGetType(inside));
  if (mlirTypeIsNull(type) || !is_view_of(next, type) || mlirOperationIsNull(use_as_matrix(inside, type)))
    return;
  tw_builder_t before = tw_build_before(loop);
  mlirOperationSetOperand(loop, i + TW_FOR_INITS, matrix_of(&before, tw_carried_init(loop, i)));
  mlirOperationSetOperand(tw_loop_yield(loop), i, mlirOperationGetOperand(tw_def(next), 0));
  becomes_matrix(left, type, mlirOperationGetNextInBlock(loop));
  becomes_matrix(inside, type, mlirBlockGetFirstOperation(tw_loop_body(loop)));
}

void tw_make_matrices(MlirOperation func) {
  turn_matrices(func);
  tw_ops_t products = tw_ops_in(func, is_product_of_one, MlirWalkPreOrder);
  for (int i = 0; i < products.count; i++)
    multiply_matrices(products.at[i]);
  tw_ops_free(&products);
  tw_ops_t loops = tw_loops_in(func, MlirWalkPostOrder);
  for (int l = 0; l < loops.count; l++)
    for (intptr_t i = 0; i < mlirOperationGetNumResults(loops.at[l]); i++)
      carry_matrix(loops.at[l], i);
  tw_ops_free(&loops);
}
