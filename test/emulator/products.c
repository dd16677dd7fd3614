/* products.c - matrices: how lanes load and store them, and their products, by a warp or a warpgroup */
#include "threads.h"

#include <math.h>

/* ---- matrices ---------------------------------------------------------------------------------------- */

/* Each lane tells the others a row, which counts as loaded: of one that it writes, too, a fence is wanted. */
static void tell_row(const void *row) {
  emu_load(row);
  threads[current].slot[1] = (uint64_t)(uintptr_t)row;
  emu_warp();
}

/* Element `i`, of two, that the lane has of matrix m. */
static uint16_t *element_of_row(int m, int i, int transposed) {
  int first = current / 32 * 32, lane = current % 32;
  int r = transposed ? lane % 4 * 2 + i : lane / 4, c = transposed ? lane / 4 : lane % 4 * 2 + i;
  return (uint16_t *)(uintptr_t)threads[first + m * 8 + r].slot[1] + c;
}

void emu_ldmatrix(const void *row, int32_t *out, int32_t count, int32_t transposed) {
  emu_aligned((uint64_t)(uintptr_t)row, 16);
  if (current % 32 < 8 * count)
    emu_reads((uint64_t)(uintptr_t)row, 16);
  tell_row(row);
  for (int m = 0; m < count; m++) {
    uint16_t pair[2];
    for (int i = 0; i < 2; i++)
      pair[i] = *element_of_row(m, i, transposed);
    memcpy(&out[m], pair, 4);
  }
  emu_warp();
}

void emu_stmatrix(void *row, const int32_t *in, int32_t count, int32_t transposed) {
  emu_aligned((uint64_t)(uintptr_t)row, 16);
  tell_row(row);
  for (int m = 0; m < count; m++) {
    uint16_t pair[2];
    memcpy(pair, &in[m], 4);
    for (int i = 0; i < 2; i++)
      *element_of_row(m, i, transposed) = pair[i];
  }
  emu_warp();
  if (current % 32 < 8 * count)
    emu_writes((uint64_t)(uintptr_t)row, 16);
}

typedef struct {
  unsigned char bytes[64];
} registers_t;
static registers_t operands[MAX_THREADS][3];

/* Element (row, k) of A, rows of 16 (8 for f64), or (k, column) of B: the register layouts of the PTX manual. */
static double a_at(int first, const char *type, int m, int row, int k) {
  int bits = bits_of(type), pack = bits >= 32 ? 1 : 32 / bits, group = 4 * pack;
  int lane = row % 8 * 4 + k % group / pack, half = k / group;
  int reg = m == 8 ? half : row / 8 + 2 * half;
  return element(type, operands[first + lane][0].bytes, reg * pack + k % pack);
}

static double b_at(int first, const char *type, int k, int column) {
  int bits = bits_of(type), pack = bits >= 32 ? 1 : 32 / bits, group = 4 * pack;
  return element(type, operands[first + column * 4 + k % group / pack][1].bytes, k / group * pack + k % pack);
}

/* ---- products of warpgroups -------------------------------------------------------------------------- */

/* Where element (row or column, k) of an operand in shared memory is, by its descriptor: in lines of 128, 64 or 32
 * bytes, whose pieces of 16 are exchanged. Of 16-bit elements m or n may be contiguous. */
static int64_t offset_of(int64_t descriptor, const char *type, int at, int k, int mn_major) {
  enum { FIELD = 0x3FFF, ADDRESS_MASK = 0x3FFFF };
  int64_t start = (descriptor & FIELD) << 4, leading = (descriptor >> 16 & FIELD) << 4,
          stride = (descriptor >> 32 & FIELD) << 4, line = 256 >> ((uint64_t)descriptor >> 62), wide = line / 2;
  int64_t address = mn_major ? start + at % wide * 2 + at / wide * leading + k % 8 * line + k / 8 * stride
                             : start + at % 8 * line + at / 8 * stride + k * (bits_of(type) / 8);
  address ^= (address >> 7 & (line / 16 - 1)) << 4;
  return (address - (int64_t)(uintptr_t)emu_shared) & ADDRESS_MASK;
}

/* The pattern in which pieces are exchanged begins at a multiple of eight lines, within the first of which k moves;
 * there is a swizzle, and no other bits are set (but a carry of the address, which a GPU's shared memory is too small
 * for). */
static void check_descriptor(int64_t descriptor) {
  enum { FIELDS_SHIFT = 46, FIELDS_MASK = 0xFFFF, FIELD = 0x3FFF, LINES = 8 };
  int64_t start = (descriptor & FIELD) << 4, line = 256 >> ((uint64_t)descriptor >> 62);
  if (line == 256 || (descriptor >> FIELDS_SHIFT & FIELDS_MASK) || (descriptor >> 30 & 3))
    give_up("a product has the descriptor %llx", (unsigned long long)descriptor);
  if (start / line % LINES != 0)
    give_up("a product reads from line %lld of a pattern of %d lines of %lld bytes", (long long)(start / line % LINES),
            LINES, (long long)line);
}

static double described(int64_t descriptor, const char *type, int at, int k, int mn_major) {
  return element(type, emu_shared + offset_of(descriptor, type, at, k, mn_major), 0);
}

/* One instruction, d += a * b, that a thread has started. */
typedef struct {
  int32_t n, depth, in_registers, zero, a_major, b_major, lhs[4], sum, word, computed; /* word: its first of the sum */
  const char *acc, *a_type, *b_type;
  int64_t a, b, group;
} product_t;

enum { SUMS = 16, MAX_PRODUCTS = 512, SUM_WORDS = 512, SERIALS = 1024, GROUP_THREADS = 128, RECENT = 1024 };

/* The registers of an accumulator while products add to it. The program has tokens for them meanwhile, which no sum of
 * numbers is: floats that are no numbers, and integers near the least one. A wait gives it the sums for its tokens,
 * if they are done. Other uses of the tokens show in the result. */
typedef struct {
  const char *acc;
  int serial, words, under_way; /* serial 0: unused */
  int32_t value[SUM_WORDS];
} sum_t;

static int64_t groups_done[MAX_THREADS]; /* of products, that a thread has waited for */
typedef struct {
  sum_t sums[SUMS];
  product_t products[MAX_PRODUCTS];
  int num_products, next_sum, next_serial;
} flight_t;
static flight_t flights[MAX_THREADS];

/* The products that warpgroups have started; by the number of the first thread. */
typedef struct {
  int started;
  uint64_t forms[RECENT];
} order_t;
static order_t orders[MAX_THREADS];
static int started[MAX_THREADS];

void forget_products(void) {
  for (int t = 0; t < num_threads(); t++) {
    flights[t].num_products = started[t] = orders[t].started = 0;
    groups_done[t] = 0;
    for (int i = 0; i < SUMS; i++)
      flights[t].sums[i].serial = 0;
  }
}

static int is_half(const sum_t *s) { return s->acc[1] == '1'; }

static int32_t token_of(const sum_t *s, int i) {
  uint32_t half = (uint32_t)(s->serial << 8 | i), bits = (uint32_t)(s->serial << 9 | i);
  if (is_half(s))
    return (int32_t)(0xFE00FE00u | half >> 9 << 16 | (half & 0x1FF));
  return (int32_t)((s->acc[0] == 's' ? 0x80000000u : 0x7FC00000u) | bits);
}

/* Which word of the sum has this token, or -1. */
static int word_of(const sum_t *s, int32_t token) {
  int i = s->serial == 0 ? 0 : is_half(s) ? token & 255 : token & 511;
  return s->serial != 0 && i < s->words && token_of(s, i) == token ? i : -1;
}

static sum_t *sum_of(int32_t token) {
  uint32_t t = (uint32_t)token, top = t & 0xFFC00000u;
  if (top != 0x7FC00000u && top != 0x80000000u && (t & 0xFE00FE00u) != 0xFE00FE00u)
    return NULL;
  for (int i = 0; i < SUMS; i++)
    if (word_of(&flights[current].sums[i], token) >= 0)
      return &flights[current].sums[i];
  return NULL;
}

/* The accumulator of products that begin: one under way, whose tokens these are, or other registers. Products that do
 * not add to what is there take any. Returns its number. */
int32_t emu_wgmma_begin(const int32_t *d, int32_t words, const char *acc, int32_t zero) {
  sum_t *s = sum_of(d[0]);
  int whole = s != NULL && !strcmp(s->acc, acc) && s->words == words;
  for (int i = 0; i < words; i++) {
    whole = whole && word_of(s, d[i]) == i;
    if (!whole && !zero && sum_of(d[i]))
      give_up("a product adds to word %d of a sum that is not the one that it had", i);
  }
  if (whole)
    return (int32_t)(s - flights[current].sums);
  int at = flights[current].next_sum;
  while (flights[current].sums[at].under_way && flights[current].sums[at].serial)
    at = (at + 1) % SUMS;
  flights[current].next_sum = (at + 1) % SUMS;
  s = &flights[current].sums[at];
  *s = (sum_t){.acc = acc, .words = words};
  memcpy(s->value, d, (size_t)words * 4);
  return at;
}

/* From now on these tokens stand for the sum, and no others. */
void emu_wgmma_end(int32_t *d, int32_t sum) {
  sum_t *s = &flights[current].sums[sum];
  s->serial = flights[current].next_serial = flights[current].next_serial % (SERIALS - 1) + 1;
  for (int i = 0; i < s->words; i++)
    d[i] = token_of(s, i);
}

/* For the rows of this warp. */
static void compute(const product_t *p) {
  int first = current / 32 * 32, lane = current % 32, row_of_warp = current % per_block / 32 % 4 * 16;
  void *d = flights[current].sums[p->sum].value + p->word;
  if (p->in_registers) {
    memcpy(operands[current][0].bytes, p->lhs, sizeof p->lhs);
    emu_warp();
  }
  for (int half = 0; half < 2; half++)
    for (int column = lane % 4 * 2; column < p->n; column += column % 2 ? 7 : 1) {
      int row = lane / 4 + 8 * half, at = column / 8 * 4 + half * 2 + column % 2;
      double sum = p->zero ? 0 : element(p->acc, d, at), product[32];
      for (int k = 0; k < p->depth; k++)
        product[k] = (p->in_registers ? a_at(first, p->a_type, 16, row, k)
                                      : described(p->a, p->a_type, row_of_warp + row, k, p->a_major)) *
                     described(p->b, p->b_type, column, k, p->b_major);
      if (bits_of(p->a_type) == 8 && !strcmp(p->acc, "f32"))
        sum = sum_of_narrow(sum, product, p->depth);
      else
        for (int k = 0; k < p->depth; k++)
          sum += product[k];
      if (!strcmp(p->acc, "s32"))
        ((int32_t *)d)[at] = (int32_t)(int64_t)sum;
      else if (!strcmp(p->acc, "f16"))
        ((_Float16 *)d)[at] = (_Float16)sum;
      else
        ((float *)d)[at] = (float)sum;
    }
  if (p->in_registers)
    emu_warp();
}

/* The lines [first, first + count) of an operand in shared memory are read until the product is waited for: each
 * thread of the warp notes some. */
static void note_reads(int64_t descriptor, const char *type, int first, int count, int depth, int mn_major) {
  int piece = 8 * CHUNK_BYTES / bits_of(type), per_line = mn_major ? depth : depth / piece;
  int total = mn_major ? count / piece * depth : count * per_line;
  for (int i = current % 32; i < total; i += 32) {
    int line = first + i / per_line * (mn_major ? piece : 1), k = i % per_line * (mn_major ? 1 : piece);
    note_read(offset_of(descriptor, type, line, k, mn_major));
  }
}

/* The first thread of a thread's warpgroup. */
static int group_of(int thread) { return thread - thread % per_block % GROUP_THREADS; }

/* The four warps of a warpgroup start the same products, in one order: the first to start one says which it is. */
static void check_group(const product_t *p) {
  const uint64_t form = (uint64_t)p->a * 3 + (uint64_t)p->b * 5 + (uint64_t)(p->n << 8 | p->depth) * 7;
  order_t *all = &orders[group_of(current)];
  int number = started[current]++;
  if (number == all->started)
    all->forms[all->started++ % RECENT] = form;
  if (all->started - number > RECENT || all->forms[number % RECENT] != form)
    give_up("it starts another product than thread %d of its warpgroup", group_of(current));
}

void check_products_alike(void) {
  for (int t = 0; t < num_threads(); t++)
    if (started[t] != started[group_of(t)])
      give_up("thread %d has started %d products, thread %d of its warpgroup %d", t, started[t], group_of(t),
              started[group_of(t)]);
}

/* Starts d = a * b + d. It is computed at once in odd blocks, else when it is waited for. lhs is four words of
 * registers, or has a descriptor. */
void emu_wgmma(int32_t sum, int32_t word, int32_t n, int32_t depth, const char *acc, const char *a_type,
               const char *b_type, int64_t a, const int32_t *lhs, int64_t b, int32_t zero, int32_t a_major,
               int32_t b_major) {
  if (flights[current].num_products == MAX_PRODUCTS)
    give_up("%d products are under way", MAX_PRODUCTS);
  product_t *p = &flights[current].products[flights[current].num_products++];
  *p = (product_t){.n = n,
                   .depth = depth,
                   .in_registers = lhs != NULL,
                   .zero = zero,
                   .a_major = a_major,
                   .b_major = b_major,
                   .sum = sum,
                   .word = word,
                   .computed = at_once,
                   .acc = acc,
                   .a_type = a_type,
                   .b_type = b_type,
                   .a = a,
                   .b = b,
                   .group = groups_done[current] + reads[current].closed};
  check_descriptor(b);
  if (!lhs)
    check_descriptor(a);
  check_group(p);
  if (lhs)
    memcpy(p->lhs, lhs, sizeof p->lhs);
  else
    note_reads(a, a_type, current % per_block / 32 % 4 * 16, 16, depth, a_major);
  note_reads(b, b_type, 0, n, depth, b_major);
  flights[current].sums[sum].under_way++;
  if (at_once)
    compute(p);
}

/* Products of these groups end, in order. */
static void finish_products(void) {
  int kept = 0;
  for (int i = 0; i < flights[current].num_products; i++) {
    product_t *p = &flights[current].products[i];
    if (p->group >= groups_done[current]) {
      flights[current].products[kept++] = *p;
      continue;
    }
    if (!p->computed)
      compute(p);
    flights[current].sums[p->sum].under_way--;
  }
  flights[current].num_products = kept;
}

/* All threads of the warp have waited when one goes on. */
void emu_wgmma_wait(int32_t pending) {
  int done = reads[current].closed - pending;
  if (done > 0) {
    groups_done[current] += done;
    finish_products();
    forget_groups(done);
  }
  emu_warp();
}

/* Sums for the tokens of those that are done. */
void emu_wgmma_take(int32_t *values, int32_t words) {
  for (int i = 0; i < words; i++) {
    const sum_t *s = sum_of(values[i]);
    if (s != NULL && s->under_way == 0)
      values[i] = s->value[word_of(s, values[i])];
  }
}

void emu_mma(int32_t m, int32_t k, const char *types[4], const void *a, const void *b, const void *c, void *d,
             const int32_t sizes[3]) {
  int first = current / 32 * 32, lane = current % 32;
  memcpy(operands[current][0].bytes, a, (size_t)sizes[0]);
  memcpy(operands[current][1].bytes, b, (size_t)sizes[1]);
  emu_warp();
  for (int i = 0; i < m / 4; i++) {
    int row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
    double sum = element(types[0], c, i);
    for (int j = 0; j < k; j++)
      sum += a_at(first, types[1], m, row, j) * b_at(first, types[2], j, column);
    if (!strcmp(types[0], "f64"))
      ((double *)d)[i] = sum;
    else if (!strcmp(types[0], "s32"))
      ((int32_t *)d)[i] = (int32_t)(int64_t)sum;
    else if (!strcmp(types[0], "f16"))
      ((_Float16 *)d)[i] = (_Float16)sum;
    else
      ((float *)d)[i] = (float)sum;
  }
  emu_warp();
}
