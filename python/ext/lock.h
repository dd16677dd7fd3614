/* lock.h - what stands in for the GIL in a Python that has none
 *
 * Three ways, by what is shared:
 *   - What is found once and then stays (a class, a variant for other grids) is published: the first thread's is taken.
 *   - What changes (the table of a kernel, the last stream of a memory) has a mutex. Under it runs no code of Python's,
 *     not even that of an object's end: what a change lets go is let go behind it.
 *   - What is looked up in a dict or list that others may change comes as a reference of our own.
 * With a GIL, which is held around all of it, the mutexes are nothing. */
#ifndef TILEWRIGHT_PYTHON_LOCK_H
#define TILEWRIGHT_PYTHON_LOCK_H

#include "state.h"

#ifdef TW_FREE_THREADED
#define TW_LOCK(owner) PyMutex_Lock(&(owner)->lock)
#define TW_UNLOCK(owner) PyMutex_Unlock(&(owner)->lock)
#else
#define TW_LOCK(owner) ((void)(owner))
#define TW_UNLOCK(owner) ((void)(owner))
#endif

/* What another thread may publish meanwhile, and before that all that belongs to it. */
#define TW_PUBLISHED(place) __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
#define TW_PUBLISH(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELEASE)

/* Publishes an object (taken) unless there is one: the one that is there, borrowed; NULL of NULL. */
static inline PyObject *tw_publish(PyObject **place, PyObject *fresh) {
  PyObject *there = NULL;
  if (!fresh || __atomic_compare_exchange_n(place, &there, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return fresh;
  Py_DECREF(fresh);
  return there;
}

/* The value of a key: new reference; NULL, with an exception or without. */
static inline PyObject *tw_dict_get(PyObject *dict, PyObject *key) {
#ifdef TW_FREE_THREADED
  PyObject *found;
  return PyDict_GetItemRef(dict, key, &found) > 0 ? found : NULL;
#else
  return Py_XNewRef(PyDict_GetItemWithError(dict, key));
#endif
}

/* Gives a key a value unless it has one: the one that it has then, a new reference; NULL with an exception. */
static inline PyObject *tw_dict_put(PyObject *dict, PyObject *key, PyObject *value) {
#ifdef TW_FREE_THREADED
  PyObject *found;
  return PyDict_SetDefaultRef(dict, key, value, &found) < 0 ? NULL : found;
#else
  return PyDict_SetItem(dict, key, value) ? NULL : Py_NewRef(value);
#endif
}

/* An entry of a list: new reference, NULL without an exception where it has no such. */
static inline PyObject *tw_list_get(PyObject *list, Py_ssize_t i) {
#ifdef TW_FREE_THREADED
  PyObject *found = PyList_GetItemRef(list, i);
  if (!found)
    PyErr_Clear();
  return found;
#else
  return i < PyList_Size(list) ? Py_NewRef(PyList_GetItem(list, i)) : NULL;
#endif
}

#endif
