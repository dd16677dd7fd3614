/* map.c - tile.map: a loop over the elements, with the body in it
 *
 *   before   %n = tile.map(%x) : (tensor<64xf32>) -> tensor<64xi32> { ^bb0(%a: f32): … tile.yield %k : i32 }
 *   after    for each element: a = x[i]; …; n[i] = k
 *
 * The body is run where the op stands, element by element: its branches are each element's own. */
#include "lowering/cpu/cpu.h"

static void run_body(cpu_t *cx, MlirOperation op, const cpu_point_t *point, const MlirValue *buffers) {
  MlirBlock body = tw_region_block(op, 0);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    cpu_set_scalar(cx, mlirBlockGetArgument(body, i), cpu_eval(cx, mlirOperationGetOperand(op, i), point));
  MlirOperation end = cx->failed ? tw_null_op() : cpu_emit_block(cx, body);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op) && !cx->failed; i++)
    cpu_buffer_store(cx, cpu_scalar(cx, mlirOperationGetOperand(end, i)), buffers[i],
                     mlirValueGetType(mlirOperationGetResult(op, i)), point);
}

static void place_map(cpu_t *cx, MlirOperation op) {
  MlirType type = mlirValueGetType(mlirOperationGetOperand(op, 0));
  intptr_t num = mlirOperationGetNumOperands(op), made = mlirOperationGetNumResults(op);
  MlirValue *tiles = cpu_alloc(cx, (size_t)(num + made) * sizeof *tiles), *buffers = tiles + num;
  for (intptr_t i = 0; i < num; i++)
    tiles[i] = mlirOperationGetOperand(op, i);
  cpu_before_regions(cx, op);
  cpu_before_write(cx, op, type, (int)num, tiles);
  cpu_plan(cx, type, (int)num, tiles, op);
  for (intptr_t i = 0; i < made; i++)
    buffers[i] = cpu_buffer_for(cx, mlirOperationGetResult(op, i));
  cpu_nest_t nest;
  cpu_nest_set(cx, &nest, type, -1);
  cpu_nest_begin(cx, &nest);
  run_body(cx, op, &nest.point, buffers);
  cpu_nest_end(cx, &nest);
  cpu_planned(cx);
  for (intptr_t i = 0; i < made; i++)
    cpu_set_buffer(cx, mlirOperationGetResult(op, i), buffers[i]);
}

CPU_RULE(TW_TILE_MAP, CPU_EFFECT, 0, NULL, NULL, place_map)
