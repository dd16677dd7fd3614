/* map.c - rule: a body for each element of tiles
 *
 *   before   %n = tile.map(%x) : (tensor<64xf32, #l>) -> tensor<64xi32, #l> { ^bb0(%a: f32): … tile.yield %k : i32 }
 *   after    the body, for the element in each register; a body without results behind `if (this thread owns it)`
 *
 * What must hold: inputs and results have one layout. The body is a thread's code, as that of a SIMT kernel is: its
 * branches are the thread's own, and it has no barriers. Registers that hold copies of an element get what was computed
 * for the first. What yields nothing runs where an element is first. */
#include "base/memory.h"
#include "lowering/gpu/emit/address.h"
#include "lowering/gpu/emit/elements.h"
#include "lowering/gpu/emit/rules.h"

static bool emit_body(tw_emitter_t *e, MlirOperation op, int r) {
  MlirBlock body = tw_region_block(op, 0);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    tw_values_t element = twg_new_values(e, 1);
    element.at[0] = twg_operand(e, op, i).at[r];
    twg_bind(e, mlirBlockGetArgument(body, i), element);
  }
  return e->emit_block(e, body);
}

/* The elements in all registers; what the bodies yield goes to `out`, one for each of `num` results. */
static bool emit_bodies(tw_emitter_t *e, MlirOperation op, const tw_layout_t *layout, int count, intptr_t num,
                        tw_values_t *out) {
  MlirOperation end = mlirBlockGetTerminator(tw_region_block(op, 0));
  for (int r = 0; r < count; r++) {
    int first = twg_first_copy(layout, r);
    if (first == r && !emit_body(e, op, r))
      return false;
    for (intptr_t i = 0; i < num; i++)
      out[i].at[r] = first == r ? twg_operand(e, end, i).at[0] : out[i].at[first];
  }
  return true;
}

static bool rule_map(tw_emitter_t *e, MlirOperation op) {
  MlirType type = mlirValueGetType(mlirOperationGetOperand(op, 0));
  intptr_t num = mlirOperationGetNumResults(op);
  int count = tw_register_count(type);
  bool outside = e->simt, done;
  tw_layout_t layout;
  if (!tw_layout_of_type(type, &layout)) {
    tw_op_error(op, "needs a tile with a layout");
    return false;
  }
  MlirValue owner = num == 0 ? twg_owner_guard(e, &layout) : (MlirValue){NULL};
  MlirBlock after = owner.ptr ? twg_begin_if(e, owner) : (MlirBlock){NULL};
  tw_values_t *out = tw_allocate((size_t)num + 1, sizeof *out);
  for (intptr_t i = 0; i < num; i++)
    out[i] = twg_new_values(e, count);
  e->simt = true;
  done = emit_bodies(e, op, &layout, count, num, out);
  e->simt = outside;
  if (owner.ptr)
    twg_end_if(e, after);
  for (intptr_t i = 0; i < num && done; i++)
    twg_set_result(e, op, i, out[i]);
  free(out);
  return done;
}

TWG_RULE(TW_TILE_MAP, rule_map)
