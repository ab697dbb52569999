#include "tool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

namespace hpclaunch::catalogue {

namespace {

bool report(const std::vector<Error>& errors) {
  for (const Error& error : errors) {
    const SourceRef where = error.where.value_or(SourceRef{});
    const std::string column = where.column > 0 ? fmt::format(":{}", where.column) : "";
    fmt::print(stderr, "{}:{}{}: error: {}{}\n", where.file, where.line, column, error.message,
               error.hint.empty() ? "" : fmt::format(" (try: {})", error.hint));
  }
  return errors.empty();
}

}  // namespace

int run_tool(const Tool& tool, const std::string& output, std::vector<std::string> files) {
  std::sort(files.begin(), files.end());
  bool good = true;
  for (const std::string& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (!in.is_open() || in.bad()) {
      fmt::print(stderr, "{}:0: error: cannot read the file\n", file);
      return 2;
    }
    good = report(tool.read(file, text)) && good;
  }
  if (!good || (tool.finish && !report(tool.finish()))) return 1;
  if (output == "-") return 0;
  std::ofstream out(output, std::ios::binary | std::ios::trunc);
  out << tool.emit() << std::flush;
  if (out.good()) return 0;
  fmt::print(stderr, "{}: cannot write the file\n", output);
  std::remove(output.c_str());
  return 2;
}

}  // namespace hpclaunch::catalogue
