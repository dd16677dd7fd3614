/* interrupt.c - see interrupt.h */
#include "interrupt.h"

#include <pthread.h>
#include <time.h>

_Atomic int32_t tw_kernel_attention;

static _Thread_local tw_run_t *running;

void tw_run_enter(tw_run_t *run) {
  run->outer = running;
  running = run;
}

void tw_run_leave(tw_run_t *run) { running = run->outer; }

void tw_interrupt_ask(tw_interrupt_t *interrupt) {
  tw_cpu_watch_t *watch = interrupt->watch;
  if (!watch || atomic_load(&interrupt->stopped) || !watch->is_interrupted(watch->user))
    return;
  watch->stopped = true;
  atomic_store(&interrupt->stopped, true);
  atomic_store(&tw_kernel_attention, 1); /* of the workers */
}

void tw_kernel_look(void) {
  tw_run_t *run = running;
  if (!run)
    return;
  if (run->is_caller && !atomic_load(&run->interrupt->stopped)) {
    atomic_store(&tw_kernel_attention, 0);
    tw_interrupt_ask(run->interrupt);
  }
  if (atomic_load(&run->interrupt->stopped))
    __builtin_longjmp(run->way_out, 1);
}

/* --- the clock --------------------------------------------------------------------------------------------------- */

enum { IDLE_TICKS = 20 }; /* it sleeps when there were no launches for so long */

static struct {
  pthread_mutex_t lock;
  pthread_cond_t wake;
  bool has_fork_handler, started;
  _Atomic bool asleep;
  _Atomic int launches;
} watch = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false, true, 0};

/* Until there is a launch. */
static void sleep_until_called(void) {
  pthread_mutex_lock(&watch.lock);
  atomic_store(&watch.asleep, true);
  while (!atomic_load(&watch.launches))
    pthread_cond_wait(&watch.wake, &watch.lock);
  atomic_store(&watch.asleep, false);
  pthread_mutex_unlock(&watch.lock);
}

static void *clock_main(void *unused) {
  (void)unused;
  for (int idle = 0;;) {
    nanosleep(&(struct timespec){.tv_nsec = TW_TICK_NANOSECONDS}, NULL);
    bool busy = atomic_load(&watch.launches) > 0;
    if (busy)
      atomic_store(&tw_kernel_attention, 1);
    idle = busy ? 0 : idle + 1;
    if (idle == IDLE_TICKS) {
      sleep_until_called();
      idle = 0;
    }
  }
  return NULL;
}

/* The child of a fork has no such thread. */
static void after_fork(void) {
  pthread_mutex_init(&watch.lock, NULL);
  pthread_cond_init(&watch.wake, NULL);
  watch.started = false;
  atomic_store(&watch.asleep, true);
  atomic_store(&watch.launches, 0);
  atomic_store(&tw_kernel_attention, 0);
}

/* Without the thread launches run as well; nothing stops them. */
static void call_clock(void) {
  pthread_t thread;
  pthread_mutex_lock(&watch.lock);
  if (!watch.has_fork_handler)
    watch.has_fork_handler = !pthread_atfork(NULL, NULL, after_fork);
  if (!watch.started && !pthread_create(&thread, NULL, clock_main, NULL)) {
    pthread_detach(thread);
    watch.started = true;
    atomic_store(&watch.asleep, false);
  }
  pthread_cond_signal(&watch.wake);
  pthread_mutex_unlock(&watch.lock);
}

void tw_watch_begin(void) {
  atomic_fetch_add(&watch.launches, 1);
  if (atomic_load(&watch.asleep))
    call_clock();
}

void tw_watch_end(void) {
  if (atomic_fetch_sub(&watch.launches, 1) == 1)
    atomic_store(&tw_kernel_attention, 0);
}
