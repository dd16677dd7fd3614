/* unfold_grid.c - part of tile-resize-tiles: a program that counts its tiles in one number gets a grid of rows and
 * columns
 *
 * Before, the tiles are the blocks of a grid of one axis, or those of a loop that a program has itself:
 *
 *   %t = tile.block_id 0                          %b = tile.block_id 0
 *                                                 scf.for %t = %b to %rows * %columns step (tile.num_blocks 0) {
 *   %i = %t % %rows                                 ... the same, or in groups of rows (facts/grouped_order.h)
 *   %j = %t / %rows
 *   ... tile.load %A[%i, %k] ... tile.mma ...
 *   tile.store %d, %C[%i, %j]                     }
 *
 * After, as if it had been written for that grid:
 *
 *   %i = tile.block_id 0
 *   %j = tile.block_id 1
 *   ... tile.load %A[%i, %k] ... tile.mma ...
 *   tile.store %d, %C[%i, %j]
 *
 * So everything that is decided about a grid is decided here, too: the order that suits the cache, clusters, the
 * longest tiles first, how large they are. The launch record says what the rows and columns are (`tile_grid`): the
 * launcher computes them from its words. Where its grid is not their product, it takes the kernel that was compiled
 * with the hint `as_launched`. A loop takes all tiles, whatever the grid is.
 *
 * What must hold: the number is used for the two positions alone; each is known at the launch, as a product of extents
 * and numbers of the program, divided by constants; nothing shows the order of blocks; the steps of a loop may be done
 * in any order, by any block (adopt_loop.h). Kernels without products stay as they are. */
#include "lowering/gpu/facts/grouped_order.h"
#include "lowering/gpu/facts/launch_factors.h"
#include "lowering/gpu/grid/adopt_loop.h"
#include "lowering/gpu/grid/raster.h"
#include "lowering/gpu/grid/resize_tiles.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/loops.h"

enum { ROW, COLUMN };

typedef struct {
  MlirOperation func, loop; /* over tiles; null: the blocks are the tiles */
  MlirValue number;         /* of a tile */
  tw_ops_t ids, numbers;    /* owned: those of blocks, and what is computed from integers */
  tw_map_t axis_of;         /* owned: ROW or COLUMN, of values that are a position */
  tw_tile_grid_t grid;
} unfolding_t;

/* ---- positions ------------------------------------------------------------------------------------- */

static bool is_number(MlirOperation op) {
  return tw_is_arithmetic(op) && mlirOperationGetNumRegions(op) == 0 && mlirOperationGetNumResults(op) == 1 &&
         !tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0)));
}

static MlirValue number_at(const unfolding_t *u, int i) { return mlirOperationGetResult(u->numbers.at[i], 0); }

static void mark(unfolding_t *u, MlirValue value, int axis) { tw_map_set_number(&u->axis_of, value, axis); }
static int axis_of(const unfolding_t *u, MlirValue value) { return tw_map_number(&u->axis_of, value, -1); }

/* %t % rows and %t / rows. */
static bool find_rests(unfolding_t *u, tw_factor_t *rows) {
  tw_by_factor_t by;
  bool found = false;
  for (int i = 0; i < u->numbers.count; i++) {
    MlirValue value = number_at(u, i);
    bool divides = tw_read_quotient(value, &by), is_position = divides || tw_read_rest(value, &by);
    if (!is_position || !mlirValueEqual(by.x, u->number) || (found && !tw_is_same_factor(by.by, *rows)))
      continue;
    *rows = by.by;
    found = true;
    mark(u, value, divides ? COLUMN : ROW);
  }
  return found;
}

static bool find_groups(unfolding_t *u, tw_tile_extents_t *extents) {
  tw_tile_extents_t other;
  bool found = false;
  for (int y = 0; y < u->numbers.count; y++) {
    tw_by_factor_t by;
    for (int x = 0; tw_read_quotient(number_at(u, y), &by) && x < u->numbers.count; x++) {
      if (!tw_read_grouped_order(u->number, number_at(u, x), number_at(u, y), found ? &other : extents))
        continue;
      mark(u, number_at(u, x), ROW);
      mark(u, number_at(u, y), COLUMN);
      found = true;
    }
  }
  return found;
}

/* Whether the value is used to compute positions, and for nothing else. */
static bool ends_in_positions(const unfolding_t *u, MlirValue value) {
  tw_map_t seen = {0};
  tw_ops_t ops = {0};
  bool ok = true;
  for (int next = -1; ok && next < ops.count; next++) {
    MlirValue made = next < 0 ? value : mlirOperationGetResult(ops.at[next], 0);
    MlirOpOperand use = next >= 0 && axis_of(u, made) >= 0 ? (MlirOpOperand){NULL} : mlirValueGetFirstUse(made);
    for (; ok && !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
      MlirOperation user = mlirOpOperandGetOwner(use);
      ok = is_number(user);
      if (!ok || tw_map_number(&seen, mlirOperationGetResult(user, 0), 0))
        continue;
      tw_map_set_number(&seen, mlirOperationGetResult(user, 0), 1);
      tw_ops_add(&ops, user);
    }
  }
  tw_map_free(&seen);
  tw_ops_free(&ops);
  return ok;
}

/* ---- extents --------------------------------------------------------------------------------------- */

static bool read_product(MlirOperation func, tw_factor_t factor, tw_factors_t *out) {
  *out = tw_no_factors;
  if (!mlirValueIsNull(factor.value))
    return tw_read_factors(func, factor.value, out);
  out->constant = factor.number;
  return factor.number > 0 && factor.number < INT32_MAX;
}

/* Takes a factor out of a product, if it has it. */
static bool take_factor(tw_factors_t *from, const tw_extent_factor_t *factor) {
  for (uint32_t i = 0; i < from->count; i++) {
    const tw_extent_factor_t *at = &from->at[i];
    if (at->word == factor->word && at->plus == factor->plus && at->by == factor->by) {
      from->at[i] = from->at[--from->count];
      return true;
    }
  }
  return false;
}

/* What is left of the product without the factors of another one; false where it has not all of them. */
static bool divide(tw_factors_t *all, const tw_factors_t *by) {
  for (uint32_t i = 0; i < by->count; i++)
    if (!take_factor(all, &by->at[i]))
      return false;
  bool whole = all->constant % by->constant == 0;
  all->constant /= by->constant;
  return whole;
}

static bool write_grid(unfolding_t *u, const tw_factors_t *rows, const tw_factors_t *columns) {
  u->grid.any = !mlirOperationIsNull(u->loop);
  return tw_write_factors(rows, u->grid.rows, &u->grid.num_rows) &&
         (!columns || tw_write_factors(columns, u->grid.columns, &u->grid.num_columns));
}

/* The number is a row and a column of so many rows; a loop says how many columns there are. */
static bool unfold_rests(unfolding_t *u) {
  tw_factor_t rows;
  tw_factors_t first, all = tw_no_factors;
  bool loops = !mlirOperationIsNull(u->loop);
  return find_rests(u, &rows) && read_product(u->func, rows, &first) &&
         (!loops || (tw_read_factors(u->func, mlirOperationGetOperand(u->loop, 1), &all) && divide(&all, &first))) &&
         write_grid(u, &first, loops ? &all : NULL);
}

static bool unfold_groups(unfolding_t *u) {
  tw_tile_extents_t extents;
  tw_factors_t rows, columns, all = tw_no_factors;
  if (!find_groups(u, &extents) || !read_product(u->func, extents.rows, &rows) ||
      !read_product(u->func, extents.columns, &columns))
    return false;
  bool loops = !mlirOperationIsNull(u->loop);
  if (loops && !(tw_read_factors(u->func, mlirOperationGetOperand(u->loop, 1), &all) && divide(&all, &rows) &&
                 divide(&all, &columns) && all.count == 0 && all.constant == 1))
    return false;
  return write_grid(u, &rows, &columns);
}

/* ---- what counts the tiles ---------------------------------------------------------------------------- */

static bool shows_order(MlirOperation op) {
  MlirOperation around = tw_enclosing_loop(op);
  return tw_op_has(op, TW_ORDERS_ALL) ||
         (tw_op_has(op, TW_READS_ARRAY) && !mlirOperationIsNull(around) && tw_op_is(around, TW_SCF_WHILE));
}

static bool stays_as_launched(MlirOperation func) {
  return !tw_is_of_tiles(func) || tw_has_hint_exported(func) || tw_has_hint_check(func) ||
         tw_has_hint_race_check(func) || tw_has_hint_as_launched(func) || !tw_has_op_like(func, tw_op_is_product) ||
         tw_has_op_like(func, shows_order);
}

/* The one op that asks for the block's position along axis 0; `others`: whether one asks for something else. */
static MlirOperation first_id(const tw_ops_t *ids, bool loops, bool *others) {
  MlirOperation first = tw_null_op();
  for (int i = 0; i < ids->count; i++) {
    int64_t axis = tw_attr_int(ids->at[i], "axis", 0);
    bool is_id = tw_op_is(ids->at[i], TW_TILE_BLOCK_ID), is_first = is_id && axis == 0 && mlirOperationIsNull(first);
    bool step = loops && !is_id && axis == 0;
    *others |= !is_first && !step && (loops || !is_id || axis != 1);
    first = is_first ? ids->at[i] : first;
  }
  return first;
}

/* Whether the ops that say which blocks take which steps say nothing else. */
static bool counts_alone(const unfolding_t *u) {
  for (int i = 0; i < u->ids.count; i++)
    if (!tw_has_one_use(mlirOperationGetResult(u->ids.at[i], 0)))
      return false;
  return true;
}

static bool find_number(unfolding_t *u) {
  bool others = false;
  u->loop = tw_loop_over_tiles(u->func);
  bool loops = !mlirOperationIsNull(u->loop);
  MlirOperation id = first_id(&u->ids, loops, &others);
  if (others || mlirOperationIsNull(id) || (loops && !counts_alone(u)))
    return false;
  u->number = loops ? tw_loop_iv(u->loop) : mlirOperationGetResult(id, 0);
  return mlirTypeEqual(mlirValueGetType(u->number), tw_i32(mlirOperationGetContext(u->func)));
}

static bool unfold(unfolding_t *u) {
  if (!find_number(u))
    return false;
  bool found = unfold_groups(u);
  if (!found) {
    tw_map_free(&u->axis_of);
    u->axis_of = (tw_map_t){0};
    u->grid = (tw_tile_grid_t){0};
    found = unfold_rests(u);
  }
  return found && ends_in_positions(u, u->number) && (mlirOperationIsNull(u->loop) || tw_may_reorder_steps(u->loop));
}

/* ---- rewriting ------------------------------------------------------------------------------------------ */

static bool is_dead(MlirOperation op, const void *user) {
  (void)user;
  return is_number(op) && tw_is_unused(mlirOperationGetResult(op, 0));
}

static void erase_dead(MlirOperation root) {
  for (MlirOperation op = tw_find_op(root, is_dead, NULL); !mlirOperationIsNull(op);
       op = tw_find_op(root, is_dead, NULL))
    tw_erase_dead(op);
}

/* The steps of the loop, of which a block does one, in its place. */
static void inline_loop(MlirOperation loop) {
  MlirBlock body = tw_loop_body(loop), block = mlirOperationGetBlock(loop);
  MlirOperation end = tw_loop_yield(loop);
  for (MlirOperation op = mlirBlockGetFirstOperation(body), next; !mlirOperationEqual(op, end); op = next) {
    next = mlirOperationGetNextInBlock(op);
    mlirOperationRemoveFromParent(op);
    mlirBlockInsertOwnedOperationBefore(block, loop, op);
  }
  mlirOperationDestroy(loop);
}

/* What else a program of one axis has on axis 1 is on axis 2 then. */
static void move_axis(const tw_ops_t *ids) {
  for (int i = 0; i < ids->count; i++)
    if (tw_op_is(ids->at[i], TW_TILE_BLOCK_ID) && tw_attr_int(ids->at[i], "axis", 0) == 1)
      tw_set_attr(ids->at[i], "axis", mlirIntegerAttrGet(tw_i32(mlirOperationGetContext(ids->at[i])), 2));
}

static void rewrite(unfolding_t *u) {
  tw_builder_t at = tw_build_before(mlirBlockGetFirstOperation(tw_region_block(u->func, 0)));
  move_axis(&u->ids);
  MlirValue position[] = {tw_grid_op(&at, "tile.block_id", 0), tw_grid_op(&at, "tile.block_id", 1)};
  for (int i = 0; i < u->numbers.count; i++)
    if (axis_of(u, number_at(u, i)) >= 0)
      mlirValueReplaceAllUsesOfWith(number_at(u, i), position[axis_of(u, number_at(u, i))]);
  erase_dead(u->func);
  if (!mlirOperationIsNull(u->loop)) {
    inline_loop(u->loop);
    erase_dead(u->func);
  }
  tw_launch_set_tile_grid(u->func, &u->grid);
  tw_op_remark(u->func, "counts its tiles in one number: it is compiled for the grid of their rows and columns");
}

bool tw_unfold_grid(MlirOperation func) {
  tw_gpu_target_t target = tw_gpu_target_of(func);
  if (!tw_gpu_has(&target, TW_GPU_CLUSTERS) || stays_as_launched(func))
    return true;
  unfolding_t u = {.func = func, .ids = tw_grid_ids_in(func), .numbers = tw_ops_in(func, is_number, MlirWalkPreOrder)};
  if (unfold(&u))
    rewrite(&u);
  tw_map_free(&u.axis_of);
  tw_ops_free(&u.ids);
  tw_ops_free(&u.numbers);
  return true;
}
