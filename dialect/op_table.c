/* op_table.c - look-up in the generated table of ops */
#include "op_table.h"

#include <stdlib.h>
#include <string.h>

/* Sorted by name. */
static const tw_op_info_t ops[] = {
#define TW_OP(name, accepts, rule, float_op, signed_op, unsigned_op, bool_op)                                          \
  {name, accepts, TW_RESULT_##rule, float_op, signed_op, unsigned_op, bool_op},
#include "TileOpTable.inc"
#undef TW_OP
};

static int compare(const void *key, const void *row) {
  const MlirStringRef *name = key;
  const char *other = ((const tw_op_info_t *)row)->name;
  size_t length = strlen(other);
  int order = memcmp(name->data, other, name->length < length ? name->length : length);
  return order ? order : (name->length > length) - (name->length < length);
}

const tw_op_info_t *tw_op_info(MlirStringRef name) {
  return bsearch(&name, ops, sizeof ops / sizeof *ops, sizeof *ops, compare);
}
