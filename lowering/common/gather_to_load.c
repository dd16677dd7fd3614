/* gather_to_load.c - in tile-legalize, tile-canonicalize and tile-split-loops: gathers and scatters whose indices count
 * up become loads and stores of tiles
 *
 *   before   %b = arith.muli %i, %c1024 : i32
 *            %s = tensor.splat %b : tensor<1024xi32>
 *            %n = tile.iota : tensor<1024xi32>
 *            %j = arith.addi %s, %n : tensor<1024xi32>
 *            %t = tile.gather %a[%j] else %zeros : … -> tensor<1024xf32>
 *   after    %t = tile.load %a[%i] padding zero : memref<?xf32, …>, i32 -> tensor<1024xf32>
 *
 * Runs after tile-legalize. Back ends access a tile by vectors, the elements of a gather one by one.
 *
 * An index tile is read as a sum: a base that is the same for all elements, and at most one iota along one axis of the
 * tile. Along that axis the base must be a multiple of the tile's extent, so that it is a tile index; an axis of the
 * array whose index has no iota gets extent one. Bases that overflow 32 bits are taken for what they are, beyond the
 * array. A mask becomes a select after a load; a masked scatter stays, and so does any padding that a load has not.
 *
 * A table of pages is read this way, too, where a tile lies within one page: what is divided by the extent of a page is
 * the same for all elements, and what is left over counts up. A gather whose indices are all the same, of the table
 * then, is one of a scalar.
 *
 *   before   %n = %i * 64 + tile.iota : tensor<64xi32>
 *            %q = arith.floordivsi %n, 128                 after   %q = arith.floordivsi %i, 2 : i32
 *            %p = tile.gather %table[%q]                           %p = tile.gather %table[%q] : i32
 *            %r = arith.andi %n, 127                               %r = arith.andi %i, 1 : i32
 *            %t = tile.gather %a[%p, %r] : ... -> tensor<64xf32>   %t = tile.load %a[%p, %r] : ... -> tensor<1x64xf32>
 *
 * Where n neighbours along one axis are the same element, and along another they count up, as packed weights of a word
 * do, the tile of those that differ is loaded, and each of its elements repeated:
 *
 *   %k = %i * 64 + tile.iota : tensor<64xi32>                     after   %w = tile.load %a[%i, %j] : tensor<8x32xi32>
 *   %t = tile.gather %a[%k / 8, columns] : tensor<64x32xi32>              %t = %w as 8x1x32, broadcast to 8x8x32
 *
 * Indices may count along the axes of the tile in another order than along the array's: then the tile is permuted.
 *
 * Runs again after tile-split-loops, when masks of such tables hold in all iterations of a loop. */
#include "lowering/common/gather_to_load.h"
#include "lowering/ir.h"
#include "lowering/ranges.h"
#include "tilewright/dialect.h"

#include <math.h>
#include <string.h>

enum { MAX_TERMS = 8 };

/* sum of factor[i] * value[i], plus constant; and the axis of the tile along which it counts up, or -1: by one behind
 * each `repeats` neighbours */
typedef struct {
  MlirValue value[MAX_TERMS];
  int64_t factor[MAX_TERMS], constant;
  int64_t repeats;
  int num, axis;
  MlirOperation op; /* that is indexed: scalars are made before it */
  bool *has_more;   /* terms than MAX_TERMS, so it was not read */
} index_sum_t;

/* --- Reading an index --------------------------------------------------------------------------------- */

static bool add_term(index_sum_t *sum, MlirValue value, int64_t factor) {
  if (sum->num == MAX_TERMS) {
    *sum->has_more = true;
    return false;
  }
  sum->value[sum->num] = value;
  sum->factor[sum->num++] = factor;
  return true;
}

static bool read_sum(index_sum_t *sum, MlirValue value, int64_t factor);

/* The operand of a product that is not a small constant; null if both are unknown or the numbers get too large. */
static MlirValue split_product(MlirOperation product, int64_t *factor) {
  for (int i = 0; i < 2; i++) {
    int64_t constant;
    if (tw_known_int(mlirOperationGetOperand(product, i), &constant) && constant > INT32_MIN && constant < INT32_MAX &&
        *factor > INT32_MIN && *factor < INT32_MAX) {
      *factor *= constant;
      return mlirOperationGetOperand(product, 1 - i);
    }
  }
  return (MlirValue){NULL};
}

/* x + y, x - y, or x times a constant. False for another op; then `sum` is as before. */
static bool read_arithmetic(index_sum_t *sum, MlirOperation def, int64_t factor) {
  bool adds = tw_op_is(def, TW_ARITH_ADDI), subtracts = tw_op_is(def, TW_ARITH_SUBI);
  index_sum_t trial = *sum;
  bool ok = false, had_more = *sum->has_more;
  if (adds || subtracts) {
    ok = read_sum(&trial, mlirOperationGetOperand(def, 0), factor) &&
         read_sum(&trial, mlirOperationGetOperand(def, 1), subtracts ? -factor : factor);
  } else if (tw_op_is(def, TW_ARITH_MULI)) {
    MlirValue rest = split_product(def, &factor);
    ok = !mlirValueIsNull(rest) && read_sum(&trial, rest, factor);
  }
  if (ok)
    *sum = trial;
  else if (!tw_is_tile(mlirValueGetType(mlirOperationGetResult(def, 0))))
    *sum->has_more = had_more; /* a scalar may be a term as a whole */
  return ok;
}

/* The axis that `axis` of the input of a reshape becomes; -1 if the reshape does more than to insert or drop ones. */
static int axis_after_reshape(MlirOperation reshape, int axis) {
  MlirType from = mlirValueGetType(mlirOperationGetOperand(reshape, 0));
  MlirType to = mlirValueGetType(mlirOperationGetResult(reshape, 0));
  int64_t extent = tw_extent(from, axis);
  int found = -1;
  if (extent != tw_count(from))
    return -1;
  for (int i = 0; i < tw_rank(to); i++)
    if (tw_extent(to, i) == extent)
      found = i;
  return found;
}

static bool is_multiple(const index_sum_t *sum, int64_t extent) {
  bool ok = sum->constant % extent == 0;
  for (int i = 0; i < sum->num; i++)
    ok = ok && sum->factor[i] % extent == 0;
  return ok;
}

static MlirValue widen(const tw_builder_t *at, MlirValue value, MlirType type) {
  return mlirTypeEqual(mlirValueGetType(value), type) ? value : tw_unary(at, "arith.extsi", type, value);
}

/* sum / extent, in i32 unless a term is wider. */
static MlirValue build_index(const tw_builder_t *at, const index_sum_t *sum, int64_t extent) {
  MlirType type = tw_i32(at->context);
  for (int i = 0; i < sum->num; i++)
    if (tw_bits(mlirValueGetType(sum->value[i])) > 32)
      type = tw_i64(at->context);
  MlirValue index = {NULL};
  for (int i = 0; i < sum->num; i++) {
    MlirValue term = widen(at, sum->value[i], type);
    if (sum->factor[i] != extent)
      term = tw_binary(at, "arith.muli", type, term, tw_const_int(at, type, sum->factor[i] / extent));
    index = mlirValueIsNull(index) ? term : tw_binary(at, "arith.addi", type, index, term);
  }
  if (!mlirValueIsNull(index) && sum->constant == 0)
    return index;
  MlirValue constant = tw_const_int(at, type, sum->constant / extent);
  return mlirValueIsNull(index) ? constant : tw_binary(at, "arith.addi", type, index, constant);
}

/* What an op divides by, a constant: x / n, x >> m, or x % n where n is a power of two; 0 if it is none of these. */
static int64_t divisor_of(MlirOperation def) {
  int64_t by;
  if (!tw_known_int(mlirOperationGetOperand(def, 1), &by) || by < 0 || by >= INT32_MAX)
    return 0;
  if (tw_op_is(def, TW_ARITH_SHRSI))
    return by < 31 ? INT64_C(1) << by : 0;
  if (tw_op_is(def, TW_ARITH_ANDI))
    return (by & (by + 1)) == 0 ? by + 1 : 0;
  return by;
}

/* x / n, where x counts up from a multiple of n, over several multiples of it. */
static bool read_repeats(index_sum_t *sum, const index_sum_t *start, int64_t by, int64_t factor) {
  bool ok = factor == 1 && is_multiple(start, by);
  for (int i = 0; ok && i < start->num; i++)
    ok = add_term(sum, start->value[i], start->factor[i] / by);
  sum->constant += start->constant / by;
  sum->axis = start->axis;
  sum->repeats = by;
  return ok;
}

/* x / n or x % n, where n is a constant and x counts up within one multiple of it; or x / n as above. */
static bool read_page(index_sum_t *sum, MlirOperation def, int64_t factor) {
  bool divides = !tw_op_is(def, TW_ARITH_ANDI);
  MlirValue x = mlirOperationGetOperand(def, 0);
  index_sum_t start = {.axis = -1, .op = sum->op, .has_more = sum->has_more};
  int64_t by = divisor_of(def);
  if (by == 0 || !read_sum(&start, x, 1) || start.repeats > 1)
    return false;
  int64_t extent = start.axis < 0 ? 1 : tw_extent(mlirValueGetType(x), start.axis);
  if (divides && by > 1 && by < extent && extent % by == 0)
    return read_repeats(sum, &start, by, factor);
  if (by % extent != 0 || !is_multiple(&start, extent))
    return false;
  tw_builder_t at = tw_build_before(sum->op);
  MlirValue number = build_index(&at, &start, extent);
  MlirType type = mlirValueGetType(number);
  by /= extent;
  if (divides)
    return add_term(sum, tw_binary(&at, "arith.floordivsi", type, number, tw_const_int(&at, type, by)), factor);
  if (start.axis >= 0 && factor != 1)
    return false;
  sum->axis = start.axis;
  return by == 1 ||
         add_term(sum, tw_binary(&at, "arith.andi", type, number, tw_const_int(&at, type, by - 1)), factor * extent);
}

static bool read_tile(index_sum_t *sum, MlirOperation def, int64_t factor) {
  if (tw_op_is(def, TW_TILE_IOTA)) {
    if (tw_count(mlirValueGetType(mlirOperationGetResult(def, 0))) == 1) /* zero, which a broadcast repeats */
      return true;
    bool counts = sum->axis < 0 && factor == 1;
    sum->axis = counts ? 0 : sum->axis;
    return counts;
  }
  MlirValue input = {NULL};
  bool pages = tw_op_is(def, TW_ARITH_FLOORDIVSI) || tw_op_is(def, TW_ARITH_ANDI) || tw_op_is(def, TW_ARITH_SHRSI);
  bool reshapes = tw_op_is(def, TW_TILE_RESHAPE);
  if (pages || reshapes || tw_op_is(def, TW_TILE_BROADCAST) || tw_op_is(def, TW_TENSOR_SPLAT) ||
      tw_op_is(def, TW_ARITH_EXTSI))
    input = mlirOperationGetOperand(def, 0);
  if (mlirValueIsNull(input) || tw_bits(mlirValueGetType(input)) < 32) /* narrower sums wrap */
    return false;
  int before = sum->axis;
  sum->axis = -1;
  if (!(pages ? read_page(sum, def, factor) : read_sum(sum, input, factor)) || (before >= 0 && sum->axis >= 0))
    return false;
  if (sum->axis >= 0 && reshapes && (sum->axis = axis_after_reshape(def, sum->axis)) < 0)
    return false;
  sum->axis = before >= 0 ? before : sum->axis;
  return true;
}

static bool read_sum(index_sum_t *sum, MlirValue value, int64_t factor) {
  int64_t constant;
  MlirOperation def = tw_def(value);
  if (tw_known_int(value, &constant)) {
    sum->constant += factor * constant;
    return true;
  }
  if (!mlirOperationIsNull(def) && read_arithmetic(sum, def, factor))
    return true;
  if (tw_is_tile(mlirValueGetType(value)))
    return !mlirOperationIsNull(def) && read_tile(sum, def, factor);
  return add_term(sum, value, factor);
}

/* --- The access ----------------------------------------------------------------------------------------- */

/* A gather or scatter as the tile access that it is. */
typedef struct {
  MlirOperation op;
  MlirValue array, mask, padding; /* the latter two may be null */
  MlirType tile;                  /* of the result or the value */
  intptr_t rank, first;           /* of the array; the first index operand */
  index_sum_t index[TW_MAX_RANK];
  int64_t shape[TW_MAX_RANK]; /* of the tile, by axes of the array, each element once */
  bool has_more;              /* terms in an index than are read */
  bool turned;                /* the tile's axes have another order than the array's */
} gather_access_t;

static bool always_holds(MlirValue mask) {
  int64_t known;
  bool holds = false;
  return tw_known_int(mask, &known) ? known != 0 : tw_is_decided(mask, &holds) && holds;
}

static bool read_operands(gather_access_t *a, bool is_gather) {
  a->array = tw_operand(a->op, TW_OPERAND_ARRAY);
  a->rank = tw_operands(a->op, TW_OPERAND_INDICES, &a->first);
  a->mask = tw_operand(a->op, TW_OPERAND_MASK);
  a->padding = tw_operand(a->op, TW_OPERAND_PADDING);
  MlirValue value = is_gather ? mlirOperationGetResult(a->op, 0) : tw_operand(a->op, TW_OPERAND_VALUE);
  if (!mlirValueIsNull(a->mask) && always_holds(a->mask))
    a->mask = (MlirValue){NULL};
  a->tile = mlirValueGetType(value);
  return a->rank > 0 && a->rank <= TW_MAX_RANK && tw_is_tile(a->tile);
}

static bool read_index(gather_access_t *a, intptr_t d) {
  MlirValue index = mlirOperationGetOperand(a->op, a->first + d);
  a->index[d] = (index_sum_t){.axis = -1, .op = a->op, .has_more = &a->has_more};
  return tw_bits(mlirValueGetType(index)) >= 32 && read_sum(&a->index[d], index, 1);
}

static int64_t repeats_of(const index_sum_t *sum) { return sum->repeats > 1 ? sum->repeats : 1; }

/* Every axis of the tile longer than one must be counted along by one index. */
static bool read_indices(gather_access_t *a) {
  int last = -1;
  int64_t covered = 1;
  uint32_t seen = 0;
  for (intptr_t d = 0; d < a->rank; d++) {
    index_sum_t *sum = &a->index[d];
    if (!read_index(a, d))
      return false;
    int64_t extent = sum->axis < 0 ? 1 : tw_extent(a->tile, sum->axis);
    a->shape[d] = extent / repeats_of(sum);
    if (!is_multiple(sum, a->shape[d]) || (extent > 1 && (seen >> sum->axis & 1)))
      return false;
    if (extent > 1) {
      a->turned |= sum->axis < last;
      last = sum->axis;
      seen |= UINT32_C(1) << last;
    }
    covered *= extent;
  }
  return covered == tw_count(a->tile);
}

int tw_padding_kind(MlirValue padding) {
  int64_t integer;
  if (mlirValueIsNull(padding))
    return TW_PADDING_UNDETERMINED;
  if (tw_known_int(padding, &integer))
    return integer == 0 ? TW_PADDING_ZERO : -1;
  double number;
  if (!tw_known_float(padding, &number))
    return -1;
  if (number == 0)
    return signbit(number) ? TW_PADDING_NEG_ZERO : TW_PADDING_ZERO;
  return isnan(number) ? TW_PADDING_NAN : isinf(number) ? (number > 0 ? TW_PADDING_POS_INF : TW_PADDING_NEG_INF) : -1;
}

/* The padding of a load that gives what the gather's padding is; -1 if none does. */
static int load_padding(const gather_access_t *a) {
  return tw_has_attr(a->op, "check_bounds") ? tw_padding_kind(a->padding) : TW_PADDING_UNDETERMINED;
}

/* --- Building the tile access ----------------------------------------------------------------------------- */

static void build_indices(const tw_builder_t *at, const gather_access_t *a, MlirValue *operands) {
  for (intptr_t d = 0; d < a->rank; d++)
    operands[d] = build_index(at, &a->index[d], a->shape[d]);
}

/* Without `check_bounds` the front end promised that no element lies outside, except where a mask is false. */
static intptr_t in_bounds_attr(const gather_access_t *a, tw_attr_t *out) {
  *out = (tw_attr_t){"tile.in_bounds", mlirUnitAttrGet(mlirOperationGetContext(a->op))};
  return !tw_has_attr(a->op, "check_bounds") && mlirValueIsNull(a->mask);
}

/* The axes that repeat their elements. */
static int num_repeated(const gather_access_t *a) {
  int count = 0;
  for (intptr_t d = 0; d < a->rank; d++)
    count += repeats_of(&a->index[d]) > 1;
  return count;
}

/* Whether each element that is repeated is one of a row: a table with few entries is a gather as others. */
static bool repeats_rows(const gather_access_t *a, int num) {
  intptr_t once = 0;
  for (intptr_t d = 0; d < a->rank; d++)
    once += a->shape[d] > 1 && repeats_of(&a->index[d]) == 1;
  return once > 0 && a->rank + num <= TW_MAX_RANK;
}

/* The loaded tile with its elements repeated, in the shape of the gather's. */
static MlirValue repeated(const tw_builder_t *at, const gather_access_t *a, MlirValue tile) {
  int64_t ones[TW_MAX_RANK], all[TW_MAX_RANK];
  intptr_t rank = 0;
  for (intptr_t d = 0; d < a->rank; d++) {
    ones[rank] = all[rank] = a->shape[d];
    rank++;
    if (repeats_of(&a->index[d]) > 1) {
      ones[rank] = 1;
      all[rank++] = repeats_of(&a->index[d]);
    }
  }
  MlirType element = tw_element(a->tile);
  tile = tw_reshape(at, tw_tile_type(element, rank, ones), tile);
  return tw_broadcast(at, tw_tile_type(element, rank, all), tile);
}

/* A tile with the axes of the array, each counted along once, with those of the gather's. */
static MlirValue turned(const tw_builder_t *at, const gather_access_t *a, MlirValue tile) {
  int64_t from[TW_MAX_RANK], extents[TW_MAX_RANK], to[TW_MAX_RANK];
  int32_t order[TW_MAX_RANK];
  intptr_t count = 0;
  for (intptr_t d = 0; d < a->rank; d++)
    if (a->shape[d] * repeats_of(&a->index[d]) > 1) {
      from[count] = a->index[d].axis;
      extents[count++] = a->shape[d] * repeats_of(&a->index[d]);
    }
  for (intptr_t d = 0; d < count; d++) {
    intptr_t rank = 0; /* of this axis among those of the gather's tile */
    for (intptr_t other = 0; other < count; other++)
      rank += from[other] < from[d];
    order[rank] = (int32_t)d;
    to[rank] = extents[d];
  }
  MlirType element = tw_element(a->tile);
  tile = tw_reshape(at, tw_tile_type(element, count, extents), tile);
  return tw_permute(at, tw_tile_type(element, count, to), tile, order);
}

static void build_load(const gather_access_t *a, int padding) {
  tw_builder_t at = tw_build_before(a->op);
  MlirValue operands[1 + TW_MAX_RANK] = {a->array};
  build_indices(&at, a, operands + 1);
  MlirType type = tw_tile_type(tw_element(a->tile), a->rank, a->shape);
  tw_attr_t attrs[2] = {{"padding", mlirIntegerAttrGet(tw_i32(at.context), padding)}};
  MlirValue tile = tw_op1_attrs(&at, "tile.load", type, 1 + a->rank, operands, 1 + in_bounds_attr(a, &attrs[1]), attrs);
  if (num_repeated(a) > 0)
    tile = repeated(&at, a, tile);
  tile = tw_reshape(&at, a->tile, a->turned ? turned(&at, a, tile) : tile);
  if (!mlirValueIsNull(a->mask))
    tile = tw_select(&at, a->mask, tile, a->padding);
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(a->op, 0), tile);
  mlirOperationDestroy(a->op);
}

static void build_store(const gather_access_t *a) {
  tw_builder_t at = tw_build_before(a->op);
  MlirValue operands[2 + TW_MAX_RANK] = {a->array};
  build_indices(&at, a, operands + 1);
  MlirType type = tw_tile_type(tw_element(a->tile), a->rank, a->shape);
  operands[1 + a->rank] = tw_reshape(&at, type, tw_operand(a->op, TW_OPERAND_VALUE));
  tw_attr_t attr;
  tw_op_parts_t parts = {.num_operands = 2 + a->rank, .operands = operands, .attrs = &attr};
  parts.num_attrs = in_bounds_attr(a, &attr);
  tw_build(&at, "tile.store", parts);
  mlirOperationDestroy(a->op);
}

/* All elements are the same one of the array. */
static bool is_of_scalar(gather_access_t *a) {
  for (intptr_t d = 0; d < a->rank; d++)
    if (!read_index(a, d) || a->index[d].axis >= 0)
      return false;
  return true;
}

static MlirValue scalar_constant(const tw_builder_t *at, MlirType type, MlirValue tile) {
  int64_t integer;
  double number;
  if (tw_known_int(tile, &integer))
    return tw_const_int(at, type, integer);
  return tw_known_float(tile, &number) ? tw_const_float(at, type, number) : (MlirValue){NULL};
}

/* The gather as one of a scalar; false where its padding differs by element. */
static bool build_scalar(const gather_access_t *a) {
  tw_builder_t at = tw_build_before(a->op);
  MlirType element = tw_element(a->tile);
  MlirValue padding = a->padding;
  if (!mlirValueIsNull(padding) && mlirValueIsNull(padding = scalar_constant(&at, element, padding)))
    return false;
  MlirOperation made = mlirOperationClone(a->op);
  for (intptr_t d = 0; d < a->rank; d++)
    mlirOperationSetOperand(made, a->first + d, build_index(&at, &a->index[d], 1));
  tw_set_operand(made, TW_OPERAND_MASK, (MlirValue){NULL});
  tw_set_operand(made, TW_OPERAND_PADDING, padding);
  MlirValue scalar = mlirOperationGetResult(made, 0);
  mlirValueSetType(scalar, element);
  mlirBlockInsertOwnedOperationBefore(at.block, at.before, made);
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(a->op, 0), tw_unary(&at, "tensor.splat", a->tile, scalar));
  mlirOperationDestroy(a->op);
  return true;
}

static void visit(MlirOperation op) {
  bool is_gather = tw_op_gathers(op);
  gather_access_t a = {.op = op};
  if ((!is_gather && !tw_op_scatters(op)) || tw_has_attr(op, "tile.flat") || !read_operands(&a, is_gather))
    return;
  if (is_gather && mlirValueIsNull(a.mask) && is_of_scalar(&a) && build_scalar(&a))
    return;
  if (!read_indices(&a)) {
    if (a.has_more)
      tw_op_remark(op, "takes its elements one by one: an index adds up more than %d scalars", MAX_TERMS);
    return;
  }
  int padding = is_gather ? load_padding(&a) : 0, num = num_repeated(&a);
  bool has_mask = !mlirValueIsNull(a.mask), loads = is_gather && (num == 0 || repeats_rows(&a, num));
  if (loads && padding >= 0 && (!has_mask || !mlirValueIsNull(a.padding)))
    build_load(&a, padding);
  else if (!is_gather && !has_mask && num == 0 && !a.turned)
    build_store(&a);
}

static void visit_below(MlirOperation op) {
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    for (MlirBlock block = tw_region_block(op, r); !mlirBlockIsNull(block); block = mlirBlockGetNextInRegion(block))
      for (MlirOperation inner = mlirBlockGetFirstOperation(block), next; !mlirOperationIsNull(inner); inner = next) {
        next = mlirOperationGetNextInBlock(inner);
        visit_below(inner);
        visit(inner);
      }
}

bool tw_gather_to_load(MlirOperation func) {
  visit_below(func);
  return true;
}
