/* reduce.c - tile.reduce and tile.scan: a loop along the axis with a few independent accumulators of one strip each
 *
 * The lanes lie along the tile's last axis. Where that is the axis to reduce, the lanes are combined at the end by
 * halving; else each lane is a result of its own. A tile.scan is the same loop with one accumulator, which stores at
 * each step; lanes along the axis are scanned by shifting. */
#include "lowering/cpu/cpu.h"

#include "tilewright/dialect.h"

#include <math.h>

enum { MAX_CHAINS = 4, LONG_COST = 12, BLOCK = 128 /* steps of a chain */ };

typedef struct {
  tw_reduce_kind_t kind;
  bool is_unsigned, is_float, has_index, ignore_nan;
  MlirType element; /* compute type */
} reducer_t;

/* What a reduction carries: the value, and for argmin and argmax where it was found. */
typedef struct {
  MlirValue value, index;
} partial_t;

static reducer_t reducer_of(cpu_t *cx, MlirOperation op) {
  MlirType element = cpu_compute_type(cx, tw_operand_element(op, 0));
  reducer_t r = {.kind = (tw_reduce_kind_t)tw_attr_int(op, "kind", 0), .element = element};
  r.is_float = mlirTypeIsAFloat(element);
  r.ignore_nan = tw_has_attr(op, "ignore_nan");
  r.is_unsigned = tw_has_attr(op, "is_unsigned") || tw_is_bool(element);
  r.has_index = r.kind == TW_REDUCE_ARGMIN || r.kind == TW_REDUCE_ARGMAX;
  return r;
}

static bool wants_max(const reducer_t *r) { return r->kind == TW_REDUCE_MAX || r->kind == TW_REDUCE_ARGMAX; }

static MlirValue neutral(cpu_t *cx, const reducer_t *r) {
  if (r->kind == TW_REDUCE_ADD || r->kind == TW_REDUCE_MUL) {
    int64_t value = r->kind == TW_REDUCE_MUL;
    return r->is_float ? cpu_float_const(cx, r->element, (double)value) : cpu_int_const(cx, r->element, value);
  }
  bool max = wants_max(r);
  if (r->is_float)
    return cpu_float_const(cx, r->element, r->ignore_nan ? NAN : max ? -INFINITY : INFINITY);
  unsigned bits = mlirIntegerTypeGetWidth(r->element);
  uint64_t all = bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1;
  if (r->is_unsigned)
    return cpu_int_const(cx, r->element, max ? 0 : (int64_t)all);
  int64_t highest = (int64_t)(all >> 1);
  return cpu_int_const(cx, r->element, max ? -highest - 1 : highest);
}

/* Whether y is strictly better than x. NaN is better than a number, or worse if it is ignored. */
static MlirValue is_better(cpu_t *cx, const reducer_t *r, MlirValue y, MlirValue x) {
  bool max = wants_max(r);
  if (!r->is_float) {
    cpu_ipred_t less = r->is_unsigned ? CPU_ULT : CPU_SLT, more = r->is_unsigned ? CPU_UGT : CPU_SGT;
    return cpu_cmpi(cx, max ? more : less, y, x);
  }
  MlirValue better = cpu_cmpf(cx, max ? CPU_OGT : CPU_OLT, y, x), lower = r->ignore_nan ? y : x;
  MlirValue number = cpu_cmpf(cx, CPU_OEQ, lower, lower), higher = r->ignore_nan ? x : y;
  MlirValue nan = cpu_bin(cx, "arith.andi", cpu_cmpf(cx, CPU_UNO, higher, higher), number);
  return cpu_bin(cx, "arith.ori", better, nan);
}

static MlirValue is_equal(cpu_t *cx, const reducer_t *r, MlirValue x, MlirValue y) {
  if (!r->is_float)
    return cpu_cmpi(cx, CPU_EQ, x, y);
  MlirValue nans = cpu_bin(cx, "arith.andi", cpu_cmpf(cx, CPU_UNO, x, x), cpu_cmpf(cx, CPU_UNO, y, y));
  return cpu_bin(cx, "arith.ori", cpu_cmpf(cx, CPU_OEQ, x, y), nans);
}

static MlirValue combine_values(cpu_t *cx, const reducer_t *r, MlirValue x, MlirValue y) {
  switch (r->kind) {
  case TW_REDUCE_ADD: return cpu_bin(cx, r->is_float ? "arith.addf" : "arith.addi", x, y);
  case TW_REDUCE_MUL: return cpu_bin(cx, r->is_float ? "arith.mulf" : "arith.muli", x, y);
  default: break;
  }
  bool max = wants_max(r);
  if (r->is_float && r->ignore_nan)
    return cpu_bin(cx, max ? "arith.maxnumf" : "arith.minnumf", x, y);
  if (r->is_float)
    return cpu_float_min_max(cx, x, y, max);
  const char *names[2][2] = {{"arith.minsi", "arith.minui"}, {"arith.maxsi", "arith.maxui"}};
  return cpu_bin(cx, names[max][r->is_unsigned], x, y);
}

/* In the loop y comes after x, so it replaces x only if it is better. Elsewhere the lower index decides between
 * equals. */
static partial_t combine(cpu_t *cx, const reducer_t *r, partial_t x, partial_t y, bool in_order) {
  if (!r->has_index)
    return (partial_t){.value = combine_values(cx, r, x.value, y.value)};
  MlirValue take = is_better(cx, r, y.value, x.value);
  if (!in_order) {
    MlirValue tie =
        cpu_bin(cx, "arith.andi", is_equal(cx, r, x.value, y.value), cpu_cmpi(cx, CPU_SLT, y.index, x.index));
    take = cpu_bin(cx, "arith.ori", take, tie);
  }
  return (partial_t){cpu_select(cx, take, y.value, x.value), cpu_select(cx, take, y.index, x.index)};
}

static MlirValue half_of(cpu_t *cx, MlirValue x, int from, int num) {
  int64_t lanes[64];
  for (int i = 0; i < num; i++)
    lanes[i] = from + i;
  return num == 1 ? cpu_extract(cx, x, from) : cpu_shuffle(cx, x, x, num, lanes);
}

static partial_t combine_lanes(cpu_t *cx, const reducer_t *r, partial_t x) {
  for (int half = cpu_lanes_of(x.value) / 2; half >= 1; half /= 2) {
    partial_t low = {.value = half_of(cx, x.value, 0, half)}, high = {.value = half_of(cx, x.value, half, half)};
    if (r->has_index) {
      low.index = half_of(cx, x.index, 0, half);
      high.index = half_of(cx, x.index, half, half);
    }
    x = combine(cx, r, low, high, false);
  }
  return x;
}

/* Indices of the strip's elements along the reduced axis, i32. */
static MlirValue positions(cpu_t *cx, const cpu_point_t *point, int axis) {
  MlirType i32 = cpu_int(cx, 32);
  MlirValue first = cpu_cast(cx, "arith.trunci", cpu_index_value(cx, point->at[axis]), i32);
  first = cpu_splat(cx, first, point->lanes);
  if (axis != point->axis || point->lanes == 1)
    return first;
  return cpu_bin(cx, "arith.addi", first, cpu_iota(cx, i32, point->lanes));
}

/* Reduces `extent` elements of an axis from `first` on, into what is carried of each chain. */
static void reduce_span(cpu_t *cx, const reducer_t *r, MlirValue tile, cpu_point_t point, int axis, cpu_index_t first,
                        int64_t extent, int chains, MlirValue *carried) {
  int step = axis == point.axis ? point.lanes : 1, parts = r->has_index ? 2 : 1;
  cpu_loop_t loop;
  cpu_index_t at =
      cpu_loop_begin(cx, &loop, first, cpu_index_plus(first, extent), (int64_t)step * chains, chains * parts, carried);
  for (int c = 0; c < chains && !cx->failed; c++) {
    point.at[axis] = cpu_index_plus(at, c * step);
    partial_t old = {loop.args[c * parts], loop.args[c * parts + parts - 1]};
    partial_t now = {.value = cpu_splat(cx, cpu_eval(cx, tile, &point), point.lanes)};
    if (r->has_index)
      now.index = positions(cx, &point, axis);
    now = combine(cx, r, old, now, true);
    carried[c * parts] = now.value;
    if (r->has_index)
      carried[c * parts + 1] = now.index;
  }
  cpu_loop_end(cx, &loop, carried, carried);
}

/* A long sum of floats is made of blocks, each summed by itself. Rounding errors then grow with the length of a
 * block and the number of blocks, not with the number of elements. */
static void reduce_blocks(cpu_t *cx, const reducer_t *r, MlirValue tile, cpu_point_t point, int axis, int64_t extent,
                          int64_t block, int chains, MlirValue *carried) {
  cpu_loop_t loop;
  MlirValue sums[2 * MAX_CHAINS];
  for (int c = 0; c < chains; c++)
    sums[c] = carried[c];
  cpu_index_t at = cpu_loop_begin(cx, &loop, cpu_index(0), cpu_index(extent), block, chains, carried);
  reduce_span(cx, r, tile, point, axis, at, block, chains, sums);
  for (int c = 0; c < chains && !cx->failed; c++)
    carried[c] = combine_values(cx, r, loop.args[c], sums[c]);
  cpu_loop_end(cx, &loop, carried, carried);
}

/* The loop along `axis` at the nest's point; leaves the combined strip. */
static partial_t reduce_axis(cpu_t *cx, const reducer_t *r, MlirValue tile, cpu_point_t point, int axis,
                             int64_t extent) {
  int step = axis == point.axis ? point.lanes : 1;
  /* Several chains hide the latency of combining. An operand that takes long to compute hides it by itself, and
   * chains would copy its code. */
  int chains = cpu_slot(cx, tile)->cost > LONG_COST ? 1 : MAX_CHAINS;
  while (extent % ((int64_t)step * chains) != 0)
    chains /= 2;
  int parts = r->has_index ? 2 : 1;
  MlirValue carried[2 * MAX_CHAINS];
  for (int c = 0; c < chains; c++) {
    point.at[axis] = cpu_index(c * step);
    carried[c * parts] = cpu_splat(cx, neutral(cx, r), point.lanes);
    if (r->has_index)
      carried[c * parts + 1] = positions(cx, &point, axis);
  }
  int64_t block = (int64_t)BLOCK * step * chains;
  if (r->is_float && r->kind == TW_REDUCE_ADD && extent > block && extent % block == 0)
    reduce_blocks(cx, r, tile, point, axis, extent, block, chains, carried);
  else
    reduce_span(cx, r, tile, point, axis, cpu_index(0), extent, chains, carried);
  partial_t result = {carried[0], carried[parts - 1]};
  for (int c = 1; c < chains; c++)
    result = combine(cx, r, result, (partial_t){carried[c * parts], carried[c * parts + parts - 1]}, false);
  return axis == point.axis ? combine_lanes(cx, r, result) : result;
}

static cpu_point_t without_axis(const cpu_point_t *point, int axis) {
  cpu_point_t rest = {.rank = point->rank - 1, .axis = -1, .lanes = 1};
  for (int d = 0, to = 0; d < point->rank; d++) {
    if (d == axis)
      continue;
    if (d == point->axis) {
      rest.axis = to;
      rest.lanes = point->lanes;
    }
    rest.at[to++] = point->at[d];
  }
  return rest;
}

static void place_reduce(cpu_t *cx, MlirOperation op) {
  MlirValue tile = mlirOperationGetOperand(op, 0), result = mlirOperationGetResult(op, 0);
  MlirType type = mlirValueGetType(tile), out = mlirValueGetType(result);
  int axis = (int)tw_attr_int(op, "axis", 0);
  reducer_t r = reducer_of(cx, op);
  cpu_plan(cx, type, 1, &tile, tw_null_op());
  MlirValue buffer = cpu_buffer_for(cx, result);
  cpu_nest_t nest;
  cpu_nest_set(cx, &nest, type, cpu_lane_axis(type));
  nest.held[axis] = true;
  cpu_nest_begin(cx, &nest);
  partial_t partial = reduce_axis(cx, &r, tile, nest.point, axis, tw_extent(type, axis));
  MlirValue value = cpu_round(cx, r.has_index ? partial.index : partial.value, tw_element(out));
  cpu_point_t rest = without_axis(&nest.point, axis);
  if (buffer.ptr)
    cpu_buffer_store(cx, value, buffer, out, &rest);
  cpu_nest_end(cx, &nest);
  cpu_planned(cx);
  cpu_set_result(cx, result, buffer, value);
}

/* --- Scans -------------------------------------------------------------------------------------------- */

/* Scans the lanes of a strip: after step s each lane holds 2^s lanes, its own and those before it. */
static MlirValue scan_lanes(cpu_t *cx, const reducer_t *r, MlirValue strip, bool reverse) {
  int lanes = cpu_lanes_of(strip);
  MlirValue nothing = cpu_splat(cx, neutral(cx, r), lanes);
  for (int s = 1; s < lanes; s *= 2) {
    int64_t from[64]; /* lanes of nothing ++ strip */
    for (int i = 0; i < lanes; i++)
      from[i] = reverse ? (i + s < lanes ? lanes + i + s : 0) : (i >= s ? lanes + i - s : 0);
    strip = combine_values(cx, r, cpu_shuffle(cx, nothing, strip, lanes, from), strip);
  }
  return strip;
}

/* The loop along `axis` at the nest's point, which carries what came before. */
static void scan_axis(cpu_t *cx, const reducer_t *r, MlirOperation op, cpu_point_t point, MlirValue buffer) {
  MlirValue tile = mlirOperationGetOperand(op, 0), carried;
  MlirType out = mlirValueGetType(mlirOperationGetResult(op, 0));
  int axis = (int)tw_attr_int(op, "axis", 0), step = axis == point.axis ? point.lanes : 1;
  int64_t extent = tw_extent(out, axis);
  bool reverse = tw_has_attr(op, "reverse");
  carried = axis == point.axis ? neutral(cx, r) : cpu_splat(cx, neutral(cx, r), point.lanes);
  cpu_loop_t loop;
  cpu_index_t at = cpu_loop_begin(cx, &loop, cpu_index(0), cpu_index(extent), step, 1, &carried);
  point.at[axis] = reverse ? cpu_index_plus(cpu_index_mul(cx, at, -1), extent - step) : at;
  MlirValue strip = cpu_splat(cx, cpu_eval(cx, tile, &point), point.lanes), before = loop.args[0];
  if (cx->failed)
    return;
  if (step > 1) {
    strip = scan_lanes(cx, r, strip, reverse);
    before = cpu_splat(cx, before, step);
  }
  strip = combine_values(cx, r, before, strip);
  cpu_buffer_store(cx, cpu_round(cx, strip, tw_element(out)), buffer, out, &point);
  carried = step > 1 ? cpu_extract(cx, strip, reverse ? 0 : step - 1) : strip;
  cpu_loop_end(cx, &loop, &carried, &carried);
}

static void place_scan(cpu_t *cx, MlirOperation op) {
  MlirValue tile = mlirOperationGetOperand(op, 0), result = mlirOperationGetResult(op, 0);
  MlirType type = mlirValueGetType(tile);
  reducer_t r = reducer_of(cx, op);
  cpu_plan(cx, type, 1, &tile, tw_null_op());
  MlirValue buffer = cpu_buffer_for(cx, result);
  cpu_nest_t nest;
  cpu_nest_set(cx, &nest, type, cpu_lane_axis(type));
  nest.held[tw_attr_int(op, "axis", 0)] = true;
  cpu_nest_begin(cx, &nest);
  scan_axis(cx, &r, op, nest.point, buffer);
  cpu_nest_end(cx, &nest);
  cpu_planned(cx);
  cpu_set_buffer(cx, result, buffer);
}

/* --- By a function of the user's ------------------------------------------------------------------------ */

typedef struct {
  MlirOperation op;
  int num; /* of values that are combined at once */
} combiner_t;

/* An op on scalars, which are strips here. */
static void compute_strip(cpu_t *cx, MlirOperation op) {
  const cpu_rule_t *rule = cpu_rule(cx, op);
  MlirValue operands[CPU_MAX_OPERANDS];
  int num = (int)mlirOperationGetNumOperands(op);
  if (rule && rule->place) {
    rule->place(cx, op);
  } else if (rule && rule->eval) {
    cpu_set_scalar(cx, mlirOperationGetResult(op, 0), rule->eval(cx, op, NULL));
  } else if (rule && rule->compute) {
    for (int i = 0; i < num; i++)
      operands[i] = cpu_operand(cx, op, i);
    cpu_unify(cx, num, operands);
    cpu_set_scalar(cx, mlirOperationGetResult(op, 0), rule->compute(cx, op, num, operands));
  } else {
    cpu_error(cx, op, "has no CPU lowering in a function that combines");
  }
}

/* x comes before y; x becomes what the body makes of both. */
static void call_body(cpu_t *cx, const combiner_t *f, MlirValue *x, const MlirValue *y) {
  MlirBlock body = tw_region_block(f->op, 0);
  for (int p = 0; p < f->num; p++) {
    cpu_set_scalar(cx, mlirBlockGetArgument(body, p), x[p]);
    cpu_set_scalar(cx, mlirBlockGetArgument(body, p + f->num), y[p]);
  }
  MlirOperation end = mlirBlockGetTerminator(body), op = mlirBlockGetFirstOperation(body);
  for (; !mlirOperationEqual(op, end) && !cx->failed; op = mlirOperationGetNextInBlock(op))
    compute_strip(cx, op);
  for (int p = 0; p < f->num && !cx->failed; p++)
    x[p] = cpu_splat(cx, cpu_scalar(cx, mlirOperationGetOperand(end, p)), cpu_lanes_of(x[p]));
}

static void take_lanes(cpu_t *cx, const combiner_t *f, const MlirValue *x, int num, const int64_t *lanes,
                       MlirValue *out) {
  for (int p = 0; p < f->num; p++)
    out[p] = num == 1 ? cpu_extract(cx, x[p], (int)lanes[0]) : cpu_shuffle(cx, x[p], x[p], num, lanes);
}

/* Neighbours first, so that the order is kept. */
static void fold_lanes(cpu_t *cx, const combiner_t *f, MlirValue *x) {
  for (int half = cpu_lanes_of(x[0]) / 2; half >= 1 && !cx->failed; half /= 2) {
    int64_t even[64], odd[64];
    MlirValue low[TW_MAX_COMBINED], high[TW_MAX_COMBINED];
    for (int i = 0; i < half; i++) {
      even[i] = 2 * i;
      odd[i] = 2 * i + 1;
    }
    take_lanes(cx, f, x, half, even, low);
    take_lanes(cx, f, x, half, odd, high);
    call_body(cx, f, low, high);
    for (int p = 0; p < f->num; p++)
      x[p] = low[p];
  }
}

/* Every lane with those before it in the strip. */
static void scan_strip(cpu_t *cx, const combiner_t *f, MlirValue *x, bool reverse) {
  int lanes = cpu_lanes_of(x[0]);
  for (int s = 1; s < lanes && !cx->failed; s *= 2) {
    MlirValue before[TW_MAX_COMBINED];
    int64_t from[64]; /* lanes of the identity ++ the strip */
    for (int i = 0; i < lanes; i++)
      from[i] = reverse ? (i + s < lanes ? lanes + i + s : 0) : (i >= s ? lanes + i - s : 0);
    for (int p = 0; p < f->num; p++) {
      MlirValue identity = cpu_scalar(cx, mlirOperationGetOperand(f->op, f->num + p));
      before[p] = cpu_shuffle(cx, cpu_splat(cx, identity, lanes), x[p], lanes, from);
    }
    call_body(cx, f, before, x);
    for (int p = 0; p < f->num; p++)
      x[p] = before[p];
  }
}

/* One strip of each input at the point; `carried` is what came before it, and then what comes before the next one. */
static void combine_strip(cpu_t *cx, const combiner_t *f, const cpu_point_t *point, const MlirValue *buffers,
                          MlirValue *carried) {
  MlirValue strip[TW_MAX_COMBINED], before[TW_MAX_COMBINED];
  bool scans = tw_op_form(f->op) == TW_FORM_SCAN, reverse = tw_has_attr(f->op, "reverse");
  bool along = tw_attr_int(f->op, "axis", 0) == point->axis && point->lanes > 1;
  for (int p = 0; p < f->num; p++)
    strip[p] = cpu_splat(cx, cpu_eval(cx, mlirOperationGetOperand(f->op, p), point), point->lanes);
  if (along && scans)
    scan_strip(cx, f, strip, reverse);
  else if (along)
    fold_lanes(cx, f, strip);
  for (int p = 0; p < f->num && !cx->failed; p++)
    before[p] = cpu_splat(cx, carried[p], cpu_lanes_of(strip[p]));
  if (cx->failed)
    return;
  call_body(cx, f, before, strip);
  for (int p = 0; p < f->num && !cx->failed; p++) {
    if (scans)
      cpu_buffer_store(cx, before[p], buffers[p], mlirValueGetType(mlirOperationGetResult(f->op, p)), point);
    carried[p] = along && scans ? cpu_extract(cx, before[p], reverse ? 0 : point->lanes - 1) : before[p];
  }
}

/* The loop along the axis at the nest's point; leaves what all strips are together. */
static void combine_axis(cpu_t *cx, const combiner_t *f, cpu_point_t point, const MlirValue *buffers,
                         MlirValue *carried) {
  int axis = (int)tw_attr_int(f->op, "axis", 0), step = axis == point.axis ? point.lanes : 1;
  int64_t extent = tw_extent(mlirValueGetType(mlirOperationGetOperand(f->op, 0)), axis);
  bool reverse = tw_has_attr(f->op, "reverse");
  for (int p = 0; p < f->num; p++)
    carried[p] =
        cpu_splat(cx, cpu_scalar(cx, mlirOperationGetOperand(f->op, f->num + p)), axis == point.axis ? 1 : point.lanes);
  cpu_loop_t loop;
  cpu_index_t at = cpu_loop_begin(cx, &loop, cpu_index(0), cpu_index(extent), step, f->num, carried);
  point.at[axis] = reverse ? cpu_index_plus(cpu_index_mul(cx, at, -1), extent - step) : at;
  for (int p = 0; p < f->num; p++)
    carried[p] = loop.args[p];
  combine_strip(cx, f, &point, buffers, carried);
  if (!cx->failed)
    cpu_loop_end(cx, &loop, carried, carried);
}

static void place_combine(cpu_t *cx, MlirOperation op) {
  combiner_t f = {op, (int)mlirOperationGetNumResults(op)};
  MlirValue tiles[TW_MAX_COMBINED], buffers[TW_MAX_COMBINED] = {{NULL}}, carried[TW_MAX_COMBINED] = {{NULL}};
  MlirType type = mlirValueGetType(mlirOperationGetOperand(op, 0));
  int axis = (int)tw_attr_int(op, "axis", 0);
  for (int p = 0; p < f.num; p++)
    tiles[p] = mlirOperationGetOperand(op, p);
  cpu_plan(cx, type, f.num, tiles, tw_null_op());
  for (int p = 0; p < f.num; p++)
    buffers[p] = cpu_buffer_for(cx, mlirOperationGetResult(op, p));
  cpu_nest_t nest;
  cpu_nest_set(cx, &nest, type, cpu_lane_axis(type));
  nest.held[axis] = true;
  cpu_nest_begin(cx, &nest);
  combine_axis(cx, &f, nest.point, buffers, carried);
  if (cx->failed)
    return;
  cpu_point_t rest = without_axis(&nest.point, axis);
  for (int p = 0; p < f.num; p++)
    if (tw_op_form(op) == TW_FORM_REDUCTION && buffers[p].ptr)
      cpu_buffer_store(cx, carried[p], buffers[p], mlirValueGetType(mlirOperationGetResult(op, p)), &rest);
  cpu_nest_end(cx, &nest);
  cpu_planned(cx);
  for (int p = 0; p < f.num; p++)
    cpu_set_result(cx, mlirOperationGetResult(op, p), buffers[p], carried[p]);
}

CPU_RULE(TW_TILE_REDUCE_BY, CPU_EFFECT, 0, NULL, NULL, place_combine)
CPU_RULE(TW_TILE_SCAN_BY, CPU_EFFECT, 0, NULL, NULL, place_combine)
CPU_RULE(TW_TILE_REDUCE, CPU_EFFECT, 0, NULL, NULL, place_reduce)
CPU_RULE(TW_TILE_SCAN, CPU_EFFECT, 0, NULL, NULL, place_scan)
