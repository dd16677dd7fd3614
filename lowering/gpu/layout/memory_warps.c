/* memory_warps.c - the warps of a kernel without products. See memory_warps.h. */
#include "lowering/gpu/layout/memory_warps.h"

#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/alive.h"
#include "lowering/gpu/facts/block_axes.h"
#include "lowering/gpu/facts/index_facts.h"
#include "lowering/gpu/layout/value_classes.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/ir.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"

enum {
  BYTES_PER_THREAD = 64, /* of the largest tile in memory */
  OWN_ROWS = 8,    /* so many rows that are reduced one by one: warps do not wait for each other, and have twice that */
  LOOP_WEIGHT = 4, /* of one that each iteration of a loop loads: a thread has one access of it under way */
  CLOSE_WEIGHT = 2, /* of one whose copies are all under way, or that other blocks load, too */
  MANY_BLOCKS = 4,  /* side by side, as the program wants: they have tiles under way for each other */
  FEW_ELEMENTS = 8, /* of a thread, beside which what threads do for their sums and addresses counts */
  FEW_WARPS = 4,
  MAX_WARPS = 8,         /* unless a thread would hold too much */
  MOVED_BYTES = 1 << 15, /* the most of a tile that twice as many warps move */
};

typedef struct {
  tw_block_axes_t axes;
  tw_ops_t accesses; /* of tiles */
  int64_t elements;  /* of the largest tile that threads hold */
  int64_t alive;     /* of the tiles that are computed and needed at a time, at most */
  int64_t around;    /* the same in a loop, with those that are computed before it and needed there */
  bool scans, combines, rearranges, loops;
  int64_t rows; /* the least that a reduction leaves */
  bool (*is_kept)(MlirOperation load);
} moved_t;

static int64_t bytes_of(MlirValue tile) {
  MlirType type = mlirValueGetType(tile);
  return tw_count(type) * tw_memory_bits(tw_element(type)) / 8;
}

/* What an access moves: not where it moves it to, though that gives a scatter its layout. */
static MlirValue moved_by(MlirOperation op) {
  MlirValue value = tw_op_scatters(op) ? tw_moved_tile(op) : twl_accessed(op);
  return tw_is_tile(mlirValueGetType(value)) ? value : twl_accessed(op);
}

static void measure(moved_t *m, MlirValue value) {
  int64_t count = twl_has_class(value) ? tw_count(mlirValueGetType(value)) : 0;
  m->elements = count > m->elements ? count : m->elements;
}

/* Elements of a tile that is computed. One that only repeats a smaller one takes no registers of its own, and a mask
 * takes predicates, or is compared again. */
static int64_t computed_elements(MlirValue value) {
  MlirOperation op = tw_def(value);
  bool computed = !mlirOperationIsNull(op) && tw_op_form(op) == TW_FORM_ELEMENTWISE && twl_has_class(value);
  computed = computed && !tw_is_bool(mlirValueGetType(value));
  return computed ? tw_count(mlirValueGetType(value)) : 0;
}

/* Elements of the tiles that were computed before the loop, and of which each iteration reads some. */
static int64_t elements_kept(MlirOperation loop) {
  tw_map_t seen = {0};
  int64_t kept = 0;
  MlirBlock body = tw_loop_body(loop);
  TW_EACH_OP(op, body)
    for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
      MlirValue value = mlirOperationGetOperand(op, i);
      MlirOperation def = tw_def(value);
      while (!mlirOperationIsNull(def) && tw_op_form(def) == TW_FORM_VIEW && !tw_defined_in(value, body)) {
        value = mlirOperationGetOperand(def, 0);
        def = tw_def(value);
      }
      if (tw_defined_in(value, body) || tw_map_get(&seen, value.ptr, NULL))
        continue;
      tw_map_one(&seen, value, value);
      kept += computed_elements(value);
    }
  tw_map_free(&seen);
  return kept;
}

static int64_t results_of(MlirOperation op) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  return tw_is_tile(type) ? tw_count(type) : 1;
}

static MlirWalkResult look(MlirOperation op, void *user) {
  moved_t *m = user;
  if (mlirOperationEqual(mlirBlockGetFirstOperation(mlirOperationGetBlock(op)), op)) {
    int64_t alive = tw_most_alive(mlirOperationGetBlock(op), computed_elements);
    m->alive = alive > m->alive ? alive : m->alive;
    MlirOperation loop = mlirOperationGetParentOperation(op);
    int64_t kept = tw_op_is(loop, TW_SCF_FOR) ? elements_kept(loop) : 0;
    m->around = kept > 0 && alive + kept > m->around ? alive + kept : m->around;
  }
  m->scans |= tw_op_form(op) == TW_FORM_SCAN;
  if (tw_op_combines(op)) {
    int64_t rows = mlirOperationGetNumResults(op) > 0 ? results_of(op) : 1;
    m->rows = !m->combines || rows < m->rows ? rows : m->rows;
    m->combines = true;
  }
  m->rearranges |= tw_op_form(op) == TW_FORM_VIEW;
  m->loops |= mlirOperationGetNumRegions(op) > 0 && !tw_op_is(op, TW_FUNC_FUNC);
  if (twl_accessed(op).ptr)
    tw_ops_add(&m->accesses, op);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    measure(m, mlirOperationGetResult(op, i));
  return MlirWalkResultAdvance;
}

/* Whether where the op finds its tile depends on the block. */
static bool is_of_block(const moved_t *m, MlirOperation op) {
  uint32_t own = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    own |= tw_block_axes_get(&m->axes, mlirOperationGetOperand(op, i));
  return own != 0;
}

/* Bytes of the tile that the op accesses; a loop's scans are over few warps, as others are. */
static int64_t weighed_bytes(const moved_t *m, MlirOperation op) {
  bool again = tw_op_loads(op) && !m->scans && !mlirOperationIsNull(tw_enclosing_loop(op));
  if (!again)
    return bytes_of(moved_by(op));
  bool close = !is_of_block(m, op) || (tw_op_loads_tile(op) && m->is_kept(op));
  return bytes_of(moved_by(op)) * (close ? CLOSE_WEIGHT : LOOP_WEIGHT);
}

/* Whether a gather before reads nearly the same. */
static bool is_beside_another(const moved_t *m, int i) {
  bool found = false;
  for (int j = 0; j < i && tw_op_gathers(m->accesses.at[i]); j++)
    found |= tw_op_gathers(m->accesses.at[j]) && tw_gathers_adjoin(m->accesses.at[j], m->accesses.at[i]);
  return found;
}

/* Bytes of the tiles that a block loads for itself between two branches or loops. */
static int64_t bytes_together(const moved_t *m, MlirBlock block) {
  int64_t bytes = 0;
  for (int i = 0; i < m->accesses.count; i++) {
    MlirOperation op = m->accesses.at[i];
    if (tw_op_loads(op) && mlirBlockEqual(mlirOperationGetBlock(op), block) && is_of_block(m, op) &&
        !is_beside_another(m, i))
      bytes += weighed_bytes(m, op);
  }
  return bytes;
}

/* Of the largest tile in memory, or of the tiles that are loaded together. */
static int64_t most_bytes(const moved_t *m) {
  int64_t most = 0;
  for (int i = 0; i < m->accesses.count; i++) {
    int64_t bytes = weighed_bytes(m, m->accesses.at[i]);
    int64_t together = bytes_together(m, mlirOperationGetBlock(m->accesses.at[i]));
    most = bytes > most ? bytes : most;
    most = together > most ? together : most;
  }
  return most;
}

/* Whether the function moves tiles one at a time: of those that it loads one is large, and nothing is added up. Where
 * it loads none its few warps wait for what they compute. */
static bool moves_single_tiles(const moved_t *m, int64_t most, int warps) {
  int large = 0, loads = 0;
  for (int i = 0; i < m->accesses.count; i++) {
    loads += tw_op_loads(m->accesses.at[i]);
    large += tw_op_loads(m->accesses.at[i]) && 2 * weighed_bytes(m, m->accesses.at[i]) >= most;
  }
  return (large == 1 || (loads == 0 && warps < FEW_WARPS)) && !m->combines;
}

/* As many warps as give each thread BYTES_PER_THREAD, or twice that where each warp reduces rows of its own, and more
 * where a thread would hold too many elements, of one tile or of all that it needs at a time, or that a loop keeps
 * beside these, such as the weights of rows. Half as many where a walk along short rows has many blocks. A scan over
 * few warps is cheaper. What moves tiles and waits for nothing else has half as many bytes a thread, if there are
 * blocks of several warps anyway; of two, if threads exchange nothing. */
static int choose(const moved_t *m, MlirOperation func) {
  int64_t most = most_bytes(m), held = tw_register_budget(func, TW_BUDGET_TILE);
  int64_t alive = tw_register_budget(func, TW_BUDGET_ALIVE);
  bool own_rows = m->combines && !m->scans && !m->loops && m->rows >= OWN_ROWS;
  int64_t bytes = BYTES_PER_THREAD * (own_rows ? 2 : 1);
  int warps = 1;
  while (warps < MAX_WARPS && most >= 2 * warps * TW_WARP_LANES * bytes * (m->scans && warps >= FEW_WARPS ? 2 : 1))
    warps *= 2;
  int enough = m->scans || m->rearranges ? FEW_WARPS : FEW_WARPS / 2;
  if (warps >= enough && most <= MOVED_BYTES && moves_single_tiles(m, most, warps))
    warps *= 2;
  if (tw_hint_occupancy(func, 1) >= MANY_BLOCKS && m->loops && m->combines && warps > FEW_WARPS &&
      m->elements < (int64_t)warps * TW_WARP_LANES * FEW_ELEMENTS)
    warps /= 2;
  while (warps < TW_BLOCK_WARPS && m->elements > (int64_t)warps * TW_WARP_LANES * held)
    warps *= 2;
  while (warps < MAX_WARPS && m->alive > (int64_t)warps * TW_WARP_LANES * alive)
    warps *= 2;
  if (warps == MAX_WARPS && m->around >= (int64_t)warps * TW_WARP_LANES * alive)
    warps *= 2;
  return warps;
}

int tw_memory_num_warps(MlirOperation func, bool (*is_kept)(MlirOperation load)) {
  moved_t m = {.axes = tw_block_axes_of(func), .is_kept = is_kept};
  mlirOperationWalk(func, look, &m, MlirWalkPreOrder);
  int warps = choose(&m, func);
  tw_ops_free(&m.accesses);
  tw_block_axes_free(&m.axes);
  return warps;
}
