# cmake -DINPUT=FILE -DOUTPUT=FILE.cpp -DNAME=kName -DMODULE=authoring -DHEADER=new.h -P EmbedText.cmake: a text file
# as a C string that the header declares in the module's namespace (of world and start: job), one literal per line.
file(READ ${INPUT} text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "?" "\\?" text "${text}")
string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
set(namespace ${MODULE})
if(MODULE MATCHES "^(world|start)$")
  set(namespace job)
endif()
file(WRITE ${OUTPUT}.tmp "#include \"${MODULE}/${HEADER}\"
#pragma GCC diagnostic ignored \"-Woverlength-strings\"
namespace hpclaunch::${namespace} {
const char* const ${NAME} =
    \"${text}\";
}  // namespace hpclaunch::${namespace}
")
file(RENAME ${OUTPUT}.tmp ${OUTPUT})
