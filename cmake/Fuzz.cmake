# Programs that libFuzzer drives, one per file of tests/fuzz (docs/fuzzing.md). With -DHPCLAUNCH_FUZZ=ON, Clang only.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "HPCLAUNCH_FUZZ needs Clang, whose libFuzzer runs the targets; the compiler is ${CMAKE_CXX_COMPILER}\n"
                      "try: cmake --preset fuzz, or -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++")
endif()
set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer,address,undefined)
check_cxx_source_compiles("#include <cstddef>\n#include <cstdint>
extern \"C\" int LLVMFuzzerTestOneInput(const std::uint8_t*, std::size_t) { return 0; }" HPCLAUNCH_HAS_LIBFUZZER)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT HPCLAUNCH_HAS_LIBFUZZER)
  message(FATAL_ERROR "no libFuzzer beside ${CMAKE_CXX_COMPILER}\n"
                      "try: apt-get install libclang-rt-dev, or dnf install compiler-rt")
endif()

# Every module counts its branches; libFuzzer itself comes into the targets only.
set(_sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all)
target_compile_options(hpclaunch_flags INTERFACE ${_sanitizers} -fsanitize=fuzzer-no-link -fno-omit-frame-pointer)
target_link_options(hpclaunch_flags INTERFACE ${_sanitizers})

add_custom_target(fuzz COMMENT "Fuzz targets")
# hpclaunch_fuzz(NAME [SOURCES file...] LINK library...): SOURCES are those of a module of which the target needs no more.
function(hpclaunch_fuzz name)
  cmake_parse_arguments(F "" "" "SOURCES;LINK" ${ARGN})
  add_executable(fuzz_${name} EXCLUDE_FROM_ALL tests/fuzz/${name}.cpp ${F_SOURCES})
  target_include_directories(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(fuzz_${name} PRIVATE hpclaunch_flags hpclaunch::fmt ${F_LINK})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzz fuzz_${name})
endfunction()

set(_shell src/lint/shell.cpp src/lint/words.cpp)
hpclaunch_fuzz(cpulist LINK hpclaunch_base)
hpclaunch_fuzz(flight_recorder LINK hpclaunch_model)
hpclaunch_fuzz(hostfile LINK hpclaunch_model)
hpclaunch_fuzz(hostlist LINK hpclaunch_model)
hpclaunch_fuzz(lint LINK hpclaunch_lint)
hpclaunch_fuzz(plan_wire SOURCES src/plan/environment/wire.cpp src/plan/environment/settings.cpp LINK hpclaunch_model)
hpclaunch_fuzz(profile LINK hpclaunch_profile)
hpclaunch_fuzz(quote SOURCES src/render/env.cpp src/render/text.cpp ${_shell} LINK hpclaunch_model)
hpclaunch_fuzz(shell SOURCES ${_shell} LINK hpclaunch_base)
hpclaunch_fuzz(stack_text LINK hpclaunch_stall)
hpclaunch_fuzz(stacks LINK hpclaunch_base)
hpclaunch_fuzz(topology LINK hpclaunch_model)
hpclaunch_fuzz(wire LINK hpclaunch_base)
