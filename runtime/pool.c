/* pool.c - runs the grid of a CPU kernel over a few threads.
 *
 * A launch is a job: an interval of block numbers from which the caller and the workers take chunks
 * until it is empty.  Several jobs may be active at once (Python threads launch independently);
 * workers serve whichever has blocks left.  Workers start when first needed and sleep on a condition
 * variable in between.  A child of fork() has none and starts its own.
 *
 * A kernel remembers how long its blocks took: a launch that should be over before a worker would wake up (tens of
 * microseconds) begins on the caller's thread alone, and calls for help if it takes longer after all. */
#define _GNU_SOURCE
#include "interrupt.h"
#include "tilewright/kernel_calls.h"
#include "tilewright/runtime.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
  MAX_THREADS = 256,
  CHUNKS_PER_THREAD = 8,
  SMALL_NANOSECONDS = 20000, /* a job shorter than this is not worth waking anybody */
  AWAKE_NANOSECONDS = 50000, /* as long as a thread takes to wake up */
  STACK_BYTES = 8 << 20
};

typedef struct job {
  struct job *next; /* list of active jobs */
  const tw_cpu_kernel_t *kernel;
  const int64_t *words;
  int32_t grid[8];        /* blocks and threads of one along each axis, bytes of shared memory added, and where */
  uint64_t scratch_bytes; /* with those */
  int64_t blocks, chunk;
  _Atomic int64_t taken;  /* blocks handed out */
  _Atomic int64_t failed; /* threads that had no memory for scratch */
  tw_interrupt_t interrupt;
  _Atomic int users; /* workers inside; written under the lock */
} job_t;

static struct {
  pthread_mutex_t lock;
  pthread_cond_t work; /* a job arrived */
  pthread_cond_t idle; /* a worker left a job */
  job_t *jobs;
  _Atomic unsigned arrivals; /* counts jobs; written under the lock */
  int workers;
  bool fork_handler;
} pool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0, 0, false};

/* --- how many -------------------------------------------------------------------------------------- */

/* CPUs' worth of time that a container is given, or INT_MAX: "max 100000", or "150000 100000" for one and a half. */
static int cpu_quota(void) {
  FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
  char text[64] = "";
  if (file) {
    if (!fgets(text, sizeof text, file))
      *text = 0;
    fclose(file);
  }
  char *end;
  long quota = strtol(text, &end, 10), period = end == text ? 0 : strtol(end, NULL, 10);
  if (quota <= 0 || period <= 0 || quota / period >= MAX_THREADS)
    return INT_MAX;
  return (int)((quota + period - 1) / period);
}

static int count_cpus(void) {
  cpu_set_t set;
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  if (!sched_getaffinity(0, sizeof set, &set))
    cpus = CPU_COUNT(&set);
  int quota = cpu_quota();
  if (cpus > quota)
    cpus = quota;
  return cpus > 0 ? (int)cpus : 1;
}

/* Asked once: it costs more than a small launch. */
static int available_cpus(void) {
  static _Atomic int known;
  int cpus = atomic_load_explicit(&known, memory_order_relaxed);
  if (!cpus) {
    cpus = count_cpus();
    atomic_store_explicit(&known, cpus, memory_order_relaxed);
  }
  return cpus;
}

int tw_cpu_threads(void) {
  const char *text = getenv("TILEWRIGHT_NUM_THREADS");
  long wanted = text ? strtol(text, NULL, 10) : 0;
  if (wanted <= 0)
    wanted = available_cpus();
  return wanted > MAX_THREADS ? MAX_THREADS : (int)wanted;
}

/* --- scratch --------------------------------------------------------------------------------------- */

/* One arena a thread, kept between launches and freed when the thread ends. */
typedef struct arena {
  void *bytes;
  size_t size;
} arena_t;

static pthread_key_t arena_key;
static pthread_once_t arena_once = PTHREAD_ONCE_INIT;

static void arena_free(void *arena) {
  free(((arena_t *)arena)->bytes);
  free(arena);
}

static void arena_prepare(void) { pthread_key_create(&arena_key, arena_free); }

/* At least `size` bytes, aligned to 64; false without memory.  NULL is a good answer for size 0. */
static bool scratch_get(uint64_t size, void **out_bytes) {
  *out_bytes = NULL;
  if (!size)
    return true;
  pthread_once(&arena_once, arena_prepare);
  arena_t *arena = pthread_getspecific(arena_key);
  if (!arena) {
    arena = calloc(1, sizeof *arena);
    if (!arena)
      return false;
    pthread_setspecific(arena_key, arena);
  }
  if (arena->size < size) {
    free(arena->bytes);
    size = (size + 63) & ~(uint64_t)63;
    arena->bytes = aligned_alloc(64, size);
    arena->size = arena->bytes ? size : 0;
  }
  *out_bytes = arena->bytes;
  return arena->bytes != NULL;
}

/* --- working ----------------------------------------------------------------------------------------- */

static int64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool is_finished(const job_t *job) {
  return atomic_load_explicit(&job->taken, memory_order_relaxed) >= job->blocks ||
         atomic_load_explicit(&job->failed, memory_order_relaxed) ||
         atomic_load_explicit(&job->interrupt.stopped, memory_order_relaxed);
}

/* Takes chunks until there are none, or until the clock passes `until` (0: whatever it shows). Returns how many blocks
 * this thread ran. */
static int64_t take_chunks(job_t *job, int64_t until, void *scratch) {
  int64_t done = 0;
  do {
    int64_t first = atomic_fetch_add_explicit(&job->taken, job->chunk, memory_order_relaxed);
    if (first >= job->blocks)
      break;
    int64_t last = job->blocks - first > job->chunk ? first + job->chunk : job->blocks;
    job->kernel->entry(job->words, job->grid, first, last, scratch);
    done += last - first;
    if (atomic_load_explicit(&tw_kernel_attention, memory_order_relaxed))
      tw_kernel_look();
  } while (!until || nanoseconds() < until);
  return done;
}

/* The same, unless the launch is stopped: 0 then. A launch in the middle of another one, by a signal's handler, has
 * scratch of its own. */
static int64_t run_chunks(job_t *job, int64_t until, bool is_caller) {
  void *volatile own = NULL;
  void *volatile scratch = NULL;
  volatile int64_t done = 0;
  void *arena;
  tw_run_t run = {.interrupt = &job->interrupt, .is_caller = is_caller};
  tw_run_enter(&run);
  if (run.outer && job->scratch_bytes)
    scratch = own = aligned_alloc(64, (job->scratch_bytes + 63) & ~(uint64_t)63);
  else if (scratch_get(job->scratch_bytes, &arena))
    scratch = arena;
  if (job->scratch_bytes && !scratch)
    atomic_fetch_add(&job->failed, 1);
  else if (!__builtin_setjmp(run.way_out))
    done = take_chunks(job, until, scratch);
  tw_run_leave(&run);
  free(own);
  return done;
}

/* The lock is held. */
static job_t *find_work(void) {
  for (job_t *job = pool.jobs; job; job = job->next)
    if (!is_finished(job))
      return job;
  return NULL;
}

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/* Stays awake for a moment, in which a job often comes. The lock is held, but not meanwhile. */
static void await_arrival(void) {
  unsigned known = atomic_load_explicit(&pool.arrivals, memory_order_relaxed);
  pthread_mutex_unlock(&pool.lock);
  int64_t until = nanoseconds() + AWAKE_NANOSECONDS;
  while (atomic_load_explicit(&pool.arrivals, memory_order_relaxed) == known && nanoseconds() < until)
    relax();
  pthread_mutex_lock(&pool.lock);
}

static void *worker_main(void *unused) {
  (void)unused;
  bool tired = false;
  pthread_mutex_lock(&pool.lock);
  for (;;) {
    job_t *job = find_work();
    if (!job) {
      if (tired)
        pthread_cond_wait(&pool.work, &pool.lock);
      else
        await_arrival();
      tired = !tired;
      continue;
    }
    tired = false;
    job->users++;
    pthread_mutex_unlock(&pool.lock);
    run_chunks(job, 0, false);
    pthread_mutex_lock(&pool.lock);
    if (--job->users == 0)
      pthread_cond_broadcast(&pool.idle);
  }
  return NULL;
}

static void before_fork(void) { pthread_mutex_lock(&pool.lock); }
static void after_fork_parent(void) { pthread_mutex_unlock(&pool.lock); }
static void after_fork_child(void) { /* the workers, and other callers' jobs, stayed behind */
  pthread_mutex_init(&pool.lock, NULL);
  pthread_cond_init(&pool.work, NULL);
  pthread_cond_init(&pool.idle, NULL);
  pool.jobs = NULL;
  pool.workers = 0;
}

/* The lock is held.  Fewer workers than wanted is fine: the caller works too. */
static void start_workers(int wanted) {
  if (!pool.fork_handler) {
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
    pool.fork_handler = true;
  }
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  for (pthread_t thread; pool.workers < wanted; pool.workers++)
    if (pthread_create(&thread, &attributes, worker_main, NULL))
      break;
  pthread_attr_destroy(&attributes);
}

/* The caller's part, whose time per block is what a later launch decides by: waking and waiting for
 * others is not in it, so the number does not depend on how many threads there were. */
static void run_timed(tw_cpu_kernel_t *kernel, job_t *job, int64_t limit) {
  int64_t start = nanoseconds(), done = run_chunks(job, limit ? start + limit : 0, true);
  if (!done)
    return;
  int64_t each = (nanoseconds() - start) * 1000 / done;
  atomic_store_explicit(&kernel->picoseconds, each > 0 ? each : 1, memory_order_relaxed);
}

/* The lock is held. Somebody who asks does so now and then meanwhile. */
static void wait_for_workers(job_t *job) {
  if (job->users) { /* for a last chunk */
    pthread_mutex_unlock(&pool.lock);
    int64_t until = nanoseconds() + AWAKE_NANOSECONDS;
    while (atomic_load_explicit(&job->users, memory_order_relaxed) && nanoseconds() < until)
      relax();
    pthread_mutex_lock(&pool.lock);
  }
  while (job->users) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += TW_TICK_NANOSECONDS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (!job->interrupt.watch)
      pthread_cond_wait(&pool.idle, &pool.lock);
    else if (pthread_cond_timedwait(&pool.idle, &pool.lock, &until) == ETIMEDOUT) {
      pthread_mutex_unlock(&pool.lock);
      tw_interrupt_ask(&job->interrupt);
      pthread_mutex_lock(&pool.lock);
    }
  }
}

static void run_shared(tw_cpu_kernel_t *kernel, job_t *job, int threads) {
  pthread_mutex_lock(&pool.lock);
  if (pool.workers < threads - 1)
    start_workers(threads - 1);
  job->next = pool.jobs;
  pool.jobs = job;
  pool.arrivals++;
  pthread_cond_broadcast(&pool.work);
  pthread_mutex_unlock(&pool.lock);
  run_timed(kernel, job, 0);
  pthread_mutex_lock(&pool.lock);
  job_t **link = &pool.jobs;
  while (*link != job)
    link = &(*link)->next;
  *link = job->next;
  wait_for_workers(job);
  pthread_mutex_unlock(&pool.lock);
}

/* Whether earlier launches say that the caller will be done before anybody could help. */
static bool is_small(const tw_cpu_kernel_t *kernel, int64_t blocks) {
  int64_t each = atomic_load_explicit(&kernel->picoseconds, memory_order_relaxed), total;
  return each && !__builtin_mul_overflow(each, blocks, &total) && total / 1000 < SMALL_NANOSECONDS;
}

/* Where blocks wait for each other, a stack for each thread of the grid is there. */
static tw_status_t check_cooperative(const job_t *job, int64_t blocks) {
  int64_t each = (int64_t)job->grid[3] * job->grid[4] * job->grid[5];
  if (blocks <= TW_SIMT_MOST_IN_GRID / each)
    return NULL;
  return TW_ERROR(TW_LAUNCH_ERROR,
                  "its blocks wait for each other, so that all of the grid runs at a time: %lld blocks of %lld "
                  "threads, and the CPU runs %lld of them; launch fewer, each of which does more",
                  (long long)blocks, (long long)each, (long long)(TW_SIMT_MOST_IN_GRID / each));
}

tw_status_t tw_cpu_launch(tw_cpu_kernel_t *kernel, const uint64_t *words, const uint32_t grid[3],
                          const uint32_t block[4], tw_cpu_watch_t *watch) {
  job_t job = {.kernel = kernel, .words = (const int64_t *)words, .interrupt = {.watch = watch}};
  int64_t blocks = 1;
  for (int axis = 0; axis < 3; axis++) {
    job.grid[axis] = (int32_t)grid[axis];
    job.grid[3 + axis] = block ? (int32_t)block[axis] : 1;
    if (__builtin_mul_overflow(blocks, (int64_t)grid[axis], &blocks) || blocks > INT64_MAX / 2)
      return TW_ERROR(TW_LAUNCH_ERROR, "the grid has more blocks than can be counted");
  }
  if (!blocks)
    return NULL;
  uint64_t own = (kernel->scratch_bytes + 63) & ~(uint64_t)63;
  job.grid[6] = block ? (int32_t)block[3] : 0;
  job.grid[7] = (int32_t)own;
  job.scratch_bytes = job.grid[6] ? own + block[3] : kernel->scratch_bytes;
  int64_t threads = tw_cpu_threads();
  if (kernel->cooperative) {
    TW_RETURN_IF_ERROR(check_cooperative(&job, blocks));
    job.scratch_bytes = (uint64_t)blocks * tw_simt_shared_bytes(job.grid);
    threads = 1;
  }
  if (threads > blocks)
    threads = blocks;
  job.blocks = blocks;
  /* NOLINTNEXTLINE(clang-analyzer-optin.taint.TaintedDiv): at least 2 here */
  job.chunk = threads > 1 ? blocks / (threads * CHUNKS_PER_THREAD) : blocks;
  if (job.chunk < 1)
    job.chunk = 1;
  if (watch)
    tw_watch_begin();
  if (threads == 1)
    run_timed(kernel, &job, 0);
  else if (is_small(kernel, blocks))
    run_timed(kernel, &job, SMALL_NANOSECONDS);
  if (!is_finished(&job))
    run_shared(kernel, &job, (int)threads);
  if (watch)
    tw_watch_end();
  if (atomic_load(&job.failed))
    return TW_ERROR(TW_OUT_OF_MEMORY, "out of host memory for %llu bytes of scratch per thread",
                    (unsigned long long)job.scratch_bytes);
  char *message = tw_kernel_take_assertion();
  tw_status_t failed = message ? TW_ERROR(TW_LAUNCH_ERROR, "%s", message) : NULL;
  free(message);
  return failed;
}
