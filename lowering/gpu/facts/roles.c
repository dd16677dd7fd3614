/* roles.c - which warps run an op. See roles.h. */
#include "lowering/gpu/facts/roles.h"

bool tw_is_roles(MlirOperation op) { return tw_op_is(op, TW_TILE_ROLES); }

static bool is_wanted(MlirOperation op, const void *user) {
  (void)user;
  return tw_is_roles(op);
}

MlirOperation tw_roles_of(MlirOperation kernel) { return tw_find_op(kernel, is_wanted, NULL); }

MlirOperation tw_roles_around(MlirOperation op, bool *out_producer) {
  MlirOperation child = op, up = mlirOperationGetParentOperation(op);
  for (; !mlirOperationIsNull(up) && !tw_is_roles(up); up = mlirOperationGetParentOperation(up))
    child = up;
  if (out_producer != NULL)
    *out_producer = !mlirOperationIsNull(up) && mlirBlockEqual(mlirOperationGetBlock(child), tw_region_block(up, 0));
  return up;
}

int tw_consumer_groups_of(MlirOperation kernel) {
  MlirOperation roles = tw_roles_of(kernel);
  return mlirOperationIsNull(roles) ? 1 : (int)tw_attr_int(roles, "consumer_groups", 1);
}
