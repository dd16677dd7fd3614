/* test_runtime_cache.c - the disk cache: round trip, damage, foreign folders, bounds, many processes */
#define _GNU_SOURCE
#include "tilewright/runtime.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[128];

static tw_key_t key_of(int i) { return tw_hash(&i, sizeof i); }

/* Bytes that depend on the key alone, so that any reader can check them. */
static size_t content(int i, char *bytes) {
  size_t size = 100 + (size_t)(i * 977 % 5000);
  for (size_t at = 0; at < size; at++)
    bytes[at] = (char)(at * 31 + (size_t)i * 7);
  return size;
}

static bool put(int i) {
  char bytes[8192];
  return tw_cache_put(key_of(i), bytes, content(i, bytes));
}

/* 1: there and right; 0: a miss. */
static int get(int i) {
  char want[8192];
  size_t size = content(i, want), found;
  void *bytes;
  if (!tw_cache_get(key_of(i), &bytes, &found))
    return 0;
  assert(found == size && !memcmp(bytes, want, size));
  free(bytes);
  return 1;
}

static void path_of(int i, char *path, size_t size) {
  tw_key_t key = key_of(i);
  snprintf(path, size, "%s/%016llx%016llx.twc", folder, (unsigned long long)key.high, (unsigned long long)key.low);
}

static void test_round_trip(void) {
  assert(!get(1)); /* no folder yet */
  assert(put(1) && put(2) && get(1) && get(2) && !get(3));
  struct stat info;
  char path[256];
  path_of(1, path, sizeof path);
  assert(!stat(folder, &info) && (info.st_mode & 0777) == 0700);
  assert(!stat(path, &info) && (info.st_mode & 0777) == 0600);
  void *bytes;
  size_t size;
  assert(tw_cache_put(key_of(4), "", 0) && tw_cache_get(key_of(4), &bytes, &size) && !size);
  free(bytes);
  tw_cache_info_t report;
  tw_cache_info(&report);
  assert(report.entries == 3 && !*report.problem && !strcmp(report.path, folder));
}

/* Every byte of an entry counts; a damaged one is removed and can be written again. */
static void test_damage(void) {
  char path[256];
  path_of(1, path, sizeof path);
  struct stat info;
  assert(!stat(path, &info));
  for (off_t at = 0; at < info.st_size; at += at < 80 ? 1 : 97) {
    int file = open(path, O_RDWR);
    unsigned char byte;
    assert(file >= 0 && pread(file, &byte, 1, at) == 1);
    byte ^= 0x40;
    assert(pwrite(file, &byte, 1, at) == 1);
    close(file);
    assert(!get(1) && access(path, F_OK) && put(1) && get(1));
  }
  assert(!truncate(path, info.st_size / 2) && !get(1) && put(1));
  assert(!truncate(path, 0) && !get(1) && put(1));
}

static void test_distrust(void) {
  char path[256];
  path_of(1, path, sizeof path);
  assert(!chmod(path, 0622) && !get(1)); /* others may have written it */
  assert(put(1) && get(1));
  assert(!chmod(folder, 0777) && !get(1) && !put(5));
  tw_cache_info_t report;
  tw_cache_info(&report);
  assert(strstr(report.problem, "writable by others"));
  assert(!chmod(folder, 0700) && get(1));
  assert(!unlink(path) && !symlink("/etc/passwd", path) && !get(1)); /* links are not followed */
  unlink(path);
  assert(!mkfifo(path, 0600) && !get(1)); /* and nothing hangs */
  unlink(path);
}

static void test_nowhere(void) {
  setenv("TILEWRIGHT_CACHE_DIR", "/proc/no/such/folder", 1);
  assert(!put(1) && !get(1));
  setenv("TILEWRIGHT_CACHE_DIR", "/dev/null", 1);
  assert(!put(1) && !get(1));
  unsetenv("TILEWRIGHT_CACHE_DIR");
  setenv("XDG_CACHE_HOME", folder, 1);
  assert(put(1) && get(1));
  tw_cache_info_t report;
  tw_cache_info(&report);
  assert(strstr(report.path, "/tilewright"));
  tw_cache_clear();
  assert(!get(1));
  rmdir(report.path);
  setenv("TILEWRIGHT_CACHE_DIR", folder, 1);
  setenv("TILEWRIGHT_CACHE_SIZE", "0", 1);
  assert(!put(1) && !get(1));
  unsetenv("TILEWRIGHT_CACHE_SIZE");
}

/* A disk that takes no more: the put fails quietly and leaves nothing behind. */
static void test_full_disk(void) {
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit old, small = {1000, RLIM_INFINITY};
  assert(!getrlimit(RLIMIT_FSIZE, &old));
  small.rlim_max = old.rlim_max;
  assert(!setrlimit(RLIMIT_FSIZE, &small));
  assert(!put(7) && !get(7));
  assert(!setrlimit(RLIMIT_FSIZE, &old));
  assert(put(7) && get(7));
}

static void test_bounds(void) {
  tw_cache_clear();
  setenv("TILEWRIGHT_CACHE_SIZE", "256K", 1);
  assert(put(0));
  for (int i = 1; i < 400; i++) {
    assert(put(i));
    assert(get(0)); /* used all the time: never thrown out */
  }
  tw_cache_info_t report;
  tw_cache_info(&report);
  assert(report.limit == 256 << 10 && report.bytes <= report.limit && report.entries > 8);
  assert(get(399) && !get(1));
  char *large = calloc(1, 200 << 10);
  assert(!tw_cache_put(key_of(1000), large, 200 << 10)); /* more than half of all */
  free(large);
  unsetenv("TILEWRIGHT_CACHE_SIZE");
}

/* What a crashed writer left is removed when it is old, and left alone when it may be alive. */
static void test_leftovers(void) {
  char old[256], young[256];
  snprintf(old, sizeof old, "%s/.tmp-1-2-3", folder);
  snprintf(young, sizeof young, "%s/.tmp-4-5-6", folder);
  close(open(old, O_CREAT | O_WRONLY, 0600));
  close(open(young, O_CREAT | O_WRONLY, 0600));
  struct timespec times[2] = {{1000, 0}, {1000, 0}};
  assert(!utimensat(AT_FDCWD, old, times, 0));
  tw_cache_info_t report;
  tw_cache_info(&report);
  assert(access(old, F_OK) && !access(young, F_OK));
  unlink(young);
}

/* Eight processes write and read the same keys while a small limit throws entries out. */
static void test_many_processes(void) {
  tw_cache_clear();
  setenv("TILEWRIGHT_CACHE_SIZE", "128K", 1);
  for (int process = 0; process < 8; process++)
    if (!fork()) {
      for (int i = 0; i < 300; i++) {
        int key = 2000 + (i * 13 + process * 7) % 40;
        if (!get(key))
          assert(put(key));
      }
      _exit(0);
    }
  int status, good = 0;
  while (wait(&status) > 0)
    good += WIFEXITED(status) && !WEXITSTATUS(status);
  assert(good == 8);
  DIR *reader = opendir(folder);
  for (struct dirent *item; (item = readdir(reader));)
    assert(strncmp(item->d_name, ".tmp-", 5)); /* nothing half-written stays */
  closedir(reader);
  unsetenv("TILEWRIGHT_CACHE_SIZE");
}

int main(void) {
  snprintf(folder, sizeof folder, "%s/tilewright-cache-%ld", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
           (long)getpid());
  setenv("TILEWRIGHT_CACHE_DIR", folder, 1);
  umask(022);
  test_round_trip();
  test_damage();
  test_distrust();
  test_nowhere();
  test_full_disk();
  test_bounds();
  test_leftovers();
  test_many_processes();
  tw_cache_clear();
  rmdir(folder);
  puts("cache: ok");
  return 0;
}
