# Toolchain file: a build for aarch64 on another machine, by the cross compiler of Debian and Ubuntu (preset `aarch64`,
# scripts/aarch64). HPCLAUNCH_AARCH64_PREFIX has the libraries, below usr; HPCLAUNCH_FETCH=ALWAYS needs none.
#
# QEMU runs what the build itself runs: the compiler of the catalogue, and hpclaunch for its manual page and completions.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc CACHE FILEPATH "C compiler")
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++ CACHE FILEPATH "C++ compiler")

set(HPCLAUNCH_AARCH64_PREFIX "" CACHE PATH "Folder whose usr has the libraries for aarch64")
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HPCLAUNCH_AARCH64_PREFIX)
set(CMAKE_FIND_ROOT_PATH ${HPCLAUNCH_AARCH64_PREFIX} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(_kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${_kind} ONLY)
endforeach()
if(HPCLAUNCH_AARCH64_PREFIX)  # Debian's hwloc has a header there
  set(CMAKE_C_STANDARD_INCLUDE_DIRECTORIES ${HPCLAUNCH_AARCH64_PREFIX}/usr/include/aarch64-linux-gnu)
  set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${CMAKE_C_STANDARD_INCLUDE_DIRECTORIES})
endif()
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${HPCLAUNCH_AARCH64_PREFIX})
set(ENV{PKG_CONFIG_LIBDIR} ${HPCLAUNCH_AARCH64_PREFIX}/usr/lib/aarch64-linux-gnu/pkgconfig:${HPCLAUNCH_AARCH64_PREFIX}/usr/share/pkgconfig)

find_program(HPCLAUNCH_QEMU_AARCH64 NAMES qemu-aarch64-static qemu-aarch64 DOC "Runs programs for aarch64")
set(CMAKE_CROSSCOMPILING_EMULATOR "${HPCLAUNCH_QEMU_AARCH64};-L;/usr/aarch64-linux-gnu" CACHE STRING "Runs programs of this build")
