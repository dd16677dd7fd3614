/* schedule.c - which numbers a block of a persistent grid takes, and the positions that these are. See schedule.h. */
#include "lowering/gpu/grid/schedule.h"

static MlirValue binary(const tw_builder_t *at, const char *name, MlirValue x, MlirValue y) {
  return tw_binary(at, name, tw_i32(at->context), x, y);
}

static MlirValue constant(const tw_builder_t *at, int64_t value) {
  return tw_const_int(at, tw_i32(at->context), value);
}

/* ---- serpentine ---------------------------------------------------------------------------------- */

/* The number that a block takes in place of `v`. */
static MlirValue serpentine(const tw_builder_t *at, MlirValue v, tw_divisor_t step, MlirValue total) {
  MlirValue round, id, one = constant(at, 1);
  tw_divide(at, v, step, &round, &id);
  MlirValue first = binary(at, "arith.subi", v, id), end = binary(at, "arith.addi", first, step.value);
  MlirValue mirrored = binary(at, "arith.subi", binary(at, "arith.subi", end, one), id);
  MlirValue odd = tw_compare(at, TW_EQ, binary(at, "arith.andi", round, one), one);
  MlirValue whole = tw_compare(at, TW_SLE, end, total);
  return tw_select(at, odd, tw_select(at, whole, mirrored, v), v);
}

/* Groups of rows along axis 1 are walked column by column. Rows that make up no whole group stay as they are. Shifts
 * alone, which warps do once for all their threads. */
static void walk_columns(const tw_builder_t *at, const MlirValue extents[TW_GRID_AXES],
                         MlirValue position[TW_GRID_AXES]) {
  enum { LOG_ROWS = 2, ROWS = 1 << LOG_ROWS };
  MlirValue x = position[0], y = position[1], shift = constant(at, LOG_ROWS);
  MlirValue low = constant(at, ROWS - 1);
  MlirValue row = binary(at, "arith.andi", y, low), first = binary(at, "arith.subi", y, row);
  MlirValue number = binary(at, "arith.addi", x, binary(at, "arith.muli", extents[0], row));
  MlirValue end = binary(at, "arith.addi", first, constant(at, ROWS)), whole = tw_compare(at, TW_SLE, end, extents[1]);
  MlirValue column = binary(at, "arith.shrui", number, shift);
  row = binary(at, "arith.addi", first, binary(at, "arith.andi", number, low));
  position[0] = tw_select(at, whole, column, x);
  position[1] = tw_select(at, whole, row, y);
}

/* Counts an axis from its end. */
static void mirror(const tw_builder_t *at, const tw_schedule_code_t *code, int axis, MlirValue position[TW_GRID_AXES]) {
  MlirValue last = binary(at, "arith.subi", code->extents[axis], constant(at, 1));
  position[axis] = binary(at, "arith.subi", last, position[axis]);
}

/* Positions number axis 0 first, so that the longest come first by themselves where another axis tells the work. */
static void decode_serpentine(const tw_builder_t *at, const tw_schedule_code_t *code, MlirValue number,
                              MlirValue position[TW_GRID_AXES]) {
  tw_raster_decode(at, &code->raster, serpentine(at, number, code->step, code->total), position);
  if (code->plan->work_axis == 0)
    walk_columns(at, code->extents, position);
  if (code->plan->work_grows)
    mirror(at, code, code->plan->work_axis, position);
}

/* ---- dynamic, the longest first -------------------------------------------------------------------- */

/* Rows of both other axes are one. A group of them has two rounds of blocks: the longest ones start while there is work
 * enough for all others until they end. */
static tw_raster_t unite_rows(const tw_builder_t *at, tw_schedule_code_t *code, MlirValue walked[TW_GRID_AXES]) {
  enum { ROUNDS = 2 };
  int axis = code->plan->work_axis;
  code->inner = axis == 0;
  code->outer = axis == 2 ? 1 : 2;
  code->rows = tw_divisor_of(at, walked[code->inner]);
  MlirValue rows = binary(at, "arith.muli", walked[code->inner], walked[code->outer]);
  MlirValue blocks = binary(at, "arith.muli", tw_grid_op(at, "tile.num_blocks", 0), constant(at, ROUNDS));
  walked[code->inner] = rows;
  walked[code->outer] = constant(at, 1);
  tw_raster_t raster = {.rows = code->inner, .columns = axis, .slices = -1, .group = 1};
  raster.height = binary(at, "arith.minui", binary(at, "arith.ceildivui", blocks, walked[axis]), rows);
  return raster;
}

/* Numbers go backwards, so that the group which is not whole comes first, and not when there is little left. */
static void decode_longest_first(const tw_builder_t *at, const tw_schedule_code_t *code, MlirValue number,
                                 MlirValue position[TW_GRID_AXES]) {
  MlirValue last = binary(at, "arith.subi", code->total, constant(at, 1));
  tw_raster_decode(at, &code->raster, binary(at, "arith.subi", last, number), position);
  tw_divide(at, position[code->inner], code->rows, &position[code->outer], &position[code->inner]);
  if (!code->plan->work_grows)
    mirror(at, code, code->plan->work_axis, position);
}

/* ---- any ------------------------------------------------------------------------------------------- */

static bool is_longest_first(const tw_grid_plan_t *plan) {
  return plan->schedule == TW_SCHEDULE_DYNAMIC && plan->work_axis >= 0;
}

tw_schedule_code_t tw_schedule_prepare(const tw_builder_t *at, const tw_grid_plan_t *plan,
                                       const MlirValue extents[TW_GRID_AXES], MlirValue walked[TW_GRID_AXES]) {
  tw_schedule_code_t code = {.plan = plan};
  tw_raster_t raster = plan->raster;
  for (int axis = 0; axis < TW_GRID_AXES; axis++)
    code.extents[axis] = extents[axis];
  if (is_longest_first(plan))
    raster = unite_rows(at, &code, walked);
  code.total = binary(at, "arith.muli", binary(at, "arith.muli", walked[0], walked[1]), walked[2]);
  code.raster = tw_raster_prepare(at, &raster, walked);
  return code;
}

void tw_schedule_set_step(const tw_builder_t *at, tw_schedule_code_t *code, MlirValue step) {
  if (code->plan->schedule == TW_SCHEDULE_SERPENTINE)
    code->step = tw_divisor_of(at, step);
}

void tw_schedule_position(const tw_builder_t *at, const tw_schedule_code_t *code, MlirValue number,
                          MlirValue position[TW_GRID_AXES]) {
  if (is_longest_first(code->plan))
    decode_longest_first(at, code, number, position);
  else if (code->plan->schedule == TW_SCHEDULE_SERPENTINE)
    decode_serpentine(at, code, number, position);
  else
    tw_raster_decode(at, &code->raster, number, position);
}
