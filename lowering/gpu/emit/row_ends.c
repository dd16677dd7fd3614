/* row_ends.c - most accesses of rows without guards. See row_ends.h. */
#include "lowering/gpu/emit/row_ends.h"

#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/barrier.h"
#include "lowering/gpu/facts/index_facts.h"
#include "lowering/gpu/facts/kernel_words.h"

enum { EIGHTHS = 3 /* log2 */ };
/* Of single elements, which a thread has to have; with fewer loads and stores memory is what it waits for. */
enum { GUARDS = 24, MOVES = 3 };

/* ---- what is inside ------------------------------------------------------------------------------------ */

/* Whether a register bit of its own selects the half, the quarter and the eighth of a dimension. */
static bool has_eighths(const tw_layout_t *l, int dim) {
  bool found = l->log_shape[dim] > EIGHTHS && tw_layout_disjoint(l, dim);
  for (int top = 1; top <= EIGHTHS && found; top++) {
    uint32_t wanted = UINT32_C(1) << (tw_layout_dim_shift(l, dim) + l->log_shape[dim] - top);
    found = false;
    for (int b = 0; b < l->bits[TW_REGISTER]; b++)
      found = found || l->basis[TW_REGISTER][b] == wanted;
  }
  return found;
}

/* Elements along a dimension that have to be inside. */
static int64_t elements_wanted(const tw_layout_t *l, int dim) {
  int64_t extent = tw_layout_extent(l, dim);
  return has_eighths(l, dim) ? extent - (extent >> EIGHTHS) : extent;
}

/* Whether an access has a form of its own for tiles that lie inside as a whole. */
static bool goes_two_ways(MlirOperation op, const tw_layout_t *l) {
  int regs[TW_LAYOUT_MAX_BITS], dim = tw_access_contiguous_dim(op, l->rank);
  return dim >= 0 && tw_layout_vector_bits(l, dim, tw_access_inner_vector_bits(op, l->rank), regs) >
                         tw_access_vector_bits(op, l->rank);
}

/* Whether a thread has elements side by side, for vectors. */
static bool has_neighbours(MlirOperation op, const tw_layout_t *l) {
  int regs[TW_LAYOUT_MAX_BITS], dim = tw_access_contiguous_dim(op, l->rank);
  return dim >= 0 && tw_layout_vector_bits(l, dim, 1, regs) > 0;
}

static bool is_before(MlirValue value, MlirOperation rest) {
  MlirOperation def = tw_def(value);
  return mlirOperationIsNull(def) || mlirOperationIsBeforeInBlock(def, rest);
}

static bool is_32_bits(MlirValue value) {
  MlirType type = mlirValueGetType(value);
  return mlirTypeIsAInteger(type) && mlirIntegerTypeGetWidth(type) == 32;
}

static MlirType moved_type(MlirOperation op) {
  return mlirValueGetType(tw_op_loads_tile(op) ? mlirOperationGetResult(op, 0)
                                               : mlirOperationGetOperand(op, mlirOperationGetNumOperands(op) - 1));
}

/* Whether a load or store can do without most guards. */
static bool may_reach(MlirOperation op, MlirOperation rest, tw_layout_t *l) {
  intptr_t first;
  MlirType type = moved_type(op);
  if (!tw_is_tile(type) || !tw_layout_of_type(type, l) || tw_has_attr(op, TW_IN_BOUNDS) ||
      tw_attr_int(op, TW_LATE, 0) > 0 || tw_memory_bits(tw_element(type)) < 8 ||
      (!tw_op_loads_tile(op) && !tw_has_attr(op, TW_REALIGNED) && goes_two_ways(op, l)))
    return false;
  (void)tw_access_array(op, &first);
  bool eighths = false, known = true;
  for (int d = 0; d < l->rank; d++) {
    MlirValue index = mlirOperationGetOperand(op, first + d);
    eighths = eighths || has_eighths(l, d);
    known = known && tw_layout_disjoint(l, d) && is_32_bits(index) && is_before(index, rest);
  }
  return eighths && known;
}

/* Whether most positions are on one side of a number, if that is large. */
static bool compares_positions(MlirOperation op, MlirOperation rest) {
  tw_layout_t l;
  if (!tw_op_is(op, TW_ARITH_CMPI))
    return false;
  MlirValue places = mlirOperationGetOperand(op, 0), bound = mlirOperationGetOperand(op, 1);
  int64_t predicate = tw_attr_int(op, "predicate", 0);
  return (predicate == TW_SLT || predicate == TW_SGE) && tw_counts_from_zero(places) && is_before(bound, rest) &&
         tw_bits(tw_element(mlirValueGetType(bound))) == 32 && tw_layout_of_type(mlirValueGetType(places), &l) &&
         has_eighths(&l, 0);
}

/* ---- what is emitted twice ------------------------------------------------------------------------------- */

/* Whether an op may stand before the rest: a number of the launch, or what each thread makes. */
static bool is_of_launch(MlirOperation op) {
  tw_op_form_t form = tw_op_form(op);
  bool scalar = mlirOperationGetNumResults(op) == 1 && !tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0)));
  return form == TW_FORM_POSITION || form == TW_FORM_SOURCE || (form == TW_FORM_ELEMENTWISE && scalar);
}

/* Whether an op may be emitted twice. */
static bool is_plain(MlirOperation op) {
  switch (tw_op_form(op)) {
  case TW_FORM_ELEMENTWISE:
  case TW_FORM_VIEW:
  case TW_FORM_SOURCE:
  case TW_FORM_POSITION:
  case TW_FORM_REDUCTION: return mlirOperationGetNumRegions(op) == 0 && !tw_has_attr(op, TW_ACROSS);
  default: return tw_op_loads_tile(op) || tw_op_stores_tile(op) || tw_is_barrier(op) || tw_op_is(op, TW_FUNC_RETURN);
  }
}

bool twg_find_row_ends(const tw_emitter_t *e, MlirBlock body, twg_row_ends_t *out) {
  int64_t guards = 0;
  int num_moves = 0;
  MlirOperation rest = mlirBlockGetFirstOperation(body);
  while (!mlirOperationIsNull(rest) && is_of_launch(rest))
    rest = mlirOperationGetNextInBlock(rest);
  *out = (twg_row_ends_t){.rest = rest};
  if (e->simt || e->c != NULL)
    return false;
  for (MlirOperation op = rest; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    tw_layout_t l;
    bool moves = tw_op_loads_tile(op) || tw_op_stores_tile(op);
    if (!is_plain(op))
      return false;
    if (moves && may_reach(op, rest, &l)) {
      bool narrow = tw_access_vector_bits(op, l.rank) == 0 || !has_neighbours(op, &l);
      tw_ops_add(&out->accesses, op);
      guards += narrow ? tw_layout_count(&l, TW_REGISTER) : 0;
      num_moves += narrow;
    } else if (compares_positions(op, rest)) {
      tw_ops_add(&out->accesses, op);
    }
  }
  return guards >= GUARDS && num_moves >= MOVES;
}

/* Whether the elements that are wanted along a dimension are inside of the array. */
static MlirValue reaches(tw_emitter_t *e, MlirOperation op, const tw_layout_t *l, int dim) {
  intptr_t first;
  int64_t order[TW_LAYOUT_MAX_RANK];
  MlirValue array = tw_access_array(op, &first), zero = twg_const_int(e, e->i64, 0);
  tw_access_order(op, l->rank, order);
  MlirValue index = twg_cast(e, "llvm.sext", e->i64, twg_lookup(e, mlirOperationGetOperand(op, first + dim)).at[0]);
  MlirValue start = twg_binary(e, "llvm.mul", index, twg_const_int(e, e->i64, tw_layout_extent(l, dim)));
  MlirValue left = twg_binary(e, "llvm.sub", twg_array_extent(e, array, (int)order[dim]), start);
  MlirValue enough = twg_icmp(e, TW_SGE, left, twg_const_int(e, e->i64, elements_wanted(l, dim)));
  return twg_binary(e, "llvm.and", enough, twg_icmp(e, TW_SGE, index, zero));
}

MlirValue twg_rows_reach(tw_emitter_t *e, const twg_row_ends_t *ends) {
  MlirValue all = twg_const_int(e, e->i1, 1);
  for (int i = 0; i < ends->accesses.count; i++) {
    MlirOperation op = ends->accesses.at[i];
    bool compares = tw_op_is(op, TW_ARITH_CMPI);
    tw_layout_t l;
    if (!tw_layout_of_type(compares ? mlirValueGetType(mlirOperationGetOperand(op, 0)) : moved_type(op), &l))
      continue;
    for (int d = 0; d < l.rank && !compares; d++)
      all = twg_binary(e, "llvm.and", all, reaches(e, op, &l, d));
    if (compares) {
      MlirValue bound = twg_operand(e, op, 1).at[0], wanted = twg_const_i32(e, elements_wanted(&l, 0));
      all = twg_binary(e, "llvm.and", all, twg_icmp(e, TW_SGE, bound, wanted));
    }
  }
  return all;
}

int64_t twg_surely_inside(const tw_emitter_t *e, MlirOperation op, const tw_layout_t *layout, int dim) {
  for (int i = 0; e->row_ends != NULL && i < e->row_ends->accesses.count; i++)
    if (mlirOperationEqual(e->row_ends->accesses.at[i], op))
      return elements_wanted(layout, dim);
  return 0;
}
