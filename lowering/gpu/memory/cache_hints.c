/* cache_hints.c - part of tile-qualify-accesses: tiles that a launch reads once leave the L2 cache first
 *
 * Before:
 *
 *   %i = tile.block_id 0 ; %h = tile.block_id 1
 *   %q = tile.load %Q[%h, %i]
 *   scf.for %j = ... { %k = tile.load %K[%h, %j] ... }
 *
 * After: no other block wants this tile of Q, while all blocks of a head want those of K:
 *
 *   %q = tile.load %Q[%h, %i] {tile.cache = 1 : i32}
 *
 * A copy by the tensor memory accelerator that is made of such a load takes the hint along (`cache evict_first`); the
 * L2 cache gives up its lines first. Other accesses have no hints, which make them slower (docs/design/lowering.md).
 *
 * A tile is read once if each block id that the kernel asks for, and each loop around the load, can be told from the
 * tile's place: it reaches an index by additions and multiplications alone, or one index has its quotient and another
 * one the rest. And there must be something to make room for: a load in a loop that is not of this kind. Only speed
 * depends on all this, so what is unlikely (factors of zero, two arguments that are one array) is left out of account.
 *
 * Runs when blocks have the work that they keep (tile-resize-tiles), and before loops are split or
 * rotated, of whose loads there are then several. */
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/gpu/memory/qualify_accesses.h"
#include "lowering/loops.h"
#include "tilewright/dialect.h"

/* How much of a number an index tells: all, or the quotient of a division, or the rest. */
enum { ALL = 1, QUOTIENT = 2, REST = 4 };

typedef struct {
  tw_ops_t ids, loads;
} hinted_kernel_t;

static bool is_id(MlirOperation op) { return tw_op_is(op, TW_TILE_BLOCK_ID); }

static bool reads_array(MlirOperation op) {
  return tw_op_loads(op) && tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0)));
}

/* What `value` tells of `number`, as far as `depth` ops show. */
static int told_by(MlirValue value, MlirValue number, int depth) {
  MlirOperation op = tw_def(value);
  if (mlirValueEqual(value, number))
    return ALL;
  if (mlirOperationIsNull(op) || depth == 0)
    return 0;
  int told[3] = {0};
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op) && i < 3; i++)
    told[i] = told_by(mlirOperationGetOperand(op, i), number, depth - 1);
  tw_op_class_t class = tw_op_class(op);
  bool grows = tw_op_is(op, TW_ARITH_SHLI), masks = tw_op_is(op, TW_ARITH_ANDI);
  if (class == TW_CLASS_SUM || class == TW_CLASS_MULTIPLE || class == TW_CLASS_CAST || grows)
    return told[0] | told[1];
  if (class == TW_CLASS_QUOTIENT || class == TW_CLASS_SHIFT)
    return told[0] & (ALL | QUOTIENT) ? QUOTIENT : 0;
  if (class == TW_CLASS_REST || masks)
    return told[0] & ALL ? REST : 0;
  if (tw_op_is(op, TW_ARITH_SELECT)) /* the rest, brought to the sign of the divisor */
    return told[1] & told[2];
  return 0;
}

static bool is_told(MlirOperation load, MlirValue number) {
  enum { DEPTH = 8 };
  int told = 0;
  for (intptr_t i = 1; i < mlirOperationGetNumOperands(load); i++)
    told |= told_by(mlirOperationGetOperand(load, i), number, DEPTH);
  return (told & ALL) || ((told & QUOTIENT) && (told & REST));
}

static bool has_array_alone(const hinted_kernel_t *k, MlirOperation load) {
  int num = 0;
  for (int i = 0; i < k->loads.count; i++)
    num += mlirValueEqual(mlirOperationGetOperand(k->loads.at[i], 0), mlirOperationGetOperand(load, 0));
  return num == 1;
}

static bool is_read_once(const hinted_kernel_t *k, MlirOperation load) {
  if (!tw_op_loads_tile(load) || !has_array_alone(k, load))
    return false;
  for (int i = 0; i < k->ids.count; i++)
    if (!is_told(load, mlirOperationGetResult(k->ids.at[i], 0)))
      return false;
  for (MlirOperation loop = tw_enclosing_loop(load); !mlirOperationIsNull(loop); loop = tw_enclosing_loop(loop))
    if (!tw_op_is(loop, TW_SCF_FOR) || !is_told(load, tw_loop_iv(loop)))
      return false;
  return true;
}

bool tw_cache_hints(MlirOperation func) {
  tw_gpu_target_t target = tw_gpu_target_of(func);
  if (!tw_gpu_has(&target, TW_GPU_TMA) || !tw_has_attr(func, "tile.kernel") || tw_has_attr(func, "tile.simt"))
    return true;
  hinted_kernel_t k = {tw_ops_in(func, is_id, MlirWalkPreOrder), tw_ops_in(func, reads_array, MlirWalkPreOrder)};
  bool makes_room = false;
  for (int i = 0; i < k.loads.count; i++)
    makes_room |= !mlirOperationIsNull(tw_enclosing_loop(k.loads.at[i])) && !is_read_once(&k, k.loads.at[i]);
  for (int i = 0; makes_room && i < k.loads.count; i++)
    if (is_read_once(&k, k.loads.at[i]))
      tw_set_int(k.loads.at[i], TW_CACHE, tw_i32(mlirOperationGetContext(func)), TW_EVICT_FIRST);
  tw_ops_free(&k.ids);
  tw_ops_free(&k.loads);
  return true;
}
