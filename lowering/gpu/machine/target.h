/* target.h - what an NVIDIA chip can do, by name of the feature
 *
 * Passes ask `tw_gpu_has(target, TW_GPU_...)`; nothing outside of target.c compares architecture numbers. */
#ifndef TILEWRIGHT_LOWERING_GPU_MACHINE_TARGET_H
#define TILEWRIGHT_LOWERING_GPU_MACHINE_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "tilewright/machine.h"

#include "mlir-c/IR.h"

typedef enum tw_gpu_feature {
  TW_GPU_ANY = 0,               /* what each chip has */
  TW_GPU_CP_ASYNC = 1 << 0,     /* cp.async: global to shared memory without registers */
  TW_GPU_LDMATRIX = 1 << 1,     /* ldmatrix, .trans */
  TW_GPU_MMA_F16 = 1 << 2,      /* mma.sync m16n8k16 of f16 and bf16 */
  TW_GPU_MMA_TF32 = 1 << 3,     /* mma.sync m16n8k8 of tf32 */
  TW_GPU_MMA_INT8 = 1 << 4,     /* mma.sync m16n8k32 of bytes */
  TW_GPU_MMA_F64 = 1 << 5,      /* mma.sync m8n8k4 of f64 */
  TW_GPU_MMA_F64_WIDE = 1 << 6, /* mma.sync m16n8k8 of f64 */
  TW_GPU_MMA_FP8 = 1 << 7,      /* mma.sync m16n8k32 of f8E4M3FN and f8E5M2 */
  TW_GPU_CVT_FP8 = 1 << 8,      /* conversions between f16 and the 8-bit floats */
  TW_GPU_STMATRIX = 1 << 10,
  TW_GPU_TMA = 1 << 11,     /* bulk tensor copies, mbarrier with transaction bytes */
  TW_GPU_WGMMA = 1 << 12,   /* needs the "a" variant of sm_90 */
  TW_GPU_TCGEN05 = 1 << 13, /* needs the "a" variant of sm_100 */
  TW_GPU_MMA_BLOCK_SCALE = 1 << 14,
  TW_GPU_DEPENDENT_LAUNCH = 1 << 15, /* griddepcontrol: a kernel waits for its predecessor itself */
  TW_GPU_CLUSTERS = 1 << 16,         /* blocks that see each other's shared memory */
  TW_GPU_VECTOR_RED = 1 << 17,       /* red of several floats at once, atom and red of bf16 */
  TW_GPU_CVT_TF32_EVEN = 1 << 18,    /* cvt.rn.tf32: ties to even, as all other conversions round them */
} tw_gpu_feature_t;

typedef struct tw_gpu_target {
  const char *name;     /* "sm_90" */
  uint32_t features;    /* of the chip without suffix */
  uint32_t accelerated; /* more features with the suffix "a" */
  /* What a block and a multiprocessor may have; less than the chip has where a module asks for it. */
  int shared_bytes, shared_bytes_sm, registers_sm;
  const tw_machine_t *machine;
} tw_gpu_target_t;

/* The chip of `tile.target` ("sm_90a"), with the features of its suffix merged in. An unknown chip
 * gets the row of the newest older one; false when the name is not of the form sm_NN or too old. */
bool tw_gpu_target_named(MlirStringRef name, tw_gpu_target_t *out);
/* Whether it is none that code can be made for; then `out` says so, and what there is. */
bool tw_gpu_target_refused(MlirStringRef name, size_t size, char *out);
/* The version of PTX that such a target takes, times ten. */
int tw_gpu_ptx_version(MlirStringRef name);
/* On a kernel: bytes of shared memory that passes plan without, where all of it was not enough (tile-plan-block). */
#define TW_SPARE_SHARED "tile.spare_shared"
/* The target of the module around `op`; sm_80 where it names none. A block has as many bytes less as the kernel
 * around `op` has of TW_SPARE_SHARED. */
tw_gpu_target_t tw_gpu_target_of(MlirOperation op);

/* The same with the shared memory and registers that a block should take where the kernel has the hint occupancy, the
 * blocks that a multiprocessor shall hold: for what can do with less, not for what must fit. */
tw_gpu_target_t tw_gpu_share_of(MlirOperation op);
/* What the driver keeps of shared memory for each block. */
enum { TW_SHARED_BYTES_OF_DRIVER = 1024 };

static inline bool tw_gpu_has(const tw_gpu_target_t *target, tw_gpu_feature_t feature) {
  return (target->features & (uint32_t)feature) != 0;
}

#endif /* TILEWRIGHT_LOWERING_GPU_MACHINE_TARGET_H */
