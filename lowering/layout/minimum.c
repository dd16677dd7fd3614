/* minimum.c - choices of least cost in a graph. See minimum.h. */
#include "lowering/layout/minimum.h"

#include "lowering/layout/memory.h"

#include <stdbool.h>
#include <string.h>

typedef int64_t row_t[TW_MAX_CHOICES];

/* What all parts of a search share. */
typedef struct {
  int trials;
  bool cut; /* not all choices were tried */
} effort_t;

/* A graph that is being taken apart: at most one pair between two variables, by a matrix of numbers of pairs. */
typedef struct solver {
  int n, num_pairs;
  int *num_choices;
  row_t *cost;
  int *pair;                      /* n x n: number of the pair + 1; 0: none */
  row_t (*table)[TW_MAX_CHOICES]; /* of a pair: [choice of the lower variable][choice of the higher one] */
  bool *gone;
  int *degree; /* pairs with variables that are left */
  effort_t *effort;
} solver_t;

/* What an eliminated variable chooses, by the choices of its neighbours. */
typedef struct answer {
  int variable, num, neighbour[2];
  unsigned char best[TW_MAX_CHOICES][TW_MAX_CHOICES];
} answer_t;

static void copy_into(void *to, const void *from, size_t count, size_t size) {
  if (count > 0)
    memcpy(to, from, count * size);
}

static solver_t new_solver(int n, int pairs, effort_t *effort) {
  size_t all = (size_t)n * (size_t)n;
  return (solver_t){.n = n,
                    .num_choices = tw_allocate((size_t)n, sizeof(int)),
                    .cost = tw_allocate((size_t)n, sizeof(row_t)),
                    .pair = tw_allocate(all, sizeof(int)),
                    .table = tw_allocate((size_t)pairs, TW_MAX_CHOICES * sizeof(row_t)),
                    .gone = tw_allocate((size_t)n, sizeof(bool)),
                    .degree = tw_allocate((size_t)n, sizeof(int)),
                    .effort = effort};
}

/* Eliminating a variable takes two pairs away before it adds one: copies need no more room. */
static solver_t clone_solver(const solver_t *s) {
  solver_t t = new_solver(s->n, s->num_pairs, s->effort);
  t.num_pairs = s->num_pairs;
  copy_into(t.num_choices, s->num_choices, (size_t)s->n, sizeof(int));
  copy_into(t.cost, s->cost, (size_t)s->n, sizeof(row_t));
  copy_into(t.pair, s->pair, (size_t)s->n * (size_t)s->n, sizeof(int));
  copy_into(t.table, s->table, (size_t)s->num_pairs, TW_MAX_CHOICES * sizeof(row_t));
  copy_into(t.gone, s->gone, (size_t)s->n, sizeof(bool));
  copy_into(t.degree, s->degree, (size_t)s->n, sizeof(int));
  return t;
}

static void free_solver(solver_t *s) {
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

/* The variable that is left with the fewest (most: the most) neighbours, the first among equals; -1: none is left. */
static int pick(const solver_t *s, bool most, int *degree) {
  int best = -1;
  for (int v = 0; v < s->n; v++) {
    if (s->gone[v])
      continue;
    int count = s->num_choices[v] == 1 ? 0 : s->degree[v];
    if (best < 0 || (most ? count > *degree : count < *degree)) {
      best = v;
      *degree = count;
    }
  }
  return best;
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

static int64_t solve(solver_t *s, int *chosen);

/* Tries the choices of a variable with many neighbours. `chosen` has those of what was eliminated before undefined. */
static int64_t branch(solver_t *s, int v, int *chosen) {
  int64_t least = INT64_MAX;
  int *trial = tw_allocate((size_t)s->n, sizeof *trial), first = 0, end = s->num_choices[v];
  if (s->effort->trials >= TW_MAX_TRIALS) {
    s->effort->cut = s->effort->cut || end > 1;
    for (int i = 1; i < end; i++)
      if (promise(s, v, i) < promise(s, v, first))
        first = i;
    end = first + 1;
  }
  for (int i = first; i < end; i++) {
    solver_t t = clone_solver(s);
    int64_t own = t.cost[v][i];
    s->effort->trials++;
    settle(&t, v, i);
    int64_t cost = own + solve(&t, trial);
    if (cost < least) {
      least = cost;
      copy_into(chosen, trial, (size_t)s->n, sizeof *chosen);
      chosen[v] = i;
    }
    free_solver(&t);
  }
  free(trial);
  return least;
}

/* The choices of all variables that are left, and their cost. */
static int64_t solve(solver_t *s, int *chosen) {
  answer_t *answers = tw_allocate((size_t)s->n, sizeof *answers);
  int num_answers = 0, degree = 0;
  int64_t sum = 0;
  for (int v; (v = pick(s, false, &degree)) >= 0;) {
    answer_t *a = &answers[num_answers];
    a->variable = v;
    a->num = 0;
    for (int u = 0; degree <= 2 && u < s->n; u++)
      if (are_joined(s, u, v) && s->num_choices[v] > 1)
        a->neighbour[a->num++] = u;
    if (s->num_choices[v] == 1) { /* nothing to choose: also with many neighbours */
      sum += s->cost[v][0];
      a->best[0][0] = 0;
      num_answers++;
      settle(s, v, 0);
    } else if (degree <= 2) {
      num_answers++;
      eliminate(s, a);
      sum += a->num == 0 ? s->cost[v][a->best[0][0]] : 0;
    } else {
      sum += branch(s, pick(s, true, &degree), chosen);
      break;
    }
  }
  while (num_answers-- > 0) {
    const answer_t *a = &answers[num_answers];
    int x = a->num > 0 ? chosen[a->neighbour[0]] : 0, y = a->num > 1 ? chosen[a->neighbour[1]] : 0;
    chosen[a->variable] = a->best[x][y];
  }
  free(answers);
  return sum;
}

int64_t tw_least_cost(const tw_choice_graph_t *graph, int fixed, int to, int *chosen, bool *out_least) {
  effort_t effort = {0, false};
  *out_least = true;
  if (graph->num_variables == 0)
    return 0;
  solver_t s = new_solver(graph->num_variables, graph->num_pairs, &effort);
  copy_into(s.num_choices, graph->num_choices, (size_t)s.n, sizeof(int));
  copy_into(s.cost, graph->cost, (size_t)s.n, sizeof(row_t));
  for (int p = 0; p < graph->num_pairs; p++) {
    const tw_pair_cost_t *pair = &graph->pairs[p];
    int u = pair->at[0], v = pair->at[1];
    if (*pair_of(&s, u, v) == 0)
      link_pair(&s, u, v, s.num_pairs++);
    for (int i = 0; i < s.num_choices[u]; i++)
      for (int j = 0; j < s.num_choices[v]; j++)
        *entry(&s, u, i, v, j) += pair->cost[i][j];
  }
  int64_t own = 0;
  if (fixed >= 0) {
    own = s.cost[fixed][to];
    settle(&s, fixed, to);
  }
  int64_t sum = own + solve(&s, chosen);
  if (fixed >= 0)
    chosen[fixed] = to;
  free_solver(&s);
  *out_least = !effort.cut;
  return sum;
}
