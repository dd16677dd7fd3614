/* elements.c - elements of arrays at tiles of indices. See elements.h. */
#include "lowering/gpu/emit/elements.h"

#include "lowering/gpu/emit/address.h"
#include "lowering/gpu/facts/index_facts.h"
#include "lowering/loops.h"
#include "lowering/ranges.h"

int twg_first_copy(const tw_layout_t *l, int r) {
  for (int b = 0; b < l->bits[TW_REGISTER]; b++)
    if (l->basis[TW_REGISTER][b] == 0)
      r &= ~(1 << b);
  return r;
}

MlirValue twg_first_thread(tw_emitter_t *e) {
  return e->simt ? (MlirValue){NULL} : twg_icmp(e, TW_EQ, e->thread, twg_const_i32(e, 0));
}

tw_indexed_t twg_indexed_of(MlirOperation op, tw_operand_name_t value) {
  tw_indexed_t x = {.array = tw_operand(op, TW_OPERAND_ARRAY)};
  x.count = tw_operands(op, TW_OPERAND_INDICES, &x.first);
  x.mask = tw_operand(op, TW_OPERAND_MASK);
  x.value = tw_operand(op, value);
  x.check_bounds = tw_has_attr(op, "check_bounds");
  return x;
}

void twg_find_vectors(MlirOperation op, const tw_layout_t *layout, tw_indexed_t *x) {
  int dim, bits = tw_gather_vector_bits(op, &dim);
  if (bits > 0)
    x->vector = tw_layout_vector_bits(layout, dim, bits, x->regs);
}

MlirValue twg_at_register(tw_emitter_t *e, MlirValue old, int r) {
  tw_values_t values = twg_lookup(e, old);
  return values.at[values.count == 1 ? 0 : r];
}

MlirValue twg_both(tw_emitter_t *e, MlirValue x, MlirValue y) {
  return x.ptr == NULL ? y : y.ptr == NULL ? x : twg_binary(e, "llvm.and", x, y);
}

/* The distance of an index along an axis, in elements. */
static MlirValue along(tw_emitter_t *e, const tw_indexed_t *x, intptr_t axis, MlirValue index) {
  if (mlirIntegerTypeGetWidth(mlirValueGetType(index)) < 64)
    index = twg_cast(e, "llvm.sext", e->i64, index);
  return twg_binary(e, "llvm.mul", index, twg_array_stride(e, x->array, (int)axis));
}

/* Neighbours of an element: `x[i + 1, j]` lies a stride behind `x[i, j]`. A thread that reads several computes the
 * place of one, and adds what all threads have in common. Returns i, and the distance in *by. */
static MlirValue split_index(tw_emitter_t *e, MlirOperation op, MlirValue index, int64_t *by) {
  MlirOperation sum = tw_def(index);
  int64_t constant;
  *by = 0;
  if (!e->simt || mlirOperationIsNull(sum) || tw_bits(mlirValueGetType(index)) != 32 ||
      !(tw_op_is(sum, TW_ARITH_ADDI) || tw_op_is(sum, TW_ARITH_SUBI)) ||
      !tw_known_int(mlirOperationGetOperand(sum, 1), &constant))
    return index;
  constant = tw_op_is(sum, TW_ARITH_SUBI) ? -constant : constant;
  if (!tw_sum_stays(op, mlirOperationGetOperand(sum, 0), constant))
    return index;
  *by = constant;
  return mlirOperationGetOperand(sum, 0);
}

/* What the constants in the indices of an access move it by, in elements. */
static MlirValue moved_by(tw_emitter_t *e, const tw_indexed_t *x, intptr_t axis, int64_t by) {
  return twg_binary(e, "llvm.mul", twg_array_stride(e, x->array, (int)axis), twg_const_int(e, e->i64, by));
}

MlirValue twg_plus(tw_emitter_t *e, MlirValue x, MlirValue y) {
  return x.ptr == NULL ? y : y.ptr == NULL ? x : twg_binary(e, "llvm.add", x, y);
}

/* An index that a loop moves is a tile plus a scalar (hoist_indices.c). The scalar is null where there is none: also
 * in the iteration that is peeled off in front of the loop, where it is a constant. */
typedef struct {
  MlirValue tile, scalar;
} index_t;

static index_t index_of(const tw_indexed_t *x, MlirOperation op, intptr_t axis) {
  MlirValue index = mlirOperationGetOperand(op, x->first + axis);
  MlirOperation sum = tw_def(index);
  if (mlirOperationIsNull(sum) || !tw_has_attr(sum, TW_HOISTED))
    return (index_t){.tile = index};
  MlirOperation splat = tw_def(mlirOperationGetOperand(sum, 1));
  if (mlirOperationIsNull(splat) || !tw_op_is(splat, TW_TENSOR_SPLAT))
    return (index_t){.tile = index};
  return (index_t){mlirOperationGetOperand(sum, 0), mlirOperationGetOperand(splat, 0)};
}

static bool is_hoisted(const tw_indexed_t *x, MlirOperation op) {
  bool found = false;
  for (intptr_t axis = 0; axis < x->count; axis++)
    found = found || index_of(x, op, axis).scalar.ptr;
  return found;
}

/* Whether a value is computed in front of the loop. Only indices that were hoisted are: elsewhere it costs more
 * registers than it gains. */
static bool is_still(const tw_emitter_t *e, MlirOperation op, const tw_indexed_t *x, MlirValue value) {
  MlirOperation loop = tw_enclosing_loop(op);
  return e->outside.ptr && x->shift.ptr == NULL && !mlirOperationIsNull(loop) && tw_op_is(loop, TW_SCF_FOR) &&
         is_hoisted(x, op) && !tw_defined_in(value, tw_loop_body(loop));
}

/* An extent as an unsigned i32, for indices of 32 bits. */
static MlirValue short_extent(tw_emitter_t *e, MlirValue extent) {
  MlirValue most = twg_const_int(e, e->i64, INT64_C(1) << 31);
  return twg_cast(e, "llvm.trunc", e->i32, twg_binary(e, "llvm.intr.umin", extent, most));
}

typedef enum { TWG_WHOLE, TWG_SHORT, TWG_SHORT_OUTSIDE } extent_form_t;

/* Whether an index lies within the array. The comparison is unsigned, so a negative index is outside. An extent that
 * is compared often is made short, in front of the loop if its indices are hoisted. */
static MlirValue is_inside(tw_emitter_t *e, const tw_indexed_t *x, intptr_t axis, MlirValue index, extent_form_t form) {
  MlirValue extent = twg_array_extent(e, x->array, (int)axis);
  if (form != TWG_WHOLE && mlirIntegerTypeGetWidth(mlirValueGetType(index)) == 32) {
    MlirBlock here = e->block;
    e->block = form == TWG_SHORT_OUTSIDE ? e->outside : here;
    extent = short_extent(e, extent);
    e->block = here;
    return twg_icmp(e, TW_ULT, index, extent);
  }
  if (mlirIntegerTypeGetWidth(mlirValueGetType(index)) < 64)
    index = twg_cast(e, "llvm.sext", e->i64, index);
  return twg_icmp(e, TW_ULT, index, extent);
}

/* Computes in front of the loop what it does not change. Returns the predicate of that part. */
static MlirValue find_still(tw_emitter_t *e, MlirOperation op, const tw_indexed_t *x, int r, tw_place_t *place) {
  MlirBlock here = e->block;
  MlirValue guard = {NULL};
  e->block = e->outside.ptr ? e->outside : here;
  if (x->mask.ptr && is_still(e, op, x, x->mask))
    guard = twg_at_register(e, x->mask, r);
  for (intptr_t axis = 0; axis < x->count; axis++) {
    index_t index = index_of(x, op, axis);
    if (!is_still(e, op, x, index.tile))
      continue;
    MlirValue at = twg_at_register(e, index.tile, r);
    place->still = twg_plus(e, place->still, along(e, x, axis, at));
    if (x->check_bounds && index.scalar.ptr == NULL)
      guard = twg_both(e, guard, is_inside(e, x, axis, at, TWG_SHORT_OUTSIDE));
  }
  e->block = here;
  return guard;
}

/* The least number in place of an index whose `guard` is false: adding a distance that loops have does not move it
 * into the array. */
static MlirValue or_least(tw_emitter_t *e, MlirValue guard, MlirValue index) {
  MlirBlock here = e->block;
  e->block = e->outside;
  MlirValue chosen = twg_select(e, guard, index, twg_const_i32(e, INT32_MIN));
  e->block = here;
  return chosen;
}

/* Two sums make the place: one in front of the loop, with its predicate, and one that moves with it. An index that a
 * scalar moves is in both. Its bounds are compared once an iteration. Where the predicate in front of the loop is
 * false, the index becomes the least number, so that this one comparison fails, too. */
tw_place_t twg_locate(tw_emitter_t *e, MlirOperation op, const tw_indexed_t *x, int r) {
  tw_place_t place = {.still = {NULL}};
  MlirValue guard = find_still(e, op, x, r, &place);
  bool outside = e->outside.ptr && x->shift.ptr == NULL && is_hoisted(x, op);
  extent_form_t form = outside ? TWG_SHORT_OUTSIDE : x->shift.ptr ? TWG_SHORT : TWG_WHOLE;
  if (x->mask.ptr && !is_still(e, op, x, x->mask))
    place.guard = twg_at_register(e, x->mask, r);
  for (intptr_t axis = 0; axis < x->count; axis++) {
    index_t index = index_of(x, op, axis);
    MlirValue whole = mlirOperationGetOperand(op, x->first + axis);
    if (is_still(e, op, x, whole))
      continue;
    int64_t by = 0;
    bool splits = !x->check_bounds && x->shift.ptr == NULL && index.scalar.ptr == NULL;
    MlirValue at = twg_at_register(e, splits ? split_index(e, op, whole, &by) : whole, r);
    if (by)
      place.apart = twg_plus(e, place.apart, moved_by(e, x, axis, by));
    if (x->shift.ptr && axis == x->shifted)
      at = twg_binary(e, "llvm.add", at,
                      mlirIntegerTypeGetWidth(mlirValueGetType(at)) == 64 ? twg_cast(e, "llvm.sext", e->i64, x->shift)
                                                                          : x->shift);
    if (index.scalar.ptr && is_still(e, op, x, index.tile)) {
      MlirValue by = twg_lookup(e, index.scalar).at[0];
      place.moved = twg_plus(e, place.moved, along(e, x, axis, by));
      if (guard.ptr && x->check_bounds) {
        at = twg_binary(e, "llvm.add", or_least(e, guard, twg_at_register(e, index.tile, r)), by);
        guard.ptr = NULL;
      }
    } else {
      place.moved = twg_plus(e, place.moved, along(e, x, axis, at));
    }
    if (x->check_bounds)
      place.guard = twg_both(e, place.guard, is_inside(e, x, axis, at, form));
  }
  place.guard = twg_both(e, place.guard, guard);
  return place;
}

/* Of a thread's access LLVM is told the elements, in as few steps as it takes to see that neighbours are aligned. */
static MlirValue behind(tw_emitter_t *e, MlirValue pointer, MlirValue elements, int bits) {
  if (!e->simt)
    return twg_offset_pointer(e, pointer, twg_to_bytes(e, elements, bits));
  return twg_element_behind(e, pointer, elements, mlirIntegerTypeGet(e->context, (unsigned)bits));
}

MlirValue twg_element_pointer(tw_emitter_t *e, MlirValue array, tw_place_t place, int bits) {
  MlirValue pointer = twg_array_pointer(e, array);
  MlirBlock here = e->block;
  if (bits < 8) /* two 4-bit elements share a byte: elements are added up before they become bytes */
    return twg_offset_pointer(e, pointer,
                              twg_to_bytes(e, twg_plus(e, place.still, twg_plus(e, place.moved, place.apart)), bits));
  e->block = place.moved.ptr && e->outside.ptr ? e->outside : here;
  if (place.still.ptr)
    pointer = behind(e, pointer, place.still, bits);
  e->block = here;
  if (place.moved.ptr)
    pointer = behind(e, pointer, place.moved, bits);
  return place.apart.ptr ? behind(e, pointer, place.apart, bits) : pointer;
}
