/* ptx.c - the text that LLVM wrote, made safe for ptxas
 *
 *   mul.lo.s64 %rd4, %rd3, %rd2;          mul.lo.s64 %rd4, %rd3, %rd2;
 *   mov.b64 {_, %r4}, %rd4;          ->   { .reg .b64 half; shr.u64 half, %rd4, 32; cvt.u32.u64 %r4, half; }
 *   mul.lo.s32 %r5, %r4, %r1;             mul.lo.s32 %r5, %r4, %r1;
 *
 * ptxas, from CUDA 12.8 to 13.5 at least, takes the left side in a loop where %rd2 and %r1 stay the same for the upper
 * half of %rd3 * (%rd2 * %r1): true of lower halves alone. Divisions by multiplying have this form, a user's hash may,
 * too. A shift is read right, and costs nothing: it names the upper register. docs/design/tensor-cores.md */
#include "lowering/ptx.h"

#include "base/memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char unpack[] = "mov.b64 \t{";

enum { NAME = 31, MOST = 200 /* bytes of what stands for one unpacking */ };

/* Of `{low, high}, whole;`, where `low` is `_` if nothing reads it. */
typedef struct {
  char low[NAME + 1], high[NAME + 1], whole[NAME + 1];
} halves_t;

static bool read_halves(const char *at, halves_t *out) {
  return sscanf(at, "mov.b64 \t{%31[%_a-z0-9], %31[%a-z0-9]}, %31[%a-z0-9];", out->low, out->high, out->whole) == 3;
}

static bool is_product(const char *ptx, const char *name) {
  char text[NAME + 16];
  snprintf(text, sizeof text, "mul.lo.s64 \t%s,", name);
  return strstr(ptx, text) != NULL;
}

/* The number of bytes; 0 where the unpacking may stay: pairs of words that were loaded, say. */
static int print_shift(char *out, const char *ptx, const char *at) {
  halves_t x;
  if (!read_halves(at, &x))
    return 0;
  bool alone = !strcmp(x.low, "_");
  if (!alone && !is_product(ptx, x.whole))
    return 0;
  int length = alone ? 0 : snprintf(out, MOST, "cvt.u32.u64 \t%s, %s;\n\t", x.low, x.whole);
  return length + snprintf(out + length, (size_t)(MOST - length),
                           "{ .reg .b64 half; shr.u64 half, %s, 32; cvt.u32.u64 %s, half; }", x.whole, x.high);
}

static size_t count_unpacks(const char *ptx) {
  size_t count = 0;
  for (const char *at = strstr(ptx, unpack); at; at = strstr(at + 1, unpack))
    count++;
  return count;
}

char *tw_ptx_shift_halves(char *ptx, size_t *size) {
  char *out = tw_must(malloc(*size + count_unpacks(ptx) * MOST + 1)), *to = out;
  const char *from = ptx;
  for (const char *at = strstr(ptx, unpack); at; at = strstr(at + 1, unpack)) {
    memcpy(to, from, (size_t)(at - from));
    to += at - from;
    int length = print_shift(to, ptx, at);
    to += length;
    from = length ? strchr(at, ';') + 1 : at;
  }
  size_t rest = *size - (size_t)(from - ptx);
  memcpy(to, from, rest + 1);
  *size = (size_t)(to - out) + rest;
  free(ptx);
  return out;
}
