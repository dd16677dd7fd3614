/* equal_groups.c - see equal_groups.h
 *
 * All carried values are taken to be as equal as they start; an iteration shows which are less so when it ends, and is
 * looked at again, until none is. */
#include "lowering/gpu/facts/equal_groups.h"

#include "base/memory.h"
#include "dialect/layouts.h"
#include "lowering/gpu/facts/index_facts.h"
#include "lowering/layout/layout.h"
#include "lowering/loops.h"

#include <stdlib.h>

enum { ALL = 30, UNKNOWN = -1 };

static int groups_of_result(MlirOperation loop, MlirValue result, int dim) {
  int *carried = tw_carried_groups(loop, dim), groups = carried[mlirOpResultGetResultNumber(result)];
  free(carried);
  return groups;
}

/* Of a value that the walk over the body has noted, or of one from elsewhere. */
static int groups_of(const tw_map_t *noted, MlirValue value, int dim) {
  double constant;
  int groups = tw_map_number(noted, value, UNKNOWN);
  if (groups != UNKNOWN)
    return groups;
  if (!tw_is_tile(mlirValueGetType(value)) || tw_known_float(value, &constant))
    return ALL;
  if (dim >= tw_rank(mlirValueGetType(value)))
    return 0;
  MlirOperation def = tw_def(value);
  bool of_loop = !mlirOperationIsNull(def) && tw_op_is(def, TW_SCF_FOR);
  return of_loop ? groups_of_result(def, value, dim) : tw_equal_neighbours(value, dim);
}

/* What an op computes element by element is equal where its operands are. */
static int groups_of_op(const tw_map_t *noted, MlirOperation op, int dim) {
  int groups = ALL;
  if (tw_op_form(op) != TW_FORM_ELEMENTWISE || !tw_op_has(op, TW_PURE))
    return 0;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    int of_operand = groups_of(noted, mlirOperationGetOperand(op, i), dim);
    groups = of_operand < groups ? of_operand : groups;
  }
  return groups;
}

static void note_body(tw_map_t *noted, MlirOperation loop, int dim) {
  TW_EACH_OP(op, tw_loop_body(loop)) {
    if (mlirOperationGetNumResults(op) != 1 || !tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))))
      continue;
    int groups = groups_of_op(noted, op, dim);
    if (groups > 0)
      tw_map_set_number(noted, mlirOperationGetResult(op, 0), groups);
  }
}

/* Whether an iteration leaves all that it carries as equal as it found it; else it is known of less. */
static bool look_at_iteration(MlirOperation loop, int dim, int *groups) {
  tw_map_t noted = {0};
  bool same = true;
  intptr_t count = mlirOperationGetNumResults(loop);
  for (intptr_t i = 0; i < count; i++)
    tw_map_set_number(&noted, tw_carried(loop, i), groups[i]);
  note_body(&noted, loop, dim);
  for (intptr_t i = 0; i < count; i++) {
    int next = groups[i] > 0 ? groups_of(&noted, tw_carried_next(loop, i), dim) : 0;
    same = same && next >= groups[i];
    groups[i] = next < groups[i] ? next : groups[i];
  }
  tw_map_free(&noted);
  return same;
}

int *tw_carried_groups(MlirOperation loop, int dim) {
  intptr_t count = mlirOperationGetNumResults(loop);
  int *groups = tw_allocate((size_t)count + 1, sizeof *groups);
  const tw_map_t none = {0};
  bool any = false;
  for (intptr_t i = 0; i < count; i++) {
    bool has_dim = dim < tw_rank(mlirValueGetType(tw_carried(loop, i)));
    groups[i] = has_dim ? groups_of(&none, tw_carried_init(loop, i), dim) : 0;
    any = any || groups[i] > 0;
  }
  while (any && !look_at_iteration(loop, dim, groups))
    ;
  return groups;
}

int tw_registers_within(MlirType tile, int dim, int log2) {
  tw_layout_t layout;
  int bits = 0;
  if (!tw_is_tile(tile) || dim >= tw_rank(tile) || !tw_layout_of_type(tile, &layout))
    return 0;
  int shift = tw_layout_dim_shift(&layout, dim);
  for (int i = 0; i < layout.bits[TW_REGISTER]; i++)
    for (int b = 0; b < log2 && b < layout.log_shape[dim]; b++)
      bits |= layout.basis[TW_REGISTER][i] == UINT32_C(1) << (shift + b) ? 1 << i : 0;
  return bits;
}
