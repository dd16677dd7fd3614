/* variant.c - CpuKernel and CudaKernel: compiled code as Python objects
 *
 * What a front end's on_miss returns: native code by its address, or PTX or a cubin by its bytes. */
#include "dispatch.h"

#include <string.h>

PyTypeObject *tw_cpu_variant_type, *tw_cuda_variant_type;

static tw_variant_t *variant_alloc(PyTypeObject *type, PyObject *name) {
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  tw_variant_t *variant = (tw_variant_t *)allocate(type, 0); /* zeroed */
  if (variant)
    variant->name = Py_NewRef(name);
  return variant;
}

static void variant_dealloc(PyObject *self) {
  tw_variant_t *variant = (tw_variant_t *)self;
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  tw_cuda_kernel_destroy(variant->cuda);
  Py_XDECREF(variant->owner);
  Py_XDECREF(variant->better);
  for (int kind = 0; kind < TW_BETTER_TWIN; kind++)
    for (int i = 0; i < TW_CUT_PLANS; i++)
      Py_XDECREF(variant->made[kind][i]);
  Py_XDECREF(variant->overlapping);
  Py_XDECREF(variant->overlapped);
  Py_XDECREF(variant->name);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF((PyObject *)type);
}

/* No clear: the code that the owner holds may be called as long as this object lives. */
static int variant_traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT((PyObject *)Py_TYPE(self));
  Py_VISIT(((tw_variant_t *)self)->owner);
  Py_VISIT(((tw_variant_t *)self)->better);
  for (int kind = 0; kind < TW_BETTER_TWIN; kind++)
    for (int i = 0; i < TW_CUT_PLANS; i++)
      Py_VISIT(((tw_variant_t *)self)->made[kind][i]);
  Py_VISIT(((tw_variant_t *)self)->overlapping);
  Py_VISIT(((tw_variant_t *)self)->overlapped);
  return 0;
}

static PyObject *cpu_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  static char *names[] = {"address", "name", "scratch_bytes", "written", "owner", NULL};
  PyObject *address, *name, *owner = NULL;
  unsigned long long scratch = 0, written = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OU|KKO:CpuKernel", names, &address, &name, &scratch, &written,
                                   &owner))
    return NULL;
  void *entry = PyLong_AsVoidPtr(address);
  if (!entry)
    return PyErr_Occurred() ? NULL : tw_ext_error(TW_VALUE_ERROR, "the kernel's address is 0");
  tw_variant_t *variant = variant_alloc(type, name);
  if (!variant)
    return NULL;
  memcpy(&variant->cpu.entry, &entry, sizeof entry); /* ISO C has no cast to a function */
  variant->cpu.scratch_bytes = scratch;
  variant->written = written;
  variant->owner = Py_XNewRef(owner);
  return (PyObject *)variant;
}

/* Numbers of a sequence; how many, or -1 with an exception. */
static int read_numbers(PyObject *sequence, long least, long most, int32_t *out, int max) {
  Py_ssize_t count = PySequence_Size(sequence);
  if (count > max)
    PyErr_Format(PyExc_ValueError, "%zd numbers are too many, the most are %d", count, max);
  for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++) {
    PyObject *item = PySequence_GetItem(sequence, i);
    long value = item ? PyLong_AsLong(item) : -1;
    Py_XDECREF(item);
    if ((value < least || value > most) && !PyErr_Occurred())
      PyErr_Format(PyExc_ValueError, "%ld is not between %ld and %ld", value, least, most);
    out[i] = (int32_t)value;
  }
  return PyErr_Occurred() ? -1 : (int)count;
}

/* A row of numbers of the module. */
static int read_row(PyObject *sequence, int32_t *out, int max) {
  return read_numbers(sequence, INT32_MIN, INT32_MAX, out, max);
}

/* (word, bytes, swizzle, axes, box) */
static int read_map(PyObject *row, tw_tensor_map_t *out) {
  int word, bytes, swizzle;
  PyObject *axes, *box;
  int32_t axis[TW_MAX_MAP_RANK] = {0}, extent[TW_MAX_MAP_RANK] = {0};
  if (!PyArg_ParseTuple(row, "iiiOO", &word, &bytes, &swizzle, &axes, &box))
    return -1;
  int rank = read_numbers(axes, 0, TW_MAX_MAP_RANK, axis, TW_MAX_MAP_RANK);
  int extents = rank < 0 ? -1 : read_numbers(box, 0, UINT16_MAX, extent, TW_MAX_MAP_RANK);
  if (extents < 0)
    return -1;
  if (extents != rank || word < 0 || word > UINT16_MAX || bytes < 0 || bytes > UINT8_MAX || swizzle < 0 ||
      swizzle > UINT8_MAX) {
    PyErr_SetString(PyExc_ValueError, "a tensor map is (word, bytes, swizzle, axes, box), all of them small");
    return -1;
  }
  out->word = (uint16_t)word;
  out->rank = (uint8_t)rank;
  out->bytes = (uint8_t)bytes;
  out->swizzle = (uint8_t)swizzle;
  for (int d = 0; d < rank; d++) {
    out->axes[d] = (uint8_t)axis[d];
    out->box[d] = (uint16_t)extent[d];
  }
  return 0;
}

static int set_maps(tw_variant_t *variant, PyObject *sequence) {
  tw_tensor_map_t maps[TW_MAX_MAPS] = {{0}};
  Py_ssize_t count = PySequence_Size(sequence);
  for (Py_ssize_t i = 0; i < count && i < TW_MAX_MAPS; i++) {
    PyObject *item = PySequence_GetItem(sequence, i), *row = item ? PySequence_Tuple(item) : NULL;
    int failed = !row || read_map(row, &maps[i]);
    Py_XDECREF(row);
    Py_XDECREF(item);
    if (failed)
      return -1;
  }
  if (count < 0)
    return -1;
  tw_status_t status = tw_cuda_kernel_set_maps(variant->cuda, maps, (size_t)count);
  if (status)
    tw_ext_raise(status, NULL);
  return status ? -1 : 0;
}

/* (word, per step, steps, cycles and bytes of a step, forced, bytes of a part), or nothing. */
static int set_split(tw_variant_t *variant, PyObject *sequence) {
  tw_split_t split;
  PyObject *row = PySequence_Tuple(sequence);
  int failed = !row;
  if (row && PyTuple_Size(row) > 0) {
    failed = !PyArg_ParseTuple(row, "iiiiiii", &split.word, &split.per_step, &split.steps, &split.step_cycles,
                               &split.step_bytes, &split.forced, &split.part_bytes);
    tw_status_t status = failed ? NULL : tw_cuda_kernel_set_split(variant->cuda, &split);
    if (status)
      tw_ext_raise(status, NULL);
    failed |= status != NULL;
  }
  Py_XDECREF(row);
  return failed ? -1 : 0;
}

static int read_place(const int32_t numbers[3], tw_array_place_t *out) {
  *out = (tw_array_place_t){(uint16_t)numbers[0], (uint8_t)numbers[1], (uint8_t)numbers[2]};
  return out->word == numbers[0] && out->rank == numbers[1] && out->bits == numbers[2] ? 0 : -1;
}

/* (word, rank, bits) of an array and of another one, and whether both may be the same: a row of each pair. */
static int set_disjoint(tw_variant_t *variant, PyObject *sequence) {
  enum { NUMBERS = 7 };
  tw_disjoint_t pairs[TW_MAX_DISJOINT];
  Py_ssize_t count = PySequence_Size(sequence);
  if (count > TW_MAX_DISJOINT)
    PyErr_Format(PyExc_ValueError, "%zd pairs of arrays are separate, the most is %d", count, TW_MAX_DISJOINT);
  for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++) {
    int32_t row[NUMBERS] = {0};
    PyObject *item = PySequence_GetItem(sequence, i);
    Py_ssize_t numbers = item ? read_row(item, row, NUMBERS) : -1;
    Py_XDECREF(item);
    if (numbers >= 0 &&
        (numbers != NUMBERS || read_place(row, &pairs[i].array) || read_place(row + 3, &pairs[i].other)))
      PyErr_SetString(PyExc_ValueError, "a pair is (word, rank, bits) of two arrays, all of them small, and a flag");
    else if (numbers >= 0)
      pairs[i].or_same = row[NUMBERS - 1] != 0;
  }
  if (count < 0 || PyErr_Occurred())
    return -1;
  tw_status_t status = tw_cuda_kernel_set_disjoint(variant->cuda, pairs, (size_t)count);
  if (status)
    tw_ext_raise(status, NULL);
  return status ? -1 : 0;
}

/* `tile.loaded` of the module (lowering/gpu/grid/step_cost.h). */
static int set_loaded(tw_variant_t *variant, PyObject *sequence) {
  enum { OF_ARRAY = 3 };
  int32_t row[OF_ARRAY * TW_MAX_LOADED] = {0};
  tw_loaded_t loaded = {0};
  int count = read_row(sequence, row, OF_ARRAY * TW_MAX_LOADED);
  for (int i = 0; i + OF_ARRAY <= count && !PyErr_Occurred(); i += OF_ARRAY)
    if (read_place(row + i, &loaded.arrays[loaded.count++]))
      PyErr_SetString(PyExc_ValueError, "an array is (word, rank, bits), all of them small");
  if (count % OF_ARRAY != 0 && !PyErr_Occurred())
    PyErr_SetString(PyExc_ValueError, "three numbers tell of each array that is loaded");
  if (PyErr_Occurred())
    return -1;
  tw_status_t status = tw_cuda_kernel_set_loaded(variant->cuda, &loaded);
  if (status)
    tw_ext_raise(status, NULL);
  return status ? -1 : 0;
}

/* `tile.cut` of the module (lowering/gpu/grid/slice_tiles.c). */
static int read_cut(const int32_t *row, int count, tw_cut_t *cut) {
  enum { HEAD = 4, OF_PLAN = 2 };
  int n = HEAD, classes = count < HEAD ? 0 : row[HEAD - 1], plans;
  if (classes < 1 || classes > TW_CUT_CLASSES)
    return -1;
  plans = (count - HEAD - 2 * classes) / (classes + OF_PLAN);
  if (plans < 1 || plans > TW_CUT_PLANS || count != HEAD + 2 * classes + plans * (classes + OF_PLAN))
    return -1;
  *cut = (tw_cut_t){.word = row[0], .per_step = row[1], .steps = row[2], .num_classes = classes, .num_plans = plans};
  for (int i = 0; i < classes; i++) {
    cut->classes[i].word = row[n++];
    cut->classes[i].tile = row[n++];
  }
  for (int p = 0; p < plans; p++) {
    for (int i = 0; i < classes; i++)
      cut->plans[p].parts[i] = row[n++];
    cut->plans[p].cycles = row[n++];
    cut->plans[p].bytes = row[n++];
  }
  return 0;
}

static int set_cut(tw_variant_t *variant, PyObject *sequence) {
  enum { MAX_ROW = 64 };
  int32_t row[MAX_ROW] = {0};
  tw_cut_t cut;
  int count = read_row(sequence, row, MAX_ROW);
  if (count <= 0)
    return count;
  if (read_cut(row, count, &cut)) {
    PyErr_SetString(PyExc_ValueError, "the numbers that say how tiles are cut do not fit together");
    return -1;
  }
  tw_status_t status = tw_cuda_kernel_set_cut(variant->cuda, &cut);
  if (status)
    tw_ext_raise(status, NULL);
  return status ? -1 : 0;
}

static PyObject *owned_or_null(PyObject *maker) { return maker && maker != Py_None ? Py_NewRef(maker) : NULL; }

/* `tile.fuse` of the module (lowering/gpu/grid/coarsen_tiles.c). */
static int set_fuse(tw_variant_t *variant, PyObject *sequence) {
  enum { MAX_ROW = 128, HEAD = 4, OF_PLAN = 5, OF_STORE = 3 };
  int32_t row[MAX_ROW] = {0};
  int count = read_row(sequence, row, MAX_ROW), n = HEAD, plans = count < HEAD ? 0 : row[HEAD - 1];
  if (count <= 0)
    return count;
  int stores = plans < 1 || plans > TW_CUT_PLANS ? -1 : (count - HEAD - plans * OF_PLAN) / OF_STORE;
  if (stores < 0 || stores > TW_FUSE_STORES || count != HEAD + plans * OF_PLAN + stores * OF_STORE) {
    PyErr_SetString(PyExc_ValueError, "the numbers that say how blocks are fused do not fit together");
    return -1;
  }
  tw_fuse_t fuse = {.word = row[0], .per_step = row[1], .steps = row[2], .num_plans = plans, .num_stores = stores};
  for (int p = 0; p < plans; p++) {
    for (int axis = 0; axis < 3; axis++)
      fuse.plans[p].blocks[axis] = row[n++];
    fuse.plans[p].cycles = row[n++];
    fuse.plans[p].bytes = row[n++];
  }
  for (int i = 0; i < stores; i++) {
    fuse.stores[i].axis = row[n++];
    fuse.stores[i].word = row[n++];
    fuse.stores[i].tile = row[n++];
  }
  tw_status_t status = tw_cuda_kernel_set_fuse(variant->cuda, &fuse);
  if (status)
    tw_ext_raise(status, NULL);
  return status ? -1 : 0;
}

static int set_cut_grid(tw_variant_t *variant, PyObject *sequence) {
  int32_t parts[3];
  int count = read_row(sequence, parts, 3);
  if (count <= 0)
    return count;
  tw_status_t status = count == 3 ? tw_cuda_kernel_set_cut_grid(variant->cuda, parts) : NULL;
  if (status)
    tw_ext_raise(status, NULL);
  else if (count != 3)
    PyErr_SetString(PyExc_ValueError, "a grid of slices has three extents");
  return PyErr_Occurred() ? -1 : 0;
}

/* (axis, cycles in clusters along each axis, cycles of blocks alone), or nothing. */
static int set_pairs(tw_variant_t *variant, PyObject *sequence) {
  enum { NUM = 5 };
  int32_t row[NUM];
  int count = read_row(sequence, row, NUM);
  if (count <= 0)
    return count;
  tw_pairs_t pairs = {row[0], {row[1], row[2], row[3]}, row[NUM - 1]};
  tw_status_t status = count == NUM ? tw_cuda_kernel_set_pairs(variant->cuda, &pairs) : NULL;
  if (status)
    tw_ext_raise(status, NULL);
  else if (count != NUM)
    PyErr_SetString(PyExc_ValueError, "five numbers tell of clusters");
  return PyErr_Occurred() ? -1 : 0;
}

static PyObject *cuda_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  static char *names[] = {"image",      "name",          "num_threads", "shared_bytes", "written",  "programmatic",
                          "persistent", "joined",        "tensor_maps", "split",        "shares",   "better",
                          "pairs",      "disjoint",      "overlapping", "cut",          "cut_grid", "fuse",
                          "loaded",     "takes_tickets", NULL};
  PyObject *image, *name, *maps = NULL, *split = NULL, *better = NULL, *disjoint = NULL, *overlapping = NULL;
  PyObject *cut = NULL, *grid = NULL, *pairs = NULL, *fuse = NULL, *loaded = NULL;
  unsigned threads, shared = 0;
  unsigned long long written = 0;
  unsigned joined = 0;
  int programmatic = 0, persistent = 0, shares = 0, tickets = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OUI|IKppIOOpOOOOOOOOp:CudaKernel", names, &image, &name,
                                   &threads, &shared, &written, &programmatic, &persistent, &joined, &maps, &split,
                                   &shares, &better, &pairs, &disjoint, &overlapping, &cut, &grid, &fuse, &loaded,
                                   &tickets))
    return NULL;
  const char *bytes = NULL, *symbol = PyUnicode_AsUTF8AndSize(name, NULL);
  Py_ssize_t size = 0;
  char *data = NULL;
  if (PyUnicode_Check(image))
    bytes = PyUnicode_AsUTF8AndSize(image, &size);
  else if (!PyBytes_AsStringAndSize(image, &data, &size))
    bytes = data;
  if (!bytes || !symbol)
    return NULL;
  tw_variant_t *variant = variant_alloc(type, name);
  if (!variant)
    return NULL;
  variant->written = written;
  variant->num_threads = threads;
  variant->shared_bytes = shared;
  variant->persistent = persistent;
  variant->better = owned_or_null(better);
  variant->overlapping = owned_or_null(overlapping);
  unsigned flags = (programmatic ? TW_CUDA_PROGRAMMATIC : 0u) | (persistent ? TW_CUDA_PERSISTENT : 0u) |
                   (shares ? TW_CUDA_SHARES : 0u) | (tickets ? TW_CUDA_TICKETS : 0u) | joined << TW_CUDA_JOINED;
  tw_status_t status = tw_cuda_kernel_create(bytes, (size_t)size, symbol, threads, shared, flags, &variant->cuda);
  if (status)
    tw_ext_raise(status, NULL);
  else if ((!maps || !set_maps(variant, maps)) && (!split || !set_split(variant, split)) &&
           (!disjoint || !set_disjoint(variant, disjoint)) && (!cut || !set_cut(variant, cut)) &&
           (!pairs || !set_pairs(variant, pairs)) && (!grid || !set_cut_grid(variant, grid)) &&
           (!fuse || !set_fuse(variant, fuse)) && (!loaded || !set_loaded(variant, loaded)))
    return (PyObject *)variant;
  Py_DECREF((PyObject *)variant);
  return NULL;
}

static PyObject *get_name(PyObject *self, void *unused) {
  (void)unused;
  return Py_NewRef(((tw_variant_t *)self)->name);
}

static PyObject *get_written(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLongLong(((tw_variant_t *)self)->written);
}

static PyObject *get_scratch(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLongLong(((tw_variant_t *)self)->cpu.scratch_bytes);
}

static PyObject *get_threads(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLong(((tw_variant_t *)self)->num_threads);
}

static PyObject *get_shared(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLong(((tw_variant_t *)self)->shared_bytes);
}

static PyObject *get_persistent(PyObject *self, void *unused) {
  (void)unused;
  return PyBool_FromLong(((tw_variant_t *)self)->persistent);
}

/* usage(device) -> dict: what the loaded kernel takes of a block's and a thread's resources. */
static PyObject *cuda_usage(PyObject *self, PyObject *device) {
  long ordinal = PyLong_AsLong(device);
  if (ordinal == -1 && PyErr_Occurred())
    return NULL;
  tw_cuda_usage_t usage;
  tw_status_t status = tw_cuda_kernel_usage(((tw_variant_t *)self)->cuda, (int)ordinal, &usage);
  if (status)
    return tw_ext_raise(status, NULL);
  return Py_BuildValue("{sisisisi}", "registers", usage.registers, "local_bytes", usage.local_bytes, "shared_bytes",
                       usage.shared_bytes, "max_threads", usage.max_threads);
}

static PyObject *cuda_load(PyObject *self, PyObject *device) {
  long ordinal = PyLong_AsLong(device);
  if (ordinal == -1 && PyErr_Occurred())
    return NULL;
  tw_status_t status = tw_cuda_kernel_load(((tw_variant_t *)self)->cuda, (int)ordinal);
  return status ? tw_ext_raise(status, NULL) : Py_NewRef(Py_None);
}

static PyGetSetDef cpu_properties[] = {{"name", get_name, NULL, "name of the function", NULL},
                                       {"written", get_written, NULL, "bit i: argument i is written", NULL},
                                       {"scratch_bytes", get_scratch, NULL, "scratch memory per thread", NULL},
                                       {NULL, NULL, NULL, NULL, NULL}};

static PyGetSetDef cuda_properties[] = {
    {"name", get_name, NULL, "name of the entry in the image", NULL},
    {"written", get_written, NULL, "bit i: argument i is written", NULL},
    {"num_threads", get_threads, NULL, "threads per block; 0: given at launch", NULL},
    {"shared_bytes", get_shared, NULL, "dynamic shared memory per block", NULL},
    {"persistent", get_persistent, NULL, "whether a block takes several blocks of the grid", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMethodDef cuda_methods[] = {
    {"usage", cuda_usage, METH_O, "usage(device) -> dict of registers, local and shared bytes"},
    {"load", cuda_load, METH_O, "load(device): load now what the first launch would load"},
    {NULL, NULL, 0, NULL}};

static PyType_Slot cpu_slots[] = {{Py_tp_new, cpu_new},
                                  {Py_tp_dealloc, variant_dealloc},
                                  {Py_tp_traverse, variant_traverse},
                                  {Py_tp_getset, cpu_properties},
                                  {Py_tp_doc,
                                   "CpuKernel(address, name, scratch_bytes=0, written=0, owner=None): native code; "
                                   "owner is kept alive with it"},
                                  {0, NULL}};

static PyType_Slot cuda_slots[] = {{Py_tp_new, cuda_new},
                                   {Py_tp_dealloc, variant_dealloc},
                                   {Py_tp_traverse, variant_traverse},
                                   {Py_tp_getset, cuda_properties},
                                   {Py_tp_methods, cuda_methods},
                                   {Py_tp_doc,
                                    "CudaKernel(image, name, num_threads, shared_bytes=0, written=0, "
                                    "programmatic=False, persistent=False, joined=0, tensor_maps=(), "
                                    "split=(), shares=False, better=None, pairs=(), disjoint=(), overlapping=None, "
                                    "cut=(), cut_grid=(), fuse=(), loaded=(), takes_tickets=False): PTX text or a "
                                    "cubin; loaded at the first launch on a device"},
                                   {0, NULL}};

static PyType_Spec cpu_spec = {"tilewright._core.CpuKernel", sizeof(tw_variant_t), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, cpu_slots};
static PyType_Spec cuda_spec = {"tilewright._core.CudaKernel", sizeof(tw_variant_t), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, cuda_slots};

int tw_ext_variant_add(PyObject *module) {
  tw_cpu_variant_type = (PyTypeObject *)PyType_FromSpec(&cpu_spec);
  tw_cuda_variant_type = (PyTypeObject *)PyType_FromSpec(&cuda_spec);
  if (!tw_cpu_variant_type || !tw_cuda_variant_type ||
      PyModule_AddObjectRef(module, "CpuKernel", (PyObject *)tw_cpu_variant_type))
    return -1;
  return PyModule_AddObjectRef(module, "CudaKernel", (PyObject *)tw_cuda_variant_type);
}
