/* stream.c - the stream of a launch: whether it captures a graph, and what that graph owns from then on
 *
 * A handle is used again for another stream once its own is destroyed, and a stream may begin to capture at any time.
 * So nothing that the driver says of a stream is kept from launch to launch; but each is asked only once a launch, and
 * of the default stream, which captures nothing and is never destroyed, nothing is. */
#include "module.h"

void tw_stream_ask_capture(tw_stream_use_t *use) {
  const tw_driver_t *driver = use->driver;
  int status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (!driver->stream_get_capture_info) {
    use->state = TW_STREAM_UNKNOWN;
    return;
  }
  if (driver->stream_get_capture_info(use->handle, &status, &use->capture, &use->graph, NULL, NULL))
    use->state = TW_STREAM_REFUSED;
  else if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
    use->state = TW_STREAM_CAPTURES;
  else if (status != CU_STREAM_CAPTURE_STATUS_NONE)
    use->state = TW_STREAM_REFUSED;
}

bool tw_stream_number(tw_stream_use_t *use) {
  if (!use->has_number)
    use->has_number = use->driver->stream_get_id && !use->driver->stream_get_id(use->handle, &use->number);
  return use->has_number;
}

bool tw_graph_owns(const tw_driver_t *driver) {
  return driver->user_object_create && driver->user_object_release && driver->graph_retain_user_object;
}

bool tw_graph_own(const tw_stream_use_t *use, void *what, void (*let_go)(void *what)) {
  CUuserObject object;
  const tw_driver_t *driver = use->driver;
  if (!tw_graph_owns(driver) ||
      driver->user_object_create(&object, what, let_go, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)) {
    let_go(what);
    return false;
  }
  if (!driver->graph_retain_user_object(use->graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE))
    return true;
  driver->user_object_release(object, 1); /* which lets go of it */
  return false;
}
