/* minimum.c - choices of least cost in a graph. See minimum.h. */
#include "lowering/layout/minimum.h"

#include "base/memory.h"

#include <stdbool.h>
#include <string.h>

typedef int64_t row_t[TW_MAX_CHOICES];

/* A graph that is being taken apart: at most one pair between two variables, by a matrix of numbers of pairs. */
typedef struct solver {
  int n, num_pairs;
  int *name; /* the variable's number in the whole graph */
  int *num_choices;
  row_t *cost;
  int *pair;                      /* n x n: number of the pair + 1; 0: none */
  row_t (*table)[TW_MAX_CHOICES]; /* of a pair: [choice of the lower variable][choice of the higher one] */
  bool *gone;
  int *degree; /* pairs with variables that are left */
  struct minimum *search;
} solver_t;

/* What an eliminated variable chooses, by the choices of its neighbours. */
typedef struct answer {
  int variable, num, neighbour[2];
  unsigned char best[TW_MAX_CHOICES][TW_MAX_CHOICES];
} answer_t;

/* What all parts of a search share. */
typedef struct minimum {
  int num_variables;
  answer_t *answers; /* of all that is eliminated on the way here, by their numbers in the whole graph */
  int num_answers;
  int *chosen;
  int trials;
  bool cut; /* not all choices were tried */
} minimum_t;

static solver_t new_solver(int n, int pairs, minimum_t *search) {
  size_t all = (size_t)n * (size_t)n;
  return (solver_t){.n = n,
                    .name = tw_allocate((size_t)n, sizeof(int)),
                    .num_choices = tw_allocate((size_t)n, sizeof(int)),
                    .cost = tw_allocate((size_t)n, sizeof(row_t)),
                    .pair = tw_allocate(all, sizeof(int)),
                    .table = tw_allocate((size_t)pairs, TW_MAX_CHOICES * sizeof(row_t)),
                    .gone = tw_allocate((size_t)n, sizeof(bool)),
                    .degree = tw_allocate((size_t)n, sizeof(int)),
                    .search = search};
}

static void free_solver(solver_t *s) {
  free(s->name);
  free(s->num_choices);
  free(s->cost);
  free(s->pair);
  free(s->table);
  free(s->gone);
  free(s->degree);
}

static int *pair_of(const solver_t *s, int u, int v) { return &s->pair[u < v ? u * s->n + v : v * s->n + u]; }

static int64_t *entry(const solver_t *s, int u, int i, int v, int j) {
  int number = *pair_of(s, u, v) - 1;
  return u < v ? &s->table[number][i][j] : &s->table[number][j][i];
}

static bool are_joined(const solver_t *s, int u, int v) { return u != v && !s->gone[u] && *pair_of(s, u, v) != 0; }

/* A pair without cost yet; `number` is of one that is gone, or new. */
static void link_pair(solver_t *s, int u, int v, int number) {
  *pair_of(s, u, v) = number + 1;
  memset(s->table[number], 0, sizeof s->table[number]);
  s->degree[u]++;
  s->degree[v]++;
}

/* What is left of a graph. Eliminating a variable takes two pairs away before it adds one: copies need no more room. */
static solver_t clone_rest(const solver_t *s) {
  int n = 0, pairs = 0, *left = tw_allocate((size_t)s->n, sizeof *left);
  for (int v = 0; v < s->n; v++)
    if (!s->gone[v]) {
      left[n++] = v;
      pairs += s->degree[v];
    }
  solver_t t = new_solver(n, pairs / 2, s->search);
  for (int v = 0; v < n; v++) {
    t.name[v] = s->name[left[v]];
    t.num_choices[v] = s->num_choices[left[v]];
    memcpy(t.cost[v], s->cost[left[v]], sizeof *t.cost);
    for (int u = 0; u < v; u++)
      if (*pair_of(s, left[u], left[v]) != 0) {
        link_pair(&t, u, v, t.num_pairs);
        memcpy(t.table[t.num_pairs++], s->table[*pair_of(s, left[u], left[v]) - 1], sizeof *t.table);
      }
  }
  free(left);
  return t;
}

static void leave(solver_t *s, int v) {
  s->gone[v] = true;
  for (int u = 0; u < s->n; u++)
    s->degree[u] -= are_joined(s, u, v);
}

/* Variable v makes choice i: its costs go to the neighbours. */
static void settle(solver_t *s, int v, int i) {
  for (int u = 0; u < s->n; u++)
    if (are_joined(s, u, v))
      for (int j = 0; j < s->num_choices[u]; j++)
        s->cost[u][j] += *entry(s, v, i, u, j);
  leave(s, v);
}

/* The best choice of v where its neighbours choose x and y. */
static int64_t best_of(const solver_t *s, const answer_t *a, int x, int y, unsigned char *best) {
  int64_t least = INT64_MAX;
  for (int i = 0; i < s->num_choices[a->variable]; i++) {
    int64_t cost = s->cost[a->variable][i];
    cost += a->num > 0 ? *entry(s, a->variable, i, a->neighbour[0], x) : 0;
    cost += a->num > 1 ? *entry(s, a->variable, i, a->neighbour[1], y) : 0;
    if (cost < least) {
      least = cost;
      *best = (unsigned char)i;
    }
  }
  return least;
}

/* Takes a variable with at most two neighbours away. */
static void eliminate(solver_t *s, answer_t *a) {
  int v = a->variable, x_count = a->num > 0 ? s->num_choices[a->neighbour[0]] : 1;
  int y_count = a->num > 1 ? s->num_choices[a->neighbour[1]] : 1;
  row_t found[TW_MAX_CHOICES];
  for (int x = 0; x < x_count; x++)
    for (int y = 0; y < y_count; y++)
      found[x][y] = best_of(s, a, x, y, &a->best[x][y]);
  leave(s, v);
  if (a->num == 1)
    for (int x = 0; x < x_count; x++)
      s->cost[a->neighbour[0]][x] += found[x][0];
  if (a->num < 2)
    return;
  int free_pair = *pair_of(s, v, a->neighbour[0]) - 1;
  if (*pair_of(s, a->neighbour[0], a->neighbour[1]) == 0)
    link_pair(s, a->neighbour[0], a->neighbour[1], free_pair);
  for (int x = 0; x < x_count; x++)
    for (int y = 0; y < y_count; y++)
      *entry(s, a->neighbour[0], x, a->neighbour[1], y) += found[x][y];
}

/* Of the variables that are left, those from `low` to `high` aside, the one with the fewest (most: the most)
 * neighbours, the first among equals; -1: none is left. */
static int pick(const solver_t *s, int low, int high, bool most, int *degree) {
  int best = -1;
  for (int v = 0; v < s->n; v++) {
    if (s->gone[v] || (low <= s->name[v] && s->name[v] < high))
      continue;
    int count = s->num_choices[v] == 1 ? 0 : s->degree[v];
    if (best < 0 || (most ? count > *degree : count < *degree)) {
      best = v;
      *degree = count;
    }
  }
  return best;
}

/* A variable with one choice, or at most two neighbours, is answered. What it costs by itself. */
static int64_t answer(solver_t *s, int v) {
  answer_t *a = &s->search->answers[s->search->num_answers++];
  *a = (answer_t){.variable = v};
  int64_t cost = 0;
  if (s->num_choices[v] == 1) { /* nothing to choose: also with many neighbours */
    cost = s->cost[v][0];
    settle(s, v, 0);
  } else {
    for (int u = 0; u < s->n; u++)
      if (are_joined(s, u, v))
        a->neighbour[a->num++] = u;
    eliminate(s, a);
    cost = a->num == 0 ? s->cost[v][a->best[0][0]] : 0;
  }
  a->variable = s->name[v];
  for (int i = 0; i < a->num; i++)
    a->neighbour[i] = s->name[a->neighbour[i]];
  return cost;
}

/* Answers all that can be, but for the variables from `low` to `high`; what that costs by itself. */
static int64_t reduce(solver_t *s, int low, int high) {
  int64_t sum = 0;
  int degree = 0;
  for (int v; (v = pick(s, low, high, false, &degree)) >= 0 && degree <= 2;)
    sum += answer(s, v);
  return sum;
}

/* The choices of what was answered since, now that those of the others are known. */
static void look_up(minimum_t *search, int since) {
  for (int i = search->num_answers; i-- > since;) {
    const answer_t *a = &search->answers[i];
    int x = a->num > 0 ? search->chosen[a->neighbour[0]] : 0, y = a->num > 1 ? search->chosen[a->neighbour[1]] : 0;
    search->chosen[a->variable] = a->best[x][y];
  }
}

/* What a choice costs if all others could then choose as they like: no more than it will. */
static int64_t promise(const solver_t *s, int v, int i) {
  int64_t sum = s->cost[v][i];
  for (int u = 0; u < s->n; u++)
    if (are_joined(s, u, v)) {
      int64_t least = INT64_MAX;
      for (int j = 0; j < s->num_choices[u]; j++) {
        int64_t cost = s->cost[u][j] + *entry(s, v, i, u, j);
        least = cost < least ? cost : least;
      }
      sum += least;
    }
  return sum;
}

static int64_t solve(solver_t *s);

/* What the rest of a graph costs where v makes choice i. */
static int64_t cost_with(const solver_t *s, int v, int i) {
  solver_t t = clone_rest(s);
  int at = 0;
  while (t.name[at] != s->name[v])
    at++;
  int64_t own = t.cost[at][i];
  settle(&t, at, i);
  int64_t cost = own + solve(&t);
  s->search->chosen[s->name[v]] = i;
  free_solver(&t);
  return cost;
}

/* Tries the choices of a variable with many neighbours. */
static int64_t branch(const solver_t *s, int v) {
  minimum_t *search = s->search;
  int64_t least = INT64_MAX;
  size_t size = (size_t)search->num_variables * sizeof(int);
  int *best = tw_allocate((size_t)search->num_variables, sizeof *best), first = 0, end = s->num_choices[v];
  if (search->trials >= TW_MAX_TRIALS) {
    search->cut = search->cut || end > 1;
    for (int i = 1; i < end; i++)
      if (promise(s, v, i) < promise(s, v, first))
        first = i;
    end = first + 1;
  }
  for (int i = first; i < end; i++) {
    search->trials++;
    int64_t cost = cost_with(s, v, i);
    if (cost < least) {
      least = cost;
      memcpy(best, search->chosen, size);
    }
  }
  memcpy(search->chosen, best, size);
  free(best);
  return least;
}

/* The choices of all variables that are left, and their cost. */
static int64_t solve(solver_t *s) {
  int since = s->search->num_answers, degree = 0;
  int64_t sum = reduce(s, 0, 0);
  int v = pick(s, 0, 0, true, &degree);
  if (v >= 0)
    sum += branch(s, v);
  look_up(s->search, since);
  s->search->num_answers = since;
  return sum;
}

static solver_t whole(const tw_choice_graph_t *graph, minimum_t *search) {
  solver_t s = new_solver(graph->num_variables, graph->num_pairs, search);
  for (int v = 0; v < s.n; v++) {
    s.name[v] = v;
    s.num_choices[v] = graph->num_choices[v];
    memcpy(s.cost[v], graph->cost[v], sizeof *s.cost);
  }
  for (int p = 0; p < graph->num_pairs; p++) {
    const tw_pair_cost_t *pair = &graph->pairs[p];
    int u = pair->at[0], v = pair->at[1];
    if (*pair_of(&s, u, v) == 0)
      link_pair(&s, u, v, s.num_pairs++);
    for (int i = 0; i < s.num_choices[u]; i++)
      for (int j = 0; j < s.num_choices[v]; j++)
        *entry(&s, u, i, v, j) += pair->cost[i][j];
  }
  return s;
}

static minimum_t new_minimum(const tw_choice_graph_t *graph) {
  size_t n = (size_t)graph->num_variables;
  return (minimum_t){.num_variables = graph->num_variables,
                     .answers = tw_allocate(n, sizeof(answer_t)),
                     .chosen = tw_allocate(n, sizeof(int))};
}

static void free_minimum(minimum_t *search) {
  free(search->answers);
  free(search->chosen);
}

int64_t tw_least_cost(const tw_choice_graph_t *graph, int *chosen, bool *out_least) {
  minimum_t search = new_minimum(graph);
  solver_t s = whole(graph, &search);
  int64_t cost = solve(&s);
  if (s.n > 0)
    memcpy(chosen, search.chosen, (size_t)s.n * sizeof *chosen);
  *out_least = !search.cut;
  free_solver(&s);
  free_minimum(&search);
  return cost;
}

/* `sum`: of what is answered already. Half of the variables stay while the others are answered once for all of them. */
static void visit_range(const solver_t *rest, int low, int high, int64_t sum, tw_least_cost_visitor_t *visit,
                        void *user) {
  minimum_t *search = rest->search;
  int since = search->num_answers, middle = low + (high - low) / 2;
  solver_t s = clone_rest(rest);
  sum += reduce(&s, low, high);
  int at = 0;
  while (s.name[at] != low)
    at++;
  if (high - low > 1) {
    visit_range(&s, low, middle, sum, visit, user);
    visit_range(&s, middle, high, sum, visit, user);
  }
  for (int i = 0; high - low == 1 && i < s.num_choices[at]; i++) {
    search->trials = 0;
    int64_t cost = sum + cost_with(&s, at, i);
    look_up(search, 0);
    visit(user, low, i, cost, search->chosen);
  }
  search->num_answers = since;
  free_solver(&s);
}

void tw_least_costs(const tw_choice_graph_t *graph, tw_least_cost_visitor_t *visit, void *user) {
  if (graph->num_variables == 0)
    return;
  minimum_t search = new_minimum(graph);
  solver_t s = whole(graph, &search);
  visit_range(&s, 0, s.n, 0, visit, user);
  free_solver(&s);
  free_minimum(&search);
}
