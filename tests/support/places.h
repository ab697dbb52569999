#pragma once
// Facts that stand in several files: each place is looked at, and named where it lacks the fact (CONTRIBUTING.md,
// "How to add"). The failure says what was expected, where, and what to do.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/text.h"
#include "support/catch.h"
#include "support/golden.h"

namespace hpclaunch::test {

inline std::string in_quotes(std::string_view name) { return '"' + std::string(name) + '"'; }
inline std::string in_ticks(std::string_view name) { return '`' + std::string(name) + '`'; }

/// "Intel MPI" and "intelmpi" are one name.
inline std::string one_word(std::string_view text) {
  std::string same;
  for (const char c : text)
    if (c != ' ') same += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return same;
}

/// Goes on with the next place, so that one run names them all.
inline void expect(bool there, const std::string& file, const std::string& what,
                   const std::string& todo) {
  if (there)
    SUCCEED();
  else
    FAIL_CHECK(file << ": expected " << what << ": " << todo);
}

inline void expect_in(const std::string& file, const std::string& what, const std::string& todo) {
  expect(source_file(file).find(what) != std::string::npos, file, what, todo);
}

/// Each line that begins with `start`, of which there is one, has `what` behind it.
inline void expect_in_line(const std::string& file, const std::string& start,
                           const std::string& what, const std::string& todo) {
  const std::string text = source_file(file);
  int found = 0;
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with(start)) continue;
    ++found;
    expect(line.find(what) != line.npos, file, what + " in the line that begins with " + start,
           todo);
  }
  expect(found > 0, file, "a line that begins with " + start, "or another one in this test");
}

/// Every JSON list of `file` that has the string `model` has `name` as well.
inline void expect_beside(const std::string& file, std::string_view model, std::string_view name) {
  const std::string text = source_file(file);
  int number = 0;
  int lists = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    for (std::size_t at = line.find(in_quotes(model)); at != line.npos;
         at = line.find(in_quotes(model), at + 1)) {
      const std::size_t begin = line.rfind('[', at);
      const std::string_view list =
          begin == line.npos ? "" : line.substr(begin, line.find(']', at) - begin);
      lists += list.empty() ? 0 : 1;
      if (!list.empty())
        expect(list.find(in_quotes(name)) != list.npos, file + ":" + std::to_string(number),
               in_quotes(name), "add it to the list that has " + in_quotes(model));
    }
  }
  expect(lists > 0, file, in_quotes(model), "no list has it: name another one in this test");
}

/// One of the JSON files of `folder` has `"name":`.
inline void expect_key_below(const std::string& folder, std::string_view name,
                             const std::string& todo) {
  namespace fs = std::filesystem;
  bool there = false;
  for (const auto& entry : fs::directory_iterator(HPCLAUNCH_SOURCE_DIR "/" + folder))
    if (entry.path().extension() == ".json")
      there = there || source_file(folder + "/" + entry.path().filename().string())
                               .find(in_quotes(name) + ":") != std::string::npos;
  expect(there, folder, in_quotes(name), todo);
}

}  // namespace hpclaunch::test
