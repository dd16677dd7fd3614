/* tilewright/base.h - status object and string buffer: what every C part below MLIR and CUDA shares.
 *
 * A function that can fail returns `tw_status_t`: NULL is success, anything else is an owned error
 * that the caller passes up or frees.  The error knows the code, the place in our source and a
 * message for the user, which says what was found, what was expected and what to do.
 *
 *   tw_status_t status = tw_device_get(0, &device);
 *   if (status) { puts(tw_status_message(status)); tw_status_free(status); }
 */
#ifndef TILEWRIGHT_BASE_H
#define TILEWRIGHT_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What kind of failure it is; the Python layer picks the exception class from it. */
typedef enum tw_code {
  TW_OK = 0,
  TW_TYPE_ERROR,    /* an argument of a kind that is not supported */
  TW_VALUE_ERROR,   /* a supported kind with an impossible value */
  TW_LAUNCH_ERROR,  /* a kernel could not be started, or failed while it ran */
  TW_DRIVER_ERROR,  /* no driver, no device, driver too old, a driver call that failed */
  TW_COMPILE_ERROR, /* the driver refused our PTX */
  TW_UNIMPLEMENTED, /* legal, but not supported here */
  TW_OUT_OF_MEMORY,
  TW_INTERNAL_ERROR,
} tw_code_t;

typedef struct tw_error *tw_status_t; /* NULL: success; otherwise owned by the receiver */

#if defined(__GNUC__)
#define TW_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#define TW_RETURNS_NONNULL __attribute__((__returns_nonnull__))
#define TW_LIKELY(x) __builtin_expect(!!(x), 1)
#define TW_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define TW_HOT __attribute__((__hot__))
#define TW_COLD __attribute__((__cold__, __noinline__))
#else
#define TW_PRINTF(text, first)
#define TW_RETURNS_NONNULL
#define TW_LIKELY(x) (x)
#define TW_UNLIKELY(x) (x)
#define TW_HOT
#define TW_COLD
#endif

/* TW_HOT: on the way of a launch. Between two launches the driver fills the caches with code of its own, so what these
 * functions cost is the lines and pages that they lie on: the linker puts them side by side. TW_COLD: what they seldom
 * call. */

/* Makes an error.  Never fails: without memory a static out-of-memory error comes back. */
tw_status_t tw_status_make(tw_code_t code, const char *file, int line, const char *format, ...)
    TW_PRINTF(4, 5) TW_RETURNS_NONNULL;
#define TW_ERROR(code, ...) tw_status_make(code, __FILE__, __LINE__, __VA_ARGS__)

/* Puts text before the message of an error: the caller knows what it was about. Takes `status`. */
tw_status_t tw_status_prefix(tw_status_t status, const char *format, ...) TW_PRINTF(2, 3);

tw_code_t tw_status_code(tw_status_t status);      /* TW_OK for NULL */
const char *tw_status_message(tw_status_t status); /* borrowed; "" for NULL */
void tw_status_free(tw_status_t status);           /* NULL is fine */

#define TW_RETURN_IF_ERROR(expression)                                                                                 \
  do {                                                                                                                 \
    tw_status_t tw_status_ = (expression);                                                                             \
    if (TW_UNLIKELY(tw_status_ != NULL))                                                                               \
      return tw_status_;                                                                                               \
  } while (0)

/* A growing, always terminated string.  Start from {0}.  When memory runs out it stays as it is and
 * `failed` is set: check once at the end. */
typedef struct tw_strbuf {
  char *data; /* owned; NULL while empty */
  size_t size, capacity;
  bool failed;
} tw_strbuf_t;

void tw_strbuf_append(tw_strbuf_t *buffer, const char *text, size_t size);
void tw_strbuf_puts(tw_strbuf_t *buffer, const char *text);
void tw_strbuf_printf(tw_strbuf_t *buffer, const char *format, ...) TW_PRINTF(2, 3);
void tw_strbuf_vprintf(tw_strbuf_t *buffer, const char *format, va_list arguments);
const char *tw_strbuf_cstr(const tw_strbuf_t *buffer); /* borrowed; never NULL */
void tw_strbuf_free(tw_strbuf_t *buffer);

#ifdef __cplusplus
}
#endif
#endif
