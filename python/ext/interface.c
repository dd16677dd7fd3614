/* interface.c - NumPy arrays, buffers, and the CUDA Array Interface: arrays described by Python objects
 *
 * NumPy arrays come by the buffer protocol, or by __array_interface__ for dtypes that buffers cannot express (bfloat16,
 * float8). The CUDA Array Interface is the same dictionary for memory of a GPU, with rules of its own about streams. */
#include "import.h"

#include <stdlib.h>
#include <string.h>

/* === dtypes ======================================================================================================= */

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

/* Whether object.dtype, if there is one, is NumPy's for bytes without a meaning, or for structures. */
static bool is_void(PyObject *object) {
  PyObject *text = dtype_text(object);
  const char *name = text ? PyUnicode_AsUTF8AndSize(text, NULL) : "void";
  bool found = name && !strncmp(name, "void", 4);
  Py_XDECREF(text);
  return found;
}

int tw_ext_dtype_error(PyObject *object, const char *fallback) {
  PyObject *text = dtype_text(object);
  PyObject *shown = text ? text : PyUnicode_FromString(fallback);
  const char *name = shown ? PyUnicode_AsUTF8AndSize(shown, NULL) : NULL;
  bool is_date = name && (!strncmp(name, "datetime64", 10) || !strncmp(name, "timedelta64", 11));
  if (name)
    tw_ext_error(TW_TYPE_ERROR, "its dtype %S is not supported; %s", shown,
                 is_date ? "pass its numbers, as in x.view(numpy.int64)"
                         : "convert it to bool, int8..int64, uint8..uint64, "
                           "float16, bfloat16, float32, float64 or a float8");
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

enum { MOST_RECORD = 1 << 20 }; /* bytes of a structure */

/* kind: b(ool), i, u, f, c(omplex) as in NumPy's type strings. */
static tw_dtype_t dtype_of_kind(char kind, Py_ssize_t size) {
  static const struct {
    char kind, size;
    uint8_t dtype;
  } table[] = {{'b', 1, TW_DTYPE_BOOL},      {'i', 1, TW_DTYPE_INT8},       {'i', 2, TW_DTYPE_INT16},
               {'i', 4, TW_DTYPE_INT32},     {'i', 8, TW_DTYPE_INT64},      {'u', 1, TW_DTYPE_UINT8},
               {'u', 2, TW_DTYPE_UINT16},    {'u', 4, TW_DTYPE_UINT32},     {'u', 8, TW_DTYPE_UINT64},
               {'f', 2, TW_DTYPE_FLOAT16},   {'f', 4, TW_DTYPE_FLOAT32},    {'f', 8, TW_DTYPE_FLOAT64},
               {'c', 8, TW_DTYPE_COMPLEX64}, {'c', 16, TW_DTYPE_COMPLEX128}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].kind == kind && table[i].size == size)
      return (tw_dtype_t)table[i].dtype;
  return TW_DTYPE_NONE;
}

/* "<f4" of the array interfaces.  What it cannot say is asked of object.dtype, if there is an object. */
static int dtype_from_typestr(PyObject *object, PyObject *typestr, tw_dtype_t *out_dtype, Py_ssize_t *out_size) {
  const char *text = PyUnicode_Check(typestr) ? PyUnicode_AsUTF8AndSize(typestr, NULL) : NULL;
  PyErr_Clear(); /* text that is no UTF-8 */
  if (!text || !text[0] || !text[1]) {
    tw_ext_error(TW_TYPE_ERROR, "its array interface has a typestr that is no type string such as '<f4', found %R",
                 typestr);
    return -1;
  }
  *out_size = (Py_ssize_t)strtol(text + 2, NULL, 10);
  *out_dtype = dtype_of_kind(text[1], *out_size);
  if (text[0] == '>' && *out_size > 1)
    return byte_order_error(text);
  if (*out_dtype == TW_DTYPE_NONE) { /* "<V2", "<f1": formats that NumPy itself lacks */
    *out_dtype = tw_ext_dtype_of(object);
    if ((Py_ssize_t)(tw_dtype_bits(*out_dtype) + 7) / 8 != *out_size)
      *out_dtype = TW_DTYPE_NONE;
    if (*out_dtype == TW_DTYPE_NONE && text[1] == 'V' && *out_size > 0 && *out_size < MOST_RECORD && is_void(object))
      *out_dtype = TW_DTYPE_RECORD;
  }
  return *out_dtype == TW_DTYPE_NONE ? tw_ext_dtype_error(object, text) : 0;
}

/* Format of the struct module, as NumPy writes it; the size tells the width. */
static tw_dtype_t dtype_from_format(const char *format, Py_ssize_t size, bool *out_swapped) {
  static const char kinds[][2] = {{'?', 'b'}, {'b', 'i'}, {'h', 'i'}, {'i', 'i'}, {'l', 'i'}, {'q', 'i'},
                                  {'n', 'i'}, {'B', 'u'}, {'H', 'u'}, {'I', 'u'}, {'L', 'u'}, {'Q', 'u'},
                                  {'N', 'u'}, {'e', 'f'}, {'f', 'f'}, {'d', 'f'}};
  *out_swapped = (*format == '>' || *format == '!') && size > 1;
  if (strchr("@=<>!", *format) && *format)
    format++;
  if (!strcmp(format, "Zf") || !strcmp(format, "Zd")) /* complex */
    return dtype_of_kind('c', size);
  if (!strncmp(format, "T{", 2) && size > 0 && size < MOST_RECORD)
    return TW_DTYPE_RECORD;
  for (size_t i = 0; *format && !format[1] && i < sizeof kinds / sizeof *kinds; i++)
    if (kinds[i][0] == *format)
      return dtype_of_kind(kinds[i][1], size);
  return TW_DTYPE_NONE;
}

/* === shapes ======================================================================================================= */

static int no_integers(const char *name, PyObject *found) {
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_OverflowError))
    return -1; /* of the producer's own */
  PyErr_Clear();
  tw_ext_error(TW_TYPE_ERROR, "its array interface has a %s that is no tuple of 64-bit integers, found %R", name,
               found);
  return -1;
}

/* The entry `name`, a tuple of integers (a list, too); returns its length or -1. */
static int read_integers(PyObject *sequence, const char *name, int64_t *out) {
  Py_ssize_t count = PyTuple_Check(sequence) || PyList_Check(sequence) ? PySequence_Size(sequence) : -1;
  if (count < 0)
    return no_integers(name, sequence);
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
      return no_integers(name, sequence);
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
  return status ? tw_ext_fail_status(status) : 0;
}

/* === __array_interface__ and __cuda_array_interface__ ============================================================= */

static PyObject *entry(PyObject *interface, const char *name) {
  PyObject *value = PyDict_GetItemString(interface, name);
  return value == Py_None ? NULL : value; /* absent and None mean the same, in both interfaces */
}

/* An entry that must be there; NULL with an exception. */
static PyObject *need(PyObject *interface, const char *name) {
  PyObject *value = entry(interface, name);
  return value ? value : tw_ext_error(TW_TYPE_ERROR, "its array interface lacks the entry '%s'", name);
}

static int read_pointer(PyObject *interface, tw_array_t *out) {
  PyObject *data = need(interface, "data");
  if (!data)
    return -1;
  if (!PyTuple_Check(data) || PyTuple_Size(data) != 2 || !PyLong_Check(PyTuple_GetItem(data, 0)))
    return tw_ext_fail(TW_TYPE_ERROR, "its array interface has no (pointer, read-only) tuple as data");
  out->data = PyLong_AsVoidPtr(PyTuple_GetItem(data, 0));
  if (PyErr_Occurred()) {
    PyErr_Clear();
    tw_ext_error(TW_VALUE_ERROR, "its array interface has a pointer of more than 64 bits, %R",
                 PyTuple_GetItem(data, 0));
    return -1;
  }
  int read_only = PyObject_IsTrue(PyTuple_GetItem(data, 1));
  if (read_only < 0)
    return -1;
  out->flags = read_only ? TW_ARRAY_READ_ONLY : 0;
  return 0;
}

/* The part that both interfaces have in common. */
static int read_interface(PyObject *object, PyObject *interface, tw_array_t *out, Py_ssize_t *out_size) {
  tw_dtype_t dtype = TW_DTYPE_NONE;
  PyObject *strides = entry(interface, "strides"), *shape = need(interface, "shape");
  PyObject *typestr = shape ? need(interface, "typestr") : NULL;
  if (!typestr || read_pointer(interface, out) || dtype_from_typestr(object, typestr, &dtype, out_size))
    return -1;
  out->dtype = (uint8_t)dtype;
  out->item_bytes = (uint32_t)*out_size;
  int rank = read_integers(shape, "shape", out->shape);
  if (rank < 0)
    return -1;
  out->rank = (uint8_t)rank;
  if (!strides) {
    tw_array_set_compact(out);
    return 0;
  }
  int count = read_integers(strides, "strides", out->strides);
  if (count >= 0 && count != rank)
    return tw_ext_fail(TW_VALUE_ERROR, "its array interface has strides of another length than its shape");
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
  void *producer = PyLong_Check(entry_stream) ? PyLong_AsVoidPtr(entry_stream) : NULL;
  if (PyErr_Occurred() || !PyLong_Check(entry_stream)) {
    PyErr_Clear();
    tw_ext_error(TW_TYPE_ERROR, "its __cuda_array_interface__ has a stream that is no integer, found %R", entry_stream);
    return -1;
  }
  if (!producer)
    return tw_ext_fail(TW_VALUE_ERROR, "its __cuda_array_interface__ names stream 0, which the interface forbids as "
                                       "ambiguous (1 is the legacy default stream, 2 the per-thread one)");
  if (!stream->decided) {
    stream->handle = producer;
    stream->decided = true;
    return 0;
  }
  tw_status_t status = tw_stream_order(device_id, producer, stream->handle);
  return status ? tw_ext_fail_status(status) : 0;
}

static int check_cuda_interface(PyObject *interface) {
  if (!PyDict_Check(interface))
    return tw_ext_fail(TW_TYPE_ERROR, "its __cuda_array_interface__ is not a dictionary");
  PyObject *version = need(interface, "version");
  if (!version)
    return -1;
  long number = PyLong_Check(version) ? PyLong_AsLong(version) : -1;
  PyErr_Clear(); /* -1, too */
  if (number < 0 || number > 3) {
    tw_ext_error(TW_TYPE_ERROR, "its __cuda_array_interface__ has version %R; versions 0 to 3 are known", version);
    return -1;
  }
  if (entry(interface, "mask"))
    return tw_ext_fail(TW_UNIMPLEMENTED,
                       "its __cuda_array_interface__ has a mask; masked arrays are not supported; pass "
                       "data and mask as two arrays");
  return 0;
}

int tw_ext_read_cuda_description(PyObject *interface, tw_stream_t *stream, tw_array_t *out) {
  return tw_ext_read_cuda_interface(Py_None, interface, stream, out);
}

static int read_cuda(PyObject *object, PyObject *interface, tw_stream_t *stream, tw_array_t *out) {
  Py_ssize_t size;
  if (check_cuda_interface(interface) || read_interface(object, interface, out, &size))
    return -1;
  out->device_kind = TW_DEVICE_CUDA;
  out->device_id = -1; /* an empty array belongs to no device */
  if (!is_empty(out) && out->data) {
    int ordinal;
    tw_status_t status = tw_pointer_resolve(&out->data, &ordinal);
    if (status)
      return tw_ext_fail_status(status);
    out->device_id = ordinal;
  }
  if (finish(out))
    return -1;
  return follow_producer(interface, stream, out->device_id < 0 ? 0 : out->device_id);
}

/* A producer may keep the dictionary, and change it in another thread. */
static PyObject *own_interface(PyObject *interface) {
#ifdef TW_FREE_THREADED
  if (PyDict_Check(interface))
    return PyDict_Copy(interface);
#endif
  return Py_NewRef(interface);
}

int tw_ext_read_cuda_interface(PyObject *object, PyObject *interface, tw_stream_t *stream, tw_array_t *out) {
  PyObject *own = own_interface(interface);
  int failed = own ? read_cuda(object, own, stream, out) : -1;
  Py_XDECREF(own);
  return failed;
}

/* === NumPy and the buffer protocol ================================================================================ */

/* What a buffer says of its array; 0, or -1 with an exception. */
static int read_buffer(PyObject *object, const Py_buffer *buffer, tw_array_t *out) {
  bool swapped;
  tw_dtype_t dtype = dtype_from_format(buffer->format ? buffer->format : "B", buffer->itemsize, &swapped);
  if (dtype == TW_DTYPE_NONE)
    return tw_ext_dtype_error(object, buffer->format ? buffer->format : "?");
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
                      .flags = buffer->readonly ? TW_ARRAY_READ_ONLY : 0,
                      .item_bytes = (uint32_t)buffer->itemsize};
  for (int d = 0; d < buffer->ndim; d++) {
    out->shape[d] = buffer->shape[d];
    out->strides[d] = buffer->strides[d];
  }
  return strides_from_bytes(out, buffer->itemsize) ? -1 : finish(out);
}

/* Dtypes that buffers cannot express. */
static int read_array_interface(PyObject *object, tw_array_t *out, tw_hold_t **holds) {
  PyObject *found = PyObject_GetAttrString(object, "__array_interface__");
  PyObject *interface = found ? own_interface(found) : NULL;
  Py_ssize_t size;
  Py_XDECREF(found);
  if (!interface)
    return -1;
  int failed = PyDict_Check(interface) ? read_interface(object, interface, out, &size)
                                       : tw_ext_fail(TW_TYPE_ERROR, "its __array_interface__ is not a dictionary");
  Py_DECREF(interface); /* the array itself keeps the memory */
  out->device_kind = TW_DEVICE_CPU;
  out->device_id = 0;
  if (failed)
    return -1;
  return out->dtype == TW_DTYPE_FLOAT4_E2M1FN ? tw_ext_pack_float4(out, holds) : finish(out);
}

/* The buffer of an object, kept until the launch is over; NULL with an exception. */
static const Py_buffer *hold_buffer(PyObject *object, tw_hold_t **holds) {
  tw_hold_t *hold = tw_ext_hold_new(holds);
  return hold && !PyObject_GetBuffer(object, &hold->buffer, PyBUF_STRIDES | PyBUF_FORMAT) ? &hold->buffer : NULL;
}

int tw_ext_read_buffer(PyObject *object, tw_array_t *out, tw_hold_t **holds) {
  const Py_buffer *buffer = hold_buffer(object, holds);
  return buffer ? read_buffer(object, buffer, out) : -1;
}

int tw_ext_read_numpy(PyObject *object, tw_array_t *out, tw_hold_t **holds) {
  const Py_buffer *buffer = hold_buffer(object, holds);
  if (buffer)
    return read_buffer(object, buffer, out);
  if (!PyErr_ExceptionMatches(PyExc_ValueError))
    return -1;
  PyErr_Clear(); /* NumPy refuses so where the dtype has no format */
  return read_array_interface(object, out, holds);
}
