/* shared.c - rules: buffers in shared memory
 *
 * A local_load uses ldmatrix where the layouts of tile and buffer have its form (isa/matrix_access.h), else
 * plain accesses. */
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/emit/shared_access.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/isa/matrix_access.h"

#include "tilewright/dialect.h"

/* ---- asynchronous copies ------------------------------------------------------------------------- */

static void fence_async_proxy(tw_emitter_t *e) {
  twg_asm(e, "fence.proxy.async.shared::cta;", "", (MlirType){NULL}, 0, NULL, TW_PTX_EFFECT);
}

/* Whether products read, where there are some, past what threads have written. */
static bool reads_by_proxy(MlirOperation op, bool has_products) {
  const tw_async_mma_t *async = has_products ? tw_async_mma_of(op) : NULL;
  return async != NULL && async->by_proxy;
}

static bool rule_async_wait(tw_emitter_t *e, MlirOperation op) {
  MlirValue pending = twg_const_i32(e, tw_attr_int(op, "pending", 0));
  twg_intrinsic(e, "llvm.nvvm.cp.async.wait.group", (MlirType){NULL}, 1, &pending, TW_PTX_FENCE);
  if (reads_by_proxy(e->kernel, tw_has_async_mma(e->kernel)))
    fence_async_proxy(e);
  return true;
}

/* ---- tiles from buffers and into them ------------------------------------------------------------ */

static bool rule_local_load(tw_emitter_t *e, MlirOperation op) {
  MlirType type = mlirValueGetType(mlirOperationGetOperand(op, 0)), element = tw_buffer_type_element(type);
  tw_layout_t tile, shared;
  if (!tw_layout_of_type(mlirValueGetType(mlirOperationGetResult(op, 0)), &tile) || !tw_layout_of_type(type, &shared))
    return false;
  MlirValue base = twg_stage_pointer(e, op, 0);
  twg_set_result(e, op, 0, twg_read_buffer(e, &tile, &shared, element, base));
  return true;
}

static bool feeds_product(MlirValue buffer) {
  TW_EACH_USE(use, buffer)
    if (tw_op_is_async_product(mlirOpOperandGetOwner(use)))
      return true;
  return false;
}

static bool rule_local_store(tw_emitter_t *e, MlirOperation op) {
  MlirType type = mlirValueGetType(mlirOperationGetOperand(op, 1));
  tw_layout_t tile, shared;
  if (!tw_layout_of_type(mlirValueGetType(mlirOperationGetOperand(op, 0)), &tile) || !tw_layout_of_type(type, &shared))
    return false;
  MlirValue base = twg_stage_pointer(e, op, 1);
  twg_write_buffer(e, &tile, &shared, tw_buffer_type_element(type), twg_operand(e, op, 0), base);
  if (reads_by_proxy(op, feeds_product(mlirOperationGetOperand(op, 1))))
    fence_async_proxy(e);
  return true;
}

TWG_RULE(TW_TILE_ALLOC_SHARED, twg_rule_alloc)
TWG_RULE(TW_TILE_ASYNC_WAIT, rule_async_wait)
TWG_RULE(TW_TILE_LOCAL_LOAD, rule_local_load)
TWG_RULE(TW_TILE_LOCAL_STORE, rule_local_store)
