// Scripts: findings are in order and in the text, every report can be written, and fixing comes to an end.
#include "hpclaunch/lint.h"

#include <algorithm>

#include "fuzz/expect.h"

using namespace hpclaunch;
using fuzz::expect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr int kMostRounds = 8;
  std::string text(fuzz::text_of(data, size));
  for (int round = 0;; ++round) {
    const std::vector<lint::Finding> findings = lint::check_text(text, "job.sh");
    expect(std::ranges::is_sorted(findings, {}, &lint::Finding::begin), "findings in order");
    for (const lint::Finding& one : findings) {
      expect(lint::find_rule(one.diagnostic.id) != nullptr, "a known rule", one.diagnostic.id);
      expect(one.begin <= text.size(), "a place in the text", one.diagnostic.id);
    }
    static_cast<void>(lint::as_json({{"job.sh", findings}}));
    static_cast<void>(lint::as_sarif({{"job.sh", findings}}, "1"));
    static_cast<void>(lint::as_github({{"job.sh", findings}}));
    const std::string once = lint::fixed(text, findings);
    static_cast<void>(lint::unified_diff(text, once, "job.sh"));
    if (once == text) return 0;
    expect(round < kMostRounds, "a script that is fixed stays as it is", once);
    text = once;
  }
}
