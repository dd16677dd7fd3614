/* record.c - launch records in Python's hands: opaque bytes, and for tests and tools the dictionary that they stand for
 *
 * By the rows of include/tilewright/launch_record.def: a number is an int, several are a list, a struct is a dict or
 * None, a list of structs a list of dicts. */
#include "launch.h"

#include <string.h>

int tw_ext_record_read(PyObject *bytes, tw_launch_record_t *out) {
  char *data = NULL;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(bytes, &data, &size))
    return -1;
  tw_status_t status = tw_launch_record_decode(data, (size_t)size, out);
  if (status)
    tw_ext_raise(status, NULL);
  return status ? -1 : 0;
}

PyObject *tw_ext_record_bytes(const tw_launch_record_t *record) {
  tw_strbuf_t out = {0};
  tw_status_t status = tw_launch_record_encode(record, &out);
  PyObject *bytes =
      status ? tw_ext_raise(status, NULL) : PyBytes_FromStringAndSize(tw_strbuf_cstr(&out), (Py_ssize_t)out.size);
  tw_strbuf_free(&out);
  return bytes;
}

/* --- to Python ------------------------------------------------------------------------------------- */

static PyObject *dict_of(const tw_row_struct_t *rows, const void *values);

static PyObject *item_of(const tw_row_t *row, const char *at, size_t i) {
  return row->of ? dict_of(row->of, at + i * row->size) : PyLong_FromLongLong(tw_row_number(row, at, i));
}

static PyObject *value_of(const tw_row_t *row, const void *around) {
  const char *at = (const char *)around + row->offset;
  size_t count = tw_row_count(row, around);
  if (row->kind != TW_ROW_LIST && !row->is_array)
    return count ? item_of(row, at, 0) : Py_NewRef(Py_None);
  PyObject *list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; list && i < count; i++) {
    PyObject *item = item_of(row, at, i);
    if (!item || PyList_SetItem(list, (Py_ssize_t)i, item))
      Py_CLEAR(list);
  }
  return list;
}

static PyObject *dict_of(const tw_row_struct_t *rows, const void *values) {
  PyObject *dict = PyDict_New();
  for (const tw_row_t *row = rows->rows; dict && row < rows->rows + rows->count; row++) {
    PyObject *value = value_of(row, values);
    if (!value || PyDict_SetItemString(dict, row->name, value))
      Py_CLEAR(dict);
    Py_XDECREF(value);
  }
  return dict;
}

static PyObject *launch_facts(PyObject *unused, PyObject *bytes) {
  (void)unused;
  tw_launch_record_t record;
  return tw_ext_record_read(bytes, &record) ? NULL : dict_of(&tw_launch_rows, &record);
}

/* --- from Python -------------------------------------------------------------------------------------- */

static int read_struct(const tw_row_struct_t *rows, PyObject *dict, void *values);

static int read_item(const tw_row_t *row, PyObject *item, char *at, size_t i) {
  if (row->of)
    return read_struct(row->of, item, at + i * row->size);
  long long number = PyLong_AsLongLong(item);
  if (number == -1 && PyErr_Occurred())
    return -1;
  if (number < row->least || number > row->most) {
    tw_ext_error(TW_VALUE_ERROR, "launch record: %s is %lld, expected %lld to %lld", row->name, number,
                 (long long)row->least, (long long)row->most);
    return -1;
  }
  tw_row_set_number(row, at, i, number);
  return 0;
}

static int read_value(const tw_row_t *row, PyObject *value, void *around) {
  char *at = (char *)around + row->offset;
  bool several = row->kind == TW_ROW_LIST || row->is_array;
  Py_ssize_t count = several ? PySequence_Size(value) : row->kind != TW_ROW_OPTION || value != Py_None;
  if (count < 0)
    return -1;
  if ((size_t)count > row->count) {
    tw_ext_error(TW_VALUE_ERROR, "launch record: %s has %zd entries, the most is %zd", row->name, count,
                 (Py_ssize_t)row->count);
    return -1;
  }
  tw_row_set_count(row, around, (size_t)count);
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *item = several ? PySequence_GetItem(value, i) : Py_NewRef(value);
    int failed = !item || read_item(row, item, at, (size_t)i);
    Py_XDECREF(item);
    if (failed)
      return -1;
  }
  return 0;
}

static const tw_row_t *row_named(const tw_row_struct_t *rows, PyObject *name) {
  const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
  for (const tw_row_t *row = rows->rows; text && row < rows->rows + rows->count; row++)
    if (!strcmp(row->name, text))
      return row;
  if (text)
    tw_ext_error(TW_VALUE_ERROR, "launch record: a %s has no field %R", rows->name, name);
  return NULL;
}

static int read_struct(const tw_row_struct_t *rows, PyObject *dict, void *values) {
  PyObject *name, *value;
  Py_ssize_t position = 0;
  if (!PyDict_Check(dict)) {
    PyErr_Format(PyExc_TypeError, "a %s is a dict, found %R", rows->name, dict);
    return -1;
  }
  while (PyDict_Next(dict, &position, &name, &value)) {
    const tw_row_t *row = row_named(rows, name);
    if (!row || read_value(row, value, values))
      return -1;
  }
  return 0;
}

static PyObject *launch_record(PyObject *unused, PyObject *arguments, PyObject *fields) {
  tw_launch_record_t record = {0};
  (void)unused;
  if (!PyArg_ParseTuple(arguments, "") || (fields && read_struct(&tw_launch_rows, fields, &record)))
    return NULL;
  return tw_ext_record_bytes(&record);
}

/* --- questions ------------------------------------------------------------------------------------------ */

static PyObject *settled_record(PyObject *unused, PyObject *bytes) {
  (void)unused;
  tw_launch_record_t record;
  if (tw_ext_record_read(bytes, &record))
    return NULL;
  tw_launch_record_settle(&record);
  return tw_ext_record_bytes(&record);
}

static PyObject *asks_for_room(PyObject *unused, PyObject *bytes) {
  (void)unused;
  tw_launch_record_t record;
  return tw_ext_record_read(bytes, &record) ? NULL : PyBool_FromLong(tw_launch_record_asks_for_room(&record));
}

static PyObject *hint_ranges(PyObject *unused, PyObject *nothing) {
  static const struct {
    const char *name;
    int least, most;
  } hints[] = {
#define TW_HINT(name, least, most, meaning) {#name, least, most},
#include "tilewright/hints.def"
  };
  (void)unused;
  (void)nothing;
  PyObject *dict = PyDict_New();
  for (size_t i = 0; dict && i < sizeof hints / sizeof *hints; i++) {
    if (hints[i].most == 0) /* not the program's */
      continue;
    PyObject *range = Py_BuildValue("(ii)", hints[i].least, hints[i].most);
    if (!range || PyDict_SetItemString(dict, hints[i].name, range))
      Py_CLEAR(dict);
    Py_XDECREF(range);
  }
  return dict;
}

static PyObject *hint_words(PyObject *unused, PyObject *nothing) {
  static const char *const hints[][2] = {
#define TW_WORD_HINT(name, words, meaning) {#name, words},
#define TW_TILE_HINT(name, meaning) {#name, ""},
#include "tilewright/hints.def"
  };
  (void)unused;
  (void)nothing;
  PyObject *dict = PyDict_New();
  for (size_t i = 0; dict && i < sizeof hints / sizeof *hints; i++) {
    PyObject *words = PyUnicode_FromString(hints[i][1]);
    if (!words || PyDict_SetItemString(dict, hints[i][0], words))
      Py_CLEAR(dict);
    Py_XDECREF(words);
  }
  return dict;
}

static PyMethodDef functions[] = {
    {"launch_record", (PyCFunction)(void (*)(void))launch_record, METH_VARARGS | METH_KEYWORDS,
     "launch_record(**fields) -> bytes: what a launch must know of a kernel."},
    {"launch_facts", launch_facts, METH_O, "launch_facts(record) -> dict: its fields."},
    {"settled_record", settled_record, METH_O,
     "settled_record(record) -> bytes: without what a launch decides by which variant it runs."},
    {"asks_for_room", asks_for_room, METH_O,
     "asks_for_room(record) -> bool: whether a launch loads the kernel to see how many blocks a multiprocessor holds."},
    {"hint_words", hint_words, METH_NOARGS,
     "hint_words() -> dict: the words of each hint that is a text, parted by spaces; none for hints of a tile."},
    {"hint_ranges", hint_ranges, METH_NOARGS, "hint_ranges() -> dict: least and most of each hint of a kernel."},
    {NULL, NULL, 0, NULL},
};

int tw_ext_record_add(PyObject *module) {
  PyObject *version = PyLong_FromUnsignedLongLong(tw_launch_record_version());
  int failed = !version || PyModule_AddObjectRef(module, "LAUNCH_RECORD_VERSION", version);
  Py_XDECREF(version);
  return failed ? -1 : PyModule_AddFunctions(module, functions);
}
