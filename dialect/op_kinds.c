/* op_kinds.c - from an op's name to its kind, by a perfect hash that tools/twgen.py finds */
#include "op_kinds.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "mlir-c/BuiltinAttributes.h"

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

/* ---- operands -------------------------------------------------------------------------------------------- */

enum { TW_CLOSED = -1, TW_COUNTED = -2 };

/* By name: the number of the group from 1, 0 where ops have none. */
typedef struct {
  int8_t open; /* the group that has what the others leave; TW_CLOSED: each has one, TW_COUNTED: an attribute says */
  uint8_t num_groups, group[TW_NUM_OPERAND_NAMES];
} operands_row_t;

static const operands_row_t operands_rows[TW_NUM_OP_KINDS] = {
#define TW_OPERANDS(kind, is_open, number, ...)                                                                        \
  [TW_##kind] = {.open = (is_open), .num_groups = (number), .group = {__VA_ARGS__}},
#include "TileOperands.inc"
#undef TW_OPERANDS
};

#define SEGMENTS "operandSegmentSizes"

static MlirAttribute segments_of(MlirOperation op) {
  return mlirOperationGetAttributeByName(op, mlirStringRefCreateFromCString(SEGMENTS));
}

/* How many operands a group has. */
static intptr_t size_of_group(MlirOperation op, const operands_row_t *row, int group) {
  if (row->open == TW_COUNTED)
    return mlirDenseI32ArrayGetElement(segments_of(op), group);
  return group == row->open ? mlirOperationGetNumOperands(op) - (row->num_groups - 1) : 1;
}

intptr_t tw_operands(MlirOperation op, tw_operand_name_t name, intptr_t *first) {
  const operands_row_t *row = &operands_rows[tw_op_kind(op)];
  int group = row->group[name] - 1;
  *first = 0;
  for (int g = 0; g < group; g++)
    *first += size_of_group(op, row, g);
  return group < 0 ? -1 : size_of_group(op, row, group);
}

MlirValue tw_operand(MlirOperation op, tw_operand_name_t name) {
  intptr_t first;
  return tw_operands(op, name, &first) > 0 ? mlirOperationGetOperand(op, first) : (MlirValue){NULL};
}

/* In the place of `given` operands from `first` on, `taken` of `value`. */
static void replace_operands(MlirOperation op, intptr_t first, intptr_t given, intptr_t taken, MlirValue value) {
  intptr_t n = 0, before = mlirOperationGetNumOperands(op);
  MlirValue *operands = tw_allocate((size_t)(before + taken), sizeof *operands);
  for (intptr_t i = 0; i <= before; i++) {
    for (intptr_t t = 0; i == first && t < taken; t++)
      operands[n++] = value;
    if (i < before && (i < first || i >= first + given))
      operands[n++] = mlirOperationGetOperand(op, i);
  }
  mlirOperationSetOperands(op, n, operands);
  free(operands);
}

static void count_group(MlirOperation op, const operands_row_t *row, int group, int32_t count) {
  int32_t sizes[UINT8_MAX];
  for (int g = 0; g < row->num_groups; g++)
    sizes[g] = g == group ? count : mlirDenseI32ArrayGetElement(segments_of(op), g);
  MlirAttribute attribute = mlirDenseI32ArrayGet(mlirOperationGetContext(op), row->num_groups, sizes);
  mlirOperationSetAttributeByName(op, mlirStringRefCreateFromCString(SEGMENTS), attribute);
}

void tw_set_operand(MlirOperation op, tw_operand_name_t name, MlirValue value) {
  const operands_row_t *row = &operands_rows[tw_op_kind(op)];
  intptr_t first, given = tw_operands(op, name, &first), taken = !mlirValueIsNull(value);
  if (given == 1 && taken == 1) {
    mlirOperationSetOperand(op, first, value);
    return;
  }
  if (row->open == TW_COUNTED)
    count_group(op, row, row->group[name] - 1, (int32_t)taken);
  replace_operands(op, first, given, taken, value);
}
