/* producer_slice.h - the slice of a kernel that its producer runs, and whether it may run ahead
 *
 *   %n = tile.dim %A, 1 ; %s = tile.load %scales[%i]         // needed: %n, which is the loop's bound
 *   scf.for %k = 0 to %n step 64 iter_args(%x = %c, %acc) {  // needed: the loop, %k, %x
 *     tile.async_copy %A[%i, %x] into %a[0]                  // the copy
 *     ... tile.async_mma %a[0], ... ; %y = %x + 64 ; yield %y, %w
 *   }
 *
 * The producer does again what positions of copies depend on, and the loops and branches around: %s, %acc and the
 * products are not part of the slice. It runs ahead, and does not wait for stores. So what must hold: the
 * positions come from arithmetic and from loads of arrays that nothing writes to, tiles among them pass through no
 * branch, and no array is stored to that a copy (or such a load) may read later. */
#ifndef TILEWRIGHT_LOWERING_GPU_ROLES_PRODUCER_SLICE_H
#define TILEWRIGHT_LOWERING_GPU_ROLES_PRODUCER_SLICE_H

#include "lowering/ir.h"

/* Why a kernel gets no producer: the first reason that was found, and at which op. */
typedef struct tw_refusal {
  MlirOperation culprit;
  const char *reason;
} tw_refusal_t;

static inline bool tw_refuse(tw_refusal_t *refused, MlirOperation op, const char *reason) {
  if (refused->reason == NULL)
    *refused = (tw_refusal_t){op, reason};
  return false;
}

typedef struct tw_producer_slice {
  MlirOperation func;
  tw_map_t known; /* values, and ops with regions, that the producer has too */
  tw_refusal_t *refused;
} tw_producer_slice_t;

/* Adds what a copy's position depends on; false if the producer cannot have it. */
bool tw_producer_add_copy(tw_producer_slice_t *needs, MlirOperation copy);
/* Whether the producer has a value, or an op with regions (`key` is its address). */
bool tw_producer_has(const tw_producer_slice_t *needs, const void *key);
/* Whether no store comes before what the producer reads. May assume that arrays do not overlap (aliasing.h): so it is
 * asked last. */
bool tw_producer_may_run_ahead(const tw_producer_slice_t *needs);

/* A loop or a branch of scf. */
bool tw_is_control(MlirOperation op);

#endif /* TILEWRIGHT_LOWERING_GPU_ROLES_PRODUCER_SLICE_H */
