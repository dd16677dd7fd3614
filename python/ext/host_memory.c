/* host_memory.c - memory of the host that a GPU reaches, by its address; who asked for it gives it back */
#include "launch.h"

static PyObject *none_or(tw_status_t status) { return status ? tw_ext_raise(status, NULL) : Py_NewRef(Py_None); }

static PyObject *host_take(PyObject *module, PyObject *arguments) {
  (void)module;
  int device, combined = 0;
  unsigned long long size;
  if (!PyArg_ParseTuple(arguments, "iK|p:host_take", &device, &size, &combined))
    return NULL;
  void *memory;
  tw_status_t status = tw_pinned_take(device, (size_t)size, combined != 0, &memory);
  return status ? tw_ext_raise(status, NULL) : PyLong_FromVoidPtr(memory);
}

static PyObject *host_give(PyObject *module, PyObject *arguments) {
  (void)module;
  int device;
  unsigned long long address;
  if (!PyArg_ParseTuple(arguments, "iK:host_give", &device, &address))
    return NULL;
  return none_or(tw_pinned_give(device, (void *)(uintptr_t)address));
}

static PyObject *host_pin(PyObject *module, PyObject *arguments) {
  (void)module;
  int device;
  unsigned long long address, size;
  if (!PyArg_ParseTuple(arguments, "iKK:host_pin", &device, &address, &size))
    return NULL;
  return none_or(tw_pin(device, (void *)(uintptr_t)address, (size_t)size));
}

static PyObject *host_unpin(PyObject *module, PyObject *arguments) {
  (void)module;
  int device;
  unsigned long long address;
  if (!PyArg_ParseTuple(arguments, "iK:host_unpin", &device, &address))
    return NULL;
  return none_or(tw_unpin(device, (void *)(uintptr_t)address));
}

static PyObject *managed_take(PyObject *module, PyObject *arguments) {
  (void)module;
  int device;
  unsigned long long size;
  if (!PyArg_ParseTuple(arguments, "iK:managed_take", &device, &size))
    return NULL;
  uint64_t address;
  tw_status_t status = tw_managed_memory_take(device, (size_t)size, &address);
  return status ? tw_ext_raise(status, NULL) : PyLong_FromUnsignedLongLong(address);
}

static PyObject *memory_info(PyObject *module, PyObject *arguments) {
  (void)module;
  int device;
  if (!PyArg_ParseTuple(arguments, "i:memory_info", &device))
    return NULL;
  size_t free_bytes, total;
  tw_status_t status = tw_memory_info(device, &free_bytes, &total);
  return status ? tw_ext_raise(status, NULL)
                : Py_BuildValue("(KK)", (unsigned long long)free_bytes, (unsigned long long)total);
}

static PyMethodDef methods[] = {
    {"host_take", host_take, METH_VARARGS, "host_take(device, size, combined=False) -> address of pinned memory"},
    {"host_give", host_give, METH_VARARGS, "host_give(device, address): frees it"},
    {"host_pin", host_pin, METH_VARARGS, "host_pin(device, address, size): pages of the host stay in their place"},
    {"host_unpin", host_unpin, METH_VARARGS, "host_unpin(device, address)"},
    {"managed_take", managed_take, METH_VARARGS, "managed_take(device, size) -> address; memory_free frees it"},
    {"memory_info", memory_info, METH_VARARGS, "memory_info(device) -> (free, total) bytes"},
    {NULL, NULL, 0, NULL}};

int tw_ext_host_memory_add(PyObject *module) { return PyModule_AddFunctions(module, methods); }
