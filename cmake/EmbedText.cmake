# cmake -DINPUT=FILE -DOUTPUT=FILE.cpp -DNAME=kName -P EmbedText.cmake: a text file as a C string, one
# literal per line.
file(READ ${INPUT} text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "?" "\\?" text "${text}")
string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
file(WRITE ${OUTPUT}.tmp "#include \"authoring/command.h\"
#pragma GCC diagnostic ignored \"-Woverlength-strings\"
namespace hpclaunch::authoring {
const char* const ${NAME} =
    \"${text}\";
}  // namespace hpclaunch::authoring
")
file(RENAME ${OUTPUT}.tmp ${OUTPUT})
