/* check.c - in tile-legalize: a debug build that reports what goes wrong, and at which element
 *
 * Before, on a kernel with the hint `check`, whose last two parameters are the report and the owners:
 *
 *   %x = tile.gather %a[%i] else %p                               check_bounds not set: the program says it is inside
 *   tile.store %y, %b[%j]
 *   tile.assert %holds, "message"
 *
 * After:
 *
 *   %inside = 0 <= %i < dim %a
 *   if any(not %inside) { record the first one }
 *   %x = tile.gather %a[%i] mask %inside else %p                  so the access does no harm
 *   %old = tile.atomic cas, this block, %owners[element of %b], expected 0
 *   if any(%old is another block) { record the first one }        of a load behind it, with what it has read
 *   %readers = tile.atomic load %owners[element of %b, behind the others]; if any(...) { record the first one }
 *   if any(shadow of %y, inside of %b) { record the first one }   check_padding.c
 *   tile.store %y, %b[%j]
 *   if any(not %holds) { record the first one }
 *   tile.sync_threads                                             where threads may come to several: they first tell
 *                                                                 each other, by votes, to which
 *
 * and on the module `tile.check_sites`, a string for each place that can be reported. A finding is a record of the
 * report (check.h), which the launcher reads when the kernel is done: nothing traps, so the context lives on. All of
 * this is made of ordinary ops, which both back ends lower as any others.
 *
 * Runs last in tile-legalize, which has left what the program wrote in its order. Kernels without the hint are
 * left alone. A kernel of threads, and the body of a tile.map, is checked as far as bounds and assertions go. An
 * element's owner is the first block that stored to it: the launcher gives each element of an array that is stored to a
 * word, by its address, so that arrays that overlap share words; those whose first word is less than 0 are not watched.
 * A second word, behind all of these, is the element's reader. Loads of an array that is written, or overlaps one that
 * is, set it and look at the owner; stores look at the reader. Atomic accesses own and read nothing; and where a block
 * may wait for another one, by an atomic access that acquires, loads are left alone. */
#include "lowering/common/check.h"
#include "lowering/common/uniform.h"
#include "lowering/launch_record.h"
#include "lowering/layout/memory.h"
#include "lowering/loops.h"
#include "tilewright/dialect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SITES "tile.check_sites"

enum {
  STRIP = 1024, /* elements of a store whose owners are looked at in one go */
  REPORT = 2,   /* parameters, counted from the end */
  OWNERS = 1,
};

static MlirValue array_of(MlirOperation op) { return tw_operand(op, TW_OPERAND_ARRAY); }

static bool is_by_tile(MlirOperation op) { return tw_op_has(op, TW_BY_TILE); }

/* Atomic accesses do not count: others may write there, too. */
static bool writes(MlirOperation op) { return tw_op_stores(op); }
static bool is_atomic(MlirOperation op) { return tw_op_has(op, TW_BY_ELEMENT) && !tw_op_loads(op) && !writes(op); }

/* What the op stores, or has loaded. */
static MlirValue value_of(MlirOperation op) {
  MlirValue value = tw_operand(op, TW_OPERAND_VALUE);
  return mlirValueIsNull(value) ? mlirOperationGetResult(op, 0) : value;
}

static MlirType accessed(MlirOperation op) { return mlirValueGetType(value_of(op)); }

static tw_builder_t before(MlirOperation op) { return tw_build_before(op); }

/* Behind a load, whose value is known there; before a store. */
static tw_builder_t with_value(MlirOperation op) {
  tw_builder_t at = before(writes(op) ? op : mlirOperationGetNextInBlock(op));
  at.location = mlirOperationGetLocation(op);
  return at;
}

/* The array's axis along which axis `d` of the tile runs. */
static intptr_t axis_of(MlirOperation op, intptr_t d) {
  int64_t order[TW_MAX_RANK];
  return tw_attr_ints(op, "order", order, TW_MAX_RANK) == 0 ? d : (intptr_t)order[d];
}

/* ---- out of bounds, of tiles ------------------------------------- */

/* Where a tile begins along its axis `d`. */
static MlirValue start_of(const tw_builder_t *at, MlirOperation op, intptr_t d) {
  intptr_t first;
  tw_operands(op, TW_OPERAND_INDEX, &first);
  MlirValue index = tw_check_wide(at, mlirOperationGetOperand(op, first + d));
  return tw_binary(at, "arith.muli", tw_i64(at->context), index, tw_check_i64(at, tw_extent(accessed(op), d)));
}

/* Which element of a tile that is accessed is the one at an index of the array. */
static MlirValue hit_at(const tw_builder_t *at, MlirOperation op, const MlirValue index[TW_MAX_RANK]) {
  MlirType type = tw_with_element(accessed(op), tw_i64(at->context));
  MlirValue hit = {NULL};
  for (intptr_t d = 0; d < tw_rank(type); d++) {
    MlirValue place = tw_binary(at, "arith.subi", tw_i64(at->context), index[axis_of(op, d)], start_of(at, op, d));
    MlirValue here = tw_check_compare(at, TW_EQ, tw_check_along(at, type, d), tw_check_splat(at, place, type));
    hit = mlirValueIsNull(hit) ? here : tw_check_and(at, hit, here);
  }
  return hit;
}

/* Scalars tell: the first element outside is where the tile begins, or where the array ends. */
static void check_tile_bounds(check_t *c, MlirOperation op) {
  tw_builder_t at = before(op);
  MlirType i64 = tw_i64(c->context), tile = accessed(op);
  MlirValue bad = {NULL};
  finding_t finding = {.rank = tw_rank(tile)};
  for (intptr_t d = 0; d < finding.rank; d++) {
    MlirValue start = start_of(&at, op, d), extent = tw_check_extent(&at, array_of(op), axis_of(op, d));
    MlirValue end = tw_binary(&at, "arith.addi", i64, start, tw_check_i64(&at, tw_extent(tile, d)));
    MlirValue low = tw_compare(&at, TW_SLT, start, tw_check_i64(&at, 0)), high = tw_compare(&at, TW_SGT, end, extent);
    MlirValue outside = tw_check_or(&at, low, high), edge = tw_binary(&at, "arith.maxsi", i64, start, extent);
    edge = tw_select(&at, tw_check_and(&at, high, tw_compare(&at, TW_SGE, start, tw_check_i64(&at, 0))), edge, start);
    finding.index[axis_of(op, d)] = edge;
    bad = tw_check_or(&at, bad, outside);
  }
  mlirOperationRemoveAttributeByName(op, tw_str("tile.in_bounds"));
  if (mlirValueIsNull(bad))
    return;
  bool stores = writes(op);
  MlirType type = stores ? tile : (MlirType){NULL};
  int site = tw_check_site(c, op, stores ? "write outside" : "read outside", array_of(op), type, tw_str(""));
  tw_builder_t in = tw_build_guard(&at, bad);
  if (stores)
    finding.value = tw_check_pick(&in, tw_check_bits(&in, value_of(op)), hit_at(&in, op, finding.index));
  tw_check_record(c, &in, site, &finding);
}

/* ---- out of bounds, of elements ---------------------------------- */

/* One more than the largest offset of an element of an array from its first one; 0 if it has none. */
static MlirValue reach_of(const tw_builder_t *at, MlirValue array) {
  MlirType i64 = tw_i64(at->context);
  MlirValue reach = tw_check_i64(at, 1), empty = {NULL};
  for (intptr_t d = 0; d < tw_rank(mlirValueGetType(array)); d++) {
    MlirValue extent = tw_check_extent(at, array, d);
    MlirValue stride =
        tw_op1_attr(at, "tile.stride", i64, 1, &array, "axis", mlirIntegerAttrGet(tw_i32(at->context), d));
    MlirValue last = tw_binary(at, "arith.subi", i64, extent, tw_check_i64(at, 1));
    MlirValue along = tw_binary(at, "arith.muli", i64, last, stride); /* axes of negative strides reach no higher */
    reach = tw_binary(at, "arith.addi", i64, reach, tw_binary(at, "arith.maxsi", i64, along, tw_check_i64(at, 0)));
    empty = tw_check_or(at, empty, tw_compare(at, TW_SLT, extent, tw_check_i64(at, 1)));
  }
  return tw_select(at, empty, tw_check_i64(at, 0), reach);
}

/* Which elements are inside of the array; with `tile.flat` the indices are one offset in its memory. Null: there are no
 * indices. */
static MlirValue inside_of_array(const tw_builder_t *at, MlirOperation op) {
  intptr_t first, rank = tw_operands(op, TW_OPERAND_INDICES, &first);
  bool flat = tw_has_attr(op, "tile.flat");
  MlirValue inside = {NULL};
  for (intptr_t d = 0; d < rank; d++) {
    MlirValue index = tw_check_wide(at, mlirOperationGetOperand(op, first + d));
    MlirValue extent = flat ? reach_of(at, array_of(op)) : tw_check_extent(at, array_of(op), d);
    extent = tw_check_splat(at, extent, mlirValueGetType(index));
    MlirValue here = tw_check_compare(at, TW_ULT, index, extent); /* less than 0 is much, without a sign */
    inside = mlirValueIsNull(inside) ? here : tw_check_and(at, inside, here);
  }
  return inside;
}

/* Where the elements of an access are: at tiles of indices, or from `start` on along each axis of a tile. */
typedef struct {
  MlirValue indices[TW_MAX_RANK], start[TW_MAX_RANK];
  intptr_t rank;
  bool is_tile;
} where_t;

/* The index of the element at a place in row-major order. */
static void find_index(const tw_builder_t *at, MlirOperation op, const where_t *where, MlirType like, MlirValue place,
                       MlirValue hit, MlirValue out[TW_MAX_RANK]) {
  MlirType i64 = tw_i64(at->context);
  MlirValue rest = where->is_tile ? tw_check_wide(at, place) : place;
  for (intptr_t d = where->rank - 1; d >= 0; d--) {
    if (!where->is_tile) {
      out[d] = tw_check_pick(at, tw_check_wide(at, where->indices[d]), hit);
      continue;
    }
    MlirValue extent = tw_check_i64(at, tw_extent(like, d)), along = tw_binary(at, "arith.remsi", i64, rest, extent);
    out[axis_of(op, d)] = tw_binary(at, "arith.addi", i64, where->start[d], along);
    rest = tw_binary(at, "arith.divsi", i64, rest, extent);
  }
}

/* Records the first element of which `bad` holds; of a part of a tile, as large a one as `bad` is. */
static void record_element(check_t *c, const tw_builder_t *at, MlirOperation op, int site, MlirValue bad,
                           const where_t *where, MlirValue value, MlirValue other) {
  MlirValue any, place = tw_check_first(at, bad, &any);
  tw_builder_t in = tw_build_guard(at, any);
  MlirType like = mlirValueGetType(bad);
  MlirValue hit = tw_check_hit(&in, like, place);
  finding_t finding = {.rank = where->rank};
  find_index(&in, op, where, like, place, hit, finding.index);
  if (!mlirValueIsNull(value)) {
    bool whole = tw_count(mlirValueGetType(value)) == tw_count(like);
    finding.value = tw_check_pick(&in, tw_check_bits(&in, value), whole ? hit : hit_at(&in, op, finding.index));
  }
  if (!mlirValueIsNull(other))
    finding.other = tw_check_pick(&in, tw_check_wide(&in, other), hit);
  tw_check_record(c, &in, site, &finding);
}

static where_t at_indices(MlirOperation op) {
  intptr_t first;
  where_t where = {.rank = tw_operands(op, TW_OPERAND_INDICES, &first)};
  for (intptr_t d = 0; d < where.rank; d++)
    where.indices[d] = mlirOperationGetOperand(op, first + d);
  return where;
}

static where_t at_tile(const tw_builder_t *at, MlirOperation op) {
  where_t where = {.rank = tw_rank(accessed(op)), .is_tile = true};
  for (intptr_t d = 0; d < where.rank; d++)
    where.start[d] = start_of(at, op, d);
  return where;
}

static MlirValue masked(const tw_builder_t *at, MlirOperation op, MlirValue x) {
  MlirValue mask = tw_operand(op, TW_OPERAND_MASK);
  return mlirValueIsNull(mask) ? x : tw_check_and(at, mask, x);
}

static void check_element_bounds(check_t *c, MlirOperation op) {
  tw_builder_t at = before(op);
  MlirValue inside = inside_of_array(&at, op), value = tw_operand(op, TW_OPERAND_VALUE), none = {NULL};
  if (mlirValueIsNull(inside))
    return;
  bool is_read = tw_op_gathers(op);
  MlirType type = is_read ? (MlirType){NULL} : mlirValueGetType(value);
  int site = tw_check_site(c, op, is_read ? "read outside" : "write outside", array_of(op), type,
                           tw_str(tw_has_attr(op, "tile.flat") ? "offset" : ""));
  MlirValue bad = masked(&at, op, tw_check_not(&at, inside));
  where_t where = at_indices(op);
  record_element(c, &at, op, site, bad, &where, is_read ? none : value, none);
  tw_set_operand(op, TW_OPERAND_MASK, masked(&at, op, inside));
}

/* ---- two blocks at one element ----------------------------------- */

/* The word of each element in the array of owners. */
static MlirValue owner_words(check_t *c, const tw_builder_t *at, MlirOperation op, MlirValue first,
                             const where_t *where) {
  MlirValue array = array_of(op);
  MlirType i64 = tw_i64(c->context), type = mlirValueGetType(tw_check_wide(at, where->indices[0]));
  int64_t parameter = mlirBlockArgumentGetArgNumber(array);
  MlirValue each = tw_check_header_word(c, at, 2 + 2 * parameter), words = tw_check_splat(at, first, type);
  for (intptr_t d = 0; d < where->rank; d++) {
    MlirValue stride =
        tw_op1_attr(at, "tile.stride", i64, 1, &array, "axis", mlirIntegerAttrGet(tw_i32(at->context), d));
    stride = tw_check_splat(at, tw_binary(at, "arith.muli", i64, stride, each), type);
    MlirValue term = tw_binary(at, "arith.muli", type, tw_check_wide(at, where->indices[d]), stride);
    words = tw_binary(at, "arith.addi", type, words, term);
  }
  return words;
}

/* An atomic access to the words of `c->owners`, which gives what they were: takes those that are 0 for `value`, puts it
 * there, or only looks. */
static MlirValue touch_words(check_t *c, const tw_builder_t *at, int kind, MlirValue words, MlirValue mask,
                             int32_t value) {
  MlirType i32 = tw_i32(c->context), type = tw_with_element(mlirValueGetType(words), i32);
  bool takes = kind == TW_ATOMIC_CAS;
  MlirValue me = tw_binary(at, "arith.addi", i32, c->block, tw_const_int(at, i32, 1));
  MlirValue to = tw_check_splat(at, takes ? me : tw_const_int(at, i32, value), type);
  MlirValue operands[] = {c->owners, words, to, takes ? tw_const_int(at, type, 0) : mask, mask};
  const int32_t taking[] = {1, 1, 1, 1, 1}, putting[] = {1, 1, 1, 0, 1};
  tw_attr_t attrs[] = {{"kind", mlirIntegerAttrGet(i32, kind)},
                       {"memory_order", mlirIntegerAttrGet(i32, TW_ORDER_RELAXED)},
                       {"memory_scope", mlirIntegerAttrGet(i32, TW_SCOPE_DEVICE)},
                       {"operandSegmentSizes", mlirDenseI32ArrayGet(c->context, 5, takes ? taking : putting)},
                       {"check_bounds", mlirUnitAttrGet(c->context)}};
  return tw_op1_attrs(at, "tile.atomic", type, takes ? 5 : 4, operands, 5, attrs);
}

/* Which words are another block's. */
static MlirValue of_others(check_t *c, const tw_builder_t *at, MlirValue words) {
  MlirType i32 = tw_i32(c->context), type = mlirValueGetType(words);
  MlirValue me = tw_binary(at, "arith.addi", i32, c->block, tw_const_int(at, i32, 1));
  MlirValue taken = tw_check_compare(at, TW_NE, words, tw_const_int(at, type, 0));
  return tw_check_and(at, taken, tw_check_compare(at, TW_NE, words, tw_check_splat(at, me, type)));
}

/* Records the first of the elements whose word is another block's. */
static void record_other(check_t *c, const tw_builder_t *at, MlirOperation op, const char *kind, MlirValue words,
                         const where_t *where) {
  MlirType type = mlirValueGetType(words);
  MlirValue block = tw_binary(at, "arith.subi", type, words, tw_const_int(at, type, 1));
  int site = tw_check_site(c, op, kind, array_of(op), accessed(op), tw_str(""));
  record_element(c, at, op, site, of_others(c, at, words), where, value_of(op), block);
}

/* The elements at these indices, as far as the mask has them. A block that reads says so before it looks at who has
 * written, one that writes says so before it looks at who has read: so one of the two sees the other. The word of an
 * element that several blocks read is -1. */
static void check_blocks(check_t *c, const tw_builder_t *at, MlirOperation op, MlirValue first, const where_t *where,
                         MlirValue mask) {
  MlirValue words = owner_words(c, at, op, first, where);
  MlirValue all = tw_check_header_word(c, at, 1 + 2 * (int64_t)(c->num_parameters - OWNERS));
  MlirType type = mlirValueGetType(words);
  MlirValue readers = tw_binary(at, "arith.addi", type, words, tw_check_splat(at, all, type));
  if (writes(op)) {
    record_other(c, at, op, "two writers", touch_words(c, at, TW_ATOMIC_CAS, words, mask, 0), where);
    if (!c->waits)
      record_other(c, at, op, "write of read", touch_words(c, at, TW_ATOMIC_LOAD, readers, mask, 0), where);
    return;
  }
  MlirValue before_us = touch_words(c, at, TW_ATOMIC_CAS, readers, mask, 0);
  MlirValue shared = tw_check_and(at, mask, of_others(c, at, before_us));
  touch_words(c, at, TW_ATOMIC_XCHG, readers, shared, -1);
  record_other(c, at, op, "read of written", touch_words(c, at, TW_ATOMIC_LOAD, words, mask, 0), where);
}

/* A guard within which the array's owners are watched; `*first` is the word of its first element. */
static tw_builder_t where_watched(check_t *c, MlirOperation op, MlirValue *first) {
  tw_builder_t at = with_value(op);
  *first = tw_check_header_word(c, &at, 1 + 2 * mlirBlockArgumentGetArgNumber(array_of(op)));
  return tw_build_guard(&at, tw_compare(&at, TW_SGE, *first, tw_check_i64(&at, 0)));
}

/* Loads of a kernel whose blocks wait for each other are left alone. */
static void check_element_owners(check_t *c, MlirOperation op) {
  MlirValue first;
  where_t where = at_indices(op);
  if (where.rank == 0)
    return;
  tw_builder_t in = where_watched(c, op, &first);
  MlirValue mask = masked(&in, op, inside_of_array(&in, op));
  check_blocks(c, &in, op, first, &where, mask);
}

/* The largest part of a tile, along its first axes, that is not too large; how many there are along each axis. */
static int64_t strip_of(MlirType tile, int64_t shape[TW_MAX_RANK], int64_t parts[TW_MAX_RANK]) {
  int64_t count = tw_count(tile), strips = 1;
  for (intptr_t d = 0; d < tw_rank(tile); d++) {
    int64_t extent = tw_extent(tile, d), less = count > STRIP ? count / STRIP : 1;
    parts[d] = less < extent ? less : extent;
    shape[d] = extent / parts[d];
    count /= parts[d];
    strips *= parts[d];
  }
  return strips;
}

/* The elements of strip `number` of a tile: where they are in the array, and which of them are inside. */
static MlirValue strip_indices(const tw_builder_t *at, MlirOperation op, MlirValue number, const int64_t *parts,
                               MlirType strip, where_t *where) {
  MlirType i64 = tw_i64(at->context), type = tw_with_element(strip, i64);
  MlirValue inside = {NULL};
  for (intptr_t d = tw_rank(strip) - 1; d >= 0; d--) {
    MlirValue all = tw_check_i64(at, parts[d]), part = tw_binary(at, "arith.remsi", i64, number, all);
    number = tw_binary(at, "arith.divsi", i64, number, all);
    part = tw_binary(at, "arith.muli", i64, part, tw_check_i64(at, tw_extent(strip, d)));
    MlirValue start = tw_binary(at, "arith.addi", i64, start_of(at, op, d), part);
    MlirValue index = tw_binary(at, "arith.addi", type, tw_check_along(at, type, d), tw_check_splat(at, start, type));
    MlirValue extent = tw_check_splat(at, tw_check_extent(at, array_of(op), axis_of(op, d)), type);
    MlirValue here = tw_check_compare(at, TW_ULT, index, extent);
    inside = mlirValueIsNull(inside) ? here : tw_check_and(at, inside, here);
    where->start[d] = start;
    where->indices[axis_of(op, d)] = index;
  }
  return inside;
}

/* A loop of i64 from 0 to a constant, without results: where its body goes, and its number. */
static tw_builder_t build_loop(const tw_builder_t *at, int64_t count, MlirValue *number) {
  MlirType i64 = tw_i64(at->context);
  MlirBlock body = mlirBlockCreate(1, &i64, &at->location);
  MlirValue operands[] = {tw_check_i64(at, 0), tw_check_i64(at, count), tw_check_i64(at, 1)};
  tw_builder_t in = tw_build_at_end(body, at->location);
  tw_builder_t inside = tw_build_before(tw_build(&in, "scf.yield", (tw_op_parts_t){0}));
  tw_build_for(at, TW_FOR_INITS, operands, tw_region_with(body));
  *number = mlirBlockGetArgument(body, 0);
  return inside;
}

/* A large tile in strips, so that its indices take few registers. */
static void check_tile_owners(check_t *c, MlirOperation op) {
  MlirType tile = accessed(op);
  int64_t shape[TW_MAX_RANK], parts[TW_MAX_RANK];
  int64_t strips = strip_of(tile, shape, parts);
  if (tw_rank(tile) == 0)
    return;
  MlirValue first, number;
  where_t where = {.rank = tw_rank(tile), .is_tile = true};
  tw_builder_t in = where_watched(c, op, &first);
  number = tw_check_i64(&in, 0);
  if (strips > 1)
    in = build_loop(&in, strips, &number);
  MlirType strip = tw_tile_type(tw_i64(c->context), tw_rank(tile), shape);
  MlirValue inside = strip_indices(&in, op, number, parts, strip, &where);
  check_blocks(c, &in, op, first, &where, inside);
}

/* ---- undetermined padding ---------------------------------------- */

/* What is stored where it is inside of the array. */
static void check_stored_padding(check_t *c, MlirOperation op) {
  MlirValue shadow = tw_check_shadow(c, tw_operand(op, TW_OPERAND_VALUE)), inside, none = {NULL};
  if (mlirValueIsNull(shadow))
    return;
  tw_builder_t at = before(op);
  where_t where = is_by_tile(op) ? at_tile(&at, op) : at_indices(op);
  if (is_by_tile(op)) {
    inside = tw_check_inside_tile(&at, op, accessed(op));
  } else {
    inside = inside_of_array(&at, op);
    inside = mlirValueIsNull(inside) ? tw_operand(op, TW_OPERAND_MASK) : masked(&at, op, inside);
  }
  MlirValue bad = mlirValueIsNull(inside) ? shadow : tw_check_and(&at, shadow, inside);
  int site = tw_check_site(c, op, "padding stored", array_of(op), accessed(op), tw_str(""));
  record_element(c, &at, op, site, bad, &where, tw_operand(op, TW_OPERAND_VALUE), none);
}

/* An index, a mask or a condition that depends on padding. */
static void check_used_padding(check_t *c, MlirOperation op, intptr_t operand, const char *what) {
  MlirValue shadow = tw_check_shadow(c, mlirOperationGetOperand(op, operand));
  if (mlirValueIsNull(shadow))
    return;
  tw_builder_t at = before(op);
  int site = tw_check_site(c, op, "padding used", array_of(op), (MlirType){NULL}, tw_str(what));
  MlirValue any, none = {NULL};
  (void)tw_check_first(&at, shadow, &any);
  tw_builder_t in = tw_build_guard(&at, any);
  tw_check_record(c, &in, site, &(finding_t){.other = none});
}

static void check_padding(check_t *c, MlirOperation op) {
  intptr_t first, count = tw_operands(op, TW_OPERAND_INDICES, &first);
  for (intptr_t i = first; i < first + count; i++)
    check_used_padding(c, op, i, "index");
  if (!mlirValueIsNull(tw_operand(op, TW_OPERAND_MASK)) && tw_operands(op, TW_OPERAND_MASK, &first) == 1)
    check_used_padding(c, op, first, "mask");
  if (writes(op) || is_atomic(op))
    check_stored_padding(c, op);
}

/* ---- what the program says --------------------------------------- */

/* A finding instead of a stop: the kernel goes on. */
static void check_assert(check_t *c, MlirOperation op) {
  check_used_padding(c, op, 0, "condition");
  tw_builder_t at = before(op);
  MlirValue any, bad = tw_check_not(&at, mlirOperationGetOperand(op, 0)), none = {NULL};
  int site = tw_check_site(c, op, "assertion", none, (MlirType){NULL}, tw_attr_string(op, "message"));
  (void)tw_check_first(&at, bad, &any);
  tw_builder_t in = tw_build_guard(&at, any);
  tw_check_record(c, &in, site, &(finding_t){.other = none});
  mlirOperationDestroy(op);
}

/* A multiple that the program says is the number itself: the product of its quotient and the divisor. */
static void check_assumed(check_t *c, MlirOperation op) {
  tw_builder_t at = tw_build_before(mlirOperationGetNextInBlock(op));
  at.location = mlirOperationGetLocation(op);
  MlirOperation quotient = tw_def(mlirOperationGetOperand(op, 0));
  MlirValue none = {NULL}, input = mlirOperationGetOperand(quotient, 0);
  MlirType type = mlirValueGetType(input);
  if (tw_op_is(quotient, TW_ARITH_DIVUI))
    type = mlirIntegerTypeUnsignedGet(c->context, tw_bits(type));
  int64_t divisor = 0;
  char text[32];
  (void)tw_known_int(mlirOperationGetOperand(op, 1), &divisor);
  if (tw_op_is(quotient, TW_ARITH_DIVUI) && divisor < 0) /* the bits of a large one */
    divisor += (int64_t)1 << tw_bits(type);
  snprintf(text, sizeof text, "%lld", (long long)divisor);
  int site = tw_check_site(c, op, "not divisible", none, type, tw_str(text));
  tw_builder_t in = tw_build_guard(&at, tw_compare(&at, TW_NE, input, mlirOperationGetResult(op, 0)));
  tw_check_record(c, &in, site, &(finding_t){.value = tw_check_bits(&in, input)});
}

/* ---- barriers ---------------------------------------------------- */

static bool meets_block(MlirOperation op) { return tw_op_has(op, TW_MEETS_BLOCK); }

/* Whether threads may come to one of the barriers while others come to another one. */
static bool may_part(const check_t *c, const tw_ops_t *barriers) {
  tw_uniform_t uniform;
  bool parts = false;
  tw_uniform_find(&uniform, c->func);
  for (int i = 0; i < barriers->count; i++)
    parts |= !tw_uniform_reaches(&uniform, barriers->at[i]);
  tw_uniform_free(&uniform);
  return parts && barriers->count > 1;
}

static MlirValue vote(const tw_builder_t *at, tw_block_vote_t kind, bool yes) {
  MlirType i1 = mlirIntegerTypeGet(at->context, 1);
  MlirValue predicate = tw_const_int(at, i1, yes);
  return tw_op1_attr(at, "tile.sync_vote", i1, 1, &predicate, "kind",
                     mlirIntegerAttrGet(tw_i32(at->context), (int64_t)kind));
}

/* The threads that meet tell each other at which barrier they are, bit by bit of its number. */
static void check_barrier(check_t *c, MlirOperation op, int number, int count) {
  tw_builder_t at = before(op);
  MlirType i1 = mlirIntegerTypeGet(c->context, 1);
  MlirValue parted = tw_const_int(&at, i1, 0), none = {NULL};
  for (int bit = 1; bit < count; bit *= 2) {
    MlirValue some = vote(&at, TW_BLOCK_SOME, number & bit), every = vote(&at, TW_BLOCK_EVERY, number & bit);
    parted = tw_binary(&at, "arith.ori", i1, parted, tw_binary(&at, "arith.xori", i1, some, every));
  }
  int site = tw_check_site(c, op, "divergent barrier", none, (MlirType){NULL}, tw_str(""));
  tw_builder_t in = tw_build_guard(&at, parted);
  tw_check_record(c, &in, site, &(finding_t){.other = none});
}

/* On the CPU threads that part wait at a barrier in vain, which the launch tells without a check. */
static void check_barriers(check_t *c) {
  MlirStringRef target = tw_attr_string(tw_module_of(c->func), "tile.target");
  if (target.length < 3 || strncmp(target.data, "sm_", 3) != 0)
    return;
  tw_ops_t barriers = tw_ops_in(c->func, meets_block, MlirWalkPreOrder);
  if (may_part(c, &barriers))
    for (int i = 0; i < barriers.count; i++)
      check_barrier(c, barriers.at[i], i, barriers.count);
  tw_ops_free(&barriers);
}

/* ---- the pass ---------------------------------------------------- */

static bool is_checked(MlirOperation op) {
  return tw_op_has(op, TW_BY_TILE | TW_BY_ELEMENT) || tw_op_is(op, TW_TILE_ASSERT) || tw_has_attr(op, TW_ASSUMED);
}

static bool is_of_parameter(const check_t *c, MlirOperation op) {
  MlirValue array = array_of(op);
  return mlirValueIsABlockArgument(array) &&
         mlirBlockEqual(mlirBlockArgumentGetOwner(array), tw_region_block(c->func, 0));
}

static void check_op(check_t *c, MlirOperation op) {
  if (tw_op_is(op, TW_TILE_ASSERT)) {
    check_assert(c, op);
    return;
  }
  if (tw_has_attr(op, TW_ASSUMED)) {
    check_assumed(c, op);
    return;
  }
  check_padding(c, op);
  if (is_by_tile(op) ? tw_has_attr(op, "tile.in_bounds") : !tw_has_attr(op, "check_bounds"))
    (is_by_tile(op) ? check_tile_bounds : check_element_bounds)(c, op);
  if (!tw_is_of_thread(op) && !is_atomic(op) && is_of_parameter(c, op) && (writes(op) || !c->waits))
    (is_by_tile(op) ? check_tile_owners : check_element_owners)(c, op);
}

/* The number of the block that runs, and of those along an axis. */
/* Whether a block may learn from an atomic access what another one has done before. */
static bool may_wait(MlirOperation op) {
  int64_t order = tw_attr_int(op, "memory_order", TW_ORDER_RELAXED);
  bool acquires = order == TW_ORDER_ACQUIRE || order == TW_ORDER_ACQ_REL || order == TW_ORDER_SEQ_CST;
  return acquires && mlirOperationGetNumResults(op) > 0 && !tw_is_unused(mlirOperationGetResult(op, 0));
}

static void check_kernel(check_t *c) {
  MlirBlock body = tw_region_block(c->func, 0);
  tw_builder_t at = tw_build_before(mlirBlockGetFirstOperation(body));
  c->num_parameters = (int)mlirBlockGetNumArguments(body);
  c->report = mlirBlockGetArgument(body, c->num_parameters - REPORT);
  c->owners = mlirBlockGetArgument(body, c->num_parameters - OWNERS);
  tw_ops_t ops = tw_ops_in(c->func, is_checked, MlirWalkPreOrder);
  c->block = tw_linear_number(&at, "tile.block_id", "tile.num_blocks");
  if (tw_has_attr(c->func, "tile.simt"))
    c->thread = tw_linear_number(&at, "tile.thread_id", "tile.block_dim");
  for (int i = 0; i < ops.count; i++)
    c->waits = c->waits || may_wait(ops.at[i]);
  tw_check_find_tainted(c);
  for (int i = 0; i < ops.count; i++)
    check_op(c, ops.at[i]);
  if (!mlirValueIsNull(c->thread))
    check_barriers(c);
  tw_ops_free(&ops);
  tw_map_free(&c->tainted);
  tw_map_free(&c->shadows);
}

/* Those of the module's kernels so far. */
static void read_sites(check_t *c, MlirAttribute list) {
  bool is_list = !mlirAttributeIsNull(list) && mlirAttributeIsAArray(list);
  for (intptr_t i = 0; is_list && i < mlirArrayAttrGetNumElements(list); i++) {
    c->sites = tw_room(c->sites, (size_t)c->num_sites, sizeof *c->sites);
    c->sites[c->num_sites++] = mlirArrayAttrGetElement(list, i);
  }
}

/* Whether a parameter, counted from the end, is an array of one axis whose elements are integers of so many bits. */
static bool takes_words(MlirOperation func, int from_end, unsigned bits) {
  MlirBlock body = tw_region_block(func, 0);
  intptr_t at = mlirBlockGetNumArguments(body) - from_end;
  if (at < 0)
    return false;
  MlirType type = mlirValueGetType(mlirBlockGetArgument(body, at));
  return mlirTypeIsAMemRef(type) && tw_rank(type) == 1 && mlirTypeIsAInteger(tw_element(type)) &&
         mlirIntegerTypeIsSignless(tw_element(type)) && tw_bits(type) == bits;
}

bool tw_check(MlirOperation func) {
  if (!tw_has_hint_check(func) || mlirBlockIsNull(tw_region_block(func, 0)))
    return true;
  if (!takes_words(func, REPORT, 64) || !takes_words(func, OWNERS, 32)) {
    tw_op_error(func, "has the hint check, so its last two parameters must be the report, a memref<?xi64>, and the "
                      "owners, a memref<?xi32>");
    return false;
  }
  check_t c = {.func = func, .context = mlirOperationGetContext(func)};
  MlirOperation module = tw_module_of(func);
  read_sites(&c, tw_attr(module, SITES));
  check_kernel(&c);
  tw_set_attr(module, SITES, mlirArrayAttrGet(c.context, c.num_sites, c.sites));
  free(c.sites);
  return true;
}
