/* import.h - what the files that import arrays share; see launch.h for what they offer */
#ifndef TILEWRIGHT_PYTHON_IMPORT_H
#define TILEWRIGHT_PYTHON_IMPORT_H

#include "launch.h"
#include "lock.h"

/* --- array.c ----------------------------------------------------------------------------------- */

/* Raise, and return -1. */
int tw_ext_fail(tw_code_t code, const char *text);
int tw_ext_fail_status(tw_status_t status); /* takes it */
/* That kernels have no arrays of an object's dtype, or of `fallback`. */
int tw_ext_dtype_error(PyObject *object, const char *fallback);

/* getattr that turns AttributeError into *out == NULL; -1 for other exceptions. */
int tw_ext_optional_attr(PyObject *object, const char *name, PyObject **out);

/* A fresh entry of the list of what must stay alive; NULL with MemoryError set. */
tw_hold_t *tw_ext_hold_new(tw_hold_t **holds);
/* Keeps a reference (taken) until the launch is over. */
int tw_ext_hold_object(tw_hold_t **holds, PyObject *object_owned);

/* Keeps what a CUDA Array Interface (taken) speaks of until the kernel is done. */
int tw_ext_hold_owner(tw_hold_t **holds, PyObject *owner, PyObject *interface_owned);

/* --- interface.c ------------------------------------------------------------------------------- */

int tw_ext_read_numpy(PyObject *object, tw_array_t *out, tw_hold_t **holds);
int tw_ext_read_buffer(PyObject *object, tw_array_t *out, tw_hold_t **holds);
int tw_ext_read_cuda_interface(PyObject *object, PyObject *interface, tw_stream_t *stream, tw_array_t *out);

/* What a __cuda_array_interface__ says, without an object that has it. */
int tw_ext_read_cuda_description(PyObject *interface, tw_stream_t *stream, tw_array_t *out);

/* --- device_array.c ---------------------------------------------------------------------------- */

bool tw_ext_is_device_array(const tw_state_t *state, PyObject *object);
int tw_ext_read_device_array(PyObject *object, tw_reader_t *reader, tw_array_t *out);

/* --- float4.c ---------------------------------------------------------------------------------- */

/* `array` has one float4 in a byte, and strides in bytes: makes it a packed copy, which goes back to where it came
 * from when the launch is over. */
int tw_ext_pack_float4(tw_array_t *array, tw_hold_t **holds);
void tw_ext_unpack_float4(struct tw_packed_floats *packed); /* takes it */

/* --- dlpack.c ---------------------------------------------------------------------------------- */

/* The same for any type but the first that had the API, by what is known of the last ones. */
const tw_dl_exchange_t *tw_ext_exchange_find(tw_state_t *state, PyTypeObject *type);

/* What is known of the type that arrays have most often: the first that had the API. */
static inline tw_known_type_t tw_ext_most_known(const tw_state_t *state) {
#ifdef TW_FREE_THREADED
  PyTypeObject *type = TW_PUBLISHED(state->exchange.type);
  return (tw_known_type_t){type, type ? state->exchange.exchange : NULL};
#else
  return state->exchange;
#endif
}

/* The exchange API of a type whose objects may be read by it; NULL: none. */
static inline const tw_dl_exchange_t *tw_ext_exchange_of(tw_state_t *state, PyTypeObject *type) {
  return TW_LIKELY(TW_PUBLISHED(state->exchange.type) == type) ? state->exchange.exchange
                                                               : tw_ext_exchange_find(state, type);
}

int tw_ext_read_exchange(const tw_dl_exchange_t *exchange, PyObject *object, tw_reader_t *reader, tw_array_t *out);
/* The second half of it, for callers that have the tensor already. */
int tw_ext_read_exchanged(const tw_dl_exchange_t *exchange, const tw_dl_tensor_t *tensor, tw_stream_t *stream,
                          tw_array_t *out);
/* Raises for an exchange API that failed. Returns -1. */
int tw_ext_exchange_failed(void);
/* Decides the stream by the producer's current one. */
int tw_ext_exchange_stream(const tw_dl_exchange_t *exchange, int device_id, tw_stream_t *stream);
/* By a capsule from the bound method __dlpack__. */
int tw_ext_read_dlpack(PyObject *object, PyObject *method, tw_reader_t *reader, tw_array_t *out);

#endif
