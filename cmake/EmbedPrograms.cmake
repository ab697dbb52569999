# cmake -DINPUT=launchers.json -DOUTPUT=FILE.cpp -P EmbedPrograms.cmake: the rows of every list as a text that is searched
# as it is (src/launcher/programs.cpp), because every start looks up its program.
#
#   "launchers" TAB key US word US word US TAB key US word US TAB NEWLINE
string(ASCII 31 unit)
file(READ ${INPUT} json)
string(REGEX REPLACE "(^|\n) *//[^\n]*" "" json "${json}")

# The words of a value: its members, or itself.
function(words_of variable row)
  string(JSON type TYPE "${row}" ${ARGN})
  set(words "${unit}")
  if(type STREQUAL "ARRAY")
    string(JSON count LENGTH "${row}" ${ARGN})
    set(index 0)
    while(index LESS count)
      string(JSON word GET "${row}" ${ARGN} ${index})
      string(APPEND words "${word}${unit}")
      math(EXPR index "${index} + 1")
    endwhile()
  else()
    string(JSON word GET "${row}" ${ARGN})
    string(APPEND words "${word}${unit}")
  endif()
  set(${variable} "${words}" PARENT_SCOPE)
endfunction()

set(text "")
foreach(list launchers options mpi wrappers)
  string(JSON rows LENGTH "${json}" ${list})
  math(EXPR last_row "${rows} - 1")
  foreach(row_index RANGE ${last_row})
    string(JSON row GET "${json}" ${list} ${row_index})
    string(APPEND text "${list}\t")
    string(JSON keys LENGTH "${row}")
    math(EXPR last_key "${keys} - 1")
    foreach(key_index RANGE ${last_key})
      string(JSON key MEMBER "${row}" ${key_index})
      string(JSON type TYPE "${row}" ${key})
      if(type STREQUAL "OBJECT")  # words: those behind each program
        string(JSON names LENGTH "${row}" ${key})
        math(EXPR last_name "${names} - 1")
        foreach(name_index RANGE ${last_name})
          string(JSON name MEMBER "${row}" ${key} ${name_index})
          words_of(words "${row}" ${key} ${name})
          string(APPEND text "${key} ${name}${words}\t")
        endforeach()
      else()
        words_of(words "${row}" ${key})
        string(APPEND text "${key}${words}\t")
      endif()
    endforeach()
    string(APPEND text "\n")
  endforeach()
endforeach()
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "${unit}" "\\037" text "${text}")
string(REPLACE "\t" "\\t" text "${text}")
string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
file(WRITE ${OUTPUT}.tmp "#include \"hpclaunch/launcher.h\"
#pragma GCC diagnostic ignored \"-Woverlength-strings\"
namespace hpclaunch {
extern const char kPrograms[];
const char kPrograms[] =
    \"${text}\";
}  // namespace hpclaunch
")
file(RENAME ${OUTPUT}.tmp ${OUTPUT})
