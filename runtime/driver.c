/* driver.c - opens libcuda when it is first needed and keeps its table of entry points.
 *
 * The package must import and work on a machine without a driver, so nothing links against it.
 * Opening happens once per process; the outcome, good or bad, is kept. */
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

tw_driver_t tw_driver_table;

static struct {
  pthread_mutex_t lock;
  bool tried;
  tw_code_t code;
  char *problem; /* owned, kept: why there is no driver */
  pid_t owner;   /* CUDA does not survive fork */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What to do about a result, or "". */
static const char *advice(CUresult result) {
  switch (result) {
  case CUDA_ERROR_NO_DEVICE:
    return ": the driver is there but no GPU is visible; check CUDA_VISIBLE_DEVICES and nvidia-smi, "
           "or pass NumPy arrays to run on the CPU";
  case CUDA_ERROR_NOT_INITIALIZED:
    return ": CUDA does not survive fork(); start worker processes with the \"spawn\" method";
  case CUDA_ERROR_STUB_LIBRARY:
    return ": the libcuda.so.1 that was found is the toolkit's stub; remove its folder from "
           "LD_LIBRARY_PATH";
  case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    return ": kernel module and libcuda differ in version; reboot after a driver update";
  case CUDA_ERROR_UNKNOWN: return ": the GPU or its kernel module is not in order; see `nvidia-smi` and `dmesg`";
  case CUDA_ERROR_OUT_OF_MEMORY: return ": free arrays that are no longer needed, or use smaller ones";
  default: return "";
  }
}

tw_status_t tw_driver_error(const tw_driver_t *driver, tw_code_t code, CUresult result, const char *what) {
  const char *name = NULL, *text = NULL;
  driver->get_error_name(result, &name);
  driver->get_error_string(result, &text);
  return TW_ERROR(code, "%s failed: %s (%d)%s%s%s", what, name ? name : "CUDA error", result, text ? ", " : "",
                  text ? text : "", advice(result));
}

/* Finds one entry; a missing required one tells which driver would have it. */
static tw_status_t find_entry(void *library, const char *symbol, int version, bool required, const tw_driver_t *driver,
                              void **out_entry) {
  *out_entry = dlsym(library, symbol);
  if (*out_entry || !required)
    return NULL;
  int have = 0;
  if (driver->driver_get_version)
    driver->driver_get_version(&have);
  return TW_ERROR(TW_DRIVER_ERROR,
                  "the CUDA driver is too old: it has no %s, which came with CUDA %d.%d, and "
                  "supports CUDA %d.%d; install a newer NVIDIA driver",
                  symbol, version / 1000, version % 1000 / 10, have / 1000, have % 1000 / 10);
}

#define REQUIRED true
#define OPTIONAL false

static tw_status_t load_entries(void *library, tw_driver_t *driver) {
  /* POSIX lets a function pointer be written through a void pointer. */
#define ENTRY(member, symbol, parameters, version, need)                                                               \
  TW_RETURN_IF_ERROR(find_entry(library, symbol, version, need, driver, (void **)&driver->member));
#include "driver.def"
#undef ENTRY
  return NULL;
}

static tw_status_t open_driver(void) {
  const char *path = getenv("TILEWRIGHT_CUDA_DRIVER");
  if (!path || !*path)
    path = "libcuda.so.1";
  /* NOLINTNEXTLINE(clang-analyzer-optin.taint.GenericTaint): the user names a file to load into the user's process */
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return TW_ERROR(TW_DRIVER_ERROR,
                    "no CUDA driver: %s could not be opened (%s); install the NVIDIA driver (in a "
                    "container, start it with GPU access), or pass NumPy arrays to run on the CPU",
                    path, why ? why : "unknown reason");
  }
  tw_driver_t *driver = &tw_driver_table;
  TW_RETURN_IF_ERROR(load_entries(library, driver));
  CUresult result = driver->init(0);
  if (result)
    return tw_driver_error(driver, TW_DRIVER_ERROR, result, "initializing the CUDA driver");
  driver->driver_get_version(&driver->version);
  return NULL;
}

tw_status_t tw_driver_get(const tw_driver_t **out_driver) {
  *out_driver = NULL;
  pthread_mutex_lock(&state.lock);
  if (!state.tried) {
    state.tried = true;
    tw_status_t status = open_driver();
    if (status) {
      state.code = tw_status_code(status);
      state.problem = strdup(tw_status_message(status));
      tw_status_free(status);
    }
    state.owner = getpid();
  }
  bool forked = state.code == TW_OK && state.owner != getpid();
  pthread_mutex_unlock(&state.lock);
  if (state.code != TW_OK)
    return TW_ERROR(state.code, "%s", state.problem ? state.problem : "no CUDA driver");
  if (forked)
    return TW_ERROR(TW_DRIVER_ERROR, "CUDA was initialized before this process was forked%s",
                    advice(CUDA_ERROR_NOT_INITIALIZED));
  *out_driver = &tw_driver_table;
  return NULL;
}

tw_status_t tw_driver_open(void) {
  const tw_driver_t *driver;
  return tw_driver_get(&driver);
}

tw_status_t tw_driver_version(int *out_version) {
  *out_version = 0;
  const tw_driver_t *driver;
  TW_RETURN_IF_ERROR(tw_driver_get(&driver));
  *out_version = driver->version;
  return NULL;
}
