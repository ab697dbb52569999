#pragma once
// System calls as the kernel has them: the result, or -errno. On x86-64 and aarch64 the shim is linked
// without a C library (HPCLAUNCH_FREESTANDING), elsewhere and in the sanitizers' build with one. C headers
// are used for types and constants alone.
#include <errno.h>
#include <sys/syscall.h>
#ifndef HPCLAUNCH_FREESTANDING
#include <unistd.h>
#endif

namespace hpclaunch::shim {

#if !defined(HPCLAUNCH_FREESTANDING)
inline long system_call(long number, const long (&a)[6]) {
  const long result = ::syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  return result < 0 ? -errno : result;
}
#elif defined(__x86_64__)
inline long system_call(long number, const long (&a)[6]) {
  register long d __asm__("r10") = a[3];
  register long e __asm__("r8") = a[4];
  register long f __asm__("r9") = a[5];
  __asm__ volatile("syscall"
                   : "+a"(number)
                   : "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(d), "r"(e), "r"(f)
                   : "rcx", "r11", "memory");
  return number;
}
// The kernel enters with argc, argv and the environment on the stack, aligned to 16 bytes; a call pushes 8.
__asm__(
    ".globl _start\n_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n"
    " call hpclaunch_start\n");
#elif defined(__aarch64__)
inline long system_call(long number, const long (&a)[6]) {
  register long n __asm__("x8") = number;
  register long r __asm__("x0") = a[0];
  register long b __asm__("x1") = a[1];
  register long c __asm__("x2") = a[2];
  register long d __asm__("x3") = a[3];
  register long e __asm__("x4") = a[4];
  register long f __asm__("x5") = a[5];
  __asm__ volatile("svc 0" : "+r"(r) : "r"(n), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f) : "memory");
  return r;
}
__asm__(".globl _start\n_start: mov x29, #0\n mov x30, #0\n mov x0, sp\n bl hpclaunch_start\n");
#endif

template <class T>
long word(T* pointer) {
  return reinterpret_cast<long>(pointer);
}
inline long word(decltype(nullptr)) { return 0; }
template <class T>
long word(T number) {
  return static_cast<long>(number);
}

/// One of SYS_..., with up to six numbers or pointers.
template <class... Words>
long call(long number, Words... words) {
  const long all[6] = {word(words)...};
  return system_call(number, all);
}

[[noreturn]] inline void leave(int status) {
  for (;;) call(SYS_exit_group, status);
}

inline int own_pid() { return static_cast<int>(call(SYS_getpid)); }

inline void close(int fd) { call(SYS_close, fd); }

/// A child that shares nothing with us, as fork(2) makes it.
inline int fork() {
  constexpr int kSigchld = 17;  // with no other clone(2) flag
  return static_cast<int>(call(SYS_clone, kSigchld, nullptr, nullptr, nullptr, nullptr));
}

/// A signal set as the kernel has it.
struct SignalSet {
  unsigned long bits = 0;
  constexpr void add(int signal) { bits |= 1UL << (signal - 1); }
};
inline void set_mask(SignalSet set, SignalSet* before = nullptr) {
  constexpr int kSetMask = 2;  // SIG_SETMASK
  call(SYS_rt_sigprocmask, kSetMask, &set, before, sizeof set);
}

}  // namespace hpclaunch::shim

#ifdef HPCLAUNCH_FREESTANDING
// The compiler calls these for large objects.
extern "C" inline __attribute__((used)) void* memcpy(void* to, const void* from,
                                                     unsigned long size) {
  for (unsigned long i = 0; i < size; ++i)
    static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
  return to;
}
extern "C" inline __attribute__((used)) void* memset(void* at, int byte, unsigned long size) {
  for (unsigned long i = 0; i < size; ++i) static_cast<char*>(at)[i] = static_cast<char>(byte);
  return at;
}
#endif
