/* strip.c - the threads of a SIMT block side by side, as lanes of vectors
 *
 *   before   scf.for %x = 0 to %dim {                     after   scf.for %x0 = 0 to %dim step 16 {
 *              %i = arith.addi %base, %x                            %i = %base + %x0 + (0, 1, 2, …)
 *              %v = tile.gather %a[%i]                              %v = llvm.load %a + %base + %x0 : vector<16xf32>
 *              %p = arith.cmpi slt, %i, %n                          %p = arith.cmpi slt, %i, %n : vector<16xi1>
 *              scf.if %p { … }                                      scf.if all(%p) { … } else { scf.if any(%p) { … } }
 *            } {tile.of_threads}                                  }
 *
 * A scalar of the source is each thread's own, and a vector here; what is the same in all threads of the strip stays a
 * scalar. Where lanes part, all of them walk through what any of them does, and a mask says whose effects count
 * (strip_control.c). What is emitted for all lanes is emitted a second time for some of them, so that whole strips have
 * no masks; what is emitted under a mask is not doubled again.
 *
 * Indices of threads are known as first + i * step (cpu_lanes_t), so that neighbours in memory are loaded as a vector
 * (strip_memory.c), and the number of a warp is the same for all of its lanes.
 *
 * What must hold: the loop's iterations may run in any order and side by side, as threads of a block do between
 * barriers. Ops that have no form in lanes leave the loop as it is. */
#include "lowering/cpu/cpu.h"
#include "lowering/loops.h"

bool cpu_has_warp_ops(MlirOperation op) { return tw_has_op_like(op, cpu_is_of_warps); }

bool cpu_differs(cpu_t *cx, MlirValue value) { return cpu_lanes_of(cpu_scalar(cx, value)) > 1; }

/* --- what is known of lanes ------------------------------------------------------------------------------------ */

enum { MOST_DIVISOR = 1 << 20 };

static int64_t lowest_bit(int64_t x) { return x == 0 || x % MOST_DIVISOR == 0 ? MOST_DIVISOR : x & -x; }

static int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }

cpu_lanes_t cpu_lanes_known(cpu_t *cx, MlirValue value) {
  cpu_slot_t *slot = cpu_slot(cx, value);
  int64_t known;
  if (slot->kind != CPU_SCALAR)
    return (cpu_lanes_t){0};
  if (cpu_lanes_of(slot->now) > 1)
    return slot->lanes;
  int64_t divides = tw_known_int(value, &known) ? lowest_bit(known) : slot->lanes.divides ? slot->lanes.divides : 1;
  return (cpu_lanes_t){slot->now, 0, divides};
}

static void note(cpu_t *cx, MlirOperation op, cpu_lanes_t lanes) {
  cpu_slot(cx, mlirOperationGetResult(op, 0))->lanes = lanes;
}

/* `x` op `y`, which is the result itself where that is the same for all. */
static MlirValue first_of(cpu_t *cx, MlirOperation op, MlirValue x, MlirValue y) {
  MlirValue now = cpu_scalar(cx, mlirOperationGetResult(op, 0));
  return cpu_lanes_of(now) > 1 ? cpu_bin(cx, tw_op_row(op)->name, x, y) : now;
}

static void note_sum(cpu_t *cx, MlirOperation op, cpu_lanes_t x, cpu_lanes_t y) {
  int64_t step = tw_op_is(op, TW_ARITH_SUBI) ? x.step - y.step : x.step + y.step;
  note(cx, op, (cpu_lanes_t){first_of(cx, op, x.first, y.first), step, least(x.divides, y.divides)});
}

/* By a number that is the same for all; where lanes differ, by a known one. */
static void note_product(cpu_t *cx, MlirOperation op, cpu_lanes_t x, cpu_lanes_t y) {
  int64_t by = 0;
  if (x.step)
    return;
  if (y.step && !tw_known_int(mlirOperationGetOperand(op, 1), &by) &&
      !tw_known_int(mlirOperationGetOperand(op, 0), &by))
    return;
  note(cx, op,
       (cpu_lanes_t){first_of(cx, op, x.first, y.first), y.step * by, least(x.divides * y.divides, MOST_DIVISOR)});
}

/* An index wider than its number is right wherever an array may be accessed: an axis has less than 2^31 elements, so
 * that where lanes of 32 bits wrap, those below zero are in none. Signs are those of the first lane, and an unsigned
 * number is taken from the last one: lanes in front of zero are in no array. */
static void note_extension(cpu_t *cx, MlirOperation op, cpu_lanes_t x) {
  MlirType wide = tw_result_element(op);
  MlirValue now = cpu_scalar(cx, mlirOperationGetResult(op, 0));
  if (cpu_lanes_of(now) == 1) {
    note(cx, op, (cpu_lanes_t){now, 0, x.divides});
    return;
  }
  if (!tw_op_is(op, TW_ARITH_EXTUI)) {
    note(cx, op, (cpu_lanes_t){cpu_cast(cx, tw_op_row(op)->name, x.first, wide), x.step, x.divides});
    return;
  }
  int64_t way = x.step > 0 ? x.step * (cx->strip->lanes - 1) : 0;
  MlirValue last = cpu_cast(cx, "arith.extui", cpu_bin_i(cx, "arith.addi", x.first, way), wide);
  note(cx, op, (cpu_lanes_t){cpu_bin_i(cx, "arith.subi", last, way), x.step, x.divides});
}

/* Lanes from a multiple of their number on, whose low bits are kept: they begin again at most between strips. */
static void note_low_bits(cpu_t *cx, MlirOperation op, cpu_lanes_t x) {
  int64_t mask;
  if (!tw_known_int(mlirOperationGetOperand(op, 1), &mask))
    return;
  mask -= tw_op_is(op, TW_ARITH_REMUI) ? 1 : 0;
  if (mask < 0 || (mask & (mask + 1)) || x.step != 1 || mask + 1 < cx->strip->lanes || x.divides < cx->strip->lanes)
    return;
  note(cx, op, (cpu_lanes_t){cpu_bin_i(cx, "arith.andi", x.first, mask), 1, least(x.divides, mask + 1)});
}

void cpu_note_lanes(cpu_t *cx, MlirOperation op) {
  intptr_t num = mlirOperationGetNumOperands(op);
  if (num == 0 || num > 2 || !mlirTypeIsAInteger(tw_result_element(op)))
    return;
  cpu_lanes_t x = cpu_lanes_known(cx, mlirOperationGetOperand(op, 0)), y = {0};
  if (num == 2)
    y = cpu_lanes_known(cx, mlirOperationGetOperand(op, 1));
  if (!x.first.ptr || (num == 2 && !y.first.ptr))
    return;
  if (tw_op_is(op, TW_ARITH_ADDI) || tw_op_is(op, TW_ARITH_SUBI))
    note_sum(cx, op, x, y);
  else if (tw_op_is(op, TW_ARITH_MULI))
    x.step ? note_product(cx, op, y, x) : note_product(cx, op, x, y);
  else if (tw_op_is(op, TW_ARITH_EXTSI) || tw_op_is(op, TW_ARITH_EXTUI) || tw_op_is(op, TW_ARITH_TRUNCI))
    note_extension(cx, op, x);
  else if ((tw_op_is(op, TW_ARITH_ANDI) || tw_op_is(op, TW_ARITH_REMUI)) && cx->strip)
    note_low_bits(cx, op, x);
}

/* A quotient, rounded down, by a multiple of the number of lanes, of lanes from such a multiple on. */
MlirValue cpu_same_for_all(cpu_t *cx, MlirOperation op) {
  bool shift = tw_op_is(op, TW_ARITH_SHRUI) || tw_op_is(op, TW_ARITH_SHRSI);
  int64_t by;
  if (!shift && !tw_op_is(op, TW_ARITH_DIVUI) && !tw_op_is(op, TW_ARITH_FLOORDIVSI))
    return (MlirValue){NULL};
  if (!tw_known_int(mlirOperationGetOperand(op, 1), &by) || by <= 0 || (shift && by > 30))
    return (MlirValue){NULL};
  cpu_lanes_t x = cpu_lanes_known(cx, mlirOperationGetOperand(op, 0));
  int64_t divisor = shift ? (int64_t)1 << by : by;
  bool same = x.step == 1 && x.divides >= cx->strip->lanes && divisor % cx->strip->lanes == 0;
  return same ? x.first : (MlirValue){NULL};
}

/* --- which loops ------------------------------------------------------------------------------------------------- */

static bool is_number(MlirType type) { return mlirTypeIsAInteger(type) || mlirTypeIsAFloat(type); }

static bool has_numbers(MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    if (!is_number(mlirValueGetType(mlirOperationGetResult(op, i))))
      return false;
  return true;
}

typedef struct {
  cpu_t *cx;
  const tw_uniform_t *uniform;
  MlirOperation loop;
  bool fits;
} fit_t;

/* Whether an op has a form in lanes, or is the same for all. */
static bool op_fits(const fit_t *fit, MlirOperation op) {
  const cpu_rule_t *rule = cpu_rule(fit->cx, op);
  if (tw_op_form(op) == TW_FORM_CONTROL)
    return !tw_has_attr(op, TW_THREADS) && has_numbers(op);
  if (!rule)
    return false;
  if (tw_op_has(op, TW_BY_ELEMENT))
    return tw_op_loads(op) || tw_op_stores(op) || (mlirOperationGetNumResults(op) == 1 && !cpu_is_polled(op));
  if (cpu_is_of_warps(op))
    return fit->cx->rows && has_numbers(op);
  if (rule->compute || (rule->eval && rule->space == CPU_LEAF && mlirOperationGetNumOperands(op) == 0))
    return has_numbers(op);
  if (tw_op_is(op, TW_TILE_VIEW))
    return tw_uniform_has_operands(fit->uniform, op);
  return tw_op_form(op) == TW_FORM_POSITION ? !tw_op_is(op, TW_TILE_LANE_ID) : tw_op_is(op, TW_TILE_FENCE);
}

static MlirWalkResult look(MlirOperation op, void *user) {
  fit_t *fit = user;
  if (!mlirOperationEqual(op, fit->loop) && !op_fits(fit, op))
    fit->fits = false;
  return fit->fits ? MlirWalkResultAdvance : MlirWalkResultInterrupt;
}

bool cpu_is_strips(cpu_t *cx, MlirOperation loop) {
  tw_uniform_t uniform;
  if (mlirOperationGetNumResults(loop) > 0 || cx->lanes < 2)
    return false;
  if (tw_is_unused(tw_loop_iv(loop)) && !cpu_has_warp_ops(loop)) /* blocks of one thread, most often */
    return false;
  tw_uniform_find_in(&uniform, loop);
  fit_t fit = {cx, &uniform, loop, true};
  mlirOperationWalk(loop, look, &fit, MlirWalkPreOrder);
  tw_uniform_free(&uniform);
  return fit.fits;
}

int cpu_carried_lanes(cpu_t *cx, MlirValue value) {
  return cx->strip && !tw_uniform_has(&cx->strip->uniform, value) ? cx->strip->lanes : 1;
}

/* --- the loop ---------------------------------------------------------------------------------------------------- */

/* How many operands decide where lanes part. */
static intptr_t deciding(MlirOperation op) {
  return tw_op_is(op, TW_SCF_IF) ? 1 : tw_op_is(op, TW_SCF_FOR) ? TW_FOR_INITS : 0;
}

/* Whether an op of the block accesses memory, other than where lanes part, and so under a mask of their own. */
static bool accesses(const tw_uniform_t *u, MlirBlock block) {
  if (mlirBlockIsNull(block))
    return false;
  TW_EACH_OP(op, block) {
    intptr_t regions = mlirOperationGetNumRegions(op);
    if (regions == 0 && tw_op_form(op) != TW_FORM_CONTROL && !tw_op_has(op, TW_PURE))
      return true;
    bool part = false;
    for (intptr_t i = 0; i < deciding(op); i++)
      part |= !tw_uniform_has(u, mlirOperationGetOperand(op, i));
    for (intptr_t r = 0; r < regions && !part; r++)
      if (accesses(u, tw_region_block(op, r)))
        return true;
  }
  return false;
}

static void set_threads(cpu_t *cx, MlirValue variable, MlirValue first) {
  MlirType i32 = cpu_int(cx, 32);
  int lanes = cx->strip->lanes;
  MlirValue x = cpu_cast(cx, "arith.trunci", first, i32);
  cpu_set_scalar(cx, variable,
                 cpu_bin(cx, "arith.addi", cpu_splat(cx, x, lanes), cpu_iota(cx, mlirValueGetType(x), lanes)));
  cpu_slot(cx, variable)->lanes = (cpu_lanes_t){x, 1, lanes};
}

/* The lanes that the block still has. */
static MlirValue lanes_left(cpu_t *cx, MlirValue first, MlirValue count) {
  MlirType i32 = cpu_int(cx, 32);
  MlirValue left = cpu_cast(cx, "arith.trunci", cpu_bin(cx, "arith.subi", count, first), i32);
  return cpu_cmpi(cx, CPU_SLT, cpu_iota(cx, i32, cx->strip->lanes), cpu_splat(cx, left, cx->strip->lanes));
}

static void emit_threads(cpu_t *cx, MlirOperation loop, MlirValue first, MlirValue here, bool whole) {
  cx->strip->here = here;
  cx->strip->whole = whole;
  set_threads(cx, tw_loop_iv(loop), first);
  cpu_emit_block(cx, tw_loop_body(loop));
}

/* A block of it, without results. */
static MlirBlock threads_block(cpu_t *cx, MlirOperation loop, MlirValue first, MlirValue count) {
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  cpu_inner_t inner = cpu_open_block(cx, block);
  bool whole = count.ptr == NULL;
  emit_threads(cx, loop, first, whole ? count : lanes_left(cx, first, count), whole);
  cpu_op0(cx, "scf.yield", 0, NULL);
  cpu_close_block(cx, inner);
  return block;
}

static void emit_strip(cpu_t *cx, MlirOperation loop, MlirValue first, MlirValue count) {
  if (!accesses(&cx->strip->uniform, tw_loop_body(loop))) { /* what has effects has a mask anyway */
    emit_threads(cx, loop, first, lanes_left(cx, first, count), true);
    return;
  }
  MlirValue behind = cpu_bin_i(cx, "arith.addi", first, cx->strip->lanes);
  MlirValue whole = cpu_cmpi(cx, CPU_SLE, behind, count);
  MlirBlock then = threads_block(cx, loop, first, (MlirValue){NULL});
  cpu_if(cx, whole, then, threads_block(cx, loop, first, count), 0, NULL);
}

/* The only thread along x, as a scalar. */
static MlirBlock one_thread(cpu_t *cx, MlirOperation loop) {
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  cpu_inner_t inner = cpu_open_block(cx, block);
  cpu_set_scalar(cx, tw_loop_iv(loop), cpu_i32_const(cx, 0));
  cpu_emit_block(cx, tw_loop_body(loop));
  cpu_op0(cx, "scf.yield", 0, NULL);
  cpu_close_block(cx, inner);
  return block;
}

static void emit_strips(cpu_t *cx, MlirOperation loop, MlirValue count) {
  cpu_strip_t strip = {.loop = loop, .lanes = cpu_has_warp_ops(loop) ? CPU_WARP : cx->lanes};
  cpu_loop_t strips;
  cpu_index_t to = {.base = count, .depth = cx->depth};
  tw_uniform_find_in(&strip.uniform, loop);
  cpu_index_t first = cpu_loop_begin(cx, &strips, cpu_index(0), to, strip.lanes, 0, NULL);
  cx->strip = &strip;
  if (cx->rows) /* they are multiples of a warp */
    emit_threads(cx, loop, cpu_index_value(cx, first), (MlirValue){NULL}, true);
  else
    emit_strip(cx, loop, cpu_index_value(cx, first), count);
  cx->strip = NULL;
  cpu_loop_end(cx, &strips, NULL, NULL);
  tw_uniform_free(&strip.uniform);
}

void cpu_place_strips(cpu_t *cx, MlirOperation loop) {
  MlirValue count = cpu_int_to_i64(cx, cpu_scalar(cx, mlirOperationGetOperand(loop, 1)));
  if (cx->rows) {
    emit_strips(cx, loop, count);
    return;
  }
  MlirBlock then = one_thread(cx, loop), other = mlirBlockCreate(0, NULL, NULL);
  cpu_inner_t inner = cpu_open_block(cx, other);
  emit_strips(cx, loop, count);
  cpu_op0(cx, "scf.yield", 0, NULL);
  cpu_close_block(cx, inner);
  cpu_if(cx, cpu_cmpi(cx, CPU_EQ, count, cpu_i64_const(cx, 1)), then, other, 0, NULL);
}
