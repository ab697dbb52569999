#pragma once
// The shim's own functions, driven as its main() drives them, with everything in exactly sized heap
// blocks, so that AddressSanitizer sees a read one byte too far.
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shim/environment.h"
#include "support/wire.h"

namespace hpclaunch::test {

/// A heap copy without a terminating zero.
class Exact {
 public:
  explicit Exact(std::string_view text)
      : bytes_(new char[text.size()]), size_(static_cast<int>(text.size())) {
    if (!text.empty()) std::memcpy(bytes_.get(), text.data(), text.size());
  }
  shim::Text text() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<char[]> bytes_;
  int size_;
};

struct RankResult {
  std::string fault;  ///< empty: none
  std::string piece;  ///< what the fault quotes
  bool beyond = false;
  shim::Place place;
  shim::Verify verify = shim::Verify::warn;
  shim::Binding binding = shim::Binding::none;
  shim::Mask mask;
  std::string core;                      ///< as it stands in the plan
  std::vector<std::string> directories;  ///< as they are made
  std::vector<std::string> environment;
};

/// Entries with a zero at the end of each, as execve hands them over.
class Environment {
 public:
  explicit Environment(const std::vector<std::string>& entries) : entries_(entries) {
    for (std::string& entry : entries_) pointers_.push_back(entry.data());
    pointers_.push_back(nullptr);
  }
  char** get() { return pointers_.data(); }

 private:
  std::vector<std::string> entries_;
  std::vector<char*> pointers_;
};

/// `capacity` 0: as much as is needed.
inline RankResult run_rank(std::string_view wire, int rank,
                           const std::vector<std::string>& entries = {},
                           int arena_size = shim::kArenaBytes, int capacity = 0) {
  RankResult result;
  const Exact exact(wire);
  const auto plan = std::make_unique<shim::Plan>();
  const auto failed = [&](const shim::Fault& fault) {
    if (fault.what == nullptr) return false;
    result.fault = fault.what;
    result.piece.assign(fault.piece.at, static_cast<std::size_t>(fault.piece.size));
    return true;
  };
  if (failed(shim::read_plan(exact.text(), *plan))) return result;
  result.verify = plan->verify;
  result.core.assign(plan->core.at == nullptr ? "" : plan->core.at,
                     static_cast<std::size_t>(plan->core.size));
  const auto path = std::make_unique<char[][shim::kMaxPath]>(1);
  shim::each_piece(plan->directories, [&](shim::Text item) {
    shim::read_path(item, path[0]);
    result.directories.emplace_back(path[0]);
  });
  result.place.rank = rank;
  result.beyond = !shim::locate(*plan, result.place);
  if (result.beyond) return result;

  const std::unique_ptr<char[]> arena(new char[static_cast<std::size_t>(arena_size)]);
  const auto task = std::make_unique<shim::Task>();
  task->arena = arena.get();
  task->arena_size = arena_size;
  if (failed(shim::read_task(*plan, result.place, *task))) return result;
  result.binding = task->binding;
  result.mask = task->mask;

  Environment environment(entries);
  if (capacity == 0) capacity = static_cast<int>(entries.size()) + task->count + 1;
  std::vector<char*> out(static_cast<std::size_t>(capacity));
  if (!shim::compose(environment.get(), *task, out.data(), capacity)) {
    result.fault = "environment full";
    return result;
  }
  for (char** entry = out.data(); *entry != nullptr; ++entry) result.environment.push_back(*entry);
  return result;
}

}  // namespace hpclaunch::test
