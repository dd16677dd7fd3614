/* build.c - making ops of the vector stage: types, constants, arithmetic on strips, index arithmetic, loops
 *
 * A loop's body is built detached, and the loop is appended when the body is complete. So while a body is being built,
 * the block around it can still grow, and what depends only on outer loops goes there at once (cpu_enter_depth). */
#include "base/memory.h"
#include "lowering/cpu/cpu.h"
#include "lowering/loops.h"

#include "mlir-c/Dialect/LLVM.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct allocation {
  struct allocation *next;
} allocation_t;

void *cpu_alloc(cpu_t *cx, size_t size) {
  size_t header = 16;
  allocation_t *block = tw_allocate(1, header + size);
  block->next = cx->allocations;
  cx->allocations = block;
  return (char *)block + header;
}

void cpu_error(cpu_t *cx, MlirOperation op, const char *why) {
  tw_op_error(op, "%s", why);
  cx->failed = true;
}

/* --- types --------------------------------------------------------------------------------------------- */

tw_builder_t cpu_here(cpu_t *cx) { return tw_build_at_end(cx->block, cx->location); }
MlirType cpu_int(cpu_t *cx, unsigned bits) { return mlirIntegerTypeGet(cx->context, bits); }
MlirType cpu_f32(cpu_t *cx) { return mlirF32TypeGet(cx->context); }
MlirType cpu_f64(cpu_t *cx) { return mlirF64TypeGet(cx->context); }
MlirType cpu_pointer_type(cpu_t *cx) { return mlirLLVMPointerTypeGet(cx->context, 0); }

MlirType cpu_compute_type(cpu_t *cx, MlirType element) {
  if (mlirTypeIsAFloat(element) && !mlirTypeIsAF64(element))
    return cpu_f32(cx);
  return element;
}

MlirType cpu_buffer_type(cpu_t *cx, MlirType element) {
  return tw_is_bool(element) ? cpu_int(cx, 8) : cpu_compute_type(cx, element);
}

int cpu_lanes_of(MlirValue value) {
  MlirType type = mlirValueGetType(value);
  return mlirTypeIsAVector(type) ? (int)mlirShapedTypeGetDimSize(type, 0) : 1;
}

MlirType cpu_vector(MlirType element, int lanes) {
  int64_t shape = lanes;
  return lanes > 1 ? mlirVectorTypeGet(1, &shape, element) : element;
}

MlirType cpu_like(MlirValue like, MlirType element) { return cpu_vector(element, cpu_lanes_of(like)); }
MlirType cpu_element(MlirValue value) { return tw_element(mlirValueGetType(value)); }

/* --- constants: one op each, at the start of the function ------------------------------------------------ */

static MlirValue constant_of_type(cpu_t *cx, MlirAttribute attribute, MlirType type) {
  const MlirValue *known = tw_map_get(&cx->constants, attribute.ptr, NULL);
  if (known)
    return *known;
  tw_builder_t at = {cx->context, cx->entry, mlirBlockGetFirstOperation(cx->entry), cx->location};
  MlirValue value = tw_op1_attr(&at, "arith.constant", type, 0, NULL, "value", attribute);
  tw_map_set(&cx->constants, attribute.ptr, 1, &value);
  return value;
}

MlirValue cpu_constant(cpu_t *cx, MlirAttribute attribute) {
  return constant_of_type(cx, attribute, mlirAttributeGetType(attribute));
}

MlirValue cpu_int_const(cpu_t *cx, MlirType type, int64_t value) { return cpu_constant(cx, tw_splat_int(type, value)); }

MlirValue cpu_float_const(cpu_t *cx, MlirType type, double value) {
  return cpu_constant(cx, tw_splat_float(type, value));
}

MlirValue cpu_i32_const(cpu_t *cx, int64_t value) { return cpu_int_const(cx, cpu_int(cx, 32), value); }
MlirValue cpu_i64_const(cpu_t *cx, int64_t value) { return cpu_int_const(cx, cpu_int(cx, 64), value); }

MlirValue cpu_iota(cpu_t *cx, MlirType element, int lanes) {
  if (lanes == 1)
    return cpu_int_const(cx, element, 0);
  MlirAttribute values[64];
  for (int i = 0; i < lanes; i++)
    values[i] = mlirIntegerAttrGet(element, i);
  return cpu_constant(cx, mlirDenseElementsAttrGet(cpu_vector(element, lanes), lanes, values));
}

/* --- ops ----------------------------------------------------------------------------------------------- */

MlirValue cpu_op1(cpu_t *cx, const char *name, MlirType type, int num, const MlirValue *operands) {
  tw_builder_t at = cpu_here(cx);
  return tw_op1(&at, name, type, num, operands);
}

void cpu_op0(cpu_t *cx, const char *name, int num, const MlirValue *operands) {
  tw_builder_t at = cpu_here(cx);
  tw_build(&at, name, (tw_op_parts_t){.num_operands = num, .operands = operands});
}

MlirValue cpu_again(cpu_t *cx, MlirOperation op, MlirType type, int num, const MlirValue *operands) {
  MlirOperationState state = mlirOperationStateGet(tw_op_name(op), cx->location);
  mlirOperationStateAddOperands(&state, num, operands);
  mlirOperationStateAddResults(&state, 1, &type);
  for (intptr_t i = 0; i < mlirOperationGetNumAttributes(op); i++) {
    MlirNamedAttribute attribute = mlirOperationGetAttribute(op, i);
    mlirOperationStateAddAttributes(&state, 1, &attribute);
  }
  MlirOperation again = mlirOperationCreate(&state);
  mlirBlockAppendOwnedOperation(cx->block, again);
  return mlirOperationGetResult(again, 0);
}

MlirValue cpu_splat(cpu_t *cx, MlirValue scalar, int lanes) {
  if (cpu_lanes_of(scalar) == lanes)
    return scalar;
  MlirOperation def = tw_def(scalar);
  MlirType type = cpu_vector(mlirValueGetType(scalar), lanes);
  if (!mlirOperationIsNull(def) && tw_is_constant(def))
    return cpu_constant(cx, mlirDenseElementsAttrSplatGet(type, tw_attr(def, "value")));
  return cpu_op1(cx, "vector.broadcast", type, 1, &scalar);
}

void cpu_unify(cpu_t *cx, int num, MlirValue *values) {
  int lanes = 1;
  for (int i = 0; i < num; i++)
    if (cpu_lanes_of(values[i]) > lanes)
      lanes = cpu_lanes_of(values[i]);
  for (int i = 0; i < num; i++)
    values[i] = cpu_splat(cx, values[i], lanes);
}

MlirValue cpu_un(cpu_t *cx, const char *name, MlirValue x) { return cpu_op1(cx, name, mlirValueGetType(x), 1, &x); }

MlirValue cpu_bin(cpu_t *cx, const char *name, MlirValue x, MlirValue y) {
  MlirValue operands[2] = {x, y};
  cpu_unify(cx, 2, operands);
  return cpu_op1(cx, name, mlirValueGetType(operands[0]), 2, operands);
}

MlirValue cpu_bin_i(cpu_t *cx, const char *name, MlirValue x, int64_t y) {
  return cpu_bin(cx, name, x, cpu_int_const(cx, mlirValueGetType(x), y));
}

MlirValue cpu_bin_f(cpu_t *cx, const char *name, MlirValue x, double y) {
  return cpu_bin(cx, name, x, cpu_float_const(cx, mlirValueGetType(x), y));
}

MlirValue cpu_fma(cpu_t *cx, MlirValue x, MlirValue y, MlirValue z) {
  if (!cx->f16c)
    return cpu_bin(cx, "arith.addf", cpu_bin(cx, "arith.mulf", x, y), z);
  MlirValue operands[3] = {x, y, z};
  cpu_unify(cx, 3, operands);
  return cpu_op1(cx, "math.fma", mlirValueGetType(operands[0]), 3, operands);
}

MlirValue cpu_cast(cpu_t *cx, const char *name, MlirValue x, MlirType element) {
  if (mlirTypeEqual(cpu_element(x), element))
    return x;
  return cpu_op1(cx, name, cpu_like(x, element), 1, &x);
}

MlirValue cpu_bits(cpu_t *cx, MlirValue x, MlirType element) { return cpu_cast(cx, "arith.bitcast", x, element); }

static MlirValue compare(cpu_t *cx, const char *name, int predicate, MlirValue x, MlirValue y) {
  MlirValue operands[2] = {x, y};
  cpu_unify(cx, 2, operands);
  tw_builder_t at = cpu_here(cx);
  return tw_op1_attr(&at, name, cpu_like(operands[0], cpu_int(cx, 1)), 2, operands, "predicate",
                     mlirIntegerAttrGet(cpu_int(cx, 64), predicate));
}

MlirValue cpu_cmpi(cpu_t *cx, cpu_ipred_t predicate, MlirValue x, MlirValue y) {
  return compare(cx, "arith.cmpi", predicate, x, y);
}

MlirValue cpu_cmpf(cpu_t *cx, cpu_fpred_t predicate, MlirValue x, MlirValue y) {
  return compare(cx, "arith.cmpf", predicate, x, y);
}

MlirValue cpu_select(cpu_t *cx, MlirValue c, MlirValue x, MlirValue y) {
  MlirValue operands[3] = {c, x, y};
  cpu_unify(cx, 3, operands);
  return cpu_op1(cx, "arith.select", mlirValueGetType(operands[1]), 3, operands);
}

MlirValue cpu_intrinsic(cpu_t *cx, const char *name, MlirType type, int num, const MlirValue *operands) {
  int32_t segments[2] = {num, 0};
  tw_attr_t attrs[3] = {
      {"intrin", mlirStringAttrGet(cx->context, tw_str(name))},
      {"op_bundle_sizes", mlirDenseI32ArrayGet(cx->context, 0, NULL)},
      {"operandSegmentSizes", mlirDenseI32ArrayGet(cx->context, 2, segments)},
  };
  tw_builder_t at = cpu_here(cx);
  return tw_op1_attrs(&at, "llvm.call_intrinsic", type, num, operands, 3, attrs);
}

MlirValue cpu_extract(cpu_t *cx, MlirValue vector, int lane) {
  if (cpu_lanes_of(vector) == 1)
    return vector;
  int64_t position = lane;
  tw_builder_t at = cpu_here(cx);
  return tw_op1_attr(&at, "vector.extract", cpu_element(vector), 1, &vector, "static_position",
                     mlirDenseI64ArrayGet(cx->context, 1, &position));
}

MlirValue cpu_insert(cpu_t *cx, MlirValue value, MlirValue vector, int lane) {
  if (!mlirTypeIsAVector(mlirValueGetType(vector)))
    return value;
  int64_t position = lane;
  MlirValue operands[2] = {value, vector};
  tw_builder_t at = cpu_here(cx);
  return tw_op1_attr(&at, "vector.insert", mlirValueGetType(vector), 2, operands, "static_position",
                     mlirDenseI64ArrayGet(cx->context, 1, &position));
}

MlirValue cpu_shuffle(cpu_t *cx, MlirValue x, MlirValue y, int num, const int64_t *mask) {
  MlirValue operands[2] = {x, y};
  tw_builder_t at = cpu_here(cx);
  return tw_op1_attr(&at, "vector.shuffle", cpu_vector(cpu_element(x), num), 2, operands, "mask",
                     mlirDenseI64ArrayGet(cx->context, num, mask));
}

MlirValue cpu_int_to_i64(cpu_t *cx, MlirValue value) {
  MlirType element = cpu_element(value);
  if (mlirTypeIsAIndex(element))
    return cpu_cast(cx, "arith.index_cast", value, cpu_int(cx, 64));
  unsigned width = mlirIntegerTypeGetWidth(element);
  if (width == 64)
    return value;
  return cpu_cast(cx, width == 1 ? "arith.extui" : "arith.extsi", value, cpu_int(cx, 64));
}

/* --- masks --------------------------------------------------------------------------------------------------- */

MlirValue cpu_mask_bits(cpu_t *cx, MlirValue mask) {
  int lanes = cpu_lanes_of(mask);
  int64_t one = 1, zero = 0;
  MlirType bits = cpu_int(cx, (unsigned)lanes);
  MlirValue vector = cpu_op1(cx, "vector.bitcast", mlirVectorTypeGet(1, &one, bits), 1, &mask);
  tw_builder_t at = cpu_here(cx);
  return tw_op1_attr(&at, "vector.extract", bits, 1, &vector, "static_position",
                     mlirDenseI64ArrayGet(cx->context, 1, &zero));
}

static MlirValue compare_bits(cpu_t *cx, cpu_ipred_t predicate, MlirValue mask, int64_t with) {
  if (cpu_lanes_of(mask) == 1)
    return mask;
  MlirValue bits = cpu_mask_bits(cx, mask);
  return cpu_cmpi(cx, predicate, bits, cpu_int_const(cx, mlirValueGetType(bits), with));
}

MlirValue cpu_any_lane(cpu_t *cx, MlirValue mask) { return compare_bits(cx, CPU_NE, mask, 0); }

MlirValue cpu_all_lanes(cpu_t *cx, MlirValue mask) { return compare_bits(cx, CPU_EQ, mask, -1); }

MlirValue cpu_both(cpu_t *cx, MlirValue x, MlirValue y) {
  if (!x.ptr || !y.ptr)
    return x.ptr ? x : y;
  return cpu_bin(cx, "arith.andi", x, y);
}

/* --- index arithmetic ------------------------------------------------------------------------------------ */

MlirBlock cpu_enter_depth(cpu_t *cx, int depth) {
  MlirBlock saved = cx->block;
  int scope = depth < cx->depth ? depth : cx->depth;
  cx->block = cx->scope[scope < CPU_MAX_DEPTH ? scope : CPU_MAX_DEPTH - 1];
  return saved;
}

void cpu_leave_depth(cpu_t *cx, MlirBlock saved) { cx->block = saved; }

cpu_index_t cpu_index(int64_t value) { return (cpu_index_t){.offset = value}; }

static int max_int(int x, int y) { return x > y ? x : y; }

cpu_index_t cpu_index_add(cpu_t *cx, cpu_index_t x, cpu_index_t y) {
  if (!x.base.ptr)
    return cpu_index_plus(y, x.offset);
  if (!y.base.ptr)
    return cpu_index_plus(x, y.offset);
  cpu_index_t sum = {.offset = x.offset + y.offset, .depth = max_int(x.depth, y.depth)};
  MlirBlock saved = cpu_enter_depth(cx, sum.depth);
  sum.base = cpu_bin(cx, "arith.addi", x.base, y.base);
  cpu_leave_depth(cx, saved);
  return sum;
}

cpu_index_t cpu_index_plus(cpu_index_t x, int64_t y) {
  x.offset += y;
  return x;
}

cpu_index_t cpu_index_mul(cpu_t *cx, cpu_index_t x, int64_t y) {
  if (y == 1)
    return x;
  cpu_index_t product = {.offset = x.offset * y, .depth = x.depth};
  if (!x.base.ptr || y == 0)
    return product.depth = 0, product;
  MlirBlock saved = cpu_enter_depth(cx, x.depth);
  product.base = cpu_bin_i(cx, "arith.muli", x.base, y);
  cpu_leave_depth(cx, saved);
  return product;
}

cpu_index_t cpu_index_times(cpu_t *cx, cpu_index_t x, MlirValue y, int depth) {
  int64_t known;
  if (tw_known_int(y, &known))
    return cpu_index_mul(cx, x, known);
  if (!x.base.ptr && x.offset == 0)
    return cpu_index(0);
  cpu_index_t product = {.depth = max_int(x.depth, depth)};
  MlirBlock saved = cpu_enter_depth(cx, product.depth);
  product.base = cpu_bin(cx, "arith.muli", cpu_index_value(cx, x), y);
  cpu_leave_depth(cx, saved);
  return product;
}

MlirValue cpu_index_value(cpu_t *cx, cpu_index_t x) {
  if (!x.base.ptr)
    return cpu_i64_const(cx, x.offset);
  if (x.offset == 0)
    return x.base;
  MlirBlock saved = cpu_enter_depth(cx, x.depth);
  MlirValue sum = cpu_bin_i(cx, "arith.addi", x.base, x.offset);
  cpu_leave_depth(cx, saved);
  return sum;
}

/* --- scopes and loops ------------------------------------------------------------------------------------ */

MlirBlock cpu_new_block(cpu_t *cx, int num, const MlirType *types) {
  MlirLocation *locations = cpu_alloc(cx, (size_t)(num + 1) * sizeof *locations);
  for (int i = 0; i < num; i++)
    locations[i] = cx->location;
  return mlirBlockCreate(num, types, locations);
}

/* Past the limit the depth still counts up, so that each pop finds its push. */
void cpu_scope_push(cpu_t *cx, MlirBlock block) {
  if (++cx->depth < CPU_MAX_DEPTH)
    cx->scope[cx->depth] = block;
  else
    cpu_error(cx, cx->func, "has loops and branches nested too deeply");
  cx->block = block;
}

void cpu_scope_pop(cpu_t *cx) {
  size_t kept = 0;
  for (size_t i = 0; i < cx->memo_size; i++)
    if (cx->memo[i].depth < cx->depth)
      cx->memo[kept++] = cx->memo[i];
  cx->memo_size = kept;
  int depth = --cx->depth;
  cx->block = cx->scope[depth < CPU_MAX_DEPTH ? depth : CPU_MAX_DEPTH - 1];
}

cpu_index_t cpu_loop_begin(cpu_t *cx, cpu_loop_t *loop, cpu_index_t from, cpu_index_t to, int64_t step, int num,
                           const MlirValue *inits) {
  *loop = (cpu_loop_t){.num = num,
                       .operands = cpu_alloc(cx, (size_t)(TW_FOR_INITS + num) * sizeof *loop->operands),
                       .args = cpu_alloc(cx, (size_t)num * sizeof *loop->args)};
  MlirType *types = cpu_alloc(cx, (size_t)(num + 1) * sizeof *types);
  loop->operands[0] = cpu_index_value(cx, from);
  loop->operands[1] = cpu_index_value(cx, to);
  loop->operands[2] = cpu_i64_const(cx, step);
  types[0] = cpu_int(cx, 64);
  for (int i = 0; i < num; i++) {
    loop->operands[TW_FOR_INITS + i] = inits[i];
    types[i + 1] = mlirValueGetType(inits[i]);
  }
  loop->block = cpu_new_block(cx, num + 1, types);
  for (int i = 0; i < num; i++)
    loop->args[i] = mlirBlockGetArgument(loop->block, i + 1);
  cpu_scope_push(cx, loop->block);
  return (cpu_index_t){.base = mlirBlockGetArgument(loop->block, 0), .depth = cx->depth};
}

void cpu_loop_end(cpu_t *cx, cpu_loop_t *loop, const MlirValue *yields, MlirValue *results) {
  cpu_op0(cx, "scf.yield", loop->num, yields);
  cpu_scope_pop(cx);
  tw_builder_t at = cpu_here(cx);
  MlirOperation op = tw_build_for(&at, TW_FOR_INITS + loop->num, loop->operands, tw_region_with(loop->block));
  for (int i = 0; i < loop->num && results; i++)
    results[i] = mlirOperationGetResult(op, i);
}

MlirOperation cpu_if(cpu_t *cx, MlirValue condition, MlirBlock then, MlirBlock other, int num, const MlirType *types) {
  MlirRegion regions[2] = {tw_region_with(then), tw_region_with(other)};
  tw_builder_t at = cpu_here(cx);
  return tw_build_branch(&at, condition, num, types, regions);
}

cpu_branch_t cpu_branch(cpu_t *cx, MlirValue condition) {
  cpu_branch_t branch = {condition, cx->block, {mlirBlockCreate(0, NULL, NULL)}};
  cx->block = branch.sides[0];
  return branch;
}

static void end_side(cpu_t *cx, MlirValue value) { cpu_op0(cx, "scf.yield", value.ptr != NULL, &value); }

void cpu_branch_else(cpu_t *cx, cpu_branch_t *branch, MlirValue value) {
  end_side(cx, value);
  cx->block = branch->sides[1] = mlirBlockCreate(0, NULL, NULL);
}

MlirValue cpu_branch_end(cpu_t *cx, cpu_branch_t *branch, MlirValue value) {
  end_side(cx, value);
  cx->block = branch->outer;
  MlirType type = value.ptr ? mlirValueGetType(value) : (MlirType){NULL};
  MlirOperation op = cpu_if(cx, branch->condition, branch->sides[0], branch->sides[1], value.ptr != NULL, &type);
  return value.ptr ? mlirOperationGetResult(op, 0) : value;
}

/* --- memory ------------------------------------------------------------------------------------------------ */

MlirValue cpu_address(cpu_t *cx, MlirValue pointer, MlirType element, cpu_index_t offset) {
  if (!offset.base.ptr && offset.offset == 0)
    return pointer;
  bool constant = !offset.base.ptr && offset.offset == (int32_t)offset.offset;
  int32_t raw = constant ? (int32_t)offset.offset : INT32_MIN; /* INT32_MIN: the next dynamic operand */
  MlirValue operands[2] = {pointer, constant ? pointer : cpu_index_value(cx, offset)};
  tw_attr_t attrs[2] = {{"rawConstantIndices", mlirDenseI32ArrayGet(cx->context, 1, &raw)},
                        {"elem_type", mlirTypeAttrGet(element)}};
  MlirType type = cpu_pointer_type(cx);
  tw_builder_t at = cpu_here(cx);
  return tw_op1_attrs(&at, "llvm.getelementptr", type, constant ? 1 : 2, operands, 2, attrs);
}

MlirValue cpu_load(cpu_t *cx, MlirValue pointer, MlirType type, int align) {
  tw_builder_t at = cpu_here(cx);
  return tw_op1_attr(&at, "llvm.load", type, 1, &pointer, "alignment", mlirIntegerAttrGet(cpu_int(cx, 64), align));
}

void cpu_store(cpu_t *cx, MlirValue value, MlirValue pointer, int align) {
  MlirValue operands[2] = {value, pointer};
  tw_attr_t attr = {"alignment", mlirIntegerAttrGet(cpu_int(cx, 64), align)};
  tw_builder_t at = cpu_here(cx);
  tw_build(&at, "llvm.store", (tw_op_parts_t){.num_operands = 2, .operands = operands, .num_attrs = 1, .attrs = &attr});
}

tw_attr_t cpu_align_attr(cpu_t *cx, int bytes) {
  return (tw_attr_t){"alignment", mlirIntegerAttrGet(cpu_int(cx, 32), bytes)};
}

static MlirValue all_lanes(cpu_t *cx, int lanes) { return cpu_int_const(cx, cpu_vector(cpu_int(cx, 1), lanes), 1); }

MlirValue cpu_zero_of(cpu_t *cx, MlirType type) {
  return tw_is_float(type) ? cpu_float_const(cx, type, 0) : cpu_int_const(cx, type, 0);
}

MlirValue cpu_addresses(cpu_t *cx, MlirValue base, MlirType element, MlirValue offsets) {
  int64_t lanes = cpu_lanes_of(offsets);
  int32_t raw = INT32_MIN;
  MlirValue operands[2] = {base, offsets};
  MlirType type = mlirVectorTypeGet(1, &lanes, cpu_pointer_type(cx));
  tw_attr_t attrs[2] = {{"rawConstantIndices", mlirDenseI32ArrayGet(cx->context, 1, &raw)},
                        {"elem_type", mlirTypeAttrGet(element)}};
  tw_builder_t at = cpu_here(cx);
  return tw_op1_attrs(&at, "llvm.getelementptr", type, 2, operands, 2, attrs);
}

MlirValue cpu_masked_read(cpu_t *cx, const char *name, MlirType type, MlirValue operands[3], MlirType result) {
  tw_attr_t align = cpu_align_attr(cx, (int)tw_bytes(type));
  tw_builder_t at = cpu_here(cx);
  return tw_op1_attrs(&at, name, result, 3, operands, 1, &align);
}

MlirValue cpu_gather_at(cpu_t *cx, MlirValue pointers, MlirType type, MlirValue mask, MlirValue passthru) {
  int lanes = cpu_lanes_of(pointers);
  MlirType result = cpu_vector(type, lanes);
  MlirValue operands[3] = {pointers, mask.ptr ? cpu_splat(cx, mask, lanes) : all_lanes(cx, lanes),
                           passthru.ptr ? cpu_splat(cx, passthru, lanes) : cpu_zero_of(cx, result)};
  return cpu_masked_read(cx, "llvm.intr.masked.gather", type, operands, result);
}

void cpu_scatter_at(cpu_t *cx, MlirValue value, MlirValue pointers, MlirValue mask) {
  int lanes = cpu_lanes_of(pointers);
  MlirValue operands[3] = {cpu_splat(cx, value, lanes), pointers,
                           mask.ptr ? cpu_splat(cx, mask, lanes) : all_lanes(cx, lanes)};
  tw_attr_t align = cpu_align_attr(cx, (int)tw_bytes(cpu_element(value)));
  tw_builder_t at = cpu_here(cx);
  tw_build(&at, "llvm.intr.masked.scatter",
           (tw_op_parts_t){.num_operands = 3, .operands = operands, .num_attrs = 1, .attrs = &align});
}

MlirValue cpu_lane_offsets(cpu_t *cx, MlirValue stride, int lanes) {
  MlirValue lane = cpu_iota(cx, cpu_int(cx, 64), lanes);
  return cpu_bin(cx, "arith.muli", lane, cpu_splat(cx, stride, lanes));
}

MlirValue cpu_gather(cpu_t *cx, MlirValue address, MlirType type, MlirValue stride, int lanes, MlirValue mask,
                     MlirValue passthru) {
  return cpu_gather_at(cx, cpu_addresses(cx, address, type, cpu_lane_offsets(cx, stride, lanes)), type, mask, passthru);
}

void cpu_scatter(cpu_t *cx, MlirValue value, MlirValue address, MlirValue stride, MlirValue mask) {
  MlirType type = cpu_element(value);
  cpu_scatter_at(cx, value, cpu_addresses(cx, address, type, cpu_lane_offsets(cx, stride, cpu_lanes_of(value))), mask);
}
