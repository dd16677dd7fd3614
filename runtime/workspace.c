/* workspace.c - memory in which blocks that share a tile leave their sums (split.c), or count the tiles that they
 * take
 *
 * It begins with counters, which are zeroed once; each kernel leaves them zero. Two kernels must not use one workspace
 * at a time, so it belongs to what orders them:
 *
 *   a stream         as large as all multiprocessors can fill. MAX_STREAMS of a device keep theirs. If there are more,
 *                    the one that was used longest ago is passed on, and the new owner waits, on the GPU, for an event
 *                    behind the old one's last launch. Events are recorded only from the time when that happened first,
 *                    and the device is waited for then: the stream may be gone, and cannot be asked.
 *   the default stream    as large, and never passed on. Nothing of it must be asked, and it captures nothing.
 *   a captured graph and one of its streams    as large as its launches need. The graph may run beside anything, but
 *                    not beside itself, and owns the workspace as a user object: when it is gone with all that was made
 *                    of it and all of its runs, the workspace is free for the next owner.
 *
 * What was allocated is kept for ever. A launch has its workspace from when it takes it until it leaves it, when the
 * driver has its kernel: meanwhile it is passed on to no other stream. */
#include "module.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum {
  MAX_STREAMS = 8,
  COUNTERS = TW_SPLIT_COUNTERS * sizeof(uint32_t), /* bytes */
  GRANULE = 1 << 20
};

/* Whose it is. A graph that ends sets it free from a thread of the driver; all else happens under the lock. */
enum { FREE, OF_STREAM, OF_DEFAULT, OF_GRAPH };

typedef struct workspace {
  struct workspace *next;
  uint64_t address; /* behind the counters */
  size_t size;
  _Atomic int owner;
  unsigned long long stream, capture; /* numbers of the owner; 0: no capture. In one, the stream's handle */
  uint64_t turn;                      /* when it was taken last */
  _Atomic int launches;               /* that have taken it and not yet left it */
  CUevent event;                      /* behind the last launch that used it; NULL: the device was waited for since */
} workspace_t;

/* Of a device. */
typedef struct workspaces {
  workspace_t *first;          /* entries are added, never removed */
  int streams;                 /* that own one */
  _Atomic bool passed_on;      /* there are more streams than workspaces */
  _Atomic uint64_t of_default; /* address of the default stream's; 0: it has none yet */
  uint64_t turn;
} workspaces_t;

static workspaces_t devices[TW_MAX_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The stream or graph that asks for memory. */
typedef struct owner {
  const tw_stream_use_t *use;
  unsigned long long stream, capture;
  bool must_wait; /* the one that it would be given has not been left */
} owner_t;

static bool identify(tw_stream_use_t *use, owner_t *out) {
  *out = (owner_t){.use = use};
  if (use->state == TW_STREAM_PLAIN && tw_stream_number(use)) {
    out->stream = use->number;
    return true;
  }
  /* While a stream captures, its number may not be asked for. Its handle then stays its own, except for the handles
   * that every thread has. */
  out->stream = (uintptr_t)use->handle;
  out->capture = use->capture;
  return use->state == TW_STREAM_CAPTURES && out->stream > CU_STREAM_PER_THREAD && tw_graph_owns(use->driver);
}

/* Its own, or else the smallest free one. */
static workspace_t *find(const workspaces_t *known, const owner_t *owner, size_t size) {
  workspace_t *best = NULL;
  for (workspace_t *w = known->first; w; w = w->next) {
    int state = atomic_load_explicit(&w->owner, memory_order_acquire);
    if (w->size < size)
      continue;
    if (state != FREE && w->stream == owner->stream && w->capture == owner->capture)
      return w;
    if (state == FREE && (!best || w->size < best->size))
      best = w;
  }
  return best;
}

/* ---- a new one ----------------------------------------------------------------------------------- */

/* Zeroes counters at once, beside a capture. */
static CUresult zero_now(const tw_driver_t *driver, uint64_t memory) {
  CUstream stream;
  CUresult result = driver->stream_create(&stream, CU_STREAM_NON_BLOCKING);
  if (result)
    return result;
  result = driver->mem_set(memory, 0, COUNTERS, stream);
  CUresult ended = driver->stream_synchronize(stream);
  driver->stream_destroy(stream);
  return result ? result : ended;
}

/* NULL where there is no memory. */
static workspace_t *allocate(workspaces_t *known, const owner_t *owner, size_t size) {
  const tw_driver_t *driver = owner->use->driver;
  workspace_t *w = calloc(1, sizeof *w);
  uint64_t memory = 0;
  if (!w || driver->mem_alloc(&memory, COUNTERS + size)) {
    free(w);
    return NULL;
  }
  if (owner->use->graph ? zero_now(driver, memory) : driver->mem_set(memory, 0, COUNTERS, owner->use->handle)) {
    driver->mem_free(memory);
    free(w);
    return NULL;
  }
  w->address = memory + COUNTERS;
  w->size = size;
  w->next = known->first;
  return known->first = w;
}

/* ---- owners -------------------------------------------------------------------------------------- */

/* By the driver, when a graph is gone: calls of the driver are not allowed here. */
static void set_free(void *workspace) {
  atomic_store_explicit(&((workspace_t *)workspace)->owner, FREE, memory_order_release);
}

/* From now on it belongs to the graph. */
static bool give_to_graph(const owner_t *owner, workspace_t *w) {
  atomic_store_explicit(&w->owner, OF_GRAPH, memory_order_relaxed); /* set_free may be called by what fails */
  return tw_graph_own(owner->use, w, set_free);
}

/* The one of a stream that was used longest ago, for another stream. */
static workspace_t *pass_on(workspaces_t *known, owner_t *owner, size_t size) {
  workspace_t *oldest = NULL;
  for (workspace_t *w = known->first; w; w = w->next)
    if (atomic_load_explicit(&w->owner, memory_order_relaxed) == OF_STREAM && w->size >= size &&
        (!oldest || w->turn < oldest->turn))
      oldest = w;
  if (!oldest || (owner->must_wait = atomic_load(&oldest->launches) > 0))
    return NULL;
  if (!atomic_exchange(&known->passed_on, true) && owner->use->driver->ctx_synchronize()) {
    atomic_store(&known->passed_on, false);
    return NULL;
  }
  bool ordered = !oldest->event || !owner->use->driver->stream_wait_event(owner->use->handle, oldest->event, 0);
  return ordered ? oldest : NULL;
}

/* A free one, a new one, or for a stream that of another. */
static workspace_t *acquire(workspaces_t *known, owner_t *owner, workspace_t *free_one, size_t size) {
  workspace_t *w = free_one;
  bool for_graph = owner->use->graph != NULL, is_new_stream = !for_graph;
  if (!w && !for_graph && known->streams >= MAX_STREAMS) {
    w = pass_on(known, owner, size);
    is_new_stream = false;
  }
  if (!w && (for_graph || known->streams < MAX_STREAMS))
    w = allocate(known, owner, size);
  if (!w || (for_graph && !give_to_graph(owner, w)))
    return NULL;
  known->streams += is_new_stream;
  w->stream = owner->stream;
  w->capture = owner->capture;
  if (!for_graph)
    atomic_store_explicit(&w->owner, OF_STREAM, memory_order_relaxed);
  return w;
}

/* The default stream's, made when it is wanted first. */
static uint64_t take_default(const tw_stream_use_t *use, workspaces_t *known, size_t most) {
  uint64_t address = atomic_load_explicit(&known->of_default, memory_order_acquire);
  if (TW_LIKELY(address != 0))
    return address;
  const owner_t owner = {.use = use};
  pthread_mutex_lock(&lock);
  address = atomic_load_explicit(&known->of_default, memory_order_relaxed);
  tw_context_scope_t scope = {.driver = use->driver};
  tw_context_relax(&scope);
  workspace_t *w = address ? NULL : allocate(known, &owner, most);
  tw_context_leave(&scope);
  if (w) {
    atomic_store_explicit(&w->owner, OF_DEFAULT, memory_order_relaxed);
    atomic_store_explicit(&known->of_default, address = w->address, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
  return address;
}

static size_t most_bytes(const tw_device_t *device) { return (size_t)device->sm_count * TW_SPLIT_BYTES_PER_SM; }

bool tw_workspace_has_room(const tw_device_t *device, size_t bytes) { return bytes <= most_bytes(device); }

/* Its own, or one that it is given. */
static workspace_t *take(workspaces_t *known, owner_t *owner, size_t bytes, size_t most) {
  const tw_stream_use_t *use = owner->use;
  size_t size = use->graph ? (bytes + GRANULE - 1) / GRANULE * GRANULE : most;
  workspace_t *w = find(known, owner, use->graph ? bytes : most);
  if (!w || atomic_load_explicit(&w->owner, memory_order_acquire) == FREE) {
    tw_context_scope_t scope = {.driver = use->driver};
    tw_context_relax(&scope);
    w = acquire(known, owner, w, size);
    tw_context_leave(&scope);
  }
  if (w) {
    w->turn = ++known->turn;
    atomic_fetch_add(&w->launches, 1);
  }
  return w;
}

uint64_t tw_workspace_take(const tw_device_t *device, tw_stream_use_t *use, size_t bytes) {
  owner_t owner;
  size_t most = most_bytes(device);
  workspaces_t *known = &devices[device->ordinal];
  if (use->workspace)
    return use->workspace->address;
  if (bytes > most)
    return 0;
  if (tw_stream_is_default(use->handle))
    return take_default(use, known, most);
  if (!identify(use, &owner))
    return 0;
  do {
    owner.must_wait = false;
    pthread_mutex_lock(&lock);
    use->workspace = take(known, &owner, bytes, most);
    pthread_mutex_unlock(&lock);
    if (owner.must_wait) /* for the call of the driver of another thread */
      sched_yield();
  } while (owner.must_wait);
  return use->workspace ? use->workspace->address : 0;
}

/* Behind the launch: who passes on from now on either finds that it has ended or waits for the event. */
static void record_event(const tw_stream_use_t *use, workspace_t *w) {
  pthread_mutex_lock(&lock);
  if (w->event || !use->driver->event_create(&w->event, CU_EVENT_DISABLE_TIMING))
    use->driver->event_record(w->event, use->handle);
  pthread_mutex_unlock(&lock);
}

void tw_workspace_leave(const tw_device_t *device, tw_stream_use_t *use) {
  workspace_t *w = use->workspace;
  if (!w)
    return;
  if (!use->graph && atomic_load(&devices[device->ordinal].passed_on))
    record_event(use, w);
  use->workspace = NULL;
  atomic_fetch_sub(&w->launches, 1);
}
