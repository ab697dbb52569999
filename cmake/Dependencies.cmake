# Where the libraries come from: the system's own copy first, else a pinned archive (docs/install.md).
#
# Each archive below is named by version and SHA-256. The sums are those of published recipes (Spack, Conan,
# Homebrew, Chimera Linux, Debian's signed source index; for fmt, build files of several projects), at
# least two that agree for each. docs/install.md says which of them were downloaded and tried.
set(HPCLAUNCH_FETCH AUTO CACHE STRING "Download libraries: AUTO where missing, NEVER, or ALWAYS")
set_property(CACHE HPCLAUNCH_FETCH PROPERTY STRINGS AUTO NEVER ALWAYS)
set(HPCLAUNCH_FETCH_MIRROR "" CACHE PATH "Folder with the archives, for machines without a network")
if(NOT HPCLAUNCH_FETCH MATCHES "^(AUTO|NEVER|ALWAYS)$")
  message(FATAL_ERROR "HPCLAUNCH_FETCH is '${HPCLAUNCH_FETCH}'; it can be AUTO, NEVER or ALWAYS")
endif()

include(FetchContent)
include(ExternalProject)

# The archive of `name`, unpacked; sets ${name}_SOURCE_DIR and ${name}_BINARY_DIR for the caller.
# A file of the same name in HPCLAUNCH_FETCH_MIRROR is used in place of the network; its sum is checked too.
# (SOURCE_SUBDIR names nothing on purpose: MakeAvailable then unpacks and adds no targets, and each
# caller below adds the folder itself with EXCLUDE_FROM_ALL, so that nothing of it gets installed.)
macro(hpclaunch_fetch name file url sha256)
  set(_from ${url})
  if(HPCLAUNCH_FETCH_MIRROR AND EXISTS "${HPCLAUNCH_FETCH_MIRROR}/${file}")
    set(_from "${HPCLAUNCH_FETCH_MIRROR}/${file}")
  endif()
  string(TOUPPER ${name} _upper)
  if(FETCHCONTENT_SOURCE_DIR_${_upper})
    set(_from "${FETCHCONTENT_SOURCE_DIR_${_upper}}")
  endif()
  message(STATUS "${name}: from ${_from} (machines without a network: docs/install.md)")
  set(_stamp)
  if(NOT CMAKE_VERSION VERSION_LESS 3.24)
    set(_stamp DOWNLOAD_EXTRACT_TIMESTAMP ON)
  endif()
  FetchContent_Declare(${name} URL "${_from}" URL_HASH SHA256=${sha256} DOWNLOAD_NAME ${file}
                       SOURCE_SUBDIR none-of-ours ${_stamp})
  FetchContent_MakeAvailable(${name})
endmacro()

# Headers of others are not held to our warnings (SYSTEM on add_subdirectory needs CMake 3.25).
function(hpclaunch_system_headers target)
  get_target_property(directories ${target} INTERFACE_INCLUDE_DIRECTORIES)
  set_target_properties(${target} PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${directories}")
endfunction()

# Stops when `found` is false and nothing may be downloaded; says what to install.
function(hpclaunch_missing name version found deb rpm)
  if(NOT found AND HPCLAUNCH_FETCH STREQUAL "NEVER")
    string(TOLOWER ${name} spack)
    string(REPLACE "_" "-" spack ${spack})
    message(FATAL_ERROR
      "${name} ${version} or newer was not found, and HPCLAUNCH_FETCH=NEVER forbids a download.\n"
      "  Debian, Ubuntu:  apt-get install ${deb}\n"
      "  Fedora, Rocky:   dnf install ${rpm}\n"
      "  without root:    spack install ${spack} && spack load ${spack}, or CMAKE_PREFIX_PATH=<its prefix>,\n"
      "                   or -DHPCLAUNCH_FETCH=AUTO (see docs/install.md for machines without a network)")
  endif()
endfunction()

# ---- fmt -----------------------------------------------------------------------------------------
if(NOT HPCLAUNCH_FETCH STREQUAL "ALWAYS")
  find_package(fmt 8 QUIET)
  hpclaunch_missing(fmt 8 "${fmt_FOUND}" libfmt-dev fmt-devel)
endif()
if(NOT TARGET fmt::fmt)
  hpclaunch_fetch(fmt fmt-10.2.1.tar.gz https://github.com/fmtlib/fmt/archive/refs/tags/10.2.1.tar.gz
                  1250e4cc58bf06ee631567523f48848dc4596133e163f02615c97f78bab6c811)
  add_subdirectory(${fmt_SOURCE_DIR} ${fmt_BINARY_DIR} EXCLUDE_FROM_ALL)
  hpclaunch_system_headers(fmt)
endif()

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

# ---- CLI11 ---------------------------------------------------------------------------------------
if(NOT HPCLAUNCH_FETCH STREQUAL "ALWAYS")
  find_package(CLI11 2.1 QUIET)
  hpclaunch_missing(CLI11 2.1 "${CLI11_FOUND}" libcli11-dev cli11-devel)
endif()
if(NOT TARGET CLI11::CLI11)
  set(CLI11_BUILD_DOCS OFF)
  set(CLI11_BUILD_EXAMPLES OFF)
  set(CLI11_BUILD_TESTS OFF)
  set(CLI11_PRECOMPILED OFF)
  hpclaunch_fetch(cli11 CLI11-2.4.1.tar.gz https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.4.1.tar.gz
                  73b7ec52261ce8fe980a29df6b4ceb66243bb0b779451dbd3d014cfec9fdbb58)
  add_subdirectory(${cli11_SOURCE_DIR} ${cli11_BINARY_DIR} EXCLUDE_FROM_ALL)
  hpclaunch_system_headers(CLI11)
endif()

# ---- nlohmann_json -------------------------------------------------------------------------------
if(NOT HPCLAUNCH_FETCH STREQUAL "ALWAYS")
  find_package(nlohmann_json 3.9 QUIET)
  hpclaunch_missing(nlohmann_json 3.9 "${nlohmann_json_FOUND}" nlohmann-json3-dev json-devel)
endif()
if(NOT TARGET nlohmann_json::nlohmann_json)
  set(JSON_BuildTests OFF CACHE INTERNAL "")
  set(JSON_Install OFF CACHE INTERNAL "")
  hpclaunch_fetch(nlohmann_json nlohmann_json-3.11.3.tar.gz
                  https://github.com/nlohmann/json/archive/refs/tags/v3.11.3.tar.gz
                  0d8ef5af7f9794e3263480193c491549b2ba6cc74bb018906202ada498a79406)
  add_subdirectory(${nlohmann_json_SOURCE_DIR} ${nlohmann_json_BINARY_DIR} EXCLUDE_FROM_ALL)
  hpclaunch_system_headers(nlohmann_json)
endif()

# ---- hwloc: pkg-config, else a static library without optional parts -------------------------------
set(_hwloc_found FALSE)
if(NOT HPCLAUNCH_FETCH STREQUAL "ALWAYS")
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(hwloc QUIET IMPORTED_TARGET hwloc>=2.3)
    set(_hwloc_found "${hwloc_FOUND}")
  endif()
  hpclaunch_missing(hwloc 2.3 "${_hwloc_found}" "libhwloc-dev pkg-config" "hwloc-devel pkgconf-pkg-config")
endif()
if(_hwloc_found)
  add_library(hpclaunch::hwloc ALIAS PkgConfig::hwloc)
else()
  hpclaunch_fetch(hwloc hwloc-2.12.0.tar.bz2
                  https://download.open-mpi.org/release/hwloc/v2.12/hwloc-2.12.0.tar.bz2
                  06a0a2bdc0a5714e839164683846a0e936a896213758e9d37e49e232b89c58d4)
  # GPUs are found through vendor libraries that hpclaunch opens itself, PCI through sysfs.
  set(_hwloc_prefix ${CMAKE_BINARY_DIR}/_deps/hwloc-install)
  find_program(HPCLAUNCH_MAKE NAMES gmake make REQUIRED)
  ExternalProject_Add(hwloc_build
    SOURCE_DIR ${hwloc_SOURCE_DIR}
    BINARY_DIR ${CMAKE_BINARY_DIR}/_deps/hwloc-build
    DOWNLOAD_COMMAND ""
    CONFIGURE_COMMAND ${CMAKE_COMMAND} -E env CC=${CMAKE_C_COMPILER} CFLAGS=-O2
                      ${hwloc_SOURCE_DIR}/configure --quiet --prefix=${_hwloc_prefix} --libdir=${_hwloc_prefix}/lib
                      --enable-static --disable-shared --with-pic --disable-doxygen
                      --disable-cairo --disable-libxml2 --disable-libudev --disable-pci --disable-plugins
                      --disable-opencl --disable-cuda --disable-nvml --disable-rsmi --disable-levelzero --disable-gl
    BUILD_COMMAND ${HPCLAUNCH_MAKE} -s -j4 -C include all COMMAND ${HPCLAUNCH_MAKE} -s -j4 -C hwloc all
    INSTALL_COMMAND ${HPCLAUNCH_MAKE} -s -C include install COMMAND ${HPCLAUNCH_MAKE} -s -C hwloc install
    BUILD_BYPRODUCTS ${_hwloc_prefix}/lib/libhwloc.a
    LOG_CONFIGURE ON LOG_BUILD ON LOG_INSTALL ON LOG_OUTPUT_ON_FAILURE ON)
  file(MAKE_DIRECTORY ${_hwloc_prefix}/include)  # an imported target may not name a folder that is not there
  add_library(hpclaunch_hwloc STATIC IMPORTED GLOBAL)
  set_target_properties(hpclaunch_hwloc PROPERTIES IMPORTED_LOCATION ${_hwloc_prefix}/lib/libhwloc.a
                        INTERFACE_INCLUDE_DIRECTORIES ${_hwloc_prefix}/include INTERFACE_LINK_LIBRARIES m)
  add_dependencies(hpclaunch_hwloc hwloc_build)
  add_library(hpclaunch::hwloc ALIAS hpclaunch_hwloc)
endif()

# ---- Catch2, for the tests: version 3, or 2.13 where the system has that (tests/support/catch.h) ---
if(HPCLAUNCH_TESTS)
  if(NOT HPCLAUNCH_FETCH STREQUAL "ALWAYS")
    find_package(Catch2 3 QUIET)
    if(NOT Catch2_FOUND)
      find_package(Catch2 2.13 QUIET)
    endif()
    hpclaunch_missing(Catch2 2.13 "${Catch2_FOUND}" catch2 catch-devel)
  endif()
  if(NOT TARGET Catch2::Catch2)
    hpclaunch_fetch(catch2 Catch2-3.7.1.tar.gz https://github.com/catchorg/Catch2/archive/refs/tags/v3.7.1.tar.gz
                    c991b247a1a0d7bb9c39aa35faf0fe9e19764213f28ffba3109388e62ee0269c)
    add_subdirectory(${catch2_SOURCE_DIR} ${catch2_BINARY_DIR} EXCLUDE_FROM_ALL)
    hpclaunch_system_headers(Catch2)
  endif()
endif()
