/* array.c - arrays of any library as tw_array_t, by the quickest protocol that the object has
 *
 *   type with the DLPack C exchange API (torch)    a C call that fills a tensor: 20 to 40 ns
 *   NumPy array                                    buffer protocol; __array_interface__ for dtypes
 *                                                  that buffers cannot express (bfloat16, float8)
 *   __dlpack__ (CuPy, JAX, older torch)            capsule, versioned or not
 *   __cuda_array_interface__ (Numba, ...)          versions 0 to 3
 *   buffer protocol                                memoryview, array.array
 *
 * A reader that fails raises a message that speaks of "it"; the launch puts the argument's name
 * before it. Nothing is copied, with one exception that its section explains. */
#include "launch.h"

#include <stdlib.h>
#include <string.h>

/* === small helpers ========================================================================== */

static int raise_status(tw_status_t status) {
  tw_ext_raise(status, NULL);
  return -1;
}

static int fail(tw_code_t code, const char *text) {
  tw_ext_error(code, "%s", text);
  return -1;
}

/* getattr that turns AttributeError into *out == NULL; -1 for other exceptions. */
static int optional_attr(PyObject *object, const char *name, PyObject **out) {
  *out = PyObject_GetAttrString(object, name);
  if (*out || !PyErr_ExceptionMatches(PyExc_AttributeError))
    return *out ? 0 : -1;
  PyErr_Clear();
  return 0;
}

static tw_hold_t *hold_new(tw_hold_t **holds) {
  tw_hold_t *hold = calloc(1, sizeof *hold);
  if (!hold) {
    PyErr_NoMemory();
    return NULL;
  }
  hold->next = *holds;
  return *holds = hold;
}

/* Keeps a reference (taken) until the launch is over. */
static int hold_object(tw_hold_t **holds, PyObject *object_owned) {
  tw_hold_t *hold = hold_new(holds);
  if (!hold) {
    Py_DECREF(object_owned);
    return -1;
  }
  hold->object = object_owned;
  return 0;
}

/* === NumPy, without importing it ============================================================ */

/* numpy.<name> if NumPy is loaded in this process; borrowed, kept for ever once found. */
static PyObject *numpy_class(const char *name, PyObject **kept) {
  if (*kept)
    return *kept;
  PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
  PyObject *numpy = modules ? PyDict_GetItemString(modules, "numpy") : NULL;
  *kept = numpy ? PyObject_GetAttrString(numpy, name) : NULL;
  if (!*kept)
    PyErr_Clear();
  return *kept;
}

static bool is_instance(PyObject *object, PyObject *class) {
  int answer = class ? PyObject_IsInstance(object, class) : 0;
  if (answer < 0)
    PyErr_Clear();
  return answer > 0;
}

static bool is_numpy_array(PyObject *object) {
  static PyObject *ndarray;
  return is_instance(object, numpy_class("ndarray", &ndarray));
}

bool tw_ext_is_numpy_scalar(PyObject *object) {
  static PyObject *generic;
  return is_instance(object, numpy_class("generic", &generic));
}

/* === dtypes ================================================================================= */

/* Text of object.dtype: its name, else str() without the library's name; new reference or NULL
 * without an exception. */
static PyObject *dtype_text(PyObject *object) {
  PyObject *dtype = PyObject_GetAttrString(object, "dtype");
  PyObject *name = dtype ? PyObject_GetAttrString(dtype, "name") : NULL;
  if (dtype && (!name || !PyUnicode_Check(name))) {
    PyErr_Clear();
    Py_XDECREF(name);
    name = PyObject_Str(dtype);
  }
  Py_XDECREF(dtype);
  if (!name)
    PyErr_Clear();
  return name;
}

tw_dtype_t tw_ext_dtype_of(PyObject *object) {
  PyObject *text = dtype_text(object);
  const char *name = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  tw_dtype_t dtype = TW_DTYPE_NONE;
  if (name) {
    const char *dot = strrchr(name, '.'); /* "torch.float32" */
    dtype = tw_dtype_from_name(dot ? dot + 1 : name);
  }
  PyErr_Clear();
  Py_XDECREF(text);
  return dtype;
}

static int dtype_error(PyObject *object, const char *fallback) {
  PyObject *text = dtype_text(object);
  PyObject *shown = text ? text : PyUnicode_FromString(fallback);
  if (shown)
    tw_ext_error(TW_TYPE_ERROR,
                 "its dtype %S is not supported; convert it to bool, int8..int64, uint8..uint64, "
                 "float16, bfloat16, float32, float64 or a float8",
                 shown);
  Py_XDECREF(shown);
  return -1;
}

static int byte_order_error(const char *text) {
  tw_ext_error(TW_TYPE_ERROR,
               "its byte order (dtype '%s') is not this machine's; convert it with "
               "a.astype(a.dtype.newbyteorder('='))",
               text);
  return -1;
}

/* kind: b(ool), i, u, f as in NumPy's type strings. */
static tw_dtype_t dtype_of_kind(char kind, Py_ssize_t size) {
  static const struct {
    char kind, size;
    uint8_t dtype;
  } table[] = {{'b', 1, TW_DTYPE_BOOL},    {'i', 1, TW_DTYPE_INT8},    {'i', 2, TW_DTYPE_INT16},
               {'i', 4, TW_DTYPE_INT32},   {'i', 8, TW_DTYPE_INT64},   {'u', 1, TW_DTYPE_UINT8},
               {'u', 2, TW_DTYPE_UINT16},  {'u', 4, TW_DTYPE_UINT32},  {'u', 8, TW_DTYPE_UINT64},
               {'f', 2, TW_DTYPE_FLOAT16}, {'f', 4, TW_DTYPE_FLOAT32}, {'f', 8, TW_DTYPE_FLOAT64}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].kind == kind && table[i].size == size)
      return (tw_dtype_t)table[i].dtype;
  return TW_DTYPE_NONE;
}

/* "<f4" of the array interfaces.  What it cannot say is asked of object.dtype. */
static int dtype_from_typestr(PyObject *object, PyObject *typestr, tw_dtype_t *out_dtype, Py_ssize_t *out_size) {
  const char *text = PyUnicode_Check(typestr) ? PyUnicode_AsUTF8AndSize(typestr, NULL) : NULL;
  if (!text || !text[0] || !text[1])
    return fail(TW_TYPE_ERROR, "its array interface has a typestr that is no type string");
  *out_size = (Py_ssize_t)strtol(text + 2, NULL, 10);
  *out_dtype = dtype_of_kind(text[1], *out_size);
  if (text[0] == '>' && *out_size > 1)
    return byte_order_error(text);
  if (*out_dtype == TW_DTYPE_NONE) { /* "<V2", "<f1": formats that NumPy itself lacks */
    *out_dtype = tw_ext_dtype_of(object);
    if ((Py_ssize_t)(tw_dtype_bits(*out_dtype) + 7) / 8 != *out_size)
      *out_dtype = TW_DTYPE_NONE;
  }
  return *out_dtype == TW_DTYPE_NONE ? dtype_error(object, text) : 0;
}

/* Format of the struct module; the size tells the width. */
static tw_dtype_t dtype_from_format(const char *format, Py_ssize_t size, bool *out_swapped) {
  static const char kinds[][2] = {{'?', 'b'}, {'b', 'i'}, {'h', 'i'}, {'i', 'i'}, {'l', 'i'}, {'q', 'i'},
                                  {'n', 'i'}, {'B', 'u'}, {'H', 'u'}, {'I', 'u'}, {'L', 'u'}, {'Q', 'u'},
                                  {'N', 'u'}, {'e', 'f'}, {'f', 'f'}, {'d', 'f'}};
  *out_swapped = (*format == '>' || *format == '!') && size > 1;
  if (strchr("@=<>!", *format) && *format)
    format++;
  for (size_t i = 0; *format && !format[1] && i < sizeof kinds / sizeof *kinds; i++)
    if (kinds[i][0] == *format)
      return dtype_of_kind(kinds[i][1], size);
  return TW_DTYPE_NONE;
}

/* === shapes ================================================================================= */

/* A sequence of integers; returns its length or -1. */
static int read_integers(PyObject *sequence, int64_t *out) {
  Py_ssize_t count = PySequence_Size(sequence);
  if (count < 0)
    return -1;
  if (count > TW_MAX_RANK) {
    tw_ext_error(TW_VALUE_ERROR, "it has %zd dimensions, the most is %d; reshape it", count, TW_MAX_RANK);
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *item = PySequence_GetItem(sequence, i);
    PyObject *number = item ? PyNumber_Index(item) : NULL;
    out[i] = number ? PyLong_AsLongLong(number) : -1;
    Py_XDECREF(number);
    Py_XDECREF(item);
    if (PyErr_Occurred())
      return -1;
  }
  return (int)count;
}

/* Strides of array->strides from bytes to elements. */
static int strides_from_bytes(tw_array_t *array, Py_ssize_t size) {
  for (int d = 0; d < array->rank; d++) {
    if (array->shape[d] > 1 && array->strides[d] % size) {
      tw_ext_error(TW_VALUE_ERROR,
                   "its stride in dimension %d (%lld bytes) is not a multiple of its item size "
                   "(%zd bytes); copy it, as with numpy.ascontiguousarray",
                   d, (long long)array->strides[d], size);
      return -1;
    }
    array->strides[d] /= size;
  }
  return 0;
}

static int finish(tw_array_t *array) {
  tw_status_t status = tw_array_finish(array);
  return status ? raise_status(status) : 0;
}

/* === __array_interface__ and __cuda_array_interface__ ======================================= */

static PyObject *entry(PyObject *interface, const char *name) {
  PyObject *value = PyDict_GetItemString(interface, name);
  return value == Py_None ? NULL : value; /* absent and None mean the same, in both interfaces */
}

static int read_pointer(PyObject *interface, tw_array_t *out) {
  PyObject *data = entry(interface, "data");
  if (!data || !PyTuple_Check(data) || PyTuple_Size(data) != 2)
    return fail(TW_TYPE_ERROR, "its array interface has no (pointer, read-only) tuple as data");
  out->data = PyLong_AsVoidPtr(PyTuple_GetItem(data, 0));
  int read_only = PyErr_Occurred() ? -1 : PyObject_IsTrue(PyTuple_GetItem(data, 1));
  if (read_only < 0)
    return -1;
  out->flags = read_only ? TW_ARRAY_READ_ONLY : 0;
  return 0;
}

/* The part that both interfaces have in common. */
static int read_interface(PyObject *object, PyObject *interface, tw_array_t *out, Py_ssize_t *out_size) {
  tw_dtype_t dtype;
  PyObject *shape = entry(interface, "shape"), *strides = entry(interface, "strides"),
           *typestr = entry(interface, "typestr");
  if (!shape || !typestr)
    return fail(TW_TYPE_ERROR, "its array interface lacks shape or typestr");
  if (read_pointer(interface, out) || dtype_from_typestr(object, typestr, &dtype, out_size))
    return -1;
  out->dtype = (uint8_t)dtype;
  int rank = read_integers(shape, out->shape);
  if (rank < 0)
    return -1;
  out->rank = (uint8_t)rank;
  if (!strides) {
    tw_array_set_compact(out);
    return 0;
  }
  int count = read_integers(strides, out->strides);
  if (count >= 0 && count != rank)
    return fail(TW_VALUE_ERROR, "its array interface has strides of another length than its shape");
  return count < 0 ? -1 : strides_from_bytes(out, *out_size);
}

static bool is_empty(const tw_array_t *array) {
  for (int d = 0; d < array->rank; d++)
    if (array->shape[d] == 0)
      return true;
  return false;
}

/* Work that the producer queued on its stream must be over before the kernel reads. */
static int follow_producer(PyObject *interface, tw_stream_t *stream, int device_id) {
  PyObject *entry_stream = entry(interface, "stream");
  if (!entry_stream)
    return 0; /* none needed, or versions before 3: the user's affair */
  void *producer = PyLong_AsVoidPtr(entry_stream);
  if (PyErr_Occurred())
    return -1;
  if (!producer)
    return fail(TW_VALUE_ERROR, "its __cuda_array_interface__ names stream 0, which the interface forbids as "
                                "ambiguous (1 is the legacy default stream, 2 the per-thread one)");
  if (!stream->decided) {
    stream->handle = producer;
    stream->decided = true;
    return 0;
  }
  tw_status_t status = tw_stream_order(device_id, producer, stream->handle);
  return status ? raise_status(status) : 0;
}

static int check_cuda_interface(PyObject *interface) {
  if (!PyDict_Check(interface))
    return fail(TW_TYPE_ERROR, "its __cuda_array_interface__ is not a dictionary");
  PyObject *version = entry(interface, "version");
  long number = version ? PyLong_AsLong(version) : 0;
  if (PyErr_Occurred())
    return -1;
  if (number < 0 || number > 3) {
    tw_ext_error(TW_TYPE_ERROR, "its __cuda_array_interface__ has version %ld; versions 0 to 3 are known", number);
    return -1;
  }
  if (entry(interface, "mask"))
    return fail(TW_UNIMPLEMENTED, "its __cuda_array_interface__ has a mask; masked arrays are not supported: pass "
                                  "data and mask as two arrays");
  return 0;
}

static int read_cuda_interface(PyObject *object, PyObject *interface, tw_stream_t *stream, tw_array_t *out) {
  Py_ssize_t size;
  if (check_cuda_interface(interface) || read_interface(object, interface, out, &size))
    return -1;
  out->device_kind = TW_DEVICE_CUDA;
  out->device_id = -1; /* an empty array belongs to no device */
  if (!is_empty(out) && out->data) {
    int ordinal;
    tw_status_t status = tw_pointer_device(out->data, &ordinal);
    if (status)
      return raise_status(status);
    out->device_id = ordinal;
  }
  if (finish(out))
    return -1;
  return follow_producer(interface, stream, out->device_id < 0 ? 0 : out->device_id);
}

/* === NumPy and the buffer protocol ========================================================== */

static int read_buffer(PyObject *object, tw_array_t *out, tw_hold_t **holds) {
  tw_hold_t *hold = hold_new(holds);
  if (!hold)
    return -1;
  Py_buffer *buffer = &hold->buffer;
  if (PyObject_GetBuffer(object, buffer, PyBUF_STRIDES | PyBUF_FORMAT))
    return -1;
  bool swapped;
  tw_dtype_t dtype = dtype_from_format(buffer->format ? buffer->format : "B", buffer->itemsize, &swapped);
  if (dtype == TW_DTYPE_NONE)
    return dtype_error(object, buffer->format ? buffer->format : "?");
  if (swapped)
    return byte_order_error(buffer->format);
  if (buffer->ndim > TW_MAX_RANK) {
    tw_ext_error(TW_VALUE_ERROR, "it has %d dimensions, the most is %d; reshape it", buffer->ndim, TW_MAX_RANK);
    return -1;
  }
  *out = (tw_array_t){.data = buffer->buf,
                      .dtype = (uint8_t)dtype,
                      .rank = (uint8_t)buffer->ndim,
                      .device_kind = TW_DEVICE_CPU,
                      .flags = buffer->readonly ? TW_ARRAY_READ_ONLY : 0};
  for (int d = 0; d < buffer->ndim; d++) {
    out->shape[d] = buffer->shape[d];
    out->strides[d] = buffer->strides[d];
  }
  return strides_from_bytes(out, buffer->itemsize) ? -1 : finish(out);
}

/* Dtypes that buffers cannot express. */
static int read_array_interface(PyObject *object, tw_array_t *out) {
  PyObject *interface = PyObject_GetAttrString(object, "__array_interface__");
  Py_ssize_t size;
  if (!interface)
    return -1;
  int failed = PyDict_Check(interface) ? read_interface(object, interface, out, &size)
                                       : fail(TW_TYPE_ERROR, "its __array_interface__ is not a dictionary");
  Py_DECREF(interface); /* the array itself keeps the memory */
  out->device_kind = TW_DEVICE_CPU;
  out->device_id = 0;
  if (!failed && out->dtype == TW_DTYPE_FLOAT4_E2M1FN)
    return fail(TW_TYPE_ERROR, "NumPy keeps one float4_e2m1fn in a byte, kernels two; pack pairs into a uint8 "
                               "array (the low half first) and pass ArrayView(packed, \"float4_e2m1fn\")");
  return failed ? -1 : finish(out);
}

static int read_numpy(PyObject *object, tw_array_t *out, tw_hold_t **holds) {
  if (!read_buffer(object, out, holds))
    return 0;
  /* NumPy's own refusal, not ours: it has a dtype without a format. */
  if (!PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(tw_ext_error_class(TW_VALUE_ERROR)))
    return -1;
  PyErr_Clear();
  return read_array_interface(object, out);
}

/* === the DLPack C exchange API ============================================================== */

/* What is known of a type; types are kept alive, so that an address is not used again. */
typedef struct known_type {
  PyTypeObject *type;
  const tw_dl_exchange_t *exchange; /* NULL: read it another way */
} known_type_t;

enum { KNOWN_TYPES = 8 };
static known_type_t known_types[KNOWN_TYPES];
static unsigned known_next;

/* A subclass inherits the attribute, but may stand for other memory than its base describes (a
 * wrapper that overrides dispatch): only the class that defines it is trusted, and torch's Parameter. */
static bool is_trusted(PyTypeObject *type) {
  PyObject *members = PyObject_GetAttrString((PyObject *)type, "__dict__");
  PyObject *own = members ? PyMapping_GetItemString(members, "__dlpack_c_exchange_api__") : NULL;
  Py_XDECREF(members);
  PyErr_Clear();
  if (own) {
    Py_DECREF(own);
    return true;
  }
  PyObject *module = PyObject_GetAttrString((PyObject *)type, "__module__");
  PyObject *name = PyType_GetName(type);
  bool parameter = module && name && PyUnicode_Check(module) &&
                   !PyUnicode_CompareWithASCIIString(module, "torch.nn.parameter") &&
                   !PyUnicode_CompareWithASCIIString(name, "Parameter");
  Py_XDECREF(module);
  Py_XDECREF(name);
  PyErr_Clear();
  return parameter;
}

static const tw_dl_exchange_t *find_exchange(PyTypeObject *type) {
  PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
  const tw_dl_exchange_t *exchange = capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
  Py_XDECREF(capsule); /* the table is static in the producer */
  PyErr_Clear();
  while (exchange && exchange->version.major != 1)
    exchange = exchange->previous;
  if (exchange && !exchange->tensor_from_object && !exchange->managed_from_object)
    exchange = NULL;
  return exchange && is_trusted(type) ? exchange : NULL;
}

static const tw_dl_exchange_t *remember_type(PyTypeObject *type) {
  for (int i = 1; i < KNOWN_TYPES; i++)
    if (known_types[i].type == type)
      return known_types[i].exchange;
  const tw_dl_exchange_t *exchange = find_exchange(type);
  /* Slot 0 is looked at first: it is for a type that has the API. */
  unsigned slot = exchange && !known_types[0].exchange ? 0 : 1 + known_next++ % (KNOWN_TYPES - 1);
  PyTypeObject *old = known_types[slot].type;
  Py_INCREF((PyObject *)type);
  known_types[slot] = (known_type_t){type, exchange};
  Py_XDECREF((PyObject *)old);
  return exchange;
}

static inline const tw_dl_exchange_t *exchange_of(PyTypeObject *type) {
  return TW_LIKELY(known_types[0].type == type) ? known_types[0].exchange : remember_type(type);
}

/* The producer may have left no exception, against the protocol. */
static int exchange_failed(void) {
  if (!PyErr_Occurred())
    return fail(TW_TYPE_ERROR, "its library could not describe it through DLPack");
  tw_ext_error_from_pending(TW_TYPE_ERROR, "its library could not describe it through DLPack");
  return -1;
}

static int decide_stream(const tw_dl_exchange_t *exchange, int device_id, tw_stream_t *stream) {
  if (exchange->current_work_stream && exchange->current_work_stream(TW_DL_CUDA, device_id, &stream->handle))
    return exchange_failed();
  stream->decided = true;
  return 0;
}

/* For producers that must be told the stream: the one that an array with the exchange API works on,
 * else the legacy default stream. */
static int scan_for_stream(tw_stream_t *stream, int device_id) {
  Py_ssize_t count = stream->scan ? PyTuple_Size(stream->scan) : 0;
  for (Py_ssize_t i = 0; i < count && !stream->decided; i++) {
    const tw_dl_exchange_t *exchange = exchange_of(Py_TYPE(PyTuple_GetItem(stream->scan, i)));
    if (exchange && exchange->current_work_stream && decide_stream(exchange, device_id, stream))
      return -1;
  }
  stream->decided = true;
  return 0;
}

/* === DLPack capsules ======================================================================== */

static int read_tensor(const tw_dl_tensor_t *tensor, unsigned flags, tw_array_t *out) {
  tw_status_t status = tw_array_from_dlpack(tensor, flags, out);
  return status ? raise_status(status) : 0;
}

static int read_versioned(const tw_dl_managed_versioned_t *managed, tw_array_t *out) {
  if (managed->version.major != 1) {
    tw_ext_error(TW_TYPE_ERROR, "it speaks DLPack %u.%u; version 1 is known", managed->version.major,
                 managed->version.minor);
    return -1;
  }
  if (managed->flags & TW_DL_SUBBYTE_PADDED)
    return fail(TW_TYPE_ERROR, "its elements are smaller than a byte and padded; pack them");
  /* Writes to a copy would be lost. */
  bool protect = managed->flags & (TW_DL_READ_ONLY | TW_DL_IS_COPIED);
  return read_tensor(&managed->tensor, protect ? TW_ARRAY_READ_ONLY : 0, out);
}

static int read_capsule(PyObject *capsule, tw_array_t *out) {
  if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
    return read_versioned(PyCapsule_GetPointer(capsule, "dltensor_versioned"), out);
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    const tw_dl_managed_t *managed = PyCapsule_GetPointer(capsule, "dltensor");
    return read_tensor(&managed->tensor, 0, out);
  }
  return fail(TW_TYPE_ERROR, "its __dlpack__ did not return a fresh DLPack capsule");
}

/* obj.__dlpack__(stream=..., max_version=(1, 1)), without max_version for producers before 1.0. */
static PyObject *call_dlpack(PyObject *method, PyObject *stream) {
  PyObject *none = PyTuple_New(0), *names = Py_BuildValue("{sOs(ii)}", "stream", stream, "max_version", 1, 1);
  PyObject *capsule = none && names ? PyObject_Call(method, none, names) : NULL;
  if (!capsule && names && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    if (!PyDict_DelItemString(names, "max_version"))
      capsule = PyObject_Call(method, none, names);
  }
  Py_XDECREF(none);
  Py_XDECREF(names);
  return capsule;
}

/* The stream as the protocol spells it: None on the CPU; 1 for the legacy default stream. */
static PyObject *dlpack_stream(PyObject *object, tw_stream_t *stream) {
  PyObject *device = PyObject_CallMethod(object, "__dlpack_device__", NULL);
  int kind = 0, ordinal = 0;
  if (!device)
    return NULL;
  PyObject *first = PySequence_GetItem(device, 0), *second = PySequence_GetItem(device, 1);
  if (first && second) {
    kind = (int)PyLong_AsLong(first); /* may be an enum of integers */
    ordinal = (int)PyLong_AsLong(second);
  }
  Py_XDECREF(first);
  Py_XDECREF(second);
  Py_DECREF(device);
  if (PyErr_Occurred())
    return NULL;
  if (kind != TW_DL_CUDA && kind != TW_DL_CUDA_MANAGED)
    return Py_NewRef(Py_None);
  if (!stream->decided && scan_for_stream(stream, ordinal))
    return NULL;
  return PyLong_FromVoidPtr(stream->handle ? stream->handle : (void *)1);
}

/* What DLPack cannot express (a dtype, read-only memory) the CUDA Array Interface may. */
static int dlpack_refused(PyObject *object, tw_stream_t *stream, tw_array_t *out, tw_hold_t **holds) {
  PyObject *type, *value, *trace, *interface;
  PyErr_Fetch(&type, &value, &trace);
  int failed = optional_attr(object, "__cuda_array_interface__", &interface);
  if (failed || !interface) {
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
    tw_ext_error_from_pending(TW_TYPE_ERROR, "its __dlpack__ refused");
    return -1;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  failed = read_cuda_interface(object, interface, stream, out);
  return hold_object(holds, interface) ? -1 : failed;
}

static int read_dlpack(PyObject *object, PyObject *method, tw_stream_t *stream, tw_array_t *out, tw_hold_t **holds) {
  PyObject *where = dlpack_stream(object, stream);
  PyObject *capsule = where ? call_dlpack(method, where) : NULL;
  Py_XDECREF(where);
  if (!capsule)
    return dlpack_refused(object, stream, out, holds);
  if (hold_object(holds, capsule))
    return -1;
  return read_capsule(capsule, out);
}

/* === reading by the exchange API ============================================================ */

static int read_exchange(const tw_dl_exchange_t *exchange, PyObject *object, tw_stream_t *stream, tw_array_t *out,
                         tw_hold_t **holds) {
  if (TW_LIKELY(exchange->tensor_from_object != NULL)) {
    tw_dl_tensor_t tensor; /* shape and strides point into the object */
    if (TW_UNLIKELY(exchange->tensor_from_object(object, &tensor)))
      return exchange_failed();
    if (TW_UNLIKELY(read_tensor(&tensor, 0, out)))
      return -1;
  } else {
    tw_hold_t *hold = hold_new(holds);
    if (!hold)
      return -1;
    if (exchange->managed_from_object(object, &hold->managed))
      return exchange_failed();
    if (read_versioned(hold->managed, out))
      return -1;
  }
  if (out->device_kind == TW_DEVICE_CUDA && !stream->decided)
    return decide_stream(exchange, out->device_id, stream);
  return 0;
}

/* === ArrayView: an array under another dtype ================================================ */

typedef struct view_object {
  PyObject_HEAD PyObject *array; /* owned */
  tw_dtype_t dtype;
} view_object_t;

static PyTypeObject *view_type;

static PyObject *view_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  static char *names[] = {"array", "dtype", NULL};
  PyObject *array, *dtype;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO:ArrayView", names, &array, &dtype))
    return NULL;
  PyObject *text = PyObject_Str(dtype); /* a DType prints as its name */
  const char *name = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  tw_dtype_t code = name ? tw_dtype_from_name(name) : TW_DTYPE_NONE;
  Py_XDECREF(text);
  if (code == TW_DTYPE_NONE)
    return PyErr_Occurred() ? NULL : tw_ext_error(TW_TYPE_ERROR, "no tile dtype for %R", dtype);
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  view_object_t *view = (view_object_t *)allocate(type, 0);
  if (view) {
    view->array = Py_NewRef(array);
    view->dtype = code;
  }
  return (PyObject *)view;
}

static void view_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_XDECREF(((view_object_t *)self)->array);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF((PyObject *)type);
}

static int view_traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT((PyObject *)Py_TYPE(self));
  Py_VISIT(((view_object_t *)self)->array);
  return 0;
}

static int view_clear(PyObject *self) {
  Py_CLEAR(((view_object_t *)self)->array);
  return 0;
}

static PyObject *view_get_array(PyObject *self, void *unused) {
  (void)unused;
  PyObject *array = ((view_object_t *)self)->array;
  return Py_NewRef(array ? array : Py_None);
}

static PyObject *view_get_dtype(PyObject *self, void *unused) {
  (void)unused;
  return PyUnicode_FromString(tw_dtype_name(((view_object_t *)self)->dtype));
}

static int read_view(PyObject *object, tw_stream_t *stream, tw_array_t *out, tw_hold_t **holds) {
  view_object_t *view = (view_object_t *)object;
  if (!view->array || Py_TYPE(view->array) == view_type)
    return fail(TW_TYPE_ERROR, "it is a view of a view");
  if (tw_ext_array_read(view->array, stream, out, holds))
    return -1;
  tw_status_t status = tw_array_view_as(out, view->dtype);
  return status ? raise_status(status) : 0;
}

/* === the order of the protocols ============================================================= */

static int read_slowly(PyObject *object, tw_stream_t *stream, tw_array_t *out, tw_hold_t **holds) {
  if (Py_TYPE(object) == view_type)
    return read_view(object, stream, out, holds);
  if (is_numpy_array(object))
    return read_numpy(object, out, holds);
  PyObject *found;
  if (optional_attr(object, "__dlpack__", &found))
    return -1;
  if (found) {
    int failed = read_dlpack(object, found, stream, out, holds);
    Py_DECREF(found);
    return failed;
  }
  if (optional_attr(object, "__cuda_array_interface__", &found))
    return -1;
  if (found) {
    int failed = read_cuda_interface(object, found, stream, out);
    return hold_object(holds, found) ? -1 : failed;
  }
  return read_buffer(object, out, holds);
}

int tw_ext_array_read(PyObject *object, tw_stream_t *stream, tw_array_t *out, tw_hold_t **holds) {
  const tw_dl_exchange_t *exchange = exchange_of(Py_TYPE(object));
  if (TW_LIKELY(exchange != NULL))
    return read_exchange(exchange, object, stream, out, holds);
  return read_slowly(object, stream, out, holds);
}

bool tw_ext_has_exchange(PyTypeObject *type) { return exchange_of(type) != NULL; }

bool tw_ext_is_array(PyObject *object) {
  if (Py_TYPE(object) == view_type || exchange_of(Py_TYPE(object)) || is_numpy_array(object))
    return true;
  if (PyType_Check(object)) /* a class has its instances' methods */
    return false;
  static const char *const names[] = {"__dlpack__", "__cuda_array_interface__"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    PyObject *found;
    if (optional_attr(object, names[i], &found))
      PyErr_Clear();
    Py_XDECREF(found);
    if (found)
      return true;
  }
  return PyObject_CheckBuffer(object) && !PyBytes_Check(object) && !tw_ext_is_numpy_scalar(object);
}

void tw_hold_release(tw_hold_t *holds) {
  while (holds) {
    tw_hold_t *next = holds->next;
    if (holds->managed && holds->managed->deleter)
      holds->managed->deleter(holds->managed);
    if (holds->buffer.obj)
      PyBuffer_Release(&holds->buffer);
    Py_XDECREF(holds->object);
    free(holds);
    holds = next;
  }
}

/* === streams ================================================================================ */

/* (version, handle) of the CUDA stream protocol. */
static int read_stream_protocol(PyObject *pair, tw_stream_t *out) {
  if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2)
    return fail(TW_TYPE_ERROR, "stream: __cuda_stream__ must give (version, handle)");
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
static const char *const stream_names[] = {"__cuda_stream__", "cuda_stream", "ptr"};
enum { STREAM_NAMES = sizeof stream_names / sizeof *stream_names };

/* What stood in the last stream's type: looking for an attribute that is not there costs 300 ns. */
static struct {
  PyTypeObject *type; /* owned */
  int name;
} known_stream;

/* A method now, a property in early producers. */
static int read_stream_value(PyObject *value, int name, tw_stream_t *out) {
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
static int try_stream_name(PyObject *object, int name, tw_stream_t *out) {
  static PyObject *interned[STREAM_NAMES]; /* owned, kept for ever */
  if (!interned[name] && !(interned[name] = PyUnicode_InternFromString(stream_names[name])))
    return -1;
  PyObject *value = PyObject_GetAttr(object, interned[name]);
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

static int read_stream_object(PyObject *object, tw_stream_t *out) {
  PyTypeObject *type = Py_TYPE(object);
  int found = known_stream.type == type ? try_stream_name(object, known_stream.name, out) : 0;
  for (int name = 0; !found && name < STREAM_NAMES; name++) {
    found = try_stream_name(object, name, out);
    if (found == 1) {
      PyTypeObject *old = known_stream.type;
      Py_INCREF((PyObject *)type);
      known_stream.type = type;
      known_stream.name = name;
      Py_XDECREF((PyObject *)old);
    }
  }
  if (found)
    return found < 0 ? -1 : 0;
  tw_ext_error_type(TW_TYPE_ERROR,
                    "stream: expected None, an integer handle or an object with __cuda_stream__, found a %U", object);
  return -1;
}

int tw_ext_stream_read(PyObject *object, tw_stream_t *out) {
  *out = (tw_stream_t){0};
  if (object == Py_None)
    return 0;
  out->given = out->decided = true;
  if (!PyLong_Check(object))
    return read_stream_object(object, out);
  out->handle = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(object); /* refuses negative ones */
  if (TW_LIKELY(!PyErr_Occurred()))
    return 0;
  PyErr_Clear();
  return fail(TW_VALUE_ERROR, "stream: the integer is no stream handle");
}

/* === for Python ============================================================================= */

/* describe_array(object) -> dict: what a kernel would see of it. */
static PyObject *describe_array(PyObject *module, PyObject *object) {
  (void)module;
  tw_stream_t stream = {0};
  tw_hold_t *holds = NULL;
  tw_array_t array = {0};
  PyObject *result = NULL;
  if (!tw_ext_array_read(object, &stream, &array, &holds)) {
    PyObject *shape = PyTuple_New(array.rank), *strides = PyTuple_New(array.rank);
    for (int d = 0; shape && strides && d < array.rank; d++) {
      PyTuple_SetItem(shape, d, PyLong_FromLongLong(array.shape[d]));
      PyTuple_SetItem(strides, d, PyLong_FromLongLong(array.strides[d]));
    }
    result = Py_BuildValue("{sKsssNsNsssisOsO}", "data", (unsigned long long)(uintptr_t)array.data, "dtype",
                           tw_dtype_name(array.dtype), "shape", shape, "strides", strides, "device",
                           array.device_kind == TW_DEVICE_CPU ? "cpu" : "cuda", "device_id", array.device_id,
                           "read_only", array.flags & TW_ARRAY_READ_ONLY ? Py_True : Py_False, "overlaps",
                           array.flags & TW_ARRAY_SELF_OVERLAP ? Py_True : Py_False);
  }
  tw_hold_release(holds);
  return result;
}

static PyMethodDef array_methods[] = {
    {"describe_array", describe_array, METH_O,
     "describe_array(array) -> dict: data, dtype, shape, strides (elements), device, flags"},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef view_properties[] = {{"array", view_get_array, NULL, "the array behind the view", NULL},
                                        {"dtype", view_get_dtype, NULL, "name of the dtype that a kernel sees", NULL},
                                        {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot view_slots[] = {{Py_tp_new, view_new},
                                   {Py_tp_dealloc, view_dealloc},
                                   {Py_tp_traverse, view_traverse},
                                   {Py_tp_clear, view_clear},
                                   {Py_tp_getset, view_properties},
                                   {Py_tp_doc,
                                    "ArrayView(array, dtype): the same memory read as another dtype of the same size, "
                                    "for dtypes that the array's library lacks (tfloat32 over float32); uint8 as "
                                    "float4_e2m1fn gives two elements a byte, the low half first"},
                                   {0, NULL}};

static PyType_Spec view_spec = {"tilewright._core.ArrayView", sizeof(view_object_t), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, view_slots};

int tw_ext_array_add(PyObject *module) {
  view_type = (PyTypeObject *)PyType_FromSpec(&view_spec);
  if (!view_type || PyModule_AddObjectRef(module, "ArrayView", (PyObject *)view_type))
    return -1;
  return PyModule_AddFunctions(module, array_methods);
}
