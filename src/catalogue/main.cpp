// hpclaunch-catalogue: environment variables, and lists of rows, as C++.
#include <fmt/format.h>

#include <string_view>

#include "catalogue.h"
#include "tool.h"

using namespace hpclaunch;

int main(int argc, char** argv) {
  const bool rows = argc > 1 && std::string_view(argv[1]) == "--rows";
  if (argc < (rows ? 4 : 3)) {
    fmt::print(stderr,
               "usage: hpclaunch-catalogue [--rows] OUTPUT FILE...     (OUTPUT \"-\": check only)\n"
               "       --rows: lists of rows; else environment variables\n");
    return 2;
  }
  catalogue::Catalogue variables;
  catalogue::RowText row_text;
  catalogue::Tool tool;
  if (rows) {
    tool.read = [&](const std::string& file, const std::string& text) {
      return catalogue::read_rows(file, text, row_text);
    };
    tool.emit = [&] { return catalogue::emit_rows(row_text); };
  } else {
    tool.read = [&](const std::string& file, const std::string& text) {
      return catalogue::read_file(file, text, variables);
    };
    tool.finish = [&] { return catalogue::finish(variables); };
    tool.emit = [&] { return catalogue::emit(variables); };
  }
  return catalogue::run_tool(tool, argv[rows ? 2 : 1],
                             std::vector<std::string>(argv + (rows ? 3 : 2), argv + argc));
}
