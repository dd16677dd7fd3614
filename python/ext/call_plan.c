/* call_plan.c - calls of an algorithm's object, launched without Python
 *
 * The front end runs the first call (python/tilewright/compute/call_plan.py), and leaves what it did as a plan: what
 * the arguments were like; a program over the sizes of the call, which computes grids, sizes and places in the
 * temporary storage, and says which comparisons came out how; and a list of launches, whose words are constants,
 * registers of the program, or addresses. A later call that is like it in all of that goes through the list. Any other
 * one, a wrong one too, goes to the front end, which has the errors: here nothing is refused but by the driver. */
#include "dispatch.h"
#include "import.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PARAMETERS = 16, MOST_REGISTERS = 256, MOST_SPANS = 32, MOST_PLANS = 8 };

/* --- what a plan has ----------------------------------------------------------------------------- */

enum { SLOT_COUNT, SLOT_VALUE, SLOT_ARRAY, SLOT_IDENTICAL, SLOT_FUNCTION, SLOT_EQUAL, SLOT_BYTES };

typedef struct call_slot {
  PyObject *name; /* owned, interned */
  int kind;
  int place;       /* of an array: among `arrays`; of a count or a value: its register */
  PyObject *value; /* owned or NULL: the object, or a weak reference to it; of bytes those; of a value its format */
  PyObject *type;  /* owned or NULL: of the object */
  PyObject *rows;  /* owned or NULL: of an operator, (holder, name, value) of what it reads from outside; of an array
                      that it reads, (holder, name, parameter) */
  bool is_weak;
} call_slot_t;

typedef struct array_slot {
  int dtype, item_bytes, extent, needed; /* registers; needed: -1 is all of it */
  unsigned low;                          /* bits of the address */
  bool is_writable, is_many;             /* more than one item */
  PyObject *record;                      /* owned or NULL: the dtype of structures */
} array_slot_t;

/* Memory that is not to overlap with others: of an array, or of one that an iterator holds. */
typedef struct call_span {
  int array; /* -1: fixed */
  uint64_t first, last;
} call_span_t;

enum { OP_CONSTANT, OP_ADD, OP_SUBTRACT, OP_MULTIPLY, OP_DIVIDE, OP_REMAINDER, OP_LESS, OP_EQUAL };

typedef struct call_step {
  int64_t op, a, b, outcome; /* of a comparison; else the result is the next register */
} call_step_t;

enum { WORD_CONSTANT, WORD_REGISTER, WORD_ARRAY, WORD_STORAGE };

typedef struct call_word {
  int64_t kind, value;
} call_word_t;

typedef struct call_launch {
  PyObject *kernel;  /* owned: a Dispatcher */
  PyObject *variant; /* owned */
  int grid;          /* register */
  uint32_t block;
  size_t count; /* of words */
  call_word_t *words;
} call_launch_t;

typedef struct call_plan {
  PyObject ob_base;
  int kind, device; /* where the arrays are */
  bool has_storage;
  call_slot_t slots[MOST_PARAMETERS]; /* parameters, then arrays that operators read from outside */
  int num_slots, num_parameters, num_counts, num_values;
  array_slot_t arrays[MOST_PARAMETERS];
  int num_arrays;
  uint64_t same[MOST_PARAMETERS]; /* bit j of same[i]: arrays i and j begin at one address */
  call_span_t spans[MOST_SPANS];
  uint32_t apart[MOST_SPANS], unless[MOST_SPANS]; /* bit j of apart[i]: no overlap; unless both are one array */
  int num_spans;
  call_step_t *steps;
  size_t num_steps;
  int bytes; /* register: of temporary storage */
  call_launch_t *launches;
  size_t num_launches;
} call_plan_t;

/* --- a call -------------------------------------------------------------------------------------- */

typedef struct call_attempt {
  const call_plan_t *plan;
  PyObject *values[MOST_PARAMETERS]; /* NULL: not given; owned are those behind the parameters */
  PyObject *storage, *stream;        /* borrowed; NULL: not given, or the plan has no storage */
  tw_reader_t reader;
  tw_array_t arrays[MOST_PARAMETERS];
  uint64_t storage_first, storage_bytes;
  int64_t registers[MOST_REGISTERS];
} call_attempt_t;

static int slot_named(const call_plan_t *plan, PyObject *name) {
  for (int i = 0; i < plan->num_parameters; i++)
    if (plan->slots[i].name == name)
      return i;
  for (int i = 0; i < plan->num_parameters; i++)
    if (!PyUnicode_Compare(plan->slots[i].name, name))
      return i;
  return -1;
}

static bool bind_named(call_attempt_t *attempt, PyObject *name, PyObject *value) {
  int i = slot_named(attempt->plan, name);
  PyObject **place = i >= 0 ? &attempt->values[i] : NULL;
  if (!place && !PyUnicode_CompareWithASCIIString(name, "stream"))
    place = &attempt->stream;
  if (!place && attempt->plan->has_storage && !PyUnicode_CompareWithASCIIString(name, "temp_storage"))
    place = &attempt->storage;
  if (!place || *place)
    return false;
  *place = value;
  return true;
}

/* What is not given is None. */
static bool bind(call_attempt_t *attempt, PyObject *arguments, PyObject *named) {
  const call_plan_t *plan = attempt->plan;
  Py_ssize_t count = PyTuple_Size(arguments), at = 0;
  if (count > plan->num_parameters + plan->has_storage)
    return false;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *value = PyTuple_GetItem(arguments, i);
    if (plan->has_storage && i == 0)
      attempt->storage = value;
    else
      attempt->values[i - plan->has_storage] = value;
  }
  PyObject *name, *value;
  while (named && PyDict_Next(named, &at, &name, &value))
    if (!bind_named(attempt, name, value))
      return false;
  for (int i = 0; i < plan->num_parameters; i++)
    if (!attempt->values[i])
      attempt->values[i] = Py_None;
  if (!attempt->stream)
    attempt->stream = Py_None;
  return !plan->has_storage || attempt->storage;
}

/* --- arguments ----------------------------------------------------------------------------------- */

static bool read_count(PyObject *value, int64_t *out) {
  int overflow = 0;
  if (PyBool_Check(value))
    return false;
  PyObject *number = PyLong_CheckExact(value) ? Py_NewRef(value) : PyNumber_Index(value);
  *out = number ? PyLong_AsLongLongAndOverflow(number, &overflow) : -1;
  PyErr_Clear();
  Py_XDECREF(number);
  return !overflow && *out >= 0;
}

/* The value of a free variable of a function: new reference or NULL. */
static PyObject *free_variable(PyObject *function, PyObject *index) {
  PyObject *cells = PyObject_GetAttrString(function, "__closure__");
  PyObject *cell = cells && PyTuple_Check(cells) ? PyTuple_GetItem(cells, PyLong_AsSsize_t(index)) : NULL;
  PyObject *value = cell ? PyObject_GetAttrString(cell, "cell_contents") : NULL;
  Py_XDECREF(cells);
  return value;
}

/* The object of a weak reference: new reference, NULL where it has ended. */
static PyObject *referent_of(PyObject *reference) {
#ifdef TW_FREE_THREADED
  PyObject *found;
  return PyWeakref_GetRef(reference, &found) > 0 ? found : NULL;
#else /* the stable ABI keeps what the headers of Python 3.13 advise against, and 3.11 has nothing else */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  PyObject *found = PyWeakref_GetObject(reference); /* borrowed */
#pragma GCC diagnostic pop
  return found == Py_None ? NULL : Py_XNewRef(found);
#endif
}

/* What is outside of an operator now, where a row (holder, name, …) says: new reference or NULL, no exception. The
 * operator itself is None there. */
static PyObject *value_outside(PyObject *operator, PyObject *row) {
  PyObject *holder = PyTuple_GetItem(row, 0), *name = PyTuple_GetItem(row, 1);
  holder = PyWeakref_Check(holder) ? referent_of(holder) : Py_NewRef(holder == Py_None ? operator : holder);
  if (!holder)
    return NULL;
  PyObject *now = PyDict_Check(holder) ? tw_dict_get(holder, name)
                  : PyLong_Check(name) ? free_variable(holder, name)
                                       : PyObject_GetAttr(holder, name);
  PyErr_Clear();
  Py_DECREF(holder);
  return now;
}

/* Whether what an operator reads from outside is as it was. */
static bool holds(PyObject *operator, PyObject *rows) {
  bool same = true;
  for (Py_ssize_t i = 0; same && i < PyTuple_Size(rows); i++) {
    PyObject *row = PyTuple_GetItem(rows, i), *now = value_outside(operator, row), *was = PyTuple_GetItem(row, 2);
    same = now == was || (!now && was == Py_None);
    Py_XDECREF(now);
  }
  return same;
}

/* Whether the bytes of a NumPy scalar, or of a small array, are those of the plan: (format, bytes). */
static bool has_bytes(PyObject *value, PyObject *wanted) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(value, &buffer, PyBUF_FORMAT | PyBUF_ND)) {
    PyErr_Clear();
    return false;
  }
  char *bytes = NULL;
  Py_ssize_t size = 0;
  bool same = !PyBytes_AsStringAndSize(PyTuple_GetItem(wanted, 1), &bytes, &size) && size == buffer.len &&
              !memcmp(bytes, buffer.buf, (size_t)size) && buffer.format &&
              !PyUnicode_CompareWithASCIIString(PyTuple_GetItem(wanted, 0), buffer.format);
  PyBuffer_Release(&buffer);
  PyErr_Clear();
  return same;
}

/* The bits of a number: of NumPy's scalars with the format of the plan, of a float or an int of Python. */
static bool read_value(const call_slot_t *slot, PyObject *value, int64_t *out) {
  if ((PyObject *)Py_TYPE(value) != slot->type)
    return false;
  if (PyFloat_CheckExact(value)) {
    double number = PyFloat_AsDouble(value);
    memcpy(out, &number, sizeof number);
    return true;
  }
  if (PyLong_CheckExact(value)) {
    int overflow;
    *out = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
  }
  Py_buffer buffer;
  if (PyObject_GetBuffer(value, &buffer, PyBUF_FORMAT | PyBUF_ND)) {
    PyErr_Clear();
    return false;
  }
  bool same = PyUnicode_Check(slot->value) && buffer.format && buffer.len <= (Py_ssize_t)sizeof *out &&
              !PyUnicode_CompareWithASCIIString(slot->value, buffer.format);
  *out = 0;
  if (same)
    memcpy(out, buffer.buf, (size_t)buffer.len);
  PyBuffer_Release(&buffer);
  return same;
}

static bool is_like(const call_slot_t *slot, PyObject *value) {
  if (slot->kind == SLOT_IDENTICAL) {
    PyObject *wanted = slot->is_weak ? referent_of(slot->value) : Py_NewRef(slot->value);
    Py_XDECREF(wanted); /* the caller has `value`, which alone it may be */
    return value == wanted && (!slot->rows || holds(value, slot->rows));
  }
  if ((PyObject *)Py_TYPE(value) != slot->type)
    return false;
  if (slot->kind == SLOT_FUNCTION)
    return holds(value, slot->rows);
  if (slot->kind == SLOT_BYTES)
    return has_bytes(value, slot->value);
  int equal = value == slot->value ? 1 : PyObject_RichCompareBool(value, slot->value, Py_EQ);
  PyErr_Clear();
  return equal == 1;
}

static bool has_record(const array_slot_t *slot, PyObject *value) {
  PyObject *dtype = PyObject_GetAttrString(value, "dtype");
  bool same = dtype == slot->record;
  PyErr_Clear();
  Py_XDECREF(dtype);
  return same;
}

/* The number of items of an array without gaps; -1 of any other. */
static int64_t items_of(const tw_array_t *array) {
  int64_t count = 1;
  for (int d = array->rank - 1; d >= 0; d--) {
    if (array->shape[d] > 1 && array->strides[d] != count)
      return -1;
    count *= array->shape[d];
  }
  return count;
}

/* A stream that the caller did not name is the default one, or that of our own arrays; not torch's current one. */
static bool read_array(call_attempt_t *attempt, PyObject *value, tw_array_t *out) {
  const tw_dl_exchange_t *exchange = tw_ext_exchange_of(attempt->reader.state, Py_TYPE(value));
  tw_stream_t any = {.decided = true};
  tw_dl_tensor_t tensor;
  int failed;
  if (exchange && exchange->tensor_from_object)
    failed = exchange->tensor_from_object(value, &tensor) || tw_ext_read_exchanged(exchange, &tensor, &any, out);
  else
    failed = tw_ext_array_read(value, &attempt->reader, out);
  PyErr_Clear();
  return !failed && out->device_kind == attempt->plan->kind && out->device_id == attempt->plan->device && out->data;
}

static bool read_slot_array(call_attempt_t *attempt, const call_slot_t *slot, PyObject *value) {
  const array_slot_t *wanted = &attempt->plan->arrays[slot->place];
  tw_array_t *array = &attempt->arrays[slot->place];
  if (!read_array(attempt, value, array) || array->dtype != wanted->dtype)
    return false;
  int64_t count = items_of(array);
  attempt->registers[wanted->extent] = count;
  return count > 0 && (count > 1) == wanted->is_many && ((uintptr_t)array->data & 15) == wanted->low &&
         !(array->flags & TW_ARRAY_READ_ONLY) == wanted->is_writable && (!wanted->record || has_record(wanted, value));
}

static bool read_stream(call_attempt_t *attempt) {
  if (attempt->plan->kind == TW_DEVICE_CPU)
    return attempt->stream == Py_None;
  bool read = !tw_ext_stream_read(attempt->reader.state, attempt->stream, &attempt->reader.stream);
  PyErr_Clear();
  return read;
}

static PyObject *array_outside(const call_attempt_t *attempt, const call_slot_t *slot) {
  Py_ssize_t i = PyLong_AsSsize_t(PyTuple_GetItem(slot->rows, 2));
  return i >= 0 && i < attempt->plan->num_parameters ? value_outside(attempt->values[i], slot->rows) : NULL;
}

static bool read_arguments(call_attempt_t *attempt) {
  const call_plan_t *plan = attempt->plan;
  memset(attempt->arrays, 0, (size_t)plan->num_arrays * sizeof *attempt->arrays);
  for (int i = 0; i < plan->num_slots; i++) {
    const call_slot_t *slot = &plan->slots[i];
    if (i >= plan->num_parameters && !(attempt->values[i] = array_outside(attempt, slot)))
      return false;
    PyObject *value = attempt->values[i];
    bool good = slot->kind == SLOT_COUNT   ? read_count(value, &attempt->registers[slot->place])
                : slot->kind == SLOT_VALUE ? read_value(slot, value, &attempt->registers[slot->place])
                : slot->kind == SLOT_ARRAY ? read_slot_array(attempt, slot, value)
                                           : is_like(slot, value);
    if (!good)
      return false;
  }
  return true;
}

/* --- sizes --------------------------------------------------------------------------------------- */

/* As Python divides. */
static bool divide(int64_t a, int64_t b, int64_t *out_quotient, int64_t *out_rest) {
  if (b == 0 || (a == INT64_MIN && b == -1))
    return false;
  *out_quotient = a / b;
  *out_rest = a % b;
  if (*out_rest && (*out_rest < 0) != (b < 0)) {
    *out_quotient -= 1;
    *out_rest += b;
  }
  return true;
}

static bool compute_sizes(call_attempt_t *attempt) {
  const call_plan_t *plan = attempt->plan;
  int64_t *registers = attempt->registers;
  int64_t *next = registers + plan->num_counts + plan->num_values + plan->num_arrays;
  for (size_t i = 0; i < plan->num_steps; i++) {
    const call_step_t *step = &plan->steps[i];
    int64_t a = step->op == OP_CONSTANT ? 0 : registers[step->a], b = step->op == OP_CONSTANT ? 0 : registers[step->b];
    int64_t other;
    bool failed = false;
    switch (step->op) {
    case OP_CONSTANT: *next++ = step->outcome; break;
    case OP_ADD: failed = __builtin_add_overflow(a, b, next++); break;
    case OP_SUBTRACT: failed = __builtin_sub_overflow(a, b, next++); break;
    case OP_MULTIPLY: failed = __builtin_mul_overflow(a, b, next++); break;
    case OP_DIVIDE: failed = !divide(a, b, next++, &other); break;
    case OP_REMAINDER: failed = !divide(a, b, &other, next++); break;
    case OP_LESS: failed = (a < b) != step->outcome; break;
    default: failed = (a == b) != step->outcome; break;
    }
    if (failed)
      return false;
  }
  return true;
}

/* --- memory -------------------------------------------------------------------------------------- */

static uint64_t first_of(const call_attempt_t *attempt, const call_span_t *span) {
  return span->array < 0 ? span->first : (uint64_t)(uintptr_t)attempt->arrays[span->array].data;
}

/* Behind the last byte that is needed; with `whole`, that there is. */
static uint64_t end_of(const call_attempt_t *attempt, const call_span_t *span, bool whole) {
  if (span->array < 0)
    return span->last;
  const array_slot_t *slot = &attempt->plan->arrays[span->array];
  int64_t items = attempt->registers[whole || slot->needed < 0 ? slot->extent : slot->needed];
  return first_of(attempt, span) + (uint64_t)items * (uint64_t)slot->item_bytes;
}

static bool overlap(const call_attempt_t *attempt, const call_span_t *a, const call_span_t *b) {
  return first_of(attempt, a) < end_of(attempt, b, false) && first_of(attempt, b) < end_of(attempt, a, false);
}

/* Arrays are as long as they have to be, begin at one address where those of the plan do, and are apart. */
static bool check_arrays(const call_attempt_t *attempt) {
  const call_plan_t *plan = attempt->plan;
  for (int i = 0; i < plan->num_arrays; i++) {
    const array_slot_t *slot = &plan->arrays[i];
    if (slot->needed >= 0 && attempt->registers[slot->extent] < attempt->registers[slot->needed])
      return false;
    for (int j = 0; j < i; j++)
      if ((attempt->arrays[i].data == attempt->arrays[j].data) != (plan->same[i] >> j & 1))
        return false;
  }
  for (int i = 0; i < plan->num_spans; i++)
    for (int j = 0; j < plan->num_spans; j++)
      if (plan->apart[i] >> j & 1 && overlap(attempt, &plan->spans[i], &plan->spans[j]) &&
          !(plan->unless[i] >> j & 1 && first_of(attempt, &plan->spans[i]) == first_of(attempt, &plan->spans[j])))
        return false;
  return true;
}

static bool read_storage(call_attempt_t *attempt) {
  const call_plan_t *plan = attempt->plan;
  tw_array_t array;
  if (!read_array(attempt, attempt->storage, &array) || array.flags & TW_ARRAY_READ_ONLY)
    return false;
  int64_t items = items_of(&array), needed = attempt->registers[plan->bytes];
  unsigned bits = tw_dtype_bits((tw_dtype_t)array.dtype);
  if (items < 0 || array.dtype == TW_DTYPE_RECORD || bits < 8)
    return false;
  attempt->storage_first = (uint64_t)(uintptr_t)array.data;
  attempt->storage_bytes = (uint64_t)items * (bits / 8);
  uint64_t end = attempt->storage_first + attempt->storage_bytes;
  for (int i = 0; i < plan->num_spans; i++)
    if (first_of(attempt, &plan->spans[i]) < end && attempt->storage_first < end_of(attempt, &plan->spans[i], true))
      return false;
  return attempt->storage_bytes >= (uint64_t)needed;
}

/* --- launches ------------------------------------------------------------------------------------ */

static void fill_words(const call_attempt_t *attempt, const call_launch_t *launch, uint64_t *out) {
  enum { ALIGN = 256 }; /* of the temporary storage */
  uint64_t base = (attempt->storage_first + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
  for (size_t i = 0; i < launch->count; i++) {
    int64_t value = launch->words[i].value;
    switch (launch->words[i].kind) {
    case WORD_CONSTANT: out[i] = (uint64_t)value; break;
    case WORD_REGISTER: out[i] = (uint64_t)attempt->registers[value]; break;
    case WORD_ARRAY: out[i] = (uint64_t)(uintptr_t)attempt->arrays[value].data; break;
    default: out[i] = base + (uint64_t)attempt->registers[value]; break;
    }
  }
}

static int run(call_attempt_t *attempt) {
  const call_plan_t *plan = attempt->plan;
  call_t call;
  call.reader = attempt->reader;
  call.has_block = true;
  call.kind = plan->kind;
  call.device_id = plan->device;
  call.read_only = call.overlapping = 0;
  for (size_t i = 0; i < plan->num_launches; i++) {
    const call_launch_t *launch = &plan->launches[i];
    call.self = (dispatcher_t *)launch->kernel;
    call.grid[0] = (uint32_t)attempt->registers[launch->grid];
    call.block[0] = launch->block;
    call.grid[1] = call.grid[2] = call.block[1] = call.block[2] = 1;
    call.block[3] = 0;
    call.word_count = launch->count;
    fill_words(attempt, launch, call.words);
    if (tw_call_run(&call, (tw_variant_t *)launch->variant))
      return -1;
  }
  return 0;
}

static bool grids_fit(const call_attempt_t *attempt) {
  for (size_t i = 0; i < attempt->plan->num_launches; i++) {
    int64_t blocks = attempt->registers[attempt->plan->launches[i].grid];
    if (blocks < 1 || blocks > INT32_MAX)
      return false;
  }
  return true;
}

/* 1: launched, or told how many bytes it takes; 0: the call is not like that of the plan; -1: an exception. */
static int attempt_plan(call_attempt_t *attempt, PyObject *arguments, PyObject *named) {
  if (!bind(attempt, arguments, named) || !read_stream(attempt) || !read_arguments(attempt) ||
      !compute_sizes(attempt) || !check_arrays(attempt) || !grids_fit(attempt))
    return 0;
  if (attempt->storage == Py_None)
    return 1;
  if (attempt->storage && !read_storage(attempt))
    return 0;
  return run(attempt) ? -1 : 1;
}

/* The caller holds the plan: the launch of a CPU gives up the GIL. */
static int call_by_plan(const call_plan_t *plan, tw_state_t *state, PyObject *arguments, PyObject *named,
                        int64_t *out_bytes) {
  call_attempt_t attempt; /* large: not cleared as a whole */
  attempt.plan = plan;
  memset(attempt.values, 0, sizeof attempt.values);
  attempt.storage = attempt.stream = NULL;
  attempt.storage_first = 0;
  attempt.reader = (tw_reader_t){.state = state};
  int done = attempt_plan(&attempt, arguments, named);
  if (done > 0) {
    *out_bytes = attempt.registers[plan->bytes];
    if (attempt.reader.holds && plan->kind == TW_DEVICE_CUDA)
      tw_ext_defer(state, &attempt.reader.holds, plan->device, attempt.reader.stream.handle);
  }
  tw_hold_release(attempt.reader.holds);
  for (int i = plan->num_parameters; i < plan->num_slots; i++)
    Py_XDECREF(attempt.values[i]);
  return done;
}

/* === CallPlan ===================================================================================================== */

static bool fail(const char *what) {
  PyErr_Format(PyExc_ValueError, "a plan has no such %s", what);
  return false;
}

/* (name, kind, place, value, type, rows) */
static bool read_slot(call_plan_t *plan, PyObject *row) {
  const char *name;
  PyObject *value, *type, *rows;
  call_slot_t *slot = &plan->slots[plan->num_slots];
  if (plan->num_slots >= MOST_PARAMETERS)
    return fail("number of parameters");
  if (!PyArg_ParseTuple(row, "siiOOO", &name, &slot->kind, &slot->place, &value, &type, &rows))
    return false;
  if (!(slot->name = PyUnicode_InternFromString(name)))
    return false;
  plan->num_slots++;
  slot->value = Py_NewRef(value);
  slot->type = Py_NewRef(type);
  slot->rows = PyTuple_Check(rows) ? Py_NewRef(rows) : NULL;
  slot->is_weak = slot->kind == SLOT_IDENTICAL && PyWeakref_Check(value);
  plan->num_counts += slot->kind == SLOT_COUNT;
  plan->num_values += slot->kind == SLOT_VALUE;
  if (slot->kind == SLOT_ARRAY && slot->rows)
    return PyTuple_Size(rows) == 3 || fail("place of an array");
  return ++plan->num_parameters == plan->num_slots || fail("parameter behind an array of an operator");
}

/* (dtype, bytes of an item, register of its extent, of how many it needs, low bits, writable, many, dtype or None) */
static bool read_array_slot(call_plan_t *plan, PyObject *row) {
  const char *dtype;
  int writable, many;
  PyObject *record;
  array_slot_t *slot = &plan->arrays[plan->num_arrays];
  if (plan->num_arrays >= MOST_PARAMETERS)
    return fail("number of arrays");
  if (!PyArg_ParseTuple(row, "siiiIppO", &dtype, &slot->item_bytes, &slot->extent, &slot->needed, &slot->low, &writable,
                        &many, &record))
    return false;
  slot->dtype = tw_dtype_from_name(dtype);
  slot->is_writable = writable;
  slot->is_many = many;
  slot->record = record == Py_None ? NULL : Py_NewRef(record);
  plan->num_arrays++;
  return true;
}

/* (array, first, last, bits of those that it is apart from, of those of them that it may be) */
static bool read_span(call_plan_t *plan, PyObject *row) {
  unsigned long long first, last;
  call_span_t *span = &plan->spans[plan->num_spans];
  if (plan->num_spans >= MOST_SPANS)
    return fail("number of memories");
  if (!PyArg_ParseTuple(row, "iKKII", &span->array, &first, &last, &plan->apart[plan->num_spans],
                        &plan->unless[plan->num_spans]))
    return false;
  span->first = first;
  span->last = last;
  plan->num_spans++;
  return span->array < plan->num_arrays || fail("array");
}

/* An owned copy of the bytes, which are items of so many bytes each. */
static void *copy_items(PyObject *object, size_t item, size_t *out_count) {
  char *bytes;
  Py_ssize_t size;
  if (PyBytes_AsStringAndSize(object, &bytes, &size))
    return NULL;
  *out_count = (size_t)size / item;
  void *copy = malloc((size_t)size + 1);
  return copy ? memcpy(copy, bytes, (size_t)size) : (PyErr_NoMemory(), NULL);
}

/* (kernel, variant, register of the grid, threads of a block, words) */
static bool read_launch(call_plan_t *plan, const tw_state_t *state, PyObject *row) {
  PyObject *kernel, *variant, *words;
  call_launch_t *launch = &plan->launches[plan->num_launches];
  PyTypeObject *wanted = plan->kind == TW_DEVICE_CPU ? state->cpu_kernel : state->cuda_kernel;
  if (!PyArg_ParseTuple(row, "OOiIO", &kernel, &variant, &launch->grid, &launch->block, &words))
    return false;
  if (!PyObject_TypeCheck(kernel, state->dispatcher) || Py_TYPE(variant) != wanted)
    return fail("kernel");
  if (!(launch->words = copy_items(words, sizeof *launch->words, &launch->count)))
    return false;
  launch->kernel = Py_NewRef(kernel);
  launch->variant = Py_NewRef(variant);
  plan->num_launches++;
  return launch->count <= TW_MAX_WORDS || fail("number of words");
}

static bool read_rows(call_plan_t *plan, PyObject *rows, bool read(call_plan_t *, PyObject *)) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(rows); i++)
    if (!read(plan, PyTuple_GetItem(rows, i)))
      return false;
  return true;
}

static bool is_register(int64_t at, int64_t count) { return at >= 0 && at < count; }

/* Whether all registers exist where they are read: what a plan is made of comes from Python. */
static bool check_registers(const call_plan_t *plan) {
  int64_t count = plan->num_counts + plan->num_values + plan->num_arrays;
  for (size_t i = 0; i < plan->num_steps; i++) {
    const call_step_t *step = &plan->steps[i];
    if (step->op < OP_CONSTANT || step->op > OP_EQUAL ||
        (step->op != OP_CONSTANT && !(is_register(step->a, count) && is_register(step->b, count))))
      return fail("step");
    count += step->op < OP_LESS;
  }
  bool good = count <= MOST_REGISTERS && is_register(plan->bytes, count);
  for (int i = 0; i < plan->num_arrays; i++)
    good &= is_register(plan->arrays[i].extent, count) && plan->arrays[i].needed < count;
  for (int i = 0; i < plan->num_slots; i++)
    good &= plan->slots[i].kind == SLOT_COUNT   ? is_register(plan->slots[i].place, plan->num_counts)
            : plan->slots[i].kind == SLOT_VALUE ? is_register(plan->slots[i].place, plan->num_counts + plan->num_values)
            : plan->slots[i].kind == SLOT_ARRAY ? is_register(plan->slots[i].place, plan->num_arrays)
                                                : true;
  for (size_t i = 0; i < plan->num_launches; i++) {
    good &= is_register(plan->launches[i].grid, count);
    for (size_t k = 0; k < plan->launches[i].count; k++) {
      const call_word_t *word = &plan->launches[i].words[k];
      good &=
          word->kind == WORD_CONSTANT || is_register(word->value, word->kind == WORD_ARRAY ? plan->num_arrays : count);
    }
  }
  return good || fail("register");
}

static bool read_plan(call_plan_t *plan, const tw_state_t *state, PyObject *arguments) {
  PyObject *slots, *arrays, *same, *spans, *steps, *launches;
  int is_gpu, has_storage;
  if (!PyArg_ParseTuple(arguments, "piO!O!O!O!pSiO!:CallPlan", &is_gpu, &plan->device, &PyTuple_Type, &slots,
                        &PyTuple_Type, &arrays, &PyTuple_Type, &same, &PyTuple_Type, &spans, &has_storage, &steps,
                        &plan->bytes, &PyTuple_Type, &launches))
    return false;
  plan->kind = is_gpu ? TW_DEVICE_CUDA : TW_DEVICE_CPU;
  plan->has_storage = has_storage;
  if (!read_rows(plan, slots, read_slot) || !read_rows(plan, arrays, read_array_slot) ||
      !read_rows(plan, spans, read_span))
    return false;
  for (Py_ssize_t i = 0; i < PyTuple_Size(same) && i < plan->num_arrays; i++)
    plan->same[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(same, i));
  if (PyErr_Occurred() || !(plan->steps = copy_items(steps, sizeof *plan->steps, &plan->num_steps)))
    return false;
  size_t count = (size_t)PyTuple_Size(launches);
  if (!(plan->launches = calloc(count + 1, sizeof *plan->launches)))
    return PyErr_NoMemory(), false;
  for (size_t i = 0; i < count; i++)
    if (!read_launch(plan, state, PyTuple_GetItem(launches, (Py_ssize_t)i)))
      return false;
  return check_registers(plan);
}

static PyObject *plan_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
  (void)named;
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  call_plan_t *plan = (call_plan_t *)allocate(type, 0); /* zeroed */
  if (plan && !read_plan(plan, PyType_GetModuleState(type), arguments)) {
    Py_DECREF((PyObject *)plan);
    return NULL;
  }
  return (PyObject *)plan;
}

static int plan_clear(PyObject *self) {
  call_plan_t *plan = (call_plan_t *)self;
  for (int i = 0; i < plan->num_slots; i++) {
    Py_CLEAR(plan->slots[i].value);
    Py_CLEAR(plan->slots[i].type);
    Py_CLEAR(plan->slots[i].rows);
  }
  return 0;
}

static void plan_dealloc(PyObject *self) {
  call_plan_t *plan = (call_plan_t *)self;
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  plan_clear(self);
  for (int i = 0; i < plan->num_slots; i++)
    Py_XDECREF(plan->slots[i].name);
  for (int i = 0; i < plan->num_arrays; i++)
    Py_XDECREF(plan->arrays[i].record);
  for (size_t i = 0; i < plan->num_launches; i++) {
    Py_XDECREF(plan->launches[i].kernel);
    Py_XDECREF(plan->launches[i].variant);
    free(plan->launches[i].words);
  }
  free(plan->launches);
  free(plan->steps);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF((PyObject *)type);
}

static int plan_traverse(PyObject *self, visitproc visit, void *arg) {
  call_plan_t *plan = (call_plan_t *)self;
  Py_VISIT((PyObject *)Py_TYPE(self));
  for (int i = 0; i < plan->num_slots; i++) {
    Py_VISIT(plan->slots[i].value);
    Py_VISIT(plan->slots[i].type);
    Py_VISIT(plan->slots[i].rows);
  }
  for (size_t i = 0; i < plan->num_launches; i++) {
    Py_VISIT(plan->launches[i].kernel);
    Py_VISIT(plan->launches[i].variant);
  }
  return 0;
}

/* Whether no call can be like it: an argument that had to be the same has ended. */
static bool is_dead(const call_plan_t *plan) {
  for (int i = 0; i < plan->num_slots; i++) {
    const call_slot_t *slot = &plan->slots[i];
    PyObject *referent = slot->value && slot->is_weak ? referent_of(slot->value) : NULL;
    if (!slot->value || (slot->is_weak && !referent))
      return true;
    Py_XDECREF(referent);
  }
  return false;
}

/* === Planned: the base of objects that are called by plans ======================================================== */

typedef struct call_planned {
  PyObject ob_base;
  PyObject *plans; /* owned list or NULL, published (lock.h) */
} call_planned_t;

static PyObject *planned_call(PyObject *self, PyObject *arguments, PyObject *named) {
  PyObject *plans = TW_PUBLISHED(((call_planned_t *)self)->plans), *plan;
  for (Py_ssize_t i = 0; plans && (plan = tw_list_get(plans, i)); i++) {
    bool has_storage = ((call_plan_t *)plan)->has_storage;
    int64_t bytes;
    int done = call_by_plan((call_plan_t *)plan, tw_state_of_object(plan), arguments, named, &bytes);
    Py_DECREF(plan);
    if (done)
      return done < 0 ? NULL : has_storage ? PyLong_FromLongLong(bytes) : Py_NewRef(Py_None);
  }
  PyObject *function = PyObject_GetAttrString(self, "call_unplanned");
  PyObject *result = function ? PyObject_Call(function, arguments, named) : NULL;
  Py_XDECREF(function);
  return result;
}

/* The plans without what can be no more use, borrowed; NULL with an exception. Where another thread does the same, one
 * that is of use may go, too: it is made again. */
static PyObject *swept_plans(call_planned_t *self) {
  PyObject *plans = TW_PUBLISHED(self->plans), *plan;
  if (!plans && !(plans = tw_publish(&self->plans, PyList_New(0))))
    return NULL;
  for (Py_ssize_t i = PyList_Size(plans); i-- > 0;) {
    bool dead = (plan = tw_list_get(plans, i)) && is_dead((call_plan_t *)plan);
    Py_XDECREF(plan);
    if (dead && PyList_SetSlice(plans, i, i + 1, NULL))
      return NULL;
  }
  return plans;
}

static PyObject *has_room(PyObject *self, PyObject *unused) {
  (void)unused;
  PyObject *plans = swept_plans((call_planned_t *)self);
  return plans ? PyBool_FromLong(PyList_Size(plans) < MOST_PLANS) : NULL;
}

static PyObject *add_plan(PyObject *self, PyObject *plan) {
  if (Py_TYPE(plan) != tw_state_of_subclass(self)->call_plan)
    return tw_ext_error_type(TW_TYPE_ERROR, "add_plan takes a CallPlan, found a %U", plan);
  PyObject *plans = swept_plans((call_planned_t *)self);
  if (!plans || (PyList_Size(plans) < MOST_PLANS && PyList_Insert(plans, 0, plan)))
    return NULL;
  return Py_NewRef(Py_None);
}

static PyObject *count_plans(PyObject *self, void *unused) {
  (void)unused;
  PyObject *plans = TW_PUBLISHED(((call_planned_t *)self)->plans);
  return PyLong_FromSsize_t(plans ? PyList_Size(plans) : 0);
}

static int planned_clear(PyObject *self) {
  Py_CLEAR(((call_planned_t *)self)->plans);
  return 0;
}

static void planned_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  planned_clear(self);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF((PyObject *)type);
}

static int planned_traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT((PyObject *)Py_TYPE(self));
  Py_VISIT(((call_planned_t *)self)->plans);
  return 0;
}

static PyType_Slot plan_slots[] = {
    {Py_tp_new, plan_new},
    {Py_tp_dealloc, plan_dealloc},
    {Py_tp_traverse, plan_traverse},
    {Py_tp_clear, plan_clear},
    {Py_tp_doc, "CallPlan(is_gpu, device, slots, arrays, same, spans, has_storage, steps, bytes, launches)"},
    {0, NULL}};

static PyMethodDef planned_methods[] = {
    {"has_room", has_room, METH_NOARGS, "has_room() -> bool: whether there may be another plan"},
    {"add_plan", add_plan, METH_O, "add_plan(plan): calls that are like it go by it"},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef planned_properties[] = {{"plans", count_plans, NULL, "how many plans there are", NULL},
                                           {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot planned_slots[] = {
    {Py_tp_dealloc, planned_dealloc},
    {Py_tp_traverse, planned_traverse},
    {Py_tp_clear, planned_clear},
    {Py_tp_call, planned_call},
    {Py_tp_methods, planned_methods},
    {Py_tp_getset, planned_properties},
    {Py_tp_doc, "Base of objects that are called by plans, else by their method call_unplanned"},
    {0, NULL}};

static PyType_Spec plan_spec = {"tilewright._core.CallPlan", sizeof(call_plan_t), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, plan_slots};
static PyType_Spec planned_spec = {"tilewright._core.Planned", sizeof(call_planned_t), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, planned_slots};

int tw_ext_call_plan_add(PyObject *module) {
  tw_state_t *state = tw_state_of(module);
  return tw_ext_add_type(module, &plan_spec, &state->call_plan) ||
                 tw_ext_add_type(module, &planned_spec, &state->planned)
             ? -1
             : 0;
}
