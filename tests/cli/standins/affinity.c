/* Stands in for the kernel's affinity and memory policy, by LD_PRELOAD: a process on a machine with other CPUs than this
   one. MACHINE_CPUS are those of its control group, MACHINE_MASK its own (and PARENT_MASK its parent's) when it starts,
   "0-15,32"; what it asks for is cut to MACHINE_CPUS. MEMORY_REFUSED: policies that the kernel refuses, "12" for
   preferred and bind; MEMORY_LOG: file for those that it takes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BYTES = 512 };
static unsigned char now[BYTES], all[BYTES], parent[BYTES];
static int known;

static void read_list(const char* name, unsigned char* mask, const unsigned char* otherwise) {
  const char* text = getenv(name);
  if (text == NULL) {
    memcpy(mask, otherwise, BYTES);
    return;
  }
  for (char* at = (char*)text; *at != '\0'; at += *at == ',') {
    long first = strtol(at, &at, 10), last = *at == '-' ? strtol(at + 1, &at, 10) : first;
    for (; first <= last; ++first) mask[first / 8] |= (unsigned char)(1 << first % 8);
  }
}

static long give(const unsigned char* mask, size_t size, unsigned char* out) {
  if (size < BYTES) {
    errno = EINVAL;
    return -1;
  }
  memcpy(out, mask, BYTES);
  return BYTES;
}

static long take(size_t size, const unsigned char* mask) {
  unsigned char cut[BYTES] = {0};
  int some = 0;
  for (size_t i = 0; i < BYTES && i < size; ++i) some |= cut[i] = mask[i] & all[i];
  if (!some) {
    errno = EINVAL;
    return -1;
  }
  memcpy(now, cut, BYTES);
  return 0;
}

static long policy(long mode, const unsigned long* nodes) {
  const char* refused = getenv("MEMORY_REFUSED");
  const char* path = getenv("MEMORY_LOG");
  if (refused != NULL && strchr(refused, (int)('0' + mode)) != NULL) {
    errno = EPERM;
    return -1;
  }
  FILE* file = path != NULL ? fopen(path, "a") : NULL;
  if (file != NULL) {
    fprintf(file, "%ld %lx\n", mode, nodes[0]);
    fclose(file);
  }
  return 0;
}

long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  if (!known) {
    known = 1;
    read_list("MACHINE_CPUS", all, all);
    read_list("MACHINE_MASK", now, all);
    read_list("PARENT_MASK", parent, all);
  }
  if (number == SYS_sched_getaffinity)
    return give(a[0] == getppid() ? parent : now, (size_t)a[1], (unsigned char*)a[2]);
  if (number == SYS_sched_setaffinity) return take((size_t)a[1], (const unsigned char*)a[2]);
  if (number == SYS_set_mempolicy) return policy(a[0], (const unsigned long*)a[1]);
  long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
