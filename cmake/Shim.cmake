# The shim: a static program of its own, built by musl-gcc where there is one, else against glibc's
# libc.a. CMake knows one compiler per language, hence custom commands.
#
# hpclaunch-shim                     target; cmake/Install.cmake installs it
# HPCLAUNCH_SHIM                     its path in the build tree
# HPCLAUNCH_SHIM_BUILDS              path;libc pairs of all that this machine can link, for the tests
set(HPCLAUNCH_SHIM_LIBC auto CACHE STRING "C library of the shim: auto, musl or glibc")
set_property(CACHE HPCLAUNCH_SHIM_LIBC PROPERTY STRINGS auto musl glibc)
if(NOT HPCLAUNCH_SHIM_LIBC MATCHES "^(auto|musl|glibc)$")
  message(FATAL_ERROR "HPCLAUNCH_SHIM_LIBC is \"${HPCLAUNCH_SHIM_LIBC}\"; it can be auto, musl or glibc")
endif()
find_program(HPCLAUNCH_MUSL_GCC musl-gcc DOC "GCC's wrapper for musl, builds the shim")
mark_as_advanced(HPCLAUNCH_MUSL_GCC)
# Where musl is the system's own C library (Alpine), the ordinary compiler is what musl-gcc is elsewhere.
execute_process(COMMAND ${CMAKE_C_COMPILER} -dumpmachine OUTPUT_VARIABLE shim_machine ERROR_QUIET)
if(shim_machine MATCHES "musl")
  set(HPCLAUNCH_MUSL_GCC ${CMAKE_C_COMPILER})
endif()

set(shim_folder ${PROJECT_SOURCE_DIR}/src/shim)
set(shim_files ${shim_folder}/main.cpp ${shim_folder}/decode.h ${shim_folder}/environment.h
    ${shim_folder}/look.h ${shim_folder}/say.h ${shim_folder}/stay.h ${shim_folder}/task.h
    ${shim_folder}/text.h)
set(shim_flags -static -std=c++20 -Os -fno-exceptions -fno-rtti -fno-asynchronous-unwind-tables
    -ffunction-sections -fdata-sections -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wl,--gc-sections
    -Wl,-z,noseparate-code -Wl,-z,norelro -Wl,--build-id=none -s -x c++)
if(HPCLAUNCH_WERROR)
  list(PREPEND shim_flags -Werror)
endif()
# No C++ library at all; gcc's own runtime where the C library asks for it.
set(shim_command_musl ${HPCLAUNCH_MUSL_GCC} -nostdinc++ ${shim_flags} ${shim_folder}/main.cpp)
set(shim_command_glibc ${CMAKE_CXX_COMPILER} ${CMAKE_CXX_COMPILER_ARG1} -nodefaultlibs ${shim_flags}
    ${shim_folder}/main.cpp -x none -Wl,--start-group -lc -lgcc -lgcc_eh -Wl,--end-group)

# Sets shim_links_<libc>. A success is remembered; after a failure somebody may install what was missing.
file(WRITE ${CMAKE_BINARY_DIR}/CMakeFiles/shim-try.cpp [[
#include <errno.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
int main(int, char** argv, char** environment) {
  static utsname host;
  if (uname(&host) == 0 && syscall(SYS_sched_getaffinity, 0, 0, nullptr) == 0) return 0;
  execve(argv[0], argv, environment);
  return errno;
}
]])
function(hpclaunch_try_shim libc)
  string(REPLACE "${shim_folder}/main.cpp" "${CMAKE_BINARY_DIR}/CMakeFiles/shim-try.cpp" command
         "${shim_command_${libc}}")
  if(shim_linked_${libc} STREQUAL "${command}")
    set(shim_links_${libc} TRUE PARENT_SCOPE)
    return()
  endif()
  set(shim_links_${libc} FALSE PARENT_SCOPE)
  if((libc STREQUAL "musl" AND NOT HPCLAUNCH_MUSL_GCC) OR (libc STREQUAL "glibc" AND shim_machine MATCHES "musl"))
    return()
  endif()
  execute_process(COMMAND ${command} -o ${CMAKE_BINARY_DIR}/CMakeFiles/shim-try-${libc}
                  RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(status EQUAL 0)
    set(shim_links_${libc} TRUE PARENT_SCOPE)
    set(shim_linked_${libc} "${command}" CACHE INTERNAL "The command that linked a static program")
  else()
    message(STATUS "A static program does not link against ${libc}:\n${said}")
  endif()
endfunction()

function(hpclaunch_build_shim libc path)
  get_filename_component(folder ${path} DIRECTORY)
  add_custom_command(
    OUTPUT ${path}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND ${shim_command_${libc}} -o ${path}
    DEPENDS ${shim_files}
    COMMENT "Building the shim with ${libc}: ${path}"
    VERBATIM)
endfunction()

set(shim_libc "")
foreach(libc musl glibc)
  if(HPCLAUNCH_SHIM_LIBC STREQUAL "auto" OR HPCLAUNCH_SHIM_LIBC STREQUAL libc OR HPCLAUNCH_TESTS)
    hpclaunch_try_shim(${libc})
  endif()
  if(shim_links_${libc} AND NOT shim_libc AND HPCLAUNCH_SHIM_LIBC MATCHES "^(auto|${libc})$")
    set(shim_libc ${libc})
  endif()
endforeach()
if(NOT shim_libc)
  message(FATAL_ERROR
    "The shim must be a static program, and nothing here can link one (HPCLAUNCH_SHIM_LIBC=${HPCLAUNCH_SHIM_LIBC}).\n"
    "Install one of:\n"
    "  musl-gcc        Debian, Ubuntu: apt install musl-tools      Fedora: dnf install musl-gcc\n"
    "                  Spack: spack install musl\n"
    "  a static glibc  Debian, Ubuntu: apt install libc6-dev       Fedora, RHEL, Rocky: dnf install glibc-static\n"
    "and configure again.")
endif()
message(STATUS "The shim is linked against ${shim_libc}")

set(HPCLAUNCH_SHIM ${CMAKE_BINARY_DIR}/libexec/hpclaunch/hpclaunch-shim)
hpclaunch_build_shim(${shim_libc} ${HPCLAUNCH_SHIM})
add_custom_target(hpclaunch-shim ALL DEPENDS ${HPCLAUNCH_SHIM})

# The tests want every build that this machine can make, whichever is installed.
set(HPCLAUNCH_SHIM_BUILDS ${HPCLAUNCH_SHIM} ${shim_libc})
if(HPCLAUNCH_TESTS)
  foreach(libc musl glibc)
    if(shim_links_${libc} AND NOT libc STREQUAL shim_libc)
      hpclaunch_build_shim(${libc} ${CMAKE_BINARY_DIR}/tests/hpclaunch-shim-${libc})
      add_custom_target(hpclaunch-shim-${libc} ALL DEPENDS ${CMAKE_BINARY_DIR}/tests/hpclaunch-shim-${libc})
      list(APPEND HPCLAUNCH_SHIM_BUILDS ${CMAKE_BINARY_DIR}/tests/hpclaunch-shim-${libc} ${libc})
    endif()
  endforeach()
endif()
