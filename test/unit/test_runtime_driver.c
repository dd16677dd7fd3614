/* test_runtime_driver.c - devices, modules, launches and their failures, against the stand-in driver
 *
 * The driver is opened once a process, so each case runs in a child of its own. */
#define _GNU_SOURCE
#include "tilewright/runtime.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char ptx[] = ".version 7.8\n.target sm_90a\n.visible .entry add()\n.entry fault_here()\n";

static void (*fake_reset)(int);
static void (*fake_fail)(const char *, int, int);
static int (*fake_calls)(const char *);
static const char *(*fake_log)(void);
static void (*fake_during_launch)(void (*)(void));

/* Opens the same library that the runtime opens. */
static void attach(void) {
  void *library = dlopen(getenv("TILEWRIGHT_CUDA_DRIVER"), RTLD_NOW | RTLD_LOCAL);
  assert(library);
  *(void **)&fake_reset = dlsym(library, "fake_reset");
  *(void **)&fake_fail = dlsym(library, "fake_fail");
  *(void **)&fake_calls = dlsym(library, "fake_calls");
  *(void **)&fake_log = dlsym(library, "fake_log");
  *(void **)&fake_during_launch = dlsym(library, "fake_during_launch");
}

static void expect(tw_status_t status, tw_code_t code, const char *part) {
  if (!status || tw_status_code(status) != code || !strstr(tw_status_message(status), part)) {
    fprintf(stderr, "expected \"%s\" (code %d), found code %d, \"%s\"\n", part, code, tw_status_code(status),
            tw_status_message(status));
    abort();
  }
  tw_status_free(status);
}

static void good(tw_status_t status) {
  if (status)
    fprintf(stderr, "%s\n", tw_status_message(status));
  assert(!status);
}

static tw_cuda_kernel_t *make(const char *image, const char *name, unsigned shared) {
  tw_cuda_kernel_t *kernel;
  const tw_launch_record_t record = {.num_threads = 128, .shared_bytes = shared};
  good(tw_cuda_kernel_create(image, strlen(image), name, &record, &kernel));
  return kernel;
}

static tw_status_t launch(tw_cuda_kernel_t *kernel, int device, void *stream) {
  uint64_t words[2 + TW_GRID_WORDS] = {1, 2};
  return tw_cuda_launch(kernel, device, stream, (uint32_t[3]){2, 1, 1}, NULL, words, 2);
}

static void case_no_driver(void) {
  setenv("TILEWRIGHT_CUDA_DRIVER", "/no/such/libcuda.so", 1);
  expect(tw_driver_open(), TW_DRIVER_ERROR, "no CUDA driver");
  expect(tw_driver_open(), TW_DRIVER_ERROR, "install the NVIDIA driver");
  int count;
  expect(tw_device_count(&count), TW_DRIVER_ERROR, "pass NumPy arrays");
}

static void case_not_a_driver(void) {
  setenv("TILEWRIGHT_CUDA_DRIVER", "libc.so.6", 1);
  expect(tw_driver_open(), TW_DRIVER_ERROR, "too old: it has no cuGetErrorName");
}

static void case_no_device(void) {
  setenv("FAKECUDA_DEVICES", "0", 1);
  expect(tw_driver_open(), TW_DRIVER_ERROR, "CUDA_VISIBLE_DEVICES");
}

static void case_devices(void) {
  int count, version;
  good(tw_device_count(&count));
  good(tw_driver_version(&version));
  assert(count == 2 && version == 12040);
  const tw_device_t *device, *again;
  good(tw_device_get(1, &device));
  good(tw_device_get(1, &again));
  assert(device == again && device->major == 9 && device->sm_count == 132);
  assert(!strcmp(device->name, "Fake GPU 1"));
  expect(tw_device_get(2, &device), TW_DRIVER_ERROR, "there is no CUDA device 2");
  expect(tw_device_get(-1, &device), TW_DRIVER_ERROR, "there is no CUDA device -1");
  assert(!device);
}

static void *launch_in_thread(void *kernel) { /* a new thread has no context */
  for (int i = 0; i < 200; i++) {
    good(launch(kernel, i & 1, NULL));
    good(launch(kernel, i & 1, (void *)(uintptr_t)(0x5010 + 0x100 * (i & 1))));
  }
  return NULL;
}

static void case_launch_everywhere(void) {
  attach();
  tw_cuda_kernel_t *kernel = make(ptx, "add", 0), *same = make(ptx, "add", 0);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    assert(!pthread_create(&threads[i], NULL, launch_in_thread, i & 1 ? kernel : same));
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], NULL);
  assert(fake_calls("cuLibraryLoadData") == 2); /* one for each device, shared by both kernels */
  assert(fake_calls("cuLaunchKernelEx") == 1600);
  assert(fake_calls("cuCtxPushCurrent_v2") == fake_calls("cuCtxPopCurrent_v2"));
  tw_cuda_usage_t usage;
  good(tw_cuda_kernel_usage(kernel, 0, &usage));
  assert(usage.registers == 32);
  tw_cuda_kernel_destroy(kernel);
  tw_cuda_kernel_destroy(same);
}

static void case_old_driver(void) {
  tw_cuda_kernel_t *kernel = make(".version 8.7\n.entry add()", "add", 0);
  expect(launch(kernel, 0, NULL), TW_DRIVER_ERROR,
         "it supports CUDA 12.4, and PTX 8.7 needs CUDA 12.8; install a newer NVIDIA driver");
  expect(launch(make(".version 9.0\n.entry add()", "add", 0), 0, NULL), TW_DRIVER_ERROR, "PTX 9.0 needs CUDA 13.0");
}

static void case_bad_ptx(void) {
  expect(launch(make("syntax error .entry add()", "add", 0), 0, NULL), TW_COMPILE_ERROR,
         "kernel.ptx, line 3; fatal : syntax error");
  expect(launch(make(ptx, "sub", 0), 0, NULL), TW_INTERNAL_ERROR, "kernel sub: ");
  void *cubin;
  size_t size;
  char *log;
  const tw_link_part_t bad = {"bad.ptx", ".version 7.8 syntax error", 25}, one = {"one.ptx", ptx, sizeof ptx - 1};
  expect(tw_cubin_link(&bad, 1, 0, &cubin, &size, &log), TW_COMPILE_ERROR, "bad.ptx: the driver's PTX compiler says:");
  good(tw_cubin_link(&one, 1, 1, &cubin, &size, &log));
  assert(!strncmp(cubin, "CUBIN", 5) && size == strlen(cubin) + 1);
  tw_cuda_kernel_t *kernel;
  const tw_launch_record_t record = {.num_threads = 128};
  good(tw_cuda_kernel_create(cubin, size, "add", &record, &kernel));
  free(cubin);
  free(log);
  good(launch(kernel, 1, NULL));
}

/* Each part goes to the driver as what its bytes say that it is. */
static void case_linking(void) {
  char cubin_bytes[65] = "\x7f"
                         "ELF",
       object_bytes[65] = "\x7f"
                          "ELF";
  cubin_bytes[18] = (char)190;
  const tw_link_part_t parts[] = {
      {"a.ptx", ptx, sizeof ptx - 1}, {"b.cubin", cubin_bytes, 64}, {"c.fatbin", "\x50\xed\x55\xba", 4},
      {"d.o", object_bytes, 64},      {"e.a", "!<arch>\n", 8},      {"f", "hello", 5}};
  void *cubin;
  size_t size;
  attach();
  good(tw_cubin_link(parts, 5, 0, &cubin, &size, NULL));
  assert(strstr(fake_log(), "link 1 a.ptx\nlink 0 b.cubin\nlink 2 c.fatbin\nlink 3 d.o\nlink 4 e.a\n"));
  free(cubin);
  expect(tw_cubin_link(parts, 6, 0, &cubin, &size, NULL), TW_VALUE_ERROR, "f cannot be linked: it is neither PTX nor");
  const char *calls = ".version 7.8\n// undefined bar";
  const tw_link_part_t part = {"calls.ptx", calls, strlen(calls)};
  expect(tw_cubin_link(&part, 1, 0, &cubin, &size, NULL), TW_COMPILE_ERROR, "Undefined reference to 'bar'");
  assert(fake_calls("cuLinkCreate_v2") == fake_calls("cuLinkDestroy"));
  fake_fail("cuLinkCreate_v2", 1, 2);
  expect(tw_cubin_link(parts, 1, 0, &cubin, &size, NULL), TW_DRIVER_ERROR, "starting the PTX compiler");
}

static void case_balanced_grid(void) {
  assert(tw_grid_balance(1, 132) == 1 && tw_grid_balance(132, 132) == 132);
  assert(tw_grid_balance(133, 132) == 67);  /* two turns, of 67 and 66 */
  assert(tw_grid_balance(512, 132) == 128); /* four, without a rest */
  assert(tw_grid_balance(1 << 30, 132) == 132);
  for (uint64_t blocks = 1; blocks < 1000; blocks++) {
    uint32_t started = tw_grid_balance(blocks, 37);
    assert(started <= 37 && (blocks + started - 1) / started == (blocks + 36) / 37);
  }
}

static void case_shared_memory(void) {
  good(launch(make(ptx, "add", 200 << 10), 0, NULL));
  expect(launch(make(ptx, "add", 300 << 10), 0, NULL), TW_LAUNCH_ERROR,
         "kernel add needs 307200 bytes of shared memory per block, Fake GPU 0 has 232448");
}

static void case_out_of_memory(void) {
  attach();
  tw_cuda_kernel_t *kernel = make(ptx, "add", 0);
  good(launch(kernel, 0, NULL));
  fake_fail("cuLaunchKernelEx", 1, 2);
  expect(launch(kernel, 0, NULL), TW_LAUNCH_ERROR,
         "kernel add, grid (2, 1, 1), 128 threads, 0 bytes of shared memory: the launch failed: "
         "CUDA_ERROR_OUT_OF_MEMORY (2)");
  good(launch(kernel, 0, NULL));
}

static void case_too_many_registers(void) {
  attach();
  tw_cuda_kernel_t *kernel;
  const tw_launch_record_t record = {0}; /* of threads: the launch decides on the block */
  uint64_t words[2 + TW_GRID_WORDS] = {1, 2};
  good(tw_cuda_kernel_create(ptx, sizeof ptx, "add", &record, &kernel));
  const uint32_t grid[] = {2, 1, 1}, block[] = {512, 2, 1, 0};
  good(tw_cuda_launch(kernel, 0, NULL, grid, block, words, 2));
  fake_fail("cuLaunchKernelEx", 1, 701);
  expect(tw_cuda_launch(kernel, 0, NULL, grid, block, words, 2), TW_LAUNCH_ERROR,
         "kernel add: block=(512, 2, 1) has 1024 threads of 32 registers each, CUDA device 0 runs 1024 such threads "
         "in a block; launch fewer, or bound its registers, in numba by @cuda.jit(launch_bounds=1024)");
  good(tw_cuda_launch(kernel, 0, NULL, grid, block, words, 2));
}

static void case_fault(void) {
  tw_cuda_kernel_t *add = make(ptx, "add", 0), *fault = make(ptx, "fault_here", 0);
  good(launch(add, 0, NULL));
  good(tw_device_synchronize(0));
  good(launch(fault, 0, NULL));
  expect(tw_device_synchronize(0), TW_LAUNCH_ERROR, "launched last, newest first: fault_here, add");
  expect(launch(add, 0, NULL), TW_LAUNCH_ERROR, "restart the process");
  good(launch(add, 1, NULL)); /* the other device is fine */
}

static void case_streams(void) {
  attach();
  int device;
  good(tw_stream_device((void *)0x5101, &device));
  assert(device == 1);
  good(tw_stream_order(1, (void *)0x5101, (void *)0x5102));
  good(tw_stream_order(1, (void *)0x5101, (void *)0x5101));
  assert(!strcmp(fake_log(), "record 5101\nwait 5102\n"));
  good(tw_pointer_device((void *)0x200000000010, &device));
  assert(device == 1);
  expect(tw_pointer_device("text", &device), TW_VALUE_ERROR, "not memory that the CUDA driver knows");
}

/* Every driver call fails once: an error with a message comes out, nothing leaks or hangs, and the
 * next attempt works. */
enum { WORKSPACES = 8 };           /* of a device */
static tw_cuda_kernel_t *counting; /* takes a workspace */
static _Atomic int launched;
static pthread_t other;

static void *launch_on_other_streams(void *unused) {
  (void)unused;
  for (uintptr_t i = 0; i < WORKSPACES; i++, launched++)
    good(launch(counting, 0, (void *)(0x5020 + i)));
  return NULL;
}

/* The last launch of the other thread wants the workspace of this one, and gets it when the driver has this one. */
static void while_a_launch_starts(void) {
  assert(!pthread_create(&other, NULL, launch_on_other_streams, NULL));
  while (launched < WORKSPACES - 1)
    usleep(100);
  for (int i = 0; i < 500 && launched < WORKSPACES; i++) /* it does not come, however long that takes */
    usleep(100);
}

static void case_workspaces_in_use(void) {
  attach();
  const tw_launch_record_t record = {.num_threads = 128, .persistent = true, .dynamic = true};
  good(tw_cuda_kernel_create(ptx, sizeof ptx - 1, "add", &record, &counting));
  for (uintptr_t i = 0; i <= WORKSPACES; i++) /* one more: from now on launches have events */
    good(launch(counting, 0, (void *)(0x5001 + i)));
  fake_during_launch(while_a_launch_starts);
  good(launch(counting, 0, (void *)0x5010));
  assert(!pthread_join(other, NULL));
  const char *recorded = strstr(fake_log(), "record 5010"), *waited = strstr(fake_log(), "wait 5027");
  assert(recorded && waited && recorded < waited);
}

static void case_every_call_fails(void) {
  static const char *const entries[] = {"cuDeviceGetCount",     "cuDeviceGet",         "cuDeviceGetName",
                                        "cuDeviceGetAttribute", "cuDeviceTotalMem_v2", "cuDevicePrimaryCtxRetain",
                                        "cuCtxPushCurrent_v2",  "cuLibraryLoadData",   "cuLibraryGetModule",
                                        "cuModuleGetFunction",  "cuFuncSetAttribute",  "cuLaunchKernelEx",
                                        "cuCtxSynchronize"};
  attach();
  good(tw_driver_open());
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
    tw_cuda_kernel_t *kernel = make(i & 1 ? ptx : ".version 7.0\n.entry add()", "add", 1024);
    fake_fail(entries[i], 1, 999);
    tw_status_t status = launch(kernel, 0, NULL);
    if (!status)
      status = tw_device_synchronize(0);
    if (fake_calls(entries[i]) > 1 || status)
      assert(!status || strstr(tw_status_message(status), "999"));
    tw_status_free(status);
    fake_fail(entries[i], 1 << 20, 0);
    good(launch(kernel, 0, NULL));
    tw_cuda_kernel_destroy(kernel);
  }
}

/* Memory and events: every call in its order on the default stream; a failure is told and nothing is left current. */
static void case_memory(void) {
  static const char *const entries[] = {"cuMemAlloc_v2", "cuMemcpy",           "cuMemsetD8Async",
                                        "cuEventRecord", "cuEventSynchronize", "cuEventElapsedTime"};
  attach();
  uint64_t address = 0;
  void *begin = NULL, *end = NULL;
  float milliseconds = 0;
  good(tw_memory_alloc(0, 4096, &address));
  good(tw_event_create(0, &begin));
  good(tw_event_create(0, &end));
  for (size_t i = 0; i <= sizeof entries / sizeof *entries; i++) {
    bool failing = i < sizeof entries / sizeof *entries;
    if (failing)
      fake_fail(entries[i], 1, 2);
    uint64_t other = 0;
    tw_status_t steps[] = {tw_memory_alloc(0, 16, &other),
                           tw_memory_copy(0, address, (uint64_t)(uintptr_t)&other, sizeof other),
                           tw_memory_fill(0, address, 0, 4096), tw_event_record_on(0, begin, NULL),
                           tw_event_elapsed(0, begin, end, &milliseconds)};
    int failed = 0;
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
      failed += steps[k] != NULL;
      tw_status_free(steps[k]);
    }
    assert(failed == failing);
  }
  assert(milliseconds > 0);
  tw_event_destroy(0, begin);
  good(tw_memory_free(0, address));
}

static void case_fork(void) {
  good(tw_driver_open());
  pid_t child = fork();
  if (!child) {
    expect(tw_driver_open(), TW_DRIVER_ERROR, "\"spawn\"");
    _exit(0);
  }
  int status;
  assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
}

int main(void) {
  static const struct {
    const char *name;
    void (*run)(void);
  } cases[] = {
#define CASE(name) {#name, case_##name}
      CASE(no_driver),
      CASE(not_a_driver),
      CASE(no_device),
      CASE(devices),
      CASE(launch_everywhere),
      CASE(old_driver),
      CASE(bad_ptx),
      CASE(linking),
      CASE(balanced_grid),
      CASE(shared_memory),
      CASE(out_of_memory),
      CASE(too_many_registers),
      CASE(fault),
      CASE(streams),
      CASE(workspaces_in_use),
      CASE(every_call_fails),
      CASE(memory),
      CASE(fork)};
  int failures = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pid_t child = fork();
    if (!child) {
      cases[i].run();
      _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    bool ok = WIFEXITED(status) && !WEXITSTATUS(status);
    printf("%s: %s\n", cases[i].name, ok ? "ok" : "FAILED");
    failures += !ok;
  }
  return failures != 0;
}
