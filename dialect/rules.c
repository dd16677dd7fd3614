/* rules.c - the type of an op's result from the types of its operands
 *
 * Elementwise ops are all decided by their rows of the op table: the operands broadcast, their dtypes promote, and the
 * row says which dtypes are accepted and what becomes of the common one. */
#include "rules.h"
#include "check.h"
#include "dialect/layouts.h"
#include "op_table.h"

#include "mlir-c/BuiltinAttributes.h"

#include <string.h>

enum { MAX_OPERANDS = 3 };
static const MlirType failed = {NULL};

typedef struct {
  tw_check_t check;
  MlirContext context;
  MlirAttribute attributes;
  intptr_t num;
  tw_operand_t operands[MAX_OPERANDS];
  const MlirType *types;
} infer_t;

static MlirAttribute attribute(const infer_t *at, const char *name) {
  if (mlirAttributeIsNull(at->attributes) || !mlirAttributeIsADictionary(at->attributes))
    return mlirAttributeGetNull();
  return mlirDictionaryAttrGetElementByName(at->attributes, mlirStringRefCreateFromCString(name));
}

static int64_t attribute_int(const infer_t *at, const char *name, int64_t otherwise) {
  MlirAttribute value = attribute(at, name);
  return !mlirAttributeIsNull(value) && mlirAttributeIsAInteger(value) ? mlirIntegerAttrGetValueInt(value) : otherwise;
}

/* --- Elementwise ---------------------------------------------------------------------------------- */

/* A dtype that the op accepts and that an operand of `elem` is best converted to. */
static const char *remedy(const char *accepts, tw_elem_t elem) {
  bool to_float = strchr(accepts, 'f') && (!strchr(accepts, 'i') || tw_elem_kind(elem) != 'b');
  return to_float ? "float32" : "int32";
}

static const char *accepted_text(const char *accepts) {
  bool b = strchr(accepts, 'b'), i = strchr(accepts, 'i'), f = strchr(accepts, 'f');
  return b && i && f ? "bools, integers and floats"
         : b && i    ? "integers and bools"
         : i && f    ? "integers and floats"
         : i         ? "integers"
                     : "floats";
}

static bool check_accepts(const infer_t *at, const char *accepts, tw_elem_t elem) {
  char kind = tw_elem_kind(elem);
  if (strchr(accepts, kind))
    return true;
  if (kind == 'n')
    return tw_fail(&at->check,
                   "is not defined on %s, which serves storage, casts and mma only; convert first, as in "
                   "x.astype(ct.float32)",
                   tw_elem_name(elem));
  return tw_fail(&at->check, "is defined on %s, found %s; convert first, as in x.astype(ct.%s)", accepted_text(accepts),
                 tw_elem_name(elem), remedy(accepts, elem));
}

/* A dtype that holds both, for the remedy of the message. */
static tw_elem_t wide_enough(tw_elem_t a, tw_elem_t b) {
  if (tw_elem_kind(a) == 'i' && tw_elem_kind(b) == 'i') {
    tw_elem_t u = a < b ? a : b, s = a < b ? b : a; /* unsigned ones come first */
    int widths = u - TW_u8 + 1, width = s - TW_i8;
    widths = widths > width ? widths : width;
    return (tw_elem_t)(TW_i8 + (widths > 3 ? 3 : widths));
  }
  return a == TW_f64 || b == TW_f64 ? TW_f64 : TW_f32;
}

static bool promote(const infer_t *at, tw_elem_t a, tw_elem_t b, tw_elem_t *out) {
  *out = tw_promote(a, b);
  if (*out != TW_NO_ELEM)
    return true;
  return tw_fail(&at->check, "no implicit promotion between %s and %s; convert one operand, as in x.astype(ct.%s)",
                 tw_elem_name(a), tw_elem_name(b), tw_elem_name(wide_enough(a, b)));
}

static bool is_same(const infer_t *at, const char *accepts, tw_elem_t a, tw_elem_t b) {
  if (a == b)
    return true;
  if (!check_accepts(at, accepts, a) || !check_accepts(at, accepts, b))
    return false;
  tw_elem_t wide = tw_promote(a, b) == TW_NO_ELEM ? wide_enough(a, b) : tw_promote(a, b);
  return tw_fail(&at->check,
                 "is defined on bits of one dtype, found %s and %s; convert one operand, as in x.astype(ct.%s)",
                 tw_elem_name(a), tw_elem_name(b), tw_elem_name(wide));
}

static tw_elem_t result_elem(const infer_t *at, tw_result_rule_t rule, tw_elem_t common) {
  if (rule == TW_RESULT_BOOL)
    return TW_b1;
  bool stays_integral = !mlirAttributeIsNull(attribute(at, "integral"));
  if (rule == TW_RESULT_FLOAT && tw_elem_kind(common) == 'i' && !stays_integral)
    return TW_f32;
  return common;
}

static MlirType infer_elementwise(const infer_t *at, const tw_op_info_t *info) {
  tw_elem_t common = at->operands[0].elem;
  tw_shape_t shape = at->operands[0].shape;
  for (intptr_t i = 1; i < at->num; i++)
    if (!(info->rule == TW_RESULT_SAME ? is_same(at, info->accepts, common, at->operands[i].elem)
                                       : promote(at, common, at->operands[i].elem, &common)) ||
        !tw_broadcast_shapes(&at->check, &shape, &at->operands[i].shape, &shape))
      return failed;
  if (!check_accepts(at, info->accepts, common))
    return failed;
  return tw_make_type(at->context, result_elem(at, info->rule, common), &shape);
}

static MlirType infer_select(const infer_t *at, const tw_op_info_t *info) {
  const tw_operand_t *condition = &at->operands[0], *x = &at->operands[1], *y = &at->operands[2];
  tw_elem_t common;
  tw_shape_t shape;
  if (condition->elem != TW_b1) {
    tw_fail(&at->check, "needs a bool_ condition, found %s; compare, as in x != 0", tw_elem_name(condition->elem));
    return failed;
  }
  if (!promote(at, x->elem, y->elem, &common) || !check_accepts(at, info->accepts, common) ||
      !tw_broadcast_shapes(&at->check, &x->shape, &y->shape, &shape) ||
      !tw_broadcast_shapes(&at->check, &shape, &condition->shape, &shape))
    return failed;
  return tw_make_type(at->context, common, &shape);
}

/* --- Shape ---------------------------------------------------------------------------------------- */

static MlirType infer_permute(const infer_t *at, const tw_op_info_t *info) {
  (void)info;
  const tw_shape_t *from = &at->operands[0].shape;
  int64_t order[TW_RULE_MAX_RANK];
  intptr_t num = tw_read_ints(attribute(at, "order"), order, TW_RULE_MAX_RANK);
  if (num != from->rank || !tw_is_permutation(num, order)) {
    tw_fail(&at->check, "order %s is not a permutation of the %d axes of the tile",
            tw_ints_text(num < 0                  ? 0
                         : num < TW_RULE_MAX_RANK ? num
                                                  : TW_RULE_MAX_RANK,
                         order),
            (int)from->rank);
    return failed;
  }
  tw_shape_t shape = {.rank = num};
  int perm[TW_RULE_MAX_RANK];
  for (intptr_t i = 0; i < num; i++) {
    shape.dims[i] = from->dims[order[i]];
    perm[i] = (int)order[i];
  }
  MlirType type = tw_make_type(at->context, at->operands[0].elem, &shape);
  tw_layout_t layout;
  if (!tw_layout_of_type(at->types[0], &layout))
    return type;
  layout = tw_layout_permute(&layout, perm);
  return tw_type_with_layout(type, &layout);
}

static MlirType infer_cat(const infer_t *at, const tw_op_info_t *info) {
  (void)info;
  const tw_operand_t *x = &at->operands[0], *y = &at->operands[1];
  int64_t axis = attribute_int(at, "axis", -1);
  if (axis < 0 || axis >= x->shape.rank) {
    tw_fail(&at->check, "axis %lld is outside of a tile of %d dimensions", (long long)axis, (int)x->shape.rank);
    return failed;
  }
  if (x->elem != y->elem || !tw_same_shape(&x->shape, &y->shape)) {
    tw_fail(&at->check, "needs two tiles of one dtype and shape, found %s of shape %s and %s of shape %s",
            tw_elem_name(x->elem), tw_shape_text(&x->shape), tw_elem_name(y->elem), tw_shape_text(&y->shape));
    return failed;
  }
  tw_shape_t shape = x->shape;
  shape.dims[axis] *= 2;
  return tw_make_type(at->context, x->elem, &shape);
}

/* --- Reduction ------------------------------------------------------------------------------------ */

static bool check_axis(const infer_t *at, int64_t axis) {
  int rank = (int)at->operands[0].shape.rank;
  return (axis >= 0 && axis < rank) ||
         tw_fail(&at->check, "axis %lld is outside of a tile of %d dimensions", (long long)axis, rank);
}

static MlirType infer_reduce(const infer_t *at, const tw_op_info_t *info) {
  const tw_operand_t *input = &at->operands[0];
  int64_t axis = attribute_int(at, "axis", -1), kind = attribute_int(at, "kind", TW_REDUCE_ADD);
  if (!check_accepts(at, info->accepts, input->elem) || !check_axis(at, axis))
    return failed;
  tw_shape_t shape = {.rank = input->shape.rank - 1};
  for (intptr_t i = 0; i < shape.rank; i++)
    shape.dims[i] = input->shape.dims[i < axis ? i : i + 1];
  bool gives_index = kind == TW_REDUCE_ARGMIN || kind == TW_REDUCE_ARGMAX;
  bool counts = input->elem == TW_b1 && (kind == TW_REDUCE_ADD || kind == TW_REDUCE_MUL);
  MlirType type = tw_make_type(at->context, gives_index || counts ? TW_i32 : input->elem, &shape);
  tw_layout_t layout;
  if (shape.rank == 0 || !tw_layout_of_type(at->types[0], &layout))
    return type;
  layout = tw_layout_slice(&layout, (int)axis, false);
  return tw_type_with_layout(type, &layout);
}

/* Sums and products of bools count in i32. */
static MlirType infer_scan(const infer_t *at, const tw_op_info_t *info) {
  const tw_operand_t *input = &at->operands[0];
  int64_t kind = attribute_int(at, "kind", TW_REDUCE_ADD);
  if (!check_accepts(at, info->accepts, input->elem) || !check_axis(at, attribute_int(at, "axis", -1)))
    return failed;
  if (kind != TW_REDUCE_ADD && kind != TW_REDUCE_MUL) {
    tw_fail(&at->check, "scans by add or mul only");
    return failed;
  }
  if (input->elem != TW_b1)
    return at->types[0]; /* the layout too, where there is one */
  MlirType type = tw_make_type(at->context, TW_i32, &input->shape);
  tw_layout_t layout;
  return tw_layout_of_type(at->types[0], &layout) ? tw_type_with_layout(type, &layout) : type;
}

/* --- Matrix product ------------------------------------------------------------------------------- */

static bool is_byte(tw_elem_t elem) { return elem == TW_i8 || elem == TW_u8; }
static bool is_fp8(tw_elem_t elem) { return elem == TW_f8e4m3 || elem == TW_f8e5m2; }

/* The accumulators that inputs of a dtype may have; the second may be TW_NO_ELEM. */
static bool accumulators(tw_elem_t input, tw_elem_t out[2]) {
  out[1] = input == TW_f16 || is_fp8(input) ? TW_f16 : TW_NO_ELEM;
  if (input == TW_f16 || input == TW_bf || input == TW_f32 || input == TW_tf32 || is_fp8(input))
    out[0] = TW_f32;
  else if (input == TW_f64)
    out[0] = TW_f64;
  else if (is_byte(input))
    out[0] = TW_i32;
  else
    return false;
  return true;
}

static bool check_mma_elems(const infer_t *at) {
  tw_elem_t x = at->operands[0].elem, y = at->operands[1].elem, acc = at->operands[2].elem, allowed[2];
  if (x != y && !(is_byte(x) && is_byte(y)) && !(is_fp8(x) && is_fp8(y)))
    return tw_fail(&at->check, "x is %s and y is %s; they must be the same, or both 8-bit floats or bytes",
                   tw_elem_name(x), tw_elem_name(y));
  if (!accumulators(x, allowed))
    return tw_fail(&at->check,
                   "inputs of %s are not supported; expected float16, bfloat16, tfloat32, float32, float64, "
                   "float8_e4m3fn, float8_e5m2, int8 or uint8",
                   tw_elem_name(x));
  if (acc == allowed[0] || (acc == allowed[1] && acc != TW_NO_ELEM))
    return true;
  return tw_fail(&at->check, "inputs of %s need an accumulator of %s%s, found %s", tw_elem_name(x),
                 tw_elem_name(allowed[0]), allowed[1] == TW_NO_ELEM ? "" : " or float16", tw_elem_name(acc));
}

static MlirType infer_mma(const infer_t *at, const tw_op_info_t *info) {
  (void)info;
  const tw_shape_t *x = &at->operands[0].shape, *y = &at->operands[1].shape, *acc = &at->operands[2].shape;
  intptr_t rank = x->rank, m = rank - 2, n = rank - 1;
  bool ok = (rank == 2 || rank == 3) && y->rank == rank && acc->rank == rank && x->dims[n] == y->dims[m] &&
            acc->dims[m] == x->dims[m] && acc->dims[n] == y->dims[n];
  if (ok && rank == 3)
    ok = x->dims[0] == y->dims[0] && x->dims[0] == acc->dims[0];
  if (!ok) {
    tw_fail(&at->check,
            "needs shapes (m, k), (k, n) and (m, n), or these with one batch axis in front; found %s, %s and %s",
            tw_shape_text(x), tw_shape_text(y), tw_shape_text(acc));
    return failed;
  }
  return check_mma_elems(at) ? at->types[2] : failed; /* the layout too, where there is one */
}

/* --- By kind -------------------------------------------------------------------------------------- */

/* As the definitions name them. */
static const struct {
  intptr_t num_operands;
  MlirType (*infer)(const infer_t *at, const tw_op_info_t *info);
} own_rules[TW_NUM_OP_KINDS] = {
#define TW_OWN(kind, num_operands, infer) [TW_##kind] = {num_operands, infer},
#include "TileInference.inc"
#undef TW_OWN
};

static bool read_operands(infer_t *at, intptr_t num, const MlirType *types) {
  static const char *const names[][MAX_OPERANDS] = {
      {"the operand"}, {"the left operand", "the right operand"}, {"operand 0", "operand 1", "operand 2"}};
  if (num < 1 || num > MAX_OPERANDS)
    return tw_fail(&at->check, "has %d operands", (int)num);
  at->num = num;
  for (intptr_t i = 0; i < num; i++)
    if (!tw_read_operand(&at->check, types[i], names[num - 1][i], &at->operands[i]))
      return false;
  return true;
}

MlirType tw_infer_op(MlirStringRef name, MlirLocation location, intptr_t num_operands, const MlirType *operands,
                     MlirAttribute attributes) {
  infer_t at = {.check = {location, name}, .attributes = attributes, .types = operands};
  at.context = mlirLocationGetContext(location);
  tw_op_kind_t kind = tw_kind_named(name);
  intptr_t expected = own_rules[kind].num_operands;
  if (!read_operands(&at, num_operands, operands))
    return failed;
  if (own_rules[kind].infer == NULL)
    return infer_elementwise(&at, tw_op_info(kind));
  if (num_operands == expected)
    return own_rules[kind].infer(&at, tw_op_info(kind));
  tw_fail(&at.check, "has %d operands, expected %d", (int)num_operands, (int)expected);
  return failed;
}
