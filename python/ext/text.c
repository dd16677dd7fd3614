/* text.c - what MLIR prints, as text of Python's, and arrays of C as tuples */
#include "ext.h"

void tw_ext_text_put(MlirStringRef piece, void *text) { tw_strbuf_append(text, piece.data, piece.length); }

PyObject *tw_ext_text_take(tw_strbuf_t *text) {
  PyObject *result =
      text->failed ? PyErr_NoMemory() : PyUnicode_DecodeUTF8(tw_strbuf_cstr(text), (Py_ssize_t)text->size, "replace");
  tw_strbuf_free(text);
  return result;
}

/* A tuple of what `of` makes of each number. */
#define TUPLE(values, count, of)                                                                                       \
  PyObject *tuple = PyTuple_New(count);                                                                                \
  for (Py_ssize_t i = 0; tuple && i < (count); i++)                                                                    \
    PyTuple_SetItem(tuple, i, of((values)[i]));                                                                        \
  return tuple

PyObject *tw_ext_integers(const int64_t *values, Py_ssize_t count) { TUPLE(values, count, PyLong_FromLongLong); }

PyObject *tw_ext_floats(const double *values, Py_ssize_t count) { TUPLE(values, count, PyFloat_FromDouble); }
