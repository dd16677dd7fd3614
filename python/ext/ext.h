/* ext.h - shared by the files of the extension; CPython's limited API, 3.11 and later */
#ifndef TILEWRIGHT_PYTHON_EXT_H
#define TILEWRIGHT_PYTHON_EXT_H

#include "state.h"

#include "tilewright/base.h"

#include "mlir-c/IR.h"

/* Each part of the extension adds its functions and types to the module; 0, or -1 with an error set. */
int tw_ext_add_compile(PyObject *module);
int tw_ext_add_promotion(PyObject *module);
int tw_ext_add_launch(PyObject *module);
int tw_ext_add_builder(PyObject *module);
int tw_ext_add_jit(PyObject *module);
int tw_ext_add_quiet(PyObject *module);

/* What MLIR prints goes into a tw_strbuf_t, and from there (taken) into a str; NULL with an exception. */
void tw_ext_text_put(MlirStringRef piece, void *text);
PyObject *tw_ext_text_take(tw_strbuf_t *text);

/* A context for a module, and back with it when there is nothing left in it. */
MlirContext tw_ext_context_take(void);
void tw_ext_context_give(MlirContext context);

/* Makes the Python object `Module` of a module; takes both the module and the context. */
PyObject *tw_ext_module_new(const tw_state_t *state, MlirContext context_owned, MlirModule module_owned);

#endif /* TILEWRIGHT_PYTHON_EXT_H */
