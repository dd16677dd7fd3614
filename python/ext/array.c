/* array.c - arrays of any library as tw_array_t, by the quickest protocol that the object has
 *
 *   type with the DLPack C exchange API (torch)    a C call that fills a tensor: 20 to 40 ns
 *   NumPy array                                    buffer protocol; __array_interface__ for dtypes
 *                                                  that buffers cannot express (bfloat16, float8)
 *   __dlpack__ (CuPy, JAX, older torch)            capsule, versioned or not
 *   __cuda_array_interface__ (Numba, ...)          versions 0 to 3
 *   buffer protocol                                memoryview, array.array
 *
 * The protocols are in dlpack.c and interface.c, the stream argument in stream.c. A reader that fails raises a message
 * that speaks of "it"; the launch puts the argument's name before it. Nothing is copied, with one exception that
 * float4.c explains. */
#include "import.h"

#include <stdlib.h>
#include <string.h>

/* === small helpers ================================================================================================ */

int tw_ext_fail_status(tw_status_t status) {
  tw_ext_raise(status, NULL);
  return -1;
}

int tw_ext_fail(tw_code_t code, const char *text) {
  tw_ext_error(code, "%s", text);
  return -1;
}

/* getattr that turns AttributeError into *out == NULL; -1 for other exceptions. */
int tw_ext_optional_attr(PyObject *object, const char *name, PyObject **out) {
  *out = PyObject_GetAttrString(object, name);
  if (*out || !PyErr_ExceptionMatches(PyExc_AttributeError))
    return *out ? 0 : -1;
  PyErr_Clear();
  return 0;
}

tw_hold_t *tw_ext_hold_new(tw_hold_t **holds) {
  tw_hold_t *hold = calloc(1, sizeof *hold);
  if (!hold) {
    PyErr_NoMemory();
    return NULL;
  }
  hold->next = *holds;
  return *holds = hold;
}

/* Keeps a reference (taken) until the launch is over. */
int tw_ext_hold_object(tw_hold_t **holds, PyObject *object_owned) {
  tw_hold_t *hold = tw_ext_hold_new(holds);
  if (!hold) {
    Py_DECREF(object_owned);
    return -1;
  }
  hold->object = object_owned;
  return 0;
}

int tw_ext_hold_owner(tw_hold_t **holds, PyObject *owner, PyObject *interface_owned) {
  if (tw_ext_hold_object(holds, interface_owned) || tw_ext_hold_object(holds, Py_NewRef(owner)))
    return -1;
  (*holds)->until_done = true;
  return 0;
}

/* === NumPy, without importing it ================================================================================== */

/* numpy.<name> if NumPy is loaded; borrowed, kept in the module's state once found. */
static PyObject *numpy_class(const char *name, PyObject **kept) {
  PyObject *found = TW_PUBLISHED(*kept);
  if (found)
    return found;
  PyObject *module = PyUnicode_FromString("numpy"), *numpy = module ? PyImport_GetModule(module) : NULL;
  found = tw_publish(kept, numpy ? PyObject_GetAttrString(numpy, name) : NULL);
  if (!found)
    PyErr_Clear();
  Py_XDECREF(numpy);
  Py_XDECREF(module);
  return found;
}

static bool is_instance(PyObject *object, PyObject *class) {
  int answer = class ? PyObject_IsInstance(object, class) : 0;
  if (answer < 0)
    PyErr_Clear();
  return answer > 0;
}

static bool is_numpy_array(tw_state_t *state, PyObject *object) {
  return is_instance(object, numpy_class("ndarray", &state->ndarray));
}

/* Of a subclass whose elements may be missing: numpy.ma. */
static bool is_masked(const tw_state_t *state, PyObject *object) {
  if ((PyObject *)Py_TYPE(object) == TW_PUBLISHED(state->ndarray))
    return false;
  PyObject *filled;
  bool found = !tw_ext_optional_attr(object, "fill_value", &filled) && filled;
  PyErr_Clear();
  Py_XDECREF(filled);
  return found;
}

static int read_numpy(PyObject *object, tw_reader_t *reader, tw_array_t *out) {
  if (is_masked(reader->state, object))
    return tw_ext_fail(TW_UNIMPLEMENTED,
                       "it is a masked array, which is not supported; pass data and mask as two arrays");
  return tw_ext_read_numpy(object, out, &reader->holds);
}

bool tw_ext_is_numpy_scalar(tw_state_t *state, PyObject *object) {
  return is_instance(object, numpy_class("generic", &state->generic));
}

/* === ArrayView: an array under another dtype ====================================================================== */

typedef struct view_object {
  PyObject ob_base;
  PyObject *array; /* owned */
  tw_dtype_t dtype;
} view_object_t;

static PyObject *view_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  static char *names[] = {"array", "dtype", NULL};
  PyObject *array, *dtype;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO:ArrayView", names, &array, &dtype))
    return NULL;
  PyObject *text = PyObject_Str(dtype); /* a DType prints as its name */
  const char *name = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  tw_dtype_t code = name ? tw_dtype_from_name(name) : TW_DTYPE_NONE;
  Py_XDECREF(text);
  if (code == TW_DTYPE_NONE || code >= TW_DTYPE_COMPLEX64)
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

static int read_view(PyObject *object, tw_reader_t *reader, tw_array_t *out) {
  view_object_t *view = (view_object_t *)object;
  if (!view->array || Py_TYPE(view->array) == reader->state->array_view)
    return tw_ext_fail(TW_TYPE_ERROR, "it is a view of a view");
  if (tw_ext_array_read(view->array, reader, out))
    return -1;
  tw_status_t status = tw_array_view_as(out, view->dtype);
  return status ? tw_ext_fail_status(status) : 0;
}

/* === the order of the protocols =================================================================================== */

static int read_slowly(PyObject *object, tw_reader_t *reader, tw_array_t *out) {
  if (Py_TYPE(object) == reader->state->array_view)
    return read_view(object, reader, out);
  if (tw_ext_is_device_array(reader->state, object))
    return tw_ext_read_device_array(object, reader, out);
  if (is_numpy_array(reader->state, object))
    return read_numpy(object, reader, out);
  PyObject *found;
  if (tw_ext_optional_attr(object, "__dlpack__", &found))
    return -1;
  if (found) {
    int failed = tw_ext_read_dlpack(object, found, reader, out);
    Py_DECREF(found);
    return failed;
  }
  if (tw_ext_optional_attr(object, "__cuda_array_interface__", &found))
    return -1;
  if (found) {
    int failed = tw_ext_read_cuda_interface(object, found, &reader->stream, out);
    return tw_ext_hold_owner(&reader->holds, object, found) ? -1 : failed;
  }
  return tw_ext_read_buffer(object, out, &reader->holds);
}

int tw_ext_array_read(PyObject *object, tw_reader_t *reader, tw_array_t *out) {
  const tw_dl_exchange_t *exchange = tw_ext_exchange_of(reader->state, Py_TYPE(object));
  if (TW_LIKELY(exchange != NULL))
    return tw_ext_read_exchange(exchange, object, reader, out);
  return read_slowly(object, reader, out);
}

bool tw_ext_is_array(tw_state_t *state, PyObject *object) {
  if (Py_TYPE(object) == state->array_view || tw_ext_is_device_array(state, object) ||
      tw_ext_exchange_of(state, Py_TYPE(object)) || is_numpy_array(state, object))
    return true;
  if (PyType_Check(object)) /* a class has its instances' methods */
    return false;
  static const char *const names[] = {"__dlpack__", "__cuda_array_interface__"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    PyObject *found;
    bool raised = tw_ext_optional_attr(object, names[i], &found) != 0; /* which reading it tells */
    PyErr_Clear();
    Py_XDECREF(found);
    if (found || raised)
      return true;
  }
  return PyObject_CheckBuffer(object) && !PyBytes_Check(object) && !tw_ext_is_numpy_scalar(state, object);
}

static void release_one(tw_hold_t *hold) {
  if (hold->managed && hold->managed->deleter)
    hold->managed->deleter(hold->managed);
  if (hold->buffer.obj)
    PyBuffer_Release(&hold->buffer);
  if (hold->packed)
    tw_ext_unpack_float4(hold->packed);
  Py_XDECREF(hold->object);
  free(hold);
}

TW_HOT void tw_hold_release(tw_hold_t *holds) {
  if (TW_LIKELY(!holds))
    return;
  PyObject *type, *value, *trace; /* deleters may run Python code: not with an exception pending */
  PyErr_Fetch(&type, &value, &trace);
  while (holds) {
    tw_hold_t *next = holds->next;
    release_one(holds);
    holds = next;
  }
  PyErr_Restore(type, value, trace);
}

/* === for Python =================================================================================================== */

static PyObject *description(const tw_array_t *found) {
  const tw_array_t array = *found;
  return Py_BuildValue("{sKsssNsNsssisOsO}", "data", (unsigned long long)(uintptr_t)array.data, "dtype",
                       tw_dtype_name(array.dtype), "shape", tw_ext_integers(array.shape, array.rank), "strides",
                       tw_ext_integers(array.strides, array.rank), "device",
                       array.device_kind == TW_DEVICE_CPU ? "cpu" : "cuda", "device_id", array.device_id, "read_only",
                       array.flags & TW_ARRAY_READ_ONLY ? Py_True : Py_False, "overlaps",
                       array.flags & TW_ARRAY_SELF_OVERLAP ? Py_True : Py_False);
}

/* describe_array(object) -> dict: what a kernel would see of it. */
static PyObject *describe_array(PyObject *module, PyObject *object) {
  tw_reader_t reader = {.state = tw_state_of(module)};
  tw_array_t array = {0};
  int failed = tw_ext_array_read(object, &reader, &array);
  if (!failed && array.flags & TW_ARRAY_LONG)
    failed = tw_ext_fail_status(tw_array_check_extents(&array));
  PyObject *result = failed ? NULL : description(&array);
  tw_hold_release(reader.holds);
  return result;
}

/* describe_interface(dict) -> dict: the same of a __cuda_array_interface__ alone. */
static PyObject *describe_interface(PyObject *module, PyObject *interface) {
  (void)module;
  tw_stream_t stream = {0};
  tw_array_t array = {0};
  return tw_ext_read_cuda_description(interface, &stream, &array) ? NULL : description(&array);
}

static PyMethodDef array_methods[] = {
    {"describe_array", describe_array, METH_O,
     "describe_array(array) -> dict: data, dtype, shape, strides (elements), device, flags"},
    {"describe_interface", describe_interface, METH_O,
     "describe_interface(dict) -> the same of a CUDA Array Interface"},
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
  if (tw_ext_add_type(module, &view_spec, &tw_state_of(module)->array_view))
    return -1;
  return PyModule_AddFunctions(module, array_methods);
}
