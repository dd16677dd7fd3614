/* jit.c - the driver's compiler and linker: PTX and machine code to one cubin, and what they say */
#define _GNU_SOURCE
#include "module.h"

#include <stdlib.h>
#include <string.h>

/* ---- errors ---------------------------------------------------------------------------------------- */

/* The ISA version that the text asks for, 78 for ".version 7.8"; 0 if it is not PTX. */
static int ptx_version(const char *image, size_t size) {
  const char *word = memmem(image, size < 4096 ? size : 4096, ".version", 8);
  if (!word)
    return 0;
  char *end;
  long major = strtol(word + 8, &end, 10);
  return *end == '.' ? (int)(major * 10 + strtol(end + 1, NULL, 10)) : 0;
}

/* The first CUDA release that takes a PTX version, as 1000 * major + 10 * minor. */
static int cuda_for_ptx(int ptx) {
  if (ptx >= 90)
    return 13000 + (ptx - 90) * 10;
  if (ptx >= 86) /* 12.6 brought no new PTX */
    return 12000 + (ptx - 79) * 10;
  if (ptx >= 80)
    return 12000 + (ptx - 80) * 10;
  return 11000 + (ptx - 70) * 10;
}

tw_status_t tw_jit_error(const tw_driver_t *driver, CUresult result, const tw_device_t *device, const char *image,
                         size_t size, const char *log) {
  if (result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION) {
    int ptx = ptx_version(image, size), cuda = cuda_for_ptx(ptx);
    return TW_ERROR(TW_DRIVER_ERROR,
                    "the CUDA driver is too old for this kernel: it supports CUDA %d.%d, and PTX "
                    "%d.%d needs CUDA %d.%d; install a newer NVIDIA driver",
                    driver->version / 1000, driver->version % 1000 / 10, ptx / 10, ptx % 10, cuda / 1000,
                    cuda % 1000 / 10);
  }
  if (result == CUDA_ERROR_JIT_COMPILER_NOT_FOUND)
    return TW_ERROR(TW_DRIVER_ERROR, "the CUDA driver has no PTX compiler: libnvidia-ptxjitcompiler.so.1 was not "
                                     "found; reinstall the NVIDIA driver with its compute libraries");
  if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
    return TW_ERROR(TW_DRIVER_ERROR,
                    "the kernel was compiled for another GPU than %s (sm_%d%d); compile it for "
                    "that target%s%s",
                    device->name, device->major, device->minor, *log ? ": " : "", log);
  tw_status_t status = tw_driver_error(driver, TW_COMPILE_ERROR, result, "loading the kernel");
  return *log ? tw_status_prefix(status, "the driver's PTX compiler says:\n%s\n", log) : status;
}

/* ---- options --------------------------------------------------------------------------------------- */

/* The level at which the first line of the text says that it shall be assembled; -1: as the driver likes. */
static int level_of(const char *image, size_t size) {
  static const char line[] = TW_PTX_OPT_LEVEL;
  size_t length = sizeof line - 1;
  bool says = size > length && !memcmp(image, line, length) && image[length] >= '0' && image[length] <= '4';
  return says ? image[length] - '0' : -1;
}

/* Whether the PTX says which lines its instructions come from: the driver drops that unless it is asked to keep it. */
static bool has_lines(const char *image, size_t size) { return size && memmem(image, size, "\t.loc\t", 6) != NULL; }

static void add_option(tw_jit_log_t *log, int option, void *value) {
  log->options[log->count] = option;
  log->values[log->count++] = value;
}

void tw_jit_log_prepare(tw_jit_log_t *log, const char *image, size_t size) {
  int level = level_of(image, size);
  *log->info = *log->error = 0;
  log->count = 0;
  add_option(log, CU_JIT_INFO_LOG_BUFFER, log->info);
  add_option(log, CU_JIT_INFO_LOG_BUFFER_SIZE, (void *)(uintptr_t)TW_JIT_LOG_BYTES);
  add_option(log, CU_JIT_ERROR_LOG_BUFFER, log->error);
  add_option(log, CU_JIT_ERROR_LOG_BUFFER_SIZE, (void *)(uintptr_t)TW_JIT_LOG_BYTES);
  if (level >= 0)
    add_option(log, CU_JIT_OPTIMIZATION_LEVEL, (void *)(uintptr_t)level);
  if (has_lines(image, size))
    add_option(log, CU_JIT_GENERATE_LINE_INFO, (void *)1);
}

/* ---- linking --------------------------------------------------------------------------------------- */

typedef struct magic {
  const char *bytes;
  size_t size;
  int kind;
} magic_t;

/* What a file begins with; machine code of GPUs is ELF, as the host's objects are that may hold some. */
static const magic_t magics[] = {
    {"\x50\xed\x55\xba", 4, CU_JIT_INPUT_FATBINARY},
    {"!<arch>\n", 8, CU_JIT_INPUT_LIBRARY},
    {"\x7f"
     "ELF",
     4, CU_JIT_INPUT_OBJECT},
};

enum { ELF_MACHINE = 18, ELF_MACHINE_CUDA = 190, ELF_HEADER = 64 };

/* A CUjitInputType, by what is in the part; -1: nothing that the linker takes. */
static int kind_of(const tw_link_part_t *part) {
  const unsigned char *bytes = part->bytes;
  for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
    if (part->size >= magics[i].size && !memcmp(bytes, magics[i].bytes, magics[i].size)) {
      bool cubin = magics[i].kind == CU_JIT_INPUT_OBJECT && part->size >= ELF_HEADER &&
                   (bytes[ELF_MACHINE] | bytes[ELF_MACHINE + 1] << 8) == ELF_MACHINE_CUDA;
      return cubin ? CU_JIT_INPUT_CUBIN : magics[i].kind;
    }
  return memmem(bytes, part->size, ".version", 8) ? CU_JIT_INPUT_PTX : -1;
}

static tw_status_t add_part(const tw_driver_t *driver, const tw_device_t *device, CUlinkState linker,
                            const tw_link_part_t *part, const tw_jit_log_t *log) {
  int kind = kind_of(part);
  if (kind < 0)
    return TW_ERROR(TW_VALUE_ERROR,
                    "%s cannot be linked: it is neither PTX nor a cubin, an object, a fatbin or an archive of these",
                    part->name);
  size_t size = part->size + (kind == CU_JIT_INPUT_PTX); /* with the byte that ends the text */
  CUresult result =
      driver->link_add_data(linker, kind, (void *)(uintptr_t)part->bytes, size, part->name, 0, NULL, NULL);
  if (!result)
    return NULL;
  return tw_status_prefix(tw_jit_error(driver, result, device, part->bytes, part->size, log->error),
                          "%s: ", part->name);
}

static tw_status_t copy_image(const void *image, size_t size, void **out_cubin, size_t *out_size) {
  *out_cubin = malloc(size ? size : 1);
  if (!*out_cubin)
    return TW_ERROR(TW_OUT_OF_MEMORY, "out of host memory for a cubin of %zu bytes", size);
  if (image)
    memcpy(*out_cubin, image, size);
  *out_size = size;
  return NULL;
}

/* The link API is the driver's only way to hand out machine code. The context is current. */
static tw_status_t link_parts(const tw_driver_t *driver, const tw_device_t *device, const tw_link_part_t *parts,
                              size_t count, tw_jit_log_t *log, void **out_cubin, size_t *out_size) {
  CUlinkState linker = NULL;
  tw_jit_log_prepare(log, parts->bytes, parts->size);
  CUresult result = driver->link_create(log->count, log->options, log->values, &linker);
  if (result)
    return tw_driver_error(driver, TW_DRIVER_ERROR, result, "starting the PTX compiler");
  tw_status_t status = NULL;
  for (size_t i = 0; i < count && !status; i++)
    status = add_part(driver, device, linker, &parts[i], log);
  void *image = NULL; /* dies with the linker */
  size_t size = 0;
  if (!status && (result = driver->link_complete(linker, &image, &size)))
    status = tw_jit_error(driver, result, device, parts->bytes, parts->size, log->error);
  if (!status)
    status = copy_image(image, size, out_cubin, out_size);
  driver->link_destroy(linker);
  return status;
}

tw_status_t tw_cubin_link(const tw_link_part_t *parts, size_t count, int ordinal, void **out_cubin, size_t *out_size,
                          char **out_log) {
  *out_cubin = NULL;
  *out_size = 0;
  if (out_log)
    *out_log = NULL;
  const tw_device_t *device;
  TW_RETURN_IF_ERROR(tw_device_get(ordinal, &device));
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_device_enter(ordinal, &scope));
  tw_jit_log_t *log = malloc(sizeof *log);
  tw_status_t status = log ? link_parts(scope.driver, device, parts, count, log, out_cubin, out_size)
                           : TW_ERROR(TW_OUT_OF_MEMORY, "out of host memory");
  if (!status && out_log)
    *out_log = strdup(log->info);
  free(log);
  tw_context_leave(&scope);
  return status;
}
