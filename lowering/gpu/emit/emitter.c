/* emitter.c - building blocks of tile-to-nvvm. See emitter.h. */
#include "lowering/gpu/emit/emitter.h"

#include "base/memory.h"
#include "lowering/loops.h"

#include "mlir-c/Dialect/LLVM.h"

#include <string.h>

/* ---- values ------------------------------------------------------------------------------------ */

enum { CHUNK_VALUES = 4096 };

struct tw_chunk {
  tw_chunk_t *next;
  size_t used, capacity;
  MlirValue values[];
};

tw_values_t twg_new_values(tw_emitter_t *e, int count) {
  size_t n = (size_t)count;
  if (e->chunks == NULL || e->chunks->capacity - e->chunks->used < n) {
    size_t capacity = n > CHUNK_VALUES ? n : CHUNK_VALUES;
    tw_chunk_t *chunk = tw_must(malloc(sizeof *chunk + capacity * sizeof(MlirValue)));
    *chunk = (tw_chunk_t){.next = e->chunks, .capacity = capacity};
    e->chunks = chunk;
  }
  tw_values_t values = {e->chunks->values + e->chunks->used, count};
  e->chunks->used += n;
  return values;
}

void twg_free_values(tw_emitter_t *e) {
  while (e->chunks != NULL) {
    tw_chunk_t *next = e->chunks->next;
    free(e->chunks);
    e->chunks = next;
  }
}

static tw_values_t look(const tw_map_t *map, const void *key) {
  intptr_t count = 0;
  const MlirValue *at = tw_map_get(map, key, &count);
  return (tw_values_t){(MlirValue *)at, at ? (int)count : 0};
}

tw_values_t twg_lookup(tw_emitter_t *e, MlirValue old) { return look(&e->values, old.ptr); }

void twg_bind(tw_emitter_t *e, MlirValue old, tw_values_t values) {
  tw_map_set(&e->values, old.ptr, values.count, values.at);
}

tw_values_t twg_static_array(tw_emitter_t *e, MlirType type, MlirValue pointer) {
  int64_t strides[TW_MAX_RANK];
  int rank = (int)tw_rank(type);
  tw_static_strides(type, strides);
  tw_values_t array = twg_new_values(e, 1 + 2 * rank);
  array.at[0] = pointer;
  for (int d = 0; d < rank; d++) {
    array.at[1 + d] = twg_const_int(e, e->i64, tw_extent(type, d));
    array.at[1 + rank + d] = twg_const_int(e, e->i64, strides[d]);
  }
  return array;
}

tw_values_t twg_operand(tw_emitter_t *e, MlirOperation op, intptr_t i) {
  return twg_lookup(e, mlirOperationGetOperand(op, i));
}

void twg_set_result(tw_emitter_t *e, MlirOperation op, intptr_t i, tw_values_t values) {
  twg_bind(e, mlirOperationGetResult(op, i), values);
}

bool twg_are_same(tw_values_t values) {
  for (int r = 1; r < values.count; r++)
    if (!mlirValueEqual(values.at[r], values.at[0]))
      return false;
  return true;
}

void twg_set_scalar(tw_emitter_t *e, MlirOperation op, intptr_t i, MlirValue value) {
  tw_values_t values = twg_new_values(e, 1);
  values.at[0] = value;
  twg_set_result(e, op, i, values);
}

bool twg_set_splat(tw_emitter_t *e, MlirOperation op, MlirValue value) {
  tw_values_t out = twg_new_values(e, tw_register_count(mlirValueGetType(mlirOperationGetResult(op, 0))));
  for (int r = 0; r < out.count; r++)
    out.at[r] = value;
  twg_set_result(e, op, 0, out);
  return true;
}

/* NOLINTBEGIN(clang-analyzer-core.NullDereference): an array is bound to its words from the start */
MlirValue twg_array_pointer(tw_emitter_t *e, MlirValue array) { return twg_lookup(e, array).at[0]; }

MlirValue twg_array_extent(tw_emitter_t *e, MlirValue array, int dim) { return twg_lookup(e, array).at[1 + dim]; }

MlirValue twg_array_stride(tw_emitter_t *e, MlirValue array, int dim) {
  int rank = (int)mlirShapedTypeGetRank(mlirValueGetType(array));
  return twg_lookup(e, array).at[1 + rank + dim];
}
/* NOLINTEND(clang-analyzer-core.NullDereference) */

/* ---- types ------------------------------------------------------------------------------------- */

MlirType twg_register_type(tw_emitter_t *e, MlirType element) {
  if (mlirTypeIsAInteger(element))
    return mlirIntegerTypeGet(e->context, mlirIntegerTypeGetWidth(element));
  if (mlirTypeIsATF32(element))
    return e->f32;
  return mlirTypeIsAFloat(element) && mlirFloatTypeGetWidth(element) <= 8 ? e->i8 : element;
}

MlirType twg_vector_type(MlirType element, int count) {
  int64_t shape = count;
  return mlirVectorTypeGet(1, &shape, element);
}

/* ---- operations -------------------------------------------------------------------------------- */

MlirAttribute twg_i32_attr(tw_emitter_t *e, int64_t value) { return mlirIntegerAttrGet(e->i32, value); }
MlirAttribute twg_i64_attr(tw_emitter_t *e, int64_t value) { return mlirIntegerAttrGet(e->i64, value); }

MlirNamedAttribute twg_named(tw_emitter_t *e, const char *name, MlirAttribute attribute) {
  return mlirNamedAttributeGet(mlirIdentifierGet(e->context, tw_str(name)), attribute);
}

MlirValue twg_op(tw_emitter_t *e, const char *name, MlirType type, int num_operands, const MlirValue *operands,
                 int num_attributes, const MlirNamedAttribute *attributes) {
  MlirOperationState state = mlirOperationStateGet(tw_str(name), e->location);
  mlirOperationStateAddOperands(&state, num_operands, operands);
  if (!mlirTypeIsNull(type))
    mlirOperationStateAddResults(&state, 1, &type);
  mlirOperationStateAddAttributes(&state, num_attributes, attributes);
  MlirOperation op = mlirOperationCreate(&state);
  mlirBlockAppendOwnedOperation(e->block, op);
  return mlirTypeIsNull(type) ? (MlirValue){NULL} : mlirOperationGetResult(op, 0);
}

/* Sums and products of f32 and f64 may fuse to fma, as GPU compilers do by default; in narrower
 * types the missing rounding would show. */
static bool takes_contract(const char *name) {
  return !strcmp(name, "llvm.fadd") || !strcmp(name, "llvm.fmul") || !strcmp(name, "llvm.fsub");
}

MlirValue twg_fma(tw_emitter_t *e, MlirValue x, MlirValue y, MlirValue z) {
  MlirValue operands[3] = {x, y, z};
  return twg_op(e, "llvm.intr.fma", mlirValueGetType(x), 3, operands, 0, NULL);
}

MlirValue twg_unary(tw_emitter_t *e, const char *name, MlirValue x) {
  return twg_op(e, name, mlirValueGetType(x), 1, &x, 0, NULL);
}

MlirValue twg_binary(tw_emitter_t *e, const char *name, MlirValue x, MlirValue y) {
  MlirValue operands[2] = {x, y};
  MlirType type = mlirValueGetType(x);
  bool fuse = mlirTypeIsAFloat(type) && mlirFloatTypeGetWidth(type) >= 32 && takes_contract(name);
  MlirNamedAttribute contract = {0};
  if (fuse)
    contract = twg_named(e, "fastmathFlags", e->contract);
  return twg_op(e, name, type, 2, operands, fuse, &contract);
}

MlirValue twg_cast(tw_emitter_t *e, const char *name, MlirType to, MlirValue x) {
  return twg_op(e, name, to, 1, &x, 0, NULL);
}

MlirValue twg_float_to_int(tw_emitter_t *e, const char *name, MlirType to, MlirValue x) {
  return twg_cast(e, "llvm.freeze", to, twg_cast(e, name, to, x));
}

MlirValue twg_bitcast(tw_emitter_t *e, MlirValue x, MlirType to) {
  return mlirTypeEqual(mlirValueGetType(x), to) ? x : twg_cast(e, "llvm.bitcast", to, x);
}

MlirValue twg_select(tw_emitter_t *e, MlirValue condition, MlirValue x, MlirValue y) {
  if (mlirValueEqual(x, y))
    return x;
  MlirValue operands[3] = {condition, x, y};
  return twg_op(e, "llvm.select", mlirValueGetType(x), 3, operands, 0, NULL);
}

static MlirValue compare(tw_emitter_t *e, const char *name, int predicate, MlirValue x, MlirValue y) {
  MlirValue operands[2] = {x, y};
  MlirNamedAttribute attribute = twg_named(e, "predicate", twg_i64_attr(e, predicate));
  return twg_op(e, name, e->i1, 2, operands, 1, &attribute);
}

MlirValue twg_icmp(tw_emitter_t *e, int predicate, MlirValue x, MlirValue y) {
  return compare(e, "llvm.icmp", predicate, x, y);
}

MlirValue twg_fcmp(tw_emitter_t *e, int predicate, MlirValue x, MlirValue y) {
  return compare(e, "llvm.fcmp", predicate, x, y);
}

MlirValue twg_intrinsic(tw_emitter_t *e, const char *name, MlirType type, int num_operands, const MlirValue *operands,
                        tw_ptx_does_t does) {
  int32_t segments[2] = {num_operands, 0};
  MlirNamedAttribute attributes[] = {
      twg_named(e, "intrin", mlirStringAttrGet(e->context, tw_str(name))),
      twg_named(e, "op_bundle_sizes", mlirDenseI32ArrayGet(e->context, 0, NULL)),
      twg_named(e, "operandSegmentSizes", mlirDenseI32ArrayGet(e->context, 2, segments)),
      twg_named(e, TW_PTX_DOES, tw_ptx_does_attr(e->context, does)),
  };
  int count = does == TW_PTX_EFFECT ? 3 : 4;
  return twg_op(e, "llvm.call_intrinsic", type, num_operands, operands, count, attributes);
}

MlirValue twg_asm(tw_emitter_t *e, const char *text, const char *constraints, MlirType type, int num_operands,
                  const MlirValue *operands, tw_ptx_does_t does) {
  MlirNamedAttribute attributes[] = {
      twg_named(e, "asm_string", mlirStringAttrGet(e->context, tw_str(text))),
      twg_named(e, "constraints", mlirStringAttrGet(e->context, tw_str(constraints))),
      twg_named(e, "has_side_effects", mlirUnitAttrGet(e->context)),
      twg_named(e, TW_PTX_DOES, tw_ptx_does_attr(e->context, does)),
  };
  int count = does == TW_PTX_NOTHING ? 2 : does == TW_PTX_EFFECT ? 3 : 4;
  return twg_op(e, "llvm.inline_asm", type, num_operands, operands, count, attributes);
}

MlirValue twg_extract(tw_emitter_t *e, MlirValue aggregate, int index, MlirType type) {
  int64_t position = index;
  MlirNamedAttribute attribute = twg_named(e, "position", mlirDenseI64ArrayGet(e->context, 1, &position));
  return twg_op(e, "llvm.extractvalue", type, 1, &aggregate, 1, &attribute);
}

/* The vector that the elements x are all of, in order; null where they were not unpacked from one. */
static MlirValue vector_behind(tw_emitter_t *e, int count, const MlirValue *x) {
  MlirValue vector = {NULL};
  for (int i = 0; i < count; i++) {
    MlirOperation op = tw_def(x[i]);
    if (mlirOperationIsNull(op) || !tw_op_is(op, TW_LLVM_EXTRACTELEMENT) ||
        !mlirValueEqual(mlirOperationGetOperand(op, 1), twg_const_i32(e, i)))
      return (MlirValue){NULL};
    MlirValue from = mlirOperationGetOperand(op, 0);
    if (i > 0 ? !mlirValueEqual(from, vector) : mlirShapedTypeGetDimSize(mlirValueGetType(from), 0) != count)
      return (MlirValue){NULL};
    vector = from;
  }
  return vector;
}

/* The word that a vector was settled from (twg_settle); null if it was not. */
static MlirValue unsettled(tw_emitter_t *e, MlirValue vector) {
  MlirOperation op = vector.ptr ? tw_def(vector) : tw_null_op();
  if (mlirOperationIsNull(op) || mlirOperationGetNumOperands(op) != 1) /* no bitcast */
    return (MlirValue){NULL};
  tw_values_t found = look(&e->settled, mlirOperationGetOperand(op, 0).ptr);
  return found.count ? found.at[0] : (MlirValue){NULL};
}

MlirValue twg_pack(tw_emitter_t *e, MlirType element, int count, const MlirValue *values) {
  MlirType type = twg_vector_type(element, count);
  MlirValue word = unsettled(e, vector_behind(e, count, values));
  if (word.ptr)
    return twg_bitcast(e, word, type);
  MlirValue vector = twg_op(e, "llvm.mlir.poison", type, 0, NULL, 0, NULL);
  for (int i = 0; i < count; i++) {
    MlirValue operands[3] = {vector, values[i], twg_const_i32(e, i)};
    vector = twg_op(e, "llvm.insertelement", type, 3, operands, 0, NULL);
  }
  return vector;
}

MlirValue twg_unpack(tw_emitter_t *e, MlirValue vector, int index, MlirType element) {
  MlirValue operands[2] = {vector, twg_const_i32(e, index)};
  return twg_op(e, "llvm.extractelement", element, 2, operands, 0, NULL);
}

MlirValue twg_word_behind(tw_emitter_t *e, int count, const MlirValue *x) {
  MlirValue vector = vector_behind(e, count, x), word = unsettled(e, vector);
  if (word.ptr || !vector.ptr)
    return word;
  MlirType element = mlirShapedTypeGetElementType(mlirValueGetType(vector));
  return twg_bitcast(e, vector, mlirIntegerTypeGet(e->context, (unsigned)count * tw_bits(element)));
}

MlirValue twg_word_around(tw_emitter_t *e, MlirValue x, int *place) {
  MlirOperation op = tw_def(x);
  if (mlirOperationIsNull(op) || !tw_op_is(op, TW_LLVM_EXTRACTELEMENT))
    return (MlirValue){NULL};
  MlirValue vector = mlirOperationGetOperand(op, 0);
  MlirType type = mlirValueGetType(vector);
  if (mlirShapedTypeGetDimSize(type, 0) != 2 || tw_bits(mlirShapedTypeGetElementType(type)) != 16)
    return (MlirValue){NULL};
  *place = mlirValueEqual(mlirOperationGetOperand(op, 1), twg_const_i32(e, 0)) ? 0 : 1;
  MlirValue word = unsettled(e, vector);
  return word.ptr ? word : twg_bitcast(e, vector, e->i32);
}

/* An i32 that is 0: no lane number is both below and above itself. The assembler does not know that of these masks. */
static MlirValue build_opaque_zero(tw_emitter_t *e) {
  return twg_asm(e,
                 "{ .reg .b32 above; mov.u32 $0, %lanemask_lt; mov.u32 above, %lanemask_gt; "
                 "and.b32 $0, $0, above; }",
                 "=r", e->i32, 0, NULL, TW_PTX_NOTHING);
}

MlirValue twg_opaque_zero(tw_emitter_t *e) {
  MlirBlock here = e->block;
  e->block = e->entry;
  e->zero = e->zero.ptr ? e->zero : build_opaque_zero(e);
  e->block = here;
  return e->zero;
}

MlirValue twg_thread_pointer(tw_emitter_t *e, MlirValue pointer) {
  return twg_offset_pointer(e, pointer, twg_opaque_zero(e));
}

MlirValue twg_settle(tw_emitter_t *e, MlirValue word) {
  MlirValue operands[] = {word, twg_opaque_zero(e)};
  MlirValue settled = twg_asm(e, "xor.b32 $0, $1, $2;", "=r,r,r", e->i32, 2, operands, TW_PTX_NOTHING);
  tw_map_one(&e->settled, settled, word);
  return settled;
}

/* ---- constants --------------------------------------------------------------------------------- */

MlirValue twg_constant(tw_emitter_t *e, MlirType type, MlirAttribute value) {
  /* the attribute knows its type, except that an i8 constant may stand for a narrow float */
  tw_values_t found = look(&e->constants, value.ptr);
  if (found.count)
    return found.at[0];
  MlirBlock here = e->block;
  MlirNamedAttribute attribute = twg_named(e, "value", value);
  e->block = e->entry;
  tw_values_t made = twg_new_values(e, 1);
  made.at[0] = twg_op(e, "llvm.mlir.constant", type, 0, NULL, 1, &attribute);
  e->block = here;
  tw_map_set(&e->constants, value.ptr, 1, made.at);
  return made.at[0];
}

MlirValue twg_const_int(tw_emitter_t *e, MlirType type, int64_t value) {
  return twg_constant(e, type, mlirIntegerAttrGet(type, value));
}

MlirValue twg_const_i32(tw_emitter_t *e, int64_t value) { return twg_const_int(e, e->i32, value); }

MlirValue twg_const_float(tw_emitter_t *e, MlirType type, double value) {
  return twg_constant(e, type, mlirFloatAttrDoubleGet(e->context, type, value));
}

/* ---- memory ------------------------------------------------------------------------------------ */

MlirValue twg_offset_pointer(tw_emitter_t *e, MlirValue pointer, MlirValue bytes) {
  return twg_element_behind(e, pointer, bytes, e->i8);
}

MlirValue twg_element_behind(tw_emitter_t *e, MlirValue pointer, MlirValue count, MlirType type) {
  int32_t dynamic = INT32_MIN;
  MlirValue operands[2] = {pointer, count};
  MlirNamedAttribute attributes[] = {
      twg_named(e, "elem_type", mlirTypeAttrGet(type)),
      twg_named(e, "rawConstantIndices", mlirDenseI32ArrayGet(e->context, 1, &dynamic)),
  };
  return twg_op(e, "llvm.getelementptr", mlirValueGetType(pointer), 2, operands, 2, attributes);
}

MlirValue twg_add_bytes(tw_emitter_t *e, MlirValue pointer, int64_t bytes) {
  return bytes ? twg_offset_pointer(e, pointer, twg_const_i32(e, bytes)) : pointer;
}

MlirValue twg_load_from(tw_emitter_t *e, MlirType type, MlirValue pointer, int align) {
  MlirNamedAttribute attribute = twg_named(e, "alignment", twg_i64_attr(e, align));
  return twg_op(e, "llvm.load", type, 1, &pointer, 1, &attribute);
}

void twg_assume_aligned(tw_emitter_t *e, MlirValue pointer, int64_t align) {
  int32_t sizes[] = {2};
  MlirAttribute tag = mlirStringAttrGet(e->context, tw_str("align"));
  MlirNamedAttribute attributes[] = {twg_named(e, "op_bundle_sizes", mlirDenseI32ArrayGet(e->context, 1, sizes)),
                                     twg_named(e, "op_bundle_tags", mlirArrayAttrGet(e->context, 1, &tag))};
  MlirValue operands[] = {twg_const_int(e, e->i1, 1), pointer, twg_const_int(e, e->i64, align)};
  twg_op(e, "llvm.intr.assume", (MlirType){NULL}, 3, operands, 2, attributes);
}

void twg_assume_multiple(tw_emitter_t *e, MlirValue number, int64_t of) {
  MlirValue rest = twg_binary(e, "llvm.and", number, twg_const_int(e, e->i64, of - 1));
  MlirValue holds = twg_icmp(e, TW_EQ, rest, twg_const_int(e, e->i64, 0));
  int32_t none[] = {0};
  MlirNamedAttribute attribute = twg_named(e, "op_bundle_sizes", mlirDenseI32ArrayGet(e->context, 0, none));
  twg_op(e, "llvm.intr.assume", (MlirType){NULL}, 1, &holds, 1, &attribute);
}

void twg_store_to(tw_emitter_t *e, MlirValue value, MlirValue pointer, int align) {
  MlirValue operands[2] = {value, pointer};
  MlirNamedAttribute attribute = twg_named(e, "alignment", twg_i64_attr(e, align));
  twg_op(e, "llvm.store", (MlirType){NULL}, 2, operands, 1, &attribute);
}

void twg_add_to_module(tw_emitter_t *e, const char *name, int count, const MlirNamedAttribute *attributes) {
  MlirOperationState state = mlirOperationStateGet(tw_str(name), e->location);
  MlirRegion region = mlirRegionCreate();
  mlirOperationStateAddAttributes(&state, count, attributes);
  mlirOperationStateAddOwnedRegions(&state, 1, &region);
  MlirBlock body = mlirModuleGetBody(mlirModuleFromOperation(e->module));
  mlirBlockInsertOwnedOperation(body, 0, mlirOperationCreate(&state));
}

MlirValue twg_constant_global(tw_emitter_t *e, const char *name, MlirType type, MlirAttribute value, int space,
                              int64_t align) {
  MlirNamedAttribute attributes[] = {
      twg_named(e, "sym_name", mlirStringAttrGet(e->context, tw_str(name))),
      twg_named(e, "global_type", mlirTypeAttrGet(type)),
      twg_named(e, "linkage", mlirLLVMLinkageAttrGet(e->context, MlirLLVMLinkageInternal)),
      twg_named(e, "constant", mlirUnitAttrGet(e->context)),
      twg_named(e, "addr_space", twg_i32_attr(e, space)),
      twg_named(e, "value", value),
      twg_named(e, "alignment", twg_i64_attr(e, align)),
  };
  twg_add_to_module(e, "llvm.mlir.global", align ? 7 : 6, attributes);
  return twg_address_of(e, tw_str(name), space);
}

MlirValue twg_address_of(tw_emitter_t *e, MlirStringRef name, int space) {
  MlirNamedAttribute symbol = twg_named(e, "global_name", mlirFlatSymbolRefAttrGet(e->context, name));
  return twg_op(e, "llvm.mlir.addressof", mlirLLVMPointerTypeGet(e->context, (unsigned)space), 0, NULL, 1, &symbol);
}

MlirValue twg_local_memory(tw_emitter_t *e, MlirType type, int64_t count, int64_t align) {
  MlirBlock here = e->block;
  e->block = e->entry;
  MlirValue size = twg_const_int(e, e->i64, count);
  MlirNamedAttribute attributes[] = {twg_named(e, "elem_type", mlirTypeAttrGet(type)),
                                     twg_named(e, "alignment", twg_i64_attr(e, align))};
  MlirValue memory = twg_op(e, "llvm.alloca", mlirLLVMPointerTypeGet(e->context, 0), 1, &size, 2, attributes);
  e->block = here;
  return memory;
}

MlirValue twg_shared_at(tw_emitter_t *e, int64_t bytes) {
  return bytes ? twg_offset_pointer(e, e->shared_base, twg_const_i32(e, bytes)) : e->shared_base;
}

bool twg_rule_alloc(tw_emitter_t *e, MlirOperation op) {
  if (!tw_has_attr(op, "offset")) {
    tw_op_error(op, "has no offset; run tile-allocate-shared first");
    return false;
  }
  twg_set_scalar(e, op, 0, twg_shared_at(e, tw_attr_int(op, "offset", 0)));
  return true;
}

/* Number of the barrier of the first consumer group; 0 is that of all threads. */
static MlirValue consumers_barrier(tw_emitter_t *e) {
  MlirValue first = twg_const_i32(e, 1);
  return e->consumer_group.ptr ? twg_binary(e, "llvm.add", e->consumer_group, first) : first;
}

void twg_barrier(tw_emitter_t *e) {
  if (!e->is_consumer) {
    twg_op(e, "nvvm.barrier0", (MlirType){NULL}, 0, NULL, 0, NULL);
    return;
  }
  MlirValue operands[] = {consumers_barrier(e), twg_const_i32(e, 32 * (int64_t)e->num_warps)};
  twg_intrinsic(e, "llvm.nvvm.barrier.cta.sync.aligned.count", (MlirType){NULL}, 2, operands, TW_PTX_EFFECT);
}

MlirValue twg_barrier_any(tw_emitter_t *e, MlirValue x) {
  MlirValue all[] = {twg_const_i32(e, 0), x};
  if (!e->is_consumer)
    return twg_intrinsic(e, "llvm.nvvm.barrier.cta.red.or.aligned.all", e->i1, 2, all, TW_PTX_EFFECT);
  MlirValue operands[] = {consumers_barrier(e), twg_const_i32(e, 32 * (int64_t)e->num_warps), x};
  return twg_intrinsic(e, "llvm.nvvm.barrier.cta.red.or.aligned.count", e->i1, 3, operands, TW_PTX_EFFECT);
}

/* ---- control ----------------------------------------------------------------------------------- */

MlirBlock twg_new_block(tw_emitter_t *e, int num_arguments, const MlirType *types) {
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  for (int i = 0; i < num_arguments; i++)
    mlirBlockAddArgument(block, types[i], e->location);
  mlirRegionAppendOwnedBlock(e->region, block);
  return block;
}

void twg_branch(tw_emitter_t *e, MlirBlock to, int num_operands, const MlirValue *operands) {
  MlirOperationState state = mlirOperationStateGet(tw_str("llvm.br"), e->location);
  mlirOperationStateAddOperands(&state, num_operands, operands);
  mlirOperationStateAddSuccessors(&state, 1, &to);
  mlirBlockAppendOwnedOperation(e->block, mlirOperationCreate(&state));
}

void twg_branch_if(tw_emitter_t *e, MlirValue condition, MlirBlock then, int num_then, const MlirValue *then_operands,
                   MlirBlock otherwise, int num_otherwise, const MlirValue *otherwise_operands) {
  MlirOperationState state = mlirOperationStateGet(tw_str("llvm.cond_br"), e->location);
  MlirBlock successors[2] = {then, otherwise};
  int32_t segments[3] = {1, num_then, num_otherwise};
  MlirNamedAttribute attribute = twg_named(e, "operandSegmentSizes", mlirDenseI32ArrayGet(e->context, 3, segments));
  mlirOperationStateAddOperands(&state, 1, &condition);
  mlirOperationStateAddOperands(&state, num_then, then_operands);
  mlirOperationStateAddOperands(&state, num_otherwise, otherwise_operands);
  mlirOperationStateAddSuccessors(&state, 2, successors);
  mlirOperationStateAddAttributes(&state, 1, &attribute);
  mlirBlockAppendOwnedOperation(e->block, mlirOperationCreate(&state));
}

MlirBlock twg_begin_if(tw_emitter_t *e, MlirValue condition) {
  MlirBlock then = twg_new_block(e, 0, NULL), after = twg_new_block(e, 0, NULL);
  twg_branch_if(e, condition, then, 0, NULL, after, 0, NULL);
  e->block = then;
  return after;
}

void twg_end_if(tw_emitter_t *e, MlirBlock after) {
  twg_branch(e, after, 0, NULL);
  e->block = after;
}

void twg_begin_loop(tw_emitter_t *e, twg_loop_t *loop, MlirOperation op) {
  *loop = (twg_loop_t){.op = op, .before = e->block, .around = e->loop};
  e->loop = loop;
}

static bool is_made_in(MlirValue value, MlirOperation loop) {
  if (mlirValueIsABlockArgument(value))
    return tw_is_inside(mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value)), loop);
  return tw_is_inside(mlirOpResultGetOwner(value), loop);
}

twg_loop_t *twg_loop_without(tw_emitter_t *e, MlirValue old) {
  twg_loop_t *found = NULL;
  for (twg_loop_t *loop = e->loop; loop && !is_made_in(old, loop->op); loop = loop->around)
    found = loop;
  return found;
}

static tw_values_t join(tw_emitter_t *e, tw_values_t x, int count, const MlirValue *y) {
  tw_values_t out = twg_new_values(e, x.count + count);
  for (int i = 0; i < out.count; i++)
    out.at[i] = i < x.count ? x.at[i] : y[i - x.count];
  return out;
}

void twg_keep_behind(tw_emitter_t *e, twg_loop_t *loop, MlirValue old, tw_values_t words) {
  for (int i = 0; i < loop->olds.count; i++)
    if (mlirValueEqual(loop->olds.at[i], old))
      return;
  loop->olds = join(e, loop->olds, 1, &old);
  loop->kept = join(e, loop->kept, words.count, words.at);
}

void twg_end_loop(tw_emitter_t *e, twg_loop_t *loop) {
  enum { WORDS = 4 };
  e->loop = loop->around;
  if (loop->kept.count == 0)
    return;
  MlirValue operands[1 + WORDS] = {build_opaque_zero(e)};
  for (int i = 0; i < loop->kept.count; i += WORDS) {
    memcpy(operands + 1, loop->kept.at + i, WORDS * sizeof *operands);
    twg_asm(e, "{ .reg .pred p; setp.ne.u32 p, $0, 0; @p st.shared.v4.b32 [$0], {$1, $2, $3, $4}; }", "r,r,r,r,r",
            (MlirType){NULL}, 1 + WORDS, operands, TW_PTX_STORES);
  }
}

/* ---- positions --------------------------------------------------------------------------------- */

/* Adds what `source` (lane or warp) contributes. Neighbouring bits that move by the same distance share one mask and
 * one shift. */
static MlirValue add_linear(tw_emitter_t *e, MlirValue sum, MlirValue source, const uint32_t *images, int count) {
  for (int out = 0; out < 32; out++) { /* by output bit, so that any linear map works */
    for (int in = 0; in < count; in++) {
      if ((images[in] >> out & 1) == 0 || (in > 0 && out > 0 && (images[in - 1] >> (out - 1) & 1)))
        continue; /* skips a bit inside of a run that was emitted with its first bit */
      uint32_t mask = 0;
      for (int k = 0; in + k < count && out + k < 32 && (images[in + k] >> (out + k) & 1); k++)
        mask |= UINT32_C(1) << (in + k);
      MlirValue part = source;
      if (mask != (UINT32_C(1) << count) - 1)
        part = twg_binary(e, "llvm.and", part, twg_const_i32(e, mask));
      if (out > in)
        part = twg_binary(e, "llvm.shl", part, twg_const_i32(e, out - in));
      else if (in > out)
        part = twg_binary(e, "llvm.lshr", part, twg_const_i32(e, in - out));
      sum = sum.ptr ? twg_binary(e, "llvm.xor", sum, part) : part;
    }
  }
  return sum;
}

MlirValue twg_linear_of_thread(tw_emitter_t *e, const uint32_t *lane_bits, int num_lane, const uint32_t *warp_bits,
                               int num_warp) {
  MlirBlock here = e->block;
  e->block = e->entry;
  MlirValue sum = add_linear(e, (MlirValue){NULL}, e->lane, lane_bits, num_lane);
  sum = add_linear(e, sum, e->warp, warp_bits, num_warp);
  e->block = here;
  return sum.ptr ? sum : twg_const_i32(e, 0);
}

MlirValue twg_thread_coord(tw_emitter_t *e, const tw_layout_t *l, int dim) {
  uint32_t lane[TW_LAYOUT_MAX_BITS], warp[TW_LAYOUT_MAX_BITS];
  for (int i = 0; i < l->bits[TW_LANE]; i++)
    lane[i] = tw_layout_coord(l, l->basis[TW_LANE][i], dim);
  for (int i = 0; i < l->bits[TW_WARP]; i++)
    warp[i] = tw_layout_coord(l, l->basis[TW_WARP][i], dim);
  return twg_linear_of_thread(e, lane, l->bits[TW_LANE], warp, l->bits[TW_WARP]);
}

MlirValue twg_register_coord(tw_emitter_t *e, const tw_layout_t *l, int dim, int reg) {
  uint32_t image = tw_layout_image(l, TW_REGISTER, (uint32_t)reg);
  MlirValue own = twg_const_i32(e, tw_layout_coord(l, image, dim));
  const char *join = tw_layout_disjoint(l, dim) ? "llvm.add" : "llvm.xor";
  return twg_binary(e, join, twg_thread_coord(e, l, dim), own);
}

/* ---- register by register ------------------------------------------------------------------------ */

bool twg_each_register(tw_emitter_t *e, MlirOperation op, twg_element_fn_t fn) {
  int n = (int)mlirOperationGetNumOperands(op);
  tw_values_t in[3] = {{NULL, 0}};
  for (int k = 0; k < n && k < 3; k++)
    in[k] = twg_operand(e, op, k);
  tw_values_t out = twg_new_values(e, in[n - 1].count);
  for (int r = 0; r < out.count; r++) {
    MlirValue x[3];
    bool same = r > 0;
    for (int k = 0; k < n && k < 3; k++) {
      x[k] = in[k].count == 1 ? in[k].at[0] : in[k].at[r];
      same = same && (in[k].count == 1 || mlirValueEqual(x[k], in[k].at[r - 1]));
    }
    out.at[r] = same ? out.at[r - 1] : fn(e, op, x);
  }
  twg_set_result(e, op, 0, out);
  return true;
}
