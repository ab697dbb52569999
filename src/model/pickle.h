#pragma once
// Plain data out of a pickle of Python, protocols 2 to 5. Pure.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch::stacks {

/// Values refer to others by number: a pickle may use one of them many times.
struct PickleValue {
  enum class Kind { none, truth, whole, real, text, list, dict };
  Kind kind = Kind::none;
  long whole = 0;  ///< also of a truth
  double real = 0;
  std::string_view text;   ///< in the pickle; also bytes
  std::vector<int> items;  ///< of a list or tuple; of a dict keys and values in turn
};

class Pickle {
 public:
  /// Every opcode that is no plain data, as one that names a class, is refused. Errors: `invalid`.
  static Result<Pickle> parse(std::string_view bytes);

  const PickleValue& root() const { return values_[static_cast<std::size_t>(root_)]; }
  /// A member of a dict, an element of a list; a value of kind none where there is none.
  const PickleValue& at(const PickleValue& dict, std::string_view key) const;
  const PickleValue& at(const PickleValue& list, std::size_t index) const;
  std::size_t size(const PickleValue& list) const { return list.items.size(); }
  /// Of a dict: key and value. The key's text.
  std::vector<std::pair<std::string_view, const PickleValue*>> members(
      const PickleValue& dict) const;

 private:
  friend class PickleReader;
  std::vector<PickleValue> values_;
  int root_ = 0;
};

}  // namespace hpclaunch::stacks
