/* ir.c - see ir.h */
#include "lowering/ir.h"

#include "lowering/layout/memory.h"
#include "tilewright/base.h"
#include "tilewright/dialect.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- Names ---------------------------------------------------------------------------------------- */

bool tw_op_in(MlirOperation op, const char *dialect) {
  MlirStringRef name = tw_op_name(op);
  size_t n = strlen(dialect);
  return name.length > n && !memcmp(name.data, dialect, n) && name.data[n] == '.';
}

bool tw_is_index_fact(MlirOperation op) { return tw_op_form(op) == TW_FORM_POSITION; }

bool tw_is_arithmetic(MlirOperation op) {
  const tw_op_row_t *row = tw_op_row(op);
  return (row->columns & TW_PURE) != 0 && row->form != TW_FORM_SCAN && row->form != TW_FORM_PRODUCT;
}

bool tw_stores_to_array(MlirOperation op) { return tw_op_has(op, TW_WRITES_ARRAY) && tw_op_kind(op) != TW_UNKNOWN_OP; }

static bool has_order(MlirOperation op, tw_memory_order_t order) {
  int64_t has = tw_attr_int(op, "memory_order", TW_ORDER_RELAXED);
  return has == order || has == TW_ORDER_ACQ_REL || has == TW_ORDER_SEQ_CST;
}

bool tw_acquires(MlirOperation op) { return has_order(op, TW_ORDER_ACQUIRE); }
bool tw_releases(MlirOperation op) { return has_order(op, TW_ORDER_RELEASE); }

bool tw_static_strides(MlirType array, int64_t strides[TW_MAX_RANK]) {
  int64_t offset, dynamic = mlirShapedTypeGetDynamicStrideOrOffset();
  if (!mlirLogicalResultIsSuccess(mlirMemRefTypeGetStridesAndOffset(array, strides, &offset)))
    return false;
  for (intptr_t i = 0; i < mlirShapedTypeGetRank(array); i++)
    if (strides[i] == dynamic)
      strides[i] = -1;
  return true;
}

typedef struct {
  bool (*wanted)(MlirOperation op, const void *user);
  const void *user;
  MlirOperation found;
} search_t;

static MlirWalkResult search(MlirOperation op, void *user) {
  search_t *s = user;
  if (!s->wanted(op, s->user))
    return MlirWalkResultAdvance;
  s->found = op;
  return MlirWalkResultInterrupt;
}

MlirOperation tw_find_op(MlirOperation root, bool (*wanted)(MlirOperation op, const void *user), const void *user) {
  search_t s = {wanted, user, tw_null_op()};
  mlirOperationWalk(root, search, &s, MlirWalkPreOrder);
  return s.found;
}

typedef struct {
  bool (*test)(MlirOperation op);
} wanted_op_t;

static bool is_alike(MlirOperation op, const void *user) { return ((const wanted_op_t *)user)->test(op); }

bool tw_has_op_like(MlirOperation root, bool (*wanted)(MlirOperation op)) {
  return !mlirOperationIsNull(tw_find_op(root, is_alike, &(wanted_op_t){wanted}));
}

static bool may_write(MlirOperation op) { return tw_op_has(op, TW_WRITES_ARRAY | TW_ORDERS_ALL); }

bool tw_may_write_arrays(MlirOperation op) { return tw_has_op_like(op, may_write); }

MlirOperation tw_next_op(MlirOperation op, bool (*wanted)(MlirOperation op)) {
  while (!mlirOperationIsNull(op) && !wanted(op))
    op = mlirOperationGetNextInBlock(op);
  return op;
}

bool tw_takes(MlirOperation op, MlirValue value) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (mlirValueEqual(mlirOperationGetOperand(op, i), value))
      return true;
  return false;
}

MlirOperation tw_def(MlirValue value) {
  return mlirValueIsAOpResult(value) ? mlirOpResultGetOwner(value) : tw_null_op();
}

/* --- Types ---------------------------------------------------------------------------------------- */

MlirType tw_element(MlirType type) { return mlirTypeIsAShaped(type) ? mlirShapedTypeGetElementType(type) : type; }

static intptr_t copy_shape(MlirType type, int64_t *shape) {
  intptr_t rank = tw_rank(type);
  for (intptr_t i = 0; i < rank && i < TW_MAX_RANK; i++)
    shape[i] = mlirShapedTypeGetDimSize(type, i);
  return rank < TW_MAX_RANK ? rank : TW_MAX_RANK;
}

MlirType tw_with_element(MlirType type, MlirType element) {
  if (!mlirTypeIsAShaped(type))
    return element;
  int64_t shape[TW_MAX_RANK];
  intptr_t rank = copy_shape(type, shape);
  if (mlirTypeIsAMemRef(type))
    return mlirMemRefTypeGet(element, rank, shape, mlirMemRefTypeGetLayout(type), mlirMemRefTypeGetMemorySpace(type));
  return mlirRankedTensorTypeGet(rank, shape, element, mlirRankedTensorTypeGetEncoding(type));
}

MlirType tw_tile_type(MlirType element, intptr_t rank, const int64_t *shape) {
  return rank ? mlirRankedTensorTypeGet(rank, shape, element, mlirAttributeGetNull()) : element;
}

MlirType tw_with_extent(MlirType type, intptr_t axis, int64_t extent) {
  int64_t shape[TW_MAX_RANK];
  intptr_t rank = copy_shape(type, shape);
  shape[axis] = extent;
  return tw_tile_type(tw_element(type), rank, shape);
}

MlirType tw_without_axis(MlirType type, intptr_t axis) {
  int64_t shape[TW_MAX_RANK];
  intptr_t rank = copy_shape(type, shape);
  for (intptr_t d = axis + 1; d < rank; d++)
    shape[d - 1] = shape[d];
  return tw_tile_type(tw_element(type), rank - 1, shape);
}

int64_t tw_count(MlirType type) {
  int64_t count = 1;
  for (intptr_t i = 0, rank = tw_rank(type); i < rank; i++)
    count *= mlirShapedTypeGetDimSize(type, i);
  return count;
}

unsigned tw_bits(MlirType type) {
  MlirType element = tw_element(type);
  return mlirTypeIsAInteger(element) ? mlirIntegerTypeGetWidth(element) : mlirFloatTypeGetWidth(element);
}

unsigned tw_bytes(MlirType type) {
  unsigned bits = tw_bits(type);
  return bits == 4 ? 0 : bits == 19 ? 4 : (bits + 7) / 8;
}

bool tw_is_bool(MlirType type) { return tw_is_int(type) && tw_bits(type) == 1; }

bool tw_is_unsigned(MlirType type) { return tw_is_int(type) && mlirIntegerTypeIsUnsigned(tw_element(type)); }

MlirType tw_i32(MlirContext context) { return mlirIntegerTypeGet(context, 32); }
MlirType tw_i64(MlirContext context) { return mlirIntegerTypeGet(context, 64); }

/* --- Attributes ----------------------------------------------------------------------------------- */

MlirAttribute tw_attr(MlirOperation op, const char *name) { return mlirOperationGetAttributeByName(op, tw_str(name)); }

bool tw_has_attr(MlirOperation op, const char *name) { return !mlirAttributeIsNull(tw_attr(op, name)); }

int64_t tw_attr_int(MlirOperation op, const char *name, int64_t otherwise) {
  MlirAttribute value = tw_attr(op, name);
  return !mlirAttributeIsNull(value) && mlirAttributeIsAInteger(value) ? mlirIntegerAttrGetValueInt(value) : otherwise;
}

MlirStringRef tw_attr_string(MlirOperation op, const char *name) {
  MlirAttribute value = tw_attr(op, name);
  return !mlirAttributeIsNull(value) && mlirAttributeIsAString(value) ? mlirStringAttrGetValue(value) : tw_str("");
}

MlirAttribute tw_name_behind(MlirOperation func, const char *ending) {
  MlirStringRef name = tw_attr_string(func, "sym_name");
  tw_strbuf_t text = {0};
  tw_strbuf_printf(&text, "%.*s%s", (int)name.length, name.data, ending);
  MlirAttribute whole = mlirStringAttrGet(mlirOperationGetContext(func), tw_str(tw_strbuf_cstr(&text)));
  tw_strbuf_free(&text);
  return whole;
}

intptr_t tw_array_ints(MlirAttribute array, int64_t *out, intptr_t max) {
  if (mlirAttributeIsNull(array))
    return 0;
  bool is32 = mlirAttributeIsADenseI32Array(array), is64 = mlirAttributeIsADenseI64Array(array);
  if (!is32 && !is64 && !mlirAttributeIsADenseBoolArray(array))
    return 0;
  intptr_t num = mlirDenseArrayGetNumElements(array);
  for (intptr_t i = 0; i < num && i < max; i++)
    out[i] = is32   ? mlirDenseI32ArrayGetElement(array, i)
             : is64 ? mlirDenseI64ArrayGetElement(array, i)
                    : mlirDenseBoolArrayGetElement(array, i);
  return num;
}

intptr_t tw_attr_ints(MlirOperation op, const char *name, int64_t *out, intptr_t max) {
  return tw_array_ints(tw_attr(op, name), out, max);
}

MlirAttribute tw_arg_attr(MlirOperation func, intptr_t index, const char *name) {
  MlirAttribute all = tw_attr(func, "arg_attrs");
  if (mlirAttributeIsNull(all) || !mlirAttributeIsAArray(all) || index >= mlirArrayAttrGetNumElements(all))
    return mlirAttributeGetNull();
  return mlirDictionaryAttrGetElementByName(mlirArrayAttrGetElement(all, index), tw_str(name));
}

void tw_set_attr(MlirOperation op, const char *name, MlirAttribute value) {
  mlirOperationSetAttributeByName(op, tw_str(name), value);
}

void tw_set_int(MlirOperation op, const char *name, MlirType type, int64_t value) {
  tw_set_attr(op, name, mlirIntegerAttrGet(type, value));
}

void tw_copy_attrs(MlirOperation from, MlirOperation to) {
  for (intptr_t i = 0; i < mlirOperationGetNumAttributes(from); i++) {
    MlirNamedAttribute named = mlirOperationGetAttribute(from, i);
    mlirOperationSetAttributeByName(to, mlirIdentifierStr(named.name), named.attribute);
  }
}

MlirOperation tw_function_of(MlirOperation op) {
  while (!mlirOperationIsNull(op) && !tw_op_is(op, TW_FUNC_FUNC) && !tw_op_is(op, TW_LLVM_FUNC))
    op = mlirOperationGetParentOperation(op);
  return op;
}

static bool is_of_threads(MlirOperation op) { return tw_op_is(op, TW_TILE_THREADS); }

static bool has_threads_in_it(MlirOperation op) { return tw_op_is(op, TW_TILE_MAP) || is_of_threads(op); }

bool tw_is_of_thread(MlirOperation op) {
  MlirOperation up = op;
  while (!mlirOperationIsNull(up) && !has_threads_in_it(up) && !tw_op_is(up, TW_FUNC_FUNC))
    up = mlirOperationGetParentOperation(up);
  return !mlirOperationIsNull(up) && (has_threads_in_it(up) || tw_has_attr(up, "tile.simt"));
}

bool tw_is_of_tiles(MlirOperation func) {
  return tw_has_attr(func, "tile.kernel") && !tw_has_attr(func, "tile.simt") && !tw_has_op_like(func, is_of_threads);
}

MlirOperation tw_module_of(MlirOperation op) {
  while (!mlirOperationIsNull(op) && !tw_op_is(op, TW_BUILTIN_MODULE))
    op = mlirOperationGetParentOperation(op);
  return op;
}

/* --- Building ------------------------------------------------------------------------------------- */

tw_builder_t tw_build_before(MlirOperation op) {
  return (tw_builder_t){mlirOperationGetContext(op), mlirOperationGetBlock(op), op, mlirOperationGetLocation(op)};
}

tw_builder_t tw_build_at_end(MlirBlock block, MlirLocation location) {
  return (tw_builder_t){mlirLocationGetContext(location), block, {NULL}, location};
}

MlirOperation tw_build(const tw_builder_t *at, const char *name, tw_op_parts_t parts) {
  MlirOperationState state = mlirOperationStateGet(tw_str(name), at->location);
  mlirOperationStateAddOperands(&state, parts.num_operands, parts.operands);
  mlirOperationStateAddResults(&state, parts.num_results, parts.results);
  for (intptr_t i = 0; i < parts.num_attrs; i++) {
    MlirNamedAttribute attr = {mlirIdentifierGet(at->context, tw_str(parts.attrs[i].name)), parts.attrs[i].value};
    mlirOperationStateAddAttributes(&state, 1, &attr);
  }
  if (parts.num_regions)
    mlirOperationStateAddOwnedRegions(&state, parts.num_regions, parts.regions);
  MlirOperation op = mlirOperationCreate(&state);
  if (mlirOperationIsNull(at->before))
    mlirBlockAppendOwnedOperation(at->block, op);
  else
    mlirBlockInsertOwnedOperationBefore(at->block, at->before, op);
  return op;
}

MlirRegion tw_region_with(MlirBlock block) {
  MlirRegion region = mlirRegionCreate();
  if (!mlirBlockIsNull(block))
    mlirRegionAppendOwnedBlock(region, block);
  return region;
}

MlirValue tw_op1_attrs(const tw_builder_t *at, const char *name, MlirType result, intptr_t num,
                       const MlirValue *operands, intptr_t num_attrs, const tw_attr_t *attrs) {
  tw_op_parts_t parts = {num, 1, num_attrs, 0, operands, &result, attrs, NULL};
  return mlirOperationGetResult(tw_build(at, name, parts), 0);
}

MlirValue tw_op1_attr(const tw_builder_t *at, const char *name, MlirType result, intptr_t num,
                      const MlirValue *operands, const char *attr, MlirAttribute value) {
  return tw_op1_attrs(at, name, result, num, operands, attr ? 1 : 0, &(tw_attr_t){attr, value});
}

MlirValue tw_op1(const tw_builder_t *at, const char *name, MlirType result, intptr_t num, const MlirValue *operands) {
  return tw_op1_attrs(at, name, result, num, operands, 0, NULL);
}

MlirValue tw_unary(const tw_builder_t *at, const char *name, MlirType result, MlirValue x) {
  return tw_op1(at, name, result, 1, &x);
}

MlirValue tw_binary(const tw_builder_t *at, const char *name, MlirType result, MlirValue x, MlirValue y) {
  MlirValue operands[] = {x, y};
  return tw_op1(at, name, result, 2, operands);
}

MlirValue tw_compare(const tw_builder_t *at, int predicate, MlirValue x, MlirValue y) {
  MlirValue operands[] = {x, y};
  MlirType bit = mlirIntegerTypeGet(at->context, 1), type = mlirValueGetType(x);
  return tw_op1_attr(at, "arith.cmpi", tw_is_tile(type) ? tw_with_element(type, bit) : bit, 2, operands, "predicate",
                     mlirIntegerAttrGet(tw_i64(at->context), predicate));
}

MlirValue tw_select(const tw_builder_t *at, MlirValue condition, MlirValue x, MlirValue y) {
  MlirValue operands[] = {condition, x, y};
  return tw_op1(at, "arith.select", mlirValueGetType(x), 3, operands);
}

static MlirValue position(const tw_builder_t *at, const char *name, int axis) {
  return tw_op1_attr(at, name, tw_i32(at->context), 0, NULL, "axis", mlirIntegerAttrGet(tw_i32(at->context), axis));
}

MlirValue tw_linear_number(const tw_builder_t *at, const char *index, const char *extent) {
  MlirType i32 = tw_i32(at->context);
  MlirValue number = position(at, index, 2);
  for (int axis = 1; axis >= 0; axis--) {
    number = tw_binary(at, "arith.muli", i32, number, position(at, extent, axis));
    number = tw_binary(at, "arith.addi", i32, number, position(at, index, axis));
  }
  return number;
}

MlirValue tw_sum_along(const tw_builder_t *at, MlirValue x, int64_t axis, bool in_order) {
  MlirType result = tw_without_axis(mlirValueGetType(x), axis);
  tw_attr_t attrs[] = {{"kind", mlirIntegerAttrGet(tw_i32(at->context), TW_REDUCE_ADD)},
                       {"axis", mlirIntegerAttrGet(tw_i32(at->context), axis)},
                       {TW_IN_ORDER, mlirUnitAttrGet(at->context)}};
  return tw_op1_attrs(at, "tile.reduce", result, 1, &x, in_order ? 3 : 2, attrs);
}

static MlirAttribute splat(MlirType type, MlirAttribute element) {
  return mlirTypeIsAShaped(type) ? mlirDenseElementsAttrSplatGet(type, element) : element;
}

MlirAttribute tw_splat_int(MlirType type, int64_t value) {
  return splat(type, mlirIntegerAttrGet(tw_element(type), value));
}

MlirAttribute tw_splat_float(MlirType type, double value) {
  MlirType element = tw_element(type);
  return splat(type, mlirFloatAttrDoubleGet(mlirTypeGetContext(type), element, value));
}

static MlirValue constant(const tw_builder_t *at, MlirType type, MlirAttribute value) {
  return tw_op1_attr(at, "arith.constant", type, 0, NULL, "value", value);
}

MlirValue tw_const_int(const tw_builder_t *at, MlirType type, int64_t value) {
  MlirType signless = type;
  if (tw_is_unsigned(type))
    signless = tw_with_element(type, mlirIntegerTypeGet(at->context, tw_bits(type)));
  return constant(at, type, tw_splat_int(signless, value));
}

MlirValue tw_const_float(const tw_builder_t *at, MlirType type, double value) {
  return constant(at, type, tw_splat_float(type, value));
}

/* The number in a constant, or in every element of one; null if it is none. */
static MlirAttribute known_number(MlirValue value) {
  MlirOperation def = tw_def(value);
  while (!mlirOperationIsNull(def) && (tw_op_is(def, TW_TENSOR_SPLAT) || tw_op_is(def, TW_TILE_BROADCAST)))
    def = tw_def(mlirOperationGetOperand(def, 0));
  if (mlirOperationIsNull(def) || !tw_is_constant(def))
    return mlirAttributeGetNull();
  MlirAttribute attr = tw_attr(def, "value");
  if (!mlirAttributeIsADenseElements(attr))
    return attr;
  return mlirDenseElementsAttrIsSplat(attr) ? mlirDenseElementsAttrGetSplatValue(attr) : mlirAttributeGetNull();
}

bool tw_known_int(MlirValue value, int64_t *out) {
  MlirAttribute attr = known_number(value);
  if (mlirAttributeIsNull(attr) || !mlirAttributeIsAInteger(attr))
    return false;
  bool is_unsigned = tw_is_unsigned(mlirAttributeGetType(attr));
  *out = is_unsigned ? (int64_t)mlirIntegerAttrGetValueUInt(attr) : mlirIntegerAttrGetValueInt(attr);
  return true;
}

bool tw_is_same_number(MlirValue a, MlirValue b) {
  int64_t one, other;
  return mlirValueEqual(a, b) || (tw_known_int(a, &one) && tw_known_int(b, &other) && one == other);
}

bool tw_known_float(MlirValue value, double *out) {
  MlirAttribute attr = known_number(value);
  if (mlirAttributeIsNull(attr) || !mlirAttributeIsAFloat(attr))
    return false;
  *out = mlirFloatAttrGetValueDouble(attr);
  return true;
}

static MlirValue moved(const tw_builder_t *at, const char *name, MlirType to, MlirValue x) {
  return mlirTypeEqual(mlirValueGetType(x), to) ? x : tw_unary(at, name, to, x);
}

MlirValue tw_reshape(const tw_builder_t *at, MlirType to, MlirValue x) { return moved(at, "tile.reshape", to, x); }
MlirValue tw_broadcast(const tw_builder_t *at, MlirType to, MlirValue x) { return moved(at, "tile.broadcast", to, x); }

MlirValue tw_permute(const tw_builder_t *at, MlirType to, MlirValue x, const int32_t *order) {
  return tw_op1_attr(at, "tile.permute", to, 1, &x, "order", mlirDenseI32ArrayGet(at->context, tw_rank(to), order));
}

MlirValue tw_transposed(const tw_builder_t *at, MlirValue matrix) {
  static const int32_t order[] = {1, 0};
  MlirType type = mlirValueGetType(matrix);
  const int64_t shape[] = {tw_extent(type, 1), tw_extent(type, 0)};
  MlirType turned = tw_tile_type(tw_element(type), 2, shape);
  MlirOperation op = tw_def(matrix);
  int64_t integer;
  double number;
  if (!mlirOperationIsNull(op) && tw_op_is(op, TW_TILE_PERMUTE)) /* one that changes nothing is folded away */
    return mlirOperationGetOperand(op, 0);
  if (tw_known_int(matrix, &integer))
    return tw_const_int(at, turned, integer);
  if (tw_known_float(matrix, &number))
    return tw_const_float(at, turned, number);
  return tw_permute(at, turned, matrix, order);
}

bool tw_has_factor(MlirValue value, double *factor, MlirValue *rest) {
  MlirOperation op = tw_def(value);
  for (int i = 0; !mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_MULF) && i < 2; i++)
    if (tw_known_float(mlirOperationGetOperand(op, i), factor)) {
      *rest = mlirOperationGetOperand(op, 1 - i);
      return true;
    }
  return false;
}

bool tw_is_zero(MlirValue value) {
  int64_t integer;
  double number;
  return (tw_known_int(value, &integer) && integer == 0) ||
         (tw_known_float(value, &number) && number == 0 && !signbit(number));
}

/* --- Messages ------------------------------------------------------------------------------------- */

static tw_strbuf_t message_of(MlirOperation op, const char *format, va_list args) {
  MlirStringRef name = tw_op_name(op);
  tw_strbuf_t text = {0};
  tw_strbuf_printf(&text, "'%.*s' op ", (int)name.length, name.data);
  tw_strbuf_vprintf(&text, format, args);
  return text;
}

static void emit_error(MlirOperation op, const char *format, va_list args) {
  tw_strbuf_t text = message_of(op, format, args);
  mlirEmitError(mlirOperationGetLocation(op), tw_strbuf_cstr(&text));
  tw_strbuf_free(&text);
}

typedef struct {
  char *at;
  size_t room;
} description_t;

static void describe(MlirStringRef part, void *user) {
  description_t *d = user;
  size_t size = part.length < d->room ? part.length : d->room;
  memcpy(d->at, part.data, size);
  d->at += size;
  d->room -= size;
}

void tw_describe_tile(MlirType type, size_t size, char *out) {
  bool buffer = tw_type_is_buffer(type);
  intptr_t rank = buffer ? tw_buffer_type_rank(type) : tw_rank(type);
  description_t d = {out, size - 1};
  for (intptr_t i = 0; i < rank; i++) {
    char extent[24];
    snprintf(extent, sizeof extent, "%lldx", (long long)(buffer ? tw_buffer_type_extent(type, i) : tw_extent(type, i)));
    describe(tw_str(extent), &d);
  }
  mlirTypePrint(buffer ? tw_buffer_type_element(type) : tw_element(type), describe, &d);
  *d.at = '\0';
}

void tw_op_error(MlirOperation op, const char *format, ...) {
  va_list args;
  va_start(args, format);
  emit_error(op, format, args);
  va_end(args);
}

void tw_op_does_not_fit(MlirOperation op, const char *what, const char *format, ...) {
  va_list args;
  va_start(args, format);
  emit_error(op, format, args);
  va_end(args);
  tw_set_attr(tw_function_of(op), TW_DOES_NOT_FIT, mlirStringAttrGet(mlirOperationGetContext(op), tw_str(what)));
}

void tw_op_remark(MlirOperation op, const char *format, ...) {
  va_list args;
  va_start(args, format);
  tw_strbuf_t text = message_of(op, format, args);
  va_end(args);
  tw_emit_remark(mlirOperationGetLocation(op), tw_strbuf_cstr(&text));
  tw_strbuf_free(&text);
}

/* --- Map: open addressing on the address ------------------------------------------------------------ */

struct tw_map_entry {
  const void *key;   /* borrowed; NULL where free */
  MlirValue *values; /* owned */
  intptr_t num;
};

static struct tw_map_entry *find_slot(const tw_map_t *map, const void *key) {
  size_t mask = map->capacity - 1;
  size_t i = (size_t)(((uintptr_t)key >> 3) * 0x9E3779B97F4A7C15ull >> 20) & mask;
  while (map->slots[i].key && map->slots[i].key != key)
    i = (i + 1) & mask;
  return &map->slots[i];
}

void tw_ops_add(tw_ops_t *list, MlirOperation op) {
  list->at = tw_room(list->at, (size_t)list->count, sizeof *list->at);
  list->at[list->count++] = op;
}

void tw_ops_free(tw_ops_t *list) { free(list->at); }

typedef struct {
  tw_ops_t list;
  bool (*wanted)(MlirOperation op);
} collector_t;

static MlirWalkResult collect(MlirOperation op, void *user) {
  collector_t *collector = user;
  if (collector->wanted(op))
    tw_ops_add(&collector->list, op);
  return MlirWalkResultAdvance;
}

tw_ops_t tw_ops_in(MlirOperation root, bool (*wanted)(MlirOperation op), MlirWalkOrder order) {
  collector_t collector = {{NULL, 0}, wanted};
  mlirOperationWalk(root, collect, &collector, order);
  return collector.list;
}

static void grow(tw_map_t *map) {
  tw_map_t bigger = {.capacity = map->capacity ? 2 * map->capacity : 64, .size = map->size};
  bigger.slots = tw_must(calloc(bigger.capacity, sizeof *bigger.slots));
  for (size_t i = 0; i < map->capacity; i++)
    if (map->slots[i].key)
      *find_slot(&bigger, map->slots[i].key) = map->slots[i];
  free(map->slots);
  *map = bigger;
}

void tw_map_set(tw_map_t *map, const void *key, intptr_t num, const MlirValue *values) {
  if (2 * (map->size + 1) > map->capacity)
    grow(map);
  struct tw_map_entry *slot = find_slot(map, key);
  size_t bytes = (size_t)num * sizeof *values;
  MlirValue *copy = tw_must(malloc(bytes ? bytes : 1));
  if (bytes)
    memcpy(copy, values, bytes);
  if (!slot->key)
    map->size++;
  free(slot->values);
  *slot = (struct tw_map_entry){key, copy, num};
}

const MlirValue *tw_map_get(const tw_map_t *map, const void *key, intptr_t *num) {
  const struct tw_map_entry *slot = map->capacity ? find_slot(map, key) : NULL;
  if (!slot || !slot->key)
    return NULL;
  if (num)
    *num = slot->num;
  return slot->values;
}

void tw_map_free(tw_map_t *map) {
  for (size_t i = 0; i < map->capacity; i++)
    free(map->slots[i].values);
  free(map->slots);
  *map = (tw_map_t){0};
}

MlirValue tw_map_value(const tw_map_t *map, MlirValue from) {
  const MlirValue *to = tw_map_get(map, from.ptr, NULL);
  return to ? to[0] : from;
}

void tw_map_set_number(tw_map_t *map, MlirValue value, int number) {
  MlirValue dressed = {(void *)(intptr_t)number};
  tw_map_set(map, value.ptr, 1, &dressed);
}

int tw_map_number(const tw_map_t *map, MlirValue value, int otherwise) {
  const MlirValue *dressed = tw_map_get(map, value.ptr, NULL);
  return dressed ? (int)(intptr_t)dressed->ptr : otherwise;
}

/* --- Sets of numbers that unite ---------------------------------------------------------------------- */

int tw_sets_add(tw_sets_t *sets) {
  sets->parent = tw_room(sets->parent, (size_t)sets->count, sizeof *sets->parent);
  sets->parent[sets->count] = sets->count;
  return sets->count++;
}

int tw_sets_find(tw_sets_t *sets, int n) {
  while (sets->parent[n] != n)
    n = sets->parent[n] = sets->parent[sets->parent[n]];
  return n;
}

void tw_sets_unite(tw_sets_t *sets, int a, int b) {
  int p = tw_sets_find(sets, a), q = tw_sets_find(sets, b);
  sets->parent[p > q ? p : q] = p < q ? p : q;
}

void tw_sets_free(tw_sets_t *sets) {
  free(sets->parent);
  *sets = (tw_sets_t){0};
}
