/* dialect.h - the C face of the tile dialect: registration, and makers and readers of its attributes.
 *
 * Passes and the Python extension include this and mlir-c; nothing here needs C++. */
#ifndef TILEWRIGHT_DIALECT_H
#define TILEWRIGHT_DIALECT_H

#include <stdbool.h>
#include <stdint.h>

#include "mlir-c/IR.h"
#include "mlir-c/Pass.h"

#ifdef __cplusplus
extern "C" {
#endif

MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(Tile, tile);

/* Values of attributes, as dialect/TileBase.td has them: tw_padding_t (TW_PADDING_ZERO), tw_reduce_kind_t
 * (TW_REDUCE_ADD), tw_cache_t (TW_EVICT_FIRST), tw_cmp_kind_t (TW_CMP_EQ). */
#include "TileValues.inc"

/* #tile.linear, as flat arrays: vectors of each group (register, lane, warp, block, offset) and the coordinates of all
 * vectors one after the other. dialect/layouts.h turns it into a tw_layout_t. */
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

/* !tile.barriers: how many. */
MlirType tw_barriers_type_get(MlirContext context, int64_t count);
int64_t tw_barriers_type_count(MlirType type);

/* Memory spaces of arrays, beside global memory, which has none: shared by a block, of constants, a thread's own, and
 * any of these, by an address that C++ gives. */
enum { TW_SPACE_GLOBAL = 1, TW_SPACE_SHARED = 3, TW_SPACE_CONSTANT = 4, TW_SPACE_LOCAL = 5, TW_SPACE_ANY = 6 };

/* The most values that a function of the user's combines at once (tile.reduce_by, tile.scan_by). */
enum { TW_MAX_COMBINED = 8 };

/* --- Dtypes and promotion (dialect/promotion.def) ---------------------------------------------------- */

/* In the order of the table. */
typedef enum {
  TW_NO_ELEM = -1,
  TW_b1,
  TW_u8,
  TW_u16,
  TW_u32,
  TW_u64,
  TW_i8,
  TW_i16,
  TW_i32,
  TW_i64,
  TW_f16,
  TW_f32,
  TW_f64,
  TW_bf,
  TW_tf32,
  TW_f8e4m3,
  TW_f8e5m2,
  TW_f8e8m0,
  TW_f4e2m1,
  TW_NUM_ELEMS
} tw_elem_t;

/* The dtype of a scalar type, or of the elements of a tile or array. */
tw_elem_t tw_elem_of(MlirType type);
MlirType tw_elem_type(MlirContext context, tw_elem_t dtype);
/* By name in Python ("float16") or spelling in the IR ("f16"). */
tw_elem_t tw_elem_named(const char *name);
const char *tw_elem_name(tw_elem_t dtype);
const char *tw_elem_spelling(tw_elem_t dtype);
/* 'b' bool, 'i' integer, 'f' float with arithmetic, 'n' narrow float without. */
char tw_elem_kind(tw_elem_t dtype);

/* The common dtype of two typed operands; TW_NO_ELEM where a cast must be written. */
tw_elem_t tw_promote(tw_elem_t a, tw_elem_t b);

/* A loosely typed constant: a Python number in tile code. Integers are sign and magnitude. */
typedef struct {
  enum { TW_CONSTANT_BOOL, TW_CONSTANT_INT, TW_CONSTANT_FLOAT } kind;
  bool negative, too_big; /* too_big: the magnitude takes more than 64 bits */
  uint64_t magnitude;
} tw_constant_t;

/* The dtype that the constant takes by itself; TW_NO_ELEM where none holds it. */
tw_elem_t tw_constant_elem(tw_constant_t value);
/* The common dtype of the constant and a typed operand; TW_NO_ELEM where it does not hold the value. */
tw_elem_t tw_promote_constant(tw_constant_t value, tw_elem_t other);

/* A remark to the context's handlers; mlir-c can only emit errors. */
void tw_emit_remark(MlirLocation location, const char *text);

/* Whether MLIR's parser may be given the text, which it does not survive otherwise. If not, an error to the context's
 * handlers says where and why; `name` is the file's. */
bool tw_text_is_readable(MlirContext context, MlirStringRef name, MlirStringRef text);

/* Registers every dialect and translation in use, and every pass by name. */
void tw_register_dialects(MlirDialectRegistry registry);
void tw_register_passes(void);

#ifdef __cplusplus
}
#endif
#endif /* TILEWRIGHT_DIALECT_H */
