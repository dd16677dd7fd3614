/* target.c - the table of chips. See target.h. */
#include "lowering/gpu/machine/target.h"

#include "lowering/ir.h"

enum {
  AMPERE = TW_GPU_CP_ASYNC | TW_GPU_LDMATRIX | TW_GPU_MMA_F16 | TW_GPU_MMA_TF32 | TW_GPU_MMA_INT8 | TW_GPU_MMA_F64,
  ADA = AMPERE | TW_GPU_MMA_FP8 | TW_GPU_CVT_FP8,
  HOPPER = ADA | TW_GPU_MMA_F64_WIDE | TW_GPU_BF16_ARITH | TW_GPU_STMATRIX | TW_GPU_TMA | TW_GPU_DEPENDENT_LAUNCH |
           TW_GPU_CLUSTERS,
  REGISTERS = 64 * 1024,
  KIB = 1024
};

typedef struct {
  int number;
  tw_gpu_target_t target;
} row_t;

/* Ascending. A block may have 1 KiB less than the multiprocessor, which the driver keeps for itself. */
static const row_t rows[] = {
    {80, {"sm_80", AMPERE, 0, 163 * KIB, 164 * KIB, REGISTERS, 108}},
    {86, {"sm_86", AMPERE, 0, 99 * KIB, 100 * KIB, REGISTERS, 84}},
    {87, {"sm_87", AMPERE, 0, 163 * KIB, 164 * KIB, REGISTERS, 16}},
    {89, {"sm_89", ADA, 0, 99 * KIB, 100 * KIB, REGISTERS, 142}},
    {90, {"sm_90", HOPPER, TW_GPU_WGMMA, 227 * KIB, 228 * KIB, REGISTERS, 132}},
    {100, {"sm_100", HOPPER, TW_GPU_TCGEN05, 227 * KIB, 228 * KIB, REGISTERS, 148}},
    {120, {"sm_120", HOPPER, TW_GPU_MMA_BLOCK_SCALE, 99 * KIB, 100 * KIB, REGISTERS, 188}},
};

/* "sm_90a": 90 and true. */
static bool read_name(MlirStringRef name, int *number, bool *accelerated) {
  if (name.length < 4 || name.data[0] != 's' || name.data[1] != 'm' || name.data[2] != '_')
    return false;
  size_t i = 3;
  *number = 0;
  for (; i < name.length && i < 6 && name.data[i] >= '0' && name.data[i] <= '9'; i++)
    *number = *number * 10 + (name.data[i] - '0');
  *accelerated = i < name.length && name.data[i] == 'a';
  return i + *accelerated == name.length || (i + 1 == name.length && name.data[i] == 'f');
}

bool tw_gpu_target_named(MlirStringRef name, tw_gpu_target_t *out) {
  int number;
  bool accelerated, found = false;
  if (!read_name(name, &number, &accelerated))
    return false;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].number <= number) {
      *out = rows[i].target;
      found = true;
    }
  if (found && accelerated)
    out->features |= out->accelerated;
  return found;
}

tw_gpu_target_t tw_gpu_target_of(MlirOperation op) {
  tw_gpu_target_t target = rows[0].target;
  MlirOperation module = tw_module_of(op);
  if (!mlirOperationIsNull(module))
    (void)tw_gpu_target_named(tw_attr_string(module, "tile.target"), &target);
  return target;
}

tw_gpu_target_t tw_gpu_share_of(MlirOperation op) {
  tw_gpu_target_t target = tw_gpu_target_of(op);
  int blocks = (int)tw_attr_int(tw_module_of(op), "tile.occupancy", 0);
  if (blocks == 0)
    return target;
  int share = target.shared_bytes_sm / blocks - TW_SHARED_BYTES_OF_DRIVER;
  target.shared_bytes = share < target.shared_bytes ? share : target.shared_bytes;
  target.registers_sm /= blocks;
  return target;
}
