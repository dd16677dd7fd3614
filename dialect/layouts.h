/* layouts.h - from the types of tiles and buffers to linear layouts and back */
#ifndef TILEWRIGHT_DIALECT_LAYOUTS_H
#define TILEWRIGHT_DIALECT_LAYOUTS_H

#include "lowering/layout/layout.h"

#include "mlir-c/IR.h"

/* #tile.linear from a layout. */
MlirAttribute tw_layout_attribute(MlirContext context, const tw_layout_t *layout);

/* The layout of a tile type or of one stage of a buffer type; false where it has none. */
bool tw_layout_of_type(MlirType type, tw_layout_t *out);
/* The layouts of an op's first operands; false where one has none. */
bool tw_layouts_of_operands(MlirOperation op, int count, tw_layout_t *out);

/* The tile type with another layout (NULL: without one). */
MlirType tw_type_with_layout(MlirType tile, const tw_layout_t *layout);

/* Shape of a tile type; returns the rank. */
int tw_tile_shape(MlirType tile, int64_t shape[TW_LAYOUT_MAX_RANK]);

/* Bits of an element as it lies in memory: i1 takes a byte, tf32 a word, f4E2M1FN half a byte. */
int tw_memory_bits(MlirType element);
/* Bytes that one element takes by itself. */
static inline int tw_memory_bytes(MlirType element) {
  int bits = tw_memory_bits(element);
  return bits < 8 ? 1 : bits / 8;
}

/* Elements and bytes of one stage of a buffer type, and bytes of all its stages. */
int64_t tw_stage_elements(MlirType buffer);
int64_t tw_stage_bytes(MlirType buffer);
int64_t tw_buffer_bytes(MlirType buffer);

/* Registers that a thread has of a value of this type (1 for scalars); -1 for a tile without layout. */
int tw_register_count(MlirType type);
/* Words of 32 bits that it has of a tile; 0 for what is no tile. */
int64_t tw_register_words(MlirType type);

#endif
