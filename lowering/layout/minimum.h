/* minimum.h - the choices of least cost in a graph: one of a few for each variable, with a cost for each choice and for
 * each pair of choices of two variables
 *
 *   cost(chosen) = sum of cost[v][chosen[v]] + sum over pairs of cost[chosen[at[0]]][chosen[at[1]]]
 *
 * Pure C, no MLIR. Costs are integers, so that the answer is the same everywhere. */
#ifndef TW_LOWERING_MINIMUM_H
#define TW_LOWERING_MINIMUM_H

#include <stdbool.h>
#include <stdint.h>

enum { TW_MAX_CHOICES = 8 };

typedef struct tw_pair_cost {
  int at[2]; /* two different variables */
  int64_t cost[TW_MAX_CHOICES][TW_MAX_CHOICES];
} tw_pair_cost_t;

/* Several pairs may join the same two variables. */
typedef struct tw_choice_graph {
  int num_variables, num_pairs;
  const int *num_choices; /* of each variable: 1 to TW_MAX_CHOICES */
  const int64_t (*cost)[TW_MAX_CHOICES];
  const tw_pair_cost_t *pairs;
} tw_choice_graph_t;

/* Fills `chosen` and returns its cost. Between equal costs the lower choice of a variable is taken.
 *
 * Variables with at most two neighbours are eliminated: what they cost at best becomes a cost of the pair of
 * neighbours. That is exact, and all there is to do in trees, rings and whatever else is made of series and parallels.
 * Where every variable has three neighbours or more, each choice of the one with the most is tried; when that has been
 * done TW_MAX_TRIALS times, only its most promising one. `out_least`: that did not happen, so the result is the
 * minimum. */
enum { TW_MAX_TRIALS = 256 };
int64_t tw_least_cost(const tw_choice_graph_t *graph, int *chosen, bool *out_least);

/* For each choice of each variable, both counting up, the least cost with it, and the choices of all variables there:
 * as tw_least_cost in a graph whose variable has that choice alone. Both halves of the variables share the elimination
 * of the other half, and so their halves, which takes time by n log n eliminations, not n * n. */
typedef void tw_least_cost_visitor_t(void *user, int variable, int choice, int64_t cost, const int *chosen);
void tw_least_costs(const tw_choice_graph_t *graph, tw_least_cost_visitor_t *visit, void *user);

#endif
