/* ptx.c - the text that LLVM wrote, made safe for ptxas
 *
 *   mul.lo.s64 %rd4, %rd3, %rd2;          mul.lo.s64 %rd4, %rd3, %rd2;
 *   mov.b64 {_, %r4}, %rd4;          ->   { .reg .b64 half; shr.u64 half, %rd4, 32; cvt.u32.u64 %r4, half; }
 *   mul.lo.s32 %r5, %r4, %r1;             mul.lo.s32 %r5, %r4, %r1;
 *
 * ptxas, from CUDA 12.8 to 13.5 at least, takes the left side in a loop where %rd2 and %r1 stay the same for the upper
 * half of %rd3 * (%rd2 * %r1): true of lower halves alone. Divisions by multiplying have this form, a user's hash may,
 * too. A shift is read right, and costs nothing: it names the upper register.
 *
 *   mul.f64 %rd6, %rd5, %rd5;             mul.f64 %rd6, %rd5, %rd5;
 *   st.global.b8 [%rd4], %rd6;       ->   { .reg .b16 part; cvt.u16.u64 part, %rd6; st.global.b8 [%rd4], part; }
 *
 * ptxas, up to CUDA 13.0, stores the number on the left rounded to an integer, not its lowest byte: it takes a register
 * that holds a float for one wherever less than the register is stored. The conversion costs no instruction.
 *
 *   neg.s16 %rs3, %rs2;              ->   mul.lo.s16 %rs3, %rs2, -1;
 *
 * ptxas, up to CUDA 13.2, takes -(-32768) for 32768 where the result is widened, compared or shifted; so of abs.s16. It
 * makes a negation of the product, but one that wraps around.
 *
 * docs/design/tensor-cores.md */
#include "lowering/ptx.h"

#include "base/memory.h"
#include "tilewright/base.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 31, LINE = 255, MOST_STORED = 16 /* registers of one store */ };

/* ---- upper halves ------------------------------------------------------------------------------------ */

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

/* False where the unpacking may stay: pairs of words that were loaded, say. */
static bool print_shift(tw_strbuf_t *out, const char *ptx, const char *at) {
  halves_t x;
  if (!read_halves(at, &x))
    return false;
  bool alone = !strcmp(x.low, "_");
  if (!alone && !is_product(ptx, x.whole))
    return false;
  if (!alone)
    tw_strbuf_printf(out, "cvt.u32.u64 \t%s, %s;\n\t", x.low, x.whole);
  tw_strbuf_printf(out, "{ .reg .b64 half; shr.u64 half, %s, 32; cvt.u32.u64 %s, half; }", x.whole, x.high);
  return true;
}

/* ---- stores of parts --------------------------------------------------------------------------------- */

typedef struct {
  const char *values, *rest; /* behind `[address], `, and behind the values */
  char names[MOST_STORED][NAME + 1];
  int count, bits; /* bits of what each stores */
} ptx_store_t;

/* Of `st.global.v2.b8`; 0 where that is not of 8, 16 or 32 bits. */
static int stored_bits(const char *opcode, size_t length) {
  static const int all[] = {8, 16, 32};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    char end[8];
    size_t size = (size_t)snprintf(end, sizeof end, "%d", all[i]);
    if (length > size + 2 && !strncmp(opcode + length - size, end, size) && opcode[length - size - 2] == '.' &&
        strchr("bus", opcode[length - size - 1]))
      return all[i];
  }
  return 0;
}

/* LLVM's names say how wide a register is; 0 of names that are not LLVM's. */
static int register_bits(const char *name) {
  if (name[0] != '%' || name[1] != 'r')
    return 0;
  return name[2] == 's' ? 16 : name[2] == 'd' ? 64 : 32;
}

static bool read_values(const char *at, ptx_store_t *out) {
  bool several = *at == '{';
  out->values = at;
  at += several;
  for (out->count = 0; out->count < MOST_STORED;) {
    int length = 0;
    if (sscanf(at, " %31[%a-z0-9]%n", out->names[out->count], &length) != 1 || !register_bits(out->names[out->count]))
      return false;
    at += length;
    out->count++;
    if (!several || *at == '}')
      break;
    if (*at++ != ',')
      return false;
  }
  out->rest = at + several;
  return !several || *at == '}';
}

static bool read_store(const char *at, ptx_store_t *out) {
  size_t opcode = strcspn(at, " \t;");
  out->bits = stored_bits(at, opcode);
  const char *address = at + opcode + strspn(at + opcode, " \t");
  const char *behind = *address == '[' ? strchr(address, ']') : NULL;
  return out->bits && behind && behind[1] == ',' && read_values(behind + 2 + strspn(behind + 2, " \t"), out);
}

/* What is stored whole is stored as it is; bytes have no register of their own, so that they are parts of any. */
static bool is_part(const ptx_store_t *x, int i) { return x->bits == 8 || register_bits(x->names[i]) > x->bits; }

/* Of `@%p1 `, which may stand in front of an instruction. */
static size_t guard_length(const char *at) {
  size_t guard = *at == '@' ? strcspn(at, " \t") : 0;
  return guard + (guard ? strspn(at + guard, " \t") : 0);
}

static bool print_parts(tw_strbuf_t *out, const char *line) {
  ptx_store_t x;
  bool any = false;
  const char *at = line + guard_length(line);
  if (strncmp(at, "st.", 3) != 0 || !read_store(at, &x))
    return false;
  for (int i = 0; i < x.count; i++)
    any |= is_part(&x, i);
  if (!any)
    return false;
  int width = x.bits == 8 ? 16 : x.bits;
  tw_strbuf_printf(out, "{ .reg .b%d part<%d>; ", width, x.count);
  for (int i = 0; i < x.count; i++) {
    int from = register_bits(x.names[i]);
    if (is_part(&x, i) && from == width)
      tw_strbuf_printf(out, "mov.b%d part%d, %s; ", width, i, x.names[i]);
    else if (is_part(&x, i))
      tw_strbuf_printf(out, "cvt.u%d.u%d part%d, %s; ", width, from, i, x.names[i]);
  }
  tw_strbuf_append(out, line, (size_t)(x.values - line));
  for (int i = 0; i < x.count; i++) {
    tw_strbuf_puts(out, i ? ", " : *x.values == '{' ? "{" : "");
    if (is_part(&x, i))
      tw_strbuf_printf(out, "part%d", i);
    else
      tw_strbuf_puts(out, x.names[i]);
  }
  tw_strbuf_append(out, "}", *x.values == '{');
  tw_strbuf_append(out, x.rest, strcspn(x.rest, ";") + 1);
  tw_strbuf_puts(out, " }");
  return true;
}

/* ---- negations of 16 bits ---------------------------------------------------------------------------- */

static bool print_negation(tw_strbuf_t *out, const char *at) {
  char to[NAME + 1], from[NAME + 1];
  if (sscanf(at, "neg.s16 \t%31[%a-z0-9], %31[%a-z0-9];", to, from) == 2 ||
      sscanf(at, "sub.s16 \t%31[%a-z0-9], 0, %31[%a-z0-9];", to, from) == 2)
    tw_strbuf_printf(out, "mul.lo.s16 \t%s, %s, -1;", to, from);
  else if (sscanf(at, "abs.s16 \t%31[%a-z0-9], %31[%a-z0-9];", to, from) == 2)
    tw_strbuf_printf(out, "{ .reg .b16 less; mul.lo.s16 less, %s, -1; max.s16 %s, %s, less; }", from, to, from);
  else
    return false;
  return true;
}

/* ---- all of them ------------------------------------------------------------------------------------- */

/* True if `line`, an instruction, was printed in another form. */
static bool print_safe(tw_strbuf_t *out, const char *ptx, const char *line) {
  return print_parts(out, line) || print_shift(out, ptx, line) || print_negation(out, line);
}

/* Whether an instruction begins at `at`: behind a guard it has begun already. */
static bool begins(const char *ptx, const char *at) {
  if (at > ptx && !strchr("\t\n {};", at[-1]))
    return false;
  while (at > ptx && strchr(" \t", at[-1]))
    at--;
  while (at > ptx && (isalnum((unsigned char)at[-1]) || strchr("%$_!", at[-1])))
    at--;
  return at == ptx || at[-1] != '@';
}

/* Copies the instruction at `at`, or nothing where it is none that a form is known for, or too long to be one. */
static bool read_line(const char *ptx, const char *at, char line[LINE + 1]) {
  static const char *const first[] = {"@", "st.", "mov.b64 \t{", "neg.s16", "sub.s16", "abs.s16"};
  bool known = false;
  for (size_t i = 0; i < sizeof first / sizeof *first; i++)
    known |= !strncmp(at, first[i], strlen(first[i]));
  size_t length = known && begins(ptx, at) ? strcspn(at, ";") + 1 : LINE + 1;
  if (length > LINE || at[length - 1] != ';')
    return false;
  memcpy(line, at, length);
  line[length] = 0;
  return true;
}

char *tw_ptx_make_safe(char *ptx, size_t *size) {
  char line[LINE + 1];
  tw_strbuf_t out = {0}, form = {0};
  const char *from = ptx;
  for (const char *at = ptx; *at; at += 1 + strcspn(at + 1, "mnas@")) {
    if (!read_line(ptx, at, line) || !print_safe(&form, ptx, line))
      continue;
    tw_strbuf_append(&out, from, (size_t)(at - from));
    tw_strbuf_append(&out, form.data, form.size);
    form.size = 0;
    from = at + strlen(line);
  }
  tw_strbuf_append(&out, from, *size - (size_t)(from - ptx));
  bool failed = out.failed || form.failed;
  tw_strbuf_free(&form);
  free(ptx);
  *size = out.size;
  return tw_must(failed ? NULL : out.data);
}
