/* builder.c - `_core.Builder`: tile IR built op by op from Python
 *
 * The front end opens blocks, appends ops to the innermost one, and hands finished blocks to the op whose region
 * they become; so a loop's body is written before its op, when the types of its results are known.  The base of
 * the stack is the body of the module.
 *
 *   b = Builder("kernel.py")
 *   body = b.block(["i32"]);  b.enter(body)
 *   b.at(3, 5, 3, 20)
 *   y = b.op("arith.addi", [body.args[0], body.args[0]], {}, ["i32"])
 *   b.op("func.return", [], {}, [])
 *   b.leave()
 *   b.op("func.func", [], {"sym_name": "f", "function_type": b.attribute("(i32) -> ()")}, [], [body])
 *   module = b.finish()
 *
 * What must hold, so that no misuse can leave a dangling value: a value may be used only while its block is open,
 * which is structural dominance.  A block that no op took is destroyed before the module, the one entered last first:
 * it may use values of blocks that were entered before it, never the other way. */
#include "ext.h"
#include "lowering/layout/memory.h"

#include "tilewright/compiler.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Diagnostics.h"

#include <stdlib.h>
#include <string.h>

/* --- Objects ------------------------------------------------------------------------------------- */

typedef enum { BLOCK_NEW, BLOCK_OPEN, BLOCK_CLOSED } block_phase_t;

typedef struct block_state {
  struct block_state *next;  /* all blocks of the builder, the one entered (or, before that, made) last first */
  struct block_state *outer; /* what was open when this block was entered */
  MlirBlock block;
  block_phase_t phase;
  bool owned; /* by us, until an op takes it */
} block_state_t;

typedef struct {
  PyObject_HEAD tw_state_t *state; /* borrowed: the type keeps it alive */
  MlirContext context;             /* owned until finish() */
  MlirModule module;               /* owned until finish() */
  MlirDiagnosticHandlerID handler;
  block_state_t *blocks; /* owned */
  block_state_t *top;    /* borrowed: the innermost open block; at the base, the module's body */
  PyObject *types;       /* owned: text -> address of the type */
  PyObject *facts;       /* owned: address of a type -> (text, shape or None, element) */
  PyObject *messages;    /* owned: diagnostics since the last op began */
  MlirAttribute file;    /* a string attribute, for location nodes */
  MlirLocation here, caller;
  bool in_call;
} builder_t;

typedef struct {
  PyObject_HEAD builder_t *builder; /* owned */
  block_state_t *state;
} op_block_t;

typedef struct {
  PyObject_HEAD builder_t *builder; /* owned */
  block_state_t *state;
  MlirValue value;
} value_t;

typedef struct {
  PyObject_HEAD builder_t *builder; /* owned */
  MlirAttribute attribute;
} attribute_t;

typedef struct {
  PyObject_HEAD builder_t *builder; /* owned */
  MlirLocation location;
} location_t;

static MlirStringRef str(const char *text) { return mlirStringRefCreateFromCString(text); }

static bool is_finished(builder_t *self) {
  if (!mlirContextIsNull(self->context))
    return false;
  PyErr_SetString(PyExc_RuntimeError, "the builder is finished");
  return true;
}

static void *new_object(PyTypeObject *type, builder_t *builder) {
  attribute_t *object = PyObject_New(attribute_t, type);
  if (object)
    object->builder = (builder_t *)Py_NewRef((PyObject *)builder);
  return object;
}

static void object_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  Py_DECREF((PyObject *)((attribute_t *)object)->builder);
  PyObject_Free(object);
  Py_DECREF(type);
}

/* --- Text ---------------------------------------------------------------------------------------- */

typedef struct {
  char text[512], *data;
  size_t size, capacity;
} op_text_t;

static void text_put(MlirStringRef piece, void *user) {
  op_text_t *text = user;
  if (text->size + piece.length > text->capacity) {
    size_t capacity = 2 * (text->size + piece.length);
    char *data = tw_must(malloc(capacity));
    memcpy(data, text->data, text->size);
    if (text->data != text->text)
      free(text->data);
    text->data = data;
    text->capacity = capacity;
  }
  memcpy(text->data + text->size, piece.data, piece.length);
  text->size += piece.length;
}

static void text_begin(op_text_t *text) {
  text->data = text->text;
  text->size = 0;
  text->capacity = sizeof text->text;
}

static PyObject *text_end(op_text_t *text) {
  PyObject *result = PyUnicode_DecodeUTF8(text->data, (Py_ssize_t)text->size, "replace");
  if (text->data != text->text)
    free(text->data);
  return result;
}

static PyObject *type_text(MlirType type) {
  op_text_t text;
  text_begin(&text);
  mlirTypePrint(type, text_put, &text);
  return text_end(&text);
}

/* --- Diagnostics --------------------------------------------------------------------------------- */

static MlirLogicalResult on_diagnostic(MlirDiagnostic diagnostic, void *user) {
  builder_t *self = user;
  op_text_t text;
  text_begin(&text);
  mlirDiagnosticPrint(diagnostic, text_put, &text);
  PyObject *message = text_end(&text);
  if (!message || PyList_Append(self->messages, message) < 0)
    PyErr_Clear();
  Py_XDECREF(message);
  return mlirLogicalResultSuccess();
}

static void forget_messages(builder_t *self) { PyList_SetSlice(self->messages, 0, PyList_Size(self->messages), NULL); }

/* Raises BuildError with the messages since the op began, or with `otherwise`. */
static PyObject *raise_build_error(builder_t *self, const char *otherwise) {
  PyObject *newline = PyUnicode_FromString("\n");
  PyObject *text =
      PyList_Size(self->messages) ? PyUnicode_Join(newline, self->messages) : PyUnicode_FromString(otherwise);
  if (text)
    PyErr_SetObject(self->state->build_error, text);
  Py_XDECREF(text);
  Py_XDECREF(newline);
  return NULL;
}

/* --- Types --------------------------------------------------------------------------------------- */

static PyObject *shape_of(MlirType type) {
  if (!mlirTypeIsAShaped(type) || !mlirShapedTypeHasRank(type))
    return Py_NewRef(Py_None);
  intptr_t rank = mlirShapedTypeGetRank(type);
  PyObject *shape = PyTuple_New(rank);
  for (intptr_t i = 0; shape && i < rank; i++) {
    int64_t extent = mlirShapedTypeIsDynamicDim(type, i) ? -1 : mlirShapedTypeGetDimSize(type, i);
    PyObject *number = PyLong_FromLongLong(extent);
    if (!number || PyTuple_SetItem(shape, i, number) < 0)
      Py_CLEAR(shape);
  }
  return shape;
}

/* (text, shape or None, element text) of a type; borrowed. */
static PyObject *type_facts(builder_t *self, MlirType type) {
  PyObject *key = PyLong_FromVoidPtr((void *)type.ptr);
  PyObject *facts = key ? PyDict_GetItemWithError(self->facts, key) : NULL;
  if (!facts && key && !PyErr_Occurred()) {
    MlirType element = mlirTypeIsAShaped(type) ? mlirShapedTypeGetElementType(type) : type;
    PyObject *text = type_text(type), *shape = shape_of(type), *name = type_text(element);
    facts = text && shape && name ? PyTuple_Pack(3, text, shape, name) : NULL;
    Py_XDECREF(text);
    Py_XDECREF(shape);
    Py_XDECREF(name);
    if (facts && PyDict_SetItem(self->facts, key, facts) < 0)
      Py_CLEAR(facts);
    Py_XDECREF(facts); /* the dictionary holds it */
  }
  Py_XDECREF(key);
  return facts;
}

/* The type of a text; a null type with an exception if there is none. */
static MlirType read_type(builder_t *self, PyObject *text) {
  MlirType none = {NULL};
  PyObject *known = PyDict_GetItemWithError(self->types, text);
  if (known)
    return (MlirType){PyLong_AsVoidPtr(known)};
  Py_ssize_t size;
  const char *data = PyErr_Occurred() ? NULL : PyUnicode_AsUTF8AndSize(text, &size);
  if (!data)
    return none;
  forget_messages(self);
  MlirType type = mlirTypeParseGet(self->context, (MlirStringRef){data, (size_t)size});
  if (mlirTypeIsNull(type)) {
    raise_build_error(self, "not a type");
    return none;
  }
  PyObject *address = PyLong_FromVoidPtr((void *)type.ptr);
  int failed = !address || PyDict_SetItem(self->types, text, address) < 0;
  Py_XDECREF(address);
  return failed ? none : type;
}

/* --- Sequences ----------------------------------------------------------------------------------- */

/* A list or tuple argument, or None for an empty one. */
static Py_ssize_t sequence_size(PyObject *sequence, const char *what) {
  if (!sequence || sequence == Py_None)
    return 0;
  if (PyList_Check(sequence))
    return PyList_Size(sequence);
  if (PyTuple_Check(sequence))
    return PyTuple_Size(sequence);
  PyErr_Format(PyExc_TypeError, "%s must be a list or tuple", what);
  return -1;
}

static PyObject *sequence_item(PyObject *sequence, Py_ssize_t i) { /* borrowed */
  return PyList_Check(sequence) ? PyList_GetItem(sequence, i) : PyTuple_GetItem(sequence, i);
}

/* --- Locations ----------------------------------------------------------------------------------- */

static void set_here(builder_t *self, MlirLocation at) {
  self->here = self->in_call ? mlirLocationCallSiteGet(at, self->caller) : at;
}

static PyObject *builder_file(PyObject *object, PyObject *path) {
  builder_t *self = (builder_t *)object;
  Py_ssize_t size;
  const char *data = is_finished(self) ? NULL : PyUnicode_AsUTF8AndSize(path, &size);
  if (!data)
    return NULL;
  self->file = mlirStringAttrGet(self->context, (MlirStringRef){data, (size_t)size});
  Py_RETURN_NONE;
}

static PyObject *builder_at(PyObject *object, PyObject *const *args, Py_ssize_t count) {
  builder_t *self = (builder_t *)object;
  if (is_finished(self))
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
static PyObject *builder_call(PyObject *object, PyObject *unused) {
  (void)unused;
  builder_t *self = (builder_t *)object;
  location_t *outer = is_finished(self) ? NULL : new_object(self->state->location, self);
  if (!outer)
    return NULL;
  outer->location = self->in_call ? self->caller : (MlirLocation){NULL};
  self->caller = self->here;
  self->in_call = true;
  return (PyObject *)outer;
}

/* end_call(location): undoes the call() that gave the location. */
static PyObject *builder_end_call(PyObject *object, PyObject *outer) {
  builder_t *self = (builder_t *)object;
  if (is_finished(self))
    return NULL;
  if (!PyObject_TypeCheck(outer, self->state->location) || ((location_t *)outer)->builder != self) {
    PyErr_SetString(PyExc_TypeError, "end_call needs what call() of this builder gave");
    return NULL;
  }
  if (self->in_call)
    self->here = self->caller;
  self->caller = ((location_t *)outer)->location;
  self->in_call = !mlirLocationIsNull(self->caller);
  Py_RETURN_NONE;
}

/* --- Values and blocks ----------------------------------------------------------------------------- */

static PyObject *value_new(builder_t *self, block_state_t *state, MlirValue value) {
  value_t *object = new_object(self->state->value, self);
  if (object) {
    object->state = state;
    object->value = value;
  }
  return (PyObject *)object;
}

/* The value of an operand; a null value with an exception if it may not be used here. */
static MlirValue read_value(builder_t *self, PyObject *object) {
  MlirValue none = {NULL};
  if (!PyObject_TypeCheck(object, self->state->value)) {
    PyErr_Format(PyExc_TypeError, "an operand must be a Value, not %R", object);
    return none;
  }
  value_t *value = (value_t *)object;
  if (value->builder != self) {
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
  value_t *self = (value_t *)object;
  if (is_finished(self->builder))
    return NULL;
  PyObject *facts = type_facts(self->builder, mlirValueGetType(self->value));
  return facts ? Py_NewRef(PyTuple_GetItem(facts, (Py_ssize_t)(intptr_t)which)) : NULL;
}

static PyObject *value_repr(PyObject *object) {
  value_t *self = (value_t *)object;
  if (mlirContextIsNull(self->builder->context))
    return PyUnicode_FromString("<Value of a finished builder>");
  PyObject *facts = type_facts(self->builder, mlirValueGetType(self->value));
  return facts ? PyUnicode_FromFormat("<Value %U>", PyTuple_GetItem(facts, 0)) : NULL;
}

static block_state_t *state_new(builder_t *self, MlirBlock block, bool owned) {
  block_state_t *state = calloc(1, sizeof *state);
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
static PyObject *builder_block(PyObject *object, PyObject *args) {
  builder_t *self = (builder_t *)object;
  PyObject *types = NULL;
  if (is_finished(self) || !PyArg_ParseTuple(args, "|O", &types))
    return NULL;
  Py_ssize_t count = sequence_size(types, "types");
  if (count < 0)
    return NULL;
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  op_block_t *result = NULL;
  for (Py_ssize_t i = 0; i < count; i++) {
    MlirType type = read_type(self, sequence_item(types, i));
    if (mlirTypeIsNull(type))
      goto fail;
    mlirBlockAddArgument(block, type, self->here);
  }
  result = new_object(self->state->block, self);
  if (!result || !(result->state = state_new(self, block, true)))
    goto fail;
  return (PyObject *)result;
fail:
  mlirBlockDestroy(block);
  Py_XDECREF((PyObject *)result);
  return NULL;
}

static PyObject *block_args(PyObject *object, void *unused) {
  (void)unused;
  op_block_t *self = (op_block_t *)object;
  if (is_finished(self->builder))
    return NULL;
  intptr_t count = mlirBlockGetNumArguments(self->state->block);
  PyObject *values = PyTuple_New(count);
  for (intptr_t i = 0; values && i < count; i++) {
    PyObject *value = value_new(self->builder, self->state, mlirBlockGetArgument(self->state->block, i));
    if (!value || PyTuple_SetItem(values, i, value) < 0)
      Py_CLEAR(values);
  }
  return values;
}

/* To the front of the list: see the head of the file. */
static void move_to_front(builder_t *self, block_state_t *state) {
  for (block_state_t **at = &self->blocks; *at; at = &(*at)->next)
    if (*at == state) {
      *at = state->next;
      break;
    }
  state->next = self->blocks;
  self->blocks = state;
}

/* enter(block): ops go there until leave(). A block may be entered again where it was entered first. */
static PyObject *builder_enter(PyObject *object, PyObject *block) {
  builder_t *self = (builder_t *)object;
  if (is_finished(self))
    return NULL;
  if (!PyObject_TypeCheck(block, self->state->block) || ((op_block_t *)block)->builder != self) {
    PyErr_SetString(PyExc_TypeError, "enter needs a block of this builder");
    return NULL;
  }
  block_state_t *state = ((op_block_t *)block)->state;
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

static PyObject *builder_leave(PyObject *object, PyObject *unused) {
  (void)unused;
  builder_t *self = (builder_t *)object;
  if (is_finished(self))
    return NULL;
  if (!self->top->outer) {
    PyErr_SetString(PyExc_ValueError, "no block is open");
    return NULL;
  }
  self->top->phase = BLOCK_CLOSED;
  self->top = self->top->outer;
  Py_RETURN_NONE;
}

/* --- Attributes ---------------------------------------------------------------------------------- */

static MlirAttribute int_array(builder_t *self, PyObject *sequence) {
  MlirAttribute none = {NULL};
  int32_t numbers[64];
  Py_ssize_t count = sequence_size(sequence, "an attribute");
  if (count < 0 || count > 64) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_ValueError, "an attribute's list has 64 entries at most");
    return none;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    long number = PyLong_AsLong(sequence_item(sequence, i));
    if (number == -1 && PyErr_Occurred())
      return none;
    numbers[i] = (int32_t)number;
  }
  return mlirDenseI32ArrayGet(self->context, count, numbers);
}

/* bool: i1; int: i32; float: f64; str: string; list or tuple of int: array<i32>; None: unit; Attribute: itself. */
static MlirAttribute read_attribute(builder_t *self, PyObject *object) {
  MlirAttribute none = {NULL};
  if (PyObject_TypeCheck(object, self->state->attribute)) {
    if (((attribute_t *)object)->builder == self)
      return ((attribute_t *)object)->attribute;
    PyErr_SetString(PyExc_ValueError, "the attribute belongs to another builder");
    return none;
  }
  if (object == Py_None)
    return mlirUnitAttrGet(self->context);
  if (PyBool_Check(object))
    return mlirBoolAttrGet(self->context, object == Py_True);
  if (PyLong_Check(object)) {
    long long number = PyLong_AsLongLong(object);
    if (number == -1 && PyErr_Occurred())
      return none;
    return mlirIntegerAttrGet(mlirIntegerTypeGet(self->context, 32), number);
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
static PyObject *builder_attribute(PyObject *object, PyObject *text) {
  builder_t *self = (builder_t *)object;
  Py_ssize_t size;
  const char *data = is_finished(self) ? NULL : PyUnicode_AsUTF8AndSize(text, &size);
  if (!data)
    return NULL;
  forget_messages(self);
  MlirAttribute attribute = mlirAttributeParseGet(self->context, (MlirStringRef){data, (size_t)size});
  if (mlirAttributeIsNull(attribute))
    return raise_build_error(self, "not an attribute");
  attribute_t *result = new_object(self->state->attribute, self);
  if (result)
    result->attribute = attribute;
  return (PyObject *)result;
}

static int read_attributes(builder_t *self, PyObject *dict, MlirOperationState *state) {
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

/* --- Operations ---------------------------------------------------------------------------------- */

enum { MAX_PARTS = 256 }; /* operands or results of one op */

static int read_operands(builder_t *self, PyObject *operands, MlirOperationState *state) {
  Py_ssize_t count = sequence_size(operands, "operands");
  MlirValue values[MAX_PARTS];
  if (count > MAX_PARTS)
    PyErr_SetString(PyExc_ValueError, "too many operands");
  if (count < 0 || count > MAX_PARTS)
    return -1;
  for (Py_ssize_t i = 0; i < count; i++) {
    values[i] = read_value(self, sequence_item(operands, i));
    if (mlirValueIsNull(values[i]))
      return -1;
  }
  mlirOperationStateAddOperands(state, count, values);
  return 0;
}

/* None: inferred by the op. */
static int read_results(builder_t *self, PyObject *types, MlirOperationState *state) {
  if (types == Py_None) {
    mlirOperationStateEnableResultTypeInference(state);
    return 0;
  }
  Py_ssize_t count = sequence_size(types, "types");
  MlirType results[MAX_PARTS];
  if (count > MAX_PARTS)
    PyErr_SetString(PyExc_ValueError, "too many results");
  if (count < 0 || count > MAX_PARTS)
    return -1;
  for (Py_ssize_t i = 0; i < count; i++) {
    results[i] = read_type(self, sequence_item(types, i));
    if (mlirTypeIsNull(results[i]))
      return -1;
  }
  mlirOperationStateAddResults(state, count, results);
  return 0;
}

/* Checks the blocks of the regions; they are taken when nothing can fail any more. */
static Py_ssize_t check_regions(builder_t *self, PyObject *blocks) {
  Py_ssize_t count = sequence_size(blocks, "regions");
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *block = sequence_item(blocks, i);
    if (block == Py_None)
      continue;
    if (!PyObject_TypeCheck(block, self->state->block) || ((op_block_t *)block)->builder != self) {
      PyErr_SetString(PyExc_TypeError, "a region must be a block of this builder");
      return -1;
    }
    block_state_t *state = ((op_block_t *)block)->state;
    if (state->phase != BLOCK_CLOSED || !state->owned) {
      PyErr_SetString(PyExc_ValueError, "a region must be a block that was left, and that no other op has");
      return -1;
    }
    for (Py_ssize_t k = 0; k < i; k++)
      if (sequence_item(blocks, k) == block) {
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
    PyObject *block = sequence_item(blocks, i);
    if (block != Py_None) {
      mlirRegionAppendOwnedBlock(region, ((op_block_t *)block)->state->block);
      ((op_block_t *)block)->state->owned = false;
    }
    mlirOperationStateAddOwnedRegions(state, 1, &region);
  }
}

static PyObject *results_of(builder_t *self, MlirOperation op) {
  intptr_t count = mlirOperationGetNumResults(op);
  if (count == 0)
    Py_RETURN_NONE;
  if (count == 1)
    return value_new(self, self->top, mlirOperationGetResult(op, 0));
  PyObject *values = PyTuple_New(count);
  for (intptr_t i = 0; values && i < count; i++) {
    PyObject *value = value_new(self, self->top, mlirOperationGetResult(op, i));
    if (!value || PyTuple_SetItem(values, i, value) < 0)
      Py_CLEAR(values);
  }
  return values;
}

/* op(name, operands, attributes=None, types=None, regions=()) -> Value, tuple of them, or None */
static PyObject *builder_op(PyObject *object, PyObject *const *args, Py_ssize_t count) {
  builder_t *self = (builder_t *)object;
  if (is_finished(self))
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
  forget_messages(self);
  MlirOperationState state = mlirOperationStateGet(op_name, self->here);
  if (read_operands(self, args[1], &state) < 0 || read_attributes(self, count > 2 ? args[2] : NULL, &state) < 0 ||
      read_results(self, types, &state) < 0) {
    free(state.results); /* what mlirOperationCreate would have freed */
    free(state.operands);
    free(state.attributes);
    return NULL;
  }
  if (num_regions)
    take_regions(args[4], num_regions, &state);
  MlirOperation op = mlirOperationCreate(&state);
  if (mlirOperationIsNull(op))
    return raise_build_error(self, "the op refuses its operands");
  mlirBlockAppendOwnedOperation(self->top->block, op);
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

static PyObject *builder_constant(PyObject *object, PyObject *const *args, Py_ssize_t count) {
  builder_t *self = (builder_t *)object;
  if (is_finished(self))
    return NULL;
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "constant(type, number)");
    return NULL;
  }
  MlirType type = read_type(self, args[0]);
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
    return raise_build_error(self, "not a constant");
  mlirBlockAppendOwnedOperation(self->top->block, op);
  return value_new(self, self->top, mlirOperationGetResult(op, 0));
}

/* set(name, value): an attribute of the module. */
static PyObject *builder_set(PyObject *object, PyObject *args) {
  builder_t *self = (builder_t *)object;
  const char *name;
  PyObject *value;
  if (is_finished(self) || !PyArg_ParseTuple(args, "sO", &name, &value))
    return NULL;
  MlirAttribute attribute = read_attribute(self, value);
  if (mlirAttributeIsNull(attribute))
    return NULL;
  mlirOperationSetDiscardableAttributeByName(mlirModuleGetOperation(self->module), str(name), attribute);
  Py_RETURN_NONE;
}

/* --- Life ---------------------------------------------------------------------------------------- */

static void destroy_blocks(builder_t *self) {
  for (block_state_t *state = self->blocks; state; state = state->next)
    if (state->owned) {
      mlirBlockDestroy(state->block);
      state->owned = false;
    }
}

static void detach(builder_t *self) {
  mlirContextDetachDiagnosticHandler(self->context, self->handler);
  self->context = (MlirContext){NULL};
  self->module = (MlirModule){NULL};
}

/* finish() -> Module: the builder and its values are of no use afterwards. */
static PyObject *builder_finish(PyObject *object, PyObject *unused) {
  (void)unused;
  builder_t *self = (builder_t *)object;
  if (is_finished(self))
    return NULL;
  if (self->top->outer) {
    PyErr_SetString(PyExc_ValueError, "a block is still open");
    return NULL;
  }
  destroy_blocks(self);
  MlirContext context = self->context;
  MlirModule module = self->module;
  detach(self);
  return tw_ext_module_new(self->state, context, module);
}

static PyObject *builder_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  (void)keywords;
  PyObject *file;
  if (!PyArg_ParseTuple(args, "U:Builder", &file))
    return NULL;
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  builder_t *self = (builder_t *)allocate(type, 0); /* zeroed */
  if (!self)
    return NULL;
  self->state = PyType_GetModuleState(type);
  self->context = tw_ext_context_take();
  self->here = mlirLocationUnknownGet(self->context);
  self->module = mlirModuleCreateEmpty(self->here);
  self->types = PyDict_New();
  self->facts = PyDict_New();
  self->messages = PyList_New(0);
  self->handler = mlirContextAttachDiagnosticHandler(self->context, on_diagnostic, self, NULL);
  self->top = state_new(self, mlirModuleGetBody(self->module), false);
  if (!self->types || !self->facts || !self->messages || !self->top) {
    Py_DECREF((PyObject *)self);
    return NULL;
  }
  self->top->phase = BLOCK_OPEN;
  PyObject *done = builder_file((PyObject *)self, file);
  Py_XDECREF(done);
  if (!done)
    Py_CLEAR(*(PyObject **)&self);
  return (PyObject *)self;
}

static void builder_dealloc(PyObject *object) {
  builder_t *self = (builder_t *)object;
  PyTypeObject *type = Py_TYPE(object);
  if (!mlirContextIsNull(self->context)) {
    MlirContext context = self->context;
    MlirModule module = self->module;
    destroy_blocks(self);
    detach(self);
    mlirModuleDestroy(module);
    tw_ext_context_give(context);
  }
  while (self->blocks) {
    block_state_t *next = self->blocks->next;
    free(self->blocks);
    self->blocks = next;
  }
  Py_XDECREF(self->types);
  Py_XDECREF(self->facts);
  Py_XDECREF(self->messages);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

#define FAST(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef builder_methods[] = {
    {"file", builder_file, METH_O, "file(path): the file that at() speaks of."},
    {"at", FAST(builder_at), METH_FASTCALL, "at(line, column, end_line, end_column): where the next ops come from."},
    {"call", builder_call, METH_NOARGS, "call() -> Location: the next ops are in a function called from here."},
    {"end_call", builder_end_call, METH_O, "end_call(location): undo the call() that gave it."},
    {"block", builder_block, METH_VARARGS, "block(types=()) -> Block: an empty block."},
    {"enter", builder_enter, METH_O, "enter(block): ops go there until leave()."},
    {"leave", builder_leave, METH_NOARGS, "leave(): back to the block that was open before."},
    {"attribute", builder_attribute, METH_O, "attribute(text) -> Attribute: read an attribute."},
    {"op", FAST(builder_op), METH_FASTCALL,
     "op(name, operands, attributes=None, types=None, regions=()) -> Value, tuple or None: append an op."},
    {"constant", FAST(builder_constant), METH_FASTCALL, "constant(type, number) -> Value: a scalar or a splat."},
    {"set", builder_set, METH_VARARGS, "set(name, value): an attribute of the module."},
    {"finish", builder_finish, METH_NOARGS, "finish() -> Module."},
    {NULL, NULL, 0, NULL},
};

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

static PyType_Slot builder_slots[] = {
    {Py_tp_new, builder_new},
    {Py_tp_dealloc, builder_dealloc},
    {Py_tp_methods, builder_methods},
    {Py_tp_doc, "Builder(file): makes a module of IR, op by op."},
    {0, NULL},
};
static PyType_Slot value_slots[] = {
    {Py_tp_dealloc, object_dealloc},
    {Py_tp_getset, value_properties},
    {Py_tp_repr, value_repr},
    {Py_tp_doc, "A value of the IR."},
    {0, NULL},
};
static PyType_Slot block_slots[] = {
    {Py_tp_dealloc, object_dealloc},
    {Py_tp_getset, block_properties},
    {Py_tp_doc, "A block of the IR."},
    {0, NULL},
};
static PyType_Slot plain_slots[] = {
    {Py_tp_dealloc, object_dealloc},
    {0, NULL},
};

#define NO_NEW (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION)
static PyType_Spec builder_spec = {"tilewright._core.Builder", sizeof(builder_t), 0, Py_TPFLAGS_DEFAULT, builder_slots};
static PyType_Spec block_spec = {"tilewright._core.Block", sizeof(op_block_t), 0, NO_NEW, block_slots};
static PyType_Spec value_spec = {"tilewright._core.Value", sizeof(value_t), 0, NO_NEW, value_slots};
static PyType_Spec attribute_spec = {"tilewright._core.Attribute", sizeof(attribute_t), 0, NO_NEW, plain_slots};
static PyType_Spec location_spec = {"tilewright._core.Location", sizeof(location_t), 0, NO_NEW, plain_slots};

int tw_ext_add_builder(PyObject *module) {
  tw_state_t *state = tw_state_of(module);
  state->build_error =
      PyErr_NewExceptionWithDoc("tilewright._core.BuildError", "An op refused its operands.", NULL, NULL);
  if (!state->build_error || PyModule_AddObjectRef(module, "BuildError", state->build_error) < 0)
    return -1;
  return tw_ext_add_type(module, &builder_spec, &state->builder) < 0 ||
                 tw_ext_add_type(module, &block_spec, &state->block) < 0 ||
                 tw_ext_add_type(module, &value_spec, &state->value) < 0 ||
                 tw_ext_add_type(module, &attribute_spec, &state->attribute) < 0 ||
                 tw_ext_add_type(module, &location_spec, &state->location) < 0
             ? -1
             : 0;
}
