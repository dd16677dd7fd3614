/* compile.c - `_core.Module`: a module of IR in Python's hands; parse, print, lower, emit */
#include "base/memory.h"
#include "ext.h"
#include "launch.h"
#include "lock.h"

#include "lowering/passes.h"
#include "tilewright/compiler.h"
#include "tilewright/dialect.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Diagnostics.h"

#include <stdlib.h>
#include <string.h>

/* --- diagnostics ------------------------------------------------------------------------------- */

/* The diagnostics of MLIR while the scope lives. They become one exception. */
typedef struct {
  MlirContext context;
  MlirDiagnosticHandlerID handler;
  PyThreadState *thread; /* of the caller while it compiles without the GIL, else NULL */
  PyObject *list;        /* owned: [(severity, location text, message)] */
} diagnostics_t;

/* Runs in the thread that compiles, as contexts have no threads of their own. */
static MlirLogicalResult on_diagnostic(MlirDiagnostic diagnostic, void *user) {
  diagnostics_t *scope = user;
  tw_strbuf_t where = {0}, what = {0};
  mlirLocationPrint(mlirDiagnosticGetLocation(diagnostic), tw_ext_text_put, &where);
  mlirDiagnosticPrint(diagnostic, tw_ext_text_put, &what);
  if (scope->thread)
    PyEval_RestoreThread(scope->thread);
  PyObject *row = Py_BuildValue("(iNN)", (int)mlirDiagnosticGetSeverity(diagnostic), tw_ext_text_take(&where),
                                tw_ext_text_take(&what));
  if (row)
    PyList_Append(scope->list, row);
  Py_XDECREF(row);
  PyErr_Clear();
  if (scope->thread)
    scope->thread = PyEval_SaveThread();
  return mlirLogicalResultSuccess();
}

static diagnostics_t *diagnostics_begin(MlirContext context) {
  diagnostics_t *scope = tw_allocate(1, sizeof *scope);
  scope->context = context;
  scope->list = PyList_New(0);
  scope->handler = mlirContextAttachDiagnosticHandler(context, on_diagnostic, scope, NULL);
  return scope;
}

static void raise_compilation_error(PyObject *diagnostics) {
  PyObject *errors = PyImport_ImportModule("tilewright.errors");
  PyObject *raise = errors ? PyObject_GetAttrString(errors, "from_diagnostics") : NULL;
  PyObject *error = raise ? PyObject_CallFunctionObjArgs(raise, diagnostics, NULL) : NULL;
  if (error)
    PyErr_SetObject((PyObject *)Py_TYPE(error), error);
  Py_XDECREF(error);
  Py_XDECREF(raise);
  Py_XDECREF(errors);
}

/* If `failed`, raises tilewright.errors.CompilationError from the diagnostics and returns NULL; else returns the list
 * of (severity, location, message): 1 is a warning, 2 a note, 3 a remark. */
static PyObject *diagnostics_end(diagnostics_t *scope, int failed) {
  mlirContextDetachDiagnosticHandler(scope->context, scope->handler);
  PyObject *diagnostics = scope->list;
  free(scope);
  if (!failed)
    return diagnostics;
  raise_compilation_error(diagnostics);
  Py_DECREF(diagnostics);
  return NULL;
}

/* --- Module ------------------------------------------------------------------------------------ */

typedef struct {
  PyObject_HEAD MlirContext context; /* owned */
  MlirModule module;                 /* owned */
  MlirModule start;                  /* owned; as it was when keep() was called, or null */
  TW_MUTEX                           /* of all that */
} module_object_t;

PyObject *tw_ext_module_new(const tw_state_t *state, MlirContext context, MlirModule module) {
  module_object_t *self = PyObject_New(module_object_t, state->module);
  if (!self) {
    mlirModuleDestroy(module);
    tw_ext_context_give(context);
    return NULL;
  }
  self->context = context;
  self->module = module;
  self->start = (MlirModule){NULL};
#ifdef TW_FREE_THREADED
  self->lock = (PyMutex){0};
#endif
  return (PyObject *)self;
}

static void module_dealloc(PyObject *object) {
  module_object_t *self = (module_object_t *)object;
  mlirModuleDestroy(self->module);
  if (!mlirModuleIsNull(self->start))
    mlirModuleDestroy(self->start);
  tw_ext_context_give(self->context);
  PyTypeObject *type = Py_TYPE(object);
  PyObject_Free(object);
  Py_DECREF(type);
}

static PyObject *module_text(PyObject *object, PyObject *args) {
  int locations = 0, verified = 0;
  if (!PyArg_ParseTuple(args, "|pp", &locations, &verified))
    return NULL;
  tw_strbuf_t out = {0};
  MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
  if (locations)
    mlirOpPrintingFlagsEnableDebugInfo(flags, true, false);
  if (verified)
    mlirOpPrintingFlagsAssumeVerified(flags);
  mlirOperationPrintWithFlags(mlirModuleGetOperation(((module_object_t *)object)->module), flags, tw_ext_text_put,
                              &out);
  mlirOpPrintingFlagsDestroy(flags);
  return tw_ext_text_take(&out);
}

static PyObject *run_with_diagnostics(PyObject *object, const char *argument, bool (*work)(MlirModule, const char *)) {
  module_object_t *self = (module_object_t *)object;
  diagnostics_t *scope = diagnostics_begin(self->context);
  bool ok;
  Py_INCREF(object); /* without the GIL: other threads run, and may compile modules of their own */
  scope->thread = PyEval_SaveThread();
  ok = work(self->module, argument);
  PyEval_RestoreThread(scope->thread);
  Py_DECREF(object);
  return diagnostics_end(scope, !ok);
}

static PyObject *module_lower(PyObject *object, PyObject *args) {
  const char *stage;
  return PyArg_ParseTuple(args, "s", &stage) ? run_with_diagnostics(object, stage, tw_lower_to) : NULL;
}

static PyObject *module_run(PyObject *object, PyObject *args) {
  const char *pipeline;
  return PyArg_ParseTuple(args, "s", &pipeline) ? run_with_diagnostics(object, pipeline, tw_pipeline_run) : NULL;
}

static MlirModule clone(MlirModule module) {
  return mlirModuleFromOperation(mlirOperationClone(mlirModuleGetOperation(module)));
}

static PyObject *module_keep(PyObject *object, PyObject *unused) {
  (void)unused;
  module_object_t *self = (module_object_t *)object;
  if (mlirModuleIsNull(self->start))
    self->start = clone(self->module);
  Py_RETURN_NONE;
}

/* replan(plan, reason): as it was when keep() was called, with another plan */
static PyObject *module_replan(PyObject *object, PyObject *args) {
  module_object_t *self = (module_object_t *)object;
  int plan;
  const char *reason;
  if (!PyArg_ParseTuple(args, "is", &plan, &reason))
    return NULL;
  if (mlirModuleIsNull(self->start)) {
    PyErr_SetString(PyExc_ValueError, "replan() needs keep() before");
    return NULL;
  }
  mlirModuleDestroy(self->module);
  self->module = clone(self->start);
  MlirOperation op = mlirModuleGetOperation(self->module);
  MlirAttribute number = mlirIntegerAttrGet(mlirIntegerTypeGet(self->context, 32), plan);
  MlirAttribute text = mlirStringAttrGet(self->context, mlirStringRefCreateFromCString(reason));
  mlirOperationSetDiscardableAttributeByName(op, mlirStringRefCreateFromCString("tile.plan"), number);
  mlirOperationSetDiscardableAttributeByName(op, mlirStringRefCreateFromCString("tile.plan_reason"), text);
  Py_RETURN_NONE;
}

static PyObject *module_verify(PyObject *object, PyObject *unused) {
  (void)unused;
  module_object_t *self = (module_object_t *)object;
  diagnostics_t *scope = diagnostics_begin(self->context);
  return diagnostics_end(scope, !mlirOperationVerify(mlirModuleGetOperation(self->module)));
}

static PyObject *module_emit(PyObject *object, PyObject *args) {
  int kind;
  if (!PyArg_ParseTuple(args, "i", &kind))
    return NULL;
  module_object_t *self = (module_object_t *)object;
  diagnostics_t *scope = diagnostics_begin(self->context);
  size_t size = 0;
  char *bytes;
  Py_INCREF(object);
  scope->thread = PyEval_SaveThread();
  bytes = tw_emit(self->module, (tw_emit_kind_t)kind, &size);
  PyEval_RestoreThread(scope->thread);
  Py_DECREF(object);
  PyObject *status = diagnostics_end(scope, !bytes);
  PyObject *result = status ? PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size) : NULL;
  Py_XDECREF(status);
  free(bytes);
  return result;
}

/* attribute(name) -> str | None: an attribute of the module, printed. */
static PyObject *module_attribute(PyObject *object, PyObject *args) {
  const char *name;
  if (!PyArg_ParseTuple(args, "s", &name))
    return NULL;
  MlirAttribute attribute = mlirOperationGetDiscardableAttributeByName(
      mlirModuleGetOperation(((module_object_t *)object)->module), mlirStringRefCreateFromCString(name));
  if (mlirAttributeIsNull(attribute))
    Py_RETURN_NONE;
  tw_strbuf_t out = {0};
  mlirAttributePrint(attribute, tw_ext_text_put, &out);
  return tw_ext_text_take(&out);
}

/* does_not_fit() -> str: after an error, the resource of which the kernel takes more than there is; "" if that is
 * not the reason. */
static PyObject *module_does_not_fit(PyObject *object, PyObject *unused) {
  (void)unused;
  MlirStringRef what = tw_what_does_not_fit(((module_object_t *)object)->module);
  return PyUnicode_FromStringAndSize(what.data, (Py_ssize_t)what.length);
}

static tw_status_t add_kernel(void *user, MlirOperation func, MlirStringRef name) {
  tw_strbuf_t bytes = {0};
  tw_status_t status = tw_kernel_record(func, &bytes);
  PyObject *row = status ? NULL
                         : Py_BuildValue("(s#y#)", name.data, (Py_ssize_t)name.length, tw_strbuf_cstr(&bytes),
                                         (Py_ssize_t)bytes.size);
  if (row)
    PyList_Append(user, row);
  Py_XDECREF(row);
  tw_strbuf_free(&bytes);
  return tw_status_prefix(status, "kernel %.*s: ", (int)name.length, name.data);
}

/* kernels() -> [(name, launch record)], from the stage "layout" on. */
static PyObject *module_kernels(PyObject *object, PyObject *unused) {
  (void)unused;
  PyObject *list = PyList_New(0);
  tw_status_t status = list ? tw_each_kernel(((module_object_t *)object)->module, add_kernel, list) : NULL;
  if (status)
    tw_ext_raise(status, NULL);
  if (PyErr_Occurred())
    Py_CLEAR(list);
  return list;
}

/* layout_costs(kernel) -> ints: what its layouts cost, and those that come next to them, at the stage "layout". */
static PyObject *module_layout_costs(PyObject *object, PyObject *args) {
  enum { MOST = 32 };
  int64_t costs[MOST];
  const char *name;
  if (!PyArg_ParseTuple(args, "s", &name))
    return NULL;
  return tw_ext_integers(costs, tw_layout_costs(((module_object_t *)object)->module, name, costs, MOST));
}

static PyObject *text_of(MlirAttribute text) {
  MlirStringRef value = mlirStringAttrGetValue(text);
  return PyUnicode_FromStringAndSize(value.data, (Py_ssize_t)value.length);
}

static MlirAttribute entry_of(MlirAttribute row, const char *name) {
  return mlirDictionaryAttrGetElementByName(row, mlirStringRefCreateFromCString(name));
}

/* [(kind, bits, slots)] of an entry of tile.layouts. */
static PyObject *choices_of(MlirAttribute row) {
  MlirAttribute kinds = entry_of(row, "kinds"), bits = entry_of(row, "bits"), slots = entry_of(row, "slots");
  intptr_t count = mlirArrayAttrGetNumElements(kinds);
  PyObject *list = PyList_New(count);
  for (intptr_t i = 0; list && i < count; i++)
    PyList_SetItem(list, i,
                   Py_BuildValue("(NNL)", text_of(mlirArrayAttrGetElement(kinds, i)),
                                 text_of(mlirArrayAttrGetElement(bits, i)),
                                 (long long)mlirDenseI64ArrayGetElement(slots, i)));
  return list;
}

static PyObject *names_of(MlirAttribute row) {
  MlirAttribute names = entry_of(row, "names");
  intptr_t count = mlirArrayAttrGetNumElements(names);
  PyObject *list = PyList_New(count);
  for (intptr_t i = 0; list && i < count; i++)
    PyList_SetItem(list, i, text_of(mlirArrayAttrGetElement(names, i)));
  return list;
}

/* layouts(kernel) -> [(names, tile, taken, [(kind, bits, slots)])]: what tiles with names could have. */
static PyObject *module_layouts(PyObject *object, PyObject *args) {
  const char *name;
  if (!PyArg_ParseTuple(args, "s", &name))
    return NULL;
  MlirAttribute rows = tw_layouts_of(((module_object_t *)object)->module, name);
  intptr_t count = mlirAttributeIsNull(rows) ? 0 : mlirArrayAttrGetNumElements(rows);
  PyObject *list = PyList_New(count);
  for (intptr_t i = 0; list && i < count; i++) {
    MlirAttribute row = mlirArrayAttrGetElement(rows, i);
    long long taken = mlirIntegerAttrGetValueInt(entry_of(row, "taken"));
    PyList_SetItem(list, i,
                   Py_BuildValue("(NNLN)", names_of(row), text_of(entry_of(row, "tile")), taken, choices_of(row)));
  }
  if (PyErr_Occurred())
    Py_CLEAR(list);
  return list;
}

/* work(words, grid, block) -> dict: what one block does, of a module at the stage "legal" */
static PyObject *module_work(PyObject *object, PyObject *args) {
  PyObject *words;
  int32_t grid[3], block[3];
  int64_t values[512];
  tw_work_t work;
  if (!PyArg_ParseTuple(args, "O!(iii)(iii)", &PyList_Type, &words, &grid[0], &grid[1], &grid[2], &block[0], &block[1],
                        &block[2]))
    return NULL;
  Py_ssize_t count = PyList_Size(words);
  for (Py_ssize_t i = 0; i < count && i < 512; i++)
    values[i] = PyLong_AsLongLong(PyList_GetItem(words, i));
  if (PyErr_Occurred())
    return NULL;
  if (count > 512 || !tw_count_work(((module_object_t *)object)->module, values, (size_t)count, grid, block, &work)) {
    PyErr_SetString(PyExc_ValueError, "work() needs a kernel at the stage \"legal\", and its parameter words");
    return NULL;
  }
  return Py_BuildValue("{sNsNsdsdsisdsdsdsdsN}", "loaded", tw_ext_floats(work.loaded, TW_WORK_ARRAYS), "stored",
                       tw_ext_floats(work.stored, TW_WORK_ARRAYS), "mma_flop", work.mma_flop, "mma_operand_bytes",
                       work.mma_operand_bytes, "mma_bits", work.mma_bits, "elements", work.elements, "functions",
                       work.functions, "carried_bytes", work.carried_bytes, "iteration_bytes", work.iteration_bytes,
                       "unknown", PyBool_FromLong(work.unknown));
}

/* A module is of one thread at a time where there is no GIL. Its methods have the lock to their end, which may run code
 * of Python's (an error is made there), but none that has the module. */
#define DEFINE_LOCKED(method)                                                                                          \
  static PyObject *method##_locked(PyObject *object, PyObject *args) {                                                 \
    TW_LOCK((module_object_t *)object);                                                                                \
    PyObject *result = method(object, args);                                                                           \
    TW_UNLOCK((module_object_t *)object);                                                                              \
    return result;                                                                                                     \
  }
DEFINE_LOCKED(module_work)
DEFINE_LOCKED(module_text)
DEFINE_LOCKED(module_lower)
DEFINE_LOCKED(module_run)
DEFINE_LOCKED(module_keep)
DEFINE_LOCKED(module_replan)
DEFINE_LOCKED(module_verify)
DEFINE_LOCKED(module_emit)
DEFINE_LOCKED(module_attribute)
DEFINE_LOCKED(module_does_not_fit)
DEFINE_LOCKED(module_kernels)
DEFINE_LOCKED(module_layouts)
DEFINE_LOCKED(module_layout_costs)

static PyMethodDef module_methods[] = {
    {"work", module_work_locked, METH_VARARGS,
     "work(words, grid, block) -> dict: what one block does, counted at the stage \"legal\"."},
    {"text", module_text_locked, METH_VARARGS,
     "text(locations=False, verified=False) -> str: the IR; verified: verify() has just said that it is well formed."},
    {"lower", module_lower_locked, METH_VARARGS,
     "lower(stage) -> diagnostics: lower in place to a stage of the target."},
    {"run", module_run_locked, METH_VARARGS, "run(pipeline) -> diagnostics: run a textual MLIR pipeline in place."},
    {"keep", module_keep_locked, METH_NOARGS, "keep(): remember the module as it is, for replan()."},
    {"replan", module_replan_locked, METH_VARARGS,
     "replan(plan, reason): back to what keep() remembers, with another plan."},
    {"verify", module_verify_locked, METH_NOARGS, "verify(): raise if the IR is malformed."},
    {"emit", module_emit_locked, METH_VARARGS, "emit(kind) -> bytes: 0 LLVM IR, 1 assembly or PTX, 2 object file."},
    {"attribute", module_attribute_locked, METH_VARARGS,
     "attribute(name) -> str | None: an attribute of the module, printed."},
    {"does_not_fit", module_does_not_fit_locked, METH_NOARGS,
     "does_not_fit() -> str: what a kernel took too much of, upon an error; else \"\"."},
    {"kernels", module_kernels_locked, METH_NOARGS,
     "kernels() -> [(name, launch record)], from the stage \"layout\" on."},
    {"layouts", module_layouts_locked, METH_VARARGS,
     "layouts(kernel) -> [(names, tile, taken, [(kind, bits, slots)])]: what tiles with names could have, at the stage "
     "\"layout\"."},
    {"layout_costs", module_layout_costs_locked, METH_VARARGS,
     "layout_costs(kernel) -> ints: what its layouts cost, then the runners-up, at the stage \"layout\"."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot module_slots[] = {
    {Py_tp_dealloc, module_dealloc},
    {Py_tp_methods, module_methods},
    {Py_tp_doc, "A module of IR."},
    {0, NULL},
};

static PyType_Spec module_spec = {"tilewright._core.Module", sizeof(module_object_t), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, module_slots};

static PyObject *parse(PyObject *self, PyObject *args) {
  const char *text;
  if (!PyArg_ParseTuple(args, "s", &text))
    return NULL;
  MlirContext context = tw_ext_context_take();
  diagnostics_t *scope = diagnostics_begin(context);
  MlirStringRef source = mlirStringRefCreateFromCString(text);
  MlirModule module = {NULL};
  if (tw_text_is_readable(context, mlirStringRefCreateFromCString("-"), source))
    module = mlirModuleCreateParse(context, source);
  PyObject *status = diagnostics_end(scope, mlirModuleIsNull(module));
  if (!status) {
    tw_ext_context_give(context);
    return NULL;
  }
  Py_DECREF(status);
  return tw_ext_module_new(tw_state_of(self), context, module);
}

static PyObject *target_problem(PyObject *unused, PyObject *args) {
  (void)unused;
  const char *name;
  char why[400];
  if (!PyArg_ParseTuple(args, "s", &name))
    return NULL;
  if (tw_target_known(mlirStringRefCreateFromCString(name), sizeof why, why))
    Py_RETURN_NONE;
  return PyUnicode_FromString(why);
}

static PyObject *next_plan(PyObject *unused, PyObject *args) {
  (void)unused;
  int plan;
  const char *reason;
  if (!PyArg_ParseTuple(args, "is", &plan, &reason))
    return NULL;
  return PyLong_FromLong(tw_next_plan(plan, mlirStringRefCreateFromCString(reason)));
}

/* passes(target) -> [(stage, name, group)]: ours, in the order in which they run */
static PyObject *passes(PyObject *self, PyObject *args) {
  const char *target;
  (void)self;
  if (!PyArg_ParseTuple(args, "s", &target))
    return NULL;
  unsigned wanted = strncmp(target, "cpu", 3) ? TW_ON_GPU : TW_ON_CPU;
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list && i < tw_num_passes; i++) {
    const tw_pass_row_t *row = &tw_passes[i];
    if (!row->run || !(row->targets & wanted))
      continue;
    PyObject *entry = Py_BuildValue("(sss)", row->stage, row->name, row->group);
    if (!entry || PyList_Append(list, entry))
      Py_CLEAR(list);
    Py_XDECREF(entry);
  }
  return list;
}

static PyObject *stage_passes(PyObject *unused, PyObject *args) {
  const char *target, *stage;
  (void)unused;
  if (!PyArg_ParseTuple(args, "ss", &target, &stage))
    return NULL;
  char pipeline[2048];
  if (!tw_stage_passes(mlirStringRefCreateFromCString(target), stage, sizeof pipeline, pipeline))
    return PyErr_Format(PyExc_ValueError, "target %s has no stage %s", target, stage);
  return PyUnicode_FromString(pipeline);
}

static PyMethodDef functions[] = {
    {"passes", passes, METH_VARARGS,
     "passes(target) -> list: (stage, name, group) of each pass, in the order in which they run."},
    {"stage_passes", stage_passes, METH_VARARGS,
     "stage_passes(target, stage) -> str: the pipeline that leads to it from the stage before, for tw-opt."},
    {"next_plan", next_plan, METH_VARARGS,
     "next_plan(plan, reason) -> int: the plan to try after one that did not fit; 0: none is left."},
    {"target_problem", target_problem, METH_VARARGS,
     "target_problem(name) -> str | None: why no code can be made for a target."},
    {"parse", parse, METH_VARARGS, "parse(text) -> Module: read textual IR."},
    {NULL, NULL, 0, NULL},
};

int tw_ext_add_compile(PyObject *module) {
  if (tw_ext_add_type(module, &module_spec, &tw_state_of(module)->module))
    return -1;
  return PyModule_AddFunctions(module, functions);
}
