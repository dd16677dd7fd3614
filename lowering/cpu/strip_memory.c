/* strip_memory.c - tile.gather and tile.scatter of a strip of threads
 *
 *   before   %v = tile.gather %a[%y, %x]          %y the same in all lanes, %x = %x0 + lane, the last stride 1
 *   after    llvm.load %a + %y * %stride + %x0 : vector<16xf32>
 *
 * Lanes that are neighbours in memory are a vector there, others are gathered and scattered. Where all lanes access one
 * element, as many as are here: one does. Lanes that are not here touch nothing. */
#include "lowering/cpu/cpu.h"

/* Where the lanes' elements are. */
typedef struct {
  const cpu_array_t *array;
  MlirType element, type; /* of the array; in memory */
  MlirValue offset;       /* elements to that of each lane, or to the first one's of neighbours */
  MlirValue mask;         /* null: all lanes */
  bool neighbours;
} place_t;

/* Whether lanes access elements of their own, or under masks or with values of their own. */
static bool lanes_access(cpu_t *cx, MlirOperation op) {
  for (intptr_t i = 1; i < mlirOperationGetNumOperands(op); i++)
    if (cpu_differs(cx, mlirOperationGetOperand(op, i)))
      return true;
  return false;
}

/* The offset of the first lane's element, where the others follow it one by one; else null. */
static MlirValue first_offset(cpu_t *cx, MlirOperation op, const cpu_array_t *array) {
  MlirValue offset = cpu_i64_const(cx, 0);
  int64_t step = 0, stride;
  intptr_t first, num = tw_operands(op, TW_OPERAND_INDICES, &first);
  for (intptr_t d = 0; d < num; d++) {
    cpu_lanes_t lanes = cpu_lanes_known(cx, mlirOperationGetOperand(op, first + d));
    bool known = tw_known_int(array->stride[d], &stride);
    if (!lanes.first.ptr || (lanes.step && !known))
      return (MlirValue){NULL};
    step += lanes.step ? lanes.step * stride : 0;
    offset =
        cpu_bin(cx, "arith.addi", offset, cpu_bin(cx, "arith.muli", cpu_int_to_i64(cx, lanes.first), array->stride[d]));
  }
  return step == 1 ? offset : (MlirValue){NULL};
}

static bool is_true(MlirValue mask) {
  int64_t known;
  return tw_known_int(mask, &known) && known != 0;
}

static place_t place_of(cpu_t *cx, MlirOperation op) {
  MlirValue source = mlirOperationGetOperand(op, 0), indices[TW_MAX_RANK],
            mask = cpu_mask_of(cx, op, cpu_scalar_at, NULL);
  place_t place = {.array = cpu_array_of(cx, op, source), .element = tw_element(mlirValueGetType(source))};
  if (!place.array)
    return place;
  place.type = cpu_memory_type(cx, place.element);
  int num = cpu_indices_of(cx, op, cpu_scalar_at, NULL, indices);
  if (tw_bytes(place.element) > 0)
    place.offset = first_offset(cx, op, place.array);
  place.neighbours = place.offset.ptr != NULL;
  if (!place.neighbours || tw_has_attr(op, "check_bounds")) {
    MlirValue each = cpu_lanes_at(cx, op, num, indices, &mask);
    place.offset = place.neighbours ? place.offset : cpu_splat(cx, each, cx->strip->lanes);
  }
  place.mask = cpu_both(cx, is_true(mask) ? (MlirValue){NULL} : mask, cx->strip->here);
  if (place.mask.ptr)
    place.mask = cpu_splat(cx, place.mask, cx->strip->lanes);
  return place;
}

static MlirValue first_address(cpu_t *cx, const place_t *place) {
  return cpu_address(cx, place->array->pointer, place->type, (cpu_index_t){place->offset, 0, cx->depth});
}

static MlirValue load_neighbours(cpu_t *cx, const place_t *place, MlirValue padding) {
  MlirType result = cpu_vector(place->type, cx->strip->lanes);
  MlirValue operands[3] = {first_address(cx, place), place->mask, padding};
  if (!place->mask.ptr)
    return cpu_load(cx, operands[0], result, (int)tw_bytes(place->type));
  return cpu_masked_read(cx, "llvm.intr.masked.load", place->type, operands, result);
}

static MlirValue all_of(cpu_t *cx, MlirValue mask) {
  return mask.ptr ? mask : cpu_int_const(cx, cpu_vector(cpu_int(cx, 1), cx->strip->lanes), 1);
}

static void gather(cpu_t *cx, MlirOperation op) {
  MlirValue result = mlirOperationGetResult(op, 0), given = tw_operand(op, TW_OPERAND_PADDING);
  place_t place = place_of(cx, op);
  MlirValue padding = mlirValueIsNull(given)
                          ? cpu_zero_of(cx, cpu_compute_type(cx, tw_element(mlirValueGetType(result))))
                          : cpu_scalar(cx, given);
  if (cx->failed)
    return;
  padding = cpu_splat(cx, padding, cx->strip->lanes);
  if (tw_bytes(place.element) == 0) {
    MlirValue mask = all_of(cx, place.mask);
    MlirValue bits = cpu_load_nibbles(cx, place.array->pointer, place.offset, mask);
    cpu_set_scalar(cx, result, cpu_select(cx, mask, cpu_from_memory(cx, bits, place.element), padding));
    return;
  }
  MlirValue passthru = cpu_to_memory(cx, padding, place.element), value;
  if (place.neighbours)
    value = load_neighbours(cx, &place, passthru);
  else
    value = cpu_gather_at(cx, cpu_addresses(cx, place.array->pointer, place.type, place.offset), place.type, place.mask,
                          passthru);
  cpu_set_scalar(cx, result, cpu_from_memory(cx, value, place.element));
}

static bool is_one_place(cpu_t *cx, MlirOperation op) {
  intptr_t first, num = tw_operands(op, TW_OPERAND_INDICES, &first);
  for (intptr_t d = 0; d < num; d++)
    if (cpu_differs(cx, mlirOperationGetOperand(op, first + d)))
      return false;
  return true;
}

/* The value of the last lane that is here. */
static MlirValue last_lane(cpu_t *cx, MlirValue lanes, MlirValue mask) {
  if (!mask.ptr)
    return cpu_extract(cx, lanes, cx->strip->lanes - 1);
  MlirType i64 = cpu_int(cx, 64);
  MlirValue bits = cpu_cast(cx, "arith.extui", cpu_mask_bits(cx, mask), i64);
  MlirValue last = cpu_bin(cx, "arith.subi", cpu_i64_const(cx, 63), cpu_un(cx, "math.ctlz", bits));
  MlirValue operands[2] = {lanes, last};
  return cpu_op1(cx, "llvm.extractelement", cpu_element(lanes), 2, operands);
}

/* One element that several lanes may write: one of them does. */
static void store_one(cpu_t *cx, const place_t *place, MlirValue value) {
  MlirValue offset = cpu_extract(cx, place->offset, 0), any = cpu_int_const(cx, cpu_int(cx, 1), 1);
  if (place->mask.ptr)
    any = cpu_any_lane(cx, place->mask);
  cpu_branch_t branch = cpu_branch(cx, any);
  cpu_store(cx, last_lane(cx, value, place->mask),
            cpu_address(cx, place->array->pointer, place->type, (cpu_index_t){offset, 0, cx->depth}),
            (int)tw_bytes(place->type));
  cpu_branch_end(cx, &branch, (MlirValue){NULL});
}

static void scatter(cpu_t *cx, MlirOperation op) {
  place_t place = place_of(cx, op);
  if (cx->failed)
    return;
  MlirValue value = cpu_splat(cx, cpu_scalar(cx, tw_operand(op, TW_OPERAND_VALUE)), cx->strip->lanes);
  value = cpu_to_memory(cx, value, place.element);
  if (tw_bytes(place.element) == 0)
    cpu_store_nibbles(cx, value, place.array->pointer, place.offset, all_of(cx, place.mask));
  else if (is_one_place(cx, op))
    store_one(cx, &place, value);
  else if (!place.neighbours)
    cpu_scatter_at(cx, value, cpu_addresses(cx, place.array->pointer, place.type, place.offset), place.mask);
  else if (!place.mask.ptr)
    cpu_store(cx, value, first_address(cx, &place), (int)tw_bytes(place.type));
  else
    cpu_masked_store(cx, value, first_address(cx, &place), place.mask);
}

bool cpu_strip_access(cpu_t *cx, MlirOperation op) {
  if (!lanes_access(cx, op) || !(tw_op_loads(op) || tw_op_stores(op)))
    return false;
  if (tw_op_loads(op))
    gather(cx, op);
  else
    scatter(cx, op);
  return true;
}
