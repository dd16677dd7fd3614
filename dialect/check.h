/* check.h - shared by the rules of the dialect: shapes, and errors that name the op */
#ifndef TILEWRIGHT_DIALECT_CHECK_H
#define TILEWRIGHT_DIALECT_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "mlir-c/IR.h"
#include "tilewright/dialect.h"

enum { TW_RULE_MAX_RANK = 8 };

/* What is being checked. */
typedef struct {
  MlirLocation location;
  MlirStringRef op;
} tw_check_t;

/* Emits "'op' op …" and returns false. */
__attribute__((format(printf, 2, 3))) bool tw_fail(const tw_check_t *check, const char *format, ...);

/* A tile's shape; rank zero for a scalar. */
typedef struct {
  intptr_t rank;
  int64_t dims[TW_RULE_MAX_RANK];
} tw_shape_t;

typedef struct {
  tw_shape_t shape;
  tw_elem_t elem;
  MlirType type;
} tw_operand_t;

/* Reads a tile or scalar and checks what holds for every one: a dtype of tile code, a static shape, extents that are
 * powers of two, at most 2^31 - 1 elements. `what` names it in the message. */
bool tw_read_operand(const tw_check_t *check, MlirType type, const char *what, tw_operand_t *out);
/* A tile type, or the scalar at rank zero. */
MlirType tw_make_type(MlirContext context, tw_elem_t elem, const tw_shape_t *shape);
bool tw_same_shape(const tw_shape_t *a, const tw_shape_t *b);
int64_t tw_shape_count(const tw_shape_t *shape);
/* NumPy's rule; the result may alias an operand. */
bool tw_broadcast_shapes(const tw_check_t *check, const tw_shape_t *a, const tw_shape_t *b, tw_shape_t *out);

/* "(64, 32)", in one of a few static buffers that are used in turn, so that a message can hold several. */
const char *tw_shape_text(const tw_shape_t *shape);
const char *tw_ints_text(intptr_t num, const int64_t *values);

/* A dense integer array; -1 if it is absent or another attribute. */
intptr_t tw_read_ints(MlirAttribute array, int64_t *out, intptr_t max);
/* Whether `order` holds 0 … num-1 once each. */
bool tw_is_permutation(intptr_t num, const int64_t *order);

#endif /* TILEWRIGHT_DIALECT_CHECK_H */
