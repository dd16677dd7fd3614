/* stage_plan.h - the plan of multi-stage buffers: which copies arrive together, and which share a multibuffer
 *
 *   tile.async_copy %A[%i, %k] into %a[0] ; tile.async_copy %B[%k, %j] into %b[0]
 *   tile.async_mma %a[0], %b[0], %acc ; tile.mma_wait
 *
 * A *fill* is a run of copies that one op reads first: those of %a and %b, which tile.async_mma reads. They share a
 * barrier. A *multibuffer* is the buffers of a fill, each with as many stages, and the barriers of the stages. Fills of
 * the same form whose contents never live at once share a multibuffer; one may lack little copies that others end with.
 * Where a fill's last read ends (here at the wait) its stage is given back; with products that run on (mma_overlap.h)
 * that is in the next iteration. */
#ifndef TILEWRIGHT_LOWERING_GPU_ROLES_STAGE_PLAN_H
#define TILEWRIGHT_LOWERING_GPU_ROLES_STAGE_PLAN_H

#include "lowering/gpu/machine/copy_engine.h"
#include "lowering/gpu/roles/mma_overlap.h"
#include "lowering/gpu/roles/producer_slice.h"
#include "lowering/ir.h"

enum {
  TW_MAX_TOGETHER = 4, /* copies of a fill */
  TW_MAX_FILLS = 32,
  TW_MIN_STAGES = 2 /* of a multibuffer whose stages are filled again */
};

/* Copies that arrive together. */
typedef struct tw_stage_fill {
  MlirOperation copies[TW_MAX_TOGETHER];
  int num_copies, multibuffer;
  MlirOperation reader; /* the first op of the fill's block that reads them, or holds one that does */
  MlirOperation end;    /* the op of the fill's block that ends the last read ... */
  bool late;            /* ... in the next iteration of the loop, or after it */
  bool by_lanes;        /* threads read it, not only products */
  bool gathers;         /* one of the copies gathers */
} tw_stage_fill_t;

/* The buffers that fills of one form go through, and the barriers of their stages. */
typedef struct tw_multibuffer {
  int first; /* the fill whose buffers it has */
  int stages;
  int64_t bytes; /* of a stage */
  int depth;     /* most loops around a fill */
  int num_fills;
  bool late;                                       /* has a fill that is given back late */
  bool multicast;                                  /* the blocks of a cluster fill it together */
  MlirValue buffers[TW_MAX_TOGETHER], full, empty; /* made by the pass */
} tw_multibuffer_t;

/* The op that reads a buffer through its operand `operand`, and the fill that it finds there. */
typedef struct tw_stage_read {
  MlirOperation op;
  intptr_t operand;
  int fill;
} tw_stage_read_t;

typedef struct tw_stage_plan {
  MlirOperation func;
  tw_stage_fill_t fills[TW_MAX_FILLS];
  int num_fills;
  tw_multibuffer_t multibuffers[TW_MAX_FILLS];
  int num_multibuffers;
  tw_stage_read_t *reads; /* owned */
  int num_reads;
  tw_overlaps_t overlaps;
  tw_producer_slice_t needs;
  tw_tensor_map_t maps[TW_ENGINE_MAX_LOADED]; /* that the copies need */
  int num_maps;
  int64_t product_words; /* what products keep in a thread's registers */
  tw_refusal_t refused;
  bool gathers;        /* a copy does, for which the producer needs all threads of a warpgroup */
  bool has_stores;     /* a loop of the program has threads write to shared memory */
  int consumer_groups; /* of consumers, which take the blocks of a persistent kernel in turn */
} tw_stage_plan_t;

/* ---- questions to a plan ------------------------------------------------------------------------- */

/* The fill that a copy belongs to. */
int tw_fill_of(const tw_stage_plan_t *plan, MlirOperation copy);
/* Whether some fill brings the content of a buffer. */
bool tw_is_filled(const tw_stage_plan_t *plan, MlirValue buffer);
/* Bytes of a fill that the tensor memory accelerator brings. */
int64_t tw_announced_bytes(const tw_stage_fill_t *fill);
/* Whether stages are filled again, so that they must be given back. */
bool tw_comes_round(const tw_multibuffer_t *multibuffer);
/* The buffer's type, with this number of stages. */
MlirType tw_with_stages(MlirType buffer, int stages);
/* In one block: x stands before y, or is y. */
bool tw_not_after(MlirOperation x, MlirOperation y);

/* Whether one of the copies of a fill goes into a buffer. */
bool tw_fills_buffer(const tw_stage_fill_t *fill, MlirValue buffer);

#endif /* TILEWRIGHT_LOWERING_GPU_ROLES_STAGE_PLAN_H */
