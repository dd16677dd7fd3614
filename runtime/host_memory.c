/* host_memory.c - memory of the host that a GPU reaches: pages that stay in their place, and pages that move
 *
 * All of it has one address on both sides, as every address has on a system with unified addressing. */
#include "driver.h"

enum {
  PORTABLE = 1, /* for every context */
  MAPPED = 2,
  COMBINED = 4,
  GLOBAL = 1 /* managed memory that any stream may touch */
};

tw_status_t tw_pinned_take(int ordinal, size_t size, bool combined, void **out) {
  *out = NULL;
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  unsigned flags = PORTABLE | MAPPED | (combined ? COMBINED : 0);
  CUresult result = scope.driver->host_alloc(out, size ? size : 1, flags);
  return tw_device_leave(&scope, ordinal, result, "allocating pinned memory of the host");
}

tw_status_t tw_pinned_give(int ordinal, void *memory) {
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  return tw_device_leave(&scope, ordinal, scope.driver->host_free(memory), "freeing pinned memory of the host");
}

tw_status_t tw_pin(int ordinal, void *memory, size_t size) {
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  CUresult result = scope.driver->host_register(memory, size, PORTABLE | MAPPED);
  return tw_device_leave(&scope, ordinal, result, "pinning memory of the host");
}

tw_status_t tw_unpin(int ordinal, void *memory) {
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  return tw_device_leave(&scope, ordinal, scope.driver->host_unregister(memory), "unpinning memory of the host");
}

tw_status_t tw_managed_memory_take(int ordinal, size_t size, uint64_t *out_address) {
  *out_address = 0;
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  CUresult result = scope.driver->mem_alloc_managed(out_address, size ? size : 1, GLOBAL);
  return tw_device_leave(&scope, ordinal, result, "allocating managed memory");
}

tw_status_t tw_memory_info(int ordinal, size_t *out_free, size_t *out_total) {
  *out_free = *out_total = 0;
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  return tw_device_leave(&scope, ordinal, scope.driver->mem_get_info(out_free, out_total), "counting free memory");
}
