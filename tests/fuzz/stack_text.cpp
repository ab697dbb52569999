// The text of hpclaunch-stacks: what is read is bounded, and what is printed of it cannot move the cursor.
#include "fuzz/expect.h"
#include "hpclaunch/stacks.h"
#include "hpclaunch/text.h"

using namespace hpclaunch;
using fuzz::expect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Result<stacks::Rank> rank = stacks::parse(3, "n1", fuzz::text_of(data, size));
  if (!rank) {
    expect(!rank.error().message.empty(), "an error has a message");
    return 0;
  }
  expect(rank->processes.size() <= 64, "at most 64 processes");
  for (const stacks::Process& process : rank->processes)
    for (const stacks::Thread& thread : process.threads)
      expect(thread.frames.size() <= 200, "at most 200 frames");
  (void)stacks::is_still(*rank, *rank);

  stacks::Rank other = *rank;
  other.rank = 4;
  const stacks::Snapshot both{{*rank, other}};
  stacks::TreeOptions options;
  for (const bool all : {false, true}) {
    options.all_threads = all;
    const std::string tree = stacks::tree_text(both, options);
    for (const unsigned char c : tree)
      expect(c == '\n' || (c >= ' ' && c != 0x7f), "no control bytes", tree);
  }
  const stacks::Verdict verdict = stacks::judge(both, both);
  const std::string text = stacks::text(verdict);
  expect(split(text, '\n').size() <= 13, "a verdict has at most 12 lines", text);
  expect(!stacks::to_json(both, &verdict).empty(), "JSON can be written");
  return 0;
}
