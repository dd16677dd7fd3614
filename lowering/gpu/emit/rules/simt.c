/* simt.c - rules: the thread-level ops: positions, barriers, arrays that a kernel makes
 *
 *   tile.sync_threads                             nvvm.barrier0, or llvm.nvvm.barrier.cta.sync.all in divergent code
 *   %n = tile.sync_vote count, %p                 llvm.nvvm.barrier.cta.red.popc.all
 *   %s = tile.shared_array {offset = 64 : i32}    shared memory + 64
 *   %v = tile.view %a at %o [%n] by [%d]          its pointer, extents and strides
 *   %l = tile.local_array                         llvm.alloca, which LLVM keeps in registers where it can
 *
 * In a SIMT kernel (attribute tile.simt) a scalar is one element a thread, which is what the emitter
 * makes of scalars anyway; only these ops know of threads. */
#include "lowering/common/uniform.h"
#include "lowering/gpu/emit/rules.h"
#include "lowering/launch_record.h"
#include "tilewright/dialect.h"

#include "mlir-c/Dialect/LLVM.h"

#include <stdio.h>

/* ---- positions ----------------------------------------------------------------------------------------- */

static bool bind_special_register(tw_emitter_t *e, MlirOperation op, const char *family) {
  char name[64];
  snprintf(name, sizeof name, "nvvm.read.ptx.sreg.%s.%c", family, "xyz"[tw_attr_int(op, "axis", 0) % 3]);
  twg_set_scalar(e, op, 0, twg_op(e, name, e->i32, 0, NULL, 0, NULL));
  return true;
}

static bool rule_thread_id(tw_emitter_t *e, MlirOperation op) { return bind_special_register(e, op, "tid"); }

static bool rule_block_dim(tw_emitter_t *e, MlirOperation op) { return bind_special_register(e, op, "ntid"); }

/* ---- barriers ------------------------------------------------------------------------------------------ */

/* Whether all threads of the block come to an op together, so that whole warps do. In check mode another barrier may
 * hold some of them. */
static bool is_in_step(tw_emitter_t *e, MlirOperation op) {
  tw_uniform_t uniform;
  if (tw_has_hint_check(op))
    return false;
  tw_uniform_find(&uniform, e->kernel);
  bool together = tw_uniform_reaches(&uniform, op);
  tw_uniform_free(&uniform);
  return together;
}

/* In divergent code the lanes of a warp may come one by one, and those that have left the kernel do not count. */
static bool rule_sync_threads(tw_emitter_t *e, MlirOperation op) {
  if (is_in_step(e, op)) {
    twg_barrier(e);
    return true;
  }
  MlirValue all = twg_const_i32(e, 0);
  twg_intrinsic(e, "llvm.nvvm.barrier.cta.sync.all", (MlirType){NULL}, 1, &all, TW_PTX_EFFECT);
  return true;
}

static bool rule_sync_vote(tw_emitter_t *e, MlirOperation op) {
  static const char *const names[] = {[TW_BLOCK_COUNT] = "popc", [TW_BLOCK_EVERY] = "and", [TW_BLOCK_SOME] = "or"};
  int64_t kind = tw_attr_int(op, "kind", 0);
  char name[64];
  snprintf(name, sizeof name, "llvm.nvvm.barrier.cta.red.%s%s.all", names[kind], is_in_step(e, op) ? ".aligned" : "");
  MlirValue operands[2] = {twg_const_i32(e, 0), twg_operand(e, op, 0).at[0]};
  twg_set_scalar(e, op, 0, twg_intrinsic(e, name, kind == TW_BLOCK_COUNT ? e->i32 : e->i1, 2, operands, TW_PTX_EFFECT));
  return true;
}

static bool rule_sleep(tw_emitter_t *e, MlirOperation op) {
  MlirValue time = twg_operand(e, op, 0).at[0];
  twg_asm(e, "nanosleep.u32 $0;", "r", (MlirType){NULL}, 1, &time, TW_PTX_EFFECT);
  return true;
}

/* ---- arrays -------------------------------------------------------------------------------------------- */

static void set_array(tw_emitter_t *e, MlirOperation op, MlirValue pointer) {
  twg_set_result(e, op, 0, twg_static_array(e, mlirValueGetType(mlirOperationGetResult(op, 0)), pointer));
}

static bool rule_shared_array(tw_emitter_t *e, MlirOperation op) {
  set_array(e, op, twg_shared_at(e, tw_attr_int(op, "offset", 0)));
  return true;
}

/* Bytes of an element there. */
static int64_t bytes_of(MlirType type) {
  int bits = tw_memory_bits(tw_element(type));
  return bits < 8 ? 1 : bits / 8;
}

/* What the launch gives: all of it where the arrays of static shape are declared. */
static MlirValue declared_shared(tw_emitter_t *e) {
  MlirNamedAttribute symbol =
      twg_named(e, "global_name", mlirFlatSymbolRefAttrGet(e->context, tw_str(TWG_SHARED_NAME)));
  return twg_op(e, "llvm.mlir.addressof", e->shared, 0, NULL, 1, &symbol);
}

/* What the launch gave beyond the arrays of static shape, behind them. */
static bool rule_dynamic_shared(tw_emitter_t *e, MlirOperation op) {
  int64_t first = e->c ? 0 : (tw_launch_shared_bytes(e->kernel, 0) + 15) / 16 * 16;
  MlirValue all = twg_asm(e, "mov.u32 $0, %dynamic_smem_size;", "=r", e->i32, 0, NULL, TW_PTX_NOTHING);
  tw_values_t array = twg_new_values(e, 3);
  array.at[0] = e->c ? declared_shared(e) : twg_shared_at(e, first);
  MlirValue bytes = twg_binary(e, "llvm.sub", all, twg_const_i32(e, first));
  bytes =
      twg_binary(e, "llvm.udiv", bytes, twg_const_i32(e, bytes_of(mlirValueGetType(mlirOperationGetResult(op, 0)))));
  array.at[1] = twg_cast(e, "llvm.zext", e->i64, bytes);
  array.at[2] = twg_const_int(e, e->i64, 1);
  twg_set_result(e, op, 0, array);
  return true;
}

static bool rule_local_array(tw_emitter_t *e, MlirOperation op) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  int64_t align = tw_attr_int(op, "align", 0), least = bytes_of(type);
  MlirBlock here = e->block;
  e->block = e->entry; /* once, though it stand in a loop */
  MlirValue count = twg_const_int(e, e->i64, tw_count(type) * least);
  MlirNamedAttribute attributes[] = {twg_named(e, "elem_type", mlirTypeAttrGet(e->i8)),
                                     twg_named(e, "alignment", twg_i64_attr(e, align > least ? align : least))};
  MlirValue pointer = twg_op(e, "llvm.alloca", mlirLLVMPointerTypeGet(e->context, 0), 1, &count, 2, attributes);
  e->block = here;
  set_array(e, op, pointer);
  return true;
}

/* A global of the module, in constant memory. */
static bool rule_const_array(tw_emitter_t *e, MlirOperation op) {
  MlirAttribute value = tw_attr(op, "value");
  char name[64];
  int64_t count = tw_count(mlirAttributeGetType(value));
  MlirType element = mlirShapedTypeGetElementType(mlirAttributeGetType(value));
  MlirType flat = mlirRankedTensorTypeGet(1, &count, element, (MlirAttribute){NULL});
  snprintf(name, sizeof name, "tw_const_%d", e->num_strings++);
  MlirNamedAttribute attributes[] = {
      twg_named(e, "sym_name", mlirStringAttrGet(e->context, tw_str(name))),
      twg_named(e, "global_type", mlirTypeAttrGet(mlirLLVMArrayTypeGet(element, (unsigned)count))),
      twg_named(e, "linkage", mlirLLVMLinkageAttrGet(e->context, MlirLLVMLinkageInternal)),
      twg_named(e, "constant", mlirUnitAttrGet(e->context)),
      twg_named(e, "addr_space", twg_i32_attr(e, TW_SPACE_CONSTANT)),
      twg_named(e, "alignment", twg_i64_attr(e, 16)),
      twg_named(e, "value", mlirDenseElementsAttrReshapeGet(value, flat)),
  };
  twg_add_to_module(e, "llvm.mlir.global", sizeof attributes / sizeof *attributes, attributes);
  MlirNamedAttribute symbol = twg_named(e, "global_name", mlirFlatSymbolRefAttrGet(e->context, tw_str(name)));
  set_array(
      e, op,
      twg_op(e, "llvm.mlir.addressof", mlirLLVMPointerTypeGet(e->context, TW_SPACE_CONSTANT), 0, NULL, 1, &symbol));
  return true;
}

/* Operands: the array, the offset in bytes, the extents, the strides in elements. */
static bool rule_view(tw_emitter_t *e, MlirOperation op) {
  int rank = (int)tw_rank(mlirValueGetType(mlirOperationGetResult(op, 0)));
  tw_values_t view = twg_new_values(e, 1 + 2 * rank);
  MlirValue pointer = twg_array_pointer(e, mlirOperationGetOperand(op, 0));
  view.at[0] = twg_offset_pointer(e, pointer, twg_operand(e, op, 1).at[0]);
  int64_t align = tw_attr_int(op, "align", 0);
  if (align)
    twg_assume_aligned(e, view.at[0], align);
  for (int i = 0; i < 2 * rank; i++)
    view.at[1 + i] = twg_operand(e, op, 2 + i).at[0];
  twg_set_result(e, op, 0, view);
  return true;
}

static bool rule_address(tw_emitter_t *e, MlirOperation op) {
  MlirValue pointer = twg_array_pointer(e, mlirOperationGetOperand(op, 0));
  twg_set_scalar(e, op, 0, twg_cast(e, "llvm.ptrtoint", e->i64, pointer));
  return true;
}

TWG_RULE(TW_TILE_ADDRESS, rule_address)
TWG_RULE(TW_TILE_VIEW, rule_view)
TWG_RULE(TW_TILE_THREAD_ID, rule_thread_id)
TWG_RULE(TW_TILE_BLOCK_DIM, rule_block_dim)
TWG_RULE(TW_TILE_SYNC_THREADS, rule_sync_threads)
TWG_RULE(TW_TILE_SYNC_VOTE, rule_sync_vote)
TWG_RULE(TW_TILE_SLEEP, rule_sleep)
TWG_RULE(TW_TILE_SHARED_ARRAY, rule_shared_array)
TWG_RULE(TW_TILE_DYNAMIC_SHARED, rule_dynamic_shared)
TWG_RULE(TW_TILE_LOCAL_ARRAY, rule_local_array)
TWG_RULE(TW_TILE_CONST_ARRAY, rule_const_array)
