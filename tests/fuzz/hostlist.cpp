// Lists of hosts: what is expanded and written as a list again names the same hosts.
#include <algorithm>
#include <vector>

#include "fuzz/expect.h"
#include "hpclaunch/hosts.h"

using namespace hpclaunch;
using fuzz::expect;

namespace {

/// A short text can stand for a million hosts, which take a second: about so many by its ranges.
double size_of(std::string_view text) {
  double size = 1;
  for (std::size_t dash = text.find('-'); dash != text.npos; dash = text.find('-', dash + 1)) {
    const std::size_t before = text.find_last_not_of("0123456789", dash - (dash > 0)) + 1;
    const double first = std::atof(std::string(text.substr(before, dash - before)).c_str());
    const double last = std::atof(std::string(text.substr(dash + 1, 18)).c_str());
    size *= std::max(1.0, last - first + 1);
  }
  return size;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMost = 200;  // names to compare: a short text can stand for a million
  const std::string_view text = fuzz::text_of(data, size);
  if (size_of(text) > 50 * kMost) return 0;
  static_cast<void>(expand_tasks_per_node(text));
  const Result<HostNames> hosts = expand_hostlist(text);
  if (!hosts) return expect(!hosts.error().hint.empty(), "an error has a hint"), 0;
  const HostNames some = hosts->first(kMost);
  const std::string list = host_ranges(some, std::string::npos);
  const Result<HostNames> again = expand_hostlist(list);
  expect(again && *again == some, "a list reads back as the same hosts", list);

  const std::vector<std::string> names(some.begin(), some.end());
  expect(HostNames(names) == some, "names make the same list one by one", list);
  for (const std::string& name : names) expect(some.contains(name), "each name is found", name);
  const bool rising = std::ranges::adjacent_find(names, std::greater_equal()) == names.end();
  if (some.ascending() && some.samples().size() > 1) expect(rising, "names are in order", list);
  return 0;
}
