/* rings.h - what tile-specialize-warps plans: which copies arrive together, through which rings of slots, and what the
 * producer has to follow. See specialize_warps.c for the words. */
#ifndef TILEWRIGHT_LOWERING_GPU_SM90_RINGS_H
#define TILEWRIGHT_LOWERING_GPU_SM90_RINGS_H

#include "lowering/gpu/sm90/tma.h"
#include "lowering/ir.h"

enum {
  TW_MAX_TOGETHER = 4, /* copies of a fill */
  TW_MAX_FILLS = 32,
  TW_MAX_READS = 128,
  TW_MAX_OVERLAPS = 16, /* loops whose products run on */
  TW_MAX_PRODUCTS = 8,
  TW_GATHERING_WARPS = 4, /* of a producer that gathers: a warpgroup, which can give up registers */
  TW_MIN_SLOTS = 2,       /* of a ring whose slots are filled again */
  TW_MANY_WORDS = 96      /* of products: with all else, more than three warps of a share of registers have */
};

/* Copies that arrive together. */
typedef struct tw_fill {
  MlirOperation copies[TW_MAX_TOGETHER];
  int num_copies, ring;
  MlirOperation reader; /* the first op of the fill's block that reads them, or holds one that does */
  MlirOperation end;    /* the op of the fill's block that ends the last read ... */
  bool late;            /* ... in the next iteration of the loop, or after it */
  bool by_lanes;        /* threads read it, not only products */
  bool gathers;         /* one of the copies gathers */
} tw_fill_t;

/* The buffers that fills of one form go through, and the barriers of their slots. */
typedef struct tw_ring {
  int first; /* the fill whose buffers it has */
  int slots;
  int64_t bytes; /* of a slot */
  int depth;     /* most loops around a fill */
  int num_fills;
  bool late;                                       /* has a fill that is given back late */
  bool multicast;                                  /* the blocks of a cluster fill it together */
  MlirValue buffers[TW_MAX_TOGETHER], full, empty; /* made by the pass */
} tw_ring_t;

/* The op that reads a buffer through its operand `operand`, and the fill that it finds there. */
typedef struct tw_ring_read {
  MlirOperation op;
  intptr_t operand;
  int fill;
} tw_ring_read_t;

/* A loop with products that run into its next iteration. */
typedef struct tw_overlap {
  MlirOperation loop;
  MlirOperation products[TW_MAX_PRODUCTS], waits[TW_MAX_PRODUCTS];
  intptr_t carried[TW_MAX_PRODUCTS]; /* position of the accumulator among what the loop carries */
  int num_products;
  bool all; /* they are all products of the loop, and start from zero */
  MlirOperation
      end; /* the wait that also ends those of the iteration before: the last of `waits`, or another product's */
} tw_overlap_t;

typedef struct tw_ring_plan {
  MlirOperation func;
  tw_fill_t fills[TW_MAX_FILLS];
  int num_fills;
  tw_ring_t rings[TW_MAX_FILLS];
  int num_rings;
  tw_ring_read_t reads[TW_MAX_READS];
  int num_reads;
  tw_overlap_t overlaps[TW_MAX_OVERLAPS];
  int num_overlaps;
  tw_tma_map_t maps[TW_TMA_MAX_LOADED]; /* that the copies need */
  int num_maps;
  int64_t product_words; /* what products keep in a thread's registers */
  tw_map_t needed;       /* values, and ops with regions, that the producer has too */
  MlirOperation culprit;
  const char *reason; /* why not */
  bool gathers;       /* a copy does, for which the producer needs all threads of a warpgroup */
  bool has_stores;    /* something is written to shared memory by threads */
  int teams;          /* of consumers, which take the blocks of a persistent kernel in turn */
} tw_ring_plan_t;

/* Fills in the plan of plan->func. If there is none, `reason` says why, or is null where nothing is to be gained. */
bool tw_plan_rings(tw_ring_plan_t *plan);

/* ---- questions to a plan ------------------------------------------------------------------------- */

/* The fill that a copy belongs to. */
int tw_fill_of(const tw_ring_plan_t *plan, MlirOperation copy);
/* The overlap of a loop, or null. */
const tw_overlap_t *tw_overlap_of(const tw_ring_plan_t *plan, MlirOperation loop);
/* Whether the wait is no more: its product runs on. */
bool tw_drops_wait(const tw_ring_plan_t *plan, MlirOperation wait);
/* The products that go on behind a wait: those between its own and the wait. Products that run on do not end it. */
int64_t tw_pending(const tw_ring_plan_t *plan, MlirOperation wait);
/* Whether a producer gathers for so many warps that compute. */
bool tw_gathers_beside(int64_t warps);
/* Whether slots are filled again, so that they must be given back. */
bool tw_comes_round(const tw_ring_t *ring);
/* Whether the producer needs a value, or an op with regions (`key` is its address). */
bool tw_is_needed(const tw_ring_plan_t *plan, const void *key);

/* ---- structure ----------------------------------------------------------------------------------- */

bool tw_is_inside(MlirOperation op, MlirOperation outer);
/* A loop or a branch of scf. */
bool tw_is_control(MlirOperation op);
/* A store by TMA, or a wait for those of a buffer. */
bool tw_is_of_store(MlirOperation op);

#endif /* TILEWRIGHT_LOWERING_GPU_SM90_RINGS_H */
