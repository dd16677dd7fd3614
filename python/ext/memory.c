/* memory.c - device memory and events for `tilewright.tune`; addresses are integers, lifetimes the caller's affair */
#include "launch.h"

static PyObject *none_or(tw_status_t status) { return status ? tw_ext_raise(status, NULL) : Py_NewRef(Py_None); }

static PyObject *memory_alloc(PyObject *module, PyObject *arguments) {
  (void)module;
  int device;
  unsigned long long size;
  uint64_t address;
  if (!PyArg_ParseTuple(arguments, "iK:memory_alloc", &device, &size))
    return NULL;
  tw_status_t status = tw_memory_alloc(device, (size_t)size, &address);
  return status ? tw_ext_raise(status, NULL) : PyLong_FromUnsignedLongLong(address);
}

static PyObject *memory_free(PyObject *module, PyObject *arguments) {
  (void)module;
  int device;
  unsigned long long address;
  return PyArg_ParseTuple(arguments, "iK:memory_free", &device, &address) ? none_or(tw_memory_free(device, address))
                                                                          : NULL;
}

static PyObject *memory_copy(PyObject *module, PyObject *arguments) {
  (void)module;
  int device;
  unsigned long long target, source, size;
  if (!PyArg_ParseTuple(arguments, "iKKK:memory_copy", &device, &target, &source, &size))
    return NULL;
  tw_status_t status;
  Py_BEGIN_ALLOW_THREADS status = tw_memory_copy(device, target, source, (size_t)size);
  Py_END_ALLOW_THREADS return none_or(status);
}

static PyObject *memory_fill(PyObject *module, PyObject *arguments) {
  (void)module;
  int device;
  unsigned char byte;
  unsigned long long address, size;
  if (!PyArg_ParseTuple(arguments, "iKbK:memory_fill", &device, &address, &byte, &size))
    return NULL;
  return none_or(tw_memory_fill(device, address, byte, (size_t)size));
}

static PyObject *event_create(PyObject *module, PyObject *arguments) {
  (void)module;
  int device;
  void *event;
  if (!PyArg_ParseTuple(arguments, "i:event_create", &device))
    return NULL;
  tw_status_t status = tw_event_create(device, &event);
  return status ? tw_ext_raise(status, NULL) : PyLong_FromVoidPtr(event);
}

static PyObject *event_record(PyObject *module, PyObject *arguments) {
  (void)module;
  int device;
  unsigned long long event, stream = 0;
  if (!PyArg_ParseTuple(arguments, "iK|K:event_record", &device, &event, &stream))
    return NULL;
  return none_or(tw_event_record_on(device, (void *)(uintptr_t)event, (void *)(uintptr_t)stream));
}

static PyObject *event_query(PyObject *module, PyObject *arguments) {
  (void)module;
  int device;
  unsigned long long event;
  bool over;
  if (!PyArg_ParseTuple(arguments, "iK:event_query", &device, &event))
    return NULL;
  tw_status_t status = tw_event_is_over(device, (void *)(uintptr_t)event, &over);
  return status ? tw_ext_raise(status, NULL) : PyBool_FromLong(over);
}

static PyObject *event_wait(PyObject *module, PyObject *arguments) {
  (void)module;
  int device;
  unsigned long long event, stream = 0;
  if (!PyArg_ParseTuple(arguments, "iK|K:event_wait", &device, &event, &stream))
    return NULL;
  tw_status_t status;
  Py_BEGIN_ALLOW_THREADS status = tw_event_wait(device, (void *)(uintptr_t)event, (void *)(uintptr_t)stream);
  Py_END_ALLOW_THREADS return none_or(status);
}

static PyObject *stream_create(PyObject *module, PyObject *arguments) {
  (void)module;
  int device;
  void *stream;
  if (!PyArg_ParseTuple(arguments, "i:stream_create", &device))
    return NULL;
  tw_status_t status = tw_stream_create(device, &stream);
  return status ? tw_ext_raise(status, NULL) : PyLong_FromVoidPtr(stream);
}

static PyObject *stream_destroy(PyObject *module, PyObject *arguments) {
  (void)module;
  int device;
  unsigned long long stream;
  if (!PyArg_ParseTuple(arguments, "iK:stream_destroy", &device, &stream))
    return NULL;
  tw_stream_destroy(device, (void *)(uintptr_t)stream);
  return Py_NewRef(Py_None);
}

static PyObject *stream_synchronize(PyObject *module, PyObject *arguments) {
  int device;
  unsigned long long stream;
  if (!PyArg_ParseTuple(arguments, "iK:stream_synchronize", &device, &stream))
    return NULL;
  tw_status_t status;
  Py_BEGIN_ALLOW_THREADS status = tw_stream_synchronize(device, (void *)(uintptr_t)stream);
  Py_END_ALLOW_THREADS tw_ext_sweep(tw_state_of(module));
  return none_or(status);
}

static PyObject *event_destroy(PyObject *module, PyObject *arguments) {
  (void)module;
  int device;
  unsigned long long event;
  if (!PyArg_ParseTuple(arguments, "iK:event_destroy", &device, &event))
    return NULL;
  tw_event_destroy(device, (void *)(uintptr_t)event);
  return Py_NewRef(Py_None);
}

static PyObject *event_elapsed(PyObject *module, PyObject *arguments) {
  (void)module;
  int device;
  unsigned long long begin, end;
  float milliseconds;
  if (!PyArg_ParseTuple(arguments, "iKK:event_elapsed", &device, &begin, &end))
    return NULL;
  tw_status_t status;
  Py_BEGIN_ALLOW_THREADS status =
      tw_event_elapsed(device, (void *)(uintptr_t)begin, (void *)(uintptr_t)end, &milliseconds);
  Py_END_ALLOW_THREADS return status ? tw_ext_raise(status, NULL) : PyFloat_FromDouble(1e-3 * (double)milliseconds);
}

static PyMethodDef methods[] = {
    {"memory_alloc", memory_alloc, METH_VARARGS, "memory_alloc(device, size) -> address"},
    {"memory_free", memory_free, METH_VARARGS, "memory_free(device, address)"},
    {"memory_copy", memory_copy, METH_VARARGS,
     "memory_copy(device, target, source, size): between addresses of the device or the host"},
    {"memory_fill", memory_fill, METH_VARARGS,
     "memory_fill(device, address, byte, size): queued on the default stream"},
    {"event_create", event_create, METH_VARARGS, "event_create(device) -> event"},
    {"event_record", event_record, METH_VARARGS, "event_record(device, event, stream=0)"},
    {"event_query", event_query, METH_VARARGS, "event_query(device, event) -> whether it is over"},
    {"event_wait", event_wait, METH_VARARGS, "event_wait(device, event, stream=0): the stream waits; 0: the caller"},
    {"stream_create", stream_create, METH_VARARGS, "stream_create(device) -> stream"},
    {"stream_destroy", stream_destroy, METH_VARARGS, "stream_destroy(device, stream)"},
    {"stream_synchronize", stream_synchronize, METH_VARARGS, "stream_synchronize(device, stream): wait for its work"},
    {"event_elapsed", event_elapsed, METH_VARARGS, "event_elapsed(device, begin, end) -> seconds; waits for the end"},
    {"event_destroy", event_destroy, METH_VARARGS, "event_destroy(device, event)"},
    {NULL, NULL, 0, NULL}};

int tw_ext_memory_add(PyObject *module) { return PyModule_AddFunctions(module, methods); }
