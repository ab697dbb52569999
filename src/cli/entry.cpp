#include "cli/entry.h"

#include "hpclaunch/text.h"

namespace hpclaunch::cli {

std::string entry(const std::string& label, std::string_view text, std::size_t column,
                  std::size_t width) {
  const std::string indent(column, ' ');
  std::string out = "  " + label;
  if (out.size() + 2 > column)
    out += "\n" + indent;
  else
    out.resize(column, ' ');
  std::size_t at = column;
  for (const std::string_view word : split(text, ' ')) {
    if (at > column && at + 1 + word.size() > width) {
      out += "\n" + indent;
      at = column;
    } else if (at > column) {
      out += ' ';
      ++at;
    }
    out += word;
    at += word.size();
  }
  return out + "\n";
}

}  // namespace hpclaunch::cli
