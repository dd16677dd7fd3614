/* device.c - devices: their properties, their primary contexts, streams, and what ran last on each.
 *
 * A device's record is made once and lives for ever, so a launch finds it with one atomic load. */
#define _GNU_SOURCE
#include "module.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECENT = 4 };

static _Atomic(tw_device_t *) devices[TW_MAX_DEVICES];
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;

tw_status_t tw_device_count(int *out_count) {
  *out_count = 0;
  const tw_driver_t *driver;
  TW_RETURN_IF_ERROR(tw_driver_get(&driver));
  CUresult result = driver->device_get_count(out_count);
  if (result)
    return tw_driver_error(driver, TW_DRIVER_ERROR, result, "counting the CUDA devices");
  if (*out_count > TW_MAX_DEVICES)
    *out_count = TW_MAX_DEVICES;
  return NULL;
}

const tw_machine_t *tw_machine_of(int number) {
  enum { KIB = 1024 };
  static const struct {
    int number;
    tw_machine_t machine;
  } rows[] = {
#define DATASHEET(figure) (figure)
#define MEASURED(figure) (figure)
#define GUESS(figure) (figure)
#define TW_TARGET(number, name, features, accelerated, ...) {number, {__VA_ARGS__}},
#include "tilewright/targets.def"
#undef TW_TARGET
#undef GUESS
#undef MEASURED
#undef DATASHEET
  };
  size_t found = 0;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    found = rows[i].number <= number ? i : found;
  return &rows[found].machine;
}

static void read_uuid(const tw_driver_t *driver, CUdevice handle, tw_device_t *device) {
  unsigned char bytes[16];
  if (!driver->device_get_uuid || driver->device_get_uuid(bytes, handle))
    return;
  for (size_t i = 0; i < sizeof bytes; i++)
    snprintf(device->uuid + 2 * i, 3, "%02x", bytes[i]);
}

static CUresult read_properties(const tw_driver_t *driver, CUdevice handle, tw_device_t *device) {
  const struct {
    int attribute;
    int *value;
  } wanted[] = {
      {CU_DEVICE_CAPABILITY_MAJOR, &device->major},
      {CU_DEVICE_CAPABILITY_MINOR, &device->minor},
      {CU_DEVICE_MULTIPROCESSOR_COUNT, &device->sm_count},
      {CU_DEVICE_SHARED_PER_BLOCK_OPTIN, &device->shared_bytes_per_block},
      {CU_DEVICE_SHARED_PER_MULTIPROCESSOR, &device->shared_bytes_per_sm},
      {CU_DEVICE_L2_CACHE_SIZE, &device->l2_bytes},
      {CU_DEVICE_MAX_THREADS_PER_BLOCK, &device->max_threads_per_block},
      {CU_DEVICE_CLOCK_RATE, &device->clock_khz},
      {CU_DEVICE_MEMORY_CLOCK_RATE, &device->memory_clock_khz},
      {CU_DEVICE_MEMORY_BUS_WIDTH, &device->memory_bus_bits},
  };
  CUresult result = driver->device_get_name(device->name, sizeof device->name, handle);
  for (size_t i = 0; !result && i < sizeof wanted / sizeof *wanted; i++)
    result = driver->device_get_attribute(wanted[i].value, wanted[i].attribute, handle);
  size_t memory = 0;
  if (!result)
    result = driver->device_total_mem(&memory, handle);
  device->memory_bytes = memory;
  read_uuid(driver, handle, device);
  device->machine = tw_machine_of(10 * device->major + device->minor);
  return result;
}

TW_RETURNS_NONNULL static tw_status_t missing_device(int ordinal) {
  int count;
  TW_RETURN_IF_ERROR(tw_device_count(&count)); /* no driver: that is the error to report */
  return TW_ERROR(TW_DRIVER_ERROR,
                  "there is no CUDA device %d: the driver shows %d device(s); check CUDA_VISIBLE_DEVICES", ordinal,
                  count);
}

tw_status_t tw_device_describe(int ordinal, tw_device_t *out_device) {
  *out_device = (tw_device_t){.ordinal = ordinal};
  const tw_driver_t *driver;
  TW_RETURN_IF_ERROR(tw_driver_get(&driver));
  int count = 0;
  TW_RETURN_IF_ERROR(tw_device_count(&count));
  if (ordinal < 0 || ordinal >= count)
    return missing_device(ordinal);
  CUdevice handle = 0;
  CUresult result = driver->device_get(&handle, ordinal);
  if (!result)
    result = read_properties(driver, handle, out_device);
  return result ? tw_driver_error(driver, TW_DRIVER_ERROR, result, "opening the CUDA device") : NULL;
}

static tw_status_t retain_context(tw_device_t *device) {
  const tw_driver_t *driver = &tw_driver_table;
  tw_context_scope_t scope = {.driver = driver};
  tw_context_relax(&scope);
  CUdevice handle = 0;
  CUcontext context = NULL;
  CUresult result = driver->device_get(&handle, device->ordinal);
  if (!result)
    result = driver->primary_retain(&context, handle);
  tw_context_leave(&scope);
  device->context = context;
  return result ? tw_driver_error(driver, TW_DRIVER_ERROR, result, "opening the CUDA device") : NULL;
}

/* The lock is held. */
static tw_status_t make_device(int ordinal, tw_device_t **out_device) {
  tw_device_t *device = calloc(1, sizeof *device);
  if (!device)
    return TW_ERROR(TW_OUT_OF_MEMORY, "out of host memory");
  tw_status_t status = tw_device_describe(ordinal, device);
  if (!status)
    status = retain_context(device);
  if (status) {
    free(device);
    return status;
  }
  *out_device = device;
  return NULL;
}

/* A device that is seen for the first time. */
static tw_status_t open_device(int ordinal, const tw_device_t **out_device) {
  *out_device = NULL;
  if (ordinal < 0 || ordinal >= TW_MAX_DEVICES)
    return missing_device(ordinal);
  pthread_mutex_lock(&devices_lock);
  tw_device_t *device = atomic_load_explicit(&devices[ordinal], memory_order_relaxed);
  tw_status_t status = device ? NULL : make_device(ordinal, &device);
  if (!status)
    atomic_store_explicit(&devices[ordinal], device, memory_order_release);
  pthread_mutex_unlock(&devices_lock);
  *out_device = device;
  return status;
}

TW_HOT tw_status_t tw_device_get(int ordinal, const tw_device_t **out_device) {
  const tw_device_t *device = NULL;
  if (TW_LIKELY((unsigned)ordinal < TW_MAX_DEVICES))
    device = atomic_load_explicit(&devices[ordinal], memory_order_acquire);
  *out_device = device;
  return TW_LIKELY(device != NULL) ? NULL : open_device(ordinal, out_device);
}

bool tw_device_is_open(int ordinal) {
  return ordinal >= 0 && ordinal < TW_MAX_DEVICES &&
         atomic_load_explicit(&devices[ordinal], memory_order_acquire) != NULL;
}

tw_status_t tw_context_push(const tw_device_t *device, tw_context_scope_t *out_scope) {
  CUresult result = tw_driver_table.ctx_push(device->context);
  if (result)
    return tw_driver_error(&tw_driver_table, TW_DRIVER_ERROR, result, "making the CUDA context current");
  out_scope->entered = out_scope->pushed = true;
  return NULL;
}

void tw_context_relax(tw_context_scope_t *scope) {
  scope->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  scope->relaxed = scope->driver->exchange_capture_mode && !scope->driver->exchange_capture_mode(&scope->mode);
  scope->entered |= scope->relaxed;
}

void tw_context_take_back(tw_context_scope_t *scope) {
  CUcontext popped;
  if (scope->relaxed)
    scope->driver->exchange_capture_mode(&scope->mode);
  if (scope->pushed)
    scope->driver->ctx_pop(&popped);
  scope->entered = scope->pushed = scope->relaxed = false;
}

/* --- streams and pointers ------------------------------------------------------------------------ */

/* The device of a context: quick for the primary ones, which are nearly all. */
static CUresult context_device(const tw_driver_t *driver, CUcontext context, int *out_ordinal) {
  for (int i = 0; i < TW_MAX_DEVICES; i++) {
    const tw_device_t *device = atomic_load_explicit(&devices[i], memory_order_acquire);
    if (device && device->context == context) {
      *out_ordinal = i;
      return CUDA_SUCCESS;
    }
  }
  CUresult result = driver->ctx_push(context);
  if (result)
    return result;
  result = driver->ctx_get_device(out_ordinal);
  driver->ctx_pop(&context);
  return result;
}

tw_status_t tw_stream_device(void *stream, int *out_ordinal) {
  *out_ordinal = 0;
  const tw_device_t *first; /* a device exists, so the driver is open */
  TW_RETURN_IF_ERROR(tw_device_get(0, &first));
  const tw_driver_t *driver = &tw_driver_table;
  CUcontext context = NULL;
  CUresult result;
  if ((uintptr_t)stream > 2)
    result = driver->stream_get_ctx(stream, &context);
  else /* a default stream belongs to whatever is current */
    result = driver->ctx_get_current(&context);
  if (!result && context)
    result = context_device(driver, context, out_ordinal);
  return result ? tw_driver_error(driver, TW_LAUNCH_ERROR, result, "finding the stream's device") : NULL;
}

/* A stream that captures a graph waits for no other stream, and no other waits for it: whoever runs the graph orders
 * the run. */
static bool is_capturing(const tw_driver_t *driver, CUstream stream) {
  return tw_stream_use(driver, stream).state == TW_STREAM_CAPTURES;
}

bool tw_stream_captures(int ordinal, void *stream) {
  tw_context_scope_t scope;
  bool captures = false;
  tw_status_t status = tw_device_enter_plainly(ordinal, &scope);
  if (!status) {
    captures = is_capturing(scope.driver, stream);
    tw_context_leave(&scope);
  }
  tw_status_free(status);
  return captures;
}

tw_status_t tw_stream_order(int ordinal, void *producer, void *consumer) {
  if (producer == consumer)
    return NULL;
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter_plainly(ordinal, &scope));
  const tw_driver_t *driver = scope.driver;
  if (is_capturing(driver, producer) || is_capturing(driver, consumer))
    return tw_device_leave(&scope, ordinal, CUDA_SUCCESS, NULL);
  CUevent event = NULL;
  CUresult result = driver->event_create(&event, CU_EVENT_DISABLE_TIMING);
  if (!result)
    result = driver->event_record(event, producer);
  if (!result)
    result = driver->stream_wait_event(consumer, event, 0);
  if (event) /* freed by the driver when the wait is over */
    driver->event_destroy(event);
  return tw_device_leave(&scope, ordinal, result, "ordering two CUDA streams");
}

tw_status_t tw_pointer_device(const void *pointer, int *out_ordinal) {
  *out_ordinal = 0;
  const tw_driver_t *driver;
  TW_RETURN_IF_ERROR(tw_driver_get(&driver));
  CUresult result =
      driver->pointer_get_attribute(out_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (uint64_t)(uintptr_t)pointer);
  if (result == CUDA_ERROR_INVALID_VALUE)
    return TW_ERROR(TW_VALUE_ERROR, "its address %p is not memory that the CUDA driver knows", pointer);
  return result ? tw_driver_error(driver, TW_DRIVER_ERROR, result, "finding an array's device") : NULL;
}

tw_status_t tw_device_enter_plainly(int ordinal, tw_context_scope_t *out_scope) {
  const tw_device_t *device;
  TW_RETURN_IF_ERROR(tw_device_get(ordinal, &device));
  return tw_context_enter(device, out_scope);
}

tw_status_t tw_device_enter(int ordinal, tw_context_scope_t *out_scope) {
  TW_RETURN_IF_ERROR(tw_device_enter_plainly(ordinal, out_scope));
  tw_context_relax(out_scope);
  return NULL;
}

tw_status_t tw_device_leave(tw_context_scope_t *scope, int ordinal, CUresult result, const char *what) {
  tw_context_leave(scope);
  return result ? tw_fault_error(scope->driver, ordinal, result, what) : NULL;
}

tw_status_t tw_device_synchronize(int ordinal) {
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  return tw_device_leave(&scope, ordinal, scope.driver->ctx_synchronize(), "waiting for the device");
}

/* --- what ran last --------------------------------------------------------------------------------- */

/* Races between threads may lose an entry: it is only a hint in an error message. */
static struct {
  _Atomic(const char *) name[RECENT];
  _Atomic unsigned next;
} recent[TW_MAX_DEVICES];

TW_HOT void tw_recent_note(int ordinal, const char *kernel_name) {
  unsigned slot = atomic_load_explicit(&recent[ordinal].next, memory_order_relaxed);
  atomic_store_explicit(&recent[ordinal].name[slot % RECENT], kernel_name, memory_order_relaxed);
  atomic_store_explicit(&recent[ordinal].next, slot + 1, memory_order_relaxed);
}

/* The kernels launched last on a device, newest first. */
static void print_recent(int ordinal, tw_strbuf_t *buffer) {
  unsigned next = atomic_load_explicit(&recent[ordinal].next, memory_order_relaxed);
  const char *last = NULL;
  for (unsigned i = 1; i <= RECENT && i <= next; i++) {
    const char *name = atomic_load_explicit(&recent[ordinal].name[(next - i) % RECENT], memory_order_relaxed);
    if (!name || (last && !strcmp(name, last)))
      continue;
    tw_strbuf_printf(buffer, "%s%s", last ? ", " : "", name);
    last = name;
  }
}

bool tw_result_is_fault(CUresult result) {
  return result == CUDA_ERROR_ASSERT || result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_LAUNCH_TIMEOUT ||
         (result >= CUDA_ERROR_HARDWARE_STACK_ERROR && result <= CUDA_ERROR_LAUNCH_FAILED);
}

tw_status_t tw_fault_error(const tw_driver_t *driver, int ordinal, CUresult result, const char *what) {
  if (!tw_result_is_fault(result))
    return tw_driver_error(driver, TW_LAUNCH_ERROR, result, what);
  tw_strbuf_t names = {0};
  print_recent(ordinal, &names);
  const char *error = NULL, *text = NULL;
  driver->get_error_name(result, &error);
  driver->get_error_string(result, &text);
  tw_status_t status =
      TW_ERROR(TW_LAUNCH_ERROR,
               "a kernel on CUDA device %d failed while it ran: %s (%d), %s; launched last, newest first: "
               "%s. The device's context is lost: restart the process. To find the access, set "
               "CUDA_LAUNCH_BLOCKING=1 or run under compute-sanitizer",
               ordinal, error ? error : "CUDA error", result, text ? text : "no text",
               names.size ? tw_strbuf_cstr(&names) : "(none by this program)");
  tw_strbuf_free(&names);
  return status;
}
