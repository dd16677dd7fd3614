/* The upper half of a product is shifted out, never unpacked: ptxas multiplies it wrongly in loops. */
#include "check.h"
#include "lowering/ptx.h"

#include <stdlib.h>
#include <string.h>

static void expect(const char *before, const char *after) {
  size_t size = strlen(before);
  char *text = malloc(size + 1);
  if (!text)
    abort();
  memcpy(text, before, size + 1);
  text = tw_ptx_shift_halves(text, &size);
  CHECK(!strcmp(text, after), "%s\ninstead of\n%s", text, after);
  CHECK(size == strlen(after), "%zu bytes", size);
  free(text);
}

int main(void) {
  expect("", "");
  expect("add.s32 \t%r1, %r2, %r3;\n", "add.s32 \t%r1, %r2, %r3;\n");
  expect("a;\n\tmov.b64 \t{_, %r4}, %rd14;\n\tb;\n",
         "a;\n\t{ .reg .b64 half; shr.u64 half, %rd14, 32; cvt.u32.u64 %r4, half; }\n\tb;\n");
  expect("mov.b64 \t{_, %r4}, %rd1;mov.b64 \t{_, %r5}, %rd2;",
         "{ .reg .b64 half; shr.u64 half, %rd1, 32; cvt.u32.u64 %r4, half; }"
         "{ .reg .b64 half; shr.u64 half, %rd2, 32; cvt.u32.u64 %r5, half; }");
  expect("ld.b64 \t%rd1, [%rd2];\n\tmov.b64 \t{%r3, %r4}, %rd1;\n",
         "ld.b64 \t%rd1, [%rd2];\n\tmov.b64 \t{%r3, %r4}, %rd1;\n");
  expect("mul.lo.s64 \t%rd1, %rd2, %rd3;\n\tmov.b64 \t{%r3, %r4}, %rd1;\n",
         "mul.lo.s64 \t%rd1, %rd2, %rd3;\n\tcvt.u32.u64 \t%r3, %rd1;\n"
         "\t{ .reg .b64 half; shr.u64 half, %rd1, 32; cvt.u32.u64 %r4, half; }\n");
  expect("mov.b64 \t%rd1, {%r1, %r2};", "mov.b64 \t%rd1, {%r1, %r2};");
  return failures != 0;
}
