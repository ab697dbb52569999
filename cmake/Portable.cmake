# hpclaunch-portable: the same objects once more, linked so that they start with glibc HPCLAUNCH_GLIBC_FLOOR and newer and
# need nothing but the C library (portable/stubs.sh, portable/compat.c). What packages carry (scripts/package).
set(HPCLAUNCH_GLIBC_FLOOR 2.28 CACHE STRING "Oldest glibc on which the portable program starts")
option(HPCLAUNCH_PORTABLE "Build the portable program too" OFF)
mark_as_advanced(HPCLAUNCH_GLIBC_FLOOR)

get_target_property(_hwloc_real hpclaunch::hwloc ALIASED_TARGET)
set(_lacking "")
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(_lacking "64-bit Linux")
elseif(NOT HPCLAUNCH_STATIC_CXX)
  set(_lacking "the C++ library inside (HPCLAUNCH_STATIC_CXX=ON, in Release builds with GCC)")
elseif(NOT _hwloc_real STREQUAL "hpclaunch_hwloc")
  set(_lacking "hwloc as an archive (HPCLAUNCH_STATIC_HWLOC, or HPCLAUNCH_FETCH=ALWAYS)")
endif()
if(_lacking)
  if(HPCLAUNCH_PORTABLE)
    message(FATAL_ERROR "the portable program needs ${_lacking}\ntry: cmake --preset release -DHPCLAUNCH_PORTABLE=ON")
  endif()
  return()
endif()

set(_stubs ${CMAKE_BINARY_DIR}/portable/glibc-${HPCLAUNCH_GLIBC_FLOOR})
add_custom_command(OUTPUT ${_stubs}/libc.so
  COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/portable/stubs.sh ${CMAKE_C_COMPILER} ${HPCLAUNCH_GLIBC_FLOOR} ${_stubs}
  DEPENDS ${PROJECT_SOURCE_DIR}/cmake/portable/stubs.sh
  VERBATIM COMMENT "Writing what glibc ${HPCLAUNCH_GLIBC_FLOOR} has")
add_custom_target(hpclaunch_stubs DEPENDS ${_stubs}/libc.so)

add_executable(hpclaunch-portable $<TARGET_OBJECTS:hpclaunch> cmake/portable/compat.c)
target_link_libraries(hpclaunch-portable PRIVATE hpclaunch_cli -Wl,--no-as-needed -lpthread -ldl)
target_link_options(hpclaunch-portable PRIVATE -L${_stubs} -Wl,--wrap=__libc_start_main -Wl,--gc-sections)
set_target_properties(hpclaunch-portable PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/portable/bin
                      OUTPUT_NAME hpclaunch SKIP_BUILD_RPATH ON LINK_DEPENDS ${_stubs}/libc.so)
add_dependencies(hpclaunch-portable hpclaunch_stubs hpclaunch)
if(NOT HPCLAUNCH_PORTABLE AND NOT HPCLAUNCH_TESTS)
  set_target_properties(hpclaunch-portable PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
