/* check.h - shared by the files of checked kernels, which tile-legalize makes if the hint `check` asks for them
 *
 * A *finding* is what a checked launch tells of one access that went wrong: which site of the program, which block (of
 * a kernel of threads: and which thread), which element of which array, and its value. A block writes it as
 * TW_RECORD_WORDS words of i64 behind the header of the report, an array of i64; python/tilewright/checking.py reads
 * them. The words of the header: how many findings there are, then two for each parameter of the kernel, as
 * tw_check_owner_word reads them. */
#ifndef TILEWRIGHT_LOWERING_COMMON_CHECK_H
#define TILEWRIGHT_LOWERING_COMMON_CHECK_H

#include "lowering/ir.h"

/* Marks a number that the program says to be a multiple of another one. */
#define TW_ASSUMED "tile.assumed"

/* Rewrites a kernel with the hint `check`; false after an error. */
bool tw_check(MlirOperation func);

/* Of a record: site, block, the other block or the thread, value, index for each axis. */
enum { TW_RECORD_WORDS = 16, TW_WORD_SITE = 0, TW_WORD_BLOCK, TW_WORD_OTHER, TW_WORD_VALUE, TW_WORD_INDEX };

typedef struct {
  MlirOperation func;
  MlirContext context;
  MlirValue report, owners; /* the last two parameters */
  MlirValue block;          /* its number in the grid, x fastest */
  MlirValue thread;         /* the same of a thread in its block; null in a kernel of tiles */
  bool waits;               /* a block may wait for what another one writes */
  int num_parameters;
  MlirAttribute *sites; /* strings, of the module */
  int num_sites;
  tw_map_t tainted; /* values that may depend on undetermined padding */
  tw_map_t shadows; /* value -> i1 of each element: whether it does */
} check_t;

/* What a finding says beside its site and block; null where it has none. */
typedef struct {
  MlirValue other, value;
  MlirValue index[TW_MAX_RANK];
  intptr_t rank;
} finding_t;

/* ---- check_findings.c: numbers, tiles of indices, records ------------------------------------------------- */

MlirValue tw_check_i64(const tw_builder_t *at, int64_t value);
/* An integer or a tile of them as i64; the bits of a number without a sign, as the low ones of an i64. */
MlirValue tw_check_wide(const tw_builder_t *at, MlirValue x);
MlirValue tw_check_bits(const tw_builder_t *at, MlirValue x);
/* A scalar as each element of a tile like `like`; itself where that is a scalar. */
MlirValue tw_check_splat(const tw_builder_t *at, MlirValue scalar, MlirType like);
MlirValue tw_check_and(const tw_builder_t *at, MlirValue x, MlirValue y);
MlirValue tw_check_not(const tw_builder_t *at, MlirValue x);
MlirValue tw_check_or(const tw_builder_t *at, MlirValue x, MlirValue y);
/* arith.cmpi of scalars or tiles. */
MlirValue tw_check_compare(const tw_builder_t *at, int predicate, MlirValue x, MlirValue y);
/* 0, 1, 2 ... along an axis of a shape, the same along the others; as i64. */
MlirValue tw_check_along(const tw_builder_t *at, MlirType like, intptr_t axis);
/* The extent of an array along an axis, as i64. */
MlirValue tw_check_extent(const tw_builder_t *at, MlirValue array, intptr_t axis);

/* The place in row-major order of the first element that is true; i32, `none` where there is none. */
MlirValue tw_check_first(const tw_builder_t *at, MlirValue found, MlirValue *any);
/* Which element of a tile of that shape is the one at a place; null for a scalar. */
MlirValue tw_check_hit(const tw_builder_t *at, MlirType like, MlirValue place);
/* That element, of a tile of integers; as i64. */
MlirValue tw_check_pick(const tw_builder_t *at, MlirValue tile, MlirValue hit);

/* The number of a new site: a kind, the op's array (or -1), the type of the value, and a text. */
int tw_check_site(check_t *c, MlirOperation op, const char *kind, MlirValue array, MlirType value, MlirStringRef text);
/* Appends to the report, where `at` stands. */
void tw_check_record(const check_t *c, const tw_builder_t *at, int site, const finding_t *finding);
/* Words of the header: of parameter `index`, the first word of its elements in the array of owners (or less than 0),
 * and how many words an element has. Of the array of owners itself, where the words of the readers begin. */
MlirValue tw_check_header_word(const check_t *c, const tw_builder_t *at, int64_t word);

/* ---- check_padding.c ---------------------------------------------------------------------------------------- */

/* Finds out which values may depend on undetermined padding. */
void tw_check_find_tainted(check_t *c);
/* Whether each element does, made behind the value; null where none can. */
MlirValue tw_check_shadow(check_t *c, MlirValue value);
/* Which elements of the tile at a tile index are inside of the array. */
MlirValue tw_check_inside_tile(const tw_builder_t *at, MlirOperation access, MlirType tile);

#endif /* TILEWRIGHT_LOWERING_COMMON_CHECK_H */
