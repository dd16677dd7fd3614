/* op_kinds.c - from an op's name to its kind, by a perfect hash that tools/twgen.py finds */
#include "op_kinds.h"

#include <limits.h>
#include <string.h>

const tw_op_row_t tw_op_rows[TW_NUM_OP_KINDS] = {
    [TW_UNKNOWN_OP] = {NULL, 0, TW_FORM_NONE, TW_CLASS_NONE, TW_UNKNOWN},
#define TW_KIND(kind, name, form, arithmetic, columns)                                                                 \
  [TW_##kind] = {name, sizeof(name) - 1, TW_FORM_##form, TW_CLASS_##arithmetic, columns},
#include "TileOpKinds.inc"
#undef TW_KIND
};

/* hash_seeds, hash_slots and HASH_FACTOR. */
#include "TileOpHash.inc"

enum {
  WORD = 8,
  NUM_SEEDS = sizeof hash_seeds / sizeof *hash_seeds,
  NUM_SLOTS = sizeof hash_slots / sizeof *hash_slots
};

/* At most eight bytes, the first the lowest. */
static uint64_t word_of(const char *bytes, size_t count) {
  uint64_t word = 0;
  for (size_t i = 0; i < count; i++)
    word |= (uint64_t)(unsigned char)bytes[i] << CHAR_BIT * i;
  return word;
}

static uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * HASH_FACTOR;
  return (hash ^ hash >> 32) * HASH_FACTOR;
}

/* The same as hash_of in tools/twgen.py; the last word may overlap with the one before. */
static uint64_t hash_of(MlirStringRef name) {
  uint64_t hash = name.length;
  for (size_t i = 0; i + WORD < name.length; i += WORD)
    hash = mix(hash, word_of(name.data + i, WORD));
  size_t last = name.length < WORD ? name.length : WORD;
  hash = mix(hash, word_of(name.data + name.length - last, last));
  return hash ^ hash >> 32;
}

tw_op_kind_t tw_kind_named(MlirStringRef name) {
  uint64_t hash = hash_of(name);
  unsigned slot = ((unsigned)(hash >> 20) + hash_seeds[hash % NUM_SEEDS] * (unsigned)(hash >> 40 | 1)) % NUM_SLOTS;
  const tw_op_row_t *row = &tw_op_rows[hash_slots[slot]];
  bool same = row->length == name.length && row->name != NULL && !memcmp(row->name, name.data, name.length);
  return same ? (tw_op_kind_t)hash_slots[slot] : TW_UNKNOWN_OP;
}

bool tw_op_is_kind(MlirOperation op, tw_op_kind_t kind) {
  MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
  const tw_op_row_t *row = &tw_op_rows[kind];
  return row->length == name.length && row->name != NULL && !memcmp(row->name, name.data, name.length);
}
