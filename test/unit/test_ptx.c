/* The upper half of a product is shifted out, never unpacked: ptxas multiplies it wrongly in loops. Parts of registers
 * are taken out before they are stored: ptxas converts floats to integers instead. Numbers of
 * 16 bits are negated by a product: ptxas takes -(-32768) for 32768. */
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
  text = tw_ptx_make_safe(text, &size);
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
  expect("\tst.global.b8 \t[%rd4+1], %rd6;\n",
         "\t{ .reg .b16 part<1>; cvt.u16.u64 part0, %rd6; st.global.b8 \t[%rd4+1], part0; }\n");
  expect("st.shared.b16 \t[%r1], %r2;", "{ .reg .b16 part<1>; cvt.u16.u32 part0, %r2; st.shared.b16 \t[%r1], part0; }");
  expect("st.b32 \t[%rd1], %rd2;", "{ .reg .b32 part<1>; cvt.u32.u64 part0, %rd2; st.b32 \t[%rd1], part0; }");
  expect("st.param.b8 \t[a+1], %rs2;", "{ .reg .b16 part<1>; mov.b16 part0, %rs2; st.param.b8 \t[a+1], part0; }");
  expect(
      "st.global.v2.b8 \t[%rd1], {%rs1, %r2};",
      "{ .reg .b16 part<2>; mov.b16 part0, %rs1; cvt.u16.u32 part1, %r2; st.global.v2.b8 \t[%rd1], {part0, part1}; }");
  expect("st.global.L2::cache_hint.b16 \t[%rd1], %r2, %rd3;",
         "{ .reg .b16 part<1>; cvt.u16.u32 part0, %r2; st.global.L2::cache_hint.b16 \t[%rd1], part0, %rd3; }");
  expect("\tneg.s16 \t%rs2, %rs1;\n\tneg.s32 \t%r2, %r1;", "\tmul.lo.s16 \t%rs2, %rs1, -1;\n\tneg.s32 \t%r2, %r1;");
  expect("sub.s16 \t%rs2, 0, %rs1;sub.s16 \t%rs3, %rs2, %rs1;",
         "mul.lo.s16 \t%rs2, %rs1, -1;sub.s16 \t%rs3, %rs2, %rs1;");
  expect("abs.s16 \t%rs2, %rs1;", "{ .reg .b16 less; mul.lo.s16 less, %rs1, -1; max.s16 %rs2, %rs1, less; }");
  expect("\t@%p1 st.global.b8 \t[%rd1], %rs2;",
         "\t{ .reg .b16 part<1>; mov.b16 part0, %rs2; @%p1 st.global.b8 \t[%rd1], part0; }");
  expect("{ @!q st.shared.b16 [%r1], %r2; }",
         "{ { .reg .b16 part<1>; cvt.u16.u32 part0, %r2; @!q st.shared.b16 [%r1], part0; } }");
  static const char *const whole[] = {"st.global.b16 \t[%rd1], %rs2;",
                                      "st.global.v2.b32 \t[%rd1], {%r1, %r2};",
                                      "st.global.b64 \t[%rd1], %rd2;",
                                      "st.global.b16 \t[%rd1], 0;",
                                      "st.global.b8 \t[%rd1], value;",
                                      "st.bulk.shared::cta \t[%r1], 8, 0;",
                                      "st.global.v2.b8 \t[%rd1], {%rs1, %rs2",
                                      "test.b8 \t[%rd1], %rd2;",
                                      "@%p1 neg.s16 \t%rs1, %rs2;",
                                      "@%p2 bra $L__BB0_2;",
                                      "@%p1 st.b32 [%rd1], %r1;"};
  for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
    expect(whole[i], whole[i]);
  return failures != 0;
}
