/* builder.h - `_core.Builder` and the objects that it gives out, shared by the files of this folder
 *
 *   builder.c      the builder's life, its methods
 *   types.c        types by their text
 *   locations.c    where the next ops come from
 *   blocks.c       blocks and values, and which of them can be seen
 *   attributes.c   attributes from Python's values
 *   operations.c   ops and constants
 *   repeats.c      ops once more, for other values
 *
 * Functions that fail have set an exception. */
#ifndef TILEWRIGHT_PYTHON_BUILDER_H
#define TILEWRIGHT_PYTHON_BUILDER_H

#include "python/ext/ext.h"

#include "mlir-c/Diagnostics.h"

typedef enum { BLOCK_NEW, BLOCK_OPEN, BLOCK_CLOSED } tw_block_phase_t;

typedef struct tw_block_state {
  struct tw_block_state *next;  /* all blocks of the builder, the one entered (or, before that, made) last first */
  struct tw_block_state *outer; /* what was open when this block was entered */
  MlirBlock block;
  MlirOperation last; /* of its ops; null where there is none */
  tw_block_phase_t phase;
  bool owned; /* by us, until an op takes it */
} tw_block_state_t;

typedef struct tw_py_builder {
  PyObject ob_base;
  tw_state_t *state;   /* borrowed: the type keeps it alive */
  MlirContext context; /* owned until finish() */
  MlirModule module;   /* owned until finish() */
  MlirDiagnosticHandlerID handler;
  tw_block_state_t *blocks;  /* owned */
  tw_block_state_t *top;     /* borrowed: the innermost open block; at the base, the module's body */
  PyObject *types;           /* owned: text -> address of the type */
  PyObject *facts;           /* owned: address of a type -> (text, shape or None, element) */
  PyObject *messages;        /* owned: diagnostics since the last op began */
  MlirAttribute file;        /* a string attribute, for locations */
  MlirAttribute function;    /* the name of the one that is called, or null */
  MlirLocation here, caller; /* of the next ops; of the call that they are in */
  bool in_call;
  bool has_lost_ops; /* blocks went with an op that was refused */
#ifdef TW_FREE_THREADED
  unsigned long thread; /* that made it, and alone uses it and the lists that it is given */
#endif
} tw_py_builder_t;

/* What a builder gives out begins like this. */
typedef struct tw_built {
  PyObject ob_base;
  tw_py_builder_t *builder; /* owned */
} tw_built_t;

typedef struct tw_block {
  tw_built_t base;
  tw_block_state_t *state;
} tw_block_t;

typedef struct tw_value {
  tw_built_t base;
  tw_block_state_t *state; /* of the block that it is defined in */
  MlirValue value;
} tw_value_t;

typedef struct tw_attribute {
  tw_built_t base;
  MlirAttribute attribute;
} tw_attribute_t;

typedef struct tw_location {
  tw_built_t base;
  MlirLocation location;
} tw_location_t;

/* --- builder.c ------------------------------------------------------------------------------------- */

/* Whether the builder is of no use any more, or, without a GIL, another thread's; then with an exception. */
bool tw_builder_is_finished(const tw_py_builder_t *self);

/* An object of one of the types above; NULL: out of memory. Its fields behind `base` are the caller's to set. */
void *tw_built_new(PyTypeObject *type, tw_py_builder_t *builder);
void tw_built_dealloc(PyObject *object);

/* Diagnostics: forgotten before what may fail, and raised as a BuildError; `otherwise` where there are none. Returns
 * NULL. */
void tw_builder_forget_messages(tw_py_builder_t *self);
PyObject *tw_builder_raise(tw_py_builder_t *self, const char *otherwise);

/* The length of a list or tuple, 0 for None or NULL; -1 for what is neither. */
Py_ssize_t tw_sequence_size(PyObject *sequence, const char *what);
PyObject *tw_sequence_item(PyObject *sequence, Py_ssize_t i); /* borrowed */

/* --- types.c --------------------------------------------------------------------------------------- */

/* The type of a text; a null type if there is none. */
MlirType tw_builder_read_type(tw_py_builder_t *self, PyObject *text);
/* (text, shape or None, element text) of a type; borrowed. */
PyObject *tw_builder_type_facts(tw_py_builder_t *self, MlirType type);

/* --- blocks.c -------------------------------------------------------------------------------------- */

/* Of a block of the IR, in front of the builder's list. */
tw_block_state_t *tw_block_state_new(tw_py_builder_t *self, MlirBlock block, bool owned);
void tw_builder_destroy_blocks(tw_py_builder_t *self);
PyObject *tw_value_new(tw_py_builder_t *self, tw_block_state_t *state, MlirValue value);
/* The value of an operand; a null value if it may not be used here. */
MlirValue tw_builder_read_value(tw_py_builder_t *self, PyObject *object);

/* --- attributes.c ---------------------------------------------------------------------------------- */

/* Adds the attributes of a dict (or None) to an op. */
int tw_builder_read_attributes(tw_py_builder_t *self, PyObject *dict, MlirOperationState *state);

/* --- operations.c ---------------------------------------------------------------------------------- */

void tw_builder_append(tw_py_builder_t *self, MlirOperation op);

/* --- methods of Builder, gathered by builder.c; types of what they give, added to the module -------------- */

PyObject *tw_builder_file(PyObject *self, PyObject *path);
PyObject *tw_builder_at(PyObject *self, PyObject *const *arguments, Py_ssize_t count);
PyObject *tw_builder_call(PyObject *self, PyObject *unused);
PyObject *tw_builder_end_call(PyObject *self, PyObject *outer);
PyObject *tw_builder_name(PyObject *self, PyObject *args);
PyObject *tw_builder_block(PyObject *self, PyObject *arguments);
PyObject *tw_builder_enter(PyObject *self, PyObject *block);
PyObject *tw_builder_leave(PyObject *self, PyObject *unused);
PyObject *tw_builder_attribute(PyObject *self, PyObject *text);
PyObject *tw_builder_set(PyObject *self, PyObject *arguments);
PyObject *tw_builder_op(PyObject *self, PyObject *const *arguments, Py_ssize_t count);
PyObject *tw_builder_constant(PyObject *self, PyObject *const *arguments, Py_ssize_t count);
PyObject *tw_builder_span(PyObject *self, PyObject *unused);
PyObject *tw_builder_end_span(PyObject *self, PyObject *span);
PyObject *tw_builder_repeat(PyObject *self, PyObject *const *arguments, Py_ssize_t count);

int tw_location_add(PyObject *module);
int tw_block_add(PyObject *module);
int tw_attribute_add(PyObject *module);
int tw_span_add(PyObject *module);

#endif
