#pragma once
// Reads JSON files that people write. Every value keeps its place, every problem is reported with line, column
// and pointer, and a wrong value reads as a default. What the files mean is not known here.
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hpclaunch/cpuset.h"
#include "hpclaunch/result.h"

namespace hpclaunch::json_reader {

struct Member;

/// JSON as a tree that keeps the place of each value and the order of members.
struct Json {
  enum class Kind { null, boolean, integer, number, string, array, object };
  Kind kind = Kind::null;
  bool truth = false;
  std::int64_t whole = 0;       ///< of an integer
  std::string text;             ///< of a string; of a number as it was written
  std::size_t mark = 0;         ///< offset of its key, or of the value itself where it has none
  std::size_t begin = 0;        ///< of the value
  std::size_t end = 0;          ///< behind it
  std::vector<Json> items;      ///< of an array
  std::vector<Member> members;  ///< of an object; no key twice

  const Json* find(std::string_view key) const;
};

struct Member {
  std::string key;
  Json value;
};

/// "a string", "an object", ...
std::string_view noun(Json::Kind kind);

/// One token of an RFC 6901 pointer with its '/' before it.
std::string step(std::string_view key);
std::string step(std::size_t index);

/// In double quotes, short enough for one line, control characters and broken UTF-8 as '?'.
std::string shown(std::string_view text);

/// `did you mean "x"?`, or "" when nothing is near.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

/// The same, or all that is known.
std::string suggestion_or_all(std::string_view word, std::span<const std::string> known);
std::string suggestion_or_all(std::string_view word, std::span<const std::string_view> known);

/// A letter or a digit, then letters, digits, '.', '_', '+' and '-'.
bool is_word(std::string_view text);

inline const Json kAbsent{};

/// A value and its place; false when it is absent. An absent value reads as a default and is never at fault.
struct Item {
  const Json* json = &kAbsent;
  std::string pointer = {};

  explicit operator bool() const { return json != &kAbsent; }
};

enum class Need { optional, required };

/// The problems of one file, and readers for single values.
class Context {
 public:
  Context(std::string_view text, std::string file);

  std::string subject;  ///< what the file describes, for readers of its parts

  void fault(const Item& at, std::string message, std::string hint = {});
  void fault(std::size_t mark, std::string pointer, std::string message, std::string hint);

  /// In the order of the text; after 100 one more that reports the cut.
  std::vector<Error> take();
  std::size_t count() const { return problems_.size(); }
  bool full() const;
  SourceRef place(const Item& at) const { return place(at.json->mark, at.pointer); }

  std::string string(const Item& at);  ///< any string
  std::string text(const Item& at);    ///< not empty and without control characters
  std::string word(const Item& at);    ///< what can be typed after an option
  /// A text that is `what`, such as "a date".
  std::string text_of(const Item& at, std::string_view what, bool (*good)(std::string_view),
                      const char* hint);
  std::string variable_name(const Item& at, std::string_view name);
  std::string choice(const Item& at, std::span<const std::string_view> known);
  int whole(const Item& at, int min, int max);
  bool truth(const Item& at);
  CpuSet cores(const Item& at);

  std::vector<Item> elements(const Item& at, std::string_view of_what);  ///< at least one
  std::vector<Item> any_elements(const Item& at, std::string_view of_what);
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

 private:
  void expected(const Item& at, std::string_view what, std::string hint = {});
  void twice(const Item& at, const char* key, const std::string& name);
  SourceRef place(std::size_t mark, std::string pointer) const;

  std::string file_;
  std::vector<std::size_t> line_starts_ = {0};
  std::vector<Error> problems_;
};

/// Reports broken JSON, more than 32 levels, and repeated keys (of which the first is kept).
/// `//` comments are skipped. nullopt when there is no tree.
std::optional<Json> parse_tree(std::string_view text, Context& context);

/// The value that a pointer without escapes leads to, or the innermost one on its way that exists.
const Json& follow(const Json& root, std::string_view pointer);

/// An object whose members are read one by one; members that were not read are reported at the end.
class Object {
 public:
  Object(Context& context, Item at);

  Item find(const char* key, Need need = Need::optional);
  bool has(const char* key) const;

  using Members = std::vector<std::pair<std::string, Item>>;
  using Texts = std::vector<std::string>;
  using Words = std::span<const std::string_view>;

  std::string text(const char* key, Need need = Need::optional) {
    return context_.text(find(key, need));
  }
  std::string word(const char* key, Need need = Need::optional) {
    return context_.word(find(key, need));
  }
  std::string choice(const char* key, Words known, Need need = Need::optional) {
    return context_.choice(find(key, need), known);
  }
  int whole(const char* key, int min, int max, std::optional<int> otherwise) {
    const Item at = find(key, otherwise ? Need::optional : Need::required);
    return at ? context_.whole(at, min, max) : otherwise.value_or(min);
  }
  bool truth(const char* key) { return context_.truth(find(key)); }
  Texts texts(const char* key) { return context_.texts(find(key), "strings"); }
  std::string text_of(const char* key, std::string_view what, bool (*good)(std::string_view),
                      const char* hint, Need need = Need::optional) {
    return context_.text_of(find(key, need), what, good, hint);
  }
  std::vector<Item> elements(const char* key, std::string_view of_what) {
    return context_.elements(find(key), of_what);
  }
  /// Reads a member that is an object, if it is there.
  template <class Read>
  void object(const char* key, Read read) {
    if (const Item at = find(key)) inside(context_, at, read);
  }
  /// Reads each object of a list.
  template <class Read>
  std::vector<Item> objects(const char* key, Read read) {
    std::vector<Item> items = elements(key, "objects");
    for (const Item& item : items) inside(context_, item, read);
    return items;
  }
  template <class Read>
  static void inside(Context& context, const Item& at, Read read) {
    Object object(context, at);
    read(object);
    object.finish();
  }
  Members members(const char* key, std::string_view of_what) {
    return context_.members(find(key), of_what);
  }
  Texts variable_names(const char* key);

  /// Reports an object without any of these members.
  void need_one_of(std::initializer_list<const char*> keys, const char* message);

  /// Reports `key` when another member makes it meaningless.
  void refuse(const char* key, std::string_view because, std::string hint);

  void finish();

  const Item& at() const { return at_; }
  Context& context() { return context_; }

 private:
  Context& context_;
  Item at_;
  std::set<std::string> asked_;
};

}  // namespace hpclaunch::json_reader
