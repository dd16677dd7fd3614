/* quiet.c - `Quiet`: calls a function of Python, and shows an error to `on_error` before its caller sees it
 *
 * A function of Python stands in the traceback of each error that goes through it. This one does not, so that what
 * launches a kernel can leave its own frames out (python/tilewright/quiet.py). */
#include "ext.h"
#include "lock.h"

typedef struct {
  PyObject_HEAD PyObject *function; /* owned, published (lock.h) behind … */
  PyObject *on_error;               /* owned */
} quiet_t;

static int quiet_init(PyObject *object, PyObject *arguments, PyObject *keywords) {
  quiet_t *self = (quiet_t *)object;
  static char *names[] = {"function", "on_error", NULL};
  PyObject *function, *on_error;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO:Quiet", names, &function, &on_error))
    return -1;
  tw_publish(&self->on_error, Py_NewRef(on_error));
  if (tw_publish(&self->function, Py_NewRef(function)) == function)
    return 0;
  PyErr_SetString(PyExc_RuntimeError, "a Quiet is initialized once");
  return -1;
}

/* The pending error as `on_error` leaves it; if that fails, as it was. */
static void show(PyObject *on_error) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace)
    PyException_SetTraceback(value, trace);
  PyObject *done = PyObject_CallFunctionObjArgs(on_error, value, NULL);
  if (done) {
    Py_XDECREF(trace);
    trace = PyException_GetTraceback(value);
    Py_DECREF(done);
  } else {
    PyErr_Clear();
  }
  PyErr_Restore(type, value, trace);
}

static PyObject *quiet_call(PyObject *object, PyObject *arguments, PyObject *keywords) {
  quiet_t *self = (quiet_t *)object;
  if (!TW_PUBLISHED(self->function)) {
    PyErr_SetString(PyExc_RuntimeError, "a Quiet that was not initialized is called");
    return NULL;
  }
  PyObject *result = PyObject_Call(self->function, arguments, keywords);
  if (!result && PyErr_ExceptionMatches(PyExc_Exception))
    show(self->on_error);
  return result;
}

static int quiet_traverse(PyObject *object, visitproc visit, void *arg) {
  quiet_t *self = (quiet_t *)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->function);
  Py_VISIT(self->on_error);
  return 0;
}

static int quiet_clear(PyObject *object) {
  quiet_t *self = (quiet_t *)object;
  Py_CLEAR(self->function);
  Py_CLEAR(self->on_error);
  return 0;
}

static void quiet_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  quiet_clear(object);
  PyObject_GC_Del(object);
  Py_DECREF(type);
}

static PyType_Slot quiet_slots[] = {
    {Py_tp_init, quiet_init},
    {Py_tp_call, quiet_call},
    {Py_tp_traverse, quiet_traverse},
    {Py_tp_clear, quiet_clear},
    {Py_tp_dealloc, quiet_dealloc},
    {Py_tp_doc, "Quiet(function, on_error)\n--\n\nCalls a function, without a frame of its own in the traceback of an "
                "error: `on_error(error)` sees that\nbefore the caller does."},
    {0, NULL},
};

static PyType_Spec quiet_spec = {"tilewright._core.Quiet", sizeof(quiet_t), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, quiet_slots};

int tw_ext_add_quiet(PyObject *module) {
  PyTypeObject *type = NULL;
  int result = tw_ext_add_type(module, &quiet_spec, &type);
  Py_XDECREF((PyObject *)type);
  return result;
}
