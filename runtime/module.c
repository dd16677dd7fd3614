/* module.c - kernels: their names, and their functions on each device, found in the modules of their images */
#include "module.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Names stay for ever: the list of recent launches points at them. The lock is held. */
static const char *find_name(const char *name) {
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

static const char *intern_name(const char *name) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  const char *found = find_name(name);
  pthread_mutex_unlock(&lock);
  return found;
}

static tw_cuda_kernel_t *new_kernel(const void *image, size_t size, const char *name,
                                    const tw_launch_record_t *record) {
  tw_cuda_kernel_t *kernel = calloc(1, sizeof *kernel);
  if (!kernel)
    return NULL;
  kernel->record = *record;
  kernel->maps = record->num_tensor_maps ? calloc(record->num_tensor_maps, sizeof *kernel->maps) : NULL;
  atomic_flag_clear(&kernel->maps_taken);
  pthread_mutex_init(&kernel->loading, NULL);
  kernel->image = tw_image_take(image, size);
  kernel->name = intern_name(name);
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

_Static_assert(TW_MAX_LOADED >= (int)TW_MAX_ARGS, "a kernel may load from all of its arrays");

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
  if (!kernel)
    return;
  tw_image_drop(kernel->image);
  pthread_mutex_destroy(&kernel->loading);
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

/* `loading` is held, the context is current. */
static tw_status_t load_function(const tw_driver_t *driver, const tw_device_t *device, tw_cuda_kernel_t *kernel,
                                 CUfunction *out_function) {
  TW_RETURN_IF_ERROR(check_limits(kernel, device));
  CUmodule module = NULL;
  TW_RETURN_IF_ERROR(
      tw_status_prefix(tw_image_load(driver, device, kernel->image, &module), "kernel %s: ", kernel->name));
  CUresult result = driver->module_get_function(out_function, module, kernel->name);
  if (result)
    return tw_status_prefix(tw_driver_error(driver, TW_INTERNAL_ERROR, result, "finding the kernel in its module"),
                            "kernel %s: ", kernel->name);
  /* More than 48 KiB must be asked for. A launch of threads may add as much as there is. */
  int most = kernel->record.num_threads ? (int)kernel->record.shared_bytes : device->shared_bytes_per_block;
  result = driver->func_set_attribute(*out_function, CU_FUNC_MAX_DYNAMIC_SHARED, most);
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
  pthread_mutex_lock(&kernel->loading);
  CUfunction function = NULL;
  tw_context_relax(&scope);
  tw_status_t status = load_function(scope.driver, device, kernel, &function);
  if (!status && (kernel->record.persistent || kernel->record.has_split))
    status = count_resident(scope.driver, device, kernel, function);
  if (!status)
    atomic_store_explicit(&kernel->functions[ordinal], function, memory_order_release);
  pthread_mutex_unlock(&kernel->loading);
  tw_context_leave(&scope);
  return status;
}

tw_status_t tw_cuda_kernel_usage(tw_cuda_kernel_t *kernel, int ordinal, tw_cuda_usage_t *out) {
  *out = (tw_cuda_usage_t){0};
  TW_RETURN_IF_ERROR(tw_cuda_kernel_load(kernel, ordinal));
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
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

tw_status_t tw_cuda_kernel_resident(tw_cuda_kernel_t *kernel, int ordinal, int threads, size_t shared, int64_t *out) {
  *out = 0;
  TW_RETURN_IF_ERROR(tw_cuda_kernel_load(kernel, ordinal));
  const tw_device_t *device;
  TW_RETURN_IF_ERROR(tw_device_get(ordinal, &device));
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  CUfunction function = atomic_load_explicit(&kernel->functions[ordinal], memory_order_relaxed);
  int blocks = 0;
  CUresult result = scope.driver->occupancy(&blocks, function, threads, kernel->record.shared_bytes + shared);
  *out = (int64_t)device->sm_count * blocks;
  tw_context_leave(&scope);
  return result ? tw_driver_error(scope.driver, TW_DRIVER_ERROR, result, "counting a kernel's blocks") : NULL;
}
