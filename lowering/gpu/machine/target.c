/* target.c - the table of chips. See target.h. */
#include "lowering/gpu/machine/target.h"

#include "lowering/ir.h"
#include "lowering/launch_record.h"

#include <stdio.h>

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

/* What LLVM writes PTX for, a row of the table or between two. */
static const int known[] = {80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121};
enum { FIRST_ACCELERATED = 90, FIRST_OF_FAMILY = 100 };

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

static bool is_known(int number) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (known[i] == number)
      return true;
  return false;
}

bool tw_gpu_target_refused(MlirStringRef name, size_t size, char *out) {
  int number = 0;
  bool accelerated = false, read = read_name(name, &number, &accelerated);
  char suffix = read ? name.data[name.length - 1] : 0;
  if (read && is_known(number) && (suffix != 'a' || number >= FIRST_ACCELERATED) &&
      (suffix != 'f' || number >= FIRST_OF_FAMILY))
    return false;
  size_t used = (size_t)snprintf(out, size, "%s '%.*s'; there are cpu, cpu:NAME",
                                 read && number < known[0] ? "GPUs before sm_80 are not supported, such as the target"
                                                           : "unknown target",
                                 (int)name.length, name.data);
  for (size_t i = 0; i < sizeof known / sizeof *known && used < size; i++)
    used += (size_t)snprintf(out + used, size - used, ", sm_%d%s", known[i],
                             known[i] >= FIRST_OF_FAMILY     ? "[a|f]"
                             : known[i] >= FIRST_ACCELERATED ? "[a]"
                                                             : "");
  return true;
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
  MlirOperation func = tw_function_of(op);
  int64_t spare = mlirOperationIsNull(func) ? 0 : tw_attr_int(func, TW_SPARE_SHARED, 0);
  target.shared_bytes -= spare > 0 && spare < target.shared_bytes ? (int)spare : 0;
  return target;
}

tw_gpu_target_t tw_gpu_share_of(MlirOperation op) {
  tw_gpu_target_t target = tw_gpu_target_of(op);
  int blocks = (int)tw_hint_occupancy(op, 0);
  if (blocks == 0)
    return target;
  int share = target.shared_bytes_sm / blocks - TW_SHARED_BYTES_OF_DRIVER;
  target.shared_bytes = share < target.shared_bytes ? share : target.shared_bytes;
  target.registers_sm /= blocks;
  return target;
}
