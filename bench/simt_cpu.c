/* simt_cpu.c - the kernels of simt_kernels.py as loops in C, for bench/simt.py --cpu --peer
 *
 *   clang -O3 -march=native -ffast-math -fopenmp bench/simt_cpu.c -lm -o simt_cpu
 *
 * Prints a line of JSON for the kernel that is named: the median and the least of the rounds behind two that warm up.
 * SIMT_SHRINK makes problems smaller as --shrink does. The radix pass is the one that plain loops would have: parts
 * are counted and written in order, where threads of a kernel rank the keys of their warp.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 9, WARM = 2, BINS = 256, MOST_LENGTH = 64, LIMIT = 1024 };

static int shrink;
static float *x, *y, *z, *call, *put;
static volatile float sum; /* else nobody asks for it */
static int32_t *counts, *starts, *columns;
static uint8_t *values;
static uint32_t bins[BINS], *keys, *sorted, *places;
static size_t n;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static float *uniform(size_t count, float low, float high) {
  float *out = malloc(count * sizeof *out);
  uint32_t state = 1;
  for (size_t i = 0; out && i < count; i++) {
    state = state * 1664525u + 1013904223u;
    out[i] = low + (high - low) * (float)(state >> 8) / 16777216.0F;
  }
  return out;
}

static void saxpy(void) {
#pragma omp parallel for
  for (size_t i = 0; i < n; i++)
    y[i] = 0.37F * x[i] + y[i];
}

static void transpose(void) {
#pragma omp parallel for collapse(2)
  for (size_t i = 0; i < n; i += 32)
    for (size_t j = 0; j < n; j += 32)
      for (size_t a = i; a < i + 32; a++)
        for (size_t b = j; b < j + 32; b++)
          y[b * n + a] = x[a * n + b];
}

static void reduce_sum(void) {
  float total = 0;
#pragma omp parallel for reduction(+ : total)
  for (size_t i = 0; i < n; i++)
    total += x[i];
  sum = total;
}

static void histogram(void) {
#pragma omp parallel for reduction(+ : bins)
  for (size_t i = 0; i < n; i++)
    bins[values[i]]++;
}

static void nbody(void) {
#pragma omp parallel for
  for (size_t i = 0; i < n; i++) {
    float ax = 0, ay = 0, az = 0;
    for (size_t j = 0; j < n; j++) {
      float dx = x[4 * j] - x[4 * i], dy = x[4 * j + 1] - x[4 * i + 1], dz = x[4 * j + 2] - x[4 * i + 2];
      float inverse = 1 / sqrtf(dx * dx + dy * dy + dz * dz + 1e-3F), s = x[4 * j + 3] * inverse * inverse * inverse;
      ax += dx * s;
      ay += dy * s;
      az += dz * s;
    }
    y[3 * i] = ax;
    y[3 * i + 1] = ay;
    y[3 * i + 2] = az;
  }
}

static void mandelbrot(void) {
  float step = 3.0F / (float)n;
#pragma omp parallel for schedule(static, 1)
  for (size_t row = 0; row < n; row++)
    for (size_t column = 0; column < n; column++) {
      float cx = (float)column * step - 2, cy = (float)row * step - 1.5F, a = 0, b = 0;
      int k = 0;
      for (; k < LIMIT && a * a + b * b <= 4; k++) {
        float next = a * a - b * b + cx;
        b = 2 * a * b + cy;
        a = next;
      }
      counts[row * n + column] = k;
    }
}

static void stencil2d(void) {
#pragma omp parallel for
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++) {
      size_t at = i * n + j;
      int inner = i > 0 && i < n - 1 && j > 0 && j < n - 1;
      y[at] = inner ? 0.5F * x[at] + 0.125F * (x[at - 1] + x[at + 1] + x[at - n] + x[at + n]) : x[at];
    }
}

static void stencil3d(void) {
  size_t plane = n * n;
#pragma omp parallel for collapse(2)
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++)
      for (size_t k = 0; k < n; k++) {
        size_t at = i * plane + j * n + k;
        int inner = i > 0 && i < n - 1 && j > 0 && j < n - 1 && k > 0 && k < n - 1;
        float around = inner ? x[at - 1] + x[at + 1] + x[at - n] + x[at + n] + x[at - plane] + x[at + plane] : 0;
        y[at] = inner ? 0.4F * x[at] + 0.1F * around : x[at];
      }
}

static float normal_cdf(float d) {
  float k = 1 / (1 + 0.2316419F * fabsf(d));
  float tail = k * (0.31938153F + k * (-0.356563782F + k * (1.781477937F + k * (-1.821255978F + k * 1.330274429F))));
  tail *= 0.39894228F * expf(-0.5F * d * d);
  return d > 0 ? 1 - tail : tail;
}

static void black_scholes(void) {
#pragma omp parallel for
  for (size_t i = 0; i < n; i++) {
    float spread = 0.3F * sqrtf(z[i]), d1 = (logf(x[i] / y[i]) + (0.02F + 0.5F * 0.3F * 0.3F) * z[i]) / spread;
    float n1 = normal_cdf(d1), n2 = normal_cdf(d1 - spread), discounted = y[i] * expf(-0.02F * z[i]);
    call[i] = x[i] * n1 - discounted * n2;
    put[i] = discounted * (1 - n2) - x[i] * (1 - n1);
  }
}

static void spmv(void) {
#pragma omp parallel for
  for (size_t row = 0; row < n; row++) {
    float total = 0;
    for (int32_t k = starts[row]; k < starts[row + 1]; k++)
      total += z[k] * x[columns[k]];
    y[row] = total;
  }
}

/* A pass by the low byte, stable: counts of the parts, where they go, the keys. */
static void radix_pass(void) {
  enum { PART = 8192 };
  size_t parts = (n + PART - 1) / PART;
#pragma omp parallel for
  for (size_t part = 0; part < parts; part++) {
    uint32_t own[BINS] = {0};
    for (size_t i = part * PART; i < n && i < (part + 1) * PART; i++)
      own[keys[i] & 255]++;
    memcpy(places + part * BINS, own, sizeof own);
  }
  uint32_t before = 0;
  for (size_t digit = 0; digit < BINS; digit++)
    for (size_t part = 0; part < parts; part++) {
      uint32_t count = places[part * BINS + digit];
      places[part * BINS + digit] = before;
      before += count;
    }
#pragma omp parallel for
  for (size_t part = 0; part < parts; part++) {
    uint32_t own[BINS];
    memcpy(own, places + part * BINS, sizeof own);
    for (size_t i = part * PART; i < n && i < (part + 1) * PART; i++)
      sorted[own[keys[i] & 255]++] = keys[i];
  }
}

static void fill_keys(void) {
  keys = malloc(n * sizeof *keys);
  sorted = calloc(n, sizeof *sorted);
  places = calloc(n / 8192 + 1, BINS * sizeof *places);
  uint32_t state = 1;
  for (size_t i = 0; keys && i < n; i++) {
    state = state * 1664525u + 1013904223u;
    keys[i] = state >> 8 ^ state << 16;
  }
}

static void fill_bytes(void) {
  values = malloc(n);
  uint32_t state = 1;
  for (size_t i = 0; values && i < n; i++) {
    state = state * 1664525u + 1013904223u;
    values[i] = (uint8_t)(state >> 24);
  }
}

static void fill_rows(void) {
  starts = malloc((n + 1) * sizeof *starts);
  columns = malloc(n * MOST_LENGTH * sizeof *columns);
  if (!starts || !columns)
    exit(1);
  starts[0] = 0;
  for (size_t row = 0; row < n; row++)
    starts[row + 1] = starts[row] + (int32_t)(((uint32_t)row * 2654435761u >> 16) % (MOST_LENGTH + 1));
  for (int32_t k = 0; k < starts[n]; k++)
    columns[k] = (int32_t)((uint32_t)k * 2654435761u % n);
  z = uniform((size_t)starts[n], -1, 1);
}

static const struct {
  const char *name;
  void (*run)(void);
  size_t full; /* along an axis */
  int axes;
} benches[] = {{"saxpy", saxpy, (size_t)1 << 28, 1},
               {"transpose", transpose, 16384, 2},
               {"reduce_sum", reduce_sum, (size_t)1 << 28, 1},
               {"histogram", histogram, (size_t)1 << 28, 1},
               {"nbody", nbody, 32768, 2},
               {"mandelbrot", mandelbrot, 4096, 2},
               {"stencil2d", stencil2d, 16384, 2},
               {"stencil3d", stencil3d, 512, 3},
               {"radix_pass", radix_pass, (size_t)1 << 26, 1},
               {"black_scholes", black_scholes, (size_t)1 << 26, 1},
               {"spmv", spmv, (size_t)1 << 22, 1}};

static int by_size(const void *a, const void *b) {
  double p = *(const double *)a, q = *(const double *)b;
  return (p > q) - (p < q);
}

static void measure(const char *name, void (*run)(void)) {
  double times[ROUNDS + WARM];
  for (int i = 0; i < ROUNDS + WARM; i++) {
    double begin = now();
    run();
    times[i] = now() - begin;
  }
  qsort(times + WARM, ROUNDS, sizeof *times, by_size);
  printf("{\"bench\": \"%s\", \"variant\": \"openmp\", \"who\": \"clang\", \"n\": %zu, \"ms\": %.5f, \"ms_min\": %.5f, "
         "\"ok\": true}\n",
         name, n, times[WARM + ROUNDS / 2], times[WARM]);
}

int main(int argc, char **argv) {
  const char *text = getenv("SIMT_SHRINK");
  shrink = text ? atoi(text) : 0;
  for (size_t b = 0; b < sizeof benches / sizeof *benches; b++) {
    if (argc < 2 || strcmp(argv[1], benches[b].name) != 0)
      continue;
    n = benches[b].full >> shrink / benches[b].axes;
    size_t count = n;
    for (int i = 1; i < benches[b].axes && benches[b].run != nbody; i++)
      count *= n;
    x = uniform(4 * (benches[b].run == nbody ? n : 0) + count, 5, 30);
    y = uniform(3 * (benches[b].run == nbody ? n : 0) + count, 1, 100);
    z = benches[b].run == black_scholes ? uniform(count, 0.25F, 10) : NULL;
    call = uniform(count, 0, 1);
    put = uniform(count, 0, 1);
    counts = malloc(count * sizeof *counts);
    if (benches[b].run == radix_pass)
      fill_keys();
    if (benches[b].run == histogram)
      fill_bytes();
    if (benches[b].run == spmv)
      fill_rows();
    measure(benches[b].name, benches[b].run);
  }
  return 0;
}
