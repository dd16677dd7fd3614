/* status.c - the error object behind tw_status_t. */
#include "tilewright/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tw_error {
  tw_code_t code;
  const char *file; /* borrowed: a literal */
  int line;
  char message[]; /* terminated */
};

/* Handed out when there is no memory for a real one; never freed. */
static struct tw_error no_memory = {.code = TW_OUT_OF_MEMORY, .file = __FILE__, .line = __LINE__};

static tw_status_t status_alloc(tw_code_t code, const char *file, int line, size_t length) {
  struct tw_error *error = malloc(sizeof *error + length + 1);
  if (!error)
    return &no_memory;
  error->code = code;
  error->file = file;
  error->line = line;
  error->message[0] = 0;
  return error;
}

tw_status_t tw_status_make(tw_code_t code, const char *file, int line, const char *format, ...) {
  va_list arguments, copy;
  va_start(arguments, format);
  va_copy(copy, arguments);
  int length = vsnprintf(NULL, 0, format, copy);
  va_end(copy);
  size_t size = length < 0 ? 0 : (size_t)length;
  tw_status_t status = status_alloc(code, file, line, size);
  if (status != &no_memory)
    vsnprintf(status->message, size + 1, format, arguments);
  va_end(arguments);
  return status;
}

tw_status_t tw_status_prefix(tw_status_t status, const char *format, ...) {
  if (!status || status == &no_memory)
    return status;
  tw_strbuf_t text = {0};
  va_list arguments;
  va_start(arguments, format);
  tw_strbuf_vprintf(&text, format, arguments);
  va_end(arguments);
  tw_strbuf_puts(&text, status->message);
  tw_status_t longer = status_alloc(status->code, status->file, status->line, text.size);
  if (longer != &no_memory)
    memcpy(longer->message, tw_strbuf_cstr(&text), text.size + 1);
  tw_strbuf_free(&text);
  tw_status_free(status);
  return longer;
}

tw_code_t tw_status_code(tw_status_t status) { return status ? status->code : TW_OK; }

const char *tw_status_message(tw_status_t status) {
  if (status == &no_memory)
    return "out of host memory";
  return status ? status->message : "";
}

void tw_status_free(tw_status_t status) {
  if (status != &no_memory)
    free(status);
}
