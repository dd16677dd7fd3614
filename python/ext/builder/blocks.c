/* blocks.c - blocks and values: which block is open, and which values can be seen from there */
#include "builder.h"

#include <stdlib.h>

PyObject *tw_value_new(tw_py_builder_t *self, tw_block_state_t *state, MlirValue value) {
  tw_value_t *object = tw_built_new(self->state->value, self);
  if (object) {
    object->state = state;
    object->value = value;
  }
  return (PyObject *)object;
}

MlirValue tw_builder_read_value(tw_py_builder_t *self, PyObject *object) {
  MlirValue none = {NULL};
  if (!PyObject_TypeCheck(object, self->state->value)) {
    PyErr_Format(PyExc_TypeError, "an operand must be a Value, not %R", object);
    return none;
  }
  tw_value_t *value = (tw_value_t *)object;
  if (value->base.builder != self) {
    PyErr_SetString(PyExc_ValueError, "the value belongs to another builder");
    return none;
  }
  if (value->state->phase != BLOCK_OPEN) {
    PyErr_SetString(PyExc_ValueError, "the value's block is not open: it cannot be seen from here");
    return none;
  }
  return value->value;
}

static PyObject *value_fact(PyObject *object, void *which) {
  tw_value_t *self = (tw_value_t *)object;
  if (tw_builder_is_finished(self->base.builder))
    return NULL;
  PyObject *facts = tw_builder_type_facts(self->base.builder, mlirValueGetType(self->value));
  return facts ? Py_NewRef(PyTuple_GetItem(facts, (Py_ssize_t)(intptr_t)which)) : NULL;
}

static PyObject *value_repr(PyObject *object) {
  tw_value_t *self = (tw_value_t *)object;
  if (tw_builder_is_finished(self->base.builder)) {
    PyErr_Clear();
    return PyUnicode_FromString("<Value of a finished builder>");
  }
  PyObject *facts = tw_builder_type_facts(self->base.builder, mlirValueGetType(self->value));
  return facts ? PyUnicode_FromFormat("<Value %U>", PyTuple_GetItem(facts, 0)) : NULL;
}

tw_block_state_t *tw_block_state_new(tw_py_builder_t *self, MlirBlock block, bool owned) {
  tw_block_state_t *state = calloc(1, sizeof *state);
  if (!state) {
    PyErr_NoMemory();
    return NULL;
  }
  state->block = block;
  state->owned = owned;
  state->next = self->blocks;
  self->blocks = state;
  return state;
}

/* block(types=()) -> Block: an empty block with arguments of these types. */
PyObject *tw_builder_block(PyObject *object, PyObject *args) {
  tw_py_builder_t *self = (tw_py_builder_t *)object;
  PyObject *types = NULL;
  if (tw_builder_is_finished(self) || !PyArg_ParseTuple(args, "|O", &types))
    return NULL;
  Py_ssize_t count = tw_sequence_size(types, "types");
  if (count < 0)
    return NULL;
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  tw_block_t *result = NULL;
  for (Py_ssize_t i = 0; i < count; i++) {
    MlirType type = tw_builder_read_type(self, tw_sequence_item(types, i));
    if (mlirTypeIsNull(type))
      goto fail;
    mlirBlockAddArgument(block, type, self->here);
  }
  result = tw_built_new(self->state->block, self);
  if (!result || !(result->state = tw_block_state_new(self, block, true)))
    goto fail;
  return (PyObject *)result;
fail:
  mlirBlockDestroy(block);
  Py_XDECREF((PyObject *)result);
  return NULL;
}

static PyObject *block_args(PyObject *object, void *unused) {
  (void)unused;
  tw_block_t *self = (tw_block_t *)object;
  if (tw_builder_is_finished(self->base.builder))
    return NULL;
  intptr_t count = mlirBlockGetNumArguments(self->state->block);
  PyObject *values = PyTuple_New(count);
  for (intptr_t i = 0; values && i < count; i++) {
    PyObject *value = tw_value_new(self->base.builder, self->state, mlirBlockGetArgument(self->state->block, i));
    if (!value || PyTuple_SetItem(values, i, value) < 0)
      Py_CLEAR(values);
  }
  return values;
}

/* To the front of the list: see the head of builder.c. */
static void move_to_front(tw_py_builder_t *self, tw_block_state_t *state) {
  for (tw_block_state_t **at = &self->blocks; *at; at = &(*at)->next)
    if (*at == state) {
      *at = state->next;
      break;
    }
  state->next = self->blocks;
  self->blocks = state;
}

/* enter(block): ops go there until leave(). A block may be entered again where it was entered first. */
PyObject *tw_builder_enter(PyObject *object, PyObject *block) {
  tw_py_builder_t *self = (tw_py_builder_t *)object;
  if (tw_builder_is_finished(self))
    return NULL;
  if (!PyObject_TypeCheck(block, self->state->block) || ((tw_built_t *)block)->builder != self) {
    PyErr_SetString(PyExc_TypeError, "enter needs a block of this builder");
    return NULL;
  }
  tw_block_state_t *state = ((tw_block_t *)block)->state;
  bool again = state->phase == BLOCK_CLOSED && state->owned && state->outer == self->top;
  if (state->phase != BLOCK_NEW && !again) {
    PyErr_SetString(PyExc_ValueError, "the block is open, taken by an op, or was entered elsewhere");
    return NULL;
  }
  if (state->phase == BLOCK_NEW)
    move_to_front(self, state);
  state->phase = BLOCK_OPEN;
  state->outer = self->top;
  self->top = state;
  Py_RETURN_NONE;
}

PyObject *tw_builder_leave(PyObject *object, PyObject *unused) {
  (void)unused;
  tw_py_builder_t *self = (tw_py_builder_t *)object;
  if (tw_builder_is_finished(self))
    return NULL;
  if (!self->top->outer) {
    PyErr_SetString(PyExc_ValueError, "no block is open");
    return NULL;
  }
  self->top->phase = BLOCK_CLOSED;
  self->top = self->top->outer;
  Py_RETURN_NONE;
}

void tw_builder_destroy_blocks(tw_py_builder_t *self) {
  for (tw_block_state_t *state = self->blocks; state; state = state->next)
    if (state->owned) {
      mlirBlockDestroy(state->block);
      state->owned = false;
    }
}

/* --- Types --------------------------------------------------------------------------------------- */

static PyGetSetDef value_properties[] = {
    {"type", value_fact, NULL, "the type, as text", (void *)0},
    {"shape", value_fact, NULL, "the extents (-1: dynamic); None for a scalar", (void *)1},
    {"element", value_fact, NULL, "the element type, as text", (void *)2},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyGetSetDef block_properties[] = {
    {"args", block_args, NULL, "its arguments", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot value_slots[] = {
    {Py_tp_dealloc, tw_built_dealloc},
    {Py_tp_getset, value_properties},
    {Py_tp_repr, value_repr},
    {Py_tp_doc, "A value of the IR."},
    {0, NULL},
};
static PyType_Slot block_slots[] = {
    {Py_tp_dealloc, tw_built_dealloc},
    {Py_tp_getset, block_properties},
    {Py_tp_doc, "A block of the IR."},
    {0, NULL},
};

static PyType_Spec value_spec = {"tilewright._core.Value", sizeof(tw_value_t), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, value_slots};
static PyType_Spec block_spec = {"tilewright._core.Block", sizeof(tw_block_t), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, block_slots};

int tw_block_add(PyObject *module) {
  tw_state_t *state = tw_state_of(module);
  return tw_ext_add_type(module, &block_spec, &state->block) || tw_ext_add_type(module, &value_spec, &state->value) ? -1
                                                                                                                    : 0;
}
