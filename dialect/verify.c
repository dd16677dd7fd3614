/* verify.c - what must hold of each op, beyond what its definition in ODS says and what inference checks
 *
 * One function an op or family, found by name. An op that has no row has nothing more to check: those whose result is
 * inferred were checked by rules.c, which the generated verifier calls too. */
#include "check.h"
#include "format.h"
#include "op_kinds.h"
#include "rules.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include <stdio.h>
#include <string.h>

typedef struct {
  tw_check_t check;
  MlirOperation op;
} verify_t;

static MlirType operand_type(const verify_t *v, intptr_t i) {
  return mlirValueGetType(mlirOperationGetOperand(v->op, i));
}
static MlirType result_type(const verify_t *v) { return mlirValueGetType(mlirOperationGetResult(v->op, 0)); }

static MlirAttribute attribute(const verify_t *v, const char *name) {
  return mlirOperationGetAttributeByName(v->op, mlirStringRefCreateFromCString(name));
}

static bool has(const verify_t *v, const char *name) { return !mlirAttributeIsNull(attribute(v, name)); }
static int64_t integer(const verify_t *v, const char *name) { return mlirIntegerAttrGetValueInt(attribute(v, name)); }

/* --- Shared pieces ---------------------------------------------------------------------------------- */

/* An array's dtype and rank. */
typedef struct {
  tw_elem_t elem;
  intptr_t rank;
} array_t;

static bool read_array(const verify_t *v, MlirType type, array_t *out) {
  out->elem = tw_elem_of(type);
  out->rank = mlirShapedTypeGetRank(type);
  if (out->elem == TW_NO_ELEM)
    return tw_fail(&v->check, "the array has elements of no supported dtype");
  if (out->rank > TW_RULE_MAX_RANK)
    return tw_fail(&v->check, "the array has %d dimensions; at most %d are supported", (int)out->rank,
                   TW_RULE_MAX_RANK);
  return true;
}

static bool same_elem(const verify_t *v, const char *what, tw_elem_t found, const char *of, tw_elem_t expected) {
  return found == expected || tw_fail(&v->check, "%s is %s, but %s is %s; convert it, as in x.astype(ct.%s)", what,
                                      tw_elem_name(found), of, tw_elem_name(expected), tw_elem_name(expected));
}

static bool same_shape(const verify_t *v, const char *what, const tw_shape_t *found, const tw_shape_t *expected) {
  return tw_same_shape(found, expected) ||
         tw_fail(&v->check, "%s has shape %s, expected %s", what, tw_shape_text(found), tw_shape_text(expected));
}

/* input and result of an op that has one of each. */
static bool read_both(const verify_t *v, tw_operand_t *input, tw_operand_t *result) {
  return tw_read_operand(&v->check, operand_type(v, 0), "the operand", input) &&
         tw_read_operand(&v->check, result_type(v), "the result", result);
}

/* --- Position ----------------------------------------------------------------------------------------- */

static bool verify_grid_axis(const verify_t *v) {
  int64_t axis = integer(v, "axis");
  return (axis >= 0 && axis < 3) ||
         tw_fail(&v->check, "axis %lld is outside of the grid, which has axes 0, 1 and 2", (long long)axis);
}

static bool verify_array_axis(const verify_t *v) {
  array_t array;
  int64_t axis = integer(v, "axis");
  if (!read_array(v, operand_type(v, 0), &array))
    return false;
  return (axis >= 0 && axis < array.rank) ||
         tw_fail(&v->check, "axis %lld is outside of an array of %d dimensions", (long long)axis, (int)array.rank);
}

/* --- Tiles of arrays ------------------------------------------------------------------------------------ */

static bool verify_order(const verify_t *v, intptr_t rank) {
  int64_t order[TW_RULE_MAX_RANK];
  intptr_t num = tw_read_ints(attribute(v, "order"), order, TW_RULE_MAX_RANK);
  if (num < 0 || (num == rank && tw_is_permutation(rank, order)))
    return true;
  return tw_fail(&v->check, "order %s is not a permutation of the %d axes of the array",
                 tw_ints_text(num < TW_RULE_MAX_RANK ? num : TW_RULE_MAX_RANK, order), (int)rank);
}

/* What is read of float32 may be rounded to tf32 on the way. */
static bool same_elem_as_array(const verify_t *v, tw_elem_t tile, tw_elem_t array) {
  bool rounds = tile == TW_tf32 && array == TW_f32 && tw_op_has(v->op, TW_READS_ARRAY);
  return rounds || same_elem(v, "the tile", tile, "the array", array);
}

/* The tile at `tile_type` is one of the array of operand `array_at`; the indices start at operand `first`. */
static bool verify_access(const verify_t *v, intptr_t array_at, MlirType tile_type, intptr_t first, intptr_t num,
                          array_t *array, tw_operand_t *tile) {
  if (!read_array(v, operand_type(v, array_at), array) || !tw_read_operand(&v->check, tile_type, "the tile", tile))
    return false;
  if (num != array->rank)
    return tw_fail(&v->check, "has %d indices for an array of %d dimensions", (int)num, (int)array->rank);
  if (tile->shape.rank != array->rank)
    return tw_fail(&v->check, "a tile of shape %s does not fit an array of %d dimensions; a tile has as many",
                   tw_shape_text(&tile->shape), (int)array->rank);
  for (intptr_t i = 0; i < num; i++) {
    tw_elem_t elem = tw_elem_of(operand_type(v, first + i));
    if (elem != TW_i32 && elem != TW_i64)
      return tw_fail(&v->check, "index %d is %s; tile indices are int32 or int64", (int)i, tw_elem_name(elem));
  }
  return verify_order(v, array->rank) && same_elem_as_array(v, tile->elem, array->elem);
}

static bool has_nan(tw_elem_t elem) {
  return tw_elem_kind(elem) == 'f' || (tw_elem_kind(elem) == 'n' && elem != TW_f4e2m1);
}
static bool has_infinity(tw_elem_t elem) { return tw_elem_kind(elem) == 'f' || elem == TW_tf32 || elem == TW_f8e5m2; }
static bool has_zero(tw_elem_t elem) { return elem != TW_f8e8m0; }

static bool has_padding(tw_elem_t elem, int64_t padding) {
  bool is_float = tw_elem_kind(elem) == 'f' || tw_elem_kind(elem) == 'n';
  switch (padding) {
  case TW_PADDING_UNDETERMINED: return true;
  case TW_PADDING_ZERO: return has_zero(elem);
  case TW_PADDING_NEG_ZERO: return is_float && has_zero(elem);
  case TW_PADDING_NAN: return has_nan(elem);
  default: return has_infinity(elem);
  }
}

static bool verify_load(const verify_t *v) {
  static const char *const names[] = {"undetermined", "zero", "neg_zero", "nan", "pos_inf", "neg_inf"};
  array_t array;
  tw_operand_t tile;
  if (!verify_access(v, 0, result_type(v), 1, mlirOperationGetNumOperands(v->op) - 1, &array, &tile))
    return false;
  int64_t padding = has(v, "padding") ? integer(v, "padding") : TW_PADDING_UNDETERMINED;
  return has_padding(array.elem, padding) || tw_fail(&v->check, "padding %s: %s has no such value; use zero and select",
                                                     names[padding], tw_elem_name(array.elem));
}

static bool verify_store(const verify_t *v) {
  array_t array;
  tw_operand_t tile;
  intptr_t num = mlirOperationGetNumOperands(v->op);
  return verify_access(v, 0, operand_type(v, num - 1), 1, num - 2, &array, &tile);
}

/* --- Elements of arrays ----------------------------------------------------------------------------------- */

static bool verify_indices(const verify_t *v, const array_t *array, const tw_shape_t *shape) {
  intptr_t first, count = tw_operands(v->op, TW_OPERAND_INDICES, &first);
  if (count != array->rank)
    return tw_fail(&v->check, "has %d indices for an array of %d dimensions", (int)count, (int)array->rank);
  for (intptr_t i = 0; i < count; i++) {
    char what[32];
    tw_operand_t index;
    snprintf(what, sizeof what, "index %d", (int)i);
    if (!tw_read_operand(&v->check, operand_type(v, first + i), what, &index))
      return false;
    if (tw_elem_kind(index.elem) != 'i')
      return tw_fail(&v->check, "%s is %s; indices are integers", what, tw_elem_name(index.elem));
    if (!same_shape(v, what, &index.shape, shape))
      return false;
  }
  return true;
}

/* An operand that may be absent, of a dtype and shape. */
static bool verify_optional(const verify_t *v, tw_operand_name_t name, const char *what, const char *of, tw_elem_t elem,
                            const tw_shape_t *shape) {
  MlirValue value = tw_operand(v->op, name);
  tw_operand_t operand;
  if (mlirValueIsNull(value))
    return true;
  return tw_read_operand(&v->check, mlirValueGetType(value), what, &operand) &&
         same_elem(v, what, operand.elem, of, elem) && same_shape(v, what, &operand.shape, shape);
}

static bool verify_gather(const verify_t *v) {
  array_t array;
  tw_operand_t result;
  return read_array(v, operand_type(v, 0), &array) &&
         tw_read_operand(&v->check, result_type(v), "the result", &result) &&
         same_elem(v, "the result", result.elem, "the array", array.elem) && verify_indices(v, &array, &result.shape) &&
         verify_optional(v, TW_OPERAND_MASK, "the mask", "a mask", TW_b1, &result.shape) &&
         verify_optional(v, TW_OPERAND_PADDING, "the padding", "the array", array.elem, &result.shape);
}

static bool verify_scatter(const verify_t *v) {
  array_t array;
  tw_operand_t value;
  return read_array(v, operand_type(v, 0), &array) &&
         tw_read_operand(&v->check, mlirValueGetType(tw_operand(v->op, TW_OPERAND_VALUE)), "the value", &value) &&
         same_elem(v, "the value", value.elem, "the array", array.elem) && verify_indices(v, &array, &value.shape) &&
         verify_optional(v, TW_OPERAND_MASK, "the mask", "a mask", TW_b1, &value.shape);
}

/* Whether an atomic access of the kind takes arrays of the dtype. */
static bool takes_atomic(tw_atomic_kind_t kind, tw_elem_t elem) {
  bool wide_int = elem == TW_i32 || elem == TW_i64 || elem == TW_u32 || elem == TW_u64;
  bool wide = wide_int || elem == TW_f32 || elem == TW_f64;
  switch (kind) {
  case TW_ATOMIC_LOAD:
  case TW_ATOMIC_STORE: return elem != TW_f4e2m1;
  case TW_ATOMIC_XCHG:
  case TW_ATOMIC_CAS: return elem != TW_f4e2m1;
  case TW_ATOMIC_ADD: return wide || elem == TW_f16 || elem == TW_bf;
  case TW_ATOMIC_BIT_AND:
  case TW_ATOMIC_BIT_OR:
  case TW_ATOMIC_BIT_XOR: return wide_int;
  default: return wide;
  }
}

static bool verify_orders(const verify_t *v, tw_atomic_kind_t kind) {
  tw_memory_order_t order = (tw_memory_order_t)integer(v, "memory_order");
  bool acquires = order == TW_ORDER_ACQUIRE || order == TW_ORDER_ACQ_REL;
  bool releases = order == TW_ORDER_RELEASE || order == TW_ORDER_ACQ_REL; /* seq_cst suits all */
  return !((kind == TW_ATOMIC_LOAD && releases) || (kind == TW_ATOMIC_STORE && acquires)) ||
         tw_fail(&v->check, "a load is relaxed or acquires, a store is relaxed or releases");
}

static bool verify_atomic_kind(const verify_t *v, tw_elem_t elem) {
  tw_atomic_kind_t kind = (tw_atomic_kind_t)integer(v, "kind");
  if (!takes_atomic(kind, elem))
    return tw_fail(&v->check, "has no atomic access of this kind for arrays of %s", tw_elem_name(elem));
  if (mlirValueIsNull(tw_operand(v->op, TW_OPERAND_EXPECTED)) == (kind == TW_ATOMIC_CAS))
    return tw_fail(&v->check, "an expected value is what cas has, and nothing else");
  return verify_orders(v, kind);
}

static bool verify_atomic(const verify_t *v) {
  array_t array;
  tw_operand_t value, result;
  return read_array(v, operand_type(v, 0), &array) &&
         tw_read_operand(&v->check, mlirValueGetType(tw_operand(v->op, TW_OPERAND_VALUE)), "the value", &value) &&
         same_elem(v, "the value", value.elem, "the array", array.elem) && verify_indices(v, &array, &value.shape) &&
         tw_read_operand(&v->check, result_type(v), "the result", &result) &&
         same_elem(v, "the result", result.elem, "the array", array.elem) &&
         same_shape(v, "the result", &result.shape, &value.shape) &&
         verify_optional(v, TW_OPERAND_EXPECTED, "the expected value", "the array", array.elem, &value.shape) &&
         verify_optional(v, TW_OPERAND_MASK, "the mask", "a mask", TW_b1, &value.shape) &&
         verify_atomic_kind(v, array.elem);
}

static bool verify_atomic_pair(const verify_t *v) {
  tw_atomic_kind_t kind = (tw_atomic_kind_t)integer(v, "kind");
  array_t array;
  return read_array(v, operand_type(v, 0), &array) &&
         ((kind == TW_ATOMIC_LOAD || kind == TW_ATOMIC_STORE) ||
          tw_fail(&v->check, "has 16 bytes, which are loaded or stored; other accesses have 8 at most")) &&
         ((array.elem == TW_i64 && mlirShapedTypeGetRank(operand_type(v, 0)) == 0) ||
          tw_fail(&v->check, "takes a view without axes of int64, the first of its words")) &&
         verify_orders(v, kind);
}

/* --- Creation ----------------------------------------------------------------------------------------- */

static bool verify_constant(const verify_t *v) {
  tw_operand_t result;
  MlirAttribute value = attribute(v, "value");
  bool plain = mlirAttributeIsAInteger(value) || mlirAttributeIsAFloat(value) || mlirAttributeIsADenseElements(value);
  return tw_read_operand(&v->check, result_type(v), "the result", &result) &&
         (plain || tw_fail(&v->check, "the value must be a number or a dense<…> of them"));
}

static bool verify_iota(const verify_t *v) {
  tw_operand_t result;
  if (!tw_read_operand(&v->check, result_type(v), "the result", &result))
    return false;
  if (result.shape.rank != 1)
    return tw_fail(&v->check, "has a result of shape %s; it makes tiles of one dimension",
                   tw_shape_text(&result.shape));
  return tw_elem_kind(result.elem) == 'i' ||
         tw_fail(&v->check, "makes integers, found %s; cast the result", tw_elem_name(result.elem));
}

/* --- Shape and dtype ---------------------------------------------------------------------------------- */

static bool verify_broadcast(const verify_t *v) {
  tw_operand_t input, result;
  tw_shape_t both;
  if (!read_both(v, &input, &result) || !same_elem(v, "the result", result.elem, "the operand", input.elem) ||
      !tw_broadcast_shapes(&v->check, &input.shape, &result.shape, &both))
    return false;
  return tw_same_shape(&both, &result.shape) || tw_fail(&v->check, "shape %s does not broadcast to %s",
                                                        tw_shape_text(&input.shape), tw_shape_text(&result.shape));
}

static bool verify_reshape(const verify_t *v) {
  tw_operand_t input, result;
  if (!read_both(v, &input, &result) || !same_elem(v, "the result", result.elem, "the operand", input.elem))
    return false;
  long long from = tw_shape_count(&input.shape), to = tw_shape_count(&result.shape);
  return from == to || tw_fail(&v->check, "shape %s has %lld elements, %s has %lld", tw_shape_text(&input.shape), from,
                               tw_shape_text(&result.shape), to);
}

static bool verify_cast(const verify_t *v) {
  tw_operand_t input, result;
  return read_both(v, &input, &result) && same_shape(v, "the result", &result.shape, &input.shape);
}

/* Parts of the shape `part` make up the whole; as many indices as dimensions, from operand `first` on. */
static bool verify_part(const verify_t *v, const tw_operand_t *whole, const tw_operand_t *part, intptr_t first) {
  intptr_t num = mlirOperationGetNumOperands(v->op) - first;
  if (!same_elem(v, "the part", part->elem, "the tile", whole->elem))
    return false;
  if (num != whole->shape.rank || part->shape.rank != whole->shape.rank)
    return tw_fail(&v->check,
                   "has %d indices for parts of shape %s of a tile of shape %s; the dimensions must be as many",
                   (int)num, tw_shape_text(&part->shape), tw_shape_text(&whole->shape));
  for (intptr_t i = 0; i < num; i++) {
    tw_elem_t elem = tw_elem_of(operand_type(v, first + i));
    if (elem != TW_i32 && elem != TW_i64)
      return tw_fail(&v->check, "index %d is %s; indices of parts are int32 or int64", (int)i, tw_elem_name(elem));
    if (part->shape.dims[i] > whole->shape.dims[i])
      return tw_fail(&v->check, "a part of shape %s is larger than the tile, which has shape %s",
                     tw_shape_text(&part->shape), tw_shape_text(&whole->shape));
  }
  return true;
}

static bool verify_extract(const verify_t *v) {
  tw_operand_t input, result;
  return read_both(v, &input, &result) && verify_part(v, &input, &result, 1);
}

static bool verify_insert(const verify_t *v) {
  tw_operand_t input, value;
  return tw_read_operand(&v->check, operand_type(v, 0), "the tile", &input) &&
         tw_read_operand(&v->check, operand_type(v, 1), "the part", &value) && verify_part(v, &input, &value, 2);
}

/* Of an element in memory; 0 of a bool, whose bits are not spoken of. */
static int bits_of(MlirType type) {
  MlirType element = mlirTypeIsAShaped(type) ? mlirShapedTypeGetElementType(type) : type;
  if (tw_elem_of(element) == TW_b1)
    return 0;
  if (mlirTypeIsATF32(element))
    return 32;
  return mlirTypeIsAInteger(element) ? (int)mlirIntegerTypeGetWidth(element) : (int)mlirFloatTypeGetWidth(element);
}

static bool verify_rounded(const verify_t *v) {
  int wanted = integer(v, "kind") == TW_ROUNDED_SQRT ? 1 : 2;
  tw_elem_t elem = tw_elem_of(result_type(v));
  int found = (int)mlirOperationGetNumOperands(v->op);
  if (found != wanted)
    return tw_fail(&v->check, "computes on %d operand%s, found %d", wanted, wanted == 1 ? "" : "s", found);
  if (elem != TW_f32 && elem != TW_f64)
    return tw_fail(&v->check, "is of float32 or float64, found %s", tw_elem_name(elem));
  for (int i = 0; i < wanted; i++)
    if (!mlirTypeEqual(operand_type(v, i), result_type(v)))
      return tw_fail(&v->check, "has operands of other types than its result");
  return true;
}

static bool verify_flush(const verify_t *v) {
  tw_elem_t elem = tw_elem_of(result_type(v));
  return elem == TW_f32 || tw_fail(&v->check, "is of float32, found %s", tw_elem_name(elem));
}

static bool verify_bitcast(const verify_t *v) {
  tw_operand_t input, result;
  if (!read_both(v, &input, &result) || !same_shape(v, "the result", &result.shape, &input.shape))
    return false;
  int from = bits_of(input.type), to = bits_of(result.type);
  return (from == to && from > 0) ||
         tw_fail(&v->check, "from %s to %s: bool_ has no bits to speak of, and others must have as many",
                 tw_elem_name(input.elem), tw_elem_name(result.elem));
}

static bool verify_bytes(const verify_t *v, const tw_operand_t *bytes, const tw_operand_t *tile) {
  int64_t bits = bits_of(tile->type) * tw_shape_count(&tile->shape);
  if (bytes->elem != TW_u8 || bytes->shape.rank != 1)
    return tw_fail(&v->check, "needs bytes as a tile of uint8 of one dimension, found %s of shape %s",
                   tw_elem_name(bytes->elem), tw_shape_text(&bytes->shape));
  return (bits > 0 && bits == 8 * bytes->shape.dims[0]) ||
         tw_fail(&v->check, "%s of shape %s is not %lld bytes", tw_elem_name(tile->elem), tw_shape_text(&tile->shape),
                 (long long)bytes->shape.dims[0]);
}

static bool verify_pack(const verify_t *v) {
  tw_operand_t input, result;
  return read_both(v, &input, &result) && verify_bytes(v, &result, &input);
}

static bool verify_unpack(const verify_t *v) {
  tw_operand_t input, result;
  return read_both(v, &input, &result) && verify_bytes(v, &input, &result);
}

static bool verify_same_type(const verify_t *v) {
  tw_operand_t input, result;
  return read_both(v, &input, &result) && same_elem(v, "the result", result.elem, "the operand", input.elem) &&
         same_shape(v, "the result", &result.shape, &input.shape);
}

/* --- Flags that must fit the dtype ------------------------------------------------------------------------ */

static bool verify_assume(const verify_t *v) {
  bool is_int = tw_elem_kind(tw_elem_of(result_type(v))) == 'i';
  return (is_int && integer(v, "divisor") > 0) ||
         tw_fail(&v->check, "is of an integer and a positive divisor, found divisor %lld",
                 (long long)integer(v, "divisor"));
}

static bool verify_pow(const verify_t *v) {
  bool is_int = tw_elem_kind(tw_elem_of(result_type(v))) == 'i';
  return !has(v, "integral") || is_int || tw_fail(&v->check, "is marked `integral`, but its operands are not integers");
}

/* What says how NaN are taken, of an op that gives the largest or smallest of floats. */
static bool verify_extreme(const verify_t *v) {
  char kind = tw_elem_kind(tw_elem_of(has(v, "kind") ? operand_type(v, 0) : result_type(v)));
  bool extreme = !has(v, "kind") || (integer(v, "kind") != TW_REDUCE_ADD && integer(v, "kind") != TW_REDUCE_MUL);
  return !has(v, "ignore_nan") || (extreme && kind == 'f') ||
         tw_fail(&v->check, "is marked `ignore_nan`, which is for the extremes of floats");
}

static bool verify_reduce(const verify_t *v) {
  char kind = tw_elem_kind(tw_elem_of(operand_type(v, 0)));
  if (!verify_extreme(v))
    return false;
  return !has(v, "is_unsigned") || kind == 'i' || kind == 'b' ||
         tw_fail(&v->check, "is marked `is_unsigned`, but reduces %s", tw_elem_name(tw_elem_of(operand_type(v, 0))));
}

/* --- Functions that combine ----------------------------------------------------------------------------- */

static MlirBlock body_of(const verify_t *v) { return mlirRegionGetFirstBlock(mlirOperationGetRegion(v->op, 0)); }

/* Input i, its identity, and result i, which lacks the axis where that is reduced. */
static bool verify_combined(const verify_t *v, intptr_t i, intptr_t num, const tw_shape_t *shape) {
  tw_operand_t input, identity, result;
  int64_t axis = integer(v, "axis");
  if (!tw_read_operand(&v->check, operand_type(v, i), "an input", &input) ||
      !tw_read_operand(&v->check, operand_type(v, num + i), "an identity", &identity) ||
      !tw_read_operand(&v->check, mlirValueGetType(mlirOperationGetResult(v->op, i)), "a result", &result) ||
      !same_shape(v, "an input", &input.shape, shape) ||
      !same_elem(v, "an identity", identity.elem, "its input", input.elem) ||
      !same_elem(v, "a result", result.elem, "its input", input.elem))
    return false;
  tw_shape_t left = {.rank = shape->rank - 1};
  for (intptr_t d = 0; d < left.rank; d++)
    left.dims[d] = shape->dims[d < axis ? d : d + 1];
  return same_shape(v, "a result", &result.shape, tw_op_form(v->op) == TW_FORM_SCAN ? shape : &left);
}

/* Two of each element come in, one goes out. */
static bool verify_body_types(const verify_t *v, intptr_t num) {
  MlirBlock body = body_of(v);
  MlirOperation end = mlirBlockGetTerminator(body);
  bool fits = mlirBlockGetNumArguments(body) == 2 * num && !mlirOperationIsNull(end) &&
              tw_op_kind(end) == TW_TILE_YIELD && mlirOperationGetNumOperands(end) == num;
  for (intptr_t i = 0; fits && i < 2 * num; i++) {
    MlirType element = mlirShapedTypeGetElementType(operand_type(v, i % num));
    fits = mlirTypeEqual(mlirValueGetType(mlirBlockGetArgument(body, i)), element) &&
           mlirTypeEqual(mlirValueGetType(mlirOperationGetOperand(end, i % num)), element);
  }
  return fits ||
         tw_fail(&v->check, "has a body that does not make an element of each of its %d inputs from two of each",
                 (int)num);
}

static bool is_scalar_op(MlirOperation op) {
  bool scalar = tw_op_has(op, TW_PURE) && mlirOperationGetNumRegions(op) == 0;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    scalar = scalar && !mlirTypeIsAShaped(mlirValueGetType(mlirOperationGetResult(op, i)));
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    scalar = scalar && !mlirTypeIsAShaped(mlirValueGetType(mlirOperationGetOperand(op, i)));
  return scalar;
}

static bool verify_combine(const verify_t *v) {
  tw_operand_t first;
  intptr_t num = mlirOperationGetNumResults(v->op);
  int64_t axis = integer(v, "axis");
  if (num < 1 || num > TW_MAX_COMBINED || mlirOperationGetNumOperands(v->op) != 2 * num)
    return tw_fail(&v->check,
                   "has %d operands and %d results; 1 to %d inputs, an identity and a result of each are needed",
                   (int)mlirOperationGetNumOperands(v->op), (int)num, TW_MAX_COMBINED);
  if (!tw_read_operand(&v->check, operand_type(v, 0), "an input", &first))
    return false;
  if (axis < 0 || axis >= first.shape.rank)
    return tw_fail(&v->check, "axis %lld is outside of a tile of %d dimensions", (long long)axis,
                   (int)first.shape.rank);
  if (has(v, "reverse") && tw_op_form(v->op) != TW_FORM_SCAN)
    return tw_fail(&v->check, "has no `reverse`: the order of the elements does not matter to what is left of them");
  for (intptr_t i = 0; i < num; i++)
    if (!verify_combined(v, i, num, &first.shape))
      return false;
  for (MlirOperation op = mlirBlockGetFirstOperation(body_of(v)); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    if (!is_scalar_op(op))
      return tw_fail(&v->check, "has a body with more than arithmetic of scalars in it");
  return verify_body_types(v, num);
}

/* The types of values, each an element of the tile of its number. */
static bool are_elements(const verify_t *v, MlirType (*value)(const verify_t *, intptr_t),
                         MlirType (*tile)(const verify_t *, intptr_t), intptr_t num) {
  for (intptr_t i = 0; i < num; i++)
    if (!mlirTypeEqual(value(v, i), mlirShapedTypeGetElementType(tile(v, i))))
      return false;
  return true;
}

static MlirType body_argument(const verify_t *v, intptr_t i) {
  return mlirValueGetType(mlirBlockGetArgument(body_of(v), i));
}
static MlirType body_yield(const verify_t *v, intptr_t i) {
  return mlirValueGetType(mlirOperationGetOperand(mlirBlockGetTerminator(body_of(v)), i));
}
static MlirType result_at(const verify_t *v, intptr_t i) { return mlirValueGetType(mlirOperationGetResult(v->op, i)); }

static MlirWalkResult look_for_meeting(MlirOperation op, void *user) {
  bool *found = user;
  *found |= tw_op_has(op, TW_MEETS_BLOCK | TW_MEETS_WARP);
  return MlirWalkResultAdvance;
}

static bool verify_map(const verify_t *v) {
  intptr_t num = mlirOperationGetNumOperands(v->op), made = mlirOperationGetNumResults(v->op);
  MlirOperation end = mlirBlockGetTerminator(body_of(v));
  tw_operand_t first, other;
  bool meets = false;
  if (num < 1 || !tw_read_operand(&v->check, operand_type(v, 0), "an input", &first))
    return tw_fail(&v->check, "needs a tile");
  for (intptr_t i = 0; i < num + made; i++)
    if (!tw_read_operand(&v->check, i < num ? operand_type(v, i) : result_at(v, i - num), "a tile", &other) ||
        !same_shape(v, "a tile", &other.shape, &first.shape))
      return false;
  if (mlirBlockGetNumArguments(body_of(v)) != num || mlirOperationIsNull(end) || tw_op_kind(end) != TW_TILE_YIELD ||
      mlirOperationGetNumOperands(end) != made || !are_elements(v, body_argument, operand_type, num) ||
      !are_elements(v, body_yield, result_at, made))
    return tw_fail(&v->check, "has a body that does not make an element of each result from one of each input");
  mlirOperationWalk(v->op, look_for_meeting, &meets, MlirWalkPreOrder);
  return !meets || tw_fail(&v->check, "has a body in which a thread waits for others");
}

/* Whether a value is a tile, which no thread has. */
static MlirWalkResult look_for_tiles(MlirOperation op, void *user) {
  bool *found = user;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    *found |= mlirTypeIsARankedTensor(mlirValueGetType(mlirOperationGetOperand(op, i)));
  return MlirWalkResultAdvance;
}

/* The shared array of a tile. */
static bool holds_tile(MlirType array, MlirType tile) {
  MlirAttribute space = mlirTypeIsAMemRef(array) ? mlirMemRefTypeGetMemorySpace(array) : mlirAttributeGetNull();
  bool fits = !mlirAttributeIsNull(space) && mlirIntegerAttrGetValueInt(space) == TW_SPACE_SHARED &&
              mlirTypeEqual(mlirShapedTypeGetElementType(array), mlirShapedTypeGetElementType(tile)) &&
              mlirShapedTypeGetRank(array) == mlirShapedTypeGetRank(tile);
  for (intptr_t d = 0; fits && d < mlirShapedTypeGetRank(tile); d++)
    fits = mlirShapedTypeGetDimSize(array, d) == mlirShapedTypeGetDimSize(tile, d);
  return fits;
}

static bool verify_threads(const verify_t *v) {
  intptr_t num = mlirOperationGetNumOperands(v->op);
  MlirOperation end = mlirBlockGetTerminator(body_of(v));
  bool fits = mlirOperationGetNumResults(v->op) == num && mlirBlockGetNumArguments(body_of(v)) == num, tiles = false;
  for (intptr_t i = 0; fits && i < num; i++)
    fits = mlirShapedTypeGetRank(operand_type(v, i)) > 0 && holds_tile(body_argument(v, i), operand_type(v, i)) &&
           holds_tile(body_argument(v, i), result_at(v, i));
  if (!fits || mlirOperationIsNull(end) || tw_op_kind(end) != TW_TILE_YIELD || mlirOperationGetNumOperands(end) != 0)
    return tw_fail(&v->check,
                   "has a body that takes no shared array of each tile's shape and dtype, or gives other tiles");
  for (MlirOperation op = mlirBlockGetFirstOperation(body_of(v)); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    mlirOperationWalk(op, look_for_tiles, &tiles, MlirWalkPreOrder);
  return !tiles || tw_fail(&v->check, "has a body that reads a tile; a thread reads it as a shared array");
}

static bool verify_mma(const verify_t *v) {
  bool is_byte = tw_elem_kind(tw_elem_of(operand_type(v, 0))) == 'i';
  return (!has(v, "unsigned_lhs") && !has(v, "unsigned_rhs")) || is_byte ||
         tw_fail(&v->check, "is marked unsigned, but multiplies %s", tw_elem_name(tw_elem_of(operand_type(v, 0))));
}

/* --- Effects ------------------------------------------------------------------------------------------ */

static bool verify_printed(const verify_t *v, intptr_t i, MlirStringRef spec) {
  tw_operand_t value;
  if (!tw_read_operand(&v->check, operand_type(v, i), "a value", &value))
    return false;
  char kind = tw_elem_kind(value.elem), wanted = tw_spec_is_of_float(spec) ? 'f' : 'i';
  return !spec.length || kind == wanted ||
         tw_fail(&v->check, "shows %s by {:%.*s}", tw_elem_name(value.elem), (int)spec.length, spec.data);
}

static bool verify_print(const verify_t *v) {
  MlirStringRef rest = mlirStringAttrGetValue(attribute(v, "format")), part;
  intptr_t places = 0, num = mlirOperationGetNumOperands(v->op);
  tw_format_kind_t kind;
  while ((kind = tw_format_next(&rest, &part)) == TW_FORMAT_TEXT || kind == TW_FORMAT_VALUE) {
    if (kind == TW_FORMAT_VALUE && places < num && !verify_printed(v, places, part))
      return false;
    places += kind == TW_FORMAT_VALUE;
  }
  if (kind == TW_FORMAT_BAD)
    return tw_fail(&v->check,
                   "has a format with a single brace or an unknown {:spec}; a brace that is text is doubled");
  if (places != num)
    return tw_fail(&v->check, "has %d values for %d places {} in its format", (int)num, (int)places);
  MlirAttribute flags = attribute(v, "is_unsigned");
  return mlirAttributeIsNull(flags) || mlirDenseArrayGetNumElements(flags) == num ||
         tw_fail(&v->check, "has %d values, but is_unsigned has %d", (int)num,
                 (int)mlirDenseArrayGetNumElements(flags));
}

static bool verify_assert(const verify_t *v) {
  tw_operand_t condition;
  return tw_read_operand(&v->check, operand_type(v, 0), "the condition", &condition) &&
         (condition.elem == TW_b1 ||
          tw_fail(&v->check, "needs a bool_ condition, found %s; compare, as in x != 0", tw_elem_name(condition.elem)));
}

/* --- Shared memory ------------------------------------------------------------------------------------ */

static MlirAttribute packed_blocks_of(MlirOperation func) {
  MlirAttribute record = mlirOperationGetAttributeByName(func, mlirStringRefCreateFromCString("tile.launch"));
  bool good = !mlirAttributeIsNull(record) && mlirAttributeIsADictionary(record);
  return good ? mlirDictionaryAttrGetElementByName(record, mlirStringRefCreateFromCString("packed_blocks"))
              : mlirAttributeGetNull();
}

static bool has_attribute(MlirOperation op, const char *name) {
  return !mlirAttributeIsNull(mlirOperationGetAttributeByName(op, mlirStringRefCreateFromCString(name)));
}

/* Threads are spoken of in SIMT kernels, in tile.threads, of which the CPU makes loops (tile.split), and where rows of
 * threads are blocks (packed_blocks of the launch record). A function that is no kernel may be part of one. */
static bool verify_simt(const verify_t *v) {
  MlirOperation func = mlirOperationGetParentOperation(v->op);
  while (!mlirOperationIsNull(func) && !tw_op_is_kind(func, TW_FUNC_FUNC) && !tw_op_is_kind(func, TW_TILE_THREADS))
    func = mlirOperationGetParentOperation(func);
  if (mlirOperationIsNull(func) || tw_op_is_kind(func, TW_TILE_THREADS) || !has_attribute(func, "tile.kernel"))
    return true;
  return has_attribute(func, "tile.simt") || has_attribute(func, "tile.split") ||
         !mlirAttributeIsNull(packed_blocks_of(func)) ||
         tw_fail(&v->check, "is about one thread, and this is a kernel of tiles; a SIMT kernel has `tile.simt`");
}

static bool verify_thread_axis(const verify_t *v) { return verify_grid_axis(v) && verify_simt(v); }

/* Whether the result is an i32, or else an i1. */
static bool verify_told(const verify_t *v, bool as_i32) {
  tw_elem_t elem = tw_elem_of(result_type(v));
  return verify_simt(v) && (elem == (as_i32 ? TW_i32 : TW_b1) ||
                            tw_fail(&v->check, "gives %s, found %s", as_i32 ? "int32" : "bool_", tw_elem_name(elem)));
}

static bool verify_sync_vote(const verify_t *v) { return verify_told(v, integer(v, "kind") == TW_BLOCK_COUNT); }
static bool verify_vote(const verify_t *v) { return verify_told(v, integer(v, "kind") == TW_VOTE_BALLOT); }

static bool verify_lane_value(const verify_t *v) {
  tw_elem_t elem = tw_elem_of(mlirValueGetType(tw_operand(v->op, TW_OPERAND_VALUE)));
  return verify_simt(v) && (elem != TW_f4e2m1 || tw_fail(&v->check, "has no value of 4 bits; cast it"));
}

static bool verify_match(const verify_t *v) { return verify_lane_value(v); }

static bool verify_shuffle(const verify_t *v) {
  MlirType type = mlirValueGetType(tw_operand(v->op, TW_OPERAND_VALUE));
  return verify_lane_value(v) && (mlirTypeEqual(type, result_type(v)) ||
                                  tw_fail(&v->check, "gives what other lanes have, of the value's type"));
}

static bool verify_align(const verify_t *v) {
  enum { MOST = 4096 };
  int64_t align = has(v, "align") ? integer(v, "align") : 1;
  return (align >= 1 && align <= MOST && (align & (align - 1)) == 0) ||
         tw_fail(&v->check, "has an alignment of %lld bytes; that is a power of two up to %d", (long long)align, MOST);
}

/* An array of static shape that a kernel makes, in a memory space. */
static bool verify_made_array(const verify_t *v, int64_t space) {
  array_t array;
  MlirAttribute where = mlirMemRefTypeGetMemorySpace(result_type(v));
  if (!read_array(v, result_type(v), &array) || !verify_simt(v))
    return false;
  if (mlirAttributeIsNull(where) || mlirIntegerAttrGetValueInt(where) != space)
    return tw_fail(&v->check, "makes an array in memory space %d", (int)space);
  return (mlirShapedTypeHasStaticShape(result_type(v)) || tw_fail(&v->check, "needs a static shape")) &&
         verify_align(v);
}

static bool verify_shared_array(const verify_t *v) { return verify_made_array(v, TW_SPACE_SHARED); }
static bool verify_local_array(const verify_t *v) { return verify_made_array(v, TW_SPACE_LOCAL); }

static bool verify_dynamic_shared(const verify_t *v) {
  MlirType type = result_type(v);
  bool row = mlirShapedTypeGetRank(type) == 1 && mlirShapedTypeIsDynamicDim(type, 0);
  return verify_simt(v) && (row || tw_fail(&v->check, "gives a row of elements, as memref<?xf32, 3>"));
}

static bool verify_const_array(const verify_t *v) {
  MlirType from = mlirAttributeGetType(attribute(v, "value")), to = result_type(v);
  MlirType x = mlirShapedTypeGetElementType(from), y = mlirShapedTypeGetElementType(to);
  bool integers = mlirTypeIsAInteger(x) && mlirTypeIsAInteger(y) && /* of which constants have no sign */
                  mlirIntegerTypeGetWidth(x) == mlirIntegerTypeGetWidth(y);
  bool same = (integers || mlirTypeEqual(x, y)) && mlirShapedTypeGetRank(from) == mlirShapedTypeGetRank(to);
  for (intptr_t d = 0; same && d < mlirShapedTypeGetRank(to); d++)
    same = mlirShapedTypeGetDimSize(from, d) == mlirShapedTypeGetDimSize(to, d);
  return verify_made_array(v, TW_SPACE_CONSTANT) &&
         (same || tw_fail(&v->check, "gives an array of the value's shape and dtype"));
}

static bool verify_view(const verify_t *v) {
  MlirType from = operand_type(v, 0), to = result_type(v);
  MlirAttribute a = mlirMemRefTypeGetMemorySpace(from), b = mlirMemRefTypeGetMemorySpace(to);
  intptr_t given = mlirOperationGetNumOperands(v->op) - 2, rank = mlirShapedTypeGetRank(to);
  return (given == 2 * rank || tw_fail(&v->check, "gives an array of %d dimensions, and has %d extents and strides",
                                       (int)rank, (int)given)) &&
         (mlirAttributeEqual(a, b) || tw_fail(&v->check, "stays in the memory space of its array")) && verify_align(v);
}

/* A tile is what a stage of a buffer holds. */
static bool verify_stage(const verify_t *v, MlirType tile_type, MlirType buffer) {
  tw_operand_t tile;
  tw_shape_t stage = {.rank = tw_buffer_type_rank(buffer) - 1};
  if (!tw_read_operand(&v->check, tile_type, "the tile", &tile))
    return false;
  if (stage.rank < 0 || stage.rank > TW_RULE_MAX_RANK)
    return tw_fail(&v->check, "the buffer has %d extents", (int)stage.rank + 1);
  for (intptr_t i = 0; i < stage.rank; i++)
    stage.dims[i] = tw_buffer_type_extent(buffer, i + 1);
  return same_elem(v, "the tile", tile.elem, "the buffer", tw_elem_of(tw_buffer_type_element(buffer))) &&
         same_shape(v, "the tile", &tile.shape, &stage);
}

static bool verify_local_load(const verify_t *v) { return verify_stage(v, result_type(v), operand_type(v, 0)); }
static bool verify_local_store(const verify_t *v) { return verify_stage(v, operand_type(v, 0), operand_type(v, 1)); }

/* --- Barriers, copies, roles ---------------------------------------------------------------------------- */

/* A producer has other threads than consumers, and less to do: they would never meet. */
static bool verify_barrier(const verify_t *v) {
  MlirOperation op = v->op, up = mlirOperationGetParentOperation(op);
  while (!mlirOperationIsNull(up) && !tw_op_is_kind(up, TW_TILE_ROLES)) {
    op = up;
    up = mlirOperationGetParentOperation(op);
  }
  return mlirOperationIsNull(up) ||
         !mlirBlockEqual(mlirOperationGetBlock(op), mlirRegionGetFirstBlock(mlirOperationGetRegion(up, 0))) ||
         tw_fail(&v->check, "stands in a producer, to which no other threads come");
}

static bool verify_alloc_barriers(const verify_t *v) {
  const int64_t most = (1 << 20) - 1; /* what the hardware counts to */
  int64_t arrivals = integer(v, "arrivals");
  return (arrivals >= 1 && arrivals <= most) ||
         tw_fail(&v->check, "expects %lld arrivals; a phase takes 1 to %lld", (long long)arrivals, (long long)most);
}

static bool verify_barrier_expect(const verify_t *v) {
  const int64_t most = (1 << 20) - 1;
  int64_t bytes = integer(v, "bytes");
  return (bytes >= 1 && bytes <= most) ||
         tw_fail(&v->check, "expects %lld bytes; a phase takes 1 to %lld", (long long)bytes, (long long)most);
}

/* The tile that fills a stage of the buffer that a copy names, of at most so many dimensions. */
static bool read_slot(const verify_t *v, intptr_t most, tw_shape_t *stage, MlirType *tile) {
  MlirType buffer = mlirValueGetType(tw_operand(v->op, TW_OPERAND_BUFFER));
  *stage = (tw_shape_t){.rank = tw_buffer_type_rank(buffer) - 1};
  if (stage->rank < 1 || stage->rank > most)
    return tw_fail(&v->check, "copies a tile of %d dimensions; it takes 1 to %d", (int)stage->rank, (int)most);
  for (intptr_t i = 0; i < stage->rank; i++)
    stage->dims[i] = tw_buffer_type_extent(buffer, i + 1);
  *tile = tw_make_type(mlirOperationGetContext(v->op), tw_elem_of(tw_buffer_type_element(buffer)), stage);
  return true;
}

static bool verify_copy(const verify_t *v, intptr_t most) {
  tw_shape_t stage;
  MlirType type;
  array_t array;
  tw_operand_t tile;
  intptr_t first, num = tw_operands(v->op, TW_OPERAND_INDEX, &first);
  return read_slot(v, most, &stage, &type) && verify_access(v, 0, type, first, num, &array, &tile);
}

static bool verify_async_copy(const verify_t *v) { return verify_copy(v, TW_RULE_MAX_RANK - 1); }

static bool verify_tma_load(const verify_t *v) {
  enum { MAX_TMA_RANK = 5 };
  return verify_copy(v, MAX_TMA_RANK);
}

static bool verify_async_gather(const verify_t *v) {
  tw_shape_t stage;
  MlirType type;
  array_t array;
  return read_slot(v, TW_RULE_MAX_RANK - 1, &stage, &type) && read_array(v, operand_type(v, 0), &array) &&
         same_elem(v, "the tile", tw_elem_of(type), "the array", array.elem) && verify_indices(v, &array, &stage) &&
         verify_optional(v, TW_OPERAND_MASK, "the mask", "a mask", TW_b1, &stage);
}

/* That boxes make up the tile is for tile-to-nvvm to see, which knows the layouts. */
static bool verify_tma_store(const verify_t *v) {
  enum { FIRST_INDEX = 3 };
  MlirType tile = operand_type(v, 0), buffer = operand_type(v, 1);
  array_t array;
  tw_operand_t unused;
  if (tw_buffer_type_rank(buffer) != mlirShapedTypeGetRank(tile) + 1)
    return tw_fail(&v->check, "takes boxes of %d dimensions from a tile of %d", (int)tw_buffer_type_rank(buffer) - 1,
                   (int)mlirShapedTypeGetRank(tile));
  if (!mlirTypeEqual(tw_buffer_type_element(buffer), mlirShapedTypeGetElementType(tile)))
    return tw_fail(&v->check, "puts a tile into a buffer of another dtype");
  return verify_access(v, 2, tile, FIRST_INDEX, mlirOperationGetNumOperands(v->op) - FIRST_INDEX, &array, &unused);
}

/* Results stand in the registers of what they are made from: each has its type, and layout. */
static bool verify_in_place(const verify_t *v) {
  intptr_t first = tw_op_is_async_product(v->op) ? mlirOperationGetNumOperands(v->op) - 1 : 0;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(v->op); i++)
    if (!mlirTypeEqual(operand_type(v, first + i), mlirValueGetType(mlirOperationGetResult(v->op, i))))
      return tw_fail(&v->check, "has a result of another type than the tile that it is made in");
  return true;
}

static bool verify_roles(const verify_t *v) {
  enum { GROUP = 4, STEP = 8, LEAST = 24, MOST = 256, MOST_CONSUMER_GROUPS = 4 };
  int64_t warps = integer(v, "producer_warps"),
          consumer_groups = has(v, "consumer_groups") ? integer(v, "consumer_groups") : 1;
  if (warps < 1)
    return tw_fail(&v->check, "has %lld producer warps; at least 1 is needed", (long long)warps);
  if (consumer_groups < 1 || consumer_groups > MOST_CONSUMER_GROUPS)
    return tw_fail(&v->check, "has %lld consumer groups; that is 1 to %d", (long long)consumer_groups,
                   MOST_CONSUMER_GROUPS);
  if (has(v, "producer_registers") != has(v, "consumer_registers"))
    return tw_fail(&v->check, "says how many registers one role has, but not the other");
  if (!has(v, "producer_registers"))
    return true;
  if (warps % GROUP != 0)
    return tw_fail(&v->check,
                   "moves registers between roles, which takes whole warpgroups, but has %lld producer warps",
                   (long long)warps);
  const int64_t counts[] = {integer(v, "producer_registers"), integer(v, "consumer_registers")};
  for (int i = 0; i < 2; i++)
    if (counts[i] < LEAST || counts[i] > MOST || counts[i] % STEP != 0)
      return tw_fail(&v->check, "gives a role %lld registers; that is a multiple of %d from %d to %d",
                     (long long)counts[i], STEP, LEAST, MOST);
  return true;
}

/* --- By kind ------------------------------------------------------------------------------------------ */

/* As the definitions name them. */
static bool (*const rules[TW_NUM_OP_KINDS])(const verify_t *v) = {
#define TW_OWN(kind, num_operands, verify) [TW_##kind] = (verify),
#include "TileVerifiers.inc"
#undef TW_OWN
};

MlirLogicalResult tw_verify_op(MlirOperation op) {
  verify_t v = {.check = {mlirOperationGetLocation(op), mlirIdentifierStr(mlirOperationGetName(op))}, .op = op};
  bool (*verify)(const verify_t *) = rules[tw_op_kind(op)];
  return verify == NULL || verify(&v) ? mlirLogicalResultSuccess() : mlirLogicalResultFailure();
}
