/* Stands in for the kernel, by LD_PRELOAD, below the folder that PLANTED names: its file system is NFS, and the quota of
   its user is used up. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static int is_below(const char* path) {
  const char* folder = getenv("PLANTED");
  return folder != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

int statfs(const char* path, struct statfs* found) {
  const int status = (int)syscall(SYS_statfs, path, found);
  if (status == 0 && is_below(path)) found->f_type = 0x6969; /* NFS_SUPER_MAGIC */
  return status;
}

int statfs64(const char* path, struct statfs64* found) {
  return statfs(path, (struct statfs*)found); /* the same where off_t has 64 bits */
}

ssize_t write(int file, const void* bytes, size_t size) {
  char link[64], path[4096] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  if (readlink(link, path, sizeof path - 1) > 0 && is_below(path)) {
    errno = EDQUOT;
    return -1;
  }
  return syscall(SYS_write, file, bytes, size);
}
