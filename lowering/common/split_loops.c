/* split_loops.c - tile-split-loops: iterations in which a mask holds everywhere run without it
 *
 * Before: a mask whose border moves with the loop, for example the diagonal of causal attention, the last keys of a
 * ragged length, both edges of a sliding window.
 *
 *   scf.for %j = %lb to %ub step 1 iter_args(%x = %init) {
 *     %columns = %j * 64 + iota                        // broadcast to 128x64
 *     %visible = arith.cmpi sle, %columns, %rows       // %rows = %r + iota
 *     %s = arith.select %visible, %t, %low
 *     ...
 *   }
 *
 * After: the border is where the last column passes the first row, here at (%r - 63) / 64 + 1, kept within the bounds.
 *
 *   %y = scf.for %j = %lb to %border step 1 iter_args(%x = %init) { ... %visible = true ... }
 *   scf.for %j = %border to %ub step 1 iter_args(%x = %y) { as before }
 *
 * A mask that begins to hold (the far edge of a window) gives a loop before the one without masks. It holds in the one
 * behind, too, and one that ends holds in front, where the borders are known to stand in this order. A loop that is
 * known to begin where its mask no longer holds (a program that was split by hand) stays whole.
 *
 * What must hold: the loop has a matrix product, so that its iterations are worth two copies of the text, or is a walk
 * over tiles that shared memory keeps (tile-cache-tiles), which instructions bound and not memory; its step is 1; the
 * mask compares signed integers whose difference is a multiple of the induction variable, plus scalars from
 * outside of the loop, plus what differs within the tile by iotas; and this arithmetic does not overflow. The result is
 * the same, bit for bit: every iteration runs once, in order. */
#include "lowering/common/split_loops.h"

#include "lowering/common/gather_to_load.h"
#include "lowering/ir.h"
#include "lowering/layout/memory.h"
#include "lowering/loops.h"
#include "lowering/passes.h"

enum { MAX_TERMS = 8, MIN_ELEMENTS = 256 };

/* iv * (induction variable) + sum of factor * scalar + what lies in [low, high], by element */
typedef struct {
  int64_t iv, low, high;
  struct {
    MlirValue scalar;
    int64_t factor;
  } terms[MAX_TERMS];
  int num_terms;
  bool *has_more; /* terms than MAX_TERMS, so it was not read; or null */
} affine_t;

/* ---- masks as affine functions ----------------------------------------------------------------------- */

static bool add_term(affine_t *a, MlirValue scalar, int64_t factor) {
  for (int i = 0; i < a->num_terms; i++)
    if (mlirValueEqual(a->terms[i].scalar, scalar)) {
      a->terms[i].factor += factor;
      return true;
    }
  if (a->num_terms == MAX_TERMS) {
    if (a->has_more)
      *a->has_more = true;
    return false;
  }
  a->terms[a->num_terms].scalar = scalar;
  a->terms[a->num_terms++].factor = factor;
  return true;
}

static void add_range(affine_t *a, int64_t low, int64_t high, int64_t factor) {
  a->low += factor * (factor > 0 ? low : high);
  a->high += factor * (factor > 0 ? high : low);
}

static bool add_value(affine_t *a, MlirOperation loop, MlirValue value, int64_t factor);

static int64_t divide_down(int64_t x, int64_t by) { return x / by - (x % by < 0); }
static int64_t divide_up(int64_t x, int64_t by) { return x / by + (x % by > 0); }

/* Adds factor * (rounded quotient of an affine function of scalars), where the division leaves nothing over but of
 * constants; else false. */
static bool add_quotient(affine_t *a, MlirOperation loop, MlirOperation op, int64_t factor) {
  affine_t x = {.num_terms = 0};
  int64_t by;
  if (!tw_known_int(mlirOperationGetOperand(op, 1), &by) || by <= 0 ||
      !add_value(&x, loop, mlirOperationGetOperand(op, 0), 1) || x.iv != 0 || x.low != x.high)
    return false;
  for (int i = 0; i < x.num_terms; i++)
    if (x.terms[i].factor % by != 0)
      return false;
  bool ok = true;
  for (int i = 0; i < x.num_terms; i++)
    ok = ok && add_term(a, x.terms[i].scalar, factor * (x.terms[i].factor / by));
  int64_t rest = tw_op_is(op, TW_ARITH_CEILDIVSI) ? divide_up(x.low, by) : divide_down(x.low, by);
  add_range(a, rest, rest, factor);
  return ok;
}

/* Adds factor * the op's result; false (and `a` is unchanged) if that is not affine. */
static bool add_op(affine_t *a, MlirOperation loop, MlirOperation op, int64_t factor) {
  int64_t number;
  affine_t sum = *a;
  bool ok = false, had_more = a->has_more && *a->has_more;
  if (tw_op_is(op, TW_TILE_IOTA)) {
    add_range(&sum, 0, tw_extent(mlirValueGetType(mlirOperationGetResult(op, 0)), 0) - 1, factor);
    ok = true;
  } else if (tw_op_form(op) == TW_FORM_VIEW || tw_op_is(op, TW_TENSOR_SPLAT) || tw_op_is(op, TW_ARITH_EXTSI)) {
    ok = add_value(&sum, loop, mlirOperationGetOperand(op, 0), factor);
  } else if (tw_op_class(op) == TW_CLASS_SUM) {
    ok = add_value(&sum, loop, mlirOperationGetOperand(op, 0), factor) &&
         add_value(&sum, loop, mlirOperationGetOperand(op, 1), tw_op_is(op, TW_ARITH_SUBI) ? -factor : factor);
  } else if (tw_op_is(op, TW_ARITH_FLOORDIVSI) || tw_op_is(op, TW_ARITH_CEILDIVSI)) {
    ok = add_quotient(&sum, loop, op, factor);
  } else if (tw_op_is(op, TW_ARITH_MULI)) {
    for (int i = 0; i < 2 && !ok; i++)
      if (tw_known_int(mlirOperationGetOperand(op, i), &number))
        ok = add_value(&sum, loop, mlirOperationGetOperand(op, 1 - i), factor * number);
  }
  if (ok)
    *a = sum;
  else if (a->has_more && !tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))))
    *a->has_more = had_more; /* a scalar may be a term as a whole */
  return ok;
}

/* Adds factor * value; false if that is not affine. */
static bool add_value(affine_t *a, MlirOperation loop, MlirValue value, int64_t factor) {
  int64_t number;
  MlirOperation op = tw_def(value);
  if (mlirValueEqual(value, tw_loop_iv(loop))) {
    a->iv += factor;
    return true;
  }
  if (tw_known_int(value, &number)) {
    add_range(a, number, number, factor);
    return true;
  }
  if (!mlirOperationIsNull(op) && add_op(a, loop, op, factor))
    return true;
  return !tw_is_tile(mlirValueGetType(value)) && !tw_defined_in(value, tw_loop_body(loop)) &&
         add_term(a, value, factor);
}

/* The mask holds everywhere where the affine function is at most 0 everywhere. `has_more` gets true if it has too many
 * terms; null: no one asks. */
static bool read_mask(MlirOperation compare, MlirOperation loop, affine_t *out, bool *has_more) {
  int64_t predicate = tw_attr_int(compare, "predicate", 0);
  if (predicate < TW_SLT || predicate > TW_SGE)
    return false;
  int64_t sign = predicate == TW_SLT || predicate == TW_SLE ? 1 : -1;
  *out = (affine_t){.has_more = has_more};
  bool ok = add_value(out, loop, mlirOperationGetOperand(compare, 0), sign) &&
            add_value(out, loop, mlirOperationGetOperand(compare, 1), -sign);
  out->has_more = NULL;
  if (!ok)
    return false;
  out->high += predicate == TW_SLT || predicate == TW_SGT;
  return out->iv != 0;
}

/* ---- where to split ------------------------------------------------------------------------------------ */

/* The border as an affine function of scalars: where the division leaves nothing over but of constants. */
static bool exact_border(const affine_t *mask, affine_t *out) {
  int64_t by = mask->iv > 0 ? mask->iv : -mask->iv, sign = mask->iv > 0 ? -1 : 1;
  *out = (affine_t){.num_terms = 0};
  for (int i = 0; i < mask->num_terms; i++)
    if (mask->terms[i].factor % by != 0 || !add_term(out, mask->terms[i].scalar, sign * (mask->terms[i].factor / by)))
      return false;
  int64_t rest = sign * mask->high;
  out->low = out->high = mask->iv > 0 ? divide_down(rest, by) + 1 : divide_up(rest, by);
  return true;
}

/* Whether x - y is a constant, and which. */
static bool difference(const affine_t *x, const affine_t *y, int64_t *out) {
  affine_t d = *x;
  for (int i = 0; i < y->num_terms; i++)
    if (!add_term(&d, y->terms[i].scalar, -y->terms[i].factor))
      return false;
  for (int i = 0; i < d.num_terms; i++)
    if (d.terms[i].factor != 0)
      return false;
  *out = x->low - y->low;
  return x->low == x->high && y->low == y->high;
}

/* Whether the mask is known to hold everywhere in no iteration. */
static bool holds_never(const affine_t *mask, MlirOperation loop) {
  affine_t border, bound = {.num_terms = 0};
  int64_t distance;
  return exact_border(mask, &border) && add_value(&bound, loop, mlirOperationGetOperand(loop, mask->iv < 0), 1) &&
         difference(&border, &bound, &distance) && (mask->iv > 0 ? distance <= 0 : distance >= 0);
}

typedef struct {
  MlirOperation loop;
  affine_t *masks;         /* owned */
  bool has_start, has_end; /* some mask begins to hold, or ends */
  int num_masks;
} loop_split_t;

static bool masks_gather(MlirValue mask) {
  MlirOperation user = tw_only_user(mask);
  return !mlirOperationIsNull(user) && tw_op_gathers(user);
}

/* Elements of the largest tile that the mask is for: one of rows or columns is repeated. */
static int64_t masked_elements(MlirValue mask) {
  int64_t most = tw_count(mlirValueGetType(mask));
  TW_EACH_USE(use, mask) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    int64_t its = tw_op_form(user) == TW_FORM_VIEW ? masked_elements(mlirOperationGetResult(user, 0)) : 0;
    most = its > most ? its : most;
  }
  return most;
}

/* A comparison for many elements, or for the indices of rows that a gather brings. */
static bool is_mask(MlirOperation op) {
  MlirValue result = {NULL};
  if (tw_op_is(op, TW_ARITH_CMPI))
    result = mlirOperationGetResult(op, 0);
  return result.ptr && tw_is_tile(mlirValueGetType(result)) &&
         (masked_elements(result) >= MIN_ELEMENTS || masks_gather(result));
}

/* A loop in which some mask holds nowhere stays whole. */
static bool find_split(MlirOperation loop, loop_split_t *out) {
  *out = (loop_split_t){.loop = loop};
  int64_t step;
  if (!tw_known_int(mlirOperationGetOperand(loop, 2), &step) || step != 1 || tw_has_attr(loop, "unsignedCmp"))
    return false;
  affine_t mask;
  MlirBlock body = tw_loop_body(loop);
  for (MlirOperation op = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    bool has_more = false;
    if (is_mask(op) && read_mask(op, loop, &mask, &has_more)) {
      if (holds_never(&mask, loop))
        return false;
      out->masks = tw_room(out->masks, (size_t)out->num_masks, sizeof *out->masks);
      out->masks[out->num_masks++] = mask;
      out->has_end = out->has_end || mask.iv > 0;
      out->has_start = out->has_start || mask.iv <= 0;
    } else if (has_more) {
      tw_op_remark(op, "is a mask in each iteration: it adds up more than %d scalars", MAX_TERMS);
    }
  }
  return out->num_masks > 0;
}

static MlirValue to_i64(const tw_builder_t *at, MlirValue x) {
  MlirType i64 = tw_i64(at->context);
  return mlirTypeEqual(mlirValueGetType(x), i64) ? x : tw_unary(at, "arith.extsi", i64, x);
}

/* The first iteration after those in which the mask holds (it ends), or the first in which it does (it starts). */
static MlirValue border_of(const tw_builder_t *at, const affine_t *mask) {
  MlirType i64 = tw_i64(at->context);
  int64_t sign = mask->iv > 0 ? -1 : 1; /* iv <= floor(-rest / iv); or iv >= ceil(rest / -iv) */
  MlirValue rest = tw_const_int(at, i64, sign * mask->high);
  for (int i = 0; i < mask->num_terms; i++) {
    MlirValue factor = tw_const_int(at, i64, sign * mask->terms[i].factor);
    MlirValue term = tw_binary(at, "arith.muli", i64, to_i64(at, mask->terms[i].scalar), factor);
    rest = tw_binary(at, "arith.addi", i64, rest, term);
  }
  if (mask->iv < 0)
    return tw_binary(at, "arith.ceildivsi", i64, rest, tw_const_int(at, i64, -mask->iv));
  MlirValue last = tw_binary(at, "arith.floordivsi", i64, rest, tw_const_int(at, i64, mask->iv));
  return tw_binary(at, "arith.addi", i64, last, tw_const_int(at, i64, 1));
}

/* The border of all masks that start (the last) or end (the first), within [low, high]. */
static MlirValue common_border(const tw_builder_t *at, const loop_split_t *split, bool start, MlirValue low,
                               MlirValue high) {
  MlirType i64 = tw_i64(at->context), type = mlirValueGetType(low);
  MlirValue border = {NULL};
  for (int i = 0; i < split->num_masks; i++) {
    if ((split->masks[i].iv < 0) != start)
      continue;
    MlirValue one = border_of(at, &split->masks[i]);
    border = border.ptr ? tw_binary(at, start ? "arith.maxsi" : "arith.minsi", i64, border, one) : one;
  }
  border = tw_binary(at, "arith.minsi", i64, border, to_i64(at, high));
  border = tw_binary(at, "arith.maxsi", i64, border, to_i64(at, low));
  return mlirTypeEqual(type, i64) ? border : tw_unary(at, "arith.trunci", type, border);
}

/* ---- splitting ----------------------------------------------------------------------------------------- */

/* A copy of the loop in front of it, over [from, to); the loop goes on with its results. */
static MlirOperation copy_before(MlirOperation loop, MlirValue from, MlirValue to) {
  MlirOperation copy = mlirOperationClone(loop);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(loop), loop, copy);
  mlirOperationSetOperand(copy, 0, from);
  mlirOperationSetOperand(copy, 1, to);
  mlirOperationSetOperand(loop, 0, to);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(loop); i++)
    mlirOperationSetOperand(loop, TW_FOR_INITS + i, mlirOperationGetResult(copy, i));
  return copy;
}

static bool starts(const affine_t *mask) { return mask->iv < 0; }

/* Whether the mask ends, and no earlier than the last of those that start begins to hold. */
static bool ends_behind_starts(const loop_split_t *split, const affine_t *mask) {
  affine_t end, start;
  int64_t distance;
  bool ok = !starts(mask) && exact_border(mask, &end);
  for (int i = 0; ok && i < split->num_masks; i++)
    ok = !starts(&split->masks[i]) ||
         (exact_border(&split->masks[i], &start) && difference(&end, &start, &distance) && distance >= 0);
  return ok;
}

typedef enum { IN_FRONT, BETWEEN, BEHIND } part_t; /* of the borders */

/* Whether the mask holds in every iteration of that part. */
static bool holds_in(const loop_split_t *split, part_t part, const affine_t *mask) {
  return part == BETWEEN || (part == IN_FRONT ? ends_behind_starts(split, mask) : starts(mask));
}

static void drop_masks(const loop_split_t *split, MlirOperation loop, part_t part) {
  affine_t mask;
  TW_EACH_OP(op, tw_loop_body(loop)) {
    if (!is_mask(op) || !read_mask(op, loop, &mask, NULL) || !holds_in(split, part, &mask))
      continue;
    tw_builder_t at = tw_build_before(op);
    MlirValue result = mlirOperationGetResult(op, 0);
    mlirValueReplaceAllUsesOfWith(result, tw_const_int(&at, mlirValueGetType(result), 1));
  }
}

static void split_loop(const loop_split_t *split) {
  MlirOperation loop = split->loop;
  tw_builder_t at = tw_build_before(loop);
  MlirValue low = mlirOperationGetOperand(loop, 0), high = mlirOperationGetOperand(loop, 1);
  MlirValue start = low;
  if (split->has_start) {
    start = common_border(&at, split, true, low, high);
    drop_masks(split, copy_before(loop, low, start), IN_FRONT);
  }
  if (split->has_end) {
    at = tw_build_before(loop);
    MlirOperation last = loop;
    loop = copy_before(loop, start, common_border(&at, split, false, start, high));
    drop_masks(split, last, BEHIND);
  }
  drop_masks(split, loop, BETWEEN);
}

/* ---- the pass ------------------------------------------------------------------------------------ */

void tw_split_by_masks(MlirOperation loop) {
  loop_split_t split;
  if (find_split(loop, &split))
    split_loop(&split);
  free(split.masks);
}

/* Of a loop that runs once there is no iteration to spare. */
static bool split_loops(MlirOperation func) {
  tw_ops_t loops = tw_loops_in(func, MlirWalkPostOrder); /* inner loops first: an outer one copies them split */
  for (int i = 0; i < loops.count; i++)
    if (tw_has_op_like(loops.at[i], tw_op_is_product) && !tw_runs_once(loops.at[i]))
      tw_split_by_masks(loops.at[i]);
  tw_ops_free(&loops);
  return true;
}

/* Gathers whose mask holds in all iterations of a loop are loads then. */
bool tw_run_split_loops(MlirOperation func) { return split_loops(func) && tw_gather_to_load(func); }
