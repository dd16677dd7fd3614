/* attributes.c - attributes of the IR from Python's values, or by their text */
#include "builder.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

static int read_int32(PyObject *object, int32_t *out) {
  long number = PyLong_AsLong(object);
  if (number == -1 && PyErr_Occurred())
    return -1;
  *out = (int32_t)number;
  if (*out == number)
    return 0;
  PyErr_Format(PyExc_OverflowError, "the integer %R of an attribute has more than 32 bits", object);
  return -1;
}

static MlirAttribute int_array(tw_py_builder_t *self, PyObject *sequence) {
  MlirAttribute none = {NULL};
  int32_t numbers[64];
  Py_ssize_t count = tw_sequence_size(sequence, "an attribute");
  if (count < 0 || count > 64) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_ValueError, "an attribute's list has 64 entries at most");
    return none;
  }
  for (Py_ssize_t i = 0; i < count; i++)
    if (read_int32(tw_sequence_item(sequence, i), &numbers[i]))
      return none;
  return mlirDenseI32ArrayGet(self->context, count, numbers);
}

/* bool: i1; int: i32; float: f64; str: string; list or tuple of int: array<i32>; None: unit; Attribute: itself. */
static MlirAttribute read_attribute(tw_py_builder_t *self, PyObject *object) {
  MlirAttribute none = {NULL};
  if (PyObject_TypeCheck(object, self->state->attribute)) {
    if (((tw_built_t *)object)->builder == self)
      return ((tw_attribute_t *)object)->attribute;
    PyErr_SetString(PyExc_ValueError, "the attribute belongs to another builder");
    return none;
  }
  if (object == Py_None)
    return mlirUnitAttrGet(self->context);
  if (PyBool_Check(object))
    return mlirBoolAttrGet(self->context, object == Py_True);
  if (PyLong_Check(object)) {
    int32_t number;
    return read_int32(object, &number) ? none : mlirIntegerAttrGet(mlirIntegerTypeGet(self->context, 32), number);
  }
  if (PyFloat_Check(object))
    return mlirFloatAttrDoubleGet(self->context, mlirF64TypeGet(self->context), PyFloat_AsDouble(object));
  if (PyUnicode_Check(object)) {
    Py_ssize_t size;
    const char *data = PyUnicode_AsUTF8AndSize(object, &size);
    return data ? mlirStringAttrGet(self->context, (MlirStringRef){data, (size_t)size}) : none;
  }
  return int_array(self, object);
}

/* attribute(text) -> Attribute: any attribute, as it is written in the IR. */
PyObject *tw_builder_attribute(PyObject *object, PyObject *text) {
  tw_py_builder_t *self = (tw_py_builder_t *)object;
  Py_ssize_t size;
  const char *data = tw_builder_is_finished(self) ? NULL : PyUnicode_AsUTF8AndSize(text, &size);
  if (!data)
    return NULL;
  tw_builder_forget_messages(self);
  MlirAttribute attribute = mlirAttributeParseGet(self->context, (MlirStringRef){data, (size_t)size});
  if (mlirAttributeIsNull(attribute))
    return tw_builder_raise(self, "not an attribute");
  tw_attribute_t *result = tw_built_new(self->state->attribute, self);
  if (result)
    result->attribute = attribute;
  return (PyObject *)result;
}

int tw_builder_read_attributes(tw_py_builder_t *self, PyObject *dict, MlirOperationState *state) {
  if (!dict || dict == Py_None)
    return 0;
  if (!PyDict_Check(dict)) {
    PyErr_SetString(PyExc_TypeError, "attributes must be a dict");
    return -1;
  }
  PyObject *key, *object;
  Py_ssize_t at = 0;
  while (PyDict_Next(dict, &at, &key, &object)) {
    Py_ssize_t size;
    const char *name = PyUnicode_AsUTF8AndSize(key, &size);
    MlirAttribute value = name ? read_attribute(self, object) : (MlirAttribute){NULL};
    if (mlirAttributeIsNull(value))
      return -1;
    MlirNamedAttribute named =
        mlirNamedAttributeGet(mlirIdentifierGet(self->context, (MlirStringRef){name, (size_t)size}), value);
    mlirOperationStateAddAttributes(state, 1, &named);
  }
  return 0;
}

/* set(name, value): an attribute of the module. */
PyObject *tw_builder_set(PyObject *object, PyObject *args) {
  tw_py_builder_t *self = (tw_py_builder_t *)object;
  const char *name;
  PyObject *value;
  if (tw_builder_is_finished(self) || !PyArg_ParseTuple(args, "sO", &name, &value))
    return NULL;
  MlirAttribute attribute = read_attribute(self, value);
  if (mlirAttributeIsNull(attribute))
    return NULL;
  mlirOperationSetDiscardableAttributeByName(mlirModuleGetOperation(self->module), mlirStringRefCreateFromCString(name),
                                             attribute);
  Py_RETURN_NONE;
}

static PyType_Slot attribute_slots[] = {
    {Py_tp_dealloc, tw_built_dealloc},
    {0, NULL},
};

static PyType_Spec attribute_spec = {"tilewright._core.Attribute", sizeof(tw_attribute_t), 0,
                                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, attribute_slots};

int tw_attribute_add(PyObject *module) {
  return tw_ext_add_type(module, &attribute_spec, &tw_state_of(module)->attribute);
}
