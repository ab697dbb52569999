# cmake -DROOT=profiles -DOUTPUT=FILE.cpp -P EmbedProfiles.cmake: the profiles of sites and parts as a table of texts, by
# name. "detect" stands beside each text, because it is read at every start. tests/profile/builtin_test.cpp checks both.
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
  set(detect "[]")
  string(FIND "${text}" "\n  \"detect\": [" begin)
  if(begin GREATER -1)
    string(SUBSTRING "${text}" ${begin} -1 rest)
    string(FIND "${rest}" "[" from)
    string(FIND "${rest}" "\n  ]" end)
    math(EXPR length "${end} + 4 - ${from}")
    string(SUBSTRING "${rest}" ${from} ${length} detect)
  endif()
  literal(text "${text}")
  literal(detect "${detect}")
  string(APPEND texts "constexpr char kText${count}[] =\n${text};\nconstexpr char kDetect${count}[] =\n${detect};\n")
  string(APPEND table "    {\"${name}\", \"builtin:profiles/${file}\", {kText${count}, sizeof kText${count} - 1},\n"
                      "     {kDetect${count}, sizeof kDetect${count} - 1}},\n")
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
