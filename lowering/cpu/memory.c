/* memory.c - tile.load, tile.store, tile.gather, tile.scatter, and the shape of arrays
 *
 * Every strip is masked by what is left of the array along each axis, so that nothing outside is touched. Elements
 * below f32 travel as integers of their size: LLVM has no masked loads of them. Strides other than one are gathers and
 * scatters. */
#include "lowering/cpu/cpu.h"

#include "tilewright/dialect.h"

#include <math.h>
#include <string.h>

/* --- raw strips ---------------------------------------------------------------------------------------------- */

static const MlirValue none = {NULL};

/* A single element under a condition. */
static MlirValue load_if(cpu_t *cx, MlirValue pointer, MlirType type, MlirValue mask, MlirValue passthru) {
  cpu_branch_t branch = cpu_branch(cx, mask);
  cpu_branch_else(cx, &branch, cpu_load(cx, pointer, type, (int)tw_bytes(type)));
  return cpu_branch_end(cx, &branch, passthru);
}

static void store_if(cpu_t *cx, MlirValue value, MlirValue pointer, MlirValue mask) {
  cpu_branch_t branch = cpu_branch(cx, mask);
  cpu_store(cx, value, pointer, (int)tw_bytes(mlirValueGetType(value)));
  cpu_branch_end(cx, &branch, none);
}

/* Lanes of a strip that may be touched: the first `left` of them (i32), in the array at `array`; or one under a
 * condition. */
typedef struct {
  int lanes;
  MlirValue left, mask, array;
} reach_t;

/* The mask is built where it is needed first. */
static MlirValue reach_mask(cpu_t *cx, const reach_t *reach) {
  if (reach->mask.ptr)
    return reach->mask;
  return cpu_cmpi(cx, CPU_SLT, cpu_iota(cx, cpu_int(cx, 32), reach->lanes), cpu_splat(cx, reach->left, reach->lanes));
}

/* Where a masked move goes: to the array itself, if it moves nothing. An address behind the array may have no memory,
 * which costs hundreds of cycles although no lane touches it. */
static MlirValue touched(cpu_t *cx, MlirValue pointer, const reach_t *reach) {
  MlirValue some = cpu_cmpi(cx, CPU_SGT, reach->left, cpu_i32_const(cx, 0));
  return cpu_select(cx, some, pointer, reach->array);
}

static MlirValue masked_load(cpu_t *cx, MlirValue pointer, MlirType type, const reach_t *reach, MlirValue passthru) {
  MlirType result = cpu_vector(type, reach->lanes);
  MlirValue operands[3] = {touched(cx, pointer, reach), reach_mask(cx, reach), cpu_splat(cx, passthru, reach->lanes)};
  return cpu_masked_read(cx, "llvm.intr.masked.load", type, operands, result);
}

void cpu_masked_store(cpu_t *cx, MlirValue value, MlirValue pointer, MlirValue mask) {
  MlirValue operands[3] = {value, pointer, mask};
  tw_attr_t align = cpu_align_attr(cx, (int)tw_bytes(cpu_element(value)));
  tw_builder_t at = cpu_here(cx);
  tw_build(&at, "llvm.intr.masked.store",
           (tw_op_parts_t){.num_operands = 3, .operands = operands, .num_attrs = 1, .attrs = &align});
}

/* A whole strip needs no mask. Before AVX-512 masked moves are slow (a branch a lane for elements below 32 bits);
 * with it masked stores still are slow on some machines (docs/design/measurements.md). */
static MlirValue is_whole(cpu_t *cx, const reach_t *reach) {
  return cpu_cmpi(cx, CPU_SGE, reach->left, cpu_i32_const(cx, reach->lanes));
}

static MlirValue load_contiguous(cpu_t *cx, MlirValue pointer, MlirType type, const reach_t *reach,
                                 MlirValue passthru) {
  if (reach->lanes == 1)
    return load_if(cx, pointer, type, reach->mask, passthru);
  MlirType result = cpu_vector(type, reach->lanes);
  cpu_branch_t branch = cpu_branch(cx, is_whole(cx, reach));
  cpu_branch_else(cx, &branch, cpu_load(cx, pointer, result, (int)tw_bytes(type)));
  return cpu_branch_end(cx, &branch, masked_load(cx, pointer, type, reach, passthru));
}

static void store_contiguous(cpu_t *cx, MlirValue value, MlirValue pointer, const reach_t *reach) {
  if (reach->lanes == 1) {
    store_if(cx, value, pointer, reach->mask);
    return;
  }
  cpu_branch_t branch = cpu_branch(cx, is_whole(cx, reach));
  cpu_store(cx, value, pointer, (int)tw_bytes(cpu_element(value)));
  cpu_branch_else(cx, &branch, none);
  cpu_masked_store(cx, value, touched(cx, pointer, reach), reach_mask(cx, reach));
  cpu_branch_end(cx, &branch, none);
}

/* --- elements in memory ---------------------------------------------------------------------------------------- */

static bool is_half_byte(MlirType element) { return tw_bytes(element) == 0; }

MlirType cpu_memory_type(cpu_t *cx, MlirType element) {
  if (tw_is_bool(element) || is_half_byte(element))
    return cpu_int(cx, 8);
  return cpu_is_narrow(element) ? cpu_int(cx, 8 * tw_bytes(element)) : element;
}

MlirValue cpu_from_memory(cpu_t *cx, MlirValue value, MlirType element) {
  if (tw_is_bool(element))
    return cpu_cmpi(cx, CPU_NE, value, cpu_int_const(cx, mlirValueGetType(value), 0));
  return cpu_is_narrow(element) ? cpu_widen_bits(cx, value, element) : value;
}

MlirValue cpu_to_memory(cpu_t *cx, MlirValue value, MlirType element) {
  if (tw_is_bool(element))
    return cpu_cast(cx, "arith.extui", value, cpu_int(cx, 8));
  return cpu_is_narrow(element) ? cpu_narrow_bits(cx, value, element) : value;
}

/* Offsets of 4-bit elements: the byte, and how far up in it. */
static void split_nibble(cpu_t *cx, MlirValue offset, MlirValue *byte, MlirValue *shift) {
  *byte = cpu_bin_i(cx, "arith.shrsi", offset, 1);
  MlirValue odd = cpu_cast(cx, "arith.trunci", cpu_bin_i(cx, "arith.andi", offset, 1), cpu_int(cx, 8));
  *shift = cpu_bin_i(cx, "arith.shli", odd, 2);
}

MlirValue cpu_load_nibbles(cpu_t *cx, MlirValue pointer, MlirValue offsets, MlirValue mask) {
  MlirValue byte, shift, bytes;
  split_nibble(cx, offsets, &byte, &shift);
  MlirType i8 = cpu_int(cx, 8);
  if (cpu_lanes_of(offsets) == 1)
    bytes = load_if(cx, cpu_address(cx, pointer, i8, (cpu_index_t){byte, 0, cx->depth}), i8, mask,
                    cpu_int_const(cx, i8, 0));
  else
    bytes = cpu_gather_at(cx, cpu_addresses(cx, pointer, i8, byte), i8, mask, none);
  return cpu_bin_i(cx, "arith.andi", cpu_bin(cx, "arith.shrui", bytes, shift), 15);
}

/* One lane after the other: neighbours share a byte. */
void cpu_store_nibbles(cpu_t *cx, MlirValue bits, MlirValue pointer, MlirValue offsets, MlirValue mask) {
  MlirType i8 = cpu_int(cx, 8);
  for (int lane = 0; lane < cpu_lanes_of(offsets); lane++) {
    MlirValue byte, shift;
    split_nibble(cx, cpu_extract(cx, offsets, lane), &byte, &shift);
    MlirValue address = cpu_address(cx, pointer, i8, (cpu_index_t){byte, 0, cx->depth});
    MlirValue in_bounds = cpu_extract(cx, mask, lane);
    MlirValue old = load_if(cx, address, i8, in_bounds, cpu_int_const(cx, i8, 0));
    MlirValue hole = cpu_bin(cx, "arith.shli", cpu_int_const(cx, i8, 15), shift);
    old = cpu_bin(cx, "arith.andi", old, cpu_bin_i(cx, "arith.xori", hole, -1));
    MlirValue fresh = cpu_bin(cx, "arith.shli", cpu_extract(cx, bits, lane), shift);
    store_if(cx, cpu_bin(cx, "arith.ori", old, fresh), address, in_bounds);
  }
}

/* --- arrays ---------------------------------------------------------------------------------------------------- */

const cpu_array_t *cpu_array_of(cpu_t *cx, MlirOperation op, MlirValue array) {
  const MlirValue *known = tw_map_get(&cx->arrays, array.ptr, NULL);
  if (!known)
    cpu_error(cx, op, "needs an array that is an argument of the kernel");
  return known ? known->ptr : NULL;
}

static void place_dim(cpu_t *cx, MlirOperation op) {
  const cpu_array_t *array = cpu_array_of(cx, op, mlirOperationGetOperand(op, 0));
  if (array)
    cpu_set_scalar(cx, mlirOperationGetResult(op, 0),
                   cpu_cast(cx, "arith.trunci", array->extent[tw_attr_int(op, "axis", 0)], cpu_int(cx, 32)));
}

static void place_stride(cpu_t *cx, MlirOperation op) {
  const cpu_array_t *array = cpu_array_of(cx, op, mlirOperationGetOperand(op, 0));
  if (array)
    cpu_set_scalar(cx, mlirOperationGetResult(op, 0), array->stride[tw_attr_int(op, "axis", 0)]);
}

/* --- load and store: a tile at a tile index --------------------------------------------------------------------- */

/* Elements of the tile along an axis that lie in the array: 0 to the tile's extent, i32; none before the array. */
static MlirValue limit_of(cpu_t *cx, MlirValue extent, MlirValue first, int64_t tile_extent) {
  MlirValue zero = cpu_i64_const(cx, 0);
  MlirValue left = cpu_bin(cx, "arith.subi", extent, first);
  left = cpu_bin_i(cx, "arith.minsi", cpu_bin(cx, "arith.maxsi", left, zero), tile_extent);
  left = cpu_select(cx, cpu_cmpi(cx, CPU_SLT, first, zero), zero, left);
  return cpu_cast(cx, "arith.trunci", left, cpu_int(cx, 32));
}

cpu_access_t *cpu_open_access(cpu_t *cx, MlirOperation op, MlirType tile, intptr_t num_index) {
  MlirValue source = mlirOperationGetOperand(op, 0);
  const cpu_array_t *array = cpu_array_of(cx, op, source);
  cpu_access_t *access = cpu_alloc(cx, sizeof *access);
  if (!array)
    return access;
  *access = (cpu_access_t){.array = source, .pointer = array->pointer, .depth = cx->depth, .element = tw_element(tile)};
  int64_t order[TW_MAX_RANK];
  intptr_t ordered = tw_attr_ints(op, "order", order, TW_MAX_RANK);
  cpu_index_t origin = cpu_index(0);
  for (intptr_t d = 0; d < num_index; d++) {
    intptr_t axis = ordered ? order[d] : d;
    int64_t extent = tw_is_tile(tile) ? tw_extent(tile, d) : 1;
    MlirValue index = cpu_int_to_i64(cx, cpu_operand(cx, op, d + 1));
    MlirValue first = cpu_bin_i(cx, "arith.muli", index, extent);
    access->stride[d] = array->stride[axis];
    access->unit[d] = array->unit[axis];
    access->limit[d] = tw_has_attr(op, "tile.in_bounds") ? cpu_i32_const(cx, extent)
                                                         : limit_of(cx, array->extent[axis], first, extent);
    cpu_index_t at = {.base = first, .depth = cx->depth};
    origin = cpu_index_add(cx, origin, cpu_index_times(cx, at, array->stride[axis], cx->depth));
  }
  access->origin = cpu_index_value(cx, origin);
  return access;
}

static MlirValue index_i32(cpu_t *cx, cpu_index_t index) {
  return cpu_cast(cx, "arith.trunci", cpu_index_value(cx, index), cpu_int(cx, 32));
}

static int index_depth(const cpu_access_t *access, cpu_index_t index) {
  return index.base.ptr && index.depth > access->depth ? index.depth : access->depth;
}

/* The mask of the lanes that lie in the array. What depends on outer axes only is computed in their loops. */
static reach_t strip_reach(cpu_t *cx, const cpu_access_t *access, const cpu_point_t *point) {
  MlirValue inside = none;
  bool lanes = point->lanes > 1;
  int outer = access->depth;
  for (int d = 0; d < point->rank; d++) {
    if (d == point->axis && lanes)
      continue;
    int depth = index_depth(access, point->at[d]);
    outer = depth > outer ? depth : outer;
    MlirBlock saved = cpu_enter_depth(cx, depth);
    MlirValue below = cpu_cmpi(cx, CPU_SLT, index_i32(cx, point->at[d]), access->limit[d]);
    cpu_leave_depth(cx, saved);
    saved = cpu_enter_depth(cx, outer);
    inside = inside.ptr ? cpu_bin(cx, "arith.andi", inside, below) : below;
    cpu_leave_depth(cx, saved);
  }
  if (!lanes)
    return (reach_t){.lanes = 1, .mask = inside.ptr ? inside : cpu_int_const(cx, cpu_int(cx, 1), 1)};
  MlirValue limit = access->limit[point->axis];
  if (inside.ptr) {
    MlirBlock saved = cpu_enter_depth(cx, outer);
    limit = cpu_select(cx, inside, limit, cpu_i32_const(cx, 0));
    cpu_leave_depth(cx, saved);
  }
  MlirValue left = cpu_bin(cx, "arith.subi", limit, index_i32(cx, point->at[point->axis]));
  return (reach_t){.lanes = point->lanes, .left = left, .array = access->pointer};
}

/* Elements from the array's pointer to the strip's first one. */
static cpu_index_t strip_offset(cpu_t *cx, const cpu_access_t *access, const cpu_point_t *point) {
  cpu_index_t offset = {.base = access->origin, .depth = access->depth};
  for (int d = 0; d < point->rank; d++)
    offset = cpu_index_add(cx, offset, cpu_index_times(cx, point->at[d], access->stride[d], access->depth));
  return offset;
}

static MlirValue strip_offsets(cpu_t *cx, const cpu_access_t *access, const cpu_point_t *point) {
  MlirValue first = cpu_index_value(cx, strip_offset(cx, access, point));
  if (point->lanes == 1)
    return first;
  return cpu_bin(cx, "arith.addi", cpu_splat(cx, first, point->lanes),
                 cpu_lane_offsets(cx, access->stride[point->axis], point->lanes));
}

static bool contiguous(const cpu_access_t *access, const cpu_point_t *point) {
  return point->lanes == 1 || access->unit[point->axis];
}

/* What the padding is in memory. */
static MlirValue padding_of(cpu_t *cx, MlirOperation op, MlirType element) {
  static const double values[] = {0, 0, -0.0, NAN, INFINITY, -INFINITY};
  double value = values[tw_attr_int(op, "padding", TW_PADDING_UNDETERMINED)];
  MlirType compute = cpu_compute_type(cx, element);
  if (!mlirTypeIsAFloat(element))
    return cpu_int_const(cx, cpu_memory_type(cx, element), 0);
  return cpu_to_memory(cx, cpu_round(cx, cpu_float_const(cx, compute, value), element), element);
}

static MlirValue load_strip(cpu_t *cx, MlirOperation op, const cpu_access_t *access, const cpu_point_t *point) {
  MlirType element = access->element, type = cpu_memory_type(cx, element);
  reach_t reach = strip_reach(cx, access, point);
  MlirValue padding = padding_of(cx, op, element), value;
  if (is_half_byte(element)) {
    MlirValue mask = reach_mask(cx, &reach);
    value = cpu_load_nibbles(cx, access->pointer, strip_offsets(cx, access, point), mask);
    value = cpu_select(cx, mask, value, padding);
  } else {
    MlirValue address = cpu_address(cx, access->pointer, type, strip_offset(cx, access, point));
    value = contiguous(access, point) ? load_contiguous(cx, address, type, &reach, padding)
                                      : cpu_gather(cx, address, type, access->stride[point->axis], point->lanes,
                                                   reach_mask(cx, &reach), padding);
  }
  return cpu_from_memory(cx, value, element);
}

static void store_strip(cpu_t *cx, MlirValue value, const cpu_access_t *access, const cpu_point_t *point) {
  MlirType element = access->element, type = cpu_memory_type(cx, element);
  reach_t reach = strip_reach(cx, access, point);
  value = cpu_to_memory(cx, cpu_splat(cx, value, point->lanes), element);
  if (is_half_byte(element)) {
    cpu_store_nibbles(cx, value, access->pointer, strip_offsets(cx, access, point), reach_mask(cx, &reach));
    return;
  }
  MlirValue address = cpu_address(cx, access->pointer, type, strip_offset(cx, access, point));
  if (contiguous(access, point))
    store_contiguous(cx, value, address, &reach);
  else
    cpu_scatter(cx, value, address, access->stride[point->axis], reach_mask(cx, &reach));
}

/* The point of a single element of an array of this rank, for tiles of rank zero. */
static cpu_point_t scalar_point(intptr_t rank) {
  cpu_point_t point = {.rank = (int)rank, .axis = -1, .lanes = 1};
  return point;
}

static void place_load(cpu_t *cx, MlirOperation op) {
  MlirValue result = mlirOperationGetResult(op, 0);
  intptr_t num_index = mlirOperationGetNumOperands(op) - 1;
  cpu_slot_t *slot = cpu_slot(cx, result);
  slot->access = cpu_open_access(cx, op, mlirValueGetType(result), num_index);
  if (tw_is_tile(mlirValueGetType(result)) || cx->failed)
    return;
  cpu_point_t point = scalar_point(num_index);
  cpu_set_scalar(cx, result, load_strip(cx, op, slot->access, &point));
}

static MlirValue eval_load(cpu_t *cx, MlirOperation op, const cpu_point_t *point) {
  return load_strip(cx, op, cpu_slot(cx, mlirOperationGetResult(op, 0))->access, point);
}

/* The axis along which the array is contiguous, if the tile is long enough there; else the tile's last. */
static int store_axis(const cpu_access_t *access, MlirType tile) {
  for (int d = (int)tw_rank(tile) - 1; d >= 0; d--)
    if (access->unit[d] && tw_extent(tile, d) >= 4)
      return d;
  return cpu_lane_axis(tile);
}

static void place_store(cpu_t *cx, MlirOperation op) {
  MlirValue value = mlirOperationGetOperand(op, mlirOperationGetNumOperands(op) - 1);
  MlirType type = mlirValueGetType(value);
  intptr_t num_index = mlirOperationGetNumOperands(op) - 2;
  cpu_access_t *access = cpu_open_access(cx, op, type, num_index);
  if (cx->failed)
    return;
  if (!tw_is_tile(type)) {
    cpu_before_write(cx, op, type, 0, NULL);
    cpu_point_t point = scalar_point(num_index);
    store_strip(cx, cpu_scalar(cx, value), access, &point);
    return;
  }
  cpu_before_write(cx, op, type, 1, &value);
  cpu_plan(cx, type, 1, &value, op);
  cpu_nest_t nest;
  cpu_nest_set(cx, &nest, type, store_axis(access, type));
  cpu_nest_begin(cx, &nest);
  MlirValue strip = cpu_eval(cx, value, &nest.point);
  if (!cx->failed)
    store_strip(cx, strip, access, &nest.point);
  cpu_nest_end(cx, &nest);
  cpu_planned(cx);
}

/* --- gather and scatter: elements at tiles of indices -------------------------------------------------------- */

int cpu_indices_of(cpu_t *cx, MlirOperation op, cpu_element_t element, const cpu_point_t *point, MlirValue *indices) {
  intptr_t first, num = tw_operands(op, TW_OPERAND_INDICES, &first);
  for (intptr_t d = 0; d < num; d++)
    indices[d] = element(cx, mlirOperationGetOperand(op, first + d), point);
  return (int)num;
}

MlirValue cpu_mask_of(cpu_t *cx, MlirOperation op, cpu_element_t element, const cpu_point_t *point) {
  MlirValue mask = tw_operand(op, TW_OPERAND_MASK);
  return mlirValueIsNull(mask) ? cpu_int_const(cx, cpu_int(cx, 1), 1) : element(cx, mask, point);
}

MlirValue cpu_lanes_at(cpu_t *cx, MlirOperation op, int num, MlirValue *indices, MlirValue *mask) {
  const cpu_array_t *array = cpu_array_of(cx, op, mlirOperationGetOperand(op, 0));
  MlirValue offset = cpu_i64_const(cx, 0);
  bool check = tw_has_attr(op, "check_bounds");
  for (int d = 0; d < num; d++) {
    MlirValue index = cpu_int_to_i64(cx, indices[d]);
    if (check) {
      MlirValue inside = cpu_cmpi(cx, CPU_ULT, index, array->extent[d]); /* a negative index is a large one */
      *mask = cpu_bin(cx, "arith.andi", *mask, inside);
    }
    offset = cpu_bin(cx, "arith.addi", offset, cpu_bin(cx, "arith.muli", index, array->stride[d]));
  }
  return offset;
}

static MlirValue gather_lanes(cpu_t *cx, MlirOperation op, int num, MlirValue *indices, MlirValue mask,
                              MlirValue padding) {
  MlirValue source = mlirOperationGetOperand(op, 0);
  const cpu_array_t *array = cpu_array_of(cx, op, source);
  if (!array)
    return padding;
  MlirType element = tw_element(mlirValueGetType(source)), type = cpu_memory_type(cx, element);
  MlirValue offset = cpu_lanes_at(cx, op, num, indices, &mask), value;
  MlirValue all[3] = {offset, mask, padding};
  cpu_unify(cx, 3, all);
  if (is_half_byte(element)) {
    value = cpu_from_memory(cx, cpu_load_nibbles(cx, array->pointer, all[0], all[1]), element);
    return cpu_select(cx, all[1], value, all[2]);
  }
  MlirValue passthru = cpu_to_memory(cx, all[2], element);
  if (cpu_lanes_of(all[0]) == 1)
    value =
        load_if(cx, cpu_address(cx, array->pointer, type, (cpu_index_t){all[0], 0, cx->depth}), type, all[1], passthru);
  else
    value = cpu_gather_at(cx, cpu_addresses(cx, array->pointer, type, all[0]), type, all[1], passthru);
  return cpu_from_memory(cx, value, element);
}

static MlirValue gather_with(cpu_t *cx, MlirOperation op, cpu_element_t operand, const cpu_point_t *point) {
  MlirValue indices[TW_MAX_RANK], given = tw_operand(op, TW_OPERAND_PADDING);
  int num = cpu_indices_of(cx, op, operand, point, indices);
  MlirType element = tw_result_element(op);
  MlirValue mask = cpu_mask_of(cx, op, operand, point);
  MlirValue padding =
      mlirValueIsNull(given) ? cpu_zero_of(cx, cpu_compute_type(cx, element)) : operand(cx, given, point);
  return cx->failed ? padding : gather_lanes(cx, op, num, indices, mask, padding);
}

MlirValue cpu_scalar_at(cpu_t *cx, MlirValue value, const cpu_point_t *point) {
  (void)point;
  return cpu_scalar(cx, value);
}

static void place_gather(cpu_t *cx, MlirOperation op) {
  MlirValue result = mlirOperationGetResult(op, 0);
  if (!tw_is_tile(mlirValueGetType(result)))
    cpu_set_scalar(cx, result, gather_with(cx, op, cpu_scalar_at, NULL));
}

static MlirValue eval_gather(cpu_t *cx, MlirOperation op, const cpu_point_t *point) {
  return gather_with(cx, op, cpu_eval, point);
}

static void scatter_lanes(cpu_t *cx, MlirOperation op, int num, MlirValue *indices, MlirValue value, MlirValue mask,
                          int lanes) {
  MlirValue target = mlirOperationGetOperand(op, 0);
  const cpu_array_t *array = cpu_array_of(cx, op, target);
  if (!array)
    return;
  MlirType element = tw_element(mlirValueGetType(target)), type = cpu_memory_type(cx, element);
  MlirValue offset = cpu_lanes_at(cx, op, num, indices, &mask);
  offset = cpu_splat(cx, offset, lanes);
  mask = cpu_splat(cx, mask, lanes);
  value = cpu_to_memory(cx, cpu_splat(cx, value, lanes), element);
  if (is_half_byte(element))
    cpu_store_nibbles(cx, value, array->pointer, offset, mask);
  else if (lanes == 1)
    store_if(cx, value, cpu_address(cx, array->pointer, type, (cpu_index_t){offset, 0, cx->depth}), mask);
  else
    cpu_scatter_at(cx, value, cpu_addresses(cx, array->pointer, type, offset), mask);
}

static void place_scatter(cpu_t *cx, MlirOperation op) {
  MlirValue value = tw_operand(op, TW_OPERAND_VALUE), tiles[TW_MAX_RANK + 2], indices[TW_MAX_RANK];
  MlirType space = mlirValueGetType(value);
  int num_tiles = 0;
  for (intptr_t i = 1; i < mlirOperationGetNumOperands(op); i++)
    if (tw_is_tile(mlirValueGetType(mlirOperationGetOperand(op, i)))) {
      tiles[num_tiles++] = mlirOperationGetOperand(op, i);
      space = mlirValueGetType(tiles[num_tiles - 1]);
    }
  cpu_before_write(cx, op, space, num_tiles, tiles);
  cpu_plan(cx, space, num_tiles, tiles, op);
  cpu_nest_t nest;
  cpu_nest_set(cx, &nest, space, cpu_lane_axis(space));
  cpu_nest_begin(cx, &nest);
  int num = cpu_indices_of(cx, op, cpu_eval, &nest.point, indices);
  MlirValue strip = cpu_eval(cx, value, &nest.point), mask = cpu_mask_of(cx, op, cpu_eval, &nest.point);
  if (!cx->failed)
    scatter_lanes(cx, op, num, indices, strip, mask, nest.point.lanes);
  cpu_nest_end(cx, &nest);
  cpu_planned(cx);
}

CPU_RULE(TW_TILE_DIM, CPU_EFFECT, 0, NULL, NULL, place_dim)
CPU_RULE(TW_TILE_STRIDE, CPU_EFFECT, 0, NULL, NULL, place_stride)
CPU_RULE_IN_BLOCKS(TW_TILE_LOAD, cpu_load_is_swapped, cpu_swapped_load_into, CPU_LEAF, 2, NULL, eval_load, place_load)
CPU_RULE(TW_TILE_STORE, CPU_EFFECT, 0, NULL, NULL, place_store)
CPU_RULE(TW_TILE_GATHER, CPU_ELEMENTWISE, 12, NULL, eval_gather, place_gather)
CPU_RULE(TW_TILE_SCATTER, CPU_EFFECT, 0, NULL, NULL, place_scatter)
