# The tests, in two tiers (CONTRIBUTING.md). HPCLAUNCH_TEST_TIERS names those that this build has:
#   pure      what needs no machine: one program of all unit tests, and what the command line prints, asked of one
#             process (hpclaunch-ask). Preset dev: with sanitizers.
#   machine   what starts, listens, installs or counts: launchers, engines, packages. Preset release.
# A test's tier is a label, its topic another; "long" are those that scripts/test runs with --all only.
set(_tests ${PROJECT_SOURCE_DIR}/tests)
set(_python ${Python3_EXECUTABLE})
set(_seconds 1800)  # limit of a test; far above what each needs on a busy machine

# hpclaunch_test(NAME TIER LABEL COMMAND...)
function(hpclaunch_test name tier label)
  cmake_parse_arguments(T "" "" "COMMAND" ${ARGN})
  if(NOT tier IN_LIST HPCLAUNCH_TEST_TIERS)
    return()
  endif()
  add_test(NAME ${name} COMMAND ${T_COMMAND})
  # 77: this machine does not allow it; the test says what.
  set_tests_properties(${name} PROPERTIES LABELS "${tier};${label}" TIMEOUT ${_seconds} SKIP_RETURN_CODE 77)
endfunction()
# Properties of a test that may be in another tier.
function(hpclaunch_test_properties name)
  if(TEST ${name})
    set_tests_properties(${name} PROPERTIES ${ARGN})
  endif()
endfunction()
if("pure" IN_LIST HPCLAUNCH_TEST_TIERS)
  set(_pure ON)
else()
  set(_pure OFF)
endif()
if("machine" IN_LIST HPCLAUNCH_TEST_TIERS)
  set(_machine ON)
else()
  set(_machine OFF)
endif()

# ---- unit tests: one program, linked once ------------------------------------------------------------
# hpclaunch_unit_test(NAME [LABEL label] SOURCES... [APART...]): adds to the program, and the test cases of these sources as
# unit.NAME. With HPCLAUNCH_UNITY they are compiled as one, but for those APART, which have local names of the others.
# What is tested is optimized, the tests themselves are not: that would take longer than they run.
add_library(hpclaunch_test_main STATIC EXCLUDE_FROM_ALL tests/support/main.cpp tests/support/golden.cpp)
target_compile_options(hpclaunch_test_main PUBLIC -O0)
set_source_files_properties(tests/support/main.cpp PROPERTIES COMPILE_OPTIONS -fno-sanitize=all)  # Catch2: half a minute with
target_link_libraries(hpclaunch_test_main PUBLIC hpclaunch_flags Catch2::Catch2 hpclaunch::fmt)
target_include_directories(hpclaunch_test_main PUBLIC ${_tests})
target_compile_definitions(hpclaunch_test_main PUBLIC HPCLAUNCH_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
if(HPCLAUNCH_PCH)
  add_library(hpclaunch_test_headers OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/headers.cpp)
  target_compile_options(hpclaunch_test_headers PRIVATE -O0)
  target_link_libraries(hpclaunch_test_headers PRIVATE hpclaunch_flags Catch2::Catch2 hpclaunch::fmt nlohmann_json::nlohmann_json)
  target_precompile_headers(hpclaunch_test_headers PRIVATE <algorithm> <map> <optional> <set> <string> <vector>
                            <fmt/format.h> <nlohmann/json.hpp> ${_tests}/support/catch.h)
endif()
function(hpclaunch_test_program target)
  target_link_libraries(${target} PRIVATE hpclaunch_test_main)
  if(HPCLAUNCH_PCH)
    target_precompile_headers(${target} REUSE_FROM hpclaunch_test_headers)
  endif()
endfunction()

function(hpclaunch_unit_test name)
  cmake_parse_arguments(T "" "LABEL" "SOURCES;APART" ${ARGN})
  if(NOT _pure)
    return()
  endif()
  if(NOT T_LABEL)
    set(T_LABEL unit)
  endif()
  target_sources(test_units PRIVATE ${T_SOURCES} ${T_APART})
  set_source_files_properties(${T_SOURCES} PROPERTIES UNITY_GROUP ${name})
  # Catch2 knows a test case by the name of its file, without the folder.
  set(files "")
  foreach(source ${T_SOURCES} ${T_APART})
    get_filename_component(file ${source} NAME_WE)
    if(file MATCHES "_test$")
      get_property(known GLOBAL PROPERTY HPCLAUNCH_UNIT_TESTS)
      if(file IN_LIST known)
        message(FATAL_ERROR "two sources of unit tests are called ${file}.cpp; rename one")
      endif()
      set_property(GLOBAL APPEND PROPERTY HPCLAUNCH_UNIT_TESTS ${file})
      list(APPEND files "[#${file}]~[.]")
    endif()
  endforeach()
  list(JOIN files "," files)
  hpclaunch_test(unit.${name} pure ${T_LABEL} COMMAND test_units --filenames-as-tags "${files}")
endfunction()
if(_pure)
  add_executable(test_units tests/support/json_position.cpp tests/support/random_topology.cpp)
  hpclaunch_test_program(test_units)
  target_link_libraries(test_units PRIVATE hpclaunch_authoring hpclaunch_lint hpclaunch_start)
  set_target_properties(test_units PROPERTIES UNITY_BUILD ${HPCLAUNCH_UNITY} UNITY_BUILD_MODE GROUP)
endif()

hpclaunch_unit_test(base SOURCES
  tests/base/cpuset_test.cpp
  tests/base/grammar_test.cpp
  tests/base/text_test.cpp)
hpclaunch_unit_test(hosts SOURCES
  tests/model/hostlist_test.cpp
  tests/model/hosts_test.cpp)
hpclaunch_unit_test(topology SOURCES
  tests/model/json_position_test.cpp
  tests/model/topology_json_test.cpp
  tests/model/topology_test.cpp)
hpclaunch_unit_test(traceback SOURCES tests/model/traceback_test.cpp)
hpclaunch_unit_test(progress SOURCES tests/model/progress_test.cpp)
hpclaunch_unit_test(plan_json SOURCES
  tests/model/plan_json_test.cpp
  tests/model/secret_test.cpp)
hpclaunch_unit_test(knowledge LABEL knowledge SOURCES tests/knowledge/knowledge_test.cpp)
hpclaunch_unit_test(profile LABEL profile SOURCES
  tests/profile/builtin_test.cpp
  tests/profile/detect_test.cpp
  tests/profile/facts_test.cpp
  tests/profile/profile_fuzz_test.cpp
  tests/profile/node_model_test.cpp
  tests/profile/parse_test.cpp
  tests/profile/resolve_test.cpp)
hpclaunch_unit_test(stall SOURCES
  tests/stall/judge_test.cpp
  tests/stall/stacks_test.cpp
  tests/stall/stall_test.cpp)
hpclaunch_unit_test(scheduler SOURCES tests/scheduler/scheduler_test.cpp)
hpclaunch_unit_test(launcher SOURCES
  tests/launcher/clashes_test.cpp
  tests/launcher/launch_lines_test.cpp
  tests/launcher/mpi_lines_test.cpp
  tests/launcher/requests_test.cpp
  tests/launcher/ssh_lines_test.cpp
  APART
  tests/launcher/table_test.cpp)
hpclaunch_unit_test(place SOURCES
  tests/plan/links_test.cpp
  tests/plan/match_test.cpp
  tests/plan/rivals.cpp
  tests/plan/rivals_test.cpp
  APART
  tests/plan/place_test.cpp
  tests/plan/placement_test.cpp)
hpclaunch_unit_test(forward SOURCES tests/plan/forward_test.cpp)
hpclaunch_unit_test(site_rules SOURCES tests/plan/site_rules_test.cpp)
hpclaunch_unit_test(make_plan SOURCES
  tests/plan/device_groups_test.cpp
  tests/plan/devices_per_rank_test.cpp
  tests/plan/grants_law_test.cpp
  tests/plan/grants_parts_test.cpp
  tests/plan/named_grants_test.cpp
  tests/plan/grants_test.cpp
  tests/plan/masks_test.cpp
  tests/plan/nics_test.cpp
  tests/plan/quota_test.cpp
  tests/plan/random_grants_test.cpp
  tests/plan/stall_presets_test.cpp
  APART
  tests/plan/make_plan_test.cpp
  tests/plan/parts_test.cpp
  tests/plan/vendors_test.cpp)
hpclaunch_unit_test(wire LABEL shim SOURCES tests/plan/wire_test.cpp)
hpclaunch_unit_test(shim LABEL shim SOURCES
  tests/shim/decode_test.cpp
  tests/shim/decode_fuzz_test.cpp
  tests/shim/static_test.cpp
  tests/shim/walk_test.cpp)
hpclaunch_unit_test(check SOURCES
  tests/check/check_plan_test.cpp
  tests/check/check_variables_test.cpp
  tests/check/drift_test.cpp)
hpclaunch_unit_test(compare SOURCES
  tests/check/compare_test.cpp
  tests/model/report_test.cpp)
hpclaunch_unit_test(lint LABEL lint SOURCES
  tests/lint/script_fuzz_test.cpp
  APART
  tests/lint/shell_test.cpp)
hpclaunch_unit_test(render SOURCES
  tests/render/env_test.cpp
  tests/render/explain_test.cpp
  tests/render/picture_test.cpp
  tests/render/plans.cpp
  tests/render/quote_test.cpp
  tests/render/plan_table_test.cpp
  tests/render/render_text_test.cpp
  APART
  tests/render/script_test.cpp
  tests/render/topology_text_test.cpp)
hpclaunch_unit_test(probe SOURCES
  tests/probe/child_test.cpp
  tests/probe/devices_test.cpp
  tests/probe/processors_test.cpp
  APART
  tests/probe/libfabric_test.cpp
  tests/probe/sysfs_nics_test.cpp
  tests/probe/sysfs_test.cpp
  tests/probe/probe_test.cpp)
# Vendors' libraries: fakes that do wrong all that a library can, in place of hardware that no test machine has.
hpclaunch_unit_test(vendor SOURCES
  tests/vendor/amd_test.cpp
  tests/vendor/level_zero_test.cpp
  tests/vendor/libraries_test.cpp
  tests/vendor/live_test.cpp
  tests/vendor/merge_test.cpp
  tests/vendor/support.cpp
  APART
  tests/vendor/nvml_test.cpp)
hpclaunch_unit_test(sys LABEL local SOURCES
  tests/sys/events_test.cpp
  tests/sys/local_test.cpp
  tests/sys/network_test.cpp
  tests/sys/channel_test.cpp
  tests/sys/questions_test.cpp tests/sys/verdict_test.cpp)
hpclaunch_unit_test(job SOURCES
  tests/job/cgroup_quota_test.cpp
  tests/job/job_report_test.cpp
  tests/job/live_node_test.cpp
  tests/job/platforms_test.cpp
  tests/job/shared_memory_test.cpp
  tests/job/time_limit_test.cpp)
hpclaunch_unit_test(laws SOURCES tests/cli/laws_test.cpp)  # of `profile test`, each with a plan that breaks it

if(_pure)
  add_library(fake_libfabric MODULE tests/probe/fake_libfabric.c)
  add_library(fake_libfabric_without MODULE tests/probe/fake_libfabric.c)
  target_compile_definitions(fake_libfabric_without PRIVATE NO_GETINFO)
  target_compile_definitions(test_units PRIVATE FAKE_LIBFABRIC="$<TARGET_FILE:fake_libfabric>"
                             FAKE_LIBFABRIC_WITHOUT="$<TARGET_FILE:fake_libfabric_without>")
  add_dependencies(test_units fake_libfabric fake_libfabric_without)
  foreach(vendor level_zero nvml rocm_smi)
    add_library(fake_${vendor} MODULE tests/vendor/fake_${vendor}.cpp)
    target_link_libraries(fake_${vendor} PRIVATE hpclaunch_flags)
    # A test renames single functions in a copy: the library itself must not look them up by name.
    target_link_options(fake_${vendor} PRIVATE -Wl,-Bsymbolic-functions)
    add_dependencies(test_units fake_${vendor})
    string(TOUPPER ${vendor} VENDOR)
    target_compile_definitions(test_units PRIVATE FAKE_${VENDOR}="$<TARGET_FILE:fake_${vendor}>")
  endforeach()
endif()

# The probe against hwloc 3, whose headers few machines have (tests/probe/hwloc3/hwloc.h).
set(_uses_hwloc ${PROJECT_SOURCE_DIR}/src/probe/hwloc.cpp ${PROJECT_SOURCE_DIR}/src/probe/hwloc_convert.cpp
    ${PROJECT_SOURCE_DIR}/src/probe/hwloc_io.cpp ${PROJECT_SOURCE_DIR}/src/probe/hwloc_nics.cpp)
hpclaunch_test(probe.hwloc3 pure unit COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only -DFMT_HEADER_ONLY
  -I${_tests}/probe/hwloc3 -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src
  -I$<JOIN:$<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>,$<SEMICOLON>-I> ${_uses_hwloc})

# Our declarations against the vendors' headers. A missing header skips the test; with CI=true in the environment it
# fails it where scripts/test installs the header (EXPECTED).
find_path(HPCLAUNCH_NVML_INCLUDE nvml.h PATHS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES include)
find_path(HPCLAUNCH_ROCM_INCLUDE rocm_smi/rocm_smi.h PATHS ENV ROCM_PATH PATHS /opt/rocm PATH_SUFFIXES include)
mark_as_advanced(HPCLAUNCH_NVML_INCLUDE HPCLAUNCH_ROCM_INCLUDE)
function(hpclaunch_abi_test vendor)
  cmake_parse_arguments(T "EXPECTED" "" "" ${ARGN})
  if(NOT _pure)
    return()
  endif()
  add_executable(abi_${vendor} tests/vendor/abi_${vendor}.cpp)
  target_link_libraries(abi_${vendor} PRIVATE hpclaunch_flags)
  target_compile_definitions(abi_${vendor} PRIVATE HPCLAUNCH_HEADER_EXPECTED=$<BOOL:${T_EXPECTED}>)
  target_include_directories(abi_${vendor} PRIVATE ${PROJECT_SOURCE_DIR}/src ${_tests})
  foreach(folder HPCLAUNCH_NVML_INCLUDE HPCLAUNCH_ROCM_INCLUDE)
    if(${folder} AND NOT ${folder} STREQUAL "/usr/include")
      target_include_directories(abi_${vendor} SYSTEM PRIVATE ${${folder}})
    endif()
  endforeach()
  hpclaunch_test(vendor.abi.${vendor} pure unit COMMAND abi_${vendor})
endfunction()
hpclaunch_abi_test(level_zero EXPECTED)
hpclaunch_abi_test(rocm_smi EXPECTED)
hpclaunch_abi_test(nvml)
add_executable(probe_bench EXCLUDE_FROM_ALL tests/probe/bench.cpp)
target_link_libraries(probe_bench PRIVATE hpclaunch_probe)

# ---- performance as counts: allocations of optimized code ----------------------------------------------
if(_machine)
  add_executable(test_counts tests/lint/cost_test.cpp tests/model/hosts_cost_test.cpp tests/stall/stall_cost_test.cpp tests/support/allocations.cpp)
  hpclaunch_test_program(test_counts)
  target_link_libraries(test_counts PRIVATE hpclaunch_lint hpclaunch_model hpclaunch_stall)
endif()
hpclaunch_test(unit.counts machine counts COMMAND test_counts)

# ---- the house: who includes whom, words, links, the installed tree ------------------------------------
hpclaunch_test(house.layers pure house COMMAND ${_python} ${_tests}/layers.py)
hpclaunch_test(house.layers-self-test pure house COMMAND ${_python} ${_tests}/layers.py --self-test)
hpclaunch_test(house.files pure house COMMAND ${_python} ${_tests}/house_files.py)
hpclaunch_test(house.files-self-test pure house COMMAND ${_python} ${_tests}/house_files.py --self-test)
hpclaunch_test(house.needs pure house COMMAND bash ${_tests}/needs_test.sh)
hpclaunch_test(docs.house pure house COMMAND ${_python} ${PROJECT_SOURCE_DIR}/scripts/house --check)
hpclaunch_test(docs.links pure house COMMAND ${_python} ${_tests}/links.py ${PROJECT_SOURCE_DIR})
hpclaunch_test(docs.messages pure house COMMAND ${_python} ${PROJECT_SOURCE_DIR}/scripts/messages --check)
hpclaunch_test(docs.words pure house COMMAND ${_python} ${PROJECT_SOURCE_DIR}/scripts/messages --words)
if(HPCLAUNCH_FETCH STREQUAL "OFF")  # libraries are installed where they are not downloaded
  hpclaunch_test(house.configure machine house COMMAND sh ${_tests}/configure_test.sh ${CMAKE_COMMAND})
endif()

# ---- programs that tests drive: shells, lists of hosts, the shim, the local and the supervised launcher ---
# hpclaunch_driver_test(NAME LABEL DRIVER SOURCE LINK script WORDS...): a small program around a module, and the script
# that is started with its path and WORDS.
function(hpclaunch_driver_test name label driver source)
  cmake_parse_arguments(T "" "SCRIPT" "LINK;WORDS" ${ARGN})
  if(NOT _pure)
    return()
  endif()
  add_executable(${driver} ${source})
  target_link_libraries(${driver} PRIVATE ${T_LINK})
  target_include_directories(${driver} PRIVATE ${_tests})
  hpclaunch_test(${name} pure ${label} COMMAND ${_python} ${_tests}/${T_SCRIPT} $<TARGET_FILE:${driver}> ${T_WORDS})
endfunction()
hpclaunch_driver_test(shells.round-trip shells render_tool tests/render/render_tool.cpp
                      SCRIPT render/shells.py LINK hpclaunch_render)
hpclaunch_driver_test(job.hostlists-as-slurm unit hostlist_driver tests/model/hostlist_driver.cpp
                      SCRIPT model/hostlist_test.py LINK hpclaunch_model)
hpclaunch_driver_test(local.black-box local local_driver tests/sys/local_driver.cpp
                      SCRIPT sys/local_test.py LINK hpclaunch_sys)
hpclaunch_driver_test(supervised.black-box supervised supervised_driver tests/sys/supervised_driver.cpp
                      SCRIPT sys/supervised_test.py LINK hpclaunch_launcher hpclaunch_sys)
if(_machine AND NOT _pure)
  add_executable(supervised_driver tests/sys/supervised_driver.cpp)
  target_link_libraries(supervised_driver PRIVATE hpclaunch_launcher hpclaunch_sys)
  target_include_directories(supervised_driver PRIVATE ${_tests})
endif()
hpclaunch_test(supervised.scale machine supervised COMMAND ${_python} ${_tests}/sys/channel_scale_test.py $<TARGET_FILE:supervised_driver>)
hpclaunch_driver_test(profile.schema profile profile_check tests/profile/profile_check.cpp
                      SCRIPT profile/schema_test.py LINK hpclaunch_profile WORDS ${PROJECT_SOURCE_DIR})
hpclaunch_driver_test(shim.black-box.checked shim hpclaunch-shim-checked src/shim/main.cpp
                      SCRIPT shim/black_box.py LINK hpclaunch_flags WORDS checked)
hpclaunch_driver_test(shim.stacks.checked shim hpclaunch-stacks-checked src/shim/stacks.cpp
                      SCRIPT shim/stacks_test.py LINK hpclaunch_flags WORDS checked)
if(_pure)
  target_compile_definitions(local_driver PRIVATE HPCLAUNCH_TEST_SHIM="${HPCLAUNCH_SHIM}")
  add_dependencies(local_driver hpclaunch-shim)
endif()

# The shim and the reader of stacks as they are installed, in every build that this machine can make.
set(shim_builds ${HPCLAUNCH_SHIM_BUILDS})
while(shim_builds)
  list(POP_FRONT shim_builds path libc)
  hpclaunch_test(shim.black-box.${libc} machine shim COMMAND ${_python} ${_tests}/shim/black_box.py ${path} ${libc})
endwhile()
set(shim_builds ${HPCLAUNCH_STACKS_BUILDS})
while(shim_builds)
  list(POP_FRONT shim_builds path libc)
  hpclaunch_test(shim.stacks.${libc} machine shim COMMAND ${_python} ${_tests}/shim/stacks_test.py ${path} ${libc})
endwhile()
if(HPCLAUNCH_SHIM_AARCH64)
  hpclaunch_test(shim.black-box.aarch64 machine shim
                 COMMAND ${_python} ${_tests}/support/foreign.py ${HPCLAUNCH_QEMU_AARCH64}
                         ${_python} ${_tests}/shim/black_box.py ${HPCLAUNCH_SHIM_AARCH64} aarch64)
elseif(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  hpclaunch_test(shim.black-box.aarch64 machine shim COMMAND ${CMAKE_COMMAND} -E echo "skipped: no aarch64-linux-gnu-g++ or no qemu-aarch64")
  hpclaunch_test_properties(shim.black-box.aarch64 SKIP_REGULAR_EXPRESSION "^skipped: ")
endif()

if(NOT TARGET hpclaunch)
  return()
endif()

# ---- the command line, from outside: each topic is a script that gets the path of hpclaunch --------------
# What only prints: asked of hpclaunch-ask, beside the program, one process for the whole topic (tests/cli/ask.py).
if(_pure)
  add_executable(hpclaunch-ask tests/support/ask.cpp)
  target_link_libraries(hpclaunch-ask PRIVATE hpclaunch_cli)
  set_target_properties(hpclaunch-ask PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  add_dependencies(hpclaunch-ask hpclaunch-shim)
  # The program with a row of each kind more: what CONTRIBUTING.md says needs no C++.
  set(_added ${CMAKE_BINARY_DIR}/added)
  set(_added_inputs)
  foreach(group programs lint variables)
    string(REPLACE "${PROJECT_SOURCE_DIR}/profiles" ${_added} _added_${group} "${HPCLAUNCH_ROWS_${group}}")
    list(APPEND _added_inputs ${HPCLAUNCH_ROWS_${group}})
  endforeach()
  add_custom_command(OUTPUT ${_added}/programs.cpp ${_added}/lint.cpp ${_added}/catalogue.cpp
    COMMAND ${_python} ${_tests}/knowledge/add_rows.py ${PROJECT_SOURCE_DIR}/profiles ${_added}
    COMMAND hpclaunch-catalogue --rows ${_added}/programs.cpp ${_added_programs}
    COMMAND hpclaunch-catalogue --rows ${_added}/lint.cpp ${_added_lint}
    COMMAND hpclaunch-catalogue ${_added}/catalogue.cpp ${_added_variables}
    DEPENDS hpclaunch-catalogue ${_tests}/knowledge/add_rows.py ${_added_inputs}
    VERBATIM COMMENT "Compiling a copy of the rows with one more of each")
  add_executable(hpclaunch-added src/cli/main.cpp ${_added}/programs.cpp ${_added}/lint.cpp ${_added}/catalogue.cpp)
  target_link_libraries(hpclaunch-added PRIVATE hpclaunch_cli)
  set_target_properties(hpclaunch-added PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  add_dependencies(hpclaunch-added hpclaunch-shim)
  hpclaunch_test(knowledge.added pure knowledge COMMAND ${_python} ${_tests}/knowledge/added_test.py
                 $<TARGET_FILE:hpclaunch> $<TARGET_FILE:hpclaunch-added>)
  foreach(topic plan drift explain lint topo devices prefixes outside later programs launchers allocations shapes profile profile_page sites site_choice examples script requests torchrun docs environment)
    hpclaunch_test(cli.${topic} pure cli COMMAND ${_python} ${_tests}/cli/${topic}_test.py $<TARGET_FILE:hpclaunch>)
  endforeach()
  # Memory faults on the way to ranks: what is quick enough of the other tier, with sanitizers as well.
  if(HPCLAUNCH_SANITIZE)
    foreach(topic doctor container mps)
      hpclaunch_test(cli.${topic}.sanitized pure cli COMMAND ${_python} ${_tests}/cli/${topic}_test.py $<TARGET_FILE:hpclaunch>)
    endforeach()
  endif()
  # Here every sixth machine, with sanitizers; the other tier has all of them.
  hpclaunch_test(cli.profile_new.some pure cli COMMAND ${CMAKE_COMMAND} -E env HPCLAUNCH_TEST_EVERY=6
                 ${_python} ${_tests}/cli/profile_new_test.py $<TARGET_FILE:hpclaunch>)
  hpclaunch_test(knowledge.black-box pure knowledge COMMAND ${_python} ${_tests}/knowledge/knowledge_test.py
                 $<TARGET_FILE:hpclaunch> $<TARGET_FILE:hpclaunch-catalogue> ${PROJECT_SOURCE_DIR})
endif()

# What starts ranks, other programs or a terminal.
foreach(topic golden counts launches flux usage terminal doctor local endings report stacks agent identity stage container start mps hydra openmpi mpi_standins supervise verify after ddp submit profile_new kubernetes each_node bind ssh)
  hpclaunch_test(cli.${topic} machine cli COMMAND ${_python} ${_tests}/cli/${topic}_test.py $<TARGET_FILE:hpclaunch>)
endforeach()
# They bind ranks to the same cores and wait for one another's.
hpclaunch_test_properties(cli.ddp PROCESSORS 2)

# ---- profiles: their golden cases and laws, the pages that come from them ---------------------------------
# The date is fixed so that time breaks nothing.
hpclaunch_test(profile.laws machine profile COMMAND hpclaunch profile test)
hpclaunch_test(profile.valid machine profile COMMAND hpclaunch profile validate --today 2026-11-28)
hpclaunch_test(docs.pictures machine profile COMMAND ${PROJECT_SOURCE_DIR}/scripts/pictures --check $<TARGET_FILE:hpclaunch>)
hpclaunch_test(docs.profile-format machine profile COMMAND ${PROJECT_SOURCE_DIR}/scripts/profile-manual --check $<TARGET_FILE:hpclaunch>)
hpclaunch_test(docs.sites machine profile COMMAND ${PROJECT_SOURCE_DIR}/scripts/site-pages --check $<TARGET_FILE:hpclaunch>)
hpclaunch_test(docs.jobs machine profile COMMAND ${PROJECT_SOURCE_DIR}/scripts/job-scripts --check $<TARGET_FILE:hpclaunch>)
if(_machine)
  set_tests_properties(profile.laws profile.valid PROPERTIES ENVIRONMENT "HPCLAUNCH_PROFILE_PATH=;XDG_CONFIG_HOME=/nonexistent")
endif()

# ---- packages of the release build: made, installed, used, removed. Both write the manifest of an install. ----
hpclaunch_test(house.install machine house COMMAND sh ${_tests}/install_test.sh ${CMAKE_COMMAND} ${CMAKE_BINARY_DIR})
hpclaunch_test_properties(house.install RESOURCE_LOCK install)
if(TARGET hpclaunch-portable AND CMAKE_BUILD_TYPE STREQUAL "Release")
  hpclaunch_test(package machine package COMMAND ${_python} ${_tests}/package/package_test.py ${CMAKE_BINARY_DIR})
  hpclaunch_test_properties(package RESOURCE_LOCK install)
endif()

# ---- real launchers on virtual nodes: Slurm, Hydra, Open MPI, PyTorch (tests/engines/cluster.py) -----------------------
if(_machine)
  add_executable(rank_record tests/engines/rank_record.cpp)
  function(hpclaunch_engine_test topic)
    set(_file ${topic})
    if(topic MATCHES "^(cancels|deaths|signals)$")
      set(_file ends)
    endif()
    hpclaunch_test(engines.${topic} machine engines
                   COMMAND ${_python} ${_tests}/engines/${_file}_test.py $<TARGET_FILE:hpclaunch> $<TARGET_FILE:rank_record> ${ARGN})
  endfunction()
  set(_only_deaths Deaths)
  set(_only_signals Signals)
  set(_only_cancels BatchJobs.test_scancel BatchJobs.test_scancel_of_the_steps BatchJobs.test_scancel_of_the_script_and_all_below)
  set(_only_ends BatchJobs.test_time_limit Firewall)
  # Those that wait longest first: the others run beside them.
  set(_cost 1000)
  foreach(topic cancels ends signals deaths stalls waits faults failures training matrix cluster restart launches stage container submit identity mps bind)
    hpclaunch_engine_test(${topic} ${_only_${topic}})
    set_tests_properties(engines.${topic} PROPERTIES COST ${_cost})
    math(EXPR _cost "${_cost} - 1")
  endforeach()
  hpclaunch_engine_test(healthy)
  set_tests_properties(engines.healthy PROPERTIES PROCESSORS 2 LABELS "machine;engines;long")
  # The second shape takes minutes more; scripts/emulated-node has both.
  hpclaunch_engine_test(emulated_node ${CMAKE_BINARY_DIR}/emulated-node OnePackage)
  # An emulated node has as many threads as this machine has cores, all busy.
  set_tests_properties(engines.emulated_node PROPERTIES PROCESSORS 2 LABELS "machine;engines;long")
endif()
