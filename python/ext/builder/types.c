/* types.c - types of the IR by their text, and what Python asks of them */
#include "builder.h"

#include "mlir-c/BuiltinTypes.h"

static PyObject *type_text(MlirType type) {
  tw_strbuf_t text = {0};
  mlirTypePrint(type, tw_ext_text_put, &text);
  return tw_ext_text_take(&text);
}

static PyObject *shape_of(MlirType type) {
  if (!mlirTypeIsAShaped(type) || !mlirShapedTypeHasRank(type))
    return Py_NewRef(Py_None);
  intptr_t rank = mlirShapedTypeGetRank(type);
  PyObject *shape = PyTuple_New(rank);
  for (intptr_t i = 0; shape && i < rank; i++) {
    int64_t extent = mlirShapedTypeIsDynamicDim(type, i) ? -1 : mlirShapedTypeGetDimSize(type, i);
    PyObject *number = PyLong_FromLongLong(extent);
    if (!number || PyTuple_SetItem(shape, i, number) < 0)
      Py_CLEAR(shape);
  }
  return shape;
}

PyObject *tw_builder_type_facts(tw_py_builder_t *self, MlirType type) {
  PyObject *key = PyLong_FromVoidPtr((void *)type.ptr);
  PyObject *facts = key ? PyDict_GetItemWithError(self->facts, key) : NULL;
  if (!facts && key && !PyErr_Occurred()) {
    MlirType element = mlirTypeIsAShaped(type) ? mlirShapedTypeGetElementType(type) : type;
    PyObject *text = type_text(type), *shape = shape_of(type), *name = type_text(element);
    facts = text && shape && name ? PyTuple_Pack(3, text, shape, name) : NULL;
    Py_XDECREF(text);
    Py_XDECREF(shape);
    Py_XDECREF(name);
    if (facts && PyDict_SetItem(self->facts, key, facts) < 0)
      Py_CLEAR(facts);
    Py_XDECREF(facts); /* the dictionary holds it */
  }
  Py_XDECREF(key);
  return facts;
}

MlirType tw_builder_read_type(tw_py_builder_t *self, PyObject *text) {
  MlirType none = {NULL};
  PyObject *known = PyDict_GetItemWithError(self->types, text);
  if (known)
    return (MlirType){PyLong_AsVoidPtr(known)};
  Py_ssize_t size;
  const char *data = PyErr_Occurred() ? NULL : PyUnicode_AsUTF8AndSize(text, &size);
  if (!data)
    return none;
  tw_builder_forget_messages(self);
  MlirType type = mlirTypeParseGet(self->context, (MlirStringRef){data, (size_t)size});
  if (mlirTypeIsNull(type)) {
    tw_builder_raise(self, "not a type");
    return none;
  }
  PyObject *address = PyLong_FromVoidPtr((void *)type.ptr);
  int failed = !address || PyDict_SetItem(self->types, text, address) < 0;
  Py_XDECREF(address);
  return failed ? none : type;
}
