/* walks.c - loops whose threads walk over an array side by side, as far in a round as the launch says
 *
 *   for i in range(device.tid(1), x.size, device.grid_size(1)): total += x[i]
 *
 *   scf.for %k = 0 to %rounds step 1 {           %i0 and %rounds differ from thread to thread
 *     %i = arith.addi %i0, (arith.muli %k, %step)
 *     tile.gather %x[%i]                          %step is known at the launch only
 *
 * On a GPU the threads of a block do a round together. Thread by thread, or strip by strip, on the CPU each round would
 * be another page, of which a strip reads a part of a line: eight million bytes took 11.7 ms so, 4.5 round by round,
 * 2.8 in order. tile-split-threads therefore cuts a block at such a loop, though it has no barrier. */
#include "lowering/cpu/cpu.h"
#include "lowering/loops.h"

#include "tilewright/dialect.h"

enum { MOST_DEPTH = 8, MOST_CARRIED = 4 /* each is read and written in each round */ };

typedef struct {
  const tw_uniform_t *uniform;
  MlirOperation loop;
  bool found;
} side_walk_t;

static bool is_cast(MlirOperation op) {
  return tw_op_is(op, TW_ARITH_EXTSI) || tw_op_is(op, TW_ARITH_EXTUI) || tw_op_is(op, TW_ARITH_TRUNCI) ||
         tw_op_is(op, TW_ARITH_INDEX_CAST);
}

static bool is_round(const side_walk_t *w, MlirValue x) {
  for (MlirOperation def = tw_def(x); !mlirOperationIsNull(def) && is_cast(def); def = tw_def(x))
    x = mlirOperationGetOperand(def, 0);
  return mlirValueEqual(x, tw_loop_iv(w->loop));
}

/* Of the block, and only known when it runs. */
static bool is_told_late(const side_walk_t *w, MlirValue x) {
  int64_t known;
  return tw_uniform_has(w->uniform, x) && !tw_known_int(x, &known);
}

/* Whether a round is added to an index by such a distance. */
static bool strides(const side_walk_t *w, MlirValue index, int depth) {
  MlirOperation op = tw_def(index);
  if (mlirOperationIsNull(op) || depth == 0)
    return false;
  bool product = tw_op_is(op, TW_ARITH_MULI);
  if (!product && !is_cast(op) && !tw_op_is(op, TW_ARITH_ADDI) && !tw_op_is(op, TW_ARITH_SUBI))
    return false;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirValue x = mlirOperationGetOperand(op, i);
    if ((product && is_round(w, x) && is_told_late(w, mlirOperationGetOperand(op, 1 - i))) || strides(w, x, depth - 1))
      return true;
  }
  return false;
}

static bool is_of_the_launch(MlirValue array) {
  MlirAttribute space = mlirMemRefTypeGetMemorySpace(mlirValueGetType(array));
  return mlirAttributeIsNull(space) || mlirIntegerAttrGetValueInt(space) == TW_SPACE_GLOBAL;
}

static MlirWalkResult look(MlirOperation op, void *user) {
  side_walk_t *w = user;
  if (!tw_op_has(op, TW_BY_ELEMENT) || !is_of_the_launch(mlirOperationGetOperand(op, 0)))
    return MlirWalkResultAdvance;
  intptr_t first, num = tw_operands(op, TW_OPERAND_INDICES, &first);
  for (intptr_t d = 0; d < num; d++)
    w->found |= strides(w, mlirOperationGetOperand(op, first + d), MOST_DEPTH);
  return w->found ? MlirWalkResultInterrupt : MlirWalkResultAdvance;
}

static bool counts_from_zero(MlirOperation loop) {
  int64_t from, step;
  return mlirTypeIsAInteger(mlirValueGetType(tw_loop_iv(loop))) &&
         tw_known_int(mlirOperationGetOperand(loop, 0), &from) && from == 0 &&
         tw_known_int(mlirOperationGetOperand(loop, 2), &step) && step == 1;
}

bool cpu_is_walk(const tw_uniform_t *uniform, MlirOperation op) {
  if (!tw_op_is(op, TW_SCF_FOR) || !counts_from_zero(op) || mlirOperationGetNumResults(op) > MOST_CARRIED)
    return false;
  side_walk_t walk = {uniform, op, false};
  mlirOperationWalk(op, look, &walk, MlirWalkPreOrder);
  return walk.found;
}
