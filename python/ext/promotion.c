/* promotion.c - the dialect's promotion rules, as Python functions on the names of dtypes
 *
 * A dtype is named as in tile code ("float16") or as in the IR ("f16"); the answer is named as the question was. */
#include "ext.h"

#include "tilewright/dialect.h"

#include <string.h>

static tw_elem_t read_dtype(const char *name) {
  tw_elem_t dtype = tw_elem_named(name);
  if (dtype == TW_NO_ELEM)
    PyErr_Format(PyExc_ValueError, "no dtype is named '%s'", name);
  return dtype;
}

static PyObject *answer(tw_elem_t dtype, const char *asked) {
  if (dtype == TW_NO_ELEM)
    Py_RETURN_NONE;
  bool by_name = !strcmp(asked, tw_elem_name(tw_elem_named(asked)));
  return PyUnicode_FromString(by_name ? tw_elem_name(dtype) : tw_elem_spelling(dtype));
}

static PyObject *promote(PyObject *unused, PyObject *args) {
  (void)unused;
  const char *a, *b;
  if (!PyArg_ParseTuple(args, "ss", &a, &b))
    return NULL;
  tw_elem_t x = read_dtype(a), y = x == TW_NO_ELEM ? x : read_dtype(b);
  return y == TW_NO_ELEM ? NULL : answer(tw_promote(x, y), a);
}

/* Sign and magnitude of a Python integer. */
static int read_integer(PyObject *value, tw_constant_t *out) {
  out->kind = TW_CONSTANT_INT;
  PyObject *magnitude = PyNumber_Absolute(value);
  if (!magnitude)
    return -1;
  out->negative = PyObject_RichCompareBool(magnitude, value, Py_NE) == 1;
  out->magnitude = PyLong_AsUnsignedLongLong(magnitude);
  Py_DECREF(magnitude);
  if (!PyErr_Occurred())
    return 0;
  if (!PyErr_ExceptionMatches(PyExc_OverflowError))
    return -1;
  PyErr_Clear();
  out->too_big = true;
  return 0;
}

static int read_constant(PyObject *value, tw_constant_t *out) {
  *out = (tw_constant_t){0};
  if (PyBool_Check(value)) {
    out->kind = TW_CONSTANT_BOOL;
    return 0;
  }
  if (PyFloat_Check(value)) {
    out->kind = TW_CONSTANT_FLOAT;
    return 0;
  }
  if (PyLong_Check(value))
    return read_integer(value, out);
  PyErr_SetString(PyExc_TypeError, "a constant must be a bool, an int or a float");
  return -1;
}

static PyObject *promote_constant(PyObject *unused, PyObject *args) {
  (void)unused;
  PyObject *value;
  const char *other;
  tw_constant_t constant;
  if (!PyArg_ParseTuple(args, "Os", &value, &other) || read_constant(value, &constant) < 0)
    return NULL;
  tw_elem_t dtype = read_dtype(other);
  return dtype == TW_NO_ELEM ? NULL : answer(tw_promote_constant(constant, dtype), other);
}

static PyObject *constant_dtype(PyObject *unused, PyObject *value) {
  (void)unused;
  tw_constant_t constant;
  if (read_constant(value, &constant) < 0)
    return NULL;
  return answer(tw_constant_elem(constant), tw_elem_spelling(TW_u8));
}

/* --- cuda.device ---------------------------------------------------------------------------------- */

enum { DEVICE_TYPES = 20 };

static const struct {
  const char *row, *cells[DEVICE_TYPES];
} device_rows[] = {
#define TW_PROMOTE_DEVICE(row, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t)                             \
  {#row, {#a, #b, #c, #d, #e, #f, #g, #h, #i, #j, #k, #l, #m, #n, #o, #p, #q, #r, #s, #t}},
#include "dialect/promotion.def"
#undef TW_PROMOTE_DEVICE
};

#define COLUMN(name) #name,
static const char *const device_types[] = {TW_DEVICE_TYPES(COLUMN)};
#undef COLUMN
_Static_assert(sizeof device_types == DEVICE_TYPES * sizeof *device_types, "a cell for each type");

/* {(row, column): common type, None for a cast that must be written}. */
static PyObject *device_promotions(PyObject *unused, PyObject *none) {
  (void)unused, (void)none;
  PyObject *table = PyDict_New();
  for (size_t i = 0; table && i < DEVICE_TYPES * DEVICE_TYPES; i++) {
    const char *cell = device_rows[i / DEVICE_TYPES].cells[i % DEVICE_TYPES];
    PyObject *pair = Py_BuildValue("(ss)", device_rows[i / DEVICE_TYPES].row, device_types[i % DEVICE_TYPES]);
    PyObject *common = Py_BuildValue("z", strcmp(cell, "ERR") ? cell : NULL);
    if (!pair || !common || PyDict_SetItem(table, pair, common))
      Py_CLEAR(table);
    Py_XDECREF(pair);
    Py_XDECREF(common);
  }
  return table;
}

static PyMethodDef functions[] = {
    {"promote", promote, METH_VARARGS, "promote(a, b) -> str | None: the common dtype of two typed operands."},
    {"promote_constant", promote_constant, METH_VARARGS,
     "promote_constant(value, other) -> str | None: the common dtype of a Python number and a typed operand."},
    {"constant_dtype", constant_dtype, METH_O,
     "constant_dtype(value) -> str | None: the dtype, as in the IR, that a Python number takes by itself."},
    {"device_promotions", device_promotions, METH_NOARGS,
     "device_promotions() -> dict: the common type, or None, of every two types of cuda.device."},
    {NULL, NULL, 0, NULL},
};

int tw_ext_add_promotion(PyObject *module) { return PyModule_AddFunctions(module, functions); }
