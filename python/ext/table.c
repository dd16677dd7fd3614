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

/* One tuple a parameter; `arguments` give the values of constants. */
PyObject *tw_key_describe(const call_t *call, PyObject *arguments) {
  const dispatcher_t *self = call->self;
  PyObject *result = PyTuple_New(self->count);
  size_t at = 1;
  for (Py_ssize_t i = 0; result && i < self->count; i++) {
    PyObject *item;
    uint64_t word = call->key[at++];
    if (self->constants >> i & 1) {
      at++;
      PyObject *value = tw_ext_constant_value(call->reader.state, PyTuple_GetItem(arguments, i));
      item = value ? Py_BuildValue("(sN)", "const", value) : NULL;
    } else if (word & DTYPE_WORD) {
      item = Py_BuildValue("(sO)", "const", PyTuple_GetItem(arguments, i));
    } else if (word & SCALAR_WORD) {
      item = Py_BuildValue("(ssi)", "scalar", tw_dtype_name((tw_dtype_t)(word & 255)), word & SCALAR_DIV ? 16 : 1);
    } else {
      item = describe_array_facts(word);
    }
    if (!item || PyTuple_SetItem(result, i, item)) {
      Py_DECREF(result);
      return NULL;
    }
  }
  return result;
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

static entry_t *find_by_hash(dispatcher_t *self, const call_t *call) {
  uint64_t hash = hash_key(call);
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

TW_HOT entry_t *tw_table_find(dispatcher_t *self, const call_t *call) {
  return TW_LIKELY(self->last && matches(self->last, call)) ? self->last : find_by_hash(self, call);
}

static void place_entry(entry_t **table, size_t slots, entry_t *entry) {
  size_t slot = entry->hash;
  while (table[slot & (slots - 1)])
    slot++;
  table[slot & (slots - 1)] = entry;
}

/* Places all entries anew: in more slots, or where one of them is empty now. */
static int set_slots(dispatcher_t *self, size_t slots) {
  entry_t **table = calloc(slots, sizeof *table);
  if (!table) {
    PyErr_NoMemory();
    return -1;
  }
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

/* Drops the variant that was not launched for longest. What its end runs may launch, and so change the table. */
static int drop_oldest(dispatcher_t *self) {
  entry_t **place = NULL;
  for (size_t i = 0; i < self->slots; i++)
    if (self->table[i] && (!place || self->table[i]->used < (*place)->used))
      place = &self->table[i];
  if (!place)
    return 0;
  entry_t *oldest = *place;
  *place = NULL;
  if (set_slots(self, self->slots)) {
    *place = oldest;
    return -1;
  }
  self->used--;
  if (self->last == oldest)
    self->last = NULL;
  free_entry(oldest);
  return 0;
}

entry_t *tw_table_insert(dispatcher_t *self, const call_t *call, PyObject *variant, PyObject *target, PyObject *key) {
  size_t bytes = call->key_count * sizeof *call->key;
  while (self->most_variants > 0 && self->used >= (size_t)self->most_variants)
    if (drop_oldest(self))
      return NULL;
  entry_t *entry = grow_table(self) ? NULL : malloc(sizeof *entry + bytes);
  if (!entry) {
    PyErr_NoMemory();
    return NULL;
  }
  *entry = (entry_t){.hash = hash_key(call),
                     .used = ++self->clock,
                     .variant = (tw_variant_t *)Py_NewRef(variant),
                     .target = Py_NewRef(target),
                     .key = Py_NewRef(key),
                     .count = call->key_count};
  memcpy(entry->words, call->key, bytes);
  place_entry(self->table, self->slots, entry);
  self->used++;
  return self->last = entry;
}

void tw_table_clear(dispatcher_t *self) {
  entry_t **table = self->table;
  size_t slots = self->slots;
  self->table = NULL;
  self->last = NULL;
  self->slots = self->used = 0;
  for (size_t i = 0; i < slots; i++)
    if (table[i])
      free_entry(table[i]);
  free(table);
}
