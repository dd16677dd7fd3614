/* cache.c - compiled kernels on disk, found by a 128-bit key.
 *
 * One file an entry, named by its key: header, then the bytes.  A file is written under another name
 * and renamed, so readers see a whole entry or none, however many processes work at once; nothing
 * is locked and nothing is synced, because a checksum tells a damaged entry from a good one.
 * What the cache holds is run as code: folder and files must belong to the user and be writable by
 * nobody else, else they are not used.  Every failure is a miss: it costs time, never correctness.
 *
 * Folder: TILEWRIGHT_CACHE_DIR, $XDG_CACHE_HOME/tilewright, or ~/.cache/tilewright.
 * Size: TILEWRIGHT_CACHE_SIZE bytes (suffix K, M, G), default 1 GiB, least recently used out first;
 * 0 switches the cache off. */
#define _GNU_SOURCE
#include "tilewright/runtime.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static const char magic[8] = "TWCACHE";
enum { FORMAT = 1, STALE_SECONDS = 3600, MAX_ENTRY = 1 << 30 };
#define SUFFIX ".twc"
#define TEMPORARY ".tmp-"

typedef struct header {
  char magic[8];
  uint32_t format, header_bytes;
  uint64_t bytes;
  tw_key_t key, checksum; /* checksum of the bytes */
} header_t;

tw_key_t tw_hash(const void *bytes, size_t size) {
  XXH128_hash_t hash = XXH3_128bits(bytes, size);
  return (tw_key_t){hash.low64, hash.high64};
}

static bool same_key(tw_key_t a, tw_key_t b) { return a.low == b.low && a.high == b.high; }

/* --- the folder ------------------------------------------------------------------------------------ */

static uint64_t size_limit(void) {
  const char *text = getenv("TILEWRIGHT_CACHE_SIZE");
  const uint64_t standard = 1ull << 30;
  if (!text || !*text)
    return standard;
  char *end;
  errno = 0;
  unsigned long long number = strtoull(text, &end, 10);
  static const char suffixes[] = "KMG";
  const char *suffix = *end ? strchr(suffixes, *end & ~0x20) : NULL;
  unsigned shift = suffix ? 10 * (unsigned)(suffix - suffixes + 1) : 0;
  if (errno || end == text || (*end && !suffix) || number > UINT64_MAX >> shift)
    return standard;
  return number << shift;
}

/* Writes the folder's path; false if the environment names none. */
static bool folder_path(char *path, size_t size) {
  const char *direct = getenv("TILEWRIGHT_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int length = -1;
  if (direct && *direct)
    length = snprintf(path, size, "%s", direct);
  else if (xdg && *xdg == '/')
    length = snprintf(path, size, "%s/tilewright", xdg);
  else if (home && *home == '/')
    length = snprintf(path, size, "%s/.cache/tilewright", home);
  bool fits = length > 0 && (size_t)length < size;
  if (!fits)
    *path = 0;
  return fits;
}

/* mkdir -p with mode 0700. */
static void make_folders(const char *path) {
  char part[4096];
  size_t length = strlen(path);
  if (length >= sizeof part)
    return;
  for (size_t i = 1; i <= length; i++) {
    if (path[i] != '/' && path[i] != 0)
      continue;
    memcpy(part, path, i);
    part[i] = 0;
    mkdir(part, 0700); /* there already: fine; impossible: opening it will tell */
  }
}

static bool is_private(const struct stat *info) {
  return info->st_uid == geteuid() && !(info->st_mode & (S_IWGRP | S_IWOTH));
}

/* Opens the folder; -1 and a reason if it is missing or not safe. Making it is asked for by puts. */
static int open_folder(bool create, const char **out_problem) {
  char path[4096];
  *out_problem = "";
  if (!folder_path(path, sizeof path)) {
    *out_problem = "no folder is named: set HOME, XDG_CACHE_HOME or TILEWRIGHT_CACHE_DIR";
    return -1;
  }
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0 && errno == ENOENT && create) {
    make_folders(path);
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  struct stat info;
  if (folder < 0) {
    *out_problem = errno == ENOENT ? "" : "the folder cannot be opened";
  } else if (fstat(folder, &info) || !is_private(&info)) {
    *out_problem = "the folder belongs to another user or is writable by others: chmod go-w it";
    close(folder);
    folder = -1;
  }
  return folder;
}

static void entry_name(tw_key_t key, char name[40]) {
  snprintf(name, 40, "%016llx%016llx" SUFFIX, (unsigned long long)key.high, (unsigned long long)key.low);
}

/* --- reading ------------------------------------------------------------------------------------------ */

static bool read_all(int file, void *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t got = read(file, (char *)bytes + done, size - done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return false;
    done += (size_t)got;
  }
  return true;
}

/* Reads and proves an entry; NULL if it is not right in any way. */
static void *read_entry(int file, tw_key_t key, size_t *out_size) {
  struct stat info;
  header_t header;
  if (fstat(file, &info) || !S_ISREG(info.st_mode) || !is_private(&info))
    return NULL;
  if (!read_all(file, &header, sizeof header) || memcmp(header.magic, magic, sizeof magic) != 0 ||
      header.format != FORMAT || header.header_bytes != sizeof header || header.bytes > MAX_ENTRY ||
      (uint64_t)info.st_size != sizeof header + header.bytes || !same_key(header.key, key))
    return NULL;
  void *bytes = malloc(header.bytes ? header.bytes : 1);
  if (!bytes)
    return NULL;
  if (!read_all(file, bytes, header.bytes) || !same_key(tw_hash(bytes, header.bytes), header.checksum)) {
    free(bytes);
    return NULL;
  }
  *out_size = header.bytes;
  return bytes;
}

bool tw_cache_get(tw_key_t key, void **out_bytes, size_t *out_size) {
  *out_bytes = NULL;
  *out_size = 0;
  if (!size_limit())
    return false;
  const char *problem;
  int folder = open_folder(false, &problem);
  if (folder < 0)
    return false;
  char name[40];
  entry_name(key, name);
  int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file >= 0) {
    *out_bytes = read_entry(file, key, out_size);
    if (*out_bytes)
      futimens(file, NULL); /* marks the entry as used; a read-only folder refuses, which does no harm */
    else
      unlinkat(folder, name, 0); /* damaged: make room for a good one */
    close(file);
  }
  close(folder);
  return *out_bytes != NULL;
}

/* --- keeping it small ----------------------------------------------------------------------------------- */

typedef struct cache_entry {
  char name[40];
  uint64_t bytes;
  struct timespec used;
} cache_entry_t;

typedef struct listing {
  cache_entry_t *entries; /* owned */
  size_t count, capacity;
  uint64_t bytes;
} listing_t;

static bool ends_with(const char *name, const char *end) {
  size_t length = strlen(name), tail = strlen(end);
  return length >= tail && !strcmp(name + length - tail, end);
}

static void listing_add(listing_t *list, const char *name, const struct stat *info) {
  if (list->count == list->capacity) {
    size_t capacity = list->capacity ? 2 * list->capacity : 256;
    cache_entry_t *entries = realloc(list->entries, capacity * sizeof *entries);
    if (!entries)
      return;
    list->entries = entries;
    list->capacity = capacity;
  }
  cache_entry_t *entry = &list->entries[list->count++];
  snprintf(entry->name, sizeof entry->name, "%.39s", name);
  entry->bytes = (uint64_t)info->st_blocks * 512;
  if (entry->bytes < (uint64_t)info->st_size)
    entry->bytes = (uint64_t)info->st_size;
  entry->used = info->st_mtim;
  list->bytes += entry->bytes;
}

/* Lists the entries, and removes what crashed writers left behind. */
static void list_folder(int folder, listing_t *list) {
  int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *reader = copy < 0 ? NULL : fdopendir(copy);
  if (!reader) {
    if (copy >= 0)
      close(copy);
    return;
  }
  time_t now = time(NULL);
  for (struct dirent *item; (item = readdir(reader));) {
    struct stat info;
    bool temporary = !strncmp(item->d_name, TEMPORARY, sizeof TEMPORARY - 1);
    if ((!temporary && !ends_with(item->d_name, SUFFIX)) || fstatat(folder, item->d_name, &info, AT_SYMLINK_NOFOLLOW) ||
        !S_ISREG(info.st_mode))
      continue;
    if (!temporary)
      listing_add(list, item->d_name, &info);
    else if (now - info.st_mtime > STALE_SECONDS)
      unlinkat(folder, item->d_name, 0);
  }
  closedir(reader);
}

static int by_age(const void *left, const void *right) {
  const struct timespec *a = &((const cache_entry_t *)left)->used, *b = &((const cache_entry_t *)right)->used;
  if (a->tv_sec != b->tv_sec)
    return a->tv_sec < b->tv_sec ? -1 : 1;
  return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

/* Removes the least recently used entries until a quarter of the limit is free; returns what is
 * left, in bytes. */
static uint64_t evict(int folder, uint64_t limit) {
  listing_t list = {0};
  list_folder(folder, &list);
  if (list.bytes > limit) {
    qsort(list.entries, list.count, sizeof *list.entries, by_age);
    uint64_t target = limit - limit / 4;
    for (size_t i = 0; i < list.count && list.bytes > target; i++) {
      unlinkat(folder, list.entries[i].name, 0); /* another process may have been first */
      list.bytes -= list.entries[i].bytes;
    }
  }
  free(list.entries);
  return list.bytes;
}

/* Scans the folder at the first write of this process, and when the size that it knows of passes the limit. A scan
 * of thousands of entries takes milliseconds. */
static void keep_within_limit(int folder, uint64_t limit, uint64_t added) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static uint64_t known;
  static unsigned puts;
  if (pthread_mutex_trylock(&lock)) /* another thread is at it */
    return;
  known += added;
  if (puts++ % 64 == 0 || known > limit)
    known = evict(folder, limit);
  pthread_mutex_unlock(&lock);
}

/* --- writing -------------------------------------------------------------------------------------------- */

static bool write_all(int file, const void *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t put = write(file, (const char *)bytes + done, size - done);
    if (put < 0 && errno == EINTR)
      continue;
    if (put <= 0) {
      errno = put < 0 ? errno : EIO;
      return false;
    }
    done += (size_t)put;
  }
  return true;
}

/* Returns 0, or the error number of what went wrong. */
static int write_entry(int folder, tw_key_t key, const void *bytes, size_t size) {
  static _Atomic unsigned serial;
  char name[40], temporary[80];
  entry_name(key, name);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  snprintf(temporary, sizeof temporary, TEMPORARY "%ld-%u-%lx", (long)getpid(), atomic_fetch_add(&serial, 1),
           (unsigned long)now.tv_nsec);
  int file = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0)
    return errno;
  header_t header = {.format = FORMAT, .header_bytes = sizeof header, .bytes = size, .key = key};
  memcpy(header.magic, magic, sizeof magic);
  header.checksum = tw_hash(bytes, size);
  int problem = write_all(file, &header, sizeof header) && write_all(file, bytes, size) ? 0 : errno;
  if (close(file) && !problem) /* a full disk may show up only here */
    problem = errno;
  if (!problem && renameat(folder, temporary, folder, name))
    problem = errno;
  if (problem)
    unlinkat(folder, temporary, 0);
  return problem;
}

bool tw_cache_put(tw_key_t key, const void *bytes, size_t size) {
  uint64_t limit = size_limit();
  const char *problem;
  if (size > MAX_ENTRY || size + sizeof(header_t) > limit / 2)
    return false; /* one entry that would evict all others is not stored */
  int folder = open_folder(true, &problem);
  if (folder < 0)
    return false;
  int failure = write_entry(folder, key, bytes, size);
  if (failure == ENOSPC) { /* the cache itself may have filled the disk */
    evict(folder, limit / 2);
    failure = write_entry(folder, key, bytes, size);
  }
  if (!failure)
    keep_within_limit(folder, limit, size + sizeof(header_t));
  close(folder);
  return !failure;
}

/* --- for the user ----------------------------------------------------------------------------------------- */

void tw_cache_info(tw_cache_info_t *out_info) {
  memset(out_info, 0, sizeof *out_info);
  out_info->limit = size_limit();
  folder_path(out_info->path, sizeof out_info->path);
  const char *problem;
  int folder = open_folder(false, &problem);
  if (!out_info->limit)
    problem = "switched off by TILEWRIGHT_CACHE_SIZE=0";
  else if (folder >= 0 && faccessat(folder, ".", W_OK, 0))
    problem = "the folder is not writable: kernels are compiled again in every process";
  snprintf(out_info->problem, sizeof out_info->problem, "%s", problem);
  if (folder < 0)
    return;
  listing_t list = {0};
  list_folder(folder, &list);
  out_info->bytes = list.bytes;
  out_info->entries = (int)list.count;
  free(list.entries);
  close(folder);
}

void tw_cache_clear(void) {
  const char *problem;
  int folder = open_folder(false, &problem);
  if (folder < 0)
    return;
  listing_t list = {0};
  list_folder(folder, &list);
  for (size_t i = 0; i < list.count; i++)
    unlinkat(folder, list.entries[i].name, 0);
  free(list.entries);
  close(folder);
}
