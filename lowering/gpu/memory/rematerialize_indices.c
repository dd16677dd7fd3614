/* rematerialize_indices.c - tile-optimize-indices: rematerializes the indices of gathered operands
 *
 * Before, the positions that a gathered operand of a product has are also those of a mask, or of a result:
 *
 *   %i = arith.addi %s, %n : tensor<128xi32>
 *   %r = ... tile.broadcast of %i ... : tensor<128x64xi32>
 *   %t = tile.gather %A[%r, %c] : ... -> tensor<128x64xbf16>
 *   %d = tile.mma %t, ...
 *   %m = arith.cmpi slt, %i, %end
 *
 * After, %t is gathered at copies of them:
 *
 *   %i = arith.addi %s, %n : tensor<128xi32>
 *   %j = arith.addi %s, %n : tensor<128xi32>
 *   %r = ... tile.broadcast of %j ... : tensor<128x64xi32>
 *   %t = tile.gather %A[%r, %c] : ... -> tensor<128x64xbf16>
 *   %d = tile.mma %t, ...
 *   %m = arith.cmpi slt, %i, %end
 *
 * So each gets the layout that suits it: threads compute a few integers twice, where they would have to exchange them
 * through shared memory. Copied are arithmetic, shape ops, loads and gathers of indices, each beside the op that it
 * repeats; what a loop carries is not. Gathers of the same shape share what they have in common. Runs before
 * tile-assign-layouts. */
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/memory/optimize_indices.h"
#include "lowering/ir.h"
#include "lowering/layout/memory.h"
#include "lowering/loops.h"

/* Gathers whose index tiles have one type, and what was copied for them. */
typedef struct {
  MlirType indices;
  tw_map_t copies;
} family_t;

typedef struct {
  tw_ops_t gathers;
  family_t *families; /* owned */
  int num_families;
} index_owner_t;

static void add_gather(index_owner_t *owner, MlirOperation gather) {
  for (int i = 0; i < owner->gathers.count; i++)
    if (mlirOperationEqual(owner->gathers.at[i], gather))
      return;
  tw_ops_add(&owner->gathers, gather);
}

static MlirWalkResult collect(MlirOperation op, void *user) {
  for (int i = 0; tw_op_is_product(op) && i < 2; i++) {
    MlirOperation load = tw_load_behind(mlirOperationGetOperand(op, i));
    if (!mlirOperationIsNull(load) && tw_op_gathers(load))
      add_gather(user, load);
  }
  return MlirWalkResultAdvance;
}

static tw_map_t *copies_for(index_owner_t *owner, MlirType indices) {
  int f = 0;
  while (f < owner->num_families && !mlirTypeEqual(owner->families[f].indices, indices))
    f++;
  if (f == owner->num_families) {
    owner->families = tw_room(owner->families, (size_t)f, sizeof *owner->families);
    owner->families[owner->num_families++] = (family_t){.indices = indices};
  }
  return &owner->families[f].copies;
}

static bool can_copy(MlirOperation op) {
  return mlirOperationGetNumRegions(op) == 0 && mlirOperationGetNumResults(op) == 1 &&
         ((tw_is_arithmetic(op) && !tw_op_has(op, TW_HAS_SCRATCH)) || tw_op_loads(op));
}

/* A tile made once more, as far as it is made by ops that can be copied. */
static MlirValue own(tw_map_t *copies, MlirValue value) {
  MlirOperation op = tw_def(value);
  MlirValue known = tw_map_value(copies, value);
  if (!mlirValueEqual(known, value) || !tw_is_tile(mlirValueGetType(value)) || mlirOperationIsNull(op) || !can_copy(op))
    return known;
  MlirOperation copy = mlirOperationClone(op);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    mlirOperationSetOperand(copy, i, own(copies, mlirOperationGetOperand(op, i)));
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(op), op, copy);
  tw_map_one(copies, value, mlirOperationGetResult(copy, 0));
  return mlirOperationGetResult(copy, 0);
}

bool tw_rematerialize_indices(MlirOperation func) {
  index_owner_t owner = {.num_families = 0};
  mlirOperationWalk(func, collect, &owner, MlirWalkPreOrder);
  for (int g = 0; g < owner.gathers.count; g++) {
    MlirOperation gather = owner.gathers.at[g];
    tw_map_t *copies = copies_for(&owner, mlirValueGetType(mlirOperationGetOperand(gather, 1)));
    for (intptr_t i = 1; i < mlirOperationGetNumOperands(gather); i++) {
      MlirValue old = mlirOperationGetOperand(gather, i);
      mlirOperationSetOperand(gather, i, own(copies, old));
      tw_erase_dead(tw_def(old));
    }
  }
  for (int f = 0; f < owner.num_families; f++)
    tw_map_free(&owner.families[f].copies);
  free(owner.families);
  tw_ops_free(&owner.gathers);
  return true;
}
