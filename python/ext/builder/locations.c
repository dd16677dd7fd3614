/* locations.c - where the next ops come from: a range of a file, and the calls that lead there */
#include "builder.h"

#include "mlir-c/BuiltinAttributes.h"

/* In a function that is called, with its name: line tables say what is inlined (lowering/gpu/line_info.c). */
static void set_here(tw_py_builder_t *self, MlirLocation at) {
  if (self->in_call && !mlirAttributeIsNull(self->function))
    at = mlirLocationNameGet(self->context, mlirStringAttrGetValue(self->function), at);
  self->here = self->in_call ? mlirLocationCallSiteGet(at, self->caller) : at;
}

PyObject *tw_builder_file(PyObject *object, PyObject *args) {
  tw_py_builder_t *self = (tw_py_builder_t *)object;
  const char *path, *function = NULL;
  Py_ssize_t size, length = 0;
  if (tw_builder_is_finished(self) || !PyArg_ParseTuple(args, "s#|z#:file", &path, &size, &function, &length))
    return NULL;
  self->file = mlirStringAttrGet(self->context, (MlirStringRef){path, (size_t)size});
  self->function =
      function ? mlirStringAttrGet(self->context, (MlirStringRef){function, (size_t)length}) : mlirAttributeGetNull();
  Py_RETURN_NONE;
}

PyObject *tw_builder_at(PyObject *object, PyObject *const *args, Py_ssize_t count) {
  tw_py_builder_t *self = (tw_py_builder_t *)object;
  if (tw_builder_is_finished(self))
    return NULL;
  unsigned place[4];
  if (count != 4) {
    PyErr_SetString(PyExc_TypeError, "at(line, column, end_line, end_column)");
    return NULL;
  }
  for (int i = 0; i < 4; i++) {
    unsigned long number = PyLong_AsUnsignedLong(args[i]);
    if (number == (unsigned long)-1 && PyErr_Occurred())
      return NULL;
    place[i] = (unsigned)number;
  }
  set_here(self, mlirLocationFileLineColRangeGet(self->context, mlirStringAttrGetValue(self->file), place[0], place[1],
                                                 place[2], place[3]));
  Py_RETURN_NONE;
}

/* call() -> Location: what at() says from now on happens in a function called from here. */
PyObject *tw_builder_call(PyObject *object, PyObject *unused) {
  (void)unused;
  tw_py_builder_t *self = (tw_py_builder_t *)object;
  tw_location_t *outer = tw_builder_is_finished(self) ? NULL : tw_built_new(self->state->location, self);
  if (!outer)
    return NULL;
  outer->location = self->in_call ? self->caller : (MlirLocation){NULL};
  self->caller = self->here;
  self->in_call = true;
  return (PyObject *)outer;
}

/* end_call(location): undoes the call() that gave the location. */
PyObject *tw_builder_end_call(PyObject *object, PyObject *outer) {
  tw_py_builder_t *self = (tw_py_builder_t *)object;
  if (tw_builder_is_finished(self))
    return NULL;
  if (!PyObject_TypeCheck(outer, self->state->location) || ((tw_built_t *)outer)->builder != self) {
    PyErr_SetString(PyExc_TypeError, "end_call needs what call() of this builder gave");
    return NULL;
  }
  if (self->in_call)
    self->here = self->caller;
  self->caller = ((tw_location_t *)outer)->location;
  self->in_call = !mlirLocationIsNull(self->caller);
  Py_RETURN_NONE;
}

/* What tile of the program an op computes: the first name stays. */
static void name_op(const tw_py_builder_t *self, MlirOperation op, MlirStringRef name) {
  MlirLocation at = mlirOperationGetLocation(op);
  if (mlirOperationGetNumResults(op) == 1 && !mlirLocationIsAName(at))
    mlirOperationSetLocation(op, mlirLocationNameGet(self->context, name, at));
}

/* name(value, text): what the program calls a value, in the location of its op: loc("%acc"(...)). */
PyObject *tw_builder_name(PyObject *object, PyObject *args) {
  tw_py_builder_t *self = (tw_py_builder_t *)object;
  PyObject *value;
  const char *text;
  if (tw_builder_is_finished(self) || !PyArg_ParseTuple(args, "O!s:name", self->state->value, &value, &text))
    return NULL;
  MlirValue named = ((tw_value_t *)value)->value;
  tw_strbuf_t label = {0};
  tw_strbuf_printf(&label, "%%%s", text);
  if (mlirValueIsAOpResult(named))
    name_op(self, mlirOpResultGetOwner(named), (MlirStringRef){tw_strbuf_cstr(&label), label.size});
  tw_strbuf_free(&label);
  Py_RETURN_NONE;
}

static PyType_Slot location_slots[] = {
    {Py_tp_dealloc, tw_built_dealloc},
    {0, NULL},
};

static PyType_Spec location_spec = {"tilewright._core.Location", sizeof(tw_location_t), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, location_slots};

int tw_location_add(PyObject *module) {
  return tw_ext_add_type(module, &location_spec, &tw_state_of(module)->location);
}
