// Lists of CPUs: the shim, which has a reader of its own, sees the same set as the program that wrote the list.
#include "fuzz/expect.h"
#include "hpclaunch/cpuset.h"
#include "shim/text.h"

using namespace hpclaunch;
using fuzz::expect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view list = fuzz::text_of(data, size);
  const Result<CpuSet> cpus = CpuSet::parse(list);
  shim::Mask mask;
  const bool read = shim::read_list({list.data(), static_cast<int>(list.size())}, mask);
  if (!cpus) return 0;
  expect(read, "a list that the program accepts is one for the shim");
  expect(mask.count() == cpus->count(), "both sets have the same size", cpus->to_list());
  for (const int cpu : cpus->to_vector()) expect(mask.has(cpu), "both sets have the same CPUs");
  const Result<CpuSet> again = CpuSet::parse(cpus->to_list());
  expect(again && *again == *cpus, "a set reads back from its list", cpus->to_list());
  return 0;
}
