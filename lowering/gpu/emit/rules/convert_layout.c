/* convert_layout.c - rules: moving elements between registers of one thread, lanes of a warp, and through
 * shared memory */
#include "lowering/gpu/emit/elements.h"
#include "lowering/gpu/emit/lanes.h"
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/emit/shared_access.h"
#include "lowering/layout/cost.h"

/* ---- shuffles ------------------------------------------------------------------------------------ */

/* The source register of a conversion may depend on the thread. It is one of 2^count registers, chosen by bits that
 * are linear in lane and warp. */
typedef struct choice {
  int count;
  uint32_t step[TW_LAYOUT_MAX_BITS]; /* XORed to the register where bit i is set */
  MlirValue bit[TW_LAYOUT_MAX_BITS]; /* i1 */
} choice_t;

static choice_t thread_choice(tw_emitter_t *e, const tw_conversion_t *c) {
  choice_t out = {0};
  uint32_t all = 0;
  for (int g = TW_LANE; g <= TW_WARP; g++)
    for (int i = 0; i < c->bits[g]; i++)
      all |= c->basis[g][i].at[TW_REGISTER];
  for (int bit = 0; bit < 32; bit++) { /* one choice for each register bit that varies */
    uint32_t lane[TW_LAYOUT_MAX_BITS], warp[TW_LAYOUT_MAX_BITS];
    if ((all >> bit & 1) == 0)
      continue;
    for (int i = 0; i < c->bits[TW_LANE]; i++)
      lane[i] = c->basis[TW_LANE][i].at[TW_REGISTER] >> bit & 1;
    for (int i = 0; i < c->bits[TW_WARP]; i++)
      warp[i] = c->basis[TW_WARP][i].at[TW_REGISTER] >> bit & 1;
    MlirValue sum = twg_linear_of_thread(e, lane, c->bits[TW_LANE], warp, c->bits[TW_WARP]);
    out.step[out.count] = UINT32_C(1) << bit;
    out.bit[out.count++] = twg_icmp(e, TW_NE, sum, twg_const_i32(e, 0));
  }
  return out;
}

typedef struct mover {
  const choice_t *choice;
  tw_values_t in;
  MlirValue lane; /* null: no shuffle */
} mover_t;

static MlirValue pick(tw_emitter_t *e, const mover_t *m, uint32_t reg, int bit) {
  if (bit == m->choice->count)
    return m->lane.ptr ? twg_shuffle(e, false, m->in.at[reg], m->lane) : m->in.at[reg];
  MlirValue set = pick(e, m, reg ^ m->choice->step[bit], bit + 1), clear = pick(e, m, reg, bit + 1);
  return twg_select(e, m->choice->bit[bit], set, clear);
}

/* Select or shuffle: each register of the result comes from a register of this or another lane. */
static tw_values_t move_in_warp(tw_emitter_t *e, const tw_layout_t *from, const tw_layout_t *to, tw_values_t in) {
  tw_conversion_t c;
  uint32_t lane[TW_LAYOUT_MAX_BITS], warp[TW_LAYOUT_MAX_BITS];
  bool shuffles = tw_layout_classify(from, to) == TW_CONVERT_SHUFFLE;
  (void)tw_layout_conversion(from, to, &c);
  choice_t choice = thread_choice(e, &c);
  for (int i = 0; i < c.bits[TW_LANE]; i++)
    lane[i] = c.basis[TW_LANE][i].at[TW_LANE];
  for (int i = 0; i < c.bits[TW_WARP]; i++)
    warp[i] = c.basis[TW_WARP][i].at[TW_LANE];
  MlirValue source = twg_linear_of_thread(e, lane, c.bits[TW_LANE], warp, c.bits[TW_WARP]);
  tw_values_t out = twg_new_values(e, tw_layout_count(to, TW_REGISTER));
  for (int r = 0; r < out.count; r++) {
    tw_position_t p = tw_conversion_apply(&c, (uint32_t)r, 0, 0);
    mover_t mover = {&choice, in, {NULL}};
    if (shuffles)
      mover.lane = p.at[TW_LANE] ? twg_binary(e, "llvm.xor", source, twg_const_i32(e, p.at[TW_LANE])) : source;
    out.at[r] = twg_first_copy(to, r) != r ? out.at[twg_first_copy(to, r)] : pick(e, &mover, p.at[TW_REGISTER], 0);
  }
  return out;
}

/* ---- convert_layout ------------------------------------------------------------------------------ */

static bool rule_convert_layout(tw_emitter_t *e, MlirOperation op) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0)), element = tw_element(type);
  tw_layout_t from, to;
  tw_values_t in = twg_operand(e, op, 0), out;
  if (!tw_layout_of_type(mlirValueGetType(mlirOperationGetOperand(op, 0)), &from) || !tw_layout_of_type(type, &to)) {
    tw_op_error(op, "needs tiles with layouts");
    return false;
  }
  if (!tw_layout_is_onto(&from)) {
    tw_op_error(op, "has an operand whose layout leaves elements without owner");
    return false;
  }
  if (twg_rename_registers(e, &from, &to, in, &out)) {
    twg_set_result(e, op, 0, out);
    return true;
  }
  if (!tw_converts_through_shared(&from, &to)) {
    twg_set_result(e, op, 0, move_in_warp(e, &from, &to, in));
    return true;
  }
  int vector;
  tw_layout_t shared = tw_shared_for(&from, &to, 8 * tw_memory_bytes(element), &vector);
  MlirValue base = twg_scratch_at(e, op, 0);
  twg_write_shared(e, &from, &shared, element, in, base);
  twg_barrier(e);
  twg_set_result(e, op, 0, twg_read_shared(e, &to, &shared, element, base));
  return true;
}

TWG_RULE(TW_TILE_CONVERT_LAYOUT, rule_convert_layout)
