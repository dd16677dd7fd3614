/* unwrap_indices.c - part of tile-resize-tiles: rows that a program wraps around are cut off where nothing shows them
 *
 *   before   %m = splat(%i * 128) + iota                      after   %m = splat(%i * 128) + iota
 *            %t = tile.gather %A[%m % %M, %c] mask %in                %t = tile.gather %A[%m, %c] mask %in & (%m < %M)
 *            %s = tile.mma %t, %b, %acc                               %s = tile.mma %t, %b, %acc
 *            tile.scatter %s, %C[%m, %n] mask %m < %M                 tile.scatter %s, %C[%m, %n] mask %m < %M
 *
 * Programs wrap indices around so that they need no mask. Then rows are gathered one by one; with the mask they are a
 * tile. What must hold: the index is not negative before it is wrapped around, and each element for which it is M or
 * more ends, by way of products of its row or column, loops, and ops on single elements, where a mask leaves it out. */
#include "lowering/gpu/facts/grouped_order.h"
#include "lowering/gpu/grid/index_masks.h"
#include "lowering/gpu/grid/resize_tiles.h"
#include "lowering/index_terms.h"
#include "lowering/loops.h"

/* An index that is wrapped around, before that, and what it is wrapped around at; both along axis 0. */
typedef struct {
  tw_index_sum_t index, end;
} wrapped_t;

static bool read_wrapped(MlirValue tile, wrapped_t *out) {
  tw_by_factor_t by;
  if (!tw_read_rest(tile, &by) || !tw_read_index_sum(by.x, &out->index) || !tw_index_is_natural(&out->index))
    return false;
  if (mlirValueIsNull(by.by.value)) {
    const tw_index_term_t number = {.factor = by.by.number, .axis = -1};
    out->end = (tw_index_sum_t){.count = 0};
    return tw_index_add_term(&out->end, &number, 1);
  }
  return tw_read_index_sum(by.by.value, &out->end) && tw_index_is_uniform(&out->end);
}

/* What lies along axis 0, along another one. */
static tw_index_sum_t along(const tw_index_sum_t *sum, int axis) {
  tw_index_sum_t moved = *sum;
  for (int i = 0; i < moved.count; i++)
    if (moved.terms[i].axis >= 0)
      moved.terms[i].axis = axis;
  return moved;
}

/* ---- where it ends ----------------------------------------------------------------------------------------------- */

typedef struct {
  const wrapped_t *wrapped;
  tw_map_t axis_of; /* owned: of each value that is followed, the axis along which elements are wrapped */
} followed_t;

static bool ends_unseen(followed_t *f, MlirValue value, int axis);

/* The mask leaves out what lies at `end` or behind it. */
static bool is_left_out(const followed_t *f, MlirOperation scatter, int axis) {
  tw_index_mask_t mask;
  tw_index_sum_t below = along(&f->wrapped->index, axis);
  tw_read_mask(tw_operand(scatter, TW_OPERAND_MASK), &mask);
  if (!tw_index_add(&below, &f->wrapped->end, -1))
    return false;
  for (int i = 0; i < mask.count; i++) {
    tw_index_sum_t difference = mask.comparisons[i].below;
    if (tw_index_add(&difference, &below, -1) && difference.count == 0)
      return true;
  }
  return false;
}

static bool is_carried_unseen(followed_t *f, MlirOperation loop, intptr_t which, int axis) {
  return tw_op_is(loop, TW_SCF_FOR) && ends_unseen(f, tw_carried(loop, which), axis) &&
         ends_unseen(f, mlirOperationGetResult(loop, which), axis);
}

/* The axis of a product's result along which those of its operand lie; -1: each is in all elements. */
static int axis_of_product(MlirOperation product, intptr_t operand, int axis) {
  bool is_plain = tw_rank(mlirValueGetType(mlirOperationGetResult(product, 0))) == 2;
  return operand == 2 || (is_plain && operand == axis) ? axis : -1;
}

static bool is_elementwise(MlirOperation op, MlirValue value) {
  bool computes = tw_op_form(op) == TW_FORM_ELEMENTWISE || tw_op_in(op, "arith") || tw_op_in(op, "math");
  return computes && mlirOperationGetNumResults(op) == 1 &&
         tw_rank(mlirValueGetType(mlirOperationGetResult(op, 0))) == tw_rank(mlirValueGetType(value));
}

static bool is_unseen_by(followed_t *f, MlirOperation user, intptr_t operand, MlirValue value, int axis) {
  if (tw_op_form(user) == TW_FORM_PRODUCT) {
    int to = axis_of_product(user, operand, axis);
    return to >= 0 && ends_unseen(f, mlirOperationGetResult(user, 0), to);
  }
  if (tw_op_scatters(user))
    return mlirValueEqual(tw_operand(user, TW_OPERAND_VALUE), value) && is_left_out(f, user, axis);
  if (tw_op_is(user, TW_SCF_FOR))
    return operand >= 3 && is_carried_unseen(f, user, operand - 3, axis);
  MlirOperation around = mlirOperationGetParentOperation(user);
  if (mlirOperationEqual(user, mlirBlockGetTerminator(mlirOperationGetBlock(user))))
    return is_carried_unseen(f, around, operand, axis);
  return is_elementwise(user, value) && ends_unseen(f, mlirOperationGetResult(user, 0), axis);
}

static bool ends_unseen(followed_t *f, MlirValue value, int axis) {
  int seen = tw_map_number(&f->axis_of, value, -1);
  if (seen >= 0)
    return seen == axis;
  tw_map_set_number(&f->axis_of, value, axis);
  bool ok = true;
  for (MlirOpOperand use = mlirValueGetFirstUse(value); ok && !mlirOpOperandIsNull(use);
       use = mlirOpOperandGetNextUse(use))
    ok = is_unseen_by(f, mlirOpOperandGetOwner(use), mlirOpOperandGetOperandNumber(use), value, axis);
  return ok;
}

/* ---- rewriting --------------------------------------------------------------------------------------------------- */

/* The sum with the term's tile as it is before it is wrapped around; where that is false, it is no sum any more. */
static bool unwrap_term(tw_index_sum_t *sum, int which, const wrapped_t *wrapped) {
  tw_index_term_t term = sum->terms[which], factor = term;
  tw_index_sum_t product, by = {.count = 0}, index = along(&wrapped->index, term.axis);
  factor.axis = -1;
  factor.tile = (MlirValue){NULL};
  return tw_index_add_term(&by, &factor, 1) && tw_index_multiply(&by, &index, &product) &&
         tw_index_add_term(sum, &term, -1) && tw_index_add(sum, &product, 1);
}

static void unwrap(MlirOperation gather, intptr_t operand, const tw_index_sum_t *sum, const wrapped_t *wrapped,
                   int axis) {
  tw_builder_t at = tw_build_before(gather);
  MlirType tile = mlirValueGetType(mlirOperationGetResult(gather, 0));
  tw_index_sum_t index = along(&wrapped->index, axis);
  MlirValue in =
      tw_compare(&at, TW_SLT, tw_build_index_sum(&at, &index, tile), tw_build_index_sum(&at, &wrapped->end, tile));
  MlirValue mask = tw_operand(gather, TW_OPERAND_MASK);
  mlirOperationSetOperand(gather, operand, tw_build_index_sum(&at, sum, tile));
  if (!mlirValueIsNull(mask))
    in = tw_binary(&at, "arith.andi", mlirValueGetType(in), mask, in);
  tw_set_operand(gather, TW_OPERAND_MASK, in);
}

static bool unwrap_once(MlirOperation gather) {
  intptr_t first, rank = tw_operands(gather, TW_OPERAND_INDICES, &first);
  MlirValue result = mlirOperationGetResult(gather, 0);
  tw_index_sum_t sum;
  wrapped_t wrapped;
  for (intptr_t d = 0; d < rank; d++) {
    if (!tw_read_index_sum(mlirOperationGetOperand(gather, first + d), &sum))
      return false;
    for (int i = 0; i < sum.count; i++) {
      int axis = sum.terms[i].axis;
      if (mlirValueIsNull(sum.terms[i].tile) || !read_wrapped(sum.terms[i].tile, &wrapped))
        continue;
      followed_t followed = {.wrapped = &wrapped};
      bool unseen = ends_unseen(&followed, result, axis);
      tw_map_free(&followed.axis_of);
      if (!unseen)
        continue;
      if (!unwrap_term(&sum, i, &wrapped))
        return false;
      unwrap(gather, first + d, &sum, &wrapped, axis);
      return true;
    }
  }
  return false;
}

void tw_unwrap_indices(MlirOperation gather) {
  bool pads = !mlirValueIsNull(tw_operand(gather, TW_OPERAND_PADDING));
  for (int i = 0; pads && i < TW_MAX_RANK && unwrap_once(gather);)
    i++;
}
