/* copies.c - copies that take their time, by the tensor memory accelerator or of a thread's own, and what they may not
 * overtake */
#include "threads.h"

/* ---- what products under way read -------------------------------------------------------------------- */

reads_t reads[MAX_THREADS];

static bool has(const uint64_t *set, int64_t chunk) { return set[chunk / WORD_BITS] >> chunk % WORD_BITS & 1; }

static void forget_reads(void) {
  for (int t = 0; t < num_threads(); t++) {
    reads[t].closed = 0;
    memset(reads[t].groups[0], 0, sizeof reads[t].groups[0]);
    memset(reads[t].loads, 0, sizeof reads[t].loads);
  }
}

static void note(uint64_t *set, int64_t offset) {
  int64_t chunk = offset / CHUNK_BYTES;
  set[chunk / WORD_BITS] |= (uint64_t)1 << chunk % WORD_BITS;
}

void note_read(int64_t offset) {
  note(reads[current].groups[reads[current].closed], offset);
  race_begin_read(emu_shared + offset, CHUNK_BYTES);
}

static bool reads_later(int64_t chunk, int done) {
  for (int g = done; g <= reads[current].closed; g++)
    if (has(reads[current].groups[g], chunk))
      return true;
  return false;
}

void forget_groups(int done) {
  reads_t *own = &reads[current];
  race_wait_products();
  for (int64_t chunk = 0; chunk < CHUNKS; chunk++)
    for (int g = 0; g < done; g++)
      if (own->groups[g][chunk / WORD_BITS] && has(own->groups[g], chunk) && !reads_later(chunk, done)) {
        race_end_product(emu_shared + chunk * CHUNK_BYTES, CHUNK_BYTES);
        break;
      }
  own->closed -= done;
  memmove(own->groups, own->groups[done], (size_t)(own->closed + 1) * sizeof own->groups[0]);
}

void emu_load(const void *from) { note(reads[current].loads, (const unsigned char *)from - emu_shared); }

void emu_aligned(uint64_t address, int64_t bytes) {
  if (address % (uint64_t)bytes != 0)
    give_up("a load or store of %lld bytes that is not aligned", (long long)bytes);
}

void emu_fence(void) { memset(reads[current].loads, 0, sizeof reads[current].loads); }

/* Where these bytes are in the set, or -1. */
static int64_t first_of(const uint64_t *set, const void *to, int64_t bytes) {
  int64_t from = (const unsigned char *)to - emu_shared, last = (from + bytes - 1) / CHUNK_BYTES;
  for (int64_t chunk = from / CHUNK_BYTES; chunk <= last; chunk++)
    if (has(set, chunk))
      return chunk * CHUNK_BYTES;
  return -1;
}

/* A copy into these bytes of block m begins. */
static void check_unread(int m, const void *to, int64_t bytes) {
  for (int t = first_thread(m); t < first_thread(m + 1); t++)
    for (int g = 0; g <= reads[t].closed; g++) {
      int64_t at = first_of(reads[t].groups[g], to, bytes);
      if (at >= 0)
        give_up("a copy to %lld, where a product that thread %d has not waited for still reads", (long long)at, t);
    }
}

/* The accelerator begins to write these bytes of block m. */
static void check_fenced(int m, const void *to, int64_t bytes) {
  for (int t = first_thread(m); t < first_thread(m + 1); t++) {
    int64_t at = first_of(reads[t].loads, to, bytes);
    if (at >= 0)
      give_up("a copy to %lld, which thread %d has loaded without a fence since", (long long)at, t);
  }
}

void emu_wgmma_commit(void) {
  int next = ++reads[current].closed;
  if (next == MAX_GROUPS)
    give_up("%d groups of products are under way", next);
  memset(reads[current].groups[next], 0, sizeof reads[current].groups[next]);
}

/* ---- copies by the tensor memory accelerator --------------------------------------------------------- */

enum { MAX_MAPS = 16, MAX_BOXES = 4096 };

typedef struct {
  map_form_t form;
  const unsigned char *base;
  int64_t extents[MAX_RANK], strides[MAX_RANK]; /* strides in bytes */
} map_t;

typedef struct {
  unsigned char *to;
  const map_t *map;
  const void *barrier;
  int at[MAX_RANK];
  unsigned members; /* a bit for each block that it goes to */
} box_t;

static map_t maps[MAX_MAPS];
static box_t boxes[MAX_BOXES]; /* under way, oldest first */
static int num_boxes;

void *emu_map(int32_t number) { return &maps[number]; }

/* What a tensor map may say of a box. */
static void check_box(const map_form_t *form) {
  enum { MOST = 256 };
  int line = form->box[0] * form->bytes;
  for (int d = 0; d < form->rank; d++)
    if (form->box[d] < 1 || form->box[d] > MOST)
      give_up("a box has %d elements along axis %d", form->box[d], d);
  if (line % 16 != 0 || (form->swizzle && line > form->swizzle))
    give_up("a box has lines of %d bytes, swizzled by %d", line, form->swizzle);
}

void make_maps(const int64_t *words) {
  for (int i = 0; i < kernel->num_maps; i++) {
    map_t *m = &maps[i];
    m->form = kernel->maps[i];
    const int64_t *array = words + m->form.word;
    m->base = (const unsigned char *)(uintptr_t)array[0];
    for (int d = 0; d < m->form.rank; d++) {
      m->extents[d] = array[1 + m->form.axes[d]];
      m->strides[d] = array[1 + m->form.rank + m->form.axes[d]] * m->form.bytes;
      if (m->extents[d] < 1 ||
          (d ? m->extents[d] > 1 && (m->strides[d] % 16 || m->strides[d] <= 0) : m->strides[d] != m->form.bytes))
        give_up("no tensor map describes the array of word %d", m->form.word);
    }
    if ((uintptr_t)m->base % 16)
      give_up("the array of word %d is not aligned", m->form.word);
    check_box(&m->form);
  }
}

static int64_t elements_of(const map_form_t *form) {
  int64_t count = 1;
  for (int d = 0; d < form->rank; d++)
    count *= form->box[d];
  return count;
}

static int64_t bytes_of(const box_t *b) { return elements_of(&b->map->form) * b->map->form.bytes; }

/* Where element i of a box lies in shared memory, as an offset, and in the array, in bytes; whether it is inside. */
static int element_of(const box_t *b, int64_t i, int64_t *offset, int64_t *at) {
  const map_form_t *form = &b->map->form;
  int64_t mask = form->swizzle / 16 - (form->swizzle != 0);
  int inside = 1;
  *offset = b->to - emu_shared + i * form->bytes;
  *offset ^= (*offset >> 7 & mask) << 4;
  *at = 0;
  for (int d = 0; d < form->rank; d++) {
    int64_t index = b->at[d] + i % form->box[d];
    i /= form->box[d];
    inside = inside && index >= 0 && index < b->map->extents[d];
    *at += index * b->map->strides[d];
  }
  return inside;
}

static void copy_element(unsigned char *to, const unsigned char *from, const map_form_t *form) {
  float x;
  int32_t rounded;
  memcpy(to, from, (size_t)form->bytes);
  if (!form->rounds)
    return;
  memcpy(&x, from, sizeof x);
  rounded = emu_tf32(x);
  memcpy(to, &rounded, sizeof rounded);
}

static void deliver_to(int m, const box_t *b) {
  int before = member;
  enter(m);
  int64_t count = elements_of(&b->map->form), bytes = b->map->form.bytes, offset, from;
  for (int64_t i = 0; i < count; i++)
    if (element_of(b, i, &offset, &from))
      copy_element(emu_shared + offset, b->map->base + from, &b->map->form);
    else
      memset(emu_shared + offset, 0, (size_t)bytes);
  barrier_t *barrier = barrier_of(m, b->barrier);
  barrier->bytes -= count * bytes;
  race_end_copy(barrier->number);
  settle(barrier);
  enter(before);
}

static void deliver(const box_t *b) {
  for (int m = 0; m < members; m++)
    if (b->members >> m & 1) {
      if (members > 1)
        check_runs(m);
      deliver_to(m, b);
    }
}

bool deliver_oldest(void) {
  if (num_boxes == 0)
    return false;
  deliver(&boxes[0]);
  memmove(boxes, boxes + 1, (size_t)--num_boxes * sizeof *boxes);
  return true;
}

/* `everywhere`: a bit for each block of the cluster; 0: to this one. */
void emu_tma(void *to, void *map, void *barrier, const int32_t *at, int32_t rank, int32_t everywhere) {
  box_t b = {to, map, barrier, {0}, everywhere ? (unsigned)everywhere : 1u << member};
  if (((unsigned char *)to - emu_shared) % 128 != 0 || rank != b.map->form.rank)
    give_up("a copy to %d of rank %d", (int)((unsigned char *)to - emu_shared), (int)rank);
  memcpy(b.at, at, (size_t)rank * sizeof *at);
  check_goes_on(b.map->base);
  int64_t bytes = bytes_of(&b);
  for (int m = 0; m < members; m++)
    if (b.members >> m & 1) {
      check_unread(m, to, bytes);
      check_fenced(m, to, bytes);
      race_begin_copy(to, bytes, m, barrier_of(m, barrier)->number);
    }
  if (num_boxes == MAX_BOXES)
    give_up("too many copies are under way");
  boxes[num_boxes++] = b;
  if (at_once)
    deliver_oldest();
}

/* Boxes that a thread has asked to be stored, in groups of one: the accelerator reads them as late as the thread lets
 * it, or, in odd blocks, at once. */
enum { MAX_STORES = 64 };
static struct {
  box_t boxes[MAX_STORES];
  int num;
} stores[MAX_THREADS];

static void store_box(const box_t *b) {
  int64_t count = elements_of(&b->map->form), offset, to;
  for (int64_t i = 0; i < count; i++)
    if (element_of(b, i, &offset, &to))
      memcpy((unsigned char *)b->map->base + to, emu_shared + offset, (size_t)b->map->form.bytes);
}

void emu_store_wait(int32_t pending) {
  int done = stores[current].num - pending;
  for (int i = 0; i < done; i++) {
    store_box(&stores[current].boxes[i]);
    race_end_read(stores[current].boxes[i].to, bytes_of(&stores[current].boxes[i]));
  }
  if (done > 0) {
    memmove(stores[current].boxes, stores[current].boxes + done, (size_t)pending * sizeof(box_t));
    stores[current].num = pending;
  }
}

void emu_store(void *from, void *map, const int32_t *at, int32_t rank, _Bool first) {
  box_t b = {from, map, NULL, {0}, 0};
  if (!first || !emu_elect())
    return;
  if (((unsigned char *)from - emu_shared) % 128 != 0 || rank != b.map->form.rank)
    give_up("a copy from %d of rank %d", (int)((unsigned char *)from - emu_shared), (int)rank);
  memcpy(b.at, at, (size_t)rank * sizeof *at);
  check_goes_on(b.map->base);
  if (stores[current].num == MAX_STORES)
    give_up("too many stores are under way");
  stores[current].boxes[stores[current].num++] = b;
  race_begin_read(from, bytes_of(&b));
  if (at_once)
    emu_store_wait(0);
}

/* ---- asynchronous copies ----------------------------------------------------------------------------- */

void emu_copy(void *to, const void *from, int32_t bytes, int32_t read) {
  thread_t *t = &threads[current];
  if (t->num_copies == MAX_COPIES)
    abort();
  emu_aligned((uint64_t)(uintptr_t)to, bytes);
  emu_aligned((uint64_t)(uintptr_t)from, bytes);
  check_unread(member, to, bytes);
  race_begin_cp_async(to, from, bytes, read);
  t->copies[t->num_copies++] = (copy_t){to, from, bytes, read, t->group};
}

void emu_commit(void) { threads[current].group++; }

void emu_wait(int32_t pending) {
  thread_t *t = &threads[current];
  int kept = 0;
  for (int i = 0; i < t->num_copies; i++) {
    copy_t *c = &t->copies[i];
    if (c->group >= t->group - pending) {
      t->copies[kept++] = *c;
      continue;
    }
    memset(c->to, 0, (size_t)c->bytes);
    memcpy(c->to, c->from, (size_t)c->read);
    race_end_cp_async(c->to, c->bytes);
  }
  t->num_copies = kept;
}

/* The arrival that stands for this thread's copies, when they are there. */
void emu_copies_arrive(void *pointer) {
  emu_commit();
  emu_wait(0);
  emu_mbarrier_arrive(pointer, 0);
}

/* ---- blocks ------------------------------------------------------------------------------------------ */

void forget_copies(void) {
  num_boxes = 0;
  forget_reads();
}

void check_copies_done(void) {
  if (num_boxes)
    give_up("the block ends while %d copies to it are under way", num_boxes);
  for (int i = 0; i < num_threads(); i++)
    if (stores[i].num)
      give_up("the block ends before %d boxes of thread %d were read", stores[i].num, i);
}
