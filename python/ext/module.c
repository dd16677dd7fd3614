/* module.c - the extension module `tilewright._core`: one method table gathered from the parts beside it */
#define PY_SSIZE_T_CLEAN
#include "ext.h"

#include "tilewright/dialect.h"

#include "llvm-c/Target.h"

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    "tilewright._core",
    "The compiler and runtime behind tilewright.",
    -1,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
};

/* Each part adds its functions and types. */
static int (*const parts[])(PyObject *module) = {tw_ext_add_compile, tw_ext_add_builder, tw_ext_add_promotion,
                                                 tw_ext_add_launch, tw_ext_add_jit};

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

PyMODINIT_FUNC PyInit__core(void) {
  PyObject *module = PyModule_Create(&module_def);
  if (!module)
    return NULL;
  initialize_llvm();
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (parts[i](module) < 0) {
      Py_DECREF(module);
      return NULL;
    }
  return module;
}
