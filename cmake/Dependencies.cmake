# Where the libraries come from: the system's own copy, else, when asked, a pinned archive (docs/install.md).
#
# Each archive is named by version and SHA-256. The sums are those of published recipes (Spack, Conan,
# Homebrew, Chimera Linux, Debian's signed source index), at least two that agree for each.
set(HPCLAUNCH_FETCH OFF CACHE STRING "Download libraries: OFF, ON (those that are missing) or ALWAYS")
if(HPCLAUNCH_FETCH STREQUAL "AUTO")  # the default of earlier build folders
  set(HPCLAUNCH_FETCH OFF CACHE STRING "Download libraries: OFF, ON (those that are missing) or ALWAYS" FORCE)
endif()
set_property(CACHE HPCLAUNCH_FETCH PROPERTY STRINGS OFF ON ALWAYS)
set(HPCLAUNCH_FETCH_MIRROR "" CACHE PATH "Folder with the archives, for machines without a network")
if(NOT HPCLAUNCH_FETCH MATCHES "^(OFF|ON|ALWAYS)$")
  message(FATAL_ERROR "invalid value \"${HPCLAUNCH_FETCH}\" for HPCLAUNCH_FETCH (OFF, ON, ALWAYS)")
endif()

include(CMakeDependentOption)
include(FetchContent)
include(ExternalProject)

# Unpacks an archive; sets ${name}_SOURCE_DIR and ${name}_BINARY_DIR for the caller. It comes from
# FETCHCONTENT_SOURCE_DIR_<NAME>, else from HPCLAUNCH_FETCH_MIRROR, else from the network when that is allowed.
# (SOURCE_SUBDIR names no folder on purpose: MakeAvailable then unpacks and adds no targets, and each
# caller adds the folder itself with EXCLUDE_FROM_ALL, so that nothing of it gets installed.)
macro(hpclaunch_fetch name version deb rpm url sha256)
  string(REGEX REPLACE ".*/" "" _file ${url})
  if(_file MATCHES "^v?([0-9].*)")
    set(_file "${name}-${CMAKE_MATCH_1}")
  endif()
  string(TOUPPER ${name} _upper)
  set(_from ${url})
  if(FETCHCONTENT_SOURCE_DIR_${_upper})
    set(_from "${FETCHCONTENT_SOURCE_DIR_${_upper}}")
  elseif(HPCLAUNCH_FETCH_MIRROR AND EXISTS "${HPCLAUNCH_FETCH_MIRROR}/${_file}")
    set(_from "${HPCLAUNCH_FETCH_MIRROR}/${_file}")
  elseif(NOT HPCLAUNCH_FETCH)
    string(TOLOWER ${name} _spack)
    string(REPLACE "_" "-" _spack ${_spack})
    message(FATAL_ERROR
      "${name} ${version} or newer not found. Install it or allow the download:\n"
      "  Debian, Ubuntu:  apt-get install ${deb}\n"
      "  Fedora, Rocky:   dnf install ${rpm}\n"
      "  Spack:           spack install ${_spack} && spack load ${_spack}\n"
      "  own copy:        -DCMAKE_PREFIX_PATH=<its prefix>\n"
      "  download:        -DHPCLAUNCH_FETCH=ON\n"
      "  no network:      -DHPCLAUNCH_FETCH_MIRROR=<folder with ${_file}>, see docs/install.md")
  endif()
  message(STATUS "${name}: from ${_from}")
  string(REGEX REPLACE ".*[-v]([0-9.]+)\\.tar.*" "\\1" HPCLAUNCH_VERSION_${name} ${_file})
  set(_stamp)
  if(NOT CMAKE_VERSION VERSION_LESS 3.24)
    set(_stamp DOWNLOAD_EXTRACT_TIMESTAMP ON)
  endif()
  string(TOLOWER ${name} _lower)
  FetchContent_Declare(${name} URL "${_from}" URL_HASH SHA256=${sha256} DOWNLOAD_NAME ${_file}
                       SOURCE_SUBDIR none-of-ours ${_stamp})
  FetchContent_MakeAvailable(${name})
  set(${name}_SOURCE_DIR ${${_lower}_SOURCE_DIR})
  set(${name}_BINARY_DIR ${${_lower}_BINARY_DIR})
endmacro()

# A library with a CMake package `name` and a target `target`.
macro(hpclaunch_library name version target deb rpm url sha256)
  if(NOT HPCLAUNCH_FETCH STREQUAL "ALWAYS" AND NOT TARGET ${target})
    find_package(${name} ${version} QUIET)
    set(HPCLAUNCH_VERSION_${name} ${${name}_VERSION})
  endif()
  if(NOT TARGET ${target})
    hpclaunch_fetch(${name} ${version} "${deb}" "${rpm}" ${url} ${sha256})
    add_subdirectory(${${name}_SOURCE_DIR} ${${name}_BINARY_DIR} EXCLUDE_FROM_ALL)
    # Our warnings do not apply to headers of others (SYSTEM on add_subdirectory needs CMake 3.25).
    get_target_property(_real ${target} ALIASED_TARGET)
    get_target_property(_include ${_real} INTERFACE_INCLUDE_DIRECTORIES)
    set_target_properties(${_real} PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${_include}")
  endif()
endmacro()

foreach(_option CLI11_BUILD_DOCS CLI11_BUILD_EXAMPLES CLI11_BUILD_TESTS CLI11_PRECOMPILED JSON_BuildTests JSON_Install)
  set(${_option} OFF CACHE INTERNAL "")
endforeach()
hpclaunch_library(fmt 8 fmt::fmt libfmt-dev fmt-devel
                  https://github.com/fmtlib/fmt/archive/refs/tags/10.2.1.tar.gz
                  1250e4cc58bf06ee631567523f48848dc4596133e163f02615c97f78bab6c811)
hpclaunch_library(CLI11 2.1 CLI11::CLI11 libcli11-dev cli11-devel
                  https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.4.1.tar.gz
                  73b7ec52261ce8fe980a29df6b4ceb66243bb0b779451dbd3d014cfec9fdbb58)
hpclaunch_library(nlohmann_json 3.9 nlohmann_json::nlohmann_json nlohmann-json3-dev json-devel
                  https://github.com/nlohmann/json/archive/refs/tags/v3.11.3.tar.gz
                  0d8ef5af7f9794e3263480193c491549b2ba6cc74bb018906202ada498a79406)

# A shared fmt would load the shared C++ library, whatever is linked into the program.
get_target_property(_fmt_type fmt::fmt TYPE)
if(HPCLAUNCH_STATIC_CXX AND _fmt_type STREQUAL "SHARED_LIBRARY")
  add_library(hpclaunch_fmt STATIC cmake/fmt_inside.cpp)
  target_include_directories(hpclaunch_fmt SYSTEM PUBLIC
                             $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_options(hpclaunch_fmt PRIVATE -fkeep-inline-functions -ffunction-sections)
  target_link_options(hpclaunch_fmt INTERFACE -Wl,--gc-sections)
  add_library(hpclaunch::fmt ALIAS hpclaunch_fmt)
else()
  add_library(hpclaunch::fmt ALIAS fmt::fmt)
endif()

# ---- hwloc: pkg-config, else a static library without optional parts -------------------------------
if(NOT HPCLAUNCH_FETCH STREQUAL "ALWAYS")
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(hwloc QUIET IMPORTED_TARGET hwloc>=2.3)
    set(HPCLAUNCH_VERSION_hwloc ${hwloc_VERSION})
  endif()
endif()
# Its archive, where that needs no library but the C library's: the shared one, which loads libudev, takes up to half a
# millisecond of every start.
if(TARGET PkgConfig::hwloc AND HPCLAUNCH_STATIC_CXX)
  find_library(HPCLAUNCH_HWLOC_ARCHIVE libhwloc.a HINTS ${hwloc_LIBDIR} ${hwloc_LIBRARY_DIRS})
  mark_as_advanced(HPCLAUNCH_HWLOC_ARCHIVE)
endif()
if(HPCLAUNCH_HWLOC_ARCHIVE)
  include(CheckCSourceCompiles)
  file(READ cmake/no_udev.c _no_udev)
  set(CMAKE_REQUIRED_INCLUDES ${hwloc_INCLUDE_DIRS})
  set(CMAKE_REQUIRED_LIBRARIES ${HPCLAUNCH_HWLOC_ARCHIVE} m ${CMAKE_DL_LIBS})
  check_c_source_compiles("${_no_udev}
#include <hwloc.h>
int main(void) { hwloc_topology_t topology; return hwloc_topology_init(&topology) + hwloc_topology_load(topology); }"
                          HPCLAUNCH_HAS_STATIC_HWLOC)
  unset(CMAKE_REQUIRED_INCLUDES)
  unset(CMAKE_REQUIRED_LIBRARIES)
endif()
cmake_dependent_option(HPCLAUNCH_STATIC_HWLOC "Link hwloc into the program" ON
                       "HPCLAUNCH_HAS_STATIC_HWLOC;TARGET PkgConfig::hwloc" OFF)
if(HPCLAUNCH_STATIC_HWLOC)
  add_library(hpclaunch_hwloc STATIC cmake/no_udev.c)
  target_include_directories(hpclaunch_hwloc SYSTEM INTERFACE ${hwloc_INCLUDE_DIRS})
  target_link_libraries(hpclaunch_hwloc INTERFACE ${HPCLAUNCH_HWLOC_ARCHIVE} $<TARGET_FILE:hpclaunch_hwloc> m)
  add_library(hpclaunch::hwloc ALIAS hpclaunch_hwloc)
elseif(TARGET PkgConfig::hwloc)
  add_library(hpclaunch::hwloc ALIAS PkgConfig::hwloc)
else()
  hpclaunch_fetch(hwloc 2.3 "libhwloc-dev pkg-config" "hwloc-devel pkgconf-pkg-config"
                  https://download.open-mpi.org/release/hwloc/v2.14/hwloc-2.14.0.tar.bz2
                  966b9bb3e9f29f8d65ce8d106779e457f40e246a645e584b100772a42f9ae94b)
  # GPUs are found through vendor libraries that hpclaunch opens itself, PCI through sysfs.
  set(_hwloc_prefix ${CMAKE_BINARY_DIR}/_deps/hwloc-install)
  find_program(HPCLAUNCH_MAKE NAMES gmake make REQUIRED)
  set(_hwloc_host)
  if(CMAKE_CROSSCOMPILING)
    set(_hwloc_host --host=${CMAKE_LIBRARY_ARCHITECTURE})
  endif()
  ExternalProject_Add(hwloc_build
    SOURCE_DIR ${hwloc_SOURCE_DIR}
    BINARY_DIR ${CMAKE_BINARY_DIR}/_deps/hwloc-build
    DOWNLOAD_COMMAND ""
    CONFIGURE_COMMAND ${CMAKE_COMMAND} -E env CC=${CMAKE_C_COMPILER} CFLAGS=-O2
                      ${hwloc_SOURCE_DIR}/configure --quiet ${_hwloc_host} --prefix=${_hwloc_prefix} --libdir=${_hwloc_prefix}/lib
                      --enable-static --disable-shared --with-pic --disable-doxygen
                      --disable-cairo --disable-libxml2 --disable-libudev --disable-pci --disable-plugins
                      --disable-opencl --disable-cuda --disable-nvml --disable-rsmi --disable-levelzero --disable-gl
    BUILD_COMMAND ${HPCLAUNCH_MAKE} -s -j4 -C include all COMMAND ${HPCLAUNCH_MAKE} -s -j4 -C hwloc all
    INSTALL_COMMAND ${HPCLAUNCH_MAKE} -s -C include install COMMAND ${HPCLAUNCH_MAKE} -s -C hwloc install
    BUILD_BYPRODUCTS ${_hwloc_prefix}/lib/libhwloc.a
    LOG_CONFIGURE ON LOG_BUILD ON LOG_INSTALL ON LOG_OUTPUT_ON_FAILURE ON)
  file(MAKE_DIRECTORY ${_hwloc_prefix}/include)  # an imported target needs an existing folder
  add_library(hpclaunch_hwloc STATIC IMPORTED GLOBAL)
  set_target_properties(hpclaunch_hwloc PROPERTIES IMPORTED_LOCATION ${_hwloc_prefix}/lib/libhwloc.a
                        INTERFACE_INCLUDE_DIRECTORIES ${_hwloc_prefix}/include INTERFACE_LINK_LIBRARIES m)
  add_dependencies(hpclaunch_hwloc hwloc_build)
  add_library(hpclaunch::hwloc ALIAS hpclaunch_hwloc)
endif()

# ---- Catch2, for the tests: version 3, or 2.13 where the system has that (tests/support/catch.h) ---
# AUTO builds the tests where Catch2 and Python are installed; ON stops without them.
if(HPCLAUNCH_TESTS)
  find_package(Python3 COMPONENTS Interpreter QUIET)
  if(NOT HPCLAUNCH_FETCH STREQUAL "ALWAYS")
    find_package(Catch2 3 QUIET)
    if(NOT Catch2_FOUND)
      find_package(Catch2 2.13 QUIET)
    endif()
  endif()
  if(HPCLAUNCH_TESTS STREQUAL "AUTO" AND NOT (TARGET Catch2::Catch2 AND Python3_FOUND))
    message(STATUS "Building without tests: they need Catch2 2.13 or newer and Python 3 (see docs/install.md)")
    set(HPCLAUNCH_TESTS OFF)
  elseif(NOT Python3_FOUND)
    message(FATAL_ERROR "Python 3 not found; HPCLAUNCH_TESTS=ON needs it (python3)")
  else()
    hpclaunch_library(Catch2 2.13 Catch2::Catch2 catch2 catch-devel
                      https://github.com/catchorg/Catch2/archive/refs/tags/v3.7.1.tar.gz
                      c991b247a1a0d7bb9c39aa35faf0fe9e19764213f28ffba3109388e62ee0269c)
  endif()
endif()
