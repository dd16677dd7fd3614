/* target.c - the table of chips. See target.h. */
#include "lowering/gpu/machine/target.h"

#include "lowering/gpu/machine/budget.h"
#include "lowering/ir.h"
#include "lowering/launch_record.h"

#include <stdio.h>

enum {
  AMPERE = TW_GPU_CP_ASYNC | TW_GPU_LDMATRIX | TW_GPU_MMA_F16 | TW_GPU_MMA_TF32 | TW_GPU_MMA_INT8 | TW_GPU_MMA_F64,
  ADA = AMPERE | TW_GPU_MMA_FP8 | TW_GPU_CVT_FP8,
  HOPPER = ADA | TW_GPU_MMA_F64_WIDE | TW_GPU_STMATRIX | TW_GPU_TMA | TW_GPU_DEPENDENT_LAUNCH | TW_GPU_CLUSTERS |
           TW_GPU_VECTOR_RED | TW_GPU_CVT_TF32_EVEN,
  KIB = 1024
};

typedef struct {
  int number;
  const char *name;
  uint32_t features, accelerated;
  tw_machine_t machine;
} row_t;

static const row_t rows[] = {
#define DATASHEET(figure) (figure)
#define MEASURED(figure) (figure)
#define GUESS(figure) (figure)
#define TW_TARGET(number, name, features, accelerated, ...) {number, name, features, accelerated, {__VA_ARGS__}},
#include "tilewright/targets.def"
#undef TW_TARGET
#undef GUESS
#undef MEASURED
#undef DATASHEET
};

static tw_gpu_target_t target_of_row(const row_t *row) {
  const tw_machine_t *m = &row->machine;
  return (tw_gpu_target_t){
      row->name, row->features, row->accelerated, m->shared_bytes, m->shared_bytes_sm, m->registers_sm, m};
}

/* What LLVM writes PTX for, a row of the table or between two; and the version of PTX that has it and what its row has
 * (8.4: products of 8-bit floats), times ten. */
typedef struct {
  int number, ptx;
} known_target_t;
static const known_target_t known[] = {{80, 80},  {86, 80},  {87, 80},  {88, 90},  {89, 84},  {90, 84},
                                       {100, 86}, {101, 86}, {103, 88}, {110, 90}, {120, 87}, {121, 88}};
enum { FIRST_ACCELERATED = 90, FIRST_OF_FAMILY = 100, PTX_OF_FAMILIES = 88 };

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

static const known_target_t *find_known(int number) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (known[i].number == number)
      return &known[i];
  return NULL;
}

int tw_gpu_ptx_version(MlirStringRef name) {
  int number = 0;
  bool accelerated, of_family = read_name(name, &number, &accelerated) && name.data[name.length - 1] == 'f';
  const known_target_t *chip = find_known(number);
  int version = chip ? chip->ptx : known[0].ptx;
  return of_family && version < PTX_OF_FAMILIES ? PTX_OF_FAMILIES : version;
}

bool tw_gpu_target_refused(MlirStringRef name, size_t size, char *out) {
  int number = 0;
  bool accelerated = false, read = read_name(name, &number, &accelerated);
  char suffix = read ? name.data[name.length - 1] : 0;
  if (read && find_known(number) && (suffix != 'a' || number >= FIRST_ACCELERATED) &&
      (suffix != 'f' || number >= FIRST_OF_FAMILY))
    return false;
  size_t used = (size_t)snprintf(
      out, size, "%s '%.*s'; there are cpu, cpu:NAME",
      read && number < known[0].number ? "GPUs before sm_80 are not supported, such as the target" : "unknown target",
      (int)name.length, name.data);
  for (size_t i = 0; i < sizeof known / sizeof *known && used < size; i++)
    used += (size_t)snprintf(out + used, size - used, ", sm_%d%s", known[i].number,
                             known[i].number >= FIRST_OF_FAMILY     ? "[a|f]"
                             : known[i].number >= FIRST_ACCELERATED ? "[a]"
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
      *out = target_of_row(&rows[i]);
      found = true;
    }
  if (found && accelerated)
    out->features |= out->accelerated;
  return found;
}

tw_gpu_target_t tw_gpu_target_of(MlirOperation op) {
  tw_gpu_target_t target = target_of_row(&rows[0]);
  MlirOperation module = tw_module_of(op);
  if (!mlirOperationIsNull(module))
    (void)tw_gpu_target_named(tw_attr_string(module, "tile.target"), &target);
  MlirOperation func = tw_function_of(op);
  int64_t spare = mlirOperationIsNull(func) ? 0 : tw_attr_int(func, TW_SPARE_SHARED, 0);
  target.shared_bytes -= spare > 0 && spare < target.shared_bytes ? (int)spare : 0;
  return target;
}

int tw_register_budget(MlirOperation op, tw_register_use_t use) {
  enum { FITTED_FOR = 255 };
  static const int registers[] = {
#define TW_REGISTER_BUDGET(use, registers) [TW_BUDGET_##use] = (registers),
#include "lowering/gpu/machine/budgets.def"
#undef TW_REGISTER_BUDGET
  };
  return registers[use] * tw_gpu_target_of(op).machine->thread_registers / FITTED_FOR;
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
