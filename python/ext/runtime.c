/* runtime.c - devices, driver and disk cache for Python
 *
 * What `tilewright doctor`, the compile cache and the benchmarks ask for. */
#include "dispatch.h"
#include "ext.h"

#include <stdlib.h>
#include <string.h>

static PyObject *none(void) { return Py_NewRef(Py_None); }

/* === devices ================================================================================ */

static PyObject *driver_version(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  int version;
  tw_status_t status = tw_driver_version(&version);
  return status ? tw_ext_raise(status, NULL) : PyLong_FromLong(version);
}

static PyObject *device_count(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  int count;
  tw_status_t status;
  Py_BEGIN_ALLOW_THREADS status = tw_device_count(&count); /* the first call begins the driver */
  Py_END_ALLOW_THREADS return status ? tw_ext_raise(status, NULL) : PyLong_FromLong(count);
}

static int ordinal_of(PyObject *object, int *out) {
  long value = PyLong_AsLong(object);
  if (value == -1 && PyErr_Occurred())
    return -1;
  *out = value < -1 || value > 1 << 20 ? -1 : (int)value;
  return 0;
}

/* The figures of a chip that the tuner's model asks for. */
static PyObject *figures_of(const tw_machine_t *m) {
  return Py_BuildValue("{sisisisisisisisisi}", "tensor_flop", m->tensor_flop, "fma_flop", m->fma_flop, "l2_bytes",
                       m->l2_bytes, "shared_rate", m->shared_rate, "threads_sm", m->threads_sm, "registers_sm",
                       m->registers_sm, "memory_ns", m->memory_ns, "wave_ns", m->wave_ns, "iteration_ns",
                       m->iteration_ns);
}

static PyObject *chip(PyObject *module, PyObject *object) {
  (void)module;
  long number = PyLong_AsLong(object);
  return number == -1 && PyErr_Occurred() ? NULL : figures_of(tw_machine_of((int)number));
}

static PyObject *device_info(PyObject *module, PyObject *object) {
  (void)module;
  int ordinal;
  if (ordinal_of(object, &ordinal))
    return NULL;
  tw_device_t found, *device = &found;
  tw_status_t status;
  Py_BEGIN_ALLOW_THREADS status = tw_device_describe(ordinal, device);
  Py_END_ALLOW_THREADS if (status) return tw_ext_raise(status, NULL);
  return Py_BuildValue(
      "{sssss(ii)sOsisisisisisisisisKsN}", "name", device->name, "uuid", device->uuid, "capability", device->major,
      device->minor, "is_open", tw_device_is_open(ordinal) ? Py_True : Py_False, "sm_count", device->sm_count,
      "shared_bytes_per_block", device->shared_bytes_per_block, "shared_bytes_per_sm", device->shared_bytes_per_sm,
      "l2_bytes", device->l2_bytes, "max_threads_per_block", device->max_threads_per_block, "clock_khz",
      device->clock_khz, "memory_clock_khz", device->memory_clock_khz, "memory_bus_bits", device->memory_bus_bits,
      "memory_bytes", (unsigned long long)device->memory_bytes, "machine", figures_of(device->machine));
}

static PyObject *synchronize(PyObject *module, PyObject *arguments) {
  int ordinal = 0;
  if (!PyArg_ParseTuple(arguments, "|i:synchronize", &ordinal))
    return NULL;
  tw_status_t status;
  Py_BEGIN_ALLOW_THREADS status = tw_device_synchronize(ordinal);
  Py_END_ALLOW_THREADS tw_ext_sweep(tw_state_of(module));
  return status ? tw_ext_raise(status, NULL) : none();
}

static PyObject *cpu_threads(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  return PyLong_FromLong(tw_cpu_threads());
}

PyObject *tw_ext_target_name(int major, int minor) {
  return PyUnicode_FromFormat("sm_%d%d%s", major, minor, major >= 9 ? "a" : "");
}

/* A device by its number, or the first one that runs code for a target such as "sm_90a". */
static int find_device(PyObject *object, int *out_ordinal) {
  if (!PyUnicode_Check(object))
    return ordinal_of(object, out_ordinal);
  int count;
  tw_status_t status = tw_device_count(&count);
  for (int i = 0; i < count && !status; i++) {
    const tw_device_t *device;
    status = tw_device_get(i, &device);
    PyObject *name = status ? NULL : tw_ext_target_name(device->major, device->minor);
    bool same = name && !PyUnicode_Compare(name, object);
    Py_XDECREF(name);
    if (same) {
      *out_ordinal = i;
      return 0;
    }
  }
  if (status)
    tw_ext_raise(status, NULL);
  else if (!PyErr_Occurred())
    tw_ext_error(TW_DRIVER_ERROR, "none of the %d CUDA device(s) runs code for %U", count, object);
  return -1;
}

/* One (name, bytes) as a part; both live as long as the pair. */
static int part_of(PyObject *pair, tw_link_part_t *out) {
  PyObject *bytes;
  if (!PyTuple_Check(pair) || !PyArg_ParseTuple(pair, "sS:ptx_to_cubin", &out->name, &bytes)) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_TypeError, "ptx_to_cubin links pairs of a name and bytes");
    return -1;
  }
  out->bytes = PyBytes_AsString(bytes);
  out->size = (size_t)PyBytes_Size(bytes);
  return 0;
}

/* The PTX, and what it is linked with; the caller frees them. NULL: an exception is set. */
static tw_link_part_t *parts_of(const char *ptx, PyObject *links, size_t *out_count) {
  Py_ssize_t count = links ? PyTuple_Size(links) : 0;
  tw_link_part_t *parts = malloc((size_t)(count + 1) * sizeof *parts);
  if (!parts) {
    PyErr_NoMemory();
    return NULL;
  }
  parts[0] = (tw_link_part_t){"kernel.ptx", ptx, strlen(ptx)};
  for (Py_ssize_t i = 0; i < count; i++)
    if (part_of(PyTuple_GetItem(links, i), &parts[i + 1])) {
      free(parts);
      return NULL;
    }
  *out_count = (size_t)count + 1;
  return parts;
}

/* ptx_to_cubin(ptx, device=0, links=()) -> (cubin, log); device is a number or a target */
static PyObject *ptx_to_cubin(PyObject *module, PyObject *arguments) {
  (void)module;
  const char *ptx;
  PyObject *device = NULL, *links = NULL;
  int ordinal = 0;
  if (!PyArg_ParseTuple(arguments, "s|OO!:ptx_to_cubin", &ptx, &device, &PyTuple_Type, &links) ||
      (device && find_device(device, &ordinal)))
    return NULL;
  size_t size, count = 0;
  tw_link_part_t *parts = parts_of(ptx, links, &count);
  if (!parts)
    return NULL;
  void *cubin;
  char *log;
  tw_status_t status;
  Py_BEGIN_ALLOW_THREADS /* takes as long as the code is large */
      status = tw_cubin_link(parts, count, ordinal, &cubin, &size, &log);
  Py_END_ALLOW_THREADS free(parts);
  if (status)
    return tw_ext_raise(status, NULL);
  PyObject *result = Py_BuildValue("(y#s)", (char *)cubin, (Py_ssize_t)size, log ? log : "");
  free(cubin);
  free(log);
  return result;
}

/* === the disk cache ========================================================================= */

static PyObject *hash128(PyObject *module, PyObject *arguments) {
  (void)module;
  const char *bytes;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(arguments, "s#:hash128", &bytes, &size))
    return NULL;
  tw_key_t key = tw_hash(bytes, (size_t)size);
  return PyBytes_FromStringAndSize((const char *)&key, sizeof key);
}

static int key_of(const char *bytes, Py_ssize_t size, tw_key_t *out) {
  if (size != sizeof *out) {
    PyErr_Format(PyExc_ValueError, "a key has %zu bytes (hash128 makes one), found %zd", sizeof *out, size);
    return -1;
  }
  memcpy(out, bytes, sizeof *out);
  return 0;
}

static PyObject *cache_get(PyObject *module, PyObject *arguments) {
  (void)module;
  const char *bytes;
  Py_ssize_t size;
  tw_key_t key;
  if (!PyArg_ParseTuple(arguments, "y#:cache_get", &bytes, &size) || key_of(bytes, size, &key))
    return NULL;
  void *blob;
  size_t length;
  bool found;
  Py_BEGIN_ALLOW_THREADS found = tw_cache_get(key, &blob, &length);
  Py_END_ALLOW_THREADS if (!found) return none();
  PyObject *result = PyBytes_FromStringAndSize(blob, (Py_ssize_t)length);
  free(blob);
  return result;
}

static PyObject *cache_put(PyObject *module, PyObject *arguments) {
  (void)module;
  const char *bytes, *blob;
  Py_ssize_t size, length;
  tw_key_t key;
  if (!PyArg_ParseTuple(arguments, "y#y#:cache_put", &bytes, &size, &blob, &length) || key_of(bytes, size, &key))
    return NULL;
  bool stored;
  Py_BEGIN_ALLOW_THREADS stored = tw_cache_put(key, blob, (size_t)length);
  Py_END_ALLOW_THREADS return PyBool_FromLong(stored);
}

static PyObject *cache_info(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  tw_cache_info_t *info = malloc(sizeof *info);
  if (!info)
    return PyErr_NoMemory();
  tw_cache_info(info);
  PyObject *path = PyUnicode_DecodeFSDefault(info->path);
  PyObject *result =
      Py_BuildValue("{sNsssKsKsi}", "path", path, "problem", info->problem, "bytes", (unsigned long long)info->bytes,
                    "limit", (unsigned long long)info->limit, "entries", info->entries);
  free(info);
  return result;
}

static PyObject *cache_clear(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  tw_cache_clear();
  return none();
}

/* === measuring ============================================================================== */

/* _bench_driver_launch(kernel, device, stream, words, n) -> ns of one bare driver call. */
static PyObject *bench_driver_launch(PyObject *module, PyObject *arguments) {
  tw_state_t *state = tw_state_of(module);
  PyObject *kernel, *stream_object;
  const char *words;
  Py_ssize_t size;
  int ordinal, n;
  tw_stream_t stream;
  if (!PyArg_ParseTuple(arguments, "OiOy#i:_bench_driver_launch", &kernel, &ordinal, &stream_object, &words, &size,
                        &n) ||
      tw_ext_stream_read(state, stream_object, &stream))
    return NULL;
  if (Py_TYPE(kernel) != state->cuda_kernel || size % 8 || size > TW_MAX_WORDS * 8 || n < 1) {
    PyErr_SetString(PyExc_ValueError, "a CudaKernel, 8-byte words and a positive count");
    return NULL;
  }
  uint64_t copy[TW_MAX_WORDS + TW_MORE_WORDS] __attribute__((aligned(64)));
  memcpy(copy, words, (size_t)size);
  static const uint32_t one[4] = {1, 1, 1, 0};
  double ns;
  tw_status_t status =
      tw_cuda_bench(((tw_variant_t *)kernel)->cuda, ordinal, stream.handle, one, one, copy, (size_t)size / 8, n, &ns);
  return status ? tw_ext_raise(status, NULL) : PyFloat_FromDouble(ns);
}

static PyMethodDef methods[] = {
    {"driver_version", driver_version, METH_NOARGS, "12040 for a driver that supports CUDA 12.4"},
    {"device_count", device_count, METH_NOARGS, "number of CUDA devices"},
    {"chip", chip, METH_O, "chip(number) -> dict: figures of sm_NUMBER"},
    {"device_info", device_info, METH_O, "device_info(ordinal) -> dict"},
    {"synchronize", synchronize, METH_VARARGS,
     "synchronize(device=0): wait for all work; an error names the last kernels"},
    {"cpu_threads", cpu_threads, METH_NOARGS, "threads that a launch on the CPU may use"},
    {"ptx_to_cubin", ptx_to_cubin, METH_VARARGS,
     "ptx_to_cubin(ptx, device=0, links=()) -> (cubin, log); device is a number or a target like \"sm_90a\", links are "
     "pairs of a name and bytes of PTX or machine code that the driver links it with"},
    {"hash128", hash128, METH_VARARGS, "hash128(bytes or str) -> a key of 16 bytes"},
    {"cache_get", cache_get, METH_VARARGS, "cache_get(key) -> bytes or None"},
    {"cache_put", cache_put, METH_VARARGS, "cache_put(key, bytes) -> whether it was stored"},
    {"cache_info", cache_info, METH_NOARGS, "dict: path, problem, bytes, limit, entries"},
    {"cache_clear", cache_clear, METH_NOARGS, "remove every entry of the disk cache"},
    {"_bench_driver_launch", bench_driver_launch, METH_VARARGS,
     "_bench_driver_launch(kernel, device, stream, words, n) -> ns"},
    {NULL, NULL, 0, NULL}};

/* The launching half of the module: everything that needs no compiler. */
int tw_ext_add_launch(PyObject *module) {
  if (tw_ext_array_add(module) || tw_ext_record_add(module) || tw_ext_variant_add(module) ||
      tw_ext_dispatch_add(module) || tw_ext_call_plan_add(module) || tw_ext_memory_add(module) ||
      tw_ext_host_memory_add(module) || tw_ext_device_array_add(module))
    return -1;
  return PyModule_AddFunctions(module, methods);
}
