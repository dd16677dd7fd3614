/* remainder.c - rule: remainders of floats, exact for all operands
 *
 * What LLVM makes of frem, x - trunc(x / y) * y, is exact only where the quotient is. Here each step takes the nearest
 * float to the quotient, without its fraction: what remains is then a float itself, which an fma computes without an
 * error, below y or 2^-24 (f64: 2^-53) of what it was. Most tiles are done after one step; a loop takes the others. */
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/isa/convert_float.h"

enum { MOST_AT_ONCE = 8, LEVELS = 2 };

/* |y|, and times powers of two that keep each quotient by one of them from being infinite. */
typedef struct {
  MlirValue size, level[LEVELS];
} divisor_t;

static MlirValue absolute(tw_emitter_t *e, MlirValue x) { return twg_unary(e, "llvm.intr.fabs", x); }

static divisor_t divisor_of(tw_emitter_t *e, MlirValue y) {
  MlirType type = mlirValueGetType(y);
  MlirValue power = twg_const_float(e, type, mlirTypeIsAF64(type) ? 0x1p1000 : 0x1p100);
  divisor_t d = {.size = absolute(e, y)};
  for (int i = 0; i < LEVELS; i++)
    d.level[i] = twg_binary(e, "llvm.fmul", i ? d.level[i - 1] : d.size, power);
  return d;
}

static MlirValue is_left(tw_emitter_t *e, MlirValue rest, const divisor_t *d) {
  return twg_fcmp(e, TW_OGE, absolute(e, rest), d->size);
}

/* rest mod y, or with the sign that the rounded quotient gives it. By zero and of infinity it is NaN. */
static MlirValue step(tw_emitter_t *e, MlirValue rest, const divisor_t *d) {
  MlirValue by = d->size;
  for (int i = 0; i < LEVELS; i++)
    by = twg_select(e, twg_fcmp(e, TW_OGE, absolute(e, rest), d->level[i]), d->level[i], by);
  MlirValue quotient = twg_unary(e, "llvm.intr.trunc", twg_binary(e, "llvm.fdiv", rest, by));
  MlirValue next = twg_fma(e, twg_unary(e, "llvm.fneg", quotient), by, rest);
  return twg_select(e, is_left(e, rest, d), next, rest);
}

static MlirValue copy_sign(tw_emitter_t *e, MlirValue size, MlirValue sign) {
  return twg_binary(e, "llvm.intr.copysign", size, sign);
}

/* With the sign of x: where a quotient was rounded up, y is missing. By NaN it is NaN. */
static MlirValue finish(tw_emitter_t *e, MlirValue rest, MlirValue x, MlirValue y, const divisor_t *d) {
  MlirValue aligned = copy_sign(e, rest, x);
  MlirValue moved = copy_sign(e, twg_binary(e, "llvm.fsub", d->size, absolute(e, rest)), x);
  MlirValue moves = twg_fcmp(e, TW_ONE, rest, aligned); /* a zero or NaN stays as it is */
  return twg_select(e, twg_fcmp(e, TW_UNO, y, y), y, twg_select(e, moves, moved, aligned));
}

/* head(rests): is some rest not below its divisor ? body : exit; body: head(rests after a step). */
static void remainders(tw_emitter_t *e, int num, const MlirValue *x, const MlirValue *y, MlirValue *out) {
  MlirType types[MOST_AT_ONCE];
  MlirValue next[MOST_AT_ONCE], any = {NULL};
  divisor_t divisors[MOST_AT_ONCE];
  for (int i = 0; i < num; i++) {
    types[i] = mlirValueGetType(x[i]);
    divisors[i] = divisor_of(e, y[i]);
  }
  MlirBlock head = twg_new_block(e, num, types), body = twg_new_block(e, 0, NULL), exit = twg_new_block(e, 0, NULL);
  twg_branch(e, head, num, x);
  e->block = head;
  for (int i = 0; i < num; i++) {
    MlirValue left = is_left(e, mlirBlockGetArgument(head, i), &divisors[i]);
    any = i ? twg_binary(e, "llvm.or", any, left) : left;
  }
  twg_branch_if(e, any, body, 0, NULL, exit, 0, NULL);
  e->block = body;
  for (int i = 0; i < num; i++)
    next[i] = step(e, mlirBlockGetArgument(head, i), &divisors[i]);
  twg_branch(e, head, num, next);
  e->block = exit;
  for (int i = 0; i < num; i++)
    out[i] = finish(e, mlirBlockGetArgument(head, i), x[i], y[i], &divisors[i]);
}

static bool rule_remf(tw_emitter_t *e, MlirOperation op) {
  MlirType element = tw_result_element(op);
  MlirType wide = mlirTypeIsAF64(element) ? element : e->f32;
  tw_values_t x = twg_operand(e, op, 0), y = twg_operand(e, op, 1), out = twg_new_values(e, x.count);
  int distinct = twg_are_same(x) && twg_are_same(y) ? 1 : x.count;
  for (int first = 0, num; first < distinct; first += num) {
    MlirValue a[MOST_AT_ONCE], b[MOST_AT_ONCE], rest[MOST_AT_ONCE];
    num = distinct - first < MOST_AT_ONCE ? distinct - first : MOST_AT_ONCE;
    for (int i = 0; i < num; i++) {
      a[i] = twg_convert_float(e, x.at[first + i], element, wide);
      b[i] = twg_convert_float(e, y.at[first + i], element, wide);
    }
    remainders(e, num, a, b, rest);
    for (int i = 0; i < num; i++)
      out.at[first + i] = twg_convert_float(e, rest[i], wide, element);
  }
  for (int r = distinct; r < out.count; r++)
    out.at[r] = out.at[0];
  twg_set_result(e, op, 0, out);
  return true;
}

TWG_RULE(TW_ARITH_REMF, rule_remf)
