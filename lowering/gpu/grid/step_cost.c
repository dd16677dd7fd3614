/* step_cost.c - see step_cost.h */
#include "lowering/gpu/grid/step_cost.h"

#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/launch_record.h"

/* By how much `value` divides another; to one more or less it does not matter how it rounds. */
static bool is_quotient(MlirValue value, int64_t *by) {
  MlirOperation op = tw_def(value);
  tw_op_class_t class = mlirOperationIsNull(op) ? TW_CLASS_NONE : tw_op_class(op);
  return (class == TW_CLASS_QUOTIENT || class == TW_CLASS_CEILING) && tw_known_int(mlirOperationGetOperand(op, 1), by);
}

/* How often a loop by one runs, as a value: from 0 to n, or from 0 - n to 0, as ranges go that count downwards. Null if
 * it is none. */
static MlirValue count_of(MlirOperation loop) {
  MlirValue lower = mlirOperationGetOperand(loop, 0), upper = mlirOperationGetOperand(loop, 1);
  MlirOperation op = tw_def(lower);
  int64_t first, end;
  if (tw_known_int(lower, &first))
    return first == 0 ? upper : (MlirValue){NULL};
  bool down = !mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_SUBI) && tw_known_int(upper, &end) &&
              tw_known_int(mlirOperationGetOperand(op, 0), &first) && first == end;
  return down ? mlirOperationGetOperand(op, 1) : (MlirValue){NULL};
}

/* By how much the value is multiplied, as is the end of a loop that takes a product's k in steps; else 1. */
static int64_t take_factor(MlirValue *value) {
  MlirOperation op = tw_def(*value);
  int64_t by;
  if (mlirOperationIsNull(op) || !tw_op_is(op, TW_ARITH_MULI) || !tw_known_int(mlirOperationGetOperand(op, 1), &by))
    return 1;
  *value = mlirOperationGetOperand(op, 0);
  return by;
}

bool tw_steps_of(MlirOperation func, MlirOperation loop, tw_steps_t *out) {
  MlirValue count = count_of(loop);
  int64_t times;
  *out = (tw_steps_t){.word = -1, .per_step = 1};
  if (mlirValueIsNull(count))
    return false;
  if (tw_known_int(count, &out->steps))
    return true;
  times = take_factor(&count);
  if (is_quotient(count, &out->per_step))
    count = mlirOperationGetOperand(tw_def(count), 0);
  out->word = tw_word_behind(func, count);
  bool known = out->word >= 0 && out->per_step > 0 && times > 0 && out->per_step % times == 0;
  out->per_step = known ? out->per_step / times : 1;
  return known;
}

tw_steps_t tw_steps_or_guess(MlirOperation func, MlirOperation loop) {
  enum { GUESSED_STEPS = 8 };
  int64_t step;
  tw_steps_t steps = {-1, 1, 1}, guessed = {-1, 1, GUESSED_STEPS};
  if (!tw_op_is(loop, TW_SCF_FOR))
    return steps;
  bool known = tw_known_int(mlirOperationGetOperand(loop, 2), &step) && step == 1 && tw_steps_of(func, loop, &steps);
  return known ? steps : guessed;
}

int64_t tw_step_cycles(MlirOperation func, int64_t flop_cycles, int64_t bytes) {
  const tw_machine_t *machine = tw_gpu_target_of(func).machine;
  int64_t memory = bytes / machine->l2_bytes_alone;
  return machine->step_clocks + (memory > flop_cycles ? memory : flop_cycles);
}

static bool was_loaded_as_byte(MlirValue factor) {
  MlirOperation op = tw_def(factor);
  if (mlirOperationIsNull(op) || (!tw_op_is(op, TW_ARITH_SITOFP) && !tw_op_is(op, TW_ARITH_UITOFP)))
    return false;
  MlirOperation made = tw_def(mlirOperationGetOperand(op, 0));
  return mlirOperationIsNull(made) || tw_op_form(made) != TW_FORM_ELEMENTWISE;
}

/* Whether bytes that are loaded are multiplied as numbers of 16 bits: that takes hardly less than by way of f32, with
 * its rounding, by which the clocks of an op were measured. */
static bool scales_bytes(MlirOperation op) {
  enum { HALF_BITS = 16 };
  return tw_op_is(op, TW_ARITH_MULF) &&
         tw_bits(tw_element(mlirValueGetType(mlirOperationGetResult(op, 0)))) == HALF_BITS &&
         (was_loaded_as_byte(mlirOperationGetOperand(op, 0)) || was_loaded_as_byte(mlirOperationGetOperand(op, 1)));
}

int64_t tw_computed_elements(MlirOperation op) {
  bool computes = tw_op_form(op) == TW_FORM_ELEMENTWISE && mlirOperationGetNumResults(op) == 1 &&
                  tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0)));
  int64_t ops = computes && scales_bytes(op) ? 2 : 1;
  return computes ? ops * tw_count(mlirValueGetType(mlirOperationGetResult(op, 0))) : 0;
}

static bool has_computed_operand(MlirOperation op, const void *user) {
  (void)user;
  return tw_op_is_product(op) && (tw_computes_operand(op, 0) || tw_computes_operand(op, 1));
}

bool tw_computes_operands(MlirOperation loop) {
  return !mlirOperationIsNull(tw_find_op(loop, has_computed_operand, NULL));
}

/* A warp that has a scheduler to itself waits for most of its own instructions: of weights of 8 bits for 16 rows, 2700
 * clocks for three ops on 128x128 elements. Of two, the other one goes on: of 64x128 such elements beside a product of
 * 128x128x64, 780 clocks with the product's 512, and of 4 bits, five ops, 1140 (NVIDIA H200, 2026-11-23). */
int64_t tw_computing_cycles(MlirOperation func, int64_t elements, int64_t warps) {
  const tw_machine_t *machine = tw_gpu_target_of(func).machine;
  int64_t busy = warps < TW_SCHEDULERS ? warps : TW_SCHEDULERS;
  return elements / (busy * TW_WARP_LANES) * (warps > TW_SCHEDULERS ? machine->op_clocks : machine->op_clocks_alone);
}

typedef struct {
  tw_array_place_t arrays[TW_MAX_LOADED];
  size_t count;
} loaded_t;

static MlirWalkResult note_array(MlirOperation op, void *user) {
  loaded_t *loaded = user;
  intptr_t first;
  if (!tw_op_loads(op))
    return MlirWalkResultAdvance;
  MlirValue array = tw_access_array(op, &first);
  if (!mlirValueIsABlockArgument(array) || loaded->count == TW_MAX_LOADED)
    return MlirWalkResultAdvance;
  tw_array_place_t place = tw_array_place(array);
  for (size_t i = 0; i < loaded->count; i++)
    if (loaded->arrays[i].word == place.word)
      return MlirWalkResultAdvance;
  loaded->arrays[loaded->count++] = place;
  return MlirWalkResultAdvance;
}

void tw_record_loaded(MlirOperation func, MlirOperation loop) {
  loaded_t loaded = {.count = 0};
  mlirOperationWalk(loop, note_array, &loaded, MlirWalkPreOrder);
  tw_launch_set_loaded(func, loaded.arrays, loaded.count);
}
