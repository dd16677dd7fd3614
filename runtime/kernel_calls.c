/* kernel_calls.c - printing and failed assertions of CPU kernels */
#include "tilewright/kernel_calls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  char *text;
  size_t size, capacity;
} line_t;

/* One a thread. It keeps its memory: the threads of the pool live as long as the process. */
static _Thread_local line_t line;

static void put(const char *text, size_t size) {
  if (line.size + size > line.capacity) {
    line.capacity = 2 * (line.size + size) + 64;
    line.text = realloc(line.text, line.capacity);
    if (!line.text)
      abort();
  }
  memcpy(line.text + line.size, text, size);
  line.size += size;
}

void tw_kernel_print_text(const char *text, int64_t size) { put(text, (size_t)size); }

/* --- values ------------------------------------------------------------------------------------- */

static int64_t read_int(const void *data, int bytes) {
  switch (bytes) {
  case 1: return *(const int8_t *)data;
  case 2: return *(const int16_t *)data;
  case 4: return *(const int32_t *)data;
  default: return *(const int64_t *)data;
  }
}

/* The shortest decimals that read back as the same number. */
static int format_float(char *out, size_t size, double value, bool single) {
  int length = 0;
  for (int digits = 1; digits <= 17; digits++) {
    length = snprintf(out, size, "%.*g", digits, value);
    double back = strtod(out, NULL);
    if (back == value || value != value || (single && (float)back == (float)value))
      break;
  }
  if (!strpbrk(out, ".enai"))
    length += snprintf(out + length, size - (size_t)length, ".0");
  return length;
}

static void put_value(const char *data, int kind, int bytes) {
  char text[40];
  int length;
  if (kind == 'f') {
    float single = 0;
    double value = 0;
    if (bytes == 4)
      memcpy(&single, data, 4), value = (double)single;
    else
      memcpy(&value, data, 8);
    length = format_float(text, sizeof text, value, bytes == 4);
  } else if (kind == 'b') {
    length = snprintf(text, sizeof text, "%s", *data ? "True" : "False");
  } else {
    const char *format = kind == 'u' ? "%llu" : "%lld"; /* 'u' has 64 bits */
    length = snprintf(text, sizeof text, format, (long long)read_int(data, bytes));
  }
  put(text, (size_t)length);
}

void tw_kernel_print_tile(const void *data, int32_t kind, int32_t bytes, int32_t rank, const int64_t *shape) {
  if (rank == 0) {
    put_value(data, kind, bytes);
    return;
  }
  int64_t step = bytes;
  for (int d = 1; d < rank; d++)
    step *= shape[d];
  put("[", 1);
  for (int64_t i = 0; i < shape[0]; i++) {
    if (i)
      put(" ", 1);
    tw_kernel_print_tile((const char *)data + i * step, kind, bytes, rank - 1, shape + 1);
  }
  put("]", 1);
}

void tw_kernel_print_end(void) {
  fwrite(line.text, 1, line.size, stdout);
  fflush(stdout);
  line.size = 0;
}

/* --- assertions ----------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *first_message;     /* under the lock; NULL: none failed */
static _Atomic bool any_failed; /* so that a launch need not take the lock */

void tw_kernel_assert_failed(const char *message, int64_t size) {
  pthread_mutex_lock(&lock);
  if (!first_message)
    first_message = strndup(message, (size_t)size);
  atomic_store(&any_failed, true);
  pthread_mutex_unlock(&lock);
}

bool tw_kernel_take_assertion(char *out, size_t size) {
  if (!atomic_load_explicit(&any_failed, memory_order_relaxed))
    return false;
  pthread_mutex_lock(&lock);
  bool failed = first_message != NULL;
  if (failed)
    snprintf(out, size, "%s", first_message);
  free(first_message);
  first_message = NULL;
  atomic_store(&any_failed, false);
  pthread_mutex_unlock(&lock);
  return failed;
}
