/* check.h - what the C tests count: CHECK(condition, format, ...) tells of a failure and goes on */
#ifndef TILEWRIGHT_TEST_CHECK_H
#define TILEWRIGHT_TEST_CHECK_H

#include <stdio.h>

static int failures;
#define CHECK(condition, ...)                                                                                          \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      failures++;                                                                                                      \
      fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                                                  \
      fprintf(stderr, __VA_ARGS__);                                                                                    \
      fputc('\n', stderr);                                                                                             \
    }                                                                                                                  \
  } while (0)

#endif
