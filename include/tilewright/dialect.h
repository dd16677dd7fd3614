/* dialect.h - the C face of the tile dialect: registration, and makers and readers of its attributes.
 *
 * Passes and the Python extension include this and mlir-c; nothing here needs C++. */
#ifndef TILEWRIGHT_DIALECT_H
#define TILEWRIGHT_DIALECT_H

#include "mlir-c/IR.h"
#include "mlir-c/Pass.h"

#ifdef __cplusplus
extern "C" {
#endif

MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(Tile, tile);

/* Values of the attribute `padding` of tile.load (an i32 attribute). */
typedef enum {
  TW_PADDING_UNDETERMINED,
  TW_PADDING_ZERO,
  TW_PADDING_NEG_ZERO,
  TW_PADDING_NAN,
  TW_PADDING_POS_INF,
  TW_PADDING_NEG_INF,
} tw_padding_t;

/* Values of the attribute `kind` of tile.reduce. */
typedef enum {
  TW_REDUCE_ADD,
  TW_REDUCE_MUL,
  TW_REDUCE_MIN,
  TW_REDUCE_MAX,
  TW_REDUCE_ARGMIN,
  TW_REDUCE_ARGMAX,
} tw_reduce_kind_t;

/* Values of the attribute `kind` of tile.cmp. */
typedef enum { TW_CMP_EQ, TW_CMP_NE, TW_CMP_LT, TW_CMP_LE, TW_CMP_GT, TW_CMP_GE } tw_cmp_kind_t;

/* #tile.linear, as flat arrays: vectors of each group (register, lane, warp, block, offset) and the coordinates of all
 * vectors one after the other. lowering/gpu/layouts.h turns it into a tw_layout_t. */
bool tw_attribute_is_linear(MlirAttribute attribute);
MlirAttribute tw_linear_attr_get(MlirContext context, unsigned rank, const int32_t counts[5], const int32_t *coords);
void tw_linear_attr_read(MlirAttribute attribute, unsigned *rank, const int32_t **counts, const int32_t **coords);

/* !tile.buffer: the first extent is the number of slots. */
bool tw_type_is_buffer(MlirType type);
MlirType tw_buffer_type_get(MlirContext context, intptr_t rank, const int64_t *shape, MlirType element,
                            MlirAttribute layout);
intptr_t tw_buffer_type_rank(MlirType type);
int64_t tw_buffer_type_extent(MlirType type, intptr_t dim);
MlirType tw_buffer_type_element(MlirType type);
MlirAttribute tw_buffer_type_layout(MlirType type);

/* A remark to the context's handlers; mlir-c can only emit errors. */
void tw_emit_remark(MlirLocation location, const char *text);

/* Registers every dialect and translation in use, and every pass by name. */
void tw_register_dialects(MlirDialectRegistry registry);
void tw_register_passes(void);

#ifdef __cplusplus
}
#endif
#endif /* TILEWRIGHT_DIALECT_H */
