/* tma.c - which copies the tensor memory accelerator can do, and how. See machine/copy_engine.h. */
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/machine/copy_engine.h"

#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/machine/target.h"
#include "tilewright/dialect.h"

#include <string.h>

enum { CHUNK_BYTES = 16, CHUNK_BIT = 4, LINE_BIT = 7, LINES = 8, BOX_ALIGNMENT = 128 };

static const char not_described[] =
    "the array is not known to have an address and outer strides that are multiples of 16 bytes, and a stride of 1";
static const char not_there[] = "the target has no tensor memory accelerator";

/* ---- the layout of a stage, as boxes ---------------------------------------------------------------- */

/* The layout without the exchange of chunks: what is left when it has this one. */
static tw_layout_t without_swizzle(const tw_layout_t *shared, int element_bytes, int swizzle) {
  tw_layout_t l = *shared;
  int first = tw_log2(element_bytes);
  for (int i = 0; i < tw_log2(swizzle / CHUNK_BYTES); i++) {
    int line = LINE_BIT + i - first, chunk = CHUNK_BIT + i - first;
    if (line < l.bits[TW_OFFSET])
      l.basis[TW_OFFSET][line] ^= l.basis[TW_OFFSET][chunk];
  }
  return l;
}

/* The dimension along which a basis vector steps, and the step as a power of two; false if it steps along several. */
static bool step_of(const tw_layout_t *l, uint32_t image, int *dim, int *bit) {
  if (image == 0 || (image & (image - 1)) != 0)
    return false;
  for (int d = 0; d < l->rank; d++) {
    uint32_t at = tw_layout_coord(l, image, d);
    if (at != 0) {
      *dim = d;
      *bit = tw_log2(at);
      return true;
    }
  }
  return false;
}

/* The box grows by one bit of the offset: along its last dimension, or along one that it does not have yet. */
static bool grow(tw_engine_copy_t *out, const tw_layout_t *l, uint32_t image) {
  int dim, bit, last = out->map.rank - 1, limit = TW_ENGINE_MAX_BOX;
  if (!step_of(l, image, &dim, &bit))
    return false;
  for (int i = 0; i < last; i++)
    if (out->dim[i] == dim)
      return false;
  if (last < 0 || out->dim[last] != dim) {
    out->dim[++last] = dim;
    out->map.box[last] = 1;
  }
  if (last == 0 && out->map.swizzle)
    limit = out->map.swizzle / out->map.bytes;
  if (out->map.box[last] != 1 << bit || out->map.box[last] >= limit)
    return false;
  out->map.box[last] *= 2;
  out->map.rank = last + 1;
  return true;
}

/* Dimensions that the box has not met have an extent of 1 there. */
static void add_other_dims(tw_engine_copy_t *out, const tw_layout_t *l) {
  for (int d = l->rank - 1; d >= 0; d--) {
    bool met = false;
    for (int i = 0; i < out->map.rank; i++)
      met = met || out->dim[i] == d;
    if (met)
      continue;
    out->dim[out->map.rank] = d;
    out->map.box[out->map.rank++] = 1;
  }
}

static bool split_into_boxes(const tw_layout_t *shared, int element_bytes, int swizzle, tw_engine_copy_t *out) {
  tw_layout_t l = without_swizzle(shared, element_bytes, swizzle);
  int at = 0, bits = l.bits[TW_OFFSET], dim, bit;
  *out = (tw_engine_copy_t){.map = {.bytes = (uint8_t)element_bytes, .swizzle = (uint8_t)swizzle}};
  while (at < bits && grow(out, &l, l.basis[TW_OFFSET][at]))
    at++;
  out->box_bytes = (int64_t)element_bytes << at;
  for (; at < bits; at++) {
    if (!step_of(&l, l.basis[TW_OFFSET][at], &dim, &bit))
      return false;
    out->step[out->step_bits++] = l.basis[TW_OFFSET][at];
  }
  add_other_dims(out, &l);
  int64_t line = (int64_t)out->map.box[0] * element_bytes;
  return (swizzle ? line == swizzle : line % CHUNK_BYTES == 0) && out->box_bytes % BOX_ALIGNMENT == 0;
}

/* ---- the array ------------------------------------------------------------------------------------- */

/* The last axis whose stride is known to be 1: the one that the launch counts as contiguous. */
static int contiguous_axis(MlirType array) {
  int64_t strides[TW_MAX_RANK], offset;
  if (mlirLogicalResultIsFailure(mlirMemRefTypeGetStridesAndOffset(array, strides, &offset)))
    return -1;
  int axis = (int)mlirShapedTypeGetRank(array) - 1;
  while (axis >= 0 && strides[axis] != 1)
    axis--;
  return axis;
}

bool tw_engine_knows(MlirValue array) {
  if (!mlirValueIsABlockArgument(array))
    return false;
  MlirOperation function = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(array));
  return tw_op_is(function, TW_FUNC_FUNC) &&
         !mlirAttributeIsNull(tw_arg_attr(function, mlirBlockArgumentGetArgNumber(array), TW_HAS_MAP));
}

/* ---- the whole ------------------------------------------------------------------------------------- */

bool tw_has_engine(MlirOperation op) {
  tw_gpu_target_t target = tw_gpu_target_of(op);
  return tw_gpu_has(&target, TW_GPU_TMA);
}

bool tw_engine_same_map(const tw_tensor_map_t *a, const tw_tensor_map_t *b) {
  return a->word == b->word && a->rank == b->rank && a->bytes == b->bytes && a->rounds == b->rounds &&
         a->swizzle == b->swizzle && !memcmp(a->axes, b->axes, (size_t)a->rank * sizeof *a->axes) &&
         !memcmp(a->box, b->box, (size_t)a->rank * sizeof *a->box);
}

const char *tw_engine_plan_for(MlirValue array, const int64_t *order, MlirType buffer, tw_engine_copy_t *out) {
  static const int swizzles[] = {0, 128, 64, 32};
  int bytes = tw_memory_bits(tw_buffer_type_element(buffer)) / 8;
  tw_layout_t shared;
  if (tw_buffer_type_rank(buffer) - 1 > TW_ENGINE_MAX_RANK)
    return "a tensor map has at most 5 dimensions";
  if (bytes == 0)
    return "its elements are smaller than a byte";
  if (!tw_engine_knows(array))
    return not_described;
  if (!tw_has_engine(mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(array))))
    return not_there;
  if (!tw_layout_of_type(buffer, &shared))
    return "the buffer has no layout";
  for (size_t i = 0; i < sizeof swizzles / sizeof *swizzles; i++) {
    if (!split_into_boxes(&shared, bytes, swizzles[i], out) ||
        tw_stage_bytes(buffer) % (swizzles[i] ? LINES * swizzles[i] : BOX_ALIGNMENT) != 0)
      continue;
    if (order[out->dim[0]] != contiguous_axis(mlirValueGetType(array)))
      return "lines of its tile are not contiguous in the array";
    out->map.word = tw_first_word(array);
    out->map.rounds = tw_rounds_to_tf32(mlirValueGetType(array), tw_buffer_type_element(buffer));
    for (int d = 0; d < out->map.rank; d++)
      out->map.axes[d] = (uint8_t)order[out->dim[d]];
    return NULL;
  }
  return "its tile is too small, or does not lie in shared memory as boxes do";
}

/* Two boxes in place of one, for two blocks to bring. */
static void halve(MlirType buffer, tw_engine_copy_t *out) {
  tw_layout_t shared;
  int last = out->map.rank - 1;
  while (out->map.box[last] == 1)
    last--;
  out->map.box[last] /= 2;
  out->box_bytes /= 2;
  if (tw_layout_of_type(buffer, &shared))
    out->step[out->step_bits++] = shared.basis[TW_OFFSET][shared.bits[TW_OFFSET] - 1];
}

bool tw_engine_is_allowed(MlirOperation access) {
  return !tw_has_attr(access, TW_ALLOW_ENGINE) || mlirBoolAttrGetValue(tw_attr(access, TW_ALLOW_ENGINE));
}

const char *tw_engine_plan(MlirOperation copy, tw_engine_copy_t *out) {
  intptr_t first, at = 0;
  int64_t order[TW_LAYOUT_MAX_RANK];
  if (!tw_has_engine(copy))
    return not_there;
  if (!tw_engine_is_allowed(copy))
    return "it says " TW_REFUSES_ENGINE;
  MlirValue array = tw_access_array(copy, &first);
  while (!tw_type_is_buffer(mlirValueGetType(mlirOperationGetOperand(copy, at))))
    at++;
  MlirType buffer = mlirValueGetType(mlirOperationGetOperand(copy, at));
  tw_access_order(copy, (int)tw_buffer_type_rank(buffer) - 1, order);
  const char *reason = tw_engine_plan_for(array, order, buffer, out);
  if (reason == NULL && tw_has_attr(copy, TW_MULTICAST) && out->step_bits == 0)
    halve(buffer, out);
  return reason;
}
