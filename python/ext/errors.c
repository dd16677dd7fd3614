/* errors.c - the runtime's status as a Python exception of tilewright.errors */
#include "launch.h"

/* Class names by code, and what stands in while tilewright.errors cannot be imported. */
static const struct {
  const char *name;
  PyObject **builtin;
} classes[] = {
    [TW_OK] = {NULL, &PyExc_RuntimeError},
    [TW_TYPE_ERROR] = {"TileTypeError", &PyExc_TypeError},
    [TW_VALUE_ERROR] = {"TileValueError", &PyExc_ValueError},
    [TW_LAUNCH_ERROR] = {"LaunchError", &PyExc_RuntimeError},
    [TW_DRIVER_ERROR] = {"DriverError", &PyExc_RuntimeError},
    [TW_COMPILE_ERROR] = {"TileCompilationError", &PyExc_RuntimeError},
    [TW_UNIMPLEMENTED] = {NULL, &PyExc_NotImplementedError},
    [TW_OUT_OF_MEMORY] = {NULL, &PyExc_MemoryError},
    [TW_INTERNAL_ERROR] = {"TileCompilationError", &PyExc_RuntimeError},
};

PyObject *tw_ext_error_class(tw_code_t code) {
  PyObject *builtin = *classes[code].builtin, *type, *value, *trace;
  if (!classes[code].name)
    return Py_NewRef(builtin);
  PyErr_Fetch(&type, &value, &trace); /* an import must not disturb a pending exception */
  PyObject *module = PyImport_ImportModule("tilewright.errors");
  PyObject *class = module ? PyObject_GetAttrString(module, classes[code].name) : NULL;
  Py_XDECREF(module);
  PyErr_Clear();
  PyErr_Restore(type, value, trace);
  return class ? class : Py_NewRef(builtin);
}

PyObject *tw_ext_raise(tw_status_t status, const char *before) {
  tw_ext_error(tw_status_code(status), "%s%s", before ? before : "", tw_status_message(status));
  tw_status_free(status);
  return NULL;
}

PyObject *tw_ext_error(tw_code_t code, const char *format, ...) {
  va_list arguments;
  PyObject *class = tw_ext_error_class(code);
  va_start(arguments, format);
  PyErr_FormatV(class, format, arguments);
  va_end(arguments);
  Py_DECREF(class);
  return NULL;
}

PyObject *tw_ext_error_type(tw_code_t code, const char *format, PyObject *object) {
  PyObject *name = PyType_GetName(Py_TYPE(object));
  if (name)
    tw_ext_error(code, format, name);
  Py_XDECREF(name);
  return NULL;
}

void tw_ext_error_from_pending(tw_code_t code, const char *what) {
  if (!PyErr_ExceptionMatches(PyExc_Exception))
    return; /* an interrupt stays one */
  PyObject *type, *cause, *trace, *value;
  PyErr_Fetch(&type, &cause, &trace);
  PyErr_NormalizeException(&type, &cause, &trace);
  if (trace)
    PyException_SetTraceback(cause, trace);
  tw_ext_error(code, "%s: %S", what, cause ? cause : Py_None);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyException_SetCause(value, cause); /* takes it */
  PyErr_Restore(type, value, trace);
}
