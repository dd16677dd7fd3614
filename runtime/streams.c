/* streams.c - streams and events of a device: made and destroyed, asked, waited for, timed */
#include "driver.h"

/* tw_KIND_create and tw_KIND_destroy; a lost context has destroyed all that it had. */
#define MAKE_AND_DESTROY(kind, type, enter, making, destroying)                                                        \
  tw_status_t tw_##kind##_create(int ordinal, void **out) {                                                            \
    type made = NULL;                                                                                                  \
    *out = NULL;                                                                                                       \
    tw_context_scope_t scope;                                                                                          \
    TW_RETURN_IF_ERROR(enter(ordinal, &scope));                                                                        \
    CUresult result = scope.driver->kind##_create(&made, 0);                                                           \
    *out = made;                                                                                                       \
    return tw_device_leave(&scope, ordinal, result, making);                                                           \
  }                                                                                                                    \
  void tw_##kind##_destroy(int ordinal, void *object) {                                                                \
    tw_context_scope_t scope;                                                                                          \
    tw_status_t status = enter(ordinal, &scope);                                                                       \
    if (!status)                                                                                                       \
      status = tw_device_leave(&scope, ordinal, scope.driver->kind##_destroy(object), destroying);                     \
    tw_status_free(status);                                                                                            \
  }

MAKE_AND_DESTROY(stream, CUstream, tw_device_enter, "making a stream", "destroying a stream")
MAKE_AND_DESTROY(event, CUevent, tw_device_enter_plainly, "making an event", "destroying an event")

tw_status_t tw_stream_synchronize(int ordinal, void *stream) {
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  return tw_device_leave(&scope, ordinal, scope.driver->stream_synchronize(stream), "waiting for a stream");
}

/* Whether what was asked for is done, which the driver answers as if it were an error. */
static tw_status_t answer(tw_context_scope_t *scope, int ordinal, CUresult result, bool *out_done, const char *what) {
  *out_done = result != CUDA_ERROR_NOT_READY;
  return tw_device_leave(scope, ordinal, *out_done ? result : CUDA_SUCCESS, what);
}

tw_status_t tw_stream_is_busy(int ordinal, void *stream, bool *out_busy) {
  tw_context_scope_t scope;
  bool done = true;
  *out_busy = false;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  tw_status_t status = answer(&scope, ordinal, scope.driver->stream_query(stream), &done, "asking a stream");
  *out_busy = !done;
  return status;
}

tw_status_t tw_event_is_over(int ordinal, void *event, bool *out_over) {
  tw_context_scope_t scope;
  *out_over = true;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  return answer(&scope, ordinal, scope.driver->event_query(event), out_over, "asking an event");
}

tw_status_t tw_event_record_on(int ordinal, void *event, void *stream) {
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter_plainly(ordinal, &scope));
  return tw_device_leave(&scope, ordinal, scope.driver->event_record(event, stream), "recording an event");
}

tw_status_t tw_event_wait(int ordinal, void *event, void *stream) {
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  CUresult result = stream ? scope.driver->stream_wait_event(stream, event, 0) : scope.driver->event_synchronize(event);
  return tw_device_leave(&scope, ordinal, result, "waiting for an event");
}

tw_status_t tw_event_elapsed(int ordinal, void *begin, void *end, float *out_milliseconds) {
  *out_milliseconds = 0;
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  CUresult result = scope.driver->event_synchronize(end);
  if (!result)
    result = scope.driver->event_elapsed(out_milliseconds, begin, end);
  return tw_device_leave(&scope, ordinal, result, "timing a kernel");
}
