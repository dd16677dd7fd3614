/* array_memory.c - the memory behind tilewright.Array: of a GPU in the order of a stream, of the host by classes of
 * size
 *
 * A device has one pool of ours, apart from the default one, which other libraries share and may trim. It keeps what is
 * given back, so that most allocations ask the driver's pool only. A driver or device without pools allocates at once.
 *
 * Host memory is aligned to a line of the cache, and kept for the next array of its class: touching new pages costs
 * more than a small kernel. */
#include "module.h"

#include <pthread.h>
#include <stdlib.h>

/* === a device's memory ============================================================================================ */

static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  bool known;
  CUmemoryPool pool; /* NULL: the device has none */
} pools[TW_MAX_DEVICES];

/* The lock is held, the context current. */
static CUmemoryPool make_pool(const tw_driver_t *driver, int ordinal) {
  CUmemPoolProps props = {.alloc_type = CU_MEM_ALLOCATION_PINNED,
                          .location = {.type = CU_MEM_LOCATION_DEVICE, .id = ordinal}};
  uint64_t keep_all = UINT64_MAX;
  CUmemoryPool pool = NULL;
  if (driver->mem_pool_create(&pool, &props) ||
      driver->mem_pool_set_attribute(pool, CU_MEMPOOL_RELEASE_THRESHOLD, &keep_all))
    return NULL;
  return pool;
}

static CUmemoryPool pool_of(const tw_driver_t *driver, int ordinal) {
  pthread_mutex_lock(&pools_lock);
  if (!pools[ordinal].known)
    pools[ordinal].pool = make_pool(driver, ordinal);
  pools[ordinal].known = true;
  CUmemoryPool pool = pools[ordinal].pool;
  pthread_mutex_unlock(&pools_lock);
  return pool;
}

tw_status_t tw_array_memory_take(int ordinal, void *stream, size_t size, uint64_t *out_address) {
  *out_address = 0;
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  CUmemoryPool pool = pool_of(scope.driver, ordinal);
  CUresult result = pool ? scope.driver->mem_alloc_from_pool(out_address, size, pool, stream)
                         : scope.driver->mem_alloc(out_address, size);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    tw_context_leave(&scope);
    return TW_ERROR(TW_OUT_OF_MEMORY, "CUDA device %d has no %zu bytes left for an array", ordinal, size);
  }
  return tw_device_leave(&scope, ordinal, result, "allocating an array");
}

tw_status_t tw_array_memory_give(int ordinal, void *stream, uint64_t address) {
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  CUresult result =
      pool_of(scope.driver, ordinal) ? scope.driver->mem_free_async(address, stream) : scope.driver->mem_free(address);
  return tw_device_leave(&scope, ordinal, result, "freeing an array");
}

/* Rows of bytes; a run of them is one row. */
static CUresult copy_rows(const tw_driver_t *driver, const tw_rows_t *rows, CUstream stream) {
  if (rows->height == 1)
    return driver->mem_copy_async(rows->target, rows->source, rows->width, stream);
  CUmemcpy2D copy = {.source_type = CU_MEMORY_UNIFIED,
                     .source_device = rows->source,
                     .source_pitch = rows->source_pitch,
                     .target_type = CU_MEMORY_UNIFIED,
                     .target_device = rows->target,
                     .target_pitch = rows->target_pitch,
                     .width = rows->width,
                     .height = rows->height};
  return driver->mem_copy_2d_async(&copy, stream);
}

tw_status_t tw_array_memory_copy(int ordinal, void *stream, const tw_rows_t *rows, bool wait) {
  if (!rows->width || !rows->height)
    return NULL;
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  CUresult result = copy_rows(scope.driver, rows, stream);
  if (!result && wait)
    result = scope.driver->stream_synchronize(stream);
  return tw_device_leave(&scope, ordinal, result, "copying an array");
}

/* === pointers ===================================================================================================== */

tw_status_t tw_pointer_query(const void *pointer, tw_pointer_t *out) {
  *out = (tw_pointer_t){0};
  TW_RETURN_IF_ERROR(tw_pointer_device(pointer, &out->ordinal));
  uint64_t host = 0;
  const struct {
    int attribute;
    void *value;
  } wanted[] = {{CU_POINTER_ATTRIBUTE_CONTEXT, &out->context},
                {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, &out->memory_type},
                {CU_POINTER_ATTRIBUTE_DEVICE_POINTER, &out->device},
                {CU_POINTER_ATTRIBUTE_HOST_POINTER, &host},
                {CU_POINTER_ATTRIBUTE_IS_MANAGED, &out->managed}};
  tw_context_scope_t scope; /* addresses are asked for a context */
  TW_RETURN_IF_ERROR(tw_device_enter(out->ordinal, &scope));
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) /* what memory of its kind has not stays 0 */
    scope.driver->pointer_get_attribute(wanted[i].value, wanted[i].attribute, (uint64_t)(uintptr_t)pointer);
  out->host_accessible = host != 0;
  return tw_device_leave(&scope, out->ordinal, CUDA_SUCCESS, "asking about a pointer");
}

tw_status_t tw_pointer_resolve(void **pointer, int *out_ordinal) {
  TW_RETURN_IF_ERROR(tw_pointer_device(*pointer, out_ordinal));
  uint64_t address = 0;
  tw_context_scope_t scope; /* the one that a kernel runs in: the thread may have none yet */
  TW_RETURN_IF_ERROR(tw_device_enter_plainly(*out_ordinal, &scope));
  CUresult result =
      scope.driver->pointer_get_attribute(&address, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, (uint64_t)(uintptr_t)*pointer);
  tw_context_leave(&scope);
  if (result)
    return TW_ERROR(TW_VALUE_ERROR, "its address %p cannot be reached from a GPU", *pointer);
  *pointer = (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr): the driver's form of an address */
  return NULL;
}

/* === the host's memory ============================================================================================ */

enum { LINE = 64, CLASSES = 26, KEPT = 1 << 26 }; /* classes: 64 bytes to 2 GiB; bytes that are kept */

typedef struct kept_block {
  struct kept_block *next;
} kept_block_t;

static pthread_mutex_t blocks_lock = PTHREAD_MUTEX_INITIALIZER;
static kept_block_t *blocks[CLASSES];
static size_t kept;

static size_t rounded(size_t size) { return (size + LINE - 1) & ~(size_t)(LINE - 1); }

/* Of the power of two that holds so many bytes; CLASSES: larger than all. */
static int class_of(size_t size) {
  int class = 0;
  while (class < CLASSES && (size_t)LINE << class < size)
    class++;
  return class;
}

void *tw_host_memory_take(size_t size) {
  int class = class_of(size);
  if (class == CLASSES)
    return aligned_alloc(LINE, rounded(size));
  size_t bytes = (size_t)LINE << class;
  pthread_mutex_lock(&blocks_lock);
  kept_block_t *block = blocks[class];
  if (block) {
    blocks[class] = block->next;
    kept -= bytes;
  }
  pthread_mutex_unlock(&blocks_lock);
  return block ? block : aligned_alloc(LINE, bytes);
}

void tw_host_memory_give(void *memory, size_t size) {
  int class = class_of(size);
  size_t bytes = class < CLASSES ? (size_t)LINE << class : 0;
  pthread_mutex_lock(&blocks_lock);
  bool keep = bytes && kept + bytes <= KEPT;
  if (keep) {
    *(kept_block_t *)memory = (kept_block_t){blocks[class]};
    blocks[class] = memory;
    kept += bytes;
  }
  pthread_mutex_unlock(&blocks_lock);
  if (!keep)
    free(memory);
}
