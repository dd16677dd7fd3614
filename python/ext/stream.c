/* stream.c - the stream argument of launch(): None, integer handles, and the objects of array libraries */
#include "import.h"
#include "lock.h"

/* (version, handle) of the CUDA stream protocol. */
static int read_stream_protocol(PyObject *pair, tw_stream_t *out) {
  if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2)
    return tw_ext_fail(TW_TYPE_ERROR, "stream: __cuda_stream__ must give (version, handle)");
  long version = PyLong_AsLong(PyTuple_GetItem(pair, 0));
  if (version == -1 && PyErr_Occurred())
    return -1;
  if (version != 0) {
    tw_ext_error(TW_TYPE_ERROR, "stream: version %ld of __cuda_stream__ is not known, only 0", version);
    return -1;
  }
  out->handle = PyLong_AsVoidPtr(PyTuple_GetItem(pair, 1));
  return PyErr_Occurred() ? -1 : 0;
}

/* Where streams keep their handle: the protocol, then torch and CuPy as they were before it. */
static const char *const stream_names[TW_STREAM_NAMES] = {"__cuda_stream__", "cuda_stream", "ptr"};

/* A method now, a property in early producers. */
TW_HOT static int read_stream_value(PyObject *value, int name, tw_stream_t *out) {
  if (name == 0) {
    PyObject *pair = PyCallable_Check(value) ? PyObject_CallNoArgs(value) : Py_NewRef(value);
    int failed = pair ? read_stream_protocol(pair, out) : -1;
    Py_XDECREF(pair);
    return failed;
  }
  out->handle = PyLong_AsVoidPtr(value);
  return PyErr_Occurred() ? -1 : 0;
}

/* 1: read; 0: has no such attribute; -1: exception. */
TW_HOT static int try_stream_name(tw_state_t *state, PyObject *object, int name, tw_stream_t *out) {
  PyObject *interned = TW_PUBLISHED(state->stream_names[name]);
  if (!interned)
    interned = tw_publish(&state->stream_names[name], PyUnicode_InternFromString(stream_names[name]));
  if (!interned)
    return -1;
  PyObject *value = PyObject_GetAttr(object, interned);
  if (!value) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError))
      return -1;
    PyErr_Clear();
    return 0;
  }
  int result = name == 0 || PyLong_Check(value);
  if (result && read_stream_value(value, name, out))
    result = -1;
  Py_DECREF(value);
  return result;
}

/* An attribute in which a type keeps the handle that the protocol has just told, or else the protocol. */
static int find_shorter_name(tw_state_t *state, PyObject *object, const tw_stream_t *told) {
  for (int name = 1; name < TW_STREAM_NAMES; name++) {
    tw_stream_t other = {0};
    if (try_stream_name(state, object, name, &other) == 1 && other.handle == told->handle)
      return name;
    PyErr_Clear();
  }
  return 0;
}

/* Remembers what stands in the type of a stream: looking for an attribute that is not there costs 300 ns. The protocol
 * is a Python method; an attribute that says the same costs 150 ns less. */
static void remember_stream(tw_state_t *state, PyObject *object, int name, const tw_stream_t *told) {
  int shorter = name ? name : find_shorter_name(state, object, told);
  PyTypeObject *type = (PyTypeObject *)Py_NewRef((PyObject *)Py_TYPE(object));
  TW_LOCK(state);
  PyTypeObject *old = state->stream;
  state->stream = type;
  state->stream_name = shorter;
  TW_UNLOCK(state);
  Py_XDECREF((PyObject *)old);
}

/* The name that is remembered for a type; -1: none. */
TW_HOT static int remembered_name(tw_state_t *state, const PyTypeObject *type) {
  TW_LOCK(state);
  int name = state->stream == type ? state->stream_name : -1;
  TW_UNLOCK(state);
  return name;
}

TW_HOT static int read_stream_object(tw_state_t *state, PyObject *object, tw_stream_t *out) {
  int remembered = remembered_name(state, Py_TYPE(object));
  int found = remembered >= 0 ? try_stream_name(state, object, remembered, out) : 0;
  for (int name = 0; !found && name < TW_STREAM_NAMES; name++) {
    found = try_stream_name(state, object, name, out);
    if (found == 1)
      remember_stream(state, object, name, out);
  }
  if (found)
    return found < 0 ? -1 : 0;
  tw_ext_error_type(TW_TYPE_ERROR,
                    "stream: expected None, an integer handle or an object with __cuda_stream__, found a %U", object);
  return -1;
}

TW_HOT int tw_ext_stream_read(tw_state_t *state, PyObject *object, tw_stream_t *out) {
  *out = (tw_stream_t){0};
  if (object == Py_None)
    return 0;
  out->given = out->decided = true;
  if (!PyLong_CheckExact(object) && !PyLong_Check(object)) {
    out->object = object;
    return read_stream_object(state, object, out);
  }
  out->handle = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(object); /* refuses negative ones */
  if (TW_LIKELY((uintptr_t)out->handle != UINTPTR_MAX || !PyErr_Occurred()))
    return 0;
  PyErr_Clear();
  return tw_ext_fail(TW_VALUE_ERROR, "stream: the integer is no stream handle");
}
