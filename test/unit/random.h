/* random.h - the random numbers of property tests, the same in every run */
#ifndef TILEWRIGHT_TEST_RANDOM_H
#define TILEWRIGHT_TEST_RANDOM_H

#include <stdint.h>

static uint64_t random_state = 0x9E3779B97F4A7C15u;
static int random_below(int n) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (int)((random_state >> 33) % (uint64_t)n);
}

#endif
