/* check.c - see check.h */
#include "check.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Diagnostics.h"

#include <stdarg.h>
#include <stdio.h>

bool tw_fail(const tw_check_t *check, const char *format, ...) {
  char text[640];
  int used = snprintf(text, sizeof text, "'%.*s' op ", (int)check->op.length, check->op.data);
  va_list args;
  va_start(args, format);
  vsnprintf(text + used, sizeof text - (size_t)used, format, args);
  va_end(args);
  mlirEmitError(check->location, text);
  return false;
}

const char *tw_ints_text(intptr_t num, const int64_t *values) {
  static _Thread_local char buffers[4][160];
  static _Thread_local unsigned turn;
  char *text = buffers[turn++ % 4];
  size_t used = (size_t)snprintf(text, sizeof buffers[0], "(");
  for (intptr_t i = 0; i < num && used < sizeof buffers[0] - 24; i++)
    used += (size_t)snprintf(text + used, sizeof buffers[0] - used, i ? ", %lld" : "%lld", (long long)values[i]);
  snprintf(text + used, sizeof buffers[0] - used, num == 1 ? ",)" : ")");
  return text;
}

const char *tw_shape_text(const tw_shape_t *shape) { return tw_ints_text(shape->rank, shape->dims); }

static bool read_shape(const tw_check_t *check, MlirType type, const char *what, tw_shape_t *out) {
  out->rank = mlirShapedTypeGetRank(type);
  if (out->rank > TW_RULE_MAX_RANK)
    return tw_fail(check, "%s has %d dimensions; a tile has at most %d", what, (int)out->rank, TW_RULE_MAX_RANK);
  if (out->rank == 0)
    return tw_fail(check, "%s is a tensor of rank zero; a tile of rank zero is written as a scalar", what);
  int64_t count = 1;
  for (intptr_t i = 0; i < out->rank; i++) {
    if (mlirShapedTypeIsDynamicDim(type, i))
      return tw_fail(check, "%s: dimension %d is not static; the shape of a tile must be constant", what, (int)i);
    int64_t n = out->dims[i] = mlirShapedTypeGetDimSize(type, i);
    if (n <= 0 || n & (n - 1))
      return tw_fail(check, "%s: dimension %d is %lld, which is not a power of two", what, (int)i, (long long)n);
    if (n > INT32_MAX || (count *= n) > INT32_MAX)
      return tw_fail(check, "%s has more than 2**31 - 1 elements", what);
  }
  return true;
}

typedef struct {
  char text[96];
  size_t used;
} printed_t;

static void keep_text(MlirStringRef text, void *user) {
  printed_t *out = user;
  for (size_t i = 0; i < text.length && out->used < sizeof out->text - 1; i++)
    out->text[out->used++] = text.data[i];
  out->text[out->used] = 0;
}

bool tw_read_operand(const tw_check_t *check, MlirType type, const char *what, tw_operand_t *out) {
  *out = (tw_operand_t){.elem = TW_NO_ELEM, .type = type};
  bool is_tile = mlirTypeIsARankedTensor(type);
  if (is_tile || !mlirTypeIsAShaped(type))
    out->elem = tw_elem_of(type);
  if (out->elem == TW_NO_ELEM) {
    printed_t printed = {.used = 0};
    mlirTypePrint(type, keep_text, &printed);
    return tw_fail(check, "%s has type '%s', which is neither a tile nor a scalar of a supported dtype", what,
                   printed.text);
  }
  return !is_tile || read_shape(check, type, what, &out->shape);
}

MlirType tw_make_type(MlirContext context, tw_elem_t elem, const tw_shape_t *shape) {
  MlirType element = tw_elem_type(context, elem);
  return shape->rank ? mlirRankedTensorTypeGet(shape->rank, shape->dims, element, mlirAttributeGetNull()) : element;
}

bool tw_same_shape(const tw_shape_t *a, const tw_shape_t *b) {
  bool same = a->rank == b->rank;
  for (intptr_t i = 0; same && i < a->rank; i++)
    same = a->dims[i] == b->dims[i];
  return same;
}

int64_t tw_shape_count(const tw_shape_t *shape) {
  int64_t count = 1;
  for (intptr_t i = 0; i < shape->rank; i++)
    count *= shape->dims[i];
  return count;
}

bool tw_broadcast_shapes(const tw_check_t *check, const tw_shape_t *a, const tw_shape_t *b, tw_shape_t *out) {
  tw_shape_t result = {.rank = a->rank > b->rank ? a->rank : b->rank};
  for (intptr_t i = 0; i < result.rank; i++) {
    intptr_t ai = i - (result.rank - a->rank), bi = i - (result.rank - b->rank);
    int64_t x = ai < 0 ? 1 : a->dims[ai], y = bi < 0 ? 1 : b->dims[bi];
    if (x != y && x != 1 && y != 1)
      return tw_fail(check,
                     "shapes %s and %s do not broadcast: %lld meets %lld; extents must be equal or 1, counted from "
                     "the last axis",
                     tw_shape_text(a), tw_shape_text(b), (long long)x, (long long)y);
    result.dims[i] = x == 1 ? y : x;
  }
  if (tw_shape_count(&result) > INT32_MAX)
    return tw_fail(check, "shapes %s and %s broadcast to more than 2**31 - 1 elements", tw_shape_text(a),
                   tw_shape_text(b));
  *out = result;
  return true;
}

intptr_t tw_read_ints(MlirAttribute array, int64_t *out, intptr_t max) {
  if (mlirAttributeIsNull(array) || !mlirAttributeIsADenseI32Array(array))
    return -1;
  intptr_t num = mlirDenseArrayGetNumElements(array);
  for (intptr_t i = 0; i < num && i < max; i++)
    out[i] = mlirDenseI32ArrayGetElement(array, i);
  return num;
}

bool tw_is_permutation(intptr_t num, const int64_t *order) {
  unsigned seen = 0;
  for (intptr_t i = 0; i < num; i++) {
    if (order[i] < 0 || order[i] >= num || seen >> order[i] & 1)
      return false;
    seen |= 1u << order[i];
  }
  return true;
}
