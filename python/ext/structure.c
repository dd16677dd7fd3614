/* structure.c - arguments that hold others: tuples, lists, dicts, and objects of dataclasses
 *
 * A launch takes a structure apart: a key word for the structure itself, and then its parts, one after the other, as if
 * they were parameters. What is no structure is a leaf; leaves are what places, masks and messages count. The front end
 * knows the fields of a class, and which of them are constants (python/tilewright/structure.py). */
#include "dispatch.h"
#include "import.h"

static const char *const kind_names[] = {
    [TW_TUPLE] = "tuple", [TW_LIST] = "list", [TW_DICT] = "dict", [TW_RECORD] = "record"};

/* What a function of the front end says of up to three objects; new reference. */
static PyObject *ask(const char *function, const char *format, PyObject *a, PyObject *b, PyObject *c) {
  PyObject *module = PyImport_ImportModule("tilewright.structure");
  PyObject *found = module ? PyObject_CallMethod(module, function, format, a, b, c) : NULL;
  Py_XDECREF(module);
  return found;
}

/* Whether objects of a type are of a dataclass, and no arrays, which some libraries' are, too. */
static bool is_record(const call_t *call, PyObject *object) {
  PyObject *fields = NULL;
  if (tw_ext_is_array(call->reader.state, object) || PyType_Check(object) ||
      tw_ext_optional_attr((PyObject *)Py_TYPE(object), "__dataclass_fields__", &fields) || !fields) {
    PyErr_Clear();
    return false;
  }
  Py_DECREF(fields);
  return true;
}

/* (names of the fields, their forms) of a dataclass, None of another type; borrowed from the kernel, which asks once.
 */
static PyObject *record_of(const call_t *call, PyObject *object) {
  dispatcher_t *self = call->self;
  PyObject *type = (PyObject *)Py_TYPE(object), *known = PyDict_GetItemWithError(self->records, type);
  if (known || PyErr_Occurred())
    return known;
  PyObject *made = is_record(call, object) ? ask("record", "O", type, NULL, NULL) : Py_NewRef(Py_None);
  known = made ? tw_dict_put(self->records, type, made) : NULL; /* where it stays */
  Py_XDECREF(made);
  Py_XDECREF(known);
  return known;
}

tw_structure_kind_t tw_structure_kind(const call_t *call, PyObject *object) {
  if (PyTuple_Check(object))
    return TW_TUPLE;
  if (PyList_Check(object))
    return TW_LIST;
  if (PyDict_Check(object))
    return TW_DICT;
  if (PyLong_Check(object) || PyFloat_Check(object))
    return TW_LEAF;
  PyObject *record = record_of(call, object);
  PyErr_Clear();
  return record && record != Py_None ? TW_RECORD : TW_LEAF;
}

static int open_record(const call_t *call, PyObject *object, tw_structure_t *out) {
  out->like = Py_NewRef((PyObject *)Py_TYPE(object));
  PyObject *record = record_of(call, object);
  if (!record || record == Py_None)
    return -1;
  out->names = Py_NewRef(PyTuple_GetItem(record, 0));
  out->forms = PyTuple_GetItem(record, 1);
  Py_ssize_t count = PyTuple_Size(out->names);
  out->parts = PyTuple_New(count);
  for (Py_ssize_t i = 0; out->parts && i < count; i++) {
    PyObject *part = PyObject_GetAttr(object, PyTuple_GetItem(out->names, i));
    if (!part)
      return -1;
    PyTuple_SetItem(out->parts, i, part); /* takes it */
  }
  return out->parts ? 0 : -1;
}

static int open_dict(PyObject *object, tw_structure_t *out) {
#ifdef TW_FREE_THREADED /* others may change it between its keys and its values */
  PyObject *own = PyDict_Copy(object);
#else
  PyObject *own = Py_NewRef(object);
#endif
  PyObject *keys = own ? PyDict_Keys(own) : NULL, *values = own ? PyDict_Values(own) : NULL;
  if (keys && values) {
    out->names = PyList_AsTuple(keys);
    out->parts = PyList_AsTuple(values);
    out->like = out->names ? Py_BuildValue("(sO)", "keys", out->names) : NULL;
  }
  Py_XDECREF(keys);
  Py_XDECREF(values);
  Py_XDECREF(own);
  return out->parts && out->like ? 0 : -1;
}

static int open_tuple(PyObject *object, tw_structure_t *out) {
  PyObject *fields = NULL;
  out->parts = Py_NewRef(object);
  if (!PyTuple_CheckExact(object) && tw_ext_optional_attr(object, "_fields", &fields))
    return -1;
  out->like = Py_NewRef(fields ? (PyObject *)Py_TYPE(object) : (PyObject *)&PyTuple_Type);
  Py_XDECREF(fields);
  return 0;
}

int tw_structure_open(const call_t *call, PyObject *object, tw_structure_t *out) {
  *out = (tw_structure_t){.kind = tw_structure_kind(call, object)};
  int failed;
  if (out->kind == TW_RECORD) {
    failed = open_record(call, object, out);
  } else if (out->kind == TW_DICT) {
    failed = open_dict(object, out);
  } else if (out->kind == TW_TUPLE) {
    failed = open_tuple(object, out);
  } else {
    out->parts = PyList_AsTuple(object);
    out->like = Py_NewRef((PyObject *)&PyList_Type);
    failed = !out->parts;
  }
  if (failed)
    tw_structure_close(out);
  return failed ? -1 : 0;
}

void tw_structure_close(tw_structure_t *structure) {
  Py_CLEAR(structure->like);
  Py_CLEAR(structure->names);
  Py_CLEAR(structure->parts);
}

int tw_structure_check_form(const tw_structure_t *structure, PyObject *form) {
  Py_ssize_t count = PyTuple_Size(structure->parts);
  if (structure->kind == TW_RECORD || !PyTuple_Check(form) || PyTuple_Size(form) == count)
    return 0;
  tw_ext_error(TW_TYPE_ERROR, "it holds %zd values, and is annotated as a tuple of %zd", count, PyTuple_Size(form));
  return -1;
}

PyObject *tw_structure_form(const tw_structure_t *structure, PyObject *form, Py_ssize_t i) {
  PyObject *forms = structure->kind == TW_RECORD ? structure->forms : form;
  if (PyTuple_Check(forms))
    return PyTuple_GetItem(forms, i);
  return PyList_Check(forms) ? PyList_GetItem(forms, 0) : Py_None;
}

/* Puts the place of a part in front of the path to what cannot be read; keeps the pending exception. */
void tw_structure_name(const tw_structure_t *structure, Py_ssize_t i, PyObject **path) {
  PyObject *type, *value, *trace, *name = structure->names ? PyTuple_GetItem(structure->names, i) : NULL;
  PyErr_Fetch(&type, &value, &trace);
  PyObject *place = structure->kind == TW_RECORD ? PyUnicode_FromFormat(".%U", name)
                    : name                       ? PyUnicode_FromFormat("[%R]", name)
                                                 : PyUnicode_FromFormat("[%zd]", i);
  PyObject *longer = place && *path ? PyUnicode_Concat(place, *path) : Py_XNewRef(place);
  Py_XDECREF(place);
  Py_XDECREF(*path);
  *path = longer;
  PyErr_Clear();
  PyErr_Restore(type, value, trace);
}

PyObject *tw_structure_leaves(const dispatcher_t *self, PyObject *arguments) {
  return ask("leaf_names", "OOO", self->parameters, arguments, self->forms ? self->forms : Py_None);
}

/* A number for what a structure is like: 0 for a plain tuple or list. */
int tw_structure_word(dispatcher_t *self, const tw_structure_t *structure, uint64_t *out) {
  Py_ssize_t count = PyTuple_Size(structure->parts);
  uint64_t id = 0;
  bool plain = structure->like == (PyObject *)&PyTuple_Type || structure->like == (PyObject *)&PyList_Type;
  if (!plain && tw_dispatcher_number(self, structure->like, &id))
    return -1;
  *out = STRUCTURE_WORD | (uint64_t)structure->kind << 56 | (uint64_t)count << 40 | id;
  return 0;
}

bool tw_structure_is(const tw_structure_t *structure, uint64_t word) {
  uint64_t count = (uint64_t)PyTuple_Size(structure->parts);
  return (word >> 56 & 15) == structure->kind && (word >> 40 & 0xFFFF) == count;
}

/* ("tuple", type, parts), ("list", list, parts), ("dict", names, parts) or ("record", type, parts); `parts` is taken.
 */
PyObject *tw_structure_describe(const tw_structure_t *structure, PyObject *parts) {
  return Py_BuildValue("(sON)", kind_names[structure->kind],
                       structure->kind == TW_DICT ? structure->names : structure->like, parts);
}
