/* memory.c - memory and events of a device, for the tuner and its worker process, which measure kernels
 *
 * Everything is on the default stream, so a fill, a launch with stream 0 and an event keep their order. */
#include "module.h"

/* Opens the device and makes its context current; on success the caller leaves it. */
static tw_status_t enter(int ordinal, tw_context_scope_t *out_scope) {
  const tw_device_t *device;
  TW_RETURN_IF_ERROR(tw_device_get(ordinal, &device));
  return tw_context_enter(device, out_scope);
}

static tw_status_t leave(tw_context_scope_t *scope, int ordinal, CUresult result, const char *what) {
  tw_context_leave(scope);
  return result ? tw_fault_error(scope->driver, ordinal, result, what) : NULL;
}

tw_status_t tw_memory_alloc(int ordinal, size_t size, uint64_t *out_address) {
  *out_address = 0;
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(enter(ordinal, &scope));
  CUresult result = scope.driver->mem_alloc(out_address, size ? size : 1);
  tw_status_t status = leave(&scope, ordinal, result, "allocating device memory");
  return status ? tw_status_prefix(status, "%zu bytes: ", size) : NULL;
}

tw_status_t tw_memory_free(int ordinal, uint64_t address) {
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(enter(ordinal, &scope));
  return leave(&scope, ordinal, scope.driver->mem_free(address), "freeing device memory");
}

tw_status_t tw_memory_copy(int ordinal, uint64_t target, uint64_t source, size_t size) {
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(enter(ordinal, &scope));
  return leave(&scope, ordinal, size ? scope.driver->mem_copy(target, source, size) : CUDA_SUCCESS, "copying memory");
}

tw_status_t tw_memory_fill(int ordinal, uint64_t address, unsigned char byte, size_t size) {
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(enter(ordinal, &scope));
  CUresult result = size ? scope.driver->mem_set(address, byte, size, NULL) : CUDA_SUCCESS;
  return leave(&scope, ordinal, result, "filling memory");
}

tw_status_t tw_event_create(int ordinal, void **out_event) {
  CUevent event = NULL;
  *out_event = NULL;
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(enter(ordinal, &scope));
  CUresult result = scope.driver->event_create(&event, 0);
  *out_event = event;
  return leave(&scope, ordinal, result, "making an event");
}

void tw_event_destroy(int ordinal, void *event) {
  tw_context_scope_t scope;
  tw_status_t status = enter(ordinal, &scope);
  if (!status)
    status = leave(&scope, ordinal, scope.driver->event_destroy(event), "destroying an event");
  tw_status_free(status); /* a lost context has destroyed it already */
}

tw_status_t tw_event_elapsed(int ordinal, void *begin, void *end, float *out_milliseconds) {
  *out_milliseconds = 0;
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(enter(ordinal, &scope));
  CUresult result = scope.driver->event_synchronize(end);
  if (!result)
    result = scope.driver->event_elapsed(out_milliseconds, begin, end);
  return leave(&scope, ordinal, result, "timing a kernel");
}
