/* launch_record.c - the launch record as bytes: encoded, decoded, checked by the rows of launch_record.def */
#include "tilewright/launch_record.h"

#include <string.h>

/* --- the rows as data ------------------------------------------------------------------------------ */

#define NUMBERS_ROW(struct_, type, name, count, array, least, most)                                                    \
  {#name, offsetof(tw_##struct_##_t, name), 0, sizeof(type), count, least, most, NULL, TW_ROW_NUMBER, (type) - 1 < 1,  \
   array},
#define STRUCT_ROW(struct_, kind, of, name, present, count)                                                            \
  {#name, offsetof(tw_##struct_##_t, name), present, sizeof(tw_##of##_t), count, 0, 0, &struct_of_##of, kind, false,   \
   false},

#define TW_STRUCT(struct_) static const tw_row_t rows_of_##struct_[] = {
#define TW_STRUCT_END(struct_)                                                                                         \
  }                                                                                                                    \
  ;                                                                                                                    \
  static const tw_row_struct_t struct_of_##struct_ = {#struct_, rows_of_##struct_,                                     \
                                                      sizeof rows_of_##struct_ / sizeof *rows_of_##struct_};
#define TW_NUMBER(struct_, type, name, least, most, meaning) NUMBERS_ROW(struct_, type, name, 1, false, least, most)
#define TW_NUMBERS(struct_, type, name, count, least, most, meaning)                                                   \
  NUMBERS_ROW(struct_, type, name, count, true, least, most)
#define TW_MEMBER(struct_, of, name, meaning) STRUCT_ROW(struct_, TW_ROW_MEMBER, of, name, 0, 1)
#define TW_LIST(struct_, of, name, most, meaning)                                                                      \
  STRUCT_ROW(struct_, TW_ROW_LIST, of, name, offsetof(tw_##struct_##_t, num_##name), most)
#define TW_FIELD_NUMBER(type, name, least, most, meaning, writer, reader)                                              \
  TW_NUMBER(launch_record, type, name, least, most, meaning)
#define TW_FIELD_NUMBERS(type, name, count, least, most, meaning, writer, reader)                                      \
  TW_NUMBERS(launch_record, type, name, count, least, most, meaning)
#define TW_FIELD_STRUCT(of, name, meaning, writer, reader)                                                             \
  STRUCT_ROW(launch_record, TW_ROW_OPTION, of, name, offsetof(tw_launch_record_t, has_##name), 1)
#define TW_FIELD_LIST(of, name, most, meaning, writer, reader) TW_LIST(launch_record, of, name, most, meaning)
#include "tilewright/launch_record.def"

const tw_row_struct_t tw_launch_rows = {"launch_record", rows_of_launch_record,
                                        sizeof rows_of_launch_record / sizeof *rows_of_launch_record};

int64_t tw_row_number(const tw_row_t *row, const void *numbers, size_t index) {
  const char *at = (const char *)numbers + index * row->size;
  uint64_t value = 0;
  for (size_t i = row->size; i-- > 0;)
    value = value << 8 | (uint8_t)at[i];
  if (row->is_signed && row->size > 0 && row->size < 8 && value >> (8 * row->size - 1))
    value |= ~UINT64_C(0) << 8 * row->size;
  return (int64_t)value;
}

void tw_row_set_number(const tw_row_t *row, void *numbers, size_t index, int64_t value) {
  char *at = (char *)numbers + index * row->size;
  for (size_t i = 0; i < row->size; i++)
    at[i] = (char)((uint64_t)value >> 8 * i);
}

size_t tw_row_count(const tw_row_t *row, const void *around) {
  const char *present = (const char *)around + row->present;
  uint32_t count = 0;
  if (row->kind == TW_ROW_LIST)
    memcpy(&count, present, sizeof count);
  return row->kind == TW_ROW_LIST ? count : row->kind == TW_ROW_OPTION ? *present != 0 : row->count;
}

void tw_row_set_count(const tw_row_t *row, void *around, size_t count) {
  char *present = (char *)around + row->present;
  uint32_t number = (uint32_t)count;
  if (row->kind == TW_ROW_LIST)
    memcpy(present, &number, sizeof number);
  else if (row->kind == TW_ROW_OPTION)
    *present = (char)(count != 0);
}

/* FNV-1a. */
static uint64_t mix(uint64_t hash, uint8_t byte) { return (hash ^ byte) * UINT64_C(0x100000001b3); }

static uint64_t mix_number(uint64_t hash, int64_t number) {
  for (int i = 0; i < 8; i++)
    hash = mix(hash, (uint8_t)((uint64_t)number >> 8 * i));
  return hash;
}

static uint64_t mix_struct(uint64_t hash, const tw_row_struct_t *rows) {
  for (const tw_row_t *row = rows->rows; row < rows->rows + rows->count; row++) {
    for (const char *at = row->name; *at; at++)
      hash = mix(hash, (uint8_t)*at);
    hash = mix_number(mix_number(mix_number(hash, row->kind), (int64_t)row->count), row->least);
    hash = mix_number(mix_number(hash, row->most), row->of ? 0 : (int64_t)row->size);
    if (row->of)
      hash = mix_struct(hash, row->of);
  }
  return hash;
}

uint64_t tw_launch_record_version(void) { return mix_struct(UINT64_C(0xcbf29ce484222325), &tw_launch_rows); }

/* --- checks ------------------------------------------------------------------------------------------ */

static tw_status_t at_row(tw_status_t status, const tw_row_t *row, bool indexed, size_t index) {
  const char *dot = tw_status_message(status)[0] == '[' || tw_status_message(status)[0] == ' ' ? "" : ".";
  return indexed ? tw_status_prefix(status, "%s[%zu]%s", row->name, index, dot)
                 : tw_status_prefix(status, "%s%s", row->name, dot);
}

static tw_status_t check_struct(const tw_row_struct_t *rows, const void *values);

static tw_status_t check_row(const tw_row_t *row, const void *around) {
  const char *at = (const char *)around + row->offset;
  size_t count = tw_row_count(row, around);
  if (count > row->count)
    return at_row(TW_ERROR(TW_VALUE_ERROR, " has %zu entries, the most is %zu", count, row->count), row, false, 0);
  for (size_t i = 0; i < count; i++) {
    tw_status_t status = NULL;
    int64_t number = row->of ? 0 : tw_row_number(row, at, i);
    if (row->of)
      status = check_struct(row->of, at + i * row->size);
    else if (number < row->least || number > row->most)
      status = TW_ERROR(TW_VALUE_ERROR, " is %lld, expected %lld to %lld", (long long)number, (long long)row->least,
                        (long long)row->most);
    if (status)
      return at_row(status, row, row->is_array || row->kind == TW_ROW_LIST, i);
  }
  return NULL;
}

static tw_status_t check_struct(const tw_row_struct_t *rows, const void *values) {
  for (const tw_row_t *row = rows->rows; row < rows->rows + rows->count; row++)
    TW_RETURN_IF_ERROR(check_row(row, values));
  return NULL;
}

/* What the rows cannot say: NULL, or the name of the field that does not fit the others. */
static const char *wrong_place(const tw_array_place_t *array, const char *name) {
  return array->word + 2u * array->rank < TW_MAX_WORDS ? NULL : name;
}

static const char *wrong_map(const tw_tensor_map_t *map) {
  unsigned seen = 0;
  if (map->word + 2u * map->rank >= TW_MAX_WORDS)
    return "tensor_maps.word";
  if (map->bytes & (map->bytes - 1))
    return "tensor_maps.bytes";
  if (map->rounds && map->bytes != sizeof(float))
    return "tensor_maps.rounds";
  if (map->swizzle != 0 && map->swizzle != 32 && map->swizzle != 64 && map->swizzle != 128)
    return "tensor_maps.swizzle";
  for (int d = 0; d < map->rank; d++) {
    if (map->axes[d] >= map->rank || seen >> map->axes[d] & 1)
      return "tensor_maps.axes";
    if (map->box[d] == 0)
      return "tensor_maps.box";
    seen |= 1u << map->axes[d];
  }
  return NULL;
}

static const char *wrong_slice(const tw_slicing_t *slice) {
  if (slice->num_classes == 0)
    return "slice.classes";
  if (slice->num_plans < 2)
    return "slice.plans";
  for (uint32_t p = 0; p < slice->num_plans; p++)
    for (uint32_t i = 0; i < slice->num_classes; i++)
      if (slice->plans[p].parts[i] < 1 || slice->plans[p].parts[i] > slice->classes[i].tile)
        return "slice.plans.parts";
  return NULL;
}

static const char *wrong_grid(const tw_launch_record_t *r) {
  int set = 0;
  for (int axis = 0; axis < 3; axis++)
    set += r->grid_scale[axis] != 0;
  return set == 0 || set == 3 ? NULL : "grid_scale";
}

/* Their words follow one another. */
static const char *wrong_views(const tw_launch_record_t *r) {
  unsigned next = r->num_views ? r->views[0].word : 0;
  for (uint32_t i = 0; i < r->num_views; i++) {
    const tw_array_view_t *view = &r->views[i];
    unsigned rank = view->num_bounds;
    if (view->word != next || view->array.word + 2u * view->array.rank >= r->views[0].word)
      return "views.word";
    if (rank == 0 || (view->num_pitch ? rank != 2 || view->array.rank != 1 : rank != view->array.rank))
      return "views.bounds";
    next += 1 + 2 * rank;
  }
  return next > TW_MAX_WORDS ? "views" : NULL;
}

static const char *wrong_list(const tw_launch_record_t *r) {
  const char *wrong = wrong_views(r);
  for (uint32_t i = 0; i < r->num_tensor_maps && !wrong; i++)
    wrong = wrong_map(&r->tensor_maps[i]);
  for (uint32_t i = 0; i < r->num_loaded && !wrong; i++)
    wrong = wrong_place(&r->loaded[i], "loaded");
  for (uint32_t i = 0; i < r->num_no_alias && !wrong; i++) {
    wrong = wrong_place(&r->no_alias[i].array, "no_alias.array");
    wrong = wrong ? wrong : wrong_place(&r->no_alias[i].other, "no_alias.other");
  }
  return wrong;
}

static const char *wrong_field(const tw_launch_record_t *r) {
  if (r->has_multicast && r->multicast.cycles[r->multicast.axis] == 0)
    return "multicast.cycles";
  if (r->has_coarsen && r->coarsen.num_plans < 2)
    return "coarsen.plans";
  if (r->split_applied && !r->has_split)
    return "split_applied";
  if (r->dynamic && (!r->persistent || r->split_applied))
    return "dynamic";
  if (r->packed_blocks && (r->persistent || r->split_applied))
    return "packed_blocks";
  const char *wrong = r->has_slice ? wrong_slice(&r->slice) : NULL;
  wrong = wrong ? wrong : wrong_grid(r);
  return wrong ? wrong : wrong_list(r);
}

tw_status_t tw_launch_record_check(const tw_launch_record_t *record) {
  TW_RETURN_IF_ERROR(tw_status_prefix(check_struct(&tw_launch_rows, record), "launch record: "));
  const char *wrong = wrong_field(record);
  return wrong ? TW_ERROR(TW_VALUE_ERROR, "launch record: %s does not fit the other fields", wrong) : NULL;
}

/* --- bytes ------------------------------------------------------------------------------------------- */

static const char magic[4] = {'T', 'W', 'L', 'R'};
enum { ID_BYTES = 2, LENGTH_BYTES = 4, NUMBER_BYTES = 8 };

static void put(tw_strbuf_t *out, uint64_t value, size_t bytes) {
  char text[NUMBER_BYTES];
  for (size_t i = 0; i < bytes; i++)
    text[i] = (char)(value >> 8 * i);
  tw_strbuf_append(out, text, bytes);
}

static void put_row(tw_strbuf_t *out, const tw_row_t *row, const void *around) {
  const char *at = (const char *)around + row->offset;
  size_t count = tw_row_count(row, around);
  if (row->kind == TW_ROW_LIST)
    put(out, count, NUMBER_BYTES);
  for (size_t i = 0; i < count; i++) {
    if (!row->of)
      put(out, (uint64_t)tw_row_number(row, at, i), NUMBER_BYTES);
    for (size_t r = 0; row->of && r < row->of->count; r++)
      put_row(out, &row->of->rows[r], at + i * row->size);
  }
}

/* A number or list of zero is what a field is that nothing has set. */
static bool is_set(const tw_row_t *row, const void *around) {
  bool set = row->of && tw_row_count(row, around) > 0;
  for (size_t i = 0; !row->of && i < row->count; i++)
    set |= tw_row_number(row, (const char *)around + row->offset, i) != 0;
  return set;
}

tw_status_t tw_launch_record_encode(const tw_launch_record_t *record, tw_strbuf_t *out) {
  TW_RETURN_IF_ERROR(tw_launch_record_check(record));
  tw_strbuf_append(out, magic, sizeof magic);
  put(out, tw_launch_record_version(), NUMBER_BYTES);
  for (size_t id = 0; id < tw_launch_rows.count; id++) {
    const tw_row_t *row = &tw_launch_rows.rows[id];
    tw_strbuf_t payload = {0};
    if (!is_set(row, record))
      continue;
    put_row(&payload, row, record);
    put(out, id, ID_BYTES);
    put(out, payload.size, LENGTH_BYTES);
    tw_strbuf_append(out, tw_strbuf_cstr(&payload), payload.size);
    out->failed |= payload.failed;
    tw_strbuf_free(&payload);
  }
  return out->failed ? TW_ERROR(TW_OUT_OF_MEMORY, "out of host memory for a launch record") : NULL;
}

typedef struct {
  const uint8_t *at, *end;
} byte_reader_t;

static bool take(byte_reader_t *in, size_t bytes, uint64_t *out) {
  if ((size_t)(in->end - in->at) < bytes)
    return false;
  *out = 0;
  for (size_t i = bytes; i-- > 0;)
    *out = *out << 8 | in->at[i];
  in->at += bytes;
  return true;
}

/* Every number is held against its row before it is stored, where it might lose bits. */
static tw_status_t take_row(byte_reader_t *in, const tw_row_t *row, void *around) {
  char *at = (char *)around + row->offset;
  uint64_t count = row->kind == TW_ROW_OPTION ? 1 : row->count, number = 0;
  if (row->kind == TW_ROW_LIST && !take(in, NUMBER_BYTES, &count))
    return TW_ERROR(TW_VALUE_ERROR, "%s ends early", row->name);
  if (count > row->count)
    return TW_ERROR(TW_VALUE_ERROR, "%s has too many entries", row->name);
  tw_row_set_count(row, around, (size_t)count);
  for (size_t i = 0; i < count; i++) {
    for (size_t r = 0; row->of && r < row->of->count; r++)
      TW_RETURN_IF_ERROR(tw_status_prefix(take_row(in, &row->of->rows[r], at + i * row->size), "%s.", row->name));
    if (row->of)
      continue;
    if (!take(in, NUMBER_BYTES, &number))
      return TW_ERROR(TW_VALUE_ERROR, "%s ends early", row->name);
    if ((int64_t)number < row->least || (int64_t)number > row->most)
      return TW_ERROR(TW_VALUE_ERROR, "%s is %lld, expected %lld to %lld", row->name, (long long)number,
                      (long long)row->least, (long long)row->most);
    tw_row_set_number(row, at, i, (int64_t)number);
  }
  return NULL;
}

static tw_status_t take_field(byte_reader_t *in, uint64_t *next, tw_launch_record_t *out) {
  uint64_t id, length;
  if (!take(in, ID_BYTES, &id) || !take(in, LENGTH_BYTES, &length) || length > (size_t)(in->end - in->at))
    return TW_ERROR(TW_VALUE_ERROR, "it ends within a field");
  if (id < *next || id >= tw_launch_rows.count)
    return TW_ERROR(TW_VALUE_ERROR, "there is no field %llu there", (unsigned long long)id);
  const tw_row_t *row = &tw_launch_rows.rows[id];
  byte_reader_t payload = {in->at, in->at + length};
  TW_RETURN_IF_ERROR(take_row(&payload, row, out));
  if (payload.at != payload.end)
    return TW_ERROR(TW_VALUE_ERROR, "%s is longer than it should be", row->name);
  in->at = payload.end;
  *next = id + 1;
  return NULL;
}

tw_status_t tw_launch_record_decode(const void *bytes, size_t size, tw_launch_record_t *out) {
  byte_reader_t in = {bytes, (const uint8_t *)bytes + size};
  uint64_t version, next = 0;
  memset(out, 0, sizeof *out);
  if (size < sizeof magic || memcmp(bytes, magic, sizeof magic) != 0)
    return TW_ERROR(TW_VALUE_ERROR, "launch record: these bytes are none");
  in.at += sizeof magic;
  if (!take(&in, NUMBER_BYTES, &version) || version != tw_launch_record_version())
    return TW_ERROR(TW_VALUE_ERROR, "launch record: another version of tilewright made it");
  while (in.at < in.end)
    TW_RETURN_IF_ERROR(tw_status_prefix(take_field(&in, &next, out), "launch record: "));
  return tw_launch_record_check(out);
}

/* --- questions --------------------------------------------------------------------------------------- */

bool tw_launch_record_has_choices(const tw_launch_record_t *r) {
  return !r->split_applied && (r->has_split || r->has_multicast || r->has_slice || r->has_coarsen || r->has_row_share ||
                               r->has_tile_grid || r->num_views > 0);
}

bool tw_launch_record_asks_for_room(const tw_launch_record_t *r) { return r->has_split || r->has_multicast; }

void tw_launch_record_settle(tw_launch_record_t *record) {
  record->has_slice = record->has_coarsen = record->has_row_share = false;
  record->num_no_alias = 0;
  if (record->split_applied)
    return;
  record->has_split = false;
  record->num_loaded = 0;
}
