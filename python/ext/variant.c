/* variant.c - CpuKernel and CudaKernel: compiled code as Python objects
 *
 * What a front end's on_miss returns: native code by its address, or PTX or a cubin by its bytes. */
#include "dispatch.h"

#include <stdlib.h>
#include <string.h>

static tw_variant_t *variant_alloc(PyTypeObject *type, PyObject *name) {
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  tw_variant_t *variant = (tw_variant_t *)allocate(type, 0); /* zeroed */
  if (variant)
    variant->name = Py_NewRef(name);
  return variant;
}

static void variant_dealloc(PyObject *self) {
  tw_variant_t *variant = (tw_variant_t *)self;
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  tw_cuda_kernel_destroy(variant->cuda);
  free(variant->apart);
  Py_XDECREF(variant->owner);
  Py_XDECREF(variant->better);
  for (int kind = 0; kind < TW_ALTERNATIVE_SPLIT_K; kind++)
    for (int i = 0; i < TW_PLANS; i++)
      Py_XDECREF(variant->made[kind][i]);
  Py_XDECREF(variant->overlapping);
  Py_XDECREF(variant->overlapped);
  Py_XDECREF(variant->or_else);
  Py_XDECREF(variant->instead);
  Py_XDECREF(variant->name);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF((PyObject *)type);
}

/* No clear: the code that the owner holds may be called as long as this object lives. */
static int variant_traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT((PyObject *)Py_TYPE(self));
  Py_VISIT(((tw_variant_t *)self)->owner);
  Py_VISIT(((tw_variant_t *)self)->better);
  for (int kind = 0; kind < TW_ALTERNATIVE_SPLIT_K; kind++)
    for (int i = 0; i < TW_PLANS; i++)
      Py_VISIT(((tw_variant_t *)self)->made[kind][i]);
  Py_VISIT(((tw_variant_t *)self)->overlapping);
  Py_VISIT(((tw_variant_t *)self)->overlapped);
  Py_VISIT(((tw_variant_t *)self)->or_else);
  Py_VISIT(((tw_variant_t *)self)->instead);
  return 0;
}

static PyObject *owned_or_null(PyObject *maker) { return maker && maker != Py_None ? Py_NewRef(maker) : NULL; }

/* Of a CPU kernel, which keeps no record. */
static int keep_apart(tw_variant_t *variant, const tw_launch_record_t *record, PyObject *overlapping) {
  if (!record->num_no_alias)
    return 0;
  size_t bytes = record->num_no_alias * sizeof *record->no_alias;
  if (!(variant->apart = malloc(bytes))) {
    PyErr_NoMemory();
    return -1;
  }
  memcpy(variant->apart, record->no_alias, bytes);
  variant->num_apart = record->num_no_alias;
  variant->overlapping = owned_or_null(overlapping);
  return 0;
}

static PyObject *cpu_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  static char *names[] = {"address", "name", "record", "written", "owner", "overlapping", NULL};
  PyObject *address, *name, *bytes, *owner = NULL, *overlapping = NULL;
  unsigned long long written = 0;
  tw_launch_record_t record;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OUO|KOO:CpuKernel", names, &address, &name, &bytes, &written,
                                   &owner, &overlapping) ||
      tw_ext_record_read(bytes, &record))
    return NULL;
  void *entry = PyLong_AsVoidPtr(address);
  if (!entry)
    return PyErr_Occurred() ? NULL : tw_ext_error(TW_VALUE_ERROR, "the kernel's address is 0");
  tw_variant_t *variant = variant_alloc(type, name);
  if (!variant)
    return NULL;
  memcpy(&variant->cpu.entry, &entry, sizeof entry); /* ISO C has no cast to a function */
  variant->cpu.scratch_bytes = record.scratch_bytes;
  variant->cpu.cooperative = record.cooperative;
  variant->written = written;
  variant->owner = Py_XNewRef(owner);
  if (!keep_apart(variant, &record, overlapping))
    return (PyObject *)variant;
  Py_DECREF((PyObject *)variant);
  return NULL;
}

/* The bytes of PTX or of a cubin, borrowed. */
static const char *read_image(PyObject *image, Py_ssize_t *size) {
  char *data = NULL;
  if (PyUnicode_Check(image))
    return PyUnicode_AsUTF8AndSize(image, size);
  return PyBytes_AsStringAndSize(image, &data, size) ? NULL : data;
}

static PyObject *cuda_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  static char *names[] = {"image", "name", "record", "written", "better", "overlapping", NULL};
  PyObject *image, *name, *bytes, *better = NULL, *overlapping = NULL;
  unsigned long long written = 0;
  tw_launch_record_t record;
  Py_ssize_t size = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OUO|KOO:CudaKernel", names, &image, &name, &bytes, &written,
                                   &better, &overlapping) ||
      tw_ext_record_read(bytes, &record))
    return NULL;
  const char *code = read_image(image, &size), *symbol = code ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  tw_variant_t *variant = symbol ? variant_alloc(type, name) : NULL;
  if (!variant)
    return NULL;
  variant->written = written;
  variant->better = tw_launch_record_has_choices(&record) ? owned_or_null(better) : NULL;
  variant->overlapping = record.num_no_alias ? owned_or_null(overlapping) : NULL;
  tw_status_t status = tw_cuda_kernel_create(code, (size_t)size, symbol, &record, &variant->cuda);
  if (!status)
    return (PyObject *)variant;
  Py_DECREF((PyObject *)variant);
  return tw_ext_raise(status, NULL);
}

static PyObject *get_name(PyObject *self, void *unused) {
  (void)unused;
  return Py_NewRef(((tw_variant_t *)self)->name);
}

static PyObject *get_written(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLongLong(((tw_variant_t *)self)->written);
}

static PyObject *get_scratch(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLongLong(((tw_variant_t *)self)->cpu.scratch_bytes);
}

static PyObject *get_record(PyObject *self, void *unused) {
  (void)unused;
  return tw_ext_record_bytes(tw_cuda_kernel_record(((tw_variant_t *)self)->cuda));
}

/* usage(device) -> dict: what the loaded kernel takes of a block's and a thread's resources. */
static PyObject *cuda_usage(PyObject *self, PyObject *device) {
  long ordinal = PyLong_AsLong(device);
  if (ordinal == -1 && PyErr_Occurred())
    return NULL;
  tw_cuda_kernel_t *kernel = ((tw_variant_t *)self)->cuda;
  tw_cuda_usage_t usage;
  tw_status_t status;
  Py_BEGIN_ALLOW_THREADS /* it may load the code, or wait for who does */
      status = tw_cuda_kernel_usage(kernel, (int)ordinal, &usage);
  Py_END_ALLOW_THREADS if (status) return tw_ext_raise(status, NULL);
  return Py_BuildValue("{sisisisi}", "registers", usage.registers, "local_bytes", usage.local_bytes, "shared_bytes",
                       usage.shared_bytes, "max_threads", usage.max_threads);
}

/* resident(device, threads, shared_bytes) -> int: blocks that run at a time. */
static PyObject *cuda_resident(PyObject *self, PyObject *args) {
  int ordinal, threads;
  unsigned long shared;
  if (!PyArg_ParseTuple(args, "iik:resident", &ordinal, &threads, &shared))
    return NULL;
  tw_cuda_kernel_t *kernel = ((tw_variant_t *)self)->cuda;
  int64_t blocks;
  tw_status_t status;
  Py_BEGIN_ALLOW_THREADS status = tw_cuda_kernel_resident(kernel, ordinal, threads, shared, &blocks);
  Py_END_ALLOW_THREADS return status ? tw_ext_raise(status, NULL) : PyLong_FromLongLong(blocks);
}

static PyObject *cuda_load(PyObject *self, PyObject *device) {
  long ordinal = PyLong_AsLong(device);
  if (ordinal == -1 && PyErr_Occurred())
    return NULL;
  tw_cuda_kernel_t *kernel = ((tw_variant_t *)self)->cuda;
  tw_status_t status;
  Py_BEGIN_ALLOW_THREADS status = tw_cuda_kernel_load(kernel, (int)ordinal);
  Py_END_ALLOW_THREADS return status ? tw_ext_raise(status, NULL) : Py_NewRef(Py_None);
}

static PyGetSetDef cpu_properties[] = {{"name", get_name, NULL, "name of the function", NULL},
                                       {"written", get_written, NULL, "bit i: argument i is written", NULL},
                                       {"scratch_bytes", get_scratch, NULL, "scratch memory per thread", NULL},
                                       {NULL, NULL, NULL, NULL, NULL}};

static PyGetSetDef cuda_properties[] = {{"name", get_name, NULL, "name of the entry in the image", NULL},
                                        {"written", get_written, NULL, "bit i: argument i is written", NULL},
                                        {"record", get_record, NULL, "the launch record", NULL},
                                        {NULL, NULL, NULL, NULL, NULL}};

static PyObject *cuda_or_else(PyObject *self, PyObject *arguments) {
  tw_variant_t *variant = (tw_variant_t *)self;
  PyObject *maker;
  int much;
  if (!PyArg_ParseTuple(arguments, "Oi", &maker, &much))
    return NULL;
  TW_LOCK(variant);
  bool first = !variant->or_else;
  if (first) {
    variant->much_local = much;
    TW_PUBLISH(variant->or_else, Py_NewRef(maker));
  }
  TW_UNLOCK(variant);
  if (first)
    Py_RETURN_NONE;
  PyErr_SetString(PyExc_RuntimeError, "or_else() is told once");
  return NULL;
}

static PyMethodDef cuda_methods[] = {
    {"or_else", cuda_or_else, METH_VARARGS,
     "or_else(maker, much): maker(device, problem, local_bytes) gives the variant to launch instead where the driver "
     "has a problem with the code, or it takes so many bytes of local memory; or None."},
    {"usage", cuda_usage, METH_O, "usage(device) -> dict of registers, local and shared bytes"},
    {"resident", cuda_resident, METH_VARARGS,
     "resident(device, threads, shared_bytes) -> int: blocks of so many threads that run at a time"},
    {"load", cuda_load, METH_O, "load(device): load now what the first launch would load"},
    {NULL, NULL, 0, NULL}};

static PyType_Slot cpu_slots[] = {
    {Py_tp_new, cpu_new},
    {Py_tp_dealloc, variant_dealloc},
    {Py_tp_traverse, variant_traverse},
    {Py_tp_getset, cpu_properties},
    {Py_tp_doc, "CpuKernel(address, name, record, written=0, owner=None, overlapping=None): native code; "
                "owner is kept alive with it, overlapping makes the kernel for arrays that share memory"},
    {0, NULL}};

static PyType_Slot cuda_slots[] = {{Py_tp_new, cuda_new},
                                   {Py_tp_dealloc, variant_dealloc},
                                   {Py_tp_traverse, variant_traverse},
                                   {Py_tp_getset, cuda_properties},
                                   {Py_tp_methods, cuda_methods},
                                   {Py_tp_doc,
                                    "CudaKernel(image, name, record, written=0, better=None, overlapping=None): PTX "
                                    "text or a cubin, and its launch record; loaded at the first launch on a device. "
                                    "better(kind, number) makes the kernel for launches that do better with another, "
                                    "overlapping that for arrays that share memory"},
                                   {0, NULL}};

static PyType_Spec cpu_spec = {"tilewright._core.CpuKernel", sizeof(tw_variant_t), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, cpu_slots};
static PyType_Spec cuda_spec = {"tilewright._core.CudaKernel", sizeof(tw_variant_t), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, cuda_slots};

int tw_ext_variant_add(PyObject *module) {
  tw_state_t *state = tw_state_of(module);
  return tw_ext_add_type(module, &cpu_spec, &state->cpu_kernel) ||
                 tw_ext_add_type(module, &cuda_spec, &state->cuda_kernel)
             ? -1
             : 0;
}
