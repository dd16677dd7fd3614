/* match_step.c - see match_step.h */
#include "lowering/common/match_step.h"

#include "lowering/loops.h"
#include "tilewright/dialect.h"

static bool has_same_attributes(MlirOperation x, MlirOperation y) {
  if (mlirOperationGetNumAttributes(x) != mlirOperationGetNumAttributes(y))
    return false;
  for (intptr_t i = 0; i < mlirOperationGetNumAttributes(x); i++) {
    MlirNamedAttribute named = mlirOperationGetAttribute(x, i);
    MlirAttribute other = mlirOperationGetAttributeByName(y, mlirIdentifierStr(named.name));
    if (mlirAttributeIsNull(other) || !mlirAttributeEqual(named.attribute, other))
      return false;
  }
  return true;
}

/* --- What a load leaves open ---------------------------------------------------------------------------- */

#define IN_BOUNDS "tile.in_bounds"
#define PADDING "padding"

static bool is_of_load(MlirOperation op, MlirStringRef name) {
  return tw_op_loads(op) && (tw_str_is(name, IN_BOUNDS) || tw_str_is(name, PADDING));
}

/* Whether one op has the attributes of another, but for what may be said of a load. */
static bool has_attributes_of(MlirOperation op, MlirOperation other) {
  for (intptr_t i = 0; i < mlirOperationGetNumAttributes(other); i++) {
    MlirNamedAttribute named = mlirOperationGetAttribute(other, i);
    MlirStringRef name = mlirIdentifierStr(named.name);
    if (!is_of_load(op, name) && !mlirAttributeEqual(mlirOperationGetAttributeByName(op, name), named.attribute))
      return false;
  }
  return true;
}

static int64_t padding_of(MlirOperation op) { return tw_attr_int(op, PADDING, TW_PADDING_UNDETERMINED); }

bool tw_has_attributes_for_both(MlirOperation x, MlirOperation y) {
  int64_t a = padding_of(x), b = padding_of(y);
  bool open = a == b || a == TW_PADDING_UNDETERMINED || b == TW_PADDING_UNDETERMINED;
  return has_attributes_of(x, y) && has_attributes_of(y, x) && (!tw_op_loads(x) || open);
}

void tw_load_for_both(MlirOperation load, MlirOperation other) {
  if (padding_of(load) == TW_PADDING_UNDETERMINED && padding_of(other) != TW_PADDING_UNDETERMINED)
    mlirOperationSetAttributeByName(load, tw_str(PADDING), tw_attr(other, PADDING));
  if (!tw_has_attr(other, IN_BOUNDS))
    mlirOperationRemoveAttributeByName(load, tw_str(IN_BOUNDS));
}

void tw_load_for_step(const tw_step_match_t *m) {
  tw_ops_t loads = tw_ops_in(m->loop, tw_op_loads, MlirWalkPreOrder);
  for (int i = 0; i < loads.count; i++) {
    const MlirValue *other = tw_map_get(&m->same, mlirOperationGetResult(loads.at[i], 0).ptr, NULL);
    if (other && !mlirOperationIsNull(tw_def(*other)))
      tw_load_for_both(loads.at[i], tw_def(*other));
  }
  tw_ops_free(&loads);
}

/* --- Sums ----------------------------------------------------------------------------------------------- */

/* Whether two terms are one: what is made of nothing, as an iota, may be made twice. */
static bool is_same_term(MlirValue x, MlirValue y) {
  MlirOperation a = tw_def(x), b = tw_def(y);
  if (mlirValueEqual(x, y))
    return true;
  return !mlirOperationIsNull(a) && !mlirOperationIsNull(b) && mlirOperationGetNumOperands(a) == 0 &&
         tw_is_arithmetic(a) && mlirIdentifierEqual(mlirOperationGetName(a), mlirOperationGetName(b)) &&
         mlirTypeEqual(mlirValueGetType(x), mlirValueGetType(y)) && has_same_attributes(a, b);
}

static void add_term(tw_sum_t *sum, MlirValue value, int64_t factor) {
  for (int i = 0; i < sum->num; i++)
    if (is_same_term(sum->value[i], value)) {
      sum->factor[i] += factor;
      return;
    }
  if (sum->num == TW_MOST_TERMS) {
    sum->too_long = true;
    return;
  }
  sum->value[sum->num] = value;
  sum->factor[sum->num++] = factor;
}

void tw_sum_add(tw_sum_t *sum, MlirValue value, int64_t factor) {
  MlirOperation op = tw_def(value);
  int64_t number;
  if (tw_known_int(value, &number)) {
    sum->constant += factor * number;
  } else if (!mlirOperationIsNull(op) && (tw_op_is(op, TW_ARITH_ADDI) || tw_op_is(op, TW_ARITH_SUBI))) {
    tw_sum_add(sum, mlirOperationGetOperand(op, 0), factor);
    tw_sum_add(sum, mlirOperationGetOperand(op, 1), tw_op_is(op, TW_ARITH_SUBI) ? -factor : factor);
  } else if (!mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_MULI) &&
             tw_known_int(mlirOperationGetOperand(op, 1), &number) && number > INT32_MIN && number < INT32_MAX &&
             factor > INT32_MIN && factor < INT32_MAX) {
    tw_sum_add(sum, mlirOperationGetOperand(op, 0), factor * number);
  } else if (!mlirOperationIsNull(op) && tw_op_is(op, TW_TENSOR_SPLAT)) {
    tw_sum_add(sum, mlirOperationGetOperand(op, 0), factor);
  } else {
    add_term(sum, value, factor);
  }
}

bool tw_differ_by(MlirValue x, MlirValue y, int64_t *out) {
  tw_sum_t difference = {.num = 0};
  tw_sum_add(&difference, x, 1);
  tw_sum_add(&difference, y, -1);
  bool known = !difference.too_long;
  for (int i = 0; i < difference.num; i++)
    known = known && difference.factor[i] == 0;
  *out = difference.constant;
  return known;
}

static bool has_terms_of(const tw_sum_t *x, const tw_sum_t *y) {
  for (int i = 0; i < x->num; i++) {
    int64_t factor = 0;
    for (int j = 0; j < y->num; j++)
      factor = is_same_term(x->value[i], y->value[j]) ? y->factor[j] : factor;
    if (x->factor[i] != factor)
      return false;
  }
  return true;
}

static bool is_same_sum(const tw_sum_t *x, const tw_sum_t *y) {
  return !x->too_long && !y->too_long && x->constant == y->constant && has_terms_of(x, y) && has_terms_of(y, x);
}

/* --- Values --------------------------------------------------------------------------------------------- */

/* The sum that an index of the body is in that step. What the body computes otherwise is not a term: it differs by
 * step.
 */
static tw_sum_t in_step(const tw_step_match_t *m, MlirValue value) {
  tw_sum_t sum = {.num = 0}, now = {.num = 0};
  tw_sum_add(&sum, value, 1);
  now.constant = sum.constant;
  now.too_long = sum.too_long;
  for (int i = 0; i < sum.num; i++) {
    if (!mlirValueEqual(sum.value[i], tw_loop_iv(m->loop))) {
      now.too_long |= tw_defined_in(sum.value[i], tw_loop_body(m->loop));
      add_term(&now, sum.value[i], sum.factor[i]);
      continue;
    }
    for (int j = 0; j < m->iv.num; j++)
      add_term(&now, m->iv.value[j], sum.factor[i] * m->iv.factor[j]);
    now.constant += sum.factor[i] * m->iv.constant;
  }
  return now;
}

static bool is_same_index(const tw_step_match_t *m, MlirValue value, MlirValue other) {
  if (!tw_is_int(mlirValueGetType(value)))
    return false;
  tw_sum_t want = in_step(m, value), found = {.num = 0};
  tw_sum_add(&found, other, 1);
  return is_same_sum(&want, &found);
}

/* Ops that give the same each time for the same operands, as long as no array is written. */
static bool may_repeat(MlirOperation op) {
  bool computes = tw_is_arithmetic(op) || tw_op_loads(op) || tw_op_form(op) == TW_FORM_PRODUCT;
  return computes && mlirOperationGetNumRegions(op) == 0 && mlirOperationGetNumResults(op) == 1;
}

/* Whether the op gives the same for its first two operands in the other order. */
static bool commutes(MlirOperation op) {
  tw_op_class_t class = tw_op_class(op);
  return tw_op_is(op, TW_ARITH_ADDF) || class == TW_CLASS_FLOAT_PRODUCT || class == TW_CLASS_FLOAT_EXTREME ||
         class == TW_CLASS_MULTIPLE || class == TW_CLASS_EXTREME;
}

static bool has_constant_behind(MlirOperation op) {
  MlirOperation second = tw_def(mlirOperationGetOperand(op, 1));
  return !mlirOperationIsNull(second) && tw_is_constant(second);
}

/* What a carried value is in a step beside the loop may be a constant, which MLIR has moved behind the other operand.
 */
static bool is_turned(MlirOperation op, MlirOperation other) {
  return commutes(op) && has_constant_behind(other) && !has_constant_behind(op);
}

static bool is_same_op(tw_step_match_t *m, MlirOperation op, MlirOperation other) {
  if (mlirOperationIsNull(op) || mlirOperationIsNull(other) || !may_repeat(op) ||
      !mlirIdentifierEqual(mlirOperationGetName(op), mlirOperationGetName(other)) ||
      mlirOperationGetNumOperands(op) != mlirOperationGetNumOperands(other) ||
      !(m->takes_open ? tw_has_attributes_for_both(op, other) : has_same_attributes(op, other)))
    return false;
  bool turned = is_turned(op, other);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (!tw_match_step(m, mlirOperationGetOperand(op, i), mlirOperationGetOperand(other, turned && i < 2 ? 1 - i : i)))
      return false;
  m->loads += tw_op_loads(op);
  return true;
}

static bool is_carried_one(tw_step_match_t *m, intptr_t which, MlirValue other) {
  if (which >= TW_MOST_CARRIED)
    return false;
  if (mlirValueIsNull(m->carried[which]))
    m->carried[which] = other;
  return mlirValueEqual(m->carried[which], other);
}

bool tw_match_step(tw_step_match_t *m, MlirValue value, MlirValue other) {
  intptr_t which = tw_carried_position(m->loop, value);
  if (!mlirTypeEqual(mlirValueGetType(value), mlirValueGetType(other)))
    return false;
  if (which >= 0)
    return is_carried_one(m, which, other);
  if (!tw_defined_in(value, tw_loop_body(m->loop)) && mlirValueEqual(value, other))
    return true;
  const MlirValue *known = tw_map_get(&m->same, value.ptr, NULL);
  if (known && mlirValueEqual(*known, other))
    return true;
  if (!is_same_index(m, value, other) && !is_same_op(m, tw_def(value), tw_def(other)))
    return false;
  tw_map_one(&m->same, value, other);
  return true;
}
