/* image.c - PTX and cubins: who holds them, and their module on each device
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

enum { MOST_UNHELD = 8 /* images that nobody holds, and that some device has loaded */ };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards images and their modules */
static tw_image_t *images;

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

/* The context is current. */
static CUresult unload(const tw_driver_t *driver, tw_image_t *image, int ordinal) {
  CUlibrary library = image->libraries[ordinal];
  CUresult result = library ? driver->library_unload(library) : driver->module_unload(image->modules[ordinal]);
  if (result)
    return result;
  image->libraries[ordinal] = NULL;
  image->modules[ordinal] = NULL;
  return 0;
}

/* The lock is held, the context is current. Unloads images that nobody holds, once there are several. */
static void unload_unheld(const tw_driver_t *driver, int ordinal) {
  int count = 0;
  for (const tw_image_t *image = images; image; image = image->next)
    count += !is_held(image) && is_loaded(image, ordinal);
  if (count < MOST_UNHELD || driver->ctx_synchronize())
    return;
  for (tw_image_t *image = images; image; image = image->next)
    if (!is_held(image) && is_loaded(image, ordinal))
      unload(driver, image, ordinal);
  free_unheld();
}

/* The context is current. The driver compiles PTX for several libraries at a time, and for one module: it has the
 * context to itself meanwhile. */
static CUresult load(const tw_driver_t *driver, const tw_image_t *image, tw_jit_log_t *log, CUlibrary *out_library,
                     CUmodule *out_module) {
  if (!driver->library_load_data || driver->version < 12000)
    return driver->module_load_data(out_module, image->bytes, log->count, log->options, log->values);
  CUresult result =
      driver->library_load_data(out_library, image->bytes, log->options, log->values, log->count, NULL, NULL, 0);
  if (result)
    return result;
  result = driver->library_get_module(out_module, *out_library);
  if (result)
    driver->library_unload(*out_library);
  return result;
}

/* The context is current. */
static tw_status_t load_module(const tw_driver_t *driver, const tw_device_t *device, const tw_image_t *image,
                               CUlibrary *out_library, CUmodule *out_module) {
  tw_jit_log_t *log = malloc(sizeof *log);
  if (!log)
    return TW_ERROR(TW_OUT_OF_MEMORY, "out of host memory");
  tw_jit_log_prepare(log, image->bytes, image->size);
  CUresult result = load(driver, image, log, out_library, out_module);
  tw_status_t status = NULL;
  if (tw_result_is_fault(result))
    status = tw_fault_error(driver, device->ordinal, result, "loading the kernel");
  else if (result)
    status = tw_jit_error(driver, result, device, image->bytes, image->size, log->error);
  free(log);
  return status;
}

tw_status_t tw_image_load(const tw_driver_t *driver, const tw_device_t *device, tw_image_t *image,
                          CUmodule *out_module) {
  static pthread_cond_t loaded = PTHREAD_COND_INITIALIZER;
  tw_status_t status = NULL;
  pthread_mutex_lock(&lock);
  while (image->is_loading)
    pthread_cond_wait(&loaded, &lock);
  if (!is_loaded(image, device->ordinal)) {
    unload_unheld(driver, device->ordinal);
    image->is_loading = true;
    pthread_mutex_unlock(&lock); /* others load meanwhile; the caller holds the image */
    CUlibrary library = NULL;
    CUmodule module = NULL;
    status = load_module(driver, device, image, &library, &module);
    pthread_mutex_lock(&lock);
    image->is_loading = false;
    if (!status) {
      image->libraries[device->ordinal] = library;
      image->modules[device->ordinal] = module;
    }
    pthread_cond_broadcast(&loaded);
  }
  *out_module = image->modules[device->ordinal];
  pthread_mutex_unlock(&lock);
  return status;
}
