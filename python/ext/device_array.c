/* device_array.c - Memory and DeviceArray: arrays of our own, on a GPU or on the CPU, and views of foreign ones
 *
 * A Memory is bytes with an owner: the pools of runtime/array_memory.c, or an object of another library, which it keeps
 * alive. Arrays are views of it; slices share it. What is not fast or not simple (dtypes, indexing, copies, text) is in
 * Python, in the subclass tilewright.Array (python/tilewright/arrays.py).
 *
 * Work on a memory is one chain: each launch and copy waits for the last one if that was on another stream. So what is
 * queued on the home stream comes after everything else, and there the memory goes back to its pool. */
#include "import.h"

#include <stdlib.h>
#include <string.h>

typedef struct memory {
  PyObject ob_base;
  uint64_t address;
  size_t size;
  int device;           /* -1: the CPU */
  bool ours;            /* of our pools */
  PyObject *owner;      /* owned or NULL: of foreign memory */
  tw_stream_t home;     /* where it is freed, and what its exports name */
  tw_stream_t last;     /* where it was used last */
  PyObject *streams[2]; /* owned or NULL: the objects behind these */
  TW_MUTEX              /* of `last` and its object */
} memory_t;

typedef struct device_array {
  PyObject ob_base;
  PyObject *memory; /* owned */
  PyObject *format; /* owned (dtype, name, item size, typestr or None, descr or None) */
  tw_array_t view;  /* strides in bytes */
  int64_t item;     /* bytes of an element */
} device_array_t;

/* === Memory ======================================================================================================= */

static bool is_same_stream(const void *a, const void *b) {
  return a == b || ((uintptr_t)a <= 1 && (uintptr_t)b <= 1); /* 0 and 1 are the legacy default stream */
}

/* Makes a stream the last one, behind all that is queued. `object` is what stands for it, or NULL. */
static tw_status_t follow(memory_t *memory, void *handle, PyObject *object) {
  if (memory->device < 0)
    return NULL;
  tw_status_t status = NULL;
  PyObject *old = NULL;
  TW_LOCK(memory);
  bool same = is_same_stream(memory->last.handle, handle);
  if (!same && !(status = tw_stream_order(memory->device, memory->last.handle, handle))) {
    memory->last.handle = handle;
    old = memory->streams[1];
    memory->streams[1] = Py_XNewRef(object);
  }
  TW_UNLOCK(memory);
  Py_XDECREF(old);
  return status;
}

static memory_t *memory_new(tw_state_t *state, uint64_t address, size_t size, int device) {
  PyTypeObject *type = state->memory;
  memory_t *memory = (memory_t *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (memory) {
    memory->address = address;
    memory->size = size;
    memory->device = device;
  }
  return memory;
}

static void give_back(memory_t *memory) {
  if (memory->device < 0) {
    tw_host_memory_give((void *)(uintptr_t)memory->address, memory->size); /* NOLINT(performance-no-int-to-ptr) */
    return;
  }
  /* A lost context, or a driver that has ended, has no memory to give back. */
  tw_status_free(follow(memory, memory->home.handle, NULL));
  tw_status_free(tw_array_memory_give(memory->device, memory->home.handle, memory->address));
}

static int memory_clear(PyObject *self) {
  memory_t *memory = (memory_t *)self;
  Py_CLEAR(memory->owner);
  Py_CLEAR(memory->streams[0]);
  Py_CLEAR(memory->streams[1]);
  return 0;
}

static void memory_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  memory_t *memory = (memory_t *)self;
  PyObject_GC_UnTrack(self);
  if (memory->ours && memory->address)
    give_back(memory);
  memory_clear(self);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF((PyObject *)type);
}

static int memory_traverse(PyObject *self, visitproc visit, void *arg) {
  memory_t *memory = (memory_t *)self;
  Py_VISIT((PyObject *)Py_TYPE(self));
  Py_VISIT(memory->owner);
  Py_VISIT(memory->streams[0]);
  Py_VISIT(memory->streams[1]);
  return 0;
}

/* Sets the home stream of a fresh memory. */
static int set_home(tw_state_t *state, memory_t *memory, PyObject *stream) {
  if (stream == Py_None)
    return 0;
  if (memory->device < 0 && !PyLong_Check(stream))
    return 0; /* a stream of the CPU: everything is over when a call returns */
  if (tw_ext_stream_read(state, stream, &memory->home))
    return -1;
  memory->last = memory->home;
  memory->streams[0] = Py_NewRef(stream);
  return 0;
}

static tw_status_t take_memory(memory_t *memory, size_t size) {
  if (memory->device >= 0)
    return tw_array_memory_take(memory->device, memory->home.handle, size, &memory->address);
  memory->address = (uint64_t)(uintptr_t)tw_host_memory_take(size);
  return memory->address ? NULL : TW_ERROR(TW_OUT_OF_MEMORY, "the CPU has no %zu bytes left for an array", size);
}

/* memory_take(size, device, stream) -> Memory; device -1 is the CPU */
static PyObject *memory_take(PyObject *module, PyObject *arguments) {
  tw_state_t *state = tw_state_of(module);
  Py_ssize_t size;
  int device;
  PyObject *stream;
  if (!PyArg_ParseTuple(arguments, "niO:memory_take", &size, &device, &stream))
    return NULL;
  memory_t *memory = memory_new(state, 0, (size_t)size, device);
  if (!memory || set_home(state, memory, stream)) {
    Py_XDECREF((PyObject *)memory);
    return NULL;
  }
  tw_status_t status = size > 0 ? take_memory(memory, (size_t)size) : NULL;
  memory->ours = true;
  if (!status)
    return (PyObject *)memory;
  Py_DECREF((PyObject *)memory);
  return tw_ext_raise(status, NULL);
}

/* memory_of(address, size, device, owner, stream) -> Memory of another library's */
static PyObject *memory_of(PyObject *module, PyObject *arguments) {
  tw_state_t *state = tw_state_of(module);
  unsigned long long address;
  Py_ssize_t size;
  int device;
  PyObject *owner, *stream;
  if (!PyArg_ParseTuple(arguments, "KniOO:memory_of", &address, &size, &device, &owner, &stream))
    return NULL;
  memory_t *memory = memory_new(state, address, (size_t)size, device);
  if (memory)
    memory->owner = owner == Py_None ? NULL : Py_NewRef(owner);
  if (memory && !set_home(state, memory, stream))
    return (PyObject *)memory;
  Py_XDECREF((PyObject *)memory);
  return NULL;
}

/* memory.follow(stream): what is queued on the stream from now on comes after all that uses the memory. */
static PyObject *memory_follow(PyObject *self, PyObject *object) {
  memory_t *memory = (memory_t *)self;
  tw_stream_t stream = {0};
  if (memory->device < 0)
    return Py_NewRef(Py_None);
  if (tw_ext_stream_read(tw_state_of_object(self), object, &stream))
    return NULL;
  tw_status_t status = follow(memory, stream.handle, object);
  return status ? tw_ext_raise(status, NULL) : Py_NewRef(Py_None);
}

static PyObject *get_address(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLongLong(((memory_t *)self)->address);
}

static PyObject *get_size(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromSize_t(((memory_t *)self)->size);
}

static PyObject *get_device(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromLong(((memory_t *)self)->device);
}

static PyObject *get_owner(PyObject *self, void *unused) {
  (void)unused;
  PyObject *owner = ((memory_t *)self)->owner;
  return Py_NewRef(owner ? owner : Py_None);
}

static PyObject *get_stream(PyObject *self, void *unused) {
  (void)unused;
  PyObject *stream = ((memory_t *)self)->streams[0];
  return Py_NewRef(stream ? stream : Py_None);
}

static PyMethodDef memory_methods[] = {
    {"follow", memory_follow, METH_O, "follow(stream): it comes after all that uses the memory"},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef memory_properties[] = {{"address", get_address, NULL, "of the first byte", NULL},
                                          {"size", get_size, NULL, "in bytes", NULL},
                                          {"device", get_device, NULL, "number of the GPU; -1: the CPU", NULL},
                                          {"owner", get_owner, NULL, "the object that owns foreign memory", NULL},
                                          {"stream", get_stream, NULL, "the home stream", NULL},
                                          {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot memory_slots[] = {{Py_tp_dealloc, memory_dealloc},
                                     {Py_tp_traverse, memory_traverse},
                                     {Py_tp_clear, memory_clear},
                                     {Py_tp_methods, memory_methods},
                                     {Py_tp_getset, memory_properties},
                                     {Py_tp_doc, "Bytes behind arrays."},
                                     {0, NULL}};

static PyType_Spec memory_spec = {"tilewright._core.Memory", sizeof(memory_t), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  memory_slots};

/* === DeviceArray ================================================================================================== */

static memory_t *memory_behind(const device_array_t *array) { return (memory_t *)array->memory; }

static bool is_empty(const tw_array_t *view) {
  for (int d = 0; d < view->rank; d++)
    if (view->shape[d] == 0)
      return true;
  return false;
}

/* Whether all elements of a view lie in its memory. */
static bool is_inside(const device_array_t *array) {
  const memory_t *memory = memory_behind(array);
  int64_t low = 0, high = array->item;
  for (int d = 0; d < array->view.rank; d++) {
    int64_t reach;
    if (__builtin_mul_overflow(array->view.shape[d] - 1, array->view.strides[d], &reach) ||
        __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
      return false;
  }
  uint64_t at = (uint64_t)(uintptr_t)array->view.data - memory->address;
  return at <= memory->size && at + (uint64_t)low <= memory->size && at + (uint64_t)high <= memory->size;
}

static int read_extents(PyObject *tuple, int64_t *out, int rank) {
  for (int d = 0; d < rank; d++)
    out[d] = PyLong_AsLongLong(PyTuple_GetItem(tuple, d));
  return PyErr_Occurred() ? -1 : 0;
}

static int set_format(device_array_t *array, PyObject *format) {
  const char *name;
  PyObject *dtype, *typestr, *descr;
  long long item;
  if (!PyArg_ParseTuple(format, "OsLOO:format", &dtype, &name, &item, &typestr, &descr))
    return -1;
  array->format = Py_NewRef(format);
  array->item = item;
  array->view.dtype = (uint8_t)tw_dtype_from_name(name);
  array->view.item_bytes = (uint32_t)item;
  return 0;
}

static int set_view(device_array_t *array, PyObject *shape, PyObject *strides, PyObject *format, int read_only) {
  tw_array_t *view = &array->view;
  Py_ssize_t rank = PyTuple_Size(shape);
  if (rank < 0 || PyTuple_Size(strides) != rank || rank > TW_MAX_RANK) {
    tw_ext_error(TW_VALUE_ERROR, "an array has at most %d dimensions, found %zd; reshape it", TW_MAX_RANK, rank);
    return -1;
  }
  view->rank = (uint8_t)rank;
  view->flags = read_only ? TW_ARRAY_READ_ONLY : 0;
  view->device_kind = memory_behind(array)->device < 0 ? TW_DEVICE_CPU : TW_DEVICE_CUDA;
  view->device_id = memory_behind(array)->device < 0 ? 0 : memory_behind(array)->device;
  if (read_extents(shape, view->shape, (int)rank) || read_extents(strides, view->strides, (int)rank) ||
      set_format(array, format))
    return -1;
  if (is_empty(view))
    view->data = NULL;
  else if (!is_inside(array))
    return tw_ext_fail(TW_VALUE_ERROR, "a view reaches beyond the memory of its array");
  return 0;
}

/* DeviceArray(memory, address, shape, strides in bytes, format, read_only) */
static PyObject *array_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  static char *names[] = {"memory", "address", "shape", "strides", "format", "read_only", NULL};
  PyObject *memory, *shape, *strides, *format;
  unsigned long long address;
  int read_only = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OKO!O!O|p:DeviceArray", names, &memory, &address,
                                   &PyTuple_Type, &shape, &PyTuple_Type, &strides, &format, &read_only))
    return NULL;
  device_array_t *array = (device_array_t *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (!array)
    return NULL;
  const tw_state_t *state = tw_state_of_subclass((PyObject *)array);
  if (!state || Py_TYPE(memory) != state->memory) {
    Py_DECREF((PyObject *)array);
    return tw_ext_error(TW_TYPE_ERROR, "an array is made by tilewright.to_device, empty or as_array");
  }
  array->memory = Py_NewRef(memory);
  array->view.data = (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr): from Python */
  if (!set_view(array, shape, strides, format, read_only))
    return (PyObject *)array;
  Py_DECREF((PyObject *)array);
  return NULL;
}

static int array_clear(PyObject *self) {
  Py_CLEAR(((device_array_t *)self)->memory);
  Py_CLEAR(((device_array_t *)self)->format);
  return 0;
}

static void array_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  array_clear(self);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF((PyObject *)type);
}

static int array_traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT((PyObject *)Py_TYPE(self));
  Py_VISIT(((device_array_t *)self)->memory);
  Py_VISIT(((device_array_t *)self)->format);
  return 0;
}

bool tw_ext_is_device_array(const tw_state_t *state, PyObject *object) {
  return PyType_IsSubtype(Py_TYPE(object), state->device_array);
}

/* What a launch sees: strides in elements, work on other streams before its own. */
int tw_ext_read_device_array(PyObject *object, tw_reader_t *reader, tw_array_t *out) {
  const device_array_t *array = (const device_array_t *)object;
  memory_t *memory = memory_behind(array);
  *out = array->view;
  if (out->dtype == TW_DTYPE_NONE)
    return tw_ext_dtype_error(object, "record");
  tw_status_t status = NULL;
  if (memory->device >= 0 && !reader->stream.decided) {
    reader->stream.handle = memory->home.handle;
    reader->stream.decided = true;
  }
  for (int d = 0; !status && d < out->rank; d++) {
    if (out->shape[d] > 1 && out->strides[d] % array->item)
      status = TW_ERROR(TW_VALUE_ERROR,
                        "its stride in dimension %d (%lld bytes) is not a multiple of its item size "
                        "(%lld bytes); copy it",
                        d, (long long)out->strides[d], (long long)array->item);
    out->strides[d] /= array->item;
  }
  if (!status)
    status = tw_array_finish(out);
  if (!status)
    status = follow(memory, reader->stream.handle, reader->stream.object);
  return status ? tw_ext_fail_status(status) : 0;
}

/* === exports ====================================================================================================== */

static PyObject *get_memory(PyObject *self, void *unused) {
  (void)unused;
  return Py_NewRef(((device_array_t *)self)->memory);
}

static PyObject *get_pointer(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromVoidPtr(((device_array_t *)self)->view.data);
}

static PyObject *get_shape(PyObject *self, void *unused) {
  (void)unused;
  return tw_ext_integers(((device_array_t *)self)->view.shape, ((device_array_t *)self)->view.rank);
}

static PyObject *get_strides(PyObject *self, void *unused) {
  (void)unused;
  return tw_ext_integers(((device_array_t *)self)->view.strides, ((device_array_t *)self)->view.rank);
}

static PyObject *get_format(PyObject *self, void *unused) {
  (void)unused;
  return Py_NewRef(((device_array_t *)self)->format);
}

static PyObject *get_read_only(PyObject *self, void *unused) {
  (void)unused;
  return PyBool_FromLong(((device_array_t *)self)->view.flags & TW_ARRAY_READ_ONLY);
}

static bool is_compact(const device_array_t *array) {
  int64_t step = array->item;
  for (int d = array->view.rank - 1; d >= 0; d--) {
    if (array->view.shape[d] != 1 && array->view.strides[d] != step)
      return false;
    step *= array->view.shape[d];
  }
  return true;
}

/* Work that is still pending goes to the home stream, which an export names: a stream that the array keeps alive. */
static int pending_work(memory_t *memory, bool *out_busy) {
  tw_status_t status = follow(memory, memory->home.handle, NULL);
  if (!status)
    status = tw_stream_is_busy(memory->device, memory->home.handle, out_busy);
  return status ? tw_ext_fail_status(status) : 0;
}

/* Version 2, or 3 with the stream while work is pending on it. */
static PyObject *get_cuda_interface(PyObject *self, void *unused) {
  (void)unused;
  device_array_t *array = (device_array_t *)self;
  memory_t *memory = memory_behind(array);
  PyObject *typestr = PyTuple_GetItem(array->format, 3), *descr = PyTuple_GetItem(array->format, 4);
  if (memory->device < 0 || typestr == Py_None) {
    PyErr_SetString(PyExc_AttributeError, memory->device < 0
                                              ? "__cuda_array_interface__: the array is on the CPU"
                                              : "__cuda_array_interface__ has no typestr for this dtype; use DLPack");
    return NULL;
  }
  bool busy = false;
  if (!is_empty(&array->view) && pending_work(memory, &busy))
    return NULL;
  PyObject *strides = is_compact(array) || is_empty(&array->view) ? Py_NewRef(Py_None) : get_strides(self, NULL);
  PyObject *result = Py_BuildValue("{sNsOs(NO)sisN}", "shape", get_shape(self, NULL), "typestr", typestr, "data",
                                   get_pointer(self, NULL), array->view.flags ? Py_True : Py_False, "version",
                                   busy ? 3 : 2, "strides", strides);
  PyObject *stream = result && busy ? PyLong_FromVoidPtr(memory->home.handle ? memory->home.handle : (void *)1) : NULL;
  if (result && ((descr != Py_None && PyDict_SetItemString(result, "descr", descr)) ||
                 (stream && PyDict_SetItemString(result, "stream", stream))))
    Py_CLEAR(result);
  Py_XDECREF(stream);
  return result;
}

static PyObject *dlpack_device(PyObject *self, PyObject *unused) {
  (void)unused;
  const memory_t *memory = memory_behind((device_array_t *)self);
  return memory->device < 0 ? Py_BuildValue("(ii)", TW_DL_CPU, 0) : Py_BuildValue("(ii)", TW_DL_CUDA, memory->device);
}

/* A tensor with what it points to, in either form. */
typedef struct exported {
  union {
    tw_dl_managed_versioned_t versioned;
    tw_dl_managed_t plain;
  } managed;
  PyObject *array; /* owned */
  int64_t shape[TW_MAX_RANK], strides[TW_MAX_RANK];
} exported_t;

static void free_exported(exported_t *exported) {
  if (!Py_IsInitialized())
    return;
  PyGILState_STATE state = PyGILState_Ensure();
  Py_DECREF(exported->array);
  free(exported);
  PyGILState_Release(state);
}

static void delete_versioned(tw_dl_managed_versioned_t *managed) { free_exported(managed->context); }
static void delete_plain(tw_dl_managed_t *managed) { free_exported(managed->context); }

static void drop_capsule(PyObject *capsule) { /* one that nobody took is not renamed */
  static const char *const names[] = {"dltensor", "dltensor_versioned"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (PyCapsule_IsValid(capsule, names[i])) /* the managed form is the first member */
      free_exported(PyCapsule_GetPointer(capsule, names[i]));
}

static int fill_tensor(const device_array_t *array, exported_t *exported, tw_dl_tensor_t *tensor) {
  const tw_array_t *view = &array->view;
  *tensor = (tw_dl_tensor_t){.data = view->data,
                             .device = {view->device_kind == TW_DEVICE_CPU ? TW_DL_CPU : TW_DL_CUDA, view->device_id},
                             .rank = view->rank,
                             .shape = exported->shape,
                             .strides = exported->strides};
  if (!tw_dtype_to_dlpack((tw_dtype_t)view->dtype, &tensor->dtype)) {
    PyErr_SetString(PyExc_BufferError, "DLPack has no dtype for the array's; view it as another");
    return -1;
  }
  for (int d = 0; d < view->rank; d++) {
    if (view->shape[d] > 1 && view->strides[d] % array->item) {
      PyErr_SetString(PyExc_BufferError,
                      "DLPack counts strides in elements, and these are no multiple; copy the array");
      return -1;
    }
    exported->shape[d] = view->shape[d];
    exported->strides[d] = view->strides[d] / array->item;
  }
  return 0;
}

/* A capsule of the array; it owns the array until it is taken, the taker from then on. */
static PyObject *make_capsule(device_array_t *array, bool versioned) {
  exported_t *exported = calloc(1, sizeof *exported);
  if (!exported)
    return PyErr_NoMemory();
  if (fill_tensor(array, exported, versioned ? &exported->managed.versioned.tensor : &exported->managed.plain.tensor)) {
    free(exported);
    return NULL;
  }
  exported->array = Py_NewRef((PyObject *)array);
  if (versioned) {
    exported->managed.versioned.version = (tw_dl_version_t){1, 1};
    exported->managed.versioned.context = exported;
    exported->managed.versioned.deleter = delete_versioned;
    exported->managed.versioned.flags = array->view.flags & TW_ARRAY_READ_ONLY ? TW_DL_READ_ONLY : 0;
  } else {
    exported->managed.plain.context = exported;
    exported->managed.plain.deleter = delete_plain;
  }
  PyObject *capsule = PyCapsule_New(exported, versioned ? "dltensor_versioned" : "dltensor", drop_capsule);
  if (!capsule)
    free_exported(exported);
  return capsule;
}

/* The consumer's stream, as DLPack spells it: None is the legacy default one, -1 wants no order. */
static int order_consumer(memory_t *memory, PyObject *stream) {
  if (memory->device < 0) {
    if (stream == Py_None)
      return 0;
    return tw_ext_fail(TW_VALUE_ERROR, "__dlpack__: an array on the CPU has no stream; pass None");
  }
  void *handle = (void *)1;
  if (stream != Py_None) {
    long long value = PyLong_AsLongLong(stream);
    if (value == -1 && PyErr_Occurred())
      return -1;
    if (value == -1)
      return 0;
    if (value <= 0)
      return tw_ext_fail(TW_VALUE_ERROR, "__dlpack__: stream 0 is ambiguous; 1 is the legacy default stream");
    handle = (void *)(uintptr_t)value; /* NOLINT(performance-no-int-to-ptr): a handle */
  }
  tw_status_t status = follow(memory, handle, NULL);
  return status ? tw_ext_fail_status(status) : 0;
}

static int check_device(PyObject *self, PyObject *wanted) {
  if (wanted == Py_None)
    return 0;
  PyObject *own = dlpack_device(self, NULL);
  int same = own ? PyObject_RichCompareBool(own, wanted, Py_EQ) : -1;
  Py_XDECREF(own);
  if (same == 0)
    PyErr_SetString(PyExc_BufferError, "__dlpack__: the array is on another device; copy it there first");
  return same == 1 ? 0 : -1;
}

/* __dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None) */
static PyObject *array_dlpack(PyObject *self, PyObject *arguments, PyObject *keywords) {
  static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
  PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$OOOO:__dlpack__", names, &stream, &version, &device, &copy))
    return NULL;
  device_array_t *array = (device_array_t *)self;
  if (check_device(self, device))
    return NULL;
  long major = 0;
  if (version != Py_None) {
    PyObject *first = PySequence_GetItem(version, 0);
    major = first ? PyLong_AsLong(first) : -1;
    Py_XDECREF(first);
    if (PyErr_Occurred())
      return NULL;
  }
  if (copy == Py_True) {
    PyObject *fresh = PyObject_CallMethod(self, "copy", NULL), *capsule = NULL;
    if (fresh && !order_consumer(memory_behind((device_array_t *)fresh), stream))
      capsule = make_capsule((device_array_t *)fresh, major >= 1);
    Py_XDECREF(fresh);
    return capsule;
  }
  if (major < 1 && array->view.flags & TW_ARRAY_READ_ONLY) {
    PyErr_SetString(PyExc_BufferError, "__dlpack__: a read-only array needs DLPack 1: pass max_version=(1, 0)");
    return NULL;
  }
  return order_consumer(memory_behind(array), stream) ? NULL : make_capsule(array, major >= 1);
}

static PyMethodDef device_array_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))array_dlpack, METH_VARARGS | METH_KEYWORDS, "A DLPack capsule."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, "(device type, number)"},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef device_array_properties[] = {
    {"memory", get_memory, NULL, "the memory, which views share", NULL},
    {"address", get_pointer, NULL, "of element 0; 0 without elements", NULL},
    {"shape", get_shape, NULL, "extents", NULL},
    {"strides", get_strides, NULL, "distances of elements in bytes", NULL},
    {"format", get_format, NULL, "(dtype, name, item size, typestr, descr)", NULL},
    {"read_only", get_read_only, NULL, "whether kernels may not write", NULL},
    {"__cuda_array_interface__", get_cuda_interface, NULL, "the CUDA Array Interface", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot device_array_slots[] = {{Py_tp_new, array_new},
                                           {Py_tp_dealloc, array_dealloc},
                                           {Py_tp_traverse, array_traverse},
                                           {Py_tp_clear, array_clear},
                                           {Py_tp_methods, device_array_methods},
                                           {Py_tp_getset, device_array_properties},
                                           {Py_tp_doc, "A view of a Memory; see tilewright.Array."},
                                           {0, NULL}};

static PyType_Spec device_array_spec = {"tilewright._core.DeviceArray", sizeof(device_array_t), 0,
                                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
                                        device_array_slots};

/* === copies, pointers ============================================================================================= */

/* array_copy(device, stream, target, source, target_pitch, source_pitch, width, height, wait) */
static PyObject *array_copy(PyObject *module, PyObject *arguments) {
  int device, wait;
  PyObject *object;
  unsigned long long target, source;
  Py_ssize_t target_pitch, source_pitch, width, height;
  tw_stream_t stream = {0};
  if (!PyArg_ParseTuple(arguments, "iOKKnnnnp:array_copy", &device, &object, &target, &source, &target_pitch,
                        &source_pitch, &width, &height, &wait) ||
      tw_ext_stream_read(tw_state_of(module), object, &stream))
    return NULL;
  const tw_rows_t rows = {target, source, (size_t)target_pitch, (size_t)source_pitch, (size_t)width, (size_t)height};
  tw_status_t status;
  Py_BEGIN_ALLOW_THREADS status = tw_array_memory_copy(device, stream.handle, &rows, wait);
  Py_END_ALLOW_THREADS return status ? tw_ext_raise(status, NULL) : Py_NewRef(Py_None);
}

/* pointer_attributes(address) -> dict */
static PyObject *pointer_attributes(PyObject *module, PyObject *object) {
  (void)module;
  void *address = PyLong_AsVoidPtr(object);
  if (!address && PyErr_Occurred())
    return NULL;
  tw_pointer_t pointer;
  tw_status_t status = tw_pointer_query(address, &pointer);
  if (status)
    return tw_ext_raise(status, NULL);
  return Py_BuildValue("{sNsKsisisNsN}", "context", PyLong_FromVoidPtr(pointer.context), "device_pointer",
                       (unsigned long long)pointer.device, "device", pointer.ordinal, "memory_type",
                       (int)pointer.memory_type, "host_accessible", PyBool_FromLong(pointer.host_accessible), "managed",
                       PyBool_FromLong(pointer.managed != 0));
}

static PyMethodDef methods[] = {
    {"memory_take", memory_take, METH_VARARGS, "memory_take(size, device, stream) -> Memory; device -1 is the CPU"},
    {"memory_of", memory_of, METH_VARARGS, "memory_of(address, size, device, owner, stream) -> Memory of another's"},
    {"array_copy", array_copy, METH_VARARGS,
     "array_copy(device, stream, target, source, target_pitch, source_pitch, width, height, wait)"},
    {"pointer_attributes", pointer_attributes, METH_O,
     "pointer_attributes(address) -> what the CUDA driver knows of it"},
    {NULL, NULL, 0, NULL}};

int tw_ext_device_array_add(PyObject *module) {
  tw_state_t *state = tw_state_of(module);
  if (tw_ext_add_type(module, &memory_spec, &state->memory) ||
      tw_ext_add_type(module, &device_array_spec, &state->device_array))
    return -1;
  return PyModule_AddFunctions(module, methods);
}
