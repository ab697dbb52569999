/* Starts counting for scripts/coverage in place of the library, which leaves a variable in the environment for its
   children: tests compare the environment of a rank, to the last variable. */
#include <stdlib.h>

void __llvm_profile_initialize(void);
int __llvm_profile_runtime; /* defined here: the library does not start by itself */

__attribute__((constructor)) static void start_counting(void) {
  __llvm_profile_initialize();
  unsetenv("__LLVM_PROFILE_RT_INIT_ONCE");
}
