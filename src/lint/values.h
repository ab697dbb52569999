#pragma once
// What variables hold along a script, and words behind their replacements.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lint/script.h"

namespace hpclaunch::lint {

inline constexpr char kUnknownPart = '\x01';

struct Variable {
  Value value;
  std::vector<Value> items;  ///< of an array
  bool array = false;
  bool exported = false;
  std::size_t block = 0;     ///< where it was set
  bool conditional = false;  ///< there; elsewhere its value is not sure
};

class Values {
 public:
  explicit Values(const Shell& shell) : shell_(shell) {}

  std::map<std::string, Variable, std::less<>> variables;
  std::vector<Text> arguments;  ///< $1, $2, ... of the function that is being read
  bool in_function = false;
  bool exports_all = false;  ///< set -a

  void enter(std::size_t block) { block_ = block; }

  /// The value of a word that is not split.
  Value value(const Word& word) const;
  /// As many words as it becomes: an array's, those of an unquoted variable.
  void expand(const Word& word, std::vector<Text>& words) const;
  std::optional<long> arithmetic(std::string_view text) const;

 private:
  Value parameter(const Part& part) const;
  Value command(const Part& part) const;
  const Variable* find(std::string_view name) const;
  bool sure(const Variable& variable) const;

  const Shell& shell_;
  std::size_t block_ = 0;
};

inline Value unknown_value() { return {Value::Kind::unknown, std::string(1, kUnknownPart)}; }

}  // namespace hpclaunch::lint
