#pragma once
// Reads typed values from a tree and collects every problem; wrong values read as defaults.
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hpclaunch/cpuset.h"
#include "hpclaunch/profile.h"
#include "json_tree.h"
#include "names.h"

namespace hpclaunch::profile {

/// A value and its place.
struct Item {
  const Json* json = nullptr;
  std::string pointer;

  explicit operator bool() const { return json != nullptr; }
};

enum class Need { optional, required };

/// Rules for names. A `word` names what can be typed after an option; a `variable` is exported.
bool is_profile_name(std::string_view text);
bool is_word(std::string_view text);
bool is_variable(std::string_view text);
bool is_date(std::string_view text);

/// `did you mean "x"?`, or "" when nothing is near.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

/// The same, or all that is known.
std::string suggestion_or_all(std::string_view word, std::span<const std::string_view> known);

/// What reading needs everywhere: where complaints go, and in which profile we are.
class Context {
 public:
  explicit Context(Problems& problems) : problems_(problems) {}

  void fault(const Item& at, std::string message, std::string hint = {});

  /// Not empty and without control characters, else reported.
  std::string text(const Item& at);
  std::string word(const Item& at);
  std::string variable_name(const Item& at, std::string_view name);
  std::string choice(const Item& at, std::span<const std::string_view> known);
  int whole(const Item& at, int min, int max);
  bool truth(const Item& at);
  CpuSet cores(const Item& at);
  std::string core_limit(const Item& at);

  std::vector<Item> elements(const Item& at, std::string_view of_what);  ///< at least one
  std::vector<std::pair<std::string, Item>> members(const Item& at, std::string_view of_what);
  std::vector<std::string> texts(const Item& at, std::string_view of_what);

  /// Reports the second of two equal names in a list.
  template <class Entry>
  void unique(const std::vector<Item>& items, const std::vector<Entry>& entries,
              std::string Entry::*name, const char* key) {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::string& text = entries[i].*name;
      if (!text.empty() && !seen.insert(text).second) twice(items[i], key, text);
    }
  }

  SourceRef place(const Item& at) const { return problems_.place(at.json->mark, at.pointer); }
  bool full() const { return problems_.full(); }
  std::size_t count() const { return problems_.list().size(); }

  std::string profile;  ///< its name, for origins

 private:
  void expected(const Item& at, std::string_view what, std::string hint = {});
  void twice(const Item& at, const char* key, const std::string& name);

  Problems& problems_;
};

/// An object whose members are read one by one; members that were not read are reported at the end.
class Object {
 public:
  Object(Context& context, Item at);

  Item find(const char* key, Need need = Need::optional);
  bool has(const char* key) const;

  std::string text(const char* key, Need need = Need::optional);
  std::string word(const char* key, Need need = Need::optional);
  std::string choice(const char* key, std::span<const std::string_view> known,
                     Need need = Need::optional);
  int whole(const char* key, int min, int max, std::optional<int> otherwise);
  bool truth(const char* key, bool otherwise);
  std::vector<std::string> texts(const char* key);
  std::vector<std::string> variable_names(const char* key);
  std::vector<Item> elements(const char* key, std::string_view of_what);

  /// Reports an object without any of these members.
  void need_one_of(std::initializer_list<const char*> keys, const char* message);

  /// why, source, checked, printed, printed_why, disputed.
  Origin origin(Need why);

  /// Reports `key` when another member makes it meaningless.
  void refuse(const char* key, std::string_view because, std::string hint);

  void finish();

  const Item& at() const { return at_; }
  Context& context() { return context_; }

 private:
  Context& context_;
  Item at_;
  std::vector<std::string> asked_;
};

}  // namespace hpclaunch::profile
