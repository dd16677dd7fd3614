/* qualify_accesses.c - tile-qualify-accesses: chooses what PTX calls the qualifiers of accesses to arrays
 *
 * How long what a tile kernel reads stays in the L2 cache, and how strongly the atomics of a kernel of threads order.
 * Each part has the IR before and after at the head of its file. Stores that find another place in each iteration are
 * marked, while indices are as the program has them: quotients and rests of a tile's number are not seen later. */
#include "lowering/gpu/memory/qualify_accesses.h"

#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/same_tile.h"
#include "lowering/loops.h"
#include "lowering/passes.h"

static bool is_moving_store(MlirOperation store) {
  MlirOperation loop = tw_op_stores_tile(store) ? tw_enclosing_loop(store) : tw_null_op();
  bool ok = !mlirOperationIsNull(loop);
  for (; ok && !mlirOperationIsNull(loop); loop = tw_enclosing_loop(loop))
    ok = tw_moves_each_time(loop, store);
  return ok;
}

static bool mark_moving_stores(MlirOperation func) {
  tw_ops_t stores = tw_ops_in(func, is_moving_store, MlirWalkPreOrder);
  for (int i = 0; i < stores.count; i++)
    tw_set_attr(stores.at[i], TW_MOVES, mlirUnitAttrGet(mlirOperationGetContext(func)));
  tw_ops_free(&stores);
  return true;
}

bool tw_run_qualify_accesses(MlirOperation func) {
  return tw_cache_hints(func) && tw_relax_atomics(func) && mark_moving_stores(func);
}
