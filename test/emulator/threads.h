/* threads.h - what the files of the emulator share: the threads of a cluster, and what they have under way */
#ifndef TILEWRIGHT_TEST_EMULATOR_THREADS_H
#define TILEWRIGHT_TEST_EMULATOR_THREADS_H

#include "kernel.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 4096, STACK_BYTES = 1 << 19, SHARED_BYTES = 1 << 18, MAX_COPIES = 1024, GARBAGE = 0xCB };
enum { MOST_MEMBERS = 64, NAMED_BARRIERS = 16, ANY_SITE = -1 };

extern unsigned char emu_shared[SHARED_BYTES];
extern const kernel_t *kernel; /* that runs */

/* --- threads.c --- */

typedef struct {
  void *to;
  const void *from;
  int bytes, read, group;
} copy_t;

typedef void *place_t[5]; /* where code goes on, for the compiler's own setjmp, which makes no system call */

typedef struct {
  place_t place;
  bool begun; /* it has a fiber, which plays this thread of one block after another */
  int state;
  uint64_t slot[4];
  uint32_t mask; /* lanes that it meets */
  copy_t copies[MAX_COPIES];
  int num_copies, group;
  int id, count;       /* of the named barrier at which it waits, and how many threads meet there */
  int barrier, parity; /* of the barrier that counts at which it waits */
  int site;      /* the last instruction that all lanes of a warp have to come to together; ANY_SITE: of no such */
  bool goes_on;  /* the kernel before has ended: it has waited for that, or need not */
  int registers; /* that it has asked for; 0: those of the launch */
  int arrivals, waits; /* at the barrier of the cluster */
} thread_t;

extern thread_t threads[MAX_THREADS];
extern int current;         /* the thread that runs */
extern int per_block;       /* threads */
extern int members, member; /* blocks that run together, and the one whose shared memory is at emu_shared */
extern int at_once;         /* whether what may be late comes at once, as in odd blocks */

void enter(int m);        /* block m of the cluster runs */
int first_thread(int m);  /* of block m */
int num_threads(void);    /* of the cluster */
int row_of_program(void); /* the thread's block of the program, of those that start as one */
void check_runs(int m);   /* gives up if block m has ended */
void emu_warp(void);      /* the threads of a warp meet */
bool emu_elect(void);
void check_bounds(const void *at, int64_t bytes); /* gives up behind the block's shared memory, if it is in that */
void check_goes_on(const void *at);               /* gives up where memory of others is accessed too early */
void check_no_barrier(int m, const void *to, int64_t bytes); /* gives up where a barrier that counts lies */
__attribute__((noreturn, format(printf, 1, 2))) void give_up(const char *format, ...);

typedef struct {
  int ready, arrivals, pending, phase, number;
  int64_t bytes; /* announced and not here yet */
} barrier_t;

barrier_t *barrier_of(int m, const void *pointer); /* of block m, at the place that the pointer names */
void settle(barrier_t *b);                         /* ends the phase when all arrivals and bytes are here */
void emu_mbarrier_arrive(void *pointer, int32_t bytes);

/* --- copies.c --- */

enum { CHUNK_BYTES = 16, CHUNKS = SHARED_BYTES / CHUNK_BYTES, WORD_BITS = 64, MAX_GROUPS = 8 };

/* Groups of products that a thread has not waited for, oldest first, and the one that is still open. */
typedef struct {
  uint64_t groups[MAX_GROUPS][CHUNKS / WORD_BITS];
  int closed;
  uint64_t loads[CHUNKS / WORD_BITS]; /* the thread's own, since its last fence */
} reads_t;
extern reads_t reads[MAX_THREADS];

void emu_load(const void *from);
void emu_aligned(uint64_t address, int64_t bytes); /* gives up where a GPU would, too */
void emu_fence(void);
int32_t emu_tf32(float x);
void note_read(int64_t offset); /* of shared memory, by a product */
void forget_groups(int done);   /* of the thread's oldest groups of products, which are done */
void make_maps(const int64_t *words);
bool deliver_oldest(void); /* what the accelerator has had to do for longest; whether there was something */
void forget_copies(void);
void check_copies_done(void); /* gives up if a block ends while some are under way */

/* --- products.c --- */

void forget_products(void);
void check_products_alike(void); /* gives up where warps of a group have started other products */

/* --- races.c: threads come to a place where they meet, and go on; what is read and written --- */

void forget_races(void);
void race_come_block(void);
void race_go_block(int thread);
void race_come_name(int id);
void race_go_name(int thread, int id);
void race_end_name(int m, int id);
void race_come_warp(void);
void race_go_warp(void);
void race_come_cluster(int phase);
void race_go_cluster(int thread, int phase);
int race_new_barrier(void);    /* its number */
void race_show_barriers(void); /* those that the thread has set up, to the accelerator */
void race_use_barrier(int barrier, bool by_accelerator);
void race_wait_for(int barrier, int parity);
void race_come_barrier(int barrier);
void race_end_phase(int barrier);
void race_go_barrier(int thread, int barrier);
void emu_order(void);
void race_fence(void);
void emu_reads(uint64_t address, int64_t bytes);
void emu_writes(uint64_t address, int64_t bytes);
void race_write(const void *to, const void *values, int64_t bytes, int m);
void race_begin_cp_async(const void *to, const void *from, int64_t bytes, int64_t read);
void race_end_cp_async(const void *to, int64_t bytes);
void race_begin_copy(const void *to, int64_t bytes, int m, int barrier);
void race_end_copy(int barrier);
void race_begin_read(const void *from, int64_t bytes);
void race_end_read(const void *from, int64_t bytes);
void race_wait_products(void);
void race_end_product(const void *from, int64_t bytes);

/* --- numbers.c --- */

double small_float(unsigned bits, int exponent_bits, int mantissa_bits);
double element(const char *type, const unsigned char *at, int i);
int bits_of(const char *type);
double sum_of_narrow(double sum, const double *product, int count);

#endif
