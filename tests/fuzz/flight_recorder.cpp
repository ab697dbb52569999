// What libraries of collectives and programs have written: dumps, answers of RAS, tracebacks.
#include "fuzz/expect.h"
#include "hpclaunch/progress.h"
#include "hpclaunch/text.h"
#include "hpclaunch/traceback.h"

using namespace hpclaunch;
using fuzz::expect;

namespace {

void look(const Result<stacks::Sequences>& made) {
  if (!made) return expect(!made.error().message.empty(), "an error says what is wrong");
  for (const stacks::GroupProgress& one : *made) {
    expect(shown(one.group, 10'000) == one.group, "a name can be printed", one.group);
    expect(stacks::stuck_ranks(one, one).size() <= one.launched.size(), "ranks are known ones");
    for (const auto& [rank, operation] : one.operation)
      expect(shown(operation, 10'000) == operation, "an operation can be printed", operation);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  look(stacks::parse_flight_recorder(3, text));
  look(stacks::parse_ras(text));
  const Traceback found = read_traceback(text);
  expect(found.begin <= found.end, "the lines are in order");
  expect(found.end <= split(text, '\n').size(), "the lines are there");
  return 0;
}
