/* fakecuda.c - a stand-in for libcuda, for tests on machines without a GPU
 *
 * It has devices, contexts (a stack per thread), streams and modules as far as their rules matter to a
 * caller, runs nothing, writes down what it is asked, and fails where a test wants it to:
 *
 *   fake_reset(devices)             back to the start, with that many devices
 *   fake_fail(name, nth, result)    the nth call of an entry from now on returns that
 *   fake_hold(name)                 calls of an entry wait, for at most 20 seconds, until fake_hold(NULL)
 *   fake_calls(name)                how often an entry was called
 *   fake_log()                      one line a call that queues or orders work
 *   fake_launch(…)                  what the last launch was given
 *   fake_capture(graph)             the number of the graph that streams capture from now on
 *   fake_destroy_graph(graph)       ends a graph and what it owns
 *   fake_forbid(1)                  some thread captures from now on, and forbids unsafe calls to all; 0: it has ended
 *   fake_spoilt()                   the call that spoilt that capture, or NULL
 *   fake_mode()                     the calling thread's mode of captures; 2: relaxed
 *
 * Environment (read by cuInit): FAKECUDA_DEVICES (default 2; where it is said, of CUDA_VISIBLE_DEVICES by numbers and
 * UUIDs), FAKECUDA_VERSION (default 12040), FAKECUDA_NAME (of GPUs that are all alike),
 * FAKECUDA_FAIL="name:nth:result", FAKECUDA_BUSY (streams and events have work pending). Handles: context 0xC000 +
 * device, stream 0x5000 + 0x100 * device + n; memory of device d lies at 0x100000000000 * (d + 1). GPU g, which is
 * device g unless CUDA_VISIBLE_DEVICES says otherwise, has compute capability (9, g); (9, 0) with FAKECUDA_NAME. A
 * kernel whose name has "fault" in it makes every later call of its device return CUDA_ERROR_ILLEGAL_ADDRESS. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

enum { MAX_DEVICES = 8, MAX_NAMES = 96, MAX_STACK = 16, MAX_OBJECTS = 64, LOG_BYTES = 1 << 16 };

typedef struct module {
  int device;
  char *image;
} module_t;

typedef struct function {
  int device, shared_limit, local_bytes;
  char name[128];
} function_t;

typedef struct linker {
  char *image;
  size_t size;
  char *error_log;
} linker_t;

typedef struct launch {
  char name[128];
  unsigned grid[3], block[3], shared_bytes, attributes;
  uintptr_t stream, context;
  size_t bytes;
  uint64_t words[768];
} launch_t;

typedef void (*fake_call_t)(void);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t let_go = PTHREAD_COND_INITIALIZER;
static int held = -1; /* the entry whose calls wait */
static struct {
  char name[64];
  int calls, fail_at, result;
} counters[MAX_NAMES];
static int devices = 2, version = 12040, initialized;
static int gpus[MAX_DEVICES] = {0, 1, 2, 3, 4, 5, 6, 7}; /* by device */
static int faulted[MAX_DEVICES];
static launch_t last;
static char log_text[LOG_BYTES];
static size_t log_size;

typedef struct object {
  void *data;
  void (*destroy)(void *);
  uintptr_t graph;
} object_t;
static object_t *objects[MAX_OBJECTS];
static int num_objects, captured = 1;

static _Atomic(fake_call_t) during_launch; /* NULL, or what the next launch calls */
static bool logs_words;                    /* the log has the last parameter word of a launch, too */
static bool forbidding;                    /* a capture in the mode "global" is under way */
static const char *spoilt_by;
static bool is_event_captured;         /* the last record of an event was on a stream that captures */
static _Thread_local int capture_mode; /* 2: relaxed, nothing is forbidden */

static _Thread_local uintptr_t stack[MAX_STACK];
static _Thread_local int depth;

/* --- control -------------------------------------------------------------------------------------- */

static int counter_of(const char *name) {
  int i = 0;
  while (i < MAX_NAMES - 1 && *counters[i].name && strcmp(counters[i].name, name) != 0)
    i++;
  snprintf(counters[i].name, sizeof counters[i].name, "%s", name);
  return i;
}

static void write_log(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  pthread_mutex_lock(&lock);
  if (log_size < LOG_BYTES - 256)
    log_size += (size_t)vsnprintf(log_text + log_size, 256, format, arguments);
  pthread_mutex_unlock(&lock);
  va_end(arguments);
}

/* Counts a call; the result that a test asked for, or 0. */
static int enter(const char *name) {
  pthread_mutex_lock(&lock);
  int i = counter_of(name);
  int result = ++counters[i].calls == counters[i].fail_at ? counters[i].result : 0;
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 20;
  while (held == i && !result && pthread_cond_timedwait(&let_go, &lock, &end))
    result = 999;
  pthread_mutex_unlock(&lock);
  return result;
}
#define ENTER()                                                                                                        \
  do {                                                                                                                 \
    int result_ = enter(__func__);                                                                                     \
    if (result_)                                                                                                       \
      return result_;                                                                                                  \
    if (!initialized)                                                                                                  \
      return 3;                                                                                                        \
  } while (0)

/* Of what may wait for the device, or changes its memory or code: it is refused while some thread captures and this
 * one is not relaxed, and the capture is lost. */
static int enter_unsafe(const char *name) {
  if (!forbidding || capture_mode == 2)
    return enter(name);
  pthread_mutex_lock(&lock);
  spoilt_by = spoilt_by ? spoilt_by : name;
  pthread_mutex_unlock(&lock);
  return 900;
}
#define ENTER_UNSAFE()                                                                                                 \
  do {                                                                                                                 \
    int result_ = enter_unsafe(__func__);                                                                              \
    if (result_)                                                                                                       \
      return result_;                                                                                                  \
    if (!initialized)                                                                                                  \
      return 3;                                                                                                        \
  } while (0)

EXPORT void fake_forbid(int forbid) {
  forbidding = forbid;
  spoilt_by = NULL;
}

EXPORT const char *fake_spoilt(void) { return spoilt_by; }
EXPORT int fake_mode(void) { return capture_mode; }

EXPORT void fake_reset(int count) {
  pthread_mutex_lock(&lock);
  memset(counters, 0, sizeof counters);
  memset(faulted, 0, sizeof faulted);
  memset(&last, 0, sizeof last);
  devices = count;
  log_size = 0;
  *log_text = 0;
  pthread_mutex_unlock(&lock);
}

EXPORT void fake_fail(const char *name, int nth, int result) {
  pthread_mutex_lock(&lock);
  int i = counter_of(name);
  counters[i].fail_at = counters[i].calls + nth;
  counters[i].result = result;
  pthread_mutex_unlock(&lock);
}

EXPORT void fake_hold(const char *name) {
  pthread_mutex_lock(&lock);
  held = name ? counter_of(name) : -1;
  pthread_cond_broadcast(&let_go);
  pthread_mutex_unlock(&lock);
}

EXPORT int fake_calls(const char *name) {
  pthread_mutex_lock(&lock);
  int calls = counters[counter_of(name)].calls;
  pthread_mutex_unlock(&lock);
  return calls;
}

EXPORT void fake_log_words(int wanted) { logs_words = wanted; }
EXPORT void fake_during_launch(fake_call_t call) { during_launch = call; }
EXPORT void fake_capture(int graph) { captured = graph; }

EXPORT void fake_destroy_graph(int graph) {
  for (int i = 0; i < num_objects; i++)
    if (objects[i] && objects[i]->graph == 0x6000u + (unsigned)graph) {
      objects[i]->destroy(objects[i]->data);
      free(objects[i]);
      objects[i] = NULL;
    }
}

EXPORT const char *fake_log(void) { return log_text; }
EXPORT const launch_t *fake_launch(void) { return &last; }

/* --- start ---------------------------------------------------------------------------------------- */

static int uuid_byte(int gpu, int i) { return (0xf0 + gpu + i) & 0xff; }

/* Whether a text begins with the UUID of a GPU, or with a part of it that is two characters a byte; behind it. */
static const char *behind_uuid(const char *text, int gpu) {
  if (strncmp(text, "GPU-", 4) != 0)
    return NULL;
  text += 4;
  unsigned byte;
  int i = 0;
  for (; i < 16 && sscanf(text, "%2x", &byte) == 1; i++, text += 2 + (text[2] == '-'))
    if ((int)byte != uuid_byte(gpu, i))
      return NULL;
  return i && (!*text || *text == ',') ? text : NULL;
}

/* The number of the GPU that a text begins with, by its number or UUID, and what is behind it; -1: there is no such. */
static int gpu_of(const char *text, const char **rest) {
  int number, used = 0;
  if (sscanf(text, "%d%n", &number, &used) == 1) {
    *rest = text + used;
    return number < devices ? number : -1;
  }
  for (int gpu = 0; gpu < devices; gpu++)
    if ((*rest = behind_uuid(text, gpu)))
      return gpu;
  return -1;
}

/* The devices are these GPUs, up to one that is not there. */
static void see(const char *text) {
  int count = 0, gpu;
  while (count < devices && (gpu = gpu_of(text, &text)) >= 0) {
    gpus[count++] = gpu;
    text += *text == ',';
  }
  devices = count;
}

EXPORT int cuInit(unsigned flags) {
  (void)flags;
  const char *text = getenv("FAKECUDA_DEVICES");
  if (text) {
    devices = atoi(text);
    if ((text = getenv("CUDA_VISIBLE_DEVICES")))
      see(text);
  }
  if ((text = getenv("FAKECUDA_VERSION")))
    version = atoi(text);
  char name[64];
  int nth, failure;
  if ((text = getenv("FAKECUDA_FAIL")) && sscanf(text, "%63[^:]:%d:%d", name, &nth, &failure) == 3)
    fake_fail(name, nth, failure);
  int result = enter(__func__);
  if (!result && devices == 0)
    result = 100;
  initialized = !result;
  return result;
}

static const struct {
  int result;
  const char *name, *text;
} errors[] = {
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
};

EXPORT int cuGetErrorName(int result, const char **out) {
  *out = NULL;
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].result == result)
      *out = errors[i].name;
  return *out ? 0 : 1;
}

EXPORT int cuGetErrorString(int result, const char **out) {
  *out = NULL;
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].result == result)
      *out = errors[i].text;
  return *out ? 0 : 1;
}

EXPORT int cuDriverGetVersion(int *out) {
  *out = version;
  return enter(__func__);
}

/* --- devices and contexts ------------------------------------------------------------------------- */

EXPORT int cuDeviceGetCount(int *out) {
  ENTER();
  *out = devices;
  return 0;
}

EXPORT int cuDeviceGet(int *out, int ordinal) {
  ENTER();
  *out = ordinal;
  return ordinal < 0 || ordinal >= devices ? 101 : 0;
}

EXPORT int cuDeviceGetName(char *out, int size, int device) {
  ENTER();
  const char *name = getenv("FAKECUDA_NAME");
  if (name)
    snprintf(out, (size_t)size, "%s", name);
  else
    snprintf(out, (size_t)size, "Fake GPU %d", gpus[device]);
  return 0;
}

EXPORT int cuDeviceGetUuid_v2(unsigned char *out, int device) {
  ENTER();
  for (int i = 0; i < 16; i++)
    out[i] = (unsigned char)uuid_byte(gpus[device], i);
  return 0;
}

static int kind_of(int device) { return getenv("FAKECUDA_NAME") ? 0 : gpus[device]; }

EXPORT int cuDeviceGetAttribute(int *out, int attribute, int device) {
  ENTER();
  switch (attribute) {
  case 1: *out = 1024; break;             /* threads per block */
  case 13: *out = 1980000; break;         /* kHz */
  case 16: *out = 132; break;             /* multiprocessors */
  case 36: *out = 3201000; break;         /* kHz of the memory */
  case 37: *out = 6144; break;            /* bits of its bus */
  case 38: *out = 50 << 20; break;        /* L2 */
  case 75: *out = 9; break;               /* major */
  case 76: *out = kind_of(device); break; /* minor: a target of its own for each kind */
  case 81: *out = 233472; break;          /* shared per multiprocessor */
  case 97: *out = 232448; break;          /* shared per block */
  default: *out = 0; return 1;
  }
  return 0;
}

EXPORT int cuDeviceTotalMem_v2(size_t *out, int device) {
  ENTER();
  (void)device;
  *out = (size_t)80 << 30;
  return 0;
}

EXPORT int cuDevicePrimaryCtxRetain(uintptr_t *out, int device) {
  ENTER_UNSAFE();
  *out = 0xC000u + (unsigned)device;
  return 0;
}

static uintptr_t current(void) { return depth ? stack[depth - 1] : 0; }
static int current_device(void) { return (int)(current() - 0xC000); }

EXPORT int cuCtxGetCurrent(uintptr_t *out) {
  ENTER();
  *out = current();
  return 0;
}

EXPORT int cuCtxSetCurrent(uintptr_t context) {
  ENTER();
  depth = depth ? depth : 1;
  stack[depth - 1] = context;
  return 0;
}

EXPORT int cuCtxPushCurrent_v2(uintptr_t context) {
  ENTER();
  if (depth == MAX_STACK)
    return 1;
  stack[depth++] = context;
  return 0;
}

EXPORT int cuCtxPopCurrent_v2(uintptr_t *out) {
  ENTER();
  if (!depth)
    return 201;
  *out = stack[--depth];
  return 0;
}

EXPORT int cuCtxGetDevice(int *out) {
  ENTER();
  if (!current())
    return 201;
  *out = current_device();
  return 0;
}

EXPORT int cuCtxSynchronize(void) {
  ENTER_UNSAFE();
  if (!current())
    return 201;
  write_log("sync %d\n", current_device());
  return faulted[current_device()] ? 700 : 0;
}

/* --- streams, events, memory ---------------------------------------------------------------------- */

/* Device of a stream; the default streams (0, 1, 2) are the current context's. */
static int stream_device(uintptr_t stream) { return stream > 2 ? (int)(stream - 0x5000) / 0x100 : current_device(); }

EXPORT int cuStreamGetCtx(uintptr_t stream, uintptr_t *out) {
  ENTER();
  if (stream <= 2)
    *out = current();
  else if (stream < 0x5000 || stream >= 0x5000u + 0x100u * (unsigned)devices)
    return 400;
  else
    *out = 0xC000u + (unsigned)stream_device(stream);
  return 0;
}

EXPORT int cuStreamGetId(uintptr_t stream, unsigned long long *out) {
  ENTER();
  if (stream % 16 == 15)
    return 900; /* and the capture is lost */
  *out = 7000 + stream;
  return 0;
}

/* Streams that end in f capture the graph that fake_capture names. */
EXPORT int cuStreamGetCaptureInfo_v2(uintptr_t stream, int *status, unsigned long long *id, uintptr_t *graph,
                                     const void **dependencies, size_t *count) {
  ENTER();
  (void)dependencies, (void)count;
  *status = stream % 16 == 15;
  *id = *status ? (unsigned long long)captured : 0;
  *graph = *status ? 0x6000u + (unsigned)captured : 0;
  return 0;
}

EXPORT int cuStreamCreate(uintptr_t *out, unsigned flags) {
  ENTER_UNSAFE();
  (void)flags;
  if (!current())
    return 201;
  *out = 0x50F0u + 0x100u * (unsigned)current_device();
  return 0;
}

EXPORT int cuStreamQuery(uintptr_t stream) {
  ENTER_UNSAFE();
  (void)stream;
  return getenv("FAKECUDA_BUSY") ? 600 : 0;
}

EXPORT int cuEventQuery(uintptr_t event) {
  ENTER_UNSAFE();
  (void)event;
  if (is_event_captured) {
    spoilt_by = __func__;
    return 907;
  }
  return getenv("FAKECUDA_BUSY") ? 600 : 0;
}

EXPORT int cuStreamSynchronize(uintptr_t stream) {
  ENTER_UNSAFE();
  write_log("synchronize %lx\n", (unsigned long)stream);
  return 0;
}

EXPORT int cuStreamDestroy_v2(uintptr_t stream) {
  ENTER_UNSAFE();
  (void)stream;
  return 0;
}

/* An object is destroyed when it was released, or with the graph that it was moved into. */
EXPORT int cuUserObjectCreate(object_t **out, void *data, void (*destroy)(void *), unsigned count, unsigned flags) {
  ENTER();
  if (count != 1 || flags != 1)
    return 1;
  *out = calloc(1, sizeof **out);
  if (!*out)
    return 2;
  **out = (object_t){data, destroy, 0};
  return 0;
}

EXPORT int cuUserObjectRelease(object_t *object, unsigned count) {
  ENTER();
  (void)count;
  object->destroy(object->data);
  free(object);
  return 0;
}

EXPORT int cuGraphRetainUserObject(uintptr_t graph, object_t *object, unsigned count, unsigned flags) {
  ENTER();
  if (count != 1 || flags != 1 || num_objects == MAX_OBJECTS)
    return 1;
  object->graph = graph;
  objects[num_objects++] = object;
  return 0;
}

EXPORT int cuEventCreate(uintptr_t *out, unsigned flags) {
  ENTER();
  (void)flags;
  *out = 0xE000;
  return current() ? 0 : 201;
}

EXPORT int cuEventRecord(uintptr_t event, uintptr_t stream) {
  ENTER();
  (void)event;
  is_event_captured = stream % 16 == 15;
  write_log("record %lx\n", (unsigned long)stream);
  return 0;
}

EXPORT int cuStreamWaitEvent(uintptr_t stream, uintptr_t event, unsigned flags) {
  ENTER();
  (void)event, (void)flags;
  write_log("wait %lx\n", (unsigned long)stream);
  return 0;
}

EXPORT int cuEventSynchronize(uintptr_t event) {
  ENTER_UNSAFE();
  (void)event;
  if (!current())
    return 201;
  return faulted[current_device()] ? 700 : 0;
}

EXPORT int cuEventElapsedTime(float *out, uintptr_t begin, uintptr_t end) {
  ENTER();
  (void)begin, (void)end;
  *out = 1.0f;
  return 0;
}

static int is_on_device(uint64_t address) { return address >> 44 >= 1 && address >> 44 <= (uint64_t)devices; }

/* Memory of a device is the host's, at an address that tells the device: copies really copy. */
static int allocate(uint64_t *out, size_t size) {
  static uint64_t used;
  if (!current())
    return 201;
  pthread_mutex_lock(&lock);
  /* Above what the address sanitizer takes for itself. */
  *out = 0x100000000000u * (uint64_t)(current_device() + 1) + 0x100000000u + used;
  size_t whole = (size + 4095) / 4096 * 4096;
  used += whole;
  pthread_mutex_unlock(&lock);
  /* NOLINTNEXTLINE(performance-no-int-to-ptr): a fixed address */
  void *at = mmap((void *)(uintptr_t)*out, whole, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  return (uint64_t)(uintptr_t)at == *out ? 0 : 2;
}

EXPORT int cuMemAlloc_v2(uint64_t *out, size_t size) {
  ENTER_UNSAFE();
  return allocate(out, size);
}

EXPORT int cuMemFree_v2(uint64_t address) {
  ENTER_UNSAFE();
  return address >> 44 ? 0 : 1;
}

EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  ENTER_UNSAFE();
  *total = (size_t)80 << 30;
  *free_bytes = *total / 2;
  return current() ? 0 : 201;
}

EXPORT int cuMemAllocManaged(uint64_t *out, size_t size, unsigned flags) {
  ENTER_UNSAFE();
  write_log("managed %zu %u\n", size, flags);
  return allocate(out, size);
}

EXPORT int cuMemHostAlloc(void **out, size_t size, unsigned flags) {
  ENTER_UNSAFE();
  write_log("pinned %zu %u\n", size, flags);
  *out = malloc(size);
  return 0;
}

EXPORT int cuMemFreeHost(void *memory) {
  ENTER_UNSAFE();
  write_log("freed\n");
  free(memory);
  return 0;
}

EXPORT int cuMemHostRegister_v2(void *memory, size_t size, unsigned flags) {
  ENTER_UNSAFE();
  (void)memory;
  write_log("pin %zu %u\n", size, flags);
  return 0;
}

EXPORT int cuMemHostUnregister(void *memory) {
  ENTER_UNSAFE();
  (void)memory;
  write_log("unpin\n");
  return 0;
}

typedef struct pool_props {
  int alloc_type, handle_types, location_type, location_id;
  char rest[72];
} pool_props_t;

EXPORT int cuMemPoolCreate(uintptr_t *out, const pool_props_t *props) {
  ENTER_UNSAFE();
  *out = 0xA000u + (unsigned)props->location_id;
  return props->alloc_type == 1 && props->location_type == 1 ? 0 : 1;
}

EXPORT int cuMemPoolSetAttribute(uintptr_t pool, int attribute, const uint64_t *value) {
  ENTER();
  return pool >> 12 == 0xA && attribute == 4 && *value ? 0 : 1;
}

EXPORT int cuMemAllocFromPoolAsync(uint64_t *out, size_t size, uintptr_t pool, uintptr_t stream) {
  ENTER_UNSAFE();
  if (!size || pool != 0xA000u + (unsigned)current_device())
    return 1;
  write_log("allocate %zu in %lx\n", size, (unsigned long)stream);
  return allocate(out, size);
}

EXPORT int cuMemFreeAsync(uint64_t address, uintptr_t stream) {
  ENTER_UNSAFE();
  write_log("free in %lx\n", (unsigned long)stream);
  return address >> 44 ? 0 : 1;
}

static int is_memory(uint64_t address) {
  unsigned char resident;
  /* NOLINTNEXTLINE(performance-no-int-to-ptr): asked of the system */
  return !mincore((void *)(uintptr_t)(address & ~(uint64_t)4095), 1, &resident);
}

/* NOLINTBEGIN(performance-no-int-to-ptr): addresses are the driver's */
static void copy_bytes(uint64_t target, uint64_t source, size_t size) {
  if (is_memory(target) && is_memory(source))
    memmove((void *)(uintptr_t)target, (const void *)(uintptr_t)source, size);
  else if (!is_on_device(target)) /* from an address that a test made up */
    memset((void *)(uintptr_t)target, 0, size);
}
/* NOLINTEND(performance-no-int-to-ptr) */

EXPORT int cuMemcpy(uint64_t target, uint64_t source, size_t size) {
  ENTER_UNSAFE();
  write_log("copy %zu\n", size);
  if (target && source)
    copy_bytes(target, source, size);
  return target && source ? 0 : 1;
}

EXPORT int cuMemcpyAsync(uint64_t target, uint64_t source, size_t size, uintptr_t stream) {
  ENTER();
  write_log("copy %zu in %lx\n", size, (unsigned long)stream);
  copy_bytes(target, source, size);
  return target && source ? 0 : 1;
}

typedef struct copy_2d {
  size_t source_x, source_y;
  unsigned source_type;
  const void *source_host;
  uint64_t source_device;
  void *source_array;
  size_t source_pitch, target_x, target_y;
  unsigned target_type;
  void *target_host;
  uint64_t target_device;
  void *target_array;
  size_t target_pitch, width, height;
} copy_2d_t;

EXPORT int cuMemcpy2DAsync_v2(const copy_2d_t *copy, uintptr_t stream) {
  ENTER();
  write_log("copy %zu x %zu in %lx\n", copy->height, copy->width, (unsigned long)stream);
  if (copy->source_type != 4 || copy->target_type != 4 || copy->source_pitch < copy->width ||
      copy->target_pitch < copy->width)
    return 1;
  for (size_t row = 0; row < copy->height; row++)
    copy_bytes(copy->target_device + row * copy->target_pitch, copy->source_device + row * copy->source_pitch,
               copy->width);
  return 0;
}

EXPORT int cuMemsetD8Async(uint64_t address, unsigned char byte, size_t size, uintptr_t stream) {
  ENTER();
  (void)byte;
  write_log("fill %zu in %lx\n", size, (unsigned long)stream);
  return address >> 44 ? 0 : 1;
}

EXPORT int cuEventDestroy_v2(uintptr_t event) {
  ENTER();
  (void)event;
  return 0;
}

/* Memory of a device; addresses with bit 43 set are managed, and of the host, too; those with bit 42 are of another
 * context, from which a kernel reaches them at half of that. */
EXPORT int cuPointerGetAttribute(void *out, int attribute, uint64_t pointer) {
  ENTER();
  int device = (int)(pointer >> 44) - 1;
  if (device < 0 || device >= devices)
    return 1;
  bool managed = pointer >> 43 & 1;
  switch (attribute) {
  case 1: *(uint64_t *)out = 0xC000u + (unsigned)device; return 0;
  case 2: *(unsigned *)out = 2; return 0;
  case 3:
    if (!current()) /* an address is one of a context */
      return 201;
    *(uint64_t *)out = pointer >> 42 & 1 ? pointer - ((uint64_t)1 << 41) : pointer;
    return 0;
  case 4: *(uint64_t *)out = managed ? pointer : 0; return managed ? 0 : 1;
  case 8: *(unsigned *)out = managed; return 0;
  case 9: *(int *)out = device; return 0;
  default: return 1;
  }
}

/* --- modules --------------------------------------------------------------------------------------- */

/* What the driver's compiler would say of a text. */
static int check_image(const char *image, char *log, size_t log_bytes) {
  int major = 0, minor = 0;
  const char *word = strstr(image, ".version");
  if (word && sscanf(word, ".version %d.%d", &major, &minor) == 2 && 1000 * (major + 4) + 10 * minor > version)
    return 222;
  if (!strstr(image, "syntax error"))
    return 0;
  if (log)
    snprintf(log, log_bytes, "kernel.ptx, line 3; fatal : syntax error");
  return 218;
}

/* Value of a JIT option, or NULL. */
static void *option(unsigned count, const int *options, void **values, int wanted) {
  for (unsigned i = 0; i < count; i++)
    if (options[i] == wanted)
      return values[i];
  return NULL;
}

static void write_level(unsigned count, const int *options, void **values) {
  for (unsigned i = 0; i < count; i++)
    if (options[i] == 7)
      write_log("level %d\n", (int)(uintptr_t)values[i]);
}

static int load_image(module_t **out, const void *image, unsigned count, int *options, void **values) {
  if (!current())
    return 201;
  if (faulted[current_device()])
    return 700;
  int result = check_image(image, option(count, options, values, 5), 1000);
  if (result)
    return result;
  *out = calloc(1, sizeof **out);
  (*out)->device = current_device();
  (*out)->image = strdup(image);
  write_log("load %d\n", current_device());
  write_level(count, options, values);
  return 0;
}

static int unload_image(module_t *module) {
  if (current_device() != module->device)
    return 201;
  write_log("unload %d\n", module->device);
  free(module->image);
  free(module);
  return 0;
}

EXPORT int cuModuleLoadDataEx(module_t **out, const void *image, unsigned count, int *options, void **values) {
  ENTER_UNSAFE();
  return load_image(out, image, count, options, values);
}

EXPORT int cuModuleUnload(module_t *module) {
  ENTER_UNSAFE();
  return unload_image(module);
}

/* A library is the module of the device that it was loaded for. */
EXPORT int cuLibraryLoadData(module_t **out, const void *image, int *options, void **values, unsigned count,
                             int *library_options, void **library_values, unsigned library_count) {
  ENTER_UNSAFE();
  (void)library_options, (void)library_values;
  return library_count ? 1 : load_image(out, image, count, options, values);
}

EXPORT int cuLibraryGetModule(module_t **out, module_t *library) {
  ENTER_UNSAFE();
  *out = library;
  return current_device() == library->device ? 0 : 201;
}

EXPORT int cuLibraryUnload(module_t *library) {
  ENTER_UNSAFE();
  return unload_image(library);
}

EXPORT int cuModuleGetFunction(function_t **out, module_t *module, const char *name) {
  ENTER();
  if (!strstr(module->image, name))
    return 500;
  *out = calloc(1, sizeof **out);
  (*out)->device = module->device;
  (*out)->shared_limit = 48 << 10;
  const char *local = strstr(module->image, "// local "); /* what a test says that the code spills */
  (*out)->local_bytes = local ? atoi(local + sizeof "// local " - 1) : 0;
  snprintf((*out)->name, sizeof(*out)->name, "%s", name);
  return 0;
}

EXPORT int cuFuncSetAttribute(function_t *function, int attribute, int value) {
  ENTER_UNSAFE();
  if (attribute == 8)
    function->shared_limit = value;
  return attribute == 8 && value > 232448 ? 1 : 0;
}

EXPORT int cuFuncGetAttribute(int *out, int attribute, function_t *function) {
  ENTER_UNSAFE();
  *out = attribute == 4 ? 32 : attribute == 0 ? 1024 : attribute == 3 ? function->local_bytes : 0;
  return 0;
}

EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, function_t *function, int threads, size_t shared) {
  ENTER_UNSAFE();
  (void)function;
  *out = threads > 256 || shared > 113 << 10 ? 1 : 2;
  return 0;
}

EXPORT int cuLinkCreate_v2(unsigned count, int *options, void **values, linker_t **out) {
  ENTER_UNSAFE();
  *out = calloc(1, sizeof **out);
  (*out)->error_log = option(count, options, values, 5);
  write_level(count, options, values);
  return current() ? 0 : 201;
}

EXPORT int cuLinkAddData_v2(linker_t *linker, int type, void *data, size_t size, const char *name, unsigned count,
                            int *options, void **values) {
  ENTER_UNSAFE();
  (void)count, (void)options, (void)values;
  int result = check_image(data, linker->error_log, 1000);
  if (result)
    return result;
  write_log("link %d %s\n", type, name);
  char *before = linker->image;
  linker->size =
      (size_t)asprintf(&linker->image, "%s%.*s", before ? before : "CUBIN of\n", (int)size, (char *)data) + 1;
  free(before);
  return 0;
}

EXPORT int cuLinkComplete(linker_t *linker, void **out, size_t *out_size) {
  ENTER_UNSAFE();
  const char *missing = strstr(linker->image, "// undefined "); /* what a test says that no part defines */
  if (missing && linker->error_log)
    snprintf(linker->error_log, 1000, "error   : Undefined reference to '%s'", missing + sizeof "// undefined " - 1);
  if (missing)
    return 218;
  *out = linker->image;
  *out_size = linker->size;
  return 0;
}

EXPORT int cuLinkDestroy(linker_t *linker) {
  ENTER_UNSAFE();
  free(linker->image);
  free(linker);
  return 0;
}

EXPORT int cuThreadExchangeStreamCaptureMode(int *mode) {
  ENTER();
  int old = capture_mode;
  capture_mode = *mode;
  *mode = old;
  return 0;
}

/* --- tensor maps ------------------------------------------------------------------------------------ */

/* Keeps what a map was made from, in place of what the driver would write: address, rank and element type,
 * swizzle, then extents, strides and boxes. */
EXPORT int cuTensorMapEncodeTiled(uint64_t out[16], int type, uint32_t rank, void *address, const uint64_t *extents,
                                  const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                                  int swizzle, int promotion, int fill) {
  ENTER();
  (void)interleave, (void)promotion, (void)fill;
  if (!current())
    return 201;
  if ((uintptr_t)out % 64 || (uintptr_t)address % 16 || rank < 1 || rank > 5)
    return 1;
  memset(out, 0, 128);
  out[0] = (uintptr_t)address;
  out[1] = rank | (uint64_t)type << 8 | (uint64_t)swizzle << 16;
  for (uint32_t d = 0; d < rank; d++) {
    if (extents[d] < 1 || extents[d] > 1ull << 32 || box[d] < 1 || box[d] > 256 || steps[d] != 1 ||
        (d && (strides[d - 1] % 16 || strides[d - 1] >= 1ull << 40 || !strides[d - 1])))
      return 1;
    out[2 + d] = extents[d];
    out[7 + d] = d ? strides[d - 1] : 0;
    out[12 + d / 2] |= (uint64_t)box[d] << (d % 2 * 32);
  }
  return 0;
}

/* Parameters begin 48 bytes before a multiple of 64, as they do on a GPU: those that are aligned do not come first. */
EXPORT int cuFuncGetParamInfo(function_t *function, size_t index, size_t *offset, size_t *size) {
  ENTER();
  (void)function;
  *offset = 48 + 128 * index;
  *size = 128;
  return 0;
}

/* --- launch ---------------------------------------------------------------------------------------- */

typedef struct config {
  unsigned grid[3], block[3], shared_bytes;
  uintptr_t stream;
  void *attributes;
  unsigned attribute_count;
} config_t;

static void note_launch(const config_t *config, const function_t *function, void **extra) {
  memcpy(last.grid, config->grid, sizeof last.grid);
  memcpy(last.block, config->block, sizeof last.block);
  memcpy(last.name, function->name, sizeof last.name);
  last.shared_bytes = config->shared_bytes;
  last.attributes = config->attribute_count;
  last.stream = config->stream;
  last.context = current();
  last.bytes = extra ? *(size_t *)extra[3] : 0;
  if (extra)
    memcpy(last.words, extra[1], last.bytes);
}

EXPORT int cuLaunchKernelEx(const config_t *config, function_t *function, void **parameters, void **extra) {
  ENTER();
  (void)parameters;
  if (config->stream <= 2 && !current())
    return 201;
  if (stream_device(config->stream) != function->device)
    return 400;
  if (faulted[function->device])
    return 700;
  if (config->shared_bytes > (unsigned)function->shared_limit)
    return 1;
  fake_call_t call = atomic_exchange(&during_launch, (fake_call_t)NULL);
  if (call)
    call();
  pthread_mutex_lock(&lock);
  note_launch(config, function, extra);
  uint64_t own = last.words[last.bytes >= 8 ? last.bytes / 8 - 1 : 0];
  if (strstr(function->name, "fault"))
    faulted[function->device] = 1;
  pthread_mutex_unlock(&lock);
  char word[32] = "";
  if (logs_words)
    snprintf(word, sizeof word, " %lx", (unsigned long)own);
  write_log("launch %s %lx%s\n", function->name, (unsigned long)config->stream, word);
  return 0;
}
