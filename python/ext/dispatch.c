/* dispatch.c - launch(): from Python arguments to a compiled variant to running blocks
 *
 * A Dispatcher belongs to one kernel function. A launch reads every argument once and makes two
 * things of it: parameter words, and key words (facts of an array, type of a scalar, value of a
 * constant). The key words find the compiled variant: by hash, then by comparing all of them. When
 * there is none, the front end is asked for one (`on_miss`), which happens once a specialization.
 *
 * The hot path allocates nothing and takes about 0.2 us for three torch tensors. */
#include "dispatch.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_WORDS = 1 + 2 * TW_MAX_ARGS };

/* Key word of a scalar: this bit, its dtype, and whether an integer is divisible by 16. */
#define SCALAR_WORD (1ull << 60)
#define SCALAR_DIV (1ull << 8)
/* Key word of a dtype that is passed as an argument: a constant without a second word. */
#define DTYPE_WORD (1ull << 61)

/* First key word of a constant: what the second one is. */
enum { CONST_INT = 1, CONST_BOOL, CONST_FLOAT, CONST_NONE, CONST_OBJECT };

typedef struct entry {
  uint64_t hash;
  tw_variant_t *variant;  /* owned */
  PyObject *target, *key; /* owned: what on_miss was asked for */
  size_t count;
  uint64_t words[];
} entry_t;

typedef struct dispatcher {
  PyObject_HEAD PyObject *name;  /* owned str */
  PyObject *parameters;          /* owned tuple of str */
  PyObject *on_miss;             /* owned callable */
  PyObject *watched;             /* owned tuple or NULL: what the variants read outside of the kernel */
  PyObject *objects;             /* owned dict: constants that are no numbers -> small integers */
  PyObject *seen[TW_MAX_ARGS];   /* owned: last object at a constant position … */
  uint64_t seen_id[TW_MAX_ARGS]; /* … and its integer */
  uint64_t constants;            /* bit i: argument i is a constant */
  Py_ssize_t count;              /* of parameters */
  entry_t **table;               /* owned, open addressing, `slots` is a power of two */
  size_t slots, used;
  entry_t *last; /* found by the last launch; in the table */
} dispatcher_t;

static PyTypeObject *dispatcher_type;

/* One launch in the making; not cleared as a whole, it is large. */
typedef struct call {
  dispatcher_t *self;
  tw_stream_t stream;
  uint32_t grid[3], block[3];
  bool has_block;
  tw_hold_t *holds;
  int kind, device_id;             /* of the arrays; TW_DEVICE_NONE: there are none */
  bool mixed;                      /* arrays in different places */
  uint64_t read_only, overlapping; /* bit i: argument i */
  size_t key_count, word_count;
  uint16_t place[TW_MAX_ARGS]; /* 0: no array; else kind << 8 | device + 1 */
  uint64_t key[KEY_WORDS];
  uint64_t words[TW_MAX_WORDS] __attribute__((aligned(64)));
} call_t;

/* === messages ================================================================================ */

static PyObject *parameter_name(const dispatcher_t *self, Py_ssize_t i) { /* borrowed */
  return PyTuple_GetItem(self->parameters, i);
}

/* Whether the pending exception is one that speaks of "it" and needs the argument's name. */
static bool is_ours(void) {
  static const tw_code_t codes[] = {TW_TYPE_ERROR,   TW_VALUE_ERROR,   TW_LAUNCH_ERROR,
                                    TW_DRIVER_ERROR, TW_UNIMPLEMENTED, TW_OUT_OF_MEMORY};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    if (PyErr_ExceptionMatches(tw_ext_error_class(codes[i])))
      return true;
  return false;
}

/* "its dtype …" -> "kernel f, argument 'A': its dtype …" */
static int name_argument(const dispatcher_t *self, Py_ssize_t i) {
  if (!is_ours())
    return -1;
  PyObject *type, *value, *trace, *fresh;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyObject *cause = PyException_GetCause(value);
  PyErr_Format(type, "kernel %U, argument '%U': %S", self->name, parameter_name(self, i), value);
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

/* "A, B" of the arguments in a bit mask; new reference. */
static PyObject *names_of(const dispatcher_t *self, uint64_t mask) {
  PyObject *list = PyList_New(0), *comma = PyUnicode_FromString(", "), *text = NULL;
  for (Py_ssize_t i = 0; list && i < self->count; i++)
    if (mask >> i & 1)
      PyList_Append(list, parameter_name(self, i));
  if (list && comma)
    text = PyUnicode_Join(comma, list);
  Py_XDECREF(list);
  Py_XDECREF(comma);
  return text;
}

static int count_error(const dispatcher_t *self, Py_ssize_t found) {
  PyObject *names = names_of(self, ~0ull);
  if (names)
    tw_ext_error(TW_TYPE_ERROR, "kernel %U takes %zd argument(s) (%U), %zd were given", self->name, self->count, names,
                 found);
  Py_XDECREF(names);
  return -1;
}

/* "A, B on the CPU; C on CUDA device 0" */
static int mixture_error(const call_t *call) {
  PyObject *text = PyUnicode_FromString("");
  uint64_t done = 0;
  for (Py_ssize_t i = 0; text && i < call->self->count; i++) {
    uint16_t place = call->place[i];
    if (!place || done >> i & 1)
      continue;
    uint64_t same = 0;
    for (Py_ssize_t j = i; j < call->self->count; j++)
      same |= (uint64_t)(call->place[j] == place) << j;
    done |= same;
    PyObject *names = names_of(call->self, same), *more = NULL;
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

static int mask_error(const call_t *call, uint64_t mask, const char *what) {
  PyObject *names = names_of(call->self, mask);
  if (names)
    tw_ext_error(TW_LAUNCH_ERROR, "kernel %U writes to %U, %s", call->self->name, names, what);
  Py_XDECREF(names);
  return -1;
}

/* Raises the status with the kernel's name in front, unless it is there already. */
static int kernel_error(const dispatcher_t *self, tw_status_t status) {
  if (strstr(tw_status_message(status), "kernel ")) {
    tw_ext_raise(status, NULL);
    return -1;
  }
  tw_ext_error(tw_status_code(status), "kernel %U: %s", self->name, tw_status_message(status));
  tw_status_free(status);
  return -1;
}

/* === the grid ================================================================================ */

static int read_extents(const dispatcher_t *self, PyObject *object, const char *what,
                        tw_status_t (*check)(const int64_t *), uint32_t out[3]) {
  int64_t extents[3] = {1, 1, 1};
  if (PyLong_Check(object)) {
    extents[0] = PyLong_AsLongLong(object);
  } else {
    Py_ssize_t count = PyTuple_Check(object) ? PyTuple_Size(object) : -1;
    if (count < 1 || count > 3) {
      tw_ext_error(TW_LAUNCH_ERROR, "kernel %U: the %s must be an int or a tuple of one to three, found %R", self->name,
                   what, object);
      return -1;
    }
    for (Py_ssize_t axis = 0; axis < count; axis++) {
      PyObject *item = PyTuple_GetItem(object, axis);
      if (TW_LIKELY(PyLong_Check(item))) {
        extents[axis] = PyLong_AsLongLong(item);
      } else { /* NumPy integers */
        PyObject *number = PyNumber_Index(item);
        extents[axis] = number ? PyLong_AsLongLong(number) : -1;
        Py_XDECREF(number);
      }
    }
  }
  if (TW_UNLIKELY(PyErr_Occurred() != NULL)) {
    PyErr_Clear();
    tw_ext_error(TW_LAUNCH_ERROR, "kernel %U: the %s must be made of integers, found %R", self->name, what, object);
    return -1;
  }
  tw_status_t status = check(extents);
  if (TW_UNLIKELY(status != NULL))
    return kernel_error(self, status);
  for (int axis = 0; axis < 3; axis++)
    out[axis] = (uint32_t)extents[axis];
  return 0;
}

/* === constants =============================================================================== */

/* The value of a constant as Python knows it: NumPy scalars become Python's; new reference. */
static PyObject *constant_value(PyObject *object) {
  if (tw_ext_is_numpy_scalar(object) && !PyUnicode_Check(object))
    return PyObject_CallMethod(object, "item", NULL);
  return Py_NewRef(object);
}

/* A key for the dictionary that tells 1 from True and 1.0, and 0.0 from -0.0; new reference. */
static PyObject *typed_key(PyObject *object) {
  PyObject *type = (PyObject *)Py_TYPE(object);
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
    PyObject *part = typed_key(PyTuple_GetItem(object, i));
    if (!part) {
      Py_DECREF(key);
      return NULL;
    }
    PyTuple_SetItem(key, i + 1, part); /* takes it */
  }
  return key;
}

/* A small integer for a constant that is no number; the same for equal ones. */
static int object_id(dispatcher_t *self, Py_ssize_t i, PyObject *object, uint64_t *out_id) {
  if (self->seen[i] == object) {
    *out_id = self->seen_id[i];
    return 0;
  }
  PyObject *key = typed_key(object);
  if (!key)
    return -1;
  PyObject *known = PyDict_GetItemWithError(self->objects, key);
  if (known) {
    *out_id = PyLong_AsUnsignedLongLong(known);
  } else if (!PyErr_Occurred()) {
    *out_id = (uint64_t)PyDict_Size(self->objects);
    PyObject *number = PyLong_FromUnsignedLongLong(*out_id);
    if (number)
      PyDict_SetItem(self->objects, key, number);
    Py_XDECREF(number);
  }
  Py_DECREF(key);
  if (PyErr_Occurred()) {
    if (PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();
      tw_ext_error_type(TW_TYPE_ERROR, "a constant must be hashable, found a %U; pass a tuple for a list", object);
    }
    return -1;
  }
  PyObject *old = self->seen[i];
  self->seen[i] = Py_NewRef(object);
  self->seen_id[i] = *out_id;
  Py_XDECREF(old);
  return 0;
}

static int read_constant(call_t *call, Py_ssize_t i, PyObject *object) {
  uint64_t *key = call->key + call->key_count;
  call->key_count += 2;
  int overflow = 0;
  if (PyLong_CheckExact(object)) {
    int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
    key[0] = CONST_INT;
    key[1] = (uint64_t)value;
    if (TW_LIKELY(!overflow))
      return 0;
  } else if (PyBool_Check(object)) {
    key[0] = CONST_BOOL;
    key[1] = object == Py_True;
    return 0;
  } else if (PyFloat_CheckExact(object)) {
    double value = PyFloat_AsDouble(object);
    key[0] = CONST_FLOAT;
    memcpy(&key[1], &value, sizeof value);
    return 0;
  } else if (object == Py_None) {
    key[0] = CONST_NONE;
    key[1] = 0;
    return 0;
  } else if (tw_ext_is_array(object)) {
    tw_ext_error_type(TW_TYPE_ERROR, "it is a constant of the kernel, found an array (%U)", object);
    return -1;
  } else if (tw_ext_is_numpy_scalar(object)) {
    PyObject *value = constant_value(object);
    call->key_count -= 2;
    int failed = !value || tw_ext_is_numpy_scalar(value) ? -1 : read_constant(call, i, value);
    if (failed && !PyErr_Occurred())
      tw_ext_error_type(TW_TYPE_ERROR, "a %U cannot be a constant", object);
    Py_XDECREF(value);
    return failed;
  }
  key[0] = CONST_OBJECT;
  return object_id(call->self, i, object, &key[1]);
}

/* === scalars ================================================================================= */

static int put_scalar(call_t *call, tw_dtype_t dtype, uint64_t word, bool divisible) {
  if (TW_UNLIKELY(call->word_count >= TW_MAX_WORDS)) {
    tw_ext_error(TW_TYPE_ERROR, "the parameters take more than %d bytes", TW_MAX_WORDS * 8);
    return -1;
  }
  call->key[call->key_count++] = SCALAR_WORD | (uint64_t)dtype | (divisible ? SCALAR_DIV : 0);
  call->words[call->word_count++] = word;
  return 0;
}

/* int32 if the value fits, else int64, else uint64. */
static int read_int(call_t *call, PyObject *object) {
  int overflow;
  int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (TW_LIKELY(!overflow))
    return put_scalar(call, (int32_t)value == value ? TW_DTYPE_INT32 : TW_DTYPE_INT64, (uint64_t)value,
                      value % 16 == 0);
  uint64_t large = overflow > 0 ? PyLong_AsUnsignedLongLong(object) : 0;
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    tw_ext_error(TW_VALUE_ERROR, "the integer %R fits no dtype; the widest are int64 and uint64", object);
    return -1;
  }
  return put_scalar(call, TW_DTYPE_UINT64, large, large % 16 == 0);
}

/* Python's float is float32 in tile code, as a constant is. */
static int read_float(call_t *call, PyObject *object) {
  float value = (float)PyFloat_AsDouble(object);
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return put_scalar(call, TW_DTYPE_FLOAT32, bits, false);
}

static bool is_integral(tw_dtype_t dtype) { return dtype >= TW_DTYPE_INT8 && dtype <= TW_DTYPE_UINT64; }

/* NumPy scalars, ml_dtypes' among them, keep their dtype. */
static int read_numpy_scalar(call_t *call, PyObject *object) {
  tw_dtype_t dtype = tw_ext_dtype_of(object);
  unsigned bits = tw_dtype_bits(dtype);
  if (dtype == TW_DTYPE_NONE || bits < 8 || (bits == 8 && !is_integral(dtype) && dtype != TW_DTYPE_BOOL)) {
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
  return failed ? -1 : put_scalar(call, dtype, word, is_integral(dtype) && word % 16 == 0);
}

/* === arguments =============================================================================== */

static int put_array(call_t *call, Py_ssize_t i, const tw_array_t *array) {
  if (TW_UNLIKELY(call->word_count + 1 + 2 * (size_t)array->rank > TW_MAX_WORDS)) {
    tw_ext_error(TW_TYPE_ERROR, "the parameters take more than %d bytes", TW_MAX_WORDS * 8);
    return -1;
  }
  call->word_count += tw_array_pack(array, call->words + call->word_count);
  uint64_t facts = tw_array_facts(array);
  call->key[call->key_count++] = facts & ~(uint64_t)TW_FACT_OVERLAP;
  call->read_only |= (uint64_t)!(facts & TW_FACT_WRITABLE) << i;
  call->overlapping |= (uint64_t)((facts & TW_FACT_OVERLAP) != 0) << i;
  if (TW_UNLIKELY(array->device_id < 0)) /* empty: it is at home anywhere on a GPU */
    return 0;
  call->place[i] = (uint16_t)(array->device_kind << 8 | (array->device_id + 1));
  if (call->kind == TW_DEVICE_NONE) {
    call->kind = array->device_kind;
    call->device_id = array->device_id;
  } else if (TW_UNLIKELY(call->kind != array->device_kind || call->device_id != array->device_id)) {
    call->mixed = true;
  }
  return 0;
}

static int unsupported(PyObject *object) {
  tw_ext_error_type(TW_TYPE_ERROR,
                    "a %U is not supported; pass an array (NumPy, or anything with DLPack or the "
                    "CUDA Array Interface), an int, a float or a bool, or annotate the parameter "
                    "with ct.Constant",
                    object);
  return -1;
}

static bool is_dtype(PyObject *object) {
  static PyObject *class; /* owned, kept for ever */
  if (!class) {
    PyObject *module = PyImport_ImportModule("tilewright.dtype");
    class = module ? PyObject_GetAttrString(module, "DType") : NULL;
    Py_XDECREF(module);
  }
  if (!class)
    PyErr_Clear();
  return class && (PyObject *)Py_TYPE(object) == class;
}

static int read_dtype(call_t *call, PyObject *object) {
  PyObject *name = PyObject_GetAttrString(object, "name");
  const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  if (text)
    call->key[call->key_count++] = DTYPE_WORD | (uint64_t)tw_dtype_from_name(text);
  Py_XDECREF(name);
  return text ? 0 : -1;
}

static int read_other(call_t *call, Py_ssize_t i, PyObject *object) {
  if (is_dtype(object))
    return read_dtype(call, object);
  if (tw_ext_is_numpy_scalar(object))
    return read_numpy_scalar(call, object);
  if (PyLong_Check(object)) /* an enumeration */
    return read_int(call, object);
  if (PyFloat_Check(object))
    return read_float(call, object);
  if (!tw_ext_is_array(object))
    return unsupported(object);
  tw_array_t array;
  if (tw_ext_array_read(object, &call->stream, &array, &call->holds))
    return -1;
  return put_array(call, i, &array);
}

static inline int read_argument(call_t *call, Py_ssize_t i, PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  call->place[i] = 0;
  if (call->self->constants >> i & 1)
    return read_constant(call, i, object);
  if (type == &PyLong_Type)
    return read_int(call, object);
  if (type == &PyFloat_Type)
    return read_float(call, object);
  if (type == &PyBool_Type)
    return put_scalar(call, TW_DTYPE_BOOL, object == Py_True, false);
  if (TW_UNLIKELY(!tw_ext_has_exchange(type)))
    return read_other(call, i, object);
  tw_array_t array;
  if (TW_UNLIKELY(tw_ext_array_read(object, &call->stream, &array, &call->holds)))
    return -1;
  return put_array(call, i, &array);
}

static int read_arguments(call_t *call, PyObject *arguments) {
  dispatcher_t *self = call->self;
  Py_ssize_t count = PyTuple_Size(arguments);
  if (TW_UNLIKELY(count != self->count))
    return count < 0 ? -1 : count_error(self, count);
  call->kind = TW_DEVICE_NONE;
  call->device_id = 0;
  call->mixed = false;
  call->read_only = call->overlapping = 0;
  call->key_count = 1; /* the target, when it is known */
  call->word_count = 0;
  for (Py_ssize_t i = 0; i < count; i++)
    if (TW_UNLIKELY(read_argument(call, i, PyTuple_GetItem(arguments, i))))
      return name_argument(self, i);
  return TW_UNLIKELY(call->mixed) ? mixture_error(call) : 0;
}

/* === the target ============================================================================== */

/* Without arrays the stream decides: one that is not None means the GPU, if there is one. */
static int choose_device(call_t *call) {
  call->kind = TW_DEVICE_CPU;
  if (!call->stream.given)
    return 0;
  const tw_device_t *first;
  tw_status_t status = tw_device_get(0, &first);
  if (!status) {
    call->kind = TW_DEVICE_CUDA;
    status = tw_stream_device(call->stream.handle, &call->device_id);
  } else if (!call->stream.handle) { /* 0 is a stream of the CPU too */
    tw_status_free(status);
    status = NULL;
  }
  return status ? kernel_error(call->self, status) : 0;
}

static int read_target(call_t *call) {
  if (TW_UNLIKELY(call->kind == TW_DEVICE_NONE) && choose_device(call))
    return -1;
  if (call->kind == TW_DEVICE_CPU) {
    call->key[0] = TW_DEVICE_CPU;
    if (TW_LIKELY(!call->stream.handle))
      return 0;
    tw_ext_error(TW_LAUNCH_ERROR,
                 "kernel %U: its arrays are on the CPU, where the stream must be None or 0; move "
                 "them to the GPU to use a stream",
                 call->self->name);
    return -1;
  }
  const tw_device_t *device;
  tw_status_t status = tw_device_get(call->device_id, &device);
  if (TW_UNLIKELY(status != NULL))
    return kernel_error(call->self, status);
  call->key[0] = TW_DEVICE_CUDA | (uint64_t)device->major << 8 | (uint64_t)device->minor << 16;
  return 0;
}

/* "cpu", "sm_80", "sm_90a". */
static PyObject *target_name(uint64_t word) {
  if ((word & 255) == TW_DEVICE_CPU)
    return PyUnicode_FromString("cpu");
  return tw_ext_target_name((int)(word >> 8 & 255), (int)(word >> 16 & 255));
}

/* === describing a specialization to the front end ============================================ */

static PyObject *describe_array_facts(uint64_t word) {
  tw_dtype_t dtype = (tw_dtype_t)(word & 255);
  int rank = (int)(word >> 8 & 15);
  unsigned bits = tw_dtype_bits(dtype), item = bits < 8 ? 1 : bits / 8;
  PyObject *shape = PyTuple_New(rank), *strides = PyTuple_New(rank);
  for (int d = 0; shape && strides && d < rank; d++) {
    unsigned facts = (unsigned)(word >> (TW_FACT_DIM + 3 * d)) & 7;
    int one = facts & TW_FACT_STRIDE_ONE ? 1 : 0;
    long division = facts & TW_FACT_STRIDE_DIV && !one ? 128 / (long)bits : 1;
    PyTuple_SetItem(shape, d, PyLong_FromLong(facts & TW_FACT_SHAPE_DIV ? 16 : 1));
    PyTuple_SetItem(strides, d, Py_BuildValue("(il)", one, division));
  }
  return Py_BuildValue("(ssiINNO)", "array", tw_dtype_name(dtype), rank, word & TW_FACT_ALIGNED ? 16 : item, shape,
                       strides, word & TW_FACT_WRITABLE ? Py_True : Py_False);
}

/* One tuple a parameter; `arguments` give the values of constants. */
static PyObject *describe_key(const dispatcher_t *self, const uint64_t *key, PyObject *arguments) {
  PyObject *result = PyTuple_New(self->count);
  size_t at = 1;
  for (Py_ssize_t i = 0; result && i < self->count; i++) {
    PyObject *item;
    uint64_t word = key[at++];
    if (self->constants >> i & 1) {
      at++;
      PyObject *value = constant_value(PyTuple_GetItem(arguments, i));
      item = value ? Py_BuildValue("(sN)", "const", value) : NULL;
    } else if (word & DTYPE_WORD) {
      item = Py_BuildValue("(sO)", "const", PyTuple_GetItem(arguments, i));
    } else if (word & SCALAR_WORD) {
      item = Py_BuildValue("(ssi)", "scalar", tw_dtype_name((tw_dtype_t)(word & 255)), word & SCALAR_DIV ? 16 : 1);
    } else {
      item = describe_array_facts(word);
    }
    if (!item || PyTuple_SetItem(result, i, item)) {
      Py_DECREF(result);
      return NULL;
    }
  }
  return result;
}

/* === the table of variants =================================================================== */

static uint64_t hash_key(const uint64_t *key, size_t count) {
  uint64_t hash = 0x9E3779B97F4A7C15ull;
  for (size_t i = 0; i < count; i++) {
    hash = (hash ^ key[i]) * 0xFF51AFD7ED558CCDull;
    hash ^= hash >> 32;
  }
  return hash;
}

static inline bool matches(const entry_t *entry, const call_t *call, uint64_t hash) {
  return entry->hash == hash && entry->count == call->key_count &&
         !memcmp(entry->words, call->key, call->key_count * sizeof *call->key);
}

static entry_t *find_entry(dispatcher_t *self, const call_t *call, uint64_t hash) {
  if (TW_LIKELY(self->last && matches(self->last, call, hash)))
    return self->last;
  for (size_t slot = hash; self->slots; slot++) {
    entry_t *entry = self->table[slot & (self->slots - 1)];
    if (!entry)
      return NULL;
    if (matches(entry, call, hash))
      return self->last = entry;
  }
  return NULL;
}

static void place_entry(entry_t **table, size_t slots, entry_t *entry) {
  size_t slot = entry->hash;
  while (table[slot & (slots - 1)])
    slot++;
  table[slot & (slots - 1)] = entry;
}

/* Room for one more at a load of at most a half. */
static int grow_table(dispatcher_t *self) {
  if (2 * (self->used + 1) <= self->slots)
    return 0;
  size_t slots = self->slots ? 2 * self->slots : 8;
  entry_t **table = calloc(slots, sizeof *table);
  if (!table) {
    PyErr_NoMemory();
    return -1;
  }
  for (size_t i = 0; i < self->slots; i++)
    if (self->table[i])
      place_entry(table, slots, self->table[i]);
  free(self->table);
  self->table = table;
  self->slots = slots;
  return 0;
}

static entry_t *insert_entry(dispatcher_t *self, const call_t *call, uint64_t hash, PyObject *variant, PyObject *target,
                             PyObject *key) {
  size_t bytes = call->key_count * sizeof *call->key;
  entry_t *entry = grow_table(self) ? NULL : malloc(sizeof *entry + bytes);
  if (!entry) {
    PyErr_NoMemory();
    return NULL;
  }
  *entry = (entry_t){.hash = hash,
                     .variant = (tw_variant_t *)Py_NewRef(variant),
                     .target = Py_NewRef(target),
                     .key = Py_NewRef(key),
                     .count = call->key_count};
  memcpy(entry->words, call->key, bytes);
  place_entry(self->table, self->slots, entry);
  self->used++;
  return self->last = entry;
}

static void drop_entries(dispatcher_t *self) {
  entry_t **table = self->table;
  size_t slots = self->slots;
  self->table = NULL;
  self->last = NULL;
  self->slots = self->used = 0;
  for (size_t i = 0; i < slots; i++) {
    if (!table[i])
      continue;
    Py_DECREF((PyObject *)table[i]->variant);
    Py_DECREF(table[i]->target);
    Py_DECREF(table[i]->key);
    free(table[i]);
  }
  free(table);
}

/* Whether a variable that the variants were made from has another value now: (dict, name, value), or
 * (object, attribute, value). */
static bool is_stale(const dispatcher_t *self) {
  Py_ssize_t count = PyTuple_Size(self->watched);
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *row = PyTuple_GetItem(self->watched, i);
    PyObject *holder = PyTuple_GetItem(row, 0), *name = PyTuple_GetItem(row, 1), *now;
    if (PyDict_Check(holder)) {
      now = PyDict_GetItemWithError(holder, name);
    } else {
      now = PyObject_GetAttr(holder, name);
      Py_XDECREF(now); /* the holder keeps it */
    }
    if (now != PyTuple_GetItem(row, 2)) {
      PyErr_Clear();
      return true;
    }
  }
  return false;
}

static void forget_stale(dispatcher_t *self) {
  PyObject *watched = self->watched;
  self->watched = NULL;
  drop_entries(self);
  Py_DECREF(watched);
}

static int check_variant(const call_t *call, PyObject *variant) {
  PyTypeObject *wanted = call->kind == TW_DEVICE_CPU ? tw_cpu_variant_type : tw_cuda_variant_type;
  if (Py_TYPE(variant) == wanted)
    return 0;
  tw_ext_error(TW_INTERNAL_ERROR, "kernel %U: on_miss returned %R, expected %R", call->self->name,
               (PyObject *)Py_TYPE(variant), (PyObject *)wanted);
  return -1;
}

/* Asks the front end for a variant. Meanwhile other threads may run and do the same. */
static entry_t *compile_variant(call_t *call, PyObject *arguments, uint64_t hash) {
  dispatcher_t *self = call->self;
  entry_t *entry = NULL;
  PyObject *target = target_name(call->key[0]);
  PyObject *key = target ? describe_key(self, call->key, arguments) : NULL;
  PyObject *variant = key ? PyObject_CallFunctionObjArgs(self->on_miss, (PyObject *)self, target, key, NULL) : NULL;
  if (variant && !check_variant(call, variant)) {
    entry = find_entry(self, call, hash);
    if (!entry)
      entry = insert_entry(self, call, hash, variant, target, key);
  }
  Py_XDECREF(variant);
  Py_XDECREF(key);
  Py_XDECREF(target);
  return entry;
}

/* === launching =============================================================================== */

static int check_written(const call_t *call, uint64_t written) {
  if (written & call->read_only)
    return mask_error(call, written & call->read_only, "which is read-only; pass a writable array (or a copy)");
  return mask_error(call, written & call->overlapping,
                    "whose elements overlap in memory (a stride is 0 or too small); pass a "
                    "contiguous copy");
}

/* The GIL is released: other Python threads run beside the kernel. The arguments are kept by the
 * caller's tuple, the code by a reference of our own. */
static int run_on_cpu(call_t *call, tw_variant_t *variant) {
  tw_status_t status;
  Py_INCREF((PyObject *)variant);
  Py_BEGIN_ALLOW_THREADS status =
      tw_cpu_launch(&variant->cpu, call->words, call->grid, call->has_block ? call->block : NULL);
  Py_END_ALLOW_THREADS Py_DECREF((PyObject *)variant);
  return status ? kernel_error(call->self, status) : 0;
}

/* Loading takes milliseconds, and longer for PTX: other Python threads go on meanwhile. */
static int load_on_gpu(call_t *call, tw_variant_t *variant) {
  tw_status_t status;
  Py_INCREF((PyObject *)variant);
  Py_BEGIN_ALLOW_THREADS status = tw_cuda_kernel_load(variant->cuda, call->device_id);
  Py_END_ALLOW_THREADS Py_DECREF((PyObject *)variant);
  return status ? kernel_error(call->self, status) : 0;
}

/* The GIL is kept: the driver's call takes 2 us, giving the lock away and taking it back may take 5 ms when threads
 * compete. */
static int run_on_gpu(call_t *call, tw_variant_t *variant) {
  if (TW_UNLIKELY(!tw_cuda_kernel_is_loaded(variant->cuda, call->device_id)) && load_on_gpu(call, variant))
    return -1;
  tw_status_t status = tw_cuda_launch(variant->cuda, call->device_id, call->stream.handle, call->grid,
                                      call->has_block ? call->block : NULL, call->words, call->word_count);
  return TW_UNLIKELY(status != NULL) ? kernel_error(call->self, status) : 0;
}

static int launch_call(call_t *call, PyObject *arguments) {
  if (TW_UNLIKELY(read_arguments(call, arguments)) || TW_UNLIKELY(read_target(call)))
    return -1;
  uint64_t hash = hash_key(call->key, call->key_count);
  if (call->self->watched && TW_UNLIKELY(is_stale(call->self)))
    forget_stale(call->self);
  entry_t *entry = find_entry(call->self, call, hash);
  if (TW_UNLIKELY(!entry) && !(entry = compile_variant(call, arguments, hash)))
    return -1;
  tw_variant_t *variant = entry->variant;
  if (TW_UNLIKELY(variant->written & (call->read_only | call->overlapping)))
    return check_written(call, variant->written);
  return call->kind == TW_DEVICE_CPU ? run_on_cpu(call, variant) : run_on_gpu(call, variant);
}

static int begin_call(call_t *call, PyObject *stream, PyObject *grid, PyObject *block, PyObject *kernel,
                      PyObject *arguments) {
  if (TW_UNLIKELY(!PyObject_TypeCheck(kernel, dispatcher_type))) {
    tw_ext_error_type(TW_TYPE_ERROR,
                      "launch() takes (stream, grid, kernel, args); as kernel it was given a %U, "
                      "which is no kernel: decorate the function with @ct.kernel",
                      kernel);
    return -1;
  }
  call->self = (dispatcher_t *)kernel;
  call->holds = NULL;
  call->has_block = block != NULL;
  if (TW_UNLIKELY(!call->self->parameters)) {
    tw_ext_error(TW_INTERNAL_ERROR, "the kernel was not initialized");
    return -1;
  }
  if (TW_UNLIKELY(!PyTuple_Check(arguments))) {
    tw_ext_error_type(TW_TYPE_ERROR, "launch(): the arguments must be a tuple, found a %U", arguments);
    return -1;
  }
  if (read_extents(call->self, grid, "grid", tw_grid_check, call->grid) ||
      (block && read_extents(call->self, block, "block", tw_block_check, call->block)))
    return -1;
  return tw_ext_stream_read(stream, &call->stream);
}

static PyObject *launch_objects(PyObject *stream, PyObject *grid, PyObject *block, PyObject *kernel,
                                PyObject *arguments) {
  call_t call;
  if (TW_UNLIKELY(begin_call(&call, stream, grid, block, kernel, arguments)))
    return NULL;
  call.stream.scan = arguments;
  int failed = launch_call(&call, arguments);
  if (TW_UNLIKELY(call.holds != NULL)) {
    PyObject *type, *value, *trace; /* deleters run Python code */
    PyErr_Fetch(&type, &value, &trace);
    tw_hold_release(call.holds);
    PyErr_Restore(type, value, trace);
  }
  return TW_UNLIKELY(failed) ? NULL : Py_NewRef(Py_None);
}

static PyObject *launch(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
  (void)module;
  if (TW_UNLIKELY(count != 4))
    return tw_ext_error(TW_TYPE_ERROR, "launch() takes (stream, grid, kernel, args), %zd arguments were given", count);
  return launch_objects(arguments[0], arguments[1], NULL, arguments[2], arguments[3]);
}

static PyObject *launch_threads(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
  (void)module;
  if (TW_UNLIKELY(count != 5))
    return tw_ext_error(TW_TYPE_ERROR, "launch_threads() takes (stream, grid, block, kernel, args), %zd were given",
                        count);
  return launch_objects(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]);
}

/* === the Python type ========================================================================= */

/* Bit mask of the constant parameters, given by position. */
static int read_constants(dispatcher_t *self, PyObject *positions) {
  PyObject *tuple = PySequence_Tuple(positions);
  Py_ssize_t count = tuple ? PyTuple_Size(tuple) : -1;
  for (Py_ssize_t i = 0; i < count; i++) {
    Py_ssize_t position = PyLong_AsSsize_t(PyTuple_GetItem(tuple, i));
    if (position < 0 || position >= self->count) {
      if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "constant position %zd is no parameter", position);
      count = -1;
      break;
    }
    self->constants |= 1ull << position;
  }
  Py_XDECREF(tuple);
  return count < 0 ? -1 : 0;
}

static int dispatcher_init(PyObject *object, PyObject *arguments, PyObject *keywords) {
  static char *names[] = {"name", "parameters", "constants", "on_miss", NULL};
  dispatcher_t *self = (dispatcher_t *)object;
  PyObject *name, *parameters, *constants, *on_miss;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "UOOO:Dispatcher", names, &name, &parameters, &constants,
                                   &on_miss))
    return -1;
  if (self->parameters) {
    PyErr_SetString(PyExc_RuntimeError, "a Dispatcher is initialized once");
    return -1;
  }
  PyObject *tuple = PySequence_Tuple(parameters);
  if (!tuple)
    return -1;
  self->count = PyTuple_Size(tuple);
  if (self->count > TW_MAX_ARGS) {
    tw_ext_error(TW_TYPE_ERROR, "kernel %U has %zd parameters, the most is %d", name, self->count, TW_MAX_ARGS);
    Py_DECREF(tuple);
    return -1;
  }
  self->objects = PyDict_New();
  if (!self->objects || read_constants(self, constants)) {
    Py_DECREF(tuple);
    return -1;
  }
  self->name = Py_NewRef(name);
  self->on_miss = Py_NewRef(on_miss);
  self->parameters = tuple;
  return 0;
}

static int dispatcher_traverse(PyObject *object, visitproc visit, void *arg) {
  dispatcher_t *self = (dispatcher_t *)object;
  Py_VISIT((PyObject *)Py_TYPE(object));
  Py_VISIT(self->on_miss);
  Py_VISIT(self->watched);
  Py_VISIT(self->objects);
  for (int i = 0; i < TW_MAX_ARGS; i++)
    Py_VISIT(self->seen[i]);
  for (size_t i = 0; i < self->slots; i++)
    if (self->table[i]) {
      Py_VISIT((PyObject *)self->table[i]->variant);
      Py_VISIT(self->table[i]->key);
    }
  return 0;
}

static int dispatcher_clear(PyObject *object) {
  dispatcher_t *self = (dispatcher_t *)object;
  drop_entries(self);
  Py_CLEAR(self->on_miss);
  Py_CLEAR(self->watched);
  Py_CLEAR(self->objects);
  for (int i = 0; i < TW_MAX_ARGS; i++)
    Py_CLEAR(self->seen[i]);
  Py_CLEAR(self->parameters); /* launch() refuses it from now on */
  return 0;
}

static void dispatcher_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  dispatcher_clear(object);
  Py_CLEAR(((dispatcher_t *)object)->name);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF((PyObject *)type);
}

static PyObject *get_name(PyObject *object, void *unused) {
  (void)unused;
  PyObject *name = ((dispatcher_t *)object)->name;
  return Py_NewRef(name ? name : Py_None);
}

static PyObject *get_parameters(PyObject *object, void *unused) {
  (void)unused;
  PyObject *parameters = ((dispatcher_t *)object)->parameters;
  return Py_NewRef(parameters ? parameters : Py_None);
}

/* variants() -> [(target, key, kernel)] */
static PyObject *variants(PyObject *object, PyObject *unused) {
  (void)unused;
  dispatcher_t *self = (dispatcher_t *)object;
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list && i < self->slots; i++) {
    entry_t *entry = self->table[i];
    if (!entry)
      continue;
    PyObject *row = Py_BuildValue("(OOO)", entry->target, entry->key, (PyObject *)entry->variant);
    if (!row || PyList_Append(list, row))
      Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

static PyObject *clear_variants(PyObject *object, PyObject *unused) {
  (void)unused;
  drop_entries((dispatcher_t *)object);
  return Py_NewRef(Py_None);
}

/* watch([(holder, name, value), ...]): replaces what was watched. */
static PyObject *watch(PyObject *object, PyObject *rows) {
  dispatcher_t *self = (dispatcher_t *)object;
  PyObject *tuple = PySequence_Tuple(rows);
  if (!tuple)
    return NULL;
  for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++) {
    PyObject *row = PyTuple_GetItem(tuple, i);
    if (!PyTuple_Check(row) || PyTuple_Size(row) != 3 || !PyUnicode_Check(PyTuple_GetItem(row, 1))) {
      Py_DECREF(tuple);
      PyErr_SetString(PyExc_TypeError, "watch needs rows (holder, name, value)");
      return NULL;
    }
  }
  PyObject *old = self->watched;
  self->watched = PyTuple_Size(tuple) ? tuple : NULL;
  if (!self->watched)
    Py_DECREF(tuple);
  Py_XDECREF(old);
  return Py_NewRef(Py_None);
}

static PyObject *get_watched(PyObject *object, void *unused) {
  (void)unused;
  PyObject *watched = ((dispatcher_t *)object)->watched;
  return watched ? Py_NewRef(watched) : PyTuple_New(0);
}

/* specialization(args, stream=None) -> (target, key), what on_miss would be asked for. */
static PyObject *specialization(PyObject *object, PyObject *arguments) {
  call_t call;
  PyObject *one = PyLong_FromLong(1), *result = NULL;
  if (!one || begin_call(&call, Py_None, one, NULL, object, arguments)) {
    Py_XDECREF(one);
    return NULL;
  }
  call.stream.scan = arguments;
  if (!read_arguments(&call, arguments) && !read_target(&call)) {
    PyObject *target = target_name(call.key[0]);
    PyObject *key = describe_key(call.self, call.key, arguments);
    result = target && key ? PyTuple_Pack(2, target, key) : NULL;
    Py_XDECREF(target);
    Py_XDECREF(key);
  }
  Py_DECREF(one);
  tw_hold_release(call.holds);
  return result;
}

static PyMethodDef dispatcher_methods[] = {
    {"variants", variants, METH_NOARGS, "variants() -> [(target, key, kernel)]: compiled so far"},
    {"watch", watch, METH_O,
     "watch([(holder, name, value), ...]): variants are stale when a variable has another value"},
    {"clear_variants", clear_variants, METH_NOARGS, "forget what was compiled"},
    {"specialization", specialization, METH_O,
     "specialization(args) -> (target, key): what on_miss would be asked for"},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef dispatcher_properties[] = {{"watched", get_watched, NULL, "what watch() was told", NULL},
                                              {"name", get_name, NULL, "name of the kernel", NULL},
                                              {"parameters", get_parameters, NULL, "names of the parameters", NULL},
                                              {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot dispatcher_slots[] = {
    {Py_tp_init, dispatcher_init},
    {Py_tp_dealloc, dispatcher_dealloc},
    {Py_tp_traverse, dispatcher_traverse},
    {Py_tp_clear, dispatcher_clear},
    {Py_tp_methods, dispatcher_methods},
    {Py_tp_getset, dispatcher_properties},
    {Py_tp_doc, "Dispatcher(name, parameters, constants, on_miss): base of a kernel object.\n\n"
                "parameters: names; constants: positions of those whose value is part of the specialization.\n"
                "on_miss(dispatcher, target, key) compiles one specialization and returns a CpuKernel or\n"
                "CudaKernel. target: \"cpu\" or \"sm_90a\"; key: one tuple a parameter:\n"
                "  (\"array\", dtype, rank, align, shape_div, strides, writable): the address is a multiple of\n"
                "      align bytes, extent d of shape_div[d] (16 or 1); strides[d] is (1, 1) for a stride known\n"
                "      to be 1, else (0, divisor of the stride in elements)\n"
                "  (\"scalar\", dtype, divisor): an integer is a multiple of divisor (16 or 1)\n"
                "  (\"const\", value)"},
    {0, NULL}};

static PyType_Spec dispatcher_spec = {"tilewright._core.Dispatcher", sizeof(dispatcher_t), 0,
                                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, dispatcher_slots};

#define FAST(function) (PyCFunction)(void (*)(void)) function
static PyMethodDef methods[] = {
    {"launch", FAST(launch), METH_FASTCALL,
     "launch(stream, grid, kernel, args): run a kernel over a grid of blocks where its arrays are"},
    {"launch_threads", FAST(launch_threads), METH_FASTCALL,
     "launch_threads(stream, grid, block, kernel, args): the same with threads per block"},
    {NULL, NULL, 0, NULL}};

int tw_ext_dispatch_add(PyObject *module) {
  dispatcher_type = (PyTypeObject *)PyType_FromSpec(&dispatcher_spec);
  if (!dispatcher_type || PyModule_AddObjectRef(module, "Dispatcher", (PyObject *)dispatcher_type))
    return -1;
  return PyModule_AddFunctions(module, methods);
}
