/* format.c - see format.h */
#include "dialect/format.h"

#include <string.h>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* The position after at most three digits. */
static size_t after_digits(MlirStringRef spec, size_t i) {
  size_t most = i + 3;
  while (i < spec.length && i < most && is_digit(spec.data[i]))
    i++;
  return i;
}

static bool is_spec(MlirStringRef spec) {
  size_t i = 0;
  if (spec.length >= TW_SPEC_BYTES)
    return false;
  while (i < spec.length && spec.data[i] && strchr("-+ #0", spec.data[i]))
    i++;
  i = after_digits(spec, i);
  if (i < spec.length && spec.data[i] == '.')
    i = after_digits(spec, i + 1);
  return i + 1 == spec.length && spec.data[i] && strchr("diuoxXeEfFgGaA", spec.data[i]);
}

bool tw_spec_is_of_float(MlirStringRef spec) { return spec.length && strchr("eEfFgGaA", spec.data[spec.length - 1]); }

static MlirStringRef take(MlirStringRef *rest, size_t size) {
  MlirStringRef taken = {rest->data, size};
  rest->data += size;
  rest->length -= size;
  return taken;
}

static tw_format_kind_t take_value(MlirStringRef *rest, MlirStringRef *spec) {
  const char *end = memchr(rest->data, '}', rest->length);
  if (!end)
    return TW_FORMAT_BAD;
  MlirStringRef all = take(rest, (size_t)(end - rest->data) + 1);
  bool plain = all.length == 2;
  *spec = plain ? (MlirStringRef){all.data + 1, 0} : (MlirStringRef){all.data + 2, all.length - 3};
  return plain || (all.data[1] == ':' && is_spec(*spec)) ? TW_FORMAT_VALUE : TW_FORMAT_BAD;
}

tw_format_kind_t tw_format_next(MlirStringRef *rest, MlirStringRef *part) {
  size_t i = 0;
  if (rest->length == 0)
    return TW_FORMAT_END;
  while (i < rest->length && rest->data[i] != '{' && rest->data[i] != '}')
    i++;
  if (i > 0) {
    *part = take(rest, i);
    return TW_FORMAT_TEXT;
  }
  if (rest->length > 1 && rest->data[1] == rest->data[0]) {
    *part = take(rest, 2);
    part->length = 1;
    return TW_FORMAT_TEXT;
  }
  return rest->data[0] == '{' ? take_value(rest, part) : TW_FORMAT_BAD;
}
