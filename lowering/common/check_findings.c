/* check_findings.c - checks: numbers of elements, and the records that findings become
 *
 *   %hit = arith.cmpi eq, %place, %first          which element of the tile it was
 *   %row = tile.reduce add, (%hit ? %rows : 0)    its index
 *   %n = tile.atomic add %one, %report[0]         a place for the record
 *   tile.scatter %record, %report[header + %n * 16 + iota] {check_bounds}
 *
 * The report has room for some findings; those behind it are counted, and dropped by `check_bounds`. */
#include "lowering/common/check.h"
#include "lowering/layout/memory.h"
#include "tilewright/base.h"
#include "tilewright/dialect.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- numbers ------------------------------------------------------------------------------------------ */

MlirValue tw_check_i64(const tw_builder_t *at, int64_t value) { return tw_const_int(at, tw_i64(at->context), value); }

MlirValue tw_check_wide(const tw_builder_t *at, MlirValue x) {
  MlirType type = mlirValueGetType(x);
  return tw_bits(type) == 64 ? x : tw_unary(at, "arith.extsi", tw_with_element(type, tw_i64(at->context)), x);
}

/* Narrow floats go through f32, which holds them all: NumPy has not each of them. */
MlirValue tw_check_bits(const tw_builder_t *at, MlirValue x) {
  MlirType type = mlirValueGetType(x);
  if (tw_is_float(type) && (tw_bits(type) < 16 || tw_bits(type) == 19)) {
    type = tw_with_element(type, mlirF32TypeGet(at->context));
    x = tw_unary(at, "arith.extf", type, x);
  }
  if (tw_is_float(type)) {
    type = tw_with_element(type, mlirIntegerTypeGet(at->context, tw_bits(type)));
    x = tw_unary(at, "arith.bitcast", type, x);
  }
  return tw_bits(type) == 64 ? x : tw_unary(at, "arith.extui", tw_with_element(type, tw_i64(at->context)), x);
}

MlirValue tw_check_splat(const tw_builder_t *at, MlirValue scalar, MlirType like) {
  MlirType type = tw_with_element(like, mlirValueGetType(scalar));
  return tw_is_tile(like) ? tw_unary(at, "tensor.splat", type, scalar) : scalar;
}

MlirValue tw_check_and(const tw_builder_t *at, MlirValue x, MlirValue y) {
  return tw_binary(at, "arith.andi", mlirValueGetType(x), x, y);
}

MlirValue tw_check_not(const tw_builder_t *at, MlirValue x) {
  return tw_check_compare(at, TW_EQ, x, tw_const_int(at, mlirValueGetType(x), 0));
}

MlirValue tw_check_or(const tw_builder_t *at, MlirValue x, MlirValue y) {
  return mlirValueIsNull(x) ? y : mlirValueIsNull(y) ? x : tw_binary(at, "arith.ori", mlirValueGetType(x), x, y);
}

MlirValue tw_check_compare(const tw_builder_t *at, int predicate, MlirValue x, MlirValue y) {
  MlirType type = tw_with_element(mlirValueGetType(x), mlirIntegerTypeGet(at->context, 1));
  MlirValue operands[] = {x, y};
  return tw_op1_attr(at, "arith.cmpi", type, 2, operands, "predicate",
                     mlirIntegerAttrGet(tw_i64(at->context), predicate));
}

/* ---- places in tiles ---------------------------------------------------------------------------------------- */

/* The same as i32. */
static MlirValue along(const tw_builder_t *at, MlirType like, intptr_t axis) {
  int64_t shape[TW_MAX_RANK], one[TW_MAX_RANK];
  intptr_t rank = tw_rank(like);
  for (intptr_t d = 0; d < rank; d++) {
    shape[d] = tw_extent(like, d);
    one[d] = d == axis ? shape[d] : 1;
  }
  MlirType element = tw_i32(at->context);
  MlirValue x = tw_op1(at, "tile.iota", tw_tile_type(element, 1, &shape[axis]), 0, NULL);
  if (rank == 1)
    return x;
  x = tw_reshape(at, tw_tile_type(element, rank, one), x);
  return tw_broadcast(at, tw_tile_type(element, rank, shape), x);
}

MlirValue tw_check_along(const tw_builder_t *at, MlirType like, intptr_t axis) {
  return tw_check_wide(at, along(at, like, axis));
}

/* Each element's place in row-major order, as i32. */
static MlirValue places(const tw_builder_t *at, MlirType like) {
  MlirType type = tw_with_element(like, tw_i32(at->context));
  MlirValue sum = {NULL};
  int64_t step = 1;
  for (intptr_t d = tw_rank(like) - 1; d >= 0; step *= tw_extent(like, d--)) {
    MlirValue term = tw_binary(at, "arith.muli", type, along(at, like, d), tw_const_int(at, type, step));
    sum = mlirValueIsNull(sum) ? term : tw_binary(at, "arith.addi", type, sum, term);
  }
  return sum;
}

/* A tile's elements combined along all axes. */
static MlirValue reduced(const tw_builder_t *at, MlirValue x, int kind) {
  MlirType i32 = tw_i32(at->context);
  while (tw_rank(mlirValueGetType(x)) > 0) {
    MlirType type = mlirValueGetType(x);
    int64_t shape[TW_MAX_RANK];
    intptr_t last = tw_rank(type) - 1;
    for (intptr_t d = 0; d < last; d++)
      shape[d] = tw_extent(type, d);
    tw_attr_t attrs[] = {{"kind", mlirIntegerAttrGet(i32, kind)}, {"axis", mlirIntegerAttrGet(i32, last)}};
    MlirType result = tw_tile_type(tw_element(type), last, shape);
    x = tw_op1_attrs(at, "tile.reduce", result, 1, &x, 2, attrs);
  }
  return x;
}

MlirValue tw_check_extent(const tw_builder_t *at, MlirValue array, intptr_t axis) {
  MlirType i32 = tw_i32(at->context);
  return tw_check_wide(at, tw_op1_attr(at, "tile.dim", i32, 1, &array, "axis", mlirIntegerAttrGet(i32, axis)));
}

MlirValue tw_check_first(const tw_builder_t *at, MlirValue found, MlirValue *any) {
  MlirType type = mlirValueGetType(found), i32 = tw_i32(at->context);
  *any = found;
  if (!tw_is_tile(type))
    return tw_const_int(at, i32, 0);
  MlirValue none = tw_const_int(at, tw_with_element(type, i32), INT32_MAX);
  MlirValue first = reduced(at, tw_select(at, found, places(at, type), none), TW_REDUCE_MIN);
  *any = tw_compare(at, TW_NE, first, tw_const_int(at, i32, INT32_MAX));
  return first;
}

MlirValue tw_check_hit(const tw_builder_t *at, MlirType like, MlirValue place) {
  if (!tw_is_tile(like))
    return (MlirValue){NULL};
  return tw_check_compare(at, TW_EQ, places(at, like), tw_check_splat(at, place, like));
}

MlirValue tw_check_pick(const tw_builder_t *at, MlirValue tile, MlirValue hit) {
  MlirType type = mlirValueGetType(tile);
  if (tw_is_tile(type))
    tile = reduced(at, tw_select(at, hit, tile, tw_const_int(at, type, 0)), TW_REDUCE_ADD);
  return tw_check_wide(at, tile);
}

/* ---- sites -------------------------------------------------------------------------------------------------- */

static void append(MlirStringRef text, void *out) { tw_strbuf_append(out, text.data, text.length); }

static intptr_t parameter_of(const check_t *c, MlirValue array) {
  bool is_parameter = !mlirValueIsNull(array) && mlirValueIsABlockArgument(array) &&
                      mlirBlockEqual(mlirBlockArgumentGetOwner(array), tw_region_block(c->func, 0));
  return is_parameter ? mlirBlockArgumentGetArgNumber(array) : -1;
}

/* Whether an op is a thread's, whose number is known: not in the body of a tile.map. */
static bool is_of_block_thread(const check_t *c, MlirOperation op) {
  while (!mlirOperationIsNull(op) && !tw_op_is(op, TW_TILE_THREADS))
    op = mlirOperationGetParentOperation(op);
  return !mlirValueIsNull(c->thread) || !mlirOperationIsNull(op);
}

int tw_check_site(check_t *c, MlirOperation op, const char *kind, MlirValue array, MlirType value, MlirStringRef text) {
  tw_strbuf_t line = {0};
  tw_strbuf_printf(&line, "%s\t%d\t", kind, (int)parameter_of(c, array));
  if (!mlirTypeIsNull(value))
    mlirTypePrint(tw_element(value), append, &line);
  tw_strbuf_puts(&line, is_of_block_thread(c, op) ? "\tthread\t" : "\tblock\t");
  mlirLocationPrint(mlirOperationGetLocation(op), append, &line);
  tw_strbuf_puts(&line, "\t");
  tw_strbuf_append(&line, text.data, text.length);
  c->sites = tw_room(c->sites, (size_t)c->num_sites, sizeof *c->sites);
  c->sites[c->num_sites] = mlirStringAttrGet(c->context, mlirStringRefCreate(line.data, line.size));
  tw_strbuf_free(&line);
  return c->num_sites++;
}

/* ---- the report --------------------------------------------------------------------------------------------- */

MlirValue tw_check_header_word(const check_t *c, const tw_builder_t *at, int64_t word) {
  MlirValue operands[] = {c->report, tw_check_i64(at, word)};
  const int32_t segments[] = {1, 1, 0, 0};
  return tw_op1_attr(at, "tile.gather", tw_i64(at->context), 2, operands, "operandSegmentSizes",
                     mlirDenseI32ArrayGet(at->context, 4, segments));
}

/* How many findings there were before. */
static MlirValue take_number(const check_t *c, const tw_builder_t *at) {
  MlirType i32 = tw_i32(at->context), i64 = tw_i64(at->context);
  MlirValue operands[] = {c->report, tw_check_i64(at, 0), tw_check_i64(at, 1)};
  const int32_t segments[] = {1, 1, 1, 0, 0};
  tw_attr_t attrs[] = {{"kind", mlirIntegerAttrGet(i32, TW_ATOMIC_ADD)},
                       {"memory_order", mlirIntegerAttrGet(i32, TW_ORDER_RELAXED)},
                       {"memory_scope", mlirIntegerAttrGet(i32, TW_SCOPE_DEVICE)},
                       {"operandSegmentSizes", mlirDenseI32ArrayGet(at->context, 5, segments)}};
  return tw_op1_attrs(at, "tile.atomic", i64, 3, operands, 4, attrs);
}

/* The words of a record; null where it has none. */
static void record_words(const check_t *c, const tw_builder_t *at, int site, const finding_t *finding,
                         MlirValue words[TW_RECORD_WORDS]) {
  words[TW_WORD_SITE] = tw_check_i64(at, site);
  words[TW_WORD_BLOCK] = tw_check_wide(at, c->block);
  words[TW_WORD_OTHER] = finding->other;
  if (!mlirValueIsNull(c->thread))
    words[TW_WORD_OTHER] = tw_check_wide(at, c->thread);
  else if (is_of_block_thread(c, mlirBlockGetParentOperation(at->block)))
    words[TW_WORD_OTHER] = tw_check_wide(at, tw_op1_attr(at, "tile.thread_id", tw_i32(at->context), 0, NULL, "axis",
                                                         mlirIntegerAttrGet(tw_i32(at->context), 0)));
  words[TW_WORD_VALUE] = finding->value;
  for (intptr_t d = 0; d < finding->rank; d++)
    words[TW_WORD_INDEX + d] = finding->index[d];
}

/* The same as a tile. */
static MlirValue record_tile(const tw_builder_t *at, const MlirValue words[TW_RECORD_WORDS]) {
  const int64_t shape = TW_RECORD_WORDS;
  MlirType type = tw_tile_type(tw_i64(at->context), 1, &shape);
  MlirValue number = tw_check_along(at, type, 0), record = tw_const_int(at, type, 0);
  for (int i = 0; i < TW_RECORD_WORDS; i++) {
    if (mlirValueIsNull(words[i]))
      continue;
    MlirValue here = tw_check_compare(at, TW_EQ, number, tw_const_int(at, type, i));
    record = tw_select(at, here, tw_check_splat(at, words[i], type), record);
  }
  return record;
}

static void scatter(const tw_builder_t *at, MlirValue array, MlirValue places_, MlirValue value) {
  MlirValue operands[] = {array, places_, value};
  const int32_t segments[] = {1, 1, 1, 0};
  tw_attr_t attrs[] = {{"check_bounds", mlirUnitAttrGet(at->context)},
                       {"operandSegmentSizes", mlirDenseI32ArrayGet(at->context, 4, segments)}};
  tw_build(at, "tile.scatter",
           (tw_op_parts_t){.num_operands = 3, .operands = operands, .num_attrs = 2, .attrs = attrs});
}

void tw_check_record(const check_t *c, const tw_builder_t *at, int site, const finding_t *finding) {
  MlirType i64 = tw_i64(at->context);
  MlirValue words[TW_RECORD_WORDS] = {{NULL}};
  record_words(c, at, site, finding, words);
  int64_t header = (1 + 2 * c->num_parameters + TW_RECORD_WORDS - 1) / TW_RECORD_WORDS * TW_RECORD_WORDS;
  MlirValue first = tw_binary(at, "arith.muli", i64, take_number(c, at), tw_check_i64(at, TW_RECORD_WORDS));
  first = tw_binary(at, "arith.addi", i64, first, tw_check_i64(at, header));
  bool of_thread = tw_is_of_thread(mlirBlockGetParentOperation(at->block));
  for (int i = 0; i < TW_RECORD_WORDS && of_thread; i++)
    if (!mlirValueIsNull(words[i]))
      scatter(at, c->report, tw_binary(at, "arith.addi", i64, first, tw_check_i64(at, i)), words[i]);
  if (of_thread)
    return;
  MlirValue record = record_tile(at, words);
  MlirType type = mlirValueGetType(record);
  MlirValue along = tw_check_along(at, type, 0);
  scatter(at, c->report, tw_binary(at, "arith.addi", type, tw_check_splat(at, first, type), along), record);
}
