/* access.c - where a tile lies in an array. See access.h. */
#include "lowering/gpu/facts/access.h"

#include "dialect/layouts.h"
#include "lowering/gpu/machine/copy_engine.h"
#include "lowering/loops.h"
#include "tilewright/machine.h"

/* ---- facts --------------------------------------------------------------------------------------- */

MlirValue tw_access_array(MlirOperation op, intptr_t *first_index) {
  intptr_t at = 0;
  for (intptr_t n = mlirOperationGetNumOperands(op); at < n; at++) /* a store's value may come first */
    if (mlirTypeIsAMemRef(mlirValueGetType(mlirOperationGetOperand(op, at))))
      break;
  *first_index = at + 1;
  return mlirOperationGetOperand(op, at);
}

void tw_access_order(MlirOperation op, int rank, int64_t order[TW_LAYOUT_MAX_RANK]) {
  for (int d = 0; d < rank; d++)
    order[d] = d;
  tw_attr_ints(op, "order", order, TW_LAYOUT_MAX_RANK);
}

void tw_access_keep(MlirOperation from, MlirOperation to) {
  static const char *const kept[] = {"order", TW_ALLOW_ENGINE, TW_IN_BOUNDS, TW_LATENCY, TW_CACHE, TW_MOVES};
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
    if (tw_has_attr(from, kept[i]))
      tw_set_attr(to, kept[i], tw_attr(from, kept[i]));
}

void tw_access_check(MlirOperation load) { (void)mlirOperationRemoveAttributeByName(load, tw_str(TW_IN_BOUNDS)); }

bool tw_rounds_to_tf32(MlirType array, MlirType element) {
  return mlirTypeIsATF32(element) && mlirTypeIsAF32(tw_element(array));
}

int tw_access_contiguous_dim(MlirOperation op, int rank) {
  intptr_t first;
  int64_t order[TW_LAYOUT_MAX_RANK], strides[TW_MAX_RANK];
  MlirValue array = tw_access_array(op, &first);
  tw_access_order(op, rank, order);
  if (!tw_static_strides(mlirValueGetType(array), strides))
    return -1;
  for (int d = rank - 1; d >= 0; d--)
    if (strides[order[d]] == 1)
      return d;
  return -1;
}

/* log2 of the greatest power of two in a divisor. */
static int power_of_two(int64_t divisor) {
  int bits = 0;
  while (bits < 30 && divisor % ((int64_t)2 << bits) == 0)
    bits++;
  return bits;
}

static int64_t fact(MlirOperation function, intptr_t argument, const char *name, int axis) {
  MlirAttribute attribute = tw_arg_attr(function, argument, name);
  int64_t values[TW_MAX_RANK];
  if (mlirAttributeIsNull(attribute))
    return 1;
  if (mlirAttributeIsAInteger(attribute))
    return mlirIntegerAttrGetValueInt(attribute);
  return tw_array_ints(attribute, values, TW_MAX_RANK) > axis ? values[axis] : 1;
}

static int64_t divisor_of_extent(MlirOperation op) {
  MlirValue array = mlirOperationGetOperand(op, 0);
  if (!mlirValueIsABlockArgument(array))
    return 1;
  MlirOperation function = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(array));
  const char *name = tw_op_is(op, TW_TILE_STRIDE) ? "tile.stride_div" : "tile.shape_div";
  return fact(function, mlirBlockArgumentGetArgNumber(array), name, (int)tw_attr_int(op, "axis", 0));
}

int tw_argument_divisor_bits(MlirValue value) {
  MlirOperation op = tw_def(value);
  if (!mlirOperationIsNull(op))
    return tw_op_is(op, TW_TILE_DIM) || tw_op_is(op, TW_TILE_STRIDE) ? power_of_two(divisor_of_extent(op)) : 0;
  MlirOperation parent = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value));
  return tw_op_is(parent, TW_FUNC_FUNC)
             ? power_of_two(fact(parent, mlirBlockArgumentGetArgNumber(value), "tile.div", 0))
             : 0;
}

static int min_int(int a, int b) { return a < b ? a : b; }

static int vector_bits(MlirOperation op, int rank, bool inside) {
  intptr_t first;
  int64_t order[TW_LAYOUT_MAX_RANK], strides[TW_MAX_RANK];
  MlirValue array = tw_access_array(op, &first);
  MlirType type = mlirValueGetType(array);
  int dim = tw_access_contiguous_dim(op, rank), bits = tw_memory_bits(tw_element(type));
  if (dim < 0 || !mlirValueIsABlockArgument(array) || !tw_static_strides(type, strides))
    return 0;
  MlirOperation function = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(array));
  intptr_t argument = mlirBlockArgumentGetArgNumber(array);
  tw_access_order(op, rank, order);
  int vector = power_of_two(TW_MAX_ACCESS_BITS / bits);
  int64_t align = fact(function, argument, "tile.align", 0);
  vector = min_int(vector, power_of_two(align * 8 / bits > 0 ? align * 8 / bits : 1));
  if (!inside && !tw_has_attr(op, TW_IN_BOUNDS))
    vector = min_int(vector, power_of_two(fact(function, argument, "tile.shape_div", (int)order[dim])));
  for (int axis = 0; axis < mlirShapedTypeGetRank(type); axis++) {
    if (axis == order[dim])
      continue;
    int64_t divisor = strides[axis] > 0 ? strides[axis] : fact(function, argument, "tile.stride_div", axis);
    vector = min_int(vector, power_of_two(divisor));
  }
  return vector;
}

int tw_access_vector_bits(MlirOperation op, int rank) { return vector_bits(op, rank, false); }

int tw_access_inner_vector_bits(MlirOperation op, int rank) {
  intptr_t first;
  bool halves = tw_memory_bits(tw_element(mlirValueGetType(tw_access_array(op, &first)))) < 8;
  return vector_bits(op, rank, !halves); /* at an edge 4-bit elements cannot be taken one by one */
}

static bool is_any_product(MlirOperation op) { return tw_op_is_product(op) || tw_op_is_async_product(op); }

/* Whether the kernel around an op has products. */
static bool is_beside_products(MlirOperation op) {
  while (!mlirOperationIsNull(op) && !tw_op_is(op, TW_FUNC_FUNC))
    op = mlirOperationGetParentOperation(op);
  return !mlirOperationIsNull(op) && tw_has_op_like(op, is_any_product);
}

bool tw_begins_anywhere(MlirOperation op, int num_warps) {
  enum { MAX_BYTES = 32768 /* more of a block would keep others from the multiprocessor */ };
  intptr_t first;
  if ((!tw_op_loads_tile(op) && !tw_op_stores_tile(op)) || tw_is_of_thread(op) ||
      !tw_is_tile(mlirValueGetType(tw_moved_tile(op))) || !mlirOperationIsNull(tw_enclosing_loop(op)))
    return false;
  MlirType type = mlirValueGetType(tw_moved_tile(op)), array = mlirValueGetType(tw_access_array(op, &first));
  int rank = (int)tw_rank(type), dim = tw_access_contiguous_dim(op, rank), bits = tw_memory_bits(tw_element(type));
  int64_t bytes = tw_count(type) * bits / 8;
  return num_warps > 1 && dim >= 0 && tw_extent(type, dim) == tw_count(type) && bits >= 8 &&
         !tw_rounds_to_tf32(array, tw_element(type)) &&
         bits << tw_access_inner_vector_bits(op, rank) < TW_MAX_ACCESS_BITS && bytes <= MAX_BYTES &&
         bytes >= (int64_t)TW_REALIGNED_PIECE * TW_WARP_LANES * num_warps && !is_beside_products(op);
}

bool tw_is_row(const tw_layout_t *l, int dim) {
  return dim >= 0 && tw_layout_extent(l, dim) == INT64_C(1) << tw_layout_size_bits(l) && tw_layout_disjoint(l, dim) &&
         tw_layout_is_onto(l);
}

int64_t tw_access_small_pieces(MlirOperation load) {
  enum { COPY_BITS = 32 };
  MlirType tile = mlirValueGetType(tw_moved_tile(load));
  int vector = tw_access_inner_vector_bits(load, (int)tw_rank(tile));
  return (int64_t)tw_memory_bits(tw_element(tile)) << vector < COPY_BITS ? tw_count(tile) >> vector : 0;
}

bool tw_access_splits_lines(MlirOperation op) {
  intptr_t first;
  int64_t strides[TW_MAX_RANK];
  MlirValue array = tw_access_array(op, &first);
  MlirType type = mlirValueGetType(array);
  if (!mlirValueIsABlockArgument(array) || !tw_static_strides(type, strides))
    return false;
  MlirOperation function = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(array));
  intptr_t argument = mlirBlockArgumentGetArgNumber(array);
  bool splits = false;
  for (int axis = 0; axis < mlirShapedTypeGetRank(type); axis++) {
    int64_t divisor = strides[axis] > 0 ? strides[axis] : fact(function, argument, "tile.stride_div", axis);
    splits |= strides[axis] != 1 && divisor * tw_memory_bits(tw_element(type)) % (8 * TW_LINE_BYTES) != 0;
  }
  return splits;
}

bool tw_is_async_copy(MlirOperation op) { return tw_op_has(op, TW_COPIES_BY_THREADS); }

intptr_t tw_copy_buffer_operand(MlirOperation op) {
  intptr_t first;
  (void)tw_operands(op, TW_OPERAND_BUFFER, &first);
  return first;
}

MlirValue tw_copy_buffer(MlirOperation copy) { return tw_operand(copy, TW_OPERAND_BUFFER); }

MlirValue tw_moved_tile(MlirOperation op) {
  return mlirOperationGetNumResults(op) > 0 ? mlirOperationGetResult(op, 0) : tw_operand(op, TW_OPERAND_VALUE);
}

bool tw_is_shape_op(MlirOperation op) {
  return tw_op_is(op, TW_TILE_BROADCAST) || tw_op_is(op, TW_TILE_RESHAPE) || tw_op_is(op, TW_TILE_PERMUTE);
}

bool tw_is_form(MlirOperation op) {
  return tw_op_form(op) == TW_FORM_VIEW || tw_op_is(op, TW_ARITH_EXTF) || tw_op_is(op, TW_ARITH_EXTSI) ||
         tw_op_is(op, TW_ARITH_EXTUI);
}
