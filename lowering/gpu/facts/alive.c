/* alive.c - see alive.h */
#include "lowering/gpu/facts/alive.h"

#include "lowering/layout/memory.h"
#include "lowering/loops.h"

#include <stdlib.h>

typedef struct {
  MlirOperation last; /* that reads it */
  int64_t taken;
} alive_t;

typedef struct {
  MlirBlock block;
  int64_t (*takes)(MlirValue value);
  alive_t *at; /* owned */
  int count;
  int64_t taken, most;
} alive_set_t;

MlirOperation tw_last_reader(MlirValue value, MlirBlock block, MlirOperation but) {
  MlirOperation last = tw_null_op();
  TW_EACH_USE(use, value) {
    MlirOperation user = tw_ancestor_in(mlirOpOperandGetOwner(use), block);
    if (!mlirOperationIsNull(user) && tw_renames(user))
      user = tw_last_reader(mlirOperationGetResult(user, 0), block, but);
    if (mlirOperationIsNull(user) || mlirOperationEqual(user, but))
      continue;
    if (mlirOperationIsNull(last) || mlirOperationIsBeforeInBlock(last, user))
      last = user;
  }
  return last;
}

bool tw_is_first_reader(MlirValue value, MlirOperation user) {
  TW_EACH_USE(use, value) {
    MlirOperation other = tw_ancestor_in(mlirOpOperandGetOwner(use), mlirOperationGetBlock(user));
    if (mlirOperationIsNull(other) || mlirOperationIsBeforeInBlock(other, user))
      return false;
  }
  return true;
}

static void end_with(alive_set_t *set, MlirOperation op) {
  int kept = 0;
  for (int i = 0; i < set->count; i++)
    if (mlirOperationEqual(set->at[i].last, op))
      set->taken -= set->at[i].taken;
    else
      set->at[kept++] = set->at[i];
  set->count = kept;
}

static void begin(alive_set_t *set, MlirValue value) {
  int64_t taken = set->takes(value);
  alive_t alive = {taken > 0 ? tw_last_reader(value, set->block, tw_null_op()) : tw_null_op(), taken};
  if (mlirOperationIsNull(alive.last))
    return;
  set->at = tw_room(set->at, (size_t)set->count, sizeof *set->at);
  set->at[set->count++] = alive;
  set->taken += taken;
  set->most = set->taken > set->most ? set->taken : set->most;
}

int64_t tw_most_alive(MlirBlock block, int64_t (*takes)(MlirValue value)) {
  alive_set_t set = {.block = block, .takes = takes};
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(block); i++)
    begin(&set, mlirBlockGetArgument(block, i));
  TW_EACH_OP(op, block) {
    end_with(&set, op);
    for (intptr_t i = 0; !tw_renames(op) && i < mlirOperationGetNumResults(op); i++)
      begin(&set, mlirOperationGetResult(op, i));
  }
  free(set.at);
  return set.most;
}
