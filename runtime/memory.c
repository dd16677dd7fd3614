/* memory.c - memory of a device, for the tuner and its worker process, which measure kernels
 *
 * Everything is on the default stream, so a fill, a launch with stream 0 and an event keep their order. */
#include "driver.h"

tw_status_t tw_memory_alloc(int ordinal, size_t size, uint64_t *out_address) {
  *out_address = 0;
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  CUresult result = scope.driver->mem_alloc(out_address, size ? size : 1);
  tw_status_t status = tw_device_leave(&scope, ordinal, result, "allocating device memory");
  return status ? tw_status_prefix(status, "%zu bytes: ", size) : NULL;
}

tw_status_t tw_memory_free(int ordinal, uint64_t address) {
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  return tw_device_leave(&scope, ordinal, scope.driver->mem_free(address), "freeing device memory");
}

tw_status_t tw_memory_copy(int ordinal, uint64_t target, uint64_t source, size_t size) {
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  return tw_device_leave(&scope, ordinal, size ? scope.driver->mem_copy(target, source, size) : CUDA_SUCCESS,
                         "copying memory");
}

tw_status_t tw_memory_fill(int ordinal, uint64_t address, unsigned char byte, size_t size) {
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  CUresult result = size ? scope.driver->mem_set(address, byte, size, NULL) : CUDA_SUCCESS;
  return tw_device_leave(&scope, ordinal, result, "filling memory");
}
