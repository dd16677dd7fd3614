/* inline_ptx.h - what a block of inline PTX does beside its result, as the rule that writes it says
 *
 * Passes behind tile-to-nvvm see text, which means nothing to them; they read the mark. Intrinsics that they ask about
 * have one, too. */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_INLINE_PTX_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_INLINE_PTX_H

#include "lowering/ir.h"

#define TW_PTX_DOES "tile.ptx"

typedef enum {
  TW_PTX_NOTHING, /* it is arithmetic */
  TW_PTX_EFFECT,  /* it stays where it is among effects */
  TW_PTX_STORES,  /* to an array or to shared memory */
  /* Starts, signals or awaits what runs by itself, or hands registers over: arithmetic stays on its side. The boxes
   * that a copy engine stores are none: the arithmetic of each belongs to its own stores. */
  TW_PTX_FENCE,
  TW_PTX_STEP,    /* starts or awaits a step of a product, beside which arithmetic for the next ones may stand */
  TW_PTX_SETS_UP, /* barriers, blocks that meet, tensor maps, which are parameters: it reads no array */
} tw_ptx_does_t;

MlirAttribute tw_ptx_does_attr(MlirContext context, tw_ptx_does_t does);
/* Whether an op is marked as that. */
bool tw_ptx_does(MlirOperation op, tw_ptx_does_t what);

#endif /* TILEWRIGHT_LOWERING_GPU_FACTS_INLINE_PTX_H */
