/* stage_plan.c - queries on a plan of multi-stage buffers. See stage_plan.h. */
#include "lowering/gpu/roles/stage_plan.h"

#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "tilewright/dialect.h"

bool tw_fills_buffer(const tw_stage_fill_t *fill, MlirValue buffer) {
  for (int c = 0; c < fill->num_copies; c++)
    if (mlirValueEqual(tw_copy_buffer(fill->copies[c]), buffer))
      return true;
  return false;
}

/* In one block: x stands before y, or is y. */
bool tw_not_after(MlirOperation x, MlirOperation y) {
  return mlirOperationEqual(x, y) || mlirOperationIsBeforeInBlock(x, y);
}

int tw_fill_of(const tw_stage_plan_t *plan, MlirOperation copy) {
  for (int f = 0; f < plan->num_fills; f++)
    for (int c = 0; c < plan->fills[f].num_copies; c++)
      if (mlirOperationEqual(plan->fills[f].copies[c], copy))
        return f;
  return -1;
}

bool tw_is_filled(const tw_stage_plan_t *plan, MlirValue buffer) {
  for (int f = 0; f < plan->num_fills; f++)
    if (tw_fills_buffer(&plan->fills[f], buffer))
      return true;
  return false;
}

int64_t tw_announced_bytes(const tw_stage_fill_t *fill) {
  int64_t bytes = 0;
  for (int c = 0; c < fill->num_copies; c++)
    if (!tw_op_has(fill->copies[c], TW_BY_ELEMENT))
      bytes += tw_stage_bytes(mlirValueGetType(tw_copy_buffer(fill->copies[c])));
  return bytes;
}

bool tw_comes_round(const tw_multibuffer_t *multibuffer) {
  return multibuffer->depth > 0 || multibuffer->num_fills > multibuffer->stages;
}

MlirType tw_with_stages(MlirType buffer, int stages) {
  int64_t shape[TW_LAYOUT_MAX_RANK + 1] = {stages};
  intptr_t rank = tw_buffer_type_rank(buffer);
  for (intptr_t d = 1; d < rank; d++)
    shape[d] = tw_buffer_type_extent(buffer, d);
  return tw_buffer_type_get(mlirTypeGetContext(buffer), rank, shape, tw_buffer_type_element(buffer),
                            tw_buffer_type_layout(buffer));
}
