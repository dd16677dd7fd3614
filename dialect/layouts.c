/* layouts.c - from the types of tiles and buffers to linear layouts and back. See layouts.h. */
#include "dialect/layouts.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "tilewright/dialect.h"

MlirAttribute tw_layout_attribute(MlirContext context, const tw_layout_t *layout) {
  int32_t counts[TW_NUM_INPUTS], coords[TW_NUM_INPUTS * TW_LAYOUT_MAX_BITS * TW_LAYOUT_MAX_RANK];
  size_t n = 0;
  for (int g = 0; g < TW_NUM_INPUTS; g++) {
    counts[g] = layout->bits[g];
    for (int i = 0; i < layout->bits[g]; i++)
      for (int d = 0; d < layout->rank; d++)
        coords[n++] = (int32_t)tw_layout_coord(layout, layout->basis[g][i], d);
  }
  return tw_linear_attr_get(context, (unsigned)layout->rank, counts, coords);
}

static bool read_layout(MlirAttribute attribute, int rank, const int64_t *shape, tw_layout_t *out) {
  unsigned stored_rank;
  const int32_t *counts, *coords;
  if (!tw_attribute_is_linear(attribute))
    return false;
  tw_linear_attr_read(attribute, &stored_rank, &counts, &coords);
  *out = tw_layout_empty(rank, shape);
  for (int g = 0; g < TW_NUM_INPUTS; g++)
    for (int32_t i = 0; i < counts[g]; i++, coords += rank) {
      uint32_t coord[TW_LAYOUT_MAX_RANK];
      for (int d = 0; d < rank; d++)
        coord[d] = (uint32_t)coords[d];
      tw_layout_push(out, (tw_input_t)g, tw_layout_flat(out, coord));
    }
  return true;
}

int tw_tile_shape(MlirType tile, int64_t shape[TW_LAYOUT_MAX_RANK]) {
  int rank = (int)mlirShapedTypeGetRank(tile);
  for (int d = 0; d < rank && d < TW_LAYOUT_MAX_RANK; d++)
    shape[d] = mlirShapedTypeGetDimSize(tile, d);
  return rank;
}

bool tw_layout_of_type(MlirType type, tw_layout_t *out) {
  int64_t shape[TW_LAYOUT_MAX_RANK];
  if (tw_type_is_buffer(type)) {
    int rank = (int)tw_buffer_type_rank(type) - 1;
    for (int d = 0; d < rank && d < TW_LAYOUT_MAX_RANK; d++)
      shape[d] = tw_buffer_type_extent(type, d + 1);
    return rank <= TW_LAYOUT_MAX_RANK && read_layout(tw_buffer_type_layout(type), rank, shape, out);
  }
  if (!mlirTypeIsARankedTensor(type) || mlirShapedTypeGetRank(type) > TW_LAYOUT_MAX_RANK)
    return false;
  return read_layout(mlirRankedTensorTypeGetEncoding(type), tw_tile_shape(type, shape), shape, out);
}

bool tw_layouts_of_operands(MlirOperation op, int count, tw_layout_t *out) {
  for (int i = 0; i < count; i++)
    if (!tw_layout_of_type(mlirValueGetType(mlirOperationGetOperand(op, i)), &out[i]))
      return false;
  return true;
}

MlirType tw_type_with_layout(MlirType tile, const tw_layout_t *layout) {
  int64_t shape[TW_LAYOUT_MAX_RANK];
  int rank = tw_tile_shape(tile, shape);
  MlirAttribute encoding = layout ? tw_layout_attribute(mlirTypeGetContext(tile), layout) : mlirAttributeGetNull();
  return mlirRankedTensorTypeGet(rank, shape, mlirShapedTypeGetElementType(tile), encoding);
}

int tw_memory_bits(MlirType element) {
  if (mlirTypeIsAInteger(element))
    return mlirIntegerTypeGetWidth(element) == 1 ? 8 : (int)mlirIntegerTypeGetWidth(element);
  if (mlirTypeIsATF32(element))
    return 32;
  return (int)mlirFloatTypeGetWidth(element);
}

int64_t tw_stage_elements(MlirType buffer) {
  int64_t count = 1;
  for (intptr_t d = 1; d < tw_buffer_type_rank(buffer); d++)
    count *= tw_buffer_type_extent(buffer, d);
  return count;
}

int64_t tw_stage_bytes(MlirType buffer) {
  return tw_stage_elements(buffer) * tw_memory_bits(tw_buffer_type_element(buffer)) / 8;
}

int64_t tw_buffer_bytes(MlirType buffer) {
  int64_t count = tw_buffer_type_extent(buffer, 0) * tw_stage_elements(buffer);
  return count * tw_memory_bits(tw_buffer_type_element(buffer)) / 8;
}

int tw_register_count(MlirType type) {
  tw_layout_t layout;
  if (!mlirTypeIsARankedTensor(type))
    return 1; /* scalars; buffers are a pointer */
  return tw_layout_of_type(type, &layout) ? tw_layout_count(&layout, TW_REGISTER) : -1;
}

int64_t tw_register_words(MlirType type) {
  bool tile = mlirTypeIsARankedTensor(type);
  return tile ? (int64_t)tw_register_count(type) * tw_memory_bits(mlirShapedTypeGetElementType(type)) / 32 : 0;
}
