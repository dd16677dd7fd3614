/* batch_loads.c - in tile-prefetch-loads: a loop of a thread has the loads of several iterations under way
 *
 * Before: the assembler takes no load from behind an atomic access, so that each iteration waits for memory.
 *
 *     scf.for %k = 0 to %n {
 *       %x = tile.gather %values[%start + %k * %step]
 *       tile.atomic add relaxed %one, %bins[%x]
 *     }
 *
 * After: eight iterations at a time, and the rest one by one.
 *
 *     scf.for %k = 0 to %n & -8 step 8 {
 *       eight times tile.gather %values[%start + (%k + 0, 1 .. 7) * %step], then eight times tile.atomic
 *     }
 *     scf.for %k = max(%n & -8, 0) to %n { as before }
 *
 * What must hold: a loop of threads that counts from 0 by 1, of ops without regions, which compute, load and store, and
 * of atomic accesses, one at least, that order nothing and whose results nobody uses. What is loaded early follows from
 * the number of the iteration, some of it from global memory, and lies in arrays that the loop does not write to
 * (aliasing.h). */
#include "lowering/gpu/memory/batch_loads.h"

#include "base/memory.h"
#include "lowering/aliasing.h"
#include "lowering/common/canonicalize.h"
#include "lowering/loops.h"
#include "tilewright/dialect.h"

enum { MOST_COPIES = 8, FEW_OPS = 16, MOST_OPS = 32 };

typedef struct {
  MlirOperation loop;
  tw_map_t early; /* results of ops that need nothing but the number of the iteration */
  tw_map_t copy[MOST_COPIES];
  int copies;
} batch_t;

static bool is_atomic(MlirOperation op) { return tw_op_has(op, TW_BY_ELEMENT) && tw_has_attr(op, "memory_order"); }

static bool is_loose(MlirOperation op) {
  return tw_attr_int(op, "memory_order", TW_ORDER_SEQ_CST) == TW_ORDER_RELAXED &&
         tw_attr_int(op, "kind", TW_ATOMIC_LOAD) != TW_ATOMIC_LOAD && tw_is_unused(mlirOperationGetResult(op, 0));
}

static bool is_allowed(MlirOperation op) {
  return mlirOperationGetNumRegions(op) == 0 &&
         (tw_op_has(op, TW_PURE) || tw_op_gathers(op) || tw_op_scatters(op) || (is_atomic(op) && is_loose(op)));
}

static MlirAttribute space_of(MlirValue array) { return mlirMemRefTypeGetMemorySpace(mlirValueGetType(array)); }

/* Whether a load may come before a write of the loop; `tell` notes it for the launch. */
static bool may_pass(MlirOperation load, MlirOperation write, bool tell) {
  MlirValue from = tw_operand(load, TW_OPERAND_ARRAY), to = tw_operand(write, TW_OPERAND_ARRAY);
  if (!mlirAttributeEqual(space_of(from), space_of(to)))
    return true;
  return tell ? tw_assume_disjoint(from, to) : tw_may_be_disjoint(from, to);
}

static bool passes_writes(const batch_t *b, MlirOperation load, bool tell) {
  bool ok = true;
  for (MlirOperation op = mlirBlockGetFirstOperation(tw_loop_body(b->loop)); ok && !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    ok = (!tw_op_scatters(op) && !is_atomic(op)) || may_pass(load, op, tell);
  return ok;
}

static bool comes_early(const batch_t *b, MlirOperation op) {
  bool ok = tw_op_has(op, TW_PURE) || (tw_op_gathers(op) && passes_writes(b, op, false));
  for (intptr_t i = 0; ok && i < mlirOperationGetNumOperands(op); i++) {
    MlirValue value = mlirOperationGetOperand(op, i);
    ok = mlirValueEqual(value, tw_loop_iv(b->loop)) || !tw_defined_in(value, tw_loop_body(b->loop)) ||
         tw_map_get(&b->early, value.ptr, NULL) != NULL;
  }
  return ok;
}

static bool is_early(const batch_t *b, MlirOperation op) {
  return mlirOperationGetNumResults(op) > 0 && tw_map_get(&b->early, mlirOperationGetResult(op, 0).ptr, NULL);
}

/* Whether the loop gains from it; notes what comes early. */
static bool is_suitable(batch_t *b) {
  int64_t first;
  int ops = 0, loads = 0, atomics = 0;
  bool ok = tw_known_int(mlirOperationGetOperand(b->loop, 0), &first) && first == 0 && tw_loop_step(b->loop) == 1;
  MlirOperation end = tw_loop_yield(b->loop);
  for (MlirOperation op = mlirBlockGetFirstOperation(tw_loop_body(b->loop)); ok && !mlirOperationEqual(op, end);
       op = mlirOperationGetNextInBlock(op), ops++) {
    ok = is_allowed(op);
    atomics += is_atomic(op);
    if (!ok || is_atomic(op) || !comes_early(b, op))
      continue;
    loads += tw_op_gathers(op) && mlirAttributeIsNull(space_of(tw_operand(op, TW_OPERAND_ARRAY)));
    for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
      tw_map_one(&b->early, mlirOperationGetResult(op, i), mlirOperationGetResult(op, i));
  }
  b->copies = ops <= FEW_OPS ? MOST_COPIES : MOST_COPIES / 2;
  return ok && loads > 0 && atomics > 0 && ops <= MOST_OPS;
}

/* The iterations of a batch: what comes early side by side, then what is left of each. */
static MlirRegion new_body(batch_t *b) {
  MlirBlock old = tw_loop_body(b->loop);
  intptr_t num = mlirBlockGetNumArguments(old);
  MlirBlock body = mlirBlockCreate(0, NULL, NULL);
  MlirLocation location = mlirOperationGetLocation(b->loop);
  for (intptr_t i = 0; i < num; i++)
    tw_map_one(&b->copy[0], mlirBlockGetArgument(old, i),
               mlirBlockAddArgument(body, mlirValueGetType(mlirBlockGetArgument(old, i)), location));
  tw_builder_t at = tw_build_at_end(body, location);
  MlirValue number = mlirBlockGetArgument(body, 0);
  MlirType type = mlirValueGetType(number);
  for (int j = 1; j < b->copies; j++)
    tw_map_one(&b->copy[j], tw_loop_iv(b->loop),
               tw_binary(&at, "arith.addi", type, number, tw_const_int(&at, type, j)));
  MlirOperation first = mlirBlockGetFirstOperation(old), end = tw_loop_yield(b->loop);
  for (MlirOperation op = first; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op))
    for (int j = 0; j < b->copies && is_early(b, op); j++)
      tw_copy_op(&at, op, &b->copy[j]);
  for (int j = 0; j < b->copies; j++) {
    for (MlirOperation op = first; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op))
      if (!is_early(b, op))
        tw_copy_op(&at, op, &b->copy[j]);
    for (intptr_t i = 0; i + 1 < num && j + 1 < b->copies; i++)
      tw_map_one(&b->copy[j + 1], tw_carried(b->loop, i), tw_map_value(&b->copy[j], tw_carried_next(b->loop, i)));
  }
  tw_copy_op(&at, end, &b->copy[b->copies - 1]);
  return tw_region_with(body);
}

static void batch(batch_t *b) {
  tw_builder_t at = tw_build_before(b->loop);
  MlirOperation op = mlirBlockGetFirstOperation(tw_loop_body(b->loop));
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op))
    if (tw_op_gathers(op) && is_early(b, op))
      (void)passes_writes(b, op, true);
  intptr_t num = mlirOperationGetNumOperands(b->loop);
  MlirValue *operands = tw_allocate((size_t)num, sizeof *operands), count = mlirOperationGetOperand(b->loop, 1);
  MlirType type = mlirValueGetType(count);
  for (intptr_t i = 0; i < num; i++)
    operands[i] = mlirOperationGetOperand(b->loop, i);
  operands[1] = tw_binary(&at, "arith.andi", type, count, tw_const_int(&at, type, -b->copies));
  operands[2] = tw_const_int(&at, type, b->copies);
  MlirOperation made = tw_build_for(&at, num, operands, new_body(b));
  mlirOperationSetOperand(b->loop, 0, tw_binary(&at, "arith.maxsi", type, operands[1], operands[0]));
  for (intptr_t i = TW_FOR_INITS; i < num; i++)
    mlirOperationSetOperand(b->loop, i, mlirOperationGetResult(made, i - TW_FOR_INITS));
  free(operands);
  tw_op_remark(b->loop, "has the loads of %d iterations under way together", b->copies);
}

bool tw_batch_loads(MlirOperation func) {
  if (!tw_has_attr(func, "tile.simt"))
    return true;
  tw_ops_t loops = tw_loops_in(func, MlirWalkPostOrder);
  for (int i = 0; i < loops.count; i++) {
    batch_t b = {.loop = loops.at[i]};
    if (is_suitable(&b))
      batch(&b);
    tw_map_free(&b.early);
    for (int j = 0; j < MOST_COPIES; j++)
      tw_map_free(&b.copy[j]);
  }
  tw_ops_free(&loops);
  return true;
}
