/* induction.c - in tile-canonicalize: what a loop only counts up is computed from its induction variable
 *
 *   before   %r:2 = scf.for %k = 0 to %n step 1               after   %r = scf.for %k = 0 to %n step 1
 *                     iter_args(%x = %a, %p = %first) {                       iter_args(%x = %a) {
 *              %y = ... tile.gather %A[%p]                              %p = %first + splat(%k * %s)
 *              scf.yield %y, %p + splat(%s)                             %y = ... tile.gather %A[%p]
 *            }                                                          scf.yield %y
 *                                                                     }
 *
 * So an index that a program advances in each step is read like one that it computes. What must hold: integers of at
 * least 32 bits, scalars or tiles; what a step adds does not change in the loop, is the same for all elements, and is a
 * known multiple of the loop's step where that is not 1. */
#include "lowering/common/canonicalize.h"
#include "lowering/loops.h"
#include "lowering/ranges.h"

typedef struct {
  MlirOperation loop;
  intptr_t which; /* of the carried values */
  MlirValue add;  /* in each step, a scalar; or null: */
  int64_t number; /* a known one */
  bool subtracts;
  int64_t step; /* of the loop */
} induction_t;

MlirValue tw_plus(const tw_builder_t *at, MlirValue x, int64_t number) {
  MlirType type = mlirValueGetType(x);
  int64_t known;
  if (tw_known_int(x, &known))
    return tw_const_int(at, type, known + number);
  return number ? tw_binary(at, "arith.addi", type, x, tw_const_int(at, type, number)) : x;
}

static MlirValue times(const tw_builder_t *at, MlirValue x, int64_t number) {
  MlirType type = mlirValueGetType(x);
  int64_t known;
  if (tw_known_int(x, &known))
    return tw_const_int(at, type, known * number);
  return number == 1 ? x : tw_binary(at, "arith.muli", type, x, tw_const_int(at, type, number));
}

static MlirValue minus(const tw_builder_t *at, MlirValue x, MlirValue y) {
  int64_t known;
  if (tw_known_int(y, &known))
    return tw_plus(at, x, -known);
  return tw_binary(at, "arith.subi", mlirValueGetType(x), x, y);
}

int64_t tw_loop_step(MlirOperation loop) {
  int64_t step;
  bool known = tw_known_int(mlirOperationGetOperand(loop, 2), &step) && !tw_has_attr(loop, "unsignedCmp");
  return known && step > 0 ? step : 0;
}

bool tw_never_crosses(MlirOperation loop) {
  tw_range_t low = tw_range_of(mlirOperationGetOperand(loop, 0)), high = tw_range_of(mlirOperationGetOperand(loop, 1));
  return low.high <= high.low;
}

MlirValue tw_loop_exit(const tw_builder_t *at, MlirOperation loop) {
  MlirValue low = mlirOperationGetOperand(loop, 0), high = mlirOperationGetOperand(loop, 1),
            step = mlirOperationGetOperand(loop, 2);
  MlirType type = mlirValueGetType(low);
  int64_t from, to, by;
  if (tw_known_int(low, &from) && tw_known_int(high, &to) && tw_known_int(step, &by) && by > 0)
    return tw_const_int(at, type, to > from ? from + (to - from + by - 1) / by * by : from);
  if (!tw_never_crosses(loop))
    high = tw_binary(at, "arith.maxsi", type, high, low);
  if (tw_known_int(step, &by) && by == 1)
    return high;
  MlirValue count = tw_binary(at, "arith.ceildivsi", type, minus(at, high, low), step);
  return tw_binary(at, "arith.addi", type, low, tw_binary(at, "arith.muli", type, count, step));
}

/* The scalar of which all elements are copies; null if it is not seen. */
static MlirValue scalar_of(MlirValue value) {
  MlirOperation op = tw_def(value);
  while (tw_is_tile(mlirValueGetType(value))) {
    bool copies = !mlirOperationIsNull(op) && (tw_op_is(op, TW_TENSOR_SPLAT) || tw_op_form(op) == TW_FORM_VIEW);
    if (!copies)
      return (MlirValue){NULL};
    value = mlirOperationGetOperand(op, 0);
    op = tw_def(value);
  }
  return value;
}

/* What a step adds: an operand of the sum whose other one is carried. */
static bool read_added(induction_t *in, MlirValue added) {
  MlirBlock body = tw_loop_body(in->loop);
  if (tw_known_int(added, &in->number))
    return in->number % in->step == 0;
  in->add = scalar_of(added);
  return !mlirValueIsNull(in->add) && !tw_defined_in(in->add, body) && in->step == 1 &&
         mlirTypeEqual(tw_element(mlirValueGetType(tw_carried(in->loop, in->which))), mlirValueGetType(in->add));
}

static bool read_induction(induction_t *in) {
  MlirValue carried = tw_carried(in->loop, in->which);
  MlirOperation op = tw_def(tw_carried_next(in->loop, in->which));
  if (!tw_is_int(mlirValueGetType(carried)) || tw_bits(mlirValueGetType(carried)) < 32 || mlirOperationIsNull(op))
    return false;
  in->subtracts = tw_op_is(op, TW_ARITH_SUBI);
  if (!in->subtracts && !tw_op_is(op, TW_ARITH_ADDI))
    return false;
  MlirValue x = mlirOperationGetOperand(op, 0), y = mlirOperationGetOperand(op, 1);
  if (mlirValueEqual(x, carried))
    return read_added(in, y);
  return !in->subtracts && mlirValueEqual(y, carried) && read_added(in, x);
}

static MlirValue converted(const tw_builder_t *at, MlirValue x, MlirType type) {
  if (mlirTypeEqual(mlirValueGetType(x), type))
    return x;
  return tw_unary(at, tw_bits(type) > tw_bits(mlirValueGetType(x)) ? "arith.extsi" : "arith.trunci", type, x);
}

/* The value when the induction variable is, or would be, `now`. */
static MlirValue value_at(const tw_builder_t *at, const induction_t *in, MlirValue now) {
  MlirValue init = tw_carried_init(in->loop, in->which), by;
  MlirType type = mlirValueGetType(init);
  MlirValue passed = converted(at, minus(at, now, mlirOperationGetOperand(in->loop, 0)), tw_element(type));
  if (mlirValueIsNull(in->add))
    by = times(at, passed, in->number / in->step);
  else
    by = tw_binary(at, "arith.muli", tw_element(type), passed, in->add);
  if (tw_is_tile(type))
    by = tw_unary(at, "tensor.splat", type, by);
  return tw_binary(at, in->subtracts ? "arith.subi" : "arith.addi", type, init, by);
}

static void simplify(const induction_t *in) {
  MlirValue carried = tw_carried(in->loop, in->which);
  MlirValue result = mlirOperationGetResult(in->loop, in->which);
  tw_builder_t at = tw_build_before(mlirBlockGetFirstOperation(tw_loop_body(in->loop)));
  MlirValue now = value_at(&at, in, tw_loop_iv(in->loop));
  mlirValueReplaceAllUsesOfWith(carried, now);
  if (tw_is_unused(result))
    return;
  tw_builder_t before = tw_build_before(in->loop);
  MlirValue exit = tw_loop_exit(&before, in->loop);
  mlirValueReplaceAllUsesOfWith(result, value_at(&before, in, exit));
}

void tw_simplify_inductions(MlirOperation loop) {
  induction_t in = {.loop = loop, .step = tw_loop_step(loop)};
  for (in.which = 0; in.step > 0 && in.which < mlirOperationGetNumResults(loop); in.which++) {
    in.add = (MlirValue){NULL};
    if (read_induction(&in))
      simplify(&in);
  }
}
