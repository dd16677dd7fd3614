/* bound_accesses.c - part of tile-resize-tiles: masks of accesses become bounds of arrays, flat offsets rows and
 * columns
 *
 *   before   %o = splat(%i * 128 * %K + %k * 64) + iota(rows) * splat(%K) + iota(columns)
 *            %m = (splat(%i * 128) + iota(rows) < %M) & (splat(%k * 64) + iota(columns) < %K)
 *            %t = tile.gather %A[%o] mask %m else %zero {check_bounds}      : memref<?xbf16, strided<[1]>>
 *
 *   after    %t = tile.load %V[%i, %k] padding zero                         : memref<?x?xbf16, strided<[?, 1]>>
 *
 * where %V is an argument that shows %M x %K of %A, a row each %K elements (array_views.h). So what a program spells
 * with masks, or with offsets of its own, is copied as a tile of an array with two dimensions is. The same is done to
 *
 *   a gather or scatter with masks of an array of any rank, whose extents become the least of theirs and the bounds;
 *   a load of which a select keeps what lies below the bounds, and takes the load's padding elsewhere.
 *
 * What must hold: a comparison says that the index along one axis is less than a number that the launch can compute. An
 * offset is (rows) * (pitch) + (columns), where the launch can compute the pitch, rows do not differ along the axis of
 * the tile along which columns do, and no column is negative. Below which number columns lie a mask says, or the loop
 * that counts them up. The launch looks whether that is at most the pitch, and whether the rows lie in the array:
 * elsewhere an offset beyond a row would be one of the next row, and the launch takes a kernel with the hint
 * `as_launched`. */
#include "lowering/common/gather_to_load.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/grid/array_views.h"
#include "lowering/gpu/grid/index_masks.h"
#include "lowering/gpu/grid/resize_tiles.h"
#include "lowering/loops.h"
#include "tilewright/dialect.h"

#include <stdio.h>

enum { ROW, COLUMN };

typedef struct {
  MlirOperation func, op, select; /* the select behind a load, or null */
  MlirValue array, padding;
  MlirType tile;
  int rank; /* of what is shown */
  tw_index_sum_t index[TW_MAX_MAP_RANK];
  tw_launch_number_t bounds[TW_MAX_MAP_RANK], pitch;
  bool is_flat, has_bounds; /* beside the array's own extents */
  tw_index_mask_t mask;
} bounded_access_t;

/* ---- flat offsets ------------------------------------------------------------------------------------------ */

static bool counts_up(const tw_index_term_t *term) {
  return term->axis >= 0 && mlirValueIsNull(term->tile) && term->num_scalars == 0 && term->factor == 1;
}

/* What the columns count along, and the pitch: of the terms along another axis the one with the least number. */
static bool find_axes(const tw_index_sum_t *offset, const tw_index_term_t **column, tw_index_term_t *pitch) {
  const tw_index_term_t *row = NULL;
  *column = NULL;
  for (int i = 0; i < offset->count; i++) {
    const tw_index_term_t *term = &offset->terms[i];
    if (counts_up(term) && *column)
      return false;
    if (counts_up(term))
      *column = term;
    else if (term->axis >= 0 && (!row || term->factor < row->factor))
      row = term;
  }
  if (!*column || !row || row->axis == (*column)->axis || row->factor <= 0)
    return false;
  *pitch = *row;
  pitch->axis = -1;
  pitch->tile = (MlirValue){NULL};
  return true;
}

/* Whether a mask compares the columns with this number added to them. */
static bool goes_with_columns(const tw_index_mask_t *mask, const tw_index_term_t *column, const tw_index_term_t *term) {
  for (int i = 0; i < mask->count; i++) {
    tw_index_sum_t without = mask->comparisons[i].below;
    int count = without.count;
    if (tw_index_add_term(&without, column, -1) && without.count == count - 1 &&
        tw_index_add_term(&without, term, -1) && without.count == count - 2)
      return true;
  }
  return false;
}

/* Numbers of the program that are multiples of the pitch count rows, if no mask says otherwise. */
static bool split_offset(const tw_index_sum_t *offset, bounded_access_t *a) {
  const tw_index_term_t *column;
  tw_index_term_t pitch, rows;
  if (!find_axes(offset, &column, &pitch))
    return false;
  a->index[ROW] = a->index[COLUMN] = (tw_index_sum_t){.count = 0};
  for (int i = 0; i < offset->count; i++) {
    const tw_index_term_t *term = &offset->terms[i];
    bool divides = tw_index_divide(term, &pitch, &rows);
    bool is_column =
        term->axis == column->axis || (term->axis < 0 && (!divides || goes_with_columns(&a->mask, column, term)));
    if (!is_column && !divides)
      return false;
    if (!tw_index_add_term(&a->index[is_column ? COLUMN : ROW], is_column ? term : &rows, 1))
      return false;
  }
  tw_index_sum_t by = {.count = 0};
  (void)tw_index_add_term(&by, &pitch, 1);
  a->pitch = tw_launch_number_of(a->func, &by);
  return a->pitch.known;
}

/* The loop by one from 0 whose variable it is; null for anything else. */
static MlirOperation loop_of(MlirValue value) {
  MlirOperation loop =
      mlirValueIsABlockArgument(value) ? mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value)) : tw_null_op();
  int64_t from, step;
  bool ok = !mlirOperationIsNull(loop) && tw_op_is(loop, TW_SCF_FOR) && mlirValueEqual(value, tw_loop_iv(loop)) &&
            tw_known_int(mlirOperationGetOperand(loop, 0), &from) && from == 0 &&
            tw_known_int(mlirOperationGetOperand(loop, 2), &step) && step == 1;
  return ok ? loop : tw_null_op();
}

/* What columns stay below that a loop counts up, a tile's extent in each step; or of a tile that no loop moves. */
static tw_launch_number_t reach_of(const bounded_access_t *a, const tw_index_sum_t *columns) {
  tw_launch_number_t none = {.known = false};
  tw_index_sum_t reach = {.count = 0};
  tw_index_term_t steps = {.factor = 0, .axis = -1};
  int64_t extent = 0;
  for (int i = 0; i < columns->count; i++) {
    const tw_index_term_t *term = &columns->terms[i];
    bool moves = term->axis < 0 && term->num_scalars == 1 && steps.num_scalars == 0;
    if (counts_up(term) && extent == 0)
      extent = tw_extent(a->tile, term->axis);
    else if (moves && !mlirOperationIsNull(loop_of(term->scalars[0])))
      steps = *term;
    else
      return none;
  }
  if (steps.num_scalars && steps.factor != extent)
    return none;
  if (steps.num_scalars)
    steps.scalars[0] = mlirOperationGetOperand(loop_of(steps.scalars[0]), 1);
  else
    steps.factor = extent;
  (void)tw_index_add_term(&reach, &steps, 1);
  return tw_launch_number_of(a->func, &reach);
}

/* ---- bounds ---------------------------------------------------------------------------------------------------- */

/* Whether it is the extent of the array along that axis. */
static bool is_own_extent(const bounded_access_t *a, const tw_index_sum_t *bound, int axis) {
  bool one = !a->is_flat && bound->count == 1 && bound->terms[0].factor == 1 && bound->terms[0].num_scalars == 1;
  return one && tw_word_behind(a->func, bound->terms[0].scalars[0]) == tw_first_word(a->array) + 1 + axis;
}

static bool is_same_number(const tw_launch_number_t *x, const tw_launch_number_t *y) {
  bool same = x->factors.count == y->factors.count && x->factors.constant == y->factors.constant;
  for (uint32_t i = 0; same && i < x->factors.count; i++)
    same = x->factors.at[i].word == y->factors.at[i].word && x->factors.at[i].plus == y->factors.at[i].plus &&
           x->factors.at[i].by == y->factors.at[i].by;
  return same;
}

/* Whether the comparison says no more than a bound of that axis does, which it may set. */
static bool meets(bounded_access_t *a, const tw_index_sum_t *below, int axis) {
  tw_index_sum_t bound = a->index[axis], least = a->index[axis];
  if (!tw_index_add(&bound, below, -1) || !tw_index_add(&least, below, 1))
    return false;
  if (least.count == 1 && least.terms[0].axis < 0 && least.terms[0].num_scalars == 0 && least.terms[0].factor == -1)
    return true; /* not negative, as all that lies in an array */
  if (!tw_index_is_uniform(&bound))
    return false;
  if (is_own_extent(a, &bound, axis))
    return true;
  tw_launch_number_t number = tw_launch_number_of(a->func, &bound);
  if (!number.known || (a->bounds[axis].known && !is_same_number(&number, &a->bounds[axis])))
    return false;
  a->bounds[axis] = number;
  a->has_bounds = true;
  return true;
}

/* Comparisons that bounds say are dropped; whether there are any. */
static bool bound_by_mask(bounded_access_t *a) {
  bool some = false;
  for (int i = 0; i < a->mask.count; i++) {
    bool met = false;
    for (int d = 0; d < a->rank && !met; d++)
      met = meets(a, &a->mask.comparisons[i].below, d);
    a->mask.parts[a->mask.comparisons[i].part].is_needed |= !met;
    some |= met;
  }
  return some;
}

/* ---- reading an access ------------------------------------------------------------------------------------------ */

static bool is_argument(MlirOperation func, MlirValue array) {
  return mlirValueIsABlockArgument(array) && mlirBlockEqual(mlirBlockArgumentGetOwner(array), tw_region_block(func, 0));
}

static bool is_row_of_elements(MlirType array) {
  int64_t strides[TW_MAX_RANK];
  return mlirShapedTypeGetRank(array) == 1 && tw_static_strides(array, strides) && strides[0] == 1;
}

/* Whether numbers that are known now are more than the pitch. */
static bool is_beyond(const tw_launch_number_t *columns, const tw_launch_number_t *pitch) {
  bool known = columns->factors.count == 0 && pitch->factors.count == 0;
  return known && columns->factors.constant > pitch->factors.constant;
}

/* Of a gather or scatter. */
static bool read_elements(bounded_access_t *a) {
  intptr_t first, rank = tw_operands(a->op, TW_OPERAND_INDICES, &first);
  a->tile = mlirValueGetType(tw_moved_tile(a->op));
  if (rank < 1 || rank > TW_MAX_MAP_RANK || !tw_is_tile(a->tile))
    return false;
  for (intptr_t d = 0; d < rank; d++)
    if (!tw_read_index_sum(mlirOperationGetOperand(a->op, first + d), &a->index[d]))
      return false;
  a->rank = (int)rank;
  tw_read_mask(tw_operand(a->op, TW_OPERAND_MASK), &a->mask);
  a->padding = tw_op_gathers(a->op) ? tw_operand(a->op, TW_OPERAND_PADDING) : (MlirValue){NULL};
  tw_index_sum_t offset = a->index[0];
  a->is_flat = rank == 1 && is_row_of_elements(mlirValueGetType(a->array)) && split_offset(&offset, a);
  if (!a->is_flat)
    return bound_by_mask(a);
  a->rank = 2;
  (void)bound_by_mask(a);
  if (!a->bounds[COLUMN].known)
    a->bounds[COLUMN] = reach_of(a, &a->index[COLUMN]);
  return a->bounds[COLUMN].known && tw_index_is_natural(&a->index[COLUMN]) && !is_beyond(&a->bounds[COLUMN], &a->pitch);
}

/* The select that is all that uses a loaded tile, in this or another shape, with what the load gives elsewhere. */
static bool find_select(bounded_access_t *a) {
  MlirOperation user = tw_only_user(mlirOperationGetResult(a->op, 0));
  a->tile = mlirValueGetType(mlirOperationGetResult(a->op, 0));
  if (!mlirOperationIsNull(user) && tw_op_form(user) == TW_FORM_VIEW) {
    a->tile = mlirValueGetType(mlirOperationGetResult(user, 0));
    user = tw_only_user(mlirOperationGetResult(user, 0));
  }
  if (mlirOperationIsNull(user) || !tw_op_is(user, TW_ARITH_SELECT) || !tw_is_tile(a->tile))
    return false;
  MlirOperation chosen = tw_def(mlirOperationGetOperand(user, 1));
  bool keeps = !mlirOperationIsNull(chosen) &&
               (mlirOperationEqual(chosen, a->op) ||
                (tw_op_form(chosen) == TW_FORM_VIEW &&
                 mlirValueEqual(mlirOperationGetOperand(chosen, 0), mlirOperationGetResult(a->op, 0))));
  int kind = tw_padding_kind(mlirOperationGetOperand(user, 2));
  int64_t has = tw_attr_int(a->op, "padding", TW_PADDING_UNDETERMINED);
  a->select = user;
  a->padding = mlirOperationGetOperand(user, 2);
  return keeps && kind >= 0 && (has == kind || has == TW_PADDING_UNDETERMINED);
}

/* tile index * extent + iota, along the axes of the selected tile. */
static bool read_tile_index(bounded_access_t *a, int axis, intptr_t operand) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(a->op, 0));
  int64_t order[TW_LAYOUT_MAX_RANK], extent;
  tw_index_sum_t number;
  tw_access_order(a->op, a->rank, order);
  extent = tw_extent(type, axis);
  if (!tw_read_index_sum(mlirOperationGetOperand(a->op, operand), &number))
    return false;
  tw_index_sum_t *index = &a->index[order[axis]];
  *index = (tw_index_sum_t){.count = 0};
  const tw_index_term_t along = {.factor = 1, .axis = axis};
  if (!tw_index_add(index, &number, extent) || (extent > 1 && !tw_index_add_term(index, &along, 1)))
    return false;
  MlirOperation user = tw_only_user(mlirOperationGetResult(a->op, 0));
  return tw_op_form(user) != TW_FORM_VIEW || tw_index_move_axes(index, user);
}

static bool read_load(bounded_access_t *a) {
  intptr_t first, rank = mlirShapedTypeGetRank(mlirValueGetType(tw_access_array(a->op, &first)));
  if (rank < 1 || rank > TW_MAX_MAP_RANK || !tw_is_tile(mlirValueGetType(mlirOperationGetResult(a->op, 0))) ||
      !find_select(a))
    return false;
  a->rank = (int)rank;
  for (int axis = 0; axis < a->rank; axis++)
    if (!read_tile_index(a, axis, first + axis))
      return false;
  tw_read_mask(mlirOperationGetOperand(a->select, 0), &a->mask);
  return bound_by_mask(a);
}

/* ---- rewriting --------------------------------------------------------------------------------------------------- */

static void erase_unused(MlirValue value) {
  if (!mlirValueIsNull(value) && !mlirOperationIsNull(tw_def(value)))
    tw_erase_dead(tw_def(value));
}

/* Whether rows run along a later axis of the tile than columns. */
static bool is_turned(const bounded_access_t *a) {
  int row = -1, column = -1;
  for (int i = 0; i < a->index[ROW].count; i++)
    row = a->index[ROW].terms[i].axis > row ? a->index[ROW].terms[i].axis : row;
  for (int i = 0; i < a->index[COLUMN].count; i++)
    column = a->index[COLUMN].terms[i].axis > column ? a->index[COLUMN].terms[i].axis : column;
  return row > column;
}

static void turn_axes(tw_index_sum_t *sum) {
  for (int i = 0; i < sum->count; i++)
    if (sum->terms[i].axis >= 0)
      sum->terms[i].axis = 1 - sum->terms[i].axis;
}

/* The gather or scatter with other operands, whose tile has this type. */
static MlirOperation rebuild(const tw_builder_t *at, MlirOperation op, const MlirValue *operands, intptr_t num,
                             const int32_t *segments, intptr_t num_segments, MlirType type) {
  MlirStringRef name = tw_op_name(op);
  char text[32];
  (void)snprintf(text, sizeof text, "%.*s", (int)name.length, name.data);
  tw_attr_t attrs[] = {{"operandSegmentSizes", mlirDenseI32ArrayGet(at->context, num_segments, segments)},
                       {"check_bounds", mlirUnitAttrGet(at->context)}};
  tw_op_parts_t parts = {.num_operands = num,
                         .operands = operands,
                         .num_results = mlirOperationGetNumResults(op),
                         .results = &type,
                         .num_attrs = 2,
                         .attrs = attrs};
  return tw_build(at, text, parts);
}

/* The access from rows and columns, of a transposed tile if rows run along its last axis. */
static void access_rows(bounded_access_t *a, MlirValue view) {
  enum { FIRST_OTHER = 3, OTHERS = 2 };
  tw_builder_t at = tw_build_before(a->op);
  bool turns = is_turned(a), scatters = tw_op_scatters(a->op);
  const int64_t shape[] = {tw_extent(a->tile, 1), tw_extent(a->tile, 0)};
  MlirType type = turns ? tw_tile_type(tw_element(a->tile), 2, shape) : a->tile;
  MlirValue operands[FIRST_OTHER + OTHERS] = {view}, mask = tw_build_mask(&at, &a->mask);
  for (int d = 0; d < 2; d++) {
    if (turns)
      turn_axes(&a->index[d]);
    operands[1 + d] = tw_build_index_sum(&at, &a->index[d], type);
  }
  const MlirValue others[OTHERS] = {scatters ? tw_operand(a->op, TW_OPERAND_VALUE) : mask,
                                    scatters ? mask : a->padding};
  int32_t segments[] = {1, 2, 0, 0}, num = FIRST_OTHER;
  for (int i = 0; i < OTHERS; i++) {
    segments[2 + i] = !mlirValueIsNull(others[i]);
    if (segments[2 + i])
      operands[num++] = turns ? tw_transposed(&at, others[i]) : others[i];
  }
  MlirOperation made = rebuild(&at, a->op, operands, num, segments, 2 + OTHERS, type);
  if (scatters)
    return;
  MlirValue result = mlirOperationGetResult(made, 0);
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(a->op, 0), turns ? tw_transposed(&at, result) : result);
}

static void rewrite_rows(bounded_access_t *a, MlirValue view) {
  intptr_t first;
  (void)tw_operands(a->op, TW_OPERAND_INDICES, &first);
  MlirValue offset = mlirOperationGetOperand(a->op, first), mask = tw_operand(a->op, TW_OPERAND_MASK);
  access_rows(a, view);
  mlirOperationDestroy(a->op);
  erase_unused(offset);
  erase_unused(mask);
}

static void set_array(MlirOperation op, MlirValue array) {
  intptr_t first;
  (void)tw_access_array(op, &first);
  mlirOperationSetOperand(op, first - 1, array);
}

static void rewrite_elements(bounded_access_t *a, MlirValue array) {
  tw_builder_t at = tw_build_before(a->op);
  MlirValue mask = tw_operand(a->op, TW_OPERAND_MASK);
  set_array(a->op, array);
  tw_set_operand(a->op, TW_OPERAND_MASK, tw_build_mask(&at, &a->mask));
  tw_set_attr(a->op, "check_bounds", mlirUnitAttrGet(at.context));
  erase_unused(mask);
}

static void rewrite_load(bounded_access_t *a, MlirValue array) {
  tw_builder_t at = tw_build_before(a->select);
  MlirValue mask = mlirOperationGetOperand(a->select, 0), tile = mlirOperationGetOperand(a->select, 1);
  MlirValue left = tw_build_mask(&at, &a->mask);
  set_array(a->op, array);
  tw_access_check(a->op);
  tw_set_int(a->op, "padding", tw_i32(at.context), tw_padding_kind(a->padding));
  if (!mlirValueIsNull(left)) {
    mlirOperationSetOperand(a->select, 0, left);
  } else {
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(a->select, 0), tile);
    mlirOperationDestroy(a->select);
  }
  erase_unused(mask);
}

/* ---- the whole ----------------------------------------------------------------------------------------------- */

/* Offsets in an array's memory may lie beyond its extents, which bound nothing then. */
static bool is_access(MlirOperation op) {
  return (tw_op_gathers(op) || tw_op_scatters(op) || tw_op_loads_tile(op)) && !tw_has_attr(op, "tile.flat");
}

/* Whether the access is another one now. */
static bool bound(MlirOperation func, MlirOperation op) {
  intptr_t first;
  bounded_access_t a = {.func = func, .op = op, .array = tw_access_array(op, &first)};
  bool is_load = tw_op_loads_tile(op);
  if (tw_op_gathers(op) && tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))))
    tw_unwrap_indices(op);
  if (!is_argument(func, a.array) || !(is_load ? read_load(&a) : read_elements(&a)))
    return false;
  MlirValue shown = a.array;
  if (a.is_flat || a.has_bounds)
    shown = tw_view_of(func, a.array, a.rank, a.bounds, a.is_flat ? &a.pitch : NULL);
  if (mlirValueIsNull(shown)) {
    tw_op_remark(op,
                 "takes its elements one by one: a launch describes no more than %d views of its arrays, of sizes "
                 "with few factors",
                 TW_MAX_VIEWS);
    return false;
  }
  if (a.is_flat)
    rewrite_rows(&a, shown);
  else if (is_load)
    rewrite_load(&a, shown);
  else
    rewrite_elements(&a, shown);
  return true;
}

static bool is_dead(MlirOperation op, const void *user) {
  (void)user;
  return tw_is_arithmetic(op) && mlirOperationGetNumRegions(op) == 0 && mlirOperationGetNumResults(op) == 1 &&
         tw_is_unused(mlirOperationGetResult(op, 0));
}

/* What nothing needs any more would show where blocks lie (coarsen_tiles.c). */
static void erase_dead(MlirOperation func) {
  for (MlirOperation op = tw_find_op(func, is_dead, NULL); !mlirOperationIsNull(op);
       op = tw_find_op(func, is_dead, NULL))
    tw_erase_dead(op);
}

bool tw_bound_accesses(MlirOperation func) {
  bool as_launched = !tw_is_of_tiles(func) || tw_has_hint_exported(func) || tw_has_hint_check(func) ||
                     tw_has_hint_race_check(func) || tw_has_hint_as_launched(func);
  if (as_launched)
    return true;
  tw_ops_t accesses = tw_ops_in(func, is_access, MlirWalkPreOrder);
  bool changed = false;
  for (int i = 0; i < accesses.count; i++)
    changed |= bound(func, accesses.at[i]);
  tw_ops_free(&accesses);
  bool ok = tw_gather_to_load(func);
  if (changed)
    erase_dead(func);
  return ok;
}
