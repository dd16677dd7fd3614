/* dispatch.h - compiled variants of a kernel, shared by variant.c and dispatch.c */
#ifndef TILEWRIGHT_PYTHON_DISPATCH_H
#define TILEWRIGHT_PYTHON_DISPATCH_H

#include "launch.h"

/* CpuKernel and CudaKernel: one compiled variant. Exactly one of cpu.entry and cuda is set. */
typedef struct tw_variant {
  PyObject_HEAD PyObject *owner; /* owned or NULL: keeps the code of a CPU kernel alive */
  PyObject *name;                /* owned str */
  tw_cpu_kernel_t cpu;
  tw_cuda_kernel_t *cuda; /* owned */
  uint64_t written;       /* bit i: the kernel writes to argument i */
  unsigned num_threads, shared_bytes;
} tw_variant_t;

/* "sm_90a" of a compute capability: from 9.0 on there are features that only the exact chip has. */
PyObject *tw_ext_target_name(int major, int minor);

extern PyTypeObject *tw_cpu_variant_type, *tw_cuda_variant_type;

#endif
