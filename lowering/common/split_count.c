/* split_count.c - in tile-canonicalize: a loop over the steps of all tiles is a loop over tiles, with their steps in it
 *
 *   before   scf.for %s = 0 to %n * %m iter_args(%k = -1, %t = ..., %x = %zero) {
 *              %p = select(%k == %n - 1, 0, %k + 1)                       // or %s % %n
 *              %u = scf.if %p == 0 { %t + 1 } else { %t }
 *              %y = ... %x, of step %p of tile %u
 *              scf.if %p == %n - 1 { tile.store %y ... }
 *              yield %p, %u, select(%p == %n - 1, %zero, %y)
 *            }
 *
 *   after    scf.for %i = 0 to (%n > 0 ? %m : 0) iter_args(%t = ...) {
 *              %u = %t + 1
 *              %y = scf.for %p = 0 to %n iter_args(%x = %zero) { ... }
 *              tile.store %y ...
 *              yield %u
 *            }
 *
 * So a sum of products is one of a loop, and what is done with it stands behind that. What must hold: the count of
 * steps is a natural number, and that of all steps a product of numbers of tiles, which does not wrap. Upon the first
 * step there is arithmetic alone, which the other steps keep; upon the last one what writes to memory, from what that
 * step leaves, and what a step carries on begins anew with something from outside. */
#include "lowering/common/canonicalize.h"
#include "lowering/loops.h"
#include "lowering/ranges.h"

#include <math.h>

enum { MOST_CARRIED = 16 };
typedef enum { KEPT, SUMMED } carried_kind_t;

typedef struct {
  MlirOperation loop, head, tail; /* the branches upon the first and the last step; the former may be null */
  MlirBlock body;
  MlirValue steps, tiles, phase; /* phase: the number of the step in its tile */
  intptr_t counter;              /* the carried value that counts it; -1 */
  carried_kind_t kind[MOST_CARRIED];
  MlirValue anew[MOST_CARRIED], step[MOST_CARRIED]; /* what a sum begins with, and what a step makes of it */
} flat_t;

static bool is_int(MlirValue value, int64_t wanted) {
  int64_t known;
  return tw_known_int(value, &known) && known == wanted;
}

static bool is_defined_outside(const flat_t *f, MlirValue value) { return !tw_defined_in(value, f->body); }

/* %x + by */
static bool is_sum(MlirValue value, MlirValue x, int64_t by) {
  MlirOperation op = tw_def(value);
  bool adds = !mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_ADDI);
  bool subtracts = !mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_SUBI);
  return (adds || subtracts) && mlirValueEqual(mlirOperationGetOperand(op, 0), x) &&
         is_int(mlirOperationGetOperand(op, 1), adds ? by : -by);
}

static bool is_equality(MlirValue condition, MlirValue x, MlirValue *other) {
  MlirOperation op = tw_def(condition);
  if (mlirOperationIsNull(op) || !tw_op_is(op, TW_ARITH_CMPI) || tw_attr_int(op, "predicate", -1) != TW_EQ)
    return false;
  for (int i = 0; i < 2; i++)
    if (mlirValueEqual(mlirOperationGetOperand(op, i), x)) {
      *other = mlirOperationGetOperand(op, 1 - i);
      return true;
    }
  return false;
}

/* Whether it tells whether `number` is that of the last step. */
static bool is_last(const flat_t *f, MlirValue condition, MlirValue number) {
  MlirValue other;
  return is_equality(condition, number, &other) && is_sum(other, f->steps, -1);
}

static bool is_first(const flat_t *f, MlirValue condition) {
  MlirValue other;
  return is_equality(condition, f->phase, &other) && is_int(other, 0);
}

/* ---- what counts the steps of a tile ------------------------------------------------------------------- */

/* Whether nothing else is made of a value. */
static bool only_makes(MlirValue value, MlirOperation op) {
  TW_EACH_USE(use, value) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    if (!mlirOperationEqual(user, op) && (mlirOperationGetNumResults(user) != 1 ||
                                          !mlirOperationEqual(tw_only_user(mlirOperationGetResult(user, 0)), op)))
      return false;
  }
  return true;
}

/* A carried number that begins anew behind the last step, known in front of a step or changed at its begin. */
static bool counts_by_carrying(flat_t *f, intptr_t i) {
  MlirValue carried = tw_carried(f->loop, i), next = tw_carried_next(f->loop, i);
  MlirOperation op = tw_def(next);
  if (mlirOperationIsNull(op) || !tw_op_is(op, TW_ARITH_SELECT) || !is_int(mlirOperationGetOperand(op, 1), 0) ||
      !is_sum(mlirOperationGetOperand(op, 2), carried, 1) || !is_last(f, mlirOperationGetOperand(op, 0), carried))
    return false;
  bool before = is_int(tw_carried_init(f->loop, i), -1);
  if (before ? !only_makes(carried, op) : !is_int(tw_carried_init(f->loop, i), 0))
    return false;
  f->counter = i;
  f->phase = before ? next : carried;
  return true;
}

/* What is left over, as Python has it: of natural numbers the same. */
static MlirValue without_sign(MlirOperation rest) {
  MlirValue value = mlirOperationGetResult(rest, 0);
  TW_EACH_USE(use, value) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    bool first;
    if (tw_op_is(user, TW_ARITH_SELECT) && tw_is_decided(mlirOperationGetOperand(user, 0), &first) &&
        mlirValueEqual(mlirOperationGetOperand(user, first ? 1 : 2), value))
      return mlirOperationGetResult(user, 0);
  }
  return value;
}

static bool counts_by_rest(flat_t *f) {
  TW_EACH_USE(use, tw_loop_iv(f->loop)) {
    MlirOperation op = mlirOpOperandGetOwner(use);
    if (tw_op_class(op) == TW_CLASS_REST && mlirBlockEqual(mlirOperationGetBlock(op), f->body) &&
        mlirValueEqual(mlirOperationGetOperand(op, 0), tw_loop_iv(f->loop)) &&
        mlirValueEqual(mlirOperationGetOperand(op, 1), f->steps)) {
      f->phase = without_sign(op);
      return true;
    }
  }
  return false;
}

static bool finds_phase(flat_t *f) {
  f->counter = -1;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(f->loop); i++)
    if (counts_by_carrying(f, i))
      return true;
  return counts_by_rest(f);
}

/* ---- what a step does ----------------------------------------------------------------------------------- */

static bool is_plain(MlirOperation op) { return tw_is_arithmetic(op) && mlirOperationGetNumRegions(op) == 0; }

static bool has_only_plain(MlirBlock block) {
  TW_EACH_OP(op, block)
    if (!mlirOperationEqual(op, mlirBlockGetTerminator(block)) && !is_plain(op))
      return false;
  return true;
}

static MlirOperation end_of(MlirOperation branch, int side) {
  return mlirBlockGetTerminator(tw_region_block(branch, side));
}

/* The two branches, and nothing else that writes or branches. */
static bool finds_branches(flat_t *f) {
  f->head = f->tail = tw_null_op();
  TW_EACH_OP(op, f->body) {
    bool branches = tw_op_is(op, TW_SCF_IF);
    if (mlirOperationEqual(op, tw_loop_yield(f->loop)))
      break;
    if (branches && mlirOperationIsNull(f->head) && is_first(f, mlirOperationGetOperand(op, 0)))
      f->head = op;
    else if (branches && mlirOperationIsNull(f->tail) && is_last(f, mlirOperationGetOperand(op, 0), f->phase))
      f->tail = op;
    else if (mlirOperationGetNumRegions(op) > 0 || tw_may_write_arrays(op) ||
             (!mlirOperationIsNull(f->tail) && !is_plain(op)))
      return false;
  }
  bool has_rest = !mlirOperationIsNull(f->head) && mlirOperationGetNumResults(f->head) > 0;
  return !mlirOperationIsNull(f->tail) &&
         (mlirOperationIsNull(f->head) ||
          (has_rest && has_only_plain(tw_region_block(f->head, 0)) && has_only_plain(tw_region_block(f->head, 1))));
}

static bool is_result_of(MlirValue value, MlirOperation op) {
  return !mlirOperationIsNull(op) && !mlirOperationIsNull(tw_def(value)) && mlirOperationEqual(tw_def(value), op);
}

static bool is_read_outside_of_head(const flat_t *f, MlirValue value) {
  TW_EACH_USE(use, value)
    if (mlirOperationIsNull(f->head) || !tw_is_inside(mlirOpOperandGetOwner(use), f->head))
      return true;
  return false;
}

static bool is_read_in(MlirOperation branch, MlirValue value) {
  TW_EACH_USE(use, value)
    if (!mlirOperationIsNull(branch) && tw_is_inside(mlirOpOperandGetOwner(use), branch))
      return true;
  return false;
}

/* What the first step of a tile changes, and others keep. */
static bool is_kept(const flat_t *f, intptr_t i) {
  MlirValue carried = tw_carried(f->loop, i), next = tw_carried_next(f->loop, i);
  if (mlirValueEqual(next, carried))
    return true;
  if (!is_result_of(next, f->head))
    return false;
  intptr_t which = mlirOpResultGetResultNumber(next);
  return mlirValueEqual(mlirOperationGetOperand(end_of(f->head, 1), which), carried) &&
         !is_read_outside_of_head(f, carried);
}

static bool is_same(MlirValue x, MlirValue y) {
  double a, b;
  return tw_is_same_number(x, y) ||
         (tw_known_float(x, &a) && tw_known_float(y, &b) && a == b && signbit(a) == signbit(b));
}

/* What each step changes, and what begins anew behind the last one, as it began in front of the loop. */
static bool is_summed(flat_t *f, intptr_t i) {
  MlirValue next = tw_carried_next(f->loop, i);
  MlirOperation op = tw_def(next);
  if (mlirOperationIsNull(op))
    return false;
  if (tw_op_is(op, TW_ARITH_SELECT) && is_last(f, mlirOperationGetOperand(op, 0), f->phase)) {
    f->anew[i] = mlirOperationGetOperand(op, 1);
    f->step[i] = mlirOperationGetOperand(op, 2);
  } else if (is_result_of(next, f->tail)) {
    f->anew[i] = mlirOperationGetOperand(end_of(f->tail, 0), mlirOpResultGetResultNumber(next));
    f->step[i] = mlirOperationGetOperand(end_of(f->tail, 1), mlirOpResultGetResultNumber(next));
  } else {
    return false;
  }
  MlirValue carried = tw_carried(f->loop, i);
  return is_same(f->anew[i], tw_carried_init(f->loop, i)) && tw_defined_in(f->step[i], f->body) &&
         !is_read_in(f->head, carried) && !is_read_in(f->tail, carried) && !is_result_of(f->step[i], f->tail);
}

static bool sorts_carried(flat_t *f) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(f->loop); i++) {
    f->kind[i] = is_kept(f, i) ? KEPT : SUMMED;
    if (i != f->counter && f->kind[i] == SUMMED && !is_summed(f, i))
      return false;
  }
  return true;
}

/* Whether a value can be had beside the steps: behind them also what they leave, or arithmetic on such. */
static bool is_had_beside(const flat_t *f, MlirValue value, bool behind) {
  MlirOperation op = tw_def(value);
  if (is_defined_outside(f, value) || mlirValueEqual(value, f->phase) || (behind && is_result_of(value, f->head)) ||
      mlirValueEqual(value, tw_loop_iv(f->loop)))
    return true;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(f->loop); i++)
    if (i != f->counter &&
        (f->kind[i] == SUMMED ? mlirValueEqual(value, f->step[i]) : mlirValueEqual(value, tw_carried(f->loop, i))))
      return true;
  bool is = !mlirOperationIsNull(op) && mlirBlockEqual(mlirOperationGetBlock(op), f->body) && is_plain(op);
  for (intptr_t i = 0; is && i < mlirOperationGetNumOperands(op); i++)
    is = is_had_beside(f, mlirOperationGetOperand(op, i), behind);
  return is;
}

/* Whether what a branch reads of a step can be had beside the steps. */
static bool reads_what_is_left(const flat_t *f, MlirOperation branch) {
  if (mlirOperationIsNull(branch))
    return true;
  bool behind = mlirOperationEqual(branch, f->tail), ok = true;
  MlirBlock block = tw_region_block(branch, 0);
  TW_EACH_OP(op, block) {
    bool reads = !behind || !mlirOperationEqual(op, mlirBlockGetTerminator(block));
    for (intptr_t i = 0; ok && reads && i < mlirOperationGetNumOperands(op); i++) {
      MlirValue value = mlirOperationGetOperand(op, i);
      ok = tw_defined_in(value, block) || is_had_beside(f, value, behind);
    }
    ok = ok && mlirOperationGetNumRegions(op) == 0;
  }
  return ok;
}

/* Whether what the last branch gives is only handed on. */
static bool only_hands_on(const flat_t *f) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(f->tail); i++)
    TW_EACH_USE(use, mlirOperationGetResult(f->tail, i))
      if (!mlirOperationEqual(mlirOpOperandGetOwner(use), tw_loop_yield(f->loop)))
        return false;
  return true;
}

static bool is_flat(flat_t *f) {
  MlirOperation product = tw_def(mlirOperationGetOperand(f->loop, 1));
  intptr_t num = mlirOperationGetNumResults(f->loop);
  if (tw_loop_step(f->loop) != 1 || !is_int(mlirOperationGetOperand(f->loop, 0), 0) || num > MOST_CARRIED ||
      mlirOperationIsNull(product) || !tw_op_is(product, TW_ARITH_MULI))
    return false;
  for (intptr_t i = 0; i < num; i++)
    if (!tw_is_unused(mlirOperationGetResult(f->loop, i)))
      return false;
  for (int i = 0; i < 2; i++) {
    f->steps = mlirOperationGetOperand(product, i);
    f->tiles = mlirOperationGetOperand(product, 1 - i);
    if (tw_is_natural(f->steps) && finds_phase(f) && finds_branches(f) && only_hands_on(f) && sorts_carried(f) &&
        reads_what_is_left(f, f->head) && reads_what_is_left(f, f->tail))
      return true;
  }
  return false;
}

/* ---- building ------------------------------------------------------------------------------------------ */

static MlirBlock new_body(const flat_t *f, bool inner) {
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  MlirLocation location = mlirOperationGetLocation(f->loop);
  mlirBlockAddArgument(block, mlirValueGetType(tw_loop_iv(f->loop)), location);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(f->loop); i++)
    if (i != f->counter && (f->kind[i] == SUMMED) == inner)
      mlirBlockAddArgument(block, mlirValueGetType(tw_carried(f->loop, i)), location);
  return block;
}

/* %i * steps + the number of a step, and that, in the map. */
static void name_step(const flat_t *f, const tw_builder_t *at, MlirValue tile, MlirValue number, tw_map_t *map) {
  MlirType type = mlirValueGetType(number);
  MlirValue first = tw_binary(at, "arith.muli", type, tile, f->steps);
  tw_map_one(map, tw_loop_iv(f->loop), tw_binary(at, "arith.addi", type, first, number));
  tw_map_one(map, f->phase, number);
}

/* The ops of a block, with what they read of a step. */
static void copy_ops(const flat_t *f, const tw_builder_t *at, MlirBlock block, tw_map_t *map) {
  MlirOperation end = mlirBlockGetTerminator(block);
  for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationEqual(op, end);
       op = mlirOperationGetNextInBlock(op)) {
    for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
      tw_copy_slice(at, mlirOperationGetOperand(op, i), f->body, map);
    tw_copy_op(at, op, map);
  }
}

static bool is_quotient(const flat_t *f, MlirOperation op) {
  return tw_op_class(op) == TW_CLASS_QUOTIENT && mlirValueEqual(mlirOperationGetOperand(op, 0), tw_loop_iv(f->loop)) &&
         mlirValueEqual(mlirOperationGetOperand(op, 1), f->steps);
}

/* The number of a tile is what the outer loop counts. */
static void name_tile(const flat_t *f, MlirValue tile, tw_map_t *map) {
  TW_EACH_USE(use, tw_loop_iv(f->loop))
    if (is_quotient(f, mlirOpOperandGetOwner(use)))
      tw_map_one(map, mlirOperationGetResult(mlirOpOperandGetOwner(use), 0), tile);
}

static void do_first(const flat_t *f, const tw_builder_t *at, MlirValue tile, tw_map_t *kept) {
  tw_map_t map = {0};
  MlirType type = mlirValueGetType(tile);
  if (mlirOperationIsNull(f->head))
    return;
  name_step(f, at, tile, tw_const_int(at, type, 0), &map);
  name_tile(f, tile, &map);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(f->loop); i++)
    if (i != f->counter && f->kind[i] == KEPT)
      tw_map_one(&map, tw_carried(f->loop, i), tw_map_value(kept, tw_carried(f->loop, i)));
  copy_ops(f, at, tw_region_block(f->head, 0), &map);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(f->head); i++) {
    MlirValue value = mlirOperationGetOperand(end_of(f->head, 0), i);
    tw_map_one(kept, mlirOperationGetResult(f->head, i), tw_copy_slice(at, value, f->body, &map));
  }
  tw_map_free(&map);
}

/* Whether a value is the count before it is that of the step. */
static bool counts_before(const flat_t *f, MlirValue value) {
  return f->counter >= 0 && mlirValueEqual(value, tw_carried(f->loop, f->counter)) && !mlirValueEqual(value, f->phase);
}

/* The loop over the steps of a tile. */
static MlirOperation build_steps(const flat_t *f, const tw_builder_t *at, MlirValue tile, const tw_map_t *kept) {
  MlirValue operands[TW_FOR_INITS + MOST_CARRIED], yields[MOST_CARRIED];
  MlirBlock block = new_body(f, true);
  tw_map_t map = {0};
  intptr_t n = TW_FOR_INITS, num = 0, argument = 1;
  operands[0] = tw_const_int(at, mlirValueGetType(tile), 0);
  operands[1] = f->steps;
  operands[2] = tw_const_int(at, mlirValueGetType(tile), 1);
  tw_builder_t in = tw_build_at_end(block, mlirOperationGetLocation(f->loop));
  name_step(f, &in, tile, mlirBlockGetArgument(block, 0), &map);
  name_tile(f, tile, &map);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(f->loop); i++) {
    if (i == f->counter)
      continue;
    if (f->kind[i] == SUMMED)
      operands[n++] = tw_carried_init(f->loop, i);
    MlirValue now =
        f->kind[i] == SUMMED ? mlirBlockGetArgument(block, argument++) : tw_map_value(kept, tw_carried(f->loop, i));
    tw_map_one(&map, tw_carried(f->loop, i), now);
  }
  for (intptr_t i = 0; !mlirOperationIsNull(f->head) && i < mlirOperationGetNumResults(f->head); i++)
    tw_map_one(&map, mlirOperationGetResult(f->head, i), tw_map_value(kept, mlirOperationGetResult(f->head, i)));
  TW_EACH_OP(op, f->body) {
    bool stays = mlirOperationEqual(op, f->head) || mlirOperationEqual(op, f->tail) || is_quotient(f, op) ||
                 is_result_of(f->phase, op) || mlirOperationEqual(op, tw_loop_yield(f->loop));
    for (intptr_t i = 0; !stays && i < mlirOperationGetNumOperands(op); i++)
      stays = counts_before(f, mlirOperationGetOperand(op, i));
    if (!stays)
      tw_copy_op(&in, op, &map);
  }
  for (intptr_t i = 0; i < mlirOperationGetNumResults(f->loop); i++)
    if (i != f->counter && f->kind[i] == SUMMED)
      yields[num++] = tw_map_value(&map, f->step[i]);
  tw_build(&in, "scf.yield", (tw_op_parts_t){.num_operands = num, .operands = yields});
  tw_map_free(&map);
  return tw_build_for(at, n, operands, tw_region_with(block));
}

static void do_last(const flat_t *f, const tw_builder_t *at, MlirValue tile, MlirOperation steps,
                    const tw_map_t *kept) {
  tw_map_t map = {0};
  MlirType type = mlirValueGetType(tile);
  intptr_t result = 0;
  MlirValue last = tw_binary(at, "arith.subi", type, f->steps, tw_const_int(at, type, 1));
  name_step(f, at, tile, last, &map);
  name_tile(f, tile, &map);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(f->loop); i++)
    if (i != f->counter && f->kind[i] == SUMMED)
      tw_map_one(&map, f->step[i], mlirOperationGetResult(steps, result++));
    else if (i != f->counter)
      tw_map_one(&map, tw_carried(f->loop, i), tw_map_value(kept, tw_carried(f->loop, i)));
  for (intptr_t i = 0; !mlirOperationIsNull(f->head) && i < mlirOperationGetNumResults(f->head); i++)
    tw_map_one(&map, mlirOperationGetResult(f->head, i), tw_map_value(kept, mlirOperationGetResult(f->head, i)));
  copy_ops(f, at, tw_region_block(f->tail, 0), &map);
  tw_map_free(&map);
}

/* Arithmetic that nobody reads any more. */
static void drop_unread(MlirBlock block) {
  tw_ops_t ops = {0};
  TW_EACH_OP(op, block)
    if (is_plain(op))
      tw_ops_add(&ops, op);
  for (int i = ops.count - 1; i >= 0; i--) {
    bool is_unread = true;
    for (intptr_t r = 0; r < mlirOperationGetNumResults(ops.at[i]); r++)
      is_unread = is_unread && tw_is_unused(mlirOperationGetResult(ops.at[i], r));
    if (is_unread)
      mlirOperationDestroy(ops.at[i]);
  }
  tw_ops_free(&ops);
}

static void split(const flat_t *f) {
  MlirValue operands[TW_FOR_INITS + MOST_CARRIED], yields[MOST_CARRIED];
  tw_builder_t before = tw_build_before(f->loop);
  MlirBlock block = new_body(f, false);
  MlirType type = mlirValueGetType(tw_loop_iv(f->loop));
  MlirValue zero = tw_const_int(&before, type, 0), tile = mlirBlockGetArgument(block, 0);
  MlirValue some = tw_compare(&before, TW_SGT, f->steps, zero);
  tw_map_t kept = {0};
  intptr_t n = TW_FOR_INITS, num = 0;
  operands[0] = zero;
  operands[1] = tw_select(&before, some, f->tiles, zero);
  operands[2] = tw_const_int(&before, type, 1);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(f->loop); i++)
    if (i != f->counter && f->kind[i] == KEPT) {
      tw_map_one(&kept, tw_carried(f->loop, i), mlirBlockGetArgument(block, n - TW_FOR_INITS + 1));
      operands[n++] = tw_carried_init(f->loop, i);
    }
  tw_builder_t at = tw_build_at_end(block, mlirOperationGetLocation(f->loop));
  do_first(f, &at, tile, &kept);
  MlirOperation steps = build_steps(f, &at, tile, &kept);
  do_last(f, &at, tile, steps, &kept);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(f->loop); i++)
    if (i != f->counter && f->kind[i] == KEPT)
      yields[num++] = tw_map_value(&kept, tw_carried_next(f->loop, i));
  tw_build(&at, "scf.yield", (tw_op_parts_t){.num_operands = num, .operands = yields});
  tw_build_for(&before, n, operands, tw_region_with(block));
  drop_unread(tw_loop_body(steps));
  drop_unread(block);
  tw_map_free(&kept);
  mlirOperationDestroy(f->loop);
}

void tw_split_count(MlirOperation loop) {
  flat_t f = {.loop = loop, .body = tw_loop_body(loop)};
  if (is_flat(&f))
    split(&f);
}
