/* image.c - PTX and cubins: from text to machine code, and to a module on each device
 *
 * Images are kept by content: kernels made from equal bytes share one module a device. Who holds an image: the kernels
 * made of it, and the captured graphs that launch it, as user objects, so that they hold it for as long as the graph,
 * what was made of it and its runs. An image that nobody holds stays until it is one of several, and another one is to
 * be loaded: then the device is waited for, and their modules are unloaded. A device that cannot be waited for, as
 * where some stream captures, keeps them until the next time. */
#define _GNU_SOURCE
#include "module.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
  LOG_BYTES = 16384,
  MOST_UNHELD = 8 /* images that nobody holds, and that some device has loaded */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards images and their modules */
static tw_image_t *images;

/* ---- errors of the JIT ----------------------------------------------------------------------------- */

/* The ISA version that the text asks for, 78 for ".version 7.8"; 0 if it is not PTX. */
static int ptx_version(const char *image, size_t size) {
  const char *word = memmem(image, size < 4096 ? size : 4096, ".version", 8);
  if (!word)
    return 0;
  char *end;
  long major = strtol(word + 8, &end, 10);
  return *end == '.' ? (int)(major * 10 + strtol(end + 1, NULL, 10)) : 0;
}

/* The first CUDA release that takes a PTX version, as 1000 * major + 10 * minor. */
static int cuda_for_ptx(int ptx) {
  if (ptx >= 90)
    return 13000 + (ptx - 90) * 10;
  if (ptx >= 86) /* 12.6 brought no new PTX */
    return 12000 + (ptx - 79) * 10;
  if (ptx >= 80)
    return 12000 + (ptx - 80) * 10;
  return 11000 + (ptx - 70) * 10;
}

static tw_status_t jit_error(const tw_driver_t *driver, CUresult result, const tw_device_t *device, const char *image,
                             size_t size, const char *log) {
  if (result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION) {
    int ptx = ptx_version(image, size), cuda = cuda_for_ptx(ptx);
    return TW_ERROR(TW_DRIVER_ERROR,
                    "the CUDA driver is too old for this kernel: it supports CUDA %d.%d, and PTX "
                    "%d.%d needs CUDA %d.%d; install a newer NVIDIA driver",
                    driver->version / 1000, driver->version % 1000 / 10, ptx / 10, ptx % 10, cuda / 1000,
                    cuda % 1000 / 10);
  }
  if (result == CUDA_ERROR_JIT_COMPILER_NOT_FOUND)
    return TW_ERROR(TW_DRIVER_ERROR, "the CUDA driver has no PTX compiler: libnvidia-ptxjitcompiler.so.1 was not "
                                     "found; reinstall the NVIDIA driver with its compute libraries");
  if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
    return TW_ERROR(TW_DRIVER_ERROR,
                    "the kernel was compiled for another GPU than %s (sm_%d%d); compile it for "
                    "that target%s%s",
                    device->name, device->major, device->minor, *log ? ": " : "", log);
  tw_status_t status = tw_driver_error(driver, TW_COMPILE_ERROR, result, "loading the kernel");
  return *log ? tw_status_prefix(status, "the driver's PTX compiler says:\n%s\n", log) : status;
}

/* ---- PTX to cubin ---------------------------------------------------------------------------------- */

typedef struct jit_log {
  char info[LOG_BYTES], error[LOG_BYTES];
  unsigned count;
  int options[6];
  void *values[6];
} jit_log_t;

/* The level at which the first line of the text says that it shall be assembled; -1: as the driver likes. */
static int level_of(const char *image, size_t size) {
  static const char line[] = TW_PTX_OPT_LEVEL;
  size_t length = sizeof line - 1;
  bool says = size > length && !memcmp(image, line, length) && image[length] >= '0' && image[length] <= '4';
  return says ? image[length] - '0' : -1;
}

/* Whether the PTX says which lines its instructions come from: the driver drops that unless it is asked to keep it. */
static bool has_lines(const char *image, size_t size) { return size && memmem(image, size, "\t.loc\t", 6) != NULL; }

static void add_option(jit_log_t *log, int option, void *value) {
  log->options[log->count] = option;
  log->values[log->count++] = value;
}

static void jit_log_prepare(jit_log_t *log, const char *image, size_t size) {
  int level = level_of(image, size);
  *log->info = *log->error = 0;
  log->count = 0;
  add_option(log, CU_JIT_INFO_LOG_BUFFER, log->info);
  add_option(log, CU_JIT_INFO_LOG_BUFFER_SIZE, (void *)(uintptr_t)LOG_BYTES);
  add_option(log, CU_JIT_ERROR_LOG_BUFFER, log->error);
  add_option(log, CU_JIT_ERROR_LOG_BUFFER_SIZE, (void *)(uintptr_t)LOG_BYTES);
  if (level >= 0)
    add_option(log, CU_JIT_OPTIMIZATION_LEVEL, (void *)(uintptr_t)level);
  if (has_lines(image, size))
    add_option(log, CU_JIT_GENERATE_LINE_INFO, (void *)1);
}

/* The link API is the driver's only way to hand out machine code. */
static tw_status_t link_ptx(const tw_driver_t *driver, const tw_device_t *device, const char *ptx, jit_log_t *log,
                            void **out_cubin, size_t *out_size) {
  CUlinkState linker = NULL;
  size_t length = strlen(ptx), size = 0;
  void *image = NULL;
  jit_log_prepare(log, ptx, length);
  CUresult result = driver->link_create(log->count, log->options, log->values, &linker);
  if (result)
    return tw_driver_error(driver, TW_DRIVER_ERROR, result, "starting the PTX compiler");
  result =
      driver->link_add_data(linker, CU_JIT_INPUT_PTX, (void *)(uintptr_t)ptx, length + 1, "kernel.ptx", 0, NULL, NULL);
  if (!result)
    result = driver->link_complete(linker, &image, &size);
  tw_status_t status = result ? jit_error(driver, result, device, ptx, length, log->error) : NULL;
  if (!status) { /* the image dies with the linker */
    *out_cubin = malloc(size ? size : 1);
    *out_size = size;
    if (*out_cubin && image)
      memcpy(*out_cubin, image, size);
    else if (!*out_cubin)
      status = TW_ERROR(TW_OUT_OF_MEMORY, "out of host memory for a cubin of %zu bytes", size);
  }
  driver->link_destroy(linker);
  return status;
}

tw_status_t tw_cubin_from_ptx(const char *ptx, int ordinal, void **out_cubin, size_t *out_size, char **out_log) {
  *out_cubin = NULL;
  *out_size = 0;
  if (out_log)
    *out_log = NULL;
  const tw_device_t *device;
  TW_RETURN_IF_ERROR(tw_device_get(ordinal, &device));
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_context_enter(device, &scope));
  jit_log_t *log = malloc(sizeof *log);
  tw_status_t status = log ? link_ptx(scope.driver, device, ptx, log, out_cubin, out_size)
                           : TW_ERROR(TW_OUT_OF_MEMORY, "out of host memory");
  if (!status && out_log)
    *out_log = strdup(log->info);
  free(log);
  tw_context_leave(&scope);
  return status;
}

/* ---- who holds an image ------------------------------------------------------------------------------ */

/* The lock is held. */
static tw_image_t *find_image(tw_key_t key, const void *bytes, size_t size) {
  tw_image_t *image = images;
  while (image && (image->key.low != key.low || image->key.high != key.high || image->size != size ||
                   memcmp(image->bytes, bytes, size) != 0))
    image = image->next;
  return image;
}

static tw_image_t *new_image(tw_key_t key, const void *bytes, size_t size) {
  tw_image_t *image = calloc(1, sizeof *image + size + 1); /* PTX must be terminated */
  if (!image)
    return NULL;
  image->key = key;
  image->size = size;
  memcpy(image->bytes, bytes, size);
  image->next = images;
  return images = image;
}

tw_image_t *tw_image_take(const void *bytes, size_t size) {
  tw_key_t key = tw_hash(bytes, size);
  pthread_mutex_lock(&lock);
  tw_image_t *image = find_image(key, bytes, size);
  if (!image)
    image = new_image(key, bytes, size);
  if (image)
    atomic_fetch_add_explicit(&image->holders, 1, memory_order_relaxed);
  pthread_mutex_unlock(&lock);
  return image;
}

static void let_go(void *image) { atomic_fetch_sub_explicit(&((tw_image_t *)image)->holders, 1, memory_order_release); }

static bool is_held(const tw_image_t *image) { return atomic_load_explicit(&image->holders, memory_order_acquire) > 0; }

/* The lock is held. On a device, or on any of them: -1. */
static bool is_loaded(const tw_image_t *image, int ordinal) {
  bool loaded = false;
  for (int device = 0; device < TW_MAX_DEVICES; device++)
    loaded |= (ordinal < 0 || device == ordinal) && image->modules[device];
  return loaded;
}

/* The lock is held. Frees what no device has. */
static void free_unheld(void) {
  for (tw_image_t **place = &images, *image; (image = *place);) {
    if (is_held(image) || is_loaded(image, -1)) {
      place = &image->next;
    } else {
      *place = image->next;
      free(image);
    }
  }
}

void tw_image_drop(tw_image_t *image) {
  pthread_mutex_lock(&lock);
  if (image)
    let_go(image);
  free_unheld();
  pthread_mutex_unlock(&lock);
}

/* ---- graphs ---------------------------------------------------------------------------------------- */

void tw_image_hold_for_capture(tw_image_t *image, const tw_stream_use_t *use) {
  if (use->state == TW_STREAM_REFUSED)
    return;
  pthread_mutex_lock(&lock);
  if (!image->captured || image->capture != use->capture) {
    atomic_fetch_add_explicit(&image->holders, 1, memory_order_relaxed);
    if (!tw_graph_own(use, image, let_go)) /* it is then held for ever */
      atomic_fetch_add_explicit(&image->holders, 1, memory_order_relaxed);
  }
  image->captured = true;
  image->capture = use->capture;
  pthread_mutex_unlock(&lock);
}

/* ---- modules --------------------------------------------------------------------------------------- */

/* The lock is held, the context is current. Unloads images that nobody holds, once there are several. */
static void unload_unheld(const tw_driver_t *driver, int ordinal) {
  int count = 0;
  for (const tw_image_t *image = images; image; image = image->next)
    count += !is_held(image) && is_loaded(image, ordinal);
  if (count < MOST_UNHELD || driver->ctx_synchronize())
    return;
  for (tw_image_t *image = images; image; image = image->next)
    if (!is_held(image) && is_loaded(image, ordinal) && !driver->module_unload(image->modules[ordinal]))
      image->modules[ordinal] = NULL;
  free_unheld();
}

/* The lock is held, the context is current. */
static tw_status_t load_module(const tw_driver_t *driver, const tw_device_t *device, tw_image_t *image,
                               CUmodule *out_module) {
  jit_log_t *log = malloc(sizeof *log);
  if (!log)
    return TW_ERROR(TW_OUT_OF_MEMORY, "out of host memory");
  jit_log_prepare(log, image->bytes, image->size);
  CUresult result = driver->module_load_data(out_module, image->bytes, log->count, log->options, log->values);
  tw_status_t status = NULL;
  if (!result)
    image->modules[device->ordinal] = *out_module;
  else if (tw_result_is_fault(result))
    status = tw_fault_error(driver, device->ordinal, result, "loading the kernel");
  else
    status = jit_error(driver, result, device, image->bytes, image->size, log->error);
  free(log);
  return status;
}

tw_status_t tw_image_load(const tw_driver_t *driver, const tw_device_t *device, tw_image_t *image,
                          CUmodule *out_module) {
  tw_status_t status = NULL;
  pthread_mutex_lock(&lock);
  if (!is_loaded(image, device->ordinal)) {
    unload_unheld(driver, device->ordinal);
    status = load_module(driver, device, image, out_module);
  }
  *out_module = image->modules[device->ordinal];
  pthread_mutex_unlock(&lock);
  return status;
}
