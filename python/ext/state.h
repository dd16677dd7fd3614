/* state.h - what the extension keeps in its module: one state for each module object
 *
 * An interpreter that imports the extension has a module of its own, and so has a test that imports it twice. Nothing
 * of Python's stands outside of it. What a whole process shares holds no Python object: LLVM's targets and MLIR's
 * passes (module.c), contexts (context.c), and the runtime's driver, threads and caches. */
#ifndef TILEWRIGHT_PYTHON_STATE_H
#define TILEWRIGHT_PYTHON_STATE_H

#if !defined Py_LIMITED_API && !defined TW_FREE_THREADED
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* What is known of a type of arrays. */
typedef struct tw_known_type {
  PyTypeObject *type;                    /* owned, so that its address is not used again */
  const struct tw_dl_exchange *exchange; /* NULL: read it another way */
} tw_known_type_t;

/* What the module owns, as `X(C type, name)`: its types, then what was found elsewhere (NULL: not needed yet). */
#define TW_STATE_OBJECTS(X)                                                                                            \
  X(PyTypeObject, dispatcher)                                                                                          \
  X(PyTypeObject, cpu_kernel)                                                                                          \
  X(PyTypeObject, cuda_kernel)                                                                                         \
  X(PyTypeObject, call_plan)                                                                                           \
  X(PyTypeObject, planned)                                                                                             \
  X(PyTypeObject, memory)                                                                                              \
  X(PyTypeObject, device_array)                                                                                        \
  X(PyTypeObject, array_view)                                                                                          \
  X(PyTypeObject, module)                                                                                              \
  X(PyTypeObject, code)                                                                                                \
  X(PyTypeObject, builder)                                                                                             \
  X(PyTypeObject, block)                                                                                               \
  X(PyTypeObject, value)                                                                                               \
  X(PyTypeObject, attribute)                                                                                           \
  X(PyTypeObject, location)                                                                                            \
  X(PyTypeObject, span)                                                                                                \
  X(PyObject, build_error)                                                                                             \
  X(PyObject, ndarray)     /* numpy.ndarray */                                                                         \
  X(PyObject, generic)     /* numpy.generic */                                                                         \
  X(PyObject, dtype)       /* tilewright.dtype.DType */                                                                \
  X(PyObject, enumeration) /* enum.Enum */                                                                             \
  X(PyTypeObject, kernel)  /* type of the last object that was a dispatcher */                                         \
  X(PyTypeObject, stream)  /* type of the last stream that was an object */                                            \
  X(PyObject, kernel_name) /* "kernel" and "__code__" as Python keeps names */                                         \
  X(PyObject, code_name)

/* Owners of arrays that a GPU still works on (deferred.c). */
typedef struct tw_deferred tw_deferred_t;

/* Without a GIL what is known of a type stays: it is read without a lock. */
#ifdef TW_FREE_THREADED
enum { TW_KNOWN_TYPES = 64, TW_STREAM_NAMES = 3 };
#else
enum { TW_KNOWN_TYPES = 8, TW_STREAM_NAMES = 3 };
#endif

/* A member of what several threads change (lock.h). */
#ifdef TW_FREE_THREADED
#define TW_MUTEX PyMutex lock;
#else
#define TW_MUTEX
#endif

typedef struct tw_state {
#define FIELD(type, name) type *name;
  TW_STATE_OBJECTS(FIELD)
#undef FIELD
  tw_known_type_t exchange;              /* the first type that had the exchange API; of any other: */
  tw_known_type_t known[TW_KNOWN_TYPES]; /* in turn */
  unsigned next_known;
  PyObject *stream_names[TW_STREAM_NAMES]; /* owned: attributes in which streams keep their handle */
  int stream_name;                         /* the one of `stream` */
  tw_deferred_t *deferred;                 /* owned list */
  TW_MUTEX
} tw_state_t;

/* The state of the module that a function of it is given. */
static inline tw_state_t *tw_state_of(PyObject *module) { return PyModule_GetState(module); }

/* The state of the module whose type an object has, a type that nobody can derive from. */
static inline tw_state_t *tw_state_of_object(PyObject *object) { return PyType_GetModuleState(Py_TYPE(object)); }
/* The same where its type may be derived from one of ours. */
tw_state_t *tw_state_of_subclass(PyObject *object);

/* Makes a type of the module, and adds it by its name. 0, or -1 with an exception. */
int tw_ext_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **out_type);

/* Numbers as a tuple; NULL with an exception. (text.c) */
PyObject *tw_ext_integers(const int64_t *values, Py_ssize_t count);
PyObject *tw_ext_floats(const double *values, Py_ssize_t count);

#endif
