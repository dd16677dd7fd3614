/* scan.c - rules: scans along one axis
 *
 * The bits of the axis's coordinate are taken from low to high, a run of them at a time that the layout gives to
 * registers, lanes or warps. A run turns items into what comes before each of them inside of the run, and the total of
 * the run, which is the item of the next one:
 *
 *   registers  one after the other
 *   lanes      butterfly: a lane keeps the total of its half-segment and what came before it
 *   warps      each leaves its total in shared memory; every thread reads those of all (one barrier)
 *
 * So a row over vectors of 4, 32 lanes, 8 warps and 4 such passes costs 5 shuffles a pass and one barrier in all. */
#include "lowering/gpu/emit/lanes.h"
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/emit/shared_access.h"
#include "lowering/gpu/facts/scratch.h"
#include "lowering/layout/memory.h"

#include "tilewright/dialect.h"

#include <stdlib.h>
#include <string.h>

typedef struct scan {
  tw_emitter_t *e;
  MlirOperation op;
  tw_layout_t layout;
  tw_axis_bits_t bits;
  MlirType element;
  bool multiplies, reverse;
  int count; /* of registers */
} scan_t;

/* x comes before y; null: nothing does. */
static MlirValue combine(const scan_t *s, MlirValue x, MlirValue y) {
  static const char *const names[2][2] = {{"llvm.add", "llvm.mul"}, {"llvm.fadd", "llvm.fmul"}};
  if (x.ptr == NULL || y.ptr == NULL)
    return x.ptr ? x : y;
  return twg_binary(s->e, names[mlirTypeIsAFloat(s->element)][s->multiplies], x, y);
}

/* What changes nothing: -0 and not 0, which would turn -0 into 0. */
static MlirValue neutral(const scan_t *s) {
  if (mlirTypeIsAFloat(s->element))
    return twg_const_float(s->e, s->element, s->multiplies ? 1.0 : -0.0);
  return twg_const_int(s->e, s->element, s->multiplies);
}

static MlirValue or_neutral(const scan_t *s, MlirValue x) { return x.ptr ? x : neutral(s); }

/* Registers that hold an item before the bits from `from` on are taken: neither tw_layout_copies nor parts of an item.
 */
static bool has_item(const scan_t *s, int from, int r) {
  return ((uint32_t)r & (tw_layout_copies(&s->layout, TW_REGISTER) | tw_axis_bits_done(&s->bits, TW_REGISTER, from))) ==
         0;
}

static MlirValue *new_items(const scan_t *s) {
  MlirValue *items = tw_allocate((size_t)s->count, sizeof *items);
  return items;
}

/* ---- runs: items -> before each, inside of the run, and the totals -------------------------------------------------
 */

static void registers_run(const scan_t *s, int from, int to, const MlirValue *items, MlirValue *before,
                          MlirValue *totals) {
  for (int first = 0; first < s->count; first++) {
    MlirValue sum = {NULL};
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

static void lanes_run(const scan_t *s, int from, int to, const MlirValue *items, MlirValue *before, MlirValue *totals) {
  tw_emitter_t *e = s->e;
  memcpy(totals, items, (size_t)s->count * sizeof *items);
  for (int k = from; k < to; k++) {
    MlirValue bit = twg_const_i32(e, INT64_C(1) << s->bits.at[k].bit), zero = twg_const_i32(e, 0);
    MlirValue after = twg_icmp(e, s->reverse ? TW_EQ : TW_NE, twg_binary(e, "llvm.and", e->lane, bit), zero);
    for (int r = 0; r < s->count; r++) {
      if (!has_item(s, from, r))
        continue;
      MlirValue other = twg_shuffle(e, true, totals[r], bit);
      before[r] = twg_select(e, after, combine(s, other, before[r]), or_neutral(s, before[r]));
      totals[r] = combine(s, totals[r], other);
    }
  }
}

static MlirValue exchange_pointer(const scan_t *s, const tw_scan_exchange_t *x, bool own_warp, int r) {
  tw_emitter_t *e = s->e;
  const tw_layout_t *l = &s->layout;
  uint32_t own = 0, warp_step[TW_LAYOUT_MAX_BITS], run = tw_axis_bits_done(&s->bits, TW_WARP, s->bits.count);
  for (int i = 0; i < l->bits[TW_REGISTER]; i++)
    own |= r >> i & 1 ? x->step[TW_REGISTER][i] : 0;
  for (int i = 0; i < l->bits[TW_WARP]; i++)
    warp_step[i] = own_warp || (run >> i & 1) == 0 ? x->step[TW_WARP][i] : 0;
  MlirValue at = twg_linear_of_thread(e, x->step[TW_LANE], l->bits[TW_LANE], warp_step, l->bits[TW_WARP]);
  at = twg_binary(e, "llvm.add", at, twg_const_i32(e, own));
  int64_t bytes = (int64_t)tw_bits(s->element) / 8;
  return twg_offset_pointer(e, twg_scratch_at(e, s->op, 0), twg_binary(e, "llvm.mul", at, twg_const_i32(e, bytes)));
}

/* This warp's place in the run. */
static MlirValue warp_rank(const scan_t *s, int from, int to) {
  uint32_t steps[TW_LAYOUT_MAX_BITS] = {0};
  for (int k = from; k < to; k++)
    steps[s->bits.at[k].bit] = UINT32_C(1) << (k - from);
  return twg_linear_of_thread(s->e, NULL, 0, steps, s->layout.bits[TW_WARP]);
}

static void warps_run(const scan_t *s, int from, int to, const MlirValue *items, MlirValue *before, MlirValue *totals) {
  tw_emitter_t *e = s->e;
  tw_scan_exchange_t x = tw_scan_exchange_of(&s->layout, &s->bits, from, to);
  int bytes = (int)tw_bits(s->element) / 8, warps = 1 << (to - from);
  MlirValue rank = warp_rank(s, from, to);
  for (int r = 0; r < s->count; r++)
    if (has_item(s, from, r))
      twg_store_to(e, items[r], exchange_pointer(s, &x, true, r), bytes);
  twg_barrier(e);
  for (int r = 0; r < s->count; r++) {
    if (!has_item(s, from, r))
      continue;
    MlirValue base = exchange_pointer(s, &x, false, r), sum = {NULL};
    before[r] = neutral(s);
    for (int i = 0; i < warps; i++) {
      int w = s->reverse ? warps - 1 - i : i;
      MlirValue here = twg_icmp(e, TW_EQ, rank, twg_const_i32(e, w));
      before[r] = i ? twg_select(e, here, sum, before[r]) : before[r];
      sum = combine(s, sum,
                    twg_load_from(e, s->element, twg_offset_pointer(e, base, twg_const_i32(e, w * bytes)), bytes));
    }
    totals[r] = sum;
  }
}

/* ---- rule ----------------------------------------------------------------------------------------------------------
 */

/* What comes before each item along the bits from `from` on; null where nothing does. */
static void find_before(const scan_t *s, int from, const MlirValue *items, MlirValue *before) {
  if (from == s->bits.count)
    return;
  int to = tw_axis_run_end(&s->bits, from);
  MlirValue *inside = new_items(s), *totals = new_items(s), *rest = new_items(s);
  switch (s->bits.at[from].input) {
  case TW_REGISTER: registers_run(s, from, to, items, inside, totals); break;
  case TW_LANE: lanes_run(s, from, to, items, inside, totals); break;
  default: warps_run(s, from, to, items, inside, totals); break;
  }
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
static void scan_registers(const scan_t *s, tw_values_t in, tw_values_t out) {
  int to = s->bits.count > 0 && s->bits.at[0].input == TW_REGISTER ? tw_axis_run_end(&s->bits, 0) : 0;
  MlirValue *before = new_items(s), *totals = new_items(s), *rest = new_items(s);
  registers_run(s, 0, to, in.at, before, totals);
  find_before(s, to, totals, rest);
  uint32_t run = tw_axis_bits_done(&s->bits, TW_REGISTER, to), same = tw_layout_copies(&s->layout, TW_REGISTER);
  for (int r = 0; r < s->count; r++)
    out.at[r] = has_item(s, 0, r) ? combine(s, rest[(uint32_t)r & ~run], combine(s, before[r], in.at[r]))
                                  : out.at[(uint32_t)r & ~same];
  free(before);
  free(totals);
  free(rest);
}

static bool rule_scan(tw_emitter_t *e, MlirOperation op) {
  scan_t s = {.e = e, .op = op, .multiplies = tw_attr_int(op, "kind", 0) == TW_REDUCE_MUL};
  if (!tw_read_scan(op, &s.layout, &s.bits)) {
    tw_op_error(op, "needs a layout whose bits each lie along its axis or across it, those of warps side by side");
    return false;
  }
  tw_values_t in = twg_operand(e, op, 0), out = twg_new_values(e, in.count);
  s.element = mlirValueGetType(in.at[0]);
  s.reverse = tw_has_attr(op, "reverse");
  s.count = in.count;
  scan_registers(&s, in, out);
  twg_set_result(e, op, 0, out);
  return true;
}

TWG_RULE(TW_TILE_SCAN, rule_scan)
