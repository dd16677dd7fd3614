/* module.h - what module.c and launch.c share about a kernel.  Private to runtime/. */
#ifndef TILEWRIGHT_RUNTIME_MODULE_H
#define TILEWRIGHT_RUNTIME_MODULE_H

#include "driver.h"

#include <stdatomic.h>

enum { TW_MAX_DEVICES = 64 };

/* PTX or cubin, kept for ever, with the module it became on each device. */
typedef struct tw_image {
  struct tw_image *next; /* owned */
  tw_key_t key;
  size_t size;
  CUmodule modules[TW_MAX_DEVICES]; /* owned */
  char bytes[];                     /* terminated */
} tw_image_t;

struct tw_cuda_kernel {
  tw_image_t *image; /* borrowed, lives for ever */
  const char *name;  /* borrowed, lives for ever */
  unsigned num_threads, shared_bytes, flags;
  _Atomic(CUfunction) functions[TW_MAX_DEVICES]; /* NULL: not loaded on that device yet */
  uint32_t resident[TW_MAX_DEVICES];             /* blocks that run at a time; known once the kernel is loaded */
};

#endif
