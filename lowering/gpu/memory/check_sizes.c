/* check_sizes.c - tile-strip-mine: refuses tiles that are too large for the threads of a block
 *
 *   %x = tile.load %X[0, 0] : ... -> tensor<2048x2048xf32>
 *
 * has 2^22 elements. A layout names 2^20, which is 1024 in each of 1024 threads. The error names the tile. Runs when
 * tiles that may be walked along in parts have been, and before the first layout; changes nothing. */
#include "lowering/gpu/memory/check_sizes.h"
#include "lowering/ir.h"
#include "lowering/layout/layout.h"

static const int64_t most = INT64_C(1) << TW_LAYOUT_MAX_BITS;

static bool fits(MlirType type) { return !tw_is_tile(type) || tw_count(type) <= most; }

static MlirWalkResult check(MlirOperation op, void *user) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++) {
    MlirType type = mlirValueGetType(mlirOperationGetResult(op, i));
    if (fits(type))
      continue;
    char tile[160];
    tw_describe_tile(type, sizeof tile, tile);
    tw_op_does_not_fit(op, TW_REGISTERS,
                       "makes a tile of %s, %lld elements; on a GPU a tile has at most %lld: use smaller tiles", tile,
                       (long long)tw_count(type), (long long)most);
    *(bool *)user = false;
    return MlirWalkResultInterrupt;
  }
  return MlirWalkResultAdvance;
}

bool tw_check_sizes(MlirOperation func) {
  bool fine = true;
  mlirOperationWalk(func, check, &fine, MlirWalkPreOrder);
  return fine;
}
