/* index_facts.c - neighbours in tiles of indices. See index_facts.h.
 *
 * Facts follow from the ops that made a tile: an iota counts, a broadcast repeats, a sum of what counts and what is
 * equal counts, and so do rests of what counts. A scalar is divided by what its kernel is compiled for, or its loop
 * counts by. What has no rule here has no facts, so that a gather falls back to single elements. */
#include "lowering/gpu/facts/index_facts.h"

#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/grouped_order.h"
#include "lowering/ranges.h"

/* Of a tile along one dimension; all but the last are log2. */
typedef struct {
  int run;     /* aligned groups of 2^n neighbours, n <= run, count up by 2^step ... */
  int divisor; /* ... from `offset` plus a multiple of 2^min(n + step, divisor) on; with run 0, each element is that */
  int same;    /* aligned groups of this many neighbours are equal */
  int step;    /* with run 0: 0 */
  int64_t offset; /* modulo 2^ANY_BITS */
} index_facts_t;

enum { ANY_BITS = 30 };

static const index_facts_t nothing = {0};

/* Facts of a tile of integers along `dim`; of a scalar with dim -1. */
static index_facts_t all_facts_of(MlirValue value, int dim);
/* Without offset and step: only groups that count up by one, from a multiple on. */
static index_facts_t facts_of(MlirValue value, int dim);

static int min_int(int a, int b) { return a < b ? a : b; }
static int max_int(int a, int b) { return a > b ? a : b; }

static int zeros_below(int64_t value) {
  int bits = 0;
  while (bits < ANY_BITS && (value >> bits & 1) == 0)
    bits++;
  return bits;
}

/* Powers of two in each element, as opposed to those in the first of a run, but for its offset. */
static int divisor_of_each(index_facts_t x) { return x.run > 0 ? min_int(x.step, x.divisor) : x.divisor; }

static int64_t modulo(int64_t x) { return x & ((INT64_C(1) << ANY_BITS) - 1); }

static index_facts_t plain(index_facts_t x) {
  int divisor = min_int(x.step > 0 ? divisor_of_each(x) : x.divisor, zeros_below(x.offset));
  return (index_facts_t){.run = x.step > 0 ? 0 : x.run, .divisor = divisor, .same = x.same};
}

static index_facts_t sum_of(index_facts_t x, index_facts_t y, bool subtracts) {
  index_facts_t sum = {.same = min_int(x.same, y.same),
                       .offset = modulo(subtracts ? x.offset - y.offset : x.offset + y.offset)};
  int of_x = min_int(x.run, y.same), of_y = subtracts ? 0 : min_int(x.same, y.run);
  sum.run = max_int(of_x, of_y);
  sum.step = sum.run == 0 ? 0 : of_x >= of_y ? x.step : y.step;
  sum.divisor = sum.run > 0 ? min_int(x.divisor, y.divisor) : min_int(divisor_of_each(x), divisor_of_each(y));
  return sum;
}

/* x times 2^by. */
static index_facts_t shifted(index_facts_t x, int by) {
  return (index_facts_t){.run = x.run,
                         .divisor = min_int(x.divisor + by, ANY_BITS),
                         .same = x.same,
                         .step = x.run > 0 ? x.step + by : 0,
                         .offset = modulo(x.offset << by)};
}

static index_facts_t product_of(index_facts_t x, index_facts_t y) {
  int divisor = divisor_of_each(x) + divisor_of_each(y);
  return (index_facts_t){.divisor = min_int(divisor, ANY_BITS), .same = min_int(x.same, y.same)};
}

/* x // y and x % y, rounded down, where y is one natural number for many: aligned groups that count up have one
 * quotient, and their rests count up, if they are no longer than y has powers of two. */
static int group_in_quotient(index_facts_t x, index_facts_t y) {
  return min_int(min_int(x.run, x.divisor), min_int(y.same, divisor_of_each(y)));
}

static index_facts_t quotient_of(index_facts_t x, index_facts_t y) {
  return (index_facts_t){.same = max_int(group_in_quotient(x, y), min_int(x.same, y.same))};
}

static index_facts_t rest_of(index_facts_t x, index_facts_t y) {
  index_facts_t rest = {.run = group_in_quotient(x, y),
                        .divisor = min_int(x.divisor, divisor_of_each(y)),
                        .same = min_int(x.same, y.same)};
  if (rest.run == 0)
    rest.divisor = min_int(divisor_of_each(x), divisor_of_each(y));
  return rest;
}

static index_facts_t all_equal(int divisor) { return (index_facts_t){.divisor = divisor, .same = ANY_BITS}; }

/* The dimension of a reshape's operand that `dim` of its result is, where only ones come and go; else -1. */
static int dim_before_reshape(MlirType from, MlirType to, int dim) {
  int rank_from = (int)tw_rank(from), rank_to = (int)tw_rank(to), f = 0, found = -1;
  for (int t = 0; t < rank_to; t++) {
    if (tw_extent(to, t) == 1)
      continue;
    while (f < rank_from && tw_extent(from, f) == 1)
      f++;
    if (f == rank_from || tw_extent(from, f) != tw_extent(to, t))
      return -1;
    found = t == dim ? f : found;
    f++;
  }
  return found;
}

/* What is the same along an axis that a reshape inserts: each element, with the powers of two that all have. */
static index_facts_t facts_of_inserted(MlirValue input) {
  int divisor = 0;
  for (int d = 0; d < tw_rank(mlirValueGetType(input)); d++)
    divisor = max_int(divisor, divisor_of_each(facts_of(input, d)));
  return all_equal(divisor);
}

static index_facts_t facts_of_shape(MlirOperation op, int dim) {
  MlirValue input = mlirOperationGetOperand(op, 0);
  MlirType from = mlirValueGetType(input), to = mlirValueGetType(mlirOperationGetResult(op, 0));
  if (!tw_is_tile(from))
    return all_equal(facts_of(input, -1).divisor);
  if (tw_op_is(op, TW_TILE_RESHAPE)) {
    if (tw_extent(to, dim) == 1)
      return facts_of_inserted(input);
    int before = dim_before_reshape(from, to, dim);
    return before < 0 ? nothing : all_facts_of(input, before);
  }
  int before = dim - (int)(tw_rank(to) - tw_rank(from));
  if (before < 0 || (tw_extent(from, before) == 1 && tw_extent(to, dim) > 1)) {
    index_facts_t facts = facts_of(input, before < 0 ? 0 : before);
    return all_equal(divisor_of_each(facts));
  }
  return all_facts_of(input, before);
}

/* x < y, where x counts up in groups of 2^n from a multiple of that, and y is one multiple of it for all: a group lies
 * below, or not. So it is with x >= y, and with y > x and y <= x. */
static index_facts_t facts_of_comparison(MlirOperation op, int dim) {
  int64_t predicate = tw_attr_int(op, "predicate", -1);
  index_facts_t x = facts_of(mlirOperationGetOperand(op, 0), dim), y = facts_of(mlirOperationGetOperand(op, 1), dim);
  if (predicate == TW_SGT || predicate == TW_SLE) {
    index_facts_t swap = x;
    x = y, y = swap;
  }
  bool decides = predicate >= TW_SLT && predicate <= TW_SGE && y.run == 0;
  int same = decides ? min_int(min_int(x.run, x.divisor), min_int(y.same, y.divisor)) : 0;
  return (index_facts_t){.same = max_int(same, min_int(x.same, y.same))};
}

static index_facts_t facts_of_factor(tw_factor_t factor, int dim) {
  return mlirValueIsNull(factor.value) ? all_equal(zeros_below(factor.number)) : facts_of(factor.value, dim);
}

static bool is_natural(tw_factor_t factor) {
  return mlirValueIsNull(factor.value) ? factor.number > 0 : tw_is_natural(factor.value);
}

/* Of a quotient or a rest; false for another op. */
static bool facts_of_division(MlirOperation op, int dim, index_facts_t *out) {
  MlirValue value = mlirOperationGetResult(op, 0);
  tw_by_factor_t read;
  if (tw_read_quotient(value, &read) && is_natural(read.by)) {
    *out = quotient_of(facts_of(read.x, dim), facts_of_factor(read.by, dim));
    return true;
  }
  bool rounds_up = tw_op_is(op, TW_ARITH_REMSI); /* below zero */
  if (!tw_read_rest(value, &read) || !is_natural(read.by) || (rounds_up && !tw_is_natural(read.x)))
    return false;
  *out = rest_of(facts_of(read.x, dim), facts_of_factor(read.by, dim));
  return true;
}

static index_facts_t facts_of_op(MlirOperation op, int dim) {
  index_facts_t divided;
  if (tw_op_is(op, TW_TILE_IOTA))
    return (index_facts_t){.run = zeros_below(tw_count(mlirValueGetType(mlirOperationGetResult(op, 0)))),
                           .divisor = ANY_BITS};
  if (tw_op_is(op, TW_TENSOR_SPLAT))
    return all_facts_of(mlirOperationGetOperand(op, 0), -1);
  if (tw_op_is(op, TW_TILE_BROADCAST) || tw_op_is(op, TW_TILE_RESHAPE))
    return facts_of_shape(op, dim);
  if (tw_op_is_conversion(op) || tw_op_is(op, TW_ARITH_EXTSI))
    return all_facts_of(mlirOperationGetOperand(op, 0), dim);
  if (facts_of_division(op, dim, &divided))
    return divided;
  if (tw_op_is(op, TW_ARITH_ANDI)) /* of masks */
    return (index_facts_t){.same = min_int(facts_of(mlirOperationGetOperand(op, 0), dim).same,
                                           facts_of(mlirOperationGetOperand(op, 1), dim).same)};
  if (tw_op_is(op, TW_ARITH_CMPI))
    return facts_of_comparison(op, dim);
  bool adds = tw_op_is(op, TW_ARITH_ADDI), subtracts = tw_op_is(op, TW_ARITH_SUBI);
  if (!adds && !subtracts && !tw_op_is(op, TW_ARITH_MULI))
    return nothing;
  if (adds || subtracts)
    return sum_of(all_facts_of(mlirOperationGetOperand(op, 0), dim), all_facts_of(mlirOperationGetOperand(op, 1), dim),
                  subtracts);
  int64_t by;
  if (tw_known_int(mlirOperationGetOperand(op, 1), &by) && by > 0 && by == INT64_C(1) << zeros_below(by))
    return shifted(all_facts_of(mlirOperationGetOperand(op, 0), dim), zeros_below(by));
  return product_of(facts_of(mlirOperationGetOperand(op, 0), dim), facts_of(mlirOperationGetOperand(op, 1), dim));
}

/* A loop that starts at a multiple and counts by one goes over multiples. */
static int divisor_of_scalar(MlirValue value) {
  if (mlirValueIsABlockArgument(value) && mlirBlockArgumentGetArgNumber(value) == 0) {
    MlirOperation loop = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value));
    if (tw_op_is(loop, TW_SCF_FOR))
      return min_int(facts_of(mlirOperationGetOperand(loop, 0), -1).divisor,
                     facts_of(mlirOperationGetOperand(loop, 2), -1).divisor);
  }
  return tw_argument_divisor_bits(value);
}

static index_facts_t all_facts_of(MlirValue value, int dim) {
  int64_t constant;
  MlirOperation op = tw_def(value);
  if (tw_known_int(value, &constant))
    return (index_facts_t){.divisor = ANY_BITS, .same = ANY_BITS, .offset = modulo(constant)};
  index_facts_t facts = mlirOperationIsNull(op) ? nothing : facts_of_op(op, dim);
  MlirType type = mlirValueGetType(value);
  if (!tw_is_tile(type) && divisor_of_scalar(value) > plain(facts).divisor)
    facts = all_equal(divisor_of_scalar(value));
  if (!tw_is_tile(type) || tw_extent(type, dim) == 1)
    facts.same = ANY_BITS;
  return facts;
}

static index_facts_t facts_of(MlirValue value, int dim) { return plain(all_facts_of(value, dim)); }

bool tw_counts_from_zero(MlirValue tile) {
  MlirOperation op = tw_def(tile);
  return !mlirOperationIsNull(op) && tw_op_is(op, TW_TILE_IOTA);
}

int tw_counted_axis(MlirValue tile) {
  int rank = tw_rank(mlirValueGetType(tile)), axis = -1;
  MlirOperation op = tw_def(tile);
  if (!mlirOperationIsNull(op) && tw_op_is(op, TW_TILE_BROADCAST))
    tile = mlirOperationGetOperand(op, 0);
  if (!tw_is_tile(mlirValueGetType(tile)))
    return -1;
  int leading = rank - tw_rank(mlirValueGetType(tile)); /* axes that a broadcast adds */
  for (int d = 0; d < rank - leading; d++)
    if (tw_extent(mlirValueGetType(tile), d) > 1) {
      if (axis >= 0)
        return -1;
      axis = d + leading;
    }
  for (op = tw_def(tile); !mlirOperationIsNull(op) && tw_op_is(op, TW_TILE_RESHAPE); op = tw_def(tile))
    tile = mlirOperationGetOperand(op, 0);
  return tw_counts_from_zero(tile) ? axis : -1;
}

int tw_equal_neighbours(MlirValue tile, int dim) { return facts_of(tile, dim).same; }

/* ---- gathers and scatters ------------------------------------------------------------------------------------ */

/* Neighbours along `dim` of the tile that lie side by side along `axis` of the array, whatever a mask says. */
static int unmasked_neighbours(MlirOperation op, int axis, int dim) {
  intptr_t first, rank = tw_operands(op, TW_OPERAND_INDICES, &first);
  int bits = rank > 0 ? ANY_BITS : 0;
  for (intptr_t d = 0; d < rank; d++) {
    index_facts_t facts = facts_of(mlirOperationGetOperand(op, first + d), dim);
    bits = min_int(bits, d == axis ? min_int(facts.run, facts.divisor) : facts.same);
  }
  return bits;
}

/* Those that are in other respects alike. */
static int neighbours(MlirOperation op, int axis, int dim) {
  MlirValue mask = tw_operand(op, TW_OPERAND_MASK);
  int bits = unmasked_neighbours(op, axis, dim);
  return mlirValueIsNull(mask) ? bits : min_int(bits, facts_of(mask, dim).same);
}

bool tw_gather_may_end_within_vector(MlirOperation op) {
  int axis = tw_access_contiguous_dim(op, (int)mlirShapedTypeGetRank(mlirValueGetType(mlirOperationGetOperand(op, 0))));
  MlirType tile = mlirValueGetType(mlirOperationGetResult(op, 0));
  for (int dim = 0; axis >= 0 && dim < tw_rank(tile); dim++)
    if (unmasked_neighbours(op, axis, dim) > 0)
      return true;
  return false;
}

/* Of the indices of an access, or of what moves with them. */
static MlirType tile_of(MlirOperation op) {
  for (intptr_t i = 1; i < mlirOperationGetNumOperands(op); i++)
    if (tw_is_tile(mlirValueGetType(mlirOperationGetOperand(op, i))))
      return mlirValueGetType(mlirOperationGetOperand(op, i));
  return (MlirType){NULL};
}

int tw_gather_vector_bits(MlirOperation op, int *dim) {
  MlirType array = mlirValueGetType(mlirOperationGetOperand(op, 0));
  int rank = (int)mlirShapedTypeGetRank(array), best = 0;
  *dim = -1;
  if (tw_memory_bits(tw_element(array)) < 8)
    return 0;
  MlirType tile = tile_of(op);
  int axis = tw_access_contiguous_dim(op, rank);
  if (axis < 0 || mlirTypeIsNull(tile))
    return 0;
  int most = tw_has_attr(op, "check_bounds") ? tw_access_vector_bits(op, rank) : tw_access_inner_vector_bits(op, rank);
  for (int d = 0; d < tw_rank(tile); d++) {
    int bits = min_int(neighbours(op, axis, d), most);
    if (bits > best) {
      best = bits;
      *dim = d;
    }
  }
  return best;
}

bool tw_gather_spread(MlirOperation op, tw_spread_t *out) {
  MlirType type = mlirValueGetType(mlirOperationGetOperand(op, 0)), tile = tile_of(op);
  int rank = (int)mlirShapedTypeGetRank(type), axis = tw_access_contiguous_dim(op, rank);
  int most = tw_memory_bits(tw_element(type)) < 8 ? 0 : tw_access_vector_bits(op, rank);
  intptr_t first, count = tw_operands(op, TW_OPERAND_INDICES, &first);
  *out = (tw_spread_t){.dim = -1};
  for (int dim = 0; axis >= 0 && !mlirTypeIsNull(tile) && dim < tw_rank(tile); dim++) {
    index_facts_t facts = all_facts_of(mlirOperationGetOperand(op, first + axis), dim);
    int run = facts.run, vector = min_int(most, facts.divisor);
    for (intptr_t d = 0; d < count; d++)
      run = d == axis ? run : min_int(run, facts_of(mlirOperationGetOperand(op, first + d), dim).same);
    if (run > out->run && vector > facts.step)
      *out = (tw_spread_t){dim, run, facts.step, vector, facts.offset};
  }
  return out->run > 0;
}

MlirValue tw_index_root(MlirValue index, int64_t *by) {
  int64_t constant;
  *by = 0;
  for (MlirOperation op = tw_def(index); !mlirOperationIsNull(op); op = tw_def(index)) {
    bool adds = tw_op_is(op, TW_ARITH_ADDI), subtracts = tw_op_is(op, TW_ARITH_SUBI);
    bool sums = (adds || subtracts) && tw_known_int(mlirOperationGetOperand(op, 1), &constant);
    if (!sums && !tw_op_is(op, TW_TILE_BROADCAST))
      break;
    *by += !sums ? 0 : adds ? constant : -constant;
    index = mlirOperationGetOperand(op, 0);
  }
  return index;
}

/* Whether two accesses are of one array, at indices that differ by *by (of y less of x) along its contiguous axis. */
static bool are_apart(MlirOperation x, MlirOperation y, int64_t *by) {
  intptr_t first, rank = tw_operands(x, TW_OPERAND_INDICES, &first);
  int axis = tw_access_contiguous_dim(x, (int)rank);
  int64_t by_x = 0, by_y = 0;
  bool apart = mlirValueEqual(mlirOperationGetOperand(x, 0), mlirOperationGetOperand(y, 0)) &&
               tw_has_attr(x, "check_bounds") == tw_has_attr(y, "check_bounds");
  for (intptr_t i = first; i < first + rank && apart; i++) {
    MlirValue of_x = mlirOperationGetOperand(x, i), of_y = mlirOperationGetOperand(y, i);
    if (i - first == axis)
      apart = mlirValueEqual(tw_index_root(of_x, &by_x), tw_index_root(of_y, &by_y));
    else
      apart = mlirValueEqual(of_x, of_y);
  }
  *by = by_y - by_x;
  return apart;
}

bool tw_gathers_adjoin(MlirOperation x, MlirOperation y) {
  int64_t by;
  return are_apart(x, y, &by) &&
         mlirTypeEqual(mlirValueGetType(mlirOperationGetResult(x, 0)), mlirValueGetType(mlirOperationGetResult(y, 0)));
}

/* Whether two scatters store to all second elements each, the first one to the even ones; their mask is alike for those
 * of a vector. */
static bool make_pairs(MlirOperation even, MlirOperation odd) {
  MlirValue mask = tw_operand(even, TW_OPERAND_MASK);
  tw_spread_t spread;
  int64_t by;
  return mlirTypeEqual(mlirValueGetType(tw_operand(even, TW_OPERAND_VALUE)),
                       mlirValueGetType(tw_operand(odd, TW_OPERAND_VALUE))) &&
         mlirValueEqual(mask, tw_operand(odd, TW_OPERAND_MASK)) && are_apart(even, odd, &by) && by == 1 &&
         tw_gather_spread(even, &spread) && spread.step == 1 && spread.first % 2 == 0 &&
         (mlirValueIsNull(mask) || facts_of(mask, spread.dim).same >= spread.vector - spread.step);
}

/* The op before or behind that does more than arithmetic; null if there is none. */
static MlirOperation neighbour_of(MlirOperation op, bool behind) {
  MlirOperation at = behind ? op : mlirBlockGetFirstOperation(mlirOperationGetBlock(op)), before = tw_null_op();
  if (behind) {
    do
      at = mlirOperationGetNextInBlock(at);
    while (!mlirOperationIsNull(at) && tw_is_arithmetic(at));
    return at;
  }
  for (; !mlirOperationEqual(at, op); at = mlirOperationGetNextInBlock(at))
    if (!tw_is_arithmetic(at))
      before = at;
  return before;
}

MlirOperation tw_scatter_pair(MlirOperation op, bool *is_odd) {
  MlirOperation behind = neighbour_of(op, true), before = neighbour_of(op, false);
  *is_odd = false;
  if (!mlirOperationIsNull(behind) && tw_op_scatters(behind) && make_pairs(op, behind))
    return behind;
  *is_odd = !mlirOperationIsNull(before) && tw_op_scatters(before) && make_pairs(before, op);
  return *is_odd ? before : tw_null_op();
}

int tw_gather_run_bits(MlirOperation op, int dim) {
  int axis = tw_access_contiguous_dim(op, (int)mlirShapedTypeGetRank(mlirValueGetType(mlirOperationGetOperand(op, 0))));
  return axis < 0 ? 0 : neighbours(op, axis, dim);
}
