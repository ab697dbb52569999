/* What objects compiled with a new glibc call and an old one (stubs.sh) lacks, by the documented meaning of each. */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Since 2.34 the C library itself runs a program's constructors, and before that code in the program did. A crt1.o of
   today passes none; with one, a library of today leaves them to it. */
typedef int Main(int, char**, char**);
typedef void Hook(void);
typedef void Init(int, char**, char**);
extern Init* __init_array_start[] __attribute__((visibility("hidden")));
extern Init* __init_array_end[] __attribute__((visibility("hidden")));
Hook _init;
int __real___libc_start_main(Main* run, int argc, char** argv, Init* init, Hook* fini, Hook* rtld_fini, void* stack);
int __wrap___libc_start_main(Main* run, int argc, char** argv, Init* init, Hook* fini, Hook* rtld_fini, void* stack);

static void run_constructors(int argc, char** argv, char** env) {
  _init();
  for (Init** one = __init_array_start; one != __init_array_end; ++one) (*one)(argc, argv, env);
}

int __wrap___libc_start_main(Main* run, int argc, char** argv, Init* init, Hook* fini, Hook* rtld_fini, void* stack) {
  (void)init, (void)fini;
  return __real___libc_start_main(run, argc, argv, run_constructors, 0, rtld_fini, stack);
}

/* 2.32: says that there is one thread. Never saying so is right, and slower by an atomic operation. */
char __libc_single_threaded = 0;

/* 2.33: functions before were macros over __xstat. The kernel's struct is the C library's on 64-bit machines. */
_Static_assert(sizeof(void*) == 8, "64-bit machines only");
#define FUNCTIONS(suffix) \
  int stat##suffix(const char* path, struct stat##suffix* info) { return (int)syscall(SYS_newfstatat, AT_FDCWD, path, info, 0); } \
  int lstat##suffix(const char* path, struct stat##suffix* info) { \
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, info, AT_SYMLINK_NOFOLLOW); \
  } \
  int fstat##suffix(int fd, struct stat##suffix* info) { return (int)syscall(SYS_fstat, fd, info); } \
  int fstatat##suffix(int folder, const char* path, struct stat##suffix* info, int flags) { \
    return (int)syscall(SYS_newfstatat, folder, path, info, flags); \
  }
FUNCTIONS()
FUNCTIONS(64)

/* 2.35: where the tables for exceptions of the code at an address are (GCC 12's libgcc asks). */
#ifdef DLFO_STRUCT_HAS_EH_DBASE
struct Search {
  uintptr_t address;
  struct dl_find_object* found;
};

static int look_into(struct dl_phdr_info* object, size_t size, void* data) {
  const struct Search* search = data;
  const ElfW(Phdr)* tables = 0;
  int inside = 0;
  (void)size;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) tables = part;
    if (part->p_type != PT_LOAD || search->address < begin || search->address >= begin + part->p_memsz) continue;
    inside = 1;
    search->found->dlfo_map_start = (void*)begin;
    search->found->dlfo_map_end = (void*)(begin + part->p_memsz);
  }
  if (!inside) return 0;
  search->found->dlfo_eh_frame = tables ? (void*)(object->dlpi_addr + tables->p_vaddr) : 0;
  return 1;
}

int _dl_find_object(void* address, struct dl_find_object* result) {
  struct Search search = {(uintptr_t)address, result};
  return dl_iterate_phdr(look_into, &search) == 1 && result->dlfo_eh_frame != 0 ? 0 : -1;
}
#endif

/* 2.36: random numbers that cannot fail (std::random_device). */
uint32_t arc4random(void);
uint32_t arc4random(void) {
  uint32_t number;
  if (getrandom(&number, sizeof number, 0) != sizeof number) abort();
  return number;
}

/* 2.30: waits by a named clock. Before, a wait knew the wall clock only: the time left is put onto that. */
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const struct timespec* end) {
  struct timespec now, wall;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  long nanoseconds = wall.tv_nsec + end->tv_nsec - now.tv_nsec;
  wall.tv_sec += end->tv_sec - now.tv_sec;
  for (; nanoseconds < 0; nanoseconds += 1000000000) --wall.tv_sec;
  for (; nanoseconds >= 1000000000; nanoseconds -= 1000000000) ++wall.tv_sec;
  wall.tv_nsec = nanoseconds;
  return pthread_cond_timedwait(condition, mutex, &wall);
}
