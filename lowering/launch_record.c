/* launch_record.c - the launch record as a dictionary of attributes, by the rows of launch_record.def
 *
 * A number is an i32, or an i64 where its type is as long; several numbers are a dense array, which may leave out zeros
 * at its end where it is read; a struct is a dictionary, a list an array. See launch_record.h. */
#include "lowering/launch_record.h"
#include "base/memory.h"
#include "dialect/layouts.h"
#include "tilewright/compiler.h"

#include <stdlib.h>
#include <string.h>

/* An entry of a dictionary, or null. */
static MlirAttribute entry_of(MlirAttribute dictionary, const char *name) {
  bool good = !mlirAttributeIsNull(dictionary) && mlirAttributeIsADictionary(dictionary);
  return good ? mlirDictionaryAttrGetElementByName(dictionary, tw_str(name)) : mlirAttributeGetNull();
}

static MlirAttribute entry_of_kernel(MlirOperation op, const char *dictionary, const char *name) {
  MlirOperation func = tw_function_of(op);
  return mlirOperationIsNull(func) ? mlirAttributeGetNull() : entry_of(tw_attr(func, dictionary), name);
}

static int64_t integer_or(MlirAttribute value, int64_t otherwise) {
  bool good = !mlirAttributeIsNull(value) && mlirAttributeIsAInteger(value);
  return good ? mlirIntegerAttrGetValueInt(value) : otherwise;
}

/* ---- struct to attribute ---------------------------------------------------------------------------- */

static MlirAttribute of_struct(MlirContext context, const tw_row_struct_t *rows, const void *values);

static MlirAttribute of_numbers(MlirContext context, const tw_row_t *row, const void *values) {
  bool is_wide = row->size > sizeof(int32_t);
  if (!row->is_array)
    return mlirIntegerAttrGet(is_wide ? tw_i64(context) : tw_i32(context), tw_row_number(row, values, 0));
  intptr_t count = (intptr_t)row->count;
  int64_t *wide = tw_allocate(row->count, sizeof *wide);
  int32_t *narrow = tw_allocate(row->count, sizeof *narrow);
  for (intptr_t i = 0; i < count; i++) {
    wide[i] = tw_row_number(row, values, (size_t)i);
    narrow[i] = (int32_t)wide[i];
  }
  MlirAttribute made =
      is_wide ? mlirDenseI64ArrayGet(context, count, wide) : mlirDenseI32ArrayGet(context, count, narrow);
  free(narrow);
  free(wide);
  return made;
}

static MlirAttribute of_list(MlirContext context, const tw_row_t *row, const void *values, size_t count) {
  MlirAttribute *items = tw_allocate(count, sizeof *items);
  for (size_t i = 0; i < count; i++)
    items[i] = of_struct(context, row->of, (const char *)values + i * row->size);
  MlirAttribute made = mlirArrayAttrGet(context, (intptr_t)count, items);
  free(items);
  return made;
}

static MlirAttribute of_row(MlirContext context, const tw_row_t *row, const void *values, size_t count) {
  return row->kind == TW_ROW_NUMBER ? of_numbers(context, row, values)
         : row->kind == TW_ROW_LIST ? of_list(context, row, values, count)
                                    : of_struct(context, row->of, values);
}

static MlirNamedAttribute named(MlirContext context, const char *name, MlirAttribute value) {
  return mlirNamedAttributeGet(mlirIdentifierGet(context, tw_str(name)), value);
}

static MlirAttribute of_struct(MlirContext context, const tw_row_struct_t *rows, const void *values) {
  MlirNamedAttribute *entries = tw_allocate(rows->count, sizeof *entries);
  intptr_t count = 0;
  for (const tw_row_t *row = rows->rows; row < rows->rows + rows->count; row++)
    entries[count++] =
        named(context, row->name, of_row(context, row, (const char *)values + row->offset, tw_row_count(row, values)));
  MlirAttribute made = mlirDictionaryAttrGet(context, count, entries);
  free(entries);
  return made;
}

/* ---- attribute to struct: false where it is malformed ---------------------------------------------------- */

static bool read_struct(const tw_row_struct_t *rows, MlirAttribute from, void *values);

static bool read_numbers(const tw_row_t *row, MlirAttribute from, void *values) {
  int64_t *numbers = tw_allocate(row->count, sizeof *numbers);
  bool good = row->is_array ? mlirAttributeIsADenseI32Array(from) || mlirAttributeIsADenseI64Array(from)
                            : mlirAttributeIsAInteger(from);
  if (good && row->is_array)
    good = tw_array_ints(from, numbers, (intptr_t)row->count) <= (intptr_t)row->count;
  else if (good)
    numbers[0] = mlirIntegerAttrGetValueInt(from);
  for (size_t i = 0; good && i < row->count; i++) {
    /* An array may leave out numbers, which are 0 then. */
    good = numbers[i] >= row->least && numbers[i] <= row->most;
    tw_row_set_number(row, values, i, numbers[i]);
  }
  free(numbers);
  return good;
}

/* Into the place of the row's first value; how many there are, at most `most`; -1 where one is malformed. */
static intptr_t read_row(const tw_row_t *row, MlirAttribute from, void *values, size_t most) {
  if (mlirAttributeIsNull(from))
    return -1;
  if (row->kind == TW_ROW_NUMBER)
    return read_numbers(row, from, values) ? (intptr_t)row->count : -1;
  if (row->kind != TW_ROW_LIST)
    return read_struct(row->of, from, values) ? 1 : -1;
  intptr_t count = mlirAttributeIsAArray(from) ? mlirArrayAttrGetNumElements(from) : -1;
  if (count > (intptr_t)most)
    return -1;
  for (intptr_t i = 0; i < count; i++)
    if (!read_struct(row->of, mlirArrayAttrGetElement(from, i), (char *)values + (size_t)i * row->size))
      return -1;
  return count;
}

static bool read_struct(const tw_row_struct_t *rows, MlirAttribute from, void *values) {
  if (!mlirAttributeIsADictionary(from) || mlirDictionaryAttrGetNumElements(from) != (intptr_t)rows->count)
    return false;
  for (const tw_row_t *row = rows->rows; row < rows->rows + rows->count; row++) {
    intptr_t count = read_row(row, entry_of(from, row->name), (char *)values + row->offset, row->count);
    if (count < 0)
      return false;
    tw_row_set_count(row, values, (size_t)count);
  }
  return true;
}

static const tw_row_t *row_named(MlirStringRef name) {
  for (size_t i = 0; i < tw_launch_rows.count; i++)
    if (tw_str_is(name, tw_launch_rows.rows[i].name))
      return &tw_launch_rows.rows[i];
  return NULL;
}

/* The record of a function; false where an entry of the dictionary is none of its fields', whose name it tells. */
static bool read_record(MlirOperation func, tw_launch_record_t *out, const char **wrong) {
  MlirAttribute all = tw_attr(func, TW_LAUNCH);
  *out = (tw_launch_record_t){0};
  *wrong = "a dictionary of launch_record.def's fields";
  if (mlirAttributeIsNull(all) || !mlirAttributeIsADictionary(all))
    return false;
  for (intptr_t i = 0; i < mlirDictionaryAttrGetNumElements(all); i++) {
    MlirNamedAttribute entry = mlirDictionaryAttrGetElement(all, i);
    const tw_row_t *row = row_named(mlirIdentifierStr(entry.name));
    if (row == NULL)
      return false;
    *wrong = row->name;
    intptr_t count = read_row(row, entry.attribute, (char *)out + row->offset, row->count);
    if (count < 0)
      return false;
    tw_row_set_count(row, out, (size_t)count);
  }
  return true;
}

/* ---- fields ------------------------------------------------------------------------------------------- */

bool tw_launch_has(MlirOperation op, int field) {
  return !mlirAttributeIsNull(entry_of_kernel(op, TW_LAUNCH, tw_launch_rows.rows[field].name));
}

int64_t tw_launch_number(MlirOperation op, int field, int64_t otherwise) {
  return integer_or(entry_of_kernel(op, TW_LAUNCH, tw_launch_rows.rows[field].name), otherwise);
}

size_t tw_launch_get(MlirOperation op, int field, void *values, size_t most) {
  const tw_row_t *row = &tw_launch_rows.rows[field];
  intptr_t count = read_row(row, entry_of_kernel(op, TW_LAUNCH, row->name), values, most);
  return count < 0 ? 0 : (size_t)count;
}

/* The dictionary, with this entry in the place of the one of its name. */
/* A null value leaves the entry out. */
static void set_entry(MlirOperation func, const char *dictionary, const char *name, MlirAttribute value) {
  MlirContext context = mlirOperationGetContext(func);
  MlirAttribute old = tw_attr(func, dictionary);
  bool none = mlirAttributeIsNull(old) || !mlirAttributeIsADictionary(old);
  intptr_t num = none ? 0 : mlirDictionaryAttrGetNumElements(old), kept = 0;
  MlirNamedAttribute *entries = tw_must(malloc((size_t)(num + 1) * sizeof *entries));
  for (intptr_t i = 0; i < num; i++) {
    MlirNamedAttribute entry = mlirDictionaryAttrGetElement(old, i);
    if (!tw_str_is(mlirIdentifierStr(entry.name), name))
      entries[kept++] = entry;
  }
  if (!mlirAttributeIsNull(value))
    entries[kept++] = named(context, name, value);
  tw_set_attr(func, dictionary, mlirDictionaryAttrGet(context, kept, entries));
  free(entries);
}

void tw_launch_set(MlirOperation op, int field, const void *values, size_t count) {
  MlirOperation func = tw_function_of(op);
  const tw_row_t *row = &tw_launch_rows.rows[field];
  if (!mlirOperationIsNull(func))
    set_entry(func, TW_LAUNCH, row->name, of_row(mlirOperationGetContext(func), row, values, count));
}

/* ---- hints ---------------------------------------------------------------------------------------------- */

void tw_plan_hint(MlirOperation func, const char *name, int64_t value) {
  MlirType type = tw_i32(mlirOperationGetContext(func));
  set_entry(func, TW_HINTS, name, mlirIntegerAttrGet(type, value));
}

void tw_drop_hint(MlirOperation func, const char *name) { set_entry(func, TW_HINTS, name, mlirAttributeGetNull()); }

bool tw_has_hint(MlirOperation op, const char *name) {
  return !mlirAttributeIsNull(entry_of_kernel(op, TW_HINTS, name));
}

int64_t tw_hint(MlirOperation op, const char *name, int64_t otherwise) {
  return integer_or(entry_of_kernel(op, TW_HINTS, name), otherwise);
}

MlirStringRef tw_hint_text(MlirOperation op, const char *name) {
  MlirAttribute value = entry_of_kernel(op, TW_HINTS, name);
  return !mlirAttributeIsNull(value) && mlirAttributeIsAString(value) ? mlirStringAttrGetValue(value) : tw_str("");
}

/* ---- hints of tiles ---------------------------------------------------------------------------------------- */

MlirStringRef tw_tile_name(MlirValue tile) {
  MlirOperation def = tw_def(tile);
  MlirLocation at = mlirOperationIsNull(def) ? mlirValueGetLocation(tile) : mlirOperationGetLocation(def);
  if (!mlirLocationIsAName(at))
    return tw_str("");
  MlirStringRef name = mlirIdentifierStr(mlirLocationNameGetName(at));
  bool of_tile = name.length > 1 && name.data[0] == '%'; /* others are of functions */
  return of_tile ? (MlirStringRef){name.data + 1, name.length - 1} : tw_str("");
}

/* The tile in `kind(tile)`; empty where the text is no such hint. */
static MlirStringRef tile_of_hint(MlirStringRef text, const char *kind) {
  size_t length = strlen(kind);
  bool is_one = text.length > length + 2 && !memcmp(text.data, kind, length) && text.data[length] == '(';
  return is_one ? (MlirStringRef){text.data + length + 1, text.length - length - 2} : tw_str("");
}

bool tw_each_tile_hint(MlirOperation func, const char *kind,
                       bool (*visit)(void *user, MlirStringRef tile, MlirStringRef text), void *user) {
  MlirAttribute hints = tw_attr(func, TW_HINTS);
  if (mlirAttributeIsNull(hints) || !mlirAttributeIsADictionary(hints))
    return true;
  for (intptr_t i = 0; i < mlirDictionaryAttrGetNumElements(hints); i++) {
    MlirNamedAttribute entry = mlirDictionaryAttrGetElement(hints, i);
    MlirStringRef tile = tile_of_hint(mlirIdentifierStr(entry.name), kind);
    if (tile.length > 0 && mlirAttributeIsAString(entry.attribute) &&
        !visit(user, tile, mlirStringAttrGetValue(entry.attribute)))
      return false;
  }
  return true;
}

typedef struct {
  MlirStringRef tile, text;
} tile_hint_t;

static bool is_other_tile(void *user, MlirStringRef tile, MlirStringRef text) {
  tile_hint_t *wanted = user;
  bool found = tile.length == wanted->tile.length && !memcmp(tile.data, wanted->tile.data, tile.length);
  if (found)
    wanted->text = text;
  return !found;
}

MlirStringRef tw_tile_hint(MlirValue tile, const char *kind) {
  tile_hint_t wanted = {.tile = tw_tile_name(tile), .text = tw_str("")};
  MlirOperation func = tw_function_of(tw_def(tile));
  if (wanted.tile.length > 0 && !mlirOperationIsNull(func))
    (void)tw_each_tile_hint(func, kind, is_other_tile, &wanted);
  return wanted.text;
}

int64_t tw_num_warps(MlirOperation op, int64_t otherwise) {
  return tw_launch_num_warps(op, tw_hint_num_warps(op, otherwise));
}

/* ---- the kernels of a module ------------------------------------------------------------------------------ */

static bool has_record(MlirOperation op) {
  return (tw_op_is(op, TW_FUNC_FUNC) || tw_op_is(op, TW_LLVM_FUNC)) && tw_has_attr(op, TW_LAUNCH);
}

tw_status_t tw_each_kernel(MlirModule module, tw_status_t (*visit)(void *user, MlirOperation func, MlirStringRef name),
                           void *user) {
  TW_EACH_OP(op, mlirModuleGetBody(module))
    if (has_record(op))
      TW_RETURN_IF_ERROR(visit(user, op, tw_attr_string(op, "sym_name")));
  return NULL;
}

MlirStringRef tw_what_does_not_fit(MlirModule module) {
  TW_EACH_OP(op, mlirModuleGetBody(module))
    if (tw_has_attr(op, TW_DOES_NOT_FIT))
      return tw_attr_string(op, TW_DOES_NOT_FIT);
  return tw_str("");
}

tw_status_t tw_kernel_record(MlirOperation func, tw_strbuf_t *out) {
  tw_launch_record_t record;
  const char *wrong;
  if (!read_record(func, &record, &wrong))
    return TW_ERROR(TW_VALUE_ERROR, "launch record: " TW_LAUNCH " has no well-formed %s", wrong);
  return tw_launch_record_encode(&record, out);
}

static MlirOperation kernel_named(MlirModule module, const char *kernel) {
  TW_EACH_OP(op, mlirModuleGetBody(module))
    if (tw_op_is(op, TW_FUNC_FUNC) && tw_str_is(tw_attr_string(op, "sym_name"), kernel))
      return op;
  return tw_null_op();
}

intptr_t tw_layout_costs(MlirModule module, const char *kernel, int64_t *out, intptr_t most) {
  MlirOperation func = kernel_named(module, kernel);
  intptr_t count = mlirOperationIsNull(func) ? 0 : tw_attr_ints(func, TW_LAYOUT_COSTS, out, most);
  return count < most ? count : most;
}

/* Entries of the dictionary that tools read: a text of another module may have anything in their places. */
static bool is_row(MlirAttribute row) {
  MlirAttribute kinds = entry_of(row, "kinds"), bits = entry_of(row, "bits"), slots = entry_of(row, "slots"),
                names = entry_of(row, "names"), tile = entry_of(row, "tile"), taken = entry_of(row, "taken");
  bool there = !mlirAttributeIsNull(kinds) && !mlirAttributeIsNull(bits) && !mlirAttributeIsNull(slots) &&
               !mlirAttributeIsNull(names) && !mlirAttributeIsNull(tile) && !mlirAttributeIsNull(taken);
  bool good = there && mlirAttributeIsAArray(kinds) && mlirAttributeIsAArray(bits) &&
              mlirAttributeIsADenseI64Array(slots) && mlirAttributeIsAArray(names) && mlirAttributeIsAString(tile) &&
              mlirAttributeIsAInteger(taken);
  intptr_t count = good ? mlirArrayAttrGetNumElements(kinds) : 0;
  good = good && mlirArrayAttrGetNumElements(bits) == count && mlirDenseArrayGetNumElements(slots) == count;
  for (intptr_t i = 0; good && i < count; i++)
    good = mlirAttributeIsAString(mlirArrayAttrGetElement(kinds, i)) &&
           mlirAttributeIsAString(mlirArrayAttrGetElement(bits, i));
  for (intptr_t i = 0; good && i < mlirArrayAttrGetNumElements(names); i++)
    good = mlirAttributeIsAString(mlirArrayAttrGetElement(names, i));
  return good;
}

MlirAttribute tw_layouts_of(MlirModule module, const char *kernel) {
  MlirOperation func = kernel_named(module, kernel);
  MlirAttribute rows = mlirOperationIsNull(func) ? mlirAttributeGetNull() : tw_attr(func, TW_LAYOUTS);
  bool good = !mlirAttributeIsNull(rows) && mlirAttributeIsAArray(rows);
  for (intptr_t i = 0; good && i < mlirArrayAttrGetNumElements(rows); i++)
    good = is_row(mlirArrayAttrGetElement(rows, i));
  return good ? rows : mlirAttributeGetNull();
}

/* ---- words of a launch ------------------------------------------------------------------------------- */

int tw_words_of(MlirType argument) {
  return mlirTypeIsAMemRef(argument) ? 1 + 2 * (int)mlirShapedTypeGetRank(argument) : 1;
}

int tw_first_word(MlirValue argument) {
  MlirBlock entry = mlirBlockArgumentGetOwner(argument);
  int word = 0;
  for (intptr_t i = 0; i < mlirBlockArgumentGetArgNumber(argument); i++)
    word += tw_words_of(mlirValueGetType(mlirBlockGetArgument(entry, i)));
  return word;
}

tw_array_place_t tw_array_place(MlirValue array) {
  MlirType type = mlirValueGetType(array);
  return (tw_array_place_t){.word = (uint16_t)tw_first_word(array),
                            .rank = (uint8_t)mlirShapedTypeGetRank(type),
                            .bits = (uint8_t)tw_memory_bits(mlirShapedTypeGetElementType(type))};
}
