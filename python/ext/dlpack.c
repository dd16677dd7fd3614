/* dlpack.c - arrays by DLPack: the C exchange API, and capsules, versioned or not
 *
 * A type with the exchange API (torch's Tensor) fills a tensor in one C call of 20 to 40 ns, without owning anything.
 * Any other object is asked for a capsule, with the stream on which the kernel will run. */
#include "import.h"

#include <string.h>

/* === the C exchange API =========================================================================================== */

static bool has_name(PyTypeObject *type, const char *module, const char *name) {
  PyObject *own_module = PyObject_GetAttrString((PyObject *)type, "__module__"), *own_name = PyType_GetName(type);
  bool same = own_module && own_name && PyUnicode_Check(own_module) &&
              !PyUnicode_CompareWithASCIIString(own_module, module) &&
              !PyUnicode_CompareWithASCIIString(own_name, name);
  Py_XDECREF(own_module);
  Py_XDECREF(own_name);
  PyErr_Clear();
  return same;
}

/* A subclass inherits the attribute, but may stand for other memory than its base describes (a wrapper that overrides
 * dispatch): only the class that defines it is trusted, and torch's own two, wherever torch defines it. */
static bool is_trusted(PyTypeObject *type) {
  PyObject *members = PyObject_GetAttrString((PyObject *)type, "__dict__");
  PyObject *own = members ? PyMapping_GetItemString(members, "__dlpack_c_exchange_api__") : NULL;
  Py_XDECREF(members);
  PyErr_Clear();
  Py_XDECREF(own);
  return own || has_name(type, "torch", "Tensor") || has_name(type, "torch.nn.parameter", "Parameter");
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

/* Where a new type goes; NULL: nowhere. */
static tw_known_type_t *place_for(tw_state_t *state, const tw_dl_exchange_t *exchange) {
  if (exchange && !state->exchange.type)
    return &state->exchange;
#ifdef TW_FREE_THREADED /* no type makes room for another, and two threads may have found the same */
  return state->next_known < TW_KNOWN_TYPES ? &state->known[state->next_known++] : NULL;
#else
  return &state->known[state->next_known++ % TW_KNOWN_TYPES];
#endif
}

static void remember_type(tw_state_t *state, PyTypeObject *type, const tw_dl_exchange_t *exchange) {
  PyTypeObject *old = NULL;
  TW_LOCK(state);
  tw_known_type_t *place = place_for(state, exchange);
  if (place) {
    old = place->type;
    place->exchange = exchange;
    TW_PUBLISH(place->type, (PyTypeObject *)Py_NewRef((PyObject *)type));
  }
  TW_UNLOCK(state);
  Py_XDECREF((PyObject *)old);
}

const tw_dl_exchange_t *tw_ext_exchange_find(tw_state_t *state, PyTypeObject *type) {
  for (int i = 0; i < TW_KNOWN_TYPES; i++)
    if (TW_PUBLISHED(state->known[i].type) == type)
      return state->known[i].exchange;
  const tw_dl_exchange_t *exchange = find_exchange(type);
  remember_type(state, type, exchange);
  return exchange;
}

/* The producer may have left no exception, against the protocol. */
int tw_ext_exchange_failed(void) {
  if (!PyErr_Occurred())
    return tw_ext_fail(TW_TYPE_ERROR, "its library could not describe it through DLPack");
  tw_ext_error_from_pending(TW_TYPE_ERROR, "its library could not describe it through DLPack");
  return -1;
}

TW_HOT int tw_ext_exchange_stream(const tw_dl_exchange_t *exchange, int device_id, tw_stream_t *stream) {
  if (exchange->current_work_stream && exchange->current_work_stream(TW_DL_CUDA, device_id, &stream->handle))
    return tw_ext_exchange_failed();
  stream->decided = true;
  return 0;
}

/* For producers that must be told the stream: the one that an array with the exchange API works on,
 * else the legacy default stream. */
static int scan_for_stream(tw_reader_t *reader, int device_id) {
  tw_stream_t *stream = &reader->stream;
  Py_ssize_t count = stream->scan ? PyTuple_Size(stream->scan) : 0;
  for (Py_ssize_t i = 0; i < count && !stream->decided; i++) {
    const tw_dl_exchange_t *exchange = tw_ext_exchange_of(reader->state, Py_TYPE(PyTuple_GetItem(stream->scan, i)));
    if (exchange && exchange->current_work_stream && tw_ext_exchange_stream(exchange, device_id, stream))
      return -1;
  }
  stream->decided = true;
  return 0;
}

/* === capsules ===================================================================================================== */

static int read_tensor(const tw_dl_tensor_t *tensor, unsigned flags, tw_array_t *out) {
  tw_status_t status = tw_array_from_dlpack(tensor, flags, out);
  return status ? tw_ext_fail_status(status) : 0;
}

static int read_versioned(const tw_dl_managed_versioned_t *managed, tw_array_t *out) {
  if (managed->version.major != 1) {
    tw_ext_error(TW_TYPE_ERROR, "it speaks DLPack %u.%u; version 1 is known", managed->version.major,
                 managed->version.minor);
    return -1;
  }
  if (managed->flags & TW_DL_SUBBYTE_PADDED)
    return tw_ext_fail(TW_TYPE_ERROR, "its elements are smaller than a byte and padded; pack them");
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
  return tw_ext_fail(TW_TYPE_ERROR, "its __dlpack__ did not return a fresh DLPack capsule");
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
static PyObject *dlpack_stream(PyObject *object, tw_reader_t *reader) {
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
  if (!reader->stream.decided && scan_for_stream(reader, ordinal))
    return NULL;
  return PyLong_FromVoidPtr(reader->stream.handle ? reader->stream.handle : (void *)1);
}

/* What DLPack cannot express (a dtype, read-only memory) the CUDA Array Interface may. */
static int dlpack_refused(PyObject *object, tw_reader_t *reader, tw_array_t *out) {
  PyObject *type, *value, *trace, *interface;
  PyErr_Fetch(&type, &value, &trace);
  int failed = tw_ext_optional_attr(object, "__cuda_array_interface__", &interface);
  if (failed || !interface) {
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
    tw_ext_error_from_pending(TW_TYPE_ERROR, "its __dlpack__ refused");
    return -1;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  failed = tw_ext_read_cuda_interface(object, interface, &reader->stream, out);
  return tw_ext_hold_owner(&reader->holds, object, interface) ? -1 : failed;
}

int tw_ext_read_dlpack(PyObject *object, PyObject *method, tw_reader_t *reader, tw_array_t *out) {
  PyObject *where = dlpack_stream(object, reader);
  PyObject *capsule = where ? call_dlpack(method, where) : NULL;
  Py_XDECREF(where);
  if (!capsule)
    return dlpack_refused(object, reader, out);
  if (tw_ext_hold_object(&reader->holds, capsule))
    return -1;
  return read_capsule(capsule, out);
}

/* === reading by the exchange API ================================================================================== */

/* The first GPU array decides the stream, if the caller gave none. */
static int follow_stream(const tw_dl_exchange_t *exchange, const tw_array_t *array, tw_stream_t *stream) {
  bool decides = array->device_kind == TW_DEVICE_CUDA && !stream->decided;
  return decides ? tw_ext_exchange_stream(exchange, array->device_id, stream) : 0;
}

int tw_ext_read_exchanged(const tw_dl_exchange_t *exchange, const tw_dl_tensor_t *tensor, tw_stream_t *stream,
                          tw_array_t *out) {
  return read_tensor(tensor, 0, out) ? -1 : follow_stream(exchange, out, stream);
}

int tw_ext_read_exchange(const tw_dl_exchange_t *exchange, PyObject *object, tw_reader_t *reader, tw_array_t *out) {
  if (exchange->tensor_from_object) {
    tw_dl_tensor_t tensor; /* shape and strides point into the object */
    if (exchange->tensor_from_object(object, &tensor))
      return tw_ext_exchange_failed();
    return tw_ext_read_exchanged(exchange, &tensor, &reader->stream, out);
  }
  tw_hold_t *hold = tw_ext_hold_new(&reader->holds);
  if (!hold)
    return -1;
  if (exchange->managed_from_object(object, &hold->managed))
    return tw_ext_exchange_failed();
  return read_versioned(hold->managed, out) ? -1 : follow_stream(exchange, out, &reader->stream);
}
