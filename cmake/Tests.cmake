# Unit tests: one program per module, so that a module's tests build without the rest.
# hpclaunch_unit_test(NAME [APART] [LABEL label] SOURCES... LINK...)
# APART: sources with the same local names, compiled one by one also with HPCLAUNCH_UNITY.
# What is tested is optimized, the tests themselves are not: that would take longer than they run.
add_library(hpclaunch_test_main STATIC tests/support/main.cpp tests/support/golden.cpp)
target_compile_options(hpclaunch_test_main PUBLIC $<$<CONFIG:Release>:-O0>)
target_link_libraries(hpclaunch_test_main PUBLIC hpclaunch_flags Catch2::Catch2 hpclaunch::fmt)
target_include_directories(hpclaunch_test_main PUBLIC ${PROJECT_SOURCE_DIR}/tests)
target_compile_definitions(hpclaunch_test_main PUBLIC HPCLAUNCH_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
if(HPCLAUNCH_PCH)
  add_library(hpclaunch_test_headers OBJECT ${PROJECT_SOURCE_DIR}/cmake/headers.cpp)
  target_compile_options(hpclaunch_test_headers PRIVATE $<$<CONFIG:Release>:-O0>)
  target_link_libraries(hpclaunch_test_headers PRIVATE hpclaunch_flags Catch2::Catch2 hpclaunch::fmt nlohmann_json::nlohmann_json)
  target_precompile_headers(hpclaunch_test_headers PRIVATE <algorithm> <map> <optional> <set> <string> <vector>
                            <fmt/format.h> <nlohmann/json.hpp> ${PROJECT_SOURCE_DIR}/tests/support/catch.h)
endif()

function(hpclaunch_unit_test name)
  cmake_parse_arguments(T "APART" "LABEL" "SOURCES;LINK" ${ARGN})
  if(NOT T_LABEL)
    set(T_LABEL unit)
  endif()
  add_executable(test_${name} ${T_SOURCES})
  target_link_libraries(test_${name} PRIVATE hpclaunch_test_main ${T_LINK})
  if(HPCLAUNCH_PCH)
    target_precompile_headers(test_${name} REUSE_FROM hpclaunch_test_headers)
  endif()
  if(NOT T_APART)
    set_target_properties(test_${name} PROPERTIES UNITY_BUILD ${HPCLAUNCH_UNITY})
  endif()
  add_test(NAME unit.${name} COMMAND test_${name})
  set_tests_properties(unit.${name} PROPERTIES LABELS ${T_LABEL} TIMEOUT 300)
endfunction()

hpclaunch_unit_test(base SOURCES
  tests/base/cpuset_test.cpp
  tests/base/text_test.cpp
  LINK hpclaunch_base)

# ---- the house: who includes whom, words, links, the installed tree ------------------------------------------
add_test(NAME house.layers COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/layers.py)
add_test(NAME house.layers-self-test COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/layers.py --self-test)
add_test(NAME house.needs COMMAND bash ${PROJECT_SOURCE_DIR}/tests/needs_test.sh)
add_test(NAME docs.links COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/links.py ${PROJECT_SOURCE_DIR})
add_test(NAME docs.messages COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/messages --check)
add_test(NAME docs.words COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/messages --words)
if(HPCLAUNCH_FETCH STREQUAL "OFF")  # libraries are installed where they are not downloaded
  add_test(NAME house.configure COMMAND sh ${PROJECT_SOURCE_DIR}/tests/configure_test.sh ${CMAKE_COMMAND})
  set_tests_properties(house.configure PROPERTIES LABELS house TIMEOUT 300)
endif()
set_tests_properties(house.layers house.layers-self-test house.needs docs.links docs.messages docs.words PROPERTIES LABELS house TIMEOUT 60)
if(TARGET hpclaunch)
  add_test(NAME house.install
           COMMAND sh ${PROJECT_SOURCE_DIR}/tests/install_test.sh ${CMAKE_COMMAND} ${CMAKE_BINARY_DIR})
  set_tests_properties(house.install PROPERTIES LABELS house TIMEOUT 120 RESOURCE_LOCK install)
endif()

# Packages of the release build: made, installed, used, removed. Both write the manifest of an install.
if(TARGET hpclaunch-portable AND CMAKE_BUILD_TYPE STREQUAL "Release")
  add_test(NAME package COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/package/package_test.py ${CMAKE_BINARY_DIR})
  set_tests_properties(package PROPERTIES LABELS package TIMEOUT 300 RESOURCE_LOCK install)
endif()

hpclaunch_unit_test(render APART SOURCES
  tests/render/env_test.cpp
  tests/render/explain_test.cpp
  tests/render/plans.cpp
  tests/render/quote_test.cpp
  tests/render/script_test.cpp
  tests/render/table_test.cpp
  tests/render/text_test.cpp
  LINK hpclaunch_render)
add_executable(render_tool tests/render/render_tool.cpp)
target_link_libraries(render_tool PRIVATE hpclaunch_render)
add_test(NAME shells.round-trip
         COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/render/shells.py $<TARGET_FILE:render_tool>)
set_tests_properties(shells.round-trip PROPERTIES LABELS shells TIMEOUT 300)
hpclaunch_unit_test(plan_json SOURCES
  tests/model/plan_json_test.cpp
  tests/render/plans.cpp
  LINK hpclaunch_model)

# ---- the shim: its functions, its wire, and the program itself in every build this machine can make --
hpclaunch_unit_test(shim LABEL shim SOURCES
  tests/shim/decode_test.cpp
  tests/shim/fuzz_test.cpp
  tests/shim/static_test.cpp)
hpclaunch_unit_test(wire LABEL shim SOURCES
  tests/plan/wire_test.cpp
  LINK hpclaunch_plan)
add_executable(hpclaunch-shim-checked src/shim/main.cpp)
target_link_libraries(hpclaunch-shim-checked PRIVATE hpclaunch_flags)
function(hpclaunch_shim_test path libc)
  add_test(NAME shim.black-box.${libc}
           COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/shim/black_box.py ${path} ${libc})
  set_tests_properties(shim.black-box.${libc} PROPERTIES LABELS shim TIMEOUT 300)
endfunction()
hpclaunch_shim_test($<TARGET_FILE:hpclaunch-shim-checked> checked)
set(shim_builds ${HPCLAUNCH_SHIM_BUILDS})
while(shim_builds)
  list(POP_FRONT shim_builds path libc)
  hpclaunch_shim_test(${path} ${libc})
endwhile()
if(HPCLAUNCH_SHIM_AARCH64)
  add_test(NAME shim.black-box.aarch64
           COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/support/foreign.py ${HPCLAUNCH_QEMU_AARCH64}
                   ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/shim/black_box.py ${HPCLAUNCH_SHIM_AARCH64} aarch64)
  set_tests_properties(shim.black-box.aarch64 PROPERTIES LABELS shim TIMEOUT 300 SKIP_RETURN_CODE 77)
elseif(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  add_test(NAME shim.black-box.aarch64 COMMAND ${CMAKE_COMMAND} -E echo "skipped: no aarch64-linux-gnu-g++ or no qemu-aarch64")
  set_tests_properties(shim.black-box.aarch64 PROPERTIES LABELS shim SKIP_REGULAR_EXPRESSION "^skipped: ")
endif()

# ---- planning: counts, placement, environment, launch lines ------------------------------------------
hpclaunch_unit_test(hosts SOURCES tests/model/hostlist_test.cpp tests/model/job_test.cpp LINK hpclaunch_model)
add_executable(hostlist_driver tests/model/hostlist_driver.cpp)
target_link_libraries(hostlist_driver PRIVATE hpclaunch_model)
add_test(NAME job.hostlists-as-slurm
         COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/model/hostlist_test.py
                 $<TARGET_FILE:hostlist_driver>)
set_tests_properties(job.hostlists-as-slurm PROPERTIES LABELS unit TIMEOUT 300)
hpclaunch_unit_test(place APART SOURCES
  tests/plan/links_test.cpp
  tests/plan/match_test.cpp
  tests/plan/place_test.cpp
  tests/plan/placement_test.cpp
  tests/plan/rivals.cpp
  tests/plan/rivals_test.cpp
  tests/support/random_topology.cpp
  LINK hpclaunch_plan hpclaunch_probe hpclaunch::fmt)
hpclaunch_unit_test(forward SOURCES tests/plan/forward_test.cpp LINK hpclaunch_plan)
hpclaunch_unit_test(site_rules SOURCES tests/plan/site_rules_test.cpp LINK hpclaunch_plan)
hpclaunch_unit_test(make_plan APART SOURCES
  tests/plan/device_groups_test.cpp
  tests/plan/devices_per_rank_test.cpp
  tests/plan/grants_law_test.cpp
  tests/plan/grants_parts_test.cpp
  tests/plan/grants_test.cpp
  tests/plan/make_plan_test.cpp
  tests/plan/masks_test.cpp
  tests/plan/nics_test.cpp
  tests/plan/parts_test.cpp
  tests/plan/vendors_test.cpp
  tests/support/random_topology.cpp
  LINK hpclaunch_plan)
hpclaunch_unit_test(check SOURCES
  tests/check/check_plan_test.cpp
  tests/check/check_variables_test.cpp
  tests/check/drift_test.cpp
  tests/support/random_topology.cpp
  LINK hpclaunch_check)
hpclaunch_unit_test(compare SOURCES
  tests/check/compare_test.cpp
  tests/model/report_test.cpp
  LINK hpclaunch_check)
hpclaunch_unit_test(launcher APART SOURCES
  tests/launcher/clashes_test.cpp
  tests/launcher/table_test.cpp
  tests/launcher/launch_lines_test.cpp
  tests/launcher/mpi_lines_test.cpp
  LINK hpclaunch_launcher hpclaunch::fmt)

# ---- topology: model, probe, tree -------------------------------------------------------------------
hpclaunch_unit_test(topology SOURCES
  tests/model/json_position_test.cpp
  tests/model/topology_json_test.cpp
  tests/model/topology_test.cpp
  tests/support/json_position.cpp
  tests/support/random_topology.cpp
  LINK hpclaunch_model)
hpclaunch_unit_test(probe APART SOURCES
  tests/probe/child_test.cpp
  tests/probe/devices_test.cpp
  tests/probe/libfabric_test.cpp
  tests/probe/processors_test.cpp
  tests/probe/sysfs_nics_test.cpp
  tests/probe/sysfs_test.cpp
  tests/probe/topology_test.cpp
  tests/support/random_topology.cpp
  LINK hpclaunch_probe)
add_library(fake_libfabric MODULE tests/probe/fake_libfabric.c)
add_library(fake_libfabric_without MODULE tests/probe/fake_libfabric.c)
target_compile_definitions(fake_libfabric_without PRIVATE NO_GETINFO)
target_compile_definitions(test_probe PRIVATE FAKE_LIBFABRIC="$<TARGET_FILE:fake_libfabric>"
                           FAKE_LIBFABRIC_WITHOUT="$<TARGET_FILE:fake_libfabric_without>")
add_dependencies(test_probe fake_libfabric fake_libfabric_without)

# Vendors' libraries: fakes that do wrong all that a library can, in place of hardware that no test machine has.
hpclaunch_unit_test(vendor APART SOURCES
  tests/vendor/amd_test.cpp
  tests/vendor/level_zero_test.cpp
  tests/vendor/live_test.cpp
  tests/vendor/merge_test.cpp
  tests/vendor/nvml_test.cpp
  tests/vendor/support.cpp
  tests/vendor/libraries_test.cpp
  LINK hpclaunch_probe)
# Our declarations against the vendors' headers. A missing header skips the test; with CI=true in the environment it
# fails it where scripts/test installs the header (EXPECTED).
find_path(HPCLAUNCH_NVML_INCLUDE nvml.h PATHS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES include)
find_path(HPCLAUNCH_ROCM_INCLUDE rocm_smi/rocm_smi.h PATHS ENV ROCM_PATH PATHS /opt/rocm PATH_SUFFIXES include)
mark_as_advanced(HPCLAUNCH_NVML_INCLUDE HPCLAUNCH_ROCM_INCLUDE)
function(hpclaunch_abi_test vendor)
  cmake_parse_arguments(T "EXPECTED" "" "" ${ARGN})
  add_executable(abi_${vendor} tests/vendor/abi_${vendor}.cpp)
  target_link_libraries(abi_${vendor} PRIVATE hpclaunch_flags)
  target_include_directories(abi_${vendor} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(abi_${vendor} PRIVATE HPCLAUNCH_HEADER_EXPECTED=$<BOOL:${T_EXPECTED}>)
  foreach(folder HPCLAUNCH_NVML_INCLUDE HPCLAUNCH_ROCM_INCLUDE)
    if(${folder} AND NOT ${folder} STREQUAL "/usr/include")
      target_include_directories(abi_${vendor} SYSTEM PRIVATE ${${folder}})
    endif()
  endforeach()
  add_test(NAME vendor.abi.${vendor} COMMAND abi_${vendor})
  set_tests_properties(vendor.abi.${vendor} PROPERTIES LABELS unit SKIP_RETURN_CODE 77)
endfunction()
hpclaunch_abi_test(level_zero EXPECTED)
hpclaunch_abi_test(rocm_smi EXPECTED)
hpclaunch_abi_test(nvml)
foreach(vendor level_zero nvml rocm_smi)
  add_library(fake_${vendor} MODULE tests/vendor/fake_${vendor}.cpp)
  target_link_libraries(fake_${vendor} PRIVATE hpclaunch_flags)
  # A test renames single functions in a copy: the library itself must not look them up by name.
  target_link_options(fake_${vendor} PRIVATE -Wl,-Bsymbolic-functions)
  add_dependencies(test_vendor fake_${vendor})
  string(TOUPPER ${vendor} VENDOR)
  target_compile_definitions(test_vendor PRIVATE FAKE_${VENDOR}="$<TARGET_FILE:fake_${vendor}>")
endforeach()
add_executable(probe_bench EXCLUDE_FROM_ALL tests/probe/bench.cpp)
target_link_libraries(probe_bench PRIVATE hpclaunch_probe)
hpclaunch_unit_test(topology_tree APART SOURCES
  tests/render/picture_test.cpp
  tests/render/topology_test.cpp
  tests/support/random_topology.cpp
  LINK hpclaunch_render)

# ---- the local launcher: its pure parts, and the whole of it through a small driver -----------------
hpclaunch_unit_test(network SOURCES tests/sys/events_test.cpp tests/sys/network_test.cpp LINK hpclaunch_sys)
hpclaunch_unit_test(local LABEL local SOURCES tests/sys/local_test.cpp LINK hpclaunch_sys hpclaunch_model)
add_executable(local_driver tests/sys/local_driver.cpp)
target_link_libraries(local_driver PRIVATE hpclaunch_sys hpclaunch_model)
target_include_directories(local_driver PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
target_compile_definitions(local_driver PRIVATE HPCLAUNCH_TEST_SHIM="${HPCLAUNCH_SHIM}")
add_dependencies(local_driver hpclaunch-shim)
add_test(NAME local.black-box
         COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/sys/local_test.py $<TARGET_FILE:local_driver>)
set_tests_properties(local.black-box PROPERTIES LABELS local TIMEOUT 600)

# ---- the command line, from outside: each topic is a program that gets the path of hpclaunch ------------
if(TARGET hpclaunch)
  foreach(topic usage docs terminal lint topo devices plan drift explain doctor prefixes local endings environment stage container start mps hydra openmpi mpi_standins supervise launchers allocations shapes verify after ddp identity programs agent torchrun outside profile profile_new sites site_choice examples script submit)
    add_test(NAME cli.${topic}
             COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/cli/${topic}_test.py $<TARGET_FILE:hpclaunch>)
    set_tests_properties(cli.${topic} PROPERTIES LABELS cli TIMEOUT 300)
  endforeach()
  if(HPCLAUNCH_SANITIZE)
    set_tests_properties(cli.profile_new PROPERTIES ENVIRONMENT HPCLAUNCH_TEST_EVERY=5 TIMEOUT 900)
  endif()
  # They bind ranks to the same cores and wait for one another's.
  set_tests_properties(cli.ddp PROPERTIES PROCESSORS 2)
endif()

# ---- the catalogue of environment variables: data, compiler, look-ups, and what the program says with it ----
hpclaunch_unit_test(knowledge LABEL knowledge SOURCES tests/knowledge/knowledge_test.cpp LINK hpclaunch_knowledge)
add_test(NAME knowledge.black-box
         COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/knowledge/knowledge_test.py
                 $<TARGET_FILE:hpclaunch> $<TARGET_FILE:hpclaunch-catalogue> ${PROJECT_SOURCE_DIR})
set_tests_properties(knowledge.black-box PROPERTIES LABELS knowledge TIMEOUT 300)

# ---- profiles: the format, what the program carries, and the schema against the loader -------------------
hpclaunch_unit_test(profile LABEL profile SOURCES
  tests/profile/builtin_test.cpp
  tests/profile/detect_test.cpp
  tests/profile/facts_test.cpp
  tests/profile/fuzz_test.cpp
  tests/profile/node_test.cpp
  tests/profile/parse_test.cpp
  tests/profile/resolve_test.cpp
  tests/support/json_position.cpp
  LINK hpclaunch_profile)
add_executable(profile_check tests/profile/profile_check.cpp)
target_link_libraries(profile_check PRIVATE hpclaunch_profile)
add_test(NAME profile.schema
         COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/profile/schema_test.py
                 $<TARGET_FILE:profile_check> ${PROJECT_SOURCE_DIR})
set_tests_properties(profile.schema PROPERTIES LABELS profile TIMEOUT 300)

# ---- the pages about sites: what they say, and that docs/sites is what the profiles give ------------------
if(TARGET hpclaunch AND HPCLAUNCH_SANITIZE)  # all pages take minutes with sanitizers
  add_test(NAME cli.profile_page COMMAND hpclaunch profile page polaris)
  set_tests_properties(cli.profile_page PROPERTIES LABELS profile TIMEOUT 1200)
elseif(TARGET hpclaunch)
  add_test(NAME cli.profile_page
           COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/cli/profile_page_test.py $<TARGET_FILE:hpclaunch>)
  add_test(NAME docs.pictures COMMAND ${PROJECT_SOURCE_DIR}/scripts/pictures --check $<TARGET_FILE:hpclaunch>)
  add_test(NAME docs.sites COMMAND ${PROJECT_SOURCE_DIR}/scripts/site-pages --check $<TARGET_FILE:hpclaunch>)
  add_test(NAME docs.jobs COMMAND ${PROJECT_SOURCE_DIR}/scripts/job-scripts --check $<TARGET_FILE:hpclaunch>)
  set_tests_properties(cli.profile_page docs.pictures docs.sites docs.jobs PROPERTIES LABELS profile TIMEOUT 1200)
endif()

# ---- hpclaunch profile test: its laws, each with a plan that breaks it ---------------------------------------
hpclaunch_unit_test(laws SOURCES
  tests/cli/laws_test.cpp
  LINK hpclaunch_authoring)

# ---- what the profiles say of themselves: golden cases and laws of all, the date fixed so that time breaks nothing ----
if(TARGET hpclaunch)
  if(HPCLAUNCH_SANITIZE)
    set(_some polaris frontier lumi-g narval)  # all of them take minutes with sanitizers
  else()
    set(_some "")
  endif()
  add_test(NAME profile.laws COMMAND hpclaunch profile test ${_some})
  add_test(NAME profile.valid COMMAND hpclaunch profile validate --today 2026-11-25)
  set_tests_properties(profile.laws profile.valid PROPERTIES LABELS profile TIMEOUT 1200
                       ENVIRONMENT "HPCLAUNCH_PROFILE_PATH=;XDG_CONFIG_HOME=/nonexistent")
endif()

# ---- beside a launcher: its pure parts, and the whole of it with launchers made up -------------------------
hpclaunch_unit_test(supervised LABEL supervised SOURCES tests/sys/supervised_test.cpp LINK hpclaunch_sys hpclaunch_model)
add_executable(supervised_driver tests/sys/supervised_driver.cpp)
target_link_libraries(supervised_driver PRIVATE hpclaunch_launcher hpclaunch_sys hpclaunch_model)
target_include_directories(supervised_driver PRIVATE ${PROJECT_SOURCE_DIR}/tests)
add_test(NAME supervised.black-box
         COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/sys/supervised_test.py $<TARGET_FILE:supervised_driver>)
set_tests_properties(supervised.black-box PROPERTIES LABELS supervised TIMEOUT 600)
hpclaunch_unit_test(scheduler SOURCES tests/scheduler/scheduler_test.cpp LINK hpclaunch_scheduler)
hpclaunch_unit_test(lint SOURCES tests/lint/shell_test.cpp tests/lint/fuzz_test.cpp LINK hpclaunch_lint)
hpclaunch_unit_test(lint_cost LABEL lint SOURCES tests/lint/cost_test.cpp LINK hpclaunch_lint)
hpclaunch_unit_test(job SOURCES tests/job/node_test.cpp tests/job/time_limit_test.cpp LINK hpclaunch_job)

# ---- real launchers on virtual nodes: Slurm, Hydra, Open MPI, PyTorch (tests/engines/cluster.py) -----------------------
# Not with sanitizers: minutes each, and nothing in it that other tests do not go through.
if(TARGET hpclaunch AND NOT HPCLAUNCH_SANITIZE)
  add_executable(rank_record tests/engines/rank_record.cpp)
  function(hpclaunch_engine_test topic limit)
    add_test(NAME engines.${topic}
             COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/engines/${topic}_test.py
                     $<TARGET_FILE:hpclaunch> $<TARGET_FILE:rank_record> ${ARGN})
    set_tests_properties(engines.${topic} PROPERTIES LABELS engines TIMEOUT ${limit})
  endfunction()
  hpclaunch_engine_test(matrix 900)
  hpclaunch_engine_test(identity 300)
  hpclaunch_engine_test(cluster 300)
  hpclaunch_engine_test(training 600)
  hpclaunch_engine_test(failures 600)
  hpclaunch_engine_test(faults 900)
  hpclaunch_engine_test(waits 600)
  hpclaunch_engine_test(submit 300)
  hpclaunch_engine_test(restart 600)
  hpclaunch_engine_test(stage 600)
  hpclaunch_engine_test(mps 300)
  hpclaunch_engine_test(container 600)
  set_tests_properties(engines.waits PROPERTIES COST 1000)  # idle: first, beside the short ones
  # The second shape takes minutes more; scripts/emulated-node has both.
  hpclaunch_engine_test(emulated_node 1500 ${CMAKE_BINARY_DIR}/emulated-node OnePackage)
  # An emulated node has as many threads as this machine has cores, all busy.
  set_tests_properties(engines.emulated_node PROPERTIES PROCESSORS 2)
  set_tests_properties(engines.training engines.faults engines.failures PROPERTIES PROCESSORS 2)
endif()
