/* legalize_shape.c - parts of tiles, and bits of elements, by selects, shifts and ops that move elements
 *
 *   before   %c = tile.cat %x, %y axis 0 : tensor<4xf32>, tensor<4xf32>
 *            %b = tile.pack_to_bytes %i : tensor<2xi32> -> tensor<8xui8>
 *   after    %c = arith.select %odd, %yy, %xx : tensor<1x2x4xi1>, tensor<1x2x4xf32>    reshaped to 8; %odd is an iota
 *            %b = arith.trunci (arith.shrui %ii, %s) : tensor<2x4xi32> to tensor<2x4xi8>     %s is 0, 8, 16, 24
 *
 * Where the added axis lies in the registers of a thread, its positions are constants, and nothing of this is left. */
#include "lowering/common/legalize.h"

static MlirType int_type(const legalize_t *l, unsigned bits) { return mlirIntegerTypeGet(l->at.context, bits); }

static MlirType unsigned_type(const legalize_t *l, unsigned bits) {
  return mlirIntegerTypeUnsignedGet(l->at.context, bits);
}

static MlirValue reshape(const legalize_t *l, MlirValue x, intptr_t rank, const int64_t *shape) {
  return tw_reshape(&l->at, tw_tile_type(tw_element(mlirValueGetType(x)), rank, shape), x);
}

static MlirValue repeat(const legalize_t *l, MlirValue x, intptr_t rank, const int64_t *shape) {
  return tw_broadcast(&l->at, tw_tile_type(tw_element(mlirValueGetType(x)), rank, shape), x);
}

/* 0, 1, 2, ... along axis `axis` of a shape. */
static MlirValue positions(const legalize_t *l, intptr_t rank, const int64_t *shape, intptr_t axis) {
  int64_t narrow[TW_MAX_RANK];
  for (intptr_t d = 0; d < rank; d++)
    narrow[d] = d == axis ? shape[d] : 1;
  MlirValue iota = tw_op1(&l->at, "tile.iota", tw_tile_type(int_type(l, 32), 1, &shape[axis]), 0, NULL);
  return reshape(l, iota, rank, narrow);
}

static MlirValue constant_like(const legalize_t *l, MlirValue x, int64_t value) {
  return tw_const_int(&l->at, mlirValueGetType(x), value);
}

static MlirValue binary(const legalize_t *l, const char *name, MlirValue x, MlirValue y) {
  return tw_binary(&l->at, name, mlirValueGetType(x), x, y);
}

static MlirValue by_constant(const legalize_t *l, const char *name, MlirValue x, int64_t y) {
  return binary(l, name, x, constant_like(l, x, y));
}

/* --- Parts ------------------------------------------------------------------------------------------- */

/* A tile as (what lies in front of an axis, 1, the axis and what lies behind), the 1 repeated. */
static MlirValue repeat_before(const legalize_t *l, MlirValue x, intptr_t axis, int64_t times) {
  MlirType type = mlirValueGetType(x);
  int64_t front = 1;
  for (intptr_t d = 0; d < axis; d++)
    front *= tw_extent(type, d);
  const int64_t one[] = {front, 1, tw_count(type) / front}, many[] = {front, times, tw_count(type) / front};
  return repeat(l, reshape(l, x, 3, one), 3, many);
}

MlirValue tw_legal_cat(const legalize_t *l) {
  int64_t shape[TW_MAX_RANK];
  intptr_t axis = tw_attr_int(l->op, "axis", 0), rank = tw_rank(l->result);
  MlirValue x = repeat_before(l, mlirOperationGetOperand(l->op, 0), axis, 2);
  MlirValue y = repeat_before(l, mlirOperationGetOperand(l->op, 1), axis, 2);
  for (intptr_t d = 0; d < 3; d++)
    shape[d] = tw_extent(mlirValueGetType(x), d);
  MlirValue which = positions(l, 3, shape, 1);
  MlirValue second = tw_legal_compare(l, TW_CMP_NE, which, constant_like(l, which, 0));
  MlirValue both = tw_legal_select(l, repeat(l, second, 3, shape), y, x);
  for (intptr_t d = 0; d < rank; d++)
    shape[d] = tw_extent(l->result, d);
  return reshape(l, both, rank, shape);
}

/* Where the part along one axis is the one at the index, in the shape of the whole. */
static MlirValue is_part(const legalize_t *l, intptr_t rank, const int64_t *shape, intptr_t axis, int64_t part) {
  MlirValue index = tw_legal_cast(l, mlirOperationGetOperand(l->op, 2 + axis), TW_i32);
  MlirValue at = by_constant(l, "arith.divui", positions(l, rank, shape, axis), part);
  MlirValue there = tw_legal_compare(l, TW_CMP_EQ, at, tw_legal_broadcast(l, index, mlirValueGetType(at)));
  return repeat(l, there, rank, shape);
}

MlirValue tw_legal_insert(const legalize_t *l) {
  MlirValue value = mlirOperationGetOperand(l->op, 1), mask = {NULL};
  MlirType part = mlirValueGetType(value);
  intptr_t rank = tw_rank(l->result);
  int64_t shape[TW_MAX_RANK], grown[TW_MAX_RANK];
  for (intptr_t d = 0; d < rank; d++) {
    shape[d] = tw_extent(l->result, d);
    grown[d] = tw_extent(part, d);
  }
  for (intptr_t d = 0; d < rank; d++) {
    if (grown[d] == shape[d])
      continue;
    value = repeat_before(l, value, d, shape[d] / grown[d]);
    grown[d] = shape[d];
    value = reshape(l, value, rank, grown);
    MlirValue there = is_part(l, rank, shape, d, tw_extent(part, d));
    mask = mask.ptr ? binary(l, "arith.andi", mask, there) : there;
  }
  return mask.ptr ? tw_legal_select(l, mask, value, mlirOperationGetOperand(l->op, 0)) : value;
}

/* --- Bits -------------------------------------------------------------------------------------------- */

/* Of an element in memory. */
static unsigned bits_of(MlirType type) { return mlirTypeIsATF32(tw_element(type)) ? 32 : tw_bits(type); }

static MlirValue convert(const legalize_t *l, const char *name, MlirValue x, MlirType element) {
  return tw_unary(&l->at, name, tw_with_element(mlirValueGetType(x), element), x);
}

enum { TF32_DROPPED = 13, F4_SHIFT = 22, F4_BIAS = 252 /* of the code 2, which is 1.0, in the upper bits of an f32 */ };

/* The code of 4 bits of a float4_e2m1fn as an i32: exponent and one bit of mantissa stand side by side in an f32, too,
 * but for 0.5, which is subnormal. */
static MlirValue code_of_f4(const legalize_t *l, MlirValue x) {
  MlirValue bits = convert(l, "arith.bitcast", tw_legal_cast(l, x, TW_f32), int_type(l, 32));
  MlirValue size = by_constant(l, "arith.andi", bits, 0x7FFFFFFF);
  MlirValue code = by_constant(l, "arith.subi", by_constant(l, "arith.shrui", size, F4_SHIFT), F4_BIAS);
  MlirValue some = tw_legal_cast(l, tw_legal_compare(l, TW_CMP_NE, size, constant_like(l, size, 0)), TW_i32);
  MlirValue sign = by_constant(l, "arith.shli", by_constant(l, "arith.shrui", bits, 31), 3);
  return binary(l, "arith.ori", binary(l, "arith.maxsi", code, some), sign);
}

static MlirValue f4_of_code(const legalize_t *l, MlirValue code) {
  MlirValue size = by_constant(l, "arith.andi", code, 7), half = constant_like(l, code, 0x3F000000);
  MlirValue bits = by_constant(l, "arith.shli", by_constant(l, "arith.addi", size, F4_BIAS), F4_SHIFT);
  bits = tw_legal_select(l, tw_legal_compare(l, TW_CMP_EQ, size, constant_like(l, size, 1)), half, bits);
  bits = tw_legal_select(l, tw_legal_compare(l, TW_CMP_EQ, size, constant_like(l, size, 0)), size, bits);
  MlirValue sign = by_constant(l, "arith.shli", by_constant(l, "arith.shrui", code, 3), 31);
  MlirValue value = convert(l, "arith.bitcast", binary(l, "arith.ori", bits, sign), mlirF32TypeGet(l->at.context));
  return tw_legal_cast(l, value, TW_f4e2m1);
}

/* The bits of elements of 8 bits or more, as unsigned integers. */
static MlirValue to_bits(const legalize_t *l, MlirValue x) {
  MlirType type = mlirValueGetType(x), to = unsigned_type(l, bits_of(type));
  if (mlirTypeIsATF32(tw_element(type)))
    x = tw_legal_cast(l, x, TW_f32);
  return tw_is_float(type) ? convert(l, "arith.bitcast", x, to) : tw_legal_cast(l, x, tw_elem_of(to));
}

static MlirValue from_bits(const legalize_t *l, MlirValue x, MlirType element) {
  if (mlirTypeIsATF32(element)) {
    x = by_constant(l, "arith.andi", x, -(INT64_C(1) << TF32_DROPPED));
    x = convert(l, "arith.bitcast", x, mlirF32TypeGet(l->at.context));
  }
  return mlirTypeIsAInteger(element) || mlirTypeIsATF32(element) ? tw_legal_cast(l, x, tw_elem_of(element))
                                                                 : convert(l, "arith.bitcast", x, element);
}

MlirValue tw_legal_bitcast(const legalize_t *l) {
  MlirValue x = mlirOperationGetOperand(l->op, 0);
  bool same = mlirTypeEqual(mlirValueGetType(x), l->result);
  return same ? x : from_bits(l, to_bits(l, x), tw_element(l->result));
}

/* --- Bytes ------------------------------------------------------------------------------------------- */

/* For `step` = 8: 0, 8, 16, ... along the last axis of a tile. */
static MlirValue shifts(const legalize_t *l, MlirValue tile, int step) {
  MlirType type = mlirValueGetType(tile);
  const int64_t shape[] = {tw_extent(type, 0), tw_extent(type, 1)};
  MlirValue at = by_constant(l, "arith.muli", positions(l, 2, shape, 1), step);
  return repeat(l, tw_legal_cast(l, at, tw_elem_of(type)), 2, shape);
}

/* Each element, `count` times side by side, shifted down by 0, `step`, ... */
static MlirValue take_apart(const legalize_t *l, MlirValue x, int64_t count, int step) {
  int64_t num = tw_count(mlirValueGetType(x));
  const int64_t one[] = {num, 1}, many[] = {num, count};
  MlirValue wide = repeat(l, reshape(l, x, 2, one), 2, many);
  return binary(l, "arith.shrui", wide, shifts(l, wide, step));
}

/* The sums of `count` neighbours that are shifted up by 0, `step`, ..., which have no bit in common. */
static MlirValue put_together(const legalize_t *l, MlirValue x, int64_t count, int step) {
  int64_t num = tw_count(mlirValueGetType(x)) / count;
  const int64_t pairs[] = {num, count};
  MlirValue tile = reshape(l, x, 2, pairs);
  tile = binary(l, "arith.shli", tile, shifts(l, tile, step));
  MlirType i32 = int_type(l, 32), type = tw_tile_type(tw_element(mlirValueGetType(tile)), 1, &num);
  tw_attr_t attrs[] = {{"kind", mlirIntegerAttrGet(i32, TW_REDUCE_ADD)}, {"axis", mlirIntegerAttrGet(i32, 1)}};
  return tw_op1_attrs(&l->at, "tile.reduce", type, 1, &tile, 2, attrs);
}

MlirValue tw_legal_pack(const legalize_t *l) {
  MlirValue x = mlirOperationGetOperand(l->op, 0);
  unsigned bits = bits_of(mlirValueGetType(x));
  int64_t num = tw_count(mlirValueGetType(x)), bytes = tw_count(l->result);
  x = reshape(l, x, 1, &num);
  if (bits == 4)
    return tw_legal_cast(l, put_together(l, tw_legal_cast(l, code_of_f4(l, x), TW_u32), 2, 4), TW_u8);
  x = to_bits(l, x);
  return bits == 8 ? x : reshape(l, tw_legal_cast(l, take_apart(l, x, bits / 8, 8), TW_u8), 1, &bytes);
}

MlirValue tw_legal_unpack(const legalize_t *l) {
  MlirValue x = mlirOperationGetOperand(l->op, 0);
  unsigned bits = bits_of(l->result);
  int64_t num = tw_count(l->result);
  if (bits == 4) {
    MlirValue codes = take_apart(l, tw_legal_cast(l, x, TW_u32), 2, 4);
    codes = tw_legal_cast(l, by_constant(l, "arith.andi", codes, 15), TW_i32);
    return reshape(l, f4_of_code(l, codes), 1, &num);
  }
  if (bits > 8)
    x = put_together(l, tw_legal_cast(l, x, tw_elem_of(unsigned_type(l, bits))), bits / 8, 8);
  return from_bits(l, x, tw_element(l->result));
}
