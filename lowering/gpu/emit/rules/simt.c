/* simt.c - rules: the thread-level ops: positions, barriers, arrays that a kernel makes
 *
 *   tile.sync_threads                             nvvm.barrier0, or llvm.nvvm.barrier.cta.sync.all in divergent code
 *   tile.sync_grid                                the same, an atomic sum and a wait in one thread, the same again
 *   %n = tile.sync_vote count, %p                 llvm.nvvm.barrier.cta.red.popc.all
 *   %s = tile.shared_array {offset = 64 : i32}    shared memory + 64
 *   %v = tile.view %a at %o [%n] by [%d]          its pointer, extents and strides
 *   %l = tile.local_array                         llvm.alloca, which LLVM keeps in registers where it can
 *
 * In a SIMT kernel (attribute tile.simt) a scalar is one element a thread, which is what the emitter
 * makes of scalars anyway; only these ops know of threads. */
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
  if (tw_has_hint_check(op))
    return false;
  if (mlirOperationIsNull(e->uniform.func)) /* once for all barriers of a kernel */
    tw_uniform_find(&e->uniform, e->kernel);
  return tw_uniform_reaches(&e->uniform, op);
}

/* In divergent code the lanes of a warp may come one by one, and those that have left the kernel do not count. */
static void meet_block(tw_emitter_t *e, bool in_step) {
  if (in_step) {
    twg_barrier(e);
    return;
  }
  MlirValue all = twg_const_i32(e, 0);
  twg_intrinsic(e, "llvm.nvvm.barrier.cta.sync.all", (MlirType){NULL}, 1, &all, TW_PTX_EFFECT);
}

static bool rule_sync_threads(tw_emitter_t *e, MlirOperation op) {
  meet_block(e, is_in_step(e, op));
  return true;
}

/* A thread of each block adds to a word that the driver keeps for a cooperative launch, 4 bytes behind the address in
 * two environment registers: all of them together 2^31, so that its upper bit changes when the last one has come and
 * the others are as before, which CUDA's own barriers of grids need, too. */
static const char grid_barrier[] =
    "{ .reg .pred p; .reg .b32 x, y, n; .reg .b64 a; "
    "mov.u32 x, %tid.x; mov.u32 y, %tid.y; or.b32 x, x, y; mov.u32 y, %tid.z; or.b32 x, x, y; "
    "setp.ne.b32 p, x, 0; @p bra DONE; "
    "mov.u32 n, %nctaid.x; mov.u32 y, %nctaid.y; mul.lo.u32 n, n, y; mov.u32 y, %nctaid.z; mul.lo.u32 n, n, y; "
    "sub.u32 n, 0x80000001, n; "
    "mov.u32 x, %ctaid.x; mov.u32 y, %ctaid.y; or.b32 x, x, y; mov.u32 y, %ctaid.z; or.b32 x, x, y; "
    "setp.eq.b32 p, x, 0; selp.b32 n, n, 1, p; "
    "mov.u32 x, %envreg2; mov.u32 y, %envreg1; mov.b64 a, {x, y}; "
    "atom.add.release.gpu.u32 n, [a+4], n; "
    "WAIT: ld.acquire.gpu.u32 x, [a+4]; xor.b32 x, x, n; setp.ge.s32 p, x, 0; @p bra WAIT; "
    "DONE: }";

static bool rule_sync_grid(tw_emitter_t *e, MlirOperation op) {
  bool in_step = is_in_step(e, op);
  tw_launch_set_cooperative(e->kernel, true);
  meet_block(e, in_step);
  twg_asm(e, grid_barrier, "", (MlirType){NULL}, 0, NULL, TW_PTX_EFFECT);
  meet_block(e, in_step);
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

/* What the launch gave beyond the arrays of static shape, behind them; all of it where these are declared. */
static bool rule_dynamic_shared(tw_emitter_t *e, MlirOperation op) {
  int64_t first = e->c ? 0 : (tw_launch_shared_bytes(e->kernel, 0) + 15) / 16 * 16;
  MlirValue all = twg_asm(e, "mov.u32 $0, %dynamic_smem_size;", "=r", e->i32, 0, NULL, TW_PTX_NOTHING);
  tw_values_t array = twg_new_values(e, 3);
  array.at[0] = e->c ? twg_address_of(e, tw_str(TWG_SHARED_NAME), TW_SPACE_SHARED) : twg_shared_at(e, first);
  MlirValue bytes = twg_binary(e, "llvm.sub", all, twg_const_i32(e, first));
  bytes = twg_binary(e, "llvm.udiv", bytes, twg_const_i32(e, tw_memory_bytes(tw_result_element(op))));
  array.at[1] = twg_cast(e, "llvm.zext", e->i64, bytes);
  array.at[2] = twg_const_int(e, e->i64, 1);
  twg_set_result(e, op, 0, array);
  return true;
}

static bool rule_local_array(tw_emitter_t *e, MlirOperation op) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  int64_t align = tw_attr_int(op, "align", 0), least = tw_memory_bytes(tw_element(type));
  set_array(e, op, twg_local_memory(e, e->i8, tw_count(type) * least, align > least ? align : least));
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
  set_array(e, op,
            twg_constant_global(e, name, mlirLLVMArrayTypeGet(element, (unsigned)count),
                                mlirDenseElementsAttrReshapeGet(value, flat), TW_SPACE_CONSTANT, 16));
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
TWG_RULE(TW_TILE_SYNC_GRID, rule_sync_grid)
TWG_RULE(TW_TILE_SYNC_VOTE, rule_sync_vote)
TWG_RULE(TW_TILE_SLEEP, rule_sleep)
TWG_RULE(TW_TILE_SHARED_ARRAY, rule_shared_array)
TWG_RULE(TW_TILE_DYNAMIC_SHARED, rule_dynamic_shared)
TWG_RULE(TW_TILE_LOCAL_ARRAY, rule_local_array)
TWG_RULE(TW_TILE_CONST_ARRAY, rule_const_array)
