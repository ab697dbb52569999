#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "catalogue.h"

using namespace hpclaunch;

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

int main(int argc, char** argv) {
  const bool rows = argc > 1 && std::string_view(argv[1]) == "--rows";
  if (argc < (rows ? 4 : 3)) {
    fmt::print(stderr,
               "usage: hpclaunch-catalogue [--rows] OUTPUT FILE...     (OUTPUT \"-\": check only)\n"
               "       --rows: lists of rows; else environment variables\n");
    return 2;
  }
  const std::string output = argv[rows ? 2 : 1];
  std::vector<std::string> files(argv + (rows ? 3 : 2), argv + argc);
  std::sort(files.begin(), files.end());
  catalogue::Catalogue catalogue;
  catalogue::RowText row_text;
  bool good = true;
  for (const std::string& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (!in.is_open() || in.bad()) {
      fmt::print(stderr, "{}:0: error: cannot read the file\n", file);
      return 2;
    }
    good = report(rows ? catalogue::read_rows(file, text, row_text)
                       : catalogue::read_file(file, text, catalogue)) &&
           good;
  }
  if (!good || (!rows && !report(catalogue::finish(catalogue)))) return 1;
  if (output == "-") return 0;
  std::ofstream out(output, std::ios::binary | std::ios::trunc);
  out << (rows ? catalogue::emit_rows(row_text) : catalogue::emit(catalogue)) << std::flush;
  if (out.good()) return 0;
  fmt::print(stderr, "{}: cannot write the file\n", output);
  std::remove(output.c_str());
  return 2;
}
