/* index_masks.c - masks of accesses, as comparisons of indices. See index_masks.h. */
#include "lowering/gpu/grid/index_masks.h"

static bool is_conjunction(MlirOperation op) {
  return tw_op_is(op, TW_ARITH_ANDI) && tw_is_bool(tw_element(mlirValueGetType(mlirOperationGetResult(op, 0))));
}

/* x < y as x - y < 0, and so with the other orders. */
static bool read_comparison(tw_index_mask_t *out, MlirOperation op) {
  tw_index_sum_t x, y;
  int64_t predicate = tw_attr_int(op, "predicate", -1);
  bool swap = predicate == TW_SGT || predicate == TW_SGE;
  if (predicate < TW_SLT || predicate > TW_SGE || out->count == TW_MASK_COMPARISONS ||
      !tw_read_index_sum(mlirOperationGetOperand(op, swap), &x) ||
      !tw_read_index_sum(mlirOperationGetOperand(op, !swap), &y) || !tw_index_add(&x, &y, -1))
    return false;
  const tw_index_term_t one = {.factor = 1, .axis = -1};
  bool or_equal = predicate == TW_SLE || predicate == TW_SGE;
  if (or_equal && !tw_index_add_term(&x, &one, -1))
    return false;
  out->comparisons[out->count].below = x;
  out->comparisons[out->count++].part = out->num_parts;
  return true;
}

static bool read_part(tw_index_mask_t *out, MlirValue mask) {
  MlirOperation op = tw_def(mask);
  if (mlirOperationIsNull(op))
    return false;
  if (tw_op_is(op, TW_ARITH_CMPI))
    return read_comparison(out, op);
  if (is_conjunction(op))
    return read_part(out, mlirOperationGetOperand(op, 0)) && read_part(out, mlirOperationGetOperand(op, 1));
  if (tw_op_is(op, TW_TENSOR_SPLAT))
    return read_part(out, mlirOperationGetOperand(op, 0));
  int first = out->count;
  bool ok = tw_op_form(op) == TW_FORM_VIEW && read_part(out, mlirOperationGetOperand(op, 0));
  for (int i = first; ok && i < out->count; i++)
    ok = tw_index_move_axes(&out->comparisons[i].below, op);
  return ok;
}

static void read_parts(tw_index_mask_t *out, MlirValue mask) {
  MlirOperation op = tw_def(mask);
  if (!mlirOperationIsNull(op) && is_conjunction(op) && out->num_parts + 1 < TW_MASK_COMPARISONS) {
    read_parts(out, mlirOperationGetOperand(op, 0));
    read_parts(out, mlirOperationGetOperand(op, 1));
    return;
  }
  int before = out->count;
  bool read = read_part(out, mask);
  out->count = read ? out->count : before;
  out->parts[out->num_parts].mask = mask;
  out->parts[out->num_parts++].is_needed = !read;
}

void tw_read_mask(MlirValue mask, tw_index_mask_t *out) {
  *out = (tw_index_mask_t){.count = 0};
  if (!mlirValueIsNull(mask))
    read_parts(out, mask);
}

MlirValue tw_build_mask(const tw_builder_t *at, const tw_index_mask_t *mask) {
  MlirValue all = {NULL};
  for (int i = 0; i < mask->num_parts; i++) {
    MlirValue part = mask->parts[i].mask;
    if (mask->parts[i].is_needed)
      all = mlirValueIsNull(all) ? part : tw_binary(at, "arith.andi", mlirValueGetType(part), all, part);
  }
  return all;
}
