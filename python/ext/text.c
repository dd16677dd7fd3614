/* text.c - what MLIR prints, as text of Python's */
#include "ext.h"

void tw_ext_text_put(MlirStringRef piece, void *text) { tw_strbuf_append(text, piece.data, piece.length); }

PyObject *tw_ext_text_take(tw_strbuf_t *text) {
  PyObject *result =
      text->failed ? PyErr_NoMemory() : PyUnicode_DecodeUTF8(tw_strbuf_cstr(text), (Py_ssize_t)text->size, "replace");
  tw_strbuf_free(text);
  return result;
}
