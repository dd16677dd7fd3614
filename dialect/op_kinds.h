/* op_kinds.h - which op this is, and what passes ask of ops: a number and columns in place of names
 *
 * The rows come from the definitions of our ops (dialect/TileBase.td says what the columns mean) and from
 * lowering/upstream_ops.def, by tools/twgen.py at build time. All of it is constant: threads need no care. */
#ifndef TILEWRIGHT_DIALECT_OP_KINDS_H
#define TILEWRIGHT_DIALECT_OP_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mlir-c/IR.h"

/* TW_TILE_LOAD is tile.load, TW_ARITH_ADDI is arith.addi. */
typedef enum {
  TW_UNKNOWN_OP, /* reads, writes and orders all */
#define TW_KIND(kind, name, form, arithmetic, columns) TW_##kind,
#include "TileOpKinds.inc"
#undef TW_KIND
  TW_NUM_OP_KINDS
} tw_op_kind_t;

/* What an op is. */
typedef enum {
  TW_FORM_NONE,
  TW_FORM_ELEMENTWISE,
  TW_FORM_VIEW,     /* the same elements elsewhere: reshape, broadcast, permute, another layout */
  TW_FORM_SOURCE,   /* a tile that each thread can make: constants, splats, iota */
  TW_FORM_POSITION, /* a number of the launch: places in the grid, extents, strides */
  TW_FORM_REDUCTION,
  TW_FORM_SCAN,
  TW_FORM_PRODUCT, /* of the first two operands, added to the third; or the wait that gives one */
  TW_FORM_CONTROL, /* what stands around others, and its ends */
} tw_op_form_t;

/* Elementwise ops of upstream dialects by what they compute: arithmetic of integers, casts, comparisons, functions, and
 * arithmetic of floats, which rounds. */
typedef enum {
  TW_CLASS_NONE,
  TW_CLASS_SUM,      /* and difference */
  TW_CLASS_MULTIPLE, /* product */
  TW_CLASS_QUOTIENT, /* rounded down, or to zero */
  TW_CLASS_CEILING,  /* quotient rounded up */
  TW_CLASS_REST,
  TW_CLASS_SHIFT,
  TW_CLASS_BITS,
  TW_CLASS_EXTREME, /* minimum, maximum */
  TW_CLASS_CAST,
  TW_CLASS_COMPARE,
  TW_CLASS_FUNCTION,  /* of real numbers, as math has them */
  TW_CLASS_FLOAT_SUM, /* and difference, and negation */
  TW_CLASS_FLOAT_PRODUCT,
  TW_CLASS_FLOAT_QUOTIENT,
  TW_CLASS_FLOAT_EXTREME,
} tw_op_class_t;

typedef enum {
  TW_NOTHING = 0,
  TW_PURE = 1 << 0, /* its results depend on its operands only */
  TW_READS_ARRAY = 1 << 1,
  TW_WRITES_ARRAY = 1 << 2,
  TW_READS_SHARED = 1 << 3,
  TW_WRITES_SHARED = 1 << 4,
  TW_ORDERS_THREADS = 1 << 5, /* those of the block, and what they did to shared memory */
  TW_ORDERS_ALL = 1 << 6,     /* what the op does is seen outside, or what others did is seen behind it */
  TW_COPIES_BY_THREADS = 1 << 7,
  TW_COPIES_BY_ENGINE = 1 << 8,
  TW_STARTS_ASYNC = 1 << 9, /* the op is over before its work is */
  TW_WAITS_ASYNC = 1 << 10,
  TW_HAS_SCRATCH = 1 << 11, /* may need shared memory for itself */
  TW_HAS_REGION = 1 << 12,
  TW_BY_TILE = 1 << 13,      /* accesses the tile of an array at a tile index: tile.load, tile.async_copy */
  TW_BY_ELEMENT = 1 << 14,   /* accesses elements of an array at tiles of indices: tile.gather, tile.async_gather */
  TW_NOT_NEGATIVE = 1 << 15, /* gives numbers of at least zero, or NaN */
  TW_MEETS_BLOCK = 1 << 16,  /* a thread waits there for all others of its block */
  TW_MEETS_WARP = 1 << 17,   /* for lanes of its warp */
  TW_VARIES = 1 << 18,       /* is another number in each thread of a block, whatever its operands */
  TW_FLUSHES = 1 << 19,      /* gives its operand, with zeros of the same sign in the place of subnormals */
  TW_UNKNOWN =
      TW_READS_ARRAY | TW_WRITES_ARRAY | TW_READS_SHARED | TW_WRITES_SHARED | TW_ORDERS_THREADS | TW_ORDERS_ALL,
} tw_op_columns_t;

typedef struct {
  const char *name; /* "tile.load"; NULL of TW_UNKNOWN_OP */
  uint8_t length, form, arithmetic;
  uint32_t columns;
} tw_op_row_t;

/* By kind. */
extern const tw_op_row_t tw_op_rows[TW_NUM_OP_KINDS];

/* The kind of ops of a name. */
tw_op_kind_t tw_kind_named(MlirStringRef name);

static inline tw_op_kind_t tw_op_kind(MlirOperation op) {
  return tw_kind_named(mlirIdentifierStr(mlirOperationGetName(op)));
}
static inline const tw_op_row_t *tw_op_row(MlirOperation op) { return &tw_op_rows[tw_op_kind(op)]; }
static inline tw_op_form_t tw_op_form(MlirOperation op) { return (tw_op_form_t)tw_op_row(op)->form; }
static inline tw_op_class_t tw_op_class(MlirOperation op) { return (tw_op_class_t)tw_op_row(op)->arithmetic; }
/* Whether one of these columns holds. */
static inline bool tw_op_has(MlirOperation op, unsigned columns) { return (tw_op_row(op)->columns & columns) != 0; }
/* The columns that say which memory it reads and writes. */
static inline unsigned tw_op_touches(MlirOperation op) {
  return tw_op_row(op)->columns & (TW_READS_ARRAY | TW_WRITES_ARRAY | TW_READS_SHARED | TW_WRITES_SHARED);
}
/* Whether the op brings elements of an array to registers: tile.load, tile.gather. What does so and writes, too, or has
 * an order, is none of these (tile.atomic). */
static inline bool tw_op_loads(MlirOperation op) {
  return (tw_op_touches(op) & ~(unsigned)TW_READS_SHARED) == TW_READS_ARRAY;
}
/* Whether it writes registers to an array: tile.store, tile.scatter. */
static inline bool tw_op_stores(MlirOperation op) {
  return (tw_op_touches(op) & ~(unsigned)TW_WRITES_SHARED) == TW_WRITES_ARRAY;
}
/* Whether it loads the tile at a tile index (tile.load), or stores it (tile.store). */
static inline bool tw_op_loads_tile(MlirOperation op) { return tw_op_has(op, TW_BY_TILE) && tw_op_loads(op); }
static inline bool tw_op_stores_tile(MlirOperation op) { return tw_op_has(op, TW_BY_TILE) && tw_op_stores(op); }
/* Whether it loads elements at tiles of indices (tile.gather), or stores them (tile.scatter). */
static inline bool tw_op_gathers(MlirOperation op) { return tw_op_has(op, TW_BY_ELEMENT) && tw_op_loads(op); }
static inline bool tw_op_scatters(MlirOperation op) { return tw_op_has(op, TW_BY_ELEMENT) && tw_op_stores(op); }
/* Whether it combines elements along an axis: a reduction or a scan. */
static inline bool tw_op_combines(MlirOperation op) {
  return tw_op_form(op) == TW_FORM_REDUCTION || tw_op_form(op) == TW_FORM_SCAN;
}
/* Whether it is a product of tiles (tile.mma); starts one that goes on behind it (tile.async_mma); waits for such. */
static inline bool tw_op_is_product(MlirOperation op) {
  return tw_op_form(op) == TW_FORM_PRODUCT && !tw_op_has(op, TW_STARTS_ASYNC | TW_WAITS_ASYNC);
}
static inline bool tw_op_is_async_product(MlirOperation op) {
  return tw_op_form(op) == TW_FORM_PRODUCT && tw_op_has(op, TW_STARTS_ASYNC);
}
static inline bool tw_op_waits_for_products(MlirOperation op) {
  return tw_op_form(op) == TW_FORM_PRODUCT && tw_op_has(op, TW_WAITS_ASYNC);
}
/* Whether it reduces by a kind of sum (tile.reduce), not by a function of the program. */
static inline bool tw_op_is_reduction(MlirOperation op) {
  return tw_op_form(op) == TW_FORM_REDUCTION && !tw_op_has(op, TW_HAS_REGION);
}
/* Whether it gives a tile another layout, which may move elements between threads (tile.convert_layout). */
static inline bool tw_op_is_conversion(MlirOperation op) {
  return tw_op_form(op) == TW_FORM_VIEW && tw_op_has(op, TW_HAS_SCRATCH);
}
/* Whether it brings elements of a buffer to registers (tile.local_load), or puts registers there (tile.local_store). */
static inline bool tw_op_loads_buffer(MlirOperation op) {
  return tw_op_form(op) != TW_FORM_PRODUCT && tw_op_touches(op) == TW_READS_SHARED;
}
static inline bool tw_op_stores_buffer(MlirOperation op) { return tw_op_touches(op) == TW_WRITES_SHARED; }
/* Whether threads copy the tile at a tile index to a buffer (tile.async_copy), or elements (tile.async_gather). */
static inline bool tw_op_copies_tile(MlirOperation op) {
  return tw_op_has(op, TW_COPIES_BY_THREADS) && tw_op_has(op, TW_BY_TILE);
}
static inline bool tw_op_copies_elements(MlirOperation op) {
  return tw_op_has(op, TW_COPIES_BY_THREADS) && tw_op_has(op, TW_BY_ELEMENT);
}
/* Whether an engine copies from an array to a buffer (tile.tma_load), or registers to an array, by way of a buffer
 * (tile.tma_store). */
static inline bool tw_op_loads_by_engine(MlirOperation op) {
  return tw_op_has(op, TW_COPIES_BY_ENGINE) && tw_op_has(op, TW_READS_ARRAY);
}
static inline bool tw_op_stores_by_engine(MlirOperation op) {
  return tw_op_has(op, TW_COPIES_BY_ENGINE) && tw_op_has(op, TW_WRITES_ARRAY);
}
/* Whether it only reads shared memory, of the buffers that it takes: tile.local_load, tile.async_mma. */
static inline bool tw_op_reads_shared(MlirOperation op) {
  return (tw_op_touches(op) & (TW_READS_SHARED | TW_WRITES_SHARED)) == TW_READS_SHARED;
}
/* Whether the op is of that kind, which is not TW_UNKNOWN_OP. */
bool tw_op_is_kind(MlirOperation op, tw_op_kind_t kind);

/* --- Operands by the names that the definitions give them --------------------------------------------- */

/* TW_OPERAND_MASK is what the definitions call `mask`. */
typedef enum {
#define TW_OPERAND(name) TW_OPERAND_##name,
#include "TileOperandNames.inc"
#undef TW_OPERAND
  TW_NUM_OPERAND_NAMES
} tw_operand_name_t;

/* The operands of that name: how many they are, and which is the first of them, or would be. -1 if ops of this kind
 * have none of that name. */
intptr_t tw_operands(MlirOperation op, tw_operand_name_t name, intptr_t *first);
/* The first of them; null where there is none. */
MlirValue tw_operand(MlirOperation op, tw_operand_name_t name);
/* Gives the op one operand of that name, in place of the one that it has, if any; none where the value is null. */
void tw_set_operand(MlirOperation op, tw_operand_name_t name, MlirValue value);

#endif /* TILEWRIGHT_DIALECT_OP_KINDS_H */
