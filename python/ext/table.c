/* table.c - compiled variants of one kernel, found by the key words of a launch
 *
 * Open addressing by a hash of the words; a hit has to agree in all of them, because two keys of twenty words may well
 * share a hash. The variant of the last launch is tried first, without one.
 *
 * A kernel keeps as many variants as `most_variants` says: the one that was not launched for longest makes room. A
 * launch holds its variant by itself, and a graph the code that it captured (runtime/image.c). */
#include "dispatch.h"

#include <stdlib.h>
#include <string.h>

/* === describing a specialization to the front end ================================================================= */
/* "cpu", "sm_80", "sm_90a". */
PyObject *tw_key_target(uint64_t word) {
  if ((word & 255) == TW_DEVICE_CPU)
    return PyUnicode_FromString("cpu");
  return tw_ext_target_name((int)(word >> 8 & 255), (int)(word >> 16 & 255));
}

static PyObject *describe_array_facts(uint64_t word) {
  tw_dtype_t dtype = (tw_dtype_t)(word & 255);
  int rank = (int)(word >> 8 & 15);
  unsigned bits = tw_dtype_bits(dtype), item = bits < 8 ? 1 : bits / 8;
  long least = word & TW_FACT_STRIDES_8 ? 64 : 32; /* bits that divide strides other than 1, if anything is known */
  long most = word & TW_FACT_LINES ? 1024 : 128;
  if (!(word & TW_FACT_STRIDES_4) || least < (long)bits)
    least = bits;
  PyObject *shape = PyTuple_New(rank), *strides = PyTuple_New(rank);
  for (int d = 0; shape && strides && d < rank; d++) {
    unsigned facts = (unsigned)(word >> (TW_FACT_DIM + 3 * d)) & 7;
    int one = facts & TW_FACT_STRIDE_ONE ? 1 : 0;
    long division = one ? 1 : (facts & TW_FACT_STRIDE_DIV ? most : least) / (long)bits;
    PyTuple_SetItem(shape, d, PyLong_FromLong(facts & TW_FACT_SHAPE_DIV ? 16 : 1));
    PyTuple_SetItem(strides, d, Py_BuildValue("(il)", one, division));
  }
  return Py_BuildValue("(ssiINNOO)", "array", tw_dtype_name(dtype), rank, word & TW_FACT_ALIGNED ? 16 : item, shape,
                       strides, word & TW_FACT_WRITABLE ? Py_True : Py_False, word & TW_FACT_TMA ? Py_True : Py_False);
}

/* {axis: value} of what follows the mask of an array with constants; `at` is the first bit. */
static PyObject *describe_static(uint64_t mask, int at, const uint64_t **key) {
  PyObject *result = PyDict_New();
  for (int axis = 0; result && axis < 8; axis++) {
    if (!(mask >> (at + axis) & 1))
      continue;
    PyObject *place = PyLong_FromLong(axis), *value = PyLong_FromLongLong((long long)*(*key)++);
    if (!place || !value || PyDict_SetItem(result, place, value))
      Py_CLEAR(result);
    Py_XDECREF(place);
    Py_XDECREF(value);
  }
  return result;
}

static PyObject *describe_array(uint64_t word, const uint64_t **key) {
  PyObject *facts = describe_array_facts(word & ~STATIC_WORD);
  if (!facts || !(word & STATIC_WORD))
    return facts;
  uint64_t mask = *(*key)++;
  PyObject *extents = describe_static(mask, 0, key), *strides = describe_static(mask, 8, key);
  PyObject *more = extents && strides ? PyTuple_Pack(2, extents, strides) : NULL;
  PyObject *result = more ? PySequence_Concat(facts, more) : NULL;
  Py_XDECREF(extents);
  Py_XDECREF(strides);
  Py_XDECREF(more);
  Py_DECREF(facts);
  return result;
}

static PyObject *describe(const call_t *call, const uint64_t **key, PyObject *object);

static PyObject *describe_parts(const call_t *call, const uint64_t **key, PyObject *parts) {
  Py_ssize_t count = PyTuple_Size(parts);
  PyObject *result = PyTuple_New(count);
  for (Py_ssize_t i = 0; result && i < count; i++) {
    PyObject *item = describe(call, key, PyTuple_GetItem(parts, i));
    if (!item || PyTuple_SetItem(result, i, item)) {
      Py_DECREF(result);
      return NULL;
    }
  }
  return result;
}

/* What reads an array runs the code of its library, and so may change a list. */
static PyObject *describe_structure(const call_t *call, uint64_t word, const uint64_t **key, PyObject *object) {
  tw_structure_t structure;
  PyObject *result = NULL;
  if (!tw_structure_kind(call, object) || tw_structure_open(call, object, &structure))
    return PyErr_Occurred() ? NULL : tw_ext_error(TW_LAUNCH_ERROR, "an argument changed while it was launched");
  if (tw_structure_is(&structure, word)) {
    PyObject *parts = describe_parts(call, key, structure.parts);
    result = parts ? tw_structure_describe(&structure, parts) : NULL;
  } else {
    tw_ext_error(TW_LAUNCH_ERROR, "an argument changed while it was launched");
  }
  tw_structure_close(&structure);
  return result;
}

static PyObject *describe(const call_t *call, const uint64_t **key, PyObject *object) {
  uint64_t word = *(*key)++;
  if (word & CONSTANT_WORD) {
    (*key)++;
    PyObject *value = tw_ext_constant_value(call->reader.state, object);
    return value ? Py_BuildValue("(sN)", "const", value) : NULL;
  }
  if (word & STRUCTURE_WORD)
    return describe_structure(call, word, key, object);
  if (word & DTYPE_WORD)
    return Py_BuildValue("(sO)", "const", object);
  if (word & SCALAR_WORD)
    return Py_BuildValue("(ssi)", word & SCALAR_LOOSE ? "number" : "scalar", tw_dtype_name((tw_dtype_t)(word & 255)),
                         word & SCALAR_DIV ? 16 : 1);
  return describe_array(word, key);
}

/* One tuple a parameter; `arguments` give the values of constants. */
PyObject *tw_key_describe(const call_t *call, PyObject *arguments) {
  const uint64_t *at = call->key + 1;
  return describe_parts(call, &at, arguments);
}

/* === what tells launches apart beyond their specialization ======================================================== */

/* Of an array with constants: the mask of which, and these. */
static size_t static_words(const uint64_t *at) {
  size_t count = 1;
  for (uint64_t mask = *at; mask; mask &= mask - 1)
    count++;
  return count;
}

/* A scalar has one parameter word, an array its address, extents and strides, a constant none. */
size_t tw_key_extents(const call_t *call, uint64_t *out) {
  size_t count = 0, place = 0;
  for (size_t i = 1; i < call->key_count;) {
    uint64_t word = call->key[i++];
    if (word & CONSTANT_WORD) {
      i++;
    } else if (word & SCALAR_WORD) {
      place++;
    } else if (!(word & (STRUCTURE_WORD | DTYPE_WORD))) {
      size_t rank = word >> 8 & 15;
      memcpy(out + count, call->words + place + 1, rank * sizeof *out);
      count += rank;
      place += 1 + 2 * rank;
      i += word & STATIC_WORD ? static_words(call->key + i) : 0;
    }
  }
  return count;
}

/* === the table ==================================================================================================== */

static uint64_t hash_key(const call_t *call) {
  uint64_t hash = 0x9E3779B97F4A7C15ull;
  for (size_t i = 0; i < call->key_count; i++) {
    hash = (hash ^ call->key[i]) * 0xFF51AFD7ED558CCDull;
    hash ^= hash >> 32;
  }
  return hash;
}

static inline bool matches(const entry_t *entry, const call_t *call) {
  return entry->count == call->key_count && !memcmp(entry->words, call->key, call->key_count * sizeof *call->key);
}

static entry_t *find_by_hash(dispatcher_t *self, const call_t *call, uint64_t hash) {
  for (size_t slot = hash; self->slots; slot++) {
    entry_t *entry = self->table[slot & (self->slots - 1)];
    if (!entry)
      return NULL;
    if (entry->hash == hash && matches(entry, call)) {
      entry->used = ++self->clock;
      return self->last = entry;
    }
  }
  return NULL;
}

TW_HOT tw_variant_t *tw_table_find(dispatcher_t *self, const call_t *call) {
  TW_LOCK(self);
  entry_t *entry =
      TW_LIKELY(self->last && matches(self->last, call)) ? self->last : find_by_hash(self, call, hash_key(call));
  tw_variant_t *variant = entry ? (tw_variant_t *)Py_NewRef((PyObject *)entry->variant) : NULL;
  TW_UNLOCK(self);
  return variant;
}

static void place_entry(entry_t **table, size_t slots, entry_t *entry) {
  size_t slot = entry->hash;
  while (table[slot & (slots - 1)])
    slot++;
  table[slot & (slots - 1)] = entry;
}

/* Places all entries anew: in more slots, or where one of them is empty now. -1: out of memory. */
static int set_slots(dispatcher_t *self, size_t slots) {
  entry_t **table = calloc(slots, sizeof *table);
  if (!table)
    return -1;
  for (size_t i = 0; i < self->slots; i++)
    if (self->table[i])
      place_entry(table, slots, self->table[i]);
  free(self->table);
  self->table = table;
  self->slots = slots;
  return 0;
}

/* Room for one more at a load of at most a half. */
static int grow_table(dispatcher_t *self) {
  if (2 * (self->used + 1) <= self->slots)
    return 0;
  return set_slots(self, self->slots ? 2 * self->slots : 8);
}

static void free_entry(entry_t *entry) {
  Py_DECREF((PyObject *)entry->variant);
  Py_DECREF(entry->target);
  Py_DECREF(entry->key);
  free(entry);
}

/* Takes the variant that was not launched for longest out of the table, which has one; NULL: out of memory. */
static entry_t *take_oldest(dispatcher_t *self) {
  entry_t **place = NULL;
  for (size_t i = 0; i < self->slots; i++)
    if (self->table[i] && (!place || self->table[i]->used < (*place)->used))
      place = &self->table[i];
  if (!place)
    return NULL;
  entry_t *oldest = *place;
  *place = NULL;
  if (set_slots(self, self->slots)) {
    *place = oldest;
    return NULL;
  }
  self->used--;
  if (self->last == oldest)
    self->last = NULL;
  return oldest;
}

/* Makes room for one more. What the end of a variant runs may launch, and so change the table. */
static int make_room(dispatcher_t *self) {
  while (self->most_variants > 0 && self->used >= (size_t)self->most_variants) {
    entry_t *oldest = take_oldest(self);
    if (!oldest)
      return -1;
    TW_UNLOCK(self);
    free_entry(oldest);
    TW_LOCK(self);
  }
  return grow_table(self);
}

static entry_t *new_entry(const call_t *call, PyObject *variant, PyObject *target, PyObject *key) {
  size_t bytes = call->key_count * sizeof *call->key;
  entry_t *entry = malloc(sizeof *entry + bytes);
  if (!entry)
    return NULL;
  *entry = (entry_t){.hash = hash_key(call),
                     .variant = (tw_variant_t *)Py_NewRef(variant),
                     .target = Py_NewRef(target),
                     .key = Py_NewRef(key),
                     .count = call->key_count};
  memcpy(entry->words, call->key, bytes);
  return entry;
}

static void put_entry(dispatcher_t *self, entry_t *entry) {
  place_entry(self->table, self->slots, entry);
  self->used++;
  entry->used = ++self->clock;
  self->last = entry;
}

tw_variant_t *tw_table_insert(dispatcher_t *self, const call_t *call, PyObject *variant, PyObject *target,
                              PyObject *key) {
  entry_t *entry = new_entry(call, variant, target, key), *there = NULL;
  TW_LOCK(self);
  int failed = !entry || make_room(self);
  if (!failed && !(there = find_by_hash(self, call, entry->hash))) {
    put_entry(self, entry);
    there = entry;
  }
  tw_variant_t *found = there ? (tw_variant_t *)Py_NewRef((PyObject *)there->variant) : NULL;
  TW_UNLOCK(self);
  if (entry && there != entry)
    free_entry(entry);
  return failed ? (PyErr_NoMemory(), NULL) : found;
}

/* Empties the table; whether it was to be. */
static bool empty_table(dispatcher_t *self, PyObject *stale) {
  TW_LOCK(self);
  bool wanted = !stale || self->watched == stale; /* else it was made anew, of what is now */
  entry_t **table = self->table;
  size_t slots = self->slots;
  if (wanted) {
    if (stale)
      TW_PUBLISH(self->watched, NULL);
    self->table = NULL;
    self->last = NULL;
    self->slots = self->used = 0;
  }
  TW_UNLOCK(self);
  for (size_t i = 0; wanted && i < slots; i++)
    if (table[i])
      free_entry(table[i]);
  if (wanted)
    free(table);
  return wanted;
}

void tw_table_clear(dispatcher_t *self) { empty_table(self, NULL); }

void tw_table_clear_stale(dispatcher_t *self, PyObject *watched) {
  if (empty_table(self, watched))
    Py_DECREF(watched); /* the dispatcher's; the caller has one, too */
}

typedef struct {
  PyObject *target, *key, *variant; /* owned */
} table_row_t;

/* What the entries hold: tuples of it are made without the lock. Owned; NULL: out of memory. */
static table_row_t *copy_rows(dispatcher_t *self, size_t *out_count) {
  TW_LOCK(self);
  table_row_t *rows = calloc(self->used + 1, sizeof *rows);
  *out_count = 0;
  for (size_t i = 0; rows && i < self->slots; i++) {
    const entry_t *entry = self->table[i];
    if (entry)
      rows[(*out_count)++] =
          (table_row_t){Py_NewRef(entry->target), Py_NewRef(entry->key), Py_NewRef((PyObject *)entry->variant)};
  }
  TW_UNLOCK(self);
  return rows;
}

PyObject *tw_table_rows(dispatcher_t *self) {
  size_t count;
  table_row_t *rows = copy_rows(self, &count);
  PyObject *list = rows ? PyList_New((Py_ssize_t)count) : PyErr_NoMemory();
  for (size_t i = 0; rows && i < count; i++) {
    PyObject *row = list ? Py_BuildValue("(NNN)", rows[i].target, rows[i].key, rows[i].variant) : NULL; /* takes them */
    if (list && (!row || PyList_SetItem(list, (Py_ssize_t)i, row)))
      Py_CLEAR(list);
  }
  free(rows);
  return list;
}
