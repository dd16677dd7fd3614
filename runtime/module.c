/* module.c - kernel images: PTX to cubin, loading once per device, finding the function.
 *
 * Images are kept by content: kernels made from equal bytes share one module per device.  Images
 * and modules are never freed, because a captured graph may still hold a function of them and the
 * driver does not tell; their number is bounded by what was compiled. */
#define _GNU_SOURCE
#include "module.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_BYTES = 16384 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards images and loading */
static tw_image_t *images;

/* --- errors of the JIT ----------------------------------------------------------------------------- */

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

/* --- PTX to cubin ---------------------------------------------------------------------------------- */

typedef struct jit_log {
  char info[LOG_BYTES], error[LOG_BYTES];
  unsigned count;
  int options[5];
  void *values[5];
} jit_log_t;

/* The level at which the first line of the text says that it shall be assembled; -1: as the driver likes. */
static int level_of(const char *image, size_t size) {
  static const char line[] = TW_PTX_OPT_LEVEL;
  size_t length = sizeof line - 1;
  bool says = size > length && !memcmp(image, line, length) && image[length] >= '0' && image[length] <= '4';
  return says ? image[length] - '0' : -1;
}

static void jit_log_prepare(jit_log_t *log, const char *image, size_t size) {
  int level = level_of(image, size);
  *log->info = *log->error = 0;
  static const int options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE, CU_JIT_ERROR_LOG_BUFFER,
                                CU_JIT_ERROR_LOG_BUFFER_SIZE, CU_JIT_OPTIMIZATION_LEVEL};
  log->count = level < 0 ? 4 : 5;
  log->values[4] = (void *)(uintptr_t)(level < 0 ? 0 : level);
  memcpy(log->options, options, sizeof options);
  log->values[0] = log->info;
  log->values[1] = (void *)(uintptr_t)LOG_BYTES;
  log->values[2] = log->error;
  log->values[3] = (void *)(uintptr_t)LOG_BYTES;
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

/* --- images ------------------------------------------------------------------------------------------ */

/* The lock is held.  Finds an image by content or makes it. */
static tw_image_t *intern_image(const void *bytes, size_t size) {
  tw_key_t key = tw_hash(bytes, size);
  for (tw_image_t *image = images; image; image = image->next)
    if (image->key.low == key.low && image->key.high == key.high && image->size == size &&
        !memcmp(image->bytes, bytes, size))
      return image;
  tw_image_t *image = calloc(1, sizeof *image + size + 1); /* PTX must be terminated */
  if (!image)
    return NULL;
  image->key = key;
  image->size = size;
  memcpy(image->bytes, bytes, size);
  image->next = images;
  return images = image;
}

/* The lock is held, the context is current. */
static tw_status_t load_image(const tw_driver_t *driver, const tw_device_t *device, tw_image_t *image,
                              CUmodule *out_module) {
  if (image->modules[device->ordinal]) {
    *out_module = image->modules[device->ordinal];
    return NULL;
  }
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

/* --- kernels ----------------------------------------------------------------------------------------- */

/* Names stay for ever: the list of recent launches points at them. */
static const char *intern_name(const char *name) {
  static struct name {
    struct name *next;
    char text[];
  } *names;
  for (struct name *known = names; known; known = known->next)
    if (!strcmp(known->text, name))
      return known->text;
  size_t length = strlen(name);
  struct name *fresh = malloc(sizeof *fresh + length + 1);
  if (!fresh)
    return NULL;
  memcpy(fresh->text, name, length + 1);
  fresh->next = names;
  names = fresh;
  return fresh->text;
}

static tw_cuda_kernel_t *new_kernel(const void *image, size_t size, const char *name,
                                    const tw_launch_record_t *record) {
  tw_cuda_kernel_t *kernel = calloc(1, sizeof *kernel);
  if (!kernel)
    return NULL;
  kernel->record = *record;
  kernel->maps = record->num_tensor_maps ? calloc(record->num_tensor_maps, sizeof *kernel->maps) : NULL;
  atomic_flag_clear(&kernel->maps_taken);
  pthread_mutex_lock(&lock);
  kernel->image = intern_image(image, size);
  kernel->name = intern_name(name);
  pthread_mutex_unlock(&lock);
  if (kernel->image && kernel->name && (kernel->maps || !record->num_tensor_maps))
    return kernel;
  tw_cuda_kernel_destroy(kernel);
  return NULL;
}

tw_status_t tw_cuda_kernel_create(const void *image, size_t size, const char *name, const tw_launch_record_t *record,
                                  tw_cuda_kernel_t **out_kernel) {
  *out_kernel = NULL;
  TW_RETURN_IF_ERROR(tw_status_prefix(tw_launch_record_check(record), "kernel %s: ", name));
  *out_kernel = new_kernel(image, size, name, record);
  return *out_kernel ? NULL : TW_ERROR(TW_OUT_OF_MEMORY, "out of host memory for kernel %s", name);
}

const tw_launch_record_t *tw_cuda_kernel_record(const tw_cuda_kernel_t *kernel) { return &kernel->record; }

int64_t tw_loaded_bytes(const tw_launch_record_t *record, const uint64_t *words) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < record->num_loaded; i++) {
    const tw_array_place_t *array = &record->loaded[i];
    int64_t bits = array->bits;
    for (int d = 0; d < array->rank; d++)
      if (__builtin_mul_overflow(bits, (int64_t)words[array->word + 1 + d], &bits))
        return INT64_MAX;
    if (__builtin_add_overflow(bytes, bits / 8, &bytes))
      return INT64_MAX;
  }
  return bytes;
}

void tw_cuda_kernel_destroy(tw_cuda_kernel_t *kernel) {
  if (kernel)
    free(kernel->maps);
  free(kernel);
}

static tw_status_t check_limits(const tw_cuda_kernel_t *kernel, const tw_device_t *device) {
  if (kernel->record.shared_bytes > (unsigned)device->shared_bytes_per_block)
    return TW_ERROR(TW_LAUNCH_ERROR,
                    "kernel %s needs %u bytes of shared memory per block, %s has %d; use smaller "
                    "tiles or fewer stages",
                    kernel->name, kernel->record.shared_bytes, device->name, device->shared_bytes_per_block);
  if (kernel->record.num_threads > (unsigned)device->max_threads_per_block)
    return TW_ERROR(TW_LAUNCH_ERROR, "kernel %s has %u threads per block, %s allows %d", kernel->name,
                    kernel->record.num_threads, device->name, device->max_threads_per_block);
  return NULL;
}

/* The lock is held, the context is current. */
static tw_status_t load_function(const tw_driver_t *driver, const tw_device_t *device, tw_cuda_kernel_t *kernel,
                                 CUfunction *out_function) {
  TW_RETURN_IF_ERROR(check_limits(kernel, device));
  CUmodule module = NULL;
  TW_RETURN_IF_ERROR(tw_status_prefix(load_image(driver, device, kernel->image, &module), "kernel %s: ", kernel->name));
  CUresult result = driver->module_get_function(out_function, module, kernel->name);
  if (result)
    return tw_status_prefix(tw_driver_error(driver, TW_INTERNAL_ERROR, result, "finding the kernel in its module"),
                            "kernel %s: ", kernel->name);
  /* More than 48 KiB must be asked for. */
  result = driver->func_set_attribute(*out_function, CU_FUNC_MAX_DYNAMIC_SHARED, (int)kernel->record.shared_bytes);
  if (result)
    return tw_status_prefix(tw_driver_error(driver, TW_LAUNCH_ERROR, result, "reserving shared memory"),
                            "kernel %s (%u bytes): ", kernel->name, kernel->record.shared_bytes);
  return kernel->record.num_tensor_maps ? tw_cuda_find_maps(driver, kernel, device->ordinal, *out_function) : NULL;
}

static tw_status_t count_resident(const tw_driver_t *driver, const tw_device_t *device, tw_cuda_kernel_t *kernel,
                                  CUfunction function) {
  int blocks = 0;
  CUresult result = driver->occupancy(&blocks, function, (int)kernel->record.num_threads, kernel->record.shared_bytes);
  if (result)
    return tw_status_prefix(tw_driver_error(driver, TW_DRIVER_ERROR, result, "counting the blocks that fit"),
                            "kernel %s: ", kernel->name);
  kernel->resident[device->ordinal] = (uint32_t)device->sm_count * (uint32_t)(blocks > 0 ? blocks : 1);
  return NULL;
}

TW_HOT bool tw_cuda_kernel_is_loaded(const tw_cuda_kernel_t *kernel, int ordinal) {
  return ordinal >= 0 && ordinal < TW_MAX_DEVICES &&
         atomic_load_explicit(&kernel->functions[ordinal], memory_order_acquire);
}

tw_status_t tw_cuda_kernel_load(tw_cuda_kernel_t *kernel, int ordinal) {
  const tw_device_t *device;
  TW_RETURN_IF_ERROR(tw_device_get(ordinal, &device));
  if (atomic_load_explicit(&kernel->functions[ordinal], memory_order_acquire))
    return NULL;
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_context_enter(device, &scope));
  pthread_mutex_lock(&lock);
  CUfunction function = NULL;
  /* A stream may be capturing a graph: loading is no part of it, and allowed. */
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (scope.driver->exchange_capture_mode)
    scope.driver->exchange_capture_mode(&mode);
  tw_status_t status = load_function(scope.driver, device, kernel, &function);
  if (!status && (kernel->record.persistent || kernel->record.has_split))
    status = count_resident(scope.driver, device, kernel, function);
  if (scope.driver->exchange_capture_mode)
    scope.driver->exchange_capture_mode(&mode);
  if (!status)
    atomic_store_explicit(&kernel->functions[ordinal], function, memory_order_release);
  pthread_mutex_unlock(&lock);
  tw_context_leave(&scope);
  return status;
}

tw_status_t tw_cuda_kernel_usage(tw_cuda_kernel_t *kernel, int ordinal, tw_cuda_usage_t *out) {
  *out = (tw_cuda_usage_t){0};
  TW_RETURN_IF_ERROR(tw_cuda_kernel_load(kernel, ordinal));
  const tw_device_t *device;
  TW_RETURN_IF_ERROR(tw_device_get(ordinal, &device));
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_context_enter(device, &scope));
  const tw_driver_t *driver = scope.driver;
  CUfunction function = atomic_load_explicit(&kernel->functions[ordinal], memory_order_relaxed);
  CUresult result = driver->func_get_attribute(&out->registers, CU_FUNC_NUM_REGS, function);
  if (!result)
    result = driver->func_get_attribute(&out->local_bytes, CU_FUNC_LOCAL_SIZE_BYTES, function);
  if (!result)
    result = driver->func_get_attribute(&out->shared_bytes, CU_FUNC_SHARED_SIZE_BYTES, function);
  if (!result)
    result = driver->func_get_attribute(&out->max_threads, CU_FUNC_MAX_THREADS_PER_BLOCK, function);
  tw_context_leave(&scope);
  return result ? tw_driver_error(driver, TW_DRIVER_ERROR, result, "reading a kernel's attributes") : NULL;
}
