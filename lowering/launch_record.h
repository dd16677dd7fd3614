/* launch_record.h - what passes know of a kernel besides its code: the launch record, and the hints of the program
 *
 *   func.func @k(...) attributes {tile.kernel, tile.hints = {num_stages = 3 : i32},
 *                                 tile.launch = {num_warps = 8 : i32, persistent = 1 : i32, split = {...}}}
 *
 * Both stand on the kernel's function, so passes may run on several kernels at once. A field of the record has, made
 * from its row in include/tilewright/launch_record.def:
 *
 *   tw_launch_has_NAME(op), tw_launch_set_NAME(op, ...)       a list: set_NAME(op, items, count)
 *   tw_launch_NAME(op, otherwise)                             a number; of another field:
 *   tw_launch_get_NAME(op, &out)                              false where it is not set or malformed
 *
 * and a hint, from hints.def: tw_hint_NAME(op, otherwise), tw_has_hint_NAME(op). `op` is the function or any op in it.
 */
#ifndef TILEWRIGHT_LOWERING_LAUNCH_RECORD_H
#define TILEWRIGHT_LOWERING_LAUNCH_RECORD_H

#include "lowering/ir.h"
#include "tilewright/launch_record.h"

#define TW_LAUNCH "tile.launch"
#define TW_HINTS "tile.hints"
/* What the layouts of a kernel cost, and the runners-up: for the tuner. */
#define TW_LAYOUT_COSTS "tile.layout_costs"
#define TW_LAYOUTS "tile.layouts" /* of tiles with names (gpu/layout/named_choices.h) */

/* ---- fields, by their number ---------------------------------------------------------------------- */

enum {
#define TW_FIELD_NUMBER(type, name, least, most, meaning, writer, reader) TW_FIELD_OF_##name,
#define TW_FIELD_NUMBERS(type, name, count, least, most, meaning, writer, reader) TW_FIELD_OF_##name,
#define TW_FIELD_STRUCT(of, name, meaning, writer, reader) TW_FIELD_OF_##name,
#define TW_FIELD_LIST(of, name, most, meaning, writer, reader) TW_FIELD_OF_##name,
#include "tilewright/launch_record.def"
};

bool tw_launch_has(MlirOperation op, int field);
int64_t tw_launch_number(MlirOperation op, int field, int64_t otherwise);
/* `values` are of the type of the row: `count` numbers or structs. */
void tw_launch_set(MlirOperation op, int field, const void *values, size_t count);
/* The first entries of a list, or the struct; how many there are, at most `most`. */
size_t tw_launch_get(MlirOperation op, int field, void *values, size_t most);

#define TW_FIELD_NUMBER(type, name, least, most, meaning, writer, reader)                                              \
  static inline bool tw_launch_has_##name(MlirOperation op) { return tw_launch_has(op, TW_FIELD_OF_##name); }          \
  static inline int64_t tw_launch_##name(MlirOperation op, int64_t otherwise) {                                        \
    return tw_launch_number(op, TW_FIELD_OF_##name, otherwise);                                                        \
  }                                                                                                                    \
  static inline void tw_launch_set_##name(MlirOperation op, type value) {                                              \
    tw_launch_set(op, TW_FIELD_OF_##name, &value, 1);                                                                  \
  }
#define TW_FIELD_NUMBERS(type, name, count, least, most, meaning, writer, reader)                                      \
  static inline bool tw_launch_has_##name(MlirOperation op) { return tw_launch_has(op, TW_FIELD_OF_##name); }          \
  static inline void tw_launch_set_##name(MlirOperation op, const type values[count]) {                                \
    tw_launch_set(op, TW_FIELD_OF_##name, values, count);                                                              \
  }
#define TW_FIELD_STRUCT(of, name, meaning, writer, reader)                                                             \
  static inline bool tw_launch_has_##name(MlirOperation op) { return tw_launch_has(op, TW_FIELD_OF_##name); }          \
  static inline void tw_launch_set_##name(MlirOperation op, const tw_##of##_t *value) {                                \
    tw_launch_set(op, TW_FIELD_OF_##name, value, 1);                                                                   \
  }                                                                                                                    \
  static inline bool tw_launch_get_##name(MlirOperation op, tw_##of##_t *out) {                                        \
    return tw_launch_get(op, TW_FIELD_OF_##name, out, 1) == 1;                                                         \
  }
#define TW_FIELD_LIST(of, name, most, meaning, writer, reader)                                                         \
  static inline bool tw_launch_has_##name(MlirOperation op) { return tw_launch_has(op, TW_FIELD_OF_##name); }          \
  static inline void tw_launch_set_##name(MlirOperation op, const tw_##of##_t *items, size_t count) {                  \
    tw_launch_set(op, TW_FIELD_OF_##name, items, count);                                                               \
  }                                                                                                                    \
  static inline size_t tw_launch_get_##name(MlirOperation op, tw_##of##_t out[most]) {                                 \
    return tw_launch_get(op, TW_FIELD_OF_##name, out, most);                                                           \
  }
#include "tilewright/launch_record.def"

/* ---- hints -------------------------------------------------------------------------------------------- */

bool tw_has_hint(MlirOperation op, const char *name);
int64_t tw_hint(MlirOperation op, const char *name, int64_t otherwise);
/* A word; empty where the program does not say it. */
MlirStringRef tw_hint_text(MlirOperation op, const char *name);
/* The hint `kind(tile)` for the name that a tile has in Python; empty where there is none. */
MlirStringRef tw_tile_hint(MlirValue tile, const char *kind);

/* Such hints in the order of the dictionary: calls `visit` with the name of the tile and the text, until it is false.
 */
bool tw_each_tile_hint(MlirOperation func, const char *kind,
                       bool (*visit)(void *user, MlirStringRef tile, MlirStringRef text), void *user);

/* The name that a tile has in Python, which its op's location tells: loc("%acc"(...)); empty where it has none. */
MlirStringRef tw_tile_name(MlirValue tile);

/* Another value than the program's, by tile-plan-block alone, which plans again what did not fit. */
void tw_plan_hint(MlirOperation func, const char *name, int64_t value);
/* Takes a hint of the program back. */
void tw_drop_hint(MlirOperation func, const char *name);

#define TW_HINT(name, least, most, meaning)                                                                            \
  static inline bool tw_has_hint_##name(MlirOperation op) { return tw_has_hint(op, #name); }                           \
  static inline int64_t tw_hint_##name(MlirOperation op, int64_t otherwise) { return tw_hint(op, #name, otherwise); }
#define TW_WORD_HINT(name, words, meaning)                                                                             \
  static inline MlirStringRef tw_hint_##name(MlirOperation op) { return tw_hint_text(op, #name); }
#define TW_TILE_HINT(name, meaning)                                                                                    \
  static inline MlirStringRef tw_tile_hint_##name(MlirValue tile) { return tw_tile_hint(tile, #name); }
#include "tilewright/hints.def"

/* The warps that hold the kernel's tiles: as decided, else as the program wants it, else `otherwise`. */
int64_t tw_num_warps(MlirOperation op, int64_t otherwise);

/* ---- words of a launch ------------------------------------------------------------------------------- */

/* Words that an argument of a kernel takes: pointer, extents and strides of an array, or one. */
int tw_words_of(MlirType argument);
/* The first word of an argument, which of an array is its pointer. */
int tw_first_word(MlirValue argument);

/* How the launch record names an array: that word, its rank, the bits of an element. */
tw_array_place_t tw_array_place(MlirValue array);

#endif /* TILEWRIGHT_LOWERING_LAUNCH_RECORD_H */
