// Host files: each host once, and a file of these hosts and slots means the same.
#include <algorithm>
#include <vector>

#include "fuzz/expect.h"
#include "hpclaunch/hosts.h"

using namespace hpclaunch;
using fuzz::expect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const Result<HostFile> file = parse_host_file(text, "hosts");
  if (!file) return expect(file.error().where.has_value(), "an error has a place"), 0;
  std::vector<std::string> names(file->names.begin(), file->names.end());
  expect(!names.empty() && names.size() == file->slots.size(), "a count for each host");
  std::string written;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const int slots = file->slots[i];
    if (slots > 4096) return 0;  // a sum, which one line cannot say
    written += names[i] + (slots > 0 ? " slots=" + std::to_string(slots) : "") + "\n";
  }
  const Result<HostFile> again = parse_host_file(written, "hosts");
  expect(again && *again == *file, "the file reads back", written);
  std::ranges::sort(names);
  expect(std::ranges::adjacent_find(names) == names.end(), "each host once", written);
  return 0;
}
