/* Property tests of the choices of least cost: every answer against an exhaustive search of a small random graph, and
 * large graphs against what they are known to cost. */
#include "check.h"
#include "lowering/layout/minimum.h"
#include "random.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_VARIABLES = 40, MAX_PAIRS = 200 };

static int num_choices[MAX_VARIABLES];
static int64_t costs[MAX_VARIABLES][TW_MAX_CHOICES];
static tw_pair_cost_t pairs[MAX_PAIRS];
static tw_choice_graph_t graph = {0, 0, num_choices, costs, pairs};

static void add_variable(int choices) {
  num_choices[graph.num_variables] = choices;
  for (int i = 0; i < TW_MAX_CHOICES; i++)
    costs[graph.num_variables][i] = random_below(20);
  graph.num_variables++;
}

static void add_pair(int u, int v) {
  tw_pair_cost_t *pair = &pairs[graph.num_pairs++];
  pair->at[0] = u;
  pair->at[1] = v;
  for (int i = 0; i < TW_MAX_CHOICES; i++)
    for (int j = 0; j < TW_MAX_CHOICES; j++)
      pair->cost[i][j] = random_below(3) ? random_below(30) : 0;
}

static void clear(void) { graph.num_variables = graph.num_pairs = 0; }

static int64_t cost_of(const tw_choice_graph_t *graph, const int *chosen) {
  int64_t sum = 0;
  for (int v = 0; v < graph->num_variables; v++)
    sum += graph->cost[v][chosen[v]];
  for (int p = 0; p < graph->num_pairs; p++) {
    const tw_pair_cost_t *pair = &graph->pairs[p];
    sum += pair->cost[chosen[pair->at[0]]][chosen[pair->at[1]]];
  }
  return sum;
}

/* The least cost of all combinations, counting up with the last variable fastest. */
static int64_t exhaustive(int fixed, int to) {
  int chosen[MAX_VARIABLES] = {0};
  int64_t least = INT64_MAX;
  for (;;) {
    int64_t cost = cost_of(&graph, chosen);
    if ((fixed < 0 || chosen[fixed] == to) && cost < least)
      least = cost;
    int v = graph.num_variables - 1;
    while (v >= 0 && ++chosen[v] == num_choices[v])
      chosen[v--] = 0;
    if (v < 0)
      return least;
  }
}

static bool all; /* combinations were tried */

/* Checks one of the choices of all variables, and counts them. */
static void check_one(void *user, int variable, int choice, int64_t cost, const int *chosen) {
  int *visits = user;
  CHECK(chosen[variable] == choice && cost == cost_of(&graph, chosen), "%d is %d: says what it costs", variable,
        choice);
  CHECK(cost == exhaustive(variable, choice), "%d is %d: %lld", variable, choice, (long long)cost);
  ++*visits;
}

static void check_each(const char *what) {
  int visits = 0, wanted = 0;
  for (int v = 0; v < graph.num_variables; v++)
    wanted += num_choices[v];
  tw_least_costs(&graph, check_one, &visits);
  CHECK(visits == wanted, "%s: %d of %d choices", what, visits, wanted);
}

static void check_graph(const char *what) {
  int chosen[MAX_VARIABLES];
  int64_t least = tw_least_cost(&graph, chosen, &all);
  CHECK(least == cost_of(&graph, chosen), "%s: says what it costs", what);
  CHECK(all && least == exhaustive(-1, 0), "%s: %lld", what, (long long)least);
}

/* Few variables, as many pairs as come: trees, rings, several pairs between two, complete graphs. */
static void test_small_graphs(void) {
  for (int round = 0; round < 600; round++) {
    clear();
    int n = 1 + random_below(6);
    for (int v = 0; v < n; v++)
      add_variable(1 + random_below(4));
    int wanted = n > 1 ? random_below(2 * n * n) : 0;
    for (int p = 0; p < wanted; p++) {
      int u = random_below(n), v = random_below(n);
      if (u != v)
        add_pair(u, v);
    }
    check_graph("random");
    check_each("random");
  }
}

static void test_all_choices(void) {
  for (int round = 0; round < 20; round++) {
    clear();
    for (int v = 0; v < 5; v++)
      add_variable(TW_MAX_CHOICES);
    for (int u = 0; u < 5; u++)
      for (int v = u + 1; v < 5; v++)
        add_pair(u, v);
    check_graph("complete");
  }
}

/* Long chains by the textbook's recurrence. */
static void test_chains(void) {
  for (int round = 0; round < 50; round++) {
    int chosen[MAX_VARIABLES];
    clear();
    for (int v = 0; v < MAX_VARIABLES; v++)
      add_variable(1 + random_below(TW_MAX_CHOICES));
    for (int v = 1; v < MAX_VARIABLES; v++)
      add_pair(v - 1, v);
    int64_t best[TW_MAX_CHOICES], next[TW_MAX_CHOICES], least = INT64_MAX;
    for (int i = 0; i < num_choices[0]; i++)
      best[i] = costs[0][i];
    for (int v = 1; v < MAX_VARIABLES; v++) {
      for (int j = 0; j < num_choices[v]; j++) {
        next[j] = INT64_MAX;
        for (int i = 0; i < num_choices[v - 1]; i++)
          if (best[i] + pairs[v - 1].cost[i][j] + costs[v][j] < next[j])
            next[j] = best[i] + pairs[v - 1].cost[i][j] + costs[v][j];
      }
      for (int j = 0; j < num_choices[v]; j++)
        best[j] = next[j];
    }
    for (int i = 0; i < num_choices[MAX_VARIABLES - 1]; i++)
      least = best[i] < least ? best[i] : least;
    int64_t found = tw_least_cost(&graph, chosen, &all);
    CHECK(found == least && found == cost_of(&graph, chosen), "%lld %lld", (long long)found, (long long)least);
  }
}

/* In a chain, each with what its last variable makes of it: the least of a variable's choices is the least of all. */
static void check_least(void *user, int variable, int choice, int64_t cost, const int *chosen) {
  int64_t *least = user;
  CHECK(chosen[variable] == choice && cost == cost_of(&graph, chosen), "%d is %d", variable, choice);
  least[variable] = choice == 0 || cost < least[variable] ? cost : least[variable];
}

static void test_each_choice_of_long_graphs(void) {
  for (int round = 0; round < 20; round++) {
    int chosen[MAX_VARIABLES];
    int64_t least[MAX_VARIABLES];
    clear();
    for (int v = 0; v < MAX_VARIABLES; v++)
      add_variable(1 + random_below(TW_MAX_CHOICES));
    for (int v = 1; v < MAX_VARIABLES; v++) {
      add_pair(v - 1, v);
      if (v > 2 && random_below(8) == 0)
        add_pair(random_below(v - 1), v);
    }
    int64_t found = tw_least_cost(&graph, chosen, &all);
    tw_least_costs(&graph, check_least, least);
    for (int v = 0; all && v < MAX_VARIABLES; v++)
      CHECK(least[v] == found, "variable %d: %lld %lld", v, (long long)least[v], (long long)found);
  }
}

/* Too entangled for a proof: an end, an honest cost, the same one each time. */
static void test_dense_graphs_end(void) {
  for (int round = 0; round < 3; round++) {
    int chosen[MAX_VARIABLES], again[MAX_VARIABLES];
    clear();
    for (int v = 0; v < 18; v++)
      add_variable(TW_MAX_CHOICES);
    for (int u = 0; u < 18; u++)
      for (int v = u + 1; v < 18; v++)
        add_pair(u, v);
    int64_t first = tw_least_cost(&graph, chosen, &all);
    CHECK(!all && first == cost_of(&graph, chosen), "%lld", (long long)first);
    CHECK(first == tw_least_cost(&graph, again, &all), "the same each time");
    int zeros[MAX_VARIABLES] = {0};
    CHECK(first <= cost_of(&graph, zeros), "%lld", (long long)first);
    for (int v = 0; v < 18; v++)
      CHECK(chosen[v] == again[v], "variable %d", v);
  }
}

/* Of equal costs the lower choice. */
static void test_ties(void) {
  int chosen[MAX_VARIABLES];
  clear();
  for (int v = 0; v < 4; v++)
    add_variable(3);
  for (int v = 0; v < 4; v++)
    for (int i = 0; i < TW_MAX_CHOICES; i++)
      costs[v][i] = 7;
  CHECK(tw_least_cost(&graph, chosen, &all) == 28, "sum");
  for (int v = 0; v < 4; v++)
    CHECK(chosen[v] == 0, "variable %d", v);
}

int main(void) {
  test_small_graphs();
  test_all_choices();
  test_chains();
  test_each_choice_of_long_graphs();
  test_dense_graphs_end();
  test_ties();
  if (failures)
    fprintf(stderr, "%d failures\n", failures);
  return failures != 0;
}
