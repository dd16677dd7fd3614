/* strbuf.c - a growing, always terminated string. */
#include "tilewright/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for `extra` more bytes and the terminator. */
static bool reserve(tw_strbuf_t *buffer, size_t extra) {
  size_t need = buffer->size + extra + 1;
  if (buffer->failed || need < extra)
    return false;
  if (need <= buffer->capacity)
    return true;
  size_t capacity = buffer->capacity ? buffer->capacity : 64;
  while (capacity < need)
    capacity += capacity;
  char *data = realloc(buffer->data, capacity);
  if (!data) {
    buffer->failed = true;
    return false;
  }
  buffer->data = data;
  buffer->capacity = capacity;
  return true;
}

void tw_strbuf_append(tw_strbuf_t *buffer, const char *text, size_t size) {
  if (!reserve(buffer, size))
    return;
  if (size)
    memcpy(buffer->data + buffer->size, text, size);
  buffer->size += size;
  buffer->data[buffer->size] = 0;
}

void tw_strbuf_puts(tw_strbuf_t *buffer, const char *text) { tw_strbuf_append(buffer, text, strlen(text)); }

void tw_strbuf_vprintf(tw_strbuf_t *buffer, const char *format, va_list arguments) {
  va_list copy;
  va_copy(copy, arguments);
  int length = vsnprintf(NULL, 0, format, copy);
  va_end(copy);
  if (length < 0 || !reserve(buffer, (size_t)length))
    return;
  vsnprintf(buffer->data + buffer->size, (size_t)length + 1, format, arguments);
  buffer->size += (size_t)length;
}

void tw_strbuf_printf(tw_strbuf_t *buffer, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  tw_strbuf_vprintf(buffer, format, arguments);
  va_end(arguments);
}

const char *tw_strbuf_cstr(const tw_strbuf_t *buffer) { return buffer->data ? buffer->data : ""; }

void tw_strbuf_free(tw_strbuf_t *buffer) {
  free(buffer->data);
  *buffer = (tw_strbuf_t){0};
}
