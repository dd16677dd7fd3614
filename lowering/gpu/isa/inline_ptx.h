/* inline_ptx.h - what a block of inline PTX does, by its text: passes after tile-to-nvvm see nothing else of it
 *
 * The lists stand beside the rules that write such blocks, so that a new instruction is entered where it is emitted. */
#ifndef TILEWRIGHT_LOWERING_GPU_ISA_INLINE_PTX_H
#define TILEWRIGHT_LOWERING_GPU_ISA_INLINE_PTX_H

#include "lowering/ir.h"

/* Whether the text has one of the parts. */
bool tw_text_has(MlirStringRef text, const char *const *parts, size_t count);
#define TW_TEXT_HAS(text, parts) tw_text_has(text, parts, sizeof(parts) / sizeof *(parts))

/* Whether it starts, signals or waits for what runs by itself, or hands registers over: arithmetic stays on its side.
 * The boxes that a copy engine stores are none: the arithmetic of each belongs to its own stores. */
bool tw_ptx_is_fence(MlirStringRef text);
/* Whether it sets barriers up, has blocks meet or fetches tensor maps, which are parameters: it reads no array. */
bool tw_ptx_sets_up(MlirStringRef text);

#endif /* TILEWRIGHT_LOWERING_GPU_ISA_INLINE_PTX_H */
