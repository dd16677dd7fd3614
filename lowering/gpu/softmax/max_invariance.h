/* max_invariance.h - how the values of a function change with the reference of a running softmax
 *
 * A loop that carries m, l and acc with
 *
 *   m' = max(m, scores of a row)    p = exp2(s - m')    f = exp2(m - m')    l' = l f + sum(p)    acc' = acc f + p v
 *
 * has the same quotient acc / l for any reference that is put in the place of m'. If the reference of a row is greater
 * by h, values change in one of two ways: some grow by a multiple of h (m, s - m'), others are multiplied by 2 to a
 * multiple of h (p, l, acc). The analysis follows both through the function. It is done for all such loops together,
 * since one may go on with what another left. The maximum may be a comparison and a choice, too: where the reference
 * moves, they stand as the program has them, so that a NaN stays or goes as there. */
#ifndef TILEWRIGHT_LOWERING_GPU_SOFTMAX_MAX_INVARIANCE_H
#define TILEWRIGHT_LOWERING_GPU_SOFTMAX_MAX_INVARIANCE_H

#include "lowering/ir.h"

typedef enum tw_change_kind {
  TW_FIXED,  /* does not change */
  TW_SHIFT,  /* grows by before * h(before the iteration) + now * h(now) */
  TW_FACTOR, /* is multiplied by 2 to that power */
  TW_FREE,   /* zero, which may count as anything */
} tw_change_kind_t;

typedef struct tw_change {
  tw_change_kind_t kind;
  double before, now;
  uint32_t rows; /* dimensions along which h differs */
  int loop;      /* whose reference it is: the position in tw_running_max_t */
} tw_change_t;

/* A loop with a running maximum. */
typedef struct tw_running {
  MlirOperation loop, maximum; /* m', as an op of the body */
  intptr_t position;           /* of m among the carried values */
  bool guarded;                /* m' is replaced where it is infinite: a reference of -inf counts as another number */
} tw_running_t;

typedef struct tw_running_max {
  tw_running_t *running; /* owned */
  int num;
  MlirOperation obstacle; /* where a changing value meets what the analysis does not know */
  tw_map_t index;         /* value -> number of its change */
  tw_change_t *changes;   /* owned */
  size_t num_changes;
} tw_running_max_t;

/* Finds the loops, and follows the changes. False when there is no such loop, or an obstacle. Free it either way. */
bool tw_running_max_of(MlirOperation func, tw_running_max_t *out);
void tw_running_max_free(tw_running_max_t *references);
tw_change_t tw_change_of(const tw_running_max_t *references, MlirValue value);

#endif /* TILEWRIGHT_LOWERING_GPU_SOFTMAX_MAX_INVARIANCE_H */
