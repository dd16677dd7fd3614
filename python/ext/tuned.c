/* tuned.c - what tune.launch found for launches before: the kernel with its hints, and constants, by a launch's shape
 *
 * A row says, for the key words, extents and device of a launch as the caller gives it, which dispatcher to launch in
 * its place, and the key words that this one has for such arguments. So a warm launch reads its arguments once, as
 * launch() does: parameter words are the same for both, because constants are none.
 *
 * Rows lie in a table by hash, one a slot: what another one has pushed out is asked for again
 * (tilewright.tune.launching remembers it). The row of the last launch is tried first. */
#include "dispatch.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 1024 };

struct tw_tuned {
  tw_tuned_row_t *slots[SLOTS], *last; /* owned; `last` is one of them */
};

TW_HOT size_t tw_tuned_words(const call_t *call, uint64_t *out) {
  size_t count = call->key_count;
  memcpy(out, call->key, count * sizeof *out);
  count += tw_key_extents(call, out + count);
  out[count++] = (uint64_t)call->device_id;
  return count;
}

static uint64_t hash_words(const uint64_t *words, size_t count, const PyObject *owner) {
  uint64_t hash = (uint64_t)(uintptr_t)owner;
  for (size_t i = 0; i < count; i++) {
    hash = (hash ^ words[i]) * 0xFF51AFD7ED558CCDull;
    hash ^= hash >> 32;
  }
  return hash;
}

static inline bool is_for(const tw_tuned_row_t *row, const uint64_t *words, size_t count, const PyObject *owner) {
  return row && row->count == count && row->owner == owner && !memcmp(row->words, words, count * sizeof *words);
}

/* The row for words; NULL without an exception. */
TW_HOT static const tw_tuned_row_t *find_row(struct tw_tuned *tuned, const uint64_t *words, size_t count,
                                             const PyObject *over) {
  if (TW_LIKELY(is_for(tuned->last, words, count, over)))
    return tuned->last;
  tw_tuned_row_t *row = tuned->slots[hash_words(words, count, over) % SLOTS];
  return is_for(row, words, count, over) ? tuned->last = row : NULL;
}

/* From here on the call is that of the row's kernel. What the row has is held: Python code may take it away. */
TW_HOT static void turn_to(call_t *call, const tw_tuned_row_t *row, tw_tuned_choice_t *out) {
  *out = (tw_tuned_choice_t){.kernel = Py_NewRef(row->kernel ? row->kernel : (PyObject *)call->self),
                             .constants = Py_NewRef(row->constants),
                             .code = Py_XNewRef(row->code),
                             .picks = Py_XNewRef(row->picks)};
  memcpy(call->key, row->words + row->count, row->key_count * sizeof *call->key);
  call->key_count = row->key_count;
  call->self = (dispatcher_t *)out->kernel;
}

TW_HOT bool tw_tuned_turn(call_t *call, const PyObject *owner, bool by_function, tw_tuned_choice_t *out) {
  dispatcher_t *self = call->self;
  if (TW_UNLIKELY(!TW_PUBLISHED(self->tuned)))
    return false;
  uint64_t words[TW_TUNED_WORDS];
  size_t count = tw_tuned_words(call, words);
  const PyObject *over = owner == (PyObject *)self ? NULL : owner;
  TW_LOCK(self);
  const tw_tuned_row_t *row = self->tuned ? find_row(self->tuned, words, count, over) : NULL;
  if (row && by_function && !row->code)
    row = NULL;
  if (TW_LIKELY(row != NULL))
    turn_to(call, row, out);
  TW_UNLOCK(self);
  return row != NULL;
}

static void free_row(tw_tuned_row_t *row) {
  if (!row)
    return;
  Py_XDECREF(row->owner);
  Py_XDECREF(row->kernel);
  Py_DECREF(row->constants);
  Py_XDECREF(row->code);
  Py_XDECREF(row->picks);
  free(row);
}

/* What the end of a row runs may launch, and so change the table: it is out of it before. */
static int place_row(dispatcher_t *self, tw_tuned_row_t *row) {
  tw_tuned_row_t *old = NULL;
  TW_LOCK(self);
  if (!self->tuned)
    TW_PUBLISH(self->tuned, calloc(1, sizeof *self->tuned));
  struct tw_tuned *tuned = self->tuned;
  if (tuned) {
    tw_tuned_row_t **slot = &tuned->slots[hash_words(row->words, row->count, row->owner) % SLOTS];
    old = *slot;
    *slot = tuned->last = row;
  }
  TW_UNLOCK(self);
  free_row(old);
  return tuned ? 0 : -1;
}

static PyObject *kept(PyObject *object) { return object == Py_None ? NULL : Py_NewRef(object); }

int tw_tuned_insert(dispatcher_t *self, const call_t *given, const call_t *tuned, const tw_tuned_choice_t *choice) {
  uint64_t words[TW_TUNED_WORDS];
  size_t count = tw_tuned_words(given, words);
  tw_tuned_row_t *row = malloc(sizeof *row + (count + tuned->key_count) * sizeof *words);
  if (!row) {
    PyErr_NoMemory();
    return -1;
  }
  *row = (tw_tuned_row_t){
      .owner = choice->owner == (PyObject *)self ? NULL : Py_NewRef(choice->owner),
      .kernel = choice->kernel == (PyObject *)self ? NULL : Py_NewRef(choice->kernel),
      .constants = Py_NewRef(choice->constants),
      .code = kept(choice->code),
      .picks = kept(choice->picks),
      .count = count,
      .key_count = tuned->key_count,
  };
  memcpy(row->words, words, count * sizeof *words);
  memcpy(row->words + count, tuned->key, tuned->key_count * sizeof *words);
  if (!place_row(self, row))
    return 0;
  free_row(row);
  PyErr_NoMemory();
  return -1;
}

void tw_tuned_clear(dispatcher_t *self) {
  TW_LOCK(self);
  struct tw_tuned *tuned = self->tuned;
  TW_PUBLISH(self->tuned, NULL);
  TW_UNLOCK(self);
  for (size_t i = 0; tuned && i < SLOTS; i++)
    free_row(tuned->slots[i]);
  free(tuned);
}

int tw_tuned_traverse(dispatcher_t *self, visitproc visit, void *arg) {
  for (size_t i = 0; self->tuned && i < SLOTS; i++) {
    const tw_tuned_row_t *row = self->tuned->slots[i];
    if (!row)
      continue;
    Py_VISIT(row->owner);
    Py_VISIT(row->kernel);
    Py_VISIT(row->constants);
    Py_VISIT(row->code);
    Py_VISIT(row->picks);
  }
  return 0;
}

/* === arguments and grids ========================================================================================== */

/* `constants`: ((position, value), ...). A new tuple. */
PyObject *tw_tuned_arguments(PyObject *constants, PyObject *arguments) {
  Py_ssize_t size = PyTuple_Size(arguments), count = PyTuple_Size(constants);
  PyObject *found = PyTuple_New(size);
  for (Py_ssize_t i = 0; found && i < size; i++)
    PyTuple_SetItem(found, i, Py_NewRef(PyTuple_GetItem(arguments, i)));
  for (Py_ssize_t i = 0; found && i < count; i++) {
    PyObject *row = PyTuple_GetItem(constants, i);
    Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GetItem(row, 0));
    if (at >= 0 && at < size)
      PyTuple_SetItem(found, at, Py_NewRef(PyTuple_GetItem(row, 1)));
  }
  return found;
}

/* `picks`: of each parameter of the grid's function its position in the arguments, or (value,) of a constant. */
static PyObject *picked(PyObject *picks, PyObject *arguments) {
  Py_ssize_t count = PyTuple_Size(picks);
  PyObject *found = PyTuple_New(count);
  for (Py_ssize_t i = 0; found && i < count; i++) {
    PyObject *pick = PyTuple_GetItem(picks, i);
    PyObject *value = PyLong_CheckExact(pick) ? PyTuple_GetItem(arguments, PyLong_AsSsize_t(pick)) /* NULL: too far */
                                              : PyTuple_GetItem(pick, 0);
    if (!value)
      Py_CLEAR(found);
    else
      PyTuple_SetItem(found, i, Py_NewRef(value));
  }
  return found;
}

/* Any other function than the one of the first launch: the front end finds out what it takes. */
TW_COLD static PyObject *ask_front_end(PyObject *grid, PyObject *kernel, PyObject *constants, PyObject *arguments) {
  PyObject *module = PyImport_ImportModule("tilewright.tune.launching");
  PyObject *function = module ? PyObject_GetAttrString(module, "grid_of") : NULL;
  PyObject *chosen = function ? tw_tuned_arguments(constants, arguments) : NULL;
  PyObject *found = chosen ? PyObject_CallFunctionObjArgs(function, grid, kernel, chosen, NULL) : NULL;
  Py_XDECREF(chosen);
  Py_XDECREF(function);
  Py_XDECREF(module);
  return found;
}

PyObject *tw_tuned_grid(tw_state_t *state, const tw_tuned_choice_t *choice, PyObject *grid, PyObject *arguments) {
  PyObject *code = choice->code ? PyObject_GetAttr(grid, state->code_name) : NULL;
  if (!code)
    PyErr_Clear();
  bool is_known = code && code == choice->code;
  Py_XDECREF(code);
  if (!is_known)
    return ask_front_end(grid, choice->kernel, choice->constants, arguments);
  PyObject *chosen = picked(choice->picks, arguments), *found = chosen ? PyObject_Call(grid, chosen, NULL) : NULL;
  Py_XDECREF(chosen);
  return found;
}
