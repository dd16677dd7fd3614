/* repeats.c - spans: the ops that were appended since a mark, once more for other values
 *
 *   mark = b.span()
 *   …                                     ops that use x
 *   b.end_span(mark)
 *   y2, = b.repeat(mark, [x], [x2], [y])  the same ops of x2, and what they have for y
 *
 * A function that is called again with operands alike need not be captured again. A span stays as it is: ops are only
 * ever appended, and blocks are kept until the builder is done. */
#include "builder.h"

#include <stdlib.h>
#include <string.h>

typedef struct tw_span {
  tw_built_t base;
  tw_block_state_t *state; /* of the block that the ops are in */
  MlirOperation before, last;
  bool has_ended, is_read;
  MlirValue *outside; /* owned: values that the ops use and do not make */
  size_t num_outside;
} tw_span_t;

/* --- values by values ------------------------------------------------------------------------------ */

typedef struct {
  const void *from;
  MlirValue to;
} pair_t;

typedef struct {
  pair_t *pairs;
  size_t count, size; /* size: a power of two, more than twice the count */
} replaced_t;

static size_t place_of(const replaced_t *map, const void *from) {
  size_t at = ((uintptr_t)from >> 4) * 0x9E3779B97F4A7C15u >> 20;
  for (at &= map->size - 1; map->pairs[at].from && map->pairs[at].from != from;)
    at = (at + 1) & (map->size - 1);
  return at;
}

static bool map_grow(replaced_t *map) {
  replaced_t more = {NULL, map->count, map->size ? 2 * map->size : 64};
  more.pairs = calloc(more.size, sizeof *more.pairs);
  if (!more.pairs)
    return false;
  for (size_t i = 0; i < map->size; i++)
    if (map->pairs[i].from)
      more.pairs[place_of(&more, map->pairs[i].from)] = map->pairs[i];
  free(map->pairs);
  *map = more;
  return true;
}

static bool map_put(replaced_t *map, MlirValue from, MlirValue to) {
  if (2 * (map->count + 1) >= map->size && !map_grow(map))
    return false;
  pair_t *pair = &map->pairs[place_of(map, from.ptr)];
  map->count += !pair->from;
  *pair = (pair_t){from.ptr, to};
  return true;
}

/* A null value where there is none. */
static MlirValue map_get(const replaced_t *map, MlirValue from) {
  MlirValue none = {NULL};
  return map->size ? map->pairs[place_of(map, from.ptr)].to : none;
}

/* --- what a span uses ------------------------------------------------------------------------------ */

typedef struct {
  tw_span_t *span;
  replaced_t made; /* to themselves */
  size_t room;     /* of span->outside */
  bool failed;
} reading_t;

static void read_made(reading_t *reading, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++) {
    MlirValue value = mlirOperationGetResult(op, i);
    reading->failed |= !map_put(&reading->made, value, value);
  }
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    for (MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r)); !mlirBlockIsNull(block);
         block = mlirBlockGetNextInRegion(block))
      for (intptr_t i = 0; i < mlirBlockGetNumArguments(block); i++) {
        MlirValue value = mlirBlockGetArgument(block, i);
        reading->failed |= !map_put(&reading->made, value, value);
      }
}

static void read_operand(reading_t *reading, MlirValue value) {
  tw_span_t *span = reading->span;
  if (!mlirValueIsNull(map_get(&reading->made, value)))
    return;
  if (span->num_outside == reading->room) {
    reading->room = reading->room ? 2 * reading->room : 16;
    MlirValue *more = realloc(span->outside, reading->room * sizeof *more);
    if (!more) {
      reading->failed = true;
      return;
    }
    span->outside = more;
  }
  span->outside[span->num_outside++] = value;
  reading->failed |= !map_put(&reading->made, value, value); /* it is noted once */
}

/* What an op makes is known before the ops behind it, and in it, use it. */
static MlirWalkResult read_op(MlirOperation op, void *context) {
  reading_t *reading = context;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op) && !reading->failed; i++)
    read_operand(reading, mlirOperationGetOperand(op, i));
  read_made(reading, op);
  return reading->failed ? MlirWalkResultInterrupt : MlirWalkResultAdvance;
}

static MlirOperation first_of(const tw_span_t *span) {
  return mlirOperationIsNull(span->before) ? mlirBlockGetFirstOperation(span->state->block)
                                           : mlirOperationGetNextInBlock(span->before);
}

static bool is_empty(const tw_span_t *span) { return mlirOperationEqual(span->before, span->last); }

static bool read_span(tw_span_t *span) {
  reading_t reading = {.span = span};
  for (MlirOperation op = is_empty(span) ? span->last : first_of(span); !is_empty(span) && !reading.failed;
       op = mlirOperationGetNextInBlock(op)) {
    mlirOperationWalk(op, read_op, &reading, MlirWalkPreOrder);
    if (mlirOperationEqual(op, span->last))
      break;
  }
  free(reading.made.pairs);
  span->is_read = !reading.failed;
  if (reading.failed)
    PyErr_NoMemory();
  return span->is_read;
}

/* --- once more ------------------------------------------------------------------------------------- */

/* The open block in which a value is; NULL where it cannot be seen. */
static tw_block_state_t *open_block_of(const tw_py_builder_t *self, MlirValue value) {
  MlirBlock owner = mlirValueIsABlockArgument(value) ? mlirBlockArgumentGetOwner(value)
                                                     : mlirOperationGetBlock(mlirOpResultGetOwner(value));
  for (tw_block_state_t *state = self->top; state; state = state->outer)
    if (mlirBlockEqual(state->block, owner))
      return state;
  return NULL;
}

static MlirWalkResult replace_operands(MlirOperation op, void *context) {
  const replaced_t *map = context;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirValue to = map_get(map, mlirOperationGetOperand(op, i));
    if (!mlirValueIsNull(to))
      mlirOperationSetOperand(op, i, to);
  }
  return MlirWalkResultAdvance;
}

static bool append_again(tw_py_builder_t *self, const tw_span_t *span, replaced_t *map) {
  if (is_empty(span))
    return true;
  for (MlirOperation op = first_of(span);; op = mlirOperationGetNextInBlock(op)) {
    MlirOperation copy = mlirOperationClone(op);
    mlirOperationWalk(copy, replace_operands, map, MlirWalkPreOrder);
    tw_builder_append(self, copy);
    for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
      if (!map_put(map, mlirOperationGetResult(op, i), mlirOperationGetResult(copy, i)))
        return false;
    if (mlirOperationEqual(op, span->last))
      return true;
  }
}

/* 1: read; 0: what was one operand is two now; -1: with an exception. */
static int read_pairs(tw_py_builder_t *self, PyObject *from, PyObject *to, replaced_t *map) {
  Py_ssize_t count = tw_sequence_size(from, "operands");
  if (count < 0 || tw_sequence_size(to, "operands") != count) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_ValueError, "as many operands as before");
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *old = tw_sequence_item(from, i);
    if (!PyObject_TypeCheck(old, self->state->value) || ((tw_built_t *)old)->builder != self) {
      PyErr_SetString(PyExc_TypeError, "an operand must be a Value of this builder");
      return -1;
    }
    MlirValue value = tw_builder_read_value(self, tw_sequence_item(to, i)), known = ((tw_value_t *)old)->value;
    if (mlirValueIsNull(value))
      return -1;
    if (!mlirTypeEqual(mlirValueGetType(known), mlirValueGetType(value))) {
      PyErr_SetString(PyExc_TypeError, "an operand is of another type than before");
      return -1;
    }
    MlirValue other = map_get(map, known);
    if (!mlirValueIsNull(other) && !mlirValueEqual(other, value))
      return 0;
    if (!map_put(map, known, value)) {
      PyErr_NoMemory();
      return -1;
    }
  }
  return 1;
}

/* Whether all that the span uses can be seen from here. */
static bool can_see(const tw_py_builder_t *self, const tw_span_t *span, const replaced_t *map) {
  for (size_t i = 0; i < span->num_outside; i++)
    if (mlirValueIsNull(map_get(map, span->outside[i])) && !open_block_of(self, span->outside[i]))
      return false;
  return true;
}

static PyObject *values_of(tw_py_builder_t *self, PyObject *wanted, const replaced_t *map) {
  Py_ssize_t count = tw_sequence_size(wanted, "results");
  PyObject *found = count < 0 ? NULL : PyTuple_New(count);
  for (Py_ssize_t i = 0; found && i < count; i++) {
    PyObject *old = tw_sequence_item(wanted, i), *value = NULL;
    if (!PyObject_TypeCheck(old, self->state->value) || ((tw_built_t *)old)->builder != self) {
      PyErr_SetString(PyExc_TypeError, "a result must be a Value of this builder");
    } else {
      MlirValue to = map_get(map, ((tw_value_t *)old)->value);
      to = mlirValueIsNull(to) ? ((tw_value_t *)old)->value : to;
      tw_block_state_t *state = open_block_of(self, to);
      if (state)
        value = tw_value_new(self, state, to);
      else
        PyErr_SetString(PyExc_ValueError, "a result cannot be seen from here");
    }
    if (!value || PyTuple_SetItem(found, i, value) < 0)
      Py_CLEAR(found);
  }
  return found;
}

static tw_span_t *span_of(tw_py_builder_t *self, PyObject *object) {
  if (PyObject_TypeCheck(object, self->state->span) && ((tw_built_t *)object)->builder == self)
    return (tw_span_t *)object;
  PyErr_SetString(PyExc_TypeError, "expected a span of this builder");
  return NULL;
}

/* span() -> Span: of the ops that are appended from now on. */
PyObject *tw_builder_span(PyObject *object, PyObject *unused) {
  (void)unused;
  tw_py_builder_t *self = (tw_py_builder_t *)object;
  tw_span_t *span = tw_builder_is_finished(self) ? NULL : tw_built_new(self->state->span, self);
  if (span) {
    span->state = self->top;
    span->before = self->top->last;
    span->last = (MlirOperation){NULL};
    span->has_ended = span->is_read = false;
    span->outside = NULL;
    span->num_outside = 0;
  }
  return (PyObject *)span;
}

/* end_span(span): the last op is the last of it. */
PyObject *tw_builder_end_span(PyObject *object, PyObject *given) {
  tw_py_builder_t *self = (tw_py_builder_t *)object;
  tw_span_t *span = tw_builder_is_finished(self) ? NULL : span_of(self, given);
  if (!span)
    return NULL;
  if (span->has_ended || span->state != self->top) {
    PyErr_SetString(PyExc_ValueError, "a span ends once, in the block in which it began");
    return NULL;
  }
  span->last = self->top->last;
  span->has_ended = true;
  Py_RETURN_NONE;
}

/* repeat(span, operands, instead, results) -> tuple of Values, or None where something cannot be seen from here. */
PyObject *tw_builder_repeat(PyObject *object, PyObject *const *arguments, Py_ssize_t count) {
  tw_py_builder_t *self = (tw_py_builder_t *)object;
  if (tw_builder_is_finished(self))
    return NULL;
  if (count != 4) {
    PyErr_SetString(PyExc_TypeError, "repeat(span, operands, instead, results)");
    return NULL;
  }
  tw_span_t *span = span_of(self, arguments[0]);
  if (!span)
    return NULL;
  if (!span->has_ended) {
    PyErr_SetString(PyExc_ValueError, "the span has not ended");
    return NULL;
  }
  replaced_t map = {NULL, 0, 0};
  PyObject *found = NULL;
  int pairs = read_pairs(self, arguments[1], arguments[2], &map);
  if (pairs >= 0 && (span->is_read || read_span(span))) {
    if (!pairs || self->has_lost_ops || !can_see(self, span, &map))
      found = Py_NewRef(Py_None);
    else if (append_again(self, span, &map))
      found = values_of(self, arguments[3], &map);
    else
      PyErr_NoMemory();
  }
  free(map.pairs);
  return found;
}

static void span_dealloc(PyObject *object) {
  free(((tw_span_t *)object)->outside);
  tw_built_dealloc(object);
}

static PyType_Slot span_slots[] = {
    {Py_tp_dealloc, span_dealloc},
    {Py_tp_doc, "Ops that lie side by side."},
    {0, NULL},
};

static PyType_Spec span_spec = {"tilewright._core.Span", sizeof(tw_span_t), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, span_slots};

int tw_span_add(PyObject *module) { return tw_ext_add_type(module, &span_spec, &tw_state_of(module)->span); }
