/* strip_control.c - branches and loops where the lanes of a strip part (see strip.c)
 *
 *   scf.if %p { A } else { B }          scf.if all(%p) { A } else {
 *                                         scf.if any(%p) { A under %p }
 *                                         scf.if any(not %p) { B under not %p } }      %r = select %p, %a, %b
 *   scf.for %i = %from to %to step %s   scf.for %k = 0 to least trip count { … }, then
 *                                       scf.for %k = that to greatest { … under %k < trip count }
 *   scf.while                           until no lane is left; a lane keeps what it had when it left
 *
 * The first form of each is there only where the code is emitted for all lanes (`whole`), so that nothing is emitted
 * twice at each depth. A side that has no effects and is short is computed for all, without a branch. */
#include "lowering/cpu/cpu.h"
#include "lowering/loops.h"

#include <stdio.h>

enum { SHORT_SIDE = 6 }; /* ops that cost less than a branch */

static MlirValue in_lanes(cpu_t *cx, MlirValue value) { return cpu_splat(cx, value, cx->strip->lanes); }

static MlirType lanes_type(cpu_t *cx, MlirValue source) {
  return cpu_vector(cpu_compute_type(cx, mlirValueGetType(source)), cx->strip->lanes);
}

static MlirValue *new_values(cpu_t *cx, intptr_t num) { return cpu_alloc(cx, (size_t)(num + 1) * sizeof(MlirValue)); }

/* Lanes part at an op, until it is restored. */
static cpu_strip_t part(cpu_t *cx, MlirOperation op) {
  cpu_strip_t saved = *cx->strip;
  if (mlirOperationIsNull(saved.parted))
    cx->strip->parted = op;
  cx->strip->in_rounds |= !tw_op_is(op, TW_SCF_IF);
  return saved;
}

static void unpart(cpu_t *cx, cpu_strip_t saved) {
  cx->strip->parted = saved.parted;
  cx->strip->in_rounds = saved.in_rounds;
}

/* A region's block under a mask, at the current place; what it ends with, from operand `skip` on, in lanes. */
static void emit_under(cpu_t *cx, MlirBlock block, MlirValue here, bool whole, intptr_t skip, MlirValue *out) {
  cpu_strip_t *strip = cx->strip, saved = *strip;
  strip->here = here;
  strip->whole = whole;
  MlirOperation end = cpu_emit_block(cx, block);
  for (intptr_t i = skip; i < mlirOperationGetNumOperands(end) && !cx->failed; i++)
    out[i - skip] = in_lanes(cx, cpu_scalar(cx, mlirOperationGetOperand(end, i)));
  strip->here = saved.here;
  strip->whole = saved.whole;
}

/* --- branches ---------------------------------------------------------------------------------------------------- */

typedef struct {
  MlirOperation op;
  intptr_t num; /* results */
  MlirType *types;
  MlirValue masks[2]; /* of the two sides */
  MlirValue condition;
} branch_t;

static bool is_empty(MlirBlock block) {
  return mlirBlockIsNull(block) || mlirOperationIsNull(mlirOperationGetNextInBlock(mlirBlockGetFirstOperation(block)));
}

static int count_ops(MlirBlock block) {
  int num = 0;
  if (!mlirBlockIsNull(block))
    TW_EACH_OP(op, block)
      num += 1 + (mlirOperationGetNumRegions(op) > 0 ? SHORT_SIDE : 0);
  return num;
}

static bool is_short(cpu_t *cx, MlirBlock block) {
  int cost = 0;
  TW_EACH_OP(op, block) {
    bool end = mlirOperationIsNull(mlirOperationGetNextInBlock(op));
    const cpu_rule_t *rule = cpu_rule(cx, op);
    if (!end && (!tw_op_has(op, TW_PURE) || !rule || mlirOperationGetNumRegions(op) > 0))
      return false;
    cost += end ? 0 : rule->cost;
  }
  return cost <= SHORT_SIDE;
}

static MlirBlock side_block(cpu_t *cx, const branch_t *b, MlirBlock old, MlirValue here, bool whole) {
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  MlirValue *yields = new_values(cx, b->num);
  cpu_inner_t inner = cpu_open_block(cx, block);
  emit_under(cx, old, here, whole, 0, yields);
  cpu_op0(cx, "scf.yield", (int)(cx->failed ? 0 : b->num), yields);
  cpu_close_block(cx, inner);
  return block;
}

static MlirBlock zeros_block(cpu_t *cx, const branch_t *b) {
  MlirBlock block = mlirBlockCreate(0, NULL, NULL), outer = cx->block;
  MlirValue *zeros = new_values(cx, b->num);
  for (intptr_t i = 0; i < b->num; i++)
    zeros[i] = cpu_zero_of(cx, b->types[i]);
  cx->block = block;
  cpu_op0(cx, "scf.yield", (int)b->num, zeros);
  cx->block = outer;
  return block;
}

/* One side, where any lane takes it. */
static void emit_side(cpu_t *cx, const branch_t *b, int side, MlirValue *out) {
  MlirBlock old = tw_region_block(b->op, side);
  if (is_empty(old) && b->num == 0)
    return;
  if (is_short(cx, old)) {
    emit_under(cx, old, b->masks[side], false, 0, out);
    return;
  }
  MlirValue any = cpu_any_lane(cx, b->masks[side]);
  MlirBlock then = side_block(cx, b, old, b->masks[side], false);
  MlirOperation op = cpu_if(cx, any, then, zeros_block(cx, b), (int)b->num, b->types);
  for (intptr_t i = 0; i < b->num; i++)
    out[i] = mlirOperationGetResult(op, i);
}

static void emit_sides(cpu_t *cx, const branch_t *b, MlirValue *out) {
  cpu_strip_t saved = part(cx, b->op);
  MlirValue *sides[2] = {new_values(cx, b->num), new_values(cx, b->num)};
  for (int side = 0; side < 2; side++)
    emit_side(cx, b, side, sides[side]);
  unpart(cx, saved);
  for (intptr_t i = 0; i < b->num && !cx->failed; i++)
    out[i] = cpu_select(cx, b->condition, sides[0][i], sides[1][i]);
}

/* The larger side for all lanes; else both, under masks. */
static void emit_whole(cpu_t *cx, const branch_t *b, MlirValue *out) {
  int main = count_ops(tw_region_block(b->op, 1)) > count_ops(tw_region_block(b->op, 0));
  MlirValue all = cpu_all_lanes(cx, b->masks[main]);
  MlirBlock then = side_block(cx, b, tw_region_block(b->op, main), (MlirValue){NULL}, true);
  MlirBlock other = mlirBlockCreate(0, NULL, NULL);
  MlirValue *yields = new_values(cx, b->num);
  cpu_inner_t inner = cpu_open_block(cx, other);
  emit_sides(cx, b, yields);
  cpu_op0(cx, "scf.yield", (int)(cx->failed ? 0 : b->num), yields);
  cpu_close_block(cx, inner);
  MlirOperation op = cpu_if(cx, all, then, other, (int)b->num, b->types);
  for (intptr_t i = 0; i < b->num; i++)
    out[i] = mlirOperationGetResult(op, i);
}

static void emit_if(cpu_t *cx, MlirOperation op) {
  branch_t b = {.op = op, .num = mlirOperationGetNumResults(op)};
  MlirValue *out = new_values(cx, b.num);
  b.types = cpu_alloc(cx, (size_t)(b.num + 1) * sizeof *b.types);
  for (intptr_t i = 0; i < b.num; i++)
    b.types[i] = lanes_type(cx, mlirOperationGetResult(op, i));
  b.condition = cpu_operand(cx, op, 0);
  b.masks[0] = cpu_both(cx, b.condition, cx->strip->here);
  b.masks[1] = cpu_both(cx, cpu_bin_i(cx, "arith.xori", b.condition, 1), cx->strip->here);
  bool pure = true;
  for (int side = 0; side < 2; side++)
    pure &= is_empty(tw_region_block(op, side)) || is_short(cx, tw_region_block(op, side));
  if (cx->strip->whole && !pure)
    emit_whole(cx, &b, out);
  else
    emit_sides(cx, &b, out);
  for (intptr_t i = 0; i < b.num && !cx->failed; i++)
    cpu_set_scalar(cx, mlirOperationGetResult(op, i), out[i]);
}

/* --- loops that count --------------------------------------------------------------------------------------------- */

typedef struct {
  MlirOperation op;
  intptr_t num;                /* carried values */
  MlirValue from, step, trips; /* in lanes or for all; an unsigned number of each lane */
  MlirValue *carried;          /* now */
} strip_rounds_t;

/* What the loop's variable runs over wraps nowhere: the distance of the bounds is an unsigned number of their type. */
static MlirValue trips_of(cpu_t *cx, MlirOperation op) {
  bool is_unsigned = tw_has_attr(op, "unsignedCmp");
  MlirValue from = cpu_operand(cx, op, 0), to = cpu_operand(cx, op, 1);
  MlirValue step = cpu_operand(cx, op, 2), count = cpu_bin(cx, "arith.subi", to, from);
  MlirType type = mlirValueGetType(count);
  int64_t known;
  if (!tw_known_int(mlirOperationGetOperand(op, 2), &known) || known != 1) {
    MlirValue last = cpu_bin_i(cx, "arith.subi", count, 1);
    count = cpu_bin_i(cx, "arith.addi", cpu_divide_unsigned(cx, last, step), 1);
  }
  MlirValue some = cpu_cmpi(cx, is_unsigned ? CPU_ULT : CPU_SLT, from, to);
  count = in_lanes(cx, cpu_select(cx, some, count, cpu_int_const(cx, type, 0)));
  MlirValue here = cx->strip->here;
  return here.ptr ? cpu_select(cx, here, count, cpu_int_const(cx, mlirValueGetType(count), 0)) : count;
}

static MlirValue reduced(cpu_t *cx, MlirValue lanes, const char *kind) {
  char text[64];
  snprintf(text, sizeof text, "#vector.kind<%s>", kind);
  tw_builder_t at = cpu_here(cx);
  MlirValue one = tw_op1_attr(&at, "vector.reduction", cpu_element(lanes), 1, &lanes, "kind",
                              mlirAttributeParseGet(cx->context, tw_str(text)));
  return cpu_cast(cx, "arith.extui", one, cpu_int(cx, 64));
}

static void set_variable(cpu_t *cx, const strip_rounds_t *c, MlirValue count) {
  MlirValue old = mlirOperationGetOperand(c->op, 0), variable = tw_loop_iv(c->op);
  MlirType type = cpu_element(c->from);
  MlirValue k = tw_bits(type) < 64 ? cpu_cast(cx, "arith.trunci", count, type) : count;
  MlirValue way = cpu_bin(cx, "arith.muli", k, c->step);
  cpu_lanes_t lanes = cpu_lanes_known(cx, old);
  cpu_set_scalar(cx, variable, cpu_bin(cx, "arith.addi", c->from, way));
  if (lanes.first.ptr && cpu_lanes_of(way) == 1)
    cpu_slot(cx, variable)->lanes = (cpu_lanes_t){cpu_bin(cx, "arith.addi", lanes.first, way), lanes.step, 1};
}

/* Iterations from one number to another; a lane that is done takes no part. */
static void emit_iterations(cpu_t *cx, strip_rounds_t *c, MlirValue from, MlirValue to, bool whole) {
  cpu_loop_t loop;
  cpu_index_t first = {.base = from, .depth = cx->depth}, last = {.base = to, .depth = cx->depth};
  MlirValue *next = new_values(cx, c->num), here = {NULL};
  cpu_index_t k = cpu_loop_begin(cx, &loop, first, last, 1, (int)c->num, c->carried);
  MlirValue count = cpu_index_value(cx, k);
  if (!whole) {
    MlirType type = cpu_element(c->trips);
    MlirValue now = tw_bits(type) < 64 ? cpu_cast(cx, "arith.trunci", count, type) : count;
    here = cpu_cmpi(cx, CPU_UGT, c->trips, in_lanes(cx, now));
  }
  set_variable(cx, c, count);
  for (intptr_t i = 0; i < c->num; i++)
    cpu_set_scalar(cx, tw_carried(c->op, i), loop.args[i]);
  cpu_strip_t saved = part(cx, c->op);
  emit_under(cx, tw_loop_body(c->op), here, whole, 0, next);
  unpart(cx, saved);
  for (intptr_t i = 0; i < c->num && !cx->failed && here.ptr; i++)
    next[i] = cpu_select(cx, here, next[i], loop.args[i]);
  cpu_loop_end(cx, &loop, cx->failed ? loop.args : next, c->carried);
}

static void emit_for(cpu_t *cx, MlirOperation op) {
  strip_rounds_t c = {.op = op, .num = mlirOperationGetNumResults(op)};
  c.carried = new_values(cx, c.num);
  for (intptr_t i = 0; i < c.num; i++)
    c.carried[i] = in_lanes(cx, cpu_scalar(cx, tw_carried_init(op, i)));
  c.from = cpu_operand(cx, op, 0);
  c.step = cpu_operand(cx, op, 2);
  c.trips = trips_of(cx, op);
  MlirValue from = cpu_i64_const(cx, 0), most = reduced(cx, c.trips, "maxui");
  if (cx->strip->whole) {
    MlirValue all = reduced(cx, c.trips, "minui");
    emit_iterations(cx, &c, from, all, true);
    from = all;
  }
  emit_iterations(cx, &c, from, most, false);
  for (intptr_t i = 0; i < c.num && !cx->failed; i++)
    cpu_set_scalar(cx, mlirOperationGetResult(op, i), c.carried[i]);
}

/* --- loops with a condition --------------------------------------------------------------------------------------- */

typedef struct {
  MlirOperation op;
  intptr_t num, results; /* what the first region takes, and what it passes on */
  MlirType *types;       /* of the loop: these, those, and who is here */
  MlirBlock blocks[2];
} leaving_t;

static MlirType mask_type(cpu_t *cx) { return cpu_vector(cpu_int(cx, 1), cx->strip->lanes); }

/* What the first region takes, what lanes that left had, and who is here; passes on the last two. */
static void emit_condition(cpu_t *cx, const leaving_t *w) {
  MlirBlock old = tw_region_block(w->op, 0), block = w->blocks[0];
  MlirValue *passed = new_values(cx, w->results + 2), here = mlirBlockGetArgument(block, w->num + w->results);
  cpu_inner_t inner = cpu_open_block(cx, block);
  for (intptr_t i = 0; i < w->num; i++)
    cpu_set_scalar(cx, mlirBlockGetArgument(old, i), mlirBlockGetArgument(block, i));
  emit_under(cx, old, here, false, 1, passed + 1);
  if (!cx->failed) {
    MlirValue goes_on = cpu_scalar(cx, mlirOperationGetOperand(mlirBlockGetTerminator(old), 0));
    for (intptr_t i = 0; i < w->results; i++)
      passed[1 + i] = cpu_select(cx, here, passed[1 + i], mlirBlockGetArgument(block, w->num + i));
    passed[1 + w->results] = cpu_bin(cx, "arith.andi", here, goes_on);
    passed[0] = cpu_any_lane(cx, passed[1 + w->results]);
    cpu_op0(cx, "scf.condition", (int)w->results + 2, passed);
  }
  cpu_close_block(cx, inner);
}

static void emit_round(cpu_t *cx, const leaving_t *w) {
  MlirBlock old = tw_region_block(w->op, 1), block = w->blocks[1];
  MlirValue *next = new_values(cx, w->num + w->results + 1), here = mlirBlockGetArgument(block, w->results);
  cpu_inner_t inner = cpu_open_block(cx, block);
  cpu_look(cx);
  for (intptr_t i = 0; i < w->results; i++)
    cpu_set_scalar(cx, mlirBlockGetArgument(old, i), mlirBlockGetArgument(block, i));
  emit_under(cx, old, here, false, 0, next);
  for (intptr_t i = 0; i <= w->results; i++) /* and who is here */
    next[w->num + i] = mlirBlockGetArgument(block, i);
  if (!cx->failed)
    cpu_op0(cx, "scf.yield", (int)(w->num + w->results + 1), next);
  cpu_close_block(cx, inner);
}

static void fill_types(cpu_t *cx, leaving_t *w) {
  w->types = cpu_alloc(cx, (size_t)(w->num + w->results + 1) * sizeof *w->types);
  for (intptr_t i = 0; i < w->num; i++)
    w->types[i] = lanes_type(cx, mlirOperationGetOperand(w->op, i));
  for (intptr_t i = 0; i < w->results; i++)
    w->types[w->num + i] = lanes_type(cx, mlirOperationGetResult(w->op, i));
  w->types[w->num + w->results] = mask_type(cx);
}

/* Of a lane that has left nothing counts but what it had, so the others need not spare it. */
static void emit_while(cpu_t *cx, MlirOperation op) {
  leaving_t w = {.op = op, .num = mlirOperationGetNumOperands(op), .results = mlirOperationGetNumResults(op)};
  MlirValue *inits = new_values(cx, w.num + w.results + 1), here = cx->strip->here;
  fill_types(cx, &w);
  for (intptr_t i = 0; i < w.num; i++)
    inits[i] = in_lanes(cx, cpu_operand(cx, op, i));
  for (intptr_t i = 0; i < w.results; i++)
    inits[w.num + i] = cpu_zero_of(cx, w.types[w.num + i]);
  inits[w.num + w.results] = here.ptr ? here : cpu_int_const(cx, mask_type(cx), 1);
  w.blocks[0] = cpu_new_block(cx, (int)(w.num + w.results + 1), w.types);
  w.blocks[1] = cpu_new_block(cx, (int)w.results + 1, w.types + w.num);
  cpu_strip_t saved = part(cx, op);
  emit_condition(cx, &w);
  emit_round(cx, &w);
  unpart(cx, saved);
  MlirRegion regions[2] = {tw_region_with(w.blocks[0]), tw_region_with(w.blocks[1])};
  tw_builder_t at = cpu_here(cx);
  MlirOperation loop =
      tw_build_while(&at, (int)(w.num + w.results + 1), inits, (int)w.results + 1, w.types + w.num, regions);
  for (intptr_t i = 0; i < w.results && !cx->failed; i++)
    cpu_set_scalar(cx, mlirOperationGetResult(op, i), mlirOperationGetResult(loop, i));
}

/* --- rules ------------------------------------------------------------------------------------------------------- */

static bool any_differs(cpu_t *cx, MlirOperation op, int num) {
  for (int i = 0; i < num; i++)
    if (cpu_differs(cx, mlirOperationGetOperand(op, i)))
      return true;
  return false;
}

static bool place_if(cpu_t *cx, MlirOperation op) {
  if (!any_differs(cx, op, 1))
    return false;
  emit_if(cx, op);
  return true;
}

static bool place_for(cpu_t *cx, MlirOperation op) {
  if (!any_differs(cx, op, TW_FOR_INITS))
    return cpu_unroll_shuffles(cx, op);
  emit_for(cx, op);
  return true;
}

static bool place_while(cpu_t *cx, MlirOperation op) {
  MlirOperation ends = mlirBlockGetTerminator(tw_region_block(op, 0));
  if (tw_uniform_has(&cx->strip->uniform, mlirOperationGetOperand(ends, 0)))
    return false;
  emit_while(cx, op);
  return true;
}

CPU_STRIP_RULE(TW_SCF_FOR, place_for)
CPU_STRIP_RULE(TW_SCF_IF, place_if)
CPU_STRIP_RULE(TW_SCF_WHILE, place_while)
