/* op_table.c - the rows of the generated table of ops */
#include "op_table.h"

static const tw_op_info_t ops[TW_NUM_OP_KINDS] = {
#define TW_OP(kind, accepts, rule, float_op, signed_op, unsigned_op, bool_op)                                          \
  [TW_##kind] = {accepts, TW_RESULT_##rule, float_op, signed_op, unsigned_op, bool_op},
#include "TileOpTable.inc"
#undef TW_OP
};

const tw_op_info_t *tw_op_info(tw_op_kind_t kind) { return ops[kind].accepts ? &ops[kind] : NULL; }
