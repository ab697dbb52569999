// profile_check FILE...: "OK" or the problems of each file, as FILE:LINE:COLUMN: message (hint). Without files: the schema.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "hpclaunch/profile.h"
#include "hpclaunch/profile_format.h"

int main(int argc, char** argv) {
  if (argc == 1) std::fputs(hpclaunch::profile_schema().c_str(), stdout);
  int status = 0;
  for (int i = 1; i < argc; ++i) {
    std::ifstream in(argv[i], std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const hpclaunch::ParsedProfile parsed = hpclaunch::parse_profile(text, argv[i]);
    if (parsed.problems.empty()) std::printf("%s: OK\n", argv[i]);
    for (const hpclaunch::Error& error : parsed.problems) {
      std::printf("%s:%d:%d: %s%s%s%s\n", error.where->file.c_str(), error.where->line,
                  error.where->column, error.message.c_str(), error.hint.empty() ? "" : " (",
                  error.hint.c_str(), error.hint.empty() ? "" : ")");
      status = 1;
    }
  }
  return status;
}
