/* reroll.c - in tile-canonicalize: steps of a loop that were written beside it, or several times in it
 *
 * A step that a program does in front of the loop or behind it, because it loads ahead by hand or has always done so,
 * is a step of the loop; two steps written one after the other are two steps.
 *
 *   before   %x1 = tile.mma %a(0), %b(0), %x0                  after   %x3 = scf.for %k = 0 to %n step 1
 *            %x2 = scf.for %k = 1 to %n - 2 step 2                              iter_args(%x = %x0) {
 *                            iter_args(%x = %x1) {                       scf.yield tile.mma %a(%k), %b(%k), %x
 *              %y = tile.mma %a(%k), %b(%k), %x                        }
 *              scf.yield tile.mma %a(%k + 1), %b(%k + 1), %y
 *            }
 *            %x3 = tile.mma %a(%n - 1), %b(%n - 1), %x2
 *
 * A tile that the loop carries and that only depends on the number of the step is loaded in the step that uses it:
 *
 *   before   scf.for %k = 1 to %n iter_args(%a = %load(0)) {   after   scf.for %k = 0 to %n - 1 {
 *              ... %a                                                    %a = %load(%k)
 *              scf.yield %load(%k)                                       ... %a
 *            }                                                         }
 *
 * What must hold: the loop writes no array, and its step is a known number; no array is written between the loop and
 * the step beside it. Steps are compared op by op (match_step.h); each is done once, in order. A load of the loop gets
 * the padding that the one behind it has, where its own is left open. */
#include "lowering/common/canonicalize.h"
#include "lowering/common/match_step.h"
#include "lowering/loops.h"

enum { MOST_COPIES = 8, MOST_BEHIND = 256 };

static intptr_t num_carried(MlirOperation loop) { return mlirOperationGetNumResults(loop); }

static bool is_suitable(MlirOperation loop) {
  return tw_loop_step(loop) > 0 && num_carried(loop) > 0 && num_carried(loop) <= TW_MOST_CARRIED;
}

/* A match in which the induction variable stands for `start` + number. */
static tw_step_match_t match_at(MlirOperation loop, MlirValue start, int64_t number) {
  tw_step_match_t m = {.loop = loop};
  tw_sum_add(&m.iv, start, 1);
  m.iv.constant += number;
  return m;
}

/* Whether no op from `op` on to `end` writes an array. */
static bool is_quiet(MlirOperation op, MlirOperation end) {
  for (; !mlirOperationIsNull(op) && !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op))
    if (tw_may_write_arrays(op))
      return false;
  return true;
}

/* Whether the matched loads stand in the loop's block, and nothing writes an array from the first to the loop. */
static bool loads_are_quiet(const tw_step_match_t *m) {
  MlirBlock block = mlirOperationGetBlock(m->loop);
  tw_ops_t loads = tw_ops_in(m->loop, tw_op_loads, MlirWalkPreOrder);
  bool ok = true;
  for (int i = 0; ok && i < loads.count; i++) {
    const MlirValue *other = tw_map_get(&m->same, mlirOperationGetResult(loads.at[i], 0).ptr, NULL);
    MlirOperation op = other ? tw_def(*other) : tw_null_op();
    if (!mlirOperationIsNull(op))
      ok = mlirBlockEqual(mlirOperationGetBlock(op), block) && is_quiet(op, m->loop);
  }
  tw_ops_free(&loads);
  return ok;
}

/* --- Tiles carried to be early ------------------------------------------------------------------------- */

/* Whether the value is computed in the body from loads and the number of the step alone. */
static bool depends_on_number(MlirOperation loop, MlirValue value) {
  MlirOperation op = tw_def(value);
  if (mlirValueEqual(value, tw_loop_iv(loop)) || !tw_defined_in(value, tw_loop_body(loop)))
    return true;
  bool ok =
      !mlirOperationIsNull(op) && mlirOperationGetNumRegions(op) == 0 && (tw_is_arithmetic(op) || tw_op_loads(op));
  for (intptr_t i = 0; ok && i < mlirOperationGetNumOperands(op); i++)
    ok = depends_on_number(loop, mlirOperationGetOperand(op, i));
  return ok;
}

/* Whether the carried tile starts as what the step before the first would leave. */
static bool is_early(MlirOperation loop, intptr_t which) {
  MlirValue next = tw_carried_next(loop, which);
  if (!tw_is_tile(mlirValueGetType(next)) || !tw_defined_in(next, tw_loop_body(loop)) || !depends_on_number(loop, next))
    return false;
  tw_step_match_t m = match_at(loop, mlirOperationGetOperand(loop, 0), -tw_loop_step(loop));
  bool ok = tw_match_step(&m, next, tw_carried_init(loop, which)) && m.loads > 0 && loads_are_quiet(&m);
  tw_map_free(&m.same);
  return ok;
}

/* A loop that counts a step lower, and what its body reads now: the number of the next step. */
typedef struct {
  MlirOperation loop;
  MlirValue next, exit; /* exit: what the loop would go on with */
} lowered_t;

static lowered_t count_lower(MlirOperation loop) {
  tw_builder_t before = tw_build_before(loop), at = tw_build_before(mlirBlockGetFirstOperation(tw_loop_body(loop)));
  int64_t step = tw_loop_step(loop);
  for (int i = 0; i < 2; i++)
    mlirOperationSetOperand(loop, i, tw_plus(&before, mlirOperationGetOperand(loop, i), -step));
  MlirValue iv = tw_loop_iv(loop), next = tw_plus(&at, iv, step);
  mlirValueReplaceAllUsesExcept(iv, next, 1, (MlirOperation[]){tw_def(next)});
  return (lowered_t){loop, next, tw_loop_exit(&before, loop)};
}

/* What the body computes when the next step's number is `number`. */
static MlirValue computed_at(const tw_builder_t *at, const lowered_t *l, MlirValue value, MlirValue number) {
  tw_map_t map = {0};
  tw_map_one(&map, l->next, number);
  MlirValue made = tw_copy_slice(at, value, tw_loop_body(l->loop), &map);
  tw_map_free(&map);
  return made;
}

static void load_in_place(const lowered_t *l, intptr_t which) {
  MlirValue carried = tw_carried(l->loop, which), next = tw_carried_next(l->loop, which);
  MlirValue result = mlirOperationGetResult(l->loop, which);
  tw_builder_t at = tw_build_before(mlirBlockGetFirstOperation(tw_loop_body(l->loop)));
  if (!tw_is_unused(carried))
    mlirValueReplaceAllUsesOfWith(carried, computed_at(&at, l, next, tw_loop_iv(l->loop)));
  if (tw_is_unused(result))
    return;
  tw_builder_t behind = tw_build_before(mlirOperationGetNextInBlock(l->loop));
  mlirValueReplaceAllUsesOfWith(result, computed_at(&behind, l, next, l->exit));
}

bool tw_load_in_place(MlirOperation loop) {
  bool early[TW_MOST_CARRIED] = {false}, any = false;
  for (intptr_t i = 0; is_suitable(loop) && i < num_carried(loop); i++) {
    bool used = !tw_is_unused(tw_carried(loop, i)) || !tw_is_unused(mlirOperationGetResult(loop, i));
    any |= early[i] = used && is_early(loop, i);
  }
  if (!any)
    return false;
  lowered_t lowered = count_lower(loop);
  for (intptr_t i = 0; i < num_carried(loop); i++)
    if (early[i])
      load_in_place(&lowered, i);
  return true;
}

void tw_tell_carried_tiles(MlirOperation loop) {
  for (intptr_t i = 0; is_suitable(loop) && i < num_carried(loop); i++) {
    MlirOperation op = tw_def(tw_carried_next(loop, i));
    if (!mlirOperationIsNull(op) && tw_op_loads_tile(op) &&
        tw_defined_in(tw_carried_next(loop, i), tw_loop_body(loop)) && !tw_is_unused(tw_carried(loop, i)))
      tw_op_remark(op, "is for the next step of its loop, and lies in registers until then: load the tile in the step "
                       "that uses it, which brings it as early");
  }
}

/* --- Steps in front ------------------------------------------------------------------------------------- */

/* The last step in front of the loop, if there is one: what it starts with is what that leaves. */
static bool match_in_front(tw_step_match_t *m) {
  for (intptr_t i = 0; i < num_carried(m->loop); i++)
    if (!tw_match_step(m, tw_carried_next(m->loop, i), tw_carried_init(m->loop, i)))
      return false;
  return m->loads > 0 && loads_are_quiet(m);
}

bool tw_roll_in_front(MlirOperation loop) {
  if (!is_suitable(loop))
    return false;
  int64_t step = tw_loop_step(loop);
  tw_step_match_t m = match_at(loop, mlirOperationGetOperand(loop, 0), -step);
  bool found = match_in_front(&m);
  tw_map_free(&m.same);
  if (!found)
    return false;
  tw_builder_t at = tw_build_before(loop);
  MlirValue low = mlirOperationGetOperand(loop, 0);
  mlirOperationSetOperand(loop, 1, tw_loop_exit(&at, loop));
  mlirOperationSetOperand(loop, 0, tw_plus(&at, low, -step));
  for (intptr_t i = 0; i < num_carried(loop); i++)
    if (!mlirValueIsNull(m.carried[i]))
      mlirOperationSetOperand(loop, TW_FOR_INITS + i, m.carried[i]);
  return true;
}

/* --- Steps behind --------------------------------------------------------------------------------------- */

typedef struct {
  MlirValue root[TW_MOST_CARRIED]; /* what the step behind the loop leaves; null where nobody reads that */
  MlirOperation loop;
} behind_t;

/* An op behind the loop that computes what the body leaves, from what the loop leaves. */
static MlirValue find_root(tw_step_match_t *m, intptr_t which) {
  MlirValue next = tw_carried_next(m->loop, which);
  if (mlirOperationIsNull(tw_def(next)) || !tw_defined_in(next, tw_loop_body(m->loop)))
    return (MlirValue){NULL};
  MlirOperation op = mlirOperationGetNextInBlock(m->loop);
  for (int i = 0; i < MOST_BEHIND && !mlirOperationIsNull(op) && !tw_may_write_arrays(op);
       i++, op = mlirOperationGetNextInBlock(op))
    if (mlirOperationGetNumResults(op) == 1 && tw_match_step(m, next, mlirOperationGetResult(op, 0)))
      return mlirOperationGetResult(op, 0);
  return (MlirValue){NULL};
}

static bool is_root(const behind_t *b, MlirValue value) {
  for (intptr_t i = 0; i < num_carried(b->loop); i++)
    if (!mlirValueIsNull(b->root[i]) && mlirValueEqual(b->root[i], value))
      return true;
  return false;
}

/* Whether all that reads the value goes into the step's results, which replace it. */
static bool ends_in_roots(const behind_t *b, MlirValue value, int *budget) {
  TW_EACH_USE(use, value) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    if (--*budget < 0 || mlirOperationGetNumResults(user) != 1 || mlirOperationGetNumRegions(user) != 0)
      return false;
    MlirValue result = mlirOperationGetResult(user, 0);
    if (!is_root(b, result) && !ends_in_roots(b, result, budget))
      return false;
  }
  return true;
}

static bool match_behind(tw_step_match_t *m, behind_t *b) {
  int budget = MOST_BEHIND;
  bool any = false, ok = true;
  for (intptr_t i = 0; i < num_carried(m->loop); i++) {
    m->carried[i] = mlirOperationGetResult(m->loop, i);
    b->root[i] = (MlirValue){NULL};
  }
  for (intptr_t i = 0; i < num_carried(m->loop); i++)
    any |= !mlirValueIsNull(b->root[i] = find_root(m, i));
  for (intptr_t i = 0; any && ok && i < num_carried(m->loop); i++)
    ok = ends_in_roots(b, mlirOperationGetResult(m->loop, i), &budget);
  return any && ok && m->loads > 0;
}

/* One step more, whose number is the upper bound or what the loop would go on with. */
static bool roll_behind(MlirOperation loop, MlirValue number) {
  behind_t b = {.loop = loop};
  tw_step_match_t m = match_at(loop, number, 0);
  m.takes_open = true;
  bool found = match_behind(&m, &b);
  if (found)
    tw_load_for_step(&m);
  tw_map_free(&m.same);
  if (!found)
    return false;
  tw_builder_t at = tw_build_before(loop);
  mlirOperationSetOperand(loop, 1, tw_plus(&at, number, tw_loop_step(loop)));
  for (intptr_t i = 0; i < num_carried(loop); i++)
    if (!mlirValueIsNull(b.root[i]))
      mlirValueReplaceAllUsesOfWith(b.root[i], mlirOperationGetResult(loop, i));
  return true;
}

/* Behind a loop whose bounds cross the step is done once, for the upper one. */
static bool roll_bound_behind(MlirOperation loop) {
  MlirValue low = mlirOperationGetOperand(loop, 0), high = mlirOperationGetOperand(loop, 1);
  bool crosses = !tw_never_crosses(loop);
  if (tw_loop_step(loop) != 1 || !roll_behind(loop, high))
    return false;
  tw_builder_t at = tw_build_before(loop);
  if (crosses)
    mlirOperationSetOperand(loop, 0, tw_binary(&at, "arith.minsi", mlirValueGetType(low), low, high));
  return true;
}

static bool is_in_front(MlirOperation op, MlirOperation loop) {
  while (!mlirOperationIsNull(op) && !mlirOperationEqual(op, loop))
    op = mlirOperationGetNextInBlock(op);
  return !mlirOperationIsNull(op);
}

/* The number that the loop would go on with, where the IR has it already. */
static MlirValue exit_of(MlirOperation loop) {
  MlirValue low = mlirOperationGetOperand(loop, 0), high = mlirOperationGetOperand(loop, 1);
  tw_builder_t at = tw_build_before(loop);
  if (tw_never_crosses(loop))
    return tw_loop_exit(&at, loop);
  TW_EACH_USE(use, high) {
    MlirOperation op = mlirOpOperandGetOwner(use);
    if (tw_op_is(op, TW_ARITH_MAXSI) && is_in_front(op, loop) && mlirValueEqual(mlirOperationGetOperand(op, 0), high) &&
        mlirValueEqual(mlirOperationGetOperand(op, 1), low) && tw_loop_step(loop) == 1)
      return mlirOperationGetResult(op, 0);
  }
  return (MlirValue){NULL};
}

bool tw_roll_behind(MlirOperation loop) {
  if (!is_suitable(loop))
    return false;
  MlirValue exit = exit_of(loop);
  return (!mlirValueIsNull(exit) && roll_behind(loop, exit)) || roll_bound_behind(loop);
}

/* --- Several steps in one ------------------------------------------------------------------------------- */

typedef struct {
  MlirOperation loop;
  int64_t copies;
  MlirValue first[TW_MOST_CARRIED]; /* what the first of the steps leaves */
} unrolled_t;

/* What the step before left of each carried value, if a later one, `number` on, left `last`. Null where it is not
 * read. */
static bool match_later(const unrolled_t *u, int64_t number, const MlirValue *last, MlirValue *before) {
  tw_step_match_t m = match_at(u->loop, tw_loop_iv(u->loop), number);
  bool ok = true;
  for (intptr_t i = 0; ok && i < num_carried(u->loop); i++)
    ok = mlirValueIsNull(u->first[i]) || mlirValueIsNull(last[i]) || tw_match_step(&m, u->first[i], last[i]);
  memcpy(before, m.carried, sizeof m.carried);
  tw_map_free(&m.same);
  return ok;
}

/* Goes back from what the body leaves to the first step; false if that is not where the steps lead. */
static bool match_all(const unrolled_t *u, MlirValue *found) {
  MlirValue last[TW_MOST_CARRIED] = {{NULL}};
  int64_t step = tw_loop_step(u->loop) / u->copies;
  for (intptr_t i = 0; i < num_carried(u->loop); i++)
    last[i] = tw_carried_next(u->loop, i);
  for (int64_t number = u->copies - 1; number > 0; number--) {
    if (!match_later(u, number * step, last, found))
      return false;
    memcpy(last, found, sizeof last);
  }
  return true;
}

/* Adds the first step's results that those known so far read; false where they contradict each other. */
static bool complete(unrolled_t *u) {
  for (bool more = true; more;) {
    MlirValue found[TW_MOST_CARRIED];
    if (!match_all(u, found))
      return false;
    more = false;
    for (intptr_t i = 0; i < num_carried(u->loop); i++) {
      if (mlirValueIsNull(found[i]))
        continue;
      if (!mlirValueIsNull(u->first[i]) && !mlirValueEqual(found[i], u->first[i]))
        return false;
      more |= mlirValueIsNull(u->first[i]);
      u->first[i] = found[i];
    }
  }
  return true;
}

static bool find_first(unrolled_t *u);

/* Tries all ops of the body that may leave the carried value in the first step. */
static bool try_all(unrolled_t *u, intptr_t which) {
  MlirOperation last = tw_def(tw_carried_next(u->loop, which));
  unrolled_t before = *u;
  if (mlirOperationIsNull(last) || !mlirBlockEqual(mlirOperationGetBlock(last), tw_loop_body(u->loop)))
    return false;
  for (MlirOperation op = mlirBlockGetFirstOperation(tw_loop_body(u->loop)); !mlirOperationEqual(op, last);
       op = mlirOperationGetNextInBlock(op)) {
    if (!mlirIdentifierEqual(mlirOperationGetName(op), mlirOperationGetName(last)))
      continue;
    *u = before;
    u->first[which] = mlirOperationGetResult(op, 0);
    if (complete(u) && find_first(u))
      return true;
  }
  return false;
}

/* What the first step leaves of each carried value. */
static bool find_first(unrolled_t *u) {
  intptr_t which = 0;
  while (which < num_carried(u->loop) && !mlirValueIsNull(u->first[which]))
    which++;
  return which == num_carried(u->loop) || try_all(u, which);
}

static void roll_up(const unrolled_t *u) {
  tw_builder_t at = tw_build_before(u->loop);
  MlirOperation yield = tw_loop_yield(u->loop);
  MlirType type = mlirValueGetType(tw_loop_iv(u->loop));
  mlirOperationSetOperand(u->loop, 1, tw_loop_exit(&at, u->loop));
  mlirOperationSetOperand(u->loop, 2, tw_const_int(&at, type, tw_loop_step(u->loop) / u->copies));
  for (intptr_t i = 0; i < num_carried(u->loop); i++)
    mlirOperationSetOperand(yield, i, u->first[i]);
}

bool tw_reroll(MlirOperation loop) {
  for (int64_t copies = MOST_COPIES; is_suitable(loop) && copies > 1; copies--) {
    unrolled_t u = {.loop = loop, .copies = copies};
    if (tw_loop_step(loop) % copies == 0 && find_first(&u)) {
      roll_up(&u);
      return true;
    }
  }
  return false;
}
