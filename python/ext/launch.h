/* launch.h - what the launching half of the extension shares: errors, array import, streams */
#ifndef TILEWRIGHT_PYTHON_LAUNCH_H
#define TILEWRIGHT_PYTHON_LAUNCH_H

#include "state.h"

#include "tilewright/runtime.h"

/* --- errors.c: from the runtime's status to an exception -------------------------------------------- */

/* The class of tilewright.errors for a code, that of this interpreter; new reference. */
PyObject *tw_ext_error_class(tw_code_t code);
/* Raises the status as an exception, `before` (may be NULL) in front of its message. Takes the status;
 * returns NULL. */
PyObject *tw_ext_raise(tw_status_t status, const char *before);
/* The same with a formatted message, as PyErr_Format. Returns NULL. */
PyObject *tw_ext_error(tw_code_t code, const char *format, ...);
/* The same about an object that is not what was wanted: the one %U in the format is its type's name. */
PyObject *tw_ext_error_type(tw_code_t code, const char *format, PyObject *object);
/* Replaces the pending exception by one of ours, which names it and has it as its cause. */
void tw_ext_error_from_pending(tw_code_t code, const char *what);

/* --- array.c (with interface.c, dlpack.c, stream.c, float4.c): arrays of any library ----- */

/* What must stay alive until a launch is over (CPU) or queued (GPU): capsules, buffers. */
typedef struct tw_hold {
  struct tw_hold *next;
  PyObject *object;                   /* owned or NULL */
  tw_dl_managed_versioned_t *managed; /* owned or NULL */
  Py_buffer buffer;                   /* owned if buffer.obj */
  struct tw_packed_floats *packed;    /* owned or NULL: float4.c */
  bool until_done;                    /* by a GPU: deferred.c */
} tw_hold_t;
void tw_hold_release(tw_hold_t *holds); /* the whole list; keeps a pending exception */

/* After a launch on a GPU: takes what must be kept until it is done out of the list (deferred.c). */
void tw_ext_defer(tw_state_t *state, tw_hold_t **holds, int device, void *stream);
void tw_ext_sweep(tw_state_t *state); /* lets go what launches that are done have kept */
void tw_ext_drop_deferred(tw_state_t *state);

/* The stream of a launch, decided by the argument of launch() or, for None, by the arrays. */
typedef struct tw_stream {
  void *handle;
  bool decided;     /* handle is valid */
  bool given;       /* by the caller, and not None */
  PyObject *object; /* borrowed: what the caller gave, if the handle is its and may end with it; else NULL */
  PyObject *scan;   /* borrowed tuple or NULL: all arguments, to look for the stream in */
} tw_stream_t;

/* What the arrays of one launch are read with. */
typedef struct tw_reader {
  tw_state_t *state;  /* borrowed */
  tw_stream_t stream; /* decided by the first GPU array if the caller gave none; work of its producer comes before it */
  tw_hold_t *holds;   /* owned: what must stay alive */
} tw_reader_t;

/* Reads `object` into `out`; 0, or -1 with an exception that speaks of "it". */
int tw_ext_array_read(PyObject *object, tw_reader_t *reader, tw_array_t *out);

/* Whether an object looks like an array (has one of the protocols), to tell "not an array" from
 * "an array that we refuse". */
bool tw_ext_is_array(tw_state_t *state, PyObject *object);

/* numpy.generic if `object` is a NumPy scalar. */
bool tw_ext_is_numpy_scalar(tw_state_t *state, PyObject *object);

/* The dtype of object.dtype by name; TW_DTYPE_NONE and no exception if it is not one of ours. */
tw_dtype_t tw_ext_dtype_of(PyObject *object);

/* Reads launch()'s stream argument: None, int, __cuda_stream__ and the attributes of known classes. */
int tw_ext_stream_read(tw_state_t *state, PyObject *object, tw_stream_t *out);

/* Decodes the bytes of a launch record; 0, or -1 with an exception (record.c). */
int tw_ext_record_read(PyObject *bytes, tw_launch_record_t *out);
PyObject *tw_ext_record_bytes(const tw_launch_record_t *record);

/* --- each file's types and functions, gathered by tw_ext_add_launch ----------------------------------- */

int tw_ext_array_add(PyObject *module);        /* array.c */
int tw_ext_record_add(PyObject *module);       /* record.c */
int tw_ext_variant_add(PyObject *module);      /* variant.c */
int tw_ext_dispatch_add(PyObject *module);     /* dispatch.c */
int tw_ext_call_plan_add(PyObject *module);    /* call_plan.c */
int tw_ext_memory_add(PyObject *module);       /* memory.c */
int tw_ext_host_memory_add(PyObject *module);  /* host_memory.c */
int tw_ext_device_array_add(PyObject *module); /* device_array.c */

#endif
