/* module.c - the extension module `tilewright._core`: functions and types from the parts beside it, and its state
 *
 * Subinterpreters have a module each. One with a GIL of its own cannot import us: Python 3.12 and later say so in an
 * ImportError. A Python without a GIL goes without it (lock.h). */
#include "ext.h"
#include "launch.h"

#include "tilewright/dialect.h"

#include "llvm-c/Target.h"

#include <pthread.h>
#include <string.h>

/* Once a process, whoever imports us. */
static void initialize_llvm(void) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  tw_register_passes();
}

/* Each part adds its functions and types. */
static int (*const parts[])(PyObject *module) = {tw_ext_add_compile, tw_ext_add_builder, tw_ext_add_promotion,
                                                 tw_ext_add_launch,  tw_ext_add_jit,     tw_ext_add_quiet};

static int module_exec(PyObject *module) {
  static pthread_once_t initialized = PTHREAD_ONCE_INIT;
  pthread_once(&initialized, initialize_llvm);
  tw_state_t *state = tw_state_of(module);
  state->kernel_name = PyUnicode_InternFromString("kernel");
  state->code_name = PyUnicode_InternFromString("__code__");
  if (!state->kernel_name || !state->code_name)
    return -1;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (parts[i](module) < 0)
      return -1;
  return 0;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg) {
  tw_state_t *state = tw_state_of(module);
#define VISIT(type, name) Py_VISIT((PyObject *)state->name);
  TW_STATE_OBJECTS(VISIT)
#undef VISIT
  Py_VISIT((PyObject *)state->exchange.type);
  for (int i = 0; i < TW_KNOWN_TYPES; i++)
    Py_VISIT((PyObject *)state->known[i].type);
  return 0;
}

static int module_clear(PyObject *module) {
  tw_state_t *state = tw_state_of(module);
  tw_ext_drop_deferred(state);
#define CLEAR(type, name) Py_CLEAR(state->name);
  TW_STATE_OBJECTS(CLEAR)
#undef CLEAR
  Py_CLEAR(state->exchange.type);
  for (int i = 0; i < TW_KNOWN_TYPES; i++)
    Py_CLEAR(state->known[i].type);
  for (int i = 0; i < TW_STREAM_NAMES; i++)
    Py_CLEAR(state->stream_names[i]);
  return 0;
}

static void module_free(void *module) { module_clear(module); }

static PyModuleDef_Slot slots[] = {{Py_mod_exec, module_exec},
#ifdef TW_FREE_THREADED
                                   {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
                                   {0, NULL}};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tilewright._core",
    .m_doc = "The compiler and runtime behind tilewright.",
    .m_size = sizeof(tw_state_t),
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

int tw_ext_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **out_type) {
  *out_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
  return *out_type ? PyModule_AddObjectRef(module, strrchr(spec->name, '.') + 1, (PyObject *)*out_type) : -1;
}

tw_state_t *tw_state_of_subclass(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  for (; type; type = PyType_GetSlot(type, Py_tp_base)) {
    PyObject *module = PyType_GetModule(type); /* borrowed */
    if (module && PyModule_GetDef(module) == &module_def)
      return tw_state_of(module);
    PyErr_Clear(); /* a class of Python's */
  }
  return NULL;
}

PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&module_def); }
