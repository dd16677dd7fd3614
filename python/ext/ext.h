/* ext.h - shared by the files of the extension; CPython's limited API, 3.11 and later */
#ifndef TILEWRIGHT_PYTHON_EXT_H
#define TILEWRIGHT_PYTHON_EXT_H

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>

#include "mlir-c/IR.h"

/* Each part of the extension adds its functions and types to the module; 0, or -1 with an error set. */
int tw_ext_add_compile(PyObject *module);
int tw_ext_add_promotion(PyObject *module);
int tw_ext_add_launch(PyObject *module);
int tw_ext_add_builder(PyObject *module);
int tw_ext_add_jit(PyObject *module);

/* The Python type `Module` owns an MLIR module and its context. Returns a borrowed handle, or a null
 * module with TypeError set. */
MlirModule tw_ext_module_get(PyObject *object);
/* Makes the Python object of a module; takes both the module and the context. */
PyObject *tw_ext_module_new(MlirContext context_owned, MlirModule module_owned);

/* Diagnostics of MLIR while `scope` lives, gathered to raise as one exception. */
typedef struct tw_ext_diagnostics tw_ext_diagnostics_t;
tw_ext_diagnostics_t *tw_ext_diagnostics_begin(MlirContext context);
/* Ends the scope. If `failed`, raises tilewright.errors.CompilationError from the diagnostics and returns NULL;
 * else returns the list of
 * (severity, location, message): 1 is a warning, 2 a note, 3 a remark. */
PyObject *tw_ext_diagnostics_end(tw_ext_diagnostics_t *scope, int failed);

#endif /* TILEWRIGHT_PYTHON_EXT_H */
