/* builder.c - `_core.Builder`: tile IR built op by op from Python; its life and its methods
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
#include "builder.h"

#include <stdlib.h>

bool tw_builder_is_finished(const tw_py_builder_t *self) {
#ifdef TW_FREE_THREADED
  if (self->thread != PyThread_get_thread_ident()) {
    PyErr_SetString(PyExc_RuntimeError, "a builder is used by the thread that made it");
    return true;
  }
#endif
  if (!mlirContextIsNull(self->context))
    return false;
  PyErr_SetString(PyExc_RuntimeError, "the builder is finished");
  return true;
}

void *tw_built_new(PyTypeObject *type, tw_py_builder_t *builder) {
  tw_built_t *object = PyObject_New(tw_built_t, type);
  if (object)
    object->builder = (tw_py_builder_t *)Py_NewRef((PyObject *)builder);
  return object;
}

void tw_built_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  Py_DECREF((PyObject *)((tw_built_t *)object)->builder);
  PyObject_Free(object);
  Py_DECREF(type);
}

/* --- Diagnostics --------------------------------------------------------------------------------- */

static MlirLogicalResult on_diagnostic(MlirDiagnostic diagnostic, void *user) {
  tw_py_builder_t *self = user;
  tw_strbuf_t text = {0};
  mlirDiagnosticPrint(diagnostic, tw_ext_text_put, &text);
  PyObject *message = tw_ext_text_take(&text);
  if (!message || PyList_Append(self->messages, message) < 0)
    PyErr_Clear();
  Py_XDECREF(message);
  return mlirLogicalResultSuccess();
}

void tw_builder_forget_messages(tw_py_builder_t *self) {
  PyList_SetSlice(self->messages, 0, PyList_Size(self->messages), NULL);
}

PyObject *tw_builder_raise(tw_py_builder_t *self, const char *otherwise) {
  PyObject *newline = PyUnicode_FromString("\n");
  PyObject *text =
      PyList_Size(self->messages) ? PyUnicode_Join(newline, self->messages) : PyUnicode_FromString(otherwise);
  if (text)
    PyErr_SetObject(self->state->build_error, text);
  Py_XDECREF(text);
  Py_XDECREF(newline);
  return NULL;
}

/* --- Sequences ----------------------------------------------------------------------------------- */

Py_ssize_t tw_sequence_size(PyObject *sequence, const char *what) {
  if (!sequence || sequence == Py_None)
    return 0;
  if (PyList_Check(sequence))
    return PyList_Size(sequence);
  if (PyTuple_Check(sequence))
    return PyTuple_Size(sequence);
  PyErr_Format(PyExc_TypeError, "%s must be a list or tuple", what);
  return -1;
}

PyObject *tw_sequence_item(PyObject *sequence, Py_ssize_t i) {
  return PyList_Check(sequence) ? PyList_GetItem(sequence, i) : PyTuple_GetItem(sequence, i);
}

/* --- Life ---------------------------------------------------------------------------------------- */

static void detach(tw_py_builder_t *self) {
  mlirContextDetachDiagnosticHandler(self->context, self->handler);
  self->context = (MlirContext){NULL};
  self->module = (MlirModule){NULL};
}

/* finish() -> Module: the builder and its values are of no use afterwards. */
static PyObject *builder_finish(PyObject *object, PyObject *unused) {
  (void)unused;
  tw_py_builder_t *self = (tw_py_builder_t *)object;
  if (tw_builder_is_finished(self))
    return NULL;
  if (self->top->outer) {
    PyErr_SetString(PyExc_ValueError, "a block is still open");
    return NULL;
  }
  tw_builder_destroy_blocks(self);
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
  tw_py_builder_t *self = (tw_py_builder_t *)allocate(type, 0); /* zeroed */
  if (!self)
    return NULL;
  self->state = PyType_GetModuleState(type);
#ifdef TW_FREE_THREADED
  self->thread = PyThread_get_thread_ident();
#endif
  self->context = tw_ext_context_take();
  self->here = mlirLocationUnknownGet(self->context);
  self->module = mlirModuleCreateEmpty(self->here);
  self->types = PyDict_New();
  self->facts = PyDict_New();
  self->messages = PyList_New(0);
  self->handler = mlirContextAttachDiagnosticHandler(self->context, on_diagnostic, self, NULL);
  self->top = tw_block_state_new(self, mlirModuleGetBody(self->module), false);
  if (!self->types || !self->facts || !self->messages || !self->top) {
    Py_DECREF((PyObject *)self);
    return NULL;
  }
  self->top->phase = BLOCK_OPEN;
  PyObject *path = PyTuple_Pack(1, file), *done = path ? tw_builder_file((PyObject *)self, path) : NULL;
  Py_XDECREF(path);
  Py_XDECREF(done);
  if (!done)
    Py_CLEAR(*(PyObject **)&self);
  return (PyObject *)self;
}

static void builder_dealloc(PyObject *object) {
  tw_py_builder_t *self = (tw_py_builder_t *)object;
  PyTypeObject *type = Py_TYPE(object);
  if (!mlirContextIsNull(self->context)) {
    MlirContext context = self->context;
    MlirModule module = self->module;
    tw_builder_destroy_blocks(self);
    detach(self);
    mlirModuleDestroy(module);
    tw_ext_context_give(context);
  }
  while (self->blocks) {
    tw_block_state_t *next = self->blocks->next;
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
    {"file", tw_builder_file, METH_VARARGS,
     "file(path, function=None): the file that at() speaks of, and the function there that is called."},
    {"at", FAST(tw_builder_at), METH_FASTCALL, "at(line, column, end_line, end_column): where the next ops come from."},
    {"call", tw_builder_call, METH_NOARGS, "call() -> Location: the next ops are in a function called from here."},
    {"end_call", tw_builder_end_call, METH_O, "end_call(location): undo the call() that gave it."},
    {"block", tw_builder_block, METH_VARARGS, "block(types=()) -> Block: an empty block."},
    {"enter", tw_builder_enter, METH_O, "enter(block): ops go there until leave()."},
    {"leave", tw_builder_leave, METH_NOARGS, "leave(): back to the block that was open before."},
    {"attribute", tw_builder_attribute, METH_O, "attribute(text) -> Attribute: read an attribute."},
    {"op", FAST(tw_builder_op), METH_FASTCALL,
     "op(name, operands, attributes=None, types=None, regions=()) -> Value, tuple or None: append an op."},
    {"constant", FAST(tw_builder_constant), METH_FASTCALL, "constant(type, number) -> Value: a scalar or a splat."},
    {"span", tw_builder_span, METH_NOARGS, "span() -> Span: of the ops that are appended from now on."},
    {"end_span", tw_builder_end_span, METH_O, "end_span(span): the last op is the last of it."},
    {"repeat", FAST(tw_builder_repeat), METH_FASTCALL,
     "repeat(span, operands, instead, results) -> the ops of a span again, for other operands: what they have for "
     "results; None where not all that they use can be seen."},
    {"name", tw_builder_name, METH_VARARGS, "name(value, text): what the program calls a value, unless it has a name."},
    {"set", tw_builder_set, METH_VARARGS, "set(name, value): an attribute of the module."},
    {"finish", builder_finish, METH_NOARGS, "finish() -> Module."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot builder_slots[] = {
    {Py_tp_new, builder_new},
    {Py_tp_dealloc, builder_dealloc},
    {Py_tp_methods, builder_methods},
    {Py_tp_doc, "Builder(file): makes a module of IR, op by op."},
    {0, NULL},
};

static PyType_Spec builder_spec = {"tilewright._core.Builder", sizeof(tw_py_builder_t), 0, Py_TPFLAGS_DEFAULT,
                                   builder_slots};

int tw_ext_add_builder(PyObject *module) {
  tw_state_t *state = tw_state_of(module);
  state->build_error =
      PyErr_NewExceptionWithDoc("tilewright._core.BuildError", "An op refused its operands.", NULL, NULL);
  if (!state->build_error || PyModule_AddObjectRef(module, "BuildError", state->build_error) < 0)
    return -1;
  if (tw_ext_add_type(module, &builder_spec, &state->builder) || tw_block_add(module) || tw_attribute_add(module) ||
      tw_span_add(module))
    return -1;
  return tw_location_add(module);
}
