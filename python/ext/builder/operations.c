/* operations.c - ops: operands, results, regions; constants by a way of their own */
#include "builder.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include <stdlib.h>

static MlirStringRef str(const char *text) { return mlirStringRefCreateFromCString(text); }

void tw_builder_append(tw_py_builder_t *self, MlirOperation op) {
  mlirBlockAppendOwnedOperation(self->top->block, op);
  self->top->last = op;
}

static int read_operands(tw_py_builder_t *self, PyObject *operands, MlirOperationState *state) {
  Py_ssize_t count = tw_sequence_size(operands, "operands");
  for (Py_ssize_t i = 0; i < count; i++) {
    MlirValue value = tw_builder_read_value(self, tw_sequence_item(operands, i));
    if (mlirValueIsNull(value))
      return -1;
    mlirOperationStateAddOperands(state, 1, &value);
  }
  return count < 0 ? -1 : 0;
}

/* None: inferred by the op. */
static int read_results(tw_py_builder_t *self, PyObject *types, MlirOperationState *state) {
  if (types == Py_None) {
    mlirOperationStateEnableResultTypeInference(state);
    return 0;
  }
  Py_ssize_t count = tw_sequence_size(types, "types");
  for (Py_ssize_t i = 0; i < count; i++) {
    MlirType result = tw_builder_read_type(self, tw_sequence_item(types, i));
    if (mlirTypeIsNull(result))
      return -1;
    mlirOperationStateAddResults(state, 1, &result);
  }
  return count < 0 ? -1 : 0;
}

/* Checks the blocks of the regions; they are taken when nothing can fail any more. */
static Py_ssize_t check_regions(tw_py_builder_t *self, PyObject *blocks) {
  Py_ssize_t count = tw_sequence_size(blocks, "regions");
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *block = tw_sequence_item(blocks, i);
    if (block == Py_None)
      continue;
    if (!PyObject_TypeCheck(block, self->state->block) || ((tw_built_t *)block)->builder != self) {
      PyErr_SetString(PyExc_TypeError, "a region must be a block of this builder");
      return -1;
    }
    tw_block_state_t *state = ((tw_block_t *)block)->state;
    if (state->phase != BLOCK_CLOSED || !state->owned) {
      PyErr_SetString(PyExc_ValueError, "a region must be a block that was left, and that no other op has");
      return -1;
    }
    for (Py_ssize_t k = 0; k < i; k++)
      if (tw_sequence_item(blocks, k) == block) {
        PyErr_SetString(PyExc_ValueError, "one block cannot be two regions");
        return -1;
      }
  }
  return count;
}

/* A block per region, None for an empty region. */
static void take_regions(PyObject *blocks, Py_ssize_t count, MlirOperationState *state) {
  for (Py_ssize_t i = 0; i < count; i++) {
    MlirRegion region = mlirRegionCreate();
    PyObject *block = tw_sequence_item(blocks, i);
    if (block != Py_None) {
      mlirRegionAppendOwnedBlock(region, ((tw_block_t *)block)->state->block);
      ((tw_block_t *)block)->state->owned = false;
    }
    mlirOperationStateAddOwnedRegions(state, 1, &region);
  }
}

static PyObject *results_of(tw_py_builder_t *self, MlirOperation op) {
  intptr_t count = mlirOperationGetNumResults(op);
  if (count == 0)
    Py_RETURN_NONE;
  if (count == 1)
    return tw_value_new(self, self->top, mlirOperationGetResult(op, 0));
  PyObject *values = PyTuple_New(count);
  for (intptr_t i = 0; values && i < count; i++) {
    PyObject *value = tw_value_new(self, self->top, mlirOperationGetResult(op, i));
    if (!value || PyTuple_SetItem(values, i, value) < 0)
      Py_CLEAR(values);
  }
  return values;
}

/* op(name, operands, attributes=None, types=None, regions=()) -> Value, tuple of them, or None */
PyObject *tw_builder_op(PyObject *object, PyObject *const *args, Py_ssize_t count) {
  tw_py_builder_t *self = (tw_py_builder_t *)object;
  if (tw_builder_is_finished(self))
    return NULL;
  if (count < 2 || count > 5) {
    PyErr_SetString(PyExc_TypeError, "op(name, operands, attributes=None, types=None, regions=())");
    return NULL;
  }
  Py_ssize_t size;
  const char *name = PyUnicode_AsUTF8AndSize(args[0], &size);
  if (!name)
    return NULL;
  MlirStringRef op_name = {name, (size_t)size};
  if (!mlirContextIsRegisteredOperation(self->context, op_name))
    return PyErr_Format(PyExc_ValueError, "there is no op named '%s'", name);
  PyObject *types = count > 3 ? args[3] : Py_None;
  Py_ssize_t num_regions = check_regions(self, count > 4 ? args[4] : NULL);
  if (num_regions < 0)
    return NULL;
  if (num_regions && types == Py_None)
    return PyErr_Format(PyExc_ValueError, "'%s' has regions: its types must be given", name);
  tw_builder_forget_messages(self);
  MlirOperationState state = mlirOperationStateGet(op_name, self->here);
  if (read_operands(self, args[1], &state) < 0 ||
      tw_builder_read_attributes(self, count > 2 ? args[2] : NULL, &state) < 0 ||
      read_results(self, types, &state) < 0) {
    free(state.results); /* what mlirOperationCreate would have freed */
    free(state.operands);
    free(state.attributes);
    return NULL;
  }
  if (num_regions)
    take_regions(args[4], num_regions, &state);
  MlirOperation op = mlirOperationCreate(&state);
  if (mlirOperationIsNull(op)) {
    self->has_lost_ops |= num_regions > 0;
    return tw_builder_raise(self, "the op refuses its operands");
  }
  tw_builder_append(self, op);
  return results_of(self, op);
}

/* constant(type, number) -> Value: a scalar, or a tile with every element the same. */
static MlirAttribute number_attribute(MlirType type, PyObject *number) {
  MlirAttribute none = {NULL};
  if (mlirTypeIsAFloat(type)) {
    double value = PyFloat_AsDouble(number);
    if (value == -1.0 && PyErr_Occurred())
      return none;
    return mlirFloatAttrDoubleGet(mlirTypeGetContext(type), type, value);
  }
  if (!mlirTypeIsAInteger(type)) {
    PyErr_SetString(PyExc_TypeError, "a constant is an integer or a float");
    return none;
  }
  if (!PyLong_Check(number)) {
    PyErr_SetString(PyExc_TypeError, "a constant of an integer type needs an int");
    return none;
  }
  unsigned long long bits = PyLong_AsUnsignedLongLongMask(number);
  return PyErr_Occurred() ? none : mlirIntegerAttrGet(type, (int64_t)bits);
}

PyObject *tw_builder_constant(PyObject *object, PyObject *const *args, Py_ssize_t count) {
  tw_py_builder_t *self = (tw_py_builder_t *)object;
  if (tw_builder_is_finished(self))
    return NULL;
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "constant(type, number)");
    return NULL;
  }
  MlirType type = tw_builder_read_type(self, args[0]);
  if (mlirTypeIsNull(type))
    return NULL;
  bool tile = mlirTypeIsARankedTensor(type);
  if (tile && !mlirShapedTypeHasStaticShape(type)) {
    PyErr_SetString(PyExc_TypeError, "a constant's type needs a static shape");
    return NULL;
  }
  MlirType element = tile ? mlirShapedTypeGetElementType(type) : type;
  MlirAttribute value = number_attribute(element, args[1]);
  if (mlirAttributeIsNull(value))
    return NULL;
  if (tile)
    value = mlirDenseElementsAttrSplatGet(type, value);
  bool is_unsigned = mlirTypeIsAInteger(element) && mlirIntegerTypeIsUnsigned(element);
  MlirOperationState state = mlirOperationStateGet(str(is_unsigned ? "tile.constant" : "arith.constant"), self->here);
  MlirNamedAttribute named = mlirNamedAttributeGet(mlirIdentifierGet(self->context, str("value")), value);
  mlirOperationStateAddAttributes(&state, 1, &named);
  mlirOperationStateAddResults(&state, 1, &type);
  MlirOperation op = mlirOperationCreate(&state);
  if (mlirOperationIsNull(op))
    return tw_builder_raise(self, "not a constant");
  tw_builder_append(self, op);
  return tw_value_new(self, self->top, mlirOperationGetResult(op, 0));
}
