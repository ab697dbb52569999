# cmake -DROOT=profiles -DOUTPUT=FILE.cpp -P EmbedProfiles.cmake: the profiles of sites and parts as a table of texts, by
# name. The signals of "detect" stand beside each text as rows, because every start compares them.
# tests/profile/builtin_test.cpp checks both.
function(literal variable text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "?" "\\?" text "${text}")
  string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
  set(${variable} "    \"${text}\"" PARENT_SCOPE)
endfunction()

file(GLOB files RELATIVE ${ROOT} ${ROOT}/site/*.json ${ROOT}/part/*.json)
set(rows "")
foreach(file ${files})
  get_filename_component(name ${file} NAME)
  string(REGEX REPLACE "\\.json$" "" name ${name})
  list(APPEND rows "${name} ${file}")
endforeach()
list(SORT rows)
set(texts "")
set(table "")
set(count 0)
foreach(row ${rows})
  string(REGEX REPLACE " .*" "" name ${row})
  string(REGEX REPLACE ".* " "" file ${row})
  file(READ ${ROOT}/${file} text)
  set(signals "")
  string(FIND "${text}" "\n  \"detect\": [" begin)
  if(begin GREATER -1)
    string(SUBSTRING "${text}" ${begin} -1 rest)
    string(FIND "${rest}" "[" from)
    string(FIND "${rest}" "\n  ]" end)
    math(EXPR length "${end} + 4 - ${from}")
    string(SUBSTRING "${rest}" ${from} ${length} detect)
    string(JSON length LENGTH "${detect}")
    foreach(index RANGE 1 ${length})
      math(EXPR index "${index} - 1")
      string(JSON env ERROR_VARIABLE no_env GET "${detect}" ${index} env)
      if(no_env)
        set(env "")
        string(JSON like GET "${detect}" ${index} host)
      else()
        string(JSON like GET "${detect}" ${index} like)
      endif()
      string(JSON proves ERROR_VARIABLE no_proves GET "${detect}" ${index} proves)
      if(NOT no_proves AND NOT proves)
        set(proves false)
      else()
        set(proves true)
      endif()
      string(APPEND signals "    {\"${env}\", \"${like}\", ${proves}},\n")
    endforeach()
  endif()
  string(FIND "${text}" ",\n  \"expect\": [" cases)
  if(cases GREATER -1)
    string(SUBSTRING "${text}" ${cases} -1 rest)
    string(FIND "${rest}" "\n  ],\n" more)
    if(more GREATER -1)
      message(FATAL_ERROR "profiles/${file}: \"expect\" must be the last member, because a start reads none of it")
    endif()
  endif()
  literal(text "${text}")
  string(APPEND texts "constexpr char kText${count}[] =\n${text};\n")
  set(detect "{}")
  if(signals)
    string(APPEND texts "constexpr BuiltinSignal kSignals${count}[] = {\n${signals}};\n")
    set(detect "kSignals${count}")
  endif()
  string(APPEND table "    {\"${name}\", \"builtin:profiles/${file}\", {kText${count}, sizeof kText${count} - 1}, ${detect}},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUTPUT}.tmp "// Written by cmake/EmbedProfiles.cmake from profiles/site/ and profiles/part/; edit those files.
#include <array>

#include \"hpclaunch/profile.h\"

#pragma GCC diagnostic ignored \"-Woverlength-strings\"
namespace hpclaunch {
namespace {

${texts}
constexpr std::array<BuiltinProfile, ${count}> kProfiles = {{
${table}}};

}  // namespace

std::span<const BuiltinProfile> builtin_profiles() { return kProfiles; }

}  // namespace hpclaunch
")
file(RENAME ${OUTPUT}.tmp ${OUTPUT})
