# The shim, and the reader of stacks beside it: static programs of their own. On x86-64 and aarch64 it needs no C library; elsewhere musl-gcc or
# glibc's libc.a link it. CMake knows one compiler per language, hence custom commands.
#
# hpclaunch-shim, hpclaunch-stacks   targets; cmake/Install.cmake installs them
# HPCLAUNCH_SHIM, HPCLAUNCH_STACKS   their paths in the build tree
# HPCLAUNCH_SHIM_BUILDS              path;libc pairs of all that this machine can link, for the tests;
# HPCLAUNCH_STACKS_BUILDS            as these
set(shim_libcs none musl glibc)
set(HPCLAUNCH_SHIM_LIBC auto CACHE STRING "C library of the shim: auto, none, musl or glibc")
set_property(CACHE HPCLAUNCH_SHIM_LIBC PROPERTY STRINGS auto ${shim_libcs})
if(NOT HPCLAUNCH_SHIM_LIBC MATCHES "^(auto|none|musl|glibc)$")
  message(FATAL_ERROR "HPCLAUNCH_SHIM_LIBC is \"${HPCLAUNCH_SHIM_LIBC}\"; accepted: auto, none, musl, glibc")
endif()
find_program(HPCLAUNCH_MUSL_GCC musl-gcc DOC "GCC's wrapper for musl, builds the shim")
mark_as_advanced(HPCLAUNCH_MUSL_GCC)

set(shim_folder ${PROJECT_SOURCE_DIR}/src/shim)
set(shim_names hpclaunch-shim hpclaunch-stacks hpclaunch-node)
set(shim_source_hpclaunch-shim main.cpp)
set(shim_source_hpclaunch-stacks stacks.cpp)
set(shim_source_hpclaunch-node node.cpp)
file(GLOB shim_files CONFIGURE_DEPENDS ${shim_folder}/* ${PROJECT_SOURCE_DIR}/src/shared/*)
set(shim_flags -static -std=c++20 -Os -fno-exceptions -fno-rtti -fno-asynchronous-unwind-tables
    -ffunction-sections -fdata-sections -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wl,--gc-sections
    -Wl,-z,noseparate-code -Wl,-z,norelro -Wl,--build-id=none -s -x c++)
if(HPCLAUNCH_WERROR)
  list(PREPEND shim_flags -Werror)
endif()
set(shim_compiler ${CMAKE_CXX_COMPILER} ${CMAKE_CXX_COMPILER_ARG1})
# What distributions switch on by default needs a C library: stack protector, checked calls, PIE.
set(shim_command_none ${shim_compiler} -nostdlib -ffreestanding -fno-stack-protector -U_FORTIFY_SOURCE -fno-pie
    -DHPCLAUNCH_FREESTANDING ${shim_flags} ${shim_folder}/main.cpp)
set(shim_command_musl ${HPCLAUNCH_MUSL_GCC} -nostdinc++ ${shim_flags} ${shim_folder}/main.cpp)
set(shim_command_glibc ${shim_compiler} -nodefaultlibs ${shim_flags} ${shim_folder}/main.cpp -x none
    -Wl,--start-group -lc -lgcc -lgcc_eh -Wl,--end-group)

# Sets shim_links_<libc>: an empty main.cpp is enough to see whether the libraries are there.
function(hpclaunch_try_shim libc)
  set(shim_links_${libc} FALSE PARENT_SCOPE)
  set(source ${CMAKE_BINARY_DIR}/CMakeFiles/shim-try-${libc}.cpp)
  if(libc STREQUAL "none")
    if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$")
      return()
    endif()
    file(WRITE ${source} "extern \"C\" void _start() { for (;;) {} }\n")
  elseif(libc STREQUAL "aarch64")  # Fedora's cross compiler comes without headers of a C library
    file(WRITE ${source} "#include <sys/socket.h>\nextern \"C\" void _start() { for (;;) {} }\n")
  elseif(libc STREQUAL "musl" AND NOT HPCLAUNCH_MUSL_GCC)
    return()
  else()
    file(WRITE ${source} "#include <unistd.h>\nint main() { return static_cast<int>(syscall(0)); }\n")
  endif()
  string(REPLACE "${shim_folder}/main.cpp" "${source}" command "${shim_command_${libc}}")
  execute_process(COMMAND ${command} -o ${source}.out RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(status EQUAL 0)
    set(shim_links_${libc} TRUE PARENT_SCOPE)
  endif()
endfunction()

# NAME: hpclaunch-shim or hpclaunch-stacks. Adds a target that is called as the file.
function(hpclaunch_build_shim name libc path)
  get_filename_component(folder ${path} DIRECTORY)
  get_filename_component(target ${path} NAME)
  set(source ${shim_folder}/${shim_source_${name}})
  string(REPLACE "${shim_folder}/main.cpp" "${source}" command "${shim_command_${libc}}")
  add_custom_command(
    OUTPUT ${path}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND ${command} -o ${path}
    DEPENDS ${shim_files}
    COMMENT "Building ${name} (${libc}): ${path}"
    VERBATIM)
  add_custom_target(${target} ALL DEPENDS ${path})
endfunction()

set(shim_libc "")
foreach(libc ${shim_libcs})
  hpclaunch_try_shim(${libc})
  if(shim_links_${libc} AND NOT shim_libc AND HPCLAUNCH_SHIM_LIBC MATCHES "^(auto|${libc})$")
    set(shim_libc ${libc})
  endif()
endforeach()
if(NOT shim_libc)
  message(FATAL_ERROR
    "cannot link the shim, a static program (HPCLAUNCH_SHIM_LIBC=${HPCLAUNCH_SHIM_LIBC}, ${CMAKE_SYSTEM_PROCESSOR})\n"
    "try: HPCLAUNCH_SHIM_LIBC=auto on x86_64 and aarch64; elsewhere install one of:\n"
    "  musl-gcc        Debian, Ubuntu: apt install musl-tools      Fedora: dnf install musl-gcc\n"
    "  a static glibc  Debian, Ubuntu: apt install libc6-dev       Fedora, RHEL, Rocky: dnf install glibc-static")
endif()
message(STATUS "C library of the shim: ${shim_libc}")

set(HPCLAUNCH_SHIM ${CMAKE_BINARY_DIR}/libexec/hpclaunch/hpclaunch-shim)
set(HPCLAUNCH_STACKS ${CMAKE_BINARY_DIR}/libexec/hpclaunch/hpclaunch-stacks)
set(HPCLAUNCH_NODE ${CMAKE_BINARY_DIR}/libexec/hpclaunch/hpclaunch-node)
foreach(name ${shim_names})
  hpclaunch_build_shim(${name} ${shim_libc} ${CMAKE_BINARY_DIR}/libexec/hpclaunch/${name})
endforeach()

# The tests want every build that this machine can make, whichever is installed.
set(HPCLAUNCH_SHIM_BUILDS ${HPCLAUNCH_SHIM} ${shim_libc})
set(HPCLAUNCH_STACKS_BUILDS ${HPCLAUNCH_STACKS} ${shim_libc})
if(HPCLAUNCH_TESTS AND "machine" IN_LIST HPCLAUNCH_TEST_TIERS)
  foreach(libc ${shim_libcs})
    if(shim_links_${libc} AND NOT libc STREQUAL shim_libc)
      foreach(name ${shim_names})
        hpclaunch_build_shim(${name} ${libc} ${CMAKE_BINARY_DIR}/tests/${name}-${libc})
      endforeach()
      list(APPEND HPCLAUNCH_SHIM_BUILDS ${CMAKE_BINARY_DIR}/tests/hpclaunch-shim-${libc} ${libc})
      list(APPEND HPCLAUNCH_STACKS_BUILDS ${CMAKE_BINARY_DIR}/tests/hpclaunch-stacks-${libc} ${libc})
    endif()
  endforeach()
  # For aarch64, where a cross compiler and QEMU are: tests/support/foreign.py runs it.
  set(HPCLAUNCH_SHIM_AARCH64 "")
  find_program(HPCLAUNCH_AARCH64_CXX aarch64-linux-gnu-g++ DOC "Cross compiler, builds a shim for the tests")
  find_program(HPCLAUNCH_QEMU_AARCH64 NAMES qemu-aarch64-static qemu-aarch64 DOC "Runs programs for aarch64")
  mark_as_advanced(HPCLAUNCH_AARCH64_CXX HPCLAUNCH_QEMU_AARCH64)
  if(HPCLAUNCH_AARCH64_CXX AND HPCLAUNCH_QEMU_AARCH64 AND NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    string(REPLACE "${shim_compiler}" "${HPCLAUNCH_AARCH64_CXX}" shim_command_aarch64 "${shim_command_none}")
    hpclaunch_try_shim(aarch64)
    if(shim_links_aarch64)
      set(HPCLAUNCH_SHIM_AARCH64 ${CMAKE_BINARY_DIR}/tests/hpclaunch-shim-aarch64)
      hpclaunch_build_shim(hpclaunch-shim aarch64 ${HPCLAUNCH_SHIM_AARCH64})
      hpclaunch_build_shim(hpclaunch-stacks aarch64 ${CMAKE_BINARY_DIR}/tests/hpclaunch-stacks-aarch64)
    endif()
  endif()
endif()
