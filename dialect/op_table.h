/* op_table.h - what TileOps.td says of each op, as rows that C can read (made by tools/twgen.py at build time) */
#ifndef TILEWRIGHT_DIALECT_OP_TABLE_H
#define TILEWRIGHT_DIALECT_OP_TABLE_H

#include "op_kinds.h"

/* How the dtype of an elementwise op's result follows from those of its operands. */
typedef enum {
  TW_RESULT_OWN,     /* the op has a rule of its own */
  TW_RESULT_PROMOTE, /* the common dtype */
  TW_RESULT_FLOAT,   /* the common dtype; f32 where that is an integer */
  TW_RESULT_BOOL,    /* bool, of operands that have a common dtype */
  TW_RESULT_SAME,    /* that of the operands, which have one */
} tw_result_rule_t;

typedef struct {
  const char *accepts; /* letters of tw_elem_kind */
  tw_result_rule_t rule;
  /* The upstream op that computes it after promotion, by kind of dtype; "" where legalization has its own rule. */
  const char *float_op, *signed_op, *unsigned_op, *bool_op;
} tw_op_info_t;

/* The row of an op, or NULL for one that is not of this dialect. */
const tw_op_info_t *tw_op_info(tw_op_kind_t kind);

#endif /* TILEWRIGHT_DIALECT_OP_TABLE_H */
