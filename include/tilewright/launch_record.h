/* tilewright/launch_record.h - what a launch must know of a kernel: the structs of launch_record.def, and their bytes
 *
 * The bytes, numbers of them little-endian:
 *   "TWLR", the version of 8 bytes, then each field that is set: its number of 2 bytes, the length of 4, the payload.
 * The payload has 8 bytes for each number, and before the structs of a list 8 for how many they are. */
#ifndef TILEWRIGHT_LAUNCH_RECORD_H
#define TILEWRIGHT_LAUNCH_RECORD_H

#include "tilewright/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TW_MAX_WORDS = 512,    /* 8-byte words of parameters: the 4 KiB that every GPU takes */
  TW_MAX_PLACE_RANK = 8, /* dimensions of an array argument */
  TW_MAX_MAPS = 64,      /* tensor maps of a kernel, 128 bytes each before the words */
  TW_MAX_MAP_RANK = 5,
  TW_MAX_NO_ALIAS = 1024, /* pairs of arrays that a launch looks at */
  TW_MAX_LOADED = 64,     /* as many arrays as a kernel may have */
  TW_SLICE_CLASSES = 3,
  TW_PLANS = 5,
  TW_COARSEN_STORES = 24,
  TW_MAX_VIEWS = 8,              /* of arrays */
  TW_MOST_BLOCKS_ACROSS = 65535, /* along axes 1 and 2 of a grid */
  TW_EXTENT_FACTORS = 4
};

#define TW_STRUCT(struct_) typedef struct tw_##struct_ {
#define TW_STRUCT_END(struct_)                                                                                         \
  }                                                                                                                    \
  tw_##struct_##_t;
#define TW_NUMBER(struct_, type, name, least, most, meaning) type name;
#define TW_NUMBERS(struct_, type, name, count, least, most, meaning) type name[count];
#define TW_MEMBER(struct_, of, name, meaning) tw_##of##_t name;
#define TW_LIST(struct_, of, name, most, meaning)                                                                      \
  uint32_t num_##name;                                                                                                 \
  tw_##of##_t name[most];
#define TW_FIELD_NUMBER(type, name, least, most, meaning, writer, reader) type name;
#define TW_FIELD_NUMBERS(type, name, count, least, most, meaning, writer, reader) type name[count];
#define TW_FIELD_STRUCT(of, name, meaning, writer, reader)                                                             \
  bool has_##name;                                                                                                     \
  tw_##of##_t name;
#define TW_FIELD_LIST(of, name, most, meaning, writer, reader)                                                         \
  uint32_t num_##name;                                                                                                 \
  tw_##of##_t name[most];
#include "tilewright/launch_record.def"

/* What PTX may begin with, before a digit from 0 to 4: the level at which the driver's assembler works on it. */
#define TW_PTX_OPT_LEVEL "// opt_level "

/* The rows as data, for what goes through all of them. */
typedef enum tw_row_kind { TW_ROW_NUMBER, TW_ROW_MEMBER, TW_ROW_OPTION, TW_ROW_LIST } tw_row_kind_t;

typedef struct tw_row {
  const char *name;
  size_t offset;                  /* in the struct around it */
  size_t present;                 /* the same of `has_name` or `num_name` */
  size_t size, count;             /* of one; how many there are, or may be */
  int64_t least, most;            /* of numbers */
  const struct tw_row_struct *of; /* of other kinds */
  tw_row_kind_t kind;
  bool is_signed, is_array; /* of numbers */
} tw_row_t;

typedef struct tw_row_struct {
  const char *name;
  const tw_row_t *rows;
  size_t count;
} tw_row_struct_t;

/* Those of tw_launch_record_t: its fields. */
extern const tw_row_struct_t tw_launch_rows;

int64_t tw_row_number(const tw_row_t *row, const void *numbers, size_t index);
void tw_row_set_number(const tw_row_t *row, void *numbers, size_t index, int64_t value);
/* How many structs or numbers of the row its struct has. */
size_t tw_row_count(const tw_row_t *row, const void *around);
void tw_row_set_count(const tw_row_t *row, void *around, size_t count);

/* Differs where the rows do: bytes of one version are read by no other. */
uint64_t tw_launch_record_version(void);

/* Refuses impossible values, and names the field: bytes may come from a file. */
tw_status_t tw_launch_record_check(const tw_launch_record_t *record);
/* Appends the bytes of a valid record. */
tw_status_t tw_launch_record_encode(const tw_launch_record_t *record, tw_strbuf_t *out);
/* Any bytes may be passed; a record that it fills is valid. */
tw_status_t tw_launch_record_decode(const void *bytes, size_t size, tw_launch_record_t *out);

/* Whether another variant of the kernel may do better for some launches. */
bool tw_launch_record_has_choices(const tw_launch_record_t *record);
/* Whether a launch asks how many blocks a multiprocessor holds before it runs this kernel or another. */
bool tw_launch_record_asks_for_room(const tw_launch_record_t *record);
/* Removes the choices between variants: for a variant that was chosen. */
void tw_launch_record_settle(tw_launch_record_t *record);

#ifdef __cplusplus
}
#endif
#endif
