/* jit.c - an object file becomes code of this process (ORC through llvm-c)
 *
 * What an object may call is listed here by address: the extension exports nothing that a linker could find. */
#include "ext.h"

#include "tilewright/kernel_calls.h"

#include "llvm-c/Core.h"
#include "llvm-c/Error.h"
#include "llvm-c/LLJIT.h"
#include "llvm-c/Orc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- what kernels call --- */

/* clang-format off */
#define REAL(X)                                                                                           \
  X(exp) X(exp2) X(log) X(log2) X(log10) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh)     \
  X(tanh) X(floor) X(ceil) X(trunc) X(round) X(roundeven) X(rint) X(nearbyint) X(fmod) X(pow) X(atan2)    \
  X(ldexp) X(fma) X(sqrt) X(erf)
/* clang-format on */

/* glibc has roundeven only behind a feature test. */
extern double roundeven(double);
extern float roundevenf(float);

static const struct {
  const char *name;
  void *address;
} symbols[] = {
#define BOTH(fn) {#fn, (void *)(fn)}, {#fn "f", (void *)(fn##f)},
    REAL(BOTH)
#undef BOTH
        {"memcpy", (void *)memcpy},
    {"memmove", (void *)memmove},
    {"memset", (void *)memset},
    {"tw_kernel_print_text", (void *)tw_kernel_print_text},
    {"tw_kernel_print_tile", (void *)tw_kernel_print_tile},
    {"tw_kernel_print_end", (void *)tw_kernel_print_end},
    {"tw_kernel_assert_failed", (void *)tw_kernel_assert_failed},
    {"tw_kernel_attention", (void *)&tw_kernel_attention},
    {"tw_kernel_look", (void *)tw_kernel_look},
    {"tw_simt_run", (void *)tw_simt_run},
    {"tw_simt_sync_threads", (void *)tw_simt_sync_threads},
    {"tw_simt_sync_grid", (void *)tw_simt_sync_grid},
    {"tw_simt_sync_vote", (void *)tw_simt_sync_vote},
    {"tw_simt_sync_warp", (void *)tw_simt_sync_warp},
    {"tw_simt_vote", (void *)tw_simt_vote},
    {"tw_simt_match", (void *)tw_simt_match},
    {"tw_simt_shuffle", (void *)tw_simt_shuffle},
    {"tw_simt_wait_in_vain", (void *)tw_simt_wait_in_vain},
    {"tw_simt_yield", (void *)tw_simt_yield},
    {"tw_simt_load_pair", (void *)tw_simt_load_pair},
    {"tw_simt_store_pair", (void *)tw_simt_store_pair},
};

enum { NUM_SYMBOLS = sizeof symbols / sizeof *symbols };

static LLVMErrorRef define_symbols(LLVMOrcLLJITRef jit) {
  LLVMOrcCSymbolMapPair pairs[NUM_SYMBOLS];
  for (size_t i = 0; i < NUM_SYMBOLS; i++) {
    pairs[i].Name = LLVMOrcLLJITMangleAndIntern(jit, symbols[i].name);
    pairs[i].Sym.Address = (LLVMOrcExecutorAddress)(uintptr_t)symbols[i].address;
    pairs[i].Sym.Flags = (LLVMJITSymbolFlags){LLVMJITSymbolGenericFlagsExported, 0};
  }
  return LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(jit), LLVMOrcAbsoluteSymbols(pairs, NUM_SYMBOLS));
}

/* --- Code: holds the memory of one object ---------------------------------------------------------------------- */

typedef struct {
  PyObject_HEAD LLVMOrcLLJITRef jit; /* owned */
  unsigned long long address;
} code_object_t;

static void code_dealloc(PyObject *object) {
  code_object_t *self = (code_object_t *)object;
  if (self->jit)
    LLVMConsumeError(LLVMOrcDisposeLLJIT(self->jit));
  PyTypeObject *type = Py_TYPE(object);
  PyObject_Free(object);
  Py_DECREF(type);
}

static PyObject *code_address(PyObject *object, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLongLong(((code_object_t *)object)->address);
}

static PyGetSetDef code_getset[] = {
    {"address", code_address, NULL, "Address of the function.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot code_slots[] = {
    {Py_tp_dealloc, code_dealloc},
    {Py_tp_getset, code_getset},
    {Py_tp_doc, "Machine code in this process; lives as long as this object."},
    {0, NULL},
};

static PyType_Spec code_spec = {"tilewright._core.Code", sizeof(code_object_t), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, code_slots};

static PyObject *raise_error(const char *what, LLVMErrorRef error) {
  char *message = LLVMGetErrorMessage(error);
  PyErr_Format(PyExc_RuntimeError, "%s: %s", what, message);
  LLVMDisposeErrorMessage(message);
  return NULL;
}

/* Adds the object to a new JIT and finds the symbol. */
static LLVMErrorRef link_object(code_object_t *self, const char *bytes, size_t size, const char *symbol) {
  LLVMErrorRef error = LLVMOrcCreateLLJIT(&self->jit, NULL);
  if (!error)
    error = define_symbols(self->jit);
  if (error)
    return error;
  LLVMMemoryBufferRef object = LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes, size, symbol);
  error = LLVMOrcLLJITAddObjectFile(self->jit, LLVMOrcLLJITGetMainJITDylib(self->jit), object);
  LLVMOrcExecutorAddress address = 0;
  if (!error)
    error = LLVMOrcLLJITLookup(self->jit, &address, symbol);
  self->address = address;
  return error;
}

static PyObject *load_object(PyObject *module, PyObject *args) {
  const char *bytes, *symbol;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "y#s", &bytes, &size, &symbol))
    return NULL;
  code_object_t *self = PyObject_New(code_object_t, tw_state_of(module)->code);
  if (!self)
    return NULL;
  self->jit = NULL;
  self->address = 0;
  LLVMErrorRef error = link_object(self, bytes, (size_t)size, symbol);
  if (error) {
    Py_DECREF(self);
    return raise_error("cannot load the object file of a kernel", error);
  }
  return (PyObject *)self;
}

static PyObject *take_assertion(PyObject *unused, PyObject *args) {
  (void)unused, (void)args;
  char *message = tw_kernel_take_assertion();
  if (message == NULL)
    Py_RETURN_NONE;
  PyObject *text = PyUnicode_FromString(message);
  free(message);
  return text;
}

static PyObject *note_assertion(PyObject *unused, PyObject *text) {
  (void)unused;
  Py_ssize_t size;
  const char *message = PyUnicode_AsUTF8AndSize(text, &size);
  if (message == NULL)
    return NULL;
  tw_kernel_assert_failed(message, size);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"load_object", load_object, METH_VARARGS, "load_object(bytes, symbol) -> Code: link an object file in process."},
    {"take_assertion", take_assertion, METH_NOARGS,
     "take_assertion() -> str | None: message of the first assertion that failed in a kernel since the last call."},
    {"note_assertion", note_assertion, METH_O,
     "note_assertion(str): an assertion has failed, which the launch that runs reports; for code of other origin."},
    {NULL, NULL, 0, NULL},
};

int tw_ext_add_jit(PyObject *module) {
  if (tw_ext_add_type(module, &code_spec, &tw_state_of(module)->code))
    return -1;
  return PyModule_AddIntConstant(module, "MOST_THREADS_IN_GRID", TW_SIMT_MOST_IN_GRID) < 0
             ? -1
             : PyModule_AddFunctions(module, functions);
}
