/* check_padding.c - checks: which elements depend on what a load has found outside of its array
 *
 *   %x = tile.load %a[%i]                              padding undetermined
 *   %y = arith.addf %x, %z
 *   tile.store %y, %b[%i]
 *
 * becomes, beside these ops,
 *
 *   %sx = (%i * 64 + iota >= dim %a)                   the shadow of %x: i1 of each element
 *   %sy = %sx                                          or-ed with that of %z, if there is one
 *
 * and a check reports where %sy holds inside of %b. A shadow is made where it is first asked for, right behind its
 * value; loops and branches carry it along. What `scf.while` carries has none: its padding is not found. A selection
 * takes the shadow of the side that it takes, so that `ct.where(inside, x, 0)` is free of padding. */
#include "base/memory.h"
#include "lowering/common/check.h"
#include "lowering/loops.h"
#include "tilewright/dialect.h"

/* ---- which values may have one ----------------------------------------------------------------------------- */

static bool is_tainted(const check_t *c, MlirValue value) { return tw_map_number(&c->tainted, value, 0) != 0; }

typedef struct {
  check_t *c;
  bool changed;
} spread_t;

static void taint(void *user, MlirValue passed, MlirValue source) {
  spread_t *s = user;
  if (is_tainted(s->c, passed) || !is_tainted(s->c, source))
    return;
  tw_map_set_number(&s->c->tainted, passed, 1);
  s->changed = true;
}

static bool reads_undetermined(MlirOperation op) {
  return tw_op_loads_tile(op) && tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))) &&
         tw_attr_int(op, "padding", 0) == TW_PADDING_UNDETERMINED && !tw_has_attr(op, "tile.in_bounds");
}

static bool passes_on(MlirOperation op) {
  tw_op_form_t form = tw_op_form(op);
  return form == TW_FORM_ELEMENTWISE || form == TW_FORM_VIEW || form == TW_FORM_REDUCTION || form == TW_FORM_SCAN ||
         form == TW_FORM_PRODUCT || tw_op_is(op, TW_TENSOR_SPLAT) || tw_op_is(op, TW_TILE_EXTRACT);
}

static MlirWalkResult spread(MlirOperation op, void *user) {
  spread_t *s = user;
  tw_each_source(op, taint, s);
  bool begins = reads_undetermined(op) && !is_tainted(s->c, mlirOperationGetResult(op, 0));
  if (begins)
    tw_map_set_number(&s->c->tainted, mlirOperationGetResult(op, 0), 1);
  s->changed |= begins;
  for (intptr_t i = 0; passes_on(op) && i < mlirOperationGetNumOperands(op); i++)
    for (intptr_t r = 0; r < mlirOperationGetNumResults(op); r++)
      taint(s, mlirOperationGetResult(op, r), mlirOperationGetOperand(op, i));
  return MlirWalkResultAdvance;
}

void tw_check_find_tainted(check_t *c) {
  spread_t s = {c, true};
  while (s.changed) {
    s.changed = false;
    mlirOperationWalk(c->func, spread, &s, MlirWalkPreOrder);
  }
}

/* ---- shadows of ops ------------------------------------------------------------------------------------------ */

static MlirType bools(MlirType like) { return tw_with_element(like, mlirIntegerTypeGet(mlirTypeGetContext(like), 1)); }

static tw_builder_t behind(MlirOperation op) {
  tw_builder_t at = tw_build_before(mlirOperationGetNextInBlock(op));
  at.location = mlirOperationGetLocation(op);
  return at;
}

static MlirValue no(const tw_builder_t *at, MlirType like) { return tw_const_int(at, bools(like), 0); }

static MlirValue shadow_of_operand(check_t *c, MlirOperation op, intptr_t i) {
  return tw_check_shadow(c, mlirOperationGetOperand(op, i));
}

MlirValue tw_check_inside_tile(const tw_builder_t *at, MlirOperation access, MlirType tile) {
  MlirValue array = tw_operand(access, TW_OPERAND_ARRAY), inside = {NULL};
  int64_t order[TW_MAX_RANK];
  intptr_t first, rank = tw_operands(access, TW_OPERAND_INDEX, &first);
  bool plain = tw_attr_ints(access, "order", order, TW_MAX_RANK) == 0;
  for (intptr_t d = 0; d < rank; d++) {
    MlirValue place = tw_check_along(at, tile, d),
              index = tw_check_wide(at, mlirOperationGetOperand(access, first + d));
    MlirType i64 = tw_i64(at->context), type = mlirValueGetType(place);
    MlirValue start = tw_binary(at, "arith.muli", i64, index, tw_check_i64(at, tw_extent(tile, d)));
    place = tw_binary(at, "arith.addi", type, place, tw_check_splat(at, start, type));
    MlirValue extent = tw_check_splat(at, tw_check_extent(at, array, plain ? d : order[d]), type);
    MlirValue here = tw_check_compare(at, TW_ULT, place, extent); /* less than 0 is much, without a sign */
    inside = mlirValueIsNull(inside) ? here : tw_check_and(at, inside, here);
  }
  return inside;
}

static MlirValue shadow_of_load(MlirOperation load) {
  tw_builder_t at = behind(load);
  return tw_check_not(&at, tw_check_inside_tile(&at, load, mlirValueGetType(mlirOperationGetResult(load, 0))));
}

/* Of bools: what a false side hides of `and`, or a true one of `or`. */
static MlirValue shadow_of_logic(check_t *c, MlirOperation op) {
  MlirValue sx = shadow_of_operand(c, op, 0), sy = shadow_of_operand(c, op, 1), sum = {NULL};
  MlirValue sides[] = {mlirOperationGetOperand(op, 0), mlirOperationGetOperand(op, 1)}, shadows[] = {sx, sy};
  tw_builder_t at = behind(op);
  for (int i = 0; i < 2; i++) {
    MlirValue other = sides[1 - i];
    if (mlirValueIsNull(shadows[i]))
      continue;
    other = tw_op_is(op, TW_ARITH_ORI) ? tw_check_not(&at, other) : other;
    sum = tw_check_or(&at, sum, tw_check_and(&at, shadows[i], tw_check_or(&at, other, shadows[1 - i])));
  }
  return sum;
}

static MlirValue shadow_of_select(check_t *c, MlirOperation op) {
  MlirValue of[3];
  for (intptr_t i = 0; i < 3; i++)
    of[i] = shadow_of_operand(c, op, i);
  tw_builder_t at = behind(op);
  MlirType like = mlirValueGetType(mlirOperationGetResult(op, 0));
  MlirValue condition = mlirOperationGetOperand(op, 0), taken = {NULL};
  if (!mlirValueIsNull(of[1]) || !mlirValueIsNull(of[2]))
    taken = tw_select(&at, condition, mlirValueIsNull(of[1]) ? no(&at, like) : of[1],
                      mlirValueIsNull(of[2]) ? no(&at, like) : of[2]);
  if (!mlirValueIsNull(of[0]) && !tw_is_tile(mlirValueGetType(of[0])))
    of[0] = tw_check_splat(&at, of[0], like);
  return tw_check_or(&at, of[0], taken);
}

/* The or of all operands that have the shape of the first one with a shadow. */
static MlirValue shadow_of_operands(check_t *c, MlirOperation op) {
  MlirValue sum = {NULL};
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirValue next = shadow_of_operand(c, op, i);
    tw_builder_t at = behind(op);
    bool fits =
        mlirValueIsNull(sum) || mlirValueIsNull(next) || mlirTypeEqual(mlirValueGetType(sum), mlirValueGetType(next));
    if (fits)
      sum = tw_check_or(&at, sum, next);
  }
  return sum;
}

/* The op itself, of the shadow of its first operand. */
static MlirValue shadow_of_view(check_t *c, MlirOperation op) {
  MlirValue input = shadow_of_operand(c, op, 0);
  if (mlirValueIsNull(input))
    return input;
  tw_builder_t at = behind(op);
  MlirOperation copy = mlirOperationClone(op);
  mlirOperationSetOperand(copy, 0, input);
  mlirBlockInsertOwnedOperationBefore(at.block, at.before, copy);
  MlirValue result = mlirOperationGetResult(copy, 0);
  mlirValueSetType(result, bools(mlirValueGetType(result)));
  return result;
}

typedef enum { REDUCED, SO_FAR, SO_FAR_REVERSED } along_t;

/* Whether one of those along an axis has it, or one of those so far. */
static MlirValue any_along(const tw_builder_t *at, along_t which, MlirValue shadow, int64_t axis) {
  MlirType i32 = tw_i32(at->context), type = tw_with_element(mlirValueGetType(shadow), i32);
  MlirType result = which == REDUCED ? tw_without_axis(type, axis) : type;
  MlirValue wide = tw_unary(at, "arith.extui", type, shadow);
  tw_attr_t attrs[] = {{"kind", mlirIntegerAttrGet(i32, which == REDUCED ? TW_REDUCE_MAX : TW_REDUCE_ADD)},
                       {"axis", mlirIntegerAttrGet(i32, axis)},
                       {"reverse", mlirUnitAttrGet(at->context)}};
  MlirValue combined = tw_op1_attrs(at, which == REDUCED ? "tile.reduce" : "tile.scan", result, 1, &wide,
                                    which == SO_FAR_REVERSED ? 3 : 2, attrs);
  return tw_check_compare(at, TW_NE, combined, tw_const_int(at, result, 0));
}

static MlirValue shadow_of_combination(check_t *c, MlirOperation op) {
  MlirValue input = shadow_of_operands(c, op);
  if (mlirValueIsNull(input) || !tw_is_tile(mlirValueGetType(input)))
    return (MlirValue){NULL};
  tw_builder_t at = behind(op);
  along_t which = tw_op_form(op) != TW_FORM_SCAN ? REDUCED : tw_has_attr(op, "reverse") ? SO_FAR_REVERSED : SO_FAR;
  return any_along(&at, which, input, tw_attr_int(op, "axis", 0));
}

/* Repeats what was reduced along an axis to the shape of a product. */
static MlirValue repeated(const tw_builder_t *at, MlirValue x, MlirType like, intptr_t axis) {
  int64_t shape[TW_MAX_RANK];
  for (intptr_t d = 0; d < tw_rank(like); d++)
    shape[d] = d == axis ? 1 : tw_extent(like, d);
  MlirType one = mlirIntegerTypeGet(at->context, 1);
  x = tw_reshape(at, tw_tile_type(one, tw_rank(like), shape), x);
  return tw_broadcast(at, bools(like), x);
}

/* A row of the product depends on a row of the left side, a column on one of the right side. */
static MlirValue shadow_of_product(check_t *c, MlirOperation op) {
  MlirValue left = shadow_of_operand(c, op, 0), right = shadow_of_operand(c, op, 1), sum = shadow_of_operand(c, op, 2);
  tw_builder_t at = behind(op);
  MlirType like = mlirValueGetType(mlirOperationGetResult(op, 0));
  intptr_t last = tw_rank(like) - 1;
  if (!mlirValueIsNull(left))
    sum = tw_check_or(&at, sum, repeated(&at, any_along(&at, REDUCED, left, last), like, last));
  if (!mlirValueIsNull(right))
    sum = tw_check_or(&at, sum, repeated(&at, any_along(&at, REDUCED, right, last - 1), like, last - 1));
  return sum;
}

static MlirValue shadow_of_elementwise(check_t *c, MlirOperation op) {
  bool logic = (tw_op_is(op, TW_ARITH_ANDI) || tw_op_is(op, TW_ARITH_ORI)) &&
               tw_is_bool(mlirValueGetType(mlirOperationGetResult(op, 0)));
  return logic                           ? shadow_of_logic(c, op)
         : tw_op_is(op, TW_ARITH_SELECT) ? shadow_of_select(c, op)
                                         : shadow_of_operands(c, op);
}

static MlirValue shadow_of_op(check_t *c, MlirOperation op) {
  tw_op_form_t form = tw_op_form(op);
  return reads_undetermined(op)                              ? shadow_of_load(op)
         : form == TW_FORM_ELEMENTWISE                       ? shadow_of_elementwise(c, op)
         : form == TW_FORM_REDUCTION || form == TW_FORM_SCAN ? shadow_of_combination(c, op)
         : form == TW_FORM_PRODUCT                           ? shadow_of_product(c, op)
                                                             : shadow_of_view(c, op);
}

/* ---- shadows that loops and branches carry --------------------------------------------------------------------- */

/* The shadow of operand `i` of an op, or false. */
static MlirValue shadow_or_no(check_t *c, MlirOperation op, intptr_t i) {
  MlirValue shadow = shadow_of_operand(c, op, i);
  tw_builder_t at = tw_build_before(op);
  return mlirValueIsNull(shadow) ? no(&at, mlirValueGetType(mlirOperationGetOperand(op, i))) : shadow;
}

static void note(check_t *c, MlirValue value, MlirValue shadow) {
  tw_map_set_number(&c->tainted, value, 1);
  tw_map_one(&c->shadows, value, shadow);
}

static bool has_shadow(const check_t *c, MlirValue value) { return tw_map_get(&c->shadows, value.ptr, NULL) != NULL; }

/* Which results or carried values are tainted; how many. */
static intptr_t tainted_of(const check_t *c, MlirBlock body, intptr_t skip, MlirOperation op, intptr_t *which) {
  intptr_t count = 0, all = mlirOperationGetNumResults(op);
  for (intptr_t i = 0; i < all; i++)
    if (is_tainted(c, skip ? mlirBlockGetArgument(body, i + skip) : mlirOperationGetResult(op, i)))
      which[count++] = i;
  return count;
}

/* A loop is known by its body: the op is another one when it carries more. */
static void carry_shadows(check_t *c, MlirBlock body) {
  MlirOperation loop = mlirBlockGetParentOperation(body);
  intptr_t most = mlirOperationGetNumResults(loop) + 1;
  intptr_t *which = tw_allocate((size_t)most, sizeof *which);
  MlirValue *values = tw_allocate((size_t)most, sizeof *values);
  intptr_t count = tainted_of(c, body, TW_FOR_CARRIED, loop, which);
  for (intptr_t k = 0; k < count; k++)
    values[k] = shadow_or_no(c, mlirBlockGetParentOperation(body), which[k] + TW_FOR_INITS);
  if (count > 0 && !has_shadow(c, mlirBlockGetArgument(body, which[0] + TW_FOR_CARRIED))) {
    loop = mlirBlockGetParentOperation(body);
    intptr_t first = mlirOperationGetNumResults(loop);
    loop = tw_carry_more(loop, count, values);
    for (intptr_t k = 0; k < count; k++) {
      note(c, tw_carried(loop, which[k]), tw_carried(loop, first + k));
      note(c, mlirOperationGetResult(loop, which[k]), mlirOperationGetResult(loop, first + k));
    }
    for (intptr_t k = 0; k < count; k++)
      values[k] = shadow_or_no(c, mlirBlockGetTerminator(body), which[k]);
    tw_extend_yield(body, count, values);
  }
  free(values);
  free(which);
}

/* The branch again, with the results of both arms' longer yields. */
static MlirOperation with_results_of_yields(MlirOperation old) {
  tw_builder_t at = tw_build_before(old);
  MlirOperation yield = mlirBlockGetTerminator(tw_region_block(old, 0));
  intptr_t num = mlirOperationGetNumOperands(yield);
  MlirType *types = tw_allocate((size_t)num + 1, sizeof *types);
  for (intptr_t i = 0; i < num; i++)
    types[i] = mlirValueGetType(mlirOperationGetOperand(yield, i));
  MlirRegion regions[] = {mlirRegionCreate(), mlirRegionCreate()};
  MlirValue condition = mlirOperationGetOperand(old, 0);
  for (int r = 0; r < 2; r++)
    mlirRegionTakeBody(regions[r], mlirOperationGetRegion(old, r));
  MlirOperation branch = tw_build_branch(&at, condition, num, types, regions);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(old); i++)
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(old, i), mlirOperationGetResult(branch, i));
  mlirOperationDestroy(old);
  free(types);
  return branch;
}

/* The same for a branch, known by its first arm. */
static void branch_shadows(check_t *c, MlirBlock then) {
  MlirOperation branch = mlirBlockGetParentOperation(then);
  MlirBlock arms[] = {then, tw_region_block(branch, 1)};
  intptr_t most = mlirOperationGetNumResults(branch) + 1;
  intptr_t *which = tw_allocate((size_t)most, sizeof *which);
  MlirValue *values[2];
  intptr_t count = tainted_of(c, then, 0, branch, which);
  for (int r = 0; r < 2; r++) {
    values[r] = tw_allocate((size_t)most, sizeof *values[r]);
    for (intptr_t k = 0; k < count; k++)
      values[r][k] = shadow_or_no(c, mlirBlockGetTerminator(arms[r]), which[k]);
  }
  branch = mlirBlockGetParentOperation(then);
  if (count > 0 && !has_shadow(c, mlirOperationGetResult(branch, which[0]))) {
    intptr_t first = mlirOperationGetNumResults(branch);
    for (int r = 0; r < 2; r++)
      tw_extend_yield(arms[r], count, values[r]);
    branch = with_results_of_yields(branch);
    for (intptr_t k = 0; k < count; k++)
      note(c, mlirOperationGetResult(branch, which[k]), mlirOperationGetResult(branch, first + k));
  }
  for (int r = 0; r < 2; r++)
    free(values[r]);
  free(which);
}

/* Of what an op with a body passes on. The value may be gone afterwards: where it stands is not. */
static MlirValue passed_shadow(check_t *c, MlirBlock body, intptr_t at, bool is_argument) {
  MlirOperation op = mlirBlockGetParentOperation(body);
  if (tw_op_is(op, TW_SCF_FOR))
    carry_shadows(c, body);
  else if (tw_op_is(op, TW_SCF_IF))
    branch_shadows(c, body);
  op = mlirBlockGetParentOperation(body);
  MlirValue value = is_argument ? mlirBlockGetArgument(body, at) : mlirOperationGetResult(op, at);
  MlirValue none = {NULL};
  return has_shadow(c, value) ? tw_map_value(&c->shadows, value) : none;
}

MlirValue tw_check_shadow(check_t *c, MlirValue value) {
  MlirValue none = {NULL};
  if (!is_tainted(c, value))
    return none;
  if (has_shadow(c, value))
    return tw_map_get(&c->shadows, value.ptr, NULL)[0];
  if (mlirValueIsABlockArgument(value))
    return passed_shadow(c, mlirBlockArgumentGetOwner(value), mlirBlockArgumentGetArgNumber(value), true);
  MlirOperation op = mlirOpResultGetOwner(value);
  intptr_t at = mlirOpResultGetResultNumber(value);
  if (tw_op_is(op, TW_SCF_FOR) || tw_op_is(op, TW_SCF_IF))
    return passed_shadow(c, tw_region_block(op, 0), at, false);
  MlirValue shadow = passes_on(op) || reads_undetermined(op) ? shadow_of_op(c, op) : none;
  tw_map_one(&c->shadows, mlirOperationGetResult(op, at), shadow);
  return shadow;
}
