/* arguments.c - Python arguments of a launch as key words and parameter words
 *
 * Each argument is read once. An array gives its fact word to the key and pointer, extents and strides to the
 * parameters; a scalar its dtype and its value; a constant two key words (kind and value) and no parameter. Errors name
 * kernel and argument. */
#include "dispatch.h"
#include "import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* === messages ===================================================================================================== */

static PyObject *parameter_name(const dispatcher_t *self, Py_ssize_t i) { /* borrowed */
  return PyTuple_GetItem(self->parameters, i);
}

/* Whether the pending exception is one that speaks of "it" and needs the argument's name. */
static bool is_ours(void) {
  static const tw_code_t codes[] = {TW_TYPE_ERROR,   TW_VALUE_ERROR,   TW_LAUNCH_ERROR,
                                    TW_DRIVER_ERROR, TW_UNIMPLEMENTED, TW_OUT_OF_MEMORY};
  bool found = false;
  for (size_t i = 0; !found && i < sizeof codes / sizeof *codes; i++) {
    PyObject *class = tw_ext_error_class(codes[i]);
    found = PyErr_ExceptionMatches(class);
    Py_DECREF(class);
  }
  return found;
}

/* "its dtype …" -> "kernel f, argument 'A[2]': its dtype …" */
static int name_argument(call_t *call, Py_ssize_t i) {
  const dispatcher_t *self = call->self;
  if (!is_ours()) /* what a producer has raised, or Python of what it gave */
    tw_ext_error_from_pending(TW_TYPE_ERROR, "it cannot be read");
  PyObject *path = call->path;
  call->path = NULL;
  if (!is_ours()) {
    Py_XDECREF(path);
    return -1;
  }
  PyObject *type, *value, *trace, *fresh;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyObject *cause = PyException_GetCause(value);
  PyErr_Format(type, "kernel %U, argument '%U%V': %S", self->name, parameter_name(self, i), path, "", value);
  Py_XDECREF(path);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  PyErr_Fetch(&type, &fresh, &trace);
  PyErr_NormalizeException(&type, &fresh, &trace);
  if (cause)
    PyException_SetCause(fresh, cause); /* takes it */
  PyErr_Restore(type, fresh, trace);
  return -1;
}

static Py_ssize_t leaf_count(const call_t *call) { return call->self->count + call->shift; }

/* "A, B[2]" of the leaves in a bit mask; new reference. */
static PyObject *names_of(const call_t *call, uint64_t mask) {
  PyObject *names =
      call->structures ? tw_structure_leaves(call->self, call->arguments) : PySequence_List(call->self->parameters);
  PyObject *list = names ? PyList_New(0) : NULL, *comma = PyUnicode_FromString(", "), *text = NULL;
  for (Py_ssize_t i = 0; list && i < leaf_count(call) && i < PyList_Size(names); i++)
    if (mask >> i & 1)
      PyList_Append(list, PyList_GetItem(names, i));
  Py_XDECREF(names);
  if (list && comma)
    text = PyUnicode_Join(comma, list);
  Py_XDECREF(list);
  Py_XDECREF(comma);
  return text;
}

int tw_call_count_error(const dispatcher_t *self, Py_ssize_t found) {
  PyObject *comma = PyUnicode_FromString(", "), *names = comma ? PyUnicode_Join(comma, self->parameters) : NULL;
  if (names)
    tw_ext_error(TW_TYPE_ERROR, "kernel %U takes %zd argument(s) (%U), %zd were given", self->name, self->count, names,
                 found);
  Py_XDECREF(names);
  Py_XDECREF(comma);
  return -1;
}

/* "A, B on the CPU; C on CUDA device 0" */
static int mixture_error(const call_t *call) {
  PyObject *text = PyUnicode_FromString("");
  uint64_t done = 0;
  for (Py_ssize_t i = 0; text && i < leaf_count(call); i++) {
    uint16_t place = call->place[i];
    if (!place || done >> i & 1)
      continue;
    uint64_t same = 0;
    for (Py_ssize_t j = i; j < leaf_count(call); j++)
      same |= (uint64_t)(call->place[j] == place) << j;
    done |= same;
    PyObject *names = names_of(call, same), *more = NULL;
    const char *comma = PyUnicode_GetLength(text) ? "; " : "";
    if (names)
      more = place >> 8 == TW_DEVICE_CPU
                 ? PyUnicode_FromFormat("%U%s%U on the CPU", text, comma, names)
                 : PyUnicode_FromFormat("%U%s%U on CUDA device %d", text, comma, names, (place & 255) - 1);
    Py_XDECREF(names);
    Py_DECREF(text);
    text = more;
  }
  if (text)
    tw_ext_error(TW_LAUNCH_ERROR, "kernel %U: its arrays are in different places: %U; move them to one device",
                 call->self->name, text);
  Py_XDECREF(text);
  return -1;
}

int tw_call_mask_error(const call_t *call, uint64_t mask, const char *what) {
  PyObject *names = names_of(call, mask);
  if (names)
    tw_ext_error(TW_LAUNCH_ERROR, "kernel %U writes to %U, %s", call->self->name, names, what);
  Py_XDECREF(names);
  return -1;
}

/* Raises the status with the kernel's name in front, unless it is there already. */
int tw_call_error(const dispatcher_t *self, tw_status_t status) {
  if (strstr(tw_status_message(status), "kernel ")) {
    tw_ext_raise(status, NULL);
    return -1;
  }
  tw_ext_error(tw_status_code(status), "kernel %U: %s", self->name, tw_status_message(status));
  tw_status_free(status);
  return -1;
}

/* === the grid ===================================================================================================== */

/* -1 with an exception, among others. */
static int64_t read_extent(PyObject *object) {
  if (TW_LIKELY(PyLong_CheckExact(object)))
    return PyLong_AsLongLong(object);
  PyObject *number = PyNumber_Index(object); /* NumPy integers, booleans */
  int64_t value = number ? PyLong_AsLongLong(number) : -1;
  Py_XDECREF(number);
  return value;
}

/* The extents of a tuple, or what else is not a tuple or an int: a list, a NumPy integer. How many; 0 for none. */
static Py_ssize_t read_sequence(PyObject *object, int64_t extents[3]) {
  PyObject *tuple = PyList_Check(object) ? PyList_AsTuple(object) : PyTuple_Check(object) ? Py_NewRef(object) : NULL;
  Py_ssize_t count = tuple ? PyTuple_Size(tuple) : PyIndex_Check(object);
  for (Py_ssize_t axis = 0; count <= 3 && axis < count; axis++)
    extents[axis] = read_extent(tuple ? PyTuple_GetItem(tuple, axis) : object);
  Py_XDECREF(tuple);
  return count <= 3 ? count : 0;
}

TW_HOT int tw_call_read_extents(const dispatcher_t *self, PyObject *object, const char *what,
                                tw_status_t (*check)(const int64_t *), uint32_t out[3]) {
  int64_t extents[3] = {1, 1, 1};
  Py_ssize_t count = PyTuple_CheckExact(object) ? PyTuple_Size(object) : 0; /* asked first: the others are calls */
  if (TW_LIKELY(count > 0 && count <= 3)) {
    for (Py_ssize_t axis = 0; axis < count; axis++)
      extents[axis] = read_extent(PyTuple_GetItem(object, axis));
  } else if (PyLong_Check(object)) {
    extents[0] = read_extent(object);
  } else if (TW_UNLIKELY(read_sequence(object, extents) < 1)) {
    if (PyCallable_Check(object))
      tw_ext_error(TW_LAUNCH_ERROR,
                   "kernel %U: the %s must be an int or a tuple of one to three, found a function; call it", self->name,
                   what);
    else
      tw_ext_error(TW_LAUNCH_ERROR, "kernel %U: the %s must be an int or a tuple of one to three, found %R", self->name,
                   what, object);
    return -1;
  }
  tw_status_t status = check(extents);
  if (TW_UNLIKELY(status != NULL)) { /* -1 is refused, whatever it means */
    if (!PyErr_Occurred())
      return tw_call_error(self, status);
    tw_status_free(status);
    PyErr_Clear();
    tw_ext_error(TW_LAUNCH_ERROR, "kernel %U: the %s must be made of integers, found %R", self->name, what, object);
    return -1;
  }
  for (int axis = 0; axis < 3; axis++)
    out[axis] = (uint32_t)extents[axis];
  return 0;
}

/* === constants ==================================================================================================== */

/* The value of a constant as Python knows it: NumPy scalars become Python's; new reference. */
PyObject *tw_ext_constant_value(tw_state_t *state, PyObject *object) {
  if (tw_ext_is_numpy_scalar(state, object) && !PyUnicode_Check(object))
    return PyObject_CallMethod(object, "item", NULL);
  return Py_NewRef(object);
}

/* A key for the dictionary that tells 1 from True and 1.0, and 0.0 from -0.0; new reference. */
static PyObject *typed_key(tw_state_t *state, PyObject *object) {
  PyObject *type = (PyObject *)Py_TYPE(object);
  if (tw_ext_is_array(state, object))
    return tw_ext_error_type(TW_TYPE_ERROR, "it is a constant of the kernel, and holds an array (%U)", object);
  if (PyFloat_CheckExact(object)) {
    double value = PyFloat_AsDouble(object);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return Py_BuildValue("(OK)", type, (unsigned long long)bits);
  }
  if (!PyTuple_CheckExact(object))
    return Py_BuildValue("(OO)", type, object);
  Py_ssize_t size = PyTuple_Size(object);
  PyObject *key = PyTuple_New(size + 1);
  if (!key || PyTuple_SetItem(key, 0, Py_NewRef(type)))
    return key;
  for (Py_ssize_t i = 0; i < size; i++) {
    PyObject *part = typed_key(state, PyTuple_GetItem(object, i));
    if (!part) {
      Py_DECREF(key);
      return NULL;
    }
    PyTuple_SetItem(key, i + 1, part); /* takes it */
  }
  return key;
}

int tw_dispatcher_number(dispatcher_t *self, PyObject *key, uint64_t *out) {
  PyObject *known = tw_dict_get(self->objects, key);
  if (!known && !PyErr_Occurred()) {
    uint64_t next = __atomic_add_fetch(&self->numbers, 1, __ATOMIC_RELAXED); /* another thread may put the key, too */
    PyObject *number = PyLong_FromUnsignedLongLong(next);
    known = number ? tw_dict_put(self->objects, key, number) : NULL;
    Py_XDECREF(number);
  }
  *out = known ? PyLong_AsUnsignedLongLong(known) : 0;
  Py_XDECREF(known);
  return known ? 0 : -1;
}

/* Whether an object is the last one at a position. */
static bool has_seen(dispatcher_t *self, Py_ssize_t i, const PyObject *object, uint64_t *out_id) {
  TW_LOCK(self);
  bool same = self->seen[i] == object;
  if (same)
    *out_id = self->seen_id[i];
  TW_UNLOCK(self);
  return same;
}

static void see(dispatcher_t *self, Py_ssize_t i, PyObject *object, uint64_t id) {
  Py_INCREF(object);
  TW_LOCK(self);
  PyObject *old = self->seen[i];
  self->seen[i] = object;
  self->seen_id[i] = id;
  TW_UNLOCK(self);
  Py_XDECREF(old);
}

/* A small integer for a constant that is no number; the same for equal ones. */
static int object_id(call_t *call, Py_ssize_t i, PyObject *object, uint64_t *out_id) {
  dispatcher_t *self = call->self;
  if (has_seen(self, i, object, out_id))
    return 0;
  PyObject *key = typed_key(call->reader.state, object);
  if (!key)
    return -1;
  int failed = tw_dispatcher_number(self, key, out_id);
  Py_DECREF(key);
  if (failed) {
    if (PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();
      tw_ext_error_type(TW_TYPE_ERROR, "a constant must be hashable, found a %U; pass a tuple for a list", object);
    }
    return -1;
  }
  see(self, i, object, *out_id);
  return 0;
}

TW_HOT static int read_constant(call_t *call, Py_ssize_t i, PyObject *object) {
  uint64_t *key = call->key + call->key_count;
  call->key_count += 2;
  int overflow = 0;
  if (PyLong_CheckExact(object)) {
    int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
    key[0] = CONSTANT_WORD | CONST_INT;
    key[1] = (uint64_t)value;
    if (TW_LIKELY(!overflow))
      return 0;
  } else if (PyBool_Check(object)) {
    key[0] = CONSTANT_WORD | CONST_BOOL;
    key[1] = object == Py_True;
    return 0;
  } else if (PyFloat_CheckExact(object)) {
    double value = PyFloat_AsDouble(object);
    key[0] = CONSTANT_WORD | CONST_FLOAT;
    memcpy(&key[1], &value, sizeof value);
    return 0;
  } else if (object == Py_None) {
    key[0] = CONSTANT_WORD | CONST_NONE;
    key[1] = 0;
    return 0;
  } else if (tw_ext_is_array(call->reader.state, object)) {
    tw_ext_error_type(TW_TYPE_ERROR, "it is a constant of the kernel, found an array (%U)", object);
    return -1;
  } else if (tw_ext_is_numpy_scalar(call->reader.state, object)) {
    PyObject *value = tw_ext_constant_value(call->reader.state, object);
    call->key_count -= 2;
    int failed = !value || tw_ext_is_numpy_scalar(call->reader.state, value) ? -1 : read_constant(call, i, value);
    if (failed && !PyErr_Occurred())
      tw_ext_error_type(TW_TYPE_ERROR, "a %U cannot be a constant", object);
    Py_XDECREF(value);
    return failed;
  }
  key[0] = CONSTANT_WORD | CONST_OBJECT;
  return object_id(call, i, object, &key[1]);
}

/* === scalars ====================================================================================================== */

static bool is_integral(tw_dtype_t dtype) { return dtype >= TW_DTYPE_INT8 && dtype <= TW_DTYPE_UINT64; }

/* What kernels are compiled for: a multiple of 16 that is not negative, signed or unsigned. */
static inline bool is_multiple(tw_dtype_t dtype, uint64_t word) {
  return is_integral(dtype) && word % 16 == 0 && (word >> (tw_dtype_bits(dtype) - 1) & 1) == 0;
}

static int put_scalar(call_t *call, tw_dtype_t dtype, uint64_t word) {
  if (TW_UNLIKELY(call->word_count >= TW_MAX_WORDS)) {
    tw_ext_error(TW_TYPE_ERROR, "the parameters take more than %d bytes", TW_MAX_WORDS * 8);
    return -1;
  }
  call->key[call->key_count++] = SCALAR_WORD | (uint64_t)dtype | (is_multiple(dtype, word) ? SCALAR_DIV : 0);
  call->words[call->word_count++] = word;
  return 0;
}

/* A number of Python. */
static int put_number(call_t *call, tw_dtype_t dtype, uint64_t word) {
  int failed = put_scalar(call, dtype, word);
  if (!failed && call->self->threads == TW_THREADS)
    call->key[call->key_count - 1] |= SCALAR_LOOSE;
  return failed;
}

/* An int of cuda.device has 32 bits. */
TW_COLD static int refuse_wide_int(PyObject *object, const char *type) {
  tw_ext_error(TW_VALUE_ERROR, "the int %R does not fit the 32 bits that an int has in device code; pass numpy.%s(%R)",
               object, type, object);
  return -1;
}

/* int32 if the value fits, else int64, else uint64. */
TW_HOT static int read_int(call_t *call, PyObject *object) {
  int overflow;
  int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (TW_UNLIKELY(call->self->threads == TW_WIDE_THREADS) && !overflow)
    return put_scalar(call, TW_DTYPE_INT64, (uint64_t)value);
  if (TW_UNLIKELY(call->self->threads == TW_THREADS && !overflow && (int32_t)value != value))
    return refuse_wide_int(object, "int64");
  if (TW_LIKELY(!overflow))
    return put_number(call, (int32_t)value == value ? TW_DTYPE_INT32 : TW_DTYPE_INT64, (uint64_t)value);
  uint64_t large = overflow > 0 ? PyLong_AsUnsignedLongLong(object) : 0;
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    tw_ext_error(TW_VALUE_ERROR, "the integer %R fits no dtype; the widest are int64 and uint64", object);
    return -1;
  }
  if (call->self->threads == TW_THREADS)
    return refuse_wide_int(object, "uint64");
  return put_scalar(call, TW_DTYPE_UINT64, large);
}

/* Python's float is float32 in tile code, as a constant is. */
static int read_float(call_t *call, PyObject *object) {
  double wide = PyFloat_AsDouble(object);
  float value = (float)wide;
  uint32_t bits;
  if (TW_UNLIKELY(call->self->threads == TW_WIDE_THREADS)) {
    uint64_t word;
    memcpy(&word, &wide, sizeof word);
    return put_scalar(call, TW_DTYPE_FLOAT64, word);
  }
  if (TW_UNLIKELY(isinf(value) && !isinf(wide))) {
    tw_ext_error(TW_VALUE_ERROR,
                 "the float %R is beyond float32, as which a Python float is passed; pass numpy.float64(%R)", object,
                 object);
    return -1;
  }
  memcpy(&bits, &value, sizeof bits);
  return put_number(call, TW_DTYPE_FLOAT32, bits);
}

/* NumPy scalars, ml_dtypes' among them, keep their dtype. */
static int read_numpy_scalar(call_t *call, PyObject *object) {
  tw_dtype_t dtype = tw_ext_dtype_of(object);
  unsigned bits = tw_dtype_bits(dtype);
  bool narrow = bits == 8 && !is_integral(dtype) && dtype != TW_DTYPE_BOOL;
  bool of_threads = dtype == TW_DTYPE_FLOAT8_E4M3FN || dtype == TW_DTYPE_FLOAT8_E5M2;
  if (dtype == TW_DTYPE_NONE || dtype >= TW_DTYPE_COMPLEX64 || bits < 8 ||
      (narrow && !(of_threads && call->self->threads))) {
    tw_ext_error_type(TW_TYPE_ERROR,
                      "a scalar of type %U is not supported; pass an int, a float, a bool, or a "
                      "NumPy scalar of an arithmetic dtype",
                      object);
    return -1;
  }
  PyObject *bytes = PyObject_CallMethod(object, "tobytes", NULL);
  char *data = NULL;
  Py_ssize_t size = 0;
  uint64_t word = 0;
  int failed = bytes ? PyBytes_AsStringAndSize(bytes, &data, &size) : -1;
  if (!failed && size <= 8)
    memcpy(&word, data, (size_t)size);
  Py_XDECREF(bytes);
  return failed ? -1 : put_scalar(call, dtype, word);
}

/* === leaves ======================================================================================================= */

/* An array at a place: where all are so far, and what is told if they are not. */
static inline void put_place(call_t *call, Py_ssize_t i, int kind, int device_id) {
  call->place[i] = (uint16_t)(kind << 8 | (device_id + 1));
  if (call->kind == TW_DEVICE_NONE) {
    call->kind = kind;
    call->device_id = device_id;
  } else if (TW_UNLIKELY(call->kind != kind || call->device_id != device_id)) {
    call->mixed = true;
  }
}

static int put_array(call_t *call, Py_ssize_t i, const tw_array_t *array) {
  if (TW_UNLIKELY(array->dtype == TW_DTYPE_RECORD))
    return tw_ext_fail(TW_TYPE_ERROR, call->self->threads
                                          ? "its elements are structures; pass tilewright.as_array of it"
                                          : "its elements are structures; pass their fields as arrays, or its bytes");
  if (TW_UNLIKELY(array->flags & TW_ARRAY_LONG && !call->self->takes_long))
    return tw_ext_fail_status(tw_array_check_extents(array));
  if (TW_UNLIKELY(call->word_count + 1 + 2 * (size_t)array->rank > TW_MAX_WORDS)) {
    tw_ext_error(TW_TYPE_ERROR, "the parameters take more than %d bytes", TW_MAX_WORDS * 8);
    return -1;
  }
  call->word_count += tw_array_pack(array, call->words + call->word_count);
  uint64_t facts = tw_array_facts(array);
  call->key[call->key_count++] = facts & ~(uint64_t)TW_FACT_OVERLAP;
  call->read_only |= (uint64_t)!(facts & TW_FACT_WRITABLE) << i;
  call->overlapping |= (uint64_t)((facts & TW_FACT_OVERLAP) != 0) << i;
  if (TW_LIKELY(array->device_id >= 0)) /* else empty: it is at home anywhere on a GPU */
    put_place(call, i, array->device_kind, array->device_id);
  return 0;
}

#ifndef TW_FREE_THREADED
/* A tensor unlike that of the last launch: returns its words, 0 if it is none for the short way. */
TW_COLD static size_t put_unlike(tw_known_array_t *known, const tw_dl_tensor_t *tensor, uint64_t *words,
                                 uint64_t *key) {
  size_t count = tw_array_pack_plain(tensor, words, key);
  if (count)
    tw_array_remember(tensor, words, *key, known);
  return count;
}
#endif

/* Puts a tensor by the short way; false if it is none for that. */
static inline bool put_plain(call_t *call, Py_ssize_t i, const tw_dl_tensor_t *tensor) {
  uint64_t *words = call->words + call->word_count, *key = &call->key[call->key_count];
  if (TW_UNLIKELY(call->word_count + 1 + 2 * TW_MAX_RANK > TW_MAX_WORDS))
    return false;
#ifdef TW_FREE_THREADED /* the launch before may be another thread's */
  size_t count = tw_array_pack_plain(tensor, words, key);
#else
  tw_known_array_t *known = &call->self->known[i];
  size_t count = tw_array_pack_known(known, tensor, words);
  *key = known->facts;
  if (TW_UNLIKELY(!count))
    count = put_unlike(known, tensor, words, key);
#endif
  if (TW_UNLIKELY(!count))
    return false;
  call->word_count += count;
  call->key_count++;
  put_place(call, i, TW_DEVICE_CUDA, tensor->device.id);
  return true;
}

/* A tensor that is none for the short way, or, without `tensor`, whose library has no table for it. */
TW_COLD static int read_exchange_slowly(call_t *call, Py_ssize_t i, const tw_dl_exchange_t *exchange, PyObject *object,
                                        const tw_dl_tensor_t *tensor) {
  tw_array_t array;
  int failed = tensor ? tw_ext_read_exchanged(exchange, tensor, &call->reader.stream, &array)
                      : tw_ext_read_exchange(exchange, object, &call->reader, &array);
  return failed ? -1 : put_array(call, i, &array);
}

/* An argument whose type has the exchange API. */
static inline int read_exchange(call_t *call, Py_ssize_t i, const tw_dl_exchange_t *exchange, PyObject *object) {
  tw_dl_tensor_t tensor; /* shape and strides point into the object */
  if (TW_UNLIKELY(!exchange->tensor_from_object))
    return read_exchange_slowly(call, i, exchange, object, NULL);
  if (TW_UNLIKELY(exchange->tensor_from_object(object, &tensor)))
    return tw_ext_exchange_failed();
  if (TW_UNLIKELY(!put_plain(call, i, &tensor)))
    return read_exchange_slowly(call, i, exchange, object, &tensor);
  tw_stream_t *stream = &call->reader.stream;
  return TW_LIKELY(stream->decided) ? 0 : tw_ext_exchange_stream(exchange, tensor.device.id, stream);
}

static int unsupported(const call_t *call, PyObject *object) {
#define UNSUPPORTED(constant)                                                                                          \
  "an object of type %U is not supported; pass an array (NumPy, or anything with DLPack or the CUDA Array "            \
  "Interface), an int, a float or a bool, or " constant
  int threads = call->self->threads;
  tw_ext_error_type(TW_TYPE_ERROR,
                    threads & TW_WIDE_THREADS ? UNSUPPORTED("have the kernel read it from outside")
                    : threads                 ? UNSUPPORTED("annotate the parameter with device.ConstExpr")
                                              : UNSUPPORTED("annotate the parameter with ct.Constant"),
                    object);
#undef UNSUPPORTED
  return -1;
}

/* module.<name>, borrowed, kept in the module's state once found; NULL without an exception. */
static PyObject *class_of(PyObject **kept, const char *module_name, const char *name) {
  PyObject *found = TW_PUBLISHED(*kept);
  if (TW_LIKELY(found != NULL))
    return found;
  PyObject *module = PyImport_ImportModule(module_name);
  found = tw_publish(kept, module ? PyObject_GetAttrString(module, name) : NULL);
  Py_XDECREF(module);
  if (!found)
    PyErr_Clear();
  return found;
}

static bool is_dtype(tw_state_t *state, PyObject *object) {
  return (PyObject *)Py_TYPE(object) == class_of(&state->dtype, "tilewright.dtype", "DType");
}

static int read_dtype(call_t *call, PyObject *object) {
  PyObject *name = PyObject_GetAttrString(object, "name");
  const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  if (text)
    call->key[call->key_count++] = DTYPE_WORD | (uint64_t)tw_dtype_from_name(text);
  Py_XDECREF(name);
  return text ? 0 : -1;
}

/* What can be no value of a running kernel: it is a constant without an annotation. */
static bool is_constant_by_nature(tw_state_t *state, PyObject *object) {
  if (object == Py_None || PyUnicode_CheckExact(object))
    return true;
  PyObject *enumeration = class_of(&state->enumeration, "enum", "Enum");
  int found = enumeration ? PyObject_IsInstance(object, enumeration) : -1;
  if (found < 0)
    PyErr_Clear();
  return found > 0;
}

static int read_structure(call_t *call, Py_ssize_t leaf, PyObject *object);

/* Neither an array nor a number. */
static int read_other(call_t *call, Py_ssize_t leaf, PyObject *object) {
  if (is_constant_by_nature(call->reader.state, object))
    return read_constant(call, leaf, object);
  return tw_structure_kind(call, object) ? read_structure(call, leaf, object) : unsupported(call, object);
}

/* An argument of another type than most. */
TW_COLD static int read_any(call_t *call, Py_ssize_t leaf, PyObject *object) {
  tw_state_t *state = call->reader.state;
  const tw_dl_exchange_t *exchange = tw_ext_exchange_of(state, Py_TYPE(object));
  if (exchange)
    return read_exchange(call, leaf, exchange, object);
  if (is_dtype(state, object))
    return read_dtype(call, object);
  if (tw_ext_is_numpy_scalar(state, object))
    return read_numpy_scalar(call, object);
  if (PyLong_Check(object)) /* an enumeration */
    return read_int(call, object);
  if (PyFloat_Check(object))
    return read_float(call, object);
  if (PyTuple_Check(object) || PyList_Check(object) || PyDict_Check(object))
    return read_structure(call, leaf, object);
  if (!tw_ext_is_array(state, object))
    return read_other(call, leaf, object);
  tw_array_t array;
  if (tw_ext_array_read(object, &call->reader, &array))
    return -1;
  return put_array(call, leaf, &array);
}

/* `tensors`: what is known of the type that arrays have most often. */
static inline int read_leaf(call_t *call, Py_ssize_t leaf, PyObject *object, tw_known_type_t tensors) {
  PyTypeObject *type = Py_TYPE(object);
  if (TW_LIKELY(type == tensors.type))
    return read_exchange(call, leaf, tensors.exchange, object);
  if (type == &PyLong_Type)
    return read_int(call, object);
  if (type == &PyFloat_Type)
    return read_float(call, object);
  if (type == &PyBool_Type)
    return put_number(call, TW_DTYPE_BOOL, object == Py_True);
  return read_any(call, leaf, object);
}

/* === structures =================================================================================================== */

enum { MOST_LEVELS = 16 }; /* of structures in structures */

/* Room for the arrays of all leaves that there may be. */
static int make_room(dispatcher_t *self) {
#ifdef TW_FREE_THREADED /* which nobody keeps */
  (void)self;
  return 0;
#else
  if (self->leaves > self->count)
    return 0;
  tw_known_array_t *known = calloc(TW_MAX_ARGS + 1, sizeof *known);
  if (!known) {
    PyErr_NoMemory();
    return -1;
  }
  free(self->known);
  self->known = known;
  self->leaves = TW_MAX_ARGS + 1;
  return 0;
#endif
}

static int too_many(void) {
  tw_ext_error(
      TW_TYPE_ERROR,
      "with it the arguments hold more than %d arrays, numbers and constants; join arrays into one, along an axis "
      "more, or launch in parts",
      TW_MAX_ARGS);
  return -1;
}

/* An array of which some extents and strides are constants. */
static int read_static(call_t *call, Py_ssize_t leaf, PyObject *object, PyObject *form) {
  size_t at = call->key_count, first = call->word_count;
  if (read_leaf(call, leaf, object, tw_ext_most_known(call->reader.state)))
    return -1;
  uint64_t word = call->key[at], mask = PyLong_AsUnsignedLong(form);
  if (word & (SCALAR_WORD | DTYPE_WORD | STRUCTURE_WORD | CONSTANT_WORD))
    return 0;
  int rank = (int)(word >> 8 & 15);
  if ((mask & 255) >> rank || mask >> 8 >> rank) {
    tw_ext_error(TW_VALUE_ERROR, "it has %d dimension%s, and its ct.ArrayAnnotation names an axis beyond", rank,
                 rank == 1 ? "" : "s");
    return -1;
  }
  if (call->key_count + 1 + 2 * TW_MAX_RANK > KEY_WORDS - 2 * TW_MAX_ARGS)
    return too_many();
  call->key[at] |= STATIC_WORD;
  call->key[call->key_count++] = mask;
  for (int bit = 0; bit < 16; bit++)
    if (mask >> bit & 1)
      call->key[call->key_count++] = call->words[first + 1 + (size_t)(bit < 8 ? bit : rank + bit - 8)];
  return 0;
}

static int read_marked(call_t *call, Py_ssize_t leaf, PyObject *object, PyObject *form) {
  return PyLong_CheckExact(form) ? read_static(call, leaf, object, form) : read_constant(call, leaf, object);
}

static int read_parts(call_t *call, Py_ssize_t *next, const tw_structure_t *structure, PyObject *form, int levels);

static int read_nested(call_t *call, Py_ssize_t *next, PyObject *object, PyObject *form, int levels) {
  tw_structure_t structure;
  if (levels == 0 || call->structures >= MOST_STRUCTURES) {
    tw_ext_error(TW_TYPE_ERROR, levels ? "it is one of more than %d structures" : "it is nested deeper than %d levels",
                 levels ? MOST_STRUCTURES : MOST_LEVELS);
    return -1;
  }
  call->structures++;
  if (tw_structure_open(call, object, &structure))
    return -1;
  int failed = tw_structure_word(call->self, &structure, &call->key[call->key_count++]) ||
               tw_ext_hold_object(&call->reader.holds, Py_NewRef(structure.parts)) ||
               read_parts(call, next, &structure, form, levels - 1);
  tw_structure_close(&structure);
  return failed ? -1 : 0;
}

/* A part of a structure; `next` is the first leaf that is not yet taken. */
static int read_part(call_t *call, Py_ssize_t *next, PyObject *object, PyObject *form, int levels) {
  if (form != Py_True && tw_structure_kind(call, object))
    return read_nested(call, next, object, form, levels);
  Py_ssize_t leaf = (*next)++;
  if (leaf >= TW_MAX_ARGS)
    return too_many();
  call->place[leaf] = 0;
  if (form == Py_True || PyLong_CheckExact(form))
    return read_marked(call, leaf, object, form);
  return read_leaf(call, leaf, object, tw_ext_most_known(call->reader.state));
}

static int read_parts(call_t *call, Py_ssize_t *next, const tw_structure_t *structure, PyObject *form, int levels) {
  Py_ssize_t count = PyTuple_Size(structure->parts);
  if (tw_structure_check_form(structure, form))
    return -1;
  for (Py_ssize_t i = 0; i < count; i++)
    if (read_part(call, next, PyTuple_GetItem(structure->parts, i), tw_structure_form(structure, form, i), levels)) {
      tw_structure_name(structure, i, &call->path);
      return -1;
    }
  return 0;
}

/* An argument that is a structure; it may take more leaves than one, or none. */
TW_COLD static int read_structure(call_t *call, Py_ssize_t leaf, PyObject *object) {
  const dispatcher_t *self = call->self;
  PyObject *form = self->forms ? PyTuple_GetItem(self->forms, leaf - call->shift) : Py_None;
  Py_ssize_t next = leaf;
  if (make_room(call->self) || read_nested(call, &next, object, form, MOST_LEVELS))
    return -1;
  call->shift += next - leaf - 1;
  return self->count + call->shift > TW_MAX_ARGS ? too_many() : 0;
}

static inline int read_argument(call_t *call, Py_ssize_t i, PyObject *object, tw_known_type_t tensors) {
  Py_ssize_t leaf = i + call->shift;
  call->place[leaf] = 0;
  if (call->self->marked >> i & 1)
    return read_marked(call, leaf, object, call->self->forms ? PyTuple_GetItem(call->self->forms, i) : Py_True);
  return read_leaf(call, leaf, object, tensors);
}

TW_HOT int tw_call_read_arguments(call_t *call, PyObject *arguments) {
  dispatcher_t *self = call->self;
  Py_ssize_t count = self->count;
  call->kind = TW_DEVICE_NONE;
  call->device_id = 0;
  call->mixed = false;
  call->read_only = call->overlapping = 0;
  call->arguments = arguments;
  call->shift = call->structures = 0;
  call->path = NULL;
  call->key_count = 1; /* the target, when it is known */
  call->word_count = 0;
  const tw_known_type_t tensors = tw_ext_most_known(call->reader.state);
  for (Py_ssize_t i = 0; i < count; i++)
    if (TW_UNLIKELY(read_argument(call, i, PyTuple_GetItem(arguments, i), tensors)))
      return name_argument(call, i);
  return TW_UNLIKELY(call->mixed) ? mixture_error(call) : 0;
}
