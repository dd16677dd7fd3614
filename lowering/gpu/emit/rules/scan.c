/* scan.c - rules: scans along one axis, and reductions by functions, which keep the order as scans do
 *
 * The bits of the axis's coordinate are taken from low to high, a run of them at a time that the layout gives to
 * registers, lanes or warps. A run turns items into what comes before each of them inside of the run, and the total of
 * the run, which is the item of the next one:
 *
 *   registers  one after the other
 *   lanes      butterfly: a lane keeps the total of its half-segment and what came before it
 *   warps      each leaves its total in shared memory; every thread reads those of all (one barrier)
 *
 * A reduction makes totals only. A function is emitted anew for each two items that meet.
 *
 * So a row over vectors of 4, 32 lanes, 8 warps and 4 such passes costs 5 shuffles a pass and one barrier in all. */
#include "base/memory.h"
#include "lowering/gpu/emit/lanes.h"
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/emit/shared_access.h"
#include "lowering/gpu/facts/scratch.h"

#include "tilewright/dialect.h"

#include <stdlib.h>
#include <string.h>

/* One value of each input. Null: there is nothing. */
typedef struct scan_item {
  MlirValue part[TW_MAX_COMBINED];
} scan_item_t;

static const scan_item_t nothing = {{{NULL}}};

typedef struct scan {
  tw_emitter_t *e;
  MlirOperation op;
  tw_layout_t layout;
  tw_axis_bits_t bits;
  MlirType element[TW_MAX_COMBINED]; /* of a register */
  int num;                           /* parts of an item */
  bool by_function, multiplies, reverse;
  bool *failed;
  int count; /* of registers */
} scan_t;

static bool is_nothing(const scan_item_t *x) { return x->part[0].ptr == NULL; }

/* The body of the op on two items, which it takes as its arguments. */
static scan_item_t call_body(const scan_t *s, const scan_item_t *x, const scan_item_t *y) {
  MlirBlock body = tw_region_block(s->op, 0);
  scan_item_t out = nothing;
  for (int p = 0; p < 2 * s->num; p++) {
    tw_values_t value = twg_new_values(s->e, 1);
    value.at[0] = p < s->num ? x->part[p] : y->part[p - s->num];
    twg_bind(s->e, mlirBlockGetArgument(body, p), value);
  }
  if (!s->e->emit_block(s->e, body)) {
    *s->failed = true;
    return *x;
  }
  for (int p = 0; p < s->num; p++)
    out.part[p] = twg_operand(s->e, mlirBlockGetTerminator(body), p).at[0];
  return out;
}

/* x comes before y, of which one may be nothing. */
static scan_item_t combine(const scan_t *s, scan_item_t x, scan_item_t y) {
  static const char *const names[2][2] = {{"llvm.add", "llvm.mul"}, {"llvm.fadd", "llvm.fmul"}};
  if (is_nothing(&x) || is_nothing(&y))
    return is_nothing(&x) ? y : x;
  if (s->by_function)
    return call_body(s, &x, &y);
  const char *name = names[mlirTypeIsAFloat(s->element[0])][s->multiplies];
  return (scan_item_t){{twg_binary(s->e, name, x.part[0], y.part[0])}};
}

/* The neutral element. Of float sums it is -0: 0 would turn -0 into 0. */
static scan_item_t neutral(const scan_t *s) {
  scan_item_t out = nothing;
  for (int p = 0; s->by_function && p < s->num; p++)
    out.part[p] = twg_operand(s->e, s->op, s->num + p).at[0];
  if (!s->by_function)
    out.part[0] = mlirTypeIsAFloat(s->element[0]) ? twg_const_float(s->e, s->element[0], s->multiplies ? 1.0 : -0.0)
                                                  : twg_const_int(s->e, s->element[0], s->multiplies);
  return out;
}

static scan_item_t or_neutral(const scan_t *s, scan_item_t x) { return is_nothing(&x) ? neutral(s) : x; }

static scan_item_t select_item(const scan_t *s, MlirValue condition, scan_item_t x, scan_item_t y) {
  for (int p = 0; p < s->num; p++)
    x.part[p] = twg_select(s->e, condition, x.part[p], y.part[p]);
  return x;
}

/* Registers that hold an item before the bits from `from` on are taken: neither copies nor parts of one. */
static bool has_item(const scan_t *s, int from, int r) {
  return ((uint32_t)r & (tw_layout_copies(&s->layout, TW_REGISTER) | tw_axis_bits_done(&s->bits, TW_REGISTER, from))) ==
         0;
}

static scan_item_t *new_items(const scan_t *s) {
  scan_item_t *items = tw_allocate((size_t)s->count, sizeof *items);
  return items;
}

/* ---- runs: items -> before each, inside of the run, and the totals ------------------------------------------- */

static void registers_run(const scan_t *s, int from, int to, const scan_item_t *items, scan_item_t *before,
                          scan_item_t *totals) {
  for (int first = 0; first < s->count; first++) {
    scan_item_t sum = nothing;
    if (!has_item(s, to, first))
      continue;
    for (int i = 0; i < 1 << (to - from); i++) {
      int at = s->reverse ? (1 << (to - from)) - 1 - i : i, r = first;
      for (int k = from; k < to; k++)
        r |= (at >> (k - from) & 1) << s->bits.at[k].bit;
      before[r] = sum;
      sum = combine(s, sum, items[r]);
    }
    totals[first] = sum;
  }
}

static scan_item_t from_lane_beside(const scan_t *s, scan_item_t x, MlirValue bit) {
  for (int p = 0; p < s->num; p++)
    x.part[p] = twg_shuffle(s->e, true, x.part[p], bit);
  return x;
}

/* Combines two halves that lie side by side. Sums and products do not depend on which comes first. */
static scan_item_t total_of(const scan_t *s, MlirValue after, scan_item_t own, scan_item_t other) {
  if (!s->by_function)
    return combine(s, own, other);
  return combine(s, select_item(s, after, other, own), select_item(s, after, own, other));
}

static void lanes_run(const scan_t *s, int from, int to, const scan_item_t *items, scan_item_t *before,
                      scan_item_t *totals) {
  tw_emitter_t *e = s->e;
  memcpy(totals, items, (size_t)s->count * sizeof *items);
  for (int k = from; k < to; k++) {
    MlirValue bit = twg_const_i32(e, INT64_C(1) << s->bits.at[k].bit), zero = twg_const_i32(e, 0);
    MlirValue after = twg_icmp(e, s->reverse ? TW_EQ : TW_NE, twg_binary(e, "llvm.and", e->lane, bit), zero);
    for (int r = 0; r < s->count; r++) {
      if (!has_item(s, from, r))
        continue;
      scan_item_t other = from_lane_beside(s, totals[r], bit);
      if (before != NULL)
        before[r] = select_item(s, after, combine(s, other, before[r]), or_neutral(s, before[r]));
      totals[r] = total_of(s, after, totals[r], other);
    }
  }
}

static MlirValue exchange_pointer(const scan_t *s, const tw_scan_exchange_t *x, bool own_warp, int r, int p) {
  tw_emitter_t *e = s->e;
  const tw_layout_t *l = &s->layout;
  uint32_t own = 0, warp_step[TW_LAYOUT_MAX_BITS], run = tw_axis_bits_done(&s->bits, TW_WARP, s->bits.count);
  for (int i = 0; i < l->bits[TW_REGISTER]; i++)
    own |= r >> i & 1 ? x->step[TW_REGISTER][i] : 0;
  for (int i = 0; i < l->bits[TW_WARP]; i++)
    warp_step[i] = own_warp || (run >> i & 1) == 0 ? x->step[TW_WARP][i] : 0;
  MlirValue at = twg_linear_of_thread(e, x->step[TW_LANE], l->bits[TW_LANE], warp_step, l->bits[TW_WARP]);
  at = twg_binary(e, "llvm.add", at, twg_const_i32(e, own));
  at = twg_binary(e, "llvm.mul", at, twg_const_i32(e, tw_part_bytes(s->element[p])));
  return twg_offset_pointer(e, twg_scratch_at(e, s->op, tw_scan_part_offset(s->op, x->count, p)), at);
}

/* This warp's place in the run. */
static MlirValue warp_rank(const scan_t *s, int from, int to) {
  uint32_t steps[TW_LAYOUT_MAX_BITS] = {0};
  for (int k = from; k < to; k++)
    steps[s->bits.at[k].bit] = UINT32_C(1) << (k - from);
  return twg_linear_of_thread(s->e, NULL, 0, steps, s->layout.bits[TW_WARP]);
}

/* The item of a warp of the run, as it left it. */
static scan_item_t item_of_warp(const scan_t *s, const MlirValue *base, int warp) {
  scan_item_t x = nothing;
  for (int p = 0; p < s->num; p++)
    x.part[p] = twg_load_part(s->e, s->element[p], twg_add_bytes(s->e, base[p], warp * tw_part_bytes(s->element[p])));
  return x;
}

static void leave_items(const scan_t *s, const tw_scan_exchange_t *x, int from, const scan_item_t *items) {
  for (int r = 0; r < s->count; r++)
    for (int p = 0; has_item(s, from, r) && p < s->num; p++)
      twg_store_part(s->e, items[r].part[p], exchange_pointer(s, x, true, r, p));
}

static void warps_run(const scan_t *s, int from, int to, const scan_item_t *items, scan_item_t *before,
                      scan_item_t *totals) {
  tw_emitter_t *e = s->e;
  tw_scan_exchange_t x = tw_scan_exchange_of(&s->layout, &s->bits, from, to);
  int warps = 1 << (to - from);
  MlirValue rank = warp_rank(s, from, to), base[TW_MAX_COMBINED];
  leave_items(s, &x, from, items);
  twg_barrier(e);
  for (int r = 0; r < s->count; r++) {
    if (!has_item(s, from, r))
      continue;
    for (int p = 0; p < s->num; p++)
      base[p] = exchange_pointer(s, &x, false, r, p);
    scan_item_t sum = nothing, mine = neutral(s);
    for (int i = 0; i < warps; i++) {
      int w = s->reverse ? warps - 1 - i : i;
      if (i > 0 && before != NULL)
        mine = select_item(s, twg_icmp(e, TW_EQ, rank, twg_const_i32(e, w)), sum, mine);
      sum = combine(s, sum, item_of_warp(s, base, w));
    }
    if (before != NULL)
      before[r] = mine;
    totals[r] = sum;
  }
}

/* Without `before`, only the totals are made. */
static void one_run(const scan_t *s, int from, int to, const scan_item_t *items, scan_item_t *before,
                    scan_item_t *totals) {
  scan_item_t *unused = before ? NULL : new_items(s);
  switch (s->bits.at[from].input) {
  case TW_REGISTER: registers_run(s, from, to, items, before ? before : unused, totals); break;
  case TW_LANE: lanes_run(s, from, to, items, before, totals); break;
  default: warps_run(s, from, to, items, before, totals); break;
  }
  free(unused);
}

/* ---- scans --------------------------------------------------------------------------------------------------- */

/* What comes before each item along the bits from `from` on; nothing where nothing does. */
static void find_before(const scan_t *s, int from, const scan_item_t *items, scan_item_t *before) {
  if (from == s->bits.count)
    return;
  int to = tw_axis_run_end(&s->bits, from);
  scan_item_t *inside = new_items(s), *totals = new_items(s), *rest = new_items(s);
  one_run(s, from, to, items, inside, totals);
  find_before(s, to, totals, rest);
  uint32_t run = tw_axis_bits_done(&s->bits, TW_REGISTER, to);
  for (int r = 0; r < s->count; r++)
    if (has_item(s, from, r))
      before[r] = combine(s, rest[(uint32_t)r & ~run], inside[r]);
  free(inside);
  free(totals);
  free(rest);
}

/* The lowest run of registers keeps sums that include each element; the others only say what comes before. */
static void scan_registers(const scan_t *s, const scan_item_t *in, scan_item_t *out) {
  int to = s->bits.count > 0 && s->bits.at[0].input == TW_REGISTER ? tw_axis_run_end(&s->bits, 0) : 0;
  scan_item_t *before = new_items(s), *totals = new_items(s), *rest = new_items(s);
  registers_run(s, 0, to, in, before, totals);
  find_before(s, to, totals, rest);
  uint32_t run = tw_axis_bits_done(&s->bits, TW_REGISTER, to), same = tw_layout_copies(&s->layout, TW_REGISTER);
  for (int r = 0; r < s->count; r++)
    out[r] = has_item(s, 0, r) ? combine(s, rest[(uint32_t)r & ~run], combine(s, before[r], in[r]))
                               : out[(uint32_t)r & ~same];
  free(before);
  free(totals);
  free(rest);
}

/* ---- rules --------------------------------------------------------------------------------------------------- */

static bool read_op(tw_emitter_t *e, MlirOperation op, scan_t *s, bool *failed) {
  *s = (scan_t){.e = e, .op = op, .failed = failed, .multiplies = tw_attr_int(op, "kind", 0) == TW_REDUCE_MUL};
  if (!tw_read_scan(op, &s->layout, &s->bits)) {
    tw_op_error(op, "needs a layout whose bits each lie along its axis or across it, those of warps side by side");
    return false;
  }
  s->by_function = mlirOperationGetNumRegions(op) > 0;
  s->reverse = tw_has_attr(op, "reverse");
  s->num = (int)mlirOperationGetNumResults(op);
  s->count = tw_layout_count(&s->layout, TW_REGISTER);
  for (int p = 0; p < s->num; p++)
    s->element[p] = twg_register_type(e, tw_operand_element(op, p));
  return true;
}

static scan_item_t *items_of(const scan_t *s) {
  scan_item_t *items = new_items(s);
  for (int p = 0; p < s->num; p++)
    for (int r = 0; r < s->count; r++)
      items[r].part[p] = twg_operand(s->e, s->op, p).at[r];
  return items;
}

/* Part p of the items of some registers. */
static tw_values_t part_of(const scan_t *s, const scan_item_t *items, int count, int p) {
  tw_values_t out = twg_new_values(s->e, count);
  for (int r = 0; r < count; r++)
    out.at[r] = items[r].part[p];
  return out;
}

static bool rule_scan(tw_emitter_t *e, MlirOperation op) {
  scan_t s;
  bool failed = false;
  if (!read_op(e, op, &s, &failed))
    return false;
  scan_item_t *in = items_of(&s), *out = new_items(&s);
  scan_registers(&s, in, out);
  for (int p = 0; p < s.num; p++)
    twg_set_result(e, op, p, part_of(&s, out, s.count, p));
  free(in);
  free(out);
  return !failed;
}

/* The items that are left of each slice. */
static scan_item_t *reduce_items(const scan_t *s) {
  scan_item_t *items = items_of(s);
  for (int from = 0, to; from < s->bits.count; from = to) {
    scan_item_t *totals = new_items(s);
    to = tw_axis_run_end(&s->bits, from);
    one_run(s, from, to, items, NULL, totals);
    free(items);
    items = totals;
  }
  return items;
}

static bool rule_reduce_by(tw_emitter_t *e, MlirOperation op) {
  scan_t s;
  bool failed = false;
  if (!read_op(e, op, &s, &failed))
    return false;
  scan_item_t *items = reduce_items(&s);
  int kept = 0;
  for (int r = 0; r < s.count; r++)
    if (has_item(&s, s.bits.count, r))
      items[kept++] = items[r];
  tw_layout_t slice = tw_layout_slice(&s.layout, (int)tw_attr_int(op, "axis", 0), false);
  for (int p = 0; p < s.num; p++)
    failed = !twg_set_slice(e, op, p, &slice, part_of(&s, items, kept, p)) || failed;
  free(items);
  return !failed;
}

TWG_RULE(TW_TILE_SCAN, rule_scan)
TWG_RULE(TW_TILE_SCAN_BY, rule_scan)
TWG_RULE(TW_TILE_REDUCE_BY, rule_reduce_by)
