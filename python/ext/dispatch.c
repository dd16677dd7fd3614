/* dispatch.c - launch(): from Python arguments to a compiled variant to running blocks
 *
 * A Dispatcher belongs to one kernel function. A launch reads every argument once and makes two
 * things of it: parameter words, and key words (facts of an array, type of a scalar, value of a
 * constant). The key words find the compiled variant: by hash, then by comparing all of them. When
 * there is none, the front end is asked for one (`on_miss`), which happens once a specialization.
 *
 * The hot path allocates nothing, and knows an array like that of the launch before (tw_array_pack_known). Most of what
 * is left is the array library's, some 50 ns a torch tensor, and the time in which caches fill again with our code. */
#include "dispatch.h"
#include "import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* === where it runs ================================================================================================ */

/* Without arrays the stream decides: one that is not None means the GPU, if there is one. */
static int choose_device(call_t *call) {
  call->kind = TW_DEVICE_CPU;
  if (!call->reader.stream.given)
    return 0;
  const tw_device_t *first;
  tw_status_t status = tw_device_get(0, &first);
  if (!status) {
    call->kind = TW_DEVICE_CUDA;
    status = tw_stream_device(call->reader.stream.handle, &call->device_id);
  } else if (!call->reader.stream.handle) { /* stream 0 does not ask for a GPU */
    tw_status_free(status);
    status = NULL;
  }
  return status ? tw_call_error(call->self, status) : 0;
}

TW_HOT static int read_target(call_t *call) {
  if (TW_UNLIKELY(call->kind == TW_DEVICE_NONE) && choose_device(call))
    return -1;
  if (call->kind == TW_DEVICE_CPU) {
    call->key[0] = TW_DEVICE_CPU;
    if (TW_LIKELY(!call->reader.stream.handle))
      return 0;
    tw_ext_error(TW_LAUNCH_ERROR,
                 "kernel %U: its arrays are on the CPU, where the stream must be None or 0; move "
                 "them to the GPU to use a stream",
                 call->self->name);
    return -1;
  }
  const tw_device_t *device;
  tw_status_t status = tw_device_get(call->device_id, &device);
  if (TW_UNLIKELY(status != NULL))
    return tw_call_error(call->self, status);
  call->key[0] = TW_DEVICE_CUDA | (uint64_t)device->major << 8 | (uint64_t)device->minor << 16;
  return 0;
}

/* === compiling ==================================================================================================== */

enum { MOST_LEVELS = 16 }; /* levels of lists in lists; deeper values count as changed */

static bool is_same(PyObject *now, PyObject *was, int levels);

static bool is_same_row(PyObject *now, PyObject *was, int levels) {
  Py_ssize_t count = PySequence_Size(was);
  bool same = count >= 0 && PySequence_Size(now) == count;
  for (Py_ssize_t i = 0; same && i < count; i++) {
    PyObject *x = PySequence_GetItem(now, i), *y = PySequence_GetItem(was, i);
    same = x && y && is_same(x, y, levels - 1);
    Py_XDECREF(x);
    Py_XDECREF(y);
  }
  return same;
}

static bool is_same_dict(PyObject *now, PyObject *was, int levels) {
  PyObject *key, *value;
  Py_ssize_t at = 0;
  bool same = PyDict_Size(now) == PyDict_Size(was);
#ifdef TW_FREE_THREADED
  Py_BEGIN_CRITICAL_SECTION(was);
#endif
  while (same && PyDict_Next(was, &at, &key, &value)) {
    Py_INCREF(key);
    Py_INCREF(value);
    PyObject *other = tw_dict_get(now, key);
    same = other && is_same(other, value, levels - 1);
    Py_XDECREF(other);
    Py_DECREF(value);
    Py_DECREF(key);
  }
#ifdef TW_FREE_THREADED
  Py_END_CRITICAL_SECTION();
#endif
  return same;
}

/* Whether a value equals the one that a kernel was compiled with. Numbers of different types differ, and so do 0.0
 * and -0.0. An object of any other type equals only itself. */
static bool is_same(PyObject *now, PyObject *was, int levels) {
  if (now == was)
    return true;
  if (!now || levels == 0 || Py_TYPE(now) != Py_TYPE(was))
    return false;
  if (PyFloat_CheckExact(was)) {
    double x = PyFloat_AsDouble(now), y = PyFloat_AsDouble(was);
    return isnan(x) ? isnan(y) : x == y && !signbit(x) == !signbit(y);
  }
  if (PyLong_CheckExact(was) || PyUnicode_CheckExact(was) || PyBytes_CheckExact(was) || PyAnySet_CheckExact(was))
    return PyObject_RichCompareBool(now, was, Py_EQ) == 1;
  if (PyList_CheckExact(was) || PyTuple_CheckExact(was))
    return is_same_row(now, was, levels);
  return PyDict_CheckExact(was) && is_same_dict(now, was, levels);
}

/* Whether something that the variants were made from has another value now: a row is (dict, name, value),
 * (object, attribute, value), or (list or dict, None, copy). */
static bool is_stale(PyObject *watched) {
  bool stale = false;
  Py_ssize_t count = PyTuple_Size(watched);
  for (Py_ssize_t i = 0; i < count && !stale; i++) {
    PyObject *row = PyTuple_GetItem(watched, i);
    PyObject *holder = PyTuple_GetItem(row, 0), *name = PyTuple_GetItem(row, 1), *now;
    if (name == Py_None)
      now = Py_NewRef(holder);
    else if (PyDict_Check(holder))
      now = tw_dict_get(holder, name);
    else
      now = PyObject_GetAttr(holder, name);
    stale = now != PyTuple_GetItem(row, 2) && !is_same(now, PyTuple_GetItem(row, 2), MOST_LEVELS);
    Py_XDECREF(now);
    if (PyErr_Occurred())
      PyErr_Clear();
  }
  return stale;
}

/* What is watched: new reference, or NULL. */
static PyObject *watched_of(dispatcher_t *self) {
  TW_LOCK(self);
  PyObject *watched = Py_XNewRef(self->watched);
  TW_UNLOCK(self);
  return watched;
}

TW_HOT static void forget_stale(dispatcher_t *self) {
  if (!TW_PUBLISHED(self->watched))
    return;
  PyObject *watched = watched_of(self);
  if (watched && TW_UNLIKELY(is_stale(watched)))
    tw_table_clear_stale(self, watched);
  Py_XDECREF(watched);
}

static int check_variant(const call_t *call, PyObject *variant) {
  const tw_state_t *state = call->reader.state;
  PyTypeObject *wanted = call->kind == TW_DEVICE_CPU ? state->cpu_kernel : state->cuda_kernel;
  if (Py_TYPE(variant) == wanted)
    return 0;
  tw_ext_error(TW_INTERNAL_ERROR, "kernel %U: on_miss returned %R, expected %R", call->self->name,
               (PyObject *)Py_TYPE(variant), (PyObject *)wanted);
  return -1;
}

/* Asks the front end for a variant, a new reference. Meanwhile other threads may run and do the same. */
static tw_variant_t *compile_variant(call_t *call, PyObject *arguments) {
  dispatcher_t *self = call->self;
  tw_variant_t *found = NULL;
  PyObject *target = tw_key_target(call->key[0]);
  PyObject *key = target ? tw_key_describe(call, arguments) : NULL;
  PyObject *variant = key ? PyObject_CallFunctionObjArgs(self->on_miss, (PyObject *)self, target, key, NULL) : NULL;
  if (variant && PyExceptionInstance_Check(variant)) { /* a mistake of the user's: no frame of ours belongs to it */
    PyErr_SetObject((PyObject *)Py_TYPE(variant), variant);
  } else if (variant && !check_variant(call, variant)) {
    found = tw_table_insert(self, call, variant, target, key);
  }
  Py_XDECREF(variant);
  Py_XDECREF(key);
  Py_XDECREF(target);
  return found;
}

/* === launching ==================================================================================================== */

static int check_written(const call_t *call, uint64_t written) {
  if (written & call->read_only)
    return tw_call_mask_error(call, written & call->read_only, "which is read-only; pass a writable array (or a copy)");
  return tw_call_mask_error(call, written & call->overlapping,
                            "whose elements overlap in memory (a stride is 0 or too small); pass a "
                            "contiguous copy");
}

/* Whether a signal's handler has raised, as that of Ctrl-C does: it runs in the middle of the launch. */
static bool is_interrupted(void *user) {
  PyThreadState **state = user;
  PyEval_RestoreThread(*state);
  bool raised = PyErr_CheckSignals() < 0;
  *state = PyEval_SaveThread();
  return raised;
}

/* Asks for a variant by another plan in the place of one that was not loaded, or spills. NULL: there is none. */
static tw_variant_t *other_plan(call_t *call, tw_variant_t *variant, const char *problem, int local_bytes) {
  PyObject *made =
      PyObject_CallFunction(variant->or_else, "izi", call->device_id, problem, local_bytes); /* NULL: as if None */
  if (!made || Py_IsNone(made) || check_variant(call, made)) {
    Py_XDECREF(made);
    PyErr_Clear();
    return NULL;
  }
  return (tw_variant_t *)tw_publish(&variant->instead, made); /* another thread may have been faster */
}

/* Loads a variant, or one of another plan if the driver refuses it or it spills; returns the one that was loaded.
 * NULL with an exception. It takes milliseconds, for PTX more: the GIL is given up meanwhile. */
static tw_variant_t *load_on_gpu(call_t *call, tw_variant_t *variant) {
  for (PyObject *instead; (instead = TW_PUBLISHED(variant->instead));)
    variant = (tw_variant_t *)instead;
  if (tw_cuda_kernel_is_loaded(variant->cuda, call->device_id))
    return variant;
  tw_cuda_usage_t usage = {0};
  tw_status_t status;
  Py_INCREF((PyObject *)variant);
  Py_BEGIN_ALLOW_THREADS status = tw_cuda_kernel_load(variant->cuda, call->device_id);
  if (!status && variant->or_else)
    status = tw_cuda_kernel_usage(variant->cuda, call->device_id, &usage);
  Py_END_ALLOW_THREADS tw_variant_t *other = NULL;
  if (variant->or_else &&
      (status ? tw_status_code(status) == TW_COMPILE_ERROR : usage.local_bytes >= variant->much_local))
    other = other_plan(call, variant, status ? tw_status_message(status) : NULL, usage.local_bytes);
  Py_DECREF((PyObject *)variant);
  if (other && status)
    tw_status_free(status);
  else if (status)
    tw_call_error(call->self, status);
  return other ? load_on_gpu(call, other) : status ? NULL : variant;
}

/* The variant that `maker` makes when it is first wanted; NULL with an exception if there is none. */
static tw_variant_t *variant_for(call_t *call, PyObject *maker, tw_alternative_t what, PyObject **made) {
  static const char *const kinds[] = {[TW_ALTERNATIVE_SLICED] = "slice",
                                      [TW_ALTERNATIVE_COARSENED] = "coarsen",
                                      [TW_ALTERNATIVE_SHARED] = "share",
                                      [TW_ALTERNATIVE_CLUSTERS] = "clusters",
                                      [TW_ALTERNATIVE_AS_LAUNCHED] = "as_launched",
                                      [TW_ALTERNATIVE_SPLIT_K] = "split_k"};
  PyObject *found = TW_PUBLISHED(*made);
  if (!found) {
    PyObject *fresh = PyObject_CallFunction(maker, "si", kinds[what.kind], what.number);
    if (!fresh || check_variant(call, fresh)) {
      Py_XDECREF(fresh);
      return NULL;
    }
    found = tw_publish(made, fresh); /* another thread may have been faster */
  }
  return (tw_variant_t *)found;
}

/* The variant that is fastest for this launch. Slices of tiles may be shared in turn. Variants are loaded only when
 * needed, since the driver's assembler may take longer than everything else. */
static tw_variant_t *find_alternative(call_t *call, tw_variant_t *variant) {
  while (variant && variant->better) {
    tw_alternative_t better;
    tw_status_t status = tw_cuda_find_alternative(variant->cuda, call->device_id, call->grid, call->words, &better);
    if (TW_UNLIKELY(status != NULL)) {
      tw_call_error(call->self, status);
      return NULL;
    }
    if (TW_LIKELY(better.kind == TW_ALTERNATIVE_NONE))
      break;
    if (better.kind == TW_ALTERNATIVE_UNKNOWN) {
      if (!(variant = load_on_gpu(call, variant)))
        return NULL;
      continue;
    }
    int place = better.number;
    if (better.kind <= TW_ALTERNATIVE_SHARED) /* powers of two */
      for (place = 0; 2 << place <= better.number;)
        place++;
    variant = variant_for(call, variant->better, better, &variant->made[better.kind - TW_ALTERNATIVE_SLICED][place]);
  }
  return variant;
}

/* The variant for arrays that overlap, where those of this launch do and the variant takes them for separate. */
static tw_variant_t *ordered_variant(call_t *call, tw_variant_t *variant) {
  bool overlap = variant->cuda ? tw_cuda_would_overlap(variant->cuda, call->words)
                               : tw_would_overlap(variant->apart, variant->num_apart, call->words);
  return TW_UNLIKELY(overlap) ? variant_for(call, variant->overlapping,
                                            (tw_alternative_t){.kind = TW_ALTERNATIVE_SPLIT_K}, &variant->overlapped)
                              : variant;
}

/* The variant that a launch runs in place of the one for its arguments; NULL with an exception. */
TW_HOT static tw_variant_t *chosen_variant(call_t *call, tw_variant_t *variant) {
  if (variant->better && !(variant = find_alternative(call, variant)))
    return NULL;
  return variant->overlapping ? ordered_variant(call, variant) : variant;
}

/* The GIL is kept: the driver's call takes 2 us, giving the lock away and taking it back may take 5 ms when threads
 * compete. */
TW_HOT static int start_on_gpu(call_t *call, tw_variant_t *variant) {
  if (!(variant = chosen_variant(call, variant)))
    return -1;
  if (TW_UNLIKELY(TW_PUBLISHED(variant->instead) || !tw_cuda_kernel_is_loaded(variant->cuda, call->device_id)) &&
      !(variant = load_on_gpu(call, variant)))
    return -1;
  tw_status_t status = tw_cuda_launch(variant->cuda, call->device_id, call->reader.stream.handle, call->grid,
                                      call->has_block ? call->block : NULL, call->words, call->word_count);
  return TW_UNLIKELY(status != NULL) ? tw_call_error(call->self, status) : 0;
}

/* The GIL is released: other Python threads run beside the kernel. The arguments are kept by the
 * caller's tuple, the code by a reference of the caller's. */
static int start_on_cpu(call_t *call, tw_variant_t *variant) {
  if (!(variant = chosen_variant(call, variant)))
    return -1;
  PyThreadState *state = PyEval_SaveThread();
  tw_cpu_watch_t watch = {.is_interrupted = is_interrupted, .user = &state};
  tw_status_t status =
      tw_cpu_launch(&variant->cpu, call->words, call->grid, call->has_block ? call->block : NULL, &watch);
  PyEval_RestoreThread(state);
  if (watch.stopped) {
    tw_status_free(status);
    return -1;
  }
  return status ? tw_call_error(call->self, status) : 0;
}

TW_HOT int tw_call_run(call_t *call, tw_variant_t *variant) {
  return call->kind == TW_DEVICE_CPU ? start_on_cpu(call, variant) : start_on_gpu(call, variant);
}

/* The variant for the arguments, a new reference: compiling or loading may make this or another thread forget all
 * variants. NULL with an exception. */
TW_HOT static tw_variant_t *find_variant(call_t *call, PyObject *arguments) {
  if (TW_UNLIKELY(tw_call_read_arguments(call, arguments)) || TW_UNLIKELY(read_target(call)))
    return NULL;
  forget_stale(call->self);
  tw_variant_t *variant = tw_table_find(call->self, call);
  return TW_LIKELY(variant != NULL) ? variant : compile_variant(call, arguments);
}

TW_HOT static int run_variant(call_t *call, tw_variant_t *variant) {
  if (TW_UNLIKELY(!variant))
    return -1;
  if (TW_UNLIKELY(variant->written & (call->read_only | call->overlapping)))
    return check_written(call, variant->written);
  return tw_call_run(call, variant);
}

/* A kernel of the one kind, launched as the other. */
static int form_error(const call_t *call) {
  const char *text = call->has_block ? "kernel %U is a tile kernel, whose blocks have no threads to count: start it "
                                       "with ct.launch(stream, grid, %U, (...))"
                                     : "kernel %U is written for one thread: say how many a block has, as in "
                                       "device.launch(%U, ..., grid=..., block=...)";
  tw_ext_error(TW_LAUNCH_ERROR, text, call->self->name, call->self->name);
  return -1;
}

/* To ask for a subclass costs 20 ns, and kernels are of one class or two. */
TW_HOT static bool is_dispatcher(tw_state_t *state, PyObject *object) {
  PyTypeObject *type = Py_TYPE(object), *old = TW_PUBLISHED(state->kernel);
  if (TW_LIKELY(type == old))
    return true;
  if (!PyObject_TypeCheck(object, state->dispatcher))
    return false;
#ifdef TW_FREE_THREADED /* the first one stays */
  Py_INCREF((PyObject *)type);
  tw_publish((PyObject **)&state->kernel, (PyObject *)type);
#else
  state->kernel = (PyTypeObject *)Py_NewRef((PyObject *)type);
  Py_XDECREF((PyObject *)old);
#endif
  return true;
}

/* Gives the last parameters their defaults, if there are enough of them. */
TW_COLD static int add_defaults(call_t *call, PyObject **arguments) {
  Py_ssize_t given = PyTuple_Size(*arguments), missing = call->self->count - given;
  Py_ssize_t defaults = call->self->defaults ? PyTuple_Size(call->self->defaults) : 0;
  if (missing < 0 || missing > defaults)
    return tw_call_count_error(call->self, given);
  PyObject *last = PyTuple_GetSlice(call->self->defaults, defaults - missing, defaults);
  PyObject *all = last ? PySequence_Concat(*arguments, last) : NULL;
  Py_XDECREF(last);
  if (!all || tw_ext_hold_object(&call->reader.holds, all))
    return -1;
  *arguments = all;
  return 0;
}

TW_HOT static int begin_call(call_t *call, PyObject *stream, PyObject *grid, PyObject *block, PyObject *kernel,
                             PyObject **arguments) {
  if (TW_UNLIKELY(!is_dispatcher(call->reader.state, kernel))) {
    tw_ext_error_type(TW_TYPE_ERROR,
                      "launch() takes (stream, grid, kernel, args); as kernel it was given a %U, "
                      "which is no kernel: decorate the function with @ct.kernel",
                      kernel);
    return -1;
  }
  call->self = (dispatcher_t *)kernel;
  call->has_block = block != NULL;
  if (TW_UNLIKELY(!TW_PUBLISHED(call->self->parameters))) {
    tw_ext_error(TW_INTERNAL_ERROR, "the kernel was not initialized");
    return -1;
  }
  if (TW_UNLIKELY(call->has_block != (call->self->threads != 0)))
    return form_error(call);
  if (TW_UNLIKELY(!PyTuple_CheckExact(*arguments) && !PyTuple_Check(*arguments))) {
    tw_ext_error_type(TW_TYPE_ERROR, "launch(): the arguments must be a tuple, found a %U", *arguments);
    return -1;
  }
  if (TW_UNLIKELY(PyTuple_Size(*arguments) != call->self->count) && add_defaults(call, arguments))
    return -1;
  bool one = !block && PyTuple_CheckExact(grid) && PyTuple_Size(grid) == 0; /* a grid of tiles without axes */
  call->grid[0] = call->grid[1] = call->grid[2] = 1;
  if ((!one && tw_call_read_extents(call->self, grid, "grid", tw_grid_check, call->grid)) ||
      (block && tw_call_read_extents(call->self, block, "block", tw_block_check, call->block)))
    return -1;
  return tw_ext_stream_read(call->reader.state, stream, &call->reader.stream);
}

/* begin_call; if it fails, everything that it took is freed. */
TW_HOT static int begin(call_t *call, tw_state_t *state, PyObject *stream, PyObject *grid, PyObject *block,
                        PyObject *kernel, PyObject **arguments) {
  call->reader.state = state;
  call->reader.holds = NULL;
  if (TW_LIKELY(!begin_call(call, stream, grid, block, kernel, arguments)))
    return 0;
  tw_hold_release(call->reader.holds);
  return -1;
}

/* Runs the variant (taken; NULL: an exception is pending) and lets go what the call has taken. */
TW_HOT static PyObject *run_and_end(call_t *call, tw_variant_t *variant) {
  int failed = run_variant(call, variant);
  Py_XDECREF((PyObject *)variant);
  if (TW_UNLIKELY(call->reader.holds != NULL) && !failed && call->kind == TW_DEVICE_CUDA)
    tw_ext_defer(call->reader.state, &call->reader.holds, call->device_id, call->reader.stream.handle);
  tw_hold_release(call->reader.holds);
  return TW_UNLIKELY(failed) ? NULL : Py_NewRef(Py_None);
}

TW_HOT static PyObject *launch_objects(PyObject *module, PyObject *stream, PyObject *grid, PyObject *block,
                                       uint32_t shared, PyObject *kernel, PyObject *arguments) {
  call_t call;
  call.block[3] = shared;
  if (TW_UNLIKELY(begin(&call, tw_state_of(module), stream, grid, block, kernel, &arguments)))
    return NULL;
  call.reader.stream.scan = arguments;
  return run_and_end(&call, find_variant(&call, arguments));
}

/* Whether a keyword changes no result. The compiler decides by itself where a kernel may start before its
 * predecessor in the stream has ended. */
static bool is_wish(PyObject *name) { return !PyUnicode_CompareWithASCIIString(name, "programmatic_dependent_launch"); }

/* Where launch() has the parameter `name`; -1 where it has none. */
static Py_ssize_t launch_position(PyObject *name) {
  static const char *const parameters[] = {"stream", "grid", "kernel", "kernel_args"};
  for (Py_ssize_t i = 0; i < 4; i++)
    if (!PyUnicode_CompareWithASCIIString(name, parameters[i]))
      return i;
  return -1;
}

/* A launch that checks: python/tilewright/checking.py adds what it needs to the arguments. */
TW_COLD static PyObject *launch_checked(PyObject *const values[4]) {
  PyObject *module = PyImport_ImportModule("tilewright.checking");
  PyObject *function = module ? PyObject_GetAttrString(module, "launch") : NULL;
  PyObject *result =
      function ? PyObject_CallFunctionObjArgs(function, values[0], values[1], values[2], values[3], NULL) : NULL;
  Py_XDECREF(function);
  Py_XDECREF(module);
  return result;
}

/* The kernel with the hints of a dict; None: as it is. */
TW_COLD static PyObject *with_hints(PyObject *kernel, PyObject *hints) {
  if (hints == Py_None)
    return Py_NewRef(kernel);
  if (!PyDict_Check(hints))
    return tw_ext_error(TW_TYPE_ERROR, "launch(): hints is a dict, as in hints={\"num_warps\": 4}, found %R", hints);
  PyObject *replace = PyObject_GetAttrString(kernel, "replace_hints"), *none = PyTuple_New(0);
  PyObject *found = replace && none ? PyObject_Call(replace, none, hints) : NULL;
  Py_XDECREF(replace);
  Py_XDECREF(none);
  return found;
}

/* Some of the arguments by name. */
static PyObject *launch_by_name(PyObject *module, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
  PyObject *values[4] = {NULL}, *hints = Py_None;
  int check = 0;
  for (Py_ssize_t i = 0; i < count && i < 4; i++)
    values[i] = arguments[i];
  for (Py_ssize_t i = 0; i < PyTuple_Size(names); i++) {
    PyObject *name = PyTuple_GetItem(names, i);
    if (is_wish(name))
      continue;
    if (!PyUnicode_CompareWithASCIIString(name, "check")) {
      if ((check = PyObject_IsTrue(arguments[count + i])) < 0)
        return NULL;
      continue;
    }
    if (!PyUnicode_CompareWithASCIIString(name, "hints")) {
      hints = arguments[count + i];
      continue;
    }
    Py_ssize_t position = launch_position(name);
    if (position < 0 || values[position])
      return tw_ext_error(TW_TYPE_ERROR,
                          position < 0 ? "launch() takes no '%U'; it takes stream, grid, kernel, kernel_args, "
                                         "hints, programmatic_dependent_launch and check"
                                       : "launch() was given '%U' twice",
                          name);
    values[position] = arguments[count + i];
  }
  if (count > 4 || !values[0] || !values[1] || !values[2] || !values[3])
    return tw_ext_error(TW_TYPE_ERROR, "launch() takes (stream, grid, kernel, kernel_args)");
  PyObject *kernel = values[2] = with_hints(values[2], hints);
  if (!kernel)
    return NULL;
  PyObject *result =
      check ? launch_checked(values) : launch_objects(module, values[0], values[1], NULL, 0, values[2], values[3]);
  Py_DECREF(kernel);
  return result;
}

TW_HOT static PyObject *launch(PyObject *module, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
  if (TW_UNLIKELY(names != NULL))
    return launch_by_name(module, arguments, count, names);
  if (TW_UNLIKELY(count != 4))
    return tw_ext_error(TW_TYPE_ERROR, "launch() takes (stream, grid, kernel, args), %zd arguments were given", count);
  return launch_objects(module, arguments[0], arguments[1], NULL, 0, arguments[2], arguments[3]);
}

static PyObject *launch_threads(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
  if (TW_UNLIKELY(count != 5 && count != 6))
    return tw_ext_error(TW_TYPE_ERROR,
                        "launch_threads() takes (stream, grid, block, kernel, args, shared), %zd were given", count);
  long shared = count == 6 ? PyLong_AsLong(arguments[5]) : 0;
  if (TW_UNLIKELY(shared < 0 || shared > INT32_MAX))
    return PyErr_Occurred()
               ? NULL
               : tw_ext_error(TW_VALUE_ERROR, "shared is a number of bytes from 0 to 2147483647, found %ld", shared);
  return launch_objects(module, arguments[0], arguments[1], arguments[2], (uint32_t)shared, arguments[3], arguments[4]);
}

/* === launching what was found for such arguments ================================================================== */

/* The way of a launch that none was like: tilewright.tune.launching asks the record, launches and remembers. */
TW_COLD static PyObject *launch_first(PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
  PyObject *module = PyImport_ImportModule("tilewright.tune.launching");
  PyObject *function = module ? PyObject_GetAttrString(module, "launch_first") : NULL;
  PyObject *given = PyTuple_New(count), *named = PyDict_New(), *result = NULL;
  for (Py_ssize_t i = 0; given && i < count; i++)
    PyTuple_SetItem(given, i, Py_NewRef(arguments[i]));
  for (Py_ssize_t i = 0; named && names && i < PyTuple_Size(names); i++)
    if (PyDict_SetItem(named, PyTuple_GetItem(names, i), arguments[count + i]))
      Py_CLEAR(named);
  if (function && given && named)
    result = PyObject_Call(function, given, named);
  Py_XDECREF(given);
  Py_XDECREF(named);
  Py_XDECREF(function);
  Py_XDECREF(module);
  return result;
}

/* The kernel that is launched: itself, or what an object that stands over one has as its `kernel`. New reference; NULL
 * without an exception. */
TW_HOT static PyObject *kernel_below(tw_state_t *state, PyObject *owner) {
  if (TW_LIKELY(is_dispatcher(state, owner)))
    return Py_NewRef(owner);
  PyObject *kernel = PyObject_GetAttr(owner, state->kernel_name);
  if (kernel && is_dispatcher(state, kernel))
    return kernel;
  PyErr_Clear();
  Py_XDECREF(kernel);
  return NULL;
}

static bool is_function(PyObject *grid) {
  return !PyTuple_CheckExact(grid) && !PyLong_CheckExact(grid) && PyCallable_Check(grid);
}

static void let_go(tw_tuned_choice_t *held) {
  Py_DECREF(held->kernel);
  Py_DECREF(held->constants);
  Py_XDECREF(held->code);
  Py_XDECREF(held->picks);
}

static int read_grid(call_t *call, const tw_tuned_choice_t *choice, PyObject *grid, PyObject *arguments) {
  PyObject *extents = tw_tuned_grid(call->reader.state, choice, grid, arguments);
  int failed = extents ? tw_call_read_extents(call->self, extents, "grid", tw_grid_check, call->grid) : -1;
  Py_XDECREF(extents);
  return failed;
}

/* The variant is gone, or was made of what has changed: as if the caller had launched the choice. */
TW_COLD static PyObject *launch_choice(PyObject *module, const call_t *call, const tw_tuned_choice_t *choice,
                                       PyObject *stream, PyObject *arguments) {
  PyObject *grid = Py_BuildValue("(III)", call->grid[0], call->grid[1], call->grid[2]);
  PyObject *chosen = tw_tuned_arguments(choice->constants, arguments), *result = NULL;
  if (grid && chosen)
    result = launch_objects(module, stream, grid, NULL, 0, choice->kernel, chosen);
  Py_XDECREF(grid);
  Py_XDECREF(chosen);
  return result;
}

/* The choice is taken. */
TW_HOT static PyObject *run_choice(PyObject *module, call_t *call, tw_tuned_choice_t *choice, PyObject *stream,
                                   PyObject *grid, PyObject *arguments) {
  PyObject *result = NULL;
  if (is_function(grid) && read_grid(call, choice, grid, arguments)) {
    tw_hold_release(call->reader.holds);
  } else {
    forget_stale(call->self);
    tw_variant_t *variant = tw_table_find(call->self, call);
    if (TW_LIKELY(variant != NULL)) {
      result = run_and_end(call, variant);
    } else {
      tw_hold_release(call->reader.holds);
      result = launch_choice(module, call, choice, stream, arguments);
    }
  }
  let_go(choice);
  return result;
}

/* launch_tuned(stream, grid, kernel, args): whatever is wrong with them is told by launch_first. */
TW_HOT static PyObject *launch_tuned(PyObject *module, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
  if (TW_UNLIKELY(names || count != 4))
    return launch_first(arguments, count, names);
  PyObject *stream = arguments[0], *grid = arguments[1], *owner = arguments[2], *given = arguments[3];
  tw_state_t *state = tw_state_of(module);
  PyObject *kernel = kernel_below(state, owner), *one = PyTuple_New(0), *result = NULL;
  bool found = false;
  tw_tuned_choice_t choice;
  call_t call;
  if (kernel && one && !begin(&call, state, stream, is_function(grid) ? one : grid, NULL, kernel, &given)) {
    call.reader.stream.scan = given;
    /* The first function for a grid goes to launch_first, which finds out what it takes. */
    found = !tw_call_read_arguments(&call, given) && !read_target(&call) &&
            tw_tuned_turn(&call, owner, is_function(grid), &choice);
    if (TW_LIKELY(found))
      result = run_choice(module, &call, &choice, stream, grid, given);
    else
      tw_hold_release(call.reader.holds);
  }
  Py_XDECREF(one);
  Py_XDECREF(kernel);
  if (TW_LIKELY(found))
    return result;
  PyErr_Clear();
  return launch_first(arguments, count, NULL);
}

/* === the Python type ============================================================================================== */

/* Bit mask of the constant parameters, given by position. */
static int read_constants(dispatcher_t *self, PyObject *positions) {
  PyObject *tuple = PySequence_Tuple(positions);
  Py_ssize_t count = tuple ? PyTuple_Size(tuple) : -1;
  for (Py_ssize_t i = 0; i < count; i++) {
    Py_ssize_t position = PyLong_AsSsize_t(PyTuple_GetItem(tuple, i));
    if (position < 0 || position >= self->count) {
      if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "constant position %zd is no parameter", position);
      count = -1;
      break;
    }
    self->marked |= 1ull << position;
  }
  Py_XDECREF(tuple);
  return count < 0 ? -1 : 0;
}

/* None, or one form a parameter. */
static int check_forms(dispatcher_t *self, PyObject *forms) {
  if (forms == Py_None)
    return 0;
  if (PyTuple_Check(forms) && PyTuple_Size(forms) == self->count) {
    for (Py_ssize_t i = 0; i < self->count; i++)
      self->marked |= (uint64_t)PyLong_CheckExact(PyTuple_GetItem(forms, i)) << i;
    return 0;
  }
  PyErr_SetString(PyExc_ValueError, "forms must be None or a tuple with an entry for each parameter");
  return -1;
}

static int initialize(dispatcher_t *self, PyObject *arguments, PyObject *keywords) {
  static char *names[] = {"name",     "parameters",    "constants", "on_miss", "threads",
                          "defaults", "most_variants", "forms",     NULL};
  PyObject *name, *parameters, *constants, *on_miss, *defaults = Py_None, *forms = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "UOOO|iOiO:Dispatcher", names, &name, &parameters, &constants,
                                   &on_miss, &self->threads, &defaults, &self->most_variants, &forms))
    return -1;
  PyObject *tuple = PySequence_Tuple(parameters);
  if (!tuple)
    return -1;
  self->count = PyTuple_Size(tuple);
  if (self->count > TW_MAX_ARGS) {
    tw_ext_error(TW_TYPE_ERROR, "kernel %U has %zd parameters, the most is %d", name, self->count, TW_MAX_ARGS);
    Py_DECREF(tuple);
    return -1;
  }
  self->objects = PyDict_New();
  self->records = PyDict_New();
  self->leaves = self->count;
  self->known = calloc((size_t)self->count + 1, sizeof *self->known);
  if (!self->objects || !self->records || !self->known || check_forms(self, forms) || read_constants(self, constants)) {
    Py_DECREF(tuple);
    return PyErr_Occurred() ? -1 : (PyErr_NoMemory(), -1);
  }
  self->name = Py_NewRef(name);
  self->on_miss = Py_NewRef(on_miss);
  self->defaults = PyTuple_Check(defaults) ? Py_NewRef(defaults) : NULL;
  self->forms = PyTuple_Check(forms) ? Py_NewRef(forms) : NULL;
  TW_PUBLISH(self->parameters, tuple); /* launch() takes it from now on */
  return 0;
}

static int dispatcher_init(PyObject *object, PyObject *arguments, PyObject *keywords) {
  dispatcher_t *self = (dispatcher_t *)object;
  if (__atomic_exchange_n(&self->is_begun, true, __ATOMIC_ACQ_REL)) {
    PyErr_SetString(PyExc_RuntimeError, "a Dispatcher is initialized once");
    return -1;
  }
  if (!initialize(self, arguments, keywords))
    return 0;
  __atomic_store_n(&self->is_begun, false, __ATOMIC_RELEASE);
  return -1;
}

static int dispatcher_traverse(PyObject *object, visitproc visit, void *arg) {
  dispatcher_t *self = (dispatcher_t *)object;
  Py_VISIT((PyObject *)Py_TYPE(object));
  Py_VISIT(self->on_miss);
  Py_VISIT(self->watched);
  Py_VISIT(self->defaults);
  Py_VISIT(self->forms);
  Py_VISIT(self->objects);
  Py_VISIT(self->records);
  for (int i = 0; i < TW_MAX_ARGS; i++)
    Py_VISIT(self->seen[i]);
  int stopped = tw_tuned_traverse(self, visit, arg);
  if (stopped)
    return stopped;
  for (size_t i = 0; i < self->slots; i++)
    if (self->table[i]) {
      Py_VISIT((PyObject *)self->table[i]->variant);
      Py_VISIT(self->table[i]->key);
    }
  return 0;
}

static int dispatcher_clear(PyObject *object) {
  dispatcher_t *self = (dispatcher_t *)object;
  tw_table_clear(self);
  tw_tuned_clear(self);
  Py_CLEAR(self->on_miss);
  Py_CLEAR(self->watched);
  Py_CLEAR(self->defaults);
  Py_CLEAR(self->forms);
  Py_CLEAR(self->objects);
  Py_CLEAR(self->records);
  for (int i = 0; i < TW_MAX_ARGS; i++)
    Py_CLEAR(self->seen[i]);
  Py_CLEAR(self->parameters); /* launch() refuses it from now on */
  return 0;
}

static void dispatcher_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  dispatcher_clear(object);
  Py_CLEAR(((dispatcher_t *)object)->name);
  free(((dispatcher_t *)object)->known);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF((PyObject *)type);
}

static PyObject *get_name(PyObject *object, void *unused) {
  (void)unused;
  PyObject *name = ((dispatcher_t *)object)->name;
  return Py_NewRef(name ? name : Py_None);
}

static PyObject *get_parameters(PyObject *object, void *unused) {
  (void)unused;
  PyObject *parameters = ((dispatcher_t *)object)->parameters;
  return Py_NewRef(parameters ? parameters : Py_None);
}

/* variants() -> [(target, key, kernel)] */
static PyObject *variants(PyObject *object, PyObject *unused) {
  (void)unused;
  return tw_table_rows((dispatcher_t *)object);
}

static PyObject *clear_variants(PyObject *object, PyObject *unused) {
  (void)unused;
  tw_table_clear((dispatcher_t *)object);
  return Py_NewRef(Py_None);
}

/* watch([(holder, name, value), ...]): replaces what was watched. */
static PyObject *watch(PyObject *object, PyObject *rows) {
  dispatcher_t *self = (dispatcher_t *)object;
  PyObject *tuple = PySequence_Tuple(rows);
  if (!tuple)
    return NULL;
  for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++) {
    PyObject *row = PyTuple_GetItem(tuple, i);
    if (!PyTuple_Check(row) || PyTuple_Size(row) != 3 ||
        !(PyUnicode_Check(PyTuple_GetItem(row, 1)) || PyTuple_GetItem(row, 1) == Py_None)) {
      Py_DECREF(tuple);
      PyErr_SetString(PyExc_TypeError, "watch needs rows (holder, name or None, value)");
      return NULL;
    }
  }
  if (!PyTuple_Size(tuple))
    Py_CLEAR(tuple);
  TW_LOCK(self);
  PyObject *old = self->watched;
  TW_PUBLISH(self->watched, tuple);
  TW_UNLOCK(self);
  Py_XDECREF(old);
  return Py_NewRef(Py_None);
}

static PyObject *get_watched(PyObject *object, void *unused) {
  (void)unused;
  PyObject *watched = watched_of((dispatcher_t *)object);
  return watched ? watched : PyTuple_New(0);
}

/* Reads the arguments of a launch of one block as the launch would; the caller lets go what the call holds. */
static int read_launch(call_t *call, PyObject *object, PyObject **arguments) {
  PyObject *one = PyLong_FromLong(1);
  PyObject *block = ((dispatcher_t *)object)->threads ? one : NULL;
  call->reader.holds = NULL;
  int failed = one ? begin(call, tw_state_of_subclass(object), Py_None, one, block, object, arguments) : -1;
  Py_XDECREF(one);
  if (failed) {
    call->reader.holds = NULL; /* `begin` has */
    return -1;
  }
  call->reader.stream.scan = *arguments;
  return tw_call_read_arguments(call, *arguments) || read_target(call) ? -1 : 0;
}

/* What `make` says of a launch with these arguments. */
static PyObject *tell_of_launch(PyObject *object, PyObject *arguments, PyObject *make(const call_t *, PyObject *)) {
  call_t call;
  PyObject *result = read_launch(&call, object, &arguments) ? NULL : make(&call, arguments);
  tw_hold_release(call.reader.holds);
  return result;
}

static PyObject *make_specialization(const call_t *call, PyObject *arguments) {
  PyObject *target = tw_key_target(call->key[0]);
  PyObject *key = tw_key_describe(call, arguments);
  PyObject *result = target && key ? PyTuple_Pack(2, target, key) : NULL;
  Py_XDECREF(target);
  Py_XDECREF(key);
  return result;
}

/* specialization(args) -> (target, key), what on_miss would be asked for. */
static PyObject *specialization(PyObject *object, PyObject *arguments) {
  return tell_of_launch(object, arguments, make_specialization);
}

static PyObject *make_shape_key(const call_t *call, PyObject *arguments) {
  (void)arguments;
  uint64_t words[TW_TUNED_WORDS];
  size_t count = tw_tuned_words(call, words);
  return PyBytes_FromStringAndSize((const char *)words, (Py_ssize_t)(count * sizeof *words));
}

/* shape_key(args) -> bytes that are the same for launches of one specialization with the same extents on one device. */
static PyObject *shape_key(PyObject *object, PyObject *arguments) {
  return tell_of_launch(object, arguments, make_shape_key);
}

static PyObject *make_words(const call_t *call, PyObject *arguments) {
  (void)arguments;
  return PyBytes_FromStringAndSize((const char *)call->words, (Py_ssize_t)(call->word_count * sizeof *call->words));
}

/* words(args) -> bytes: the parameter words of a launch. */
static PyObject *words(PyObject *object, PyObject *arguments) { return tell_of_launch(object, arguments, make_words); }

/* Adds the row for a launch that is given and the one in its place. */
static int remember(PyObject *object, PyObject *arguments, PyObject *chosen, const tw_tuned_choice_t *choice) {
  call_t given, tuned;
  tuned.reader.holds = NULL;
  int failed = read_launch(&given, object, &arguments) || read_launch(&tuned, choice->kernel, &chosen) ||
               tw_tuned_insert((dispatcher_t *)object, &given, &tuned, choice);
  tw_hold_release(given.reader.holds);
  tw_hold_release(tuned.reader.holds);
  return failed ? -1 : 0;
}

/* remember_tuned(owner, args, kernel, constants, code, picks) */
static PyObject *remember_tuned(PyObject *object, PyObject *all) {
  tw_tuned_choice_t choice;
  PyObject *arguments;
  if (!PyArg_ParseTuple(all, "OO!OO!OO:remember_tuned", &choice.owner, &PyTuple_Type, &arguments, &choice.kernel,
                        &PyTuple_Type, &choice.constants, &choice.code, &choice.picks))
    return NULL;
  if (!is_dispatcher(tw_state_of_subclass(object), choice.kernel))
    return tw_ext_error_type(TW_TYPE_ERROR, "remember_tuned() needs a kernel, found a %U", choice.kernel);
  PyObject *chosen = tw_tuned_arguments(choice.constants, arguments);
  int failed = chosen ? remember(object, arguments, chosen, &choice) : -1;
  Py_XDECREF(chosen);
  return failed ? NULL : Py_NewRef(Py_None);
}

static PyObject *forget_tuned(PyObject *object, PyObject *unused) {
  (void)unused;
  tw_tuned_clear((dispatcher_t *)object);
  return Py_NewRef(Py_None);
}

/* chosen(grid, args) -> CpuKernel or CudaKernel: what a launch would run. */
static PyObject *chosen(PyObject *object, PyObject *both) {
  call_t call;
  PyObject *grid, *arguments, *result = NULL;
  tw_state_t *state = tw_state_of_subclass(object);
  PyObject *block = ((dispatcher_t *)object)->threads ? Py_True : NULL; /* one thread: any block does */
  if (!PyArg_ParseTuple(both, "OO:chosen", &grid, &arguments) ||
      begin(&call, state, Py_None, grid, block, object, &arguments))
    return NULL;
  call.reader.stream.scan = arguments;
  tw_variant_t *variant = find_variant(&call, arguments);
  if (variant) {
    tw_variant_t *other = chosen_variant(&call, variant);
    result = other ? Py_NewRef((PyObject *)other) : NULL;
    Py_DECREF((PyObject *)variant);
  }
  tw_hold_release(call.reader.holds);
  return result;
}

/* take_long_arrays(): the kernel never asks for an extent. */
static PyObject *take_long_arrays(PyObject *object, PyObject *unused) {
  (void)unused;
  ((dispatcher_t *)object)->takes_long = true;
  return Py_NewRef(Py_None);
}

static PyMethodDef dispatcher_methods[] = {
    {"take_long_arrays", take_long_arrays, METH_NOARGS,
     "take_long_arrays(): launches take arrays with more than 2147483647 elements along an axis, for whose extents the "
     "kernel never asks"},
    {"chosen", chosen, METH_VARARGS,
     "chosen(grid, args) -> CpuKernel or CudaKernel: what a launch would run, compiled and perhaps loaded"},
    {"variants", variants, METH_NOARGS, "variants() -> [(target, key, kernel)]: compiled so far"},
    {"watch", watch, METH_O,
     "watch([(holder, name, value), ...]): variants are stale when a variable has another value"},
    {"clear_variants", clear_variants, METH_NOARGS, "forget what was compiled"},
    {"specialization", specialization, METH_O,
     "specialization(args) -> (target, key): what on_miss would be asked for"},
    {"remember_tuned", remember_tuned, METH_VARARGS,
     "remember_tuned(owner, args, kernel, constants, code, picks): launch_tuned of owner, this kernel or what stands "
     "over\nit, with such arguments launches `kernel` with the constants ((position, value), ...). code: of the "
     "grid's\n"
     "function, and picks where its arguments come from, a position or (value,); or None"},
    {"forget_tuned", forget_tuned, METH_NOARGS, "forget what remember_tuned was told"},
    {"shape_key", shape_key, METH_O,
     "shape_key(args) -> bytes: the same for launches of one specialization with the same extents on one device"},
    {"words", words, METH_O, "words(args) -> bytes: the parameter words of a launch with these arguments"},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef dispatcher_properties[] = {{"watched", get_watched, NULL, "what watch() was told", NULL},
                                              {"name", get_name, NULL, "name of the kernel", NULL},
                                              {"parameters", get_parameters, NULL, "names of the parameters", NULL},
                                              {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot dispatcher_slots[] = {
    {Py_tp_init, dispatcher_init},
    {Py_tp_dealloc, dispatcher_dealloc},
    {Py_tp_traverse, dispatcher_traverse},
    {Py_tp_clear, dispatcher_clear},
    {Py_tp_methods, dispatcher_methods},
    {Py_tp_getset, dispatcher_properties},
    {Py_tp_doc,
     "Dispatcher(name, parameters, constants, on_miss, threads=False, defaults=None, most_variants=0, forms=None)\n\n"
     "Base of a kernel object. most_variants: how many it keeps; 0: all.\n"
     "threads: written for one thread, and launched with launch_threads.\n"
     "parameters: names; constants: positions of those whose value is part of the specialization.\n"
     "forms: for each parameter what is constant in a structure (tilewright.structure).\n"
     "on_miss(dispatcher, target, key) compiles one specialization and returns a CpuKernel or\n"
     "CudaKernel. target: \"cpu\" or \"sm_90a\"; key: one tuple a parameter:\n"
     "  (\"array\", dtype, rank, align, shape_div, strides, writable): the address is a multiple of\n"
     "      align bytes, extent d of shape_div[d] (16 or 1); strides[d] is (1, 1) for a stride known\n"
     "      to be 1, else (0, divisor of the stride in elements)\n"
     "  (\"scalar\", dtype, divisor): an integer is a multiple of divisor (16, and not negative; or 1)\n"
     "  (\"const\", value)\n"
     "  (\"tuple\", type, parts), (\"list\", list, parts), (\"dict\", names, parts), (\"record\", type, parts)"},
    {0, NULL}};

static PyType_Spec dispatcher_spec = {"tilewright._core.Dispatcher", sizeof(dispatcher_t), 0,
                                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, dispatcher_slots};

/* is_unchanged(now, was) -> bool: whether a value that is watched counts as the same. */
static PyObject *is_unchanged(PyObject *module, PyObject *both) {
  (void)module;
  PyObject *now, *was;
  if (!PyArg_ParseTuple(both, "OO:is_unchanged", &now, &was))
    return NULL;
  bool same = is_same(now, was, MOST_LEVELS);
  PyErr_Clear();
  return PyBool_FromLong(same);
}

#define FAST(function) (PyCFunction)(void (*)(void)) function
static PyMethodDef methods[] = {
    {"launch", FAST(launch), METH_FASTCALL | METH_KEYWORDS,
     "launch(stream, grid, kernel, kernel_args, *, hints=None, programmatic_dependent_launch=False, "
     "check=False)\n--\n\nRun a "
     "kernel over a "
     "grid of blocks where its arrays are"},
    {"launch_tuned", FAST(launch_tuned), METH_FASTCALL | METH_KEYWORDS,
     "launch_tuned(stream, grid, kernel, args)\n--\n\n`ct.launch` with what a search has found for such arguments; as "
     "given where there was none.\n\n`grid` may be a function of parameters, as in `search`. A kernel of `@autotune` "
     "searches first, where nobody has.\nThe record is read once for each kernel and shapes."},
    {"launch_threads", FAST(launch_threads), METH_FASTCALL,
     "launch_threads(stream, grid, block, kernel, args, shared=0, /)\n--\n\nThe same with threads per block, and bytes "
     "of shared memory beside those of its arrays"},
    {"is_unchanged", is_unchanged, METH_VARARGS,
     "is_unchanged(now, was) -> bool: whether variants that were made from a value are good for another one"},
    {NULL, NULL, 0, NULL}};

int tw_ext_dispatch_add(PyObject *module) {
  if (tw_ext_add_type(module, &dispatcher_spec, &tw_state_of(module)->dispatcher))
    return -1;
  return PyModule_AddFunctions(module, methods);
}
