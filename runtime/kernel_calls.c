/* kernel_calls.c - printing and failed assertions of CPU kernels */
#include "tilewright/kernel_calls.h"
#include "base/memory.h"

#include <math.h>
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
    line.text = tw_must(realloc(line.text, line.capacity));
  }
  memcpy(line.text + line.size, text, size);
  line.size += size;
}

void tw_kernel_print_text(const char *text, int64_t size) { put(text, (size_t)size); }

/* --- 16 bytes at once -------------------------------------------------------------------------- */

/* Not every machine has an instruction for them, and those that have need the place aligned. Places that share a lock
 * wait for each other, which does no harm. */
static atomic_flag pair_locks[64];

static atomic_flag *lock_pair(const void *place) {
  atomic_flag *lock = &pair_locks[((uintptr_t)place >> 4) % (sizeof pair_locks / sizeof *pair_locks)];
  atomic_thread_fence(memory_order_seq_cst);
  while (atomic_flag_test_and_set_explicit(lock, memory_order_acquire))
    continue;
  return lock;
}

static void unlock_pair(atomic_flag *lock) {
  atomic_flag_clear_explicit(lock, memory_order_release);
  atomic_thread_fence(memory_order_seq_cst);
}

tw_pair_t tw_simt_load_pair(const void *place) {
  tw_pair_t found;
  atomic_flag *lock = lock_pair(place);
  memcpy(&found, place, sizeof found);
  unlock_pair(lock);
  return found;
}

void tw_simt_store_pair(void *place, int64_t low, int64_t high) {
  tw_pair_t given = {low, high};
  atomic_flag *lock = lock_pair(place);
  memcpy(place, &given, sizeof given);
  unlock_pair(lock);
}

/* --- values ------------------------------------------------------------------------------------- */

static int64_t read_int(const void *data, int bytes) {
  switch (bytes) {
  case 1: return *(const int8_t *)data;
  case 2: return *(const int16_t *)data;
  case 4: return *(const int32_t *)data;
  default: return *(const int64_t *)data;
  }
}

/* The fewest decimals that read back as the same number, written as Python does. */
static int format_float(char *out, size_t size, double value, bool single) {
  char text[40];
  for (int digits = 0; digits < 17; digits++) {
    snprintf(text, sizeof text, "%.*e", digits, value);
    double back = strtod(text, NULL);
    if (back == value || (single && (float)back == (float)value))
      break;
  }
  const char *mark = strchr(text, 'e'), *point = strchr(text, '.');
  int exponent = mark ? atoi(mark + 1) : 0, decimals = mark && point ? (int)(mark - point) - 1 : 0;
  if (exponent < -4 || exponent >= 16)
    return snprintf(out, size, "%s", text);
  if (decimals > exponent)
    return snprintf(out, size, "%.*f", decimals - exponent, value);
  const char *sign = text[0] == '-' ? "-" : "", *first = text + strlen(sign);
  return snprintf(out, size, "%s%c%.*s%.*s.0", sign, *first, decimals, point ? point + 1 : "", exponent - decimals,
                  "000000000000000");
}

static double read_float(const void *data, int bytes) {
  float single;
  double value;
  if (bytes != 4)
    return memcpy(&value, data, 8), value;
  memcpy(&single, data, 4);
  return (double)single;
}

enum { MOST_BYTES = 2048 }; /* of a number: 309 digits before the point, a precision or a width of 999 */

static int format_number(char *text, const char *data, int kind, int bytes, const char *spec) {
  char format[32];
  size_t length = strlen(spec);
  if (kind == 'f') {
    double value = read_float(data, bytes);
    if (isnan(value))
      value = (double)NAN; /* whose sign is not told */
    if (!length)
      return isfinite(value) ? format_float(text, MOST_BYTES, value, bytes == 4)
                             : snprintf(text, MOST_BYTES, "%g", value);
    snprintf(format, sizeof format, "%%%s", spec);
    return snprintf(text, MOST_BYTES, format, value);
  }
  const char *last = length ? spec + length - 1 : kind == 'u' ? "u" : "d";
  snprintf(format, sizeof format, "%%%.*sll%s", length ? (int)length - 1 : 0, spec, last);
  return snprintf(text, MOST_BYTES, format, (long long)read_int(data, bytes));
}

static void put_value(const char *data, int kind, int bytes, const char *spec) {
  char text[MOST_BYTES];
  if (kind == 'b') {
    put(*data ? "True" : "False", *data ? 4 : 5);
    return;
  }
  int length = format_number(text, data, kind, bytes, spec);
  put(text, length < MOST_BYTES ? (size_t)length : MOST_BYTES - 1);
}

/* Brackets before an element: those of all axes that begin there. Where a line begins, blanks stand for the others. */
static void put_brackets(int64_t index, int64_t count, int rank, const int64_t *shape, bool new_line) {
  for (int d = 0; d < rank; count /= shape[d++]) {
    if (index % count == 0)
      put("[", 1);
    else if (new_line)
      put(" ", 1);
  }
}

void tw_kernel_print_tile(const void *data, int32_t kind, int32_t bytes, int32_t rank, const int64_t *shape,
                          const char *spec) {
  int64_t count = 1;
  for (int d = 0; d < rank; d++)
    count *= shape[d];
  int64_t line = tw_print_line(count, rank ? shape[rank - 1] : 1);
  for (int64_t i = 0; i < count; i++) {
    bool new_line = i > 0 && i % line == 0;
    if (i)
      put(new_line ? ",\n" : ", ", 2);
    put_brackets(i, count, rank, shape, new_line);
    put_value((const char *)data + i * bytes, kind, bytes, spec);
    int64_t row = 1;
    for (int d = rank - 1; d >= 0 && (i + 1) % (row *= shape[d]) == 0; d--)
      put("]", 1);
  }
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

char *tw_kernel_take_assertion(void) {
  if (!atomic_load_explicit(&any_failed, memory_order_relaxed))
    return NULL;
  pthread_mutex_lock(&lock);
  char *message = first_message;
  first_message = NULL;
  atomic_store(&any_failed, false);
  pthread_mutex_unlock(&lock);
  return message;
}
