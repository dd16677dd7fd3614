/* choose_layouts.c - tile-assign-layouts: the layouts of least cost
 *
 * Each class of values (value_classes.h) has a few candidates: the layout of the accumulator, where it is one, and no
 * other; what its accesses to global memory want; what a product wants of its operands; what its neighbours across
 * shape ops and reductions could have; and variants of an access with narrower vectors and with warps along the other
 * dimension. Costs are slots of a warp (layout/cost.h), times the trips of the loops around:
 *
 *   of a candidate         elementwise ops, accesses, reductions and scans, conversions to and from products
 *   of two, across an op   the conversion that the op needs
 *
 * The choice is the minimum of their sum (layout/minimum.h). The kernel gets tile.layout_costs: this sum, and those of
 * the runners-up, which differ from it in one class and what follows from that. Remarks tell them. */
#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/index_facts.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/layout/access_layout.h"
#include "lowering/gpu/layout/named_choices.h"
#include "lowering/gpu/layout/value_classes.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/launch_record.h"
#include "lowering/layout/cost.h"
#include "lowering/layout/memory.h"
#include "lowering/layout/minimum.h"

#include <string.h>

enum {
  DEFAULT_VECTOR_BITS = 2,
  UNKNOWN_TRIPS = 16, /* of a loop */
  MOST_TRIPS = 1 << 20,
  WORD_BITS = 32,
  MAX_RUNNERS_UP = 7,
  MAX_TOLD = 3,
  WITHIN_PERCENT = 25 /* of the best: what a tuner may try */
};

typedef struct class_choice {
  MlirValue value; /* the first of the class */
  bool forced;     /* an accumulator */
  bool has_more;   /* candidates than TW_MAX_CHOICES */
  int count;
  int layout[TW_MAX_CHOICES]; /* numbers of layouts */
  const char *kind[TW_MAX_CHOICES];
  int64_t slots[TW_MAX_CHOICES]; /* of the kernel, with this choice and what then is best */
  int variable;                  /* in the graph; -1: there is nothing to choose */
  bool asked;                    /* the program says which: `wanted` */
  int wanted;
} class_choice_t;

/* A conversion whose cost is known. */
enum { MEMO_SLOTS = 4096 };
typedef struct known {
  int from, to, bits; /* 0 bits: free */
  int64_t slots;
} known_t;

/* An access: what it wants by itself, and before that, what it wants beside another one: a patch. */
typedef struct access {
  MlirOperation op;
  MlirValue value;
  tw_wish_t wish;
  int64_t bits; /* of the tile */
  bool row;     /* it goes through shared memory, an element at a time */
  int count;
  tw_layout_t own[2];
} access_t;

/* Another minimum, where variable `variable` has to choose `choice`. */
typedef struct runner_up {
  int64_t slots;
  int variable, choice;
  int *chosen; /* by variable */
} runner_up_t;

typedef struct chooser {
  twl_classes_t *c;
  class_choice_t *classes;
  access_t *accesses; /* of classes */
  int num_accesses;
  tw_layout_t *layouts; /* all that come up, each once */
  uint64_t *hashes;     /* of each, by which it is found */
  int num_layouts;
  known_t *known;
  int64_t fixed; /* slots that no choice changes */
  int *class_of_variable, *num_choices;
  int64_t (*cost)[TW_MAX_CHOICES];
  tw_pair_cost_t *pairs;
  tw_choice_graph_t graph;
} chooser_t;

/* ---- what an op wants ---------------------------------------------------------------------------- */

static int rank_of(MlirValue tile) { return (int)tw_rank(mlirValueGetType(tile)); }

static int element_bits(MlirValue tile) { return tw_memory_bits(tw_element(mlirValueGetType(tile))); }

static tw_layout_t blocked(const twl_classes_t *c, MlirValue value, uint32_t reduced, tw_wish_t wish) {
  int64_t shape[TW_LAYOUT_MAX_RANK];
  int rank = tw_tile_shape(mlirValueGetType(value), shape);
  wish.num_warps = c->num_warps;
  wish.reduced = reduced;
  return tw_choose_blocked(rank, shape, &wish);
}

static uint32_t reduced_axes(twl_classes_t *c, MlirValue value) {
  return twl_has_class(value) ? twl_class_of(c, value)->reduced : 0;
}

tw_layout_t twl_default_layout(twl_classes_t *c, MlirValue value) {
  tw_wish_t wish = {.contiguous = rank_of(value) - 1, .vector_bits = DEFAULT_VECTOR_BITS};
  return blocked(c, value, reduced_axes(c, value), wish);
}

static bool is_permute_between(twl_classes_t *c, MlirOperation op, const twl_node_t *from, const twl_node_t *to) {
  return twl_class_of(c, mlirOperationGetOperand(op, 0)) == from &&
         twl_class_of(c, mlirOperationGetResult(op, 0)) == to;
}

/* The dimension of `value` that is dimension `dim` of `other`: they are of one class, or one permute apart; else -1. */
static int common_dimension(twl_classes_t *c, MlirValue value, MlirValue other, int dim) {
  const twl_node_t *mine = twl_class_of(c, value), *its = twl_class_of(c, other);
  int64_t order[TW_LAYOUT_MAX_RANK];
  if (mine == its)
    return dim;
  for (size_t i = 0; i < c->num_edges; i++) {
    MlirOperation op = c->edges[i].op;
    if (!tw_op_is(op, TW_TILE_PERMUTE))
      continue;
    intptr_t rank = tw_attr_ints(op, "order", order, TW_LAYOUT_MAX_RANK);
    if (is_permute_between(c, op, mine, its))
      return (int)order[dim];
    if (is_permute_between(c, op, its, mine))
      for (intptr_t d = 0; d < rank; d++)
        if (order[d] == dim)
          return (int)d;
  }
  return -1;
}

/* Tells the wish of one access of another that is contiguous along another dimension. */
static void look_across(twl_classes_t *c, MlirValue value, tw_wish_t *wish) {
  int rank = rank_of(value);
  for (size_t i = 0; i < c->num_ops && wish->contiguous >= 0; i++) {
    MlirValue other = twl_accessed(c->ops[i]);
    if (other.ptr == NULL || !twl_has_class(other) || rank_of(other) != rank)
      continue;
    tw_wish_t its = tw_wish_of_access(c->ops[i], rank, c->num_warps);
    int dim = its.contiguous < 0 ? -1 : common_dimension(c, value, other, its.contiguous);
    if (dim >= 0 && dim != wish->contiguous && its.vector_bits > wish->across_bits) {
      wish->across = dim;
      wish->across_bits = its.vector_bits;
    }
  }
}

static access_t access_of(twl_classes_t *c, MlirOperation op) {
  access_t a = {.op = op, .value = twl_accessed(op)};
  a.bits = tw_count(mlirValueGetType(a.value)) * element_bits(a.value);
  a.wish = tw_wish_of_access(op, rank_of(a.value), c->num_warps);
  a.row = tw_begins_anywhere(op, c->num_warps);
  tw_wish_t across = a.wish;
  uint32_t reduced = reduced_axes(c, a.value);
  if (twl_has_class(a.value))
    look_across(c, a.value, &across);
  if (across.across_bits > 0)
    a.own[a.count++] = blocked(c, a.value, reduced, across);
  a.own[a.count++] = blocked(c, a.value, reduced, a.wish);
  return a;
}

bool twl_needs_operand_layout(MlirOperation mma, int i) {
  MlirValue value = mlirOperationGetOperand(mma, i);
  bool computed = i < 2 && !twl_is_flexible(value) && mlirOperationIsNull(tw_load_behind(value));
  return !(computed && tw_mma_place(mma, i) == TW_PLACE_WRITTEN); /* which any layout can be */
}

/* ---- costs of an op, by the layout of a class ---------------------------------------------------------- */

static int64_t access_slots(const tw_machine_t *m, const access_t *a, const tw_layout_t *layout) {
  if (a->row)
    return tw_row_slots(m, layout, a->wish.contiguous, a->wish.vector_bits, element_bits(a->value));
  return tw_access_slots(m, layout, a->wish.contiguous, a->wish.vector_bits, element_bits(a->value));
}

/* Whether a conversion would take the room in shared memory of the tiles that a producer warp brings beside it, for a
 * load that goes as well without one: what a product is added to. */
static bool takes_slots(const access_t *a, const tw_layout_t *own, const tw_layout_t *layout) {
  enum { SLOT_BITS = 8 << 14 };
  return a->bits >= SLOT_BITS && tw_op_loads_tile(a->op) && tw_has_async_mma(a->op) &&
         tw_converts_through_shared(own, layout);
}

/* The access in the best layout for it, with a conversion where that is not the given one. */
static int64_t best_access(const tw_machine_t *m, const access_t *a, const tw_layout_t *layout, tw_layout_t *best) {
  int64_t least = access_slots(m, a, layout);
  bool load = tw_op_loads_tile(a->op);
  int bits = element_bits(a->value);
  *best = *layout;
  for (int i = 0; i < a->count && (load || tw_op_stores_tile(a->op)); i++) {
    int64_t slots = access_slots(m, a, &a->own[i]);
    if (takes_slots(a, &a->own[i], layout))
      continue;
    if (slots < least)
      slots +=
          load ? tw_conversion_slots(m, &a->own[i], layout, bits) : tw_conversion_slots(m, layout, &a->own[i], bits);
    if (slots < least) {
      least = slots;
      *best = a->own[i];
    }
  }
  return least;
}

tw_layout_t twl_access_layout(twl_classes_t *c, MlirOperation op, const tw_layout_t *layout) {
  access_t a = access_of(c, op);
  tw_layout_t best = a.own[0];
  if (layout != NULL)
    (void)best_access(c->target.machine, &a, layout, &best);
  return best;
}

tw_layout_t twl_reduction_layout(twl_classes_t *c, MlirOperation op, const tw_layout_t *layout) {
  int axis = (int)tw_attr_int(op, "axis", 0);
  tw_axis_bits_t bits;
  bool fits = tw_op_is_reduction(op) ? tw_layout_splits_axis(layout, axis) : tw_layout_axis_bits(layout, axis, &bits);
  return fits ? *layout : twl_default_layout(c, twl_reduced(op));
}

static int64_t reduction_slots(twl_classes_t *c, MlirOperation op, const tw_layout_t *layout) {
  tw_layout_t taken = twl_reduction_layout(c, op, layout);
  int axis = (int)tw_attr_int(op, "axis", 0), bits = element_bits(twl_reduced(op));
  const tw_machine_t *m = c->target.machine;
  int64_t slots = tw_conversion_slots(m, layout, &taken, bits);
  if (tw_op_form(op) == TW_FORM_SCAN)
    return slots + tw_scan_slots(m, &taken, axis) + tw_conversion_slots(m, &taken, layout, bits);
  return slots + tw_reduction_slots(m, &taken, axis);
}

/* How often an op runs for each time that the kernel does. */
static int64_t trips_of(MlirOperation op) {
  int64_t trips = 1;
  for (MlirOperation p = mlirOperationGetParentOperation(op); !mlirOperationIsNull(p) && !tw_op_is(p, TW_FUNC_FUNC);
       p = mlirOperationGetParentOperation(p)) {
    int64_t low, high, step;
    if (tw_op_is(p, TW_SCF_FOR) && tw_known_int(mlirOperationGetOperand(p, 0), &low) &&
        tw_known_int(mlirOperationGetOperand(p, 1), &high) && tw_known_int(mlirOperationGetOperand(p, 2), &step) &&
        step > 0 && high > low)
      trips *= (high - low + step - 1) / step;
    else if (tw_op_is(p, TW_SCF_FOR) || tw_op_is(p, TW_SCF_WHILE))
      trips *= UNKNOWN_TRIPS;
    trips = trips < MOST_TRIPS ? trips : MOST_TRIPS;
  }
  return trips;
}

/* ---- layouts by number ------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint32_t word) { return (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15); }

static uint64_t hash_of(const tw_layout_t *l) {
  uint64_t hash = 0;
  for (int d = 0; d < l->rank; d++)
    hash = mix(hash, (uint32_t)l->log_shape[d]);
  for (int g = 0; g < TW_NUM_INPUTS; g++) {
    hash = mix(hash, (uint32_t)l->bits[g]);
    for (int i = 0; i < l->bits[g]; i++)
      hash = mix(hash, l->basis[g][i]);
  }
  return hash;
}

static int number_of(chooser_t *x, const tw_layout_t *layout) {
  uint64_t hash = hash_of(layout);
  for (int i = 0; i < x->num_layouts; i++)
    if (x->hashes[i] == hash && tw_layout_equal(&x->layouts[i], layout))
      return i;
  x->layouts = tw_room(x->layouts, (size_t)x->num_layouts, sizeof *x->layouts);
  x->hashes = tw_room(x->hashes, (size_t)x->num_layouts, sizeof *x->hashes);
  x->layouts[x->num_layouts] = *layout;
  x->hashes[x->num_layouts] = hash;
  return x->num_layouts++;
}

/* A copy: the table moves when it grows. */
static tw_layout_t candidate(const chooser_t *x, const class_choice_t *k, int i) { return x->layouts[k->layout[i]]; }

static int64_t conversion_slots(chooser_t *x, const tw_layout_t *from, const tw_layout_t *to, int bits) {
  int f = number_of(x, from), t = number_of(x, to);
  known_t *entry = &x->known[(f * 257 + t * 3 + bits) % MEMO_SLOTS];
  if (entry->bits != bits || entry->from != f || entry->to != t)
    *entry = (known_t){f, t, bits, tw_conversion_slots(x->c->target.machine, from, to, bits)};
  return entry->slots;
}

/* ---- candidates -------------------------------------------------------------------------------------- */

static class_choice_t *choice_of_node(chooser_t *x, int node) {
  return &x->classes[twl_class_of_node(x->c, node)->number];
}

static class_choice_t *choice_of(chooser_t *x, MlirValue value) {
  return &x->classes[twl_class_of(x->c, value)->number];
}

static bool add_candidate(chooser_t *x, class_choice_t *k, const tw_layout_t *layout, const char *kind) {
  if (k->forced)
    return false;
  int number = number_of(x, layout);
  for (int i = 0; i < k->count; i++)
    if (k->layout[i] == number)
      return false;
  if (k->count == TW_MAX_CHOICES) {
    k->has_more = true;
    return false;
  }
  k->kind[k->count] = kind;
  k->layout[k->count++] = number;
  return true;
}

static bool is_promoted(const twl_classes_t *c, MlirOperation op) {
  return tw_map_get(&c->promoted, op.ptr, NULL) != NULL;
}

bool twl_is_copied_gather(const twl_classes_t *c, MlirOperation op) { return tw_op_gathers(op) && is_promoted(c, op); }

/* Every thread has whole pieces, as long as the indices allow: of one element where they tell of no neighbours. */
tw_layout_t twl_copy_layout(const twl_classes_t *c, MlirOperation gather) {
  int64_t shape[TW_LAYOUT_MAX_RANK];
  int rank = tw_tile_shape(mlirValueGetType(mlirOperationGetResult(gather, 0)), shape), order[TW_LAYOUT_MAX_RANK];
  int neighbours, bits = tw_gather_vector_bits(gather, &neighbours), contiguous = tw_contiguous_axis(gather), n = 1;
  order[0] = contiguous;
  for (int d = rank - 1; d >= 0; d--)
    if (d != contiguous)
      order[n++] = d;
  return tw_layout_coalesced(rank, shape, 1 << bits, c->num_warps, order);
}

/* The only candidate, if another one has not been that before. */
static void force(chooser_t *x, MlirValue value, const tw_layout_t *layout, const char *kind) {
  class_choice_t *k = choice_of(x, value);
  (void)add_candidate(x, k, layout, kind);
  k->forced = true;
}

/* Whether a thread has registers for an operand. Multiply-adds want rows and columns whole, each in many lanes. */
static bool can_hold(MlirOperation mma, int operand, const tw_layout_t *layout) {
  int words = tw_layout_own_registers(layout) * element_bits(mlirOperationGetOperand(mma, operand)) / WORD_BITS;
  return words <= tw_register_budget(mma, TW_BUDGET_HELD_OPERANDS);
}

/* Loads behind an operand will go through shared memory, where arithmetic on them finds them in its layout. */
static void add_loads(chooser_t *x, MlirOperation mma, int operand, const tw_layout_t *layout) {
  MlirValue value = mlirOperationGetOperand(mma, operand);
  if (!twl_has_class(value) || !can_hold(mma, operand, layout))
    return;
  tw_ops_t loads = tw_loads_behind(mma, operand);
  for (int i = 0; i < loads.count; i++)
    tw_map_set(&x->c->promoted, loads.at[i].ptr, 0, NULL);
  if (loads.count > 0)
    force(x, value, layout, "operand");
  tw_ops_free(&loads);
}

/* Accumulators, then copies, then what is computed from copies: what the first suggest must not decide on others. */
static void add_products(chooser_t *x) {
  twl_classes_t *c = x->c;
  for (size_t i = 0; i < c->num_ops; i++) {
    if (!tw_op_is_product(c->ops[i]))
      continue;
    tw_mma_plan_t plan = tw_mma_plan(c->ops[i], c->num_warps);
    force(x, mlirOperationGetResult(c->ops[i], 0), &plan.acc, "product");
    for (int o = 0; o < 2; o++) {
      MlirOperation load = tw_load_behind(mlirOperationGetOperand(c->ops[i], o));
      if (mlirOperationIsNull(load) || !tw_promotes(load))
        continue;
      tw_map_set(&c->promoted, load.ptr, 0, NULL);
      if (tw_op_gathers(load)) {
        tw_layout_t copied = twl_copy_layout(c, load);
        force(x, mlirOperationGetResult(load, 0), &copied, "copy");
      }
    }
  }
  for (size_t i = 0; i < c->num_ops; i++)
    if (tw_op_is_product(c->ops[i])) {
      tw_mma_plan_t plan = tw_mma_plan(c->ops[i], c->num_warps);
      add_loads(x, c->ops[i], 0, &plan.lhs);
      add_loads(x, c->ops[i], 1, &plan.rhs);
    }
}

/* Whether an operand of a product comes out of shared memory, so that the layouts on the way do not matter. */
static bool is_in_memory(const chooser_t *x, MlirOperation mma, int o) {
  MlirOperation load = o < 2 ? tw_load_behind(mlirOperationGetOperand(mma, o)) : tw_null_op();
  return !mlirOperationIsNull(load) && is_promoted(x->c, load);
}

/* The operands of products that registers hold. */
static void add_operands(chooser_t *x) {
  twl_classes_t *c = x->c;
  for (size_t i = 0; i < c->num_ops; i++)
    for (int o = 0; tw_op_is_product(c->ops[i]) && o < 2; o++) {
      MlirValue value = mlirOperationGetOperand(c->ops[i], o);
      if (is_in_memory(x, c->ops[i], o) || !twl_has_class(value) || !twl_needs_operand_layout(c->ops[i], o))
        continue;
      tw_mma_plan_t plan = tw_mma_plan(c->ops[i], c->num_warps);
      (void)add_candidate(x, choice_of(x, value), o == 0 ? &plan.lhs : &plan.rhs, "operand");
    }
}

/* The largest access first, among equals the one with the longest vectors, then the first. */
static bool is_before(const access_t *a, const access_t *b) {
  return a->bits > b->bits || (a->bits == b->bits && a->wish.vector_bits > b->wish.vector_bits);
}

static void sort_accesses(chooser_t *x) {
  for (size_t i = 0; i < x->c->num_ops; i++) {
    MlirValue value = twl_accessed(x->c->ops[i]);
    if (value.ptr == NULL || !twl_has_class(value))
      continue;
    access_t a = access_of(x->c, x->c->ops[i]);
    int at = x->num_accesses++;
    for (; at > 0 && is_before(&a, &x->accesses[at - 1]); at--)
      x->accesses[at] = x->accesses[at - 1];
    x->accesses[at] = a;
  }
}

/* Candidates go on along edges, until nothing is new. */
static void propagate(chooser_t *x) {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < x->c->num_edges; i++) {
      const twl_edge_t *edge = &x->c->edges[i];
      class_choice_t *from = choice_of_node(x, edge->from), *to = choice_of_node(x, edge->to);
      for (int k = 0; k < from->count && !to->forced && !to->has_more; k++) {
        tw_layout_t have = candidate(x, from, k), l = twl_forward(edge->op, &have);
        changed |= add_candidate(x, to, &l, from->kind[k]);
      }
      for (int k = 0; k < to->count && !from->forced && !from->has_more; k++) {
        if (tw_op_form(edge->op) == TW_FORM_REDUCTION)
          break;
        tw_layout_t have = candidate(x, to, k), l = twl_backward(edge->op, &have);
        changed |= add_candidate(x, from, &l, to->kind[k]);
      }
    }
  }
}

/* Layouts that are seldom better, but may be: narrower vectors, warps along the other dimensions. */
static void add_variants(chooser_t *x, const access_t *a) {
  enum { WORD_BITS = 32 };
  tw_wish_t wish = a->wish;
  uint32_t reduced = reduced_axes(x->c, a->value);
  tw_layout_t l = blocked(x->c, a->value, ~reduced, wish);
  (void)add_candidate(x, choice_of(x, a->value), &l, "across");
  int word = tw_log2(WORD_BITS / element_bits(a->value));
  if (a->row && wish.vector_bits < word) { /* other tiles have vectors then, and lanes other banks still */
    wish.vector_bits = word;
    l = blocked(x->c, a->value, reduced, wish);
    (void)add_candidate(x, choice_of(x, a->value), &l, "words");
    return;
  }
  if (wish.vector_bits-- == 0)
    return;
  l = blocked(x->c, a->value, reduced, wish);
  (void)add_candidate(x, choice_of(x, a->value), &l, "narrow");
}

/* How many lanes fewer, as log2, would lie along the contiguous dimension if they brought no more than a line of the
 * cache at a time, and each had more elements of it; 0 where others have no room for them. */
static int deep_bits(const chooser_t *x, const access_t *a) {
  int64_t shape[TW_LAYOUT_MAX_RANK];
  const tw_wish_t *wish = &a->wish;
  int rank = tw_tile_shape(mlirValueGetType(a->value), shape), bits = 0;
  for (int d = 0; d < rank; d++)
    bits += tw_log2(shape[d]);
  int spare = bits - TW_WARP_LANE_BITS - tw_log2(x->c->num_warps) - wish->vector_bits;
  int along = tw_log2(shape[wish->contiguous]) - wish->vector_bits, others = bits - wish->vector_bits - along;
  int line = tw_log2(TW_LINE_BITS / element_bits(a->value)) - wish->vector_bits;
  along = along < TW_WARP_LANE_BITS ? along : TW_WARP_LANE_BITS;
  int deep = spare < along - line ? spare : along - line;
  return deep > 0 && others >= TW_WARP_LANE_BITS - along + deep ? deep : 0;
}

/* Where the contiguous dimension is reduced, a thread adds up more of it before lanes do, and what is divided by the
 * sum has one divisor. */
static void add_deep(chooser_t *x, const access_t *a) {
  tw_wish_t wish = a->wish;
  uint32_t reduced = reduced_axes(x->c, a->value);
  if (wish.contiguous < 0 || (reduced >> wish.contiguous & 1) == 0)
    return;
  wish.deep_bits = deep_bits(x, a);
  if (wish.deep_bits == 0)
    return;
  tw_layout_t l = blocked(x->c, a->value, reduced, wish);
  (void)add_candidate(x, choice_of(x, a->value), &l, "deep");
}

static void find_candidates(chooser_t *x) {
  twl_classes_t *c = x->c;
  for (int i = 0; i < c->sets.count; i++) {
    class_choice_t *k = choice_of_node(x, i);
    if (k->value.ptr == NULL)
      k->value = c->nodes[i].value;
  }
  add_products(x);
  propagate(x); /* accumulators first: among equals, conversions stand at loads and stores */
  sort_accesses(x);
  for (int i = 0; i < x->num_accesses; i++)
    for (int k = 0; k < x->accesses[i].count; k++)
      (void)add_candidate(x, choice_of(x, x->accesses[i].value), &x->accesses[i].own[k],
                          k + 1 < x->accesses[i].count ? "patch" : "access");
  for (int i = 0; i < x->num_accesses; i++)
    add_deep(x, &x->accesses[i]);
  add_operands(x);
  propagate(x);
  for (int i = 0; i < c->num_classes; i++)
    if (x->classes[i].count == 0) {
      tw_layout_t l = twl_default_layout(c, x->classes[i].value);
      (void)add_candidate(x, &x->classes[i], &l, "plain");
      propagate(x);
    }
  for (int i = 0; i < x->num_accesses; i++)
    if (!is_promoted(x->c, x->accesses[i].op))
      add_variants(x, &x->accesses[i]);
  propagate(x);
}

/* ---- what the program asks for ------------------------------------------------------------------------ */

static twl_choices_t choices_of(const chooser_t *x, const class_choice_t *k) {
  twl_choices_t choices = {.count = k->count};
  for (int i = 0; i < k->count; i++)
    choices.at[i] = (twl_choice_t){candidate(x, k, i), k->kind[i], k->slots[i]};
  return choices;
}

/* Bits of the program's own are one choice more; where there are as many as are compared, in the place of the last. */
static int add_given(chooser_t *x, class_choice_t *k, const tw_layout_t *layout) {
  if (k->forced)
    return -1;
  if (k->count == TW_MAX_CHOICES)
    k->count--;
  (void)add_candidate(x, k, layout, "given");
  return k->count - 1;
}

typedef struct asking {
  chooser_t *x;
  MlirOperation function;
  bool is_good;
} asking_t;

static bool refuse(asking_t *a, MlirStringRef tile, MlirStringRef text, const class_choice_t *k, const char *why) {
  char labels[TW_MAX_CHOICES * TWL_MAX_LABEL];
  twl_choices_t choices = choices_of(a->x, k);
  twl_labels(&choices, sizeof labels, labels);
  tw_op_does_not_fit(a->function, TW_REFUSED_HINT,
                     "kernel asks for layout(%.*s)=%.*s, which is no value of this axis: %s; it has %s",
                     (int)tile.length, tile.data, (int)text.length, text.data, why, labels);
  return false;
}

static bool ask_class(asking_t *a, class_choice_t *k, MlirStringRef tile, MlirStringRef text) {
  twl_choices_t choices = choices_of(a->x, k);
  tw_layout_t bits;
  const char *why;
  int found = twl_choice_named(&choices, text);
  if (found < 0 && !twl_read_bits(text, &choices.at[0].layout, &bits, &why))
    return refuse(a, tile, text, k, why);
  if (found < 0 && (found = add_given(a->x, k, &bits)) < 0)
    return refuse(a, tile, text, k, "the product decides it");
  if (k->asked && k->wanted != found)
    return refuse(a, tile, text, k, "another tile of this layout asks for another one");
  k->asked = true;
  k->wanted = found;
  return true;
}

static bool ask(void *user, MlirStringRef tile, MlirStringRef text) {
  asking_t *a = user;
  twl_classes_t *c = a->x->c;
  bool any = false;
  for (int i = 0; i < c->sets.count && a->is_good; i++) {
    MlirStringRef name = tw_tile_name(c->nodes[i].value);
    if (name.length != tile.length || memcmp(name.data, tile.data, name.length) != 0)
      continue;
    any = true;
    a->is_good = ask_class(a, choice_of_node(a->x, i), tile, text);
  }
  if (!any) {
    tw_op_does_not_fit(a->function, TW_REFUSED_HINT,
                       "kernel asks for layout(%.*s), an axis that it does not have: threads hold no such tile",
                       (int)tile.length, tile.data);
    a->is_good = false;
  }
  return a->is_good;
}

/* Whether a tile with the name is loaded into shared memory. */
static bool is_loaded_into_buffer(const twl_classes_t *c, MlirStringRef tile) {
  bool found = false;
  for (size_t i = 0; i < c->num_ops && !found; i++) {
    MlirStringRef name = is_promoted(c, c->ops[i]) ? tw_tile_name(mlirOperationGetResult(c->ops[i], 0)) : tw_str("");
    found = name.length == tile.length && memcmp(name.data, tile.data, name.length) == 0;
  }
  return found;
}

static bool check_swizzle(void *user, MlirStringRef tile, MlirStringRef text) {
  const asking_t *a = user;
  bool there = is_loaded_into_buffer(a->x->c, tile);
  if (there && tw_swizzle_bytes(text) > 0)
    return true;
  tw_op_does_not_fit(a->function, TW_REFUSED_HINT, "kernel asks for swizzle(%.*s)=%.*s, %s", (int)tile.length,
                     tile.data, (int)text.length, text.data,
                     there ? "which is no value of this axis; it has 32, 64, 128"
                           : "an axis that it does not have: no such tile is loaded into shared memory for a product");
  return false;
}

static bool ask_for_hints(chooser_t *x, MlirOperation function) {
  asking_t a = {x, function, true};
  return tw_each_tile_hint(function, "layout", ask, &a) && tw_each_tile_hint(function, "swizzle", check_swizzle, &a);
}

/* What the program does not ask for costs more than anything else. */
static const int64_t NEVER = INT64_C(1) << 48;

static void exclude_others(chooser_t *x) {
  for (int i = 0; i < x->c->num_classes; i++) {
    const class_choice_t *k = &x->classes[i];
    for (int c = 0; k->asked && k->variable >= 0 && c < k->count; c++)
      x->cost[k->variable][c] += c == k->wanted ? 0 : NEVER;
  }
}

/* ---- the graph ------------------------------------------------------------------------------------- */

static void add_cost(chooser_t *x, const class_choice_t *k, int choice, int64_t slots) {
  if (k->variable < 0)
    x->fixed += slots;
  else
    x->cost[k->variable][choice] += slots;
}

/* What an op costs by itself, in the layout of the class of its tiles. */
static int64_t slots_of(chooser_t *x, MlirOperation op, const tw_layout_t *l) {
  if (twl_is_elementwise(op))
    return (int64_t)tw_layout_own_registers(l) *
           (tw_op_class(op) == TW_CLASS_FUNCTION ? x->c->target.machine->function_slots : 1);
  return tw_op_combines(op) ? reduction_slots(x->c, op, l) : 0;
}

static void add_op(chooser_t *x, MlirOperation op) {
  bool reduces = tw_op_combines(op);
  MlirValue value = reduces ? twl_reduced(op) : twl_representative(op);
  if ((!reduces && !twl_is_elementwise(op)) || value.ptr == NULL || !twl_has_class(value))
    return;
  const class_choice_t *k = choice_of(x, value);
  int64_t trips = trips_of(op);
  for (int i = 0; i < k->count; i++) {
    tw_layout_t l = candidate(x, k, i);
    add_cost(x, k, i, trips * slots_of(x, op, &l));
  }
}

static void add_access(chooser_t *x, const access_t *a) {
  const class_choice_t *k = choice_of(x, a->value);
  int64_t trips = trips_of(a->op);
  for (int i = 0; i < k->count && !is_promoted(x->c, a->op); i++) {
    tw_layout_t l = candidate(x, k, i), best;
    add_cost(x, k, i, trips * best_access(x->c->target.machine, a, &l, &best));
  }
}

/* What a product makes of an operand that has the layout. */
static int64_t operand_slots(chooser_t *x, MlirOperation mma, int o, const tw_layout_t *layout) {
  MlirValue value = mlirOperationGetOperand(mma, o);
  int bits = element_bits(value);
  tw_layout_t buffer;
  if (is_in_memory(x, mma, o))
    return 0;
  if (!twl_needs_operand_layout(mma, o))
    return tw_layout_of_type(tw_async_mma_of(mma)->written(mma, o, x->c->num_warps).buffer, &buffer)
               ? tw_shared_access_slots(x->c->target.machine, &buffer, layout, bits)
               : 0;
  tw_mma_plan_t plan = tw_mma_plan(mma, x->c->num_warps);
  return conversion_slots(x, layout, o == 0 ? &plan.lhs : o == 1 ? &plan.rhs : &plan.acc, bits);
}

static void add_product(chooser_t *x, MlirOperation mma) {
  MlirValue result = mlirOperationGetResult(mma, 0);
  int64_t trips = trips_of(mma);
  for (int o = 0; o < 3; o++) {
    MlirValue value = mlirOperationGetOperand(mma, o);
    const class_choice_t *k = twl_has_class(value) ? choice_of(x, value) : NULL;
    for (int i = 0; k != NULL && i < k->count; i++) {
      tw_layout_t l = candidate(x, k, i);
      add_cost(x, k, i, trips * operand_slots(x, mma, o, &l));
    }
  }
  tw_mma_plan_t plan = tw_mma_plan(mma, x->c->num_warps);
  const class_choice_t *k = choice_of(x, result);
  tw_layout_t l = candidate(x, k, 0); /* its only one */
  add_cost(x, k, 0, trips * conversion_slots(x, &plan.acc, &l, element_bits(result)));
}

/* Between the classes of an edge's operand and result. */
static int64_t edge_slots(chooser_t *x, MlirOperation op, const tw_layout_t *from, const tw_layout_t *to) {
  if (tw_op_form(op) == TW_FORM_REDUCTION) {
    tw_layout_t taken = twl_reduction_layout(x->c, op, from), made = twl_forward(op, &taken);
    return conversion_slots(x, &made, to, element_bits(mlirOperationGetResult(op, 0)));
  }
  tw_layout_t wanted = twl_backward(op, to);
  return conversion_slots(x, from, &wanted, element_bits(mlirOperationGetOperand(op, 0)));
}

static void add_edge(chooser_t *x, const twl_edge_t *edge) {
  const class_choice_t *from = choice_of_node(x, edge->from), *to = choice_of_node(x, edge->to);
  int64_t trips = trips_of(edge->op);
  tw_pair_cost_t *pair = &x->pairs[x->graph.num_pairs];
  bool joins = from->variable >= 0 && to->variable >= 0 && from != to;
  if (joins) {
    *pair = (tw_pair_cost_t){.at = {from->variable, to->variable}};
    x->graph.num_pairs++;
  }
  for (int i = 0; i < from->count; i++)
    for (int k = 0; k < to->count; k++) {
      if (from == to && i != k)
        continue;
      tw_layout_t have = candidate(x, from, i), want = candidate(x, to, k);
      int64_t slots = trips * edge_slots(x, edge->op, &have, &want);
      if (joins)
        pair->cost[i][k] = slots;
      else
        add_cost(x, from->variable >= 0 ? from : to, from->variable >= 0 ? i : k, slots);
    }
}

static void build_graph(chooser_t *x) {
  twl_classes_t *c = x->c;
  size_t n = (size_t)c->num_classes;
  int count = 0;
  x->class_of_variable = tw_allocate(n, sizeof(int));
  x->num_choices = tw_allocate(n, sizeof(int));
  x->cost = tw_allocate(n, sizeof *x->cost);
  x->pairs = tw_allocate(c->num_edges, sizeof *x->pairs);
  for (int i = 0; i < c->num_classes; i++) {
    x->classes[i].variable = x->classes[i].count > 1 ? count : -1;
    if (x->classes[i].count > 1) {
      x->num_choices[count] = x->classes[i].count;
      x->class_of_variable[count++] = i;
    }
  }
  for (size_t i = 0; i < c->num_ops; i++)
    if (tw_op_is_product(c->ops[i]))
      add_product(x, c->ops[i]);
    else
      add_op(x, c->ops[i]);
  for (int i = 0; i < x->num_accesses; i++)
    add_access(x, &x->accesses[i]);
  for (size_t i = 0; i < c->num_edges; i++)
    add_edge(x, &c->edges[i]);
  x->graph = (tw_choice_graph_t){count, x->graph.num_pairs, x->num_choices, (const int64_t (*)[TW_MAX_CHOICES])x->cost,
                                 x->pairs};
}

/* ---- the best, and the next ---------------------------------------------------------------------------- */

typedef struct ranking {
  runner_up_t at[MAX_RUNNERS_UP];
  int count;
} ranking_t;

/* Keeps the cheapest, in order; among equals the first. */
static void insert(ranking_t *ranking, runner_up_t r, size_t size) {
  for (int i = 0; i < ranking->count; i++)
    if (memcmp(ranking->at[i].chosen, r.chosen, size) == 0)
      return;
  int at = ranking->count;
  if (at == MAX_RUNNERS_UP) {
    if (r.slots >= ranking->at[--at].slots)
      return;
    free(ranking->at[at].chosen);
  }
  r.chosen = memcpy(tw_allocate(1, size), r.chosen, size);
  ranking->count = at + 1;
  for (; at > 0 && ranking->at[at - 1].slots > r.slots; at--)
    ranking->at[at] = ranking->at[at - 1];
  ranking->at[at] = r;
}

typedef struct alternatives {
  chooser_t *x;
  const int *best;
  int64_t slots;
  ranking_t ranking;
} alternatives_t;

static void consider(void *user, int v, int i, int64_t cost, const int *chosen) {
  alternatives_t *f = user;
  chooser_t *x = f->x;
  if (i == f->best[v])
    return;
  runner_up_t r = {.slots = cost + x->fixed, .variable = v, .choice = i, .chosen = (int *)chosen};
  x->classes[x->class_of_variable[v]].slots[i] = r.slots % NEVER;
  if (r.slots * 100 <= f->slots * (100 + WITHIN_PERCENT))
    insert(&f->ranking, r, (size_t)x->graph.num_variables * sizeof(int));
}

/* Each choice that is not the best of its variable, with what then is best for all others. */
static ranking_t find_runners_up(chooser_t *x, const int *best, int64_t slots) {
  alternatives_t f = {x, best, slots, {.count = 0}};
  tw_least_costs(&x->graph, consider, &f);
  return f.ranking;
}

static void remark_runner_up(const chooser_t *x, MlirOperation function, int place, const runner_up_t *r) {
  enum { MOST_TEXT = 300 };
  const class_choice_t *k = &x->classes[x->class_of_variable[r->variable]];
  MlirOperation def = tw_def(k->value);
  tw_layout_t layout = candidate(x, k, r->choice);
  char tile[160], text[MOST_TEXT];
  tw_describe_tile(mlirValueGetType(k->value), sizeof tile, tile);
  bool whole = tw_layout_print(&layout, text, sizeof text) <= sizeof text;
  tw_op_remark(mlirOperationIsNull(def) ? function : def,
               "could have another layout, which makes it %lld slots (layout_rank=%d): %s with %s%s",
               (long long)r->slots, place, tile, text, whole ? "" : "...");
}

static void tell_limits(const chooser_t *x, MlirOperation function, bool least) {
  int more = 0;
  for (int i = 0; i < x->c->num_classes; i++)
    more += x->classes[i].has_more && !x->classes[i].forced;
  if (more > 0)
    tw_op_remark(function, "compares %d layouts for each tile; %d groups of tiles have more, which may be better",
                 TW_MAX_CHOICES, more);
  if (!least)
    tw_op_remark(function, "has too many combinations of layouts to try all: others may be better");
}

static void tell(const chooser_t *x, MlirOperation function, int64_t slots, const ranking_t *ranking) {
  int count = ranking->count;
  int64_t all[1 + MAX_RUNNERS_UP] = {slots};
  for (int i = 0; i < count; i++)
    all[i + 1] = ranking->at[i].slots;
  tw_set_attr(function, TW_LAYOUT_COSTS, mlirDenseI64ArrayGet(x->c->context, 1 + count, all));
  if (count > 0)
    tw_op_remark(function,
                 "has layouts that cost an estimated %lld issue slots of a warp; others come within "
                 "%d %% of that, up to layout_rank=%d",
                 (long long)slots, WITHIN_PERCENT, count);
  else
    tw_op_remark(
        function,
        "has layouts that cost an estimated %lld issue slots of a warp; no other choice comes within %d %% of that",
        (long long)slots, WITHIN_PERCENT);
  for (int i = 0; i < count && i < MAX_TOLD; i++)
    remark_runner_up(x, function, i + 1, &ranking->at[i]);
  int64_t wanted = tw_hint_layout_rank(function, 0);
  if (wanted > count)
    tw_op_remark(function, "has no layout_rank %lld: the best is taken", (long long)wanted);
}

/* The names of the tiles of a class, each once. */
static MlirAttribute names_of(const chooser_t *x, int number) {
  enum { MOST_NAMES = 32 };
  MlirAttribute names[MOST_NAMES];
  intptr_t count = 0;
  for (int i = 0; i < x->c->sets.count && count < MOST_NAMES; i++) {
    MlirStringRef name = tw_tile_name(x->c->nodes[i].value);
    if (name.length == 0 || twl_class_of_node(x->c, i)->number != number)
      continue;
    MlirAttribute text = mlirStringAttrGet(x->c->context, name);
    bool known = false;
    for (intptr_t n = 0; n < count; n++)
      known |= mlirAttributeEqual(names[n], text);
    if (!known)
      names[count++] = text;
  }
  return mlirArrayAttrGet(x->c->context, count, names);
}

/* Writes down what each tile with a name could have: tile.layouts. */
static void write_choices(const chooser_t *x, MlirOperation function, const int *taken, int64_t slots) {
  intptr_t count = 0;
  MlirAttribute *entries = tw_allocate((size_t)x->c->num_classes, sizeof *entries);
  for (int i = 0; i < x->c->num_classes; i++) {
    const class_choice_t *k = &x->classes[i];
    MlirAttribute names = names_of(x, i);
    if (mlirArrayAttrGetNumElements(names) == 0)
      continue;
    twl_choices_t choices = choices_of(x, k);
    choices.taken = k->variable >= 0 ? taken[k->variable] : 0;
    for (int n = 0; n < choices.count; n++) /* the best of each, which no search has looked for */
      choices.at[n].slots = choices.at[n].slots == 0 ? slots : choices.at[n].slots;
    entries[count++] = twl_choices_attribute(names, mlirValueGetType(k->value), &choices);
  }
  if (count > 0)
    tw_set_attr(function, TW_LAYOUTS, mlirArrayAttrGet(x->c->context, count, entries));
  free(entries);
}

static void free_chooser(chooser_t *x) {
  free(x->classes);
  free(x->accesses);
  free(x->layouts);
  free(x->hashes);
  free(x->known);
  free(x->class_of_variable);
  free(x->num_choices);
  free(x->cost);
  free(x->pairs);
}

/* The minimum, or the runner-up that is asked for, goes to the classes. */
static void decide(chooser_t *x, MlirOperation function) {
  twl_classes_t *c = x->c;
  int *chosen = tw_allocate((size_t)x->graph.num_variables, sizeof *chosen);
  int64_t wanted = tw_hint_layout_rank(function, 0);
  bool least;
  int64_t slots = tw_least_cost(&x->graph, chosen, &least) + x->fixed;
  tell_limits(x, function, least);
  ranking_t ranking = find_runners_up(x, chosen, slots);
  tell(x, function, slots, &ranking);
  const int *taken = wanted > 0 && wanted <= ranking.count ? ranking.at[wanted - 1].chosen : chosen;
  write_choices(x, function, taken, slots);
  for (int i = 0; i < c->sets.count; i++)
    if (tw_sets_find(&c->sets, i) == i) {
      const class_choice_t *k = choice_of_node(x, i);
      c->nodes[i].layout = candidate(x, k, k->variable >= 0 ? taken[k->variable] : 0);
    }
  for (int i = 0; i < ranking.count; i++)
    free(ranking.at[i].chosen);
  free(chosen);
}

bool twl_choose(twl_classes_t *c, MlirOperation function) {
  chooser_t x = {.c = c,
                 .layouts = tw_allocate(1, sizeof(tw_layout_t)),
                 .hashes = tw_allocate(1, sizeof(uint64_t)),
                 .classes = tw_allocate((size_t)c->num_classes, sizeof(class_choice_t)),
                 .accesses = tw_allocate(c->num_ops, sizeof(access_t)),
                 .known = tw_allocate(MEMO_SLOTS, sizeof(known_t))};
  find_candidates(&x);
  bool good = ask_for_hints(&x, function);
  if (good) {
    build_graph(&x);
    exclude_others(&x);
    decide(&x, function);
  }
  free_chooser(&x);
  return good;
}
