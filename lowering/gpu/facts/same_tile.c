/* same_tile.c - whether accesses in loops find the same tile. See same_tile.h. */
#include "lowering/gpu/facts/same_tile.h"

#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/grouped_order.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/loops.h"
#include "lowering/ranges.h"
#include "tilewright/dialect.h"

/* ---- the same tile ------------------------------------------------------------------------------------- */

/* Loops whose iterations are compared: the number of an inner one is that of the inner one of the other nest. */
typedef struct {
  tw_nest_t x, y; /* an inner loop may be null */
} twins_t;

static bool same_value(MlirValue x, MlirValue y, const twins_t *twins);

static bool same_attributes(MlirOperation x, MlirOperation y) {
  intptr_t num = mlirOperationGetNumAttributes(x);
  for (intptr_t i = 0; i < num; i++) {
    MlirNamedAttribute named = mlirOperationGetAttribute(x, i);
    if (!mlirAttributeEqual(named.attribute, mlirOperationGetAttributeByName(y, mlirIdentifierStr(named.name))))
      return false;
  }
  return num == mlirOperationGetNumAttributes(y);
}

static bool same_op(MlirOperation x, MlirOperation y, const twins_t *twins) {
  if (!mlirStringRefEqual(tw_op_name(x), tw_op_name(y)) || mlirOperationGetNumRegions(x) > 0 ||
      mlirOperationGetNumOperands(x) != mlirOperationGetNumOperands(y) || !same_attributes(x, y))
    return false;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(x); i++)
    if (!same_value(mlirOperationGetOperand(x, i), mlirOperationGetOperand(y, i), twins))
      return false;
  return true;
}

static bool is_number_of(MlirValue value, MlirOperation loop) {
  return !mlirOperationIsNull(loop) && mlirValueEqual(value, tw_loop_iv(loop));
}

/* Whether x is in an iteration of one loop what y is in that of another, by arithmetic on their numbers. */
static bool same_value(MlirValue x, MlirValue y, const twins_t *twins) {
  MlirOperation loop = twins->x.outer, other = twins->y.outer;
  int64_t known, like_known;
  if (tw_known_int(x, &known))
    return tw_known_int(y, &like_known) && known == like_known;
  if (mlirOperationEqual(loop, other) && mlirValueEqual(x, y))
    return true;
  if (mlirOperationIsNull(loop) || !tw_op_is(loop, TW_SCF_FOR))
    return false;
  if (is_number_of(x, loop) || is_number_of(y, other))
    return is_number_of(x, loop) && is_number_of(y, other);
  if (is_number_of(x, twins->x.inner) || is_number_of(y, twins->y.inner))
    return is_number_of(x, twins->x.inner) && is_number_of(y, twins->y.inner);
  if (!tw_defined_in(x, tw_loop_body(loop)))
    return mlirValueEqual(x, y);
  MlirOperation op = tw_def(x), like = tw_def(y);
  return !mlirOperationIsNull(op) && !mlirOperationIsNull(like) && tw_is_arithmetic(op) && same_op(op, like, twins);
}

static bool same_place(MlirOperation x, MlirOperation y, const twins_t *twins) {
  intptr_t first, second;
  MlirType array = mlirValueGetType(tw_access_array(x, &first));
  if (tw_rank(array) != tw_rank(mlirValueGetType(tw_access_array(y, &second))) ||
      !mlirAttributeEqual(tw_attr(x, "order"), tw_attr(y, "order")))
    return false;
  for (intptr_t i = 0; i < tw_rank(array); i++)
    if (!same_value(mlirOperationGetOperand(x, first + i), mlirOperationGetOperand(y, second + i), twins))
      return false;
  return true;
}

bool tw_same_place(MlirOperation x, MlirOperation loop, MlirOperation y, MlirOperation other) {
  twins_t twins = {{loop, tw_null_op()}, {other, tw_null_op()}};
  return same_place(x, y, &twins);
}

bool tw_same_place_in_nests(MlirOperation x, tw_nest_t nest, MlirOperation y, tw_nest_t other) {
  twins_t twins = {nest, other};
  return same_place(x, y, &twins);
}

/* ---- another tile each time ---------------------------------------------------------------------------- */

/* Whether each iteration of the loop computes the same value, or none does. */
static bool stays(MlirOperation loop, MlirValue value) {
  MlirOperation op = tw_def(value);
  if (!tw_defined_in(value, tw_loop_body(loop)))
    return true;
  bool all = !mlirOperationIsNull(op) && tw_is_arithmetic(op);
  for (intptr_t i = 0; all && i < mlirOperationGetNumOperands(op); i++)
    all = stays(loop, mlirOperationGetOperand(op, i));
  return all;
}

static bool moves(MlirOperation loop, MlirValue value) {
  MlirOperation op = tw_def(value);
  int64_t factor = 0;
  if (mlirValueEqual(value, tw_loop_iv(loop)))
    return true;
  if (mlirOperationIsNull(op) || !tw_inside(op, tw_loop_body(loop)))
    return false;
  if (tw_op_is(op, TW_ARITH_MULI))
    return tw_known_int(mlirOperationGetOperand(op, 1), &factor) && factor != 0 &&
           moves(loop, mlirOperationGetOperand(op, 0));
  for (int i = 0; i < 2 && tw_op_class(op) == TW_CLASS_SUM; i++)
    if (stays(loop, mlirOperationGetOperand(op, 1 - i)))
      return moves(loop, mlirOperationGetOperand(op, i));
  return false;
}

/* Whether two ops divide the same number by the same one that the loop does not change. */
static bool divide_alike(MlirOperation loop, MlirOperation x, MlirOperation y) {
  MlirValue by = mlirOperationGetOperand(x, 1), also = mlirOperationGetOperand(y, 1);
  return tw_is_same_number(by, also) && !tw_defined_in(by, tw_loop_body(loop)) &&
         mlirValueEqual(mlirOperationGetOperand(x, 0), mlirOperationGetOperand(y, 0));
}

/* The same of the quotient by 2^n, rounded down, and x & (2^n - 1). */
static bool split_alike(MlirOperation quotient, MlirOperation mask) {
  int64_t by, ones;
  bool known =
      tw_known_int(mlirOperationGetOperand(quotient, 1), &by) && tw_known_int(mlirOperationGetOperand(mask, 1), &ones);
  bool down = tw_op_is(quotient, TW_ARITH_FLOORDIVSI) || tw_op_is(quotient, TW_ARITH_DIVUI);
  return known && down && by > 0 && (by & (by - 1)) == 0 && ones == by - 1 &&
         mlirValueEqual(mlirOperationGetOperand(quotient, 0), mlirOperationGetOperand(mask, 0));
}

/* Of m or m + %d, whichever has the sign of %d, as Python has a remainder, m; else the op itself. Both are what is left
 * over but for a multiple of %d, so that with a quotient rounded down either tells the number. */
static MlirOperation without_sign(MlirOperation rest) {
  for (int i = 1; i <= 2 && tw_op_is(rest, TW_ARITH_SELECT); i++) {
    MlirOperation sum = tw_def(mlirOperationGetOperand(rest, i)), m = tw_def(mlirOperationGetOperand(rest, 3 - i));
    if (!mlirOperationIsNull(sum) && tw_op_is(sum, TW_ARITH_ADDI) && !mlirOperationIsNull(m) &&
        tw_op_is(m, TW_ARITH_REMSI) && mlirValueEqual(mlirOperationGetOperand(sum, 0), mlirOperationGetResult(m, 0)) &&
        mlirValueEqual(mlirOperationGetOperand(sum, 1), mlirOperationGetOperand(m, 1)))
      return m;
  }
  return rest;
}

/* Whether one index is the quotient of a number that moves, and the other what is left over: both do not come again
 * together. */
static bool move_together(MlirOperation loop, MlirValue x, MlirValue y) {
  MlirOperation quotient = tw_def(x), rest = tw_def(y);
  if (mlirOperationIsNull(quotient) || mlirOperationIsNull(rest) || !tw_inside(quotient, tw_loop_body(loop)) ||
      !moves(loop, mlirOperationGetOperand(quotient, 0)))
    return false;
  bool is_signed = tw_op_is(quotient, TW_ARITH_FLOORDIVSI) || tw_op_is(quotient, TW_ARITH_DIVSI);
  if (tw_op_is(quotient, TW_ARITH_FLOORDIVSI))
    rest = without_sign(rest);
  if (tw_op_is(rest, TW_ARITH_ANDI))
    return split_alike(quotient, rest);
  return (is_signed ? tw_op_is(rest, TW_ARITH_REMSI)
                    : tw_op_is(quotient, TW_ARITH_DIVUI) && tw_op_is(rest, TW_ARITH_REMUI)) &&
         divide_alike(loop, quotient, rest);
}

static bool are_other_pairs(MlirOperation loop, MlirValue x, MlirValue y) {
  return move_together(loop, x, y) || tw_is_grouped_order(loop, x, y);
}

enum { MOST_LEVELS = 3 }; /* of a number that is taken apart */

static bool is_told(MlirOperation loop, MlirOperation access, MlirValue number, int levels);

static bool is_fixed(MlirOperation loop, tw_factor_t x) {
  return mlirValueIsNull(x.value) || !tw_defined_in(x.value, tw_loop_body(loop));
}

/* Whether the indices tell the quotient by which a number is divided, and what is left over. */
static bool are_parts_told(MlirOperation loop, MlirOperation access, MlirValue number, MlirValue part, int levels) {
  tw_by_factor_t quotient, rest;
  if (!tw_read_quotient(part, &quotient) || !mlirValueEqual(quotient.x, number) || !is_fixed(loop, quotient.by) ||
      !is_told(loop, access, part, levels))
    return false;
  TW_EACH_USE(use, number) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    MlirValue other = mlirOperationGetNumResults(user) == 1 ? mlirOperationGetResult(user, 0) : (MlirValue){NULL};
    if (!mlirValueIsNull(other) && tw_read_rest(other, &rest) && mlirValueEqual(rest.x, number) &&
        tw_is_same_factor(rest.by, quotient.by) && is_told(loop, access, other, levels))
      return true;
  }
  return false;
}

/* Whether a pair of indices is the row and column of a number, of as many as it is what is left over by. */
static bool is_told_by_order(MlirOperation access, MlirValue number) {
  intptr_t first;
  intptr_t rank = tw_rank(mlirValueGetType(tw_access_array(access, &first)));
  tw_by_factor_t rest;
  tw_tile_extents_t tiles;
  if (!tw_read_rest(number, &rest) || !mlirValueIsNull(rest.by.value) || !tw_is_natural(number))
    return false;
  for (intptr_t i = 0; i < rank; i++)
    for (intptr_t j = 0; j < rank; j++)
      if (tw_read_grouped_order(number, mlirOperationGetOperand(access, first + i),
                                mlirOperationGetOperand(access, first + j), &tiles) &&
          mlirValueIsNull(tiles.rows.value) && mlirValueIsNull(tiles.columns.value) &&
          tiles.rows.number * tiles.columns.number == rest.by.number)
        return true;
  return false;
}

/* Whether the indices of an access tell a number: of two numbers they are not the same. */
static bool is_told(MlirOperation loop, MlirOperation access, MlirValue number, int levels) {
  intptr_t first;
  intptr_t rank = tw_rank(mlirValueGetType(tw_access_array(access, &first)));
  for (intptr_t i = 0; i < rank; i++)
    if (mlirValueEqual(mlirOperationGetOperand(access, first + i), number))
      return true;
  if (levels == 0)
    return false;
  TW_EACH_USE(use, number) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    if (mlirOperationGetNumResults(user) == 1 &&
        are_parts_told(loop, access, number, mlirOperationGetResult(user, 0), levels - 1))
      return true;
  }
  return is_told_by_order(access, number);
}

bool tw_moves_each_time(MlirOperation loop, MlirOperation access) {
  intptr_t first;
  MlirType array = mlirValueGetType(tw_access_array(access, &first));
  if (tw_op_is(loop, TW_SCF_FOR) && is_told(loop, access, tw_loop_iv(loop), MOST_LEVELS))
    return true;
  for (intptr_t i = 0; tw_op_is(loop, TW_SCF_FOR) && i < tw_rank(array); i++) {
    if (moves(loop, mlirOperationGetOperand(access, first + i)))
      return true;
    for (intptr_t j = 0; j < tw_rank(array); j++)
      if (are_other_pairs(loop, mlirOperationGetOperand(access, first + i), mlirOperationGetOperand(access, first + j)))
        return true;
  }
  return false;
}

/* ---- reads before writes --------------------------------------------------------------------------------- */

/* Extents of the tile that an access moves; -1 for what is none. */
static intptr_t extents_of(MlirOperation op, int64_t extents[TW_MAX_RANK]) {
  bool copies = tw_op_copies_tile(op), loads = tw_op_loads_tile(op);
  if (copies) { /* into a stage of the buffer */
    MlirType buffer = mlirValueGetType(tw_copy_buffer(op));
    for (intptr_t d = 1; d < tw_buffer_type_rank(buffer); d++)
      extents[d - 1] = tw_buffer_type_extent(buffer, d);
    return tw_buffer_type_rank(buffer) - 1;
  }
  bool by_engine = tw_op_has(op, TW_COPIES_BY_ENGINE) && tw_op_has(op, TW_WRITES_ARRAY);
  if (!loads && !tw_op_stores_tile(op) && !by_engine)
    return -1;
  intptr_t last = mlirOperationGetNumOperands(op) - 1;
  MlirType tile =
      mlirValueGetType(loads ? mlirOperationGetResult(op, 0) : mlirOperationGetOperand(op, by_engine ? 0 : last));
  for (intptr_t d = 0; d < tw_rank(tile); d++)
    extents[d] = tw_extent(tile, d);
  return tw_rank(tile);
}

static bool same_extents(MlirOperation x, MlirOperation y) {
  int64_t of_x[TW_MAX_RANK] = {0}, of_y[TW_MAX_RANK] = {0};
  intptr_t rank = extents_of(x, of_x);
  if (rank < 0 || rank != extents_of(y, of_y))
    return false;
  for (intptr_t d = 0; d < rank; d++)
    if (of_x[d] != of_y[d])
      return false;
  return true;
}

/* The innermost block around both ops, if the first op comes first there. */
static MlirBlock block_in_order(MlirOperation x, MlirOperation y) {
  for (; !mlirOperationIsNull(x); x = mlirOperationGetParentOperation(x)) {
    MlirBlock block = mlirOperationGetBlock(x);
    MlirOperation beside = mlirBlockIsNull(block) ? tw_null_op() : tw_ancestor_in(y, block);
    if (!mlirOperationIsNull(beside))
      return !mlirOperationEqual(x, beside) && mlirOperationIsBeforeInBlock(x, beside) ? block : (MlirBlock){NULL};
  }
  return (MlirBlock){NULL};
}

/* Whether something reads what a copy brought before the store: it has arrived then. */
static bool has_arrived(MlirOperation copy, MlirOperation store) {
  MlirOpOperand use = mlirValueGetFirstUse(tw_copy_buffer(copy));
  for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    if (!tw_is_async_copy(user) && !mlirBlockIsNull(block_in_order(copy, user)) &&
        !mlirBlockIsNull(block_in_order(user, store)))
      return true;
  }
  return false;
}

bool tw_reads_before(MlirOperation read, MlirOperation store, MlirOperation last) {
  MlirBlock block = block_in_order(read, store);
  if (mlirBlockIsNull(block) || !same_extents(read, store) || (tw_is_async_copy(read) && !has_arrived(read, store)))
    return false;
  MlirOperation loop = tw_enclosing_loop(mlirBlockGetFirstOperation(block));
  if (!tw_same_place(read, loop, store, loop))
    return false;
  for (bool more = true; more && !mlirOperationIsNull(loop); loop = tw_enclosing_loop(loop)) {
    if (!tw_has_attr(loop, TW_PERSISTENT) && !tw_moves_each_time(loop, read))
      return false;
    more = !mlirOperationEqual(loop, last);
  }
  return true;
}
